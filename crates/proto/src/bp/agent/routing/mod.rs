//! Where bundles go.
//!
//! A [`Router`] is a value behind a small interface: it is told what happens to links and neighbours, and says for a
//! bundle where it may go, and which of these ways is taken now. It owns no clock and no queue. Everything else is here:
//! the routes that the operator sets ([`table`]), the queues, which are found by their next hop ([`queues`]), the bundles'
//! way into them ([`queueing`]), and the copies of bundles that go to several nodes ([`copies`]).
//!
//! ```text
//!    told: neighbours here and away                           asked for each bundle
//!         |                                                          |
//!       Router  ---- ways: Hops(cost, hop ..) or Everyone -----> its class: a queue
//!                                                                    |
//!     a link is free -> candidates: the first of each class that may use it now (Router::takes)
//! ```
//!
//! | router | file | what it does |
//! |---|---|---|
//! | static | [`static_routes`] | the cheapest hop of the operator's routes that is there, the next one after a stated time |
//! | contact plan | [`contacts`] | of the routes' hops the one with the earliest arrival by the plan of contacts |
//! | epidemic | [`epidemic`] | a copy to every node that is met |
//! | spray and wait | [`spray`] | a number of copies, halved at each meeting; the last one waits for the destination |
//!
//! A further router is a further file and a line in [`router`]. What it computes with (link states, a contact graph) it
//! keeps itself; when its answers change, the bundles that wait are asked anew by [`Router::hear`]'s word.

mod contacts;
mod copies;
mod epidemic;
mod queueing;
mod queues;
mod spray;
mod static_routes;
mod table;

pub(super) use copies::{CopyOrigin, DeliveredParts, Replication};
pub(super) use queues::{ClassId, ClassKey, Queues};
pub(super) use table::{Hops, RouteTable};

use crate::bp::Eid;
use crate::service::{LinkId, RecordId};
use crate::time::Instant;
use core::fmt::Debug;

use super::config::{RouterKind as Choice, RoutingConfig as Settings};
use super::links::Links;

/// Where a route leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Hop {
    /// This link.
    Link(LinkId),
    /// Any link to this node.
    Node(Eid),
}

/// Where a bundle may go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NextHops {
    /// Over one of these, the cheapest first; none: nowhere.
    Hops(Hops),
    /// A copy to every node that is met and has had none.
    Everyone,
}

/// A bundle as routers see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoutedBundle {
    /// The operator has set a route that matches.
    pub(super) has_route: bool,
    /// How many copies may be made of it, where they are counted.
    pub(super) copies: Option<u64>,
}

/// What routers look at.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoutingView<'a> {
    /// The time.
    pub(super) now: Instant,
    /// DTN time, where there is a clock, milliseconds.
    pub(super) dtn_ms: Option<u64>,
    /// The links.
    pub(super) links: &'a Links,
}

/// Over which links a bundle may go: not back, and not where it was refused.
pub(super) type MayUse<'a> = &'a dyn Fn(LinkId) -> bool;

impl RoutingView<'_> {
    /// The links of a hop that can be used now.
    fn open(&self, hop: &Hop, may: MayUse<'_>) -> impl Iterator<Item = LinkId> {
        let links = self.links.of(hop).into_iter();
        links.filter(move |link| may(*link) && self.links.usable(*link, self.now))
    }
}

/// What routers are told.
#[derive(Clone, Copy, Debug)]
pub(super) enum LinkEvent<'a> {
    /// A link can be used: it is up, and no contact plan is against it.
    Available {
        /// The link.
        link: LinkId,
        /// The node at its other end, where that is known.
        peer: Option<&'a Eid>,
    },
    /// It can be used no longer.
    Unavailable {
        /// The link.
        link: LinkId,
        /// The node at its other end.
        peer: Option<&'a Eid>,
    },
}

/// How bundles find their way. See the [module](self).
pub(super) trait Router: Debug + Send {
    /// Something has happened. Says when waiting bundles are to be looked at again because of it.
    fn hear(&mut self, _now: Instant, _event: &LinkEvent<'_>) -> Option<Instant> {
        None
    }

    /// Where a bundle may go; `hops` is what the routes say, and its destination itself where neighbours are served
    /// directly.
    fn ways(&self, bundle: &RoutedBundle, hops: Hops) -> NextHops;

    /// Whether this link is the way to take now, of the hops of [`Router::ways`]. `may` says over which links the
    /// bundle may go at all. By default the cheapest that is there is taken.
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
        }
        false
    }

    /// The link that it waits for although others could be used, if it does.
    fn waits_for(&self, _hops: &Hops, _may: MayUse<'_>, _view: &RoutingView<'_>) -> Option<LinkId> {
        None
    }

    /// Until when it waits for a better way, if it does.
    fn waits_until(&self, _hops: &Hops, _view: &RoutingView<'_>) -> Option<Instant> {
        None
    }

    /// True if bundles may go to several nodes, so that what passed through here has to be remembered.
    fn spreads(&self) -> bool {
        false
    }

    /// How many copies may be made of a bundle, made here or not, that says this; none: they are not counted.
    fn copies(&self, _own: bool, _said: Option<u64>) -> Option<u64> {
        None
    }
}

/// The router of this configuration.
pub(super) fn router(settings: &Settings) -> Box<dyn Router> {
    match settings.router {
        Choice::Static => Box::new(static_routes::StaticRouter::new(settings.failover_after)),
        Choice::ContactPlan => Box::new(contacts::ContactPlan),
        Choice::Epidemic => Box::new(epidemic::Epidemic),
        Choice::SprayAndWait => Box::new(spray::SprayAndWait::new(settings.copies)),
    }
}

/// Copies have no record of their own: their ids have this bit, which no record has.
const COPY_BIT: u64 = 1 << 63;
/// No record has this id or a greater one, and copies have.
pub(super) const COPIES_FROM: RecordId = RecordId(COPY_BIT);

/// How many nodes are remembered as having a bundle; then it goes to its destination only.
const GIVEN_MAX: usize = 1000;

/// True for the id of a copy.
pub(super) const fn is_copy(record: RecordId) -> bool {
    record.0 & COPY_BIT != 0
}
