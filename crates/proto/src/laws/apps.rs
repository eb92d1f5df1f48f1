//! Applications: they send messages to each other's endpoints, read and accept deliveries, and keep record of what was
//! accepted, delivered and taken, through every crash. Every byte that was accepted and not taken is on some disk.

use super::disks::Disks;
use super::{Draw, Users};
use crate::bp::agent::{PayloadPart, part_in};
use crate::rng::Rng;
use crate::service::{
    AppIndication, AppRequest, Bpa, BpaIndication, BpaRequest, BundleVersion, CreationTimestamp, DeliveryId,
    LinkId, ManagementRequest, NextHop, SendFailure, SendId, SendOptions,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Returns the name of a node.
pub(crate) fn node_name(node: usize) -> String {
    format!("dtn://n{node}/")
}

/// Attempt to send a message: number of the message, number of the attempt.
type Attempt = (usize, u16);

/// Message from one application to another.
#[derive(Debug)]
struct TestMessage {
    from: usize,
    to: usize,
    /// Content without the four bytes at the front.
    content: Bytes,
    options: SendOptions,
    attempts: u16,
    /// Cancelled by its sender: it may arrive, or not.
    cancelled: bool,
    /// Attempt that the agent has accepted, or is about to accept.
    under_way: bool,
}

impl TestMessage {
    /// Returns the payload: number of the message, number of the attempt, and the content.
    fn payload(&self, (number, attempt): Attempt) -> Bytes {
        let way = (self.from << 4 | self.to) as u8;
        let [high, low] = attempt.to_be_bytes();
        [&[way, number as u8, high, low], &self.content[..]].concat().into()
    }
}

/// Send that has not ended.
#[derive(Debug)]
struct PendingSend {
    attempt: Attempt,
    payload: Bytes,
    handed: u64,
    cancelled: bool,
}

/// Delivery that is being read.
#[derive(Debug)]
struct PendingRead {
    length: u64,
    read: Vec<u8>,
    /// End of the part requested.
    asked: u64,
    taken: bool,
}

/// Application of one node.
#[derive(Debug, Default)]
struct AppUser {
    running: bool,
    room: u64,
    sends: BTreeMap<SendId, PendingSend>,
    deliveries: BTreeMap<DeliveryId, PendingRead>,
}

#[derive(Debug)]
enum Action {
    Send(usize),
    Take(usize, DeliveryId, u32),
    /// Disturbs a node while there are faults.
    ChangeConfig(usize),
    /// Restores its configuration.
    Restore(usize),
}

/// Routes of one node to the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeRoutes {
    /// Links that the node keeps up.
    pub(crate) links: Vec<LinkId>,
    /// Patterns with their next hops.
    pub(crate) routes: Vec<(String, NextHop)>,
}

/// Applications of all nodes.
pub(crate) struct AppUsers {
    rng: Rng,
    faults_are_on: bool,
    ways: Vec<NodeRoutes>,
    /// Error of each node's clock, milliseconds; `None` without a clock.
    clocks: Vec<Option<i64>>,
    nodes: Vec<AppUser>,
    starts: Vec<u32>,
    messages: Vec<TestMessage>,
    /// Attempts that an agent has confirmed as durable, with their creation timestamps according to the agent.
    accepted: BTreeMap<Attempt, CreationTimestamp>,
    /// Attempts that an application has confirmed to have. After a crash the agent may have lost the confirmation.
    received: BTreeSet<Attempt>,
    /// Attempts with a durable confirmation of the delivery.
    taken: BTreeSet<Attempt>,
    sends: u64,
    actions: BTreeMap<(Instant, u64), Action>,
    count: u64,
    requests: VecDeque<(usize, BpaRequest)>,
    piece_max: u64,
    read_max: u32,
    slow: Duration,
    cancels: f64,
    ends: bool,
}

impl AppUsers {
    /// Beginning of the run in DTN time, milliseconds: a time in 2026.
    pub(crate) const BEGAN_DTN_MS: u64 = 830_000_000_000;

