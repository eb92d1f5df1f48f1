//! A bundle from earth to the moon in virtual time, without simulator, socket or disk.
//!
//! ```text
//! cargo run -p longwire-proto --example bundle
//! ```
//!
//! Each node is a bundle agent over the UDP convergence layer. This program is the owner of both: it has a map instead of
//! a disk and a queue instead of a network, and the time is a variable that it sets to the next deadline. It prints a
//! timeline, which is the same on every run:
//!
//! - the application on earth sends; the bundle is durable at once, although the moon is not in view for ten seconds;
//! - in the contact the bundle leaves in fragments, because it is longer than a datagram, at the rate of the link;
//! - the moon reassembles and delivers it, and the application there accepts it;
//! - the status report goes back to earth.
//!
//! ```text
//!        Bpa                  [ Agent                      ]
//!        Storage | Bundles    [ PassThrough | Fan of Link  ]
//!        Storage | Datagrams    a map       | a queue
//! ```

use bytes::Bytes;
use longwire_proto::bp::agent::{Agent, Config, ReportConfig};
use longwire_proto::engine::Engine;
use longwire_proto::joint::{Beside, Fan, Origin, PassThrough, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    AppIndication, AppRequest, BpaIndication, BpaRequest, Contact, DatagramsIndication, DatagramsRequest,
    LinkId, ManagementIndication, ManagementRequest, PeerId, Port, RecordId, SendId, SendOptions, Storage,
    StorageFailure, StorageIndication, StorageRequest,
};
use longwire_proto::time::{Duration, Instant};
use longwire_proto::udpcl::{self, Link};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;

/// Nodes by their index.
const NAMES: [&str; 2] = ["earth", "moon"];
const EARTH: usize = 0;
const MOON: usize = 1;
/// The link of each node to the other one.
const LINK: LinkId = LinkId(1);
/// The send of the application on earth.
const SEND: SendId = SendId(1);
/// Time of the light to the moon.
const DELAY: Duration = Duration::from_millis(1_300);
/// Rate of the links, bit/s.
const RATE_BPS: u64 = 9_600;
/// Wall clock at the beginning, DTN time in milliseconds: a day in May 2025.
const EPOCH_DTN_MS: u64 = 800_000_000_000;
/// End of the run.
const END: Instant = Instant::from_secs(60);

/// Creator of links that nobody has configured: there are none.
type Factory = fn(LinkId, Origin) -> Option<Link>;
/// All engines of a node.
type Node = Stack<Agent, Beside<PassThrough<Storage>, Fan<LinkId, Link, Factory>>>;

fn no_link(_: LinkId, _: Origin) -> Option<Link> {
    None
}

/// Creates node `at`, whose link leads to the other node.
fn node(at: usize) -> Node {
    let agent = Config {
        node: format!("dtn://{}/", NAMES[at]),
        reports: ReportConfig { delivery: true, ..ReportConfig::default() },
        ..Config::default()
    };
    let link = udpcl::Config {
        peer_node_id: Some(format!("dtn://{}/", NAMES[1 - at])),
        rate_bps: RATE_BPS,
        ..udpcl::Config::default()
    };
    let agent = Agent::new(agent, Rng::new(at as u64)).expect("the node ID is valid");
    let mut links = Fan::new(no_link as Factory);
    links.insert(LINK, Link::new(link, Rng::new(at as u64).fork("link")));
    Stack::new(agent, Beside { first: PassThrough::new(), second: links })
}

struct World {
    now: Instant,
    nodes: [Node; 2],
    disks: [BTreeMap<RecordId, Vec<u8>>; 2],
    /// Datagrams on their way: time of arrival, index of the receiver, contents. All take the same time, so they are in
    /// the order of their arrival.
    channel: VecDeque<(Instant, usize, Bytes)>,
    /// Payload that the application on earth has not passed down.
    unsent: Bytes,
    /// Payload that the application on the moon has read.
    read: Vec<u8>,
    payload_bytes: u64,
}

impl World {
    fn say(&self, at: usize, what: fmt::Arguments<'_>) {
        println!("{:>7.3} s  {:<5}  {what}", self.now.as_secs_f64(), NAMES[at]);
    }

