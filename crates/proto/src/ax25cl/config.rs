//! How a session is configured, and what it counts.

use crate::setting::{Fault, TIME_MAX, TIME_MIN, at_least, time};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// The configuration of a [`Session`](super::Session).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The node id of this side, at most 100 bytes.
    pub node_id: String,
    /// The node id that the peer must have; any other is refused. Where it is given, a caller sends bundles before the peer
    /// has said a word. Default: any, learnt at the first contact.
    pub peer_node_id: Option<String>,
    /// How long a session whose link broke in the middle of something waits for it to come back. Default 15 min.
    pub resume_within: Duration,
    /// How much of a long bundle becomes safe before its sender is told, bytes: what a crash costs at the most, and a quarter
    /// more where so little is left that the end is told instead. Default 16,384.
    pub progress_bytes: u64,
    /// This side keeps the safe beginning of a bundle that breaks off, and wants to send only the rest again. Default true.
    pub reactive_fragmentation: bool,
    /// How long a frame that is not full waits for more of an open bundle. Default 500 ms.
    pub gather: Duration,
    /// How many incoming bundles may be under way; more are refused. Default 64.
    pub transfers_max: usize,
    /// How many outgoing bundles may be open; more fail at once. Default 4,096.
    pub open_max: usize,
    /// The longest bundle to receive, bytes. Default 2^40.
    pub transfer_mru: u64,
    /// How long a peer that is to say who it is may take. Default 2 min.
    pub contact_timeout: Duration,
    /// How long an ending session waits for what is under way. Default 2 min.
    pub close_timeout: Duration,
    /// The delay before the link is called again; doubled with each failure. Default 5 s.
    pub retry_min: Duration,
    /// The longest such delay. Default 5 min.
    pub retry_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            node_id: String::new(),
            peer_node_id: None,
            resume_within: Duration::from_secs(900),
            progress_bytes: 16_384,
            reactive_fragmentation: true,
            gather: Duration::from_millis(500),
            transfers_max: 64,
            open_max: 4096,
            transfer_mru: 1 << 40,
            contact_timeout: Duration::from_secs(120),
            close_timeout: Duration::from_secs(120),
            retry_min: Duration::from_secs(5),
            retry_max: Duration::from_secs(300),
        }
    }
}

impl Config {
    /// Whether the numbers make sense, each and together.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), Fault> {
        at_least(
            "progress-bytes",
            self.progress_bytes,
            1,
            "16384 costs a frame every two minutes at 1200 bit/s",
        )?;
        at_least("transfers-max", self.transfers_max, 1, "nothing could be received")?;
        at_least("open-max", self.open_max, 1, "nothing could be sent")?;
        at_least("transfer-mru", self.transfer_mru, 1, "nothing could be received")?;
        let some = TIME_MIN..=TIME_MAX;
        time("resume-within", self.resume_within, some.clone(), "longer than the link is away")?;
        time("contact-timeout", self.contact_timeout, some.clone(), "longer than the channel is busy")?;
        time("close-timeout", self.close_timeout, some.clone(), "longer than the channel is busy")?;
        time("retry-min", self.retry_min, some, "5 s is usual")?;
        time("retry-max", self.retry_max, self.retry_min..=TIME_MAX, "it bounds `retry-min` from above")
    }
}

/// What a [`Session`](super::Session) has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Sessions that began.
    pub sessions: u64,
    /// Times that a session went on over a new link.
    pub resumed: u64,
    /// Packets sent, not counting those sent again.
    pub packets_sent: u64,
    /// Packets sent again over a new link.
    pub packets_repeated: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bundle bytes sent.
    pub payload_sent: u64,
    /// Bundle bytes received.
    pub payload_received: u64,
    /// Incoming bundles refused.
    pub refused: u64,
    /// What broke the protocol.
    pub violations: u64,
}
