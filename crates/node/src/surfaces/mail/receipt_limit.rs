//! Limit of the receipts that this node sends. A receipt is a bundle of this node itself, which no quota of a neighbour counts, and
//! anybody can ask for one in the name of any node: without a limit a stranger fills the store and the channel.

use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::Instant;

/// Receipts to one node at once, and the time after which one more may follow.
const OF_NODE: Allowance = Allowance { burst: 30, interval: Duration::from_secs(15) };
/// Receipts to all nodes: in the lifetime of messages by default, 3 days, less than half of the bundles that a store may hold by default.
const OF_ALL: Allowance = Allowance { burst: 120, interval: Duration::from_secs(6) };

#[derive(Clone, Copy, Debug)]
struct Allowance {
    burst: u32,
    interval: Duration,
}

impl Allowance {
    /// Returns the time at which everything sent so far is forgotten, if one more is sent now; `None` if that is too many. `until` is
    /// that time before.
    fn spend(self, until: Instant, now: Instant) -> Option<Instant> {
        let until = until.max(now) + self.interval;
        (until <= now + self.interval * self.burst).then_some(until)
    }
}

/// Receipts that were sent of late.
#[derive(Debug)]
pub(super) struct ReceiptLimit {
    all: Instant,
    /// Nodes that got receipts of late; `OF_ALL` bounds their number.
    nodes: BTreeMap<String, Instant>,
}

impl ReceiptLimit {
    pub(super) fn new(now: Instant) -> Self {
        ReceiptLimit { all: now, nodes: BTreeMap::new() }
    }

    /// True if a receipt may be sent to this node now; it counts then.
    pub(super) fn permits(&mut self, now: Instant, node: &str) -> bool {
        self.nodes.retain(|_, until| *until > now);
        let until = self.nodes.get(node).copied().unwrap_or(now);
        let (Some(of_node), Some(of_all)) = (OF_NODE.spend(until, now), OF_ALL.spend(self.all, now)) else {
            return false;
        };
        self.nodes.insert(node.to_owned(), of_node);
        self.all = of_all;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_and_all_nodes_get_receipts_up_to_a_limit() {
        let began = Instant::now();
        let mut limit = ReceiptLimit::new(began);
        let mut sent = |after_s: u64, node: &str, count: u32| {
            let now = began + Duration::from_secs(after_s);
            (0..count).filter(|_| limit.permits(now, node)).count()
        };
        assert_eq!(sent(0, "dtn://bob/", 1000), 30);
        assert_eq!(sent(14, "dtn://bob/", 1000), 0);
        assert_eq!(sent(15, "dtn://bob/", 1000), 1);
        assert_eq!(sent(15, "dtn://carol/", 1000), 30);
        // Names cost nothing: the others share what is left of all.
        let others: usize = (0..1000).map(|number| sent(15, &format!("dtn://{number}/"), 1)).sum();
        assert_eq!(others, 120 + 2 - 61);
        assert_eq!(sent(3600, "dtn://bob/", 1000), 30);
        assert_eq!(limit.nodes.len(), 1);
    }
}
