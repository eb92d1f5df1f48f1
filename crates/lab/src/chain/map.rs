//! Map of a sweep of protocols over two other parameters: the fastest protocol at each point, and where two of them cross.

use super::{Chain, Played};
use crate::bench::Trial;
use crate::label::Label;
use crate::record::{Value, distinct};
use crate::report::{Axis, MapCell, WinnerMap, letters};
use crate::stats::Summary;
use std::cmp::Ordering;

/// Parameter by which protocols are swept.
const PROTOCOL: &str = "protocol";
/// Number of protocols up to which each one is compared with every other, and not with the first one alone.
const PAIRS_MAX: usize = 3;

/// Values of a parameter, ascending.
struct Values {
    name: String,
    values: Vec<Value>,
}

impl Values {
    fn of(played: &[Played], name: &str) -> Values {
        let mut values: Vec<Value> =
            distinct(played.iter().filter_map(|one| one.case.params.get(name).cloned()));
        values.sort_by(|a, b| a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal));
        Values { name: name.to_owned(), values }
    }

    fn axis(&self) -> (Axis, Vec<String>) {
        let Label { words, unit } = Label::of(&self.name);
        (Axis::new(words, unit), self.values.iter().map(Value::to_string).collect())
    }

    /// Describes a value: `one-way delay 50 ms`.
    fn at(&self, index: usize) -> String {
        let Label { words, unit } = Label::of(&self.name);
        format!("{words} {} {unit}", self.values[index]).trim_end().to_owned()
    }

    /// Describes two values: `one-way delay 50 and 500 ms`.
    fn between(&self, first: usize, second: usize) -> String {
        let Label { words, unit } = Label::of(&self.name);
        format!("{words} {} and {} {unit}", self.values[first], self.values[second]).trim_end().to_owned()
    }
}

/// Results of several protocols on a grid of two parameters.
pub(super) struct Map<'a> {
    names: Vec<String>,
    x: Values,
    y: Values,
    played: &'a [Played],
}

/// Finds the grid of a sweep of protocols over two numeric parameters; `None` for any other sweep.
pub(super) fn of(played: &[Played]) -> Option<Map<'_>> {
    let params = &played.first()?.case.params;
    let others = params.iter().map(|(name, _)| name).filter(|name| *name != PROTOCOL);
    let mut swept: Vec<Values> = others.map(|name| Values::of(played, name)).collect();
    swept.retain(|values| values.values.len() > 1);
    let names = distinct(played.iter().filter_map(|one| Some(one.case.params.get(PROTOCOL)?.to_string())));
    // The parameter with more values is the horizontal one, where there is more space.
    let [a, b] = <[Values; 2]>::try_from(swept).ok()?;
    let (x, y) = if a.values.len() > b.values.len() { (a, b) } else { (b, a) };
    let is_numeric = [&x, &y].into_iter().flat_map(|of| &of.values).all(|value| value.as_f64().is_some());
    (names.len() > 1 && is_numeric).then_some(Map { names, x, y, played })
}

