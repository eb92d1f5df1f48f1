//! One link with a peer that the test plays, and two links with a medium between them.

use crate::engine::{Engine, drain};
use crate::ltp::wire::{Content, DataKind, DataSegment, Report, Segment, Serials, SessionId};
use crate::ltp::{Config, Link};
use crate::rng::Rng;
use crate::service::{
    BundlesIndication, BundlesRequest, CloseReason, DatagramsIndication, DatagramsRequest, PeerId, Priority,
    TransferId,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

pub(super) const SECOND: Duration = Duration::from_secs(1);
/// Engine ID of the peer that a test plays.
pub(super) const PEER: u64 = 2;

/// Settings of the tests: one-way delay 1 s, margin 500 ms, so that timers expire after 3 s; no rate.
pub(super) fn config() -> Config {
    Config { rate_bps: 0, ..Config::default() }
}

/// Decodes all segments of a datagram.
pub(super) fn segments(mut datagram: Bytes) -> Vec<Segment> {
    let mut segments = Vec::new();
    while !datagram.is_empty() {
        segments.push(Segment::decode(&mut datagram).expect("a link sends valid segments"));
    }
    segments
}

/// Session of the peer with this number.
pub(super) fn theirs(number: u64) -> SessionId {
    SessionId { originator: PEER, number }
}

/// Data segment of the peer's session 1, as a checkpoint with these serial numbers unless they are `None`.
pub(super) fn data(
    kind: DataKind,
    offset: u64,
    serials: Option<(u64, u64)>,
    bytes: impl Into<Bytes>,
) -> Segment {
    let serials = serials.map(|(checkpoint, report)| Serials { checkpoint, report });
    let content = DataSegment { kind, client: 1, offset, serials, data: bytes.into() };
    Segment::new(theirs(1), Content::Data(content))
}

/// A bundle of version 7 for the splitting of blocks: an array with a string of this length.
pub(super) fn bundle(length: usize, fill: u8) -> Bytes {
    assert!(length >= 7, "9f 5a and four bytes of length, then ff");
    let mut bytes = vec![0x9f, 0x5a];
    bytes.extend_from_slice(&((length - 7) as u32).to_be_bytes());
    bytes.resize(length - 1, fill);
    bytes.push(0xff);
    bytes.into()
}

/// A link, its last output, and the time of it. Datagrams leave at once.
pub(super) struct Scene {
    pub(super) link: Checked<Link>,
    pub(super) now: Instant,
    pub(super) up: Vec<BundlesIndication>,
    pub(super) down: Vec<Segment>,
    /// Number of segments of each datagram of the output.
    pub(super) shared: Vec<usize>,
    /// Tokens of datagrams that have not left, if they are held back.
    pub(super) held: Option<Vec<u64>>,
    room: u64,
    next: u64,
}

impl Scene {
    pub(super) fn new(config: Config) -> Self {
        Scene::over(config, 65_507)
    }

    /// A link over datagrams of this maximum length.
    pub(super) fn over(config: Config, bytes_max: u64) -> Self {
        let link = Checked::new("ltp", Link::new(config, Rng::new(7)));
        let (now, held) = (Instant::ZERO, None);
        let mut scene =
            Scene { link, now, up: vec![], down: vec![], shared: vec![], held, room: 1_000, next: 0 };
        scene.ask(BundlesRequest::Connect);
        let peer = Some(PeerId::CONFIGURED);
        scene.tell(DatagramsIndication::Joined { bytes_max, peer, group: None });
        scene.set_room(1_000);
        scene
    }

    /// Sets the number of datagrams that the endpoint accepts at a time.
    pub(super) fn set_room(&mut self, room: u64) {
        self.room = room;
        self.tell(DatagramsIndication::Room(room));
    }

    fn settle(&mut self) {
        (self.up, self.down, self.shared) = (vec![], vec![], vec![]);
        loop {
            let mut tokens = Vec::new();
            let before = self.down.len();
            let (up, down, held) = (&mut self.up, &mut self.down, &mut self.held);
            let shared = &mut self.shared;
            drain(
                &mut self.link,
                self.now,
                |said| up.push(said),
                |asked| {
                    if let DatagramsRequest::Datagram { bytes, token, .. } = asked {
                        let segments = segments(bytes);
                        shared.push(segments.len());
                        down.extend(segments);
                        match held {
                            Some(held) => held.extend(token),
                            None => tokens.extend(token),
                        }
                    }
                },
            );
            if self.down.len() == before {
                break;
            }
            for token in tokens {
                self.link.handle_indication(self.now, DatagramsIndication::Transmitted(token));
            }
            self.link.handle_indication(self.now, DatagramsIndication::Room(self.room));
        }
        self.up.retain(|said| !matches!(said, BundlesIndication::Room(_)));
    }

    pub(super) fn ask(&mut self, request: BundlesRequest) {
        self.link.handle_request(self.now, request);
        self.settle();
    }

    pub(super) fn tell(&mut self, indication: DatagramsIndication) {
        self.link.handle_indication(self.now, indication);
        self.settle();
    }

    /// Receives segments in one datagram.
    pub(super) fn hear(&mut self, heard: &[Segment]) {
        let bytes = heard.iter().map(Segment::to_bytes).collect::<Vec<_>>().concat().into();
        let from = PeerId::CONFIGURED;
        self.tell(DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false });
    }

    /// Sends a bundle; returns the segments that leave at once.
    pub(super) fn send(&mut self, bundle: &Bytes) -> (TransferId, Vec<Segment>) {
        let transfer = TransferId(self.next);
        self.next += 1;
        let length = bundle.len() as u64;
        self.ask(BundlesRequest::Open { transfer, priority: Priority::Normal, length });
        assert_eq!(self.up, []);
        let mut sent = Vec::new();
        let mut rest = bundle.clone();
        while !rest.is_empty() {
            let data = rest.split_to(rest.len().min(2_000));
            let last = rest.is_empty();
            self.ask(BundlesRequest::Piece { transfer, data, last });
            sent.append(&mut self.down);
        }
        (transfer, sent)
    }

    pub(super) fn accept(&mut self, transfer: u64, up_to: u64) {
        self.ask(BundlesRequest::Accept { transfer: TransferId(transfer), up_to });
    }

    /// Advances to the next deadline, and returns the time until it.
    pub(super) fn wait(&mut self) -> Duration {
        let at = self.link.poll_timeout().expect("it waits for something");
        let waited = at.saturating_since(self.now);
        self.now = at;
        self.link.handle_timeout(at);
        self.settle();
        waited
    }

    /// Advances by a time, with all deadlines in it; its output is that of all of them.
    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        let (mut up, mut down) = (vec![], vec![]);
        while self.link.poll_timeout().is_some_and(|at| at <= until) {
            self.wait();
            up.append(&mut self.up);
            down.append(&mut self.down);
        }
        (self.now, self.up, self.down) = (until, up, down);
    }

    /// Returns the counters.
    pub(super) fn counters(&self) -> crate::ltp::Counters {
        *self.link.engine.counters()
    }
}

