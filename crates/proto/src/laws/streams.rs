//! Streams between two nodes in virtual time, with the worst behaviour that TCP allows: bytes arrive in order and
//! undamaged, but late, in pieces of any size, within a window; connections are refused, stall, and break at any byte.

use super::{Crash, Environment};
use crate::rng::Rng;
use crate::service::{CloseReason, LinkId, Many, Stream, StreamIndication, StreamRequest};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// Faults and properties of the streams.
#[derive(Clone, Debug)]
pub(crate) struct StreamConditions {
    /// Minimum delay of bytes.
    pub(crate) delay: Duration,
    /// Maximum additional delay.
    pub(crate) jitter: Duration,
    /// Window of each direction, bytes.
    pub(crate) window: u64,
    /// Maximum length of a piece of received data, bytes.
    pub(crate) chunk_max: u64,
    /// Fraction of connection attempts that fail.
    pub(crate) refuse: f64,
    /// Mean time until a connection breaks; `None` if never.
    pub(crate) lifetime: Option<Duration>,
    /// Fraction of breaking connections that stall without an indication.
    pub(crate) stall: f64,
}

impl StreamConditions {
    /// A fast line without faults.
    #[cfg(test)]
    pub(crate) fn fair() -> Self {
        StreamConditions {
            delay: Duration::from_millis(10),
            jitter: Duration::ZERO,
            window: 65_536,
            chunk_max: 1_460,
            refuse: 0.0,
            lifetime: None,
            stall: 0.0,
        }
    }

    pub(crate) fn draw(rng: &mut Rng) -> Self {
        let window = if rng.chance(0.3) { 64 + rng.below(500) } else { 1_000 + rng.below(60_000) };
        let chunk = if rng.chance(0.3) { 20 } else { 5_000 };
        let lifetime_ms = if rng.chance(0.5) { 2_000 } else { 30_000 };
        StreamConditions {
            delay: Duration::from_micros(rng.below(2_000_000)),
            jitter: Duration::from_micros(rng.below(500_000)),
            window,
            chunk_max: 1 + rng.below(chunk),
            refuse: rng.unit() * 0.4,
            lifetime: rng.chance(0.8).then(|| Duration::from_millis(1 + rng.below(lifetime_ms))),
            stall: if rng.chance(0.5) { 0.3 } else { 0.0 },
        }
    }
}

/// Bytes of one direction.
#[derive(Debug, Default)]
struct Flow {
    /// Bytes in transit, with their time of arrival.
    moving: VecDeque<(Instant, Bytes)>,
    moving_bytes: u64,
    /// Bytes delivered and not released.
    unreleased: u64,
    /// Arrival of the end of the output, once written.
    fin: Option<Instant>,
    fin_told: bool,
    announced_room: u64,
}

#[derive(Debug)]
struct Connection {
    /// Node and link of the active and of the passive side.
    ends: [(usize, LinkId); 2],
    open: bool,
    /// Nothing is transported, and neither end is notified.
    stalled: bool,
    /// Ends that have received `Closed`.
    closed: [bool; 2],
    /// From end 0 to end 1, and back.
    flows: [Flow; 2],
}

#[derive(Debug)]
enum Event {
    /// Indicates the connection to the passive end, then to the active one.
    Open(usize),
    Fail(usize, CloseReason),
    Arrive(usize),
    Break(usize),
}

/// Streams between two nodes. Each node connects to the other on its links with numbers below
/// [`LinkId::FIRST_INCOMING`].
pub(crate) struct Streams {
    rng: Rng,
    conditions: StreamConditions,
    calm: bool,
    crashes: Vec<Crash>,
    connections: Vec<Connection>,
    /// Index of the current connection of a link.
    current: BTreeMap<(usize, LinkId), usize>,
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    up: VecDeque<(usize, (LinkId, StreamIndication))>,
    written: u64,
    faults: u64,
    next_incoming: u32,
    /// All written data: time, node, link, bytes.
    pub(crate) wire: Vec<(Instant, usize, LinkId, Bytes)>,
    keep_wire: bool,
    /// Number of requests for TLS.
    pub(crate) secured: u32,
    /// Identities proven to the active and to the passive side by TLS, and whether they are trusted.
    pub(crate) proven: [(Vec<String>, bool); 2],
}

impl Streams {
    pub(crate) fn new(rng: Rng, conditions: StreamConditions, crashes: Vec<Crash>) -> Self {
        Streams {
            rng,
            conditions,
            calm: false,
            crashes,
            connections: vec![],
            current: BTreeMap::new(),
            events: BTreeMap::new(),
            count: 0,
            up: VecDeque::new(),
            written: 0,
            faults: 0,
            next_incoming: LinkId::FIRST_INCOMING,
            wire: vec![],
            keep_wire: false,
            secured: 0,
            proven: [(vec![], true), (vec![], true)],
        }
    }

