//! Nodes on one channel, at places that determine who hears whom.

use crate::aeronp::wire::{Packet, PacketType};
use crate::aeronp::{Config, Counters, EndpointConfig, Node};
use crate::aerorp::{self, AeroRp};
use crate::engine::{Engine, drain};
use crate::motion::{Fix, Motion, Trajectory};
use crate::packet_router::{Decision, NeighbourState, NodeAddress, PacketRouter, RoutedPacket};
use crate::rng::Rng;
use crate::service::{
    DatagramsIndication, DatagramsRequest, FramesIndication, FramesRequest, InterfaceId, LinkId, PeerId,
    Shares,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::Bytes;
use std::collections::BTreeMap;

pub(super) const RANGE_M: f64 = 1000.0;
pub(super) const AT: InterfaceId = InterfaceId(0);
pub(super) const USER: LinkId = LinkId(0);
/// Time for a frame to leave, and to arrive.
const AIR: Duration = Duration::from_millis(5);

enum Event {
    Leaves(usize, Option<u64>),
    Comes(usize, Bytes),
}

/// Change of a frame from one node to another; `None` loses it.
type Fate = Box<dyn FnMut(usize, usize, &Packet, Bytes) -> Option<Bytes>>;

/// Nodes, whose addresses are 1 more than their numbers.
pub(super) struct World {
    pub(super) now: Instant,
    pub(super) nodes: Vec<Checked<Node>>,
    trajectories: Vec<Trajectory>,
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    pub(super) fate: Fate,
    /// Data packets on the channel: time in seconds, sender, receiver.
    pub(super) data: Vec<(f64, usize, usize)>,
    /// Arrived datagrams: time in seconds, node, payload, damage.
    pub(super) arrived: Vec<(f64, usize, Bytes, bool)>,
    /// Reported tokens of all nodes.
    pub(super) transmitted: Vec<u64>,
    rooms: Vec<u64>,
}

/// Place on a line, in metres, with a speed along it in metres per second.
pub(super) fn flight(x_m: f64, speed_mps: f64) -> Trajectory {
    let motion = Motion { position_m: [x_m, 0.0, 0.0], velocity_mps: [speed_mps, 0.0, 0.0] };
    Trajectory::new(vec![Fix { at: Instant::ZERO, motion }])
}

pub(super) fn address(node: usize) -> NodeAddress {
    NodeAddress(node as u32 + 1)
}

/// Half of the copies goes to each neighbour that has not had the packet, as in spray and wait.
#[derive(Debug)]
struct Spray(u8);

impl PacketRouter for Spray {
    fn decide(
        &mut self,
        _now: Instant,
        packet: &RoutedPacket<'_>,
        neighbours: &[NeighbourState],
    ) -> Decision {
        let mut nodes = neighbours.iter().map(|neighbour| neighbour.node);
        if nodes.clone().any(|node| node == packet.destination) {
            return Decision::Forward(packet.destination);
        }
        match nodes.find(|node| !packet.given.contains(node) && *node != packet.source) {
            Some(to) if packet.copies > 1 => Decision::Copy { to, copies: packet.copies / 2 },
            _ => Decision::Carry,
        }
    }

    fn spreads(&self) -> bool {
        true
    }

    fn copies(&self) -> u8 {
        self.0
    }
}

impl World {
    /// Nodes of these flights; each sends to the last one, whose place all know.
    pub(super) fn new(flights: &[Trajectory], change: impl Fn(usize, &mut Config)) -> World {
        let last = flights.len() - 1;
        let place = flights[last].motion(Instant::ZERO).expect("a place").position_m;
        let router = |number| {
            AeroRp::new(aerorp::Config {
                address: address(number),
                range_m: RANGE_M,
                known: vec![(address(last), place)],
                ..aerorp::Config::default()
            })
        };
        World::with_routers(flights, change, |number| Box::new(router(number)))
    }

    /// Nodes that spread copies of each packet.
    pub(super) fn spreading(
        flights: &[Trajectory],
        copies: u8,
        change: impl Fn(usize, &mut Config),
    ) -> World {
        World::with_routers(flights, change, |_| Box::new(Spray(copies)))
    }

    fn with_routers(
        flights: &[Trajectory],
        change: impl Fn(usize, &mut Config),
        router: impl Fn(usize) -> Box<dyn PacketRouter>,
    ) -> World {
        let last = flights.len() - 1;
        let node = |(number, flight): (usize, &Trajectory)| {
            let peer = (number != last).then(|| address(last));
            let mut config = Config {
                address: address(number),
                interfaces: vec![AT],
                endpoints: vec![EndpointConfig { link: USER, peer, ..EndpointConfig::default() }],
                ..Config::default()
            };
            change(number, &mut config);
            let rng = Rng::new(number as u64);
            Checked::new("aeronp", Node::new(config, router(number), flight.clone(), Instant::ZERO, rng))
        };
        let mut world = World {
            now: Instant::ZERO,
            nodes: flights.iter().enumerate().map(node).collect(),
            trajectories: flights.to_vec(),
            events: BTreeMap::new(),
            count: 0,
            fate: Box::new(|_, _, _, bytes| Some(bytes)),
            data: Vec::new(),
            arrived: Vec::new(),
            transmitted: Vec::new(),
            rooms: vec![0; flights.len()],
        };
        for node in 0..flights.len() {
            world.settle(node);
            world.nodes[node].handle_indication(Instant::ZERO, (AT, FramesIndication::Room(1)));
            world.settle(node);
            world.join(node, false);
        }
        world
    }

    /// Joins the endpoint of a node anew.
    pub(super) fn join(&mut self, node: usize, damaged: bool) {
        self.ask(node, DatagramsRequest::Leave);
        self.ask(node, DatagramsRequest::Join { damaged });
    }

    fn ask(&mut self, node: usize, request: DatagramsRequest) {
        self.nodes[node].handle_request(self.now, (USER, request));
        self.settle(node);
    }

    /// Sends a datagram to the last node; false without room.
    pub(super) fn send(&mut self, node: usize, payload: &'static [u8], token: u64) -> bool {
        if self.rooms[node] == 0 {
            return false;
        }
        let (bytes, shares) = (Bytes::from_static(payload), Shares::payload(payload.len()));
        let (to, token) = (PeerId::CONFIGURED, Some(token));
        self.rooms[node] -= 1;
        self.ask(node, DatagramsRequest::Datagram { to, bytes, shares, token });
        true
    }

    pub(super) fn counters(&self, node: usize) -> Counters {
        self.nodes[node].engine.counters()
    }

    fn place(&self, node: usize) -> Motion {
        self.trajectories[node].motion(self.now).expect("a place")
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    fn settle(&mut self, node: usize) {
        let (mut up, mut down) = (Vec::new(), Vec::new());
        drain(&mut self.nodes[node], self.now, |said| up.push(said), |request| down.push(request));
        for (link, said) in up {
            match said {
                DatagramsIndication::Room(room) if link == USER => self.rooms[node] = room,
                DatagramsIndication::Room(_) => {}
                DatagramsIndication::Transmitted(token) => self.transmitted.push(token),
                DatagramsIndication::Datagram { bytes, damaged, .. } => {
                    self.arrived.push((self.now.as_secs_f64(), node, bytes.clone(), damaged));
                    let release = DatagramsRequest::Release(bytes.len() as u64);
                    self.nodes[node].handle_request(self.now, (link, release));
                    self.settle(node);
                }
                DatagramsIndication::Joined { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        for (_, request) in down {
            if let FramesRequest::Frame { bytes, token, .. } = request {
                self.transmit(node, &bytes, token);
            }
        }
    }

    fn transmit(&mut self, from: usize, bytes: &Bytes, token: Option<u64>) {
        let packet = Packet::decode(&mut bytes.clone()).expect("nodes send packets");
        if packet.kind == PacketType::Data {
            self.data.push((self.now.as_secs_f64(), from, packet.receiver.0 as usize - 1));
        }
        let leaves = self.now + AIR;
        self.at(leaves, Event::Leaves(from, token));
        for to in (0..self.nodes.len()).filter(|to| *to != from) {
            if self.place(from).distance_m(&self.place(to)) <= RANGE_M
                && let Some(bytes) = (self.fate)(from, to, &packet, bytes.clone())
            {
                self.at(leaves + AIR, Event::Comes(to, bytes));
            }
        }
    }

    /// A node hears a frame.
    pub(super) fn hear(&mut self, node: usize, bytes: Bytes) {
        self.nodes[node].handle_indication(self.now, (AT, FramesIndication::Frame(bytes)));
        self.settle(node);
    }

    pub(super) fn run_until(&mut self, seconds: u64) {
        let until = Instant::from_secs(seconds);
        loop {
            let wakes = self.nodes.iter().enumerate();
            let wakes = wakes.filter_map(|(node, engine)| Some((engine.poll_timeout()?, node)));
            let (wake, event) = (wakes.min(), self.events.first_key_value().map(|((at, _), _)| *at));
            match (wake, event) {
                (_, Some(at)) if at <= until && wake.is_none_or(|(wake, _)| at <= wake) => {
                    self.now = at;
                    let event = self.events.pop_first().expect("it was just seen").1;
                    self.happen(event);
                }
                (Some((at, node)), _) if at <= until => {
                    self.now = self.now.max(at);
                    self.nodes[node].handle_timeout(self.now);
                    self.settle(node);
                }
                _ => break,
            }
        }
        self.now = until;
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Comes(node, bytes) => self.hear(node, bytes),
            Event::Leaves(node, token) => {
                for said in
                    token.map(FramesIndication::Transmitted).into_iter().chain([FramesIndication::Room(1)])
                {
                    self.nodes[node].handle_indication(self.now, (AT, said));
                }
                self.settle(node);
            }
        }
    }
}
