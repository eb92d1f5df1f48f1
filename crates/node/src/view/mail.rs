//! Mail, and what a bundle would cost, as shown to operators.

use super::Counts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Mail of the node's users.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Mail {
    /// Address for mail programs; null if mail is only received.
    pub listen: Option<String>,
    /// Connections of mail programs.
    pub open: u64,
    /// Messages on their way whose sender is to be notified.
    pub pending: u64,
    /// Counters since start.
    pub counters: Counts,
    /// Current problem; null if there is none.
    pub trouble: Option<String>,
}

/// The way in which a node would send a bundle to an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Reachability {
    /// No route leads there.
    #[default]
    None,
    /// A way there is not known now: links whose neighbour is still unknown may lead there, or nodes that are not connected.
    Unknown,
    /// The endpoint is one of this node.
    Own,
    /// A link leads there, or every neighbour gets a copy.
    Known,
}

/// Expected transmission of a bundle over the link that it would take, alone and without losses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// Reachability of the endpoint.
    pub reachability: Reachability,
    /// Name of the link; null if there is none, or none in particular.
    pub link: Option<String>,
    /// True if the link is up.
    pub up: bool,
    /// Rate of the link, bit/s; zero if it is not known.
    pub rate_bps: u64,
    /// Time for which this node transmits, key-ups included, seconds; null if the rate is not known.
    pub air_time_s: Option<f64>,
    /// Time until the last acknowledgement, with the limits on air time and duty cycle, seconds; null if the rate is not known.
    pub time_s: Option<f64>,
}
