//! All sessions of one link, in both directions: queues, timers, limits, and the memory of sessions that have ended.
//!
//! Segments leave in this order: acknowledgements, reports, cancellations and repeated checkpoints; retransmitted data; data
//! that are sent for the first time.

use super::authentication::Authenticator;
use super::config::{Config, Counters};
use super::incoming::Incoming;
use super::outgoing::{NextSegment, Outgoing};
use super::timer::{AnswerTimer, Clock, Side, Timer};
use super::wire::{CancelReason, Content, Report, Segment, SessionId};
use crate::kit::Deadlines;
use crate::rng::Rng;
use crate::service::{PeerId, Shares};
use crate::time::Instant;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Number of control segments that wait to be sent beyond which answers are dropped; the peer repeats its question.
pub(super) const CONTROL_MAX: usize = 4096;
/// Maximum number of copies of control segments that wait for their time.
const COPIES_MAX: usize = 4096;
/// Maximum number of cancellations without an acknowledgement; more are sent once.
const CANCELS_MAX: usize = 1024;
/// Random bits of the first session number and of first serial numbers: they count up within the 32 bits of other
/// implementations.
const RANDOM_BITS: u32 = 28;

/// Indication for the convergence layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The block was sent, and its red part reported completely.
    Completed(u64),
    /// The block was cancelled.
    Failed(u64, FailureCause),
    /// The next data of a received block.
    Data { session: SessionId, client: u64, data: Bytes, last: bool },
    /// A received block was cancelled or broke off.
    Lost(SessionId),
    /// The peer answers nothing.
    Silent,
}

/// Cause of the failure of a block to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailureCause {
    /// The peer cancelled it.
    Peer(CancelReason),
    /// A limit of retransmissions was reached, or the peer has lost its state.
    Unfinished,
}

/// Segment that leaves now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Departure {
    pub(super) to: PeerId,
    pub(super) bytes: Bytes,
    pub(super) shares: Shares,
    pub(super) token: Option<u64>,
}

impl Departure {
    /// Returns true if the datagram has neither data nor a segment that is answered.
    fn is_acknowledgement(&self) -> bool {
        self.token.is_none() && self.shares.payload == 0 && self.shares.repeated == 0
    }

    /// Returns one datagram with these segments and another one's.
    fn before(self, other: Departure) -> Departure {
        let bytes = [&self.bytes[..], &other.bytes[..]].concat().into();
        Departure { to: other.to, bytes, shares: self.shares.and(other.shares), token: other.token }
    }
}

/// Control segment that waits to be sent. Its contents are made when it leaves.
#[derive(Clone, Debug)]
pub(super) enum Control {
    /// Acknowledgement.
    Answer(PeerId, Segment),
    Report(SessionId, u64),
    Cancel(Side, SessionId),
    Checkpoint(u64, u64),
    /// Copy of a segment that was sent before.
    Copy(PeerId, Bytes, Shares),
}

/// Cancellation without an acknowledgement.
#[derive(Debug)]
pub(super) struct Cancelling {
    pub(super) to: PeerId,
    pub(super) reason: CancelReason,
    tries: u32,
    pub(super) timer: AnswerTimer,
}

/// Received session that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// The block was received and accepted completely. Contains its red part's length, and the next report's serial number.
    Complete(u64, u64),
    /// This side cancelled it.
    CancelledHere(CancelReason),
    /// The peer cancelled it.
    CancelledByPeer,
}

