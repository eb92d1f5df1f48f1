//! The four stations of the paper on one channel, their hosts, and what they carry.

use super::probes::Probe;
use crate::bundle_observer;
use crate::ethernet::node::OnEthernet;
use crate::ethernet::wire::MacAddress;
use crate::ethernet::{EthernetConfig, EthernetStation};
use crate::papers::text::data;
use crate::protocols::{Assembly, NodePosition};
use crate::workload::traffic::{Role, SharedMeasured, Traffic};
use crate::workload::{FileTask, TaskIndication, TaskRequest};
use crate::world;
use bytes::Bytes;
use longwire_proto::joint::{Beneath, Stack};
use longwire_proto::service::{InterfaceId, LinkId, Storage};
use longwire_proto::tcp::Host;
use longwire_proto::tcp::config::{HostConfig, InterfaceConfig, PeerConfig, Profile, RouteConfig};
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{Boot, ChannelId, NodeEngine, NodeId, RadioConfig, Simulation};
use std::net::Ipv4Addr;
use std::sync::Arc;

/// Interface of the radio of a station, and of the host of a tool.
pub(super) const RADIO: InterfaceId = InterfaceId(0);
/// Length of packets, bytes.
pub(super) const MTU_BYTES: u16 = 1500;
/// File of the transfers that interfere, their interval, and the stations that send and receive it.
const INTERFERING_BYTES: u64 = 64 * 1024;
const INTERFERING_EVERY: Duration = Duration::from_secs(120);
const INTERFERING: (usize, usize) = (3, 2);
/// First interface of the hosts of interfering transfers.
const SECOND_HOST: InterfaceId = InterfaceId(8);
/// Time limit of a run.
const LIMIT: Duration = Duration::from_secs(100_000);
const STATIONS: usize = 4;
const PORT: u16 = 5001;
const LINK: LinkId = LinkId(1);

/// TCP of the hosts. Linux limits the delay of an acknowledgement to the round trip of the handshake, which is about that of
/// a ping; since segments take longer, each of them is acknowledged by itself.
pub(super) fn tcp() -> Profile {
    Profile {
        initial_window_segments: 3,
        receive_buffer_bytes: 87_380,
        send_buffer_bytes: 32_768,
        window_scaling: true,
        delayed_ack_maximum: Duration::from_millis(64),
        ..Profile::linux_2_6()
    }
}

/// Test configuration of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Configuration {
    /// Two radios on a bench.
    Control,
    /// Node 1 to node 2.
    PointToPoint,
    /// Node 1 through node 2 to node 3.
    SingleHop,
    /// Node 1 through nodes 2 and 3 to node 4.
    DoubleHop,
    /// Node 2 to node 3, with transfers from node 4 to node 3.
    HiddenNode,
}

impl Configuration {
    pub(super) const ALL: [Configuration; 5] = [
        Configuration::Control,
        Configuration::PointToPoint,
        Configuration::SingleHop,
        Configuration::DoubleHop,
        Configuration::HiddenNode,
    ];

    /// Name in records.
    pub(super) fn name(self) -> &'static str {
        match self {
            Configuration::Control => "control",
            Configuration::PointToPoint => "point-to-point",
            Configuration::SingleHop => "single-hop",
            Configuration::DoubleHop => "double-hop",
            Configuration::HiddenNode => "hidden-node",
        }
    }

    /// Stations of the source and the destination.
    fn ends(self) -> (usize, usize) {
        match self {
            Configuration::Control | Configuration::PointToPoint => (0, 1),
            Configuration::SingleHop => (0, 2),
            Configuration::DoubleHop => (0, 3),
            Configuration::HiddenNode => (1, 2),
        }
    }

    /// Number of radio links from source to destination.
    pub(super) fn links(self) -> usize {
        let (first, last) = self.ends();
        last - first
    }
}

