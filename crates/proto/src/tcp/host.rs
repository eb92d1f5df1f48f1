//! Host: IPv4 and TCP of one node over all its interfaces.

use super::config::{HostConfig, InterfaceConfig};
use super::connection::{Connection, Counters, State, Tuple};
use super::output::control;
use super::wire::{Flags, Packet, Segment};
use crate::codec;
use crate::engine::{Engine, Indication, Request};
use crate::kit::Deadlines;
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    CloseReason, Frames, FramesIndication, FramesRequest, InterfaceId, LinkId, Many, Shares, Stream,
    StreamIndication, StreamRequest,
};
use crate::time::Instant;
use bytes::Bytes;
use core::net::Ipv4Addr;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Time to live of sent packets (RFC 1122 3.2.1.7 requires a sufficient value; 64 is usual).
const TIME_TO_LIVE: u8 = 64;
/// First port for outgoing connections (RFC 6335 6).
const FIRST_EPHEMERAL_PORT: u16 = 49_152;
/// Maximum number of resets that wait for room on an interface.
const RESETS_WAITING_MAX: usize = 64;
/// Maximum number of addresses with a remembered slow-start threshold.
const REMEMBERED_MAX: usize = 256;

/// Counters of what a host dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Drops {
    /// Frames without a valid IPv4 packet with a valid TCP segment.
    pub damaged: u64,
    /// Packets to other addresses.
    pub not_ours: u64,
    /// Incoming connections beyond the limit.
    pub over_limit: u64,
    /// Resets for segments without a connection, dropped because too many were waiting.
    pub resets: u64,
    /// Requests for links that are closed.
    pub late_requests: u64,
}

/// Interface, with the segments and connections that wait for room on it.
#[derive(Debug)]
struct Interface {
    config: InterfaceConfig,
    joined: bool,
    room: u32,
    ready: VecDeque<u32>,
    resets: VecDeque<(Ipv4Addr, Ipv4Addr, Segment)>,
}

/// Connection and its state in the lists of the host.
#[derive(Debug)]
struct ConnectionSlot {
    connection: Connection,
    link: LinkId,
    interface: usize,
    deadline: Option<Instant>,
    may_indicate: bool,
    may_send: bool,
}

/// IPv4 and TCP of one node. The [module](super) lists what is implemented.
#[derive(Debug)]
pub struct Host {
    config: HostConfig,
    rng: Rng,
    interfaces: Vec<Interface>,
    places: BTreeMap<u32, ConnectionSlot>,
    by_tuple: BTreeMap<Tuple, u32>,
    by_link: BTreeMap<LinkId, u32>,
    deadlines: Deadlines<u32>,
    indicating: VecDeque<u32>,
    refused: VecDeque<(LinkId, CloseReason)>,
    next_place: u32,
    next_incoming: u32,
    pub(super) next_port: u16,
    next_identification: u16,
    remembered: BTreeMap<Ipv4Addr, u64>,
    drops: Drops,
    /// Sums of the counters of ended connections.
    past: Counters,
}

impl Host {
    /// Creates a host that joins its interfaces when it is first polled.
    pub fn new(config: HostConfig, mut rng: Rng) -> Self {
        let interfaces = config.interfaces.iter().map(|config| Interface {
            config: config.clone(),
            joined: false,
            room: 0,
            ready: VecDeque::new(),
            resets: VecDeque::new(),
        });
        Host {
            interfaces: interfaces.collect(),
            places: BTreeMap::new(),
            by_tuple: BTreeMap::new(),
            by_link: BTreeMap::new(),
            deadlines: Deadlines::new(),
            indicating: VecDeque::new(),
            refused: VecDeque::new(),
            next_place: 0,
            next_incoming: LinkId::FIRST_INCOMING,
            next_port: FIRST_EPHEMERAL_PORT + rng.below(8192) as u16,
            next_identification: rng.next_u32() as u16,
            remembered: BTreeMap::new(),
            drops: Drops::default(),
            past: Counters::default(),
            config,
            rng,
        }
    }

    /// Returns all connections, including those in TIME-WAIT.
    #[cfg(test)]
    pub(super) fn connections(&self) -> impl Iterator<Item = (LinkId, &Connection)> {
        self.places.values().map(|place| (place.link, &place.connection))
    }

    /// Returns the sums of the counters of all connections, including ended ones.
    pub fn counters(&self) -> Counters {
        self.places.values().fold(self.past, |sum, place| sum.plus(&place.connection.counters))
    }

    /// Returns the counters of dropped frames and requests.
    pub fn drops(&self) -> Drops {
        self.drops
    }

    // -- Routes ---------------------------------------------------------------------------------------------------

