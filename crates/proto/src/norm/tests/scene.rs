//! Sessions on a medium with delay, rate and losses, in virtual time.

use crate::engine::Engine;
use crate::norm::{Config, Counters, Session};
use crate::rng::Rng;
use crate::service::{
    DatagramsIndication, DatagramsRequest, ObjectKind, ObjectsIndication, ObjectsRequest, PeerId,
};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// Number by which a group is known.
const GROUP: PeerId = PeerId(1_000);

/// Received object.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    pub(super) kind: ObjectKind,
    pub(super) info: Option<Bytes>,
    pub(super) bytes: BytesMut,
    pub(super) is_whole: bool,
    pub(super) is_lost: bool,
    /// Places in `bytes` at which messages of a stream begin, and gaps before places.
    pub(super) messages: Vec<usize>,
    pub(super) gaps: Vec<(usize, u32)>,
}

/// Node of a scene.
pub(super) struct Node {
    pub(super) session: Session,
    rng: Rng,
    /// Share of the datagrams to it that are lost.
    pub(super) loss: f64,
    pub(super) received: BTreeMap<u64, Received>,
    /// Objects that were sent, and those that failed, with their times.
    pub(super) sent: Vec<(u64, Instant)>,
    pub(super) failed: Vec<u64>,
    /// Number of bytes of streams that were acknowledged.
    pub(super) acknowledged: u64,
    contents: VecDeque<(u64, Bytes)>,
    room: u64,
    /// Accepts what it receives.
    pub(super) accepts: bool,
    /// Time at which its line is free.
    free_at: Instant,
    is_deaf: bool,
}

impl Node {
    /// Number of bytes that may be given.
    pub(super) fn room(&self) -> u64 {
        self.room
    }
}

/// Sessions on a medium.
pub(super) struct Scene {
    pub(super) now: Instant,
    pub(super) nodes: Vec<Node>,
    is_group: bool,
    /// Answers of the only receiver come from another address than the one that is configured.
    pub(super) answers_from_elsewhere: bool,
    delay: Duration,
    /// Rate of a node's line, bit/s; zero without limit.
    rate_bps: u64,
    arrivals: BTreeMap<(Instant, u64), (usize, usize, bool, Bytes)>,
    rooms: BTreeMap<(Instant, u64), usize>,
    count: u64,
    /// All datagrams that left, with their times and nodes.
    pub(super) tape: Vec<(Instant, usize, Bytes)>,
}

impl Scene {
    /// Node 0 with one peer, or with several in a group.
    pub(super) fn new(configs: Vec<Config>, is_group: bool, delay: Duration, seed: u64) -> Self {
        let rng = Rng::new(seed);
        let nodes = configs.into_iter().enumerate().map(|(index, config)| {
            let config = Config { norm_node_id: Some(index as u32 + 1), ..config };
            Node {
                session: Session::new(config, rng.fork(&format!("session {index}"))),
                rng: rng.fork(&format!("losses {index}")),
                loss: 0.0,
                received: BTreeMap::new(),
                sent: Vec::new(),
                failed: Vec::new(),
                acknowledged: 0,
                contents: VecDeque::new(),
                room: 0,
                accepts: true,
                free_at: Instant::ZERO,
                is_deaf: false,
            }
        });
        let mut scene = Scene {
            now: Instant::ZERO,
            nodes: nodes.collect(),
            is_group,
            answers_from_elsewhere: false,
            delay,
            rate_bps: 0,
            arrivals: BTreeMap::new(),
            rooms: BTreeMap::new(),
            count: 0,
            tape: Vec::new(),
        };
        for node in 0..scene.nodes.len() {
            scene.request(node, ObjectsRequest::Connect);
        }
        scene
    }

    pub(super) fn losing(mut self, loss: f64) -> Self {
        self.nodes.iter_mut().skip(1).for_each(|node| node.loss = loss);
        self
    }

    pub(super) fn request(&mut self, node: usize, request: ObjectsRequest) {
        self.nodes[node].session.handle_request(self.now, request);
        self.drain(node);
    }

    /// Sends an object.
    pub(super) fn send(
        &mut self,
        node: usize,
        object: u64,
        kind: ObjectKind,
        info: Option<Bytes>,
        bytes: Bytes,
    ) {
        let length = bytes.len() as u64;
        self.nodes[node].contents.push_back((object, bytes));
        self.request(node, ObjectsRequest::Send { object, kind, info, length });
    }

