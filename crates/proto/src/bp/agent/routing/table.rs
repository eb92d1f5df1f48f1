//! Configured routes: the next hops for endpoints, and their costs.

use crate::bp::Eid;
use std::collections::BTreeMap;

use super::Hop;

/// Maximum number of destinations whose hops are cached.
const REMEMBERED_MAX: usize = 1024;

/// Next hops with their costs, in order of cost.
pub(in super::super) type Hops = Vec<(u32, Hop)>;

/// Pattern for the endpoints of a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct EndpointPattern {
    text: String,
}

impl EndpointPattern {
    fn matches(&self, endpoint: &str) -> bool {
        match self.text.strip_suffix('*') {
            Some(prefix) => endpoint.starts_with(prefix),
            None => endpoint == self.text,
        }
    }

    /// Number of characters that the pattern fixes; a pattern without an asterisk ranks highest.
    fn specificity(&self) -> usize {
        match self.text.strip_suffix('*') {
            Some(prefix) => prefix.len(),
            None => usize::MAX,
        }
    }
}

/// All routes.
///
/// Every pattern that matches contributes its hops, in order of cost. Among equal costs the more specific
/// pattern comes first, and the less specific ones remain as further choices.
#[derive(Debug, Default)]
pub(in super::super) struct RouteTable {
    routes: BTreeMap<(EndpointPattern, Hop), u32>,
    /// Cached results, cleared by every change.
    remembered: BTreeMap<Eid, Hops>,
}

impl RouteTable {
    /// Number of routes.
    pub(super) fn len(&self) -> usize {
        self.routes.len()
    }

    /// True if this route exists.
    pub(super) fn contains(&self, pattern: &str, hop: &Hop) -> bool {
        self.routes.contains_key(&(EndpointPattern { text: pattern.to_owned() }, hop.clone()))
    }

    /// Adds a route or changes its cost.
    pub(super) fn set(&mut self, pattern: String, hop: Hop, cost: u32) {
        self.remembered.clear();
        self.routes.insert((EndpointPattern { text: pattern }, hop), cost);
    }

    /// Removes a route. Returns true if it existed.
    pub(super) fn remove(&mut self, pattern: String, hop: Hop) -> bool {
        self.remembered.clear();
        self.routes.remove(&(EndpointPattern { text: pattern }, hop)).is_some()
    }

    /// Next hops for an endpoint, in order of cost.
    pub(in super::super) fn hops(&mut self, endpoint: &Eid) -> Hops {
        if self.routes.is_empty() {
            return Hops::new();
        }
        if let Some(hops) = self.remembered.get(endpoint) {
            return hops.clone();
        }
        let hops = self.look_up(&endpoint.to_string());
        if self.remembered.len() >= REMEMBERED_MAX {
            self.remembered.clear();
        }
        self.remembered.insert(endpoint.detached(), hops.clone());
        hops
    }

    fn look_up(&self, endpoint: &str) -> Hops {
        let mut best: BTreeMap<Hop, (u32, core::cmp::Reverse<usize>)> = BTreeMap::new();
        for ((pattern, hop), &cost) in &self.routes {
            if pattern.matches(endpoint) {
                let rank = (cost, core::cmp::Reverse(pattern.specificity()));
                let known = best.entry(hop.clone()).or_insert(rank);
                *known = rank.min(*known);
            }
        }
        let mut hops: Vec<_> = best.into_iter().map(|(hop, rank)| (rank, hop)).collect();
        hops.sort();
        hops.into_iter().map(|((cost, _), hop)| (cost, hop)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::LinkId;

    #[test]
    fn the_cheapest_matching_hop_comes_first() {
        let mut table = RouteTable::default();
        table.set("*".into(), Hop::Link(LinkId(9)), 10);
        table.set("dtn://earth/*".into(), Hop::Link(LinkId(1)), 5);
        table.set("dtn://earth/inbox".into(), Hop::Link(LinkId(9)), 1);
        let mut hops = |endpoint: &str| table.hops(&endpoint.parse().expect("an endpoint"));
        assert_eq!(hops("dtn://earth/inbox"), [(1, Hop::Link(LinkId(9))), (5, Hop::Link(LinkId(1)))]);
        assert_eq!(hops("dtn://earth/other"), [(5, Hop::Link(LinkId(1))), (10, Hop::Link(LinkId(9)))]);
        assert_eq!(hops("ipn:3.1"), [(10, Hop::Link(LinkId(9)))]);
    }

    #[test]
    fn of_equal_costs_the_more_specific_comes_first() {
        let mut table = RouteTable::default();
        table.set("dtn://earth/inbox".into(), Hop::Link(LinkId(9)), 1);
        table.set("dtn://*".into(), Hop::Link(LinkId(2)), 1);
        table.set("dtn://earth/*".into(), Hop::Link(LinkId(5)), 1);
        let hops = table.hops(&"dtn://earth/inbox".parse().expect("an endpoint"));
        let links: Vec<_> = hops.into_iter().map(|(_, hop)| hop).collect();
        assert_eq!(links, [Hop::Link(LinkId(9)), Hop::Link(LinkId(5)), Hop::Link(LinkId(2))]);
    }

    #[test]
    fn what_was_looked_up_is_forgotten_with_a_change() {
        let mut table = RouteTable::default();
        let endpoint = "dtn://earth/inbox".parse().expect("an endpoint");
        table.set("*".into(), Hop::Link(LinkId(1)), 1);
        assert_eq!(table.hops(&endpoint).len(), 1);
        table.set("*".into(), Hop::Link(LinkId(2)), 2);
        assert_eq!(table.hops(&endpoint).len(), 2);
        assert!(table.remove("*".into(), Hop::Link(LinkId(1))));
        assert_eq!(table.hops(&endpoint), [(2, Hop::Link(LinkId(2)))]);
    }
}
