//! Engine of the layer.

use super::config::{Config, Counters, REPAIR_SPARE};
use super::incoming::Incoming;
use super::losses::LossTable;
use super::outgoing::Outgoing;
use super::wire::{Packet, Symbol, user_bytes_max};
use crate::engine::Engine;
use crate::joint::earlier;
use crate::kit::Pacer;
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{Datagrams, DatagramsIndication, DatagramsRequest, PeerId, Shares};
use crate::time::{Instant, Timers};
use bytes::Bytes;
use std::collections::VecDeque;

/// Maximum number of deferred repair packets of all receivers, unless one alone may have more.
const REPAIRS_MAX: usize = 8192;

#[derive(Clone, Copy)]
enum Timer {
    /// The rate permits the next datagram.
    Pace,
}

/// Packet that waits for room.
#[derive(Debug)]
struct Departure {
    to: PeerId,
    bytes: Bytes,
    shares: Shares,
    token: Option<u64>,
}

/// Datagrams with repair symbols. The [module](super) describes what it does.
#[derive(Debug)]
pub struct FecDatagrams {
    config: Config,
    joined: bool,
    /// Configured peer: all senders but the group count as this one when losses are measured.
    peer: Option<PeerId>,
    outgoing: Outgoing,
    incoming: Incoming,
    losses: LossTable,
    /// Requests to the provider that need no room.
    orders: VecDeque<DatagramsRequest>,
    /// Packets in the order in which they leave.
    departures: VecDeque<Departure>,
    /// Deferred repair packets, of the last blocks first. They leave while nothing else does.
    repairs: VecDeque<Departure>,
    timers: Timers<1>,
    pacer: Pacer,
    provider_room: u64,
    up: VecDeque<DatagramsIndication>,
    /// Room granted to the user, datagrams.
    told: u64,
    release: u64,
    /// Bytes of datagrams that rose as they came, and of restored ones, which the user has not released.
    risen: u64,
    risen_restored: u64,
    counters: Counters,
}

impl FecDatagrams {
    /// Creates the layer.
    pub fn new(config: Config, rng: Rng) -> Self {
        FecDatagrams {
            joined: false,
            peer: None,
            outgoing: Outgoing::new(&config, rng),
            incoming: Incoming::new(&config),
            losses: LossTable::default(),
            orders: VecDeque::new(),
            departures: VecDeque::new(),
            repairs: VecDeque::new(),
            timers: Timers::new(),
            pacer: Pacer::new(config.rate_bps, config.burst),
            provider_room: 0,
            up: VecDeque::new(),
            told: 0,
            release: 0,
            risen: 0,
            risen_restored: 0,
            counters: Counters::default(),
            config,
        }
    }

    /// Counters since the creation of the layer.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Forgets everything that belongs to the endpoint as it was.
    fn reset(&mut self) {
        self.joined = false;
        self.outgoing.clear();
        self.incoming.close(self.peer);
        self.losses.clear();
        self.departures.clear();
        self.repairs.clear();
        self.timers.stop_all();
        (self.provider_room, self.told, self.release) = (0, 0, 0);
        (self.risen, self.risen_restored) = (0, 0);
    }

    // -- Down ---------------------------------------------------------------------------------------------------

    fn send(&mut self, to: PeerId, bytes: Bytes, shares: Shares, token: Option<u64>) {
        self.told = self.told.saturating_sub(1);
        if !self.joined {
            return;
        }
        if let Some(other) = self.outgoing.superfluous(to) {
            self.end_block(other);
            self.outgoing.forget(other);
        }
        self.counters.sources_sent += 1;
        let inner = bytes.len();
        let bytes = self.outgoing.add(to, bytes, self.losses.report(to)).to_bytes();
        let shares = shares.in_frame(inner, bytes.len());
        self.departures.push_back(Departure { to, bytes, shares, token });
        match (self.outgoing.is_full(to, &self.config), self.config.deferred) {
            (false, _) => {}
            (true, false) => self.end_block(to),
            (true, true) => {
                self.outgoing.defer(to, &mut self.counters);
                // The user has repeated by now whatever a whole block ago was lost.
                self.repairs.retain(|repair| repair.to != to);
            }
        }
    }

