//! Configuration of a router.

use crate::packet_router::NodeAddress;
use crate::setting::{Fault, Settings, at_least, number, rule, settings, wait};
use crate::time::Duration;
use serde::{Deserialize, Serialize};

settings! {
    /// Configuration of an [`AeroRp`](super::AeroRp). The time to intercept is published; all values are ours.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
    pub struct Config {
        /// Address of the node. Default 0.
        pub address: NodeAddress = NodeAddress(0),
        /// Radio range between any two nodes, metres. Default 25,000.
        pub range_m: f64 = 25_000.0,
        /// Nodes that never move, with their positions in metres: ground stations. Default: none.
        pub known: Vec<(NodeAddress, [f64; 3])>,
        /// Fixes are used. Without them, a packet goes to its destination when that is a neighbour. Default true.
        pub uses_position: bool = true,
        /// Largest speed of a fix that is believed, metres per second. Default 1,500.
        pub speed_mps_max: f64 = 1500.0,
        /// Age at which a fix is forgotten: a straight line is no longer likely. Default 5 min.
        pub forget_after: Duration = Duration::from_secs(300),
        /// Maximum number of nodes whose fixes are remembered, without the known ones. Default 256.
        pub nodes_max: usize = 256,
        /// Number of nodes that may pass a fix on. Default 4.
        pub fix_hops_max: u8 = 4,
        /// Interval at which the fix of a node is passed on at most. Default 10 s.
        pub tell_interval: Duration = Duration::from_secs(10),
        /// Time to intercept beyond which a straight line means nothing. Default 5 min.
        pub horizon: Duration = Duration::from_secs(300),
        /// Speed at which a packet is believed to come nearer on a node that does not, metres per second. Default 50.
        pub progress_mps: f64 = 50.0,
        /// Time that a neighbour must be better than this node. Default 10 s.
        pub margin: Duration = Duration::from_secs(10),
        /// Time that a packet does not go back to the neighbour from which it came. Default 30 s.
        pub return_after: Duration = Duration::from_secs(30),
        /// Expected time of a hop. Default 1 s.
        pub hop_time: Duration = Duration::from_secs(1),
        /// Time that a neighbour with a full queue is believed to add; less for one that is less full. Default 10 s.
        pub full_queue_time: Duration = Duration::from_secs(10),
        /// Share of a neighbour's queue, percent, above which it gets only packets to itself. Default 95.
        pub fill_percent_max: u64 = 95,
        /// Time that a link on which all frames are damaged is believed to add; less for a better one. Default 200 s.
        pub damaged_time: Duration = Duration::from_secs(200),
    }
}

/// Returns an error unless a number is above zero and finite.
fn positive(key: &str, value: f64, hint: &'static str) -> Result<(), Fault> {
    rule(value.is_finite() && value > 0.0, key, "must be a number above 0", hint)
}

impl Settings for Config {
    fn check(&self) -> Result<(), Fault> {
        positive("range-m", self.range_m, "25000 is the default")?;
        positive("speed-mps-max", self.speed_mps_max, "1500 is the default")?;
        positive("progress-mps", self.progress_mps, "50 is the default")?;
        let finite = self.known.iter().all(|(_, position)| position.iter().all(|of| of.is_finite()));
        rule(finite, "known", "has a position that is no number", "give metres")?;
        wait("forget-after", self.forget_after, "5 min is the default")?;
        wait("tell-interval", self.tell_interval, "10 s is the default")?;
        wait("horizon", self.horizon, "5 min is the default")?;
        wait("margin", self.margin, "10 s is the default; without it packets go to and fro")?;
        at_least("nodes-max", self.nodes_max as u64, 1, "256 is the default")?;
        number("fill-percent-max", self.fill_percent_max, 1..=100, "95 is the default")
    }
}
