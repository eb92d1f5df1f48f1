//! Packets that leave, and their order: answers first, then data by precedence.

use super::config::Config;
use super::endpoint::{Endpoint, Timer};
use super::hearing::SHARE;
use super::incoming::Order;
use super::model;
use super::outgoing::{Departure, DepartureKind};
use super::wire::{
    BLOCK_ENTRY_BYTES, HEADER_BYTES, Header, Kind, Packet, REPORT_BYTES, Report, TRAILER_BYTES,
    encode_numbers,
};
use crate::service::{DatagramsRequest, PeerId, Shares, TransportService};
use crate::time::Instant;
use bytes::Bytes;

/// Strength of the code in reports: they are short, and their losses cost time.
const REPORT_STRENGTH: u8 = 2;

impl Endpoint {
    /// Returns the next packet, if the provider and the rate permit one.
    pub(super) fn next_datagram(&mut self, now: Instant) -> Option<DatagramsRequest> {
        let may_send = self.room > 0 && self.timers.get(Timer::Pace as usize).is_none();
        if self.is_paused() || !may_send || self.packet_bytes < super::config::PACKET_BYTES_MIN {
            return None;
        }
        if let Some((to, packet)) = self.replies.pop_front() {
            self.counters.macks_sent += u64::from(packet.header.kind == Kind::Acknowledgement);
            return Some(self.answer(now, to, &packet));
        }
        if let Some(number) = self.nacks.first().copied() {
            return Some(self.next_nack(now, number));
        }
        if let Some(number) = self.answers.first().copied() {
            return Some(self.next_answer(now, number));
        }
        self.next_data(now)
    }

    fn answer(&mut self, now: Instant, to: PeerId, packet: &Packet) -> DatagramsRequest {
        let bytes = packet.to_bytes();
        self.counters.answer_bytes_sent += bytes.len() as u64;
        self.depart(now, to, bytes.clone(), Shares::acknowledgement(bytes.len()), None)
    }

    fn depart(
        &mut self,
        now: Instant,
        to: PeerId,
        bytes: Bytes,
        shares: Shares,
        token: Option<u64>,
    ) -> DatagramsRequest {
        self.room -= 1;
        self.counters.bytes_sent += bytes.len() as u64;
        self.pacer.spend(now, bytes.len() as u64 + self.config.overhead_bytes);
        let ready_at = self.pacer.ready_at();
        if ready_at > now {
            self.timers.set(Timer::Pace as usize, ready_at);
        }
        DatagramsRequest::Datagram { to, bytes, shares, token }
    }

    fn next_nack(&mut self, now: Instant, number: u64) -> DatagramsRequest {
        let most = Config::macks_max(self.packet_bytes) as usize;
        let incoming = self.incoming.get_mut(&number).expect("only existing connections are listed");
        let Order::Segments(assembly) = &mut incoming.order else { unreachable!("blocks have no NACKs") };
        let taken = assembly.take_nacks(now, most, &self.config);
        let numbers: Vec<u32> = taken.into_iter().map(|index| incoming.sequence_of(index)).collect();
        let (flow, properties) = (incoming.flow, incoming.properties);
        let (sequence, timestamp) = (numbers[0], incoming.stamp);
        let header = Header { sequence, timestamp, ..self.answer_header(flow, &properties, Kind::Nack) };
        let payload = encode_numbers(numbers[1..].iter().copied());
        self.counters.nacks_sent += 1;
        self.refresh_incoming(number);
        self.answer(now, flow.0, &Packet { header, payload })
    }

    fn next_answer(&mut self, now: Instant, number: u64) -> DatagramsRequest {
        self.counters.macks_sent += 1;
        let incoming = &self.incoming[&number];
        let (flow, properties) = (incoming.flow, incoming.properties);
        let packet = if matches!(incoming.order, Order::Blocks(_)) {
            self.report(number)
        } else {
            let most = Config::macks_max(self.packet_bytes) as usize;
            let header = self.answer_header(flow, &properties, Kind::Acknowledgement);
            let incoming = self.incoming.get_mut(&number).expect("just found");
            let timestamp = incoming.echo.unwrap_or(0);
            let taken = incoming.take_acknowledgements(most, &self.config);
            let sequence = incoming.sequence_of(taken.first.or(incoming.last()).unwrap_or(0));
            let payload = encode_numbers(taken.others.iter().map(|index| incoming.sequence_of(*index)));
            self.counters.acks_sent += u64::from(taken.first.is_some()) + taken.others.len() as u64;
            Packet { header: Header { flags: taken.flags, sequence, timestamp, ..header }, payload }
        };
        let incoming = self.incoming.get_mut(&number).expect("just found");
        incoming.plan_rest(now, &self.config);
        self.refresh_incoming(number);
        self.answer(now, flow.0, &packet)
    }

