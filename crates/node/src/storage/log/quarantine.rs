//! What is damaged is set aside, told, and takes nothing else with it.
//!
//! ```text
//!   damaged/00000007-record-10000000002a     the entries of a record, as they lie in their segments
//!   damaged/00000007-bytes-1048576           what stands where an entry's header should be
//!   damaged/00000007.log                     a whole file: one of a name or number too many, or a segment at its end
//!                                            of which something damaged had no space here
//!   damaged/list.jsonl                       one line each: where, why, and what was kept
//! ```
//!
//! Units: bytes. Limits: copies take 64 MiB in 1,024 files, and lines 16 MiB; damage beyond that is told and not copied. A
//! segment with such damage comes here as it is, when it would have gone, as long as whole files take 256 MiB.

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
/// Whole files, beside the copies.
const WHOLE_BYTES_MAX: u64 = 256 << 20;
const LINES_BYTES_MAX: u64 = 16 << 20;
/// Damage that is remembered until somebody listens.
pub(crate) const WAITING_MAX: usize = 4096;
/// Parts of the names of copies.
const RECORD: &str = "-record-";
const BYTES: &str = "-bytes-";
/// Where the lines are.
const LIST: &str = "list.jsonl";
/// Files of one name that get a number.
const NUMBERS_MAX: u32 = 1000;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DamageKind {
    /// The beginning of a segment.
    Preamble,
    /// The header of an entry: whose it was is not known.
    Header,
    /// The checksum of an entry's data does not fit.
    Data,
    /// The device cannot read an entry.
    Unreadable,
    /// Bytes that were durable are not there: the file is gone, or too short.
    Missing,
    /// Batches that were durable at the end are not there.
    End,
    /// Records are not there, and nothing says whose they were: so many, by the count that each batch has.
    Unnamed,
    /// A file that is there twice, or under the name of another.
    Stray,
    /// An entry in the middle of a record is missing.
    Gap,
}

/// Something damaged that was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoreDamage {
    /// What is wrong.
    pub harm: DamageKind,
    /// Whose data they are, as far as that is known.
    pub record: Option<RecordId>,
    /// The file.
    pub file: String,
    /// Where in the file, bytes.
    pub at: u64,
    /// How much, bytes; of what is unnamed, how many records.
    pub bytes: u64,
    /// Where it is kept now; none: there was no space, or it cannot be read at all.
    pub kept: Option<PathBuf>,
}

impl core::fmt::Display for StoreDamage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let what = match self.harm {
            DamageKind::Preamble => "the beginning of a segment is damaged",
            DamageKind::Header => "the header of an entry is damaged",
            DamageKind::Data => "data do not fit their checksum",
            DamageKind::Unreadable => "data cannot be read",
            DamageKind::Missing => "what was stored is missing",
            DamageKind::Gap => "data are missing in the middle of a record",
            DamageKind::End => {
                return write!(
                    f,
                    "the newest of what was stored is missing, from somewhere in {} on",
                    self.file
                );
            }
            DamageKind::Stray => "a file that is there twice, or under the name of another",
            DamageKind::Unnamed => {
                return write!(f, "{} records are missing, and nothing says whose they were", self.bytes);
            }
        };
        write!(f, "{what}: {} bytes at {} of {}", self.bytes, self.at, self.file)?;
        if let Some(record) = self.record {
            write!(f, ", record {:x}", record.0)?;
        }
        match &self.kept {
            Some(path) => write!(f, "; kept in {}", path.display()),
            None => f.write_str("; not kept"),
        }
    }
}

/// Who is told of damage.
type DamageListener = Box<dyn Fn(StoreDamage) + Send>;

/// The place for what is damaged.
pub struct Quarantine {
    folder: PathBuf,
    /// Nothing is changed: damage is told, and that is all.
    only_tells: bool,
    /// Held while a record is looked at, which may take a while. The engines' task waits for the state, and never for this.
    looks: Mutex<()>,
    state: Mutex<QuarantineState>,
}

