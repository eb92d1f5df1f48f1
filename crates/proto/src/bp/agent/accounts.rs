//! Quotas of the store: limits, and the usage of neighbours, sources and applications.
//!
//! ```text
//!   |<------------------------- limits.bundles-max, store-bytes-max ------------------------->|
//!   | reserved for this     | usage of other neighbours  |       available to one neighbour     |
//!   | node: own-share       |                            | neighbour-share of this, and one     |
//!   |                       |                            | source over it source-share of that  |
//! ```
//!
//! A quota is a share of the space that the others have left, so it does not depend on the number of neighbours: a single
//! neighbour may use most of the store, and a later neighbour still finds space. A source is counted per neighbour that its
//! bundles come over: bundles that other neighbours send in its name do not reduce its quota.
//!
//! A neighbour is identified by a keyed 16-bit number of its node ID, which it cannot choose. The number is in the header of
//! each record, so that it survives a restart. Two neighbours share a number, and so a quota, with a probability of 1 in 65,535.

use crate::bp::Eid;
use crate::service::LinkId;
use std::collections::BTreeMap;

use super::Agent;
use super::config::Limits;
use super::delivery::ASSEMBLY_BYTES;
use super::head::AnyHead;
use super::held::HeldBundle;
use super::secret::{NumberKind, Secret};

/// Number of bundles, bytes in the store, and counted bytes of memory (see [`Limits::heads_bytes_max`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) bundles: u64,
    pub(super) bytes: u64,
    pub(super) memory: u64,
}

impl core::ops::Add for Usage {
    type Output = Usage;
    fn add(self, other: Usage) -> Usage {
        self.with(other, u64::saturating_add)
    }
}

impl core::ops::Sub for Usage {
    type Output = Usage;
    /// Remainder; zero instead of a negative value.
    fn sub(self, other: Usage) -> Usage {
        self.with(other, u64::saturating_sub)
    }
}

impl Usage {
    /// Combines each quantity with that of the other.
    fn with(self, other: Usage, combine: impl Fn(u64, u64) -> u64) -> Usage {
        Usage {
            bundles: combine(self.bundles, other.bundles),
            bytes: combine(self.bytes, other.bytes),
            memory: combine(self.memory, other.memory),
        }
    }

    pub(super) fn fits(self, most: Usage) -> bool {
        self.bundles <= most.bundles && self.bytes <= most.bytes && self.memory <= most.memory
    }

    /// Returns only the quantities that grow by `more`: a quantity above its limit after a start with smaller
    /// limits does not block bundles that leave it unchanged.
    pub(super) fn where_grown(self, more: Usage) -> Usage {
        self.with(more, |all, more| if more > 0 { all } else { 0 })
    }

    pub(super) fn at_most(self, most: Usage) -> Usage {
        self.with(most, u64::min)
    }

    fn at_least(self, least: Usage) -> Usage {
        self.with(least, u64::max)
    }

    /// Percentage of the usage, rounded up, so that the quotas of a small store are not zero.
    fn percent(self, percent: u32) -> Usage {
        let part = |all: u64| match all.checked_mul(u64::from(percent)) {
            Some(hundredths) => hundredths.div_ceil(100),
            None => (u128::from(all) * u128::from(percent)).div_ceil(100) as u64,
        };
        Usage { bundles: part(self.bundles), bytes: part(self.bytes), memory: part(self.memory) }
    }

    pub(super) fn is_zero(self) -> bool {
        self == Usage::default()
    }
}

/// Number that represents a neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NeighbourNumber(pub(super) u16);

impl NeighbourNumber {
    /// Unknown neighbour; also this node, where it makes records about its own bundles.
    pub(super) const UNKNOWN: NeighbourNumber = NeighbourNumber(0);

    /// Number of the neighbour with this name.
    fn named(secret: Secret, name: &str) -> Self {
        let number = secret.number(NumberKind::Neighbour, name) % u64::from(u16::MAX);
        NeighbourNumber(u16::try_from(number + 1).expect("it is below"))
    }
}

