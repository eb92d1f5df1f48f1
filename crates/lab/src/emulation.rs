//! A path of links as a black box: packets in at one end, packets out at the other, in virtual time.
//!
//! ```text
//!   send --> [ end 0 ] === link === [ relay ] === link === [ end 1 ] --> arrivals
//!   arrivals <--                                                 <-- send
//! ```
//!
//! The user decides what time it is: [`EmulatedPath::advance`] processes everything until then. Each end has
//! [room](EmulatedPath::room) for a number of packets, so that they wait where they are made. Relays between links forward
//! packets as routers do, and drop those that find the queue of the next link full.
//!
//! | link | what passes |
//! |---|---|
//! | two lines | packets as they are, within the MTU of the link |
//! | `[ethernet]` | IP packets in Ethernet frames, with known stations |
//! | `[radio]` | frames, with a controller (TNC) at each station, as many stations as wanted |

use crate::error::Error;
use crate::ethernet::EthernetStation;
use crate::ethernet::node::OnEthernet;
use crate::link::outages::{Outage, OutageFrom};
use crate::link::{LinkPath, LinkProfile, at};
use crate::world;
use bytes::Bytes;
use longwire_proto::engine::{Engine, Indication, Request, no_timers};
use longwire_proto::joint::PassThrough;
use longwire_proto::rng::Rng;
use longwire_proto::service::{Frames, FramesIndication, FramesRequest, InterfaceId, Port, Shares};
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{
    ChannelId, Counters, Direction, InjectedFault, NodeBelow, NodeEngine, NodeId, OnRadio, Simulation, Tnc,
    TncConfig,
};
use std::collections::VecDeque;
use std::net::Ipv4Addr;

/// Maximum stations of a radio channel.
pub const STATIONS_MAX: usize = 32;
/// Time until which the passes of a link are computed, seconds: eleven days, as for a profile that is checked.
const PASSES_UNTIL_S: f64 = 1e6;
/// Interfaces of a relay, towards the first end and towards the last.
const RELAY: [InterfaceId; 2] = [InterfaceId(0), InterfaceId(1)];

/// Packet that arrived at an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Number of the end.
    pub end: usize,
    /// Time at which its last bit arrived.
    pub at: Instant,
    /// The packet. Without a frame check on the link, bits may be wrong.
    pub bytes: Bytes,
}

/// A path of links with its ends.
pub struct EmulatedPath {
    simulation: Simulation<Frames>,
    ends: Vec<NodeId>,
    rooms: Vec<u32>,
    arrivals: VecDeque<Arrival>,
    left: VecDeque<(usize, u64)>,
    channels: Vec<ChannelId>,
    /// Outages that begin with the first packet: channel, delay, duration.
    after_data: Vec<(ChannelId, Duration, Duration)>,
    packet_bytes_max: u32,
    is_shared: bool,
}

impl EmulatedPath {
    /// Makes a path with two ends; IP packets on a link with `[ethernet]` have these addresses. The seed determines bit errors,
    /// channel access and random outages.
    ///
    /// # Errors
    /// Fails if a link has more outages than are possible.
    pub fn new(path: &LinkPath, addresses: [Ipv4Addr; 2], seed: u64) -> Result<EmulatedPath, Error> {
        let mut simulation = world::simulation(seed);
        let (hops, first) = (path.hops.len(), &path.hops[0]);
        let nodes: Vec<NodeId> = (0..=hops)
            .map(|place| {
                let name = format!("{}-{place}", path.nodes[place]);
                let engine: NodeFactory = match (place, &first.ethernet, &first.radio) {
                    (place, None, None) if place > 0 && place < hops => {
                        Box::new(|| Box::new(Relay::default()))
                    }
                    (_, None, None) => Box::new(plain),
                    (_, Some(_), _) => in_ethernet(first, place, addresses),
                    (_, None, Some(_)) => Box::new(with_controller),
                };
                simulation.add_node(&name, move |_| engine())
            })
            .collect();
        let mut draws = OutageDraws::new(seed);
        let (mut channels, mut after_data) = (Vec::new(), Vec::new());
        for (hop, link) in path.hops.iter().enumerate() {
            let outages = draws.outages(link)?;
            let onward = if hop == 0 { RELAY[0] } else { RELAY[1] };
            let ends = [(nodes[hop], onward), (nodes[hop + 1], RELAY[0])];
            let channel = link.connect(&mut simulation, ends, &outages);
            after_data.extend(relative(channel, &outages));
            channels.push(channel);
        }
        let packet_bytes_max = path.hops.iter().map(LinkProfile::frame_bytes_max).min();
        let ends = vec![nodes[0], nodes[hops]];
        let is_shared = first.is_shared();
        Ok(EmulatedPath {
            after_data,
            packet_bytes_max: packet_bytes_max.expect("a path has a hop"),
            ..EmulatedPath::of(simulation, ends, channels, is_shared)
        })
    }

