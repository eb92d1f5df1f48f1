//! Which bundle may go over which link.
//!
//! Bundles that may take the same ways stand in one queue, their *class*: the next hops that the routes have for the
//! destination, in the order of their cost, and the node that must not get the bundle back. So a link that comes or goes
//! moves no bundle: what is asked is which classes may use it now. A class uses the cheapest hop that has a link that
//! is usable now.

use crate::bp::Eid;
use crate::service::{LinkId, NextHop, RecordId};
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet};

use super::Agent;
use super::held::{Rank, Stage};
use super::links::Links;

/// How many bundles of a queue are looked at for one that fits a link.
const CANDIDATES_MAX: usize = 16;

/// A class of bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClassId(u64);

/// What the bundles of a class have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClassKey {
    /// The next hops with their cost, the cheapest first.
    pub(super) hops: Vec<(u32, Hop)>,
    /// The node the bundles came from.
    pub(super) previous: Option<Eid>,
    /// The link they came over.
    pub(super) arrived_over: Option<LinkId>,
    /// Links over which they cannot go.
    pub(super) barred: Vec<LinkId>,
}

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hop {
    /// This link.
    Link(LinkId),
    /// Any link to this node.
    Node(Eid),
}

/// Which endpoints a route is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pattern {
    text: String,
}

impl Pattern {
    fn matches(&self, endpoint: &str) -> bool {
        match self.text.strip_suffix('*') {
            Some(prefix) => endpoint.starts_with(prefix),
            None => endpoint == self.text,
        }
    }
}

#[derive(Debug)]
struct Class {
    key: ClassKey,
    queue: BTreeSet<Rank>,
    members: usize,
}

/// Routes and queues.
#[derive(Debug, Default)]
pub(super) struct Routing {
    routes: BTreeMap<(Pattern, Hop), u32>,
    ids: BTreeMap<ClassKey, ClassId>,
    classes: BTreeMap<ClassId, Class>,
    next: u64,
}

impl Routing {
    /// How many routes there are.
    pub(super) fn len(&self) -> usize {
        self.routes.len()
    }

    /// True if there is such a route.
    fn contains(&self, pattern: &str, hop: &Hop) -> bool {
        self.routes.contains_key(&(Pattern { text: pattern.to_owned() }, hop.clone()))
    }

    /// Adds a route or gives it another cost.
    pub(super) fn set(&mut self, pattern: String, hop: Hop, cost: u32) {
        self.routes.insert((Pattern { text: pattern }, hop), cost);
    }

    /// Takes a route away.
    pub(super) fn remove(&mut self, pattern: String, hop: Hop) -> bool {
        self.routes.remove(&(Pattern { text: pattern }, hop)).is_some()
    }

    /// The next hops for an endpoint, the cheapest first.
    pub(super) fn hops(&self, endpoint: &Eid, direct: bool) -> Vec<(u32, Hop)> {
        let text = endpoint.to_string();
        let mut best: BTreeMap<Hop, u32> = BTreeMap::new();
        for ((pattern, hop), &cost) in &self.routes {
            if pattern.matches(&text) {
                let known = best.entry(hop.clone()).or_insert(cost);
                *known = cost.min(*known);
            }
        }
        if direct && endpoint.is_singleton() {
            best.entry(Hop::Node(endpoint.node_id())).or_insert(0);
        }
        let mut hops: Vec<(u32, Hop)> = best.into_iter().map(|(hop, cost)| (cost, hop)).collect();
        hops.sort();
        hops
    }

    /// Makes a bundle a member of the class with this key.
    pub(super) fn join(&mut self, key: ClassKey) -> ClassId {
        let id = *self.ids.entry(key.clone()).or_insert_with(|| {
            self.next += 1;
            ClassId(self.next)
        });
        let class =
            self.classes.entry(id).or_insert_with(|| Class { key, queue: BTreeSet::new(), members: 0 });
        class.members += 1;
        id
    }

