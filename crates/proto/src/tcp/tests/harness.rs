//! Two hosts over a line with a rate, a delay and a delivery rule for each frame, in virtual time.

use crate::engine::{Engine, drain};
use crate::rng::Rng;
use crate::service::{
    CloseReason, FramesIndication, FramesRequest, InterfaceId, LinkId, Shares, StreamIndication,
    StreamRequest,
};
use crate::tcp::config::{HostConfig, InterfaceConfig, PeerConfig, Profile};
use crate::tcp::congestion::THRESHOLD_UNKNOWN;
use crate::tcp::connection::Connection;
use crate::tcp::wire::{Flags, Packet};
use crate::tcp::{Counters, Host, State};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use core::net::Ipv4Addr;
use std::collections::{BTreeMap, VecDeque};

/// Link on which the first host connects to the second.
pub(super) const CALL: LinkId = LinkId(1);
const PORT: u16 = 4556;
const LINE: InterfaceId = InterfaceId(0);

/// Delivery rule for frames: returns the delays after which copies of a frame arrive; empty if the frame is lost.
pub(super) type Fate = Box<dyn FnMut(usize, &Packet) -> Vec<Duration>>;

/// User of one side: writes its data, releases what it receives.
#[derive(Default)]
pub(super) struct User {
    pub(super) link: Option<LinkId>,
    pub(super) to_write: VecDeque<Bytes>,
    pub(super) close_when_written: bool,
    pub(super) close_with_peer: bool,
    pub(super) holds: bool,
    pub(super) room: u64,
    pub(super) held: u64,
    pub(super) received: Vec<u8>,
    pub(super) received_at: Instant,
    pub(super) connected_at: Option<Instant>,
    pub(super) peer_closed: bool,
    pub(super) closed: Option<(Instant, CloseReason)>,
    requests: VecDeque<(LinkId, StreamRequest)>,
}

impl User {
    pub(super) fn ask(&mut self, request: StreamRequest) {
        let link = self.link.expect("there is a connection");
        self.requests.push_back((link, request));
    }

    fn hear(&mut self, now: Instant, link: LinkId, indication: StreamIndication) {
        match indication {
            StreamIndication::Connected => {
                self.link = Some(link);
                self.connected_at = Some(now);
            }
            StreamIndication::Room(room) => self.room = room,
            StreamIndication::Data(data) => {
                self.received.extend_from_slice(&data);
                self.received_at = now;
                if self.holds {
                    self.held += data.len() as u64;
                } else {
                    self.requests.push_back((link, StreamRequest::Release(data.len() as u64)));
                }
            }
            StreamIndication::PeerClosed => {
                self.peer_closed = true;
                self.close_when_written |= self.close_with_peer;
            }
            StreamIndication::Closed(reason) => {
                self.room = 0;
                self.closed = Some((now, reason));
            }
            StreamIndication::Secured { .. } => panic!("nobody asked for it"),
        }
    }

    fn write(&mut self) {
        let Some(link) = self.link.filter(|_| self.closed.is_none()) else {
            return;
        };
        while self.room > 0
            && let Some(chunk) = self.to_write.front_mut()
        {
            let part = chunk.split_to(chunk.len().min(self.room as usize));
            self.room -= part.len() as u64;
            if chunk.is_empty() {
                self.to_write.pop_front();
            }
            self.requests.push_back((link, StreamRequest::Write(part)));
        }
        if self.to_write.is_empty() && core::mem::take(&mut self.close_when_written) {
            self.requests.push_back((link, StreamRequest::Close));
        }
    }
}

enum Event {
    Arrive(usize, Bytes),
    LineFree(usize),
}

/// Two hosts and the line between them.
pub(super) struct World {
    pub(super) now: Instant,
    pub(super) hosts: [Host; 2],
    pub(super) users: [User; 2],
    pub(super) rate_bps: u64,
    pub(super) fate: Fate,
    /// The line accepts no frames from this side.
    pub(super) jammed: [bool; 2],
    line_busy: [bool; 2],
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    /// One line per frame: time, sender, content.
    pub(super) timeline: Vec<String>,
    pub(super) shares: [Shares; 2],
    pub(super) frames: [u64; 2],
    pub(super) bytes: [u64; 2],
    numbers: [Option<u32>; 2],
    last_packets: [Option<Packet>; 2],
}

/// A rule that delivers every frame once, after `delay`.
pub(super) fn fixed(delay: Duration) -> Fate {
    Box::new(move |_, _| vec![delay])
}

impl World {
    /// Creates two hosts with the same profile, over a line without loss.
    pub(super) fn new(profile: &Profile, rate_bps: u64, delay: Duration) -> Self {
        World::of([profile.clone(), profile.clone()], rate_bps, delay, 1)
    }

