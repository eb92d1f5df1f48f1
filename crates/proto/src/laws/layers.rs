//! The laws for a convergence layer: one entrance for each medium under it.

use super::datagrams::HostileDatagrams;
use super::packets::{PacketConditions, PacketLinks};
use super::streams::{StreamConditions, Streams};
use super::{
    BundleUserBehaviour, BundleUsers, Crash, Draw, Environment, IdleBudget, LawRun, RunPlan, SweepCounts,
    sweep,
};
use crate::engine::{Engine, Service};
#[cfg(test)]
use crate::joint::{Fan, Origin};
use crate::rng::Rng;
use crate::service::{Bundles, Datagrams, LinkId, Many, Packets, Stream};
use crate::time::{Duration, Instant};
#[cfg(test)]
use crate::wrap::Checked;
use crate::wrap::CheckedService;
use core::ops::RangeInclusive;

/// Random sources of one run.
pub struct World {
    /// Source of the parameters of the run. The layer draws its own from it, too: its configuration and its users.
    pub draw: Rng,
    /// Source of everything else in the run, by forks. The engines have theirs from [`Start::rng`].
    pub rng: Rng,
}

/// Start of a node.
pub struct Start {
    /// Number of the node: 0 or 1.
    pub node: usize,
    /// Number of earlier starts of the node.
    pub boot: u32,
    /// Random source of this start; it differs between nodes and between the starts of a node. Links have their own by
    /// [`Rng::fork`], named by their IDs.
    pub rng: Rng,
}

/// A convergence layer in one run: its nodes, and what may be expected of it.
///
/// Node 0 connects link 1, and again after each `Down` without `retry`. Over streams and packets, the other end of each
/// connection has a new ID from [`LinkId::FIRST_INCOMING`] on, and node 1 may connect link 2 besides
/// ([`both_call`](Layer::both_call)). Over datagrams, both nodes connect link 1, each at its own end. No engine is made
/// before its ID occurs: the factory of a [`Fan`](crate::joint::Fan) makes those of connected links with
/// [`Origin::Above`](crate::joint::Origin::Above), and those of links that the peer opened with
/// [`Origin::Below`](crate::joint::Origin::Below).
pub struct Layer<'a, N> {
    /// Behaviour of the users above it. Those of a layer without acknowledgements must not expect any.
    pub users: BundleUserBehaviour,
    /// True if nodes may crash; otherwise the only faults are those of the medium. Default true.
    pub crashes: bool,
    /// Probability that node 1 opens a link of its own, besides that of node 0. Default 0; over datagrams, both nodes
    /// always open the same link.
    pub both_call: f64,
    /// True if packets may arrive damaged, which the layer must detect. Only for [`hold_over_packets`]: streams and
    /// datagrams are never damaged here. Default false.
    pub damage: bool,
    /// Maximum time for everything to end after the faults stop. Default 1 h.
    pub patience: Duration,
    /// Maximum number of wake-ups, and of messages on the medium, of all idle links together in an hour. Default 0.
    pub keepalives: u64,
    /// Makes all links of a node when it starts.
    pub node: Box<dyn Fn(Start) -> N + 'a>,
}

impl<'a, N> Layer<'a, N> {
    /// Creates a layer with the defaults. `node` makes all links of a node when it starts: usually a
    /// [`Fan`](crate::joint::Fan), with each engine in a [`Checked`](crate::wrap::Checked) of its own. The run checks
    /// the node as a whole; that does not reach the engines with early timeouts, because a `Fan` passes a timeout only
    /// to engines that are due.
    pub fn new(users: BundleUserBehaviour, node: impl Fn(Start) -> N + 'a) -> Self {
        Layer {
            users,
            crashes: true,
            both_call: 0.0,
            damage: false,
            patience: IDLE_WINDOW,
            keepalives: 0,
            node: Box::new(node),
        }
    }
}

/// Link of node 0, and over datagrams of both.
const FIRST: LinkId = LinkId(1);
/// Link of node 1 over streams and packets.
const SECOND: LinkId = LinkId(2);
/// Duration for which an idle layer is observed.
const IDLE_WINDOW: Duration = Duration::from_secs(3_600);

/// Runs two nodes over streams: bytes arrive in order and undamaged, but late and in pieces of any size; connections are
/// refused, stall, and break at any byte. `name` is that of the sweep, for `LONGWIRE_SEED`.
///
/// # Panics
///
/// Panics if a law is broken, and prints the seed and the end of the timeline.
pub fn hold_over_stream<'a, N>(
    name: &str,
    seeds: u64,
    layer: impl Fn(&mut World) -> Layer<'a, N>,
) -> SweepCounts
where
    N: Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, Stream>>,
{
    hold(name, seeds, Some(SECOND), layer, |world, _, crashes| {
        Streams::new(world.rng.fork("ground"), StreamConditions::draw(&mut world.draw), crashes)
    })
}

