//! Block that is being received: its data in order, its checkpoints, and the reports about it.

use super::config::Config;
use super::sessions::Closed;
use super::timer::AnswerTimer;
use super::wire::{DataSegment, Report, SessionId, report_header_bytes};
use crate::codec::sdnv;
use crate::ranges::Ranges;
use crate::service::PeerId;
use crate::time::Instant;
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Bytes by which a piece of the block counts more than its data, until the user has accepted it.
pub(super) const PIECE_OVERHEAD_BYTES: u64 = 128;
/// Maximum number of remembered checkpoints, and of remembered reports.
const REMEMBERED_MAX: usize = 1024;

/// Checkpoint that waits for its report.
#[derive(Clone, Copy, Debug)]
struct PendingReport {
    /// End of the checkpoint's data.
    upper: u64,
    /// Serial number of the report that the checkpoint answers; zero for a primary report.
    cause: u64,
    /// Time at which missing data are reported.
    due: Instant,
}

/// Report without an acknowledgement.
#[derive(Debug)]
pub(super) struct SentReport {
    pub(super) report: Report,
    /// It claims bytes that no report before it has claimed.
    is_news: bool,
    /// Number of times that it was sent.
    pub(super) tries: u32,
    /// The report waits to be sent.
    pub(super) queued: bool,
    pub(super) timer: AnswerTimer,
}

/// Effect of a data segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentEffect {
    /// The segment had new data of this length.
    New(u64),
    /// The segment had no new data.
    Duplicate,
    /// The segment contradicts others of the block.
    Invalid,
    /// Red data after green data (RFC 5326 6.21).
    Miscolored,
    /// The block is longer than this side accepts.
    TooLong,
    /// The checkpoint answers a report that this engine has never sent: it has lost its state of the session.
    Restarted,
    /// There were too many retransmission cycles.
    TooManyCycles,
}

/// Limits on the reports of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportLimits {
    pub(super) segment_bytes: usize,
    pub(super) claims: usize,
}

/// Block that is being received.
#[derive(Debug)]
pub(super) struct Incoming {
    id: SessionId,
    client: u64,
    /// Peer that the answers go to.
    pub(super) to: PeerId,
    received: Ranges,
    /// Number of received bytes.
    length: u64,
    /// Data that wait for those before them, by offset.
    waiting: BTreeMap<u64, Bytes>,
    /// Number of bytes passed to the user.
    risen: u64,
    /// Ends of the pieces that were passed to the user and are not completely accepted.
    risen_ends: VecDeque<u64>,
    /// Number of bytes accepted by the user.
    accepted: u64,
    /// Bytes in memory that count against the limit.
    held: u64,
    red_end: Option<u64>,
    block_end: Option<u64>,
    /// Largest end of received data, and of received red data.
    top: u64,
    red_top: u64,
    red_offset_max: Option<u64>,
    green_offset_min: Option<u64>,
    /// The user has been informed of the end of the block.
    end_has_risen: bool,
    /// Bytes that reports have claimed.
    claimed: Ranges,
    /// Known checkpoints; those without a report are pending.
    checkpoints: BTreeMap<u64, Option<PendingReport>>,
    /// Reports without an acknowledgement.
    reports: BTreeMap<u64, SentReport>,
    /// Lower bounds of the latest reports.
    lower_bounds: BTreeMap<u64, u64>,
    first_report: u64,
    next_report: u64,
    /// Upper bound of the last primary report.
    primary_upper: u64,
    /// Time at which missing data are reported without a checkpoint.
    asynchronous_due: Option<Instant>,
    /// Checkpoint that came again while the user had not accepted all data.
    impatient: Option<u64>,
    /// The peer has acknowledged a report of the complete red part.
    is_acknowledged: bool,
    /// Number of retransmissions since a segment brought new data.
    cycles: u32,
    /// Time at which something new was last heard of the block.
    pub(super) heard_at: Instant,
    pub(super) inactive_deadline: Option<Instant>,
    /// Time up to which the block was seen not to be behind.
    pub(super) behind_deadline: Option<Instant>,
    pub(super) delay_deadline: Option<Instant>,
}

