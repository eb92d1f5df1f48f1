//! Simulations on a radio channel: raw AX.25, the convergence layer and TCP/IP, in every row.
//!
//! The paper mentions radios with controllers in KISS mode, serial lines and hosts with the AX.25 of Linux, and gives no
//! figures for them but the times. One constant is fitted for each test setup, on the first row: the turnaround of a
//! controller. Nor does the paper state what carried the packets of TCP/IP and which part of a session was timed. One
//! reading is close to all its rows, and the page shows the deviations of the others.

use super::beyond::Beyond;
use super::{BUNDLES, FILE_BYTES, RAW, ROWS, Row, TCP, params};
use crate::bench::{self, Bench, Case, Metric, Trial};
use crate::convergence::{Carried, Layer};
use crate::ftp::{DataConnectionMode, FtpSession, SessionTimes};
use crate::internet::Internet;
use crate::model::ax25::Model;
use crate::packets::{Since, Transfer};
use crate::record::Params;
use crate::stats::mean;
use bytes::Bytes;
use longwire_proto::ax25::IpMode;
use longwire_proto::rng::Rng;
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::Duration;
use longwire_sim::{Access, RadioConfig, StationConfig, TncConfig};

/// Default runs per row: the wait for a slot is random, and at 9600 bit/s it is a large part of the time.
const RUNS: u32 = 40;
/// Maximum runs per row for comparisons.
const RUNS_COMPARED: u32 = 10;
/// Overhead of a bundle in version 6 with short names, bytes; not published.
const BUNDLE_HEADER_BYTES: usize = 90;
/// Rate of the serial lines to these radios, bit/s: not published, but usual with these radios.
const SERIAL_BPS: u32 = 9600;
/// Rows of Table IV, by window: MTU, MSS and TCP window, bytes.
const SETTINGS: [(u16, u16, u32); 7] = [
    (168, 128, 256),
    (296, 256, 512),
    (424, 384, 768),
    (552, 512, 1024),
    (680, 640, 1280),
    (808, 768, 1536),
    (936, 896, 1792),
];

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

/// Runs of a case.
pub(super) type Played = bench::Played<Exchange>;

/// File and number of the runs.
pub(super) struct Plan<'a> {
    pub(super) bench: Bench<'a>,
    /// Runs per row.
    pub(super) runs: u32,
    pub(super) file: Bytes,
    bundle: Bytes,
}

impl Plan<'_> {
    /// Transfer of the file in packets that fill a frame, on the channel of Table I, with ideal controllers.
    pub(super) fn transfer(&self, row: &Row, loss: f64) -> Transfer {
        let information_bytes = Model::ronan_2011().information_bytes;
        let pieces = (0..self.file.len()).step_by(information_bytes as usize);
        let piece = |at: usize| self.file.slice(at..self.file.len().min(at + information_bytes as usize));
        Transfer {
            radio: channel(row.rate_bps),
            tnc: None,
            loss,
            window: row.window as u8,
            information_bytes,
            packets: pieces.map(piece).collect(),
        }
    }

    /// The file as a bundle.
    pub(super) fn bundle(
        &self,
        transfer: Transfer,
        layer: Layer,
        since: Since,
        stored_after: Duration,
    ) -> Exchange {
        Exchange::Bundle(Carried { transfer, layer, since, stored_after, bundle: self.bundle.clone() })
    }

    /// The same with fewer runs per row.
    pub(super) fn with_runs(&self, runs: u32) -> Self {
        let (file, bundle) = (self.file.clone(), self.bundle.clone());
        Plan { runs: self.runs.min(runs), file, bundle, ..*self }
    }

    /// Creates a case with all runs.
    pub(super) fn case<T>(&self, name: &str, params: Params, trial: T) -> Case<T> {
        Case::new(name, params, trial, self.bench.seed, self.runs)
    }

    /// Simulates all runs of these rows, on a channel that loses nothing.
    fn play(&self, name: &str, rows: &[Row], exchange: impl Fn(&Row) -> Exchange) -> Vec<Played> {
        let cases = rows.iter().map(|row| self.case(name, params(row), exchange(row))).collect();
        let played = self.bench.play(cases);
        let all = played.iter().flat_map(Played::outcomes).all(Option::is_some);
        assert!(all, "a channel without errors delivers");
        played
    }
}

/// Deviations of the rows of a test setup or of a reading from the published times, as shares.
pub(super) struct Fit {
    pub(super) words: &'static str,
    /// Turnaround of the controllers, seconds.
    pub(super) turn_s: f64,
    pub(super) errors: Vec<f64>,
}

