//! Sessions under the laws: two nodes that connect to each other over hostile streams.

use super::streams::{StreamConditions, Streams};
use crate::joint::{Fan, Origin};
use crate::laws::{
    BundleUserBehaviour, BundleUsers, Crash, IdleBudget, LawRun, Replay, RunDigest, RunPlan, sweep,
};
use crate::rng::Rng;
use crate::service::LinkId;
use crate::tcpcl::{Config, Session, Versions};
use crate::time::{Duration, Instant};

fn draw_config(rng: &mut Rng, versions: Versions, segment_least: u64) -> Config {
    let segment = if rng.chance(0.3) { 30 } else { 4_000 };
    Config {
        versions,
        node_id: "dtn://node/".to_owned(),
        keepalive: Duration::from_secs(rng.below(20)),
        // A small window on a slow line prevents output of a peer for several round trips.
        keepalive_timeout: Some(Duration::from_secs(60)),
        segment_bytes: segment_least + rng.below(segment),
        segment_bytes_min: rng.below(2_000),
        transfers_max: 1 + rng.below(4) as usize,
        reactive_fragmentation: rng.chance(0.7),
        refusal: rng.chance(0.7),
        lengths: rng.chance(0.7),
        contact_timeout: Duration::from_secs(20),
        close_timeout: Duration::from_secs(20),
        connect_timeout: rng.chance(0.5).then_some(Duration::from_secs(30)),
        reconnect_max: Duration::from_secs(20),
        ..Config::default()
    }
}

/// Versions of two nodes that are compatible in both directions.
fn draw_versions(rng: &mut Rng) -> [Versions; 2] {
    use Versions::{Both, Four, Three};
    let pairs = [[Three, Three], [Four, Four], [Both, Both], [Both, Three], [Three, Both], [Four, Both]];
    pairs[rng.below(pairs.len() as u64) as usize]
}

/// Creates the session of a link.
pub(super) type Factory = Box<dyn FnMut(LinkId, Origin) -> Option<Session>>;

/// The sessions of a node.
pub(super) fn node(config: Config, rng: Rng) -> Fan<LinkId, Session, Factory> {
    Fan::new(Box::new(move |link: LinkId, origin| {
        let rng = rng.fork(&format!("{link:?}"));
        Some(match origin {
            Origin::Above => Session::active(config.clone(), rng),
            Origin::Below => Session::passive(config.clone(), rng),
        })
    }))
}

fn world(replay: &Replay) -> RunDigest {
    let rng = Rng::new(replay.seed);
    let mut draw = rng.fork("parameters");
    let faults_end_at = Instant::from_millis(1 + draw.below(60_000));
    let versions = draw_versions(&mut draw);
    let manners = BundleUserBehaviour::draw(&mut draw);
    // Segments of one byte for a long bundle test nothing new, and take too long.
    let segment_least = 1 + manners.length_max / 200;
    let mut configs = versions.map(|versions| draw_config(&mut draw, versions, segment_least));
    configs[1].node_id = "dtn://peer/".to_owned();
    let crashes = Crash::draw(&mut draw, 2, faults_end_at);
    let interval = configs.iter().map(|config| config.keepalive.as_secs()).min().unwrap_or(0);
    let window = Duration::from_secs(3_600);
    // One or two sessions, each of which may send one byte per interval in each direction.
    let keepalives = window.as_secs().checked_div(interval).map_or(0, |count| 4 * (count + 1));
    let plan = RunPlan {
        faults_end_at,
        crashes: crashes.clone(),
        patience: Duration::from_secs(3_600),
        lateness: RunPlan::draw_lateness(&mut draw),
        idle: IdleBudget {
            after: Duration::from_secs(1_000),
            window,
            wake_ups: keepalives,
            carried: keepalives,
        },
    };
    let ground = Streams::new(rng.fork("ground"), StreamConditions::draw(&mut draw), crashes);
    // Node 1 can send only over a session: its own, or that of node 0.
    let mut links = vec![(0, LinkId(1))];
    if draw.chance(0.5) {
        links.push((1, LinkId(2)));
    }
    let users = BundleUsers::new(rng.fork("users"), manners, &links, faults_end_at);
    let factory = |number: usize, boot, _| {
        node(configs[number].clone(), rng.fork(&format!("node {number} boot {boot}")))
    };
    LawRun::new(replay, plan, 2, Box::new(factory), ground, users).run()
}

#[test]
fn sessions_keep_the_laws() {
    sweep("tcpcl", 0, 1_000, world);
}
