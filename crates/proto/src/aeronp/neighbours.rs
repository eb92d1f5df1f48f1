//! Neighbours: nodes that were heard lately, the quality of the links from them and what they have told.

use crate::kit::Deadlines;
use crate::packet_router::{NeighbourState, NodeAddress};
use crate::service::InterfaceId;
use crate::time::{Duration, Instant};
use std::collections::BTreeMap;

/// Largest gap between sequence numbers that is counted as lost frames; a longer one is a pause or a restart.
const GAP_MAX: u16 = 32;
/// Length of the frames for which damage is told, octets.
const REFERENCE_BYTES: f64 = 1000.0;
/// Weight of the history of a link with each further frame.
const HISTORY: f64 = 31.0 / 32.0;
/// Octets without damage that a new link is believed to have carried.
const PRIOR_BYTES: f64 = 2000.0;
/// Length of a frame that was lost, octets: it is not known.
const LOST_BYTES: f64 = 200.0;

/// Damage on the link from a neighbour: damaged frames over octets, both fading.
#[derive(Clone, Copy, Debug)]
struct Quality {
    bytes: f64,
    damaged: f64,
}

impl Quality {
    const NEW: Quality = Quality { bytes: PRIOR_BYTES, damaged: 0.0 };

    fn count(&mut self, bytes: f64, damaged: bool) {
        self.bytes = self.bytes * HISTORY + bytes;
        self.damaged = self.damaged * HISTORY + f64::from(u8::from(damaged));
    }

    /// Share of the frames of [`REFERENCE_BYTES`] with damage, if it falls on every octet alike.
    fn share(&self) -> f64 {
        1.0 - libm::exp(-REFERENCE_BYTES * self.damaged / self.bytes)
    }
}

/// Link from a neighbour: an interface on which it is heard.
#[derive(Debug)]
struct Link {
    sequence: u16,
    quality: Quality,
    heard_at: Instant,
    /// Damage on the link to the neighbour, as told.
    damaged_to: f64,
}

impl Link {
    /// Counts a frame.
    fn hear(&mut self, now: Instant, frame: HeardFrame) {
        // Distances above the half of all numbers are frames that were overtaken, or repeated.
        let gap = frame.sequence.wrapping_sub(self.sequence).wrapping_sub(1);
        if gap < GAP_MAX {
            (0..gap).for_each(|_| self.quality.count(LOST_BYTES, true));
        }
        (self.sequence, self.heard_at) = (frame.sequence, now);
        self.quality.count(frame.bytes as f64, frame.damaged);
    }
}

/// Neighbour.
#[derive(Debug)]
pub(super) struct Neighbour {
    /// Interface through which packets go to it.
    pub(super) interface: InterfaceId,
    links: BTreeMap<InterfaceId, Link>,
    /// Share of its queue that is full, as told.
    pub(super) fill: f64,
    /// Consecutive packets to it without an acknowledgement.
    failures: u32,
    expires_at: Option<Instant>,
}

impl Neighbour {
    /// Damage on the link to it through its interface.
    fn damaged_to(&self) -> f64 {
        self.links.get(&self.interface).map_or(0.0, |link| link.damaged_to)
    }
}

/// Frame that was heard from a neighbour.
#[derive(Clone, Copy, Debug)]
pub(super) struct HeardFrame {
    pub(super) interface: InterfaceId,
    pub(super) sender: NodeAddress,
    pub(super) sequence: u16,
    pub(super) bytes: usize,
    pub(super) damaged: bool,
}

/// All neighbours.
#[derive(Debug)]
pub(super) struct Neighbours {
    neighbours_max: usize,
    timeout: Duration,
    failures_max: u32,
    all: BTreeMap<NodeAddress, Neighbour>,
    deadlines: Deadlines<NodeAddress>,
}

/// Effect of a heard frame on the neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acquaintance {
    /// The neighbour was known.
    Known,
    /// It is new, or is reached through another interface now.
    New,
    /// There are too many others.
    Refused,
}

impl Neighbours {
    pub(super) fn new(neighbours_max: usize, timeout: Duration, failures_max: u32) -> Self {
        Neighbours {
            neighbours_max,
            timeout,
            failures_max,
            all: BTreeMap::new(),
            deadlines: Deadlines::new(),
        }
    }

