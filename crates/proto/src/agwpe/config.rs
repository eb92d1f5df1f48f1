//! Settings and counters of a port of an AGWPE server.

use crate::setting::{Fault, Settings, number};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Settings of a port of an AGWPE server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Port of the server, 0 to 15. Default 0, the first.
    pub port: u8,
    /// Interval between queries for the frames that wait on the port. They end when none waits: the frames are then
    /// being sent. Default 100 ms.
    pub ask_interval: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config { port: 0, ask_interval: Duration::from_millis(100) }
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        number("port", self.port, 0..=15, "a raw frame has four bits for the port")?;
        let ms = u64::try_from(self.ask_interval.as_millis()).unwrap_or(u64::MAX);
        number("ask-interval", ms, 10..=10_000, "100 ms is usual")
    }
}

/// Counters of a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Frames sent to the server.
    pub sent: u64,
    /// Frames received from the server.
    pub received: u64,
    /// Number of times that received data were no AGWPE frame: the line is closed, because the beginning of the next
    /// frame cannot be found.
    pub damaged: u64,
    /// Frames of other ports and kinds.
    pub foreign: u64,
    /// Bursts whose transmission the server did not confirm.
    pub unanswered: u64,
    /// Number of times that the line was opened.
    pub connections: u64,
}
