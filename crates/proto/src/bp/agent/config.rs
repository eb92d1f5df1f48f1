//! Configuration of a bundle protocol agent.

use crate::bp::{Accept, CrcType, Emit, PeerRules};
use crate::service::{BundleVersion, LinkId, Priority};
use crate::setting::{Fault, Settings, at_least, number, wait, wait_from};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// Configuration of an [`Agent`](super::Agent).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// Node ID: `dtn://name/` or `ipn:N.0` (RFC 9171 4.2.5.2). The default is a placeholder: `dtn://node/`.
    pub node: String,
    /// Limits on stored and buffered data.
    pub limits: Limits,
    /// CRC type of primary blocks made by this node. Default CRC-32C. RFC 9171 4.3.1 permits none only if a
    /// block integrity block protects the primary block, so `none` acts as CRC-16.
    pub primary_crc: CrcType,
    /// CRC type of payload and extension blocks made by this node (RFC 9171 4.3.2). Default CRC-32C.
    pub block_crc: CrcType,
    /// Adds a previous node block to forwarded bundles (RFC 9171 4.4.1). Default yes.
    pub previous_node: bool,
    /// Sends a bundle directly to the node of its destination when a link leads there, without a route.
    /// Default yes.
    pub direct_neighbours: bool,
    /// After a broken transfer, sends only the part that the peer has not acknowledged (RFC 9171 5.8). A
    /// prefix received from a peer is kept as a fragment in any case, because the peer may rely on it.
    /// Default yes.
    pub reactive_fragmentation: bool,
    /// Number of relays behind a link that forward a fragment while they receive the next one. A longer
    /// bundle leaves as fragments (RFC 9171 5.8) of the length for which their headers take as much time as
    /// the relays wait for the first. Zero: bundles leave whole. Default 0.
    pub relays: u32,
    /// Mean number of packets that a link with relays behind it loses in a round trip. Each makes a relay wait
    /// for the rest of a fragment, so fragments are shorter by the square root of one more than this number.
    /// Default 0.
    pub relay_losses: u32,
    /// Maximum number of payload pieces per link that are read before the link has room for them. Once such
    /// pieces of all links amount to `limits.buffer-bytes-max`, no more are read than the links have room
    /// for. Default 2.
    pub read_ahead_pieces: usize,
    /// Maximum length of a read of a payload from the storage, bytes; pieces passed to links have about the same length, and for a
    /// link with less room than this it is less, but at least 65,536. Default 65,536; in a node, 262,144.
    pub piece_bytes_max: usize,
    /// Maximum number of unfinished transfers per link. On a long link with small bundles, this number
    /// multiplied by the length of a bundle is the data carried per round trip. Default 1,024.
    pub pipeline_transfers_max: usize,
    /// Eviction policy for a full store. Default: the new bundle is refused.
    pub evict: EvictionPolicy,
    /// Status reports. Default: none (RFC 9171 5.1 disables them by default).
    pub reports: ReportConfig,
    /// Initial wait before a bundle that a peer refused for lack of resources is retried; it doubles with
    /// each refusal. Default 2 s.
    pub backoff_min: Duration,
    /// Maximum wait before such a bundle is retried. Default 5 min.
    pub backoff_max: Duration,
    /// Interval at which a delivery is indicated again until the application accepts it; zero: only on
    /// registration and after a restart. Default zero.
    pub delivery_repeat: Duration,
    /// Maximum time for which a bundle from a neighbour is kept, whatever its lifetime (RFC 9171 4.3.1);
    /// zero: unlimited. Default 60 days.
    pub lifetime_max: Duration,
    /// Maximum difference between clocks (RFC 9171 5.5). A bundle created later than that in the future is
    /// counted, and its lifetime begins at its arrival. Default 1 h.
    pub clock_skew_max: Duration,
    /// Routing.
    pub routing: RoutingConfig,
    /// Use of version 6 for new bundles (RFC 5050).
    pub version6: Version6Config,
    /// Acceptance of custody, and custody timers (RFC 5050 5.10).
    pub custody: CustodyConfig,
    /// Settings of single links.
    pub links: Vec<LinkConfig>,
    /// Settings of single peers, on any link.
    pub peers: Vec<PeerRules>,
}

/// Maximum number of fragments into which a bundle is divided for relays: several such bundles fit into the share of
/// a source in the store of a neighbour.
const RELAY_FRAGMENTS_MAX: usize = 4096;

impl Config {
    /// Maximum number of fragments of a bundle for relays.
    pub(super) fn fragments_for_relays(&self) -> u64 {
        self.limits.fragments_max.min(RELAY_FRAGMENTS_MAX) as u64
    }
}

