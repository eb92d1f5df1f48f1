//! Scenario files: a world as data.
//!
//! ```toml
//! title = "A megabyte from the Moon through an orbiter"
//! stack = "tcpcl3/dtn2"
//! nodes = ["tx", "mx", "rx"]     # a chain: the source, relays, the destination
//! runs = 16
//!
//! [workload]
//! bytes = 1000000
//!
//! [[link]]                       # one for every hop, or one that all hops are like
//! profile = "cislunar"
//! delay-ms = 2000
//!
//! [[outage]]
//! hop = 2
//! after-s = 20
//! from = "data"
//! length-s = 120
//!
//! [settings.tcp]                 # over those of the stack
//! mss-bytes = 1460
//!
//! [sweep]
//! "link.ber" = [0, 1e-6, 1e-5]
//! ```
//!
//! A sweep is a list of values for a dotted key of the file; several sweeps make a grid.

use crate::error::Error;
use crate::link::LinkProfile;
use crate::record::{self, Params};
use crate::toml_text;
use longwire_proto::rng::Rng;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The longest file of random bytes.
const BYTES_MAX: u64 = 1 << 32;
/// The most points a grid may have.
const POINTS_MAX: usize = 100_000;

/// One world: who is there, what is between them, what they do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// A name for people.
    pub title: String,
    /// What it is about, in a sentence or two.
    pub about: String,
    /// Which stack the nodes run, with its settings: `tcpcl3/dtn2`. Without the part behind the stroke, the first
    /// settings that the stack has.
    pub stack: String,
    /// The nodes, a chain from the source to the destination. Default `["tx", "rx"]`.
    pub nodes: Vec<String>,
    /// How many runs with different seeds. Default 16.
    pub runs: u32,
    /// The seed from which every run's randomness is drawn. Default 1.
    pub seed: u64,
    /// When a run that is not done is given up, seconds of virtual time. Default 1,000,000.
    pub duration_limit_s: f64,
    /// What is transferred.
    pub workload: Workload,
    /// The links: one for each hop, or one that all hops are like. See [`LinkProfile`]; `profile` names one to begin
    /// with.
    pub link: Vec<Table>,
    /// When links are out.
    pub outage: Vec<Outage>,
    /// Changes of the stack's settings.
    pub settings: Table,
    /// Dotted keys of this file, each with the values to try.
    pub sweep: Table,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            title: String::new(),
            about: String::new(),
            stack: "tcpcl4".into(),
            nodes: vec!["tx".into(), "rx".into()],
            runs: 16,
            seed: 1,
            duration_limit_s: 1e6,
            workload: Workload::default(),
            link: Vec::new(),
            outage: Vec::new(),
            settings: Table::new(),
            sweep: Table::new(),
        }
    }
}

/// What is transferred: real files, or bytes drawn from the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Workload {
    /// The length of one file of random bytes, where no files are named; up to 2^32. Default 1,000,000.
    pub bytes: u64,
    /// Files, relative to the scenario file.
    pub files: Vec<PathBuf>,
}

impl Default for Workload {
    fn default() -> Self {
        Workload { bytes: 1_000_000, files: Vec::new() }
    }
}

impl Workload {
    /// The files' contents.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn contents(&self, base: &Path, seed: u64) -> Result<Vec<bytes::Bytes>, Error> {
        if self.files.is_empty() {
            let mut content = vec![0; self.bytes as usize];
            Rng::new(seed).fork("workload").fill(&mut content);
            return Ok(vec![content.into()]);
        }
        let read = |path: &PathBuf| {
            let path = base.join(path);
            let content = longwire_settings::file::read(&path).map_err(|error| {
                Error::new(format!("cannot read the workload's file {}: {error}", path.display()))
                    .hint("paths in a scenario are relative to the scenario file")
            })?;
            Ok(content.into())
        };
        self.files.iter().map(read).collect()
    }
}

