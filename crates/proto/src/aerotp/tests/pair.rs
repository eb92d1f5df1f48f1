//! Two endpoints on a line with a rate, a delay and bit errors, and a user at each of them.

use crate::aerotp::{Config, Endpoint};
use crate::engine::{Engine, drain};
use crate::rng::Rng;
use crate::service::{
    ConnectionFailure, ConnectionProperties, ConnectionsIndication, ConnectionsRequest, DatagramsIndication,
    DatagramsRequest, PeerId, TransportService,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Length of the headers of UDP and IP, in which a bit error loses the packet.
pub(super) const OVERHEAD: usize = 28;

/// One direction of the line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) rate_bps: u64,
    pub(super) delay: Duration,
    pub(super) ber: f64,
}

#[derive(Debug)]
enum Event {
    Left(usize, Option<u64>),
    Arrives(usize, Bytes, bool),
    /// The next bit-error rate of a direction.
    Ber(usize, f64),
    Carrier(bool),
}

/// Data of a sender's connection.
struct Source {
    /// Number of its content.
    content: u64,
    length: u64,
    given: u64,
}

/// Bytes of a connection that its receiver's user has had.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sink {
    pub(super) properties: ConnectionProperties,
    pub(super) bytes: u64,
    pub(super) damaged_bytes: u64,
    pub(super) gap_bytes: u64,
    pub(super) unknown_gaps: u64,
    pub(super) is_ended: bool,
    pub(super) is_lost: bool,
    pub(super) last_at: Instant,
}

/// Decides whether a packet of a node is lost.
type Losses = Box<dyn FnMut(usize, &Bytes) -> bool>;

pub(super) struct Pair {
    pub(super) now: Instant,
    pub(super) nodes: [Checked<Endpoint>; 2],
    pub(super) lines: [Line; 2],
    free_at: [Instant; 2],
    /// Packets that each provider holds.
    queued: [u64; 2],
    pub(super) queue_max: u64,
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    rng: Rng,
    sources: [BTreeMap<u64, Source>; 2],
    rooms: [BTreeMap<u64, u64>; 2],
    pub(super) sinks: [BTreeMap<u64, Sink>; 2],
    pub(super) sent: Vec<(Instant, usize, u64)>,
    pub(super) failed: Vec<(usize, u64, ConnectionFailure)>,
    pub(super) acknowledged: BTreeMap<(usize, u64), u64>,
    /// The users of these nodes accept nothing while it is set.
    pub(super) holds: [bool; 2],
    /// Numbers of contents of which no user accepts anything.
    pub(super) stalled: BTreeSet<u64>,
    pub(super) is_up: [bool; 2],
    pub(super) carrier: bool,
    pub(super) loses: Losses,
    pub(super) log: Vec<(Instant, usize, Bytes)>,
}

/// Byte of the data of a connection at this place.
pub(super) fn content(connection: u64, at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9).wrapping_add(connection * 77) >> 7) as u8
}

