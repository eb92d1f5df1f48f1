//! The engines' task: it owns the engines, handles all events, and passes on what the engines emit.
//!
//! ```text
//!      applications            Applications
//!     ----------------------------------------------------
//!      engines      Agent over (storage, Neighbours)
//!     ----------------------------------------------------
//!      threads      StorageDriver    pumps, one per connection
//! ```
//!
//! Events arrive in batches; the engines handle all of a batch and are drained once. Engine time is the time since the node's
//! start, by a clock that never jumps; the wall clock is passed on again every few seconds, so that a jump is noticed.

use crate::applications::Applications;
use crate::busy_loop_guard::BusyLoopGuard;
use crate::callers::{CallerAdmission, CallerTable};
use crate::clock::WallClock;
use crate::control;
use crate::event_log::EventLog;
use crate::event_recording::EventWatchers;
use crate::folders::SharedStatus;
use crate::layer::Layer;
use crate::links::{ClosedSessionCounters, SharedLinks};
use crate::message::{Message, Reply, Request};
use crate::neighbours::{Neighbours, RefusedCaller};
use crate::node_setup::NodeSetup;
use crate::pumps::datagram::Sockets;
use crate::pumps::receive_budget::{ReceiveBudget, SHARE_BYTES};
use crate::pumps::secure::Handshake;
use crate::pumps::stream::{ByteStream, ConnectionLimits, PumpCommand, PumpEvent, pump};
use crate::radio::Lines;
use crate::refusals::RefusalLog;
use crate::status_waiters::StatusWaiters;
use crate::storage::{Scrub, StorageDriver};
use crate::store_damage::DamageLog;
use crate::task_event::{ClientId, ConnectionId, TaskEvent};
use crate::tls::{self, Credentials, TlsFailure};
use crate::turn_meter::TurnMeter;
use crate::view::Proven;
use crate::write_timeout::WriteTimeout;
use longwire_proto::bp::agent::Agent;
use longwire_proto::engine::Engine;
use longwire_proto::joint::{Beside, PassThrough, Stack};
use longwire_proto::service::{
    AppIndication, AppRequest, CloseReason, Contact, DownReason, LinkId, NextHop, Port, Storage,
    StreamIndication, StreamRequest,
};
use longwire_proto::tcpcl;
use longwire_proto::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Interval at which the wall clock is passed to the agent.
const CLOCK_EVERY: Duration = Duration::from_secs(5);
/// Maximum events handled before the engines are drained.
const BATCH_EVENTS: usize = 256;

/// All engines of a node.
pub(crate) type Engines = Stack<Agent, Beside<PassThrough<Storage>, Neighbours>>;

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

/// State of a link, for the status.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkObservation {
    pub(crate) up: bool,
    pub(crate) peer: Option<String>,
    /// Node ID of the neighbour now or when the link was last up.
    pub(crate) led_to: Option<String>,
    pub(crate) down: Option<DownReason>,
    /// Time at which the link came up or went down; for a link that was never up, the first failed attempt.
    pub(crate) since: Instant,
    /// True if the link was up before or is now.
    pub(crate) was_up: bool,
}