    /// Returns the index of the interface to an address: by the longest prefix of neighbours and routes.
    fn route(&self, address: Ipv4Addr) -> Option<usize> {
        let neighbours =
            self.interfaces.iter().enumerate().map(|(index, interface)| {
                (interface.config.prefix_bits, interface.config.address, Some(index))
            });
        let routes = self.config.routes.iter().map(|route| {
            let index = self.interfaces.iter().position(|known| known.config.interface == route.interface);
            (route.prefix_bits, route.prefix, index)
        });
        let matching =
            neighbours.chain(routes).filter(|&(bits, prefix, _)| shares_prefix(address, prefix, bits));
        // The first of the longest prefixes: neighbours before routes, each in the order of the configuration.
        let longest = matching.reduce(|best, next| if next.0 > best.0 { next } else { best });
        longest.and_then(|(_, _, index)| index)
    }

    // -- Connections ----------------------------------------------------------------------------------------------

    fn connect(&mut self, now: Instant, link: LinkId) {
        let Some(peer) = self.config.peers.iter().find(|peer| peer.link == link) else {
            return self.refuse(link, CloseReason::Unreachable);
        };
        let remote = (peer.address, peer.port);
        let Some(interface) = self.route(remote.0) else {
            return self.refuse(link, CloseReason::Unreachable);
        };
        let address = self.interfaces[interface].config.address;
        let tuple = self.free_port(address, remote).map(|port| Tuple { local: (address, port), remote });
        let Some(tuple) = tuple.filter(|_| self.make_place()) else {
            return self.refuse(link, CloseReason::Limit);
        };
        let mtu = self.interfaces[interface].config.mtu_bytes;
        let connection = Connection::call(self.config.profile.clone(), tuple, mtu, now, &mut self.rng);
        let place = self.insert(connection, link, interface);
        self.by_link.insert(link, place);
        self.wake(place);
    }

    fn refuse(&mut self, link: LinkId, reason: CloseReason) {
        self.refused.push_back((link, reason));
    }