    fn end_block(&mut self, to: PeerId) {
        let (loss, report) = (self.losses.to(to, &self.config), self.losses.report(to));
        let packets = self.outgoing.end(to, loss, report, &self.config, &mut self.counters);
        let packets = packets.into_iter().map(|packet| {
            let bytes = packet.to_bytes();
            let shares = Shares::repair(bytes.len());
            Departure { to, bytes, shares, token: None }
        });
        if !self.config.deferred {
            self.departures.extend(packets);
            return;
        }
        let before = core::mem::replace(&mut self.repairs, packets.collect());
        self.repairs.extend(before);
        // Both blocks of a receiver may have as many repair packets as a block can have; older ones make room.
        let each_max = 2 * (self.config.block_symbols + REPAIR_SPARE);
        let mut own = 0;
        self.repairs.retain(|repair| {
            own += u32::from(repair.to == to);
            repair.to != to || own <= each_max
        });
        self.repairs.truncate(REPAIRS_MAX.max(each_max as usize));
    }

    /// Room for the user: that of the provider which nothing waits for. With a rate, each datagram waits for its time.
    fn room(&self) -> u64 {
        let free = self.provider_room.saturating_sub(self.departures.len() as u64);
        if self.config.rate_bps == 0 {
            return free;
        }
        let is_time = self.departures.is_empty() && self.timers.get(Timer::Pace as usize).is_none();
        if is_time { free.min(1) } else { 0 }
    }

    /// Starts the wait for the user, if the user may send.
    fn wait(&mut self, now: Instant) {
        if self.room() > 0 {
            self.outgoing.wait(now, self.config.idle);
        }
    }

    fn depart(&mut self, now: Instant) -> Option<DatagramsRequest> {
        if self.provider_room == 0 || self.timers.get(Timer::Pace as usize).is_some() {
            return None;
        }
        let next = self.departures.pop_front().or_else(|| self.repairs.pop_front());
        let Departure { to, bytes, shares, token } = next?;
        self.provider_room -= 1;
        self.counters.repairs_sent += u64::from(shares.repair > 0);
        self.pacer.spend(now, bytes.len() as u64 + self.config.overhead_bytes);
        if self.pacer.ready_at() > now {
            self.timers.set(Timer::Pace as usize, self.pacer.ready_at());
        }
        self.wait(now);
        Some(DatagramsRequest::Datagram { to, bytes, shares, token })
    }

    // -- Up -----------------------------------------------------------------------------------------------------

    /// Peer as which a sender counts when losses are measured.
    fn counted_as(&self, from: PeerId) -> PeerId {
        self.peer.unwrap_or(from)
    }

    fn receive(&mut self, from: PeerId, to_group: bool, bytes: Bytes) {
        let whole = bytes.len() as u64;
        if !self.joined {
            return;
        }
        let Ok(packet) = Packet::decode(&mut bytes.clone()) else {
            self.counters.violations += 1;
            self.release += whole;
            return;
        };
        match packet.symbol {
            Symbol::Source(_) => self.counters.sources_received += 1,
            Symbol::Repair { .. } => self.counters.repairs_received += 1,
        }
        let peer = self.counted_as(from);
        if let Some(report) = packet.report.filter(|_| !to_group) {
            self.losses.hear(peer, report);
        }
        let received = self.incoming.receive((from, to_group), packet, &mut self.counters);
        if !to_group {
            self.losses.measure(peer, received.measured);
        }
        let risen = received.datagram.as_ref().map_or(0, |bytes| bytes.len() as u64);
        self.release += whole - risen;
        self.risen += risen;
        let datagram = |bytes| DatagramsIndication::Datagram { from, to_group, bytes, damaged: false };
        self.up.extend(received.datagram.map(datagram));
        for bytes in received.restored {
            if self.risen_restored + bytes.len() as u64 > self.config.incoming_bytes_max {
                self.counters.not_kept += 1;
                continue;
            }
            self.risen_restored += bytes.len() as u64;
            self.up.push_back(datagram(bytes));
        }
    }