/// Runs two nodes over packet links, as those of AX.25: packets arrive in order and complete, late, within a window;
/// links are refused, and break for both ends at different times.
///
/// # Panics
///
/// Panics if a law is broken, and prints the seed and the end of the timeline.
pub fn hold_over_packets<'a, N>(
    name: &str,
    seeds: u64,
    layer: impl Fn(&mut World) -> Layer<'a, N>,
) -> SweepCounts
where
    N: Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, Packets>>,
{
    hold(name, seeds, Some(SECOND), layer, |world, layer, crashes| {
        let mut conditions = PacketConditions::draw(&mut world.draw);
        let damage = world.draw.share(0.1);
        conditions.damage = if layer.damage { damage } else { 0.0 };
        PacketLinks::new(world.rng.fork("ground"), conditions, crashes)
    })
}

/// Runs two nodes over datagrams, which arrive late, in any order, or not at all; sockets fail. The medium carries
/// datagrams of at most a length in `bytes_max`.
///
/// The least of `bytes_max` must exceed the layer's headers. A layer that does not segment needs at least
/// [`BundleUserBehaviour::length_max`], 20 kB as drawn, for all bundles to be sent: one that fails as too long, which
/// its length must justify, is not sent again. Datagrams are not damaged, forged or duplicated; none comes from a third
/// sender or to a group, `Carrier` is never indicated, and no endpoint opens without `Join`.
///
/// # Panics
///
/// Panics if a law is broken, and prints the seed and the end of the timeline.
pub fn hold_over_datagrams<'a, N>(
    name: &str,
    seeds: u64,
    bytes_max: RangeInclusive<u64>,
    layer: impl Fn(&mut World) -> Layer<'a, N>,
) -> SweepCounts
where
    N: Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, Datagrams>>,
{
    hold(name, seeds, None, layer, |world, _, _| {
        let (least, most) = (*bytes_max.start(), *bytes_max.end());
        let bytes_max = if least == most { most } else { world.draw.between(least, most) };
        HostileDatagrams::draw(FIRST, bytes_max, &world.rng, &mut world.draw)
    })
}

/// Runs links with acknowledgements over datagrams, each node with one. No node crashes: a receiver that crashes forgets which
/// bundles it has delivered, and its agent must detect the duplicate.
#[cfg(test)]
pub(crate) fn hold_links_over_datagrams<C, L>(
    name: &str,
    bytes_max: RangeInclusive<u64>,
    settings: fn(&mut Rng) -> C,
    link: fn(C, Rng) -> L,
) where
    C: Clone + 'static,
    L: Engine<Above = Bundles, Below = Datagrams> + 'static,
{
    hold_over_datagrams(name, 1_000, bytes_max, |world: &mut World| {
        let users = BundleUserBehaviour::draw(&mut world.draw);
        let config = settings(&mut world.draw);
        let layer = Layer::new(users, move |start| {
            let (config, rng) = (config.clone(), start.rng);
            Fan::new(move |_: LinkId, origin| {
                let link = || Checked::new("link", link(config.clone(), rng.clone()));
                (origin == Origin::Above).then(link)
            })
        });
        Layer { crashes: false, patience: Duration::from_secs(20_000), ..layer }
    });
}

/// Runs a layer over a ground. `second` is the link that node 1 may open; without one, it opens that of node 0.
fn hold<'a, N, B, G>(
    name: &str,
    seeds: u64,
    second: Option<LinkId>,
    layer: impl Fn(&mut World) -> Layer<'a, N>,
    ground: impl Fn(&mut World, &Layer<'a, N>, Vec<Crash>) -> G,
) -> SweepCounts
where
    N: Engine<Above = Many<LinkId, Bundles>, Below = Many<LinkId, B>>,
    B: Service,
    Many<LinkId, B>: CheckedService,
    G: Environment<Many<LinkId, B>>,
{
    sweep(name, 0, seeds, |replay| {
        let rng = Rng::new(replay.seed);
        let mut world = World { draw: rng.fork("parameters"), rng };
        let faults_end_at = Instant::from_millis(1 + world.draw.below(60_000));
        let layer = layer(&mut world);
        let crashes = match layer.crashes {
            true => Crash::draw(&mut world.draw, 2, faults_end_at),
            false => Vec::new(),
        };
        let plan = RunPlan {
            faults_end_at,
            crashes: crashes.clone(),
            patience: layer.patience,
            lateness: RunPlan::draw_lateness(&mut world.draw),
            idle: IdleBudget {
                after: Duration::from_secs(1_000),
                window: IDLE_WINDOW,
                wake_ups: layer.keepalives,
                carried: layer.keepalives,
            },
        };
        let ground = ground(&mut world, &layer, crashes);
        let mut calls = vec![(0, FIRST)];
        match second {
            Some(second) if world.draw.chance(layer.both_call) => calls.push((1, second)),
            Some(_) => {}
            None => calls.push((1, FIRST)),
        }
        let rng = world.rng;
        let users = BundleUsers::new(rng.fork("users"), layer.users, &calls, faults_end_at);
        let node = layer.node;
        let factory = |number, boot, _| {
            node(Start { node: number, boot, rng: rng.fork(&format!("node {number} boot {boot}")) })
        };
        LawRun::new(replay, plan, 2, Box::new(factory), ground, users).run()
    })
}
