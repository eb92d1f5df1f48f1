//! Simulated transfers of the page.

use super::calibrate::{Allowed, What, rows};
use super::fleet::{
    Case, EXCHANGED, FAST, FAST_BPS, FASTEST_BPS, MACHINES, Role, SLOW, SLOW_BPS, find, program,
};
use super::leeway::Leeway;
use super::statements::ALIKE;
use crate::bench::{self, Bench, Metric, Played, Run, Trial};
use crate::controllers::{Outcome, Transfer};
use crate::format::figure;
use crate::record::{FigureKind, Params, Record, Row};
use crate::stats;
use longwire_proto::time::Duration;
use std::collections::{BTreeMap, BTreeSet};

/// Default runs of a case: the wait for a slot is random.
const RUNS: u32 = 16;
/// Interval between the rounds with long files, which average over more slots in each run.
const LONG: u32 = 4;
/// Controllers simulated with every window.
const PLOTTED: [&str; 7] = ["TNC2", "TNC2D", "Spirit-2 H.S.", "KPC-9612+", "TNC3S", "TNC7multi", "DLC7"];
/// Frame lengths compared, octets.
pub(super) const LENGTHS: [u32; 6] = [32, 64, 100, 128, 192, 256];
/// Controllers and rates whose windows are plotted by frame length.
pub(super) const BY_LENGTH: [(&str, u64); 3] =
    [("TNC2D", SLOW_BPS), ("TNC2H", FAST_BPS), ("KPC-9612+", FAST_BPS)];
/// Rates at which the windows of TNC3 and TNC7 are measured, bit/s.
pub(super) const RATES_OF_TNC3: [u64; 5] = [SLOW_BPS, FAST_BPS, FASTEST_BPS, 153_600, 614_400];

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

/// Results of the simulations.
pub(super) struct Simulated {
    /// Runs of each transfer, fewer of long files.
    runs: u32,
    played: BTreeMap<Case, Played<Case>>,
    leeway: Leeway,
}

/// Assumption about controllers, its basis, and the effect of an alternative.
pub(super) type Alternative = (&'static str, &'static str, String);

impl Simulated {
    /// Simulates all cases.
    pub(super) fn play(bench: &Bench<'_>) -> Simulated {
        let runs = bench.runs(RUNS);
        let case = |case: Case| {
            let every = if case.is_long() { LONG } else { 1 };
            bench::Case::new(name(&case), params(&case), case, bench.seed, runs).every(every)
        };
        let played = bench.play(cases().into_iter().map(case).collect());
        let runs = bench::rounds(&played);
        let played = played.into_iter().map(|played| (played.case.trial, played)).collect();
        let mut simulated = Simulated { runs, played, leeway: Leeway::default() };
        let middle = |case: &Case| {
            if case.is_long() { simulated.window(*case) } else { simulated.throughput(*case) }
        };
        simulated.leeway = Leeway::play(bench, middle);
        simulated
    }

    /// Figures over all constants that the statements about 1200 bit/s allow.
    pub(super) fn leeway(&self) -> &Leeway {
        &self.leeway
    }

    pub(super) fn runs(&self) -> u32 {
        self.runs
    }

    fn of(&self, case: &Case) -> &Played<Case> {
        self.played.get(case).unwrap_or_else(|| panic!("{case:?} is not played"))
    }

    /// Mean throughput, bit/s.
    pub(super) fn throughput(&self, case: Case) -> f64 {
        stats::mean(&self.of(&case).samples("throughput_bit_per_s"))
    }

    /// Mean throughput as a record.
    pub(super) fn record(&self, case: Case) -> Record {
        let record = self.of(&case).record("throughput_bit_per_s").expect("a case has a run");
        record.with_kind(kind(&case, false))
    }

    /// Mean window of a long file, frames.
    pub(super) fn window(&self, case: Case) -> f64 {
        stats::mean(&self.of(&case.long()).samples("window_frames"))
    }

    fn window_record(&self, case: Case) -> Record {
        let record = self.of(&case).record("window_frames").expect("a case has a run");
        record.with_kind(kind(&case, true))
    }

    /// Shares of windows of 1 to 7 frames in a long file.
    pub(super) fn shares(&self, case: Case) -> [f64; 7] {
        let played = self.of(&case.long());
        let count = |window: u32| -> u64 {
            played.outcomes().filter_map(|outcome| outcome.windows.get(&window)).sum()
        };
        let all: u64 = (1..=7).map(count).sum();
        core::array::from_fn(|at| count(at as u32 + 1) as f64 / all as f64)
    }

