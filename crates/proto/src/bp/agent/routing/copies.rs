//! Copies of bundles that go to several nodes.
//!
//! ```text
//!   a node without a copy is met: a copy begins (in memory only; it reads from the bundle's record)
//!  |          |                        |
//!  |          | link down              | the node has the copy
//!  |          v                        v
//!  |   kept if the node has       noted in the bundle's record: the node is given,
//!  |   a part of it already,      fewer copies are left. At the destination, the bundle
//!  |   otherwise undone           is complete: it is removed, and remembered as passed
//! ```
//!
//! A copy is a bundle in its own queue with a single destination node, so that transfers of copies (fragments, breaks, refusals)
//! work as all others. When a bundle has been passed to its destination, a tombstone is kept, as for a bundle that an
//! application has accepted: the bundle is refused for as long as any copy may exist. For a *part* of a bundle this is kept
//! only in memory.

use crate::bp::Eid;
use crate::kit::remove_from;
use crate::service::{BundleEvent, LinkId, RecordId};
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::super::Agent;
use super::super::adu::LocalKey;
use super::super::head::AnyHead;
use super::super::held::{BundleState, HeldBundle};
use super::super::links::Links;
use super::super::record::Note;
use super::super::taken::{Digest, Digests};
use super::{COPY_BIT, is_copy};

/// Maximum number of remembered parts that were passed to their destination.
const PASSED_MAX: usize = 4096;

/// State of a bundle that goes to several nodes.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Replication {
    /// Nodes that have the bundle, by [`Links::key_of`].
    pub(in super::super) given: BTreeSet<u64>,
    /// Copies that are being sent or were interrupted.
    pub(in super::super) under_way: BTreeMap<Eid, RecordId>,
    /// Number of copies that may be made, including this one; `None` if unlimited.
    pub(in super::super) copies: Option<u64>,
    /// True once the node that the bundle came from is among the given.
    pub(super) begun: bool,
    /// True once the first copy has arrived and its arrival was reported to the source.
    told: bool,
}

impl Replication {
    /// Restores the state from a note in the record.
    pub(in super::super) fn restore(&mut self, note: Note) {
        match note {
            Note::Given(key) => drop(self.given.insert(key)),
            Note::Copies(copies) => self.copies = Some(copies),
            Note::Sealed { .. } | Note::HandedOver | Note::SafeUpTo(_) => {}
        }
    }

    /// Keys of all nodes that have the bundle or are receiving it, in order.
    pub(super) fn keys(&self, links: &Links) -> Vec<u64> {
        let under_way = self.under_way.keys().map(|node| links.key_of(node));
        let all: BTreeSet<u64> = self.given.iter().copied().chain(under_way).collect();
        all.into_iter().collect()
    }
}

/// Origin of a copy.
#[derive(Clone, Debug)]
pub(in super::super) struct CopyOrigin {
    /// Record of the bundle.
    pub(in super::super) parent: RecordId,
    /// Destination node of the copy.
    pub(in super::super) to: Eid,
    /// Number of copies that the destination node may then make.
    copies: Option<u64>,
}

/// Parts that were passed to their destination, oldest first.
#[derive(Debug)]
pub(super) struct DeliveredParts {
    digests: Digests,
    known: BTreeSet<Digest>,
    order: VecDeque<Digest>,
}

impl DeliveredParts {
    /// Creates the state without parts.
    pub(super) fn new(digests: Digests) -> Self {
        DeliveredParts { digests, known: BTreeSet::new(), order: VecDeque::new() }
    }

    /// True if the part with this header was passed.
    fn contains(&self, head: &AnyHead) -> bool {
        !self.known.is_empty() && self.known.contains(&self.digests.part(head))
    }