impl Incoming {
    pub(super) fn new(now: Instant, id: SessionId, client: u64, to: PeerId, first_report: u64) -> Self {
        Incoming {
            id,
            client,
            to,
            received: Ranges::new(),
            length: 0,
            waiting: BTreeMap::new(),
            risen: 0,
            risen_ends: VecDeque::new(),
            accepted: 0,
            held: 0,
            red_end: None,
            block_end: None,
            top: 0,
            red_top: 0,
            red_offset_max: None,
            green_offset_min: None,
            end_has_risen: false,
            claimed: Ranges::new(),
            checkpoints: BTreeMap::new(),
            reports: BTreeMap::new(),
            lower_bounds: BTreeMap::new(),
            first_report,
            next_report: first_report,
            primary_upper: 0,
            asynchronous_due: None,
            impatient: None,
            is_acknowledged: false,
            cycles: 0,
            heard_at: now,
            inactive_deadline: None,
            behind_deadline: None,
            delay_deadline: None,
        }
    }

    /// Returns the number of bytes in memory that count against the limit.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Returns the number of received bytes.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Returns true if the whole red part is received.
    pub(super) fn is_red_complete(&self) -> bool {
        self.red_end.is_some_and(|end| self.received.contains(0, end))
    }

    /// Returns true if the whole red part is received and accepted: its last report may be sent.
    pub(super) fn is_safe(&self) -> bool {
        self.is_red_complete() && self.red_end.is_some_and(|end| self.accepted >= end)
    }

    /// Returns how a session that ends now is remembered if its red part is safe: late checkpoints are still answered.
    pub(super) fn closed_complete(&self) -> Option<Closed> {
        self.is_safe().then(|| Closed::Complete(self.red_end.unwrap_or(0), self.next_report))
    }

    /// Returns true if the whole block is received and accepted, and the peer knows it.
    pub(super) fn is_done(&self) -> bool {
        let red_is_done = self.red_top == 0 || self.is_acknowledged;
        red_is_done && self.block_end.is_some_and(|end| self.accepted == end)
    }

    /// Returns true if the block can make progress without further segments: the user has data to accept, or a
    /// report is under way.
    pub(super) fn is_waiting_here(&self) -> bool {
        let is_under_way = |sent: &SentReport| sent.queued || sent.timer.is_running();
        self.is_whole() && (self.accepted < self.risen || self.reports.values().any(is_under_way))
    }

    /// Returns true if all of the block has been passed to the user.
    pub(super) fn is_whole(&self) -> bool {
        self.block_end == Some(self.risen)
    }

