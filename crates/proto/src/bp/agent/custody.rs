//! Custody transfer (RFC 5050 5.10 to 5.12, 6.1.2, 6.3) of version 6 bundles.
//!
//! ```text
//!   arrives --> seal is durable --> forwarding ------> in custody ------------> released
//!               "accepted" goes     (5.4)   ^          until a signal comes,    signals for all of it:
//!               to the previous             |          or the timer expires     the record is removed
//!               custodian                   '----------- not yet released <--'
//! ```
//!
//! - The node accepts custody of bundles from configured neighbours, of bundles for configured destinations, and of its own
//!   bundles that request it. The acceptance is part of the seal, so the signal follows only what survives any crash. The
//!   prefix of a broken transfer cannot carry this mark: its custody stays with the previous custodian.
//! - A bundle in custody stays in the store after the convergence layer's acknowledgement, until another custodian or the
//!   destination has signalled every byte. Signals name fragments, so the released part is a set of ranges.
//! - The custody timer is a configured time, or measured: four times the duration of the transfer plus the round-trip time of
//!   earlier signals over that link. It doubles with each retry, and does not expire while the link is down, so that a slow
//!   link is not flooded with copies of bundles that are still in its queue.
//! - A signal counts only for bytes that were sent. A node signals `redundant reception` only while it has sent nothing of the
//!   bundle itself: the recipient of such a signal cannot have received the bundle from this node, and two nodes cannot
//!   release each other. Otherwise it sends no signal, and the timer of the other custodian causes a retry.
//! - A signal is trusted if it comes from the route of the bundle: over a link to the neighbour that the bundle was sent to, over
//!   an incoming link from the node at the other end of that link, or over a link that leads to the destination. RFC 5050 6.3
//!   has no such rule. Custodians are nodes that the bundle was forwarded to (5.10), and signals are not signed, so the
//!   source that a signal names proves nothing. A signal that is wrongly distrusted costs a retry, a forged one that is
//!   trusted costs the bundle.
//! - A bundle in custody is never evicted, and never deleted for lack of a route. Custody ends by release, by expiry, or on
//!   request of the application or the operator; the deletion is reported (RFC 5050 5.13).
//! - Custody of a bundle for a group is undefined (5.10); such a bundle is forwarded as if it did not request custody.
//!
//! Not implemented: aggregate custody signals (they count as unknown administrative records), and several concurrent
//! custodians: a bundle in custody follows routes and is not replicated.

use crate::bp::{Eid, ReasonCode, v6};
use crate::service::{BundleVersion, LinkId, Priority, RecordId, ReportedStatus, SendFailure};
use crate::time::{Duration, Instant};
use std::collections::BTreeSet;

use super::Agent;
use super::accounts::NeighbourNumber;
use super::adu::AduKey;
use super::clock::DeadlineKind;
use super::delivery::PayloadId;
use super::head::AnyHead;
use super::held::{BundleState, HeldBundle};
use super::ranges::Ranges;
use super::record::Note;
use super::reports::subject_of;

/// Custody state of a bundle.
#[derive(Clone, Debug, Default)]
pub(super) struct Custody {
    /// Ranges of the payload that were sent; only these can be released by a signal.
    handed: Ranges,
    handed_empty: bool,
    /// Ranges of `handed` that another custodian or the destination has signalled.
    released: Ranges,
    released_empty: bool,
    /// Number of retries of the unreleased part.
    attempts: u32,
    /// Time at which the first byte was sent in this attempt.
    begun: Option<Instant>,
    /// Time at which the next hop acknowledged the last byte.
    sent: Option<Instant>,
    /// Link of the last transfer, and how often that link had come up by then.
    over: Option<(LinkId, u64)>,
    /// A node that received the bundle in this attempt could not process it.
    refused: bool,
    /// The complete bundle was sent, perhaps before the last start, and a note records it.
    pub(super) awaited: bool,
}

impl Custody {
    /// Adds a range that is sent over a link.
    fn hand_out(&mut self, now: Instant, from: u64, to: u64, over: (LinkId, u64)) {
        self.handed.insert(from, to);
        self.handed_empty = true;
        self.begun.get_or_insert(now);
        self.over = Some(over);
    }

    /// True if no part of the bundle was sent.
    fn is_untouched(&self) -> bool {
        self.handed.is_empty() && !self.handed_empty
    }

    /// Releases a range that another custodian has. Returns true if that changes anything.
    fn release(&mut self, from: u64, to: u64) -> bool {
        let before = (self.released.total(), self.released_empty);
        for (from, to) in self.handed.within(from, to) {
            self.released.insert(from, to);
        }
        self.released_empty |= self.handed_empty && from == 0;
        before != (self.released.total(), self.released_empty)
    }

