//! One run: nodes, lines between them, and observations.

use crate::link::at;
use crate::scenario::{Route, Scenario};
use crate::world;
use bytes::Bytes;
use longwire_proto::bp::agent::{self, Agent, LinkConfig, RouterChoice};
use longwire_proto::engine::Engine;
use longwire_proto::joint::{Beside, PassThrough, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    AppIndication, AppRequest, Bpa, BpaIndication, BpaRequest, BundleEvent, BundleName, Contact,
    CreationTimestamp, InterfaceId, LinkId, ManagementIndication, ManagementRequest, NextHop, SendId,
    SendOptions, Storage,
};
use longwire_proto::tcp::Host;
use longwire_proto::tcp::config::{HostConfig, InterfaceConfig, PeerConfig};
use longwire_proto::tcpcl;
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{Boot, ChannelConfig, Delay, Fcs, LineConfig, NodeEngine, NodeId, Simulation, Window};
use longwire_towers::carriers::Tcpcl;
use longwire_towers::{Neighbours, Plan, Provides};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const PORT: u16 = 4556;

/// Result of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Messages accepted by a node.
    pub sent: u64,
    /// Time from sending to delivery of the delivered messages, seconds, in order of arrival.
    pub delays_s: Vec<f64>,
    /// Number of nodes that had each message, without the destination.
    pub holders: Vec<usize>,
    /// Bytes sent on all lines.
    pub sent_bytes: u64,
}

impl Outcome {
    /// Mean delay of the delivered messages, seconds.
    pub fn mean_delay_s(&self) -> Option<f64> {
        let count = self.delays_s.len();
        (count > 0).then(|| self.delays_s.iter().sum::<f64>() / count as f64)
    }
}

/// Intervals of a connection: start and end, seconds, ascending and disjoint.
type Spans = Vec<(f64, f64)>;

/// Random contacts and messages of a seed, equal for every router.
struct DrawnContacts {
    contacts: Vec<((usize, usize), Spans)>,
    /// Time, sender and receiver of each message, in order.
    messages: Vec<(f64, usize, usize)>,
}

impl DrawnContacts {
    fn new(plan: &Scenario, rng: &Rng) -> DrawnContacts {
        let place = |name: &String| plan.nodes.iter().position(|node| node == name).expect("it is checked");
        let mut contacts: BTreeMap<(usize, usize), Spans> = BTreeMap::new();
        let all = plan.channel.iter();
        let all =
            all.flat_map(|channel| channel.contact.iter().map(move |contact| (&channel.between, contact)));
        for (number, (between, contact)) in all.enumerate() {
            // The labels of earlier versions: the same seed draws the same contacts.
            let mut rng = rng.fork(&format!("meeting {number}"));
            let [a, b] = [place(&between[0]), place(&between[1])];
            let spans = contacts.entry((a.min(b), a.max(b))).or_default();
            let mut at = contact.first_s;
            while at < plan.duration_s {
                let (takes_place, late) = (rng.chance(contact.chance), contact.late_s * rng.unit());
                if takes_place {
                    spans.push((at + late, at + late + contact.lasts_s));
                }
                if contact.every_s == 0.0 {
                    break;
                }
                at += contact.every_s;
            }
        }
        contacts.values_mut().for_each(apart);
        let mut rng = rng.fork("messages");
        let mut pick = |names: &[String]| place(&names[rng.below(names.len() as u64) as usize]);
        let ends = (0..plan.messages.count).map(|_| (pick(&plan.messages.from), pick(&plan.messages.to)));
        let ends: Vec<_> = ends.collect();
        let times = ends.into_iter().map(|(from, to)| (plan.messages.within_s * rng.unit(), from, to));
        let mut messages: Vec<_> = times.collect();
        messages.sort_by(|a, b| a.0.total_cmp(&b.0));
        let contacts = contacts.into_iter().filter(|(_, spans)| !spans.is_empty()).collect();
        DrawnContacts { contacts, messages }
    }
}

