//! Received segments, and expired timers: the procedures of RFC 5326 6.

use super::config::{self, Config};
use super::incoming::{Incoming, ReportLimits, SegmentEffect};
use super::outgoing::ReportEffect;
use super::sessions::{Closed, Control, Event, FailureCause, Sessions};
use super::timer::{Clock, Side, Timer};
use super::wire::{CancelReason, Content, DataSegment, KEEPALIVE, Report, Segment, SessionId};
use crate::service::PeerId;
use crate::time::Instant;
use bytes::Bytes;

/// Client service of bundles (RFC 7116).
pub(super) const BUNDLES: u64 = 1;
/// Maximum number of acknowledged reports whose copies are recognised.
const REPORTS_NOTED_MAX: usize = 64;
/// Maximum number of blocks among which the one is found that makes room for another.
const BEHIND_MAX: usize = 16;
/// Client service of data of several client services (CCSDS 734.1).
pub(super) const SERVICE_DATA: u64 = 2;

impl Sessions {
    /// Processes a datagram: any number of segments, or a keep-alive.
    pub(super) fn hear(&mut self, now: Instant, from: PeerId, mut datagram: Bytes) {
        if datagram[..] == KEEPALIVE {
            self.counters.keepalives_received += 1;
            return;
        }
        if datagram.is_empty() {
            self.counters.violations += 1;
        }
        let length = datagram.len();
        while !datagram.is_empty() {
            let rest = self.authenticator.as_ref().map(|_| datagram.clone());
            match Segment::decode_with_places(&mut datagram) {
                Ok((mut segment, places)) => {
                    let encoded = rest.map(|rest| (rest, places, datagram.len()));
                    if encoded.is_some_and(|encoded| !self.is_authentic(&segment, encoded)) {
                        self.counters.unauthenticated += 1;
                        continue;
                    }
                    // A small part must not keep a large datagram in memory.
                    if let Content::Data(data) = &mut segment.content
                        && 2 * data.data.len() < length
                    {
                        data.data = Bytes::copy_from_slice(&data.data);
                    }
                    self.hear_segment(now, from, segment);
                }
                Err(_) => {
                    self.counters.violations += 1;
                    return;
                }
            }
        }
    }

    /// Returns true if a segment is authentic, or need not be. `rest` is the datagram from the segment on, of which `left` bytes
    /// follow the segment, and `places` as many as follow each extension of its trailer.
    fn is_authentic(&self, segment: &Segment, (rest, places, left): (Bytes, Vec<usize>, usize)) -> bool {
        let Some(authenticator) = &self.authenticator else { return true };
        let value_ends: Vec<usize> = places.iter().map(|place| rest.len() - place).collect();
        authenticator.accepts(segment, &rest[..rest.len() - left], &value_ends)
    }

    fn hear_segment(&mut self, now: Instant, from: PeerId, segment: Segment) {
        let id = segment.session;
        // Answers go where the peer is configured, because it may send from another port.
        let to = self.peer.unwrap_or(from);
        let is_own = match &segment.content {
            Content::Data(_)
            | Content::ReportAck(_)
            | Content::CancelBySender(_)
            | Content::CancelAckToReceiver => false,
            Content::Report(_) | Content::CancelAckToSender | Content::CancelByReceiver(_) => true,
        };
        let expected = if is_own { Some(self.config.own_engine_id()) } else { self.config.peer_engine_id };
        // Both sides have the same key: a segment of this engine may have been sent back by someone else.
        let is_reflected =
            self.authenticator.is_some() && !is_own && id.originator == self.config.own_engine_id();
        if is_reflected || expected.is_some_and(|engine| engine != id.originator) {
            self.counters.strangers += 1;
            return;
        }
        self.heard_at = Some(now);
        match segment.content {
            Content::Data(data) => self.hear_data(now, to, id, &data),
            Content::Report(report) => self.hear_report(now, to, id, &report),
            Content::ReportAck(serial) => self.hear_report_ack(now, id, serial),
            Content::CancelBySender(_) => self.hear_cancel_by_sender(to, id),
            Content::CancelByReceiver(reason) => self.hear_cancel_by_receiver(to, id, reason),
            Content::CancelAckToSender => self.hear_cancel_ack(Side::Sender, id),
            Content::CancelAckToReceiver => self.hear_cancel_ack(Side::Receiver, id),
        }
    }

    // -- Received data ------------------------------------------------------------------------------------------

