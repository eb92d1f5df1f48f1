//! Listing of a segment: copies of its headers in a separate file.
//!
//! ```text
//!   00000007.listing   preamble | mark | header | header | mark | ..      36 bytes each
//! ```
//!
//! The entries of a batch are listed when they are durable, without a sync of the listing: it never claims more than was
//! acknowledged. It identifies the records of a segment even if the segment is lost; a listing that is lost, or incomplete
//! after a power cut, is rewritten from its segment when the store is opened. The length field of a mark is here its offset
//! in the segment.

use super::SEGMENT_BYTES;
use super::device::Device;
use super::frame::{EntryHeader, EntryKind, HEADER_BYTES, PREAMBLE_BYTES, SealKey, StoreFileKind};
use super::reading;
use crate::private_files;
use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

pub(super) fn path(folder: &Path, segment: u32) -> PathBuf {
    folder.join(format!("{segment:08}.listing"))
}

/// Entry and its offset in the segment.
pub(super) type Placed = (u64, EntryHeader);

/// Listing of the active segment, open for appending.
#[derive(Debug)]
pub(super) struct Listing {
    file: File,
    bytes: u64,
}

impl Listing {
    /// Creates a listing.
    pub(super) fn begin(device: &Device, folder: &Path, segment: u32, secret: SealKey) -> io::Result<Self> {
        let path = path(folder, segment);
        let file = private_files::make(private_files::file().create(true).truncate(true).write(true), &path)?;
        let listing = Listing { file, bytes: PREAMBLE_BYTES as u64 };
        match device.append(&listing.file, 0, &mut [IoSlice::new(&secret.preamble(StoreFileKind::Listing))]) {
            Ok(()) => Ok(listing),
            Err(error) => {
                let _ = fs::remove_file(path);
                Err(error)
            }
        }
    }

    pub(super) fn add(&mut self, device: &Device, headers: &[u8]) -> io::Result<()> {
        let added = device.append(&self.file, self.bytes, &mut [IoSlice::new(headers)]);
        match &added {
            Ok(()) => self.bytes += headers.len() as u64,
            // If the partial write cannot be truncated, its complete headers count.
            Err(_) => drop(self.file.set_len(self.bytes)),
        }
        added
    }
}

/// Returns a mark in the form of a listing.
pub(super) fn placed(mark: EntryHeader, at: u64) -> EntryHeader {
    EntryHeader { length: at as u32, ..mark }
}

#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    /// Entries with their offsets in the segment.
    pub(super) entries: Vec<Placed>,
    /// True if all of it was valid.
    pub(super) is_sound: bool,
}

impl Listed {
    pub(super) fn end(&self) -> u64 {
        self.entries.last().map_or(0, |(at, header)| match header.kind {
            // Everything before a mark is durable, but perhaps not the mark itself.
            EntryKind::Batch => *at,
            _ => at + header.entry_bytes(),
        })
    }
}

/// Reads the first bytes of a listing, with zeros in place of unreadable ones: they are no valid headers, and a listing
/// contains nothing that exists nowhere else.
fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = vec![0; file.metadata()?.len().min(most) as usize];
    let read = reading::read_around(&file, &mut bytes, 0)?;
    bytes.truncate(read.bytes);
    Ok(bytes)
}

/// Reads the listing of a segment of this length. What exceeds the headers that the segment can have is damage and is not
/// read; a segment that has lost its end counts with its usual length.
pub(super) fn read(path: &Path, secret: SealKey, segment_bytes: u64) -> io::Result<Listed> {
    let most = segment_bytes.max(SEGMENT_BYTES);
    // One byte more shows that the listing is longer.
    let mut bytes = bytes(path, most.saturating_add(1))?;
    let is_too_long = bytes.len() as u64 > most;
    bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    let preamble = SealKey::of_preamble(StoreFileKind::Listing, &bytes);
    let headers = bytes.get(PREAMBLE_BYTES..).unwrap_or_default();
    let mut listed = Listed { entries: Vec::with_capacity(headers.len() / HEADER_BYTES), is_sound: true };
    listed.is_sound = preamble == Some(secret) && headers.len().is_multiple_of(HEADER_BYTES) && !is_too_long;
    // After a damaged header, offsets are known again from the next mark.
    let mut at = None;
    for header in headers.chunks_exact(HEADER_BYTES).map(|header| EntryHeader::decode(secret, header)) {
        let Some(mut header) = header else {
            listed.is_sound = false;
            at = None;
            continue;
        };
        if header.kind == EntryKind::Batch {
            at = Some(u64::from(core::mem::take(&mut header.length)));
        }
        if let Some(place) = at {
            listed.entries.push((place, header));
            at = Some(place + header.entry_bytes());
        }
    }
    Ok(listed)
}

/// Returns the number of the segment to which a listing belongs, from its marks.
pub(super) fn number(path: &Path, secret: SealKey) -> io::Result<Option<u32>> {
    // The first batch is near the beginning, unless that is damaged.
    const LOOKED_AT_BYTES: u64 = 1 << 20;
    let bytes = bytes(path, LOOKED_AT_BYTES)?;
    let headers = bytes.get(PREAMBLE_BYTES..).unwrap_or_default().chunks_exact(HEADER_BYTES);
    Ok(headers.filter_map(|header| EntryHeader::decode(secret, header)).find_map(|header| header.segment()))
}

/// Writes a complete listing atomically.
pub(super) fn write(
    device: &Device,
    folder: &Path,
    segment: u32,
    secret: SealKey,
    entries: &[Placed],
) -> io::Result<()> {
    let mut out = secret.preamble(StoreFileKind::Listing);
    out.reserve(entries.len() * HEADER_BYTES);
    for (at, header) in entries {
        let header = if header.kind == EntryKind::Batch { placed(*header, *at) } else { *header };
        header.encode(secret, &mut out);
    }
    let (path, part) = (path(folder, segment), folder.join(format!("{segment:08}.listing-part")));
    let written = (|| {
        let file = private_files::make(private_files::file().create(true).truncate(true).write(true), &part)?;
        device.append(&file, 0, &mut [IoSlice::new(&out)])?;
        file.sync_all()?;
        fs::rename(&part, &path)
    })();
    if written.is_err() {
        let _ = fs::remove_file(part);
    }
    written
}