    pub(super) fn records(&self) -> Vec<Record> {
        let of = |case: &Case| if case.is_long() { self.window_record(*case) } else { self.record(*case) };
        self.played.keys().map(of).collect()
    }

    pub(super) fn rows(&self) -> Vec<Row> {
        self.played.values().flat_map(Played::rows).collect()
    }
}

fn name(case: &Case) -> String {
    format!("{} in {}, {}", case.program, case.machine, case.role.word())
}

fn params(case: &Case) -> Params {
    Params::new()
        .with("rate_bps", case.rate_bps as f64)
        .with("window", u32::from(case.window))
        .with("information_bytes", case.information_bytes)
        .with("file_bytes", 1024 * case.file_kib)
}

/// Returns `Calibrated` if a constant is fitted to this figure.
pub(super) fn kind(case: &Case, window: bool) -> FigureKind {
    let fitted = rows().iter().any(|row| {
        let same = row.program == case.program && row.machine == case.machine && case.role != Role::Both;
        let (at_seven, receives) = (case.window == 7, case.role == Role::Recipient);
        same && case.rate_bps == SLOW_BPS
            && case.information_bytes == 256
            && match row.what {
                What::Window | What::BeyondFive => window && !receives && at_seven,
                What::Sending => !window && !receives && at_seven,
                What::Receiving => !window && receives && at_seven,
                What::Gain { from, to } => !window && !receives && [from, to].contains(&case.window),
            }
    });
    if fitted { FigureKind::Calibrated } else { FigureKind::Predicted }
}

/// All cases that the page uses.
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

/// Returns all assumptions about controllers.
pub(super) fn alternatives(simulated: &Simulated) -> Vec<Alternative> {
    let of = |case: Case| mean(&case.transfer());
    let tnc3 = Case::delivered("TNC3S", FASTEST_BPS);
    let slow_tnc3 = {
        let mut transfer = tnc3.transfer();
        for side in [&mut transfer.sender, &mut transfer.recipient] {
            side.controller.megacycles_per_s = find("TNC3S").clock_mhz;
        }
        mean(&transfer)
    };
    let mfj = Case::exchanged(Role::Sender, "MFJ", FAST[0]);
    let silent = {
        let mut transfer = mfj.transfer();
        transfer.sender.polls = false;
        mean(&transfer)
    };
    let with_tnc3 = {
        let mut transfer = mfj.transfer();
        transfer.recipient.controller.megacycles_per_s = find("TNC3S").megacycles_per_s();
        mean(&transfer)
    };
    let received = FAST.map(|machine| Case::exchanged(Role::Recipient, "TF 2.7", machine));
    let from_tnc3 = {
        let mut transfer = received[1].transfer();
        transfer.sender.controller.megacycles_per_s = find("TNC3S").megacycles_per_s();
        mean(&transfer)
    };
    vec![
        (
            "Work per cycle relative to a Z80: 68302 2, ARM7 43, 68HC11 1.",
            "published Dhrystone 1.1 results per MHz; none is known for the 68HC11",
            format!("with 1 for the 68302, TNC3 at 38,400: {slow_tnc3:.0} bit/s instead of {:.0}", of(tnc3)),
        ),
        (
            "Firmware for Z80 sets the P bit in the last frame of a window.",
            "the paper excludes this only for TNC3 and TNC7",
            format!(
                "without it, MFJ as a sender at 9600, 10 MHz: {silent:.0} bit/s instead of {:.0}",
                of(mfj)
            ),
        ),
        (
            "Firmware versions are compared with a TNC7 as peer, at every clock rate.",
            "`either TNC3 or TNC7` in the paper",
            format!(
                "with a TNC3 as peer, MFJ as a sender at 9600, 10 MHz: {with_tnc3:.0} bit/s instead of {:.0}; with a \
                 TNC7 as peer at 10 MHz and a TNC3 as peer at 20 MHz, TF 2.7 receives {:.0} and {from_tnc3:.0} \
                 bit/s, so better at the slower clock",
                of(mfj),
                of(received[0])
            ),
        ),
        (
            "The time to build a frame is proportional to its length.",
            "`a sufficiently large amount of data` in the paper; constants are derived from 256 octets",
            "with a fixed time per frame, windows of short frames would be smaller".into(),
        ),
        (
            "TF 2.3 at 2.5 MHz is `similar` to TF 2.1 if its throughput at k = 7 is within 25 % of that at k = 1.",
            "the bound used for `similar` elsewhere; `independent` means within 5 %",
            strictly_similar(simulated),
        ),
        (
            "T2 of TNC3 and TNC7 is computed as for the others.",
            "`calculated automatically` in the paper (TNC3)",
            longer_t2(simulated),
        ),
        ("T103 is 0.3 s at every rate.", "the paper gives no windows above 150 kbit/s", falling_windows()),
    ]
}

