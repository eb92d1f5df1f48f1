//! Limits of the store, and eviction.
//!
//! The limits are `limits.store-bytes-max` bytes (headers, payloads and a note per bundle), `limits.bundles-max` bundles, and
//! `limits.heads-bytes-max` bytes of memory for long headers; [`super::accounts`] divides them into quotas. The policy
//! ([`EvictionPolicy`]) decides what happens when there is no space:
//!
//! - `none`: no bundle is evicted. The new bundle is refused: its sender is informed by a refusal of the transfer, an
//!   application by a failed send.
//! - `lowest-priority`: bundles of lower priority than the new one are evicted, the lowest priority first, within a priority
//!   those of the owner that uses most, and of those the oldest, as many as needed; none if they would not be enough. Each is
//!   counted (`deleted_evicted`), deleted with the reason depleted storage, and reported if its source requested that.
//!
//! A neighbour (or a source) that would exceed its quota with the new bundle makes space among its own bundles: its bundles of
//! lower priority are evicted, even if the store has space.
//!
//! Only bundles that wait for a link can be evicted, including those of applications, whose sends then fail. Never evicted are:
//! bundles in custody; bundles that are being sent or received; bundles for applications at this node; bundles of applications
//! at this node within their quota, for a bundle from a neighbour; and any bundle for an administrative record. A device that is
//! full before the limit is reached causes the refusal of the new bundle under either policy.

use crate::bp::{Eid, ReasonCode};
use crate::service::{LinkId, Priority, RecordId, SendFailure};
use crate::time::Instant;
use std::collections::{BTreeMap, BTreeSet};

use super::Agent;
use super::accounts::{NeighbourNumber, Quota, QuotaOwner, Usage, whole};
use super::config::EvictionPolicy;
use super::delivery::ASSEMBLY_BYTES;
use super::head::AnyHead;
use super::routing::is_copy;

/// Request for space: its priority, and the owner that it is charged to.
#[derive(Clone, Debug)]
pub(super) struct SpaceRequest {
    priority: Priority,
    payer: QuotaOwner,
    /// Memory of the header beyond 256 bytes, and of a payload that begins with the bundle, bytes.
    memory: u32,
}

impl SpaceRequest {
    /// Usage of one bundle of this length in the store.
    fn amount(&self, bytes: u64) -> Usage {
        Usage { bundles: 1, bytes, memory: self.memory.into() }
    }
}

/// Owner of a bundle: a neighbour, or `None` for applications at this node.
type Owner = Option<NeighbourNumber>;

/// Evictable bundles of one priority. Empty if the policy evicts nothing.
#[derive(Debug, Default)]
struct EvictionClass {
    of: BTreeMap<Owner, (Usage, BTreeSet<RecordId>)>,
    of_source: BTreeMap<(NeighbourNumber, Eid), (Usage, BTreeSet<RecordId>)>,
    received: Usage,
    own: Usage,
}

/// Evictable bundles by priority.
#[derive(Debug, Default)]
pub(super) struct Evictable {
    classes: [EvictionClass; 3],
    /// Space that is being made: reports about evicted bundles must not take it.
    reserved: Usage,
}

impl EvictionClass {
    fn sum(&mut self, owner: Owner) -> &mut Usage {
        if owner.is_none() { &mut self.own } else { &mut self.received }
    }

    fn insert(&mut self, owner: Owner, source: Eid, record: RecordId, amount: Usage) {
        let (of_owner, records) = self.of.entry(owner).or_default();
        if !records.insert(record) {
            return;
        }
        *of_owner = *of_owner + amount;
        let sum = self.sum(owner);
        *sum = *sum + amount;
        if let Some(neighbour) = owner {
            let (of_source, records) = self.of_source.entry((neighbour, source.detached())).or_default();
            records.insert(record);
            *of_source = *of_source + amount;
        }
    }

    fn remove(&mut self, owner: Owner, source: Eid, record: RecordId, amount: Usage) {
        if !take_out(&mut self.of, &owner, record, amount) {
            return;
        }
        let sum = self.sum(owner);
        *sum = *sum - amount;
        if let Some(neighbour) = owner {
            take_out(&mut self.of_source, &(neighbour, source), record, amount);
        }
    }
}

/// Removes a bundle from its owner's usage. Returns true if it was there.
fn take_out<K: Ord>(
    of: &mut BTreeMap<K, (Usage, BTreeSet<RecordId>)>,
    key: &K,
    record: RecordId,
    amount: Usage,
) -> bool {
    let Some((sum, records)) = of.get_mut(key) else { return false };
    if !records.remove(&record) {
        return false;
    }
    *sum = *sum - amount;
    if records.is_empty() {
        of.remove(key);
    }
    true
}

