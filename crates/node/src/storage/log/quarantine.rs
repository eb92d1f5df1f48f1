//! Damaged data is copied and reported, and affects nothing else.
//!
//! ```text
//!   damaged/00000007-record-10000000002a     the entries of a record, as in their segments
//!   damaged/00000007-bytes-1048576           bytes in place of an entry's header
//!   damaged/00000007.log                     a whole file: duplicate or misnamed, or a segment that would
//!                                            have been removed, with damage for which there was no space
//!   damaged/list.jsonl                       one line per report: place, reason and copy
//! ```
//!
//! Units: bytes. Limits: copies take 64 MiB in 1,024 files, and lines 16 MiB; further damage is reported but not copied. A
//! segment with such damage is moved here instead of being removed, up to 256 MiB of whole files.

use super::frame::{HEADER_BYTES, PREAMBLE_BYTES};
use super::index::{ChunkPlace, Index};
use super::reading;
use crate::private_files;
use longwire_proto::codec::crc::crc32c;
use longwire_proto::service::RecordId;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

const KEPT_BYTES_MAX: u64 = 64 << 20;
const KEPT_FILES_MAX: usize = 1024;
/// Limit for whole files, in addition to the copies.
const WHOLE_BYTES_MAX: u64 = 256 << 20;
const LINES_BYTES_MAX: u64 = 16 << 20;
/// Maximum reports kept until a listener is set.
pub(crate) const WAITING_MAX: usize = 4096;
/// Parts of the names of copies.
const RECORD: &str = "-record-";
const BYTES: &str = "-bytes-";
/// Name of the file with the reports.
const LIST: &str = "list.jsonl";
/// Maximum number of files with the same name, which get a number.
const NUMBERS_MAX: u32 = 1000;

/// Kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DamageKind {
    /// The preamble of a segment is damaged.
    Preamble,
    /// The header of an entry is damaged, so its record is unknown.
    Header,
    /// The data of an entry does not match its checksum.
    Data,
    /// The device cannot read an entry.
    Unreadable,
    /// Durable bytes are missing: the file is missing or too short.
    Missing,
    /// Durable batches at the end are missing.
    End,
    /// Records are missing and cannot be identified; their number follows from the count in each mark.
    Unnamed,
    /// Duplicate or misnamed file.
    Stray,
    /// An entry within a record is missing.
    Gap,
}

/// Report of damage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreDamage {
    /// Kind of damage.
    pub harm: DamageKind,
    /// Record that contained the data, if known.
    pub record: Option<RecordId>,
    /// File name.
    pub file: String,
    /// Offset in the file, bytes.
    pub at: u64,
    /// Length, bytes; for `Unnamed` the number of records.
    pub bytes: u64,
    /// Path of the copy; `None` if there was no space or nothing is readable.
    pub kept: Option<PathBuf>,
}

impl StoreDamage {
    /// Damage of no known record.
    fn new(harm: DamageKind, file: String, at: u64, bytes: u64, kept: Option<PathBuf>) -> Self {
        StoreDamage { harm, record: None, file, at, bytes, kept }
    }
}

impl core::fmt::Display for StoreDamage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let what = match self.harm {
            DamageKind::Preamble => "damaged segment header",
            DamageKind::Header => "damaged entry header",
            DamageKind::Data => "checksum mismatch",
            DamageKind::Unreadable => "unreadable data",
            DamageKind::Missing => "missing data",
            DamageKind::Gap => "missing data within a record",
            DamageKind::End => {
                return write!(f, "the newest data is missing, starting in {}", self.file);
            }
            DamageKind::Stray => "duplicate or misnamed file",
            DamageKind::Unnamed => {
                return write!(f, "{} records are missing and cannot be identified", self.bytes);
            }
        };
        write!(f, "{what}: {} bytes at offset {} of {}", self.bytes, self.at, self.file)?;
        if let Some(record) = self.record {
            write!(f, ", record {:x}", record.0)?;
        }
        match &self.kept {
            Some(path) => write!(f, "; copy kept in {}", path.display()),
            None => f.write_str("; no copy kept"),
        }
    }
}

/// Receiver of reports.
type DamageListener = Box<dyn Fn(StoreDamage) + Send>;

/// Folder for damaged data, and reports about it.
pub struct Quarantine {
    folder: PathBuf,
    /// True if damage is only reported and nothing is changed.
    only_tells: bool,
    /// Held while a record is examined, which can take a while. The engines' task waits for the state, but never for this
    /// lock.
    looks: Mutex<()>,
    state: Mutex<QuarantineState>,
}

