//! The shares of the store: limits, and the amounts that neighbours, sources and applications have.
//!
//! ```text
//!   |<------------------------- limits.bundles-max, store-bytes-max ------------------------->|
//!   | kept for applications | what other neighbours have |      what one neighbour may have    |
//!   | here: own-share       |                            | neighbour-share of this, and one    |
//!   |                       |                            | source over it source-share of that |
//! ```
//!
//! A quota is a share of what the others have left, so it needs no number of neighbours: one alone may have most of the
//! store, and whoever comes later still finds a place. A source counts by the neighbour that its bundles came over: what
//! others send under its name takes nothing from it.
//!
//! A neighbour is told from others by what it calls itself, in 16 bits that nobody can choose: they stand in the header of
//! each record, so that a restart knows them. Two neighbours in 65,535 share a quota by chance.

use crate::bp::Eid;
use crate::service::LinkId;
use std::collections::BTreeMap;

use super::Agent;
use super::config::Limits;
use super::delivery::ASSEMBLY_BYTES;
use super::head::AnyHead;
use super::held::HeldBundle;
use super::secret::{NumberKind, Secret};

/// Bundles, bytes of the store, and bytes of memory that are counted: see [`Limits::heads_bytes_max`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) bundles: usize,
    pub(super) bytes: u64,
    pub(super) memory: u64,
}

impl core::ops::Add for Usage {
    type Output = Usage;
    fn add(self, other: Usage) -> Usage {
        Usage {
            bundles: self.bundles.saturating_add(other.bundles),
            bytes: self.bytes.saturating_add(other.bytes),
            memory: self.memory.saturating_add(other.memory),
        }
    }
}

impl core::ops::Sub for Usage {
    type Output = Usage;
    /// The rest; zero where there is less.
    fn sub(self, other: Usage) -> Usage {
        Usage {
            bundles: self.bundles.saturating_sub(other.bundles),
            bytes: self.bytes.saturating_sub(other.bytes),
            memory: self.memory.saturating_sub(other.memory),
        }
    }
}

impl Usage {
    pub(super) fn fits(self, most: Usage) -> bool {
        self.bundles <= most.bundles && self.bytes <= most.bytes && self.memory <= most.memory
    }

    /// Of this what grows by `more`: what is too much already, after a start with smaller limits, keeps nothing else out.
    pub(super) fn where_grown(self, more: Usage) -> Usage {
        Usage {
            bundles: if more.bundles > 0 { self.bundles } else { 0 },
            bytes: if more.bytes > 0 { self.bytes } else { 0 },
            memory: if more.memory > 0 { self.memory } else { 0 },
        }
    }

    pub(super) fn at_most(self, most: Usage) -> Usage {
        Usage {
            bundles: self.bundles.min(most.bundles),
            bytes: self.bytes.min(most.bytes),
            memory: self.memory.min(most.memory),
        }
    }

    fn at_least(self, least: Usage) -> Usage {
        Usage {
            bundles: self.bundles.max(least.bundles),
            bytes: self.bytes.max(least.bytes),
            memory: self.memory.max(least.memory),
        }
    }

    /// A percentage of it, rounded up: a small store has a place for somebody, too.
    fn percent(self, percent: u32) -> Usage {
        let part = |all: u64| match all.checked_mul(u64::from(percent)) {
            Some(hundredths) => hundredths.div_ceil(100),
            None => (u128::from(all) * u128::from(percent)).div_ceil(100) as u64,
        };
        let (bundles, bytes, memory) = (self.bundles as u64, self.bytes, self.memory);
        Usage { bundles: part(bundles) as usize, bytes: part(bytes), memory: part(memory) }
    }

    pub(super) fn is_zero(self) -> bool {
        self == Usage::default()
    }
}

/// The number that stands for a neighbour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NeighbourNumber(pub(super) u16);

impl NeighbourNumber {
    /// Nobody knows which; this node itself, where it makes records about its own bundles.
    pub(super) const UNKNOWN: NeighbourNumber = NeighbourNumber(0);

    /// The one that calls itself so.
    fn named(secret: Secret, name: &str) -> Self {
        let number = secret.number(NumberKind::Neighbour, name) % u64::from(u16::MAX);
        NeighbourNumber(u16::try_from(number + 1).expect("it is below"))
    }
}

/// The party whose share a place is taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum QuotaOwner {
    /// An application of this node.
    Own,
    /// A node whose bundle this neighbour brings; or this node, for a record about what the neighbour has brought.
    Source(NeighbourNumber, Eid),
}