    /// Passes a request of an application or operator to a node.
    fn ask(&mut self, at: usize, request: impl Into<BpaRequest>) {
        self.nodes[at].handle_request(self.now, request.into());
        self.settle(at);
    }

    /// Drains a node: every indication goes up before the next request goes down, until there is neither.
    fn settle(&mut self, at: usize) {
        loop {
            if let Some(indication) = self.nodes[at].poll_indication(self.now) {
                if let Some(request) = self.hear(at, indication) {
                    self.nodes[at].handle_request(self.now, request.into());
                }
                continue;
            }
            match self.nodes[at].poll_request(self.now) {
                Some(Port::First(request)) => self.store(at, request),
                Some(Port::Second((link, request))) => self.carry(at, link, request),
                None => return,
            }
        }
    }

    /// The application and the operator of a node receive an indication. Returns the next request of the application.
    fn hear(&mut self, at: usize, indication: BpaIndication) -> Option<AppRequest> {
        let indication = match indication {
            BpaIndication::App(indication) => indication,
            BpaIndication::Manage(ManagementIndication::Link { peer: Some(peer), down: None, .. }) => {
                self.say(at, format_args!("the link to {peer} is up"));
                return None;
            }
            BpaIndication::Manage(other) => {
                self.say(at, format_args!("{other:?}"));
                return None;
            }
        };
        match indication {
            AppIndication::Room(room) => {
                let length = usize::try_from(room).unwrap_or(usize::MAX).min(self.unsent.len());
                let data = self.unsent.split_to(length);
                return (!data.is_empty()).then_some(AppRequest::Piece { send: SEND, data });
            }
            AppIndication::Accepted { .. } => {
                self.say(at, format_args!("the bundle is durable: the node is responsible for it"));
            }
            AppIndication::Progress { up_to, .. } => {
                self.say(at, format_args!("{up_to} bytes of the payload have left"));
            }
            AppIndication::Sent { .. } => {
                self.say(at, format_args!("the bundle has left; UDP does not tell whether it arrives"));
            }
            AppIndication::Failed { reason, .. } => {
                self.say(at, format_args!("the bundle is not sent: {reason:?}"));
            }
            AppIndication::Delivered { delivery, name, length, .. } => {
                self.say(at, format_args!("a bundle of {length} bytes from {} is complete", name.source));
                let length = u32::try_from(length).unwrap_or(u32::MAX);
                return Some(AppRequest::Read { delivery, offset: 0, length });
            }
            AppIndication::Data { delivery, data, .. } => {
                self.say(at, format_args!("the application reads {} bytes", data.len()));
                self.read.extend_from_slice(&data);
                let whole = self.read.len() as u64 == self.payload_bytes;
                return whole.then_some(AppRequest::Taken { delivery });
            }
            AppIndication::Gone { taken, .. } => {
                self.say(at, format_args!("the delivery is over, accepted: {taken}"));
            }
            AppIndication::Report { reporter, status, .. } => {
                self.say(at, format_args!("a report of {reporter} says: {status:?}"));
            }
        }
        None
    }

    /// Carries out a request to the disk of a node. Everything is durable at once.
    fn store(&mut self, at: usize, request: StorageRequest) {
        let disk = &mut self.disks[at];
        let answer = match request {
            StorageRequest::Append { record, data, .. } => {
                let log = disk.entry(record).or_default();
                log.extend_from_slice(&data);
                StorageIndication::Stored { record, up_to: log.len() as u64 }
            }
            StorageRequest::Read { record, offset, length, .. } => match disk.get(&record) {
                None => StorageIndication::ReadFailed { record, offset, failure: StorageFailure::Missing },
                Some(log) => {
                    let from = log.len().min(usize::try_from(offset).unwrap_or(usize::MAX));
                    let to = log.len().min(from + length as usize);
                    let data = Bytes::copy_from_slice(&log[from..to]);
                    StorageIndication::Data { record, offset, data }
                }
            },
            StorageRequest::Remove { record } => {
                disk.remove(&record);
                StorageIndication::Removed { record }
            }
            StorageRequest::List => {
                let records = disk.iter().map(|(record, log)| (*record, log.len() as u64)).collect();
                StorageIndication::Listed { records }
            }
        };
        self.nodes[at].handle_indication(self.now, Port::First(answer));
    }