    fn report(&mut self, number: u64) -> Packet {
        let bit_error_rate = self.error_rate(self.incoming[&number].flow.0).rate() as f32;
        let free = self.config.incoming_bytes_max.saturating_sub(self.incoming_bytes);
        let room = self.packet_bytes as usize - HEADER_BYTES - TRAILER_BYTES - REPORT_BYTES;
        let incoming = &self.incoming[&number];
        let (flow, properties) = (incoming.flow, incoming.properties);
        let Order::Blocks(blocks) = &incoming.order else { unreachable!("reports are about blocks") };
        // As much as it may hold when it has taken that much of what is free.
        let window_bytes = (free + incoming.unaccepted_bytes()) / (SHARE + 1) * SHARE;
        let report = Report {
            bit_error_rate,
            window_bytes: u32::try_from(window_bytes).unwrap_or(u32::MAX),
            complete: incoming.sequence_of(incoming.next()),
            blocks: blocks.state(room / 2 / BLOCK_ENTRY_BYTES),
        };
        let header = self.answer_header(flow, &properties, Kind::Report);
        let incoming = self.incoming.get_mut(&number).expect("just found");
        let timestamp = incoming.echo.unwrap_or(0);
        let sequence = incoming.sequence_of(incoming.accepted);
        let flags = incoming.take_report(&self.config);
        let header = Header { flags, sequence, timestamp, strength: REPORT_STRENGTH, ..header };
        Packet { header, payload: report.encode() }
    }

    /// Returns the next segment of the connection whose turn it is.
    fn next_data(&mut self, now: Instant) -> Option<DatagramsRequest> {
        let to = self.peer?;
        loop {
            let (_, connection) = self.sendable.first().copied()?;
            let (config, path) = (self.config.clone(), self.path);
            self.turns += 1;
            let turn = self.turns;
            let (outgoing, held) =
                self.outgoing_mut(connection).expect("only existing connections are listed");
            let departure = outgoing.leave(now, &config, &path);
            outgoing.turn = turn;
            let made = departure.map(|departure| {
                let properties = outgoing.properties;
                let strength = match properties.service {
                    TransportService::Adaptive if departure.kind == DepartureKind::Control => 0,
                    TransportService::Adaptive => {
                        let length = departure.payload.len();
                        model::best_strength(
                            path.bit_error_rate,
                            length,
                            config.overhead_bytes,
                            path.packet_bytes,
                        )
                    }
                    _ if departure.payload.is_empty() => 0,
                    service => config.strength(service),
                };
                let header = Header {
                    header_in_code: strength > 0 && config.header_is_coded(properties.service),
                    strength,
                    flags: departure.flags,
                    length: departure.payload.len() as u16,
                    ..outgoing.header(now, Kind::Data, departure.index)
                };
                (header, departure)
            });
            self.account_outgoing(connection, held);
            let Some((header, departure)) = made else {
                self.settle_outgoing(connection);
                continue;
            };
            let datagram = self.segment(now, to, connection, header, departure);
            self.settle_outgoing(connection);
            return Some(datagram);
        }
    }

    fn segment(
        &mut self,
        now: Instant,
        to: PeerId,
        connection: u64,
        header: Header,
        departure: Departure,
    ) -> DatagramsRequest {
        let Departure { index, payload, kind, .. } = departure;
        let length = payload.len();
        let code_bytes = header.code().parity_bytes(header.coded_bytes());
        let bytes = Packet { header, payload }.to_bytes();
        self.counters.code_bytes_sent += code_bytes as u64;
        let shares = match kind {
            DepartureKind::New => {
                self.counters.segments_sent += 1;
                self.counters.payload_sent += length as u64;
                Shares::payload(length).and(Shares::repair(code_bytes))
            }
            DepartureKind::Again => {
                self.counters.segments_resent += 1;
                self.counters.payload_resent += length as u64;
                Shares::repeated(bytes.len())
            }
            DepartureKind::Parity => {
                self.counters.parity_sent += 1;
                Shares::repair(bytes.len())
            }
            DepartureKind::Control => Shares::control(bytes.len()),
        };
        let index = (kind != DepartureKind::Control).then_some(index);
        let is_answered = header.service.acknowledges() || header.service.has_nacks();
        let token = is_answered.then(|| {
            self.next_token += 1;
            self.tokens.insert(self.next_token, (connection, index));
            self.next_token
        });
        self.depart(now, to, bytes, shares, token)
    }

    /// A packet has left this side: the timer of its segment begins.
    pub(super) fn transmitted(&mut self, now: Instant, token: u64) {
        let Some((connection, index)) = self.tokens.remove(&token) else { return };
        if let Some(outgoing) = self.outgoing.get_mut(&connection) {
            outgoing.left(now, index, &self.config);
            self.refresh_outgoing(connection);
        }
    }
}
