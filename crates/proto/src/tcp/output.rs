//! Choice of the segment that a connection sends next (RFC 9293 3.8, RFC 5681 3, RFC 6675 4 and 5). A segment is chosen
//! and built when there is room for it, not before.

use super::config::Nagle;
use super::congestion::Phase;
use super::connection::{Connection, State, Timer};
use super::forward_rto::ForwardRto;
use super::wire::{Flags, IPV4_HEADER_BYTES, SACK_BLOCKS_MAX, Segment, TCP_HEADER_BYTES, TcpOptions};
use crate::service::Shares;
use crate::time::Instant;
use bytes::Bytes;

/// Kind of the next segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Emission {
    Reset(u64),
    Syn,
    /// Retransmission of the segment with this index on the scoreboard; true for the last segment, sent on suspicion
    /// only.
    Repeat(usize, bool),
    New(NewData),
    /// Tail loss probe: new data, or else the last segment again.
    TailProbe(Option<NewData>),
    Probe,
    Acknowledge,
}

/// New data up to this offset, optionally followed by the FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NewData {
    end: u64,
    fin: bool,
}

impl Connection {
    /// Returns true if a segment can be sent now.
    pub(super) fn wants_to_send(&self) -> bool {
        self.decide().is_some()
    }

    /// Builds the next segment, and returns it with the shares of its bytes.
    pub(super) fn poll_segment(&mut self, now: Instant) -> Option<(Segment, Shares)> {
        let emission = match self.decide() {
            Some(Emission::New(_)) if self.flight() == 0 => {
                let idle = now.saturating_since(self.last_sent);
                self.congestion.restart(idle, self.rtt.timeout());
                self.decide()?
            }
            decided => decided?,
        };
        let made = match emission {
            Emission::Reset(offset) => self.make_reset(offset),
            Emission::Syn => self.make_syn(now),
            Emission::Repeat(index, suspicion) => self.make_repetition(now, index, suspicion),
            Emission::New(data) => self.make_new(now, data),
            Emission::TailProbe(data) => self.make_tail_probe(now, data),
            Emission::Probe => self.make_probe(now),
            Emission::Acknowledge => self.make_acknowledgement(now),
        };
        self.counters.segments_sent += 1;
        self.review(now);
        Some(made)
    }

    fn decide(&self) -> Option<Emission> {
        match self.state {
            State::Closed => return self.owed.reset.map(Emission::Reset),
            State::SynSent | State::SynReceived => return self.owed.syn.then_some(Emission::Syn),
            _ => {}
        }
        if self.probe.wanted && self.flight() > 0 {
            return Some(Emission::TailProbe(self.new_data(u64::MAX, true)));
        }
        let new = self.next_new();
        if self.forward_rto == ForwardRto::SendsNew
            && let Some(data) = new
        {
            return Some(Emission::New(data));
        }
        if let Some(index) = self.next_repetition() {
            return Some(Emission::Repeat(index, false));
        }
        if let Some(data) = new {
            return Some(Emission::New(data));
        }
        if let Some((index, suspicion)) = self.next_suspicion() {
            return Some(Emission::Repeat(index, suspicion));
        }
        if self.owed.probe {
            return Some(Emission::Probe);
        }
        (self.owed.acknowledgement || self.owed.duplicates > 0).then_some(Emission::Acknowledge)
    }

    /// Returns the number of bytes that the congestion window still allows into the network.
    fn congestion_room(&self) -> u64 {
        let limited = !self.profile.limited_transmit && self.congestion.phase == Phase::Open;
        let pipe = if limited { self.flight() } else { self.pipe() };
        self.congestion.window.saturating_sub(pipe)
    }

    /// Returns the next lost segment: the first at once, the others as the window allows.
    fn next_repetition(&self) -> Option<usize> {
        let sent_new = matches!(self.congestion.phase, Phase::Loss { point } if self.next > point);
        if self.forward_rto == ForwardRto::SendsNew && sent_new {
            return None;
        }
        let index = self.scoreboard.next_waiting()?;
        let sent = self.scoreboard.get(index);
        let allowed = self.repeat_first || sent.end - sent.start <= self.congestion_room();
        allowed.then_some(index)
    }

    /// Returns a segment that may be lost and is retransmitted because nothing else can be sent (RFC 6675 4, NextSeg
    /// rules 3, 4).
    fn next_suspicion(&self) -> Option<(usize, bool)> {
        let recovering = matches!(self.congestion.phase, Phase::Recovery { .. });
        if !recovering || !self.peer.sack || !self.profile.repeat_on_suspicion {
            return None;
        }
        let fits = |index: &usize| {
            let sent = self.scoreboard.get(*index);
            sent.end - sent.start <= self.congestion_room()
        };
        if let Some(index) = self.scoreboard.next_doubtful() {
            return Some((index, false)).filter(|(index, _)| fits(index));
        }
        if self.rescued || self.scoreboard.has_waiting() {
            return None;
        }
        self.scoreboard.last_unsacked().filter(fits).map(|index| (index, true))
    }

