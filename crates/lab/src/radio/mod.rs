//! Single frames on a shared radio channel: how long they take, and how many arrive.
//!
//! ```toml
//! title = "Positions on a shared channel"
//! nodes = ["boat", "car", "hill"]
//! runs = 16
//!
//! [frames]                             # at each sender as if by chance, so often on average
//! from = ["boat", "car"]               # all nodes where nothing is said
//! to = ["hill"]                        # drawn for each frame; all where nothing is said
//! bytes = 64
//! per-minute = 2.0
//! for-s = 3600.0
//!
//! [radio]                              # the channel: stations are counted in the order of `nodes`
//! rate-bps = 1200
//! errors = { ber = 0.0 }
//! [[radio.paths]]
//! from = 0
//! to = 1
//! heard = false
//!
//! [tnc]                                # the controllers; without it they are ideal
//! turnaround-ms = 100
//!
//! [sweep]
//! "frames.per-minute" = [1.0, 2.0, 4.0]
//! ```
//!
//! Frames are UI frames of AX.25: nobody answers and nothing is sent again. What is to be sent when is drawn from the run's
//! seed and nothing else.

mod world;

pub use world::Outcome;

use crate::error::Error;
use crate::finding::{self, Finding};
use crate::parallel::spread_rounds;
use crate::progress::Progress;
use crate::record::{Experiment, Params, Record, Run};
use crate::report::{Cell, Column, PageBlock, Report, Section, Table};
use crate::scenario::{grid, merged};
use crate::stats::Summary;
use crate::sweep::Options;
use crate::toml_text;
use longwire_proto::rng::Rng;
use longwire_sim::{RadioConfig, TncConfig};
use serde::{Deserialize, Serialize};

/// The most stations of a channel.
const NODES_MAX: usize = 100;
/// The most frames of a run, expected.
const FRAMES_MAX: f64 = 100_000.0;

/// Stations on a channel, and what they say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RadioScenario {
    /// A name for people.
    pub title: String,
    /// What it is about, in a sentence or two.
    pub about: String,
    /// The nodes, 2 to 100.
    pub nodes: Vec<String>,
    /// How many runs with different seeds. Default 16.
    pub runs: u32,
    /// The seed from which every run's randomness is drawn. Default 1.
    pub seed: u64,
    /// What is sent.
    pub frames: FrameLoad,
    /// The channel.
    pub radio: RadioConfig,
    /// The controllers of all stations; none: ideal ones. Default none.
    pub tnc: Option<TncConfig>,
    /// Values to try: dotted keys, each with a list.
    pub sweep: toml::Table,
}

impl Default for RadioScenario {
    fn default() -> Self {
        RadioScenario {
            title: String::new(),
            about: String::new(),
            nodes: Vec::new(),
            runs: 16,
            seed: 1,
            frames: FrameLoad::default(),
            radio: RadioConfig::default(),
            tnc: None,
            sweep: toml::Table::new(),
        }
    }
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FrameLoad {
    /// Who sends. Default: all.
    pub from: Vec<String>,
    /// To whom: drawn. Default: all.
    pub to: Vec<String>,
    /// Information octets of a frame, 4 to 2048. Default 64.
    pub bytes: u32,
    /// How many each sender has a minute, on average. Default 2.
    pub per_minute: f64,
    /// For so long from the beginning, seconds. Default 3,600.
    pub for_s: f64,
}

impl Default for FrameLoad {
    fn default() -> Self {
        FrameLoad { from: Vec::new(), to: Vec::new(), bytes: 64, per_minute: 2.0, for_s: 3600.0 }
    }
}

impl RadioScenario {
    /// Reads a plan from its table.
    ///
    /// # Errors
    /// Unknown keys with the nearest known one, values that make no sense.
    pub fn from_table(table: toml::Table, place: &str) -> Result<RadioScenario, Error> {
        let plan: RadioScenario = toml_text::from_table(table, place)?;
        plan.check().map_err(|what| Error::new(format!("{place}: {what}")))?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        let named = self.frames.from.iter().chain(&self.frames.to);
        if let Some(stranger) = named.into_iter().find(|name| !self.nodes.contains(name)) {
            return Err(format!("`{stranger}` is none of `nodes`"));
        }
        if !(2..=NODES_MAX).contains(&self.nodes.len()) {
            return Err(format!("`nodes` has from 2 to {NODES_MAX} names"));
        }
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        for (at, name) in self.nodes.iter().enumerate() {
            if name.is_empty() || !name.chars().all(plain) || self.nodes[..at].contains(name) {
                return Err(format!("`{name}` is no name for a node, or that of another"));
            }
        }
        if self.senders().iter().any(|from| self.hearers() == [*from]) {
            return Err("`frames.to` names nobody but one of `frames.from`: nobody talks to itself".into());
        }
        let least = world::NUMBER_BYTES as u32;
        if !(least..=2048).contains(&self.frames.bytes) {
            return Err(format!("`frames.bytes` is from {least} to 2048"));
        }
        let FrameLoad { per_minute, for_s, .. } = self.frames;
        let all = per_minute / 60.0 * for_s * self.nodes.len() as f64;
        if self.runs == 0 || per_minute.is_nan() || per_minute <= 0.0 || !(0.0..=FRAMES_MAX).contains(&all) {
            return Err(format!("`runs` is at least 1, `frames` some, and at most {FRAMES_MAX} a run"));
        }
        if let Some(tnc) = &self.tnc {
            tnc.validate().map_err(|why| format!("`tnc`: {why}"))?;
        }
        self.radio.validate(self.nodes.len()).map_err(|why| format!("`radio`: {why}"))
    }

