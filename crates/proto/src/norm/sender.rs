//! Sender of objects (RFC 5740 5.1).

mod feedback;

use super::acknowledgements::Acknowledgements;
use super::config::{Config, Counters};
use super::grtt::Grtt;
use super::outgoing::Outgoing;
use super::partition::Partition;
use super::quantities;
use super::repair::{BlockKey, Repair, Repairs, Request};
use super::requests::{ObjectId, RequestList};
use super::wire::{
    Body, Command, CommandMessage, Data, Flags, Fti, Info, PayloadId, SenderFields, Timestamp,
    data_header_bytes,
};
use crate::fec::VandermondeCode;
use crate::rng::Rng;
use crate::service::{ObjectFailure, ObjectKind, ObjectsIndication, PeerId, Shares};
use crate::time::{Duration, Instant, Timers};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// Number of the first object. Lower ones stand for those before it, which receivers may request.
const FIRST_NUMBER: u64 = 1 << 16;
/// Number of segments that the user gives ahead.
const AHEAD_SEGMENTS: u64 = 64;
/// Length of the fields besides the segment that the advertised round-trip time covers, octets.
const MESSAGE_BYTES: u64 = 44;
/// Number of questions without an answer after which receivers are told which objects there are.
const QUESTIONS_PER_SQUELCH: u32 = 5;
/// Type of the acknowledgement that refuses an object, one of those for applications (ours).
pub(super) const ACK_REFUSED: u8 = 16;

#[derive(Clone, Copy)]
enum Timer {
    /// The repair requests of all receivers have arrived.
    Aggregate,
    /// The answers to FLUSH are late.
    Flush,
    /// Acknowledgements are requested while data are sent.
    Watermark,
    /// The next probe is due.
    Probe,
    /// Another SQUELCH may be sent.
    Squelch,
    /// Another REPAIR_ADV may be sent.
    Advertise,
    /// The oldest object is released for want of room.
    Release,
}

/// Messages that are due.
#[derive(Clone, Copy, Debug, Default)]
struct Due {
    flush: bool,
    watermark: bool,
    probe: bool,
    squelch: Option<u64>,
    advertise: bool,
}

/// Message that leaves.
#[derive(Debug)]
pub(super) struct Departure {
    pub(super) body: Body,
    /// Shares of the body, without what all messages have in common.
    pub(super) shares: Shares,
}

/// Sender of objects to one receiver or a group.
#[derive(Debug)]
pub(super) struct Sender {
    config: Config,
    instance: u16,
    is_group: bool,
    /// Configured receiver, if there is only one, and the address from which it answers.
    peer: Option<PeerId>,
    answers_from: Option<PeerId>,
    code: VandermondeCode,
    objects: BTreeMap<u64, Outgoing>,
    /// Length of all objects, bytes.
    bytes: u64,
    /// Number of each object of the user.
    numbers: BTreeMap<u64, u64>,
    next_number: u64,
    /// Object whose contents are not complete.
    filling: Option<u64>,
    /// First object that is not sent completely.
    cursor: u64,
    repairs: Repairs,
    /// Requests that wait for those of other receivers.
    aggregate: BTreeMap<BlockKey, Request>,
    grtt: Grtt,
    acknowledgements: Acknowledgements,
    cc_sequence: u16,
    probe_interval: Duration,
    timers: Timers<7>,
    due: Due,
    is_paused: bool,
    /// Objects have failed, which receivers do not know: they may have them.
    has_failed: bool,
    pub(super) up: VecDeque<ObjectsIndication>,
}

impl Sender {
    pub(super) fn new(config: Config, rng: &mut Rng) -> Self {
        let (sources, parity) = (config.block_symbols as u32, config.parity_symbols as u32);
        Sender {
            instance: rng.next_u32() as u16,
            is_group: false,
            peer: None,
            answers_from: None,
            code: VandermondeCode::new(sources, parity).expect("the settings are checked"),
            objects: BTreeMap::new(),
            bytes: 0,
            numbers: BTreeMap::new(),
            next_number: FIRST_NUMBER,
            filling: None,
            cursor: FIRST_NUMBER,
            repairs: Repairs::default(),
            aggregate: BTreeMap::new(),
            grtt: Grtt::new(config.grtt, config.grtt_max),
            acknowledgements: Acknowledgements::new(&config),
            cc_sequence: 0,
            probe_interval: config.probe_min,
            timers: Timers::new(),
            due: Due::default(),
            is_paused: true,
            has_failed: false,
            up: VecDeque::new(),
            config,
        }
    }

