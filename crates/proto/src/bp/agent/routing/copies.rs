//! Copies: bundles that go to several nodes.
//!
//! ```text
//!   a node is met that has none: a copy begins (memory only; it reads from the bundle's record)
//!      |          |                        |
//!      |          | link down              | the node has it
//!      |          v                        v
//!      |   kept if the node has       noted in the bundle's record: the node is given,
//!      |   a part of it already,      fewer copies are left. The destination: all done,
//!      |   else forgotten             the bundle goes, and is remembered as passed
//! ```
//!
//! A copy is a bundle in a queue of its own, for its node only, so that everything a transfer may go through (fragments,
//! breaks, refusals) is as for any other. Of a bundle that was handed to its destination a tombstone is kept, as of one
//! that an application took: what comes again is refused for as long as any copy may live. Of a *part* that was handed
//! over this is kept in memory only.

use crate::bp::Eid;
use crate::service::{LinkId, RecordId};
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::Agent;
use super::super::delivery::LocalKey;
use super::super::head::AnyHead;
use super::super::held::{BundleState, HeldBundle};
use super::super::links::Links;
use super::super::record::Note;
use super::super::taken::Digest;
use super::{COPY_BIT, is_copy};

/// Parts that were handed to their destination and are remembered.
const PASSED_MAX: usize = 4096;

/// What is remembered of a bundle that goes to several nodes.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Replication {
    /// Nodes that have it, by [`Links::key_of`].
    pub(in super::super) given: BTreeSet<u64>,
    /// Copies on their way, or broken off half-way.
    pub(in super::super) under_way: BTreeMap<Eid, RecordId>,
    /// How many copies may be made, this one included; none: as many as there are nodes.
    pub(in super::super) copies: Option<u64>,
    /// The node it came from is among the given.
    pub(super) begun: bool,
    /// Its first copy has arrived somewhere, and whoever sent it was told.
    told: bool,
}

impl Replication {
    /// A node has it, says the record.
    pub(in super::super) fn restore(&mut self, note: Note) {
        match note {
            Note::Given(key) => drop(self.given.insert(key)),
            Note::Copies(copies) => self.copies = Some(copies),
            Note::Sealed { .. } | Note::HandedOver | Note::SafeUpTo(_) => {}
        }
    }

    /// All that have it or get it, in order.
    pub(super) fn keys(&self, links: &Links) -> Vec<u64> {
        let under_way = self.under_way.keys().map(|node| links.key_of(node));
        let all: BTreeSet<u64> = self.given.iter().copied().chain(under_way).collect();
        all.into_iter().collect()
    }
}

/// What a copy is of.
#[derive(Clone, Debug)]
pub(in super::super) struct CopyOrigin {
    /// The record of the bundle.
    pub(in super::super) parent: RecordId,
    /// The node it goes to.
    pub(in super::super) to: Eid,
    /// How many copies that node may then make.
    copies: Option<u64>,
}

/// Parts that were handed to their destination, the oldest first.
#[derive(Debug, Default)]
pub(in super::super) struct DeliveredParts {
    known: BTreeSet<Digest>,
    order: VecDeque<Digest>,
}

impl DeliveredParts {
    fn insert(&mut self, part: Digest) {
        if self.known.insert(part) {
            self.order.push_back(part);
        }
        if self.order.len() > PASSED_MAX {
            let oldest = self.order.pop_front().expect("there is one too many");
            self.known.remove(&oldest);
        }
    }
}

impl Agent {
    /// The record that a bundle, or the bundle that this is a copy of, is in.
    pub(in super::super) fn original(&self, record: RecordId) -> RecordId {
        if !is_copy(record) {
            return record;
        }
        let copy = self.bundles.get(&record).and_then(|held| held.copy_origin.as_ref());
        copy.map_or(record, |copy| copy.parent)
    }

    /// What goes over a link when this bundle is next: itself, or a new copy of it.
    pub(in super::super) fn copy_for(&mut self, link: LinkId, record: RecordId) -> RecordId {
        let held = &self.bundles[&record];
        let BundleState::Forwarding(class) = held.state else { return record };
        if self.queues.key(class).ways != super::NextHops::Everyone {
            return record;
        }
        let peer = self.links.peer(link).expect("copies go to nodes that are known").clone();
        let id = RecordId(self.next_record().0 | COPY_BIT);
        let held = self.bundles.get_mut(&record).expect("it was just found");
        let replication = held.replication.as_mut().expect("what goes to everyone is spread");
        let given = replication.copies.map(|copies| copies / 2);
        replication.copies = replication.copies.map(|copies| copies - copies / 2);
        replication.under_way.insert(peer.clone(), id);
        let mut copy = held.copy(record, peer.clone(), given);
        if let Some(copies) = given {
            // The destination needs none, and a bundle with none would look like one that nobody counts.
            copy.head.set_copies(copies.max(1));
        }
        self.copies.entry(peer).or_default().insert(id);
        self.bundles.insert(id, Box::new(copy));
        self.copies_held += 1;
        self.route(id);
        self.sort_again(record);
        id
    }