/// Owner of the quota that a bundle is charged to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QuotaOwner {
    /// Applications of this node.
    Own,
    /// Source of a bundle that this neighbour brings; or this node, for a record about a bundle that the
    /// neighbour brought.
    Source(NeighbourNumber, Eid),
}

impl QuotaOwner {
    /// Owner for a bundle made at this node; an administrative record is charged to this neighbour.
    pub(super) fn of_own(head: &AnyHead, neighbour: NeighbourNumber) -> Self {
        match head.is_administrative() {
            true => QuotaOwner::Source(neighbour, head.source().node_id()),
            false => QuotaOwner::Own,
        }
    }
}

/// Quota that would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quota {
    /// Quota of a neighbour.
    Neighbour,
    /// Quota of one source over a neighbour.
    Source,
}

impl HeldBundle {
    /// Usage of the bundle.
    pub(super) fn amount(&self) -> Usage {
        let assembly = if self.begins_assembly { ASSEMBLY_BYTES } else { 0 };
        Usage { bundles: 1, bytes: self.share, memory: self.extra_bytes.saturating_add(assembly).into() }
    }

    /// Neighbour whose quota the bundle counts against; `None` for bundles of applications at this node.
    pub(super) fn charged_to(&self) -> Option<NeighbourNumber> {
        let is_applications = self.own && !self.head.is_administrative();
        (!is_applications).then_some(self.neighbour)
    }
}

/// Usage of all owners.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Accounts {
    own: Usage,
    received: Usage,
    neighbours: BTreeMap<NeighbourNumber, Usage>,
    sources: BTreeMap<(NeighbourNumber, Eid), Usage>,
}

impl Accounts {
    /// Adds a bundle.
    pub(super) fn enter(&mut self, held: &HeldBundle) {
        let more = held.amount();
        self.change(held, |amount| *amount = *amount + more);
    }

    /// Removes a bundle.
    pub(super) fn leave(&mut self, held: &HeldBundle) {
        let less = held.amount();
        self.change(held, |amount| *amount = *amount - less);
    }

    /// Changes the size of a bundle to `bytes`; its previous size is its share.
    pub(super) fn resize(&mut self, held: &HeldBundle, bytes: u64) {
        self.change(held, |amount| amount.bytes = amount.bytes - held.share + bytes);
    }

    fn change(&mut self, held: &HeldBundle, change: impl Fn(&mut Usage)) {
        let Some(neighbour) = held.charged_to() else { return change(&mut self.own) };
        change(&mut self.received);
        let of = self.neighbours.entry(neighbour).or_default();
        change(of);
        if of.is_zero() {
            self.neighbours.remove(&neighbour);
        }
        let key = (neighbour, held.head.source().node_id());
        match self.sources.get_mut(&key) {
            Some(of) => {
                change(of);
                if of.is_zero() {
                    self.sources.remove(&key);
                }
            }
            None => {
                let mut of = Usage::default();
                change(&mut of);
                self.sources.insert((neighbour, key.1.detached()), of);
            }
        }
    }

    /// Usage of a neighbour; with `None`, of applications at this node.
    pub(super) fn of(&self, neighbour: Option<NeighbourNumber>) -> Usage {
        match neighbour {
            None => self.own,
            Some(neighbour) => self.neighbours.get(&neighbour).copied().unwrap_or_default(),
        }
    }

    /// Counted memory of all bundles, bytes.
    pub(super) fn memory(&self) -> u64 {
        self.own.memory + self.received.memory
    }

    /// Amount reserved for applications at this node.
    fn kept(limits: &Limits) -> Usage {
        whole(limits).percent(limits.own_share_percent)
    }

    /// Unused part of the amount reserved for applications at this node.
    pub(super) fn unused(&self, limits: &Limits) -> Usage {
        Accounts::kept(limits) - self.own
    }

