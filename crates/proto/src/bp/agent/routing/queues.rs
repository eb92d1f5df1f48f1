//! Queues of waiting bundles, found by their next hop.
//!
//! Bundles with the same possible next hops are in one queue, their *class*. So a change of a link moves no
//! bundle: only the classes that the link may concern are checked for whether they may use it now.

use crate::bp::Eid;
use crate::kit::{OrderedMap, remove_from};
use crate::service::{LinkId, RecordId};
use std::collections::{BTreeMap, BTreeSet};

use super::super::held::Rank;
use super::super::links::Links;
use super::{Hop, NextHops, Router, RoutingView, is_copy};

/// Maximum number of bundles of a queue that are tried for one that fits a link.
const CANDIDATES_MAX: usize = 16;

/// ID of a class of bundles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct ClassId(u64);

impl ClassId {
    /// The ID as a number.
    pub(in super::super) fn number(self) -> u64 {
        self.0
    }

    /// The ID with this number.
    pub(in super::super) fn from_number(number: u64) -> Self {
        ClassId(number)
    }
}

/// Properties common to the bundles of a class.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in super::super) struct ClassKey {
    /// Possible next hops.
    pub(in super::super) ways: NextHops,
    /// Node that the bundles came from.
    pub(in super::super) previous: Option<Eid>,
    /// Link on which the bundles arrived.
    pub(in super::super) arrived_over: Option<LinkId>,
    /// Links on which the bundles cannot be sent.
    pub(in super::super) excluded_links: Vec<LinkId>,
    /// True for encrypted bundles, which never use a link on an amateur radio band.
    pub(in super::super) encrypted: bool,
    /// Nodes that have a copy or are receiving one, by [`Links::key_of`], in order.
    pub(in super::super) given: Vec<u64>,
}

#[derive(Debug)]
struct QueueClass {
    key: ClassKey,
    queue: OrderedMap<Rank, ()>,
    members: usize,
}

/// All queues.
#[derive(Debug, Default)]
pub(in super::super) struct Queues {
    ids: BTreeMap<ClassKey, ClassId>,
    classes: BTreeMap<ClassId, QueueClass>,
    /// Classes by next hop.
    by_hop: BTreeMap<Hop, BTreeSet<ClassId>>,
    /// Classes for every node that is met.
    for_everyone: BTreeSet<ClassId>,
    next: u64,
}

impl Queues {
    /// Adds a bundle to the class with this key.
    pub(super) fn join(&mut self, key: ClassKey) -> ClassId {
        if let Some(id) = self.ids.get(&key) {
            self.classes.get_mut(id).expect("both maps agree").members += 1;
            return *id;
        }
        self.next += 1;
        let id = ClassId(self.next);
        match &key.ways {
            NextHops::Everyone => drop(self.for_everyone.insert(id)),
            NextHops::Hops(hops) => hops.iter().for_each(|(_, hop)| {
                self.by_hop.entry(hop.clone()).or_default().insert(id);
            }),
        }
        self.ids.insert(key.clone(), id);
        self.classes.insert(id, QueueClass { key, queue: OrderedMap::new(), members: 1 });
        id
    }

    /// Removes a bundle from its class; the class is removed with its last member.
    pub(super) fn leave(&mut self, id: ClassId, rank: Rank) {
        let Some(class) = self.classes.get_mut(&id) else { return };
        class.queue.remove(&rank);
        class.members -= 1;
        if class.members > 0 {
            return;
        }
        let class = self.classes.remove(&id).expect("it was just found");
        self.ids.remove(&class.key);
        match class.key.ways {
            NextHops::Everyone => drop(self.for_everyone.remove(&id)),
            NextHops::Hops(hops) => hops.iter().for_each(|(_, hop)| remove_from(&mut self.by_hop, hop, &id)),
        }
    }

    /// Marks a member as having data to send.
    pub(super) fn enqueue(&mut self, id: ClassId, rank: Rank) {
        self.classes.get_mut(&id).expect("members have a class").queue.insert(rank, ());
    }

    /// Marks a member as completely sent.
    pub(super) fn dequeue(&mut self, id: ClassId, rank: Rank) {
        self.classes.get_mut(&id).expect("members have a class").queue.remove(&rank);
    }

    /// Key of a class.
    pub(in super::super) fn key(&self, id: ClassId) -> &ClassKey {
        &self.classes.get(&id).expect("members have a class").key
    }

    /// Bundles to send over this link, in order of priority, and those already begun before others: the first
    /// few of each class that may use the link now.
    pub(super) fn candidates(&self, link: LinkId, router: &dyn Router, view: &RoutingView<'_>) -> Vec<Rank> {
        let mut ranks: Vec<Rank> = Vec::with_capacity(CANDIDATES_MAX);
        // A class may name both the link and the node at its end.
        let mut classes: Vec<&ClassId> = self.of_link(link, view.links).collect();
        classes.sort_unstable();
        classes.dedup();
        for id in classes {
            let class = &self.classes[id];
            if !class.queue.is_empty() && class.key.may_use(link, router, view) {
                ranks.extend(class.queue.iter().map(|(rank, ())| rank).take(CANDIDATES_MAX));
            }
        }
        // Those of a single class are in order, unless there are copies among them.
        let order = |(priority, record): &Rank| (*priority, !is_copy(*record), *record);
        if !ranks.is_sorted_by_key(order) {
            ranks.sort_unstable_by_key(order);
        }
        ranks
    }