    /// Records everything that is written.
    #[cfg(test)]
    pub(crate) fn recording(mut self) -> Self {
        self.keep_wire = true;
        self
    }

    #[cfg(test)]
    pub(crate) fn conditions(&mut self) -> &mut StreamConditions {
        &mut self.conditions
    }

    /// Breaks every connection now; both ends are notified at once.
    #[cfg(test)]
    pub(crate) fn cut(&mut self, now: Instant) {
        for index in 0..self.connections.len() {
            self.break_off(now, index, CloseReason::TimedOut);
        }
    }

    /// Stalls every connection: bytes are lost and neither end is notified.
    #[cfg(test)]
    pub(crate) fn stall(&mut self) {
        for connection in &mut self.connections {
            connection.stalled = true;
        }
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    fn delay(&mut self) -> Duration {
        let jitter = self.conditions.jitter.as_nanos() as u64;
        self.conditions.delay + Duration::from_nanos(self.rng.below(jitter + 1))
    }

    fn is_down(&self, node: usize, now: Instant) -> bool {
        let down = |crash: &Crash| crash.node == node && crash.at <= now && now < crash.at + crash.off;
        self.crashes.iter().any(down) && !self.calm
    }

    fn tell(&mut self, index: usize, end: usize, indication: StreamIndication) {
        let connection = &self.connections[index];
        if !connection.closed[end] {
            let (node, link) = connection.ends[end];
            self.up.push_back((node, (link, indication)));
        }
    }

    fn tell_closed(&mut self, index: usize, end: usize, reason: CloseReason) {
        self.tell(index, end, StreamIndication::Closed(reason));
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
            stalled: false,
            closed: [false, true],
            flows: Default::default(),
        });
        self.current.insert((node, link), index);
        let delay = self.delay();
        if self.is_down(called.0, now) {
            self.at(now + delay * 4, Event::Fail(index, CloseReason::TimedOut));
        } else if !self.calm && self.rng.chance(self.conditions.refuse) {
            self.faults += 1;
            self.at(now + delay * 2, Event::Fail(index, CloseReason::Refused));
        } else {
            self.at(now + delay, Event::Open(index));
        }
    }

    fn open(&mut self, now: Instant, index: usize) {
        if self.connections[index].closed[0] {
            return;
        }
        let called = self.connections[index].ends[1];
        if self.is_down(called.0, now) {
            return self.tell_closed(index, 0, CloseReason::TimedOut);
        }
        self.connections[index].open = true;
        self.connections[index].closed[1] = false;
        self.current.insert(called, index);
        for end in [1, 0] {
            self.tell(index, end, StreamIndication::Connected);
            self.room(index, end);
        }
        if !self.calm
            && let Some(mean) = self.conditions.lifetime
        {
            let life = self.rng.exponential(mean.as_nanos() as f64);
            self.at(now + Duration::from_nanos(life as u64), Event::Break(index));
        }
    }

    /// Indicates to an end how much it may write.
    fn room(&mut self, index: usize, end: usize) {
        let flow = &mut self.connections[index].flows[end];
        let room = self.conditions.window.saturating_sub(flow.moving_bytes + flow.unreleased);
        if flow.announced_room != room && flow.fin.is_none() {
            flow.announced_room = room;
            self.tell(index, end, StreamIndication::Room(room));
        }
    }

    fn write(&mut self, now: Instant, index: usize, end: usize, bytes: Bytes) {
        self.written += 1;
        let arrival = now + self.delay();
        let flow = &mut self.connections[index].flows[end];
        flow.announced_room -= bytes.len() as u64;
        flow.moving_bytes += bytes.len() as u64;
        let last = flow.moving.back().map_or(Instant::ZERO, |&(at, _)| at);
        let arrival = arrival.max(last);
        flow.moving.push_back((arrival, bytes));
        self.at(arrival, Event::Arrive(index));
    }

    /// Delivers data that have arrived, in pieces of any size.
    fn arrive(&mut self, now: Instant, index: usize) {
        if self.connections[index].stalled {
            return;
        }
        for end in 0..2 {
            let mut there = BytesMut::new();
            let flow = &mut self.connections[index].flows[end];
            while let Some((at, _)) = flow.moving.front()
                && *at <= now
            {
                there.extend_from_slice(&flow.moving.pop_front().expect("just seen").1);
            }
            flow.moving_bytes -= there.len() as u64;
            flow.unreleased += there.len() as u64;
            let mut there = there.freeze();
            while !there.is_empty() {
                let most = self.conditions.chunk_max.min(there.len() as u64);
                let length = 1 + self.rng.below(most);
                let chunk = there.split_to(length as usize);
                self.tell(index, 1 - end, StreamIndication::Data(chunk));
            }
            let flow = &mut self.connections[index].flows[end];
            if flow.fin.is_some_and(|at| at <= now) && flow.moving.is_empty() && !flow.fin_told {
                flow.fin_told = true;
                self.tell(index, 1 - end, StreamIndication::PeerClosed);
            }
        }
        if self.connections[index].flows.iter().all(|flow| flow.fin_told) {
            for end in 0..2 {
                self.tell_closed(index, end, CloseReason::Finished);
            }
        }
    }

    fn break_off(&mut self, now: Instant, index: usize, reason: CloseReason) {
        // Data in transit arrive up to some byte.
        self.arrive(now, index);
        let stalled = self.connections[index].stalled;
        for end in 0..2 {
            let flow = &mut self.connections[index].flows[end];
            let front = flow.moving.drain(..).next().filter(|_| !stalled);
            if let Some((_, mut bytes)) = front {
                let length = self.rng.below(bytes.len() as u64 + 1);
                let part = bytes.split_to(length as usize);
                if !part.is_empty() {
                    self.tell(index, 1 - end, StreamIndication::Data(part));
                }
            }
        }
        for end in 0..2 {
            self.tell_closed(index, end, reason);
        }
    }
}

