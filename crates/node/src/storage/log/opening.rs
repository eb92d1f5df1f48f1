//! Opening of a store: it is examined first, and nothing is changed until it is known to be a store that this version
//! understands.
//!
//! Each file begins with a marker, the format and the store's own number. The opening is refused for a file with the marker
//! of another format or the number of another store, and for a folder with files of these names of which none begins
//! correctly. Damage to some of the files is no reason: each of them contains the number, and the marks within contain the
//! rest.

use super::frame::{EntryKind, FileBeginning, PREAMBLE_BYTES, SealKey, StoreFileKind};
use super::index::Index;
use super::listing;
use super::newest::NewestBatch;
use super::quarantine::Quarantine;
use super::reading;
use super::scan::{self, ScanFindings};
use super::{FORMAT, SEGMENT_ENDING, segment_path};
use crate::private_files;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Upper bound of the numbers of files: this number of segments is 512 TiB, so there is always a next number.
const NUMBERS: u32 = 1 << 31;

/// Reason why a store is not opened. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system reports an error.
    #[error(transparent)]
    Device(#[from] io::Error),
    /// The store is in use by another process.
    #[error("in use by another process")]
    InUse,
    /// There is no store, and none is to be created.
    #[error("not found")]
    Missing,
    /// A file has another format: an older or a newer version of Longwire wrote it.
    #[error(
        "{file} was written by {} version of Longwire (format {format}; this version reads format {FORMAT}); nothing was changed",
        if *.format > FORMAT { "a newer" } else { "an older" }
    )]
    OtherFormat {
        /// File name.
        file: String,
        /// Format of the file.
        format: u32,
    },
    /// A file belongs to another store.
    #[error("{file} and {other} belong to different stores; nothing was changed")]
    OtherStore {
        /// File name.
        file: String,
        /// Name of a file of the other store.
        other: String,
    },
    /// The format number in a preamble is damaged: its checksum and the rest of the store show that it was this format.
    #[error("the format number in {file} is damaged; nothing was changed")]
    DamagedFormat {
        /// File name.
        file: String,
    },
    /// The number in a file name is higher than those that a store uses.
    #[error("the number in the name {file} is too high; nothing was changed")]
    NumberTooHigh {
        /// File name.
        file: String,
    },
    /// There are files of these names, but none begins like those of a store.
    #[error("{file} exists, but no file identifies this folder as a store; nothing was changed")]
    Foreign {
        /// Name of one of them.
        file: String,
    },
}

impl OpenError {
    /// Returns advice for the operator.
    pub fn hint(&self) -> &'static str {
        match self {
            OpenError::Device(_) => "set `storage.path` to a writable folder",
            OpenError::InUse => "only one node at a time can use a store",
            OpenError::Missing => "the node creates a store when it starts",
            OpenError::OtherFormat { .. } => "use that version, or set `storage.path` to another folder",
            OpenError::DamagedFormat { .. } => "repair it with `longwire store repair`, which keeps a copy",
            OpenError::OtherStore { .. } => "move the files of one store elsewhere and start again",
            OpenError::NumberTooHigh { .. } => {
                "if it belongs to this store, rename it to a free number below 2000000000; otherwise move it elsewhere; \
                 then start again"
            }
            OpenError::Foreign { .. } => {
                "set `storage.path` to another folder; if this folder is a store, its files are damaged: keep a copy"
            }
        }
    }
}

/// Files of a store, with the numbers in their names. The preamble determines the kind of a file; if it is unreadable, the
/// name does.
#[derive(Debug, Default)]
pub(super) struct StoreFileNames {
    segments: Vec<(u32, PathBuf)>,
    listings: Vec<(u32, PathBuf)>,
    /// Listings that were never finished.
    pub(super) parts: Vec<PathBuf>,
}

impl StoreFileNames {
    /// Returns the highest number of a file.
    pub(super) fn last(&self) -> u32 {
        self.segments.iter().chain(&self.listings).map(|(number, _)| *number).max().unwrap_or(0)
    }

    /// Removes the rights of others to these files; returns the number of files for which that is impossible.
    pub(super) fn close(&self) -> io::Result<u64> {
        let mut files = self.segments.iter().chain(&self.listings);
        files.try_fold(0, |open, (_, path)| Ok(open + u64::from(!private_files::close(path)?)))
    }
}

