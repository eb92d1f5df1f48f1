//! The plan in virtual time: agents over TCPCL over TCP on simulated lines and disks.

use crate::plan::{Plan, node_id};
use crate::stage::Network;
use longwire_proto::bp::agent::{self, Agent, LinkConfig};
use longwire_proto::engine::Engine;
use longwire_proto::joint::{Beside, PassThrough, Stack};
use longwire_proto::service::{
    App, AppRequest, Bpa, BpaIndication, InterfaceId, LinkId, ManagementRequest, NextHop, Storage,
};
use longwire_proto::tcp::Host;
use longwire_proto::tcp::config::{HostConfig, InterfaceConfig, PeerConfig};
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{
    Boot, ChannelConfig, ChannelId, ClockConfig, Delay, Direction, Errors, Fcs, FrameFate, LineConfig,
    NodeEngine, NodeId, NodeIndication, Simulation,
};
use longwire_towers::carriers::Tcpcl;
use longwire_towers::{Neighbours, Provides};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

const PORT: u16 = 4556;

/// A world in virtual time.
pub(crate) struct Simulated {
    simulation: Simulation<Bpa>,
    carried: Arc<Mutex<BTreeMap<ChannelId, u64>>>,
}

impl Simulated {
    pub(crate) fn new(plan: &Plan, seed: u64) -> Simulated {
        let mut simulation = Simulation::new(seed);
        for name in &plan.nodes {
            let own = plan.clone();
            let make = move |boot: Boot| node(&own, &boot.name.clone(), boot);
            simulation.add_node_with(name, plan.disk.clone(), ClockConfig::default(), make);
        }
        for (number, line) in plan.line.iter().enumerate() {
            let end = |name: &String| {
                let place = plan.nodes.iter().position(|node| node == name).expect("lines join nodes");
                (NodeId(place as u32), InterfaceId(number as u16))
            };
            let config = LineConfig {
                rate_bps: line.rate_bps,
                delay: Delay::constant_ms((line.delay_ms).round() as u64),
                errors: Errors::Ber(line.ber),
                fcs: Fcs::Crc32,
                ..LineConfig::default()
            };
            simulation.add_channel(end(&line.from), end(&line.to), ChannelConfig::symmetric(config));
        }
        let carried: Arc<Mutex<BTreeMap<ChannelId, u64>>> = Arc::default();
        let count = carried.clone();
        simulation.set_trace(Box::new(move |frame| {
            if frame.direction == Direction::Forward && frame.fate == FrameFate::Delivered {
                *count.lock().expect("one thread").entry(frame.channel).or_default() +=
                    frame.bytes.len() as u64;
            }
        }));
        Simulated { simulation, carried }
    }
}

fn address(line: usize, second: bool) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, line as u8, 1 + u8::from(second))
}

/// Builds a node as its operator would configure it.
fn node(plan: &Plan, name: &str, boot: Boot) -> NodeEngine<Bpa> {
    let lines = || plan.line.iter().enumerate().filter(|(_, line)| line.from == name || line.to == name);
    let interfaces = lines().map(|(number, line)| InterfaceConfig {
        interface: InterfaceId(number as u16),
        address: address(number, line.to == name),
        ..InterfaceConfig::default()
    });
    // A link has the number of its line, from 1.
    let links: Vec<(LinkId, usize)> = lines()
        .filter(|(_, line)| line.from == name)
        .map(|(number, _)| (LinkId(number as u32 + 1), number))
        .collect();
    let peers = links.iter().map(|(link, number)| PeerConfig {
        link: *link,
        address: address(*number, true),
        port: PORT,
    });
    let host = HostConfig {
        interfaces: interfaces.collect(),
        listen: vec![PORT],
        peers: peers.collect(),
        ..HostConfig::default()
    };
    let host = Host::new(host, boot.rng.fork("tcp"));
    let session = longwire_towers::Plan::new(&Tcpcl, plan.tcpcl_of(name));
    let mut neighbours = Neighbours::new(&Tcpcl, boot.rng.fork("tcpcl"));
    links.iter().for_each(|(link, _)| neighbours.set(*link, session.clone()));
    neighbours.answer(session);
    let special = links.iter().map(|(link, number)| LinkConfig {
        link: *link,
        bundle_bytes_max: plan.line[*number].bundle_bytes_max,
        ..LinkConfig::default()
    });
    let config = agent::Config { links: special.collect(), ..plan.agent_of(name) };
    let agent = Agent::new(config, boot.rng.fork("agent")).expect("plans name nodes");
    let ports =
        Beside { first: PassThrough::<Storage>::new(), second: Stack::new(neighbours, Provides(host)) };
    let mut engine = Stack::new(agent, ports);
    engine.handle_request(boot.now, ManagementRequest::SetClock { dtn_ms: boot.dtn_ms, steady: None }.into());
    for route in plan.routes(name) {
        let (pattern, via) = (route.to.clone(), NextHop::Node(node_id(&route.via)));
        engine.handle_request(boot.now, ManagementRequest::SetRoute { pattern, via, cost: 1 }.into());
    }
    for (link, _) in links {
        engine.handle_request(boot.now, ManagementRequest::OpenLink { link }.into());
    }
    Box::new(engine)
}

impl Network for Simulated {
    fn now(&self) -> Instant {
        self.simulation.now()
    }
    fn request(&mut self, node: NodeId, request: AppRequest) -> bool {
        self.simulation.request(node, request.into())
    }
    fn run_until(&mut self, until: Instant) {
        self.simulation.run_until(until);
    }
    fn run_while(&mut self, limit: Instant, goes_on: &mut dyn FnMut(&mut Self) -> bool) -> bool {
        while goes_on(self) {
            if self.simulation.next_event_at().is_none_or(|at| at > limit) {
                return false;
            }
            self.simulation.step();
        }
        true
    }
    fn take_indications(&mut self) -> Vec<NodeIndication<App>> {
        let for_applications = |(now, node, indication)| match indication {
            BpaIndication::App(indication) => Some((now, node, indication)),
            BpaIndication::Manage(_) => None,
        };
        self.simulation.take_indications().into_iter().filter_map(for_applications).collect()
    }
    fn cut(&mut self, channel: ChannelId) {
        self.simulation.cut(channel);
    }
    fn heal(&mut self, channel: ChannelId) {
        self.simulation.heal(channel);
    }
    fn crash(&mut self, node: NodeId) {
        self.simulation.crash(node);
    }
    fn restart(&mut self, node: NodeId) {
        self.simulation.restart(node);
    }
    fn carried(&self, line: ChannelId) -> u64 {
        self.carried.lock().expect("one thread").get(&line).copied().unwrap_or(0)
    }
    fn count(&mut self, node: NodeId, counter: &str) -> u64 {
        let counts = self.simulation.observe(node).sum("agent");
        *counts.get(counter).unwrap_or_else(|| panic!("there is no counter {counter}"))
    }
    fn patience(&self) -> Duration {
        Duration::from_secs(3600)
    }
}
