//! Drives a [`Backend`] on two threads, and answers from memory where possible.

use super::backend::{Backend, StoreReader, StoreWrite};
use super::memory_store::MemoryStore;
use super::read_ahead::{Position, ReadAhead};
use super::recent::Recent;
use super::writer::Writer;
use bytes::Bytes;
use longwire_proto::service::{RecordId, StorageIndication, StorageRequest};
use longwire_proto::time::Instant;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::thread::{self, JoinHandle};

/// Data shorter than this is copied, so that it does not keep a larger buffer in memory.
const OWN_BYTES: usize = 16 * 1024;
/// Number of reads after which the reader reports, at the latest, and their length in bytes: the engines work on them while it
/// continues.
const REPORTED_AT_ONCE: usize = 64;
const REPORTED_BYTES: u64 = 256 * 1024;
/// Callback with which a thread reports to the engines' task.
pub(crate) type Tell = Box<dyn Fn(Vec<StorageIndication>) + Send + Sync>;

/// Request to a thread.
pub(super) enum Job {
    Write(StoreWrite),
    Read { record: RecordId, offset: u64, length: u32 },
    List,
}

/// Request to the reader.
enum ReaderJob {
    Read { record: RecordId, offset: u64, length: u32 },
    Ahead { from: Position, bytes: u64 },
}

/// Thread for the reads of a record: all outstanding reads use the same one, so that they are answered in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadPath {
    Writer,
    Reader,
}

/// Storage, as used by the engines' task.
pub(crate) struct StorageDriver {
    store: StoreKind,
    answers: VecDeque<StorageIndication>,
    /// True if all appended data is copied.
    copies: bool,
}

enum StoreKind {
    /// Everything in memory, lost with the process.
    Memory(MemoryStore),
    Disk(DiskStore),
}

/// Counters of durable writes since the start.
#[derive(Debug, Default)]
pub(super) struct SyncCounters {
    pub(super) batches: AtomicU64,
    /// Bytes of data.
    pub(super) bytes: AtomicU64,
}

struct DiskStore {
    recent: Recent,
    jobs: Vec<Job>,
    reads: Vec<ReaderJob>,
    ahead: Arc<Mutex<ReadAhead>>,
    reading: BTreeMap<RecordId, (ReadPath, usize)>,
    /// Records of which some data was refused: further data is dropped until they are removed. Requests made before the
    /// engines learned of the refusal may arrive only now.
    refused: BTreeSet<RecordId>,
    lengths: Box<dyn StoreReader>,
    /// Bytes of data not yet with the back end.
    waiting: Arc<AtomicU64>,
    synced: Arc<SyncCounters>,
    /// Appends refused for lack of space.
    full: u64,
    writer: Option<mpsc::Sender<Vec<Job>>>,
    reader: Option<mpsc::Sender<Vec<ReaderJob>>>,
    threads: Vec<JoinHandle<()>>,
}

impl StorageDriver {
    /// Creates a store in memory of at most `bytes_max`: nothing survives the process.
    pub(crate) fn memory(bytes_max: usize) -> Self {
        StorageDriver::of(StoreKind::Memory(MemoryStore::new(bytes_max)))
    }

    fn of(store: StoreKind) -> Self {
        StorageDriver { store, answers: VecDeque::new(), copies: false }
    }

    /// Starts a store over a back end, which reports through `tell`.
    pub(crate) fn start(backend: Box<dyn Backend>, cache_bytes: usize, tell: Tell) -> std::io::Result<Self> {
        let (lengths, reader) = (backend.reader(), backend.reader());
        let tell = std::sync::Arc::new(tell);
        let told = tell.clone();
        let waiting = Arc::new(AtomicU64::new(0));
        let written = waiting.clone();
        let synced = Arc::new(SyncCounters::default());
        let counted = synced.clone();
        let (writer, jobs) = mpsc::channel();
        let writing = thread::Builder::new()
            .name("store-writer".into())
            .spawn(move || Writer::new(backend, written, counted).run(&jobs, &told))?;
        let (read, reads) = mpsc::channel();
        let ahead = Arc::new(Mutex::new(ReadAhead::new(cache_bytes)));
        let read_ahead = ahead.clone();
        let reading = thread::Builder::new()
            .name("store-reader".into())
            .spawn(move || run_reader(&*reader, &read_ahead, &reads, &**tell))?;
        let disk = DiskStore {
            recent: Recent::new(cache_bytes),
            jobs: Vec::new(),
            reads: Vec::new(),
            ahead,
            reading: BTreeMap::new(),
            refused: BTreeSet::new(),
            lengths,
            waiting,
            synced,
            full: 0,
            writer: Some(writer),
            reader: Some(read),
            threads: vec![writing, reading],
        };
        Ok(StorageDriver::of(StoreKind::Disk(disk)))
    }

