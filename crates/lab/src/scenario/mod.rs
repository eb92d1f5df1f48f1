//! Scenario files.
//!
//! ```toml
//! title = "A megabyte from the Moon through an orbiter"
//! nodes = ["tx", "mx", "rx"]
//! protocol = "tcpcl3/dtn2"
//! runs = 16
//!
//! [workload]                     # files; or [messages], [frames], [airborne]: what is sent decides what is measured
//! bytes = 1000000
//!
//! [[channel]]
//! between = ["tx", "mx"]
//! profile = "cislunar"           # for files, a link profile, and keys of it
//! delay-ms = 2000
//!
//! [[channel]]
//! between = ["mx", "rx"]
//! profile = "cislunar"
//! outage = [{ from = "data", after-s = 20, length-s = 120 }]
//!
//! [settings.tcp]                 # override those of the protocol
//! maximum-segment-bytes = 1460
//!
//! [sweep]
//! "channel.ber" = [0, 1e-6, 1e-5]
//! ```
//!
//! A sweep is a list of values for a dotted key of the file; several sweeps make a grid.
//!
//! With `[messages]` routers are compared between nodes with contacts: each `[[channel]]` has a `contact = [{ first-s = 600,
//! every-s = 7200, lasts-s = 300, late-s = 600, chance = 0.8 }]`, and the routers with routes (static and contact-plan)
//! have those of `[[route]]`. With `[frames]` the stations of one radio channel send single frames, drawn from a Poisson
//! process at each; the channel has the keys of [`longwire_sim::RadioConfig`], and `[tnc]` those of the controllers.
//! `scenarios/valley.toml`, `scenarios/positions.toml` and `scenarios/airborne.toml` are examples.
//!
//! Files of earlier versions, which had a shape for each of the three, are read as well.

mod airborne;
mod before;
mod grid;
#[cfg(test)]
mod tests;

pub use airborne::{Airborne, AirborneRouter, FLIGHT_M};
pub(crate) use grid::param_value;
pub use grid::parse_sweep;
use grid::{Combination, merged, swept};

use crate::bench::Shard;
use crate::error::Error;
use crate::link::LinkProfile;
use crate::link::outages::{Outage, check_outages};
use crate::record::Params;
use crate::toml_text::{self, check_keys};
use longwire_proto::bp::agent::RouterChoice;
use longwire_proto::rng::Rng;
use longwire_proto::settings;
use longwire_sim::TncConfig;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// Maximum length of a file of random bytes.
const BYTES_MAX: u64 = 1 << 32;
/// Maximum pairs of nodes with contacts; they are numbered with one byte.
const PAIRS_MAX: usize = 200;
const MESSAGES_MAX: u32 = 10_000;

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

settings! {
    /// Scenario: nodes, channels between them, and what is sent over them.
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Scenario {
        /// Display name.
        pub title: String,
        /// Description, in a sentence or two.
        pub about: String,
        /// Nodes; for files a chain from the source to the destination. Default `["tx", "rx"]`.
        pub nodes: Vec<String> = default_nodes(),
        /// Number of runs with different seeds. Default 16.
        pub runs: u32 = 16,
        /// Seed of the random numbers of all runs. Default 1.
        pub seed: u64 = 1,
        /// Channels. For files one between each two neighbours of the chain, by default a plain link; for frames one between
        /// all nodes.
        pub channel: Vec<Channel>,
        /// Parameter sweeps: dotted keys of this file, each with a list of values.
        pub sweep: Table,
        /// Load; decided by the tables of the file.
        #[serde(skip)]
        pub load: Load,

        /// Files: protocol of the nodes with its settings, such as `tcpcl3/dtn2`. Without the part after the slash, the
        /// first settings of the protocol. Default `tcpcl4`.
        pub protocol: String = "tcpcl4".into(),
        /// Files: changes of the protocol's settings.
        pub settings: Table,
        /// Files: time limit of a run, seconds of virtual time. Default 1,000,000.
        pub duration_limit_s: f64 = 1e6,
        /// Files transferred.
        pub workload: Workload,

        /// Messages sent.
        pub messages: Messages,
        /// Messages: routers to compare. Default: all.
        pub routers: Vec<RouterChoice> = vec![
            RouterChoice::Static,
            RouterChoice::ContactPlan,
            RouterChoice::Epidemic,
            RouterChoice::SprayAndWait,
            RouterChoice::Dtlsr,
        ],
        /// Messages: copies of each for spray and wait, 1 to 127. Default 8.
        pub copies: u32 = 8,
        /// Messages: duration of a run, seconds. Default 86,400.
        pub duration_s: f64 = 86_400.0,
        /// Messages: rate of every line during contacts, each direction, bit/s. Default 250,000.
        pub rate_bps: u64 = 250_000,
        /// Messages: routes for static routing and the contact plan.
        pub route: Vec<Route>,

        /// Frames sent.
        pub frames: FrameLoad,
        /// Frames: controllers of all stations; `None` for ideal ones. Default `None`.
        pub tnc: Option<TncConfig>,

        /// Moving nodes and their packets.
        pub airborne: Airborne,
    }
}

