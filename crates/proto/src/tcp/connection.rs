//! One connection: its state, its user, its timers. The processing of arriving segments is in `input`, the choice of
//! the next segment in `output`.

use super::config::{Profile, Recovery};
use super::congestion::{Congestion, Phase};
use super::forward_rto::ForwardRto;
use super::probe::TailProbe;
use super::rack::Rack;
use super::receive::Receiver;
use super::rtt::RttEstimator;
use super::send::{Scoreboard, SendBuffer};
use super::wire::{IPV4_HEADER_BYTES, TCP_HEADER_BYTES, TIMESTAMP_OPTION_BYTES};
use crate::rng::Rng;
use crate::service::{CloseReason, StreamIndication, StreamRequest};
use crate::time::{Duration, Instant, Timers};
use core::net::Ipv4Addr;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// States of RFC 9293 3.3.2. LISTEN is missing: a listening port belongs to the host and is not a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// A SYN was sent, or is about to be.
    SynSent,
    /// SYNs crossed, or a SYN of a peer arrived.
    SynReceived,
    /// Data may flow in both directions.
    Established,
    /// This side sent its FIN first.
    FinWait1,
    /// This side's FIN is acknowledged.
    FinWait2,
    /// The peer's FIN arrived.
    CloseWait,
    /// FINs crossed.
    Closing,
    /// The peer's FIN arrived first, and this side has sent its own.
    LastAck,
    /// Both FINs are acknowledged; the connection waits for delayed segments to expire.
    TimeWait,
    /// The connection has ended.
    Closed,
}

/// Counters of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Segments sent, of all kinds.
    pub segments_sent: u64,
    /// Segments received.
    pub segments_received: u64,
    /// Data segments retransmitted.
    pub retransmissions: u64,
    /// Retransmission timeouts, including those of SYNs.
    pub timeouts: u64,
    /// Fast recoveries entered.
    pub fast_recoveries: u64,
    /// Reductions of the congestion window that were undone.
    pub undone: u64,
    /// Duplicate acknowledgements received.
    pub duplicate_acknowledgements: u64,
    /// Window and keep-alive probes sent.
    pub probes: u64,
    /// Segments received that were not acceptable.
    pub unacceptable: u64,
}

