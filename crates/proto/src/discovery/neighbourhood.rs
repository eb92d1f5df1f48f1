//! The neighbours of a node, and the times at which it announces itself.
//!
//! Limits: the number of neighbours, [`WAYS_MAX`] ways to each, announcements that are read in a second
//! ([`Neighbourhood::reads_from`]), one new neighbour in a second after as many as the table holds, and one announcement of this
//! node in two seconds, whoever asks for more. When the table is
//! full, a node of higher standing takes the place of the newest one of the lowest: nodes with a known key and nodes of the
//! configuration stand above those that sign with another key, which anyone can make, and these above those that sign nothing.
//! The others have [`NEIGHBOURS_AT_ADDRESS`] places in all for each address. A forged announcement adds a way to a node, and never
//! replaces one that is in use.
//!
//! The key of a node of which none is known holds for as long as the node is a neighbour, and for its announcements only.

use super::{Announcement, Format, Proof, Way};
use crate::bp::Eid;
use crate::bp::bpsec::Fingerprint;
use crate::engine::{Engine, Service};
use crate::joint::earlier;
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::CreationTimestamp;
use crate::setting::{self, Fault, Settings};
use crate::time::{Duration, Instant};
use core::cmp::Reverse;
use core::net::IpAddr;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of ways to a neighbour.
pub const WAYS_MAX: usize = 4;
/// Upper limit for the maximum number of neighbours.
const NEIGHBOURS_MAX: u64 = 1024;
/// Maximum time from the start to the first announcement.
const FIRST_WITHIN: Duration = Duration::from_secs(1);
/// Maximum time by which an answer waits, so that many nodes do not answer at once.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// Minimum time between two announcements.
const BETWEEN_ANNOUNCEMENTS: Duration = Duration::from_secs(2);
/// Number of first announcements that ask others to announce themselves.
const SOLICITATIONS: u32 = 2;
/// Bounds of the time for which an announcement counts, whatever it says.
const VALIDITY_MIN: Duration = Duration::from_secs(3);
const VALIDITY_MAX: Duration = Duration::from_secs(6 * 3600);
/// Limit of that time for nodes without a known key, unless three intervals of this node are longer.
const VALIDITY_UNKNOWN_MAX: Duration = Duration::from_secs(600);
/// Maximum number of neighbours at one address, apart from nodes with a known key and nodes of the configuration.
const NEIGHBOURS_AT_ADDRESS: usize = 4;
/// Minimum time between two changes of the way in use to another port of the same address.
const BETWEEN_MOVES: Duration = Duration::from_secs(10);
/// Intervals without an announcement after which a neighbour that does not say more is gone.
const INTERVALS: u32 = 3;
/// Announcements that are read of unknown senders, per second and at once.
const STRANGERS_PER_S: u64 = 50;
/// Time in which the table admits one more neighbour, after as many at once as it holds.
const BETWEEN_ARRIVALS: Duration = Duration::from_secs(1);
/// Minimum time between two announcements that are read of a known sender.
const BETWEEN_READS: Duration = Duration::from_millis(200);

/// The service to the owner of a neighbourhood.
#[derive(Debug)]
pub enum Discovery {}

impl Service for Discovery {
    type Request = DiscoveryRequest;
    type Indication = DiscoveryIndication;
}

/// Requests of [`Discovery`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveryRequest {
    /// Begins to announce this node.
    Join,
    /// Replaces the rule for neighbours. Present neighbours that it excludes are lost.
    Admit {
        /// The rule.
        admission: Admission,
        /// Nodes of the configuration.
        configured: BTreeSet<Eid>,
    },
}

/// Indications of [`Discovery`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiscoveryIndication {
    /// A node became a neighbour.
    Found(Eid),
    /// The way to a neighbour has changed.
    Moved(Eid),
    /// A neighbour was silent for too long.
    Lost(Eid),
}

