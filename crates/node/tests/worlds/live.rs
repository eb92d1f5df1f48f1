//! The plan over real sockets: nodes in this process on loopback, links over lines that have the plan's rate and can be cut, and
//! stores on disks that outlive their nodes.

use crate::common::volatile::VolatileStore;
use crate::common::{DEADLINE, Place};
use crate::lines::{Cut, Line};
use crate::plan::{Plan, node_id};
use crate::stage::Network;
use bytes::Bytes;
use longwire_node::config::{self, Config};
use longwire_node::message::{Message, MessageOptions, Reply, Request};
use longwire_node::{AppClient, Node, NodeSetup};
use longwire_proto::service::{
    App, AppIndication, AppRequest, BundleName, DeliveryId, RefuseReason, ReportedStatus, SendFailure,
    SendId, SendOptions,
};
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{ChannelId, NodeId, NodeIndication};
use std::collections::BTreeMap;
use tokio::sync::mpsc;

/// Interval between checks of a condition without events.
const GLANCE: Duration = Duration::from_millis(10);
/// Maximum bytes that the kernel buffers for a connection: with more, lines would carry data that was sent long before.
const KERNEL_BYTES: usize = 16 * 1024;

/// Divisor of the rate of a line, so that what should happen during a transfer does, even on a heavily loaded machine.
const SLOWER: u64 = 4;

/// Ways in which nodes end, and what they find at the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crash {
    /// As if killed: the disk has everything that was written.
    Kill,
    /// A power failure: the disk has what was synced.
    Power,
}

/// A disk that outlives its node.
enum Disk {
    Real(Place),
    Forgetful(VolatileStore),
}

struct Running {
    node: Node,
    requests: mpsc::UnboundedSender<Message<Request>>,
    talk: tokio::task::JoinHandle<()>,
}

struct Station {
    name: String,
    disk: Disk,
    running: Option<Running>,
    /// Source and creation timestamp of each send, for reports about it.
    created: BTreeMap<SendId, BundleName>,
}

/// A world of real sockets.
pub(crate) struct Live {
    runtime: tokio::runtime::Runtime,
    began: std::time::Instant,
    plan: Plan,
    lines: Vec<Line>,
    stations: Vec<Station>,
    said: mpsc::UnboundedReceiver<(NodeId, Message<Reply>)>,
    tell: mpsc::UnboundedSender<(NodeId, Message<Reply>)>,
    heard: Vec<NodeIndication<App>>,
    status: BTreeMap<NodeId, longwire_node::view::Status>,
}

impl Live {
    pub(crate) fn new(plan: &Plan, title: &str, crash: Crash, cut: Cut) -> Live {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let (tell, said) = mpsc::unbounded_channel();
        let stations = plan.nodes.iter().map(|name| Station {
            name: name.clone(),
            disk: match crash {
                Crash::Kill => Disk::Real(Place::new(&format!("worlds-{title}-{name}"))),
                Crash::Power => Disk::Forgetful(VolatileStore::default()),
            },
            running: None,
            created: BTreeMap::new(),
        });
        let lines = plan.line.iter().map(|line| Line::new(line.rate_bps / SLOWER, KERNEL_BYTES, cut));
        let mut world = Live {
            stations: stations.collect(),
            lines: lines.collect(),
            plan: plan.clone(),
            began: std::time::Instant::now(),
            heard: Vec::new(),
            status: BTreeMap::new(),
            runtime,
            said,
            tell,
        };
        for node in 0..plan.nodes.len() {
            world.restart(NodeId(node as u32));
        }
        world
    }

    fn config(&self, name: &str) -> Config {
        let link = |(line, there): (&crate::plan::Line, &Line)| config::LinkSettings {
            name: line.to.clone(),
            address: there.address().to_string(),
            bundle_bytes_max: line.bundle_bytes_max,
            ..config::LinkSettings::default()
        };
        let route = |route: &crate::plan::Route| config::RouteSettings {
            to: route.to.clone(),
            via: node_id(&route.via),
            cost: 1,
        };
        let lines = self.plan.line.iter().zip(&self.lines);
        let mut config = Config {
            node: node_id(name),
            listen: vec!["127.0.0.1:0".into()],
            echo: false,
            link: lines.filter(|(line, _)| line.from == name).map(link).collect(),
            route: self.plan.routes(name).map(route).collect(),
            agent: self.plan.agent_of(name),
            tcp: config::TcpSettings {
                send_buffer_bytes: Some(KERNEL_BYTES as u32),
                receive_buffer_bytes: Some(KERNEL_BYTES as u32),
            },
            ..Config::default()
        };
        config.stream.queue_bytes = KERNEL_BYTES as u64;
        config.carriers.set("tcpcl", &self.plan.tcpcl_of(name));
        config
    }

