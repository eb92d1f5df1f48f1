//! Thread that writes batches, and repeats removals that have failed with the device.

use super::backend::{Backend, BatchRefusal, StoreReader, StoreWrite};
use super::driver::{Job, SyncCounters, Tell, read};
use longwire_proto::service::{RecordId, StorageIndication};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Size assumed for an entry of a batch in addition to its data, bytes.
const ENTRY_BYTES: usize = 64;
/// Maximum number of removals that a batch repeats.
const REPEATED_MAX: usize = 4096;
/// Time after which removals are repeated if no batch is written before.
const REPEATED_AFTER: Duration = Duration::from_secs(1);

/// Back end of the store, on a thread of its own, and the jobs that wait for it.
pub(super) struct Writer {
    backend: Box<dyn Backend>,
    reader: Box<dyn StoreReader>,
    waiting: VecDeque<Job>,
    /// Records whose appends are dropped until they are removed.
    refused: BTreeSet<RecordId>,
    /// Records whose removal has failed with the device; it is repeated with the next batch, or at `repeats_at`.
    unremoved: BTreeSet<RecordId>,
    repeats_at: Option<Instant>,
    /// Bytes of data not yet written.
    unwritten: Arc<AtomicU64>,
    synced: Arc<SyncCounters>,
}

impl Writer {
    pub(super) fn new(
        backend: Box<dyn Backend>,
        unwritten: Arc<AtomicU64>,
        synced: Arc<SyncCounters>,
    ) -> Self {
        let reader = backend.reader();
        let (waiting, refused, unremoved) = (VecDeque::new(), BTreeSet::new(), BTreeSet::new());
        let repeats_at = None;
        Writer { backend, reader, waiting, refused, unremoved, repeats_at, unwritten, synced }
    }

    /// Carries out jobs until their sender is gone.
    pub(super) fn run(mut self, jobs: &mpsc::Receiver<Vec<Job>>, tell: &Tell) {
        let tell_any = |answers: Vec<StorageIndication>| {
            if !answers.is_empty() {
                tell(answers);
            }
        };
        let mut tends = false;
        loop {
            if self.waiting.is_empty() {
                // Maintenance runs while there is nothing else to do.
                let rests = if tends { Some(Duration::ZERO) } else { self.pause() };
                let next = match rests {
                    Some(rest) => jobs.recv_timeout(rest),
                    None => jobs.recv().map_err(Into::into),
                };
                match next {
                    Ok(more) => self.waiting.extend(more),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => {
                        return tell_any(self.remove_rest());
                    }
                }
            }
            while let Ok(more) = jobs.try_recv() {
                self.waiting.extend(more);
            }
            tell_any(self.step());
            tends = self.backend.maintain();
        }
    }

    /// Repeats removals once more, at the end.
    fn remove_rest(&mut self) -> Vec<StorageIndication> {
        let mut answers = Vec::new();
        loop {
            let before = self.unremoved.len();
            if before == 0 {
                return answers;
            }
            answers.extend(self.write());
            if self.unremoved.len() >= before {
                return answers;
            }
        }
    }

    /// Time for which the thread waits for a job, at most.
    fn pause(&self) -> Option<Duration> {
        let repeats = self.repeats_at.map(|at| at.saturating_duration_since(Instant::now()));
        repeats.into_iter().chain(self.backend.maintenance_pause()).min()
    }

    /// Carries out waiting jobs: all writes up to the next read or listing as one batch, or that read or listing.
    fn step(&mut self) -> Vec<StorageIndication> {
        match self.waiting.front() {
            Some(Job::Write(_)) => self.write(),
            Some(Job::Read { .. } | Job::List) => {
                let answer = match self.waiting.pop_front() {
                    Some(Job::Read { record, offset, length }) => read(&*self.reader, record, offset, length),
                    _ => StorageIndication::Listed { records: self.backend.list() },
                };
                vec![answer]
            }
            None if self.repeats_at.is_some_and(|at| at <= Instant::now()) => self.write(),
            None => Vec::new(),
        }
    }