#[derive(Default)]
struct QuarantineState {
    /// Records that were told already.
    told: BTreeSet<RecordId>,
    kept_bytes: u64,
    kept_files: usize,
    /// Of files that were put away whole.
    whole_bytes: u64,
    waiting: Vec<StoreDamage>,
    /// Damage that was too much to be remembered until somebody listens.
    forgotten: u64,
    /// Segments with damage that is not kept anywhere else.
    unkept: BTreeSet<u32>,
    listener: Option<DamageListener>,
}

impl core::fmt::Debug for Quarantine {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Quarantine").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Quarantine {
    /// For a store in this folder. It makes nothing before there is damage.
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

    /// One that makes nothing, and only tells.
    pub(super) fn that_only_tells(store: &Path) -> Self {
        Quarantine { only_tells: true, ..Quarantine::new(store) }
    }

    /// Tells of all damage from now on, and of what was met so far; of how much of that it can tell no more.
    pub fn listen(&self, listener: impl Fn(StoreDamage) + Send + 'static) -> u64 {
        let mut state = self.lock();
        state.waiting.drain(..).for_each(&listener);
        state.listener = Some(Box::new(listener));
        state.forgotten
    }

    /// A stretch of a segment holds nothing that makes sense, or is not there.
    pub(super) fn stretch(&self, harm: DamageKind, segment: u32, file: &File, from: u64, to: u64) {
        let name = format!("{segment:08}{BYTES}{from}");
        let kept = match harm {
            DamageKind::Missing => KeptCopy::default(),
            _ => self.keep(&name, to - from, |out| copy(file, from, to, out)),
        };
        if kept.path.is_none() && harm != DamageKind::Missing {
            self.lock().unkept.insert(segment);
        }
        let file = segment_name(segment);
        self.tell(
            StoreDamage { harm, record: None, file, at: from, bytes: to - from, kept: kept.path },
            kept.before,
        );
    }

    /// The end of the store is missing, from somewhere in this segment on: nothing says how much of it.
    pub(super) fn end_missing(&self, segment: u32) {
        let file = segment_name(segment);
        let damage = StoreDamage { harm: DamageKind::End, record: None, file, at: 0, bytes: 0, kept: None };
        self.tell(damage, false);
    }

