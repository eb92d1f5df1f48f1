//! Data that operators see of a node: the responses of the control socket and of the HTTP interface, each defined once.
//!
//! Names are in snake_case and end with their unit, if any. Counters are a map from names to numbers, so a new counter
//! appears everywhere at once.

use longwire_proto::observe;
use longwire_proto::service::{CreationTimestamp, Priority};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod discovery;
mod event;
mod learned;
mod mail;
mod measurement;
mod radio;
mod security;
pub use discovery::{Discovery, Neighbour};
pub use event::{Event, EventRecord};
pub use learned::{LearnedLink, LearnedRoute};
pub use mail::{Estimate, Mail, Reachability};
pub use measurement::{Measurement, Pings};
pub use radio::{Heard, HeardStation, Radio, Tnc, Transmission, Transmissions};
pub use security::{Keys, KnownKey, Security, Signature, SignatureTrouble};

/// Counters since start, by name.
pub type Counts = BTreeMap<String, u64>;

/// State of a node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// Node ID.
    pub node: String,
    /// Version of the program.
    pub version: String,
    /// True once the store has been read.
    pub ready: bool,
    /// Router: static, contact-plan, epidemic, spray-and-wait or dtlsr.
    pub router: String,
    /// Seconds since the node started.
    pub uptime_s: f64,
    /// DTN time, milliseconds since 2000-01-01 UTC; null without a valid clock.
    pub dtn_ms: Option<u64>,
    /// Seconds by which the clock is ahead of the time used for lifetimes, after a jump that the operator has not
    /// confirmed; zero: lifetimes follow the clock.
    #[serde(default)]
    pub clock_ahead_s: f64,
    /// Number of stored bundles; each fragment counts.
    pub bundles: u64,
    /// Maximum number of stored bundles.
    pub bundles_max: u64,
    /// Bytes of the stored bundles, as counted against the limit.
    pub stored_bytes: u64,
    /// Maximum number of stored bytes.
    pub stored_bytes_max: u64,
    /// Payload bytes in memory, in transit to the store or a link.
    pub buffered_bytes: u64,
    /// Number of connected applications.
    pub applications: u64,
    /// Endpoints registered by applications.
    pub endpoints: Vec<String>,
    /// Counters of the bundle agent.
    pub counters: Counts,
    /// State of the store, including damage found.
    pub store: Store,
    /// Incoming connections.
    pub callers: Callers,
    /// Counters of all sessions, including past ones.
    pub sessions: Counts,
    /// Control socket for local applications.
    #[serde(default)]
    pub control: Control,
    /// Status reports ignored because they came from an unknown neighbour.
    #[serde(default)]
    pub reports_not_believed: u64,
    /// Invalid bundles refused and datagrams of other protocols, by peer and rule, latest first; at most 64 and 16.
    #[serde(default)]
    pub refused: Vec<Refused>,
    /// Connections closed because the peer did not read for `stream.stall`.
    #[serde(default)]
    pub stalled_connections: u64,
    /// Received bytes not yet stored, over all connections.
    pub received_bytes: u64,
    /// Bytes queued in connections and not yet accepted by the kernel.
    pub queued_bytes: u64,
    /// Smallest receive buffer granted to a UDP socket, bytes; zero without a UDP socket. May be less than
    /// `stream.udp-receive-buffer-bytes`.
    #[serde(default)]
    pub udp_receive_buffer_bytes: u64,
    /// State of the configuration since it was last read.
    #[serde(default)]
    pub configuration: Configuration,
    /// Drop and receive folders.
    pub folders: Vec<Folder>,
    /// Mail of the node's users; null if it is off.
    #[serde(default)]
    pub mail: Option<Mail>,
    /// Signatures of bundles, and keys.
    #[serde(default)]
    pub security: Security,
    /// TLS counters and errors.
    pub tls: Tls,
    /// Duration of the passes of the event loop.
    pub turns: Turns,
    /// Resources used by the process.
    pub process: Process,
    /// Counters of the HTTP interface; empty if it is disabled.
    pub http: Counts,
    /// Gateways of the node.
    #[serde(default)]
    pub gateways: Vec<Gateway>,
    /// TNCs of the node.
    #[serde(default)]
    pub tncs: Vec<Tnc>,
    /// Links of the node.
    pub links: Vec<Link>,
    /// Discovery of neighbours; null if it is off.
    #[serde(default)]
    pub discovery: Option<Discovery>,
    /// Nodes to which the router DTLSR knows a path, in order; at most 1024.
    #[serde(default)]
    pub learned_routes: Vec<LearnedRoute>,
}