    pub(super) fn of(profiles: [Profile; 2], rate_bps: u64, delay: Duration, seed: u64) -> Self {
        let rng = Rng::new(seed);
        let address = |side: usize| Ipv4Addr::new(10, 0, 0, 1 + side as u8);
        let mut side = 0;
        let hosts = profiles.map(|profile| {
            let config = HostConfig {
                profile,
                interfaces: vec![InterfaceConfig { address: address(side), ..InterfaceConfig::default() }],
                listen: vec![PORT],
                peers: vec![PeerConfig { link: CALL, address: address(1 - side), port: PORT }],
                ..HostConfig::default()
            };
            side += 1;
            Host::new(config, rng.fork(if side == 1 { "one" } else { "two" }))
        });
        World {
            now: Instant::ZERO,
            hosts,
            users: [User::default(), User { close_with_peer: true, ..User::default() }],
            rate_bps,
            fate: fixed(delay),
            jammed: [false; 2],
            line_busy: [false; 2],
            events: BTreeMap::new(),
            count: 0,
            timeline: Vec::new(),
            shares: [Shares::default(); 2],
            frames: [0; 2],
            bytes: [0; 2],
            numbers: [None; 2],
            last_packets: [None, None],
        }
    }

    /// Opens the connection from the first host.
    pub(super) fn connect(&mut self) {
        self.call(0);
    }

    pub(super) fn call(&mut self, side: usize) {
        self.users[side].link = Some(CALL);
        self.users[side].closed = None;
        self.users[side].ask(StreamRequest::Connect);
        self.settle(side);
    }

    pub(super) fn request(&mut self, side: usize, request: StreamRequest) {
        self.users[side].ask(request);
        self.settle(side);
    }

