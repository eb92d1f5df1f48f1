//! A connection at its receiver: deliveries, acceptance, and the answers that it owes.

use super::assembly::{Arrival, Assembly, Delivery, SEGMENT_COST};
use super::block_receiver::BlockReceiver;
use super::block_sender::BLOCK_NUMBERS;
use super::closed::Closed;
use super::config::Config;
use super::outgoing::near;
use super::wire::{Flags, Header};
use crate::fec::VandermondeCode;
use crate::service::{ConnectionProperties, PeerId, RefuseReason, TransportService};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};

/// Limit of the difference between the index of a segment and that of the next one to deliver.
const WINDOW: u64 = 65_536;
/// Limit of the difference for blocks, whose symbols have 256 numbers each.
const BLOCK_WINDOW: u64 = 1 << 20;
/// Maximum number of acknowledgements that wait.
const UNLISTED_MAX: usize = 65_536;
/// Maximum number of segments beyond the accepted ones that an acknowledgement lists again.
const REPEATED_MAX: usize = 16;

/// Peer and ports: its source port, and its destination port.
pub(super) type Flow = (PeerId, u16, u16);

/// Order of the segments.
#[derive(Debug)]
pub(super) enum Order {
    Segments(Assembly),
    Blocks(BlockReceiver),
    /// Single messages.
    None,
}

/// Acknowledgements to send: the sequence number of the header, those after it, and flags.
#[derive(Debug)]
pub(super) struct Acknowledgements {
    pub(super) first: Option<u64>,
    pub(super) others: Vec<u64>,
    pub(super) flags: Flags,
}

#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) flow: Flow,
    pub(super) first: u32,
    pub(super) properties: ConnectionProperties,
    pub(super) order: Order,
    /// Bytes that the user has had.
    delivered_bytes: u64,
    accepted_bytes: u64,
    /// Index of the first segment that is not accepted.
    pub(super) accepted: u64,
    /// Ends of the delivered segments that are not accepted, with the index after each.
    ends: VecDeque<(u64, u64)>,
    /// The user has had the end.
    pub(super) end_was_told: bool,
    /// Segments to acknowledge, in the order of their arrival.
    unlisted: VecDeque<u64>,
    listed: BTreeSet<u64>,
    /// Segments that have arrived since the last acknowledgement, those that had arrived before included.
    arrivals: u32,
    /// The user has accepted more than the last answer stated.
    acceptance_is_new: bool,
    /// Timestamp for the next answer.
    pub(super) echo: Option<u32>,
    /// Time at which an answer is due.
    answer_at: Option<Instant>,
    pub(super) answer_due: bool,
    end_due: bool,
    /// Latest time of departure of a packet, as it states it.
    pub(super) stamp: u32,
    inactive_at: Option<Instant>,
    /// Time at which what is missing is given up (LISTEN TO).
    listen_at: Option<Instant>,
    pub(super) deadline: Option<Instant>,
}

impl Incoming {
    pub(super) fn new(
        now: Instant,
        flow: Flow,
        first: u32,
        header: &Header,
        config: &Config,
        code: &VandermondeCode,
    ) -> Self {
        let properties = ConnectionProperties {
            service: header.service,
            precedence: header.precedence,
            source_port: header.source_port,
            destination_port: header.destination_port,
        };
        let order = match properties.service {
            TransportService::Adaptive => Order::Blocks(BlockReceiver::new(code.clone(), false)),
            TransportService::QuasiReliable if header.in_blocks => {
                Order::Blocks(BlockReceiver::new(code.clone(), true))
            }
            TransportService::UnreliableDatagram => Order::None,
            service => Order::Segments(Assembly::new(service, config.deliver_damaged)),
        };
        Incoming {
            flow,
            first,
            properties,
            order,
            delivered_bytes: 0,
            accepted_bytes: 0,
            accepted: 0,
            ends: VecDeque::new(),
            end_was_told: false,
            unlisted: VecDeque::new(),
            listed: BTreeSet::new(),
            arrivals: 0,
            acceptance_is_new: false,
            echo: None,
            answer_at: None,
            answer_due: false,
            end_due: false,
            stamp: header.timestamp,
            inactive_at: Some(now + config.silence_limit),
            listen_at: None,
            deadline: None,
        }
    }

    fn service(&self) -> TransportService {
        self.properties.service
    }

