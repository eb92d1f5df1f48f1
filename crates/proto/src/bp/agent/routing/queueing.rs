//! Assignment of bundles to queues.

use crate::service::{LinkId, NextHop, RecordId};
use crate::time::Instant;

use super::super::Agent;
use super::super::clock::DeadlineKind;
use super::super::held::{BundleState, HeldBundle};
use super::super::holdings::{VISIT_PAUSE, VISITED_AT_ONCE};
use super::super::parse_node;
use super::queues::ClassKey;
use super::{COPIES_FROM, GIVEN_MAX, Hop, Hops, NextHops, Rerouting, RoutedBundle, RoutingView};
use crate::bp::Eid;

/// Converts a next hop from its configuration; `None` if the node ID is invalid.
fn hop_of(via: &NextHop) -> Option<Hop> {
    match via {
        NextHop::Link(link) => Some(Hop::Link(*link)),
        NextHop::Node(name) => parse_node(name).map(Hop::Node),
    }
}

impl Agent {
    /// Adds a route, and routes every waiting bundle again.
    pub(in super::super) fn set_route(&mut self, now: Instant, pattern: String, via: NextHop, cost: u32) {
        let Some(hop) = hop_of(&via) else {
            self.counters.ignored += 1;
            return;
        };
        let full = self.routing.table.len() >= self.config.limits.routes_max;
        if full && !self.routing.table.contains(&pattern, &hop) {
            self.counters.ignored += 1;
            return;
        }
        self.routing.table.set(pattern, hop, cost);
        self.reroute_all(now);
    }

    /// Removes a route, and routes every waiting bundle again.
    pub(in super::super) fn remove_route(&mut self, now: Instant, pattern: String, via: &NextHop) {
        let gone = hop_of(via).is_some_and(|hop| self.routing.table.remove(pattern, hop));
        if gone {
            self.reroute_all(now);
        } else {
            self.counters.ignored += 1;
        }
    }

    /// Routes every waiting bundle again. Where there are very many, most still follow the earlier routes for some seconds.
    pub(in super::super) fn reroute_all(&mut self, now: Instant) {
        let under_way = self.routing.rerouting.take();
        let from = under_way.as_ref().map_or(RecordId(0), |rerouting| rerouting.next);
        self.routing.rerouting = Some(Rerouting { next: from, until: from, is_past_the_end: false });
        // Otherwise the deadline of the next portion is set.
        if under_way.is_none() {
            self.reroute_next(now);
        }
    }

    /// Routes the next waiting bundles again.
    pub(in super::super) fn reroute_next(&mut self, now: Instant) {
        let Some(mut rerouting) = self.routing.rerouting.take() else { return };
        let end = if rerouting.is_past_the_end { rerouting.until } else { COPIES_FROM };
        // Those that do not wait are not woken.
        let bundles = self.holdings.range(rerouting.next..end).take(VISITED_AT_ONCE);
        let bundles: Vec<(RecordId, bool)> =
            bundles.map(|(record, held)| (record, waits_for_a_hop(held.state))).collect();
        let is_last = bundles.len() < VISITED_AT_ONCE;
        rerouting.next = match bundles.last() {
            Some((last, _)) if !is_last => RecordId(last.0 + 1),
            _ => RecordId(0),
        };
        if !is_last || (!rerouting.is_past_the_end && rerouting.until > RecordId(0)) {
            rerouting.is_past_the_end |= is_last;
            self.routing.rerouting = Some(rerouting);
            self.time.deadlines.at(now + VISIT_PAUSE, DeadlineKind::Reroute);
        }
        for (record, _) in bundles.into_iter().filter(|(_, waits)| *waits) {
            self.reroute(now, record);
        }
    }

    /// Routes a bundle again if it waits.
    fn reroute(&mut self, now: Instant, record: RecordId) {
        if !self.holdings.get(&record).is_some_and(|held| waits_for_a_hop(held.state)) {
            return;
        }
        let excludes_links = self.holdings.get(&record).is_some_and(|held| !held.excluded_links.is_empty());
        let before = self.ways(record).filter(|_| excludes_links).cloned();
        self.unroute(record);
        let held = &self.holdings[&record];
        if self.is_local(held.head.destination()) && held.transfers.is_empty() {
            self.arrive_here(now, record);
        } else {
            self.route(record);
            self.try_refused_again(record, before);
        }
    }