/// Invalid bundles refused from a peer, or its datagrams that are no packets of the protocol of their link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// Link of the latest bundle.
    pub link: String,
    /// Node ID claimed by the peer.
    pub peer: Option<String>,
    /// Address of the peer: host and port.
    pub address: Option<String>,
    /// Reason sent to the peer: `retransmit` (possibly damaged in transit) or `not_acceptable`; `other_protocol` for datagrams,
    /// of which the peer learns nothing.
    pub reason: String,
    /// Field, rule and block, as text; for datagrams, the protocol of the link, and theirs if it is known.
    pub what: String,
    /// Violated clause, such as `RFC 9171 4.3.1`; null for a limit of this implementation or truncated data.
    pub clause: Option<String>,
    /// Block of the latest bundle, as text; null if the fault is outside the blocks.
    pub block: Option<String>,
    /// Values of `accept` that would accept such bundles; empty if there is none.
    pub accept: Vec<String>,
    /// Number of these refusals.
    pub count: u64,
    /// Seconds since the latest refusal.
    pub last_s: f64,
}

impl Refused {
    /// Reason of datagrams.
    pub const OTHER_PROTOCOL: &str = "other_protocol";
    /// Advice for datagrams.
    pub const PROTOCOL_HINT: &str = "both nodes need the same protocol: compare `kind` of the [[link]] at one with the name in \
                                     `listen-udp` of the other";
}

/// State of the configuration since it was last read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// Reason why the latest configuration is not in force; null if it is.
    pub refused: Option<String>,
    /// Settings that the last reload changed.
    #[serde(default)]
    pub applied: Vec<String>,
    /// Changed settings that need a restart.
    pub needs_restart: Vec<String>,
}

/// Duration of the passes of the event loop, which delay all input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turns {
    /// Number of passes.
    pub count: u64,
    /// Total duration of all passes, seconds.
    pub busy_s: f64,
    /// Duration of the longest pass, seconds.
    pub longest_s: f64,
    /// Passes delayed because a timer was repeatedly set in the past; indicates a bug.
    #[serde(default)]
    pub restless: u64,
    /// Histogram; passes longer than all bounds are not listed.
    pub within: Vec<Within>,
}

/// Passes with a duration above the previous bound and up to this one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Within {
    /// Upper bound, seconds.
    pub bound_s: f64,
    /// Number of passes.
    pub count: u64,
}

/// Resources of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Memory, bytes.
    pub resident_bytes: u64,
    /// Processor time since its start, seconds.
    pub cpu_s: f64,
    /// Number of open files and sockets.
    pub open_files: u64,
    /// Maximum number of open files and sockets.
    #[serde(default)]
    pub open_files_max: u64,
}

/// Control socket for local applications.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// Number of connected applications.
    pub now: u64,
    /// Connections refused because of the limit.
    pub turned_away: u64,
    /// Applications disconnected because they did not read for `applications.patience`.
    pub stalled: u64,
}

/// Incoming connections.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Callers {
    /// Number of current connections.
    pub now: u64,
    /// Of these, connections without a session: not yet negotiated, or ended.
    pub opening: u64,
    /// Number of connections since start.
    pub arrived: u64,
    /// Connections closed in favour of a new one because of the limit.
    pub gave_way: u64,
    /// Connections refused because of the limit, with none to replace.
    pub turned_away: u64,
    /// Connections refused because they claimed the node ID of this node.
    #[serde(default)]
    pub refused_own_id: u64,
    /// Connections refused because the configuration does not name the claimed node ID.
    #[serde(default)]
    pub refused_unknown: u64,
    /// Connections refused because the claimed node ID was not proven.
    #[serde(default)]
    pub refused_unproven: u64,
    /// Connections refused because another session has the claimed node ID.
    #[serde(default)]
    pub refused_taken: u64,
}

