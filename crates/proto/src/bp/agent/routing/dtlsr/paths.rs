//! Shortest paths by expected delay.

use crate::bp::Eid;
use core::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// Path to a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super::super) struct Path {
    /// Neighbour with which it begins.
    pub(in super::super::super) next: Eid,
    /// Expected delay, milliseconds.
    pub(in super::super::super) delay_ms: u64,
}

/// Directed links from each node: neighbour and expected delay, milliseconds.
pub(super) type Graph<'a> = BTreeMap<&'a Eid, Vec<(&'a Eid, u64)>>;

/// Paths of least expected delay from `here` to every node that can be reached, without those that begin with `avoided`
/// (Dijkstra). Delays are positive, so with the same graph each next node is nearer to the destination.
pub(super) fn shortest(graph: &Graph<'_>, here: &Eid, avoided: Option<&Eid>) -> BTreeMap<Eid, Path> {
    let mut paths: BTreeMap<Eid, Path> = BTreeMap::new();
    let mut open = BinaryHeap::new();
    for &(to, delay_ms) in graph.get(here).into_iter().flatten().filter(|(to, _)| Some(*to) != avoided) {
        open.push(Reverse((delay_ms, to, to)));
    }
    while let Some(Reverse((delay_ms, node, next))) = open.pop() {
        if node == here || paths.contains_key(node) {
            continue;
        }
        paths.insert(node.clone(), Path { next: next.clone(), delay_ms });
        for &(to, more_ms) in graph.get(node).into_iter().flatten() {
            open.push(Reverse((delay_ms.saturating_add(more_ms), to, next)));
        }
    }
    paths
}