/// Checks that this version can read the store in a folder, if there is one. Changes nothing, and works while a node has the
/// store open.
///
/// # Errors
/// Fails if the store has another format or the folder contains something else.
pub(crate) fn can_be_read(folder: &Path) -> Result<(), OpenError> {
    match look(folder) {
        Err(OpenError::Device(error)) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        looked => looked.map(drop),
    }
}

/// Examines a folder. Returns no key if there is no store and nothing that prevents creating one.
pub(super) fn look(folder: &Path) -> Result<(StoreFileNames, Option<SealKey>), OpenError> {
    let mut names = StoreFileNames::default();
    let mut files = vec![(None, folder.join("lock"))];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path.file_stem().and_then(OsStr::to_str).and_then(|stem| stem.parse::<u32>().ok());
        let ending = path.extension().and_then(OsStr::to_str);
        if number.is_some_and(|number| number >= NUMBERS)
            && matches!(ending, Some(SEGMENT_ENDING | "listing"))
        {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            return Err(OpenError::NumberTooHigh { file });
        }
        match (number, ending) {
            (Some(number), Some(SEGMENT_ENDING)) => {
                files.push((Some((number, StoreFileKind::Segment)), path))
            }
            (Some(number), Some("listing")) => files.push((Some((number, StoreFileKind::Listing)), path)),
            (Some(_), Some("listing-part")) => names.parts.push(path),
            _ => {}
        }
    }
    // In a fixed order.
    files.sort_by(|(_, one), (_, other)| one.cmp(other));
    let mut known: Option<(SealKey, String)> = None;
    let mut unknown = None;
    let mut other: Option<(String, u32, Option<SealKey>)> = None;
    for (named, path) in files {
        let Some(bytes) = beginning(&path)? else { continue };
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let begins = FileBeginning::of(&bytes);
        match (begins, &known) {
            (FileBeginning::OtherFormat(format), _) => {
                let damaged = damaged_format(&bytes);
                // A file that was written with another format takes precedence over a damaged one.
                if other.as_ref().is_none_or(|(_, _, before)| damaged.is_none() && before.is_some()) {
                    other = Some((file, format, damaged));
                }
            }
            (FileBeginning::Ours(_, secret), Some((other, of))) if secret != *other => {
                return Err(OpenError::OtherStore { file, other: of.clone() });
            }
            (FileBeginning::Ours(_, secret), _) => known = Some((secret, file)),
            // A crash during the creation of the very first file leaves it empty.
            (FileBeginning::Unknown, _) if named.is_none() && bytes.iter().all(|byte| *byte == 0) => {}
            (FileBeginning::Unknown, _) => unknown = unknown.or(Some(file)),
        }
        match (named, begins) {
            (Some((number, _)), FileBeginning::Ours(StoreFileKind::Segment, _))
            | (Some((number, StoreFileKind::Segment)), FileBeginning::Unknown) => {
                names.segments.push((number, path))
            }
            (Some((number, _)), _) => names.listings.push((number, path)),
            (None, _) => {}
        }
    }
    if let Some((file, format, damaged)) = other {
        let is_ours = damaged.is_some() && damaged == known.map(|(secret, _)| secret);
        return Err(if is_ours {
            OpenError::DamagedFormat { file }
        } else {
            OpenError::OtherFormat { file, format }
        });
    }
    match (known, unknown) {
        (Some((secret, _)), _) => Ok((names, Some(secret))),
        (None, Some(file)) => Err(OpenError::Foreign { file }),
        (None, None) => Ok((names, None)),
    }
}

/// Returns the store's number from a file with another format, if its checksum shows that only the format is damaged.
fn damaged_format(bytes: &[u8]) -> Option<SealKey> {
    StoreFileKind::ALL.into_iter().find_map(|made| SealKey::of_preamble(made, &with_format(made, bytes)))
}

/// Returns a preamble with the format of this version.
fn with_format(made: StoreFileKind, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if let Some(marker) = bytes.get_mut(..8) {
        marker.copy_from_slice(&SealKey(0).preamble(made)[..8]);
    }
    bytes
}

/// Repairs damaged format numbers in all files of a store, if at least one file has an intact preamble; keeps a copy of each
/// first. Changes nothing if any file has another format or belongs to another store.
pub(super) fn mend_formats(folder: &Path, quarantine: &Quarantine) -> Result<(), OpenError> {
    while let Err(OpenError::DamagedFormat { file }) = look(folder).map(drop) {
        let path = folder.join(&file);
        let bytes = beginning(&path)?.unwrap_or_default();
        let made = if bytes.starts_with(b"LWLST") { StoreFileKind::Listing } else { StoreFileKind::Segment };
        let opened = File::options().read(true).write(true).open(&path)?;
        quarantine.beginning(&file, &opened)?;
        opened.write_all_at(&with_format(made, &bytes)[..PREAMBLE_BYTES], 0)?;
        opened.sync_all()?;
    }
    Ok(())
}

