//! Simulations on a radio channel: raw AX.25, the convergence layer and TCP/IP, in every row.
//!
//! The paper mentions radios with controllers in KISS mode, serial lines and hosts with the AX.25 of Linux, and gives no
//! figures for them but the times. One constant is fitted for each test setup, on the first row: the turnaround of a
//! controller. Nor does the paper state what carried the packets of TCP/IP and which part of a session was timed. One
//! reading is close to all its rows, and the page shows the deviations of the others.

use super::{BUNDLES, FILE_BYTES, RAW, ROWS, Row, TCP, beyond, params};
use crate::bench::{self, Bench, Case, Metric, Trial};
use crate::convergence::{Carried, Layer};
use crate::ftp::{DataConnectionMode, FtpSession, SessionTimes};
use crate::internet::Internet;
use crate::model::ax25::Model;
use crate::packets::{Since, Transfer};
use crate::papers::text::data;
use crate::radio::RadioScenario;
use crate::record::Record;
use crate::stats::mean;
use bytes::Bytes;
use longwire_proto::ax25::IpMode;
use longwire_proto::rng::Rng;
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::Duration;
use longwire_sim::{RadioConfig, TncConfig};

/// Default runs per row: the wait for a slot is random, and at 9600 bit/s it is a large part of the time.
const RUNS: u32 = 40;
/// Maximum runs per row for comparisons, and hours of single frames.
pub(super) const RUNS_COMPARED: u32 = 10;
/// Overhead of a bundle in version 6 with short names, bytes; not published.
const BUNDLE_HEADER_BYTES: usize = 90;
/// Rate of the serial lines to these radios, bit/s: not published, but usual with these radios.
const SERIAL_BPS: u32 = 9600;
/// Maximum segment size of TCP for each frame of the window, and what packets have beside it, bytes (Table IV). The TCP
/// window is two segments.
const SEGMENT_BYTES: u16 = 128;
const HEADERS_BYTES: u16 = 40;

/// Single frames on the channel of Table I.
pub(super) fn single_frames() -> RadioScenario {
    data(include_str!("radio.toml"))
}

/// Channel of Table I.
pub(super) fn channel(rate_bps: f64) -> RadioConfig {
    RadioConfig { rate_bps: rate_bps as u64, ..single_frames().radio }
}

/// Transfer of the file by one protocol on one channel: seconds for a seed, `None` if the file does not arrive.
pub(super) struct Exchange(Box<dyn Fn(u64) -> Option<f64> + Send + Sync>);

impl Exchange {
    pub(super) fn new(seconds: impl Fn(u64) -> Option<f64> + Send + Sync + 'static) -> Exchange {
        Exchange(Box::new(seconds))
    }
}

impl Trial for Exchange {
    type Outcome = Option<f64>;

    const METRICS: &'static [Metric<Option<f64>>] = &[Metric::new("transfer_s", "s", |seconds| *seconds)];

    fn play(&self, run: bench::Run) -> Option<f64> {
        (self.0)(run.seed)
    }
}

pub(super) type Played = bench::Played<Exchange>;