impl Counters {
    /// Returns the sum of both.
    pub(super) fn plus(&self, other: &Counters) -> Counters {
        Counters {
            segments_sent: self.segments_sent + other.segments_sent,
            segments_received: self.segments_received + other.segments_received,
            retransmissions: self.retransmissions + other.retransmissions,
            timeouts: self.timeouts + other.timeouts,
            fast_recoveries: self.fast_recoveries + other.fast_recoveries,
            undone: self.undone + other.undone,
            duplicate_acknowledgements: self.duplicate_acknowledgements + other.duplicate_acknowledgements,
            probes: self.probes + other.probes,
            unacceptable: self.unacceptable + other.unacceptable,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Timer {
    Retransmit,
    Persist,
    DelayedAck,
    KeepAlive,
    TimeWait,
    Patience,
    Reordering,
    TailProbe,
}
const TIMERS: usize = 8;

/// Retransmissions since the begin of the last recovery, to see whether any was necessary (RFC 2883).
#[derive(Debug, Default)]
pub(super) struct Episode {
    pub(super) repetitions: u32,
    /// Retransmissions of data that had arrived before.
    pub(super) needless: u32,
}

/// Both ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tuple {
    pub(super) local: (Ipv4Addr, u16),
    pub(super) remote: (Ipv4Addr, u16),
}

/// Control information to send to the peer, apart from data.
#[derive(Debug, Default)]
pub(super) struct PendingControl {
    pub(super) syn: bool,
    pub(super) acknowledgement: bool,
    /// Duplicate acknowledgements beyond the first: without SACK the sender counts them.
    pub(super) duplicates: u32,
    pub(super) probe: bool,
    /// Sequence offset of a reset to send.
    pub(super) reset: Option<u64>,
}

/// Sequence numbers of the peer and the negotiated options.
#[derive(Debug, Default)]
pub(super) struct PeerState {
    /// Initial sequence number.
    pub(super) initial: u32,
    /// True if both sides scale their windows; then the shift of the peer's window fields, and that of this side's.
    pub(super) scaling: bool,
    pub(super) scale: u8,
    pub(super) own_scale: u8,
    pub(super) sack: bool,
    pub(super) timestamps: bool,
    /// Newest timestamp of the peer that was in order (RFC 7323 4.3), and the time of its arrival.
    pub(super) timestamp: u32,
    pub(super) timestamp_at: Instant,
    /// Right edge of the peer's window, as an offset of this side; the largest window that the peer has announced; and
    /// the segment of the last update (RFC 9293 3.10.7.4, SND.WL1 and SND.WL2).
    pub(super) limit: u64,
    pub(super) window_highest: u64,
    pub(super) window_at: (i64, u64),
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) profile: Profile,
    pub(super) tuple: Tuple,
    pub(super) state: State,
    /// True if this side opened the connection.
    pub(super) active: bool,
    /// True if the user knows the connection: the user opened it, or received `Connected`.
    pub(super) known: bool,
    pub(super) timers: Timers<TIMERS>,
    pub(super) peer: PeerState,
    pub(super) owed: PendingControl,
    pub(super) counters: Counters,

    /// Initial sequence number of this side; sequence numbers are counted as offsets from it.
    pub(super) initial: u32,
    pub(super) timestamp_base: u32,
    pub(super) unacknowledged: u64,
    pub(super) next: u64,
    pub(super) buffer: SendBuffer,
    pub(super) scoreboard: Scoreboard,
    pub(super) congestion: Congestion,
    pub(super) rtt: RttEstimator,
    /// Payload of a full segment, bytes, and the maximum segment size that this side offers.
    pub(super) segment: u64,
    pub(super) segment_offered: u16,
    pub(super) fin_wanted: bool,
    pub(super) fin_sent: bool,
    pub(super) room_told: u64,
    pub(super) last_sent: Instant,
    /// End of the last segment that was not full.
    pub(super) small_until: u64,
    pub(super) small_forced: bool,
    /// Consecutive timeouts, and the time of the first.
    pub(super) timeouts: u32,
    pub(super) first_timeout: Instant,
    /// Window probes since the window closed, and those since the last segment from the peer.
    pub(super) probes: u32,
    pub(super) probes_unanswered: u32,
    /// Number of SYNs sent, and the times of the first and the newest.
    pub(super) syns: u32,
    pub(super) first_syn: Instant,
    pub(super) syn_at: Instant,

    pub(super) duplicates: u64,
    /// Without SACK: bytes that have arrived according to duplicate acknowledgements.
    pub(super) arrived_unknown: u64,
    /// No fast retransmit before this offset is acknowledged (RFC 6582 3.2 step 2).
    pub(super) recovered: u64,
    /// The first segment is retransmitted regardless of the congestion window.
    pub(super) repeat_first: bool,
    /// The one segment at the end that each recovery may retransmit on suspicion has been sent (RFC 6675 4, NextSeg
    /// rule 4).
    pub(super) rescued: bool,
    /// No acknowledgement has advanced in this fast recovery yet. Only kept as in ns-3.
    pub(super) first_partial: bool,
    /// Timestamp of the first retransmission in this recovery.
    pub(super) repeated_at: Option<u32>,
    pub(super) episode: Episode,
    pub(super) forward_rto: ForwardRto,
    pub(super) probe: TailProbe,

    pub(super) receiver: Receiver,
    /// Largest segment received, as an estimate of the peer's segment size, bytes.
    pub(super) segment_received: u64,
    /// Bytes received since the last acknowledgement was sent.
    pub(super) unanswered: u64,
    pub(super) quick_acks: u32,
    pub(super) ack_delay: Duration,
    /// Data left shortly after data arrived: the user answers, and its next answer may carry the acknowledgement
    /// (Linux: ping-pong mode).
    pub(super) answering: bool,
    pub(super) last_data: Option<Instant>,
    pub(super) last_heard: Instant,
    pub(super) keep_alives: u32,
    pub(super) challenged: Option<Instant>,
    /// Receive offset of the last acknowledgement sent (RFC 7323 4.3, Last.ACK.sent).
    pub(super) acknowledged: u64,
    pub(super) up: VecDeque<StreamIndication>,
}

/// Maximum number of segments beyond holes, per segment that fits the window, and the number in addition.
const PARTS_PER_SEGMENT: usize = 2;
const PARTS_EXTRA: usize = 64;
/// Smallest segment size that is offered and that a peer may request, bytes without headers: the payload of a packet of
/// 64 bytes, of which timestamps occupy half. Every network carries packets of 68 bytes (RFC 791 3.2).
const SEGMENT_BYTES_MIN: u16 = 24;

impl Connection {
    fn new(
        profile: Profile,
        tuple: Tuple,
        mtu_bytes: u16,
        active: bool,
        now: Instant,
        rng: &mut Rng,
    ) -> Self {
        let headers = (IPV4_HEADER_BYTES + TCP_HEADER_BYTES) as u16;
        let fits = mtu_bytes.saturating_sub(headers);
        let segment_offered = profile.maximum_segment_bytes.min(fits).max(SEGMENT_BYTES_MIN);
        let segment = u64::from(segment_offered);
        let buffer = receive_buffer(&profile);
        let parts_max = PARTS_PER_SEGMENT * (buffer as usize / segment as usize) + PARTS_EXTRA;
        Connection {
            congestion: Congestion::new(&profile, segment),
            rtt: RttEstimator::new(&profile),
            receiver: Receiver::new(buffer, profile.announced_bytes_max, parts_max),
            quick_acks: profile.quick_acks,
            ack_delay: profile.delayed_ack_minimum,
            answering: false,
            profile,
            tuple,
            state: State::SynSent,
            active,
            known: active,
            timers: Timers::new(),
            peer: PeerState::default(),
            owed: PendingControl::default(),
            counters: Counters::default(),
            initial: rng.next_u32(),
            timestamp_base: rng.next_u32(),
            unacknowledged: 0,
            next: 0,
            buffer: SendBuffer::new(),
            scoreboard: Scoreboard::new(None),
            segment,
            segment_offered,
            fin_wanted: false,
            fin_sent: false,
            room_told: 0,
            last_sent: now,
            small_until: 0,
            small_forced: false,
            timeouts: 0,
            first_timeout: now,
            probes: 0,
            probes_unanswered: 0,
            syns: 0,
            first_syn: now,
            syn_at: now,
            duplicates: 0,
            arrived_unknown: 0,
            recovered: 0,
            repeat_first: false,
            rescued: false,
            first_partial: true,
            repeated_at: None,
            episode: Episode::default(),
            forward_rto: ForwardRto::Off,
            probe: TailProbe::default(),
            segment_received: 0,
            unanswered: 0,
            last_data: None,
            last_heard: now,
            keep_alives: 0,
            challenged: None,
            acknowledged: 0,
            up: VecDeque::new(),
        }
    }

