//! Beyond the paper: overhead of each layer compared with the link alone, a lossy channel, and single frames.
//!
//! Everything uses the channel of Table I and ideal controllers, so that only the protocols differ.

use super::simulated::{Exchange, Plan, channel};
use super::tcpip;
use super::{FILE_BYTES, RATES_BPS, Row, TIMES, params, said};
use crate::bench;
use crate::convergence::{Carried, Layer};
use crate::packets::{Since, Transfer};
use crate::radio;
use crate::record::{Params, Record};
use crate::report::{Axis, Cell, Column, Plot, PlotSeries, Point, Table};
use crate::stats::Summary;
use longwire_proto::time::Duration;

/// Shares of lost frames.
const LOSSES: [f64; 4] = [0.0, 0.05, 0.10, 0.25];
/// Window of the runs with losses, frames.
const WINDOW: u32 = 4;
/// Time to store a received bundle.
const STORE: Duration = Duration::from_millis(10);
/// Aim for the overhead of Longwire's convergence layer over the link alone, as a share, by rate, with these windows.
const COST_MAX: [f64; 2] = [0.03, 0.05];
const COST_WINDOWS: core::ops::RangeInclusive<u32> = 4..=7;
/// Stations that send single frames, and the rates, frames per minute.
const STATIONS: usize = 5;
const PER_MINUTE: [f64; 3] = [1.0, 4.0, 16.0];
/// Information octets of a single frame.
const SINGLE_BYTES: u32 = 64;
/// Useful life of a single frame, seconds.
const OF_USE_S: f64 = 5.0;
/// Maximum hours of single frames simulated.
const HOURS_MAX: u32 = 10;

/// Protocol that carries the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carrier {
    Bare,
    Ours,
    Ax25Cm,
    Ftp,
}

impl Carrier {
    const ALL: [Carrier; 4] = [Carrier::Bare, Carrier::Ours, Carrier::Ax25Cm, Carrier::Ftp];

    const fn name(self) -> &'static str {
        match self {
            Carrier::Bare => "raw AX.25, from the connection request",
            Carrier::Ours => "AX25-CL (Longwire), from the connection request",
            Carrier::Ax25Cm => "AX.25-CL, from the connection request",
            Carrier::Ftp => "FTP over UI frames, complete session",
        }
    }
}

/// Transfer to be simulated.
struct Case {
    carrier: Carrier,
    row: &'static Row,
    loss: f64,
}

impl Case {
    fn params(&self) -> Params {
        params(self.row).with("loss", self.loss)
    }

    fn exchange(&self, plan: &Plan<'_>) -> Exchange {
        let transfer = Transfer { loss: self.loss, ..plan.transfer(self.row) };
        let bundle = |layer, transfer| {
            let bundle = plan.bundle.clone();
            Exchange::Bundle(Carried { transfer, layer, since: Since::Call, stored_after: STORE, bundle })
        };
        match self.carrier {
            Carrier::Bare => Exchange::Packets(transfer, Since::Call),
            Carrier::Ours => bundle(Layer::Own, transfer),
            Carrier::Ax25Cm => bundle(Layer::Ax25Cm, transfer),
            Carrier::Ftp => {
                let session = tcpip::USED.with_ideal_controllers(plan, self.row, self.loss);
                Exchange::Session(session, |at| at.left_s)
            }
        }
    }
}

/// Results of the runs of a case.
struct Played {
    case: Case,
    /// Times of the completed runs, seconds.
    times_s: Vec<f64>,
    runs: usize,
}

impl Played {
    fn mean_s(&self) -> f64 {
        Summary::of(&self.times_s).mean
    }

    fn records(&self) -> impl Iterator<Item = Record> {
        let name = self.case.carrier.name();
        let time = (!self.times_s.is_empty())
            .then(|| Record::of(name, self.case.params(), "transfer_s", "s", &self.times_s));
        let share = self.times_s.len() as f64 / self.runs as f64;
        let arrived = Record::of(name, self.case.params(), "arrived", "share of runs", &[share]);
        time.into_iter().chain([arrived])
    }

    fn cell(&self) -> Cell {
        match self.times_s.len() {
            0 => Cell::text("never"),
            _ => Cell::summary(&Summary::of(&self.times_s)),
        }
    }
}

/// Results for single frames at one rate and load.
struct Single {
    rate_bps: f64,
    per_minute: f64,
    arrived: f64,
    of_use: f64,
    delay_s: f64,
    delay_95_s: f64,
}

/// All results beyond the paper.
pub(super) struct Beyond {
    /// Every protocol in every row without losses: by row, then in the order of [`Carrier::ALL`].
    costs: Vec<Played>,
    /// Every protocol at both rates with each loss, in the same order.
    losses: Vec<Played>,
    singles: Vec<Single>,
}

