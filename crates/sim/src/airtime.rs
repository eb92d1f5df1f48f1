//! Where the time of a line went, in exact nanoseconds.

use longwire_proto::service::Shares;
use serde::{Deserialize, Serialize};

/// The time of one direction of a channel since the run began. The fields sum to the time elapsed.
///
/// An outage is an outage whether or not something was sent into it; a frame that an outage cuts counts under its
/// shares for the part that lay outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Airtime {
    /// Headers, nanoseconds.
    pub header: u64,
    /// User data sent for the first time, nanoseconds.
    pub payload: u64,
    /// What had been sent before, nanoseconds.
    pub repeated: u64,
    /// What only acknowledges, nanoseconds.
    pub acknowledgement: u64,
    /// Opening, closing, probing, keeping alive, nanoseconds.
    pub control: u64,
    /// What is there to repair others, nanoseconds.
    pub repair: u64,
    /// What the line itself adds to a frame: checks, flags, preambles, nanoseconds.
    pub framing: u64,
    /// Bits put between the others so that they do not look like a flag, nanoseconds. On radio channels.
    pub stuffing: u64,
    /// A transmitter was keyed and sent no frame: TXDELAY, TXTAIL, nanoseconds. On radio channels.
    pub keying: u64,
    /// Something waited for the channel to be clear and for its turn, nanoseconds. On radio channels.
    pub access: u64,
    /// There was no line, nanoseconds.
    pub outage: u64,
    /// Nothing was sent, nanoseconds.
    pub idle: u64,
}

impl Airtime {
    /// All of it, nanoseconds.
    pub fn total(&self) -> u64 {
        self.sent() + self.keying + self.access + self.outage + self.idle
    }

    /// The time in which frames were sent, nanoseconds.
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

    /// Spreads the `nanos` that a frame took over what its bytes were for. Every boundary between two kinds is
    /// rounded once, so that the parts sum to the whole.
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

/// `value * part / whole`, exactly, rounded down.
pub(crate) fn scale(value: u64, part: u64, whole: u64) -> u64 {
    match value.checked_mul(part) {
        Some(product) => product / whole,
        None => (u128::from(value) * u128::from(part) / u128::from(whole)) as u64,
    }
}

/// The bytes of a frame that its shares speak for.
pub(crate) fn spoken_for(shares: &Shares) -> u64 {
    [shares.payload, shares.repeated, shares.acknowledgement, shares.control, shares.repair]
        .into_iter()
        .map(u64::from)
        .sum()
}
