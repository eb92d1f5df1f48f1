//! Packet links between two nodes, with the service of AX.25: packets arrive in order and complete, late, within a
//! window; links are refused, and break for both ends at different times. Two nodes have at most one link.

use super::{Crash, Environment};
use crate::rng::Rng;
use crate::service::{CloseReason, LinkId, Many, Packets, PacketsIndication, PacketsRequest};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Faults and properties of the links.
#[derive(Clone, Debug)]
pub(crate) struct PacketConditions {
    /// Maximum delay of a packet, and of an acknowledgement.
    pub(crate) delay: Duration,
    pub(crate) window: u64,
    /// Maximum length of the content of a frame, and of a packet, bytes.
    pub(crate) bytes_best: u32,
    pub(crate) bytes_max: u32,
    /// Fraction of connection requests that fail.
    pub(crate) refuse: f64,
    /// Mean time until a link breaks; `None` if never.
    pub(crate) lifetime: Option<Duration>,
    /// Maximum time until an end detects that the link is broken.
    pub(crate) unaware: Duration,
    /// Fraction of packets that arrive damaged.
    pub(crate) damage: f64,
}

impl PacketConditions {
    /// Half a second each way, without faults.
    #[cfg(test)]
    pub(crate) fn fair() -> Self {
        PacketConditions {
            delay: Duration::from_millis(500),
            window: 7,
            bytes_best: 256,
            bytes_max: 256,
            refuse: 0.0,
            lifetime: None,
            unaware: Duration::ZERO,
            damage: 0.0,
        }
    }

    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let bytes_best = if rng.chance(0.3) { 64 } else { 128 + rng.below(200) as u32 };
        let lifetime_ms = if rng.chance(0.5) { 2_000 } else { 30_000 };
        PacketConditions {
            delay: Duration::from_micros(1 + rng.below(2_000_000)),
            window: 1 + rng.below(8),
            bytes_best,
            bytes_max: if rng.chance(0.5) { bytes_best } else { bytes_best * 20 },
            refuse: rng.unit() * 0.4,
            lifetime: rng.chance(0.8).then(|| Duration::from_millis(1 + rng.below(lifetime_ms))),
            unaware: Duration::from_millis(rng.below(20_000)),
            damage: 0.0,
        }
    }
}

/// Packets of one direction.
#[derive(Debug, Default)]
struct Flow {
    moving: VecDeque<(Instant, Bytes)>,
    handed: u64,
    arrived: u64,
    acknowledged: u64,
    unreleased: u64,
    announced_room: u64,
    closing: bool,
}

#[derive(Debug)]
struct Connection {
    /// Node and link of the connecting and of the other side.
    ends: [(usize, LinkId); 2],
    open: bool,
    /// Nothing is transported.
    broken: bool,
    /// Ends that have received `Closed`.
    closed: [bool; 2],
    flows: [Flow; 2],
}

#[derive(Debug)]
enum Event {
    Open(usize),
    Fail(usize, usize, CloseReason),
    Arrive(usize),
    /// Acknowledges a number of packets of an end.
    Acknowledge(usize, usize, u64),
    Break(usize),
}

/// Packet links between two nodes. Each node connects to the other on links below [`LinkId::FIRST_INCOMING`].
pub(crate) struct PacketLinks {
    rng: Rng,
    pub(crate) conditions: PacketConditions,
    calm: bool,
    crashes: Vec<Crash>,
    connections: Vec<Connection>,
    current: BTreeMap<(usize, LinkId), usize>,
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    faults: u64,
    up: VecDeque<(usize, (LinkId, PacketsIndication))>,
    next_incoming: u32,
    /// Every packet sent: time, node, content.
    pub(crate) wire: Vec<(Instant, usize, Bytes)>,
}

impl PacketLinks {
    pub(crate) fn new(rng: Rng, conditions: PacketConditions, crashes: Vec<Crash>) -> Self {
        PacketLinks {
            rng,
            conditions,
            calm: false,
            crashes,
            connections: vec![],
            current: BTreeMap::new(),
            events: BTreeMap::new(),
            count: 0,
            faults: 0,
            up: VecDeque::new(),
            next_incoming: LinkId::FIRST_INCOMING,
            wire: vec![],
        }
    }