    /// Makes a radio channel with this number of stations, all of which hear each other.
    ///
    /// # Errors
    /// Fails if the link has no `[radio]`, has too many outages, or cannot have this number of stations.
    pub fn radio(link: &LinkProfile, stations: usize, seed: u64) -> Result<EmulatedPath, Error> {
        if link.radio.is_none() {
            return Err(Error::new("the link is not a radio channel: it has no `[radio]`")
                .hint("use a profile such as ax25-1200 or ax25-9600"));
        }
        if !(2..=STATIONS_MAX).contains(&stations) {
            return Err(Error::new(format!("a channel cannot have {stations} stations"))
                .hint(format!("use 2 to {STATIONS_MAX}")));
        }
        let mut simulation = world::simulation(seed);
        let nodes = (0..stations)
            .map(|station| simulation.add_node(&format!("station-{station}"), |_| with_controller()));
        let nodes: Vec<NodeId> = nodes.collect();
        let ends: Vec<_> = nodes.iter().map(|node| (*node, RELAY[0])).collect();
        let outages = OutageDraws::new(seed).outages(link)?;
        let channel = link.connect_group(&mut simulation, &ends, &outages);
        Ok(EmulatedPath {
            after_data: relative(channel, &outages).collect(),
            packet_bytes_max: FRAME_BYTES_MAX,
            ..EmulatedPath::of(simulation, nodes, vec![channel], true)
        })
    }

    fn of(
        mut simulation: Simulation<Frames>,
        ends: Vec<NodeId>,
        channels: Vec<ChannelId>,
        is_shared: bool,
    ) -> EmulatedPath {
        for end in &ends {
            simulation.request(*end, FramesRequest::Join);
        }
        let rooms = vec![0; ends.len()];
        let (arrivals, left) = Default::default();
        let (after_data, packet_bytes_max) = (Vec::new(), 0);
        let mut path = EmulatedPath {
            simulation,
            ends,
            rooms,
            arrivals,
            left,
            channels,
            after_data,
            packet_bytes_max,
            is_shared,
        };
        path.hear();
        path
    }

    /// Number of ends.
    pub fn ends(&self) -> usize {
        self.ends.len()
    }

    /// Maximum length of a packet, bytes.
    pub fn packet_bytes_max(&self) -> u32 {
        self.packet_bytes_max
    }

    /// Current time.
    pub fn now(&self) -> Instant {
        self.simulation.now()
    }

    /// Lets the time pass until `now`.
    pub fn advance(&mut self, now: Instant) {
        self.simulation.run_until(now);
        self.hear();
    }

    /// Time of the next event; `None` if nothing happens without a packet.
    pub fn next_event_at(&self) -> Option<Instant> {
        self.simulation.next_event_at()
    }

    /// Number of packets that an end accepts now.
    pub fn room(&self, end: usize) -> u32 {
        self.rooms[end]
    }

