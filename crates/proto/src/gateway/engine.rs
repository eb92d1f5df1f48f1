//! The engine of a gateway.

use super::association::{
    Association, DATAGRAM_BYTES_MAX, Incoming, Programs as Associations, format_of, framed, kind_of,
};
use super::config::{Config, PORTS};
use crate::engine::Engine;
use crate::observe::{Observation, Part};
use crate::rng::Rng;
use crate::service::{
    CloseReason, ConnectionProperties, Connections, ConnectionsIndication, ConnectionsRequest, ProgramId,
    ProgramKind, Programs, ProgramsIndication, ProgramsRequest, RefuseReason,
};
use crate::time::Instant;
use bytes::{Buf, Bytes};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// First port of own connections (RFC 6335 6). Those that programs answer are lower.
const FIRST_OWN_PORT: u16 = 49_152;

/// Counters of a gateway.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Connections of programs on this side.
    pub gateway_opened: u64,
    /// Connections of programs at the peer.
    pub gateway_answered: u64,
    /// Connections refused for lack of room, or because no program answers.
    pub gateway_refused: u64,
    /// Connections that ended with a reset.
    pub gateway_reset: u64,
    /// Bytes of programs on this side that were passed to the link.
    pub gateway_sent_bytes: u64,
    /// Bytes passed to programs on this side.
    pub gateway_received_bytes: u64,
    /// Datagrams dropped because too many waited, or because they are too long.
    pub gateway_dropped: u64,
    /// Gaps in flows.
    pub gateway_gaps: u64,
}

/// The gateway of one peer. See the [module](super).
#[derive(Debug)]
pub struct Gateway {
    config: Config,
    is_up: bool,
    /// Connections of the peer are answered.
    listens: bool,
    /// Maximum length of a message, where messages are kept.
    message_bytes_max: u64,
    programs: Associations,
    /// Programs by the numbers of their own flows.
    connections: BTreeMap<u64, ProgramId>,
    /// Programs by the numbers of the flows from the peer.
    incoming: BTreeMap<u64, ProgramId>,
    /// Programs by their own port and that of the peer.
    ports: BTreeMap<(u16, u16), ProgramId>,
    /// Flows from the peer whose first octet has not arrived.
    unformatted: BTreeMap<u64, ConnectionProperties>,
    next_connection: u64,
    next_program: u64,
    next_port: u16,
    /// Programs that may have something to send.
    ready: VecDeque<ProgramId>,
    /// Time of the next signs of life.
    keepalive_at: Option<Instant>,
    down: VecDeque<ConnectionsRequest>,
    up: VecDeque<ProgramsIndication>,
    counters: Counters,
}

