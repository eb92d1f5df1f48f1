//! All transfers of the page, simulated.

use super::Options;
use super::calibrate::{ROWS, What};
use super::fleet::{
    Case, EXCHANGED, FAST, FAST_BPS, FASTEST_BPS, MACHINES, Role, SLOW, SLOW_BPS, find, program,
};
use super::transfer::{Outcome, Transfer};
use crate::progress::Progress;
use crate::record::{Kind, Params, Record, Run};
use crate::spread::spread;
use crate::stats;
use longwire_proto::rng::Rng;
use std::collections::{BTreeMap, BTreeSet};

/// Runs a case, if nothing else is asked for: the wait for a slot is drawn.
const RUNS: u32 = 16;
/// Of a long file there are so many times fewer: it has as many more draws itself.
const LONG: u32 = 4;
/// Controllers that are simulated with every window.
const PLOTTED: [&str; 7] = ["TNC2", "TNC2D", "Spirit-2 H.S.", "KPC-9612+", "TNC3S", "TNC7multi", "DLC7"];
/// The lengths of frames that are compared, octets.
pub(super) const LENGTHS: [u32; 6] = [32, 64, 100, 128, 192, 256];
/// Controllers and rates whose windows are shown by the length of frames.
pub(super) const BY_LENGTH: [(&str, u64); 3] =
    [("TNC2D", SLOW_BPS), ("TNC2H", FAST_BPS), ("KPC-9612+", FAST_BPS)];
/// Rates at which the windows of TNC3 and TNC7 are counted, bit/s.
pub(super) const RATES_OF_TNC3: [u64; 5] = [SLOW_BPS, FAST_BPS, FASTEST_BPS, 153_600, 614_400];

/// What was simulated.
pub(super) struct Bench {
    seeds: Vec<u64>,
    outcomes: BTreeMap<Case, Vec<Outcome>>,
}

impl Bench {
    /// Plays everything.
    pub(super) fn play(options: &Options, progress: &Progress) -> Bench {
        let runs = options.runs.unwrap_or(RUNS).max(1);
        let rng = Rng::new(options.seed.unwrap_or(1));
        let seeds: Vec<u64> = (0..runs).map(|run| rng.fork(&format!("run {run}")).next_u64()).collect();
        let cases = cases();
        let mine = |case: &Case| seeds[..count(case, runs) as usize].iter();
        let jobs: Vec<(Case, u64)> =
            cases.iter().flat_map(|case| mine(case).map(|seed| (*case, *seed))).collect();
        progress.expect(jobs.len() as u64);
        let work = |job: usize| jobs[job].0.transfer().play(jobs[job].1);
        let played = spread(jobs.len(), options.threads, work, |_| progress.advance(1));
        let mut outcomes: BTreeMap<Case, Vec<Outcome>> = BTreeMap::new();
        for ((case, _), outcome) in jobs.into_iter().zip(played) {
            outcomes.entry(case).or_default().push(outcome);
        }
        Bench { seeds, outcomes }
    }

    pub(super) fn runs(&self) -> usize {
        self.seeds.len()
    }

    fn of(&self, case: &Case) -> &[Outcome] {
        self.outcomes.get(case).unwrap_or_else(|| panic!("{case:?} is not played"))
    }

    /// Mean throughput, bit/s.
    pub(super) fn throughput(&self, case: Case) -> f64 {
        stats::mean(&self.of(&case).iter().map(|outcome| outcome.throughput_bps).collect::<Vec<f64>>())
    }

    /// Mean throughput as a record.
    pub(super) fn record(&self, case: Case) -> Record {
        let samples: Vec<f64> = self.of(&case).iter().map(|outcome| outcome.throughput_bps).collect();
        let record = Record::of(series(&case), params(&case), "throughput_bit_per_s", "bit/s", &samples);
        record.with_kind(kind(&case, false))
    }

    /// Mean window of a long file, frames.
    pub(super) fn window(&self, case: Case) -> f64 {
        stats::mean(&self.of(&case.long()).iter().map(Outcome::mean_window).collect::<Vec<f64>>())
    }

    fn window_record(&self, case: Case) -> Record {
        let samples: Vec<f64> = self.of(&case).iter().map(Outcome::mean_window).collect();
        let record = Record::of(series(&case), params(&case), "window_frames", "frames", &samples);
        record.with_kind(kind(&case, true))
    }

    /// The share of windows of 1 to 7 frames in a long file.
    pub(super) fn shares(&self, case: Case) -> [f64; 7] {
        let outcomes = self.of(&case.long());
        let count =
            |window: u32| -> u64 { outcomes.iter().filter_map(|outcome| outcome.windows.get(&window)).sum() };
        let all: u64 = (1..=7).map(count).sum();
        core::array::from_fn(|at| count(at as u32 + 1) as f64 / all as f64)
    }

    pub(super) fn records(&self) -> Vec<Record> {
        let of = |case: &Case| match case.file_kib {
            8 => vec![self.record(*case)],
            _ => vec![self.window_record(*case)],
        };
        self.outcomes.keys().flat_map(of).collect()
    }

    pub(super) fn rows(&self) -> Vec<Run> {
        let of = |(case, outcomes): (&Case, &Vec<Outcome>)| -> Vec<Run> {
            let runs = outcomes.iter().zip(&self.seeds).zip(0..);
            let run = |((outcome, seed), run): ((&Outcome, &u64), u32)| Run {
                series: series(case),
                params: params(case),
                run,
                seed: *seed,
                values: vec![
                    ("transfer_s".into(), outcome.seconds),
                    ("throughput_bit_per_s".into(), outcome.throughput_bps),
                    ("window_frames".into(), outcome.mean_window()),
                ],
            };
            runs.map(run).collect()
        };
        self.outcomes.iter().flat_map(of).collect()
    }
}

