//! Connections of links: their pumps, and what the engines and the pumps say to each other.

use super::Task;
use super::callers::CallerAdmission;
use super::event::{ConnectionId, TaskEvent};
use super::lines::Lines;
use crate::config::StreamSettings;
use crate::config::tnc_address::TncAddress;
use crate::pumps::datagram::Sockets;
use crate::pumps::receive_budget::{ReceiveBudget, SHARE_BYTES};
use crate::pumps::secure::Handshake;
use crate::pumps::stream::{ByteStream, ConnectionLimits, PumpCommand, PumpEvent, pump};
use crate::tell::Tell;
use crate::tls::TlsFailure;
use crate::tower::sessions::Layer;
use crate::view::{self, Proven};
use crate::write_timeout::WriteTimeout;
use longwire_proto::engine::Engine;
use longwire_proto::service::{CloseReason, DownReason, LinkId, Port, StreamIndication, StreamRequest};
use longwire_proto::time::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::mpsc;

/// A connection of a link.
#[derive(Debug)]
struct LinkConnection {
    id: ConnectionId,
    orders: mpsc::UnboundedSender<PumpCommand>,
    /// Bytes queued and not yet accepted by the kernel.
    queued: u64,
    stands: bool,
    /// Address of the other end.
    address: String,
    /// Content of the peer's certificate.
    proven: Option<Box<Proven>>,
    /// True if the certificate does not match its host name or address.
    untrusted: bool,
}

/// Connections of links, UDP sockets and lines of TNCs.
#[derive(Debug)]
pub(crate) struct Connections {
    by_link: BTreeMap<LinkId, LinkConnection>,
    by_id: BTreeMap<ConnectionId, LinkId>,
    next: u64,
    /// Connections whose room has changed.
    with_room: BTreeSet<LinkId>,
    /// Bytes queued for connections and not yet accepted by the kernel.
    pub(super) queued: u64,
    /// True while the limit on queued bytes is reached: each connection gets only a small share.
    queue_is_full: bool,
    pub(super) receive_budget: Arc<ReceiveBudget>,
    /// Limits the time for which a peer may read nothing.
    pub(super) patience: WriteTimeout,
    pub(super) sockets: Sockets,
    pub(super) lines: Lines,
}

impl Connections {
    /// None yet, and lines to these TNCs, all closed.
    pub(crate) fn new<'a>(
        stream: &StreamSettings,
        tncs: impl Iterator<Item = &'a TncAddress>,
        tell: &mpsc::UnboundedSender<TaskEvent>,
    ) -> Self {
        Connections {
            by_link: BTreeMap::new(),
            by_id: BTreeMap::new(),
            next: 0,
            with_room: BTreeSet::new(),
            queued: 0,
            queue_is_full: false,
            receive_budget: Arc::new(ReceiveBudget::new(stream.received_bytes_max)),
            patience: WriteTimeout::new(stream.stall),
            sockets: Sockets::new(stream.window_bytes, stream.udp_receive_buffer_bytes, Tell::to(tell)),
            lines: Lines::new(tncs, tell.clone()),
        }
    }

    /// True without a connection of a link.
    pub(super) fn is_empty(&self) -> bool {
        self.by_link.is_empty()
    }

    /// Links with a connection.
    pub(super) fn links(&self) -> Vec<LinkId> {
        self.by_link.keys().copied().collect()
    }
}

