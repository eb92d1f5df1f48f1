//! Routing.
//!
//! A [`Router`] decides where a bundle may be sent, and which of the possible next hops is used at the moment; it is informed of
//! changes to links and neighbours. It has no clock and no queue. The other parts of routing are the routes that the operator
//! sets ([`table`]), the queues, which are found by their next hop ([`queues`]), the assignment of bundles to queues
//! ([`queueing`]), and the copies of bundles that go to several nodes ([`copies`]).
//!
//! ```text
//!    informed: links available or not                         asked for each bundle
//!     |                                                          |
//!   Router  ---- ways: Hops(cost, hop ..) or Everyone -----> its class: a queue
//!                                                                |
//! a link is free -> candidates: the first of each class that may use it now (Router::takes)
//! ```
//!
//! | router | module | behaviour |
//! |---|---|---|
//! | static | [`static_routes`] | the available hop of lowest cost among the operator's routes; the next one after a configured time |
//! | contact plan | [`contacts`] | the hop of the routes with the earliest arrival according to the contact plan |
//! | epidemic | [`epidemic`] | a copy to every node that is met |
//! | spray and wait | [`spray`] | a number of copies, halved at each meeting; the last one waits for the destination |
//! | DTLSR | [`static_routes`], with [`dtlsr`] | as static; without a route, the next node of the path of least expected delay |
//!
//! A further router is a new module and a line in [`router`]. A router keeps the state from which it computes (link states, a
//! contact graph). When its answers change, [`Router::hear`] returns the time at which waiting bundles are routed again.

mod contacts;
mod copies;
pub(super) mod dtlsr;
mod epidemic;
mod learned;
mod queueing;
mod queues;
mod spray;
mod static_routes;
mod table;

use copies::DeliveredParts;
pub(super) use copies::{CopyOrigin, Replication};
pub(super) use learned::Learned;
pub(super) use queues::{ClassId, ClassKey, Queues};
pub(super) use table::{Hops, RouteTable};

use crate::bp::Eid;
use crate::service::{LinkId, RecordId};
use crate::time::Instant;
use core::fmt::Debug;
use std::collections::{BTreeMap, BTreeSet};

use super::config::{RouterKind as Choice, RoutingConfig as Settings};
use super::links::Links;
use super::taken::Digests;

/// Next hop of a route.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hop {
    /// This link.
    Link(LinkId),
    /// Any link to this node.
    Node(Eid),
}

/// Possible next hops of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NextHops {
    /// One of these hops, in order of cost; empty if there is no route.
    Hops(Hops),
    /// A copy to every node that is met and has not had one.
    Everyone,
}

/// Properties of a bundle that routers use.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoutedBundle {
    /// True if a configured route matches the destination.
    pub(super) has_route: bool,
    /// Number of copies that may be made; `None` if copies are not counted.
    pub(super) copies: Option<u64>,
}

/// State that routers can inspect.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoutingView<'a> {
    /// Current time.
    pub(super) now: Instant,
    /// DTN time, milliseconds; `None` without a clock.
    pub(super) dtn_ms: Option<u64>,
    /// Links.
    pub(super) links: &'a Links,
}

/// Predicate: true if a bundle may be sent over a link, that is, if the link does not lead back and has not
/// refused the bundle.
pub(super) type MayUse<'a> = &'a dyn Fn(LinkId) -> bool;

impl RoutingView<'_> {
    /// Links of a hop that are usable now.
    fn open(&self, hop: &Hop, may: MayUse<'_>) -> impl Iterator<Item = LinkId> {
        let links = self.links.of(hop);
        links.filter(move |link| may(*link) && self.links.usable(*link, self.now))
    }
}

/// Routing decisions for the bundles of an agent.
pub(super) trait Router: Debug + Send {
    /// Handles a change of a link to the node `peer`, if that is known: `usable` is true if the link is up and the contact
    /// plan permits it. Returns the time at which waiting bundles must be routed again because of it.
    fn hear(&mut self, _now: Instant, _link: LinkId, _peer: Option<&Eid>, _usable: bool) -> Option<Instant> {
        None
    }

    /// Returns the possible next hops of a bundle. `hops` are those of the configured routes, and the
    /// destination itself if bundles are sent directly to neighbours.
    fn ways(&self, bundle: &RoutedBundle, hops: Hops) -> NextHops;

