//! Engine of the connections: the state of the endpoint, and the requests of the user.

use super::block_sender;
use super::closed::{Closed, ClosedConnections};
use super::config::{Config, Counters, PACKET_BYTES_MIN};
use super::error_rate::ErrorRate;
use super::incoming::{Flow, Incoming};
use super::outgoing::{Expiry, FIRST_BITS, Outgoing, Path};
use super::wire::{Flags, Header, Kind, Packet, payload_bytes_max};
use crate::engine::Engine;
use crate::fec::VandermondeCode;
use crate::kit::{Backoff, Deadlines, Pacer};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    CloseReason, ConnectionFailure, ConnectionProperties, Connections, ConnectionsIndication,
    ConnectionsRequest, Datagrams, DatagramsIndication, DatagramsRequest, DownReason, PeerId, RefuseReason,
    TransportService,
};
use crate::time::{Instant, Timers};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of answers to single packets that wait to leave.
const REPLIES_MAX: usize = 64;
/// Maximum number of peers whose bit-error rate is remembered.
const PEERS_MAX: usize = 64;

/// Direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Sender,
    Receiver,
}

#[derive(Clone, Copy)]
pub(super) enum Timer {
    /// The rate permits the next packet.
    Pace,
    /// The endpoint must be opened again.
    Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Joining,
    Up,
}

/// Endpoint for connections, to one peer and from any. The [module](super) describes its procedures.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) config: Config,
    pub(super) listening: bool,
    state: State,
    /// The user has requested the endpoint.
    wanted: bool,
    /// A listening endpoint is closed, and this engine has finished.
    over: bool,
    /// The link below is disconnected.
    carrier_is_lost: bool,
    pub(super) timers: Timers<2>,
    /// Configured peer; `None` if the endpoint has none.
    pub(super) peer: Option<PeerId>,
    /// Maximum length of a packet, bytes; zero while the endpoint is not open.
    pub(super) packet_bytes: u64,
    /// Number of datagrams that the provider accepts.
    pub(super) room: u64,
    pub(super) pacer: Pacer,
    /// Requests to the provider.
    orders: VecDeque<DatagramsRequest>,
    release: u64,
    backoff: Backoff,
    pub(super) up: VecDeque<ConnectionsIndication>,
    pub(super) outgoing: BTreeMap<u64, Outgoing>,
    /// Bytes of outgoing connections in memory.
    outgoing_bytes: u64,
    /// Outgoing connection of each pair of ports.
    pub(super) by_ports: BTreeMap<(u16, u16), u64>,
    /// Outgoing connections that have something to send, in the order in which they do.
    pub(super) sendable: BTreeSet<((u8, bool, u64), u64)>,
    pub(super) turns: u64,
    /// Outgoing connections whose room may have changed.
    rooms: BTreeSet<u64>,
    /// Outgoing connections without room for want of memory.
    starved: BTreeSet<u64>,
    /// Number of the next connection, in the high bits of its sequence numbers.
    pub(super) incarnation: u32,
    pub(super) incoming: BTreeMap<u64, Incoming>,
    pub(super) flows: BTreeMap<Flow, Vec<u64>>,
    pub(super) next_incoming: u64,
    /// Bytes of incoming connections in memory.
    pub(super) incoming_bytes: u64,
    /// Incoming connections that owe an answer.
    pub(super) answers: BTreeSet<u64>,
    /// Incoming connections that owe a negative acknowledgement.
    pub(super) nacks: BTreeSet<u64>,
    pub(super) replies: VecDeque<(PeerId, Packet)>,
    pub(super) closed: ClosedConnections,
    pub(super) deadlines: Deadlines<(Side, u64)>,
    /// Connections and segments whose timers begin when a packet has left.
    pub(super) tokens: BTreeMap<u64, (u64, Option<u64>)>,
    pub(super) next_token: u64,
    /// Measured bit-error rates of what comes from peers.
    pub(super) error_rates: BTreeMap<PeerId, ErrorRate>,
    /// Lengths and strength of what goes to the configured peer.
    pub(super) path: Path,
    pub(super) code: VandermondeCode,
    /// Time at which the endpoint was opened.
    pub(super) opened_at: Instant,
    /// Time at which the configured peer was last heard.
    pub(super) heard_at: Option<Instant>,
    pub(super) counters: Counters,
}

