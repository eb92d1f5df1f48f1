//! Firmware constants, from the statements about 1200 bit/s.
//!
//! **Input.** Each statement of the text about a firmware at 1200 bit/s is a row: a range for the simulated
//! controllers, with the same interpretation of its words as on the rest of the page. A pair of constants is allowed if
//! all rows of its firmware hold. Statements about other rates are not used. The result is a set, because the text has
//! few numbers.
//!
//! **Between firmware versions.** The text also contains orders. They restrict which allowed constants of one firmware
//! can be combined with which of another.
//!
//! **The constants used** are the allowed ones nearest to the mean of all combinations that keep the orders, in steps
//! of the grid.
//!
//! **The memory limit** is derived: alternating windows of 3 and 5 result from space for eight frames, because
//! unacknowledged data and the data waiting behind them are eight frames together.

use super::fleet::{Case, EXCHANGED, Program, Role, SLOW};
use super::statements::{ALIKE, FLAT, GROWTH, RARE, SIMILAR};
use crate::stats;
use std::collections::BTreeMap;

/// Step of the grid, millions of cycles per turnaround.
const TURN_STEP: f64 = 0.25;

/// Constants allowed by all rows of a firmware.
#[derive(Debug, PartialEq)]
pub(super) struct Allowed {
    pub(super) program: &'static str,
    /// Thousands of cycles per octet, and the range of the turnaround allowed with them, millions of cycles.
    pub(super) turns: &'static [(f64, f64, f64)],
}

/// Constants allowed for both Spirit and MFJ.
const TAPR: [(f64, f64, f64); 7] = [
    (18.0, 2.75, 3.5),
    (19.0, 2.75, 4.25),
    (20.0, 2.75, 4.5),
    (21.0, 2.25, 3.75),
    (22.0, 2.0, 3.75),
    (23.0, 2.0, 3.25),
    (23.0, 3.75, 3.75),
];

/// Allowed constants of all firmware versions. Found in some minutes by `cargo test --release -p longwire-lab --
/// --ignored --nocapture the_search`.
pub(super) const ALLOWED: [Allowed; 5] = [
    Allowed { program: "Spirit", turns: &TAPR },
    Allowed { program: "MFJ", turns: &TAPR },
    Allowed { program: "TF 2.7", turns: &[(20.0, 4.0, 4.75), (21.0, 2.75, 4.75), (22.0, 3.75, 4.75)] },
    Allowed {
        program: "TF 2.3",
        turns: &[
            (25.0, 1.0, 1.25),
            (26.0, 1.0, 1.75),
            (27.0, 1.0, 2.0),
            (28.0, 1.0, 2.25),
            (29.0, 1.0, 2.5),
            (30.0, 1.0, 3.0),
            (31.0, 1.0, 3.25),
            (32.0, 1.0, 3.5),
            (33.0, 1.0, 3.75),
            (34.0, 1.0, 4.25),
            (35.0, 1.0, 4.5),
            (36.0, 1.0, 4.75),
            (37.0, 1.0, 4.75),
            (38.0, 1.0, 4.75),
            (39.0, 1.0, 4.75),
            (40.0, 2.0, 4.75),
            (41.0, 3.25, 4.75),
            (42.0, 4.5, 4.75),
        ],
    },
    Allowed {
        program: "TF 2.1",
        turns: &[
            (54.0, 1.0, 1.0),
            (55.0, 1.0, 1.25),
            (56.0, 1.0, 1.5),
            (57.0, 1.0, 1.75),
            (58.0, 1.0, 2.0),
            (59.0, 1.0, 2.25),
            (60.0, 1.0, 2.5),
            (61.0, 1.0, 2.75),
            (62.0, 1.0, 3.25),
            (63.0, 1.0, 3.5),
            (64.0, 1.0, 3.75),
            (65.0, 1.0, 4.0),
            (66.0, 1.0, 4.25),
            (67.0, 1.0, 4.5),
            (68.0, 1.0, 4.75),
            (69.0, 1.0, 4.75),
            (70.0, 1.0, 4.75),
            (71.0, 1.0, 4.75),
            (72.0, 1.0, 4.75),
            (73.0, 1.0, 4.75),
            (74.0, 1.0, 4.75),
            (75.0, 1.0, 4.75),
            (76.0, 1.0, 4.75),
            (77.0, 1.0, 4.75),
            (78.0, 1.0, 4.75),
            (79.0, 1.0, 4.75),
            (80.0, 1.0, 4.75),
        ],
    },
];