    /// Ends a membership; the class goes with its last member.
    pub(super) fn leave(&mut self, id: ClassId, rank: Rank) {
        let Some(class) = self.classes.get_mut(&id) else { return };
        class.queue.remove(&rank);
        class.members -= 1;
        if class.members == 0 {
            let class = self.classes.remove(&id).expect("it was just found");
            self.ids.remove(&class.key);
        }
    }

    /// A member wants the line.
    pub(super) fn enqueue(&mut self, id: ClassId, rank: Rank) {
        self.classes.get_mut(&id).expect("members have a class").queue.insert(rank);
    }

    /// A member has all it wanted.
    pub(super) fn dequeue(&mut self, id: ClassId, rank: Rank) {
        self.classes.get_mut(&id).expect("members have a class").queue.remove(&rank);
    }

    /// What a class is.
    pub(super) fn key(&self, id: ClassId) -> &ClassKey {
        &self.classes.get(&id).expect("members have a class").key
    }

    /// The bundles that want this link most, the most urgent first: the first few of each class that may use it now.
    pub(super) fn candidates(&self, link: LinkId, links: &Links, now: Instant) -> Vec<Rank> {
        let mut ranks: Vec<Rank> = Vec::new();
        for class in self.classes.values() {
            if !class.queue.is_empty() && class.key.may_use(link, links, now) {
                ranks.extend(class.queue.iter().take(CANDIDATES_MAX));
            }
        }
        ranks.sort();
        ranks
    }

    /// True if some bundle would use this link if it were up.
    pub(super) fn wants(&self, link: LinkId) -> bool {
        let leads = |key: &ClassKey| key.hops.iter().any(|(_, hop)| *hop == Hop::Link(link));
        self.classes.values().any(|class| !class.queue.is_empty() && leads(&class.key))
    }
}

impl ClassKey {
    /// True if a bundle of this class may go over this link: it leads not back, and no cheaper hop is usable.
    fn may_use(&self, link: LinkId, links: &Links, now: Instant) -> bool {
        let mut tier = None;
        for (cost, hop) in &self.hops {
            if tier.is_some_and(|tier| *cost > tier) {
                return false;
            }
            for candidate in links.of(hop) {
                let barred = self.barred.contains(&candidate) || self.leads_back(candidate, links);
                if barred || !links.usable(candidate, now) {
                    continue;
                }
                if candidate == link {
                    return true;
                }
                tier = Some(*cost);
            }
        }
        false
    }

    /// True if the link leads to the node that the bundles came from (unless it is the very node they are for).
    pub(super) fn leads_back(&self, link: LinkId, links: &Links) -> bool {
        if self.arrived_over == Some(link) {
            return true;
        }
        match (links.peer(link), &self.previous) {
            (Some(peer), Some(previous)) => peer.same_node(previous),
            _ => false,
        }
    }
}

/// A next hop as the operator names it; none: that is no node.
fn hop_of(via: &NextHop) -> Option<Hop> {
    match via {
        NextHop::Link(link) => Some(Hop::Link(*link)),
        NextHop::Node(name) => super::parse_node(name).map(Hop::Node),
    }
}

impl Agent {
    /// Adds a route, and asks anew for every waiting bundle where it may go.
    pub(super) fn set_route(&mut self, now: Instant, pattern: String, via: NextHop, cost: u32) {
        let Some(hop) = hop_of(&via) else {
            self.counters.ignored += 1;
            return;
        };
        let full = self.routing.len() >= self.config.limits.routes_max;
        if full && !self.routing.contains(&pattern, &hop) {
            self.counters.ignored += 1;
            return;
        }
        self.routing.set(pattern, hop, cost);
        self.reroute_all(now);
    }

    /// Takes a route away, and asks anew for every waiting bundle where it may go.
    pub(super) fn remove_route(&mut self, now: Instant, pattern: String, via: &NextHop) {
        let gone = hop_of(via).is_some_and(|hop| self.routing.remove(pattern, hop));
        if gone {
            self.reroute_all(now);
        } else {
            self.counters.ignored += 1;
        }
    }