    /// Usage of applications at this node beyond the amount reserved for them.
    pub(super) fn own_beyond(&self, limits: &Limits) -> Usage {
        self.own - Accounts::kept(limits)
    }

    /// Returns the quota that would be exceeded if a source over a neighbour used `more`. `may_go` is the
    /// amount of other owners that may be evicted for it; `gone` and `gone_of_source` are the amounts already
    /// evicted from the neighbour and from the source.
    pub(super) fn exceeded(
        &self,
        limits: &Limits,
        (neighbour, source): (NeighbourNumber, &Eid),
        more: Usage,
        may_go: Usage,
        [gone, gone_of_source]: [Usage; 2],
    ) -> Option<Quota> {
        let had = self.of(Some(neighbour));
        let kept = Accounts::kept(limits);
        let place = whole(limits) - kept.at_least(self.own);
        let left = (place - (self.received - had) + may_go).at_most(whole(limits) - kept);
        let quota = left.percent(limits.neighbour_share_percent);
        let has = had - gone;
        if !(has + more).where_grown(more).fits(quota) {
            return Some(Quota::Neighbour);
        }
        let of_source = self.sources.get(&(neighbour, source.clone())).copied().unwrap_or_default();
        let of_source = of_source - gone_of_source;
        let left = quota - (has - of_source);
        let fits = (of_source + more).where_grown(more).fits(left.percent(limits.source_share_percent));
        (!fits).then_some(Quota::Source)
    }
}

/// Limits of the whole store.
pub(super) fn whole(limits: &Limits) -> Usage {
    Usage {
        bundles: limits.bundles_max as u64,
        bytes: limits.store_bytes_max,
        memory: limits.heads_bytes_max,
    }
}

impl Agent {
    /// Number of the neighbour at the other end of a link; all incoming links without a node ID count as one
    /// neighbour.
    pub(super) fn neighbour_over(&mut self, id: LinkId) -> NeighbourNumber {
        let secret = self.startup.secret();
        let Some(link) = self.links.get_mut(id) else { return NeighbourNumber::UNKNOWN };
        if let Some(known) = link.neighbour {
            return known;
        }
        let name = match &link.peer() {
            Some(peer) => peer.to_string(),
            None if id.is_incoming() => "a caller".to_owned(),
            None => format!("link {}", id.0),
        };
        *link.neighbour.insert(NeighbourNumber::named(secret, &name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_newcomer_finds_a_place() {
        let limits = Limits { bundles_max: 10_000, ..Limits::default() };
        let mut accounts = Accounts::default();
        let one = Usage { bundles: 1, bytes: 100, memory: 10 };
        for number in 1..=8 {
            let (neighbour, source) = (NeighbourNumber(number), Eid::ipn(number.into(), 1));
            let mut count = 0;
            let exceeded = |accounts: &Accounts| {
                accounts.exceeded(&limits, (neighbour, &source), one, Usage::default(), Default::default())
            };
            while exceeded(&accounts).is_none() {
                count += 1;
                accounts.received = accounts.received + one;
                let of = accounts.neighbours.entry(neighbour).or_default();
                *of = *of + one;
                let of = accounts.sources.entry((neighbour, source.clone())).or_default();
                *of = *of + one;
            }
            assert!(count > 0, "number {number} has no place");
        }
        let kept = limits.bundles_max as u64 - accounts.received.bundles;
        assert!(kept > limits.bundles_max as u64 / 10, "{kept} are left for applications here");
    }

    #[test]
    fn names_and_secrets_tell_neighbours_apart() {
        let name = |secret, name| NeighbourNumber::named(Secret(secret), name);
        assert_eq!(name(1, "dtn://a/"), name(1, "dtn://a/"));
        assert_ne!(name(1, "dtn://a/"), name(1, "dtn://b/"));
        assert_ne!(name(1, "dtn://a/"), name(2, "dtn://a/"));
    }
}