    fn start(&self, node: NodeId) -> Running {
        let station = &self.stations[node.0 as usize];
        let mut config = self.config(&station.name);
        let store = match &station.disk {
            Disk::Real(place) => {
                config.storage.path = place.0.join("store");
                None
            }
            Disk::Forgetful(disk) => Some(disk.opener()),
        };
        let there = Node::start(NodeSetup { store, ..NodeSetup::new(config) }).expect("it starts");
        for (line, at) in self.plan.line.iter().zip(&self.lines) {
            if line.to == station.name {
                at.lead_to(Some(there.addresses()[0]));
            }
        }
        let (requests, asked) = mpsc::unbounded_channel();
        let talk = self.runtime.spawn(talk(there.client(), node, asked, self.tell.clone()));
        Running { node: there, requests, talk }
    }

    /// Waits for an event, until `limit` and not much longer than [`GLANCE`].
    fn listen(&mut self, limit: Instant) {
        let left = limit.saturating_since(self.now()).min(GLANCE);
        let said = &mut self.said;
        let heard = self.runtime.block_on(async { tokio::time::timeout(left, said.recv()).await });
        if let Ok(Some((node, reply))) = heard {
            self.hear(node, reply);
            while let Ok((node, reply)) = self.said.try_recv() {
                self.hear(node, reply);
            }
        }
    }

    fn hear(&mut self, node: NodeId, said: Message<Reply>) {
        if let Reply::Status { status } = said.head {
            self.status.insert(node, *status);
            return;
        }
        let station = &mut self.stations[node.0 as usize];
        if let Reply::Accepted { send, source, created, .. } = &said.head {
            station.created.insert(SendId(*send), BundleName { source: source.clone(), created: *created });
        }
        let indication = indication(said, &station.created);
        let now = self.now();
        self.heard.extend(indication.map(|indication| (now, node, indication)));
    }
}

/// Copies between an application's interface and the world.
async fn talk(
    mut client: AppClient,
    node: NodeId,
    mut asked: mpsc::UnboundedReceiver<Message<Request>>,
    tell: mpsc::UnboundedSender<(NodeId, Message<Reply>)>,
) {
    loop {
        tokio::select! {
            reply = client.reply() => match reply {
                Some(reply) => drop(tell.send((node, reply))),
                None => return,
            },
            request = asked.recv() => {
                let Some(request) = request else { return };
                client.request(request).await;
            }
        }
    }
}

fn options(options: &SendOptions) -> MessageOptions {
    MessageOptions {
        priority: options.priority,
        lifetime_s: options.lifetime.as_secs_f64(),
        report_delivery: options.report_delivery,
        must_not_fragment: options.must_not_fragment,
        hop_limit: options.hop_limit,
        source: options.source.clone(),
        ..MessageOptions::default()
    }
}

/// Converts a request of an agent's user to one of a node's application.
fn message(request: AppRequest) -> Message<Request> {
    match request {
        AppRequest::Register { endpoint } => Request::Register { endpoint, inline_bytes: 0 }.into(),
        AppRequest::Unregister { endpoint } => Request::Unregister { endpoint }.into(),
        AppRequest::Send { send, destination, length, options } => {
            let options = self::options(&options);
            Request::Send { send: send.0, to: destination, length, options }.into()
        }
        AppRequest::Piece { send, data } => Message { head: Request::Piece { send: send.0 }, body: data },
        AppRequest::Cancel { send } => Request::Cancel { send: send.0 }.into(),
        AppRequest::Read { delivery, offset, length } => {
            Request::Read { delivery: delivery.0, offset, length }.into()
        }
        AppRequest::Taken { delivery } => Request::Taken { delivery: delivery.0 }.into(),
    }
}