    /// Number of objects that are being sent or wait for acknowledgements.
    pub(super) fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Round-trip time that messages state.
    pub(super) fn advertised_grtt(&self) -> Duration {
        let packet = match self.config.rate_bps {
            0 => Duration::ZERO,
            rate => {
                let bits = (self.config.segment_bytes + MESSAGE_BYTES) * 8;
                Duration::from_nanos(bits * 1_000_000_000 / rate)
            }
        };
        quantities::time_of(quantities::time_code(self.grtt.estimate().max(packet)))
    }

    fn backoff_factor(&self) -> u8 {
        self.config.backoff_factor.unwrap_or(if self.is_group { 4 } else { 0 })
    }

    fn fields(&self) -> SenderFields {
        let receivers = self.config.group_size.unwrap_or(if self.is_group { 1_000 } else { 10 });
        SenderFields {
            instance: self.instance,
            grtt: quantities::time_code(self.grtt.estimate().max(self.advertised_grtt())),
            backoff: self.backoff_factor(),
            group_size: quantities::group_size_code(receivers),
        }
    }

    // -- Requests of the user -----------------------------------------------------------------------------------

    fn fail(&mut self, object: u64, reason: ObjectFailure) {
        self.has_failed = true;
        self.up.push_back(ObjectsIndication::Failed { object, reason });
    }

    /// Begins an object.
    pub(super) fn send(
        &mut self,
        now: Instant,
        object: u64,
        kind: ObjectKind,
        info: Option<Bytes>,
        length: u64,
    ) {
        let (segment, block) = (self.config.segment_bytes as u16, self.config.block_symbols as u16);
        let partition = Partition::new(length, segment, block);
        let fits = length <= self.config.object_bytes_max
            && info.as_ref().is_none_or(|info| info.len() <= usize::from(segment));
        let Some(partition) = partition.filter(|_| fits && kind != ObjectKind::Stream) else {
            self.fail(object, ObjectFailure::TooLong);
            return;
        };
        let fti = Fti {
            object_bytes: length,
            segment_bytes: segment,
            block_symbols: block,
            parity_symbols: self.config.parity_symbols as u16,
        };
        let auto = self.config.auto_parity as u16;
        let number = self.next_number;
        self.next_number += 1;
        self.objects.insert(number, Outgoing::new(object, kind, info, partition, fti, auto));
        self.numbers.insert(object, number);
        self.bytes += length;
        self.filling = (length > 0).then_some(number);
        if core::mem::take(&mut self.has_failed) {
            // Receivers learn which objects they need not wait for.
            self.squelch(number);
        }
        if self.timers.get(Timer::Probe as usize).is_none() && !self.is_paused {
            self.due.probe = true;
        }
        if self.timers.get(Timer::Watermark as usize).is_none() && !self.is_paused {
            self.timers.set(Timer::Watermark as usize, now + self.config.watermark_interval);
        }
    }

    /// Adds contents to the object that is not complete.
    pub(super) fn content(&mut self, object: u64, data: Bytes) {
        let Some(number) = self.numbers.get(&object) else { return };
        let outgoing = self.objects.get_mut(number).expect("it has a number");
        outgoing.add(data);
        if outgoing.lacks() == 0 {
            self.filling = self.filling.filter(|filling| filling != number);
        }
    }

    /// Withdraws an object.
    pub(super) fn cancel(&mut self, object: u64, reason: ObjectFailure) {
        if let Some(number) = self.numbers.get(&object).copied() {
            self.remove(number);
            self.fail(object, reason);
        }
    }

    /// Forgets an object.
    fn remove(&mut self, number: u64) -> Option<Outgoing> {
        let outgoing = self.objects.remove(&number)?;
        self.numbers.remove(&outgoing.object);
        self.bytes -= outgoing.length();
        self.filling = self.filling.filter(|filling| *filling != number);
        self.repairs.remove(number);
        self.aggregate.retain(|key, _| key.0 != number);
        self.advance_cursor();
        if self.objects.is_empty() {
            for timer in [Timer::Probe, Timer::Watermark, Timer::Flush, Timer::Release] {
                self.timers.stop(timer as usize);
            }
            (self.due.flush, self.due.watermark, self.due.probe) = (false, false, false);
        }
        Some(outgoing)
    }

    /// Goes past objects that are sent completely, and those that are forgotten.
    fn advance_cursor(&mut self) {
        while self.cursor < self.next_number && self.objects.get(&self.cursor).is_none_or(Outgoing::is_sent) {
            self.cursor += 1;
        }
    }

