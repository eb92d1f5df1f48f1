//! What was written last, in memory: a bundle that arrives is forwarded or delivered without a look at the disk.
//!
//! Data that are not yet durable are always here; after that they stay until newer ones need the space.

use bytes::{Bytes, BytesMut};
use longwire_proto::service::RecordId;
use std::collections::{BTreeMap, VecDeque};

#[derive(Debug, Default)]
struct Cached {
    /// Each with where it begins, without gaps; the oldest may be gone.
    chunks: VecDeque<(u64, Bytes)>,
    /// The record's length.
    end: u64,
    /// Of it durable.
    durable: u64,
}

/// The latest data of records.
#[derive(Debug)]
pub(super) struct Recent {
    records: BTreeMap<RecordId, Cached>,
    /// Whose chunks came, oldest first; records that are gone are skipped.
    order: VecDeque<RecordId>,
    bytes: usize,
    bytes_max: usize,
}

impl Recent {
    /// Keeps so many bytes of what is durable.
    pub(super) fn new(bytes_max: usize) -> Self {
        Recent { records: BTreeMap::new(), order: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// Bytes of data that are here.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The length of a record that is known here.
    pub(super) fn length(&self, record: RecordId) -> Option<u64> {
        self.records.get(&record).map(|cached| cached.end)
    }

    /// Data are appended to a record of this length.
    pub(super) fn append(&mut self, record: RecordId, offset: u64, data: Bytes) {
        let cached = self.records.entry(record).or_insert_with(|| Cached {
            end: offset,
            durable: offset,
            ..Cached::default()
        });
        cached.end += data.len() as u64;
        if !data.is_empty() {
            self.bytes += data.len();
            cached.chunks.push_back((offset, data));
            self.order.push_back(record);
        }
    }

    /// So much of a record is durable.
    pub(super) fn durable(&mut self, record: RecordId, up_to: u64) {
        if let Some(cached) = self.records.get_mut(&record) {
            cached.durable = cached.durable.max(up_to);
        }
    }

    /// What is not durable of a record will never be.
    pub(super) fn refuse(&mut self, record: RecordId) {
        self.forget(record);
    }

    /// A record goes, or nothing of it is to be kept.
    pub(super) fn forget(&mut self, record: RecordId) {
        if let Some(gone) = self.records.remove(&record) {
            self.bytes -= gone.chunks.iter().map(|(_, data)| data.len()).sum::<usize>();
        }
        if self.records.is_empty() {
            self.order.clear();
        }
    }

    /// Drops the oldest of what is durable, as far as there is too much.
    pub(super) fn trim(&mut self) {
        let mut looked_at = self.order.len();
        while (self.bytes > self.bytes_max || self.order.len() > 4 * self.records.len() + 1024)
            && looked_at > 0
        {
            looked_at -= 1;
            let Some(record) = self.order.pop_front() else { return };
            let Some(cached) = self.records.get_mut(&record) else { continue };
            let Some((at, data)) = cached.chunks.front() else { continue };
            if at + data.len() as u64 > cached.durable {
                self.order.push_back(record);
                continue;
            }
            self.bytes -= data.len();
            cached.chunks.pop_front();
            if cached.chunks.is_empty() && cached.durable == cached.end {
                self.records.remove(&record);
            }
        }
    }

    /// A range of a record, if all of it is here.
    pub(super) fn read(&self, record: RecordId, offset: u64, length: u32) -> Option<Bytes> {
        let cached = self.records.get(&record)?;
        let end = offset.saturating_add(u64::from(length)).min(cached.end);
        if offset >= end {
            return Some(Bytes::new());
        }
        let first = cached.chunks.partition_point(|(at, data)| at + data.len() as u64 <= offset);
        let (at, data) = cached.chunks.get(first)?;
        if *at > offset {
            return None;
        }
        if at + data.len() as u64 >= end {
            return Some(data.slice((offset - at) as usize..(end - at) as usize));
        }
        let mut joined = BytesMut::with_capacity((end - offset) as usize);
        for (at, data) in cached.chunks.iter().skip(first).take_while(|(at, _)| *at < end) {
            let from = offset.saturating_sub(*at) as usize;
            let to = data.len().min((end - at) as usize);
            joined.extend_from_slice(&data[from..to]);
        }
        Some(joined.freeze())
    }

    /// True if some of a record is not durable yet.
    pub(super) fn is_pending(&self, record: RecordId) -> bool {
        self.records.get(&record).is_some_and(|cached| cached.durable < cached.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: RecordId = RecordId(1);

    /// Records in several pieces, as bundles are that come in several transfers.
    #[test]
    fn nothing_goes_while_there_is_place_for_it() {
        let mut recent = Recent::new(10_000);
        for record in 0..1000 {
            for offset in 0..4 {
                recent.append(RecordId(record), offset, Bytes::from_static(b"x"));
            }
            recent.durable(RecordId(record), 4);
        }
        recent.trim();
        let there = (0..1000).filter(|record| recent.read(RecordId(*record), 0, 4).is_some()).count();
        assert_eq!((there, recent.bytes), (1000, 4000));
    }

    #[test]
    fn what_is_not_durable_stays_and_the_oldest_goes_first() {
        let mut recent = Recent::new(8);
        recent.append(RECORD, 0, Bytes::from_static(b"0123"));
        recent.append(RECORD, 4, Bytes::from_static(b"4567"));
        recent.append(RECORD, 8, Bytes::from_static(b"89ab"));
        recent.trim();
        assert_eq!(recent.read(RECORD, 2, 8).unwrap(), "23456789");
        assert!(recent.is_pending(RECORD));
        recent.durable(RECORD, 8);
        recent.trim();
        assert_eq!(recent.read(RECORD, 2, 8), None, "its beginning has gone");
        assert_eq!(recent.read(RECORD, 5, 100).unwrap(), "56789ab");
        assert_eq!(recent.read(RECORD, 12, 1).unwrap(), "");
        recent.forget(RECORD);
        assert_eq!(recent.read(RECORD, 5, 1), None);
        assert_eq!(recent.bytes, 0);
    }
}
