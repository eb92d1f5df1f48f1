//! Datagrams between two nodes, on a medium that loses, delays, damages and forges them.

use super::{Draw, Environment};
use crate::rng::Rng;
use crate::service::{CloseReason, Datagrams, DatagramsIndication, DatagramsRequest, LinkId, Many, PeerId};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of earlier datagrams from which others are forged.
const SEEN_MAX: usize = 8;

/// Event on the medium.
#[derive(Debug)]
enum Event {
    Joined(usize, u64),
    Left(usize, u64),
    Arrives(usize, Arrival),
    /// A datagram has left, and makes room; its token, if its user asked for the report.
    Gone(usize, u64, Option<u64>),
}

#[derive(Clone, Debug)]
struct Arrival {
    from: PeerId,
    bytes: Bytes,
    /// The check of the medium has found damage.
    damaged: bool,
}

/// Endpoint of a node.
#[derive(Debug, Default)]
struct Endpoint {
    /// Number of times the node has joined: datagrams in transit to an older endpoint are lost.
    joined: u64,
    open: bool,
    room: u64,
    /// The user wants damaged datagrams, too.
    wants_damaged: bool,
    /// Bytes delivered and not released.
    unreleased: u64,
}

/// Datagrams between two nodes: late, in any order, damaged, lost, or from a third sender.
pub(crate) struct HostileDatagrams {
    link: LinkId,
    bytes_max: u64,
    rng: Rng,
    loss: f64,
    delay: Duration,
    /// Fraction of datagrams that are damaged.
    damage: f64,
    /// The check of the medium finds no damage.
    is_unchecked: bool,
    /// Probability that a datagram causes a forged one.
    forgery: f64,
    /// Bytes delivered and not released above which datagrams are dropped.
    window: u64,
    faults_are_on: bool,
    ends: [Endpoint; 2],
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    carried: u64,
    faults: u64,
    seen: VecDeque<Bytes>,
    up: VecDeque<(usize, (LinkId, DatagramsIndication))>,
}

impl HostileDatagrams {
    /// Draws a medium on which each of two nodes uses `link`, with datagrams of at most `bytes_max` bytes. Damage is not
    /// found by it if `is_unchecked`. It forges datagrams if `forges`.
    pub(crate) fn draw(
        link: LinkId,
        bytes_max: u64,
        (is_unchecked, forges): (bool, bool),
        rng: &Rng,
        draw: &mut Rng,
    ) -> Self {
        HostileDatagrams {
            link,
            bytes_max,
            rng: rng.fork("ground"),
            loss: draw.share(0.5),
            delay: draw.span(Duration::ZERO, Duration::from_secs(3)),
            damage: draw.share(0.2),
            is_unchecked,
            forgery: if forges { 0.5 } else { 0.0 },
            window: 1 << draw.between(10, 20),
            faults_are_on: true,
            ends: Default::default(),
            events: BTreeMap::new(),
            count: 0,
            carried: 0,
            faults: 0,
            seen: VecDeque::new(),
            up: VecDeque::new(),
        }
    }

    fn later(&mut self, now: Instant, event: Event) {
        self.count += 1;
        let delay = self.rng.span(Duration::ZERO, self.delay);
        self.events.insert((now + delay, self.count), event);
    }

    fn tell(&mut self, node: usize, said: DatagramsIndication) {
        self.up.push_back((node, (self.link, said)));
    }

    /// Returns true with this probability while there are faults, and counts the fault.
    fn fault(&mut self, probability: f64) -> bool {
        let happens = self.faults_are_on && self.rng.chance(probability);
        self.faults += u64::from(happens);
        happens
    }

    fn send(&mut self, now: Instant, node: usize, bytes: Bytes, token: Option<u64>) {
        self.ends[node].room -= 1;
        let joined = self.ends[node].joined;
        self.later(now, Event::Gone(node, joined, token));
        if self.fault(self.loss) {
            if self.rng.chance(0.2) {
                self.later(now, Event::Left(node, joined));
            }
            return;
        }
        if self.fault(self.forgery) {
            if self.seen.len() >= SEEN_MAX {
                self.seen.pop_front();
            }
            self.seen.push_back(bytes.clone());
            let (to, forged) = (self.rng.below(2) as usize, self.forged());
            self.later(now, Event::Arrives(to, forged));
        }
        let is_damaged = self.fault(self.damage);
        let bytes = if is_damaged { self.damaged(&bytes) } else { bytes };
        let damaged = is_damaged && !self.is_unchecked;
        self.later(now, Event::Arrives(1 - node, Arrival { from: PeerId::CONFIGURED, bytes, damaged }));
    }

