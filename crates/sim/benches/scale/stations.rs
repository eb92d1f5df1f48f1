//! One hour of a radio channel that all stations hear: each sends a UI frame to all every ten minutes on average, and some
//! transfer a file over a connection.

use crate::{Digest, Outcome, SEED};
use bytes::Bytes;
use longwire_proto::ax25::{self, Callsign, LinkConfig, PeerStation, RadioParameters, Station, Version};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Both, Datagrams, DatagramsIndication, DatagramsRequest, LinkId, Many, Packets, PacketsIndication,
    PacketsRequest, PeerId, Port, Shares,
};
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{NodeId, OnRadio, RadioConfig, Simulation, StationConfig};

type Links = Both<Many<LinkId, Packets>, Many<LinkId, Datagrams>>;

const RATE_BPS: u32 = 9600;
const LASTS_S: f64 = 3600.0;
/// Destination of UI frames, and the station to which a file is sent.
const GROUP: LinkId = LinkId(1);
const PEER: LinkId = LinkId(2);
/// Mean time between two UI frames of a station, seconds.
const INTERVAL_S: f64 = 600.0;
const UI_BYTES: usize = 64;
/// Every so many-th station sends a file to the next one.
const SENDER_EVERY: u32 = 25;
const FILE_PACKETS: u32 = 32;
const PACKET_BYTES: usize = 256;

/// Wish of a user.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Wish {
    Frame,
    File,
}

pub(crate) fn run(stations: u32) -> Outcome {
    let mut world: Simulation<Links> = Simulation::new(SEED);
    let station = StationConfig {
        tx_delay: Duration::from_millis(100),
        tx_tail: Duration::from_millis(10),
        slot_time: Duration::from_millis(50),
        ..StationConfig::default()
    };
    let add = |number| {
        let config = config(number, &station);
        world.add_node(&format!("s{number}"), move |_| Box::new(OnRadio(Station::new(config.clone()))))
    };
    let nodes: Vec<NodeId> = (0..stations).map(add).collect();
    let ends: Vec<_> = nodes.iter().map(|node| (*node, OnRadio::INTERFACE)).collect();
    let radio =
        RadioConfig { rate_bps: u64::from(RATE_BPS), stations: vec![station], ..RadioConfig::default() };
    world.add_radio(radio, &ends);
    for node in &nodes {
        world.request(*node, Port::Second((GROUP, DatagramsRequest::Join { damaged: false })));
    }
    let mut users = Users {
        room: vec![0; nodes.len()],
        packets: vec![FILE_PACKETS; nodes.len()],
        frames: 0,
        files: 0,
        digest: Digest::new(),
    };
    for (at, node, wish) in wishes(&nodes) {
        users.run_until(&mut world, at);
        users.begin(&mut world, node, wish);
    }
    users.run_until(&mut world, Instant::ZERO + Duration::from_secs_f64(LASTS_S));
    let delivered = format!("{} UI frames and {} files delivered", users.frames, users.files);
    Outcome { events: world.events(), delivered, digest: users.digest }
}

fn config(number: u32, station: &StationConfig) -> ax25::Config {
    let link = LinkConfig { version: Version::Plain, ..LinkConfig::default() };
    let peer = |name: &str| PeerStation { station: callsign(name), path: Vec::new(), link: link.clone() };
    let mut config = ax25::Config::new(callsign(&format!("S{number}")));
    config.radio = RadioParameters {
        rate_bps: RATE_BPS,
        tx_delay: station.tx_delay,
        tx_tail: station.tx_tail,
        slot_time: station.slot_time,
        persistence: station.persistence,
        ..RadioParameters::default()
    };
    config.unconnected.insert(GROUP, peer("QST"));
    if number.is_multiple_of(SENDER_EVERY) {
        config.peers.insert(PEER, peer(&format!("S{}", number + 1)));
    }
    config.callers = Some(link);
    config
}

fn callsign(text: &str) -> Callsign {
    text.parse().expect("a letter and digits are a callsign")
}

/// Draws the times of all frames and files.
fn wishes(nodes: &[NodeId]) -> Vec<(Instant, NodeId, Wish)> {
    let mut wishes = Vec::new();
    let at = |seconds| Instant::ZERO + Duration::from_secs_f64(seconds);
    for node in nodes {
        let mut rng = Rng::new(SEED).fork(&format!("traffic of {}", node.0));
        if node.0.is_multiple_of(SENDER_EVERY) {
            wishes.push((at(LASTS_S * rng.unit()), *node, Wish::File));
        }
        let mut seconds = rng.exponential(INTERVAL_S);
        while seconds < LASTS_S {
            wishes.push((at(seconds), *node, Wish::Frame));
            seconds += rng.exponential(INTERVAL_S);
        }
    }
    wishes.sort_unstable();
    wishes
}

/// Users of all stations.
struct Users {
    /// UI frames for which each station has room.
    room: Vec<u64>,
    /// Packets of its file that each station has not passed down yet.
    packets: Vec<u32>,
    frames: u64,
    files: u64,
    digest: Digest,
}

impl Users {
    fn run_until(&mut self, world: &mut Simulation<Links>, until: Instant) {
        world.run_while(until, |world| {
            self.hear(world);
            true
        });
        world.run_until(until);
    }

    fn begin(&mut self, world: &mut Simulation<Links>, node: NodeId, wish: Wish) {
        match wish {
            Wish::File => {
                world.request(node, Port::First((PEER, PacketsRequest::Connect)));
            }
            Wish::Frame if self.room[node.0 as usize] > 0 => {
                let bytes = Bytes::from(vec![node.0 as u8; UI_BYTES]);
                let (to, shares) = (PeerId::CONFIGURED, Shares::payload(UI_BYTES));
                let datagram = DatagramsRequest::Datagram { to, bytes, shares, token: None };
                world.request(node, Port::Second((GROUP, datagram)));
            }
            // As many frames as there may be wait for the channel already.
            Wish::Frame => {}
        }
    }

    fn hear(&mut self, world: &mut Simulation<Links>) {
        while let Some((at, node, said)) = world.pop_indication() {
            match said {
                Port::First((link, said)) => self.packets(world, at, node, link, said),
                Port::Second((_, DatagramsIndication::Room(room))) => self.room[node.0 as usize] = room,
                Port::Second((link, DatagramsIndication::Datagram { bytes, .. })) => {
                    self.frames += 1;
                    self.digest.add(at, node, &bytes);
                    let release = DatagramsRequest::Release(bytes.len() as u64);
                    world.request(node, Port::Second((link, release)));
                }
                Port::Second(_) => {}
            }
        }
    }

    fn packets(
        &mut self,
        world: &mut Simulation<Links>,
        at: Instant,
        node: NodeId,
        link: LinkId,
        said: PacketsIndication,
    ) {
        let mut request = |request| {
            world.request(node, Port::First((link, request)));
        };
        match said {
            PacketsIndication::Room(room) if link == PEER => {
                let left = &mut self.packets[node.0 as usize];
                let count = room.min(u64::from(*left)) as u32;
                *left -= count;
                for _ in 0..count {
                    request(PacketsRequest::payload(Bytes::from_static(&[7; PACKET_BYTES])));
                }
            }
            PacketsIndication::Acknowledged(count) if count == u64::from(FILE_PACKETS) => {
                self.files += 1;
                request(PacketsRequest::Close);
            }
            PacketsIndication::Packet(bytes) => {
                self.digest.add(at, node, &bytes);
                request(PacketsRequest::Release(1));
            }
            _ => {}
        }
    }
}