impl Evictable {
    /// Evictable usage of lower priority: of neighbours, and of applications at this node.
    fn below(&self, priority: Priority) -> (Usage, Usage) {
        let classes = self.classes[..priority as usize].iter();
        classes
            .fold(Default::default(), |(received, own), class| (received + class.received, own + class.own))
    }

    /// Evictable usage of lower priority: of one neighbour, and of one source over it.
    fn below_of(&self, priority: Priority, neighbour: NeighbourNumber, source: &Eid) -> [Usage; 2] {
        let key = (neighbour, source.clone());
        let classes = self.classes[..priority as usize].iter();
        classes.fold([Usage::default(); 2], |[of_neighbour, of_source], class| {
            let here = class.of.get(&Some(neighbour)).map_or(Usage::default(), |(amount, _)| *amount);
            let of_it = class.of_source.get(&key).map_or(Usage::default(), |(amount, _)| *amount);
            [of_neighbour + here, of_source + of_it]
        })
    }

    /// Oldest evictable bundle of the lowest priority below this one, of one source over a neighbour, or of
    /// all its sources if that source has none or is not given.
    fn oldest_of(
        &self,
        priority: Priority,
        neighbour: NeighbourNumber,
        source: Option<&Eid>,
    ) -> Option<RecordId> {
        let classes = &self.classes[..priority as usize];
        let of_source = source.and_then(|source| {
            let key = (neighbour, source.clone());
            classes.iter().find_map(|class| class.of_source.get(&key))
        });
        let of_neighbour = || classes.iter().find_map(|class| class.of.get(&Some(neighbour)));
        of_source.or_else(of_neighbour)?.1.first().copied()
    }
}

impl Agent {
    /// Updates whether a bundle is evictable: it is while it waits and no part of it is being sent.
    pub(super) fn note_evictable(&mut self, record: RecordId, waits: bool) {
        if self.config.evict == EvictionPolicy::None {
            return;
        }
        let Some(held) = self.holdings.get(&record) else { return };
        let (owner, amount) = (held.charged_to(), held.amount());
        let source = held.head.source().node_id();
        let class = &mut self.evictable.classes[held.head.priority() as usize];
        if waits && held.transfers.is_empty() && !is_copy(record) && held.custody.is_none() {
            class.insert(owner, source, record, amount);
        } else {
            class.remove(owner, source, record, amount);
        }
    }

    /// Request of a bundle made at this node; an administrative record is charged to this neighbour.
    pub(super) fn own_claim(head: &AnyHead, head_bytes: u64, neighbour: NeighbourNumber) -> SpaceRequest {
        let payer = QuotaOwner::of_own(head, neighbour);
        SpaceRequest { priority: urgency(head), payer, memory: head.kept_bytes(head_bytes) }
    }

    /// Request of a bundle that arrives over a link.
    pub(super) fn claim_over(&mut self, id: LinkId, head: &AnyHead, head_bytes: u64) -> SpaceRequest {
        let payer = QuotaOwner::Source(self.neighbour_over(id), head.source().node_id());
        let assembly = if self.begins_assembly(head) { ASSEMBLY_BYTES } else { 0 };
        let memory = head.kept_bytes(head_bytes).saturating_add(assembly);
        SpaceRequest { priority: urgency(head), payer, memory }
    }

    /// Request of an arriving bundle for more space.
    pub(super) fn claim_of(&self, record: RecordId) -> SpaceRequest {
        let held = &self.holdings[&record];
        let payer = QuotaOwner::Source(held.neighbour, held.head.source().node_id());
        SpaceRequest { priority: urgency(&held.head), payer, memory: 0 }
    }

    /// Amount that would have to be evicted for this growth.
    fn excess(&self, more: Usage, payer: &QuotaOwner) -> Usage {
        let limits = &self.config.limits;
        let memory = self.holdings.accounts().memory();
        let here = Usage { bundles: self.holdings.len() as u64, bytes: self.holdings.bytes(), memory };
        let kept = match payer {
            QuotaOwner::Own => Usage::default(),
            QuotaOwner::Source(..) => self.holdings.accounts().unused(limits),
        };
        let more = self.evictable.reserved + more;
        (here + more + kept - whole(limits)).where_grown(more)
    }

    fn fits(&self, more: Usage, claim: &SpaceRequest) -> bool {
        let limits = &self.config.limits;
        let (received, own) = self.evictable.below(claim.priority);
        let own = match claim.payer {
            QuotaOwner::Own => own,
            _ => own.at_most(self.holdings.accounts().own_beyond(limits)),
        };
        self.excess(more, &claim.payer).at_most(self.evictable.reserved + more).fits(received + own)
            && self.exceeded(self.evictable.reserved + more, claim, true).is_none()
    }

