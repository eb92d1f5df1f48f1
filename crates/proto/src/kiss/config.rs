//! Settings and counters of a KISS TNC.

use super::framing::Checksum;
use crate::setting::{Fault, Settings, number};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Use of acknowledgement mode, in which the TNC reports transmitted frames (Multi-Drop, Acknowledgment Mode).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acknowledgement {
    /// Tested once, with a probe frame of no link ahead of the first burst: a TNC without this mode may drop it.
    #[default]
    Probe,
    /// Always used.
    Always,
    /// Never used; the end of each transmission is computed.
    Never,
}

/// Settings of a KISS TNC.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Port of the TNC, or its address among the TNCs of one line (KISS 4), 0 to 15. Default 0.
    pub port: u8,
    /// Detection of damage on the line between host and TNC. Default none.
    pub checksum: Checksum,
    /// Use of acknowledgement mode. Default: probe.
    pub acknowledgement: Acknowledgement,
    /// Interval between polls of a TNC that sends only when polled (Multi-Drop, Polled Mode); `None` for a TNC that
    /// sends by itself. Default `None`.
    pub poll_interval: Option<Duration>,
    /// True to send TXDELAY, P, SlotTime, TXtail and FullDuplex (KISS 4) when the line opens. Default true. Otherwise
    /// the TNC keeps its own, and the channel's settings only serve for computing times.
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

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        let ports = if self.checksum == Checksum::Smack { 7 } else { 15 };
        number("port", self.port, 0..=ports, "SMACK allows ports 0 to 7, other modes 0 to 15")
    }
}

/// Counters of a KISS TNC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Frames sent to the TNC.
    pub sent: u64,
    /// Frames received from the TNC.
    pub received: u64,
    /// Frames with invalid contents, too long, or with a wrong checksum.
    pub damaged: u64,
    /// Frames of other ports or TNCs, and with commands that have no meaning for a host.
    pub foreign: u64,
    /// Frames whose requested acknowledgement did not arrive.
    pub unacknowledged: u64,
    /// Number of times that the line was opened.
    pub connections: u64,
}