impl Default for Config {
    fn default() -> Self {
        Config {
            node: "dtn://node/".into(),
            limits: Limits::default(),
            primary_crc: CrcType::Crc32c,
            block_crc: CrcType::Crc32c,
            previous_node: true,
            direct_neighbours: true,
            reactive_fragmentation: true,
            relays: 0,
            relay_losses: 0,
            read_ahead_pieces: 2,
            piece_bytes_max: 65_536,
            pipeline_transfers_max: 1024,
            evict: EvictionPolicy::None,
            reports: ReportConfig::default(),
            backoff_min: Duration::from_secs(2),
            backoff_max: Duration::from_secs(300),
            delivery_repeat: Duration::ZERO,
            lifetime_max: Duration::from_secs(60 * 86_400),
            clock_skew_max: Duration::from_secs(3600),
            routing: RoutingConfig::default(),
            version6: Version6Config::default(),
            custody: CustodyConfig::default(),
            links: Vec::new(),
            peers: Vec::new(),
        }
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        self.limits.check().map_err(|fault| fault.within("limits"))?;
        at_least(
            "read-ahead-pieces",
            self.read_ahead_pieces,
            1,
            "2 keeps disk and link busy at the same time",
        )?;
        number("piece-bytes-max", self.piece_bytes_max, 1..=1 << 26, "65536 is usual")?;
        at_least("pipeline-transfers-max", self.pipeline_transfers_max, 1, "with 0 nothing can be sent")?;
        wait("backoff-min", self.backoff_min, "2 s is usual; shorter delays only repeat refused transfers")?;
        wait_from("backoff-max", self.backoff_max, self.backoff_min, "must not be less than `backoff-min`")?;
        if !self.delivery_repeat.is_zero() {
            wait("delivery-repeat", self.delivery_repeat, "zero: only on registration and after a restart")?;
        }
        wait("reports.lifetime", self.reports.lifetime, "with 0, reports expire at once")?;
        self.routing.check().map_err(|fault| fault.within("routing"))?;
        self.custody.check().map_err(|fault| fault.within("custody"))
    }
}

impl Settings for Limits {
    fn check(&self) -> Result<(), Fault> {
        const BUNDLES: &str = "with less, no bundle can be stored";
        at_least("bundles-max", self.bundles_max, 1, BUNDLES)?;
        at_least("store-bytes-max", self.store_bytes_max, 1024, BUNDLES)?;
        number(
            "own-share-percent",
            self.own_share_percent,
            0..=99,
            "10 is usual; the rest is for bundles from neighbours",
        )?;
        number(
            "neighbour-share-percent",
            self.neighbour_share_percent,
            1..=100,
            "50 is usual; 100 for no quota",
        )?;
        number("source-share-percent", self.source_share_percent, 1..=100, "75 is usual; 100 for no quota")?;
        at_least("bundle-bytes-max", self.bundle_bytes_max, 64, BUNDLES)?;
        number(
            "head-bytes-max",
            self.head_bytes_max,
            128..=1 << 30,
            "the header of a bundle usually has 60 to 200 bytes",
        )?;
        at_least(
            "heads-bytes-max",
            self.heads_bytes_max,
            65_536,
            "with less, bundles with long names are refused",
        )?;
        at_least("buffer-bytes-max", self.buffer_bytes_max, 1, "with 0, applications cannot send")?;
        at_least("incoming-max", self.incoming_max, 1, "with 0, no bundle can be received")?;
        at_least("links-max", self.links_max, 1, "with 0 there can be no link")?;
        at_least(
            "fragments-max",
            self.fragments_max,
            2,
            "with less than 2, no fragmented bundle can be reassembled",
        )?;
        at_least("tombstones-max", self.tombstones_max, 1, "with 0, bundles are delivered repeatedly")?;
        at_least("admin-bytes-max", self.admin_bytes_max, 64, "with less, status reports cannot be read")?;
        at_least("reads-max", self.reads_max, 1, "with 0, applications cannot read deliveries")
    }
}

impl Settings for RoutingConfig {
    fn check(&self) -> Result<(), Fault> {
        wait_from("failover-after", self.failover_after, Duration::ZERO, "zero: use the next hop at once")?;
        number("copies", self.copies, 1..=127, "8 is usual; one copy waits for the destination itself")?;
        wait(
            "announce-hold-down",
            self.announce_hold_down,
            "5 s is usual; it bounds the load of announcements",
        )?;
        wait_from(
            "announce-every",
            self.announce_every,
            self.announce_hold_down,
            "must not be less than `announce-hold-down`",
        )?;
        wait_from(
            "forget-after",
            self.forget_after,
            self.announce_every,
            "must not be less than `announce-every`, or nodes are forgotten between their announcements",
        )?;
        number("nodes-max", self.nodes_max, 1..=4096, "256 is usual; each takes up to 4 kB of memory")
    }
}