    pub(super) fn next(&self) -> u64 {
        match &self.order {
            Order::Segments(assembly) => assembly.next(),
            Order::Blocks(blocks) => blocks.next(),
            Order::None => 0,
        }
    }

    /// Returns true if the next data for the user are those of this segment or of its block.
    pub(super) fn awaits(&self, index: u64) -> bool {
        match &self.order {
            Order::Segments(assembly) => index == assembly.next(),
            Order::Blocks(blocks) => index / BLOCK_NUMBERS == blocks.next() / BLOCK_NUMBERS,
            Order::None => true,
        }
    }

    /// Returns the index of a sequence number, if it is one of this connection.
    pub(super) fn index_of(&self, sequence: u32) -> Option<u64> {
        let (next, window) = match &self.order {
            Order::None => return Some(0),
            Order::Segments(_) => (self.next(), WINDOW),
            Order::Blocks(_) => (self.next(), BLOCK_WINDOW - 1),
        };
        near(next, self.first, sequence).filter(|index| *index < next + window && index + window > next)
    }

    /// Returns true if it has not heard of a sequence number yet.
    pub(super) fn is_behind(&self, sequence: u32) -> bool {
        near(self.next(), self.first, sequence).is_some_and(|index| index >= self.next())
    }

    pub(super) fn sequence_of(&self, index: u64) -> u32 {
        self.first.wrapping_add(index as u32)
    }

    /// Bytes in memory: those that wait for others, and those that the user has not accepted.
    pub(super) fn held_bytes(&self) -> u64 {
        let waiting = match &self.order {
            Order::Segments(assembly) => assembly.held_bytes(),
            Order::Blocks(blocks) => blocks.held_bytes(),
            Order::None => 0,
        };
        waiting + self.unaccepted_bytes() + SEGMENT_COST * self.ends.len() as u64
    }

    /// Bytes that the user has had and has not accepted.
    pub(super) fn unaccepted_bytes(&self) -> u64 {
        self.delivered_bytes - self.accepted_bytes
    }

    pub(super) fn is_complete(&self) -> bool {
        match &self.order {
            Order::Segments(assembly) => assembly.is_complete(),
            Order::Blocks(blocks) => blocks.is_complete(),
            Order::None => false,
        }
    }

    /// Index of the last segment, once it is known.
    pub(super) fn last(&self) -> Option<u64> {
        match &self.order {
            Order::Segments(assembly) => assembly.end().map(|end| end.saturating_sub(1)),
            Order::Blocks(_) | Order::None => None,
        }
    }

    /// Returns true if nothing is owed to the sender or the user any more. A user that has not accepted all may refuse, which a sender
    /// that hears answers is told.
    pub(super) fn is_over(&self) -> bool {
        let is_answered = self.service().acknowledges() || self.service().has_nacks();
        self.end_was_told && (!is_answered || self.accepted == self.next())
    }

    /// Returns the part of it that is remembered after its end.
    pub(super) fn closed(&self, refused: Option<RefuseReason>) -> Closed {
        Closed { first: self.first, numbers: self.next(), stamp: self.stamp, refused }
    }

    /// Something new has come from the sender.
    pub(super) fn heard(&mut self, now: Instant, stamp: u32, config: &Config) {
        if stamp.wrapping_sub(self.stamp) as i32 > 0 {
            self.stamp = stamp;
        }
        self.inactive_at = Some(now + config.silence_limit);
    }

    /// Returns the next delivery.
    pub(super) fn deliver(&mut self) -> Option<Delivery> {
        let delivery = match &mut self.order {
            Order::Segments(assembly) => assembly.deliver()?,
            Order::Blocks(blocks) => match blocks.deliver() {
                Some(delivery) => delivery,
                None => {
                    // A block may have ended after its last symbol was delivered.
                    let next = blocks.next();
                    match self.ends.back_mut() {
                        Some((_, index)) => *index = next,
                        None => self.accepted = next,
                    }
                    return None;
                }
            },
            Order::None => return None,
        };
        if let Delivery::Data { data, .. } = &delivery {
            self.delivered_bytes += data.len() as u64;
        }
        let next = self.next();
        match self.ends.back_mut() {
            // A gap has no bytes to accept.
            Some((end, index)) if *end == self.delivered_bytes => *index = next,
            _ => self.ends.push_back((self.delivered_bytes, next)),
        }
        Some(delivery)
    }

    /// A message was passed to the user.
    pub(super) fn delivered_message(&mut self, bytes: usize) {
        self.delivered_bytes += bytes as u64;
        self.ends.push_back((self.delivered_bytes, 0));
    }

