//! Packets that arrive.

use super::assembly::{Arrival, Delivery};
use super::endpoint::Endpoint;
use super::incoming::{Flow, Incoming, Order};
use super::outgoing::{Control, FIRST_BITS};
use super::round_trip::{departure, micros};
use super::wire::{Flags, Header, Kind, Received, Report, TRAILER_BYTES, Unrecognised, decode_numbers};
use crate::service::{
    ConnectionFailure, ConnectionProperties, ConnectionsIndication, PeerId, RefuseReason, TransportService,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;

/// Maximum number of incoming connections with the same ports.
const SAME_PORTS_MAX: usize = 4;
/// Number of bytes that a connection may hold for each byte that is free.
pub(super) const SHARE: u64 = 4;
/// Sequence numbers at the beginning of a connection in which its first segments may be.
pub(super) const FIRST_NUMBERS: u32 = 1 << FIRST_BITS;

impl Endpoint {
    /// Handles a datagram, which may contain bit errors.
    pub(super) fn hear(&mut self, now: Instant, from: PeerId, datagram: &Bytes) {
        let own_code =
            self.config.header_in_code.then_some(self.config.fec_strength).filter(|strength| *strength > 0);
        let received = match Received::decode(datagram, own_code) {
            Ok(received) => received,
            Err(Unrecognised::Header) => {
                self.counters.headers_damaged += 1;
                return;
            }
            Err(Unrecognised::Length) => {
                self.counters.violations += 1;
                return;
            }
        };
        if self.peer == Some(from) {
            self.heard_at = Some(now);
        }
        if received.header.kind == Kind::Data {
            return self.hear_data(now, from, received);
        }
        if !received.is_intact {
            self.counters.headers_damaged += 1;
            return;
        }
        if received.header.kind == Kind::Withdrawal {
            return self.hear_withdrawal(now, from, &received.header);
        }
        self.hear_answer(now, from, &received.header, &received.payload);
    }

    // -- Data -----------------------------------------------------------------------------------------------------

    /// Counts the bit errors of a segment. Returns true if their rate has changed.
    fn measure(&mut self, from: PeerId, received: &Received) -> bool {
        let correction = &received.correction;
        if correction.octets > 0 && received.is_intact {
            self.counters.segments_corrected += 1;
            self.counters.octets_corrected += u64::from(correction.octets);
        }
        self.counters.uncorrectable += u64::from(!received.is_intact);
        if received.header.length == 0 {
            return false;
        }
        let bits = 8 * (u64::from(received.header.length) + TRAILER_BYTES as u64);
        let errors = match received.is_intact {
            true => correction.bits,
            false => {
                let least = u32::from(received.header.strength) + 1;
                correction.bits + correction.failed_words.max(1) * least
            }
        };
        self.error_rate(from).observe(bits, errors, !received.is_intact)
    }

    fn hear_data(&mut self, now: Instant, from: PeerId, received: Received) {
        let has_changed = self.measure(from, &received);
        let header = &received.header;
        let flow = (from, header.source_port, header.destination_port);
        let found = self.find_incoming(flow, header).or_else(|| self.begin(now, flow, header));
        let Some((number, index)) = found else { return };
        let room = self.room_for(number, index);
        let incoming = self.incoming.get_mut(&number).expect("just found");
        let held = incoming.held_bytes();
        incoming.heard(now, header.timestamp, &self.config);
        if header.length == 0 {
            self.hear_signal(number, index, &received);
        } else if matches!(incoming.order, Order::None) {
            self.hear_message(number, &received, room);
        } else {
            let is_parity = header.flags.has(Flags::PARITY_OR_UP_TO);
            let arrival = match room {
                None => Arrival::Dropped,
                Some(room) => {
                    incoming.arrived(index, &received.payload, received.is_intact, header.flags, room)
                }
            };
            self.count_arrival(arrival, is_parity);
            self.answer_segment(now, number, index, arrival, header, has_changed);
            self.account_incoming(number, held);
        }
        self.deliver(now, number);
    }

    /// Returns the number of bytes that a segment may take in memory; `None` if there is no room at all.
    ///
    /// A connection holds a multiple of the free memory at most, so that some is free for others, however many users accept nothing.
    /// Without its next segment a connection frees nothing, so a part of the memory is reserved for these, and the oldest connection
    /// has room for its own in any case if its user has accepted everything.
    fn room_for(&self, number: u64, index: u64) -> Option<u64> {
        let (config, incoming) = (&self.config, &self.incoming[&number]);
        let free = config.incoming_bytes_max.saturating_sub(self.incoming_bytes);
        let share = free.saturating_mul(SHARE);
        if !incoming.awaits(index) {
            let own = share.saturating_sub(incoming.held_bytes());
            let room = free.saturating_sub(config.incoming_reserve()).min(own);
            return (room > 0).then_some(room);
        }
        let unaccepted = incoming.unaccepted_bytes();
        let is_oldest = self.incoming.keys().next() == Some(&number);
        (free > 0 && unaccepted <= share || is_oldest && unaccepted == 0).then_some(u64::MAX)
    }

    fn count_arrival(&mut self, arrival: Arrival, is_parity: bool) {
        match arrival {
            Arrival::New if is_parity => self.counters.parity_received += 1,
            Arrival::New => self.counters.segments_received += 1,
            Arrival::Known => self.counters.duplicates += 1,
            Arrival::Dropped => self.counters.dropped += 1,
            Arrival::Damaged => {}
        }
    }

    /// Plans the answer to a segment.
    fn answer_segment(
        &mut self,
        now: Instant,
        number: u64,
        index: u64,
        arrival: Arrival,
        header: &Header,
        has_changed: bool,
    ) {
        let incoming = self.incoming.get_mut(&number).expect("the caller has it");
        let asks = header.flags.has(Flags::ASK_OR_NO_NUMBER);
        match incoming.properties.service {
            TransportService::Adaptive => {
                incoming.acknowledge(now, index, header.timestamp, asks || has_changed, &self.config);
            }
            service if service.acknowledges() => {
                if matches!(arrival, Arrival::New | Arrival::Known) {
                    incoming.acknowledge(now, index, header.timestamp, asks, &self.config);
                }
            }
            TransportService::Nack => {
                if header.flags.has(Flags::ASYN) {
                    incoming.answer_setup();
                }
                if header.flags.has(Flags::AFIN) {
                    incoming.answer_end();
                    incoming.end_is_known(now, &self.config);
                }
            }
            _ => {}
        }
    }

    /// Handles a packet without data: set-up, end, or a request for an answer.
    fn hear_signal(&mut self, number: u64, index: u64, received: &Received) {
        let incoming = self.incoming.get_mut(&number).expect("the caller has it");
        let header = &received.header;
        if header.flags.has(Flags::AFIN) {
            match &mut incoming.order {
                Order::Segments(assembly) => assembly.end_at(index),
                Order::Blocks(blocks) => blocks.end_at(index),
                Order::None => {}
            }
        }
        let service = incoming.properties.service;
        if service.acknowledges() {
            incoming.ask(header.timestamp);
        } else if service.has_nacks() {
            incoming.answer_setup();
            if header.flags.has(Flags::AFIN) {
                incoming.answer_end();
            }
        }
    }

    fn hear_message(&mut self, number: u64, received: &Received, room: Option<u64>) {
        if !received.is_intact && !self.config.deliver_damaged {
            self.counters.gaps += 1;
            return;
        }
        if room.is_none() {
            self.counters.dropped += 1;
            return;
        }
        let incoming = self.incoming.get_mut(&number).expect("the caller has it");
        let held = incoming.held_bytes();
        incoming.delivered_message(received.payload.len());
        self.account_incoming(number, held);
        self.counters.segments_received += 1;
        self.counters.payload_received += received.payload.len() as u64;
        let (data, damaged) = (received.payload.clone(), !received.is_intact);
        self.up.push_back(ConnectionsIndication::Data { incoming: number, data, damaged, last: false });
    }

    /// Returns the connection of a segment, and the index of this.
    fn find_incoming(&self, flow: Flow, header: &Header) -> Option<(u64, u64)> {
        let numbers = self.flows.get(&flow)?;
        numbers.iter().find_map(|number| {
            let incoming = &self.incoming[number];
            let is_same = incoming.properties.service == header.service;
            Some((*number, incoming.index_of(header.sequence).filter(|_| is_same)?))
        })
    }

    /// Begins a connection with its first segment, if it is new.
    fn begin(&mut self, now: Instant, flow: Flow, header: &Header) -> Option<(u64, u64)> {
        let properties = ConnectionProperties {
            service: header.service,
            precedence: header.precedence,
            source_port: header.source_port,
            destination_port: header.destination_port,
        };
        if self.answer_for_closed(now, flow, &properties, header) {
            return None;
        }
        let is_answered = header.service.acknowledges() || header.service.has_nacks();
        if let Some(incoming) = self.open_connection(flow, header) {
            // The sender of a flow without answers runs ahead of a receiver that hears nothing for a time, and begins another one.
            if is_answered || !incoming.is_behind(header.sequence) {
                self.counters.dropped += 1;
            } else {
                self.refuse_stranger(flow, &properties, header);
            }
            return None;
        }
        let is_new = header.flags.has(Flags::ASYN) || header.service.keeps_messages();
        // It may have arrived completely before this side was started, and shall not arrive twice.
        let is_young = now < self.opened_at + self.config.silence_limit;
        if !is_new || header.flags.has(Flags::WHOLE) && is_young && is_answered {
            self.refuse_stranger(flow, &properties, header);
            return None;
        }
        let same_ports = self.flows.get(&flow).map_or(0, Vec::len);
        if self.incoming.len() >= self.config.incoming_max || same_ports >= SAME_PORTS_MAX {
            self.counters.refused += 1;
            if is_answered {
                self.reply_refusal(flow, &properties, header.sequence, RefuseReason::NoResources);
            }
            return None;
        }
        let first = header.sequence & !(FIRST_NUMBERS - 1);
        let incoming = Incoming::new(now, flow, first, header, &self.config, &self.code);
        let Some(index) = incoming.index_of(header.sequence) else {
            self.refuse_stranger(flow, &properties, header);
            return None;
        };
        let number = self.next_incoming;
        self.next_incoming += 1;
        self.incoming.insert(number, incoming);
        self.flows.entry(flow).or_default().push(number);
        self.counters.connections_begun += 1;
        self.up.push_back(ConnectionsIndication::Begin { incoming: number, properties });
        Some((number, index))
    }

    /// Returns the open connection of a packet that is outside its window.
    fn open_connection(&self, flow: Flow, header: &Header) -> Option<&Incoming> {
        let open = self.flows.get(&flow)?.iter().map(|number| &self.incoming[number]);
        open.filter(|incoming| incoming.properties.service == header.service).find(|incoming| {
            !header.flags.has(Flags::ASYN) || incoming.first == header.sequence & !(FIRST_NUMBERS - 1)
        })
    }

    /// Tells the sender of a connection that it is unknown here. Single messages need no beginning.
    fn refuse_stranger(&mut self, flow: Flow, properties: &ConnectionProperties, header: &Header) {
        self.counters.strangers += 1;
        if !header.service.keeps_messages() {
            self.reply_refusal(flow, properties, header.sequence, RefuseReason::SessionTerminating);
        }
    }

    /// The sender gives up a connection.
    fn hear_withdrawal(&mut self, now: Instant, from: PeerId, header: &Header) {
        let flow = (from, header.source_port, header.destination_port);
        match self.find_incoming(flow, header) {
            Some((number, _)) => self.lose(now, number),
            None => self.counters.strangers += 1,
        }
    }

    /// Answers a segment of a connection that has ended. Returns true if it is one.
    fn answer_for_closed(
        &mut self,
        now: Instant,
        flow: Flow,
        properties: &ConnectionProperties,
        header: &Header,
    ) -> bool {
        // Its sender gives up after one limit, and counts it from the last answer.
        self.closed.expire(now, self.config.silence_limit * 2);
        let Some(closed) = self.closed.find(flow, header) else { return false };
        self.counters.duplicates += 1;
        match closed.refused {
            Some(reason) => self.reply_refusal(flow, properties, header.sequence, reason),
            None if properties.service.acknowledges()
                || header.flags.has(Flags::AFIN) && properties.service.has_nacks() =>
            {
                self.reply_end(flow, properties, closed.last(), header.timestamp);
            }
            None => {}
        }
        true
    }

    /// Passes to the user what is next.
    pub(super) fn deliver(&mut self, now: Instant, number: u64) {
        let Some(incoming) = self.incoming.get_mut(&number) else { return };
        let held = incoming.held_bytes();
        let mut told_end = incoming.end_was_told;
        while let Some(delivery) = incoming.deliver() {
            match delivery {
                Delivery::Data { data, damaged } => {
                    let last = incoming.is_complete();
                    told_end |= last;
                    self.counters.payload_received += data.len() as u64;
                    self.up.push_back(ConnectionsIndication::Data { incoming: number, data, damaged, last });
                }
                Delivery::Gap { bytes } => {
                    self.counters.gaps += 1;
                    self.up.push_back(ConnectionsIndication::Gap { incoming: number, bytes });
                }
            }
        }
        if incoming.is_complete() && !told_end {
            told_end = true;
            let (data, damaged) = (Bytes::new(), false);
            self.up.push_back(ConnectionsIndication::Data { incoming: number, data, damaged, last: true });
        }
        if told_end && !incoming.end_was_told {
            incoming.end_was_told = true;
            incoming.accept_end();
        }
        if let Order::Blocks(blocks) = &mut incoming.order {
            self.counters.segments_restored += core::mem::take(&mut blocks.restored);
        }
        self.account_incoming(number, held);
        self.settle_incoming(now, number);
    }

    // -- Answers --------------------------------------------------------------------------------------------------

    fn hear_answer(&mut self, now: Instant, from: PeerId, header: &Header, payload: &Bytes) {
        let ports = (header.destination_port, header.source_port);
        let connection = self.by_ports.get(&ports).copied().filter(|_| self.peer == Some(from));
        let Some(connection) = connection else {
            self.counters.strangers += 1;
            return;
        };
        let config = self.config.clone();
        let (outgoing, held) = self.outgoing_mut(connection).expect("its ports are listed");
        // An answer about another connection with the same ports.
        let Some(index) = outgoing.index_of(header.sequence).filter(|index| *index <= outgoing.next()) else {
            self.counters.strangers += 1;
            return;
        };
        if outgoing.properties.service != header.service {
            self.counters.strangers += 1;
            return;
        }
        let acknowledges_end = header.flags.has(Flags::AFINACK);
        if acknowledges_end && !(header.kind == Kind::Acknowledgement && outgoing.ends_at(index)) {
            self.counters.strangers += 1;
            return;
        }
        let echo = departure(now, header.timestamp);
        match header.kind {
            Kind::Data | Kind::Withdrawal => unreachable!("those of senders are handled before"),
            Kind::Refusal => {
                let reason =
                    payload.first().map_or(RefuseReason::Unknown, |code| RefuseReason::from_code(*code));
                let failure = match reason {
                    RefuseReason::SessionTerminating => ConnectionFailure::Unknown,
                    reason => ConnectionFailure::Refused(reason),
                };
                return self.fail(connection, failure);
            }
            Kind::Acknowledgement => {
                let mut is_new = false;
                if let Control::Segments(segments) = &mut outgoing.control {
                    let has_number = !header.flags.has(Flags::ASK_OR_NO_NUMBER);
                    if has_number {
                        is_new |= segments.acknowledge(index);
                    }
                    if has_number && header.flags.has(Flags::PARITY_OR_UP_TO) && !acknowledges_end {
                        is_new |= segments.accept(index + 1, config.cumulative);
                    }
                    let next = segments.next();
                    let numbers: Vec<u32> = decode_numbers(payload).collect();
                    for number in numbers {
                        if let Some(index) =
                            super::outgoing::near(next, outgoing.first, number).filter(|index| *index < next)
                        {
                            is_new |= segments.acknowledge(index);
                        }
                    }
                }
                // Without acknowledgements only the set-up and the end are answered, and at once.
                if let Some(echo) = echo.filter(|_| is_new || !header.service.acknowledges()) {
                    outgoing.trip.measure(Duration::from_micros(micros(now) - echo));
                } else {
                    outgoing.trip.answered();
                }
                outgoing.answered(now, header.flags, is_new, &config);
                self.counters.macks_received += 1;
            }
            Kind::Nack => {
                if let Some(echo) = echo.filter(|_| outgoing.trip.smoothed().is_none()) {
                    outgoing.trip.measure(Duration::from_micros(micros(now) - echo));
                }
                let half = outgoing.trip.smoothed().unwrap_or(config.rto_initial).max(config.rto_min) / 2;
                if let Control::Segments(segments) = &mut outgoing.control {
                    let next = segments.next();
                    let numbers: Vec<u32> =
                        core::iter::once(header.sequence).chain(decode_numbers(payload)).collect();
                    for number in numbers {
                        if let Some(index) =
                            super::outgoing::near(next, outgoing.first, number).filter(|index| *index < next)
                        {
                            segments.refuse(now, index, half);
                        }
                    }
                }
                outgoing.refused(now, &config);
                outgoing.answered(now, header.flags, false, &config);
                self.counters.nacks_received += 1;
            }
            Kind::Report => {
                let Some(report) = Report::decode(payload) else {
                    self.counters.violations += 1;
                    return;
                };
                let (next, first) = (outgoing.next(), outgoing.first);
                let complete = super::outgoing::near(next, first, report.complete).unwrap_or(0);
                let mut is_new = false;
                if let (Control::Blocks(blocks), Some(echo)) = (&mut outgoing.control, echo) {
                    is_new = blocks.report(index, complete, echo, config.reordering, &report);
                    outgoing.trip.measure(Duration::from_micros(micros(now) - echo));
                }
                outgoing.answered(now, header.flags, is_new, &config);
                self.counters.macks_received += 1;
                if is_new {
                    self.set_path(report.bit_error_rate.into());
                }
            }
        }
        self.account_outgoing(connection, held);
        self.settle_outgoing(connection);
    }
}
