//! What operators see of a node: the answers of the control socket and of the HTTP API, each defined once.
//!
//! Names are in snake_case, with their unit at the end where they have one. What is counted comes as a map from names to
//! numbers, so that a new counter appears everywhere at once.

use longwire_proto::service::Priority;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod event;
pub use event::{Event, EventRecord};

/// What was counted, by name, since the start.
pub type Counts = BTreeMap<String, u64>;

/// How a node is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// Its node id.
    pub node: String,
    /// The version of the program.
    pub version: String,
    /// True once its store has been read.
    pub ready: bool,
    /// How bundles find their way: static, epidemic or spray-and-wait.
    pub router: String,
    /// Seconds since its start.
    pub uptime_s: f64,
    /// DTN time by its clock, milliseconds since 2000-01-01 UTC; none: it has no clock, or a wrong one.
    pub dtn_ms: Option<u64>,
    /// By how many seconds its clock is ahead of the time that lifetimes go by, because it has jumped and nobody has said
    /// that it is right; zero: they go by the clock.
    #[serde(default)]
    pub clock_ahead_s: f64,
    /// Bundles that it holds, fragments counted each.
    pub bundles: u64,
    /// The most bundles that it holds.
    pub bundles_max: u64,
    /// Bytes of the bundles that it holds, as they count against the limit.
    pub stored_bytes: u64,
    /// The most bytes that it holds.
    pub stored_bytes_max: u64,
    /// Payload in memory, on its way to the store or to a link, bytes.
    pub buffered_bytes: u64,
    /// Applications that are connected.
    pub applications: u64,
    /// The endpoints that applications have registered.
    pub endpoints: Vec<String>,
    /// What the bundle agent has counted.
    pub counters: Counts,
    /// What opening and reading the store met.
    pub store: Store,
    /// Connections that peers opened.
    pub callers: Callers,
    /// What all sessions have counted, those that are over included.
    pub sessions: Counts,
    /// The socket for applications on this machine.
    #[serde(default)]
    pub control: Control,
    /// Status reports that are not believed: somebody handed them in whom this node does not know and sends nothing to.
    #[serde(default)]
    pub reports_not_believed: u64,
    /// Bundles that were refused because they break a rule, by peer and rule, the latest first; at most 64.
    #[serde(default)]
    pub refused: Vec<Refused>,
    /// Connections to peers that were ended because the peer took nothing for `stream.stall`.
    #[serde(default)]
    pub stalled_connections: u64,
    /// Bytes received and not yet safe, over all connections.
    pub received_bytes: u64,
    /// Bytes handed over to connections and not yet with the kernel.
    pub queued_bytes: u64,
    /// The smallest receive buffer that the kernel gave a UDP socket, bytes; zero: there was no such socket. It may be less
    /// than `stream.udp-receive-buffer-bytes` asks for.
    #[serde(default)]
    pub udp_receive_buffer_bytes: u64,
    /// The configuration, since it was read last.
    #[serde(default)]
    pub configuration: Configuration,
    /// Folders from which files are sent, and in which they appear.
    pub folders: Vec<Folder>,
    /// What TLS did.
    pub tls: Tls,
    /// How long the node takes for a turn.
    pub turns: Turns,
    /// What the process uses.
    pub process: Process,
    /// What the HTTP interface has counted; empty: it is off.
    pub http: Counts,
    /// Its TNCs.
    #[serde(default)]
    pub tncs: Vec<Tnc>,
    /// Its links.
    pub links: Vec<Link>,
}

/// Bundles that were refused to a peer because they break a rule.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Refused {
    /// The link over which the last of them came.
    pub link: String,
    /// The node id that the peer says.
    pub peer: Option<String>,
    /// Where the peer is: host and port.
    pub address: Option<String>,
    /// The reason that the peer hears, in one word: `retransmit`, for it may be damaged on the way, or `not_acceptable`.
    pub reason: String,
    /// The field, the rule and the block, for a person.
    pub what: String,
    /// The clause, such as `RFC 9171 4.3.1`; none: a limit of this implementation, or the bytes ended too early.
    pub clause: Option<String>,
    /// The block of the last of them, for a person; none: what is wrong is in no block.
    pub block: Option<String>,
    /// The values of `accept` for this peer with which such bundles are taken; empty: nothing helps.
    pub accept: Vec<String>,
    /// How many.
    pub count: u64,
    /// When the last of them came, seconds ago.
    pub last_s: f64,
}

