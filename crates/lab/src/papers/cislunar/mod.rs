//! `paper cislunar`: a published evaluation of bundles over TCP between the Moon and the Earth, with its use of time.
//!
//! "Experimental Evaluation of Delay Tolerant Networking (DTN) Protocols for Long-Delay Cislunar Communications", R.
//! Wang, X. Wu, T. Wang, T. Taleb. A megabyte is sent from a lander (tx) through an orbiter (mx), which stores all of
//! it, to the Earth (rx), at 115,200 bit/s, for nine delays, three bit-error rates and five outages, with 16 runs each.
//!
//! The text does not state which path its figures describe: its goodputs without errors match two hops with the delay
//! on both, its traces are from mx to rx. Nor does it state whether both hops have bit errors. Three readings are
//! reproduced: *whole path*, from the start to the last byte at rx; *mx to rx*, from the first byte that mx sends; and
//! the *whole path with errors on the second hop only*.
//!
//! No constant is fitted to a published figure. One reading, errors on the second hop only, was chosen because of the
//! published goodputs, and its own goodputs are marked calibrated; all others are predictions.

mod page;
mod trend;
mod variants;

use crate::bench::{self, Bench, Case, Shard, Trial};
use crate::chain::{self, Chain};
use crate::error::Error;
use crate::finding::{self, Finding, Trace};
use crate::progress::Progress;
use crate::record::{Experiment, FigureKind, Params, Record, Value};
use crate::run::{Outcome, Setup, Wanted};
use crate::scenario::{OutageFrom, Scenario};
use crate::stats::FittedLine;
use crate::trace::conversation::Conversation;
use bytes::Bytes;
use longwire_proto::tcp::wire::Flags;
use longwire_proto::time::Instant;
use std::path::Path;
pub use variants::Variant;

/// Text of the scenario file.
pub const SCENARIO: &str = include_str!("../../../../../scenarios/cislunar.toml");

/// One-way delay at which the paper shows traces and states goodputs, ms.
pub const DELAY_MS: i64 = 2000;
/// Longest published outage, s.
pub const OUTAGE_S: i64 = 120;
/// Published bit-error rates.
pub const BERS: [f64; 3] = [0.0, 1e-6, 1e-5];
/// Start of a scheduled outage, seconds since the start of the run: in the middle of the data on the second hop.
const ANNOUNCED_AT_S: i64 = 118;
/// Range of the random start of an outage, seconds of data on the second hop; even the fastest transfer is still in
/// progress.
const ANY_MOMENT_S: (f64, f64) = (10.0, 70.0);
/// Factor of the number of runs where the paper states a goodput, which the first sentence of the page reports.
const MORE_RUNS: u32 = 64;
/// Time that connections are observed after the transfer, s: DTN2 closes an idle connection after 30 s.
const LINGER_S: f64 = 30.0;

/// Series of the protocols used in the paper.
const MAIN: &str = "tcpcl3/dtn2";
/// The same with a random start of the outage in every run.
const ANY_MOMENT: &str = "tcpcl3/dtn2, outage at any moment";
/// The same with bit errors on the second hop only.
const SECOND_HOP: &str = "tcpcl3/dtn2, errors on the second hop only";

/// Figures stated in the text, by bit-error rate in the order of [`BERS`].
const GOODPUT: [f64; 3] = [5400.0, 2550.0, 776.0];
const GOODPUT_WITH_KEEPALIVES: [f64; 3] = [3000.0, 2260.0, 700.0];
const SLOPE_PERCENT: [f64; 3] = [8.0, 20.0, 60.0];
const RETRANSMISSIONS: [f64; 3] = [0.0, 8.0, 80.0];
const RETRIES: f64 = 5.0;
const SYNS: f64 = 6.0;

