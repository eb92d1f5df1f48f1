//! File that is being sent: what is new, which holes are to be filled, and which are filled by packets under way.

use super::config::Config;
use super::wire::{
    Checksum, Data, Entry, EntryKind, Kind, Metadata, Outcome, Stamp, Status, Width, data_header_bytes,
};
use crate::ranges::Ranges;
use crate::service::{FileId, FileProperties, Wish};
use crate::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Phase of a file to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The peer is asked whether it accepts the file.
    Asking,
    /// The peer is asked to delete the file.
    Deleting,
    /// The user is asked for the file.
    Wanted,
    /// It is sent.
    Sending,
}

/// Bytes that the user was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reading {
    length: u64,
    is_fill: bool,
    asks: bool,
}

/// Bytes for a hole that are under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fill {
    end: u64,
    /// Number of the packet among all departures.
    departure: u64,
}

/// Departure of bytes for a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Departed {
    start: u64,
    fill: Fill,
    late_at: Instant,
}

/// Bytes that can leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) offset: u64,
    pub(super) data: Bytes,
    pub(super) is_fill: bool,
    pub(super) asks: bool,
}

/// Effect of a STATUS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct StatusEffect {
    /// It contradicts the file.
    pub(super) is_invalid: bool,
    /// The peer has the complete file.
    pub(super) is_complete: bool,
    /// The peer has more of the file than was sent: it was stored in an earlier transfer.
    pub(super) continues: bool,
    /// Number of holes that were under way.
    pub(super) under_way: u64,
    /// It answers a later packet than those before it, or reports more.
    pub(super) has_news: bool,
    /// The first bytes that the peer has stored are more than before.
    pub(super) progress: Option<u64>,
}

/// File that is being sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub(super) file: FileId,
    pub(super) id: u32,
    pub(super) phase: Phase,
    /// Request of the peer; `None` for a file that this side puts.
    pub(super) wanted: Option<(String, Wish)>,
    pub(super) properties: FileProperties,
    width: Width,
    available: u64,
    /// End of the bytes that were read for the first time.
    sent_to: u64,
    /// Reported holes without packets under way.
    to_fill: Ranges,
    reading: BTreeMap<u64, Reading>,
    /// Number of packets that wait to leave.
    pub(super) ready: usize,
    /// Packets for holes, by the offset of their beginning. They do not overlap.
    fills: BTreeMap<u64, Fill>,
    /// Departures of these packets, oldest first.
    departed: VecDeque<Departed>,
    progress: u64,
    /// Offset up to which the peer has reported holes.
    reported_to: u64,
    /// Last departure that the peer has answered.
    answered: Option<u64>,
    /// METADATA was sent.
    pub(super) has_begun: bool,
    /// Number of further copies of the METADATA, and of the request at the end, that are due.
    pub(super) metadata_copies: u32,
    pub(super) probe_copies: u32,
    /// The next packet requests a STATUS.
    pub(super) request_due: bool,
    pub(super) request_at: Option<Instant>,
    /// Time at which the answer to the last packet is late.
    pub(super) answer_at: Option<Instant>,
    pub(super) inactive_at: Option<Instant>,
    /// Copy of the deadline.
    pub(super) deadline: Option<Instant>,
}

impl Outgoing {
    pub(super) fn new(
        file: FileId,
        id: u32,
        phase: Phase,
        properties: FileProperties,
        available: u64,
    ) -> Self {
        Outgoing {
            file,
            id,
            phase,
            wanted: None,
            width: Width::of(properties.length.into()),
            available: available.min(properties.length),
            properties,
            sent_to: 0,
            to_fill: Ranges::new(),
            reading: BTreeMap::new(),
            ready: 0,
            fills: BTreeMap::new(),
            departed: VecDeque::new(),
            progress: 0,
            reported_to: 0,
            answered: None,
            has_begun: false,
            metadata_copies: 0,
            probe_copies: 0,
            request_due: false,
            request_at: None,
            answer_at: None,
            inactive_at: None,
            deadline: None,
        }
    }

    /// Sets the file that was asked for.
    pub(super) fn provide(&mut self, properties: FileProperties, available: u64) {
        self.width = Width::of(properties.length.into());
        self.available = available.min(properties.length);
        self.properties = properties;
        self.phase = Phase::Sending;
    }