    /// A copy has arrived.
    pub(in super::super) fn copy_sent(&mut self, now: Instant, id: RecordId) {
        let Some(copy) = self.forget_copy(id) else { return };
        self.counters.copies_sent += 1;
        let parent = copy.parent;
        let Some(held) = self.bundles.get_mut(&parent) else { return };
        let at_destination = copy.to.same_node(held.head.destination());
        let send = held.send.take();
        let replication = held.replication.as_mut().expect("it has copies");
        let first = !core::mem::replace(&mut replication.told, true);
        replication.given.insert(self.links.key_of(&copy.to));
        let copies = replication.copies;
        if first {
            self.counters.forwarded += 1;
            self.report_forwarded(now, parent);
        }
        if let Some(send) = send {
            self.end_send(send, Ok(()));
        }
        if at_destination {
            self.remember_passed(now, parent);
            self.drop_bundle(parent);
            return;
        }
        if let Some(copies) = copies {
            self.note(parent, Note::Copies(copies));
        }
        self.note(parent, Note::Given(self.links.key_of(&copy.to)));
        self.sort_again(parent);
    }

    /// A copy did not get there, and its node has no part of it: as if it had never been begun.
    pub(in super::super) fn copy_undone(&mut self, id: RecordId) {
        let Some(copy) = self.forget_copy(id) else { return };
        let Some(replication) = self.spread_of(copy.parent) else { return };
        replication.copies = replication.copies.zip(copy.copies).map(|(left, back)| left + back);
        self.sort_again(copy.parent);
    }

    /// A node does not take a copy, now or ever: it gets none.
    pub(in super::super) fn copy_refused(&mut self, id: RecordId) {
        let Some(copy) = self.forget_copy(id) else { return };
        self.counters.copies_refused += 1;
        let key = self.links.key_of(&copy.to);
        let Some(replication) = self.spread_of(copy.parent) else { return };
        replication.given.insert(key);
        replication.copies = replication.copies.zip(copy.copies).map(|(left, back)| left + back);
        self.sort_again(copy.parent);
    }

    /// A bundle can never go over a link in one piece and may not be divided: its node gets no copy.
    pub(in super::super) fn bar_copies(&mut self, link: LinkId, record: RecordId) {
        let Some(key) = self.links.peer_key(link) else { return };
        self.counters.copies_refused += 1;
        if let Some(replication) = self.spread_of(record) {
            replication.given.insert(key);
            self.sort_again(record);
        }
    }

    /// A node has gone: copies of which it has nothing are forgotten, the others wait for it.
    pub(in super::super) fn undo_copies(&mut self, peer: &Eid) {
        if self.links.is_connected(peer) {
            return;
        }
        let ids: Vec<RecordId> = self.copies.get(peer).into_iter().flatten().copied().collect();
        for id in ids {
            let held = &self.bundles[&id];
            if held.transfers.is_empty() && self.safe_prefix(held) == 0 && held.is_untouched() {
                self.copy_undone(id);
            }
        }
    }

    /// Takes a copy away.
    fn forget_copy(&mut self, id: RecordId) -> Option<CopyOrigin> {
        let copy = self.bundles.get(&id)?.copy_origin.clone()?;
        self.drop_bundle(id);
        Some(*copy)
    }

    /// What of a copy is known elsewhere goes with it.
    pub(in super::super) fn copy_gone(&mut self, id: RecordId, copy: &CopyOrigin) {
        if let Some(ids) = self.copies.get_mut(&copy.to) {
            ids.remove(&id);
            if ids.is_empty() {
                self.copies.remove(&copy.to);
            }
        }
        if let Some(replication) = self.spread_of(copy.parent) {
            replication.under_way.remove(&copy.to);
        }
    }

    /// All copies of a bundle go with it.
    pub(in super::super) fn drop_copies(&mut self, replication: Replication) {
        for id in replication.under_way.into_values() {
            self.drop_bundle(id);
        }
    }

    fn spread_of(&mut self, record: RecordId) -> Option<&mut Replication> {
        self.bundles.get_mut(&record)?.replication.as_deref_mut()
    }

    /// Writes something down behind a bundle, where that is possible.
    pub(super) fn note(&mut self, record: RecordId, note: Note) {
        let held = self.bundles.get_mut(&record).expect("the caller has it");
        if held.closed {
            return;
        }
        let note = note.encode(held.nonce, held.appended);
        self.append(record, note);
    }

    /// True if a part with this head is with its destination.
    pub(in super::super) fn was_passed(&self, head: &AnyHead) -> bool {
        !self.passed.known.is_empty() && self.passed.known.contains(&self.part_digest(head))
    }

    /// A bundle is with its destination: what comes of it again is not wanted.
    pub(in super::super) fn remember_passed(&mut self, now: Instant, record: RecordId) {
        let held = &self.bundles[&record];
        if held.head.source().is_null() {
            return;
        }
        if held.head.fragment().is_some() {
            let part = self.part_digest(&held.head);
            self.passed.insert(part);
        } else {
            let (key, end) = (LocalKey::of(&held.head, held.adu()), held.end);
            self.add_tombstone_for(now, &key, end);
        }
    }
}

impl HeldBundle {
    /// A copy of it for a node, as yet in no queue.
    fn copy(&self, parent: RecordId, to: Eid, copies: Option<u64>) -> HeldBundle {
        let mut copy = HeldBundle {
            closed: true,
            broken: false,
            share: 0,
            intake: None,
            send: None,
            handed: 0,
            durable: 0,
            state: BundleState::Sealing,
            transfers: Vec::new(),
            refusals: 0,
            excluded_links: Vec::new(),
            replication: None,
            custody: None,
            copy_origin: Some(Box::new(CopyOrigin { parent, to, copies })),
            ..self.clone()
        };
        copy.renew();
        copy
    }

    /// All of it is still to be sent.
    pub(in super::super) fn is_untouched(&self) -> bool {
        match self.payload_bytes() {
            0 => self.to_send_empty,
            all => self.to_send.first() == Some((0, all)),
        }
    }
}
