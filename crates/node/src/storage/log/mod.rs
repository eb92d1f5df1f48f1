//! Durable store: a log of records in segment files, with an index in memory.
//!
//! ```text
//!   00000007.log       preamble | batch | data | data | remove | batch | data ..
//!   00000008.log       preamble | batch | ..                    <- appended to, one sync per batch
//!   00000008.listing   copies of its headers                    <- written when they are durable (see [`listing`])
//! ```
//!
//! A batch is written with one call, or directly if it is long (see [`direct`]), and made durable with one sync. Then the mark of the next batch follows without a sync:
//! everything before a mark was acknowledged, which distinguishes damage there from the torn write of a crash. A read of an
//! entry is one call at a known offset and verifies its checksum; the next part of the same entry needs neither.
//!
//! Segments are removed oldest first, when nothing in them counts; live data of an old segment is moved when more than half of
//! the store is waste. Because of the order, a removal is never forgotten before the data that it removes.
//!
//! Opening reads headers only (see [`scan`]) and changes no existing byte; a store that is not understood is refused (see
//! [`opening`]). Entries are independent: a damaged one affects no other; it is copied and reported (see [`quarantine`]).
//! Missing records are known: the listing of their segment identifies them, and the count in each mark gives their number.
//!
//! **Full device.** While there is space, a reserve file is kept that is longer than a segment. It is released for three
//! purposes: to move live data out of the oldest segment, which frees at least as much again; to remove records; and for
//! short notes about bundles in the store. While it is released, nothing else is accepted. After a device was full, waste is
//! collected as soon as it exceeds a segment, so only live data keeps new bundles out: docs/store.md gives the amount.
//!
//! Units: bytes. Limits: a segment is 64 MiB, or a 32nd of the space that a small device has for the store; the reserve is a
//! segment and a half; an entry has at most 128 KiB; memory use is about 100 bytes per record and 24 per chunk, and each reader
//! keeps the entry of which it has given only a part.

mod check;
mod device;
mod direct;
mod frame;
mod index;
mod listing;
mod lock;
mod moving;
mod newest;
mod opening;
mod quarantine;
mod reading;
mod scan;
mod scrub;

pub use check::{ProgressFn, StoreCheck, StoreRepair, check, repair};
pub use frame::FORMAT;
pub use opening::OpenError;
pub(crate) use opening::can_be_read;
pub(crate) use quarantine::WAITING_MAX as DAMAGE_WAITING_MAX;
pub use quarantine::{DamageKind, Quarantine, StoreDamage};
pub(crate) use scrub::{Scrub, ScrubPace};

use super::backend::{Backend, BatchRefusal, StoreReader, StoreWrite};
use crate::private_files;
use bytes::{Bytes, BytesMut};
use device::Device;
use direct::DirectFile;
use frame::{DATA_BYTES_MAX, EntryHeader, EntryKind, HEADER_BYTES, PREAMBLE_BYTES, SealKey, StoreFileKind};
use index::{ChunkPlace, Index, chunk_of};
use listing::Listing;
use lock::Lock;
use longwire_proto::codec::crc::crc32c;
use longwire_proto::service::{RecordId, StorageFailure};
use moving::UnreadableChunks;
use newest::NewestBatch;
use rustix::fs::Advice;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

/// Maximum length of a segment, unless a single batch is longer.
pub(crate) const SEGMENT_BYTES: u64 = 64 << 20;
/// Minimum length of a segment, below which headers and blocks would dominate.
const SEGMENT_BYTES_MIN: u64 = 256 << 10;
/// Number of segments into which the space of a small device is divided.
const SEGMENTS: u64 = 32;
/// Maximum length of appends that are accepted from the reserve: notes about bundles in the store.
const NOTE_BYTES_MAX: usize = 4096;
/// Maximum length of data that is copied next to its header; longer data is written from its buffer.
const COPY_BYTES_MAX: usize = 4096;
/// Bytes that a shorter range counts for among those that are read ahead: it takes a call of the system, too.
const RANGE_BYTES_MIN: u64 = 512;
/// Length of a segment without entries: preamble and mark.
const SEGMENT_EMPTY_BYTES: u64 = (PREAMBLE_BYTES + HEADER_BYTES) as u64;

/// Extension of segment files.
const SEGMENT_ENDING: &str = "log";

