//! Users of connections: they connect to each other, both write, both close; the passive one identifies the connection
//! by the first two bytes.

use super::{Draw, Users};
use crate::rng::Rng;
use crate::service::{CloseReason, LinkId, Many, Stream, StreamIndication, StreamRequest};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

type NodePort = (usize, LinkId);

/// Data that two users exchange.
#[derive(Debug)]
struct Call {
    caller: NodePort,
    /// Data of the active user, without the two bytes, and of the passive one.
    contents: [Bytes; 2],
    attempts: u8,
    done: bool,
    /// Number of bytes of the last attempt that the passive user has received, while its node runs.
    received: Option<u64>,
}

/// One side of an attempt.
#[derive(Debug, Default)]
struct Side {
    caller: bool,
    /// The connection and the attempt, once known.
    call: Option<(usize, u8)>,
    /// The first bytes, until there are two.
    head: Vec<u8>,
    written: u64,
    received: u64,
    room: u64,
    connected: bool,
    closing: bool,
    peer_closed: bool,
    aborted: bool,
    last_heard: Instant,
}

#[derive(Debug)]
enum Action {
    Call(usize),
    Release(NodePort, u32, u64),
    /// Aborts if nothing was received for a long time.
    Watch(NodePort, u32),
    Abort(NodePort, u32),
}

/// Users of two nodes.
pub(crate) struct StreamUsers {
    rng: Rng,
    /// False if bytes are damaged beyond the capability of checksums: then only ends are checked.
    trusting: bool,
    faults_are_on: bool,
    running: [bool; 2],
    calls: Vec<Call>,
    sides: BTreeMap<NodePort, (u32, Side)>,
    generation: u32,
    actions: BTreeMap<(Instant, u64), Action>,
    count: u64,
    requests: VecDeque<(usize, (LinkId, StreamRequest))>,
    write_max: u64,
    slow: Duration,
    aborts: f64,
}

impl StreamUsers {
    /// Idle time after which a user aborts a connection.
    const SILENCE_MAX: Duration = Duration::from_secs(1_500);

    /// Creates the users. `callers` contains a node and its link for each connection; `bytes_max` limits the data of
    /// each side.
    pub(crate) fn new(mut rng: Rng, callers: &[NodePort], bytes_max: u64, trusting: bool) -> Self {
        let mut calls = vec![];
        for &caller in callers {
            let contents = [(); 2].map(|()| {
                let most = if rng.chance(0.3) { 10 } else { bytes_max };
                let mut content = vec![0; rng.below(most + 1) as usize];
                rng.fill(&mut content);
                Bytes::from(content)
            });
            calls.push(Call { caller, contents, attempts: 0, done: false, received: None });
        }
        let write_bound = if rng.chance(0.2) { 30 } else { 5_000 };
        StreamUsers {
            trusting,
            faults_are_on: true,
            running: [false; 2],
            calls,
            sides: BTreeMap::new(),
            generation: 0,
            actions: BTreeMap::new(),
            count: 0,
            requests: VecDeque::new(),
            // Single bytes for long data test nothing new, and take too long.
            write_max: (1 + rng.below(write_bound)).max(bytes_max / 1_000),
            slow: if rng.chance(0.5) {
                Duration::ZERO
            } else {
                rng.span(Duration::ZERO, Duration::from_secs(5))
            },
            aborts: rng.share(0.01),
            rng,
        }
    }

    fn at(&mut self, at: Instant, action: Action) {
        self.count += 1;
        self.actions.insert((at, self.count), action);
    }

    fn ask(&mut self, port: NodePort, request: StreamRequest) {
        self.requests.push_back((port.0, (port.1, request)));
    }

    fn new_side(&mut self, now: Instant, port: NodePort, side: Side) {
        self.generation += 1;
        let side = Side { last_heard: now, ..side };
        self.sides.insert(port, (self.generation, side));
        self.at(now + Self::SILENCE_MAX, Action::Watch(port, self.generation));
    }