/// Transfer times of a Linux kernel for a megabyte over one error-free hop: one-way delay (ms) and seconds.
const KERNEL: [(i64, f64); 4] = [(1280, 78.1), (2000, 91.4), (3500, 155.9), (5000, 220.4)];
/// Effective window of that kernel, bytes.
const KERNEL_WINDOW_BYTES: u32 = 53_000;

/// Options of the reproduction.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Runs per point. Default 16, as in the paper.
    pub runs: Option<u32>,
    /// Seed. Default 1.
    pub seed: Option<u64>,
    /// Number of threads.
    pub threads: usize,
    /// Keeps the frames of the runs whose traces are shown.
    pub traces: bool,
    /// Restricts the grid to its ends and a part of the rest, without additional runs. For tests with many seeds, whose
    /// figures have little meaning.
    pub thin: bool,
}

/// Runs of one point.
pub(crate) type Played = bench::Played<Chain>;

fn is_at(played: &Played, delay_ms: f64, ber: f64, outage_s: f64) -> bool {
    played.param("delay_ms") == delay_ms && played.param("ber") == ber && played.param("outage_s") == outage_s
}

/// Run whose frames are shown.
pub(crate) struct Traced {
    pub(crate) ber: f64,
    pub(crate) outage_s: i64,
    pub(crate) outcome: Outcome,
}

/// All results of the reproduction.
pub(crate) struct Reproduction {
    pub(crate) options: Options,
    pub(crate) scenario: Scenario,
    pub(crate) grid: Vec<Played>,
    pub(crate) any_moment: Vec<Played>,
    pub(crate) second_hop: Vec<Played>,
    pub(crate) kernels: Vec<Played>,
    pub(crate) announced: Vec<Played>,
    pub(crate) variants: Vec<(Variant, Vec<Played>)>,
    pub(crate) outage_starts: Vec<Played>,
    pub(crate) alone: Vec<Played>,
    pub(crate) traced: Vec<Traced>,
    /// Note about an early stop.
    pub(crate) early_end: Option<String>,
}

/// Runs the complete evaluation.
///
/// # Errors
/// Returns errors of the built-in scenario, which would be a bug in this program.
pub fn reproduce(options: &Options, progress: &Progress) -> Result<Finding, Error> {
    let mut scenario = Scenario::parse(SCENARIO, "scenarios/cislunar.toml")?;
    scenario.runs = options.runs.unwrap_or(scenario.runs).max(1);
    scenario.seed = options.seed.unwrap_or(scenario.seed);
    if options.thin {
        scenario.sweep.extend(thin_sweep());
    }
    let files = scenario.workload.contents(Path::new("."), scenario.seed)?;
    let (more_runs, every) = if options.thin { (1, 4) } else { (MORE_RUNS, 1) };
    let plan = Plan { scenario: &scenario, files, more_runs, every };
    let variants: Vec<Variant> = variants::all().into_iter().step_by(every).collect();
    let groups = [
        plan.grid()?,
        plan.any_moment()?,
        plan.second_hop()?,
        plan.kernels()?,
        plan.announced()?,
        plan.variants(&variants)?,
        plan.outage_starts()?,
        plan.alone()?,
    ];
    let sizes = groups.each_ref().map(Vec::len);
    let bench = Bench { threads: options.threads, shard: Shard::WHOLE, progress };
    let mut played = bench.play(groups.into_iter().flatten().collect()).into_iter();
    let [grid, any_moment, second_hop, kernels, announced, varied, outage_starts, alone] =
        sizes.map(|size| played.by_ref().take(size).collect::<Vec<Played>>());
    let traced = plan.traced(&bench)?;
    let mut varied = varied.into_iter();
    let per_variant = variants::BERS.len();
    let variants =
        variants.into_iter().map(|variant| (variant, varied.by_ref().take(per_variant).collect())).collect();
    let options = *options;
    Ok(Reproduction {
        options,
        scenario: scenario.clone(),
        grid,
        any_moment,
        second_hop,
        kernels,
        announced,
        variants,
        outage_starts,
        alone,
        traced,
        early_end: progress.early_end(),
    }
    .finding())
}