/// Gateway between programs and a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Gateway {
    /// Address at which it listens, or port at which it answers: `listen-tcp 127.0.0.1:8080`, `port 80`.
    pub name: String,
    /// Link to the far side; null at the far side.
    pub link: Option<String>,
    /// Service across the link; null at the far side.
    pub service: Option<String>,
    /// Present connections, or senders of datagrams.
    pub open: u64,
    /// Counters since start.
    pub counters: Counts,
    /// Current problem; null if there is none.
    pub trouble: Option<String>,
}

/// Drop or receive folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Folder {
    /// Path of the folder.
    pub folder: String,
    /// True for a drop folder, false for a receive folder.
    pub sends: bool,
    /// Destination, or receiving endpoint.
    pub endpoint: String,
    /// Files processed since start.
    pub files: u64,
    /// Files waiting.
    pub waiting: u64,
    /// Current problem; null if there is none.
    pub trouble: Option<String>,
}

/// State of the store, including damage found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Store {
    /// Records found at start.
    pub records_found: u64,
    /// Bytes of writes interrupted by a crash; never acknowledged.
    pub torn_bytes: u64,
    /// Batches of writes made durable since start, each with one sync.
    pub synced_batches: u64,
    /// Data of these batches, bytes.
    pub synced_bytes: u64,
    /// Times since start that the disk had no space for a bundle, or for a part of one, although it was within the
    /// limits.
    #[serde(default)]
    pub disk_full: u64,
    /// Damaged places found since start; copies of the damaged data are kept in the folder `damaged` of the store.
    pub damaged: u64,
    /// Records found damaged or incomplete at start.
    #[serde(default)]
    pub harmed: u64,
    /// Records found missing at start without any identification of their owner.
    #[serde(default)]
    pub unnamed: u64,
    /// Bytes scrubbed since start (`storage.scrub-every`).
    #[serde(default)]
    pub scrubbed_bytes: u64,
    /// Complete scrubs.
    #[serde(default)]
    pub scrubs: u64,
    /// Latest damage reports, oldest first, as text: damage, place, owner, copy.
    pub latest_damage: Vec<String>,
}

/// TLS counters and errors since start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tls {
    /// Completed handshakes.
    pub secured: u64,
    /// Errors by type.
    pub troubles: Counts,
    /// Latest errors, latest first; at most 16.
    pub recent: Vec<TlsTrouble>,
}

/// TLS error.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TlsTrouble {
    /// Seconds since the error.
    pub ago_s: f64,
    /// Address of the peer.
    pub peer: String,
    /// Description as text.
    pub what: String,
}

/// Identity of a peer proven by TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proven {
    /// TLS version, such as `TLS 1.3`.
    pub version: String,
    /// Cipher suite.
    pub cipher: String,
    /// Node IDs in the certificate.
    pub node_ids: Vec<String>,
    /// Host name or address of the connection that the certificate proves; null if there is none.
    pub network: Option<String>,
    /// Expiry of the certificate, Unix seconds; null without a certificate.
    pub not_after_unix_s: Option<i64>,
}

/// Link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// Name of the link.
    pub name: String,
    /// Convergence layer, as in `kind` of a `[[link]]`.
    #[serde(default)]
    pub carrier: String,
    /// True for a link to a group, which has no peer.
    #[serde(default)]
    pub group: bool,
    /// Address of the peer: host and port.
    pub address: Option<String>,
    /// True for an incoming connection.
    pub calls: bool,
    /// True for a link to a neighbour that was found, which opens when a bundle needs it.
    #[serde(default)]
    pub found: bool,
    /// True while the link is up.
    pub up: bool,
    /// Node ID of the peer, once received and not in use by another session.
    pub peer: Option<String>,
    /// Node ID that the peer claims but another session has; bundles from the peer are accepted, and none are sent to
    /// it.
    #[serde(default)]
    pub claims: Option<String>,
    /// TCPCL version in use.
    pub tcpcl: Option<u8>,
    /// True if the peer did not respond in version 4 and is contacted in version 3.
    #[serde(default)]
    pub fell_back: bool,
    /// State over the TNC; null for other links.
    #[serde(default)]
    pub radio: Option<Radio>,
    /// True for UDP, which has no acknowledgements.
    pub unacknowledged: bool,
    /// Reason for being down, as an identifier; null while the link is up.
    pub down_reason: Option<String>,
    /// Reason for being down, as text; null while the link is up.
    pub why_down: Option<String>,
    /// Identity proven by TLS while the link is up; null without TLS.
    pub tls: Option<Proven>,
    /// Values of `accept` that would accept the bundles refused from this peer.
    #[serde(default)]
    pub would_help: Vec<String>,
    /// Nominal rate, bit/s: that of the configuration, or of the channel of the TNC; zero if it is not known.
    #[serde(default)]
    pub rate_bps: u64,
    /// Planned contacts, the earliest first: those that are not over, or the first of a plan that is over; at most 64. Empty for a
    /// link that can be used at all times.
    #[serde(default)]
    pub contacts: Vec<ContactWindow>,
    /// Seconds since the link went up or down; if it has never been up, since the first failed attempt.
    pub since_s: f64,
    /// True if the link has been up since the node started.
    #[serde(default)]
    pub was_up: bool,
    /// Counters of the session.
    pub counters: Counts,
}

