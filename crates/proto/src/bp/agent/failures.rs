//! Bundles whose transfer failed: they are sent in shorter parts, over another link or later; or they are deleted.

use crate::bp::ReasonCode;
use crate::service::{LinkId, RecordId, RefuseReason, SendFailure, TransferFailure};
use crate::time::Instant;
use core::time::Duration;

use super::Agent;
use super::clock::DeadlineKind;
use super::held::{BundleState, HeldBundle};
use super::links::Link;
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
    pub(super) fn retry(&mut self, now: Instant, record: RecordId) {
        match self.holdings.get(&record).map(|held| held.state) {
            Some(BundleState::BackingOff(_)) => {
                self.route(record);
                self.settle_refused(now, record);
            }
            Some(BundleState::Verifying) => self.verify_next(record),
            _ => {}
        }
    }

    /// Excludes a link for a bundle, which is routed again.
    pub(super) fn exclude_link(&mut self, now: Instant, record: RecordId, id: LinkId, failure: SendFailure) {
        let Some(held) = self.holdings.get(&record) else { return };
        if let BundleState::Forwarding(class) = held.state
            && self.routing.queues.key(class).ways == NextHops::Everyone
        {
            return self.bar_copies(id, record);
        }
        if self.links.get(id).and_then(Link::prepared_record) == Some(record) {
            self.drop_prepared(now, id);
        }
        let Some(held) = self.holdings.get_mut(&record) else { return };
        if !held.excludes(id) {
            held.excluded_links.push((id, failure));
        }
        // A bundle that waits after another refusal is routed afterwards.
        self.sort_again(record);
        let is_backing_off = |held: &HeldBundle| matches!(held.state, BundleState::BackingOff(_));
        let is_refused = if self.holdings.get(&record).is_some_and(is_backing_off) {
            let ways = self.class_key(record).ways;
            self.all_refuse(record, &ways)
        } else {
            self.is_refused_by_all(record)
        };
        if let Some(held) = self.holdings.get_mut(&record) {
            held.is_refused = is_refused;
        }
        self.settle_refused(now, record);
    }

    /// Ends a bundle that its last hop has refused, once no part of it is in transit and it does not wait for a retry. It is deleted
    /// (RFC 9171 5.4.2), or waits if this node is its custodian.
    pub(super) fn settle_refused(&mut self, now: Instant, record: RecordId) {
        let Some(held) = self.holdings.get(&record).filter(|held| held.is_refused) else { return };
        let is_in_transit = !held.transfers.is_empty() || held.all_handed_out();
        let is_queued = matches!(held.state, BundleState::Forwarding(_));
        // Routes that have been replaced must not cost it: the change, which is yet to reach it, decides.
        if is_in_transit || !is_queued || self.routing.awaits_change(record) {
            return;
        }
        let Some(&(_, failure)) = held.excluded_links.last() else { return };
        if !self.is_refused_by_all(record) {
            // Not all hops exclude it any more.
            let held = self.holdings.get_mut(&record).expect("it was just found");
            held.is_refused = false;
        } else if is_copy(record) {
            self.copy_refused(record);
        } else if held.custody.is_some() {
            self.rest_in_custody(now, record);
        } else {
            self.counters.deleted_refused += 1;
            self.delete(now, record, ReasonCode::NoRoute, failure);
        }
    }

    /// True for a bundle in a queue whose hops are all excluded.
    pub(super) fn is_refused_by_all(&self, record: RecordId) -> bool {
        let Some(held) = self.holdings.get(&record) else { return false };
        let BundleState::Forwarding(class) = held.state else { return false };
        self.all_refuse(record, &self.routing.queues.key(class).ways)
    }

    /// True if a bundle excludes all of these hops. One without a route waits, even if the links of earlier routes were excluded.
    fn all_refuse(&self, record: RecordId, ways: &NextHops) -> bool {
        let (Some(held), NextHops::Hops(hops)) = (self.holdings.get(&record), ways) else { return false };
        let destination = held.head.destination();
        let is_left = |hop: &Hop| match hop {
            Hop::Link(link) => !held.excludes(*link),
            Hop::Node(node) => {
                let mut links = self.links.of(hop).peekable();
                let away = links.peek().is_none() && !node.same_node(destination);
                away || links.any(|link| !held.excludes(link))
            }
        };
        let is_over_excluded = |hop: &Hop| match hop {
            Hop::Link(link) => held.excludes(*link),
            Hop::Node(_) => self.links.of(hop).any(|link| held.excludes(link)),
        };
        hops.iter().any(|(_, hop)| is_over_excluded(hop)) && !hops.iter().any(|(_, hop)| is_left(hop))
    }
}
