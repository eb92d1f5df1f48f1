//! One run: nodes that move, lines while they are within range, packets and their fate.

use super::routers::{Epidemic, SprayAndWait, Static};
use crate::link::at;
use crate::scenario::{Airborne, AirborneRouter, FLIGHT_M};
use crate::world;
use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::aeronp::wire::{Beacon, LINK_REPORT_BYTES, Packet, PacketType};
use longwire_proto::aeronp::{Config, EndpointConfig, Node};
use longwire_proto::aerorp::{self, AeroRp};
use longwire_proto::engine::{Engine, Indication, Request, forward};
use longwire_proto::motion::Trajectory;
use longwire_proto::packet_router::{NodeAddress, PacketRouter};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Datagrams, DatagramsIndication, DatagramsRequest, InterfaceId, LinkId, Many, PeerId, Port, Shares,
};
use longwire_proto::time::{Duration, Instant};
use longwire_sim::mobility::contacts;
use longwire_sim::{
    Boot, ChannelConfig, Errors, LineConfig, NodeBelow, NodeEngine, NodeId, Simulation, WayPoints, Window,
};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex};

/// Time for beacons before the first packet, seconds.
const SETTLED_S: f64 = 30.0;
/// Interval at which the reach of ground stations is measured, seconds.
const SAMPLE_S: f64 = 10.0;
/// Length of the number of a packet in its payload.
const NUMBER_BYTES: usize = 4;

/// Frames on all lines by purpose. A beacon counts once for all lines of its sender, with its reports of all links,
/// because on a radio channel all neighbours hear one transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// Data packets.
    pub data: u64,
    /// Bytes of data packets.
    pub data_bytes: u64,
    /// Bytes of acknowledgements and beacons.
    pub control_bytes: u64,
}

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Packets to be sent.
    pub packets: u32,
    /// Time from sending to arrival of the packets that arrived undamaged, seconds, in order of arrival.
    pub delays_s: Vec<f64>,
    /// Numbers of these packets.
    pub delivered: Vec<u32>,
    /// Packets that arrived damaged only.
    pub damaged: u32,
    /// Packets for which their source had no room: they are not sent.
    pub unsent: u32,
    /// Transmissions.
    pub sent: Sent,
    /// Mean share of the moving nodes that are out of range of all ground stations.
    pub out_of_range: f64,
    /// Mean share of the moving nodes that have no path to a ground station over other nodes either.
    pub out_of_reach: f64,
    /// Packets that full queues refused or dropped; one that is refused and sent again counts each time.
    pub queue_full: u64,
}

impl Outcome {
    /// Mean delay of the delivered packets, seconds.
    pub fn mean_delay_s(&self) -> Option<f64> {
        let count = self.delays_s.len();
        (count > 0).then(|| self.delays_s.iter().sum::<f64>() / count as f64)
    }

    /// A quantity for each delivered packet.
    pub fn per_delivered(&self, of: u64) -> Option<f64> {
        let count = self.delays_s.len();
        (count > 0).then(|| of as f64 / count as f64)
    }
}

/// Packet of a run.
#[derive(Clone, Copy, Debug)]
struct PlannedPacket {
    at_s: f64,
    from: usize,
    to: usize,
}

/// Places, contacts and packets of a seed, equal for every router.
pub(super) struct DrawnWorld {
    /// Moving nodes first, then ground stations.
    pub(super) trajectories: Vec<Trajectory>,
    moving: usize,
    /// Pairs with their contacts and the bit-error rate between them.
    pub(super) pairs: Vec<((usize, usize), Vec<Window>, f64)>,
    packets: Vec<PlannedPacket>,
}

