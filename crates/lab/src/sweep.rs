//! `run`: runs a scenario with its sweeps.

use crate::airborne::{self, AirborneTrial};
use crate::bench::{self, Bench, Case, Played, Shard, Trial};
use crate::chain::{self, Chain};
use crate::contacts::{self, RouterTrial};
use crate::error::Error;
use crate::finding::{self, Finding, Shown};
use crate::progress::Progress;
use crate::radio::{self, RadioScenario};
use crate::record::Experiment;
use crate::report::{PageBlock, Report, Section};
use crate::scenario::{GridPoint, Load, Options, Scenario};
use crate::toml_text;
use std::path::Path;
use toml::Value;

/// Runs a scenario file.
///
/// # Errors
/// Fails if the file, or something that it names, is invalid, or traces are requested of a scenario without them.
pub fn run(options: &Options, progress: &Progress) -> Result<Finding, Error> {
    let place = options.scenario.display().to_string();
    let text = Scenario::text(&options.scenario)?;
    let table = toml_text::parse(&text, &place)?;
    let name = options.scenario.file_stem().map_or("run".into(), |stem| stem.to_string_lossy());
    let with_options = |mut scenario: Scenario| {
        scenario.runs = options.runs.unwrap_or(scenario.runs);
        scenario.seed = options.seed.unwrap_or(scenario.seed);
        if scenario.title.is_empty() {
            scenario.title = name.to_string();
        }
        scenario
    };
    let scenario = with_options(Scenario::from_table(table.clone(), &place)?);
    if options.traces && scenario.load != Load::Files {
        return Err(Error::new("traces are available for files only").hint("remove `--trace`"));
    }
    let points = Scenario::points(table, &options.sweeps, &place)?.into_iter();
    let points = points.map(|point| GridPoint { scenario: with_options(point.scenario), ..point });
    let sweep = Sweep { options, progress, name: &name, text, scenario: &scenario };
    Ok(match scenario.load {
        Load::Files => {
            let base = options.scenario.parent().unwrap_or(Path::new("."));
            let (mut finding, played) = sweep.play(Chain::cases(points, base)?, chain::shown);
            let traced = played.iter().filter(|_| options.traces);
            finding.traces =
                traced.map(|played| played.case.trial.trace(&name_of_point(&played.case))).collect();
            finding
        }
        Load::Messages => sweep.play(points.flat_map(RouterTrial::cases).collect(), contacts::shown).0,
        Load::Airborne => sweep.play(points.flat_map(AirborneTrial::cases).collect(), airborne::shown).0,
        Load::Frames => {
            let cases = points.map(RadioScenario::case).collect::<Result<_, _>>()?;
            sweep.play(cases, radio::shown).0
        }
    })
}

/// Name of the traces of a case: its point, or its name if the scenario has no sweeps.
fn name_of_point(case: &Case<Chain>) -> String {
    match finding::point_name(&case.params) {
        name if name.is_empty() => case.name.clone(),
        name => name,
    }
}

/// Scenario with the options of its run.
struct Sweep<'a> {
    options: &'a Options,
    progress: &'a Progress,
    /// Name of the file without its ending.
    name: &'a str,
    /// Text of the file.
    text: String,
    scenario: &'a Scenario,
}

impl Sweep<'_> {
    /// Plays all cases, and returns the finding with those that this share has.
    fn play<T: Trial>(
        self,
        cases: Vec<Case<T>>,
        shown: impl FnOnce(&Scenario, &[Played<T>], u32) -> Shown,
    ) -> (Finding, Vec<Played<T>>) {
        let Options { threads, shard, .. } = *self.options;
        let mut played = Bench { threads, shard, ..Bench::new(self.progress) }.play(cases);
        played.retain(|played| !played.runs.is_empty());
        let early_end = self.progress.early_end();
        // After an early stop the number of runs made.
        let runs = if early_end.is_some() { bench::rounds(&played) } else { self.scenario.runs };
        let shown = shown(self.scenario, &played, runs);
        let lead = [shown.lead].into_iter().chain(early_end).collect::<Vec<_>>().join(" ");
        let seed = self.scenario.seed;
        let experiment = Experiment {
            experiment: self.name.to_owned(),
            seed,
            records: played.iter().flat_map(Played::records).collect(),
            runs: played.iter().flat_map(Played::rows).collect(),
            ..Experiment::default()
        };
        let mut facts = vec![("seed".to_owned(), seed.to_string())];
        facts.extend(shown.facts);
        let command = self.command(runs);
        let text = PageBlock::Code { caption: "the scenario".into(), text: self.text };
        let report = Report {
            title: self.scenario.title.clone(),
            lead: lead.clone(),
            answer: shown.answer,
            command,
            facts,
            sections: shown.sections.into_iter().chain([Section::new("The scenario").with(text)]).collect(),
            assumptions: Vec::new(),
        };
        let summary = [PageBlock::Text(lead)].into_iter().chain(shown.summary).collect();
        (Finding { experiment, report, summary, traces: Vec::new() }, played)
    }

    /// Command that reproduces the page.
    fn command(&self, runs: u32) -> String {
        let word = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let list = |values: &[Value]| values.iter().map(word).collect::<Vec<_>>().join(",");
        let sweeps = self.options.sweeps.iter();
        let sweeps: String = sweeps.map(|(key, values)| format!(" --sweep {key}={}", list(values))).collect();
        let share = match self.options.shard {
            Shard::WHOLE => String::new(),
            Shard { index, count } => format!(" --shard {index}/{count}"),
        };
        let (file, seed) = (self.options.scenario.display(), self.scenario.seed);
        format!("longwire run {file}{sweeps} --runs {runs} --seed {seed}{share}")
    }
}