/// Result of opening a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Records found, including damaged or missing ones as far as they are known.
    pub records: usize,
    /// Bytes after the last complete entry: a write that a crash interrupted, never acknowledged.
    pub torn_bytes: u64,
    /// Damaged places, and files that do not belong to the store. Everything after them was found.
    pub damaged: u64,
    /// Records with known damage or missing data; each is reported.
    pub harmed: u64,
    /// Missing records that cannot be identified.
    pub unnamed: u64,
    /// Damaged places whose reports were dropped because there were too many.
    pub untold: u64,
    /// Files and folders to which others have rights that this user cannot remove: they belong to another user, or their
    /// file system has no rights.
    pub open_to_others: u64,
}

/// Log-structured store.
#[derive(Debug)]
pub struct Log {
    folder: PathBuf,
    device: Device,
    lock: Lock,
    index: Arc<Mutex<Index>>,
    quarantine: Arc<Quarantine>,
    secret: SealKey,
    active: u32,
    /// Active segment, for direct writes; `None` if the device takes none.
    direct: Option<DirectFile>,
    batch: u64,
    /// True if the active segment ends with the mark of the next batch.
    marked: bool,
    /// Listing of the active segment; `None` if it could not be written.
    listing: Option<Listing>,
    /// Missing records that cannot be identified, which marks count, too.
    unnamed: u64,
    /// True if the active segment may contain bytes of a failed write.
    may_have_torn_bytes: bool,
    unreadable: UnreadableChunks,
    /// Length of the reserve file, which depends on the size of the device at an earlier opening.
    reserve_bytes_present: u64,
    /// True after the device was full, until it has ample space again.
    device_was_full: bool,
    /// Maximum length of a segment.
    segment_bytes: u64,
}

fn lock_index(index: &Mutex<Index>) -> MutexGuard<'_, Index> {
    index.lock().expect("no thread panics while it has the index")
}

impl Log {
    /// Opens a store, or creates one in a missing or empty folder.
    ///
    /// # Errors
    /// Fails if the folder is not a store of this format, cannot be created or read, or is in use by another process. No
    /// byte of it was changed.
    pub fn open(folder: &Path) -> Result<(Self, Opened), OpenError> {
        private_files::make_folder(folder)?;
        Log::open_on(folder, Device::new(folder))
    }