    /// Extends the content that can be read.
    pub(super) fn extend(&mut self, available: u64) {
        self.available = self.available.max(available.min(self.properties.length));
    }

    fn length(&self) -> u64 {
        self.properties.length
    }

    /// Returns true if holes are to be filled.
    pub(super) fn has_fill(&self) -> bool {
        self.phase == Phase::Sending && !self.to_fill.is_empty()
    }

    /// Returns true if new content can be read: a full packet, or the end of the file.
    pub(super) fn has_new(&self, packet_bytes: u64) -> bool {
        let unread = self.available - self.sent_to.min(self.available);
        let is_end = self.available == self.length();
        self.phase == Phase::Sending && unread > 0 && (is_end || unread >= packet_bytes)
    }

    /// Returns true if nothing is left to be read or to leave.
    pub(super) fn is_sent(&self) -> bool {
        let nothing_waits = self.to_fill.is_empty() && self.reading.is_empty() && self.ready == 0;
        self.phase == Phase::Sending && nothing_waits && self.sent_to >= self.length()
    }

    /// Returns the number of reads that the user has not answered.
    pub(super) fn reads(&self) -> usize {
        self.reading.len()
    }

    /// Returns the number of packets for holes that may be under way.
    #[cfg(test)]
    pub(super) fn fills_under_way(&self) -> usize {
        self.fills.len()
    }

    /// Returns the next bytes to read; holes are filled first.
    pub(super) fn next_read(&mut self, packet_bytes: u64) -> Option<(u64, u64)> {
        let header = data_header_bytes(self.width, self.request_due) as u64;
        let payload = packet_bytes.saturating_sub(header).max(1);
        let (is_fill, start, end) = if self.has_fill() {
            let (start, end) = self.to_fill.take_first(payload)?;
            (true, start, end)
        } else if self.has_new(packet_bytes) {
            let start = self.sent_to;
            self.sent_to = self.available.min(start + payload);
            (false, start, self.sent_to)
        } else {
            return None;
        };
        let asks = core::mem::take(&mut self.request_due);
        self.reading.insert(start, Reading { length: end - start, is_fill, asks });
        Some((start, end - start))
    }

    /// Takes the content that was read; `None` if nobody has asked for it.
    pub(super) fn content(&mut self, offset: u64, data: Bytes) -> Option<Ready> {
        let Reading { length, is_fill, asks } = self.reading.remove(&offset)?;
        assert_eq!(data.len() as u64, length, "content at {offset} of {}", self.properties.path);
        self.ready += 1;
        Some(Ready { offset, data, is_fill, asks })
    }

    /// Returns the packet of bytes that leave now as this departure, and true if nothing is left after it.
    pub(super) fn depart(
        &mut self,
        now: Instant,
        ready: Ready,
        departure: u64,
        packet_bytes: u64,
        config: &Config,
    ) -> (Data, bool) {
        self.ready -= 1;
        let Ready { offset, data, is_fill, asks } = ready;
        let end = offset + data.len() as u64;
        if is_fill {
            self.cut_fills(offset, end);
            let fill = Fill { end, departure };
            self.fills.insert(offset, fill);
            let late_at = now + config.one_way_delay.saturating_mul(2).saturating_add(config.margin);
            self.departed.push_back(Departed { start: offset, fill, late_at });
            self.forget_departed(now, config.holes_max);
        }
        let is_last = self.is_sent();
        let fits = (data_header_bytes(self.width, true) + data.len()) as u64 <= packet_bytes;
        let wants_status = asks || is_last;
        let stamp = (wants_status && fits).then(|| stamp(departure));
        (self.data(offset, data, wants_status, stamp), is_last)
    }

    /// Forgets the packets for holes that are late, and the oldest ones beyond a limit.
    fn forget_departed(&mut self, now: Instant, count_max: usize) {
        while let Some(Departed { start, fill, late_at }) = self.departed.front().copied()
            && (late_at <= now || self.departed.len() > count_max)
        {
            self.departed.pop_front();
            let parts = self.fills.range(start..fill.end);
            let own = parts.filter(|(_, part)| part.departure == fill.departure).map(|(from, _)| *from);
            for from in own.collect::<Vec<_>>() {
                self.fills.remove(&from);
            }
        }
    }

