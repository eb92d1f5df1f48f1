//! How a TNC is configured, and what is counted of it.

use super::framing::Checksum;
use crate::setting::{Fault, at_least, number};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Whether the TNC is asked to tell when a frame has left (Multi-Drop, Acknowledgment Mode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledgement {
    /// It is tried. A TNC that does not know it may swallow the frame: it is sent again, and no more is asked for.
    #[default]
    Probe,
    /// Every time.
    Always,
    /// Never: when a frame has left is computed.
    Never,
}

/// A TNC and its channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Its port, or its address among the TNCs of one line, 0 to 15. Default 0. KISS 4.
    pub port: u8,
    /// How damage between host and TNC is seen. Default not at all.
    pub checksum: Checksum,
    /// Whether it is asked to tell when a frame has left. Default: it is tried.
    pub acknowledgement: Acknowledgement,
    /// It says nothing unless it is polled, and is polled so often. Default: it speaks by itself. Multi-Drop, Polled Mode.
    pub poll_interval: Option<Duration>,
    /// TXDELAY, P, SlotTime, TXtail and FullDuplex are sent when the line stands. Default yes; else they are as the TNC has
    /// them, and the values here serve for computing. KISS 4.
    pub send_parameters: bool,
    /// Bit rate on the air, bit/s. Default 1,200.
    pub rate_bps: u32,
    /// From keying the transmitter to the first frame, to 10 ms. Default 300 ms.
    pub tx_delay: Duration,
    /// From the end of the last frame to unkeying, to 10 ms. Default 20 ms.
    pub tx_tail: Duration,
    /// One slot of persistence, to 10 ms. Default 100 ms: shorter ones end before others' carrier is noticed.
    pub slot_time: Duration,
    /// The chance to begin in a free slot, of 256: `persistence` + 1. Default 63, a quarter.
    pub persistence: u8,
    /// Both directions at once. Default no.
    pub full_duplex: bool,
    /// Frames that the TNC holds at a time. Default 64.
    pub burst_frames_max: u32,
    /// From the loss of the line to the first attempt to have it again; doubled after each. Default 1 s.
    pub reconnect_min: Duration,
    /// The longest time between attempts. Default 60 s.
    pub reconnect_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            port: 0,
            checksum: Checksum::None,
            acknowledgement: Acknowledgement::Probe,
            poll_interval: None,
            send_parameters: true,
            rate_bps: 1200,
            tx_delay: Duration::from_millis(300),
            tx_tail: Duration::from_millis(20),
            slot_time: Duration::from_millis(100),
            persistence: 63,
            full_duplex: false,
            burst_frames_max: 64,
            reconnect_min: Duration::from_secs(1),
            reconnect_max: Duration::from_secs(60),
        }
    }
}

impl Config {
    /// Walks its numbers.
    ///
    /// # Errors
    /// The first that is out of its range.
    pub fn check(&self) -> Result<(), Fault> {
        let ports = if self.checksum == Checksum::Smack { 7 } else { 15 };
        number("port", self.port, 0..=ports, "SMACK leaves the ports 0 to 7, others 0 to 15")?;
        number("rate-bps", self.rate_bps, 1..=10_000_000, "1200 and 9600 are usual")?;
        at_least("burst-frames-max", self.burst_frames_max, 1, "64 is usual")?;
        for (key, time) in
            [("tx-delay", self.tx_delay), ("tx-tail", self.tx_tail), ("slot-time", self.slot_time)]
        {
            let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            number(key, ms, 0..=2550, "KISS has one octet for it, in units of 10 ms")?;
        }
        Ok(())
    }

    /// What a frame of so many bytes takes on the air, with check sequence, flag and the stuffing of random data.
    pub(super) fn air_time(&self, bytes: usize) -> Duration {
        /// A flag and the check sequence.
        const AROUND_BYTES: u64 = 3;
        let bits = 8 * (bytes as u64 + AROUND_BYTES);
        let bits = bits + bits / 62;
        Duration::from_nanos(bits * 1_000_000_000 / u64::from(self.rate_bps.max(1)))
    }

    /// From a free channel to the first frame, on the average.
    pub(super) fn key_up(&self) -> Duration {
        if self.full_duplex {
            return self.tx_delay;
        }
        self.tx_delay + self.slot_time.mul_f64(256.0 / (f64::from(self.persistence) + 1.0))
    }
}

/// What is counted of a TNC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Frames given to it.
    pub sent: u64,
    /// Frames that it gave.
    pub received: u64,
    /// Contents that are no frames, too long, or with a wrong checksum.
    pub damaged: u64,
    /// Frames of other ports or TNCs, and of commands that say nothing to a host.
    pub foreign: u64,
    /// Frames of which it did not tell that they have left, though it was asked to.
    pub unacknowledged: u64,
    /// Times that the line stood.
    pub connections: u64,
}