    fn open_on(folder: &Path, device: Device) -> Result<(Self, Opened), OpenError> {
        // Before anything is created.
        opening::look(folder)?;
        let mut options = private_files::file();
        options.create(true).truncate(false).read(true).write(true);
        let lock = Lock::take(private_files::make(&mut options, &folder.join("lock"))?)?;
        let (names, known) = opening::look(folder)?;
        // Earlier versions let everyone read the store.
        let mut open_to_others = names.close()?;
        for path in [folder, &folder.join("lock")] {
            open_to_others += u64::from(!private_files::close(path)?);
        }
        let secret = known.unwrap_or_else(|| SealKey(super::random_u64()));
        let (preamble, mut there) = (secret.preamble(StoreFileKind::Segment), [0; PREAMBLE_BYTES]);
        if lock.read_exact_at(&mut there, 0).is_err() || there != preamble[..] {
            lock.write_all_at(&preamble, 0)?;
            lock.sync_all()?;
        }
        let quarantine = Arc::new(Quarantine::new(folder));
        let mut parts = opening::parts(&names, secret)?;
        let strays = parts.strays.len() as u64;
        parts.put_away(&quarantine)?;
        let mut last = names.last();
        parts.rename(folder, &mut last)?;
        // A listing that cannot be written matters only if its segment is damaged before the next opening.
        let mend = |number, entries: &[listing::Placed]| {
            drop(listing::write(&device, folder, number, secret, entries))
        };
        let newest = NewestBatch::read(&lock, secret);
        let opening::LoadedStore { index, met, empty } =
            opening::read(parts, secret, newest, &quarantine, mend)?;
        // The marks determine the numbers of segments, whatever their names are.
        last = last.max(index.segments.last_key_value().map_or(0, |(number, _)| *number));
        let noted_end = newest.filter(|newest| newest.segment == last).map_or(0, |newest| newest.end);
        let harmed = met.harmed.len() as u64;
        let opened = Opened {
            records: index.records.len(),
            torn_bytes: met.torn_bytes,
            damaged: met.damaged + harmed + strays,
            harmed,
            unnamed: met.unnamed,
            untold: 0,
            open_to_others,
        };
        let room = device.free().saturating_add(device.own());
        let mut log = Log {
            folder: folder.to_owned(),
            device,
            lock,
            index: Arc::new(Mutex::new(index)),
            quarantine,
            secret,
            active: last,
            direct: None,
            batch: met.batch,
            marked: false,
            listing: None,
            unnamed: met.unnamed,
            may_have_torn_bytes: false,
            unreadable: UnreadableChunks::default(),
            reserve_bytes_present: 0,
            device_was_full: false,
            segment_bytes: (room / SEGMENTS).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES),
        };
        for (record, _) in met.harmed {
            log.quarantine.record(&log.index, record);
        }
        for number in empty {
            let segment = lock_index(&log.index).segments.remove(&number);
            segment.into_iter().for_each(|segment| drop(log.remove_segment(number, &segment.path)));
        }
        names.parts.iter().for_each(|part| drop(fs::remove_file(part)));
        // All missing data has been reported by now.
        log.note_newest(noted_end);
        log.reserve_bytes_present = fs::metadata(log.reserve_path()).map_or(0, |about| about.len());
        if let Err(error) = log.begin_segment() {
            // On a full device the reserve is sufficient for opening the store and for removals.
            if !is_full(&error) || log.reserve_bytes_present == 0 {
                return Err(error.into());
            }
            log.release_reserve();
            log.begin_segment()?;
        }
        log.drop_dead();
        log.device_was_full = !log.reserve() || log.device.free() < log.much_bytes();
        Ok((log, opened))
    }

    /// Returns the quarantine, which reports and keeps damaged data.
    pub fn quarantine(&self) -> &Arc<Quarantine> {
        &self.quarantine
    }

    /// Starts the scrub, which repeatedly reads the whole store at a limited rate.
    ///
    /// # Errors
    /// Fails if the system cannot start a thread.
    pub(crate) fn scrub(&self, pace: ScrubPace) -> io::Result<Scrub> {
        Scrub::start(self.log_reader(), pace)
    }

    fn log_reader(&self) -> LogReader {
        let (index, quarantine) = (self.index.clone(), self.quarantine.clone());
        LogReader { index, quarantine, partly_read: Mutex::default() }
    }

    /// Returns the bytes of all files, and the live bytes in them.
    pub fn totals(&self) -> (u64, u64) {
        lock_index(&self.index).totals()
    }

    fn begin_segment(&mut self) -> io::Result<()> {
        let (number, path, file) = self.make_segment()?;
        let made = self
            .device
            .append(&file, 0, &mut [IoSlice::new(&self.secret.preamble(StoreFileKind::Segment))])
            .and_then(|()| self.device.sync_all(&file));
        if let Err(error) = made {
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        self.listing = Listing::begin(&self.device, &self.folder, number, self.secret).ok();
        if let Err(error) = self.device.sync_names() {
            let _ = self.remove_segment(number, &path);
            return Err(error);
        }
        self.direct = DirectFile::open(&path);
        lock_index(&self.index).add_segment(number, path, Arc::new(file));
        self.active = number;
        self.may_have_torn_bytes = false;
        self.mark(&[]);
        Ok(())
    }

    /// Creates the file of the next segment. A device that failed earlier may have kept a file that could not be removed: its number
    /// is left out.
    fn make_segment(&self) -> io::Result<(u32, PathBuf, File)> {
        let mut number = self.active;
        loop {
            number =
                number.checked_add(1).ok_or_else(|| io::Error::other("all segment numbers are in use"))?;
            let path = segment_path(&self.folder, number);
            let made =
                private_files::make(private_files::file().create_new(true).read(true).write(true), &path);
            match made {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => return Ok((number, path, made?)),
            }
        }
    }

    /// Begins the next batch: everything before its mark is durable; the mark itself need not be. In the listing, the
    /// headers of entries that are now durable precede the mark.
    fn mark(&mut self, headers: &[u8]) {
        let (file, at, records) = {
            let index = lock_index(&self.index);
            let segment = &index.segments[&self.active];
            (segment.file.clone(), segment.bytes, index.records.len() as u64 + self.unnamed)
        };
        let mark = EntryHeader::batch(self.batch + 1, self.active, records);
        let mut listed = Vec::with_capacity(headers.len() + HEADER_BYTES);
        listed.extend_from_slice(headers);
        let mut out = Vec::with_capacity(HEADER_BYTES);
        mark.encode(self.secret, &mut out);
        self.marked = self.device.append(&file, at, &mut [IoSlice::new(&out)]).is_ok();
        if self.marked {
            self.batch += 1;
            let mut index = lock_index(&self.index);
            let segment = index.segments.get_mut(&self.active).expect("the active segment is there");
            segment.bytes += out.len() as u64;
            segment.entries += 1;
            listing::placed(mark, at).encode(self.secret, &mut listed);
        }
        if let Some(listing) = &mut self.listing
            && listing.add(&self.device, &listed).is_err()
        {
            self.listing = None;
        }
    }

    /// Writes the summary of the newest batch with its end. Without it, only the segments describe the batch.
    fn note_newest(&self, end: u64) {
        let records = lock_index(&self.index).records.len() as u64 + self.unnamed;
        let newest = NewestBatch { segment: self.active, batch: self.batch, records, end };
        let _ = newest.write(&self.lock, self.secret);
    }

    fn end(&self) -> (Arc<File>, u64) {
        let index = lock_index(&self.index);
        let segment = &index.segments[&self.active];
        (segment.file.clone(), segment.bytes)
    }

    fn reserve_path(&self) -> PathBuf {
        self.folder.join("reserve")
    }

    /// Returns the length of the reserve: sufficient for moving all live data of a segment, with removals and notes at the
    /// same time.
    fn reserve_bytes(&self) -> u64 {
        self.segment_bytes + self.spare_bytes()
    }

    fn spare_bytes(&self) -> u64 {
        self.segment_bytes / 2
    }

    /// Returns the free space, in addition to the reserve, above which a device is not short of space.
    fn much_bytes(&self) -> u64 {
        4 * self.segment_bytes
    }

    /// Creates the reserve, if there is space; returns true if it has its full length.
    fn reserve(&mut self) -> bool {
        let wanted = self.reserve_bytes();
        if self.reserve_bytes_present < wanted && self.free_in_need() >= wanted {
            match self.device.put_aside(&self.reserve_path(), wanted) {
                Ok(()) => self.reserve_bytes_present = wanted,
                Err(_) => self.release_reserve(),
            }
        }
        self.reserve_bytes_present >= wanted
    }

    fn release_reserve(&mut self) {
        self.reserve_bytes_present = 0;
        let _ = fs::remove_file(self.reserve_path());
    }

    /// Returns the free space including the reserve.
    fn free_in_need(&self) -> u64 {
        self.device.free().saturating_add(self.reserve_bytes_present)
    }

    /// Removes the oldest segments while they contain no live data.
    fn drop_dead(&mut self) {
        let index = self.index.clone();
        let mut index = lock_index(&index);
        while let Some((number, segment)) = index.oldest()
            && segment.live == 0
            && number != self.active
        {
            if self.remove_segment(number, &segment.path).is_err() {
                return;
            }
            index.segments.remove(&number);
            self.unreadable.clear();
        }
    }

    /// Removes a segment and its listing.
    fn remove_segment(&self, number: u32, path: &Path) -> io::Result<()> {
        self.quarantine.remove_segment(number, path)?;
        match fs::remove_file(listing::path(&self.folder, number)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    /// Writes a batch and the entries for lost data at the end of the active segment, and syncs it.
    fn commit(&mut self, batch: &[StoreWrite], lost: &[EntryHeader]) -> io::Result<()> {
        if !self.marked {
            self.mark(&[]);
        }
        let (file, start) = self.end();
        let composed = ComposedBatch::new(batch, lost, self.secret, start);
        let written = composed.write(&self.device, &file, &mut self.direct, start);
        let is_written = written.is_ok();
        if let Err(error) = written.and_then(|()| self.device.sync_data(&file)) {
            // The failed write must not reappear in part at the next start. After a failed sync the state of all its pages on the
            // device is unknown, also of those before.
            let is_cut = file.set_len(start).is_ok() && self.device.sync_all(&file).is_ok();
            self.may_have_torn_bytes = is_written || !is_cut;
            return Err(error);
        }
        let mut index = lock_index(&self.index);
        let mut removed = Vec::new();
        for (header, at) in &composed.entries {
            match header.kind {
                EntryKind::Data | EntryKind::Lost => {
                    index.add(header.record, chunk_of(header, self.active, *at as u32));
                }
                EntryKind::Remove => {
                    index.remove(header.record);
                    removed.push(header.record);
                }
                EntryKind::Batch => unreachable!("marks are written by themselves"),
            }
        }
        let segment = index.segments.get_mut(&self.active).expect("the active segment is there");
        segment.bytes = start + composed.bytes;
        segment.entries += composed.entries.len() as u64;
        drop(index);
        // The engines need the index for every request.
        removed.into_iter().for_each(|record| self.quarantine.forget(record));
        self.mark(&composed.headers);
        self.note_newest(start + composed.bytes);
        Ok(())
    }

    fn commit_in_place(&mut self, batch: &[StoreWrite], lost: &[EntryHeader]) -> io::Result<()> {
        let bytes = lock_index(&self.index).segments[&self.active].bytes;
        let full = bytes > SEGMENT_EMPTY_BYTES && bytes + entries_bytes(batch) > self.segment_bytes;
        if full || self.may_have_torn_bytes {
            self.begin_segment()?;
        }
        self.commit(batch, lost)
    }

    /// Commits a batch, using the reserve if there is no other space.
    fn commit_in_need(&mut self, batch: &[StoreWrite], lost: &[EntryHeader]) -> io::Result<()> {
        match self.commit_in_place(batch, lost) {
            Err(error) if is_full(&error) && self.reserve_bytes_present > 0 => {
                self.device_was_full = true;
                self.release_reserve();
                self.commit_in_place(batch, lost)
            }
            done => done,
        }
    }

    /// Handles a batch for which there is no space: carries out removals, and accepts short notes.
    fn write_on_full(&mut self, batch: &[StoreWrite]) -> Result<(), BatchRefusal> {
        self.device_was_full = true;
        let is_note = |write: &StoreWrite| !matches!(write, StoreWrite::Append { data, .. } if data.len() > NOTE_BYTES_MAX);
        let left = self.segment_bytes + self.spare_bytes() / 8 * 5 + entries_bytes(batch);
        let all = batch.iter().all(is_note) && self.free_in_need() >= left;
        let kept: Vec<StoreWrite> =
            batch.iter().filter(|write| all || matches!(write, StoreWrite::Remove { .. })).cloned().collect();
        if !kept.is_empty() {
            self.commit_in_need(&kept, &[]).map_err(|_| BatchRefusal::Device)?;
            self.drop_dead();
        }
        if all { Ok(()) } else { Err(BatchRefusal::Full) }
    }
}

impl Backend for Log {
    fn list(&mut self) -> Vec<(RecordId, u64)> {
        lock_index(&self.index).records.iter().map(|(id, record)| (*id, record.length())).collect()
    }

    fn write(&mut self, batch: &[StoreWrite]) -> Result<(), BatchRefusal> {
        let needed =
            if self.device_was_full { without_vain(&lock_index(&self.index), batch) } else { batch.into() };
        let batch = &needed[..];
        if self.device_was_full && batch.is_empty() {
            return Ok(());
        }
        let brings = batch.iter().any(|write| matches!(write, StoreWrite::Append { .. }));
        if brings && !self.reserve() {
            return self.write_on_full(batch);
        }
        match self.commit_in_place(batch, &[]) {
            Ok(()) => {
                self.drop_dead();
                Ok(())
            }
            Err(error) if is_full(&error) => self.write_on_full(batch),
            Err(_) => Err(BatchRefusal::Device),
        }
    }

    fn batch_bytes_max(&self) -> usize {
        // A segment holds two batches.
        (self.segment_bytes / 2) as usize
    }

    fn maintain(&mut self) -> bool {
        self.reserve();
        if self.device_was_full && self.reserve_bytes_present >= self.reserve_bytes() {
            self.device_was_full = self.device.free() < self.much_bytes();
        }
        self.move_some()
    }

    fn maintenance_pause(&self) -> Option<Duration> {
        self.unreadable.maintenance_pause()
    }

    fn reader(&self) -> Box<dyn StoreReader> {
        Box::new(self.log_reader())
    }
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

fn segment_path(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:08}.{SEGMENT_ENDING}"))
}

/// Returns a batch without the removals of absent records: removals for a refused bundle must not use the reserve.
fn without_vain<'a>(index: &Index, batch: &'a [StoreWrite]) -> Cow<'a, [StoreWrite]> {
    let mut brought = BTreeSet::new();
    let mut is_needed = |write: &&StoreWrite| match write {
        StoreWrite::Append { record, .. } => {
            brought.insert(*record);
            true
        }
        StoreWrite::Remove { record } => brought.contains(record) || index.records.contains_key(record),
    };
    let needed = batch.iter().filter(|write| is_needed(write)).cloned().collect();
    Cow::Owned(needed)
}

