//! The listing of a segment: its headers once more, in a file of their own.
//!
//! ```text
//!   00000007.listing   preamble | mark | header | header | mark | ..      36 bytes each
//! ```
//!
//! The entries of a batch are listed once they are durable, without a sync of their own: a listing never says more than was
//! acknowledged. So whatever becomes of a segment, it is known whose data were in it; and a listing that is lost, or
//! lags behind after a power cut, is made anew from its segment when the store is opened. The length of a mark is here its
//! place in the segment.

use super::device::Device;
use super::frame::{EntryHeader, EntryKind, HEADER_BYTES, PREAMBLE_BYTES, SealKey, StoreFileKind};
use super::reading;
use crate::private_files;
use std::fs::{self, File};
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};

/// Where the listing of a segment is.
pub(super) fn path(folder: &Path, segment: u32) -> PathBuf {
    folder.join(format!("{segment:08}.listing"))
}

/// An entry and its place in the segment.
pub(super) type Placed = (u64, EntryHeader);

/// The listing of the segment that is written, at its end.
#[derive(Debug)]
pub(super) struct Listing {
    file: File,
    bytes: u64,
}

impl Listing {
    /// Makes a new one.
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

    /// Adds encoded headers.
    pub(super) fn add(&mut self, device: &Device, headers: &[u8]) -> io::Result<()> {
        let added = device.append(&self.file, self.bytes, &mut [IoSlice::new(headers)]);
        match &added {
            Ok(()) => self.bytes += headers.len() as u64,
            // The part of it that cannot be cut off counts as far as it is whole.
            Err(_) => drop(self.file.set_len(self.bytes)),
        }
        added
    }
}

/// A mark as it stands in a listing.
pub(super) fn placed(mark: EntryHeader, at: u64) -> EntryHeader {
    EntryHeader { length: at as u32, ..mark }
}

/// The content of a listing.
#[derive(Clone, Debug, Default)]
pub(super) struct Listed {
    /// Its entries, each with its place in the segment.
    pub(super) entries: Vec<Placed>,
    /// All of it made sense.
    pub(super) is_sound: bool,
}

impl Listed {
    /// Where the last of its entries ends.
    pub(super) fn end(&self) -> u64 {
        self.entries.last().map_or(0, |(at, header)| match header.kind {
            // Everything before a mark is durable, and the mark itself perhaps not.
            EntryKind::Batch => *at,
            _ => at + header.entry_bytes(),
        })
    }
}

/// The first bytes of a listing. It has nothing that is nowhere else: places that the device cannot read are zeros, and make no
/// sense.
fn bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    let mut bytes = vec![0; file.metadata()?.len().min(most) as usize];
    let read = reading::read_around(&file, &mut bytes, 0)?;
    bytes.truncate(read.bytes);
    Ok(bytes)
}

/// Reads a listing, as far as it makes sense.
pub(super) fn read(path: &Path, secret: SealKey) -> io::Result<Listed> {
    let bytes = bytes(path, u64::MAX)?;
    let preamble = SealKey::of_preamble(StoreFileKind::Listing, &bytes);
    let headers = bytes.get(PREAMBLE_BYTES..).unwrap_or_default();
    let mut listed = Listed { entries: Vec::with_capacity(headers.len() / HEADER_BYTES), is_sound: true };
    listed.is_sound = preamble == Some(secret) && headers.len().is_multiple_of(HEADER_BYTES);
    // Behind one that is damaged places are known again from the next mark on.
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

/// The number of the segment that a listing is of, as its marks have it.
pub(super) fn number(path: &Path, secret: SealKey) -> io::Result<Option<u32>> {
    // The first batch is near its beginning, unless that is damaged.
    const LOOKED_AT_BYTES: u64 = 1 << 20;
    let bytes = bytes(path, LOOKED_AT_BYTES)?;
    let headers = bytes.get(PREAMBLE_BYTES..).unwrap_or_default().chunks_exact(HEADER_BYTES);
    Ok(headers.filter_map(|header| EntryHeader::decode(secret, header)).find_map(|header| header.segment()))
}

/// Writes a listing anew, whole or not at all.
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
