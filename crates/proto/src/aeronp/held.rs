//! Packets that a node holds: carried, queued for a neighbour, or sent and not acknowledged.

use super::wire::Packet;
use crate::kit::{Deadlines, remove_from};
use crate::packet_router::NodeAddress;
use crate::service::LinkId;
use crate::time::{Duration, Instant};
use core::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Number of earlier transmissions of a packet whose late acknowledgements are recognised.
const EARLIER_MAX: usize = 4;
/// Maximum number of times that the wait for an acknowledgement is doubled.
const DOUBLED_MAX: u32 = 5;

/// Number of a packet at this node, in order of arrival.
pub(super) type PacketKey = u64;

/// Place of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It is carried.
    Carried,
    /// It waits for the interface to this neighbour.
    Queued(NodeAddress),
    /// It was sent to this neighbour with this sequence number, and is not acknowledged.
    Sent(NodeAddress, u16),
}

/// User that wants to know when its packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) link: LinkId,
    /// Number of the time that the endpoint was joined.
    pub(super) generation: u64,
    pub(super) token: Option<u64>,
}

/// Packet at this node.
#[derive(Debug)]
pub(super) struct Held {
    /// Header as it arrived, and payload.
    pub(super) packet: Packet,
    /// Neighbour from which it came, and when; `None` for a packet of this node.
    pub(super) from: Option<(NodeAddress, Instant)>,
    pub(super) expires_at: Instant,
    /// Neighbours that have it.
    pub(super) given: BTreeSet<NodeAddress>,
    /// Number of copies that go with the next transmission, and whether the packet stays afterwards.
    pub(super) copies_with: u8,
    pub(super) stays: bool,
    /// It was sent before, to any neighbour.
    pub(super) has_left: bool,
    /// User of a packet of this node that has not left.
    pub(super) report: Option<Report>,
    pub(super) place: Place,
    /// Time at which the acknowledgement is missing.
    pub(super) unanswered_at: Option<Instant>,
    /// Earlier transmissions without an acknowledgement, and their number.
    pub(super) earlier: VecDeque<(NodeAddress, u16)>,
    pub(super) unanswered: u32,
}

/// All packets of a node.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    next: PacketKey,
    all: BTreeMap<PacketKey, Held>,
    bytes: u64,
    /// Packets for which no decision was made since something changed.
    undecided: BTreeSet<PacketKey>,
    queues: BTreeMap<NodeAddress, BTreeSet<(Reverse<u8>, PacketKey)>>,
    sent: BTreeMap<(NodeAddress, u16), PacketKey>,
    /// Earlier transmissions of all packets.
    earlier: BTreeMap<(NodeAddress, u16), PacketKey>,
    unanswered: Deadlines<PacketKey>,
    expiries: BTreeSet<(Instant, PacketKey)>,
    /// In the order in which packets are dropped.
    by_precedence: BTreeSet<(u8, PacketKey)>,
}

impl Holdings {
    /// Adds a packet, for which a decision is made next.
    pub(super) fn insert(&mut self, held: Held) -> PacketKey {
        let key = self.next;
        self.next += 1;
        self.bytes += held.packet.payload.len() as u64;
        self.expiries.insert((held.expires_at, key));
        self.by_precedence.insert((held.packet.precedence, key));
        self.undecided.insert(key);
        self.all.insert(key, held);
        key
    }

    pub(super) fn get(&self, key: PacketKey) -> Option<&Held> {
        self.all.get(&key)
    }

