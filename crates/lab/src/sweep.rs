//! `run`: runs a scenario with its sweeps.

use crate::bench::{self, Bench, Case, Played, Shard, Trial};
use crate::chain::{self, Chain};
use crate::error::Error;
use crate::finding::{self, Finding, Trace};
use crate::label::{self, Label};
use crate::meetings;
use crate::progress::Progress;
use crate::radio;
use crate::record::{Experiment, Params, Record, Value};
use crate::report::{Axis, Cell, Column, PageBlock, Plot, PlotSeries, Point, Report, Section, Table, Tone};
use crate::run::{Outcome, Setup};
use crate::scenario::{Options, Scenario};
use crate::stats::Summary;
use crate::toml_text;
use std::path::Path;
use toml::Value as TomlValue;

/// Runs a scenario file.
///
/// # Errors
/// Fails if the file, or something that it names, is invalid.
pub fn run(options: &Options, progress: &Progress) -> Result<Finding, Error> {
    let place = options.scenario.display().to_string();
    let table = toml_text::parse(&Scenario::text(&options.scenario)?, &place)?;
    // Tables of this name identify a scenario of meetings or of a shared channel: a chain has neither.
    if table.contains_key("meeting") {
        return meetings::run(meetings::MeetingScenario::from_table(table, &place)?, options, progress);
    }
    if table.contains_key("radio") {
        return radio::run(table, &place, options, progress);
    }
    let mut scenario = Scenario::from_table(table, &place)?;
    scenario.runs = options.runs.unwrap_or(scenario.runs);
    scenario.seed = options.seed.unwrap_or(scenario.seed);
    let base = options.scenario.parent().unwrap_or(Path::new("."));
    let mut cases: Vec<Case<Chain>> = Vec::new();
    for point in scenario.points(&options.sweeps)? {
        let name = point.scenario.protocol.clone();
        let runs = point.scenario.runs;
        // Points with the same workload share its files.
        let before = cases.last().map(|case| &case.trial.setup).filter(|before| {
            let (ours, theirs) = (&point.scenario, &before.scenario);
            (&ours.workload, ours.seed) == (&theirs.workload, theirs.seed)
        });
        let setup = match before.map(|before| before.files.clone()) {
            Some(files) => Setup::with_files(point.scenario, base, files)?,
            None => Setup::new(point.scenario, base)?,
        };
        cases.push(Chain::case(name, point.params, setup, runs));
    }
    let played = Bench { threads: options.threads, shard: options.shard, ..Bench::new(progress) }.play(cases);
    let traces = if options.traces {
        played.iter().map(|played| played.case.trial.trace(&name_of_point(&played.case))).collect()
    } else {
        Vec::new()
    };
    let early_end = progress.early_end();
    Ok(Sweep { options, scenario: &scenario, played: &played, early_end }.finding(traces))
}

/// Name of the traces of a case: its point, or its name if the scenario has no sweeps.
fn name_of_point(case: &Case<Chain>) -> String {
    match finding::point_name(&case.params) {
        name if name.is_empty() => case.name.clone(),
        name => name,
    }
}

/// Result of a scenario, to be reported.
struct Sweep<'a> {
    options: &'a Options,
    scenario: &'a Scenario,
    played: &'a [Played<Chain>],
    /// Note about an early stop.
    early_end: Option<String>,
}