    /// Carries out a request to the network.
    fn carry(&mut self, at: usize, link: LinkId, request: DatagramsRequest) {
        let answers = match request {
            DatagramsRequest::Join { .. } => {
                let peer = Some(PeerId::CONFIGURED);
                let joined = DatagramsIndication::Joined { bytes_max: 65_507, peer, group: None };
                vec![joined, DatagramsIndication::Room(1)]
            }
            DatagramsRequest::Datagram { bytes, token, .. } => {
                self.say(at, format_args!("a datagram of {} bytes leaves", bytes.len()));
                self.channel.push_back((self.now + DELAY, 1 - at, bytes));
                let left = token.map(DatagramsIndication::Transmitted);
                left.into_iter().chain([DatagramsIndication::Room(1)]).collect()
            }
            DatagramsRequest::Leave | DatagramsRequest::Release(_) => Vec::new(),
        };
        for answer in answers {
            self.nodes[at].handle_indication(self.now, Port::Second((link, answer)));
        }
    }

    /// Returns the time of the next event: the arrival of a datagram, or a deadline of a node.
    fn next_event(&self) -> Option<Instant> {
        let arrival = self.channel.front().map(|(at, ..)| *at);
        self.nodes.iter().filter_map(|node| node.poll_timeout()).chain(arrival).min()
    }

    fn step(&mut self, at: Instant) {
        self.now = self.now.max(at);
        while self.channel.front().is_some_and(|(due, ..)| *due <= self.now)
            && let Some((_, to, bytes)) = self.channel.pop_front()
        {
            self.say(to, format_args!("a datagram of {} bytes arrives", bytes.len()));
            let from = PeerId::CONFIGURED;
            let datagram = DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false };
            self.nodes[to].handle_indication(self.now, Port::Second((LINK, datagram)));
            self.settle(to);
        }
        for at in [EARTH, MOON] {
            if self.nodes[at].poll_timeout().is_some_and(|due| due <= self.now) {
                self.nodes[at].handle_timeout(self.now);
                self.settle(at);
            }
        }
    }
}

fn main() {
    let payload = Bytes::from("One small step. ".repeat(200));
    let mut world = World {
        now: Instant::ZERO,
        nodes: [node(EARTH), node(MOON)],
        disks: [BTreeMap::new(), BTreeMap::new()],
        channel: VecDeque::new(),
        unsent: payload.clone(),
        read: Vec::new(),
        payload_bytes: payload.len() as u64,
    };
    for at in [EARTH, MOON] {
        world.ask(at, ManagementRequest::SetClock { dtn_ms: Some(EPOCH_DTN_MS), steady: None });
        world.ask(at, ManagementRequest::OpenLink { link: LINK });
    }
    world.ask(MOON, AppRequest::Register { endpoint: "dtn://moon/inbox".to_owned() });
    // The moon is in view of the antenna on earth from the tenth second on.
    let contact = Contact {
        start_dtn_ms: EPOCH_DTN_MS + 10_000,
        end_dtn_ms: EPOCH_DTN_MS + 600_000,
        rate_bps: RATE_BPS,
        delay_ms: 1_300,
    };
    world.ask(EARTH, ManagementRequest::SetContacts { link: LINK, contacts: vec![contact] });
    let send = AppRequest::Send {
        send: SEND,
        destination: "dtn://moon/inbox".to_owned(),
        length: world.payload_bytes,
        options: SendOptions { report_delivery: true, ..SendOptions::default() },
    };
    world.ask(EARTH, send);
    while let Some(at) = world.next_event().filter(|at| *at <= END) {
        world.step(at);
    }
    assert!(world.read == payload, "the payload arrives as it was sent");
    for at in [EARTH, MOON] {
        let (agent, disk) = (&world.nodes[at].upper, &world.disks[at]);
        let counters = agent.counters();
        println!(
            "{} forwarded {} bundles, delivered {} and sent {} reports; {} records are on its disk",
            NAMES[at],
            counters.forwarded,
            counters.delivered,
            counters.reports_sent,
            disk.len()
        );
    }
}