    /// Opens a connection to the peer.
    pub(super) fn call(profile: Profile, tuple: Tuple, mtu: u16, now: Instant, rng: &mut Rng) -> Self {
        let mut connection = Connection::new(profile, tuple, mtu, true, now, rng);
        connection.owed.syn = true;
        connection
    }

    /// Creates a connection for an incoming SYN, which the caller passes to the connection next.
    pub(super) fn answer(profile: Profile, tuple: Tuple, mtu: u16, now: Instant, rng: &mut Rng) -> Self {
        let mut connection = Connection::new(profile, tuple, mtu, false, now, rng);
        connection.state = State::SynReceived;
        connection.owed.syn = true;
        connection
    }

    /// Returns the window scale that fits the receive buffer (RFC 7323 2.3).
    pub(super) fn wanted_scale(&self) -> u8 {
        let buffer = receive_buffer(&self.profile);
        (0..14).find(|shift| buffer >> shift <= u32::from(u16::MAX)).unwrap_or(14)
    }

    /// Sets the slow-start threshold that an earlier connection to the same address reached.
    pub(super) fn remember_threshold(&mut self, threshold: u64) {
        self.congestion.threshold = threshold.max(2 * self.segment);
    }

    /// Returns the slow-start threshold for later connections to the same address; see
    /// [`Congestion::threshold_to_remember`].
    pub(super) fn threshold_to_remember(&self, earlier: Option<u64>) -> Option<u64> {
        self.congestion.threshold_to_remember(earlier)
    }