    /// Sends a packet from an end now. With a token, [`EmulatedPath::pop_left`] tells when its last bit has left. A packet
    /// that is too long for the link is lost, and counted.
    ///
    /// # Panics
    /// Panics without room.
    pub fn send(&mut self, end: usize, bytes: Bytes, token: Option<u64>) {
        assert!(self.rooms[end] > 0, "a packet without room");
        self.rooms[end] -= 1;
        if end == 0 {
            for (channel, after, length) in std::mem::take(&mut self.after_data) {
                let from = self.simulation.now() + after;
                self.simulation.fault_at(from, InjectedFault::Cut(channel));
                self.simulation.fault_at(from + length, InjectedFault::Heal(channel));
            }
        }
        let shares = Shares { payload: bytes.len() as u32, ..Shares::default() };
        self.simulation.request(self.ends[end], FramesRequest::Frame { bytes, token, last: true, shares });
        self.hear();
    }

    /// Removes and returns the packet that arrived first.
    pub fn pop_arrival(&mut self) -> Option<Arrival> {
        self.arrivals.pop_front()
    }

    /// Removes and returns the end and the token of the packet that left first.
    pub fn pop_left(&mut self) -> Option<(usize, u64)> {
        self.left.pop_front()
    }

    /// Counters of the packets from the first end (`Forward`) and from the last: for several links the sum of all of them. `None`
    /// on a shared channel.
    pub fn counters(&self, direction: Direction) -> Option<Vec<Counters>> {
        let lines = (!self.is_shared).then_some(&self.channels)?;
        Some(lines.iter().map(|channel| self.simulation.counters(*channel, direction)).collect())
    }

    fn hear(&mut self) {
        while let Some((at, node, said)) = self.simulation.pop_indication() {
            let Some(end) = self.ends.iter().position(|end| *end == node) else { continue };
            match said {
                FramesIndication::Room(room) => self.rooms[end] = room,
                FramesIndication::Frame(bytes) => self.arrivals.push_back(Arrival { end, at, bytes }),
                FramesIndication::Transmitted(token) => self.left.push_back((end, token)),
                FramesIndication::Busy(_) | FramesIndication::Carrier(_) => {}
            }
        }
    }
}

/// Maximum length of a frame on a radio channel, bytes: more than any station sends.
const FRAME_BYTES_MAX: u32 = 4096;

type NodeFactory = Box<dyn Fn() -> NodeEngine<Frames> + Send>;

/// End of a line.
fn plain() -> NodeEngine<Frames> {
    Box::new(OnRadio(PassThrough::<Frames>::new()))
}

/// Station of a radio channel.
fn with_controller() -> NodeEngine<Frames> {
    Box::new(OnRadio(Tnc::new(TncConfig::default())))
}

/// Host behind an Ethernet station.
fn in_ethernet(link: &LinkProfile, place: usize, addresses: [Ipv4Addr; 2]) -> NodeFactory {
    let ethernet = link.ethernet.as_ref().expect("it is a link with [ethernet]");
    let host = (OnRadio::INTERFACE, addresses[place]);
    let config = ethernet.station(link, place as u16, host, addresses[1 - place]);
    Box::new(move || {
        Box::new(OnEthernet::new(OnRadio::INTERFACE, plain(), EthernetStation::new(config.clone())))
    })
}

/// Random starts of outages, numbered over all links of a path.
struct OutageDraws {
    rng: Rng,
    number: u32,
}

impl OutageDraws {
    fn new(seed: u64) -> OutageDraws {
        OutageDraws { rng: Rng::new(seed).fork("outages"), number: 0 }
    }

    /// Outages of the next link.
    fn outages(&mut self, link: &LinkProfile) -> Result<Vec<Outage>, Error> {
        let outages = link.outages_until(PASSES_UNTIL_S).map_err(Error::new)?;
        let starts = outages.iter().map(|outage| {
            let share = self.rng.fork(&format!("outage {}", self.number)).unit();
            self.number += 1;
            Outage { after_s: outage.after_s + outage.spread_s * share, spread_s: 0.0, ..*outage }
        });
        Ok(starts.filter(|outage| outage.length_s > 0.0).collect())
    }
}

/// Outages that begin with the first packet.
fn relative(channel: ChannelId, outages: &[Outage]) -> impl Iterator<Item = (ChannelId, Duration, Duration)> {
    let relative = outages.iter().filter(|outage| outage.from == OutageFrom::Data);
    relative.map(move |outage| (channel, span(outage.after_s), span(outage.length_s)))
}

