//! Radio channels: stations that hear each other or not, half or full duplex, with loss of frames.

use super::{Draw, Environment};
use crate::rng::Rng;
use crate::service::{Frames, FramesIndication, FramesRequest};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Channel access of a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelAccess {
    /// Room is granted on request, once the channel is acquired, for this number of frames.
    Won(u32),
    /// A TNC accepts this number of frames ahead and acquires the channel by itself.
    Ahead(u32),
    /// As `Ahead`, in full duplex.
    FullDuplex(u32),
}

/// Creates the next frame of an attacker from the last frame on the channel.
pub(crate) type Forge = fn(&mut Rng, &Bytes) -> Bytes;

/// Faults and properties of a channel.
#[derive(Clone, Debug)]
pub(crate) struct RadioConditions {
    pub(crate) access: ChannelAccess,
    pub(crate) rate_bps: u64,
    /// Time from key-up to the first frame (TXDELAY).
    pub(crate) tx_delay: Duration,
    /// Maximum time from a clear channel to the key-up.
    pub(crate) patience: Duration,
    /// Time from the last bit to its arrival at the receiving host.
    pub(crate) delay: Duration,
    /// Fraction of frames that a station does not receive.
    pub(crate) loss: f64,
    /// Fraction of frames that are received twice.
    pub(crate) duplication: f64,
    /// True if hosts get the carrier sense of the channel.
    pub(crate) tells_busy: bool,
    /// Breaks of the line between a host and its TNC: time, node, and duration.
    pub(crate) unplugged: Vec<(Instant, usize, Duration)>,
    /// Mean time between the frames of an attacker, and their content.
    pub(crate) enemy: Option<(Duration, Forge)>,
}

impl RadioConditions {
    /// Draws the properties from a seed.
    pub(crate) fn draw(rng: &mut Rng, nodes: u64, faults_end_at: Instant) -> Self {
        let access = match rng.below(5) {
            0 | 1 => ChannelAccess::Won(rng.between(1, 64) as u32),
            2 | 3 => ChannelAccess::Ahead(rng.between(1, 64) as u32),
            _ => ChannelAccess::FullDuplex(rng.between(1, 16) as u32),
        };
        let fault = |rng: &mut Rng| {
            let at = Instant::from_nanos(rng.below(faults_end_at.as_nanos()));
            (at, rng.below(nodes) as usize, rng.span(Duration::ZERO, Duration::from_secs(90)))
        };
        let faults = if rng.chance(0.7) { 0 } else { rng.between(1, 3) };
        RadioConditions {
            access,
            rate_bps: [1200, 9600][rng.below(2) as usize],
            tx_delay: rng.span(Duration::from_millis(20), Duration::from_millis(400)),
            patience: rng.span(Duration::ZERO, Duration::from_secs(2)),
            delay: rng.span(Duration::ZERO, Duration::from_millis(300)),
            loss: rng.share(0.4),
            duplication: if rng.chance(0.8) { 0.0 } else { rng.share(0.2) },
            tells_busy: rng.chance(0.5),
            unplugged: (0..faults).map(|_| fault(rng)).collect(),
            enemy: None,
        }
    }
}

#[derive(Debug, Default)]
struct HostileStation {
    joined: bool,
    unplugged: bool,
    told: u32,
    wants: bool,
    /// True while the transmitter is keyed.
    keyed: bool,
    queue: VecDeque<(Bytes, Option<u64>)>,
}

#[derive(Debug)]
enum Event {
    /// One of the stations that wait for the channel acquires it.
    Contend,
    /// TXDELAY is over, or a frame has been transmitted: the next one begins.
    Next(usize),
    /// The last bit of the first frame is transmitted.
    Leaves(usize),
    Comes(usize, Bytes),
    Plug(usize, bool),
    /// The attacker transmits.
    Enemy,
}

/// Radio channel that loses and duplicates frames.
pub(crate) struct HostileRadio {
    pub(crate) conditions: RadioConditions,
    rng: Rng,
    stations: Vec<HostileStation>,
    /// Pairs of stations of which the second does not receive the first: from, to.
    deaf: BTreeSet<(usize, usize)>,
    /// Station that has the channel, if only one can have it.
    keyed: Option<usize>,
    contending: bool,
    events: BTreeMap<(Instant, u64), Event>,
    count: u64,
    up: VecDeque<(usize, FramesIndication)>,
    /// Last frame on the channel, for an attacker.
    last: Bytes,
    carried: u64,
    faults: u64,
}

