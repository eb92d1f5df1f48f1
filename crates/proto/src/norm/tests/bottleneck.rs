//! Flows of objects through one queue that drops what it has no room for, in virtual time.

use crate::engine::Engine;
use crate::norm::{Config, Session};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    DatagramsIndication, DatagramsRequest, ObjectKind, ObjectsIndication, ObjectsRequest, PeerId,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Length of the headers of UDP and IP, bytes.
const OUTSIDE_BYTES: u64 = 28;
/// Length of each object, bytes, and the number of objects under way.
const OBJECT_BYTES: u64 = 1 << 20;
const OBJECTS: u64 = 60;
/// Length of the pieces that a user gives.
const PIECE_BYTES: u64 = 1 << 16;

/// A probe at the time zero would have no time.
const BEGIN: Instant = Instant::from_secs(1);

/// A sender and its receiver, which have the numbers 2 n and 2 n + 1.
struct Node {
    session: Session,
    room: u64,
    /// Number of the object that is given, and its bytes that are left.
    given: (u64, u64),
    sent: u64,
    received: u64,
}

/// Path that all flows share, in the direction of the data.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    pub(super) rate_bps: u64,
    pub(super) queue_bytes: u64,
    /// Delay of each direction.
    pub(super) delay: Duration,
    /// Share of the messages that are lost behind the queue.
    pub(super) loss: f64,
    /// All messages are lost.
    pub(super) is_cut: bool,
}

impl Path {
    /// A path with a queue for the bytes of a round trip, or for twenty messages.
    pub(super) fn new(rate_bps: u64, round_trip: Duration) -> Self {
        let product = rate_bps as f64 / 8.0 * round_trip.as_secs_f64();
        let queue_bytes = (product as u64).max(20 * 1_500);
        Path { rate_bps, queue_bytes, delay: round_trip / 2, loss: 0.0, is_cut: false }
    }
}

/// Flows through one queue.
pub(super) struct Bottleneck {
    pub(super) now: Instant,
    pub(super) path: Path,
    nodes: Vec<Node>,
    free_at: Instant,
    rng: Rng,
    count: u64,
    arrivals: BTreeMap<(Instant, u64), (usize, Bytes)>,
    /// Messages that the queue dropped.
    pub(super) dropped: u64,
    /// Departures of messages with their nodes, if they are to be kept.
    pub(super) tape: Option<Vec<(Instant, usize, Bytes)>>,
}

impl Bottleneck {
    pub(super) fn new(path: Path, flows: Vec<Config>, seed: u64) -> Self {
        let rng = Rng::new(seed);
        let of_flow = |(flow, config): (usize, Config)| {
            let node = |side: usize| {
                let number = 2 * flow + side;
                let config = Config { norm_node_id: Some(number as u32 + 1), ..config.clone() };
                let session = Session::new(config, rng.fork(&format!("session {number}")));
                Node { session, room: 0, given: (0, 0), sent: 0, received: 0 }
            };
            [node(0), node(1)]
        };
        let nodes: Vec<Node> = flows.into_iter().enumerate().flat_map(of_flow).collect();
        let mut all = Bottleneck {
            now: BEGIN,
            path,
            nodes,
            free_at: Instant::ZERO,
            rng: rng.fork("losses"),
            count: 0,
            arrivals: BTreeMap::new(),
            dropped: 0,
            tape: None,
        };
        for node in 0..all.nodes.len() {
            all.nodes[node].session.handle_request(BEGIN, ObjectsRequest::Connect);
            all.drain(node);
        }
        all
    }

    /// Lets a flow begin: it always has more to send.
    pub(super) fn begin(&mut self, flow: usize) {
        for _ in 0..OBJECTS {
            self.send(2 * flow);
        }
        self.drain(2 * flow);
    }

    fn send(&mut self, node: usize) {
        self.nodes[node].sent += 1;
        let object = self.nodes[node].sent;
        let request =
            ObjectsRequest::Send { object, kind: ObjectKind::Data, info: None, length: OBJECT_BYTES };
        self.nodes[node].session.handle_request(self.now, request);
    }

    /// Bytes that the receiver of a flow has.
    pub(super) fn received(&self, flow: usize) -> u64 {
        self.nodes[2 * flow + 1].received
    }

    /// Rate of a flow's sender, bit/s.
    pub(super) fn rate_bps(&self, flow: usize) -> u64 {
        let view = Observation::of(&self.nodes[2 * flow].session);
        let part = view.parts.iter().find(|part| part.engine == "norm").expect("its part");
        part.number("rate_bps").expect("it is told")
    }