    /// Returns the packet without bytes that requests a STATUS at the end of the file.
    pub(super) fn probe(&self, departure: u64) -> Data {
        self.data(self.length(), Bytes::new(), true, Some(stamp(departure)))
    }

    fn data(&self, offset: u64, payload: Bytes, wants_status: bool, stamp: Option<Stamp>) -> Data {
        Data {
            session: self.id,
            width: self.width,
            kind: self.kind(),
            stamp,
            wants_status,
            is_end: offset + payload.len() as u64 == self.length(),
            offset: offset.into(),
            payload,
        }
    }

    fn kind(&self) -> Kind {
        if self.properties.is_directory { Kind::Directory } else { Kind::File }
    }

    /// Returns the METADATA.
    pub(super) fn metadata(&self, ended: bool) -> Metadata {
        let FileProperties { path, is_directory, length, modified, created, crc32c } = &self.properties;
        let mut entry = Entry::file(path.clone(), (*length).into(), *modified, *created);
        if *is_directory {
            entry.kind = EntryKind::Directory;
        }
        let checksum = crc32c.map_or(Checksum::None, Checksum::Crc32c);
        Metadata {
            session: self.id,
            width: self.width,
            kind: self.kind(),
            ended,
            udp_lite: false,
            checksum,
            entry,
        }
    }

    /// Processes a STATUS of success. `departures` is the number of packets that have left.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        status: &Status,
        departures: u64,
        config: &Config,
    ) -> StatusEffect {
        let mut effect = StatusEffect::default();
        let holes: Option<Vec<(u64, u64)>> =
            status.holes.iter().map(|(first, last)| self.hole(*first, *last)).collect();
        let (progress, top) = (self.offset(status.progress), self.offset(status.in_response_to));
        let (Some(holes), Some(progress), Some(top)) = (holes, progress, top) else {
            return StatusEffect { is_invalid: true, ..effect };
        };
        let all_was_offered = self.has_begun && self.available == self.length();
        let lacks_nothing = !status.lacks_metadata && holes.is_empty() && !status.incomplete;
        if all_was_offered && lacks_nothing && progress == self.length() {
            effect.is_complete = true;
            return effect;
        }
        // Bytes that the user has not given yet cannot be read, even if the peer reports them.
        let available = self.available;
        let (progress, top) = (progress.min(available), top.min(available));
        let holes = holes.into_iter().map(|(start, end)| (start, end.min(available)));
        let holes: Vec<_> = holes.filter(|(start, end)| start < end).collect();
        let answered = status.stamp.map(number).filter(|number| *number < departures);
        effect.has_news = answered > self.answered || progress > self.progress || top > self.reported_to;
        self.answered = self.answered.max(answered);
        self.reported_to = self.reported_to.max(top);
        let seen = holes.iter().fold(top, |seen, (_, end)| seen.max(*end));
        if seen > self.sent_to {
            effect.continues = true;
            self.sent_to = seen;
        }
        if progress > self.progress {
            self.progress = progress;
            effect.progress = Some(progress);
            self.to_fill.remove(0, progress);
            self.fills = self.fills.split_off(&progress);
        }
        self.forget_departed(now, config.holes_max);
        for (start, end) in holes {
            if self.to_fill.len() < config.holes_max {
                effect.under_way += u64::from(self.add_hole((start, end), answered));
            }
        }
        effect
    }

    /// Adds the parts of a hole for which nothing is under way. Returns true if there are others.
    fn add_hole(&mut self, (start, end): (u64, u64), answered: Option<u64>) -> bool {
        let mut open = Ranges::new();
        open.insert(start, end);
        for (offset, reading) in self.reading.range(..end) {
            open.remove(*offset, offset + reading.length);
        }
        let first = self.fills.range(..=start).next_back().map_or(start, |(first, _)| *first);
        for (offset, fill) in self.fills.range(first..end) {
            // The peer has answered a packet that left later: the one for the hole is lost.
            let is_lost = answered.is_some_and(|number| fill.departure < number);
            if !is_lost {
                open.remove(*offset, fill.end);
            }
        }
        let is_complete = open.contains(start, end);
        let open: Vec<_> = open.iter().collect();
        for (from, to) in open {
            self.cut_fills(from, to);
            self.to_fill.insert(from, to);
        }
        !is_complete
    }

    /// Removes the packets under way for a range.
    fn cut_fills(&mut self, start: u64, end: u64) {
        let first = self.fills.range(..=start).next_back().map_or(start, |(first, _)| *first);
        let cut: Vec<_> = self.fills.range(first..end).map(|(from, fill)| (*from, *fill)).collect();
        for (from, fill) in cut.into_iter().filter(|(_, fill)| fill.end > start) {
            self.fills.remove(&from);
            if from < start {
                self.fills.insert(from, Fill { end: start, ..fill });
            }
            if fill.end > end {
                self.fills.insert(end, fill);
            }
        }
    }

    /// Returns an offset if the file has it.
    fn offset(&self, offset: u128) -> Option<u64> {
        u64::try_from(offset).ok().filter(|offset| *offset <= self.length())
    }

    /// Returns the beginning and the end of a hole if the file has it.
    fn hole(&self, first: u128, last: u128) -> Option<(u64, u64)> {
        Some((self.offset(first)?, self.offset(last.checked_add(1)?)?))
    }

    /// Continues after the link was down: what was under way is lost, or its answer is.
    pub(super) fn resume(&mut self, now: Instant, config: &Config) {
        self.fills.clear();
        self.departed.clear();
        self.answer_at = None;
        if self.has_begun {
            self.request_due = true;
        }
        self.inactive_at = self.inactive_at.map(|_| now + config.inactivity_limit());
    }

    /// Returns the time of the next timer.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        [self.request_at, self.answer_at, self.inactive_at].into_iter().flatten().min()
    }
}

