//! Hostile links for frames.

use super::{Draw, Environment};
use crate::rng::Rng;
use crate::service::{Frames, FramesIndication, FramesRequest, Many};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use core::fmt::Debug;
use std::collections::{BTreeMap, VecDeque};

/// Damage to the bits of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BitErrors {
    /// A burst within 15 neighbouring bits: every checksum detects it, including the 16-bit Internet checksum (RFC
    /// 1071). Larger damage would occasionally pass, as in reality, and the engine would be blamed for it.
    Slight,
    /// Any damage: many bits, truncation, extension, bytes of another frame. For engines that must only not fail.
    Gross,
}

/// Faults and properties of a link.
#[derive(Clone, Debug)]
pub(crate) struct FrameConditions {
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    pub(crate) overtaking: f64,
    pub(crate) corruption: f64,
    pub(crate) damage: BitErrors,
    /// Applied to a heavily damaged frame before it is transported, for example to correct its checksums.
    pub(crate) forge: fn(&mut BytesMut),
}

impl FrameConditions {
    /// Draws the properties from a seed.
    pub(crate) fn draw(rng: &mut Rng, damage: BitErrors) -> Self {
        FrameConditions {
            loss: rng.share(0.3),
            duplication: rng.share(0.2),
            overtaking: rng.share(0.3),
            corruption: rng.share(0.2),
            damage,
            forge: |_| {},
        }
    }

    fn calm() -> Self {
        FrameConditions {
            loss: 0.0,
            duplication: 0.0,
            overtaking: 0.0,
            corruption: 0.0,
            damage: BitErrors::Slight,
            forge: |_| {},
        }
    }
}

/// End of a link: the node, and its ID for the link.
type NodePort<Id> = (usize, Id);

#[derive(Debug)]
enum Event<Id> {
    /// The last bit has been sent.
    Left { from: NodePort<Id>, token: Option<u64> },
    /// A frame arrives.
    Comes { at: NodePort<Id>, bytes: Bytes },
}

#[derive(Debug, Default)]
struct FrameLinkEnd {
    joined: bool,
    /// Frames accepted and not yet sent.
    queued: u32,
    /// Time at which the line becomes free.
    free_at: Instant,
    /// Room last indicated.
    told: u32,
}

/// Point-to-point links between the interfaces of nodes: they lose, duplicate, delay and damage frames while there are
/// faults, and are interrupted for a time.
pub(crate) struct HostileFrames<Id> {
    conditions: FrameConditions,
    rng: Rng,
    /// Both directions of every link.
    peers: BTreeMap<NodePort<Id>, NodePort<Id>>,
    ends: BTreeMap<NodePort<Id>, FrameLinkEnd>,
    events: BTreeMap<(Instant, u64), Event<Id>>,
    count: u64,
    up: VecDeque<(usize, (Id, FramesIndication))>,
    /// Maximum number of frames that wait for the line.
    room: u32,
    /// Transmission time of a frame, and of each byte.
    air: (Duration, Duration),
    delay: Duration,
    /// Times of interruptions.
    cuts: Vec<(Instant, Instant)>,
    /// Maximum length of a frame, bytes; a longer one is a breach of the contract.
    mtu_bytes: usize,
    /// Last frame on any link, for damage that mixes frames.
    last: Bytes,
    carried: u64,
    faults: u64,
}

impl<Id: Copy + Ord + Debug> HostileFrames<Id> {
    /// Creates links between pairs of ports with these properties, interrupted now and then before `faults_end_at`.
    pub(crate) fn new(
        mut rng: Rng,
        conditions: FrameConditions,
        links: &[(NodePort<Id>, NodePort<Id>)],
        mtu_bytes: usize,
        faults_end_at: Instant,
    ) -> Self {
        let mut cuts = vec![];
        if rng.chance(0.4) {
            for _ in 0..rng.between(1, 3) {
                let begin = Instant::from_nanos(rng.below(faults_end_at.as_nanos().max(1)));
                cuts.push((
                    begin,
                    (begin + rng.span(Duration::ZERO, Duration::from_secs(40))).min(faults_end_at),
                ));
            }
        }
        let air =
            (rng.span(Duration::ZERO, Duration::from_millis(5)), Duration::from_nanos(rng.below(100_000)));
        let delay_max = Duration::from_millis(if rng.chance(0.2) { 3_000 } else { 200 });
        let delay = rng.span(Duration::ZERO, delay_max);
        HostileFrames {
            conditions,
            room: rng.between(1, 8) as u32,
            rng,
            peers: links.iter().flat_map(|&(a, b)| [(a, b), (b, a)]).collect(),
            ends: links
                .iter()
                .flat_map(|&(a, b)| [a, b])
                .map(|port| (port, FrameLinkEnd::default()))
                .collect(),
            events: BTreeMap::new(),
            count: 0,
            up: VecDeque::new(),
            air,
            delay,
            cuts,
            mtu_bytes,
            last: Bytes::new(),
            carried: 0,
            faults: 0,
        }
    }

    fn at(&mut self, at: Instant, event: Event<Id>) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    fn is_cut(&self, at: Instant) -> bool {
        self.cuts.iter().any(|&(begin, end)| begin <= at && at < end)
    }

