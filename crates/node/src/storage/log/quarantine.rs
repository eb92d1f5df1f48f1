//! What is damaged is set aside, told, and takes nothing else with it.
//!
//! ```text
//!   damaged/00000007-record-10000000002a     the entries of a record, as they lie in their segments
//!   damaged/00000007-bytes-1048576           what stands where an entry's header should be
//!   damaged/list.jsonl                       one line each: where, why, and what was kept
//! ```
//!
//! Units: bytes. Limits: 64 MiB and 1,024 files are kept, and 1 MiB of lines; damage beyond that is told and not kept.

use super::frame::{HEADER_BYTES, PREAMBLE_BYTES};
use super::index::{Chunk, Index};
use longwire_proto::codec::crc::crc32c;
use longwire_proto::service::RecordId;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

const KEPT_BYTES_MAX: u64 = 64 << 20;
const KEPT_FILES_MAX: usize = 1024;
const LINES_BYTES_MAX: u64 = 1 << 20;
/// Damage that is remembered until somebody listens.
const WAITING_MAX: usize = 1024;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Harm {
    /// The beginning of a segment.
    Preamble,
    /// The header of an entry: whose it was is not known.
    Header,
    /// The checksum of an entry's data does not fit.
    Data,
    /// The device cannot read an entry, or its file is too short.
    Unreadable,
    /// An entry in the middle of a record is missing.
    Gap,
}

/// Something damaged that was met.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// What is wrong.
    pub harm: Harm,
    /// Whose data they are, as far as that is known.
    pub record: Option<RecordId>,
    /// The file.
    pub file: String,
    /// Where in the file, bytes.
    pub at: u64,
    /// How much, bytes.
    pub bytes: u64,
    /// Where it is kept now; none: there was no space, or it cannot be read at all.
    pub kept: Option<PathBuf>,
}

impl core::fmt::Display for Damage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let what = match self.harm {
            Harm::Preamble => "the beginning of a segment is damaged",
            Harm::Header => "the header of an entry is damaged",
            Harm::Data => "data do not fit their checksum",
            Harm::Unreadable => "data cannot be read",
            Harm::Gap => "data are missing in the middle of a record",
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
type Listener = Box<dyn Fn(Damage) + Send>;

/// The place for what is damaged.
pub struct Quarantine {
    folder: PathBuf,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Records that were told already.
    told: BTreeSet<RecordId>,
    kept_bytes: u64,
    kept_files: usize,
    waiting: Vec<Damage>,
    listener: Option<Listener>,
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
        let mut state = State::default();
        for about in fs::read_dir(&folder).into_iter().flatten().flatten().flat_map(|entry| entry.metadata())
        {
            state.kept_bytes += about.len();
            state.kept_files += 1;
        }
        Quarantine { folder, state: Mutex::new(state) }
    }

    /// Tells of all damage from now on, and of what was met so far.
    pub fn listen(&self, listener: impl Fn(Damage) + Send + 'static) {
        let mut state = self.lock();
        state.waiting.drain(..).for_each(&listener);
        state.listener = Some(Box::new(listener));
    }

    /// A stretch of a segment holds nothing that makes sense.
    pub(super) fn stretch(&self, harm: Harm, segment: u32, file: &File, from: u64, to: u64) {
        let mut state = self.lock();
        let kept = state.room(to - from).then(|| {
            let path = self.folder.join(format!("{segment:08}-bytes-{from}"));
            self.keep(&mut state, &path, |out| copy(file, from, to, out)).map(|()| path)
        });
        let kept = kept.and_then(Result::ok);
        let file = segment_name(segment);
        self.tell(&mut state, Damage { harm, record: None, file, at: from, bytes: to - from, kept });
    }

