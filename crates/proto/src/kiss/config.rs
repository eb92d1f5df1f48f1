//! How a TNC is configured, and what is counted of it.

use super::framing::Checksum;
use crate::setting::{Fault, number};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Whether the TNC is asked to tell when a frame has left (Multi-Drop, Acknowledgment Mode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledgement {
    /// It is tried once, with a frame of no link ahead of the first burst, which a TNC that does not know it may swallow.
    #[default]
    Probe,
    /// Every time.
    Always,
    /// Never: when a frame has left is computed.
    Never,
}

/// How a TNC is spoken with.
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
    /// them, and what is said of the channel serves for computing. KISS 4.
    pub send_parameters: bool,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            port: 0,
            checksum: Checksum::None,
            acknowledgement: Acknowledgement::Probe,
            poll_interval: None,
            send_parameters: true,
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
        number("port", self.port, 0..=ports, "SMACK leaves the ports 0 to 7, others 0 to 15")
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
