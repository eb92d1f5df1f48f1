//! Simulations on a radio channel: raw AX.25, the convergence layer and TCP/IP, in every row.

use super::beyond::Beyond;
use super::closed::closed_form;
use super::rigs;
use super::tcpip::{self, Fit, NEAR, TCP};
use super::{FILE_BYTES, RUNS, Row, SAME, TIMES, is_fitted, params, said, table_of, time_s};
use crate::bench::{self, Bench, Case, Metric, Played, Trial};
use crate::convergence::Carried;
use crate::ftp::{FtpSession, SessionTimes};
use crate::model::ax25::Model;
use crate::packets::{Since, Transfer};
use crate::record::{self, FigureKind, Params, Record};
use crate::report::{Cell, Column, Table};
use bytes::Bytes;
use longwire_proto::rng::Rng;
use longwire_proto::time::Duration;
use longwire_sim::{Access, RadioConfig, StationConfig};

/// Series of raw AX.25.
pub(super) const RAW: &str = "raw AX.25, simulated";

/// Series of the convergence layer.
pub(super) const BUNDLES: &str = "AX.25-CL, simulated";

/// Overhead of a bundle in version 6 with short names, bytes; not published.
pub(super) const BUNDLE_HEADER_BYTES: usize = 90;

/// Channel of Table I with the persistence of a KISS TNC.
pub(super) fn channel(rate_bps: f64) -> RadioConfig {
    let station = StationConfig {
        tx_delay: Duration::from_millis(150),
        tx_tail: Duration::from_millis(20),
        slot_time: Duration::from_millis(20),
        persistence: 63,
        access: Access::DrawThenWait,
        ..StationConfig::default()
    };
    RadioConfig { rate_bps: rate_bps as u64, stations: vec![station], ..RadioConfig::default() }
}

/// Transfer of the file by one protocol on one channel.
pub(super) enum Exchange {
    /// Packets over the link alone.
    Packets(Transfer, Since),
    /// Bundle by a convergence layer.
    Bundle(Carried),
    /// FTP session, and the part of it that is timed.
    Session(FtpSession, fn(&SessionTimes) -> f64),
}

impl Trial for Exchange {
    /// Seconds; `None` if the file does not arrive.
    type Outcome = Option<f64>;

    const METRICS: &'static [Metric<Option<f64>>] = &[Metric::new("transfer_s", "s", |seconds| *seconds)];

    fn play(&self, run: bench::Run) -> Option<f64> {
        match self {
            Exchange::Packets(transfer, since) => transfer.seconds(*since, run.seed),
            Exchange::Bundle(carried) => carried.seconds(run.seed),
            Exchange::Session(session, took_s) => session.play(run.seed).map(|at| took_s(&at)),
        }
    }
}

/// Row with its runs, all of which delivered.
pub(super) struct Timed {
    pub(super) row: &'static Row,
    played: Played<Exchange>,
}

/// Results of the simulations.
pub(super) struct Simulated {
    pub(super) raw: Vec<Timed>,
    /// Closed form of the channel of each row, seconds.
    pub(super) closed_s: Vec<f64>,
    /// AX.25-CL with that turnaround.
    pub(super) bundles: Vec<Timed>,
    /// TCP/IP with that turnaround.
    pub(super) tcp: Vec<Timed>,
    /// Deviations of the readings of the timed part.
    pub(super) fits: Vec<Fit>,
    /// Turnaround of a controller, fitted on the first row, seconds.
    pub(super) turn_s: f64,
    /// Deviations of other test setups.
    pub(super) rigs: Vec<rigs::Fit>,
    /// Results beyond the paper.
    pub(super) beyond: Beyond,
}

/// Maximum runs per row for comparisons.
const RUNS_COMPARED: u32 = 10;

