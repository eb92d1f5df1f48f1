//! The laws: one property suite that runs every engine, two or more of them connected by a hostile world.
//!
//! A world has three levels. **Users** are at the top: they issue requests, and record what was confirmed to them.
//! **Nodes** are the engines under test, each inside a [`Checked`]. The **ground** transports the messages of the
//! nodes, with faults. A seed determines everything: the parameters of the world (rates of loss, duplication, delay and
//! damage; sizes of pieces; times at which links are cut and nodes crash) and all events in it.
//!
//! Every run has two phases. While there are faults, only safety is checked. Then the faults stop, and within a bound
//! of virtual time everything must end. After that only the activity that the configuration requires is allowed.
//!
//! | law | checked in |
//! |---|---|
//! | an engine never panics, whatever its world brings | any panic ends a run |
//! | no output after draining; early and repeated timeouts are harmless; no wake-ups are requested in the past or again and again at the same instant | [`Checked`], the run |
//! | room is not overspent; each send ends with exactly one final indication | [`Checked`] |
//! | delivered data are those that were sent: complete, in order, and no more often than they were sent | the users |
//! | nothing accepted is lost; nothing is acknowledged before it is stored | the users; the run |
//! | nothing is delivered again after the application accepted it | the users of an agent |
//! | everything ends once the faults stop | the run |
//! | an idle session costs nothing but its keepalives | the run |
//! | same seed, same trace | the sweep, with every sixteenth seed |
//!
//! # A convergence layer
//!
//! The author of a convergence layer calls the entrance of its medium from a test: [`hold_over_stream`],
//! [`hold_over_packets`] or [`hold_over_datagrams`]; see [`Layer`]. Another crate needs the feature `testing` for it.
//! Besides, the tests of `longwire-towers` run each row of the table of convergence layers on each of its media, with
//! its default settings and its presets.
//!
//! ```no_run
//! use longwire_proto::joint::{Fan, Origin};
//! use longwire_proto::laws::{BundleUserBehaviour, Layer, hold_over_datagrams};
//! use longwire_proto::service::LinkId;
//! use longwire_proto::udpcl::{Config, Link};
//! use longwire_proto::wrap::Checked;
//!
//! // One bundle per datagram: the longest bundle must fit.
//! hold_over_datagrams("udpcl", 1_000, 65_507..=65_507, |world| {
//!     let open_max = 1 + world.draw.below(4) as usize;
//!     let config = Config { datagram_bytes_max: 65_507, open_max, ..Config::default() };
//!     // UDPCL has no acknowledgements.
//!     let users = BundleUserBehaviour { acknowledged: false, ..BundleUserBehaviour::draw(&mut world.draw) };
//!     Layer::new(users, move |start| {
//!         let (config, rng) = (config.clone(), start.rng);
//!         let link = move || Checked::new("link", Link::new(config.clone(), rng.clone()));
//!         Fan::new(move |_: LinkId, origin| (origin == Origin::Above).then(&link))
//!     })
//! });
//! ```
//!
//! The users check the bytes of each bundle, that no byte is acknowledged before the receiver's user has stored it, and
//! that a bundle arrives at most once for each `Open`: so a transfer that may have arrived completely before its
//! receiver restarted must fail, not continue. Each bundle must be `Sent` at last.
//!
//! The worlds are small: few and short bundles ([`BundleUserBehaviour::draw`]), all of normal priority, with one
//! transfer open at a time, or two if they may interleave. All bytes come from the engine of the other node, damaged at
//! most over packets ([`Layer::damage`]): forged bytes need tests of their own. [`hold_over_datagrams`] lists what its
//! medium does not do.
//!
//! # Runs and messages
//!
//! `LONGWIRE_SEEDS=n` runs n seeds of each sweep, `LONGWIRE_SEED=s` only the seed s, and `LONGWIRE_LINES=n` shows the
//! last n lines of a failed run instead of 80. Seeds that failed once are listed in `seeds.txt`, and are always run;
//! the file is this crate's own. A sweep of 300 seeds makes 319 runs, because it repeats every sixteenth seed and
//! compares. At its end it prints how many runs there were, and how much was sent, how many faults there were and how
//! many timeouts in all of them: [`SweepCounts`].
//!
//! A bundle is called by its sender and its number there: `(0, 2)` is the third of node 0. A failed run is repeated for
//! its timeline, so its panic may be printed twice. A line has the time, the node, and a message: `hears v` is a
//! request of the user, `says  v` one to the medium, `hears ^` an indication of the medium, `says  ^` one to the user.