    /// Returns the next port for outgoing connections that no connection to this peer uses.
    fn free_port(&mut self, address: Ipv4Addr, remote: (Ipv4Addr, u16)) -> Option<u16> {
        for _ in FIRST_EPHEMERAL_PORT..=u16::MAX {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_EPHEMERAL_PORT);
            let taken = self.by_tuple.contains_key(&Tuple { local: (address, port), remote });
            if !taken && !self.config.listen.contains(&port) {
                return Some(port);
            }
        }
        None
    }

    /// Returns true if there is room for one more connection; ends one in TIME-WAIT if necessary.
    fn make_place(&mut self) -> bool {
        if self.places.len() < self.config.connections_max {
            return true;
        }
        let lingering = self.places.iter().find(|(_, place)| place.connection.state == State::TimeWait);
        let Some((&id, _)) = lingering else {
            return false;
        };
        self.places.get_mut(&id).expect("it was just found").connection.state = State::Closed;
        self.wake(id);
        self.settle(id);
        self.places.len() < self.config.connections_max
    }

    fn insert(&mut self, mut connection: Connection, link: LinkId, interface: usize) -> u32 {
        let id = self.next_place;
        self.next_place = self.next_place.wrapping_add(1);
        if let (Some(threshold), true) =
            (self.remembered.get(&connection.tuple.remote.0), self.config.profile.remember_threshold)
        {
            connection.remember_threshold(*threshold);
        }
        self.by_tuple.insert(connection.tuple, id);
        let place = ConnectionSlot {
            connection,
            link,
            interface,
            deadline: None,
            may_indicate: false,
            may_send: false,
        };
        self.places.insert(id, place);
        id
    }

    // -- Packets --------------------------------------------------------------------------------------------------

    fn handle_frame(&mut self, now: Instant, interface: usize, mut bytes: Bytes) {
        let Ok(packet) = Packet::decode(&mut bytes) else {
            self.drops.damaged += 1;
            return;
        };
        if !self.interfaces.iter().any(|known| known.config.address == packet.destination) {
            self.drops.not_ours += 1;
            return;
        }
        let segment = &packet.segment;
        let tuple = Tuple {
            local: (packet.destination, segment.destination_port),
            remote: (packet.source, segment.source_port),
        };
        match self.by_tuple.get(&tuple).copied().filter(|id| !self.is_called_anew(*id, segment)) {
            Some(id) => {
                let place = self.places.get_mut(&id).expect("tuples belong to connections");
                let belongs = place.connection.handle_segment(now, segment);
                if !belongs {
                    self.reset_stranger(interface, &packet);
                }
                self.wake(id);
            }
            None => self.handle_call(now, interface, tuple, &packet),
        }
    }

    /// Returns true for a SYN beyond everything that a connection in TIME-WAIT has received: it opens a new connection
    /// in its place (RFC 9293 3.6.1).
    fn is_called_anew(&self, id: u32, segment: &Segment) -> bool {
        let connection = &self.places[&id].connection;
        connection.state == State::TimeWait
            && segment.flags.contains(Flags::SYN)
            && !segment.flags.contains(Flags::ACK)
            && connection.is_beyond(segment.sequence)
    }

    /// Processes a segment without a connection: an incoming connection, or a segment to answer with a reset.
    fn handle_call(&mut self, now: Instant, interface: usize, tuple: Tuple, packet: &Packet) {
        let flags = packet.segment.flags;
        if flags.contains(Flags::RST) {
            return;
        }
        let calls = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK);
        if !calls || !self.config.listen.contains(&tuple.local.1) {
            return self.reset_stranger(interface, packet);
        }
        if let Some(&lingering) = self.by_tuple.get(&tuple) {
            self.places.get_mut(&lingering).expect("tuples belong to connections").connection.state =
                State::Closed;
            self.wake(lingering);
            self.settle(lingering);
        }
        // Answers are sent along the configured route, or on the interface on which the SYN arrived.
        let way = self.route(tuple.remote.0).unwrap_or(interface);
        if !self.make_place() {
            self.drops.over_limit += 1;
            return;
        }
        let mtu = self.interfaces[way].config.mtu_bytes;
        let mut connection = Connection::answer(self.config.profile.clone(), tuple, mtu, now, &mut self.rng);
        connection.take_syn(now, &packet.segment);
        let link = LinkId(self.next_incoming);
        self.next_incoming = self.next_incoming.checked_add(1).unwrap_or(LinkId::FIRST_INCOMING);
        let id = self.insert(connection, link, way);
        self.by_link.insert(link, id);
        self.wake(id);
    }

    /// Answers a segment without a connection with a reset (RFC 9293 3.10.7.1).
    fn reset_stranger(&mut self, interface: usize, packet: &Packet) {
        let segment = &packet.segment;
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let acknowledges = segment.flags.contains(Flags::ACK);
        let reset = Segment {
            source_port: segment.destination_port,
            destination_port: segment.source_port,
            sequence: if acknowledges { segment.acknowledgement } else { 0 },
            acknowledgement: if acknowledges { 0 } else { segment.sequence.wrapping_add(segment.length()) },
            flags: if acknowledges { Flags::RST } else { Flags::RST.with(Flags::ACK) },
            ..Segment::default()
        };
        let way = self.route(packet.source).unwrap_or(interface);
        let waiting = &mut self.interfaces[way].resets;
        if waiting.len() >= RESETS_WAITING_MAX {
            self.drops.resets += 1;
        } else {
            waiting.push_back((packet.destination, packet.source, reset));
        }
    }

    fn frame(&mut self, source: Ipv4Addr, destination: Ipv4Addr, segment: Segment) -> Bytes {
        let packet = Packet {
            identification: self.next_identification,
            time_to_live: TIME_TO_LIVE,
            source,
            destination,
            segment,
        };
        self.next_identification = self.next_identification.wrapping_add(1);
        codec::encoded(0, |out| packet.encode(out))
    }

    // -- Lists ------------------------------------------------------------------------------------------------------

    /// Adds a connection to the ready lists.
    fn wake(&mut self, id: u32) {
        let place = self.places.get_mut(&id).expect("only living connections are woken");
        if !core::mem::replace(&mut place.may_indicate, true) {
            self.indicating.push_back(id);
        }
        if !place.may_send && place.connection.wants_to_send() {
            place.may_send = true;
            self.interfaces[place.interface].ready.push_back(id);
        }
    }

    /// Updates the deadline of a connection whose indications have been polled, or removes it if it has ended.
    fn settle(&mut self, id: u32) {
        let place = self.places.get_mut(&id).expect("only living connections settle");
        let deadline = place.connection.poll_timeout();
        self.deadlines.set(id, &mut place.deadline, deadline);
        if place.connection.is_finished() {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: u32) {
        let Some(place) = self.places.remove(&id) else {
            return;
        };
        self.past = self.past.plus(&place.connection.counters);
        self.deadlines.remove(id, place.deadline);
        if place.may_indicate {
            self.indicating.retain(|other| *other != id);
        }
        if place.may_send {
            self.interfaces[place.interface].ready.retain(|other| *other != id);
        }
        if self.by_tuple.get(&place.connection.tuple) == Some(&id) {
            self.by_tuple.remove(&place.connection.tuple);
        }
        if self.by_link.get(&place.link) == Some(&id) {
            self.by_link.remove(&place.link);
        }
    }

    /// The user has received the last indication of a link and may open the link again. Of a connection that broke, no
    /// threshold is remembered (as in Linux): an outage gives no information about the capacity of the path.
    fn forget_link(&mut self, id: u32, reason: CloseReason) {
        let place = &self.places[&id];
        let address = place.connection.tuple.remote.0;
        let earlier = self.remembered.get(&address).copied();
        let full = self.remembered.len() >= REMEMBERED_MAX && earlier.is_none();
        let of_use = reason == CloseReason::Finished && self.config.profile.remember_threshold;
        if let Some(threshold) = place.connection.threshold_to_remember(earlier)
            && of_use
            && !full
        {
            self.remembered.insert(address, threshold);
        }
        let link = place.link;
        self.by_link.remove(&link);
    }

    /// Returns the next request for one interface: a frame if the interface has room and there is something to send.
    fn poll_interface(&mut self, now: Instant, index: usize) -> Option<FramesRequest> {
        let interface = &mut self.interfaces[index];
        if !core::mem::replace(&mut interface.joined, true) {
            return Some(FramesRequest::Join);
        }
        if interface.room == 0 {
            return None;
        }
        let (source, destination, segment, shares) = match interface.resets.pop_front() {
            Some((source, destination, segment)) => {
                let (segment, shares) = control(segment);
                (source, destination, segment, shares)
            }
            None => self.poll_ready(now, index)?,
        };
        self.interfaces[index].room -= 1;
        let bytes = self.frame(source, destination, segment);
        let last = self.is_quiet(index);
        Some(FramesRequest::Frame { bytes, token: None, last, shares })
    }

    /// Returns the next segment of the connections that are ready on an interface, in round-robin order.
    fn poll_ready(&mut self, now: Instant, index: usize) -> Option<(Ipv4Addr, Ipv4Addr, Segment, Shares)> {
        while let Some(id) = self.interfaces[index].ready.pop_front() {
            let place = self.places.get_mut(&id).expect("ready connections live");
            let made = place.connection.poll_segment(now);
            let tuple = place.connection.tuple;
            place.may_send = made.is_some() && place.connection.wants_to_send();
            if place.may_send {
                self.interfaces[index].ready.push_back(id);
            }
            if !place.may_indicate {
                self.settle(id);
            }
            if let Some((segment, shares)) = made {
                return Some((tuple.local.0, tuple.remote.0, segment, shares));
            }
        }
        None
    }

    /// Returns true if nothing more is ready to be sent on an interface.
    fn is_quiet(&self, index: usize) -> bool {
        let interface = &self.interfaces[index];
        interface.resets.is_empty()
            && !interface.ready.iter().any(|id| self.places[id].connection.wants_to_send())
    }
}

