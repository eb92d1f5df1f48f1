//! Moving what counts out of old segments, so that they can go.
//!
//! A chunk that the device cannot read stays where it is for a while, and is tried again; those behind it are moved meanwhile. One that
//! could not be read in the end is given up and told: without that, its segment and all behind it would stay for ever.
//!
//! Units: bytes.

use super::frame::EntryHeader;
use super::index::ChunkPlace;
use super::{Log, SEGMENTS, lock_index};
use crate::storage::backend::StoreWrite;
use longwire_proto::service::{RecordId, StorageFailure};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How much is moved out of an old segment between two batches.
const MOVE_BYTES: u64 = 4 << 20;
/// How often a chunk that the device cannot read stays where it is, when it was to be moved.
pub(super) const TIMES_MAX: u32 = 3;
/// How long it is left alone before it is tried again: a device that fails for a moment fails for all that is tried in it.
const REST: Duration = Duration::from_secs(60);

/// The chunks of the oldest segment that the device could not read when they were to be moved.
#[derive(Debug)]
pub(super) struct UnreadableChunks {
    pub(super) chunks: BTreeMap<(RecordId, u64), ReadAttempts>,
    /// How long each rests.
    pub(super) rest: Duration,
    /// All that is left in the segment rests, and of that what was tried first was tried then.
    pub(super) all_since: Option<Instant>,
}

/// How many times, and when for the last time.
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
    /// How long there is nothing to be tried, if that is for want of rest only.
    pub(super) fn maintenance_pause(&self) -> Option<Duration> {
        self.all_since.map(|since| self.rest.saturating_sub(since.elapsed()))
    }

    /// Their segment has gone.
    pub(super) fn clear(&mut self) {
        self.chunks.clear();
        self.all_since = None;
    }

    /// When a chunk was tried, if it is left alone since.
    fn rests_since(&self, record: RecordId, chunk: &ChunkPlace) -> Option<Instant> {
        let tried = self.chunks.get(&(record, chunk.offset))?;
        (tried.last.elapsed() < self.rest).then_some(tried.last)
    }

    /// A chunk could not be read. True if that was so too often.
    fn is_given_up(&mut self, record: RecordId, chunk: &ChunkPlace) -> bool {
        let now = Instant::now();
        let tried = self.chunks.entry((record, chunk.offset)).or_insert(ReadAttempts { times: 0, last: now });
        tried.times += 1;
        tried.last = now;
        tried.times > TIMES_MAX
    }
}

impl Log {
    /// The segment that is to be moved next: the oldest, if there is too much waste.
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
        // All of it or nothing: a part that was moved frees nothing, and has taken what removals need. With one step it is
        // either, by itself.
        let at_once = oldest.live <= self.step_bytes();
        let fits = at_once || self.free_in_need() > oldest.live + self.spare_bytes() / 8;
        (too_much && fits).then_some(number)
    }

    /// How much is moved at once.
    pub(super) fn step_bytes(&self) -> u64 {
        MOVE_BYTES.min(self.segment_bytes / 4)
    }

    /// Moves some of what counts out of the oldest segment, if there is too much waste. True: there is more to be moved.
    pub(super) fn move_some(&mut self) -> bool {
        // All records are walked through for this, and the engines want them, too.
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
            match reader.chunk(&chunk) {
                Ok(data) => copies.push(StoreWrite::Append { record, offset: chunk.offset, data }),
                Err(StorageFailure::Device) if !self.unreadable.is_given_up(record, &chunk) => {}
                Err(StorageFailure::Damaged | StorageFailure::Device) => {
                    // Its segment can go; whoever reads the record will miss the chunk.
                    self.quarantine.record(&self.index, record);
                    lost.push(EntryHeader::lost(record, chunk.offset, chunk.length));
                }
                // Gone meanwhile.
                Err(_) => {}
            }
        }
        // A device that takes nothing now may take something after the next batch.
        let goes_on = copies.is_empty() && lost.is_empty() || self.commit_in_need(&copies, &lost).is_ok();
        self.drop_dead();
        goes_on
    }
}
