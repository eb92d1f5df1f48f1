//! A running node.

use crate::config::descriptors;
use crate::config::gateway::GatewaySide;
use crate::config::{DatagramListener, StorageKind};
use crate::log;
use crate::node_setup::NodeSetup;
use crate::pumps::connect::{prepare_caller, set_buffers};
use crate::pumps::discovery::DiscoverySockets;
use crate::pumps::group;
use crate::pumps::program::{ProgramStream, reset_unless_ended};
use crate::pumps::quick_ack::QuickAck;
use crate::pumps::stream::ByteStream;
use crate::storage::{Log, OpenError, Opened, Scrub, ScrubPace, StorageDriver, random_u64};
use crate::surfaces::client::{AppClient, ClientFactory};
use crate::surfaces::control;
use crate::surfaces::counter_changes::CounterChanges;
use crate::surfaces::custody;
use crate::surfaces::echo;
use crate::surfaces::event_log::EventLog;
use crate::surfaces::folders::Folders;
use crate::surfaces::http::HttpInterface;
use crate::surfaces::mail;
use crate::surfaces::measuring;
use crate::task::{
    ActiveConfiguration, Applications, Connections, DamageLog, EventRecording, Gateways, LinkStates,
    NodeDiscovery, NodeStore, RefusalLog, SignatureLog, StatusWaiters, SurfaceStates, Task, TaskClock,
    TaskEvent, TurnMeter, read_security,
};
use crate::tell::Tell;
use crate::tower::links;
use crate::tower::neighbours::Neighbours;
use longwire_proto::bp::agent::{self, Agent};
use longwire_proto::joint::{Beside, PassThrough, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::ProgramKind;
use longwire_settings::error::Error;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

/// A running node on its own thread. Dropping it ends it as a crash would.
#[derive(Debug)]
pub struct Node {
    events: mpsc::UnboundedSender<TaskEvent>,
    client_factory: ClientFactory,
    addresses: Vec<SocketAddr>,
    http: Option<HttpInterface>,
    mail_address: Option<SocketAddr>,
    udp_addresses: Vec<SocketAddr>,
    gateway_addresses: Vec<SocketAddr>,
    opened: Opened,
    thread: Option<JoinHandle<()>>,
}

impl Node {
    /// Starts a node: opens its store, listens, and opens its links. The node is running when this returns.
    ///
    /// Its log is written only after [`log::begin`] was called.
    ///
    /// # Errors
    /// Fails if the store cannot be opened or an address is in use.
    pub fn start(setup: NodeSetup) -> Result<Node, Error> {
        setup.config.check()?;
        descriptors::raise();
        let credentials = setup.config.credentials()?.map(Arc::new);
        let (tell, events) = mpsc::unbounded_channel();
        let (store, scrub, opened) = open_store(&setup, &tell)?;
        let rng = Rng::new(random_u64());
        let (security, known_keys_file) = read_security(&setup.config, &setup.config.known_keys())?;
        let signatures = SignatureLog::new(&setup.config, &security, known_keys_file);
        let inhibited = match setup.config.storage.kind {
            StorageKind::Disk => crate::inhibited::read(&setup.config.inhibited())?,
            StorageKind::Memory => BTreeSet::new(),
        };
        let mut agent = Agent::new(agent_config(&setup), rng.fork("agent")).map_err(|error| {
            Error::new(format!("`{}` is not a valid node ID: {error}", setup.config.node))
        })?;
        agent.set_security(security);
        let neighbours = Neighbours::new(&setup.config, &rng)?;
        let engines = Stack::new(agent, Beside { first: PassThrough::new(), second: neighbours });
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| Error::new(format!("cannot start the event loop: {error}")))?;
        let client_factory = ClientFactory::new(Tell::to(&tell, TaskEvent::Client));
        let udp_addresses;
        let gateways;
        let counter_news = CounterChanges::new(Tell::to(&tell, TaskEvent::Counted));
        let counted_control =
            Arc::new(control::ControlCounters::new(&setup.config.applications, counter_news.clone()));
        let (addresses, folders) = {
            let _inside = runtime.enter();
            if setup.config.echo {
                let is_ipn = setup.config.node.starts_with("ipn:");
                runtime.spawn(echo::serve(client_factory.client(), is_ipn));
                // A folder that receives at this endpoint was there first.
                let service = measuring::service(is_ipn);
                if setup.config.receive.iter().all(|receive| receive.endpoint != service) {
                    runtime.spawn(measuring::serve(client_factory.client(), is_ipn));
                }
            }
            if setup.signals {
                heed_signals(&tell, &runtime)?;
            }
            let addresses = listen(&setup, &tell, &runtime)?;
            udp_addresses = listen_udp(&setup, &tell)?;
            if let Some(path) = &setup.config.control {
                control::listen(path, client_factory.clone(), counted_control.clone(), &runtime)?;
            }
            gateways = listen_for_programs(&setup, &tell, &runtime)?;
            let config = &setup.config;
            let folders = Folders::start(&config.drop, &config.receive, &setup.wall_clock, &client_factory)?;
            (addresses, folders)
        };
        let (gateway_addresses, mut custody_listeners) = gateways;
        let custody = custody::start(&setup.config, engines.upper.node(), &client_factory, |gateway| {
            custody_listeners.remove(&gateway)
        })?;
        let discovery = {
            let _inside = runtime.enter();
            let heard = Tell::to(&tell, TaskEvent::Announcement);
            let settings = &setup.config.discovery;
            NodeDiscovery::new(&setup.config, &addresses, rng.fork("discovery"), || {
                DiscoverySockets::open(settings, &heard)
            })?
        };
        let node = engines.upper.node().to_string();
        let event_log = Arc::new(EventLog::new(setup.config.http.events_max));
        let http = HttpInterface::start(
            &setup.config.http,
            node.clone(),
            &client_factory,
            event_log.clone(),
            counter_news,
        )?;
        let (mail, mail_address) =
            mail::start(&setup.config, &node, &setup.wall_clock, &client_factory, &event_log)?;
        let setup_gateways = setup.config.gateway.clone();
        let counted = http.as_ref().map(HttpInterface::counted);
        let task = Task {
            connections: Connections::new(&setup.config.stream, &tell),
            discovery,
            engines,
            clock: TaskClock::new(setup.wall_clock),
            configuration: ActiveConfiguration::new(setup.config, setup.path, credentials),
            link_states: LinkStates::default(),
            connector: setup.connector,
            applications: Applications::new(node),
            store: NodeStore { driver: store, scrub, opened, damage: DamageLog::default() },
            recording: EventRecording::new(event_log),
            refusals: RefusalLog::default(),
            signatures,
            inhibited,
            reports_not_believed: 0,
            status_waiters: StatusWaiters::default(),
            turns: TurnMeter::default(),
            gateways: Gateways::new(&setup_gateways),
            surfaces: SurfaceStates { control: counted_control, http: counted, folders, custody, mail },
            events,
        };
        let thread = std::thread::Builder::new()
            .name("node".into())
            .spawn(move || runtime.block_on(task.run()))
            .map_err(|error| Error::new(format!("cannot start a thread: {error}")))?;
        Ok(Node {
            events: tell,
            client_factory,
            addresses,
            udp_addresses,
            gateway_addresses,
            http,
            mail_address,
            opened,
            thread: Some(thread),
        })
    }

    /// Connects a new application.
    pub fn client(&self) -> AppClient {
        self.client_factory.client()
    }

    /// Returns a function that connects applications, for use from other threads.
    pub fn clients(&self) -> impl Fn() -> AppClient + Send + Sync + 'static {
        let client_factory = self.client_factory.clone();
        move || client_factory.client()
    }

    /// Addresses on which the node listens for TCPCL, with the ports that the system chose for port 0.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Address of the HTTP interface; `None` if it is off.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(HttpInterface::address)
    }

    /// Address for mail programs; `None` without one.
    pub fn mail_address(&self) -> Option<SocketAddr> {
        self.mail_address
    }

    /// Addresses on which the node listens for UDP, as in [`addresses`](Self::addresses).
    pub fn udp_addresses(&self) -> &[SocketAddr] {
        &self.udp_addresses
    }

    /// Addresses on which gateways listen for programs, as in [`addresses`](Self::addresses).
    pub fn gateway_addresses(&self) -> &[SocketAddr] {
        &self.gateway_addresses
    }

    /// Result of opening the store.
    pub fn opened(&self) -> Opened {
        self.opened
    }

    /// Adds an incoming connection over `wire`, from a peer at the address `from`.
    pub fn call(&self, wire: impl ByteStream, from: &str) {
        let _ = self.events.send(TaskEvent::Caller(Box::new(wire), from.to_owned()));
    }

    /// Notifies the node that the wall clock has jumped.
    pub fn clock_jumped(&self) {
        let _ = self.events.send(TaskEvent::Clock);
    }

    /// Reloads the configuration: links, routes, limits and folders change without a restart.
    pub fn reload(&self) {
        let _ = self.events.send(TaskEvent::Reload);
    }

    /// Shuts the node down and waits for its end.
    pub fn stop(mut self) {
        self.end(false);
    }

    /// Waits until the node ends.
    pub fn wait(mut self) {
        self.join();
    }

    fn end(&mut self, at_once: bool) {
        let _ = self.events.send(TaskEvent::Stop { at_once });
        self.join();
    }

    fn join(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let ended = thread.join();
        log::finish();
        if let Err(panic) = ended
            && !std::thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if self.thread.is_some() {
            self.end(true);
        }
    }
}

