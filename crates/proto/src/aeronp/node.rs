//! Node: the engine.

use super::config::{Config, Counters};
use super::endpoints::{Delivery, Endpoints};
use super::held::{Answer, Held, Holdings, PacketKey, Place, Remembered, Report};
use super::neighbours::{Acquaintance, HeardFrame, Neighbours};
use super::wire::{
    ACKNOWLEDGED_MAX, Acknowledgement, Beacon, FIX_BYTES, HEADER_BYTES, LINK_REPORT_BYTES, LinkReport,
    NodeFix, Packet, PacketType, TENTH, TOLD_MAX, WireFix, tenths,
};
use crate::codec::encoded;
use crate::engine::Engine;
use crate::joint::earlier;
use crate::motion::{Fix, Motion, Trajectory};
use crate::observe::Observation;
use crate::packet_router::{Decision, NodeAddress, PacketRouter, RoutedPacket, ToldFix};
use crate::rng::Rng;
use crate::service::{
    Datagrams, DatagramsIndication, DatagramsRequest, Frames, FramesIndication, FramesRequest, InterfaceId,
    LinkId, Many, PeerId, Shares,
};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of neighbours on an interface that are owed acknowledgements.
const ANSWERED_MAX: usize = 64;
/// Maximum number of frames whose departure is awaited.
const IN_AIR_MAX: usize = 4096;

/// Interface of the node.
#[derive(Debug, Default)]
struct Interface {
    joined: bool,
    room: u32,
    /// Sequence number of the next packet.
    sequence: u16,
    beacon_due: bool,
    /// Acknowledgements that are due.
    answers: BTreeMap<NodeAddress, Acknowledgement>,
}

/// Frame that has not left.
#[derive(Debug)]
struct InAir {
    key: PacketKey,
    sequence: u16,
    /// User that is told.
    report: Option<Report>,
}

/// AeroNP for the users of one node. The [module](super) describes it.
#[derive(Debug)]
pub struct Node {
    config: Config,
    router: Box<dyn PacketRouter>,
    trajectory: Trajectory,
    rng: Rng,
    endpoints: Endpoints,
    interfaces: BTreeMap<InterfaceId, Interface>,
    neighbours: Neighbours,
    held: Holdings,
    remembered: Remembered,
    in_air: BTreeMap<u64, InAir>,
    next_token: u64,
    next_identification: u32,
    beacon_at: Instant,
    /// Fixes of others for the beacons of this interval.
    told: Vec<ToldFix>,
    counters: Counters,
}

impl Node {
    /// Creates a node that is at the places of `trajectory`.
    pub fn new(
        config: Config,
        router: Box<dyn PacketRouter>,
        trajectory: Trajectory,
        now: Instant,
        mut rng: Rng,
    ) -> Node {
        let interfaces = config.interfaces.iter().map(|interface| (*interface, Interface::default()));
        let interval = u64::try_from(config.beacon_interval.as_nanos()).unwrap_or(u64::MAX).max(1);
        Node {
            router,
            trajectory,
            endpoints: Endpoints::new(&config.endpoints, config.payload_bytes_max()),
            interfaces: interfaces.collect(),
            neighbours: Neighbours::new(config.neighbours_max, config.neighbour_timeout, config.failures_max),
            held: Holdings::default(),
            remembered: Remembered::new(config.remembered_max),
            in_air: BTreeMap::new(),
            next_token: 0,
            next_identification: rng.next_u32(),
            beacon_at: now + core::time::Duration::from_nanos(rng.below(interval)),
            told: Vec::new(),
            counters: Counters::default(),
            rng,
            config,
        }
    }

