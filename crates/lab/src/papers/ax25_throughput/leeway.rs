//! Range of the predicted figures over the constants that the statements about 1200 bit/s allow.
//!
//! For each allowed number of cycles per octet, the fewest and the most cycles per turnaround are simulated.

use super::calibrate::edges;
use super::fleet::{Case, Constants, program};
use crate::bench::{self, Bench, Metric, Played, Run, Trial};
use crate::record::Params;
use crate::stats::{least, most};
use std::collections::{BTreeMap, BTreeSet};

/// Runs of a transfer with each pair of constants; few, because the range only shows the effect of the constants.
const RUNS: u64 = 2;

/// Case with several pairs of constants: run n has the n-th pair, and the same few seeds as all other runs.
struct WithPairs {
    case: Case,
    pairs: Vec<Constants>,
}

impl Trial for WithPairs {
    /// Throughput, bit/s, or mean window, frames.
    type Outcome = f64;

    const METRICS: &'static [Metric<f64>] = &[];

    fn play(&self, run: Run) -> f64 {
        let transfer = self.case.transfer_with(self.pairs[run.number as usize]);
        match self.case.is_long() {
            true => transfer.play(0).mean_window(),
            false => transfer.mean_throughput_bps(RUNS),
        }
    }
}

/// Results of every case with every pair, in the order of the pairs.
#[derive(Default)]
pub(super) struct Leeway(BTreeMap<Case, Vec<f64>>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Range {
    pub(super) from: f64,
    pub(super) to: f64,
    /// True if some of the constants satisfy the rule.
    pub(super) hits: bool,
}

/// The constants used and those at the edges of the allowed set.
fn pairs(name: &str) -> Vec<Constants> {
    let used = program(name);
    [used.constants()].into_iter().chain(edges(&used.constants_of)).collect()
}

impl Leeway {
    /// Simulates the pairs with a few seeds, the constants used first, so that all pairs have the same seeds after an
    /// early stop. The result is the figure of the page, `middle`, multiplied by the ratio to the result of the same
    /// seeds with the constants used, which removes the effect of the random wait for a slot.
    pub(super) fn play(bench: &Bench<'_>, cases: BTreeSet<Case>, middle: impl Fn(&Case) -> f64) -> Leeway {
        let most = if bench.thin { 1 } else { usize::MAX };
        let with_pairs = |case: Case| {
            let pairs: Vec<Constants> = pairs(case.program).into_iter().take(most).collect();
            let runs = pairs.len() as u32;
            bench::Case::new("", Params::new(), WithPairs { case, pairs }, 0, runs)
        };
        let of_case = |played: Played<WithPairs>| {
            let case = played.case.trial.case;
            let share = middle(&case) / played.runs[0].1;
            let most = if case.is_long() { f64::from(case.window) } else { f64::MAX };
            let values: Vec<f64> = played.outcomes().map(|value| (value * share).min(most)).collect();
            (case, values)
        };
        Leeway(bench.play(cases.into_iter().map(with_pairs).collect()).into_iter().map(of_case).collect())
    }

    fn of(&self, case: &Case) -> &[f64] {
        self.0.get(case).unwrap_or_else(|| panic!("{case:?} is not played"))
    }

    /// Figures of several transfers; either each or the best must satisfy the rule. The constants of different firmware
    /// versions are independent.
    pub(super) fn range(&self, cases: &[Case], best: bool, satisfies: impl Fn(f64) -> bool) -> Range {
        // Minimum and maximum over the transfers of a firmware with each pair.
        let mut firmwares: BTreeMap<&str, Vec<(f64, f64)>> = BTreeMap::new();
        for case in cases {
            let values = self.of(case);
            let mine = firmwares.entry(&program(case.program).constants_of);
            let mine = mine.or_insert_with(|| vec![(f64::MAX, f64::MIN); values.len()]);
            for ((least, most), value) in mine.iter_mut().zip(values) {
                (*least, *most) = (least.min(*value), most.max(*value));
            }
        }
        let firmwares: Vec<Vec<(f64, f64)>> = firmwares.into_values().collect();
        if best { range_of_best(&firmwares, satisfies) } else { range_of_all(&firmwares, satisfies) }
    }

    /// Figure of a case with each pair of constants.
    pub(super) fn values(&self, case: &Case) -> impl Iterator<Item = (Constants, f64)> {
        pairs(case.program).into_iter().zip(self.of(case).to_vec())
    }
}

fn range_of_all(firmwares: &[Vec<(f64, f64)>], satisfies: impl Fn(f64) -> bool) -> Range {
    let both = |(least, most): &(f64, f64)| satisfies(*least) && satisfies(*most);
    Range {
        from: least(firmwares.iter().flatten().map(|pair| pair.0)),
        to: most(firmwares.iter().flatten().map(|pair| pair.1)),
        hits: firmwares.iter().all(|pairs| pairs.iter().any(both)),
    }
}

fn range_of_best(firmwares: &[Vec<(f64, f64)>], satisfies: impl Fn(f64) -> bool) -> Range {
    let bests = |pairs: &Vec<(f64, f64)>| pairs.iter().map(|pair| pair.1).collect::<Vec<f64>>();
    let bests: Vec<Vec<f64>> = firmwares.iter().map(bests).collect();
    // The best of a firmware is the best of all with constants of the others that make them no better.
    let leads = |best: f64| bests.iter().all(|bests| bests.iter().any(|other| *other <= best));
    Range {
        from: most(bests.iter().map(|bests| least(bests.iter().copied()))),
        to: most(bests.iter().flatten().copied()),
        hits: bests.iter().flatten().any(|best| satisfies(*best) && leads(*best)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two firmware versions with two pairs of constants each.
    #[test]
    fn firmwares_have_their_constants_independently() {
        let firmwares = [vec![(10.0, 12.0), (20.0, 25.0)], vec![(13.0, 13.0), (30.0, 40.0)]];
        let all = |from: f64, to: f64| range_of_all(&firmwares, |value| (from..=to).contains(&value));
        assert_eq!((all(10.0, 13.0).from, all(10.0, 13.0).to), (10.0, 40.0));
        // The first pair of each is within the bounds; one of them alone is not enough.
        assert!(all(10.0, 13.0).hits && !all(10.0, 12.5).hits && !all(11.0, 13.0).hits);
        let best = |from: f64, to: f64| range_of_best(&firmwares, |value| (from..=to).contains(&value));
        // The best is the second firmware with either pair, unless the first has its better pair.
        assert_eq!((best(13.0, 13.0).from, best(13.0, 13.0).to), (13.0, 40.0));
        assert!(best(13.0, 13.0).hits && best(25.0, 26.0).hits && !best(14.0, 24.0).hits);
        assert!(!best(0.0, 12.0).hits);
    }
}