/// Serial numbers of a checkpoint.
pub(super) fn serials(segment: &Segment) -> Serials {
    let Content::Data(data) = &segment.content else { panic!("{segment:?} has no data") };
    data.serials.expect("it is a checkpoint")
}

pub(super) fn as_data(segment: &Segment) -> &DataSegment {
    let Content::Data(data) = &segment.content else { panic!("{segment:?} has no data") };
    data
}

pub(super) fn as_report(segment: &Segment) -> &Report {
    let Content::Report(report) = &segment.content else { panic!("{segment:?} is no report") };
    report
}

/// Report about a block of the link under test.
pub(super) fn report(about: &Segment, serial: u64, scope: (u64, u64), claims: &[(u64, u64)]) -> Segment {
    let checkpoint = match &about.content {
        Content::Data(data) => data.serials.map_or(0, |serials| serials.checkpoint),
        _ => 0,
    };
    let (lower, upper) = scope;
    let report = Report { serial, checkpoint, upper, lower, claims: claims.to_vec() };
    Segment::new(about.session, Content::Report(report))
}

// -- Two links ---------------------------------------------------------------------------------------------------

/// Decision on a segment: the time until it arrives, or `None` if it is lost.
pub(super) type Fate = Box<dyn FnMut(usize, &Segment) -> Option<Duration>>;

