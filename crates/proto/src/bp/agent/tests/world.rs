//! Agents in virtual time over scripted disks and cables. A cable is a lossless convergence layer that can be
//! cut at any byte; after a crash, a disk keeps all durable data and some of the rest.

mod cables;

use super::super::{Agent, Config, Limits, Security};
pub(super) use super::parts::Payload;
use super::parts::{Disk, User};
use crate::bp::{CreationTimestamp, DecodePolicy, Head, decode_head, v6};
use crate::engine::{Engine, drain};
use crate::rng::Rng;
use crate::service::{
    AppRequest, BpaRequest, BundlesIndication, BundlesRequest, CloseReason, DownReason, LinkId,
    ManagementRequest, NextHop, Port, RefuseReason, SendId, SendOptions, SteadyReading, StorageFailure,
    StorageIndication, StorageRequest, TransferFailure, TransferId,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet};

/// DTN time at the beginning of a run.
pub(super) const EPOCH_DTN_MS: u64 = 800_000_000_000;
/// Maximum length of an append that may use the spare space of a disk.
const SHORT_BYTES: usize = 128;

pub(super) struct Node {
    pub(super) agent: Option<Checked<Agent>>,
    config: Config,
    pub(super) disk: Disk,
    pub(super) user: User,
    boots: u64,
    seed: u64,
    /// Requests to the agent at each start.
    setup: Vec<BpaRequest>,
    /// Offset of the node's clock, milliseconds; `None` for a node without a clock.
    pub(super) clock_ms: Option<i64>,
    /// True if the node also has a steady clock, which never jumps.
    pub(super) has_steady_clock: bool,
    /// Keys and rules at each start.
    pub(super) security: Security,
    wake: Option<Instant>,
    pub(super) peak_buffered: usize,
}

/// One direction of a cable.
#[derive(Debug, Default)]
struct Half {
    outgoing: BTreeMap<TransferId, Out>,
    incoming: BTreeMap<TransferId, In>,
    in_flight: u64,
    free_at: Instant,
    connect: bool,
    next: u64,
}

#[derive(Debug)]
struct Out {
    sent: u64,
    acked: u64,
    there: TransferId,
    start: BytesMut,
    noted: bool,
}

#[derive(Debug)]
struct In {
    here: TransferId,
    accepted: u64,
    length: u64,
}

pub(super) struct Cable {
    ends: [(usize, LinkId); 2],
    halves: [Half; 2],
    pub(super) plugged: bool,
    pub(super) session: bool,
    epoch: u64,
    pub(super) delay: Duration,
    pub(super) byte_time: Duration,
    pub(super) window: u64,
    pub(super) interleave: bool,
    pub(super) transfer_bytes_max: u64,
    /// Bytes of pieces sent, over all transfers.
    pub(super) carried: u64,
    /// Number of carried bytes at which the cable is cut, and the duration of the cut.
    pub(super) cut_at: Option<(u64, Duration)>,
    /// Headers of the opened transfers, in order.
    pub(super) heads: Vec<Head>,
    /// Headers of the opened transfers of version 6, in order.
    pub(super) heads6: Vec<v6::Head>,
    /// Payload acknowledged in broken transfers: end, bundle, and range in the application data unit.
    safe: Vec<(usize, CreationTimestamp, u64, u64)>,
    /// Refuses the next transfer with this reason.
    pub(super) damage: bool,
}

#[derive(Clone, Debug)]
enum Wire {
    Begin(TransferId, u64),
    Piece(TransferId, Bytes, bool),
    Acked(TransferId, u64),
    Refused(TransferId, RefuseReason),
    Cancelled(TransferId),
    Free(u64),
}

enum Event {
    Wake(usize),
    Storage(usize, u64, StorageRequest, u64),
    Wire(usize, u64, usize, Wire),
    Heal(usize),
}

pub(super) struct World {
    pub(super) now: Instant,
    events: BTreeMap<(Instant, u64), Event>,
    sequence: u64,
    pub(super) nodes: Vec<Node>,
    pub(super) cables: Vec<Cable>,
    rng: Rng,
    /// No acknowledged byte may be resent: true unless nodes crash before that.
    pub(super) strict: bool,
    /// Requests to injected links.
    pub(super) answers: Vec<BundlesRequest>,
    pub(super) injected: u64,
}