/// File, and number and seed of the runs.
pub(super) struct Plan<'a> {
    pub(super) bench: Bench<'a>,
    /// Runs per row.
    pub(super) runs: u32,
    pub(super) file: Bytes,
    pub(super) bundle: Bytes,
}

impl Plan<'_> {
    /// Transfer of the file in packets that fill a frame, on the channel of Table I, with ideal controllers.
    pub(super) fn transfer(&self, row: &Row) -> Transfer {
        let information_bytes = Model::ronan_2011().information_bytes;
        let (bytes, length) = (self.file.len(), information_bytes as usize);
        Transfer {
            radio: channel(row.rate_bps),
            tnc: None,
            loss: 0.0,
            window: row.window as u8,
            information_bytes,
            packets: (0..bytes)
                .step_by(length)
                .map(|at| self.file.slice(at..bytes.min(at + length)))
                .collect(),
        }
    }

    /// The same with fewer runs per row.
    pub(super) fn with_runs(&self, runs: u32) -> Self {
        let (file, bundle) = (self.file.clone(), self.bundle.clone());
        Plan { runs: self.runs.min(runs), file, bundle, ..*self }
    }

    /// Creates a case with all runs.
    pub(super) fn case<T>(&self, series: &str, params: Params, trial: T) -> Case<T> {
        Case::new(series, params, trial, self.bench.seed, self.runs)
    }

    /// Simulates all runs of these rows.
    pub(super) fn play(
        &self,
        series: &str,
        rows: &'static [Row],
        exchange: impl Fn(&Row) -> Exchange,
    ) -> Vec<Timed> {
        let cases = rows.iter().map(|row| self.case(series, params(row), exchange(row))).collect();
        let timed = |(row, played): (&'static Row, Played<Exchange>)| {
            assert!(played.outcomes().all(Option::is_some), "a channel without errors delivers");
            Timed { row, played }
        };
        rows.iter().zip(self.bench.play(cases)).map(timed).collect()
    }
}

/// Simulates raw AX.25 and the convergence layer in every row, with a file of random bytes.
pub(super) fn simulate(bench: &Bench<'_>) -> Simulated {
    let mut bundle = vec![0; FILE_BYTES as usize + BUNDLE_HEADER_BYTES];
    Rng::new(bench.seed).fork("file").fill(&mut bundle);
    let bundle = Bytes::from(bundle);
    let plan =
        Plan { bench: *bench, runs: bench.runs(RUNS), file: bundle.slice(BUNDLE_HEADER_BYTES..), bundle };
    let rig = rigs::USED;
    let turn_s = rig.fitted_turn_s(&plan);
    let model = closed_form(&plan.file);
    let tcp = |row: &Row| tcpip::USED.exchange(&plan, row, turn_s);
    let few = plan.with_runs(RUNS_COMPARED);
    let every = if bench.thin { 4 } else { 1 };
    Simulated {
        raw: plan.play(RAW, &TIMES, |row| Exchange::Packets(plan.transfer(row), Since::Wish)),
        closed_s: TIMES.iter().map(|row| time_s(&model, row)).collect(),
        bundles: rig.play(&plan, &TIMES, turn_s),
        tcp: plan.play(TCP, &TIMES, tcp),
        fits: tcpip::readings().iter().step_by(every).map(|reading| Fit::of(reading, &few, turn_s)).collect(),
        turn_s,
        rigs: rigs::all().iter().step_by(every).map(|rig| rigs::Fit::of(rig, &few)).collect(),
        beyond: Beyond::play(&plan),
    }
}

impl Timed {
    /// Times of the runs, seconds.
    pub(super) fn times_s(&self) -> Vec<f64> {
        self.played.samples("transfer_s")
    }

    pub(super) fn record(&self) -> Record {
        self.played.record("transfer_s").expect("a row has a run")
    }

    pub(super) fn rows(&self) -> Vec<record::Row> {
        self.played.rows()
    }
}

