//! Nodes that meet now and then: which router brings how much how soon, and what it costs.
//!
//! ```toml
//! title = "Two villages, a bus and a town"
//! nodes = ["north", "south", "bus", "town"]
//! routers = ["static", "epidemic"]     # all four where nothing is said
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
//! [[meeting]]                          # again and again
//! between = ["bus", "town"]
//! first-s = 600
//! every-s = 7200
//! lasts-s = 300
//! late-s = 600                         # up to so much later, drawn
//! chance = 0.8                         # of taking place at all
//!
//! [[route]]                            # for the routers that take routes: static and contact-plan
//! at = "north"
//! to = "town"
//! via = "bus"
//! ```
//!
//! Meetings and messages are drawn from the run's seed and nothing else: all routers meet the same world. The contact
//! plan is what comes to pass, so that its router knows more than the others. Every node is the whole stack: agent,
//! TCPCL 4, TCP.

mod world;

pub use world::Outcome;

use crate::error::Error;
use crate::finding::Finding;
use crate::parallel::spread_rounds;
use crate::progress::Progress;
use crate::record::{Experiment, Params, Record, Run};
use crate::report::{Cell, Column, PageBlock, Report, Section, Table};
use crate::stats::Summary;
use crate::sweep::Options;
use crate::toml_text;
use longwire_proto::bp::agent::RouterChoice;
use longwire_proto::rng::Rng;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// Pairs of nodes are numbered with one byte.
const PAIRS_MAX: usize = 200;
/// The most messages of a run.
const MESSAGES_MAX: u32 = 10_000;

/// A world of meetings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MeetingScenario {
    /// A name for people.
    pub title: String,
    /// What it is about, in a sentence or two.
    pub about: String,
    /// The nodes.
    pub nodes: Vec<String>,
    /// The routers that are compared. Default: all.
    pub routers: Vec<RouterChoice>,
    /// Spray and wait: copies of each message, 1 to 127. Default 8.
    pub copies: u32,
    /// How many runs with different seeds. Default 8.
    pub runs: u32,
    /// The seed from which every run's randomness is drawn. Default 1.
    pub seed: u64,
    /// How long a run lasts, seconds. Default 86,400.
    pub duration_s: f64,
    /// The rate of every line while it is there, each way, bit/s. Default 250,000.
    pub rate_bps: u64,
    /// What is sent.
    pub messages: Messages,
    /// Who meets whom.
    pub meeting: Vec<Meeting>,
    /// The ways that static routing and the contact plan know.
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

/// What is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Messages {
    /// Who sends, each as often: drawn.
    pub from: Vec<String>,
    /// Who receives: drawn.
    pub to: Vec<String>,
    /// How many. Default 40.
    pub count: u32,
    /// The length of each, bytes. Default 10,000.
    pub bytes: u64,
    /// They are made from the beginning of the run until then, seconds: drawn. Default 43,200.
    pub within_s: f64,
}

impl Default for Messages {
    fn default() -> Self {
        Messages { from: Vec::new(), to: Vec::new(), count: 40, bytes: 10_000, within_s: 43_200.0 }
    }
}

/// Two nodes that meet again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Meeting {
    /// Who.
    pub between: [String; 2],
    /// When first, seconds. Default 0.
    pub first_s: f64,
    /// From one to the next, seconds; 0: there is only one. Default 0.
    pub every_s: f64,
    /// How long each lasts, seconds. Default 300.
    pub lasts_s: f64,
    /// How much later each may begin, seconds: drawn. Default 0.
    pub late_s: f64,
    /// With which probability each takes place. Default 1.
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

/// A way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MeetingRoute {
    /// The node that knows it.
    pub at: String,
    /// Where it leads.
    pub to: String,
    /// The next node.
    pub via: String,
    /// What it costs: lower is better. Default 1.
    pub cost: u32,
}

impl Default for MeetingRoute {
    fn default() -> Self {
        MeetingRoute { at: String::new(), to: String::new(), via: String::new(), cost: 1 }
    }
}

