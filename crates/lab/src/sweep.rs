//! `run`: runs a scenario with its sweeps, whole or in parts.

use crate::airborne::{self, AirborneTrial};
use crate::bench::{self, Bench, Case, Played, Shard, Trial};
use crate::chain::{self, Chain};
use crate::contacts::{self, RouterTrial};
use crate::error::Error;
use crate::finding::{self, Finding, Shown, Trace};
use crate::format::shell_word;
use crate::progress::Progress;
use crate::radio::{self, RadioScenario};
use crate::record::{Experiment, distinct};
use crate::report::{PageBlock, Report, Section};
use crate::scenario::{GridPoint, Load, Options, Scenario};
use crate::share::{Assignment, Outcomes, PackedOutcome, Share};
use crate::toml_text;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use toml::{Table, Value};

/// Runs a scenario file.
///
/// # Errors
/// Fails if the file, or something that it names, is invalid, or traces are requested of a scenario without them.
pub fn run(options: &Options, progress: &Progress) -> Result<Finding, Error> {
    Sweep::new(Scenario::text(&options.scenario)?, options.clone())?.run(progress)
}

/// Scenario with the options of its run.
pub struct Sweep {
    options: Options,
    /// Name of the file without its ending.
    name: String,
    /// Text of the file.
    text: String,
    table: Table,
    scenario: Scenario,
}

impl Sweep {
    /// Reads the text of a scenario. `options.scenario` is not read: it has the name of the scenario, and what the text names
    /// is relative to its folder.
    ///
    /// # Errors
    /// Fails if the text is invalid, or traces are requested of a scenario without them.
    pub fn new(text: String, options: Options) -> Result<Sweep, Error> {
        let place = options.scenario.display().to_string();
        let table = toml_text::parse(&text, &place)?;
        let name = options.scenario.file_stem().map_or("run".into(), |stem| stem.to_string_lossy());
        let name = name.into_owned();
        let scenario = Scenario::from_table(table.clone(), &place)?;
        if options.traces && scenario.load != Load::Files {
            return Err(Error::new("traces are available for files only").hint("remove `--trace`"));
        }
        let mut sweep = Sweep { options, name, text, table, scenario };
        sweep.scenario = sweep.with_options(sweep.scenario.clone());
        Ok(sweep)
    }

    /// Plays the share of the runs that the options name. The finding of a share that is not the whole has its outcomes, too.
    ///
    /// # Errors
    /// Fails if something that the scenario names is invalid.
    pub fn run(&self, progress: &Progress) -> Result<Finding, Error> {
        self.visit(Running { sweep: self, progress })?
    }

    /// Plays the share of the runs that the options name, and returns only their outcomes.
    ///
    /// # Errors
    /// Fails if something that the scenario names is invalid.
    pub fn share(&self, progress: &Progress) -> Result<Share, Error> {
        self.visit(Sharing { sweep: self, progress })
    }

    /// Makes the finding from outcomes that are already there.
    ///
    /// # Errors
    /// Fails if something that the scenario names is invalid, or an outcome is missing; `shares` is the number of shares that they
    /// were made in, for the words about those.
    pub fn merged(&self, outcomes: Outcomes, shares: usize) -> Result<Finding, Error> {
        self.visit(Merging { sweep: self, outcomes, shares })?
    }

    /// Divides the runs into tasks: each has runs of one point, at most `runs_max` or else all of them, and is this scenario with
    /// sweeps that have only the values of the point. Returns them in the order of the points, with the place of the first case
    /// of the point.
    ///
    /// # Errors
    /// Fails if the grid is invalid.
    pub fn tasks(&self, runs_max: Option<u32>) -> Result<Vec<(usize, Assignment)>, Error> {
        let mut first_case = 0;
        let mut tasks = Vec::new();
        for GridPoint { values, scenario, .. } in self.points()? {
            let cases = match scenario.load {
                Load::Files | Load::Frames => 1,
                Load::Messages => scenario.routers.len(),
                Load::Airborne => scenario.airborne.routers.len(),
            };
            let runs = cases * scenario.runs as usize;
            let count = runs.div_ceil(runs_max.map_or(runs, |most| most as usize).max(1)).max(1);
            let sweeps = values.into_iter().map(|(key, value)| (key, vec![value])).collect();
            let options = Options { sweeps, ..self.options.clone() };
            let whole = Assignment::new(self.text.clone(), &options);
            let shards = (1..=count).map(|index| Shard { index, count });
            tasks.extend(shards.map(|shard| (first_case, whole.with(shard))));
            first_case += cases;
        }
        Ok(tasks)
    }

