//! Simulated transfers of the page.

use super::SIMULATION;
use super::calibrate::kind;
use super::figures::{Values, case};
use super::fleet::Case;
use super::leeway::Leeway;
use crate::bench::{self, Bench, Metric, Played, Run, Trial};
use crate::claim::Selection;
use crate::controllers::{Outcome, shares};
use crate::record::{Params, Record, Row};
use std::collections::{BTreeMap, BTreeSet};

/// Default runs of a case: the wait for a slot is random.
const RUNS: u32 = 16;
/// Interval between the rounds with long files, which average over more slots in each run.
const LONG: u32 = 4;

impl Trial for Case {
    type Outcome = Outcome;

    const METRICS: &'static [Metric<Outcome>] = &[
        Metric::new("transfer_s", "s", |outcome| Some(outcome.seconds)),
        Metric::new("throughput_bit_per_s", "bit/s", |outcome| Some(outcome.throughput_bps)),
        Metric::new("window_frames", "frames", |outcome| Some(outcome.mean_window())),
    ];

    fn play(&self, run: Run) -> Outcome {
        self.transfer().play(run.seed)
    }
}

pub(super) struct Simulated {
    /// Runs of each transfer, fewer of long files.
    pub(super) runs: u32,
    played: BTreeMap<Case, Played<Case>>,
    /// Figures over all constants that the statements about 1200 bit/s allow.
    pub(super) leeway: Leeway,
}

impl Simulated {
    /// Simulates all cases, and those about which there are predictions with other constants.
    pub(super) fn play(bench: &Bench<'_>, predicted: BTreeSet<Case>) -> Simulated {
        let runs = bench.runs(RUNS);
        let planned = |case: Case| {
            let name = format!("{} in {}, {}", case.program, case.machine, case.role.word());
            let params = Params::new()
                .with("rate_bps", case.rate_bps as f64)
                .with("window", u32::from(case.window))
                .with("information_bytes", case.information_bytes)
                .with("file_bytes", 1024 * case.file_kib);
            let every = if case.is_long() { LONG } else { 1 };
            bench::Case::new(name, params, case, bench.seed, runs).every(every)
        };
        let points = SIMULATION.played.iter().flat_map(Selection::points);
        let cases: BTreeSet<Case> = points.map(|point| case(&point)).collect();
        let played = bench.play(cases.into_iter().map(planned).collect());
        let runs = bench::rounds(&played);
        let played = played.into_iter().map(|played| (played.case.trial, played)).collect();
        let mut simulated = Simulated { runs, played, leeway: Leeway::default() };
        simulated.leeway = Leeway::play(bench, predicted, |case| simulated.record(*case).mean);
        simulated
    }

    fn of(&self, case: &Case) -> &Played<Case> {
        self.played.get(case).unwrap_or_else(|| panic!("{case:?} is not played"))
    }

    /// Record of the figure of a transfer: the mean window of a long file, the throughput of another.
    pub(super) fn record(&self, case: Case) -> Record {
        let metric = if case.is_long() { "window_frames" } else { "throughput_bit_per_s" };
        self.of(&case).record(metric).expect("a case has a run").with_kind(kind(&case))
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        self.played.keys().map(|case| self.record(*case))
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        self.played.values().flat_map(Played::rows).collect()
    }
}

impl Values for Simulated {
    fn throughput(&self, case: Case) -> f64 {
        self.record(case).mean
    }

    fn windows(&self, case: Case) -> (f64, [f64; 7]) {
        (self.record(case.long()).mean, shares(self.of(&case.long()).outcomes()))
    }
}
