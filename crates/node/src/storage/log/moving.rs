//! Moving live data out of old segments, so that they can be removed.
//!
//! A chunk that the device cannot read stays in place for a while and is tried again, while those after it are moved. If it
//! remains unreadable it is reported and given up: otherwise its segment and all later ones would stay for ever.
//!
//! Units: bytes.

use super::frame::EntryHeader;
use super::index::ChunkPlace;
use super::{Log, SEGMENTS, lock_index};
use crate::storage::backend::StoreWrite;
use longwire_proto::service::{RecordId, StorageFailure};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum data moved out of an old segment between two batches.
const MOVE_BYTES: u64 = 4 << 20;
/// Number of times an unreadable chunk stays in place when it is to be moved.
pub(super) const TIMES_MAX: u32 = 3;
/// Pause before an unreadable chunk is tried again: a temporary failure of a device affects everything tried during it.
const REST: Duration = Duration::from_secs(60);

/// Chunks of the oldest segment that the device could not read when they were to be moved.
#[derive(Debug)]
pub(super) struct UnreadableChunks {
    pub(super) chunks: BTreeMap<(RecordId, u64), ReadAttempts>,
    /// Pause of each chunk.
    pub(super) rest: Duration,
    /// Set while all remaining chunks of the segment are paused: the time of the earliest of their attempts.
    pub(super) all_since: Option<Instant>,
}

/// Number of attempts, and time of the last one.
#[derive(Debug)]
pub(super) struct ReadAttempts {
    pub(super) times: u32,
    pub(super) last: Instant,
}

impl Default for UnreadableChunks {
    fn default() -> Self {
        UnreadableChunks { chunks: BTreeMap::new(), rest: REST, all_since: None }
    }
}

impl UnreadableChunks {
    /// Returns the time until there is something to try, if only pauses prevent it now.
    pub(super) fn maintenance_pause(&self) -> Option<Duration> {
        self.all_since.map(|since| self.rest.saturating_sub(since.elapsed()))
    }

    /// Forgets the chunks of a segment that was removed.
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.all_since = None;
    }

    /// Returns the time of the last attempt, if the chunk is still paused.
    fn rests_since(&self, record: RecordId, chunk: &ChunkPlace) -> Option<Instant> {
        let tried = self.chunks.get(&(record, chunk.offset))?;
        (tried.last.elapsed() < self.rest).then_some(tried.last)
    }

    /// Counts an unreadable chunk; returns true if it is given up.
    fn is_given_up(&mut self, record: RecordId, chunk: &ChunkPlace) -> bool {
        let now = Instant::now();
        let tried = self.chunks.entry((record, chunk.offset)).or_insert(ReadAttempts { times: 0, last: now });
        tried.times += 1;
        tried.last = now;
        tried.times > TIMES_MAX
    }
}

impl Log {
    /// Returns the next segment to be moved: the oldest, if there is too much waste.
    fn wasteful(&self) -> Option<u32> {
        let index = lock_index(&self.index);
        let (total, live) = index.totals();
        let tolerated = if self.device_was_full {
            self.segment_bytes.max(total / SEGMENTS)
        } else {
            live + 2 * self.segment_bytes
        };
        let (number, oldest) = index.oldest()?;
        let too_much = number != self.active && total.saturating_sub(live) > tolerated;
        // All or nothing: moving a part frees nothing and uses space that removals need. A single step is atomic by itself.
        let at_once = oldest.live <= self.step_bytes();
        let fits = at_once || self.free_in_need() > oldest.live + self.spare_bytes() / 8;
        (too_much && fits).then_some(number)
    }

    /// Returns the maximum data moved at once.
    pub(super) fn step_bytes(&self) -> u64 {
        MOVE_BYTES.min(self.segment_bytes / 4)
    }

    /// Moves some live data out of the oldest segment, if there is too much waste. Returns true if there is more to move.
    pub(super) fn move_some(&mut self) -> bool {
        // This scans all records while the engines need the index, too.
        if self.unreadable.maintenance_pause().is_some_and(|left| !left.is_zero()) {
            return false;
        }
        self.unreadable.all_since = None;
        let Some(number) = self.wasteful() else { return false };
        let mut since: Option<Instant> = None;
        let tried = lock_index(&self.index).chunks_in(number, self.step_bytes(), |record, chunk| {
            let rests = self.unreadable.rests_since(record, chunk);
            since = since.into_iter().chain(rests).min();
            rests.is_none()
        });
        if tried.is_empty() {
            self.unreadable.all_since = since;
            return false;
        }
        let reader = self.log_reader();
        let (mut copies, mut lost) = (Vec::new(), Vec::new());
        for (record, chunk) in tried {
            let read = match reader.chunk(&chunk) {
                // A disturbance on the way from the device does not repeat itself.
                Err(StorageFailure::Damaged) if !chunk.is_lost() => {
                    reader.forget(&chunk);
                    reader.chunk(&chunk)
                }
                read => read,
            };
            match read {
                Ok(data) => copies.push(StoreWrite::Append { record, offset: chunk.offset, data }),
                Err(StorageFailure::Device) if !self.unreadable.is_given_up(record, &chunk) => {}
                Err(StorageFailure::Damaged | StorageFailure::Device) => {
                    // Its segment can be removed; a read of the record will notice the missing chunk.
                    self.quarantine.record(&self.index, record);
                    lost.push(EntryHeader::lost(record, chunk.offset, chunk.length));
                }
                // Removed in the meantime.
                Err(_) => {}
            }
        }
        // A device that is full now may have space after the next batch.
        let goes_on = copies.is_empty() && lost.is_empty() || self.commit_in_need(&copies, &lost).is_ok();
        self.drop_dead();
        goes_on
    }
}