    fn call(&mut self, now: Instant, number: usize) {
        let call = &mut self.calls[number];
        let port = call.caller;
        if call.done || !self.running[port.0] || self.sides.contains_key(&port) {
            return;
        }
        call.attempts = call.attempts.wrapping_add(1);
        call.received = Some(0);
        let known = Some((number, call.attempts));
        self.new_side(now, port, Side { caller: true, call: known, ..Side::default() });
        self.ask(port, StreamRequest::Connect);
    }

    /// Returns the data to be written by this side: those of the active user begin with the two bytes.
    fn writes(&self, side: &Side) -> Option<Bytes> {
        let (number, attempt) = side.call?;
        if !side.caller {
            return Some(self.calls[number].contents[1].clone());
        }
        Some([&[number as u8, attempt], &self.calls[number].contents[0][..]].concat().into())
    }

    /// Returns the data that the other side writes.
    fn expects(&self, side: &Side) -> Option<Bytes> {
        let (number, attempt) = side.call?;
        if side.caller {
            return Some(self.calls[number].contents[1].clone());
        }
        Some([&[number as u8, attempt], &self.calls[number].contents[0][..]].concat().into())
    }

    fn hears_data(&mut self, now: Instant, port: NodePort, data: &Bytes) {
        let (generation, side) = self.sides.get_mut(&port).expect("the account knows it");
        let generation = *generation;
        if side.call.is_none() {
            side.head.extend_from_slice(data);
            if let &[number, attempt, ..] = &side.head[..] {
                let known = self.calls.get(usize::from(number)).is_some_and(|call| call.caller.0 != port.0);
                assert!(known || !self.trusting, "a call that nobody made: {number}");
                side.call = known.then_some((usize::from(number), attempt));
            }
        }
        let from = side.received as usize;
        side.received += data.len() as u64;
        let (received, side) = (side.received, &self.sides[&port].1);
        if let Some(expected) = self.expects(side)
            && self.trusting
        {
            let head = side.head.len().min(2);
            let same = if side.caller || from >= head {
                expected.get(from..from + data.len()) == Some(&data[..])
            } else {
                // The first bytes may have arrived one by one.
                expected.get(..side.head.len()) == Some(&side.head[..])
            };
            assert!(same, "bytes from {from} on {port:?} are not what was written");
            if let Some((number, attempt)) = side.call
                && !side.caller
                && self.calls[number].attempts == attempt
            {
                self.calls[number].received = Some(received);
            }
        }
        let delay =
            if self.faults_are_on { self.rng.span(Duration::ZERO, self.slow) } else { Duration::ZERO };
        self.at(now + delay, Action::Release(port, generation, data.len() as u64));
        if self.faults_are_on && self.rng.chance(self.aborts) {
            self.at(now, Action::Abort(port, generation));
        }
    }

    fn hears_end(&mut self, now: Instant, port: NodePort, reason: CloseReason) {
        let (_, side) = self.sides.remove(&port).expect("the account knows it");
        let finished = reason == CloseReason::Finished;
        if finished && self.trusting {
            assert!(side.peer_closed, "Finished on {port:?}, but the peer has not closed");
            assert!(side.closing, "Finished on {port:?}, but this side has not closed");
        }
        let Some((number, _)) = side.call.filter(|_| side.caller) else { return };
        if finished && self.trusting {
            let call = &self.calls[number];
            let written = 2 + call.contents[0].len() as u64;
            let received = call.received.unwrap_or(written);
            assert_eq!(received, written, "Finished on {port:?}, and not everything has arrived");
        }
        if finished || (!self.trusting && !self.faults_are_on) {
            self.calls[number].done = true;
        } else {
            let soon = now + Duration::from_millis(1 + self.rng.below(5_000));
            self.at(soon, Action::Call(number));
        }
    }

    fn abort(&mut self, port: NodePort) {
        let (_, side) = self.sides.get_mut(&port).expect("a side");
        if !core::mem::replace(&mut side.aborted, true) {
            self.ask(port, StreamRequest::Abort);
        }
    }

    fn is_current(&self, port: NodePort, generation: u32) -> bool {
        self.sides.get(&port).is_some_and(|(current, _)| *current == generation)
    }
}

impl Users<Many<LinkId, Stream>> for StreamUsers {
    fn started(&mut self, now: Instant, node: usize) {
        self.running[node] = true;
        for number in 0..self.calls.len() {
            if self.calls[number].caller.0 == node {
                let soon = now + Duration::from_millis(self.rng.below(3_000));
                self.at(soon, Action::Call(number));
            }
        }
    }

