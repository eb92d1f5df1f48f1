//! Which nodes are known to be Longwire's: their applications take off the name that goes before a file.
//!
//! Nothing in a bundle or in TCPCL says what program a node runs, so it is learnt: who is a neighbour over Longwire's own
//! convergence layer, and who has sent a file with a name, is one. Of all others nothing is known. Anybody can say so of
//! anybody; it costs a note, and nothing else depends on it.
//!
//! Limits: [`NODES_MAX`] nodes that are known, and as many of whom it was told that they are not; beyond, who comes first by
//! name gives way.

use longwire_proto::bp::agent::parse_node;
use std::collections::BTreeSet;

const NODES_MAX: usize = 1024;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct LongwirePeers {
    known: BTreeSet<String>,
    told: BTreeSet<String>,
}

impl LongwirePeers {
    /// This node is one.
    pub(crate) fn own(node: &str) -> Self {
        let mut longwire_peers = LongwirePeers::default();
        longwire_peers.add(node);
        longwire_peers
    }

    /// This is one, or the endpoint of one.
    pub(crate) fn add(&mut self, endpoint: &str) {
        if let Some(node) = parse_node(endpoint) {
            insert(&mut self.known, node.to_string());
        }
    }

    /// True the first time that somebody asks about the node of an endpoint of whom nothing is known.
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
