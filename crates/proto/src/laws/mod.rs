//! The laws: one property suite that runs every engine, two or more of them joined by a hostile world.
//!
//! A world has three floors. **Users** stand on top, want things done, and remember what was promised to them.
//! **Nodes** are the engines under test, each inside a [`Checked`]. The **ground** carries what the nodes say to
//! each other, badly. A seed draws everything: the parameters of the world (how much is lost, doubled, delayed,
//! damaged; how large the pieces are; when links are cut and nodes crash) and what happens in it.
//!
//! Every run has two phases. While faults last only safety is asked for. Then the world calms down, and within a
//! bound of virtual time everything has to come to its end. After that nothing may happen any more but what the
//! configuration asks for.
//!
//! | law | where it is checked |
//! |---|---|
//! | an engine never panics, whatever bytes it hears | any panic ends a run |
//! | quiet after draining; early and doubled timeouts are harmless; time is not chased | [`Checked`], [`LawRun`] |
//! | room is not overspent; each send ends in exactly one terminal indication | [`Checked`] |
//! | delivered is what was sent: whole, in order, once | the users |
//! | nothing accepted is lost; nothing is acknowledged that is not safe | the users; [`LawRun::audited`] |
//! | nothing is delivered again after the application took it | the users |
//! | everything ends once the faults stop | [`LawRun::run`] |
//! | an idle session costs nothing | [`LawRun::run`] |
//! | same seed, same trace | [`sweep`] |
//!
//! `LONGWIRE_SEEDS=n` runs n seeds of each sweep, `LONGWIRE_SEED=s` that one alone, and `LONGWIRE_LINES=n` shows the
//! last n lines of a broken run. Seeds that failed once are in `seeds.txt`, and are always run.

mod agents;
mod apps;
mod ax25;
mod bundles;
mod calls;
mod datagrams;
mod disks;
mod flawed;
mod frames;
mod hostile_peer;
mod joints;
mod links;
mod packets;
mod radio;
mod seeds;
mod stack;
mod tcp;
mod toy;

pub(crate) use bundles::{BundleUserBehaviour, BundleUsers};
pub(crate) use datagrams::HostileDatagrams;
pub(crate) use packets::{PacketConditions as PacketWeather, PacketLinks};
pub(crate) use seeds::{Replay, catches, catches_also, sweep};

use crate::engine::{Engine, Service};
use crate::rng::Rng;
use crate::time::{Duration, Instant};
use crate::wrap::{Checked, CheckedService, Crossing, TimelineWriter};
use core::fmt::{self, Write};

/// What the nodes stand on: the links between them, their disks.
pub(crate) trait Environment<B: Service> {
    /// A node asks for something.
    fn handle_request(&mut self, now: Instant, node: usize, request: B::Request);
    /// The time has come.
    fn handle_timeout(&mut self, now: Instant);
    /// The next thing that a node hears.
    fn poll_indication(&mut self) -> Option<(usize, B::Indication)>;
    /// When something happens next.
    fn poll_timeout(&self) -> Option<Instant>;
    /// A node has started.
    fn started(&mut self, _now: Instant, _node: usize) {}
    /// A node has lost its power.
    fn crash(&mut self, now: Instant, node: usize);
    /// The faults stop.
    fn calm(&mut self, now: Instant);
    /// How many messages have been carried.
    fn carried(&self) -> u64;
}

/// The users of all nodes.
pub(crate) trait Users<A: Service> {
    /// A node has started; it knows nothing that is not on its disk.
    fn started(&mut self, now: Instant, node: usize);
    /// A node has lost its power.
    fn crashed(&mut self, now: Instant, node: usize);
    /// The faults stop.
    fn calm(&mut self, now: Instant);
    /// A node says something.
    fn handle_indication(&mut self, now: Instant, node: usize, indication: A::Indication);
    /// The time has come.
    fn handle_timeout(&mut self, now: Instant);
    /// The next thing that they ask of a node; only of one that runs.
    fn poll_request(&mut self, now: Instant) -> Option<(usize, A::Request)>;
    /// When they want something next.
    fn poll_timeout(&self) -> Option<Instant>;
    /// What has not come to its end yet.
    fn unsettled(&self) -> Option<String>;
    /// Whether everything has to end. Not where bytes are forged: they may say that there is more to come.
    fn want_ends(&self) -> bool {
        true
    }
}