impl HostileRadio {
    pub(crate) fn new(rng: Rng, conditions: RadioConditions, nodes: usize, deaf: &[(usize, usize)]) -> Self {
        let mut channel = HostileRadio {
            conditions,
            rng,
            stations: (0..nodes).map(|_| HostileStation::default()).collect(),
            deaf: deaf.iter().copied().collect(),
            keyed: None,
            contending: false,
            events: BTreeMap::new(),
            count: 0,
            up: VecDeque::new(),
            last: Bytes::new(),
            carried: 0,
            faults: 0,
        };
        for (at, node, time) in channel.conditions.unplugged.clone() {
            channel.at(at, Event::Plug(node, false));
            channel.at(at + time, Event::Plug(node, true));
        }
        if channel.conditions.enemy.is_some() {
            channel.at(Instant::ZERO, Event::Enemy);
        }
        channel
    }

    fn at(&mut self, at: Instant, event: Event) {
        self.count += 1;
        self.events.insert((at, self.count), event);
    }

    fn tell(&mut self, node: usize, indication: FramesIndication) {
        if self.stations[node].joined {
            self.up.push_back((node, indication));
        }
    }

    fn tell_room(&mut self, node: usize, room: u32) {
        let post = &mut self.stations[node];
        let room = if post.joined && !post.unplugged { room } else { 0 };
        if core::mem::replace(&mut post.told, room) != room {
            self.tell(node, FramesIndication::Room(room));
        }
    }

    /// Indicates the room if a TNC accepts frames ahead.
    fn tell_room_ahead(&mut self, node: usize) {
        if let ChannelAccess::Ahead(most) | ChannelAccess::FullDuplex(most) = self.conditions.access {
            let queued = self.stations[node].queue.len() as u32;
            self.tell_room(node, most.saturating_sub(queued));
        }
    }

    /// Starts the competition for the channel if a station may wait for it.
    fn contend(&mut self, now: Instant) {
        if let ChannelAccess::FullDuplex(_) = self.conditions.access {
            for node in 0..self.stations.len() {
                let post = &mut self.stations[node];
                if !post.keyed && !post.queue.is_empty() {
                    post.keyed = true;
                    self.at(now + self.conditions.tx_delay, Event::Next(node));
                }
            }
        } else if self.keyed.is_none() && !self.contending && !self.wanting().is_empty() {
            self.contending = true;
            let wait = self.rng.span(Duration::ZERO, self.conditions.patience);
            self.at(now + wait, Event::Contend);
        }
    }

    fn wanting(&self) -> Vec<usize> {
        let wants = |post: &HostileStation| !post.queue.is_empty() || (post.wants && !post.unplugged);
        (0..self.stations.len()).filter(|node| wants(&self.stations[*node])).collect()
    }

    fn win(&mut self, now: Instant) {
        self.contending = false;
        let wanting = self.wanting();
        if wanting.is_empty() {
            return;
        }
        let node = wanting[self.rng.below(wanting.len() as u64) as usize];
        self.keyed = Some(node);
        self.stations[node].wants = false;
        if let ChannelAccess::Won(most) = self.conditions.access {
            self.tell_room(node, most);
        }
        self.tell_busy(node, true);
        self.at(now + self.conditions.tx_delay, Event::Next(node));
    }

    fn tell_busy(&mut self, keyed: usize, busy: bool) {
        if !self.conditions.tells_busy {
            return;
        }
        for node in 0..self.stations.len() {
            if node != keyed && !self.deaf.contains(&(keyed, node)) {
                self.tell(node, FramesIndication::Busy(busy));
            }
        }
    }

    /// Begins the next frame, or ends the transmission.
    fn next(&mut self, now: Instant, node: usize) {
        if matches!(self.conditions.access, ChannelAccess::Won(_)) {
            self.tell_room(node, 0);
        }
        let post = &mut self.stations[node];
        if let Some((bytes, _)) = post.queue.front() {
            let bits = crate::ax25::hdlc::air_bits(bytes) + 8;
            let leaves = now + Duration::from_nanos(bits * 1_000_000_000 / self.conditions.rate_bps);
            self.at(leaves, Event::Leaves(node));
            return;
        }
        post.keyed = false;
        if self.keyed == Some(node) {
            self.keyed = None;
            self.tell_busy(node, false);
        }
        self.contend(now);
    }