impl Sweep<'_> {
    /// Points of which this share has runs.
    fn points(&self) -> impl Iterator<Item = &Played<Chain>> {
        self.played.iter().filter(|played| !played.runs.is_empty())
    }

    fn finding(&self, traces: Vec<Trace>) -> Finding {
        let mut experiment = Experiment {
            experiment: name_of(&self.options.scenario),
            seed: self.scenario.seed,
            ..Experiment::default()
        };
        for played in self.points() {
            experiment.records.extend(played.records());
            experiment.runs.extend(played.rows());
        }
        let table = self.table();
        let report = self.report(&experiment, table.clone());
        let mut summary = vec![PageBlock::Text(self.lead()), PageBlock::Table(table)];
        summary.extend(self.beyond_limit().into_iter().map(PageBlock::Text));
        Finding { experiment, report, summary, traces }
    }

    fn lead(&self) -> String {
        let runs: usize = self.points().map(|played| played.runs.len()).sum();
        let arrived = self.points().flat_map(Played::outcomes).filter(|outcome| outcome.delivered).count();
        let title = if self.scenario.title.is_empty() { "Scenario" } else { &self.scenario.title };
        format!(
            "{title}: {} {}, {runs} {}, {arrived} complete.{}",
            self.points().count(),
            if self.points().count() == 1 { "point" } else { "points" },
            if runs == 1 { "run" } else { "runs" },
            self.early_end.as_ref().map_or_else(String::new, |words| format!(" {words}"))
        )
    }

    /// Runs per point: the number requested, or after an early stop the number made.
    fn runs(&self) -> u32 {
        if self.early_end.is_some() { bench::rounds(self.played) } else { self.scenario.runs }
    }

    /// Describes the points whose mean is below the ideal time.
    fn beyond_limit(&self) -> Vec<String> {
        let of_point = |played: &Played<Chain>| {
            let words = chain::beyond_limit(&played.all())?;
            let point = label::point(&played.case.params);
            let at = if point.is_empty() { String::new() } else { format!(" at {point}") };
            Some(format!("`{}`{at}: {words}.", played.case.name))
        };
        self.points().filter_map(of_point).collect()
    }

    fn table(&self) -> Table {
        let names: Vec<String> = match self.played.first() {
            Some(played) => played.case.params.iter().map(|(name, _)| name.to_owned()).collect(),
            None => Vec::new(),
        };
        let missed = self.points().any(|played| !chain::why_missed(&played.all()).is_empty());
        let columns = names
            .iter()
            .map(|name| Label::of(name))
            .map(|label| Column::number(label.words, label.unit))
            .chain([
                Column::text("protocol/settings"),
                Column::number("runs", ""),
                Column::number("time", "s"),
                Column::number("goodput", "byte/s"),
                Column::number("x ideal", ""),
                Column::text("arrived"),
            ]);
        let columns = columns.chain(missed.then(|| Column::text("problem")));
        let mut table = Table::new("Transfer time and goodput with 95 % confidence intervals", columns);
        for played in self.points() {
            let (case, outcomes) = (&played.case, played.all());
            let value = |value: &Value| match value.as_f64() {
                Some(_) => Cell { value: value.as_f64(), ..Cell::text(value.to_string()) },
                None => Cell::text(value.to_string()),
            };
            let mut cells: Vec<Cell> = case.params.iter().map(|(_, v)| value(v)).collect();
            cells.extend([Cell::text(&case.name), Cell::number(outcomes.len() as f64)]);
            cells.extend(figures(&outcomes));
            cells.extend(missed.then(|| Cell::text(chain::why_missed(&outcomes))));
            table.row(cells);
        }
        table
    }

    fn report(&self, experiment: &Experiment, table: Table) -> Report {
        let results = Section::new("Results").with(table);
        let mut results = self.beyond_limit().into_iter().fold(results, Section::with);
        if let Some(plot) = self.plot(&experiment.records) {
            results = results.with(plot);
        }
        let mut ledgers = Section::new("Use of time")
            .with("Mean use of time at each point, for the link of each hop towards the destination or for its radio \
                   channel. The entries of every run add up to its duration.");
        for hop in 0..self.scenario.hops() {
            let title =
                format!("Hop {}: {} to {}", hop + 1, self.scenario.nodes[hop], self.scenario.nodes[hop + 1]);
            let mut chart = chain::ledger_chart(&title, "");
            for played in self.points() {
                let point = label::point(&played.case.params);
                let name = if point.is_empty() { &played.case.name } else { &point };
                chart.bars.push(chain::ledger_bar(name, &played.all(), hop, 0, None));
            }
            ledgers = ledgers.with(chart);
        }
        let scenario = PageBlock::Code { caption: "the scenario".into(), text: self.scenario.to_text() };
        Report {
            answer: Vec::new(),
            title: if self.scenario.title.is_empty() {
                experiment.experiment.clone()
            } else {
                self.scenario.title.clone()
            },
            lead: self.lead(),
            command: self.command(),
            facts: vec![("seed".into(), self.scenario.seed.to_string())],
            sections: vec![results, ledgers, Section::new("The scenario").with(scenario)],
            assumptions: Vec::new(),
        }
    }

    fn command(&self) -> String {
        let list = |values: &[TomlValue]| {
            let word = |value: &TomlValue| match value {
                TomlValue::String(text) => text.clone(),
                other => other.to_string(),
            };
            values.iter().map(word).collect::<Vec<_>>().join(",")
        };
        let sweeps =
            self.options.sweeps.iter().map(|(key, values)| format!(" --sweep {key}={}", list(values)));
        let shard = self.options.shard;
        let share = if shard == Shard::WHOLE {
            String::new()
        } else {
            format!(" --shard {}/{}", shard.index, shard.count)
        };
        format!(
            "longwire run {}{} --runs {} --seed {}{share}",
            self.options.scenario.display(),
            sweeps.collect::<String>(),
            self.runs(),
            self.scenario.seed,
        )
    }

    /// Plot of the transfer time over the numeric parameter with the most values, with one series for each point of the
    /// others.
    fn plot(&self, records: &[Record]) -> Option<Plot> {
        let times: Vec<&Record> = records.iter().filter(|record| record.metric == "transfer_s").collect();
        let first = times.first()?;
        let values = |name: &str| {
            let mut values: Vec<f64> =
                times.iter().filter_map(|record| record.params.get(name)?.as_f64()).collect();
            values.sort_by(f64::total_cmp);
            values.dedup();
            values.len()
        };
        let numeric = first.params.iter().filter(|(_, value)| value.as_f64().is_some());
        let across = numeric.map(|(name, _)| name.to_owned()).max_by_key(|name| values(name))?;
        if values(&across) < 2 {
            return None;
        }
        let label = Label::of(&across);
        let mut plot = Plot::new(
            "Transfer time",
            Axis::new(label.words, label.unit),
            Axis::new("transfer time", "s").from_zero(),
        );
        for record in &times {
            let others = record.params.iter().filter(|(name, _)| *name != across);
            let others = others.fold(Params::new(), |params, (name, value)| params.with(name, value.clone()));
            let x = record.params.get(&across).and_then(Value::as_f64).unwrap_or(0.0);
            match plot.series.iter_mut().find(|series| series.name == record.case && series.at == others) {
                Some(series) => series.points.push(Point::of(x, record)),
                None => {
                    let series = PlotSeries::new(&record.case, vec![Point::of(x, record)]);
                    plot = plot.with(series.at(others));
                }
            }
        }
        for series in &mut plot.series {
            series.points.sort_by(|a, b| a.x.total_cmp(&b.x));
        }
        Some(plot.captioned("Means of completed runs with 95 % confidence intervals."))
    }
}

/// Time, goodput, ratio to the ideal time and share of completed runs.
fn figures(outcomes: &[&Outcome]) -> [Cell; 4] {
    let arrived: Vec<&Outcome> = outcomes.iter().copied().filter(|outcome| outcome.delivered).collect();
    let complete = arrived.len() == outcomes.len();
    let share = Cell::text(format!("{} of {}", arrived.len(), outcomes.len()));
    let share = share.toned(if complete { Tone::default() } else { Tone::Bad });
    let summary = |metric: &str| match &Chain::metric(metric).samples(&arrived)[..] {
        [] => Cell::empty(),
        samples => Cell::summary(&Summary::of(samples)),
    };
    let ratio =
        Chain::metric("transfer_s").record("", &Params::new(), &arrived).and_then(|record| record.ratio);
    let ratio = ratio.map_or_else(Cell::empty, |ratio| Cell::precise(ratio, 2));
    [summary("transfer_s"), summary("goodput_byte_per_s"), ratio, share]
}

fn name_of(path: &Path) -> String {
    path.file_stem().map_or_else(|| "run".into(), |stem| stem.to_string_lossy().into_owned())
}
