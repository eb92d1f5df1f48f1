//! Datagrams between two nodes, on a medium that loses and delays them.

use super::{Draw, Environment};
use crate::rng::Rng;
use crate::service::{CloseReason, Datagrams, DatagramsIndication, DatagramsRequest, LinkId, Many, PeerId};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Event on the medium.
#[derive(Debug)]
enum Event {
    Joined(usize, u64),
    Left(usize, u64),
    Arrives(usize, Bytes),
    /// A datagram has left, and makes room; its token, if its user asked for the report.
    Gone(usize, u64, Option<u64>),
}

/// Datagrams between two nodes: late, in any order, or lost.
pub(crate) struct HostileDatagrams {
    link: LinkId,
    bytes_max: u64,
    rng: Rng,
    loss: f64,
    delay: Duration,
    faults_are_on: bool,
    /// Number of times each node has joined: datagrams in transit to an older socket are lost.
    joined: [u64; 2],
    open: [bool; 2],
    room: [u64; 2],
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    carried: u64,
    faults: u64,
    up: VecDeque<(usize, (LinkId, DatagramsIndication))>,
}

impl HostileDatagrams {
    /// Draws a medium on which each of two nodes uses `link`, with datagrams of at most `bytes_max` bytes.
    pub(crate) fn draw(link: LinkId, bytes_max: u64, rng: &Rng, draw: &mut Rng) -> Self {
        HostileDatagrams {
            link,
            bytes_max,
            rng: rng.fork("ground"),
            loss: draw.share(0.5),
            delay: draw.span(Duration::ZERO, Duration::from_secs(3)),
            faults_are_on: true,
            joined: [0; 2],
            open: [false; 2],
            room: [0; 2],
            events: BTreeMap::new(),
            count: 0,
            carried: 0,
            faults: 0,
            up: VecDeque::new(),
        }
    }

    fn later(&mut self, now: Instant, event: Event) {
        self.count += 1;
        let delay = self.rng.span(Duration::ZERO, self.delay);
        self.events.insert((now + delay, self.count), event);
    }

    /// Returns true with this probability while there are faults, and counts the fault.
    fn fault(&mut self, probability: f64) -> bool {
        let happens = self.faults_are_on && self.rng.chance(probability);
        self.faults += u64::from(happens);
        happens
    }

    fn tell(&mut self, node: usize, said: DatagramsIndication) {
        self.up.push_back((node, (self.link, said)));
    }
}

impl Environment<Many<LinkId, Datagrams>> for HostileDatagrams {
    fn handle_request(&mut self, now: Instant, node: usize, (_, request): (LinkId, DatagramsRequest)) {
        self.carried += 1;
        match request {
            DatagramsRequest::Join { .. } => {
                self.joined[node] += 1;
                let joined = self.joined[node];
                let fails = self.fault(0.2);
                self.later(now, if fails { Event::Left(node, joined) } else { Event::Joined(node, joined) });
            }
            DatagramsRequest::Leave => self.crash(now, node),
            DatagramsRequest::Datagram { bytes, token, .. } => {
                self.room[node] -= 1;
                let joined = self.joined[node];
                self.later(now, Event::Gone(node, joined, token));
                if self.fault(self.loss) {
                    if self.rng.chance(0.2) {
                        self.later(now, Event::Left(node, joined));
                    }
                } else {
                    self.later(now, Event::Arrives(1 - node, bytes));
                }
            }
            DatagramsRequest::Release(_) => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Event::Joined(node, joined) if self.joined[node] == joined => {
                    self.open[node] = true;
                    self.room[node] = 1 + self.rng.below(3);
                    let peer = Some(PeerId::CONFIGURED);
                    let bytes_max = self.bytes_max;
                    self.tell(node, DatagramsIndication::Joined { bytes_max, peer, group: peer });
                    self.tell(node, DatagramsIndication::Room(self.room[node]));
                }
                Event::Left(node, joined) if self.joined[node] == joined => {
                    self.open[node] = false;
                    self.joined[node] += 1;
                    self.tell(node, DatagramsIndication::Left(CloseReason::Refused));
                }
                Event::Arrives(node, bytes) if self.open[node] => {
                    let from = PeerId::CONFIGURED;
                    let datagram =
                        DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false };
                    self.tell(node, datagram);
                }
                Event::Gone(node, joined, token) if self.joined[node] == joined && self.open[node] => {
                    self.room[node] += 1;
                    token
                        .into_iter()
                        .for_each(|token| self.tell(node, DatagramsIndication::Transmitted(token)));
                    self.tell(node, DatagramsIndication::Room(self.room[node]));
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
        self.open[node] = false;
        self.joined[node] += 1;
        self.up.retain(|(to, _)| *to != node);
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
}
