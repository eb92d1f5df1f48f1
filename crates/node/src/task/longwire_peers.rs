//! Nodes known to run Longwire: their applications remove the file name in front of a file.
//!
//! Neither bundles nor TCPCL identify the program of a node, so this is learnt: a neighbour over Longwire's own convergence
//! layer runs Longwire, and so does a node that has sent a file with a name. All other nodes are unknown. Any node can forge
//! this for any other; that costs an entry, and nothing else depends on it.
//!
//! Limits: [`NODES_MAX`] known nodes, and as many unknown nodes for which a notice was given; beyond that the first by name is
//! removed.

use longwire_proto::bp::agent::parse_node;
use std::collections::BTreeSet;

const NODES_MAX: usize = 1024;

/// Nodes known to run Longwire, and unknown nodes for which a notice was given.
#[derive(Debug, Default)]
pub(crate) struct LongwirePeers {
    known: BTreeSet<String>,
    told: BTreeSet<String>,
}

impl LongwirePeers {
    /// Starts with this node as the only known one.
    pub(crate) fn own(node: &str) -> Self {
        let mut longwire_peers = LongwirePeers::default();
        longwire_peers.add(node);
        longwire_peers
    }

    /// Adds a node, given as its node ID or one of its endpoints.
    pub(crate) fn add(&mut self, endpoint: &str) {
        if let Some(node) = parse_node(endpoint) {
            insert(&mut self.known, node.to_string());
        }
    }

    /// True the first time that this is called for an unknown node, given as one of its endpoints.
    pub(crate) fn is_news(&mut self, endpoint: &str) -> bool {
        let Some(node) = parse_node(endpoint).map(|node| node.to_string()) else { return false };
        !self.known.contains(&node) && insert(&mut self.told, node)
    }
}

fn insert(nodes: &mut BTreeSet<String>, node: String) -> bool {
    let is_new = nodes.insert(node);
    if nodes.len() > NODES_MAX {
        nodes.pop_first();
    }
    is_new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_each_node_that_is_not_known_it_is_told_once() {
        let mut longwire_peers = LongwirePeers::own("dtn://alice/");
        longwire_peers.add("dtn://bob/files");
        assert!(!longwire_peers.is_news("dtn://alice/files"), "it is this one");
        assert!(!longwire_peers.is_news("dtn://bob/other"), "it is known");
        assert!(longwire_peers.is_news("ipn:2.7") && !longwire_peers.is_news("ipn:2.8"), "once");
        for number in 0..5000 {
            longwire_peers.add(&format!("dtn://{number}/"));
            longwire_peers.is_news(&format!("ipn:{number}.1"));
        }
        assert_eq!((longwire_peers.known.len(), longwire_peers.told.len()), (NODES_MAX, NODES_MAX));
    }
}
