//! What an operator may set of a bundle agent.

use crate::bp::{Accept, CrcType, Emit, PeerRules};
use crate::service::{BundleVersion, LinkId, Priority};
use crate::setting::{Fault, TIME_MAX, TIME_MIN, at_least, number, time};
use core::time::Duration;
use serde::{Deserialize, Serialize};

/// The configuration of an [`Agent`](super::Agent).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The node id: `dtn://name/` or `ipn:N.0`. No default that means anything: `dtn://node/`. RFC 9171 4.2.5.2.
    pub node: String,
    /// Limits on everything that is kept.
    pub limits: Limits,
    /// The checksum of primary blocks that this node makes. Default CRC-32C. RFC 9171 4.3.1 allows none only beside a
    /// security block, so `none` acts as CRC-16.
    pub primary_crc: CrcType,
    /// The checksum of payload and extension blocks that this node makes. Default CRC-32C. RFC 9171 4.3.2.
    pub block_crc: CrcType,
    /// Put a Previous Node block into forwarded bundles. Default yes. RFC 9171 4.4.1.
    pub previous_node: bool,
    /// Send a bundle straight to the node it is for when a link leads there, without a route. Default yes.
    pub direct_neighbours: bool,
    /// When a transfer breaks: send only what the peer has not acknowledged. What arrived from a peer is kept as a
    /// fragment whatever this says, for the peer may count on it. Default yes. RFC 9171 5.8.
    pub reactive_fragmentation: bool,
    /// The most pieces of a payload that are read before there is room for them, per link; where such pieces of all links have
    /// `limits.buffer-bytes-max`, no more are read than there is room for. Default 2.
    pub read_ahead_pieces: usize,
    /// How much of a payload is asked of the storage at a time, bytes; pieces handed to links are about as long. Default
    /// 65,536.
    pub piece_bytes_max: usize,
    /// The most transfers of a link that are not over: on a long line with small bundles this times a bundle's length is
    /// what a round trip carries. Default 1,024.
    pub pipeline_transfers_max: usize,
    /// What happens when the store is full. Default: the newcomer is refused.
    pub evict: EvictionPolicy,
    /// Status reports. Default: none (RFC 9171 5.1 wants them disabled by default).
    pub reports: ReportConfig,
    /// The first wait before a bundle that a peer had no resources for is tried again; it doubles. Default 2 s.
    pub backoff_min: Duration,
    /// The longest such wait. Default 5 min.
    pub backoff_max: Duration,
    /// How often a delivery is said again while it is not taken; zero: only on registration and after a restart.
    /// Default zero.
    pub delivery_repeat: Duration,
    /// No bundle that a neighbour brings stays longer than this whatever its own lifetime says; zero: no override. Default
    /// 60 days. RFC 9171 4.3.1.
    pub lifetime_max: Duration,
    /// By how much clocks may differ. A bundle made later than that in the future lives as long as its lifetime from its
    /// arrival, and is counted. Default 1 hour. RFC 9171 5.5.
    pub clock_skew_max: Duration,
    /// How bundles find their way.
    pub routing: RoutingConfig,
    /// When and how bundles are made in version 6. RFC 5050.
    pub version6: Version6Config,
    /// Whose bundles this node takes custody of, and how long it waits for others to. RFC 5050 5.10.
    pub custody: CustodyConfig,
    /// What is special about single links.
    pub links: Vec<LinkConfig>,
    /// What is special about single peers, over whatever link.
    pub peers: Vec<PeerRules>,
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

impl Config {
    /// Whether the numbers make sense, each and together.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), Fault> {
        self.limits.check().map_err(|fault| fault.within("limits"))?;
        at_least("read-ahead-pieces", self.read_ahead_pieces, 1, "2 keep a disk and a line busy at once")?;
        number(
            "piece-bytes-max",
            self.piece_bytes_max,
            1..=1 << 26,
            "65536 is usual; this much is read at a time",
        )?;
        at_least("pipeline-transfers-max", self.pipeline_transfers_max, 1, "nothing could ever be sent")?;
        time(
            "backoff-min",
            self.backoff_min,
            TIME_MIN..=TIME_MAX,
            "2 s is usual: shorter ones only ask again in vain",
        )?;
        time(
            "backoff-max",
            self.backoff_max,
            self.backoff_min..=TIME_MAX,
            "it bounds `backoff-min` from above",
        )?;
        if !self.delivery_repeat.is_zero() {
            time("delivery-repeat", self.delivery_repeat, TIME_MIN..=TIME_MAX, "zero: only on registration")?;
        }
        time(
            "reports.lifetime",
            self.reports.lifetime,
            TIME_MIN..=TIME_MAX,
            "a report would be over at once",
        )?;
        self.routing.check().map_err(|fault| fault.within("routing"))?;
        self.custody.check().map_err(|fault| fault.within("custody"))
    }
}