    fn crashed(&mut self, _now: Instant, node: usize) {
        self.running[node] = false;
        self.requests.retain(|&(at, _)| at != node);
        self.sides.retain(|port, _| port.0 != node);
        for call in self.calls.iter_mut().filter(|call| call.caller.0 != node) {
            call.received = None;
        }
    }

    fn calm(&mut self, now: Instant) {
        self.faults_are_on = false;
        for number in 0..self.calls.len() {
            self.at(now, Action::Call(number));
        }
    }

    fn handle_indication(&mut self, now: Instant, node: usize, (link, said): (LinkId, StreamIndication)) {
        let port = (node, link);
        if said == StreamIndication::Connected && !self.sides.contains_key(&port) {
            assert!(link.is_incoming(), "{link:?} of a peer that called");
            self.new_side(now, port, Side::default());
        }
        let (_, side) = self.sides.get_mut(&port).expect("the account knows it");
        side.last_heard = now;
        match said {
            StreamIndication::Connected => side.connected = true,
            StreamIndication::Room(room) => side.room = room,
            StreamIndication::Data(data) => self.hears_data(now, port, &data),
            StreamIndication::PeerClosed => {
                side.peer_closed = true;
                let side = &self.sides[&port].1;
                if let Some(expected) = self.expects(side).filter(|_| self.trusting) {
                    let (received, whole) = (side.received, expected.len() as u64);
                    assert_eq!(
                        received, whole,
                        "the peer closed on {port:?}, and not everything has arrived"
                    );
                }
            }
            StreamIndication::Closed(reason) => self.hears_end(now, port, reason),
            StreamIndication::Secured { .. } => unreachable!("no TLS in this world"),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.actions.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Action::Call(number) => self.call(now, number),
                Action::Release(port, generation, bytes) => {
                    if self.is_current(port, generation) {
                        self.ask(port, StreamRequest::Release(bytes));
                    }
                }
                Action::Watch(port, generation) => {
                    if !self.is_current(port, generation) {
                        continue;
                    }
                    let due = self.sides[&port].1.last_heard + Self::SILENCE_MAX;
                    if due <= now {
                        self.abort(port);
                    } else {
                        self.at(due, Action::Watch(port, generation));
                    }
                }
                Action::Abort(port, generation) => {
                    if self.is_current(port, generation) {
                        self.abort(port);
                    }
                }
            }
        }
    }

    fn poll_request(&mut self, _now: Instant) -> Option<(usize, (LinkId, StreamRequest))> {
        if let Some(request) = self.requests.pop_front() {
            return Some(request);
        }
        let ports: Vec<_> = self.sides.keys().copied().collect();
        for port in ports {
            let side = &self.sides[&port].1;
            if !side.connected || side.closing || side.aborted {
                continue;
            }
            // A passive user that has received the end before two bytes writes nothing.
            let silent = side.call.is_none() && side.peer_closed;
            let Some(content) = self.writes(side).or_else(|| silent.then(Bytes::new)) else { continue };
            let (write_max, side) = (self.write_max, &mut self.sides.get_mut(&port).expect("listed").1);
            let left = content.slice(side.written as usize..);
            if left.is_empty() {
                side.closing = true;
                return Some((port.0, (port.1, StreamRequest::Close)));
            }
            let size = side.room.min(write_max).min(left.len() as u64);
            if size > 0 {
                side.room -= size;
                side.written += size;
                return Some((port.0, (port.1, StreamRequest::Write(left.slice(..size as usize)))));
            }
        }
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.actions.first_key_value().map(|(&(at, _), _)| at)
    }

    fn sent(&self) -> u64 {
        self.calls.iter().filter(|call| call.done).count() as u64
    }

    fn unsettled(&self) -> Option<String> {
        if let Some(call) = self.calls.iter().find(|call| !call.done) {
            return Some(format!("{:?} has not got through in {} attempts", call.caller, call.attempts));
        }
        let port = self.sides.keys().next()?;
        Some(format!("{port:?} is still open"))
    }
}
