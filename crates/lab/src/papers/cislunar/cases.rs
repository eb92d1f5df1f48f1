//! Cases: the published grid, other readings of it, and the assumptions with an alternative.

use super::{
    ANY_MOMENT, ANY_MOMENT_S, BERS, DELAY_MS, MAIN, OUTAGE_S, Reproduction, SCENARIO, SECOND_HOP, Traced,
};
use crate::bench::{Bench, Case};
use crate::chain::Chain;
use crate::error::Error;
use crate::papers::text::data;
use crate::record::{Params, Value};
use crate::run::{Setup, Wanted};
use crate::scenario::{OutageFrom, Scenario};
use crate::toml_text;
use bytes::Bytes;
use longwire_proto::tcp::config::Profile;
use serde::Deserialize;
use std::path::Path;
use toml::Table;

/// Start of a scheduled outage, seconds since the start of the run: in the middle of the data on the second hop.
const ANNOUNCED_AT_S: i64 = 118;
/// Other starts of the longest outage, seconds of data on the second hop.
const STARTS_S: [i64; 7] = [5, 10, 20, 30, 40, 60, 80];
/// Factor of the number of runs where the paper states a goodput, which the first sentence of the page reports.
const MORE_RUNS: u32 = 64;
/// Time that connections are observed after the transfer, s: DTN2 closes an idle connection after 30 s.
const LINGER_S: f64 = 30.0;
/// Delays at which a Linux kernel was measured over one error-free hop, ms.
const KERNEL_DELAYS_MS: [i64; 4] = [1280, 2000, 3500, 5000];
/// Effective window of that kernel, bytes.
const KERNEL_WINDOW_BYTES: u32 = 53_000;
/// Bit-error rates at which alternatives are tried.
pub(super) const VARIED_BERS: [f64; 2] = [0.0, 1e-6];

/// Assumption with an alternative.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variant {
    /// Name of the alternative.
    pub(super) name: String,
    /// Assumption.
    pub(super) assumed: String,
    /// Basis of the assumption.
    pub(super) basis: String,
    /// Description of the alternative.
    pub(super) instead: String,
    /// Alternative as changes of the scenario.
    change: Table,
}

/// Assumptions with an alternative.
#[derive(Deserialize)]
struct Variants {
    variant: Vec<Variant>,
}

impl Variant {
    /// Returns the scenario with the alternative.
    fn applied(&self, scenario: &Scenario) -> Result<Scenario, Error> {
        let mut table = toml_text::to_table(scenario);
        let mut change = self.change.clone();
        for (key, value) in change.remove("link").iter().filter_map(toml::Value::as_table).flatten() {
            toml_text::set(&mut table, &format!("link.{key}"), value)?;
        }
        toml_text::merge(&mut table, &change);
        toml_text::from_table(table, &self.name)
    }
}

/// Plan of the runs.
struct Plan {
    scenario: Scenario,
    /// File contents, shared by all runs.
    files: Vec<Bytes>,
    /// Factor of the number of runs where the paper states a goodput.
    more_runs: u32,
}

/// Plays everything.
pub(super) fn play(bench: &Bench<'_>) -> Reproduction {
    let mut scenario = of_program(Scenario::parse(SCENARIO, "scenarios/cislunar.toml"));
    scenario.runs = bench.runs(scenario.runs);
    scenario.seed = bench.seed;
    if bench.thin {
        // The ends of the grid, and the delay at which the paper states figures.
        let values = |values: &[i64]| toml::Value::from(values.to_vec());
        scenario.sweep.insert("link.delay-ms".into(), values(&[1280, DELAY_MS, 5000]));
        scenario.sweep.insert("outage.length-s".into(), values(&[0, OUTAGE_S]));
    }
    let files = of_program(scenario.workload.contents(Path::new("."), scenario.seed));
    let (more_runs, every) = if bench.thin { (1, 4) } else { (MORE_RUNS, 1) };
    let plan = Plan { scenario, files, more_runs };
    let variants: Vec<Variant> =
        data::<Variants>(include_str!("variants.toml")).variant.into_iter().step_by(every).collect();
    let groups = bench.play_groups([
        plan.grid(),
        plan.any_moment(),
        plan.second_hop(),
        BERS.map(|ber| plan.over_linux_6(ber)).into(),
        BERS.into_iter().flat_map(|ber| [plan.announced(ber, false), plan.announced(ber, true)]).collect(),
        plan.outage_starts().step_by(every).collect(),
        KERNEL_DELAYS_MS.map(|delay_ms| plan.alone(delay_ms)).into(),
        variants.iter().flat_map(|variant| VARIED_BERS.map(|ber| plan.varied(variant, ber))).collect(),
    ]);
    let traced = plan.traced(bench);
    Reproduction { planned: plan.scenario.runs, groups, variants, traced }
}

