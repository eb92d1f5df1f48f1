//! Outgoing transfers: those open, those in progress, and their acknowledged parts.

use super::config::Config;
use super::dialect::SegmentToSend;
use super::incoming::Violation;
use crate::service::{BundlesIndication, RefuseReason, TransferFailure, TransferId};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Transfer that has begun and has segments without a response.
#[derive(Debug)]
struct Outbound {
    /// ID for the user.
    transfer: TransferId,
    /// Transfer ID on the wire; incremented by one per transfer.
    id: u64,
    /// Length of the bundle, bytes.
    length: u64,
    /// Bytes received from the user.
    given: u64,
    /// Bytes in segments built so far.
    sent: u64,
    /// The first segment has been built.
    started: bool,
    /// The last segment has been built.
    finished: bool,
    /// Bytes acknowledged by the peer.
    acked: u64,
    /// Ends of the segments without a response, oldest first.
    segments: VecDeque<u64>,
    /// The user has received the final indication.
    over: bool,
    /// The peer refused the transfer.
    refused: bool,
}

/// Bytes from the user that are not yet in segments.
#[derive(Debug)]
struct Piece {
    id: u64,
    data: Bytes,
    last: bool,
}

/// All outgoing transfers of one session.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Lengths of the transfers that are open and have not begun.
    open: BTreeMap<TransferId, u64>,
    /// Transfers that have begun and have segments without a response, oldest first.
    begun: VecDeque<Outbound>,
    next_id: u64,
    /// Transfer whose end the user has not passed down yet: no other may begin.
    current: Option<u64>,
    pieces: VecDeque<Piece>,
    /// Number of bytes in `pieces`.
    queued: u64,
    /// Bytes of open and begun transfers that the user has yet to pass down.
    wanted: u64,
    open_max: usize,
    transfers_max: usize,
    /// The peer acknowledges segments.
    answered: bool,
    /// The peer keeps the acknowledged part of a transfer that breaks off.
    prefix_kept: bool,
}

impl Outgoing {
    pub(super) fn new(config: &Config, answered: bool, prefix_kept: bool) -> Self {
        Outgoing {
            open: BTreeMap::new(),
            begun: VecDeque::new(),
            next_id: 0,
            current: None,
            pieces: VecDeque::new(),
            queued: 0,
            wanted: 0,
            open_max: config.open_max,
            transfers_max: config.transfers_max.max(1),
            answered,
            prefix_kept,
        }
    }

