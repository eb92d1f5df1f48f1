//! Bundles to send, in their blocks.

use super::config::{BlockFormat, Config};
use super::segments::{BUNDLES, SERVICE_DATA};
use super::sessions::{FailureCause, Sessions};
use super::wire::CancelReason;
use crate::service::{BundlesIndication, RefuseReason, TransferFailure, TransferId};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Bundle in a block.
#[derive(Debug)]
struct Packed {
    transfer: TransferId,
    /// Beginning in the block, with the client service ID if it has one.
    start: u64,
    length: u64,
    given: u64,
}

impl Packed {
    fn is_complete(&self) -> bool {
        self.given == self.length
    }
}

/// Block that has no final length.
#[derive(Clone, Copy, Debug)]
struct Filling {
    number: u64,
    bytes: u64,
    /// A bundle has begun and not ended.
    is_midway: bool,
    /// Time for more bundles is over.
    wait_is_over: bool,
}

/// Outgoing bundles, open or in blocks.
#[derive(Debug)]
pub(super) struct Packing {
    /// Lengths of the bundles that have not begun.
    open: BTreeMap<TransferId, u64>,
    filling: Option<Filling>,
    /// Bundles of each block, in order.
    blocks: BTreeMap<u64, Vec<Packed>>,
    /// Block of each bundle that has begun.
    places: BTreeMap<TransferId, u64>,
    /// Number of bundles that are sent in blocks of their own, because the peer has refused a block of several.
    alone: usize,
}

impl Packing {
    pub(super) fn new() -> Self {
        Packing {
            open: BTreeMap::new(),
            filling: None,
            blocks: BTreeMap::new(),
            places: BTreeMap::new(),
            alone: 0,
        }
    }

    /// Opens a transfer. Returns the reason if it fails.
    pub(super) fn open(
        &mut self,
        transfer: TransferId,
        length: u64,
        bytes_max: u64,
        config: &Config,
    ) -> Option<TransferFailure> {
        if length > bytes_max {
            return Some(TransferFailure::TooLong);
        }
        if length == 0 {
            // An empty block cannot be sent.
            return Some(TransferFailure::Refused(RefuseReason::NotAcceptable));
        }
        if self.open.len() >= config.open_max {
            return Some(TransferFailure::Refused(RefuseReason::NoResources));
        }
        self.open.insert(transfer, length);
        None
    }

