//! Data sent and not yet acknowledged: the bytes, and the state of each segment (RFC 6675 3 and 4).
//!
//! Positions are offsets from the initial sequence number, which never wrap: the SYN is 0, the first byte 1.

use super::config::Recovery;
use super::rack::Rack;
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Number of duplicate acknowledgements, or of segments' worth of data above a hole, that indicates a loss (RFC 5681
/// 3.2, RFC 6675 2).
pub(super) const DUPLICATES_THRESHOLD: u64 = 3;

/// Bytes that were written and are not acknowledged yet.
#[derive(Debug)]
pub(super) struct SendBuffer {
    /// Each write with the offset of its first byte.
    chunks: VecDeque<(u64, Bytes)>,
    start: u64,
    end: u64,
}

impl SendBuffer {
    pub(super) fn new() -> Self {
        SendBuffer { chunks: VecDeque::new(), start: 1, end: 1 }
    }

    /// Returns the offset after the last byte written.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the number of bytes in the buffer.
    pub(super) fn length(&self) -> u64 {
        self.end - self.start
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        let start = self.end;
        self.end += bytes.len() as u64;
        self.chunks.push_back((start, bytes));
    }

    /// Removes everything before `offset`.
    pub(super) fn release(&mut self, offset: u64) {
        self.start = offset.clamp(self.start, self.end);
        while self.chunks.front().is_some_and(|(start, bytes)| start + bytes.len() as u64 <= self.start) {
            self.chunks.pop_front();
        }
    }

    /// Returns the bytes from `start` to before `end`, copied only if they span more than one write.
    pub(super) fn slice(&self, start: u64, end: u64) -> Bytes {
        assert!(self.start <= start && start <= end && end <= self.end, "only what is held can be sent");
        let first = self.chunks.partition_point(|(at, bytes)| at + bytes.len() as u64 <= start);
        let Some((at, bytes)) = self.chunks.get(first) else {
            return Bytes::new();
        };
        let skip = (start - at) as usize;
        let length = (end - start) as usize;
        if skip + length <= bytes.len() {
            return bytes.slice(skip..skip + length);
        }
        let mut joined = BytesMut::with_capacity(length);
        joined.extend_from_slice(&bytes[skip..]);
        for (_, bytes) in self.chunks.iter().skip(first + 1) {
            let missing = length - joined.len();
            if missing == 0 {
                break;
            }
            joined.extend_from_slice(&bytes[..missing.min(bytes.len())]);
        }
        joined.freeze()
    }
}

/// Segment in flight.
#[derive(Clone, Debug)]
pub(super) struct SentSegment {
    pub(super) start: u64,
    /// First sequence number after the segment, counting a FIN.
    pub(super) end: u64,
    /// Time at which the newest copy was sent.
    pub(super) at: Instant,
    /// Position of the newest copy in the order of everything sent.
    pub(super) order: u64,
    pub(super) sacked: bool,
    /// True if all copies sent before the one of `retransmitted` are lost.
    pub(super) lost: bool,
    /// True if a copy was sent after the segment was marked lost, or on suspicion without the mark.
    pub(super) retransmitted: bool,
    /// True if more than one copy was ever sent.
    pub(super) repeated: bool,
}

impl SentSegment {
    fn length(&self) -> u64 {
        self.end - self.start
    }

    /// Returns the contribution to the pipe (RFC 6675 4, SetPipe).
    fn weight(&self) -> u64 {
        if self.sacked { 0 } else { self.length() * (u64::from(!self.lost) + u64::from(self.retransmitted)) }
    }

    pub(super) fn waits_for_repetition(&self) -> bool {
        self.lost && !self.retransmitted && !self.sacked
    }
}

/// What an acknowledgement says about the copies of a segment that was sent more than once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    pub(super) now: Instant,
    /// Shortest round trip: a copy cannot have arrived if it was sent less than this time ago.
    pub(super) shortest: Option<Duration>,
    /// The acknowledged copy was sent before this time, according to the echoed timestamp.
    pub(super) sent_before: Option<Instant>,
    /// End of the data sent before a timeout, or zero.
    pub(super) timeout_point: u64,
}

/// Effect of an acknowledgement.
#[derive(Debug, Default)]
pub(super) struct AckOutcome {
    /// Bytes newly known to have arrived.
    pub(super) delivered: u64,
    /// Bytes of `delivered` that are selectively acknowledged.
    pub(super) sacked: u64,
    /// Send time of the oldest acknowledged segment that was sent once and was not known to have arrived.
    pub(super) oldest_sent_once: Option<Instant>,
    /// True if retransmitted data are acknowledged.
    pub(super) repeated: bool,
    /// True if data that were sent once, before the timeout, are newly known to have arrived.
    pub(super) original: bool,
}