    fn is_released(&self, payload_bytes: u64) -> bool {
        if payload_bytes == 0 { self.released_empty } else { self.released.contains(0, payload_bytes) }
    }

    /// Restores the custody state after a restart.
    pub(super) fn restored(payload_bytes: u64, safe: u64, awaited: bool) -> Self {
        let handed = if awaited { payload_bytes } else { safe };
        let handed_empty = awaited || safe > 0;
        Custody { handed: Ranges::of(0, handed), handed_empty, awaited, ..Custody::default() }
    }
}

/// Round-trip time of custody signals over a link, smoothed as in RFC 6298.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrip {
    smoothed: Duration,
    variation: Duration,
}

impl RoundTrip {
    fn with(known: Option<Self>, sample: Duration) -> Self {
        match known {
            None => RoundTrip { smoothed: sample, variation: sample / 2 },
            Some(RoundTrip { smoothed, variation }) => RoundTrip {
                smoothed: smoothed * 7 / 8 + sample / 8,
                variation: variation * 3 / 4 + smoothed.abs_diff(sample) / 4,
            },
        }
    }

    fn timeout(self) -> Duration {
        self.smoothed + self.variation * 4
    }
}

impl HeldBundle {
    /// Removes the released ranges from those still to be sent.
    pub(super) fn skip_released(&mut self) {
        let Some(custody) = &self.custody else { return };
        for (from, to) in custody.released.iter() {
            self.to_send.remove(from, to);
        }
        self.to_send_empty &= !custody.released_empty;
    }
}

impl Agent {
    /// True if this node accepts custody of a complete bundle.
    pub(super) fn takes_custody(&self, held: &HeldBundle) -> bool {
        if !held.head.wants_custody() || held.closed {
            return false;
        }
        let settings = &self.config.custody;
        let destination = held.head.destination().to_string();
        let peer = held.intake.and_then(|(link, _)| self.links.peer(link)).map(Eid::to_string);
        let matches = |patterns: &[String], text: &str| patterns.iter().any(|p| super::matches(p, text));
        held.own
            || matches(&settings.accept_for, &destination)
            || peer.is_some_and(|peer| matches(&settings.accept_from, &peer))
    }

    /// Completes the acceptance of custody, once it is durable (RFC 5050 5.10.1).
    pub(super) fn accept_custody(&mut self, now: Instant, record: RecordId) {
        let Some(held) = self.holdings.get_mut(&record) else { return };
        if held.custody.is_none() {
            return;
        }
        let (before, neighbour) = (held.head.clone(), held.neighbour);
        held.head.set_custodian(self.node.clone());
        self.counters.custody_accepted += 1;
        if before.asks_for(ReportedStatus::CustodyAccepted) && self.config.reports.custody {
            let none = ReasonCode::NoAdditionalInformation;
            self.report(now, neighbour, &before, ReportedStatus::CustodyAccepted, none);
        }
        self.signal(now, neighbour, &before, true, v6::CustodyReason::NoAdditionalInformation);
    }

    /// Resumes custody after a restart. The previous custodian may not have received the signal, unless the
    /// bundle was already sent on.
    pub(super) fn resume_custody(&mut self, now: Instant, record: RecordId) {
        let held = &self.holdings[&record];
        let Some(custody) = &held.custody else { return };
        if held.own {
            return;
        }
        if custody.awaited {
            let node = self.node.clone();
            self.holdings.get_mut(&record).expect("it was just found").head.set_custodian(node);
        } else {
            self.accept_custody(now, record);
        }
    }

    /// Sends a custody signal about a bundle to its custodian (RFC 5050 6.1.2, 6.2). Does nothing if there is
    /// no custodian or it is this node. The signal is charged to the neighbour that brought the bundle.
    fn signal(
        &mut self,
        now: Instant,
        neighbour: NeighbourNumber,
        subject: &AnyHead,
        succeeded: bool,
        reason: v6::CustodyReason,
    ) {
        let Some(head) = self.owes_signal(subject) else { return };
        let custodian = head.primary.custodian();
        let time = v6::Time::from_millis(self.time.clock.dtn_ms(now).unwrap_or(0));
        let signal = v6::CustodySignal { succeeded, reason, time, subject: subject_of(head) };
        let payload = v6::AdminRecord::CustodySignal(signal).to_bytes();
        let lifetime = self.config.custody.signal_lifetime;
        let (destination, priority) = (custodian.clone(), Priority::Expedited);
        let about = (BundleVersion::V6, destination, payload);
        if self.originate_record(now, neighbour, about, lifetime, priority).is_some() {
            self.counters.custody_signals_sent += 1;
        } else {
            self.counters.custody_signals_unsent += 1;
        }
    }

