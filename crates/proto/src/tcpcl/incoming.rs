//! Incoming transfers: received data, data accepted by the user, and pending responses.
//!
//! Responses are sent in the order in which segments arrived, across all transfers (RFC 7242 5.4; RFC 9174 5.2.4
//! requires it of refusals). A segment is acknowledged when the user has accepted all of it.

use super::config::Config;
use super::dialect::{SegmentAnswer, SegmentHeader};
use crate::service::{BundlesIndication, RefuseReason, TransferId};
use bytes::Bytes;
use std::collections::VecDeque;

/// Kind of protocol violation by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Violation {
    /// A message that is not allowed in this state: version 4 rejects it and continues (RFC 9174 5.1.2).
    Unexpected,
    /// The following data cannot be trusted: the session ends.
    Broken,
    /// A limit of this side was exceeded: the session ends.
    Limit,
}

/// Segment without a response.
#[derive(Clone, Copy, Debug)]
struct UnansweredSegment {
    /// End of the segment, as an offset in the transfer, bytes.
    end: u64,
    flags: u8,
}

/// End of a segment that is never accepted: its response is the refusal of its transfer.
const NEVER: u64 = u64::MAX;

/// Transfer that is arriving or has arrived, and has pending responses.
#[derive(Debug)]
struct Inbound {
    /// ID for the user.
    number: TransferId,
    /// Transfer ID of the peer.
    id: u64,
    /// Length of the bundle, bytes; `None` unless announced.
    total: Option<u64>,
    /// Bytes announced by the headers of the segments.
    announced: u64,
    /// Bytes received.
    received: u64,
    /// Bytes accepted by the user.
    accepted: u64,
    /// Segments without a response, oldest first.
    segments: VecDeque<UnansweredSegment>,
    /// The last segment has been received.
    ended: bool,
    /// Reason for the refusal, if the transfer is refused.
    refused: Option<RefuseReason>,
    /// The transfer is refused, but the peer does not support refusals: it is acknowledged and dropped.
    dropped_silently: bool,
}

impl Inbound {
    /// Returns true if the transfer has arrived completely.
    fn is_whole(&self) -> bool {
        self.ended && self.received == self.announced
    }

    /// Returns true if the transfer has arrived completely and is accepted.
    fn is_safe(&self) -> bool {
        self.is_whole() && self.accepted == self.received
    }
}

/// Kind of data between two segment headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentData {
    /// Payload of the newest transfer.
    Payload,
    /// Payload without a transfer.
    Discard,
}

/// All incoming transfers of one session.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Transfers with pending responses, oldest first; only the newest may still be arriving.
    transfers: VecDeque<Inbound>,
    /// Payload bytes of the current segment that have not arrived, and their kind.
    expected: u64,
    arriving: SegmentData,
    /// Number of segments without a response, in all transfers.
    unanswered: usize,
    /// Payload bytes received and neither accepted nor refused: they are not released to the stream.
    held: u64,
    /// Accepted segments since the last acknowledgement, and the acknowledgement that is deferred.
    unacknowledged_segments: u32,
    postponed_answer: Option<SegmentAnswer>,
    limits: Limits,
}

/// Limits for incoming transfers.
#[derive(Clone, Copy, Debug)]
struct Limits {
    segment_mru: u64,
    transfer_mru: u64,
    transfers: usize,
    segments: usize,
    /// Every segment has a response, even those of a refused transfer (RFC 7242 5.4).
    answer_each: bool,
    /// Accepted segments per acknowledgement.
    ack_window: u32,
}

/// Result of the header of a segment.
#[derive(Debug, Default)]
pub(super) struct HeaderOutcome {
    /// Indication for the user.
    pub(super) indication: Option<BundlesIndication>,
    /// Held bytes that can be released now.
    pub(super) released: u64,
    /// The transfer was refused because of this header.
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

    /// Returns the number of payload bytes before the next message.
    pub(super) fn expected(&self) -> u64 {
        self.expected
    }

    /// Returns the number of payload bytes that the user has neither accepted nor refused.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Returns true if nothing is arriving and every response has been sent.
    pub(super) fn is_idle(&self) -> bool {
        self.transfers.is_empty() && self.expected == 0
    }

    /// Processes the header of a segment. `number` is the ID of a new transfer for the user; `ending` means that no new
    /// transfer is accepted (RFC 9174 6.1).
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
            // The payload is skipped; the peer gets a rejection.
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

    /// Adds a new transfer.
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

    /// Returns the reason to refuse the newest transfer after this header, if any.
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

    /// Processes payload, at most as much as is expected. Returns the indication for the user, and the number of bytes
    /// that are not held.
    pub(super) fn payload(&mut self, data: Bytes) -> (Option<BundlesIndication>, u64) {
        let length = data.len() as u64;
        assert!(length <= self.expected, "payload beyond its segment");
        self.expected -= length;
        if self.arriving == SegmentData::Discard {
            return (None, length);
        }
        // A refused transfer may have its response sent and be removed while its last segment still arrives.
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

    /// Accepts the first `up_to` bytes of a transfer. Returns the number of held bytes that can be released. An unknown
    /// transfer is not an error of the user: it may have been lost in the meantime.
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

    /// Returns true if the user may still refuse this transfer: it has not ended.
    pub(super) fn may_refuse(&self, number: TransferId) -> bool {
        self.find(number).is_some_and(|index| {
            let transfer = &self.transfers[index];
            transfer.refused.is_none() && !transfer.is_safe()
        })
    }

    /// Refuses a transfer for the user. Returns the number of held bytes that can be released.
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
        // Accepted segments are acknowledged first, one by one; then follows the refusal.
        let safe = transfer.segments.iter().take_while(|segment| segment.end <= transfer.accepted).count();
        if !answer_each && transfer.segments.len() > safe + 1 {
            self.unanswered -= transfer.segments.len() - (safe + 1);
            transfer.segments.truncate(safe + 1);
        }
        if transfer.segments.len() == safe && !answer_each {
            // All received segments are accepted; the refusal is for the rest of the bundle.
            transfer.segments.push_back(UnansweredSegment { end: NEVER, flags: 0 });
            self.unanswered += 1;
        }
        self.held -= freed;
        freed
    }

    /// Refuses a transfer for the user if the peer does not support refusals: the rest is dropped, and acknowledged as
    /// if it were accepted. Correct only for bundles that the user has already, or without acknowledgements.
    pub(super) fn swallow(&mut self, number: TransferId) -> u64 {
        let Some(index) = self.find(number).filter(|_| self.may_refuse(number)) else { return 0 };
        let transfer = &mut self.transfers[index];
        transfer.refused = Some(RefuseReason::Completed);
        transfer.dropped_silently = true;
        let freed = transfer.received - transfer.accepted;
        self.held -= freed;
        freed
    }

    /// Returns the next pending response. An acknowledgement covers all segments before it (RFC 7242 5.3), so only
    /// those for the last segment of a window, of a bundle and before a refusal are sent.
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

    /// Ends all transfers with the session: every transfer that has not been delivered completely is lost. A completely
    /// delivered one remains with the user, although the peer will send it again.
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
