//! Stations on one half-duplex channel: the one that seizes it has it alone, and frames are lost at random.

use crate::ax25::hdlc::air_bits;
use crate::ax25::{Callsign, Config, Frame, Modulo, Station};
use crate::engine::Engine;
use crate::rng::Rng;
use crate::service::{
    CloseReason, DatagramsIndication, FramesIndication, FramesRequest, LinkId, PacketsIndication,
    PacketsRequest, Port,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Room for frames in one key-up.
const KEY_UP_FRAMES: u32 = 64;

/// Data and received indications of a station's user.
#[derive(Default)]
pub(super) struct User {
    pub(super) to_send: BTreeMap<LinkId, VecDeque<Bytes>>,
    room: BTreeMap<LinkId, u64>,
    /// Maximum and best packet sizes, bytes.
    pub(super) takes: BTreeMap<LinkId, (u32, u32)>,
    pub(super) heard: BTreeMap<LinkId, Vec<Bytes>>,
    pub(super) acknowledged: BTreeMap<LinkId, u64>,
    pub(super) open: BTreeSet<LinkId>,
    pub(super) closed: Vec<(LinkId, CloseReason)>,
    /// True if received packets are not released.
    pub(super) holds: bool,
    pub(super) unconnected: Vec<Bytes>,
}

pub(super) struct Node {
    pub(super) station: Checked<Station>,
    pub(super) user: User,
    wants: bool,
}

struct Burst {
    from: usize,
    ends: VecDeque<(Instant, Bytes, Option<u64>)>,
    over: Instant,
}

pub(super) struct Channel {
    pub(super) now: Instant,
    pub(super) nodes: Vec<Node>,
    rate_bps: u64,
    key: Duration,
    pub(super) loss: f64,
    /// Pairs of stations without reception, receiver first.
    pub(super) deaf: BTreeSet<(usize, usize)>,
    /// Frames to lose, by the number of frames sent before.
    pub(super) lose: BTreeSet<u64>,
    pub(super) sent: u64,
    rng: Rng,
    burst: Option<Burst>,
    /// Beginning of each transmission, and its station.
    pub(super) key_ups: Vec<(Instant, usize)>,
    /// All frames on the channel.
    pub(super) log: Vec<(Instant, usize, Bytes)>,
}

impl Channel {
    pub(super) fn new(seed: u64, configs: Vec<Config>) -> Self {
        let rate_bps = u64::from(configs[0].radio.rate_bps);
        let key = configs[0].radio.tx_delay + configs[0].radio.tx_tail;
        let node = |config| Node {
            station: Checked::new("station", Station::new(config)),
            user: User::default(),
            wants: false,
        };
        Channel {
            now: Instant::ZERO,
            nodes: configs.into_iter().map(node).collect(),
            rate_bps,
            key,
            loss: 0.0,
            deaf: BTreeSet::new(),
            lose: BTreeSet::new(),
            sent: 0,
            rng: Rng::new(seed),
            burst: None,
            key_ups: Vec::new(),
            log: Vec::new(),
        }
    }

    pub(super) fn request(&mut self, at: usize, link: LinkId, request: PacketsRequest) {
        let now = self.now;
        self.nodes[at].station.handle_request(now, Port::First((link, request)));
    }

    /// Passes packets down as room allows, from now on.
    pub(super) fn send(&mut self, at: usize, link: LinkId, packets: impl IntoIterator<Item = Bytes>) {
        self.nodes[at].user.to_send.entry(link).or_default().extend(packets);
    }

    /// Drains all nodes until none has anything left. Returns the frames of the node that has the channel.
    fn drain(&mut self) -> Vec<(Bytes, Option<u64>)> {
        let mut frames = Vec::new();
        let now = self.now;
        for node in &mut self.nodes {
            loop {
                let said = node.station.poll_indication(now);
                if let Some(said) = said {
                    node.hear(now, said);
                    continue;
                }
                if node.act(now) {
                    continue;
                }
                match node.station.poll_request(now) {
                    Some(FramesRequest::Join) => {}
                    Some(FramesRequest::Seize) => node.wants = true,
                    Some(FramesRequest::Frame { bytes, token, .. }) => frames.push((bytes, token)),
                    None => break,
                }
            }
        }
        frames
    }

    /// Advances the time by one step. Returns false if nothing is left to happen.
    pub(super) fn step(&mut self) -> bool {
        let early = self.drain();
        assert!(early.is_empty(), "frames without room");
        if self.burst.is_none() {
            let wanting: Vec<usize> = (0..self.nodes.len()).filter(|at| self.nodes[*at].wants).collect();
            if !wanting.is_empty() {
                let from = wanting[self.rng.below(wanting.len() as u64) as usize];
                self.key_up(from);
                return true;
            }
        }
        let timeout = self.nodes.iter().filter_map(|node| node.station.poll_timeout()).min();
        let air = self.burst.as_ref().map(|burst| burst.ends.front().map_or(burst.over, |end| end.0));
        let Some(next) = [timeout, air].into_iter().flatten().min() else { return false };
        self.now = self.now.max(next);
        if air == Some(next) {
            self.air();
        }
        let now = self.now;
        for node in &mut self.nodes {
            if node.station.poll_timeout().is_some_and(|at| at <= now) {
                node.station.handle_timeout(now);
            }
        }
        true
    }

    fn key_up(&mut self, from: usize) {
        let now = self.now;
        self.nodes[from].wants = false;
        self.nodes[from].station.handle_indication(now, FramesIndication::Room(KEY_UP_FRAMES));
        let frames = self.drain();
        self.nodes[from].station.handle_indication(now, FramesIndication::Room(0));
        if frames.is_empty() {
            return;
        }
        self.key_ups.push((now, from));
        let mut at = now + self.key;
        let ends = frames.into_iter().map(|(bytes, token)| {
            let bits = air_bits(&bytes) + 8;
            at += Duration::from_nanos(bits * 1_000_000_000 / self.rate_bps);
            (at, bytes, token)
        });
        let ends: VecDeque<_> = ends.collect();
        self.burst = Some(Burst { from, ends, over: at });
    }

    fn air(&mut self) {
        let burst = self.burst.as_mut().unwrap();
        let from = burst.from;
        let Some((_, bytes, token)) = burst.ends.pop_front() else {
            self.burst = None;
            return;
        };
        let now = self.now;
        self.log.push((now, from, bytes.clone()));
        let lost = self.lose.contains(&self.sent);
        self.sent += 1;
        for (at, node) in self.nodes.iter_mut().enumerate() {
            if at == from {
                if let Some(token) = token {
                    node.station.handle_indication(now, FramesIndication::Transmitted(token));
                }
            } else if !lost && !self.rng.chance(self.loss) && !self.deaf.contains(&(from, at)) {
                node.station.handle_indication(now, FramesIndication::Frame(bytes.clone()));
            }
        }
    }

    /// Advances the time until `done` holds.
    pub(super) fn run(&mut self, limit_s: u64, done: impl Fn(&Self) -> bool) {
        while !done(self) {
            let goes_on = self.step();
            assert!(goes_on || done(self), "nothing happens any more at {}", self.now);
            assert!(self.now < Instant::from_secs(limit_s), "not done by {}", self.now);
        }
    }

    /// Returns the frames of a station on the channel, decoded with this modulo on links.
    pub(super) fn frames(&self, from: usize, modulo: Modulo) -> Vec<Frame> {
        let of = self.log.iter().filter(|(_, sender, _)| *sender == from);
        of.map(|(_, _, bytes)| Frame::decode(&mut bytes.clone(), modulo).unwrap()).collect()
    }
}

impl Node {
    fn hear(&mut self, now: Instant, said: Port<(LinkId, PacketsIndication), (LinkId, DatagramsIndication)>) {
        let (link, said) = match said {
            Port::First(said) => said,
            Port::Second((_, DatagramsIndication::Datagram { bytes, .. })) => {
                self.user.unconnected.push(bytes);
                return;
            }
            Port::Second(_) => return,
        };
        match said {
            PacketsIndication::Connected { bytes_max, bytes_best, .. } => {
                self.user.takes.insert(link, (bytes_max, bytes_best));
                self.user.open.insert(link);
            }
            PacketsIndication::Sizes { bytes_max, bytes_best } => {
                self.user.takes.insert(link, (bytes_max, bytes_best));
            }
            PacketsIndication::Room(room) => {
                self.user.room.insert(link, room);
            }
            PacketsIndication::Packet(packet) => {
                self.user.heard.entry(link).or_default().push(packet);
                if !self.user.holds {
                    self.station.handle_request(now, Port::First((link, PacketsRequest::Release(1))));
                }
            }
            PacketsIndication::Acknowledged(count) => {
                self.user.acknowledged.insert(link, count);
            }
            PacketsIndication::Closed(reason) => {
                self.user.open.remove(&link);
                self.user.room.remove(&link);
                self.user.closed.push((link, reason));
            }
        }
    }

    /// Passes one packet down if there is one and room for it.
    fn act(&mut self, now: Instant) -> bool {
        for (link, packets) in &mut self.user.to_send {
            let Some(room) = self.user.room.get_mut(link).filter(|room| **room > 0) else { continue };
            let (bytes_max, _) = self.user.takes[link];
            let Some(packet) = packets.pop_front_if(|packet| packet.len() <= bytes_max as usize) else {
                continue;
            };
            *room -= 1;
            self.station.handle_request(now, Port::First((*link, PacketsRequest::payload(packet))));
            return true;
        }
        false
    }
}

/// Returns the settings of a station that has these peers with the IDs 0, 1, ...
pub(super) fn station(name: &str, peers: &[&str]) -> Config {
    let call = |text: &str| -> Callsign { text.parse().unwrap() };
    let mut config = Config::new(call(name));
    for (id, peer) in peers.iter().enumerate() {
        let peer = crate::ax25::PeerStation {
            station: call(peer),
            path: Vec::new(),
            link: crate::ax25::LinkConfig::default(),
        };
        config.peers.insert(LinkId(id as u32), peer);
    }
    config.radio.rate_bps = 9600;
    config.radio.tx_delay = Duration::from_millis(150);
    config
}

impl Channel {
    /// Returns the log of the channel as text, one line per frame.
    pub(super) fn story(&self, modulo: Modulo) -> String {
        let line = |(at, from, bytes): &(Instant, usize, Bytes)| {
            let frame = Frame::decode(&mut bytes.clone(), modulo);
            let frame = frame.map(|frame| {
                format!("{:?} {:?} {} bytes", frame.address.role, frame.control, frame.information.len())
            });
            format!("{at} {from} {frame:?}\n")
        };
        self.log.iter().map(line).collect()
    }
}