    /// Fails all objects.
    pub(super) fn fail_all(&mut self, reason: ObjectFailure) {
        let numbers: Vec<u64> = self.objects.keys().copied().collect();
        for number in numbers {
            if let Some(outgoing) = self.remove(number) {
                self.fail(outgoing.object, reason);
            }
        }
    }

    /// Bytes of contents that the user may give.
    pub(super) fn room(&self) -> u64 {
        let ahead = AHEAD_SEGMENTS.max(2 * self.config.block_symbols) * self.config.segment_bytes;
        let unsent: u64 = self.objects.range(self.cursor..).map(|(_, outgoing)| outgoing.unsent()).sum();
        let left = ahead.saturating_sub(unsent);
        let rest = self.filling.map_or(0, |number| self.objects[&number].lacks());
        let may_begin =
            self.objects.len() < self.config.objects_max && self.bytes < self.config.outgoing_bytes_max;
        // Small pieces would only cost processing time.
        match may_begin {
            _ if left < self.config.segment_bytes => 0,
            true => left,
            false => left.min(rest),
        }
    }

    // -- Up and down --------------------------------------------------------------------------------------------

    /// Begins to send to one receiver, or to a group without one.
    pub(super) fn resume(&mut self, now: Instant, peer: Option<PeerId>) {
        (self.is_group, self.peer) = (peer.is_none(), peer);
        self.is_paused = false;
        self.acknowledgements.restart_rounds();
        if !self.objects.is_empty() {
            (self.due.probe, self.due.flush) = (true, true);
            self.timers.set(Timer::Watermark as usize, now + self.config.watermark_interval);
        }
    }

    /// Notes that the session ends because receivers were silent.
    pub(super) fn forget_learnt_receivers(&mut self) {
        self.acknowledgements.forget_learnt();
        self.answers_from = None;
    }

    /// Stops all timers, as nothing can leave.
    pub(super) fn pause(&mut self) {
        self.is_paused = true;
        self.timers.stop_all();
        self.due = Due::default();
        self.aggregate.clear();
    }

    // -- Timers -------------------------------------------------------------------------------------------------

    /// Handles the timers that have expired; true if receivers were silent for too long.
    pub(super) fn handle_timeout(&mut self, now: Instant, counters: &mut Counters) -> bool {
        if self.timers.expire(Timer::Aggregate as usize, now) {
            self.answer(now, counters);
        }
        if self.timers.expire(Timer::Probe as usize, now) {
            self.grtt.end_of_probe();
            self.due.probe = true;
        }
        if self.timers.expire(Timer::Watermark as usize, now) {
            self.due.watermark = true;
            self.timers.set(Timer::Watermark as usize, now + self.config.watermark_interval);
        }
        self.timers.expire(Timer::Squelch as usize, now);
        self.timers.expire(Timer::Advertise as usize, now);
        if self.timers.expire(Timer::Release as usize, now) {
            self.release(now, counters);
        }
        if self.timers.expire(Timer::Flush as usize, now) {
            if !self.is_acknowledged() && self.acknowledgements.rounds() >= self.config.robust_factor {
                self.complete_sent(counters);
                return false;
            }
            self.due.flush = true;
            if self.acknowledgements.rounds().is_multiple_of(QUESTIONS_PER_SQUELCH) {
                // A receiver may wait for objects that have failed.
                self.squelch(FIRST_NUMBER);
            }
            // An answer tells the identifier of the peer, without which it cannot acknowledge.
            self.due.probe |= !self.is_group && self.acknowledgements.is_empty();
            return self.acknowledgements.is_silent(now, &self.config);
        }
        false
    }

    /// Returns true if objects need acknowledgements.
    fn is_acknowledged(&self) -> bool {
        !self.is_group || !self.acknowledgements.is_empty()
    }

    /// Indicates all objects that are sent, of which no acknowledgement is requested.
    fn complete_sent(&mut self, counters: &mut Counters) {
        while let Some((number, _)) =
            self.objects.first_key_value().filter(|(number, _)| **number < self.cursor)
        {
            self.complete(*number, counters);
        }
    }

    /// Time that receivers of a group have for requests after the last symbol of an object.
    fn repair_time(&self) -> Duration {
        self.advertised_grtt() * (4 * (u32::from(self.backoff_factor()) + 2))
    }

    /// Releases the oldest object without acknowledgements, because another one has no room.
    fn release(&mut self, now: Instant, counters: &mut Counters) {
        let oldest = self.objects.first_key_value().filter(|(number, _)| **number < self.cursor);
        if let Some((number, outgoing)) = oldest
            && now >= outgoing.left_at + self.repair_time()
        {
            self.complete(*number, counters);
        }
        self.set_release(now);
    }