    /// Computes the size of a full segment once the options of both sides are known.
    pub(super) fn settle_segment(&mut self, peer_maximum: Option<u16>) {
        // RFC 9293 3.7.1: 536 without the option.
        let maximum = u64::from(peer_maximum.unwrap_or(536).max(SEGMENT_BYTES_MIN)).min(self.segment);
        let options = if self.peer.timestamps { TIMESTAMP_OPTION_BYTES as u64 } else { 0 };
        self.segment = maximum - options;
        let threshold = self.congestion.threshold;
        self.congestion = Congestion::new(&self.profile, self.segment);
        self.congestion.threshold = threshold;
        let by_time = self.peer.sack && self.profile.recovery == Recovery::Rack;
        self.scoreboard = Scoreboard::new(by_time.then(Rack::new));
    }

    // -- The user ---------------------------------------------------------------------------------------------

    /// Processes a request of the user, except a first `Connect`, which the host handles.
    ///
    /// # Panics
    /// Panics on a write beyond the room granted, a release beyond the data delivered, or a second `Connect`.
    pub(super) fn handle_request(&mut self, now: Instant, request: StreamRequest) {
        if matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        match request {
            StreamRequest::Connect => panic!("a connection that is open is not opened again"),
            StreamRequest::Secure { .. } => self.abort(CloseReason::Insecure),
            StreamRequest::Write(bytes) => self.write(bytes),
            StreamRequest::Release(bytes) => self.release(bytes),
            StreamRequest::Close if self.state == State::SynSent => self.finish(CloseReason::Aborted),
            StreamRequest::Close => self.fin_wanted = true,
            StreamRequest::Abort => self.abort(CloseReason::Aborted),
        }
        self.review(now);
    }

    fn write(&mut self, bytes: bytes::Bytes) {
        let length = bytes.len() as u64;
        assert!(length <= self.room_told, "{length} bytes written against room for {}", self.room_told);
        assert!(!self.fin_wanted, "nothing is written after Close");
        self.room_told -= length;
        self.buffer.push(bytes);
    }

    fn release(&mut self, bytes: u64) {
        self.receiver.release(bytes);
        if !self.receiver.is_complete() && self.receiver.wants_update(self.segment) {
            self.owed.acknowledgement = true;
        }
    }

    pub(super) fn abort(&mut self, reason: CloseReason) {
        if self.state != State::SynSent {
            self.owed.reset = Some(self.next);
        }
        self.finish(reason);
    }

    /// Ends the connection for its user, and clears all pending control information except a reset.
    pub(super) fn finish(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.timers.stop_all();
        self.owed = PendingControl { reset: self.owed.reset, ..PendingControl::default() };
        self.up.retain(|indication| matches!(indication, StreamIndication::Data(_)));
        if self.known {
            self.up.push_back(StreamIndication::Closed(reason));
        }
        self.known = false;
    }