fn span(seconds: f64) -> Duration {
    at(seconds).saturating_since(Instant::ZERO)
}

/// Forwards packets between two links.
#[derive(Debug, Default)]
struct Relay {
    has_joined: [bool; 2],
    rooms: [u32; 2],
    down: VecDeque<(InterfaceId, Bytes)>,
}

impl Engine for Relay {
    type Above = Frames;
    type Below = NodeBelow;

    no_timers!();

    fn handle_request(&mut self, _: Instant, _: FramesRequest) {}

    fn handle_indication(&mut self, _: Instant, indication: Indication<NodeBelow>) {
        let Port::Second((from, indication)) = indication else { return };
        let side = usize::from(from == RELAY[1]);
        match indication {
            FramesIndication::Room(room) => self.rooms[side] = room,
            // A packet that finds the next link full is dropped, as at any router.
            FramesIndication::Frame(bytes) if self.rooms[1 - side] > 0 => {
                self.rooms[1 - side] -= 1;
                self.down.push_back((RELAY[1 - side], bytes));
            }
            _ => {}
        }
    }

    fn poll_indication(&mut self, _: Instant) -> Option<FramesIndication> {
        None
    }

    fn poll_request(&mut self, _: Instant) -> Option<Request<NodeBelow>> {
        if let Some(side) = self.has_joined.iter().position(|has_joined| !has_joined) {
            self.has_joined[side] = true;
            return Some(Port::Second((RELAY[side], FramesRequest::Join)));
        }
        let (interface, bytes) = self.down.pop_front()?;
        let shares = Shares::payload(bytes.len());
        Some(Port::Second((interface, FramesRequest::Frame { bytes, token: None, last: true, shares })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::tcp::wire::internet_checksum;
    use std::path::Path;

    const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 64, 0, 1), Ipv4Addr::new(10, 64, 0, 2)];

    fn path(name: &str) -> LinkPath {
        LinkPath::load(name, Path::new(".")).expect("it is built in")
    }

    fn packet(from: usize, length: usize) -> Bytes {
        let mut bytes = vec![0x55; length];
        bytes[..20].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 64, 0, 0, 10, 64, 0, 0]);
        bytes[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        bytes[15] = ADDRESSES[from].octets()[3];
        bytes[19] = ADDRESSES[1 - from].octets()[3];
        let checksum = internet_checksum(&bytes[..20]);
        bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes.into()
    }

    /// Sends a packet when there is room, and returns the time until it arrives, seconds.
    fn passage(path: &mut EmulatedPath, from: usize, bytes: Bytes) -> f64 {
        while path.room(from) == 0 {
            let next = path.next_event_at().expect("room follows");
            path.advance(next);
        }
        let sent_at = path.now();
        path.send(from, bytes.clone(), None);
        loop {
            if let Some(arrival) = path.pop_arrival() {
                assert_eq!((arrival.end, &arrival.bytes), (1 - from, &bytes));
                return arrival.at.saturating_since(sent_at).as_secs_f64();
            }
            let next = path.next_event_at().expect("it arrives");
            path.advance(next);
        }
    }

    #[test]
    fn a_packet_takes_its_transmission_and_the_delay() {
        let cislunar = LinkPath {
            hops: vec![LinkProfile { ber: 0.0, ..path("cislunar").hops[0].clone() }],
            ..path("cislunar")
        };
        let mut emulated = EmulatedPath::new(&cislunar, ADDRESSES, 1).expect("it can be emulated");
        let expected = 1502.0 * 8.0 / 115_200.0 + 1.28;
        for from in [0, 1] {
            let seconds = passage(&mut emulated, from, packet(from, 1500));
            assert!((seconds - expected).abs() < 1e-6, "{seconds} s in place of {expected}");
        }
        let counters = emulated.counters(Direction::Forward).expect("it is a line");
        assert_eq!((counters.len(), counters[0].handed, counters[0].delivered), (1, 1, 1));
    }

