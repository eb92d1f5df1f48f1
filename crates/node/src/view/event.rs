//! Events, as they are noted and told.

use super::BundleName;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EventRecord {
    /// Its number, one more than that of the event before.
    pub sequence: u64,
    /// When: seconds since the node's start.
    pub uptime_s: f64,
    /// When: DTN time, milliseconds since 2000-01-01 UTC; none: there is no clock.
    pub dtn_ms: Option<u64>,
    /// The event itself.
    #[serde(flatten)]
    pub event: Event,
}

/// The kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A link came up.
    LinkUp {
        /// Which.
        link: String,
        /// The peer's node id.
        peer: Option<String>,
    },
    /// A link went down.
    LinkDown {
        /// Which.
        link: String,
        /// The peer's node id.
        peer: Option<String>,
        /// Why, in one word.
        reason: String,
        /// Why, for a person.
        why: String,
    },
    /// An application sent a bundle, and it is durable.
    BundleAccepted {
        /// Which.
        #[serde(flatten)]
        bundle: BundleName,
    },
    /// A bundle came from a peer, whole.
    BundleReceived {
        /// Which.
        #[serde(flatten)]
        bundle: BundleName,
        /// Over which link.
        link: String,
    },
    /// The next hop has acknowledged all of a bundle.
    BundleForwarded {
        /// Which.
        #[serde(flatten)]
        bundle: BundleName,
    },
    /// A bundle is here, whole, and the application that receives for its endpoint is told.
    BundleArrived {
        /// Which.
        #[serde(flatten)]
        bundle: BundleName,
    },
    /// The application took a bundle.
    BundleDelivered {
        /// Which.
        #[serde(flatten)]
        bundle: BundleName,
    },
    /// A bundle was deleted before it was delivered or forwarded.
    BundleDeleted {
        /// Which.
        #[serde(flatten)]
        bundle: BundleName,
        /// Why, in one word: `lifetime_expired`, `transmission_canceled`, `depleted_storage` ..
        reason: String,
    },
    /// A transfer was refused to a peer.
    TransferRefused {
        /// Over which link.
        link: String,
        /// Why, in one word: `completed`, `no_resources`, `retransmit`, `not_acceptable`.
        reason: String,
        /// The peer's node id, as it says.
        #[serde(default)]
        peer: Option<String>,
        /// Where the peer is.
        #[serde(default)]
        address: Option<String>,
        /// The rule that the bundle breaks, for a person; none: it breaks none.
        #[serde(default)]
        what: Option<String>,
        /// The clause, such as `RFC 9171 4.3.1`.
        #[serde(default)]
        clause: Option<String>,
        /// The block, for a person.
        #[serde(default)]
        block: Option<String>,
        /// The values of `accept` for this peer with which such bundles are taken.
        #[serde(default)]
        accept: Vec<String>,
    },
    /// Something was refused for want of space; at most one such event in 10 s.
    StoreFull {
        /// Bundles in the store.
        bundles: u64,
        /// Bytes in the store, as they count against the limit.
        stored_bytes: u64,
    },
    /// Something in the store is damaged, and set aside.
    StoreDamaged {
        /// The damage, its place and its record, for a person.
        what: String,
    },
    /// A status report came about a bundle that was sent here.
    Report {
        /// The bundle's name for commands.
        id: String,
        /// The status that is reported: `received`, `forwarded`, `delivered`, `deleted`.
        status: String,
        /// The reason's number (RFC 9171 9.5).
        reason: u64,
        /// The node that says so.
        reporter: String,
        /// It came over a link of the configuration, or from a neighbour that this node knows or sends such bundles to; else no
        /// application is told.
        #[serde(default)]
        believed: bool,
    },
    /// A caller was not let in, for the node id that it says.
    CallerRefused {
        /// Where it is.
        address: String,
        /// The node id that it says.
        peer: Option<String>,
        /// Why, in one word: `own_id`, `unknown`, `unproven`, `taken`.
        reason: String,
        /// Why, for a person.
        why: String,
    },
    /// A caller was turned away, because there were too many.
    CallerTurnedAway {
        /// Where it is.
        address: String,
    },
    /// The line of a TNC stands.
    TncUp {
        /// Which.
        tnc: String,
        /// The callsign of this station on it.
        callsign: String,
    },
    /// The line of a TNC is lost, or cannot be had. It is tried again.
    TncDown {
        /// Which.
        tnc: String,
        /// Why, for a person.
        why: String,
        /// The bundles and links that are kept, for a person.
        kept: String,
        /// Advice on what may help.
        hint: String,
    },
    /// The wall clock says something else than was to be expected. Lifetimes go by the time that has passed, until it is back
    /// or the operator says that it is right.
    ClockJumped {
        /// By how much, seconds; less than zero: it went back.
        by_s: f64,
        /// By how much it is ahead now of what lifetimes go by, seconds; zero: they go by it.
        ahead_s: f64,
    },
    /// The operator says that the wall clock is right: lifetimes go by it.
    ClockTrusted,
    /// The configuration was read again.
    ConfigurationRead {
        /// Settings that have changed and hold from the node's next start on.
        #[serde(default)]
        needs_restart: Vec<String>,
    },
    /// The configuration was to be read again, and makes no sense: the one before stays.
    ConfigurationRefused {
        /// The fault in it, for a person.
        what: String,
        /// Advice on what may help.
        hint: Option<String>,
    },
    /// Events of bundles are noted from here on, or no longer: nobody watches.
    BundlesWatched {
        /// From here on.
        on: bool,
    },
    /// This reader was too slow: so many events are gone.
    Missed {
        /// How many.
        count: u64,
    },
}