/// Merges overlapping contacts.
fn apart(spans: &mut Spans) {
    spans.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut merged = Spans::new();
    for (from, to) in spans.drain(..) {
        match merged.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(to),
            _ => merged.push((from, to)),
        }
    }
    *spans = merged;
}

/// Link of a node: neighbour, line and contacts.
#[derive(Clone)]
struct ContactLink {
    link: LinkId,
    interface: InterfaceId,
    here: Ipv4Addr,
    there: Ipv4Addr,
    peer: String,
    spans: Spans,
}

#[derive(Clone)]
struct NodeFactory {
    name: String,
    router: RouterChoice,
    copies: u32,
    rate_bps: u64,
    ways: Vec<ContactLink>,
    routes: Vec<Route>,
}

fn node_id(name: &str) -> String {
    format!("dtn://{name}/")
}

pub(super) fn play(plan: &Scenario, router: RouterChoice, seed: u64) -> Outcome {
    let drawn = DrawnContacts::new(plan, &Rng::new(seed).fork("meetings"));
    let mut simulation = world::simulation(seed);
    for (number, name) in plan.nodes.iter().enumerate() {
        let maker = NodeFactory::new(plan, router, &drawn, number, name);
        simulation.add_node(name, move |boot| maker.make(&boot));
    }
    for (line, ((a, b), spans)) in drawn.contacts.iter().enumerate() {
        let end = |node: usize| (NodeId(node as u32), InterfaceId(line as u16));
        let contacts = spans.iter().map(|(from, to)| Window { from: at(*from), to: at(*to) }).collect();
        let config = LineConfig {
            rate_bps: plan.rate_bps,
            delay: Delay::constant_ms(10),
            fcs: Fcs::Crc32,
            contacts,
            announced: true,
            ..LineConfig::default()
        };
        simulation.add_channel(end(*a), end(*b), ChannelConfig::symmetric(config));
    }
    let sent_bytes = Arc::new(AtomicU64::new(0));
    let count = sent_bytes.clone();
    simulation.set_trace(Box::new(move |frame| {
        if frame.started.is_some() {
            count.fetch_add(frame.bytes.len() as u64, Ordering::Relaxed);
        }
    }));
    let mut watch = RunObserver::new(plan);
    for (number, (time_s, from, to)) in drawn.messages.iter().enumerate() {
        watch.run_until(&mut simulation, at(*time_s));
        watch.send(&mut simulation, number, *from, &plan.nodes[*to]);
    }
    watch.run_until(&mut simulation, at(plan.duration_s));
    watch.outcome(&drawn, sent_bytes.load(Ordering::Relaxed))
}

impl NodeFactory {
    fn new(
        plan: &Scenario,
        router: RouterChoice,
        drawn: &DrawnContacts,
        number: usize,
        name: &str,
    ) -> NodeFactory {
        let mut ways = Vec::new();
        for (line, ((a, b), spans)) in drawn.contacts.iter().enumerate() {
            let address = |end| Ipv4Addr::new(10, 0, line as u8, end);
            let (peer, here, there) = match () {
                () if *a == number => (*b, address(1), address(2)),
                () if *b == number => (*a, address(2), address(1)),
                () => continue,
            };
            let (link, interface) = (LinkId(line as u32 + 1), InterfaceId(line as u16));
            let peer = plan.nodes[peer].clone();
            ways.push(ContactLink { link, interface, here, there, peer, spans: spans.clone() });
        }
        let routed = matches!(router, RouterChoice::Static | RouterChoice::ContactPlan);
        let routes = plan.route.iter().filter(|route| routed && route.at == name).cloned().collect();
        let (name, copies, rate_bps) = (name.to_owned(), plan.copies, plan.rate_bps);
        NodeFactory { name, router, copies, rate_bps, ways, routes }
    }