/// The engines of a node and everything around them.
pub(crate) struct Task {
    pub(crate) engines: Engines,
    pub(crate) setup: NodeSetup,
    pub(crate) links: SharedLinks,
    pub(crate) applications: Applications,
    pub(crate) seen: BTreeMap<LinkId, LinkObservation>,
    pub(crate) callers: CallerTable,
    pub(crate) receive_budget: Arc<ReceiveBudget>,
    /// Limits the time for which a peer may read nothing.
    pub(crate) patience: WriteTimeout,
    pub(crate) control: Arc<control::ControlCounters>,
    /// Bytes queued for connections and not yet accepted by the kernel.
    pub(crate) queued: u64,
    /// True while the limit on queued bytes is reached: each connection gets only a small share.
    queue_is_full: bool,
    pub(crate) reports_not_believed: u64,
    pub(crate) refusals: RefusalLog,
    pub(crate) configuration: crate::view::Configuration,
    closed_session_counters: ClosedSessionCounters,
    /// First known DTN time.
    began_dtn_ms: Option<u64>,
    /// Contact windows passed to the agent.
    pub(crate) planned: BTreeMap<LinkId, Vec<Contact>>,
    pub(crate) folders: SharedStatus,
    pub(crate) credentials: Option<Arc<Credentials>>,
    pub(crate) tls: tls::TlsLog,
    pub(crate) opened: crate::storage::Opened,
    pub(crate) damage: DamageLog,
    pub(crate) turns: TurnMeter,
    pub(crate) busy_loop_guard: BusyLoopGuard,
    pub(crate) status_waiters: StatusWaiters,
    /// Counters of the HTTP interface, if it is on.
    pub(crate) http: Option<Arc<crate::http::HttpCounters>>,
    /// Events, for programs that watch the node.
    pub(crate) event_log: Arc<EventLog>,
    pub(crate) watching: EventWatchers,
    started: tokio::time::Instant,
    wall_clock: WallClock,
    pub(crate) store: StorageDriver,
    pub(crate) scrub: Option<Scrub>,
    events: mpsc::UnboundedReceiver<TaskEvent>,
    tell: mpsc::UnboundedSender<TaskEvent>,
    connections: BTreeMap<LinkId, LinkConnection>,
    by_id: BTreeMap<ConnectionId, LinkId>,
    next_connection: u64,
    /// Connections whose room has changed.
    connections_with_room: BTreeSet<LinkId>,
    pub(crate) sockets: Sockets,
    pub(crate) lines: Lines,
}

/// Parts from which a task is created.
pub(crate) struct TaskParts {
    pub(crate) engines: Engines,
    pub(crate) setup: NodeSetup,
    pub(crate) links: SharedLinks,
    pub(crate) closed_session_counters: ClosedSessionCounters,
    pub(crate) folders: SharedStatus,
    pub(crate) store: StorageDriver,
    pub(crate) scrub: Option<Scrub>,
    pub(crate) credentials: Option<Arc<Credentials>>,
    pub(crate) opened: crate::storage::Opened,
    pub(crate) events: mpsc::UnboundedReceiver<TaskEvent>,
    pub(crate) tell: mpsc::UnboundedSender<TaskEvent>,
    pub(crate) http: Option<Arc<crate::http::HttpCounters>>,
    pub(crate) event_log: Arc<EventLog>,
    pub(crate) control: Arc<control::ControlCounters>,
}

impl Task {
    pub(crate) fn new(parts: TaskParts) -> Self {
        let stream = parts.setup.config.stream;
        Task {
            wall_clock: parts.setup.wall_clock.clone(),
            applications: Applications::new(parts.engines.upper.node().to_string()),
            sockets: Sockets::new(stream.window_bytes, stream.udp_receive_buffer_bytes, parts.tell.clone()),
            lines: Lines::new(parts.engines.lower.second.radios.places(), parts.tell.clone()),
            engines: parts.engines,
            setup: parts.setup,
            links: parts.links,
            closed_session_counters: parts.closed_session_counters,
            folders: parts.folders,
            store: parts.store,
            scrub: parts.scrub,
            credentials: parts.credentials,
            opened: parts.opened,
            events: parts.events,
            tell: parts.tell,
            http: parts.http,
            event_log: parts.event_log,
            control: parts.control,
            seen: BTreeMap::new(),
            callers: CallerTable::default(),
            receive_budget: Arc::new(ReceiveBudget::new(stream.received_bytes_max)),
            patience: WriteTimeout::new(stream.stall),
            queued: 0,
            queue_is_full: false,
            reports_not_believed: 0,
            refusals: RefusalLog::default(),
            configuration: crate::view::Configuration::default(),
            began_dtn_ms: None,
            planned: BTreeMap::new(),
            tls: tls::TlsLog::default(),
            damage: DamageLog::default(),
            turns: TurnMeter::default(),
            busy_loop_guard: BusyLoopGuard::default(),
            status_waiters: StatusWaiters::default(),
            watching: EventWatchers::default(),
            started: tokio::time::Instant::now(),
            connections: BTreeMap::new(),
            by_id: BTreeMap::new(),
            next_connection: 0,
            connections_with_room: BTreeSet::new(),
        }
    }

