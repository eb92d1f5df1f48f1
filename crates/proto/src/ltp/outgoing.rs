//! Block to send: its segments, its checkpoints, and what the peer has reported of it.

use super::config::Config;
use super::timer::AnswerTimer;
use super::wire::{DataHead, DataKind, Report, Serials, SessionId, data_header_bytes};
use crate::ranges::Ranges;
use crate::time::Instant;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Distance of report serial numbers of one session beyond which the peer must have lost its state: they count up from a
/// random number (RFC 5326 3.2.2).
const REPORT_DISTANCE_MAX: u64 = 1 << 16;
/// Maximum number of report serial numbers that are remembered.
const REPORTS_MAX: usize = 4096;
/// Maximum number of retransmissions that wait. What further reports lack is sent again after these.
const BATCHES_MAX: usize = 256;
/// Number of claimed ranges that any block may have, and of bytes sent for each further one: no peer that receives segments has
/// more ranges than it has received segments.
const CLAIMS_MIN: u64 = 1024;
const BYTES_PER_CLAIM: u64 = 32;

/// Checkpoint without a complete answer.
#[derive(Debug)]
pub(super) struct Checkpoint {
    head: DataHead,
    /// Bytes that were sent for this checkpoint and are not reported.
    covers: Ranges,
    /// Number of bytes of the retransmission that it ends; zero if it ends none.
    repeated: u64,
    /// Number of times that it was sent since the peer's last answer.
    pub(super) tries: u32,
    pub(super) timer: AnswerTimer,
    /// Time at which it was sent first; `None` before.
    pub(super) first_departed: Option<Instant>,
}

/// Retransmission that one report has caused.
#[derive(Debug)]
struct Batch {
    /// Serial number of the report.
    report: u64,
    /// Bytes to send, none of which is claimed.
    left: Ranges,
    /// All bytes of the batch.
    covers: Ranges,
    /// Number of bytes of the batch when it began.
    bytes: u64,
    /// The batch has waited for further reports.
    due: bool,
}

/// Segment that is to be sent now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextSegment {
    pub(super) head: DataHead,
    pub(super) repeated: bool,
}

/// Effect of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportEffect {
    /// The report was processed before.
    Redundant,
    /// The report contradicts what was sent.
    Invalid,
    /// The peer has lost its state of this session.
    Restarted,
    /// There were too many retransmission cycles.
    TooManyCycles,
    /// The peer claims more ranges than it can have received.
    TooManyClaims,
    /// The report was processed.
    Heard,
}

/// Block to send.
#[derive(Debug)]
pub(super) struct Outgoing {
    id: SessionId,
    client: u64,
    /// Offset from which on the block is green; `None` if all of it is red.
    red_limit: Option<u64>,
    /// Data in order, each with its offset.
    chunks: Vec<(u64, Bytes)>,
    length: u64,
    /// The block has its final length.
    finished: bool,
    /// Number of bytes sent at least once.
    sent: u64,
    segments_since_checkpoint: u32,
    /// The next segment is a checkpoint, whatever the number of those before.
    checkpoint_due: bool,
    /// Bytes sent since the last checkpoint.
    uncovered_from: u64,
    claimed: Ranges,
    first_checkpoint: u64,
    next_checkpoint: u64,
    checkpoints: BTreeMap<u64, Checkpoint>,
    reports: BTreeSet<u64>,
    /// Largest serial number of a report.
    last_report: Option<u64>,
    batches: VecDeque<Batch>,
    /// Length of all batches, and of those that have left and are not reported.
    repeated_bytes: u64,
    /// Copy of the deadline of the first batch.
    pub(super) batch_deadline: Option<Instant>,
    /// Number of retransmissions since the peer reported new data.
    cycles: u32,
}

impl Outgoing {
    pub(super) fn new(id: SessionId, client: u64, red_limit: Option<u64>, first_checkpoint: u64) -> Self {
        Outgoing {
            id,
            client,
            red_limit,
            chunks: Vec::new(),
            length: 0,
            finished: false,
            sent: 0,
            segments_since_checkpoint: 0,
            checkpoint_due: false,
            uncovered_from: 0,
            claimed: Ranges::new(),
            first_checkpoint,
            next_checkpoint: first_checkpoint,
            checkpoints: BTreeMap::new(),
            reports: BTreeSet::new(),
            last_report: None,
            batches: VecDeque::new(),
            repeated_bytes: 0,
            batch_deadline: None,
            cycles: 0,
        }
    }

    pub(super) fn id(&self) -> SessionId {
        self.id
    }

