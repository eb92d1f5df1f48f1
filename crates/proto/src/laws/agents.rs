//! Bundle agents: three nodes in a row, each with a disk, over links of a toy convergence layer on hostile frames. The
//! agents have to cope with everything that the toy does to transfers: delay, refusal, breaks at any piece, ends of
//! sessions.

use super::apps::{AppUsers, NodeRoutes, node_name};
use super::disks::{Disks, DisksAndLinks};
use super::flawed::Flawed;
use super::frames::{BitErrors, FrameConditions, HostileFrames};
use super::hostile_peer::{HostileStrategy, WithHostilePeer};
use super::toy::{Flaw, toys};
use super::{Crash, Draw, IdleBudget, LawRun, Replay, RunDigest, RunPlan, catches, catches_also, sweep};
use crate::bp::agent::{Agent, Config};
use crate::engine::Engine;
use crate::joint::{Beside, PassThrough, Stack};
use crate::rng::Rng;
use crate::service::{
    AppIndication, Both, Bpa, BpaIndication, BundleName, Bundles, LinkId, Many, NextHop, SendFailure, Storage,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::BytesMut;

/// Links of three nodes in a row: the number of a link is the same at both ends.
const LINKS: [((usize, LinkId), (usize, LinkId)); 2] =
    [((0, LinkId(1)), (1, LinkId(1))), ((1, LinkId(2)), (2, LinkId(2)))];

/// Routes of each node to the others, by link number.
fn ways() -> Vec<NodeRoutes> {
    let way = |to: usize, link| (format!("{}*", node_name(to)), NextHop::Link(LinkId(link)));
    vec![
        NodeRoutes { links: vec![LinkId(1)], routes: vec![way(1, 1), way(2, 1)] },
        NodeRoutes { links: vec![LinkId(1), LinkId(2)], routes: vec![way(0, 1), way(2, 2)] },
        NodeRoutes { links: vec![LinkId(2)], routes: vec![way(0, 2), way(1, 2)] },
    ]
}

/// Draws the settings of an agent.
pub(super) fn draw_config(rng: &mut Rng, node: usize) -> Config {
    let mut config = Config {
        node: node_name(node),
        reactive_fragmentation: rng.chance(0.7),
        read_ahead_pieces: rng.between(1, 4) as usize,
        piece_bytes_max: rng.between(50, 5_000) as usize,
        pipeline_transfers_max: rng.between(1, 4) as usize,
        ..Config::default()
    };
    if rng.fork("custody").chance(0.5) {
        config.custody.accept_from = vec!["*".into()];
    }
    config.limits.buffer_bytes_max = rng.between(30_000, 1 << 20);
    if rng.chance(0.2) {
        config.reports = crate::bp::agent::ReportConfig::all();
    }
    config
}

/// Creates an agent over its storage and its links, each part inside a [`Checked`].
pub(super) fn node<L>(
    config: Config,
    rng: &Rng,
    links: L,
) -> Stack<Checked<Agent>, Beside<PassThrough<Storage>, L>>
where
    L: Engine<Above = Many<LinkId, Bundles>>,
{
    let agent = Agent::new(config, rng.fork("agent")).expect("a node id");
    Stack::new(Checked::new("agent", agent), Beside { first: PassThrough::new(), second: links })
}

/// Plan of a world with hostile peers: the limits of the nodes, and the strategy.
#[derive(Clone, Copy)]
struct HostilePeerPlan {
    manner: HostileStrategy,
    /// A payload may have so few fragments that its true ones can be kept out for ever: then only accepted bundles are
    /// checked.
    shut: bool,
}

impl HostilePeerPlan {
    fn draw(seed: u64) -> Self {
        let mut draw = Rng::new(seed).fork("siege");
        let manners = [
            HostileStrategy::Slow,
            HostileStrategy::Slow,
            HostileStrategy::Fills,
            HostileStrategy::Interrupts,
            HostileStrategy::Interrupts,
        ];
        let manner = manners[draw.below(5) as usize];
        HostilePeerPlan { manner, shut: manner == HostileStrategy::Interrupts && draw.chance(0.5) }
    }

    fn tighten(self, draw: &mut Rng, config: &mut Config) {
        let mut draw = draw.fork("tight");
        let limits = &mut config.limits;
        let (least, most) = if self.manner == HostileStrategy::Slow { (300, 600) } else { (60, 120) };
        limits.bundles_max = draw.between(least, most) as usize;
        limits.fragments_max = draw.between(8, 20) as usize;
        if self.manner != HostileStrategy::Slow && !self.shut {
            // One hostile peer may have less.
            limits.fragments_max = limits.bundles_max;
        }
    }
}

fn world<N>(replay: &Replay, lies: bool, dress: impl Fn(Checked<Agent>) -> N) -> RunDigest
where
    N: Engine<Above = Bpa, Below = Both<Storage, Many<LinkId, Bundles>>>,
{
    world_with(replay, lies, None, |_, _, agent| dress(agent))
}

/// A hostile peer at each node.
fn besieged_world(replay: &Replay) -> RunDigest {
    let siege = HostilePeerPlan::draw(replay.seed);
    world_with(replay, false, Some(siege), |node, rng, agent| {
        let began = AppUsers::BEGAN_DTN_MS;
        WithHostilePeer::new(agent, rng.fork("stranger"), node_name(node), began, siege.manner)
    })
}

fn world_with<N>(
    replay: &Replay,
    lies: bool,
    siege: Option<HostilePeerPlan>,
    dress: impl Fn(usize, &Rng, Checked<Agent>) -> N,
) -> RunDigest
where
    N: Engine<Above = Bpa, Below = Both<Storage, Many<LinkId, Bundles>>>,
{
    let rng = Rng::new(replay.seed);
    let mut draw = rng.fork("parameters");
    let faults_end_at = Instant::ZERO + draw.span(Duration::from_millis(1), Duration::from_secs(120));
    let shut = siege.is_some_and(|siege| siege.shut);
    let plan = RunPlan {
        faults_end_at,
        crashes: Crash::draw(&mut draw, 3, faults_end_at),
        patience: Duration::from_secs(if shut { 600 } else { 4 * 3_600 }),
        lateness: RunPlan::draw_lateness(&mut draw),
        // Forged fragments may wait for storage, and are tried again now and then.
        idle: IdleBudget {
            after: Duration::from_secs(600),
            window: Duration::from_secs(3_600),
            wake_ups: if siege.is_some() { 2_000 } else { 0 },
            carried: if siege.is_some() { 4_000 } else { 0 },
        },
    };
    let conditions = FrameConditions::draw(&mut draw, BitErrors::Slight);
    let links = HostileFrames::new(rng.fork("links"), conditions, &LINKS, 1_500, faults_end_at);
    let honest = Disks::new(rng.fork("disks"), 3);
    let disks = if lies { honest.lying() } else { honest };
    let users = AppUsers::new(rng.fork("users"), ways(), faults_end_at);
    let users = if shut { users.without_end() } else { users };
    let mut configs: Vec<_> = (0..3).map(|node| draw_config(&mut draw, node)).collect();
    if let Some(siege) = siege {
        configs.iter_mut().for_each(|config| siege.tighten(&mut draw, config));
    }
    let factory = |node: usize, boot, _| {
        let rng = rng.fork(&format!("node {node} boot {boot}"));
        let Stack { upper, lower } = self::node(configs[node].clone(), &rng, toys(Flaw::None, rng.clone()));
        Stack::new(dress(node, &rng, upper), lower)
    };
    let world = LawRun::new(replay, plan, 3, Box::new(factory), DisksAndLinks { disks, links }, users);
    // A disk that confirms too early is detected by other laws.
    if lies { world.run() } else { world.audited(|floor, users| users.audit(&floor.disks)).run() }
}

#[test]
fn agents_keep_the_laws_1() {
    sweep("agent", 0, 500, |replay| world(replay, false, |agent| agent));
}

#[test]
fn agents_keep_the_laws_2() {
    sweep("agent", 500, 500, |replay| world(replay, false, |agent| agent));
}

#[test]
fn a_stranger_costs_nobody_a_bundle_1() {
    sweep("stranger", 0, 250, besieged_world);
}

#[test]
fn a_stranger_costs_nobody_a_bundle_2() {
    sweep("stranger", 250, 250, besieged_world);
}

#[test]
fn a_disk_that_lies_is_found() {
    // The disk confirms too early: accepted or taken bundles are forgotten in a crash.
    let lied_to = |replay: &Replay| world(replay, true, |agent| agent);
    catches_also("a disk that lies", "was accepted and is not taken", lied_to);
    catches_also("a disk that lies", "is delivered again, and it was taken", lied_to);
}

/// Alters the indications of all agents.
fn finds(flaw: &str, law: &str, alter: fn(AppIndication) -> Vec<AppIndication>) {
    let alter = move |said| match said {
        BpaIndication::App(said) => alter(said).into_iter().map(BpaIndication::App).collect(),
        said => vec![said],
    };
    catches(flaw, law, |replay| world(replay, false, |agent| Flawed::new(agent, alter)));
}

#[test]
fn the_laws_find_flaws_in_what_rises() {
    finds("another byte", "is not what was sent", |said| match said {
        AppIndication::Data { delivery, offset, data } if data.len() > 5 => {
            let mut data = BytesMut::from(&data[..]);
            data[5] ^= 1;
            vec![AppIndication::Data { delivery, offset, data: data.freeze() }]
        }
        other => vec![other],
    });
    finds("a delivery that is not told", "is not taken", |said| match said {
        AppIndication::Delivered { .. } => vec![],
        other => vec![other],
    });
    finds("a delivery after it was taken", "after it was taken", |said| match said {
        AppIndication::Gone { delivery, .. } => {
            let destination = node_name(1);
            let name = BundleName { source: node_name(0), ..BundleName::default() };
            let again = AppIndication::Delivered { delivery, name, destination, length: 4, signature: None };
            vec![said, again]
        }
        other => vec![other],
    });
    finds("accepted, and failed", "was accepted, and failed", |said| match said {
        AppIndication::Sent { send } => {
            vec![AppIndication::Failed { send, reason: SendFailure::Expired }]
        }
        other => vec![other],
    });
}