    /// Both FINs are exchanged: ends the connection for its user and starts TIME-WAIT (RFC 9293 3.6).
    pub(super) fn enter_time_wait(&mut self, now: Instant) {
        self.timers.stop_all();
        self.timers.set(Timer::TimeWait as usize, now + self.profile.time_wait);
        if self.state != State::TimeWait {
            self.state = State::TimeWait;
            if self.known {
                self.up.push_back(StreamIndication::Closed(CloseReason::Finished));
            }
            self.known = false;
        }
    }

    pub(super) fn poll_indication(&mut self) -> Option<StreamIndication> {
        // Room is reported before data and their end, so that the user can answer them at once.
        let told_connected = self.up.front() != Some(&StreamIndication::Connected);
        let room = if told_connected { self.room_to_tell() } else { None };
        room.or_else(|| self.up.pop_front())
    }

    /// Returns the room for writes if the user needs an update.
    fn room_to_tell(&mut self) -> Option<StreamIndication> {
        let open = matches!(self.state, State::Established | State::CloseWait) && !self.fin_wanted;
        if !open {
            return None;
        }
        let free = u64::from(self.profile.send_buffer_bytes).saturating_sub(self.buffer.length());
        let worth_telling =
            self.room_told == 0 || self.buffer.length() == 0 || free >= self.room_told + self.segment;
        if free > self.room_told && worth_telling {
            self.room_told = free;
            return Some(StreamIndication::Room(free));
        }
        None
    }

    // -- Time -------------------------------------------------------------------------------------------------

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if self.timers.expire(Timer::TimeWait as usize, now) {
            self.state = State::Closed;
        }
        if self.timers.expire(Timer::Retransmit as usize, now) {
            self.retransmission_timeout(now);
        }
        if self.timers.expire(Timer::Reordering as usize, now) {
            self.reordering_timeout(now);
        }
        if self.timers.expire(Timer::TailProbe as usize, now) {
            self.probe_timeout(now);
        }
        if self.timers.expire(Timer::DelayedAck as usize, now) {
            self.owed.acknowledgement = true;
            self.delayed_ack_expired();
        }
        if self.timers.expire(Timer::Persist as usize, now) {
            self.persist_timeout();
        }
        if self.timers.expire(Timer::KeepAlive as usize, now) {
            self.keep_alive_timeout(now);
        }
        if self.timers.expire(Timer::Patience as usize, now) {
            self.patience_expired();
        }
        self.review(now);
    }

    fn retransmission_timeout(&mut self, now: Instant) {
        self.counters.timeouts += 1;
        self.timeouts += 1;
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        if self.timeouts == 1 {
            self.first_timeout = now;
        }
        if opening && self.timeouts > self.profile.syn_retries || !opening && self.is_hopeless(now) {
            self.finish(CloseReason::TimedOut);
            return;
        }
        self.rtt.back_off();
        if opening {
            self.owed.syn = true;
            return;
        }
        self.timers.set(Timer::Patience as usize, (now + self.patience()).max(self.rtt.deadline(now)));
        let new = self.congestion.phase == Phase::Open;
        let ns3 = self.is_as_in_ns3();
        let in_flight = if ns3 { self.pipe() } else { self.flight() };
        self.scoreboard.lose_late(now);
        self.arrived_unknown = 0;
        let first = ns3 || self.timeouts == 1;
        self.congestion.time_out(self.next, in_flight, self.scoreboard.pipe(), first);
        self.duplicates = 0;
        self.recovered = self.next;
        self.probe.reset();
        self.begin_episode();
        self.examine_timeout(new);
        self.repeat_first = false;
        if self.timeouts == 1 {
            self.repeated_at = None;
        }
    }

    /// Returns true if all retries are used up (RFC 9293 3.8.3, R2).
    fn is_hopeless(&self, now: Instant) -> bool {
        if !self.profile.retries_as_time {
            return self.timeouts > self.profile.retries;
        }
        now.saturating_since(self.first_timeout) >= self.patience()
    }