/// Test setups for the convergence layer: what stands between hosts and channel, as a function of the turnaround, and the
/// start of the measured time. The one used, and those that differ from it in one property.
type Rig = (&'static str, fn(&mut Transfer, Duration), Since);
const RIGS: [Rig; 5] = [
    ("rig", |transfer, turn| transfer.tnc = controller(Some(SERIAL_BPS), turn), Since::Connect),
    ("fast-lines", |transfer, turn| transfer.tnc = controller(Some(2 * SERIAL_BPS), turn), Since::Connect),
    ("ideal-lines", |transfer, turn| transfer.tnc = controller(None, turn), Since::Connect),
    ("existing-session", |transfer, turn| transfer.tnc = controller(Some(SERIAL_BPS), turn), Since::Send),
    // The delay precedes the decision of a station that the channel is clear.
    ("stations", |transfer, turn| transfer.radio.stations[0].carrier_off = turn, Since::Connect),
];

/// Readings of TCP/IP: a change of the session, and the part of it that is timed. The one used, and those that differ
/// from it in one property.
type Reading = (&'static str, fn(&mut FtpSession), fn(&SessionTimes) -> f64);
const READINGS: [Reading; 8] = [
    ("reading", |_| (), PORT_TO_END),
    ("connected", |session| session.internet.carriage = IpMode::Connected, PORT_TO_END),
    ("complete-session", |_| (), |at| at.left_s),
    ("until-stored", |_| (), |at| at.stored_s),
    ("data-connection", |_| (), |at| at.stored_s - at.opened_s),
    ("passive", |session| session.opening = DataConnectionMode::Passive, PORT_TO_END),
    ("no-timestamps", |session| session.internet.profile.timestamps = false, PORT_TO_END),
    ("current-linux", with_current_linux, PORT_TO_END),
];

/// Time from the PORT command to the end of a session, seconds.
const PORT_TO_END: fn(&SessionTimes) -> f64 = |at| at.left_s - at.logged_in_s;

fn controller(serial_bps: Option<u32>, turnaround: Duration) -> Option<TncConfig> {
    Some(TncConfig { serial_bps, turnaround, ..TncConfig::default() })
}

/// Profile of TCP for this window, with the settings of Table IV.
fn profile(window: u8, preset: Profile) -> Profile {
    let maximum_segment_bytes = SEGMENT_BYTES * u16::from(window);
    let announced_bytes_max = Some(2 * u32::from(maximum_segment_bytes));
    Profile { maximum_segment_bytes, announced_bytes_max, ..preset }
}

fn with_current_linux(session: &mut FtpSession) {
    session.internet.profile = profile(session.internet.window_frames, Profile::linux_6());
}

#[derive(Clone)]
pub(super) struct Plan<'a> {
    pub(super) bench: Bench<'a>,
    pub(super) runs: u32,
    file: Bytes,
    bundle: Bytes,
}

impl Plan<'_> {
    /// Transfer of the file in packets that fill a frame, on the channel of Table I with ideal controllers.
    pub(super) fn transfer(&self, row: &Row, loss: f64) -> Transfer {
        let information_bytes = Model::ronan_2011().information_bytes;
        let packets = self.file.chunks(information_bytes as usize).map(Bytes::copy_from_slice).collect();
        let (radio, window) = (channel(row.rate_bps), row.window as u8);
        Transfer { radio, tnc: None, loss, window, information_bytes, packets }
    }

    /// The same by the link alone.
    pub(super) fn packets(&self, row: &Row, loss: f64, since: Since) -> Exchange {
        let transfer = self.transfer(row, loss);
        Exchange::new(move |seed| transfer.seconds(since, seed))
    }

    /// The file as a bundle, with the time to store it.
    pub(super) fn bundle(&self, transfer: Transfer, layer: Layer, since: Since, store: Duration) -> Exchange {
        let carried = Carried { transfer, layer, since, stored_after: store, bundle: self.bundle.clone() };
        Exchange::new(move |seed| carried.seconds(seed))
    }

    /// FTP session with ideal controllers.
    pub(super) fn session(&self, row: &Row, loss: f64) -> FtpSession {
        let profile = profile(row.window as u8, Profile::linux_2_4());
        let internet = Internet {
            radio: channel(row.rate_bps),
            tnc: None,
            loss,
            carriage: IpMode::Unconnected,
            mtu_bytes: profile.maximum_segment_bytes + HEADERS_BYTES,
            window_frames: row.window as u8,
            profile,
        };
        FtpSession { internet, opening: DataConnectionMode::Active, file: self.file.clone() }
    }

    /// Simulates all runs of these rows, on a channel that loses nothing.
    fn play(&self, name: &str, rows: &[Row], exchange: impl Fn(&Row) -> Exchange) -> Vec<Played> {
        let case = |row| Case::new(name, params(row), exchange(row), self.bench.seed, self.runs);
        let played = self.bench.play(rows.iter().map(case).collect());
        let all = played.iter().flat_map(Played::outcomes).all(Option::is_some);
        assert!(all, "a channel without errors delivers");
        played
    }

    /// Simulates the convergence layer in these rows.
    fn play_bundles(&self, (_, between, since): Rig, rows: &[Row], turn_s: f64) -> Vec<Played> {
        self.play(BUNDLES, rows, |row| {
            let mut transfer = self.transfer(row, 0.0);
            between(&mut transfer, Duration::from_secs_f64(turn_s));
            self.bundle(transfer, Layer::Ax25Cm, since, Duration::ZERO)
        })
    }

    /// Simulates TCP/IP in all rows.
    fn play_sessions(&self, (_, change, timed): Reading, turn_s: f64) -> Vec<Played> {
        self.play(TCP, &ROWS, |row| {
            let mut session = self.session(row, 0.0);
            session.internet.tnc = controller(Some(SERIAL_BPS), Duration::from_secs_f64(turn_s));
            change(&mut session);
            Exchange::new(move |seed| session.play(seed).map(|at| timed(&at)))
        })
    }

    /// Finds the turnaround with which the first row has its published time. The time is an almost linear function of
    /// the turnaround; the second of two secants is close to the first result.
    fn fitted_turn_s(&self, rig: Rig) -> f64 {
        let play = |turn_s: f64| self.play_bundles(rig, &ROWS[..1], turn_s).remove(0);
        let mut turn_s: f64 = 0.5;
        for reach_s in [0.2, 0.02] {
            let (low, high) = ((turn_s - reach_s).max(0.0), turn_s + reach_s);
            // Pairs of runs have the same noise; after an early stop one of them may have fewer runs.
            let (with_low, with_high) = play(low).pairs(&play(high), "transfer_s");
            let (with_low, with_high) = (mean(&with_low), mean(&with_high));
            turn_s = low + (high - low) * (ROWS[0].convergence_s - with_low) / (with_high - with_low);
        }
        turn_s
    }
}