    pub(crate) fn new(mut rng: Rng, ways: Vec<NodeRoutes>, faults_end_at: Instant) -> Self {
        let count = ways.len();
        let messages: Vec<_> = (0..rng.between(1, 6)).map(|_| draw_message(&mut rng, count)).collect();
        let clocks = (0..count).map(|_| draw_clock(&mut rng)).collect();
        let piece_bound = if rng.chance(0.2) { 50 } else { 5_000 };
        let mut applications = AppUsers {
            faults_are_on: true,
            clocks,
            nodes: (0..count).map(|_| AppUser::default()).collect(),
            starts: vec![0; count],
            messages,
            accepted: BTreeMap::new(),
            received: BTreeSet::new(),
            taken: BTreeSet::new(),
            sends: 0,
            actions: BTreeMap::new(),
            count: 0,
            requests: VecDeque::new(),
            piece_max: 20 + rng.below(piece_bound),
            read_max: 20 + rng.below(piece_bound) as u32,
            slow: if rng.chance(0.5) {
                Duration::ZERO
            } else {
                rng.span(Duration::ZERO, Duration::from_secs(5))
            },
            cancels: rng.share(0.05),
            ends: true,
            ways,
            rng,
        };
        for number in 0..applications.messages.len() {
            let at = Instant::from_nanos(applications.rng.below(faults_end_at.as_nanos()));
            applications.at(at, Action::Send(number));
        }
        if applications.rng.chance(0.3) {
            for _ in 0..applications.rng.between(1, 6) {
                let node = applications.rng.below(count as u64) as usize;
                let at = Instant::from_nanos(applications.rng.below(faults_end_at.as_nanos()));
                let restored = at + applications.rng.span(Duration::ZERO, Duration::from_secs(30));
                applications.at(at, Action::ChangeConfig(node));
                applications.at(restored.min(faults_end_at), Action::Restore(node));
            }
        }
        applications
    }

    /// Applications that do not require an end: a hostile peer may occupy the resources of their messages for ever.
    pub(crate) fn without_end(self) -> Self {
        AppUsers { ends: false, ..self }
    }

    /// Checks that every byte that was accepted and not taken is on one of the disks.
    pub(crate) fn audit(&self, disks: &Disks) {
        let parts: Vec<PayloadPart> = disks.durable().filter_map(part_in).collect();
        for (&attempt, created) in &self.accepted {
            let message = &self.messages[attempt.0];
            if message.cancelled || self.received.contains(&attempt) {
                continue;
            }
            let payload = message.payload(attempt);
            let source = node_name(message.from);
            let of_it = |part: &&PayloadPart| part.created == *created && part.source.starts_with(&source);
            let mut stretches: Vec<(usize, usize)> =
                parts.iter().filter(of_it).filter_map(|part| stretch_of(part, &payload)).collect();
            stretches.sort_unstable();
            let there = stretches.iter().fold(
                0,
                |there, &(from, to)| {
                    if from <= there { there.max(to) } else { there }
                },
            );
            let all = payload.len();
            assert!(
                there == all,
                "{attempt:?} was accepted, and of its {all} bytes those from {there} on are on no disk"
            );
        }
    }

    fn at(&mut self, at: Instant, action: Action) {
        self.count += 1;
        self.actions.insert((at, self.count), action);
    }

    fn ask(&mut self, node: usize, request: impl Into<BpaRequest>) {
        self.requests.push_back((node, request.into()));
    }

    /// Does what an operator or an application may do at any time: close links, unregister, change the clock.
    fn meddle(&mut self, now: Instant, node: usize) {
        if !self.nodes[node].running {
            return;
        }
        match self.rng.below(3) {
            0 => {
                for link in self.ways[node].links.clone() {
                    self.ask(node, ManagementRequest::CloseLink { link });
                }
            }
            1 => self.ask(node, AppRequest::Unregister { endpoint: format!("{}in", node_name(node)) }),
            _ => {
                self.clocks[node] = draw_clock(&mut self.rng);
                self.tell_clock(now, node);
            }
        }
    }

