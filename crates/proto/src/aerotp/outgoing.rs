//! A connection at its sender: set-up, data, and end.

use super::block_sender::{BlockSender, Limits};
use super::buffer::Buffer;
use super::config::Config;
use super::model;
use super::round_trip::{RoundTrip, micros, timestamp};
use super::segments::Segments;
use super::wire::{Flags, Header, Kind};
use crate::fec::VandermondeCode;
use crate::service::{ConnectionProperties, TransportService};
use crate::time::{Duration, Instant};
use bytes::Bytes;

/// Number of packets that state the end of a connection to a receiver that does not answer.
const END_COPIES: u32 = 2;
/// Number of packets that state the end of a connection to a receiver that should answer, before it is taken for known.
const END_ATTEMPTS: u32 = 8;
/// Number of questions, after the wait of the receiver, whether its user has accepted a connection with negative acknowledgements.
const LAST_QUESTIONS: u32 = 3;
/// Number of segments of data that a connection may have beside those in segments.
const AHEAD_SEGMENTS: u64 = 64;
/// Delay of an ASYN without data, so that data can go with it.
const SETUP_DELAY: Duration = Duration::from_millis(5);
/// Number of low bits of the sequence number that are zero at the beginning of a connection.
pub(super) const FIRST_BITS: u32 = 20;

/// State of a connection, by the names of the paper. Without a connection it is CLOSED.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    AsynSent,
    Established,
    AfinSent,
}

/// Error control of a connection.
#[derive(Debug)]
pub(super) enum Control {
    Segments(Segments),
    Blocks(BlockSender),
}

/// Lengths and rates of the segments to a peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Path {
    /// Maximum length of a packet, bytes.
    pub(super) packet_bytes: u64,
    /// Bit-error rate that the receiver has stated.
    pub(super) bit_error_rate: f64,
    /// Payload and code for it.
    pub(super) choice: model::Choice,
    /// Probability that a segment with this choice is lost.
    pub(super) loss: f64,
}

impl Path {
    pub(super) fn new(config: &Config, packet_bytes: u64, bit_error_rate: f64) -> Path {
        let best = model::best(bit_error_rate, config.overhead_bytes, packet_bytes);
        // All strengths up to a moderate one fit into a packet, so that segments made for a better channel can be repaired on a worse
        // one.
        let reserve = best.strength.max(RESERVED_STRENGTH);
        let longest = super::wire::payload_bytes_max(packet_bytes, reserve, false) as usize;
        let payload_bytes = best.payload_bytes.min(longest).max(1 + super::wire::PARITY_PREFIX_BYTES);
        let headers = config.overhead_bytes as f64 + super::wire::HEADER_BYTES as f64;
        let arrives = (1.0 - model::segment_error_probability(bit_error_rate, headers))
            * (1.0 - model::payload_failure_probability(bit_error_rate, payload_bytes, best.strength));
        Path {
            packet_bytes,
            bit_error_rate,
            choice: model::Choice { payload_bytes, ..best },
            loss: 1.0 - arrives,
        }
    }

    /// Longest source symbol, bytes.
    pub(super) fn symbol_bytes(&self) -> usize {
        self.choice.payload_bytes - super::wire::PARITY_PREFIX_BYTES
    }
}

/// Strength for which there is room in every segment of the service `adaptive`.
const RESERVED_STRENGTH: u8 = 4;

/// Packet to send.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) index: u64,
    pub(super) flags: Flags,
    pub(super) payload: Bytes,
    pub(super) kind: DepartureKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DepartureKind {
    New,
    Again,
    Parity,
    /// Set-up, end, or request for an answer, without data.
    Control,
}

