//! Index of records, their chunks, and the segments that contain them.

use super::device::in_blocks;
use super::frame::{EntryHeader, EntryKind, HEADER_BYTES, PREAMBLE_BYTES};
use longwire_proto::kit::OrderedMap;
use longwire_proto::service::RecordId;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

/// Offset of a chunk whose data was lost when it was to be moved: no data is at the beginning of a segment.
const NOWHERE: u32 = 0;

/// Part of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkPlace {
    /// Offset in the record.
    pub(super) offset: u64,
    pub(super) length: u32,
    pub(super) data_crc: u32,
    pub(super) segment: u32,
    /// Offset of the data in the segment.
    pub(super) at: u32,
}

impl ChunkPlace {
    pub(super) fn end(&self) -> u64 {
        self.offset + u64::from(self.length)
    }

    /// Returns true if only the information that the chunk existed is left.
    pub(super) fn is_lost(&self) -> bool {
        self.at == NOWHERE
    }

    /// Returns the bytes of the chunk in its segment, with its header in the listing.
    fn bytes(&self) -> u64 {
        let data = if self.is_lost() { 0 } else { u64::from(self.length) };
        data + 2 * HEADER_BYTES as u64
    }
}

/// Chunks of a record. Most records have one, and there may be a million records.
#[derive(Debug)]
pub(super) enum RecordIndex {
    One(ChunkPlace),
    More(Vec<ChunkPlace>),
}

impl RecordIndex {
    /// Returns the chunks in order.
    pub(super) fn chunks(&self) -> &[ChunkPlace] {
        match self {
            RecordIndex::One(chunk) => core::slice::from_ref(chunk),
            RecordIndex::More(chunks) => chunks,
        }
    }

    /// Returns the length in bytes: the end of the last chunk.
    pub(super) fn length(&self) -> u64 {
        self.chunks().last().map_or(0, ChunkPlace::end)
    }

    /// Adds a chunk, or replaces the one at its offset, which is returned.
    fn put(&mut self, chunk: ChunkPlace) -> Option<ChunkPlace> {
        let chunks = match self {
            RecordIndex::One(only) if only.offset == chunk.offset => {
                return Some(core::mem::replace(only, chunk));
            }
            RecordIndex::One(only) => {
                *self = RecordIndex::More(Vec::from([*only]));
                return self.put(chunk);
            }
            RecordIndex::More(chunks) => chunks,
        };
        let at = chunks.partition_point(|other| other.offset < chunk.offset);
        match chunks.get_mut(at) {
            Some(old) if old.offset == chunk.offset => Some(core::mem::replace(old, chunk)),
            _ => {
                chunks.insert(at, chunk);
                None
            }
        }
    }
}

#[derive(Debug)]
pub(super) struct SegmentFile {
    pub(super) file: Arc<File>,
    pub(super) path: PathBuf,
    /// Length in bytes.
    pub(super) bytes: u64,
    /// Number of entries, including marks.
    pub(super) entries: u64,
    /// Bytes of live entries.
    pub(super) live: u64,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    pub(super) records: OrderedMap<RecordId, RecordIndex>,
    pub(super) segments: BTreeMap<u32, SegmentFile>,
}

impl Index {
    pub(super) fn add_segment(&mut self, number: u32, path: PathBuf, file: Arc<File>) {
        let segment = SegmentFile { file, path, bytes: PREAMBLE_BYTES as u64, entries: 0, live: 0 };
        self.segments.insert(number, segment);
    }

    /// Adds a durable chunk: the next one of its record, or a copy of an existing one.
    pub(super) fn add(&mut self, record: RecordId, chunk: ChunkPlace) {
        self.segments.get_mut(&chunk.segment).expect("chunks lie in segments").live += chunk.bytes();
        let replaced = match self.records.get_mut(&record) {
            Some(found) => found.put(chunk),
            None => {
                self.records.insert(record, RecordIndex::One(chunk));
                None
            }
        };
        if let Some(old) = replaced {
            self.kill(&old);
        }
    }

    /// Adds a damaged or missing durable chunk, unless there is a copy of it; returns true if it was added.
    pub(super) fn add_harmed(&mut self, record: RecordId, chunk: ChunkPlace) -> bool {
        let there = self.records.get(&record).is_some_and(|found| {
            found.chunks().binary_search_by_key(&chunk.offset, |other| other.offset).is_ok()
        });
        if !there {
            self.add(record, chunk);
        }
        !there
    }