    fn leaves(&mut self, now: Instant, node: usize) {
        if let Some((bytes, token)) = self.stations[node].queue.pop_front() {
            self.carried += 1;
            for to in (0..self.stations.len()).filter(|to| *to != node) {
                if self.deaf.contains(&(node, to)) {
                    continue;
                }
                for _ in 0..=u8::from(self.rng.chance(self.conditions.duplication)) {
                    if self.rng.chance(self.conditions.loss) {
                        self.faults += 1;
                    } else {
                        self.at(now + self.conditions.delay, Event::Comes(to, bytes.clone()));
                    }
                }
            }
            self.last = bytes;
            if let Some(token) = token {
                self.tell(node, FramesIndication::Transmitted(token));
            }
            self.tell_room_ahead(node);
        }
        self.next(now, node);
    }

    fn plug(&mut self, now: Instant, node: usize, plugged: bool) {
        if self.stations[node].unplugged != plugged {
            return;
        }
        self.stations[node].unplugged = !plugged;
        self.faults += u64::from(!plugged);
        if !plugged {
            // The frames in the TNC are lost, but indicated as transmitted.
            let queue = core::mem::take(&mut self.stations[node].queue);
            let tokens = queue.into_iter().filter_map(|(_, token)| token);
            tokens.for_each(|token| self.tell(node, FramesIndication::Transmitted(token)));
            self.tell_room(node, 0);
        }
        self.tell(node, FramesIndication::Carrier(plugged));
        self.tell_room_ahead(node);
        self.contend(now);
    }

    fn speak_as_enemy(&mut self, now: Instant) {
        let Some((mean, forge)) = self.conditions.enemy else { return };
        let bytes = forge(&mut self.rng, &self.last);
        self.faults += 1;
        let to = self.rng.below(self.stations.len() as u64) as usize;
        self.at(now, Event::Comes(to, bytes));
        let next = self.rng.exponential(mean.as_nanos() as f64);
        self.at(now + Duration::from_nanos(next as u64), Event::Enemy);
    }
}

impl Environment<Frames> for HostileRadio {
    fn handle_request(&mut self, now: Instant, node: usize, request: FramesRequest) {
        match request {
            FramesRequest::Join => {
                self.stations[node].joined = true;
                self.tell_room_ahead(node);
            }
            FramesRequest::Seize => {
                self.stations[node].wants = matches!(self.conditions.access, ChannelAccess::Won(_))
            }
            FramesRequest::Frame { bytes, token, .. } => {
                let post = &mut self.stations[node];
                post.told -= 1;
                post.queue.push_back((bytes, token));
                self.tell_room_ahead(node);
            }
        }
        self.contend(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self.events.first_entry() {
            if entry.key().0 > now {
                return;
            }
            match entry.remove() {
                Event::Contend => self.win(now),
                Event::Next(node) => self.next(now, node),
                Event::Leaves(node) => self.leaves(now, node),
                Event::Comes(node, bytes) => {
                    if !self.stations[node].unplugged {
                        self.tell(node, FramesIndication::Frame(bytes));
                    }
                }
                Event::Plug(node, plugged) => self.plug(now, node, plugged),
                Event::Enemy => self.speak_as_enemy(now),
            }
        }
    }

    fn poll_indication(&mut self) -> Option<(usize, FramesIndication)> {
        self.up.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.events.first_key_value().map(|(&(at, _), _)| at)
    }

    fn crash(&mut self, _now: Instant, node: usize) {
        let post = &mut self.stations[node];
        (post.joined, post.told, post.wants) = (false, 0, false);
        // Frames in the TNC of a host that has restarted could not be distinguished from new ones.
        post.queue.clear();
        self.up.retain(|&(to, _)| to != node);
    }

    fn calm(&mut self, now: Instant) {
        (self.conditions.loss, self.conditions.duplication, self.conditions.enemy) = (0.0, 0.0, None);
        (0..self.stations.len()).for_each(|node| self.plug(now, node, true));
        self.events.retain(|_, event| !matches!(event, Event::Plug(..)));
    }

    fn carried(&self) -> u64 {
        self.carried
    }

    fn faults(&self) -> u64 {
        self.faults
    }
}
