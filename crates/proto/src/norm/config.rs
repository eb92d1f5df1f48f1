//! Configuration and counters of a session.

use super::congestion::CongestionControl;
use super::quantities;
use super::wire::FecScheme;
use crate::setting::{Fault, Settings, TIME_MAX, TIME_MIN, at_least, number, rule, settings, time};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Maximum number of symbols of a block, source and parity symbols together.
pub const BLOCK_SYMBOLS_MAX: u64 = 255;
/// Maximum number of objects that can be under way: their numbers must differ from those of the objects before.
pub const OBJECTS_MAX: usize = 255;
/// Minimum length of a segment, bytes: a NACK of one item fits.
pub const SEGMENT_BYTES_MIN: u64 = 32;

settings! {
    /// Configuration of a [`Session`](super::Session) and of a [`Link`](super::Link).
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Config {
        /// Node identifier of this side (RFC 5740 4.1), unique in the session. Default: a number that follows from the node ID.
        pub norm_node_id: Option<u32>,
        /// Node IDs of the receivers of a group that must acknowledge each object; their node identifiers follow from these and are
        /// `acknowledging`. Default: none.
        pub members: Vec<String>,
        /// Node identifiers of the receivers that must acknowledge each object (RFC 5740 5.5.3). Default: the configured peer, whose
        /// identifier is learnt from its answers; a group has none by default, so that its objects count as sent when the time for repair
        /// requests has passed.
        pub acknowledging: Vec<u32>,
        /// Sends to a group, whose receivers spread their answers over time. Default: true where the provider knows a group and no peer.
        pub group: Option<bool>,
        /// Node ID of the peer, which no message contains. Default: unknown, so that bundles take the link only by a route.
        pub peer_node_id: Option<String>,
        /// Transmission rate, bit/s, of NORM messages without the headers of UDP and IP; zero: as fast as the provider accepts. With
        /// `congestion-control`, the maximum rate. Default 1,000,000.
        pub rate_bps: u64 = 1_000_000,
        /// Way in which the rate is chosen: `none`, which leaves it at `rate-bps`; `tfmcc`, a share of the path's rate that is fair to TCP
        /// (RFC 5740 5.5.2); or `tfmcc-loss-tolerant`, with which this side, where it receives, reports only losses from queues
        /// that are full. Default `none`.
        pub congestion_control: CongestionControl,
        /// Minimum rate with `congestion-control`, bit/s, at which it also sends to silent receivers. Default 2,000.
        pub rate_min_bps: u64 = 2_000,
        /// Maximum burst, as time at the rate. Default 10 ms.
        pub burst: Duration = Duration::from_millis(10),
        /// Maximum length of a segment, bytes, at least 32; where datagrams are shorter, as in UI frames of AX.25, what they can
        /// carry. A message has up to 40 bytes more. Default 1,400.
        pub segment_bytes: u64 = 1400,
        /// Maximum number of source symbols of a block. Default 64.
        pub block_symbols: u64 = 64,
        /// Number of parity symbols of a block; with the source symbols at most 255. Default 16.
        pub parity_symbols: u64 = 16,
        /// Number of parity symbols of a block that are sent without a request. Default 0.
        pub auto_parity: u64 = 0,
        /// Format of the identifiers of symbols (RFC 5052). All are received. Default `reed-solomon8` (5).
        pub fec_scheme: FecScheme,
        /// Factor of the round-trip time for the maximum backoff of repair requests, 0 to 15 (RFC 5740 4.2.1). Default: 0 for one
        /// receiver, 4 for a group.
        pub backoff_factor: Option<u8>,
        /// Estimated number of receivers, which spreads repair requests. Default: 10 for one receiver, the number of those that must
        /// acknowledge for a group, and 1,000 for a group without them.
        pub group_size: Option<u64>,
        /// Number of times that a question is asked, such as FLUSH, before its receivers count as silent (RFC 5740 6,
        /// `NORM_ROBUST_FACTOR`). Default 20.
        pub robust_factor: u32 = 20,
        /// Round-trip time before the first measurement. Default 500 ms.
        pub grtt: Duration = Duration::from_millis(500),
        /// Maximum round-trip time; longer measurements count as this. Default 15 s.
        pub grtt_max: Duration = Duration::from_secs(15),
        /// Interval of the first probes for the round-trip time while data are sent; it doubles up to `probe-max`. Default 1 s.
        pub probe_min: Duration = Duration::from_secs(1),
        /// Maximum interval of probes. Default 30 s.
        pub probe_max: Duration = Duration::from_secs(30),
        /// Interval at which acknowledgements are requested while data are sent. At the end of all data they are requested at once.
        /// Default 1 s.
        pub watermark_interval: Duration = Duration::from_secs(1),
        /// Receives without answers: lost segments are repaired only as far as other receivers request it or with `auto-parity` of the
        /// sender. Default false.
        pub silent: bool,
        /// Sends repair requests and acknowledgements to the group instead of the sender alone, so that other receivers need not repeat
        /// requests; groups of AX.25 stations always do. Default false.
        pub group_answers: bool,
        /// Receives all objects that a sender can still repair, not only those that it sends after the first message heard. Default
        /// true.
        pub earlier_objects: bool = true,
        /// Maximum number of objects that are being sent or wait for acknowledgements, at most 255. Default 255.
        pub objects_max: usize = OBJECTS_MAX,
        /// Maximum number of bytes of such objects, and of the buffers of such streams; one object may exceed it. Default 64 MiB.
        pub outgoing_bytes_max: u64 = 64 << 20,
        /// Maximum length of an object to send or receive, bytes, and of the buffer of a stream to send. Default 64 MiB.
        pub object_bytes_max: u64 = 64 << 20,
        /// Maximum number of bytes in received blocks that are not complete, or wait for blocks before them; what is above it counts as
        /// lost on the way. Default 32 MiB.
        pub incoming_bytes_max: u64 = 32 << 20,
        /// Maximum number of received bytes that the user has not accepted; while there are more, nothing is received. Default 64 MiB.
        pub unaccepted_bytes_max: u64 = 64 << 20,
        /// Maximum number of senders that are remembered; the one that was silent for the longest time is forgotten. Default 64.
        pub senders_max: usize = 64,
        /// Time without a message of a sender after which its incomplete objects are lost. Default 10 min.
        pub inactivity_limit: Duration = Duration::from_secs(600),
        /// Time in which receivers that have to acknowledge neither do so nor request anything, after which all objects fail. At least
        /// `robust-factor` questions are asked meanwhile. Default 60 s.
        pub silence_limit: Duration = Duration::from_secs(60),
        /// Maximum number of open bundles that are not completely received from the user; more fail at once. Default 4,096.
        pub open_max: usize = 4096,
        /// Length of the UDP and IP headers of a datagram, bytes, which does not count for the rate. Default 28.
        pub overhead_bytes: u64 = 28,
        /// Delay before a failed endpoint is opened again, or silent receivers are tried again; it doubles with each failure.
        /// Default 1 s.
        pub retry_min: Duration = Duration::from_secs(1),
        /// Maximum delay before a failed endpoint is opened again. Default 60 s.
        pub retry_max: Duration = Duration::from_secs(60),
    }
}

