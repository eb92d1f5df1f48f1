//! Beyond the paper: overhead of each layer compared with the link alone, a lossy channel, and single frames.
//!
//! Everything uses the channel of Table I and ideal controllers, so that only the protocols differ.

use super::trials::{Exchange, Plan, Played, RUNS_COMPARED, channel, single_frames};
use super::{FILE_BYTES, RATES_BPS, ROWS, Row, params};
use crate::bench;
use crate::claim::{self, Claim};
use crate::convergence::Layer;
use crate::packets::Since;
use crate::papers::figures::Figures;
use crate::papers::text::Text;
use crate::radio::RadioScenario;
use crate::record::{Params, Record};
use crate::report::{Cell, Plot, Table};
use longwire_proto::time::Duration;

/// Shares of lost frames.
const LOSSES: [f64; 4] = [0.0, 0.05, 0.10, 0.25];
/// Window of the runs with losses, frames.
const WINDOW: u32 = 4;
/// Time to store a received bundle.
const STORE: Duration = Duration::from_millis(10);
/// Rates of single frames, frames per minute.
const PER_MINUTE: [f64; 3] = [1.0, 4.0, 16.0];
/// Useful life of a single frame, seconds.
const OF_USE_S: f64 = 5.0;
const SINGLE: &str = "single frames";

/// Protocols that carry the file, with the loss of the channel; the link alone comes first.
type Carrier = (&'static str, fn(&Plan<'_>, &Row, f64) -> Exchange);
const CARRIERS: [Carrier; 4] = [
    ("raw AX.25, from the connection request", |plan, row, loss| plan.packets(row, loss, Since::Connect)),
    ("AX25-CL (Longwire), from the connection request", |plan, row, loss| {
        plan.bundle(plan.transfer(row, loss), Layer::Own, Since::Connect, STORE)
    }),
    ("AX.25-CL, from the connection request", |plan, row, loss| {
        plan.bundle(plan.transfer(row, loss), Layer::Ax25Cm, Since::Connect, STORE)
    }),
    ("FTP over UI frames, complete session", |plan, row, loss| {
        let session = plan.session(row, loss);
        Exchange::new(move |seed| session.play(seed).map(|at| at.left_s))
    }),
];

/// Plays every protocol in every row without losses and at both rates with each loss, and single frames.
pub(super) fn play(plan: &Plan<'_>) -> Vec<Record> {
    let with_losses = ROWS.iter().filter(|row| row.window == WINDOW);
    let with_losses = with_losses.flat_map(|row| LOSSES[1..].iter().map(move |loss| (row, *loss)));
    let cases = ROWS.iter().map(|row| (row, 0.0)).chain(with_losses).flat_map(|(row, loss)| {
        let params = params(row).with("loss", loss);
        CARRIERS.map(|(name, of)| {
            bench::Case::new(name, params.clone(), of(plan, row, loss), plan.bench.seed, plan.runs)
        })
    });
    let of_case = |played: &Played| {
        let share = played.samples("transfer_s").len() as f64 / played.runs.len() as f64;
        let case = &played.case;
        let arrived = Record::of(&case.name, case.params.clone(), "arrived", "share of runs", &[share]);
        played.records().into_iter().chain([arrived])
    };
    let played = plan.bench.play(cases.collect());
    played.iter().flat_map(of_case).chain(singles(plan)).collect()
}

fn singles(plan: &Plan<'_>) -> Vec<Record> {
    // The hours are the runs of an experiment of its own.
    let (seed, hours) = (bench::Run::new(plan.bench.seed, 0).seed, plan.runs.min(RUNS_COMPARED));
    let case = |(rate_bps, per_minute): (f64, f64)| {
        let mut scenario = single_frames();
        (scenario.radio, scenario.frames.per_minute) = (channel(rate_bps), per_minute);
        let params = Params::new().with("rate_bps", rate_bps).with("per_minute", per_minute);
        let params = params.with("stations", scenario.frames.from.len() as u64);
        bench::Case::new(SINGLE, params, scenario, seed, hours)
    };
    let figures = |played: bench::Played<RadioScenario>| {
        let frames: u32 = played.outcomes().map(|outcome| outcome.frames).sum();
        let mut delays_s: Vec<f64> =
            played.outcomes().flat_map(|outcome| outcome.delays_s.iter().copied()).collect();
        delays_s.sort_by(f64::total_cmp);
        let share = |count: usize| count as f64 / f64::from(frames.max(1));
        let of_use = delays_s.partition_point(|delay| *delay <= OF_USE_S);
        let mean_s = delays_s.iter().sum::<f64>() / delays_s.len().max(1) as f64;
        let most_s = delays_s.get((delays_s.len() as f64 * 0.95) as usize).copied().unwrap_or(f64::NAN);
        [
            ("delivered", "share of frames", share(delays_s.len())),
            ("of_use", "share of frames", share(of_use)),
            ("delay_mean_s", "s", mean_s),
            ("delay_95_s", "s", most_s),
        ]
        .map(|(metric, unit, value)| Record::of(SINGLE, played.case.params.clone(), metric, unit, &[value]))
    };
    plan.bench.play(places().map(case).collect()).into_iter().flat_map(figures).collect()
}