    /// Replaces the trajectory, as a receiver of navigation satellites does: a leg from its fix.
    pub fn set_fix(&mut self, fix: Fix) {
        self.trajectory = Trajectory::new(vec![fix]);
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the number of packets held.
    pub fn held_packets(&self) -> usize {
        self.held.len()
    }

    /// Returns the number of copies that all packets held may make.
    #[cfg(test)]
    pub(super) fn held_copies(&self) -> u32 {
        self.held.iter().map(|held| u32::from(held.packet.copies)).sum()
    }

    /// Returns the addresses of the neighbours.
    pub fn neighbours(&self) -> Vec<NodeAddress> {
        self.neighbours.states(false, false).iter().map(|neighbour| neighbour.node).collect()
    }

    fn own_fix(&self, now: Instant) -> Option<WireFix> {
        let motion: Motion = self.trajectory.motion(now)?;
        Some(WireFix::new(now, Fix { at: now, motion }))
    }

    /// Share of the queue that is full.
    fn fill(&self) -> f64 {
        (self.held.bytes() as f64 / self.config.queue_bytes_max as f64).min(1.0)
    }

    // -----------------------------------------------------------------------------------------------------------
    // Routing

    /// Makes the decisions that are due.
    fn settle(&mut self, now: Instant) {
        if !self.held.has_undecided() {
            return;
        }
        self.router.set_own(now, self.trajectory.motion(now));
        let (congestion, corruption) = (self.config.indicates_congestion, self.config.indicates_corruption);
        let states = self.neighbours.states(congestion, corruption);
        while let Some(key) = self.held.pop_undecided() {
            let Some(held) = self.held.get(key) else { continue };
            let packet = RoutedPacket {
                source: held.packet.source,
                destination: held.packet.destination,
                from: held.from,
                copies: held.packet.copies,
                given: &held.given,
            };
            let copies = held.packet.copies;
            let (to, copies_with, stays) = match self.router.decide(now, &packet, &states) {
                Decision::Forward(to) => (to, copies, false),
                Decision::Copy { to, copies } => (to, copies, true),
                Decision::Carry => {
                    self.held.put(key, Place::Carried);
                    continue;
                }
            };
            assert!(self.neighbours.get(to).is_some(), "the router chose {to}, which is no neighbour");
            self.held.put(key, Place::Queued(to));
            if let Some(held) = self.held.get_mut(key) {
                (held.copies_with, held.stays) = (copies_with, stays);
            }
        }
    }

    fn lose(&mut self, node: NodeAddress) {
        self.counters.neighbours_lost += 1;
        self.held.reconsider_to(node);
    }

    /// A packet has arrived at a neighbour, or is believed to. One that the neighbour knew keeps its copies here.
    fn passed_on(&mut self, key: PacketKey, to: NodeAddress, answer: Answer) {
        let Some(held) = self.held.get_mut(key) else { return };
        if !held.stays {
            drop(self.held.remove(key));
            return;
        }
        if answer == Answer::Accepted {
            // The last copy stays, however many routers give away.
            held.packet.copies = held.packet.copies.saturating_sub(held.copies_with).max(1);
        }
        self.held.give(key, to);
        self.held.reconsider(key);
    }

    /// A packet ends here.
    fn discard(&mut self, held: Held) {
        if let Some(report) = held.report {
            self.endpoints.no_longer_waits(report);
            self.endpoints.transmitted(report);
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // From the users

    fn originate(&mut self, now: Instant, link: LinkId, to: PeerId, bytes: Bytes, token: Option<u64>) {
        let Some(datagram) = self.endpoints.send(link, to, token) else { return };
        self.counters.originated += 1;
        self.next_identification = self.next_identification.wrapping_add(1);
        let packet = Packet {
            precedence: datagram.config.precedence.min(15),
            tolerant: datagram.tolerant,
            protocol: datagram.config.protocol,
            hops_left: self.config.hops_max,
            source: self.config.address,
            sender: self.config.address,
            destination: datagram.destination,
            identification: self.next_identification,
            copies: self.router.copies(),
            payload: bytes,
            ..Packet::default()
        };
        if packet.destination == self.config.address {
            self.endpoints.deliver(packet.source, packet.protocol, &packet.payload, false);
            self.endpoints.no_longer_waits(datagram.report);
            self.endpoints.transmitted(datagram.report);
            return;
        }
        self.remembered.accept(&packet);
        self.make_space(&packet);
        let expires_at = now + datagram.config.lifetime;
        self.hold(packet, None, expires_at, Some(datagram.report));
    }

    fn hold(
        &mut self,
        packet: Packet,
        from: Option<(NodeAddress, Instant)>,
        expires_at: Instant,
        report: Option<Report>,
    ) {
        let given = from.iter().map(|(node, _)| *node).collect::<BTreeSet<_>>();
        self.held.insert(Held {
            packet,
            from,
            expires_at,
            given,
            copies_with: 0,
            stays: false,
            has_left: false,
            report,
            place: Place::Carried,
            unanswered_at: None,
            earlier: VecDeque::new(),
            unanswered: 0,
        });
    }

    // -----------------------------------------------------------------------------------------------------------
    // From the interfaces

    fn hear(&mut self, now: Instant, interface: InterfaceId, frame: &Bytes) {
        let Ok(packet) = Packet::decode(&mut frame.clone()) else {
            self.counters.header_errors += 1;
            return;
        };
        let own = self.config.address;
        if packet.sender == own || packet.sender == NodeAddress::BROADCAST {
            self.counters.refused += 1;
            return;
        }
        let is_neighbour = self.meet(now, interface, &packet, frame.len());
        if packet.damaged {
            self.counters.payload_errors += 1;
        }
        match packet.kind {
            PacketType::Data if packet.receiver == own => self.hear_data(now, interface, packet),
            PacketType::Beacon if is_neighbour && !packet.damaged => self.hear_beacon(now, interface, packet),
            PacketType::Acknowledgement if packet.receiver == own && !packet.damaged => {
                self.hear_acknowledgement(packet);
            }
            _ => {}
        }
    }

    /// Counts a frame of a neighbour and learns its fixes; false and nothing is learned if there are too many neighbours.
    fn meet(&mut self, now: Instant, interface: InterfaceId, packet: &Packet, bytes: usize) -> bool {
        let sender = packet.sender;
        let (sequence, damaged) = (packet.sequence, packet.damaged);
        match self.neighbours.hear(now, HeardFrame { interface, sender, sequence, bytes, damaged }) {
            Acquaintance::Known => {}
            Acquaintance::New => {
                self.counters.neighbours_met += 1;
                self.held.reconsider_all();
            }
            Acquaintance::Refused => {
                self.counters.refused += 1;
                return false;
            }
        }
        let mut learn = |node: NodeAddress, fix: Option<WireFix>, hops: u8| {
            if let Some(fix) = fix.filter(|_| node != self.config.address) {
                self.router.learn(now, ToldFix { node, fix: fix.fix(now), hops });
            }
        };
        learn(sender, packet.sender_fix, 0);
        learn(packet.destination, packet.destination_fix, 1);
        true
    }

    fn hear_beacon(&mut self, now: Instant, interface: InterfaceId, packet: Packet) {
        let Ok(beacon) = Beacon::decode(&mut packet.payload.clone()) else {
            self.counters.header_errors += 1;
            return;
        };
        let own = self.config.address;
        let share = |of: u8| f64::from(of) / 255.0;
        let about_us = beacon.links.iter().find(|link| link.node == own).map(|link| share(link.damaged));
        self.neighbours.told(packet.sender, interface, share(beacon.fill), about_us);
        for told in beacon.fixes.iter().filter(|told| told.node != own && told.node != packet.sender) {
            let (node, fix, hops) = (told.node, told.fix.fix(now), told.hops.saturating_add(1));
            self.router.learn(now, ToldFix { node, fix, hops });
        }
    }

    fn hear_acknowledgement(&mut self, packet: Packet) {
        let Ok(answer) = Acknowledgement::decode(&mut packet.payload.clone()) else {
            self.counters.header_errors += 1;
            return;
        };
        let accepted = answer.accepted.into_iter().map(|sequence| (sequence, Answer::Accepted));
        let known = answer.known.into_iter().map(|sequence| (sequence, Answer::Known));
        for (sequence, answer) in accepted.chain(known) {
            if let Some(key) = self.held.sent_with(packet.sender, sequence) {
                self.passed_on(key, packet.sender, answer);
            }
        }
    }

    fn hear_data(&mut self, now: Instant, interface: InterfaceId, mut packet: Packet) {
        if packet.damaged {
            if !packet.tolerant {
                // Without an acknowledgement it is sent again.
                return;
            }
            packet.corruption = true;
        }
        let (sender, sequence) = (packet.sender, packet.sequence);
        if let Some(answer) = self.accept(now, packet) {
            self.answer(interface, sender, sequence, answer);
        }
    }

    /// Accepts a packet, or discards it for good. Returns `None` if it must be sent again.
    fn accept(&mut self, now: Instant, mut packet: Packet) -> Option<Answer> {
        let own = self.config.address;
        if let Some(answer) =
            self.remembered.knows(&packet, self.router.spreads() || packet.destination == own)
        {
            self.counters.duplicates += 1;
            return Some(answer);
        }
        if packet.destination == own {
            return self.deliver(packet).then_some(Answer::Accepted);
        }
        let length = (HEADER_BYTES + packet.payload.len()) as u64;
        let lifetime = TENTH * u32::from(packet.lifetime_tenths);
        if packet.hops_left == 0 || lifetime.is_zero() || length > self.config.frame_bytes_max {
            self.counters.expired += 1;
            return Some(Answer::Accepted);
        }
        packet.copies = packet.copies.max(1);
        self.replace_damaged(&mut packet);
        if !self.make_space(&packet) {
            return None;
        }
        self.remembered.accept(&packet);
        self.counters.relayed += 1;
        packet.hops_left -= 1;
        let from = Some((packet.sender, now));
        self.hold(packet, from, now + lifetime, None);
        Some(Answer::Accepted)
    }

    /// A packet takes the place of a damaged copy that is held, and its copies.
    fn replace_damaged(&mut self, packet: &mut Packet) {
        if !self.remembered.has_damaged(packet) {
            return;
        }
        let Some(damaged) = self.held.named(packet).and_then(|key| self.held.remove(key)) else { return };
        if self.router.spreads() {
            packet.copies = packet.copies.saturating_add(damaged.packet.copies);
        }
    }

    /// Drops packets that give way to another one until it fits into the queue; none and false if it does not. A router
    /// that spreads packets has others elsewhere, so that those of the same precedence that another node has are dropped,
    /// too.
    fn make_space(&mut self, packet: &Packet) -> bool {
        let bytes = (HEADER_BYTES + packet.payload.len()) as u64;
        let missing = (self.held.bytes() + bytes).saturating_sub(self.config.queue_bytes_max);
        let dropped = self.held.giving_way(missing, packet.precedence, self.router.spreads());
        let Some(dropped) = dropped else {
            self.counters.queue_full += 1;
            return false;
        };
        self.counters.queue_full += dropped.len() as u64;
        for key in dropped {
            if let Some(held) = self.held.remove(key) {
                self.discard(held);
            }
        }
        true
    }

    fn deliver(&mut self, packet: Packet) -> bool {
        let damaged = packet.corruption;
        match self.endpoints.deliver(packet.source, packet.protocol, &packet.payload, damaged) {
            Delivery::Done => {
                self.counters.delivered += 1;
                self.counters.delivered_damaged += u64::from(damaged);
                self.counters.delivered_congested += u64::from(packet.congestion);
            }
            Delivery::Unwanted => self.counters.no_endpoint += 1,
            Delivery::Later => {
                self.counters.user_full += 1;
                return false;
            }
        }
        self.remembered.accept(&packet);
        true
    }

    fn answer(&mut self, interface: InterfaceId, to: NodeAddress, sequence: u16, answer: Answer) {
        if !self.config.acknowledge {
            return;
        }
        let Some(interface) = self.interfaces.get_mut(&interface) else { return };
        if interface.answers.len() >= ANSWERED_MAX && !interface.answers.contains_key(&to) {
            return;
        }
        let answers = interface.answers.entry(to).or_default();
        let is_full = answers.count() >= ACKNOWLEDGED_MAX;
        let sequences = match answer {
            Answer::Accepted => &mut answers.accepted,
            Answer::Known => &mut answers.known,
        };
        if !is_full && !sequences.contains(&sequence) {
            sequences.push(sequence);
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // To the interfaces

    /// Makes the next acknowledgement or beacon of an interface.
    fn next_control(&mut self, now: Instant, at: InterfaceId) -> Option<FramesRequest> {
        let interface = self.interfaces.get_mut(&at)?;
        if let Some((to, answer)) = interface.answers.pop_first() {
            self.counters.acknowledgements_sent += 1;
            let payload = encoded(1 + 2 * answer.count(), |out| answer.encode(out));
            let packet = self.control(PacketType::Acknowledgement, to, payload);
            let (bytes, _) = self.frame(at, packet);
            let shares = Shares::acknowledgement(bytes.len());
            return Some(FramesRequest::Frame { bytes, token: None, last: false, shares });
        }
        if !core::mem::take(&mut interface.beacon_due) {
            return None;
        }
        self.counters.beacons_sent += 1;
        let mut packet = self.control(PacketType::Beacon, NodeAddress::BROADCAST, self.beacon(now, at));
        packet.sender_fix = self.own_fix(now);
        let (bytes, _) = self.frame(at, packet);
        let shares = Shares::control(bytes.len());
        Some(FramesRequest::Frame { bytes, token: None, last: false, shares })
    }

    /// Makes the next frame: acknowledgements and beacons, then the most urgent packet that can leave.
    fn next_frame(&mut self, now: Instant) -> Option<(InterfaceId, FramesRequest)> {
        let speaks = |interface: &Interface| {
            interface.room > 0 && (interface.beacon_due || !interface.answers.is_empty())
        };
        let found = self.interfaces.iter().find(|(_, interface)| speaks(interface)).map(|(at, _)| *at);
        if let Some(at) = found {
            return self.next_control(now, at).map(|frame| (at, frame));
        }
        let can_leave = |(first, node): ((core::cmp::Reverse<u8>, PacketKey), NodeAddress)| {
            let at = self.neighbours.get(node)?.interface;
            let is_open = self.interfaces.get(&at).is_some_and(|interface| interface.room > 0)
                && self.held.sent_to(node) < self.config.window_packets;
            is_open.then_some((first, node, at))
        };
        let ((_, key), to, at) = self.held.firsts().filter_map(can_leave).min()?;
        self.next_data(now, at, key, to).map(|frame| (at, frame))
    }

    fn control(&self, kind: PacketType, receiver: NodeAddress, payload: Bytes) -> Packet {
        let source = self.config.address;
        Packet { kind, precedence: 15, source, destination: receiver, receiver, payload, ..Packet::default() }
    }

    /// Numbers and encodes a packet.
    fn frame(&mut self, at: InterfaceId, mut packet: Packet) -> (Bytes, u16) {
        let interface = self.interfaces.get_mut(&at).expect("frames are made for interfaces that exist");
        packet.sender = self.config.address;
        packet.sequence = interface.sequence;
        interface.sequence = interface.sequence.wrapping_add(1);
        let length = packet.header_bytes() + packet.payload.len();
        (encoded(length, |out| packet.encode(out)), packet.sequence)
    }

    fn beacon(&self, now: Instant, at: InterfaceId) -> Bytes {
        let mut left = self.config.frame_bytes_max as usize - HEADER_BYTES - FIX_BYTES - 3;
        let share = |of: f64| (of * 255.0).round() as u8;
        let all = self.neighbours.links_on(at).filter(|_| self.config.indicates_corruption);
        let links = all.map(|(node, damaged)| LinkReport { node, damaged: share(damaged) });
        let links: Vec<_> = links.take(TOLD_MAX.min(left / LINK_REPORT_BYTES)).collect();
        left -= LINK_REPORT_BYTES * links.len();
        let fix =
            |told: &ToldFix| NodeFix { node: told.node, hops: told.hops, fix: WireFix::new(now, told.fix) };
        let fixes = self.told.iter().take(TOLD_MAX.min(left / (5 + FIX_BYTES))).map(fix).collect();
        let fill = if self.config.indicates_congestion { share(self.fill()) } else { 0 };
        encoded(64, |out| Beacon { fill, links, fixes }.encode(out))
    }

    fn next_data(
        &mut self,
        now: Instant,
        at: InterfaceId,
        key: PacketKey,
        to: NodeAddress,
    ) -> Option<FramesRequest> {
        let is_congested = self.fill() * 100.0 >= self.config.congestion_percent as f64;
        let held = self.held.get(key)?;
        let mut packet = held.packet.clone();
        packet.receiver = to;
        packet.congestion |= self.config.indicates_congestion && is_congested;
        packet.lifetime_tenths = tenths(held.expires_at.saturating_since(now));
        packet.copies = held.copies_with;
        (packet.sender_fix, packet.destination_fix) = (None, None);
        let spare =
            (self.config.frame_bytes_max as usize).saturating_sub(HEADER_BYTES + packet.payload.len());
        if self.config.fixes_in_data {
            packet.sender_fix = self.own_fix(now).filter(|_| spare >= FIX_BYTES);
            let known = self.router.fix(packet.destination).filter(|_| packet.destination != to);
            packet.destination_fix =
                known.filter(|_| spare >= 2 * FIX_BYTES).map(|fix| WireFix::new(now, fix));
        }
        let payload_bytes = packet.payload.len();
        let (bytes, sequence) = self.frame(at, packet);
        self.counters.data_sent += 1;
        let held = self.held.get_mut(key)?;
        let repeated = core::mem::replace(&mut held.has_left, true);
        let shares = if repeated { Shares::repeated(bytes.len()) } else { Shares::payload(payload_bytes) };
        self.counters.data_repeated += u64::from(repeated);
        let report = held.report.take();
        report.into_iter().for_each(|report| self.endpoints.no_longer_waits(report));
        let token = self.next_token;
        self.next_token += 1;
        self.in_air.insert(token, InAir { key, sequence, report });
        if self.in_air.len() > IN_AIR_MAX {
            // A provider that reports no departures.
            self.in_air.pop_first();
        }
        if self.config.acknowledge {
            self.held.put(key, Place::Sent(to, sequence));
        } else {
            self.passed_on(key, to, Answer::Accepted);
        }
        Some(FramesRequest::Frame { bytes, token: Some(token), last: false, shares })
    }

    fn left(&mut self, now: Instant, token: u64) {
        let Some(InAir { key, sequence, report }) = self.in_air.remove(&token) else { return };
        report.into_iter().for_each(|report| self.endpoints.transmitted(report));
        let sent = self.held.get(key).map(|held| held.place);
        if matches!(sent, Some(Place::Sent(_, number)) if number == sequence) {
            self.held.await_answer(key, now, self.config.acknowledgement_timeout);
        }
    }
}

impl Engine for Node {
    type Above = Many<LinkId, Datagrams>;
    type Below = Many<InterfaceId, Frames>;

    fn handle_request(&mut self, now: Instant, (link, request): (LinkId, DatagramsRequest)) {
        match request {
            DatagramsRequest::Join { damaged } => self.endpoints.join(link, damaged),
            DatagramsRequest::Leave => self.endpoints.leave(link),
            DatagramsRequest::Datagram { to, bytes, token, .. } => {
                self.originate(now, link, to, bytes, token)
            }
            DatagramsRequest::Release(bytes) => self.endpoints.release(link, bytes),
        }
        self.settle(now);
    }

    fn handle_indication(&mut self, now: Instant, (at, said): (InterfaceId, FramesIndication)) {
        match said {
            FramesIndication::Room(room) => {
                self.interfaces.entry(at).and_modify(|interface| interface.room = room);
            }
            FramesIndication::Frame(frame) => self.hear(now, at, &frame),
            FramesIndication::Transmitted(token) => self.left(now, token),
            FramesIndication::Busy(_) | FramesIndication::Carrier(true) => {}
            FramesIndication::Carrier(false) => {
                self.neighbours.remove_on(at).into_iter().for_each(|node| self.lose(node));
            }
        }
        self.settle(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(node) = self.neighbours.pop_silent(now) {
            self.lose(node);
        }
        while let Some((_, to)) = self.held.pop_unanswered(now) {
            if self.neighbours.fail(to) {
                self.lose(to);
            }
        }
        while let Some(held) = self.held.pop_expired(now) {
            self.counters.expired += 1;
            self.discard(held);
        }
        if self.beacon_at <= now {
            let interval = self.config.beacon_interval;
            let eighth = u64::try_from(interval.as_nanos() / 8).unwrap_or(u64::MAX).max(1);
            self.beacon_at = now + interval + core::time::Duration::from_nanos(self.rng.below(eighth));
            self.told = self.router.tell(now, self.config.told_fixes_max);
            self.interfaces.values_mut().for_each(|interface| interface.beacon_due = true);
            self.held.reconsider_all();
        }
        self.settle(now);
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<(LinkId, DatagramsIndication)> {
        let held = if self.router.spreads() { self.held.only_bytes() } else { self.held.bytes() };
        let free = self.config.queue_bytes_max.saturating_sub(held);
        self.endpoints.poll(free / self.config.frame_bytes_max)
    }

    fn poll_request(&mut self, now: Instant) -> Option<(InterfaceId, FramesRequest)> {
        let unjoined = self.interfaces.iter_mut().find(|(_, interface)| !interface.joined);
        if let Some((at, interface)) = unjoined {
            interface.joined = true;
            return Some((*at, FramesRequest::Join));
        }
        let (at, frame) = self.next_frame(now)?;
        self.interfaces.entry(at).and_modify(|interface| interface.room -= 1);
        self.settle(now);
        Some((at, frame))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let deadline = earlier(self.neighbours.next_deadline(), self.held.next_deadline());
        earlier(deadline, (!self.interfaces.is_empty()).then_some(self.beacon_at))
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("aeronp");
        part.count(&self.counters);
        part.tell("neighbours", self.neighbours.len());
        part.tell("held_packets", self.held.len());
        part.tell("held_bytes", self.held.bytes());
    }
}