fn count(case: &Case, runs: u32) -> u32 {
    if case.file_kib == 8 { runs } else { runs.div_ceil(LONG) }
}

fn series(case: &Case) -> String {
    format!("{} in {}, {}", case.program, case.machine, case.role.word())
}

fn params(case: &Case) -> Params {
    Params::new()
        .with("rate_bps", case.rate_bps as f64)
        .with("window", u32::from(case.window))
        .with("information_bytes", case.information_bytes)
        .with("file_bytes", 1024 * case.file_kib)
}

/// Whether a constant is fitted to this figure.
pub(super) fn kind(case: &Case, window: bool) -> Kind {
    let fitted = ROWS.iter().any(|row| {
        let same = row.program == case.program && row.machine == case.machine && case.role != Role::Both;
        let (at_seven, receives) = (case.window == 7, case.role == Role::Recipient);
        same && case.rate_bps == SLOW_BPS
            && case.information_bytes == 256
            && match row.what {
                What::Window => window && !receives && at_seven,
                What::Sending => !window && !receives && at_seven,
                What::Receiving => !window && receives && at_seven,
                What::Gain => !window && !receives && (at_seven || case.window == 1),
            }
    });
    if fitted { Kind::Calibrated } else { Kind::Predicted }
}

/// Everything that the page speaks of.
fn cases() -> BTreeSet<Case> {
    let mut cases = BTreeSet::new();
    for machine in &MACHINES {
        for rate_bps in [SLOW_BPS, FAST_BPS, FASTEST_BPS] {
            let case = Case::delivered(machine.name, rate_bps);
            cases.insert(case);
            if PLOTTED.contains(&machine.name) {
                cases.extend((1..7).map(|window| case.with_window(window)));
            }
        }
    }
    for (machine, rate_bps) in BY_LENGTH {
        let case = Case::delivered(machine, rate_bps);
        cases.extend(LENGTHS.map(|bytes| case.with_information(bytes).long()));
    }
    for machine in ["TNC3S", "TNC7multi"] {
        cases.extend(RATES_OF_TNC3.map(|rate_bps| Case::delivered(machine, rate_bps).long()));
        cases.extend(LENGTHS.map(|bytes| Case::delivered(machine, FAST_BPS).with_information(bytes)));
    }
    for of in EXCHANGED {
        for machine in SLOW.into_iter().chain(FAST) {
            for role in [Role::Sender, Role::Recipient] {
                let case = Case::exchanged(role, program(of.name).name, machine);
                cases.extend((1..=7).map(|window| case.with_window(window)));
            }
            cases.insert(Case::exchanged(Role::Sender, of.name, machine).long());
        }
    }
    cases
}

/// What was assumed of controllers: the assumption, its ground, and what another does.
pub(super) fn alternatives() -> Vec<(&'static str, &'static str, String)> {
    let mean = |transfer: Transfer| {
        let runs: Vec<f64> = (0..u64::from(RUNS)).map(|seed| transfer.play(seed).throughput_bps).collect();
        stats::mean(&runs)
    };
    let of = |case: Case| mean(case.transfer());
    let tnc3 = Case::delivered("TNC3S", FASTEST_BPS);
    let slow_tnc3 = {
        let mut transfer = tnc3.transfer();
        for side in [&mut transfer.sender, &mut transfer.recipient] {
            side.controller.megacycles_per_s = find("TNC3S").clock_mhz;
        }
        mean(transfer)
    };
    let mfj = Case::exchanged(Role::Sender, "MFJ", FAST[0]);
    let silent = {
        let mut transfer = mfj.transfer();
        transfer.sender.polls = false;
        mean(transfer)
    };
    let with_tnc3 = {
        let mut transfer = mfj.transfer();
        transfer.recipient.controller.megacycles_per_s = find("TNC3S").megacycles_per_s();
        mean(transfer)
    };
    vec![
        (
            "A cycle of a 68302 does as much as 2 of a Z80's, one of an ARM7 as much as 43; one of a 68HC11 as much as one.",
            "published lists of Dhrystones a second, version 1.1, for each MHz; of the 68HC11 nothing is known",
            format!("with 1 for the 68302, TNC3 at 38,400: {slow_tnc3:.0} bit/s instead of {:.0}", of(tnc3)),
        ),
        (
            "The firmwares of Z80s ask with P for their last frame's acknowledgement.",
            "the paper says only of TNC3 and TNC7 that they do not",
            format!("without, MFJ as a sender at 9600, 10 MHz: {silent:.0} bit/s instead of {:.0}", of(mfj)),
        ),
        (
            "Firmwares are compared beside a TNC7.",
            "TNC3 or TNC7, the paper says",
            format!(
                "beside a TNC3, MFJ as a sender at 9600, 10 MHz: {with_tnc3:.0} bit/s instead of {:.0}",
                of(mfj)
            ),
        ),
        (
            "Frames are made in a time that grows with their octets.",
            "`a sufficiently large amount of data`, the paper says; constants are fitted at 256 octets",
            "with a time for each frame whatever its length, windows of short frames are smaller".into(),
        ),
    ]
}
