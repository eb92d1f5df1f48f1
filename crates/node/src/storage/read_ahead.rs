//! Data that is read before it is asked for.
//!
//! Bundles mostly leave in the order in which they came, and the engines ask for the payload of a bundle when the one before it is
//! on its way: bundles that wait on the disk would leave one by one, each after two switches between threads. So a read from the
//! disk that follows the one before it is itself followed by another one, of what is behind it in the order of the records. A read
//! at any other place costs nothing more, and where what is behind is not asked for, it is rarely read: after a start, only the
//! beginnings of bundles are.
//!
//! Units: bytes. Limits: [`WINDOW_BYTES_MAX`] at a time, and about four times as much in memory, but no more than the cache may have.

use super::recent::Recent;
use bytes::Bytes;
use longwire_proto::service::RecordId;
use std::collections::{BTreeSet, VecDeque};

/// Maximum number of bytes that are read ahead at a time.
const WINDOW_BYTES_MAX: u64 = 1 << 20;
/// The same after reads that are not so long that [`READS_MIN`] of them are more.
const USUAL_BYTES_MAX: u64 = 256 << 10;
/// Minimum number of reads like the last one that are read ahead.
const READS_MIN: u64 = 4;
/// Records between two reads of which one still follows the other: other bundles are between those for one neighbour.
const RECORDS_BETWEEN_MAX: u64 = 64;
/// Maximum number of reads without a read-ahead after some that were of no use.
const PAUSE_MAX: u32 = 63;
/// Data shorter than this is copied, so that it does not keep a longer chunk in memory.
const OWN_BYTES: usize = 64 << 10;

/// Place in the store: a record, and an offset in it.
pub(super) type Position = (RecordId, u64);

/// Data that was read ahead, and the place that it reaches to.
#[derive(Debug)]
pub(super) struct ReadAhead {
    data: Recent,
    /// End of the last read.
    last: Position,
    /// Ends and lengths of the ranges behind it that were read ahead, in order.
    left: VecDeque<(Position, u64)>,
    /// Sum of these lengths.
    left_bytes: u64,
    /// Place behind everything that was read ahead.
    next: Position,
    /// Length of the last read-ahead, and its maximum.
    window: u64,
    window_max: u64,
    /// Reads that were answered since the last read-ahead began.
    taken: u64,
    /// Number of reads that have passed without a read-ahead.
    paused: u32,
    /// Number of reads that are to pass without one.
    pause: u32,
    is_under_way: bool,
    /// True if there was nothing at `next`.
    is_at_end: bool,
    /// Records that were removed while the reader reads ahead: it may have read them before.
    removed: BTreeSet<RecordId>,
}

impl ReadAhead {
    /// Creates one that uses about this amount of memory at most. Without any, nothing is read ahead.
    pub(super) fn new(bytes_max: usize) -> Self {
        let window_max = (bytes_max as u64 / 4).min(WINDOW_BYTES_MAX);
        ReadAhead {
            data: Recent::new(4 * window_max as usize),
            last: (RecordId(0), 0),
            left: VecDeque::new(),
            left_bytes: 0,
            next: (RecordId(0), 0),
            window: 0,
            window_max,
            taken: 0,
            paused: 0,
            pause: 0,
            is_under_way: false,
            is_at_end: false,
            removed: BTreeSet::new(),
        }
    }

    /// Returns a range of a record, if all of it was read ahead.
    pub(super) fn take(&mut self, record: RecordId, offset: u64, length: u32) -> Option<Bytes> {
        let end = offset.saturating_add(u64::from(length));
        let known_to = self.data.length(record).filter(|known_to| *known_to >= end)?;
        let data = self.data.read(record, offset, length, false)?;
        self.taken += 1;
        if known_to == end {
            self.data.forget(record);
        }
        Some(data)
    }

    /// Returns the place from which this number of bytes is to be read ahead now, after a read of a range, which was `missed` if it
    /// was not [there](ReadAhead::take); `None` if it is not due.
    pub(super) fn begin(
        &mut self,
        (record, offset): Position,
        length: u32,
        missed: bool,
    ) -> Option<(Position, u64)> {
        let length = u64::from(length);
        let end = (record, offset.saturating_add(length));
        let reach = RecordId(self.last.0.0.saturating_add(RECORDS_BETWEEN_MAX));
        let follows = self.last <= (record, offset) && record <= reach;
        self.last = end;
        if missed && !follows {
            self.window /= 2;
        }
        if self.is_under_way || self.window_max == 0 {
            return None;
        }
        let is_due = match missed {
            true => follows && self.is_of_use(),
            false => !self.is_at_end && self.left_behind(end) < self.window / 2,
        };
        if !is_due {
            return None;
        }
        // The last read of a long payload is short, and the next one is long again.
        let most = USUAL_BYTES_MAX.max(READS_MIN * length).max(self.window / 2).min(self.window_max);
        self.window = (2 * self.window).max(READS_MIN * length).min(most);
        if missed {
            self.left.clear();
            self.left_bytes = 0;
            self.next = end;
        }
        self.taken = 0;
        self.is_under_way = true;
        Some((self.next, self.window))
    }

