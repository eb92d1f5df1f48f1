//! Simulated disk with latency, a capacity, and the loss of unsynced data in a crash.
//!
//! ```text
//!   Append, Remove -> written one after another -> one sync for all of them -> Stored, Removed
//!   Read, List     -> read one after another, concurrently with the writes  -> Data, Listed
//! ```
//!
//! **Group commit.** While a batch is written and synced, new requests wait for the next batch, which takes all of them
//! (or, without group commit, one write). A batch takes `write_latency` and the transfer time for each write, then
//! `sync_latency` once.
//!
//! **A crash** keeps all requests that were answered, and of the others a random prefix in their order, whose last
//! append may be truncated.
//!
//! Payloads are shared, not copied; only a read across two appends copies bytes.

use bytes::{Bytes, BytesMut};
use longwire_proto::rng::Rng;
use longwire_proto::service::{RecordId, StorageFailure, StorageIndication, StorageRequest};
use longwire_proto::settings;
use longwire_proto::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

settings! {
    /// Configuration of a disk. The default disk has no latency and no capacity limit.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct DiskConfig {
        /// Time before each write begins. Default: 0.
        pub write_latency: Duration,
        /// Time of each sync. Default: 0.
        pub sync_latency: Duration,
        /// Time before each read begins. Default: 0.
        pub read_latency: Duration,
        /// Throughput of reads and writes, bytes per second. Default: 0, unlimited.
        pub throughput_bytes_per_s: u64,
        /// Capacity, bytes. Default: unlimited.
        pub capacity_bytes: u64 = u64::MAX,
        /// True if one sync serves all waiting requests. Default: true.
        pub group_commit: bool = true,
    }
}

#[derive(Debug, Default)]
struct DiskRecord {
    /// Appends with their offsets.
    chunks: Vec<(u64, Bytes)>,
    length: u64,
    /// Length that survives a crash; `None` if the record does not.
    synced: Option<u64>,
    removing: bool,
    damaged: bool,
}

#[derive(Clone, Copy, Debug)]
enum DiskWrite {
    Append {
        record: RecordId,
        bytes: u64,
    },
    /// Removal of a record. `takes` is false if the record does not exist: the removal is only answered.
    Remove {
        record: RecordId,
        takes: bool,
    },
}

/// State of a disk.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    config: DiskConfig,
    records: BTreeMap<RecordId, DiskRecord>,
    used_bytes: u64,
    waiting: VecDeque<DiskWrite>,
    batch: Vec<DiskWrite>,
    batch_done: Option<Instant>,
    reads: VecDeque<(Instant, StorageIndication)>,
    answers: VecDeque<StorageIndication>,
    /// Records whose writes were refused, until the answer is delivered.
    refused: BTreeSet<RecordId>,
    failing: bool,
    /// Removals while the disk was failing.
    unremoved: Vec<RecordId>,
}

impl Disk {
    pub(crate) fn new(config: DiskConfig) -> Self {
        Disk { config, ..Disk::default() }
    }

