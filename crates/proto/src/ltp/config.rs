//! Configuration and counters of a link.

use super::authentication::Authentication;
use crate::setting::{Fault, Settings, TIME_MAX, TIME_MIN, at_least, number, rule, settings, time};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Minimum interval between keep-alives (RFC 7122 3.4).
pub const KEEPALIVE_MIN: Duration = Duration::from_secs(15);
/// Minimum length of the longest segment, bytes: one with the longest header carries at least some data.
pub const SEGMENT_BYTES_MIN: u64 = 96;
/// Maximum number of copies of a segment.
pub(super) const COPIES_MAX: u32 = 8;
/// Time added to the inactivity limit that follows from the other settings.
const INACTIVITY_MARGIN: Duration = Duration::from_secs(2);

/// Contents of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BlockFormat {
    /// Client service 1, one bundle: understood by all implementations.
    Single,
    /// Client service 1, bundles one after the other, as ION sends them.
    #[default]
    Concatenated,
    /// Client service 2 (service data aggregation): bundles one after the other, each after its client service ID.
    ServiceData,
}

settings! {
    /// Configuration of a [`Link`](super::Link).
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Config {
        /// Engine ID of this side, by which the peer identifies its sender (RFC 5326 2); other implementations use the node
        /// number of `ipn`. Default: the node number of `ipn`, or else a number of 21 bits that follows from the node ID.
        pub engine_id: Option<u64>,
        /// Engine ID of the peer; blocks of any other engine are dropped. Default: any.
        pub peer_engine_id: Option<u64>,
        /// Node ID of the peer, which no segment contains. Default: unknown, so that bundles take the link only by a route.
        pub peer_node_id: Option<String>,
        /// Maximum length of a segment to send, bytes, at least 96 (RFC 7122 3.1.2). Default 1,400, which nearly every path
        /// carries unfragmented; the maximum of UDP over IPv4 is 65,507.
        pub segment_bytes: u64 = 1400,
        /// Contents of the blocks to send. All three formats are received. Default `concatenated`.
        pub block_format: BlockFormat,
        /// Length up to which bundles share a block, bytes; a longer bundle has its own. Each block costs a checkpoint, a
        /// report and an acknowledgement. Default 131,072.
        pub block_bytes: u64 = 131_072,
        /// Maximum length of a block to send or receive, bytes, and so of a bundle; it is kept in memory until it is
        /// reported. Default 16 MiB.
        pub block_bytes_max: u64 = 16 << 20,
        /// Maximum time that the end of a block waits for more bundles while announced ones have yet to arrive. Default
        /// 10 ms.
        pub aggregation_wait: Duration = Duration::from_millis(10),
        /// Sends blocks as green parts: without reports and retransmissions (RFC 5326 2). Default false.
        pub green: bool,
        /// Maximum number of blocks that are being sent or wait for their reports. The rate is limited to this number times
        /// the block length per round trip. Default 64.
        pub sessions_max: usize = 64,
        /// Maximum number of bytes in blocks that are being sent or wait for their reports; one block may exceed it. Default
        /// 64 MiB.
        pub outgoing_bytes_max: u64 = 64 << 20,
        /// Maximum number of blocks that are being received. For another one, a block is cancelled that has not 96 bytes, or of which
        /// nothing new has come for a retransmission timeout; if there is none, its segments are dropped. Default 256.
        pub incoming_sessions_max: usize = 256,
        /// Maximum number of received bytes that the user has not accepted, with 128 bytes for each segment; more segments are
        /// dropped. One of the blocks may exceed it by `block-bytes-max`, so that it ends. Default 64 MiB.
        pub incoming_bytes_max: u64 = 64 << 20,
        /// Maximum number of open bundles that are not completely received from the user; more fail at once. Default 4,096.
        pub open_max: usize = 4096,
        /// Time that a signal takes to the peer (one-way light time). Default 1 s.
        pub one_way_delay: Duration = Duration::from_secs(1),
        /// Time that a segment may wait at one side, in addition to the delay (RFC 5326 6.5). A retransmission timer expires
        /// after twice the delay and twice this margin. Default 500 ms.
        pub margin: Duration = Duration::from_millis(500),
        /// Maximum number of retransmissions of a checkpoint, a report or a cancellation (RFC 5326 6.7, 6.8, 6.16). Default
        /// 10.
        pub retransmissions_max: u32 = 10,
        /// Maximum number of successive retransmission cycles of a block that bring nothing new (RFC 5326 6.22). Default 100.
        pub cycles_max: u32 = 100,
        /// Number of segments after which one is a discretionary checkpoint, which requests a report before the end of the
        /// block; 0 for none. Default 0.
        pub checkpoint_every: u32 = 0,
        /// Time that a report of missing data waits for segments that arrive out of order. Default 20 ms.
        pub report_delay: Duration = Duration::from_millis(20),
        /// Time without new data of a block after which what is missing before the latest ones is reported although no checkpoint
        /// has come (asynchronous reports, RFC 5326 6.11), so that a lost checkpoint delays only its own data. Default: none.
        pub asynchronous_after: Option<Duration>,
        /// Time that a retransmission waits for further reports. Default 20 ms.
        pub retransmission_delay: Duration = Duration::from_millis(20),
        /// Maximum number of claims of a report segment to send; more ranges are reported in several segments. Default 20.
        pub claims_max: usize = 20,
        /// Number of times that each report and cancellation is sent and, when the block has no new data left, each checkpoint,
        /// retransmitted segment and acknowledgement: their losses cost a timeout or a round trip. While all that is retransmitted
        /// takes longer than a round trip at `rate-bps`, only its checkpoints are. A report that arrives again
        /// within eight times `copy-interval` is a copy, and is not acknowledged again. Default 1.
        pub copies: u32 = 1,
        /// Time between two copies. Default 10 ms.
        pub copy_interval: Duration = Duration::from_millis(10),
        /// Time without anything new of a block after which its reception is cancelled: data, their end, a checkpoint that answers a
        /// report, the acknowledgement of a report with new claims. Default: that in which the sender makes all its
        /// retransmissions, and 2 s.
        pub inactivity: Option<Duration>,
        /// Number of received blocks that are remembered after their end, so that late segments do not begin them anew.
        /// Default 16,384.
        pub closed_sessions_max: usize = 16_384,
        /// Transmission rate, bit/s, including the headers of UDP and IP; zero: as fast as the provider accepts. Default
        /// 1,000,000.
        pub rate_bps: u64 = 1_000_000,
        /// Maximum burst, as time at the rate. Default 10 ms.
        pub burst: Duration = Duration::from_millis(10),
        /// Length of the UDP and IP headers of a datagram, bytes. Default 28.
        pub overhead_bytes: u64 = 28,
        /// Maximum length of a datagram in which an acknowledgement shares the room with the segments after it; at most what the MTU
        /// leaves. RFC 7122 3.3 allows only one segment in a datagram of UDP; RFC 5326 5 allows any number, and all are
        /// received. Default: none is shared.
        pub shared_datagram_bytes: Option<u64>,
        /// Idle time of this side after which a keep-alive of four zero octets is sent, at least 15 s (RFC 7122 3.4).
        /// Default: none.
        pub keepalive: Option<Duration>,
        /// Authentication of all segments in both directions (RFC 5327). Segments without it are refused. Default: none.
        pub authentication: Option<Authentication>,
        /// Delay before a failed endpoint is opened again, or a silent peer is tried again; it doubles with each failure.
        /// Default 1 s.
        pub retry_min: Duration = Duration::from_secs(1),
        /// Maximum delay before a failed endpoint is opened again. Default 60 s.
        pub retry_max: Duration = Duration::from_secs(60),
    }
}

