//! Packets that a node holds: carried, queued for a neighbour, or sent and not acknowledged.

use super::wire::{HEADER_BYTES, Packet};
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

/// Answer to a packet that need not be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// It was accepted from this neighbour, with its copies.
    Accepted,
    /// It had been accepted from another one: its copies stay with the sender.
    Known,
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

impl Held {
    /// Length in the queue: that of the packet without fixes, so that one without payload takes space, too.
    fn bytes(&self) -> u64 {
        (HEADER_BYTES + self.packet.payload.len()) as u64
    }

    /// Place in the order in which packets are dropped: by precedence, and those that another node has, too, first.
    fn rank(&self, key: PacketKey) -> (u8, bool, PacketKey) {
        (self.packet.precedence, self.given.is_empty(), key)
    }
}

/// All packets of a node.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    next: PacketKey,
    all: BTreeMap<PacketKey, Held>,
    bytes: u64,
    /// Length of the packets that another node has, too.
    given_bytes: u64,
    /// Packets for which no decision was made since something changed.
    undecided: BTreeSet<PacketKey>,
    queues: BTreeMap<NodeAddress, BTreeSet<(Reverse<u8>, PacketKey)>>,
    sent: BTreeMap<(NodeAddress, u16), PacketKey>,
    /// Earlier transmissions of all packets.
    earlier: BTreeMap<(NodeAddress, u16), PacketKey>,
    unanswered: Deadlines<PacketKey>,
    expiries: BTreeSet<(Instant, PacketKey)>,
    /// In the order in which packets are dropped.
    ranks: BTreeSet<(u8, bool, PacketKey)>,
}

impl Holdings {
    /// Adds a packet, for which a decision is made next.
    pub(super) fn insert(&mut self, held: Held) -> PacketKey {
        let key = self.next;
        self.next += 1;
        self.bytes += held.bytes();
        self.given_bytes += if held.given.is_empty() { 0 } else { held.bytes() };
        self.expiries.insert((held.expires_at, key));
        self.ranks.insert(held.rank(key));
        self.undecided.insert(key);
        self.all.insert(key, held);
        key
    }

    pub(super) fn get(&self, key: PacketKey) -> Option<&Held> {
        self.all.get(&key)
    }

    #[cfg(test)]
    pub(super) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.all.values()
    }

    /// Returns the fields of a packet that belong to no index here.
    pub(super) fn get_mut(&mut self, key: PacketKey) -> Option<&mut Held> {
        self.all.get_mut(&key)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// Length of all packets.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Length of the packets that no other node is known to have.
    pub(super) fn only_bytes(&self) -> u64 {
        self.bytes - self.given_bytes
    }

    /// Returns the packet of this source and identification.
    pub(super) fn named(&self, packet: &Packet) -> Option<PacketKey> {
        let name = |packet: &Packet| (packet.source, packet.identification);
        self.all.iter().find(|(_, held)| name(&held.packet) == name(packet)).map(|(key, _)| *key)
    }

    /// A neighbour has the packet, too.
    pub(super) fn give(&mut self, key: PacketKey, to: NodeAddress) {
        let Some(held) = self.all.get_mut(&key) else { return };
        self.ranks.remove(&held.rank(key));
        self.given_bytes += if held.given.is_empty() { held.bytes() } else { 0 };
        held.given.insert(to);
        self.ranks.insert(held.rank(key));
    }

    pub(super) fn remove(&mut self, key: PacketKey) -> Option<Held> {
        self.take_out(key);
        let held = self.all.remove(&key)?;
        held.earlier.iter().for_each(|sent| self.forget_earlier(*sent, key));
        self.bytes -= held.bytes();
        self.given_bytes -= if held.given.is_empty() { 0 } else { held.bytes() };
        self.expiries.remove(&(held.expires_at, key));
        self.ranks.remove(&held.rank(key));
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

    /// Returns packets of at least this length that give way to one of a precedence: those of lower ones, and of the same
    /// one those that another node has, if `given_too`; the lowest and oldest first. `None` if all of them are too short.
    pub(super) fn giving_way(&self, bytes: u64, precedence: u8, given_too: bool) -> Option<Vec<PacketKey>> {
        let (mut length, mut keys) = (0, Vec::new());
        let mut ranks = self.ranks.range(..(precedence, given_too, 0));
        while length < bytes {
            let (_, _, key) = ranks.next()?;
            length += self.all.get(key)?.bytes();
            keys.push(*key);
        }
        Some(keys)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let expiry = self.expiries.first().map(|(at, _)| *at);
        expiry.into_iter().chain(self.unanswered.next()).min()
    }
}

/// Acceptance of a packet.
#[derive(Clone, Copy, Debug)]
struct Acceptance {
    /// Fewest hops left with which it was accepted.
    hops_left: u8,
    /// Neighbour from which it came last.
    sender: NodeAddress,
    /// Its payload was damaged.
    damaged: bool,
}

/// Packets that were accepted, so that none is accepted twice; the oldest are forgotten.
#[derive(Debug)]
pub(super) struct Remembered {
    remembered_max: usize,
    all: BTreeMap<(NodeAddress, u32), Acceptance>,
    order: VecDeque<(NodeAddress, u32)>,
}

impl Remembered {
    pub(super) fn new(remembered_max: usize) -> Self {
        Remembered { remembered_max, all: BTreeMap::new(), order: Default::default() }
    }

    fn acceptance(&self, packet: &Packet) -> Option<&Acceptance> {
        self.all.get(&(packet.source, packet.identification))
    }

    /// Returns how a packet that was accepted before is answered: as then if it is repeated by the same neighbour. One
    /// that has come back is a new one unless packets spread: it has fewer hops left than before. So is an intact copy
    /// after a damaged one.
    pub(super) fn knows(&self, packet: &Packet, spreads: bool) -> Option<Answer> {
        let before = self.acceptance(packet)?;
        let is_known =
            (spreads || packet.hops_left >= before.hops_left) && (packet.corruption || !before.damaged);
        let answer = if before.sender == packet.sender { Answer::Accepted } else { Answer::Known };
        is_known.then_some(answer)
    }

    /// Returns true if only a damaged copy of a packet was accepted.
    pub(super) fn has_damaged(&self, packet: &Packet) -> bool {
        self.acceptance(packet).is_some_and(|before| before.damaged)
    }

    pub(super) fn accept(&mut self, packet: &Packet) {
        let name = (packet.source, packet.identification);
        let fewest = self.acceptance(packet).map_or(u8::MAX, |before| before.hops_left);
        let acceptance = Acceptance {
            hops_left: packet.hops_left.min(fewest),
            sender: packet.sender,
            damaged: packet.corruption,
        };
        if self.all.insert(name, acceptance).is_some() {
            return;
        }
        self.order.push_back(name);
        if self.order.len() > self.remembered_max
            && let Some(oldest) = self.order.pop_front()
        {
            self.all.remove(&oldest);
        }
    }
}
