//! AeroNP with AeroRP: a chain of three nodes on hostile links, of which the ends do not hear each other.

use super::flawed::Flawed;
use super::frames::{BitErrors, FrameConditions, HostileFrames};
use super::{Crash, Draw, IdleBudget, LawRun, Replay, RunDigest, RunPlan, Users, catches, sweep};
use crate::aeronp::wire::{FIX_BYTES, HEADER_BYTES, Packet, PacketType};
use crate::aeronp::{Config, EndpointConfig, Node};
use crate::aerorp::{self, AeroRp};
use crate::codec::crc::crc16_x25;
use crate::engine::Engine;
use crate::motion::Trajectory;
use crate::packet_router::NodeAddress;
use crate::rng::Rng;
use crate::service::{
    Datagrams, DatagramsIndication, DatagramsRequest, Frames, InterfaceId, LinkId, Many, PeerId, Shares,
};
use crate::time::{Duration, Instant};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const NODES: usize = 3;
const TWO_FIXES_BYTES: usize = 2 * FIX_BYTES;
const BEACON: Duration = Duration::from_secs(10);

fn address(node: usize) -> NodeAddress {
    NodeAddress(1 + node as u32)
}

/// Place of a node, metres; the range is 1,000.
fn place(node: usize) -> [f64; 3] {
    [900.0 * node as f64, 0.0, 0.0]
}

/// Users who send datagrams to those of other nodes. The link of a user has the number of the other node.
struct DatagramUsers {
    rng: Rng,
    trusting: bool,
    running: [bool; NODES],
    joined: BTreeSet<(usize, LinkId)>,
    room: BTreeMap<(usize, LinkId), u64>,
    /// Times at which datagrams are to be sent: from, to.
    wishes: BTreeMap<(Instant, u64), (usize, usize)>,
    ready: VecDeque<(usize, usize)>,
    /// Datagrams that have not arrived, by contents.
    sent: BTreeMap<Bytes, (usize, usize)>,
    arrived: u64,
    number: u32,
    requests: VecDeque<(usize, (LinkId, DatagramsRequest))>,
}

impl DatagramUsers {
    fn new(mut rng: Rng, trusting: bool, until: Instant) -> Self {
        let mut wishes = BTreeMap::new();
        for number in 0..rng.below(30) {
            let from = rng.below(NODES as u64) as usize;
            let to = (from + 1 + rng.below(NODES as u64 - 1) as usize) % NODES;
            wishes.insert((Instant::from_nanos(rng.below(until.as_nanos())), number), (from, to));
        }
        DatagramUsers {
            rng,
            trusting,
            running: [false; NODES],
            joined: BTreeSet::new(),
            room: BTreeMap::new(),
            wishes,
            ready: VecDeque::new(),
            sent: BTreeMap::new(),
            arrived: 0,
            number: 0,
            requests: VecDeque::new(),
        }
    }

    fn content(&mut self) -> Bytes {
        let mut content = BytesMut::new();
        content.put_u32(self.number);
        self.number += 1;
        let mut random = vec![0; self.rng.below(900) as usize];
        self.rng.fill(&mut random);
        content.extend_from_slice(&random);
        content.freeze()
    }
}

impl Users<Many<LinkId, Datagrams>> for DatagramUsers {
    fn started(&mut self, _now: Instant, node: usize) {
        self.running[node] = true;
        for other in (0..NODES).filter(|other| *other != node) {
            let join = DatagramsRequest::Join { damaged: false };
            self.requests.push_back((node, (LinkId(other as u32), join)));
        }
    }

    fn crashed(&mut self, _now: Instant, node: usize) {
        self.running[node] = false;
        self.joined.retain(|(at, _)| *at != node);
        self.room.retain(|(at, _), _| *at != node);
        self.requests.retain(|(at, _)| *at != node);
    }

    fn calm(&mut self, _now: Instant) {}