    /// Engine time.
    pub(crate) fn now(&self) -> Instant {
        let nanos = self.started.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// DTN time by the wall clock.
    pub(crate) fn dtn_ms(&self) -> Option<u64> {
        (self.wall_clock)()
    }

    /// Runs until the node is stopped.
    pub(crate) async fn run(mut self) {
        let now = self.now();
        self.set_up(now);
        self.drain(now);
        let mut batch = Vec::with_capacity(BATCH_EVENTS);
        let mut clock_at = now + CLOCK_EVERY;
        let mut wake = Instant::ZERO;
        let sleep = tokio::time::sleep_until(self.started);
        tokio::pin!(sleep);
        loop {
            let at = self.started + since_start(wake);
            if sleep.deadline() != at {
                sleep.as_mut().reset(at);
            }
            tokio::select! {
                biased;
                count = self.events.recv_many(&mut batch, BATCH_EVENTS) => debug_assert!(count > 0),
                () = &mut sleep => {}
            }
            let now = self.now();
            let heard = !batch.is_empty();
            let mut happened = false;
            for event in batch.drain(..) {
                if let TaskEvent::Stop { at_once } = event {
                    return self.stop(now, at_once).await;
                }
                happened |= StatusWaiters::is_some(&event);
                self.hear(now, event);
            }
            if clock_at <= now {
                clock_at = now + CLOCK_EVERY;
                self.tell_time(now);
                self.look_at_callers(now);
                self.look_at_watchers(now);
                happened = true;
            }
            self.tell_rooms(now);
            if self.engines.poll_timeout().is_some_and(|at| at <= now) {
                self.engines.handle_timeout(now);
                happened = true;
            }
            self.drain(now);
            if let Some(callers) = self.engines.lower.second.identities.new_beside_links() {
                self.engines.upper.set_beside_links(callers);
            }
            if self.store.has_failed() || self.scrub.as_ref().is_some_and(Scrub::has_failed) {
                // The panic of that thread is passed on where it is joined. The clock timer wakes this loop, so that this happens
                // soon.
                return;
            }
            self.tell_news(now, happened);
            self.turns.add(self.now().saturating_since(now));
            wake = self.rest(now, heard, clock_at);
        }
    }

    /// Closes sessions, waits up to 2 s for them, and lets the store finish.
    async fn stop(mut self, now: Instant, at_once: bool) {
        self.tell_waiting_damage(now);
        if at_once {
            return;
        }
        let mut open: Vec<LinkId> = self.connections.keys().copied().collect();
        open.extend(self.engines.lower.second.radios.busy());
        for link in open {
            self.engines.handle_request(now, AppRequest::CloseLink { link });
        }
        self.drain(now);
        let limit = tokio::time::sleep(Duration::from_secs(2));
        tokio::pin!(limit);
        while !(self.connections.is_empty() && self.engines.lower.second.radios.busy().is_empty()) {
            let wake =
                self.engines.poll_timeout().map_or(limit.deadline(), |at| self.started + since_start(at));
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(TaskEvent::Stop { .. }) | None => return,
                    Some(event) => self.hear(self.now(), event),
                },
                () = &mut limit => return,
                () = tokio::time::sleep_until(wake) => {}
            }
            let now = self.now();
            self.tell_rooms(now);
            if self.engines.poll_timeout().is_some_and(|at| at <= now) {
                self.engines.handle_timeout(now);
            }
            self.drain(now);
        }
    }

    fn set_up(&mut self, now: Instant) {
        self.tell_time(now);
        for endpoint in self.setup.config.endpoints.clone() {
            self.ask(now, AppRequest::Register { endpoint });
        }
        for route in self.setup.config.route.clone() {
            if let Some(request) = self.route(&route) {
                self.ask(now, request);
            }
        }
        let open: Vec<LinkId> = {
            let links = self.links.lock().expect("no thread panics while it has the links");
            links.iter().filter(|(_, known)| known.link.open).map(|(id, _)| id).collect()
        };
        self.plan(now);
        for link in open {
            self.ask(now, AppRequest::OpenLink { link });
        }
    }

    /// Passes the next contact windows to the agent, where they have changed.
    pub(crate) fn plan(&mut self, now: Instant) {
        let Some(dtn_ms) = self.dtn_ms() else { return };
        let began_dtn_ms = *self.began_dtn_ms.get_or_insert(dtn_ms);
        let windows: Vec<(LinkId, Vec<Contact>)> = {
            let links = self.links.lock().expect("no thread panics while it has the links");
            let config = &self.setup.config;
            let of = |link| config.windows(link, began_dtn_ms, dtn_ms).unwrap_or_default();
            links.iter().map(|(id, known)| (id, of(&known.link))).collect()
        };
        for (link, contacts) in windows {
            let told = self.planned.get(&link).map_or(&[][..], |told| &told[..]);
            if told != contacts {
                self.planned.insert(link, contacts.clone());
                self.ask(now, AppRequest::SetContacts { link, contacts });
            }
        }
    }

    /// Converts a route for the agent.
    pub(crate) fn route(&self, route: &crate::config::RouteSettings) -> Option<AppRequest> {
        Some(AppRequest::SetRoute { pattern: route.to.clone(), via: self.hop(&route.via)?, cost: route.cost })
    }

    /// Finds a link by its name, or else a node by its node ID.
    pub(crate) fn hop(&self, via: &str) -> Option<NextHop> {
        let links = self.links.lock().expect("no thread panics while it has the links");
        match links.named(via) {
            Some(link) => Some(NextHop::Link(link)),
            None => via.contains(':').then(|| NextHop::Node(via.to_owned())),
        }
    }

    /// Passes a request to the agent.
    pub(crate) fn ask(&mut self, now: Instant, request: AppRequest) {
        self.engines.handle_request(now, request);
    }

    fn tell_time(&mut self, now: Instant) {
        let dtn_ms = self.dtn_ms();
        let steady = crate::clock::steady();
        self.ask(now, AppRequest::SetClock { dtn_ms, steady });
        self.plan(now);
    }

    fn hear(&mut self, now: Instant, event: TaskEvent) {
        match event {
            TaskEvent::Storage(said) => {
                for indication in said {
                    self.store.heard(&indication);
                    self.engines.handle_indication(now, Port::First(indication));
                }
            }
            TaskEvent::Damage(damage) => self.hear_damage(now, damage),
            TaskEvent::Stream(id, said) => self.hear_stream(now, id, said),
            TaskEvent::Datagrams(link, number, said) => self.hear_datagrams(now, link, number, said),
            TaskEvent::Line(line, number, said) => self.hear_line(now, line, number, said),
            TaskEvent::Listens(socket, at) => {
                let link =
                    self.links.lock().expect("no thread panics while it has the links").listening(at.clone());
                self.sockets.listen(link, socket, at);
            }
            TaskEvent::Caller(wire, address) => self.hear_caller(now, wire, address),
            TaskEvent::Client(id, end) => self.applications.arrive(id, end),
            TaskEvent::Request(id, message) => self.hear_application(now, id, message),
            TaskEvent::ClientGone(id) => {
                self.status_waiters.leave(id);
                self.applications.leave(id);
            }
            TaskEvent::Counted(news) => news.heard(),
            TaskEvent::Clock => self.tell_time(now),
            TaskEvent::Reload => drop(self.reload(now)),
            TaskEvent::Stop { .. } => {}
        }
    }

    fn hear_application(&mut self, now: Instant, id: ClientId, message: Message<Request>) {
        // Earlier requests of applications are carried out first.
        if let Some(request) = self.applications.request(id, message) {
            self.drain(now);
            match request {
                Request::NextStatus => return self.status_waiters.wait(id),
                Request::Status => self.status_waiters.told(id),
                _ => {}
            }
            let reply = self.operate(now, request);
            self.applications.answer(id, reply);
        }
    }

    // -- Streams ------------------------------------------------------------------------------------------------

    fn hear_stream(&mut self, now: Instant, id: ConnectionId, said: PumpEvent) {
        let Some(link) = self.by_id.get(&id).copied() else { return };
        let connection = self.connections.get_mut(&link).expect("both maps agree");
        let indication = match said {
            PumpEvent::Connected { at } => {
                connection.stands = true;
                if let Some(at) = at {
                    self.engines.lower.second.identities.set_address(link, at);
                }
                self.connections_with_room.insert(link);
                StreamIndication::Connected
            }
            PumpEvent::Data(data) => StreamIndication::Data(data),
            PumpEvent::Written(bytes) => {
                connection.queued -= bytes;
                self.queued -= bytes;
                self.connections_with_room.insert(link);
                return;
            }
            PumpEvent::Secured { proven, identities, trusted } => {
                self.tls.secured();
                connection.proven = Some(proven);
                connection.untrusted = !trusted;
                if !trusted {
                    self.tls.trouble(now, link, &connection.address, &TlsFailure::Network);
                }
                StreamIndication::Secured { identities, trusted }
            }
            PumpEvent::Insecure(trouble) => {
                self.tls.trouble(now, link, &connection.address, &trouble);
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
    fn tell_rooms(&mut self, now: Instant) {
        let stream = &self.setup.config.stream;
        let queue_is_full = self.queued >= stream.queued_bytes_max;
        let most = if queue_is_full { stream.queue_bytes.min(SHARE_BYTES) } else { stream.queue_bytes };
        if std::mem::replace(&mut self.queue_is_full, queue_is_full) != queue_is_full {
            self.connections_with_room.extend(self.connections.keys());
        }
        for link in std::mem::take(&mut self.connections_with_room) {
            let Some(connection) = self.connections.get(&link).filter(|connection| connection.stands) else {
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
        let Some(connection) = self.connections.get(&link) else { return };
        let trouble = match (down, &connection.proven) {
            (Some(DownReason::Insecure), _) => TlsFailure::Plain,
            (Some(DownReason::Identity), Some(proven)) if !connection.untrusted => {
                TlsFailure::NodeId { proven: proven.node_ids.clone() }
            }
            _ => return,
        };
        self.tls.trouble(now, link, &connection.address, &trouble);
    }

    fn forget(&mut self, link: LinkId) {
        if let Some(gone) = self.connections.remove(&link) {
            self.by_id.remove(&gone.id);
            self.queued -= gone.queued;
            self.callers.leave(link);
            self.engines.lower.second.identities.forget(link);
        }
    }

    fn hear_caller(&mut self, now: Instant, wire: Box<dyn ByteStream>, address: String) {
        match self.callers.admit(now, &address, &self.setup.config.stream) {
            CallerAdmission::Admit => {}
            CallerAdmission::InPlaceOf(other) => self.end(now, other),
            CallerAdmission::Refuse => {
                return self.note(now, crate::view::Event::CallerTurnedAway { address });
            }
        }
        let link = self.links.lock().expect("no thread panics while it has the links").next_caller();
        if let Ok(address) = address.parse::<SocketAddr>() {
            self.engines.lower.second.identities.set_address(link, address.ip());
        }
        self.callers.enter(now, link, &address);
        let (id, orders, tell) = self.connection(link, address);
        tokio::spawn(pump(wire, orders, self.window(), tell));
        debug_assert!(self.by_id.contains_key(&id));
    }

    /// Ends a connection at once to free its place.
    fn end(&mut self, now: Instant, link: LinkId) {
        self.forget(link);
        let closed = StreamIndication::Closed(CloseReason::Limit);
        self.engines.handle_indication(now, Port::Second(Port::First((link, Port::First(closed)))));
    }

    /// Checks which callers carry bundles.
    fn look_at_callers(&mut self, now: Instant) {
        let sessions = &self.engines.lower.second.internet;
        let carried = |link| {
            let counters = sessions.get(link).and_then(Layer::session).map(|session| *session.counters());
            let counters = counters.unwrap_or_default();
            (counters.payload_sent + counters.payload_received, counters.refused)
        };
        self.callers.look(now, carried);
    }

    /// Sum of the counters of all sessions, including closed ones.
    pub(crate) fn session_counters(&self) -> tcpcl::Counters {
        let closed_session_counters =
            *self.closed_session_counters.lock().expect("no thread panics with the counts");
        let sessions = self.engines.lower.second.internet.iter();
        sessions
            .filter_map(|(_, layer)| layer.session())
            .fold(closed_session_counters, |sum, session| sum.plus(session.counters()))
    }

    fn window(&self) -> ConnectionLimits {
        let bytes = self.setup.config.stream.window_bytes;
        ConnectionLimits { bytes, all: self.receive_budget.clone(), patience: self.patience.clone() }
    }

    /// Adds a connection.
    fn connection(
        &mut self,
        link: LinkId,
        address: String,
    ) -> (ConnectionId, mpsc::UnboundedReceiver<PumpCommand>, impl Fn(PumpEvent) + Unpin + Send + 'static)
    {
        self.next_connection += 1;
        let id = ConnectionId(self.next_connection);
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
        self.connections.insert(link, connection);
        self.by_id.insert(id, link);
        let tell = self.tell.clone();
        (id, orders, move |said| drop(tell.send(TaskEvent::Stream(id, said))))
    }

    fn stream_request(&mut self, link: LinkId, request: StreamRequest) {
        let order = match request {
            StreamRequest::Connect => return self.connect(link),
            StreamRequest::Write(bytes) => {
                if let Some(connection) = self.connections.get_mut(&link) {
                    connection.queued += bytes.len() as u64;
                    self.queued += bytes.len() as u64;
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
        if let Some(connection) = self.connections.get(&link) {
            // A pump that has ended has sent an event about it, which arrives soon.
            let _ = connection.orders.send(order);
        }
    }

    /// Parameters of a handshake on this link.
    fn handshake(&self, link: LinkId, client: bool, name: Option<String>) -> Option<Handshake> {
        let links = self.links.lock().expect("no thread panics while it has the links");
        let known = links.get(link);
        let address = known.map(|known| known.link.address.as_str()).filter(|_| client);
        let host = address.and_then(|address| address.rsplit_once(':')).map(|(host, _)| host);
        Some(Handshake {
            credentials: self.credentials.clone()?,
            policy: known.map_or(self.setup.config.tls.policy, |known| known.policy),
            client,
            host: host.map(|host| host.trim_matches(['[', ']']).to_owned()),
            name,
            unix_s: self.dtn_ms().map(crate::clock::unix_s),
        })
    }

    fn connect(&mut self, link: LinkId) {
        let address = {
            let links = self.links.lock().expect("no thread panics while it has the links");
            links.get(link).map(|known| known.link.address.clone()).unwrap_or_default()
        };
        self.forget(link);
        let (_, mut orders, tell) = self.connection(link, address.clone());
        let calling = (self.setup.connector)(address, &self.setup.config);
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
        self.connections.get(&link).and_then(|connection| connection.proven.as_deref())
    }

    /// Address of the other end of a link's connection.
    pub(crate) fn address(&self, link: LinkId) -> Option<&str> {
        let connection = self.connections.get(&link).map(|connection| connection.address.as_str());
        connection.or_else(|| self.sockets.address(link))
    }

    // -- Engines ------------------------------------------------------------------------------------------------

    /// Passes on everything that the engines emit, until they emit nothing.
    pub(crate) fn drain(&mut self, now: Instant) {
        self.store.set_copies(self.receive_budget.is_full_of_buffers());
        loop {
            self.tell_damage_with_names(now);
            while let Some(indication) = self.engines.poll_indication(now) {
                if self.see(now, &indication) {
                    self.applications.indication(indication);
                }
            }
            match self.engines.poll_request(now) {
                Some(Port::First(request)) => self.store.request(now, request),
                Some(Port::Second(Port::First((link, Port::First(request))))) => {
                    self.stream_request(link, request);
                }
                Some(Port::Second(Port::First((link, Port::Second(request))))) => {
                    self.datagrams_request(link, request);
                }
                Some(Port::Second(Port::Second((line, request)))) => self.lines.request(line, request),
                None => {
                    if let Some(answer) = self.store.answer(now) {
                        self.engines.handle_indication(now, Port::First(answer));
                    } else if let Some(request) = self.applications.next_request() {
                        self.engines.handle_request(now, request);
                    } else {
                        break;
                    }
                }
            }
        }
        self.see_refused(now);
        self.store.flush();
        self.receive_budget.set_store(self.store.waiting_bytes());
    }

    /// Records refused callers.
    fn see_refused(&mut self, now: Instant) {
        for RefusedCaller { link, claim, refusal } in std::mem::take(&mut self.engines.lower.second.refused) {
            self.callers.refused(refusal);
            let address = self.address(link).unwrap_or_default().to_owned();
            let (reason, why) = (refusal.word().to_owned(), refusal.words().to_owned());
            let peer = claim.as_deref().map(plain);
            self.note(now, crate::view::Event::CallerRefused { address, peer, reason, why });
        }
    }

    /// Records an indication of the agent. Returns false if applications must not get it.
    fn see(&mut self, now: Instant, indication: &AppIndication) -> bool {
        let AppIndication::Link { link, peer, down } = indication else {
            return self.record_indication(now, indication);
        };
        self.record_indication(now, indication);
        match down {
            None => self.callers.up(now, *link),
            Some(_) => self.callers.down(*link),
        }
        let known = self.links.lock().expect("no thread panics while it has the links").get(*link).is_some();
        if !known && (down.is_some() || !link.is_incoming()) {
            // A closed incoming connection, or a link that is not in the configuration now.
            self.seen.remove(link);
            return false;
        }
        if down.is_none() {
            self.tls.up(*link);
        }
        let peer = peer.as_deref().map(plain);
        let before = self.seen.remove(link);
        let up = down.is_none();
        // A link that fails to connect repeatedly has been down all the time.
        let since = before.as_ref().filter(|before| !before.up && !up).map_or(now, |before| before.since);
        let was_up = up || before.as_ref().is_some_and(|before| before.was_up);
        let led_to = peer.clone().or(before.and_then(|before| before.led_to));
        self.seen.insert(*link, LinkObservation { up, peer, led_to, down: *down, since, was_up });
        false
    }

    /// Reloads the configuration file, if there is one; links and routes follow it.
    pub(crate) fn reload(&mut self, now: Instant) -> Reply {
        let Some(path) = self.setup.path.clone() else {
            return Reply::error("this node has no configuration file", None);
        };
        let read = crate::config::Config::load(&path)
            .and_then(|config| config.credentials().map(|credentials| (config, credentials)));
        let done = match read {
            Ok((config, credentials)) => {
                let needs_restart = self.setup.config.needs_restart(&config);
                match self.apply(now, config) {
                    Reply::Error { what, hint } => Err((what, hint)),
                    _ => {
                        self.credentials = credentials.map(Arc::new);
                        Ok(needs_restart)
                    }
                }
            }
            Err(error) => Err((error.what, error.hint)),
        };
        self.tell_reload(now, done)
    }

    /// Reports the result of a reload: to the requester, in `status`, as an event, and on standard error, for operators who use
    /// the signal.
    fn tell_reload(&mut self, now: Instant, done: Result<Vec<String>, (String, Option<String>)>) -> Reply {
        match done {
            Ok(needs_restart) => {
                let list: Vec<String> = needs_restart.iter().map(|key| format!("`{key}`")).collect();
                let later = match &list[..] {
                    [] => String::new(),
                    list => {
                        format!("; changes to {} take effect after a restart", list.join(", "))
                    }
                };
                crate::standard_error::say(format_args!("longwire: configuration reloaded{later}"));
                let configuration = crate::view::Configuration { refused: None, needs_restart };
                self.configuration = configuration.clone();
                let needs_restart = configuration.needs_restart;
                self.note(now, crate::view::Event::ConfigurationRead { needs_restart });
                Reply::Done
            }
            Err((what, hint)) => {
                let more = hint.as_ref().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
                crate::standard_error::say(format_args!(
                    "longwire: configuration not reloaded, the previous one stays in use: {what}{more}"
                ));
                self.configuration.refused = Some(what.clone());
                let event =
                    crate::view::Event::ConfigurationRefused { what: what.clone(), hint: hint.clone() };
                self.note(now, event);
                Reply::Error { what, hint }
            }
        }
    }
}

/// Converts engine time to the time since the node's start.
fn since_start(at: Instant) -> Duration {
    Duration::from_nanos(at.as_nanos())
}

/// Makes the node ID that a peer claims safe to display: limited length, no control characters.
pub(crate) fn plain(name: &str) -> String {
    const CHARACTERS_MAX: usize = 128;
    name.chars().take(CHARACTERS_MAX).map(|c| if c.is_ascii_graphic() { c } else { '_' }).collect()
}
