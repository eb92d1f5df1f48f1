//! Nodes that meet at times: a comparison of routers by delivered messages, delay and cost.
//!
//! ```toml
//! title = "Two villages, a bus and a town"
//! nodes = ["north", "south", "bus", "town"]
//! routers = ["static", "epidemic"]     # default: all four
//! rate-bps = 250_000
//! duration-s = 86_400
//!
//! [messages]
//! from = ["north", "south"]
//! to = ["town"]
//! count = 40
//! bytes = 20_000
//! within-s = 43_200
//!
//! [[meeting]]                          # repeated
//! between = ["bus", "town"]
//! first-s = 600
//! every-s = 7200
//! lasts-s = 300
//! late-s = 600                         # maximum random delay
//! chance = 0.8                         # probability that it takes place
//!
//! [[route]]                            # for the routers with routes: static and contact-plan
//! at = "north"
//! to = "town"
//! via = "bus"
//! ```
//!
//! Meetings and messages are drawn from the run's seed only, so that they are the same for all routers. The contact plan
//! contains the actual meetings, so its router knows more than the others. Every node has all layers: agent, TCPCL 4,
//! TCP.

mod page;
mod world;

pub use world::Outcome;

use crate::bench::{self, Bench, Case, Metric, Run, Trial};
use crate::error::Error;
use crate::finding::Finding;
use crate::progress::Progress;
use crate::record::{Experiment, Params};
use crate::scenario::Options;
use crate::toml_text;
use longwire_proto::bp::agent::RouterChoice;
use serde::{Deserialize, Serialize};

/// Maximum pairs of nodes; they are numbered with one byte.
const PAIRS_MAX: usize = 200;
/// Maximum messages of a run.
const MESSAGES_MAX: u32 = 10_000;

/// Scenario of meetings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MeetingScenario {
    /// Display name.
    pub title: String,
    /// Description, in a sentence or two.
    pub about: String,
    /// Nodes.
    pub nodes: Vec<String>,
    /// Routers to compare. Default: all.
    pub routers: Vec<RouterChoice>,
    /// Copies of each message for spray and wait, 1 to 127. Default 8.
    pub copies: u32,
    /// Number of runs with different seeds. Default 8.
    pub runs: u32,
    /// Seed of the random numbers of all runs. Default 1.
    pub seed: u64,
    /// Duration of a run, seconds. Default 86,400.
    pub duration_s: f64,
    /// Rate of every line while it is up, each direction, bit/s. Default 250,000.
    pub rate_bps: u64,
    /// Messages sent.
    pub messages: Messages,
    /// Meetings of pairs of nodes.
    pub meeting: Vec<Meeting>,
    /// Routes for static routing and the contact plan.
    pub route: Vec<MeetingRoute>,
}

impl Default for MeetingScenario {
    fn default() -> Self {
        MeetingScenario {
            title: String::new(),
            about: String::new(),
            nodes: Vec::new(),
            routers: ALL.to_vec(),
            copies: 8,
            runs: 8,
            seed: 1,
            duration_s: 86_400.0,
            rate_bps: 250_000,
            messages: Messages::default(),
            meeting: Vec::new(),
            route: Vec::new(),
        }
    }
}

const ALL: [RouterChoice; 4] =
    [RouterChoice::Static, RouterChoice::ContactPlan, RouterChoice::Epidemic, RouterChoice::SprayAndWait];

/// Messages of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Messages {
    /// Senders, drawn with equal probability.
    pub from: Vec<String>,
    /// Receivers, drawn with equal probability.
    pub to: Vec<String>,
    /// Number of messages. Default 40.
    pub count: u32,
    /// Length of each message, bytes. Default 10,000.
    pub bytes: u64,
    /// End of the period in which messages are created, at random times since the start of the run, seconds. Default
    /// 43,200.
    pub within_s: f64,
}

impl Default for Messages {
    fn default() -> Self {
        Messages { from: Vec::new(), to: Vec::new(), count: 40, bytes: 10_000, within_s: 43_200.0 }
    }
}