    /// Breaks every link now; packets in transit are lost.
    #[cfg(test)]
    pub(crate) fn cut(&mut self, now: Instant) {
        (0..self.connections.len()).for_each(|index| self.break_off(now, index));
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    fn delay(&mut self) -> Duration {
        let most = self.conditions.delay;
        most / 2 + Duration::from_nanos(self.rng.below(most.as_nanos() as u64 / 2 + 1))
    }

    fn is_down(&self, node: usize, now: Instant) -> bool {
        let down = |crash: &Crash| crash.node == node && crash.at <= now && now < crash.at + crash.off;
        self.crashes.iter().any(down) && !self.calm
    }

    fn tell(&mut self, index: usize, end: usize, indication: PacketsIndication) {
        let connection = &self.connections[index];
        if !connection.closed[end] {
            let (node, link) = connection.ends[end];
            self.up.push_back((node, (link, indication)));
        }
    }

    fn tell_closed(&mut self, index: usize, end: usize, reason: CloseReason) {
        self.tell(index, end, PacketsIndication::Closed(reason));
        self.connections[index].closed[end] = true;
        let key = self.connections[index].ends[end];
        if self.current.get(&key) == Some(&index) {
            self.current.remove(&key);
        }
    }

    fn connect(&mut self, now: Instant, node: usize, link: LinkId) {
        let called = (1 - node, LinkId(self.next_incoming));
        self.next_incoming += 1;
        let index = self.connections.len();
        self.connections.push(Connection {
            ends: [(node, link), called],
            open: false,
            broken: false,
            closed: [false, true],
            flows: Default::default(),
        });
        self.current.insert((node, link), index);
        let delay = self.delay();
        if !self.calm && self.rng.chance(self.conditions.refuse) {
            self.faults += 1;
            self.at(now + delay, Event::Fail(index, 0, CloseReason::Refused));
        } else {
            self.at(now + delay, Event::Open(index));
        }
    }

    fn open(&mut self, now: Instant, index: usize) {
        if self.connections[index].closed[0] {
            return;
        }
        let (caller, called) = (self.connections[index].ends[0], self.connections[index].ends[1]);
        let own = self.connections[..].iter().any(|other| {
            other.open
                && other.ends.iter().zip(other.closed).any(|(end, closed)| end.0 == caller.0 && !closed)
        });
        if own {
            return self.tell_closed(index, 0, CloseReason::Limit);
        }
        if self.is_down(called.0, now) {
            return self.tell_closed(index, 0, CloseReason::TimedOut);
        }
        // A connection request shows a node that its earlier link no longer exists.
        for other in 0..self.connections.len() {
            for end in 0..2 {
                let before = &self.connections[other];
                if before.open && before.ends[end].0 == called.0 && !before.closed[end] {
                    self.tell_closed(other, end, CloseReason::Reset);
                }
            }
        }
        let connection = &mut self.connections[index];
        (connection.open, connection.closed[1]) = (true, false);
        self.current.insert(called, index);
        let (bytes_max, bytes_best) = (self.conditions.bytes_max, self.conditions.bytes_best);
        for end in [1, 0] {
            let peer = format!("N{}", self.connections[index].ends[1 - end].0);
            self.tell(index, end, PacketsIndication::Connected { bytes_max, bytes_best, peer });
            self.room(index, end);
        }
        if !self.calm
            && let Some(mean) = self.conditions.lifetime
        {
            let life = self.rng.exponential(mean.as_nanos() as f64);
            self.at(now + Duration::from_nanos(life as u64), Event::Break(index));
        }
    }

    fn room(&mut self, index: usize, end: usize) {
        /// Maximum number of packets delivered and not released.
        const UNRELEASED_MAX: u64 = 20;
        let window = self.conditions.window;
        let flow = &mut self.connections[index].flows[end];
        let held = flow.unreleased.saturating_sub(UNRELEASED_MAX);
        let room = window.saturating_sub(flow.handed - flow.acknowledged + held);
        if flow.announced_room != room && !flow.closing {
            flow.announced_room = room;
            self.tell(index, end, PacketsIndication::Room(room));
        }
    }

    fn packet(&mut self, now: Instant, index: usize, end: usize, packet: Bytes) {
        self.wire.push((now, self.connections[index].ends[end].0, packet.clone()));
        let damaged = !self.calm && self.rng.chance(self.conditions.damage);
        self.faults += u64::from(damaged);
        let packet = match damaged {
            true => packet.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at == 0)).collect(),
            false => packet,
        };
        let arrival = now + self.delay();
        let flow = &mut self.connections[index].flows[end];
        flow.announced_room -= 1;
        flow.handed += 1;
        let arrival = arrival.max(flow.moving.back().map_or(Instant::ZERO, |&(at, _)| at));
        flow.moving.push_back((arrival, packet));
        self.at(arrival, Event::Arrive(index));
    }

    fn arrive(&mut self, now: Instant, index: usize) {
        if self.connections[index].broken {
            return;
        }
        for end in 0..2 {
            let mut arrived = None;
            while self.connections[index].flows[end].moving.front().is_some_and(|(at, _)| *at <= now) {
                let flow = &mut self.connections[index].flows[end];
                let (_, packet) = flow.moving.pop_front().expect("just seen");
                flow.arrived += 1;
                flow.unreleased += 1;
                arrived = Some(flow.arrived);
                self.tell(index, 1 - end, PacketsIndication::Packet(packet));
            }
            if let Some(count) = arrived {
                let at = now + self.delay();
                self.at(at, Event::Acknowledge(index, end, count));
            }
        }
    }

    fn acknowledge(&mut self, now: Instant, index: usize, end: usize, count: u64) {
        let connection = &mut self.connections[index];
        if connection.broken || connection.flows[end].acknowledged >= count {
            return;
        }
        connection.flows[end].acknowledged = count;
        self.tell(index, end, PacketsIndication::Acknowledged(count));
        self.room(index, end);
        self.may_close(now, index, end);
    }

    fn may_close(&mut self, now: Instant, index: usize, end: usize) {
        let flow = &self.connections[index].flows[end];
        if flow.closing && flow.acknowledged == flow.handed && !self.connections[index].closed[end] {
            self.connections[index].broken = true;
            self.tell_closed(index, end, CloseReason::Finished);
            let at = now + self.delay();
            self.at(at, Event::Fail(index, 1 - end, CloseReason::Finished));
        }
    }

    fn break_off(&mut self, now: Instant, index: usize) {
        if !self.connections[index].open || self.connections[index].broken {
            return;
        }
        self.connections[index].broken = true;
        self.faults += 1;
        for end in 0..2 {
            let unaware = self.rng.below(self.conditions.unaware.as_nanos() as u64 + 1);
            self.at(now + Duration::from_nanos(unaware), Event::Fail(index, end, CloseReason::TimedOut));
        }
    }
}