    pub(super) fn send_data(&mut self, node: usize, object: u64, bytes: Bytes) {
        self.send(node, object, ObjectKind::Data, None, bytes);
    }

    /// Opens a stream.
    pub(super) fn open(&mut self, node: usize, object: u64, buffer_bytes: u64) {
        let (kind, info) = (ObjectKind::Stream, None);
        self.request(node, ObjectsRequest::Send { object, kind, info, length: buffer_bytes });
    }

    /// Writes to a stream as soon as there is room, and closes it.
    pub(super) fn write_all(&mut self, node: usize, object: u64, bytes: Bytes) {
        self.nodes[node].contents.push_back((object, bytes));
        self.drain(node);
    }

    /// Writes a message to a stream, and sends it at once.
    pub(super) fn write_message(&mut self, node: usize, object: u64, data: Bytes) {
        assert!(self.nodes[node].room >= data.len() as u64, "there is room for the message");
        self.request(node, ObjectsRequest::Content { object, data, last: false });
        self.request(node, ObjectsRequest::EndMessage { object });
        self.request(node, ObjectsRequest::Flush { object });
    }

    /// Replaces a node by one that has just begun.
    pub(super) fn restart(&mut self, node: usize, config: Config, seed: u64) {
        let config = Config { norm_node_id: Some(node as u32 + 1), ..config };
        self.nodes[node].session = Session::new(config, Rng::new(seed));
        self.nodes[node].contents.clear();
        self.nodes[node].received.clear();
        self.request(node, ObjectsRequest::Connect);
    }

    fn joined(&mut self, node: usize) {
        let peer = if self.is_group { None } else { Some(PeerId::CONFIGURED) };
        let group = self.is_group.then_some(GROUP);
        let session = &mut self.nodes[node].session;
        session.handle_indication(self.now, DatagramsIndication::Joined { bytes_max: 65_507, peer, group });
        session.handle_indication(self.now, DatagramsIndication::Room(1));
    }

    /// Delivers a datagram as if it came from a node.
    pub(super) fn deliver(&mut self, from: usize, to: usize, to_group: bool, bytes: Bytes) {
        let is_named = self.is_group || (from == 1 && self.answers_from_elsewhere);
        let from = if is_named { PeerId(from as u32 + 1) } else { PeerId::CONFIGURED };
        let datagram = DatagramsIndication::Datagram { from, to_group, bytes, damaged: false };
        self.nodes[to].session.handle_indication(self.now, datagram);
        self.drain(to);
    }

    /// Loses all datagrams to a node from now on, or no longer.
    pub(super) fn deafen(&mut self, node: usize, is_deaf: bool) {
        self.nodes[node].is_deaf = is_deaf;
    }

    fn leave(&mut self, node: usize, to: PeerId, bytes: Bytes) {
        let air = match self.rate_bps {
            0 => Duration::ZERO,
            rate => Duration::from_nanos((bytes.len() as u64 + 28) * 8 * 1_000_000_000 / rate),
        };
        let start = self.nodes[node].free_at.max(self.now);
        self.nodes[node].free_at = start + air;
        self.tape.push((start, node, bytes.clone()));
        let to_group = to == GROUP;
        let receivers: Vec<usize> = match self.is_group {
            false => vec![1 - node],
            true if to_group => (0..self.nodes.len()).filter(|other| *other != node).collect(),
            true => vec![to.0 as usize - 1],
        };
        for other in receivers {
            let receiver = &mut self.nodes[other];
            if !receiver.rng.chance(receiver.loss) && !receiver.is_deaf {
                self.count += 1;
                let at = start + air + self.delay;
                self.arrivals.insert((at, self.count), (node, other, to_group, bytes.clone()));
            }
        }
        self.count += 1;
        self.rooms.insert((start + air, self.count), node);
    }

    fn drain(&mut self, node: usize) {
        loop {
            if let Some(indication) = self.nodes[node].session.poll_indication(self.now) {
                self.indicated(node, indication);
                continue;
            }
            match self.nodes[node].session.poll_request(self.now) {
                Some(DatagramsRequest::Join { .. }) => self.joined(node),
                Some(DatagramsRequest::Datagram { to, bytes, .. }) => self.leave(node, to, bytes),
                Some(DatagramsRequest::Leave | DatagramsRequest::Release(_)) => {}
                None if self.give(node) => {}
                None => return,
            }
        }
    }