    /// Returns new data that may leave now: allowed by both windows, by the sender's avoidance of silly windows (RFC
    /// 9293 3.8.6.2.1) and by the Nagle algorithm.
    pub(super) fn next_new(&self) -> Option<NewData> {
        self.new_data(self.congestion_room(), false)
    }

    /// Returns new data that may leave if the congestion window has this room; `small` allows a small segment in any case.
    fn new_data(&self, room: u64, small: bool) -> Option<NewData> {
        if !matches!(self.state, State::Established | State::CloseWait) || !self.has_unsent() {
            return None;
        }
        let usable = self.peer.limit.saturating_sub(self.next);
        let waiting = self.buffer.end() - self.next;
        let length = waiting.min(self.segment).min(usable);
        let fin = self.fin_wanted && length == waiting && usable > length;
        if length == 0 {
            return fin.then_some(NewData { end: self.next, fin });
        }
        let all = length == waiting;
        let worthwhile = length == self.segment
            || all && (self.fin_wanted || small || self.may_send_small())
            || length >= self.peer.window_highest / 2
            || self.small_forced;
        let allowed = length <= room;
        (worthwhile && allowed).then_some(NewData { end: self.next + length, fin })
    }

    fn may_send_small(&self) -> bool {
        match self.profile.nagle {
            Nagle::Off => true,
            Nagle::Rfc9293 => self.flight() == 0,
            Nagle::Minshall => self.small_until <= self.unacknowledged,
        }
    }

    // -- Building segments --------------------------------------------------------------------------------------------

    /// Builds a segment with the fields common to all segments of a synchronized state; clears the pending
    /// acknowledgement, which the segment carries.
    fn segment(&mut self, now: Instant, offset: u64, flags: Flags, payload: Bytes) -> Segment {
        let mut options = self.every_options(now);
        if self.peer.sack {
            let most = if self.peer.timestamps { SACK_BLOCKS_MAX - 1 } else { SACK_BLOCKS_MAX };
            // A full segment has no room for blocks.
            let room = self.segment.saturating_sub(payload.len() as u64 + 4) as usize / 8;
            let twice = self.receiver.take_duplicate().filter(|_| self.profile.duplicate_sack);
            let blocks = twice.iter().chain(self.receiver.sack_blocks());
            for &(start, end) in blocks.take(most.min(room)) {
                options.sack.push(self.peer_wire(start), self.peer_wire(end));
            }
        }
        if !payload.is_empty() {
            self.note_answer(now);
        }
        self.owed.acknowledgement = false;
        self.unanswered = 0;
        self.count_quick_acknowledgement();
        self.acknowledged = self.receiver.next();
        self.timers.stop(Timer::DelayedAck as usize);
        Segment {
            source_port: self.tuple.local.1,
            destination_port: self.tuple.remote.1,
            sequence: self.own_wire(offset),
            acknowledgement: self.peer_wire(self.receiver.next()),
            flags: flags.with(Flags::ACK),
            window: self.receiver.announce(self.peer.own_scale, self.segment),
            urgent: 0,
            options,
            payload,
        }
    }

    fn every_options(&self, now: Instant) -> TcpOptions {
        let timestamps = self.peer.timestamps.then(|| (self.timestamp(now), self.peer.timestamp));
        TcpOptions { timestamps, ..TcpOptions::default() }
    }

    pub(super) fn own_wire(&self, offset: u64) -> u32 {
        self.initial.wrapping_add(offset as u32)
    }

    fn peer_wire(&self, offset: u64) -> u32 {
        self.peer.initial.wrapping_add(offset as u32)
    }

    /// Builds a reset that the peer accepts: exactly at the sequence number that it expects next (RFC 9293 3.10.7.4).
    fn make_reset(&mut self, offset: u64) -> (Segment, Shares) {
        self.owed.reset = None;
        let segment = Segment {
            source_port: self.tuple.local.1,
            destination_port: self.tuple.remote.1,
            sequence: self.own_wire(offset),
            acknowledgement: self.peer_wire(self.receiver.next()),
            flags: Flags::RST.with(Flags::ACK),
            ..Segment::default()
        };
        control(segment)
    }

    fn make_syn(&mut self, now: Instant) -> (Segment, Shares) {
        let answers = self.state == State::SynReceived;
        let profile = &self.profile;
        let timestamps = if answers { self.peer.timestamps } else { profile.timestamps };
        let scaling = if answers { self.peer.scaling } else { profile.window_scaling };
        let options = TcpOptions {
            maximum_segment_bytes: Some(self.segment_offered),
            window_scale: scaling.then(|| self.wanted_scale()),
            sack_permitted: if answers { self.peer.sack } else { profile.sack },
            timestamps: timestamps.then(|| (self.timestamp(now), self.peer.timestamp)),
            ..TcpOptions::default()
        };
        self.owed.syn = false;
        self.owed.acknowledgement = false;
        self.next = 1;
        if self.syns == 0 {
            self.first_syn = now;
        }
        self.syns += 1;
        self.syn_at = now;
        self.acknowledged = self.receiver.next();
        self.timers.set(Timer::Retransmit as usize, self.rtt.deadline(now));
        let segment = Segment {
            source_port: self.tuple.local.1,
            destination_port: self.tuple.remote.1,
            sequence: self.initial,
            acknowledgement: if answers { self.peer_wire(self.receiver.next()) } else { 0 },
            flags: if answers { Flags::SYN.with(Flags::ACK) } else { Flags::SYN },
            window: self.receiver.window_of_syn(),
            options,
            ..Segment::default()
        };
        control(segment)
    }