    fn tell_clock(&mut self, now: Instant, node: usize) {
        let millis = now.as_nanos() / 1_000_000 + Self::BEGAN_DTN_MS;
        let dtn_ms = self.clocks[node].map(|wrong| millis.saturating_add_signed(wrong));
        self.ask(node, ManagementRequest::SetClock { dtn_ms, steady: None });
    }

    /// Opens the links of a node, and registers its endpoint.
    fn restore(&mut self, node: usize) {
        if self.nodes[node].running {
            for link in self.ways[node].links.clone() {
                self.ask(node, ManagementRequest::OpenLink { link });
            }
            self.ask(node, AppRequest::Register { endpoint: format!("{}in", node_name(node)) });
        }
    }

    fn again(&mut self, now: Instant, number: usize) {
        self.messages[number].under_way = false;
        let soon = now + Duration::from_millis(1 + self.rng.below(5_000));
        self.at(soon, Action::Send(number));
    }

    fn send(&mut self, number: usize) {
        let message = &mut self.messages[number];
        if message.under_way || message.cancelled || !self.nodes[message.from].running {
            return;
        }
        message.under_way = true;
        message.attempts += 1;
        let attempt = (number, message.attempts);
        let payload = message.payload(attempt);
        let send = SendId(self.sends);
        self.sends += 1;
        let request = AppRequest::Send {
            send,
            destination: format!("{}in", node_name(message.to)),
            length: payload.len() as u64,
            options: message.options.clone(),
        };
        let from = message.from;
        self.nodes[from].sends.insert(send, PendingSend { attempt, payload, handed: 0, cancelled: false });
        self.ask(from, request);
    }

    fn failed(&mut self, now: Instant, node: usize, send: SendId, reason: SendFailure) {
        let sending = self.nodes[node].sends.remove(&send).expect("the account knows it");
        if sending.cancelled {
            return;
        }
        // An accepted message belongs to the agent: it must not be returned.
        let accepted = self.accepted.contains_key(&sending.attempt);
        assert!(!accepted, "{:?} was accepted, and failed: {reason:?}", sending.attempt);
        self.again(now, sending.attempt.0);
    }

    /// Returns the attempt of a payload; its bytes must be those that were sent.
    fn recognise(&self, node: usize, payload: &[u8]) -> Attempt {
        let &[way, number, high, low, ..] = payload else { panic!("a payload of {} bytes", payload.len()) };
        let message = self.messages.get(usize::from(number)).expect("a message that was sent");
        let (from, to) = (usize::from(way >> 4), usize::from(way & 15));
        assert_eq!((message.from, message.to), (from, to), "a message goes astray");
        let attempt = u16::from_be_bytes([high, low]);
        assert_eq!(message.to, node, "a message for another node");
        let sent = message.payload((number.into(), attempt));
        assert!(sent == payload, "message {number}, attempt {attempt}, is not what was sent");
        (number.into(), attempt)
    }

    fn delivered(&mut self, node: usize, delivery: DeliveryId, length: u64) {
        let deliveries = &mut self.nodes[node].deliveries;
        if let Some(reading) = deliveries.get(&delivery) {
            assert_eq!(reading.length, length, "{delivery:?} has another length now");
            return;
        }
        deliveries.insert(delivery, PendingRead { length, read: vec![], asked: 0, taken: false });
        self.read(node, delivery);
    }

    fn read(&mut self, node: usize, delivery: DeliveryId) {
        let length = self.read_max;
        let reading = self.nodes[node].deliveries.get_mut(&delivery).expect("it is being read");
        let offset = reading.read.len() as u64;
        reading.asked = reading.length.min(offset + u64::from(length));
        self.ask(node, AppRequest::Read { delivery, offset, length });
    }

