//! A day of bundle agents with TCPCL 4 over lines with contacts: rows of ten nodes, each row a ring, and the rows a ring.
//!
//! Each line has a contact of ten minutes in every hour, which both ends have in their contact plans; each node sends a bundle
//! to any other one every hour on average. Routes lead to other rows first, and then to the node.

use crate::{Digest, Outcome, SEED};
use bytes::Bytes;
use longwire_proto::bp::agent::{self, Agent, LinkConfig, RouterChoice};
use longwire_proto::engine::Engine;
use longwire_proto::joint::{Beside, Fan, Origin, PassThrough, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    AppIndication, AppRequest, Bpa, BpaIndication, BpaRequest, Contact, InterfaceId, LinkId,
    ManagementRequest, NextHop, SendId, SendOptions, Storage,
};
use longwire_proto::tcp::Host;
use longwire_proto::tcp::config::{HostConfig, InterfaceConfig, PeerConfig};
use longwire_proto::tcpcl;
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{Boot, ChannelConfig, Delay, Fcs, LineConfig, NodeEngine, NodeId, Simulation, Window};
use std::net::Ipv4Addr;

/// Nodes of a row.
const COLUMNS: u32 = 10;
const HOURS: u64 = 24;
const HOUR_S: u64 = 3600;
const CONTACT_S: u64 = 600;
const RATE_BPS: u64 = 115_200;
const DELAY_MS: u64 = 10;
const PAYLOAD_BYTES: usize = 2000;
const PORT: u16 = 4556;

/// Interfaces of a node, each with one line.
const RIGHT: u16 = 0;
const LEFT: u16 = 1;
const BELOW: u16 = 2;
const ABOVE: u16 = 3;

pub(crate) fn run(nodes: u32) -> Outcome {
    let map = Map { rows: nodes / COLUMNS };
    let mut world: Simulation<Bpa> = Simulation::new(SEED);
    for node in 0..nodes {
        world.add_node(&Map::name(node), move |boot| map.engine(node, &boot));
    }
    for (end, other, line) in map.lines() {
        let config = LineConfig {
            rate_bps: RATE_BPS,
            delay: Delay::constant_ms(DELAY_MS),
            fcs: Fcs::Crc32,
            contacts: contacts(line),
            announced: true,
            ..LineConfig::default()
        };
        let [end, other] = [end, other].map(|(node, interface)| (NodeId(node), InterfaceId(interface)));
        world.add_channel(end, other, ChannelConfig::symmetric(config));
    }
    let sent = send_all(&mut world, nodes);
    let (mut delivered, mut digest) = (0, Digest::new());
    world.run_while(Instant::from_secs(HOURS * HOUR_S), |world| {
        while let Some((at, node, said)) = world.pop_indication() {
            if let BpaIndication::App(AppIndication::Delivered { delivery, name, .. }) = said {
                delivered += 1;
                digest.add(at, node, name.source.as_bytes());
                world.request(node, AppRequest::Taken { delivery }.into());
            }
        }
        true
    });
    let delivered = format!("{delivered} of {sent} bundles delivered");
    Outcome { events: world.events(), delivered, digest }
}

/// Plans all bundles, and returns their number.
fn send_all(world: &mut Simulation<Bpa>, nodes: u32) -> u64 {
    let mut sent = 0;
    for node in 0..nodes {
        let mut rng = Rng::new(SEED).fork(&format!("traffic of {node}"));
        for hour in 0..HOURS {
            let at = Instant::from_secs(hour * HOUR_S) + Duration::from_secs_f64(HOUR_S as f64 * rng.unit());
            let to = (u64::from(node) + 1 + rng.below(u64::from(nodes) - 1)) % u64::from(nodes);
            let (send, length) = (SendId(hour), PAYLOAD_BYTES as u64);
            let options =
                SendOptions { lifetime: Duration::from_secs(2 * HOURS * HOUR_S), ..SendOptions::default() };
            let destination = format!("dtn://{}/in", Map::name(to as u32));
            world.request_at(
                at,
                NodeId(node),
                AppRequest::Send { send, destination, length, options }.into(),
            );
            let data = Bytes::from_static(&[0x5a; PAYLOAD_BYTES]);
            world.request_at(at, NodeId(node), AppRequest::Piece { send, data }.into());
            sent += 1;
        }
    }
    sent
}

/// Draws the contacts of a line: one in every hour, at the same time of the hour.
fn contacts(line: u32) -> Vec<Window> {
    let first = Rng::new(SEED).fork(&format!("contacts of line {line}")).below(HOUR_S - CONTACT_S);
    let contact = |hour| {
        let from = Instant::from_secs(hour * HOUR_S + first);
        Window { from, to: from + Duration::from_secs(CONTACT_S) }
    };
    (0..HOURS).map(contact).collect()
}

/// Node and interface at an end of a line.
type End = (u32, u16);

/// Rows of nodes.
#[derive(Clone, Copy)]
struct Map {
    rows: u32,
}

impl Map {
    fn name(node: u32) -> String {
        format!("row{}-{}", node / COLUMNS, node % COLUMNS)
    }

    fn at(self, row: u32, column: u32) -> u32 {
        row % self.rows * COLUMNS + column % COLUMNS
    }

    /// Lines with both ends and their number: to the right of each node, and below it.
    fn lines(self) -> impl Iterator<Item = (End, End, u32)> {
        (0..self.rows * COLUMNS).flat_map(move |node| {
            let (row, column) = (node / COLUMNS, node % COLUMNS);
            [
                ((node, RIGHT), (self.at(row, column + 1), LEFT), 2 * node),
                ((node, BELOW), (self.at(row + 1, column), ABOVE), 2 * node + 1),
            ]
        })
    }