/// What is sent from the source to the destination.
#[derive(Clone)]
pub(super) enum Load {
    /// TCP stream for this time, counted by the sender.
    Iperf(Duration),
    /// Download of a file of this length.
    Wget(u64),
    /// Files as bundles, with the nodes between source and destination as agents (`true`), or with one convergence layer
    /// session from source to destination, whose packets they forward.
    Bundles(Assembly, Vec<Bytes>, bool),
    /// Echo requests at this interval with these bytes of data.
    Ping(Duration, usize),
    /// Datagrams at this interval with these bytes above UDP, for the time.
    Datagrams(Duration, usize, Duration),
}

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Carried {
    /// Bytes that count.
    pub(super) bytes: u64,
    /// Time in which they were carried, seconds; `None` if that did not end.
    pub(super) seconds: Option<f64>,
    /// Mean round trip of echoes, milliseconds.
    pub(super) ping_ms: Option<f64>,
    /// Durations of the interfering transfers, seconds.
    pub(super) interfering_s: Vec<f64>,
    /// Share of the frames between neighbours on the path that were lost to other signals.
    pub(super) overlapped: f64,
}

/// Channel of the field.
pub(super) fn channel() -> RadioConfig {
    data(include_str!("channel.toml"))
}

/// A configuration, a load, and the channel.
#[derive(Clone)]
pub(super) struct Setup {
    pub(super) configuration: Configuration,
    pub(super) load: Load,
    pub(super) channel: RadioConfig,
    /// True if stations send and follow redirects, and learn hardware addresses instead of having a table of them.
    pub(super) redirects: bool,
}

/// Function that makes the engine of a host.
pub(super) type MakeHost = Box<dyn Fn(&Boot) -> NodeEngine<FileTask> + Send>;

/// Host at a station, with the addresses of its interfaces.
struct HostAt {
    station: usize,
    addresses: Vec<(InterfaceId, Ipv4Addr)>,
    make: MakeHost,
}

/// Address of a host for tools at a station.
fn tool_address(station: usize) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, 2, 10 + station as u8)
}

/// Address of the second host.
fn second_address(station: usize) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, 3, 10 + station as u8)
}

/// End of the traffic of a tool.
fn tool(
    station: usize,
    (interface, address): (InterfaceId, Ipv4Addr),
    peer: Ipv4Addr,
    role: Role,
    measured: SharedMeasured,
) -> HostAt {
    let make = move |boot: &Boot| -> NodeEngine<FileTask> {
        let config = HostConfig {
            profile: tcp(),
            interfaces: vec![InterfaceConfig {
                interface,
                address,
                mtu_bytes: MTU_BYTES,
                ..InterfaceConfig::default()
            }],
            routes: vec![RouteConfig { interface, prefix: Ipv4Addr::UNSPECIFIED, prefix_bits: 0 }],
            listen: vec![PORT],
            peers: vec![PeerConfig { link: LINK, address: peer, port: PORT }],
            ..HostConfig::default()
        };
        let traffic = Traffic::new(role, LINK, measured.clone());
        let host = Host::new(config, boot.rng.fork(&format!("tcp {interface:?}")));
        Box::new(Beneath::<_, Storage>::new(Stack::new(traffic, host)))
    };
    HostAt { station, addresses: vec![(interface, address)], make: Box::new(make) }
}

/// Nodes of bundles: at all stations of the path, or at its ends only.
fn bundle_nodes(assembly: &Assembly, stations: &[usize]) -> Vec<HostAt> {
    let hops = stations.len() - 1;
    let record = bundle_observer::record(hops);
    let node = |(position, station): (usize, &usize)| {
        let place = NodePosition {
            position,
            names: stations.iter().map(|station| format!("node{}", station + 1)).collect(),
            mtus: vec![MTU_BYTES; hops],
            radios: vec![None; hops],
            announced_outages: Vec::new(),
            bundles: record.clone(),
            arrivals: Arc::default(),
        };
        let inward = (position > 0).then(|| place.address_inward());
        let onward = (position < hops).then(|| place.address_onward());
        let assembly = assembly.clone();
        HostAt {
            station: *station,
            addresses: inward.into_iter().chain(onward).collect(),
            make: Box::new(move |boot| assembly.node(&place, boot.clone())),
        }
    };
    stations.iter().enumerate().map(node).collect()
}

/// Simulation of a run with what is observed.
struct Running {
    simulation: Simulation<FileTask>,
    nodes: Vec<NodeId>,
    channel: ChannelId,
    measured: SharedMeasured,
    interfering: SharedMeasured,
}