    fn hear_data(&mut self, now: Instant, to: PeerId, id: SessionId, data: &DataSegment) {
        if let Some(closed) = self.closed.get(&id).copied() {
            self.counters.duplicates += 1;
            return self.hear_late(to, id, closed, data);
        }
        if !matches!(data.client, BUNDLES | SERVICE_DATA) {
            self.counters.violations += 1;
            return self.send_cancel(Side::Receiver, id, to, CancelReason::Unreachable);
        }
        if !self.incoming.contains_key(&id) && !self.admit(now, to, id, data) {
            return;
        }
        let Config { incoming_bytes_max, block_bytes_max, .. } = self.config;
        let first = self.first_incoming.filter(|first| self.incoming.contains_key(first)).unwrap_or(id);
        self.first_incoming = Some(first);
        let block = self.incoming.get_mut(&id).expect("it was just admitted");
        // Blocks that have all begun and none of which can end would be of no use: the first may exceed the limit until it ends,
        // and has room for the overhead of its pieces.
        let (counted, bytes_max) = match first == id {
            true => (block.held(), incoming_bytes_max.saturating_add(block_bytes_max)),
            false => (self.held_bytes, incoming_bytes_max),
        };
        if counted > bytes_max.saturating_sub(data.data.len() as u64) {
            // The segment counts as lost on the way.
            self.counters.dropped += 1;
            return;
        }
        let before = block.held();
        let mut risen = Vec::new();
        let effect = block.hear(now, data, &self.config, &mut risen);
        if matches!(effect, SegmentEffect::New(_)) {
            // An old segment that someone else sends again must not divert the answers.
            block.to = to;
        }
        self.held_bytes = self.held_bytes - before + block.held();
        let again = match (effect, data.serials) {
            (SegmentEffect::Duplicate, Some(serials)) => block.reports_for(serials.checkpoint),
            _ => Vec::new(),
        };
        let ends = block.takes_end();
        let (count, client) = (risen.len(), data.client);
        for (index, data) in risen.into_iter().enumerate() {
            let last = ends && index + 1 == count;
            self.events.push_back(Event::Data { session: id, client, data, last });
        }
        if ends && count == 0 {
            self.events.push_back(Event::Data { session: id, client, data: Bytes::new(), last: true });
        }
        match effect {
            SegmentEffect::New(bytes) => {
                self.counters.segments_received += 1;
                self.counters.payload_received += bytes;
            }
            SegmentEffect::Duplicate => self.counters.duplicates += 1,
            SegmentEffect::Invalid => self.counters.violations += 1,
            SegmentEffect::Miscolored => {
                self.counters.violations += 1;
                return self.cancel_incoming(id, CancelReason::Miscolored);
            }
            SegmentEffect::TooLong => {
                self.counters.dropped += 1;
                return self.cancel_incoming(id, CancelReason::SystemCancelled);
            }
            SegmentEffect::Restarted => {
                self.counters.restarts += 1;
                return self.cancel_incoming(id, CancelReason::SystemCancelled);
            }
            SegmentEffect::TooManyCycles => return self.cancel_incoming(id, CancelReason::CycleLimit),
        }
        again.into_iter().for_each(|serial| self.queue_report(id, serial));
        self.report(now, id);
        // The segment may have told only that the block ends with what the user has accepted.
        self.close_if_done(id);
    }

    /// Begins to receive a block, unless there are too many.
    fn admit(&mut self, now: Instant, to: PeerId, id: SessionId, data: &DataSegment) -> bool {
        if !self.make_room(now, id, data) {
            self.counters.dropped += 1;
            return false;
        }
        let first_report = self.random_serial();
        let mut block = Incoming::new(now, id, data.client, to, first_report);
        let deadline = Some(now + self.config.inactivity_limit()).filter(|_| !self.clock.is_down());
        self.clock.deadlines.set(Timer::Inactive(id), &mut block.inactive_deadline, deadline);
        self.behind.set(id, &mut block.behind_deadline, Some(now));
        self.incoming.insert(id, block);
        self.counters.blocks_received += 1;
        true
    }