fn mean(transfer: &Transfer) -> f64 {
    let runs: Vec<f64> = (0..u64::from(RUNS)).map(|seed| transfer.play(seed).throughput_bps).collect();
    stats::mean(&runs)
}

/// Effect on TF 2.3 if `similar` is as strict as `independent`.
fn strictly_similar(simulated: &Simulated) -> String {
    let slow = |point: &(f64, f64)| {
        let program = program("TF 2.3").with_constants(*point);
        let case = Case::exchanged(Role::Sender, "TF 2.3", SLOW[0]);
        [7, 1].map(|window| mean(&case.with_window(window).with_program(&program)))
    };
    let edges: Vec<(f64, f64)> = Allowed::of("TF 2.3").edges().collect();
    let strict = |point: &(f64, f64)| {
        let [whole, single] = slow(point);
        whole <= (1.0 + ALIKE) * single
    };
    let left: Vec<f64> = edges.iter().filter(|point| strict(point)).map(|point| point.0).collect();
    let (Some(from), Some(to)) = (left.first(), left.last()) else {
        return "no combination is left within 5 %".into();
    };
    let windows = FAST.map(|machine| {
        let case = Case::exchanged(Role::Sender, "TF 2.3", machine);
        let (least, most) = simulated.leeway().window_with_octets(&case, (*from, *to));
        format!("{least:.1} to {most:.1}")
    });
    format!(
        "within 5 %, {} to {} thousand cycles per octet remain, and windows at 9600 are {} at 10 MHz and {} at 20",
        figure(*from),
        figure(*to),
        windows[0],
        windows[1]
    )
}

/// Finds the T2 with which TNC3 and TNC7 are below the others for every k < 7.
fn longer_t2(simulated: &Simulated) -> String {
    /// Longest T2 tried, seconds.
    const LONGEST: u32 = 10;
    let least = |window: u8| {
        let others = ["TNC2", "TNC2D", "KPC-9612+"];
        let of = |machine| simulated.throughput(Case::delivered(machine, SLOW_BPS).with_window(window));
        others.map(of).into_iter().fold(f64::MAX, f64::min)
    };
    let below = |t2_s: u32, machine: &'static str, window: u8| {
        let mut transfer = Case::delivered(machine, SLOW_BPS).with_window(window).transfer();
        transfer.recipient.controller.firmware.acknowledge_delay = Some(Duration::from_secs(t2_s.into()));
        mean(&transfer) < least(window)
    };
    let all_below = |t2_s: &u32| {
        (1..7).all(|window| ["TNC7multi", "TNC3S"].iter().all(|name| below(*t2_s, name, window)))
    };
    match (3..=LONGEST).find(all_below) {
        Some(t2_s) => {
            format!(
                "with {t2_s} s at 1200 bit/s both are below TNC2, TNC2D and KPC-9612+ for every k < 7, as published"
            )
        }
        None => format!("up to {LONGEST} s at 1200 bit/s they are not below all others for every k < 7"),
    }
}

/// Finds the T103 at which windows begin to shrink.
fn falling_windows() -> String {
    let windows = |machine: &'static str, milliseconds: u64| {
        let mut transfer = Case::delivered(machine, RATES_OF_TNC3[3]).long().transfer();
        transfer.tx_delay = Duration::from_millis(milliseconds);
        let means: Vec<f64> = (0..2).map(|seed| transfer.play(seed).mean_window()).collect();
        stats::mean(&means)
    };
    let tnc3 = [150, 100, 50].map(|milliseconds| format!("{:.1}", windows("TNC3S", milliseconds)));
    format!(
        "with 0.15, 0.1 and 0.05 s TNC3's mean window at 153.6 kbit/s falls to {}; TNC7's is {:.1} with 0.005 s",
        tnc3.join(", "),
        windows("TNC7multi", 5)
    )
}