#[cfg(test)]
mod aeronp;
#[cfg(test)]
mod agents;
#[cfg(test)]
mod apps;
#[cfg(test)]
mod ax25;
mod bundles;
#[cfg(test)]
mod calls;
mod datagrams;
#[cfg(test)]
mod disks;
#[cfg(test)]
mod flawed;
#[cfg(test)]
mod frames;
#[cfg(test)]
mod hostile_peer;
#[cfg(test)]
mod joints;
mod layers;
#[cfg(test)]
mod links;
mod packets;
#[cfg(test)]
mod radio;
mod seeds;
#[cfg(test)]
mod stack;
mod streams;
#[cfg(test)]
mod tcp;
#[cfg(test)]
mod toy;

pub use bundles::BundleUserBehaviour;
pub use layers::{Layer, Start, World, hold_over_datagrams, hold_over_packets, hold_over_stream};

pub(crate) use bundles::BundleUsers;
#[cfg(test)]
pub(crate) use layers::hold_links_over_datagrams;
#[cfg(test)]
pub(crate) use packets::{PacketConditions as PacketWeather, PacketLinks};
pub(crate) use seeds::{Replay, sweep};
#[cfg(test)]
pub(crate) use seeds::{catches, catches_also};
#[cfg(test)]
pub(crate) use streams::{StreamConditions, Streams};

use crate::engine::{Engine, Service};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::wrap::{Checked, CheckedService, Crossing, TimelineWriter};
use core::fmt::{self, Write};

/// Environment of the nodes: the links between them, their disks.
pub(crate) trait Environment<B: Service> {
    /// Processes a request of a node.
    fn handle_request(&mut self, now: Instant, node: usize, request: B::Request);
    /// Processes an expired timer.
    fn handle_timeout(&mut self, now: Instant);
    /// Returns the next indication to a node.
    fn poll_indication(&mut self) -> Option<(usize, B::Indication)>;
    /// Returns the time of the next event.
    fn poll_timeout(&self) -> Option<Instant>;
    /// A node has started.
    fn started(&mut self, _now: Instant, _node: usize) {}
    /// A node has lost its power.
    fn crash(&mut self, now: Instant, node: usize);
    /// The faults stop.
    fn calm(&mut self, now: Instant);
    /// Returns the number of messages transported.
    fn carried(&self) -> u64;
    /// Returns the number of faults so far: messages lost, refused, damaged or forged, and interruptions.
    fn faults(&self) -> u64;
}

/// Users of all nodes.
pub(crate) trait Users<A: Service> {
    /// A node has started; its state is only that on its disk.
    fn started(&mut self, now: Instant, node: usize);
    /// A node has lost its power.
    fn crashed(&mut self, now: Instant, node: usize);
    /// The faults stop.
    fn calm(&mut self, now: Instant);
    /// Processes an indication of a node.
    fn handle_indication(&mut self, now: Instant, node: usize, indication: A::Indication);
    /// Processes an expired timer.
    fn handle_timeout(&mut self, now: Instant);
    /// Returns the next request to a running node.
    fn poll_request(&mut self, now: Instant) -> Option<(usize, A::Request)>;
    /// Returns the time of the next action of a user.
    fn poll_timeout(&self) -> Option<Instant>;
    /// Describes something that has not ended yet; `None` if everything has.
    fn unsettled(&self) -> Option<String>;
    /// Returns the number of bundles, packets or connections that were sent to their end.
    fn sent(&self) -> u64;
    /// Returns true if everything must end. Not with forged bytes, which may announce more data.
    fn want_ends(&self) -> bool {
        true
    }
}

/// Limits for the activity of an idle world.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleBudget {
    /// Time after everything has ended before the activity is counted: waiting states and idle timers expire.
    pub(crate) after: Duration,
    /// Duration of the count.
    pub(crate) window: Duration,
    /// Maximum number of wake-ups of all nodes together in the window.
    pub(crate) wake_ups: u64,
    /// Maximum number of messages on the ground in the window.
    pub(crate) carried: u64,
}

/// Crash of a node: time, node, and duration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crash {
    pub(crate) at: Instant,
    pub(crate) node: usize,
    pub(crate) off: Duration,
}

