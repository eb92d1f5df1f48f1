//! The environment of a scenario: a world, and users at its nodes that send bundles, read their deliveries and take them.

use crate::plan::{Plan, node_id};
use bytes::{Bytes, BytesMut};
use longwire_proto::service::{
    App, AppIndication, AppRequest, BundleName, DeliveryId, SendFailure, SendId, SendOptions,
};
use longwire_proto::time::{Duration, Instant};
use longwire_sim::{ChannelId, NodeId, NodeIndication};
use std::collections::{BTreeMap, BTreeSet};

/// Payload bytes sent or read at once.
const PIECE_BYTES: usize = 60_000;

/// A network of bundle nodes, simulated or real. Its lines have the numbers of the plan.
pub(crate) trait Network {
    /// Returns the time since the run began.
    fn now(&self) -> Instant;
    /// Sends a request to a node; false if the node is down.
    fn request(&mut self, node: NodeId, request: AppRequest) -> bool;
    /// Runs until `until`.
    fn run_until(&mut self, until: Instant);
    /// Runs while `goes_on` returns true. It is evaluated after each possible event and may act on the network. Returns
    /// false if `limit` was reached or no more events are pending.
    fn run_while(&mut self, limit: Instant, goes_on: &mut dyn FnMut(&mut Self) -> bool) -> bool;
    /// Removes and returns the indications of the nodes, in order of time.
    fn take_indications(&mut self) -> Vec<NodeIndication<App>>;
    /// Cuts a channel.
    fn cut(&mut self, channel: ChannelId);
    /// Restores a channel.
    fn heal(&mut self, channel: ChannelId);
    /// Kills a node at once; synced data on its disk survive.
    fn crash(&mut self, node: NodeId);
    /// Restarts a node.
    fn restart(&mut self, node: NodeId);
    /// Bytes that a line has delivered to its second node.
    fn carried(&self, line: ChannelId) -> u64;
    /// One of the counters of a node's agent, since its last start.
    fn count(&mut self, node: NodeId, counter: &str) -> u64;
    /// Maximum time that a scenario waits.
    fn patience(&self) -> Duration;
}

/// A bundle that a user sends.
#[derive(Debug)]
pub(crate) struct Sending {
    at: NodeId,
    send: SendId,
    payload: Bytes,
    handed: usize,
    pub(crate) accepted: bool,
    /// Payload bytes that the next hop has acknowledged.
    pub(crate) safe: u64,
    pub(crate) end: Option<Result<(), SendFailure>>,
}

/// A delivery that is being read.
#[derive(Debug)]
struct Reading {
    name: BundleName,
    length: u64,
    data: BytesMut,
}

/// Users of all nodes.
#[derive(Debug, Default)]
pub(crate) struct Users {
    pub(crate) sendings: Vec<Sending>,
    /// Payloads read completely, in that order, with their nodes.
    pub(crate) arrivals: Vec<(NodeId, Bytes)>,
    arrived: BTreeSet<(NodeId, BundleName)>,
    /// Deliveries taken, and confirmed by the node.
    taken: BTreeSet<(NodeId, BundleName)>,
    reading: BTreeMap<(NodeId, DeliveryId), Reading>,
    room: BTreeMap<NodeId, u64>,
    registered: BTreeMap<NodeId, Vec<String>>,
    asks: Vec<(NodeId, AppRequest)>,
}

/// A world and its users.
pub(crate) struct Stage<W> {
    pub(crate) world: W,
    pub(crate) users: Users,
    plan: Plan,
}

impl<W: Network> Stage<W> {
    pub(crate) fn new(world: W, plan: Plan) -> Self {
        Stage { world, users: Users::default(), plan }
    }

    pub(crate) fn node(&self, name: &str) -> NodeId {
        let place = self.plan.nodes.iter().position(|node| node == name);
        NodeId(place.unwrap_or_else(|| panic!("there is no node {name}")) as u32)
    }

    /// Line between two nodes.
    pub(crate) fn line(&self, from: &str, to: &str) -> ChannelId {
        let place = self.plan.line.iter().position(|line| line.from == from && line.to == to);
        ChannelId(place.unwrap_or_else(|| panic!("there is no line from {from} to {to}")) as u32)
    }