    /// Returns the scenario with what the options say about it.
    fn with_options(&self, mut scenario: Scenario) -> Scenario {
        scenario.runs = self.options.runs.unwrap_or(scenario.runs);
        scenario.seed = self.options.seed.unwrap_or(scenario.seed);
        if scenario.title.is_empty() {
            scenario.title = self.name.clone();
        }
        scenario
    }

    fn points(&self) -> Result<impl Iterator<Item = GridPoint>, Error> {
        let place = self.options.scenario.display().to_string();
        let points = Scenario::points(self.table.clone(), &self.options.sweeps, &place)?.into_iter();
        Ok(points.map(|point| GridPoint { scenario: self.with_options(point.scenario), ..point }))
    }

    /// Calls a visitor with the cases of the scenario.
    fn visit<V: Visitor>(&self, visitor: V) -> Result<V::Output, Error> {
        let points = self.points()?;
        Ok(match self.scenario.load {
            Load::Files => {
                let base = self.options.scenario.parent().unwrap_or(Path::new("."));
                let cases = Chain::cases(points, base)?;
                visitor.visit(Cases { all: cases, shown: chain::shown, trace: Some(traced) })
            }
            Load::Messages => {
                let cases = points.flat_map(RouterTrial::cases).collect();
                visitor.visit(Cases { all: cases, shown: contacts::shown, trace: None })
            }
            Load::Airborne => {
                let cases = points.flat_map(AirborneTrial::cases).collect();
                visitor.visit(Cases { all: cases, shown: airborne::shown, trace: None })
            }
            Load::Frames => {
                let cases = points.map(RadioScenario::case).collect::<Result<_, _>>()?;
                visitor.visit(Cases { all: cases, shown: radio::shown, trace: None })
            }
        })
    }

    /// Finding of these runs.
    fn finding<T: Trial>(
        &self,
        played: &[Played<T>],
        shown: fn(&Scenario, &[Played<T>], u32) -> Shown,
        early_end: Option<String>,
    ) -> Finding {
        // After an early stop the number of runs made.
        let runs = if early_end.is_some() { bench::rounds(played) } else { self.scenario.runs };
        let shown = shown(&self.scenario, played, runs);
        let lead = [shown.lead].into_iter().chain(early_end).collect::<Vec<_>>().join(" ");
        let seed = self.scenario.seed;
        let experiment = Experiment {
            experiment: self.name.clone(),
            seed,
            records: played.iter().flat_map(Played::records).collect(),
            runs: played.iter().flat_map(Played::rows).collect(),
            ..Experiment::default()
        };
        let mut facts = vec![("seed".to_owned(), seed.to_string())];
        facts.extend(shown.facts);
        let text = PageBlock::Code { caption: "the scenario".into(), text: self.text.clone() };
        let report = Report {
            title: self.scenario.title.clone(),
            lead: lead.clone(),
            answer: shown.answer,
            command: self.command(runs),
            facts,
            sections: shown.sections.into_iter().chain([Section::new("The scenario").with(text)]).collect(),
            assumptions: Vec::new(),
        };
        let summary = [PageBlock::Text(lead)].into_iter().chain(shown.summary).collect();
        Finding { experiment, report, summary, ..Finding::default() }
    }

    /// Command that reproduces the page.
    fn command(&self, runs: u32) -> String {
        let word = |value: &Value| match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let list = |values: &[Value]| values.iter().map(word).collect::<Vec<_>>().join(",");
        let sweeps = self.options.sweeps.iter();
        let sweeps: String = sweeps
            .map(|(key, values)| format!(" --sweep {}", shell_word(&format!("{key}={}", list(values)))))
            .collect();
        let share = match self.options.shard {
            Shard::WHOLE => String::new(),
            shard => format!(" --shard {shard}"),
        };
        let file = shell_word(&self.options.scenario.display().to_string());
        let seed = self.scenario.seed;
        format!("longwire run {file}{sweeps} --runs {runs} --seed {seed}{share}")
    }
}