impl Pair {
    pub(super) fn new(configs: [Config; 2], lines: [Line; 2], seed: u64) -> Pair {
        let rng = Rng::new(seed);
        let mut number = 0;
        let nodes = configs.map(|config| {
            number += 1;
            Checked::new("aerotp", Endpoint::new(config, rng.fork(&format!("node {number}"))))
        });
        let mut pair = Pair {
            now: Instant::ZERO,
            nodes,
            lines,
            free_at: [Instant::ZERO; 2],
            queued: [0; 2],
            queue_max: 2,
            events: BTreeMap::new(),
            count: 0,
            rng: rng.fork("line"),
            sources: [BTreeMap::new(), BTreeMap::new()],
            rooms: [BTreeMap::new(), BTreeMap::new()],
            sinks: [BTreeMap::new(), BTreeMap::new()],
            sent: Vec::new(),
            failed: Vec::new(),
            acknowledged: BTreeMap::new(),
            holds: [false; 2],
            stalled: BTreeSet::new(),
            is_up: [false; 2],
            carrier: true,
            loses: Box::new(|_, _| false),
            log: Vec::new(),
        };
        for node in 0..2 {
            pair.request(node, ConnectionsRequest::Connect);
        }
        pair
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    pub(super) fn set_ber(&mut self, after: Duration, node: usize, ber: f64) {
        self.at(self.now + after, Event::Ber(node, ber));
    }

    pub(super) fn set_carrier(&mut self, after: Duration, is_there: bool) {
        self.at(self.now + after, Event::Carrier(is_there));
    }

    pub(super) fn request(&mut self, node: usize, request: ConnectionsRequest) {
        self.nodes[node].handle_request(self.now, request);
        self.drain(node);
    }

    pub(super) fn indicate(&mut self, node: usize, indication: DatagramsIndication) {
        self.nodes[node].handle_indication(self.now, indication);
        self.drain(node);
    }

    /// Opens a connection from a node with this number of bytes.
    pub(super) fn send(&mut self, node: usize, connection: u64, service: TransportService, length: u64) {
        let properties = ConnectionProperties {
            service,
            source_port: 1_000 + connection as u16,
            destination_port: 80,
            ..ConnectionProperties::default()
        };
        self.send_with(node, connection, properties, length);
    }

    pub(super) fn send_with(
        &mut self,
        node: usize,
        connection: u64,
        properties: ConnectionProperties,
        length: u64,
    ) {
        let content = u64::from(properties.source_port) - 1_000;
        self.sources[node].insert(connection, Source { content, length, given: 0 });
        self.request(node, ConnectionsRequest::Open { connection, properties });
    }

    fn drain(&mut self, node: usize) {
        loop {
            let (mut ups, mut downs) = (Vec::new(), Vec::new());
            let now = self.now;
            drain(&mut self.nodes[node], now, |up| ups.push(up), |down| downs.push(down));
            if ups.is_empty() && downs.is_empty() && !self.give(node) {
                return;
            }
            ups.into_iter().for_each(|up| self.indicated(node, up));
            downs.into_iter().for_each(|down| self.requested(node, down));
            self.give(node);
        }
    }

    /// Passes data down, as far as there is room.
    fn give(&mut self, node: usize) -> bool {
        let mut gave = false;
        for (connection, source) in &mut self.sources[node] {
            let room = self.rooms[node].get_mut(connection);
            let Some(room) = room.filter(|room| **room > 0) else { continue };
            let length = (source.length - source.given).min(*room).min(1_448);
            if source.given == source.length && source.length > 0 {
                continue;
            }
            *room -= length;
            let data: Bytes =
                (source.given..source.given + length).map(|at| content(source.content, at)).collect();
            source.given += length;
            let last = source.given == source.length;
            if last {
                *room = 0;
            }
            gave = true;
            self.nodes[node]
                .handle_request(self.now, ConnectionsRequest::Data { connection: *connection, data, last });
        }
        gave
    }

    fn indicated(&mut self, node: usize, indication: ConnectionsIndication) {
        match indication {
            ConnectionsIndication::Up { .. } => self.is_up[node] = true,
            ConnectionsIndication::Down { .. } => self.is_up[node] = false,
            ConnectionsIndication::Room { connection, bytes } => {
                self.rooms[node].insert(connection, bytes);
            }
            ConnectionsIndication::Acknowledged { connection, up_to } => {
                let before = self.acknowledged.insert((node, connection), up_to);
                assert!(before.is_none_or(|before| before < up_to), "acknowledged {up_to} after {before:?}");
                let accepted: u64 = self.sinks[1 - node].values().map(|sink| sink.bytes).sum();
                assert!(up_to <= accepted && !self.holds[1 - node], "nobody has accepted {up_to} bytes");
            }
            ConnectionsIndication::Sent { connection } => self.sent.push((self.now, node, connection)),
            ConnectionsIndication::Failed { connection, reason } => {
                self.failed.push((node, connection, reason));
                self.sources[node].remove(&connection);
            }
            ConnectionsIndication::Begin { incoming, properties } => {
                self.sinks[node].insert(incoming, Sink { properties, ..Sink::default() });
            }
            ConnectionsIndication::Data { incoming, data, damaged, last } => {
                let sink = self.sinks[node].get_mut(&incoming).expect("it has begun");
                assert!(!sink.is_ended && !sink.is_lost);
                let connection = u64::from(sink.properties.source_port) - 1_000;
                if !damaged && sink.unknown_gaps == 0 && !sink.properties.service.keeps_messages() {
                    let from = sink.bytes + sink.gap_bytes;
                    let expected = (from..from + data.len() as u64).map(|at| content(connection, at));
                    assert!(data.iter().copied().eq(expected), "wrong bytes at {from}");
                }
                sink.bytes += data.len() as u64;
                sink.damaged_bytes += if damaged { data.len() as u64 } else { 0 };
                sink.is_ended = last;
                sink.last_at = self.now;
                let up_to = sink.bytes;
                if !self.holds[node] && !self.stalled.contains(&connection) {
                    self.nodes[node].handle_request(self.now, ConnectionsRequest::Accept { incoming, up_to });
                }
            }
            ConnectionsIndication::Gap { incoming, bytes } => {
                let sink = self.sinks[node].get_mut(&incoming).expect("it has begun");
                match bytes {
                    Some(bytes) => sink.gap_bytes += bytes,
                    None => sink.unknown_gaps += 1,
                }
            }
            ConnectionsIndication::Lost { incoming } => {
                self.sinks[node].get_mut(&incoming).expect("it has begun").is_lost = true;
            }
        }
    }

    /// Accepts everything that the user of a node has had.
    pub(super) fn accept_all(&mut self, node: usize) {
        self.holds[node] = false;
        let sinks: Vec<_> = self.sinks[node].iter().map(|(incoming, sink)| (*incoming, sink.bytes)).collect();
        for (incoming, up_to) in sinks {
            self.request(node, ConnectionsRequest::Accept { incoming, up_to });
        }
    }

    fn requested(&mut self, node: usize, request: DatagramsRequest) {
        match request {
            DatagramsRequest::Join { damaged } => {
                assert!(damaged, "damaged packets reach the decoder");
                let peer = Some(PeerId::CONFIGURED);
                let joined = DatagramsIndication::Joined { bytes_max: 1_472, peer, group: None };
                self.nodes[node].handle_indication(self.now, joined);
                self.nodes[node].handle_indication(self.now, DatagramsIndication::Room(self.queue_max));
            }
            DatagramsRequest::Leave | DatagramsRequest::Release(_) => {}
            DatagramsRequest::Datagram { bytes, token, shares, .. } => {
                assert!(shares.spoken_for() <= bytes.len() as u64, "{shares:?} of {} bytes", bytes.len());
                self.log.push((self.now, node, bytes.clone()));
                self.queued[node] += 1;
                let line = self.lines[node];
                let bits = ((bytes.len() + OVERHEAD) * 8) as u64;
                let duration = Duration::from_nanos(bits * 1_000_000_000 / line.rate_bps);
                let left = self.free_at[node].max(self.now) + duration;
                self.free_at[node] = left;
                self.at(left, Event::Left(node, token));
                if (self.loses)(node, &bytes) {
                    return;
                }
                let (bytes, is_damaged, is_lost) = self.damage(&bytes, line.ber);
                if !is_lost {
                    self.at(left + line.delay, Event::Arrives(1 - node, bytes, is_damaged));
                }
            }
        }
    }

    /// Flips bits. Returns the datagram, whether it is damaged, and whether its headers are.
    fn damage(&mut self, bytes: &Bytes, ber: f64) -> (Bytes, bool, bool) {
        let total = ((bytes.len() + OVERHEAD) * 8) as u64;
        let (mut out, mut is_damaged, mut is_lost) = (bytes.to_vec(), false, false);
        let mut at = self.rng.geometric(ber);
        while at < total {
            match at.checked_sub(8 * OVERHEAD as u64) {
                None => is_lost = true,
                Some(at) => {
                    is_damaged = true;
                    out[(at / 8) as usize] ^= 1 << (at % 8);
                }
            }
            at = at.saturating_add(1).saturating_add(self.rng.geometric(ber));
        }
        (out.into(), is_damaged, is_lost)
    }

    fn next_time(&self) -> Option<Instant> {
        let events = self.events.first_key_value().map(|((at, _), _)| *at);
        self.nodes.iter().filter_map(|node| node.poll_timeout()).chain(events).min()
    }

    /// Runs until nothing happens any more, or this time.
    pub(super) fn run_until(&mut self, end: Instant) {
        while let Some(at) = self.next_time().filter(|at| *at <= end) {
            self.now = at.max(self.now);
            while let Some(entry) = self.events.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let event = entry.remove();
                self.happens(event);
            }
            for node in 0..2 {
                if self.nodes[node].poll_timeout().is_some_and(|at| at <= self.now) {
                    self.nodes[node].handle_timeout(self.now);
                    self.drain(node);
                }
            }
        }
        self.now = self.now.max(end);
    }