    fn make(&self, boot: &Boot) -> NodeEngine<Bpa> {
        let interface = |way: &ContactLink| InterfaceConfig {
            interface: way.interface,
            address: way.here,
            ..InterfaceConfig::default()
        };
        let peer = |way: &ContactLink| PeerConfig { link: way.link, address: way.there, port: PORT };
        let host = HostConfig {
            interfaces: self.ways.iter().map(interface).collect(),
            listen: vec![PORT],
            peers: self.ways.iter().map(peer).collect(),
            ..HostConfig::default()
        };
        let host = Host::new(host, boot.rng.fork("tcp"));
        let plan = session_plan(&self.name);
        let mut neighbours = Neighbours::new(&Tcpcl, boot.rng.fork("tcpcl"));
        self.ways.iter().for_each(|way| neighbours.set(way.link, plan.clone()));
        neighbours.answer(plan);
        let agent = Agent::new(self.agent_config(), boot.rng.fork("agent")).expect("names are checked");
        let links = Stack::new(neighbours, Provides(host));
        let ports = Beside { first: PassThrough::<Storage>::new(), second: links };
        let mut node = Stack::new(agent, ports);
        for request in self.setup(boot.dtn_ms) {
            node.handle_request(boot.now, request);
        }
        Box::new(node)
    }

    fn agent_config(&self) -> agent::Config {
        let link = |way: &ContactLink| LinkConfig {
            link: way.link,
            rate_bps: self.rate_bps,
            open_in_contacts: true,
            ..LinkConfig::default()
        };
        agent::Config {
            node: node_id(&self.name),
            routing: agent::RoutingConfig {
                router: self.router,
                copies: self.copies,
                ..agent::RoutingConfig::default()
            },
            links: self.ways.iter().map(link).collect(),
            ..agent::Config::default()
        }
    }

    /// Initial requests of the operator.
    fn setup(&self, dtn_ms: Option<u64>) -> Vec<BpaRequest> {
        let endpoint = format!("{}in", node_id(&self.name));
        let mut said: Vec<BpaRequest> = vec![
            ManagementRequest::SetClock { dtn_ms, steady: None }.into(),
            ManagementRequest::Watch { on: true }.into(),
            AppRequest::Register { endpoint }.into(),
        ];
        for route in &self.routes {
            let way = self.ways.iter().find(|way| way.peer == route.via);
            let pattern = format!("{}*", node_id(&route.to));
            said.extend(way.map(|way| {
                let via = NextHop::Link(way.link);
                ManagementRequest::SetRoute { pattern, via, cost: route.cost }.into()
            }));
        }
        for way in &self.ways {
            if let Some(began) = dtn_ms.filter(|_| self.router == RouterChoice::ContactPlan) {
                let contacts = contacts(began, &way.spans);
                said.push(ManagementRequest::SetContacts { link: way.link, contacts }.into());
            }
            said.push(ManagementRequest::OpenLink { link: way.link }.into());
        }
        said
    }
}

/// Contact plan of a link for a clock that shows `began_dtn_ms` at the start.
fn contacts(began_dtn_ms: u64, spans: &[(f64, f64)]) -> Vec<Contact> {
    let ms = |seconds: f64| began_dtn_ms + (seconds * 1e3) as u64;
    let contact = |(from, to): &(f64, f64)| Contact {
        start_dtn_ms: ms(*from),
        end_dtn_ms: ms(*to),
        delay_ms: 10,
        ..Contact::default()
    };
    spans.iter().map(contact).collect()
}

/// Sessions that detect soon when a neighbour comes or leaves.
fn session_plan(name: &str) -> Plan {
    let config = tcpcl::Config {
        keepalive: Duration::from_secs(5),
        keepalive_timeout: Some(Duration::from_secs(12)),
        connect_timeout: Some(Duration::from_secs(10)),
        contact_timeout: Duration::from_secs(10),
        close_timeout: Duration::from_secs(5),
        reconnect_min: Duration::from_secs(1),
        reconnect_max: Duration::from_secs(2),
        ..tcpcl::Config::version_4(&node_id(name))
    };
    Plan::new(&Tcpcl, config)
}

