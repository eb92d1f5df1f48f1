//! Bundles whose transfer failed: they are sent in shorter parts, over another link or later; or they are deleted.

use crate::bp::ReasonCode;
use crate::service::{LinkId, RecordId, RefuseReason, SendFailure, TransferFailure};
use crate::time::Instant;
use core::time::Duration;

use super::Agent;
use super::clock::DeadlineKind;
use super::held::BundleState;
use super::routing::{Hop, NextHops, is_copy};

impl Agent {
    /// Chooses what becomes of a bundle of which a transfer of this length failed.
    pub(super) fn after_failure(
        &mut self,
        now: Instant,
        id: LinkId,
        record: RecordId,
        reason: TransferFailure,
        length: u64,
    ) {
        match reason {
            TransferFailure::LinkDown | TransferFailure::Cancelled => {}
            TransferFailure::TooLong => {
                let held = &self.holdings[&record];
                let (may_fragment, overhead) = (held.may_fragment(), held.transfer_overhead());
                let link = self.links.get_mut(id).expect("the transfer was on it");
                // The peer did not announce its limit: the length is halved until it fits.
                if may_fragment && length > 1 {
                    link.bundle_bytes_max = link.longest_bundle().min(length / 2 + overhead);
                } else {
                    self.exclude_link(now, record, id, SendFailure::Limit);
                }
            }
            TransferFailure::Refused(RefuseReason::NotAcceptable) => {
                self.exclude_link(now, record, id, SendFailure::Refused(RefuseReason::NotAcceptable));
            }
            TransferFailure::Refused(RefuseReason::SessionTerminating) => {
                self.hold_link(now, id, self.config.backoff_min);
            }
            TransferFailure::Refused(reason) => {
                if reason == RefuseReason::NoResources {
                    self.hold_link(now, id, self.config.backoff_min.min(Duration::from_secs(1)));
                }
                self.rest(now, record);
            }
        }
    }

    /// Schedules a retry of the rest of a bundle; the wait grows with each refusal after one, whatever is in transit.
    pub(super) fn rest(&mut self, now: Instant, record: RecordId) {
        let waits = |state| matches!(state, BundleState::BackingOff(until) if until > now);
        let Some(held) = self.holdings.get(&record).filter(|held| !waits(held.state)) else { return };
        let doubled = self.config.backoff_min.saturating_mul(1 << held.refusals.min(20));
        let wait = doubled.min(self.config.backoff_max).mul_f64(0.75 + self.rng.unit() / 2.0);
        self.unroute(record);
        let held = self.holdings.get_mut(&record).expect("it was just found");
        held.refusals = held.refusals.saturating_add(1);
        let until = now + wait;
        held.state = BundleState::BackingOff(until);
        self.time.deadlines.at(until, DeadlineKind::Retry(record));
        self.note_evictable(record, true);
    }

    /// Retries a bundle after its wait.
    pub(super) fn retry(&mut self, record: RecordId) {
        match self.holdings.get(&record).map(|held| held.state) {
            Some(BundleState::BackingOff(_)) => self.route(record),
            Some(BundleState::Verifying) => self.verify_next(record),
            _ => {}
        }
    }

    /// Excludes a link for a bundle. A bundle whose last hop this was is deleted (RFC 9171 5.4.2); one without a route waits.
    pub(super) fn exclude_link(&mut self, now: Instant, record: RecordId, id: LinkId, failure: SendFailure) {
        // Routes that have been replaced must not cost it.
        self.finish_change(now, record);
        let Some(held) = self.holdings.get_mut(&record) else { return };
        let BundleState::Forwarding(class) = held.state else {
            // The bundle waits after another refusal, and is routed again afterwards.
            held.excluded_links.push(id);
            return;
        };
        let hops = match &self.routing.queues.key(class).ways {
            NextHops::Hops(hops) => hops.clone(),
            NextHops::Everyone => return self.bar_copies(id, record),
        };
        held.excluded_links.push(id);
        let (excluded_links, idle) = (held.excluded_links.clone(), held.transfers.is_empty());
        let destination = held.head.destination().clone();
        let is_left = |hop: &Hop| match hop {
            Hop::Link(link) => !excluded_links.contains(link),
            Hop::Node(node) => {
                let mut links = self.links.of(hop).peekable();
                let away = links.peek().is_none() && !node.same_node(&destination);
                away || links.any(|link| !excluded_links.contains(&link))
            }
        };
        // The route over this link may have gone meanwhile.
        let is_over = |hop: &Hop| match hop {
            Hop::Link(link) => *link == id,
            Hop::Node(_) => self.links.of(hop).any(|link| link == id),
        };
        if !hops.iter().any(|(_, hop)| is_over(hop)) || hops.iter().any(|(_, hop)| is_left(hop)) {
            self.unroute(record);
            self.route(record);
        } else if idle && is_copy(record) {
            self.copy_refused(record);
        } else if idle && self.holdings[&record].custody.is_some() {
            self.rest_in_custody(now, record);
        } else if idle {
            self.counters.deleted_refused += 1;
            self.delete(now, record, ReasonCode::NoRoute, failure);
        }
    }
}
