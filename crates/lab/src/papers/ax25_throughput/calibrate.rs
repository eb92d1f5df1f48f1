//! Firmware constants, from the statements about 1200 bit/s.
//!
//! Each statement about a firmware is a row: a range for the simulated controllers. A pair of constants is allowed if
//! all rows of its firmware hold; orders restrict which pairs of one firmware can be combined with which of another. The
//! page describes the choice of the pair used, and how the memory limit is derived.

use super::SIMULATION;
use super::figures::{Values, case};
use super::fleet::{Case, Constants};
use crate::claim::{self, Check, Comparison};
use crate::controllers::{Outcome, Transfer, shares};
use crate::record::FigureKind;
use crate::stats;
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Allowed constants of all firmware versions: name, thousands of cycles per octet, and the range of the turnaround
/// allowed with them, millions of cycles. Found in some minutes by `cargo test --release -p longwire-lab -- --ignored
/// --nocapture the_search`.
static ALLOWED: LazyLock<Vec<(String, f64, f64, f64)>> =
    LazyLock::new(|| claim::rows(include_str!("allowed.csv")));

/// Returns the allowed pairs with the fewest and the most cycles per turnaround for each number per octet.
pub(super) fn edges(program: &str) -> Vec<Constants> {
    let of_program = ALLOWED.iter().filter(|(name, ..)| name == program);
    let ends = |(_, octet, from, to): &(_, f64, f64, f64)| {
        let second = (to != from).then_some((*octet, *to));
        [(*octet, *from)].into_iter().chain(second)
    };
    of_program.flat_map(ends).collect()
}

/// Returns the rows: each statement about a firmware at 1200 bit/s for each controller.
pub(super) fn rows() -> impl Iterator<Item = Comparison<'static>> {
    SIMULATION.constraints.iter().flat_map(Check::comparisons)
}

/// Transfers to whose figures a constant is fitted.
static FITTED: LazyLock<BTreeSet<Case>> = LazyLock::new(|| {
    rows().flat_map(|row| [Some(row.of), row.over]).flatten().map(|point| case(&point)).collect()
});

/// Returns `Calibrated` if a constant is fitted to the figure of this transfer.
pub(super) fn kind(case: &Case) -> FigureKind {
    if FITTED.contains(case) { FigureKind::Calibrated } else { FigureKind::Predicted }
}

/// Seeds of the search: for transfers and for long transfers.
const SEEDS: u64 = 8;
const LONG_SEEDS: u64 = 2;

/// Figures with the seeds of the search, and with other constants for one firmware.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fit {
    changed: Option<(&'static str, Constants)>,
}

impl Fit {
    fn transfer(&self, case: &Case) -> Transfer {
        match self.changed {
            Some((changed, constants)) if changed == case.program => case.transfer_with(constants),
            _ => case.transfer(),
        }
    }
}

impl Values for Fit {
    fn throughput(&self, case: Case) -> f64 {
        self.transfer(&case).mean_throughput_bps(SEEDS)
    }