/// Link without a cable, whose neighbour is the test itself.
pub(super) const INJECTED: LinkId = LinkId(LinkId::FIRST_INCOMING + 5);

impl Node {
    /// Clears the requests that are repeated at each start.
    pub(super) fn forget_requests(&mut self) {
        self.setup.clear();
    }
}

impl Cable {
    /// True while both ends are connected.
    pub(super) fn has_session(&self) -> bool {
        self.session
    }
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        World {
            now: Instant::ZERO,
            events: BTreeMap::new(),
            sequence: 0,
            nodes: Vec::new(),
            cables: Vec::new(),
            rng: Rng::new(seed),
            strict: true,
            answers: Vec::new(),
            injected: 0,
        }
    }

    /// Injects these bytes as a bundle from the test's neighbour, in pieces of this length.
    pub(super) fn inject(&mut self, node: usize, bytes: &Bytes, piece: usize) {
        let transfer = self.inject_begin(node);
        self.inject_pieces(node, transfer, bytes, piece, true);
    }

    /// Injects these bytes as the beginning of a bundle.
    pub(super) fn inject_beginning(&mut self, node: usize, bytes: &Bytes) {
        let transfer = self.inject_begin(node);
        self.inject_pieces(node, transfer, bytes, bytes.len(), false);
    }

    /// Injects these bytes as the end of the bundle that was begun.
    pub(super) fn inject_end(&mut self, node: usize, bytes: &Bytes) {
        self.inject_pieces(node, TransferId(self.injected), bytes, bytes.len(), true);
    }

    fn inject_begin(&mut self, node: usize) -> TransferId {
        if self.injected == 0 {
            let peer = Some("dtn://neighbour/".to_owned());
            let up = BundlesIndication::Up { peer, interleave: true, transfer_bytes_max: u64::MAX };
            self.say_injected(node, up);
        }
        self.injected += 1;
        let transfer = TransferId(self.injected);
        self.say_injected(node, BundlesIndication::Begin { transfer, length: None });
        transfer
    }

    fn inject_pieces(&mut self, node: usize, transfer: TransferId, bytes: &Bytes, piece: usize, ends: bool) {
        let count = bytes.len().div_ceil(piece);
        for (index, part) in bytes.chunks(piece).enumerate() {
            let refused = |answer: &BundlesRequest| matches!(answer, BundlesRequest::Refuse { transfer: other, .. } if *other == transfer);
            if self.answers.iter().any(refused) {
                break;
            }
            let data = Bytes::copy_from_slice(part);
            self.say_injected(
                node,
                BundlesIndication::Piece { transfer, data, last: ends && index + 1 == count },
            );
        }
    }

    pub(super) fn say_injected(&mut self, node: usize, indication: BundlesIndication) {
        self.say_from(node, INJECTED, indication);
    }

    /// Passes an indication from the test's neighbour over a separate link.
    pub(super) fn say_from(&mut self, node: usize, link: LinkId, indication: BundlesIndication) {
        let now = self.now;
        let agent = self.nodes[node].agent.as_mut().expect("the node is up");
        agent.handle_indication(now, Port::Second((link, indication)));
        self.settle(node);
    }

    /// Reasons for which the injected bundles were refused, in order.
    pub(super) fn refusals(&self) -> Vec<RefuseReason> {
        let refusal = |answer: &BundlesRequest| match answer {
            BundlesRequest::Refuse { reason, .. } => Some(*reason),
            _ => None,
        };
        self.answers.iter().filter_map(refusal).collect()
    }

    /// Injected bundles of which a part was accepted.
    pub(super) fn accepted_injected(&self) -> BTreeSet<TransferId> {
        let accepted = |answer: &BundlesRequest| match answer {
            BundlesRequest::Accept { transfer, .. } => Some(*transfer),
            _ => None,
        };
        self.answers.iter().filter_map(accepted).collect()
    }

    /// Starts a node `dtn://name/` with an application that is registered for `dtn://name/in` and accepts
    /// everything.
    pub(super) fn node(&mut self, name: &str, configure: impl FnOnce(&mut Config)) -> usize {
        let mut config = Config { node: format!("dtn://{name}/"), ..Config::default() };
        configure(&mut config);
        let disk = Disk { latency: Duration::from_millis(1), ..Disk::default() };
        let user = User { takes: true, ..User::default() };
        let setup = vec![AppRequest::Register { endpoint: format!("dtn://{name}/in") }.into()];
        let seed = self.rng.next_u64();
        self.nodes.push(Node {
            agent: None,
            config,
            disk,
            user,
            boots: 0,
            seed,
            setup,
            clock_ms: Some(0),
            has_steady_clock: false,
            security: Security::default(),
            wake: None,
            peak_buffered: 0,
        });
        self.nodes.len() - 1
    }

    /// Adds a cable between two nodes: 10 kbyte/s, 10 ms. The link has the same ID at both ends.
    pub(super) fn cable(&mut self, a: usize, b: usize) -> usize {
        let id = LinkId(self.cables.len() as u32 + 1);
        for node in [a, b] {
            self.nodes[node].setup.push(ManagementRequest::OpenLink { link: id }.into());
        }
        self.cables.push(Cable {
            ends: [(a, id), (b, id)],
            halves: [Half::default(), Half::default()],
            plugged: true,
            session: false,
            epoch: 0,
            delay: Duration::from_millis(10),
            byte_time: Duration::from_micros(100),
            window: 4096,
            interleave: false,
            transfer_bytes_max: u64::MAX,
            carried: 0,
            cut_at: None,
            heads: Vec::new(),
            heads6: Vec::new(),
            safe: Vec::new(),
            damage: false,
        });
        self.cables.len() - 1
    }

    /// Routes bundles of `node` for `pattern` over `cable`.
    pub(super) fn route(&mut self, node: usize, pattern: &str, cable: usize) {
        let via = NextHop::Link(LinkId(cable as u32 + 1));
        self.tell(node, ManagementRequest::SetRoute { pattern: pattern.into(), via, cost: 1 });
    }

    /// Passes a request to a node now (if it is up) and after each start.
    pub(super) fn tell(&mut self, node: usize, request: impl Into<BpaRequest>) {
        let request = request.into();
        self.nodes[node].setup.push(request.clone());
        if self.nodes[node].agent.is_some() {
            self.request(node, request);
        }
    }

    pub(super) fn start_all(&mut self) {
        for node in 0..self.nodes.len() {
            self.start(node);
        }
    }

    pub(super) fn start(&mut self, node: usize) {
        let here = &mut self.nodes[node];
        assert!(here.agent.is_none());
        let rng = Rng::new(here.seed ^ here.boots);
        here.boots += 1;
        let mut agent = Agent::new(here.config.clone(), rng).expect("the configuration is good");
        agent.set_security(here.security.clone());
        here.agent = Some(Checked::new(&here.config.node.clone(), agent));
        here.wake = None;
        self.tell_clock(node);
        for request in self.nodes[node].setup.clone() {
            self.request(node, request);
        }
    }

    /// Sets the clock of a node's agent.
    pub(super) fn tell_clock(&mut self, node: usize) {
        let here = &self.nodes[node];
        let steady = SteadyReading { of: 7, ms: self.now.as_nanos() / 1_000_000 };
        let steady = here.has_steady_clock.then_some(steady);
        let dtn_ms = here.clock_ms.map(|off| {
            (EPOCH_DTN_MS + self.now.as_nanos() / 1_000_000).checked_add_signed(off).expect("a time")
        });
        self.request(node, ManagementRequest::SetClock { dtn_ms, steady });
    }

    /// Cuts the power of a node: data that are not durable may be lost.
    pub(super) fn crash(&mut self, node: usize) {
        let here = &mut self.nodes[node];
        here.agent = None;
        // The injected neighbour must reconnect, too.
        self.injected = 0;
        here.user.reading.clear();
        here.user.sends.clear();
        here.user.ended.clear();
        here.user.requests.clear();
        here.user.room = 0;
        let mut rng = self.rng.fork(&format!("crash {}", self.sequence));
        here.disk.used = 0;
        here.disk.refused.clear();
        here.disk.records.retain(|_, log| {
            let kept = log.durable + rng.below(log.length - log.durable + 1);
            log.truncate(if rng.chance(0.5) { log.durable } else { kept });
            here.disk.used += log.length;
            log.length > 0
        });
        for cable in 0..self.cables.len() {
            if self.cables[cable].ends.iter().any(|(end, _)| *end == node) {
                let plugged = self.cables[cable].plugged;
                self.cut(cable);
                self.cables[cable].plugged = plugged;
            }
        }
        for cable in &mut self.cables {
            for (end, (owner, _)) in cable.ends.iter().enumerate() {
                if *owner == node {
                    cable.halves[end] = Half::default();
                    // The node no longer knows what its peer had.
                    cable.safe.retain(|(by, ..)| *by != end);
                }
            }
        }
    }

    pub(super) fn send(
        &mut self,
        node: usize,
        number: u64,
        destination: &str,
        payload: Payload,
        options: SendOptions,
    ) {
        let (send, length) = (SendId(number), payload.len());
        self.nodes[node].user.sends.insert(send, (payload, 0));
        let destination = destination.into();
        self.request(node, AppRequest::Send { send, destination, length, options });
    }

    pub(super) fn request(&mut self, node: usize, request: impl Into<BpaRequest>) {
        let now = self.now;
        self.nodes[node].agent.as_mut().expect("the node is up").handle_request(now, request.into());
        self.settle(node);
    }

    /// Drains a node's agent and carries out its requests.
    fn settle(&mut self, node: usize) {
        loop {
            let now = self.now;
            let here = &mut self.nodes[node];
            let Some(agent) = here.agent.as_mut() else { return };
            let (mut up, mut down) = (Vec::new(), Vec::new());
            // One request at a time: indications of a provider in between change the next request.
            while let Some(indication) = agent.poll_indication(now) {
                up.push(indication);
            }
            let quiet = match agent.poll_request(now) {
                Some(request) => {
                    down.push(request);
                    false
                }
                None => up.is_empty(),
            };
            here.peak_buffered = here.peak_buffered.max(agent.engine.buffered_bytes());
            up.into_iter().for_each(|indication| here.user.hear(indication));
            here.user.feed();
            for request in down {
                self.carry(node, request);
            }
            let here = &mut self.nodes[node];
            let requests = core::mem::take(&mut here.user.requests);
            for request in &requests {
                let agent = here.agent.as_mut().expect("it was just there");
                agent.handle_request(now, request.clone().into());
            }
            if quiet && requests.is_empty() {
                break;
            }
        }
        let here = &mut self.nodes[node];
        if let Some(agent) = &mut here.agent {
            // The contract of the owner's loop: stable until the next input.
            drain(agent, self.now, |_| panic!("not drained"), |_| panic!("not drained"));
            let wake = agent.poll_timeout();
            if wake != here.wake {
                here.wake = wake;
                if let Some(at) = wake {
                    self.at(at.max(self.now), Event::Wake(node));
                }
            }
        }
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.sequence += 1;
        self.events.insert((at, self.sequence), event);
    }

    fn carry(&mut self, node: usize, request: Port<StorageRequest, (LinkId, BundlesRequest)>) {
        match request {
            Port::First(request) => {
                let up_to = self.write(node, &request);
                let (boot, latency) = (self.nodes[node].boots, self.nodes[node].disk.latency);
                self.at(self.now + latency, Event::Storage(node, boot, request, up_to));
            }
            Port::Second((link, request)) if link.is_incoming() => self.answers.push(request),
            Port::Second((link, request)) => {
                let cable = link.0 as usize - 1;
                let end = usize::from(self.cables[cable].ends[1].0 == node);
                self.cable_request(cable, end, request);
            }
        }
    }

    /// Appends data, which can be read at once and become durable later. Returns the end of the record; zero
    /// if there is no space.
    fn write(&mut self, node: usize, request: &StorageRequest) -> u64 {
        let StorageRequest::Append { record, data, .. } = request else { return 0 };
        let disk = &mut self.nodes[node].disk;
        let spare = if data.len() <= SHORT_BYTES { disk.spare } else { 0 };
        let full = disk
            .capacity
            .is_some_and(|capacity| disk.used + data.len() as u64 > capacity.saturating_add(spare));
        if full || disk.refused.contains(record) {
            disk.refused.insert(*record);
            return 0;
        }
        disk.used += data.len() as u64;
        let log = disk.records.entry(*record).or_default();
        log.chunks.insert(log.length, data.clone());
        log.length += data.len() as u64;
        log.length
    }

    fn storage_done(&mut self, node: usize, request: StorageRequest, up_to: u64) {
        let disk = &mut self.nodes[node].disk;
        let indication = match request {
            StorageRequest::Append { record, .. } if up_to == 0 => StorageIndication::Full { record },
            StorageRequest::Append { record, .. } => {
                let Some(log) = disk.records.get_mut(&record) else { return };
                log.durable = up_to;
                StorageIndication::Stored { record, up_to }
            }
            StorageRequest::Read { record, offset, .. } if self.now < disk.away_until => {
                StorageIndication::ReadFailed { record, offset, failure: StorageFailure::Device }
            }
            StorageRequest::Read { record, offset, length, .. } => match disk.records.get(&record) {
                None => StorageIndication::ReadFailed { record, offset, failure: StorageFailure::Missing },
                Some(log) if log.is_damaged(offset, length.into()) => {
                    StorageIndication::ReadFailed { record, offset, failure: StorageFailure::Damaged }
                }
                Some(log) => {
                    StorageIndication::Data { record, offset, data: log.read(offset, length.into()) }
                }
            },
            StorageRequest::Remove { record } => {
                disk.refused.remove(&record);
                if let Some(log) = disk.records.remove(&record) {
                    disk.used -= log.length;
                }
                StorageIndication::Removed { record }
            }
            StorageRequest::List => StorageIndication::Listed {
                records: disk.records.iter().map(|(record, log)| (*record, log.length)).collect(),
            },
        };
        let now = self.now;
        let agent = self.nodes[node].agent.as_mut().expect("the same start");
        agent.handle_indication(now, Port::First(indication));
        self.settle(node);
    }

    /// Processes the next event. Returns false if there is none before `limit`.
    fn step(&mut self, limit: Instant) -> bool {
        let Some(entry) = self.events.first_entry() else { return false };
        if entry.key().0 > limit {
            return false;
        }
        let ((at, _), event) = entry.remove_entry();
        self.now = at;
        match event {
            Event::Wake(node) => {
                let here = &mut self.nodes[node];
                if here.wake.is_none_or(|wake| wake > at) {
                    return true;
                }
                here.wake = None;
                if let Some(agent) = &mut here.agent {
                    agent.handle_timeout(at);
                    self.settle(node);
                }
            }
            Event::Storage(node, boot, request, up_to) => {
                if self.nodes[node].boots == boot && self.nodes[node].agent.is_some() {
                    self.storage_done(node, request, up_to);
                }
            }
            Event::Wire(cable, epoch, end, wire) => {
                if self.cables[cable].epoch == epoch {
                    self.wire(cable, end, wire);
                }
            }
            Event::Heal(cable) => self.heal(cable),
        }
        true
    }

    pub(super) fn run_for(&mut self, time: Duration) {
        let limit = self.now + time;
        while self.step(limit) {}
        self.now = limit;
        self.check_accounts();
    }

    /// Runs until the condition holds; panics if it does not within `time`.
    pub(super) fn run_until(&mut self, time: Duration, what: &str, mut done: impl FnMut(&World) -> bool) {
        let limit = self.now + time;
        while !done(self) {
            assert!(self.step(limit), "not within {time:?}: {what}; counters {:?}", self.all_counters());
        }
        self.check_accounts();
    }

    /// Panics unless the accounts of each node match the bundles that it has.
    fn check_accounts(&self) {
        let agents = self.nodes.iter().filter_map(|node| node.agent.as_ref());
        agents.for_each(|agent| agent.engine.holdings.check(&agent.engine.node().to_string()));
    }

    pub(super) fn all_counters(&self) -> Vec<String> {
        let alive = self.nodes.iter().filter_map(|node| node.agent.as_ref());
        alive
            .map(|agent| {
                let held: Vec<_> = agent.engine.bundles(self.now).map(|status| status.why).collect();
                format!("{}: {:?} holds {held:?}", agent.engine.node(), agent.engine.counters())
            })
            .collect()
    }

    pub(super) fn agent(&self, node: usize) -> &Agent {
        &self.nodes[node].agent.as_ref().expect("the node is up").engine
    }

    /// Changes limits of a node that runs.
    pub(super) fn change_limits(&mut self, node: usize, change: impl FnOnce(&mut Limits)) {
        let agent = &mut self.nodes[node].agent.as_mut().expect("the node is up").engine;
        let mut limits = agent.config.limits.clone();
        change(&mut limits);
        agent.set_limits(limits);
    }

    /// Number of records on the disk of a node.
    pub(super) fn disk_records(&self, node: usize) -> usize {
        self.nodes[node].disk.records.len()
    }
}