    /// Returns true if another block may begin. If there are as many as may be, one that is behind is cancelled for it: one with
    /// less than a segment before others, one of the same engine before others, and of these the one with the least data. Its
    /// sender is told, and sends it again as another block.
    fn make_room(&mut self, now: Instant, id: SessionId, data: &DataSegment) -> bool {
        if self.incoming.len() < self.config.incoming_sessions_max {
            return true;
        }
        if self.clock.is_down() {
            return false;
        }
        let behind = self.blocks_behind(now);
        let timeout = self.config.retransmission_timeout();
        let is_segment = |length| length >= config::SEGMENT_BYTES_MIN;
        let may_go = |block: &Incoming| {
            let is_idle = now.saturating_since(block.heard_at) >= timeout;
            is_idle || (is_segment(data.data.len() as u64) && !is_segment(block.length()))
        };
        let candidates = behind.iter().map(|other| (&self.incoming[other], *other));
        let rank = |(block, other): &(&Incoming, SessionId)| {
            let is_foreign = other.originator != id.originator;
            (is_segment(block.length()), is_foreign, block.length(), block.heard_at, *other)
        };
        let last = candidates.filter(|(block, _)| may_go(block)).min_by_key(rank).map(|(_, other)| other);
        if let Some(last) = last {
            self.counters.displaced += 1;
            self.give_up(last);
        }
        last.is_some()
    }

    /// Returns blocks that may be behind, those first that have been for the longest time: blocks with less data than a segment has,
    /// and those of which nothing new has come for the time after which their sender repeats what is not acknowledged.
    fn blocks_behind(&mut self, now: Instant) -> Vec<SessionId> {
        let timeout = self.config.retransmission_timeout();
        let mut behind = Vec::new();
        while behind.len() < BEHIND_MAX
            && let Some(id) = self.behind.pop_due(now)
        {
            let block = self.incoming.get_mut(&id).expect("a block that is received");
            block.behind_deadline = None;
            let since = match block.length() < config::SEGMENT_BYTES_MIN {
                true => block.heard_at,
                false => block.heard_at + timeout,
            };
            // The user must accept it, or the peer acknowledge its report.
            let since = if block.is_waiting_here() { now + timeout } else { since };
            match since > now {
                true => self.behind.set(id, &mut block.behind_deadline, Some(since)),
                false => behind.push((id, since)),
            }
        }
        for (id, since) in &behind {
            let block = self.incoming.get_mut(id).expect("just seen");
            self.behind.set(*id, &mut block.behind_deadline, Some(*since));
        }
        behind.into_iter().map(|(id, _)| id).collect()
    }

    /// Processes data of a session that has ended. Only checkpoints need an answer, because their sender repeats them.
    fn hear_late(&mut self, to: PeerId, id: SessionId, closed: Closed, data: &DataSegment) {
        let Some(serials) = data.serials else { return };
        match closed {
            Closed::Complete(red_end, serial) => {
                self.close(id, Closed::Complete(red_end, serial + 1));
                let report = Sessions::last_report(serial, serials.checkpoint, red_end);
                self.counters.reports_sent += 1;
                self.push_control(Control::Answer(to, Segment::new(id, Content::Report(report))));
            }
            Closed::CancelledHere(reason) => self.send_cancel(Side::Receiver, id, to, reason),
            Closed::CancelledByPeer => {}
        }
    }

    /// Creates the reports that are due, and sets the time of the next ones.
    pub(super) fn report(&mut self, now: Instant, id: SessionId) {
        let limits = ReportLimits { segment_bytes: self.segment_bytes, claims: self.config.claims_max };
        let Some(block) = self.incoming.get_mut(&id) else { return };
        let made = block.make_reports(now, limits);
        let due = block.report_due();
        self.clock.deadlines.set(Timer::ReportDelay(id), &mut block.delay_deadline, due);
        made.into_iter().for_each(|serial| self.push_control(Control::Report(id, serial)));
    }

    fn queue_report(&mut self, id: SessionId, serial: u64) {
        let sent = self.incoming.get_mut(&id).and_then(|block| block.report(serial));
        if let Some(sent) = sent
            && !sent.queued
        {
            sent.queued = true;
            self.push_control(Control::Report(id, serial));
        }
    }

    fn hear_report_ack(&mut self, now: Instant, id: SessionId, serial: u64) {
        let Some(block) = self.incoming.get_mut(&id) else { return };
        if let Some(mut timer) = block.acknowledged(now, serial) {
            self.clock.stop(Timer::Report(id, serial), &mut timer);
            self.close_if_done(id);
        }
    }

    /// Accepts the first bytes of a received block for the user.
    pub(super) fn accept(&mut self, now: Instant, id: SessionId, up_to: u64) {
        let Some(block) = self.incoming.get_mut(&id) else { return };
        self.held_bytes -= block.accept(up_to);
        self.report(now, id);
        self.close_if_done(id);
    }

