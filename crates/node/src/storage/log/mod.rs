//! The durable store: a log of records in segment files, with an index in memory.
//!
//! ```text
//!   00000007.log   preamble | batch | data | data | remove | batch | data ..
//!   00000008.log   preamble | batch | ..                            <- written at its end, one sync a batch
//! ```
//!
//! A batch is written with one call and made durable with one sync. Once it is, the mark of the next follows without a
//! sync: what stands before a mark was acknowledged, so that damage there is told from what a crash tore. A read is one call at a known place and checks the
//! checksum of every entry that it touches. Segments go oldest first, once nothing in them counts; what still counts in an
//! old one is moved when more than half of all is waste. Because they go in order, a removal is never forgotten before
//! what it removes.
//!
//! Opening reads headers only (see [`scan`]). Each entry stands for itself: one that is damaged takes no other with it;
//! it is set aside and told (see [`quarantine`]).
//!
//! Space for removals is kept in a reserve file: a store that is full can always be emptied.
//!
//! Units: bytes. Limits: 64 MiB a segment, 128 KiB an entry, about 100 bytes of memory a record and 24 a chunk.

mod frame;
mod index;
mod quarantine;
mod scan;

pub use quarantine::{Damage, Harm, Quarantine};

use super::backend::{Backend, Reader, Refusal, Write};
use bytes::{Bytes, BytesMut};
use frame::{DATA_BYTES_MAX, HEADER_BYTES, Header, Kind, Secret};
use index::{Chunk, Index, chunk_of};
use longwire_proto::codec::crc::crc32c;
use longwire_proto::service::{RecordId, StorageFailure};
use std::fs::{self, File, OpenOptions};
use std::io::{self, IoSlice, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

/// A new segment begins when the last one is as long as this.
pub(crate) const SEGMENT_BYTES: u64 = 64 << 20;
/// Kept for removals when the device is full.
const RESERVE_BYTES: usize = 1 << 20;
/// How much is moved out of an old segment between two batches.
const MOVE_BYTES: u64 = 4 << 20;
/// Data at most so long are copied beside their header; longer ones are written from where they are.
const COPY_BYTES_MAX: usize = 4096;
/// Pieces of memory that one call writes; the kernel takes 1,024.
const SLICES_MAX: usize = 1024;

/// What opening met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Records found.
    pub records: usize,
    /// Bytes behind the last whole entry: what a crash tore; never acknowledged.
    pub torn_bytes: u64,
    /// Places that were damaged. What is behind them was found.
    pub damaged: u64,
}

/// The store.
#[derive(Debug)]
pub struct Log {
    folder: PathBuf,
    /// Held locked: one process at a time.
    _lock: File,
    index: Arc<Mutex<Index>>,
    quarantine: Arc<Quarantine>,
    secret: Secret,
    active: u32,
    batch: u64,
    /// The active segment ends with the mark of the next batch.
    marked: bool,
    /// The active segment may have bytes of a write that failed.
    spoilt: bool,
    reserved: bool,
}

fn lock(index: &Mutex<Index>) -> MutexGuard<'_, Index> {
    index.lock().expect("no thread panics while it has the index")
}

impl Log {
    /// Opens a store, or makes one in a folder that is missing or empty.
    ///
    /// # Errors
    /// The folder cannot be made or read, or another process has it.
    pub fn open(folder: &Path) -> io::Result<(Self, Opened)> {
        fs::create_dir_all(folder)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(folder.join("lock"))?;
        lock.try_lock().map_err(|_| io::Error::new(io::ErrorKind::WouldBlock, "another node has it open"))?;
        let mut index = Index::default();
        let mut met = scan::Met::default();
        let files = segments(folder)?;
        let secret = scan::secret(&lock, &files).unwrap_or_else(|| Secret(super::random_u64()));
        lock.write_all_at(&secret.preamble(), 0)?;
        lock.sync_all()?;
        let quarantine = Arc::new(Quarantine::new(folder));
        for (number, file) in &files {
            let is_last = Some(number) == files.last().map(|(last, _)| last);
            let segment = scan::Segment { number: *number, file, is_last };
            scan::scan(&mut index, segment, secret, &quarantine, &mut met)?;
        }
        let opened =
            Opened { records: index.records.len(), torn_bytes: met.torn_bytes, damaged: met.damaged };
        let mut log = Log {
            folder: folder.to_owned(),
            _lock: lock,
            index: Arc::new(Mutex::new(index)),
            quarantine,
            secret,
            active: files.last().map_or(0, |(number, _)| *number),
            batch: met.batch,
            marked: false,
            spoilt: false,
            reserved: folder.join("reserve").exists(),
        };
        if let Err(error) = log.begin_segment() {
            // A full device: what was put aside is enough to open it and to remove.
            if !is_full(&error) || !log.reserved {
                return Err(error);
            }
            log.release_reserve();
            log.begin_segment()?;
        }
        log.reserve();
        log.drop_dead();
        Ok((log, opened))
    }

