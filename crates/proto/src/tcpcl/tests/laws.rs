//! Sessions under the laws: two nodes that connect to each other over hostile streams.

use crate::joint::{Fan, Origin};
use crate::laws::{BundleUserBehaviour, Layer, hold_over_stream};
use crate::rng::Rng;
use crate::service::LinkId;
use crate::tcpcl::{Config, Session, Versions};
use crate::time::Duration;

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

#[test]
fn sessions_keep_the_laws() {
    hold_over_stream("tcpcl", 1_000, |world| {
        let draw = &mut world.draw;
        let versions = draw_versions(draw);
        let users = BundleUserBehaviour::draw(draw);
        // Segments of one byte for a long bundle test nothing new, and take too long.
        let segment_least = 1 + users.length_max / 200;
        let mut configs = versions.map(|versions| draw_config(draw, versions, segment_least));
        configs[1].node_id = "dtn://peer/".to_owned();
        let interval = configs.iter().map(|config| config.keepalive.as_secs()).min().unwrap_or(0);
        let layer = Layer::new(users, move |start| node(configs[start.node].clone(), start.rng));
        // One or two sessions, each of which may send one byte per interval in each direction. Node 1 can send only
        // over a session: its own, or that of node 0.
        let keepalives = 3_600_u64.checked_div(interval).map_or(0, |count| 4 * (count + 1));
        Layer { both_call: 0.5, keepalives, ..layer }
    });
}