    /// Registers at a node, again after each restart.
    pub(crate) fn register(&mut self, name: &str) {
        let node = self.node(name);
        let endpoint = format!("{}inbox", node_id(name));
        self.users.registered.entry(node).or_default().push(endpoint.clone());
        self.users.asks.push((node, AppRequest::Register { endpoint }));
        self.speak();
    }

    /// Starts to send a payload; returns its index in the [sendings](Users::sendings).
    pub(crate) fn send(&mut self, from: &str, to: &str, payload: Bytes, options: SendOptions) -> usize {
        let (at, index) = (self.node(from), self.users.sendings.len());
        let (send, length) = (SendId(index as u64 + 1), payload.len() as u64);
        let destination = format!("{}inbox", node_id(to));
        self.users.asks.push((at, AppRequest::Send { send, destination, length, options }));
        let sending = Sending { at, send, payload, handed: 0, accepted: false, safe: 0, end: None };
        self.users.sendings.push(sending);
        self.speak();
        index
    }

    /// Sends a payload and waits until the node has queued it.
    pub(crate) fn hand(&mut self, from: &str, to: &str, payload: Bytes, options: SendOptions) -> usize {
        let index = self.send(from, to, payload, options);
        self.wait("the node has it", |_, users| users.sendings[index].accepted);
        index
    }

    /// Passes requests of the users to the world, and its indications to them, until there are no more.
    fn speak(&mut self) {
        self.users.converse(&mut self.world);
    }

    /// Lets time pass until a condition holds.
    #[track_caller]
    pub(crate) fn wait(&mut self, what: &str, is_so: impl Fn(&mut W, &Users) -> bool) {
        let limit = self.world.now() + self.world.patience();
        let users = &mut self.users;
        let came = self.world.run_while(limit, &mut |world| {
            users.converse(world);
            !is_so(world, users)
        });
        assert!(came, "waited in vain: {what}\n{:#?}", self.users);
    }

    pub(crate) fn pass(&mut self, time: Duration) {
        let until: Instant = self.world.now() + time;
        let users = &mut self.users;
        self.world.run_while(until, &mut |world| {
            users.converse(world);
            true
        });
        self.world.run_until(until);
        self.speak();
    }

    pub(crate) fn crash(&mut self, name: &str) {
        let node = self.node(name);
        self.world.crash(node);
        // Indications before the end.
        self.speak();
        self.users.forget(node);
    }

    pub(crate) fn restart(&mut self, name: &str) {
        let node = self.node(name);
        self.world.restart(node);
        for endpoint in self.users.registered.get(&node).cloned().unwrap_or_default() {
            self.users.asks.push((node, AppRequest::Register { endpoint }));
        }
        self.speak();
    }

    pub(crate) fn count(&mut self, name: &str, counter: &str) -> u64 {
        let node = self.node(name);
        self.world.count(node, counter)
    }

    /// Waits until `count` payloads were read completely and the nodes have confirmed that all were taken. After a crash a node
    /// may have recorded that without confirming it.
    #[track_caller]
    pub(crate) fn wait_arrivals(&mut self, count: usize) {
        self.wait("all arrive and are taken", |_, users| {
            users.arrivals.len() >= count && users.reading.is_empty()
        });
    }

    /// Checks that exactly these payloads arrived there, each once.
    #[track_caller]
    pub(crate) fn check_arrivals(&self, name: &str, expected: &[Bytes]) {
        let node = self.node(name);
        let mut got: Vec<&Bytes> = self
            .users
            .arrivals
            .iter()
            .filter(|arrival| arrival.0 == node)
            .map(|arrival| &arrival.1)
            .collect();
        let mut expected: Vec<&Bytes> = expected.iter().collect();
        let lengths = |all: &[&Bytes]| all.iter().map(|payload| payload.len()).collect::<Vec<_>>();
        assert_eq!(got.len(), expected.len(), "{:?} arrived at {name}", lengths(&got));
        got.sort();
        expected.sort();
        assert!(got == expected, "each is whole: {:?}", lengths(&got));
    }
}

impl Users {
    fn converse<W: Network>(&mut self, world: &mut W) {
        loop {
            for told in world.take_indications() {
                self.hear(told);
            }
            self.hand_pieces();
            if self.asks.is_empty() {
                return;
            }
            for (node, request) in std::mem::take(&mut self.asks) {
                // A node that is down gets no requests, and its users start again when it is up.
                world.request(node, request);
            }
        }
    }