    fn close_if_done(&mut self, id: SessionId) {
        if self.incoming.get(&id).is_some_and(Incoming::is_done) {
            let block = self.incoming.remove(&id).expect("just seen");
            self.counters.blocks_accepted += 1;
            // A green block has no checkpoints to answer.
            let complete = block.closed_complete().unwrap_or(Closed::CancelledByPeer);
            self.forget_incoming(id, block, complete);
        }
    }

    /// Cancels a received block.
    pub(super) fn cancel_incoming(&mut self, id: SessionId, reason: CancelReason) {
        let Some(block) = self.incoming.remove(&id) else { return };
        let to = block.to;
        self.counters.blocks_lost += 1;
        self.forget_incoming(id, block, Closed::CancelledHere(reason));
        self.events.push_back(Event::Lost(id));
        self.send_cancel(Side::Receiver, id, to, reason);
    }

    fn hear_cancel_by_sender(&mut self, to: PeerId, id: SessionId) {
        self.counters.cancels_received += 1;
        // Also for an unknown session: peers ask by this whether the link is up.
        self.push_control(Control::Answer(to, Segment::new(id, Content::CancelAckToSender)));
        if let Some(block) = self.incoming.remove(&id) {
            self.counters.blocks_lost += 1;
            self.forget_incoming(id, block, Closed::CancelledByPeer);
            self.events.push_back(Event::Lost(id));
        }
    }

    // -- Blocks to send -----------------------------------------------------------------------------------------

    /// Returns true if the same report was acknowledged so short a time ago that this one can only be its copy; notes it
    /// otherwise.
    fn is_copy(&mut self, now: Instant, from: PeerId, id: SessionId, serial: u64) -> bool {
        // A peer that has not heard the acknowledgement repeats its report, after its own timeout.
        let copied = self.config.copy_interval.saturating_mul(config::COPIES_MAX);
        let ago = copied.min(self.config.retransmission_timeout() / 2);
        while self.acknowledged.front().is_some_and(|(at, _)| now.saturating_since(*at) >= ago) {
            self.acknowledged.pop_front();
        }
        let is_copy = self.acknowledged.iter().any(|(_, known)| *known == (from, id, serial));
        if !is_copy && self.acknowledged.len() < REPORTS_NOTED_MAX {
            self.acknowledged.push_back((now, (from, id, serial)));
        }
        is_copy
    }

    fn hear_report(&mut self, now: Instant, to: PeerId, id: SessionId, report: &Report) {
        self.counters.reports_received += 1;
        // Also for an unknown session: its end has crossed the report (RFC 5326 6.13).
        if !self.is_copy(now, to, id, report.serial) {
            self.push_control(Control::Answer(to, Segment::new(id, Content::ReportAck(report.serial))));
        }
        let Some(block) = self.outgoing.get_mut(&id.number) else { return };
        let mut answered = Vec::new();
        let effect = block.hear(report, &self.config, &mut answered);
        for (serial, mut timer) in answered {
            self.clock.stop(Timer::Checkpoint(id.number, serial), &mut timer);
        }
        match effect {
            ReportEffect::Redundant => return,
            ReportEffect::Invalid => self.counters.violations += 1,
            ReportEffect::Restarted => {
                self.counters.restarts += 1;
                self.fail_outgoing(id.number, CancelReason::SystemCancelled);
            }
            ReportEffect::TooManyCycles => self.fail_outgoing(id.number, CancelReason::CycleLimit),
            ReportEffect::TooManyClaims => {
                self.counters.violations += 1;
                self.fail_outgoing(id.number, CancelReason::SystemCancelled);
            }
            ReportEffect::Heard => {}
        }
        if !self.complete_if_done(id.number) {
            self.schedule_repeats(now, id.number);
        }
    }

    fn schedule_repeats(&mut self, now: Instant, number: u64) {
        let Some(block) = self.outgoing.get_mut(&number) else { return };
        if block.has_repeat() {
            self.repeats.insert(number);
        }
        if block.has_waiting_batch() && block.batch_deadline.is_none() {
            let due = Some(now + self.config.retransmission_delay);
            self.clock.deadlines.set(Timer::RetransmissionDelay(number), &mut block.batch_deadline, due);
        }
    }