    /// Returns true if this chunk is live.
    pub(super) fn has(&self, record: RecordId, chunk: &ChunkPlace) -> bool {
        self.records.get(&record).is_some_and(|found| found.chunks().contains(chunk))
    }

    /// Removes a record; returns false if there is none.
    pub(super) fn remove(&mut self, record: RecordId) -> bool {
        let Some(gone) = self.records.remove(&record) else { return false };
        for chunk in gone.chunks() {
            self.kill(chunk);
        }
        true
    }

    fn kill(&mut self, chunk: &ChunkPlace) {
        if let Some(segment) = self.segments.get_mut(&chunk.segment) {
            segment.live -= chunk.bytes();
        }
    }

    /// Returns the oldest segment, unless it is the only one.
    pub(super) fn oldest(&self) -> Option<(u32, &SegmentFile)> {
        let (number, segment) = self.segments.first_key_value()?;
        (self.segments.len() > 1).then_some((*number, segment))
    }

    /// Returns the bytes of all segments in whole blocks and of their listings, and the live bytes in them. A listing is so
    /// short that the rest of its last block can be as much as all of it, which no moving recovers.
    pub(super) fn totals(&self) -> (u64, u64) {
        let sum = |total: (u64, u64), segment: &SegmentFile| {
            let listing = PREAMBLE_BYTES as u64 + segment.entries * HEADER_BYTES as u64;
            (total.0 + in_blocks(segment.bytes) + listing, total.1 + segment.live)
        };
        self.segments.values().fold((0, 0), sum)
    }

    /// Returns some of the chunks of a segment that `is_wanted` selects, with their records: up to `bytes_max` or slightly
    /// more.
    pub(super) fn chunks_in(
        &self,
        segment: u32,
        bytes_max: u64,
        mut is_wanted: impl FnMut(RecordId, &ChunkPlace) -> bool,
    ) -> Vec<(RecordId, ChunkPlace)> {
        let mut left = bytes_max;
        let all = self
            .records
            .iter()
            .flat_map(|(id, record)| record.chunks().iter().map(move |chunk| (*id, *chunk)))
            .filter(|(record, chunk)| chunk.segment == segment && is_wanted(*record, chunk));
        all.take_while(|(_, chunk)| {
            let wanted = left > 0;
            left = left.saturating_sub(chunk.bytes());
            wanted
        })
        .collect()
    }
}

/// Returns the chunk of the entry with this header, whose data begin at `at`.
pub(super) fn chunk_of(header: &EntryHeader, segment: u32, at: u32) -> ChunkPlace {
    match header.kind {
        EntryKind::Lost => {
            ChunkPlace { offset: header.offset, length: header.data_crc, data_crc: 0, segment, at: NOWHERE }
        }
        _ => ChunkPlace {
            offset: header.offset,
            length: header.length,
            data_crc: header.data_crc,
            segment,
            at,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The live bytes of a segment decide whether it is removed.
    #[test]
    fn a_chunk_counts_where_it_is_now() {
        let mut index = Index::default();
        for number in [1, 2] {
            let file = File::open("/dev/null").expect("it is there");
            index.add_segment(number, PathBuf::new(), Arc::new(file));
        }
        let live = |index: &Index| [1, 2].map(|number| index.segments[&number].live);
        let chunk = |offset, segment| ChunkPlace { offset, length: 10, data_crc: 0, segment, at: 100 };
        let (record, other) = (RecordId(1), RecordId(2));
        for (record, offset) in [(record, 0), (record, 10), (other, 0)] {
            index.add(record, chunk(offset, 1));
        }
        // Each with its header in the segment and in the listing.
        let one = 10 + 2 * HEADER_BYTES as u64;
        assert_eq!(live(&index), [3 * one, 0]);
        index.add(record, chunk(0, 2));
        assert_eq!(live(&index), [2 * one, one], "it was moved");
        assert_eq!(index.records.get(&record).expect("it is there").chunks(), [chunk(0, 2), chunk(10, 1)]);
        assert!(index.has(record, &chunk(0, 2)) && !index.has(record, &chunk(0, 1)));
        assert!(index.remove(record));
        assert_eq!(live(&index), [one, 0]);
    }
}