    /// True if the first bundle of a class that a link may concern is such a one. Cheaper than to list the candidates.
    pub(in super::super) fn may_have(
        &self,
        link: LinkId,
        links: &Links,
        is_such: impl Fn(&Rank) -> bool,
    ) -> bool {
        let firsts = self.of_link(link, links).filter_map(|id| self.classes[id].queue.first());
        firsts.into_iter().any(|(rank, ())| is_such(rank))
    }

    /// Classes that a link may concern.
    fn of_link(&self, link: LinkId, links: &Links) -> impl Iterator<Item = &ClassId> {
        let peer = links.peer(link);
        let by_link = self.by_hop.get(&Hop::Link(link));
        let by_node = peer.and_then(|peer| self.by_hop.get(&Hop::Node(peer.clone())));
        let everyone = peer.map(|_| &self.for_everyone);
        [by_link, by_node, everyone].into_iter().flatten().flatten()
    }

    /// Encrypted bundles that wait and might use this link if they were not.
    pub(in super::super) fn encrypted_of(&self, link: LinkId, links: &Links) -> Vec<RecordId> {
        let classes = self.of_link(link, links).map(|id| &self.classes[id]);
        let encrypted = classes.filter(|class| class.key.encrypted);
        encrypted.flat_map(|class| class.queue.iter().map(|((_, record), ())| *record)).collect()
    }

    /// True if a bundle would use this link, which is down and previously led to this node, if it were up.
    pub(in super::super) fn wants(&self, link: LinkId, led_to: Option<&Eid>, view: &RoutingView<'_>) -> bool {
        let by_node = led_to.and_then(|node| self.by_hop.get(&Hop::Node(node.clone())));
        let by_hop = self.by_hop.get(&Hop::Link(link)).into_iter().chain(by_node).flatten();
        let mut classes = by_hop.chain(&self.for_everyone).map(|id| &self.classes[id]);
        classes.any(|class| !class.queue.is_empty() && class.key.would_use(link, led_to, view))
    }
}

impl ClassKey {
    /// True if a bundle of this class may be sent over this link now: the link does not lead back, and the
    /// router selects it.
    fn may_use(&self, link: LinkId, router: &dyn Router, view: &RoutingView<'_>) -> bool {
        match &self.ways {
            NextHops::Hops(hops) => router.takes(link, hops, &|link| self.may(link, view.links), view),
            NextHops::Everyone => {
                self.may(link, view.links) && view.links.usable(link, view.now) && !self.has(link, view.links)
            }
        }
    }

    /// True if the bundles themselves do not exclude this link.
    pub(in super::super) fn may(&self, link: LinkId, links: &Links) -> bool {
        !self.is_barred(link, links) && !self.leads_back(link, links)
    }

    /// True if the bundles cannot be sent on this link, or must not, because they are encrypted and it uses an
    /// amateur radio band.
    pub(in super::super) fn is_barred(&self, link: LinkId, links: &Links) -> bool {
        self.excluded_links.contains(&link) || (self.encrypted && links.is_amateur(link))
    }

    /// True if a bundle of this class would use a link that is down if it led to the same node as before: the
    /// link does not lead back, and no link of the same or lower cost is available.
    fn would_use(&self, link: LinkId, led_to: Option<&Eid>, view: &RoutingView<'_>) -> bool {
        let back_to =
            led_to.zip(self.previous.as_ref()).is_some_and(|(node, previous)| node.same_node(previous));
        if back_to || self.arrived_over == Some(link) || self.is_barred(link, view.links) {
            return false;
        }
        let NextHops::Hops(hops) = &self.ways else {
            return led_to.is_none_or(|node| self.given.binary_search(&view.links.key_of(node)).is_err());
        };
        let means_it = |hop: &Hop| match hop {
            Hop::Link(id) => *id == link,
            Hop::Node(node) => Some(node) == led_to,
        };
        let Some((cost, _)) = hops.iter().find(|(_, hop)| means_it(hop)) else { return false };
        let mut as_cheap =
            hops.iter().take_while(|(other, _)| other <= cost).flat_map(|(_, hop)| view.links.of(hop));
        !as_cheap.any(|other| {
            view.links.usable(other, view.now)
                && !self.is_barred(other, view.links)
                && !self.leads_back(other, view.links)
        })
    }

    /// True if the node at the other end has had a copy.
    pub(in super::super) fn has(&self, link: LinkId, links: &Links) -> bool {
        links.peer_key(link).is_none_or(|key| self.given.binary_search(&key).is_ok())
    }

    /// True if the link leads to the node that the bundles came from (unless that node is their destination).
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
