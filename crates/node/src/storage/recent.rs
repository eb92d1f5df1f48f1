//! Cache of the most recently written data: an arriving bundle is forwarded or delivered without a read from the disk.
//!
//! Data that is not yet durable is always in the cache and does not count for its limit: durable data stays until newer durable
//! data needs the space.

use bytes::{Bytes, BytesMut};
use longwire_proto::kit::OrderedMap;
use longwire_proto::service::RecordId;
use std::collections::VecDeque;

/// Memory beside the data of a chunk: its buffer's header, its place in the lists, and a share of its record's entry, bytes.
/// Without it, small records would use several times the memory that the operator allows.
const CHUNK_BYTES: usize = 320;

/// Minimum length of a part that is returned by itself: for less than this a copy costs less than another read, bytes.
const PART_BYTES_MIN: u64 = 16 * 1024;

/// Maximum length of a part that is joined from short buffers, bytes.
const JOINED_BYTES_MAX: u64 = 64 * 1024;

#[derive(Debug, Default)]
struct Cached {
    /// Chunks with their offsets, without gaps; the oldest may have been dropped.
    chunks: VecDeque<(u64, Bytes)>,
    /// Length of the record.
    end: u64,
    /// Durable part of it.
    durable: u64,
}

impl Cached {
    /// Returns the memory of the chunks that end in the durable part, after `offset`.
    fn durable_bytes(&self, offset: u64) -> usize {
        let first = self.chunks.partition_point(|chunk| end_of(chunk) <= offset);
        let durable = self.chunks.iter().skip(first).take_while(|chunk| end_of(chunk) <= self.durable);
        durable.map(|(_, data)| memory(data)).sum()
    }
}

/// Latest data of records.
#[derive(Debug, Default)]
pub(super) struct Recent {
    records: OrderedMap<RecordId, Cached>,
    /// Record of each chunk, oldest first; removed records are skipped. Empty without a limit, because nothing is dropped then.
    order: VecDeque<RecordId>,
    /// Memory, bytes.
    bytes: usize,
    /// Memory of durable chunks, bytes.
    durable_bytes: usize,
    /// Maximum memory of durable data; `usize::MAX` for no limit.
    bytes_max: usize,
}

impl Recent {
    /// Creates a cache that keeps durable data while its memory is at most this number of bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Recent { bytes_max, ..Recent::default() }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the memory of durable data, bytes.
    pub(super) fn durable_bytes(&self) -> usize {
        self.durable_bytes
    }

    pub(super) fn length(&self, record: RecordId) -> Option<u64> {
        self.records.get(&record).map(|cached| cached.end)
    }

    pub(super) fn append(&mut self, record: RecordId, offset: u64, data: Bytes) {
        self.add(record, offset, data);
    }

    /// Appends data that is durable at once, with all of the record before it.
    pub(super) fn append_durable(&mut self, record: RecordId, offset: u64, data: Bytes) {
        let cached = self.add(record, offset, data);
        let before = std::mem::replace(&mut cached.durable, cached.end);
        let bytes = cached.durable_bytes(before);
        self.durable_bytes += bytes;
    }

    fn add(&mut self, record: RecordId, offset: u64, data: Bytes) -> &mut Cached {
        let cached = self.records.get_or_insert_with(record, || Cached {
            end: offset,
            durable: offset,
            ..Cached::default()
        });
        cached.end += data.len() as u64;
        if !data.is_empty() {
            self.bytes += memory(&data);
            cached.chunks.push_back((offset, data));
            if self.bytes_max < usize::MAX {
                self.order.push_back(record);
            }
        }
        cached
    }

    /// Marks a record as durable up to this length.
    pub(super) fn durable(&mut self, record: RecordId, up_to: u64) {
        if let Some(cached) = self.records.get_mut(&record) {
            let before = cached.durable;
            // Reports of an earlier record of this ID may arrive late.
            cached.durable = before.max(up_to.min(cached.end));
            self.durable_bytes += cached.durable_bytes(before);
        }
    }

    pub(super) fn forget(&mut self, record: RecordId) {
        if let Some(gone) = self.records.remove(&record) {
            self.bytes -= gone.chunks.iter().map(|(_, data)| memory(data)).sum::<usize>();
            self.durable_bytes -= gone.durable_bytes(0);
        }
        if self.records.is_empty() {
            self.order.clear();
        }
    }

