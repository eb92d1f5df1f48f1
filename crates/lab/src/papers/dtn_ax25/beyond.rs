//! Beyond the paper: overhead of each layer compared with the link alone, a lossy channel, and single frames.
//!
//! Everything uses the channel of Table I and ideal controllers, so that only the protocols differ.

use super::trials::{Exchange, Plan, Played, READING, channel};
use super::{FILE_BYTES, RATES_BPS, ROWS, Row, params};
use crate::bench;
use crate::claim::{Claim, Ours, Published, Rule};
use crate::convergence::Layer;
use crate::packets::Since;
use crate::radio;
use crate::record::{FigureKind, Params, Record};
use crate::report::{Axis, Cell, Column, Plot, PlotSeries, Point, Table};
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

/// Protocols that carry the file, with the loss of the channel.
type Carrier = (&'static str, fn(&Plan<'_>, &Row, f64) -> Exchange);
const CARRIERS: [Carrier; 4] = [
    ("raw AX.25, from the connection request", |plan, row, loss| {
        Exchange::Packets(plan.transfer(row, loss), Since::Call)
    }),
    ("AX25-CL (Longwire), from the connection request", |plan, row, loss| {
        plan.bundle(plan.transfer(row, loss), Layer::Own, Since::Call, STORE)
    }),
    ("AX.25-CL, from the connection request", |plan, row, loss| {
        plan.bundle(plan.transfer(row, loss), Layer::Ax25Cm, Since::Call, STORE)
    }),
    ("FTP over UI frames, complete session", |plan, row, loss| {
        Exchange::Session(READING.session(plan, row, None, loss), |at| at.left_s)
    }),
];

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
    /// Every protocol in every row without losses: by row, then in the order of [`CARRIERS`].
    costs: Vec<Played>,
    /// Every protocol at both rates with each loss, in the same order.
    losses: Vec<Played>,
    singles: Vec<Single>,
}

impl Beyond {
    pub(super) fn play(plan: &Plan<'_>) -> Beyond {
        let every = |row: &Row, loss: f64| {
            CARRIERS.map(|(name, exchange)| {
                plan.case(name, params(row).with("loss", loss), exchange(plan, row, loss))
            })
        };
        let costs = ROWS.iter().flat_map(|row| every(row, 0.0)).collect();
        let rows = ROWS.iter().filter(|row| row.window == WINDOW);
        let losses = rows.flat_map(|row| LOSSES.map(|loss| every(row, loss))).flatten().collect();
        Beyond { costs: plan.bench.play(costs), losses: plan.bench.play(losses), singles: singles(plan) }
    }

    /// Claims about the overhead of Longwire's convergence layer over the link alone.
    pub(super) fn claims(&self) -> Vec<Claim> {
        let claim = |row: &[Played]| {
            let (rate_bps, window) = (row[0].param("rate_bps"), row[0].param("window"));
            let aim = COST_MAX[RATES_BPS.iter().position(|rate| *rate == rate_bps)?];
            let over = Record::of(
                CARRIERS[1].0,
                row[0].case.params.clone(),
                "over_link",
                "",
                &[over(&row[1], &row[0])],
            );
            COST_WINDOWS.contains(&(window as u32)).then(|| Claim {
                what: format!("time of AX25-CL (Longwire) beyond raw AX.25, {rate_bps} bit/s, k = {window}"),
                place: "aim".into(),
                published: Published::Point(aim),
                ours: Ours::Figures(vec![over]),
                rule: Rule::Below,
                kind: FigureKind::Predicted,
                why: "waits for the channel are random".into(),
            })
        };
        self.costs.chunks(CARRIERS.len()).filter_map(claim).collect()
    }

    pub(super) fn records(&self) -> Vec<Record> {
        let of_carrier = |played: &Played| {
            let share = played.samples("transfer_s").len() as f64 / played.runs.len() as f64;
            let case = &played.case;
            let arrived = Record::of(&case.name, case.params.clone(), "arrived", "share of runs", &[share]);
            played.records().into_iter().chain([arrived])
        };
        let of_single = |single: &Single| {
            let params = Params::new()
                .with("rate_bps", single.rate_bps)
                .with("per_minute", single.per_minute)
                .with("stations", STATIONS as u64);
            [
                ("delivered", "share of frames", single.arrived),
                ("of_use", "share of frames", single.of_use),
                ("delay_mean_s", "s", single.delay_s),
                ("delay_95_s", "s", single.delay_95_s),
            ]
            .map(|(metric, unit, value)| Record::of("single frames", params.clone(), metric, unit, &[value]))
        };
        // The case without losses is already among the costs.
        let lossy = self.losses.iter().filter(|played| played.param("loss") > 0.0);
        let singles = self.singles.iter().flat_map(of_single);
        self.costs.iter().chain(lossy).flat_map(of_carrier).chain(singles).collect()
    }