fn default_nodes() -> Vec<String> {
    vec!["tx".into(), "rx".into()]
}

/// Kind of what is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Load {
    /// Files through a chain of nodes: `[workload]`, or none of the others.
    #[default]
    Files,
    /// Messages between nodes with contacts: `[messages]`.
    Messages,
    /// Single frames on a radio channel: `[frames]`.
    Frames,
    /// Packets between nodes that move: `[airborne]`.
    Airborne,
}

impl Load {
    fn of(table: &Table) -> Load {
        match () {
            () if table.contains_key("messages") => Load::Messages,
            () if table.contains_key("frames") => Load::Frames,
            () if table.contains_key("airborne") => Load::Airborne,
            () => Load::Files,
        }
    }

    fn keys(self) -> Vec<&'static str> {
        let common = ["title", "about", "runs", "seed", "sweep"];
        let own: &[&str] = match self {
            Load::Files => &["nodes", "channel", "protocol", "settings", "duration-limit-s", "workload"],
            Load::Messages => {
                &["nodes", "channel", "messages", "routers", "copies", "duration-s", "rate-bps", "route"]
            }
            Load::Frames => &["nodes", "channel", "frames", "tnc"],
            Load::Airborne => &["airborne"],
        };
        common.iter().chain(own).copied().collect()
    }
}

/// Channel between nodes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Channel {
    /// Nodes that it connects, two, or with frames all.
    pub between: Vec<String>,
    /// Outages; with files.
    pub outage: Vec<Outage>,
    /// Contacts, outside of which there is no connection; with messages.
    pub contact: Vec<Contact>,
    /// Other keys: with files those of a [`LinkProfile`], where `profile` names the one to start from; with frames those
    /// of a radio channel ([`longwire_sim::RadioConfig`]), where paths may name nodes.
    #[serde(flatten)]
    pub properties: Table,
}

settings! {
    /// Data transferred: real files, or random bytes drawn from the seed.
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Workload {
        /// Length of one file of random bytes, used if no files are named; maximum 2^32. Default 1,000,000.
        pub bytes: u64 = 1_000_000,
        /// Files, relative to the scenario file.
        pub files: Vec<PathBuf>,
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

settings! {
    /// Messages of a run.
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Messages {
        /// Senders, drawn with equal probability.
        pub from: Vec<String>,
        /// Receivers, drawn with equal probability.
        pub to: Vec<String>,
        /// Number of messages. Default 40.
        pub count: u32 = 40,
        /// Length of each message, bytes. Default 10,000.
        pub bytes: u64 = 10_000,
        /// End of the period in which messages are created, at random times since the start of the run, seconds. Default
        /// 43,200.
        pub within_s: f64 = 43_200.0,
    }
}

settings! {
    /// Frames of a run.
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct FrameLoad {
        /// Senders. Default: all.
        pub from: Vec<String>,
        /// Receivers, drawn for each frame. Default: all.
        pub to: Vec<String>,
        /// Information octets of a frame, 4 to 2048. Default 64.
        pub bytes: u32 = 64,
        /// Mean number of frames per sender and minute. Default 2.
        pub per_minute: f64 = 2.0,
        /// Period in which frames are created, from the start of the run, seconds. Default 3,600.
        pub for_s: f64 = 3600.0,
    }
}

settings! {
    /// Repeated contact of two nodes.
    #[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Contact {
        /// Start of the first contact, seconds. Default 0.
        pub first_s: f64,
        /// Interval between contacts, seconds; 0 for a single one. Default 0.
        pub every_s: f64,
        /// Duration of each contact, seconds. Default 300.
        pub lasts_s: f64 = 300.0,
        /// Maximum random delay of each contact, seconds. Default 0.
        pub late_s: f64,
        /// Probability that each contact takes place. Default 1.
        pub chance: f64 = 1.0,
    }
}

settings! {
    /// Route.
    #[derive(Clone, Debug, PartialEq, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Route {
        /// Node that has the route.
        pub at: String,
        /// Destination of the route.
        pub to: String,
        /// Next node.
        pub via: String,
        /// Cost; lower is better. Default 1.
        pub cost: u32 = 1,
    }
}