/// A time without a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Outage {
    /// Which hop, from 1. Default 1.
    pub hop: usize,
    /// When it begins, in seconds counted from `from`. Default 0.
    pub after_s: f64,
    /// How much later it may begin, seconds: drawn anew in every run, uniformly, from the run's seed and nothing else,
    /// so that the same run of every point has it at the same moment. Default 0.
    pub spread_s: f64,
    /// From where `after-s` counts. Default `run`.
    pub from: OutageFrom,
    /// How long it lasts, seconds; 0 is no outage.
    pub length_s: f64,
    /// True: both ends know the schedule and see the carrier go. False (the default): nobody is told.
    pub announced: bool,
}

impl Default for Outage {
    fn default() -> Self {
        Outage { hop: 1, after_s: 0.0, spread_s: 0.0, from: OutageFrom::Run, length_s: 0.0, announced: false }
    }
}

/// From where an outage's beginning counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutageFrom {
    /// The beginning of the run.
    #[default]
    Run,
    /// The first payload byte that leaves over that hop towards the destination.
    Data,
}

/// One point of a scenario's grid.
#[derive(Clone, Debug, PartialEq)]
pub struct GridPoint {
    /// What the sweeps set here.
    pub params: Params,
    /// The scenario with that.
    pub scenario: Scenario,
}

impl Scenario {
    /// Reads a scenario's text; `place` names it in errors.
    ///
    /// # Errors
    /// What is not TOML, unknown keys with the nearest known one, values that make no sense.
    pub fn parse(text: &str, place: &str) -> Result<Scenario, Error> {
        Scenario::from_table(toml_text::parse(text, place)?, place)
    }

    /// Reads a scenario file.
    ///
    /// # Errors
    /// As [`Scenario::parse`], and a file that cannot be read.
    pub fn load(path: &Path) -> Result<Scenario, Error> {
        Scenario::parse(&Scenario::text(path)?, &path.display().to_string())
    }

    /// The text of a scenario file.
    pub(crate) fn text(path: &Path) -> Result<String, Error> {
        longwire_settings::file::read_text(path).map_err(|error| {
            Error::new(format!("cannot read the scenario {}: {error}", path.display()))
                .hint("the shipped ones are in the folder scenarios/")
        })
    }

    pub(crate) fn from_table(table: Table, place: &str) -> Result<Scenario, Error> {
        let scenario: Scenario = toml_text::from_table(table, place)?;
        scenario.check(place)?;
        Ok(scenario)
    }

