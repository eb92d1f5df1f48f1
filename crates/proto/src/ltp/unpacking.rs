//! Received bundles, in their blocks.

use super::segments::SERVICE_DATA;
use super::unpack::Unpacker;
use super::wire::{CancelReason, SessionId};
use crate::service::{BundlesIndication, RefuseReason, TransferId};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

/// Bundle of a block.
#[derive(Debug)]
struct Received {
    transfer: TransferId,
    /// Beginning in the block.
    start: u64,
    risen: u64,
    accepted: u64,
    /// All of it has risen.
    ended: bool,
    /// The user has it already: no more of it is indicated.
    is_dropped: bool,
}

impl Received {
    fn is_safe(&self) -> bool {
        self.ended && self.accepted == self.risen
    }
}

/// Block whose data are with the user.
#[derive(Debug)]
struct Block {
    unpacker: Unpacker,
    /// Number of bytes of the block so far.
    length: u64,
    ended: bool,
    /// Number of bundles so far.
    count: u64,
    /// Number of accepted bytes that the session knows of.
    told: u64,
    /// Bundles that are not accepted, and those after them.
    bundles: VecDeque<Received>,
}

/// Received bundles that are not accepted.
#[derive(Debug)]
pub(super) struct Unpacking {
    blocks: BTreeMap<SessionId, Block>,
    places: BTreeMap<TransferId, SessionId>,
    next_transfer: u64,
}

impl Unpacking {
    pub(super) fn new() -> Self {
        Unpacking { blocks: BTreeMap::new(), places: BTreeMap::new(), next_transfer: 0 }
    }

    /// Processes the next data of a block. Returns the number of bundles that ended with them.
    pub(super) fn hear(
        &mut self,
        session: SessionId,
        client: u64,
        data: Bytes,
        last: bool,
        up: &mut VecDeque<BundlesIndication>,
    ) -> u64 {
        let block = self.blocks.entry(session).or_insert_with(|| Block {
            unpacker: Unpacker::new(client == SERVICE_DATA),
            length: 0,
            ended: false,
            count: 0,
            told: 0,
            bundles: VecDeque::new(),
        });
        block.length += data.len() as u64;
        block.ended |= last;
        let mut ended = 0;
        for part in block.unpacker.split(data, last) {
            if part.begins {
                let transfer = TransferId(self.next_transfer);
                self.next_transfer += 1;
                block.count += 1;
                let bundle = Received {
                    transfer,
                    start: part.offset,
                    risen: 0,
                    accepted: 0,
                    ended: false,
                    is_dropped: false,
                };
                block.bundles.push_back(bundle);
                self.places.insert(transfer, session);
                up.push_back(BundlesIndication::Begin { transfer, length: None });
            }
            let bundle = block.bundles.back_mut().expect("a part belongs to the newest bundle");
            bundle.risen += part.data.len() as u64;
            bundle.ended = part.ends;
            ended += u64::from(part.ends);
            if bundle.is_dropped {
                bundle.accepted = bundle.risen;
            } else {
                let transfer = bundle.transfer;
                up.push_back(BundlesIndication::Piece { transfer, data: part.data, last: part.ends });
            }
        }
        ended
    }

    /// Returns the number of accepted bytes in order if it has changed.
    pub(super) fn progress(&mut self, session: SessionId) -> Option<u64> {
        let block = self.blocks.get_mut(&session)?;
        while block.bundles.front().is_some_and(Received::is_safe) {
            let bundle = block.bundles.pop_front().expect("just seen");
            self.places.remove(&bundle.transfer);
        }
        let accepted = block.bundles.front().map_or(block.length, |bundle| bundle.start + bundle.accepted);
        let has_changed = accepted > block.told;
        block.told = accepted;
        if block.ended && block.bundles.is_empty() {
            self.blocks.remove(&session);
        }
        has_changed.then_some(accepted)
    }

    /// Accepts the first bytes of a bundle for the user. Returns the block if it is known.
    pub(super) fn accept(&mut self, transfer: TransferId, up_to: u64) -> Option<SessionId> {
        let session = *self.places.get(&transfer)?;
        let bundle = self.find(session, transfer)?;
        assert!(up_to <= bundle.risen, "accepted {up_to} of {} received bytes", bundle.risen);
        bundle.accepted = bundle.accepted.max(up_to);
        Some(session)
    }

    fn find(&mut self, session: SessionId, transfer: TransferId) -> Option<&mut Received> {
        let block = self.blocks.get_mut(&session)?;
        block.bundles.iter_mut().find(|bundle| bundle.transfer == transfer)
    }

    /// Refuses a bundle for the user. Returns its block, and the reason to cancel it; `None` if it may continue because the
    /// user has this bundle already.
    pub(super) fn refuse(
        &mut self,
        transfer: TransferId,
        reason: RefuseReason,
    ) -> Option<(SessionId, Option<CancelReason>)> {
        let session = *self.places.get(&transfer)?;
        let is_single = self.blocks.get(&session).is_some_and(|block| block.count == 1);
        let bundle = self.find(session, transfer)?;
        bundle.is_dropped = true;
        Some(match reason {
            RefuseReason::Completed => {
                bundle.accepted = bundle.risen;
                (session, None)
            }
            // Which of several bundles is not acceptable cannot be said; the sender then sends each by itself.
            RefuseReason::NotAcceptable if is_single => (session, Some(CancelReason::Unreachable)),
            _ => (session, Some(CancelReason::ClientCancelled)),
        })
    }

    /// Ends a block that was cancelled or broke off. Bundles that have risen completely stay with the user.
    pub(super) fn lose(&mut self, session: SessionId, up: &mut VecDeque<BundlesIndication>) {
        let Some(block) = self.blocks.remove(&session) else { return };
        for Received { transfer, ended, is_dropped, .. } in block.bundles {
            self.places.remove(&transfer);
            if !ended && !is_dropped {
                up.push_back(BundlesIndication::Lost { transfer });
            }
        }
    }

    /// Ends all blocks, because the link is down.
    pub(super) fn lose_all(&mut self, up: &mut VecDeque<BundlesIndication>) {
        while let Some((session, _)) = self.blocks.first_key_value() {
            self.lose(*session, up);
        }
    }
}