/// The service that carries announcements, signs those of this node and judges the signatures of others.
#[derive(Debug)]
pub enum Hearing {}

impl Service for Hearing {
    type Request = HearingRequest;
    type Indication = HearingIndication;
}

/// Requests of [`Hearing`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HearingRequest {
    /// Announces this node to all.
    Announce {
        /// Asks the others to announce themselves.
        solicits: bool,
    },
}

/// Indications of [`Hearing`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HearingIndication {
    /// An announcement was received.
    Heard(HeardAnnouncement),
}

/// Announcement with its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardAnnouncement {
    /// Contents.
    pub announcement: Announcement,
    /// Way to the node, by the address from which the announcement came.
    pub way: Way,
    /// Value of the signature.
    pub proof: Proof,
}

/// Nodes that may become neighbours. A node whose known key did not sign its announcement is none of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// All nodes.
    Any,
    /// Nodes with a key that is known or the first one, and these nodes. Where a format has no signatures, a node with a known
    /// key is believed: its bundles prove it.
    Known(BTreeSet<Eid>),
    /// Nodes that match one of these patterns: node IDs; a trailing `*` matches anything.
    Listed(Vec<String>),
}

impl Admission {
    fn admits(&self, node: &Eid, proof: Proof) -> bool {
        match self {
            _ if proof == Proof::Contested => false,
            Admission::Any => true,
            Admission::Known(nodes) => proof.is_signed() || proof == Proof::Named || nodes.contains(node),
            Admission::Listed(patterns) => {
                let name = node.to_string();
                patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
                    Some(beginning) => name.starts_with(beginning),
                    None => pattern.parse::<Eid>().is_ok_and(|listed| listed == *node),
                })
            }
        }
    }
}

/// Settings of a neighbourhood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// This node.
    pub node: Eid,
    /// Nodes that may become neighbours.
    pub admission: Admission,
    /// Nodes of the configuration. They have a place before others, and no key is taken for theirs because it came first.
    pub configured: BTreeSet<Eid>,
    /// Interval of announcements. Default 30 s.
    pub interval: Duration,
    /// Maximum number of neighbours. Default 64.
    pub neighbours_max: usize,
}

impl Config {
    /// Creates the default settings for a node.
    pub fn new(node: Eid) -> Self {
        let configured = BTreeSet::new();
        Config {
            node,
            admission: Admission::Any,
            configured,
            interval: Duration::from_secs(30),
            neighbours_max: 64,
        }
    }

    /// Time for which announcements of this node are valid.
    pub fn validity(&self) -> Duration {
        self.interval.saturating_mul(INTERVALS) + FIRST_WITHIN
    }
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        let intervals = BETWEEN_ANNOUNCEMENTS..=VALIDITY_MAX / (INTERVALS + 1);
        setting::time("interval", self.interval, intervals, "30 s is usual")?;
        setting::number("neighbours-max", self.neighbours_max, 1..=NEIGHBOURS_MAX, "64 is usual")
    }
}

/// Counters of a neighbourhood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Announcements of this node.
    pub announced: u64,
    /// Announcements of neighbours.
    pub heard: u64,
    /// Announcements of nodes that may not become neighbours.
    pub not_admitted: u64,
    /// Announcements that another key than that of the node signed, or none.
    pub contested: u64,
    /// Announcements older than one received before.
    pub superseded: u64,
    /// Announcements that were not read, because there were too many at once.
    pub not_read: u64,
    /// Announcements that would have exceeded the maximum of neighbours, of new ones in a time, or of ways to one.
    pub refused: u64,
    /// Nodes that became neighbours.
    pub found: u64,
    /// Neighbours that were lost.
    pub lost: u64,
}

/// Neighbour, as an operator sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// Way in use.
    pub way: Way,
    /// Format of the announcements on this way.
    pub format: Format,
    /// Value of their signatures.
    pub proof: Proof,
    /// Time at which the node became a neighbour.
    pub since: Instant,
    /// Time of the last announcement.
    pub last: Instant,
    /// Number of ways.
    pub ways: usize,
    /// True if an announcement in the name of the node was not signed with its known key.
    pub contested: bool,
}

