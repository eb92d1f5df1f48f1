//! Transfers that come in: what has arrived, what the user has safe, and which answers are due.
//!
//! Answers go out in the order in which segments came, over all transfers (RFC 7242 5.4; RFC 9174 5.2.4 wants it
//! of refusals). A segment is acknowledged when all of it is safe.

use super::config::Config;
use super::dialect::{SegmentAnswer, SegmentHeader};
use crate::service::{BundlesIndication, RefuseReason, TransferId};
use bytes::Bytes;
use std::collections::VecDeque;

/// How the peer broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Violation {
    /// A message that does not fit the state: version 4 rejects it and goes on (RFC 9174 5.1.2).
    Unexpected,
    /// What follows cannot be trusted any more: the session ends.
    Broken,
    /// A limit of this side was passed: the session ends.
    Limit,
}

/// A segment that has no answer yet.
#[derive(Clone, Copy, Debug)]
struct UnansweredSegment {
    /// Where it ends, bytes from the transfer's beginning.
    end: u64,
    /// Its flags.
    flags: u8,
}

/// The end of a segment that is never safe: its answer is the refusal of its transfer.
const NEVER: u64 = u64::MAX;

/// A transfer that has come in, or is coming, and is not wholly answered.
#[derive(Debug)]
struct Inbound {
    /// What the user knows it by.
    number: TransferId,
    /// What the peer knows it by.
    id: u64,
    /// Its length, where the peer announced it.
    total: Option<u64>,
    /// Bytes that the headers of its segments announced.
    announced: u64,
    /// Bytes that came.
    received: u64,
    /// Bytes that the user has safe.
    accepted: u64,
    /// Segments without an answer, oldest first.
    segments: VecDeque<UnansweredSegment>,
    /// No more of its segments come.
    ended: bool,
    /// Why it is not wanted, if it is not.
    refused: Option<RefuseReason>,
    /// It is not wanted, and the peer cannot be told: it is acknowledged and dropped.
    dropped_silently: bool,
}

impl Inbound {
    /// All of it came.
    fn is_whole(&self) -> bool {
        self.ended && self.received == self.announced
    }

    /// All of it came and is safe.
    fn is_safe(&self) -> bool {
        self.is_whole() && self.accepted == self.received
    }
}

/// What arrives between two segment headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentData {
    /// Payload of the newest transfer.
    Payload,
    /// Payload that belongs to nothing.
    Discard,
}

/// All transfers that come in over one session.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Transfers that are not wholly answered, oldest first; only the newest may still be arriving.
    transfers: VecDeque<Inbound>,
    /// Payload bytes of the current segment that have not come yet, and what they are.
    expected: u64,
    arriving: SegmentData,
    /// Segments without an answer, in all transfers.
    unanswered: usize,
    /// Payload bytes that came and are neither accepted nor refused: the stream still holds credit for them.
    held: u64,
    /// Safe segments since the last answer, and the answer that is put off.
    unacknowledged_segments: u32,
    postponed_answer: Option<SegmentAnswer>,
    limits: Limits,
}

/// What is taken at the most.
#[derive(Clone, Copy, Debug)]
struct Limits {
    segment_mru: u64,
    transfer_mru: u64,
    transfers: usize,
    segments: usize,
    /// One answer for each segment, even of a refused transfer (RFC 7242 5.4).
    answer_each: bool,
    /// Safe segments for each acknowledgement.
    ack_window: u32,
}

/// What came of a segment's header.
#[derive(Debug, Default)]
pub(super) struct HeaderOutcome {
    /// For the user.
    pub(super) indication: Option<BundlesIndication>,
    /// Held bytes that are free now.
    pub(super) released: u64,
    /// The transfer was refused by this header.
    pub(super) refused: bool,
}

impl Incoming {
    pub(super) fn new(config: &Config, segment_mru: u64, answer_each: bool) -> Self {
        Incoming {
            transfers: VecDeque::new(),
            expected: 0,
            arriving: SegmentData::Discard,
            unanswered: 0,
            held: 0,
            unacknowledged_segments: 0,
            postponed_answer: None,
            limits: Limits {
                segment_mru,
                transfer_mru: config.transfer_mru,
                transfers: config.transfers_max.max(1),
                segments: config.segments_max.max(1),
                answer_each,
                ack_window: if answer_each { config.ack_window } else { 1 },
            },
        }
    }