impl Endpoint {
    /// Creates an endpoint with one peer, which is opened on request.
    pub fn new(config: Config, mut rng: Rng) -> Self {
        Endpoint {
            backoff: Backoff::new(config.retry_min, config.retry_max),
            pacer: Pacer::new(config.rate_bps, config.burst),
            path: Path::new(&config, config.packet_bytes, config.bit_error_rate_initial),
            config,
            listening: false,
            state: State::Closed,
            wanted: false,
            over: false,
            carrier_is_lost: false,
            timers: Timers::new(),
            peer: None,
            packet_bytes: 0,
            room: 0,
            orders: VecDeque::new(),
            release: 0,
            up: VecDeque::new(),
            outgoing: BTreeMap::new(),
            outgoing_bytes: 0,
            by_ports: BTreeMap::new(),
            sendable: BTreeSet::new(),
            turns: 0,
            rooms: BTreeSet::new(),
            starved: BTreeSet::new(),
            incarnation: rng.next_u32(),
            incoming: BTreeMap::new(),
            flows: BTreeMap::new(),
            next_incoming: 0,
            incoming_bytes: 0,
            answers: BTreeSet::new(),
            nacks: BTreeSet::new(),
            replies: VecDeque::new(),
            closed: ClosedConnections::default(),
            deadlines: Deadlines::new(),
            tokens: BTreeMap::new(),
            next_token: 0,
            error_rates: BTreeMap::new(),
            code: block_sender::code(),
            opened_at: Instant::ZERO,
            heard_at: None,
            counters: Counters::default(),
        }
    }

    /// Creates an endpoint to which any peer may send; the provider opens it.
    pub fn listening(config: Config, rng: Rng) -> Self {
        Endpoint { listening: true, ..Endpoint::new(config, rng) }
    }