/// Returns the length of a batch in a segment.
fn entries_bytes(batch: &[StoreWrite]) -> u64 {
    let bytes = |write: &StoreWrite| match write {
        StoreWrite::Append { data, .. } => data.len() + data.len().div_ceil(DATA_BYTES_MAX) * HEADER_BYTES,
        StoreWrite::Remove { .. } => HEADER_BYTES,
    };
    batch.iter().map(|write| bytes(write) as u64).sum()
}

/// Batch in the form in which it is written.
struct ComposedBatch<'a> {
    /// Headers and short data.
    small: Vec<u8>,
    /// Headers only.
    headers: Vec<u8>,
    /// Parts to be written in sequence: ranges of `small`, or data in its buffer.
    parts: Vec<BatchPart<'a>>,
    entries: Vec<(EntryHeader, u64)>,
    bytes: u64,
}

enum BatchPart<'a> {
    Small(usize, usize),
    Data(&'a [u8]),
}

impl<'a> ComposedBatch<'a> {
    fn new(batch: &'a [StoreWrite], lost: &[EntryHeader], secret: SealKey, start: u64) -> Self {
        let mut composed = ComposedBatch {
            small: Vec::new(),
            headers: Vec::with_capacity(batch.len() * HEADER_BYTES),
            parts: Vec::new(),
            entries: Vec::with_capacity(batch.len()),
            bytes: 0,
        };
        for header in lost {
            composed.put(*header, secret, &[], start);
        }
        for write in batch {
            match write {
                StoreWrite::Remove { record } => {
                    composed.put(EntryHeader::remove(*record), secret, &[], start)
                }
                StoreWrite::Append { record, offset, data } => {
                    let mut offset = *offset;
                    for data in data.chunks(DATA_BYTES_MAX) {
                        composed.put(EntryHeader::data(*record, offset, data), secret, data, start);
                        offset += data.len() as u64;
                    }
                }
            }
        }
        composed
    }