/// Converts a reply of a node to an indication of its agent.
fn indication(said: Message<Reply>, created_of: &BTreeMap<SendId, BundleName>) -> Option<AppIndication> {
    let body: Bytes = said.body;
    Some(match said.head {
        Reply::Done | Reply::Registered { .. } => return None,
        Reply::Accepted { send, created, .. } => AppIndication::Accepted { send: SendId(send), created },
        Reply::Progress { send, up_to } => AppIndication::Progress { send: SendId(send), up_to },
        Reply::Sent { send } => AppIndication::Sent { send: SendId(send) },
        Reply::Failed { send, reason, .. } => {
            AppIndication::Failed { send: SendId(send), reason: failure(&reason) }
        }
        Reply::Report { send, status, reason, reporter } => {
            let name = created_of[&SendId(send)].clone();
            let status = match status.as_str() {
                "received" => ReportedStatus::Received,
                "forwarded" => ReportedStatus::Forwarded,
                "delivered" => ReportedStatus::Delivered,
                "in custody" => ReportedStatus::CustodyAccepted,
                _ => ReportedStatus::Deleted,
            };
            AppIndication::Report { name, status, reason, reporter, over: Vec::new() }
        }
        Reply::Delivered { delivery, source, destination, created, length, .. } => {
            let name = BundleName { source, created };
            AppIndication::Delivered {
                delivery: DeliveryId(delivery),
                name,
                destination,
                length,
                signature: None,
            }
        }
        Reply::Data { delivery, offset } => {
            AppIndication::Data { delivery: DeliveryId(delivery), offset, data: body }
        }
        Reply::Gone { delivery, taken } => AppIndication::Gone { delivery: DeliveryId(delivery), taken },
        other => panic!("the node says {other:?}"),
    })
}

/// Finds a failure by its text.
fn failure(words: &str) -> SendFailure {
    let known = [
        ("lifetime", SendFailure::Expired),
        ("store or its disk is full", SendFailure::Full),
        ("cancelled", SendFailure::Cancelled),
        ("limit", SendFailure::Limit),
        ("store failed", SendFailure::Storage),
        ("not acceptable", SendFailure::Refused(RefuseReason::NotAcceptable)),
        ("refused the bundle", SendFailure::Refused(RefuseReason::NoResources)),
        ("endpoint", SendFailure::BadEndpoint),
        ("custody transfer needs", SendFailure::NoCustody),
    ];
    let found = known.iter().find(|(part, _)| words.contains(part));
    found.unwrap_or_else(|| panic!("what does this mean: {words}")).1
}

impl Network for Live {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.began.elapsed().as_nanos() as u64)
    }

    fn request(&mut self, node: NodeId, request: AppRequest) -> bool {
        let Some(running) = &self.stations[node.0 as usize].running else { return false };
        running.requests.send(message(request)).is_ok()
    }

    fn run_until(&mut self, until: Instant) {
        while self.now() < until {
            self.listen(until);
        }
    }

    fn run_while(&mut self, limit: Instant, goes_on: &mut dyn FnMut(&mut Self) -> bool) -> bool {
        while goes_on(self) {
            if self.now() >= limit {
                return false;
            }
            self.listen(limit);
        }
        true
    }

    fn take_indications(&mut self) -> Vec<NodeIndication<App>> {
        std::mem::take(&mut self.heard)
    }

    fn cut(&mut self, channel: ChannelId) {
        self.lines[channel.0 as usize].cut();
    }

    fn heal(&mut self, channel: ChannelId) {
        self.lines[channel.0 as usize].heal();
    }

    fn crash(&mut self, node: NodeId) {
        let station = &mut self.stations[node.0 as usize];
        let Some(Running { node: there, talk, .. }) = station.running.take() else { return };
        if let Disk::Forgetful(disk) = &station.disk {
            disk.open();
        }
        for (line, at) in self.plan.line.iter().zip(&self.lines) {
            if line.to == station.name {
                at.lead_to(None);
            }
        }
        drop(there);
        // Replies before its end are handled.
        let ended = self.runtime.block_on(async { tokio::time::timeout(DEADLINE, talk).await });
        ended.expect("the connection to a node that is gone ends").expect("it does not panic");
        while let Ok((node, reply)) = self.said.try_recv() {
            self.hear(node, reply);
        }
    }

    fn restart(&mut self, node: NodeId) {
        let running = self.start(node);
        self.stations[node.0 as usize].running = Some(running);
        // Applications of a node wait where their agent has no room.
        self.heard.push((self.now(), node, AppIndication::Room(1 << 40)));
    }

    fn carried(&self, line: ChannelId) -> u64 {
        self.lines[line.0 as usize].carried()
    }

    fn count(&mut self, node: NodeId, counter: &str) -> u64 {
        self.status.remove(&node);
        let running = self.stations[node.0 as usize].running.as_ref().expect("it runs");
        let _ = running.requests.send(Request::Status.into());
        let limit = self.now() + self.patience();
        while !self.status.contains_key(&node) {
            assert!(self.now() < limit, "no answer");
            self.listen(limit);
        }
        let count = self.status[&node].counters.get(counter).copied();
        count.unwrap_or_else(|| panic!("there is no counter {counter}"))
    }

    fn patience(&self) -> Duration {
        DEADLINE
    }
}