impl Allowed {
    /// Returns the allowed constants of a firmware.
    pub(super) fn of(program: &str) -> &'static Allowed {
        let found = ALLOWED.iter().find(|allowed| allowed.program == program);
        found.unwrap_or_else(|| panic!("{program} has no constants of its own"))
    }

    /// Iterates over all allowed pairs.
    pub(super) fn points(&self) -> impl Iterator<Item = (f64, f64)> + use<> {
        self.turns.iter().flat_map(|(octet, from, to)| {
            let steps = ((to - from) / TURN_STEP).round() as u32;
            (0..=steps).map(move |step| (*octet, from + f64::from(step) * TURN_STEP))
        })
    }

    /// Iterates over the pairs with the fewest and the most cycles per turnaround for each number per octet.
    pub(super) fn edges(&self) -> impl Iterator<Item = (f64, f64)> + use<> {
        self.turns.iter().flat_map(|(octet, from, to)| {
            let second = (to != from).then_some((*octet, *to));
            [(*octet, *from)].into_iter().chain(second)
        })
    }
}

/// Statement about a firmware at 1200 bit/s.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) program: &'static str,
    pub(super) machine: &'static str,
    pub(super) what: What,
    pub(super) said: Said,
    pub(super) words: &'static str,
}

/// Quantity that a statement is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Mean number of frames before an acknowledgement, for 64 KB.
    Window,
    /// Share of windows of 6 or 7 frames.
    BeyondFive,
    /// Throughput as a sender at k = 7, bit/s.
    Sending,
    /// Throughput as a receiver at k = 7, bit/s.
    Receiving,
    /// Ratio of the throughputs as a sender at two values of k.
    Gain { from: u8, to: u8 },
}

/// Range that a statement gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Said {
    /// Lower and upper end; `None` without an upper end.
    Within(f64, Option<f64>),
    /// Lower and upper end, as shares of the value of another firmware in the same controller.
    Beside(&'static str, f64, f64),
}

/// Slower and faster: by at least a thousandth.
const SLOWER: (f64, f64) = (0.0, 0.999);
const FASTER: (f64, f64) = (1.001, 1000.0);

/// Returns all statements.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = tapr();
    rows.extend(tf());
    rows
}