    fn put(&mut self, header: EntryHeader, secret: SealKey, data: &'a [u8], start: u64) {
        let from = self.small.len();
        header.encode(secret, &mut self.small);
        self.headers.extend_from_slice(&self.small[from..]);
        self.bytes += HEADER_BYTES as u64;
        self.entries.push((header, start + self.bytes));
        self.bytes += data.len() as u64;
        let copied = data.len() <= COPY_BYTES_MAX;
        if copied {
            self.small.extend_from_slice(data);
        }
        match self.parts.last_mut() {
            Some(BatchPart::Small(_, end)) => *end = self.small.len(),
            _ => self.parts.push(BatchPart::Small(from, self.small.len())),
        }
        if !copied {
            self.parts.push(BatchPart::Data(data));
        }
    }

    fn write(
        &self,
        device: &Device,
        file: &File,
        direct: &mut Option<DirectFile>,
        start: u64,
    ) -> io::Result<()> {
        let slices = self.parts.iter().map(|part| match part {
            BatchPart::Small(from, to) => IoSlice::new(&self.small[*from..*to]),
            BatchPart::Data(data) => IoSlice::new(data),
        });
        device.append_batch(file, direct, start, &mut slices.collect::<Vec<_>>())
    }
}

/// Reader that works in parallel with the writer.
#[derive(Debug)]
struct LogReader {
    index: Arc<Mutex<Index>>,
    quarantine: Arc<Quarantine>,
    /// Chunk of which the last read took only a part, with its verified data: the next read usually takes another part.
    partly_read: Mutex<Option<(ChunkPlace, Bytes)>>,
}