    /// Returns the length of the block so far, bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns the number of bytes sent at least once.
    pub(super) fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns true if nothing is left to be sent for the first time.
    pub(super) fn is_sent(&self) -> bool {
        self.finished && self.sent == self.length
    }

    /// Returns true if the block has its final length.
    pub(super) fn is_finished(&self) -> bool {
        self.finished
    }

    /// Appends data to a block that is not finished.
    pub(super) fn append(&mut self, data: Bytes) {
        assert!(!self.finished, "a finished block has its length");
        if !data.is_empty() {
            let offset = self.length;
            self.length += data.len() as u64;
            self.chunks.push((offset, data));
        }
    }

    /// Removes the data from an offset on, none of which is sent.
    pub(super) fn truncate(&mut self, length: u64) {
        assert!(self.sent <= length && length <= self.length, "only unsent data are removed");
        while let Some((offset, data)) = self.chunks.last_mut()
            && *offset + data.len() as u64 > length
        {
            if *offset >= length {
                self.chunks.pop();
            } else {
                data.truncate((length - *offset) as usize);
            }
        }
        self.length = length;
    }

    /// Gives the block its final length. It is not empty.
    pub(super) fn finish(&mut self) {
        self.finished = true;
    }

    /// Returns the end of the red part; `None` while it is unknown.
    fn red_end(&self) -> Option<u64> {
        let limit = self.red_limit.unwrap_or(u64::MAX);
        (self.finished || limit <= self.length).then_some(limit.min(self.length))
    }

    /// Returns true if everything was sent and the whole red part is reported.
    pub(super) fn is_complete(&self) -> bool {
        let red = self.red_end().filter(|_| self.is_sent());
        red.is_some_and(|end| self.claimed.contains(0, end))
    }

    // -- Segments -----------------------------------------------------------------------------------------------

    /// Returns the number of data bytes that fit into a segment at this offset.
    fn payload_max(&self, bytes_max: usize, offset: u64, serials: Option<Serials>) -> u64 {
        let header = data_header_bytes(self.id, self.client, offset, bytes_max as u64, serials);
        bytes_max.saturating_sub(header) as u64
    }

    /// Returns true if a segment can be sent for the first time. The last bytes wait until the block has its length,
    /// because their segment is marked as the end.
    pub(super) fn has_new(&self, bytes_max: usize) -> bool {
        let unsent = self.length - self.sent;
        if self.finished { unsent > 0 } else { unsent > bytes_max as u64 }
    }

    /// Returns the next segment to send for the first time.
    pub(super) fn next_new(&mut self, bytes_max: usize, checkpoint_every: u32) -> Option<NextSegment> {
        if !self.has_new(bytes_max) {
            return None;
        }
        let offset = self.sent;
        let red_limit = self.red_limit.unwrap_or(u64::MAX);
        let red = offset < red_limit;
        let part_end = if red { self.length.min(red_limit) } else { self.length };
        let serials = Serials { checkpoint: self.next_checkpoint, report: 0 };
        let payload = self.payload_max(bytes_max, offset, red.then_some(serials));
        let plain = self.payload_max(bytes_max, offset, None);
        let rest = part_end - offset;
        let part_is_final = self.finished || (red && red_limit <= self.length);
        let ends_part = part_is_final && rest <= payload;
        self.segments_since_checkpoint += 1;
        let is_time = checkpoint_every > 0 && self.segments_since_checkpoint >= checkpoint_every;
        let discretionary = red && (is_time || self.checkpoint_due) && !ends_part;
        // A last segment that fits only without serial numbers is not the last.
        let length = match (ends_part, discretionary || rest <= plain) {
            (true, _) => rest,
            (false, true) => payload.min(rest),
            (false, false) => plain,
        };
        let end = offset + length;
        if length == 0 {
            return None;
        }
        let ends_block = ends_part && self.finished && end == self.length;
        let kind = match (red, ends_part, ends_block) {
            (true, true, true) => DataKind::EndOfRedAndBlock,
            (true, true, false) => DataKind::EndOfRed,
            (true, false, _) if discretionary => DataKind::Checkpoint,
            (true, false, _) => DataKind::Red,
            (false, _, true) => DataKind::EndOfBlock,
            (false, _, false) => DataKind::Green,
        };
        self.sent = end;
        let serials = kind.is_checkpoint().then_some(serials);
        let head = DataHead { kind, client: self.client, offset, length, serials };
        if serials.is_some() {
            let mut covers = Ranges::new();
            covers.insert(self.uncovered_from, end);
            self.uncovered_from = end;
            self.segments_since_checkpoint = 0;
            self.checkpoint_due = false;
            self.add_checkpoint(head, covers, 0);
        }
        Some(NextSegment { head, repeated: false })
    }