    /// Processes a data segment. Data that are now in order are appended to `risen`.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        segment: &DataSegment,
        config: &Config,
        risen: &mut Vec<Bytes>,
    ) -> SegmentEffect {
        if let Some(refusal) = self.refusal(segment, config) {
            return refusal;
        }
        let (offset, end) = (segment.offset, segment.end());
        let ends_before = (self.red_end, self.block_end);
        self.top = self.top.max(end);
        if segment.kind.is_red() {
            self.red_top = self.red_top.max(end);
            self.red_offset_max = self.red_offset_max.max(Some(offset));
        } else {
            self.green_offset_min = Some(self.green_offset_min.map_or(offset, |least| least.min(offset)));
        }
        if segment.kind.ends_red() {
            self.red_end = Some(end);
        }
        if segment.kind.ends_block() {
            self.block_end = Some(end);
        }
        let new = self.store(segment, risen);
        // A repetition must not extend the life of a block.
        if new > 0 || (self.red_end, self.block_end) != ends_before {
            self.heard_at = now;
        }
        if new > 0 {
            self.cycles = 0;
            self.asynchronous_due = config.asynchronous_after.map(|after| now + after);
        }
        if let Some(serials) = segment.serials {
            self.request_report(now, serials.checkpoint, serials.report, end, config);
            if self.cycles > config.cycles_max {
                return SegmentEffect::TooManyCycles;
            }
        }
        if new > 0 { SegmentEffect::New(new) } else { SegmentEffect::Duplicate }
    }

    /// Returns the reason for ignoring a segment or ending the session because of it.
    fn refusal(&self, segment: &DataSegment, config: &Config) -> Option<SegmentEffect> {
        let (offset, end, kind) = (segment.offset, segment.end(), segment.kind);
        if end > config.block_bytes_max {
            return Some(SegmentEffect::TooLong);
        }
        let miscolored = match kind.is_red() {
            true => self.green_offset_min.is_some_and(|green| offset > green),
            false => self.red_offset_max.is_some_and(|red| offset < red),
        };
        if miscolored {
            return Some(SegmentEffect::Miscolored);
        }
        let red_end = if kind.is_red() { self.red_end } else { None };
        let beyond = red_end.is_some_and(|red| end > red || (kind.ends_red() && end != red))
            || self.block_end.is_some_and(|block| end > block || (kind.ends_block() && end != block));
        let short = (kind.ends_red() && self.red_top > end) || (kind.ends_block() && self.top > end);
        let overlaps = !kind.is_red() && self.red_end.is_some_and(|red| offset < red);
        let empty = segment.data.is_empty() && (!kind.is_checkpoint() || end == 0);
        if beyond || short || overlaps || empty || segment.client != self.client {
            return Some(SegmentEffect::Invalid);
        }
        let cause = segment.serials.map_or(0, |serials| serials.report);
        let is_known = (self.first_report..self.next_report).contains(&cause);
        (cause != 0 && !is_known).then_some(SegmentEffect::Restarted)
    }

    /// Stores the new data of a segment; returns their length.
    fn store(&mut self, segment: &DataSegment, risen: &mut Vec<Bytes>) -> u64 {
        let (offset, end) = (segment.offset, segment.end());
        let mut new = 0;
        if offset == self.risen && self.received.contiguous_end(offset) == offset && self.waiting.is_empty() {
            // The usual case: the next data in order.
            new = end - offset;
            if new > 0 {
                self.held += PIECE_OVERHEAD_BYTES;
                self.rise(segment.data.clone(), risen);
            }
        } else {
            for (start, stop) in self.received.missing(offset, end).iter() {
                let data = segment.data.slice((start - offset) as usize..(stop - offset) as usize);
                new += stop - start;
                self.held += PIECE_OVERHEAD_BYTES;
                self.waiting.insert(start, data);
            }
            while let Some(entry) = self.waiting.first_entry().filter(|entry| *entry.key() == self.risen) {
                let data = entry.remove();
                self.rise(data, risen);
            }
        }
        self.held += new;
        self.length += new;
        self.received.insert(offset, end);
        new
    }

    /// Passes the next piece to the user.
    fn rise(&mut self, data: Bytes, risen: &mut Vec<Bytes>) {
        self.risen += data.len() as u64;
        self.risen_ends.push_back(self.risen);
        risen.push(data);
    }

    /// Returns true, once, when all of the block has been passed to the user.
    pub(super) fn takes_end(&mut self) -> bool {
        let ends = self.block_end == Some(self.risen) && !self.end_has_risen;
        self.end_has_risen |= ends;
        ends
    }

    /// Accepts the first bytes of the block for the user. Returns the number of bytes that no longer count against the limit.
    pub(super) fn accept(&mut self, up_to: u64) -> u64 {
        assert!(up_to <= self.risen, "accepted {up_to} of {} bytes", self.risen);
        let before = self.held;
        let accepted = up_to.saturating_sub(self.accepted);
        self.accepted += accepted;
        self.held -= accepted;
        while self.risen_ends.front().is_some_and(|end| *end <= self.accepted) {
            self.risen_ends.pop_front();
            self.held -= PIECE_OVERHEAD_BYTES;
        }
        before - self.held
    }

    // -- Reports ------------------------------------------------------------------------------------------------

    fn request_report(&mut self, now: Instant, serial: u64, cause: u64, upper: u64, config: &Config) {
        let waits = if self.is_red_complete() { now } else { now + config.report_delay };
        let pending = PendingReport { upper, cause, due: waits };
        let unanswered = self.is_red_complete() && !self.is_safe();
        match self.checkpoints.get(&serial) {
            None => {
                if cause != 0 {
                    // The peer has heard a report. The limit of cycles bounds how often that happens without new data.
                    self.cycles += 1;
                    self.heard_at = now;
                }
                if self.checkpoints.len() >= REMEMBERED_MAX {
                    self.checkpoints.pop_first();
                }
                self.checkpoints.insert(serial, Some(pending));
            }
            Some(Some(_)) if unanswered => self.impatient = Some(serial),
            Some(Some(_)) => {}
            Some(None) => {
                // The peer has not received the answer, or sent the checkpoint before it arrived.
                if !self.reports.values().any(|sent| sent.report.checkpoint == serial) {
                    self.checkpoints.insert(serial, Some(PendingReport { due: now, ..pending }));
                    if unanswered {
                        self.impatient = Some(serial);
                    }
                }
            }
        }
    }

    /// Returns the reports that answered a checkpoint and have no acknowledgement: it came again, so they are sent again
    /// (RFC 5326 6.8).
    pub(super) fn reports_for(&self, checkpoint: u64) -> Vec<u64> {
        let sent = self.reports.iter().filter(|(_, sent)| sent.report.checkpoint == checkpoint);
        sent.filter(|(_, sent)| !sent.queued && sent.tries > 0).map(|(serial, _)| *serial).collect()
    }

    /// Creates the reports that are due, and returns their serial numbers.
    ///
    /// While too many wait for an acknowledgement, none are made: the peer repeats its checkpoint.
    /// Of a complete red part nothing is reported until the user has accepted it: the sender forgets the block then.
    pub(super) fn make_reports(&mut self, now: Instant, limits: ReportLimits) -> Vec<u64> {
        let mut made = Vec::new();
        if !self.has_room() {
            return made;
        }
        if !self.is_red_complete() {
            let due: Vec<_> = self.pending().filter(|(_, pending)| pending.due <= now).collect();
            for (checkpoint, pending) in due {
                if !self.has_room() {
                    break;
                }
                self.checkpoints.insert(checkpoint, None);
                self.report_part(checkpoint, pending, limits, &mut made);
            }
            if self.asynchronous_report_due().is_some_and(|due| due <= now) {
                let pending = PendingReport { upper: self.red_top, cause: 0, due: now };
                self.report_part(0, pending, limits, &mut made);
            }
            return made;
        }
        let end = self.red_end.expect("the red part is complete");
        if !self.is_safe() {
            if let Some(checkpoint) = self.impatient.take() {
                self.report_wait(checkpoint, end, limits, &mut made);
            }
            return made;
        }
        let pending: Vec<_> = self.pending().map(|(checkpoint, _)| checkpoint).collect();
        for checkpoint in &pending {
            if !self.has_room() {
                break;
            }
            self.checkpoints.insert(*checkpoint, None);
            self.add_report(*checkpoint, (0, end), limits, &mut made);
        }
        if pending.is_empty() && !self.claimed.contains(0, end) {
            self.add_report(0, (0, end), limits, &mut made);
        }
        made
    }

    /// Returns true if one more report can be remembered.
    fn has_room(&self) -> bool {
        self.reports.len() < REMEMBERED_MAX
    }

    fn pending(&self) -> impl Iterator<Item = (u64, PendingReport)> + '_ {
        self.checkpoints.iter().filter_map(|(checkpoint, pending)| pending.map(|with| (*checkpoint, with)))
    }

    /// Reports a part of the block with missing data (RFC 5326 6.11).
    fn report_part(
        &mut self,
        checkpoint: u64,
        pending: PendingReport,
        limits: ReportLimits,
        made: &mut Vec<u64>,
    ) {
        let PendingReport { upper, cause, .. } = pending;
        let lower = match cause {
            0 => self.primary_upper,
            cause => self.lower_bounds.get(&cause).copied().unwrap_or(0),
        };
        // Checkpoints in another order have no part of their own.
        let lower = if lower < upper { lower } else { 0 };
        if cause == 0 {
            self.primary_upper = self.primary_upper.max(upper);
        }
        self.add_report(checkpoint, (lower, upper), limits, made);
    }

    /// Answers a checkpoint that came again while the user has not accepted all data: claims a part of the block again, or
    /// all but the last byte, so that the sender knows that this side is alive.
    fn report_wait(&mut self, checkpoint: u64, end: u64, limits: ReportLimits, made: &mut Vec<u64>) {
        let scope = self.claimed.first().unwrap_or((0, end - 1));
        self.add_report(checkpoint, scope, limits, made);
    }

    /// Adds a report of a scope, in as many segments as it needs, or as there is room for.
    fn add_report(&mut self, checkpoint: u64, scope: (u64, u64), limits: ReportLimits, made: &mut Vec<u64>) {
        let (lower, upper) = scope;
        if lower >= upper {
            return;
        }
        let claims: Vec<_> = self.received.within(lower, upper).collect();
        let mut rest = &claims[..];
        let mut from = lower;
        loop {
            let header = report_header_bytes(self.id, self.next_report, checkpoint, upper);
            let count = fitting(rest, from, limits.segment_bytes.saturating_sub(header)).min(limits.claims);
            let (now, later) = rest.split_at(count.max(1).min(rest.len()));
            // The gap after the last claim belongs to the next segment, except at the end.
            let to = if later.is_empty() { upper } else { now.last().map_or(upper, |(_, end)| *end) };
            made.push(self.send_report(checkpoint, (from, to), now.to_vec()));
            if later.is_empty() || !self.has_room() {
                return;
            }
            (rest, from) = (later, to);
        }
    }

    fn send_report(&mut self, checkpoint: u64, (lower, upper): (u64, u64), claims: Vec<(u64, u64)>) -> u64 {
        let serial = self.next_report;
        self.next_report += 1;
        let is_news = !claims.iter().all(|(start, end)| self.claimed.contains(*start, *end));
        self.claimed.extend(claims.iter().copied());
        if self.lower_bounds.len() >= REMEMBERED_MAX {
            self.lower_bounds.pop_first();
        }
        self.lower_bounds.insert(serial, lower);
        let report = Report { serial, checkpoint, upper, lower, claims };
        let sent = SentReport { report, is_news, tries: 0, queued: true, timer: AnswerTimer::default() };
        self.reports.insert(serial, sent);
        serial
    }

    pub(super) fn report(&mut self, serial: u64) -> Option<&mut SentReport> {
        self.reports.get_mut(&serial)
    }

    /// Returns all reports without an acknowledgement.
    pub(super) fn reports(&mut self) -> impl Iterator<Item = (u64, &mut SentReport)> {
        self.reports.iter_mut().map(|(serial, sent)| (*serial, sent))
    }

    /// Processes the acknowledgement of a report. Returns the report's timer.
    pub(super) fn acknowledged(&mut self, now: Instant, serial: u64) -> Option<AnswerTimer> {
        let sent = self.reports.remove(&serial)?;
        if sent.is_news {
            self.heard_at = now;
        }
        let Report { lower, upper, claims, .. } = &sent.report;
        let is_full =
            self.red_end.is_some_and(|end| *lower == 0 && *upper == end && claims[..] == [(0, end)]);
        self.is_acknowledged |= is_full;
        Some(sent.timer)
    }

    /// Returns the time at which the next report of missing data is due.
    pub(super) fn report_due(&self) -> Option<Instant> {
        if self.is_red_complete() || !self.has_room() {
            return None;
        }
        let pending = self.pending().map(|(_, pending)| pending.due);
        pending.chain(self.asynchronous_report_due()).min()
    }

    /// Returns the time of a report without a checkpoint: the end of the red part has not come, data are missing of which no
    /// report has told, and no checkpoint waits for its own.
    fn asynchronous_report_due(&self) -> Option<Instant> {
        let (lower, upper) = (self.primary_upper, self.red_top);
        let due = self.asynchronous_due.filter(|_| self.red_end.is_none() && lower < upper)?;
        let is_told = self.received.contains(lower, upper) || self.pending().next().is_some();
        (!is_told && self.has_room()).then_some(due)
    }
}

/// Returns the number of claims that fit into a number of bytes.
fn fitting(claims: &[(u64, u64)], lower: u64, bytes_max: usize) -> usize {
    let mut left = bytes_max;
    let fits = |(start, end): &&(u64, u64)| {
        let bytes = sdnv::length(start - lower) + sdnv::length(end - start);
        let fits = bytes <= left;
        left = left.saturating_sub(bytes);
        fits
    };
    claims.iter().take_while(fits).count()
}