    /// Time that all retries take, with doublings from the minimum timeout.
    fn patience(&self) -> Duration {
        let (minimum, maximum) = (self.profile.rto_minimum, self.profile.rto_maximum);
        let timeouts =
            (0..=self.profile.retries).map(|retry| minimum.saturating_mul(1 << retry.min(31)).min(maximum));
        timeouts.sum()
    }

    /// Ends the connection if a retransmission has waited for the interface for the time that all retries take: a kernel,
    /// which passes them to an interface without a carrier, has used them up.
    fn patience_expired(&mut self) {
        if self.timeouts > 0 && !self.has_transmit_timer() {
            self.finish(CloseReason::TimedOut);
        }
    }

    fn persist_timeout(&mut self) {
        if self.probes_unanswered > self.profile.retries {
            self.finish(CloseReason::TimedOut);
            return;
        }
        if self.peer.limit > self.next {
            self.small_forced = true;
        } else {
            self.owed.probe = true;
            self.probes += 1;
            self.probes_unanswered += 1;
        }
    }

    fn keep_alive_timeout(&mut self, now: Instant) {
        let Some(idle) = self.profile.keep_alive_idle else {
            return;
        };
        let due = self.last_heard + idle;
        if due > now || self.flight() > 0 {
            self.keep_alives = 0;
            self.timers.set(Timer::KeepAlive as usize, due.max(now + self.profile.keep_alive_interval));
            return;
        }
        if self.keep_alives >= self.profile.keep_alive_probes {
            self.abort(CloseReason::TimedOut);
            return;
        }
        self.keep_alives += 1;
        self.owed.probe = true;
        self.timers.set(Timer::KeepAlive as usize, now + self.profile.keep_alive_interval);
    }

    pub(super) fn start_keep_alive(&mut self, now: Instant) {
        if let Some(idle) = self.profile.keep_alive_idle {
            self.timers.set(Timer::KeepAlive as usize, now + idle);
        }
    }

    /// Updates the timers after a change: the persist timer runs while data wait and only the peer's window prevents
    /// sending (RFC 9293 3.8.6.1).
    pub(super) fn review(&mut self, now: Instant) {
        let may_send = matches!(self.state, State::Established | State::CloseWait);
        let waits = may_send && self.flight() == 0 && self.has_unsent() && self.next_new().is_none();
        if !waits {
            self.timers.stop(Timer::Persist as usize);
            self.probes = 0;
        } else if self.timers.get(Timer::Persist as usize).is_none() && !self.owed.probe {
            let wait = self.rtt.timeout_backed_off(self.probes);
            self.timers.set(Timer::Persist as usize, now + wait);
        }
    }

    // -- Queries --------------------------------------------------------------------------------------------------

    /// Returns the number of offsets sent and not acknowledged.
    pub(super) fn flight(&self) -> u64 {
        self.next - self.unacknowledged
    }

    /// Returns true if losses are recovered as in ns-3.
    pub(super) fn is_as_in_ns3(&self) -> bool {
        self.profile.recovery == Recovery::NewRenoNs3 && !self.peer.sack
    }

    /// Returns the estimated number of bytes in the network.
    pub(super) fn pipe(&self) -> u64 {
        self.scoreboard.pipe().saturating_sub(self.arrived_unknown)
    }

    /// Returns true if written data, or their end, have not been sent yet.
    pub(super) fn has_unsent(&self) -> bool {
        self.next < self.buffer.end() || self.fin_wanted && !self.fin_sent
    }

    /// Returns true if nothing is left to send or to indicate.
    pub(super) fn is_finished(&self) -> bool {
        self.state == State::Closed && self.owed.reset.is_none() && self.up.is_empty()
    }
}

/// Returns the receive buffer size, limited to the largest window that can be announced.
fn receive_buffer(profile: &Profile) -> u32 {
    let most = if profile.window_scaling { u32::from(u16::MAX) << 14 } else { u32::from(u16::MAX) };
    profile.receive_buffer_bytes.min(most)
}