/// All sessions of one link.
#[derive(Debug)]
pub(super) struct Sessions {
    pub(super) config: Config,
    /// `None` if segments are not authenticated.
    pub(super) authenticator: Option<Authenticator>,
    rng: Rng,
    pub(super) clock: Clock,
    /// Maximum length of a segment without the extensions of its authentication, bytes; zero while the link is not joined.
    pub(super) segment_bytes: usize,
    /// Maximum length of a datagram with several segments, bytes; zero if there is none.
    shared_bytes: usize,
    /// Segment that did not fit into the datagram of an acknowledgement: the next one to leave.
    next: Option<Departure>,
    /// Configured peer; `None` if the endpoint has none.
    pub(super) peer: Option<PeerId>,
    next_number: u64,
    pub(super) outgoing: BTreeMap<u64, Outgoing>,
    /// Blocks with data that are not sent, oldest first.
    fresh: VecDeque<u64>,
    /// Blocks with a retransmission that is due.
    pub(super) repeats: BTreeSet<u64>,
    /// Bytes in blocks to send.
    outgoing_bytes: u64,
    /// Bytes in blocks to send that were never sent.
    unsent_bytes: u64,
    pub(super) incoming: BTreeMap<SessionId, Incoming>,
    /// Received blocks by the times from which they may be behind, and have to make room for others. A block that goes on may have
    /// an earlier time here than its own.
    pub(super) behind: Deadlines<SessionId>,
    /// The block that may exceed the limit of memory, until it ends.
    pub(super) first_incoming: Option<SessionId>,
    /// Bytes of received blocks that count against the limit.
    pub(super) held_bytes: u64,
    pub(super) closed: BTreeMap<SessionId, Closed>,
    /// Closed sessions in the order of their ends.
    closed_order: VecDeque<SessionId>,
    pub(super) cancelling: BTreeMap<(Side, SessionId), Cancelling>,
    control: VecDeque<Control>,
    copies: BTreeMap<(Instant, u64), (PeerId, Bytes, Shares)>,
    copy_count: u64,
    /// Reports that were acknowledged so short a time ago that copies of them may follow.
    pub(super) acknowledged: VecDeque<(Instant, (PeerId, SessionId, u64))>,
    /// Segments whose departure starts a timer.
    tokens: BTreeMap<u64, Timer>,
    next_token: u64,
    /// Time at which the peer was last heard.
    pub(super) heard_at: Option<Instant>,
    pub(super) events: VecDeque<Event>,
    pub(super) counters: Counters,
}