/// A TNC.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tnc {
    /// What it is called.
    pub name: String,
    /// Where it is: host and port, or a device and its speed.
    pub address: String,
    /// The callsign of this station on it.
    pub callsign: String,
    /// True while its line stands.
    pub up: bool,
    /// Why it does not, for a person; none: it does, or is being tried for the first time.
    pub why_down: Option<String>,
    /// Attempts to have the line that failed in a row.
    pub attempts_failed: u64,
    /// Whether it tells when a frame has left (acknowledgement mode); none: that is not known yet.
    pub acknowledges: Option<bool>,
    /// Frames that it has and that have not left, as far as is known.
    pub frames_waiting: u64,
    /// What was counted of it, and of all AX.25 links over it.
    pub counters: Counts,
}

/// The configuration, since it was read last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Configuration {
    /// Why the one that was read last is not in force; none: it is.
    pub refused: Option<String>,
    /// Settings in it that hold from the node's next start on.
    pub needs_restart: Vec<String>,
}

/// How a link over a TNC is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Radio {
    /// The name of its TNC.
    pub tnc: String,
    /// The callsign of this station.
    pub callsign: String,
    /// The callsign of the peer, or of the group.
    pub peer: String,
    /// The digipeaters on the way, the nearest first.
    pub via: Vec<String>,
    /// The convergence layer: `ax25cl`, `ax25cm` for TCPCL 3, or `uicl` for a group.
    pub convergence: String,
    /// How it is, for a person: calling, connected, sending 4 of 29 frames, waiting for a clear channel ..
    pub state: String,
    /// Times in a row that no answer came.
    pub retries: u64,
    /// After so many it is given up, and called again later.
    pub retries_max: u64,
    /// I frames on their way.
    pub frames_in_flight: u64,
    /// The most that there may be.
    pub window_frames: u64,
    /// How far the numbers of its frames count: 8 or 128; zero: there is no link.
    pub modulo: u64,
    /// Of the bundles under way: frames that the peer has; none: nothing is under way.
    pub frames_acknowledged: Option<u64>,
    /// Of the bundles under way: frames in all.
    pub frames_in_all: Option<u64>,
    /// To a group: members that are asked for the bundle under way; zero: nobody is, or nothing is under way.
    #[serde(default)]
    pub members: u64,
    /// Of these, those that have said that they have it safe.
    #[serde(default)]
    pub members_that_have_it: u64,
    /// What the AX.25 link has counted, as long as it is there.
    pub link: Counts,
}

/// How long the node takes for a turn: whatever comes in waits for the one under way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Turns {
    /// How many there were.
    pub count: u64,
    /// Seconds that they took together.
    pub busy_s: f64,
    /// Seconds that the longest took.
    pub longest_s: f64,
    /// Turns that were put off, because they asked for a time that had passed, over and over: a fault of the program.
    #[serde(default)]
    pub restless: u64,
    /// How many took how long; those that are missing took longer than all bounds.
    pub within: Vec<Within>,
}

/// Turns that took longer than the bound before and no longer than this.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Within {
    /// The bound, seconds.
    pub bound_s: f64,
    /// How many.
    pub count: u64,
}

/// What a process uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Process {
    /// Memory, bytes.
    pub resident_bytes: u64,
    /// Processor time since its start, seconds.
    pub cpu_s: f64,
    /// Open files and sockets.
    pub open_files: u64,
    /// The most that the system lets it have open.
    #[serde(default)]
    pub open_files_max: u64,
}

/// The socket for applications on this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// How many are connected.
    pub now: u64,
    /// Turned away, because there were too many.
    pub turned_away: u64,
    /// Cut off, because they read nothing for `applications.patience`.
    pub stalled: u64,
}