    /// Counters since the creation of the endpoint.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns true if no outgoing connection is open.
    pub fn is_idle(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Bit-error rate that the peer has stated of what this side has sent, or the initial one.
    pub fn bit_error_rate(&self) -> f64 {
        self.path.bit_error_rate
    }

    // -- Up and down --------------------------------------------------------------------------------------------

    /// Returns true if nothing can leave, so that no timer runs.
    pub(super) fn is_paused(&self) -> bool {
        self.state != State::Up || self.carrier_is_lost
    }

    fn join(&mut self) {
        self.timers.stop(Timer::Retry as usize);
        self.state = State::Joining;
        self.orders.push_back(DatagramsRequest::Join { damaged: true });
    }

    fn joined(&mut self, now: Instant, bytes_max: u64, peer: Option<PeerId>) {
        let expected = if self.listening { State::Closed } else { State::Joining };
        if self.state != expected {
            return;
        }
        self.state = State::Up;
        self.carrier_is_lost = false;
        self.counters.joined += 1;
        self.packet_bytes = bytes_max.min(self.config.packet_bytes);
        // An endpoint for shorter datagrams than a report needs carries no connections.
        self.peer = peer.filter(|_| self.packet_bytes >= PACKET_BYTES_MIN);
        self.pacer.restart(now);
        (self.opened_at, self.heard_at) = (now, None);
        self.set_path(self.config.bit_error_rate_initial);
        let message_bytes_max = match self.peer {
            Some(_) => payload_bytes_max(self.packet_bytes, 0, false),
            None => 0,
        };
        self.up.push_back(ConnectionsIndication::Up { message_bytes_max });
    }

    pub(super) fn set_path(&mut self, bit_error_rate: f64) {
        let packet_bytes = if self.packet_bytes == 0 { self.config.packet_bytes } else { self.packet_bytes };
        self.path = Path::new(&self.config, packet_bytes, bit_error_rate);
    }

    fn down(&mut self, now: Instant, reason: DownReason, failure: ConnectionFailure, retry: bool) {
        let was_up = self.state == State::Up;
        self.state = State::Closed;
        self.timers.stop_all();
        (self.room, self.release, self.packet_bytes, self.peer) = (0, 0, 0, None);
        let outgoing: Vec<_> = self.outgoing.keys().copied().collect();
        outgoing.into_iter().for_each(|connection| self.fail(connection, failure));
        let incoming: Vec<_> = self.incoming.keys().copied().collect();
        incoming.into_iter().for_each(|incoming| self.lose(now, incoming));
        self.replies.clear();
        self.tokens.clear();
        // The numbers of other peers are not valid on another endpoint.
        self.closed.keep_configured();
        self.error_rates.clear();
        if was_up || !self.listening {
            self.up.push_back(ConnectionsIndication::Down { reason, retry });
        }
    }

    fn left(&mut self, now: Instant, reason: CloseReason) {
        if self.state == State::Closed {
            return;
        }
        self.counters.failed += 1;
        let retry = self.wanted && !self.listening;
        self.down(now, DownReason::Stream(reason), ConnectionFailure::Down(reason), retry);
        if retry {
            self.timers.set(Timer::Retry as usize, now + self.backoff.fail());
        }
        self.over = self.listening;
    }

    /// Closes the endpoint if the peer has sent nothing at all for the time after which a connection fails.
    fn check_silence(&mut self, now: Instant) {
        let was_heard = self.heard_at.is_some_and(|at| now < at + self.config.silence_limit);
        if self.state != State::Up || self.listening || was_heard {
            return;
        }
        self.orders.clear();
        self.orders.push_back(DatagramsRequest::Leave);
        let retry = self.wanted;
        self.down(now, DownReason::KeepAlive, ConnectionFailure::Silent, retry);
        if retry {
            self.timers.set(Timer::Retry as usize, now + self.backoff.fail());
        }
    }

    fn close(&mut self, now: Instant) {
        let wanted = core::mem::replace(&mut self.wanted, false);
        if self.state != State::Closed {
            self.orders.clear();
            self.orders.push_back(DatagramsRequest::Leave);
            self.over = self.listening;
        } else if !wanted {
            return;
        }
        self.down(now, DownReason::Closed, ConnectionFailure::NotUp, false);
    }

    fn pause(&mut self) {
        for (number, connection) in &mut self.outgoing {
            self.deadlines.set((Side::Sender, *number), &mut connection.deadline, None);
        }
        for (number, connection) in &mut self.incoming {
            self.deadlines.set((Side::Receiver, *number), &mut connection.deadline, None);
        }
    }

    /// Continues all connections at once: each receiver states what it has.
    fn resume(&mut self, now: Instant) {
        self.pacer.restart(now);
        self.closed.restart(now);
        let outgoing: Vec<_> = self.outgoing.keys().copied().collect();
        for number in outgoing {
            self.outgoing.get_mut(&number).expect("just listed").resume(now, &self.config);
            self.refresh_outgoing(number);
        }
        let incoming: Vec<_> = self.incoming.keys().copied().collect();
        for number in incoming {
            self.incoming.get_mut(&number).expect("just listed").resume(now, &self.config);
            self.refresh_incoming(number);
        }
    }

    // -- Outgoing connections -----------------------------------------------------------------------------------

    fn open(&mut self, now: Instant, connection: u64, properties: ConnectionProperties) {
        let ports = (properties.source_port, properties.destination_port);
        let failure = if self.state != State::Up || self.peer.is_none() {
            ConnectionFailure::NotUp
        } else if self.outgoing.len() >= self.config.outgoing_max {
            ConnectionFailure::NoResources
        } else if self.by_ports.contains_key(&ports) {
            ConnectionFailure::InUse
        } else {
            let first = self.incarnation << FIRST_BITS;
            self.incarnation = self.incarnation.wrapping_add(1);
            let mut outgoing = Outgoing::new(now, properties, first, &self.config, &self.code);
            self.turns += 1;
            outgoing.turn = self.turns;
            self.outgoing.insert(connection, outgoing);
            self.by_ports.insert(ports, connection);
            self.counters.connections_opened += 1;
            self.refresh_outgoing(connection);
            return;
        };
        self.up.push_back(ConnectionsIndication::Failed { connection, reason: failure });
    }

    fn data(&mut self, now: Instant, connection: u64, data: Bytes, last: bool) {
        let Some(outgoing) = self.outgoing.get_mut(&connection) else { return };
        assert!(!outgoing.buffer.is_ended, "data after the end of connection {connection}");
        outgoing.told = outgoing.told.saturating_sub(data.len() as u64);
        let held = outgoing.held_bytes();
        outgoing.buffer.push(data, last);
        outgoing.plan(now, &self.config);
        self.account_outgoing(connection, held);
        self.settle_outgoing(connection);
    }

    /// Returns a connection, and the bytes that it has in memory, for [`account_outgoing`](Self::account_outgoing).
    pub(super) fn outgoing_mut(&mut self, connection: u64) -> Option<(&mut Outgoing, u64)> {
        let outgoing = self.outgoing.get_mut(&connection)?;
        let held = outgoing.held_bytes();
        Some((outgoing, held))
    }

    /// Accounts for a change of the bytes that a connection has in memory; `held` is the number before.
    pub(super) fn account_outgoing(&mut self, connection: u64, held: u64) {
        if let Some(outgoing) = self.outgoing.get(&connection) {
            self.outgoing_bytes = self.outgoing_bytes + outgoing.held_bytes() - held;
        } else {
            self.outgoing_bytes -= held;
        }
        if self.outgoing_bytes < self.config.outgoing_bytes_max {
            self.rooms.append(&mut self.starved);
        }
        self.rooms.insert(connection);
    }

    /// Ends a connection that is over, or updates its place among the others.
    pub(super) fn settle_outgoing(&mut self, connection: u64) {
        let Some(outgoing) = self.outgoing.get_mut(&connection) else { return };
        let up_to = outgoing.accepted_bytes();
        if outgoing.is_over() {
            return self.end_outgoing(connection, ConnectionsIndication::Sent { connection });
        }
        if up_to > outgoing.told_accepted && outgoing.properties.service.acknowledges() {
            outgoing.told_accepted = up_to;
            self.up.push_back(ConnectionsIndication::Acknowledged { connection, up_to });
        }
        self.refresh_outgoing(connection);
    }

    pub(super) fn refresh_outgoing(&mut self, connection: u64) {
        let is_paused = self.is_paused();
        let Some(outgoing) = self.outgoing.get_mut(&connection) else { return };
        let deadline = outgoing.next_deadline().filter(|_| !is_paused);
        self.deadlines.set((Side::Sender, connection), &mut outgoing.deadline, deadline);
        let urgency = u8::MAX - outgoing.properties.precedence as u8;
        let wanted = outgoing.wants(&self.config).map(|is_again| (urgency, !is_again, outgoing.turn));
        if wanted != outgoing.listed {
            outgoing.listed.into_iter().for_each(|place| _ = self.sendable.remove(&(place, connection)));
            wanted.into_iter().for_each(|place| _ = self.sendable.insert((place, connection)));
            outgoing.listed = wanted;
        }
        self.rooms.insert(connection);
    }

    fn end_outgoing(&mut self, connection: u64, last: ConnectionsIndication) {
        let Some(mut outgoing) = self.outgoing.remove(&connection) else { return };
        let properties = outgoing.properties;
        self.by_ports.remove(&(properties.source_port, properties.destination_port));
        self.deadlines.set((Side::Sender, connection), &mut outgoing.deadline, None);
        outgoing.listed.into_iter().for_each(|place| _ = self.sendable.remove(&(place, connection)));
        self.account_outgoing(connection, outgoing.held_bytes());
        self.rooms.remove(&connection);
        self.starved.remove(&connection);
        match last {
            ConnectionsIndication::Sent { .. } => self.counters.connections_sent += 1,
            _ => self.counters.connections_failed += 1,
        }
        self.up.push_back(last);
    }

    pub(super) fn fail(&mut self, connection: u64, reason: ConnectionFailure) {
        self.end_outgoing(connection, ConnectionsIndication::Failed { connection, reason });
    }

    /// Ends a connection and tells its receiver, which waits in vain otherwise.
    fn withdraw(&mut self, now: Instant, connection: u64, reason: ConnectionFailure) {
        let Some(outgoing) = self.outgoing.get(&connection) else { return };
        let header = outgoing.header(now, Kind::Withdrawal, outgoing.next().saturating_sub(1));
        let to = self.peer.expect("an endpoint with outgoing connections has a peer");
        self.reply(to, Packet { header, payload: Bytes::new() });
        self.fail(connection, reason);
    }

    /// Returns the next room that has changed.
    fn next_room(&mut self) -> Option<ConnectionsIndication> {
        while let Some(connection) = self.rooms.pop_first() {
            let Some(outgoing) = self.outgoing.get_mut(&connection) else { continue };
            let left = self.config.outgoing_bytes_max.saturating_sub(self.outgoing_bytes);
            let payload_bytes = match outgoing.properties.service {
                TransportService::Adaptive => self.path.symbol_bytes() as u64,
                service => self.config.payload_bytes(service, self.path.packet_bytes),
            };
            // One segment may exceed the limit.
            let left = if self.outgoing_bytes == 0 { left.max(payload_bytes) } else { left };
            let bytes = outgoing.room(left, payload_bytes);
            if bytes == 0 && left < payload_bytes {
                self.starved.insert(connection);
            }
            // Small changes would only cost processing time.
            let is_worth_it = bytes == 0
                || outgoing.told == 0
                || bytes >= outgoing.told + payload_bytes
                || bytes < outgoing.told;
            if bytes != outgoing.told && is_worth_it {
                outgoing.told = bytes;
                return Some(ConnectionsIndication::Room { connection, bytes });
            }
        }
        None
    }

    // -- Incoming connections -----------------------------------------------------------------------------------

    fn accept(&mut self, now: Instant, number: u64, up_to: u64) {
        let Some(incoming) = self.incoming.get_mut(&number) else { return };
        let held = incoming.held_bytes();
        incoming.accept(now, up_to, &self.config);
        self.account_incoming(number, held);
        self.settle_incoming(now, number);
    }

    fn refuse(&mut self, now: Instant, number: u64, reason: RefuseReason) {
        let Some(incoming) = self.incoming.get(&number) else { return };
        let closed = incoming.closed(Some(reason));
        let (flow, properties) = (incoming.flow, incoming.properties);
        self.counters.refused += 1;
        self.end_incoming(now, number, Some(closed));
        self.reply_refusal(flow, &properties, closed.first, reason);
    }

    pub(super) fn account_incoming(&mut self, number: u64, held: u64) {
        let now_held = self.incoming.get(&number).map_or(0, Incoming::held_bytes);
        self.incoming_bytes = self.incoming_bytes + now_held - held;
    }

    /// Ends a connection that is over, or updates its timers.
    pub(super) fn settle_incoming(&mut self, now: Instant, number: u64) {
        let Some(incoming) = self.incoming.get(&number) else { return };
        if !incoming.is_over() {
            return self.refresh_incoming(number);
        }
        let closed = incoming.closed(None);
        let (flow, properties, echo) = (incoming.flow, incoming.properties, incoming.echo);
        let is_answered = properties.service.acknowledges() || properties.service.has_nacks();
        self.counters.connections_received += 1;
        self.end_incoming(now, number, Some(closed));
        if is_answered {
            self.reply_end(flow, &properties, closed.last(), echo.unwrap_or(0));
        }
    }

    pub(super) fn refresh_incoming(&mut self, number: u64) {
        let is_paused = self.is_paused();
        let Some(incoming) = self.incoming.get_mut(&number) else { return };
        let deadline = incoming.next_deadline().filter(|_| !is_paused);
        self.deadlines.set((Side::Receiver, number), &mut incoming.deadline, deadline);
        let set = |set: &mut BTreeSet<u64>, is_in: bool| {
            if is_in { set.insert(number) } else { set.remove(&number) }
        };
        set(&mut self.answers, incoming.answer_due);
        set(&mut self.nacks, incoming.has_nacks());
    }

    /// Forgets a connection, but not that it existed if `closed` is to be remembered.
    fn end_incoming(&mut self, now: Instant, number: u64, closed: Option<Closed>) {
        let Some(mut incoming) = self.incoming.remove(&number) else { return };
        self.deadlines.set((Side::Receiver, number), &mut incoming.deadline, None);
        self.answers.remove(&number);
        self.nacks.remove(&number);
        self.incoming_bytes -= incoming.held_bytes();
        if let Some(numbers) = self.flows.get_mut(&incoming.flow) {
            numbers.retain(|other| *other != number);
            if numbers.is_empty() {
                self.flows.remove(&incoming.flow);
            }
        }
        if let Some(closed) = closed {
            self.closed.remember(now, incoming.flow, closed, self.config.closed_max);
        }
    }

    pub(super) fn lose(&mut self, now: Instant, number: u64) {
        let Some(incoming) = self.incoming.get(&number) else { return };
        let end_was_told = incoming.end_was_told;
        // It does not begin again: the user may have had all of it. Single messages may be rarer than the limit of silence.
        let begins_again = incoming.properties.service.keeps_messages();
        let closed = incoming.closed(Some(RefuseReason::SessionTerminating));
        self.end_incoming(now, number, (!begins_again).then_some(closed));
        if !end_was_told {
            self.counters.connections_lost += 1;
            self.up.push_back(ConnectionsIndication::Lost { incoming: number });
        }
    }

    // -- Answers to single packets ------------------------------------------------------------------------------

    /// Header of an answer to the sender of a connection.
    pub(super) fn answer_header(&self, flow: Flow, properties: &ConnectionProperties, kind: Kind) -> Header {
        Header {
            source_port: flow.2,
            destination_port: flow.1,
            kind,
            service: properties.service,
            precedence: properties.precedence,
            header_in_code: false,
            in_blocks: false,
            strength: 0,
            flags: Flags::NONE,
            sequence: 0,
            timestamp: 0,
            length: 0,
        }
    }

    pub(super) fn reply(&mut self, to: PeerId, packet: Packet) {
        if self.replies.len() < REPLIES_MAX {
            self.replies.push_back((to, packet));
        } else {
            self.counters.dropped += 1;
        }
    }

    /// Tells the sender that all of a connection is accepted.
    pub(super) fn reply_end(
        &mut self,
        flow: Flow,
        properties: &ConnectionProperties,
        sequence: u32,
        echo: u32,
    ) {
        let flags = Flags::ASYNACK.with(Flags::AFINACK).with(Flags::PARITY_OR_UP_TO);
        let header = self.answer_header(flow, properties, Kind::Acknowledgement);
        let header = Header { flags, sequence, timestamp: echo, ..header };
        self.reply(flow.0, Packet { header, payload: Bytes::new() });
    }

    pub(super) fn reply_refusal(
        &mut self,
        flow: Flow,
        properties: &ConnectionProperties,
        sequence: u32,
        reason: RefuseReason,
    ) {
        let header = Header { sequence, ..self.answer_header(flow, properties, Kind::Refusal) };
        self.reply(flow.0, Packet { header, payload: Bytes::copy_from_slice(&[reason.code()]) });
    }

    /// Bit-error rate of what comes from a peer.
    pub(super) fn error_rate(&mut self, peer: PeerId) -> &mut ErrorRate {
        if self.error_rates.len() >= PEERS_MAX && !self.error_rates.contains_key(&peer) {
            self.error_rates.pop_first();
        }
        let initial = self.config.bit_error_rate_initial;
        self.error_rates.entry(peer).or_insert_with(|| ErrorRate::new(initial))
    }

    // -- Timers -------------------------------------------------------------------------------------------------

    fn sender_is_due(&mut self, now: Instant, connection: u64) {
        let config = self.config.clone();
        let Some((outgoing, held)) = self.outgoing_mut(connection) else { return };
        outgoing.deadline = None;
        match outgoing.expire(now, &config) {
            Expiry::Timeouts(timeouts) => {
                self.counters.timeouts += timeouts;
                self.account_outgoing(connection, held);
                self.settle_outgoing(connection);
            }
            Expiry::Over => self.end_outgoing(connection, ConnectionsIndication::Sent { connection }),
            Expiry::Silent => {
                self.counters.silent += 1;
                self.withdraw(now, connection, ConnectionFailure::Silent);
                self.check_silence(now);
            }
        }
    }

    fn receiver_is_due(&mut self, now: Instant, number: u64) {
        let config = self.config.clone();
        let Some(incoming) = self.incoming.get_mut(&number) else { return };
        let held = incoming.held_bytes();
        incoming.deadline = None;
        let is_silent = incoming.expire(now, &config);
        self.account_incoming(number, held);
        if is_silent {
            self.counters.silent += 1;
            return self.lose(now, number);
        }
        self.deliver(now, number);
    }
}

impl Engine for Endpoint {
    type Above = Connections;
    type Below = Datagrams;