fn at(rate_bps: f64, window: u32, loss: &str) -> String {
    format!("rate_bps={rate_bps} window={window} file_bytes={FILE_BYTES} loss={loss}")
}

/// Time beyond that of the link alone, as a share.
fn over(figures: Figures<'_>, name: &str, at: &str) -> f64 {
    let [time_s, bare_s] = [name, CARRIERS[0].0].map(|name| figures.mean(name, "transfer_s", at));
    time_s / bare_s - 1.0
}

/// Claims about the overhead of Longwire's convergence layer over the link alone.
pub(super) fn claims(figures: Figures<'_>) -> Vec<Claim> {
    let (name, _) = CARRIERS[1];
    let of_row = |row: &Row| {
        let over = over(figures, name, &at(row.rate_bps, row.window, "0"));
        Record::of(name, params(row).with("loss", 0.0), "over_link", "", &[over])
    };
    claim::attach(include_str!("aims.csv"), &mut ROWS.iter().map(of_row).collect::<Vec<_>>())
}

pub(super) fn cost_table(figures: Figures<'_>, text: &Text) -> Table {
    let row = |row: &Row| {
        let at = at(row.rate_bps, row.window, "0");
        let time = |name| figures.cell(name, "transfer_s", &at, "never");
        let others = CARRIERS[1..].iter();
        let others = others.flat_map(|(name, _)| [time(name), Cell::percent(over(figures, name, &at))]);
        let head = [Cell::number(row.rate_bps), Cell::number(row.window.into()), time(CARRIERS[0].0)];
        head.into_iter().chain(others).collect()
    };
    text.table("overhead", ROWS.iter().map(row))
}

pub(super) fn loss_table(figures: Figures<'_>, text: &Text) -> Table {
    let row = |(rate_bps, loss): (f64, f64)| {
        let at = at(rate_bps, WINDOW, &loss.to_string());
        let times = CARRIERS.map(|(name, _)| figures.cell(name, "transfer_s", &at, "never"));
        let arrived =
            CARRIERS.map(|(name, _)| format!("{:.0} %", 100.0 * figures.mean(name, "arrived", &at)));
        let head = [Cell::number(rate_bps), Cell::percent(loss)];
        head.into_iter().chain(times).chain([Cell::text(arrived.join(", "))]).collect()
    };
    text.table("losses", RATES_BPS.into_iter().flat_map(|rate| LOSSES.map(|loss| (rate, loss))).map(row))
}

pub(super) fn loss_plot(figures: Figures<'_>, text: &Text, rate_bps: f64) -> Plot {
    CARRIERS.into_iter().fold(text.plot(&format!("losses-{rate_bps}")), |plot, (name, _)| {
        plot.with(figures.curve(name, name, "transfer_s", &at(rate_bps, WINDOW, "*")))
    })
}

pub(super) fn single_table(figures: Figures<'_>, text: &Text) -> Table {
    let row = |(rate_bps, per_minute): (f64, f64)| {
        let at = format!("rate_bps={rate_bps} per_minute={per_minute} stations=5");
        let mean = |metric| figures.mean(SINGLE, metric, &at);
        let shares = ["delivered", "of_use"].map(|metric| Cell::percent(mean(metric)));
        let delays = ["delay_mean_s", "delay_95_s"].map(|metric| Cell::precise(mean(metric), 2));
        [rate_bps, per_minute].map(Cell::number).into_iter().chain(shares).chain(delays).collect()
    };
    text.table("singles", places().map(row))
}

/// Rates of the channel and of single frames.
fn places() -> impl Iterator<Item = (f64, f64)> {
    RATES_BPS.into_iter().flat_map(|rate| PER_MINUTE.map(|often| (rate, often)))
}
