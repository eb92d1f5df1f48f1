//! File that is being received: which ranges are missing, and which of them a STATUS still has to list.

use super::config::Config;
use super::wire::{Checksum, Data, Metadata, Outcome, Stamp, Status, Width};
use crate::codec::crc::{crc32c, crc32c_part};
use crate::ranges::Ranges;
use crate::service::{FileId, FileProperties, PartialFile, Wish};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Bytes in memory that each hole counts, and each piece besides its content.
const OVERHEAD_BYTES: u64 = 128;

/// Phase of a file to receive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The peer is asked for the file.
    Asking { path: String, wish: Wish },
    /// The METADATA is unknown.
    Unnamed,
    /// The user is asked whether it accepts the file.
    Offered,
    /// It is received.
    Receiving,
}

/// Effect of a DATA packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataEffect {
    /// The packet had this number of new bytes.
    New(u64),
    /// The packet had no new bytes.
    Duplicate,
    /// The packet contradicts the file.
    Invalid,
    /// The file ends elsewhere than its METADATA says.
    WrongEnd,
    /// A limit is reached.
    Dropped,
}

/// File that is being received.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) file: FileId,
    pub(super) id: u32,
    pub(super) phase: Phase,
    pub(super) metadata: Option<Metadata>,
    /// The peer has answered the REQUEST.
    pub(super) was_answered: bool,
    /// Content that was stored in an earlier transfer, until the METADATA is known.
    pub(super) offered_partial: Option<PartialFile>,
    width: Width,
    /// Offset of the end of the file, from METADATA or DATA.
    length: Option<u64>,
    /// A packet has marked the end of the file.
    end_was_seen: bool,
    /// Packets that wait until the user accepts the file.
    early: BTreeMap<u64, Bytes>,
    /// Highest end of these packets, which may overlap.
    early_end: u64,
    /// End of the last byte that was received.
    seen_to: u64,
    missing: Ranges,
    stored: Ranges,
    /// Pieces that are not stored completely: beginning and end.
    pieces: BTreeMap<u64, u64>,
    /// Bytes of these pieces, and of the packets that wait, with their overhead.
    held: u64,
    sum: u32,
    /// Missing ranges that the next STATUS lists.
    unreported: Ranges,
    /// Missing ranges that a STATUS has listed, with the time at which packets for them are late.
    awaited: VecDeque<(Instant, u64, u64)>,
    /// Stamp and end of the last DATA packet that requested a STATUS.
    requested: Option<(Option<Stamp>, u64)>,
    /// Stamp of the DATA packet with the highest offset.
    last_stamp: Option<Stamp>,
    /// A STATUS waits to leave.
    pub(super) status_is_queued: bool,
    /// A STATUS has left.
    status_was_sent: Option<Instant>,
    pub(super) status_at: Option<Instant>,
    /// Time at which the answer to a REQUEST is late.
    pub(super) answer_at: Option<Instant>,
    pub(super) inactive_at: Option<Instant>,
    /// Copy of the deadline.
    pub(super) deadline: Option<Instant>,
}

impl Incoming {
    pub(super) fn new(file: FileId, id: u32, phase: Phase) -> Self {
        Incoming {
            file,
            id,
            phase,
            metadata: None,
            was_answered: false,
            offered_partial: None,
            width: Width::Bits16,
            length: None,
            end_was_seen: false,
            early: BTreeMap::new(),
            early_end: 0,
            seen_to: 0,
            missing: Ranges::new(),
            stored: Ranges::new(),
            pieces: BTreeMap::new(),
            held: 0,
            sum: 0,
            unreported: Ranges::new(),
            awaited: VecDeque::new(),
            requested: None,
            last_stamp: None,
            status_is_queued: false,
            status_was_sent: None,
            status_at: None,
            answer_at: None,
            inactive_at: None,
            deadline: None,
        }
    }

    /// Returns the number of bytes in memory that count against the limit.
    pub(super) fn held(&self) -> u64 {
        self.held + OVERHEAD_BYTES * self.missing.len() as u64
    }

    /// Returns the properties; `None` before the METADATA.
    pub(super) fn properties(&self) -> Option<FileProperties> {
        self.metadata.as_ref().map(properties_of)
    }