/// Planned contact: a period in which a link may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ContactWindow {
    /// Start, DTN time in milliseconds.
    pub start_dtn_ms: u64,
    /// End, DTN time in milliseconds.
    pub end_dtn_ms: u64,
    /// Rate during the contact, bit/s; zero for the rate of the link.
    pub rate_bps: u64,
    /// One-way delay, milliseconds.
    pub delay_ms: u64,
}

/// Stored bundle or fragment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bundle {
    /// ID for commands: source and creation timestamp; shared by all fragments.
    pub id: String,
    /// Source.
    pub source: String,
    /// Creation timestamp: DTN milliseconds (zero without a clock) and sequence number.
    #[schemars(with = "(u64, u64)")]
    pub created: CreationTimestamp,
    /// Position of the fragment; null for a complete bundle.
    pub fragment: Option<Fragment>,
    /// Bundle Protocol version: 6 or 7.
    pub version: u8,
    /// True if custody transfer is requested (version 6).
    pub wants_custody: bool,
    /// Current custodian (version 6); null if there is none.
    pub custodian: Option<String>,
    /// Destination.
    pub destination: String,
    /// Priority.
    #[schemars(with = "Urgency")]
    pub priority: Priority,
    /// Payload length, bytes.
    pub payload_bytes: u64,
    /// Payload bytes from the beginning that the next hop has acknowledged.
    pub safe_bytes: u64,
    /// Payload bytes transmitted to the next hop, as far as known; at least `safe_bytes`.
    #[serde(default)]
    pub transmitted_bytes: u64,
    /// Age as known to this node, seconds.
    pub age_s: f64,
    /// Remaining lifetime, seconds.
    pub lifetime_left_s: f64,
    /// Link on which the bundle arrived; null if created here or received before the last start.
    pub arrived_over: Option<String>,
    /// Number of refusals for lack of space by peers.
    pub refusals: u32,
    /// Outcome of the verification of its signature; null if it has none, or none was verified at this node.
    #[serde(default)]
    pub signature: Option<Signature>,
    /// State, as an identifier.
    pub state: State,
    /// State, as text.
    pub why: String,
}

/// Position of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fragment {
    /// Offset, bytes.
    pub offset_bytes: u64,
    /// Length of the complete payload, bytes.
    pub total_bytes: u64,
}

/// Priority of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// Sent when nothing else is waiting.
    Bulk,
    /// Default priority.
    Normal,
    /// Sent first.
    Expedited,
}

/// State of a stored bundle: the reason why it is still stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Being received.
    Arriving,
    /// Being stored.
    Storing,
    /// Its signature is being verified.
    Checking,
    /// Accepted, but the keys in force neither decrypt nor verify it; waiting for its key.
    WithoutKey,
    /// No route to the destination.
    NoRoute,
    /// Encrypted, and every suitable link is amateur radio.
    Encrypted,
    /// All suitable links are down.
    LinksDown,
    /// Waiting for a contact.
    NoContact,
    /// Waiting for a better route that is down (`failover-after`).
    BetterHop,
    /// Copied to nodes as they are encountered.
    Spread,
    /// Queued.
    Queued,
    /// Being sent.
    OnTheWay,
    /// Refused by the next hop for lack of space; retried later.
    Resting,
    /// Sent, in custody of this node until another node accepts custody.
    InCustody,
    /// For this node; waiting for fragments.
    InParts,
    /// For this node; no application is registered.
    NobodyRegistered,
    /// For this node; not yet accepted by the application.
    NotTaken,
}