impl Limits {
    fn check(&self) -> Result<(), Fault> {
        const BUNDLES: &str = "no bundle could ever be held";
        at_least("bundles-max", self.bundles_max, 1, BUNDLES)?;
        at_least("store-bytes-max", self.store_bytes_max, 1024, BUNDLES)?;
        number(
            "own-share-percent",
            self.own_share_percent,
            0..=99,
            "10 is usual; the rest is for what neighbours bring",
        )?;
        number(
            "neighbour-share-percent",
            self.neighbour_share_percent,
            1..=100,
            "50 is usual; 100: no quota",
        )?;
        number("source-share-percent", self.source_share_percent, 1..=100, "75 is usual; 100: no quota")?;
        at_least("bundle-bytes-max", self.bundle_bytes_max, 64, BUNDLES)?;
        number(
            "head-bytes-max",
            self.head_bytes_max,
            128..=1 << 30,
            "a bundle's head has some 60 to 200 bytes",
        )?;
        at_least("heads-bytes-max", self.heads_bytes_max, 65_536, "a long name could not be kept")?;
        at_least("buffer-bytes-max", self.buffer_bytes_max, 1, "no application could ever send a byte")?;
        at_least("incoming-max", self.incoming_max, 1, "no bundle could ever come")?;
        at_least("links-max", self.links_max, 1, "there could be no link")?;
        at_least(
            "fragments-max",
            self.fragments_max,
            2,
            "no bundle that comes in parts could ever be put together",
        )?;
        at_least("tombstones-max", self.tombstones_max, 1, "what was taken would be delivered again")?;
        at_least("admin-bytes-max", self.admin_bytes_max, 64, "no status report could ever be read")?;
        at_least("reads-max", self.reads_max, 1, "no application could ever read a delivery")
    }
}

impl RoutingConfig {
    /// Whether the numbers make sense.
    ///
    /// # Errors
    /// The first that does not.
    pub fn check(&self) -> Result<(), Fault> {
        time("failover-after", self.failover_after, Duration::ZERO..=TIME_MAX, "zero: at once")?;
        number("copies", self.copies, 1..=127, "8 is usual; one copy waits for the destination itself")
    }
}

impl CustodyConfig {
    fn check(&self) -> Result<(), Fault> {
        time("timer-min", self.timer_min, TIME_MIN..=TIME_MAX, "a bundle would be sent again at once")?;
        time("timer-max", self.timer_max, self.timer_min..=TIME_MAX, "it bounds `timer-min` from above")?;
        time("signal-lifetime", self.signal_lifetime, TIME_MIN..=TIME_MAX, "a signal would be over at once")
    }
}

/// How much an agent keeps. What is over a limit is refused upstream and counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Limits {
    /// Bundles, fragments counted singly. Default 100,000.
    pub bundles_max: usize,
    /// Bytes of all records of bundles. Default 1 TiB: the storage's own limit comes first.
    pub store_bytes_max: u64,
    /// Share of these two and of `heads-bytes-max` kept for bundles of applications here, percent. Default 10.
    pub own_share_percent: u32,
    /// Share of the place left by all others that one neighbour's bundles may take, percent. Default 50.
    pub neighbour_share_percent: u32,
    /// Share of that, less the neighbour's other sources, that the bundles of one source may take, percent. Default 75.
    pub source_share_percent: u32,
    /// Bytes of one bundle. Default 1 TiB.
    pub bundle_bytes_max: u64,
    /// Bytes of one bundle before its payload. Default 16,384.
    pub head_bytes_max: usize,
    /// Bytes of memory for what is kept of all heads beyond 256 bytes each, and 512 for each payload that waits for an
    /// application: long names; blocks of long heads that nobody here reads stay on the disk. Default 16 MiB.
    pub heads_bytes_max: u64,
    /// Bytes of applications' sends, and of what arrives before the storage has been read, that wait in memory for
    /// the storage; and as many of what was read for links that have no room for it. Default 1 MiB.
    pub buffer_bytes_max: u64,
    /// Sends whose payload is not all here, at a time. Default 1,024.
    pub sends_max: usize,
    /// Incoming transfers at a time, those included that came and are not durable. Default 16,384.
    pub incoming_max: usize,
    /// The place in the store that an arriving bundle has ahead of its bytes, bytes. Default 1 MiB.
    pub place_ahead_bytes: u64,
    /// Endpoints registered. Default 1,024.
    pub registrations_max: usize,
    /// Routes. Default 4,096.
    pub routes_max: usize,
    /// Links. Default 4,096.
    pub links_max: usize,
    /// Contact windows of one link. Default 4,096.
    pub contacts_max: usize,
    /// Fragments of one payload in reassembly; more of them are refused, a whole is not. Default 65,536.
    pub fragments_max: usize,
    /// Bundles remembered as taken, so that they are not delivered again. Default 100,000.
    pub tombstones_max: usize,
    /// Bytes of an administrative record. Default 4,096.
    pub admin_bytes_max: u64,
    /// Reads of one delivery that wait. Default 16.
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

/// When and how bundles are made in version 6 of the protocol. What arrives is forwarded in its own version whatever
/// this says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Version6Config {
    /// The version of bundles for which neither the sender nor `destinations` says one: 6 or 7. Default 7.
    pub default_version: BundleVersion,
    /// Endpoints that are sent version 6: endpoint ids, a trailing `*` matches any rest. Default none.
    pub destinations: Vec<String>,
    /// Leave the dictionary out where all endpoints are `ipn`. Default yes. RFC 6260.
    pub compressed_headers: bool,
    /// Neighbours whose age blocks are in seconds where others have microseconds, as DTN2's are: node ids as they call
    /// themselves, a trailing `*` matches any rest. What comes from them is read so, and what goes to them is written
    /// so. Default none.
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

