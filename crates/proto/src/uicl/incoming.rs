//! Incoming bundle, whose segments arrive in any order and with gaps.

use crate::service::TransferId;
use crate::time::Instant;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Received part of a bundle.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Number of the transfer for the user; `None` until its first segment is indicated.
    pub(super) transfer: Option<TransferId>,
    pub(super) count: u16,
    /// Number of segments indicated to the user.
    next: u16,
    /// Segments after a gap.
    later: BTreeMap<u16, Bytes>,
    later_bytes: u64,
    pub(super) risen: u64,
    /// Time of the last packet about the bundle.
    pub(super) heard_at: Instant,
}

impl Incoming {
    pub(super) fn new(now: Instant, count: u16) -> Self {
        Incoming {
            transfer: None,
            count,
            next: 0,
            later: BTreeMap::new(),
            later_bytes: 0,
            risen: 0,
            heard_at: now,
        }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.next == self.count
    }

    pub(super) fn bytes(&self) -> u64 {
        self.risen + self.later_bytes
    }

    /// Adds a segment. Returns false if it had been received before.
    pub(super) fn take(&mut self, index: u16, data: Bytes) -> bool {
        if index < self.next || self.later.contains_key(&index) {
            return false;
        }
        self.later_bytes += data.len() as u64;
        self.later.insert(index, data);
        true
    }

    /// Removes and returns the next segment without a gap before it; the flag is true for the last one.
    pub(super) fn rise(&mut self) -> Option<(Bytes, bool)> {
        let data = self.later.remove(&self.next)?;
        self.next += 1;
        self.later_bytes -= data.len() as u64;
        self.risen += data.len() as u64;
        Some((data, self.is_whole()))
    }

    fn lacks(&self, index: u32) -> bool {
        index >= u32::from(self.next)
            && index < u32::from(self.count)
            && !self.later.contains_key(&(index as u16))
    }

    /// First missing segment, and a bitmap of the missing segments from there on, of at most `octets_max`
    /// octets.
    pub(super) fn lacking(&self, octets_max: usize) -> Option<(u16, Bytes)> {
        let first = (u32::from(self.next)..u32::from(self.count)).find(|index| self.lacks(*index))?;
        let last = (first..u32::from(self.count)).rfind(|index| self.lacks(*index))?;
        let octets = ((last - first) as usize / 8 + 1).min(octets_max);
        let octet = |place: usize| {
            let bit = |bit: usize| u8::from(self.lacks(first + (8 * place + bit) as u32)) << (7 - bit);
            (0..8).map(bit).sum::<u8>()
        };
        Some((first as u16, (0..octets).map(octet).collect()))
    }

    /// True if the bitmap covers all segments that are missing here.
    pub(super) fn is_covered_by(&self, first: u16, bitmap: &[u8]) -> bool {
        (u32::from(self.next)..u32::from(self.count))
            .filter(|index| self.lacks(*index))
            .all(|index| index.checked_sub(first.into()).is_some_and(|place| is_set(bitmap, place as usize)))
    }
}

/// True if the bitmap has this bit set.
pub(super) fn is_set(bitmap: &[u8], place: usize) -> bool {
    bitmap.get(place / 8).is_some_and(|octet| octet & (0x80 >> (place % 8)) != 0)
}
