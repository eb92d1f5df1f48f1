//! Programs that use a gateway: their sockets, and the gateways of the links.
//!
//! A connection has the number that its gateway knows it by, and that of the link. TCP connections have a pump each; datagrams come to
//! the socket on which the node listens, or to one for each sender of the far side.

use super::event::PumpKey;
use super::{EngineParts as _, Task};
use crate::config::GatewaySettings;
use crate::config::gateway::{FLOW_KIND, GatewaySide, service_word};
use crate::pumps::datagram::{Destination, Listening, SocketReport};
use crate::pumps::program;
use crate::pumps::stream::{ByteStream, ConnectionLimits, PumpCommand, PumpEvent};
use crate::pumps::table::{PumpReport, QueueLimit, Source};
use crate::view;
use longwire_proto::engine::Engine;
use longwire_proto::service::{
    CloseReason, DatagramsIndication, DatagramsRequest, LinkId, PeerId, Port, ProgramId, ProgramKind,
    ProgramsIndication, ProgramsRequest, Shares,
};
use longwire_proto::time::Instant;
use longwire_towers::MediaIndication;
use serde::Serialize;
use std::collections::BTreeMap;
use tokio::net::UdpSocket;

/// Kinds of the sockets of gateways, for [`Sockets`](crate::pumps::datagram::Sockets), which assigns datagrams by kind.
const LISTENING: &str = "gateway";
const CONNECTED: &str = "gateway program";

/// Connection of a program, by link and number.
pub(crate) type ProgramKey = (LinkId, ProgramId);

/// Counters of a gateway.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct GatewayCounters {
    /// Connections of programs, and to them.
    connections: u64,
    /// Connections refused because of a limit, or because the link is down or the program is not there.
    refused: u64,
    /// Connections that ended with a reset.
    reset: u64,
    /// Bytes from programs.
    sent_bytes: u64,
    /// Bytes to programs.
    received_bytes: u64,
    /// Datagrams dropped because the socket was full, or they were damaged.
    dropped: u64,
}

/// A connection of a program.
#[derive(Debug)]
struct OpenProgram {
    /// Index of its gateway in the configuration.
    gateway: usize,
    /// Socket, and the sender there; `None` for a TCP connection.
    socket: Option<(LinkId, PeerId)>,
    is_open: bool,
    /// Time of the latest data.
    latest: Instant,
}

/// Use of a socket for datagrams.
#[derive(Clone, Copy, Debug)]
enum SocketUse {
    /// The gateway with this index listens.
    Listening(usize),
    /// It belongs to one program.
    Program(ProgramKey),
}

/// All connections of programs.
#[derive(Debug)]
pub(crate) struct Gateways {
    settings: Vec<GatewaySettings>,
    counters: Vec<GatewayCounters>,
    /// Present problem of each gateway.
    troubles: Vec<Option<String>>,
    programs: BTreeMap<ProgramKey, OpenProgram>,
    sockets: BTreeMap<LinkId, SocketUse>,
    /// Connections by listening socket and sender.
    senders: BTreeMap<(LinkId, PeerId), ProgramKey>,
    next_program: u64,
}

impl Gateways {
    /// The gateways of a configuration.
    pub(crate) fn new(settings: &[GatewaySettings]) -> Self {
        Gateways {
            settings: settings.to_vec(),
            counters: vec![GatewayCounters::default(); settings.len()],
            troubles: vec![None; settings.len()],
            programs: BTreeMap::new(),
            sockets: BTreeMap::new(),
            senders: BTreeMap::new(),
            next_program: 0,
        }
    }

    fn count(&self, gateway: usize) -> usize {
        self.programs.values().filter(|program| program.gateway == gateway).count()
    }

    fn is_full(&self, gateway: usize) -> bool {
        self.count(gateway) >= self.settings[gateway].connections_max
    }

    /// Index of the gateway that answers at a port.
    fn at_port(&self, port: u16, kind: ProgramKind) -> Option<usize> {
        let fits = |gateway: &GatewaySettings| gateway.port == port && gateway.kind() == kind;
        self.settings.iter().position(fits)
    }

    /// Remembers that data came or went; returns false for a connection that is unknown.
    fn moved(&mut self, key: ProgramKey, now: Instant) -> Option<&mut GatewayCounters> {
        let program = self.programs.get_mut(&key)?;
        program.latest = now;
        Some(&mut self.counters[program.gateway])
    }