    fn insert(&mut self, head: &AnyHead) {
        let part = self.digests.part(head);
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
    /// Record of a bundle, or of the bundle of which this is a copy.
    pub(in super::super) fn original(&self, record: RecordId) -> RecordId {
        if !is_copy(record) {
            return record;
        }
        let copy = self.holdings.get(&record).and_then(|held| held.copy_origin.as_ref());
        copy.map_or(record, |copy| copy.parent)
    }

    /// Record to send over a link when this bundle is next: the bundle itself, or a new copy of it.
    pub(in super::super) fn copy_for(&mut self, link: LinkId, record: RecordId) -> RecordId {
        let held = &self.holdings[&record];
        let BundleState::Forwarding(class) = held.state else { return record };
        if self.routing.queues.key(class).ways != super::NextHops::Everyone {
            return record;
        }
        let peer = self.links.peer(link).expect("copies go to nodes that are known").clone();
        let id = RecordId(self.next_record().0 | COPY_BIT);
        let held = self.holdings.get_mut(&record).expect("it was just found");
        let replication = held.replication.as_mut().expect("what goes to everyone is spread");
        let given = replication.copies.map(|copies| copies / 2);
        replication.copies = replication.copies.map(|copies| copies - copies / 2);
        replication.under_way.insert(peer.clone(), id);
        let mut copy = held.copy(record, peer.clone(), given);
        if let Some(copies) = given {
            // The destination needs none, and a bundle without a number would look like one whose copies are
            // not counted.
            copy.head.set_copies(copies.max(1));
        }
        self.routing.copies.entry(peer).or_default().insert(id);
        self.holdings.insert_copy(id, copy);
        self.route(id);
        self.sort_again(record);
        id
    }

    /// Handles a copy that has arrived.
    pub(in super::super) fn copy_sent(&mut self, now: Instant, id: RecordId) {
        let Some(copy) = self.forget_copy(id) else { return };
        self.counters.copies_sent += 1;
        let parent = copy.parent;
        let Some(held) = self.holdings.get_mut(&parent) else { return };
        let at_destination = copy.to.same_node(held.head.destination());
        let send = held.send.take();
        let replication = held.replication.as_mut().expect("it has copies");
        let first = !core::mem::replace(&mut replication.told, true);
        replication.given.insert(self.links.key_of(&copy.to));
        let copies = replication.copies;
        if first {
            self.counters.forwarded += 1;
            self.happened(parent, BundleEvent::Forwarded);
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

    /// Undoes a copy that did not arrive and of which its node has no part.
    pub(in super::super) fn copy_undone(&mut self, id: RecordId) {
        let Some(copy) = self.forget_copy(id) else { return };
        let Some(replication) = self.spread_of(copy.parent) else { return };
        replication.copies = replication.copies.zip(copy.copies).map(|(left, back)| left + back);
        self.sort_again(copy.parent);
    }

    /// Handles a permanent refusal of a copy by a node, which gets no further one.
    pub(in super::super) fn copy_refused(&mut self, id: RecordId) {
        let Some(copy) = self.forget_copy(id) else { return };
        self.counters.copies_refused += 1;
        let key = self.links.key_of(&copy.to);
        let Some(replication) = self.spread_of(copy.parent) else { return };
        replication.given.insert(key);
        replication.copies = replication.copies.zip(copy.copies).map(|(left, back)| left + back);
        self.sort_again(copy.parent);
    }

    /// Excludes a node from copies of a bundle that exceeds the maximum of the link and must not be
    /// fragmented.
    pub(in super::super) fn bar_copies(&mut self, link: LinkId, record: RecordId) {
        let Some(key) = self.links.peer_key(link) else { return };
        self.counters.copies_refused += 1;
        if let Some(replication) = self.spread_of(record) {
            replication.given.insert(key);
            self.sort_again(record);
        }
    }

    /// Undoes the copies for a node that is no longer connected and has no part of them; the others wait for
    /// it.
    pub(in super::super) fn undo_copies(&mut self, peer: &Eid) {
        if self.links.is_connected(peer) {
            return;
        }
        let ids: Vec<RecordId> = self.routing.copies.get(peer).into_iter().flatten().copied().collect();
        for id in ids {
            let held = &self.holdings[&id];
            if held.transfers.is_empty() && self.safe_prefix(held) == 0 && held.is_untouched() {
                self.copy_undone(id);
            }
        }
    }

    /// Removes a copy.
    fn forget_copy(&mut self, id: RecordId) -> Option<CopyOrigin> {
        let copy = self.holdings.get(&id)?.copy_origin.clone()?;
        self.drop_bundle(id);
        Some(*copy)
    }

    /// Removes the entries for a copy in the other indices.
    pub(in super::super) fn copy_gone(&mut self, id: RecordId, copy: &CopyOrigin) {
        remove_from(&mut self.routing.copies, &copy.to, &id);
        if let Some(replication) = self.spread_of(copy.parent) {
            replication.under_way.remove(&copy.to);
        }
    }

    /// Removes all copies of a bundle.
    pub(in super::super) fn drop_copies(&mut self, replication: Replication) {
        for id in replication.under_way.into_values() {
            self.drop_bundle(id);
        }
    }

    fn spread_of(&mut self, record: RecordId) -> Option<&mut Replication> {
        self.holdings.get_mut(&record)?.replication.as_deref_mut()
    }

    /// Appends a note to the record of a bundle, unless the record ends with a prefix: see the storage format in `record`.
    pub(in super::super) fn note(&mut self, record: RecordId, note: Note) {
        let held = self.holdings.get_mut(&record).expect("the caller has it");
        if held.closed {
            return;
        }
        let note = note.encode(held.nonce, held.appended);
        self.append_urgent(record, note);
    }

    /// True if a part with this header was passed to its destination.
    pub(in super::super) fn was_passed(&self, head: &AnyHead) -> bool {
        self.routing.passed.contains(head)
    }

    /// Remembers that a bundle was passed to its destination, so that it is refused if it arrives again.
    pub(in super::super) fn remember_passed(&mut self, now: Instant, record: RecordId) {
        let held = &self.holdings[&record];
        if held.head.source().is_null() {
            return;
        }
        if held.head.fragment().is_some() {
            self.routing.passed.insert(&held.head);
        } else {
            let (key, end) = (LocalKey::of(&held.head, held.adu()), held.end);
            self.add_tombstone_for(now, key, end);
        }
    }
}

impl HeldBundle {
    /// Copy of the bundle for a node, not yet in a queue.
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
            is_refused: false,
            replication: None,
            custody: None,
            copy_origin: Some(Box::new(CopyOrigin { parent, to, copies })),
            ..self.clone()
        };
        copy.renew();
        copy
    }

    /// True if the complete payload is still to be sent.
    pub(in super::super) fn is_untouched(&self) -> bool {
        match self.payload_bytes() {
            0 => self.to_send_empty,
            all => self.to_send.first() == Some((0, all)),
        }
    }
}