    /// Handles a request of the engines.
    pub(crate) fn request(&mut self, now: Instant, mut request: StorageRequest) {
        if let StorageRequest::Append { data, .. } = &mut request
            && (self.copies || data.len() < OWN_BYTES)
        {
            // A small slice would keep the whole buffer of the read in memory.
            *data = Bytes::copy_from_slice(data);
        }
        match &mut self.store {
            StoreKind::Memory(records) => self.answers.extend(records.request(now, request)),
            StoreKind::Disk(disk) => self.answers.extend(disk.request(request)),
        }
    }

    /// Sets whether all appended data is copied.
    pub(crate) fn set_copies(&mut self, copies: bool) {
        self.copies = copies;
    }

    fn disk(&self) -> Option<&DiskStore> {
        if let StoreKind::Disk(disk) = &self.store { Some(disk) } else { None }
    }

    /// Returns the bytes of data not yet with the back end.
    pub(crate) fn waiting_bytes(&self) -> u64 {
        self.disk().map_or(0, |disk| disk.waiting.load(Ordering::Relaxed))
    }

    /// Processes an indication of a thread, before the engines receive it.
    pub(crate) fn heard(&mut self, indication: &StorageIndication) {
        if let StoreKind::Disk(disk) = &mut self.store {
            disk.heard(indication);
        }
    }

    /// Returns the next answer that is available immediately.
    pub(crate) fn answer(&mut self, now: Instant) -> Option<StorageIndication> {
        self.answers.pop_front().or_else(|| match &mut self.store {
            StoreKind::Memory(records) => records.next(now),
            StoreKind::Disk(_) => None,
        })
    }

    /// Returns the number of durable batches, and their bytes of data.
    pub(crate) fn synced(&self) -> (u64, u64) {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.disk().map_or((0, 0), |disk| (of(&disk.synced.batches), of(&disk.synced.bytes)))
    }

    /// Returns the number of appends refused for lack of space.
    pub(crate) fn full(&self) -> u64 {
        self.disk().map_or(0, |disk| disk.full)
    }

    /// Returns the time at which an answer may be available without a further event.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        match &self.store {
            StoreKind::Memory(records) => records.wakes_at(),
            StoreKind::Disk(_) => None,
        }
    }

    /// Returns true if a thread has failed: its outstanding requests are never answered.
    pub(crate) fn has_failed(&self) -> bool {
        self.disk().is_some_and(|disk| disk.threads.iter().any(JoinHandle::is_finished))
    }

    /// Passes all requests to the threads.
    pub(crate) fn flush(&mut self) {
        if let StoreKind::Disk(disk) = &mut self.store {
            disk.flush();
        }
    }
}

impl DiskStore {
    fn request(&mut self, request: StorageRequest) -> Option<StorageIndication> {
        match request {
            StorageRequest::Append { record, .. } if self.refused.contains(&record) => None,
            StorageRequest::Append { record, data, .. } => {
                let known = self.recent.length(record).or_else(|| self.lengths.length(record));
                let offset = known.unwrap_or(0);
                self.waiting.fetch_add(data.len() as u64, Ordering::Relaxed);
                self.recent.append(record, offset, data.clone());
                self.jobs.push(Job::Write(StoreWrite::Append { record, offset, data }));
                None
            }
            StorageRequest::Remove { record } => {
                self.recent.forget(record);
                lock(&self.ahead).forget(record);
                self.refused.remove(&record);
                self.jobs.push(Job::Write(StoreWrite::Remove { record }));
                None
            }
            StorageRequest::Read { record, offset, length, in_parts } => {
                self.read(record, offset, length, in_parts)
            }
            StorageRequest::List => {
                self.jobs.push(Job::List);
                None
            }
        }
    }