impl Fit {
    fn of(words: &'static str, turn_s: f64, played: &[Played], published_s: impl Fn(&Row) -> f64) -> Fit {
        let rows = &ROWS[ROWS.len() - played.len()..];
        let error = |(row, played): (&Row, &Played)| played.mean("transfer_s") / published_s(row) - 1.0;
        Fit { words, turn_s, errors: rows.iter().zip(played).map(error).collect() }
    }

    /// Number of rows within this share of the published time.
    pub(super) fn rows_within(&self, bound: f64) -> usize {
        self.errors.iter().filter(|error| error.abs() <= bound).count()
    }
}

/// Results of the simulations.
pub(super) struct Simulated {
    pub(super) raw: Vec<Played>,
    /// AX.25-CL with the fitted turnaround.
    pub(super) bundles: Vec<Played>,
    /// TCP/IP with that turnaround.
    pub(super) tcp: Vec<Played>,
    /// Turnaround of a controller, fitted on the first row, seconds.
    pub(super) turn_s: f64,
    /// Other readings of the timed part of TCP/IP.
    pub(super) readings: Vec<Fit>,
    /// Other test setups.
    pub(super) rigs: Vec<Fit>,
    /// Results beyond the paper.
    pub(super) beyond: Beyond,
    pub(super) file: Bytes,
}

/// Simulates everything, with a file of random bytes.
pub(super) fn simulate(bench: &Bench<'_>) -> Simulated {
    let mut bundle = vec![0; FILE_BYTES as usize + BUNDLE_HEADER_BYTES];
    Rng::new(bench.seed).fork("file").fill(&mut bundle);
    let bundle = Bytes::from(bundle);
    let file = bundle.slice(BUNDLE_HEADER_BYTES..);
    let plan = Plan { bench: *bench, runs: bench.runs(RUNS), file: file.clone(), bundle };
    let turn_s = RIG.fitted_turn_s(&plan);
    let few = plan.with_runs(RUNS_COMPARED);
    let every = if bench.thin { 4 } else { 1 };
    let tcp = |plan: &Plan<'_>, reading: &Reading| {
        plan.play(TCP, &ROWS, |row| {
            Exchange::Session(reading.session(plan, row, Some(controller(turn_s)), 0.0), reading.took_s)
        })
    };
    let raw = plan.play(RAW, &ROWS, |row| Exchange::Packets(plan.transfer(row, 0.0), Since::Wish));
    let bundles = RIG.play(&plan, &ROWS, turn_s);
    let timed = tcp(&plan, &READING);
    let reading_fit =
        |reading: &Reading| Fit::of(reading.words, turn_s, &tcp(&few, reading), |row| row.tcp_s);
    let rig_fit = |rig: &Rig| {
        let turn_s = rig.fitted_turn_s(&few);
        Fit::of(rig.words, turn_s, &rig.play(&few, &ROWS, turn_s)[1..], |row| row.convergence_s)
    };
    let readings = readings().iter().step_by(every).map(reading_fit).collect();
    let rigs = rigs().iter().step_by(every).map(rig_fit).collect();
    let beyond = Beyond::play(&plan);
    Simulated { raw, bundles, tcp: timed, turn_s, readings, rigs, beyond, file }
}

/// Location of the turnaround delay.
#[derive(Clone, Copy)]
enum Turn {
    /// In a controller behind a serial line with this rate in bit/s, `None` for no delay; frames enter the line as soon
    /// as the host has them.
    Controller(Option<u32>),
    /// In a station that builds frames after it gets the channel; the delay precedes its decision that the channel is
    /// clear.
    Station,
}

/// Test setup between the hosts and the channel for the convergence layer, and the part that is timed.
#[derive(Clone, Copy)]
struct Rig {
    words: &'static str,
    turn: Turn,
    since: Since,
}

/// Setup used.
const RIG: Rig = Rig {
    words: "controllers in KISS mode on serial lines of 9,600 bit/s; from the connection request to the \
            acknowledgement of the bundle",
    turn: Turn::Controller(Some(SERIAL_BPS)),
    since: Since::Call,
};

/// Setups compared on the page: the one used, and those that differ from it in one property.
fn rigs() -> [Rig; 5] {
    let turn = |words, turn| Rig { words, turn, ..RIG };
    [
        RIG,
        turn("serial lines of 19,200 bit/s instead", Turn::Controller(Some(2 * SERIAL_BPS))),
        turn("serial lines without delay", Turn::Controller(None)),
        Rig { words: "on an existing session, from when the bundle is ready", since: Since::Wish, ..RIG },
        turn("stations that build frames after acquiring the channel and fill every window", Turn::Station),
    ]
}