/// Repeated meeting of two nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Meeting {
    /// The two nodes.
    pub between: [String; 2],
    /// Start of the first meeting, seconds. Default 0.
    pub first_s: f64,
    /// Interval between meetings, seconds; 0 for a single meeting. Default 0.
    pub every_s: f64,
    /// Duration of each meeting, seconds. Default 300.
    pub lasts_s: f64,
    /// Maximum random delay of each meeting, seconds. Default 0.
    pub late_s: f64,
    /// Probability that each meeting takes place. Default 1.
    pub chance: f64,
}

impl Default for Meeting {
    fn default() -> Self {
        Meeting {
            between: Default::default(),
            first_s: 0.0,
            every_s: 0.0,
            lasts_s: 300.0,
            late_s: 0.0,
            chance: 1.0,
        }
    }
}

/// Route.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MeetingRoute {
    /// Node that has the route.
    pub at: String,
    /// Destination of the route.
    pub to: String,
    /// Next node.
    pub via: String,
    /// Cost; lower is better. Default 1.
    pub cost: u32,
}

impl Default for MeetingRoute {
    fn default() -> Self {
        MeetingRoute { at: String::new(), to: String::new(), via: String::new(), cost: 1 }
    }
}

impl MeetingScenario {
    /// Reads a scenario from its table.
    ///
    /// # Errors
    /// Fails if a key is unknown, with the nearest known one, or a value is invalid.
    pub fn from_table(table: toml::Table, place: &str) -> Result<MeetingScenario, Error> {
        let plan: MeetingScenario = toml_text::from_table(table, place)?;
        plan.check().map_err(|what| Error::new(format!("{place}: {what}")))?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        let routes = self.route.iter().flat_map(|route| [&route.at, &route.to, &route.via]);
        let met = self.meeting.iter().flat_map(|meeting| &meeting.between);
        let named = self.messages.from.iter().chain(&self.messages.to).chain(routes).chain(met);
        if let Some(stranger) = named.into_iter().find(|name| !self.nodes.contains(name)) {
            return Err(format!("`{stranger}` is not in `nodes`"));
        }
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        for (at, name) in self.nodes.iter().enumerate() {
            if name.is_empty() || !name.chars().all(plain) || self.nodes[..at].contains(name) {
                return Err(format!("`{name}` is not a valid node name, or is used twice"));
            }
        }
        if self.messages.from.is_empty() || self.messages.to.is_empty() || self.routers.is_empty() {
            return Err(
                "`messages.from`, `messages.to` and `routers` must each have at least one entry".into()
            );
        }
        let count = self.messages.count;
        if !(1..=MESSAGES_MAX).contains(&count) || !(1..=1 << 20).contains(&self.messages.bytes) {
            return Err(format!("`messages` allows up to {MESSAGES_MAX} messages of 1 byte to 1 MiB"));
        }
        if self.runs == 0 || !(1..=127).contains(&self.copies) || self.rate_bps == 0 {
            return Err("`runs` and `rate-bps` must be at least 1, `copies` from 1 to 127".into());
        }
        let time = |seconds: f64| (0.0..=1e8).contains(&seconds);
        if !time(self.duration_s) || !time(self.messages.within_s) {
            return Err("times must be from 0 to 1e8 seconds".into());
        }
        self.meeting.iter().try_for_each(|meeting| self.check_meeting(meeting))?;
        if self.pairs().len() > PAIRS_MAX {
            Err(format!("at most {PAIRS_MAX} pairs of nodes can meet"))
        } else {
            Ok(())
        }
    }