impl MeetingScenario {
    /// Reads a plan from its table.
    ///
    /// # Errors
    /// Unknown keys with the nearest known one, values that make no sense.
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
            return Err(format!("`{stranger}` is none of `nodes`"));
        }
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        for (at, name) in self.nodes.iter().enumerate() {
            if name.is_empty() || !name.chars().all(plain) || self.nodes[..at].contains(name) {
                return Err(format!("`{name}` is no name for a node, or that of another"));
            }
        }
        if self.messages.from.is_empty() || self.messages.to.is_empty() || self.routers.is_empty() {
            return Err("`messages.from`, `messages.to` and `routers` need at least one each".into());
        }
        let count = self.messages.count;
        if !(1..=MESSAGES_MAX).contains(&count) || !(1..=1 << 20).contains(&self.messages.bytes) {
            return Err(format!("`messages` has up to {MESSAGES_MAX} of 1 byte to 1 MiB each"));
        }
        if self.runs == 0 || !(1..=127).contains(&self.copies) || self.rate_bps == 0 {
            return Err("`runs` and `rate-bps` are at least 1, `copies` is 1 to 127".into());
        }
        let time = |seconds: f64| (0.0..=1e8).contains(&seconds);
        if !time(self.duration_s) || !time(self.messages.within_s) {
            return Err("times are from 0 to 1e8 seconds".into());
        }
        self.meeting.iter().try_for_each(|meeting| self.check_meeting(meeting))?;
        if self.pairs().len() > PAIRS_MAX { Err(format!("more than {PAIRS_MAX} pairs meet")) } else { Ok(()) }
    }

    fn check_meeting(&self, meeting: &Meeting) -> Result<(), String> {
        let [a, b] = &meeting.between;
        let times = [meeting.first_s, meeting.every_s, meeting.lasts_s, meeting.late_s];
        if a == b || !times.into_iter().all(|seconds| (0.0..=1e8).contains(&seconds)) {
            return Err(format!("`{a}` and `{b}`: two nodes meet, at times from 0 to 1e8 seconds"));
        }
        if meeting.lasts_s < 1.0 || !(0.0..=1.0).contains(&meeting.chance) {
            return Err(format!("`{a}` and `{b}`: `lasts-s` is at least 1, `chance` from 0 to 1"));
        }
        if meeting.every_s > 0.0 && meeting.every_s < meeting.lasts_s + meeting.late_s + 1.0 {
            return Err(format!("`{a}` and `{b}`: one meeting ends a second before the next may begin"));
        }
        Ok(())
    }

    /// Who meets whom: by number, the lower one first.
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

    /// The seed of a run: a function of the plan's seed and the run's number alone.
    fn seed_of(&self, run: u32) -> u64 {
        Rng::new(self.seed).fork(&format!("run {run}")).next_u64()
    }

    /// Plays one run with one router.
    pub fn play(&self, router: RouterChoice, run: u32) -> Outcome {
        world::play(self, router, self.seed_of(run))
    }
}

/// What is measured of every run: its name with its unit, the unit in words, and the value, where the run has one.
type RunMetric = (&'static str, &'static str, fn(&Outcome) -> Option<f64>);

const METRICS: &[RunMetric] = &[
    ("delivered", "share of messages", |outcome| Some(outcome.delays_s.len() as f64 / outcome.sent as f64)),
    ("delay_mean_s", "s", |outcome| outcome.mean_delay_s()),
    ("delay_max_s", "s", |outcome| outcome.delays_s.iter().copied().reduce(f64::max)),
    ("copies_mean", "nodes", |outcome| {
        Some(outcome.holders.iter().sum::<usize>() as f64 / outcome.sent as f64)
    }),
    ("copies_max", "nodes", |outcome| outcome.holders.iter().max().map(|most| *most as f64)),
    ("sent_byte", "byte", |outcome| Some(outcome.sent_bytes as f64)),
];

/// The name of a router in plans.
fn name(router: RouterChoice) -> &'static str {
    match router {
        RouterChoice::Static => "static",
        RouterChoice::ContactPlan => "contact-plan",
        RouterChoice::Epidemic => "epidemic",
        RouterChoice::SprayAndWait => "spray-and-wait",
    }
}