/// Point of a scenario's grid.
#[derive(Clone, Debug, PartialEq)]
pub struct GridPoint {
    /// Parameters set by the sweeps.
    pub params: Params,
    /// Swept keys, each with its value.
    pub values: Vec<(String, Value)>,
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

    /// Reads the text of a scenario file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is not text.
    pub fn text(path: &Path) -> Result<String, Error> {
        longwire_settings::file::read_text(path).map_err(|error| {
            Error::new(format!("cannot read the scenario {}: {error}", path.display()))
                .hint("sample scenarios are in scenarios/")
        })
    }

    /// Reads a scenario from its table.
    ///
    /// # Errors
    /// Returns the errors of [`Scenario::parse`].
    pub fn from_table(table: Table, place: &str) -> Result<Scenario, Error> {
        let wrong = |what: String| Error::new(format!("{place}: {what}"));
        let table = before::converted(table).map_err(wrong)?;
        let load = Load::of(&table);
        check_keys(&table, &load.keys(), place)?;
        let scenario = Scenario { load, ..toml_text::from_table(table, place)? };
        scenario.check().map_err(wrong)?;
        Ok(scenario)
    }

    /// Expands the grid of a file's own sweeps and further ones, the last key varying fastest. A key that is given again
    /// replaces the values of the file.
    ///
    /// # Errors
    /// Fails if the scenario does not accept a key or value, or the grid is too large.
    pub fn points(
        mut table: Table,
        further: &[(String, Vec<Value>)],
        place: &str,
    ) -> Result<Vec<GridPoint>, Error> {
        let own = match table.remove("sweep") {
            Some(Value::Table(own)) => own,
            _ => Table::new(),
        };
        let sweeps = merged(&own, further)?;
        let place = if sweeps.is_empty() { place } else { "with the sweeps applied" };
        let point = |Combination { params, values, table }| {
            Ok(GridPoint { params, values, scenario: Scenario::from_table(table, place)? })
        };
        swept(table, &sweeps)?.into_iter().map(point).collect()
    }

    fn check(&self) -> Result<(), String> {
        let ends = self.channel.iter().flat_map(|channel| &channel.between);
        let senders = self.messages.from.iter().chain(&self.frames.from);
        let receivers = self.messages.to.iter().chain(&self.frames.to);
        let routes = self.route.iter().flat_map(|route| [&route.at, &route.to, &route.via]);
        let mut named = ends.chain(senders).chain(receivers).chain(routes);
        if let Some(stranger) = named.find(|name| !self.nodes.contains(name)) {
            return Err(format!("`{stranger}` is not in `nodes`"));
        }
        if self.nodes.len() < 2 {
            return Err("`nodes` needs at least two names".into());
        }
        // Node names are host names in endpoint IDs (RFC 9171 4.2.5.1.1).
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
        for (at, name) in self.nodes.iter().enumerate() {
            if name.is_empty() || !name.chars().all(is_plain) {
                return Err(format!("`{name}` is not a valid node name; use letters, digits, `-` and `_`"));
            }
            if self.nodes[..at].contains(name) {
                return Err(format!("duplicate node name `{name}`"));
            }
        }
        if self.runs == 0 {
            return Err("`runs` must be at least 1".into());
        }
        for channel in &self.channel {
            self.check_channel(channel)
                .map_err(|what| format!("channel between {}: {what}", channel.between.join(" and ")))?;
        }
        match self.load {
            Load::Files => self.check_files(),
            Load::Messages => self.check_messages(),
            Load::Frames => Ok(()),
            Load::Airborne => self.airborne.check(),
        }
    }

    fn check_channel(&self, channel: &Channel) -> Result<(), String> {
        let nodes = if self.load == Load::Frames { self.nodes.len() } else { 2 };
        let twice = |(at, name): (usize, &String)| channel.between[..at].contains(name);
        if channel.between.len() != nodes || channel.between.iter().enumerate().any(twice) {
            return Err(format!("`between` must name {nodes} different nodes"));
        }
        let misplaced = [
            (Load::Files, "outage", channel.outage.is_empty()),
            (Load::Messages, "contact", channel.contact.is_empty()),
        ];
        let misplaced = misplaced.iter().find(|(load, _, is_empty)| *load != self.load && !is_empty);
        if let Some((load, key, _)) = misplaced {
            let place = if *load == Load::Files { "[workload]" } else { "[messages]" };
            return Err(format!("`{key}` is for scenarios with `{place}`"));
        }
        if let Some(key) = channel.properties.keys().next().filter(|_| self.load == Load::Messages) {
            return Err(format!("`{key}` does not apply; with `[messages]` a channel has `contact` only"));
        }
        check_outages(&channel.outage)?;
        channel.contact.iter().try_for_each(check_contact)
    }