impl Config {
    /// Returns the engine ID of this side.
    pub fn own_engine_id(&self) -> u64 {
        self.engine_id.unwrap_or(1)
    }

    /// Returns the time from the departure of a segment at one side to that of its answer at the other.
    pub fn answer_departure(&self) -> Duration {
        self.one_way_delay.saturating_add(self.margin)
    }

    /// Returns the time from the departure of a segment to its retransmission.
    pub fn retransmission_timeout(&self) -> Duration {
        self.answer_departure().saturating_mul(2)
    }

    /// Returns the time without anything new after which a reception is cancelled.
    pub fn inactivity_limit(&self) -> Duration {
        let attempts = self.retransmissions_max.saturating_add(1);
        let derived =
            self.retransmission_timeout().saturating_mul(attempts).saturating_add(INACTIVITY_MARGIN);
        self.inactivity.unwrap_or(derived)
    }

    fn check_sizes(&self) -> Result<(), Fault> {
        let added = self.authentication.as_ref().map_or(0, Authentication::overhead_bytes) as u64;
        number("segment-bytes", self.segment_bytes, SEGMENT_BYTES_MIN + added..=65_535, "1400 is usual")?;
        at_least("block-bytes", self.block_bytes, 1, "131072 is usual")?;
        number(
            "block-bytes-max",
            self.block_bytes_max,
            1..=u64::from(u32::MAX),
            "other implementations count up to 32 bits",
        )?;
        at_least("sessions-max", self.sessions_max, 1, "with 0 nothing can be sent")?;
        at_least("outgoing-bytes-max", self.outgoing_bytes_max, 1, "with 0 nothing can be sent")?;
        at_least("incoming-sessions-max", self.incoming_sessions_max, 1, "with 0 nothing can be received")?;
        at_least(
            "incoming-bytes-max",
            self.incoming_bytes_max,
            self.block_bytes_max,
            "must not be less than `block-bytes-max`, or the longest block can never be received",
        )?;
        at_least("open-max", self.open_max, 1, "with 0 nothing can be sent")?;
        at_least("claims-max", self.claims_max, 1, "20 is usual")?;
        if let Some(bytes) = self.shared_datagram_bytes {
            let lengths = SEGMENT_BYTES_MIN..=65_535;
            number(
                "shared-datagram-bytes",
                bytes,
                lengths,
                "1472 for IPv4 over Ethernet; remove it to share none",
            )?;
        }
        number("copies", self.copies, 1..=COPIES_MAX.into(), "1 sends everything once")?;
        number("overhead-bytes", self.overhead_bytes, 0..=65_535, "28 for IPv4, 48 for IPv6")
    }