    /// Links of a node: its interface, the addresses of both ends and the number of the line.
    fn links(self, node: u32) -> impl Iterator<Item = (u16, [Ipv4Addr; 2], u32)> {
        self.lines().filter_map(move |(end, other, line)| {
            let address = |end| Ipv4Addr::new(10, (line >> 8) as u8, line as u8, end);
            match () {
                () if end.0 == node => Some((end.1, [address(1), address(2)], line)),
                () if other.0 == node => Some((other.1, [address(2), address(1)], line)),
                () => None,
            }
        })
    }

    fn engine(self, node: u32, boot: &Boot) -> NodeEngine<Bpa> {
        let links: Vec<_> = self.links(node).collect();
        let interface = |(interface, [address, _], _): &(u16, [Ipv4Addr; 2], u32)| InterfaceConfig {
            interface: InterfaceId(*interface),
            address: *address,
            ..InterfaceConfig::default()
        };
        let peer = |(interface, [_, address], _): &(u16, [Ipv4Addr; 2], u32)| PeerConfig {
            link: link(*interface),
            address: *address,
            port: PORT,
        };
        let host = HostConfig {
            interfaces: links.iter().map(interface).collect(),
            listen: vec![PORT],
            peers: links.iter().map(peer).collect(),
            ..HostConfig::default()
        };
        let node_id = format!("dtn://{}/", boot.name);
        let (session, rng) = (session(&node_id), boot.rng.fork("tcpcl"));
        let sessions = Fan::new(move |link: LinkId, origin| {
            let (config, rng) = (session.clone(), rng.fork(&format!("link {}", link.0)));
            Some(match origin {
                Origin::Above => tcpcl::Session::active(config, rng),
                Origin::Below => tcpcl::Session::passive(config, rng),
            })
        });
        let below = Stack::new(sessions, Host::new(host, boot.rng.fork("tcp")));
        let agent = Agent::new(agent_config(node_id), boot.rng.fork("agent")).expect("it is a node ID");
        let mut engine = Stack::new(agent, Beside { first: PassThrough::<Storage>::new(), second: below });
        for request in self.setup(node, boot) {
            engine.handle_request(boot.now, request);
        }
        Box::new(engine)
    }

    /// Requests of the operator and the application of a node at its start.
    fn setup(self, node: u32, boot: &Boot) -> Vec<BpaRequest> {
        let mut requests: Vec<BpaRequest> = vec![
            ManagementRequest::SetClock { dtn_ms: boot.dtn_ms, steady: None }.into(),
            AppRequest::Register { endpoint: format!("dtn://{}/in", boot.name) }.into(),
        ];
        requests.extend(self.routes(node).into_iter().map(|(pattern, interface)| {
            ManagementRequest::SetRoute { pattern, via: NextHop::Link(link(interface)), cost: 1 }.into()
        }));
        let began_ms = boot.dtn_ms.expect("the clock of a node is right");
        for (interface, _, line) in self.links(node) {
            let ms = |at: Instant| began_ms + at.as_nanos() / 1_000_000;
            let contact = |window: Window| Contact {
                start_dtn_ms: ms(window.from),
                end_dtn_ms: ms(window.to),
                delay_ms: DELAY_MS,
                ..Contact::default()
            };
            let (link, contacts) = (link(interface), contacts(line).into_iter().map(contact).collect());
            requests.push(ManagementRequest::SetContacts { link, contacts }.into());
            requests.push(ManagementRequest::OpenLink { link }.into());
        }
        requests
    }

    /// Routes of a node: to each other row and to each other node of its own, the shorter way round.
    fn routes(self, node: u32) -> Vec<(String, u16)> {
        let (row, column) = (node / COLUMNS, node % COLUMNS);
        let rows = (1..self.rows).map(|step| {
            let interface = if step <= self.rows / 2 { BELOW } else { ABOVE };
            (format!("dtn://row{}-*", (row + step) % self.rows), interface)
        });
        let columns = (1..COLUMNS).map(|step| {
            let interface = if step <= COLUMNS / 2 { RIGHT } else { LEFT };
            (format!("dtn://{}/*", Map::name(self.at(row, column + step))), interface)
        });
        rows.chain(columns).collect()
    }
}

fn link(interface: u16) -> LinkId {
    LinkId(u32::from(interface) + 1)
}

fn agent_config(node: String) -> agent::Config {
    let link = |interface| LinkConfig {
        link: link(interface),
        rate_bps: RATE_BPS,
        open_in_contacts: true,
        ..LinkConfig::default()
    };
    agent::Config {
        node,
        routing: agent::RoutingConfig {
            router: RouterChoice::ContactPlan,
            ..agent::RoutingConfig::default()
        },
        links: [RIGHT, LEFT, BELOW, ABOVE].map(link).into(),
        ..agent::Config::default()
    }
}

/// Sessions that detect within a minute that a contact is over.
fn session(node_id: &str) -> tcpcl::Config {
    tcpcl::Config {
        keepalive: Duration::from_secs(20),
        keepalive_timeout: Some(Duration::from_secs(45)),
        connect_timeout: Some(Duration::from_secs(10)),
        contact_timeout: Duration::from_secs(10),
        close_timeout: Duration::from_secs(5),
        reconnect_min: Duration::from_secs(1),
        reconnect_max: Duration::from_secs(2),
        ..tcpcl::Config::version_4(node_id)
    }
}