    /// The user has accepted so many bytes.
    ///
    /// # Panics
    /// Panics if the user has not had them.
    pub(super) fn accept(&mut self, now: Instant, up_to: u64, config: &Config) {
        assert!(up_to <= self.delivered_bytes, "accepted {up_to} of {} bytes", self.delivered_bytes);
        self.accepted_bytes = self.accepted_bytes.max(up_to);
        let before = self.accepted;
        while let Some((_, index)) = self.ends.front().filter(|(end, _)| *end <= self.accepted_bytes) {
            self.accepted = *index;
            self.ends.pop_front();
        }
        if self.service().acknowledges() && self.accepted > before {
            self.acceptance_is_new = true;
            if self.is_over() {
                self.answer_due = true;
            } else if self.unlisted.is_empty() || matches!(self.order, Order::Blocks(_)) {
                self.plan_answer(now, config);
            }
        }
    }

    /// The user has had the end without data, and accepts it with the bytes before.
    pub(super) fn accept_end(&mut self) {
        if self.accepted_bytes == self.delivered_bytes {
            self.accepted = self.next();
            self.ends.clear();
        }
    }

    /// A segment has arrived and is to be acknowledged.
    pub(super) fn acknowledge(&mut self, now: Instant, index: u64, stamp: u32, asks: bool, config: &Config) {
        if matches!(self.order, Order::Blocks(_)) {
            // The latest departure: all before it that have not arrived are lost.
            let is_later = self.echo.is_none_or(|echo| stamp.wrapping_sub(echo) as i32 >= 0);
            self.echo = if is_later { Some(stamp) } else { self.echo };
            self.answer_due |= asks;
            return self.plan_answer(now, config);
        }
        if self.unlisted.len() < UNLISTED_MAX && self.listed.insert(index) {
            self.unlisted.push_back(index);
        }
        // The oldest departure: the round trip includes the time for which acknowledgements are collected.
        self.echo = self.echo.or(Some(stamp));
        self.arrivals = self.arrivals.saturating_add(1);
        self.answer_due |= asks || self.arrivals >= config.acks_per_mack;
        self.plan_answer(now, config);
    }

    /// The sender waits for an answer of any kind.
    pub(super) fn ask(&mut self, stamp: u32) {
        self.echo = match (&self.order, self.echo) {
            (Order::Blocks(_), Some(echo)) if (stamp.wrapping_sub(echo) as i32) < 0 => Some(echo),
            (Order::Blocks(_), _) | (_, None) => Some(stamp),
            (_, echo) => echo,
        };
        self.answer_due = true;
    }

    /// The end of a connection without acknowledgements is to be acknowledged.
    pub(super) fn answer_end(&mut self) {
        self.end_due = true;
        self.answer_setup();
    }

    /// The set-up of a connection without acknowledgements is to be acknowledged.
    pub(super) fn answer_setup(&mut self) {
        self.echo = Some(self.stamp);
        self.answer_due = true;
    }

    pub(super) fn plan_answer(&mut self, now: Instant, config: &Config) {
        let waits = !self.answer_due && self.answer_at.is_none();
        if config.mack_interval.is_zero() {
            let is_idle = self.unlisted.is_empty() && self.acceptance_is_new;
            self.answer_due |= is_idle || matches!(self.order, Order::Blocks(_));
        } else if waits {
            self.answer_at = Some(now + config.mack_interval);
        }
    }

    /// Takes the answer that is due now, for connections without blocks.
    pub(super) fn take_acknowledgements(&mut self, most: usize, config: &Config) -> Acknowledgements {
        let end = core::mem::take(&mut self.end_due);
        let mut flags = Flags::ASYNACK.with_if(end, Flags::AFINACK);
        let limit = if config.cumulative { most } else { most.min(config.acks_per_mack as usize) };
        let states_acceptance = self.service().acknowledges()
            && self.accepted > 0
            && (config.cumulative || self.acceptance_is_new || self.unlisted.is_empty());
        let mut numbers = Vec::new();
        if config.cumulative {
            let accepted = self.accepted;
            self.unlisted.retain(|index| *index >= accepted);
        }
        let first = if states_acceptance {
            flags = flags.with(Flags::PARITY_OR_UP_TO);
            self.acceptance_is_new = false;
            let index = self.accepted - 1;
            self.unlisted.retain(|other| *other != index);
            Some(index)
        } else {
            self.unlisted.pop_front()
        };
        let room = limit.saturating_sub(1);
        let taken = self.unlisted.len().min(room);
        numbers.extend(self.unlisted.drain(..taken));
        if config.cumulative {
            // Those beyond the accepted ones once more, because an earlier packet may be lost.
            if let Order::Segments(assembly) = &self.order {
                let again = room.saturating_sub(numbers.len()).min(REPEATED_MAX);
                let held: Vec<u64> =
                    assembly.held().rev().filter(|index| !numbers.contains(index)).take(again).collect();
                numbers.extend(held);
            }
        }
        self.listed = self.unlisted.iter().copied().collect();
        flags = flags.with_if(first.is_none(), Flags::ASK_OR_NO_NUMBER);
        self.after_answer(config);
        Acknowledgements { first, others: numbers, flags }
    }