#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) properties: ConnectionProperties,
    /// First sequence number.
    pub(super) first: u32,
    pub(super) state: State,
    pub(super) buffer: Buffer,
    pub(super) control: Control,
    pub(super) trip: RoundTrip,
    /// The last segment has left with the mark of the end.
    end_was_marked: bool,
    /// A packet without data is to be sent.
    signal_due: bool,
    /// Time of the next packet without data.
    signal_at: Option<Instant>,
    /// Number of them since the last progress.
    signals: u32,
    /// The receiver knows the end.
    end_is_known: bool,
    /// Time at which the segments are forgotten (CLOSE TO).
    close_at: Option<Instant>,
    /// Number of questions that are left before the connection counts as sent without an answer.
    last_questions: u32,
    /// Time at which the receiver has been silent for too long; `None` while nothing is awaited of it.
    inactive_at: Option<Instant>,
    /// Copy of the deadline, kept for the set of all deadlines.
    pub(super) deadline: Option<Instant>,
    /// Copy of its place in the order of the connections that have something to send.
    pub(super) listed: Option<(u8, bool, u64)>,
    /// Number of its last turn.
    pub(super) turn: u64,
    /// Room that the user was told.
    pub(super) told: u64,
    pub(super) told_accepted: u64,
}

impl Outgoing {
    pub(super) fn new(
        now: Instant,
        properties: ConnectionProperties,
        first: u32,
        config: &Config,
        code: &VandermondeCode,
    ) -> Self {
        let control = match properties.service {
            TransportService::Adaptive => {
                Control::Blocks(BlockSender::new(code.clone(), config.incoming_bytes_max, None))
            }
            TransportService::QuasiReliable if config.parity_segments > 0 => {
                Control::Blocks(BlockSender::new(code.clone(), u64::MAX, Some(config.parity_segments)))
            }
            service => Control::Segments(Segments::new(service)),
        };
        // Without answers there is nothing to set up.
        let has_setup = properties.service.acknowledges() || properties.service.has_nacks();
        Outgoing {
            properties,
            first,
            state: State::AsynSent,
            buffer: Buffer::default(),
            control,
            trip: RoundTrip::default(),
            end_was_marked: false,
            signal_due: false,
            signal_at: has_setup.then_some(now + SETUP_DELAY),
            signals: 0,
            end_is_known: false,
            close_at: None,
            last_questions: LAST_QUESTIONS,
            inactive_at: Some(now + config.silence_limit),
            deadline: None,
            listed: None,
            turn: 0,
            told: 0,
            told_accepted: 0,
        }
    }

    fn service(&self) -> TransportService {
        self.properties.service
    }

    /// Returns true if its sequence numbers are those of symbols in blocks.
    fn is_in_blocks(&self) -> bool {
        matches!(self.control, Control::Blocks(_))
    }

    /// Returns true if the receiver answers.
    fn is_answered(&self) -> bool {
        self.service().acknowledges() || self.service().has_nacks()
    }

    /// Returns the index of a sequence number near those in use.
    pub(super) fn index_of(&self, sequence: u32) -> Option<u64> {
        near(self.next(), self.first, sequence)
    }

    /// Returns the sequence number of an index.
    fn sequence_of(&self, index: u64) -> u32 {
        self.first.wrapping_add(index as u32)
    }

    /// Header of a packet without payload, flags or code.
    pub(super) fn header(&self, now: Instant, kind: Kind, index: u64) -> Header {
        let ConnectionProperties { service, precedence, source_port, destination_port } = self.properties;
        Header {
            source_port,
            destination_port,
            kind,
            service,
            precedence,
            header_in_code: false,
            in_blocks: self.is_in_blocks(),
            strength: 0,
            flags: Flags::NONE,
            sequence: self.sequence_of(index),
            timestamp: timestamp(now),
            length: 0,
        }
    }

    pub(super) fn next(&self) -> u64 {
        match &self.control {
            Control::Segments(segments) => segments.next(),
            Control::Blocks(blocks) => blocks.next(),
        }
    }

    /// Bytes that the user has given, and that were not sent.
    pub(super) fn unsent_bytes(&self) -> u64 {
        self.buffer.len()
    }

    /// Bytes in memory.
    pub(super) fn held_bytes(&self) -> u64 {
        self.buffer.len()
            + match &self.control {
                Control::Segments(segments) => segments.kept_bytes(),
                Control::Blocks(blocks) => blocks.kept_bytes(),
            }
    }