    /// Gives bytes to a user, who writes them as there is room.
    pub(super) fn write(&mut self, side: usize, bytes: impl Into<Bytes>) {
        self.users[side].to_write.push_back(bytes.into());
        self.settle(side);
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    /// Drains one host, whose user answers at once.
    pub(super) fn settle(&mut self, side: usize) {
        loop {
            self.users[side].write();
            if let Some((link, request)) = self.users[side].requests.pop_front() {
                self.hosts[side].handle_request(self.now, (link, request));
                continue;
            }
            if let Some((link, indication)) = self.hosts[side].poll_indication(self.now) {
                self.users[side].hear(self.now, link, indication);
                continue;
            }
            match self.hosts[side].poll_request(self.now) {
                Some((_, request)) => self.carry(side, request),
                None => return,
            }
        }
    }

    fn tell(&mut self, side: usize, indication: FramesIndication) {
        self.hosts[side].handle_indication(self.now, (LINE, indication));
    }

    fn carry(&mut self, side: usize, request: FramesRequest) {
        let FramesRequest::Frame { bytes, shares, .. } = request else {
            return self.tell_room(side);
        };
        let packet = Packet::decode(&mut bytes.clone()).expect("a host makes good frames");
        self.note(side, &packet, bytes.len(), shares);
        self.last_packets[side] = Some(packet.clone());
        let airtime = Duration::from_nanos(bytes.len() as u64 * 8 * 1_000_000_000 / self.rate_bps);
        self.line_busy[side] = true;
        self.schedule(self.now + airtime, Event::LineFree(side));
        for delay in (self.fate)(side, &packet) {
            self.schedule(self.now + airtime + delay, Event::Arrive(1 - side, bytes.clone()));
        }
    }

    pub(super) fn tell_room(&mut self, side: usize) {
        let room = u32::from(!self.line_busy[side] && !self.jammed[side]);
        self.tell(side, FramesIndication::Room(room));
    }

    fn note(&mut self, side: usize, packet: &Packet, length: usize, shares: Shares) {
        let total = &mut self.shares[side];
        total.payload += shares.payload;
        total.repeated += shares.repeated;
        total.acknowledgement += shares.acknowledgement;
        total.control += shares.control;
        self.frames[side] += 1;
        self.bytes[side] += length as u64;
        let sum = shares.payload + shares.repeated + shares.acknowledgement + shares.control;
        assert!(sum as usize <= length, "shares beyond the frame");
        let segment = &packet.segment;
        if segment.flags.contains(Flags::SYN) {
            self.numbers[side] = Some(segment.sequence);
        }
        let offset = |number: u32, base: Option<u32>| number.wrapping_sub(base.unwrap_or(number));
        let mut line = format!(
            "{:>7.3} {} {:?} {}+{}",
            self.now.as_secs_f64(),
            if side == 0 { "->" } else { "<-" },
            segment.flags,
            offset(segment.sequence, self.numbers[side]),
            segment.payload.len()
        );
        if segment.flags.contains(Flags::ACK) {
            line += &format!(" ack {}", offset(segment.acknowledgement, self.numbers[1 - side]));
        }
        for (start, end) in segment.options.sack.as_slice() {
            let base = self.numbers[1 - side];
            line += &format!(" [{}-{}]", offset(*start, base), offset(*end, base));
        }
        if shares.repeated > 0 {
            line += " again";
        }
        self.timeline.push(line);
    }

    /// Returns the last packet that a side sent.
    pub(super) fn last_packet(&self, side: usize) -> &Packet {
        self.last_packets[side].as_ref().expect("something was sent")
    }

    /// Delivers a packet to a side that the other side never sent.
    pub(super) fn deliver(&mut self, side: usize, packet: &Packet) {
        let mut out = BytesMut::new();
        packet.encode(&mut out);
        self.tell(side, FramesIndication::Frame(out.freeze()));
        self.settle(side);
    }

    /// Returns the time of the next event or timer.
    fn next(&self) -> Option<Instant> {
        let event = self.events.keys().next().map(|(at, _)| *at);
        self.hosts.iter().filter_map(Host::poll_timeout).chain(event).min()
    }

    /// Processes the next event. Returns false if there is none.
    pub(super) fn step(&mut self) -> bool {
        let Some(at) = self.next() else {
            return false;
        };
        self.now = self.now.max(at);
        if self.events.first_key_value().is_some_and(|((at, _), _)| *at <= self.now) {
            let (_, event) = self.events.pop_first().expect("there is one");
            match event {
                Event::Arrive(side, bytes) => {
                    self.tell(side, FramesIndication::Frame(bytes));
                    self.settle(side);
                }
                Event::LineFree(side) => {
                    self.line_busy[side] = false;
                    self.tell_room(side);
                    self.settle(side);
                }
            }
        } else {
            for side in 0..2 {
                if self.hosts[side].poll_timeout().is_some_and(|at| at <= self.now) {
                    self.hosts[side].handle_timeout(self.now);
                    self.settle(side);
                }
            }
        }
        true
    }

    pub(super) fn run_until(&mut self, end: Instant) {
        while self.next().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// Runs until there are no more events, or panics at `limit`.
    pub(super) fn run_to_quiet(&mut self, limit: Instant) {
        while self.next().is_some() {
            assert!(self.now < limit, "not quiet at {limit}:\n{}", self.story());
            self.step();
        }
    }

    pub(super) fn run_while(&mut self, limit: Instant, mut condition: impl FnMut(&Self) -> bool) {
        while condition(self) {
            assert!(self.now < limit, "still so at {limit}:\n{}", self.story());
            assert!(self.step(), "nothing ever happens again:\n{}", self.story());
        }
    }

    /// Returns the last part of the timeline.
    pub(super) fn story(&self) -> String {
        self.timeline[self.timeline.len().saturating_sub(60)..].join("\n")
    }

    /// Returns the statistics of a side's connection.
    pub(super) fn statistics(&self, side: usize) -> Statistics {
        let mut all = self.hosts[side].connections();
        Statistics::of(all.next().expect("there is a connection").1)
    }

    /// Returns the bytes that a side has received.
    pub(super) fn received(&self, side: usize) -> &[u8] {
        &self.users[side].received
    }
}

/// Snapshot of a connection.
#[derive(Clone, Debug)]
pub(super) struct Statistics {
    pub(super) state: State,
    pub(super) congestion_window_bytes: u64,
    /// Slow-start threshold, bytes; `None` before the first loss.
    pub(super) slow_start_threshold_bytes: Option<u64>,
    /// Data sent and not acknowledged, bytes.
    pub(super) flight_bytes: u64,
    pub(super) smoothed_round_trip: Option<Duration>,
    pub(super) round_trip_variance: Duration,
    /// Current retransmission timeout, including backoff.
    pub(super) retransmission_timeout: Duration,
    /// Payload of a full segment, bytes.
    pub(super) segment_bytes: u64,
    /// Payload acknowledged by the peer, bytes.
    pub(super) acknowledged_bytes: u64,
    pub(super) counters: Counters,
}

impl Statistics {
    pub(super) fn of(connection: &Connection) -> Statistics {
        let threshold = connection.congestion.threshold;
        let fin_acknowledged = connection.fin_sent && connection.unacknowledged == connection.next;
        Statistics {
            state: connection.state,
            congestion_window_bytes: connection.congestion.window,
            slow_start_threshold_bytes: (threshold != THRESHOLD_UNKNOWN).then_some(threshold),
            flight_bytes: connection.flight(),
            smoothed_round_trip: connection.rtt.smoothed(),
            round_trip_variance: connection.rtt.variation(),
            retransmission_timeout: connection.rtt.timeout(),
            segment_bytes: connection.segment,
            acknowledged_bytes: connection.unacknowledged.saturating_sub(1 + u64::from(fin_acknowledged)),
            counters: connection.counters,
        }
    }
}

/// Bytes in which every position is distinguishable.
pub(super) fn pattern(length: usize) -> Bytes {
    let mut rng = Rng::new(99);
    let mut bytes = vec![0; length];
    rng.fill(&mut bytes);
    bytes.into()
}

/// Drains a host without its user, for tests of single calls.
pub(super) fn drain_all(host: &mut Host, now: Instant) -> (Vec<StreamIndication>, Vec<Packet>) {
    let (mut up, mut down) = (Vec::new(), Vec::new());
    drain(
        host,
        now,
        |(_, indication)| up.push(indication),
        |(_, request)| {
            if let FramesRequest::Frame { bytes, .. } = request {
                down.push(Packet::decode(&mut bytes.clone()).expect("a host makes good frames"));
            }
        },
    );
    (up, down)
}