    fn windows(&self, case: Case) -> (f64, [f64; 7]) {
        let transfer = self.transfer(&case.long());
        let outcomes: Vec<Outcome> = (0..LONG_SEEDS).map(|seed| transfer.play(seed)).collect();
        (stats::mean(outcomes.iter().map(Outcome::mean_window)), shares(&outcomes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::figures::value;
    use super::super::fleet::{FAST, PROGRAMS, Role, SLOW, program};
    use super::*;
    use crate::bench::{self, Bench, Metric, Run, threads_available};
    use crate::progress::Progress;
    use crate::record::Params;
    use std::cell::RefCell;
    use std::collections::BTreeMap;

    /// Grid: steps and ends, in thousands of cycles per octet and millions per turnaround.
    const OCTET_STEP: f64 = 1.0;
    const TURN_STEP: f64 = 0.25;
    const OCTET_MAX: f64 = 80.0;
    const TURN_MAX: f64 = 8.0;

    /// Evaluates a function at every point, on all threads.
    fn at_all<R: Send + 'static>(points: &[(f64, f64)], of: impl Fn((f64, f64)) -> R + Sync) -> Vec<R> {
        struct At<'a, F>(&'a F, (f64, f64));
        impl<R: Send + 'static, F: Fn((f64, f64)) -> R + Sync> bench::Trial for At<'_, F> {
            type Outcome = R;
            const METRICS: &'static [Metric<R>] = &[];
            fn play(&self, _: Run) -> R {
                (self.0)(self.1)
            }
        }
        let case = |point: &(f64, f64)| bench::Case::new("", Params::new(), At(&of, *point), 0, 1);
        let progress = Progress::new();
        let bench = Bench { threads: threads_available(), ..Bench::new(&progress) };
        let played = bench.play(points.iter().map(case).collect());
        played.into_iter().flat_map(|played| played.runs).map(|(_, found)| found).collect()
    }

    /// Firmware with other constants, and its figures so far.
    #[derive(Clone)]
    struct Candidate {
        name: &'static str,
        constants: Constants,
        known: RefCell<BTreeMap<String, f64>>,
    }

    impl Candidate {
        fn value(&self, point: &Params) -> f64 {
            let fit = Fit { changed: Some((self.name, self.constants)) };
            *self.known.borrow_mut().entry(point.to_string()).or_insert_with(|| value(point, &fit))
        }
    }

    fn with(name: &'static str, constants: Constants) -> Candidate {
        Candidate { name, constants, known: RefCell::default() }
    }

    /// Firmware that a row is about, and the other one of an order.
    fn names(row: &Comparison<'_>) -> (&'static str, Option<&'static str>) {
        let name = case(&row.of).program;
        (name, row.over.as_ref().map(|over| case(over).program).filter(|other| *other != name))
    }

    /// Returns the first row of the firmware itself that does not hold.
    fn broken(name: &'static str, constants: Constants) -> Option<String> {
        let candidate = with(name, constants);
        let mut own = rows().filter(|row| names(row) == (name, None));
        own.find(|row| !row.compare(|point| candidate.value(point)).holds()).map(|row| row.of.to_string())
    }

    /// All allowed pairs of a firmware.
    fn points(program: &str) -> Vec<Constants> {
        let of = |(_, octet, from, to): &'static (String, f64, f64, f64)| {
            let steps = ((to - from) / TURN_STEP).round() as u32;
            (0..=steps).map(move |step| (*octet, from + f64::from(step) * TURN_STEP))
        };
        ALLOWED.iter().filter(|(name, ..)| name == program).flat_map(of).collect()
    }

