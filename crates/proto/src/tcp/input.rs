//! Processing of an arriving segment by its connection (RFC 9293 3.10.7).

use super::config::Recovery;
use super::congestion::Phase;
use super::connection::{Connection, State, Timer};
use super::probe::ProbeAnswer;
use super::receive::Arrival;
use super::recovery::Acknowledged;
use super::send::{AckOutcome, Evidence};
use super::wire::{Flags, SACK_BLOCKS_MAX, Segment};
use crate::service::{CloseReason, StreamIndication};
use crate::time::{Duration, Instant};

/// Minimum time between two responses to segments that may be part of an attack or a loop (RFC 5961 7).
const CHALLENGE_INTERVAL: Duration = Duration::from_millis(500);
/// Age at which a timestamp of the peer becomes invalid (RFC 7323 5.5).
const TIMESTAMP_LIFETIME: Duration = Duration::from_secs(24 * 86_400);
/// Divisor of the minimum of the delayed acknowledgement; gaps between segments up to the quotient count as the
/// minimum.
const GAP_SHARE: u32 = 2;
/// Maximum number of duplicate acknowledgements that wait for room.
const DUPLICATES_OWED_MAX: u32 = 64;

/// Returns true if `a` is before `b` on a clock that wraps.
pub(super) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Connection {
    /// Processes a segment of this connection. Returns false if the segment cannot belong to the connection and the
    /// host must answer with a reset (RFC 9293 3.10.7.3 and 3.10.7.4).
    #[must_use]
    pub(super) fn handle_segment(&mut self, now: Instant, segment: &Segment) -> bool {
        self.counters.segments_received += 1;
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        if opening && segment.flags.contains(Flags::ACK) && !self.answers_syn(segment) {
            self.counters.unacceptable += 1;
            return segment.flags.contains(Flags::RST);
        }
        match self.state {
            State::Closed => {}
            State::SynSent => self.in_syn_sent(now, segment),
            State::TimeWait => self.in_time_wait(now, segment),
            _ => self.in_synchronized(now, segment),
        }
        self.review(now);
        true
    }

    /// Returns true if the segment acknowledges the SYN of this side, and that SYN has been sent.
    fn answers_syn(&self, segment: &Segment) -> bool {
        self.next == 1 && segment.acknowledgement == self.own_wire(1)
    }

    /// Returns the offset of a sequence number of this side; negative for a number from before this connection.
    fn own_offset(&self, wire: u32) -> i64 {
        let next = self.initial.wrapping_add(self.next as u32);
        self.next as i64 + i64::from(wire.wrapping_sub(next) as i32)
    }

    /// Returns the offset of a sequence number of the peer.
    fn peer_offset(&self, wire: u32) -> i64 {
        let next = self.peer.initial.wrapping_add(self.receiver.next() as u32);
        self.receiver.next() as i64 + i64::from(wire.wrapping_sub(next) as i32)
    }

    /// Returns true if a sequence number is beyond everything that the peer has sent here.
    pub(super) fn is_beyond(&self, sequence: u32) -> bool {
        self.peer_offset(sequence) > self.receiver.next() as i64
    }

    // -- Opening --------------------------------------------------------------------------------------------------

    /// Processes the peer's SYN: its sequence number and its options (RFC 9293 3.7.1, RFC 7323 2.2, RFC 2018 2).
    pub(super) fn take_syn(&mut self, now: Instant, segment: &Segment) {
        self.peer.initial = segment.sequence;
        self.receiver.begin();
        let options = &segment.options;
        if let (Some(scale), true) = (options.window_scale, self.profile.window_scaling) {
            // RFC 7323 2.3: values above 14 mean 14.
            self.peer.scaling = true;
            self.peer.scale = scale.min(14);
            self.peer.own_scale = self.wanted_scale();
        }
        self.peer.sack = options.sack_permitted && self.profile.sack;
        if let (Some((value, _)), true) = (options.timestamps, self.profile.timestamps) {
            self.peer.timestamps = true;
            self.peer.timestamp = value;
            self.peer.timestamp_at = now;
        }
        self.settle_segment(options.maximum_segment_bytes);
        // The window of a SYN is never scaled (RFC 7323 2.2).
        let window = u64::from(segment.window);
        self.peer.limit = self.unacknowledged.max(1) + window;
        self.peer.window_highest = window;
        self.peer.window_at = (0, self.unacknowledged);
        self.last_heard = now;
    }

    fn in_syn_sent(&mut self, now: Instant, segment: &Segment) {
        let acknowledges = segment.flags.contains(Flags::ACK);
        if segment.flags.contains(Flags::RST) {
            if acknowledges {
                self.finish(CloseReason::Refused);
            }
            return;
        }
        if !segment.flags.contains(Flags::SYN) {
            return;
        }
        self.take_syn(now, segment);
        if acknowledges {
            self.unacknowledged = 1;
            self.owed.syn = false;
            self.owed.acknowledgement = true;
            self.establish(now, segment);
            if !segment.payload.is_empty() || segment.flags.contains(Flags::FIN) {
                self.take_text(now, segment, 1);
            }
        } else {
            // SYNs crossed (RFC 9293 3.5, figure 7).
            self.state = State::SynReceived;
            self.owed.syn = true;
        }
    }

    /// Enters ESTABLISHED: both SYNs are acknowledged.
    fn establish(&mut self, now: Instant, segment: &Segment) {
        self.state = State::Established;
        self.timers.stop(Timer::Retransmit as usize);
        self.finish_syn(now, segment);
        self.timeouts = 0;
        self.start_keep_alive(now);
        self.known = true;
        self.up.push_back(StreamIndication::Connected);
        self.last_sent = now;
    }

    /// Updates the round-trip estimate and the congestion window after the exchange of SYNs.
    fn finish_syn(&mut self, now: Instant, segment: &Segment) {
        let echoed = segment.options.timestamps.filter(|_| self.peer.timestamps).map(|(_, echo)| echo);
        match echoed {
            _ if self.syns == 1 => self.sample_round_trip(now, now.saturating_since(self.syn_at)),
            Some(echo) => self.sample_round_trip(now, self.elapsed_since_timestamp(now, echo)),
            None => self.rtt.after_syn_timeout(),
        }
        if self.timeouts == 0 {
            return;
        }
        if self.profile.undo_syn_timeout && echoed == Some(self.timestamp(self.first_syn)) {
            self.counters.undone += 1;
        } else {
            self.congestion.syn_was_lost();
        }
    }

    /// Returns the value of this side's timestamp clock (RFC 7323 5.4).
    pub(super) fn timestamp(&self, now: Instant) -> u32 {
        let tick = self.profile.timestamp_tick.as_nanos().max(1) as u64;
        self.timestamp_base.wrapping_add((now.as_nanos() / tick) as u32)
    }

    /// Returns the time since a timestamp of this side.
    fn elapsed_since_timestamp(&self, now: Instant, echo: u32) -> Duration {
        let ticks = self.timestamp(now).wrapping_sub(echo);
        if ticks > u32::MAX / 2 { Duration::ZERO } else { self.profile.timestamp_tick * ticks }
    }

    // -- Synchronized states ------------------------------------------------------------------------------------------

    fn in_time_wait(&mut self, now: Instant, segment: &Segment) {
        // Resets are ignored here (RFC 1337); a retransmitted FIN is acknowledged again (RFC 9293 3.10.7.4).
        if !segment.flags.contains(Flags::RST) && segment.length() > 0 {
            self.owed.acknowledgement = true;
            self.enter_time_wait(now);
        }
    }

    fn in_synchronized(&mut self, now: Instant, segment: &Segment) {
        let sequence = self.peer_offset(segment.sequence);
        if self.is_crossed_syn(sequence, segment) {
            self.note_timestamp(now, sequence, segment);
            self.owed.acknowledgement = true;
            self.take_final_handshake(now, segment);
            return;
        }
        if self.is_old_by_timestamp(now, segment) || !self.is_in_window(sequence, segment) {
            self.counters.unacceptable += 1;
            self.receiver.note_old(sequence, segment.payload.len());
            self.answer_unacceptable(now, segment);
            return;
        }
        if segment.flags.contains(Flags::RST) {
            self.take_reset(now, sequence);
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            // RFC 9293 3.10.7.4, with the change of RFC 5961 4.
            self.challenge(now);
            return;
        }
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        self.last_heard = now;
        self.keep_alives = 0;
        self.probes_unanswered = 0;
        self.note_timestamp(now, sequence, segment);
        if self.state == State::SynReceived {
            self.take_final_handshake(now, segment);
        }
        if !self.take_acknowledgement(now, sequence, segment) {
            return;
        }
        if !segment.payload.is_empty() || segment.flags.contains(Flags::FIN) {
            self.take_text(now, segment, sequence);
        }
    }

    /// Returns true if the timestamp shows that the segment is old (RFC 7323 5.3, R1).
    fn is_old_by_timestamp(&self, now: Instant, segment: &Segment) -> bool {
        let Some((value, _)) = segment.options.timestamps.filter(|_| self.peer.timestamps) else {
            return false;
        };
        !segment.flags.contains(Flags::RST)
            && before(value, self.peer.timestamp)
            && now.saturating_since(self.peer.timestamp_at) < TIMESTAMP_LIFETIME
    }

    fn is_in_window(&self, sequence: i64, segment: &Segment) -> bool {
        // With a closed window acknowledgements are still processed (RFC 9293 3.10.7.4).
        let at_edge = self.receiver.announced() == 0 && sequence == self.receiver.next() as i64;
        at_edge || self.receiver.accepts(sequence, segment.length())
    }

    fn answer_unacceptable(&mut self, now: Instant, segment: &Segment) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if self.state == State::SynReceived {
            // A retransmitted SYN: the answer to it was lost.
            self.owed.syn |= segment.flags.contains(Flags::SYN);
        } else if segment.payload.is_empty() && !segment.flags.contains(Flags::FIN) {
            self.challenge(now);
        } else {
            self.owed.acknowledgement = true;
        }
    }

    /// Sends a challenge acknowledgement: a real peer responds to it, an attacker learns nothing (RFC 5961 7).
    fn challenge(&mut self, now: Instant) {
        let recently = self.challenged.is_some_and(|at| now.saturating_since(at) < CHALLENGE_INTERVAL);
        if !recently {
            self.challenged = Some(now);
            self.owed.acknowledgement = true;
        }
    }

    fn take_reset(&mut self, now: Instant, sequence: i64) {
        if sequence != self.receiver.next() as i64 {
            self.challenge(now);
            return;
        }
        let refused = self.state == State::SynReceived && self.active;
        self.finish(if refused { CloseReason::Refused } else { CloseReason::Reset });
    }

    fn note_timestamp(&mut self, now: Instant, sequence: i64, segment: &Segment) {
        let Some((value, _)) = segment.options.timestamps.filter(|_| self.peer.timestamps) else {
            return;
        };
        // RFC 7323 4.3 (2).
        if !before(value, self.peer.timestamp) && sequence <= self.acknowledged as i64 {
            self.peer.timestamp = value;
            self.peer.timestamp_at = now;
        }
    }

    /// Returns true if SYNs crossed and this is the peer's SYN again, with the acknowledgement of this side's (RFC 9293
    /// 3.5, figure 7).
    fn is_crossed_syn(&self, sequence: i64, segment: &Segment) -> bool {
        let both = Flags::SYN.with(Flags::ACK);
        self.state == State::SynReceived && self.active && sequence == 0 && segment.flags.contains(both)
    }

    /// In SYN-RECEIVED: processes the acknowledgement of this side's SYN.
    fn take_final_handshake(&mut self, now: Instant, segment: &Segment) {
        self.unacknowledged = 1;
        self.owed.syn = false;
        self.establish(now, segment);
    }

    // -- Acknowledgements ---------------------------------------------------------------------------------------------

    /// Processes the acknowledgement and window fields. Returns false if the rest of the segment must be ignored.
    fn take_acknowledgement(&mut self, now: Instant, sequence: i64, segment: &Segment) -> bool {
        let offset = self.own_offset(segment.acknowledgement);
        let oldest = self.unacknowledged as i64 - self.peer.window_highest.max(1 << 16) as i64;
        if offset > self.next as i64 || offset < oldest {
            self.counters.unacceptable += 1;
            self.challenge(now);
            return false;
        }
        let offset = offset.max(0) as u64;
        let window_before = self.peer.limit;
        if offset >= self.unacknowledged {
            self.take_window(sequence, offset, segment);
        }
        let flight = self.flight();
        let used = self.used(window_before);
        let evidence = self.evidence(now, segment);
        let arrived_twice = self.take_duplicate_sack(offset, segment);
        let sacked = self.take_sack(offset, arrived_twice.is_some(), &evidence, segment);
        let advanced = offset > self.unacknowledged;
        let mut delivery = AckOutcome::default();
        if advanced {
            delivery = self.advance(now, offset, &evidence, sacked.oldest_sent_once, segment);
        } else if let Some(sent) = sacked.oldest_sent_once {
            self.sample_from_sack(now, sent);
        }
        delivery.delivered += sacked.delivered;
        delivery.sacked = sacked.sacked;
        delivery.original |= sacked.original;
        let same_window = self.peer.limit == window_before;
        let silent = segment.payload.is_empty() && !segment.flags.contains(Flags::FIN);
        let repeats = !advanced && silent && offset == self.unacknowledged;
        let duplicate =
            repeats && flight > 0 && if self.peer.sack { delivery.sacked > 0 } else { same_window };
        let needless = repeats && same_window && delivery.sacked == 0;
        self.judge_probe(&ProbeAnswer { offset, advanced, duplicate: needless, arrived_twice });
        let echo = segment.options.timestamps.filter(|_| self.peer.timestamps).map(|(_, echo)| echo);
        let arrived_twice = arrived_twice.is_some();
        self.control_congestion(
            now,
            &Acknowledged { advanced, duplicate, delivery, used, echo, arrived_twice },
        );
        if advanced && self.timers.get(Timer::Reordering as usize).is_none() {
            self.schedule_probe(now, true);
        }
        self.note_own_fin(now);
        true
    }

    /// Returns what the acknowledgement says about copies of segments that were sent more than once.
    fn evidence(&self, now: Instant, segment: &Segment) -> Evidence {
        let by_time = self.scoreboard.rack.as_ref();
        let echo = segment.options.timestamps.filter(|_| self.peer.timestamps).map(|(_, echo)| echo);
        let ticks_ago = echo.map(|echo| self.timestamp(now).wrapping_sub(echo));
        let tick = self.profile.timestamp_tick.as_nanos().max(1) as u64;
        let ticks = now.as_nanos() / tick;
        // The copy was sent before the tick after the echoed one.
        let sent_before = ticks_ago
            .filter(|&ago| ago <= u32::MAX / 2)
            .map(|ago| Instant::from_nanos((ticks.saturating_sub(u64::from(ago)) + 1).saturating_mul(tick)));
        Evidence {
            now,
            shortest: by_time.map_or(self.rtt.shortest, |rack| rack.shortest()),
            sent_before,
            timeout_point: if let Phase::Loss { point } = self.congestion.phase { point } else { 0 },
        }
    }

    /// Returns the end of the data that have arrived twice, if the first SACK block says so: it lies below the
    /// acknowledgement, or within the second block (RFC 2883 4).
    fn take_duplicate_sack(&mut self, offset: u64, segment: &Segment) -> Option<u64> {
        if !self.profile.duplicate_sack || !self.peer.sack {
            return None;
        }
        let mut blocks = segment.options.sack.as_slice().iter();
        let mut block = || blocks.next().map(|&(start, end)| (self.own_offset(start), self.own_offset(end)));
        let (start, end) = block()?;
        let within = |outer: (i64, i64)| outer.0 <= start && end <= outer.1;
        let twice = end <= offset as i64 || block().is_some_and(within);
        (twice && 1 <= start && start < end && end <= self.next as i64).then_some(end as u64)
    }

    fn take_window(&mut self, sequence: i64, offset: u64, segment: &Segment) {
        let (at, acknowledged) = self.peer.window_at;
        if at < sequence || at == sequence && acknowledged <= offset {
            let window = u64::from(segment.window) << self.peer.scale;
            self.peer.limit = offset + window;
            self.peer.window_highest = self.peer.window_highest.max(window);
            self.peer.window_at = (sequence, offset);
        }
    }

    fn take_sack(
        &mut self,
        offset: u64,
        first_is_duplicate: bool,
        evidence: &Evidence,
        segment: &Segment,
    ) -> AckOutcome {
        if !self.peer.sack || segment.options.sack.is_empty() {
            return AckOutcome::default();
        }
        let mut blocks = [(0, 0); SACK_BLOCKS_MAX];
        let mut count = 0;
        for &(start, end) in &segment.options.sack.as_slice()[usize::from(first_is_duplicate)..] {
            let (start, end) = (self.own_offset(start), self.own_offset(end));
            // Blocks below the acknowledged offset report duplicates (RFC 2883); other invalid blocks are not trusted.
            if start >= self.unacknowledged as i64 && start < end && end <= self.next as i64 {
                blocks[count] = (start as u64, end as u64);
                count += 1;
            }
        }
        let mut outcome = self.scoreboard.sack(&blocks[..count], evidence);
        // Data that are acknowledged as well are not beyond a hole.
        if blocks[..count].iter().all(|(start, _)| *start < offset) {
            outcome.sacked = 0;
        }
        outcome
    }

    /// Processes the acknowledgement of new data; `sacked` is the send time of the oldest segment that the same
    /// acknowledgement reports beyond a hole.
    fn advance(
        &mut self,
        now: Instant,
        offset: u64,
        evidence: &Evidence,
        sacked: Option<Instant>,
        segment: &Segment,
    ) -> AckOutcome {
        let delivery = self.scoreboard.acknowledge(offset, evidence);
        self.buffer.release(offset);
        self.unacknowledged = offset;
        self.timeouts = 0;
        self.timers.stop(Timer::Patience as usize);
        let echoed = segment.options.timestamps.filter(|_| self.peer.timestamps).map(|(_, echo)| echo);
        // Karn's algorithm (RFC 6298 3): retransmitted data give no sample, unless timestamps distinguish the copies.
        let sent_once = delivery.oldest_sent_once.filter(|_| !delivery.repeated);
        if let Some(sent) = sent_once.or(sacked.filter(|_| self.scoreboard.rack.is_some())) {
            self.sample_round_trip(now, now.saturating_since(sent));
        } else if let Some(echo) = echoed {
            self.sample_round_trip(now, self.elapsed_since_timestamp(now, echo));
        }
        // RFC 6298 5.2 and 5.3.
        let restarts = self.restarts_timer(offset);
        if self.flight() == 0 {
            for timer in [Timer::Retransmit, Timer::Reordering, Timer::TailProbe] {
                self.timers.stop(timer as usize);
            }
        } else if restarts {
            self.set_transmit_timer(Timer::Retransmit, self.rtt.deadline(now));
        }
        delivery
    }

    /// Returns true if an acknowledgement of new data restarts the retransmission timer (RFC 6298 5.3). In ns-3 it ends the
    /// back-off as well, and within fast recovery only the first one does.
    fn restarts_timer(&mut self, offset: u64) -> bool {
        if !self.is_as_in_ns3() {
            return true;
        }
        let partial = matches!(self.congestion.phase, Phase::Recovery { point } if offset < point);
        let restarts = !partial || core::mem::replace(&mut self.first_partial, false);
        if restarts {
            self.rtt.forget_backoff();
        }
        restarts
    }

    fn sample_round_trip(&mut self, now: Instant, measured: Duration) {
        self.rtt.sample(measured, self.unacknowledged, self.next);
        self.congestion.note_round_trip(now, measured, self.unacknowledged, self.next);
        if let Some(rack) = &mut self.scoreboard.rack {
            rack.note_round_trip(now, measured);
        }
        self.probe.sampled = true;
    }

    /// Takes a round-trip sample from a segment beyond a hole, as Linux does. The retransmission timer starts again if that
    /// segment was sent before the newest copy of the first one: its acknowledgement may still come.
    fn sample_from_sack(&mut self, now: Instant, sent: Instant) {
        if self.scoreboard.rack.is_none() {
            return;
        }
        self.sample_round_trip(now, now.saturating_since(sent));
        let first_is_newer = self.scoreboard.sent.front().is_some_and(|first| first.at > sent);
        if first_is_newer && self.timers.get(Timer::Retransmit as usize).is_some() {
            self.set_transmit_timer(Timer::Retransmit, self.rtt.deadline(now));
        }
    }

    /// Returns the part of the congestion window in use: the data in flight, plus the data that would be in flight at
    /// once if the interface had room (an interface without room does not make a window too large).
    fn used(&self, limit: u64) -> u64 {
        let unsent = self.buffer.end().saturating_sub(self.next);
        self.flight() + unsent.min(limit.saturating_sub(self.next))
    }

    /// Changes the state if this side's FIN is acknowledged.
    fn note_own_fin(&mut self, now: Instant) {
        if !self.fin_sent || self.unacknowledged < self.next {
            return;
        }
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.finish(CloseReason::Finished),
            _ => {}
        }
    }

    // -- Data -----------------------------------------------------------------------------------------------------

    fn take_text(&mut self, now: Instant, segment: &Segment, sequence: i64) {
        if !matches!(self.state, State::Established | State::FinWait1 | State::FinWait2) {
            // The peer's FIN has arrived: no new data can follow.
            self.owed.acknowledgement = true;
            return;
        }
        let length = segment.payload.len() as u64;
        self.segment_received = self.segment_received.max(length);
        if segment.flags.contains(Flags::FIN) && sequence >= 0 {
            self.receiver.note_fin(sequence as u64 + length);
        }
        if length > 0 {
            let before = self.receiver.next();
            let up = &mut self.up;
            let arrival = self.receiver.take(sequence, segment.payload.clone(), |data| {
                up.push_back(StreamIndication::Data(data));
            });
            let arrived = self.receiver.next() - before;
            self.schedule_acknowledgement(now, arrival, arrived);
        }
        if self.receiver.consume_fin() {
            self.take_fin(now);
        } else if segment.flags.contains(Flags::FIN) {
            self.owed.acknowledgement = true;
        }
    }

    fn take_fin(&mut self, now: Instant) {
        self.owed.acknowledgement = true;
        if self.known {
            self.up.push_back(StreamIndication::PeerClosed);
        }
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    /// Schedules the acknowledgement of received data (RFC 5681 4.2).
    fn schedule_acknowledgement(&mut self, now: Instant, arrival: Arrival, arrived: u64) {
        if arrival != Arrival::InOrder {
            self.note_disorder(arrival);
            if arrival == Arrival::OutOfOrder && self.owed.acknowledgement && !self.peer.sack {
                self.owed.duplicates = (self.owed.duplicates + 1).min(DUPLICATES_OWED_MAX);
            }
            self.owed.acknowledgement = true;
            return;
        }
        self.follow_gaps(now);
        let by_number = self.profile.recovery == Recovery::NewRenoNs3;
        self.unanswered += if by_number { self.segment_received } else { arrived };
        let enough = u64::from(self.profile.acknowledge_every_segments) * self.segment_received;
        let quick = self.quick_acks > 0 && !self.answering;
        if quick || self.profile.delayed_ack_maximum.is_zero() || self.unanswered >= enough {
            self.owed.acknowledgement = true;
        } else if self.timers.get(Timer::DelayedAck as usize).is_none() {
            let delay = self.ack_delay.min(self.profile.delayed_ack_maximum);
            self.timers.set(Timer::DelayedAck as usize, now + delay);
        }
    }

    /// Switches to immediate acknowledgements as in Linux: each segment out of order, and then those in order again, is
    /// acknowledged at once.
    fn note_disorder(&mut self, arrival: Arrival) {
        if !self.delay_adapts() {
            return;
        }
        if arrival == Arrival::FilledHole && !self.receiver.has_holes() {
            self.answering = false;
        }
        if arrival == Arrival::OutOfOrder && self.profile.quick_acks_after_disorder {
            self.quick_acks = self.quick_acks.max(self.profile.quick_acks);
            self.answering = false;
            self.ack_delay = self.profile.delayed_ack_minimum;
        }
    }

    /// Counts an acknowledgement that leaves as a quick one; after the last quick one the delay restarts at its
    /// minimum.
    pub(super) fn count_quick_acknowledgement(&mut self) {
        if self.quick_acks == 1 && self.delay_adapts() {
            self.ack_delay = self.profile.delayed_ack_minimum;
        }
        self.quick_acks = self.quick_acks.saturating_sub(1);
    }

    fn delay_adapts(&self) -> bool {
        self.profile.delayed_ack_minimum < self.profile.delayed_ack_maximum
    }

    /// Adapts the delay to the gaps between segments, as in Linux. After an idle period longer than the retransmission
    /// timeout the sender is presumed to be in slow start again, and gets quick acknowledgements.
    fn follow_gaps(&mut self, now: Instant) {
        let minimum = self.profile.delayed_ack_minimum;
        let Some(last) = self.last_data.replace(now) else {
            return;
        };
        if !self.delay_adapts() {
            return;
        }
        let gap = now.saturating_since(last);
        if gap <= minimum / GAP_SHARE {
            self.ack_delay = self.ack_delay / 2 + minimum / 2;
        } else if gap < self.ack_delay {
            self.ack_delay = (self.ack_delay / 2 + gap).min(self.rtt.timeout());
        } else if gap > self.rtt.timeout() {
            self.quick_acks = self.quick_acks.max(self.profile.quick_acks);
        }
    }

    /// Adapts the delay after it was too short for a second segment or an answer to arrive. As in Linux, the delay
    /// doubles for the next segment; if the user was expected to answer and did not, the delay restarts at its minimum.
    pub(super) fn delayed_ack_expired(&mut self) {
        if !self.delay_adapts() {
            return;
        }
        self.ack_delay = if core::mem::take(&mut self.answering) {
            self.profile.delayed_ack_minimum
        } else {
            (self.ack_delay * 2).min(self.rtt.timeout())
        };
    }

    /// Records that data leave; shortly after data arrived they count as an answer.
    pub(super) fn note_answer(&mut self, now: Instant) {
        if self.delay_adapts() && self.last_data.is_some_and(|at| now.saturating_since(at) < self.ack_delay) {
            self.answering = true;
        }
    }
}