/// Returns the first bytes of a file, with zeros where the device cannot read them; `None` if there is no such file.
fn beginning(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut bytes = vec![0; PREAMBLE_BYTES];
    let read = reading::read_around(&file, &mut bytes, 0)?;
    bytes.truncate(read.bytes);
    Ok(Some(bytes))
}

/// Segment that exists or existed.
#[derive(Debug)]
pub(super) struct SegmentPart {
    pub(super) path: PathBuf,
    /// File; an empty one for a missing segment.
    pub(super) file: Arc<File>,
    is_there: bool,
    /// Path of the listing.
    listing: Option<PathBuf>,
    /// True if the listing has the correct name.
    is_listed_well: bool,
}

/// Segments by number, and files that are none of them.
#[derive(Debug, Default)]
pub(super) struct SegmentParts {
    pub(super) segments: BTreeMap<u32, SegmentPart>,
    pub(super) strays: Vec<PathBuf>,
}

/// Segment file and the information that determines its number.
struct SegmentCandidate {
    name: u32,
    path: PathBuf,
    /// Number of the segment in its marks.
    number: Option<u32>,
    /// Number of the first batch in it.
    batch: Option<u64>,
    bytes: u64,
}

impl SegmentCandidate {
    fn is_misnamed(&self) -> bool {
        let folder = self.path.parent().unwrap_or(&self.path);
        self.path != segment_path(folder, self.number.unwrap_or(self.name))
    }
}

/// Determines the number of each segment file from its marks, whatever its name is.
pub(super) fn parts(names: &StoreFileNames, secret: SealKey) -> io::Result<SegmentParts> {
    let mut parts = SegmentParts::default();
    for candidate in candidates(names, secret)? {
        let number = candidate.number.unwrap_or(candidate.name);
        if parts.segments.contains_key(&number) {
            parts.strays.push(candidate.path);
            continue;
        }
        let file = Arc::new(File::open(&candidate.path)?);
        parts.segments.insert(number, SegmentPart::new(candidate.path, file, true));
    }
    let mut listings: Vec<(bool, u32, &PathBuf)> = Vec::new();
    for (name, path) in &names.listings {
        let number = listing::number(path, secret)?.unwrap_or(*name);
        let folder = path.parent().unwrap_or(path);
        listings.push((*path != listing::path(folder, number), number, path));
    }
    // Correctly named ones first.
    listings.sort();
    for (misnamed, number, path) in listings {
        let part = match parts.segments.get_mut(&number) {
            Some(part) => part,
            None => {
                // An empty file stands for a missing segment.
                let file = Arc::new(File::open("/dev/null")?);
                let path = segment_path(path.parent().unwrap_or(path), number);
                parts.segments.entry(number).or_insert(SegmentPart::new(path, file, false))
            }
        };
        if misnamed || part.listing.is_some() {
            parts.strays.push(path.clone());
        }
        if part.listing.is_none() {
            part.listing = Some(path.clone());
            part.is_listed_well = !misnamed;
        }
    }
    Ok(parts)
}

impl SegmentPart {
    fn new(path: PathBuf, file: Arc<File>, is_there: bool) -> Self {
        SegmentPart { path, file, is_there, listing: None, is_listed_well: false }
    }
}

impl SegmentParts {
    /// Moves stray files to the quarantine, so that none is in the way of a new file; listings among them still count.
    pub(super) fn put_away(&mut self, quarantine: &Quarantine) -> io::Result<()> {
        for stray in &self.strays {
            let now_at = quarantine.stray(stray)?;
            let listings = self.segments.values_mut().flat_map(|part| &mut part.listing);
            for listing in listings.filter(|listing| *listing == stray) {
                if let Some(now_at) = &now_at {
                    listing.clone_from(now_at);
                }
            }
        }
        Ok(())
    }

    /// Renames segments that have the name of a listing.
    pub(super) fn rename(&mut self, folder: &Path, last: &mut u32) -> io::Result<()> {
        let is_misnamed = |part: &&mut SegmentPart| part.path.extension() != Some(OsStr::new(SEGMENT_ENDING));
        for part in self.segments.values_mut().filter(is_misnamed) {
            *last += 1;
            let path = segment_path(folder, *last);
            fs::rename(&part.path, &path)?;
            part.path = path;
        }
        Ok(())
    }
}