impl Crash {
    /// Draws a few crashes of `nodes` nodes before `faults_end_at`, in some worlds.
    pub(crate) fn draw(rng: &mut Rng, nodes: u64, faults_end_at: Instant) -> Vec<Crash> {
        if rng.chance(0.6) {
            return vec![];
        }
        let mut crash = |_| Crash {
            at: Instant::from_nanos(rng.below(faults_end_at.as_nanos())),
            node: rng.below(nodes) as usize,
            off: rng.span(Duration::ZERO, Duration::from_secs(20)),
        };
        (0..3).map(&mut crash).collect()
    }
}

/// Plan of a run, apart from users, nodes and ground.
#[derive(Clone, Debug)]
pub(crate) struct RunPlan {
    /// End of the faults.
    pub(crate) faults_end_at: Instant,
    /// Crashes, all before `faults_end_at`.
    pub(crate) crashes: Vec<Crash>,
    /// Maximum time for everything to end after the faults stop.
    pub(crate) patience: Duration,
    /// Delay with which nodes are woken.
    pub(crate) lateness: Duration,
    /// Limits for the idle world.
    pub(crate) idle: IdleBudget,
}

impl RunPlan {
    /// Draws the delay: zero in most worlds, small in some.
    pub(crate) fn draw_lateness(rng: &mut Rng) -> Duration {
        if rng.chance(0.8) { Duration::ZERO } else { rng.span(Duration::ZERO, Duration::from_millis(50)) }
    }
}

/// Result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunDigest {
    /// Hash of everything that crossed the edge of a node, with its time.
    pub(crate) hash: u64,
    /// Number of crossings.
    pub(crate) crossings: u64,
    /// Time at which everything had ended.
    pub(crate) settled_at: Instant,
    /// Counts of what happened.
    pub(crate) counts: SweepCounts,
}

/// Counts of what happened in the runs of a sweep, from which one sees that it was not empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepCounts {
    /// Runs, with those that repeat a seed.
    pub runs: u64,
    /// Bundles, packets or connections that were sent to their end.
    pub sent: u64,
    /// Faults of the ground, and crashes.
    pub faults: u64,
    /// Timeouts of nodes.
    pub timeouts: u64,
}

impl core::ops::AddAssign for SweepCounts {
    fn add_assign(&mut self, other: SweepCounts) {
        self.runs += other.runs;
        self.sent += other.sent;
        self.faults += other.faults;
        self.timeouts += other.timeouts;
    }
}

impl fmt::Display for SweepCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SweepCounts { runs, sent, faults, timeouts } = self;
        write!(f, "{runs} runs, {sent} sent, {faults} faults, {timeouts} timeouts")
    }
}

/// Creates the engine of a node, from the node, its number of starts, and the time.
pub(crate) type Factory<'a, N> = Box<dyn FnMut(usize, u32, Instant) -> N + 'a>;

/// Nodes between their users and the ground.
pub(crate) struct LawRun<'a, N: Engine, G, U>
where
    N::Above: CheckedService,
    N::Below: CheckedService,
{
    nodes: Vec<Option<Checked<N>>>,
    boots: Vec<u32>,
    factory: Factory<'a, N>,
    ground: G,
    users: U,
    plan: RunPlan,
    rng: Rng,
    now: Instant,
    /// Nodes that may have output.
    awake: Vec<bool>,
    /// Future crashes and restarts; the last one is the next.
    events: Vec<(Instant, usize, bool)>,
    wake_ups: u64,
    crashes: u64,
    crossings: u64,
    hash: Fnv,
    timeline_writer: Option<TimelineWriter>,
    audit: Option<fn(&G, &U)>,
}

