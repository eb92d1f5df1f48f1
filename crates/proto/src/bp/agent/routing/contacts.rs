//! Routes by a plan of contacts.
//!
//! The operator's routes say which next hops lead to a destination, and the contact windows of the links when each can be
//! reached, and how far away it is. A bundle takes the hop where it arrives first; it waits for a better contact that is
//! planned, though a worse link is up. Of equal arrivals the cheaper hop is taken. A link without a plan counts while it is
//! up, as if it had no delay.
//!
//! What a window carries is not this router's affair: no transfer is begun that cannot end within its window, whatever
//! the router (see `outgoing`). Paths of several contacts need the contacts of other nodes, too: that is another router.

use crate::service::LinkId;

use super::table::Hops;
use super::{MayUse, NextHops, RoutedBundle, Router, RoutingView};

/// See the [module](self).
#[derive(Debug)]
pub(super) struct ContactPlan;

/// The link of the earliest arrival.
fn best(hops: &Hops, may: MayUse<'_>, view: &RoutingView<'_>) -> Option<(u64, u32, LinkId)> {
    let links = hops.iter().flat_map(|(cost, hop)| view.links.of(hop).into_iter().map(move |id| (*cost, id)));
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
        // Links that are as good as the best share the load.
        let mine = view.links.get(link).and_then(|link| link.arrival_ms(true, view.dtn_ms));
        let has_cost =
            |(known, hop): &(u32, super::Hop)| *known == cost && view.links.of(hop).contains(&link);
        best == link || (mine == Some(arrival) && hops.iter().any(has_cost))
    }

    fn waits_for(&self, hops: &Hops, may: MayUse<'_>, view: &RoutingView<'_>) -> Option<LinkId> {
        best(hops, may, view).map(|(.., id)| id).filter(|id| !view.links.usable(*id, view.now))
    }
}