    pub(super) fn accepted_bytes(&self) -> u64 {
        match &self.control {
            Control::Segments(segments) => segments.accepted_bytes(),
            Control::Blocks(blocks) => blocks.accepted_bytes(),
        }
    }

    /// Room for the user, if `left` bytes of memory are free.
    pub(super) fn room(&self, left: u64, payload_bytes: u64) -> u64 {
        let ahead = (AHEAD_SEGMENTS * payload_bytes).saturating_sub(self.buffer.len()).min(left);
        // Small pieces would only cost processing time.
        if self.buffer.is_ended || ahead < payload_bytes { 0 } else { ahead }
    }

    fn has_room(&self, config: &Config) -> bool {
        let window = u64::from(config.window_segments);
        match &self.control {
            Control::Segments(segments) => segments.has_room(window, &self.buffer),
            Control::Blocks(blocks) => blocks.has_room(window, &self.buffer),
        }
    }

    fn has_again(&self) -> bool {
        match &self.control {
            Control::Segments(segments) => segments.has_again(),
            Control::Blocks(blocks) => blocks.has_again(),
        }
    }

    /// Returns true if all data were sent once.
    fn is_sent(&self) -> bool {
        self.buffer.is_ended && self.buffer.is_empty()
    }

    /// Returns true if all data were sent, and this is the last number of them.
    pub(super) fn ends_at(&self, index: u64) -> bool {
        self.is_sent() && index == self.next().saturating_sub(1)
    }

    fn is_settled(&self) -> bool {
        match &self.control {
            Control::Segments(segments) => segments.is_settled(),
            Control::Blocks(blocks) => blocks.is_settled(),
        }
    }

    fn is_accepted(&self) -> bool {
        match &self.control {
            Control::Segments(segments) => segments.is_accepted(),
            Control::Blocks(blocks) => blocks.is_accepted(),
        }
    }

    /// Returns whether it has something to send, and whether that was sent before.
    pub(super) fn wants(&self, config: &Config) -> Option<bool> {
        let is_again = self.has_again();
        (is_again || self.signal_due || self.has_room(config)).then_some(is_again)
    }

    /// Makes the next packet.
    pub(super) fn leave(&mut self, now: Instant, config: &Config, path: &Path) -> Option<Departure> {
        let window = u64::from(config.window_segments);
        let service = self.service();
        let is_whole = self.is_sent() && (self.next() > 0 || self.end_was_marked);
        let departure = match &mut self.control {
            Control::Segments(segments) => {
                let payload_bytes = config.payload_bytes(service, path.packet_bytes) as usize;
                segments.leave(&mut self.buffer, payload_bytes, window).map(|leaving| Departure {
                    index: leaving.index,
                    flags: Flags::NONE.with_if(leaving.is_last, Flags::AFIN),
                    payload: leaving.payload,
                    kind: if leaving.is_again { DepartureKind::Again } else { DepartureKind::New },
                })
            }
            Control::Blocks(blocks) => {
                let packet_s =
                    (path.packet_bytes + config.overhead_bytes) as f64 * 8.0 / config.rate_bps.max(1) as f64;
                let limits = Limits {
                    symbol_bytes: match service {
                        TransportService::Adaptive => path.symbol_bytes(),
                        _ => config.symbol_bytes(service, path.packet_bytes),
                    },
                    block_segments: config.block_segments,
                    window_segments: window,
                    segment_time: Duration::from_secs_f64(if config.rate_bps == 0 { 0.0 } else { packet_s }),
                    round_trip: self.trip.timeout(config),
                    loss: path.loss,
                };
                blocks.leave(micros(now), &mut self.buffer, &limits).map(|symbol| Departure {
                    index: symbol.index,
                    flags: Flags::NONE
                        .with_if(symbol.is_last, Flags::AFIN)
                        .with_if(symbol.ends_block, Flags::BLOCK_END)
                        .with_if(symbol.is_parity, Flags::PARITY_OR_UP_TO)
                        .with_if(symbol.asks, Flags::ASK_OR_NO_NUMBER),
                    payload: symbol.payload,
                    kind: match (symbol.is_parity, symbol.is_again) {
                        (true, _) => DepartureKind::Parity,
                        (false, true) => DepartureKind::Again,
                        (false, false) => DepartureKind::New,
                    },
                })
            }
        };
        let departure = match departure {
            Some(departure) => departure,
            None if core::mem::take(&mut self.signal_due) => {
                self.signals += 1;
                let flags = Flags::NONE.with_if(self.is_sent(), Flags::AFIN).with(Flags::ASK_OR_NO_NUMBER);
                Departure { index: self.next(), flags, payload: Bytes::new(), kind: DepartureKind::Control }
            }
            None => return None,
        };
        self.end_was_marked |= departure.flags.has(Flags::AFIN);
        self.signal_at = None;
        self.plan(now, config);
        let is_new = self.state == State::AsynSent;
        let is_early = departure.index < 1 << FIRST_BITS && service != TransportService::UnreliableDatagram;
        let flags = departure.flags.with_if(is_new && is_early, Flags::ASYN).with_if(is_whole, Flags::WHOLE);
        if self.is_sent() && self.state == State::Established {
            self.state = State::AfinSent;
        }
        Some(Departure { flags, ..departure })
    }

