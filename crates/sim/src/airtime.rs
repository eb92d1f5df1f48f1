//! Account of the time of a line, in exact nanoseconds.

use longwire_proto::service::Shares;

/// Use of the time of one direction of a channel since the run began. The fields sum to the time elapsed.
///
/// An outage counts whether or not a frame was sent during it. A frame interrupted by an outage counts under its shares
/// for the part outside the outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Airtime {
    /// Headers, nanoseconds.
    pub header: u64,
    /// User data sent for the first time, nanoseconds.
    pub payload: u64,
    /// User data sent again, nanoseconds.
    pub repeated: u64,
    /// Acknowledgements only, nanoseconds.
    pub acknowledgement: u64,
    /// Opening and closing of connections, probes and keepalives, nanoseconds.
    pub control: u64,
    /// Redundancy for the repair of other frames, nanoseconds.
    pub repair: u64,
    /// Overhead of the line for each frame: check sequences, flags, preambles, nanoseconds.
    pub framing: u64,
    /// Stuffed bits, nanoseconds. On radio channels.
    pub stuffing: u64,
    /// Keyed transmitter without a frame: TXDELAY, TXTAIL, nanoseconds. On radio channels.
    pub keying: u64,
    /// Waiting for a clear channel and for the access procedure, nanoseconds. On radio channels.
    pub access: u64,
    /// Outages, nanoseconds.
    pub outage: u64,
    /// Idle time, nanoseconds.
    pub idle: u64,
}

impl Airtime {
    /// Returns the total time, nanoseconds.
    pub fn total(&self) -> u64 {
        self.sent() + self.keying + self.access + self.outage + self.idle
    }

    /// Returns the time in which frames were sent, nanoseconds.
    pub fn sent(&self) -> u64 {
        self.header
            + self.payload
            + self.repeated
            + self.acknowledgement
            + self.control
            + self.repair
            + self.framing
            + self.stuffing
    }

    /// Adds the `nanos` of a frame to the fields according to the shares of its bytes. Every boundary between two kinds
    /// is rounded once, so that the parts sum to the whole.
    pub(crate) fn add_frame(&mut self, nanos: u64, frame_bytes: u32, framing_bytes: u32, shares: &Shares) {
        let total = u64::from(frame_bytes) + u64::from(framing_bytes);
        if total == 0 {
            self.framing += nanos;
            return;
        }
        let mut bytes_before = 0u64;
        let mut nanos_before = 0u64;
        let mut part = |bytes: u32| {
            if bytes == 0 {
                return 0;
            }
            bytes_before += u64::from(bytes);
            let upto = scale(nanos, bytes_before, total);
            let part = upto - nanos_before;
            nanos_before = upto;
            part
        };
        self.payload += part(shares.payload);
        self.repeated += part(shares.repeated);
        self.acknowledgement += part(shares.acknowledgement);
        self.control += part(shares.control);
        self.repair += part(shares.repair);
        self.framing += part(framing_bytes);
        self.header += nanos - nanos_before;
    }
}

/// Returns `value * part / whole`, computed exactly and rounded down.
pub(crate) fn scale(value: u64, part: u64, whole: u64) -> u64 {
    match value.checked_mul(part) {
        Some(product) => product / whole,
        None => (u128::from(value) * u128::from(part) / u128::from(whole)) as u64,
    }
}