    /// Delivers a message to a node at once.
    pub(super) fn deliver(&mut self, to: usize, bytes: Bytes) {
        let from = PeerId::CONFIGURED;
        let datagram = DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false };
        self.nodes[to].session.handle_indication(self.now, datagram);
        self.drain(to);
    }

    fn leave(&mut self, node: usize, bytes: Bytes) {
        if let Some(tape) = &mut self.tape {
            tape.push((self.now, node, bytes.clone()));
        }
        self.nodes[node].session.handle_indication(self.now, DatagramsIndication::Room(1));
        self.count += 1;
        let to = node ^ 1;
        if node % 2 == 1 {
            self.arrivals.insert((self.now + self.path.delay, self.count), (to, bytes));
            return;
        }
        let bits = |bytes: u64| Duration::from_secs_f64(bytes as f64 * 8.0 / self.path.rate_bps as f64);
        let length = bytes.len() as u64 + OUTSIDE_BYTES;
        if self.free_at.saturating_since(self.now) + bits(length) > bits(self.path.queue_bytes) {
            self.dropped += 1;
            return;
        }
        self.free_at = self.free_at.max(self.now) + bits(length);
        if !self.path.is_cut && !self.rng.chance(self.path.loss) {
            self.arrivals.insert((self.free_at + self.path.delay, self.count), (to, bytes));
        }
    }

    fn drain(&mut self, node: usize) {
        loop {
            if let Some(indication) = self.nodes[node].session.poll_indication(self.now) {
                self.indicated(node, indication);
                continue;
            }
            match self.nodes[node].session.poll_request(self.now) {
                Some(DatagramsRequest::Join { .. }) => {
                    let peer = Some(PeerId::CONFIGURED);
                    let session = &mut self.nodes[node].session;
                    let joined = DatagramsIndication::Joined { bytes_max: 65_507, peer, group: None };
                    session.handle_indication(self.now, joined);
                    session.handle_indication(self.now, DatagramsIndication::Room(1));
                }
                Some(DatagramsRequest::Datagram { bytes, .. }) => self.leave(node, bytes),
                Some(DatagramsRequest::Leave | DatagramsRequest::Release(_)) => {}
                None if self.give(node) => {}
                None => return,
            }
        }
    }

    fn give(&mut self, index: usize) -> bool {
        let node = &mut self.nodes[index];
        let (mut object, mut left) = node.given;
        if left == 0 {
            (object, left) = (object + 1, OBJECT_BYTES);
        }
        let length = left.min(node.room).min(PIECE_BYTES);
        if object > node.sent || length == 0 {
            return false;
        }
        node.room -= length;
        node.given = (object, left - length);
        let data = Bytes::from_static(&[7; PIECE_BYTES as usize]).slice(..length as usize);
        let content = ObjectsRequest::Content { object, data, last: length == left };
        node.session.handle_request(self.now, content);
        true
    }

    fn indicated(&mut self, index: usize, indication: ObjectsIndication) {
        match indication {
            ObjectsIndication::Room(room) => self.nodes[index].room = room,
            ObjectsIndication::Sent { .. } => self.send(index),
            ObjectsIndication::Failed { object, reason } => panic!("{object} fails: {reason:?}"),
            ObjectsIndication::Piece { incoming, data, .. } => {
                let node = &mut self.nodes[index];
                node.received += data.len() as u64;
                let up_to = u64::MAX;
                node.session.handle_request(self.now, ObjectsRequest::Accept { incoming, up_to });
            }
            _ => {}
        }
    }

    /// Lets time pass.
    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let timeouts = self.nodes.iter().filter_map(|node| node.session.poll_timeout());
            let arrival = self.arrivals.keys().next().map(|(at, _)| *at);
            let Some(next) = timeouts.chain(arrival).min().filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = next.max(self.now);
            while let Some(entry) = self.arrivals.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let (to, bytes) = entry.remove();
                self.deliver(to, bytes);
            }
            for node in 0..self.nodes.len() {
                if self.nodes[node].session.poll_timeout().is_some_and(|at| at <= self.now) {
                    self.nodes[node].session.handle_timeout(self.now);
                    self.drain(node);
                }
            }
        }
    }

    /// Lets time pass, and returns the rate of each flow's objects meanwhile, as a share of the path's rate.
    pub(super) fn shares(&mut self, time: Duration) -> Vec<f64> {
        let flows = 0..self.nodes.len() / 2;
        let before: Vec<u64> = flows.clone().map(|flow| self.received(flow)).collect();
        self.run(time);
        let bits = |flow: usize| (self.received(flow) - before[flow]) as f64 * 8.0;
        let possible = time.as_secs_f64() * self.path.rate_bps as f64;
        flows.map(|flow| bits(flow) / possible).collect()
    }
}
