//! Sender of objects (RFC 5740 5.1).

mod feedback;
mod streams;

use super::acknowledgements::{Acknowledgements, Point};
use super::config::{Config, Counters};
use super::congestion::RateControl;
use super::grtt::Grtt;
use super::outgoing::{Outgoing, Stream};
use super::quantities;
use super::repair::{BlockKey, Repair, Repairs, Request};
use super::requests::{ObjectId, RequestList};
use super::wire::{
    Body, Command, CommandMessage, Data, FecScheme, Flags, Fti, Info, Message, NodeId, PayloadId,
    SenderFields, Timestamp, data_header_bytes,
};
use crate::codec;
use crate::fec::VandermondeCode;
use crate::rng::Rng;
use crate::service::{ObjectFailure, ObjectKind, ObjectsIndication, PeerId, Shares};
use crate::time::{Duration, Instant, Timers};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Number of the first object. Lower ones stand for those before it, which receivers may request.
const FIRST_NUMBER: u64 = 1 << 16;
/// Number of segments that the user gives ahead.
const AHEAD_SEGMENTS: u64 = 64;
/// Length of the fields besides the segment that the advertised round-trip time covers, octets.
const MESSAGE_BYTES: u64 = 44;
/// Length of the longest header of a message with data, octets.
const DATA_HEADER_BYTES_MAX: usize = data_header_bytes(FecScheme::SmallBlock, true);
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
    /// Symbol that is its payload, which is not in the body: it is written into the datagram.
    symbol: Option<Symbol>,
    /// Shares of the body, without what all messages have in common.
    pub(super) shares: Shares,
}