impl LogReader {
    /// Drops a chunk from the page cache as far as possible, so that it is read from the device.
    fn forget(&self, chunk: &ChunkPlace) {
        let file = lock_index(&self.index).segments.get(&chunk.segment).map(|segment| segment.file.clone());
        if let Some(file) = file
            && let Some(length) = NonZeroU64::new(u64::from(chunk.length))
        {
            let _ = rustix::fs::fadvise(&file, u64::from(chunk.at), Some(length), Advice::DontNeed);
        }
    }

    /// Reads the data of a chunk and verifies its checksum.
    fn chunk(&self, chunk: &ChunkPlace) -> Result<Bytes, StorageFailure> {
        if chunk.is_lost() {
            return Err(StorageFailure::Damaged);
        }
        let file = {
            let index = lock_index(&self.index);
            index.segments.get(&chunk.segment).map(|segment| segment.file.clone())
        };
        // The chunk has moved, or its record was removed.
        let file = file.ok_or(StorageFailure::Missing)?;
        match reading::read_exact(&file, chunk.length as usize, u64::from(chunk.at)) {
            Ok(data) if crc32c(&data) == chunk.data_crc => Ok(data.into()),
            Ok(_) => Err(StorageFailure::Damaged),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(StorageFailure::Damaged),
            Err(_) => Err(StorageFailure::Device),
        }
    }