/// Adds a row for each controller.
fn said(
    rows: &mut Vec<Row>,
    program: &'static str,
    machines: &[&'static str],
    what: What,
    said: Said,
    words: &'static str,
) {
    rows.extend(machines.iter().map(|machine| Row { program, machine, what, said, words }));
}

fn within(from: f64, to: f64) -> Said {
    Said::Within(from, Some(to))
}

fn beside(other: &'static str, (from, to): (f64, f64)) -> Said {
    Said::Beside(other, from, to)
}

const ALL_RECIPIENTS: (f64, f64) = (900.0, 1000.0);
const ALL_RECIPIENTS_WORDS: &str = "all receivers from 900 to 1000 bit/s";

/// Rows of Spirit and MFJ.
fn tapr() -> Vec<Row> {
    let mut rows = Vec::new();
    let [slow, quick] = SLOW;
    let (from, to) = ALL_RECIPIENTS;
    let mut add = |program, machines: &[&'static str], what, range, words| {
        said(&mut rows, program, machines, what, range, words);
    };
    add("MFJ", &SLOW, What::Receiving, beside("Spirit", SLOWER), "Spirit receives fastest");
    for name in ["Spirit", "MFJ"] {
        add(name, &SLOW, What::Receiving, within(from, to), ALL_RECIPIENTS_WORDS);
        add(name, &[slow], What::Sending, within(750.0, 800.0), "from about 750 to 800 bit/s");
        add(name, &[quick], What::Sending, within(800.0, 900.0), "from 800 to 900 bit/s");
    }
    let alike = (1.0 / (1.0 + ALIKE), 1.0 + ALIKE);
    add("MFJ", &SLOW, What::Sending, beside("Spirit", alike), "very close to each other: within 5 %");
    for name in ["Spirit", "MFJ"] {
        let (grows, flat) = (What::Gain { from: 1, to: 4 }, What::Gain { from: 4, to: 7 });
        let grown = Said::Within(GROWTH, None);
        add(name, &SLOW, grows, grown, "grows rapidly up to k = 4: by a quarter");
        add(name, &SLOW, flat, within(0.0, 1.0 + FLAT), "no significant improvement: less than 10 %");
        add(name, &SLOW, What::Window, within(3.0, 5.0), "4, or 3 and 5 alternating: 4 to within 1");
        add(name, &SLOW, What::BeyondFive, within(0.0, RARE), "never more than 5 in a row: less than 1 %");
    }
    rows
}

/// Rows of the three TF versions.
fn tf() -> Vec<Row> {
    let mut rows = Vec::new();
    let [slow, quick] = SLOW;
    let (from, to) = ALL_RECIPIENTS;
    let mut add = |program, machines: &[&'static str], what, range, words| {
        said(&mut rows, program, machines, what, range, words);
    };
    let (alike, similar) = ((1.0 / (1.0 + ALIKE), 1.0 + ALIKE), (1.0 / (1.0 + SIMILAR), 1.0 + SIMILAR));
    for name in ["TF 2.7", "TF 2.3", "TF 2.1"] {
        add(name, &SLOW, What::Receiving, within(from, to), ALL_RECIPIENTS_WORDS);
    }
    add("TF 2.7", &SLOW, What::Receiving, beside("MFJ", SLOWER), "TF 2.7 receives slowest");
    for name in ["TF 2.3", "TF 2.1"] {
        add(name, &SLOW, What::Receiving, beside("Spirit", SLOWER), "Spirit receives fastest");
        add(name, &SLOW, What::Receiving, beside("TF 2.7", FASTER), "TF 2.7 receives slowest");
    }
    add("TF 2.7", &[slow], What::Sending, within(0.0, 800.0), "below MFJ and Spirit, so below 800");
    let as_mfj = within(800.0 * alike.0, 900.0 * alike.1);
    add("TF 2.7", &[quick], What::Sending, as_mfj, "the same as MFJ, so within 5 % of 800 to 900");
    for other in ["MFJ", "Spirit"] {
        add("TF 2.7", &[slow], What::Sending, beside(other, SLOWER), "sends slower than MFJ and Spirit");
    }
    add("TF 2.7", &[quick], What::Sending, beside("MFJ", alike), "the same as MFJ: within 5 %");
    add("TF 2.7", &[slow], What::Window, within(5.0, 7.0), "about 6: to within 1");
    add("TF 2.7", &[quick], What::Window, within(5.9, 7.0), "almost 7: 6.9 to within 1");
    add("TF 2.3", &[slow], What::Sending, beside("TF 2.7", SLOWER), "TF 2.7 sends best of the three");
    add("TF 2.3", &[quick], What::Sending, beside("TF 2.7", similar), "similar to TF 2.7: within 25 %");
    add("TF 2.3", &[slow], What::Gain { from: 1, to: 7 }, within(0.0, 1.0 + SIMILAR), SIMILAR_TO_21);
    add("TF 2.3", &[slow], What::Window, within(1.0, 2.0), "1 or 2");
    add("TF 2.3", &[quick], What::Window, within(5.0, 7.0), "about 6: to within 1");
    add("TF 2.1", &SLOW, What::Sending, beside("TF 2.3", SLOWER), "the least effective sender");
    let gain = What::Gain { from: 1, to: 7 };
    add("TF 2.1", &SLOW, gain, within(0.0, 1.0 + ALIKE), "independent of the window: within 5 %");
    add("TF 2.1", &[slow], What::Window, within(1.0, 2.0), "1 or 2");
    rows
}

const SIMILAR_TO_21: &str = "similar to TF 2.1, so nearly independent of the window: within 25 %";

/// Seeds of the search: for transfers and for long transfers.
const SEEDS: u64 = 8;
const LONG_SEEDS: u64 = 2;

/// Firmware with two constants, and its results so far.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    program: Program,
    throughputs: BTreeMap<Case, f64>,
    windows: BTreeMap<Case, (f64, f64)>,
}

impl Trial {
    pub(super) fn of(program: Program) -> Trial {
        Trial { program, throughputs: BTreeMap::new(), windows: BTreeMap::new() }
    }

    fn throughput(&mut self, case: Case) -> f64 {
        let Trial { program, throughputs, .. } = self;
        *throughputs.entry(case).or_insert_with(|| {
            let transfer = case.with_program(program);
            let samples: Vec<f64> = (0..SEEDS).map(|seed| transfer.play(seed).throughput_bps).collect();
            stats::mean(&samples)
        })
    }

