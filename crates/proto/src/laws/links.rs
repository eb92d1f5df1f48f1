//! Users of packet links: each has packets for each other one, connects, sends, closes, and connects again until all
//! packets are acknowledged.

use super::{Draw, Users};
use crate::rng::Rng;
use crate::service::{CloseReason, LinkId, Many, Packets, PacketsIndication, PacketsRequest};
use crate::time::{Duration, Instant};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

type NodePort = (usize, LinkId);

/// Behaviour of the users.
#[derive(Clone, Debug)]
pub(crate) struct LinkUserBehaviour {
    /// Maximum time for which a packet is held before it is released.
    pub(crate) slow: Duration,
    /// Probability that a packet makes its user abort the link, close it, or answer at once.
    pub(crate) aborts: f64,
    pub(crate) closes: f64,
    pub(crate) answers: f64,
    /// Maximum length of a packet, bytes.
    pub(crate) bytes_max: u64,
    /// False if bytes are forged: then only panics are detected.
    pub(crate) trusting: bool,
}

impl LinkUserBehaviour {
    pub(crate) fn draw(rng: &mut Rng, trusting: bool) -> Self {
        LinkUserBehaviour {
            slow: if rng.chance(0.5) {
                Duration::ZERO
            } else {
                rng.span(Duration::ZERO, Duration::from_secs(20))
            },
            aborts: rng.share(0.02),
            closes: rng.share(0.02),
            answers: rng.share(0.5),
            bytes_max: if rng.chance(0.3) { 3_000 } else { 300 },
            trusting,
        }
    }
}

/// Packets of one node for another.
#[derive(Debug, Default)]
struct PacketsToSend {
    /// Lengths of the packets that are not acknowledged yet.
    left: VecDeque<u64>,
    /// Link on which this node connects, if it does.
    calls: Option<LinkId>,
}

/// One side of a connection.
#[derive(Debug)]
struct Side {
    peer: usize,
    /// Identifies the packets of this side.
    tag: u32,
    generation: u32,
    connected: bool,
    bytes_max: u64,
    room: u64,
    handed: usize,
    acknowledged: u64,
    /// Tag of the received packets, and their number.
    hears: Option<(u32, usize)>,
    closing: bool,
}

#[derive(Debug)]
enum Action {
    Call(usize, usize),
    Release(NodePort, u32),
    Ask(NodePort, u32, PacketsRequest),
}

/// Users of all nodes, which connect to each other on given links.
pub(crate) struct LinkUsers {
    rng: Rng,
    habits: LinkUserBehaviour,
    faults_are_on: bool,
    running: Vec<bool>,
    wishes: BTreeMap<(usize, usize), PacketsToSend>,
    sides: BTreeMap<NodePort, Side>,
    /// All packets sent, by tag: sender, destination, packets, and the number that the destination has received.
    sent: Vec<(usize, usize, Vec<Bytes>, usize)>,
    generation: u32,
    /// Number of acknowledged packets.
    acknowledged: u64,
    /// Scheduled connections: from, to.
    planned: BTreeSet<(usize, usize)>,
    actions: BTreeMap<(Instant, u64), Action>,
    count: u64,
    requests: VecDeque<(usize, (LinkId, PacketsRequest))>,
}

/// Returns the name of a node.
pub(crate) fn name(node: usize) -> String {
    format!("N{node}")
}

const TAG_BYTES: u64 = 8;

fn content(tag: u32, index: usize, length: u64) -> Bytes {
    let mut bytes = BytesMut::new();
    bytes.put_u32(tag);
    bytes.put_u32(index as u32);
    bytes.resize(length.max(TAG_BYTES) as usize, (tag as u8) ^ (index as u8));
    bytes.freeze()
}

impl LinkUsers {
    /// Creates the users. `calls` contains the connecting node, its peer and the link; both have up to `packets_max`
    /// packets for the other.
    pub(crate) fn new(
        mut rng: Rng,
        habits: LinkUserBehaviour,
        nodes: usize,
        calls: &[(usize, usize, LinkId)],
        packets_max: u64,
    ) -> Self {
        let mut wishes: BTreeMap<(usize, usize), PacketsToSend> = BTreeMap::new();
        for &(from, to, id) in calls {
            for key in [(from, to), (to, from)] {
                let wish = wishes.entry(key).or_default();
                let count = rng.below(packets_max + 1);
                let lengths = (0..count).map(|_| TAG_BYTES + rng.below(habits.bytes_max));
                wish.left.extend(lengths);
            }
            wishes.entry((from, to)).or_default().calls = Some(id);
        }
        LinkUsers {
            rng,
            habits,
            faults_are_on: true,
            running: vec![false; nodes],
            wishes,
            sides: BTreeMap::new(),
            sent: Vec::new(),
            generation: 0,
            acknowledged: 0,
            planned: BTreeSet::new(),
            actions: BTreeMap::new(),
            count: 0,
            requests: VecDeque::new(),
        }
    }