    /// Returns true if the last read-ahead was of use, or if it is time to try again.
    fn is_of_use(&mut self) -> bool {
        if self.taken > 0 {
            self.pause = 0;
        } else if self.paused < self.pause {
            self.paused += 1;
            return false;
        } else {
            self.pause = (2 * self.pause + 1).min(PAUSE_MAX);
            self.window = 0;
        }
        self.paused = 0;
        true
    }

    /// Returns the number of bytes read ahead that are behind a place.
    fn left_behind(&mut self, end: Position) -> u64 {
        while let Some((to, length)) = self.left.front()
            && *to <= end
        {
            self.left_bytes -= length;
            self.left.pop_front();
        }
        let partly = self.left.front().filter(|((record, _), _)| *record == end.0);
        let passed = partly.map_or(0, |((_, to), length)| length.saturating_sub(to - end.1));
        self.left_bytes - passed
    }

    /// Adds data that was read ahead.
    pub(super) fn add(&mut self, record: RecordId, offset: u64, data: Bytes) {
        if self.removed.contains(&record) {
            return;
        }
        if self.data.length(record).is_some_and(|known_to| known_to != offset) {
            self.data.forget(record);
        }
        let data = if data.len() < OWN_BYTES { Bytes::copy_from_slice(&data) } else { data };
        let (length, end) = (data.len() as u64, offset + data.len() as u64);
        self.left.push_back(((record, end), length));
        self.left_bytes += length;
        self.data.append(record, offset, data);
        self.data.durable(record, end);
        self.data.trim();
    }

    /// Ends what has [begun](ReadAhead::begin); `next` is the end of the last range, if there was one.
    pub(super) fn end(&mut self, next: Option<Position>) {
        self.is_under_way = false;
        self.is_at_end = next.is_none();
        self.next = next.unwrap_or(self.next);
        self.removed.clear();
    }