/// Two links. Datagrams leave at once; each arrives after the time that `fate` decides on.
pub(super) struct Pair {
    pub(super) links: [Checked<Link>; 2],
    pub(super) now: Instant,
    fate: Fate,
    flight: BTreeMap<(Instant, u64), (usize, Bytes)>,
    count: u64,
    rooms: [u64; 2],
    joined: [bool; 2],
    /// Bytes to send of each open transfer of node 0.
    waiting: VecDeque<(TransferId, Bytes)>,
    next: u64,
    /// Node 1 accepts what it receives.
    pub(super) accepts: bool,
    /// Received bundles of node 1, complete and incomplete.
    pub(super) received: BTreeMap<TransferId, (Vec<u8>, bool)>,
    /// Segments in the order of their departure: time, sender, segment.
    pub(super) log: Vec<(Instant, usize, Segment)>,
    /// Transfers of node 0 that have ended, with the time.
    pub(super) ended: Vec<(Instant, BundlesIndication)>,
    pub(super) lost: Vec<TransferId>,
}

impl Pair {
    pub(super) fn new(config: &Config, fate: Fate) -> Self {
        let link = |node: u64| {
            let ids = Config { engine_id: Some(node + 1), peer_engine_id: Some(2 - node), ..config.clone() };
            Checked::new("ltp", Link::new(ids, Rng::new(node)))
        };
        let mut pair = Pair {
            links: [link(0), link(1)],
            now: Instant::ZERO,
            fate,
            flight: BTreeMap::new(),
            count: 0,
            rooms: [0; 2],
            joined: [false; 2],
            waiting: VecDeque::new(),
            next: 0,
            accepts: true,
            received: BTreeMap::new(),
            log: Vec::new(),
            ended: Vec::new(),
            lost: Vec::new(),
        };
        for node in 0..2 {
            pair.links[node].handle_request(pair.now, BundlesRequest::Connect);
        }
        pair.settle();
        pair
    }

    /// Opens the endpoint of a node.
    fn join(&mut self, node: usize) {
        self.joined[node] = true;
        let joined =
            DatagramsIndication::Joined { bytes_max: 65_507, peer: Some(PeerId::CONFIGURED), group: None };
        self.links[node].handle_indication(self.now, joined);
        self.links[node].handle_indication(self.now, DatagramsIndication::Room(8));
    }

    /// Fails the endpoint of a node; it is opened again on request.
    pub(super) fn leave(&mut self, node: usize) {
        self.joined[node] = false;
        self.tell(node, DatagramsIndication::Left(CloseReason::Unreachable));
    }

    pub(super) fn tell(&mut self, node: usize, indication: DatagramsIndication) {
        self.links[node].handle_indication(self.now, indication);
        self.settle();
    }

    /// Replaces a link by one that has forgotten everything.
    pub(super) fn restart(&mut self, node: usize, config: &Config) {
        let (id, peer) = (node as u64 + 1, 2 - node as u64);
        let ids = Config { engine_id: Some(id), peer_engine_id: Some(peer), ..config.clone() };
        self.links[node] = Checked::new("ltp", Link::new(ids, Rng::new(100 + id)));
        self.rooms[node] = 0;
        self.links[node].handle_request(self.now, BundlesRequest::Connect);
        self.settle();
    }

    fn settle(&mut self) {
        while (0..2).any(|node| self.carry(node)) {}
    }

    fn carry(&mut self, node: usize) -> bool {
        let mut any = false;
        while let Some(said) = self.links[node].poll_indication(self.now) {
            self.indicated(node, said);
            any = true;
        }
        if node == 0 && self.rooms[0] > 0 && self.give() {
            return true;
        }
        match self.links[node].poll_request(self.now) {
            Some(DatagramsRequest::Datagram { bytes, token, .. }) => {
                self.depart(node, bytes);
                if let Some(token) = token {
                    self.links[node].handle_indication(self.now, DatagramsIndication::Transmitted(token));
                }
                self.links[node].handle_indication(self.now, DatagramsIndication::Room(8));
                true
            }
            Some(DatagramsRequest::Join { .. }) => {
                self.join(node);
                true
            }
            Some(DatagramsRequest::Leave) => {
                self.joined[node] = false;
                true
            }
            Some(DatagramsRequest::Release(_)) => true,
            None => any,
        }
    }

    fn depart(&mut self, node: usize, bytes: Bytes) {
        let mut delay = None;
        for segment in segments(bytes.clone()) {
            // HDTN accepts no segment without data.
            assert!(!matches!(&segment.content, Content::Data(data) if data.data.is_empty()), "{segment:?}");
            delay = (self.fate)(node, &segment);
            self.log.push((self.now, node, segment));
        }
        if let Some(delay) = delay {
            self.count += 1;
            self.flight.insert((self.now + delay, self.count), (1 - node, bytes));
        }
    }

