//! Routing by a contact plan.
//!
//! The configured routes give the next hops towards a destination, and the contact windows of the links give
//! the times at which each can be reached and its delay. A bundle takes the hop over which it arrives first,
//! and waits for a better planned contact even if a worse link is up. Among equal arrivals, the hop of lower
//! cost is used. A link without a plan counts while it is up, with zero delay.
//!
//! The capacity of a window is not part of this decision: with every router, no transfer is begun that cannot
//! end within its window (see `outgoing`). Paths over several contacts would require the contact plans of
//! other nodes, and a different router.

use crate::service::LinkId;

use super::table::Hops;
use super::{MayUse, NextHops, RoutedBundle, Router, RoutingView};

/// Router that uses the contact plan.
#[derive(Debug)]
pub(super) struct ContactPlan;

/// Link with the earliest arrival.
fn best(hops: &Hops, may: MayUse<'_>, view: &RoutingView<'_>) -> Option<(u64, u32, LinkId)> {
    let links = hops.iter().flat_map(|(cost, hop)| view.links.of(hop).map(move |id| (*cost, id)));
    let arrivals = links.filter(|(_, id)| may(*id)).filter_map(|(cost, id)| {
        let usable = view.links.usable(id, view.now);
        Some((view.links.get(id)?.arrival_ms(usable, view.dtn_ms)?, cost, id))
    });
    arrivals.min()
}

impl Router for ContactPlan {
    fn ways(&self, _: &RoutedBundle, hops: Hops) -> NextHops {
        NextHops::Hops(hops)
    }

    fn takes(&self, link: LinkId, hops: &Hops, may: MayUse<'_>, view: &RoutingView<'_>) -> bool {
        if !may(link) || !view.links.usable(link, view.now) {
            return false;
        }
        let Some((arrival, cost, best)) = best(hops, may, view) else { return false };
        // Links with the same arrival and cost as the best share the load.
        let mine = view.links.get(link).and_then(|link| link.arrival_ms(true, view.dtn_ms));
        let has_cost = |(known, hop): &(u32, super::Hop)| {
            *known == cost && view.links.of(hop).any(|other| other == link)
        };
        best == link || (mine == Some(arrival) && hops.iter().any(has_cost))
    }

    fn waits_for(&self, hops: &Hops, may: MayUse<'_>, view: &RoutingView<'_>) -> Option<LinkId> {
        best(hops, may, view).map(|(.., id)| id).filter(|id| !view.links.usable(*id, view.now))
    }
}
