//! Reading of a segment together with its listing.
//!
//! Only headers are read, except after the last mark of a batch, where a crash may have interrupted a write. Nothing after
//! the first incomplete entry there was ever acknowledged; it does not count and stays in place. If a power cut has lost
//! that mark, the summary of the newest batch gives the end of the acknowledged data (see [`super::newest`]). Damage
//! anywhere else is not the result of a crash: the scan searches for the next header, and only the damaged entry is missing.
//! The listing has copies of all headers: with it, an entry with a damaged header can still be read, and a missing entry is
//! identified.

use super::frame::{EntryHeader, EntryKind, HEADER_BYTES, PREAMBLE_BYTES, SealKey, StoreFileKind};
use super::index::{ChunkPlace, Index, chunk_of};
use super::listing::{Listed, Placed};
use super::newest::NewestBatch;
use super::quarantine::{DamageKind, Quarantine};
use super::reading;
use longwire_proto::codec::crc::crc32c;
use longwire_proto::service::RecordId;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes read at once.
const WINDOW_BYTES: usize = 64 * 1024;

/// Result of scanning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScanFindings {
    /// Bytes after the last complete entry.
    pub(super) torn_bytes: u64,
    /// Number of damaged places after which the next header had to be searched for.
    pub(super) damaged: u64,
    /// Highest number of a batch.
    pub(super) batch: u64,
    /// Records that existed when the last batch began but that no entry identifies.
    pub(super) unnamed: u64,
    /// Damaged or missing chunks.
    pub(super) harmed: Vec<(RecordId, ChunkPlace)>,
}

#[derive(Clone, Debug)]
pub(super) struct SegmentToScan<'a> {
    pub(super) number: u32,
    pub(super) path: PathBuf,
    pub(super) file: &'a Arc<File>,
    pub(super) listed: Option<&'a Listed>,
    /// True if no later segment proves that it is complete.
    pub(super) is_last: bool,
    /// Summary of the newest batch, if the batch is in this segment.
    pub(super) noted: Option<NewestBatch>,
    /// False if the file is missing.
    pub(super) is_there: bool,
}

/// Entries of a segment and its listing together.
#[derive(Debug)]
pub(super) struct ScannedSegment {
    pub(super) entries: Vec<Placed>,
    /// True if the listing is incomplete.
    pub(super) differ: bool,
    /// True if the segment contains nothing else.
    pub(super) is_all: bool,
}

pub(super) fn first_mark(file: &File, secret: SealKey) -> io::Result<Option<EntryHeader>> {
    let length = file.metadata()?.len();
    let mut headers = Headers::new(file, secret, length);
    while let Some((_, header)) = headers.next()? {
        if header.kind == EntryKind::Batch {
            return Ok(Some(header));
        }
    }
    Ok(None)
}

