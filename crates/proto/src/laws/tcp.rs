//! TCP: two hosts on a hostile link.

use super::calls::StreamUsers;
use super::flawed::Flawed;
use super::frames::{BitErrors, FrameConditions, HostileFrames};
use super::{Crash, Draw, IdleBudget, LawRun, Replay, RunDigest, RunPlan, catches, sweep};
use crate::engine::Engine;
use crate::rng::Rng;
use crate::service::{Frames, InterfaceId, LinkId, Many, Stream, StreamIndication};
use crate::tcp::Host;
use crate::tcp::config::{CongestionControl, HostConfig, InterfaceConfig, PeerConfig, Profile, Recovery};
use crate::time::{Duration, Instant};
use bytes::BytesMut;
use core::net::Ipv4Addr;

const INTERFACE: InterfaceId = InterfaceId(1);
const PORT: u16 = 4556;

fn address(node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, 1 + node as u8)
}

/// One of the presets, sometimes with rules of others, and sometimes with small buffers, so that windows close.
pub(super) fn draw_profile(rng: &mut Rng) -> Profile {
    let name = Profile::NAMES[rng.below(Profile::NAMES.len() as u64) as usize];
    let mut profile = Profile::named(name).expect("its own name");
    // Rules of newer systems also beside those of older ones.
    if rng.chance(0.3) {
        profile.recovery = Recovery::Rack;
        profile.tail_loss_probe = rng.chance(0.7);
        profile.forward_rto = rng.chance(0.7);
        profile.duplicate_sack = rng.chance(0.7);
    }
    if rng.chance(0.2) {
        profile.congestion_control = CongestionControl::Cubic;
        profile.hystart = rng.chance(0.5);
    }
    if rng.chance(0.3) {
        profile.receive_buffer_bytes = rng.between(600, 6_000) as u32;
    }
    if rng.chance(0.3) {
        profile.send_buffer_bytes = rng.between(600, 6_000) as u32;
    }
    if rng.chance(0.2) {
        profile.maximum_segment_bytes = rng.between(100, 1_460) as u16;
    }
    profile
}

/// A host with one interface that connects to its peer on these links.
pub(super) fn host_config(node: usize, profile: Profile, mtu_bytes: u16, links: &[LinkId]) -> HostConfig {
    let peer = |&link| PeerConfig { link, address: address(1 - node), port: PORT };
    HostConfig {
        profile,
        interfaces: vec![InterfaceConfig {
            interface: INTERFACE,
            address: address(node),
            mtu_bytes,
            ..Default::default()
        }],
        listen: vec![PORT],
        peers: links.iter().map(peer).collect(),
        ..Default::default()
    }
}

fn world<N>(replay: &Replay, damage: BitErrors, dress: impl Fn(Host) -> N) -> RunDigest
where
    N: Engine<Above = Many<LinkId, Stream>, Below = Many<InterfaceId, Frames>>,
{
    let rng = Rng::new(replay.seed);
    let mut draw = rng.fork("parameters");
    let faults_end_at = Instant::ZERO + draw.span(Duration::from_millis(1), Duration::from_secs(120));
    let plan = RunPlan {
        faults_end_at,
        crashes: Crash::draw(&mut draw, 2, faults_end_at),
        patience: Duration::from_secs(4 * 3_600),
        lateness: RunPlan::draw_lateness(&mut draw),
        idle: IdleBudget {
            after: Duration::from_secs(300),
            window: Duration::from_secs(3_600),
            wake_ups: 0,
            carried: 0,
        },
    };
    let mtu_bytes = if draw.chance(0.2) { draw.between(120, 1_500) as u16 } else { 1_500 };
    let mut conditions = FrameConditions::draw(&mut draw, damage);
    conditions.forge = forge;
    let link = [((0, INTERFACE), (1, INTERFACE))];
    let ground = HostileFrames::new(rng.fork("ground"), conditions, &link, mtu_bytes.into(), faults_end_at);
    let calls = [(0, LinkId(1)), (0, LinkId(2)), (1, LinkId(1))];
    let calls = &calls[..draw.between(1, 3) as usize];
    let bytes_max = if draw.chance(0.3) { 60_000 } else { 6_000 };
    let users = StreamUsers::new(rng.fork("users"), calls, bytes_max, damage == BitErrors::Slight);
    let profiles = [draw_profile(&mut draw), draw_profile(&mut draw)];
    let factory = |node: usize, boot, _| {
        let config = host_config(node, profiles[node].clone(), mtu_bytes, &[LinkId(1), LinkId(2)]);
        dress(Host::new(config, rng.fork(&format!("node {node} boot {boot}"))))
    };
    LawRun::new(replay, plan, 2, Box::new(factory), ground, users).run()
}

/// Corrects the checksums of a damaged packet, as an attacker would.
fn forge(packet: &mut BytesMut) {
    if packet.len() < 40 {
        return;
    }
    packet[0] = 0x45;
    let length = packet.len() as u16;
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet[9] = 6;
    // The addresses remain those of the link: a packet to another address has no effect.
    let near = [packet[15], packet[19]].iter().all(|last| [1, 2].contains(last));
    if !near {
        return;
    }
    packet[10..12].fill(0);
    let sum = checksum(0, &packet[..20]);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    packet[36..38].fill(0);
    let pseudo =
        packet[12..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
    let sum = checksum(pseudo + 6 + u32::from(length - 20), &packet[20..]);
    packet[36..38].copy_from_slice(&sum.to_be_bytes());
}

/// Internet checksum (RFC 1071), implemented again because that of the engine is under test.
fn checksum(start: u32, bytes: &[u8]) -> u16 {
    let mut sum = start;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| low.into());
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[test]
fn tcp_keeps_the_laws_1() {
    sweep("tcp", 0, 500, |replay| world(replay, BitErrors::Slight, |host| host));
}

#[test]
fn tcp_keeps_the_laws_2() {
    sweep("tcp", 500, 500, |replay| world(replay, BitErrors::Slight, |host| host));
}

#[test]
fn tcp_survives_any_bytes() {
    sweep("tcp-forged", 0, 500, |replay| world(replay, BitErrors::Gross, |host| host));
}

/// Alters the indications of both hosts.
fn finds(flaw: &str, law: &str, alter: fn(StreamIndication) -> Vec<StreamIndication>) {
    let dress = move |host| {
        Flawed::new(host, move |(link, indication): (LinkId, StreamIndication)| {
            alter(indication).into_iter().map(|indication| (link, indication)).collect()
        })
    };
    catches(flaw, law, |replay| world(replay, BitErrors::Slight, dress));
}

#[test]
fn the_laws_find_flaws_in_what_rises() {
    finds("a byte too few", "are not what was written", |said| match said {
        StreamIndication::Data(data) if data.len() > 2 => vec![StreamIndication::Data(data.slice(1..))],
        other => vec![other],
    });
    finds("two bytes exchanged", "are not what was written", |said| match said {
        StreamIndication::Data(data) if data.len() > 3 => {
            let mut data = BytesMut::from(&data[..]);
            data.swap(2, 3);
            vec![StreamIndication::Data(data.freeze())]
        }
        other => vec![other],
    });
    finds("a piece is missing", "not everything has arrived", |said| match said {
        StreamIndication::Data(data) if data.len() < 50 && data.len() > 2 => vec![],
        other => vec![other],
    });
    finds("no end", "has not got through", |said| match said {
        StreamIndication::Closed(_) => vec![],
        other => vec![other],
    });
    finds("two ends", "Closed without a connection", |said| match said {
        StreamIndication::Closed(_) => vec![said.clone(), said],
        other => vec![other],
    });
}