/// Connections that peers opened.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Callers {
    /// How many there are.
    pub now: u64,
    /// Of these, without a session: it is not agreed on yet, or it is over.
    pub opening: u64,
    /// How many there were.
    pub arrived: u64,
    /// Ended for a newcomer, because there were too many.
    pub gave_way: u64,
    /// Turned away, because there were too many and none could give way.
    pub turned_away: u64,
    /// Not let in, because they say that they are this node.
    #[serde(default)]
    pub refused_own_id: u64,
    /// Not let in, because the configuration does not name the node id that they say.
    #[serde(default)]
    pub refused_unknown: u64,
    /// Not let in, because nothing proves the node id that they say.
    #[serde(default)]
    pub refused_unproven: u64,
    /// Not let in, because another session has the node id that they say.
    #[serde(default)]
    pub refused_taken: u64,
}

/// A folder from which files are sent, or in which they appear.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Folder {
    /// The folder.
    pub folder: String,
    /// Files in it are sent; else they appear there.
    pub sends: bool,
    /// Where they go, or for which endpoint they come.
    pub endpoint: String,
    /// Files that went through since the start.
    pub files: u64,
    /// Files that wait.
    pub waiting: u64,
    /// What does not work at the moment.
    pub trouble: Option<String>,
}

/// What opening and reading the store met.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Store {
    /// Records that were there.
    pub records_found: u64,
    /// Bytes of a write that a crash had cut off; they were never acknowledged.
    pub torn_bytes: u64,
    /// Batches of writes that were made durable since the start, each with one sync.
    pub synced_batches: u64,
    /// Their data, bytes.
    pub synced_bytes: u64,
    /// Times since the start that the disk had no space for a bundle, or for more of one, though the limits of the store allow it.
    #[serde(default)]
    pub disk_full: u64,
    /// Places that were found damaged since the start; what was there is set aside in the store's folder `damaged`.
    pub damaged: u64,
    /// Records of which opening the store found something damaged or missing.
    #[serde(default)]
    pub harmed: u64,
    /// Records that were missing when the store was opened, and nothing says whose they were.
    #[serde(default)]
    pub unnamed: u64,
    /// Bytes that were read since the start to find damage early (`storage.scrub-every`).
    #[serde(default)]
    pub scrubbed_bytes: u64,
    /// Times that all of the store was read so.
    #[serde(default)]
    pub scrubs: u64,
    /// The latest of them, oldest first, for a person: what, where, whose, and where it is kept.
    pub latest_damage: Vec<String>,
}

/// What TLS did since the node's start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tls {
    /// Handshakes that were made.
    pub secured: u64,
    /// What went wrong, by kind.
    pub troubles: Counts,
    /// What went wrong last, the latest first; at most 16.
    pub recent: Vec<TlsTrouble>,
}

/// Something that went wrong with TLS.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TlsTrouble {
    /// Seconds ago.
    pub ago_s: f64,
    /// Where the peer is.
    pub peer: String,
    /// What happened, for a person.
    pub what: String,
}

/// What TLS proves of a peer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Proven {
    /// The version: `TLS 1.3`.
    pub version: String,
    /// The cipher suite.
    pub cipher: String,
    /// The node ids that its certificate is for.
    pub node_ids: Vec<String>,
    /// The name or address that its certificate proves, of those that the connection has.
    pub network: Option<String>,
    /// When its certificate expires, Unix seconds; none: it has shown none.
    pub not_after_unix_s: Option<i64>,
}

/// A link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// What it is called.
    pub name: String,
    /// Where the peer is: host and port.
    pub address: Option<String>,
    /// True if the peer has called.
    pub calls: bool,
    /// True if it is up.
    pub up: bool,
    /// The peer's node id, as far as it has said it and no other session has it.
    pub peer: Option<String>,
    /// The node id that it says and another session has: it may hand bundles in, and gets none.
    #[serde(default)]
    pub claims: Option<String>,
    /// The version of TCPCL that is spoken on it.
    pub tcpcl: Option<u8>,
    /// The peer has not answered in version 4, and is called in version 3.
    #[serde(default)]
    pub fell_back: bool,
    /// How it is over its TNC; none: it goes over something else.
    #[serde(default)]
    pub radio: Option<Radio>,
    /// True over UDP: what is sent is handed over, and nobody knows whether it arrives.
    pub unacknowledged: bool,
    /// Why it is down, in one word.
    pub down_reason: Option<String>,
    /// Why it is down, for a person.
    pub why_down: Option<String>,
    /// What TLS proves of the peer, while it is up; none: the link is not secured.
    pub tls: Option<Proven>,
    /// What to accept from the peer for bundles that it sends in vain, by the names of configurations.
    #[serde(default)]
    pub would_help: Vec<String>,
    /// Seconds since it came up or went down; if it was never up, since it was first tried in vain.
    pub since_s: f64,
    /// True if it was up at some time since the node's start.
    #[serde(default)]
    pub was_up: bool,
    /// What its session has counted.
    pub counters: Counts,
}

