//! Sets of ranges of bytes.

use std::collections::BTreeMap;

/// Set of bytes of a block or file, as disjoint ranges in order that do not touch each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ranges(BTreeMap<u64, u64>);

impl Ranges {
    /// Creates an empty set.
    pub(crate) const fn new() -> Self {
        Ranges(BTreeMap::new())
    }

    /// Returns true if the set has no bytes.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the ranges in order, as beginning and end.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(start, end)| (*start, *end))
    }

    /// Returns the range that contains a byte.
    fn at(&self, byte: u64) -> Option<(u64, u64)> {
        let (start, end) = self.0.range(..=byte).next_back()?;
        (*end > byte).then_some((*start, *end))
    }

    /// Returns the end of the contiguous bytes from `from` on; `from` itself if it is missing.
    pub(crate) fn contiguous_end(&self, from: u64) -> u64 {
        #[cfg(test)]
        tests::count_search();
        self.at(from).map_or(from, |(_, end)| end)
    }

    /// Returns true if all bytes of a range are in the set.
    pub(crate) fn contains(&self, start: u64, end: u64) -> bool {
        start >= end || self.contiguous_end(start) >= end
    }

    /// Adds a range.
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let (mut start, mut end) = (start, end);
        // The range before may touch the new one; others begin within it.
        if let Some((before, before_end)) = self.0.range(..start).next_back()
            && *before_end >= start
        {
            (start, end) = (*before, end.max(*before_end));
        }
        while let Some((&next, &next_end)) = self.0.range(start..=end).next() {
            self.0.remove(&next);
            end = end.max(next_end);
        }
        self.0.insert(start, end);
    }

    /// Adds all ranges of another set.
    pub(crate) fn extend(&mut self, others: impl IntoIterator<Item = (u64, u64)>) {
        for (start, end) in others {
            self.insert(start, end);
        }
    }

    /// Removes a range.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        #[cfg(test)]
        tests::count_removal();
        if start >= end {
            return;
        }
        if let Some((before, before_end)) = self.0.range(..start).next_back().map(|(at, to)| (*at, *to))
            && before_end > start
        {
            self.0.insert(before, start);
            if before_end > end {
                self.0.insert(end, before_end);
            }
        }
        while let Some((&next, &next_end)) = self.0.range(start..end).next() {
            self.0.remove(&next);
            if next_end > end {
                self.0.insert(end, next_end);
            }
        }
    }

    /// Removes all ranges of another set. The smaller of both sets decides on the work, besides that for what is removed.
    pub(crate) fn subtract(&mut self, others: &Ranges) {
        if others.len() <= self.len() {
            others.iter().for_each(|(start, end)| self.remove(start, end));
            return;
        }
        let shared = |(start, end)| others.within(start, end);
        let common: Vec<_> = self.iter().flat_map(shared).collect();
        common.into_iter().for_each(|(start, end)| self.remove(start, end));
    }

    /// Returns the parts of a range that are in the set, in order.
    pub(crate) fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let before = self.at(start).map(|(_, own_end)| (start, own_end.min(end)));
        let first = if start < end { before } else { None };
        let rest = if start < end { Some(self.0.range(start..end)) } else { None };
        let rest = rest.into_iter().flatten().map(move |(at, own_end)| (*at, (*own_end).min(end)));
        first.into_iter().chain(rest.filter(move |(at, _)| first.is_none() || *at > start))
    }

    /// Returns the parts of a range that are missing in the set.
    pub(crate) fn missing(&self, start: u64, end: u64) -> Ranges {
        let mut missing = Ranges::new();
        missing.insert(start, end);
        for (from, to) in self.within(start, end) {
            missing.remove(from, to);
        }
        missing
    }

    /// Removes and returns the first bytes, at most `bytes_max` of them.
    pub(crate) fn take_first(&mut self, bytes_max: u64) -> Option<(u64, u64)> {
        let (start, end) = self.0.first_key_value().map(|(start, end)| (*start, *end))?;
        let end = end.min(start.saturating_add(bytes_max));
        self.remove(start, end);
        Some((start, end))
    }

    /// Returns the first range.
    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.iter().next()
    }
}

#[cfg(test)]
pub(crate) use tests::{removals, searches};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use core::cell::Cell;

    thread_local! {
        /// Number of removals from all sets of this thread.
        static REMOVALS: Cell<u64> = const { Cell::new(0) };
        /// Number of searches for the end of contiguous bytes in all sets of this thread.
        static SEARCHES: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count_search() {
        SEARCHES.with(|count| count.set(count.get() + 1));
    }

    /// Returns the number of searches for the end of contiguous bytes, in all sets of this thread.
    pub(crate) fn searches() -> u64 {
        SEARCHES.with(Cell::get)
    }

    pub(super) fn count_removal() {
        REMOVALS.with(|count| count.set(count.get() + 1));
    }

    /// Returns the number of removals from all sets of this thread: a measure of work that does not depend on the machine.
    pub(crate) fn removals() -> u64 {
        REMOVALS.with(Cell::get)
    }

    #[test]
    fn sets_agree_with_a_bitmap() {
        const SIZE: u64 = 40;
        for seed in 0..300 {
            let mut rng = Rng::new(seed);
            let (mut set, mut bits) = (Ranges::new(), [false; SIZE as usize]);
            for _ in 0..30 {
                let (from, to) = (rng.below(SIZE), rng.below(SIZE + 1));
                let add = rng.chance(0.6);
                if add {
                    set.insert(from, to)
                } else {
                    set.remove(from, to)
                }
                (from..to).for_each(|at| bits[at as usize] = add);
                let list = |set: &Ranges| set.iter().flat_map(|(from, to)| from..to).collect::<Vec<_>>();
                let expected: Vec<_> = (0..SIZE).filter(|at| bits[*at as usize]).collect();
                assert_eq!(list(&set), expected, "seed {seed}");
                let edges: Vec<_> = set.iter().collect();
                assert!(edges.windows(2).all(|pair| pair[0].1 < pair[1].0), "merged: {edges:?}");
                let (a, b) = (rng.below(SIZE), rng.below(SIZE + 1));
                let within: Vec<_> = set.within(a, b).flat_map(|(from, to)| from..to).collect();
                assert_eq!(within, (a..b).filter(|at| bits[*at as usize]).collect::<Vec<_>>(), "seed {seed}");
                let missing = list(&set.missing(a, b));
                assert_eq!(missing, (a..b).filter(|at| !bits[*at as usize]).collect::<Vec<_>>());
                assert_eq!(set.contains(a, b), (a..b).all(|at| bits[at as usize]));
            }
            let mut rest = set.clone();
            let mut taken = Vec::new();
            while let Some((from, to)) = rest.take_first(3) {
                assert!(to - from <= 3);
                taken.extend(from..to);
            }
            assert_eq!(taken, set.iter().flat_map(|(from, to)| from..to).collect::<Vec<_>>());
        }
    }
}