    pub(super) fn run(&mut self, duration: Duration) {
        self.run_until(self.now + duration);
    }

    /// Runs until all connections have ended at their senders, and everything has arrived.
    pub(super) fn run_to_end(&mut self, limit: Duration) {
        let end = self.now + limit;
        while self.now < end && !self.nodes.iter().all(|node| node.engine.is_idle()) {
            self.run(Duration::from_millis(50));
        }
        self.run(Duration::from_secs(1));
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Left(node, token) => {
                self.queued[node] -= 1;
                if let Some(token) = token {
                    self.nodes[node].handle_indication(self.now, DatagramsIndication::Transmitted(token));
                }
                self.indicate(node, DatagramsIndication::Room(self.queue_max - self.queued[node]));
            }
            Event::Arrives(node, bytes, damaged) => {
                if self.carrier {
                    let from = PeerId::CONFIGURED;
                    self.indicate(
                        node,
                        DatagramsIndication::Datagram { from, to_group: false, bytes, damaged },
                    );
                }
            }
            Event::Ber(node, ber) => self.lines[node].ber = ber,
            Event::Carrier(is_there) => {
                self.carrier = is_there;
                for node in 0..2 {
                    self.indicate(node, DatagramsIndication::Carrier(is_there));
                }
            }
        }
    }

    pub(super) fn counters(&self, node: usize) -> crate::aerotp::Counters {
        *self.nodes[node].engine.counters()
    }
}