impl Settings for CustodyConfig {
    fn check(&self) -> Result<(), Fault> {
        wait("timer-min", self.timer_min, "with 0, bundles are resent at once")?;
        wait_from("timer-max", self.timer_max, self.timer_min, "must not be less than `timer-min`")?;
        wait("signal-lifetime", self.signal_lifetime, "with 0, signals expire at once")
    }
}

/// Limits on the data that an agent keeps. Bundles above a limit are refused and counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Maximum number of bundles; each fragment counts as one. Default 100,000.
    pub bundles_max: usize,
    /// Maximum length of all bundle records, bytes. Default 1 TiB, which leaves the limit to the storage.
    pub store_bytes_max: u64,
    /// Share of these two limits and of `heads-bytes-max` that is reserved for bundles of applications at
    /// this node, percent. Default 10.
    pub own_share_percent: u32,
    /// Share of the space left by all others that the bundles of one neighbour may take, percent. Default 50.
    pub neighbour_share_percent: u32,
    /// Share of a neighbour's quota, less the usage of its other sources, that the bundles of one source may
    /// take, percent. Default 75.
    pub source_share_percent: u32,
    /// Maximum length of a bundle, bytes. Default 1 TiB.
    pub bundle_bytes_max: u64,
    /// Maximum length of a bundle before its payload, bytes. Default 16,384.
    pub head_bytes_max: usize,
    /// Memory for bundle headers beyond 256 bytes each, and 512 bytes for each payload that waits for an
    /// application, bytes. Long names take this memory; of long headers, the blocks that this node does not
    /// process stay on disk. Default 16 MiB.
    pub heads_bytes_max: u64,
    /// Memory for data that wait for the storage, bytes: pieces of sends, and pieces that arrive before the
    /// storage has been read. The same amount applies to data that were read for links without room. Default
    /// 1 MiB.
    pub buffer_bytes_max: u64,
    /// Maximum number of concurrent sends whose payload is incomplete. Default 1,024.
    pub sends_max: usize,
    /// Maximum number of concurrent incoming transfers, including complete transfers that are not yet
    /// durable. Default 16,384.
    pub incoming_max: usize,
    /// Space in the store that an arriving bundle reserves ahead of its received bytes, bytes. Default 1 MiB.
    pub place_ahead_bytes: u64,
    /// Maximum number of registered endpoints. Default 1,024.
    pub registrations_max: usize,
    /// Maximum number of routes. Default 4,096.
    pub routes_max: usize,
    /// Maximum number of links. Default 4,096.
    pub links_max: usize,
    /// Maximum number of contact windows per link. Default 4,096.
    pub contacts_max: usize,
    /// Maximum number of fragments of a payload in reassembly; further fragments are refused, a complete
    /// bundle is not. Default 65,536.
    pub fragments_max: usize,
    /// Maximum number of tombstones: delivered bundles that are remembered so that they are not delivered
    /// again. Default 100,000.
    pub tombstones_max: usize,
    /// Maximum length of an administrative record, bytes. Default 4,096.
    pub admin_bytes_max: u64,
    /// Maximum number of outstanding reads per delivery. Default 16.
    pub reads_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            bundles_max: 100_000,
            store_bytes_max: 1 << 40,
            own_share_percent: 10,
            neighbour_share_percent: 50,
            source_share_percent: 75,
            bundle_bytes_max: 1 << 40,
            head_bytes_max: 16_384,
            heads_bytes_max: 16 << 20,
            buffer_bytes_max: 1 << 20,
            sends_max: 1024,
            incoming_max: 16_384,
            place_ahead_bytes: 1 << 20,
            registrations_max: 1024,
            routes_max: 4096,
            links_max: 4096,
            contacts_max: 4096,
            fragments_max: 65_536,
            tombstones_max: 100_000,
            admin_bytes_max: 4096,
            reads_max: 16,
        }
    }
}

/// Use of version 6 for bundles made at this node. Received bundles are always forwarded in their own
/// version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Version6Config {
    /// Version of a bundle for which neither the application nor `destinations` sets one: 6 or 7. Default 7.
    pub default_version: BundleVersion,
    /// Endpoints for which bundles are made in version 6: endpoint IDs; a trailing `*` matches anything.
    /// Default none.
    pub destinations: Vec<String>,
    /// Omits the dictionary if all endpoints are `ipn` (RFC 6260). Default yes.
    pub compressed_headers: bool,
    /// Neighbours whose age blocks are in seconds instead of microseconds, as those of DTN2: node IDs; a
    /// trailing `*` matches anything. Applies to bundles received from them and sent to them. Default none.
    pub ages_in_seconds: Vec<String>,
}