    fn check_files(&self) -> Result<(), String> {
        if !(self.duration_limit_s > 0.0 && self.duration_limit_s <= 1e9) {
            return Err("`duration-limit-s` must be above 0 and at most 1e9".into());
        }
        if self.workload.bytes > BYTES_MAX {
            return Err(format!("`workload.bytes` must be at most {BYTES_MAX}"));
        }
        let hops = self.hops();
        if self.channel.is_empty() {
            return Ok(());
        }
        if let Some(at) = (0..hops).find(|hop| self.channel_of(*hop).is_none()) {
            return Err(format!("no channel between `{}` and `{}`", self.nodes[at], self.nodes[at + 1]));
        }
        if self.channel.len() != hops {
            let (count, word) = (self.channel.len(), if hops == 1 { "hop" } else { "hops" });
            return Err(format!("`[[channel]]` is given {count} times for {hops} {word} along `nodes`"));
        }
        Ok(())
    }

    fn check_messages(&self) -> Result<(), String> {
        if self.messages.from.is_empty() || self.messages.to.is_empty() || self.routers.is_empty() {
            return Err(
                "`messages.from`, `messages.to` and `routers` must each have at least one entry".into()
            );
        }
        let count = self.messages.count;
        if !(1..=MESSAGES_MAX).contains(&count) || !(1..=1 << 20).contains(&self.messages.bytes) {
            return Err(format!("`messages` allows up to {MESSAGES_MAX} messages of 1 byte to 1 MiB"));
        }
        if !(1..=127).contains(&self.copies) || self.rate_bps == 0 {
            return Err("`rate-bps` must be at least 1, `copies` from 1 to 127".into());
        }
        if ![self.duration_s, self.messages.within_s].into_iter().all(is_time) {
            return Err("times must be from 0 to 1e8 seconds".into());
        }
        let pair = |channel: &Channel| {
            let mut pair = channel.between.clone();
            pair.sort_unstable();
            pair
        };
        let mut pairs: Vec<_> = self.channel.iter().map(pair).collect();
        pairs.sort_unstable();
        pairs.dedup();
        if pairs.len() > PAIRS_MAX {
            return Err(format!("at most {PAIRS_MAX} pairs of nodes can have contacts"));
        }
        Ok(())
    }

    /// Number of hops of the chain.
    pub fn hops(&self) -> usize {
        self.nodes.len().saturating_sub(1)
    }

    fn channel_of(&self, hop: usize) -> Option<&Channel> {
        let ends = &self.nodes[hop..hop + 2];
        self.channel.iter().find(|channel| ends.iter().all(|end| channel.between.contains(end)))
    }

    /// Links of all hops with their outages; profiles given by path are relative to `base`.
    ///
    /// # Errors
    /// Returns the errors of [`LinkProfile::resolve`].
    pub fn path(&self, base: &Path) -> Result<Vec<(LinkProfile, Vec<Outage>)>, Error> {
        let default = Channel::default();
        let channels = (0..self.hops()).map(|hop| self.channel_of(hop).unwrap_or(&default));
        let link = |channel: &Channel| {
            let link = LinkProfile::resolve(&channel.properties, base)?;
            // Those of the scenario replace those of the profile.
            let outages = match &channel.outage[..] {
                [] => link.outages_until(self.duration_limit_s).map_err(Error::new)?,
                own => own.to_vec(),
            };
            Ok((link, outages))
        };
        channels.map(link).collect()
    }
}

/// Returns true for a time of a scenario with contacts, seconds.
fn is_time(seconds: f64) -> bool {
    (0.0..=1e8).contains(&seconds)
}

fn check_contact(contact: &Contact) -> Result<(), String> {
    if ![contact.first_s, contact.every_s, contact.lasts_s, contact.late_s].into_iter().all(is_time) {
        return Err("times of a contact must be from 0 to 1e8 seconds".into());
    }
    if contact.lasts_s < 1.0 || !(0.0..=1.0).contains(&contact.chance) {
        return Err("`lasts-s` must be at least 1, `chance` from 0 to 1".into());
    }
    if contact.every_s > 0.0 && contact.every_s < contact.lasts_s + contact.late_s + 1.0 {
        return Err("a contact must end at least one second before the next can begin".into());
    }
    Ok(())
}