    /// Drops the oldest durable data while the cache is too large.
    pub(super) fn trim(&mut self) {
        let mut looked_at = self.order.len();
        while (self.durable_bytes > self.bytes_max || self.order.len() > 4 * self.records.len() + 1024)
            && looked_at > 0
        {
            looked_at -= 1;
            let Some(record) = self.order.pop_front() else { return };
            let Some(cached) = self.records.get_mut(&record) else { continue };
            let Some(chunk) = cached.chunks.front() else { continue };
            if end_of(chunk) > cached.durable {
                self.order.push_back(record);
                continue;
            }
            let bytes = memory(&chunk.1);
            self.bytes -= bytes;
            self.durable_bytes -= bytes;
            cached.chunks.pop_front();
            if cached.chunks.is_empty() && cached.durable == cached.end {
                self.records.remove(&record);
            }
        }
    }

    /// Returns a range of a record, if all of it is in the cache; `in_parts`: or only its beginning, so that little is copied.
    pub(super) fn read(&self, record: RecordId, offset: u64, length: u32, in_parts: bool) -> Option<Bytes> {
        let cached = self.records.get(&record)?;
        let end = offset.saturating_add(u64::from(length)).min(cached.end);
        if offset >= end {
            return Some(Bytes::new());
        }
        let first = cached.chunks.partition_point(|chunk| end_of(chunk) <= offset);
        let (at, data) = cached.chunks.get(first)?;
        if *at > offset {
            return None;
        }
        if at + data.len() as u64 >= end {
            return Some(data.slice((offset - at) as usize..(end - at) as usize));
        }
        let here = at + data.len() as u64 - offset;
        if in_parts && here >= PART_BYTES_MIN {
            return Some(data.slice((offset - at) as usize..));
        }
        let end = if in_parts { end.min(offset + JOINED_BYTES_MAX) } else { end };
        let capacity = if in_parts { 2 * PART_BYTES_MIN } else { u64::MAX };
        let mut joined = BytesMut::with_capacity((end - offset).min(capacity) as usize);
        for (at, data) in cached.chunks.iter().skip(first).take_while(|(at, _)| *at < end) {
            let from = offset.saturating_sub(*at) as usize;
            let to = data.len().min((end - at) as usize);
            let is_long = in_parts && (to - from) as u64 >= PART_BYTES_MIN;
            if is_long {
                // Mostly, the next read returns the rest without a copy.
                let missing = (PART_BYTES_MIN as usize).saturating_sub(joined.len());
                joined.extend_from_slice(&data[from..from + missing]);
                break;
            }
            joined.extend_from_slice(&data[from..to]);
        }
        Some(joined.freeze())
    }

    /// Returns true if part of a record is not yet durable.
    pub(super) fn is_pending(&self, record: RecordId) -> bool {
        self.records.get(&record).is_some_and(|cached| cached.durable < cached.end)
    }
}

/// Returns the offset after a chunk.
fn end_of((at, data): &(u64, Bytes)) -> u64 {
    at + data.len() as u64
}

