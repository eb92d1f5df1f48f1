//! Outgoing bundles: those that are open, and their bytes passed down, packed and acknowledged by the peer.

use super::wire::{data_bytes, encode_data};
use crate::codec::sdnv;
use crate::service::{BundlesIndication, RefuseReason, TransferFailure, TransferId};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// A message of the peer that contradicts the state of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Violation;

#[derive(Debug)]
struct Outbound {
    /// Number on the link; `None` until the bundle has begun there.
    number: Option<u64>,
    length: u64,
    handed: u64,
    packed: u64,
    acked: u64,
}

/// The outgoing bundles of a session.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    open: BTreeMap<TransferId, Outbound>,
    numbers: BTreeMap<u64, TransferId>,
    /// Number of bundles that have begun on the link.
    begun: u64,
    /// Bundle of the bytes packed last.
    latest: Option<TransferId>,
    pieces: VecDeque<(TransferId, Bytes)>,
    queued: u64,
    /// Bytes of open bundles that are still to be passed down.
    wanted: u64,
}

impl Outgoing {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns true if a bundle that is passed down completely waits for transmission or for its answer.
    pub(super) fn owes(&self) -> bool {
        !self.pieces.is_empty()
            || self.open.values().any(|open| open.number.is_some() && open.handed == open.length)
    }