/// Plan of the runs.
struct Plan<'a> {
    scenario: &'a Scenario,
    /// File contents, shared by all runs.
    files: Vec<Bytes>,
    /// Factor of the number of runs where the paper states a goodput.
    more_runs: u32,
    /// Interval of the alternatives tried: 1 for all of them.
    every: usize,
}

/// Ends of the published grid, and the delay at which the paper states figures.
fn thin_sweep() -> toml::Table {
    let values =
        |values: &[i64]| toml::Value::Array(values.iter().copied().map(toml::Value::Integer).collect());
    [("link.delay-ms", values(&[1280, DELAY_MS, 5000])), ("outage.length-s", values(&[0, OUTAGE_S]))]
        .map(|(key, values)| (key.to_owned(), values))
        .into_iter()
        .collect()
}

impl Plan<'_> {
    fn setup(&self, scenario: Scenario) -> Result<Setup, Error> {
        Setup::with_files(scenario, Path::new("."), self.files.clone())
    }

    /// Returns the scenario at one point.
    fn at(&self, delay_ms: i64, ber: f64, outage_s: i64) -> Scenario {
        let mut scenario = self.scenario.clone();
        scenario.sweep.clear();
        scenario.link[0].insert("delay-ms".into(), delay_ms.into());
        scenario.link[0].insert("ber".into(), ber.into());
        scenario.outage[0].length_s = outage_s as f64;
        scenario
    }

    fn params(delay_ms: i64, ber: f64, outage_s: i64) -> Params {
        Params::new().with("delay_ms", delay_ms).with("ber", ber).with("outage_s", outage_s)
    }

    /// Cases of the published grid, with more runs where the paper states a goodput.
    fn grid(&self) -> Result<Vec<Case<Chain>>, Error> {
        let case = |point: crate::scenario::GridPoint| {
            let value = |name: &str| point.params.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            let (delay, ber, outage) = (value("delay_ms"), value("ber"), value("outage_length_s"));
            let stated = delay == DELAY_MS as f64 && outage == 0.0;
            let runs = self.scenario.runs * if stated { self.more_runs } else { 1 };
            let linger_s = if stated { LINGER_S } else { 0.0 };
            let params = Self::params(delay as i64, ber, outage as i64);
            let setup = self.setup(point.scenario)?;
            let mut case = Chain::case(MAIN, params, setup, runs);
            case.trial.wanted.linger_s = linger_s;
            Ok(case)
        };
        self.scenario.points(&[])?.into_iter().map(case).collect()
    }

    /// Cases of the grid's outages with a random start in each run, the same at every point.
    fn any_moment(&self) -> Result<Vec<Case<Chain>>, Error> {
        let case = |point: crate::scenario::GridPoint| {
            let value = |name: &str| point.params.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            let params =
                Self::params(value("delay_ms") as i64, value("ber"), value("outage_length_s") as i64);
            let mut scenario = point.scenario;
            let (from, to) = ANY_MOMENT_S;
            (scenario.outage[0].after_s, scenario.outage[0].spread_s) = (from, to - from);
            Ok(Chain::case(ANY_MOMENT, params, self.setup(scenario)?, self.scenario.runs))
        };
        let points = self.scenario.points(&[])?.into_iter();
        points.filter(|point| point.scenario.outage[0].length_s > 0.0).map(case).collect()
    }

    /// Returns the scenario with bit errors on the second hop only.
    fn second_hop_at(&self, delay_ms: i64, ber: f64) -> Scenario {
        let mut scenario = self.at(delay_ms, 0.0, 0);
        let mut second = scenario.link[0].clone();
        second.insert("ber".into(), ber.into());
        scenario.link.push(second);
        scenario
    }

    /// Cases of the grid without outages, with bit errors between mx and rx only.
    fn second_hop(&self) -> Result<Vec<Case<Chain>>, Error> {
        let delays = self.scenario.sweep["link.delay-ms"].as_array().cloned().unwrap_or_default();
        let points =
            delays.iter().filter_map(toml::Value::as_integer).flat_map(|delay| BERS.map(|ber| (delay, ber)));
        let case = |(delay_ms, ber): (i64, f64)| {
            let scenario = self.second_hop_at(delay_ms, ber);
            let runs = self.scenario.runs * if delay_ms == DELAY_MS { self.more_runs } else { 1 };
            Ok(Chain::case(SECOND_HOP, Self::params(delay_ms, ber, 0), self.setup(scenario)?, runs))
        };
        points.map(case).collect()
    }

    /// Cases of the same bundles over a current TCP, with the settings that are compared with a kernel.
    fn kernels(&self) -> Result<Vec<Case<Chain>>, Error> {
        let case = |ber: f64| {
            let mut scenario = self.at(DELAY_MS, ber, 0);
            scenario.settings.insert("tcp".into(), toml::Value::Table(variants::linux_6()));
            let runs = self.scenario.runs * self.more_runs;
            let params = Self::params(DELAY_MS, ber, 0);
            Ok(Chain::case("tcpcl3/dtn2 over linux-6", params, self.setup(scenario)?, runs))
        };
        BERS.into_iter().map(case).collect()
    }

    /// Cases of the longest outage, announced and not, with errors on the second hop only. The data on that hop then
    /// start at the same time in every run, so that the outage can be scheduled.
    fn announced(&self) -> Result<Vec<Case<Chain>>, Error> {
        let case = |(ber, announced): (f64, bool)| {
            let mut scenario = self.second_hop_at(DELAY_MS, ber);
            scenario.outage[0].from = OutageFrom::Run;
            scenario.outage[0].after_s = ANNOUNCED_AT_S as f64;
            scenario.outage[0].length_s = OUTAGE_S as f64;
            scenario.outage[0].announced = announced;
            let params = Self::params(DELAY_MS, ber, OUTAGE_S)
                .with("outage_at_s", ANNOUNCED_AT_S)
                .with("announced", if announced { "yes" } else { "no" });
            Ok(Chain::case(SECOND_HOP, params, self.setup(scenario)?, self.scenario.runs))
        };
        BERS.into_iter().flat_map(|ber| [(ber, false), (ber, true)]).map(case).collect()
    }

    fn variants(&self, variants: &[Variant]) -> Result<Vec<Case<Chain>>, Error> {
        let case = |(variant, ber): (&Variant, f64)| {
            let mut scenario = self.at(DELAY_MS, ber, 0);
            variant.apply(&mut scenario)?;
            let params = Self::params(DELAY_MS, ber, 0).with("variant", variant.name);
            Ok(Chain::case(MAIN, params, self.setup(scenario)?, self.scenario.runs))
        };
        let pairs = variants.iter().flat_map(|variant| variants::BERS.map(|ber| (variant, ber)));
        pairs.map(case).collect()
    }

    /// Cases of the longest outage with other starts.
    fn outage_starts(&self) -> Result<Vec<Case<Chain>>, Error> {
        let case = |(ber, after_s): (f64, i64)| {
            let mut scenario = self.at(DELAY_MS, ber, OUTAGE_S);
            scenario.outage[0].after_s = after_s as f64;
            debug_assert_eq!(scenario.outage[0].from, OutageFrom::Data);
            let params = Self::params(DELAY_MS, ber, OUTAGE_S).with("outage_after_s", after_s);
            Ok(Chain::case(MAIN, params, self.setup(scenario)?, self.scenario.runs))
        };
        let starts = [5, 10, 20, 30, 40, 60, 80];
        let points = BERS.into_iter().flat_map(|ber| starts.map(|after_s| (ber, after_s)));
        points.step_by(self.every).map(case).collect()
    }

    /// Cases of TCP alone over one error-free hop, for the comparison with a kernel.
    fn alone(&self) -> Result<Vec<Case<Chain>>, Error> {
        let case = |(delay_ms, _): (i64, f64)| {
            let mut scenario = self.at(delay_ms, 0.0, 0);
            scenario.stack = "tcp/linux-6-64k".into();
            scenario.nodes = vec!["tx".into(), "rx".into()];
            scenario.outage.clear();
            // A TUN device adds no frame check.
            scenario.link[0].insert("fcs".into(), "none".into());
            let window: toml::Table =
                [("receive-buffer-bytes".to_owned(), i64::from(KERNEL_WINDOW_BYTES).into())]
                    .into_iter()
                    .collect();
            scenario.settings.insert("tcp".into(), toml::Value::Table(window));
            let params = Self::params(delay_ms, 0.0, 0).with("window_bytes", i64::from(KERNEL_WINDOW_BYTES));
            Ok(Chain::case("tcp/linux-6", params, self.setup(scenario)?, 1))
        };
        KERNEL.into_iter().map(case).collect()
    }

    /// Runs of the traces in the paper, with their frames.
    fn traced(&self, bench: &Bench<'_>) -> Result<Vec<Traced>, Error> {
        let points: Vec<(f64, i64)> = [0, OUTAGE_S].iter().flat_map(|&o| BERS.map(|ber| (ber, o))).collect();
        let case = |&(ber, outage_s): &(f64, i64)| {
            let setup = self.setup(self.at(DELAY_MS, ber, outage_s))?;
            let mut case = Chain::case(MAIN, Self::params(DELAY_MS, ber, outage_s), setup, 1);
            case.trial.wanted = Wanted { frames: true, linger_s: LINGER_S };
            Ok(case)
        };
        let played = bench.play(points.iter().map(case).collect::<Result<_, Error>>()?);
        let outcomes = played.into_iter().flat_map(|played| played.runs);
        let traced = points.into_iter().zip(outcomes);
        Ok(traced.map(|((ber, outage_s), (_, outcome))| Traced { ber, outage_s, outcome }).collect())
    }
}