    pub(super) fn get(&self, node: NodeAddress) -> Option<&Neighbour> {
        self.all.get(&node)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Counts a frame of a neighbour. Packets go to it through the interface on which it was heard first, until it is
    /// silent there.
    pub(super) fn hear(&mut self, now: Instant, frame: HeardFrame) -> Acquaintance {
        if !self.all.contains_key(&frame.sender) && self.all.len() >= self.neighbours_max {
            return Acquaintance::Refused;
        }
        let neighbour = self.all.entry(frame.sender).or_insert(Neighbour {
            interface: frame.interface,
            links: BTreeMap::new(),
            fill: 0.0,
            failures: 0,
            expires_at: None,
        });
        let link = neighbour.links.entry(frame.interface).or_insert(Link {
            sequence: frame.sequence.wrapping_sub(1),
            quality: Quality::NEW,
            heard_at: now,
            damaged_to: 0.0,
        });
        link.hear(now, frame);
        let used = neighbour.links.get(&neighbour.interface);
        let is_silent = used.is_none_or(|used| used.heard_at + self.timeout <= now);
        let is_new = neighbour.expires_at.is_none() || is_silent;
        if is_silent {
            neighbour.interface = frame.interface;
        }
        neighbour.failures = 0;
        let mut stored = neighbour.expires_at;
        self.deadlines.set(frame.sender, &mut stored, Some(now + self.timeout));
        neighbour.expires_at = stored;
        if is_new { Acquaintance::New } else { Acquaintance::Known }
    }

    /// Stores the state of a neighbour and the damage on the link to it, as it has told them.
    pub(super) fn told(
        &mut self,
        node: NodeAddress,
        interface: InterfaceId,
        fill: f64,
        damaged_to: Option<f64>,
    ) {
        let Some(neighbour) = self.all.get_mut(&node) else { return };
        neighbour.fill = fill;
        if let Some((link, damaged_to)) = neighbour.links.get_mut(&interface).zip(damaged_to) {
            link.damaged_to = damaged_to;
        }
    }

    /// Counts a packet without an acknowledgement. Returns true if the neighbour is therefore none any more.
    pub(super) fn fail(&mut self, node: NodeAddress) -> bool {
        let Some(neighbour) = self.all.get_mut(&node) else { return false };
        neighbour.failures += 1;
        let gone = neighbour.failures >= self.failures_max;
        if gone {
            self.remove(node);
        }
        gone
    }

    fn remove(&mut self, node: NodeAddress) {
        if let Some(neighbour) = self.all.remove(&node) {
            self.deadlines.remove(node, neighbour.expires_at);
        }
    }

    /// Removes and returns a neighbour that was silent for too long.
    pub(super) fn pop_silent(&mut self, now: Instant) -> Option<NodeAddress> {
        let node = self.deadlines.pop_due(now)?;
        self.all.remove(&node);
        Some(node)
    }

    /// Removes and returns the neighbours to which packets go through an interface.
    pub(super) fn remove_on(&mut self, interface: InterfaceId) -> Vec<NodeAddress> {
        self.all.values_mut().for_each(|neighbour| neighbour.links.retain(|at, _| *at != interface));
        let on = self.all.iter().filter(|(_, neighbour)| neighbour.interface == interface);
        let gone: Vec<_> = on.map(|(node, _)| *node).collect();
        gone.iter().for_each(|node| self.remove(*node));
        gone
    }

    /// Neighbours on an interface, with the share of their frames that arrive damaged.
    pub(super) fn links_on(&self, interface: InterfaceId) -> impl Iterator<Item = (NodeAddress, f64)> {
        let link = move |(node, neighbour): (&NodeAddress, &Neighbour)| {
            Some((*node, neighbour.links.get(&interface)?.quality.share()))
        };
        self.all.iter().filter_map(link)
    }

    /// Returns the states for a router; congestion and corruption are zero if they are not indicated.
    pub(super) fn states(&self, congestion: bool, corruption: bool) -> Vec<NeighbourState> {
        let shown = |on: bool, share: f64| if on { share } else { 0.0 };
        let state = |(node, neighbour): (&NodeAddress, &Neighbour)| NeighbourState {
            node: *node,
            fill: shown(congestion, neighbour.fill),
            damaged: shown(corruption, neighbour.damaged_to()),
        };
        self.all.iter().map(state).collect()
    }
}