/// Reads a segment into the index.
pub(super) fn scan(
    index: &mut Index,
    segment: SegmentToScan<'_>,
    secret: SealKey,
    quarantine: &Quarantine,
    met: &mut ScanFindings,
) -> io::Result<ScannedSegment> {
    let SegmentToScan { number, path, file, listed, is_last, noted, is_there } = segment;
    let length = file.metadata()?.len();
    index.add_segment(number, path, file.clone());
    let mut headers = Headers::new(file, secret, length);
    // Except for an interrupted creation this is damage; the other files contain the number, too.
    if length > PREAMBLE_BYTES as u64 && headers.secret()? != Some(secret) {
        met.damaged += 1;
        quarantine.stretch(DamageKind::Preamble, number, file, 0, PREAMBLE_BYTES as u64);
    }
    let mut found = Vec::new();
    while let Some(entry) = headers.next()? {
        found.push(entry);
    }
    let bad = core::mem::take(&mut headers.window.bad);
    let lost = headers.lost();
    let all = MergedEntries::of(found, listed);
    // Everything before this is known to have been durable.
    let mark =
        all.entries.iter().rev().find(|(entry, _)| entry.1.kind == EntryKind::Batch).map(|(entry, _)| entry);
    // A mark of that batch or a later one replaces the summary.
    let noted = noted.filter(|noted| mark.is_none_or(|(_, mark)| mark.offset < noted.batch));
    let known = mark.map_or(0, |(at, _)| *at).max(noted.map_or(0, |noted| noted.end));
    let vouched = match listed {
        Some(listed) => known.max(listed.end()),
        None if is_last => known,
        None => length,
    };
    for (from, to) in lost {
        if from < vouched {
            met.damaged += 1;
            let to = to.min(vouched);
            let is_bad = bad.iter().any(|bad| bad.0 < to && from < bad.1);
            let harm = if is_bad { DamageKind::Unreadable } else { DamageKind::Header };
            quarantine.stretch(harm, number, file, from, to);
        }
    }
    if length < vouched && is_there {
        met.damaged += 1;
        quarantine.stretch(DamageKind::Missing, number, file, length, vouched);
    }
    let mut reading = SegmentReading { index, met, number, file, length, end: vouched };
    let mut entries = Vec::with_capacity(all.entries.len());
    for (entry, from) in all.entries {
        // A listed mark may be missing in the segment after a power cut.
        if entry.0 >= vouched && from == EntrySource::Segment && !reading.is_next(&entry)? {
            break;
        }
        reading.enter(&entry, from)?;
        entries.push(entry);
    }
    let end = reading.end;
    if is_last && end < length {
        met.torn_bytes += length - end.max(PREAMBLE_BYTES as u64).min(length);
    }
    let differ = all.differ || listed.is_none_or(|listed| entries.len() != listed.entries.len());
    let segment = index.segments.get_mut(&number).expect("it was just added");
    segment.bytes = length;
    segment.entries = entries.len() as u64;
    Ok(ScannedSegment { entries, differ, is_all: length <= end.max(PREAMBLE_BYTES as u64) })
}

/// File in which an entry was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EntrySource {
    /// The segment.
    Segment,
    /// Only the listing.
    Listing,
}

/// Entries of a segment and its listing, in order.
struct MergedEntries {
    entries: Vec<(Placed, EntrySource)>,
    /// True if the listing is incomplete or partly invalid.
    differ: bool,
}

impl MergedEntries {
    fn of(found: Vec<Placed>, listed: Option<&Listed>) -> Self {
        let listed_entries = listed.map_or(&[][..], |listed| &listed.entries);
        let mut union = MergedEntries {
            entries: Vec::with_capacity(found.len()),
            differ: listed.is_none_or(|listed| !listed.is_sound),
        };
        let mut listed = listed_entries.iter().peekable();
        // End of the listed entries so far: apparent entries within them are data.
        let mut taken = 0;
        for entry in found {
            while let Some(next) = listed.next_if(|next| next.0 < entry.0) {
                union.entries.push((*next, EntrySource::Listing));
                taken = next.0 + next.1.entry_bytes();
            }
            if let Some(next) = listed.next_if(|next| next.0 == entry.0) {
                taken = next.0 + next.1.entry_bytes();
                union.differ |= *next != entry;
                union.entries.push((entry, EntrySource::Segment));
            } else if entry.0 >= taken {
                union.differ = true;
                union.entries.push((entry, EntrySource::Segment));
            }
        }
        union.entries.extend(listed.map(|next| (*next, EntrySource::Listing)));
        union
    }
}

/// State of a segment during its scan.
struct SegmentReading<'a> {
    index: &'a mut Index,
    met: &'a mut ScanFindings,
    number: u32,
    file: &'a Arc<File>,
    length: u64,
    /// End of the valid entries.
    end: u64,
}