    fn read(
        &mut self,
        record: RecordId,
        offset: u64,
        length: u32,
        in_parts: bool,
    ) -> Option<StorageIndication> {
        let under_way = self.reading.get(&record).map(|(way, _)| *way);
        if under_way.is_none()
            && let Some(data) = self.recent.read(record, offset, length, in_parts)
        {
            return Some(StorageIndication::Data { record, offset, data });
        }
        let mut ahead = lock(&self.ahead);
        if under_way.is_none()
            && let Some(data) = ahead.take(record, offset, length)
        {
            let next = ahead.begin((record, offset), length, false);
            self.reads.extend(next.map(|(from, bytes)| ReaderJob::Ahead { from, bytes }));
            return Some(StorageIndication::Data { record, offset, data });
        }
        // Data that is still being written is read after the write, by the writer.
        let way = match under_way {
            Some(way) => way,
            None if self.recent.is_pending(record) => ReadPath::Writer,
            None => ReadPath::Reader,
        };
        self.reading.entry(record).or_insert((way, 0)).1 += 1;
        match way {
            ReadPath::Writer => self.jobs.push(Job::Read { record, offset, length }),
            ReadPath::Reader => {
                self.reads.push(ReaderJob::Read { record, offset, length });
                let next = ahead.begin((record, offset), length, true);
                self.reads.extend(next.map(|(from, bytes)| ReaderJob::Ahead { from, bytes }));
            }
        }
        None
    }

    fn heard(&mut self, indication: &StorageIndication) {
        match indication {
            StorageIndication::Stored { record, up_to } => self.recent.durable(*record, *up_to),
            StorageIndication::Full { record } => {
                self.full += 1;
                self.refuse(*record);
            }
            StorageIndication::Data { record, .. } | StorageIndication::ReadFailed { record, .. } => {
                self.answered(*record);
            }
            StorageIndication::AppendFailed { record } => self.refuse(*record),
            // The refusal may have come after the removal was requested: no further requests follow.
            StorageIndication::Removed { record } => {
                lock(&self.ahead).forget(*record);
                self.refused.remove(record);
            }
            StorageIndication::Listed { .. } => {}
        }
    }

    fn refuse(&mut self, record: RecordId) {
        self.recent.forget(record);
        self.refused.insert(record);
    }

    fn answered(&mut self, record: RecordId) {
        if let Some((_, left)) = self.reading.get_mut(&record) {
            *left -= 1;
            if *left == 0 {
                self.reading.remove(&record);
            }
        }
    }

    fn flush(&mut self) {
        self.recent.trim();
        hand_over(&mut self.jobs, self.writer.as_ref());
        hand_over(&mut self.reads, self.reader.as_ref());
    }
}

impl Drop for DiskStore {
    /// Carries out all requests first.
    fn drop(&mut self) {
        self.flush();
        self.writer = None;
        self.reader = None;
        for thread in self.threads.drain(..) {
            if let Err(panic) = thread.join()
                && !thread::panicking()
            {
                std::panic::resume_unwind(panic);
            }
        }
    }
}

fn hand_over<J>(jobs: &mut Vec<J>, thread: Option<&mpsc::Sender<Vec<J>>>) {
    if !jobs.is_empty()
        && let Some(thread) = thread
    {
        // A thread that has ended has panicked; the panic is resumed on drop.
        let _ = thread.send(std::mem::take(jobs));
    }
}

fn lock(ahead: &Mutex<ReadAhead>) -> MutexGuard<'_, ReadAhead> {
    ahead.lock().expect("no thread panics while it has it")
}

fn run_reader(
    reader: &dyn StoreReader,
    ahead: &Mutex<ReadAhead>,
    reads: &mpsc::Receiver<Vec<ReaderJob>>,
    tell: &dyn Fn(Vec<StorageIndication>),
) {
    while let Ok(jobs) = reads.recv() {
        let (mut answers, mut bytes) = (Vec::new(), 0);
        for job in jobs {
            match job {
                ReaderJob::Read { record, offset, length } => {
                    // The range may have been read ahead since the engines asked for it.
                    let there = lock(ahead).take(record, offset, length);
                    answers.push(match there {
                        Some(data) => StorageIndication::Data { record, offset, data },
                        None => read(reader, record, offset, length),
                    });
                    bytes += u64::from(length);
                }
                ReaderJob::Ahead { from, bytes: ahead_bytes } => {
                    if !answers.is_empty() {
                        tell(std::mem::take(&mut answers));
                        bytes = 0;
                    }
                    read_ahead(reader, ahead, from, ahead_bytes);
                }
            }
            if answers.len() >= REPORTED_AT_ONCE || bytes >= REPORTED_BYTES {
                tell(std::mem::take(&mut answers));
                bytes = 0;
            }
        }
        if !answers.is_empty() {
            tell(answers);
        }
    }
}

