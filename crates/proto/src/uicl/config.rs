//! How a group is configured, and what it counts.

use crate::setting::{Fault, TIME_MAX, TIME_MIN, at_least, number, time};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// The most members of a group: what a question in a frame of 256 octets has room for.
pub const MEMBERS_MAX: usize = 48;

/// The configuration of a [`Group`](super::Group).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The node id of this side.
    pub node_id: String,
    /// The node ids of those that bundles are for, this side not among them, at most 48. Default: nobody in particular.
    pub members: Vec<String>,
    /// How many members have to have a bundle safe for it to be sent; the others are then missed. Default: all of them.
    pub needed: Option<u32>,
    /// Bit rate on the air, bit/s. Default 1,200.
    pub rate_bps: u64,
    /// What a frame adds to its packet: addresses, control, check sequence, flag, bytes. Default 19.
    pub frame_bytes: u64,
    /// What it takes to get the channel and to key up, most times. Default 2 s.
    pub access: Duration,
    /// What one answer takes on the channel, getting it and keying up and down included; up to 65 s. Default 2 s, which suits
    /// 1200 bit/s.
    pub answer_slot: Duration,
    /// How many questions in a row a member may leave unanswered. Default 8.
    pub silent_max: u8,
    /// How many questions about a bundle there may be. Default 64.
    pub rounds_max: u16,
    /// The longest bundle, to send and to receive, bytes; two of them are kept to be sent. Default 131,072.
    pub bundle_bytes_max: u64,
    /// How many outgoing bundles may be open and not handed down; more fail at once. Default 64.
    pub open_max: usize,
    /// How many incoming bundles may be under way; more are not listened to. Default 8.
    pub incoming_max: usize,
    /// An incoming bundle of which nothing is heard for so long is lost. Default 10 min.
    pub incomplete_max: Duration,
    /// The delay before the channel is joined again when it failed; doubled with each failure. Default 1 s.
    pub retry_min: Duration,
    /// The longest such delay. Default 60 s.
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

impl Config {
    /// Whether the numbers make sense, each and together.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), Fault> {
        let members = self.members.len() as u64;
        number("members", members, 0..=MEMBERS_MAX as u64, "a question has room for 48")?;
        number("needed", self.needed.unwrap_or(0), 0..=members, "no more than members")?;
        at_least("rate-bps", self.rate_bps, 1, "1200 is usual")?;
        at_least("silent-max", self.silent_max, 1, "nobody could answer")?;
        at_least("rounds-max", self.rounds_max, 1, "nobody could answer")?;
        at_least("bundle-bytes-max", self.bundle_bytes_max, 1, "nothing could be sent")?;
        at_least("open-max", self.open_max, 1, "nothing could be sent")?;
        at_least("incoming-max", self.incoming_max, 1, "nothing could be received")?;
        time("answer-slot", self.answer_slot, TIME_MIN..=Duration::from_secs(65), "2 s suits 1200 bit/s")?;
        time("incomplete-max", self.incomplete_max, TIME_MIN..=TIME_MAX, "longer than a round takes")?;
        time("retry-min", self.retry_min, TIME_MIN..=TIME_MAX, "1 s is usual")?;
        time("retry-max", self.retry_max, self.retry_min..=TIME_MAX, "it bounds `retry-min` from above")
    }
}

/// What a [`Group`](super::Group) has counted since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Segments sent for the first time.
    pub segments_sent: u64,
    /// Segments sent again.
    pub segments_repeated: u64,
    /// Questions sent.
    pub queries_sent: u64,
    /// Requests, confirmations and refusals sent.
    pub answers_sent: u64,
    /// Requests that another's made needless.
    pub answers_spared: u64,
    /// Requests, confirmations and refusals heard about this side's bundles.
    pub answers_received: u64,
    /// Segments that came for the first time.
    pub segments_received: u64,
    /// Segments that had come before.
    pub duplicates: u64,
    /// Members that were given up, summed over all bundles.
    pub members_missed: u64,
    /// Incoming bundles refused by this side's user.
    pub refused: u64,
    /// Incoming bundles that broke off.
    pub lost: u64,
    /// Segments of bundles beyond the limits.
    pub dropped: u64,
    /// Packets that are none, or make no sense where they came.
    pub violations: u64,
}