impl DrawnWorld {
    pub(super) fn new(plan: &Airborne, seed: u64) -> DrawnWorld {
        let rng = Rng::new(seed).fork("airborne");
        let (side_m, until) = (plan.area_km * 1000.0, at(plan.duration_s));
        let mut draw = rng.fork("mobility");
        let mut flights = |count: u32, speed_mps: [f64; 2]| -> Vec<Trajectory> {
            let corners_m = [[0.0, 0.0, FLIGHT_M[0]], [side_m, side_m, FLIGHT_M[1]]];
            let model = WayPoints { corners_m, speed_mps };
            (0..count).map(|_| model.trajectory(&mut draw, until)).collect()
        };
        let mut trajectories = flights(plan.test_articles, plan.speed_mps);
        trajectories.extend(flights(plan.relays, plan.relay_speed_mps));
        let moving = trajectories.len();
        let mut draw = rng.fork("ground stations");
        for _ in 0..plan.ground_stations {
            // Not at the edge, where half of the range is outside of the area.
            let mut coordinate = || side_m * (0.15 + 0.7 * draw.unit());
            trajectories.push(Trajectory::at_rest([coordinate(), coordinate(), 0.0]));
        }
        let mut draw = rng.fork("links");
        let mut pairs = Vec::new();
        for a in 0..trajectories.len() {
            for b in a + 1..trajectories.len() {
                let ber = if draw.chance(plan.bad_share) { plan.bad_ber } else { plan.ber };
                let windows = contacts(&trajectories[a], &trajectories[b], plan.range_km * 1000.0, until);
                if !windows.is_empty() {
                    pairs.push(((a, b), windows, ber));
                }
            }
        }
        let mut draw = rng.fork("packets");
        let packet = |_| {
            let article = draw.below(u64::from(plan.test_articles)) as usize;
            let ground = moving + draw.below(u64::from(plan.ground_stations)) as usize;
            let (from, to) =
                if draw.chance(plan.command_share) { (ground, article) } else { (article, ground) };
            PlannedPacket { at_s: SETTLED_S + (plan.within_s - SETTLED_S) * draw.unit(), from, to }
        };
        let mut packets: Vec<_> = (0..plan.packets).map(packet).collect();
        packets.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
        DrawnWorld { trajectories, moving, pairs, packets }
    }

    /// Pairs that are within range at a time.
    fn connected(&self, now: Instant) -> impl Iterator<Item = (usize, usize)> {
        let is_open =
            move |windows: &[Window]| windows.iter().any(|window| (window.from..window.to).contains(&now));
        self.pairs.iter().filter(move |(_, windows, _)| is_open(windows)).map(|(pair, ..)| *pair)
    }

    /// Next hops on the shortest paths from a node at the start, by destination.
    fn next_hops(&self, node: usize) -> BTreeMap<NodeAddress, NodeAddress> {
        let nodes = self.trajectories.len();
        let mut neighbours = vec![Vec::new(); nodes];
        for (a, b) in self.connected(Instant::ZERO) {
            neighbours[a].push(b);
            neighbours[b].push(a);
        }
        // First hop of the shortest path to each node.
        let mut first = vec![None; nodes];
        let mut queue: VecDeque<usize> = VecDeque::new();
        for next in &neighbours[node] {
            first[*next] = Some(*next);
            queue.push_back(*next);
        }
        while let Some(here) = queue.pop_front() {
            for next in &neighbours[here] {
                if first[*next].is_none() && *next != node {
                    first[*next] = first[here];
                    queue.push_back(*next);
                }
            }
        }
        let hop = |(to, first): (usize, Option<usize>)| Some((address(to), address(first?)));
        first.into_iter().enumerate().filter_map(hop).collect()
    }