/// Cases of a scenario, and what is shown of them.
struct Cases<T: Trial> {
    all: Vec<Case<T>>,
    shown: fn(&Scenario, &[Played<T>], u32) -> Shown,
    trace: Option<fn(&Case<T>) -> Trace>,
}

/// Something that is done with the cases of a scenario, whatever is sent in it.
trait Visitor {
    type Output;

    fn visit<T: Trial<Outcome: Serialize + DeserializeOwned>>(self, cases: Cases<T>) -> Self::Output;
}

/// Plays the runs and shows them.
struct Running<'a> {
    sweep: &'a Sweep,
    progress: &'a Progress,
}

impl Visitor for Running<'_> {
    type Output = Result<Finding, Error>;

    fn visit<T: Trial<Outcome: Serialize + DeserializeOwned>>(self, cases: Cases<T>) -> Self::Output {
        let Running { sweep, progress } = self;
        let mut played = bench(&sweep.options, progress).play(cases.all);
        let share = (sweep.options.shard != Shard::WHOLE).then(|| share(sweep, &played));
        played.retain(|played| !played.runs.is_empty());
        let trace = cases.trace.filter(|_| sweep.options.traces);
        let traces = trace.iter().flat_map(|trace| played.iter().map(|played| trace(&played.case)));
        let traces = traces.collect();
        Ok(Finding { traces, share, ..sweep.finding(&played, cases.shown, progress.early_end()) })
    }
}

/// Plays the runs and packs their outcomes.
struct Sharing<'a> {
    sweep: &'a Sweep,
    progress: &'a Progress,
}

impl Visitor for Sharing<'_> {
    type Output = Share;

    fn visit<T: Trial<Outcome: Serialize + DeserializeOwned>>(self, cases: Cases<T>) -> Share {
        share(self.sweep, &bench(&self.sweep.options, self.progress).play(cases.all))
    }
}

/// Shows runs whose outcomes are there.
struct Merging<'a> {
    sweep: &'a Sweep,
    outcomes: Outcomes,
    shares: usize,
}

impl Visitor for Merging<'_> {
    type Output = Result<Finding, Error>;

    fn visit<T: Trial<Outcome: Serialize + DeserializeOwned>>(mut self, cases: Cases<T>) -> Self::Output {
        let jobs = Bench::new(&Progress::new()).jobs(&cases.all);
        let mut played: Vec<Played<T>> =
            cases.all.into_iter().map(|case| Played { case, runs: Vec::new() }).collect();
        let (mut missing, count) = (Vec::new(), jobs.len());
        for (job, (at, round)) in jobs.into_iter().enumerate() {
            match self.outcomes.take(at, &played[at].case, round) {
                Some(outcome) => played[at].runs.push(outcome?),
                None => missing.push(Shard { index: job % self.shares + 1, count: self.shares }.to_string()),
            }
        }
        if !missing.is_empty() {
            let few = missing.len();
            missing.sort_unstable();
            let shares = distinct(missing).join(", ");
            return Err(Error::new(format!("{few} of {count} runs are missing, of these shares: {shares}"))
                .hint("a share that was stopped early has to be computed again"));
        }
        Ok(self.sweep.finding(&played, cases.shown, None))
    }
}

fn bench<'a>(options: &Options, progress: &'a Progress) -> Bench<'a> {
    Bench { threads: options.threads, shard: options.shard, ..Bench::new(progress) }
}

fn share<T: Trial<Outcome: Serialize>>(sweep: &Sweep, played: &[Played<T>]) -> Share {
    let packed = |(at, played): (usize, &Played<T>)| {
        let pack = move |(run, outcome): &(_, _)| PackedOutcome::new::<T>(at, *run, outcome);
        played.runs.iter().map(pack).collect::<Vec<_>>()
    };
    let outcomes = played.iter().enumerate().flat_map(packed).collect();
    Share { assignment: Assignment::new(sweep.text.clone(), &sweep.options), outcomes }
}

fn traced(case: &Case<Chain>) -> Trace {
    case.trial.trace(&name_of_point(case))
}

/// Name of the traces of a case: its point, or its name if the scenario has no sweeps.
fn name_of_point(case: &Case<Chain>) -> String {
    match finding::point_name(&case.params) {
        name if name.is_empty() => case.name.clone(),
        name => name,
    }
}
