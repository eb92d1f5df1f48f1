//! Page of a scenario with files: times, goodput and use of time at each point.

use super::{Chain, Played, beyond_limit, ledger_bar, ledger_chart, map, why_missed};
use crate::bench::Trial;
use crate::finding::Shown;
use crate::label::{self, Label};
use crate::record::{Params, Record, Value};
use crate::report::{
    Axis, Cell, Column, PageBlock, Plot, PlotSeries, Point, Section, Table, Tone, WinnerMap,
};
use crate::run::Outcome;
use crate::scenario::Scenario;
use crate::stats::Summary;

/// Parameter with the protocol, which is shown as such already.
const PROTOCOL: &str = "protocol";

/// Shows the results at all points.
pub fn shown(scenario: &Scenario, played: &[Played], _: u32) -> Shown {
    let runs: usize = played.iter().map(|played| played.runs.len()).sum();
    let arrived = played.iter().flat_map(Played::outcomes).filter(|outcome| outcome.delivered).count();
    let lead = format!(
        "{}: {} {}, {runs} {}, {arrived} complete.",
        scenario.title,
        played.len(),
        if played.len() == 1 { "point" } else { "points" },
        if runs == 1 { "run" } else { "runs" },
    );
    let table = PageBlock::Table(table(played));
    let beyond_limit = played.iter().filter_map(beyond_limit_at).map(PageBlock::Text);
    let results: Vec<PageBlock> = [table].into_iter().chain(beyond_limit).collect();
    let (map, crossings) = map_of(played);
    let key = map.iter().map(|map| PageBlock::Text(map.key()));
    let summary = map.clone().into_iter().map(PageBlock::from).chain(key).chain(crossings.clone());
    let summary = summary.chain(results.clone()).collect();
    let answer = map.into_iter().map(PageBlock::from).chain(crossings).collect();
    let plot = plot(played).map(PageBlock::from);
    let results = Section::new("Results").with_all(results).with_all(plot);
    let sections = vec![results, use_of_time(scenario, played)];
    Shown { lead, answer, summary, sections, ..Shown::default() }
}

/// Map of a sweep of protocols over two parameters, and where they cross.
fn map_of(played: &[Played]) -> (Option<WinnerMap>, Vec<PageBlock>) {
    let map = map::of(played);
    let crossings = map.iter().flat_map(map::Map::crossings).map(PageBlock::Text).collect();
    (map.map(|map| map.chart()), crossings)
}

/// Describes a point whose mean is below the ideal time.
fn beyond_limit_at(played: &Played) -> Option<String> {
    let words = beyond_limit(&played.all())?;
    let point = label::point(&played.case.params);
    let at = if point.is_empty() { String::new() } else { format!(" at {point}") };
    Some(format!("`{}`{at}: {words}.", played.case.name))
}

fn table(played: &[Played]) -> Table {
    let is_shown = |(name, _): &(&str, &Value)| *name != PROTOCOL;
    let names = played.first().into_iter().flat_map(|played| played.case.params.iter().filter(is_shown));
    let missed = played.iter().any(|played| !why_missed(&played.all()).is_empty());
    let names = names.map(|(name, _)| Label::of(name)).map(|label| Column::number(label.words, label.unit));
    let mut table = Table::of(
        "Transfer time and goodput with 95 % confidence intervals",
        "protocol/settings|# runs|# time (s)|# goodput (byte/s)|# x ideal|arrived",
    );
    table.columns.splice(..0, names);
    table.columns.extend(missed.then(|| Column::text("problem")));
    for played in played {
        let (case, outcomes) = (&played.case, played.all());
        let value = |value: &Value| Cell { value: value.as_f64(), ..Cell::text(value.to_string()) };
        let mut cells: Vec<Cell> = case.params.iter().filter(is_shown).map(|(_, v)| value(v)).collect();
        cells.extend([Cell::text(&case.name), Cell::number(outcomes.len() as f64)]);
        cells.extend(figures(&outcomes));
        cells.extend(missed.then(|| Cell::text(why_missed(&outcomes))));
        table.row(cells);
    }
    table
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

fn use_of_time(scenario: &Scenario, played: &[Played]) -> Section {
    let words = "Mean use of time at each point, for the link of each hop towards the destination or for its radio \
                 channel. The entries of every run add up to its duration.";
    let chart = |(hop, ends): (usize, &[String])| {
        let mut chart = ledger_chart(&format!("Hop {}: {} to {}", hop + 1, ends[0], ends[1]), "");
        for played in played {
            let point = label::point(&played.case.params);
            let name = if point.is_empty() { &played.case.name } else { &point };
            chart.bars.push(ledger_bar(name, &played.all(), hop, 0, None));
        }
        chart
    };
    scenario
        .nodes
        .windows(2)
        .enumerate()
        .map(chart)
        .fold(Section::new("Use of time").with(words), Section::with)
}

/// Plot of the transfer time over the numeric parameter with the most values, with one curve for each point of the
/// others.
fn plot(played: &[Played]) -> Option<Plot> {
    let times: Vec<Record> = played.iter().filter_map(|played| played.record("transfer_s")).collect();
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
        let others = record.params.iter().filter(|(name, _)| *name != across && *name != PROTOCOL);
        let others = others.fold(Params::new(), |params, (name, value)| params.with(name, value.clone()));
        let x = record.params.get(&across).and_then(Value::as_f64).unwrap_or(0.0);
        match plot.series.iter_mut().find(|curve| curve.name == record.case && curve.at == others) {
            Some(curve) => curve.points.push(Point::of(x, record)),
            None => {
                plot = plot.with(PlotSeries::new(&record.case, vec![Point::of(x, record)]).at(others));
            }
        }
    }
    for curve in &mut plot.series {
        curve.points.sort_by(|a, b| a.x.total_cmp(&b.x));
    }
    Some(plot.captioned("Means of completed runs with 95 % confidence intervals."))
}
