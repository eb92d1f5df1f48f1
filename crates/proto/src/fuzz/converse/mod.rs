//! Every conversing engine between a user and a provider that follow a script.
//!
//! Both keep to the contract, and so does the engine: each play is inside a [`Checked`]. The data that the provider
//! transports come from a peer, which may send anything.
//!
//! ```text
//!   script: 07 3f 00 ...  ->  one byte: time passes, the user acts, or the provider acts; then the details
//! ```

mod aeronp;
mod app;
mod bundles;
mod datagrams;
mod frames;
mod links;
mod packets;
mod radio;
mod smtp;
mod storage;
mod stream;

use crate::bp::agent::{self, Agent};
use crate::engine::{Engine, Indication, Request, drain};
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, Datagrams, InterfaceId, LinkId, Packets, Port,
    StorageIndication, StorageRequest, Stream,
};
use crate::tcp::Host;
use crate::tcp::config::{HostConfig, InterfaceConfig, PeerConfig, Profile};
use crate::time::{Duration, Instant};
use crate::wrap::{Checked, CheckedService};
use bytes::Bytes;
use core::net::Ipv4Addr;

/// A conversing engine under test.
#[derive(Debug)]
pub struct Play {
    /// Name, for messages.
    pub name: &'static str,
    /// Plays a script, and returns the amount of the engine's output.
    pub run: fn(&mut Script<'_>) -> u64,
}

/// All plays but those of convergence layers.
pub const PLAYS: &[Play] = &[
    Play { name: "tcp host", run: host },
    Play { name: "ax25 station", run: radio::station },
    Play { name: "aeronp node", run: aeronp::node },
    Play { name: "kiss tnc", run: radio::tnc },
    Play { name: "agwpe port", run: radio::agwpe_port },
    Play { name: "bundle agent", run: agent },
    Play { name: "mail server", run: smtp::server },
];

/// Bytes that determine the events. The play ends with them.
#[derive(Debug)]
pub struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    /// Creates a script of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Script(bytes)
    }

    /// Returns true at the end.
    pub fn is_over(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the next byte; zero at the end.
    pub fn byte(&mut self) -> u8 {
        let Some((&byte, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        byte
    }

    /// Returns a number below `bound`, which is at most 256.
    pub fn below(&mut self, bound: u64) -> u64 {
        u64::from(self.byte()) % bound
    }

    /// Returns true or false.
    pub fn chance(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Returns a number of any magnitude.
    pub fn number(&mut self) -> u64 {
        let magnitude = self.below(64);
        self.rng().next_u64() >> magnitude
    }

    /// Returns some of the script's own bytes.
    pub fn bytes(&mut self, length_max: usize) -> Bytes {
        let length = usize::from(self.byte()).min(length_max).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        Bytes::copy_from_slice(bytes)
    }

    /// Returns a generator for legal messages, which are long: two bytes select one.
    pub fn rng(&mut self) -> Rng {
        Rng::new(u64::from(u16::from_be_bytes([self.byte(), self.byte()])))
    }

    /// Returns one of the elements.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let choice = self.byte();
        if from.is_empty() { None } else { Some(from[usize::from(choice) % from.len()].clone()) }
    }
}

/// User, which receives indications and emits requests, or provider, with the reverse directions.
trait ScriptedSide<Hears, Says> {
    fn hear(&mut self, message: Hears);
    /// Returns the message that the script determines; `None` if it is not allowed now.
    fn say(&mut self, script: &mut Script<'_>) -> Option<Says>;
}

fn play<E: Engine>(
    name: &str,
    engine: E,
    user: &mut dyn ScriptedSide<Indication<E::Above>, Request<E::Above>>,
    provider: &mut dyn ScriptedSide<Request<E::Below>, Indication<E::Below>>,
    script: &mut Script<'_>,
) -> u64
where
    E::Above: CheckedService,
    E::Below: CheckedService,
{
    let mut engine = Checked::new(name, engine);
    let mut now = Instant::ZERO;
    let mut said = 0;
    loop {
        drain(
            &mut engine,
            now,
            |indication| {
                said += 1;
                user.hear(indication);
            },
            |request| provider.hear(request),
        );
        if script.is_over() || engine.finished() {
            return said;
        }
        match script.below(8) {
            0 => {
                now = later(now, engine.poll_timeout(), script);
                engine.handle_timeout(now);
            }
            1..=3 => {
                if let Some(request) = user.say(script) {
                    engine.handle_request(now, request);
                }
            }
            _ => {
                if let Some(indication) = provider.say(script) {
                    engine.handle_indication(now, indication);
                }
            }
        }
    }
}

/// End of time for every play: later deadlines never expire.
const END: Instant = Instant::from_secs(1 << 32);

/// Returns a later time: the deadline, or a little later than now.
fn later(now: Instant, deadline: Option<Instant>, script: &mut Script<'_>) -> Instant {
    let little = (now + Duration::from_micros(1 << script.below(26))).min(END);
    match deadline.filter(|&deadline| deadline < END) {
        Some(deadline) if deadline < little || script.chance() => deadline.max(now),
        _ => little,
    }
}

/// Function that returns the next data of a peer, as the script determines. It may keep a number, which is `None` on each
/// new connection.
pub type Speech = fn(&mut Option<u8>, &mut Script<'_>) -> Bytes;

/// Plays a session over a stream whose peer calls or is called, and returns the amount of its output.
pub fn over_stream<E>(engine: E, is_called: bool, speech: Speech, script: &mut Script<'_>) -> u64
where
    E: Engine<Above = Bundles, Below = Stream>,
{
    let mut provider = stream::Provider::new(is_called, speech);
    play("session", engine, &mut bundles::User::default(), &mut provider, script)
}

/// Plays a session over a packet link, as [`over_stream`].
pub fn over_packets<E>(engine: E, is_called: bool, speech: Speech, script: &mut Script<'_>) -> u64
where
    E: Engine<Above = Bundles, Below = Packets>,
{
    let mut provider = packets::Provider::new(is_called, speech);
    play("session", engine, &mut bundles::User::default(), &mut provider, script)
}

/// Plays a session over datagrams, as [`over_stream`]. An endpoint that is called has no configured peer.
pub fn over_datagrams<E>(engine: E, is_called: bool, speech: Speech, script: &mut Script<'_>) -> u64
where
    E: Engine<Above = Bundles, Below = Datagrams>,
{
    let mut provider = datagrams::Provider::new(is_called, speech);
    play("session", engine, &mut bundles::User::default(), &mut provider, script)
}

const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
const INTERFACE: InterfaceId = InterfaceId(0);
const LINK: LinkId = LinkId(1);
const PORT: u16 = 4556;

fn host(script: &mut Script<'_>) -> u64 {
    let profile = Profile {
        send_buffer_bytes: 1 << (9 + script.below(6)),
        receive_buffer_bytes: 1 << (9 + script.below(6)),
        ..Profile::default()
    };
    let interface = InterfaceConfig { interface: INTERFACE, address: HERE, ..Default::default() };
    let config = HostConfig {
        profile,
        interfaces: vec![interface],
        listen: vec![PORT],
        peers: vec![PeerConfig { link: LINK, address: THERE, port: PORT }],
        connections_max: 4,
        ..Default::default()
    };
    let engine = Host::new(config, script.rng());
    let mut users = stream::StreamUsers::new(LINK);
    let mut provider = frames::Provider::default();
    play("host", engine, &mut users, &mut provider, script)
}

/// Links of the agent: two of its own, and one that a peer opens.
const LINKS: [LinkId; 3] = [LinkId(1), LinkId(2), LinkId(LinkId::FIRST_INCOMING)];

/// Storage and links of an agent.
struct AgentProvider {
    storage: storage::Provider,
    links: links::Provider,
}

type AgentRequest = Port<StorageRequest, (LinkId, BundlesRequest)>;
type AgentIndication = Port<StorageIndication, (LinkId, BundlesIndication)>;

impl ScriptedSide<AgentRequest, AgentIndication> for AgentProvider {
    fn hear(&mut self, request: AgentRequest) {
        match request {
            Port::First(request) => self.storage.hear(request),
            Port::Second(request) => self.links.hear(request),
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<AgentIndication> {
        if self.storage.is_asked() && script.below(4) > 0 {
            self.storage.say(script).map(Port::First)
        } else {
            self.links.say(script).map(Port::Second)
        }
    }
}

const ROUTERS: [agent::RouterChoice; 5] = [
    agent::RouterChoice::Static,
    agent::RouterChoice::ContactPlan,
    agent::RouterChoice::Epidemic,
    agent::RouterChoice::SprayAndWait,
    agent::RouterChoice::Dtlsr,
];

fn agent(script: &mut Script<'_>) -> u64 {
    let config = agent::Config {
        node: "dtn://here/".to_owned(),
        limits: agent::Limits {
            bundles_max: 1 + script.below(16) as usize,
            buffer_bytes_max: 1 << (6 + script.below(10)),
            store_bytes_max: 1 << (8 + script.below(12)),
            sends_max: 4,
            incoming_max: 4,
            registrations_max: 4,
            reads_max: app::READS_MAX,
            ..Default::default()
        },
        piece_bytes_max: 1 << script.below(12),
        custody: agent::CustodyConfig {
            accept_from: if script.chance() { vec!["*".to_owned()] } else { Vec::new() },
            timer_min: Duration::from_millis(1 << script.below(18)),
            ..agent::CustodyConfig::default()
        },
        routing: agent::RoutingConfig {
            router: script.pick(&ROUTERS).unwrap_or_default(),
            copies: 1 + script.below(127) as u32,
            ..agent::RoutingConfig::default()
        },
        version6: agent::Version6Config {
            ages_in_seconds: if script.chance() { vec!["*".to_owned()] } else { Vec::new() },
            ..agent::Version6Config::default()
        },
        reports: agent::ReportConfig {
            reception: script.chance(),
            forwarding: script.chance(),
            delivery: script.chance(),
            deletion: script.chance(),
            ..Default::default()
        },
        ..Default::default()
    };
    let records: Vec<_> = (0..script.below(3)).map(|_| script.bytes(100)).collect();
    let engine = Agent::new(config, script.rng()).expect("the node id is one");
    let mut ground =
        AgentProvider { storage: storage::Provider::new(records), links: links::Provider::default() };
    play("agent", engine, &mut app::User::default(), &mut ground, script)
}