    fn data(&mut self, now: Instant, node: usize, delivery: DeliveryId, offset: u64, data: &[u8]) {
        let reading = self.nodes[node].deliveries.get_mut(&delivery).expect("the account knows it");
        assert_eq!(offset, reading.read.len() as u64, "data of {delivery:?} that nobody asked for");
        reading.read.extend_from_slice(data);
        if (reading.read.len() as u64) < reading.length {
            if reading.read.len() as u64 == reading.asked {
                self.read(node, delivery);
            }
            return;
        }
        let payload = reading.read.clone();
        let attempt = self.recognise(node, &payload);
        assert!(!self.taken.contains(&attempt), "{attempt:?} is delivered again, and it was taken");
        let later = now + self.rng.span(Duration::ZERO, self.slow);
        self.at(later, Action::Take(node, delivery, self.starts[node]));
    }

    fn take(&mut self, node: usize, delivery: DeliveryId, start: u32) {
        if self.starts[node] != start || !self.nodes[node].running {
            return;
        }
        if let Some(reading) = self.nodes[node].deliveries.get_mut(&delivery)
            && !core::mem::replace(&mut reading.taken, true)
        {
            let payload = reading.read.clone();
            self.received.insert(self.recognise(node, &payload));
            self.ask(node, AppRequest::Taken { delivery });
        }
    }

    fn gone(&mut self, node: usize, delivery: DeliveryId, taken: bool) {
        let reading = self.nodes[node].deliveries.remove(&delivery).expect("the account knows it");
        assert!(taken, "a delivery of {} bytes is gone, and nobody took it", reading.length);
        let attempt = self.recognise(node, &reading.read);
        assert!(self.taken.insert(attempt), "{attempt:?} is taken twice");
    }

    /// Returns the next piece of a send.
    fn next_piece(&mut self, node: usize) -> Option<AppRequest> {
        let application = &mut self.nodes[node];
        for (&send, sending) in &mut application.sends {
            let length = sending.payload.len() as u64;
            let size = application.room.min(self.piece_max).min(length - sending.handed);
            if sending.cancelled || size == 0 {
                continue;
            }
            if self.faults_are_on && self.rng.chance(self.cancels) {
                sending.cancelled = true;
                self.messages[sending.attempt.0].cancelled = true;
                return Some(AppRequest::Cancel { send });
            }
            let from = sending.handed as usize;
            sending.handed += size;
            application.room -= size;
            return Some(AppRequest::Piece { send, data: sending.payload.slice(from..from + size as usize) });
        }
        None
    }
}

/// Returns the range of a part in this payload; `None` if its bytes differ.
fn stretch_of(part: &PayloadPart, payload: &[u8]) -> Option<(usize, usize)> {
    let from = usize::try_from(part.offset).ok()?;
    let to = from.checked_add(part.bytes.len())?;
    (payload.get(from..to)? == part.bytes).then_some((from, to))
}

fn draw_message(rng: &mut Rng, nodes: usize) -> TestMessage {
    let most = if rng.chance(0.2) { 20_000 } else { 2_000 };
    let mut content = vec![0; rng.below(most) as usize];
    rng.fill(&mut content);
    let mut way = rng.fork("version");
    let custody = way.chance(0.2);
    let version = if custody || way.chance(0.2) { Some(BundleVersion::V6) } else { None };
    TestMessage {
        from: rng.below(nodes as u64) as usize,
        to: rng.below(nodes as u64) as usize,
        content: content.into(),
        options: SendOptions {
            report_delivery: rng.chance(0.2),
            report_reception: rng.chance(0.1),
            report_forwarding: rng.chance(0.1),
            must_not_fragment: rng.chance(0.1),
            hop_limit: rng.chance(0.2).then_some(200),
            report_custody: custody && way.chance(0.2),
            version,
            custody,
            ..SendOptions::default()
        },
        attempts: 0,
        cancelled: false,
        under_way: false,
    }
}