    /// Makes a bundle whose hops are all excluded try them again, if a change of the routes has left it these, or has come before the
    /// bundle has ended because of them. `before` are its hops before the change; `None` if none were excluded, or it was in no queue.
    fn try_refused_again(&mut self, record: RecordId, before: Option<NextHops>) {
        let excludes_all = self.is_refused_by_all(record);
        let has_changed = before.is_some_and(|before| self.ways(record) != Some(&before));
        let Some(held) = self.holdings.get_mut(&record) else { return };
        if excludes_all && (has_changed || held.is_refused) {
            held.forgive_links();
            self.sort_again(record);
        }
    }

    /// Hops of a bundle in a queue.
    fn ways(&self, record: RecordId) -> Option<&NextHops> {
        match self.holdings.get(&record)?.state {
            BundleState::Forwarding(class) => Some(&self.routing.queues.key(class).ways),
            _ => None,
        }
    }

    /// Adds a bundle to the queue for its next hops.
    pub(in super::super) fn route(&mut self, record: RecordId) {
        let key = self.class_key(record);
        let class = self.routing.queues.join(key);
        let held = self.holdings.get_mut(&record).expect("only what is held is routed");
        let rank = held.rank(record);
        held.state = BundleState::Forwarding(class);
        if !held.all_handed_out() {
            self.routing.queues.enqueue(class, rank);
            self.note_evictable(record, true);
        }
        self.wake_links_of(class);
        self.count_if_kept(record, class);
    }

    /// Removes a bundle from its queue, and routes it again.
    pub(in super::super) fn sort_again(&mut self, record: RecordId) {
        if self.holdings.get(&record).is_some_and(|held| matches!(held.state, BundleState::Forwarding(_))) {
            self.unroute(record);
            self.route(record);
        }
    }

    /// Key of the class of a bundle, which contains the bundles with the same next hops.
    pub(in super::super) fn class_key(&mut self, record: RecordId) -> ClassKey {
        let held = self.holdings.get(&record).expect("only what is held is routed");
        let excluded_links = held.excluded_links.iter().map(|(link, _)| *link).collect();
        let encrypted = held.encrypted;
        let alone = |ways| ClassKey {
            ways,
            previous: None,
            arrived_over: None,
            excluded_links,
            encrypted,
            given: Vec::new(),
        };
        if let Some(copy) = &held.copy_origin {
            return alone(NextHops::Hops(vec![(0, Hop::Node(copy.to.clone()))]));
        }
        let destination = held.head.destination().clone();
        if let Some(neighbour) = self.routing.addressee(record) {
            return alone(NextHops::Hops(vec![(0, Hop::Node(neighbour.clone()))]));
        }
        let mut hops = self.routing.table.hops(&destination);
        // A bundle in custody goes to one node at a time.
        let has_configured = !hops.is_empty();
        let came_from = match !has_configured && self.routing.may_return(held.since) {
            true => (None, None),
            false => came_from(held, &destination),
        };
        let has_route = has_configured || held.custody.is_some();
        if (self.config.direct_neighbours || self.routing.router.spreads()) && destination.is_singleton() {
            add_direct(&mut hops, Hop::Node(destination.node_id()));
        }
        // A bundle does not name the node that it came from if that is its source.
        let peer = came_from.1.and_then(|link| self.links.peer(link));
        let learned = self.routing.learned_hop(&destination, came_from.0.as_ref().or(peer));
        if let Some(next) = learned.filter(|_| !has_configured) {
            hops = vec![(0, next)];
        }
        let copies = self.begin_spread(record, has_route);
        let ways = self.routing.router.ways(&RoutedBundle { has_route, copies }, hops);
        let held = self.holdings.get_mut(&record).expect("it was just found");
        if ways == NextHops::Everyone {
            let replication = held.replication.as_deref().expect("a router that spreads");
            if held.transfers.is_empty() && replication.given.len() < GIVEN_MAX {
                let given = replication.keys(&self.links);
                // The part that one neighbour has is not at the next one.
                held.renew();
                return ClassKey { given, ..alone(ways) };
            }
            // The bundle is already being sent as a whole, or enough nodes have it.
            return alone(NextHops::Hops(vec![(0, Hop::Node(destination.node_id().detached()))]));
        }
        let (previous, arrived_over) = came_from;
        ClassKey { previous, arrived_over, ..alone(ways) }
    }