/// Unwraps a result about the built-in scenario, whose errors would be bugs of this program.
fn of_program<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| panic!("the built-in scenario: {error}"))
}

impl Plan {
    fn case(&self, name: &str, params: Params, scenario: Scenario, more: u32) -> Case<Chain> {
        let setup = of_program(Setup::with_files(scenario, Path::new("."), self.files.clone()));
        Chain::case(name, params, setup, self.scenario.runs * more)
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

    /// Returns the scenario with bit errors on the second hop only.
    fn second_hop_at(&self, delay_ms: i64, ber: f64) -> Scenario {
        let mut scenario = self.at(delay_ms, 0.0, 0);
        let mut second = scenario.link[0].clone();
        second.insert("ber".into(), ber.into());
        scenario.link.push(second);
        scenario
    }

    fn params(delay_ms: i64, ber: f64, outage_s: i64) -> Params {
        Params::new().with("delay_ms", delay_ms).with("ber", ber).with("outage_s", outage_s)
    }

    /// Points of the published grid.
    fn points(&self) -> impl Iterator<Item = (i64, f64, i64)> {
        let value = |params: &Params, name| params.get(name).and_then(Value::as_f64).unwrap_or(0.0);
        of_program(self.scenario.points(&[])).into_iter().map(move |point| {
            let of = |name| value(&point.params, name);
            (of("delay_ms") as i64, of("ber"), of("outage_length_s") as i64)
        })
    }

    /// Cases of the published grid, with more runs where the paper states a goodput.
    fn grid(&self) -> Vec<Case<Chain>> {
        let case = |(delay_ms, ber, outage_s)| {
            let stated = delay_ms == DELAY_MS && outage_s == 0;
            let (more, linger_s) = if stated { (self.more_runs, LINGER_S) } else { (1, 0.0) };
            let params = Self::params(delay_ms, ber, outage_s);
            let mut case = self.case(MAIN, params, self.at(delay_ms, ber, outage_s), more);
            case.trial.wanted.linger_s = linger_s;
            case
        };
        self.points().map(case).collect()
    }

    /// Cases of the grid's outages with a random start in each run, the same at every point.
    fn any_moment(&self) -> Vec<Case<Chain>> {
        let case = |(delay_ms, ber, outage_s)| {
            let mut scenario = self.at(delay_ms, ber, outage_s);
            let (from, to) = ANY_MOMENT_S;
            (scenario.outage[0].after_s, scenario.outage[0].spread_s) = (from, to - from);
            self.case(ANY_MOMENT, Self::params(delay_ms, ber, outage_s), scenario, 1)
        };
        self.points().filter(|point| point.2 > 0).map(case).collect()
    }

    /// Cases of the grid without outages, with bit errors between mx and rx only.
    fn second_hop(&self) -> Vec<Case<Chain>> {
        let case = |(delay_ms, ber, _)| {
            let more = if delay_ms == DELAY_MS { self.more_runs } else { 1 };
            self.case(SECOND_HOP, Self::params(delay_ms, ber, 0), self.second_hop_at(delay_ms, ber), more)
        };
        let mut points: Vec<(i64, f64, i64)> = self.points().filter(|point| point.2 == 0).collect();
        points.sort_by(|a, b| a.partial_cmp(b).expect("they are numbers"));
        points.into_iter().map(case).collect()
    }

    /// The same bundles over a current TCP, with the settings that are compared with a kernel.
    fn over_linux_6(&self, ber: f64) -> Case<Chain> {
        let profile = Profile { receive_buffer_bytes: KERNEL_WINDOW_BYTES, ..Profile::linux_6() };
        let mut scenario = self.at(DELAY_MS, ber, 0);
        scenario.settings.insert("tcp".into(), toml::Value::Table(toml_text::to_table(&profile)));
        self.case("tcpcl3/dtn2 over linux-6", Self::params(DELAY_MS, ber, 0), scenario, self.more_runs)
    }

    /// The longest outage, announced or not, with errors on the second hop only. The data on that hop then start at the
    /// same time in every run, so that the outage can be scheduled.
    fn announced(&self, ber: f64, announced: bool) -> Case<Chain> {
        let mut scenario = self.second_hop_at(DELAY_MS, ber);
        let outage = &mut scenario.outage[0];
        (outage.from, outage.after_s) = (OutageFrom::Run, ANNOUNCED_AT_S as f64);
        (outage.length_s, outage.announced) = (OUTAGE_S as f64, announced);
        let params = Self::params(DELAY_MS, ber, OUTAGE_S)
            .with("outage_at_s", ANNOUNCED_AT_S)
            .with("announced", if announced { "yes" } else { "no" });
        self.case(SECOND_HOP, params, scenario, 1)
    }

    /// Cases of the longest outage with other starts.
    fn outage_starts(&self) -> impl Iterator<Item = Case<Chain>> {
        let case = |(ber, after_s): (f64, i64)| {
            let mut scenario = self.at(DELAY_MS, ber, OUTAGE_S);
            scenario.outage[0].after_s = after_s as f64;
            let params = Self::params(DELAY_MS, ber, OUTAGE_S).with("outage_after_s", after_s);
            self.case(MAIN, params, scenario, 1)
        };
        BERS.into_iter().flat_map(|ber| STARTS_S.map(|after_s| (ber, after_s))).map(case)
    }

    /// TCP alone over one error-free hop, for the comparison with a kernel.
    fn alone(&self, delay_ms: i64) -> Case<Chain> {
        let mut scenario = self.at(delay_ms, 0.0, 0);
        scenario.protocol = "tcp/linux-6-64k".into();
        scenario.nodes = vec!["tx".into(), "rx".into()];
        scenario.outage.clear();
        // A TUN device adds no frame check.
        scenario.link[0].insert("fcs".into(), "none".into());
        let window = Table::from_iter([("receive-buffer-bytes".to_owned(), KERNEL_WINDOW_BYTES.into())]);
        scenario.settings.insert("tcp".into(), toml::Value::Table(window));
        let params = Self::params(delay_ms, 0.0, 0).with("window_bytes", KERNEL_WINDOW_BYTES);
        Case { rounds: 1, ..self.case("tcp/linux-6", params, scenario, 1) }
    }

    fn varied(&self, variant: &Variant, ber: f64) -> Case<Chain> {
        let scenario = of_program(variant.applied(&self.at(DELAY_MS, ber, 0)));
        self.case(MAIN, Self::params(DELAY_MS, ber, 0).with("variant", variant.name.as_str()), scenario, 1)
    }

    /// Runs of the traces in the paper, with their frames.
    fn traced(&self, bench: &Bench<'_>) -> Vec<Traced> {
        let case = |(outage_s, ber): (i64, f64)| {
            let params = Self::params(DELAY_MS, ber, outage_s);
            let mut case = Case { rounds: 1, ..self.case(MAIN, params, self.at(DELAY_MS, ber, outage_s), 1) };
            case.trial.wanted = Wanted { frames: true, linger_s: LINGER_S };
            case
        };
        let points: Vec<(i64, f64)> =
            [0, OUTAGE_S].into_iter().flat_map(|outage_s| BERS.map(|ber| (outage_s, ber))).collect();
        let outcomes =
            bench.play(points.iter().copied().map(case).collect()).into_iter().flat_map(|played| played.runs);
        let traced = |((outage_s, ber), (_, outcome))| Traced { ber, outage_s, outcome };
        points.into_iter().zip(outcomes).map(traced).collect()
    }
}