    /// Returns the mean window and the share of windows beyond five frames.
    fn windows(&mut self, case: Case) -> (f64, f64) {
        let Trial { program, windows, .. } = self;
        *windows.entry(case).or_insert_with(|| {
            let transfer = case.long().with_program(program);
            let outcomes: Vec<_> = (0..LONG_SEEDS).map(|seed| transfer.play(seed)).collect();
            let mean = |value: fn(&crate::controllers::Outcome) -> f64| {
                stats::mean(&outcomes.iter().map(value).collect::<Vec<f64>>())
            };
            (mean(|outcome| outcome.mean_window()), mean(|outcome| outcome.share_beyond(5)))
        })
    }

    fn value(&mut self, machine: &'static str, what: What) -> f64 {
        let case = |role| Case::exchanged(role, self.program.name, machine);
        let (sender, recipient) = (case(Role::Sender), case(Role::Recipient));
        match what {
            What::Window => self.windows(sender).0,
            What::BeyondFive => self.windows(sender).1,
            What::Sending => self.throughput(sender),
            What::Receiving => self.throughput(recipient),
            What::Gain { from, to } => {
                self.throughput(sender.with_window(to)) / self.throughput(sender.with_window(from))
            }
        }
    }
}

/// Firmware versions with the constants used.
pub(super) type Used = BTreeMap<&'static str, Trial>;

pub(super) fn used() -> Used {
    EXCHANGED.into_iter().map(|program| (program.name, Trial::of(program))).collect()
}

impl Row {
    /// Returns the lower end and, if there is one, the upper end, given these constants of the other firmware versions.
    pub(super) fn bounds(&self, used: &mut Used) -> (f64, Option<f64>) {
        match self.said {
            Said::Within(from, to) => (from, to),
            Said::Beside(other, from, to) => {
                let other = used.get_mut(other).expect("it is one of them").value(self.machine, self.what);
                (from * other, Some(to * other))
            }
        }
    }

    pub(super) fn value(&self, trial: &mut Trial) -> f64 {
        trial.value(self.machine, self.what)
    }
}

/// Returns true if a value is in a range.
pub(super) fn is_within(value: f64, (from, to): (f64, Option<f64>)) -> bool {
    value >= from && to.is_none_or(|to| value <= to)
}

#[cfg(test)]
mod tests {
    use super::super::fleet::{FAST, program};
    use super::*;
    use crate::bench::{self, Bench, Metric, Run, threads_available};
    use crate::progress::Progress;
    use crate::record::Params;

    /// Grid: step per octet in thousands of cycles, and the ends in thousands of cycles per octet and millions per
    /// turnaround.
    const OCTET_STEP: f64 = 1.0;
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