/// Returns the stamp of a departure. Its last octet says that its meaning is local.
fn stamp(departure: u64) -> Stamp {
    let mut stamp = [0; 16];
    stamp[..8].copy_from_slice(&departure.to_be_bytes());
    stamp
}

/// Returns the departure of a stamp; a foreign one has any.
fn number(stamp: Stamp) -> u64 {
    u64::from_be_bytes(stamp[..8].try_into().expect("eight octets"))
}

/// Returns the outcome as a reason for a failure.
pub(super) fn failure_of(outcome: Outcome) -> crate::service::FileFailure {
    use crate::service::FileFailure;
    match outcome {
        Outcome::NotFound => FileFailure::NotFound,
        Outcome::AccessDenied => FileFailure::AccessDenied,
        Outcome::TooLong => FileFailure::TooLong,
        Outcome::CannotSend | Outcome::CannotReceive => FileFailure::NoResources,
        Outcome::NotDeleted => FileFailure::NotDeleted,
        Outcome::NotInterested => FileFailure::NotInterested,
        Outcome::InUse => FileFailure::InUse,
        Outcome::UnsupportedPacket | Outcome::UnsupportedRequest => FileFailure::Unsupported,
        Outcome::TimedOut | Outcome::SenderSilent => FileFailure::Silent,
        Outcome::Unspecified => FileFailure::Damaged,
        Outcome::UnknownId | Outcome::UnexpectedStatus => FileFailure::Ended,
        other => FileFailure::Other(other.code()),
    }
}

/// Returns the outcome that states a reason.
pub(super) fn outcome_of(reason: crate::service::FileFailure) -> Outcome {
    use crate::service::FileFailure;
    match reason {
        FileFailure::Silent => Outcome::SenderSilent,
        FileFailure::Closed | FileFailure::Ended => Outcome::UnknownId,
        FileFailure::NotInterested => Outcome::NotInterested,
        FileFailure::NotFound => Outcome::NotFound,
        FileFailure::AccessDenied => Outcome::AccessDenied,
        FileFailure::TooLong => Outcome::TooLong,
        FileFailure::NoResources => Outcome::CannotReceive,
        FileFailure::Damaged => Outcome::Unspecified,
        FileFailure::InUse => Outcome::InUse,
        FileFailure::NotDeleted => Outcome::NotDeleted,
        FileFailure::Unsupported => Outcome::UnsupportedRequest,
        FileFailure::Other(code) => match Outcome::from_code(code) {
            // A refusal must not say that all is well.
            Outcome::Success => Outcome::Unspecified,
            other => other,
        },
    }
}