/// Returns the index of a bit-error rate among the published ones.
fn published(ber: f64) -> Option<usize> {
    BERS.iter().position(|known| *known == ber)
}

impl Reproduction {
    fn finding(self) -> Finding {
        let experiment = self.experiment();
        let (report, summary) = (page::report(&self, &experiment), page::summary(&self, &experiment));
        let traces = if self.options.traces { self.traces() } else { Vec::new() };
        Finding { experiment, report, summary, traces }
    }

    /// Iterates over all points in the order of their records.
    fn points(&self) -> impl Iterator<Item = &Played> {
        let groups = [
            &self.grid,
            &self.any_moment,
            &self.second_hop,
            &self.kernels,
            &self.announced,
            &self.outage_starts,
            &self.alone,
        ];
        groups.into_iter().flatten().chain(self.variants.iter().flat_map(|(_, played)| played))
    }

    /// Describes the points whose mean is below the ideal time.
    pub(crate) fn beyond_limit(&self) -> Vec<String> {
        let of_point = |played: &Played| {
            let words = chain::beyond_limit(&played.all())?;
            let case = &played.case;
            Some(format!("{} at {}: {words}.", case.series, finding::point_name(&case.params)))
        };
        self.points().filter_map(of_point).collect()
    }

    fn experiment(&self) -> Experiment {
        let mut experiment =
            Experiment { experiment: "cislunar".into(), seed: self.scenario.seed, ..Experiment::default() };
        for played in self.points() {
            experiment.records.extend(played.records().into_iter().map(|record| referenced(record, played)));
            experiment.runs.extend(played.rows());
        }
        experiment.records.extend(self.slopes());
        experiment.records.extend(self.retransmissions());
        experiment.records.extend(self.retries().into_iter().flatten());
        experiment
    }