    /// Returns true if announced bundles have not begun.
    pub(super) fn expects_more(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns true if a block waits for more bundles, and for how long is still to be decided.
    pub(super) fn is_waiting(&self) -> bool {
        self.filling.is_some_and(|filling| !filling.is_midway && !filling.wait_is_over)
    }

    /// Ends the time for more bundles.
    pub(super) fn end_wait(&mut self) {
        if let Some(filling) = &mut self.filling {
            filling.wait_is_over = true;
        }
    }

    /// Returns the number of bytes that the bundle under way still needs; `None` between two bundles.
    pub(super) fn rest(&self) -> Option<u64> {
        let number = self.filling.filter(|filling| filling.is_midway)?.number;
        self.blocks[&number].last().map(|packed| packed.length - packed.given)
    }

    /// Returns true if another bundle may begin.
    pub(super) fn may_begin(&self, sessions: &Sessions) -> bool {
        let begun = sessions.outgoing.len() - usize::from(self.filling.is_some());
        let (held, _) = sessions.outgoing_bytes();
        begun < sessions.config.sessions_max && held < sessions.config.outgoing_bytes_max
    }

    /// Adds bytes of a bundle to its block.
    pub(super) fn piece(&mut self, sessions: &mut Sessions, transfer: TransferId, data: Bytes, last: bool) {
        if let Some(length) = self.open.remove(&transfer) {
            self.begin(sessions, transfer, length);
        }
        let Some(&number) = self.places.get(&transfer) else { return };
        let Some(filling) = self.filling.as_mut().filter(|filling| filling.number == number) else { return };
        let packed = self.blocks.get_mut(&number).and_then(|block| block.last_mut()).expect("it has begun");
        packed.given += data.len() as u64;
        filling.bytes += data.len() as u64;
        filling.is_midway = !last;
        filling.wait_is_over = sessions.config.aggregation_wait.is_zero();
        sessions.append(number, data);
        let is_full = filling.bytes >= sessions.config.block_bytes || self.is_single(&sessions.config);
        if last && is_full {
            self.finish(sessions);
        }
        if last {
            self.alone = self.alone.saturating_sub(1);
        }
    }

    fn is_single(&self, config: &Config) -> bool {
        config.block_format == BlockFormat::Single || self.alone > 0
    }

    /// Begins a bundle, in the present block if it fits.
    fn begin(&mut self, sessions: &mut Sessions, transfer: TransferId, length: u64) {
        let fits = |filling: &Filling| filling.bytes + length <= sessions.config.block_bytes;
        if !self.filling.as_ref().is_some_and(fits) || self.is_single(&sessions.config) {
            self.finish(sessions);
        }
        let has_services = sessions.config.block_format == BlockFormat::ServiceData;
        if self.filling.is_none() {
            let client = if has_services { SERVICE_DATA } else { BUNDLES };
            let number = sessions.begin(client, sessions.config.green.then_some(0));
            self.filling = Some(Filling { number, bytes: 0, is_midway: false, wait_is_over: false });
        }
        let filling = self.filling.as_mut().expect("it was just begun");
        let packed = Packed { transfer, start: filling.bytes, length, given: 0 };
        self.blocks.entry(filling.number).or_default().push(packed);
        self.places.insert(transfer, filling.number);
        if has_services {
            sessions.append(filling.number, Bytes::from_static(&[BUNDLES as u8]));
            filling.bytes += 1;
        }
    }

    /// Gives the present block its length.
    fn finish(&mut self, sessions: &mut Sessions) {
        if let Some(filling) = self.filling.take() {
            sessions.finish(filling.number);
        }
    }

    /// Finishes the present block if only its end is left to send, and no more bundles are waited for.
    pub(super) fn finish_if_due(&mut self, sessions: &mut Sessions) {
        let Some(filling) = self.filling.filter(|filling| !filling.is_midway) else { return };
        let waits = self.expects_more() && !filling.wait_is_over && self.may_begin(sessions);
        if sessions.waiting_block() == Some(filling.number) && !waits {
            self.finish(sessions);
        }
    }

    /// Cancels a transfer. Returns the failures of all transfers that end with it.
    pub(super) fn cancel(
        &mut self,
        sessions: &mut Sessions,
        transfer: TransferId,
    ) -> Vec<(TransferId, TransferFailure)> {
        let cancelled = (transfer, TransferFailure::Cancelled);
        if self.open.remove(&transfer).is_some() {
            return vec![cancelled];
        }
        let Some(&number) = self.places.get(&transfer) else { return Vec::new() };
        let block = self.blocks.get_mut(&number).expect("it is in the block");
        let index = block.iter().position(|packed| packed.transfer == transfer).expect("it is in the block");
        let (start, is_complete) = (block[index].start, block[index].is_complete());
        let is_last = index + 1 == block.len();
        let is_filling = self.filling.is_some_and(|filling| filling.number == number);
        if block.len() > 1 && is_last && is_filling && sessions.sent(number) <= start {
            // Nothing of it has left: the block continues without it.
            block.pop();
            self.places.remove(&transfer);
            sessions.truncate(number, start);
            let filling = self.filling.as_mut().expect("it is being filled");
            (filling.bytes, filling.is_midway, filling.wait_is_over) = (start, false, true);
            return vec![cancelled];
        }
        if block.len() > 1 && is_complete {
            // It cannot be separated from the others; it ends with them.
            return Vec::new();
        }
        if is_filling {
            self.filling = None;
        }
        let ended = self.remove(number);
        match sessions.sent(number) {
            0 => sessions.discard(number),
            _ => sessions.cancel_outgoing(number, CancelReason::ClientCancelled),
        }
        let failure = |other| if other == transfer { cancelled.1 } else { TransferFailure::LinkDown };
        ended.into_iter().map(|other| (other, failure(other))).collect()
    }

    /// Removes a block; returns its bundles.
    fn remove(&mut self, number: u64) -> Vec<TransferId> {
        let block = self.blocks.remove(&number).unwrap_or_default();
        if self.filling.is_some_and(|filling| filling.number == number) {
            self.filling = None;
        }
        let ended: Vec<_> = block.into_iter().map(|packed| packed.transfer).collect();
        for transfer in &ended {
            self.places.remove(transfer);
        }
        ended
    }

    /// Ends a block that the peer has received. Returns the number of its bundles.
    pub(super) fn completed(&mut self, number: u64, up: &mut VecDeque<BundlesIndication>) -> u64 {
        let ended = self.remove(number);
        let count = ended.len() as u64;
        up.extend(ended.into_iter().map(|transfer| BundlesIndication::Sent { transfer }));
        count
    }

    /// Ends a block that was cancelled. A refusal may concern one bundle of several: each is then sent by itself.
    pub(super) fn failed(&mut self, number: u64, cause: FailureCause, up: &mut VecDeque<BundlesIndication>) {
        let ended = self.remove(number);
        let is_single = ended.len() <= 1;
        let reason = match cause {
            FailureCause::Unfinished
            | FailureCause::Peer(CancelReason::RetransmissionLimit | CancelReason::CycleLimit) => {
                TransferFailure::LinkDown
            }
            FailureCause::Peer(CancelReason::Unreachable) if is_single => {
                TransferFailure::Refused(RefuseReason::NotAcceptable)
            }
            FailureCause::Peer(CancelReason::Unreachable | CancelReason::ClientCancelled) => {
                self.alone = if is_single { self.alone } else { self.alone.saturating_add(ended.len()) };
                TransferFailure::Refused(RefuseReason::NoResources)
            }
            FailureCause::Peer(_) => TransferFailure::Refused(RefuseReason::NoResources),
        };
        up.extend(ended.into_iter().map(|transfer| failed(transfer, reason)));
    }

    /// Ends all transfers, because the link is down.
    pub(super) fn fail_all(&mut self, up: &mut VecDeque<BundlesIndication>) {
        let open = core::mem::take(&mut self.open).into_keys();
        let begun = core::mem::take(&mut self.places).into_keys();
        up.extend(open.chain(begun).map(|transfer| failed(transfer, TransferFailure::LinkDown)));
        self.blocks.clear();
        self.filling = None;
    }
}

/// Returns the indication that a transfer has failed.
pub(super) fn failed(transfer: TransferId, reason: TransferFailure) -> BundlesIndication {
    BundlesIndication::Failed { transfer, reason, acked: 0 }
}