    fn make_new(&mut self, now: Instant, data: NewData) -> (Segment, Shares) {
        let start = self.next;
        let payload = self.buffer.slice(start, data.end);
        let length = payload.len() as u64;
        let mut flags = Flags::default();
        if data.end == self.buffer.end() {
            flags = flags.with(Flags::PSH);
        }
        if data.fin {
            flags = flags.with(Flags::FIN);
            self.fin_sent = true;
            self.state = if self.state == State::CloseWait { State::LastAck } else { State::FinWait1 };
        }
        self.next = data.end + u64::from(data.fin);
        self.scoreboard.push(start, self.next, now);
        self.congestion.note_sent(self.next - start);
        if length > 0 && length < self.segment {
            self.small_until = self.next;
        }
        self.small_forced = false;
        self.last_sent = now;
        if !self.schedule_probe(now, false) {
            self.start_retransmit_timer(now);
        }
        let segment = self.segment(now, start, flags, payload);
        if length == 0 {
            return control(segment);
        }
        (segment, Shares::payload(length as usize))
    }

    fn make_repetition(&mut self, now: Instant, index: usize, suspicion: bool) -> (Segment, Shares) {
        let (start, end) = (self.scoreboard.get(index).start, self.scoreboard.get(index).end);
        self.scoreboard.repeat(index, now);
        self.congestion.note_sent(end - start);
        self.repeat_first = false;
        if self.forward_rto == ForwardRto::SendsNew {
            // No new data could be sent (RFC 5682 3.1 step 2b).
            self.forward_rto = ForwardRto::Off;
        }
        self.rescued |= suspicion;
        self.counters.retransmissions += 1;
        self.repeated_at.get_or_insert(self.timestamp(now));
        self.last_sent = now;
        self.episode.repetitions = self.episode.repetitions.saturating_add(1);
        if index == 0 && !self.is_as_in_ns3() {
            // The segment for which the timer runs leaves only now.
            self.set_transmit_timer(Timer::Retransmit, self.rtt.deadline(now));
        }
        self.start_retransmit_timer(now);
        let data_end = end.min(self.buffer.end());
        let payload = self.buffer.slice(start.min(data_end), data_end);
        let mut flags = if data_end == self.buffer.end() { Flags::PSH } else { Flags::default() };
        if end > data_end {
            flags = flags.with(Flags::FIN);
        }
        let segment = self.segment(now, start, flags, payload);
        if segment.payload.is_empty() {
            return control(segment);
        }
        let length = frame_bytes(&segment);
        (segment, Shares::repeated(length))
    }

    /// Builds a tail loss probe; the retransmission timer starts again (RFC 8985 7.3).
    fn make_tail_probe(&mut self, now: Instant, data: Option<NewData>) -> (Segment, Shares) {
        let made = match data {
            Some(data) => self.make_new(now, data),
            None => self.make_repetition(now, self.scoreboard.sent.len() - 1, false),
        };
        self.probe.note_sent(self.next, data.is_none());
        self.set_transmit_timer(Timer::Retransmit, self.rtt.deadline(now));
        made
    }

    fn start_retransmit_timer(&mut self, now: Instant) {
        if self.timers.get(Timer::TailProbe as usize).is_some() {
            self.resume_retransmit_timer(now);
        } else if !self.has_transmit_timer() {
            self.timers.set(Timer::Retransmit as usize, self.rtt.deadline(now));
        }
    }

    /// Builds an empty segment from just before the sequence number that the peer expects: the peer must answer it (RFC
    /// 9293 3.8.4, 3.8.6.1).
    fn make_probe(&mut self, now: Instant) -> (Segment, Shares) {
        self.owed.probe = false;
        self.counters.probes += 1;
        let segment = self.segment(now, self.next.saturating_sub(1), Flags::default(), Bytes::new());
        control(segment)
    }

    fn make_acknowledgement(&mut self, now: Instant) -> (Segment, Shares) {
        if !core::mem::take(&mut self.owed.acknowledgement) {
            self.owed.duplicates -= 1;
        }
        let segment = self.segment(now, self.next, Flags::default(), Bytes::new());
        let length = frame_bytes(&segment);
        (segment, Shares::acknowledgement(length))
    }
}

/// Returns the length of the frame that carries a segment, bytes.
pub(super) fn frame_bytes(segment: &Segment) -> usize {
    IPV4_HEADER_BYTES + TCP_HEADER_BYTES + segment.options.length() + segment.payload.len()
}

/// Counts all bytes of a segment that opens, closes, probes or resets as control.
pub(super) fn control(segment: Segment) -> (Segment, Shares) {
    let length = frame_bytes(&segment);
    (segment, Shares::control(length))
}