    fn indicated(&mut self, node: usize, said: BundlesIndication) {
        match said {
            BundlesIndication::Room(room) => self.rooms[node] = room,
            BundlesIndication::Down { .. } => self.rooms[node] = 0,
            BundlesIndication::Sent { .. } | BundlesIndication::Failed { .. } => {
                self.ended.push((self.now, said))
            }
            BundlesIndication::Piece { transfer, data, last } => {
                let bundle = self.received.entry(transfer).or_default();
                bundle.0.extend_from_slice(&data);
                bundle.1 = last;
                if self.accepts {
                    let up_to = bundle.0.len() as u64;
                    self.links[node].handle_request(self.now, BundlesRequest::Accept { transfer, up_to });
                }
            }
            BundlesIndication::Lost { transfer } => self.lost.push(transfer),
            _ => {}
        }
    }

    /// Accepts everything that node 1 has received.
    pub(super) fn accept_all(&mut self) {
        let all: Vec<_> = self.received.iter().map(|(transfer, (data, _))| (*transfer, data.len())).collect();
        for (transfer, length) in all {
            let request = BundlesRequest::Accept { transfer, up_to: length as u64 };
            self.links[1].handle_request(self.now, request);
            self.settle();
        }
    }

    /// Passes a piece of the first waiting bundle to node 0.
    fn give(&mut self) -> bool {
        let Some((transfer, rest)) = self.waiting.front_mut() else { return false };
        let (transfer, length) = (*transfer, (rest.len() as u64).min(self.rooms[0]));
        let data = rest.split_to(length as usize);
        let last = rest.is_empty();
        if last {
            self.waiting.pop_front();
        }
        self.rooms[0] -= length;
        self.links[0].handle_request(self.now, BundlesRequest::Piece { transfer, data, last });
        true
    }

    /// Opens a bundle at node 0, whose pieces follow as there is room.
    pub(super) fn send(&mut self, bundle: &Bytes) {
        let transfer = TransferId(self.next);
        self.next += 1;
        let length = bundle.len() as u64;
        let open = BundlesRequest::Open { transfer, priority: Priority::Normal, length };
        self.links[0].handle_request(self.now, open);
        self.waiting.push_back((transfer, bundle.clone()));
    }

    /// Runs until nothing is left to happen, at most for this time. Returns true if nothing is left.
    pub(super) fn run(&mut self, most: Duration) -> bool {
        self.settle();
        let limit = self.now + most;
        loop {
            let timeouts = self.links.iter().filter_map(|link| link.poll_timeout());
            let arrival = self.flight.first_key_value().map(|((at, _), _)| *at);
            let Some(at) = timeouts.chain(arrival).min() else { return true };
            if at > limit {
                self.now = limit;
                return false;
            }
            self.now = at;
            if arrival == Some(at) {
                let (_, (node, bytes)) = self.flight.pop_first().expect("it was just seen");
                let from = PeerId::CONFIGURED;
                let datagram = DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false };
                if self.joined[node] {
                    self.links[node].handle_indication(at, datagram);
                    self.settle();
                }
            }
            for node in 0..2 {
                if self.links[node].poll_timeout().is_some_and(|due| due <= at) {
                    self.links[node].handle_timeout(at);
                    self.settle();
                }
            }
        }
    }

    /// Returns the number of segments of a node that meet a condition.
    pub(super) fn count(&self, node: usize, is: impl Fn(&Content) -> bool) -> usize {
        self.log.iter().filter(|(_, from, segment)| *from == node && is(&segment.content)).count()
    }

    /// Returns all complete bundles that node 1 has received, sorted.
    pub(super) fn bundles(&self) -> Vec<Bytes> {
        let whole = self.received.values().filter(|(_, whole)| *whole);
        let mut bundles: Vec<_> = whole.map(|(data, _)| Bytes::copy_from_slice(data)).collect();
        bundles.sort();
        bundles
    }

    /// Returns the number of transfers that were sent, and of those that failed.
    pub(super) fn ends(&self) -> (usize, usize) {
        let sent = self.ended.iter().filter(|(_, end)| matches!(end, BundlesIndication::Sent { .. })).count();
        (sent, self.ended.len() - sent)
    }
}

/// Fate of a medium without faults: every segment takes one second.
pub(super) fn perfect() -> Fate {
    Box::new(|_, _| Some(SECOND))
}