    /// Sorts every waiting bundle anew. For changes of the configuration only: it walks all of them.
    pub(super) fn reroute_all(&mut self, now: Instant) {
        let waiting = |stage: Stage| matches!(stage, Stage::Forwarding(_) | Stage::Resting(_));
        let records: Vec<RecordId> =
            self.bundles.iter().filter(|(_, held)| waiting(held.stage)).map(|(record, _)| *record).collect();
        for record in records {
            self.unroute(record);
            if self.is_local(&self.bundles[&record].head.primary.destination)
                && self.bundles[&record].flights.is_empty()
            {
                self.arrive_here(now, record);
            } else {
                self.route(record);
            }
        }
    }

    /// Gives a bundle its place in the queue that its destination has.
    pub(super) fn route(&mut self, record: RecordId) {
        let held = self.bundles.get(&record).expect("only what is held is routed");
        let hops = self.routing.hops(&held.head.primary.destination, self.config.direct_neighbours);
        let barred = held.barred.clone();
        let (previous, arrived_over) = match held.own {
            true => (None, None),
            false => (held.head.previous_node(), held.intake.map(|(link, _)| link)),
        };
        // A bundle may go straight back where it came from if that very node is the destination.
        let destination = &held.head.primary.destination;
        let (previous, arrived_over) = match previous {
            Some(previous) if previous.same_node(destination) => (None, None),
            previous => (previous.map(|node| node.node_id().detached()), arrived_over),
        };
        let rank = held.rank(record);
        let class = self.routing.join(ClassKey { hops, previous, arrived_over, barred });
        let held = self.bundles.get_mut(&record).expect("it was just found");
        held.stage = Stage::Forwarding(class);
        if !held.all_handed_out() {
            self.routing.enqueue(class, rank);
            if held.flights.is_empty() {
                self.evictable.insert(rank);
            }
        }
        self.wake_links_of(class);
    }

    /// Takes a bundle out of its queue.
    pub(super) fn unroute(&mut self, record: RecordId) {
        let Some(held) = self.bundles.get_mut(&record) else { return };
        let rank = held.rank(record);
        self.evictable.remove(&rank);
        match held.stage {
            Stage::Forwarding(class) => self.routing.leave(class, rank),
            Stage::Resting(until) => self.deadlines.not_at(until, super::clock::Due::Retry(record)),
            _ => return,
        }
        held.stage = Stage::Sealing;
    }

    /// A bundle in its class wants the line (again), or no longer.
    pub(super) fn requeue(&mut self, record: RecordId) {
        let Some(held) = self.bundles.get(&record) else { return };
        let Stage::Forwarding(class) = held.stage else { return };
        let rank = held.rank(record);
        if held.all_handed_out() {
            self.routing.dequeue(class, rank);
            self.evictable.remove(&rank);
        } else {
            self.routing.enqueue(class, rank);
            if held.flights.is_empty() {
                self.evictable.insert(rank);
            }
            self.wake_links_of(class);
        }
    }

    fn wake_links_of(&mut self, class: ClassId) {
        for (_, hop) in &self.routing.key(class).hops {
            self.ready.extend(self.links.of(hop));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cheapest_matching_hop_comes_first() {
        let mut routing = Routing::default();
        routing.set("*".into(), Hop::Link(LinkId(9)), 10);
        routing.set("dtn://earth/*".into(), Hop::Link(LinkId(1)), 5);
        routing.set("dtn://earth/inbox".into(), Hop::Link(LinkId(9)), 1);
        let hops = |endpoint: &str| routing.hops(&endpoint.parse().expect("an endpoint"), false);
        assert_eq!(hops("dtn://earth/inbox"), [(1, Hop::Link(LinkId(9))), (5, Hop::Link(LinkId(1)))]);
        assert_eq!(hops("dtn://earth/other"), [(5, Hop::Link(LinkId(1))), (10, Hop::Link(LinkId(9)))]);
        assert_eq!(hops("ipn:3.1"), [(10, Hop::Link(LinkId(9)))]);
    }
}