impl AckOutcome {
    /// Adds a segment that was not known to have arrived.
    fn count(&mut self, sent: &SentSegment, evidence: &Evidence) {
        self.delivered += sent.length();
        if !sent.repeated {
            self.oldest_sent_once = Some(self.oldest_sent_once.map_or(sent.at, |oldest| oldest.min(sent.at)));
            self.original |= sent.end <= evidence.timeout_point;
        }
    }
}

/// State of every segment in flight.
#[derive(Debug)]
pub(super) struct Scoreboard {
    pub(super) sent: VecDeque<SentSegment>,
    /// Estimated number of bytes in the network (RFC 6675 4).
    pipe: u64,
    sacked_bytes: u64,
    sacked_segments: u64,
    /// Bytes of segments that are lost and not retransmitted yet.
    waiting: u64,
    /// Offset after the highest selectively acknowledged byte.
    highest_sacked: u64,
    /// Everything unsacked before this offset is marked lost.
    lost_below: u64,
    /// No segment before this offset waits for retransmission.
    repeat_from: u64,
    /// Blocks of the previous acknowledgement: segments that they cover are not visited again.
    blocks_before: Vec<(u64, u64)>,
    /// Retransmissions in flight, oldest first: their order and the start of their segment.
    repetitions: VecDeque<(u64, u64)>,
    /// Next position in the order of everything sent, and the newest position with a known delivery.
    next_order: u64,
    newest_delivered: u64,
    /// Loss detection by time; `None` if losses are found by the number of segments that arrived.
    pub(super) rack: Option<Rack>,
}

impl Scoreboard {
    pub(super) fn new(rack: Option<Rack>) -> Self {
        Scoreboard {
            sent: VecDeque::new(),
            pipe: 0,
            sacked_bytes: 0,
            sacked_segments: 0,
            waiting: 0,
            highest_sacked: 0,
            lost_below: 0,
            repeat_from: 0,
            blocks_before: Vec::new(),
            repetitions: VecDeque::new(),
            next_order: 1,
            newest_delivered: 0,
            rack,
        }
    }

    pub(super) fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Returns the number of bytes that are lost and wait for retransmission.
    pub(super) fn waiting(&self) -> u64 {
        self.waiting
    }

    /// Returns true if a lost segment waits for retransmission.
    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    pub(super) fn get(&self, index: usize) -> &SentSegment {
        &self.sent[index]
    }

    /// Returns the index of the segment that contains `offset`, or of the first one after it.
    pub(super) fn index(&self, offset: u64) -> usize {
        self.sent.partition_point(|sent| sent.end <= offset)
    }

    /// Changes one segment and updates the sums.
    pub(super) fn change(&mut self, index: usize, change: impl FnOnce(&mut SentSegment)) {
        let sent = &mut self.sent[index];
        let (weight, waiting, sacked) = (sent.weight(), sent.waits_for_repetition(), sent.sacked);
        change(sent);
        let length = sent.length();
        self.pipe = self.pipe + sent.weight() - weight;
        match (waiting, sent.waits_for_repetition()) {
            (false, true) => {
                self.waiting += length;
                self.repeat_from = self.repeat_from.min(sent.start);
            }
            (true, false) => self.waiting -= length,
            _ => {}
        }
        match (sacked, sent.sacked) {
            (false, true) => {
                self.sacked_bytes += length;
                self.sacked_segments += 1;
            }
            (true, false) => {
                self.sacked_bytes -= length;
                self.sacked_segments -= 1;
            }
            _ => {}
        }
    }

    fn take_order(&mut self) -> u64 {
        self.next_order += 1;
        self.next_order - 1
    }

    /// Adds a new segment that leaves now.
    pub(super) fn push(&mut self, start: u64, end: u64, now: Instant) {
        let order = self.take_order();
        self.sent.push_back(SentSegment {
            start,
            end,
            at: now,
            order,
            sacked: false,
            lost: false,
            retransmitted: false,
            repeated: false,
        });
        self.pipe += end - start;
        if let Some(rack) = &mut self.rack {
            rack.note_sent(order, start);
        }
    }

    /// Records a retransmission of a segment.
    pub(super) fn repeat(&mut self, index: usize, now: Instant) {
        let order = self.take_order();
        self.change(index, |sent| {
            sent.at = now;
            sent.order = order;
            sent.retransmitted = true;
            sent.repeated = true;
        });
        let sent = &self.sent[index];
        match &mut self.rack {
            Some(rack) => rack.note_sent(order, sent.start),
            None => self.repetitions.push_back((order, sent.start)),
        }
        // Retransmissions go in order, so no segment before this one waits.
        self.repeat_from = self.repeat_from.max(sent.end);
    }