    /// Returns the data of a chunk up to `end`, an offset in the record. What is not taken now is kept for the next read.
    fn chunk_up_to(&self, chunk: &ChunkPlace, end: u64) -> Result<Bytes, StorageFailure> {
        let mut partly_read = self.partly_read.lock().expect("no thread panics while it has the chunk");
        let data = match partly_read.take() {
            Some((of, data)) if of == *chunk => data,
            _ => self.chunk(chunk)?,
        };
        if end < chunk.end() {
            *partly_read = Some((*chunk, data.clone()));
        }
        Ok(data.slice(..(end.min(chunk.end()) - chunk.offset) as usize))
    }

    /// Returns the chunks that contain a range, and the end of the range within the record.
    fn chunks(
        &self,
        record: RecordId,
        offset: u64,
        length: u32,
    ) -> Result<(Vec<ChunkPlace>, u64), StorageFailure> {
        let index = lock_index(&self.index);
        let found = index.records.get(&record).ok_or(StorageFailure::Missing)?;
        let end = offset.saturating_add(u64::from(length)).min(found.length());
        let first = found.chunks().partition_point(|chunk| chunk.end() <= offset);
        let chunks = found.chunks()[first..].iter().take_while(|chunk| chunk.offset < end);
        Ok((chunks.copied().collect(), end))
    }

    fn try_read(&self, record: RecordId, offset: u64, length: u32) -> Result<Bytes, StorageFailure> {
        let (chunks, end) = self.chunks(record, offset, length)?;
        let mut at = offset;
        let mut joined = BytesMut::new();
        for chunk in &chunks {
            if chunk.offset > at {
                // A chunk in the middle is missing.
                return Err(StorageFailure::Damaged);
            }
            let part = self.chunk_up_to(chunk, end)?.slice((at - chunk.offset) as usize..);
            if chunks.len() == 1 {
                return Ok(part);
            }
            at += part.len() as u64;
            joined.extend_from_slice(&part);
        }
        Ok(joined.freeze())
    }
}

impl StoreReader for LogReader {
    fn length(&self, record: RecordId) -> Option<u64> {
        lock_index(&self.index).records.get(&record).map(index::RecordIndex::length)
    }

    fn read(&self, record: RecordId, offset: u64, length: u32) -> Result<Bytes, StorageFailure> {
        let read = match self.try_read(record, offset, length) {
            // It may have been moved in the meantime.
            Err(StorageFailure::Missing) => self.try_read(record, offset, length),
            done => done,
        };
        if let Err(StorageFailure::Damaged | StorageFailure::Device) = read {
            self.quarantine.record(&self.index, record);
        }
        read
    }

    fn ranges_from(&self, record: RecordId, offset: u64, bytes: u64) -> Vec<(RecordId, u64, u32)> {
        let index = lock_index(&self.index);
        let (mut ranges, mut left) = (Vec::new(), bytes);
        for (&id, found) in index.records.range(record..) {
            let from = if id == record { offset } else { 0 };
            let length = found.length().saturating_sub(from).min(left);
            if length > 0 {
                ranges.push((id, from, u32::try_from(length).unwrap_or(u32::MAX)));
            }
            left = left.saturating_sub(length.max(RANGE_BYTES_MIN));
            if left == 0 {
                break;
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests;