    /// Returns the bytes packed and the total bytes of the bundles that have begun; `None` if there is none.
    pub(super) fn under_way(&self) -> Option<(u64, u64)> {
        let begun = self.open.values().filter(|open| open.number.is_some());
        begun.map(|open| (open.packed, open.length)).reduce(|sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Returns the bytes passed down and not packed.
    pub(super) fn queued(&self) -> u64 {
        self.queued
    }

    pub(super) fn has_pieces(&self) -> bool {
        !self.pieces.is_empty()
    }

    pub(super) fn wants_more(&self) -> bool {
        self.wanted > 0
    }

    /// Opens a bundle. Returns its failure if too many are open.
    ///
    /// # Panics
    /// Panics if the bundle is open already.
    pub(super) fn open(
        &mut self,
        transfer: TransferId,
        length: u64,
        most: usize,
    ) -> Option<BundlesIndication> {
        if self.open.len() >= most {
            let reason = TransferFailure::Refused(RefuseReason::NoResources);
            return Some(BundlesIndication::Failed { transfer, reason, acked: 0 });
        }
        let fresh = Outbound { number: None, length, handed: 0, packed: 0, acked: 0 };
        let twice = self.open.insert(transfer, fresh).is_some();
        assert!(!twice, "{transfer:?} is open already");
        self.wanted += length;
        None
    }

    /// Accepts bytes of a bundle. Those of a bundle that has failed are dropped.
    ///
    /// # Panics
    /// Panics if the bytes do not fit the length of the bundle.
    pub(super) fn piece(&mut self, transfer: TransferId, data: Bytes, last: bool) {
        let Some(open) = self.open.get_mut(&transfer) else { return };
        open.handed += data.len() as u64;
        assert!(open.handed <= open.length, "{transfer:?} is longer than announced");
        assert!(last == (open.handed == open.length), "{transfer:?} ends where its length does not");
        self.wanted -= data.len() as u64;
        self.queued += data.len() as u64;
        self.pieces.push_back((transfer, data));
    }

    /// Cancels a bundle for the user. Returns the number to cancel at the peer, and the indication for the user. A
    /// bundle that has gone out completely ends with the peer's answer.
    pub(super) fn cancel(
        &mut self,
        transfer: TransferId,
        keeps: bool,
    ) -> (Option<u64>, Option<BundlesIndication>) {
        let Some(open) = self.open.get(&transfer) else { return (None, None) };
        if open.number.is_some() && open.packed == open.length {
            return (None, None);
        }
        let (number, acked) = (open.number, if keeps { open.acked } else { 0 });
        self.forget(transfer);
        let reason = TransferFailure::Cancelled;
        (number, Some(BundlesIndication::Failed { transfer, reason, acked }))
    }

    fn forget(&mut self, transfer: TransferId) {
        let Some(open) = self.open.remove(&transfer) else { return };
        self.wanted -= open.length - open.handed;
        if let Some(number) = open.number {
            self.numbers.remove(&number);
        }
        let queued = &mut self.queued;
        self.pieces.retain(|(other, data)| {
            if *other == transfer {
                *queued -= data.len() as u64;
            }
            *other != transfer
        });
    }

    /// Appends pieces to `out`, up to `most` bytes in all. Returns the number of bundle bytes appended.
    pub(super) fn pack(&mut self, out: &mut BytesMut, most: usize) -> u64 {
        let before = self.queued;
        while let Some(&(transfer, _)) = self.pieces.front() {
            if !self.pack_run(transfer, out, most) {
                break;
            }
        }
        before - self.queued
    }

    /// Packs the pieces in front that belong to one bundle. Returns false if nothing may follow in the packet.
    fn pack_run(&mut self, transfer: TransferId, out: &mut BytesMut, most: usize) -> bool {
        let open = &self.open[&transfer];
        let begins = open.number.is_none().then_some(open.length);
        let named = open.number.filter(|_| self.latest != Some(transfer));
        let space = most.saturating_sub(out.len() + data_bytes(begins, named));
        let pieces = self.pieces.iter().take_while(|(other, _)| *other == transfer);
        let (count, run) = pieces.fold((0, 0), |(count, run), (_, data)| (count + 1, run + data.len()));
        let fits = out.len() + data_bytes(begins, named) <= most && (space > 0 || run == 0);
        if !fits {
            return false;
        }
        let more = self.pieces.len() > count && run + sdnv::length(run as u64) < space;
        let length = run.min(space);
        encode_data(begins, named, more.then_some(length as u64), out);
        let mut left = length;
        while let Some((_, data)) = self.pieces.front_mut().filter(|(other, _)| *other == transfer) {
            let part = data.split_to(data.len().min(left));
            left -= part.len();
            out.put_slice(&part);
            if !data.is_empty() {
                break;
            }
            self.pieces.pop_front();
        }
        self.queued -= length as u64;
        let open = self.open.get_mut(&transfer).expect("it was just found");
        open.packed += length as u64;
        if open.number.is_none() {
            open.number = Some(self.begun);
            self.numbers.insert(self.begun, transfer);
            self.begun += 1;
        }
        self.latest = Some(transfer);
        more
    }

    /// Handles the peer's acknowledgement of the beginning of a bundle (`up_to`), or of all of it. Ignores one for a
    /// cancelled bundle.
    pub(super) fn acknowledged(
        &mut self,
        number: u64,
        up_to: Option<u64>,
        keeps: bool,
    ) -> Result<Option<BundlesIndication>, Violation> {
        let Some(transfer) = self.numbered(number)? else { return Ok(None) };
        let open = self.open.get_mut(&transfer).expect("numbers are of open bundles");
        let Some(up_to) = up_to else {
            if open.packed != open.length {
                return Err(Violation);
            }
            self.forget(transfer);
            return Ok(Some(BundlesIndication::Sent { transfer }));
        };
        if up_to < open.acked || up_to > open.packed {
            return Err(Violation);
        }
        let further = up_to > open.acked;
        open.acked = up_to;
        Ok((keeps && further).then_some(BundlesIndication::Acked { transfer, up_to }))
    }

    /// Returns the bundle with this number; `None` if it is cancelled.
    fn numbered(&self, number: u64) -> Result<Option<TransferId>, Violation> {
        let transfer = self.numbers.get(&number).copied();
        if transfer.is_some() || number < self.begun { Ok(transfer) } else { Err(Violation) }
    }

    /// Handles the refusal of a bundle by the peer.
    pub(super) fn refused(
        &mut self,
        number: u64,
        reason: RefuseReason,
        keeps: bool,
    ) -> Result<Option<BundlesIndication>, Violation> {
        let Some(transfer) = self.numbered(number)? else { return Ok(None) };
        let acked = if keeps { self.open[&transfer].acked } else { 0 };
        self.forget(transfer);
        let reason = TransferFailure::Refused(reason);
        Ok(Some(BundlesIndication::Failed { transfer, reason, acked }))
    }

    /// Ends the session: every open bundle fails.
    pub(super) fn fail_all(&mut self, keeps: bool) -> impl Iterator<Item = BundlesIndication> + use<> {
        let open = core::mem::take(self).open;
        open.into_iter().map(move |(transfer, open)| BundlesIndication::Failed {
            transfer,
            reason: TransferFailure::LinkDown,
            acked: if keeps { open.acked } else { 0 },
        })
    }
}
