//! Connections of links: what the engines and the pumps say to each other.

use super::callers::CallerAdmission;
use super::event::{PumpKey, TaskEvent};
use super::{EngineParts as _, Task};
use crate::config::StreamSettings;
use crate::pumps::datagram::Sockets;
use crate::pumps::receive_budget::ReceiveBudget;
use crate::pumps::secure::Handshake;
use crate::pumps::stream::{ByteStream, ConnectionLimits, PumpCommand, PumpEvent};
use crate::pumps::table::{PumpReport, Pumps, QueueLimit, Source};
use crate::tell::Tell;
use crate::tls::TlsFailure;
use crate::view::{self, Proven};
use crate::write_timeout::WriteTimeout;
use longwire_proto::engine::Engine;
use longwire_proto::service::{CloseReason, DownReason, LinkId, Port, StreamIndication, StreamRequest};
use longwire_proto::time::Instant;
use longwire_towers::MediaIndication;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Certificate of the peer of a connection.
#[derive(Debug)]
struct PeerCertificate {
    proven: Box<Proven>,
    /// True if it matches its host name or address.
    trusted: bool,
}

/// Connections of links, UDP sockets and lines of TNCs.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(super) pumps: Pumps<PumpKey>,
    pub(super) sockets: Sockets,
    pub(super) receive_budget: Arc<ReceiveBudget>,
    /// Limits the time for which a peer may read nothing.
    pub(super) patience: WriteTimeout,
    certificates: BTreeMap<LinkId, PeerCertificate>,
}

impl Connections {
    /// None yet; what pumps have to say goes to `tell`.
    pub(crate) fn new(stream: &StreamSettings, tell: &mpsc::UnboundedSender<TaskEvent>) -> Self {
        Connections {
            pumps: Pumps::new(stream.queued_bytes_max, Tell::to(tell, TaskEvent::Pump)),
            sockets: Sockets::new(
                stream.small_window_bytes(),
                stream.udp_receive_buffer_bytes,
                Tell::to(tell, TaskEvent::Datagrams),
            ),
            receive_budget: Arc::new(ReceiveBudget::new(stream.received_bytes_max)),
            patience: WriteTimeout::new(stream.stall),
            certificates: BTreeMap::new(),
        }
    }

    /// Links with a connection.
    pub(super) fn links(&self) -> impl Iterator<Item = LinkId> {
        self.pumps.keys().filter_map(|key| match key {
            PumpKey::Link(link) => Some(link),
            PumpKey::Line(_) | PumpKey::Program(_) => None,
        })
    }

    /// Starts the pump of a link's connection.
    fn open(&mut self, link: LinkId, address: String, source: Source, stream: &StreamSettings) {
        let limits = ConnectionLimits {
            bytes: stream.window_bytes,
            all: self.receive_budget.clone(),
            patience: self.patience.clone(),
        };
        let queue = QueueLimit::Shared(stream.queue_bytes);
        self.pumps.open(PumpKey::Link(link), address, source, limits, queue);
    }
}

impl Task {
    pub(super) fn hear_pump(&mut self, now: Instant, said: PumpReport<PumpKey>) {
        match said.key {
            PumpKey::Line(line) => self.hear_line(now, line, said),
            PumpKey::Program(program) => self.hear_program_pump(now, program, said),
            PumpKey::Link(link) => {
                if let Some(event) = self.connections.pumps.hear(said) {
                    self.hear_stream(now, link, event);
                }
            }
        }
    }

    fn hear_stream(&mut self, now: Instant, link: LinkId, event: PumpEvent) {
        let indication = match event {
            PumpEvent::Connected { at } => {
                if let Some(at) = at {
                    self.engines.neighbours_mut().set_address(link, at);
                }
                StreamIndication::Connected
            }
            PumpEvent::Data(data) => StreamIndication::Data(data),
            // `Pumps` handles these.
            PumpEvent::Written(_) => return,
            PumpEvent::Secured { proven, identities, trusted } => {
                self.link_states.tls.secured();
                self.connections.certificates.insert(link, PeerCertificate { proven, trusted });
                if !trusted {
                    self.tls_trouble(now, link, &TlsFailure::Network);
                }
                StreamIndication::Secured { identities, trusted }
            }
            PumpEvent::Insecure(trouble) => return self.tls_trouble(now, link, &trouble),
            PumpEvent::PeerClosed => StreamIndication::PeerClosed,
            PumpEvent::Closed(reason) => {
                self.note_refusal(now, link);
                self.forget(link);
                StreamIndication::Closed(reason)
            }
        };
        self.stream_rises(now, link, indication);
    }

    /// Passes an indication to the engine of a connection.
    fn stream_rises(&mut self, now: Instant, link: LinkId, indication: StreamIndication) {
        let indication = (link, MediaIndication::Stream(indication));
        self.engines.handle_indication(now, Port::Second(Port::First(indication)));
    }

    /// Tells each connection its room, once per batch.
    pub(super) fn tell_rooms(&mut self, now: Instant) {
        for (key, room) in self.connections.pumps.shared_rooms() {
            // Lines are told at once.
            if let PumpKey::Link(link) = key {
                self.stream_rises(now, link, StreamIndication::Room(room));
            }
        }
    }