    /// Records that the newest copy of a segment has arrived, unless it may have been an older copy: the newest copy
    /// cannot have arrived if it was sent less than the shortest round trip ago, or later than the echoed timestamp.
    fn note_delivered(&mut self, index: usize, evidence: &Evidence) {
        let sent = &self.sent[index];
        let age = evidence.now.saturating_since(sent.at);
        let sure = !sent.repeated || evidence.shortest.is_some_and(|shortest| age >= shortest);
        if sure {
            self.newest_delivered = self.newest_delivered.max(sent.order);
        }
        if let Some(rack) = &mut self.rack {
            let echoed = !sent.repeated || evidence.sent_before.is_none_or(|before| sent.at < before);
            rack.note_delivered(sent, sure && echoed, evidence);
        }
    }

    /// Removes everything before `offset`, which has arrived.
    pub(super) fn acknowledge(&mut self, offset: u64, evidence: &Evidence) -> AckOutcome {
        let mut delivery = AckOutcome::default();
        while let Some(front) = self.sent.front() {
            if front.end > offset {
                break;
            }
            delivery.repeated |= front.repeated;
            if !front.sacked {
                delivery.count(front, evidence);
                self.note_delivered(0, evidence);
            }
            self.change(0, |sent| {
                sent.lost = false;
                sent.retransmitted = false;
            });
            let front = self.sent.pop_front().expect("there is a front");
            if front.sacked {
                self.sacked_bytes -= front.length();
                self.sacked_segments -= 1;
            } else {
                self.pipe -= front.length();
            }
        }
        self.cut_front(offset, &mut delivery);
        self.lost_below = self.lost_below.max(offset);
        self.repeat_from = self.repeat_from.max(offset);
        while self.repetitions.front().is_some_and(|&(_, start)| start < offset) {
            self.repetitions.pop_front();
        }
        self.forget_transmissions();
        delivery
    }

    /// Shortens the first segment if it was acknowledged in part.
    fn cut_front(&mut self, offset: u64, delivery: &mut AckOutcome) {
        let Some(front) = self.sent.front().filter(|front| front.start < offset) else {
            return;
        };
        let (before, arrived) = (front.clone(), offset - front.start);
        let front = &mut self.sent[0];
        front.start = offset;
        self.pipe -= before.weight() - front.weight();
        if before.sacked {
            self.sacked_bytes -= arrived;
        } else {
            delivery.delivered += arrived;
        }
        if before.waits_for_repetition() {
            self.waiting -= arrived;
        }
    }

    /// Processes the SACK blocks of one acknowledgement. Only segments that a block covers completely count. Returns
    /// what is newly known to have arrived.
    pub(super) fn sack(&mut self, blocks: &[(u64, u64)], evidence: &Evidence) -> AckOutcome {
        let before = core::mem::take(&mut self.blocks_before);
        let mut delivery = AckOutcome::default();
        for &(start, end) in blocks {
            let first = self.sent.partition_point(|sent| sent.start < start);
            // A block grows from one acknowledgement to the next: only its new part is visited.
            match before.iter().find(|known| start <= known.0 && known.1 <= end) {
                None => self.sack_from(first, u64::MAX, end, evidence, &mut delivery),
                Some(&(known_start, known_end)) => {
                    self.sack_from(first, known_start, end, evidence, &mut delivery);
                    let behind = self.index(known_end).max(first);
                    self.sack_from(behind, u64::MAX, end, evidence, &mut delivery);
                }
            }
        }
        self.blocks_before.extend_from_slice(blocks);
        delivery.sacked = delivery.delivered;
        delivery
    }

    /// Marks the segments from an index on that begin before `until` and end at or before `end`.
    fn sack_from(
        &mut self,
        mut index: usize,
        until: u64,
        end: u64,
        evidence: &Evidence,
        delivery: &mut AckOutcome,
    ) {
        while self.sent.get(index).is_some_and(|sent| sent.start < until && sent.end <= end) {
            if !self.sent[index].sacked {
                delivery.count(&self.sent[index], evidence);
                self.highest_sacked = self.highest_sacked.max(self.sent[index].end);
                self.note_delivered(index, evidence);
                self.change(index, |sent| sent.sacked = true);
            }
            index += 1;
        }
    }

    /// Returns the number of segments that are selectively acknowledged.
    pub(super) fn sacked_segments(&self) -> u64 {
        self.sacked_segments
    }