impl QuotaOwner {
    /// The payer for a bundle made here; a record is charged to this neighbour.
    pub(super) fn of_own(head: &AnyHead, neighbour: NeighbourNumber) -> Self {
        match head.is_administrative() {
            true => QuotaOwner::Source(neighbour, head.source().node_id()),
            false => QuotaOwner::Own,
        }
    }
}

/// A share that would be exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quota {
    /// The share of a neighbour.
    Neighbour,
    /// The share of one source over it.
    Source,
}

impl HeldBundle {
    /// The amount that it takes.
    pub(super) fn amount(&self) -> Usage {
        let assembly = if self.begins_assembly { ASSEMBLY_BYTES } else { 0 };
        Usage { bundles: 1, bytes: self.share, memory: self.extra_bytes.saturating_add(assembly).into() }
    }

    /// The neighbour whose quota it counts against; none: it is of an application here.
    pub(super) fn charged_to(&self) -> Option<NeighbourNumber> {
        let is_applications = self.own && !self.head.is_administrative();
        (!is_applications).then_some(self.neighbour)
    }
}

/// The amounts that all have.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Accounts {
    own: Usage,
    received: Usage,
    neighbours: BTreeMap<NeighbourNumber, Usage>,
    sources: BTreeMap<(NeighbourNumber, Eid), Usage>,
}

impl Accounts {
    /// A bundle is here from now on.
    pub(super) fn enter(&mut self, held: &HeldBundle) {
        let more = held.amount();
        self.change(held, |amount| *amount = *amount + more);
    }

    /// It is here no longer.
    pub(super) fn leave(&mut self, held: &HeldBundle) {
        let less = held.amount();
        self.change(held, |amount| *amount = *amount - less);
    }

    /// It takes so many bytes now, and took its share before.
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

    /// The amount that a neighbour has; `None`: applications here.
    pub(super) fn of(&self, neighbour: Option<NeighbourNumber>) -> Usage {
        match neighbour {
            None => self.own,
            Some(neighbour) => self.neighbours.get(&neighbour).copied().unwrap_or_default(),
        }
    }

    /// The memory that counts of all bundles, bytes.
    pub(super) fn memory(&self) -> u64 {
        self.own.memory + self.received.memory
    }

    /// The amount kept for applications here.
    fn kept(limits: &Limits) -> Usage {
        whole(limits).percent(limits.own_share_percent)
    }

    /// The amount kept for applications here and not in use.
    pub(super) fn unused(&self, limits: &Limits) -> Usage {
        Accounts::kept(limits) - self.own
    }

    /// The amount that applications here have beyond the one kept for them.
    pub(super) fn own_beyond(&self, limits: &Limits) -> Usage {
        self.own - Accounts::kept(limits)
    }

    /// The share that would be exceeded if a neighbour had so much more for a source, where so much of what others have may go
    /// for it, and so much of its own and of the source's has gone.
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

/// The limits of all together.
pub(super) fn whole(limits: &Limits) -> Usage {
    Usage { bundles: limits.bundles_max, bytes: limits.store_bytes_max, memory: limits.heads_bytes_max }
}

impl Agent {
    /// The neighbour at the other end of a link: callers without a name are one.
    pub(super) fn neighbour_over(&mut self, id: LinkId) -> NeighbourNumber {
        let secret = self.secret;
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
impl Agent {
    /// Panics unless the accounts are those of the bundles that are here.
    pub(super) fn check_accounts(&self) {
        let mut accounts = Accounts::default();
        self.bundles.values().filter(|held| held.copy_origin.is_none()).for_each(|held| accounts.enter(held));
        assert_eq!(self.accounts, accounts, "the accounts of {}, and those of what it has", self.node());
        assert_eq!(self.bytes_held, self.bundles.values().map(|held| held.share).sum::<u64>());
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
        let kept = limits.bundles_max - accounts.received.bundles;
        assert!(kept > limits.bundles_max / 10, "{kept} are left for applications here");
    }

    #[test]
    fn names_and_secrets_tell_neighbours_apart() {
        let name = |secret, name| NeighbourNumber::named(Secret(secret), name);
        assert_eq!(name(1, "dtn://a/"), name(1, "dtn://a/"));
        assert_ne!(name(1, "dtn://a/"), name(1, "dtn://b/"));
        assert_ne!(name(1, "dtn://a/"), name(2, "dtn://a/"));
    }
}