/// Controllers of the setup used.
fn controller(turn_s: f64) -> TncConfig {
    let turnaround = Duration::from_secs_f64(turn_s);
    TncConfig { serial_bps: Some(SERIAL_BPS), turnaround, ..TncConfig::default() }
}

impl Rig {
    /// Simulates all runs of the convergence layer in these rows.
    fn play(&self, plan: &Plan<'_>, rows: &[Row], turn_s: f64) -> Vec<Played> {
        plan.play(BUNDLES, rows, |row| {
            let mut transfer = plan.transfer(row, 0.0);
            match self.turn {
                Turn::Controller(serial_bps) => {
                    transfer.tnc = Some(TncConfig { serial_bps, ..controller(turn_s) });
                }
                Turn::Station => {
                    let stations = &mut transfer.radio.stations;
                    stations
                        .iter_mut()
                        .for_each(|station| station.carrier_off = Duration::from_secs_f64(turn_s));
                }
            }
            plan.bundle(transfer, Layer::Ax25Cm, self.since, Duration::ZERO)
        })
    }

    /// Finds the turnaround with which the first row has its published time. The time is an almost linear function of
    /// the turnaround; the second of two secants is close to the first result.
    fn fitted_turn_s(&self, plan: &Plan<'_>) -> f64 {
        let times = |turn_s: f64| self.play(plan, &ROWS[..1], turn_s)[0].samples("transfer_s");
        let mut turn_s: f64 = 0.5;
        for reach_s in [0.2, 0.02] {
            let (low, high) = ((turn_s - reach_s).max(0.0), turn_s + reach_s);
            let (with_low, with_high) = (times(low), times(high));
            // After an early stop one of them may have fewer runs; the comparison uses the same noise for both.
            let both = with_low.len().min(with_high.len());
            let (with_low, with_high) = (mean(&with_low[..both]), mean(&with_high[..both]));
            turn_s = low + (high - low) * (ROWS[0].convergence_s - with_low) / (with_high - with_low);
        }
        turn_s
    }
}

/// Reading of the timed part of TCP/IP and its setup.
#[derive(Clone)]
pub(super) struct Reading {
    words: &'static str,
    carriage: IpMode,
    opening: DataConnectionMode,
    profile: fn() -> Profile,
    took_s: fn(&SessionTimes) -> f64,
}

/// Reading used.
pub(super) const READING: Reading = Reading {
    words: "UI frames; from the PORT command to the end of the session; Linux as installed",
    carriage: IpMode::Unconnected,
    opening: DataConnectionMode::Active,
    profile: Profile::linux_2_4,
    took_s: |at| at.left_s - at.logged_in_s,
};

/// Readings compared on the page: the one used, and those that differ from it in one property.
fn readings() -> [Reading; 8] {
    let timed = |words: &'static str, took_s: fn(&SessionTimes) -> f64| Reading { words, took_s, ..READING };
    let with = |words: &'static str, profile: fn() -> Profile| Reading { words, profile, ..READING };
    [
        READING,
        Reading { words: "over a connected link instead", carriage: IpMode::Connected, ..READING },
        timed("the complete session, from connection request to end", |at| at.left_s),
        timed("from the connection request to the reply that the file is stored", |at| at.stored_s),
        timed("the data connection alone, from the reply that it is open (150)", |at| {
            at.stored_s - at.opened_s
        }),
        Reading {
            words: "the client opens the data connection (PASV)",
            opening: DataConnectionMode::Passive,
            ..READING
        },
        with("without the timestamps that Linux adds to each segment", || Profile {
            timestamps: false,
            ..Profile::linux_2_4()
        }),
        with("current Linux", Profile::linux_6),
    ]
}

impl Reading {
    /// Session of a row on a channel that loses a share of the frames; `None` for ideal controllers.
    pub(super) fn session(
        &self,
        plan: &Plan<'_>,
        row: &Row,
        tnc: Option<TncConfig>,
        loss: f64,
    ) -> FtpSession {
        let (mtu_bytes, maximum_segment_bytes, window_bytes) = SETTINGS[row.window as usize - 1];
        let announced_bytes_max = Some(window_bytes);
        let internet = Internet {
            radio: channel(row.rate_bps),
            tnc,
            loss,
            carriage: self.carriage,
            mtu_bytes,
            window_frames: row.window as u8,
            profile: Profile { maximum_segment_bytes, announced_bytes_max, ..(self.profile)() },
        };
        FtpSession { internet, opening: self.opening, file: plan.file.clone() }
    }
}
