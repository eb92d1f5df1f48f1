//! Reassembly of payloads from fragments (RFC 9171 5.9).
//!
//! Nothing is copied: a complete payload is a list of extents, each in the record of one fragment. Fragments
//! may overlap in any way; where they do, one of them is read.

use crate::service::RecordId;
use std::borrow::Cow;
use std::collections::BTreeMap;

use super::ranges::Ranges;

/// Received parts of a payload.
#[derive(Debug)]
pub(super) struct Reassembly {
    /// Length of the complete payload, bytes.
    total: u64,
    /// Start and end of each part in the payload, and the offset of its first byte in its record.
    parts: BTreeMap<RecordId, (u64, u64, u64)>,
    /// Ranges covered by the parts; outdated while `stale` is set.
    covered: Ranges,
    stale: bool,
}

/// Contiguous range of a payload in one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Offset in the payload, bytes.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) record: RecordId,
    /// Offset of `start` in the record, bytes.
    pub(super) at: u64,
}

impl Reassembly {
    pub(super) fn new(total: u64) -> Self {
        Reassembly { total, parts: BTreeMap::new(), covered: Ranges::default(), stale: false }
    }

    /// Length of the complete payload, bytes.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Number of received bytes.
    pub(super) fn have(&self) -> u64 {
        self.covered().total()
    }

    /// Number of parts.
    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// Records of all parts.
    pub(super) fn records(&self) -> impl Iterator<Item = RecordId> {
        self.parts.keys().copied()
    }

    /// Parts that are all of the payload, in order of their records.
    pub(super) fn whole_copies(&self) -> impl Iterator<Item = Extent> {
        let whole = |(_, (start, end, _)): &(&RecordId, &(u64, u64, u64))| (*start, *end) == (0, self.total);
        let parts = self.parts.iter().filter(move |part| self.total > 0 && whole(part));
        parts.map(|(record, (start, end, at))| Extent { start: *start, end: *end, record: *record, at: *at })
    }

    /// Adds `length` bytes from `start`, which are at offset `at` in the record.
    pub(super) fn add(&mut self, record: RecordId, start: u64, length: u64, at: u64) {
        if self.stale {
            self.covered = self.covered().into_owned();
            self.stale = false;
        }
        self.parts.insert(record, (start, start + length, at));
        self.covered.insert(start, start + length);
    }

    /// Removes a part.
    pub(super) fn remove(&mut self, record: RecordId) {
        self.stale |= self.parts.remove(&record).is_some();
    }

    /// Ranges covered by the parts. Computed on demand after a removal, because many parts expire together.
    fn covered(&self) -> Cow<'_, Ranges> {
        if !self.stale {
            return Cow::Borrowed(&self.covered);
        }
        let mut covered = Ranges::default();
        for (start, end, _) in self.parts.values() {
            covered.insert(*start, *end);
        }
        Cow::Owned(covered)
    }

    /// True if the payload is complete.
    pub(super) fn is_whole(&self) -> bool {
        !self.parts.is_empty() && self.covered().contains(0, self.total)
    }

    /// True if all of this range has been received. An empty range counts as received once there is any part.
    pub(super) fn has(&self, from: u64, to: u64) -> bool {
        !self.parts.is_empty() && self.covered().contains(from, to)
    }

    /// Extents of a complete payload in order: at each position, the part that extends farthest.
    pub(super) fn extents(&self) -> Vec<Extent> {
        let mut by_start: Vec<(u64, u64, RecordId, u64)> =
            self.parts.iter().map(|(record, (start, end, at))| (*start, *end, *record, *at)).collect();
        by_start.sort();
        let mut extents = Vec::new();
        let (mut here, mut index) = (0, 0);
        let mut best: Option<(u64, u64, RecordId, u64)> = None;
        while here < self.total {
            while let Some(part) = by_start.get(index).filter(|part| part.0 <= here) {
                if best.is_none_or(|best| part.1 > best.1) {
                    best = Some(*part);
                }
                index += 1;
            }
            let Some((start, end, record, at)) = best.filter(|best| best.1 > here) else { break };
            extents.push(Extent { start: here, end, record, at: at + (here - start) });
            here = end;
        }
        extents
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn very_many_parts_may_go_one_by_one() {
        let mut assembly = Reassembly::new(200_000);
        for part in 0..65_536 {
            assembly.add(RecordId(part), 2 * part, 1, 0);
        }
        for part in 0..65_000 {
            assembly.remove(RecordId(part));
        }
        assert_eq!(assembly.have(), 536);
        assert!(!assembly.has(0, 1) && assembly.has(130_000, 130_001));
        assembly.add(RecordId(70_000), 0, 200_000, 0);
        assert!(assembly.is_whole());
    }

    #[test]
    fn any_overlap_gives_every_byte_once() {
        for seed in 0..500 {
            let mut rng = Rng::new(seed);
            let total = 1 + rng.below(200);
            let mut assembly = Reassembly::new(total);
            let mut record = 0;
            while !assembly.is_whole() {
                let start = rng.below(total);
                let length = 1 + rng.below(total - start);
                record += 1;
                assembly.add(RecordId(record), start, length, 1000 * record);
            }
            let mut here = 0;
            for extent in assembly.extents() {
                assert_eq!(extent.start, here, "seed {seed}");
                let (start, end, at) = assembly.parts[&extent.record];
                assert!(start <= extent.start && extent.end <= end);
                assert_eq!(extent.at - at, extent.start - start);
                here = extent.end;
            }
            assert_eq!(here, total, "seed {seed}");
        }
    }
}