    fn check_waits(&self) -> Result<(), Fault> {
        let some = TIME_MIN..=TIME_MAX;
        let any = Duration::ZERO..=TIME_MAX;
        time("one-way-delay", self.one_way_delay, any.clone(), "1.3 s to the Moon")?;
        time("margin", self.margin, some.clone(), "500 ms is usual")?;
        time("aggregation-wait", self.aggregation_wait, any.clone(), "10 ms is usual")?;
        time("report-delay", self.report_delay, any.clone(), "20 ms is usual")?;
        time("retransmission-delay", self.retransmission_delay, any, "20 ms is usual")?;
        if let Some(after) = self.asynchronous_after {
            time(
                "asynchronous-after",
                after,
                some.clone(),
                "remove it to report only what a checkpoint asks for",
            )?;
        }
        time("copy-interval", self.copy_interval, some.clone(), "10 ms is usual")?;
        if let Some(inactivity) = self.inactivity {
            time("inactivity", inactivity, some, "must be longer than the sender's retransmissions")?;
        }
        if let Some(interval) = self.keepalive {
            const NEVER: &str = "remove it to send no keep-alives";
            rule(interval >= KEEPALIVE_MIN, "keepalive", "must be at least 15 s (RFC 7122 3.4)", NEVER)?;
            time("keepalive", interval, KEEPALIVE_MIN..=TIME_MAX, NEVER)?;
        }
        time("retry-min", self.retry_min, TIME_MIN..=TIME_MAX, "1 s is usual")?;
        time("retry-max", self.retry_max, self.retry_min..=TIME_MAX, "must not be less than `retry-min`")
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        at_least("engine-id", self.own_engine_id(), 1, "the node number of `ipn` is usual")?;
        let mut authentication = self.authentication.iter();
        authentication.try_for_each(Authentication::check).map_err(|fault| fault.within("authentication"))?;
        self.check_sizes()?;
        self.check_waits()
    }
}