    /// Slope of the transfer time over the delay in percent, seconds per millisecond, as the paper seems to print it.
    fn slopes(&self) -> Vec<Record> {
        let whole = "section III.A, Fig. 2 (whole path)";
        let last = "section III.A, Fig. 2 (mx to rx)";
        let second = "section III.A, Fig. 2 (whole path, errors on the second hop only)";
        let readings = [
            (&self.grid, "delay_slope_percent", "transfer_s", whole),
            (&self.grid, "mx_to_rx_delay_slope_percent", "last_hop_s", last),
            (&self.second_hop, "delay_slope_percent", "transfer_s", second),
        ];
        let mut slopes = Vec::new();
        for (index, ber) in BERS.into_iter().enumerate() {
            for (grid, name, metric, source) in readings {
                let curve = grid.iter().filter(|p| p.param("ber") == ber && p.param("outage_s") == 0.0);
                let points: Vec<&Played> = curve.collect();
                let of_run = |run| Some(slope(&points, "delay_ms", metric, run)? * 100.0);
                let samples: Vec<f64> = (0..runs_of_all(&points)).filter_map(of_run).collect();
                if !samples.is_empty() {
                    let params = Params::new().with("ber", ber).with("outage_s", 0i64);
                    let record = Record::of(&points[0].case.series, params, name, "s per 100 ms", &samples);
                    slopes.push(record.with_reference(SLOPE_PERCENT[index], source));
                }
            }
        }
        slopes
    }

