//! Cases: the published grid, other readings of it, and the assumptions with an alternative, all as data.

use super::{MAIN, Reproduction, SCENARIO};
use crate::bench::{Bench, Case};
use crate::chain::Chain;
use crate::error::Error;
use crate::papers::text::data;
use crate::record::Params;
use crate::run::{Setup, Wanted};
use crate::scenario::{Scenario, param_value};
use crate::toml_text;
use bytes::Bytes;
use longwire_proto::tcp::config::Profile;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use toml::{Table, Value};

/// Factor of the number of runs where the paper states a goodput, which the first sentence of the page reports.
const MORE_RUNS: u32 = 64;
/// Time that connections are observed after the transfer, s: DTN2 closes an idle connection after 30 s.
const LINGER_S: f64 = 30.0;

/// Name of a parameter and its values.
type Axis = Vec<Value>;

/// File of the cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Cases {
    /// Parameters of a point, before those of its group.
    start: Vec<Axis>,
    /// Keys of the scenario that parameters set.
    keys: BTreeMap<String, String>,
    group: Vec<Group>,
    variant: Vec<Variant>,
}

/// Cases of one name.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Group {
    name: String,
    case: String,
    /// Parameters with their values, the last one varying fastest; without values those of the scenario's own sweep.
    over: Vec<Axis>,
    /// The same for a part of the experiment.
    thin: Option<Vec<Axis>>,
    /// Keys of this group in place of the usual ones.
    keys: BTreeMap<String, String>,
    /// Further keys and their values.
    set: Table,
    /// Preset of TCP in place of that of the protocol.
    tcp_profile: Option<String>,
    runs_max: Option<u32>,
    /// True for more runs where the paper states a goodput.
    has_more_runs: bool,
    /// True if connections are observed after the transfer where the paper states a goodput or shows frames.
    lingers: bool,
    /// True if frames are kept.
    frames: bool,
}

/// Assumption with an alternative.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Variant {
    /// Name of the alternative.
    pub(super) name: String,
    pub(super) assumed: String,
    pub(super) basis: String,
    /// Description of the alternative.
    pub(super) instead: String,
    /// Keys of the scenario with the alternative.
    set: Table,
}

impl Variant {
    fn group(&self) -> Group {
        let bers = [0.0, 1e-6].map(Value::Float);
        let over = vec![
            vec!["variant".into(), self.name.clone().into()],
            ["ber".into()].into_iter().chain(bers).collect(),
        ];
        Group { name: self.name.clone(), case: MAIN.into(), over, set: self.set.clone(), ..Group::default() }
    }
}

struct Plan {
    cases: Cases,
    scenario: Scenario,
    /// File contents, shared by all runs.
    files: Vec<Bytes>,
    thin: bool,
}

pub(super) fn play(bench: &Bench<'_>) -> Reproduction {
    let mut scenario = of_program(Scenario::parse(SCENARIO, "scenarios/cislunar.toml"));
    (scenario.runs, scenario.seed) = (bench.runs(scenario.runs), bench.seed);
    let files = of_program(scenario.workload.contents(Path::new("."), scenario.seed));
    let mut cases: Cases = data(include_str!("cases.toml"));
    if bench.thin {
        cases.variant = cases.variant.into_iter().step_by(4).collect();
    }
    cases.group.extend(cases.variant.iter().map(Variant::group).collect::<Vec<_>>());
    let plan = Plan { cases, scenario, files, thin: bench.thin };
    let groups = &plan.cases.group;
    let played = bench.play_groups(groups.iter().map(|group| plan.cases_of(group)).collect());
    let groups = groups.iter().map(|group| group.name.clone()).zip(played).collect();
    Reproduction { planned: plan.scenario.runs, groups, variants: plan.cases.variant }
}

/// Unwraps a result about the built-in scenario, whose errors would be bugs of this program.
fn of_program<T>(result: Result<T, Error>) -> T {
    result.unwrap_or_else(|error| panic!("the built-in scenario: {error}"))
}

impl Plan {
    fn cases_of(&self, group: &Group) -> Vec<Case<Chain>> {
        let axes = group.thin.as_ref().filter(|_| self.thin).unwrap_or(&group.over);
        let mut points = vec![Vec::new()];
        for axis in self.cases.start.iter().chain(axes) {
            let name = axis[0].as_str().expect("an axis starts with its name");
            let values = match &axis[1..] {
                [] => self.scenario.sweep[&self.cases.keys[name]].as_array().expect("a sweep is a list"),
                values => values,
            };
            let with = |point: &Vec<_>, value| point.iter().cloned().chain([(name, value)]).collect();
            points =
                points.iter().flat_map(|point| values.iter().map(move |value| with(point, value))).collect();
        }
        points.iter().map(|point| self.case(group, point)).collect()
    }

    fn case(&self, group: &Group, point: &[(&str, &Value)]) -> Case<Chain> {
        // The keys are those of the file.
        let mut table = of_program(toml_text::parse(SCENARIO, "scenarios/cislunar.toml"));
        table.remove("sweep");
        let mut set = |key: &str, value: &Value| of_program(toml_text::set(&mut table, key, value));
        if let Some(profile) = group.tcp_profile.as_deref().and_then(Profile::named) {
            set("settings.tcp", &toml_text::to_table(&profile).into());
        }
        group.set.iter().for_each(|(key, value)| set(key, value));
        let mut params = Params::new();
        for &(name, value) in point {
            params = params.with(name, param_value(value));
            let value = match value.as_str() {
                Some(word @ ("yes" | "no")) => &Value::from(word == "yes"),
                _ => value,
            };
            if let Some(key) = group.keys.get(name).or(self.cases.keys.get(name)) {
                set(key, value);
            }
        }
        let scenario = of_program(Scenario::from_table(table, &group.name));
        let scenario = Scenario { seed: self.scenario.seed, ..scenario };
        let setup = of_program(Setup::with_files(scenario, Path::new("."), self.files.clone()));
        let is_stated = params.along("delay_ms=2000 ber=* outage_s=0").is_some();
        let more = if group.has_more_runs && is_stated && !self.thin { MORE_RUNS } else { 1 };
        let runs = group.runs_max.unwrap_or(u32::MAX).min(self.scenario.runs * more);
        let mut case = Chain::case(&group.case, params, setup, runs);
        let linger_s = if group.lingers && (is_stated || group.frames) { LINGER_S } else { 0.0 };
        case.trial.wanted = Wanted { frames: group.frames, linger_s };
        case
    }
}