    fn names_of_exchanged() -> impl Iterator<Item = &'static str> {
        PROGRAMS[..5].iter().map(|program| program.name.as_str())
    }

    fn grid() -> Vec<(f64, f64)> {
        let octets = (1..=(OCTET_MAX / OCTET_STEP) as u32).map(|step| f64::from(step) * OCTET_STEP);
        let turns = || (0..=(TURN_MAX / TURN_STEP) as u32).map(|step| f64::from(step) * TURN_STEP);
        octets.flat_map(|octet| turns().map(move |turn| (octet, turn))).collect()
    }

    fn is_on_the_grid((octet, turn): (f64, f64)) -> bool {
        (OCTET_STEP..=OCTET_MAX).contains(&octet) && (0.0..=TURN_MAX).contains(&turn)
    }

    #[test]
    fn the_constants_used_are_allowed_and_keep_the_orders() {
        for row in rows() {
            let compared = row.compare(|point| value(point, &Fit::default()));
            assert!(compared.holds(), "{row:?}: {compared:?}");
        }
        for name in names_of_exchanged() {
            assert!(points(name).contains(&program(name).constants()), "{name}");
        }
        for other in &PROGRAMS[5..] {
            assert_eq!(other.constants(), program(&other.constants_of).constants(), "{}", other.name);
        }
    }

    /// Tests the edges of the allowed set; the search tests all pairs.
    #[test]
    fn allowed_constants_are_allowed_and_those_beside_them_are_not() {
        for name in names_of_exchanged() {
            let allowed = points(name);
            let (first, last) = (allowed[0], allowed[allowed.len() - 1]);
            for point in [first, last] {
                assert_eq!(broken(name, point), None, "{name} {point:?}");
            }
            let outside = [
                (first.0 - OCTET_STEP, first.1),
                (first.0, first.1 - TURN_STEP),
                (last.0, last.1 + TURN_STEP),
                (last.0 + OCTET_STEP, last.1),
            ];
            for point in outside.into_iter().filter(|point| is_on_the_grid(*point)) {
                assert!(broken(name, point).is_some(), "{name} allows {point:?}");
            }
        }
    }

    /// Converts points, in the order of the grid, to the form of the table.
    fn as_turns(points: &[(f64, f64)]) -> Vec<(f64, f64, f64)> {
        let mut turns: Vec<(f64, f64, f64)> = Vec::new();
        for (octet, turn) in points {
            match turns.last_mut() {
                Some((last, _, to)) if last == octet && *turn == *to + TURN_STEP => *to = *turn,
                _ => turns.push((*octet, *turn, *turn)),
            }
        }
        turns
    }

    /// Compatibility of the candidates of two firmware versions.
    type Fits = Vec<Vec<bool>>;

    /// Tests every row that compares these two with every pair of their candidates.
    fn fits(mine: &[Candidate], others: &[Candidate]) -> Fits {
        let both = (mine[0].name, Some(others[0].name));
        let mut fits = vec![vec![true; others.len()]; mine.len()];
        for row in rows().filter(|row| names(row) == both) {
            for (mine, fits) in mine.iter().zip(&mut fits) {
                for (fits, other) in fits.iter_mut().zip(others) {
                    let side = |point: &Params| if *point == row.of { mine } else { other };
                    *fits &= row.compare(|point| side(point).value(point)).holds();
                }
            }
        }
        fits
    }

    /// Counts the consistent combinations that contain each candidate.
    fn combinations(candidates: &[Vec<Candidate>]) -> Vec<Vec<u64>> {
        let count = candidates.len();
        // In both directions: a row may belong to either of two.
        let mut tables: BTreeMap<(usize, usize), Fits> = BTreeMap::new();
        for first in 0..count {
            for second in first + 1..count {
                let (mine, others) = (&candidates[first], &candidates[second]);
                let (forth, back) = (fits(mine, others), fits(others, mine));
                let both = (0..mine.len())
                    .map(|at| (0..others.len()).map(|other| forth[at][other] && back[other][at]).collect());
                tables.insert((first, second), both.collect());
            }
        }
        let sizes: Vec<usize> = candidates.iter().map(Vec::len).collect();
        let mut counts: Vec<Vec<u64>> = sizes.iter().map(|size| vec![0; *size]).collect();
        choose(&sizes, &tables, &mut Vec::new(), &mut counts);
        counts
    }

    /// Counts the combinations that continue a choice.
    fn choose(
        sizes: &[usize],
        tables: &BTreeMap<(usize, usize), Fits>,
        chosen: &mut Vec<usize>,
        counts: &mut [Vec<u64>],
    ) -> u64 {
        let level = chosen.len();
        if level == sizes.len() {
            return 1;
        }
        let mut all = 0;
        for at in 0..sizes[level] {
            if (0..level).all(|before| tables[&(before, level)][chosen[before]][at]) {
                chosen.push(at);
                let found = choose(sizes, tables, chosen, counts);
                chosen.pop();
                counts[level][at] += found;
                all += found;
            }
        }
        all
    }

    /// Returns the candidate nearest to the mean of all combinations.
    fn middle(candidates: &[Candidate], counts: &[u64]) -> (f64, f64) {
        let all: u64 = counts.iter().sum();
        assert!(all > 0, "no combination keeps the orders");
        let point = |candidate: &Candidate| candidate.constants;
        let mean = |part: fn((f64, f64)) -> f64| {
            let sum = |(candidate, count): (&Candidate, &u64)| part(point(candidate)) * *count as f64;
            candidates.iter().zip(counts).map(sum).sum::<f64>() / all as f64
        };
        let (octet, turn) = (mean(|point| point.0), mean(|point| point.1));
        println!(
            "  the mean: {octet:.2}, {turn:.2}, of {} candidates",
            counts.iter().filter(|n| **n > 0).count()
        );
        let off = |point: &(f64, f64)| {
            ((point.0 - octet) / OCTET_STEP).powi(2) + ((point.1 - turn) / TURN_STEP).powi(2)
        };
        let within = candidates.iter().zip(counts).filter(|(_, count)| **count > 0);
        let points = within.map(|(candidate, _)| point(candidate));
        points.min_by(|left, right| off(left).total_cmp(&off(right))).expect("there are combinations")
    }

    /// Takes some minutes: `cargo test --release -p longwire-lab -- --ignored --nocapture the_search`.
    #[test]
    #[ignore = "takes minutes"]
    fn the_search_finds_what_is_allowed_and_the_middle() {
        let grid = grid();
        let mut candidates = Vec::new();
        let mut found = Vec::new();
        for name in names_of_exchanged() {
            let broken = at_all(&grid, |point| broken(name, point));
            let allowed: Vec<Constants> =
                grid.iter().zip(broken).filter(|one| one.1.is_none()).map(|one| *one.0).collect();
            as_turns(&allowed).iter().for_each(|(octet, from, to)| println!("{name},{octet},{from},{to}"));
            candidates.push(allowed.iter().map(|point| with(name, *point)).collect::<Vec<Candidate>>());
            found.push((name, allowed));
        }
        let counts = combinations(&candidates);
        let mut middles = Vec::new();
        for (candidates, (name, counts)) in candidates.iter().zip(names_of_exchanged().zip(&counts)) {
            println!("{name}");
            let middle = middle(candidates, counts);
            println!("  the middle: {middle:?}");
            middles.push((program(name).constants(), middle));
        }
        for (name, allowed) in found {
            assert_eq!(allowed, points(name), "{name}");
        }
        assert!(middles.iter().all(|(used, middle)| used == middle), "{middles:?}");
    }

    /// Supports the statement of the page that no pair of the grid satisfies this statement.
    #[test]
    #[ignore = "takes minutes"]
    fn no_constants_receive_better_at_the_slower_clock() {
        let turns = || (0..=16).map(|step| f64::from(step) / 2.0);
        let points: Vec<Constants> =
            (1..=20).flat_map(|step| turns().map(move |turn| (4.0 * f64::from(step), turn))).collect();
        assert_eq!(points.len(), 340, "as the page says");
        let ratio = |point| {
            let fit = Fit { changed: Some(("TF 2.7", point)) };
            let [slow, quick] =
                FAST.map(|machine| fit.throughput(Case::exchanged(Role::Receiver, "TF 2.7", machine)));
            quick / slow
        };
        let ratios = at_all(&points, ratio);
        let least = ratios.into_iter().fold(f64::MAX, f64::min);
        println!("{} pairs, the least ratio {least}", points.len());
        assert!(least >= 1.0, "{least}");
    }

    #[test]
    fn every_exchanged_firmware_has_rows_on_both_clocks() {
        for name in names_of_exchanged() {
            for machine in SLOW {
                assert!(
                    rows()
                        .map(|row| case(&row.of))
                        .any(|case| (case.program, case.machine) == (name, machine))
                );
            }
        }
    }
}