    /// True if this link should be used now, given the hops of [`Router::ways`]. `may` is true for the links
    /// over which the bundle may be sent. By default, the available hop of lowest cost is used, unless one of lower cost
    /// is waited for.
    fn takes(&self, link: LinkId, hops: &Hops, may: MayUse<'_>, view: &RoutingView<'_>) -> bool {
        let mut tier = None;
        for (cost, hop) in hops {
            if tier.is_some_and(|tier| *cost > tier) {
                return false;
            }
            for candidate in view.open(hop, may) {
                if candidate == link {
                    return true;
                }
                tier = Some(*cost);
            }
            // A link that the bundle must not use is not waited for.
            let is_barred = match hop {
                Hop::Link(link) => !may(*link),
                Hop::Node(_) => {
                    let mut links = view.links.of(hop).peekable();
                    links.peek().is_some() && !links.any(may)
                }
            };
            if tier.is_none() && !is_barred && self.may_come_up(hop, view.now) {
                tier = Some(*cost);
            }
        }
        false
    }

    /// True if an unavailable hop may come up in time.
    fn may_come_up(&self, _hop: &Hop, _now: Instant) -> bool {
        false
    }

    /// Link for which the bundle waits although others are usable; `None` if it does not wait.
    fn waits_for(&self, _hops: &Hops, _may: MayUse<'_>, _view: &RoutingView<'_>) -> Option<LinkId> {
        None
    }

    /// Time until which the bundle waits for a better hop; `None` if it does not wait.
    fn waits_until(&self, _hops: &Hops, _view: &RoutingView<'_>) -> Option<Instant> {
        None
    }

    /// True if bundles may go to several nodes, so that forwarded bundles must be remembered.
    fn spreads(&self) -> bool {
        false
    }

    /// Number of copies that may be made of a bundle with this number in its header; `None` if copies are not
    /// counted.
    fn copies(&self, _own: bool, _said: Option<u64>) -> Option<u64> {
        None
    }
}

/// Creates the configured router.
pub(super) fn router(settings: &Settings) -> Box<dyn Router> {
    match settings.router {
        Choice::Static | Choice::Dtlsr => Box::new(static_routes::StaticRouter::new(settings.failover_after)),
        Choice::ContactPlan => Box::new(contacts::ContactPlan),
        Choice::Epidemic => Box::new(epidemic::Epidemic),
        Choice::SprayAndWait => Box::new(spray::SprayAndWait::new(settings.copies)),
    }
}

/// Routes of bundles, and the bundles that wait for their turn.
#[derive(Debug)]
pub(super) struct Routing {
    pub(super) table: RouteTable,
    pub(super) queues: Queues,
    pub(super) router: Box<dyn Router>,
    /// Copies of bundles by destination node.
    pub(super) copies: BTreeMap<Eid, BTreeSet<RecordId>>,
    passed: DeliveredParts,
    /// Work that a change of the routes has left; the deadline of its next portion is set.
    rerouting: Option<Rerouting>,
    /// Routes from announcements, with the router DTLSR.
    pub(super) learned: Option<Box<Learned>>,
}

impl Routing {
    /// Creates a routing without routes and bundles.
    pub(super) fn new(router: Box<dyn Router>, digests: Digests, learned: Option<Learned>) -> Self {
        Routing {
            table: RouteTable::default(),
            queues: Queues::default(),
            router,
            copies: BTreeMap::new(),
            passed: DeliveredParts::new(digests),
            rerouting: None,
            learned: learned.map(Box::new),
        }
    }

    /// True for a record that a change of the routes has yet to reach.
    pub(super) fn awaits_change(&self, record: RecordId) -> bool {
        self.rerouting.as_ref().is_some_and(|rerouting| {
            let is_ahead = (rerouting.next..COPIES_FROM).contains(&record);
            if rerouting.is_past_the_end {
                is_ahead && record < rerouting.until
            } else {
                is_ahead || record < rerouting.until
            }
        })
    }
}

/// Bundles that are still to be routed again: those from `next` to the end and then, as changes may come one after the other,
/// those before the place at which the last one came.
#[derive(Debug)]
struct Rerouting {
    next: RecordId,
    until: RecordId,
    is_past_the_end: bool,
}

/// Bit in the ID of a copy, which has no record of its own. No record ID has it.
const COPY_BIT: u64 = 1 << 63;
/// Lower bound of the IDs of copies, and upper bound of record IDs.
pub(super) const COPIES_FROM: RecordId = RecordId(COPY_BIT);

/// Maximum number of holders remembered per bundle; after that, it is sent only to its destination.
const GIVEN_MAX: usize = 1000;

/// True for the ID of a copy.
pub(super) const fn is_copy(record: RecordId) -> bool {
    record.0 & COPY_BIT != 0
}
