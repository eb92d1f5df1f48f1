//! The store's limits, and what goes when they are reached.
//!
//! Limits: `limits.store-bytes-max` bytes (heads, payloads and a note for each bundle) and `limits.bundles-max` bundles. The
//! policy ([`Evict`]) says what happens then:
//!
//! - `none`: nothing goes. The newcomer is refused: a peer hears it in its protocol's own words, an application as a failed
//!   send.
//! - `lowest-priority`: bundles that are less urgent than the newcomer go, the least urgent first and of those the oldest, as
//!   many as are needed; and none at all where they would not be enough. Each is counted (`deleted_evicted`), told as
//!   deleted for want of storage, and reported where its sender asked for it.
//!
//! What may go is what waits for a link, own sends included: an application that waits for one hears that it failed. What
//! never goes: what is in custody, what is on its way to a neighbour or has come in part, what is here for an application,
//! and anything for the sake of an administrative record. A device that is full before the limit is reached refuses the
//! newcomer under either policy.

use crate::bp::ReasonCode;
use crate::service::{Priority, RecordId, SendFailure};
use crate::time::Instant;
use core::cmp::Reverse;
use std::collections::BTreeSet;

use super::Agent;
use super::config::Evict;
use super::head::Head;
use super::held::Rank;
use super::routing::is_copy;

/// So many bundles, and so many bytes of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    bundles: usize,
    bytes: u64,
}

/// The bundles that may go for something more urgent.
#[derive(Debug, Default)]
pub(super) struct Evictable {
    ranks: BTreeSet<Rank>,
    /// What they amount to, by priority.
    sums: [Amount; 3],
    /// The place that is being made: reports about what has gone for it take none of it.
    reserved: Amount,
}

impl core::ops::Add for Amount {
    type Output = Amount;
    fn add(self, other: Amount) -> Amount {
        Amount { bundles: self.bundles + other.bundles, bytes: self.bytes.saturating_add(other.bytes) }
    }
}

impl Evictable {
    fn insert(&mut self, rank: Rank, bytes: u64) {
        if self.ranks.insert(rank) {
            let sum = &mut self.sums[rank.0.0 as usize];
            sum.bundles += 1;
            sum.bytes += bytes;
        }
    }

    fn remove(&mut self, rank: Rank, bytes: u64) {
        if self.ranks.remove(&rank) {
            let sum = &mut self.sums[rank.0.0 as usize];
            sum.bundles -= 1;
            sum.bytes -= bytes;
        }
    }

    /// What is less urgent than this.
    fn below(&self, priority: Priority) -> Amount {
        self.sums[..priority as usize].iter().fold(Amount::default(), |all, sum| all + *sum)
    }

    /// The oldest of the least urgent, if that is less urgent than this.
    fn first_below(&self, priority: Priority) -> Option<RecordId> {
        let least = self.ranks.last()?.0;
        let first = self.ranks.range((least, RecordId(0))..).next();
        first.filter(|_| least > Reverse(priority)).map(|(_, record)| *record)
    }
}

impl Agent {
    /// Says whether a bundle may go for something more urgent: while it waits, and nothing of it is on its way.
    pub(super) fn note_evictable(&mut self, record: RecordId, waits: bool) {
        let Some(held) = self.bundles.get(&record) else { return };
        let (rank, bytes) = (held.rank(record), held.share);
        if waits && held.flights.is_empty() && !is_copy(record) && held.custody.is_none() {
            self.evictable.insert(rank, bytes);
        } else {
            self.evictable.remove(rank, bytes);
        }
    }

    /// How urgent something is when it wants the place of others.
    pub(super) fn claim(head: &Head) -> Priority {
        if head.is_administrative() { Priority::Bulk } else { head.priority() }
    }

    /// What would have to go for so much more.
    fn excess(&self, more: Amount) -> Amount {
        let here = Amount { bundles: self.bundles.len(), bytes: self.bytes_held };
        let all = here + self.evictable.reserved + more;
        let limits = &self.config.limits;
        Amount {
            bundles: all.bundles.saturating_sub(limits.bundles_max),
            bytes: all.bytes.saturating_sub(limits.store_bytes_max),
        }
    }

    fn fits(&self, more: Amount, claim: Priority) -> bool {
        let excess = self.excess(more);
        let may_go = match self.config.evict {
            Evict::None => Amount::default(),
            Evict::LowestPriority => self.evictable.below(claim),
        };
        excess.bundles <= may_go.bundles && excess.bytes <= may_go.bytes
    }

    /// True if one bundle more of so many bytes has a place, or can be given one.
    pub(super) fn could_fit(&self, bytes: u64, claim: Priority) -> bool {
        self.fits(Amount { bundles: 1, bytes }, claim)
    }

    /// Makes place for one bundle more of so many bytes, as the policy says; false: there is none, and nothing has gone.
    pub(super) fn make_space(&mut self, now: Instant, bytes: u64, claim: Priority) -> bool {
        self.make_place(now, Amount { bundles: 1, bytes }, claim)
    }

    /// Makes place for so many bytes more of a bundle that has one.
    pub(super) fn make_bytes(&mut self, now: Instant, bytes: u64, claim: Priority) -> bool {
        self.make_place(now, Amount { bundles: 0, bytes }, claim)
    }

    fn make_place(&mut self, now: Instant, more: Amount, claim: Priority) -> bool {
        if !self.fits(more, claim) {
            return false;
        }
        let before = self.evictable.reserved;
        self.evictable.reserved = before + more;
        while self.excess(Amount::default()) != Amount::default() {
            let victim = self.evictable.first_below(claim).expect("what may go is enough");
            self.counters.deleted_evicted += 1;
            self.delete(now, victim, ReasonCode::DepletedStorage, SendFailure::Full);
        }
        self.evictable.reserved = before;
        true
    }
}