/// A clock that is right, wrong by up to an hour, or absent.
fn draw_clock(rng: &mut Rng) -> Option<i64> {
    match rng.below(4) {
        0 => None,
        1 => Some(rng.below(7_200_000) as i64 - 3_600_000),
        _ => Some(0),
    }
}

impl Users<Bpa> for AppUsers {
    fn started(&mut self, now: Instant, node: usize) {
        self.nodes[node].running = true;
        self.starts[node] += 1;
        self.tell_clock(now, node);
        for (pattern, via) in self.ways[node].routes.clone() {
            self.ask(node, ManagementRequest::SetRoute { pattern, via, cost: 1 });
        }
        self.restore(node);
        for number in 0..self.messages.len() {
            if self.messages[number].from == node && self.messages[number].attempts > 0 {
                self.at(now, Action::Send(number));
            }
        }
    }

    fn crashed(&mut self, _now: Instant, node: usize) {
        self.requests.retain(|&(at, _)| at != node);
        for sending in core::mem::take(&mut self.nodes[node]).sends.into_values() {
            if !self.accepted.contains_key(&sending.attempt) {
                self.messages[sending.attempt.0].under_way = false;
            }
        }
    }

    fn calm(&mut self, now: Instant) {
        self.faults_are_on = false;
        for number in 0..self.messages.len() {
            self.at(now, Action::Send(number));
        }
    }

    fn handle_indication(&mut self, now: Instant, node: usize, said: BpaIndication) {
        let BpaIndication::App(said) = said else { return };
        match said {
            AppIndication::Room(room) => self.nodes[node].room = room,
            AppIndication::Accepted { send, created } => {
                self.accepted.insert(self.nodes[node].sends[&send].attempt, created);
            }
            AppIndication::Sent { send } => {
                self.nodes[node].sends.remove(&send).expect("the account knows it");
            }
            AppIndication::Failed { send, reason } => self.failed(now, node, send, reason),
            AppIndication::Delivered { delivery, length, .. } => self.delivered(node, delivery, length),
            AppIndication::Data { delivery, offset, data } => self.data(now, node, delivery, offset, &data),
            AppIndication::Gone { delivery, taken } => self.gone(node, delivery, taken),
            AppIndication::Progress { .. } | AppIndication::Report { .. } => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.actions.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Action::Send(number) => self.send(number),
                Action::Take(node, delivery, start) => self.take(node, delivery, start),
                Action::ChangeConfig(node) => self.meddle(now, node),
                Action::Restore(node) => self.restore(node),
            }
        }
    }

    fn poll_request(&mut self, _now: Instant) -> Option<(usize, BpaRequest)> {
        if let Some(request) = self.requests.pop_front() {
            return Some(request);
        }
        (0..self.nodes.len()).find_map(|node| self.next_piece(node).map(|request| (node, request.into())))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.actions.first_key_value().map(|(&(at, _), _)| at)
    }

    fn want_ends(&self) -> bool {
        self.ends
    }

    fn sent(&self) -> u64 {
        self.received.len() as u64
    }

    fn unsettled(&self) -> Option<String> {
        for (number, message) in self.messages.iter().enumerate().filter(|(_, message)| !message.cancelled) {
            let (from, to) = (message.from, message.to);
            let accepted = self.accepted.keys().filter(|attempt| attempt.0 == number);
            let mut open = accepted.filter(|attempt| !self.received.contains(attempt));
            if let Some((_, attempt)) = open.next() {
                return Some(format!(
                    "message {number}, attempt {attempt}, from {from} to {to} was accepted and is not taken"
                ));
            }
            if !self.received.iter().any(|attempt| attempt.0 == number) {
                return Some(format!("message {number} from {from} to {to} is not taken"));
            }
        }
        let reading = self.nodes.iter().flat_map(|node| node.deliveries.keys()).next()?;
        Some(format!("{reading:?} is still there"))
    }
}