    fn places(&self, names: &[String]) -> Vec<usize> {
        let named = |at: &usize| names.is_empty() || names.contains(&self.nodes[*at]);
        (0..self.nodes.len()).filter(named).collect()
    }

    fn senders(&self) -> Vec<usize> {
        self.places(&self.frames.from)
    }

    fn hearers(&self) -> Vec<usize> {
        self.places(&self.frames.to)
    }

    /// The seed of a run: a function of the plan's seed and the run's number alone.
    fn seed_of(&self, run: u32) -> u64 {
        Rng::new(self.seed).fork(&format!("run {run}")).next_u64()
    }

    /// Plays one run.
    pub fn play(&self, run: u32) -> Outcome {
        world::play(self, self.seed_of(run))
    }
}

/// What is measured of every run: its name with its unit, the unit in words, and the value, where the run has one.
type RunMetric = (&'static str, &'static str, fn(&Outcome) -> Option<f64>);

const METRICS: &[RunMetric] = &[
    ("delivered", "share of frames", |outcome| share(outcome, outcome.delays_s.len() as u32)),
    ("delay_mean_s", "s", Outcome::mean_delay_s),
    ("delay_95_s", "s", |outcome| outcome.delay_s(0.95)),
    ("delay_max_s", "s", |outcome| outcome.delay_s(1.0)),
    ("collided", "share of frames", |outcome| share(outcome, outcome.collided)),
    ("deaf", "share of frames", |outcome| share(outcome, outcome.deaf)),
    ("damaged", "share of frames", |outcome| share(outcome, outcome.damaged)),
    ("keyed", "share of time", |outcome| {
        (outcome.lasted_s > 0.0).then(|| outcome.keyed_s / outcome.lasted_s)
    }),
];

fn share(outcome: &Outcome, part: u32) -> Option<f64> {
    (outcome.frames > 0).then(|| f64::from(part) / f64::from(outcome.frames))
}

/// The series of what is measured.
const SERIES: &str = "single frames";

/// Runs a plan with its sweeps.
///
/// # Errors
/// What is wrong with the file, and what the options ask for and single frames have not.
pub fn run(
    mut table: toml::Table,
    place: &str,
    options: &Options,
    progress: &Progress,
) -> Result<Finding, Error> {
    if options.traces {
        return Err(Error::new("single frames have no traces").hint("leave `--trace` away"));
    }
    let whole = RadioScenario::from_table(table.clone(), place)?;
    table.remove("sweep");
    let mut points: Vec<(Params, RadioScenario)> = Vec::new();
    for (params, table) in grid(table, &merged(&whole.sweep, &options.sweeps)?)? {
        let mut plan = RadioScenario::from_table(table, "with the sweeps applied")?;
        plan.runs = options.runs.unwrap_or(plan.runs);
        plan.seed = options.seed.unwrap_or(plan.seed);
        points.push((params, plan));
    }
    let most = points.iter().map(|(_, plan)| plan.runs).max().unwrap_or(0);
    let of_round =
        |run: u32| (0..points.len()).filter(|at| run < points[*at].1.runs).map(|at| (at, run)).collect();
    let all = (0..most).flat_map(|run| -> Vec<(usize, u32)> { of_round(run) });
    let jobs: Vec<(usize, u32)> =
        all.enumerate().filter(|(job, _)| options.shard.has(*job)).map(|(_, what)| what).collect();
    progress.expect(jobs.len() as u64);
    let work = |job: usize| points[jobs[job].0].1.play(jobs[job].1);
    let outcomes = spread_rounds(jobs.len(), options.threads, work, |job| jobs[job].1, progress);
    let stem = options.scenario.file_stem().map_or("radio".into(), |stem| stem.to_string_lossy());
    let seed = options.seed.unwrap_or(whole.seed);
    let mut experiment = Experiment { experiment: stem.into(), seed, ..Experiment::default() };
    let mut table = Table::new("Single frames, 95 % intervals", columns());
    for (at, (params, plan)) in points.iter().enumerate() {
        let mine = jobs.iter().zip(&outcomes).filter(|((other, _), _)| *other == at);
        let runs: Vec<(u32, &Outcome)> = mine.map(|((_, run), outcome)| (*run, outcome)).collect();
        enter(plan, params, &runs, &mut experiment, &mut table);
    }
    let planned = options.runs.unwrap_or(whole.runs);
    let runs = match progress.left_out() {
        0 => planned,
        _ => jobs[..outcomes.len()].last().map_or(0, |(_, run)| run + 1),
    };
    let early_end = progress.early_end().map_or_else(String::new, |words| format!(" {words}"));
    let count = format!("{} stations, {runs} runs.{early_end}", whole.nodes.len());
    let command = format!("longwire run {} --runs {runs} --seed {seed}", options.scenario.display());
    Ok(finding(&whole, &count, command, experiment, table))
}

fn columns() -> [Column; 9] {
    [
        Column::text("point"),
        Column::number("arrived", ""),
        Column::number("delay", "s"),
        Column::number("95 %", "s"),
        Column::number("longest", "s"),
        Column::number("collided", ""),
        Column::number("deaf", ""),
        Column::number("damaged", ""),
        Column::number("keyed", ""),
    ]
}

/// Enters what came of one point.
fn enter(
    plan: &RadioScenario,
    params: &Params,
    runs: &[(u32, &Outcome)],
    experiment: &mut Experiment,
    table: &mut Table,
) {
    if runs.is_empty() {
        return;
    }
    let mut cells = vec![Cell::text(finding::point_name(params))];
    for (metric, unit, value) in METRICS {
        let samples: Vec<f64> = runs.iter().filter_map(|(_, outcome)| value(outcome)).collect();
        if samples.is_empty() {
            cells.push(Cell::empty());
            continue;
        }
        cells.push(Cell::summary(&Summary::of(&samples)));
        experiment.records.push(Record::of(SERIES, params.clone(), *metric, *unit, &samples));
    }
    table.row(cells);
    for (run, outcome) in runs {
        let values = METRICS.iter().filter_map(|(name, _, value)| Some(((*name).into(), value(outcome)?)));
        experiment.runs.push(Run {
            series: SERIES.into(),
            params: params.clone(),
            run: *run,
            seed: plan.seed_of(*run),
            values: values.collect(),
        });
    }
}

fn finding(
    plan: &RadioScenario,
    count: &str,
    command: String,
    experiment: Experiment,
    table: Table,
) -> Finding {
    let title = if plan.title.is_empty() { "Single frames on a radio channel" } else { &plan.title };
    let lead = format!("{title}: {count}");
    let words = "Arrived, collided, deaf, damaged: shares of the frames, at the stations that they were for; deaf are those \
                 whose station was transmitting. Delay, 95 % and longest: from the wish to send to the arrival, of \
                 those that arrived. Keyed: the time of all transmitters over the time of the run.";
    let text = toml::to_string(plan).expect("a plan is TOML");
    let report = Report {
        title: title.to_owned(),
        lead: lead.clone(),
        command,
        facts: vec![("seed".into(), experiment.seed.to_string())],
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