    /// Sets the METADATA. Returns false if it contradicts what was received.
    pub(super) fn name(&mut self, metadata: Metadata) -> bool {
        let length = metadata.entry.size as u64;
        let fits = self.length.is_none_or(|end| end == length) && self.early_end.max(self.seen_to) <= length;
        self.width = metadata.width.max(Width::of(length.into()));
        self.length = Some(length);
        self.metadata = Some(metadata);
        fits
    }

    /// Begins the reception of the file; `bytes_max` more bytes may be held. Returns the pieces that have waited for it, and
    /// the number of packets that are dropped because of the holes between them.
    pub(super) fn begin(
        &mut self,
        held: Option<PartialFile>,
        bytes_max: u64,
        config: &Config,
    ) -> (Vec<(u64, Bytes)>, u64) {
        let bytes_max = bytes_max + core::mem::take(&mut self.held);
        self.phase = Phase::Receiving;
        let properties = self.properties();
        // The memory for its holes is that which is not reserved; otherwise the file begins anew.
        let holes_max = bytes_max.saturating_sub(config.incoming_reserve()) / OVERHEAD_BYTES;
        let fits = |partial: &PartialFile| partial.missing.len() as u64 <= holes_max;
        let held = held.filter(|partial| Some(&partial.properties) == properties.as_ref());
        if let Some(partial) = held.filter(fits) {
            self.restore(&partial);
        }
        let early = core::mem::take(&mut self.early);
        let end = self.length.filter(|_| self.end_was_seen).map(|end| (end, Bytes::new()));
        let (mut risen, mut dropped) = (Vec::new(), 0);
        for (offset, data) in early.into_iter().chain(end) {
            let left = bytes_max.saturating_sub(self.held());
            let effect = self.take(offset, &data, left, config, &mut risen);
            dropped += u64::from(effect == DataEffect::Dropped);
        }
        (risen, dropped)
    }

    /// Restores what was stored in an earlier transfer.
    pub(super) fn restore(&mut self, partial: &PartialFile) {
        self.seen_to = partial.up_to;
        self.stored.insert(0, partial.up_to);
        for (start, end) in &partial.missing {
            self.missing.insert(*start, *end);
            self.unreported.insert(*start, *end);
            self.stored.remove(*start, *end);
        }
        self.sum = partial.sum;
    }

    /// Returns what was received up to now, with which the transfer continues later.
    pub(super) fn partial(&self) -> Option<PartialFile> {
        let properties = self.properties().filter(|_| self.phase == Phase::Receiving)?;
        let missing = self.missing.iter().collect();
        Some(PartialFile { properties, up_to: self.seen_to, missing, sum: self.sum })
    }

    /// Processes a DATA packet; `bytes_max` more bytes may be held. New bytes are appended to `risen`.
    pub(super) fn hear(
        &mut self,
        data: &Data,
        bytes_max: u64,
        config: &Config,
        risen: &mut Vec<(u64, Bytes)>,
    ) -> DataEffect {
        let length = data.payload.len() as u64;
        let Some((offset, end)) =
            u64::try_from(data.offset).ok().and_then(|at| Some((at, at.checked_add(length)?)))
        else {
            return DataEffect::Invalid;
        };
        let top = self.early_end.max(self.seen_to);
        let is_beyond = self.length.is_some_and(|length| end > length);
        if data.is_end && (is_beyond || self.length.is_some_and(|length| end != length) || top > end) {
            return DataEffect::WrongEnd;
        }
        if is_beyond || end > config.file_bytes_max {
            return DataEffect::Invalid;
        }
        let effect = if self.phase == Phase::Receiving {
            self.take(offset, &data.payload, bytes_max, config, risen)
        } else {
            self.wait(offset, &data.payload, bytes_max.saturating_sub(config.incoming_reserve()))
        };
        if effect == DataEffect::Dropped {
            return effect;
        }
        if data.is_end {
            self.end_was_seen = true;
            self.length = Some(end);
        }
        if self.metadata.is_none() {
            self.width = self.width.max(data.width);
        }
        if data.stamp.is_some() && end >= self.seen_to {
            self.last_stamp = data.stamp;
        }
        if data.wants_status {
            self.requested = Some((data.stamp, end));
        }
        effect
    }

    /// Returns true if a packet has the first missing byte: all bytes before it are with the user, which can free them.
    fn has_first_missing(&self, offset: u64, end: u64) -> bool {
        let first = self.missing.iter().next().map_or(self.seen_to, |(start, _)| start);
        (offset..end).contains(&first)
    }