struct RunObserver {
    payload: Bytes,
    lifetime: Duration,
    /// Room for pieces at each node, and the pieces waiting for it.
    rooms: Vec<u64>,
    waiting: Vec<VecDeque<SendId>>,
    sources: BTreeMap<usize, String>,
    /// Messages by number: accepting node and creation timestamp.
    accepted: BTreeMap<u64, (usize, CreationTimestamp)>,
    holders: BTreeMap<BundleName, BTreeSet<usize>>,
    delivered: BTreeMap<BundleName, Instant>,
}

impl RunObserver {
    fn new(plan: &Scenario) -> RunObserver {
        let nodes = plan.nodes.len();
        RunObserver {
            payload: vec![0x5a; plan.messages.bytes as usize].into(),
            lifetime: Duration::from_secs_f64(2.0 * plan.duration_s + 1.0),
            rooms: vec![0; nodes],
            waiting: vec![VecDeque::new(); nodes],
            sources: BTreeMap::new(),
            accepted: BTreeMap::new(),
            holders: BTreeMap::new(),
            delivered: BTreeMap::new(),
        }
    }

    fn send(&mut self, simulation: &mut Simulation<Bpa>, number: usize, from: usize, to: &str) {
        let (send, length) = (SendId(number as u64), self.payload.len() as u64);
        let options = SendOptions { lifetime: self.lifetime, ..SendOptions::default() };
        let destination = format!("{}in", node_id(to));
        let request = AppRequest::Send { send, destination, length, options };
        simulation.request(NodeId(from as u32), request.into());
        self.waiting[from].push_back(send);
        self.hear(simulation);
    }

    fn run_until(&mut self, simulation: &mut Simulation<Bpa>, until: Instant) {
        self.hear(simulation);
        while simulation.next_event_at().is_some_and(|at| at <= until) {
            simulation.step();
            self.hear(simulation);
        }
        simulation.run_until(until);
    }

    fn hear(&mut self, simulation: &mut Simulation<Bpa>) {
        loop {
            while let Some((now, node, said)) = simulation.pop_indication() {
                self.handle(simulation, now, node, said);
            }
            let length = self.payload.len() as u64;
            let next = (0..self.rooms.len())
                .find(|node| !self.waiting[*node].is_empty() && self.rooms[*node] >= length);
            let Some(node) = next else { return };
            let send = self.waiting[node].pop_front().expect("it was just seen");
            self.rooms[node] -= length;
            let piece = AppRequest::Piece { send, data: self.payload.clone() };
            simulation.request(NodeId(node as u32), piece.into());
        }
    }

    fn handle(&mut self, simulation: &mut Simulation<Bpa>, now: Instant, node: NodeId, said: BpaIndication) {
        let here = node.0 as usize;
        match said {
            BpaIndication::App(AppIndication::Room(room)) => self.rooms[here] = room,
            BpaIndication::App(AppIndication::Accepted { send, created }) => {
                self.accepted.insert(send.0, (here, created));
            }
            BpaIndication::Manage(ManagementIndication::Bundle { name, what, .. }) => {
                if what == BundleEvent::Accepted {
                    self.sources.insert(here, name.source.clone());
                }
                if matches!(what, BundleEvent::Accepted | BundleEvent::Received(_)) {
                    self.holders.entry(name).or_default().insert(here);
                }
            }
            BpaIndication::App(AppIndication::Delivered { delivery, name, .. }) => {
                self.delivered.entry(name).or_insert(now);
                simulation.request(node, AppRequest::Taken { delivery }.into());
            }
            _ => {}
        }
    }

    fn outcome(&self, drawn: &DrawnContacts, sent_bytes: u64) -> Outcome {
        let mut outcome = Outcome { sent: self.accepted.len() as u64, sent_bytes, ..Outcome::default() };
        for (number, (node, created)) in &self.accepted {
            let (time_s, _, to) = drawn.messages[*number as usize];
            let name = BundleName { source: self.sources[node].clone(), created: *created };
            let holders = self.holders[&name].iter().filter(|holder| **holder != to);
            outcome.holders.push(holders.count());
            let arrived = self.delivered.get(&name);
            outcome.delays_s.extend(arrived.map(|arrived| arrived.as_secs_f64() - time_s));
        }
        outcome
    }
}
