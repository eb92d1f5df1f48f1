//! Routes that a node has learned from announcements.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Node to which the router DTLSR knows a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LearnedRoute {
    /// Node ID.
    pub node: String,
    /// Node ID of the neighbour with which the path of least expected delay begins.
    pub next: String,
    /// Expected delay of a bundle to the node, seconds.
    pub expected_s: f64,
    /// Expected wait for the neighbour, seconds; null while it is connected.
    pub wait_s: Option<f64>,
    /// Age of the latest announcement of the node, seconds; null if it is known only as a neighbour of others.
    pub announced_s: Option<f64>,
    /// Links that the node announces.
    pub links: Vec<LearnedLink>,
}

/// Link that a node announces.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LearnedLink {
    /// Node ID of the neighbour.
    pub to: String,
    /// Expected delay of a bundle over the link, seconds.
    pub expected_s: f64,
    /// Seconds for which the link has been down; null while it is up.
    pub down_s: Option<f64>,
}
