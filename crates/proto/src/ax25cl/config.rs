//! Settings and counters of a session.

use crate::setting::{Fault, Settings, at_least, number, wait, wait_from};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Maximum length of a welcome, bytes.
const WELCOME_BYTES_MAX: u64 = 512;

/// The configuration of a [`Session`](super::Session).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Node ID of this side, at most 100 bytes.
    pub node_id: String,
    /// Node ID that the peer must have; any other is refused. If it is set, the side that connects sends bundles before
    /// the first packet of the peer. Default: any, learnt from the hello.
    pub peer_node_id: Option<String>,
    /// Maximum wait for a new link after the link broke while something was outstanding. Default 15 min.
    pub resume_within: Duration,
    /// Stored bytes of a long bundle between two progress messages to its sender: the maximum loss in a crash, and a
    /// quarter more near the end, which is acknowledged instead. Default 16,384.
    pub progress_bytes: u64,
    /// True to keep the stored beginning of a bundle that breaks off, and to resend only the rest (reactive
    /// fragmentation). Default true.
    pub reactive_fragmentation: bool,
    /// Maximum wait of a frame that is not full for more of an open bundle. Default 500 ms.
    pub gather: Duration,
    /// Maximum number of incoming bundles at once; more are refused. Default 64.
    pub transfers_max: usize,
    /// Maximum number of open outgoing bundles; more fail at once. Default 4,096.
    pub open_max: usize,
    /// Maximum length of a bundle to receive, bytes. Default 2^40.
    pub transfer_mru: u64,
    /// Maximum wait for the hello of the peer. Default 2 min.
    pub contact_timeout: Duration,
    /// Text for a caller that is no node, such as an operator at a terminal; then the link ends. At most 512 bytes.
    /// Default: none, and such a caller is only cut off.
    pub welcome: Option<String>,
    /// Silence of a caller after which it is taken for an operator, who waits for a text; a first packet without a hello
    /// is taken so at once. Default 90 s.
    pub welcome_after: Duration,
    /// Maximum wait of an ending session for outstanding bundles. Default 2 min.
    pub close_timeout: Duration,
    /// Delay before the link is reconnected; doubled with each failure. Default 5 s.
    pub retry_min: Duration,
    /// Maximum delay before the link is reconnected. Default 5 min.
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
            welcome: None,
            welcome_after: Duration::from_secs(90),
            close_timeout: Duration::from_secs(120),
            retry_min: Duration::from_secs(5),
            retry_max: Duration::from_secs(300),
        }
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        at_least(
            "progress-bytes",
            self.progress_bytes,
            1,
            "16384 costs a frame every two minutes at 1200 bit/s",
        )?;
        at_least("transfers-max", self.transfers_max, 1, "with 0 nothing can be received")?;
        at_least("open-max", self.open_max, 1, "with 0 nothing can be sent")?;
        at_least("transfer-mru", self.transfer_mru, 1, "with 0 nothing can be received")?;
        wait("resume-within", self.resume_within, "must be longer than an outage of the link")?;
        wait("contact-timeout", self.contact_timeout, "must be longer than the channel can be busy")?;
        let welcome_bytes = self.welcome.as_ref().map_or(0, String::len);
        number("welcome", welcome_bytes, 0..=WELCOME_BYTES_MAX, "a text of at most 512 bytes")?;
        wait("welcome-after", self.welcome_after, "must be longer than a node takes for its hello")?;
        if self.welcome.is_some() {
            let hint = "must not be less than `welcome-after`";
            wait_from("contact-timeout", self.contact_timeout, self.welcome_after, hint)?;
        }
        wait("close-timeout", self.close_timeout, "must be longer than the channel can be busy")?;
        wait("retry-min", self.retry_min, "5 s is usual")?;
        wait_from("retry-max", self.retry_max, self.retry_min, "must not be less than `retry-min`")
    }
}

/// Counters of a [`Session`](super::Session) since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Sessions begun.
    pub sessions: u64,
    /// Number of times that a session was resumed over a new link.
    pub resumed: u64,
    /// Packets sent, without those resent.
    pub packets_sent: u64,
    /// Packets resent over a new link.
    pub packets_repeated: u64,
    /// Packets received.
    pub packets_received: u64,
    /// Bundle bytes sent.
    pub payload_sent: u64,
    /// Bundle bytes received.
    pub payload_received: u64,
    /// Incoming bundles refused.
    pub refused: u64,
    /// Callers that were no nodes and got the text for them.
    pub welcomed: u64,
    /// Violations of the protocol by the peer.
    pub violations: u64,
}