    /// Mean shares of the moving nodes out of range, and out of reach over others, of all ground stations.
    fn out_of_reach(&self, plan: &Airborne) -> (f64, f64) {
        let samples = (plan.duration_s / SAMPLE_S) as u32;
        let (mut range, mut reach) = (0usize, 0usize);
        for sample in 0..samples {
            let pairs: Vec<_> = self.connected(at(f64::from(sample) * SAMPLE_S)).collect();
            let is_ground = |node: usize| node >= self.moving;
            let mut reached: Vec<bool> = (0..self.trajectories.len()).map(is_ground).collect();
            let near = |node: usize| pairs.iter().any(|(a, b)| *a == node && is_ground(*b));
            range += (0..self.moving).filter(|node| !near(*node)).count();
            loop {
                let before = reached.iter().filter(|is| **is).count();
                for (a, b) in &pairs {
                    let either = reached[*a] || reached[*b];
                    (reached[*a], reached[*b]) = (either, either);
                }
                if reached.iter().filter(|is| **is).count() == before {
                    break;
                }
            }
            reach += reached[..self.moving].iter().filter(|is| !**is).count();
        }
        let all = (self.moving * samples.max(1) as usize) as f64;
        (range as f64 / all, reach as f64 / all)
    }
}

fn address(node: usize) -> NodeAddress {
    NodeAddress(node as u32 + 1)
}

/// Engine on interfaces of a node without a disk.
#[derive(Debug)]
struct OnInterfaces(Node);

impl Engine for OnInterfaces {
    type Above = Many<LinkId, Datagrams>;
    type Below = NodeBelow;

    forward!(0: handle_request handle_timeout poll_indication poll_timeout observe);