fn memory(chunk: &Bytes) -> usize {
    chunk.len() + CHUNK_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: RecordId = RecordId(1);

    /// Records in several chunks, as from bundles that arrive in several transfers.
    #[test]
    fn nothing_goes_while_there_is_place_for_it() {
        let mut recent = Recent::new(4_000 * (1 + CHUNK_BYTES));
        for record in 0..1000 {
            for offset in 0..4 {
                recent.append(RecordId(record), offset, Bytes::from_static(b"x"));
            }
            recent.durable(RecordId(record), 4);
        }
        recent.trim();
        let there = (0..1000).filter(|record| recent.read(RecordId(*record), 0, 4, false).is_some()).count();
        assert_eq!((there, recent.bytes), (1000, 4_000 * (1 + CHUNK_BYTES)));
    }

    /// The store in memory runs for months, and is never empty.
    #[test]
    fn without_a_limit_nothing_is_remembered_of_what_has_gone() {
        let mut recent = Recent::new(usize::MAX);
        recent.append(RECORD, 0, Bytes::from_static(b"stays"));
        for record in 2..1000 {
            recent.append(RecordId(record), 0, Bytes::from_static(b"goes"));
            recent.forget(RecordId(record));
        }
        recent.trim();
        assert_eq!((recent.order.len(), recent.records.len()), (0, 1));
        assert_eq!(recent.read(RECORD, 0, 5, false).unwrap(), "stays");
    }

    /// Data that waits for the disk may exceed the limit, and must not drive out data that is about to be forwarded.
    #[test]
    fn what_is_not_durable_leaves_its_place_to_what_is() {
        let mut recent = Recent::new(2 * (1 + CHUNK_BYTES));
        for record in 0..100 {
            recent.append(RecordId(record), 0, Bytes::from_static(b"x"));
        }
        for record in 0..4 {
            recent.durable(RecordId(record), 1);
            recent.durable(RecordId(record), 1);
        }
        recent.trim();
        let there: Vec<u64> = (0..6).filter(|record| recent.length(RecordId(*record)).is_some()).collect();
        assert_eq!((there, recent.durable_bytes), (vec![2, 3, 4, 5], 2 * (1 + CHUNK_BYTES)));
        recent.append(RECORD, 0, Bytes::from_static(b"1234"));
        recent.durable(RECORD, 15);
        recent.append(RECORD, 4, Bytes::from_static(b"5678"));
        assert!(recent.is_pending(RECORD));
        (0..100).for_each(|record| recent.forget(RecordId(record)));
        assert_eq!((recent.bytes, recent.durable_bytes), (0, 0));
    }

    #[test]
    fn what_is_not_durable_stays_and_the_oldest_goes_first() {
        let mut recent = Recent::new(4 + CHUNK_BYTES);
        recent.append(RECORD, 0, Bytes::from_static(b"0123"));
        recent.append(RECORD, 4, Bytes::from_static(b"4567"));
        recent.append(RECORD, 8, Bytes::from_static(b"89ab"));
        recent.trim();
        assert_eq!(recent.read(RECORD, 2, 8, false).unwrap(), "23456789");
        assert!(recent.is_pending(RECORD));
        recent.durable(RECORD, 8);
        recent.trim();
        assert_eq!(recent.read(RECORD, 2, 8, false), None, "its beginning has gone");
        assert_eq!(recent.read(RECORD, 5, 100, false).unwrap(), "56789ab");
        assert_eq!(recent.read(RECORD, 12, 1, false).unwrap(), "");
        recent.forget(RECORD);
        assert_eq!(recent.read(RECORD, 5, 1, false), None);
        assert_eq!(recent.bytes, 0);
    }

    #[test]
    fn parts_end_where_a_buffer_ends_and_short_ones_are_joined() {
        const LONG: usize = PART_BYTES_MIN as usize;
        let mut recent = Recent::new(usize::MAX);
        for (offset, length) in [(0, LONG), (LONG, 100), (LONG + 100, LONG)] {
            recent.append_durable(RECORD, offset as u64, Bytes::from(vec![length as u8; length]));
        }
        let read = |offset: usize, length: usize| {
            let whole = recent.read(RECORD, offset as u64, length as u32, false).unwrap();
            let part = recent.read(RECORD, offset as u64, length as u32, true).unwrap();
            assert_eq!(part, whole[..part.len()]);
            (part.len(), whole.len())
        };
        let all = 2 * LONG + 100;
        assert_eq!(read(0, all), (LONG, all));
        assert_eq!(read(0, LONG), (LONG, LONG));
        assert_eq!(read(1, all), (LONG + 99, all - 1), "one byte too short");
        assert_eq!(read(LONG, all), (LONG, LONG + 100), "a long one is not copied whole");
        assert_eq!(read(LONG, LONG), (LONG, LONG));
        assert_eq!(read(LONG + 50, 60), (60, 60), "what is left is short");
        assert_eq!(read(LONG + 100, LONG), (LONG, LONG));
        assert_eq!(read(LONG + 101, 10), (10, 10));
        assert_eq!(recent.durable_bytes, all + 3 * CHUNK_BYTES);
        let short = RecordId(2);
        (0..1000).for_each(|at| recent.append(short, at * 1000, Bytes::from(vec![at as u8; 1000])));
        let most = JOINED_BYTES_MAX as usize;
        assert_eq!(recent.read(short, 0, 1_000_000, true).unwrap().len(), most, "of very many short ones");
        recent.forget(short);
        recent.append(RECORD, all as u64, Bytes::from_static(b"later"));
        assert_eq!(recent.durable_bytes, all + 3 * CHUNK_BYTES);
        recent.forget(RECORD);
        assert_eq!((recent.bytes, recent.durable_bytes), (0, 0));
    }
}