    /// Sends payload as far as there is room.
    fn hand_pieces(&mut self) {
        for sending in self.sendings.iter_mut().filter(|sending| sending.end.is_none()) {
            let room = self.room.entry(sending.at).or_default();
            while sending.handed < sending.payload.len() && *room > 0 {
                let rest = sending.payload.len() - sending.handed;
                let length = rest.min(PIECE_BYTES).min(usize::try_from(*room).unwrap_or(usize::MAX));
                let data = sending.payload.slice(sending.handed..sending.handed + length);
                sending.handed += length;
                *room -= length as u64;
                self.asks.push((sending.at, AppRequest::Piece { send: sending.send, data }));
            }
        }
    }

    fn sending(&mut self, at: NodeId, send: SendId) -> &mut Sending {
        let found = self.sendings.iter_mut().find(|sending| sending.at == at && sending.send == send);
        found.expect("nothing is said of what was never sent")
    }

    fn hear(&mut self, (_, node, said): NodeIndication<App>) {
        match said {
            AppIndication::Room(room) => drop(self.room.insert(node, room)),
            AppIndication::Accepted { send, .. } => self.sending(node, send).accepted = true,
            AppIndication::Progress { send, up_to } => self.sending(node, send).safe = up_to,
            AppIndication::Sent { send } => self.end(node, send, Ok(())),
            AppIndication::Failed { send, reason } => self.end(node, send, Err(reason)),
            AppIndication::Delivered { delivery, name, length, .. } => {
                self.delivered(node, delivery, name, length);
            }
            AppIndication::Data { delivery, offset, data } => self.data(node, delivery, offset, &data),
            AppIndication::Gone { delivery, taken } => {
                if let Some(reading) = self.reading.remove(&(node, delivery)).filter(|_| taken) {
                    self.taken.insert((node, reading.name));
                }
            }
            AppIndication::Report { .. } => {}
        }
    }

    fn end(&mut self, node: NodeId, send: SendId, end: Result<(), SendFailure>) {
        let sending = self.sending(node, send);
        assert_eq!(sending.end, None, "a send ends once");
        sending.end = Some(end);
    }

    fn delivered(&mut self, node: NodeId, delivery: DeliveryId, name: BundleName, length: u64) {
        let known = (node, name.clone());
        assert!(!self.taken.contains(&known), "{known:?} is delivered again after it was taken");
        if self.reading.contains_key(&(node, delivery)) {
            return;
        }
        self.reading.insert((node, delivery), Reading { name, length, data: BytesMut::new() });
        self.read_on(node, delivery);
    }

    fn data(&mut self, node: NodeId, delivery: DeliveryId, offset: u64, data: &[u8]) {
        let Some(reading) = self.reading.get_mut(&(node, delivery)) else { return };
        assert_eq!(offset, reading.data.len() as u64, "answers come in order");
        reading.data.extend_from_slice(data);
        // The requested bytes arrive in one answer or several.
        if reading.data.len().is_multiple_of(PIECE_BYTES) || reading.data.len() as u64 == reading.length {
            self.read_on(node, delivery);
        }
    }

    fn read_on(&mut self, node: NodeId, delivery: DeliveryId) {
        let reading = self.reading.get_mut(&(node, delivery)).expect("the caller has it");
        let offset = reading.data.len() as u64;
        if offset < reading.length {
            let request = AppRequest::Read { delivery, offset, length: PIECE_BYTES as u32 };
            return self.asks.push((node, request));
        }
        // Before a crash it may have been read without being durably taken.
        if self.arrived.insert((node, reading.name.clone())) {
            self.arrivals.push((node, std::mem::take(&mut reading.data).freeze()));
        }
        self.asks.push((node, AppRequest::Taken { delivery }));
    }

    /// A node has lost its memory, and with it the pending work of its users.
    fn forget(&mut self, node: NodeId) {
        self.reading.retain(|(at, _), _| *at != node);
        self.room.remove(&node);
        for sending in self.sendings.iter_mut().filter(|sending| sending.at == node) {
            assert!(sending.accepted, "scenarios crash no node that has not said whether it has a bundle");
            sending.end.get_or_insert(Ok(()));
        }
    }
}
