//! Station: the engine.

use super::EthernetConfig;
use super::wire::{Arp, Contents, EthernetFrame, HEADER_BYTES, ICMP, Icmp, MacAddress, packet};
use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::engine::Engine;
use longwire_proto::observe::Observation;
use longwire_proto::service::{Frames, FramesIndication, FramesRequest, InterfaceId, Many, Shares};
use longwire_proto::tcp::wire::{Ipv4Header, Packet};
use longwire_proto::time::{Duration, Instant};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Pause between ARP requests for the same address.
const ARP_RETRY: Duration = Duration::from_secs(1);
/// ARP requests without a reply after which waiting packets are dropped.
const ARP_TRIES_MAX: u32 = 3;
/// Packets that wait for an ARP reply, for each address.
const UNRESOLVED_MAX: usize = 3;
/// Pause between redirects to the same source.
const REDIRECT_PAUSE: Duration = Duration::from_secs(1);
/// Sources whose last redirect is remembered.
const REDIRECTED_MAX: usize = 256;

/// Counts of packets and frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Packets of others that were passed on.
    pub forwarded: u64,
    /// Frames that found the queue full.
    pub queue_full: u64,
    /// Packets for which no ARP reply came, or too many of which waited for one.
    pub unresolved: u64,
    /// Packets to others without forwarding, damaged ones, and those whose time to live has ended.
    pub refused: u64,
    /// Redirects sent.
    pub redirects_sent: u64,
    /// Redirects followed.
    pub redirects_followed: u64,
}

/// Frame in the queue.
#[derive(Debug)]
struct Waiting {
    bytes: Bytes,
    token: Option<u64>,
    shares: Shares,
}

/// Address whose hardware address is not known yet.
#[derive(Debug)]
struct Unresolved {
    packets: VecDeque<Waiting>,
    tries: u32,
    next_try: Instant,
}

/// Interface of a host.
#[derive(Debug)]
struct HostPort {
    interface: InterfaceId,
    address: Ipv4Addr,
    joined: bool,
    /// Room last reported to the host.
    told: u32,
}

/// IP over Ethernet for the hosts of one node. The [module](super) describes it.
#[derive(Debug)]
pub struct EthernetStation {
    config: EthernetConfig,
    ports: Vec<HostPort>,
    routes: BTreeMap<Ipv4Addr, Ipv4Addr>,
    learned: BTreeMap<Ipv4Addr, MacAddress>,
    unresolved: BTreeMap<Ipv4Addr, Unresolved>,
    redirected: BTreeMap<Ipv4Addr, Instant>,
    queue: VecDeque<Waiting>,
    /// Owners of the frames whose departure is to be reported, by the tokens of the channel.
    tokens: BTreeMap<u64, (InterfaceId, u64)>,
    next_token: u64,
    wants_join: bool,
    /// True if the channel is requested and not yet won.
    seized: bool,
    room: u32,
    up: VecDeque<(InterfaceId, FramesIndication)>,
    counters: Counters,
}