    /// Keeps a packet until the user accepts the file.
    fn wait(&mut self, offset: u64, data: &Bytes, bytes_max: u64) -> DataEffect {
        let cost = data.len() as u64 + OVERHEAD_BYTES;
        if data.is_empty() || self.early.contains_key(&offset) {
            return DataEffect::Duplicate;
        }
        if cost > bytes_max {
            return DataEffect::Dropped;
        }
        self.held += cost;
        self.early.insert(offset, data.clone());
        self.early_end = self.early_end.max(offset + data.len() as u64);
        DataEffect::New(data.len() as u64)
    }

    /// Takes the new bytes of a packet, if their pieces need at most `bytes_max` bytes in memory.
    fn take(
        &mut self,
        offset: u64,
        data: &Bytes,
        bytes_max: u64,
        config: &Config,
        risen: &mut Vec<(u64, Bytes)>,
    ) -> DataEffect {
        let end = offset + data.len() as u64;
        let mut new: Vec<_> = self.missing.within(offset, end).collect();
        if end > self.seen_to.max(offset) {
            new.push((offset.max(self.seen_to), end));
        }
        let count: u64 = new.iter().map(|(start, stop)| stop - start).sum();
        // A packet without bytes shows that those before it were sent.
        if count == 0 && offset <= self.seen_to {
            return DataEffect::Duplicate;
        }
        // Beyond all others, or within a hole, the packet makes one more of them.
        let adds_hole = offset > self.seen_to || (offset > 0 && self.missing.contains(offset - 1, end + 1));
        let bytes_max = match self.has_first_missing(offset, end) {
            true => bytes_max,
            false => bytes_max.saturating_sub(config.incoming_reserve()),
        };
        let cost = count + OVERHEAD_BYTES * (new.len() as u64 + u64::from(adds_hole));
        // Without bytes, a packet makes no hole but the last one, and its request needs an answer.
        let needs_too_much = count > 0 && cost > bytes_max;
        if needs_too_much || (adds_hole && self.missing.len() >= config.holes_max) {
            return DataEffect::Dropped;
        }
        if offset > self.seen_to {
            self.missing.insert(self.seen_to, offset);
            self.unreported.insert(self.seen_to, offset);
        }
        self.missing.remove(offset, end);
        self.unreported.remove(offset, end);
        self.seen_to = self.seen_to.max(end);
        let length = self.length.unwrap_or(end);
        for (start, stop) in new {
            self.pieces.insert(start, stop);
            self.held += stop - start + OVERHEAD_BYTES;
            let bytes = data.slice((start - offset) as usize..(stop - offset) as usize);
            if self.states_a_sum() {
                self.sum ^= crc32c_part(crc32c(&bytes), length - stop);
            }
            risen.push((start, bytes));
        }
        if count > 0 { DataEffect::New(count) } else { DataEffect::Duplicate }
    }

    fn states_a_sum(&self) -> bool {
        matches!(self.metadata, Some(Metadata { checksum: Checksum::Crc32c(_), .. }))
    }

    /// Notes that the user has stored a range. Returns the number of bytes that are no longer held.
    pub(super) fn store(&mut self, start: u64, end: u64) -> u64 {
        let (before, end) = (self.held, end.min(self.seen_to));
        self.stored.insert(start, end);
        let first = self.pieces.range(..=start).next_back().map_or(start, |(first, _)| *first);
        let pieces = if first < end { Some(self.pieces.range(first..end)) } else { None };
        // A piece is in memory until all of it is stored.
        let is_stored = |(at, to): &(&u64, &u64)| self.stored.contains(**at, **to);
        let stored: Vec<_> =
            pieces.into_iter().flatten().filter(is_stored).map(|(at, to)| (*at, *to)).collect();
        for (at, to) in stored {
            self.pieces.remove(&at);
            self.held -= to - at + OVERHEAD_BYTES;
        }
        before - self.held
    }

    /// Returns true if all bytes are received.
    pub(super) fn is_complete(&self) -> bool {
        self.phase == Phase::Receiving && self.missing.is_empty() && self.length == Some(self.seen_to)
    }

    /// Returns true if all bytes are received and stored.
    pub(super) fn is_safe(&self) -> bool {
        self.is_complete() && self.stored.contains(0, self.seen_to)
    }

    /// Returns true if the complete content does not have the checksum of the METADATA.
    pub(super) fn is_damaged(&self) -> bool {
        match &self.metadata {
            Some(Metadata { checksum: Checksum::Crc32c(expected), .. }) => {
                self.is_complete() && self.sum != *expected
            }
            _ => false,
        }
    }

