//! Set of byte positions, stored as disjoint ordered ranges: the unsent part of a payload, or the part that
//! has arrived in fragments.

use std::collections::BTreeMap;

/// Half-open ranges that neither overlap nor touch. A single range, the usual case, needs no allocation.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    /// The set while `more` is empty, start and end; equal numbers for the empty set.
    one: (u64, u64),
    /// The set if it has ever had more than one range.
    more: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Creates the set `start..end`.
    pub(super) fn of(start: u64, end: u64) -> Self {
        let mut ranges = Ranges::default();
        ranges.insert(start, end);
        ranges
    }

    /// Adds `start..end` and joins the ranges that it overlaps or touches.
    pub(super) fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        if self.more.is_empty() {
            let (a, b) = self.one;
            if a == b {
                self.one = (start, end);
                return;
            }
            if a <= end && start <= b {
                self.one = (a.min(start), b.max(end));
                return;
            }
            self.more.insert(a, b);
            self.one = (0, 0);
        }
        let (mut from, mut to) = (start, end);
        while let Some((&a, &b)) = self.more.range(..=to).next_back() {
            if b < from {
                break;
            }
            from = from.min(a);
            to = to.max(b);
            self.more.remove(&a);
        }
        self.more.insert(from, to);
    }

    /// Removes `start..end`.
    pub(super) fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        if self.more.is_empty() {
            let (a, b) = core::mem::take(&mut self.one);
            self.insert(a, start.min(b));
            return self.insert(end.max(a), b);
        }
        while let Some((&a, &b)) = self.more.range(..end).next_back() {
            if b <= start {
                return;
            }
            self.more.remove(&a);
            self.insert(a, start.min(b));
            self.insert(end.max(a), b);
            if a <= start {
                return;
            }
        }
    }

    /// Removes and returns up to `most` contiguous bytes from the front.
    pub(super) fn take_first(&mut self, most: u64) -> Option<(u64, u64)> {
        let (start, end) = self.first()?;
        let cut = end.min(start.saturating_add(most));
        self.remove(start, cut);
        Some((start, cut))
    }

    /// Intersection of the set with `start..end`.
    pub(super) fn within(&self, start: u64, end: u64) -> Vec<(u64, u64)> {
        let cut = |(a, b): (u64, u64)| (a.max(start), b.min(end));
        self.iter().map(cut).filter(|(a, b)| a < b).collect()
    }

    /// Ranges of the set, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let one = (self.one.0 < self.one.1).then_some(self.one);
        one.into_iter().chain(self.more.iter().map(|(&a, &b)| (a, b)))
    }

    /// First range.
    pub(super) fn first(&self) -> Option<(u64, u64)> {
        self.iter().next()
    }

    /// True if the set contains all of `start..end`.
    pub(super) fn contains(&self, start: u64, end: u64) -> bool {
        let covers = |(a, b): (u64, u64)| a <= start && end <= b;
        let behind = self.more.range(..=start).next_back().map(|(&a, &b)| (a, b));
        start >= end || covers(behind.unwrap_or(self.one))
    }

    /// Number of bytes in the set.
    pub(super) fn total(&self) -> u64 {
        self.iter().map(|(a, b)| b - a).sum()
    }

    /// True if the set is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.first().is_none()
    }
}

impl PartialEq for Ranges {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn it_agrees_with_a_set_of_numbers() {
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut ranges = Ranges::default();
            let mut plain = [false; 64];
            for _ in 0..12 {
                let start = rng.below(60);
                let end = start + rng.below(12).min(64 - start);
                ranges.insert(start, end);
                plain[start as usize..end as usize].fill(true);
                let start = rng.below(60);
                let end = start + rng.below(5);
                if rng.chance(0.5) && start < end {
                    ranges.remove(start, end);
                    plain[start as usize..end as usize].fill(false);
                }
            }
            assert_eq!(ranges.total(), plain.iter().filter(|set| **set).count() as u64);
            for a in 0..64u64 {
                for b in a..=64 {
                    let all = plain[a as usize..b as usize].iter().all(|set| *set);
                    assert_eq!(ranges.contains(a, b), all, "seed {seed}: {a}..{b} of {ranges:?}");
                }
            }
            let part: u64 = ranges.within(10, 30).iter().map(|(a, b)| b - a).sum();
            assert_eq!(part, plain[10..30].iter().filter(|set| **set).count() as u64);
            let mut taken = 0;
            while let Some((a, b)) = ranges.take_first(5) {
                assert!(b - a <= 5 && a < b);
                plain[a as usize..b as usize].fill(false);
                taken += b - a;
            }
            assert!(ranges.is_empty() && plain.iter().all(|set| !set), "took {taken}");
        }
    }
}