    /// A part of a record is damaged. All of the record is set aside, once; or as much as there is space for.
    pub(super) fn record(&self, index: &Mutex<Index>, record: RecordId) {
        let chunks = chunks(&super::lock(index), record);
        let mut state = self.lock();
        let Some((first, _)) = chunks.first() else { return };
        if !state.told.insert(record) {
            return;
        }
        let all: u64 = chunks.iter().map(|(chunk, _)| entry_bytes(chunk)).sum();
        let harmed = harmed(&chunks);
        let wanted = |chunk: &Chunk, whole: bool| whole || harmed.iter().any(|(_, at)| at == chunk);
        let whole = state.room(all);
        let path = self.folder.join(format!("{:08}-record-{:x}", first.segment, record.0));
        let some: u64 = chunks
            .iter()
            .filter(|(chunk, _)| wanted(chunk, whole))
            .map(|(chunk, _)| entry_bytes(chunk))
            .sum();
        let kept = state.room(some).then(|| {
            self.keep(&mut state, &path, |out| {
                for (chunk, file) in chunks.iter().filter(|(chunk, _)| wanted(chunk, whole)) {
                    let from = u64::from(chunk.at) - HEADER_BYTES as u64;
                    // What cannot be read is missing in the copy, and nothing else.
                    let _ = copy(file, from, from + entry_bytes(chunk), out);
                }
                Ok(())
            })
        });
        let kept = kept.and_then(Result::ok).map(|()| path);
        for (harm, chunk) in harmed {
            let (file, bytes) = (segment_name(chunk.segment), u64::from(chunk.length));
            let at = u64::from(chunk.at);
            let damage = Damage { harm, record: Some(record), file, at, bytes, kept: kept.clone() };
            self.tell(&mut state, damage);
        }
    }

    /// A record is gone: should its id ever come back, it is told anew.
    pub(super) fn forget(&self, record: RecordId) {
        self.lock().told.remove(&record);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics while it has the quarantine")
    }

    fn keep(
        &self,
        state: &mut State,
        path: &Path,
        fill: impl FnOnce(&mut File) -> io::Result<()>,
    ) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let made = File::create(path).and_then(|mut out| {
            fill(&mut out)?;
            out.sync_all()?;
            out.metadata()
        });
        match made {
            Ok(about) => {
                state.kept_bytes += about.len();
                state.kept_files += 1;
                Ok(())
            }
            Err(error) => {
                let _ = fs::remove_file(path);
                Err(error)
            }
        }
    }

    fn tell(&self, state: &mut State, damage: Damage) {
        if let Ok(line) = serde_json::to_string(&damage) {
            // Told it is in any case.
            let _ = self.note(&line);
        }
        match &state.listener {
            Some(listener) => listener(damage),
            None if state.waiting.len() < WAITING_MAX => state.waiting.push(damage),
            None => {}
        }
    }

    fn note(&self, line: &str) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let mut list = OpenOptions::new().create(true).append(true).open(self.folder.join("list.jsonl"))?;
        if list.metadata()?.len() < LINES_BYTES_MAX {
            writeln!(list, "{line}")?;
        }
        Ok(())
    }
}

impl State {
    fn room(&self, bytes: u64) -> bool {
        self.kept_files < KEPT_FILES_MAX && self.kept_bytes.saturating_add(bytes) <= KEPT_BYTES_MAX
    }
}

fn segment_name(segment: u32) -> String {
    format!("{segment:08}.log")
}

/// Bytes of an entry with its header.
fn entry_bytes(chunk: &Chunk) -> u64 {
    HEADER_BYTES as u64 + u64::from(chunk.length)
}

fn chunks(index: &Index, record: RecordId) -> Vec<(Chunk, Arc<File>)> {
    let found = index.records.get(&record).into_iter().flat_map(|record| &record.chunks);
    found.filter_map(|chunk| Some((*chunk, index.segments.get(&chunk.segment)?.file.clone()))).collect()
}

/// What is wrong with which chunks.
fn harmed(chunks: &[(Chunk, Arc<File>)]) -> Vec<(Harm, Chunk)> {
    let mut harmed = Vec::new();
    let mut follows = 0;
    for (chunk, file) in chunks {
        if chunk.offset != follows {
            harmed.push((Harm::Gap, *chunk));
        }
        follows = chunk.end();
        let mut data = vec![0; chunk.length as usize];
        match file.read_exact_at(&mut data, u64::from(chunk.at)) {
            Ok(()) if crc32c(&data) == chunk.data_crc => {}
            Ok(()) => harmed.push((Harm::Data, *chunk)),
            Err(_) => harmed.push((Harm::Unreadable, *chunk)),
        }
    }
    harmed
}

fn copy(file: &File, from: u64, to: u64, out: &mut File) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut at = from;
    while at < to {
        let some = buffer.len().min(usize::try_from(to - at).unwrap_or(usize::MAX));
        match file.read_at(&mut buffer[..some], at)? {
            0 => break,
            read => {
                out.write_all(&buffer[..read])?;
                at += read as u64;
            }
        }
    }
    Ok(())
}

/// The beginning of a segment is not what it should be.
pub(super) fn preamble(quarantine: &Quarantine, segment: u32, file: &File) {
    quarantine.stretch(Harm::Preamble, segment, file, 0, PREAMBLE_BYTES as u64);
}