fn shares_prefix(a: Ipv4Addr, b: Ipv4Addr, bits: u8) -> bool {
    let different = u32::from(a) ^ u32::from(b);
    different.leading_zeros() >= u32::from(bits.min(32))
}

impl Engine for Host {
    type Above = Many<LinkId, Stream>;
    type Below = Many<InterfaceId, Frames>;

    fn handle_request(&mut self, now: Instant, (link, request): Request<Self::Above>) {
        match self.by_link.get(&link).copied() {
            Some(id) => {
                let place = self.places.get_mut(&id).expect("links belong to connections");
                place.connection.handle_request(now, request);
                self.wake(id);
            }
            None if request == StreamRequest::Connect => self.connect(now, link),
            None => self.drops.late_requests += 1,
        }
    }

    fn handle_indication(&mut self, now: Instant, (interface, indication): Indication<Self::Below>) {
        let Some(index) = self.interfaces.iter().position(|known| known.config.interface == interface) else {
            self.drops.not_ours += 1;
            return;
        };
        match indication {
            FramesIndication::Room(room) => self.interfaces[index].room = room,
            FramesIndication::Frame(bytes) => self.handle_frame(now, index, bytes),
            FramesIndication::Transmitted(_) | FramesIndication::Busy(_) | FramesIndication::Carrier(_) => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(id) = self.deadlines.pop_due(now) {
            let place = self.places.get_mut(&id).expect("deadlines belong to connections");
            place.deadline = None;
            place.connection.handle_timeout(now);
            self.wake(id);
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<Indication<Self::Above>> {
        if let Some((link, reason)) = self.refused.pop_front() {
            return Some((link, StreamIndication::Closed(reason)));
        }
        while let Some(&id) = self.indicating.front() {
            let place = self.places.get_mut(&id).expect("connections on the list live");
            let link = place.link;
            if let Some(indication) = place.connection.poll_indication() {
                if let StreamIndication::Closed(reason) = indication {
                    self.forget_link(id, reason);
                }
                return Some((link, indication));
            }
            place.may_indicate = false;
            self.indicating.pop_front();
            self.settle(id);
        }
        None
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        for index in 0..self.interfaces.len() {
            if let Some(request) = self.poll_interface(now, index) {
                return Some((self.interfaces[index].config.interface, request));
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    fn finished(&self) -> bool {
        false
    }

    fn observe(&self, view: &mut Observation) {
        view.part("tcp").count(&self.counters()).count(&self.drops).tell("connections", self.places.len());
    }
}