    /// Header of a bundle whose custodian is owed a signal; `None` if none is owed.
    fn owes_signal<'a>(&self, subject: &'a AnyHead) -> Option<&'a v6::Head> {
        let AnyHead::V6(head) = subject else { return None };
        let custodian = head.primary.custodian();
        let owed = subject.wants_custody() && !custodian.is_null() && !custodian.same_node(&self.node);
        owed.then_some(head)
    }

    /// Sends a signal about a refused bundle, subject to a rate limit, because such bundles cost their sender
    /// little. Without the signal, the custodian retries when its timer expires.
    pub(super) fn signal_refusal(
        &mut self,
        now: Instant,
        neighbour: NeighbourNumber,
        subject: &AnyHead,
        succeeded: bool,
        reason: v6::CustodyReason,
    ) {
        if self.owes_signal(subject).is_none() {
            return;
        }
        let (per_minute, source) = (self.config.reports.per_minute_max, self.source_key(subject));
        match self.signal_rate_limit.take(now, per_minute, neighbour, source) {
            true => self.signal(now, neighbour, subject, succeeded, reason),
            false => self.counters.custody_signals_unsent += 1,
        }
    }

    /// Handles a bundle with a custodian that a neighbour sends although it is held at this node or was
    /// delivered here (RFC 5050 5.6 step 4).
    pub(super) fn redundant(&mut self, now: Instant, neighbour: NeighbourNumber, head: &AnyHead) {
        if !head.wants_custody() || head.source().is_null() {
            return;
        }
        let key = AduKey::of(head, RecordId(0));
        if self.deliveries.was_taken(head) {
            // The signal about its delivery was lost.
            let none = v6::CustodyReason::NoAdditionalInformation;
            return self.signal_refusal(now, neighbour, head, true, none);
        }
        let from = head.fragment().map_or(0, |fragment| fragment.offset);
        let to = from.saturating_add(head.payload_bytes());
        let vouches = self.holdings.records_of(&key).any(|record| {
            let held = &self.holdings[&record];
            let covers = held.adu_offset() <= from && to <= held.adu_offset() + held.payload_bytes();
            let stays =
                held.state == BundleState::Local || held.custody.as_ref().is_some_and(|c| c.is_untouched());
            covers && held.custody.is_some() && held.stored >= held.appended && stays
        });
        if vouches {
            self.signal_refusal(now, neighbour, head, false, v6::CustodyReason::RedundantReception);
        }
    }

    /// Records that a part of a bundle in custody is sent over a link.
    pub(super) fn custody_handed_out(
        &mut self,
        now: Instant,
        record: RecordId,
        link: LinkId,
        from: u64,
        to: u64,
    ) {
        let ups = self.links.get(link).map_or(0, |link| link.ups);
        if let Some(custody) = self.holdings.get_mut(&record).and_then(|held| held.custody.as_mut()) {
            custody.hand_out(now, from, to, (link, ups));
        }
    }

    /// Starts the wait for the signal, once the next hop has the complete bundle.
    pub(super) fn await_signal(&mut self, now: Instant, record: RecordId) {
        if self.release_if_done(record) {
            return;
        }
        self.unroute(record);
        let held = self.holdings.get_mut(&record).expect("the caller has it");
        let custody = held.custody.as_mut().expect("the caller has looked");
        custody.sent = Some(now);
        if !core::mem::replace(&mut custody.awaited, true) {
            self.note(record, Note::HandedOver);
        }
        self.arm(now, record);
    }

    /// Starts the custody timer (RFC 5050 5.10.1).
    fn arm(&mut self, now: Instant, record: RecordId) {
        let interval = self.custody_interval(self.holdings[&record].custody.as_ref().expect("in custody"));
        let until = now + interval.mul_f64(1.0 + self.rng.unit() / 8.0);
        self.holdings.get_mut(&record).expect("in custody").state = BundleState::InCustody(until);
        self.time.deadlines.at(until, DeadlineKind::Custody(record));
    }

    /// Duration of the custody timer.
    fn custody_interval(&self, custody: &Custody) -> Duration {
        let settings = &self.config.custody;
        let measured = || {
            let took = match (custody.begun, custody.sent) {
                (Some(begun), Some(sent)) => sent.saturating_since(begun),
                _ => Duration::ZERO,
            };
            let link = custody.over.and_then(|(link, _)| self.links.get(link));
            let round_trip = link.and_then(|link| link.signals).map_or(Duration::ZERO, RoundTrip::timeout);
            (took * 4 + round_trip).max(settings.timer_min)
        };
        let first = if settings.timer.is_zero() { measured() } else { settings.timer };
        let doubled = first.saturating_mul(1 << custody.attempts.min(20));
        doubled.min(settings.timer_max.max(first))
    }

    /// Handles the expiry of the custody timer (RFC 5050 5.12): the part that no other custodian has is
    /// resent. If the link was down in the interval, no signal could arrive, and the timer is restarted.
    pub(super) fn custody_timeout(&mut self, now: Instant, record: RecordId) {
        let Some(held) = self.holdings.get_mut(&record) else { return };
        let Some(custody) = held.custody.as_mut() else { return };
        if !matches!(held.state, BundleState::InCustody(_)) {
            return self.look_at_custody(now, record);
        }
        let link = custody.over.and_then(|(id, ups)| Some((id, ups, self.links.get(id)?)));
        if let Some((id, ups, link)) = link
            && (!link.is_here() || link.ups != ups)
        {
            if link.is_here() {
                custody.over = Some((id, link.ups));
            }
            return self.arm(now, record);
        }
        self.counters.custody_timeouts += 1;
        self.send_again(now, record);
    }

    /// Starts the wait for the signal of a bundle in custody if nothing is left to send and its transfers
    /// have ended.
    pub(super) fn look_at_custody(&mut self, now: Instant, record: RecordId) {
        let Some(held) = self.holdings.get(&record).filter(|held| held.custody.is_some()) else {
            return;
        };
        let waiting = matches!(held.state, BundleState::Forwarding(_) | BundleState::BackingOff(_));
        if waiting && held.all_handed_out() && held.transfers.is_empty() {
            self.await_signal(now, record);
        }
    }

    fn send_again(&mut self, now: Instant, record: RecordId) {
        self.unroute(record);
        let held = self.holdings.get_mut(&record).expect("the caller has it");
        let custody = held.custody.as_mut().expect("the caller has looked");
        custody.attempts += 1;
        custody.begun = None;
        custody.sent = None;
        let avoided = core::mem::take(&mut custody.refused).then_some(custody.over).flatten();
        held.forgive_links();
        held.renew();
        held.skip_released();
        self.route(record);
        if let Some((link, _)) = avoided {
            self.exclude_link(now, record, link, SendFailure::Limit);
        }
    }

    /// Handles a custody signal (RFC 5050 6.3).
    pub(super) fn heed_signal(&mut self, now: Instant, signal: &v6::CustodySignal, id: PayloadId) {
        self.counters.custody_signals_heard += 1;
        let over = self.came_over(id);
        let subject = &signal.subject;
        let key = AduKey::of_subject(subject);
        let (from, to) = subject
            .fragment
            .map_or((0, u64::MAX), |(offset, length)| (offset, offset.saturating_add(length)));
        let records: Vec<RecordId> = self.holdings.records_of(&key).collect();
        for record in records {
            let held = &self.holdings[&record];
            let (start, end) = (held.adu_offset(), held.adu_offset() + held.payload_bytes());
            if held.custody.is_none() || from > end || to < start || held.state == BundleState::Local {
                continue;
            }
            let part = (from.saturating_sub(start), to.min(end) - start);
            if over.is_empty() || !over.iter().all(|over| self.is_on_its_way(*over, record)) {
                self.counters.custody_signals_not_believed += 1;
                continue;
            }
            let elsewhere = signal.succeeded || signal.reason == v6::CustodyReason::RedundantReception;
            match elsewhere {
                true => self.release_part(now, record, part),
                false => self.custody_refused(record),
            }
        }
    }

    /// Sets the pairs of an incoming link and a link of this node's own to the same node. The incoming link
    /// has no node ID, because the other link has it; custody signals arrive over it.
    pub fn set_beside_links(&mut self, pairs: BTreeSet<(LinkId, LinkId)>) {
        self.links.beside = pairs;
    }

    /// True if a bundle in custody was sent over this link, over a link paired with it, or to the same
    /// neighbour, or if the link leads to its destination.
    fn is_on_its_way(&mut self, over: LinkId, record: RecordId) -> bool {
        let held = &self.holdings[&record];
        let went = held.custody.as_ref().and_then(|custody| custody.over).map(|(link, _)| link);
        let to = held.head.destination().clone();
        let peer = self.links.peer(over);
        if went == Some(over) || peer.is_some() && went.is_some_and(|went| self.links.peer(went) == peer) {
            return true;
        }
        let beside = self.links.beside.range((over, LinkId(0))..=(over, LinkId(u32::MAX)));
        let mut ends: Vec<LinkId> = beside.map(|(_, link)| *link).collect();
        if ends.iter().any(|link| went == Some(*link)) {
            return true;
        }
        ends.push(over);
        // A bundle in custody is not replicated, so not every neighbour is a next hop.
        ends.into_iter().any(|link| self.is_next_hop(link, &to))
    }

    /// Releases a part of a bundle that another custodian has (RFC 5050 5.11).
    fn release_part(&mut self, now: Instant, record: RecordId, (from, to): (u64, u64)) {
        let held = self.holdings.get_mut(&record).expect("the caller has it");
        let custody = held.custody.as_mut().expect("the caller has looked");
        if !custody.release(from, to) {
            return;
        }
        let sample = custody.sent.filter(|_| custody.attempts == 0);
        let over = custody.over;
        held.skip_released();
        if let (Some(sent), Some((id, _))) = (sample, over)
            && let Some(link) = self.links.get_mut(id)
        {
            link.signals = Some(RoundTrip::with(link.signals, now.saturating_since(sent)));
        }
        if self.release_if_done(record) {
            return;
        }
        // The part scheduled for a retry may be released.
        self.requeue(record);
        self.look_at_custody(now, record);
    }

    /// Ends the custody of a bundle that is completely released and not being sent. Returns true if the
    /// bundle was removed.
    pub(super) fn release_if_done(&mut self, record: RecordId) -> bool {
        let Some(held) = self.holdings.get(&record) else { return true };
        let released = |custody: &Custody| custody.is_released(held.payload_bytes());
        if !held.custody.as_deref().is_some_and(released) || !held.transfers.is_empty() {
            return false;
        }
        self.counters.custody_released += 1;
        if let Some(send) = held.send {
            self.end_send(send, Ok(()));
        }
        self.drop_bundle(record);
        true
    }

    /// Handles a signal of a node that could not process a bundle (RFC 5050 5.12): when the custody timer
    /// expires, the bundle takes another route if there is one. An immediate retry would only be refused
    /// again.
    fn custody_refused(&mut self, record: RecordId) {
        self.counters.custody_refused += 1;
        let custody = self.holdings.get_mut(&record).and_then(|held| held.custody.as_mut());
        custody.expect("the caller has looked").refused = true;
    }

    /// Schedules a retry over all links for a bundle in custody that has no link left.
    pub(super) fn rest_in_custody(&mut self, now: Instant, record: RecordId) {
        if let Some(held) = self.holdings.get_mut(&record) {
            held.forgive_links();
        }
        self.rest(now, record);
    }

    /// Signals the deletion of a bundle that requests custody and is not in custody of this node to its
    /// custodian (RFC 5050 5.4.2).
    pub(super) fn signal_deleted(&mut self, now: Instant, record: RecordId, reason: ReasonCode) {
        let held = &self.holdings[&record];
        if held.custody.is_some() {
            return;
        }
        let reason = match reason {
            ReasonCode::DepletedStorage => v6::CustodyReason::DepletedStorage,
            ReasonCode::DestinationUnavailable => v6::CustodyReason::DestinationUnintelligible,
            ReasonCode::NoRoute => v6::CustodyReason::NoRoute,
            ReasonCode::NoTimelyContact => v6::CustodyReason::NoTimelyContact,
            ReasonCode::BlockUnintelligible | ReasonCode::BlockUnsupported => {
                v6::CustodyReason::BlockUnintelligible
            }
            // The bundle was deleted everywhere, or on request.
            _ => return,
        };
        let (head, neighbour) = (held.head.clone(), held.neighbour);
        self.signal_refusal(now, neighbour, &head, false, reason);
    }

    /// Neighbour to which a bundle in custody was sent.
    pub(super) fn signal_owed_by(&self, held: &HeldBundle) -> Option<Eid> {
        let (link, _) = held.custody.as_ref()?.over?;
        self.links.peer(link).cloned()
    }

    /// Signals the delivery of a bundle to its custodian (RFC 5050 5.7 step 3).
    pub(super) fn signal_delivered(&mut self, now: Instant, record: RecordId) {
        let held = &self.holdings[&record];
        if held.custody.is_some() {
            self.counters.custody_released += 1;
            return;
        }
        let (head, neighbour) = (held.head.clone(), held.neighbour);
        self.signal(now, neighbour, &head, true, v6::CustodyReason::NoAdditionalInformation);
    }
}