    fn handle_indication(&mut self, now: Instant, said: Indication<NodeBelow>) {
        if let Port::Second(said) = said {
            self.0.handle_indication(now, said);
        }
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<NodeBelow>> {
        self.0.poll_request(now).map(Port::Second)
    }
}

fn router(plan: &Airborne, drawn: &DrawnWorld, router: AirborneRouter, node: usize) -> Box<dyn PacketRouter> {
    let uses_position = match router {
        AirborneRouter::Epidemic => return Box::new(Epidemic),
        AirborneRouter::SprayAndWait => return Box::new(SprayAndWait { copies: plan.copies }),
        AirborneRouter::Static => return Box::new(Static { next_hops: drawn.next_hops(node) }),
        AirborneRouter::AerorpWithoutPosition => false,
        AirborneRouter::Aerorp
        | AirborneRouter::AerorpWithoutCongestion
        | AirborneRouter::AerorpWithoutCorruption => true,
    };
    let ground = drawn.trajectories.iter().enumerate().skip(drawn.moving);
    let place = |(node, flight): (usize, &Trajectory)| {
        Some((address(node), flight.motion(Instant::ZERO)?.position_m))
    };
    Box::new(AeroRp::new(aerorp::Config {
        address: address(node),
        range_m: plan.range_km * 1000.0,
        known: ground.filter_map(place).collect(),
        uses_position,
        ..aerorp::Config::default()
    }))
}

fn engine(
    plan: &Airborne,
    drawn: &DrawnWorld,
    chosen: AirborneRouter,
    node: usize,
    boot: &Boot,
) -> NodeEngine<Many<LinkId, Datagrams>> {
    let partner = |(pair, ..): &((usize, usize), Vec<Window>, f64)| match *pair {
        (a, b) if a == node => Some(b),
        (a, b) if b == node => Some(a),
        _ => None,
    };
    let endpoint = |peer: usize| EndpointConfig {
        link: LinkId(peer as u32),
        protocol: 1,
        peer: Some(address(peer)),
        lifetime: Duration::from_secs_f64(plan.lifetime_s),
        packets_max: plan.packets as usize,
        ..EndpointConfig::default()
    };
    let others = (0..drawn.trajectories.len()).filter(|other| *other != node);
    let has_position = !matches!(
        chosen,
        AirborneRouter::AerorpWithoutPosition
            | AirborneRouter::Epidemic
            | AirborneRouter::SprayAndWait
            | AirborneRouter::Static
    );
    let config = Config {
        address: address(node),
        interfaces: drawn.pairs.iter().filter_map(partner).map(|other| InterfaceId(other as u16)).collect(),
        endpoints: others.map(endpoint).collect(),
        beacon_interval: Duration::from_secs_f64(plan.beacon_s),
        neighbour_timeout: Duration::from_secs_f64(3.5 * plan.beacon_s),
        neighbours_max: drawn.trajectories.len(),
        queue_bytes_max: plan.queue_bytes,
        indicates_congestion: chosen != AirborneRouter::AerorpWithoutCongestion,
        indicates_corruption: chosen != AirborneRouter::AerorpWithoutCorruption,
        fixes_in_data: has_position,
        ..Config::default()
    };
    let flight = if has_position { drawn.trajectories[node].clone() } else { Trajectory::default() };
    let router = router(plan, drawn, chosen, node);
    Box::new(OnInterfaces(Node::new(config, router, flight, boot.now, boot.rng.fork("aeronp"))))
}

pub(super) fn play(plan: &Airborne, chosen: AirborneRouter, seed: u64) -> Outcome {
    let drawn = Arc::new(DrawnWorld::new(plan, seed));
    let mut simulation = world::simulation(seed);
    for node in 0..drawn.trajectories.len() {
        let (plan, drawn) = (plan.clone(), drawn.clone());
        simulation.add_node(&format!("node {node}"), move |boot| engine(&plan, &drawn, chosen, node, &boot));
    }
    // First interface of each node, on which its beacons are counted.
    let mut first: BTreeMap<NodeId, InterfaceId> = BTreeMap::new();
    for ((a, b), windows, ber) in &drawn.pairs {
        let end = |node: usize, other: usize| (NodeId(node as u32), InterfaceId(other as u16));
        let line = LineConfig {
            rate_bps: plan.rate_bps,
            errors: Errors::Ber(*ber),
            contacts: windows.clone(),
            ..LineConfig::default()
        };
        for (node, interface) in [end(*a, *b), end(*b, *a)] {
            first.entry(node).and_modify(|first| *first = interface.min(*first)).or_insert(interface);
        }
        simulation.add_channel(end(*a, *b), end(*b, *a), ChannelConfig::symmetric(line));
    }
    let sent = Arc::new(Mutex::new(Sent::default()));
    let count = sent.clone();
    simulation.set_trace(Box::new(move |record| {
        let mut count = count.lock().expect("nobody panics");
        let bytes = record.bytes.len() as u64;
        let packet = Packet::decode(&mut record.bytes.clone()).expect("nodes send packets");
        match packet.kind {
            PacketType::Data => {
                count.data += 1;
                count.data_bytes += bytes;
            }
            PacketType::Beacon if first.get(&record.from.node) != Some(&record.from.interface) => {
                let beacon = Beacon::decode(&mut packet.payload.clone()).expect("nodes send beacons");
                count.control_bytes += (LINK_REPORT_BYTES * beacon.links.len()) as u64;
            }
            PacketType::Beacon | PacketType::Acknowledgement => count.control_bytes += bytes,
        }
    }));
    let mut observer = Observer::new(plan, &drawn);
    observer.start(&mut simulation, plan.tolerant);
    for number in 0..drawn.packets.len() {
        observer.run_until(&mut simulation, at(drawn.packets[number].at_s));
        observer.send(&mut simulation, number as u32);
    }
    observer.run_until(&mut simulation, at(plan.duration_s));
    let mut outcome = observer.outcome();
    outcome.sent = *sent.lock().expect("nobody panics");
    (outcome.out_of_range, outcome.out_of_reach) = drawn.out_of_reach(plan);
    let full = (0..drawn.trajectories.len()).map(|node| {
        let counts = simulation.observe(NodeId(node as u32)).sum("aeronp");
        counts.get("queue_full").copied().unwrap_or(0)
    });
    outcome.queue_full = full.sum();
    outcome
}

/// Users of all nodes.
struct Observer<'a> {
    drawn: &'a DrawnWorld,
    bytes: usize,
    rooms: BTreeMap<(NodeId, LinkId), u64>,
    unsent: u32,
    arrived: BTreeMap<u32, f64>,
    order: Vec<u32>,
    damaged: std::collections::BTreeSet<u32>,
}