    fn handle_request(&mut self, now: Instant, request: ConnectionsRequest) {
        match request {
            ConnectionsRequest::Connect => {
                self.wanted = true;
                if self.state == State::Closed && !self.listening {
                    self.backoff.succeed();
                    self.join();
                }
            }
            ConnectionsRequest::Open { connection, properties } => self.open(now, connection, properties),
            ConnectionsRequest::Data { connection, data, last } => self.data(now, connection, data, last),
            ConnectionsRequest::Cancel { connection } => {
                self.withdraw(now, connection, ConnectionFailure::Cancelled);
            }
            ConnectionsRequest::Accept { incoming, up_to } => self.accept(now, incoming, up_to),
            ConnectionsRequest::Refuse { incoming, reason } => self.refuse(now, incoming, reason),
            ConnectionsRequest::Close => self.close(now),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: DatagramsIndication) {
        match indication {
            DatagramsIndication::Joined { bytes_max, peer, .. } => self.joined(now, bytes_max, peer),
            DatagramsIndication::Room(room) => self.room = room,
            DatagramsIndication::Datagram { from, bytes, .. } => {
                if self.state == State::Up {
                    self.release += bytes.len() as u64;
                    self.hear(now, from, &bytes);
                }
            }
            DatagramsIndication::Carrier(true) => {
                if core::mem::take(&mut self.carrier_is_lost) && self.state == State::Up {
                    self.resume(now);
                }
            }
            DatagramsIndication::Carrier(false) => {
                self.carrier_is_lost = true;
                self.pause();
            }
            DatagramsIndication::Transmitted(token) => self.transmitted(now, token),
            DatagramsIndication::Left(reason) => self.left(now, reason),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timers.expire(Timer::Pace as usize, now);
        if self.timers.expire(Timer::Retry as usize, now) && self.wanted {
            self.join();
        }
        while let Some((side, number)) = self.deadlines.pop_due(now) {
            match side {
                Side::Sender => self.sender_is_due(now, number),
                Side::Receiver => self.receiver_is_due(now, number),
            }
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<ConnectionsIndication> {
        self.up.pop_front().or_else(|| self.next_room())
    }

    fn poll_request(&mut self, now: Instant) -> Option<DatagramsRequest> {
        if let Some(order) = self.orders.pop_front() {
            return Some(order);
        }
        if self.release > 0 {
            return Some(DatagramsRequest::Release(core::mem::take(&mut self.release)));
        }
        self.next_datagram(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next().into_iter().chain(self.deadlines.next()).min()
    }

    fn finished(&self) -> bool {
        self.over && self.up.is_empty() && self.orders.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("aerotp").count(&self.counters).tell("up", self.state == State::Up);
        part.tell("connections_outgoing", self.outgoing.len());
        part.tell("connections_incoming", self.incoming.len());
        part.tell("bytes_outgoing", self.outgoing_bytes).tell("bytes_incoming", self.incoming_bytes);
        part.tell("bytes_unsent", self.outgoing.values().map(Outgoing::unsent_bytes).sum::<u64>());
        part.tell("bit_error_rate", format!("{:.1e}", self.path.bit_error_rate));
        part.tell("strength", u64::from(self.path.choice.strength));
    }
}