/// Deviations of the rows of a test setup or of a reading from the published times, as shares.
pub(super) struct Fit {
    /// Name of its words.
    pub(super) name: &'static str,
    /// Turnaround of the controllers, seconds.
    pub(super) turn_s: f64,
    pub(super) errors: Vec<f64>,
}

impl Fit {
    /// Number of rows within this share of the published time.
    pub(super) fn rows_within(&self, bound: f64) -> usize {
        self.errors.iter().filter(|error| error.abs() <= bound).count()
    }
}

pub(super) struct Simulated {
    /// Raw AX.25, and AX.25-CL and TCP/IP with the fitted turnaround.
    pub(super) played: Vec<Played>,
    /// Turnaround of a controller, fitted on the first row, seconds.
    pub(super) turn_s: f64,
    /// Other readings of the timed part of TCP/IP.
    pub(super) readings: Vec<Fit>,
    /// Other test setups.
    pub(super) rigs: Vec<Fit>,
    pub(super) beyond: Vec<Record>,
    pub(super) file: Bytes,
}

/// Simulates everything, with a file of random bytes.
pub(super) fn simulate(bench: &Bench<'_>) -> Simulated {
    let mut bundle = vec![0; FILE_BYTES as usize + BUNDLE_HEADER_BYTES];
    Rng::new(bench.seed).fork("file").fill(&mut bundle);
    let bundle = Bytes::from(bundle);
    let file = bundle.slice(BUNDLE_HEADER_BYTES..);
    let plan = Plan { bench: *bench, runs: bench.runs(RUNS), file, bundle };
    let few = Plan { runs: plan.runs.min(RUNS_COMPARED), ..plan.clone() };
    let every = if bench.thin { 4 } else { 1 };
    let turn_s = plan.fitted_turn_s(RIGS[0]);
    let mut played = plan.play(RAW, &ROWS, |row| plan.packets(row, 0.0, Since::Send));
    played.extend(plan.play_bundles(RIGS[0], &ROWS, turn_s));
    played.extend(plan.play_sessions(READINGS[0], turn_s));
    let fit = |name, turn_s, played: &[Played], published_s: fn(&Row) -> f64| {
        let rows = ROWS[ROWS.len() - played.len()..].iter().zip(played);
        let error = |(row, played): (&Row, &Played)| played.mean("transfer_s") / published_s(row) - 1.0;
        Fit { name, turn_s, errors: rows.map(error).collect() }
    };
    let of_reading =
        |reading: Reading| fit(reading.0, turn_s, &few.play_sessions(reading, turn_s), |row| row.tcp_s);
    let of_rig = |rig: Rig| {
        let turn_s = few.fitted_turn_s(rig);
        fit(rig.0, turn_s, &few.play_bundles(rig, &ROWS, turn_s)[1..], |row| row.convergence_s)
    };
    let readings = READINGS.into_iter().step_by(every).map(of_reading).collect();
    let rigs = RIGS.into_iter().step_by(every).map(of_rig).collect();
    Simulated { played, turn_s, readings, rigs, beyond: beyond::play(&plan), file: plan.file }
}
