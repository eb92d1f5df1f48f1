//! The durable store: a log of records in segment files, with an index in memory.
//!
//! ```text
//!   00000007.log       preamble | batch | data | data | remove | batch | data ..
//!   00000008.log       preamble | batch | ..                    <- written at its end, one sync a batch
//!   00000008.listing   the headers of it once more              <- written when they are durable (see [`listing`])
//! ```
//!
//! A batch is written with one call and made durable with one sync. Once it is, the mark of the next follows without a
//! sync: what stands before a mark was acknowledged, so that damage there is told from what a crash tore. A read is one call at a known place and checks the
//! checksum of every entry that it touches. Segments go oldest first, once nothing in them counts; what still counts in an
//! old one is moved when more than half of all is waste. Because they go in order, a removal is never forgotten before
//! what it removes.
//!
//! Opening reads headers only (see [`scan`]), and changes no byte of what is there; what is not understood is refused (see
//! [`opening`]). Each entry stands for itself: one that is damaged takes no other with it; it is set aside and told (see
//! [`quarantine`]). Missing records are known: by the listing of their segment, which; by the count in each mark, how many.
//!
//! **A full device.** A reserve file is put aside while there is room. It is more than a segment is long, and is let go
//! for three things: to move what counts out of the oldest segment, which frees at least as much again; to remove; and for
//! short notes about what is here. While it is gone nothing else is taken. On a device that was full, waste is moved away
//! as soon as it is more than a segment, so what counts is all that keeps newcomers out: docs/store.md says how much.
//!
//! Units: bytes. Limits: a segment is 64 MiB, or a 32nd of the room that a small device has for the store; the reserve is
//! a segment and a half; 128 KiB an entry, about 100 bytes of memory a record and 24 a chunk.

mod check;
mod device;
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

/// A segment is not longer than this, unless one batch alone is.
pub(crate) const SEGMENT_BYTES: u64 = 64 << 20;
/// Shorter segments would be all headers and blocks.
const SEGMENT_BYTES_MIN: u64 = 256 << 10;
/// What a small device has room for is so many segments.
const SEGMENTS: u64 = 32;
/// Appends up to this may be notes about what is here already, and are taken from the reserve.
const NOTE_BYTES_MAX: usize = 4096;
/// Data at most so long are copied beside their header; longer ones are written from where they are.
const COPY_BYTES_MAX: usize = 4096;
/// A segment without entries: its beginning and a mark.
const SEGMENT_EMPTY_BYTES: u64 = (PREAMBLE_BYTES + HEADER_BYTES) as u64;

/// How the names of segments end.
const SEGMENT_ENDING: &str = "log";

/// What opening met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// Records found, those that are damaged or missing included, as far as they are known.
    pub records: usize,
    /// Bytes behind the last whole entry: what a crash tore; never acknowledged.
    pub torn_bytes: u64,
    /// Places that were damaged, and files that have no place. All that is behind them was found.
    pub damaged: u64,
    /// Records of which something is known to be damaged or missing; each is told.
    pub harmed: u64,
    /// Records that are missing, and nothing says whose they were.
    pub unnamed: u64,
    /// Places that were damaged and are told in no words any more: there were too many.
    pub untold: u64,
    /// Files and folders of it to which others have rights that this user cannot take: they belong to another user, or their
    /// file system knows no rights.
    pub open_to_others: u64,
}

/// The store.
#[derive(Debug)]
pub struct Log {
    folder: PathBuf,
    device: Device,
    lock: Lock,
    index: Arc<Mutex<Index>>,
    quarantine: Arc<Quarantine>,
    secret: SealKey,
    active: u32,
    batch: u64,
    /// The active segment ends with the mark of the next batch.
    marked: bool,
    /// The listing of the active segment; none: it could not be written.
    listing: Option<Listing>,
    /// Records that are missing, and nothing says whose they were: marks count them, too.
    unnamed: u64,
    /// The active segment may have bytes of a write that failed.
    may_have_torn_bytes: bool,
    unreadable: UnreadableChunks,
    /// Bytes of the reserve that are there: an opening on a device that seemed smaller or larger has put aside less or more
    /// than this one would.
    reserve_bytes_present: u64,
    /// The device was full, and has not had much room since.
    device_was_full: bool,
    /// How long a segment may be.
    segment_bytes: u64,
}