#[derive(Clone, Debug)]
struct HeardWay {
    way: Way,
    format: Format,
    proof: Proof,
    created: Option<CreationTimestamp>,
    last: Instant,
    expires: Instant,
}

impl HeardWay {
    /// Ways with a higher rank are preferred: those that the known key proves or, if none is known, the key with which the way
    /// in use was announced. Among the others the one in use stays, of whatever kind.
    fn rank(&self, used: Proof) -> u8 {
        let kind = match self.way {
            Way::Tcp(_) => 2,
            Way::Station { .. } => 1,
            Way::Calls(_) => 0,
        };
        match self.proof {
            Proof::Known => 4 + kind,
            Proof::First(_) if self.proof == used => 1 + kind,
            _ => 0,
        }
    }
}

/// True if both ways lead to the same address, at whatever port.
fn is_same_place(one: &Way, other: &Way) -> bool {
    match (address(one), address(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one == other,
        _ => false,
    }
}

fn address(way: &Way) -> Option<IpAddr> {
    match way {
        Way::Tcp(address) | Way::Calls(address) => Some(address.ip()),
        Way::Station { .. } => None,
    }
}

#[derive(Clone, Debug)]
struct Entry {
    /// Ways, the one in use first; never empty.
    ways: Vec<HeardWay>,
    since: Instant,
    contested: bool,
    /// Time at which the way in use has last changed to another port.
    moved: Instant,
}

impl Entry {
    /// Key with which the neighbour has signed, if none is known of it.
    fn first_key(&self) -> Option<Fingerprint> {
        self.ways.iter().find_map(|way| match way.proof {
            Proof::First(key) => Some(key),
            _ => None,
        })
    }

    /// Removes the ways that have expired, and prefers the best of the others. Returns false if none is left.
    fn sort(&mut self, now: Instant) -> bool {
        self.ways.retain(|way| now < way.expires);
        let used = self.ways.first().map_or(Proof::Unsigned, |way| way.proof);
        if let Some(best) = self.ways.iter().map(|way| way.rank(used)).max()
            && self.ways[0].rank(used) < best
        {
            let at = self.ways.iter().position(|way| way.rank(used) == best).unwrap_or(0);
            self.ways.swap(0, at);
        }
        !self.ways.is_empty()
    }
}

/// The neighbours of a node.
#[derive(Debug)]
pub struct Neighbourhood {
    config: Config,
    rng: Rng,
    neighbours: BTreeMap<Eid, Entry>,
    /// Next announcement; `None` before the request to join.
    announce_at: Option<Instant>,
    is_due: bool,
    announced_at: Option<Instant>,
    solicitations_left: u32,
    /// Announcements of unknown senders that may be read now.
    reads_left: u64,
    reads_since: Instant,
    /// Known senders of which an announcement was read less than [`BETWEEN_READS`] ago, and when.
    read_at: BTreeMap<IpAddr, Instant>,
    /// Neighbours that may be added now.
    arrivals_left: u64,
    arrivals_since: Instant,
    counters: Counters,
    up: VecDeque<DiscoveryIndication>,
}

impl Neighbourhood {
    /// Creates a neighbourhood without neighbours.
    ///
    /// # Errors
    /// Fails if a setting is invalid.
    pub fn new(config: Config, rng: Rng) -> Result<Self, Fault> {
        config.check()?;
        let neighbours_max = config.neighbours_max as u64;
        Ok(Neighbourhood {
            config,
            rng,
            neighbours: BTreeMap::new(),
            announce_at: None,
            is_due: false,
            announced_at: None,
            solicitations_left: SOLICITATIONS,
            reads_left: STRANGERS_PER_S,
            reads_since: Instant::ZERO,
            read_at: BTreeMap::new(),
            arrivals_left: neighbours_max,
            arrivals_since: Instant::ZERO,
            counters: Counters::default(),
            up: VecDeque::new(),
        })
    }

    /// Settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// All neighbours in the order of their node IDs.
    pub fn neighbours(&self) -> impl Iterator<Item = (&Eid, Neighbour)> {
        self.neighbours.iter().map(|(node, entry)| (node, view(entry)))
    }

    /// The neighbour with this node ID.
    pub fn neighbour(&self, node: &Eid) -> Option<Neighbour> {
        self.neighbours.get(node).map(view)
    }

    /// Decides whether an announcement from this address is read, which takes time if it is signed.
    pub fn reads_from(&mut self, now: Instant, from: IpAddr) -> bool {
        let reads = match self.is_known_address(from) {
            true => {
                self.read_at.retain(|_, before| now.saturating_since(*before) < BETWEEN_READS);
                let reads = !self.read_at.contains_key(&from);
                if reads {
                    self.read_at.insert(from, now);
                }
                reads
            }
            false => self.reads_stranger(now),
        };
        self.counters.not_read += u64::from(!reads);
        reads
    }

    fn reads_stranger(&mut self, now: Instant) -> bool {
        let passed = now.saturating_since(self.reads_since).as_secs();
        if passed > 0 {
            self.reads_left = STRANGERS_PER_S;
            self.reads_since = now;
        }
        let reads = self.reads_left > 0;
        self.reads_left -= u64::from(reads);
        reads
    }

    fn is_known_address(&self, from: IpAddr) -> bool {
        let mut ways = self.neighbours.values().flat_map(|entry| &entry.ways);
        ways.any(|known| address(&known.way) == Some(from))
    }

    /// Compares the signature with the key that the neighbour has used before.
    fn compare(&self, node: &Eid, format: Format, proof: Proof) -> Proof {
        let first = || self.neighbours.get(node).and_then(Entry::first_key);
        if self.config.configured.contains(node) {
            return proof;
        }
        match (proof, first()) {
            (Proof::First(key), Some(first)) if key != first => Proof::Contested,
            (Proof::Unsigned, Some(_)) if format == Format::Aprs => Proof::Named,
            (Proof::Unsigned, Some(_)) => Proof::Contested,
            _ => proof,
        }
    }

    fn hear(&mut self, now: Instant, HeardAnnouncement { announcement, way, proof }: HeardAnnouncement) {
        let node = announcement.node;
        if node == self.config.node {
            return;
        }
        let proof = self.compare(&node, announcement.format, proof);
        if proof == Proof::Contested {
            self.counters.contested += 1;
            if let Some(entry) = self.neighbours.get_mut(&node) {
                entry.contested |= announcement.format.has_signatures();
            }
            return;
        }
        if !self.config.admission.admits(&node, proof) {
            self.counters.not_admitted += 1;
            return;
        }
        if self.is_superseded(&node, &way, proof, announcement.created) {
            self.counters.superseded += 1;
            return;
        }
        let validity = announcement.validity.unwrap_or(self.config.interval.saturating_mul(INTERVALS));
        let heard = HeardWay {
            way,
            format: announcement.format,
            proof,
            created: announcement.created,
            last: now,
            expires: now + validity.clamp(VALIDITY_MIN, self.validity_max(proof)),
        };
        let is_new = !self.neighbours.contains_key(&node);
        let is_kept = if is_new { self.add(now, node, heard) } else { self.update(now, node, heard) };
        self.counters.heard += u64::from(is_kept);
        if is_kept && (is_new || announcement.solicits) {
            self.answer(now);
        }
    }

    fn validity_max(&self, proof: Proof) -> Duration {
        match proof {
            Proof::Known => VALIDITY_MAX,
            _ => self.config.validity().max(VALIDITY_UNKNOWN_MAX),
        }
    }

    /// Standing of a node among those that want a place.
    fn standing(&self, node: &Eid, proof: Proof) -> u8 {
        match proof {
            _ if self.config.configured.contains(node) => 2,
            Proof::Known => 2,
            Proof::First(_) | Proof::Named => 1,
            _ => 0,
        }
    }

    /// True if the address of this way has as many neighbours as it may have.
    fn is_crowded(&self, way: &Way) -> bool {
        let others = self.neighbours.iter().filter(|(node, entry)| {
            let first = &entry.ways[0];
            is_same_place(&first.way, way) && self.standing(node, first.proof) < 2
        });
        others.count() >= NEIGHBOURS_AT_ADDRESS
    }

    /// True if a later announcement was received. Only those that a key proves are compared with those on other ways: anyone
    /// can write any time into the others.
    fn is_superseded(&self, node: &Eid, way: &Way, proof: Proof, created: Option<CreationTimestamp>) -> bool {
        let (Some(entry), Some(created)) = (self.neighbours.get(node), created) else { return false };
        entry.ways.iter().any(|known| {
            let Some(before) = known.created else { return false };
            match is_same_place(&known.way, way) {
                true => created <= before && known.proof.is_signed() == proof.is_signed(),
                false => created < before && known.proof.is_signed() && proof.is_signed(),
            }
        })
    }

    /// Adds a neighbour. Returns false if there is no place for it.
    fn add(&mut self, now: Instant, node: Eid, heard: HeardWay) -> bool {
        let most = self.config.neighbours_max as u64;
        let passed = now.saturating_since(self.arrivals_since).as_nanos() / BETWEEN_ARRIVALS.as_nanos();
        if passed > 0 {
            self.arrivals_left = most.min(self.arrivals_left.saturating_add(passed as u64));
            self.arrivals_since = now;
        }
        let standing = self.standing(&node, heard.proof);
        if standing < 2 && (self.arrivals_left == 0 || self.is_crowded(&heard.way)) {
            self.counters.refused += 1;
            return false;
        }
        if self.neighbours.len() >= self.config.neighbours_max {
            let of = |node: &Eid, entry: &Entry| self.standing(node, entry.ways[0].proof);
            let lower = self.neighbours.iter().filter(|(node, entry)| of(node, entry) < standing);
            let last = lower.min_by_key(|(node, entry)| (of(node, entry), Reverse(entry.since)));
            let Some(last) = last.map(|(node, _)| node.clone()) else {
                self.counters.refused += 1;
                return false;
            };
            self.lose(&last);
        }
        self.arrivals_left = self.arrivals_left.saturating_sub(1);
        self.neighbours
            .insert(node.clone(), Entry { ways: vec![heard], since: now, contested: false, moved: now });
        self.counters.found += 1;
        self.up.push_back(DiscoveryIndication::Found(node));
        true
    }

    /// Adds an announcement of a neighbour. Returns false if there is no place for its way.
    fn update(&mut self, now: Instant, node: Eid, mut heard: HeardWay) -> bool {
        let entry = self.neighbours.get_mut(&node).expect("it is there");
        let before = entry.ways[0].way;
        match entry.ways.iter().position(|known| is_same_place(&known.way, &heard.way)) {
            Some(at) => {
                let moves = at == 0 && heard.way != before;
                match moves && now.saturating_since(entry.moved) < BETWEEN_MOVES {
                    true => heard.way = before,
                    false if moves => entry.moved = now,
                    false => {}
                }
                entry.ways[at] = heard;
            }
            None if entry.ways.len() < WAYS_MAX => entry.ways.push(heard),
            None => {
                // Any known key counts more than the others, which anyone can make.
                let unproven = entry.ways.iter().rposition(|known| known.proof != Proof::Known);
                let Some(at) = unproven.filter(|_| heard.proof == Proof::Known) else {
                    self.counters.refused += 1;
                    return false;
                };
                entry.ways[at] = heard;
            }
        }
        entry.sort(now);
        if entry.ways.first().is_some_and(|first| first.way != before) {
            self.up.push_back(DiscoveryIndication::Moved(node));
        }
        true
    }

    fn lose(&mut self, node: &Eid) {
        if self.neighbours.remove(node).is_none() {
            return;
        }
        self.counters.lost += 1;
        self.up.push_back(DiscoveryIndication::Lost(node.clone()));
    }

    /// Announces this node soon.
    fn answer(&mut self, now: Instant) {
        let Some(planned) = self.announce_at else { return };
        let soon = now + self.random_within(ANSWER_WITHIN);
        let earliest = self.announced_at.map_or(soon, |before| soon.max(before + BETWEEN_ANNOUNCEMENTS));
        self.announce_at = Some(planned.min(earliest));
    }

    fn random_within(&mut self, limit: Duration) -> Duration {
        Duration::from_nanos(self.rng.below(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX).max(1)))
    }

    fn expire(&mut self, now: Instant) {
        let is_due = |entry: &Entry| entry.ways.iter().any(|way| way.expires <= now);
        let due = self.neighbours.iter().filter(|(_, entry)| is_due(entry)).map(|(node, _)| node.clone());
        for node in due.collect::<Vec<_>>() {
            let entry = self.neighbours.get_mut(&node).expect("it is there");
            let before = entry.ways[0].way;
            if entry.ways.iter().all(|way| way.expires <= now) {
                self.lose(&node);
                continue;
            }
            entry.sort(now);
            if entry.ways[0].way != before {
                self.up.push_back(DiscoveryIndication::Moved(node));
            }
        }
    }
}