impl Task {
    pub(super) fn hear_stream(&mut self, now: Instant, id: ConnectionId, said: PumpEvent) {
        let Some(link) = self.connections.by_id.get(&id).copied() else { return };
        let connection = self.connections.by_link.get_mut(&link).expect("both maps agree");
        let indication = match said {
            PumpEvent::Connected { at } => {
                connection.stands = true;
                if let Some(at) = at {
                    self.engines.lower.second.identities.set_address(link, at);
                }
                self.connections.with_room.insert(link);
                StreamIndication::Connected
            }
            PumpEvent::Data(data) => StreamIndication::Data(data),
            PumpEvent::Written(bytes) => {
                connection.queued -= bytes;
                self.connections.queued -= bytes;
                self.connections.with_room.insert(link);
                return;
            }
            PumpEvent::Secured { proven, identities, trusted } => {
                self.link_states.tls.secured();
                connection.proven = Some(proven);
                connection.untrusted = !trusted;
                if !trusted {
                    self.link_states.tls.trouble(now, link, &connection.address, &TlsFailure::Network);
                }
                StreamIndication::Secured { identities, trusted }
            }
            PumpEvent::Insecure(trouble) => {
                self.link_states.tls.trouble(now, link, &connection.address, &trouble);
                return;
            }
            PumpEvent::PeerClosed => StreamIndication::PeerClosed,
            PumpEvent::Closed(reason) => {
                self.note_refusal(now, link);
                self.forget(link);
                StreamIndication::Closed(reason)
            }
        };
        self.engines.handle_indication(now, Port::Second(Port::First((link, Port::First(indication)))));
    }

    /// Tells each connection its room, once per batch. When the sum reaches its limit, the room granted before is void.
    pub(super) fn tell_rooms(&mut self, now: Instant) {
        let stream = &self.configuration.config.stream;
        let queue_is_full = self.connections.queued >= stream.queued_bytes_max;
        let most = if queue_is_full { stream.queue_bytes.min(SHARE_BYTES) } else { stream.queue_bytes };
        if std::mem::replace(&mut self.connections.queue_is_full, queue_is_full) != queue_is_full {
            self.connections.with_room.extend(self.connections.by_link.keys());
        }
        for link in std::mem::take(&mut self.connections.with_room) {
            let Some(connection) = self.connections.by_link.get(&link).filter(|connection| connection.stands)
            else {
                continue;
            };
            let room = StreamIndication::Room(most.saturating_sub(connection.queued));
            self.engines.handle_indication(now, Port::Second(Port::First((link, Port::First(room)))));
        }
    }

    /// Records the reason if a session has ended for lack of security.
    fn note_refusal(&mut self, now: Instant, link: LinkId) {
        let session = self.engines.lower.second.internet.get(link).and_then(Layer::session);
        let down = session.and_then(|session| session.last_down());
        let Some(connection) = self.connections.by_link.get(&link) else { return };
        let trouble = match (down, &connection.proven) {
            (Some(DownReason::Insecure), _) => TlsFailure::Plain,
            (Some(DownReason::Identity), Some(proven)) if !connection.untrusted => {
                TlsFailure::NodeId { proven: proven.node_ids.clone() }
            }
            _ => return,
        };
        self.link_states.tls.trouble(now, link, &connection.address, &trouble);
    }