    /// Plans the next packet without data: for the end that no segment has stated, and for answers that do not come. Limits the
    /// wait for an answer.
    pub(super) fn plan(&mut self, now: Instant, config: &Config) {
        self.plan_signal(now, config);
        let is_waiting = self.is_answered() && (!self.is_settled() || self.signal_at.is_some());
        let at = self.inactive_at.unwrap_or(now + config.silence_limit);
        self.inactive_at = is_waiting.then_some(at);
    }

    fn plan_signal(&mut self, now: Instant, config: &Config) {
        let service = self.service();
        if service == TransportService::UnreliableDatagram {
            return;
        }
        if !self.is_answered() {
            self.signal_due = self.is_sent() && !self.has_again() && self.signals < END_COPIES;
            return;
        }
        if self.is_sent() && !self.end_was_marked && !self.has_again() {
            self.signal_due = true;
        } else if self.signal_at.is_none() && self.awaits_answer(config) {
            let timeout = self.trip.timeout(config).saturating_mul(1 << self.signals.min(10));
            self.signal_at = Some(now + timeout.min(config.rto_max));
        }
    }

    /// Returns true if nothing is under way and an answer is outstanding: for the set-up, for the end, or for more room.
    fn awaits_answer(&self, config: &Config) -> bool {
        let is_idle = !self.has_again() && !self.has_room(config);
        match self.service() {
            TransportService::Nack => {
                is_idle && self.is_sent() && !self.end_is_known && self.signals < END_ATTEMPTS
            }
            _ => {
                let is_settled = self.is_settled();
                let wants_end = self.is_sent() && !self.end_is_known;
                is_idle && is_settled && (wants_end || !self.is_accepted() || self.state == State::AsynSent)
            }
        }
    }

    /// A packet has left this side.
    pub(super) fn left(&mut self, now: Instant, index: Option<u64>, config: &Config) {
        let acknowledges = self.service().acknowledges();
        let timeout = if acknowledges { self.trip.timeout(config) } else { config.close_timeout };
        match (&mut self.control, index) {
            (Control::Segments(segments), Some(index)) => segments.left(now, index, timeout),
            (Control::Blocks(blocks), Some(_)) => blocks.left(now, timeout),
            (_, None) => {}
        }
        self.plan(now, config);
    }