    // -- STATUS -------------------------------------------------------------------------------------------------

    /// Returns true if a STATUS is requested.
    pub(super) fn is_asked(&self) -> bool {
        self.requested.is_some()
    }

    /// Plans the next STATUS. Returns true if it is due at once: it is requested, or its list is full.
    pub(super) fn plan_status(&mut self, now: Instant, bytes_max: u64, config: &Config) -> bool {
        let is_full = self.unreported.len() >= config.holes_of_status(bytes_max, self.width);
        if self.is_asked() || is_full {
            self.status_at = None;
            return true;
        }
        let has_news = !self.unreported.is_empty() || self.status_was_sent.is_none();
        if self.status_at.is_none() && !self.status_is_queued && has_news {
            let after_last = self.status_was_sent.map_or(now, |at| at + config.status_interval);
            self.status_at = Some(after_last.max(now + config.status_delay));
        }
        false
    }

    /// Returns the STATUS that leaves now.
    pub(super) fn status(&mut self, now: Instant, bytes_max: u64, config: &Config) -> Status {
        let requested = self.requested.take();
        self.status_at = None;
        self.status_was_sent = Some(now);
        let (stamp, in_response_to) = requested.unwrap_or((self.last_stamp, self.seen_to));
        // The end of a packet may need a wider descriptor than its beginning, and lie beyond that of the METADATA.
        let width = self.width.max(Width::of(in_response_to.max(self.seen_to).into()));
        let count = config.holes_of_status(bytes_max, width);
        // At the end of the file, the sender waits for the answer and knows of each hole whether it has filled it since.
        let lists_all = requested.is_some() && self.end_was_seen;
        let listed = if lists_all { &self.missing } else { &self.unreported };
        let listed: Vec<_> = listed.iter().take(count).collect();
        let late_at = now + config.answer_time();
        for (start, end) in &listed {
            self.unreported.remove(*start, *end);
            self.awaited.push_back((late_at, *start, *end));
        }
        // Listed again and again, a hole would occupy memory for each time.
        while self.awaited.len() > 2 * config.holes_max {
            self.awaited.pop_front();
        }
        Status {
            width,
            stamp,
            // A file without bytes is not received before the user has accepted it.
            lacks_metadata: self.metadata.is_none() || self.phase == Phase::Offered,
            incomplete: listed.len() < self.missing.len(),
            voluntary: requested.is_none(),
            progress: self.stored.contiguous_end(0).into(),
            in_response_to: in_response_to.into(),
            holes: listed.into_iter().map(|(start, end)| (start.into(), u128::from(end) - 1)).collect(),
            ..Status::with_outcome(self.id, Outcome::Success)
        }
    }

    /// Adds the holes for which packets are late to those that the next STATUS lists.
    pub(super) fn expect_again(&mut self, now: Instant) {
        for (start, end) in self.late(now).iter() {
            self.unreported.extend(self.missing.within(start, end));
        }
    }

    /// Removes and returns the ranges for which packets are late. Ranges that were listed several times occur once.
    pub(super) fn late(&mut self, now: Instant) -> Ranges {
        let count = self.awaited.partition_point(|(late_at, ..)| *late_at <= now);
        let mut late = Ranges::new();
        late.extend(self.awaited.drain(..count).map(|(_, start, end)| (start, end)));
        late
    }

    /// Continues after the link was down: every hole is listed again.
    pub(super) fn resume(&mut self, now: Instant, config: &Config) {
        self.awaited.clear();
        self.unreported = self.missing.clone();
        self.answer_at = None;
        self.status_at = None;
        self.inactive_at = Some(now + config.inactivity_limit());
    }

    /// Returns the time of the next timer.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let late_at = self.awaited.front().map(|(late_at, ..)| *late_at);
        [self.status_at, self.answer_at, self.inactive_at, late_at].into_iter().flatten().min()
    }
}

/// Returns the properties in METADATA.
pub(super) fn properties_of(metadata: &Metadata) -> FileProperties {
    let entry = &metadata.entry;
    FileProperties {
        path: entry.path.clone(),
        is_directory: metadata.kind == super::wire::Kind::Directory,
        length: entry.size as u64,
        modified: entry.modified,
        created: entry.created,
        crc32c: match metadata.checksum {
            Checksum::Crc32c(sum) => Some(sum),
            _ => None,
        },
    }
}
