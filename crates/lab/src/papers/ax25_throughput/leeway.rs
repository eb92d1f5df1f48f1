//! Range of the predicted figures over the constants that the statements about 1200 bit/s allow.
//!
//! For each allowed number of cycles per octet, the fewest and the most cycles per turnaround are simulated.

use super::calibrate::Allowed;
use super::fleet::{Case, constants_of, program};
use super::published::{measured, used};
use crate::bench::{self, Bench, Metric, Played, Run, Trial};
use crate::record::{FigureKind, Params};
use crate::stats;
use std::collections::{BTreeMap, BTreeSet};

/// Runs of a transfer with each pair of constants; few, because the range only shows the effect of the constants.
const RUNS: u64 = 2;

/// Case with several pairs of constants: run n has the n-th pair, and the same few seeds as all other runs.
struct WithPairs {
    case: Case,
    pairs: Vec<(f64, f64)>,
}

impl Trial for WithPairs {
    /// Throughput, bit/s, or mean window, frames.
    type Outcome = f64;

    const METRICS: &'static [Metric<f64>] = &[];

    fn play(&self, run: Run) -> f64 {
        figure(&self.case, self.pairs[run.number as usize])
    }
}

/// Results of every case with every pair, in the order of the pairs.
#[derive(Default)]
pub(super) struct Leeway {
    values: BTreeMap<Case, Vec<f64>>,
}

/// Range over all allowed constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) from: f64,
    pub(super) to: f64,
    /// True if some of the constants satisfy the bounds.
    pub(super) hits: bool,
}

impl Leeway {
    /// Simulates the pairs with a few seeds, the constants used first, so that all pairs have the same seeds after an
    /// early stop. The result is the figure of the page, `middle`, multiplied by the ratio to the result of the same
    /// seeds with the constants used, which removes the effect of the random wait for a slot.
    pub(super) fn play(bench: &Bench<'_>, middle: impl Fn(&Case) -> f64) -> Leeway {
        let most = if bench.thin { 1 } else { usize::MAX };
        let with_pairs = |case: Case| {
            let pairs: Vec<(f64, f64)> = pairs(case.program).into_iter().take(most).collect();
            let runs = pairs.len() as u32;
            bench::Case::new("", Params::new(), WithPairs { case, pairs }, 0, runs)
        };
        let played = bench.play(cases().into_iter().map(with_pairs).collect());
        let of_case =
            |played: &Played<WithPairs>| (played.case.trial.case, played.outcomes().copied().collect());
        let mut values: BTreeMap<Case, Vec<f64>> = played.iter().map(of_case).collect();
        for (case, values) in &mut values {
            let share = middle(case) / values[0];
            let most = if case.is_long() { f64::from(case.window) } else { f64::MAX };
            values.iter_mut().for_each(|value| *value = (*value * share).min(most));
        }
        Leeway { values }
    }

    fn of(&self, case: &Case) -> &[f64] {
        self.values.get(case).unwrap_or_else(|| panic!("{case:?} is not played"))
    }

    /// Throughputs of several transfers, bit/s; either each or the best must be within the bounds. The constants of
    /// different firmware versions are independent.
    pub(super) fn throughputs(&self, cases: &[Case], best: bool, bounds: (f64, f64)) -> Range {
        // Minimum and maximum over the transfers of a firmware with each pair.
        let mut firmwares: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for case in cases {
            let values = self.of(case);
            let mine = firmwares.entry(constants_of(case.program));
            let mine = mine.or_insert_with(|| vec![(f64::MAX, f64::MIN); values.len()]);
            for ((least, most), value) in mine.iter_mut().zip(values) {
                (*least, *most) = (least.min(*value), most.max(*value));
            }
        }
        let firmwares: Vec<Vec<(f64, f64)>> = firmwares.into_values().collect();
        if best { range_of_best(&firmwares, bounds) } else { range_of_all(&firmwares, bounds) }
    }

    /// Range of the allowed constants of a firmware, thousands of cycles per octet.
    pub(super) fn octets(&self, program: &'static str) -> (f64, f64) {
        let octets = || pairs(program).into_iter().map(|pair| pair.0);
        (least(octets()), most(octets()))
    }

    /// Thousands of cycles per octet with which the mean window is within these bounds, ascending.
    pub(super) fn octets_that_hit(&self, case: &Case, (from, to): (f64, f64)) -> Vec<f64> {
        let values = pairs(case.program).into_iter().zip(self.of(&case.long()));
        let hits = values.filter(|(_, value)| (from..=to).contains(*value));
        let mut octets: Vec<f64> = hits.map(|((octet, _), _)| octet).collect();
        octets.sort_by(f64::total_cmp);
        octets
    }