impl Beyond {
    pub(super) fn play(plan: &Plan<'_>) -> Beyond {
        let every = |row: &'static Row, loss: f64| Carrier::ALL.map(|carrier| Case { carrier, row, loss });
        let costs = TIMES.iter().flat_map(|row| every(row, 0.0)).collect();
        let rows = || TIMES.iter().filter(|row| row.window == WINDOW);
        let losses = rows().flat_map(|row| LOSSES.into_iter().flat_map(move |loss| every(row, loss)));
        Beyond { costs: run(plan, costs), losses: run(plan, losses.collect()), singles: singles(plan) }
    }

    fn costs(&self) -> impl Iterator<Item = &[Played]> {
        self.costs.chunks(Carrier::ALL.len())
    }

    /// Iterates over the rows with an aim: overhead of Longwire's convergence layer over the link alone, and the aim,
    /// as shares.
    pub(super) fn own_costs(&self) -> impl Iterator<Item = (&'static Row, f64, f64)> {
        let rows = self.costs().filter(|row| COST_WINDOWS.contains(&row[0].case.row.window));
        rows.map(|row| (row[0].case.row, over(&row[1], &row[0]), aim(row[0].case.row)))
    }

    pub(super) fn records(&self) -> impl Iterator<Item = Record> {
        let singles = self.singles.iter().flat_map(|single| {
            let of = |metric: &str, unit: &str, value: f64| {
                let params = Params::new().with("rate_bps", single.rate_bps);
                let params = params.with("per_minute", single.per_minute).with("stations", STATIONS as u64);
                Record::of("single frames", params, metric, unit, &[value])
            };
            [
                of("delivered", "share of frames", single.arrived),
                of("of_use", "share of frames", single.of_use),
                of("delay_mean_s", "s", single.delay_s),
                of("delay_95_s", "s", single.delay_95_s),
            ]
        });
        // The case without losses is already among the costs.
        let lossy = self.losses.iter().filter(|played| played.case.loss > 0.0);
        self.costs.iter().chain(lossy).flat_map(Played::records).chain(singles)
    }
}

fn aim(row: &Row) -> f64 {
    if row.rate_bps == RATES_BPS[0] { COST_MAX[0] } else { COST_MAX[1] }
}

fn over(played: &Played, bare: &Played) -> f64 {
    played.mean_s() / bare.mean_s() - 1.0
}

fn run(plan: &Plan<'_>, cases: Vec<Case>) -> Vec<Played> {
    let case = |case: &Case| plan.case(case.carrier.name(), case.params(), case.exchange(plan));
    let all = plan.bench.play(cases.iter().map(case).collect());
    let played = |(case, played): (Case, bench::Played<Exchange>)| Played {
        case,
        runs: played.runs.len(),
        times_s: played.samples("transfer_s"),
    };
    cases.into_iter().zip(all).map(played).collect()
}

fn singles(plan: &Plan<'_>) -> Vec<Single> {
    let places =
        RATES_BPS.into_iter().flat_map(|rate| PER_MINUTE.into_iter().map(move |often| (rate, often)));
    let places: Vec<(f64, f64)> = places.collect();
    let hours = plan.with_runs(HOURS_MAX).runs;
    // The hours are the runs of an experiment of its own.
    let seed = bench::Run::new(plan.bench.seed, 0).seed;
    let case = |&(rate_bps, per_minute): &(f64, f64)| {
        let names = (0..=STATIONS).map(|at| format!("station {at}"));
        let frames = radio::FrameLoad {
            from: names.clone().skip(1).collect(),
            to: names.clone().take(1).collect(),
            bytes: SINGLE_BYTES,
            per_minute,
            ..radio::FrameLoad::default()
        };
        let scenario = radio::RadioScenario {
            nodes: names.collect(),
            frames,
            radio: channel(rate_bps),
            ..radio::RadioScenario::default()
        };
        bench::Case::new("single frames", Params::new(), scenario, seed, hours)
    };
    let played = plan.bench.play(places.iter().map(case).collect());
    let single = |((rate_bps, per_minute), played): ((f64, f64), bench::Played<radio::RadioScenario>)| {
        let said: u32 = played.outcomes().map(|outcome| outcome.frames).sum();
        let mut delays_s: Vec<f64> =
            played.outcomes().flat_map(|outcome| outcome.delays_s.iter().copied()).collect();
        delays_s.sort_by(f64::total_cmp);
        let share = |count: usize| count as f64 / f64::from(said.max(1));
        let at =
            |share: f64| delays_s.get((delays_s.len() as f64 * share) as usize).copied().unwrap_or(f64::NAN);
        Single {
            rate_bps,
            per_minute,
            arrived: share(delays_s.len()),
            of_use: share(delays_s.partition_point(|delay| *delay <= OF_USE_S)),
            delay_s: delays_s.iter().sum::<f64>() / delays_s.len().max(1) as f64,
            delay_95_s: at(0.95),
        }
    };
    places.iter().copied().zip(played).map(single).collect()
}

