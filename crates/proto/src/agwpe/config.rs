//! How a port of an AGWPE server is used, and what is counted of it.

use crate::setting::{Fault, at_least, number};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// A port of a server, and its channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The server's port, 0 to 15. Default 0, the first.
    pub port: u8,
    /// Bit rate on the air, bit/s. Default 1,200.
    pub rate_bps: u32,
    /// From keying the transmitter to the first frame. Default 300 ms.
    pub tx_delay: Duration,
    /// One slot of persistence. Default 100 ms.
    pub slot_time: Duration,
    /// The chance to begin in a free slot, of 256: `persistence` + 1. Default 63, a quarter.
    pub persistence: u8,
    /// Both directions at once. Default no.
    pub full_duplex: bool,
    /// Frames that are given to the server at a time. Default 64.
    pub burst_frames_max: u32,
    /// The server is asked so often how many frames wait on the port, until none does: then they are being sent. Default
    /// 100 ms.
    pub ask_interval: Duration,
    /// From the loss of the line to the first attempt to have it again; doubled after each. Default 1 s.
    pub reconnect_min: Duration,
    /// The longest time between attempts. Default 60 s.
    pub reconnect_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            port: 0,
            rate_bps: 1200,
            tx_delay: Duration::from_millis(300),
            slot_time: Duration::from_millis(100),
            persistence: 63,
            full_duplex: false,
            burst_frames_max: 64,
            ask_interval: Duration::from_millis(100),
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
        number("port", self.port, 0..=15, "a raw frame has four bits for the port")?;
        number("rate-bps", self.rate_bps, 1..=10_000_000, "1200 and 9600 are usual")?;
        at_least("burst-frames-max", self.burst_frames_max, 1, "64 is usual")?;
        let ms = u64::try_from(self.ask_interval.as_millis()).unwrap_or(u64::MAX);
        number("ask-interval", ms, 10..=10_000, "100 ms is usual")
    }

    /// What a frame of so many bytes takes on the air, with check sequence, flag and the stuffing of random data.
    pub(super) fn air_time(&self, bytes: usize) -> Duration {
        /// A flag and the check sequence.
        const AROUND_BYTES: u64 = 3;
        let bits = 8 * (bytes as u64 + AROUND_BYTES);
        Duration::from_nanos((bits + bits / 62) * 1_000_000_000 / u64::from(self.rate_bps.max(1)))
    }

    /// From a free channel to the first frame, on the average.
    pub(super) fn key_up(&self) -> Duration {
        if self.full_duplex {
            return self.tx_delay;
        }
        self.tx_delay + self.slot_time.mul_f64(256.0 / (f64::from(self.persistence) + 1.0))
    }
}

/// What is counted of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Frames given to the server.
    pub sent: u64,
    /// Frames that it gave.
    pub received: u64,
    /// Times that what came was no frame of the server's: the line is ended, for nobody knows where the next one begins.
    pub damaged: u64,
    /// Frames of other ports and kinds.
    pub foreign: u64,
    /// Bursts of which the server did not say that they are being sent.
    pub unanswered: u64,
    /// Times that the line stood.
    pub connections: u64,
}
