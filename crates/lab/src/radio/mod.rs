//! Single frames on a shared radio channel: their delays and the share that arrives.
//!
//! ```toml
//! title = "Positions on a shared channel"
//! nodes = ["boat", "car", "hill"]
//! runs = 16
//!
//! [frames]                             # a Poisson process at each sender
//! from = ["boat", "car"]               # default: all nodes
//! to = ["hill"]                        # drawn for each frame; default: all nodes
//! bytes = 64
//! per-minute = 2.0
//! for-s = 3600.0
//!
//! [radio]                              # the channel; stations are numbered in the order of `nodes`
//! rate-bps = 1200
//! errors = { ber = 0.0 }
//! [[radio.paths]]
//! from = 0
//! to = 1
//! heard = false
//!
//! [tnc]                                # the controllers; default: ideal ones
//! turnaround-ms = 100
//!
//! [sweep]
//! "frames.per-minute" = [1.0, 2.0, 4.0]
//! ```
//!
//! Frames are AX.25 UI frames, without acknowledgements and retransmissions. Their times are drawn from the run's seed
//! only.

mod world;

pub use world::Outcome;

use crate::bench::{self, Bench, Case, Metric, Run, Trial};
use crate::error::Error;
use crate::finding::Finding;
use crate::label;
use crate::progress::Progress;
use crate::record::Experiment;
use crate::report::{Cell, PageBlock, Report, Section, Table};
use crate::scenario::{Options, grid, merged};
use crate::toml_text;
use longwire_sim::{RadioConfig, TncConfig};
use serde::{Deserialize, Serialize};

/// Maximum stations of a channel.
const NODES_MAX: usize = 100;
/// Maximum expected frames of a run.
const FRAMES_MAX: f64 = 100_000.0;

/// Scenario of stations that send single frames on a channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct RadioScenario {
    /// Display name.
    pub title: String,
    /// Description, in a sentence or two.
    pub about: String,
    /// Nodes, 2 to 100.
    pub nodes: Vec<String>,
    /// Number of runs with different seeds. Default 16.
    pub runs: u32,
    /// Seed of the random numbers of all runs. Default 1.
    pub seed: u64,
    /// Frames sent.
    pub frames: FrameLoad,
    /// Channel.
    pub radio: RadioConfig,
    /// Controllers of all stations; `None` for ideal ones. Default `None`.
    pub tnc: Option<TncConfig>,
    /// Parameter sweeps: dotted keys, each with a list of values.
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

/// Frames of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct FrameLoad {
    /// Senders. Default: all.
    pub from: Vec<String>,
    /// Receivers, drawn for each frame. Default: all.
    pub to: Vec<String>,
    /// Information octets of a frame, 4 to 2048. Default 64.
    pub bytes: u32,
    /// Mean number of frames per sender and minute. Default 2.
    pub per_minute: f64,
    /// Period in which frames are created, from the start of the run, seconds. Default 3,600.
    pub for_s: f64,
}

impl Default for FrameLoad {
    fn default() -> Self {
        FrameLoad { from: Vec::new(), to: Vec::new(), bytes: 64, per_minute: 2.0, for_s: 3600.0 }
    }
}