    fn set_release(&mut self, now: Instant) {
        let is_full =
            self.objects.len() >= self.config.objects_max || self.bytes >= self.config.outgoing_bytes_max;
        let oldest = self.objects.first_key_value().filter(|(number, _)| **number < self.cursor);
        if let Some((_, outgoing)) = oldest
            && is_full
            && !self.is_acknowledged()
            && self.timers.get(Timer::Release as usize).is_none()
        {
            let at = (outgoing.left_at + self.repair_time()).max(now);
            self.timers.set(Timer::Release as usize, at);
        }
    }

    /// Time of the next timer.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timers.next()
    }

    // -- Messages -----------------------------------------------------------------------------------------------

    /// Returns the next message, the most urgent one.
    pub(super) fn next_message(&mut self, now: Instant, counters: &mut Counters) -> Option<Departure> {
        if self.is_paused {
            return None;
        }
        if let Some(lowest) = self.due.squelch.take() {
            counters.squelches_sent += 1;
            self.timers.set(Timer::Squelch as usize, now + self.advertised_grtt() * 2);
            return Some(self.command(self.make_squelch(lowest)));
        }
        if core::mem::take(&mut self.due.advertise) && !self.aggregate.is_empty() {
            self.timers.set(Timer::Advertise as usize, now + self.advertised_grtt());
            return Some(self.command(self.make_advertisement()));
        }
        if core::mem::take(&mut self.due.probe) {
            counters.probes_sent += 1;
            return Some(self.probe(now));
        }
        // At the end of all data, questions have times of their own.
        let has_data = self.timers.get(Timer::Flush as usize).is_none();
        if core::mem::take(&mut self.due.watermark)
            && has_data
            && self.is_acknowledged()
            && self.repairs.is_empty()
            && let Some(flush) = self.flush(now, counters)
        {
            return Some(flush);
        }
        if let Some(repair) = self.repairs.first() {
            return Some(self.repair(now, repair, counters));
        }
        if let Some(new) = self.next_new(now, counters) {
            return Some(new);
        }
        if self.due.flush && self.filling.is_none() && self.aggregate.is_empty() {
            self.due.flush = false;
            let flush = self.flush(now, counters)?;
            let wait = self.acknowledgements.wait(self.advertised_grtt(), &self.config);
            self.timers.set(Timer::Flush as usize, now + wait);
            return Some(flush);
        }
        None
    }

    fn command(&self, command: Command) -> Departure {
        Departure {
            body: CommandMessage { sender: self.fields(), command }.into(),
            shares: Shares::default(),
        }
    }

    fn probe(&mut self, now: Instant) -> Departure {
        let send_time = Timestamp::from_micros(now.as_nanos() / 1_000);
        let rate = quantities::rate_code(self.config.rate_bps as f64 / 8.0);
        let sequence = self.cc_sequence;
        self.cc_sequence = sequence.wrapping_add(1);
        self.timers.set(Timer::Probe as usize, now + self.probe_interval);
        let longer = (self.probe_interval * 2).min(self.config.probe_max);
        self.probe_interval = if self.grtt.is_measured() { longer } else { self.config.probe_min };
        self.command(Command::Cc { cc_sequence: sequence, send_time, rate: Some(rate), nodes: Vec::new() })
    }

    fn make_squelch(&self, lowest: u64) -> Command {
        let first = self.objects.keys().next().copied().unwrap_or(self.next_number);
        let block_symbols =
            self.objects.get(&first).map_or(0, |outgoing| outgoing.partition.block_symbols(0));
        let is_invalid = |number: &u64| !self.objects.contains_key(number);
        let later = (lowest.max(first + 1)..self.next_number).filter(is_invalid).map(|number| number as u16);
        Command::Squelch {
            scheme: self.config.fec_scheme,
            object: first as u16,
            id: PayloadId { block: 0, block_symbols, symbol: 0 },
            invalid_objects: later.take(self.config.segment_bytes as usize / 2).collect(),
        }
    }

    fn make_advertisement(&self) -> Command {
        let mut list = RequestList::new(self.config.segment_bytes as usize);
        for ((number, block), request) in &self.aggregate {
            let Some(outgoing) = self.objects.get(number) else { continue };
            let of = ObjectId { scheme: self.config.fec_scheme, object: *number as u16 };
            let sources = outgoing.partition.block_symbols(*block);
            if request.is_whole {
                list.blocks(of, *block, *block, |_| sources);
            } else {
                list.symbols(of, *block, sources, &request.symbols);
            }
        }
        Command::RepairAdv { is_limited: list.is_full(), cc: None, requests: list.into_requests() }
    }

    /// Last symbol of an object.
    fn end(outgoing: &Outgoing) -> (u32, u16) {
        let last = outgoing.partition.blocks() - 1;
        (last, outgoing.partition.block_symbols(last) - 1)
    }

    /// Returns a FLUSH for the last object that is sent completely, with the receivers that have to acknowledge it.
    fn flush(&mut self, now: Instant, counters: &mut Counters) -> Option<Departure> {
        let (number, outgoing) = self.objects.range(..self.cursor).next_back()?;
        let (block, symbol) = Self::end(outgoing);
        let id = PayloadId { block, block_symbols: outgoing.partition.block_symbols(block), symbol };
        let (scheme, object) = (self.config.fec_scheme, *number as u16);
        let nodes_max = self.config.segment_bytes as usize / 4;
        let acking_nodes = self.acknowledgements.ask(now, *number, nodes_max);
        counters.flushes_sent += 1;
        Some(self.command(Command::Flush { scheme, object, id, acking_nodes }))
    }

    fn repair(&mut self, now: Instant, repair: Repair, counters: &mut Counters) -> Departure {
        self.repairs.leave(now, repair);
        self.acknowledgements.restart_rounds();
        self.due.flush = true;
        let (Repair::Symbol((number, _), _) | Repair::Info(number)) = repair;
        let outgoing = self.objects.get_mut(&number).expect("repairs of objects that are there");
        outgoing.left_at = now;
        let Repair::Symbol((_, block), symbol) = repair else {
            return self.info(number, Flags::REPAIR);
        };
        counters.repairs_sent += 1;
        let is_explicit = symbol < outgoing.partition.block_symbols(block);
        counters.explicit_repairs_sent += u64::from(is_explicit);
        let flags = Flags::REPAIR | if is_explicit { Flags::EXPLICIT } else { 0 };
        let data = self.data(number, block, symbol, flags);
        let bytes = data_header_bytes(data.scheme, true) + data.payload.len();
        let shares = if is_explicit { Shares::repeated(bytes) } else { Shares::repair(data.payload.len()) };
        Departure { body: data.into(), shares }
    }

    fn next_new(&mut self, now: Instant, counters: &mut Counters) -> Option<Departure> {
        let number = self.cursor;
        let outgoing = self.objects.get_mut(&number)?;
        if core::mem::take(&mut outgoing.is_info_due) {
            return Some(self.info(number, 0));
        }
        let (block, symbol) = outgoing.next_symbol()?;
        outgoing.advance();
        outgoing.left_at = now;
        let sources = outgoing.partition.block_symbols(block);
        let is_sent = outgoing.is_sent();
        self.acknowledgements.restart_rounds();
        self.timers.stop(Timer::Flush as usize);
        self.due.flush = true;
        let data = self.data(number, block, symbol, 0);
        let payload = data.payload.len();
        let shares = if symbol < sources {
            counters.symbols_sent += 1;
            counters.payload_sent += payload as u64;
            Shares::payload(payload)
        } else {
            counters.parity_sent += 1;
            self.repairs.note_auto_parity((number, block), symbol + 1 - sources);
            Shares::repair(payload)
        };
        if is_sent {
            self.advance_cursor();
            self.set_release(now);
        }
        Some(Departure { body: data.into(), shares })
    }

    fn info(&self, number: u64, flags: u8) -> Departure {
        let outgoing = &self.objects[&number];
        let payload = outgoing.info.clone().unwrap_or_default();
        let info = Info {
            sender: self.fields(),
            flags: Flags(outgoing.flags.0 | flags),
            scheme: self.config.fec_scheme,
            object: number as u16,
            fti: Some(outgoing.fti),
            payload,
        };
        Departure { body: info.into(), shares: Shares::default() }
    }

    fn data(&self, number: u64, block: u32, symbol: u16, flags: u8) -> Data {
        let outgoing = &self.objects[&number];
        let mut payload = BytesMut::with_capacity(self.config.segment_bytes as usize);
        outgoing.write_symbol(block, symbol, &self.code, &mut payload);
        let block_symbols = outgoing.partition.block_symbols(block);
        Data {
            sender: self.fields(),
            flags: Flags(outgoing.flags.0 | flags),
            scheme: self.config.fec_scheme,
            object: number as u16,
            id: PayloadId { block, block_symbols, symbol },
            fti: Some(outgoing.fti),
            payload: payload.freeze(),
        }
    }
}
