//! The complete stack: three nodes in a row, each an agent over TCPCL over TCP with a disk, on hostile links.

use super::agents::{draw_config, node};
use super::apps::{AppUsers, NodeRoutes, node_name};
use super::disks::{Disks, DisksAndLinks};
use super::frames::{BitErrors, FrameConditions, HostileFrames};
use super::tcp::draw_profile;
use super::{Crash, Draw, IdleBudget, LawRun, Replay, RunDigest, RunPlan, sweep};
use crate::joint::{Fan, Origin, Stack};
use crate::rng::Rng;
use crate::service::{InterfaceId, LinkId, NextHop};
use crate::tcp::Host;
use crate::tcp::config::{HostConfig, InterfaceConfig, PeerConfig, Profile};
use crate::tcpcl::{Config, Session, Versions};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use core::net::Ipv4Addr;

const PORT: u16 = 4556;

/// Address of a node on a link; links are numbered from 1, and link `n` joins nodes `n - 1` and `n`.
fn address(link: u16, node: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, link as u8, 1 + node as u8)
}

/// A host that connects to the next node in the row, and with `back` to the previous one.
fn host_config(node: usize, profile: Profile, mtu_bytes: u16, back: bool) -> HostConfig {
    let links = [(node > 0).then_some(node as u16), (node < 2).then_some(node as u16 + 1)];
    let interface = |link: u16| InterfaceConfig {
        interface: InterfaceId(link),
        address: address(link, node),
        mtu_bytes,
        ..Default::default()
    };
    let peer = |link: u16| {
        let next = usize::from(link) > node;
        let peer = if next { node + 1 } else { node - 1 };
        (next || back).then(|| PeerConfig {
            link: LinkId(link.into()),
            address: address(link, peer),
            port: PORT,
        })
    };
    HostConfig {
        profile,
        interfaces: links.into_iter().flatten().map(interface).collect(),
        listen: vec![PORT],
        peers: links.into_iter().flatten().filter_map(peer).collect(),
        ..Default::default()
    }
}

/// Routes of each node to the others, by the names of its neighbours.
fn ways(back: bool) -> Vec<NodeRoutes> {
    let way =
        |to: usize, neighbour: usize| (format!("{}*", node_name(to)), NextHop::Node(node_name(neighbour)));
    let links = |own: &[u32]| own.iter().map(|&link| LinkId(link)).collect();
    vec![
        NodeRoutes { links: links(&[1]), routes: vec![way(1, 1), way(2, 1)] },
        NodeRoutes { links: links(if back { &[1, 2] } else { &[2] }), routes: vec![way(0, 0), way(2, 2)] },
        NodeRoutes { links: links(if back { &[2] } else { &[] }), routes: vec![way(0, 1), way(1, 1)] },
    ]
}

fn session_config(rng: &mut Rng, node: usize, versions: Versions, keepalive: u64) -> Config {
    Config {
        versions,
        node_id: node_name(node),
        keepalive: Duration::from_secs(keepalive),
        segment_bytes: rng.between(100, 10_000),
        segment_bytes_min: rng.between(1, 1_000),
        ample_room_bytes: (node == 1).then_some(5_000),
        transfers_max: rng.between(1, 5) as usize,
        reconnect_max: Duration::from_secs(rng.between(5, 60)),
        reactive_fragmentation: rng.chance(0.7),
        lengths: rng.chance(0.7),
        ..Config::default()
    }
}

fn world(replay: &Replay) -> RunDigest {
    let rng = Rng::new(replay.seed);
    let mut draw = rng.fork("parameters");
    let faults_end_at = Instant::ZERO + draw.span(Duration::from_millis(1), Duration::from_secs(200));
    // Only keepalives detect half-open connections; two intervals must be longer than a handshake over the slowest link
    // and an interval.
    let keepalive = draw.between(10, 60);
    let window = Duration::from_secs(3_600);
    // At most two sessions per link; each message is a frame or two and a few timers on both sides.
    let messages = 2 * 2 * 2 * (window.as_secs() / keepalive + 1);
    let plan = RunPlan {
        faults_end_at,
        crashes: Crash::draw(&mut draw, 3, faults_end_at),
        patience: Duration::from_secs(4 * 3_600),
        lateness: RunPlan::draw_lateness(&mut draw),
        idle: IdleBudget {
            after: Duration::from_secs(900),
            window,
            wake_ups: 6 * messages,
            carried: 3 * messages,
        },
    };
    let conditions = FrameConditions::draw(&mut draw, BitErrors::Slight);
    let row = [1, 2]
        .map(|link| ((usize::from(link) - 1, InterfaceId(link)), (usize::from(link), InterfaceId(link))));
    let mtu_bytes = if draw.chance(0.2) { draw.between(200, 1_500) as u16 } else { 1_500 };
    let links = HostileFrames::new(rng.fork("links"), conditions, &row, mtu_bytes.into(), faults_end_at);
    let disks = Disks::new(rng.fork("disks"), 3);
    let back = draw.chance(0.3);
    let users = AppUsers::new(rng.fork("users"), ways(back), faults_end_at);
    let versions = [Versions::Three, Versions::Four, Versions::Both][draw.below(3) as usize];
    let configs: Vec<_> = (0..3)
        .map(|node| {
            let host = host_config(node, draw_profile(&mut draw), mtu_bytes, back);
            (draw_config(&mut draw, node), session_config(&mut draw, node, versions, keepalive), host)
        })
        .collect();
    let factory = |node: usize, boot, _| {
        let rng = rng.fork(&format!("node {node} boot {boot}"));
        let (agent, session, host) = configs[node].clone();
        let host = Checked::new("host", Host::new(host, rng.fork("host")));
        let session_rng = rng.fork("session");
        let sessions = Fan::new(move |link: LinkId, origin| {
            let (config, rng) = (session.clone(), session_rng.fork(&format!("{link:?}")));
            let engine = match origin {
                Origin::Above if link.is_incoming() => return None,
                Origin::Above => Session::active(config, rng),
                Origin::Below => Session::passive(config, rng),
            };
            Some(Checked::new("session", engine))
        });
        self::node(agent, &rng, Stack::new(sessions, host))
    };
    let floor = DisksAndLinks { disks, links };
    LawRun::new(replay, plan, 3, Box::new(factory), floor, users)
        .audited(|floor, users| users.audit(&floor.disks))
        .run()
}

#[test]
fn the_whole_stack_keeps_the_laws_1() {
    sweep("stack", 0, 500, world);
}

#[test]
fn the_whole_stack_keeps_the_laws_2() {
    sweep("stack", 500, 500, world);
}