    fn add_checkpoint(&mut self, head: DataHead, covers: Ranges, repeated: u64) {
        let (timer, first_departed) = (AnswerTimer::default(), None);
        let checkpoint = Checkpoint { head, covers, repeated, tries: 1, timer, first_departed };
        self.checkpoints.insert(self.next_checkpoint, checkpoint);
        self.next_checkpoint += 1;
    }

    /// Makes the next segment a checkpoint, if any was sent before.
    pub(super) fn request_report(&mut self) {
        self.checkpoint_due = self.sent > 0;
    }

    /// Returns true if a retransmission is due.
    pub(super) fn has_repeat(&self) -> bool {
        self.batches.iter().any(|batch| batch.due)
    }

    /// Returns the length of all retransmissions that are not reported.
    pub(super) fn repeated_bytes(&self) -> u64 {
        self.repeated_bytes
    }

    /// Adds a retransmission of these bytes.
    fn repeat(&mut self, report: u64, missing: Ranges, due: bool) {
        let bytes = missing.iter().map(|(start, end)| end - start).sum();
        self.repeated_bytes += bytes;
        self.batches.push_back(Batch { report, left: missing.clone(), covers: missing, bytes, due });
    }

    fn remove_checkpoint(&mut self, serial: u64) {
        if let Some(checkpoint) = self.checkpoints.remove(&serial) {
            self.repeated_bytes -= checkpoint.repeated;
        }
    }

    /// Makes all batches due that have waited since before.
    pub(super) fn release_batches(&mut self) {
        self.batches.iter_mut().for_each(|batch| batch.due = true);
    }

    /// Returns the next segment of a retransmission; the last one of each is a checkpoint (RFC 5326 6.13).
    pub(super) fn next_repeat(&mut self, bytes_max: usize) -> Option<NextSegment> {
        loop {
            let batch = self.batches.front_mut().filter(|batch| batch.due)?;
            let Some((offset, _)) = batch.left.first() else {
                self.repeated_bytes -= batch.bytes;
                self.batches.pop_front();
                self.require_checkpoint();
                continue;
            };
            let serials = Serials { checkpoint: self.next_checkpoint, report: batch.report };
            let header = data_header_bytes(self.id, self.client, offset, bytes_max as u64, Some(serials));
            let payload = bytes_max.saturating_sub(header) as u64;
            let (start, end) = batch.left.take_first(payload).filter(|(start, end)| start < end)?;
            let is_last = batch.left.is_empty();
            let ends_red = self.red_end() == Some(end);
            let kind = match (is_last, ends_red) {
                (false, _) => DataKind::Red,
                (true, true) if end == self.length => DataKind::EndOfRedAndBlock,
                (true, true) => DataKind::EndOfRed,
                (true, false) => DataKind::Checkpoint,
            };
            let head = DataHead {
                kind,
                client: self.client,
                offset: start,
                length: end - start,
                serials: is_last.then_some(serials),
            };
            if is_last {
                let Batch { mut covers, bytes, .. } = self.batches.pop_front().expect("it is the first");
                covers.subtract(&self.claimed);
                self.add_checkpoint(head, covers, bytes);
            }
            return Some(NextSegment { head, repeated: true });
        }
    }

    /// Appends the data of a segment.
    pub(super) fn copy(&self, offset: u64, length: u64, out: &mut BytesMut) {
        let (mut at, end) = (offset, offset + length);
        let mut index = self.chunks.partition_point(|(start, data)| start + data.len() as u64 <= at);
        while at < end {
            let (start, data) = &self.chunks[index];
            let from = (at - start) as usize;
            let to = ((end - start) as usize).min(data.len());
            out.extend_from_slice(&data[from..to]);
            at = start + to as u64;
            index += 1;
        }
    }

    // -- Checkpoints and reports --------------------------------------------------------------------------------

    pub(super) fn checkpoint(&mut self, serial: u64) -> Option<&mut Checkpoint> {
        self.checkpoints.get_mut(&serial)
    }

    /// Returns all checkpoints without a complete answer.
    pub(super) fn checkpoints(&mut self) -> impl Iterator<Item = (u64, &mut Checkpoint)> {
        self.checkpoints.iter_mut().map(|(serial, checkpoint)| (*serial, checkpoint))
    }

    /// Returns the segment of a checkpoint that is sent again; `None` if it is answered.
    pub(super) fn repeat_checkpoint(&mut self, serial: u64) -> Option<NextSegment> {
        let checkpoint = self.checkpoints.get_mut(&serial)?;
        checkpoint.tries += 1;
        Some(NextSegment { head: checkpoint.head, repeated: true })
    }