    pub(crate) fn handle_request(&mut self, now: Instant, request: StorageRequest) {
        match request {
            StorageRequest::Append { record, data, .. } => self.append(now, record, data),
            StorageRequest::Remove { record } => self.remove(now, record),
            StorageRequest::Read { record, offset, length, .. } => self.read(now, record, offset, length),
            StorageRequest::List => {
                let records = self.list();
                self.answer_read(now, 0, StorageIndication::Listed { records });
            }
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.batch_done.is_some_and(|at| at <= now) {
            self.commit();
            self.begin_batch(now);
        }
        while self.reads.front().is_some_and(|read| read.0 <= now) {
            self.answers.extend(self.reads.pop_front().map(|read| read.1));
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        longwire_proto::joint::earlier(self.batch_done, self.reads.front().map(|read| read.0))
    }

    pub(crate) fn poll_indication(&mut self) -> Option<StorageIndication> {
        let answer = self.answers.pop_front()?;
        if let StorageIndication::Full { record } | StorageIndication::AppendFailed { record } = &answer {
            self.refused.remove(record);
        }
        Some(answer)
    }

    /// Loses unsynced data in a crash of the node.
    pub(crate) fn crash(&mut self, rng: &mut Rng) {
        let unsynced: Vec<DiskWrite> = self.batch.drain(..).chain(self.waiting.drain(..)).collect();
        let survivors = rng.below(unsynced.len() as u64 + 1) as usize;
        for write in &unsynced[..survivors] {
            self.make_durable(*write);
        }
        if let Some(&DiskWrite::Append { record, bytes }) = unsynced.get(survivors)
            && rng.chance(0.5)
        {
            let part = rng.below(bytes + 1);
            self.make_durable(DiskWrite::Append { record, bytes: part });
        }
        self.records.retain(|_, record| record.synced.is_some());
        for record in self.records.values_mut() {
            record.forget_unsynced();
        }
        self.used_bytes = self.records.values().map(|record| record.length).sum();
        self.batch_done = None;
        self.reads.clear();
        self.answers.clear();
        self.refused.clear();
        self.unremoved.clear();
    }

    /// Makes all further reads of this record fail; false if it does not exist.
    pub(crate) fn damage(&mut self, record: RecordId) -> bool {
        let found = self.records.get_mut(&record);
        found.map(|record| record.damaged = true).is_some()
    }

    /// While failing, the disk answers every append and read with a failure; it removes records later.
    pub(crate) fn set_failing(&mut self, now: Instant, failing: bool) {
        self.failing = failing;
        if !failing {
            core::mem::take(&mut self.unremoved).into_iter().for_each(|record| self.remove(now, record));
        }
    }

    /// Returns the records that would survive a crash, with their durable lengths.
    pub(crate) fn list(&self) -> Vec<(RecordId, u64)> {
        let durable = self.records.iter().filter(|(_, record)| !record.removing);
        durable.filter_map(|(id, record)| Some((*id, record.synced?))).collect()
    }

    /// Returns the bytes in use, and the numbers of waiting writes and reads.
    pub(crate) fn backlog(&self) -> (u64, usize, usize) {
        (self.used_bytes, self.waiting.len() + self.batch.len(), self.reads.len())
    }

    fn append(&mut self, now: Instant, record: RecordId, data: Bytes) {
        if self.refused.contains(&record) {
            return;
        }
        let bytes = data.len() as u64;
        if self.failing || self.records.get(&record).is_some_and(|found| found.removing) {
            self.refused.insert(record);
            self.answers.push_back(StorageIndication::AppendFailed { record });
            return;
        }
        if self.used_bytes.saturating_add(bytes) > self.config.capacity_bytes {
            self.refused.insert(record);
            self.answers.push_back(StorageIndication::Full { record });
            return;
        }
        self.used_bytes += bytes;
        let entry = self.records.entry(record).or_default();
        if bytes > 0 {
            entry.chunks.push((entry.length, data));
        }
        entry.length += bytes;
        self.write(now, DiskWrite::Append { record, bytes });
    }

    fn remove(&mut self, now: Instant, record: RecordId) {
        if self.failing {
            self.unremoved.push(record);
            return;
        }
        let found = self.records.get_mut(&record);
        let takes = found.is_some_and(|found| !core::mem::replace(&mut found.removing, true));
        self.write(now, DiskWrite::Remove { record, takes });
    }

    fn read(&mut self, now: Instant, record: RecordId, offset: u64, length: u32) {
        let failed = |failure| StorageIndication::ReadFailed { record, offset, failure };
        let found = self.records.get(&record).filter(|found| !found.removing);
        let answer = match found {
            _ if self.failing => failed(StorageFailure::Device),
            None => failed(StorageFailure::Missing),
            Some(found) if found.damaged => failed(StorageFailure::Damaged),
            Some(found) => {
                let data = found.range(offset, length);
                StorageIndication::Data { record, offset, data }
            }
        };
        let bytes = if let StorageIndication::Data { data, .. } = &answer { data.len() } else { 0 };
        self.answer_read(now, bytes as u64, answer);
    }

    fn transfer_time(&self, bytes: u64) -> Duration {
        match self.config.throughput_bytes_per_s {
            0 => Duration::ZERO,
            rate => Duration::from_nanos(crate::airtime::scale(bytes, 1_000_000_000, rate)),
        }
    }

    fn answer_read(&mut self, now: Instant, bytes: u64, answer: StorageIndication) {
        let begin = self.reads.back().map_or(now, |read| read.0.max(now));
        let done = begin + self.config.read_latency + self.transfer_time(bytes);
        if done <= now {
            self.answers.push_back(answer);
        } else {
            self.reads.push_back((done, answer));
        }
    }

    fn write(&mut self, now: Instant, write: DiskWrite) {
        self.waiting.push_back(write);
        if self.batch_done.is_none() {
            self.begin_batch(now);
        }
    }

    fn begin_batch(&mut self, now: Instant) {
        while self.batch_done.is_none() && !self.waiting.is_empty() {
            let count = if self.config.group_commit { self.waiting.len() } else { 1 };
            self.batch.extend(self.waiting.drain(..count));
            let mut time = self.config.sync_latency;
            for write in &self.batch {
                let bytes = if let DiskWrite::Append { bytes, .. } = write { *bytes } else { 0 };
                time += self.config.write_latency + self.transfer_time(bytes);
            }
            self.batch_done = Some(now + time);
            if time.is_zero() {
                self.commit();
            }
        }
    }

    fn commit(&mut self) {
        self.batch_done = None;
        for write in core::mem::take(&mut self.batch) {
            let up_to = self.make_durable(write);
            match write {
                DiskWrite::Remove { record, .. } => {
                    self.answers.push_back(StorageIndication::Removed { record })
                }
                DiskWrite::Append { record, .. } => match self.answers.back_mut() {
                    Some(StorageIndication::Stored { record: last, up_to: said }) if *last == record => {
                        *said = up_to;
                    }
                    _ => self.answers.push_back(StorageIndication::Stored { record, up_to }),
                },
            }
        }
    }

    /// Marks this write as durable and returns the durable length of the record.
    fn make_durable(&mut self, write: DiskWrite) -> u64 {
        match write {
            DiskWrite::Append { record, bytes } => {
                let found = self.records.get_mut(&record).expect("an append makes its record");
                let synced = found.synced.unwrap_or(0) + bytes;
                found.synced = Some(synced);
                synced
            }
            DiskWrite::Remove { record, takes } => {
                if takes {
                    let gone = self.records.remove(&record).expect("a record is taken once");
                    self.used_bytes -= gone.length;
                }
                0
            }
        }
    }
}

impl DiskRecord {
    fn range(&self, offset: u64, length: u32) -> Bytes {
        let end = offset.saturating_add(u64::from(length)).min(self.length);
        if offset >= end {
            return Bytes::new();
        }
        let first = self.chunks.partition_point(|chunk| chunk.0 <= offset) - 1;
        let (start, chunk) = &self.chunks[first];
        let from = (offset - start) as usize;
        if end - start <= chunk.len() as u64 {
            return chunk.slice(from..(end - start) as usize);
        }
        let mut joined = BytesMut::with_capacity((end - offset) as usize);
        joined.extend_from_slice(&chunk[from..]);
        for (start, chunk) in &self.chunks[first + 1..] {
            if *start >= end {
                break;
            }
            joined.extend_from_slice(&chunk[..chunk.len().min((end - start) as usize)]);
        }
        joined.freeze()
    }

    fn forget_unsynced(&mut self) {
        self.removing = false;
        self.length = self.synced.unwrap_or(0);
        while self.chunks.last().is_some_and(|chunk| chunk.0 >= self.length) {
            self.chunks.pop();
        }
        if let Some((start, chunk)) = self.chunks.last_mut() {
            chunk.truncate((self.length - *start) as usize);
        }
    }
}

#[cfg(test)]
mod tests;
