//! TCP/IP over AX.25: over UI frames, and over links, which retransmit lost frames without involving TCP.

use crate::ax25::call;
use bytes::Bytes;
use longwire_proto::ax25::{
    self, IpInterfaceConfig, IpInterfaces, IpMode, LinkConfig, PeerStation, Station, Version, pid,
};
use longwire_proto::joint::Stack;
use longwire_proto::rng::Rng;
use longwire_proto::service::{InterfaceId, LinkId, Many, Stream, StreamIndication, StreamRequest};
use longwire_proto::tcp::Host;
use longwire_proto::tcp::config::{HostConfig, InterfaceConfig, PeerConfig, Profile};
use longwire_proto::time::{Duration, Instant};
use longwire_proto::wrap::Checked;
use longwire_sim::*;

type Streams = Many<LinkId, Stream>;

const OWN: LinkId = LinkId(0);
const LENGTH: usize = 7182;

/// Makes a node with TCP/IP over an interface to the other station.
fn node(boot: &Boot, at: usize, carriage: IpMode) -> NodeEngine<Streams> {
    let (own, peer) = [("A", "B"), ("B", "A")][at];
    let link = LinkConfig {
        version: Version::Plain,
        information_bytes_max: 576,
        protocol: pid::INTERNET,
        ..LinkConfig::default()
    };
    let mut station = ax25::Config::new(call(own));
    station.radio.rate_bps = 9600;
    let to = PeerStation { station: call(peer), path: Vec::new(), link: link.clone() };
    station.callers = Some(link);
    match carriage {
        IpMode::Unconnected => station.unconnected.insert(OWN, to),
        IpMode::Connected => station.peers.insert(OWN, to),
    };
    let interface = InterfaceId(0);
    let internet =
        IpInterfaces::new([IpInterfaceConfig { interface, link: OWN, peer: call(peer), carriage }]);
    let address = |at: usize| [10, 0, 0, 1 + at as u8].into();
    let here =
        InterfaceConfig { interface, address: address(at), mtu_bytes: 576, ..InterfaceConfig::default() };
    let config = HostConfig {
        profile: Profile::named("linux-6").expect("it is known"),
        interfaces: vec![here],
        listen: vec![21],
        peers: vec![PeerConfig { link: OWN, address: address(1 - at), port: 21 }],
        ..HostConfig::default()
    };
    let host = Host::new(config, boot.rng.fork("tcp"));
    let lower = Stack::new(Checked::new("internet", internet), Checked::new(own, Station::new(station)));
    Box::new(OnRadio(Stack::new(Checked::new("tcp", host), lower)))
}

/// Transfers a file. Returns the time at which it arrived completely, the file, and the data received.
fn transfer(seed: u64, carriage: IpMode, errors: Errors) -> (Instant, Vec<u8>, Vec<u8>) {
    let mut world: Simulation<Streams> = Simulation::new(seed);
    let nodes: Vec<NodeId> =
        (0..2).map(|at| world.add_node(["A", "B"][at], move |boot| node(&boot, at, carriage))).collect();
    let radio = RadioConfig { rate_bps: 9600, errors, ..RadioConfig::default() };
    world.add_radio(radio, &[(nodes[0], InterfaceId(0)), (nodes[1], InterfaceId(0))]);
    let mut file = vec![0; LENGTH];
    Rng::new(seed).fill(&mut file);
    let (mut sent, mut heard) = (0, Vec::new());
    world.request(nodes[0], (OWN, StreamRequest::Connect));
    while heard.len() < LENGTH {
        while let Some((_, at, (link, said))) = world.pop_indication() {
            match said {
                StreamIndication::Room(room) if at == nodes[0] => {
                    let piece = &file[sent..LENGTH.min(sent + room as usize)];
                    sent += piece.len();
                    if !piece.is_empty() {
                        let piece = Bytes::copy_from_slice(piece);
                        world.request(at, (link, StreamRequest::Write(piece)));
                    }
                }
                StreamIndication::Data(data) => {
                    heard.extend_from_slice(&data);
                    world.request(at, (link, StreamRequest::Release(data.len() as u64)));
                }
                StreamIndication::Closed(why) => panic!("closed at {}: {why:?}", world.now()),
                _ => {}
            }
        }
        assert!(heard.len() == LENGTH || world.step(), "nothing happens any more\n{}", world.status());
        assert!(world.now() < Instant::from_secs(3600), "{} bytes of {LENGTH}", heard.len());
    }
    (world.now(), file, heard)
}

#[test]
fn a_file_goes_over_tcp_over_ui_frames_and_over_links() {
    for carriage in [IpMode::Unconnected, IpMode::Connected] {
        let (took, file, heard) = transfer(1, carriage, Errors::None);
        assert!(file == heard, "{carriage:?}");
        // The bits of the file alone take six seconds.
        let bits = Duration::from_secs_f64(8.0 * LENGTH as f64 / 9600.0);
        assert!(took.saturating_since(Instant::ZERO) > bits, "{carriage:?} took {took}");
    }
}

#[test]
fn bit_errors_are_mended_by_tcp_or_below_it() {
    for carriage in [IpMode::Unconnected, IpMode::Connected] {
        for seed in 0..4 {
            let (_, file, heard) = transfer(seed, carriage, Errors::Ber(3e-5));
            assert!(file == heard, "{carriage:?}, seed {seed}");
        }
    }
}