fn view(entry: &Entry) -> Neighbour {
    let first = &entry.ways[0];
    Neighbour {
        way: first.way,
        format: first.format,
        proof: first.proof,
        since: entry.since,
        last: first.last,
        ways: entry.ways.len(),
        contested: entry.contested,
    }
}

impl Engine for Neighbourhood {
    type Above = Discovery;
    type Below = Hearing;

    fn handle_request(&mut self, now: Instant, request: DiscoveryRequest) {
        match request {
            DiscoveryRequest::Join => {
                let first = now + self.random_within(FIRST_WITHIN);
                self.announce_at.get_or_insert(first);
            }
            DiscoveryRequest::Admit { admission, configured } => {
                self.config.admission = admission;
                self.config.configured = configured;
                let admits = |node: &Eid, entry: &Entry| {
                    entry.ways.iter().any(|way| self.config.admission.admits(node, way.proof))
                };
                let excluded = self.neighbours.iter().filter(|(node, entry)| !admits(node, entry));
                let excluded: Vec<Eid> = excluded.map(|(node, _)| node.clone()).collect();
                excluded.iter().for_each(|node| self.lose(node));
            }
        }
    }

    fn handle_indication(&mut self, now: Instant, HearingIndication::Heard(heard): HearingIndication) {
        self.expire(now);
        self.hear(now, heard);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.expire(now);
        if self.announce_at.is_some_and(|at| at <= now) {
            // Up to a tenth earlier, so that nodes that were started together do not stay together.
            let early = self.random_within(self.config.interval / 10);
            self.announce_at = Some(now + self.config.interval.saturating_sub(early));
            self.announced_at = Some(now);
            self.is_due = true;
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<DiscoveryIndication> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, _now: Instant) -> Option<HearingRequest> {
        if !core::mem::take(&mut self.is_due) {
            return None;
        }
        let solicits = self.solicitations_left > 0;
        self.solicitations_left = self.solicitations_left.saturating_sub(1);
        self.counters.announced += 1;
        Some(HearingRequest::Announce { solicits })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let ways = self.neighbours.values().flat_map(|entry| &entry.ways);
        earlier(self.announce_at, ways.map(|way| way.expires).min())
    }

    fn observe(&self, view: &mut Observation) {
        view.part("discovery").count(&self.counters).tell("neighbours", self.neighbours.len());
    }
}