    /// Where damage is told, and what is damaged is kept.
    pub fn quarantine(&self) -> &Arc<Quarantine> {
        &self.quarantine
    }

    fn log_reader(&self) -> LogReader {
        LogReader { index: self.index.clone(), quarantine: self.quarantine.clone() }
    }

    /// Bytes of all files, and bytes in them that still count.
    pub fn totals(&self) -> (u64, u64) {
        lock(&self.index).totals()
    }

    fn begin_segment(&mut self) -> io::Result<()> {
        let number = self.active + 1;
        let path = segment_path(&self.folder, number);
        let file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&path)?;
        let made = file
            .write_all_at(&self.secret.preamble(), 0)
            .and_then(|()| file.sync_all())
            .and_then(|()| File::open(&self.folder)?.sync_all());
        if let Err(error) = made {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        lock(&self.index).add_segment(number, Arc::new(file));
        self.active = number;
        self.spoilt = false;
        self.mark();
        Ok(())
    }

    /// Begins the next batch: everything before it is durable. That the mark itself is not does no harm.
    fn mark(&mut self) {
        let (file, at) = self.end();
        let mut mark = Vec::with_capacity(HEADER_BYTES);
        Header::batch(self.batch + 1).encode(self.secret, &mut mark);
        self.marked = file.write_all_at(&mark, at).is_ok();
        if self.marked {
            self.batch += 1;
            let mut index = lock(&self.index);
            index.segments.get_mut(&self.active).expect("the active segment is there").bytes +=
                mark.len() as u64;
        }
    }

    /// The active segment's file, and where it ends.
    fn end(&self) -> (Arc<File>, u64) {
        let index = lock(&self.index);
        let segment = &index.segments[&self.active];
        (segment.file.clone(), segment.bytes)
    }

    /// Puts space aside, if there is some.
    fn reserve(&mut self) {
        if !self.reserved {
            let path = self.folder.join("reserve");
            let made = File::create(&path).and_then(|mut file| {
                file.write_all(&vec![0; RESERVE_BYTES])?;
                file.sync_all()
            });
            self.reserved = made.is_ok();
            if !self.reserved {
                let _ = fs::remove_file(&path);
            }
        }
    }

    fn release_reserve(&mut self) {
        if core::mem::take(&mut self.reserved) {
            let _ = fs::remove_file(self.folder.join("reserve"));
        }
    }

    /// Removes the oldest segments as long as nothing in them counts.
    fn drop_dead(&mut self) {
        let mut index = lock(&self.index);
        while let Some((number, segment)) = index.oldest()
            && segment.live == 0
            && number != self.active
        {
            if fs::remove_file(segment_path(&self.folder, number)).is_err() {
                return;
            }
            index.segments.remove(&number);
        }
    }

    /// Writes a batch at the end of the active segment and syncs it.
    fn commit(&mut self, batch: &[Write]) -> io::Result<()> {
        if !self.marked {
            self.mark();
        }
        let (file, start) = self.end();
        let composed = Composed::new(batch, self.secret, start);
        let written = composed.write(&file, start).and_then(|()| file.sync_data());
        if let Err(error) = written {
            // Nothing of it may come back at the next start.
            self.spoilt = file.set_len(start).is_err() || file.sync_all().is_err();
            return Err(error);
        }
        let mut index = lock(&self.index);
        for (header, at) in &composed.entries {
            match header.kind {
                Kind::Data => index.add(header.record, chunk_of(header, self.active, *at as u32)),
                Kind::Remove => {
                    index.remove(header.record);
                    self.quarantine.forget(header.record);
                }
                Kind::Batch => unreachable!("marks are written by themselves"),
            }
        }
        let segment = index.segments.get_mut(&self.active).expect("the active segment is there");
        segment.bytes = start + composed.bytes;
        drop(index);
        self.mark();
        Ok(())
    }