/// Returns all segment files; of those with the same number the authentic one first.
fn candidates(names: &StoreFileNames, secret: SealKey) -> io::Result<Vec<SegmentCandidate>> {
    let mut all = Vec::new();
    for (name, path) in &names.segments {
        let file = File::open(path)?;
        let mark = scan::first_mark(&file, secret)?;
        let (number, batch) = (mark.and_then(|mark| mark.segment()), mark.map(|mark| mark.offset));
        all.push(SegmentCandidate {
            name: *name,
            path: path.clone(),
            number,
            batch,
            bytes: file.metadata()?.len(),
        });
    }
    number_unsaid(&mut all);
    all.sort_by_key(|candidate| {
        (candidate.number.is_none(), candidate.is_misnamed(), core::cmp::Reverse(candidate.bytes))
    });
    Ok(all)
}

/// Earlier versions did not write the number into the marks; there the order of the batches determines it.
fn number_unsaid(all: &mut [SegmentCandidate]) {
    let said: BTreeSet<u32> = all.iter().filter_map(|candidate| candidate.number).collect();
    let is_free = |candidate: &&SegmentCandidate| {
        let unsaid = candidate.number.is_none() && candidate.batch.is_some();
        unsaid || candidate.number.is_some_and(|number| number != candidate.name)
    };
    let free: BTreeSet<u32> = all.iter().filter(is_free).map(|candidate| candidate.name).collect();
    let is_unsaid =
        |candidate: &&mut SegmentCandidate| candidate.number.is_none() && candidate.batch.is_some();
    let mut unsaid: Vec<&mut SegmentCandidate> = all.iter_mut().filter(is_unsaid).collect();
    unsaid.sort_by_key(|candidate| candidate.batch);
    for (candidate, number) in unsaid.into_iter().zip(free.difference(&said)) {
        candidate.number = Some(*number);
    }
}

#[derive(Debug, Default)]
pub(super) struct LoadedStore {
    pub(super) index: Index,
    pub(super) met: ScanFindings,
    /// Segments without any entry.
    pub(super) empty: Vec<u32>,
}

/// Reads all segments, oldest first, and reports damage except that of records, which is in `met`. `newest` is the summary
/// of the newest batch. `mend` receives the entries of segments whose listing is incomplete.
pub(super) fn read(
    parts: SegmentParts,
    secret: SealKey,
    newest: Option<NewestBatch>,
    quarantine: &Quarantine,
    mut mend: impl FnMut(u32, &[listing::Placed]),
) -> io::Result<LoadedStore> {
    let mut found = LoadedStore::default();
    let last = parts.segments.last_key_value().map(|(number, _)| *number);
    for (number, part) in parts.segments {
        let bytes = part.file.metadata()?.len();
        let listed = part.listing.as_deref().map(|path| listing::read(path, secret, bytes)).transpose()?;
        let segment = scan::SegmentToScan {
            number,
            path: part.path,
            file: &part.file,
            listed: listed.as_ref(),
            is_last: Some(number) == last,
            noted: newest.filter(|newest| newest.segment == number),
            is_there: part.is_there,
        };
        let scanned = scan::scan(&mut found.index, segment, secret, quarantine, &mut found.met)?;
        if scanned.is_all && scanned.entries.iter().all(|(_, header)| header.kind == EntryKind::Batch) {
            found.empty.push(number);
        } else if !part.is_listed_well || scanned.differ {
            mend(number, &scanned.entries);
        }
    }
    let (index, met) = (&found.index, &mut found.met);
    met.harmed.retain(|(record, chunk)| index.has(*record, chunk));
    met.harmed.sort_by_key(|(record, _)| *record);
    met.harmed.dedup_by_key(|(record, _)| *record);
    if let Some(newest) = newest.filter(|newest| newest.batch > met.batch) {
        met.unnamed = met.unnamed.max(newest.records.saturating_sub(index.records.len() as u64));
        // A power cut can lose a mark alone, without losing anything acknowledged.
        if newest.batch > met.batch + 1 {
            met.damaged += 1;
            quarantine.end_missing(newest.segment);
        }
        met.batch = newest.batch;
    }
    if met.unnamed > 0 {
        met.damaged += 1;
        quarantine.unnamed(met.unnamed);
    }
    Ok(found)
}