impl SegmentReading<'_> {
    /// Returns true if an entry that nothing confirms is complete and directly follows the valid ones.
    fn is_next(&self, (at, header): &Placed) -> io::Result<bool> {
        Ok(*at == self.end.max(PREAMBLE_BYTES as u64) && self.is_whole(*at, header)?)
    }

    fn is_whole(&self, at: u64, header: &EntryHeader) -> io::Result<bool> {
        if at + header.entry_bytes() > self.length {
            return Ok(false);
        }
        if header.kind != EntryKind::Data {
            return Ok(true);
        }
        // Data that the device cannot read is not complete, and is reported as unreadable when it is examined.
        let data = reading::read_exact(self.file, header.length as usize, at + HEADER_BYTES as u64);
        Ok(data.is_ok_and(|data| crc32c(&data) == header.data_crc))
    }

    fn enter(&mut self, (at, header): &Placed, from: EntrySource) -> io::Result<()> {
        let ends = at + header.entry_bytes();
        self.end = self.end.max(ends);
        let chunk = || chunk_of(header, self.number, (at + HEADER_BYTES as u64) as u32);
        match header.kind {
            EntryKind::Batch => {
                self.met.batch = self.met.batch.max(header.offset);
                let there = self.index.records.len() as u64;
                self.met.unnamed = header.records().map_or(0, |records| records.saturating_sub(there));
            }
            EntryKind::Remove => drop(self.index.remove(header.record)),
            EntryKind::Lost => self.harmed(header.record, chunk()),
            EntryKind::Data
                if ends > self.length || (from == EntrySource::Listing && !self.is_whole(*at, header)?) =>
            {
                self.harmed(header.record, chunk());
            }
            EntryKind::Data => self.index.add(header.record, chunk()),
        }
        Ok(())
    }

    fn harmed(&mut self, record: RecordId, chunk: ChunkPlace) {
        if self.index.add_harmed(record, chunk) {
            self.met.harmed.push((record, chunk));
        }
    }
}

/// Headers of a segment with their offsets, and the ranges between them without a header where one should be.
struct Headers<'a> {
    window: FileWindow<'a>,
    secret: SealKey,
    length: u64,
    at: u64,
    lost_from: Option<u64>,
    lost: Vec<(u64, u64)>,
}

impl<'a> Headers<'a> {
    fn new(file: &'a File, secret: SealKey, length: u64) -> Self {
        let window = FileWindow { file, from: 0, bytes: Vec::new(), bad: Vec::new() };
        Headers { window, secret, length, at: PREAMBLE_BYTES as u64, lost_from: None, lost: Vec::new() }
    }

    /// Returns the number in the preamble.
    fn secret(&mut self) -> io::Result<Option<SealKey>> {
        Ok(SealKey::of_preamble(StoreFileKind::Segment, self.window.at(0, PREAMBLE_BYTES)?))
    }

    fn next(&mut self) -> io::Result<Option<Placed>> {
        while self.at < self.length {
            let bytes = self.window.at(self.at, HEADER_BYTES)?;
            if let Some(header) = EntryHeader::decode(self.secret, bytes) {
                self.lost.extend(self.lost_from.take().map(|from| (from, self.at)));
                let found = (self.at, header);
                self.at += header.entry_bytes();
                return Ok(Some(found));
            }
            self.lost_from.get_or_insert(self.at);
            let bytes = self.window.at(self.at, WINDOW_BYTES)?;
            let skip = EntryHeader::search(bytes).unwrap_or_else(|| bytes.len().saturating_sub(3).max(1));
            self.at += skip as u64;
        }
        Ok(None)
    }

    /// Returns the ranges without headers, after all headers were read.
    fn lost(self) -> Vec<(u64, u64)> {
        let mut lost = self.lost;
        lost.extend(self.lost_from.map(|from| (from, self.length)));
        lost
    }
}

/// Part of the file in memory.
struct FileWindow<'a> {
    file: &'a File,
    from: u64,
    bytes: Vec<u8>,
    /// Unreadable ranges so far (start, end); they contain no entries.
    bad: Vec<(u64, u64)>,
}

impl FileWindow<'_> {
    /// Returns at least this number of bytes at an offset; fewer at the end of the file.
    fn at(&mut self, at: u64, length: usize) -> io::Result<&[u8]> {
        let inside = at >= self.from && at + length as u64 <= self.from + self.bytes.len() as u64;
        if !inside {
            self.from = at;
            self.bytes.resize(WINDOW_BYTES.max(length), 0);
            let read = reading::read_around(self.file, &mut self.bytes, at)?;
            self.bytes.truncate(read.bytes);
            for (from, to) in read.bad {
                // Windows overlap.
                match self.bad.last_mut() {
                    Some(last) if from <= last.1 => last.1 = last.1.max(to),
                    _ => self.bad.push((from, to)),
                }
            }
        }
        Ok(&self.bytes[(at - self.from) as usize..])
    }
}