/// Symbol of an object.
#[derive(Clone, Copy, Debug)]
struct Symbol {
    number: u64,
    block: u32,
    symbol: u16,
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
    /// Length of all objects, and of the buffers of streams, bytes.
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
    /// Time at which the answers of all receivers to a probe have arrived.
    round_ends_at: Instant,
    acknowledgements: Acknowledgements,
    control: RateControl,
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
            control: RateControl::new(&config),
            round_ends_at: Instant::ZERO,
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
        let packet = match self.rate_bps() {
            0 => Duration::ZERO,
            rate => {
                let bits = (self.config.segment_bytes + MESSAGE_BYTES) * 8;
                Duration::from_nanos(bits * 1_000_000_000 / rate)
            }
        };
        quantities::time_of(quantities::time_code(self.grtt.estimate().max(packet)))
    }

    /// Rate of messages, bit/s; zero without a limit.
    pub(super) fn rate_bps(&self) -> u64 {
        self.control.rate_bps()
    }

    fn backoff_factor(&self) -> u8 {
        self.config.backoff_factor.unwrap_or(if self.is_group { 4 } else { 0 })
    }

    fn fields(&self) -> SenderFields {
        let receivers = self.config.group_size.unwrap_or(match self.config.acknowledging.len() as u64 {
            _ if !self.is_group => 10,
            0 => 1_000,
            named => named,
        });
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
        let segment = self.config.segment_bytes as u16;
        let fti = Fti {
            object_bytes: length,
            segment_bytes: segment,
            block_symbols: self.config.block_symbols as u16,
            parity_symbols: self.config.parity_symbols as u16,
        };
        let may_begin = length <= self.config.object_bytes_max
            && info.as_ref().is_none_or(|info| info.len() <= usize::from(segment));
        let auto = self.config.auto_parity as u16;
        let outgoing = may_begin.then(|| Outgoing::new(object, kind, info, fti, auto)).flatten();
        // The buffer of a stream has two blocks at least.
        let fits = |outgoing: &Outgoing| outgoing.length() <= self.config.object_bytes_max;
        let Some(outgoing) = outgoing.filter(fits) else {
            self.fail(object, ObjectFailure::TooLong);
            return;
        };
        let number = self.next_number;
        self.next_number += 1;
        self.numbers.insert(object, number);
        self.bytes += outgoing.length();
        self.filling = (outgoing.lacks() > 0).then_some(number);
        self.objects.insert(number, outgoing);
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

    /// Adds contents to the object that is not complete; with the last ones, a stream is closed.
    pub(super) fn content(&mut self, now: Instant, object: u64, data: Bytes, last: bool) {
        let Some(number) = self.numbers.get(&object) else { return };
        let outgoing = self.objects.get_mut(number).expect("it has a number");
        outgoing.add(data);
        if let Some(stream) = outgoing.stream_mut().filter(|_| last) {
            stream.close();
            self.due.flush = true;
        }
        if outgoing.lacks() == 0 {
            self.filling = self.filling.filter(|filling| filling != number);
        }
        self.set_release(now);
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

    /// Bytes of contents that the user has given, and that were not sent.
    pub(super) fn unsent_bytes(&self) -> u64 {
        self.objects.range(self.cursor..).map(|(_, outgoing)| outgoing.unsent()).sum()
    }

    /// Bytes of contents that the user may give.
    pub(super) fn room(&self) -> u64 {
        let ahead = AHEAD_SEGMENTS.max(2 * self.config.block_symbols) * self.config.segment_bytes;
        let left = ahead.saturating_sub(self.unsent_bytes());
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

    /// Sets the length of the segments of later objects, at most the configured one: what datagrams can carry.
    pub(super) fn set_segment_bytes(&mut self, segment_bytes: u64) {
        self.config.segment_bytes = segment_bytes;
    }

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
            if now >= self.round_ends_at {
                self.grtt.end_of_probe();
            }
            self.due.probe = true;
        }
        if self.timers.expire(Timer::Watermark as usize, now) {
            // Bytes of a stream after which none came are asked about as if it was flushed.
            self.due.watermark = !self.rest();
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

    /// Releases the oldest object, or block of a stream, without acknowledgements, because another one has no room.
    fn release(&mut self, now: Instant, counters: &mut Counters) {
        if let Some((number, left_at)) = self.oldest()
            && now >= left_at + self.repair_time()
        {
            if number < self.cursor {
                self.complete(number, counters);
            } else {
                self.release_block(number, counters);
            }
        }
        self.set_release(now);
    }

    /// Returns the oldest object if another one, or a segment of a stream, waits for its room or that of its first block, and the time
    /// from which it can be requested.
    fn oldest(&self) -> Option<(u64, Instant)> {
        let is_full =
            self.objects.len() >= self.config.objects_max || self.bytes >= self.config.outgoing_bytes_max;
        let (number, outgoing) = self.objects.first_key_value()?;
        if *number < self.cursor {
            let is_before_stalled =
                self.objects.get(&self.cursor).and_then(Outgoing::stream).is_some_and(Stream::is_stalled);
            return (is_full || is_before_stalled).then_some((*number, outgoing.left_at));
        }
        let stream = outgoing.stream().filter(|stream| stream.is_stalled())?;
        stream.oldest_left_at().map(|left_at| (*number, left_at))
    }

    fn set_release(&mut self, now: Instant) {
        if self.is_paused || self.is_acknowledged() || self.timers.get(Timer::Release as usize).is_some() {
            return;
        }
        if let Some((_, left_at)) = self.oldest() {
            let at = (left_at + self.repair_time()).max(now);
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
        if core::mem::take(&mut self.due.advertise)
            && (!self.aggregate.is_empty() || self.control.round().is_some())
        {
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
        if self.due.flush && self.wants_flush() && self.aggregate.is_empty() {
            self.due.flush = false;
            let flush = self.flush(now, counters)?;
            let wait = self.acknowledgements.wait(self.advertised_grtt(), &self.config);
            self.timers.set(Timer::Flush as usize, now + wait);
            return Some(flush);
        }
        self.control.note_idle(now);
        None
    }

    /// Notes that a message with data has left.
    pub(super) fn departed(&mut self, now: Instant, bytes: usize) {
        self.control.depart(now, bytes);
    }

    fn command(&self, command: Command) -> Departure {
        Departure {
            body: CommandMessage { sender: self.fields(), command }.into(),
            symbol: None,
            shares: Shares::default(),
        }
    }

    fn probe(&mut self, now: Instant) -> Departure {
        let send_time = Timestamp::from_micros(now.as_nanos() / 1_000);
        let (cc_sequence, nodes) = self.control.probe(now, self.grtt.estimate());
        let rate = Some(self.control.rate_code());
        if now >= self.round_ends_at {
            self.round_ends_at = now + self.advertised_grtt() * (u32::from(self.backoff_factor()) + 2);
        }
        let of_limiting = self.control.probe_interval();
        self.timers.set(Timer::Probe as usize, now + of_limiting.unwrap_or(self.probe_interval));
        let longer = (self.probe_interval * 2).min(self.config.probe_max);
        let is_settled = self.grtt.is_measured() && of_limiting.is_none();
        self.probe_interval = if is_settled { longer } else { self.config.probe_min };
        self.command(Command::Cc { cc_sequence, send_time, rate, nodes })
    }

    fn make_squelch(&self, lowest: u64) -> Command {
        let first = self.objects.keys().next().copied().unwrap_or(self.next_number);
        let (block, block_symbols) = self.objects.get(&first).map_or((0, 0), |outgoing| {
            let block = outgoing.blocks().start;
            (block, outgoing.block_symbols(block))
        });
        let is_invalid = |number: &u64| !self.objects.contains_key(number);
        let later = (lowest.max(first + 1)..self.next_number).filter(is_invalid).map(|number| number as u16);
        Command::Squelch {
            scheme: self.config.fec_scheme,
            object: first as u16,
            id: PayloadId { block, block_symbols, symbol: 0 },
            invalid_objects: later.take(self.config.segment_bytes as usize / 2).collect(),
        }
    }

    fn make_advertisement(&self) -> Command {
        let mut list = RequestList::new(self.config.segment_bytes as usize);
        for ((number, block), request) in &self.aggregate {
            let Some(outgoing) = self.objects.get(number) else { continue };
            let of = ObjectId { scheme: self.config.fec_scheme, object: *number as u16 };
            let sources = outgoing.block_symbols(*block);
            if request.is_whole {
                list.blocks(of, *block, *block, |_| sources);
            } else {
                list.symbols(of, *block, sources, &request.symbols);
            }
        }
        Command::RepairAdv {
            is_limited: list.is_full(),
            cc: self.control.round(),
            requests: list.into_requests(),
        }
    }

    /// Returns a FLUSH for the last point up to which all is sent, with the receivers that have to acknowledge it; `None` if they have.
    fn flush(&mut self, now: Instant, counters: &mut Counters) -> Option<Departure> {
        let mut sent = self.objects.range(..=self.cursor).rev();
        let (number, outgoing, (block, symbol)) =
            sent.find_map(|(number, outgoing)| Some((*number, outgoing, outgoing.last()?)))?;
        let point = Point { object: number, block, symbol };
        if self.acknowledgements.acknowledged() >= Some(point) {
            return None;
        }
        let id = PayloadId { block, block_symbols: outgoing.block_symbols(block), symbol };
        let (scheme, object) = (self.config.fec_scheme, number as u16);
        let nodes_max = self.config.segment_bytes as usize / 4;
        let acking_nodes = self.acknowledgements.ask(now, point, nodes_max);
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
        let is_explicit = symbol < outgoing.block_symbols(block);
        counters.explicit_repairs_sent += u64::from(is_explicit);
        let flags = Flags::REPAIR | if is_explicit { Flags::EXPLICIT } else { 0 };
        let payload = outgoing.symbol_bytes(block, symbol);
        let bytes = data_header_bytes(self.config.fec_scheme, true) + payload;
        let shares = if is_explicit { Shares::repeated(bytes) } else { Shares::repair(payload) };
        self.data(Symbol { number, block, symbol }, flags, shares)
    }

    fn next_new(&mut self, now: Instant, counters: &mut Counters) -> Option<Departure> {
        let number = self.cursor;
        let outgoing = self.objects.get_mut(&number)?;
        if core::mem::take(&mut outgoing.is_info_due) {
            return Some(self.info(number, 0));
        }
        let Some((block, symbol)) = outgoing.next_symbol() else {
            self.end_exhausted(number, counters);
            return None;
        };
        outgoing.advance(now);
        let sources = outgoing.block_symbols(block);
        let is_sent = outgoing.is_sent();
        let payload = outgoing.symbol_bytes(block, symbol);
        self.acknowledgements.restart_rounds();
        self.timers.stop(Timer::Flush as usize);
        self.due.flush = true;
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
        }
        self.set_release(now);
        Some(self.data(Symbol { number, block, symbol }, 0, shares))
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
        Departure { body: info.into(), symbol: None, shares: Shares::default() }
    }

    fn data(&self, of: Symbol, flags: u8, shares: Shares) -> Departure {
        let Symbol { number, block, symbol } = of;
        let outgoing = &self.objects[&number];
        let block_symbols = outgoing.block_symbols(block);
        let data = Data {
            sender: self.fields(),
            flags: Flags(outgoing.flags.0 | flags),
            scheme: self.config.fec_scheme,
            object: number as u16,
            id: PayloadId { block, block_symbols, symbol },
            fti: Some(outgoing.fti),
            payload: Bytes::new(),
        };
        Departure { body: data.into(), symbol: Some(of), shares }
    }

    /// Returns the datagram of a message that leaves.
    pub(super) fn encode(&self, sequence: u16, source: NodeId, departure: &Departure) -> Bytes {
        let message = Message { sequence, source, body: departure.body.clone() };
        let Some(Symbol { number, block, symbol }) = departure.symbol else { return message.to_bytes() };
        let outgoing = &self.objects[&number];
        codec::encoded(DATA_HEADER_BYTES_MAX + outgoing.symbol_bytes(block, symbol), |out| {
            message.encode(out);
            outgoing.write_symbol(block, symbol, &self.code, out);
        })
    }
}