    pub(super) fn cost_table(&self) -> Table {
        let more = || Column::number("more than raw", "");
        let mut table = Table::new(
            "Overhead of each layer compared with the link alone, from the connection request to the last \
             acknowledgement",
            [
                Column::number("rate", "bit/s"),
                Column::number("k", ""),
                Column::number("raw AX.25", "s"),
                Column::number("AX25-CL (Longwire)", "s"),
                more(),
                Column::number("AX.25-CL", "s"),
                more(),
                Column::number("FTP over UI frames, complete session", "s"),
                more(),
            ],
        );
        for row in self.costs.chunks(CARRIERS.len()) {
            let head = ["rate_bps", "window"].map(|name| Cell::number(row[0].param(name)));
            let others =
                row[1..].iter().flat_map(|played| [time(played), Cell::percent(over(played, &row[0]))]);
            table.row(head.into_iter().chain([time(&row[0])]).chain(others));
        }
        table
    }

    pub(super) fn loss_table(&self) -> Table {
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
        for row in self.losses.chunks(CARRIERS.len()) {
            let arrived =
                |played: &Played| format!("{}/{}", played.samples("transfer_s").len(), played.runs.len());
            let arrived: Vec<String> = row.iter().map(arrived).collect();
            let head = [Cell::number(row[0].param("rate_bps")), Cell::percent(row[0].param("loss"))];
            table.row(head.into_iter().chain(row.iter().map(time)).chain([Cell::text(arrived.join(", "))]));
        }
        table
    }

    pub(super) fn loss_plot(&self, rate_bps: f64) -> Plot {
        let title = format!("Frame loss at {rate_bps} bit/s, k = {WINDOW}");
        let plot = Plot::new(title, Axis::new("frame loss", "%"), Axis::new("transfer time", "s").log());
        CARRIERS.into_iter().fold(plot, |plot, (name, _)| {
            let here = self.losses.iter().filter(|played| played.case.name == name);
            let here = here.filter(|played| played.param("rate_bps") == rate_bps);
            let point = |played: &Played| {
                Some(Point::of(100.0 * played.param("loss"), &played.record("transfer_s")?))
            };
            plot.with(PlotSeries::new(name, here.filter_map(point).collect()))
        })
    }

    pub(super) fn single_table(&self) -> Table {
        let mut table = Table::new(
            format!(
                "Single frames of {SINGLE_BYTES} bytes from {STATIONS} stations in range of each other, with one \
                 receiver"
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
        for single in &self.singles {
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
}

/// Time beyond that of the link alone, as a share.
fn over(played: &Played, bare: &Played) -> f64 {
    played.mean("transfer_s") / bare.mean("transfer_s") - 1.0
}

fn time(played: &Played) -> Cell {
    if played.record("transfer_s").is_none() { Cell::text("never") } else { played.cell("transfer_s") }
}

fn singles(plan: &Plan<'_>) -> Vec<Single> {
    let places: Vec<(f64, f64)> =
        RATES_BPS.into_iter().flat_map(|rate| PER_MINUTE.map(|often| (rate, often))).collect();
    let hours = plan.with_runs(HOURS_MAX).runs;
    // The hours are the runs of an experiment of its own.
    let seed = bench::Run::new(plan.bench.seed, 0).seed;
    let case = |&(rate_bps, per_minute): &(f64, f64)| {
        let names: Vec<String> = (0..=STATIONS).map(|at| format!("station {at}")).collect();
        let frames = radio::FrameLoad {
            from: names[1..].to_vec(),
            to: names[..1].to_vec(),
            bytes: SINGLE_BYTES,
            per_minute,
            ..radio::FrameLoad::default()
        };
        let radio = channel(rate_bps);
        let scenario =
            radio::RadioScenario { nodes: names, frames, radio, ..radio::RadioScenario::default() };
        bench::Case::new("single frames", Params::new(), scenario, seed, hours)
    };
    let played = plan.bench.play(places.iter().map(case).collect());
    let single = |((rate_bps, per_minute), played): ((f64, f64), bench::Played<radio::RadioScenario>)| {
        let said: u32 = played.outcomes().map(|outcome| outcome.frames).sum();
        let mut delays_s: Vec<f64> =
            played.outcomes().flat_map(|outcome| outcome.delays_s.iter().copied()).collect();
        delays_s.sort_by(f64::total_cmp);
        let share = |count: usize| count as f64 / f64::from(said.max(1));
        Single {
            rate_bps,
            per_minute,
            arrived: share(delays_s.len()),
            of_use: share(delays_s.partition_point(|delay| *delay <= OF_USE_S)),
            delay_s: delays_s.iter().sum::<f64>() / delays_s.len().max(1) as f64,
            delay_95_s: delays_s.get((delays_s.len() as f64 * 0.95) as usize).copied().unwrap_or(f64::NAN),
        }
    };
    places.iter().copied().zip(played).map(single).collect()
}