impl RadioScenario {
    /// Reads a scenario from its table.
    ///
    /// # Errors
    /// Fails if a key is unknown, with the nearest known one, or a value is invalid.
    pub fn from_table(table: toml::Table, place: &str) -> Result<RadioScenario, Error> {
        let plan: RadioScenario = toml_text::from_table(table, place)?;
        plan.check().map_err(|what| Error::new(format!("{place}: {what}")))?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        let named = self.frames.from.iter().chain(&self.frames.to);
        if let Some(stranger) = named.into_iter().find(|name| !self.nodes.contains(name)) {
            return Err(format!("`{stranger}` is not in `nodes`"));
        }
        if !(2..=NODES_MAX).contains(&self.nodes.len()) {
            return Err(format!("`nodes` must have from 2 to {NODES_MAX} names"));
        }
        let plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        for (at, name) in self.nodes.iter().enumerate() {
            if name.is_empty() || !name.chars().all(plain) || self.nodes[..at].contains(name) {
                return Err(format!("`{name}` is not a valid node name, or is used twice"));
            }
        }
        if self.senders().iter().any(|from| self.hearers() == [*from]) {
            return Err("`frames.to` must name a node other than the sender".into());
        }
        let least = world::NUMBER_BYTES as u32;
        if !(least..=2048).contains(&self.frames.bytes) {
            return Err(format!("`frames.bytes` must be from {least} to 2048"));
        }
        let FrameLoad { per_minute, for_s, .. } = self.frames;
        let all = per_minute / 60.0 * for_s * self.nodes.len() as f64;
        if self.runs == 0 || per_minute.is_nan() || per_minute <= 0.0 || !(0.0..=FRAMES_MAX).contains(&all) {
            return Err(format!("`runs` must be at least 1, with 1 to {FRAMES_MAX} frames per run"));
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
}

impl Trial for RadioScenario {
    type Outcome = Outcome;

    const METRICS: &'static [Metric<Outcome>] = &[
        Metric::new("delivered", "share of frames", |outcome| share(outcome, outcome.delays_s.len() as u32)),
        Metric::new("delay_mean_s", "s", Outcome::mean_delay_s),
        Metric::new("delay_95_s", "s", |outcome| outcome.delay_s(0.95)),
        Metric::new("delay_max_s", "s", |outcome| outcome.delay_s(1.0)),
        Metric::new("collided", "share of frames", |outcome| share(outcome, outcome.collided)),
        Metric::new("deaf", "share of frames", |outcome| share(outcome, outcome.deaf)),
        Metric::new("damaged", "share of frames", |outcome| share(outcome, outcome.damaged)),
        Metric::new("keyed", "share of time", |outcome| {
            (outcome.lasted_s > 0.0).then(|| outcome.keyed_s / outcome.lasted_s)
        }),
    ];

    fn play(&self, run: Run) -> Outcome {
        world::play(self, run.seed)
    }
}

fn share(outcome: &Outcome, part: u32) -> Option<f64> {
    (outcome.frames > 0).then(|| f64::from(part) / f64::from(outcome.frames))
}

/// Name of all cases.
const NAME: &str = "single frames";

/// Runs a scenario with its sweeps.
///
/// # Errors
/// Fails if the file is invalid, or the options request something that single frames do not support.
pub fn run(
    mut table: toml::Table,
    place: &str,
    options: &Options,
    progress: &Progress,
) -> Result<Finding, Error> {
    if options.traces {
        return Err(Error::new("traces are not available for single frames").hint("remove `--trace`"));
    }
    let whole = RadioScenario::from_table(table.clone(), place)?;
    table.remove("sweep");
    let mut cases: Vec<Case<RadioScenario>> = Vec::new();
    for (params, table) in grid(table, &merged(&whole.sweep, &options.sweeps)?)? {
        let plan = RadioScenario::from_table(table, "with the sweeps applied")?;
        let (seed, runs) = (options.seed.unwrap_or(plan.seed), options.runs.unwrap_or(plan.runs));
        cases.push(Case::new(NAME, params, plan, seed, runs));
    }
    let played = Bench { threads: options.threads, shard: options.shard, ..Bench::new(progress) }.play(cases);
    let stem = options.scenario.file_stem().map_or("radio".into(), |stem| stem.to_string_lossy());
    let seed = options.seed.unwrap_or(whole.seed);
    let mut experiment = Experiment { experiment: stem.into(), seed, ..Experiment::default() };
    let mut table = Table::of(
        "Single frames, 95 % confidence intervals",
        "point|# arrived|# delay (s)|# 95 % (s)|# longest (s)|# collided|# deaf|# damaged|# keyed",
    );
    for point in played.iter().filter(|point| !point.runs.is_empty()) {
        experiment.records.extend(point.records());
        experiment.runs.extend(point.rows());
        let name = Cell::text(label::point(&point.case.params));
        table.row([name].into_iter().chain(point.cells()));
    }
    let runs = match progress.left_out() {
        0 => options.runs.unwrap_or(whole.runs),
        _ => bench::rounds(&played),
    };
    let early_end = progress.early_end().map_or_else(String::new, |words| format!(" {words}"));
    let count = format!("{} stations, {runs} runs.{early_end}", whole.nodes.len());
    let command = format!("longwire run {} --runs {runs} --seed {seed}", options.scenario.display());
    Ok(finding(&whole, &count, command, experiment, table))
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
    let words = "Arrived, collided, deaf, damaged: shares of frames at their destination; deaf means that the \
                 destination was transmitting. Delay, 95 %, longest: time from when the frame is ready until it \
                 arrives. Keyed: total transmitter time divided by the duration of the run.";
    let text = toml::to_string(plan).expect("a plan is TOML");
    let report = Report {
        answer: Vec::new(),
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