/// What an idle world may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IdleBudget {
    /// From when on it counts, after everything has ended: waiting states and idle timers run out.
    pub(crate) after: Duration,
    /// For how long it counts.
    pub(crate) window: Duration,
    /// Wake-ups of all nodes together in the window.
    pub(crate) wake_ups: u64,
    /// Messages on the ground in the window.
    pub(crate) carried: u64,
}

/// A crash: when, of which node, and for how long it stays down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crash {
    pub(crate) at: Instant,
    pub(crate) node: usize,
    pub(crate) off: Duration,
}

impl Crash {
    /// A few crashes of `nodes` nodes before `faults_end_at`, in some worlds.
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

/// What a world is told beside its three floors.
#[derive(Clone, Debug)]
pub(crate) struct RunPlan {
    /// When the faults stop.
    pub(crate) faults_end_at: Instant,
    /// All before `faults_end_at`.
    pub(crate) crashes: Vec<Crash>,
    /// How long everything may take to end once the faults have stopped.
    pub(crate) patience: Duration,
    /// How late nodes are woken.
    pub(crate) lateness: Duration,
    /// What the idle world may cost.
    pub(crate) idle: IdleBudget,
}

impl RunPlan {
    /// Nodes are woken in time in most worlds, and a little late in some.
    pub(crate) fn draw_lateness(rng: &mut Rng) -> Duration {
        if rng.chance(0.8) { Duration::ZERO } else { rng.span(Duration::ZERO, Duration::from_millis(50)) }
    }
}

/// What a run leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunDigest {
    /// Of everything that crossed a node's edge, with its time.
    pub(crate) hash: u64,
    /// How many crossings.
    pub(crate) crossings: u64,
    /// When everything had come to its end.
    pub(crate) settled_at: Instant,
}

/// Makes the engine of a node: which node, and when.
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
    /// Nodes that may have something to say.
    awake: Vec<bool>,
    /// Crashes and restarts to come; the last one is the next.
    events: Vec<(Instant, usize, bool)>,
    wake_ups: u64,
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
    /// More crossings than this, and something runs in circles.
    const CROSSINGS_MAX: u64 = 2_000_000;

    /// A world of `count` nodes.
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
            crossings: 0,
            hash: Fnv::default(),
            timeline_writer: replay.timeline_writer(),
            audit: None,
        }
    }

    /// Holds what the ground keeps against what the users were promised: after each crash, when the faults stop, and in the
    /// end.
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
            return RunDigest { hash: self.hash.0, crossings: self.crossings, settled_at: self.now };
        }
        self.end();
        let settled_at = self.now;
        self.remark("everything has ended");
        self.rest();
        RunDigest { hash: self.hash.0, crossings: self.crossings, settled_at }
    }

    /// Waits for everything to come to its end.
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

    /// What has not ended.
    fn left(&self) -> Option<String> {
        self.users.unsettled().or_else(|| self.nodes.iter().flatten().find_map(|node| node.owed().pop()))
    }

    /// Lets the idle world be, and looks at what that costs.
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
            self.awake[node] = false;
            self.ground.crash(self.now, node);
            self.users.crashed(self.now, node);
            self.audit();
        }
    }

    /// Carries everything that is said until nobody has anything to say: what rises goes first, from the ground up.
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
                && let Some(indication) = self.nodes[node].as_mut().expect("awake").poll_indication()
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

/// Fowler, Noll and Vo's hash, 64 bits, 1a, of text.
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

/// Draws of a seed, as worlds want them.
pub(crate) trait Draw {
    /// Zero half of the time, else evenly up to `max`: most worlds have few faults, and each is missing in some.
    fn share(&mut self, max: f64) -> f64;
    /// Evenly between two lengths of time.
    fn span(&mut self, from: Duration, to: Duration) -> Duration;
    /// A whole number between two, both included.
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