    /// Returns the first row of the firmware itself that does not hold.
    fn broken(program: Program) -> Option<&'static str> {
        let mut trial = Trial::of(program);
        let own = |row: &Row| row.program == program.name && matches!(row.said, Said::Within(..));
        let mut none = Used::new();
        let checked = |row: Row| (is_within(row.value(&mut trial), row.bounds(&mut none)), row.words);
        rows().into_iter().filter(own).map(checked).find(|(holds, _)| !holds).map(|(_, words)| words)
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
        let mut used = used();
        for row in rows() {
            let bounds = row.bounds(&mut used);
            let value = row.value(used.get_mut(row.program).expect("it is one of them"));
            assert!(is_within(value, bounds), "{row:?}: {value} is not in {bounds:?}");
        }
        for program in EXCHANGED {
            let constants = (program.octet_kilocycles, program.turn_megacycles);
            assert!(Allowed::of(program.name).points().any(|point| point == constants), "{}", program.name);
        }
    }

    /// Tests the edges of the allowed set; the search tests all pairs.
    #[test]
    fn allowed_constants_are_allowed_and_those_beside_them_are_not() {
        for allowed in &ALLOWED {
            let with = |point| broken(program(allowed.program).with_constants(point));
            let (first, last) = (allowed.turns[0], allowed.turns[allowed.turns.len() - 1]);
            for point in [(first.0, first.1), (last.0, last.2)] {
                assert_eq!(with(point), None, "{} {point:?}", allowed.program);
            }
            let outside = [
                (first.0 - OCTET_STEP, first.1),
                (first.0, first.1 - TURN_STEP),
                (last.0, last.2 + TURN_STEP),
                (last.0 + OCTET_STEP, last.2),
            ];
            for point in outside.into_iter().filter(|point| is_on_the_grid(*point)) {
                assert!(with(point).is_some(), "{} allows {point:?}", allowed.program);
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
    fn fits(mine: &mut [Trial], others: &mut [Trial]) -> Fits {
        let names = (mine[0].program.name, others[0].program.name);
        let rows: Vec<Row> = rows().into_iter().filter(|row| row.program == names.0).collect();
        let between = rows.iter().filter_map(|row| match row.said {
            Said::Beside(other, from, to) if other == names.1 => Some((row, from, to)),
            _ => None,
        });
        let mut fits = vec![vec![true; others.len()]; mine.len()];
        for (row, from, to) in between {
            let values: Vec<f64> = others.iter_mut().map(|other| row.value(other)).collect();
            for (mine, fits) in mine.iter_mut().zip(&mut fits) {
                let own = row.value(mine);
                for (fits, other) in fits.iter_mut().zip(&values) {
                    *fits &= own >= from * other && own <= to * other;
                }
            }
        }
        fits
    }

    /// Counts the consistent combinations that contain each candidate.
    fn combinations(candidates: &mut [Vec<Trial>]) -> Vec<Vec<u64>> {
        let count = candidates.len();
        // In both directions: a row may belong to either of two.
        let mut tables: BTreeMap<(usize, usize), Fits> = BTreeMap::new();
        for first in 0..count {
            for second in first + 1..count {
                let (left, right) = candidates.split_at_mut(second);
                let (mine, others) = (&mut left[first], &mut right[0]);
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
    fn middle(candidates: &[Trial], counts: &[u64]) -> (f64, f64) {
        let all: u64 = counts.iter().sum();
        assert!(all > 0, "no combination keeps the orders");
        let point = |trial: &Trial| (trial.program.octet_kilocycles, trial.program.turn_megacycles);
        let mean = |part: fn((f64, f64)) -> f64| {
            let sum = |(trial, count): (&Trial, &u64)| part(point(trial)) * *count as f64;
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
        let points = within.map(|(trial, _)| point(trial));
        points.min_by(|left, right| off(left).total_cmp(&off(right))).expect("there are combinations")
    }

    /// Takes some minutes: `cargo test --release -p longwire-lab -- --ignored --nocapture the_search`.
    #[test]
    #[ignore = "takes minutes"]
    fn the_search_finds_what_is_allowed_and_the_middle() {
        let grid = grid();
        let mut found = Vec::new();
        let mut candidates = Vec::new();
        for allowed in &ALLOWED {
            let with = |point| program(allowed.program).with_constants(point);
            let broken = at_all(&grid, |point| broken(with(point)));
            let points: Vec<usize> = (0..grid.len()).filter(|at| broken[*at].is_none()).collect();
            let turns = as_turns(&points.iter().map(|at| grid[*at]).collect::<Vec<_>>());
            println!("Allowed {{ program: {:?}, turns: &{turns:?} }},", allowed.program);
            candidates.push(points.into_iter().map(|at| Trial::of(with(grid[at]))).collect::<Vec<Trial>>());
            found.push(Allowed { program: allowed.program, turns: turns.leak() });
        }
        let counts = combinations(&mut candidates);
        let mut middles = Vec::new();
        for (candidates, counts) in candidates.iter().zip(&counts) {
            let used = program(candidates[0].program.name);
            println!("{}", used.name);
            let middle = middle(candidates, counts);
            println!("  the middle: {middle:?}");
            middles.push(((used.octet_kilocycles, used.turn_megacycles), middle));
        }
        assert_eq!(found, ALLOWED);
        assert!(middles.iter().all(|(used, middle)| used == middle), "{middles:?}");
    }

    /// Supports the statement of the page that no pair of the grid satisfies this statement.
    #[test]
    #[ignore = "takes minutes"]
    fn no_constants_receive_better_at_the_slower_clock() {
        let points = super::super::misses::coarse();
        let ratio = |point| {
            let mut trial = Trial::of(program("TF 2.7").with_constants(point));
            let [slow, quick] = FAST.map(|machine| trial.value(machine, What::Receiving));
            quick / slow
        };
        let ratios = at_all(&points, ratio);
        let least = ratios.into_iter().fold(f64::MAX, f64::min);
        println!("{} pairs, the least ratio {least}", points.len());
        assert!(least >= 1.0, "{least}");
    }

    #[test]
    fn every_exchanged_firmware_has_rows_on_both_clocks() {
        for program in EXCHANGED {
            for machine in SLOW {
                assert!(rows().iter().any(|row| row.program == program.name && row.machine == machine));
            }
        }
    }
}