    /// Returns true if no transfer is open or in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.begun.is_empty()
    }

    /// Returns true if no transfer is in progress.
    pub(super) fn is_answered(&self) -> bool {
        self.begun.is_empty()
    }

    /// Returns true if a transfer has begun and its end has not been passed down, or not been sent.
    pub(super) fn is_midway(&self) -> bool {
        self.current.is_some() || !self.pieces.is_empty()
    }

    /// Returns true if segments wait for a response, or to be built.
    pub(super) fn is_under_way(&self) -> bool {
        !self.pieces.is_empty() || self.awaits_answers()
    }

    /// Returns true if segments wait for a response.
    pub(super) fn awaits_answers(&self) -> bool {
        self.begun.iter().any(|transfer| !transfer.segments.is_empty())
    }

    /// Returns the number of bytes from the user that are not in segments, and the number of their pieces.
    pub(super) fn queued(&self) -> (u64, u64) {
        (self.queued, self.pieces.len() as u64)
    }

    /// Returns the number of bytes that the user has yet to pass down for open transfers.
    pub(super) fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Returns true if the user may pass down more: data of the current transfer, or another transfer if not too many
    /// are unanswered.
    pub(super) fn may_continue(&self, ending: bool) -> bool {
        self.current.is_some() || (!ending && self.begun.len() < self.transfers_max)
    }

    /// Returns true if the next segment may be the first of a bundle.
    pub(super) fn may_start(&self) -> bool {
        self.current.is_none()
    }

    /// Opens a transfer. Returns an indication if it fails.
    ///
    /// # Panics
    /// Panics if the transfer is open already.
    pub(super) fn open(&mut self, transfer: TransferId, length: u64, mtu: u64) -> Option<BundlesIndication> {
        let failed = |reason| Some(BundlesIndication::Failed { transfer, reason, acked: 0 });
        if length > mtu {
            return failed(TransferFailure::TooLong);
        }
        if self.open.len() >= self.open_max {
            return failed(TransferFailure::Refused(RefuseReason::NoResources));
        }
        let twice = self.open.insert(transfer, length).is_some();
        assert!(!twice, "{transfer:?} is open already");
        self.wanted = self.wanted.saturating_add(length);
        None
    }

    /// Accepts bytes of a transfer from the user. Those of a transfer that has failed are dropped.
    ///
    /// # Panics
    /// Panics if another transfer is in progress (transfers must not interleave), or if the bytes do not match the
    /// length of the transfer.
    pub(super) fn piece(&mut self, transfer: TransferId, data: Bytes, last: bool) {
        let index = match self.open.remove(&transfer) {
            Some(length) => Some(self.begin(transfer, length)),
            None => self.begun.iter().rposition(|begun| begun.transfer == transfer),
        };
        let Some(index) = index else { return };
        let begun = &mut self.begun[index];
        if begun.over {
            return;
        }
        assert!(self.current == Some(begun.id), "transfers may not interleave: {transfer:?}");
        begun.given += data.len() as u64;
        assert!(begun.given <= begun.length, "{transfer:?} is longer than announced");
        assert!(last == (begun.given == begun.length), "{transfer:?} ends where its length does not");
        self.wanted = self.wanted.saturating_sub(data.len() as u64);
        self.queued += data.len() as u64;
        if last {
            self.current = None;
        }
        self.pieces.push_back(Piece { id: begun.id, data, last });
    }

    fn begin(&mut self, transfer: TransferId, length: u64) -> usize {
        assert!(self.current.is_none(), "transfers may not interleave: {transfer:?}");
        let id = self.next_id;
        self.next_id += 1;
        self.current = Some(id);
        self.begun.push_back(Outbound {
            transfer,
            id,
            length,
            given: 0,
            sent: 0,
            started: false,
            finished: false,
            acked: 0,
            segments: VecDeque::new(),
            over: false,
            refused: false,
        });
        self.begun.len() - 1
    }

    fn find(&self, id: u64) -> Option<usize> {
        self.begun.binary_search_by_key(&id, |begun| begun.id).ok()
    }

    /// Cancels a transfer for the user. Returns the indication, and true if the receiver has its beginning. A transfer
    /// that has been sent completely ends with the peer's response. One in progress is ended by an empty last segment:
    /// the receiver sees that its length differs from the announced one (RFC 9174 5.2.5.1).
    pub(super) fn cancel(&mut self, transfer: TransferId) -> (Option<BundlesIndication>, bool) {
        let cancelled =
            |acked| Some(BundlesIndication::Failed { transfer, reason: TransferFailure::Cancelled, acked });
        if let Some(length) = self.open.remove(&transfer) {
            self.wanted = self.wanted.saturating_sub(length);
            return (cancelled(0), false);
        }
        let found = self.begun.iter().rposition(|begun| begun.transfer == transfer);
        let Some(index) = found.filter(|&index| !self.begun[index].over && !self.begun[index].finished)
        else {
            return (None, false);
        };
        let id = self.begun[index].id;
        self.abandon(index);
        let begun = &mut self.begun[index];
        let acked = if self.prefix_kept { begun.acked } else { 0 };
        let started = begun.started;
        if started {
            self.pieces.push_back(Piece { id, data: Bytes::new(), last: true });
        } else {
            self.begun.remove(index);
        }
        (cancelled(acked), started)
    }

    /// Drops the bytes of a transfer that are not in segments; no more are expected.
    fn abandon(&mut self, index: usize) {
        let begun = &mut self.begun[index];
        let id = begun.id;
        begun.over = true;
        self.wanted = self.wanted.saturating_sub(begun.length - begun.given);
        if self.current == Some(id) {
            self.current = None;
        }
        let queued = &mut self.queued;
        self.pieces.retain(|piece| {
            if piece.id == id {
                *queued -= piece.data.len() as u64;
            }
            piece.id != id
        });
    }

    /// Builds the next segment, of at most `bytes_max` bytes. The indication is present if the segment by itself ends
    /// the transfer.
    pub(super) fn next_segment(
        &mut self,
        bytes_max: u64,
    ) -> Option<(SegmentToSend, Bytes, Option<BundlesIndication>)> {
        let piece = self.pieces.front_mut()?;
        let bytes = (piece.data.len() as u64).min(bytes_max.max(1));
        let data = piece.data.split_to(bytes as usize);
        let end = piece.last && piece.data.is_empty();
        let id = piece.id;
        if piece.data.is_empty() {
            self.pieces.pop_front();
        }
        self.queued -= bytes;
        let index = self.find(id).expect("a piece belongs to a transfer under way");
        let begun = &mut self.begun[index];
        let say = SegmentToSend { id, start: !begun.started, end, length: bytes, total: begun.length };
        begun.started = true;
        begun.sent += bytes;
        begun.finished = end;
        if self.answered {
            begun.segments.push_back(begun.sent);
            return Some((say, data, None));
        }
        let sent = (end && !begun.over).then_some(BundlesIndication::Sent { transfer: begun.transfer });
        if end {
            self.begun.remove(index);
        }
        Some((say, data, sent))
    }

    /// Processes an acknowledgement. Without an ID it belongs to the oldest waiting transfer that is not refused.
    pub(super) fn ack(
        &mut self,
        id: Option<u64>,
        up_to: u64,
    ) -> Result<Option<BundlesIndication>, Violation> {
        let index = match id {
            Some(id) => self.find(id).ok_or(Violation::Unexpected)?,
            None => {
                let waiting = |begun: &Outbound| !begun.refused && !begun.segments.is_empty();
                let index = self.begun.iter().position(waiting).ok_or(Violation::Broken)?;
                // Refused transfers before this one have received all their responses.
                self.begun.drain(..index);
                let boundary = self.begun[0].segments.contains(&up_to);
                if !boundary {
                    return Err(Violation::Broken);
                }
                0
            }
        };
        let begun = &mut self.begun[index];
        if up_to > begun.sent || up_to < begun.acked {
            return Err(Violation::Broken);
        }
        if begun.refused {
            return Ok(None);
        }
        while begun.segments.front().is_some_and(|&end| end < up_to) {
            begun.segments.pop_front();
        }
        // Of several segments with this end only one is removed: an empty segment has the end of the one before it.
        if begun.segments.front() == Some(&up_to) {
            begun.segments.pop_front();
        }
        let progress = up_to > begun.acked;
        begun.acked = up_to;
        let transfer = begun.transfer;
        if begun.finished && begun.segments.is_empty() {
            let over = begun.over;
            self.begun.remove(index);
            return Ok((!over).then_some(BundlesIndication::Sent { transfer }));
        }
        let tell = progress && self.prefix_kept && !begun.over;
        Ok(tell.then_some(BundlesIndication::Acked { transfer, up_to }))
    }

    /// Processes a refusal. Without an ID it belongs to the transfer of the oldest waiting segment, and is the response
    /// to that segment alone (RFC 7242 5.4).
    pub(super) fn refused(
        &mut self,
        id: Option<u64>,
        reason: RefuseReason,
    ) -> Result<Option<BundlesIndication>, Violation> {
        let index = match id {
            Some(id) => match self.find(id) {
                Some(index) => index,
                // Each segment that was in transit is refused (RFC 9174 5.2.4).
                None if id < self.next_id => return Ok(None),
                None => return Err(Violation::Unexpected),
            },
            None => match self.begun.iter().position(|begun| !begun.segments.is_empty()) {
                Some(index) => index,
                None => return Ok(None),
            },
        };
        if id.is_none() {
            self.begun[index].segments.pop_front();
        } else {
            self.begun[index].segments.clear();
        }
        let already_over = self.begun[index].over;
        self.begun[index].refused = true;
        self.abandon(index);
        let begun = &self.begun[index];
        let (transfer, acked) = (begun.transfer, if self.prefix_kept { begun.acked } else { 0 });
        if begun.segments.is_empty() {
            self.begun.remove(index);
        }
        let reason = TransferFailure::Refused(reason);
        Ok((!already_over).then_some(BundlesIndication::Failed { transfer, reason, acked }))
    }

    /// Ends all transfers with the session: every transfer that has not ended fails.
    pub(super) fn fail_all(&mut self) -> impl Iterator<Item = BundlesIndication> + use<> {
        let prefix_kept = self.prefix_kept;
        self.pieces.clear();
        self.queued = 0;
        self.current = None;
        let begun = core::mem::take(&mut self.begun);
        let open = core::mem::take(&mut self.open);
        self.wanted = 0;
        begun
            .into_iter()
            .filter(|begun| !begun.over)
            .map(move |begun| link_down(begun.transfer, if prefix_kept { begun.acked } else { 0 }))
            .chain(open.into_keys().map(|transfer| link_down(transfer, 0)))
    }
}

fn link_down(transfer: TransferId, acked: u64) -> BundlesIndication {
    BundlesIndication::Failed { transfer, reason: TransferFailure::LinkDown, acked }
}
