//! Places of protocols in a ranking, with the settings that a node needs for them.

use super::{rounded, rounded_option};
use serde::Serialize;
use toml::{Table, Value};

/// Protocol with settings at its place in a ranking.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// Rank from 1, shared within a tie group; `None` without guaranteed delivery.
    pub rank: Option<usize>,
    /// True for the one that is listed first, unless nothing arrived.
    pub winner: bool,
    /// Number of the group with this rank, from 1: in the first group those without a significant difference to the
    /// fastest, in the others those with equal means. `None` without guaranteed delivery.
    pub tie_group: Option<usize>,
    /// Protocol.
    pub protocol: String,
    /// Name of its settings.
    pub settings: String,
    /// True if the source receives acknowledgements and resends what is lost.
    pub acknowledged: bool,
    /// True for a node that keeps accepted data when a link or node fails.
    pub keeps_accepted: bool,
    /// Number of runs.
    pub runs: usize,
    /// Number of runs in which everything arrived.
    pub delivered: usize,
    /// Mean transfer time of these runs, seconds; `None` if there is none.
    #[serde(serialize_with = "rounded_option")]
    pub transfer_s: Option<f64>,
    /// Half the width of its 95 % confidence interval; `None` for a single run.
    #[serde(serialize_with = "rounded_option")]
    pub ci95: Option<f64>,
    /// Ideal time for these runs, seconds.
    #[serde(serialize_with = "rounded_option")]
    pub limit_s: Option<f64>,
    /// Mean transfer time divided by the ideal time.
    #[serde(serialize_with = "rounded_option")]
    pub ratio: Option<f64>,
    /// Difference to the winner; `None` without a run in which both transfers were complete.
    pub behind_winner: Option<Difference>,
    /// Configuration with these settings.
    pub configuration: Configuration,
}

impl Ranked {
    /// Full name, such as `tcpcl3/tuned`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.protocol, self.settings)
    }

    /// Returns true if nodes keep accepted data with this protocol, and a run was complete.
    pub fn is_for_nodes(&self) -> bool {
        self.keeps_accepted && self.delivered > 0
    }
}

/// Paired difference of two protocols: of the same runs, which have the same channel noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    /// Mean difference of the transfer times, seconds; negative if this protocol was faster.
    #[serde(serialize_with = "rounded")]
    pub mean_s: f64,
    /// Half the width of its 95 % confidence interval, seconds; `None` for a single pair.
    #[serde(serialize_with = "rounded_option")]
    pub ci95_s: Option<f64>,
    /// Number of pairs.
    pub pairs: usize,
    /// True if zero lies outside the interval.
    pub significant: bool,
}

/// Configuration that the settings of a protocol need.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Configuration {
    /// Kind of the `[[link]]` of a node; `None` if nodes do not have such links.
    pub kind: Option<&'static str>,
    /// Sections of the configuration of a node with the keys that differ from their defaults, and with the channel of
    /// the `[[tnc]]`; `None` if nodes do not have such links.
    pub node: Option<Table>,
    /// Settings of the engines that differ from their defaults, as in the `[settings]` of a scenario; `None` for the
    /// links of nodes.
    pub engine: Option<Table>,
    /// Commands of the operating system, for both ends.
    pub system: Vec<String>,
    /// TCP settings that no command can set, with the values of the simulated kernel.
    pub fixed_by_kernel: Vec<String>,
    /// Keys that other settings for links of this kind change, and these do not, with their defaults; `None` if the
    /// default is to say nothing. Not part of the JSON document.
    #[serde(skip)]
    pub at_default: Vec<(Key, Option<Value>)>,
}

impl Configuration {
    /// Returns the settings of a node one by one.
    pub fn node_settings(&self) -> Vec<Setting> {
        let mut all = Vec::new();
        for (name, section) in self.node.iter().flatten() {
            flatten(name, section, &mut all);
        }
        all
    }
}

/// Key of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Section, such as `tcpcl` or `tnc.channel`.
    pub section: String,
    /// Name in this section.
    pub name: String,
}

/// Key of a configuration, and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// Key.
    pub key: Key,
    /// Value; not a table.
    pub value: Value,
}

/// Adds the settings of a section and of the sections in it.
fn flatten(section: &str, value: &Value, all: &mut Vec<Setting>) {
    let Value::Table(table) = value else { return };
    for (name, value) in table {
        match value {
            Value::Table(_) => flatten(&format!("{section}.{name}"), value, all),
            value => {
                let key = Key { section: section.to_owned(), name: name.clone() };
                all.push(Setting { key, value: value.clone() });
            }
        }
    }
}