/// A bundle, or a fragment of one, that the node holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bundle {
    /// Its name for commands: source and creation timestamp. All of its fragments have the same.
    pub id: String,
    /// Who sent it.
    pub source: String,
    /// When it was made: DTN milliseconds (zero: without a clock) and the sequence number.
    pub created: (u64, u64),
    /// Which part of the payload this is; none: all of it.
    pub fragment: Option<Fragment>,
    /// The version of the Bundle Protocol that it is of: 6 or 7.
    pub version: u8,
    /// It asks for custody transfer (version 6).
    pub wants_custody: bool,
    /// The node that has custody of it, if one has (version 6).
    pub custodian: Option<String>,
    /// Where it goes.
    pub destination: String,
    /// Its urgency.
    #[schemars(with = "Urgency")]
    pub priority: Priority,
    /// Bytes of payload in it.
    pub payload_bytes: u64,
    /// Of these, from the beginning, safe with the next hop.
    pub safe_bytes: u64,
    /// Of these, transmitted to the next hop, as far as is known: at least those that are safe there.
    #[serde(default)]
    pub transmitted_bytes: u64,
    /// How old it is, seconds, as far as this node knows.
    pub age_s: f64,
    /// How much of its lifetime is left, seconds.
    pub lifetime_left_s: f64,
    /// The link over which it came; none: it was made here, or came before the last start.
    pub arrived_over: Option<String>,
    /// How often a peer had no place for it.
    pub refusals: u32,
    /// Why it is still here, in one word.
    pub state: State,
    /// Why it is still here, for a person.
    pub why: String,
}

/// Which part of a payload a fragment has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fragment {
    /// Bytes before it.
    pub offset_bytes: u64,
    /// The length of the whole payload.
    pub total_bytes: u64,
}

/// How urgent a bundle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Urgency {
    /// When nothing else wants the line.
    Bulk,
    /// The usual.
    Normal,
    /// Before everything else.
    Expedited,
}

/// Why a bundle is still here, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is still arriving.
    Arriving,
    /// It is being stored.
    Storing,
    /// No route leads to its destination.
    NoRoute,
    /// Every link that it may take is down.
    LinksDown,
    /// No contact has begun.
    NoContact,
    /// The better of its ways is down, and is waited for.
    BetterHop,
    /// Copies of it go to nodes that are met.
    Spread,
    /// It waits its turn.
    Queued,
    /// It is on its way.
    OnTheWay,
    /// The next hop had no place for it.
    Resting,
    /// The next hop has it, and this node is responsible for it until another one says that it is.
    InCustody,
    /// It is for this node, and parts are missing.
    InParts,
    /// It is for this node, and no application asks for it.
    NobodyRegistered,
    /// It is for this node, and the application has not taken it.
    NotTaken,
}

/// Which bundles are wanted: those that fit everything that is said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Filter {
    /// From this source; a trailing `*` stands for any rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// For this destination; a trailing `*` stands for any rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<String>,
    /// Still here for this reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
}

impl Filter {
    /// True if a bundle is wanted.
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

/// A part of the list of bundles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Page {
    /// The bundles.
    pub bundles: Vec<Bundle>,
    /// How many the node holds in all, whatever was asked for.
    pub total: u64,
    /// Where the next part begins: what to say as `after`; none: this was the last.
    pub next: Option<String>,
}

/// All links.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Links {
    /// Each.
    pub links: Vec<Link>,
}

/// All static routes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Routes {
    /// Each.
    pub routes: Vec<Route>,
}

/// A static route.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// For which endpoints; a trailing `*` stands for any rest.
    pub to: String,
    /// Over which link, or by which node.
    pub via: String,
    /// The lower, the better.
    #[serde(default)]
    pub cost: u32,
}