    fn after_answer(&mut self, config: &Config) {
        self.answer_at = None;
        self.arrivals = self.unlisted.len() as u32;
        self.answer_due = self.arrivals >= config.acks_per_mack;
        if self.unlisted.is_empty() && !matches!(self.order, Order::Blocks(_)) {
            self.echo = None;
        }
    }

    /// A report with the state of the blocks leaves now.
    pub(super) fn take_report(&mut self, config: &Config) -> Flags {
        self.acceptance_is_new = false;
        self.after_answer(config);
        Flags::ASYNACK
    }

    /// Plans the rest of acknowledgements that did not fit.
    pub(super) fn plan_rest(&mut self, now: Instant, config: &Config) {
        if !self.unlisted.is_empty() || self.acceptance_is_new {
            self.plan_answer(now, config);
        }
    }

    /// Negative acknowledgements wait to leave.
    pub(super) fn has_nacks(&self) -> bool {
        matches!(&self.order, Order::Segments(assembly) if assembly.nacks() > 0)
    }

    /// The end is known: what does not come any more is given up after a time.
    pub(super) fn end_is_known(&mut self, now: Instant, config: &Config) {
        if self.service() == TransportService::Nack && self.listen_at.is_none() && !self.is_complete() {
            self.listen_at = Some(now + config.listening_wait());
        }
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let asked = match &self.order {
            Order::Segments(assembly) => assembly.deadline(),
            Order::Blocks(_) | Order::None => None,
        };
        let inactive_at = self.inactive_at.filter(|_| !self.end_was_told);
        [asked, self.answer_at, inactive_at, self.listen_at].into_iter().flatten().min()
    }

    /// Handles the timers that have expired. Returns true if the sender was silent for too long.
    pub(super) fn expire(&mut self, now: Instant, config: &Config) -> bool {
        let passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if passed(self.answer_at) {
            self.answer_at = None;
            self.answer_due = true;
        }
        let gives_up = passed(self.listen_at);
        if gives_up {
            self.listen_at = None;
        }
        if let Order::Segments(assembly) = &mut self.order {
            assembly.expire(now, config);
            if gives_up {
                assembly.give_up();
            }
        }
        passed(self.inactive_at) && !self.end_was_told
    }

    /// Continues after an interruption of the link: the sender learns the present state.
    pub(super) fn resume(&mut self, now: Instant, config: &Config) {
        self.inactive_at = Some(now + config.silence_limit);
        self.listen_at = self.listen_at.map(|_| now + config.listening_wait());
        self.answer_at = None;
        self.answer_due |= self.service().acknowledges();
        if let Order::Segments(assembly) = &mut self.order {
            assembly.restart();
        }
    }

    /// Handles a segment whose header is intact.
    pub(super) fn arrived(
        &mut self,
        index: u64,
        payload: &Bytes,
        is_intact: bool,
        flags: Flags,
        room: u64,
    ) -> Arrival {
        match &mut self.order {
            Order::None => Arrival::New,
            Order::Segments(assembly) => {
                let arrival = assembly.arrived(index, payload, is_intact, room);
                if flags.has(Flags::AFIN) && arrival != Arrival::Dropped {
                    assembly.end_at(index + 1);
                }
                arrival
            }
            Order::Blocks(_) if !is_intact => Arrival::Damaged,
            Order::Blocks(blocks) => blocks.arrived(
                index,
                payload.clone(),
                flags.has(Flags::PARITY_OR_UP_TO),
                flags.has(Flags::BLOCK_END),
                flags.has(Flags::AFIN),
                room,
            ),
        }
    }
}