    fn commit_in_place(&mut self, batch: &[Write]) -> io::Result<()> {
        let full = lock(&self.index).segments[&self.active].bytes >= SEGMENT_BYTES;
        if full || self.spoilt {
            self.begin_segment()?;
        }
        self.commit(batch)
    }

    /// There was no space: what is removed is removed all the same.
    fn commit_removals(&mut self, batch: &[Write]) -> io::Result<()> {
        let removals: Vec<Write> =
            batch.iter().filter(|write| matches!(write, Write::Remove { .. })).cloned().collect();
        if !removals.is_empty() {
            self.release_reserve();
            self.commit_in_place(&removals)?;
            self.drop_dead();
        }
        Ok(())
    }

    /// Moves some of what counts out of the oldest segment, if waste is more than half.
    fn move_some(&mut self) -> bool {
        let moved = {
            let index = lock(&self.index);
            let (total, live) = index.totals();
            match index.oldest() {
                Some((number, _)) if number != self.active && total > 2 * live + 2 * SEGMENT_BYTES => {
                    index.chunks_in(number, MOVE_BYTES)
                }
                _ => return false,
            }
        };
        let reader = self.log_reader();
        let mut copies = Vec::new();
        for (record, chunk) in moved {
            match reader.chunk(&chunk) {
                Ok(data) => copies.push(Write::Append { record, offset: chunk.offset, data }),
                Err(StorageFailure::Damaged) => {
                    // Its segment can go; whoever reads the record will miss the chunk.
                    self.quarantine.record(&self.index, record);
                    lock(&self.index).give_up(record, &chunk);
                }
                // Gone meanwhile, or perhaps readable another time.
                Err(StorageFailure::Missing | StorageFailure::Device) => {}
            }
        }
        let moved = !copies.is_empty() && self.commit_in_place(&copies).is_ok();
        self.drop_dead();
        moved
    }
}

impl Backend for Log {
    fn list(&mut self) -> Vec<(RecordId, u64)> {
        lock(&self.index).records.iter().map(|(id, record)| (*id, record.length())).collect()
    }

    fn write(&mut self, batch: &[Write]) -> Result<(), Refusal> {
        match self.commit_in_place(batch) {
            Ok(()) => {
                self.drop_dead();
                Ok(())
            }
            Err(error) if is_full(&error) => match self.commit_removals(batch) {
                Ok(()) => Err(Refusal::Full),
                Err(_) => Err(Refusal::Device),
            },
            Err(_) => Err(Refusal::Device),
        }
    }

    fn tend(&mut self) -> bool {
        self.reserve();
        self.move_some()
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::new(self.log_reader())
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn segment_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:08}.log"))
}

/// All segments, oldest first.
fn segments(folder: &Path) -> io::Result<Vec<(u32, Arc<File>)>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        numbers.extend(name.to_str().and_then(|name| name.strip_suffix(".log")?.parse::<u32>().ok()));
    }
    numbers.sort_unstable();
    let open = |number: u32| {
        let file = OpenOptions::new().read(true).write(true).open(segment_path(folder, number))?;
        Ok((number, Arc::new(file)))
    };
    numbers.into_iter().map(open).collect()
}

/// A batch as it goes to the device.
struct Composed<'a> {
    /// Headers and short data.
    small: Vec<u8>,
    /// What is written one after the other: a range of `small`, or data where they are.
    parts: Vec<Part<'a>>,
    entries: Vec<(Header, u64)>,
    bytes: u64,
}

enum Part<'a> {
    Small(usize, usize),
    Data(&'a [u8]),
}

impl<'a> Composed<'a> {
    fn new(batch: &'a [Write], secret: Secret, start: u64) -> Self {
        let mut composed = Composed { small: Vec::new(), parts: Vec::new(), entries: Vec::new(), bytes: 0 };
        for write in batch {
            match write {
                Write::Remove { record } => composed.put(Header::remove(*record), secret, &[], start),
                Write::Append { record, offset, data } => {
                    let mut offset = *offset;
                    for data in data.chunks(DATA_BYTES_MAX) {
                        composed.put(Header::data(*record, offset, data), secret, data, start);
                        offset += data.len() as u64;
                    }
                }
            }
        }
        composed
    }