/// A bundle that the node has, durable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Accepted {
    /// Its name for commands.
    pub id: String,
    /// Who sends it.
    pub source: String,
    /// When it was made: DTN milliseconds (zero: without a clock) and the sequence number.
    pub created: (u64, u64),
    /// Where it goes.
    pub destination: String,
    /// The payload's length, with the name before it.
    pub payload_bytes: u64,
}

/// An endpoint that is received for over HTTP.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registration {
    /// The endpoint in full.
    pub endpoint: String,
    /// It ends after so long without use, seconds.
    pub lease_s: u32,
    /// How much has arrived and was not taken; at most 1,024 are told of at a time.
    pub deliveries: u64,
}

/// The endpoints that are received for over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Registrations {
    /// Each.
    pub registrations: Vec<Registration>,
}

/// A bundle that arrived, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// Its name for commands.
    pub id: String,
    /// The bundle: what tells whether it is one that was seen before.
    pub bundle: String,
    /// Who sent it.
    pub source: String,
    /// The endpoint it is for.
    pub endpoint: String,
    /// When it was made: DTN milliseconds (zero: without a clock) and the sequence number.
    pub created: (u64, u64),
    /// The payload's length, with the name before it, if it has one.
    pub payload_bytes: u64,
}

/// What arrived for an endpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Deliveries {
    /// The endpoint in full.
    pub endpoint: String,
    /// Each that was not taken, at most 1,024: more come as these are taken.
    pub deliveries: Vec<Delivery>,
}

/// Pings and their round trips.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Pings {
    /// The echo service.
    pub to: String,
    /// How many were sent.
    pub sent: u64,
    /// How many came back in time.
    pub received: u64,
    /// How many of a hundred did not.
    pub lost_percent: f64,
    /// The round trip of each, milliseconds; none: it did not come back in time.
    pub round_trips_ms: Vec<Option<f64>>,
    /// The shortest.
    pub least_ms: Option<f64>,
    /// Their mean.
    pub mean_ms: Option<f64>,
    /// The longest.
    pub most_ms: Option<f64>,
    /// Their standard deviation.
    pub deviation_ms: Option<f64>,
}

/// A bundle, as events name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BundleName {
    /// Its name for commands.
    pub id: String,
    /// Who sent it.
    pub source: String,
    /// Where it goes.
    pub destination: String,
    /// Bytes of payload in it.
    pub payload_bytes: u64,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Problem {
    /// What happened, for a person.
    pub error: String,
    /// What may help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// It was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Done {
    /// What was done, for a person.
    pub done: String,
}

/// A bundle's name for commands, from its source and creation timestamp.
pub fn bundle_id(source: &str, created: (u64, u64)) -> String {
    format!("{source}@{}-{}", created.0, created.1)
}

/// The source and creation timestamp that a bundle's name says.
pub fn parse_bundle_id(id: &str) -> Option<(String, (u64, u64))> {
    let (source, created) = id.rsplit_once('@')?;
    let (time, number) = created.split_once('-')?;
    Some((source.to_owned(), (time.parse().ok()?, number.parse().ok()?)))
}

/// Counters as a map.
pub(crate) fn counts(counters: &impl Serialize) -> Counts {
    let value = serde_json::to_value(counters).unwrap_or_default();
    let named = value.as_object().into_iter().flatten();
    named.filter_map(|(name, count)| Some((name.clone(), count.as_u64()?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_is_named_by_source_and_time() {
        let id = bundle_id("dtn://a@b/", (842_000_000_000, 256));
        assert_eq!(id, "dtn://a@b/@842000000000-256");
        assert_eq!(parse_bundle_id(&id), Some(("dtn://a@b/".to_owned(), (842_000_000_000, 256))));
        for wrong in ["", "dtn://a/", "dtn://a/@1", "dtn://a/@1-x", "dtn://a/@-1-1"] {
            assert_eq!(parse_bundle_id(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_counter_has_its_name_in_the_map() {
        let agent = counts(&longwire_proto::bp::agent::Counters { deleted_expired: 7, ..Default::default() });
        assert_eq!(agent["deleted_expired"], 7);
        let snake = |name: &String| name.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase());
        assert!(agent.len() > 20 && agent.keys().all(snake), "{agent:?}");
    }
}