    /// The receiver has answered.
    pub(super) fn answered(&mut self, now: Instant, flags: Flags, is_new: bool, config: &Config) {
        self.inactive_at = None;
        if self.trip.take_silence_ended() && self.service().acknowledges() {
            let timeout = self.trip.timeout(config);
            match &mut self.control {
                Control::Segments(segments) => segments.restart(now, timeout),
                Control::Blocks(blocks) => blocks.restart(now, timeout),
            }
            self.signals = 0;
            self.signal_at = None;
        }
        if flags.has(Flags::ASYNACK) && self.state == State::AsynSent {
            self.state = if self.is_sent() { State::AfinSent } else { State::Established };
        }
        if is_new {
            self.signals = 0;
            self.signal_at = None;
        }
        if flags.has(Flags::AFINACK) {
            self.end_is_known = true;
            self.signal_at = None;
            self.signal_due = false;
            if self.service().has_nacks() && !self.service().acknowledges() {
                // At first only the end is known, and then what will have arrived is accepted.
                let is_over = flags.has(Flags::PARITY_OR_UP_TO);
                self.close_at = Some(if is_over { now } else { now + config.closing_wait() });
                self.last_questions = if is_over { 0 } else { self.last_questions };
            }
        }
        self.plan(now, config);
    }

    /// A negative acknowledgement keeps the segments for longer.
    pub(super) fn refused(&mut self, now: Instant, config: &Config) {
        self.close_at = self.close_at.map(|_| now + config.closing_wait());
    }

    /// Returns true if it was sent to its end.
    pub(super) fn is_over(&self) -> bool {
        if !self.is_sent() || self.has_again() {
            return false;
        }
        match self.service() {
            TransportService::UnreliableDatagram => true,
            service if service.acknowledges() => self.end_is_known,
            TransportService::Nack => false,
            _ => self.signals >= END_COPIES,
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let control = match &self.control {
            Control::Segments(segments) => segments.deadline(),
            Control::Blocks(blocks) => blocks.deadline(),
        };
        [control, self.signal_at, self.close_at, self.inactive_at].into_iter().flatten().min()
    }

    /// Handles the timers that have expired.
    pub(super) fn expire(&mut self, now: Instant, config: &Config) -> Expiry {
        let passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if passed(self.close_at) {
            let Some(left) = self.last_questions.checked_sub(1) else { return Expiry::Over };
            self.last_questions = left;
            self.close_at = Some(now + self.trip.timeout(config));
            self.signal_due = true;
            return Expiry::Timeouts(0);
        }
        if passed(self.inactive_at) {
            return if self.service() == TransportService::Nack { Expiry::Over } else { Expiry::Silent };
        }
        let mut timeouts = match &mut self.control {
            Control::Segments(segments) => segments.expire(now),
            Control::Blocks(blocks) => u64::from(blocks.expire(now)),
        };
        if passed(self.signal_at) {
            self.signal_at = None;
            self.signal_due = true;
            timeouts += 1;
            let is_last = self.service() == TransportService::Nack && self.signals + 1 >= END_ATTEMPTS;
            if is_last && self.is_sent() {
                self.close_at = Some(now + config.closing_wait());
            }
        }
        if timeouts > 0 {
            self.trip.fail(now, config);
        }
        self.plan(now, config);
        Expiry::Timeouts(timeouts)
    }

    /// Continues after an interruption of the link.
    pub(super) fn resume(&mut self, now: Instant, config: &Config) {
        self.inactive_at = None;
        self.close_at = self.close_at.map(|_| now + config.closing_wait());
        self.trip.answered();
        let timeout =
            if self.service().acknowledges() { self.trip.timeout(config) } else { config.close_timeout };
        match &mut self.control {
            Control::Segments(segments) => segments.restart(now, timeout),
            Control::Blocks(blocks) => blocks.restart(now, timeout),
        }
        self.signals = 0;
        self.signal_at = self.signal_at.map(|_| now + self.trip.timeout(config));
        self.plan(now, config);
    }
}

/// Result of the timers of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry {
    /// Segments count as lost.
    Timeouts(u64),
    /// The time for retransmissions has passed.
    Over,
    /// The receiver was silent for too long.
    Silent,
}

/// Returns the index of a sequence number, the nearest one to `reference`; `None` below zero.
pub(super) fn near(reference: u64, first: u32, sequence: u32) -> Option<u64> {
    let difference = sequence.wrapping_sub(first.wrapping_add(reference as u32)) as i32;
    reference.checked_add_signed(difference.into())
}