    fn write(&mut self) -> Vec<StorageIndication> {
        let bytes_max = self.backend.batch_bytes_max();
        let repeated = std::iter::from_fn(|| self.unremoved.pop_first()).take(REPEATED_MAX);
        let mut batch: Vec<StoreWrite> = repeated.map(|record| StoreWrite::Remove { record }).collect();
        let (mut bytes, mut taken, mut weight) = (0, 0, 0);
        while weight < bytes_max
            && let Some(Job::Write(_)) = self.waiting.front()
        {
            let Some(Job::Write(mut write)) = self.waiting.pop_front() else {
                unreachable!("it was just seen")
            };
            if let Some(rest) = split(&mut write, bytes_max) {
                self.waiting.push_front(Job::Write(rest));
            }
            let length = if let StoreWrite::Append { data, .. } = &write { data.len() } else { 0 };
            taken += length as u64;
            if self.drops(&write) {
                continue;
            }
            if let StoreWrite::Append { record, .. } = write
                && self.unremoved.remove(&record)
            {
                // Its ID is used again.
                batch.push(StoreWrite::Remove { record });
            }
            bytes += length;
            weight += length + ENTRY_BYTES;
            put(&mut batch, write);
        }
        let mut repeated_after = Duration::ZERO;
        let answers = match self.backend.write(&batch) {
            Ok(()) => {
                self.synced.batches.fetch_add(1, Ordering::Relaxed);
                self.synced.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                batch.iter().map(done).collect()
            }
            Err(refusal) => {
                repeated_after = REPEATED_AFTER;
                batch.iter().filter_map(|write| self.refuse(write, refusal)).collect()
            }
        };
        self.unwritten.fetch_sub(taken, Ordering::Relaxed);
        self.repeats_at = (!self.unremoved.is_empty()).then(|| Instant::now() + repeated_after);
        answers
    }

    /// Returns true for an append after a refused one of the same record: no data may take the place of the refused data.
    fn drops(&mut self, write: &StoreWrite) -> bool {
        match write {
            StoreWrite::Append { record, .. } => self.refused.contains(record),
            StoreWrite::Remove { record } => {
                self.refused.remove(record);
                false
            }
        }
    }

    fn refuse(&mut self, write: &StoreWrite, refusal: BatchRefusal) -> Option<StorageIndication> {
        match (write, refusal) {
            (StoreWrite::Append { record, .. }, _) => {
                // Reported once per record, even with several appends in the batch.
                let first = self.refused.insert(*record);
                first.then_some(match refusal {
                    BatchRefusal::Full => StorageIndication::Full { record: *record },
                    BatchRefusal::Device => StorageIndication::AppendFailed { record: *record },
                })
            }
            (StoreWrite::Remove { record }, BatchRefusal::Full) => {
                // The record's refused appends came before this removal.
                self.refused.remove(record);
                Some(StorageIndication::Removed { record: *record })
            }
            (StoreWrite::Remove { record }, BatchRefusal::Device) => {
                self.refused.remove(record);
                self.unremoved.insert(*record);
                None
            }
        }
    }
}

/// Splits off the part of an append that exceeds a length.
fn split(write: &mut StoreWrite, length: usize) -> Option<StoreWrite> {
    match write {
        StoreWrite::Append { record, offset, data } if data.len() > length => {
            let rest = data.split_off(length);
            Some(StoreWrite::Append { record: *record, offset: *offset + length as u64, data: rest })
        }
        _ => None,
    }
}

/// Adds a write to a batch; short appends to the same record are merged.
fn put(batch: &mut Vec<StoreWrite>, write: StoreWrite) {
    const MERGED_BYTES_MAX: usize = 16 * 1024;
    if let (
        Some(StoreWrite::Append { record, data, .. }),
        StoreWrite::Append { record: next, data: more, .. },
    ) = (batch.last_mut(), &write)
        && record == next
        && data.len() + more.len() <= MERGED_BYTES_MAX
    {
        let mut merged = bytes::BytesMut::with_capacity(data.len() + more.len());
        merged.extend_from_slice(data);
        merged.extend_from_slice(more);
        *data = merged.freeze();
        return;
    }
    batch.push(write);
}

fn done(write: &StoreWrite) -> StorageIndication {
    match write {
        StoreWrite::Append { record, offset, data } => {
            StorageIndication::Stored { record: *record, up_to: offset + data.len() as u64 }
        }
        StoreWrite::Remove { record } => StorageIndication::Removed { record: *record },
    }
}

#[cfg(test)]
mod tests {
    use super::super::volatile::VolatileStore;
    use super::*;
    use bytes::Bytes;

    /// Disk with a limit of ten bytes per batch.
    struct Narrow(VolatileStore);

    impl Backend for Narrow {
        fn list(&mut self) -> Vec<(RecordId, u64)> {
            self.0.list()
        }

        fn write(&mut self, batch: &[StoreWrite]) -> Result<(), BatchRefusal> {
            self.0.write(batch)
        }