impl Config {
    /// Returns the node identifier of this side.
    pub fn own_node_id(&self) -> u32 {
        self.norm_node_id.unwrap_or(1)
    }

    fn check_sizes(&self) -> Result<(), Fault> {
        number("segment-bytes", self.segment_bytes, SEGMENT_BYTES_MIN..=65_000, "1400 is usual")?;
        number("block-symbols", self.block_symbols, 1..=BLOCK_SYMBOLS_MAX, "64 is usual")?;
        let parity_max = BLOCK_SYMBOLS_MAX - self.block_symbols;
        number("parity-symbols", self.parity_symbols, 0..=parity_max, "255 with those of `block-symbols`")?;
        number("auto-parity", self.auto_parity, 0..=self.parity_symbols, "at most `parity-symbols`")?;
        let factor = u64::from(self.backoff_factor.unwrap_or(0));
        number(
            "backoff-factor",
            factor,
            0..=u64::from(quantities::BACKOFF_FACTOR_MAX),
            "4 is usual for groups",
        )?;
        at_least("rate-min-bps", self.rate_min_bps, 1, "at least 1; 2000 is usual")?;
        at_least("robust-factor", u64::from(self.robust_factor), 1, "20 is usual")?;
        number("objects-max", self.objects_max as u64, 1..=OBJECTS_MAX as u64, "255 is usual")?;
        at_least("outgoing-bytes-max", self.outgoing_bytes_max, 1, "with 0 nothing can be sent")?;
        at_least("object-bytes-max", self.object_bytes_max, 1, "with 0 nothing can be sent or received")?;
        at_least("incoming-bytes-max", self.incoming_bytes_max, 1, "with 0 nothing can be received")?;
        at_least("unaccepted-bytes-max", self.unaccepted_bytes_max, 1, "with 0 nothing can be received")?;
        at_least("senders-max", self.senders_max as u64, 1, "with 0 nothing can be received")?;
        at_least("open-max", self.open_max as u64, 1, "with 0 nothing can be sent")?;
        number("overhead-bytes", self.overhead_bytes, 0..=65_535, "28 for IPv4, 48 for IPv6")
    }