fn agent_config(setup: &NodeSetup) -> agent::Config {
    let mut config = setup.config.agent.clone();
    config.routing = setup.config.routing.clone();
    config.peers = setup.config.peer.clone();
    config.node = setup.config.node_id().map(|eid| eid.to_string()).unwrap_or_default();
    // Links have IDs in the order of the configuration, from 1.
    let special = setup.config.link.iter().zip(1..).map(|(link, id)| {
        let id = longwire_proto::service::LinkId(id);
        links::special(&setup.config, id, link)
    });
    config.links = special.collect();
    config
}

type OpenedStore = (StorageDriver, Option<Scrub>, Opened);

fn open_store(setup: &NodeSetup, tell: &mpsc::UnboundedSender<TaskEvent>) -> Result<OpenedStore, Error> {
    let storage = &setup.config.storage;
    let (tell, damaged) = (tell.clone(), tell.clone());
    let tell = Box::new(move |said| drop(tell.send(TaskEvent::Storage(said))));
    let failed = |error: OpenError| {
        Error::new(format!("cannot open the store {}: {error}", storage.path.display())).hint(error.hint())
    };
    let no_thread = |error| Error::new(format!("cannot start a thread: {error}"));
    if let Some(open) = &setup.store {
        let drive = StorageDriver::start(open(), storage.cache_bytes, tell).map_err(no_thread)?;
        return Ok((drive, None, Opened::default()));
    }
    match storage.kind {
        StorageKind::Memory => Ok((StorageDriver::memory(storage.memory_bytes), None, Opened::default())),
        StorageKind::Disk => {
            let (log, mut opened) = Log::open(&storage.path).map_err(failed)?;
            opened.untold =
                log.quarantine().listen(move |damage| drop(damaged.send(TaskEvent::Damage(damage))));
            let pace = ScrubPace { every: storage.scrub_every, bytes_per_s: storage.scrub_bytes_per_s };
            let scrub = (!pace.every.is_zero()).then(|| log.scrub(pace)).transpose().map_err(no_thread)?;
            let drive = StorageDriver::start(Box::new(log), storage.cache_bytes, tell).map_err(no_thread)?;
            Ok((drive, scrub, opened))
        }
    }
}

