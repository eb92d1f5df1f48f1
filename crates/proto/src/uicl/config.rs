//! Configuration and counters of a group.

use crate::setting::{Fault, Settings, TIME_MIN, at_least, number, time, wait, wait_from};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Maximum number of members of a group: as many as a query in a frame of 256 octets can name.
pub const MEMBERS_MAX: usize = 48;

/// Configuration of a [`Group`](super::Group).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Node ID of this side.
    pub node_id: String,
    /// Node IDs of the members, without this side; at most 48. Default: none, so that any station may answer.
    pub members: Vec<String>,
    /// Number of members that must have stored a bundle for it to be sent; the others are counted as missed.
    /// Default: all.
    pub needed: Option<u32>,
    /// Bit rate of the channel, bit/s. Default 1,200.
    pub rate_bps: u64,
    /// Length that a frame adds to its packet, bytes: addresses, control, frame check sequence, flag. Default
    /// 19.
    pub frame_bytes: u64,
    /// Usual time for channel access and key-up. Default 2 s.
    pub access: Duration,
    /// Time of one answer on the channel, including channel access, key-up and key-down; at most 65 s.
    /// Default 2 s, which suits 1200 bit/s.
    pub answer_slot: Duration,
    /// Maximum number of consecutive unanswered queries per member. Default 8.
    pub silent_max: u8,
    /// Maximum number of queries per bundle. Default 64.
    pub rounds_max: u16,
    /// Maximum length of a bundle to send or receive, bytes; up to two bundles to send are kept in memory.
    /// Default 131,072.
    pub bundle_bytes_max: u64,
    /// Maximum number of open outgoing bundles that are not completely received from the user; more fail at
    /// once. Default 64.
    pub open_max: usize,
    /// Maximum number of concurrent incoming bundles; segments of others are ignored. Default 8.
    pub incoming_max: usize,
    /// Time without packets after which an incoming bundle is lost. Default 10 min.
    pub incomplete_max: Duration,
    /// Delay before a failed channel is joined again; it doubles with each failure. Default 1 s.
    pub retry_min: Duration,
    /// Maximum delay before a failed channel is joined again. Default 60 s.
    pub retry_max: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            node_id: String::new(),
            members: Vec::new(),
            needed: None,
            rate_bps: 1200,
            frame_bytes: 19,
            access: Duration::from_secs(2),
            answer_slot: Duration::from_secs(2),
            silent_max: 8,
            rounds_max: 64,
            bundle_bytes_max: 131_072,
            open_max: 64,
            incoming_max: 8,
            incomplete_max: Duration::from_secs(600),
            retry_min: Duration::from_secs(1),
            retry_max: Duration::from_secs(60),
        }
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        let members = self.members.len() as u64;
        number("members", members, 0..=MEMBERS_MAX as u64, "a query can name 48 members")?;
        number("needed", self.needed.unwrap_or(0), 0..=members, "at most the number of members")?;
        at_least("rate-bps", self.rate_bps, 1, "1200 is usual")?;
        at_least("silent-max", self.silent_max, 1, "8 is usual")?;
        at_least("rounds-max", self.rounds_max, 1, "64 is usual")?;
        at_least("bundle-bytes-max", self.bundle_bytes_max, 1, "with 0 nothing can be sent")?;
        at_least("open-max", self.open_max, 1, "with 0 nothing can be sent")?;
        at_least("incoming-max", self.incoming_max, 1, "with 0 nothing can be received")?;
        time("answer-slot", self.answer_slot, TIME_MIN..=Duration::from_secs(65), "2 s suits 1200 bit/s")?;
        wait("incomplete-max", self.incomplete_max, "longer than a round; 10 min is usual")?;
        wait("retry-min", self.retry_min, "1 s is usual")?;
        wait_from("retry-max", self.retry_max, self.retry_min, "must not be less than `retry-min`")
    }
}

/// Counters of a [`Group`](super::Group) since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Segments sent for the first time.
    pub segments_sent: u64,
    /// Segments resent.
    pub segments_repeated: u64,
    /// Queries sent.
    pub queries_sent: u64,
    /// Requests, confirmations and refusals sent.
    pub answers_sent: u64,
    /// Requests suppressed because of another member's request.
    pub answers_spared: u64,
    /// Requests, confirmations and refusals received about bundles of this side.
    pub answers_received: u64,
    /// Segments received for the first time.
    pub segments_received: u64,
    /// Segments received again.
    pub duplicates: u64,
    /// Members that were dropped, summed over all bundles.
    pub members_missed: u64,
    /// Incoming bundles that the user refused.
    pub refused: u64,
    /// Incoming bundles that were interrupted.
    pub lost: u64,
    /// Segments of bundles beyond the limits.
    pub dropped: u64,
    /// Invalid or unexpected packets.
    pub violations: u64,
}