impl Map<'_> {
    /// Results of a protocol at a point, if any run of it was played.
    fn at(&self, name: &str, column: usize, row: usize) -> Option<&Played> {
        self.played.iter().find(|played| {
            let has = |name: &str, value: &Value| played.case.params.get(name) == Some(value);
            played.case.params.get(PROTOCOL).is_some_and(|value| value.to_string() == name)
                && has(&self.x.name, &self.x.values[column])
                && has(&self.y.name, &self.y.values[row])
        })
    }

    /// Compares two protocols at a point: by the number of runs that did not arrive, then by their times; equal if the
    /// runs show no significant difference.
    fn order(&self, ours: &str, theirs: &str, column: usize, row: usize) -> Ordering {
        match (self.at(ours, column, row), self.at(theirs, column, row)) {
            (Some(ours), Some(theirs)) => faster(ours, theirs),
            (ours, theirs) => ours.is_none().cmp(&theirs.is_none()),
        }
    }

    fn cell(&self, column: usize, row: usize) -> Option<MapCell> {
        let here = self.names.iter().map(|name| self.at(name, column, row));
        let mut here: Vec<(usize, &Played)> =
            here.enumerate().filter_map(|(index, played)| Some((index, played?))).collect();
        here.retain(|(_, played)| played.outcomes().any(|outcome| outcome.delivered));
        here.sort_by(|(_, a), (_, b)| missing(a).cmp(&missing(b)).then(mean_s(a).total_cmp(&mean_s(b))));
        let (winner, best) = *here.first()?;
        let tied = here.get(1).is_some_and(|(_, next)| faster(best, next) == Ordering::Equal);
        let ratio = best.record("transfer_s").and_then(|record| record.ratio);
        Some(MapCell { winner, tied, ratio })
    }

    pub(super) fn chart(&self) -> WinnerMap {
        let row = |row| (0..self.x.values.len()).map(|column| self.cell(column, row)).collect();
        let map = WinnerMap {
            title: "Fastest protocol".into(),
            names: letters(self.names.iter().map(String::as_str)),
            x: self.x.axis(),
            y: self.y.axis(),
            cells: (0..self.y.values.len()).map(row).collect(),
            ..WinnerMap::default()
        };
        let caption = format!("{} The number is its mean time as a multiple of the ideal time.", map.key());
        WinnerMap { caption, ..map }
    }

    /// Sentences on where each two protocols cross, or that they do not.
    pub(super) fn crossings(&self) -> Vec<String> {
        let all = self.names.len();
        let references = if all <= PAIRS_MAX { all } else { 1 };
        let pairs = (0..references).flat_map(|theirs| (theirs + 1..all).map(move |ours| (ours, theirs)));
        pairs.map(|(ours, theirs)| self.crossing(&self.names[ours], &self.names[theirs])).collect()
    }

    fn crossing(&self, ours: &str, theirs: &str) -> String {
        let (columns, rows) = (self.x.values.len(), self.y.values.len());
        let order = |column, row| self.order(ours, theirs, column, row);
        let points = || (0..rows).flat_map(|row| (0..columns).map(move |column| (column, row)));
        let count = |which| points().filter(|&(column, row)| order(column, row) == which).count();
        let (ahead, behind, all) = (count(Ordering::Less), count(Ordering::Greater), columns * rows);
        let level = all - ahead - behind;
        let along_x = changes((&self.x, &self.y), order);
        let along_y = || changes((&self.y, &self.x), |row, column| order(column, row));
        let crossings = if along_x.is_empty() { along_y() } else { along_x };
        let counts = match (ahead, behind, level) {
            (_, 0, 0) => format!("`{ours}` is ahead of `{theirs}` at all {all} points"),
            (0, _, 0) => format!("`{ours}` is behind `{theirs}` at all {all} points"),
            (0, 0, _) => {
                return format!("`{ours}` and `{theirs}` show no significant difference at any point.");
            }
            _ => format!(
                "`{ours}` is ahead of `{theirs}` at {ahead} of {all} points, level at {level} and behind at {behind}"
            ),
        };
        match crossings.is_empty() {
            true => format!("{counts}: they do not cross."),
            false => format!("{counts}. They cross {}.", crossings.join("; ")),
        }
    }
}

/// Describes where the order of two protocols changes along a parameter, for each value of the other one. Points without a
/// significant difference stand on neither side.
fn changes((along, across): (&Values, &Values), order: impl Fn(usize, usize) -> Ordering) -> Vec<String> {
    let of_line = |line: usize| {
        let sides = (0..along.values.len()).map(|at| (at, order(at, line)));
        let sides: Vec<(usize, Ordering)> = sides.filter(|(_, side)| side.is_ne()).collect();
        let changes = sides.windows(2).filter(|pair| pair[0].1 != pair[1].1);
        let words = changes.map(|pair| along.between(pair[0].0, pair[1].0)).collect::<Vec<_>>();
        (!words.is_empty()).then(|| format!("at {} between {}", across.at(line), words.join(", ")))
    };
    (0..across.values.len()).filter_map(of_line).collect()
}