fn lock_index(index: &Mutex<Index>) -> MutexGuard<'_, Index> {
    index.lock().expect("no thread panics while it has the index")
}

impl Log {
    /// Opens a store, or makes one in a folder that is missing or empty.
    ///
    /// # Errors
    /// It is not a store of this format, the folder cannot be made or read, or another process has it. No byte of it was
    /// changed.
    pub fn open(folder: &Path) -> Result<(Self, Opened), OpenError> {
        private_files::make_folder(folder)?;
        Log::open_on(folder, Device::new(folder))
    }

    fn open_on(folder: &Path, device: Device) -> Result<(Self, Opened), OpenError> {
        // Before anything is made.
        opening::look(folder)?;
        let mut options = private_files::file();
        options.create(true).truncate(false).read(true).write(true);
        let lock = Lock::take(private_files::make(&mut options, &folder.join("lock"))?)?;
        let (names, known) = opening::look(folder)?;
        // An earlier version let everybody read it.
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
        // A listing that cannot be written is missed only if its segment is damaged before the next opening.
        let mend = |number, entries: &[listing::Placed]| {
            drop(listing::write(&device, folder, number, secret, entries))
        };
        let newest = NewestBatch::read(&lock, secret);
        let opening::LoadedStore { index, met, empty } =
            opening::read(parts, secret, newest, &quarantine, mend)?;
        // Segments have the number that their marks say, whatever their names are.
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
        // All that is missing has been told.
        log.note_newest(noted_end);
        log.reserve_bytes_present = fs::metadata(log.reserve_path()).map_or(0, |about| about.len());
        if let Err(error) = log.begin_segment() {
            // A full device: what was put aside is enough to open it and to remove.
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

    /// Where damage is told, and what is damaged is kept.
    pub fn quarantine(&self) -> &Arc<Quarantine> {
        &self.quarantine
    }

    /// Reads all that is stored, over and over, slowly.
    ///
    /// # Errors
    /// The system gives no thread.
    pub(crate) fn scrub(&self, pace: ScrubPace) -> io::Result<Scrub> {
        Scrub::start(self.log_reader(), pace)
    }

    fn log_reader(&self) -> LogReader {
        LogReader { index: self.index.clone(), quarantine: self.quarantine.clone() }
    }

    /// Bytes of all files, and bytes in them that still count.
    pub fn totals(&self) -> (u64, u64) {
        lock_index(&self.index).totals()
    }

    fn begin_segment(&mut self) -> io::Result<()> {
        let number = self.active.checked_add(1).ok_or_else(|| io::Error::other("all numbers were given"))?;
        let path = segment_path(&self.folder, number);
        let file = private_files::make(private_files::file().create_new(true).read(true).write(true), &path)?;
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
        lock_index(&self.index).add_segment(number, path, Arc::new(file));
        self.active = number;
        self.may_have_torn_bytes = false;
        self.mark(&[]);
        Ok(())
    }

    /// Begins the next batch: everything before it is durable. That the mark itself is not does no harm. The headers of what
    /// is durable now are listed before it.
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

    /// Notes what the newest batch left, and where it ends. Without the note it is known as far as the segments say it.
    fn note_newest(&self, end: u64) {
        let records = lock_index(&self.index).records.len() as u64 + self.unnamed;
        let newest = NewestBatch { segment: self.active, batch: self.batch, records, end };
        let _ = newest.write(&self.lock, self.secret);
    }

    /// The active segment's file, and where it ends.
    fn end(&self) -> (Arc<File>, u64) {
        let index = lock_index(&self.index);
        let segment = &index.segments[&self.active];
        (segment.file.clone(), segment.bytes)
    }

    fn reserve_path(&self) -> PathBuf {
        self.folder.join("reserve")
    }

    /// Enough to move all that counts in a segment, and to remove and note meanwhile.
    fn reserve_bytes(&self) -> u64 {
        self.segment_bytes + self.spare_bytes()
    }

    fn spare_bytes(&self) -> u64 {
        self.segment_bytes / 2
    }

    /// With so much free beside the reserve a device is not short of it.
    fn much_bytes(&self) -> u64 {
        4 * self.segment_bytes
    }

    /// Puts space aside, if there is some; true: it is there as a whole.
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

    /// What is free, and what would be without the reserve.
    fn free_in_need(&self) -> u64 {
        self.device.free().saturating_add(self.reserve_bytes_present)
    }

    /// Removes the oldest segments as long as nothing in them counts.
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

    /// Writes a batch at the end of the active segment and syncs it, with what is known to be lost.
    fn commit(&mut self, batch: &[StoreWrite], lost: &[EntryHeader]) -> io::Result<()> {
        if !self.marked {
            self.mark(&[]);
        }
        let (file, start) = self.end();
        let composed = ComposedBatch::new(batch, lost, self.secret, start);
        let written = composed.write(&self.device, &file, start).and_then(|()| self.device.sync_data(&file));
        if let Err(error) = written {
            // Nothing of it may come back at the next start.
            self.may_have_torn_bytes = file.set_len(start).is_err() || self.device.sync_all(&file).is_err();
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
        // The engines want the index for all that comes.
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

    /// Commits; where there is no space, from the reserve.
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

    /// There is no space: what is removed is removed all the same, and notes are taken.
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
        // A segment takes two of them.
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

/// A batch without the removals of what is not there: whoever is refused has none of it removed at the cost of the reserve.
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

/// What a batch takes in a segment.
fn entries_bytes(batch: &[StoreWrite]) -> u64 {
    let bytes = |write: &StoreWrite| match write {
        StoreWrite::Append { data, .. } => data.len() + data.len().div_ceil(DATA_BYTES_MAX) * HEADER_BYTES,
        StoreWrite::Remove { .. } => HEADER_BYTES,
    };
    batch.iter().map(|write| bytes(write) as u64).sum()
}

/// A batch as it goes to the device.
struct ComposedBatch<'a> {
    /// Headers and short data.
    small: Vec<u8>,
    /// The headers alone.
    headers: Vec<u8>,
    /// What is written one after the other: a range of `small`, or data where they are.
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

    fn write(&self, device: &Device, file: &File, start: u64) -> io::Result<()> {
        let slices = self.parts.iter().map(|part| match part {
            BatchPart::Small(from, to) => IoSlice::new(&self.small[*from..*to]),
            BatchPart::Data(data) => IoSlice::new(data),
        });
        device.append(file, start, &mut slices.collect::<Vec<_>>())
    }
}

/// Reads beside the writer.
#[derive(Debug)]
struct LogReader {
    index: Arc<Mutex<Index>>,
    quarantine: Arc<Quarantine>,
}

impl LogReader {
    /// Lets the system read a chunk from the device, and not from memory, as far as it can.
    fn forget(&self, chunk: &ChunkPlace) {
        let file = lock_index(&self.index).segments.get(&chunk.segment).map(|segment| segment.file.clone());
        if let Some(file) = file
            && let Some(length) = NonZeroU64::new(u64::from(chunk.length))
        {
            let _ = rustix::fs::fadvise(&file, u64::from(chunk.at), Some(length), Advice::DontNeed);
        }
    }

    /// The data of a chunk, checked.
    fn chunk(&self, chunk: &ChunkPlace) -> Result<Bytes, StorageFailure> {
        if chunk.is_lost() {
            return Err(StorageFailure::Damaged);
        }
        let file = {
            let index = lock_index(&self.index);
            index.segments.get(&chunk.segment).map(|segment| segment.file.clone())
        };
        // The chunk has moved, or its record is gone.
        let file = file.ok_or(StorageFailure::Missing)?;
        let mut data = BytesMut::zeroed(chunk.length as usize);
        match reading::read_exact(&file, &mut data, u64::from(chunk.at)) {
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
    ) -> Result<(Vec<ChunkPlace>, u64), StorageFailure> {
        let index = lock_index(&self.index);
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

impl StoreReader for LogReader {
    fn length(&self, record: RecordId) -> Option<u64> {
        lock_index(&self.index).records.get(&record).map(index::RecordIndex::length)
    }

    fn read(&self, record: RecordId, offset: u64, length: u32) -> Result<Bytes, StorageFailure> {
        let read = match self.try_read(record, offset, length) {
            // It may have been moved just then.
            Err(StorageFailure::Missing) => self.try_read(record, offset, length),
            done => done,
        };
        if let Err(StorageFailure::Damaged | StorageFailure::Device) = read {
            self.quarantine.record(&self.index, record);
        }
        read
    }
}

#[cfg(test)]
mod tests;