impl Environment<Many<LinkId, Stream>> for Streams {
    fn handle_request(&mut self, now: Instant, node: usize, (link, request): (LinkId, StreamRequest)) {
        if request == StreamRequest::Connect {
            return self.connect(now, node, link);
        }
        let Some(&index) = self.current.get(&(node, link)) else { return };
        let end = usize::from(self.connections[index].ends[1] == (node, link));
        match request {
            StreamRequest::Connect => unreachable!("dealt with above"),
            StreamRequest::Write(bytes) => {
                if self.keep_wire {
                    self.wire.push((now, node, link, bytes.clone()));
                }
                self.write(now, index, end, bytes);
            }
            StreamRequest::Release(bytes) => {
                self.connections[index].flows[1 - end].unreleased -= bytes;
                // The window's update takes its time, too, but a write that crosses it is what matters here.
                self.room(index, 1 - end);
            }
            StreamRequest::Close => {
                let arrival = now + self.delay();
                let flow = &mut self.connections[index].flows[end];
                let arrival = arrival.max(flow.moving.back().map_or(Instant::ZERO, |&(at, _)| at));
                flow.fin = Some(arrival);
                self.at(arrival, Event::Arrive(index));
            }
            StreamRequest::Abort => {
                if self.connections[index].open {
                    self.tell_closed(index, end, CloseReason::Aborted);
                    if !self.connections[index].stalled {
                        let delay = self.delay();
                        self.at(now + delay, Event::Fail(index, CloseReason::Reset));
                    } else {
                        // The other end detects it by itself.
                        self.at(now + Duration::from_secs(120), Event::Fail(index, CloseReason::TimedOut));
                    }
                } else {
                    self.tell_closed(index, 0, CloseReason::Aborted);
                }
            }
            StreamRequest::Secure { .. } => {
                self.secured += 1;
                let (identities, trusted) = self.proven[end].clone();
                self.tell(index, end, StreamIndication::Secured { identities, trusted });
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
                Event::Fail(index, reason) => {
                    for end in 0..2 {
                        self.tell_closed(index, end, reason);
                    }
                }
                Event::Arrive(index) => self.arrive(now, index),
                Event::Break(_) if self.calm => {}
                Event::Break(index) if self.rng.chance(self.conditions.stall) => {
                    self.faults += 1;
                    self.connections[index].stalled = true;
                    self.at(now + Duration::from_secs(900), Event::Fail(index, CloseReason::TimedOut));
                }
                Event::Break(index) => {
                    self.faults += 1;
                    self.break_off(now, index, CloseReason::Reset);
                }
            }
        }
    }

    fn poll_indication(&mut self) -> Option<(usize, (LinkId, StreamIndication))> {
        self.up.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.events.first_key_value().map(|(&(at, _), _)| at)
    }

    fn crash(&mut self, now: Instant, node: usize) {
        self.up.retain(|&(to, _)| to != node);
        for index in 0..self.connections.len() {
            let Some(end) = self.connections[index].ends.iter().position(|&(at, _)| at == node) else {
                continue;
            };
            let key = self.connections[index].ends[end];
            self.connections[index].closed[end] = true;
            self.connections[index].stalled = true;
            self.current.remove(&key);
            let delay = self.delay();
            self.at(now + delay, Event::Fail(index, CloseReason::Reset));
        }
    }

    fn calm(&mut self, _now: Instant) {
        self.calm = true;
    }

    fn carried(&self) -> u64 {
        self.written
    }

    fn faults(&self) -> u64 {
        self.faults
    }
}