    /// Ends a block that is sent and reported completely (RFC 5326 6.12).
    pub(super) fn complete_if_done(&mut self, number: u64) -> bool {
        let is_done = self.outgoing.get(&number).is_some_and(|block| block.is_complete());
        if is_done {
            self.remove_outgoing(number);
            self.counters.blocks_completed += 1;
            self.events.push_back(Event::Completed(number));
        }
        is_done
    }

    fn hear_cancel_by_receiver(&mut self, to: PeerId, id: SessionId, reason: CancelReason) {
        self.counters.cancels_received += 1;
        self.push_control(Control::Answer(to, Segment::new(id, Content::CancelAckToReceiver)));
        if self.remove_outgoing(id.number).is_some() {
            self.counters.blocks_failed += 1;
            self.events.push_back(Event::Failed(id.number, FailureCause::Peer(reason)));
        }
    }

    fn hear_cancel_ack(&mut self, side: Side, id: SessionId) {
        if let Some(mut cancelling) = self.cancelling.remove(&(side, id)) {
            self.clock.stop(Timer::Cancel(side, id), &mut cancelling.timer);
        }
    }

    // -- Time ---------------------------------------------------------------------------------------------------

    /// Handles a checkpoint without an answer (RFC 5326 6.7).
    pub(super) fn checkpoint_is_late(&mut self, number: u64, serial: u64) {
        let heard_at = self.heard_at;
        let Some(block) = self.outgoing.get_mut(&number) else { return };
        let Some(checkpoint) = block.checkpoint(serial) else { return };
        if !Clock::expired(&mut checkpoint.timer) {
            return;
        }
        self.counters.checkpoint_timeouts += 1;
        if checkpoint.tries > self.config.retransmissions_max {
            let was_heard = heard_at >= checkpoint.first_departed;
            self.fail_outgoing(number, CancelReason::RetransmissionLimit);
            if !was_heard {
                self.events.push_back(Event::Silent);
            }
        } else if block.is_covered(serial) {
            if block.has_repeat() {
                self.repeats.insert(number);
            }
        } else {
            self.push_control(Control::Checkpoint(number, serial));
        }
    }

    /// Handles a report without an acknowledgement (RFC 5326 6.8).
    pub(super) fn report_is_late(&mut self, id: SessionId, serial: u64) {
        let Some(block) = self.incoming.get_mut(&id) else { return };
        let Some(sent) = block.report(serial) else { return };
        if !Clock::expired(&mut sent.timer) {
            return;
        }
        self.counters.report_timeouts += 1;
        if sent.tries <= self.config.retransmissions_max {
            return self.queue_report(id, serial);
        }
        let is_waiting_here = block.is_waiting_here();
        if let Some(complete) = block.closed_complete() {
            // The peer can still ask for a report; accepted data are not given up.
            let block = self.incoming.remove(&id).expect("just seen");
            self.end_safe(id, block, complete);
        } else if !is_waiting_here {
            self.cancel_incoming(id, CancelReason::RetransmissionLimit);
        }
    }

    /// Ends the reception of a block of which nothing new arrives any more.
    pub(super) fn is_inactive(&mut self, now: Instant, id: SessionId) {
        let limit = self.config.inactivity_limit();
        let Some(block) = self.incoming.get_mut(&id) else { return };
        block.inactive_deadline = None;
        let due = block.heard_at + limit;
        if due > now || block.is_waiting_here() {
            let next = if due > now { due } else { now + limit };
            self.clock.deadlines.set(Timer::Inactive(id), &mut block.inactive_deadline, Some(next));
            return;
        }
        self.counters.inactive += 1;
        self.give_up(id);
    }

    /// Ends the reception of a block that does not go on.
    fn give_up(&mut self, id: SessionId) {
        match self.incoming.get(&id).and_then(Incoming::closed_complete) {
            // The green part is not retransmitted.
            Some(complete) => {
                let block = self.incoming.remove(&id).expect("just seen");
                self.end_safe(id, block, complete);
            }
            None => self.cancel_incoming(id, CancelReason::SystemCancelled),
        }
    }

    /// Ends the reception of a block whose red part is safe.
    fn end_safe(&mut self, id: SessionId, block: Incoming, complete: Closed) {
        self.counters.blocks_accepted += 1;
        let is_whole = block.is_whole();
        self.forget_incoming(id, block, complete);
        if !is_whole {
            self.events.push_back(Event::Lost(id));
        }
    }
}