    /// Records a failure of TLS on a connection.
    fn tls_trouble(&mut self, now: Instant, link: LinkId, trouble: &TlsFailure) {
        if let Some(address) = self.connections.pumps.address(PumpKey::Link(link)) {
            self.link_states.tls.trouble(now, link, address, trouble);
        }
    }

    /// Records the reason if a session has ended for lack of security.
    fn note_refusal(&mut self, now: Instant, link: LinkId) {
        let session = self.engines.neighbours().shown(link).unwrap_or_default();
        let is = |reason: DownReason| session.text("last_down") == Some(&format!("{reason:?}"));
        let trouble = match self.connections.certificates.get(&link) {
            _ if is(DownReason::Insecure) => TlsFailure::Plain,
            Some(PeerCertificate { proven, trusted: true }) if is(DownReason::Identity) => {
                TlsFailure::NodeId { proven: proven.node_ids.clone() }
            }
            _ => return,
        };
        self.tls_trouble(now, link, &trouble);
    }

    fn forget(&mut self, link: LinkId) {
        if self.connections.pumps.close(PumpKey::Link(link)) {
            self.connections.certificates.remove(&link);
            self.link_states.callers.leave(link);
            self.engines.neighbours_mut().forget_address(link);
        }
    }

    pub(super) fn hear_caller(&mut self, now: Instant, wire: Box<dyn ByteStream>, address: String) {
        match self.link_states.callers.admit(now, &address, &self.configuration.config.stream) {
            CallerAdmission::Admit => {}
            CallerAdmission::InPlaceOf(other) => self.end(now, other),
            CallerAdmission::Refuse => {
                return self.note(now, view::Event::CallerTurnedAway { address });
            }
        }
        let link = self.engines.neighbours_mut().links.caller_ids.next();
        if let Ok(address) = address.parse::<SocketAddr>() {
            self.engines.neighbours_mut().set_address(link, address.ip());
        }
        self.link_states.callers.enter(now, link, &address);
        self.connections.open(link, address, Source::Stream(wire), &self.configuration.config.stream);
    }

    /// True if TLS is in use on a link's connection.
    pub(super) fn uses_tls(&self, link: LinkId) -> bool {
        self.connections.certificates.contains_key(&link)
    }

    /// Ends a connection at once.
    pub(super) fn end(&mut self, now: Instant, link: LinkId) {
        self.forget(link);
        self.stream_rises(now, link, StreamIndication::Closed(CloseReason::Limit));
    }

    /// Checks which callers carry bundles.
    pub(super) fn look_at_callers(&mut self, now: Instant) {
        let neighbours = self.engines.neighbours();
        let carried = |link| {
            let counts = neighbours.shown(link).unwrap_or_default().counts;
            let count = |name| counts.get(name).copied().unwrap_or(0);
            (count("payload_sent") + count("payload_received"), count("refused"))
        };
        self.link_states.callers.look(now, carried);
    }

    pub(super) fn stream_request(&mut self, link: LinkId, request: StreamRequest) {
        let command = match request {
            StreamRequest::Connect => return self.connect(link),
            StreamRequest::Write(bytes) => PumpCommand::Write(bytes),
            StreamRequest::Release(bytes) => PumpCommand::Release(bytes),
            StreamRequest::Secure { client, name } => match self.handshake(link, client, name) {
                Some(handshake) => PumpCommand::Secure(Box::new(handshake)),
                // A session requests TLS without credentials, which no configuration permits.
                None => PumpCommand::Abort,
            },
            StreamRequest::Close => PumpCommand::Close,
            StreamRequest::Abort => PumpCommand::Abort,
        };
        self.connections.pumps.command(PumpKey::Link(link), command);
    }

    fn handshake(&self, link: LinkId, client: bool, name: Option<String>) -> Option<Handshake> {
        let links = &self.engines.neighbours().links;
        let known = links.get(link);
        let address = known.map(|known| known.link.address.as_str()).filter(|_| client);
        let host = address.and_then(|address| address.rsplit_once(':')).map(|(host, _)| host);
        Some(Handshake {
            credentials: self.configuration.credentials.clone()?,
            policy: known.map_or(self.configuration.config.tls.policy, |known| known.policy),
            client,
            host: host.map(|host| host.trim_matches(['[', ']']).to_owned()),
            name,
            unix_s: self.clock.dtn_ms().map(crate::clock::unix_s),
        })
    }

    fn connect(&mut self, link: LinkId) {
        let known = self.engines.neighbours().links.get(link);
        let address = known.map(|known| known.link.address.clone()).unwrap_or_default();
        self.forget(link);
        let config = &self.configuration.config;
        let calling = (self.connector)(address.clone(), config);
        self.connections.open(link, address, Source::Calling(calling), &config.stream);
    }

    /// Content of the certificate of a link's peer.
    pub(super) fn proven(&self, link: LinkId) -> Option<&Proven> {
        self.connections.certificates.get(&link).map(|certificate| &*certificate.proven)
    }

    /// Address of the other end of a link's connection.
    pub(super) fn address(&self, link: LinkId) -> Option<&str> {
        let connection = self.connections.pumps.address(PumpKey::Link(link));
        connection.or_else(|| self.connections.sockets.address(link))
    }
}