    fn check(&self, place: &str) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::new(format!("{place}: {what}")));
        let hops = self.hops();
        if self.nodes.len() < 2 {
            return wrong("`nodes` needs at least a source and a destination".into());
        }
        // They are host names in endpoint ids (RFC 9171 4.2.5.1.1).
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        if let Some(name) = self.nodes.iter().find(|name| name.is_empty() || !name.chars().all(is_plain)) {
            return wrong(format!("`{name}` is not a node's name: letters, digits, `-` and `_` make one"));
        }
        if let Some(twice) = self.nodes.iter().enumerate().find(|(at, name)| self.nodes[..*at].contains(name))
        {
            return wrong(format!("there are two nodes called `{}`", twice.1));
        }
        if self.link.len() > 1 && self.link.len() != hops {
            return wrong(format!(
                "{} nodes make {hops} hops, but there are {} links",
                hops + 1,
                self.link.len()
            ));
        }
        if self.runs == 0 {
            return wrong("`runs` must be at least 1".into());
        }
        if !(self.duration_limit_s > 0.0 && self.duration_limit_s <= 1e9) {
            return wrong("`duration-limit-s` must be above 0 and at most 1e9".into());
        }
        if self.workload.bytes > BYTES_MAX {
            return wrong(format!("`workload.bytes` must be at most {BYTES_MAX}"));
        }
        for outage in &self.outage {
            if !(1..=hops).contains(&outage.hop) {
                return wrong(format!("there is no hop {}; hops are numbered from 1 to {hops}", outage.hop));
            }
            if outage.announced && outage.from == OutageFrom::Data {
                return wrong(
                    "an outage that waits for data cannot be announced; say `from = \"run\"`".into(),
                );
            }
            let sensible = |seconds: f64| (0.0..=1e9).contains(&seconds);
            if ![outage.after_s, outage.spread_s, outage.length_s].into_iter().all(sensible) {
                return wrong(
                    "an outage's `after-s`, `spread-s` and `length-s` must be from 0 to 1e9".into(),
                );
            }
        }
        let lasting = |outage: &&Outage| outage.length_s > 0.0;
        for (at, a) in self.outage.iter().enumerate().filter(|(_, outage)| lasting(outage)) {
            let meets = |b: &&Outage| {
                (a.hop, a.from) == (b.hop, b.from)
                    && a.after_s < b.after_s + b.spread_s + b.length_s
                    && b.after_s < a.after_s + a.spread_s + a.length_s
            };
            if self.outage[at + 1..].iter().filter(lasting).any(|b| meets(&b)) {
                return wrong(format!("two outages of hop {} overlap: make them one", a.hop));
            }
        }
        Ok(())
    }

    /// The scenario as a TOML text that [`Scenario::parse`] reads back.
    pub fn to_text(&self) -> String {
        toml::to_string(self).expect("a scenario is TOML")
    }

    /// How many hops the chain has.
    pub fn hops(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    /// The link of each hop; profiles given by path are relative to `base`.
    ///
    /// # Errors
    /// As [`LinkProfile::resolve`].
    pub fn links(&self, base: &Path) -> Result<Vec<LinkProfile>, Error> {
        let default = Table::new();
        (0..self.hops())
            .map(|hop| {
                let said = self.link.get(hop).or(self.link.first()).unwrap_or(&default);
                LinkProfile::resolve(said, base)
            })
            .collect()
    }

    /// The grid that the file's own sweeps and these further ones make, the last key varying fastest. A key that is
    /// given again replaces the file's values.
    ///
    /// # Errors
    /// A key or value that the scenario does not take, or a grid that is too large.
    pub fn points(&self, further: &[(String, Vec<Value>)]) -> Result<Vec<GridPoint>, Error> {
        let mut base = toml_text::to_table(self);
        base.remove("sweep");
        let points = grid(base, &merged(&self.sweep, further)?)?;
        let place = "with the sweeps applied";
        let point = |(params, table)| Ok(GridPoint { params, scenario: Scenario::from_table(table, place)? });
        points.into_iter().map(point).collect()
    }
}

/// Every combination of the values of these keys, the last one varying fastest: what it is called, and the table with it.
///
/// # Errors
/// Keys that cannot be set, and grids that are empty or too large.
pub(crate) fn grid(base: Table, sweeps: &[(String, Vec<Value>)]) -> Result<Vec<(Params, Table)>, Error> {
    let mut points = vec![(Params::new(), base)];
    for (key, values) in sweeps {
        if values.is_empty() || points.len() * values.len() > POINTS_MAX {
            return Err(Error::new(format!(
                "the sweep of `{key}` makes {} points",
                points.len() * values.len()
            ))
            .hint(format!("a grid has from 1 to {POINTS_MAX}")));
        }
        let mut finer = Vec::with_capacity(points.len() * values.len());
        for (params, table) in &points {
            for value in values {
                let mut table = table.clone();
                toml_text::set(&mut table, key, value)?;
                finer.push((params.clone().with(param_name(key), param_value(value)), table));
            }
        }
        points = finer;
    }
    Ok(points)
}

/// The sweeps of a file, with others in place of those of the same key and behind them.
///
/// # Errors
/// A sweep that is no list.
pub(crate) fn merged(
    own: &Table,
    further: &[(String, Vec<Value>)],
) -> Result<Vec<(String, Vec<Value>)>, Error> {
    let mut sweeps = Vec::new();
    for (key, values) in own {
        let values = values.as_array().ok_or_else(|| {
            Error::new(format!("the sweep of `{key}` is not a list"))
                .hint(format!("write \"{key}\" = [first, second]"))
        })?;
        sweeps.push((key.clone(), values.clone()));
    }
    for (key, values) in further {
        match sweeps.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = values.clone(),
            None => sweeps.push((key.clone(), values.clone())),
        }
    }
    Ok(sweeps)
}