impl Simulated {
    /// Deviation of a row of raw AX.25 from the closed form, as a share.
    pub(super) fn off(&self, index: usize) -> f64 {
        self.raw[index].record().mean / self.closed_s[index] - 1.0
    }

    /// Deviation of a row of the convergence layer from the published time, as a share.
    pub(super) fn error(&self, index: usize) -> f64 {
        self.bundles[index].record().mean / TIMES[index].convergence_s - 1.0
    }

    pub(super) fn rows_within(&self, bound: f64) -> usize {
        (1..TIMES.len()).filter(|index| self.error(*index).abs() <= bound).count()
    }

    /// Deviation of a row of TCP/IP from the published time, as a share.
    pub(super) fn tcp_error(&self, index: usize) -> f64 {
        self.tcp[index].record().mean / TIMES[index].tcp_s - 1.0
    }

    /// Returns true if a row of TCP/IP is within the tolerance of its published time.
    pub(super) fn tcp_is_near(&self, index: usize) -> bool {
        self.tcp_error(index).abs() <= NEAR
    }

    /// Returns true if a row has the published order: model, AX.25-CL, TCP/IP.
    pub(super) fn is_ordered(&self, index: usize) -> bool {
        let bundles_s = self.bundles[index].record().mean;
        time_s(&Model::ronan_2011(), &TIMES[index]) < bundles_s && bundles_s < self.tcp[index].record().mean
    }

    /// Number of rows that satisfy a condition.
    pub(super) fn rows(&self, holds: impl Fn(&Self, usize) -> bool) -> usize {
        (0..TIMES.len()).filter(|index| holds(self, *index)).count()
    }

    /// Fewest and most runs of a row.
    pub(super) fn runs(&self) -> (usize, usize) {
        let runs = || self.all().map(|timed| timed.played.runs.len());
        (runs().min().unwrap_or(0), runs().max().unwrap_or(0))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Timed> {
        self.raw.iter().chain(&self.bundles).chain(&self.tcp)
    }

    pub(super) fn records(&self) -> Vec<Record> {
        let raw = self.raw.iter().map(|timed| {
            timed.record().with_reference(timed.row.model_s, table_of(timed.row, "Table II", "Table III"))
        });
        let bundles = self.bundles.iter().map(|timed| {
            let source = table_of(timed.row, "Table V, AX.25-CL", "Table VII, AX.25-CL");
            let kind = if is_fitted(timed.row) { FigureKind::Calibrated } else { FigureKind::Predicted };
            timed.record().with_reference(timed.row.convergence_s, source).with_kind(kind)
        });
        let tcp = self.tcp.iter().map(|timed| {
            let source = table_of(timed.row, "Table V, TCP/IP", "Table VII, TCP/IP");
            // The timed part was chosen from the readings because of these times.
            timed.record().with_reference(timed.row.tcp_s, source).with_kind(FigureKind::Calibrated)
        });
        raw.chain(bundles).chain(tcp).chain(self.beyond.records()).collect()
    }
}

pub(super) fn raw_table(simulated: &Simulated) -> Table {
    let mut table = Table::new(
        "Plain AX.25 on a simulated channel, from the send request to the last acknowledgement",
        [
            Column::number("rate", "bit/s"),
            Column::number("k", ""),
            Column::number("simulated", "s"),
            Column::number("closed form, same channel", "s"),
            Column::number("difference", ""),
            Column::text("within 2 %"),
            Column::number("Tables II and III", "s"),
        ],
    );
    for (index, raw) in simulated.raw.iter().enumerate() {
        table.row([
            Cell::number(raw.row.rate_bps),
            Cell::number(f64::from(raw.row.window)),
            Cell::summary(&raw.record().summary()),
            Cell::precise(simulated.closed_s[index], 2),
            Cell::percent(simulated.off(index)),
            said(simulated.off(index).abs() <= SAME, "yes", "NO"),
            Cell::precise(raw.row.model_s, 1),
        ]);
    }
    table
}