impl Default for Version6Config {
    fn default() -> Self {
        Version6Config {
            default_version: BundleVersion::V7,
            destinations: Vec::new(),
            compressed_headers: true,
            ages_in_seconds: Vec::new(),
        }
    }
}

/// Custody transfer (version 6). This node always has custody of its own bundles that request it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CustodyConfig {
    /// Neighbours from which this node accepts custody: node IDs; a trailing `*` matches anything. Default
    /// none.
    pub accept_from: Vec<String>,
    /// Endpoints for whose bundles this node accepts custody from any neighbour; a trailing `*` matches
    /// anything. Default none.
    pub accept_for: Vec<String>,
    /// Initial wait for the custody signal of the next custodian before a bundle is resent; it doubles with
    /// each retry. Zero: measured, four times the transfer and the round-trip time of earlier signals.
    /// Default zero.
    pub timer: Duration,
    /// Minimum of the measured wait. Default 1 min.
    pub timer_min: Duration,
    /// Maximum wait after doubling. Default 6 h.
    pub timer_max: Duration,
    /// Lifetime of a custody signal. Default 1 day.
    pub signal_lifetime: Duration,
}

impl Default for CustodyConfig {
    fn default() -> Self {
        CustodyConfig {
            accept_from: Vec::new(),
            accept_for: Vec::new(),
            timer: Duration::ZERO,
            timer_min: Duration::from_secs(60),
            timer_max: Duration::from_secs(6 * 3600),
            signal_lifetime: Duration::from_secs(86_400),
        }
    }
}

/// Bundles to evict when there is no space for a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvictionPolicy {
    /// No bundles: the new bundle is refused.
    #[default]
    None,
    /// Bundles of lower priority that wait for a link: the lowest priority first, the oldest first within a
    /// priority; none if all of them together would not be enough. A send of an application whose bundle is
    /// evicted ends as failed. Bundles in custody, being sent or destined for an application at this node are
    /// kept.
    LowestPriority,
}

/// Routing. All routers follow the routes that are set for a destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RoutingConfig {
    /// Router. Default: static.
    pub router: RouterKind,
    /// Static: time to wait for a preferred hop that is down before the next one is used. Default zero.
    pub failover_after: Duration,
    /// Spray and wait: number of copies in the network of a bundle made at this node, 1 to 127. Default 8.
    pub copies: u32,
    /// DTLSR: interval of the announcements of this node while its links do not change. Default 1 h.
    pub announce_every: Duration,
    /// DTLSR: minimum interval of the announcements of this node, and of the bundles with announcements to a
    /// neighbour. Default 5 s.
    pub announce_hold_down: Duration,
    /// DTLSR: time after which an announcement, and a neighbour that is down, are forgotten. Default 1 day.
    pub forget_after: Duration,
    /// DTLSR: maximum number of other nodes whose announcements are kept. Default 256.
    pub nodes_max: usize,
}

impl Default for RoutingConfig {
    fn default() -> Self {
        RoutingConfig {
            router: RouterKind::Static,
            failover_after: Duration::ZERO,
            copies: 8,
            announce_every: Duration::from_secs(3600),
            announce_hold_down: Duration::from_secs(5),
            forget_after: Duration::from_secs(86_400),
            nodes_max: 256,
        }
    }
}

/// Router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouterKind {
    /// The available configured route of lowest cost, and direct neighbours.
    #[default]
    Static,
    /// The configured route that delivers a bundle first according to the contact plan; the bundle waits for
    /// it.
    ContactPlan,
    /// A copy to every node that is met.
    Epidemic,
    /// A number of copies, halved at each meeting; the last one waits for the destination.
    SprayAndWait,
    /// The path of least expected delay according to the links that all nodes announce, also over links that
    /// are down.
    Dtlsr,
}

impl RouterKind {
    /// Name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            RouterKind::Static => "static",
            RouterKind::ContactPlan => "contact-plan",
            RouterKind::Epidemic => "epidemic",
            RouterKind::SprayAndWait => "spray-and-wait",
            RouterKind::Dtlsr => "dtlsr",
        }
    }
}

