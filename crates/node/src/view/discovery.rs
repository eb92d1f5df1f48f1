//! Neighbours that have announced themselves.

use super::Counts;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Discovery of neighbours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Discovery {
    /// Neighbours, in the order of their node IDs.
    pub neighbours: Vec<Neighbour>,
    /// Counters since start.
    pub counters: Counts,
    /// Reason why no announcement of this node leaves; null if they leave.
    pub trouble: Option<String>,
}

/// Neighbour that has announced itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Neighbour {
    /// Node ID that it announces.
    pub node: String,
    /// Format of its announcements: `sand`, `ipnd` or `aprs`.
    pub by: String,
    /// Address or callsign at which it can be reached.
    pub at: String,
    /// True if the key of the node signs its announcements.
    pub signed: bool,
    /// True if another key than the known one of the node was used for an announcement, or none.
    pub contested: bool,
    /// Number of ways on which it is heard.
    pub ways: u64,
    /// Link that leads to it; null if none does: it may accept no connections, and connect by itself.
    pub link: Option<String>,
    /// Seconds since it was found.
    pub since_s: f64,
    /// Seconds since its last announcement.
    pub last_s: f64,
}