    fn at(&mut self, at: Instant, action: Action) {
        self.count += 1;
        self.actions.insert((at, self.count), action);
    }

    fn plan_call(&mut self, at: Instant, from: usize, to: usize) {
        if self.planned.insert((from, to)) {
            self.at(at, Action::Call(from, to));
        }
    }

    fn ask(&mut self, port: NodePort, request: PacketsRequest) {
        self.requests.push_back((port.0, (port.1, request)));
    }

    fn has_wishes(&self, one: usize, other: usize) -> bool {
        let left = |key| self.wishes.get(&key).is_some_and(|wish: &PacketsToSend| !wish.left.is_empty());
        left((one, other)) || left((other, one))
    }

    fn call(&mut self, from: usize, to: usize) {
        let Some(id) = self.wishes.get(&(from, to)).and_then(|wish| wish.calls) else { return };
        let open = self.sides.iter().any(|(port, side)| port.0 == from && side.peer == to);
        if open || !self.running[from] || !self.has_wishes(from, to) {
            return;
        }
        let side = self.side(from, to);
        self.sides.insert((from, id), side);
        self.ask((from, id), PacketsRequest::Connect);
    }

    fn side(&mut self, node: usize, peer: usize) -> Side {
        self.generation += 1;
        let tag = self.sent.len() as u32;
        self.sent.push((node, peer, Vec::new(), 0));
        Side {
            peer,
            tag,
            generation: self.generation,
            connected: false,
            bytes_max: 0,
            room: 0,
            handed: 0,
            acknowledged: 0,
            hears: None,
            closing: false,
        }
    }

    fn connected(&mut self, port: NodePort, peer: &str, bytes_max: u32) {
        let peer = (0..self.running.len()).find(|node| name(*node) == peer);
        let Some(peer) = peer else {
            assert!(!self.habits.trusting, "a peer that is none");
            return;
        };
        if !self.sides.contains_key(&port) {
            assert!(port.1.is_incoming(), "{port:?} of a peer that called");
            let another = self
                .sides
                .iter()
                .find(|(other, side)| other.0 == port.0 && side.peer == peer && side.connected);
            assert!(another.is_none(), "two links between {port:?} and {peer}");
            let side = self.side(port.0, peer);
            self.sides.insert(port, side);
        }
        let side = self.sides.get_mut(&port).expect("just made");
        assert_eq!(side.peer, peer, "{port:?} stands with another one");
        (side.connected, side.bytes_max) = (true, bytes_max.into());
        self.may_close(port);
    }

    fn hears(&mut self, now: Instant, port: NodePort, packet: &Bytes) {
        let Some(side) = self.sides.get_mut(&port) else { return };
        let generation = side.generation;
        if self.habits.trusting {
            let number =
                |at: usize| packet.get(at..at + 4).map(|four| u32::from_be_bytes(four.try_into().unwrap()));
            let (tag, index) = (number(0).expect("a tag"), number(4).expect("an index") as usize);
            let (from, to, sent, came) = self.sent.get_mut(tag as usize).expect("a tag that was given");
            let (before, next) = side.hears.unwrap_or((tag, 0));
            assert_eq!(
                (before, *from, *to),
                (tag, side.peer, port.0),
                "a packet of another connection on {port:?}"
            );
            assert_eq!(index, next, "packets on {port:?} are out of order");
            assert_eq!(sent.get(index), Some(packet), "a packet on {port:?} is not what was sent");
            // After a second connection request the peer's packets since the first one arrive from the beginning.
            *came = (*came).max(index + 1);
            side.hears = Some((tag, index + 1));
        }
        let (slow, habits) = (self.habits.slow, self.habits.clone());
        let delay = if self.faults_are_on { self.rng.span(Duration::ZERO, slow) } else { Duration::ZERO };
        self.at(now + delay, Action::Release(port, generation));
        for (chance, request) in [
            (habits.aborts, PacketsRequest::Abort),
            (habits.closes, PacketsRequest::Close),
            (habits.answers, PacketsRequest::Acknowledge),
        ] {
            if self.faults_are_on && self.rng.chance(chance) {
                self.at(now, Action::Ask(port, generation, request));
            }
        }
    }

    fn acknowledged(&mut self, port: NodePort, all: u64) {
        let Some(side) = self.sides.get_mut(&port) else { return };
        let came = self.sent[side.tag as usize].3 as u64;
        assert!(!self.habits.trusting || all <= came, "{all} acknowledged on {port:?}, and {came} have come");
        let wish = self.wishes.entry((port.0, side.peer)).or_default();
        for _ in side.acknowledged..all {
            wish.left.pop_front();
            self.acknowledged += 1;
        }
        side.acknowledged = all;
    }

