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

mod applications;
mod bundles;
mod busy_loop_guard;
mod callers;
mod clock;
mod configuration;
mod connections;
mod datagrams;
mod discovery;
mod estimate;
mod event;
mod event_recording;
mod gateways;
mod link_states;
mod longwire_peers;
mod management;
mod radio;
mod receipts;
mod refusals;
mod security;
mod status;
mod status_waiters;
mod store;
mod tls_log;
mod turn_meter;

pub(crate) use applications::Applications;
pub(crate) use clock::TaskClock;
pub(crate) use configuration::ActiveConfiguration;
pub(crate) use connections::Connections;
pub(crate) use discovery::NodeDiscovery;
pub(crate) use event::TaskEvent;
pub(crate) use event_recording::EventRecording;
pub(crate) use gateways::Gateways;
pub(crate) use link_states::LinkStates;
pub(crate) use refusals::RefusalLog;
pub(crate) use security::{SignatureLog, read_security};
pub(crate) use status::SurfaceStates;
pub(crate) use status_waiters::StatusWaiters;
pub(crate) use store::{DamageLog, NodeStore};
pub(crate) use turn_meter::TurnMeter;

use crate::pumps::connect::Connector;
use crate::pumps::datagram::Listening;
use crate::storage::Scrub;
use crate::surfaces::client::{ClientEvent, ClientId};
use crate::surfaces::message::{Message, Request};
use crate::tower::neighbours::Neighbours;
use longwire_proto::bp::agent::Agent;
use longwire_proto::engine::{self, Engine};
use longwire_proto::joint::{Beside, PassThrough, Stack};
use longwire_proto::service::{
    AppRequest, BpaIndication, BpaRequest, LinkId, ManagementRequest, Port, Storage,
};
use longwire_proto::time::{Duration, Instant};
use longwire_towers::{AnyCarrier, MediaRequest, carriers};
use std::collections::BTreeSet;
use tokio::sync::mpsc;

/// Maximum time for the identification of stations when the node stops.
const IDENTIFIES_WITHIN: Duration = Duration::from_secs(5);
/// Interval at which the wall clock is passed to the agent.
const CLOCK_EVERY: Duration = Duration::from_secs(5);
/// Maximum events handled before the engines are drained.
const BATCH_EVENTS: usize = 256;

/// Maximum answers of the store, and as many requests of applications, handled before the engines are polled: after more, a bundle
/// would have left the caches of the processor before its next step. Answers of the store grant no room, so they need not be polled
/// one by one.
const HANDED_AT_ONCE: usize = 16;

/// The agent over the storage and all neighbours.
pub(crate) type Engines = Stack<Agent, Beside<PassThrough<Storage>, Neighbours>>;

/// The parts of [`Engines`] by name.
pub(crate) trait EngineParts {
    fn neighbours(&self) -> &Neighbours;
    fn neighbours_mut(&mut self) -> &mut Neighbours;
    fn agent_and_neighbours(&mut self) -> (&mut Agent, &Neighbours);
}

impl EngineParts for Engines {
    fn neighbours(&self) -> &Neighbours {
        &self.lower.second
    }

    fn neighbours_mut(&mut self) -> &mut Neighbours {
        &mut self.lower.second
    }

    fn agent_and_neighbours(&mut self) -> (&mut Agent, &Neighbours) {
        (&mut self.upper, &self.lower.second)
    }
}

/// The engines of a node and everything around them.
pub(crate) struct Task {
    pub(crate) engines: Engines,
    pub(crate) configuration: ActiveConfiguration,
    pub(crate) clock: TaskClock,
    pub(crate) link_states: LinkStates,
    pub(crate) connections: Connections,
    /// Discovery of neighbours; `None` if it is off.
    pub(crate) discovery: Option<NodeDiscovery>,
    pub(crate) connector: Connector,
    pub(crate) gateways: Gateways,
    pub(crate) applications: Applications,
    pub(crate) store: NodeStore,
    pub(crate) recording: EventRecording,
    pub(crate) refusals: RefusalLog,
    pub(crate) signatures: SignatureLog,
    /// Names of the TNCs whose transmissions an operator has inhibited.
    pub(crate) inhibited: BTreeSet<String>,
    pub(crate) reports_not_believed: u64,
    pub(crate) status_waiters: StatusWaiters,
    pub(crate) turns: TurnMeter,
    pub(crate) surfaces: SurfaceStates,
    pub(crate) events: mpsc::UnboundedReceiver<TaskEvent>,
}