    fn check_meeting(&self, meeting: &Meeting) -> Result<(), String> {
        let [a, b] = &meeting.between;
        let times = [meeting.first_s, meeting.every_s, meeting.lasts_s, meeting.late_s];
        if a == b || !times.into_iter().all(|seconds| (0.0..=1e8).contains(&seconds)) {
            return Err(format!(
                "`{a}` and `{b}`: a meeting needs two different nodes and times from 0 to 1e8 seconds"
            ));
        }
        if meeting.lasts_s < 1.0 || !(0.0..=1.0).contains(&meeting.chance) {
            return Err(format!("`{a}` and `{b}`: `lasts-s` must be at least 1, `chance` from 0 to 1"));
        }
        if meeting.every_s > 0.0 && meeting.every_s < meeting.lasts_s + meeting.late_s + 1.0 {
            return Err(format!(
                "`{a}` and `{b}`: a meeting must end at least one second before the next can begin"
            ));
        }
        Ok(())
    }

    /// Pairs of nodes that meet, by number, the lower one first.
    fn pairs(&self) -> Vec<(usize, usize)> {
        let place = |name: &String| self.nodes.iter().position(|node| node == name).unwrap_or(0);
        let pair = |meeting: &Meeting| {
            let [a, b] = [place(&meeting.between[0]), place(&meeting.between[1])];
            (a.min(b), a.max(b))
        };
        let mut pairs: Vec<_> = self.meeting.iter().map(pair).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs
    }

    /// Simulates the run with this number with one router.
    pub fn play(&self, router: RouterChoice, number: u32) -> Outcome {
        RouterTrial { plan: self, router }.play(Run::new(self.seed, number))
    }
}

/// One router in a scenario.
struct RouterTrial<'a> {
    plan: &'a MeetingScenario,
    router: RouterChoice,
}

impl Trial for RouterTrial<'_> {
    type Outcome = Outcome;

    const METRICS: &'static [Metric<Outcome>] = &[
        Metric::new("delivered", "share of messages", |outcome| {
            Some(outcome.delays_s.len() as f64 / outcome.sent as f64)
        }),
        Metric::new("delay_mean_s", "s", Outcome::mean_delay_s),
        Metric::new("delay_max_s", "s", |outcome| outcome.delays_s.iter().copied().reduce(f64::max)),
        Metric::new("copies_mean", "nodes", |outcome| {
            Some(outcome.holders.iter().sum::<usize>() as f64 / outcome.sent as f64)
        }),
        Metric::new("copies_max", "nodes", |outcome| outcome.holders.iter().max().map(|most| *most as f64)),
        Metric::new("sent_byte", "byte", |outcome| Some(outcome.sent_bytes as f64)),
    ];

    fn play(&self, run: Run) -> Outcome {
        world::play(self.plan, self.router, run.seed)
    }
}

/// Runs a scenario.
///
/// # Errors
/// Fails if the options request something that scenarios of meetings do not support.
pub fn run(mut plan: MeetingScenario, options: &Options, progress: &Progress) -> Result<Finding, Error> {
    if !options.sweeps.is_empty() || options.traces {
        return Err(Error::new("a scenario of meetings supports neither sweeps nor traces")
            .hint("it compares the routers in `routers`; change `--runs` and `--seed` only"));
    }
    plan.runs = options.runs.unwrap_or(plan.runs);
    plan.seed = options.seed.unwrap_or(plan.seed);
    let case = |router: &RouterChoice| {
        let trial = RouterTrial { plan: &plan, router: *router };
        Case::new(router.name(), Params::new(), trial, plan.seed, plan.runs)
    };
    let cases = plan.routers.iter().map(case).collect();
    let played = Bench { threads: options.threads, shard: options.shard, ..Bench::new(progress) }.play(cases);
    let stem = options.scenario.file_stem().map_or("meetings".into(), |stem| stem.to_string_lossy());
    let mut experiment = Experiment { experiment: stem.into(), seed: plan.seed, ..Experiment::default() };
    for router in &played {
        experiment.records.extend(router.records());
        experiment.runs.extend(router.rows());
    }
    let (table, plot, answer) = (page::table(&played), page::plot(&played), page::answer(&played));
    let made = bench::rounds(&played);
    if progress.left_out() > 0 {
        plan.runs = made;
    }
    let lead = [answer, progress.early_end()].into_iter().flatten().collect::<Vec<_>>().join(" ");
    Ok(page::finding(&plan, &options.scenario, experiment, lead, table, plot))
}
