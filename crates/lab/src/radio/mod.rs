//! Single frames on a shared radio channel: their delays and the share that arrives.
//!
//! Frames are AX.25 UI frames, without acknowledgements and retransmissions. Their times are drawn from the run's seed
//! only.

mod world;

pub use crate::scenario::FrameLoad;
pub use world::Outcome;

use crate::bench::{Case, Metric, Played, Run, Trial};
use crate::error::Error;
use crate::finding::Shown;
use crate::label;
use crate::report::{Cell, PageBlock, Section, Table};
use crate::scenario::{GridPoint, Scenario};
use crate::toml_text;
use longwire_sim::{RadioConfig, TncConfig};
use serde::Deserialize;
use toml::Value;

/// Maximum stations of a channel.
const NODES_MAX: usize = 100;
/// Maximum expected frames of a run.
const FRAMES_MAX: f64 = 100_000.0;

/// Stations that send single frames on a channel.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct RadioScenario {
    /// Nodes, 2 to 100; the stations of the channel have their numbers.
    pub nodes: Vec<String>,
    /// Frames sent.
    pub frames: FrameLoad,
    /// Channel.
    pub radio: RadioConfig,
    /// Controllers of all stations; `None` for ideal ones.
    pub tnc: Option<TncConfig>,
}

impl RadioScenario {
    /// Creates the case of a point.
    ///
    /// # Errors
    /// Fails if the channel or its load is invalid.
    pub fn case(point: GridPoint) -> Result<Case<RadioScenario>, Error> {
        let GridPoint { params, scenario, .. } = point;
        let (seed, runs) = (scenario.seed, scenario.runs);
        let trial = RadioScenario::of(scenario)?;
        Ok(Case::new("single frames", params, trial, seed, runs))
    }

    /// Reads the channel of a scenario.
    ///
    /// # Errors
    /// Fails if there is not one channel, or it or its load is invalid.
    pub fn of(scenario: Scenario) -> Result<RadioScenario, Error> {
        let Scenario { nodes, frames, tnc, mut channel, .. } = scenario;
        let radio = match (channel.pop(), channel.is_empty()) {
            (Some(channel), true) => radio(channel.properties, &nodes)?,
            _ => {
                return Err(Error::new("frames are sent on one channel between all nodes")
                    .hint("give one `[[channel]]`"));
            }
        };
        let plan = RadioScenario { nodes, frames, radio, tnc };
        plan.check().map_err(Error::new)?;
        Ok(plan)
    }

    fn check(&self) -> Result<(), String> {
        if self.nodes.len() > NODES_MAX {
            return Err(format!("`nodes` must have from 2 to {NODES_MAX} names"));
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
        if per_minute.is_nan() || per_minute <= 0.0 || !(0.0..=FRAMES_MAX).contains(&all) {
            return Err(format!("`frames` must make 1 to {FRAMES_MAX} frames per run"));
        }
        if let Some(tnc) = &self.tnc {
            tnc.validate().map_err(|why| format!("`tnc`: {why}"))?;
        }
        self.radio.validate(self.nodes.len()).map_err(|why| format!("channel: {why}"))
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

/// Reads the keys of a radio channel, whose paths may have names of nodes in place of numbers.
fn radio(mut keys: toml::Table, nodes: &[String]) -> Result<RadioConfig, Error> {
    for path in keys.get_mut("paths").and_then(Value::as_array_mut).into_iter().flatten() {
        for end in ["from", "to"] {
            let Some(Value::String(name)) = path.get(end) else { continue };
            let at = nodes.iter().position(|node| node == name);
            let at = at.ok_or_else(|| Error::new(format!("`{name}` of `paths` is not in `nodes`")))?;
            path[end] = Value::Integer(at as i64);
        }
    }
    toml_text::from_table(keys, "[[channel]]")
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

/// Shows the results at all points; after an early stop `runs` is the number of runs made.
pub fn shown(scenario: &Scenario, played: &[Played<RadioScenario>], runs: u32) -> Shown {
    let lead = format!("{}: {} stations, {runs} runs.", scenario.title, scenario.nodes.len());
    let mut table = Table::of(
        "Single frames, 95 % confidence intervals",
        "point|# arrived|# delay (s)|# 95 % (s)|# longest (s)|# collided|# deaf|# damaged|# keyed",
    );
    for point in played {
        let name = Cell::text(label::point(&point.case.params));
        table.row([name].into_iter().chain(point.cells()));
    }
    let words = "Arrived, collided, deaf, damaged: shares of frames at their destination; deaf means that the \
                 destination was transmitting. Delay, 95 %, longest: time from when the frame is ready until it \
                 arrives. Keyed: total transmitter time divided by the duration of the run.";
    let summary = vec![PageBlock::Table(table), words.into()];
    let sections = vec![Section::new("Results").with_all(summary.clone())];
    Shown { lead, summary, sections, ..Shown::default() }
}