#[derive(Default)]
struct QuarantineState {
    /// Records already reported.
    told: BTreeSet<RecordId>,
    kept_bytes: u64,
    kept_files: usize,
    /// Bytes of whole files.
    whole_bytes: u64,
    waiting: Vec<StoreDamage>,
    /// Reports dropped because too many came before a listener was set.
    forgotten: u64,
    /// Segments with damage of which there is no copy.
    unkept: BTreeSet<u32>,
    listener: Option<DamageListener>,
}

impl core::fmt::Debug for Quarantine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Quarantine").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Quarantine {
    /// Creates the quarantine of a store in this folder. Nothing is written until there is damage.
    pub(super) fn new(store: &Path) -> Self {
        let folder = store.join("damaged");
        let mut state = QuarantineState::default();
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let (name, bytes) = (entry.file_name(), entry.metadata().map_or(0, |about| about.len()));
            match name.to_string_lossy() {
                name if name.contains(RECORD) || name.contains(BYTES) => state.take(bytes),
                name if name == LIST => {}
                _ => state.whole_bytes += bytes,
            }
        }
        Quarantine { folder, only_tells: false, looks: Mutex::default(), state: Mutex::new(state) }
    }

    /// Creates a quarantine that writes nothing and only reports.
    pub(super) fn that_only_tells(store: &Path) -> Self {
        Quarantine { only_tells: true, ..Quarantine::new(store) }
    }

    /// Sets the receiver of all reports, including those so far; returns the number of reports that were dropped.
    pub fn listen(&self, listener: impl Fn(StoreDamage) + Send + 'static) -> u64 {
        let mut state = self.lock();
        state.waiting.drain(..).for_each(&listener);
        state.listener = Some(Box::new(listener));
        state.forgotten
    }

    /// Reports a range of a segment that contains no valid data or is missing.
    pub(super) fn stretch(&self, harm: DamageKind, segment: u32, file: &File, from: u64, to: u64) {
        let name = format!("{segment:08}{BYTES}{from}");
        let kept = match harm {
            DamageKind::Missing => KeptCopy::default(),
            _ => self.keep(&name, to - from, |out| copy(file, from, to, out)),
        };
        if kept.path.is_none() && harm != DamageKind::Missing {
            self.lock().unkept.insert(segment);
        }
        let damage = StoreDamage::new(harm, segment_name(segment), from, to - from, kept.path);
        self.tell(damage, kept.before);
    }

    /// Reports that the end of the store is missing, starting in this segment, with unknown length.
    pub(super) fn end_missing(&self, segment: u32) {
        self.tell(StoreDamage::new(DamageKind::End, segment_name(segment), 0, 0, None), false);
    }

    /// Copies the preamble of a file before it is repaired.
    ///
    /// # Errors
    /// Fails if there is no space for the copy.
    pub(super) fn beginning(&self, name: &str, file: &File) -> io::Result<()> {
        let bytes = PREAMBLE_BYTES as u64;
        let kept = self.keep(&format!("{name}-bytes-0"), bytes, |out| copy(file, 0, bytes, out));
        if kept.path.is_none() {
            let what = "no space for a copy of the damaged data";
            return Err(io::Error::new(io::ErrorKind::StorageFull, what));
        }
        let damage = StoreDamage::new(DamageKind::Preamble, name.to_owned(), 0, bytes, kept.path);
        self.tell(damage, kept.before);
        Ok(())
    }

    /// Reports missing records that cannot be identified.
    pub(super) fn unnamed(&self, records: u64) {
        self.tell(StoreDamage::new(DamageKind::Unnamed, String::new(), 0, records, None), false);
    }

    /// Moves a file that does not belong to the store to the quarantine; returns its new path.
    pub(super) fn stray(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let bytes = fs::metadata(path)?.len();
        let kept = if self.only_tells { None } else { Some(self.put_away(path)?) };
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.tell(StoreDamage::new(DamageKind::Stray, file, 0, bytes, kept.clone()), false);
        Ok(kept)
    }

    /// Removes an obsolete segment, or moves it to the quarantine if there is no copy of its damage.
    pub(super) fn remove_segment(&self, segment: u32, path: &Path) -> io::Result<()> {
        let bytes = fs::metadata(path).map_or(0, |about| about.len());
        let puts_away = {
            let state = self.lock();
            state.unkept.contains(&segment) && state.whole_bytes.saturating_add(bytes) <= WHOLE_BYTES_MAX
        };
        let removed = match puts_away {
            true => self.put_away(path).map(drop),
            false => fs::remove_file(path),
        };
        match removed {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
        self.lock().unkept.remove(&segment);
        Ok(())
    }

    fn put_away(&self, path: &Path) -> io::Result<PathBuf> {
        let bytes = fs::metadata(path)?.len();
        let to = self.move_here(path)?;
        self.lock().whole_bytes += bytes;
        Ok(to)
    }

    fn move_here(&self, path: &Path) -> io::Result<PathBuf> {
        private_files::make_folder_in(&self.folder)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        for number in 1..NUMBERS_MAX {
            let to = self.folder.join(numbered(&name, number));
            match fs::hard_link(path, &to) {
                Ok(()) => {
                    fs::remove_file(path)?;
                    return Ok(to);
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                // The file system has no hard links.
                Err(_) if !to.exists() && path.exists() => return fs::rename(path, &to).map(|()| to),
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Handles a damaged record: copies all of it once, or the damaged part if there is no space for more.
    pub(super) fn record(&self, index: &Mutex<Index>, record: RecordId) {
        // A second caller waits until the copy is made, because its segment may be removed only then.
        let _looks = self.looks.lock().expect("no thread panics while it looks at a record");
        if self.lock().told.contains(&record) {
            return;
        }
        let chunks = chunks(&super::lock_index(index), record);
        let Some((first, _)) = chunks.first() else { return };
        // Both locks are free during the reads.
        let harmed = harmed(&chunks);
        if harmed.is_empty() {
            return;
        }
        {
            let index = super::lock_index(index);
            if !index.records.contains_key(&record) {
                // The record has been removed, and so has all that was known of it.
                return;
            }
            self.lock().told.insert(record);
        }
        let is_harmed = |chunk: &ChunkPlace| harmed.iter().any(|(_, other)| other == chunk);
        let wanted = |whole: bool| {
            let some = chunks.iter().filter(move |(chunk, _)| whole || is_harmed(chunk));
            some.map(|(chunk, file)| (chunk, file, there(chunk, file))).filter(|(_, _, bytes)| *bytes > 0)
        };
        let bytes = |whole| wanted(whole).map(|(_, _, bytes)| bytes).sum::<u64>();
        let whole = self.lock().room(bytes(true));
        let name = format!("{:08}{RECORD}{:x}", first.segment, record.0);
        let kept = match bytes(whole) {
            // Missing data cannot be copied.
            0 => KeptCopy::default(),
            bytes => self.keep(&name, bytes, |out| {
                wanted(whole).try_fold(0, |good, (chunk, file, bytes)| {
                    let from = u64::from(chunk.at) - HEADER_BYTES as u64;
                    Ok(good + copy(file, from, from + bytes, out)?)
                })
            }),
        };
        for (harm, chunk) in harmed {
            let found = chunks.binary_search_by_key(&chunk.offset, |(other, _)| other.offset);
            let is_there = found.is_ok_and(|at| there(&chunk, &chunks[at].1) > 0);
            if kept.path.is_none() && is_there {
                self.lock().unkept.insert(chunk.segment);
            }
            let (file, bytes) = (segment_name(chunk.segment), u64::from(chunk.length));
            let damage = StoreDamage::new(harm, file, u64::from(chunk.at), bytes, kept.path.clone());
            self.tell(StoreDamage { record: Some(record), ..damage }, kept.before);
        }
    }

    /// Forgets a removed record: if its ID is used again, it is reported again.
    pub(super) fn forget(&self, record: RecordId) {
        self.lock().told.remove(&record);
    }

    /// Returns true if no thread holds the state.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.state.try_lock().is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, QuarantineState> {
        self.state.lock().expect("no thread panics while it has the quarantine")
    }

    /// Makes a copy, if there is space and it does not exist yet. `fill` returns the number of readable bytes.
    fn keep(&self, name: &str, bytes: u64, fill: impl Fn(&mut File) -> io::Result<u64>) -> KeptCopy {
        if self.only_tells {
            return KeptCopy::default();
        }
        let kept = (1..NUMBERS_MAX).find_map(|number| {
            let path = self.folder.join(numbered(name, number));
            match fs::metadata(&path) {
                Ok(about) if about.len() == bytes => Some(KeptCopy { path: Some(path), before: true }),
                // A copy of other damage has this name and stays.
                Ok(_) => None,
                Err(_) => {
                    Some(KeptCopy { path: self.make(&path, bytes, &fill).ok().map(|()| path), before: false })
                }
            }
        });
        kept.unwrap_or_default()
    }

    fn make(&self, path: &Path, bytes: u64, fill: &impl Fn(&mut File) -> io::Result<u64>) -> io::Result<()> {
        {
            let mut state = self.lock();
            if !state.room(bytes) {
                return Err(io::ErrorKind::QuotaExceeded.into());
            }
            state.take(bytes);
        }
        let made = private_files::make_folder_in(&self.folder)
            .and_then(|()| private_files::make(private_files::file().create_new(true).write(true), path))
            .and_then(|mut out| match fill(&mut out)? {
                0 => Err(io::Error::other("completely unreadable")),
                _ => out.sync_all(),
            });
        if made.is_err() {
            self.lock().give_back(bytes);
            let _ = fs::remove_file(path);
        }
        made
    }

    /// Reports damage; adds a line to the list unless the copy existed before.
    fn tell(&self, damage: StoreDamage, before: bool) {
        let mut state = self.lock();
        if !before
            && !self.only_tells
            && let Ok(line) = serde_json::to_string(&damage)
        {
            // It is reported in any case.
            let _ = self.note(&line);
        }
        match &state.listener {
            Some(listener) => listener(damage),
            None if state.waiting.len() < WAITING_MAX => state.waiting.push(damage),
            None => state.forgotten += 1,
        }
    }

    fn note(&self, line: &str) -> io::Result<()> {
        private_files::make_folder_in(&self.folder)?;
        let mut list =
            private_files::make(private_files::file().create(true).append(true), &self.folder.join(LIST))?;
        if list.metadata()?.len() < LINES_BYTES_MAX {
            writeln!(list, "{line}")?;
        }
        Ok(())
    }
}

/// Path of a copy.
#[derive(Clone, Debug, Default)]
struct KeptCopy {
    path: Option<PathBuf>,
    /// True if it existed before.
    before: bool,
}

/// Returns a name with its number; the first has none.
fn numbered(name: &str, number: u32) -> String {
    if number == 1 { name.to_owned() } else { format!("{name}-{number}") }
}

impl QuarantineState {
    fn take(&mut self, bytes: u64) {
        self.kept_bytes += bytes;
        self.kept_files += 1;
    }

    fn give_back(&mut self, bytes: u64) {
        self.kept_bytes -= bytes;
        self.kept_files -= 1;
    }

    fn room(&self, bytes: u64) -> bool {
        self.kept_files < KEPT_FILES_MAX && self.kept_bytes.saturating_add(bytes) <= KEPT_BYTES_MAX
    }
}

fn segment_name(segment: u32) -> String {
    format!("{segment:08}.log")
}

/// Returns the bytes of an entry with its header, as far as its file contains them.
fn there(chunk: &ChunkPlace, file: &File) -> u64 {
    if chunk.is_lost() {
        return 0;
    }
    let left = file.metadata().map_or(0, |about| about.len().saturating_sub(u64::from(chunk.at)));
    match left.min(u64::from(chunk.length)) {
        0 => 0,
        data => data + HEADER_BYTES as u64,
    }
}

fn chunks(index: &Index, record: RecordId) -> Vec<(ChunkPlace, Arc<File>)> {
    let found = index.records.get(&record).into_iter().flat_map(|record| record.chunks());
    found.filter_map(|chunk| Some((*chunk, index.segments.get(&chunk.segment)?.file.clone()))).collect()
}

/// Returns true if nothing of a record is left.
pub(super) fn is_gone(index: &Index, record: RecordId) -> bool {
    chunks(index, record).iter().all(|(chunk, file)| there(chunk, file) == 0)
}

/// Returns the damaged chunks and the kind of damage.
fn harmed(chunks: &[(ChunkPlace, Arc<File>)]) -> Vec<(DamageKind, ChunkPlace)> {
    let mut harmed = Vec::new();
    let mut follows = 0;
    for (chunk, file) in chunks {
        if chunk.offset != follows {
            harmed.push((DamageKind::Gap, *chunk));
        }
        follows = chunk.end();
        if chunk.is_lost() {
            harmed.push((DamageKind::Missing, *chunk));
            continue;
        }
        match reading::read_exact(file, chunk.length as usize, u64::from(chunk.at)) {
            Ok(data) if crc32c(&data) == chunk.data_crc => {}
            Ok(_) => harmed.push((DamageKind::Data, *chunk)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                harmed.push((DamageKind::Missing, *chunk))
            }
            Err(_) => harmed.push((DamageKind::Unreadable, *chunk)),
        }
    }
    harmed
}

/// Copies a range of a file, with zeros where it is unreadable; returns the number of readable bytes.
fn copy(file: &File, from: u64, to: u64, out: &mut File) -> io::Result<u64> {
    let mut buffer = vec![0; 64 * 1024];
    let (mut at, mut good) = (from, 0);
    while at < to {
        let some = buffer.len().min(usize::try_from(to - at).unwrap_or(usize::MAX));
        let read = reading::read_around(file, &mut buffer[..some], at)?;
        if read.bytes == 0 {
            break;
        }
        out.write_all(&buffer[..read.bytes])?;
        at += read.bytes as u64;
        good += read.good();
    }
    Ok(good)
}
