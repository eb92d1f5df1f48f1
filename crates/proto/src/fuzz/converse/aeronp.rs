//! A node of AeroNP between users of datagrams and interfaces from which anything comes.

use super::{Script, ScriptedSide, play};
use crate::aeronp::wire::{Packet, PacketType, WireFix};
use crate::aeronp::{Config, EndpointConfig, Node};
use crate::aerorp::{self, AeroRp};
use crate::fuzz::aeronp::{packet, valid_acknowledgement, valid_beacon};
use crate::fuzz::encoded;
use crate::motion::Trajectory;
use crate::packet_router::NodeAddress;
use crate::service::{
    DatagramsIndication, DatagramsRequest, FramesIndication, FramesRequest, InterfaceId, LinkId, PeerId,
    Shares,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const HERE: NodeAddress = NodeAddress(1);
/// Distance of the node from another one that never moves, centimetres.
const PLACE_CM: i32 = 10_000_000;
const INTERFACES: [InterfaceId; 2] = [InterfaceId(0), InterfaceId(7)];
const LINKS: [LinkId; 2] = [LinkId(3), LinkId(4)];

/// State of an endpoint for its user.
#[derive(Debug, Default)]
struct Endpoint {
    joining: bool,
    joined: bool,
    room: u64,
    unreleased: u64,
    peers: BTreeSet<PeerId>,
}

/// Users of both endpoints.
#[derive(Debug, Default)]
struct User(BTreeMap<LinkId, Endpoint>);

impl ScriptedSide<(LinkId, DatagramsIndication), (LinkId, DatagramsRequest)> for User {
    fn hear(&mut self, (link, said): (LinkId, DatagramsIndication)) {
        let endpoint = self.0.entry(link).or_default();
        match said {
            DatagramsIndication::Joined { peer, .. } => {
                (endpoint.joined, endpoint.peers) = (true, peer.into_iter().collect());
            }
            DatagramsIndication::Room(room) => endpoint.room = room,
            DatagramsIndication::Datagram { from, bytes, .. } => {
                endpoint.peers.insert(from);
                endpoint.unreleased += bytes.len() as u64;
            }
            _ => {}
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<(LinkId, DatagramsRequest)> {
        let link = script.pick(&LINKS)?;
        let endpoint = self.0.entry(link).or_default();
        if !endpoint.joining {
            endpoint.joining = true;
            return Some((link, DatagramsRequest::Join { damaged: script.chance() }));
        }
        if !endpoint.joined {
            return None;
        }
        let request = match script.below(16) {
            0 => {
                *endpoint = Endpoint::default();
                DatagramsRequest::Leave
            }
            1..=4 => DatagramsRequest::Release(core::mem::take(&mut endpoint.unreleased)),
            _ => {
                let peers: Vec<_> = endpoint.peers.iter().copied().collect();
                let to = script.pick(&peers).filter(|_| endpoint.room > 0)?;
                endpoint.room -= 1;
                let bytes = script.bytes(50);
                let (shares, token) = (Shares::payload(bytes.len()), script.chance().then_some(1));
                DatagramsRequest::Datagram { to, bytes, shares, token }
            }
        };
        Some((link, request))
    }
}

/// One interface.
#[derive(Debug, Default)]
struct Interface {
    joined: bool,
    room: u32,
    tokens: VecDeque<u64>,
}

/// Interfaces on which neighbours send packets, legal ones and others.
#[derive(Debug, Default)]
struct Provider {
    all: BTreeMap<InterfaceId, Interface>,
    /// The last packet of the node, to be answered.
    heard: Option<Packet>,
    last: Bytes,
}

impl ScriptedSide<(InterfaceId, FramesRequest), (InterfaceId, FramesIndication)> for Provider {
    fn hear(&mut self, (at, request): (InterfaceId, FramesRequest)) {
        let interface = self.all.entry(at).or_default();
        match request {
            FramesRequest::Join => interface.joined = true,
            FramesRequest::Seize => {}
            FramesRequest::Frame { bytes, token, .. } => {
                interface.room -= 1;
                interface.tokens.extend(token);
                self.heard = Some(Packet::decode(&mut bytes.clone()).expect("the node sends packets"));
                self.last = bytes;
            }
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<(InterfaceId, FramesIndication)> {
        let at = script.pick(&INTERFACES)?;
        let interface = self.all.entry(at).or_default();
        if !interface.joined {
            return None;
        }
        let said = match script.below(16) {
            0..=3 => {
                interface.room = script.below(5) as u32;
                FramesIndication::Room(interface.room)
            }
            4 | 5 => FramesIndication::Transmitted(interface.tokens.pop_front()?),
            6 => FramesIndication::Carrier(script.chance()),
            7 => FramesIndication::Frame(script.bytes(200)),
            8 => {
                let mut bytes = self.last.to_vec();
                if !bytes.is_empty() {
                    let place = usize::from(script.byte()) % bytes.len();
                    bytes[place] ^= script.byte();
                }
                FramesIndication::Frame(bytes.into())
            }
            _ => FramesIndication::Frame(self.packet(script)),
        };
        Some((at, said))
    }
}

impl Provider {
    /// Returns a packet of a neighbour: data, a beacon, or an acknowledgement.
    fn packet(&self, script: &mut Script<'_>) -> Bytes {
        let mut rng = script.rng();
        let (kind, payload) = match script.below(4) {
            0 => (PacketType::Beacon, valid_beacon(rng.fork("beacon"))),
            1 => (PacketType::Acknowledgement, valid_acknowledgement(rng.fork("answer"))),
            _ => (PacketType::Data, script.bytes(100)),
        };
        let mut packet = packet(&mut rng, kind, payload);
        if script.chance() {
            packet.sender_fix = Some(near(script));
        }
        if script.chance() {
            packet.receiver = HERE;
        }
        if script.below(4) == 0
            && let Some(heard) = &self.heard
        {
            (packet.sender, packet.sequence) = (heard.receiver, heard.sequence);
            (packet.source, packet.identification) = (heard.source, heard.identification);
        }
        encoded(|out| packet.encode(out))
    }
}

/// Fix at which a neighbour may be: most of them are within range, some at impossible speed.
fn near(script: &mut Script<'_>) -> WireFix {
    let mut rng = script.rng();
    let mut offset = |of: i32| rng.below(2 * of as u64 + 1) as i32 - of;
    WireFix {
        position_cm: [PLACE_CM, 0, 0].map(|center| center + offset(2_000_000)),
        velocity_dmps: [(); 3].map(|()| offset(12_000) as i16),
        age_tenths: offset(50).unsigned_abs() as u16,
    }
}

pub(super) fn node(script: &mut Script<'_>) -> u64 {
    let endpoint = |link: LinkId, peer: Option<NodeAddress>, script: &mut Script<'_>| EndpointConfig {
        link,
        peer,
        precedence: script.below(16) as u8,
        lifetime: Duration::from_millis(100 << script.below(12)),
        packets_max: 1 + script.below(4) as usize,
        incoming_bytes_max: 1 << script.below(10),
        ..EndpointConfig::default()
    };
    let config = Config {
        address: HERE,
        interfaces: INTERFACES.to_vec(),
        endpoints: vec![endpoint(LINKS[0], Some(NodeAddress(2)), script), endpoint(LINKS[1], None, script)],
        frame_bytes_max: 128 + script.below(256),
        neighbours_max: 1 + script.below(4) as usize,
        acknowledge: script.chance(),
        failures_max: 1 + script.below(3) as u32,
        window_packets: 1 + script.below(3) as usize,
        queue_bytes_max: 512 << script.below(4),
        remembered_max: 1 + script.below(8) as usize,
        ..Config::default()
    };
    let router = AeroRp::new(aerorp::Config {
        address: HERE,
        range_m: 25_000.0,
        known: vec![(NodeAddress(2), [0.0; 3])],
        nodes_max: 1 + script.below(8) as usize,
        fix_hops_max: script.below(5) as u8,
        horizon: Duration::from_secs(1 << script.below(10)),
        fill_percent_max: 1 + script.below(100),
        ..aerorp::Config::default()
    });
    let flight = Trajectory::at_rest([f64::from(PLACE_CM) / 100.0, 0.0, 0.0]);
    let engine = Node::new(config, Box::new(router), flight, Instant::ZERO, script.rng());
    play("aeronp", engine, &mut User::default(), &mut Provider::default(), script)
}