impl<'a> Observer<'a> {
    fn new(plan: &Airborne, drawn: &'a DrawnWorld) -> Self {
        Observer {
            drawn,
            bytes: plan.bytes as usize,
            rooms: BTreeMap::new(),
            unsent: 0,
            arrived: BTreeMap::new(),
            order: Vec::new(),
            damaged: Default::default(),
        }
    }

    fn start(&mut self, simulation: &mut Simulation<Many<LinkId, Datagrams>>, damaged: bool) {
        let nodes = self.drawn.trajectories.len();
        for node in 0..nodes {
            for other in (0..nodes).filter(|other| *other != node) {
                let join = DatagramsRequest::Join { damaged };
                simulation.request(NodeId(node as u32), (LinkId(other as u32), join));
            }
        }
        self.hear(simulation);
    }

    /// Payload of a packet: its number, and octets that follow from it.
    fn payload(&self, number: u32) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.bytes);
        bytes.put_u32(number);
        bytes.resize(self.bytes, number as u8);
        bytes.freeze()
    }

    /// Sends a packet if its source has room for it, whatever the router: a queue behind that of the node would have no
    /// limit, and packets in it no lifetime.
    fn send(&mut self, simulation: &mut Simulation<Many<LinkId, Datagrams>>, number: u32) {
        let packet = self.drawn.packets[number as usize];
        let port = (NodeId(packet.from as u32), LinkId(packet.to as u32));
        let room = self.rooms.entry(port).or_default();
        if *room == 0 {
            self.unsent += 1;
            return;
        }
        *room -= 1;
        let (bytes, to, token) = (self.payload(number), PeerId::CONFIGURED, None);
        let shares = Shares::payload(bytes.len());
        simulation.request(port.0, (port.1, DatagramsRequest::Datagram { to, bytes, shares, token }));
        self.hear(simulation);
    }

    fn run_until(&mut self, simulation: &mut Simulation<Many<LinkId, Datagrams>>, until: Instant) {
        while simulation.next_event_at().is_some_and(|at| at <= until) {
            simulation.step();
            self.hear(simulation);
        }
        simulation.run_until(until);
    }

    fn hear(&mut self, simulation: &mut Simulation<Many<LinkId, Datagrams>>) {
        while let Some((now, node, (link, said))) = simulation.pop_indication() {
            match said {
                DatagramsIndication::Room(room) => drop(self.rooms.insert((node, link), room)),
                DatagramsIndication::Datagram { bytes, damaged, .. } => {
                    self.arrives(now, &bytes, damaged);
                    let release = DatagramsRequest::Release(bytes.len() as u64);
                    simulation.request(node, (link, release));
                }
                _ => {}
            }
        }
    }

    fn arrives(&mut self, now: Instant, bytes: &Bytes, damaged: bool) {
        let head: Option<[u8; NUMBER_BYTES]> =
            bytes.get(..NUMBER_BYTES).and_then(|head| head.try_into().ok());
        let number = u32::from_be_bytes(head.expect("a payload has its number"));
        let is_whole = (number as usize) < self.drawn.packets.len() && *bytes == self.payload(number);
        assert!(damaged || is_whole, "damage that was not told");
        if damaged {
            self.damaged.insert(number);
            return;
        }
        let sent = self.drawn.packets[number as usize].at_s;
        self.arrived.entry(number).or_insert_with(|| {
            self.order.push(number);
            now.as_secs_f64() - sent
        });
    }

    fn outcome(&self) -> Outcome {
        let packets = self.drawn.packets.len() as u32;
        let is_packet = |number: &&u32| **number < packets && !self.arrived.contains_key(number);
        Outcome {
            packets,
            delays_s: self.order.iter().map(|number| self.arrived[number]).collect(),
            delivered: self.order.clone(),
            damaged: self.damaged.iter().filter(is_packet).count() as u32,
            unsent: self.unsent,
            ..Outcome::default()
        }
    }
}