    fn handle_indication(&mut self, _now: Instant, node: usize, (link, said): (LinkId, DatagramsIndication)) {
        match said {
            DatagramsIndication::Joined { .. } => drop(self.joined.insert((node, link))),
            DatagramsIndication::Room(room) => drop(self.room.insert((node, link), room)),
            DatagramsIndication::Datagram { bytes, from, damaged, .. } => {
                let length = bytes.len() as u64;
                if self.trusting {
                    assert_eq!((from, damaged), (PeerId::CONFIGURED, false));
                    let ends = self.sent.remove(&bytes);
                    assert_eq!(
                        ends,
                        Some((link.0 as usize, node)),
                        "it was not sent so, or has arrived before"
                    );
                }
                self.arrived += 1;
                self.requests.push_back((node, (link, DatagramsRequest::Release(length))));
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(wish) = self.wishes.first_entry().filter(|wish| wish.key().0 <= now) {
            self.ready.push_back(wish.remove());
        }
    }

    fn poll_request(&mut self, _now: Instant) -> Option<(usize, (LinkId, DatagramsRequest))> {
        if let Some(request) = self.requests.pop_front() {
            return Some(request);
        }
        let can = |(from, to): &(usize, usize)| {
            self.room.get(&(*from, LinkId(*to as u32))).is_some_and(|room| *room > 0)
        };
        let place = self.ready.iter().position(can)?;
        let (from, to) = self.ready.remove(place)?;
        let link = LinkId(to as u32);
        *self.room.get_mut(&(from, link))? -= 1;
        let bytes = self.content();
        self.sent.insert(bytes.clone(), (from, to));
        let (shares, token) = (Shares::payload(bytes.len()), Some(u64::from(self.number)));
        let datagram = DatagramsRequest::Datagram { to: PeerId::CONFIGURED, bytes, shares, token };
        Some((from, (link, datagram)))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.wishes.first_key_value().map(|((at, _), _)| *at)
    }

    fn unsettled(&self) -> Option<String> {
        let left = self.wishes.len() + self.ready.len();
        if left > 0 {
            return Some(format!("{left} datagrams are not sent"));
        }
        self.sent.values().next().map(|(from, to)| format!("a datagram from {from} to {to} has not arrived"))
    }

    fn sent(&self) -> u64 {
        self.arrived
    }

    fn want_ends(&self) -> bool {
        self.trusting
    }
}

fn node(node: usize, now: Instant, rng: Rng, queue_bytes_max: u64) -> Node {
    let endpoint = |other: usize| EndpointConfig {
        link: LinkId(other as u32),
        peer: Some(address(other)),
        lifetime: Duration::from_secs(6000),
        packets_max: 4,
        ..EndpointConfig::default()
    };
    let config = Config {
        address: address(node),
        interfaces: (0..NODES)
            .filter(|other| node.abs_diff(*other) == 1)
            .map(|other| InterfaceId(other as u16))
            .collect(),
        endpoints: (0..NODES).filter(|other| *other != node).map(endpoint).collect(),
        beacon_interval: BEACON,
        neighbour_timeout: BEACON * 3,
        queue_bytes_max,
        ..Config::default()
    };
    let router = AeroRp::new(aerorp::Config {
        address: address(node),
        range_m: 1000.0,
        known: (0..NODES).map(|node| (address(node), place(node))).collect(),
        ..aerorp::Config::default()
    });
    Node::new(config, Box::new(router), Trajectory::at_rest(place(node)), now, rng)
}

fn world<N>(replay: &Replay, damage: BitErrors, dress: impl Fn(Node) -> N) -> RunDigest
where
    N: Engine<Above = Many<LinkId, Datagrams>, Below = Many<InterfaceId, Frames>>,
{
    let rng = Rng::new(replay.seed);
    let mut draw = rng.fork("parameters");
    let faults_end_at = Instant::ZERO + draw.span(Duration::from_secs(1), Duration::from_secs(300));
    let trusting = damage == BitErrors::Slight;
    let plan = RunPlan {
        faults_end_at,
        // A node that crashes loses the packets that it has accepted.
        crashes: if trusting { Vec::new() } else { Crash::draw(&mut draw, NODES as u64, faults_end_at) },
        patience: Duration::from_secs(600),
        lateness: RunPlan::draw_lateness(&mut draw),
        // Four beacons in each interval, and the wake-ups for them.
        idle: IdleBudget {
            after: Duration::from_secs(30),
            window: Duration::from_secs(100),
            wake_ups: 33,
            carried: 44,
        },
    };
    let mut conditions = FrameConditions::draw(&mut draw, damage);
    conditions.forge = forge;
    let end = |node: usize, other: usize| (node, InterfaceId(other as u16));
    let links = [(end(0, 1), end(1, 0)), (end(1, 2), end(2, 1))];
    let ground = HostileFrames::new(rng.fork("ground"), conditions, &links, 1500, faults_end_at);
    let users = DatagramUsers::new(rng.fork("users"), trusting, faults_end_at);
    let queue_bytes_max = if draw.chance(0.3) { 3_000 } else { 100_000 };
    let factory = |at: usize, boot, now| {
        dress(node(at, now, rng.fork(&format!("node {at} boot {boot}")), queue_bytes_max))
    };
    LawRun::new(replay, plan, NODES, Box::new(factory), ground, users).run()
}

/// Corrects the header of a damaged packet of any type, as an attacker would, and the payload check of every other one.
fn forge(packet: &mut BytesMut) {
    if packet.len() < HEADER_BYTES {
        return;
    }
    packet[0] = 0x10 | packet[0] & 3;
    packet[1] &= 0xfe;
    // Fixes that the frame is long enough to have.
    packet[31] &= match packet.len() - HEADER_BYTES {
        0..FIX_BYTES => 0,
        FIX_BYTES..TWO_FIXES_BYTES => 1,
        _ => 3,
    };
    let checked = HEADER_BYTES - 2 + FIX_BYTES * packet[31].count_ones() as usize;
    let payload = (packet.len() - checked - 2) as u16;
    packet[6..8].copy_from_slice(&payload.to_be_bytes());
    if packet[27] & 1 == 0 {
        let check = crc16_x25(&packet[checked + 2..]);
        packet[checked - 2..checked].copy_from_slice(&check.to_be_bytes());
    }
    let check = crc16_x25(&packet[..checked]);
    packet[checked..checked + 2].copy_from_slice(&check.to_be_bytes());
}

#[test]
fn forged_packets_of_every_type_are_decoded() {
    for kind in [PacketType::Data, PacketType::Beacon, PacketType::Acknowledgement] {
        let packet = Packet { kind, payload: Bytes::from_static(&[1, 0, 7]), ..Packet::default() };
        let mut bytes = BytesMut::new();
        packet.encode(&mut bytes);
        (bytes[7], bytes[31], bytes[37]) = (200, 0xff, 9);
        forge(&mut bytes);
        let forged = Packet::decode(&mut bytes.freeze()).expect("the header is right again");
        assert_eq!((forged.kind, &forged.payload[..], forged.damaged), (kind, &[1, 9, 7][..], false));
    }
}

#[test]
fn aeronp_keeps_the_laws() {
    sweep("aeronp", 0, 300, |replay| world(replay, BitErrors::Slight, |node| node));
}

#[test]
fn aeronp_survives_forged_packets_and_crashes() {
    sweep("aeronp-enemy", 0, 300, |replay| world(replay, BitErrors::Gross, |node| node));
}

#[test]
fn the_laws_notice_a_datagram_that_comes_twice_and_one_that_does_not_come() {
    type Said = (LinkId, DatagramsIndication);
    let is_datagram = |said: &Said| matches!(said.1, DatagramsIndication::Datagram { .. });
    let twice = move |said: Said| if is_datagram(&said) { vec![said.clone(), said] } else { vec![said] };
    catches("a datagram twice", "has arrived before", |replay| {
        world(replay, BitErrors::Slight, |node| Flawed::new(node, twice))
    });
    let never = move |said: Said| if is_datagram(&said) { vec![] } else { vec![said] };
    catches("no datagram", "not ended", |replay| {
        world(replay, BitErrors::Slight, |node| Flawed::new(node, never))
    });
}