fn missing(played: &Played) -> usize {
    played.outcomes().filter(|outcome| !outcome.delivered).count()
}

/// Mean time of the completed runs; infinite without any.
fn mean_s(played: &Played) -> f64 {
    let arrived: Vec<_> = played.outcomes().filter(|outcome| outcome.delivered).collect();
    match &Chain::metric("transfer_s").samples(&arrived)[..] {
        [] => f64::INFINITY,
        times => crate::stats::mean(times.iter().copied()),
    }
}

/// Compares two protocols at the same point, from pairs of runs with the same noise.
fn faster(ours: &Played, theirs: &Played) -> Ordering {
    let (own, other) = ours.pairs(theirs, "transfer_s");
    let by_missing = missing(ours).cmp(&missing(theirs));
    if by_missing.is_ne() || own.is_empty() {
        return by_missing;
    }
    let difference = Summary::of_differences(&own, &other);
    // Runs that are all equally far apart, such as those without errors, have an interval of no width, and a single run has none.
    match difference.ci95 {
        Some(_) if !difference.is_significant() => Ordering::Equal,
        None if ours.runs.len() > 1 => Ordering::Equal,
        _ => difference.mean.total_cmp(&0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::{Case, Run};
    use crate::record::Params;
    use crate::run::{Outcome, Setup};
    use crate::scenario::Scenario;
    use bytes::Bytes;
    use std::path::Path;

    const DELAYS: [u32; 3] = [1, 10, 100];
    const BERS: [f64; 2] = [0.0, 1e-5];

    /// Results with these times by protocol, delay, bit-error rate and run; `None` where nothing arrives.
    fn played(names: &[&str], time: impl Fn(&str, u32, f64, u32) -> Option<f64>) -> Vec<Played> {
        let scenario = Scenario::parse("protocol = 'tcp/tuned'\n[workload]\nbytes = 10", "test");
        let files = vec![Bytes::from_static(b"0123456789")];
        let setup = Setup::with_files(scenario.expect("a scenario"), Path::new("."), files);
        let setup = setup.expect("a setup");
        let plain = setup.play(Run::new(1, 0), Default::default());
        let one = |name: &str, delay_ms: u32, ber: f64| {
            let params = Params::new().with("ber", ber).with("delay_ms", delay_ms).with(PROTOCOL, name);
            let case: Case<Chain> = Chain::case(name, params, setup.clone(), 3);
            let run = |number: u32| {
                let transfer_s = time(name, delay_ms, ber, number);
                let outcome =
                    Outcome { run: number, delivered: transfer_s.is_some(), transfer_s, ..plain.clone() };
                (Run::new(1, number), outcome)
            };
            Played { case, runs: (0..3).map(run).collect() }
        };
        let delays = |ber: f64| DELAYS.map(move |delay_ms| (delay_ms, ber));
        let points = BERS.into_iter().flat_map(delays);
        points
            .flat_map(|(delay_ms, ber)| names.iter().map(move |name| (*name, delay_ms, ber)))
            .map(|(name, delay_ms, ber)| one(name, delay_ms, ber))
            .collect()
    }

    /// Number of the winner at each point, row by row; those that tie are negative, and -9 is none.
    fn winners(played: &[Played]) -> Vec<i32> {
        let cells = of(played).expect("a map").chart().cells;
        let number = |cell: Option<MapCell>| match cell {
            Some(MapCell { winner, tied: false, .. }) => winner as i32,
            Some(MapCell { winner, .. }) => -1 - winner as i32,
            None => -9,
        };
        cells.into_iter().flatten().map(number).collect()
    }

    #[test]
    fn the_fastest_wins_each_point_and_is_tied_where_the_runs_do_not_tell() {
        let noise = |run: u32| f64::from(run);
        let all = played(&["tcp", "ltp"], |name, delay_ms, ber, run| match (name, delay_ms, ber > 0.0) {
            ("tcp", 1, false) => Some(5.0),
            ("tcp", 10, false) => Some(10.0),
            // Its mean is lower, but not in every run.
            ("tcp", 100, false) => Some(20.0 - 3.0 * noise(run)),
            (_, 100, false) => Some(17.5 - noise(run)),
            // Neither brings a file, or one brings fewer of them in less time.
            (_, 1, true) => None,
            ("tcp", 10, true) => (run > 0).then_some(1.0),
            _ => Some(10.0),
        });
        assert_eq!(winners(&all), [0, -1, -2, -9, 1, -1]);
    }

    #[test]
    fn no_protocol_is_significantly_ahead_of_a_winner() {
        let mut rng = longwire_proto::rng::Rng::new(5);
        for _ in 0..50 {
            let seed = rng.next_u64();
            let all = played(&["a", "b", "c"], |name, delay_ms, ber, run| {
                let drawn = |place: String| longwire_proto::rng::Rng::new(seed).fork(&place).unit();
                let arrives = drawn(format!("{name} {delay_ms} {ber}")) > 0.2;
                arrives.then(|| 10.0 + drawn(format!("{name} {delay_ms} {ber} {run}")))
            });
            let map = of(&all).expect("a map");
            let cells = map.chart().cells;
            for (row, column) in (0..BERS.len()).flat_map(|row| (0..DELAYS.len()).map(move |at| (row, at))) {
                let Some(cell) = &cells[row][column] else { continue };
                let winner = &map.names[cell.winner];
                let is_ahead = |other: &String| map.order(other, winner, column, row).is_lt();
                assert!(!map.names.iter().any(is_ahead), "{cell:?} at {row} {column}");
            }
        }
    }

    #[test]
    fn a_crossing_is_named_with_the_points_on_both_sides_of_it() {
        // The times cross at 50 ms without errors, and not at all with them.
        let all = played(&["tcp", "ltp"], |name, delay_ms, ber, _| {
            let slope = if name == "tcp" { 2.0 } else { 1.0 };
            Some(slope * f64::from(delay_ms) + if name == "tcp" || ber > 0.0 { 0.0 } else { 50.0 })
        });
        assert_eq!(
            of(&all).expect("a map").crossings(),
            [
                "`ltp` is ahead of `tcp` at 4 of 6 points, level at 0 and behind at 2. They cross at bit-error rate 0 between one-way \
              delay 10 and 100 ms."
            ]
        );
        // They cross only along the bit-error rate.
        let all = played(&["tcp", "ltp"], |name, _, ber, _| {
            Some(if (name == "tcp") == (ber > 0.0) { 2.0 } else { 1.0 })
        });
        let words = of(&all).expect("a map").crossings().remove(0);
        assert!(
            words.contains("They cross at one-way delay 1 ms between bit-error rate 0 and 1e-5; at"),
            "{words}"
        );
        let words = |shift: f64| {
            let time =
                move |name: &str, _: u32, _: f64, _: u32| Some(if name == "tcp" { 9.0 } else { 9.0 + shift });
            of(&played(&["tcp", "ltp"], time)).expect("a map").crossings().remove(0)
        };
        assert_eq!(words(-1.0), "`ltp` is ahead of `tcp` at all 6 points: they do not cross.");
        assert_eq!(words(1.0), "`ltp` is behind `tcp` at all 6 points: they do not cross.");
        assert_eq!(words(0.0), "`ltp` and `tcp` show no significant difference at any point.");
    }

    #[test]
    fn only_a_sweep_of_protocols_over_two_parameters_is_a_map() {
        let all = || played(&["tcp", "ltp"], |_, _, _, _| Some(1.0));
        let map = of(&all()).expect("a map").chart();
        assert_eq!((map.x.0.label.as_str(), map.x.1.len()), ("one-way delay", 3));
        let without = |is_kept: &dyn Fn(&Params) -> bool| {
            let mut all = all();
            all.retain(|played| is_kept(&played.case.params));
            of(&all).is_none()
        };
        let is = |name: &'static str, value: Value| move |params: &Params| params.get(name) == Some(&value);
        assert!(without(&is(PROTOCOL, "tcp".into())));
        assert!(without(&is("ber", 0.0.into())));
        assert!(of(&[]).is_none());
    }
}