impl Environment<Many<LinkId, Packets>> for PacketLinks {
    fn handle_request(&mut self, now: Instant, node: usize, (link, request): (LinkId, PacketsRequest)) {
        if request == PacketsRequest::Connect {
            return self.connect(now, node, link);
        }
        let Some(&index) = self.current.get(&(node, link)) else { return };
        let end = usize::from(self.connections[index].ends[1] == (node, link));
        match request {
            PacketsRequest::Connect | PacketsRequest::Acknowledge => {}
            PacketsRequest::Packet { bytes, .. } => self.packet(now, index, end, bytes),
            PacketsRequest::Release(packets) => {
                self.connections[index].flows[1 - end].unreleased -= packets;
                self.room(index, 1 - end);
            }
            PacketsRequest::Close => {
                self.connections[index].flows[end].closing = true;
                self.may_close(now, index, end);
            }
            PacketsRequest::Abort => {
                self.tell_closed(index, end, CloseReason::Finished);
                self.connections[index].broken = true;
                let at = now + self.delay();
                self.at(at, Event::Fail(index, 1 - end, CloseReason::Finished));
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Event::Open(index) => self.open(now, index),
                Event::Fail(index, end, reason) => self.tell_closed(index, end, reason),
                Event::Arrive(index) => self.arrive(now, index),
                Event::Acknowledge(index, end, count) => self.acknowledge(now, index, end, count),
                Event::Break(_) if self.calm => {}
                Event::Break(index) => self.break_off(now, index),
            }
        }
    }

    fn poll_indication(&mut self) -> Option<(usize, (LinkId, PacketsIndication))> {
        self.up.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.events.first_key_value().map(|(&(at, _), _)| at)
    }

    fn crash(&mut self, now: Instant, node: usize) {
        self.up.retain(|&(to, _)| to != node);
        for index in 0..self.connections.len() {
            for end in 0..2 {
                if self.connections[index].ends[end].0 != node || self.connections[index].closed[end] {
                    continue;
                }
                let connection = &mut self.connections[index];
                (connection.closed[end], connection.broken) = (true, true);
                self.current.remove(&self.connections[index].ends[end]);
                let at = now + self.delay();
                self.at(at, Event::Fail(index, 1 - end, CloseReason::TimedOut));
            }
        }
    }

    fn calm(&mut self, _now: Instant) {
        self.calm = true;
    }

    fn carried(&self) -> u64 {
        self.wire.len() as u64
    }

    fn faults(&self) -> u64 {
        self.faults
    }
}