    pub(super) fn views(&self) -> Vec<view::Gateway> {
        let near = |gateway: &GatewaySettings| matches!(gateway.side(), Some(GatewaySide::Near(_)));
        let all = self.settings.iter().zip(&self.counters).enumerate();
        let flows = all.filter(|(_, (gateway, _))| !gateway.takes_custody());
        flows
            .map(|(index, (gateway, counters))| view::Gateway {
                name: gateway.name(),
                link: near(gateway).then(|| gateway.link.clone()),
                service: near(gateway).then(|| service_word(gateway.service())),
                open: self.count(index) as u64,
                counters: view::counts(counters),
                trouble: self.troubles[index].clone(),
            })
            .collect()
    }
}

/// Reason for the end of a connection, in words.
fn close_word(reason: CloseReason) -> &'static str {
    match reason {
        CloseReason::Refused => "connection refused",
        CloseReason::TimedOut => "timed out",
        CloseReason::Unreachable => "address unreachable",
        _ => "connection reset",
    }
}

impl Task {
    /// Passes a message to the gateway of a link.
    fn tell_gateway(&mut self, now: Instant, link: LinkId, said: ProgramsRequest) {
        let indication = (link, MediaIndication::Programs(said));
        self.engines.handle_indication(now, Port::Second(Port::First(indication)));
    }

    /// Lets programs at the peer of a link connect to those of this side, before the first packet of the peer arrives.
    pub(super) fn answer_programs(&mut self, now: Instant, link: LinkId) {
        let answers = self.gateways.settings.iter().any(|gateway| gateway.port != 0);
        let carries = |about: &longwire_towers::About| about.name == FLOW_KIND;
        if answers && self.engines.neighbours().carrier(link).is_some_and(carries) {
            self.tell_gateway(now, link, ProgramsRequest::Listen);
        }
    }

    /// Link of a gateway, if it has a session.
    fn gateway_link(&self, gateway: usize) -> Option<LinkId> {
        let name = &self.gateways.settings[gateway].link;
        let neighbours = self.engines.neighbours();
        let named = neighbours.links.iter().filter(|(_, known)| known.link.name == *name);
        named.map(|(id, _)| id).max().filter(|id| neighbours.shown(*id).is_some())
    }

    /// Enters the connection of a program that has arrived; `None` if it is refused.
    fn enter_program(
        &mut self,
        now: Instant,
        gateway: usize,
        socket: Option<(LinkId, PeerId)>,
    ) -> Option<ProgramKey> {
        let link = self.gateway_link(gateway);
        let Some(link) = link.filter(|_| !self.gateways.is_full(gateway)) else {
            self.gateways.counters[gateway].refused += 1;
            self.gateways.troubles[gateway] = Some(match link {
                Some(_) => "too many connections".to_owned(),
                None => format!("link `{}` has no session", self.gateways.settings[gateway].link),
            });
            return None;
        };
        self.gateways.troubles[gateway] = None;
        self.gateways.next_program += 1;
        let key = (link, ProgramId(self.gateways.next_program));
        self.gateways.counters[gateway].connections += 1;
        self.gateways.programs.insert(key, OpenProgram { gateway, socket, is_open: true, latest: now });
        Some(key)
    }

    fn arrive(&mut self, now: Instant, (link, program): ProgramKey, gateway: usize) {
        let settings = &self.gateways.settings[gateway];
        let (kind, service) = (settings.kind(), settings.service());
        let (precedence, to_port) = (settings.precedence, settings.to_port);
        self.tell_gateway(now, link, ProgramsRequest::Arrive { program, kind, service, precedence, to_port });
    }

    /// A program has connected to a gateway.
    pub(super) fn hear_program(
        &mut self,
        now: Instant,
        gateway: usize,
        wire: Box<dyn ByteStream>,
        address: String,
    ) {
        // A connection that is refused is dropped, which resets it.
        let Some(key) = self.enter_program(now, gateway, None) else { return };
        self.open_stream(key, address, Source::Stream(wire));
        self.arrive(now, key, gateway);
    }

    fn open_stream(&mut self, key: ProgramKey, address: String, source: Source) {
        let limits = ConnectionLimits {
            bytes: self.configuration.config.stream.small_window_bytes(),
            all: self.connections.receive_budget.clone(),
            patience: self.connections.patience.clone(),
        };
        // The bytes that wait are bounded by those that the gateway has not accepted.
        self.connections.pumps.open(
            PumpKey::Program(key),
            address,
            source,
            limits,
            QueueLimit::Own(u64::MAX),
        );
    }

    /// A gateway listens for datagrams.
    pub(super) fn listen_for_programs(&mut self, gateway: usize, socket: UdpSocket, at: String) {
        let link = self.engines.neighbours_mut().links.caller_ids.next();
        self.gateways.sockets.insert(link, SocketUse::Listening(gateway));
        self.connections.sockets.listen(link, socket, at, LISTENING, Listening::default());
    }