    /// Releases bytes that the user has released: first those of restored datagrams, which the provider does not know.
    fn released(&mut self, bytes: u64) {
        let restored = bytes.min(self.risen_restored);
        self.risen_restored -= restored;
        let rest = (bytes - restored).min(self.risen);
        self.risen -= rest;
        self.release += rest;
    }
}

impl Engine for FecDatagrams {
    type Above = Datagrams;
    type Below = Datagrams;

    fn handle_request(&mut self, now: Instant, request: DatagramsRequest) {
        match request {
            // A damaged symbol would damage all restored ones.
            DatagramsRequest::Join { .. } => self.orders.push_back(DatagramsRequest::Join { damaged: false }),
            DatagramsRequest::Leave => {
                self.reset();
                self.up.clear();
                self.orders.clear();
                self.orders.push_back(DatagramsRequest::Leave);
            }
            DatagramsRequest::Datagram { to, bytes, shares, token } => self.send(to, bytes, shares, token),
            DatagramsRequest::Release(bytes) => self.released(bytes),
        }
        self.wait(now);
    }

    fn handle_indication(&mut self, now: Instant, indication: DatagramsIndication) {
        match indication {
            DatagramsIndication::Joined { bytes_max, peer, group } => {
                self.reset();
                (self.joined, self.peer) = (true, peer);
                self.pacer.restart(now);
                let bytes_max = user_bytes_max(bytes_max);
                self.up.push_back(DatagramsIndication::Joined { bytes_max, peer, group });
            }
            DatagramsIndication::Room(room) => self.provider_room = room,
            DatagramsIndication::Datagram { from, to_group, bytes, .. } => {
                self.receive(from, to_group, bytes);
            }
            DatagramsIndication::Left(reason) => {
                self.reset();
                self.up.push_back(DatagramsIndication::Left(reason));
            }
            DatagramsIndication::Carrier(_) | DatagramsIndication::Transmitted(_) => {
                self.up.push_back(indication);
            }
        }
        self.wait(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timers.expire(Timer::Pace as usize, now);
        let may_send = self.room() > 0;
        let is_pacing = self.timers.get(Timer::Pace as usize).is_some();
        while let Some(peer) = self.outgoing.pop_idle(now) {
            // While the user could not send, silence says nothing.
            if may_send {
                self.end_block(peer);
            } else if is_pacing {
                self.outgoing.is_late(peer);
            }
        }
        self.wait(now);
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<DatagramsIndication> {
        if let Some(indication) = self.up.pop_front() {
            return Some(indication);
        }
        let room = if self.joined { self.room() } else { 0 };
        (core::mem::replace(&mut self.told, room) != room).then_some(DatagramsIndication::Room(room))
    }

    fn poll_request(&mut self, now: Instant) -> Option<DatagramsRequest> {
        if let Some(order) = self.orders.pop_front() {
            return Some(order);
        }
        if self.release > 0 {
            return Some(DatagramsRequest::Release(core::mem::take(&mut self.release)));
        }
        self.depart(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        earlier(self.timers.next(), self.outgoing.next_deadline())
    }

    fn finished(&self) -> bool {
        !self.joined && self.up.is_empty() && self.orders.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("fecframe").count(&self.counters);
        part.tell("symbols_outgoing_bytes", self.outgoing.held_bytes());
        part.tell("symbols_held_bytes", self.incoming.held_bytes());
        part.tell("symbol_senders", self.incoming.senders());
    }
}