fn listen(
    setup: &NodeSetup,
    tell: &mpsc::UnboundedSender<TaskEvent>,
    runtime: &runtime::Runtime,
) -> Result<Vec<SocketAddr>, Error> {
    let mut addresses = Vec::new();
    for text in &setup.config.listen {
        let listener = bind(text, setup).map_err(|error| {
            Error::new(format!("cannot listen on {text}: {error}")).hint(
                "another program may be using the port; `listen` is host:port, and the port of TCPCL is 4556",
            )
        })?;
        addresses.extend(listener.local_addr());
        runtime.spawn(accept(listener, tell.clone()));
    }
    Ok(addresses)
}

fn listen_udp(setup: &NodeSetup, tell: &mpsc::UnboundedSender<TaskEvent>) -> Result<Vec<SocketAddr>, Error> {
    let mut addresses = Vec::new();
    for text in &setup.config.listen_udp {
        let listener = DatagramListener::parse(text)?;
        let group = listener.group();
        let is_group = group.is_some();
        let DatagramListener { kind, address: text } = listener;
        let socket = match group {
            Some(group) => group::receiver(&group),
            None => group::beside_groups(text, setup.config.discovery.peers.is_some()),
        };
        let bound = socket.and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (address, socket) = bound.map_err(|error| {
            Error::new(format!("cannot listen on {text} over UDP: {error}"))
                .hint("another program may be using the port; `listen-udp` is host:port, usually port 4556")
        })?;
        addresses.push(address);
        let _ = tell.send(TaskEvent::Listens { socket, at: address.to_string(), kind, is_group });
    }
    Ok(addresses)
}