    /// Records of the segments retransmitted by mx.
    fn retransmissions(&self) -> Vec<Record> {
        let at = |(index, ber): (usize, f64)| {
            let played = self.grid.iter().find(|played| is_at(played, DELAY_MS as f64, ber, 0.0))?;
            let repeated = |outcome: &Outcome| Some(outcome.hops.last()?.repeated_frames as f64);
            let samples: Vec<f64> = played.outcomes().filter_map(repeated).collect();
            let record = Record::of(
                &played.case.series,
                played.case.params.clone(),
                "mx_to_rx_retransmissions",
                "segments",
                &samples,
            );
            Some(record.with_reference(RETRANSMISSIONS[index], "section III.A, Fig. 3"))
        };
        BERS.into_iter().enumerate().filter_map(at).collect()
    }

    /// Data sent by mx in the traced outage without errors: from the start of the outage to the end of the session, and
    /// until the next session was established.
    fn outage_told(&self) -> Option<(Conversation, OutageTold)> {
        let traced = self.traced.iter().find(|traced| traced.ber == 0.0 && traced.outage_s == OUTAGE_S)?;
        let hop = traced.outcome.hops.last()?;
        let (begin, _) = *hop.outages.first()?;
        let after = |at: Instant| at.as_secs_f64() >= begin;
        let given_up = hop.seen.changes.iter().find(|(at, down)| after(*at) && down.is_some())?.0;
        let again = hop.seen.changes.iter().find(|(at, down)| *at > given_up && down.is_none())?.0;
        Some((page::mx_to_rx(&traced.outcome.frames)?, OutageTold { begin, given_up, again }))
    }

    /// Records of the behaviour of mx in an outage: retransmissions of its last segment until the end of the session,
    /// and SYNs of each connection attempt.
    fn retries(&self) -> Option<[Record; 2]> {
        let (conversation, told) = self.outage_told()?;
        let sent = || conversation.sent.iter().filter(|sent| told.includes(sent.at));
        let is_retry = |at: Instant, again: bool, bytes: u64| again && bytes > 0 && at < told.given_up;
        let retries = sent().filter(|sent| is_retry(sent.at, sent.again, sent.data_bytes.into())).count();
        let calls = sent().filter(|sent| sent.flags.contains(Flags::SYN)).count();
        let record = |metric: &str, unit: &str, count: usize, published: f64| {
            let params = Plan::params(DELAY_MS, 0.0, OUTAGE_S);
            Record::of(MAIN, params, metric, unit, &[count as f64])
                .with_reference(published, "section III.B, Fig. 6")
        };
        Some([
            record("retries_before_giving_up", "segments", retries, RETRIES),
            record("syns_in_a_cluster", "segments", calls, SYNS),
        ])
    }