    fn forget(&mut self, link: LinkId) {
        if let Some(gone) = self.connections.by_link.remove(&link) {
            self.connections.by_id.remove(&gone.id);
            self.connections.queued -= gone.queued;
            self.link_states.callers.leave(link);
            self.engines.lower.second.identities.forget(link);
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
        let link = self.engines.lower.second.links.caller_ids.next();
        if let Ok(address) = address.parse::<SocketAddr>() {
            self.engines.lower.second.identities.set_address(link, address.ip());
        }
        self.link_states.callers.enter(now, link, &address);
        let (id, orders, tell) = self.connection(link, address);
        tokio::spawn(pump(wire, orders, self.window(), tell));
        debug_assert!(self.connections.by_id.contains_key(&id));
    }

    /// Ends a connection at once to free its place.
    fn end(&mut self, now: Instant, link: LinkId) {
        self.forget(link);
        let closed = StreamIndication::Closed(CloseReason::Limit);
        self.engines.handle_indication(now, Port::Second(Port::First((link, Port::First(closed)))));
    }

    /// Checks which callers carry bundles.
    pub(super) fn look_at_callers(&mut self, now: Instant) {
        let sessions = &self.engines.lower.second.internet;
        let carried = |link| {
            let counters = sessions.get(link).and_then(Layer::session).map(|session| *session.counters());
            let counters = counters.unwrap_or_default();
            (counters.payload_sent + counters.payload_received, counters.refused)
        };
        self.link_states.callers.look(now, carried);
    }

    fn window(&self) -> ConnectionLimits {
        let bytes = self.configuration.config.stream.window_bytes;
        ConnectionLimits {
            bytes,
            all: self.connections.receive_budget.clone(),
            patience: self.connections.patience.clone(),
        }
    }

    /// Adds a connection.
    fn connection(
        &mut self,
        link: LinkId,
        address: String,
    ) -> (ConnectionId, mpsc::UnboundedReceiver<PumpCommand>, impl Fn(PumpEvent) + Unpin + Send + 'static)
    {
        self.connections.next += 1;
        let id = ConnectionId(self.connections.next);
        let (sender, orders) = mpsc::unbounded_channel();
        let connection = LinkConnection {
            id,
            orders: sender,
            queued: 0,
            stands: false,
            address,
            proven: None,
            untrusted: false,
        };
        self.connections.by_link.insert(link, connection);
        self.connections.by_id.insert(id, link);
        let tell = self.tell.clone();
        (id, orders, move |said| drop(tell.send(TaskEvent::Stream(id, said))))
    }

    pub(super) fn stream_request(&mut self, link: LinkId, request: StreamRequest) {
        let order = match request {
            StreamRequest::Connect => return self.connect(link),
            StreamRequest::Write(bytes) => {
                if let Some(connection) = self.connections.by_link.get_mut(&link) {
                    connection.queued += bytes.len() as u64;
                    self.connections.queued += bytes.len() as u64;
                }
                PumpCommand::Write(bytes)
            }
            StreamRequest::Release(bytes) => PumpCommand::Release(bytes),
            StreamRequest::Secure { client, name } => match self.handshake(link, client, name) {
                Some(handshake) => PumpCommand::Secure(Box::new(handshake)),
                // A session requests TLS without credentials, which no configuration permits.
                None => PumpCommand::Abort,
            },
            StreamRequest::Close => PumpCommand::Close,
            StreamRequest::Abort => PumpCommand::Abort,
        };
        if let Some(connection) = self.connections.by_link.get(&link) {
            // A pump that has ended has sent an event about it, which arrives soon.
            let _ = connection.orders.send(order);
        }
    }

    /// Parameters of a handshake on this link.
    fn handshake(&self, link: LinkId, client: bool, name: Option<String>) -> Option<Handshake> {
        let links = &self.engines.lower.second.links;
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
        let address = {
            let links = &self.engines.lower.second.links;
            links.get(link).map(|known| known.link.address.clone()).unwrap_or_default()
        };
        self.forget(link);
        let (_, mut orders, tell) = self.connection(link, address.clone());
        let calling = (self.connector)(address, &self.configuration.config);
        let window = self.window();
        tokio::spawn(async move {
            tokio::pin!(calling);
            let wire = tokio::select! {
                wire = &mut calling => wire,
                // The only command to a connection that is not established is to end it.
                _ = orders.recv() => return tell(PumpEvent::Closed(CloseReason::Aborted)),
            };
            match wire {
                Ok(wire) => pump(wire, orders, window, tell).await,
                Err(error) => tell(PumpEvent::Closed(crate::pumps::stream::reason_of(&error))),
            }
        });
    }

    /// Content of the certificate of a link's peer.
    pub(crate) fn proven(&self, link: LinkId) -> Option<&Proven> {
        self.connections.by_link.get(&link).and_then(|connection| connection.proven.as_deref())
    }

    /// Address of the other end of a link's connection.
    pub(crate) fn address(&self, link: LinkId) -> Option<&str> {
        let connection = self.connections.by_link.get(&link).map(|connection| connection.address.as_str());
        connection.or_else(|| self.connections.sockets.address(link))
    }
}