/// Addresses of the gateways at the near side, and the sockets of those that take custody, by the index of the gateway.
type GatewayListeners = (Vec<SocketAddr>, BTreeMap<usize, std::net::TcpListener>);

/// Listens for the programs of gateways.
fn listen_for_programs(
    setup: &NodeSetup,
    tell: &mpsc::UnboundedSender<TaskEvent>,
    runtime: &runtime::Runtime,
) -> Result<GatewayListeners, Error> {
    let (mut addresses, mut custody) = (Vec::new(), BTreeMap::new());
    for (index, gateway) in setup.config.gateway.iter().enumerate() {
        let Some(GatewaySide::Near(text)) = gateway.side() else { continue };
        let opened = match gateway.kind() {
            ProgramKind::Stream => bind(text, setup).and_then(|listener| {
                let address = listener.local_addr()?;
                // Connections that are accepted inherit it.
                reset_unless_ended(&listener)?;
                match gateway.takes_custody() {
                    true => drop(custody.insert(index, listener.into_std()?)),
                    false => drop(runtime.spawn(accept_programs(index, listener, tell.clone()))),
                }
                Ok(address)
            }),
            ProgramKind::Datagrams => std::net::UdpSocket::bind(text).and_then(|socket| {
                socket.set_nonblocking(true)?;
                let socket = tokio::net::UdpSocket::from_std(socket)?;
                let address = socket.local_addr()?;
                let _ = tell.send(TaskEvent::ListensForPrograms(index, socket, address.to_string()));
                Ok(address)
            }),
        };
        addresses.push(opened.map_err(|error| {
            Error::new(format!("cannot listen for programs on {text}: {error}")).hint(
                "another program may be using the port; set `listen-tcp` or `listen-udp` of the [[gateway]]",
            )
        })?);
    }
    Ok((addresses, custody))
}

/// Accepts the connections of programs to a gateway.
async fn accept_programs(gateway: usize, listener: TcpListener, tell: mpsc::UnboundedSender<TaskEvent>) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                let is_prepared = prepare_caller(&stream).is_ok();
                let wire = Box::new(ProgramStream::new(stream));
                if is_prepared && tell.send(TaskEvent::Program(gateway, wire, from.to_string())).is_err() {
                    return;
                }
            }
            // Probably out of file descriptors: other connections must close first.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
}

fn bind(text: &str, setup: &NodeSetup) -> std::io::Result<TcpListener> {
    let mut last = std::io::Error::new(std::io::ErrorKind::NotFound, "no such address");
    for address in std::net::ToSocketAddrs::to_socket_addrs(text)? {
        let bound = (|| {
            let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            socket.set_reuseaddr(true)?;
            set_buffers(&socket, &setup.config)?;
            socket.bind(address)?;
            socket.listen(1024)
        })();
        match bound {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// SIGHUP reloads the configuration; SIGINT and SIGTERM shut the node down, and a second one ends it at once.
fn heed_signals(tell: &mpsc::UnboundedSender<TaskEvent>, runtime: &runtime::Runtime) -> Result<(), Error> {
    let failed = |error: std::io::Error| Error::new(format!("cannot install a signal handler: {error}"));
    let mut hang_up = signal(SignalKind::hangup()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let tell = tell.clone();
    runtime.spawn(async move {
        loop {
            let event = tokio::select! {
                _ = hang_up.recv() => TaskEvent::Reload,
                _ = interrupt.recv() => TaskEvent::Stop { at_once: false },
                _ = terminate.recv() => TaskEvent::Stop { at_once: false },
            };
            if tell.send(event).is_err() {
                return;
            }
        }
    });
    Ok(())
}

async fn accept(listener: TcpListener, tell: mpsc::UnboundedSender<TaskEvent>) {
    loop {
        match listener.accept().await {
            Ok((stream, from)) => {
                if prepare_caller(&stream).is_ok()
                    && tell
                        .send(TaskEvent::Caller(Box::new(QuickAck::new(stream)), from.to_string()))
                        .is_err()
                {
                    return;
                }
            }
            // Probably out of file descriptors: other connections must close first.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
}