    /// Connection attempts of mx in the traced outage without errors, seconds since the start of the outage.
    pub(crate) fn calls_s(&self) -> Vec<f64> {
        let Some((conversation, told)) = self.outage_told() else { return Vec::new() };
        let calls = conversation.sent.iter().filter(|sent| told.includes(sent.at));
        let calls = calls.filter(|sent| sent.flags.contains(Flags::SYN));
        calls.map(|sent| sent.at.as_secs_f64() - told.begin).collect()
    }

    fn traces(&self) -> Vec<Trace> {
        let trace = |traced: &Traced| Trace {
            name: format!("ber-{}-outage-{}s", crate::record::number(traced.ber), traced.outage_s),
            frames: traced.outcome.frames.clone(),
        };
        self.traced.iter().map(trace).collect()
    }
}

/// Times of an outage as observed by mx.
struct OutageTold {
    /// Start of the outage, seconds.
    begin: f64,
    /// Time at which mx closed the session.
    given_up: Instant,
    /// Time at which the next session was established.
    again: Instant,
}

impl OutageTold {
    fn includes(&self, at: Instant) -> bool {
        at.as_secs_f64() >= self.begin && at < self.again
    }
}

/// Number of runs that all of these points have.
fn runs_of_all(points: &[&Played]) -> u32 {
    points.iter().map(|played| played.runs.len()).min().unwrap_or(0) as u32
}

/// Returns the slope of a metric along a parameter in the runs with this number.
fn slope(points: &[&Played], along: &str, metric: &str, run: u32) -> Option<f64> {
    let at = |played: &&Played| {
        let (_, outcome) = &played.runs[run as usize];
        Some((played.param(along), (Chain::metric(metric).value)(outcome)?))
    };
    let line: Option<Vec<(f64, f64)>> = points.iter().map(at).collect();
    Some(FittedLine::fit(&line?)?.slope)
}

/// Returns the record with the published figure, if there is one.
fn referenced(record: Record, played: &Played) -> Record {
    let is_main =
        played.case.params.get("variant").is_none() && played.case.params.get("outage_after_s").is_none();
    if played.case.params.get("window_bytes").is_some() && record.metric == "transfer_s" {
        let kernel = KERNEL.iter().find(|(delay, _)| *delay as f64 == played.param("delay_ms"));
        return match kernel {
            Some((_, seconds)) => record.with_reference(*seconds, "measured: Linux reno over a TUN pair"),
            None => record,
        };
    }
    let stated = is_main && played.param("delay_ms") == DELAY_MS as f64 && played.param("outage_s") == 0.0;
    let Some(index) =
        published(played.param("ber")).filter(|_| stated && played.case.params.get("window_bytes").is_none())
    else {
        return record;
    };
    match record.metric.as_str() {
        "goodput_byte_per_s" if played.case.series == SECOND_HOP => {
            // The hop with the errors was chosen because of these figures; without errors there is no choice.
            let kind = if played.param("ber") > 0.0 { FigureKind::Calibrated } else { FigureKind::Predicted };
            let source = "section III.A, excluding keep-alives (whole path, errors on the second hop only)";
            record.with_reference(GOODPUT[index], source).with_kind(kind)
        }
        // The last hop is the same in both readings.
        _ if played.case.series == SECOND_HOP => record,
        "goodput_byte_per_s" => {
            record.with_reference(GOODPUT[index], "section III.A, excluding keep-alives (whole path)")
        }
        "last_hop_goodput_byte_per_s" => {
            record.with_reference(GOODPUT[index], "section III.A, excluding keep-alives (mx to rx)")
        }
        "goodput_with_keepalives_byte_per_s" => {
            record.with_reference(GOODPUT_WITH_KEEPALIVES[index], "section III.A, Fig. 4")
        }
        _ => record,
    }
}
