//! How a port of an AGWPE server is used, and what is counted of it.

use crate::setting::{Fault, number};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// A port of a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The server's port, 0 to 15. Default 0, the first.
    pub port: u8,
    /// The server is asked so often how many frames wait on the port, until none does: then they are being sent. Default
    /// 100 ms.
    pub ask_interval: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config { port: 0, ask_interval: Duration::from_millis(100) }
    }
}

impl Config {
    /// Walks its numbers.
    ///
    /// # Errors
    /// The first that is out of its range.
    pub fn check(&self) -> Result<(), Fault> {
        number("port", self.port, 0..=15, "a raw frame has four bits for the port")?;
        let ms = u64::try_from(self.ask_interval.as_millis()).unwrap_or(u64::MAX);
        number("ask-interval", ms, 10..=10_000, "100 ms is usual")
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