    /// Hears the pump of a program's TCP connection.
    pub(super) fn hear_program_pump(&mut self, now: Instant, key: ProgramKey, said: PumpReport<PumpKey>) {
        let (link, program) = key;
        let written = said.written();
        let event = self.connections.pumps.hear(said);
        let said = match (event, written) {
            (None, Some(bytes)) => {
                self.gateways.moved(key, now);
                ProgramsRequest::Written { program, bytes }
            }
            (Some(PumpEvent::Connected { .. }), _) => {
                let known = self.gateways.programs.get_mut(&key);
                let is_new = known.is_some_and(|known| {
                    self.gateways.troubles[known.gateway] = None;
                    !core::mem::replace(&mut known.is_open, true)
                });
                match is_new {
                    true => ProgramsRequest::Opened { program },
                    false => return,
                }
            }
            (Some(PumpEvent::Data(bytes)), _) => {
                if let Some(counters) = self.gateways.moved(key, now) {
                    counters.sent_bytes += bytes.len() as u64;
                }
                ProgramsRequest::Data { program, bytes }
            }
            (Some(PumpEvent::PeerClosed), _) => ProgramsRequest::Finish { program },
            (Some(PumpEvent::Closed(reason)), _) => return self.end_program(now, key, reason),
            _ => return,
        };
        self.tell_gateway(now, link, said);
    }

    /// The connection of a program is over: its gateway is told.
    fn end_program(&mut self, now: Instant, key: ProgramKey, reason: CloseReason) {
        let Some(known) = self.forget_program(key) else { return };
        let counters = &mut self.gateways.counters[known.gateway];
        match reason {
            _ if !known.is_open => {
                counters.refused += 1;
                self.gateways.troubles[known.gateway] =
                    Some(format!("cannot connect to the program: {}", close_word(reason)));
            }
            CloseReason::Finished => {}
            _ => counters.reset += 1,
        }
        self.tell_gateway(now, key.0, ProgramsRequest::Closed { program: key.1, reason });
    }

    /// Closes the socket of a program and forgets it.
    fn forget_program(&mut self, key: ProgramKey) -> Option<OpenProgram> {
        let known = self.gateways.programs.remove(&key)?;
        match known.socket {
            None => drop(self.connections.pumps.close(PumpKey::Program(key))),
            Some((link, sender)) => {
                self.gateways.senders.remove(&(link, sender));
                if let Some(SocketUse::Program(_)) = self.gateways.sockets.get(&link) {
                    self.gateways.sockets.remove(&link);
                    self.connections.sockets.request(link, DatagramsRequest::Leave, Destination::default);
                }
            }
        }
        Some(known)
    }

    /// Hears the pump of a socket; returns it if it is not that of a gateway.
    pub(super) fn hear_program_socket(&mut self, now: Instant, said: SocketReport) -> Option<SocketReport> {
        let Some(used) = self.gateways.sockets.get(&said.link).copied() else { return Some(said) };
        let socket = said.link;
        for (_, indication) in self.connections.sockets.hear(said) {
            match (indication, used) {
                (DatagramsIndication::Datagram { from, bytes, .. }, _) => {
                    // Datagrams in memory are bounded by the gateway of the link.
                    let release = DatagramsRequest::Release(bytes.len() as u64);
                    self.connections.sockets.request(socket, release, Destination::default);
                    let key = match used {
                        SocketUse::Program(key) => Some(key),
                        SocketUse::Listening(gateway) => self.sender(now, gateway, (socket, from)),
                    };
                    let Some((link, program)) = key else { continue };
                    if let Some(counters) = self.gateways.moved((link, program), now) {
                        counters.sent_bytes += bytes.len() as u64;
                        self.tell_gateway(now, link, ProgramsRequest::Data { program, bytes });
                    }
                }
                (DatagramsIndication::Joined { .. }, SocketUse::Program(key)) => {
                    if let Some(known) = self.gateways.programs.get_mut(&key) {
                        known.is_open = true;
                        self.tell_gateway(now, key.0, ProgramsRequest::Opened { program: key.1 });
                    }
                }
                (DatagramsIndication::Left(reason), SocketUse::Program(key)) => {
                    self.end_program(now, key, reason)
                }
                _ => {}
            }
        }
        None
    }

    /// Connection of a sender of datagrams, which begins with the first one; `None` if it is refused.
    fn sender(&mut self, now: Instant, gateway: usize, sender: (LinkId, PeerId)) -> Option<ProgramKey> {
        if let Some(key) = self.gateways.senders.get(&sender) {
            return Some(*key);
        }
        let key = self.enter_program(now, gateway, Some(sender))?;
        self.gateways.senders.insert(sender, key);
        self.arrive(now, key, gateway);
        Some(key)
    }