    /// Returns the fields of a packet that belong to no index here.
    pub(super) fn get_mut(&mut self, key: PacketKey) -> Option<&mut Held> {
        self.all.get_mut(&key)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Length of all payloads.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn remove(&mut self, key: PacketKey) -> Option<Held> {
        self.take_out(key);
        let held = self.all.remove(&key)?;
        held.earlier.iter().for_each(|sent| self.forget_earlier(*sent, key));
        self.bytes -= held.packet.payload.len() as u64;
        self.expiries.remove(&(held.expires_at, key));
        self.by_precedence.remove(&(held.packet.precedence, key));
        self.undecided.remove(&key);
        Some(held)
    }

    /// Removes a packet from its place.
    fn take_out(&mut self, key: PacketKey) {
        let Some(held) = self.all.get_mut(&key) else { return };
        match held.place {
            Place::Carried => {}
            Place::Queued(to) => remove_from(&mut self.queues, &to, &(Reverse(held.packet.precedence), key)),
            Place::Sent(to, sequence) => {
                self.sent.remove(&(to, sequence));
                self.unanswered.remove(key, held.unanswered_at.take());
                held.earlier.push_back((to, sequence));
                self.earlier.insert((to, sequence), key);
            }
        }
        held.place = Place::Carried;
        if held.earlier.len() > EARLIER_MAX
            && let Some(oldest) = held.earlier.pop_front()
        {
            self.forget_earlier(oldest, key);
        }
    }

    /// Forgets a transmission, unless its number was used again for another packet.
    fn forget_earlier(&mut self, sent: (NodeAddress, u16), key: PacketKey) {
        if self.earlier.get(&sent) == Some(&key) {
            self.earlier.remove(&sent);
        }
    }

    /// Moves a packet to a place.
    pub(super) fn put(&mut self, key: PacketKey, place: Place) {
        self.take_out(key);
        let Some(held) = self.all.get_mut(&key) else { return };
        held.place = place;
        match place {
            Place::Carried => {}
            Place::Queued(to) => {
                self.queues.entry(to).or_default().insert((Reverse(held.packet.precedence), key));
            }
            Place::Sent(to, sequence) => drop(self.sent.insert((to, sequence), key)),
        }
    }

    /// Carries a packet until a new decision.
    pub(super) fn reconsider(&mut self, key: PacketKey) {
        self.put(key, Place::Carried);
        self.undecided.insert(key);
    }

    /// Asks for new decisions for all packets that were not sent.
    pub(super) fn reconsider_all(&mut self) {
        let waits = self.all.iter().filter(|(_, held)| !matches!(held.place, Place::Sent(..)));
        self.undecided.extend(waits.map(|(key, _)| *key));
    }

    /// Asks for new decisions for all packets that were queued for or sent to a neighbour.
    pub(super) fn reconsider_to(&mut self, node: NodeAddress) {
        let queued = self.queues.get(&node).into_iter().flatten().map(|(_, key)| *key);
        let sent = self.sent.range((node, 0)..=(node, u16::MAX)).map(|(_, key)| *key);
        let all: Vec<_> = queued.chain(sent).collect();
        all.into_iter().for_each(|key| self.reconsider(key));
    }

    pub(super) fn pop_undecided(&mut self) -> Option<PacketKey> {
        self.undecided.pop_first()
    }

    pub(super) fn has_undecided(&self) -> bool {
        !self.undecided.is_empty()
    }

    /// Most urgent packet that is queued for each neighbour.
    pub(super) fn firsts(&self) -> impl Iterator<Item = ((Reverse<u8>, PacketKey), NodeAddress)> {
        self.queues.iter().filter_map(|(node, queue)| Some((*queue.first()?, *node)))
    }

    /// Number of packets to a neighbour that are not acknowledged.
    pub(super) fn sent_to(&self, node: NodeAddress) -> usize {
        self.sent.range((node, 0)..=(node, u16::MAX)).count()
    }

    /// Returns the packet that was sent to a neighbour with this sequence number, lately or before.
    pub(super) fn sent_with(&self, node: NodeAddress, sequence: u16) -> Option<PacketKey> {
        let sent = self.sent.get(&(node, sequence));
        sent.or_else(|| self.earlier.get(&(node, sequence))).copied()
    }

    /// Starts the wait for an acknowledgement; it doubles with each that is missing, so that it is longer at last than the
    /// way there and back.
    pub(super) fn await_answer(&mut self, key: PacketKey, now: Instant, wait: Duration) {
        if let Some(held) = self.all.get_mut(&key) {
            let wait = wait.saturating_mul(1 << held.unanswered.min(DOUBLED_MAX));
            self.unanswered.set(key, &mut held.unanswered_at, Some(now + wait));
        }
    }

    /// Returns a packet whose acknowledgement is missing, and carries it.
    pub(super) fn pop_unanswered(&mut self, now: Instant) -> Option<(PacketKey, NodeAddress)> {
        let key = self.unanswered.pop_due(now)?;
        let held = self.all.get_mut(&key)?;
        held.unanswered_at = None;
        held.unanswered = held.unanswered.saturating_add(1);
        let Place::Sent(to, _) = held.place else { return None };
        self.reconsider(key);
        Some((key, to))
    }

    pub(super) fn pop_expired(&mut self, now: Instant) -> Option<Held> {
        let (_, key) = *self.expiries.first().filter(|(at, _)| *at <= now)?;
        self.remove(key)
    }

    /// Removes the oldest packet of the lowest precedence, if that is at most `precedence`.
    pub(super) fn pop_least(&mut self, precedence: u8) -> Option<Held> {
        let (_, key) = *self.by_precedence.first().filter(|(lowest, _)| *lowest <= precedence)?;
        self.remove(key)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let expiry = self.expiries.first().map(|(at, _)| *at);
        expiry.into_iter().chain(self.unanswered.next()).min()
    }
}

/// Packets that were accepted, so that none is accepted twice; the oldest are forgotten.
#[derive(Debug)]
pub(super) struct Remembered {
    remembered_max: usize,
    /// Fewest hops left with which a packet was accepted.
    hops_left: BTreeMap<(NodeAddress, u32), u8>,
    order: VecDeque<(NodeAddress, u32)>,
}

impl Remembered {
    pub(super) fn new(remembered_max: usize) -> Self {
        Remembered { remembered_max, hops_left: BTreeMap::new(), order: Default::default() }
    }

    /// Returns true if a packet was accepted before. One that has come back is a new one unless packets spread: it has
    /// fewer hops left than before.
    pub(super) fn knows(&self, packet: &Packet, spreads: bool) -> bool {
        let known = self.hops_left.get(&(packet.source, packet.identification));
        known.is_some_and(|hops_left| spreads || packet.hops_left >= *hops_left)
    }

    pub(super) fn accept(&mut self, packet: &Packet) {
        let name = (packet.source, packet.identification);
        if self.hops_left.insert(name, packet.hops_left).is_some() {
            return;
        }
        self.order.push_back(name);
        if self.order.len() > self.remembered_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.hops_left.remove(&oldest);
        }
    }
}