    /// Returns the bytes with a few bits flipped, or truncated.
    fn damaged(&mut self, bytes: &Bytes) -> Bytes {
        let mut damaged = BytesMut::from(&bytes[..]);
        if self.rng.chance(0.1) {
            damaged.truncate(self.rng.below(bytes.len() as u64 + 1) as usize);
        }
        for _ in 0..self.rng.between(1, 4) {
            let bit = self.rng.below(8 * bytes.len().max(1) as u64);
            if let Some(octet) = damaged.get_mut((bit / 8) as usize) {
                *octet ^= 0x80 >> (bit % 8);
            }
        }
        damaged.freeze()
    }

    /// Returns an earlier datagram, altered or not, or any bytes, from the peer or a third sender.
    fn forged(&mut self) -> Arrival {
        let old = self.seen.get(self.rng.below(SEEN_MAX as u64) as usize).cloned();
        let bytes = match (old, self.rng.below(3)) {
            (Some(old), 0) => old,
            (Some(old), 1) => self.damaged(&old),
            _ => {
                let mut bytes = vec![0; self.rng.below(60) as usize];
                self.rng.fill(&mut bytes);
                bytes.into()
            }
        };
        Arrival { from: PeerId(self.rng.below(4) as u32), bytes, damaged: false }
    }

    fn arrives(&mut self, node: usize, Arrival { from, bytes, damaged }: Arrival) {
        let end = &mut self.ends[node];
        let is_heard = end.open && (!damaged || end.wants_damaged);
        if !is_heard || end.unreleased > self.window {
            return;
        }
        end.unreleased += bytes.len() as u64;
        self.tell(node, DatagramsIndication::Datagram { from, to_group: false, bytes, damaged });
    }

    fn close(&mut self, node: usize) {
        let joined = self.ends[node].joined + 1;
        self.ends[node] = Endpoint { joined, ..Endpoint::default() };
        self.up.retain(|(to, _)| *to != node);
    }
}

impl Environment<Many<LinkId, Datagrams>> for HostileDatagrams {
    fn handle_request(&mut self, now: Instant, node: usize, (_, request): (LinkId, DatagramsRequest)) {
        self.carried += 1;
        match request {
            DatagramsRequest::Join { damaged } => {
                self.ends[node].joined += 1;
                self.ends[node].wants_damaged = damaged;
                let joined = self.ends[node].joined;
                let fails = self.fault(0.2);
                self.later(now, if fails { Event::Left(node, joined) } else { Event::Joined(node, joined) });
            }
            DatagramsRequest::Leave => self.close(node),
            DatagramsRequest::Datagram { bytes, token, .. } => self.send(now, node, bytes, token),
            DatagramsRequest::Release(bytes) => {
                // One that crosses `Left` concerns a closed endpoint.
                let end = &mut self.ends[node];
                end.unreleased = end.unreleased.saturating_sub(bytes);
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Event::Joined(node, joined) if self.ends[node].joined == joined => {
                    let room = 1 + self.rng.below(3);
                    (self.ends[node].open, self.ends[node].room) = (true, room);
                    let peer = Some(PeerId::CONFIGURED);
                    let bytes_max = self.bytes_max;
                    self.tell(node, DatagramsIndication::Joined { bytes_max, peer, group: peer });
                    self.tell(node, DatagramsIndication::Room(room));
                }
                Event::Left(node, joined) if self.ends[node].joined == joined => {
                    let joined = joined + 1;
                    self.ends[node] = Endpoint { joined, ..Endpoint::default() };
                    self.tell(node, DatagramsIndication::Left(CloseReason::Refused));
                }
                Event::Arrives(node, arrival) => self.arrives(node, arrival),
                Event::Gone(node, joined, token)
                    if self.ends[node].joined == joined && self.ends[node].open =>
                {
                    self.ends[node].room += 1;
                    let sent = token.map(DatagramsIndication::Transmitted);
                    sent.into_iter().for_each(|sent| self.tell(node, sent));
                    self.tell(node, DatagramsIndication::Room(self.ends[node].room));
                }
                _ => {}
            }
        }
    }

    fn poll_indication(&mut self) -> Option<(usize, (LinkId, DatagramsIndication))> {
        self.up.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.events.first_key_value().map(|(&(at, _), _)| at)
    }

    fn crash(&mut self, _now: Instant, node: usize) {
        self.close(node);
    }

    fn calm(&mut self, _now: Instant) {
        self.faults_are_on = false;
    }

    fn carried(&self) -> u64 {
        self.carried
    }

    fn faults(&self) -> u64 {
        self.faults
    }

    fn unsettled(&self) -> Option<String> {
        let (node, end) = self.ends.iter().enumerate().find(|(_, end)| end.unreleased > 0)?;
        Some(format!("node {node} has not released {} received bytes", end.unreleased))
    }
}