    /// Indicates the room to a port if it has changed.
    fn tell_room(&mut self, port: NodePort<Id>) {
        let end = self.ends.get_mut(&port).expect("a port of a link");
        let room = if end.joined { self.room.saturating_sub(end.queued) } else { 0 };
        if room != end.told {
            end.told = room;
            self.up.push_back((port.0, (port.1, FramesIndication::Room(room))));
        }
    }

    fn send(&mut self, now: Instant, from: NodePort<Id>, bytes: Bytes, token: Option<u64>) {
        assert!(
            bytes.len() <= self.mtu_bytes,
            "a frame of {} bytes on a link of {}",
            bytes.len(),
            self.mtu_bytes
        );
        self.carried += 1;
        let air = self.air.0 + self.air.1 * bytes.len() as u32;
        let end = self.ends.get_mut(&from).expect("a port of a link");
        end.queued += 1;
        // The frame used one unit of the room indicated.
        end.told -= 1;
        end.free_at = end.free_at.max(now) + air;
        let leaves = end.free_at;
        self.at(leaves, Event::Left { from, token });
        let to = self.peers[&from];
        for _ in 0..=u8::from(self.rng.chance(self.conditions.duplication)) {
            if self.rng.chance(self.conditions.loss) || self.is_cut(leaves) {
                self.faults += 1;
                continue;
            }
            let mut comes = leaves + self.delay;
            if self.rng.chance(self.conditions.overtaking) {
                comes += self.rng.span(Duration::ZERO, Duration::from_millis(500));
            }
            let bytes =
                if self.rng.chance(self.conditions.corruption) { self.damage(&bytes) } else { bytes.clone() };
            self.at(comes, Event::Comes { at: to, bytes });
        }
        self.last = bytes;
    }

    fn damage(&mut self, bytes: &Bytes) -> Bytes {
        self.faults += 1;
        let mut damaged = BytesMut::from(&bytes[..]);
        if damaged.is_empty() {
            return bytes.clone();
        }
        let bits = damaged.len() as u64 * 8;
        match self.conditions.damage {
            BitErrors::Slight => {
                let first = self.rng.below(bits);
                flip(&mut damaged, first);
                for bit in first + 1..(first + self.rng.between(1, 15)).min(bits) {
                    if self.rng.chance(0.5) {
                        flip(&mut damaged, bit);
                    }
                }
            }
            BitErrors::Gross => {
                self.damage_grossly(&mut damaged, bits);
                (self.conditions.forge)(&mut damaged);
            }
        }
        damaged.freeze()
    }

    fn damage_grossly(&mut self, damaged: &mut BytesMut, bits: u64) {
        match self.rng.below(5) {
            0 => damaged.truncate(self.rng.below(bits / 8) as usize),
            1 => {
                let room = self.mtu_bytes - damaged.len();
                damaged.extend_from_slice(&self.last[..self.last.len().min(room)]);
            }
            2 => self.rng.fill(damaged),
            3 => {
                // A field near the beginning, where the headers are, becomes an extreme value.
                let at = self.rng.below((bits / 8).min(48)) as usize;
                damaged[at] = [0, 1, 0x7f, 0x80, 0xff][self.rng.below(5) as usize];
            }
            _ => {
                for _ in 0..self.rng.between(1, 20) {
                    flip(damaged, self.rng.below(bits));
                }
            }
        }
    }
}

fn flip(bytes: &mut [u8], bit: u64) {
    bytes[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
}

impl<Id: Copy + Ord + Debug> Environment<Many<Id, Frames>> for HostileFrames<Id> {
    fn handle_request(&mut self, now: Instant, node: usize, (id, request): (Id, FramesRequest)) {
        let port = (node, id);
        assert!(self.ends.contains_key(&port), "{port:?} has no link");
        match request {
            FramesRequest::Seize => {}
            FramesRequest::Join => self.ends.get_mut(&port).expect("checked above").joined = true,
            FramesRequest::Frame { bytes, token, .. } => self.send(now, port, bytes, token),
        }
        self.tell_room(port);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Event::Left { from, token } => {
                    let end = self.ends.get_mut(&from).expect("a port of a link");
                    end.queued = end.queued.saturating_sub(1);
                    if let Some(token) = token {
                        self.up.push_back((from.0, (from.1, FramesIndication::Transmitted(token))));
                    }
                    self.tell_room(from);
                }
                Event::Comes { at, bytes } => {
                    if self.ends[&at].joined && !self.is_cut(now) {
                        self.up.push_back((at.0, (at.1, FramesIndication::Frame(bytes))));
                    }
                }
            }
        }
    }

    fn poll_indication(&mut self) -> Option<(usize, (Id, FramesIndication))> {
        self.up.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.events.first_key_value().map(|(&(at, _), _)| at)
    }

    fn crash(&mut self, _now: Instant, node: usize) {
        for (_, end) in self.ends.iter_mut().filter(|(port, _)| port.0 == node) {
            *end = FrameLinkEnd::default();
        }
        self.events.retain(|_, event| !matches!(event, Event::Left { from, .. } if from.0 == node));
        self.up.retain(|&(at, _)| at != node);
    }

    fn calm(&mut self, _now: Instant) {
        self.conditions = FrameConditions::calm();
        self.cuts.clear();
    }

    fn carried(&self) -> u64 {
        self.carried
    }

    fn faults(&self) -> u64 {
        self.faults
    }
}
