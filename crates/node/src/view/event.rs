//! Events of a node, as recorded and delivered to clients.

use super::BundleIdentification;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Event with its number and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
// The name of the schema in `/openapi.json`, which clients are generated from.
#[schemars(rename = "Noted")]
pub struct EventRecord {
    /// Sequence number.
    pub sequence: u64,
    /// Time, seconds since the node started.
    pub uptime_s: f64,
    /// DTN time, milliseconds since 2000-01-01 UTC; null without a clock.
    pub dtn_ms: Option<u64>,
    /// Event.
    #[serde(flatten)]
    pub event: Event,
}

/// Kinds of events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A link came up.
    LinkUp {
        /// Name of the link.
        link: String,
        /// Node ID of the peer.
        peer: Option<String>,
    },
    /// A link went down.
    LinkDown {
        /// Name of the link.
        link: String,
        /// Node ID of the peer.
        peer: Option<String>,
        /// Reason, as an identifier.
        reason: String,
        /// Reason, as text.
        why: String,
    },
    /// A node that may be a neighbour has announced itself, or can be reached in another way.
    NeighbourFound {
        /// Node ID.
        node: String,
        /// Address or callsign.
        at: String,
        /// Format of the announcement: `sand`, `ipnd` or `aprs`.
        by: String,
        /// True if the key of the node has signed it.
        signed: bool,
    },
    /// Nothing was heard from a neighbour for too long.
    NeighbourLost {
        /// Node ID.
        node: String,
    },
    /// A bundle from an application was stored durably.
    BundleAccepted {
        /// Bundle.
        #[serde(flatten)]
        bundle: BundleIdentification,
    },
    /// A complete bundle was received from a peer.
    BundleReceived {
        /// Bundle.
        #[serde(flatten)]
        bundle: BundleIdentification,
        /// Name of the link.
        link: String,
    },
    /// The next hop has acknowledged a bundle in full.
    BundleForwarded {
        /// Bundle.
        #[serde(flatten)]
        bundle: BundleIdentification,
    },
    /// A complete bundle was offered to the registered application.
    BundleArrived {
        /// Bundle.
        #[serde(flatten)]
        bundle: BundleIdentification,
    },
    /// An application accepted a bundle.
    BundleDelivered {
        /// Bundle.
        #[serde(flatten)]
        bundle: BundleIdentification,
    },
    /// A bundle was deleted before it was delivered or forwarded.
    BundleDeleted {
        /// Bundle.
        #[serde(flatten)]
        bundle: BundleIdentification,
        /// Reason, as an identifier: `lifetime_expired`, `transmission_canceled`, `depleted_storage` ..
        reason: String,
    },
    /// The signature of a bundle proves nothing; at most one such event for a node and a reason in 10 s.
    SignatureFailed {
        /// ID of the bundle.
        id: String,
        /// Destination.
        destination: String,
        /// Node that signed; null without a readable signature.
        signer: Option<String>,
        /// Reason, as an identifier.
        reason: String,
        /// Reason, as text.
        why: String,
        /// True if the bundle was deleted, false if the rules let it pass.
        deleted: bool,
    },
    /// A bundle for this node was deleted because it cannot be decrypted, or is not encrypted although a rule requires it; at
    /// most one such event for a node and a reason in 10 s.
    DecryptionFailed {
        /// ID of the bundle.
        id: String,
        /// Destination.
        destination: String,
        /// Node that encrypted the bundle; null if that cannot be told.
        encrypted_by: Option<String>,
        /// Reason, as an identifier.
        reason: String,
        /// Reason, as text.
        why: String,
    },
    /// The public key of a node was used for the first time, and is now the only one that is accepted of it.
    KeyNoted {
        /// Node ID.
        node: String,
        /// Fingerprint of the key.
        fingerprint: String,
    },
    /// A transfer from a peer was refused, or a datagram is no packet of the protocol of the link.
    TransferRefused {
        /// Name of the link.
        link: String,
        /// Reason, as an identifier: `completed`, `no_resources`, `retransmit`, `not_acceptable`, `other_protocol`.
        reason: String,
        /// Node ID claimed by the peer.
        #[serde(default)]
        peer: Option<String>,
        /// Address of the peer.
        #[serde(default)]
        address: Option<String>,
        /// Violated rule, as text; null if the bundle is valid.
        #[serde(default)]
        what: Option<String>,
        /// Violated clause, such as `RFC 9171 4.3.1`.
        #[serde(default)]
        clause: Option<String>,
        /// Block of the violation, as text.
        #[serde(default)]
        block: Option<String>,
        /// Values of `accept` for this peer that would accept such bundles.
        #[serde(default)]
        accept: Vec<String>,
    },
    /// A bundle was refused for lack of space; at most one such event in 10 s.
    StoreFull {
        /// Bundles in the store.
        bundles: u64,
        /// Bytes in the store, as counted against the limit.
        stored_bytes: u64,
    },
    /// Damage was found in the store; the data were set aside.
    StoreDamaged {
        /// Damage, its place and its record, as text.
        what: String,
    },
    /// A status report arrived for a bundle sent by this node.
    Report {
        /// ID of the bundle.
        id: String,
        /// Reported status: `received`, `forwarded`, `delivered`, `deleted`.
        status: String,
        /// Reason code (RFC 9171 9.5).
        reason: u64,
        /// Reporting node.
        reporter: String,
        /// True if the report is trusted: received over a configured link, or from a neighbour that is known to this
        /// node or that such bundles are sent to. Otherwise no application is notified.
        #[serde(default)]
        believed: bool,
    },
    /// An incoming connection was refused because of its node ID.
    CallerRefused {
        /// Address of the peer.
        address: String,
        /// Claimed node ID.
        peer: Option<String>,
        /// Reason, as an identifier: `own_id`, `unknown`, `unproven`, `taken`.
        reason: String,
        /// Reason, as text.
        why: String,
    },
    /// An incoming connection was refused because of the limit.
    CallerTurnedAway {
        /// Address of the peer.
        address: String,
    },
    /// A TNC was connected.
    TncUp {
        /// Name of the TNC.
        tnc: String,
        /// Callsign of this station.
        callsign: String,
    },
    /// A TNC was lost or cannot be reached; the node keeps trying.
    TncDown {
        /// Name of the TNC.
        tnc: String,
        /// Reason, as text.
        why: String,
        /// Bundles and links that are kept, as text.
        kept: String,
        /// Hint.
        hint: String,
    },
    /// The wall clock jumped. Lifetimes follow elapsed time until the clock is back or the operator confirms it.
    ClockJumped {
        /// Size of the jump, seconds; negative if backwards.
        by_s: f64,
        /// Seconds by which the clock is ahead of the time used for lifetimes; zero: lifetimes follow the clock.
        ahead_s: f64,
    },
    /// The operator confirmed the wall clock; lifetimes follow it.
    ClockTrusted,
    /// The configuration was reloaded.
    ConfigurationRead {
        /// Settings that were changed.
        #[serde(default)]
        applied: Vec<String>,
        /// Changed settings that need a restart.
        #[serde(default)]
        needs_restart: Vec<String>,
    },
    /// Reloading the configuration failed; the previous one stays in force.
    ConfigurationRefused {
        /// Error, as text.
        what: String,
        /// Hint.
        hint: Option<String>,
    },
    /// Recording of bundle events started or stopped.
    BundlesWatched {
        /// True if recording started, false if it stopped because no client is connected.
        on: bool,
    },
    /// The client was too slow; events were lost.
    Missed {
        /// Number of lost events.
        count: u64,
    },
}