/// Status reports that this node sends when a bundle requests them (RFC 9171 5.1, 6.1.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReportConfig {
    /// Reports reception. Default no.
    pub reception: bool,
    /// Reports acceptance of custody (version 6). Default no.
    pub custody: bool,
    /// Reports forwarding. Default no.
    pub forwarding: bool,
    /// Reports delivery: the application has accepted the bundle. Default no.
    pub delivery: bool,
    /// Reports deletion. Default no.
    pub deletion: bool,
    /// Maximum number of reports per minute about the bundles of one source over one neighbour; four times as
    /// many per neighbour, and sixteen times as many in total. The same limits apply separately to custody
    /// signals about refused bundles. Further reports are counted and not sent. Default 600.
    pub per_minute_max: u32,
    /// Lifetime of a report. Default 1 day.
    pub lifetime: Duration,
    /// Priority of reports. Default normal.
    pub priority: Priority,
}

impl Default for ReportConfig {
    fn default() -> Self {
        ReportConfig {
            reception: false,
            custody: false,
            forwarding: false,
            delivery: false,
            deletion: false,
            per_minute_max: 600,
            lifetime: Duration::from_secs(86_400),
            priority: Priority::Normal,
        }
    }
}

impl ReportConfig {
    /// All kinds of reports.
    pub fn all() -> Self {
        ReportConfig {
            reception: true,
            custody: true,
            forwarding: true,
            delivery: true,
            deletion: true,
            ..ReportConfig::default()
        }
    }
}

/// Settings of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkConfig {
    /// ID of the link.
    pub link: LinkId,
    /// Maximum length of a bundle on the link, bytes; longer ones are fragmented (RFC 9171 5.8). Zero: only
    /// the limit of the peer. Default zero.
    pub bundle_bytes_max: u64,
    /// Number of relays behind this link; `None`: [`Config::relays`]. Default none.
    pub relays: Option<u32>,
    /// Rate of the link, bit/s, used to fit bundles into the rest of a contact; zero if unknown, where only
    /// reactive fragmentation handles the end of a contact. Default zero.
    pub rate_bps: u64,
    /// Minimum payload of a fragment at the end of a contact, bytes. Default 1,024.
    pub fragment_bytes_min: u64,
    /// With contact windows: opens the link when a contact begins, and closes it in good order when the
    /// contact ends. Otherwise the link must come up and go down by itself. Default no.
    pub open_in_contacts: bool,
    /// Faults accepted from the peer. Default: none.
    pub accept: Vec<Accept>,
    /// Encoding of bundles for the peer. Default: as in RFC 9171.
    pub emit: Vec<Emit>,
    /// The link uses an amateur radio band, where encryption is not allowed: bundles with a block confidentiality
    /// block (RFC 9172 3.8), or with a confidentiality block of version 6 (RFC 6257 2.4, 2.5), never use it. Default:
    /// no.
    pub amateur: bool,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            link: LinkId(0),
            bundle_bytes_max: 0,
            relays: None,
            rate_bps: 0,
            fragment_bytes_min: 1024,
            open_in_contacts: false,
            accept: Vec::new(),
            emit: Vec::new(),
            amateur: false,
        }
    }
}

#[cfg(test)]
mod check_tests {
    use super::*;

    #[test]
    fn the_defaults_make_sense_and_what_breaks_an_agent_is_named() {
        assert_eq!(Config::default().check(), Ok(()));
        let limits = |change: fn(&mut Limits)| {
            let mut config = Config::default();
            change(&mut config.limits);
            config
        };
        let plain = Config::default;
        for (config, key) in [
            (limits(|limits| limits.bundles_max = 0), "limits.bundles-max"),
            (limits(|limits| limits.head_bytes_max = 20), "limits.head-bytes-max"),
            (limits(|limits| limits.buffer_bytes_max = 0), "limits.buffer-bytes-max"),
            (limits(|limits| limits.tombstones_max = 0), "limits.tombstones-max"),
            (limits(|limits| limits.fragments_max = 1), "limits.fragments-max"),
            (limits(|limits| limits.reads_max = 0), "limits.reads-max"),
            (Config { piece_bytes_max: 0, ..plain() }, "piece-bytes-max"),
            (Config { read_ahead_pieces: 0, ..plain() }, "read-ahead-pieces"),
            (Config { pipeline_transfers_max: 0, ..plain() }, "pipeline-transfers-max"),
            (Config { backoff_min: Duration::ZERO, ..plain() }, "backoff-min"),
            (Config { backoff_max: Duration::from_secs(1), ..plain() }, "backoff-max"),
            (
                Config { routing: RoutingConfig { copies: 0, ..RoutingConfig::default() }, ..plain() },
                "routing.copies",
            ),
        ] {
            assert_eq!(config.check().unwrap_err().key, key);
        }
    }
}