    fn ended(&mut self, now: Instant, port: NodePort, reason: CloseReason) {
        let Some(side) = self.sides.remove(&port) else { return };
        let (one, other) = (port.0, side.peer);
        assert!(reason != CloseReason::Unreachable, "{port:?} is known");
        for (from, to) in [(one, other), (other, one)] {
            let soon = now + Duration::from_millis(1 + self.rng.below(20_000));
            self.plan_call(soon, from, to);
        }
    }

    /// Closes the link when neither side has packets left.
    fn may_close(&mut self, port: NodePort) {
        let Some(side) = self.sides.get(&port) else { return };
        if side.connected && !side.closing && !self.has_wishes(port.0, side.peer) {
            self.sides.get_mut(&port).expect("just seen").closing = true;
            self.ask(port, PacketsRequest::Close);
        }
    }

    fn is_current(&self, port: NodePort, generation: u32) -> bool {
        self.sides.get(&port).is_some_and(|side| side.generation == generation)
    }
}

impl Users<Many<LinkId, Packets>> for LinkUsers {
    fn started(&mut self, now: Instant, node: usize) {
        self.running[node] = true;
        for to in 0..self.running.len() {
            let soon = now + Duration::from_millis(self.rng.below(3_000));
            self.plan_call(soon, node, to);
        }
    }

    fn crashed(&mut self, _now: Instant, node: usize) {
        self.running[node] = false;
        self.requests.retain(|&(at, _)| at != node);
        self.sides.retain(|port, _| port.0 != node);
    }

    fn calm(&mut self, now: Instant) {
        self.faults_are_on = false;
        let pairs: Vec<_> = self.wishes.keys().copied().collect();
        pairs.into_iter().for_each(|(from, to)| self.plan_call(now, from, to));
    }

    fn handle_indication(&mut self, now: Instant, node: usize, (link, said): (LinkId, PacketsIndication)) {
        let port = (node, link);
        match said {
            PacketsIndication::Connected { bytes_max, peer, .. } => self.connected(port, &peer, bytes_max),
            PacketsIndication::Sizes { bytes_max, .. } => {
                if let Some(side) = self.sides.get_mut(&port) {
                    side.bytes_max = bytes_max.into();
                }
            }
            PacketsIndication::Room(room) => {
                if let Some(side) = self.sides.get_mut(&port) {
                    side.room = room;
                }
            }
            PacketsIndication::Packet(packet) => {
                self.hears(now, port, &packet);
                self.may_close(port);
            }
            PacketsIndication::Acknowledged(all) => {
                self.acknowledged(port, all);
                self.may_close(port);
            }
            PacketsIndication::Closed(reason) => self.ended(now, port, reason),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.actions.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Action::Call(from, to) => {
                    self.planned.remove(&(from, to));
                    self.call(from, to);
                }
                Action::Release(port, generation) => {
                    if self.is_current(port, generation) {
                        self.ask(port, PacketsRequest::Release(1));
                    }
                }
                Action::Ask(port, generation, request) => {
                    if self.is_current(port, generation) {
                        let side = self.sides.get_mut(&port).expect("it is current");
                        side.closing |= request != PacketsRequest::Acknowledge;
                        self.ask(port, request);
                    }
                }
            }
        }
    }

    fn poll_request(&mut self, _now: Instant) -> Option<(usize, (LinkId, PacketsRequest))> {
        if let Some(request) = self.requests.pop_front() {
            return Some(request);
        }
        for (port, side) in &mut self.sides {
            let Some(wish) = self.wishes.get(&(port.0, side.peer)) else { continue };
            let next = side.handed - side.acknowledged as usize;
            let Some(&length) = wish.left.get(next).filter(|_| side.room > 0 && !side.closing) else {
                continue;
            };
            side.room -= 1;
            let packet = content(side.tag, side.handed, length.min(side.bytes_max));
            side.handed += 1;
            self.sent[side.tag as usize].2.push(packet.clone());
            return Some((port.0, (port.1, PacketsRequest::payload(packet))));
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.actions.first_key_value().map(|(&(at, _), _)| at)
    }

    fn sent(&self) -> u64 {
        self.acknowledged
    }

    fn unsettled(&self) -> Option<String> {
        if let Some(((from, to), wish)) = self.wishes.iter().find(|(_, wish)| !wish.left.is_empty()) {
            return Some(format!("{from} has {} packets for {to} still", wish.left.len()));
        }
        let port = self.sides.keys().next()?;
        Some(format!("{port:?} is still open"))
    }

    fn want_ends(&self) -> bool {
        self.habits.trusting
    }
}