    fn put(&mut self, header: Header, secret: Secret, data: &'a [u8], start: u64) {
        let from = self.small.len();
        header.encode(secret, &mut self.small);
        self.bytes += HEADER_BYTES as u64;
        self.entries.push((header, start + self.bytes));
        self.bytes += data.len() as u64;
        let copied = data.len() <= COPY_BYTES_MAX;
        if copied {
            self.small.extend_from_slice(data);
        }
        match self.parts.last_mut() {
            Some(Part::Small(_, end)) => *end = self.small.len(),
            _ => self.parts.push(Part::Small(from, self.small.len())),
        }
        if !copied {
            self.parts.push(Part::Data(data));
        }
    }

    fn write(&self, file: &File, start: u64) -> io::Result<()> {
        let slices = self.parts.iter().map(|part| match part {
            Part::Small(from, to) => IoSlice::new(&self.small[*from..*to]),
            Part::Data(data) => IoSlice::new(data),
        });
        let mut slices: Vec<IoSlice<'_>> = slices.collect();
        let mut left = &mut slices[..];
        let mut file = file;
        io::Seek::seek(&mut file, io::SeekFrom::Start(start))?;
        while !left.is_empty() {
            let some = left.len().min(SLICES_MAX);
            match file.write_vectored(&left[..some]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => IoSlice::advance_slices(&mut left, written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Reads beside the writer.
#[derive(Debug)]
struct LogReader {
    index: Arc<Mutex<Index>>,
    quarantine: Arc<Quarantine>,
}

impl LogReader {
    /// The data of a chunk, checked.
    fn chunk(&self, chunk: &Chunk) -> Result<Bytes, StorageFailure> {
        let file = {
            let index = lock(&self.index);
            index.segments.get(&chunk.segment).map(|segment| segment.file.clone())
        };
        // The chunk has moved, or its record is gone.
        let file = file.ok_or(StorageFailure::Missing)?;
        let mut data = BytesMut::zeroed(chunk.length as usize);
        match file.read_exact_at(&mut data, u64::from(chunk.at)) {
            Ok(()) if crc32c(&data) == chunk.data_crc => Ok(data.freeze()),
            Ok(()) => Err(StorageFailure::Damaged),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(StorageFailure::Damaged),
            Err(_) => Err(StorageFailure::Device),
        }
    }

    /// The chunks that hold a range, and the range as far as the record reaches.
    fn chunks(
        &self,
        record: RecordId,
        offset: u64,
        length: u32,
    ) -> Result<(Vec<Chunk>, u64), StorageFailure> {
        let index = lock(&self.index);
        let found = index.records.get(&record).ok_or(StorageFailure::Missing)?;
        let end = offset.saturating_add(u64::from(length)).min(found.length());
        let first = found.chunks.partition_point(|chunk| chunk.end() <= offset);
        let chunks = found.chunks[first..].iter().take_while(|chunk| chunk.offset < end);
        Ok((chunks.copied().collect(), end))
    }

    fn try_read(&self, record: RecordId, offset: u64, length: u32) -> Result<Bytes, StorageFailure> {
        let (chunks, end) = self.chunks(record, offset, length)?;
        let mut at = offset;
        let mut joined = BytesMut::new();
        for chunk in &chunks {
            if chunk.offset > at {
                // A part in the middle was lost.
                return Err(StorageFailure::Damaged);
            }
            let data = self.chunk(chunk)?;
            let part =
                data.slice((at - chunk.offset) as usize..(end.min(chunk.end()) - chunk.offset) as usize);
            if chunks.len() == 1 {
                return Ok(part);
            }
            at += part.len() as u64;
            joined.extend_from_slice(&part);
        }
        Ok(joined.freeze())
    }
}

impl Reader for LogReader {
    fn length(&self, record: RecordId) -> Option<u64> {
        lock(&self.index).records.get(&record).map(index::Record::length)
    }

    fn read(&self, record: RecordId, offset: u64, length: u32) -> Result<Bytes, StorageFailure> {
        let read = match self.try_read(record, offset, length) {
            // It may have been moved just then.
            Err(StorageFailure::Missing) => self.try_read(record, offset, length),
            done => done,
        };
        if read == Err(StorageFailure::Damaged) {
            self.quarantine.record(&self.index, record);
        }
        read
    }
}

#[cfg(test)]
mod tests;