    /// Returns true if all bytes of a checkpoint are reported by now, so that it needs no answer; it is then removed.
    pub(super) fn is_covered(&mut self, serial: u64) -> bool {
        let Some(checkpoint) = self.checkpoints.get_mut(&serial) else { return true };
        checkpoint.covers.subtract(&self.claimed);
        let is_covered = checkpoint.covers.is_empty();
        if is_covered {
            self.remove_checkpoint(serial);
            self.require_checkpoint();
        }
        is_covered
    }

    /// Processes a report. Checkpoints whose answer is complete are moved to `answered`, for their timers to be stopped.
    pub(super) fn hear(
        &mut self,
        report: &Report,
        config: &Config,
        answered: &mut Vec<(u64, AnswerTimer)>,
    ) -> ReportEffect {
        if self.reports.contains(&report.serial) {
            return ReportEffect::Redundant;
        }
        let red_sent = self.sent.min(self.red_limit.unwrap_or(u64::MAX));
        let is_known = (self.first_checkpoint..self.next_checkpoint).contains(&report.checkpoint);
        if report.upper > red_sent || !(report.checkpoint == 0 || is_known) {
            return ReportEffect::Invalid;
        }
        if self.last_report.is_some_and(|last| report.serial.abs_diff(last) > REPORT_DISTANCE_MAX) {
            return ReportEffect::Restarted;
        }
        if self.reports.len() >= REPORTS_MAX {
            self.reports.pop_first();
        }
        self.reports.insert(report.serial);
        self.last_report = self.last_report.max(Some(report.serial));
        let is_new = |(start, end): &(u64, u64)| !self.claimed.contains(*start, *end);
        if report.claims.iter().any(is_new) {
            self.cycles = 0;
        }
        let mut claims = Ranges::new();
        claims.extend(report.claims.iter().copied());
        self.claimed.extend(claims.iter());
        // Reports arrive while a retransmission waits or leaves.
        self.batches.iter_mut().for_each(|batch| batch.left.subtract(&claims));
        if self.claimed.len() as u64 > CLAIMS_MIN + self.sent / BYTES_PER_CLAIM {
            return ReportEffect::TooManyClaims;
        }
        let mut missing = self.claimed.missing(report.lower, report.upper);
        if !missing.is_empty() {
            let others = self.checkpoints.iter();
            let others = others.filter(|(serial, other)| {
                **serial != report.checkpoint && other.head.serials.is_some_and(|with| with.report != 0)
            });
            others.for_each(|(_, other)| missing.subtract(&other.covers));
            self.batches.iter().for_each(|batch| missing.subtract(&batch.covers));
        }
        self.answer(report, answered);
        if !missing.is_empty() {
            self.cycles += 1;
            if self.cycles > config.cycles_max {
                return ReportEffect::TooManyCycles;
            }
            if self.batches.len() < BATCHES_MAX {
                let due = config.retransmission_delay.is_zero();
                self.repeat(report.serial, missing, due);
            }
        }
        self.require_checkpoint();
        ReportEffect::Heard
    }

    /// Removes from checkpoints what a report says of their data. Several report segments answer one checkpoint, and each of
    /// them counts for its own part; it counts for the discretionary checkpoints before, too, whose own reports may be lost.
    fn answer(&mut self, report: &Report, answered: &mut Vec<(u64, AnswerTimer)>) {
        for (serial, checkpoint) in self.checkpoints.range_mut(..=report.checkpoint) {
            let is_own = *serial == report.checkpoint;
            if is_own || checkpoint.head.serials.is_some_and(|serials| serials.report == 0) {
                if is_own {
                    checkpoint.tries = checkpoint.tries.min(1);
                }
                checkpoint.covers.remove(report.lower, report.upper);
                checkpoint.covers.subtract(&self.claimed);
            }
            if checkpoint.covers.is_empty() {
                answered.push((*serial, checkpoint.timer));
            }
        }
        for (serial, _) in answered {
            self.remove_checkpoint(*serial);
        }
    }

    /// Keeps a checkpoint under way until the block is complete, so that the loss of any report ends in a retransmission.
    fn require_checkpoint(&mut self) {
        let waits = !self.checkpoints.is_empty() || !self.batches.is_empty();
        let Some(end) = self.red_end().filter(|end| !waits && self.sent >= *end) else { return };
        let missing = self.claimed.missing(0, end);
        if !missing.is_empty() {
            self.repeat(self.last_report.unwrap_or(0), missing, true);
        }
    }

