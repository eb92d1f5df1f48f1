//! Table of nodes: where each was last known to be.

use super::Config;
use crate::motion::{Fix, Motion};
use crate::packet_router::{NodeAddress, ToldFix};
use crate::time::Instant;
use std::collections::BTreeMap;

/// Node in the table.
#[derive(Clone, Copy, Debug)]
struct Entry {
    fix: Fix,
    hops: u8,
    /// Time of the fix that was passed on last.
    told_at: Option<Instant>,
}

/// All nodes but this one.
#[derive(Debug, Default)]
pub(super) struct Table {
    known: BTreeMap<NodeAddress, Motion>,
    learned: BTreeMap<NodeAddress, Entry>,
}

impl Table {
    pub(super) fn new(config: &Config) -> Table {
        let known = config.known.iter().map(|(node, position)| (*node, Motion::at_rest(*position)));
        Table { known: known.collect(), learned: BTreeMap::new() }
    }

    /// Learns a fix, unless a younger one or the place of a node that never moves is known, or it cannot be true.
    pub(super) fn learn(&mut self, now: Instant, told: ToldFix, config: &Config) {
        let ToldFix { node, fix, hops } = told;
        let speed = fix.motion.speed_mps();
        let is_credible = speed <= config.speed_mps_max && fix.at <= now;
        let is_wanted =
            node != config.address && node != NodeAddress::BROADCAST && hops <= config.fix_hops_max;
        if !is_credible || !is_wanted || self.known.contains_key(&node) || self.is_old(now, fix, config) {
            return;
        }
        if let Some(entry) = self.learned.get_mut(&node) {
            // Others say nothing better of a node that was heard, or told by fewer, lately.
            let is_farther = hops > entry.hops && now.saturating_since(entry.fix.at) < config.tell_interval;
            if fix.at > entry.fix.at && !is_farther {
                (entry.fix, entry.hops) = (fix, hops);
            }
            return;
        }
        if self.learned.len() >= config.nodes_max && !self.forget_one(now, hops, config) {
            return;
        }
        self.learned.insert(node, Entry { fix, hops, told_at: None });
    }

    fn is_old(&self, now: Instant, fix: Fix, config: &Config) -> bool {
        now.saturating_since(fix.at) >= config.forget_after
    }

    /// Makes space for a node of this number of hops: an old fix is forgotten, or the oldest of the nodes that are told by
    /// more hops. So nodes that nobody is near take no place of one that was heard itself.
    fn forget_one(&mut self, now: Instant, hops: u8, config: &Config) -> bool {
        let old = |entry: &Entry| now.saturating_since(entry.fix.at) >= config.forget_after;
        let gives_way = |entry: &Entry| old(entry) || entry.hops > hops;
        let candidates = self.learned.iter().filter(|(_, entry)| gives_way(entry));
        let last = candidates.max_by_key(|(_, entry)| (entry.hops, now.saturating_since(entry.fix.at)));
        let last = last.map(|(node, _)| *node);
        last.is_some_and(|node| self.learned.remove(&node).is_some())
    }

    /// Returns the motion of a node, extrapolated to now; `None` if its fix is unknown or old.
    pub(super) fn motion(&self, now: Instant, node: NodeAddress, config: &Config) -> Option<Motion> {
        let fix =
            self.learned.get(&node).map(|entry| entry.fix).filter(|fix| !self.is_old(now, *fix, config));
        self.known.get(&node).copied().or_else(|| fix.map(|fix| fix.extrapolated(now)))
    }

    /// Returns the fix of a node that moves.
    pub(super) fn fix(&self, node: NodeAddress) -> Option<Fix> {
        self.learned.get(&node).map(|entry| entry.fix)
    }

    /// Returns the fixes that are to be passed on, the youngest first.
    pub(super) fn tell(&mut self, now: Instant, fixes_max: usize, config: &Config) -> Vec<ToldFix> {
        let is_new = |entry: &Entry| {
            entry.told_at.is_none_or(|told_at| told_at + config.tell_interval <= entry.fix.at)
        };
        let is_old = |entry: &Entry| now.saturating_since(entry.fix.at) >= config.forget_after;
        let wanted = |entry: &Entry| is_new(entry) && !is_old(entry) && entry.hops < config.fix_hops_max;
        let mut new: Vec<_> = self.learned.iter_mut().filter(|(_, entry)| wanted(entry)).collect();
        new.sort_by_key(|(_, entry)| core::cmp::Reverse(entry.fix.at));
        new.truncate(fixes_max);
        let tell = |(node, entry): (&NodeAddress, &mut Entry)| {
            entry.told_at = Some(entry.fix.at);
            ToldFix { node: *node, fix: entry.fix, hops: entry.hops }
        };
        new.into_iter().map(tell).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.learned.len()
    }
}