        fn batch_bytes_max(&self) -> usize {
            10
        }

        fn reader(&self) -> Box<dyn StoreReader> {
            self.0.reader()
        }
    }

    #[test]
    fn an_append_is_split_only_where_it_is_longer_than_a_batch() {
        const RECORD: RecordId = RecordId(7);
        for (length, steps) in [(9, &[9][..]), (10, &[10]), (11, &[10, 11]), (30, &[10, 20, 30])] {
            let disk = VolatileStore::default();
            let mut writer =
                Writer::new(Box::new(Narrow(disk.open())), Arc::new(AtomicU64::new(length)), Arc::default());
            let data = Bytes::from((1..=length as u8).collect::<Vec<u8>>());
            writer.waiting.push_back(Job::Write(StoreWrite::Append {
                record: RECORD,
                offset: 0,
                data: data.clone(),
            }));
            let stored = |up_to: &u64| vec![StorageIndication::Stored { record: RECORD, up_to: *up_to }];
            for up_to in steps {
                assert_eq!(writer.step(), stored(up_to), "{length} bytes");
            }
            assert_eq!(writer.step(), [], "{length} bytes: that was all");
            assert_eq!(disk.syncs(), steps.len() as u64);
            assert_eq!(writer.unwritten.load(Ordering::Relaxed), 0);
            assert_eq!(disk.open().reader().read(RECORD, 0, 100), Ok(data));
        }
    }

    #[test]
    fn short_appends_to_one_record_become_one() {
        let append = |record, offset: u64, length: usize| StoreWrite::Append {
            record: RecordId(record),
            offset,
            data: Bytes::from(vec![length as u8; length]),
        };
        let mut batch = Vec::new();
        put(&mut batch, append(1, 0, 6000));
        put(&mut batch, append(1, 6000, 10_384));
        let [StoreWrite::Append { record: RecordId(1), offset: 0, data }] = &batch[..] else {
            panic!("{batch:?}")
        };
        assert!(data[..6000] == [6000_usize as u8; 6000] && data[6000..] == [10_384_usize as u8; 10_384]);
        // At most 16 KiB are merged, and writes of other records are kept separate.
        put(&mut batch, append(1, 16_384, 1));
        put(&mut batch, append(2, 0, 1));
        put(&mut batch, StoreWrite::Remove { record: RecordId(2) });
        put(&mut batch, append(2, 0, 1));
        assert_eq!(batch.len(), 5);
    }

    #[test]
    fn a_removal_that_fails_is_repeated_with_the_next_batch() {
        const RECORD: RecordId = RecordId(7);
        let disk = VolatileStore::default();
        let mut writer = Writer::new(Box::new(disk.open()), Arc::new(AtomicU64::new(8)), Arc::default());
        let mut step = |write| {
            writer.waiting.push_back(Job::Write(write));
            writer.step()
        };
        let append = |record, data: &'static str| StoreWrite::Append { record, offset: 0, data: data.into() };
        let stored = |record| StorageIndication::Stored { record, up_to: 4 };
        let removed = StorageIndication::Removed { record: RECORD };
        assert_eq!(step(append(RECORD, "data")), [stored(RECORD)]);
        disk.refuse(1);
        assert_eq!(step(StoreWrite::Remove { record: RECORD }), []);
        let other = RecordId(8);
        assert_eq!(step(append(other, "data")), [removed, stored(other)]);
        assert_eq!(
            step(StoreWrite::Remove { record: other }),
            [StorageIndication::Removed { record: other }]
        );
        assert_eq!((disk.open().list(), writer.repeats_at), (vec![], None));
    }

    #[test]
    fn what_was_refused_and_removed_in_one_batch_is_forgotten() {
        const RECORD: RecordId = RecordId(7);
        let disk = VolatileStore::default();
        disk.set_size(Some(20));
        let data = Bytes::from_static(&[7; 30]);
        let answers =
            [StorageIndication::Full { record: RECORD }, StorageIndication::Removed { record: RECORD }];
        let mut writer = Writer::new(Box::new(disk.open()), Arc::new(AtomicU64::new(30)), Arc::default());
        writer.waiting.push_back(Job::Write(StoreWrite::Append { record: RECORD, offset: 0, data }));
        writer.waiting.push_back(Job::Write(StoreWrite::Remove { record: RECORD }));
        assert_eq!(writer.step(), answers);
        assert_eq!(writer.refused, BTreeSet::new());
    }
}
