//! Scenario files.
//!
//! ```toml
//! title = "A megabyte from the Moon through an orbiter"
//! protocol = "tcpcl3/dtn2"
//! nodes = ["tx", "mx", "rx"]     # a chain: the source, relays, the destination
//! runs = 16
//!
//! [workload]
//! bytes = 1000000
//!
//! [[link]]                       # one per hop, or one for all hops
//! profile = "cislunar"
//! delay-ms = 2000
//!
//! [[outage]]
//! hop = 2
//! after-s = 20
//! from = "data"
//! length-s = 120
//!
//! [settings.tcp]                 # override those of the protocol
//! mss-bytes = 1460
//!
//! [sweep]
//! "link.ber" = [0, 1e-6, 1e-5]
//! ```
//!
//! A sweep is a list of values for a dotted key of the file; several sweeps make a grid.

use crate::bench::Shard;
use crate::error::Error;
use crate::link::LinkProfile;
use crate::record::{self, Params};
use crate::toml_text;
use longwire_proto::rng::Rng;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Maximum length of a file of random bytes.
const BYTES_MAX: u64 = 1 << 32;
/// Maximum points of a grid.
const POINTS_MAX: usize = 100_000;

/// Options of `run`.
#[derive(Clone, Debug)]
pub struct Options {
    /// Scenario file.
    pub scenario: PathBuf,
    /// Further sweeps: keys with their values.
    pub sweeps: Vec<(String, Vec<Value>)>,
    /// Runs per point; `None` for the number in the file.
    pub runs: Option<u32>,
    /// Seed; `None` for the seed in the file.
    pub seed: Option<u64>,
    /// Share of the runs.
    pub shard: Shard,
    /// Number of threads.
    pub threads: usize,
    /// Keeps the frames of the first run at every point.
    pub traces: bool,
}

/// Scenario: nodes, links between them, and their workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// Display name.
    pub title: String,
    /// Description, in a sentence or two.
    pub about: String,
    /// Protocol of the nodes with its settings, such as `tcpcl3/dtn2`. Without the part after the slash, the first
    /// settings of the protocol.
    pub protocol: String,
    /// Nodes, a chain from the source to the destination. Default `["tx", "rx"]`.
    pub nodes: Vec<String>,
    /// Number of runs with different seeds. Default 16.
    pub runs: u32,
    /// Seed of the random numbers of all runs. Default 1.
    pub seed: u64,
    /// Time limit of a run, seconds of virtual time. Default 1,000,000.
    pub duration_limit_s: f64,
    /// Data transferred.
    pub workload: Workload,
    /// Links: one per hop, or one for all hops. See [`LinkProfile`]; `profile` names the profile to start from.
    pub link: Vec<Table>,
    /// Outages of the links.
    pub outage: Vec<Outage>,
    /// Changes of the protocol's settings.
    pub settings: Table,
    /// Parameter sweeps: dotted keys of this file, each with a list of values.
    pub sweep: Table,
}

impl Default for Scenario {
    fn default() -> Self {
        Scenario {
            title: String::new(),
            about: String::new(),
            protocol: "tcpcl4".into(),
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

/// Data transferred: real files, or random bytes drawn from the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Workload {
    /// Length of one file of random bytes, used if no files are named; maximum 2^32. Default 1,000,000.
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
    /// Reads or draws the contents of the files.
    ///
    /// # Errors
    /// Fails if a file cannot be read.
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

/// Outage of a link.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Outage {
    /// Hop, from 1. Default 1.
    pub hop: usize,
    /// Start, in seconds since `from`. Default 0.
    pub after_s: f64,
    /// Maximum random delay of the start, seconds: uniform, drawn in every run from the run's seed only, so that the
    /// same run of every point has the same delay. Default 0.
    pub spread_s: f64,
    /// Reference of `after-s`. Default `run`.
    pub from: OutageFrom,
    /// Duration, seconds; 0 for no outage.
    pub length_s: f64,
    /// True: both ends know the schedule and detect the loss of the carrier. False (the default): neither end is
    /// informed.
    pub announced: bool,
}

impl Default for Outage {
    fn default() -> Self {
        Outage { hop: 1, after_s: 0.0, spread_s: 0.0, from: OutageFrom::Run, length_s: 0.0, announced: false }
    }
}

/// Reference of the start of an outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutageFrom {
    /// Start of the run.
    #[default]
    Run,
    /// First payload byte sent over that hop towards the destination.
    Data,
}

/// Point of a scenario's grid.
#[derive(Clone, Debug, PartialEq)]
pub struct GridPoint {
    /// Parameters set by the sweeps.
    pub params: Params,
    /// Scenario with these parameters.
    pub scenario: Scenario,
}

impl Scenario {
    /// Parses the text of a scenario; `place` names it in errors.
    ///
    /// # Errors
    /// Fails if the text is not TOML, a key is unknown, with the nearest known one, or a value is invalid.
    pub fn parse(text: &str, place: &str) -> Result<Scenario, Error> {
        Scenario::from_table(toml_text::parse(text, place)?, place)
    }

    /// Reads a scenario file.
    ///
    /// # Errors
    /// Fails if the file cannot be read; otherwise returns the errors of [`Scenario::parse`].
    pub fn load(path: &Path) -> Result<Scenario, Error> {
        Scenario::parse(&Scenario::text(path)?, &path.display().to_string())
    }

    /// Reads the text of a scenario file.
    pub(crate) fn text(path: &Path) -> Result<String, Error> {
        longwire_settings::file::read_text(path).map_err(|error| {
            Error::new(format!("cannot read the scenario {}: {error}", path.display()))
                .hint("sample scenarios are in scenarios/")
        })
    }

