//! Configured routes only.
//!
//! A bundle takes the available hop of lowest cost. After a hop has gone down, it is waited for during the
//! configured time, so that a short break does not divert traffic to a hop of higher cost. A part that was
//! sent over one hop is not resent over another.

use crate::bp::Eid;
use crate::service::LinkId;
use crate::time::{Duration, Instant};
use std::collections::BTreeMap;

use super::table::Hops;
use super::{Hop, NextHops, RoutedBundle, Router, RoutingView};

/// Maximum number of remembered hops whose last link is down.
const GONE_MAX: usize = 4096;

/// Router that uses only configured routes.
#[derive(Debug)]
pub(super) struct StaticRouter {
    /// Time to wait for a preferred hop that is down before the next one is used.
    failover_after: Duration,
    /// Times at which links and neighbours went down.
    gone: BTreeMap<Hop, Instant>,
}

impl StaticRouter {
    pub(super) fn new(failover_after: Duration) -> Self {
        StaticRouter { failover_after, gone: BTreeMap::new() }
    }

    /// Time until which an unavailable hop is waited for; `None` if it is not waited for.
    fn waited_until(&self, hop: &Hop) -> Option<Instant> {
        let gone = match (self.gone.get(hop), hop) {
            (Some(at), _) => *at,
            // A link that was never up is waited for from the start on; a node that was never met may not
            // exist.
            (None, Hop::Link(_)) => Instant::ZERO,
            (None, Hop::Node(_)) => return None,
        };
        Some(gone + self.failover_after)
    }

    fn went(&mut self, now: Instant, hop: Hop) {
        if self.gone.len() >= GONE_MAX {
            self.gone.pop_first();
        }
        self.gone.insert(hop, now);
    }
}

impl Router for StaticRouter {
    fn hear(&mut self, now: Instant, link: LinkId, peer: Option<&Eid>, usable: bool) -> Option<Instant> {
        if self.failover_after.is_zero() {
            return None;
        }
        // An incoming link is not part of a route, but its peer may be.
        let own = Some(Hop::Link(link)).filter(|_| !link.is_incoming());
        for hop in [own, peer.cloned().map(Hop::Node)].into_iter().flatten() {
            match usable {
                true => drop(self.gone.remove(&hop)),
                false => self.went(now, hop),
            }
        }
        (!usable).then(|| now + self.failover_after)
    }

    fn ways(&self, _: &RoutedBundle, hops: Hops) -> NextHops {
        NextHops::Hops(hops)
    }

    fn may_come_up(&self, hop: &Hop, now: Instant) -> bool {
        self.waited_until(hop).is_some_and(|until| now < until)
    }

    fn waits_until(&self, hops: &Hops, view: &RoutingView<'_>) -> Option<Instant> {
        hops.iter().filter_map(|(_, hop)| self.waited_until(hop)).filter(|until| view.now < *until).min()
    }
}