    /// Begins the list of holders of a bundle if the router replicates it. Returns the number of copies that
    /// may be made.
    fn begin_spread(&mut self, record: RecordId, has_route: bool) -> Option<u64> {
        let held = self.holdings.get_mut(&record).expect("only what is held is routed");
        if !self.routing.router.spreads() || has_route {
            return None;
        }
        let replication = held.replication.get_or_insert_default();
        if replication.copies.is_none() {
            replication.copies = self.routing.router.copies(held.own, held.head.copies());
        }
        let copies = replication.copies;
        if core::mem::replace(&mut replication.begun, true) || held.own {
            return copies;
        }
        if let Some(node) = held.head.previous_node() {
            replication.given.insert(self.links.key_of(&node));
        }
        // The node that the bundle came from may not be named in the bundle, so it is recorded.
        let key = held.intake.and_then(|(link, _)| self.links.peer_key(link));
        if let Some(key) = key.filter(|key| replication.given.insert(*key)) {
            self.note(record, super::super::record::Note::Given(key));
        }
        copies
    }

    /// Removes a bundle from its queue.
    pub(in super::super) fn unroute(&mut self, record: RecordId) {
        self.note_evictable(record, false);
        let Some(held) = self.holdings.get_mut(&record) else { return };
        let rank = held.rank(record);
        match held.state {
            BundleState::Forwarding(class) => self.routing.queues.leave(class, rank),
            BundleState::BackingOff(until) => self.time.deadlines.not_at(until, DeadlineKind::Retry(record)),
            BundleState::InCustody(until) => self.time.deadlines.not_at(until, DeadlineKind::Custody(record)),
            _ => return,
        }
        held.state = BundleState::Sealing;
    }

    /// Updates whether a bundle in its class has data to send.
    pub(in super::super) fn requeue(&mut self, record: RecordId) {
        let Some(held) = self.holdings.get(&record) else { return };
        let BundleState::Forwarding(class) = held.state else { return };
        let rank = held.rank(record);
        if held.all_handed_out() {
            self.routing.queues.dequeue(class, rank);
            self.note_evictable(record, false);
        } else {
            self.routing.queues.enqueue(class, rank);
            self.note_evictable(record, true);
            self.wake_links_of(class);
        }
    }

    /// Marks the links that may send bundles of this class as ready.
    fn wake_links_of(&mut self, class: super::ClassId) {
        match &self.routing.queues.key(class).ways {
            NextHops::Hops(hops) => {
                for (_, hop) in hops {
                    self.outgoing.wake_all(self.links.of(hop));
                    self.outgoing.wake_all(self.links.idle_for(hop));
                }
            }
            NextHops::Everyone => {
                self.outgoing.wake_all(self.links.named());
                self.outgoing.wake_all(self.links.idle());
            }
        }
    }

    /// Bundles to send over a link, in order.
    pub(in super::super) fn candidates(&self, now: Instant, link: LinkId) -> Vec<super::super::held::Rank> {
        self.routing.queues.candidates(link, &*self.routing.router, &self.view(now))
    }

    /// State that routers can inspect.
    pub(in super::super) fn view(&self, now: Instant) -> RoutingView<'_> {
        RoutingView { now, dtn_ms: self.time.clock.dtn_ms(now), links: &self.links }
    }

    /// Informs the router whether a link can be used.
    pub(in super::super) fn tell_router(&mut self, now: Instant, link: LinkId, here: bool) {
        self.links_changed();
        let peer = self.links.peer(link);
        if let Some(at) = self.routing.router.hear(now, link, peer, here) {
            self.time.deadlines.at(at, DeadlineKind::RouterWait);
        }
    }

    /// Marks every link as ready.
    pub(in super::super) fn look_at_all_links(&mut self) {
        self.outgoing.wake_all(self.links.iter().map(|(id, _)| id));
    }
}

fn waits_for_a_hop(state: BundleState) -> bool {
    matches!(state, BundleState::Forwarding(_) | BundleState::BackingOff(_))
}

/// Adds the destination itself, if it is a neighbour, at cost zero.
fn add_direct(hops: &mut Hops, hop: Hop) {
    if !hops.iter().any(|(_, known)| *known == hop) {
        hops.insert(0, (0, hop));
    }
}

/// Node and link to which a bundle must not be returned.
fn came_from(held: &HeldBundle, destination: &Eid) -> (Option<Eid>, Option<LinkId>) {
    if held.own {
        return (None, None);
    }
    let arrived_over = held.intake.map(|(link, _)| link);
    match held.head.previous_node() {
        // A bundle may be returned to the node that it came from if that node is its destination.
        Some(previous) if previous.same_node(destination) => (None, None),
        previous => (previous.map(|node| node.node_id().detached()), arrived_over),
    }
}
