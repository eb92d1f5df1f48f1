//! [`Impair`]: a deteriorated link.

use crate::engine::{Engine, Service};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{Frames, FramesIndication, FramesRequest};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// A service whose messages may be impaired: each data request takes room of one, and the loss of a message breaks no
/// rule.
pub trait Impairable: Service<Request: Clone, Indication: Clone> {
    /// Returns the bytes of a request; `None` for requests without data, which pass unimpaired and in order.
    fn carried_down(request: &mut Self::Request) -> Option<&mut Bytes>;
    /// Returns the bytes of an indication; `None` without data.
    fn carried_up(indication: &mut Self::Indication) -> Option<&mut Bytes>;
    /// Returns the room that an indication grants; `None` for other indications.
    fn room(indication: &Self::Indication) -> Option<u32>;
    /// Makes the indication of this room.
    fn tell_room(room: u32) -> Self::Indication;
    /// Returns the indication that the user must get for a request that never reaches the provider.
    fn owed(request: &Self::Request) -> Option<Self::Indication>;
    /// Returns a duplicate of the request for which no indication is owed.
    fn again(request: &Self::Request) -> Self::Request;
}

impl Impairable for Frames {
    fn carried_down(request: &mut FramesRequest) -> Option<&mut Bytes> {
        match request {
            FramesRequest::Frame { bytes, .. } => Some(bytes),
            FramesRequest::Join | FramesRequest::Seize => None,
        }
    }

    fn carried_up(indication: &mut FramesIndication) -> Option<&mut Bytes> {
        match indication {
            FramesIndication::Frame(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn room(indication: &FramesIndication) -> Option<u32> {
        match indication {
            FramesIndication::Room(room) => Some(*room),
            _ => None,
        }
    }

    fn tell_room(room: u32) -> FramesIndication {
        FramesIndication::Room(room)
    }

    fn owed(request: &FramesRequest) -> Option<FramesIndication> {
        match request {
            FramesRequest::Frame { token: Some(token), .. } => Some(FramesIndication::Transmitted(*token)),
            _ => None,
        }
    }

    fn again(request: &FramesRequest) -> FramesRequest {
        match request {
            FramesRequest::Frame { bytes, last, shares, .. } => {
                FramesRequest::Frame { bytes: bytes.clone(), token: None, last: *last, shares: *shares }
            }
            FramesRequest::Join => FramesRequest::Join,
            FramesRequest::Seize => FramesRequest::Seize,
        }
    }
}

/// Probabilities of an [`Impair`]. The default impairs nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ImpairConfig {
    /// Share of messages that are lost, 0 to 1. Default 0.
    pub loss: f64,
    /// Share of messages that are duplicated, 0 to 1. Default 0.
    pub duplication: f64,
    /// Share of messages with bit errors, 0 to 1. Default 0.
    pub corruption: f64,
    /// Maximum bit errors in a message. Default 1.
    pub flips_max: u32,
    /// Share of messages that are delayed, so that others overtake them, 0 to 1. Default 0.
    pub delay: f64,
    /// Maximum delay of a message. Default 1 s.
    pub delay_max: Duration,
    /// True to impair messages from the user. Default true.
    pub down: bool,
    /// True to impair messages to the user. Default true.
    pub up: bool,
}

impl Default for ImpairConfig {
    fn default() -> Self {
        ImpairConfig {
            loss: 0.0,
            duplication: 0.0,
            corruption: 0.0,
            flips_max: 1,
            delay: 0.0,
            delay_max: Duration::from_secs(1),
            down: true,
            up: true,
        }
    }
}

/// Counters of an [`Impair`], in messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ImpairCounters {
    /// All messages, impaired or not.
    pub passed: u64,
    /// Messages lost.
    pub lost: u64,
    /// Messages duplicated.
    pub duplicated: u64,
    /// Messages with bit errors.
    pub corrupted: u64,
    /// Messages delayed.
    pub delayed: u64,
}

/// A delayed message.
#[derive(Debug)]
enum DelayedMessage<Q, I> {
    Down(Q),
    Up(I),
}

/// Impairments drawn for a message.
struct Impairment {
    lost: bool,
    twice: bool,
    delay: Option<Duration>,
}

/// Impairs the messages between an engine and its link, from a seed: loss, duplication, delay (and so reordering) and
/// bit errors, in either direction or both.
///
/// Its room is exact: a frame that it loses takes no room of the link, one that it duplicates takes two, and the user
/// above is informed.
#[derive(Debug)]
pub struct Impair<S: Impairable> {
    /// Probabilities; may be changed at any time.
    pub config: ImpairConfig,
    /// Counters.
    pub counters: ImpairCounters,
    rng: Rng,
    control: VecDeque<S::Request>,
    /// Data for which the link has room, or had.
    down: VecDeque<S::Request>,
    up: VecDeque<S::Indication>,
    held: BTreeMap<(Instant, u64), DelayedMessage<S::Request, S::Indication>>,
    held_total: u64,
    /// Room of the provider.
    room: u32,
    /// Data requests that are in `down` or held, and will take the provider's room.
    reserved: u32,
}

impl<S: Impairable> Impair<S> {
    /// Maximum number of messages that are delayed at once; beyond it messages pass without delay.
    pub const HELD_MAX: usize = 1024;