    #[test]
    fn packets_pass_every_shipped_link_in_both_directions() {
        for (name, _) in crate::link::SHIPPED {
            let link = path(name);
            // Bit errors would make it a matter of luck.
            let hops = link.hops.iter().map(|hop| LinkProfile {
                ber: 0.0,
                back_ber: None,
                bursts: None,
                outage: Vec::new(),
                pass: Vec::new(),
                ..hop.clone()
            });
            let link = LinkPath { hops: hops.collect(), ..link };
            let mut emulated = EmulatedPath::new(&link, ADDRESSES, 1).expect("it can be emulated");
            for from in [0, 1, 0] {
                let seconds = passage(&mut emulated, from, packet(from, 60));
                let least = link.hops.iter().map(|hop| hop.delay_ms / 1e3).sum::<f64>();
                assert!(seconds > least, "{name}: {seconds} s");
            }
        }
    }

    #[test]
    fn outages_of_two_links_begin_independently() {
        let outage = Outage { spread_s: 1000.0, length_s: 1.0, ..Outage::default() };
        let link = LinkProfile { outage: vec![outage], ..LinkProfile::default() };
        let mut draws = OutageDraws::new(1);
        let [first, second] = [0, 1].map(|_| draws.outages(&link).expect("it has one")[0].after_s);
        assert!(
            first != second && OutageDraws::new(1).outages(&link).expect("it has one")[0].after_s == first
        );
    }

    #[test]
    fn an_end_has_room_for_its_queue_and_no_more() {
        let mut emulated = EmulatedPath::new(&path("cislunar"), ADDRESSES, 1).expect("it can be emulated");
        let mut sent = 0;
        while emulated.room(0) > 0 {
            emulated.send(0, packet(0, 1500), None);
            sent += 1;
        }
        assert_eq!(sent, 1 + 20_000 / 1500);
    }

    #[test]
    fn every_other_station_hears_a_frame_and_its_end_is_reported() {
        let mut emulated = EmulatedPath::radio(&path("ax25-1200").hops[0], 3, 7).expect("it can be emulated");
        emulated.send(1, Bytes::from_static(&[0x55; 30]), Some(9));
        let mut left_at = None;
        while emulated.arrivals.len() < 2 {
            let next = emulated.next_event_at().expect("it arrives");
            emulated.advance(next);
            if emulated.pop_left().is_some_and(|left| left == (1, 9)) {
                left_at = Some(emulated.now());
            }
        }
        let [first, second] =
            [emulated.pop_arrival(), emulated.pop_arrival()].map(|arrival| arrival.expect("it arrives"));
        assert_eq!(([first.end, second.end], first.at), ([0, 2], second.at));
        // TXDELAY and 33 bytes between flags; the wait for the channel is random.
        assert!(first.at > Instant::from_millis(300 + 230), "{:?}", first.at);
        assert_eq!(left_at, Some(first.at));
    }

    #[test]
    fn stations_need_a_radio_channel_and_company() {
        for (name, stations) in [("cislunar", 2), ("ax25-1200", 1), ("ax25-1200", STATIONS_MAX + 1)] {
            let refused = EmulatedPath::radio(&path(name).hops[0], stations, 1);
            assert!(refused.is_err(), "{name} with {stations} stations");
        }
    }

    #[test]
    fn the_same_seed_loses_the_same_packets() {
        let run = |seed| {
            let mut emulated =
                EmulatedPath::new(&path("cislunar"), ADDRESSES, seed).expect("it can be emulated");
            for _ in 0..200 {
                while emulated.room(0) == 0 {
                    let next = emulated.next_event_at().expect("room follows");
                    emulated.advance(next);
                }
                emulated.send(0, packet(0, 1500), None);
            }
            emulated.advance(Instant::from_secs(100));
            std::iter::from_fn(move || emulated.pop_arrival()).map(|arrival| arrival.at).collect::<Vec<_>>()
        };
        assert_eq!(run(1), run(1));
        assert!(run(1) != run(2) && run(1).len() < 200);
    }
}