    pub(crate) fn from_table(mut table: Table, place: &str) -> Result<Scenario, Error> {
        // The key of earlier versions.
        if let Some(protocol) = table.remove("stack") {
            table.insert("protocol".to_owned(), protocol);
        }
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
        // Node names are host names in endpoint IDs (RFC 9171 4.2.5.1.1).
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        if let Some(name) = self.nodes.iter().find(|name| name.is_empty() || !name.chars().all(is_plain)) {
            return wrong(format!("`{name}` is not a valid node name; use letters, digits, `-` and `_`"));
        }
        if let Some(twice) = self.nodes.iter().enumerate().find(|(at, name)| self.nodes[..*at].contains(name))
        {
            return wrong(format!("duplicate node name `{}`", twice.1));
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
                return wrong(format!("no such hop: {}; hops are numbered from 1 to {hops}", outage.hop));
            }
            if outage.announced && outage.from == OutageFrom::Data {
                return wrong("an outage relative to data cannot be announced; use `from = \"run\"`".into());
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
                return wrong(format!("outages of hop {} overlap; merge them", a.hop));
            }
        }
        Ok(())
    }

    /// Formats the scenario as a TOML text that [`Scenario::parse`] reads.
    pub fn to_text(&self) -> String {
        toml::to_string(self).expect("a scenario is TOML")
    }

    /// Number of hops of the chain.
    pub fn hops(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    /// Links of all hops; profiles given by path are relative to `base`.
    ///
    /// # Errors
    /// Returns the errors of [`LinkProfile::resolve`].
    pub fn links(&self, base: &Path) -> Result<Vec<LinkProfile>, Error> {
        let default = Table::new();
        (0..self.hops())
            .map(|hop| {
                let said = self.link.get(hop).or(self.link.first()).unwrap_or(&default);
                LinkProfile::resolve(said, base)
            })
            .collect()
    }

    /// Expands the grid of the file's own sweeps and further ones, the last key varying fastest. A key that is given
    /// again replaces the values of the file.
    ///
    /// # Errors
    /// Fails if the scenario does not accept a key or value, or the grid is too large.
    pub fn points(&self, further: &[(String, Vec<Value>)]) -> Result<Vec<GridPoint>, Error> {
        let mut base = toml_text::to_table(self);
        base.remove("sweep");
        let points = grid(base, &merged(&self.sweep, further)?)?;
        let place = "with the sweeps applied";
        let point = |(params, table)| Ok(GridPoint { params, scenario: Scenario::from_table(table, place)? });
        points.into_iter().map(point).collect()
    }
}

/// Expands all combinations of the values of these keys, the last one varying fastest: parameters and table of each.
///
/// # Errors
/// Fails if a key cannot be set, or the grid is empty or too large.
pub(crate) fn grid(base: Table, sweeps: &[(String, Vec<Value>)]) -> Result<Vec<(Params, Table)>, Error> {
    let mut points = vec![(Params::new(), base)];
    for (key, values) in sweeps {
        if values.is_empty() || points.len() * values.len() > POINTS_MAX {
            return Err(Error::new(format!(
                "the sweep of `{key}` has {} points",
                points.len() * values.len()
            ))
            .hint(format!("a grid can have 1 to {POINTS_MAX} points")));
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

/// Merges the sweeps of a file with further ones, which replace those of the same key and follow the others.
///
/// # Errors
/// Fails if a sweep is not a list.
pub(crate) fn merged(
    own: &Table,
    further: &[(String, Vec<Value>)],
) -> Result<Vec<(String, Vec<Value>)>, Error> {
    let mut sweeps = Vec::new();
    for (key, values) in own {
        let values = values.as_array().ok_or_else(|| {
            Error::new(format!("the sweep of `{key}` is not a list"))
                .hint(format!("use \"{key}\" = [first, second]"))
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

/// Parses `--sweep key=a,b,c` into a key and its values.
///
/// # Errors
/// Fails without `=`.
pub fn parse_sweep(word: &str) -> Result<(String, Vec<Value>), Error> {
    let parts = word.split_once('=').filter(|(key, values)| !key.is_empty() && !values.is_empty());
    let (key, values) = parts.ok_or_else(|| {
        Error::new(format!("`{word}` is not a valid sweep"))
            .hint("use key=a,b,c, such as link.ber=0,1e-6,1e-5")
    })?;
    Ok((key.to_owned(), values.split(',').map(toml_text::value_of).collect()))
}

/// Name of a key in records: its last part with underscores (`link.delay-ms` is `delay_ms`).
fn param_name(key: &str) -> String {
    match key.rsplit_once('.') {
        Some((before, last)) if before.starts_with("outage") => format!("outage_{last}"),
        Some((_, last)) => last.to_owned(),
        None => key.to_owned(),
    }
    .replace('-', "_")
}

/// Value of a parameter in records.
pub(crate) fn param_value(value: &Value) -> record::Value {
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
        protocol = "tcpcl3/dtn2"
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
    fn a_protocol_may_have_the_key_of_earlier_versions() {
        let before = TEXT.replace("protocol = ", "stack = ");
        assert_eq!(Scenario::parse(&before, "before"), Scenario::parse(TEXT, "now"));
        let point = Scenario::default().points(&[parse_sweep("stack=tcp,udp").expect("a sweep")]);
        assert_eq!(point.expect("a grid")[1].scenario.protocol, "udp");
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
            ("protocl = 'tcp'", "did you mean `protocol`?"),
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