/// Custody transfer, version 6 only. A node's own bundles that ask for custody are always in its own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CustodyConfig {
    /// Take custody of what these neighbours hand over: node ids as they call themselves, a trailing `*` matches any
    /// rest. Default none.
    pub accept_from: Vec<String>,
    /// Take custody of bundles for these endpoints, whoever hands them over; a trailing `*` matches any rest. Default none.
    pub accept_for: Vec<String>,
    /// How long to wait for the next custodian's signal before a bundle is sent again, the first time; it doubles. Zero:
    /// what was measured, four times the transfer and the round trip of earlier signals. Default zero.
    pub timer: Duration,
    /// The shortest time where it is measured. Default 1 min.
    pub timer_min: Duration,
    /// The longest time after doubling. Default 6 h.
    pub timer_max: Duration,
    /// How long a custody signal is worth delivering. Default 1 day.
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

/// What goes when there is no space for what comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvictionPolicy {
    /// Nothing: the newcomer is refused.
    #[default]
    None,
    /// Bundles that wait for a link and are less urgent than the newcomer, the least urgent first and of those the oldest;
    /// none, where they would not be enough. A send that an application waits for ends as failed. What is in custody, on
    /// its way, or here for an application stays.
    LowestPriority,
}

/// How bundles find their way. Where a route is set for a destination, it is kept to by every router.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RoutingConfig {
    /// The router. Default: static.
    pub router: RouterKind,
    /// Static: how long a better hop that has gone is waited for before the next one is taken. Default zero.
    pub failover_after: Duration,
    /// Spray and wait: how many copies of a bundle made here there may be in the network, 1 to 127. Default 8.
    pub copies: u32,
}

impl Default for RoutingConfig {
    fn default() -> Self {
        RoutingConfig { router: RouterKind::Static, failover_after: Duration::ZERO, copies: 8 }
    }
}

/// A router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RouterKind {
    /// The operator's routes, the cheapest that is there; and neighbours themselves.
    #[default]
    Static,
    /// Of the operator's routes the one over which a bundle arrives first, by the plan of contacts; it waits for that.
    ContactPlan,
    /// A copy to every node that is met.
    Epidemic,
    /// A number of copies, halved at each meeting; the last one waits for the destination.
    SprayAndWait,
}

impl RouterKind {
    /// Its name, as configurations have it.
    pub const fn name(self) -> &'static str {
        match self {
            RouterKind::Static => "static",
            RouterKind::ContactPlan => "contact-plan",
            RouterKind::Epidemic => "epidemic",
            RouterKind::SprayAndWait => "spray-and-wait",
        }
    }
}

/// Which status reports this node sends when a bundle asks for them (RFC 9171 5.1, 6.1.1).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ReportConfig {
    /// On reception. Default no.
    pub reception: bool,
    /// On the acceptance of custody (version 6). Default no.
    pub custody: bool,
    /// On forwarding. Default no.
    pub forwarding: bool,
    /// On delivery: the application took it. Default no.
    pub delivery: bool,
    /// On deletion. Default no.
    pub deletion: bool,
    /// The most reports in a minute about the bundles of one source over one neighbour; four times as many for a neighbour, and
    /// sixteen times as many in all. The same again for custody signals about what is refused. More are counted and not sent.
    /// Default 600.
    pub per_minute_max: u32,
    /// How long a report is worth delivering. Default 1 day.
    pub lifetime: Duration,
    /// How urgent reports are. Default normal.
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
    /// All four kinds.
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

/// What is special about a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LinkConfig {
    /// Which link.
    pub link: LinkId,
    /// Bundles longer than this are fragmented, bytes; zero: only what the peer itself says. Default zero. RFC 9171 5.8.
    pub bundle_bytes_max: u64,
    /// The link's rate in bit/s, for fitting bundles into what is left of a contact; zero: not known, and a contact's
    /// end is met by reactive fragmentation alone. Default zero.
    pub rate_bps: u64,
    /// The least payload that is worth a fragment of its own at the end of a contact, bytes. Default 1,024.
    pub fragment_bytes_min: u64,
    /// Where there are contact windows: open the link when one begins, and close it in good order when it ends. Otherwise
    /// the link itself has to come and go. Default no.
    pub open_in_contacts: bool,
    /// What is accepted from the peer although it is wrong. Default: nothing.
    pub accept: Vec<Accept>,
    /// How bundles are made that go to the peer. Default: as RFC 9171 has them.
    pub emit: Vec<Emit>,
}

impl Default for LinkConfig {
    fn default() -> Self {
        LinkConfig {
            link: LinkId(0),
            bundle_bytes_max: 0,
            rate_bps: 0,
            fragment_bytes_min: 1024,
            open_in_contacts: false,
            accept: Vec::new(),
            emit: Vec::new(),
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