impl EthernetStation {
    /// Creates an idle station.
    pub fn new(config: EthernetConfig) -> EthernetStation {
        let port = |(interface, address): &(InterfaceId, Ipv4Addr)| HostPort {
            interface: *interface,
            address: *address,
            joined: false,
            told: 0,
        };
        EthernetStation {
            ports: config.addresses.iter().map(port).collect(),
            routes: config.routes.iter().copied().collect(),
            learned: BTreeMap::new(),
            unresolved: BTreeMap::new(),
            redirected: BTreeMap::new(),
            queue: VecDeque::new(),
            tokens: BTreeMap::new(),
            next_token: 0,
            wants_join: true,
            seized: false,
            room: 0,
            up: VecDeque::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    fn free(&self) -> u32 {
        self.config.queue_frames.saturating_sub(self.queue.len()) as u32
    }

    fn is_own(&self, address: Ipv4Addr) -> bool {
        self.ports.iter().any(|port| port.address == address)
    }

    // -----------------------------------------------------------------------------------------------------------
    // Sending

    /// Sends a packet of a host or of the station itself.
    fn send(&mut self, now: Instant, bytes: Bytes, token: Option<u64>, shares: Shares) {
        let Ok(header) = Ipv4Header::decode(&mut bytes.clone()) else {
            self.counters.refused += 1;
            return self.report(token);
        };
        let next = *self.routes.get(&header.destination).unwrap_or(&header.destination);
        self.send_to(now, next, Waiting { bytes, token, shares });
    }

    /// Sends a packet to its next hop, whose hardware address may have to be found first.
    fn send_to(&mut self, now: Instant, next: Ipv4Addr, packet: Waiting) {
        if let Some(mac) = self.hardware_address(next) {
            return self.enqueue_packet(mac, packet);
        }
        let unresolved = self.unresolved.entry(next).or_insert_with(|| Unresolved {
            packets: VecDeque::new(),
            tries: 0,
            next_try: now,
        });
        unresolved.packets.push_back(packet);
        if unresolved.packets.len() > UNRESOLVED_MAX {
            let dropped = unresolved.packets.pop_front();
            self.counters.unresolved += 1;
            self.report(dropped.and_then(|packet| packet.token));
        }
        self.ask(now);
    }

    fn hardware_address(&self, of: Ipv4Addr) -> Option<MacAddress> {
        if of.is_multicast() {
            return Some(MacAddress::of_group(of));
        }
        let fixed = self.config.arp.iter().find(|(address, _)| *address == of).map(|(_, mac)| *mac);
        fixed.or_else(|| self.learned.get(&of).copied())
    }

    fn enqueue_packet(&mut self, to: MacAddress, packet: Waiting) {
        let Waiting { bytes, token, shares } = packet;
        let shares = shares.in_frame(bytes.len(), bytes.len() + HEADER_BYTES);
        let frame = EthernetFrame { to, from: self.config.mac, contents: Contents::Ipv4(bytes) };
        self.enqueue(Waiting { bytes: frame.encode(), token, shares });
    }

    fn enqueue(&mut self, frame: Waiting) {
        if self.free() == 0 {
            self.counters.queue_full += 1;
            return self.report(frame.token);
        }
        self.queue.push_back(frame);
    }

    /// Sends the ARP requests that are due, and drops what waits for an address that does not answer.
    fn ask(&mut self, now: Instant) {
        let Some(own) = self.ports.first().map(|port| port.address) else { return };
        let (mut requests, mut dropped) = (Vec::new(), Vec::new());
        self.unresolved.retain(|address, unresolved| {
            if unresolved.next_try > now {
                return true;
            }
            if unresolved.tries == ARP_TRIES_MAX {
                dropped.extend(unresolved.packets.drain(..).map(|packet| packet.token));
                return false;
            }
            unresolved.tries += 1;
            unresolved.next_try = now + ARP_RETRY;
            requests.push(*address);
            true
        });
        for address in requests {
            let target = (MacAddress([0; 6]), address);
            let arp = Arp { is_reply: false, sender: (self.config.mac, own), target };
            self.enqueue_arp(MacAddress::BROADCAST, arp);
        }
        self.counters.unresolved += dropped.len() as u64;
        dropped.into_iter().for_each(|token| self.report(token));
    }

    fn enqueue_arp(&mut self, to: MacAddress, arp: Arp) {
        let frame = EthernetFrame { to, from: self.config.mac, contents: Contents::Arp(arp) };
        let bytes = frame.encode();
        let shares = Shares::control(bytes.len());
        self.enqueue(Waiting { bytes, token: None, shares });
    }

    /// Reports a frame to its host, which has left or was dropped.
    fn report(&mut self, token: Option<u64>) {
        if let Some((interface, token)) = token.and_then(|token| self.tokens.remove(&token)) {
            self.up.push_back((interface, FramesIndication::Transmitted(token)));
        }
    }

    // -----------------------------------------------------------------------------------------------------------
    // Receiving

    fn hear(&mut self, now: Instant, frame: &Bytes) {
        let Some(frame) = EthernetFrame::decode(frame) else {
            self.counters.refused += 1;
            return;
        };
        if frame.to != self.config.mac && !frame.to.is_group() {
            return;
        }
        match frame.contents {
            Contents::Arp(arp) => self.hear_arp(now, arp),
            Contents::Ipv4(packet) => self.hear_packet(now, packet),
        }
    }

    fn hear_arp(&mut self, now: Instant, arp: Arp) {
        let (mac, address) = arp.sender;
        let is_for_us = self.is_own(arp.target.1);
        // RFC 826: an entry is updated by any message, and made by one for this station.
        if is_for_us || self.learned.contains_key(&address) {
            self.learned.insert(address, mac);
        }
        if is_for_us && !arp.is_reply {
            let reply = Arp { is_reply: true, sender: (self.config.mac, arp.target.1), target: arp.sender };
            self.enqueue_arp(mac, reply);
        }
        if let Some(unresolved) = self.hardware_address(address).and(self.unresolved.remove(&address)) {
            unresolved.packets.into_iter().for_each(|packet| self.send_to(now, address, packet));
        }
    }

    fn hear_packet(&mut self, now: Instant, mut bytes: Bytes) {
        let mut payload = bytes.clone();
        let Ok(header) = Ipv4Header::decode(&mut payload) else {
            self.counters.refused += 1;
            return;
        };
        // Without the padding of the frame.
        bytes.truncate(bytes.len() - payload.len() + usize::from(header.payload_bytes));
        payload.truncate(usize::from(header.payload_bytes));
        if header.destination.is_multicast() {
            // Every host is a member of every group.
            let joined = self.ports.iter().filter(|port| port.joined);
            let heard = joined.map(|port| (port.interface, FramesIndication::Frame(bytes.clone())));
            return self.up.extend(heard);
        }
        let Some(port) = self.ports.iter().find(|port| port.address == header.destination) else {
            return self.forward(now, header, bytes, payload);
        };
        let (interface, joined) = (port.interface, port.joined);
        match (header.protocol == ICMP).then(|| Icmp::decode(&payload)).flatten() {
            Some(Icmp::Echo(false, number, data)) => {
                let reply = Icmp::Echo(true, number, data).encode(&[]);
                let reply = packet(ICMP, header.destination, header.source, &reply);
                let shares = Shares::control(reply.len());
                self.send(now, reply, None, shares);
            }
            Some(Icmp::Redirect(gateway, destination)) if self.config.redirects => {
                self.counters.redirects_followed += 1;
                self.routes.insert(destination, gateway);
            }
            Some(Icmp::Redirect(..)) => {}
            _ if joined => self.up.push_back((interface, FramesIndication::Frame(bytes))),
            _ => {}
        }
    }

    /// Passes on a packet that is not for this station.
    fn forward(&mut self, now: Instant, mut header: Ipv4Header, whole: Bytes, payload: Bytes) {
        let left = header.time_to_live.saturating_sub(1);
        if !self.config.forwards || left == 0 || whole.len() > self.config.mtu_bytes {
            self.counters.refused += 1;
            return;
        }
        header.time_to_live = left;
        let next = *self.routes.get(&header.destination).unwrap_or(&header.destination);
        if self.config.redirects {
            self.redirect(now, &header, next, &whole);
        }
        let mut bytes = BytesMut::with_capacity(whole.len());
        header.encode(&mut bytes);
        bytes.put_slice(&payload);
        self.counters.forwarded += 1;
        let shares = shares_of(&whole, bytes.len());
        self.send_to(now, next, Waiting { bytes: bytes.freeze(), token: None, shares });
    }

    /// Redirects a source on the same network to the next hop (RFC 1122 3.2.2.2, RFC 1812 5.2.7.2).
    fn redirect(&mut self, now: Instant, header: &Ipv4Header, next: Ipv4Addr, about: &Bytes) {
        let Some(own) = self.ports.first().map(|port| port.address) else { return };
        if self.redirected.get(&header.source).is_some_and(|last| *last + REDIRECT_PAUSE > now) {
            return;
        }
        if self.redirected.len() >= REDIRECTED_MAX {
            self.redirected.clear();
        }
        self.redirected.insert(header.source, now);
        self.counters.redirects_sent += 1;
        let message = Icmp::Redirect(next, header.destination).encode(about);
        let message = packet(ICMP, own, header.source, &message);
        let shares = Shares::control(message.len());
        self.send(now, message, None, shares);
    }
}

/// Shares of a packet on its way. A station that forwards it knows which bytes are data, not whether it is the first time.
fn shares_of(bytes: &Bytes, length: usize) -> Shares {
    match Packet::decode(&mut bytes.clone()) {
        Ok(packet) if packet.segment.payload.is_empty() => Shares::acknowledgement(length),
        Ok(packet) => Shares::payload(packet.segment.payload.len()),
        Err(_) => Shares::default(),
    }
}

impl Engine for EthernetStation {
    type Above = Many<InterfaceId, Frames>;
    type Below = Frames;

    fn handle_request(&mut self, now: Instant, (interface, request): (InterfaceId, FramesRequest)) {
        let Some(port) = self.ports.iter_mut().find(|port| port.interface == interface) else { return };
        match request {
            FramesRequest::Join => {
                port.joined = true;
                self.up.push_back((interface, FramesIndication::Carrier(true)));
            }
            // The station seizes the channel by itself.
            FramesRequest::Seize => {}
            FramesRequest::Frame { bytes, token, shares, .. } => {
                assert!(port.told > 0, "a packet without room on {interface:?}");
                port.told -= 1;
                let own = token.map(|token| {
                    self.next_token += 1;
                    self.tokens.insert(self.next_token, (interface, token));
                    self.next_token
                });
                self.send(now, bytes, own, shares);
            }
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: FramesIndication) {
        match indication {
            FramesIndication::Room(room) => (self.room, self.seized) = (room, false),
            FramesIndication::Frame(frame) => self.hear(now, &frame),
            FramesIndication::Transmitted(token) => self.report(Some(token)),
            FramesIndication::Busy(_) | FramesIndication::Carrier(_) => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.ask(now);
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<(InterfaceId, FramesIndication)> {
        if let Some(indication) = self.up.pop_front() {
            return Some(indication);
        }
        let free = self.free();
        let port = self.ports.iter_mut().find(|port| port.joined && port.told != free)?;
        port.told = free;
        Some((port.interface, FramesIndication::Room(free)))
    }

    fn poll_request(&mut self, _now: Instant) -> Option<FramesRequest> {
        if core::mem::take(&mut self.wants_join) {
            return Some(FramesRequest::Join);
        }
        if self.queue.is_empty() {
            return None;
        }
        if self.room == 0 {
            return (!core::mem::replace(&mut self.seized, true)).then_some(FramesRequest::Seize);
        }
        self.room = 0;
        let Waiting { bytes, token, shares } = self.queue.pop_front()?;
        Some(FramesRequest::Frame { bytes, token, last: true, shares })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.unresolved.values().map(|unresolved| unresolved.next_try).min()
    }

    fn observe(&self, view: &mut Observation) {
        view.part("ethernet").count(&self.counters);
    }
}