fn read_ahead(reader: &dyn StoreReader, ahead: &Mutex<ReadAhead>, (record, offset): Position, bytes: u64) {
    let mut next = None;
    for (record, offset, length) in reader.ranges_from(record, offset, bytes) {
        // A range that cannot be read is read again when the engines ask for it.
        if let Ok(data) = reader.read(record, offset, length) {
            lock(ahead).add(record, offset, data);
        }
        next = Some((record, offset + u64::from(length)));
    }
    lock(ahead).end(next);
}

/// Carries out a read.
pub(super) fn read(
    reader: &dyn StoreReader,
    record: RecordId,
    offset: u64,
    length: u32,
) -> StorageIndication {
    match reader.read(record, offset, length) {
        Ok(data) => StorageIndication::Data { record, offset, data },
        Err(failure) => StorageIndication::ReadFailed { record, offset, failure },
    }
}

#[cfg(test)]
mod tests {
    use super::super::backend::BatchRefusal;
    use super::super::volatile::VolatileStore;
    use super::*;
    use std::time::Duration;

    /// The engines may send requests for a record after it was refused, before they learn of the refusal.
    #[test]
    fn nothing_stands_where_something_that_was_not_kept_would_have_stood() {
        const RECORD: RecordId = RecordId(7);
        let disk = VolatileStore::default();
        let (sender, said) = mpsc::channel();
        let tell: Tell = Box::new(move |answers| drop(sender.send(answers)));
        let mut drive = StorageDriver::start(Box::new(disk.open()), 1 << 20, tell).expect("threads");
        let ask = |drive: &mut StorageDriver, request| {
            drive.request(Instant::ZERO, request);
            drive.flush();
        };
        let append = |data: &'static [u8]| {
            let data = Bytes::from_static(data);
            StorageRequest::Append { record: RECORD, data, urgent: false }
        };
        ask(&mut drive, append(b"the beginning, "));
        assert_eq!(said.recv().unwrap(), [StorageIndication::Stored { record: RECORD, up_to: 15 }]);
        disk.set_size(Some(20));
        ask(&mut drive, append(b"what has no space, "));
        let full = said.recv().unwrap();
        assert_eq!(full, [StorageIndication::Full { record: RECORD }]);
        disk.set_size(None);
        // The writer drops it, and the driver does after the indication.
        ask(&mut drive, append(b"and the end"));
        full.iter().for_each(|full| drive.heard(full));
        ask(&mut drive, append(b"and the end"));
        ask(&mut drive, StorageRequest::List);
        assert_eq!(said.recv().unwrap(), [StorageIndication::Listed { records: vec![(RECORD, 15)] }]);
        ask(&mut drive, StorageRequest::Remove { record: RECORD });
        assert_eq!(said.recv().unwrap(), [StorageIndication::Removed { record: RECORD }]);
        ask(&mut drive, append(b"anew"));
        assert_eq!(said.recv().unwrap(), [StorageIndication::Stored { record: RECORD, up_to: 4 }]);
    }

    /// The engines do not ask again, and possibly write nothing more.
    #[test]
    fn a_removal_that_fails_is_repeated() {
        let disk = VolatileStore::default();
        let (mut drive, mut ask) = start(&disk, 1 << 20);
        let records = [RecordId(1), RecordId(2)];
        for record in records {
            ask(&mut drive, StorageRequest::Append { record, data: "data".into(), urgent: false });
        }
        disk.refuse(1);
        let removed = ask(&mut drive, StorageRequest::Remove { record: records[0] });
        assert_eq!(removed, [StorageIndication::Removed { record: records[0] }]);
        // And at the end.
        disk.refuse(1);
        drive.request(Instant::ZERO, StorageRequest::Remove { record: records[1] });
        drop(drive);
        assert_eq!(disk.open().list(), []);
    }

    /// Starts a store over this disk, with a cache of this size for durable data.
    fn start(
        disk: &VolatileStore,
        cache_bytes: usize,
    ) -> (StorageDriver, impl FnMut(&mut StorageDriver, StorageRequest) -> Vec<StorageIndication>) {
        let (sender, said) = mpsc::channel();
        let tell: Tell = Box::new(move |answers| drop(sender.send(answers)));
        let drive = StorageDriver::start(Box::new(disk.open()), cache_bytes, tell).expect("threads");
        let ask = move |drive: &mut StorageDriver, request| {
            drive.request(Instant::ZERO, request);
            drive.flush();
            let heard = said.recv().expect("the threads are there");
            heard.iter().for_each(|said| drive.heard(said));
            drive.flush();
            heard
        };
        (drive, ask)
    }

    #[test]
    fn what_is_appended_after_a_restart_stands_behind_what_was_there() {
        const RECORD: RecordId = RecordId(7);
        let disk = VolatileStore::default();
        for (data, up_to) in [(&b"before, "[..], 8), (b"and after", 17)] {
            let (mut drive, mut ask) = start(&disk, 1 << 20);
            let data = Bytes::from_static(data);
            let stored = ask(&mut drive, StorageRequest::Append { record: RECORD, data, urgent: false });
            assert_eq!(stored, [StorageIndication::Stored { record: RECORD, up_to }]);
        }
        let (mut drive, mut ask) = start(&disk, 1 << 20);
        let data = Bytes::from_static(b"before, and after");
        let read = StorageRequest::Read { record: RECORD, offset: 0, length: 100, in_parts: false };
        assert_eq!(ask(&mut drive, read), [StorageIndication::Data { record: RECORD, offset: 0, data }]);
    }

    /// Reads that were requested together are answered in portions, so that the engines need not wait for the last.
    #[test]
    fn many_reads_and_long_ones_are_answered_in_portions() {
        const RECORD: RecordId = RecordId(7);
        for (length, portions) in [(10, vec![64, 64, 22]), (100_000, vec![3; 50]), (1 << 20, vec![1; 150])] {
            let disk = VolatileStore::default();
            let (sender, reads) = mpsc::channel();
            let jobs = (0..150).map(|offset| ReaderJob::Read { record: RECORD, offset, length }).collect();
            sender.send(jobs).expect("it is read below");
            drop(sender);
            let said = std::cell::RefCell::new(Vec::new());
            let ahead = Mutex::new(ReadAhead::new(0));
            run_reader(&*disk.open().reader(), &ahead, &reads, &|answers| said.borrow_mut().push(answers));
            let said = said.into_inner();
            assert_eq!(said.iter().map(Vec::len).collect::<Vec<_>>(), portions);
            assert_eq!(said.concat().len(), 150);
        }
    }

    /// One read is answered by the writer or the reader; the next may use the other.
    #[test]
    fn what_is_not_yet_on_the_disk_can_be_read_after_what_is() {
        const RECORD: RecordId = RecordId(7);
        let disk = VolatileStore::default();
        let (mut drive, mut ask) = start(&disk, 0);
        let append =
            |data| StorageRequest::Append { record: RECORD, data: Bytes::from_static(data), urgent: false };
        let read = |offset| StorageRequest::Read { record: RECORD, offset, length: 5, in_parts: false };
        ask(&mut drive, append(b"there"));
        for _ in 0..2 {
            let data = Bytes::from_static(b"there");
            let answer = ask(&mut drive, read(0));
            assert_eq!(
                answer,
                [StorageIndication::Data { record: RECORD, offset: 0, data }],
                "from the disk"
            );
        }
        disk.hold(true);
        drive.request(Instant::ZERO, append(b" and here"));
        drive.flush();
        drive.request(Instant::ZERO, read(5));
        let data = Bytes::from_static(b" and ");
        let answer = drive.answer(Instant::ZERO);
        assert_eq!(answer, Some(StorageIndication::Data { record: RECORD, offset: 5, data }), "from memory");
        disk.hold(false);
    }

    /// Bundles that wait on the disk leave one after the other.
    #[test]
    fn most_of_what_is_read_in_order_is_there_when_it_is_asked_for() {
        const RECORDS: u64 = 500;
        let folder = crate::test_folder::TestFolder::new("ahead");
        let (log, _) = super::super::log::Log::open(&folder.0.join("store")).expect("it opens");
        let (sender, said) = mpsc::channel();
        let tell: Tell = Box::new(move |answers| drop(sender.send(answers)));
        let mut drive = StorageDriver::start(Box::new(log), 64 << 10, tell).expect("threads");
        let data = |record: u64| Bytes::from(vec![record as u8; 1000 + record as usize]);
        for record in 0..RECORDS {
            drive.request(
                Instant::ZERO,
                StorageRequest::Append { record: RecordId(record), data: data(record), urgent: false },
            );
        }
        drive.flush();
        let mut stored = 0;
        while stored < RECORDS {
            let heard = said.recv().expect("the writer is there");
            heard.iter().for_each(|said| drive.heard(said));
            stored += heard.len() as u64;
        }
        drive.flush();
        let mut waited = 0;
        // Those at the end are still in the cache.
        for record in 0..RECORDS - 100 {
            let length = data(record).len() as u32;
            drive.request(
                Instant::ZERO,
                StorageRequest::Read { record: RecordId(record), offset: 0, length, in_parts: false },
            );
            let answer = drive.answer(Instant::ZERO).unwrap_or_else(|| {
                waited += 1;
                drive.flush();
                let heard = said.recv().expect("the reader is there");
                heard.iter().for_each(|said| drive.heard(said));
                heard[0].clone()
            });
            let expected =
                StorageIndication::Data { record: RecordId(record), offset: 0, data: data(record) };
            assert_eq!(answer, expected);
            drive.flush();
        }
        assert!((1..100).contains(&waited), "{waited}");
    }

    /// Disk with maintenance to do three times, while nothing is written.
    struct Restless {
        disk: VolatileStore,
        tended: mpsc::Sender<()>,
        left: u32,
    }

    impl Backend for Restless {
        fn list(&mut self) -> Vec<(RecordId, u64)> {
            self.disk.list()
        }

        fn write(&mut self, batch: &[StoreWrite]) -> Result<(), BatchRefusal> {
            self.disk.write(batch)
        }

        fn maintain(&mut self) -> bool {
            self.left -= 1;
            self.tended.send(()).expect("somebody waits for that");
            false
        }

        fn maintenance_pause(&self) -> Option<Duration> {
            (self.left > 0).then_some(Duration::from_millis(1))
        }

        fn reader(&self) -> Box<dyn StoreReader> {
            self.disk.reader()
        }
    }

    #[test]
    fn what_rests_is_tended_again_though_nobody_writes() {
        let (tended, times) = mpsc::channel();
        let backend = Restless { disk: VolatileStore::default().open(), tended, left: 3 };
        let _drive = StorageDriver::start(Box::new(backend), 0, Box::new(|_| {})).expect("threads");
        for time in 1..=3 {
            times
                .recv_timeout(Duration::from_secs(60))
                .unwrap_or_else(|_| panic!("time {time} does not come"));
        }
    }

    /// A sender that fills the store and leaves does not leave state behind, in whatever order the events arrive.
    #[test]
    fn what_was_refused_and_removed_is_forgotten() {
        const RECORD: RecordId = RecordId(7);
        let disk = VolatileStore::default();
        let (sender, said) = mpsc::channel();
        let tell: Tell = Box::new(move |answers| drop(sender.send(answers)));
        let mut drive = StorageDriver::start(Box::new(disk.open()), 1 << 20, tell).expect("threads");
        disk.set_size(Some(20));
        let data = Bytes::from_static(&[7; 30]);
        for request in [
            StorageRequest::Append { record: RECORD, data: data.clone(), urgent: false },
            StorageRequest::Remove { record: RECORD },
        ] {
            drive.request(Instant::ZERO, request);
            drive.flush();
        }
        let mut heard = Vec::new();
        while heard.len() < 2 {
            heard.extend(said.recv().expect("the writer is there"));
        }
        let answers =
            [StorageIndication::Full { record: RECORD }, StorageIndication::Removed { record: RECORD }];
        assert_eq!(heard, answers);
        heard.iter().for_each(|said| drive.heard(said));
        let StoreKind::Disk(store) = &drive.store else { panic!("it is on a disk") };
        assert_eq!(store.refused, BTreeSet::new());
    }
}