    /// How many payload bytes come before the next message.
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }

    /// Payload bytes that the user has neither accepted nor refused.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Nothing is arriving and every answer is out.
    pub(super) fn is_idle(&self) -> bool {
        self.transfers.is_empty() && self.expected == 0
    }

    /// Hears the header of a segment. `number` is what a new transfer will be known by; `ending` means that no
    /// new one is taken (RFC 9174 6.1).
    pub(super) fn segment(
        &mut self,
        header: SegmentHeader,
        number: TransferId,
        ending: bool,
    ) -> Result<HeaderOutcome, Violation> {
        if header.length > self.limits.segment_mru || self.unanswered >= self.limits.segments {
            return Err(Violation::Limit);
        }
        if header.start {
            self.begin(&header, number)?;
        }
        self.expected = header.length;
        self.arriving = SegmentData::Discard;
        let known = self
            .transfers
            .back_mut()
            .filter(|newest| !newest.ended && header.id.is_none_or(|id| id == newest.id));
        let Some(transfer) = known else {
            // The bytes are passed over; the peer is told what it did.
            return Err(Violation::Unexpected);
        };
        transfer.announced = transfer.announced.checked_add(header.length).ok_or(Violation::Broken)?;
        transfer.ended = header.end;
        let end =
            if transfer.refused.is_some() && !transfer.dropped_silently { NEVER } else { transfer.announced };
        transfer.segments.push_back(UnansweredSegment { end, flags: header.flags });
        self.unanswered += 1;
        self.arriving = SegmentData::Payload;
        let number = transfer.number;
        if let Some(reason) = self.fault(&header, ending) {
            let newest = self.transfers.len() - 1;
            self.transfers[newest].segments.back_mut().expect("it was just added").end = NEVER;
            let released = self.refuse_at(newest, reason);
            let lost = (!header.start).then_some(BundlesIndication::Lost { transfer: number });
            return Ok(HeaderOutcome { indication: lost, released, refused: true });
        }
        let begin = BundlesIndication::Begin { transfer: number, length: header.total };
        Ok(HeaderOutcome { indication: header.start.then_some(begin), released: 0, refused: false })
    }

    /// Makes room for a new transfer behind the others.
    fn begin(&mut self, header: &SegmentHeader, number: TransferId) -> Result<(), Violation> {
        if let Some(newest) = self.transfers.back_mut() {
            // A refused transfer may break off; any other must reach its end first (RFC 9174 5.2.2).
            if !newest.ended && newest.refused.is_none() {
                return Err(Violation::Broken);
            }
            newest.ended = true;
            if newest.segments.is_empty() {
                self.transfers.pop_back();
            }
        }
        let id = header.id.unwrap_or(number.0);
        if self.transfers.iter().any(|transfer| transfer.id == id) {
            return Err(Violation::Broken);
        }
        if self.transfers.len() >= 2 * self.limits.transfers {
            return Err(Violation::Limit);
        }
        self.transfers.push_back(Inbound {
            number,
            id,
            total: header.total,
            announced: 0,
            received: 0,
            accepted: 0,
            segments: VecDeque::new(),
            ended: false,
            refused: None,
            dropped_silently: false,
        });
        Ok(())
    }

    /// Why the newest transfer is to be refused after this header, if it is.
    fn fault(&self, header: &SegmentHeader, ending: bool) -> Option<RefuseReason> {
        let transfer = self.transfers.back().expect("a segment belongs to the newest transfer");
        if transfer.refused.is_some() {
            return None;
        }
        if header.start && ending {
            return Some(RefuseReason::SessionTerminating);
        }
        if header.fault.is_some() {
            return header.fault;
        }
        if header.start && self.transfers.len() > self.limits.transfers {
            return Some(RefuseReason::NoResources);
        }
        if transfer.total.unwrap_or(0).max(transfer.announced) > self.limits.transfer_mru {
            return Some(RefuseReason::NoResources);
        }
        // The announced length is authoritative (RFC 9174 5.2.5.1).
        let total = transfer.total?;
        let wrong = transfer.announced > total || (transfer.ended && transfer.announced != total);
        wrong.then_some(RefuseReason::NotAcceptable)
    }

    /// Hears payload, no more than is expected: what rises, and how many bytes are not held.
    pub(super) fn payload(&mut self, data: Bytes) -> (Option<BundlesIndication>, u64) {
        let length = data.len() as u64;
        assert!(length <= self.expected, "payload beyond its segment");
        self.expected -= length;
        if self.arriving == SegmentData::Discard {
            return (None, length);
        }
        // A refused transfer may be answered and forgotten while its last segment still arrives.
        let Some(transfer) = self.transfers.back_mut().filter(|newest| newest.refused.is_none()) else {
            return (None, length);
        };
        transfer.received += length;
        self.held += length;
        let last = transfer.is_whole();
        if length == 0 && !last {
            return (None, 0);
        }
        (Some(BundlesIndication::Piece { transfer: transfer.number, data, last }), 0)
    }

    fn find(&self, number: TransferId) -> Option<usize> {
        self.transfers.binary_search_by_key(&number, |transfer| transfer.number).ok()
    }

    /// The user has the first `up_to` bytes safe: how many held bytes are free now. A transfer that is gone is
    /// none of the user's mistakes: it may have been lost while this was under way.
    pub(super) fn accept(&mut self, number: TransferId, up_to: u64) -> u64 {
        let Some(index) = self.find(number) else { return 0 };
        let transfer = &mut self.transfers[index];
        if transfer.refused.is_some() || up_to <= transfer.accepted {
            return 0;
        }
        assert!(up_to <= transfer.received, "accepted {up_to} of {} received bytes", transfer.received);
        let freed = up_to - transfer.accepted;
        transfer.accepted = up_to;
        self.held -= freed;
        freed
    }

    /// Whether the user may still refuse this transfer: it is not over.
    pub(super) fn may_refuse(&self, number: TransferId) -> bool {
        self.find(number).is_some_and(|index| {
            let transfer = &self.transfers[index];
            transfer.refused.is_none() && !transfer.is_safe()
        })
    }

    /// The user does not want a transfer: how many held bytes are free now.
    pub(super) fn refuse(&mut self, number: TransferId, reason: RefuseReason) -> u64 {
        match self.find(number) {
            Some(index) if self.may_refuse(number) => self.refuse_at(index, reason),
            _ => 0,
        }
    }

    fn refuse_at(&mut self, index: usize, reason: RefuseReason) -> u64 {
        let answer_each = self.limits.answer_each;
        let transfer = &mut self.transfers[index];
        let freed = transfer.received - transfer.accepted;
        transfer.refused = Some(reason);
        // What is safe is acknowledged first, segment by segment; then comes the refusal.
        let safe = transfer.segments.iter().take_while(|segment| segment.end <= transfer.accepted).count();
        if !answer_each && transfer.segments.len() > safe + 1 {
            self.unanswered -= transfer.segments.len() - (safe + 1);
            transfer.segments.truncate(safe + 1);
        }
        if transfer.segments.len() == safe && !answer_each {
            // All that came is safe; the refusal is of what is still to come.
            transfer.segments.push_back(UnansweredSegment { end: NEVER, flags: 0 });
            self.unanswered += 1;
        }
        self.held -= freed;
        freed
    }

    /// The user does not want a transfer and the peer cannot be told: what is still to come is dropped, and
    /// acknowledged as if it were safe. Right only for what the user has already, or where nothing is
    /// acknowledged.
    pub(super) fn swallow(&mut self, number: TransferId) -> u64 {
        let Some(index) = self.find(number).filter(|_| self.may_refuse(number)) else { return 0 };
        let transfer = &mut self.transfers[index];
        transfer.refused = Some(RefuseReason::Completed);
        transfer.dropped_silently = true;
        let freed = transfer.received - transfer.accepted;
        self.held -= freed;
        freed
    }

    /// The next answer that is due. One acknowledges all segments before it (RFC 7242 5.3), so that only the last of a
    /// window, the last of a bundle and the last before a refusal are said.
    pub(super) fn next_answer(&mut self) -> Option<SegmentAnswer> {
        loop {
            let transfer = self.transfers.front_mut()?;
            let segment = *transfer.segments.front()?;
            let safe = segment.end <= transfer.accepted || transfer.dropped_silently;
            let answer = match transfer.refused {
                _ if safe => SegmentAnswer::Ack { id: transfer.id, flags: segment.flags, up_to: segment.end },
                Some(_) if self.postponed_answer.is_some() => return self.postponed_answer.take(),
                Some(reason) => SegmentAnswer::Refuse { id: transfer.id, reason },
                None => return None,
            };
            transfer.segments.pop_front();
            self.unanswered -= 1;
            let ends = transfer.ended && transfer.segments.is_empty();
            if ends {
                self.transfers.pop_front();
            }
            self.unacknowledged_segments += 1;
            if safe && !ends && self.unacknowledged_segments < self.limits.ack_window {
                self.postponed_answer = Some(answer);
                continue;
            }
            (self.unacknowledged_segments, self.postponed_answer) = (0, None);
            return Some(answer);
        }
    }

    /// The session is over: every transfer that has not wholly risen is lost. Of one that has, the user may make
    /// what it likes; the peer believes that it has to come again.
    pub(super) fn lose_all(&mut self) -> impl Iterator<Item = BundlesIndication> + use<> {
        self.held = 0;
        self.expected = 0;
        self.unanswered = 0;
        (self.unacknowledged_segments, self.postponed_answer) = (0, None);
        core::mem::take(&mut self.transfers)
            .into_iter()
            .filter(|transfer| transfer.refused.is_none() && !transfer.is_whole())
            .map(|transfer| BundlesIndication::Lost { transfer: transfer.number })
    }
}