    /// Creates an impairment with the probabilities of `config`.
    pub fn new(config: ImpairConfig, rng: Rng) -> Self {
        Impair {
            config,
            counters: ImpairCounters::default(),
            rng,
            control: VecDeque::new(),
            down: VecDeque::new(),
            up: VecDeque::new(),
            held: BTreeMap::new(),
            held_total: 0,
            room: 0,
            reserved: 0,
        }
    }

    fn draw(&mut self) -> Impairment {
        self.counters.passed += 1;
        let fate = Impairment {
            lost: self.rng.chance(self.config.loss),
            twice: self.rng.chance(self.config.duplication),
            delay: (self.rng.chance(self.config.delay) && self.held.len() < Self::HELD_MAX)
                .then(|| self.config.delay_max.mul_f64(self.rng.unit())),
        };
        self.counters.lost += u64::from(fate.lost);
        self.counters.delayed += u64::from(!fate.lost && fate.delay.is_some());
        fate
    }

    /// Returns the bytes as the other side receives them.
    fn damaged(&mut self, bytes: Bytes) -> Bytes {
        if bytes.is_empty() || !self.rng.chance(self.config.corruption) {
            return bytes;
        }
        self.counters.corrupted += 1;
        let mut damaged = BytesMut::from(&bytes[..]);
        for _ in 0..=self.rng.below(u64::from(self.config.flips_max.max(1))) {
            let bit = self.rng.below(damaged.len() as u64 * 8);
            damaged[(bit / 8) as usize] ^= 0x80 >> (bit % 8);
        }
        damaged.freeze()
    }

    fn hold(&mut self, until: Instant, message: DelayedMessage<S::Request, S::Indication>) {
        self.held_total += 1;
        self.held.insert((until, self.held_total), message);
    }

    /// Informs the user of the rest of the link's room.
    fn tell_room(&mut self) {
        self.up.push_back(S::tell_room(self.room.saturating_sub(self.reserved)));
    }

    fn impair_request(&mut self, now: Instant, mut request: S::Request) {
        let fate = self.draw();
        if fate.lost {
            self.up.extend(S::owed(&request));
            self.tell_room();
            return;
        }
        self.reserved += 1;
        if fate.twice && self.room > self.reserved {
            self.counters.duplicated += 1;
            self.reserved += 1;
            self.down.push_back(S::again(&request));
            self.tell_room();
        }
        if let Some(bytes) = S::carried_down(&mut request) {
            *bytes = self.damaged(bytes.clone());
        }
        match fate.delay {
            Some(delay) => self.hold(now + delay, DelayedMessage::Down(request)),
            None => self.down.push_back(request),
        }
    }

    fn impair_indication(&mut self, now: Instant, mut indication: S::Indication) {
        let fate = self.draw();
        if fate.lost {
            return;
        }
        if fate.twice {
            self.counters.duplicated += 1;
            self.up.push_back(indication.clone());
        }
        if let Some(bytes) = S::carried_up(&mut indication) {
            *bytes = self.damaged(bytes.clone());
        }
        match fate.delay {
            Some(delay) => self.hold(now + delay, DelayedMessage::Up(indication)),
            None => self.up.push_back(indication),
        }
    }
}

impl<S: Impairable> Engine for Impair<S> {
    type Above = S;
    type Below = S;

    fn handle_request(&mut self, now: Instant, mut request: S::Request) {
        if S::carried_down(&mut request).is_none() {
            self.control.push_back(request);
        } else if self.config.down {
            self.impair_request(now, request);
        } else {
            self.reserved += 1;
            self.down.push_back(request);
        }
    }

    fn handle_indication(&mut self, now: Instant, mut indication: S::Indication) {
        if let Some(room) = S::room(&indication) {
            self.room = room;
            self.tell_room();
        } else if self.config.up && S::carried_up(&mut indication).is_some() {
            self.impair_indication(now, indication);
        } else {
            self.up.push_back(indication);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.held.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                DelayedMessage::Down(request) => self.down.push_back(request),
                DelayedMessage::Up(indication) => self.up.push_back(indication),
            }
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<S::Indication> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, _now: Instant) -> Option<S::Request> {
        if let Some(request) = self.control.pop_front() {
            return Some(request);
        }
        if self.room == 0 {
            return None;
        }
        let request = self.down.pop_front()?;
        self.room -= 1;
        self.reserved -= 1;
        Some(request)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.held.first_key_value().map(|(&(at, _), _)| at)
    }

    fn finished(&self) -> bool {
        self.up.is_empty() && self.down.is_empty() && self.control.is_empty() && self.held.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        view.part("impair").count(&self.counters);
    }
}