    /// Returns true if a retransmission waits for further reports.
    pub(super) fn has_waiting_batch(&self) -> bool {
        self.batches.iter().any(|batch| !batch.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ranges::removals;

    const SEGMENT_BYTES: usize = 96;

    /// Block of this length whose data were all sent once, and the segments.
    fn sent_block(length: usize) -> (Outgoing, Vec<DataHead>) {
        let mut block = Outgoing::new(SessionId { originator: 1, number: 1 }, 1, None, 1);
        block.append(vec![0; length].into());
        block.finish();
        let next = || block.next_new(SEGMENT_BYTES, 0).map(|next| next.head);
        let segments: Vec<_> = std::iter::from_fn(next).collect();
        (block, segments)
    }

    fn hear(block: &mut Outgoing, serial: u64, claims: Vec<(u64, u64)>) -> ReportEffect {
        let report = Report { serial, checkpoint: 1, upper: block.sent, lower: 0, claims };
        let effect = block.hear(&report, &Config::default(), &mut Vec::new());
        block.release_batches();
        effect
    }

    #[test]
    fn a_retransmission_costs_as_much_as_it_has_segments() {
        const SEGMENTS: usize = 4_000;
        let (mut block, mut segments) = sent_block(SEGMENTS * 80);
        segments.truncate(SEGMENTS);
        let claims = segments.iter().step_by(2).map(|head| (head.offset, head.offset + head.length));
        let before = removals();
        assert_eq!(hear(&mut block, 1, claims.collect()), ReportEffect::Heard);
        let repeated = std::iter::from_fn(|| block.next_repeat(SEGMENT_BYTES)).count();
        assert!(repeated >= SEGMENTS / 2, "{repeated} segments again");
        let removals = removals() - before;
        assert!(removals < 4 * SEGMENTS as u64, "{removals} removals for {SEGMENTS} segments");
    }

    #[test]
    fn what_a_later_report_claims_is_not_sent_although_it_waits() {
        let (mut block, segments) = sent_block(800);
        let end = segments[1].offset + segments[1].length;
        assert_eq!(hear(&mut block, 1, vec![(end, 800)]), ReportEffect::Heard);
        assert_eq!(hear(&mut block, 2, vec![(0, segments[1].offset)]), ReportEffect::Heard);
        let again: Vec<_> = std::iter::from_fn(|| block.next_repeat(SEGMENT_BYTES)).collect();
        let bytes: u64 = again.iter().map(|next| next.head.length).sum();
        assert_eq!((again[0].head.offset, bytes), (segments[1].offset, segments[1].length));
    }

    #[test]
    fn a_peer_that_claims_more_ranges_than_any_receiver_has_ends_the_block() {
        let length = 4 * (CLAIMS_MIN + 100) as usize;
        let (mut block, _) = sent_block(length);
        let most = CLAIMS_MIN + length as u64 / BYTES_PER_CLAIM;
        let claims = |count: u64| (0..count).map(|at| (2 * at, 2 * at + 1)).collect();
        assert_eq!(hear(&mut block, 1, claims(most)), ReportEffect::Heard);
        assert_eq!(hear(&mut block, 2, claims(most + 1)), ReportEffect::TooManyClaims);
    }

    #[test]
    fn what_many_reports_lack_is_sent_again_though_few_retransmissions_wait() {
        let (mut block, segments) = sent_block(80 * 3 * BATCHES_MAX);
        let config = Config::default();
        let mut serial = 0;
        for pair in segments.chunks(2) {
            serial += 1;
            let claims: Vec<_> =
                pair[1..].iter().map(|head| (head.offset, head.offset + head.length)).collect();
            let lower = pair[0].offset;
            let upper = claims.first().map_or(lower + pair[0].length, |(_, end)| *end);
            let report = Report { serial, checkpoint: 1, upper, lower, claims };
            assert_eq!(block.hear(&report, &config, &mut Vec::new()), ReportEffect::Heard);
            assert!(block.batches.len() <= BATCHES_MAX);
        }
        assert!(serial > BATCHES_MAX as u64, "{serial} reports");
        while !block.is_complete() {
            block.release_batches();
            let mut sent = Ranges::new();
            while let Some(NextSegment { head, .. }) = block.next_repeat(SEGMENT_BYTES) {
                let upper = head.offset + head.length;
                sent.insert(head.offset, upper);
                if let Some(serials) = head.serials {
                    serial += 1;
                    let claims = sent.iter().collect();
                    let report = Report { serial, checkpoint: serials.checkpoint, upper, lower: 0, claims };
                    block.hear(&report, &config, &mut Vec::new());
                }
            }
            assert!(!sent.is_empty(), "nothing is left to be sent, and the block is not complete");
        }
    }
}