/// `--sweep key=a,b,c` as a key and its values.
///
/// # Errors
/// A word without `=`.
pub fn parse_sweep(word: &str) -> Result<(String, Vec<Value>), Error> {
    let parts = word.split_once('=').filter(|(key, values)| !key.is_empty() && !values.is_empty());
    let (key, values) = parts.ok_or_else(|| {
        Error::new(format!("`{word}` is not a sweep")).hint("write key=a,b,c, such as link.ber=0,1e-6,1e-5")
    })?;
    Ok((key.to_owned(), values.split(',').map(toml_text::value_of).collect()))
}

/// A key's name in records: its last part, with underlines (`link.delay-ms` is `delay_ms`).
fn param_name(key: &str) -> String {
    match key.rsplit_once('.') {
        Some((before, last)) if before.starts_with("outage") => format!("outage_{last}"),
        Some((_, last)) => last.to_owned(),
        None => key.to_owned(),
    }
    .replace('-', "_")
}

fn param_value(value: &Value) -> record::Value {
    match value {
        Value::Integer(value) => (*value).into(),
        Value::Float(value) => (*value).into(),
        Value::String(value) => value.as_str().into(),
        other => other.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        title = "two hops"
        stack = "tcpcl3/dtn2"
        nodes = ["tx", "mx", "rx"]
        runs = 4

        [workload]
        bytes = 1000

        [[link]]
        profile = "cislunar"
        delay-ms = 2000

        [[outage]]
        hop = 2
        length-s = 30

        [sweep]
        "link.ber" = [0, 1e-6]
    "#;

    #[test]
    fn a_scenario_survives_being_written_and_read() {
        let scenario = Scenario::parse(TEXT, "test").expect("a scenario");
        assert_eq!(Scenario::parse(&scenario.to_text(), "again").expect("a scenario"), scenario);
        let links = scenario.links(Path::new(".")).expect("links");
        assert_eq!(links.iter().map(|link| link.delay_ms).collect::<Vec<_>>(), [2000.0, 2000.0]);
    }

    #[test]
    fn sweeps_make_a_grid_whose_last_key_varies_fastest() {
        let scenario = Scenario::parse(TEXT, "test").expect("a scenario");
        let further = [parse_sweep("outage.length-s=0,30,60").expect("a sweep")];
        let points = scenario.points(&further).expect("a grid");
        let texts: Vec<String> = points.iter().map(|point| point.params.to_string()).collect();
        assert_eq!(texts.len(), 6);
        assert_eq!(texts[1], "ber=0 outage_length_s=30");
        assert_eq!(points[5].scenario.outage[0].length_s, 60.0);
        assert_eq!(points[5].scenario.links(Path::new(".")).expect("links")[1].ber, 1e-6);
    }

    #[test]
    fn a_wrong_key_is_refused_with_a_hint_at_every_level() {
        for (text, hint) in [
            ("stak = 'tcp'", "did you mean `stack`?"),
            ("[workload]\nbites = 1", "did you mean `bytes`?"),
            ("[[outage]]\nlenght-s = 1", "did you mean `length-s`?"),
            ("[[outage]]\nfrom = 'dta'", "did you mean `data`?"),
        ] {
            let error = Scenario::parse(text, "test").expect_err(text).to_string();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn senseless_worlds_are_refused() {
        for text in [
            "nodes = ['tx']",
            "nodes = ['tx', 'tx']",
            "nodes = ['tx', 'r/x']",
            "runs = 0",
            "[[outage]]\nhop = 2",
            "[[outage]]\nannounced = true\nfrom = 'data'",
            "[[outage]]\nlength-s = 9\n[[outage]]\nafter-s = 5\nlength-s = 9",
            "[workload]\nbytes = 1000000000000000",
            "nodes = ['a', 'b', 'c', 'd']\n[[link]]\n[[link]]",
            "duration-limit-s = 0",
        ] {
            Scenario::parse(text, "test").expect_err(text);
        }
    }

    #[test]
    fn a_sweep_says_what_is_wrong_with_it() {
        assert!(parse_sweep("link.ber").is_err());
        let scenario = Scenario::default();
        let wrong = [parse_sweep("runz=1,2").expect("a sweep")];
        let error = scenario.points(&wrong).expect_err("no such key").to_string();
        assert!(error.contains("did you mean `runs`?"), "{error}");
    }
}