    /// Carries out a request of the gateway of a link.
    pub(super) fn program_request(&mut self, now: Instant, link: LinkId, request: ProgramsIndication) {
        let key = (link, request.program());
        match request {
            ProgramsIndication::Open { program, kind, port } => {
                if !self.open_program(now, key, kind, port) {
                    let reason = CloseReason::Refused;
                    self.tell_gateway(now, link, ProgramsRequest::Closed { program, reason });
                }
            }
            ProgramsIndication::Data { bytes, damaged, .. } => self.pass_to_program(now, key, bytes, damaged),
            ProgramsIndication::Release { bytes, .. } => {
                // Datagrams were released when they came.
                self.connections.pumps.command(PumpKey::Program(key), PumpCommand::Release(bytes));
            }
            ProgramsIndication::Finish { .. } => {
                match self.gateways.programs.get(&key).is_some_and(|known| known.socket.is_some()) {
                    true => self.end_program(now, key, CloseReason::Finished),
                    false => self.connections.pumps.command(PumpKey::Program(key), PumpCommand::Close),
                }
            }
            ProgramsIndication::Abort { .. } => {
                if let Some(known) = self.forget_program(key) {
                    self.gateways.counters[known.gateway].reset += 1;
                }
            }
        }
    }

    /// Opens a connection to the program that answers at a port; returns false if there is none, or no room.
    fn open_program(&mut self, now: Instant, key: ProgramKey, kind: ProgramKind, port: u16) -> bool {
        let Some(gateway) = self.gateways.at_port(port, kind) else { return false };
        let Some(GatewaySide::Far(address)) = self.gateways.settings[gateway].side() else { return false };
        let address = address.to_owned();
        if self.gateways.is_full(gateway) {
            self.gateways.counters[gateway].refused += 1;
            return false;
        }
        self.gateways.counters[gateway].connections += 1;
        let socket = match kind {
            ProgramKind::Stream => {
                let calling = Box::pin(program::call(address.clone()));
                self.open_stream(key, address, Source::Calling(calling));
                None
            }
            ProgramKind::Datagrams => {
                let socket = self.engines.neighbours_mut().links.caller_ids.next();
                self.gateways.sockets.insert(socket, SocketUse::Program(key));
                let destination =
                    || Destination { address: address.clone(), kind: CONNECTED, group: None, hops: 1 };
                self.connections.sockets.request(
                    socket,
                    DatagramsRequest::Join { damaged: false },
                    destination,
                );
                Some((socket, PeerId::CONFIGURED))
            }
        };
        let program = OpenProgram { gateway, socket, is_open: false, latest: now };
        self.gateways.programs.insert(key, program);
        true
    }

    /// Passes bytes or a datagram to a program.
    fn pass_to_program(&mut self, now: Instant, key: ProgramKey, bytes: bytes::Bytes, damaged: bool) {
        let Some(known) = self.gateways.programs.get(&key) else { return };
        let (socket, gateway) = (known.socket, known.gateway);
        let is_dropped = match socket {
            None => false,
            Some((socket, _)) => {
                (damaged && !self.gateways.settings[gateway].damaged)
                    || self.connections.sockets.is_full(socket)
            }
        };
        let Some(counters) = self.gateways.moved(key, now) else { return };
        if is_dropped {
            counters.dropped += 1;
            return;
        }
        counters.received_bytes += bytes.len() as u64;
        match socket {
            None => self.connections.pumps.command(PumpKey::Program(key), PumpCommand::Write(bytes)),
            Some((socket, to)) => {
                let shares = Shares::payload(bytes.len());
                let datagram = DatagramsRequest::Datagram { to, bytes, shares, token: None };
                self.connections.sockets.request(socket, datagram, Destination::default);
            }
        }
    }

    /// Ends the connections that had no data for too long.
    pub(super) fn look_at_programs(&mut self, now: Instant) {
        let idle = |known: &OpenProgram| {
            now.saturating_since(known.latest) >= self.gateways.settings[known.gateway].idle()
        };
        let late = self.gateways.programs.iter().filter(|(_, known)| idle(known));
        let late: Vec<(ProgramKey, bool)> = late.map(|(key, known)| (*key, known.socket.is_some())).collect();
        for (key, is_socket) in late {
            let reason = if is_socket { CloseReason::Finished } else { CloseReason::TimedOut };
            self.end_program(now, key, reason);
        }
    }
}