    /// Gives contents for which there is room.
    fn give(&mut self, index: usize) -> bool {
        let node = &mut self.nodes[index];
        let Some((object, bytes)) = node.contents.front_mut().filter(|_| node.room > 0) else { return false };
        let data = bytes.split_to(bytes.len().min(node.room as usize).min(10_000));
        let (object, last) = (*object, bytes.is_empty());
        node.room -= data.len() as u64;
        if last {
            node.contents.pop_front();
        }
        node.session.handle_request(self.now, ObjectsRequest::Content { object, data, last });
        true
    }

    fn indicated(&mut self, index: usize, indication: ObjectsIndication) {
        let node = &mut self.nodes[index];
        match indication {
            ObjectsIndication::Room(room) => node.room = room,
            ObjectsIndication::Sent { object } => node.sent.push((object, self.now)),
            ObjectsIndication::Failed { object, .. } => {
                node.contents.retain(|(other, _)| *other != object);
                node.failed.push(object);
            }
            ObjectsIndication::Begin { incoming, kind, info, .. } => {
                node.received.insert(incoming, Received { kind, info, ..Received::default() });
            }
            ObjectsIndication::Piece { incoming, data, last } => {
                let received = node.received.get_mut(&incoming).expect("it has begun");
                received.bytes.extend_from_slice(&data);
                received.is_whole = last;
                let up_to = received.bytes.len() as u64;
                if node.accepts {
                    node.session.handle_request(self.now, ObjectsRequest::Accept { incoming, up_to });
                }
            }
            ObjectsIndication::Acknowledged { up_to, .. } => node.acknowledged = up_to,
            ObjectsIndication::Message { incoming } => {
                let received = node.received.get_mut(&incoming).expect("it has begun");
                received.messages.push(received.bytes.len());
            }
            ObjectsIndication::Gap { incoming, bytes } => {
                let received = node.received.get_mut(&incoming).expect("it has begun");
                received.gaps.push((received.bytes.len(), bytes));
            }
            ObjectsIndication::Info { incoming, info } => {
                node.received.get_mut(&incoming).expect("it has begun").info = Some(info);
            }
            ObjectsIndication::Lost { incoming } => {
                node.received.get_mut(&incoming).expect("it has begun").is_lost = true;
            }
            ObjectsIndication::Up { .. } | ObjectsIndication::Down { .. } => {}
        }
    }

    /// Lets the next event happen; false if none comes before a time.
    fn step(&mut self, end: Instant) -> bool {
        let timeouts = self.nodes.iter().filter_map(|node| node.session.poll_timeout());
        let arrival = self.arrivals.keys().next().map(|(at, _)| *at);
        let room = self.rooms.keys().next().map(|(at, _)| *at);
        let Some(next) = timeouts.chain(arrival).chain(room).min().filter(|next| *next <= end) else {
            self.now = end;
            return false;
        };
        self.now = next.max(self.now);
        while let Some(entry) = self.rooms.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let node = entry.remove();
            self.nodes[node].session.handle_indication(self.now, DatagramsIndication::Room(1));
            self.drain(node);
        }
        while let Some(entry) = self.arrivals.first_entry().filter(|entry| entry.key().0 <= self.now) {
            let (from, to, to_group, bytes) = entry.remove();
            self.deliver(from, to, to_group, bytes);
        }
        for node in 0..self.nodes.len() {
            if self.nodes[node].session.poll_timeout().is_some_and(|at| at <= self.now) {
                self.nodes[node].session.handle_timeout(self.now);
                self.drain(node);
            }
        }
        true
    }

    /// Lets time pass until a condition holds; false if it does not within the limit.
    pub(super) fn run_until(&mut self, limit: Duration, mut holds: impl FnMut(&Scene) -> bool) -> bool {
        let end = self.now + limit;
        while !holds(self) {
            if !self.step(end) {
                return holds(self);
            }
        }
        true
    }

    pub(super) fn run(&mut self, limit: Duration) {
        self.run_until(limit, |_| false);
    }

    pub(super) fn counters(&self, node: usize) -> &Counters {
        self.nodes[node].session.counters()
    }
}

/// Bytes that no other object has.
pub(super) fn contents(length: usize, seed: u64) -> Bytes {
    let mut bytes = vec![0; length];
    Rng::new(seed).fill(&mut bytes);
    bytes.into()
}