    /// Quota that this growth would exceed, at present or after eviction of the owner's own bundles.
    fn exceeded(&self, more: Usage, claim: &SpaceRequest, makes_place: bool) -> Option<Quota> {
        let QuotaOwner::Source(neighbour, source) = &claim.payer else { return None };
        let limits = &self.config.limits;
        let (received, own) = self.evictable.below(claim.priority);
        let may_go = received + own.at_most(self.holdings.accounts().own_beyond(limits));
        let its_own = self.evictable.below_of(claim.priority, *neighbour, source);
        let gone = if makes_place { its_own } else { Default::default() };
        self.holdings.accounts().exceeded(limits, (*neighbour, source), more, may_go - its_own[0], gone)
    }

    /// True if there is space for one more bundle of this length, or it can be made.
    pub(super) fn could_fit(&self, bytes: u64, claim: &SpaceRequest) -> bool {
        self.fits(claim.amount(bytes), claim)
    }

    /// Makes space for one more bundle of this length according to the policy. Returns false if there is
    /// none; then nothing was evicted.
    pub(super) fn make_space(&mut self, now: Instant, bytes: u64, claim: &SpaceRequest) -> bool {
        self.make_place(now, claim.amount(bytes), claim)
    }

    /// Makes space for more bytes of a bundle that has an entry.
    pub(super) fn make_bytes(&mut self, now: Instant, bytes: u64, claim: &SpaceRequest) -> bool {
        self.make_place(now, Usage { bytes, ..Usage::default() }, claim)
    }

    /// Makes space for more memory of a bundle that has an entry.
    pub(super) fn make_memory(&mut self, now: Instant, memory: u64, claim: &SpaceRequest) -> bool {
        self.make_place(now, Usage { memory, ..Usage::default() }, claim)
    }

    fn make_place(&mut self, now: Instant, more: Usage, claim: &SpaceRequest) -> bool {
        if !self.fits(more, claim) {
            return false;
        }
        let before = self.evictable.reserved;
        let all = before + more;
        self.evictable.reserved = all;
        let mut exceeds = self.exceeded(all, claim, false);
        while let Some(share) = exceeds
            && let Some(victim) = self.victim_of_its_own(claim, share)
        {
            self.evict(now, victim);
            exceeds = self.exceeded(all, claim, false);
        }
        let mut excess = self.excess(Usage::default(), &claim.payer);
        // Bundles held above a smaller limit stay: only as much is evicted as the new one needs.
        let above = excess - excess.at_most(all);
        excess = excess - above;
        while !excess.is_zero()
            && let Some(victim) = self.victim(claim, excess)
        {
            self.evict(now, victim);
            excess = self.excess(Usage::default(), &claim.payer) - above;
            exceeds = self.exceeded(all, claim, false);
        }
        self.evictable.reserved = before;
        excess.is_zero() && exceeds.is_none()
    }

    fn evict(&mut self, now: Instant, victim: RecordId) {
        self.counters.deleted_evicted += 1;
        self.delete(now, victim, ReasonCode::DepletedStorage, SendFailure::Full);
    }

    /// Bundle to evict for the quota that the request exceeds.
    fn victim_of_its_own(&self, claim: &SpaceRequest, share: Quota) -> Option<RecordId> {
        let QuotaOwner::Source(neighbour, source) = &claim.payer else { return None };
        let source = (share == Quota::Source).then_some(source);
        self.evictable.oldest_of(claim.priority, *neighbour, source)
    }

    /// Bundle to evict: the oldest of the lowest priority, of the owner that uses most of the exceeded
    /// quantity.
    fn victim(&self, claim: &SpaceRequest, excess: Usage) -> Option<RecordId> {
        let measure = |amount: Usage| match excess {
            Usage { bundles: 1.., .. } => amount.bundles,
            Usage { memory: 1.., .. } => amount.memory,
            _ => amount.bytes,
        };
        let own_may_go = claim.payer == QuotaOwner::Own
            || measure(self.holdings.accounts().own_beyond(&self.config.limits)) > 0;
        let may_go = |owner: &Owner| owner.is_some() || own_may_go;
        self.evictable.classes[..claim.priority as usize].iter().find_map(|class| {
            let owners = class.of.iter().filter(|(owner, _)| may_go(owner));
            let (_, (_, records)) =
                owners.max_by_key(|(owner, _)| measure(self.holdings.accounts().of(**owner)))?;
            records.first().copied()
        })
    }
}

/// Priority of a request for the space of other bundles.
fn urgency(head: &AnyHead) -> Priority {
    if head.is_administrative() { Priority::Bulk } else { head.priority() }
}