/// Runs a plan.
///
/// # Errors
/// What the options ask for and a world of meetings has not.
pub fn run(mut plan: MeetingScenario, options: &Options, progress: &Progress) -> Result<Finding, Error> {
    if !options.sweeps.is_empty() || options.traces {
        return Err(Error::new("a world of meetings has no sweeps and no traces")
            .hint("it compares its routers; `--runs` and `--seed` change the rest"));
    }
    plan.runs = options.runs.unwrap_or(plan.runs);
    plan.seed = options.seed.unwrap_or(plan.seed);
    let all = (0..plan.runs).flat_map(|run| plan.routers.iter().map(move |router| (*router, run)));
    let jobs: Vec<(RouterChoice, u32)> =
        all.enumerate().filter(|(job, _)| options.shard.has(*job)).map(|(_, what)| what).collect();
    progress.expect(jobs.len() as u64);
    let work = |job: usize| plan.play(jobs[job].0, jobs[job].1);
    let outcomes = spread_rounds(jobs.len(), options.threads, work, |job| jobs[job].1, progress);
    let stem = options.scenario.file_stem().map_or("meetings".into(), |stem| stem.to_string_lossy());
    let mut experiment = Experiment { experiment: stem.into(), seed: plan.seed, ..Experiment::default() };
    let mut table = Table::new("Routers in the same world, 95 % intervals", columns());
    for router in &plan.routers {
        let mine = jobs.iter().zip(&outcomes).filter(|((other, _), _)| other == router);
        let runs: Vec<(u32, &Outcome)> = mine.map(|((_, run), outcome)| (*run, outcome)).collect();
        enter(&plan, *router, &runs, &mut experiment, &mut table);
    }
    if progress.left_out() > 0 {
        plan.runs = jobs[..outcomes.len()].last().map_or(0, |(_, run)| run + 1);
    }
    Ok(finding(&plan, &options.scenario, experiment, table, progress.early_end()))
}

fn columns() -> [Column; 7] {
    [
        Column::text("router"),
        Column::number("arrived", ""),
        Column::number("delay", "s"),
        Column::number("longest", "s"),
        Column::number("copies", ""),
        Column::number("most", ""),
        Column::number("sent", "byte"),
    ]
}

/// Enters what one router did.
fn enter(
    plan: &MeetingScenario,
    router: RouterChoice,
    runs: &[(u32, &Outcome)],
    experiment: &mut Experiment,
    table: &mut Table,
) {
    let mut cells = vec![Cell::text(name(router))];
    for (metric, unit, value) in METRICS {
        let samples: Vec<f64> = runs.iter().filter_map(|(_, outcome)| value(outcome)).collect();
        if samples.is_empty() {
            cells.push(Cell::empty());
            continue;
        }
        cells.push(Cell::summary(&Summary::of(&samples)));
        experiment.records.push(Record::of(name(router), Params::new(), *metric, *unit, &samples));
    }
    table.row(cells);
    for (run, outcome) in runs {
        let values = METRICS.iter().filter_map(|(name, _, value)| Some(((*name).into(), value(outcome)?)));
        experiment.runs.push(Run {
            series: name(router).into(),
            params: Params::new(),
            run: *run,
            seed: plan.seed_of(*run),
            values: values.collect(),
        });
    }
}

/// The finding; where it was stopped early, `plan` has the runs that were made, and `early_end` says so.
fn finding(
    plan: &MeetingScenario,
    path: &Path,
    experiment: Experiment,
    table: Table,
    early_end: Option<String>,
) -> Finding {
    let lead = format!(
        "{}: {} messages of {} bytes, {} runs.{}",
        if plan.title.is_empty() { "Meetings" } else { &plan.title },
        plan.messages.count,
        plan.messages.bytes,
        plan.runs,
        early_end.map_or_else(String::new, |words| format!(" {words}"))
    );
    let words = "Arrived: the share of messages that arrived within the run. Delay and longest: from the send to the \
                 delivery, of those that arrived. Copies and most: how many nodes had a message, on average and at \
                 most, the destination not counted. Sent: all bytes on all lines, headers, acknowledgements and \
                 keep-alives included.";
    let text = toml::to_string(plan).expect("a plan is TOML");
    let report = Report {
        title: plan.title.clone(),
        lead: lead.clone(),
        command: format!("longwire run {} --runs {} --seed {}", path.display(), plan.runs, plan.seed),
        facts: vec![("seed".into(), plan.seed.to_string())],
        sections: vec![
            Section::new("Results").with(table.clone()).with(words),
            Section::new("The scenario").with(PageBlock::Code { caption: "the scenario".into(), text }),
        ],
        assumptions: Vec::new(),
    };
    Finding {
        experiment,
        report,
        summary: vec![PageBlock::Text(lead), PageBlock::Table(table), PageBlock::Text(words.into())],
        traces: Vec::new(),
    }
}