    /// Keeps the beginning of a file before it is put right.
    ///
    /// # Errors
    /// There is no space for it.
    pub(super) fn beginning(&self, name: &str, file: &File) -> io::Result<()> {
        let bytes = PREAMBLE_BYTES as u64;
        let kept = self.keep(&format!("{name}-bytes-0"), bytes, |out| copy(file, 0, bytes, out));
        if kept.path.is_none() {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                "there is no space to keep what is damaged",
            ));
        }
        let (harm, file) = (DamageKind::Preamble, name.to_owned());
        let damage = StoreDamage { harm, record: None, file, at: 0, bytes, kept: kept.path };
        self.tell(damage, kept.before);
        Ok(())
    }

    /// This number of records is missing, and nothing says which.
    pub(super) fn unnamed(&self, records: u64) {
        let damage = StoreDamage {
            harm: DamageKind::Unnamed,
            record: None,
            file: String::new(),
            at: 0,
            bytes: records,
            kept: None,
        };
        self.tell(damage, false);
    }

    /// A file that has no place in the store is put away, as it is; where it is then.
    pub(super) fn stray(&self, path: &Path) -> io::Result<Option<PathBuf>> {
        let bytes = fs::metadata(path)?.len();
        let kept = if self.only_tells { None } else { Some(self.put_away(path)?) };
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let damage =
            StoreDamage { harm: DamageKind::Stray, record: None, file, at: 0, bytes, kept: kept.clone() };
        self.tell(damage, false);
        Ok(kept)
    }

    /// Removes a segment that is no longer needed, or puts it away: damage of it may be kept nowhere else.
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
                // A file system without links.
                Err(_) if !to.exists() && path.exists() => return fs::rename(path, &to).map(|()| to),
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// A part of a record is damaged. All of the record is set aside, once; or as much as there is space for.
    pub(super) fn record(&self, index: &Mutex<Index>, record: RecordId) {
        // A second caller waits until it is kept: perhaps only then its segment may go.
        let _looks = self.looks.lock().expect("no thread panics while it looks at a record");
        if self.lock().told.contains(&record) {
            return;
        }
        let chunks = chunks(&super::lock_index(index), record);
        let Some((first, _)) = chunks.first() else { return };
        // Both locks are free while it is read.
        let harmed = harmed(&chunks);
        if harmed.is_empty() {
            return;
        }
        {
            let index = super::lock_index(index);
            if !index.records.contains_key(&record) {
                // It is gone meanwhile, and so is all that was known of it.
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
            // Of what is not there nothing can be kept.
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
            let at = u64::from(chunk.at);
            let kept_at = kept.path.clone();
            let damage = StoreDamage { harm, record: Some(record), file, at, bytes, kept: kept_at };
            self.tell(damage, kept.before);
        }
    }

    /// A record is gone: should its id ever come back, it is told anew.
    pub(super) fn forget(&self, record: RecordId) {
        self.lock().told.remove(&record);
    }

    /// Nobody has it.
    #[cfg(test)]
    pub(super) fn is_free(&self) -> bool {
        self.state.try_lock().is_ok()
    }

    fn lock(&self) -> MutexGuard<'_, QuarantineState> {
        self.state.lock().expect("no thread panics while it has the quarantine")
    }

    /// Keeps a copy, if there is space and it is not there yet. `fill` says how much of it could be read.
    fn keep(&self, name: &str, bytes: u64, fill: impl Fn(&mut File) -> io::Result<u64>) -> KeptCopy {
        if self.only_tells {
            return KeptCopy::default();
        }
        let kept = (1..NUMBERS_MAX).find_map(|number| {
            let path = self.folder.join(numbered(name, number));
            match fs::metadata(&path) {
                Ok(about) if about.len() == bytes => Some(KeptCopy { path: Some(path), before: true }),
                // Other damage had this name: it stays.
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
                0 => Err(io::Error::other("nothing of it can be read")),
                _ => out.sync_all(),
            });
        if made.is_err() {
            self.lock().give_back(bytes);
            let _ = fs::remove_file(path);
        }
        made
    }

    /// Tells of damage; what was kept before has its line, too.
    fn tell(&self, damage: StoreDamage, before: bool) {
        let mut state = self.lock();
        if !before
            && !self.only_tells
            && let Ok(line) = serde_json::to_string(&damage)
        {
            // Told it is in any case.
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

/// Where a copy is.
#[derive(Clone, Debug, Default)]
struct KeptCopy {
    path: Option<PathBuf>,
    /// It was there already.
    before: bool,
}

/// The first of a name is plain.
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

/// Bytes of an entry with its header, as far as its file has them.
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
    let found = index.records.get(&record).into_iter().flat_map(|record| &record.chunks);
    found.filter_map(|chunk| Some((*chunk, index.segments.get(&chunk.segment)?.file.clone()))).collect()
}

/// Nothing of a record is left.
pub(super) fn is_gone(index: &Index, record: RecordId) -> bool {
    chunks(index, record).iter().all(|(chunk, file)| there(chunk, file) == 0)
}

/// What is wrong with which chunks.
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
        let mut data = vec![0; chunk.length as usize];
        match reading::read_exact(file, &mut data, u64::from(chunk.at)) {
            Ok(()) if crc32c(&data) == chunk.data_crc => {}
            Ok(()) => harmed.push((DamageKind::Data, *chunk)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                harmed.push((DamageKind::Missing, *chunk))
            }
            Err(_) => harmed.push((DamageKind::Unreadable, *chunk)),
        }
    }
    harmed
}

/// Copies a stretch of a file, with zeros where it cannot be read; how much of it could be.
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

/// The beginning of a segment is not what it should be.
pub(super) fn preamble(quarantine: &Quarantine, segment: u32, file: &File) {
    quarantine.stretch(DamageKind::Preamble, segment, file, 0, PREAMBLE_BYTES as u64);
}
