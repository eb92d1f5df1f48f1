//! Transfers that go out: which are open, which are under way, what of them the peer has.

use super::config::Config;
use super::dialect::SegmentToSend;
use super::incoming::Violation;
use crate::service::{BundlesIndication, RefuseReason, TransferFailure, TransferId};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// A transfer that has begun and is not wholly answered.
#[derive(Debug)]
struct Outbound {
    /// What the user knows it by.
    transfer: TransferId,
    /// What it is known by on the wire; rises by one with each.
    id: u64,
    /// The bundle's length.
    length: u64,
    /// Bytes that the user has handed down.
    given: u64,
    /// Bytes in segments that were made.
    sent: u64,
    /// The first segment was made.
    started: bool,
    /// The last segment was made.
    finished: bool,
    /// Bytes that the peer has safe.
    acked: u64,
    /// Ends of the segments that were made and not answered, oldest first.
    segments: VecDeque<u64>,
    /// The user has had its terminal indication.
    over: bool,
    /// The peer refused it.
    refused: bool,
}

/// Bytes on their way into segments.
#[derive(Debug)]
struct Piece {
    id: u64,
    data: Bytes,
    last: bool,
}

/// All transfers that go out over one session.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Announced, not begun: their lengths.
    open: BTreeMap<TransferId, u64>,
    /// Begun and not wholly answered, oldest first.
    begun: VecDeque<Outbound>,
    next_id: u64,
    /// The transfer that has begun and whose end has not been handed down: no other may begin.
    current: Option<u64>,
    pieces: VecDeque<Piece>,
    /// Bytes in `pieces`.
    queued: u64,
    /// Bytes of open and begun transfers that are still to be handed down.
    wanted: u64,
    open_max: usize,
    transfers_max: usize,
    /// The peer answers segments.
    answered: bool,
    /// The peer keeps the acknowledged beginning of what breaks.
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

    /// Nothing is open and nothing under way.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.begun.is_empty()
    }

    /// Nothing is under way.
    pub(super) fn is_answered(&self) -> bool {
        self.begun.is_empty()
    }

    /// A transfer has begun and is not handed down to its end, or not sent to its end.
    pub(super) fn is_midway(&self) -> bool {
        self.current.is_some() || !self.pieces.is_empty()
    }

    /// Segments wait for an answer, or to be made.
    pub(super) fn is_under_way(&self) -> bool {
        !self.pieces.is_empty() || self.awaits_answers()
    }

    /// Segments wait for an answer.
    pub(super) fn awaits_answers(&self) -> bool {
        self.begun.iter().any(|transfer| !transfer.segments.is_empty())
    }

    /// Bytes handed down and not yet in segments, and in how many pieces.
    pub(super) fn queued(&self) -> (u64, u64) {
        (self.queued, self.pieces.len() as u64)
    }

    /// Bytes still to be handed down for the transfers that are open.
    pub(super) fn wanted(&self) -> u64 {
        self.wanted
    }

    /// Whether more may be handed down: the transfer under way, or another if not too many are unanswered.
    pub(super) fn may_continue(&self, ending: bool) -> bool {
        self.current.is_some() || (!ending && self.begun.len() < self.transfers_max)
    }

    /// Whether the next segment may be the first of a bundle.
    pub(super) fn may_start(&self) -> bool {
        self.current.is_none()
    }

    /// Opens a transfer; the indication is that of a failure.
    ///
    /// # Panics
    /// If the transfer is open already.
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

    /// Takes bytes of a transfer. Those of one that has failed meanwhile are dropped.
    ///
    /// # Panics
    /// If another transfer is under way (they may not interleave), or if the bytes do not fit its length.
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

    /// The user gives a transfer up: what to tell it, and whether the receiver has its beginning. One that has
    /// wholly gone out ends as the peer says. One that is midway is cut short by an empty last segment: the
    /// receiver sees that it is not what was announced (RFC 9174 5.2.5.1).
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

    /// Forgets what was handed down of a transfer and is not in segments; nothing more of it is expected.
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

    /// Makes the next segment, of `bytes_max` bytes at the most; the indication is there where that alone ends the
    /// transfer.
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

    /// Hears that the peer has bytes safe. Without an id they are of the oldest transfer that waits and is not
    /// refused.
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
                // Refused transfers before it have had all the answers they will get.
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
        // One at a time of those that end here: an empty segment ends where the one before it does.
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

    /// Hears that the peer does not want a transfer. Without an id it is that of the oldest segment that waits,
    /// and the refusal answers that segment alone (RFC 7242 5.4).
    pub(super) fn refused(
        &mut self,
        id: Option<u64>,
        reason: RefuseReason,
    ) -> Result<Option<BundlesIndication>, Violation> {
        let index = match id {
            Some(id) => match self.find(id) {
                Some(index) => index,
                // Segments that were on their way are refused each (RFC 9174 5.2.4).
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

    /// The session is over: every transfer that is not, fails.
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