    /// Marks segments as lost that have enough delivered data above them. Returns true if a segment is newly lost.
    pub(super) fn find_losses(&mut self, recovery: Recovery, segment_bytes: u64) -> bool {
        if self.sacked_bytes == 0 {
            return false;
        }
        let highest = self.index(self.highest_sacked - 1);
        let Some(threshold) = (match recovery {
            Recovery::NewReno | Recovery::NewRenoNs3 | Recovery::Rack => None,
            Recovery::Sack6675 => self.threshold_rfc6675(highest, segment_bytes),
            Recovery::Fack => {
                let behind = (highest + 1).checked_sub(DUPLICATES_THRESHOLD as usize);
                behind.map(|index| self.sent[index].start)
            }
        }) else {
            return false;
        };
        let waiting = self.waiting;
        let mut index = self.index(self.lost_below);
        while self.sent.get(index).is_some_and(|sent| sent.end <= threshold) {
            if !self.sent[index].lost {
                self.change(index, |sent| sent.lost = true);
            }
            index += 1;
        }
        self.lost_below = self.lost_below.max(threshold);
        self.waiting > waiting
    }

    /// Returns the offset below which segments are lost by IsLost of RFC 6675 4: three separate runs above, or more
    /// than two segments' worth of bytes.
    fn threshold_rfc6675(&self, highest: usize, segment_bytes: u64) -> Option<u64> {
        let (mut bytes, mut runs, mut in_run) = (0, 0, false);
        for sent in self.sent.iter().take(highest + 1).rev() {
            if sent.sacked {
                bytes += sent.length();
                runs += u64::from(!in_run);
                if bytes > (DUPLICATES_THRESHOLD - 1) * segment_bytes || runs >= DUPLICATES_THRESHOLD {
                    return Some(sent.start);
                }
            }
            in_run = sent.sacked;
        }
        None
    }

    /// Marks retransmissions as lost that were sent before a segment with a known arrival. Returns true if there are
    /// any.
    pub(super) fn find_lost_repetitions(&mut self) -> bool {
        let mut found = false;
        while let Some(&(order, start)) = self.repetitions.front() {
            if order >= self.newest_delivered {
                break;
            }
            self.repetitions.pop_front();
            let index = self.index(start);
            let current = self.sent.get(index).is_some_and(|sent| sent.order == order && !sent.sacked);
            if current && self.sent[index].retransmitted {
                found = true;
                self.change(index, |sent| {
                    sent.lost = true;
                    sent.retransmitted = false;
                });
            }
        }
        found
    }

    /// Marks the first segment in flight as lost.
    pub(super) fn lose_first(&mut self) {
        if self.sent.front().is_some_and(|sent| !sent.lost && !sent.sacked) {
            self.change(0, |sent| sent.lost = true);
        }
    }

    /// Marks everything that is not known to have arrived as lost after a timeout, including retransmissions. A
    /// receiver that has selectively acknowledged the very first segment and not moved on has discarded it (RFC 2018
    /// 8): then all its earlier SACK blocks are ignored.
    pub(super) fn lose_all(&mut self) {
        let reneged = self.sent.front().is_some_and(|sent| sent.sacked);
        for index in 0..self.sent.len() {
            self.change(index, |sent| {
                sent.sacked &= !reneged;
                sent.lost = true;
                sent.retransmitted = false;
            });
        }
        if reneged {
            self.highest_sacked = 0;
            self.blocks_before.clear();
        }
        self.repetitions.clear();
        self.lost_below = self.sent.back().map_or(0, |sent| sent.end);
    }

    /// Removes the loss marks of segments that are not retransmitted yet, because nothing was lost.
    pub(super) fn find_again(&mut self) {
        for index in 0..self.sent.len() {
            if self.sent[index].waits_for_repetition() {
                self.change(index, |sent| sent.lost = false);
            }
        }
        self.remember_transmissions();
        self.lost_below = 0;
    }

    /// Returns the next lost segment to retransmit (RFC 6675 4, NextSeg rule 1).
    pub(super) fn next_waiting(&self) -> Option<usize> {
        if self.waiting == 0 {
            return None;
        }
        let from = self.index(self.repeat_from);
        (from..self.sent.len()).find(|&index| self.sent[index].waits_for_repetition())
    }

    /// Returns a segment that may be lost: not retransmitted, and with delivered data above it (NextSeg rule 3).
    pub(super) fn next_doubtful(&self) -> Option<usize> {
        if self.sacked_bytes == 0 {
            return None;
        }
        let end = self.index(self.highest_sacked - 1);
        (self.index(self.repeat_from)..end.min(self.sent.len()))
            .find(|&index| !self.sent[index].sacked && !self.sent[index].retransmitted)
    }

    /// Returns the last segment in flight if it is not known to have arrived (NextSeg rule 4).
    pub(super) fn last_unsacked(&self) -> Option<usize> {
        let last = self.sent.len().checked_sub(1)?;
        (!self.sent[last].sacked).then_some(last)
    }
}