impl Task {
    /// Runs until the node is stopped.
    pub(crate) async fn run(mut self) {
        let now = self.clock.now();
        self.set_up(now);
        self.drain(now);
        self.applications.hand_over();
        let mut batch = Vec::with_capacity(BATCH_EVENTS);
        let mut clock_at = now + CLOCK_EVERY;
        let mut wake = Instant::ZERO;
        let sleep = tokio::time::sleep_until(self.clock.at(Instant::ZERO));
        tokio::pin!(sleep);
        loop {
            let at = self.clock.at(wake);
            if sleep.deadline() != at {
                sleep.as_mut().reset(at);
            }
            tokio::select! {
                biased;
                count = self.events.recv_many(&mut batch, BATCH_EVENTS) => debug_assert!(count > 0),
                () = &mut sleep => {}
            }
            let now = self.clock.now();
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
                self.look_at_programs(now);
                self.look_at_watchers(now);
                self.close_idle_stations(now);
                happened = true;
            }
            self.tell_rooms(now);
            if self.engines.poll_timeout().is_some_and(|at| at <= now) {
                self.engines.handle_timeout(now);
                happened = true;
            }
            self.drain(now);
            if self.tend_discovery(now) {
                happened = true;
                self.drain(now);
            }
            if let Some(callers) = self.engines.neighbours_mut().identities.new_beside_links() {
                self.engines.upper.set_beside_links(callers);
            }
            if self.store.driver.has_failed() || self.store.scrub.as_ref().is_some_and(Scrub::has_failed) {
                // The panic of that thread is passed on where it is joined. The clock timer wakes this loop, so that this happens
                // soon.
                return;
            }
            self.tell_news(now, happened);
            self.applications.hand_over();
            self.turns.add(self.clock.now().saturating_since(now));
            wake = self.rest(now, heard, clock_at);
        }
    }

    /// Closes sessions, waits up to 2 s for them, lets stations identify themselves, and lets the store finish.
    async fn stop(mut self, now: Instant, at_once: bool) {
        self.tell_waiting_damage(now);
        self.keep_last_keys();
        self.applications.hand_over();
        if at_once {
            return;
        }
        let mut open: Vec<LinkId> = self.connections.links().collect();
        open.extend(self.engines.neighbours().radios.busy());
        for link in open {
            self.ask(now, ManagementRequest::CloseLink { link });
        }
        self.drain(now);
        self.applications.hand_over();
        let are_closed = |task: &Task| {
            task.connections.links().next().is_none() && task.engines.neighbours().radios.busy().is_empty()
        };
        if !self.run_until(Duration::from_secs(2), are_closed).await {
            return;
        }
        // A station that has transmitted since its last identification identifies itself once more, if it may and can.
        let now = self.clock.now();
        self.engines.neighbours_mut().radios.identify_at_end();
        self.drain(now);
        self.applications.hand_over();
        self.run_until(IDENTIFIES_WITHIN, |task| !task.engines.neighbours().radios.must_identify()).await;
    }

    /// Runs until the condition holds, at most for this time. Returns false if the node must stop at once.
    async fn run_until(&mut self, within: Duration, is_done: impl Fn(&Task) -> bool) -> bool {
        let limit = tokio::time::sleep(within);
        tokio::pin!(limit);
        while !is_done(self) {
            let wake = self.engines.poll_timeout().map_or(limit.deadline(), |at| self.clock.at(at));
            tokio::select! {
                event = self.events.recv() => match event {
                    Some(TaskEvent::Stop { .. }) | None => return false,
                    Some(event) => self.hear(self.clock.now(), event),
                },
                () = &mut limit => return true,
                () = tokio::time::sleep_until(wake) => {}
            }
            let now = self.clock.now();
            self.tell_rooms(now);
            if self.engines.poll_timeout().is_some_and(|at| at <= now) {
                self.engines.handle_timeout(now);
            }
            self.drain(now);
            self.applications.hand_over();
        }
        true
    }

    fn set_up(&mut self, now: Instant) {
        self.tell_time(now);
        self.inhibit_again();
        for endpoint in self.configuration.config.endpoints.clone() {
            self.ask(now, AppRequest::Register { endpoint });
        }
        for route in self.configuration.config.route.clone() {
            if let Some(request) = self.route(&route) {
                self.ask(now, request);
            }
        }
        let open: Vec<LinkId> = {
            let links = &self.engines.neighbours().links;
            links.iter().filter(|(_, known)| known.link.open).map(|(id, _)| id).collect()
        };
        self.plan(now);
        for link in open {
            self.ask(now, ManagementRequest::OpenLink { link });
        }
        self.begin_discovery(now);
    }

    /// Passes a request to the agent.
    pub(crate) fn ask(&mut self, now: Instant, request: impl Into<BpaRequest>) {
        self.engines.handle_request(now, request.into());
    }

    fn tell_time(&mut self, now: Instant) {
        let dtn_ms = self.clock.dtn_ms();
        let steady = crate::clock::steady();
        self.ask(now, ManagementRequest::SetClock { dtn_ms, steady });
        self.plan(now);
    }

    fn hear(&mut self, now: Instant, event: TaskEvent) {
        match event {
            TaskEvent::Storage(said) => {
                for indication in said {
                    self.store.driver.heard(&indication);
                    self.engines.handle_indication(now, Port::First(indication));
                }
            }
            TaskEvent::Damage(damage) => self.hear_damage(now, damage),
            TaskEvent::Pump(said) => self.hear_pump(now, said),
            TaskEvent::Datagrams(said) => self.hear_datagrams(now, said),
            TaskEvent::Announcement(heard) => self.hear_datagram(now, heard),
            TaskEvent::Listens { socket, at, kind, is_group } => {
                let link = self.engines.neighbours_mut().listening(&at, kind);
                let damaged = carriers::find(kind).is_some_and(AnyCarrier::uses_damaged);
                self.connections.sockets.listen(link, socket, at, kind, Listening { is_group, damaged });
            }
            TaskEvent::Program(gateway, wire, address) => self.hear_program(now, gateway, wire, address),
            TaskEvent::ListensForPrograms(gateway, socket, at) => {
                self.listen_for_programs(gateway, socket, at)
            }
            TaskEvent::Caller(wire, address) => self.hear_caller(now, wire, address),
            TaskEvent::Client(ClientEvent::Arrives(id, end)) => self.applications.arrive(id, end),
            TaskEvent::Client(ClientEvent::Request(id, message)) => self.hear_application(now, id, message),
            TaskEvent::Client(ClientEvent::Leaves(id)) => {
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
            self.applications.say(id, reply);
        }
    }

    /// Passes on everything that the engines emit, until they emit nothing.
    pub(crate) fn drain(&mut self, now: Instant) {
        self.store.driver.set_copies(self.connections.receive_budget.is_full_of_buffers());
        loop {
            self.tell_damage_with_names(now);
            while let Some(indication) = self.engines.poll_indication(now) {
                match indication {
                    BpaIndication::Manage(indication) => self.see(now, &indication),
                    BpaIndication::App(indication) => {
                        if self.record_indication(now, &indication) {
                            self.applications.indication(indication);
                        }
                    }
                }
            }
            if let Some(request) = self.engines.poll_request(now) {
                self.carry_out(now, request);
                continue;
            }
            let mut has_work = false;
            for _ in 0..HANDED_AT_ONCE {
                let Some(answer) = self.store.driver.answer(now) else { break };
                has_work = true;
                self.engines.handle_indication(now, Port::First(answer));
            }
            if has_work {
                continue;
            }
            for _ in 0..HANDED_AT_ONCE {
                let Some(request) = self.applications.next_request() else { break };
                has_work = true;
                // Each read is answered before the next one: a delivery has few outstanding reads, and more are ignored.
                let is_read = matches!(request, AppRequest::Read { .. });
                self.ask(now, request);
                if is_read {
                    break;
                }
            }
            if !has_work {
                break;
            }
        }
        self.see_refused(now);
        self.keep_new_keys(now);
        self.end_encrypted_amateurs(now);
        self.store.driver.flush();
        self.connections.receive_budget.set_store(self.store.driver.waiting_bytes());
    }

    /// Carries out a request of the engines.
    fn carry_out(&mut self, now: Instant, request: engine::Request<<Engines as Engine>::Below>) {
        match request {
            Port::First(request) => self.store.driver.request(now, request),
            Port::Second(Port::First((link, request))) => match request {
                MediaRequest::Stream(request) => self.stream_request(link, request),
                MediaRequest::Datagrams(request) => self.datagrams_request(now, link, request),
                MediaRequest::Programs(request) => self.program_request(now, link, request),
                MediaRequest::Packets(_) => unreachable!("stations are below the sessions over them"),
            },
            Port::Second(Port::Second((line, request))) => self.line_request(line, request),
        }
    }
}