impl Gateway {
    /// Creates a gateway. It numbers its connections from `first_connection` on.
    pub fn new(config: Config, first_connection: u64, mut rng: Rng) -> Self {
        Gateway {
            config,
            is_up: false,
            listens: false,
            message_bytes_max: 0,
            programs: Associations::new(),
            connections: BTreeMap::new(),
            incoming: BTreeMap::new(),
            ports: BTreeMap::new(),
            unformatted: BTreeMap::new(),
            next_connection: first_connection,
            next_program: ProgramId::FIRST_OPENED,
            // The peer may remember the ports of an earlier start.
            next_port: rng.below(PORTS.into()) as u16,
            ready: VecDeque::new(),
            keepalive_at: None,
            down: VecDeque::new(),
            up: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Returns true if the endpoint is open.
    pub fn is_up(&self) -> bool {
        self.is_up
    }

    fn is_full(&self) -> bool {
        self.programs.len() + self.unformatted.len() >= self.config.programs_max
    }

    /// Opens the connection of a program on this side.
    fn arrive(&mut self, program: ProgramId, kind: ProgramKind, properties: ConnectionProperties) {
        if !self.is_up || self.is_full() {
            self.counters.gateway_refused += 1;
            return self.up.push_back(ProgramsIndication::Abort { program });
        }
        let source_port = self.free_port(properties.destination_port);
        let properties = ConnectionProperties { source_port, ..properties };
        self.counters.gateway_opened += 1;
        let mut association = Association::new(kind, properties);
        association.is_open = true;
        self.enter(program, association);
        self.open_flow(program);
    }

    /// Own port that no other connection to this port has: there are more than connections.
    fn free_port(&mut self, to_port: u16) -> u16 {
        loop {
            let port = FIRST_OWN_PORT + self.next_port;
            self.next_port = (self.next_port + 1) % PORTS;
            if !self.ports.contains_key(&(port, to_port)) {
                return port;
            }
        }
    }

    fn enter(&mut self, program: ProgramId, association: Association) {
        self.ports.insert(association.ports(), program);
        self.programs.insert(program, association);
    }

    /// Opens the flow of a program to the peer.
    fn open_flow(&mut self, program: ProgramId) {
        let Some(association) = self.programs.get_mut(&program) else { return };
        let connection = self.next_connection;
        self.next_connection += 1;
        let properties = association.properties;
        let outgoing = &mut association.outgoing;
        outgoing.connection = Some(connection);
        outgoing.format = format_of(association.kind, properties.service);
        self.connections.insert(connection, program);
        self.down.push_back(ConnectionsRequest::Open { connection, properties });
    }

    /// Puts a program on the list of those that may have something to send.
    fn wake(&mut self, program: ProgramId) {
        if let Some(association) = self.programs.get_mut(&program)
            && !core::mem::replace(&mut association.is_ready, true)
        {
            self.ready.push_back(program);
        }
    }

    /// Starts the timer of the signs of life if it does not run.
    fn start_keepalive(&mut self, now: Instant) {
        let is_idle = self.programs.is_empty() && self.keepalive_at.is_some_and(|at| at <= now);
        if self.keepalive_at.is_none() || is_idle {
            self.keepalive_at = Some(now + self.config.keepalive);
        }
    }

    /// Hears bytes or a datagram of a program.
    fn hear_program(&mut self, program: ProgramId, bytes: Bytes) {
        let Some(association) = self.programs.get_mut(&program) else { return };
        if association.outgoing.is_finished {
            return;
        }
        match association.kind {
            ProgramKind::Stream => association.outgoing.push(bytes),
            ProgramKind::Datagrams => {
                let length = bytes.len() as u64;
                let keeps_messages = association.properties.service.keeps_messages();
                let length_max =
                    if keeps_messages { self.message_bytes_max } else { DATAGRAM_BYTES_MAX as u64 };
                // An empty message would be none.
                let mut dropped = u64::from(length > length_max || (keeps_messages && bytes.is_empty()));
                if dropped == 0 {
                    let entry = if keeps_messages { bytes } else { framed(&bytes) };
                    association.outgoing.push(entry);
                    dropped += association.outgoing.drop_above(self.config.datagram_queue_bytes_max);
                }
                let needs_flow = association.outgoing.connection.is_none() && association.outgoing.queued > 0;
                self.counters.gateway_dropped += dropped;
                // Datagrams in memory are bounded by the queue.
                self.up.push_back(ProgramsIndication::Release { program, bytes: length });
                if needs_flow {
                    self.open_flow(program);
                }
            }
        }
        self.wake(program);
    }

    /// The connection to a program stands, or the flow of its peer begins: what has waited is passed on.
    fn opened(&mut self, program: ProgramId) {
        let Some(association) = self.programs.get_mut(&program).filter(|found| !found.is_open) else {
            return;
        };
        association.is_open = true;
        if association.kind == ProgramKind::Stream {
            self.open_flow(program);
            self.wake(program);
        }
        let Some(incoming) = self.programs.get_mut(&program).and_then(|found| found.incoming.as_mut()) else {
            return;
        };
        let waiting = core::mem::take(&mut incoming.waiting);
        for (bytes, damaged) in waiting {
            self.counters.gateway_received_bytes += bytes.len() as u64;
            self.up.push_back(ProgramsIndication::Data { program, bytes, damaged });
        }
        self.accept(program, 0);
        self.tell_end(program);
    }

    /// Bytes of the flow from the peer were passed to the program: they are accepted, with headers before the next ones.
    fn accept(&mut self, program: ProgramId, bytes: u64) {
        let Some(association) = self.programs.get_mut(&program).filter(|found| found.is_open) else { return };
        let Some(incoming) = &mut association.incoming else { return };
        let before = incoming.accepted;
        let up_to = incoming.write(bytes);
        debug_assert!(up_to <= incoming.received, "no more is written than has arrived");
        if up_to > before {
            self.down.push_back(ConnectionsRequest::Accept { incoming: incoming.id, up_to });
        }
        self.settle(program);
    }

    /// Tells a program the end of the flow from the peer, once.
    fn tell_end(&mut self, program: ProgramId) {
        let Some(association) = self.programs.get_mut(&program) else { return };
        let Some(incoming) = association.incoming.as_mut().filter(|_| association.is_open) else { return };
        if incoming.has_ended && !core::mem::replace(&mut incoming.end_is_told, true) {
            self.up.push_back(ProgramsIndication::Finish { program });
        }
        self.settle(program);
    }

    /// Handles the end of a program's connection.
    fn closed(&mut self, program: ProgramId, reason: CloseReason) {
        let Some(association) = self.programs.get_mut(&program) else { return };
        if reason != CloseReason::Finished || !association.is_open {
            if !association.is_open {
                self.counters.gateway_refused += 1;
            }
            return self.fail(program, false);
        }
        association.is_closed = true;
        self.finish(program);
    }

    /// The program sends no more.
    fn finish(&mut self, program: ProgramId) {
        let Some(association) = self.programs.get_mut(&program) else { return };
        association.outgoing.is_finished = true;
        // A flow that never began needs no end.
        association.outgoing.is_done |= association.outgoing.connection.is_none();
        self.wake(program);
        self.settle(program);
    }

    /// Ends a connection with a reset, towards the peer and, unless it has closed, towards the program.
    fn fail(&mut self, program: ProgramId, tells: bool) {
        let Some(association) = self.remove(program) else { return };
        self.counters.gateway_reset += 1;
        if let Some(connection) = association.outgoing.connection.filter(|_| !association.outgoing.is_done) {
            self.down.push_back(ConnectionsRequest::Cancel { connection });
        }
        if let Some(incoming) = association.incoming.filter(|incoming| !incoming.is_done()) {
            let (incoming, reason) = (incoming.id, RefuseReason::NotAcceptable);
            self.down.push_back(ConnectionsRequest::Refuse { incoming, reason });
        }
        if tells && !association.is_closed {
            self.up.push_back(ProgramsIndication::Abort { program });
        }
    }

    /// Forgets a connection for which nothing is left to do.
    fn settle(&mut self, program: ProgramId) {
        if self.programs.get(&program).is_some_and(Association::is_over) {
            self.remove(program);
        }
    }

    fn remove(&mut self, program: ProgramId) -> Option<Association> {
        let association = self.programs.remove(&program)?;
        self.ports.remove(&association.ports());
        if let Some(connection) = association.outgoing.connection {
            self.connections.remove(&connection);
        }
        if let Some(incoming) = &association.incoming {
            self.incoming.remove(&incoming.id);
        }
        if association.is_ready {
            self.ready.retain(|other| *other != program);
        }
        Some(association)
    }

    /// A flow from the peer begins.
    fn begin(&mut self, incoming: u64, properties: ConnectionProperties) {
        let ports = (properties.destination_port, properties.source_port);
        if let Some(program) = self.ports.get(&ports).copied() {
            let association = self.programs.get_mut(&program).expect("ports belong to programs");
            if association.incoming.is_none() {
                association.incoming = Some(Incoming::new(incoming));
                self.incoming.insert(incoming, program);
                return;
            }
            // The peer uses its port again: it has forgotten the connection before.
            self.fail(program, true);
        }
        let is_answer = properties.destination_port >= FIRST_OWN_PORT;
        let is_strange = is_answer || !self.listens || !self.is_up;
        if is_strange || self.is_full() {
            let reason = if is_strange { RefuseReason::NotAcceptable } else { RefuseReason::NoResources };
            return self.refuse(incoming, reason);
        }
        match properties.service.keeps_messages() {
            true => self.answer(incoming, ProgramKind::Datagrams, properties),
            false => drop(self.unformatted.insert(incoming, properties)),
        }
    }

    fn refuse(&mut self, incoming: u64, reason: RefuseReason) {
        self.counters.gateway_refused += 1;
        self.down.push_back(ConnectionsRequest::Refuse { incoming, reason });
    }

    /// Asks for the program that answers a flow of the peer.
    fn answer(&mut self, incoming: u64, kind: ProgramKind, theirs: ConnectionProperties) {
        let program = ProgramId(self.next_program);
        self.next_program += 1;
        self.counters.gateway_answered += 1;
        let port = theirs.destination_port;
        let properties =
            ConnectionProperties { source_port: port, destination_port: theirs.source_port, ..theirs };
        let mut association = Association::new(kind, properties);
        association.incoming = Some(Incoming::new(incoming));
        self.enter(program, association);
        self.incoming.insert(incoming, program);
        self.up.push_back(ProgramsIndication::Open { program, kind, port });
    }

    /// Hears bytes of a flow from the peer.
    fn hear_peer(&mut self, incoming: u64, mut data: Bytes, damaged: bool, last: bool) {
        if let Some(properties) = self.unformatted.get(&incoming).copied() {
            let kind = data.first().copied().and_then(kind_of).filter(|_| !damaged);
            if data.is_empty() && !last {
                return;
            }
            self.unformatted.remove(&incoming);
            let Some(kind) = kind else {
                return self.refuse(incoming, RefuseReason::NotAcceptable);
            };
            self.answer(incoming, kind, properties);
        }
        let Some(program) = self.incoming.get(&incoming).copied() else { return };
        let association = self.programs.get_mut(&program).expect("flows belong to programs");
        let flow = association.incoming.as_mut().expect("it was found by its flow");
        let format = format_of(association.kind, association.properties.service);
        if let Some(format) = format.filter(|_| !flow.has_begun && !data.is_empty()) {
            if damaged || data.get_u8() != format {
                return self.fail(program, true);
            }
            flow.has_begun = true;
            flow.skip(1);
        }
        flow.has_ended |= last;
        match association.kind {
            ProgramKind::Stream if damaged => {
                self.counters.gateway_gaps += 1;
                return self.fail(program, true);
            }
            ProgramKind::Stream => {
                let bytes = flow.chunks(data);
                if bytes.is_empty() {
                    // Only headers, or a sign of life.
                } else if association.is_open {
                    self.counters.gateway_received_bytes += bytes.len() as u64;
                    self.up.push_back(ProgramsIndication::Data { program, bytes, damaged });
                } else {
                    // The sender may have as much under way as the link allows: it is not accepted before the program answers.
                    flow.waiting.push_back((bytes, damaged));
                }
            }
            // What becomes of datagrams does not matter to the peer.
            ProgramKind::Datagrams => {
                flow.skip(data.len() as u64);
                self.hear_datagrams(program, data, damaged);
            }
        }
        self.accept(program, 0);
        self.tell_end(program);
    }

    /// Passes on the datagrams of a flow that are complete.
    fn hear_datagrams(&mut self, program: ProgramId, data: Bytes, damaged: bool) {
        let Some(association) = self.programs.get_mut(&program) else { return };
        let Some(flow) = &mut association.incoming else { return };
        let datagrams = if association.properties.service.keeps_messages() {
            if data.is_empty() { Vec::new() } else { vec![data] }
        } else if damaged {
            self.counters.gateway_gaps += 1;
            flow.reader.gap();
            Vec::new()
        } else {
            flow.reader.read(&data, DATAGRAM_BYTES_MAX)
        };
        for bytes in datagrams {
            if association.is_open {
                self.counters.gateway_received_bytes += bytes.len() as u64;
                self.up.push_back(ProgramsIndication::Data { program, bytes, damaged });
            } else if flow.can_wait(bytes.len(), self.config.datagram_queue_bytes_max) {
                flow.waits += bytes.len() as u64;
                flow.waiting.push_back((bytes, damaged));
            } else {
                self.counters.gateway_dropped += 1;
            }
        }
    }

    /// Bytes of a flow from the peer are missing.
    fn gap(&mut self, incoming: u64) {
        self.counters.gateway_gaps += 1;
        if self.unformatted.remove(&incoming).is_some() {
            // Nobody knows what it carries; the sender begins again.
            return self.refuse(incoming, RefuseReason::NotAcceptable);
        }
        let Some(program) = self.incoming.get(&incoming).copied() else { return };
        let association = self.programs.get_mut(&program).expect("flows belong to programs");
        let flow = association.incoming.as_mut().expect("it was found by its flow");
        match association.kind {
            ProgramKind::Datagrams => {
                flow.has_begun = true;
                flow.reader.gap();
            }
            ProgramKind::Stream => self.fail(program, true),
        }
    }

    /// Bytes of a program are acknowledged, from the beginning of its flow.
    fn acknowledged(&mut self, connection: u64, up_to: u64) {
        let Some(program) = self.connections.get(&connection).copied() else { return };
        let association = self.programs.get_mut(&program).expect("connections belong to programs");
        if association.kind == ProgramKind::Stream {
            self.release(program, up_to);
        }
    }

    fn release(&mut self, program: ProgramId, up_to: u64) {
        let Some(association) = self.programs.get_mut(&program) else { return };
        let outgoing = &mut association.outgoing;
        let bytes = outgoing.of_program(up_to).saturating_sub(outgoing.released);
        outgoing.released += bytes;
        if bytes > 0 && !association.is_closed {
            self.up.push_back(ProgramsIndication::Release { program, bytes });
        }
    }

    /// Takes the next part of a flow to the peer.
    fn next_part(&mut self) -> Option<ConnectionsRequest> {
        while let Some(program) = self.ready.pop_front() {
            let association = self.programs.get_mut(&program).expect("ready programs are known");
            let keeps_messages = association.properties.service.keeps_messages();
            let outgoing = &mut association.outgoing;
            if !outgoing.may_send(keeps_messages) {
                association.is_ready = false;
                continue;
            }
            let connection = outgoing.connection.expect("it may send");
            let queued = outgoing.queued;
            let bytes_max = if keeps_messages { u64::MAX } else { self.config.part_bytes_max };
            let data = outgoing.take(association.kind, bytes_max);
            self.counters.gateway_sent_bytes += queued - outgoing.queued;
            let last = outgoing.is_finished && outgoing.queue.is_empty() && outgoing.format.is_none();
            outgoing.has_ended = last;
            let passed = outgoing.passed;
            self.ready.push_back(program);
            if association.kind == ProgramKind::Stream && !association.properties.service.acknowledges() {
                self.release(program, passed);
            }
            return Some(ConnectionsRequest::Data { connection, data, last });
        }
        None
    }
}

impl Engine for Gateway {
    type Above = Programs;
    type Below = Connections;

    fn handle_request(&mut self, now: Instant, request: ProgramsRequest) {
        self.start_keepalive(now);
        match request {
            ProgramsRequest::Listen => self.listens = true,
            ProgramsRequest::Arrive { program, kind, service, precedence, to_port } => {
                let properties =
                    ConnectionProperties { service, precedence, source_port: 0, destination_port: to_port };
                self.arrive(program, kind, properties);
            }
            ProgramsRequest::Opened { program } => self.opened(program),
            ProgramsRequest::Data { program, bytes } => self.hear_program(program, bytes),
            ProgramsRequest::Written { program, bytes } => self.accept(program, bytes),
            ProgramsRequest::Finish { program } => self.finish(program),
            ProgramsRequest::Closed { program, reason } => self.closed(program, reason),
        }
    }

    fn handle_indication(&mut self, _now: Instant, indication: ConnectionsIndication) {
        match indication {
            ConnectionsIndication::Up { message_bytes_max } => {
                // Without a peer to send to there is no way back, so that no connection can be made.
                self.is_up = message_bytes_max > 0;
                self.message_bytes_max = message_bytes_max;
            }
            ConnectionsIndication::Down { .. } => {
                self.is_up = false;
                self.unformatted.clear();
                while let Some((program, _)) = self.programs.first_key_value() {
                    let program = *program;
                    let Some(association) = self.remove(program) else { continue };
                    self.counters.gateway_reset += 1;
                    if !association.is_closed {
                        self.up.push_back(ProgramsIndication::Abort { program });
                    }
                }
                self.down.clear();
            }
            ConnectionsIndication::Room { connection, bytes } => {
                let Some(program) = self.connections.get(&connection).copied() else { return };
                if let Some(association) = self.programs.get_mut(&program) {
                    association.outgoing.room = bytes;
                }
                self.wake(program);
            }
            ConnectionsIndication::Acknowledged { connection, up_to } => self.acknowledged(connection, up_to),
            ConnectionsIndication::Sent { connection } => {
                let Some(program) = self.connections.remove(&connection) else { return };
                if let Some(association) = self.programs.get_mut(&program) {
                    association.outgoing.is_done = true;
                    if association.kind == ProgramKind::Stream {
                        self.release(program, u64::MAX);
                    }
                }
                self.settle(program);
            }
            ConnectionsIndication::Failed { connection, .. } => {
                let Some(program) = self.connections.remove(&connection) else { return };
                if let Some(association) = self.programs.get_mut(&program) {
                    association.outgoing.is_done = true;
                }
                self.fail(program, true);
            }
            ConnectionsIndication::Begin { incoming, properties } => self.begin(incoming, properties),
            ConnectionsIndication::Data { incoming, data, damaged, last } => {
                self.hear_peer(incoming, data, damaged, last);
            }
            ConnectionsIndication::Gap { incoming, .. } => self.gap(incoming),
            ConnectionsIndication::Lost { incoming } => {
                self.unformatted.remove(&incoming);
                let Some(program) = self.incoming.remove(&incoming) else { return };
                if let Some(association) = self.programs.get_mut(&program) {
                    association.incoming = None;
                }
                self.fail(program, true);
            }
        }
    }

    /// Signs of life are due in flows that had no data since the last time.
    fn handle_timeout(&mut self, now: Instant) {
        if self.keepalive_at.is_none_or(|at| at > now) {
            return;
        }
        self.keepalive_at = None;
        self.start_keepalive(now);
        let mut quiet = Vec::new();
        for (program, association) in &mut self.programs {
            let outgoing = &mut association.outgoing;
            let lives = association.is_open && outgoing.connection.is_some() && !outgoing.has_ended;
            if lives && outgoing.is_unchanged() && !association.properties.service.keeps_messages() {
                outgoing.is_quiet = true;
                quiet.push(*program);
            }
        }
        quiet.into_iter().for_each(|program| self.wake(program));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.keepalive_at.filter(|_| !self.programs.is_empty())
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<ProgramsIndication> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, _now: Instant) -> Option<ConnectionsRequest> {
        self.down.pop_front().or_else(|| self.next_part())
    }

    fn finished(&self) -> bool {
        self.up.is_empty() && self.down.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        let mut part = Part { engine: "gateway", ..Part::default() };
        part.count(&self.counters).tell("gateway_programs", self.programs.len());
        view.parts.push(part);
    }
}