    /// Forgets a record: once when its removal is requested, and once when nothing more of it can be read.
    pub(super) fn forget(&mut self, record: RecordId) {
        self.data.forget(record);
        if self.is_under_way {
            self.removed.insert(record);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Store of records of these lengths, of which another thread would read.
    struct Records(BTreeMap<u64, u64>);

    impl Records {
        /// Reads a range; returns true if it had been read ahead. `ahead_bytes` grows by what is read ahead then.
        fn read(&self, ahead: &mut ReadAhead, range: (u64, u64, u32), ahead_bytes: &mut u64) -> bool {
            let (record, offset, length) = range;
            let found = ahead.take(RecordId(record), offset, length);
            let expected: Vec<u8> = (offset..offset + u64::from(length)).map(|at| byte(record, at)).collect();
            assert!(found.as_ref().is_none_or(|data| *data == expected), "{range:?}");
            let Some(((from, offset), bytes)) =
                ahead.begin((RecordId(record), offset), length, found.is_none())
            else {
                return found.is_some();
            };
            let (mut left, mut next) = (bytes, None);
            for (&record, &length) in self.0.range(from.0..) {
                let at = if record == from.0 { offset } else { 0 };
                let to = length.min(at + left);
                if at < to {
                    let data: Vec<u8> = (at..to).map(|at| byte(record, at)).collect();
                    ahead.add(RecordId(record), at, data.into());
                    next = Some((RecordId(record), to));
                    left -= to - at;
                }
                if left == 0 {
                    break;
                }
            }
            *ahead_bytes += bytes - left;
            ahead.end(next);
            found.is_some()
        }
    }

    fn byte(record: u64, at: u64) -> u8 {
        (record * 31 + at * 7 + at / 256) as u8
    }

    /// Reads ranges of records of one length in this order; returns how many had been read ahead, and the bytes that were.
    fn read_all(records: u64, length: u64, ranges: impl Iterator<Item = (u64, u64, u32)>) -> (u64, u64) {
        let store = Records((0..records).map(|record| (record, length)).collect());
        let mut ahead = ReadAhead::new(16 << 20);
        let (mut found, mut bytes) = (0, 0);
        for range in ranges {
            found += u64::from(store.read(&mut ahead, range, &mut bytes));
        }
        (found, bytes)
    }

    /// The engines ask for payloads only, and the first two reads show the order.
    #[test]
    fn what_is_read_in_order_comes_from_the_disk_once() {
        for (length, head, tail) in [(1200, 100, 80), (120, 60, 30), (50_000, 70, 24)] {
            let payload = (length - head - tail) as u32;
            let (found, bytes) = read_all(3000, length, (0..3000).map(|record| (record, head, payload)));
            assert!(found >= 2990, "{length}: {found}");
            assert!(bytes <= 3000 * length, "{length}: {bytes}");
        }
    }

    /// Every other bundle is for another neighbour.
    #[test]
    fn what_is_for_others_in_between_does_not_matter() {
        let (found, _) = read_all(3000, 1000, (0..1500).map(|record| (2 * record, 0, 1000)));
        assert!(found >= 1490, "{found}");
        let both = (10..1500).flat_map(|read| [2 * read, 2 * (read - 10) + 1]);
        let (found, _) = read_all(3000, 1000, both.map(|record| (record, 0, 1000)));
        assert!(found >= 2940, "{found}");
    }

    #[test]
    fn long_payloads_come_from_the_disk_once() {
        let pieces =
            (0..40).flat_map(|record| (0..31).map(move |piece| (record, 70 + piece * 65_536, 65_536)));
        let (found, bytes) = read_all(40, 70 + 31 * 65_536 + 24, pieces);
        assert!(found >= 31 * 40 - 5, "{found}");
        assert!(bytes <= 40 * (70 + 31 * 65_536 + 24), "{bytes}");
        // As for a fast connection: the last piece of a payload is short, and may be very short.
        for payload in [1_000_000, 800_000] {
            let piece = |piece: u64| (70 + piece * 262_144, 262_144.min(payload - piece * 262_144) as u32);
            let pieces =
                (0..40).flat_map(|record| (0..4).map(piece).map(move |(at, length)| (record, at, length)));
            let (found, bytes) = read_all(40, 70 + payload + 24, pieces);
            assert!(found >= 4 * 40 - 5, "{payload}: {found}");
            assert!(bytes <= 40 * (70 + payload + 24), "{payload}: {bytes}");
        }
    }

    /// Other reads wait for one that is under way.
    #[test]
    fn no_more_is_read_ahead_than_four_long_reads_or_many_short_ones() {
        for (length, most) in [(1000, USUAL_BYTES_MAX), (65_536, USUAL_BYTES_MAX), (200_000, 800_000)] {
            let mut ahead = ReadAhead::new(16 << 20);
            let mut windows = Vec::new();
            for record in 0..100 {
                let begun = ahead.begin((RecordId(record), 0), length, true);
                windows.extend(begun.map(|(_, bytes)| bytes));
                ahead.end(Some((RecordId(record), u64::from(length))));
                ahead.taken = 1;
            }
            assert_eq!(windows.iter().max(), Some(&most), "reads of {length} bytes");
        }
    }

    #[test]
    fn where_there_is_no_order_nothing_is_read() {
        let back = (0..1000).rev().map(|record| (record, 0, 1000));
        assert_eq!(read_all(1000, 1000, back), (0, 0));
        let far = (1..1001).map(|record| (record * 100, 0, 1000));
        assert_eq!(read_all(200_000, 1000, far), (0, 0));
    }

    /// As after a start.
    #[test]
    fn where_only_beginnings_are_read_little_is_read_behind_them() {
        let (found, bytes) = read_all(1000, 100_000, (0..1000).map(|record| (record, 0, 2048)));
        assert!(found <= 100 && bytes < 30 * 8192, "{found}, {bytes}");
    }

    #[test]
    fn without_memory_nothing_is_read() {
        let mut ahead = ReadAhead::new(0);
        assert_eq!(ahead.begin((RecordId(0), 0), 10, true), None);
    }

    /// The ID of a removed record can be used again.
    #[test]
    fn nothing_of_a_removed_record_comes_back() {
        for is_under_way in [false, true] {
            let mut ahead = ReadAhead::new(16 << 20);
            assert!(ahead.begin((RecordId(1), 0), 10, true).is_some());
            let add = |ahead: &mut ReadAhead| {
                ahead.add(RecordId(2), 0, "old".into());
                ahead.end(Some((RecordId(2), 3)));
            };
            if is_under_way {
                ahead.forget(RecordId(2));
                add(&mut ahead);
            } else {
                add(&mut ahead);
                ahead.forget(RecordId(2));
            }
            assert_eq!(ahead.take(RecordId(2), 0, 3), None);
        }
    }

    /// Ranges that do not begin and end where the data does.
    #[test]
    fn parts_of_a_long_record_are_joined_and_none_is_shortened() {
        let mut ahead = ReadAhead::new(16 << 20);
        ahead.add(RecordId(1), 10, "0123456789".into());
        ahead.add(RecordId(1), 20, "abcdefghij".into());
        assert_eq!(ahead.take(RecordId(1), 5, 10), None, "the beginning is not there");
        assert_eq!(ahead.take(RecordId(1), 15, 10).unwrap(), "56789abcde");
        assert_eq!(ahead.take(RecordId(1), 25, 10), None, "the end is not there");
        assert_eq!(ahead.take(RecordId(1), 25, 5).unwrap(), "fghij");
        ahead.add(RecordId(1), 30, "behind that".into());
        ahead.add(RecordId(1), 90, "after a gap".into());
        assert_eq!(ahead.take(RecordId(1), 30, 5), None, "only the newest part is there");
        assert_eq!(ahead.take(RecordId(1), 90, 5).unwrap(), "after");
    }

    /// A few bytes of a long chunk do not keep it.
    #[test]
    fn memory_is_bounded_whatever_is_added() {
        let mut ahead = ReadAhead::new(64 << 10);
        for record in 0..10_000 {
            let chunk = Bytes::from(vec![7; 128 << 10]);
            ahead.add(RecordId(record), 0, chunk.slice(..10));
            assert!(ahead.data.bytes() <= 64 << 10 && chunk.is_unique());
        }
    }
}