impl Setup {
    fn hosts(&self, measured: &SharedMeasured, interfering: &SharedMeasured) -> Vec<HostAt> {
        let (first, last) = self.configuration.ends();
        let at = |station: usize| (RADIO, tool_address(station));
        let [from, to] = [first, last].map(tool_address);
        let unread = SharedMeasured::default;
        let mut hosts = match &self.load {
            Load::Iperf(time) => vec![
                tool(first, at(first), to, Role::Iperf(*time), measured.clone()),
                tool(last, at(last), from, Role::Receive, unread()),
            ],
            Load::Wget(bytes) => vec![
                tool(first, at(first), to, Role::Serve(*bytes), unread()),
                tool(last, at(last), from, Role::Download(*bytes), measured.clone()),
            ],
            Load::Bundles(assembly, _, true) => bundle_nodes(assembly, &Vec::from_iter(first..=last)),
            Load::Bundles(assembly, _, false) => bundle_nodes(assembly, &[first, last]),
            Load::Ping(interval, bytes) => vec![Probe::ping(*interval, *bytes, from, to, measured)]
                .into_iter()
                .map(|probe| HostAt { station: first, addresses: vec![at(first)], make: probe.make() })
                .collect(),
            Load::Datagrams(interval, bytes, _) => {
                let [source, sink] = Probe::datagrams(*interval, *bytes, from, to, measured);
                let host = |station, probe: Probe| HostAt {
                    station,
                    addresses: vec![at(station)],
                    make: probe.make(),
                };
                vec![host(first, source), host(last, sink)]
            }
        };
        if self.configuration == Configuration::HiddenNode {
            let (sender, receiver) = INTERFERING;
            let second = |station: usize| (SECOND_HOST, second_address(station));
            let file = Role::Repeat(INTERFERING_BYTES, INTERFERING_EVERY);
            hosts.push(tool(sender, second(sender), second_address(receiver), file, interfering.clone()));
            let receive = Role::Receive;
            hosts.push(tool(receiver, second(receiver), second_address(sender), receive, unread()));
        }
        // Stations without a host forward, and answer pings.
        for station in 0..STATIONS {
            if !hosts.iter().any(|host| host.station == station) {
                hosts.push(tool(station, at(station), from, Role::Receive, unread()));
            }
        }
        hosts
    }

    /// Configurations of all stations for these hosts.
    fn stations(&self, hosts: &[HostAt]) -> Vec<EthernetConfig> {
        let owners =
            || hosts.iter().flat_map(|host| host.addresses.iter().map(|(_, ip)| (*ip, host.station)));
        let mac = |station: usize| MacAddress::of_station(station as u16);
        let gateway = |station: usize| owners().find(|(_, owner)| *owner == station).map(|(ip, _)| ip);
        let config = |station: usize| {
            let own = hosts.iter().filter(|host| host.station == station);
            let beyond = owners().filter(|(_, owner)| owner.abs_diff(station) > 1);
            let next = |owner: usize| if owner > station { station + 1 } else { station - 1 };
            let route = |(ip, owner): (Ipv4Addr, usize)| Some((ip, gateway(next(owner))?));
            EthernetConfig {
                mac: mac(station),
                addresses: own.flat_map(|host| host.addresses.iter().copied()).collect(),
                routes: beyond.filter_map(route).collect(),
                arp: match self.redirects {
                    true => Vec::new(),
                    false => owners().map(|(ip, owner)| (ip, mac(owner))).collect(),
                },
                forwards: true,
                redirects: self.redirects,
                ..EthernetConfig::default()
            }
        };
        (0..STATIONS).map(config).collect()
    }

    fn start(&self, seed: u64) -> Running {
        let (measured, interfering) = (SharedMeasured::default(), SharedMeasured::default());
        let mut hosts = self.hosts(&measured, &interfering);
        let configs = self.stations(&hosts);
        let mut simulation = world::simulation(seed);
        let mut nodes = Vec::new();
        for (station, config) in configs.into_iter().enumerate() {
            let (own, others) = hosts.into_iter().partition(|host| host.station == station);
            hosts = others;
            let mut own: Vec<HostAt> = own;
            own.sort_by_key(|host| host.addresses[0].0);
            let make = move |boot: Boot| -> NodeEngine<FileTask> {
                let (first, others) = own.split_first().expect("every station has a host");
                let node = OnEthernet::new(RADIO, (first.make)(&boot), EthernetStation::new(config.clone()));
                let with = |node: OnEthernet<FileTask>, host: &HostAt| {
                    node.and(host.addresses[0].0, (host.make)(&boot))
                };
                Box::new(others.iter().fold(node, with))
            };
            nodes.push(simulation.add_node(&format!("node{}", station + 1), make));
        }
        let mut channel = self.channel.clone();
        if self.configuration == Configuration::Control {
            channel.paths.clear();
        }
        let ends: Vec<(NodeId, InterfaceId)> = nodes.iter().map(|node| (*node, RADIO)).collect();
        let channel = simulation.add_radio(channel, &ends);
        Running { simulation, nodes, channel, measured, interfering }
    }