/// Filter for bundles; all given conditions must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// Source; a trailing `*` matches anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Destination; a trailing `*` matches anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// State of the bundle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
}

impl Filter {
    /// True if a bundle matches the filter.
    pub(crate) fn wants(&self, bundle: &Bundle) -> bool {
        let fits = |pattern: &Option<String>, text: &str| match pattern.as_deref() {
            None => true,
            Some(pattern) => match pattern.strip_suffix('*') {
                Some(start) => text.starts_with(start),
                None => text == pattern,
            },
        };
        fits(&self.source, &bundle.source)
            && fits(&self.destination, &bundle.destination)
            && self.state.is_none_or(|state| state == bundle.state)
    }
}

/// Page of the list of bundles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Page {
    /// Bundles of this page.
    pub bundles: Vec<Bundle>,
    /// Total number of stored bundles, regardless of the filter.
    pub total: u64,
    /// Value of `after` for the next page; null on the last page.
    pub next: Option<String>,
}

/// Links of the node.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Links {
    /// Links.
    pub links: Vec<Link>,
}

/// Static routes of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Routes {
    /// Static routes.
    pub routes: Vec<Route>,
}

/// Static route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Destination endpoints; a trailing `*` matches anything.
    pub to: String,
    /// Name of a link, or node ID of the next hop.
    pub via: String,
    /// Cost; lower is better.
    #[serde(default)]
    pub cost: u32,
}

/// Bundle stored durably by the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// ID for commands: source and creation timestamp.
    pub id: String,
    /// Source.
    pub source: String,
    /// Creation timestamp: DTN milliseconds (zero without a clock) and sequence number.
    #[schemars(with = "(u64, u64)")]
    pub created: CreationTimestamp,
    /// Destination.
    pub destination: String,
    /// Payload length including the file name, bytes.
    pub payload_bytes: u64,
}

/// Endpoint registered over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registration {
    /// Complete endpoint.
    pub endpoint: String,
    /// Seconds without use after which the registration expires.
    pub lease_s: u32,
    /// Number of pending deliveries; at most 1,024 are listed at a time.
    pub deliveries: u64,
}

/// Endpoints registered over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registrations {
    /// Registrations.
    pub registrations: Vec<Registration>,
}

/// Complete bundle for an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// ID of the delivery.
    pub id: String,
    /// ID of the bundle, for detecting duplicates.
    pub bundle: String,
    /// Source.
    pub source: String,
    /// Destination endpoint.
    pub endpoint: String,
    /// Creation timestamp: DTN milliseconds (zero without a clock) and sequence number.
    #[schemars(with = "(u64, u64)")]
    pub created: CreationTimestamp,
    /// Payload length, bytes, including the file name if there is one.
    pub payload_bytes: u64,
    /// Outcome of the verification of its signature; null if it has none, or none was verified.
    #[serde(default)]
    pub signature: Option<Signature>,
}

/// Pending deliveries of an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deliveries {
    /// Complete endpoint.
    pub endpoint: String,
    /// Deliveries not yet accepted, at most 1,024; more follow as these are accepted.
    pub deliveries: Vec<Delivery>,
}

/// Identification of a bundle in events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BundleIdentification {
    /// ID for commands: source and creation timestamp.
    pub id: String,
    /// Source.
    pub source: String,
    /// Destination.
    pub destination: String,
    /// Payload length, bytes.
    pub payload_bytes: u64,
}

/// Error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// Description of the error, as text.
    pub error: String,
    /// Hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// Success.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    /// Description of the result, as text.
    pub done: String,
}

/// Converts the names of counts.
pub(crate) fn named(counts: observe::Counts) -> Counts {
    counts.into_iter().map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Converts counters to a map.
pub(crate) fn counts(counters: &impl Serialize) -> Counts {
    let value = serde_json::to_value(counters).unwrap_or_default();
    let named = value.as_object().into_iter().flatten();
    named.filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_has_its_name_in_the_map() {
        let agent = counts(&longwire_proto::bp::agent::Counters { deleted_expired: 7, ..Default::default() });
        assert_eq!(agent["deleted_expired"], 7);
        let snake = |name: &String| {
            name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit())
        };
        assert!(agent.len() > 20 && agent.keys().all(snake), "{agent:?}");
    }
}