    /// Range of the mean window with this number of thousands of cycles per octet, frames.
    pub(super) fn window_with_octets(&self, case: &Case, (from, to): (f64, f64)) -> (f64, f64) {
        let values = pairs(case.program).into_iter().zip(self.of(&case.long()));
        let mine =
            || values.clone().filter(|((octet, _), _)| (from..=to).contains(octet)).map(|(_, value)| *value);
        (least(mine()), most(mine()))
    }

    /// Range of the mean window, frames, and whether it meets these bounds.
    pub(super) fn window(&self, case: &Case, (from, to): (f64, f64)) -> Range {
        let values = self.of(&case.long());
        let hits = values.iter().any(|value| (from..=to).contains(value));
        Range { from: least(values.iter().copied()), to: most(values.iter().copied()), hits }
    }
}

/// The constants used and those at the edges of the allowed set.
fn pairs(name: &'static str) -> Vec<(f64, f64)> {
    let used = program(name);
    let middle = (used.octet_kilocycles, used.turn_megacycles);
    [middle].into_iter().chain(Allowed::of(constants_of(name)).edges()).collect()
}

fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::MAX, f64::min)
}

fn most(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::MIN, f64::max)
}

fn range_of_all(firmwares: &[Vec<(f64, f64)>], (from, to): (f64, f64)) -> Range {
    let within = |(least, most): &(f64, f64)| *least >= from && *most <= to;
    Range {
        from: least(firmwares.iter().flatten().map(|pair| pair.0)),
        to: most(firmwares.iter().flatten().map(|pair| pair.1)),
        hits: firmwares.iter().all(|pairs| pairs.iter().any(within)),
    }
}

fn range_of_best(firmwares: &[Vec<(f64, f64)>], (from, to): (f64, f64)) -> Range {
    let bests = |pairs: &[(f64, f64)]| pairs.iter().map(|pair| pair.1).collect::<Vec<f64>>();
    let bests: Vec<Vec<f64>> = firmwares.iter().map(|pairs| bests(pairs)).collect();
    let not_above = bests.iter().all(|bests| bests.iter().any(|best| *best <= to));
    Range {
        from: most(bests.iter().map(|bests| least(bests.iter().copied()))),
        to: most(bests.iter().flatten().copied()),
        hits: not_above && bests.iter().flatten().any(|best| (from..=to).contains(best)),
    }
}

fn figure(case: &Case, pair: (f64, f64)) -> f64 {
    let transfer = case.with_program(&program(case.program).with_constants(pair));
    if case.is_long() {
        return transfer.play(0).mean_window();
    }
    stats::mean(&(0..RUNS).map(|seed| transfer.play(seed).throughput_bps).collect::<Vec<f64>>())
}

/// Predicted cases for which the text gives numbers, and the cases compared with them.
fn cases() -> BTreeSet<Case> {
    let predicted = |case: &Case, window| super::simulated::kind(case, window) == FigureKind::Predicted;
    let throughputs =
        measured().into_iter().filter(|row| row.cases.iter().any(|case| predicted(case, false)));
    let windows = used().into_iter().filter(|row| predicted(&row.case, true)).map(|row| row.case.long());
    throughputs.flat_map(|row| row.cases).chain(windows).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two firmware versions with two pairs of constants each.
    #[test]
    fn firmwares_have_their_constants_independently() {
        let firmwares = [vec![(10.0, 12.0), (20.0, 25.0)], vec![(13.0, 13.0), (30.0, 40.0)]];
        let all = |bounds| range_of_all(&firmwares, bounds);
        assert_eq!((all((10.0, 13.0)).from, all((10.0, 13.0)).to), (10.0, 40.0));
        // The first pair of each is within the bounds; one of them alone is not enough.
        assert!(all((10.0, 13.0)).hits && !all((10.0, 12.5)).hits && !all((11.0, 13.0)).hits);
        let best = |bounds| range_of_best(&firmwares, bounds);
        // The best is the second firmware with either pair, unless the first has its better pair.
        assert_eq!((best((13.0, 13.0)).from, best((13.0, 13.0)).to), (13.0, 40.0));
        assert!(best((13.0, 13.0)).hits && best((25.0, 26.0)).hits && !best((14.0, 24.0)).hits);
        assert!(!best((0.0, 12.0)).hits);
    }
}