/// Counters of a [`Link`](super::Link) since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Number of times that the endpoint was opened.
    pub joined: u64,
    /// Number of times that the endpoint failed or the peer's port was unreachable.
    pub failed: u64,
    /// Number of times that the peer answered nothing at all.
    pub silent: u64,
    /// Blocks begun.
    pub blocks_sent: u64,
    /// Blocks that the peer has reported completely.
    pub blocks_completed: u64,
    /// Blocks to send that were cancelled by either side.
    pub blocks_failed: u64,
    /// Blocks of which a segment was received.
    pub blocks_received: u64,
    /// Blocks that were received and accepted completely.
    pub blocks_accepted: u64,
    /// Blocks whose reception was cancelled by either side or broken off.
    pub blocks_lost: u64,
    /// Bundles in blocks that the peer has reported completely.
    pub bundles_sent: u64,
    /// Bundles received completely.
    pub bundles_received: u64,
    /// Received bundles that the user refused.
    pub refused: u64,
    /// Data segments sent for the first time.
    pub segments_sent: u64,
    /// Data segments sent again.
    pub segments_repeated: u64,
    /// Data segments received with new data.
    pub segments_received: u64,
    /// Data segments received without new data.
    pub duplicates: u64,
    /// Bytes of blocks sent for the first time.
    pub payload_sent: u64,
    /// Bytes of blocks sent again.
    pub payload_repeated: u64,
    /// Bytes of blocks received for the first time.
    pub payload_received: u64,
    /// Report segments sent, with repetitions.
    pub reports_sent: u64,
    /// Report segments received, with repetitions.
    pub reports_received: u64,
    /// Checkpoints whose answer did not arrive in time.
    pub checkpoint_timeouts: u64,
    /// Report segments whose acknowledgement did not arrive in time.
    pub report_timeouts: u64,
    /// Copies of checkpoints and control segments sent beyond the first.
    pub copies_sent: u64,
    /// Cancellations sent, with repetitions.
    pub cancels_sent: u64,
    /// Cancellations received, with repetitions and those of unknown sessions.
    pub cancels_received: u64,
    /// Blocks whose reception ended because nothing new arrived.
    pub inactive: u64,
    /// Blocks whose reception ended because others had to have room.
    pub displaced: u64,
    /// Blocks that were cancelled because the peer has lost its state.
    pub restarts: u64,
    /// Data segments dropped because of a limit.
    pub dropped: u64,
    /// Segments refused because they are not authentic.
    pub unauthenticated: u64,
    /// Segments of sessions of other engines.
    pub strangers: u64,
    /// Segments that could not be decoded or broke a rule.
    pub violations: u64,
    /// Keep-alives sent.
    pub keepalives_sent: u64,
    /// Keep-alives received.
    pub keepalives_received: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_cannot_work_are_refused_by_name() {
        let plain = Config::default;
        let second = Duration::from_secs(1);
        assert_eq!(plain().check(), Ok(()));
        for (key, config) in [
            ("engine-id", Config { engine_id: Some(0), ..plain() }),
            ("segment-bytes", Config { segment_bytes: 95, ..plain() }),
            ("block-bytes", Config { block_bytes: 0, ..plain() }),
            ("block-bytes-max", Config { block_bytes_max: 1 << 32, ..plain() }),
            ("sessions-max", Config { sessions_max: 0, ..plain() }),
            ("outgoing-bytes-max", Config { outgoing_bytes_max: 0, ..plain() }),
            ("incoming-sessions-max", Config { incoming_sessions_max: 0, ..plain() }),
            ("incoming-bytes-max", Config { incoming_bytes_max: (16 << 20) - 1, ..plain() }),
            ("open-max", Config { open_max: 0, ..plain() }),
            ("claims-max", Config { claims_max: 0, ..plain() }),
            ("copies", Config { copies: 0, ..plain() }),
            ("overhead-bytes", Config { overhead_bytes: 1 << 16, ..plain() }),
            ("one-way-delay", Config { one_way_delay: TIME_MAX + second, ..plain() }),
            ("margin", Config { margin: Duration::ZERO, ..plain() }),
            ("copy-interval", Config { copy_interval: Duration::ZERO, ..plain() }),
            ("inactivity", Config { inactivity: Some(Duration::ZERO), ..plain() }),
            ("keepalive", Config { keepalive: Some(KEEPALIVE_MIN - TIME_MIN), ..plain() }),
            ("retry-min", Config { retry_min: Duration::ZERO, ..plain() }),
            ("retry-max", Config { retry_min: second * 2, retry_max: second, ..plain() }),
        ] {
            assert_eq!(config.check().unwrap_err().key, key);
        }
    }

    #[test]
    fn timers_follow_from_the_delay() {
        let config = Config { retransmissions_max: 4, ..Config::default() };
        assert_eq!(config.retransmission_timeout(), Duration::from_secs(3));
        assert_eq!(config.inactivity_limit(), Duration::from_secs(17));
        let long =
            Config { one_way_delay: Duration::MAX, inactivity: Some(Duration::from_secs(5)), ..config };
        assert_eq!(long.retransmission_timeout(), Duration::MAX);
        assert_eq!(long.inactivity_limit(), Duration::from_secs(5));
    }
}