impl<'a, N, G, U> LawRun<'a, N, G, U>
where
    N: Engine,
    N::Above: CheckedService,
    N::Below: CheckedService,
    G: Environment<N::Below>,
    U: Users<N::Above>,
{
    /// Maximum number of crossings; more indicate an endless loop.
    const CROSSINGS_MAX: u64 = 2_000_000;

    /// Creates a world of `count` nodes.
    pub(crate) fn new(
        replay: &Replay,
        plan: RunPlan,
        count: usize,
        factory: Factory<'a, N>,
        ground: G,
        users: U,
    ) -> Self {
        let mut events = vec![];
        for crash in &plan.crashes {
            events.push((crash.at, crash.node, false));
            events.push(((crash.at + crash.off).min(plan.faults_end_at), crash.node, true));
        }
        events.sort();
        events.reverse();
        LawRun {
            nodes: (0..count).map(|_| None).collect(),
            boots: vec![0; count],
            factory,
            ground,
            users,
            plan,
            rng: Rng::new(replay.seed).fork("world"),
            now: Instant::ZERO,
            awake: vec![false; count],
            events,
            wake_ups: 0,
            crashes: 0,
            crossings: 0,
            hash: Fnv::default(),
            timeline_writer: replay.timeline_writer(),
            audit: None,
        }
    }

    /// Compares the state of the ground with the confirmations to the users: after each crash, when the faults stop,
    /// and at the end.
    #[cfg(test)]
    pub(crate) fn audited(self, audit: fn(&G, &U)) -> Self {
        LawRun { audit: Some(audit), ..self }
    }

    fn audit(&self) {
        if let Some(audit) = self.audit {
            audit(&self.ground, &self.users);
        }
    }

    /// Runs the world through its phases. Any broken law is a panic.
    pub(crate) fn run(mut self) -> RunDigest {
        for node in 0..self.nodes.len() {
            self.start(node);
        }
        self.settle();
        self.run_until(self.plan.faults_end_at);
        self.audit();
        self.remark("the faults stop");
        self.ground.calm(self.now);
        self.users.calm(self.now);
        self.settle();
        if !self.users.want_ends() {
            self.run_until(self.now + self.plan.patience);
            self.audit();
            return self.digest(self.now);
        }
        self.end();
        let settled_at = self.now;
        self.remark("everything has ended");
        self.rest();
        self.digest(settled_at)
    }

    fn digest(&self, settled_at: Instant) -> RunDigest {
        let counts = SweepCounts {
            runs: 1,
            sent: self.users.sent(),
            faults: self.ground.faults() + self.crashes,
            timeouts: self.wake_ups,
        };
        RunDigest { hash: self.hash.0, crossings: self.crossings, settled_at, counts }
    }

    /// Waits for everything to end.
    fn end(&mut self) {
        let limit = self.now + self.plan.patience;
        while let Some(left) = self.left() {
            let next = self.next_event();
            match next {
                Some(at) if at <= limit => self.step(at),
                Some(_) => panic!("not ended {:?} after the faults stopped: {left}", self.plan.patience),
                None => panic!("nothing happens any more at {}, but: {left}", self.now),
            }
        }
    }

    /// Describes something that has not ended.
    fn left(&self) -> Option<String> {
        self.users.unsettled().or_else(|| self.nodes.iter().flatten().find_map(|node| node.owed().pop()))
    }

    /// Runs the idle world, and checks its activity.
    fn rest(&mut self) {
        let idle = self.plan.idle;
        self.run_until(self.now + idle.after);
        let (wake_ups, carried) = (self.wake_ups, self.ground.carried());
        self.run_until(self.now + idle.window);
        let (wake_ups, carried) = (self.wake_ups - wake_ups, self.ground.carried() - carried);
        assert!(
            wake_ups <= idle.wake_ups && carried <= idle.carried,
            "idle for {:?} it took {wake_ups} wake-ups and {carried} messages, and may take {} and {}",
            idle.window,
            idle.wake_ups,
            idle.carried
        );
        if let Some(left) = self.left() {
            panic!("after everything had ended, there was something again: {left}");
        }
    }

    fn run_until(&mut self, limit: Instant) {
        while let Some(at) = self.next_event()
            && at <= limit
        {
            self.step(at);
        }
        self.now = limit;
    }

    fn next_event(&self) -> Option<Instant> {
        let nodes = self.nodes.iter().flatten().filter_map(|node| node.poll_timeout());
        let nodes = nodes.min().map(|at| at + self.plan.lateness);
        let planned = self.events.last().map(|&(at, ..)| at);
        [nodes, planned, self.ground.poll_timeout(), self.users.poll_timeout()].into_iter().flatten().min()
    }

    fn step(&mut self, at: Instant) {
        self.now = self.now.max(at);
        while let Some(&(at, node, start)) = self.events.last()
            && at <= self.now
        {
            self.events.pop();
            if start {
                self.start(node);
            } else {
                self.crash(node);
            }
            self.settle();
        }
        if self.ground.poll_timeout().is_some_and(|at| at <= self.now) {
            self.ground.handle_timeout(self.now);
            self.settle();
        }
        for node in 0..self.nodes.len() {
            self.wake(node);
        }
        if self.users.poll_timeout().is_some_and(|at| at <= self.now) {
            self.users.handle_timeout(self.now);
            self.settle();
        }
    }

    /// Wakes a node that is due; sometimes twice.
    fn wake(&mut self, node: usize) {
        let lateness = self.plan.lateness;
        let due = |engine: &Checked<N>| engine.poll_timeout().is_some_and(|at| at + lateness <= self.now);
        if !self.nodes[node].as_ref().is_some_and(due) {
            return;
        }
        self.wake_ups += 1;
        for _ in 0..=u8::from(self.rng.chance(0.05)) {
            self.record(node, Crossing::Timeout);
            self.nodes[node].as_mut().expect("it is due").handle_timeout(self.now);
        }
        self.awake[node] = true;
        self.settle();
    }

    fn start(&mut self, node: usize) {
        if self.nodes[node].is_some() {
            return;
        }
        let boot = self.boots[node];
        self.boots[node] += 1;
        self.remark(format_args!("node {node} starts"));
        let engine = (self.factory)(node, boot, self.now);
        self.nodes[node] = Some(Checked::new(&format!("node {node}"), engine));
        self.awake[node] = true;
        self.ground.started(self.now, node);
        self.users.started(self.now, node);
    }

    fn crash(&mut self, node: usize) {
        if self.nodes[node].take().is_some() {
            self.remark(format_args!("node {node} crashes"));
            self.crashes += 1;
            self.awake[node] = false;
            self.ground.crash(self.now, node);
            self.users.crashed(self.now, node);
            self.audit();
        }
    }

    /// Transports all messages until there is no output: indications first, from the ground up.
    fn settle(&mut self) {
        while self.carry() {}
    }

    fn carry(&mut self) -> bool {
        if let Some((node, indication)) = self.ground.poll_indication() {
            if self.nodes[node].is_some() {
                self.record(node, Crossing::IndicationIn(&indication));
                let engine = self.nodes[node].as_mut().expect("it runs");
                engine.handle_indication(self.now, indication);
                self.awake[node] = true;
            }
            return true;
        }
        for node in 0..self.nodes.len() {
            if self.awake[node]
                && let Some(indication) = self.nodes[node].as_mut().expect("awake").poll_indication(self.now)
            {
                self.record(node, Crossing::IndicationOut(&indication));
                self.users.handle_indication(self.now, node, indication);
                return true;
            }
        }
        if let Some((node, request)) = self.users.poll_request(self.now) {
            self.record(node, Crossing::RequestIn(&request));
            let engine = self.nodes[node].as_mut().expect("users ask only nodes that run");
            engine.handle_request(self.now, request);
            self.awake[node] = true;
            return true;
        }
        for node in 0..self.nodes.len() {
            if !self.awake[node] {
                continue;
            }
            if let Some(request) = self.nodes[node].as_mut().expect("awake").poll_request(self.now) {
                self.record(node, Crossing::RequestOut(&request));
                self.ground.handle_request(self.now, node, request);
                return true;
            }
            self.awake[node] = false;
        }
        false
    }

    fn record(&mut self, node: usize, crossing: Crossing<'_, N::Above, N::Below>) {
        self.crossings += 1;
        assert!(self.crossings < Self::CROSSINGS_MAX, "it runs in circles at {}", self.now);
        write!(self.hash, "{node} {} {crossing}", self.now.as_nanos()).expect("a hash takes anything");
        if let Some(timeline_writer) = &mut self.timeline_writer {
            timeline_writer.tell(self.now, format_args!("{node} {crossing}"));
        }
    }

    fn remark(&mut self, what: impl fmt::Display) {
        if let Some(timeline_writer) = &mut self.timeline_writer {
            timeline_writer.tell(self.now, format_args!("-- {what}"));
        }
    }
}

/// Hash of Fowler, Noll and Vo, 64 bits, variant 1a, of text.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Ok(())
    }
}

/// Random draws for worlds.
pub(crate) trait Draw {
    /// Returns zero half of the time, otherwise a uniform value up to `max`: most worlds have few faults, and each
    /// fault is missing in some.
    fn share(&mut self, max: f64) -> f64;
    /// Returns a uniform duration between two.
    fn span(&mut self, from: Duration, to: Duration) -> Duration;
    /// Returns a whole number between two, both included.
    fn between(&mut self, from: u64, to: u64) -> u64;
}

impl Draw for Rng {
    fn share(&mut self, max: f64) -> f64 {
        if self.chance(0.5) { 0.0 } else { self.unit() * max }
    }

    fn span(&mut self, from: Duration, to: Duration) -> Duration {
        from + (to - from).mul_f64(self.unit())
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }
}