    /// Plays a run.
    pub(super) fn play(&self, seed: u64) -> Carried {
        let mut running = self.start(seed);
        let (first, last) = self.configuration.ends();
        let starter = if matches!(self.load, Load::Wget(_)) { last } else { first };
        let files = match &self.load {
            Load::Bundles(_, files, _) => files.clone(),
            _ => Vec::new(),
        };
        let (simulation, nodes) = (&mut running.simulation, &running.nodes);
        if !files.is_empty() {
            simulation.request(nodes[last], TaskRequest::Expect { files: files.clone() });
        }
        simulation.request(nodes[starter], TaskRequest::Start { files: files.clone() });
        let limit = match self.load {
            Load::Datagrams(_, _, time) => time,
            Load::Ping(interval, _) => interval * 20,
            _ => LIMIT,
        };
        let done_at = run(simulation, Instant::ZERO + limit);
        let bytes: usize = files.iter().map(Bytes::len).sum();
        let mut carried = running.observed(self.configuration);
        match &self.load {
            Load::Bundles(..) => (carried.bytes, carried.seconds) = (bytes as u64, done_at),
            Load::Wget(bytes) => carried.bytes = *bytes,
            Load::Datagrams(_, _, time) => carried.seconds = Some(time.as_secs_f64()),
            Load::Iperf(_) | Load::Ping(..) => {}
        }
        carried
    }
}

/// Runs until a node has what it was to get or to send, or until the limit; returns the time of the former, seconds.
fn run(simulation: &mut Simulation<FileTask>, limit: Instant) -> Option<f64> {
    loop {
        while let Some((at, _, said)) = simulation.pop_indication() {
            match said {
                TaskIndication::Done { intact, .. } => {
                    assert!(intact, "bytes were changed on the way");
                    return Some(at.as_secs_f64());
                }
                TaskIndication::Failed { for_good: true, .. } => return None,
                TaskIndication::Failed { .. } => {}
            }
        }
        if simulation.next_event_at().is_none_or(|at| at > limit) {
            return None;
        }
        simulation.step();
    }
}

impl Running {
    /// Returns what was measured, and checks that the use of the time of every station sums to the time elapsed.
    fn observed(&self, configuration: Configuration) -> Carried {
        let elapsed = self.simulation.now().as_nanos();
        let end = |station: usize| (self.nodes[station], RADIO);
        assert_eq!(self.simulation.radio_channel_airtime(self.channel).total(), elapsed);
        for station in 0..STATIONS {
            assert_eq!(self.simulation.radio_airtime(self.channel, end(station)).total(), elapsed);
        }
        let (first, last) = configuration.ends();
        let pairs = (first..last).flat_map(|station| [(station, station + 1), (station + 1, station)]);
        let (mut handed, mut lost) = (0, 0);
        for (from, to) in pairs {
            let counters = self.simulation.radio_counters(self.channel, end(from), end(to));
            handed += counters.handed;
            lost += counters.collided + counters.deaf;
        }
        let measured = self.measured.lock().expect("nobody panics").clone();
        let interfering = self.interfering.lock().expect("nobody panics");
        Carried {
            bytes: measured.bytes,
            seconds: measured.time.map(|time| time.as_secs_f64()),
            ping_ms: mean_ms(&measured.repeated),
            interfering_s: interfering.repeated.iter().map(Duration::as_secs_f64).collect(),
            overlapped: lost as f64 / handed.max(1) as f64,
        }
    }
}

fn mean_ms(times: &[Duration]) -> Option<f64> {
    let sum: f64 = times.iter().map(Duration::as_secs_f64).sum();
    (!times.is_empty()).then(|| 1e3 * sum / times.len() as f64)
}