    fn check_waits(&self) -> Result<(), Fault> {
        let some = TIME_MIN..=TIME_MAX;
        time("grtt", self.grtt, quantities::TIME_MIN..=self.grtt_max, "500 ms is usual")?;
        time("grtt-max", self.grtt_max, TIME_MIN..=quantities::TIME_MAX, "15 s is usual")?;
        time("probe-min", self.probe_min, some.clone(), "1 s is usual")?;
        time("probe-max", self.probe_max, self.probe_min..=TIME_MAX, "must not be less than `probe-min`")?;
        time("watermark-interval", self.watermark_interval, some.clone(), "1 s is usual")?;
        time("inactivity-limit", self.inactivity_limit, some.clone(), "10 min is usual")?;
        time("silence-limit", self.silence_limit, some, "60 s is usual")?;
        time("retry-min", self.retry_min, TIME_MIN..=TIME_MAX, "1 s is usual")?;
        time("retry-max", self.retry_max, self.retry_min..=TIME_MAX, "must not be less than `retry-min`")
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        const RESERVED: &str = "0 stands for no node, and 4294967295 for any";
        let is_node = |node: u32| node != 0 && node != u32::MAX;
        rule(is_node(self.own_node_id()), "norm-node-id", "must be a node identifier", RESERVED)?;
        let all = self.acknowledging.iter().all(|node| is_node(*node) && Some(*node) != self.norm_node_id);
        rule(all, "acknowledging", "must be identifiers of other nodes", RESERVED)?;
        self.check_sizes()?;
        self.check_waits()
    }
}

/// Counters of a [`Session`](super::Session) since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Number of times that the endpoint was opened.
    pub joined: u64,
    /// Number of times that the endpoint failed or the peer's port was unreachable.
    pub failed: u64,
    /// Number of times that receivers were silent for too long.
    pub silent: u64,
    /// Objects that were acknowledged, or sent to a group without acknowledgements.
    pub objects_sent: u64,
    /// Objects to send that failed.
    pub objects_failed: u64,
    /// Objects received and accepted completely.
    pub objects_received: u64,
    /// Received objects that the user refused.
    pub objects_refused: u64,
    /// Received objects that ended before they were complete.
    pub objects_lost: u64,
    /// Objects not received because they are too long, or because of their format.
    pub objects_ignored: u64,
    /// Source symbols sent for the first time.
    pub symbols_sent: u64,
    /// Parity symbols sent without a request.
    pub parity_sent: u64,
    /// Symbols sent on request, parity symbols and explicit ones.
    pub repairs_sent: u64,
    /// Symbols sent on request that were sent before.
    pub explicit_repairs_sent: u64,
    /// Bytes of objects sent for the first time.
    pub payload_sent: u64,
    /// Bytes of all messages sent.
    pub bytes_sent: u64,
    /// Symbols received that were of use.
    pub symbols_received: u64,
    /// Symbols received that were not needed.
    pub duplicates: u64,
    /// Source symbols computed from parity symbols.
    pub symbols_restored: u64,
    /// Bytes of objects received.
    pub payload_received: u64,
    /// Symbols dropped for want of memory, or while the user had too much to accept.
    pub dropped: u64,
    /// NACKs sent.
    pub nacks_sent: u64,
    /// NACKs that were not sent because others requested the same.
    pub nacks_suppressed: u64,
    /// NACKs received.
    pub nacks_received: u64,
    /// Requests for blocks that were ignored, because they ask for symbols that wait or have just left.
    pub nacks_ignored: u64,
    /// Acknowledgements sent.
    pub acks_sent: u64,
    /// Acknowledgements received.
    pub acks_received: u64,
    /// FLUSH commands sent.
    pub flushes_sent: u64,
    /// Blocks of streams to send that nobody had acknowledged and that were given up for later ones.
    pub blocks_released: u64,
    /// Gaps in received streams.
    pub gaps: u64,
    /// SQUELCH commands sent.
    pub squelches_sent: u64,
    /// Probes sent.
    pub probes_sent: u64,
    /// Feedback of receivers for congestion control that was received.
    pub cc_feedback_received: u64,
    /// Number of times that a sender had restarted.
    pub restarts: u64,
    /// Senders that were forgotten because others had to have room.
    pub displaced: u64,
    /// Messages that could not be decoded or broke a rule.
    pub violations: u64,
}
