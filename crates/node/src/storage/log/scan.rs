//! Opening a store: its segments are read, oldest first.
//!
//! Only headers are read, but for what follows the last mark of a batch: a crash may have torn that. None of what follows
//! the first entry of it that is not whole was ever acknowledged, and it is cut off. Damage anywhere else is not a crash's
//! doing: what is behind it is searched for, and nothing but the damaged entry is missed.

use super::frame::{HEADER_BYTES, Header, Kind, PREAMBLE_BYTES, Secret};
use super::index::{Index, chunk_of};
use super::quarantine::{self, Harm, Quarantine};
use longwire_proto::codec::crc::crc32c;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// How much is read at a time.
const WINDOW_BYTES: usize = 64 * 1024;

/// What was met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Met {
    /// Bytes cut off behind the last whole entry.
    pub(super) torn_bytes: u64,
    /// Times that something was damaged, and what is behind it had to be searched for.
    pub(super) damaged: u64,
    /// The highest number of a batch.
    pub(super) batch: u64,
}

/// The secret of a store: its lock file has it, and so has each segment; none if none of them is readable.
pub(super) fn secret(lock: &File, segments: &[(u32, Arc<File>)]) -> Option<Secret> {
    let files = core::iter::once(lock).chain(segments.iter().map(|(_, file)| &**file));
    files.into_iter().find_map(|file| {
        let mut preamble = [0; PREAMBLE_BYTES];
        file.read_exact_at(&mut preamble, 0).ok()?;
        Secret::of_preamble(&preamble)
    })
}

/// A segment to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    pub(super) number: u32,
    pub(super) file: &'a Arc<File>,
    /// No later segment proves that it is whole.
    pub(super) is_last: bool,
}

/// Reads one segment into the index.
pub(super) fn scan(
    index: &mut Index,
    segment: Segment<'_>,
    secret: Secret,
    quarantine: &Quarantine,
    met: &mut Met,
) -> io::Result<()> {
    let Segment { number, file, is_last } = segment;
    let length = file.metadata()?.len();
    let mut window = Window { file, from: 0, bytes: Vec::new() };
    index.add_segment(number, file.clone());
    if Secret::of_preamble(window.at(0, PREAMBLE_BYTES)?) != Some(secret) {
        // Unless it was torn while it was made, that is damage; the other segments have the secret, too.
        if length > PREAMBLE_BYTES as u64 {
            met.damaged += 1;
            quarantine::preamble(quarantine, number, file);
        }
    }
    let (headers, lost) = headers(&mut window, secret, length)?;
    for (from, to) in lost {
        met.damaged += 1;
        quarantine.stretch(Harm::Header, number, file, from, to);
    }
    let doubtful = if is_last {
        headers.iter().rposition(|(_, header)| header.kind == Kind::Batch).unwrap_or(0)
    } else {
        headers.len()
    };
    let mut end = length;
    let mut follows = headers.get(doubtful).map(|(at, _)| *at);
    for (place, (at, header)) in headers.iter().enumerate() {
        let data_at = at + HEADER_BYTES as u64;
        let data_end = data_at + u64::from(header.length);
        if place >= doubtful {
            if follows != Some(*at) || !is_whole(file, header, data_at, length)? {
                end = follows.unwrap_or(*at);
                break;
            }
            follows = Some(data_end);
        }
        match header.kind {
            Kind::Batch => met.batch = met.batch.max(header.offset),
            Kind::Remove => drop(index.remove(header.record)),
            Kind::Data => index.add(header.record, chunk_of(header, number, data_at as u32)),
        }
        if place + 1 == headers.len() && is_last {
            end = data_end;
        }
    }
    if is_last && headers.is_empty() {
        end = PREAMBLE_BYTES as u64;
    }
    if end < length {
        met.torn_bytes += length - end;
        file.set_len(end)?;
        file.sync_all()?;
    }
    index.segments.get_mut(&number).expect("it was just added").bytes = end.min(length);
    Ok(())
}

/// All headers of a segment with their places, and the stretches between them that hold none where one should be.
#[expect(clippy::type_complexity, reason = "two lists of places")]
fn headers(
    window: &mut Window,
    secret: Secret,
    length: u64,
) -> io::Result<(Vec<(u64, Header)>, Vec<(u64, u64)>)> {
    let (mut found, mut lost) = (Vec::new(), Vec::new());
    let mut at = PREAMBLE_BYTES as u64;
    let mut lost_from = None;
    while at < length {
        let bytes = window.at(at, HEADER_BYTES)?;
        if let Some(header) = Header::decode(secret, bytes) {
            // A torn end is no damage: only what is found behind it makes it one.
            lost.extend(lost_from.take().map(|from| (from, at)));
            found.push((at, header));
            at += HEADER_BYTES as u64 + u64::from(header.length);
        } else {
            lost_from.get_or_insert(at);
            let bytes = window.at(at, WINDOW_BYTES)?;
            let skip = Header::search(bytes).unwrap_or_else(|| bytes.len().saturating_sub(3).max(1));
            at += skip as u64;
        }
    }
    Ok((found, lost))
}

fn is_whole(file: &File, header: &Header, data_at: u64, length: u64) -> io::Result<bool> {
    if data_at + u64::from(header.length) > length {
        return Ok(false);
    }
    let mut data = vec![0; header.length as usize];
    file.read_exact_at(&mut data, data_at)?;
    Ok(header.kind != Kind::Data || crc32c(&data) == header.data_crc)
}

/// A part of the file in memory.
struct Window<'a> {
    file: &'a File,
    from: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// What is at a place: so many bytes, or more; fewer at the end of the file.
    fn at(&mut self, at: u64, length: usize) -> io::Result<&[u8]> {
        let inside = at >= self.from && at + length as u64 <= self.from + self.bytes.len() as u64;
        if !inside {
            self.from = at;
            self.bytes.resize(WINDOW_BYTES.max(length), 0);
            let mut have = 0;
            while have < self.bytes.len() {
                match self.file.read_at(&mut self.bytes[have..], at + have as u64) {
                    Ok(0) => break,
                    Ok(read) => have += read,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
            self.bytes.truncate(have);
        }
        Ok(&self.bytes[(at - self.from) as usize..])
    }
}