impl Sessions {
    pub(super) fn new(config: Config, mut rng: Rng) -> Self {
        let next_number = random(&mut rng);
        Sessions {
            clock: Clock::new(&config),
            authenticator: config.authentication.as_ref().map(Authenticator::new),
            config,
            rng,
            segment_bytes: 0,
            shared_bytes: 0,
            next: None,
            peer: None,
            next_number,
            outgoing: BTreeMap::new(),
            fresh: VecDeque::new(),
            repeats: BTreeSet::new(),
            outgoing_bytes: 0,
            unsent_bytes: 0,
            incoming: BTreeMap::new(),
            behind: Deadlines::new(),
            first_incoming: None,
            held_bytes: 0,
            closed: BTreeMap::new(),
            closed_order: VecDeque::new(),
            cancelling: BTreeMap::new(),
            control: VecDeque::new(),
            copies: BTreeMap::new(),
            copy_count: 0,
            acknowledged: VecDeque::new(),
            tokens: BTreeMap::new(),
            next_token: 0,
            heard_at: None,
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Returns the first serial number of a new session.
    pub(super) fn random_serial(&mut self) -> u64 {
        random(&mut self.rng)
    }

    // -- Up and down --------------------------------------------------------------------------------------------

    /// Begins to send on an endpoint whose datagrams have this maximum length. Cancellations that were not acknowledged before
    /// are sent again.
    pub(super) fn up(&mut self, datagram_bytes: usize, peer: Option<PeerId>) {
        let overhead = self.authenticator.as_ref().map_or(0, Authenticator::overhead_bytes);
        let segment_bytes = usize::try_from(self.config.segment_bytes).unwrap_or(usize::MAX);
        self.segment_bytes = segment_bytes.min(datagram_bytes).saturating_sub(overhead);
        let shared_bytes =
            usize::try_from(self.config.shared_datagram_bytes.unwrap_or(0)).unwrap_or(usize::MAX);
        self.shared_bytes = shared_bytes.min(datagram_bytes);
        self.peer = peer;
        let unanswered: Vec<_> = self.cancelling.keys().copied().collect();
        for (side, id) in unanswered {
            // Numbers of other senders are not valid on another endpoint.
            match peer {
                Some(peer) => {
                    self.cancelling.get_mut(&(side, id)).expect("just listed").to = peer;
                    self.push_control(Control::Cancel(side, id));
                }
                None => drop(self.cancelling.remove(&(side, id))),
            }
        }
    }

    /// Ends all sessions, without events: the link tells its user by itself. The peer is informed when the endpoint is open
    /// again.
    pub(super) fn down(&mut self) {
        for (number, mut block) in core::mem::take(&mut self.outgoing) {
            self.stop_outgoing(number, &mut block);
            self.counters.blocks_failed += 1;
            if block.sent() > 0 {
                self.remember_cancel(
                    Side::Sender,
                    block.id(),
                    PeerId::CONFIGURED,
                    CancelReason::SystemCancelled,
                );
            }
        }
        for (id, block) in core::mem::take(&mut self.incoming) {
            let reason = CancelReason::SystemCancelled;
            let (to, complete) = (block.to, block.closed_complete());
            if complete.is_none() {
                self.counters.blocks_lost += 1;
                self.remember_cancel(Side::Receiver, id, to, reason);
            }
            self.forget_incoming(id, block, complete.unwrap_or(Closed::CancelledHere(reason)));
        }
        for ((side, id), cancelling) in &mut self.cancelling {
            self.clock.stop(Timer::Cancel(*side, *id), &mut cancelling.timer);
        }
        self.clock.set_down(None);
        (self.segment_bytes, self.peer, self.next) = (0, None, None);
        (self.outgoing_bytes, self.unsent_bytes, self.held_bytes) = (0, 0, 0);
        self.fresh.clear();
        self.repeats.clear();
        self.control.clear();
        self.copies.clear();
        self.tokens.clear();
        self.events.clear();
    }

    /// The link below is disconnected: nothing leaves, and timers stand still (RFC 5326 6.4, 6.5).
    pub(super) fn suspend(&mut self, now: Instant) {
        if !self.clock.is_down() {
            self.clock.set_down(Some(now));
            self.each_timer(|clock, key, timer| clock.suspend(key, timer));
            for (id, block) in &mut self.incoming {
                self.clock.deadlines.set(Timer::Inactive(*id), &mut block.inactive_deadline, None);
            }
        }
    }

    /// The link below is connected again (RFC 5326 6.1, 6.6). What was on its way when the link went down may be lost, so
    /// a block that continues asks for a report at once instead of at its end.
    pub(super) fn resume(&mut self, now: Instant) {
        if self.clock.is_down() {
            self.clock.set_down(None);
            self.each_timer(|clock, key, timer| clock.resume(now, key, timer));
            for number in &self.fresh {
                self.outgoing.get_mut(number).expect("a block with unsent data exists").request_report();
            }
            let limit = self.config.inactivity_limit();
            for (id, block) in &mut self.incoming {
                block.heard_at = now;
                let deadline = Some(now + limit);
                self.clock.deadlines.set(Timer::Inactive(*id), &mut block.inactive_deadline, deadline);
            }
        }
    }

    /// Applies an operation to the timers of all segments that must be answered.
    fn each_timer(&mut self, mut apply: impl FnMut(&mut Clock, Timer, &mut AnswerTimer)) {
        for (number, block) in &mut self.outgoing {
            for (serial, checkpoint) in block.checkpoints() {
                apply(&mut self.clock, Timer::Checkpoint(*number, serial), &mut checkpoint.timer);
            }
        }
        for (id, block) in &mut self.incoming {
            for (serial, sent) in block.reports() {
                apply(&mut self.clock, Timer::Report(*id, serial), &mut sent.timer);
            }
        }
        for ((side, id), cancelling) in &mut self.cancelling {
            apply(&mut self.clock, Timer::Cancel(*side, *id), &mut cancelling.timer);
        }
    }

    // -- Blocks to send -----------------------------------------------------------------------------------------

    /// Begins a block. Data from the offset `red_limit` on are green.
    pub(super) fn begin(&mut self, client: u64, red_limit: Option<u64>) -> u64 {
        let number = self.next_number;
        self.next_number = if number >= u64::from(u32::MAX) { 1 } else { number + 1 };
        let id = SessionId { originator: self.config.own_engine_id(), number };
        let first_checkpoint = self.random_serial();
        self.outgoing.insert(number, Outgoing::new(id, client, red_limit, first_checkpoint));
        self.fresh.push_back(number);
        self.counters.blocks_sent += 1;
        number
    }

    /// Appends data to a block.
    pub(super) fn append(&mut self, number: u64, data: Bytes) {
        if let Some(block) = self.outgoing.get_mut(&number) {
            self.outgoing_bytes += data.len() as u64;
            self.unsent_bytes += data.len() as u64;
            block.append(data);
        }
    }

    /// Removes the data of a block from an offset on, none of which is sent.
    pub(super) fn truncate(&mut self, number: u64, length: u64) {
        if let Some(block) = self.outgoing.get_mut(&number) {
            let removed = block.length() - length;
            block.truncate(length);
            self.outgoing_bytes -= removed;
            self.unsent_bytes -= removed;
        }
    }

    /// Gives a block its final length.
    pub(super) fn finish(&mut self, number: u64) {
        if let Some(block) = self.outgoing.get_mut(&number) {
            block.finish();
        }
    }

    /// Removes a block of which nothing was sent.
    pub(super) fn discard(&mut self, number: u64) {
        self.counters.blocks_sent -= u64::from(self.outgoing.contains_key(&number));
        self.remove_outgoing(number);
    }

    /// Returns the bytes in blocks to send, and those of them that were never sent.
    pub(super) fn outgoing_bytes(&self) -> (u64, u64) {
        (self.outgoing_bytes, self.unsent_bytes)
    }

    /// Returns the number of bytes of a block that were sent.
    pub(super) fn sent(&self, number: u64) -> u64 {
        self.outgoing.get(&number).map_or(0, Outgoing::sent)
    }

    /// Cancels a block to send, without an event.
    pub(super) fn cancel_outgoing(&mut self, number: u64, reason: CancelReason) {
        let Some(block) = self.remove_outgoing(number) else { return };
        self.counters.blocks_failed += 1;
        if block.sent() > 0 {
            self.send_cancel(Side::Sender, block.id(), self.peer.unwrap_or(PeerId::CONFIGURED), reason);
        }
    }

    /// Cancels a block to send because it cannot be completed.
    pub(super) fn fail_outgoing(&mut self, number: u64, reason: CancelReason) {
        self.cancel_outgoing(number, reason);
        self.events.push_back(Event::Failed(number, FailureCause::Unfinished));
    }

    pub(super) fn remove_outgoing(&mut self, number: u64) -> Option<Outgoing> {
        let mut block = self.outgoing.remove(&number)?;
        self.stop_outgoing(number, &mut block);
        self.outgoing_bytes -= block.length();
        self.unsent_bytes -= block.length() - block.sent();
        self.fresh.retain(|other| *other != number);
        self.repeats.remove(&number);
        Some(block)
    }

    /// Stops the timers of a block.
    fn stop_outgoing(&mut self, number: u64, block: &mut Outgoing) {
        for (serial, checkpoint) in block.checkpoints() {
            self.clock.stop(Timer::Checkpoint(number, serial), &mut checkpoint.timer);
        }
        self.clock.deadlines.remove(Timer::RetransmissionDelay(number), block.batch_deadline);
    }

    // -- Received blocks ----------------------------------------------------------------------------------------

    /// Forgets a received block, and remembers how it ended.
    pub(super) fn forget_incoming(&mut self, id: SessionId, mut block: Incoming, closed: Closed) {
        for (serial, sent) in block.reports() {
            self.clock.stop(Timer::Report(id, serial), &mut sent.timer);
        }
        self.clock.deadlines.remove(Timer::Inactive(id), block.inactive_deadline);
        self.clock.deadlines.remove(Timer::ReportDelay(id), block.delay_deadline);
        self.behind.remove(id, block.behind_deadline);
        self.held_bytes -= block.held();
        self.close(id, closed);
    }

    /// Remembers a received session that has ended; the oldest one is forgotten if there are too many.
    pub(super) fn close(&mut self, id: SessionId, closed: Closed) {
        if self.config.closed_sessions_max == 0 {
            return;
        }
        if self.closed.insert(id, closed).is_none() {
            self.closed_order.push_back(id);
        }
        if self.closed_order.len() > self.config.closed_sessions_max
            && let Some(oldest) = self.closed_order.pop_front()
        {
            self.closed.remove(&oldest);
        }
    }

    // -- Cancellations ------------------------------------------------------------------------------------------

    fn remember_cancel(&mut self, side: Side, id: SessionId, to: PeerId, reason: CancelReason) {
        if self.cancelling.len() < CANCELS_MAX {
            let cancelling = Cancelling { to, reason, tries: 0, timer: AnswerTimer::default() };
            self.cancelling.entry((side, id)).or_insert(cancelling);
        }
    }

    /// Sends a cancellation until it is acknowledged (RFC 5326 6.15, 6.16).
    pub(super) fn send_cancel(&mut self, side: Side, id: SessionId, to: PeerId, reason: CancelReason) {
        if self.cancelling.contains_key(&(side, id)) {
            return;
        }
        self.remember_cancel(side, id, to, reason);
        if self.cancelling.contains_key(&(side, id)) {
            self.push_control(Control::Cancel(side, id));
        } else {
            let content = cancel(side, reason);
            self.push_control(Control::Answer(to, Segment::new(id, content)));
        }
    }

    /// Queues a control segment. Answers beyond a limit are dropped; everything else is bounded by the sessions.
    pub(super) fn push_control(&mut self, control: Control) {
        let may_be_dropped = matches!(control, Control::Answer(..) | Control::Copy(..));
        if !may_be_dropped || self.control.len() < CONTROL_MAX {
            self.control.push_back(control);
        }
    }

    // -- Departures ---------------------------------------------------------------------------------------------

    /// Returns the oldest block with unsent data if only its end is left, which waits for its final length.
    pub(super) fn waiting_block(&self) -> Option<u64> {
        let number = *self.fresh.front()?;
        let block = &self.outgoing[&number];
        (!block.is_finished() && !block.has_new(self.segment_bytes)).then_some(number)
    }

    /// Returns the next datagram to send.
    pub(super) fn next_departure(&mut self, now: Instant) -> Option<Departure> {
        let first = self.next.take();
        self.with_next(now, first)
    }

    /// Returns true if a segment has room for others in its datagram, and none was found.
    pub(super) fn has_room(&self, departure: &Departure) -> bool {
        self.shared_bytes > 0 && departure.is_acknowledgement() && self.next.is_none()
    }

    /// Returns a datagram with these segments, or without any, and the next ones.
    pub(super) fn with_next(&mut self, now: Instant, first: Option<Departure>) -> Option<Departure> {
        let mut departure = first.or_else(|| self.next_segment(now))?;
        while self.has_room(&departure) {
            let Some(next) = self.next_segment(now) else { break };
            if next.to != departure.to || departure.bytes.len() + next.bytes.len() > self.shared_bytes {
                self.next = Some(next);
                break;
            }
            departure = departure.before(next);
        }
        Some(departure)
    }

    /// Returns the next segment to send.
    fn next_segment(&mut self, now: Instant) -> Option<Departure> {
        let departure = self.next_plain(now)?;
        Some(match &self.authenticator {
            Some(authenticator) => Departure { bytes: authenticator.seal(&departure.bytes), ..departure },
            None => departure,
        })
    }

    /// Returns the next segment to send, without authentication.
    fn next_plain(&mut self, now: Instant) -> Option<Departure> {
        if self.clock.is_down() || self.segment_bytes == 0 {
            return None;
        }
        while let Some(control) = self.control.pop_front() {
            if let Some(departure) = self.depart_control(now, control) {
                return Some(departure);
            }
        }
        while let Some(number) = self.repeats.first().copied() {
            let next = self.outgoing.get_mut(&number).and_then(|block| block.next_repeat(self.segment_bytes));
            match next {
                Some(next) => return Some(self.depart_data(now, number, next)),
                None => {
                    self.repeats.remove(&number);
                }
            }
        }
        let number = *self.fresh.front()?;
        let every = self.config.checkpoint_every;
        let block = self.outgoing.get_mut(&number).expect("a block with unsent data exists");
        let next = block.next_new(self.segment_bytes, every)?;
        if block.is_sent() {
            self.fresh.pop_front();
        }
        self.unsent_bytes -= next.head.length;
        let departure = self.depart_data(now, number, next);
        // A block without a red part is complete when it has left.
        self.complete_if_done(number);
        Some(departure)
    }

    fn depart_data(&mut self, now: Instant, number: u64, next: NextSegment) -> Departure {
        let NextSegment { head, repeated } = next;
        let block = &self.outgoing[&number];
        // While new data leave, a loss costs no time. Longer retransmissions cost more time as copies than another round trip for
        // what they lose.
        let is_copied = self.config.copies > 1
            && block.is_sent()
            && (head.serials.is_some() || (repeated && self.repeats_are_short()));
        let mut out = BytesMut::with_capacity(self.segment_bytes);
        head.encode(block.id(), &mut out);
        block.copy(head.offset, head.length, &mut out);
        let bytes = out.freeze();
        let shares = match repeated {
            true => Shares::repeated(bytes.len()),
            false => Shares::payload(head.length as usize),
        };
        self.counters.segments_sent += u64::from(!repeated);
        self.counters.segments_repeated += u64::from(repeated);
        let sent =
            if repeated { &mut self.counters.payload_repeated } else { &mut self.counters.payload_sent };
        *sent += head.length;
        let to = self.peer.unwrap_or(PeerId::CONFIGURED);
        let timer = head.serials.map(|serials| Timer::Checkpoint(number, serials.checkpoint));
        if is_copied {
            self.copy(now, to, &bytes, Shares::repeated(bytes.len()));
        }
        Departure { to, bytes, shares, token: timer.map(|timer| self.token(timer)) }
    }

    /// Returns true if all retransmissions that are not reported leave within a round trip.
    fn repeats_are_short(&self) -> bool {
        let bytes: u64 = self.outgoing.values().map(Outgoing::repeated_bytes).sum();
        let segments = bytes / (self.segment_bytes as u64).max(1);
        let bits = 8 * u128::from(bytes.saturating_add(segments.saturating_mul(self.config.overhead_bytes)));
        let round_trip = self.config.one_way_delay.saturating_mul(2);
        let rate_bps = u128::from(self.config.rate_bps);
        rate_bps == 0 || bits * 1_000_000_000 <= rate_bps.saturating_mul(round_trip.as_nanos())
    }

    /// Makes a control segment; `None` if it is no longer needed.
    fn depart_control(&mut self, now: Instant, control: Control) -> Option<Departure> {
        let (to, segment, timer) = match control {
            Control::Copy(to, bytes, shares) => {
                self.counters.copies_sent += 1;
                return Some(Departure { to, bytes, shares, token: None });
            }
            Control::Checkpoint(number, serial) => {
                let next = self.outgoing.get_mut(&number)?.repeat_checkpoint(serial)?;
                return Some(self.depart_data(now, number, next));
            }
            Control::Answer(to, segment) => (to, segment, None),
            Control::Report(id, serial) => {
                let block = self.incoming.get_mut(&id)?;
                let to = block.to;
                let sent = block.report(serial)?;
                sent.queued = false;
                sent.tries += 1;
                self.counters.reports_sent += 1;
                let content = Content::Report(sent.report.clone());
                (to, Segment::new(id, content), Some(Timer::Report(id, serial)))
            }
            Control::Cancel(side, id) => {
                let cancelling = self.cancelling.get_mut(&(side, id))?;
                cancelling.tries += 1;
                self.counters.cancels_sent += 1;
                let content = cancel(side, cancelling.reason);
                (cancelling.to, Segment::new(id, content), Some(Timer::Cancel(side, id)))
            }
        };
        let bytes = segment.to_bytes();
        if bytes.len() > self.segment_bytes {
            // The endpoint carries no segment with numbers of this length.
            self.counters.dropped += 1;
            return None;
        }
        let shares = match &segment.content {
            Content::Report(_) | Content::ReportAck(_) => Shares::acknowledgement(bytes.len()),
            _ => Shares::control(bytes.len()),
        };
        let number = segment.session.number;
        let is_midway = matches!(segment.content, Content::ReportAck(_))
            && self.outgoing.get(&number).is_some_and(|block| !block.is_sent());
        if !is_midway {
            self.copy(now, to, &bytes, shares);
        }
        Some(Departure { to, bytes, shares, token: timer.map(|timer| self.token(timer)) })
    }

    fn token(&mut self, timer: Timer) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        self.tokens.insert(token, timer);
        token
    }

    /// Schedules the copies of a segment.
    fn copy(&mut self, now: Instant, to: PeerId, bytes: &Bytes, shares: Shares) {
        for copy in 1..self.config.copies {
            if self.copies.len() < COPIES_MAX {
                self.copy_count += 1;
                let at = now + self.config.copy_interval.saturating_mul(copy);
                self.copies.insert((at, self.copy_count), (to, bytes.clone(), shares));
            }
        }
    }

    /// Starts the timer of a segment that has left (RFC 5326 6.2, 6.3, 6.15).
    pub(super) fn transmitted(&mut self, now: Instant, token: u64) {
        let Some(key) = self.tokens.remove(&token) else { return };
        let timer = match key {
            Timer::Checkpoint(number, serial) => {
                let checkpoint = self.outgoing.get_mut(&number).and_then(|block| block.checkpoint(serial));
                checkpoint.map(|checkpoint| {
                    checkpoint.first_departed.get_or_insert(now);
                    &mut checkpoint.timer
                })
            }
            Timer::Report(id, serial) => {
                let sent = self.incoming.get_mut(&id).and_then(|block| block.report(serial));
                sent.map(|sent| &mut sent.timer)
            }
            Timer::Cancel(side, id) => {
                self.cancelling.get_mut(&(side, id)).map(|cancelling| &mut cancelling.timer)
            }
            Timer::Inactive(_) | Timer::ReportDelay(_) | Timer::RetransmissionDelay(_) => None,
        };
        if let Some(timer) = timer {
            self.clock.start(key, timer, now);
        }
    }

    // -- Time ---------------------------------------------------------------------------------------------------

    /// Returns the time of the next deadline.
    pub(super) fn deadline(&self) -> Option<Instant> {
        let copy = self.copies.first_key_value().map(|((at, _), _)| *at);
        self.clock.deadlines.next().into_iter().chain(copy).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        while let Some(key) = self.clock.deadlines.pop_due(now) {
            match key {
                Timer::Checkpoint(number, serial) => self.checkpoint_is_late(number, serial),
                Timer::Report(id, serial) => self.report_is_late(id, serial),
                Timer::Cancel(side, id) => self.cancel_is_late(side, id),
                Timer::Inactive(id) => self.is_inactive(now, id),
                Timer::ReportDelay(id) => {
                    if let Some(block) = self.incoming.get_mut(&id) {
                        block.delay_deadline = None;
                    }
                    self.report(now, id);
                }
                Timer::RetransmissionDelay(number) => {
                    if let Some(block) = self.outgoing.get_mut(&number) {
                        block.batch_deadline = None;
                        block.release_batches();
                        self.repeats.insert(number);
                    }
                }
            }
        }
        while let Some(entry) = self.copies.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, bytes, shares) = entry.remove();
            self.push_control(Control::Copy(to, bytes, shares));
        }
    }

    fn cancel_is_late(&mut self, side: Side, id: SessionId) {
        let Some(cancelling) = self.cancelling.get_mut(&(side, id)) else { return };
        if Clock::expired(&mut cancelling.timer) {
            if cancelling.tries > self.config.retransmissions_max {
                self.cancelling.remove(&(side, id));
            } else {
                self.push_control(Control::Cancel(side, id));
            }
        }
    }

    /// Returns a report of a complete block whose session has ended.
    pub(super) fn last_report(serial: u64, checkpoint: u64, red_end: u64) -> Report {
        Report { serial, checkpoint, upper: red_end, lower: 0, claims: vec![(0, red_end)] }
    }
}

fn random(rng: &mut Rng) -> u64 {
    1 + rng.below((1 << RANDOM_BITS) - 1)
}

/// Returns the cancellation that a side sends.
fn cancel(side: Side, reason: CancelReason) -> Content {
    match side {
        Side::Sender => Content::CancelBySender(reason),
        Side::Receiver => Content::CancelByReceiver(reason),
    }
}