pub(super) fn cost_table(beyond: &Beyond) -> Table {
    let mut table = Table::new(
        "Overhead of each layer compared with the link alone, from the connection request to the last \
         acknowledgement",
        [
            Column::number("rate", "bit/s"),
            Column::number("k", ""),
            Column::number("raw AX.25", "s"),
            Column::number("AX25-CL (Longwire)", "s"),
            Column::number("more than raw", ""),
            Column::text("aim"),
            Column::number("AX.25-CL", "s"),
            Column::number("more than raw", ""),
            Column::number("FTP over UI frames, complete session", "s"),
            Column::number("more than raw", ""),
        ],
    );
    for row in beyond.costs() {
        let [bare, ours, ax25cm, ftp] = row else { panic!("one of each carrier") };
        let at = bare.case.row;
        let more = over(ours, bare);
        let words = format!("below {:.0} %", 100.0 * aim(at));
        let verdict = match COST_WINDOWS.contains(&at.window) {
            true => said(more < aim(at), &words, &format!("not {words}")),
            false => Cell::empty(),
        };
        table.row([
            Cell::number(at.rate_bps),
            Cell::number(f64::from(at.window)),
            bare.cell(),
            ours.cell(),
            Cell::percent(more),
            verdict,
            ax25cm.cell(),
            Cell::percent(over(ax25cm, bare)),
            ftp.cell(),
            Cell::percent(over(ftp, bare)),
        ]);
    }
    table
}

pub(super) fn loss_table(beyond: &Beyond) -> Table {
    let mut table = Table::new(
        format!("{FILE_BYTES} bytes on a lossy channel, k = {WINDOW}"),
        [
            Column::number("rate", "bit/s"),
            Column::number("frame loss", ""),
            Column::number("raw AX.25", "s"),
            Column::number("AX25-CL (Longwire)", "s"),
            Column::number("AX.25-CL", "s"),
            Column::number("FTP over UI frames", "s"),
            Column::text("arrived, of runs"),
        ],
    );
    for row in beyond.losses.chunks(Carrier::ALL.len()) {
        let arrived: Vec<String> =
            row.iter().map(|played| format!("{}/{}", played.times_s.len(), played.runs)).collect();
        let head = [Cell::number(row[0].case.row.rate_bps), Cell::percent(row[0].case.loss)];
        let times = row.iter().map(Played::cell);
        table.row(head.into_iter().chain(times).chain([Cell::text(arrived.join(", "))]));
    }
    table
}

pub(super) fn loss_plot(beyond: &Beyond, rate_bps: f64) -> Plot {
    let title = format!("Frame loss at {rate_bps} bit/s, k = {WINDOW}");
    let plot = Plot::new(title, Axis::new("frame loss", "%"), Axis::new("transfer time", "s").log());
    Carrier::ALL.into_iter().fold(plot, |plot, carrier| {
        let here = beyond.losses.iter().filter(|played| {
            played.case.carrier == carrier
                && played.case.row.rate_bps == rate_bps
                && !played.times_s.is_empty()
        });
        let points = here.map(|played| {
            let record = Record::of(carrier.name(), played.case.params(), "transfer_s", "s", &played.times_s);
            Point::of(100.0 * played.case.loss, &record)
        });
        plot.with(PlotSeries::new(carrier.name(), points.collect()))
    })
}

pub(super) fn single_table(beyond: &Beyond) -> Table {
    let mut table = Table::new(
        format!(
            "Single frames of {SINGLE_BYTES} bytes from {STATIONS} stations in range of each other, with one receiver"
        ),
        [
            Column::number("rate", "bit/s"),
            Column::number("frames per station", "frames/min"),
            Column::number("arrived", ""),
            Column::number("arrived within 5 s", ""),
            Column::number("mean delay", "s"),
            Column::number("95 % within", "s"),
        ],
    );
    for single in &beyond.singles {
        table.row([
            Cell::number(single.rate_bps),
            Cell::number(single.per_minute),
            Cell::percent(single.arrived),
            Cell::percent(single.of_use),
            Cell::precise(single.delay_s, 2),
            Cell::precise(single.delay_95_s, 2),
        ]);
    }
    table
}
