//! User of a convergence layer.

use super::{Script, ScriptedSide};
use crate::service::{BundlesIndication, BundlesRequest, Priority, RefuseReason, TransferId};
use bytes::Bytes;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
struct Outgoing {
    length: u64,
    sent: u64,
    cancelled: bool,
}

impl Outgoing {
    fn has_ended(&self, opened: bool) -> bool {
        self.cancelled || (opened && self.sent == self.length)
    }
}

#[derive(Debug, Default)]
struct Incoming {
    risen: u64,
    accepted: u64,
    last: bool,
}

/// Sends bundles with arbitrary content, and accepts incoming ones.
#[derive(Debug, Default)]
pub(super) struct User {
    up: bool,
    room: u64,
    interleave: bool,
    next: u64,
    outgoing: BTreeMap<TransferId, Outgoing>,
    /// Transfer that has begun and not ended.
    busy: Option<TransferId>,
    incoming: BTreeMap<TransferId, Incoming>,
}

impl ScriptedSide<BundlesIndication, BundlesRequest> for User {
    fn hear(&mut self, indication: BundlesIndication) {
        match indication {
            BundlesIndication::Up { interleave, .. } => {
                self.up = true;
                self.interleave = interleave;
            }
            BundlesIndication::Down { .. } => {
                self.up = false;
                self.room = 0;
                self.busy = None;
                self.incoming.clear();
            }
            BundlesIndication::Room(room) => self.room = room,
            BundlesIndication::Begin { transfer, .. } => {
                self.incoming.insert(transfer, Incoming::default());
            }
            BundlesIndication::Piece { transfer, data, last } => {
                let incoming = self.incoming.get_mut(&transfer).expect("what is under way has begun");
                incoming.risen += data.len() as u64;
                incoming.last = last;
            }
            BundlesIndication::Acked { .. } | BundlesIndication::Peer { .. } | BundlesIndication::Amateur => {
            }
            BundlesIndication::Sent { transfer } | BundlesIndication::Failed { transfer, .. } => {
                self.outgoing.remove(&transfer);
                self.busy = self.busy.filter(|&busy| busy != transfer);
            }
            BundlesIndication::Lost { transfer } => drop(self.incoming.remove(&transfer)),
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<BundlesRequest> {
        match script.below(16) {
            0 | 1 => Some(BundlesRequest::Connect),
            2 => Some(BundlesRequest::Close),
            3..=5 if self.up => {
                let transfer = TransferId(self.next);
                self.next += 1;
                let length = (1 << script.below(12)) - 1;
                self.outgoing.insert(transfer, Outgoing { length, ..Default::default() });
                let priority = script.pick(&[Priority::Bulk, Priority::Normal, Priority::Expedited])?;
                Some(BundlesRequest::Open { transfer, priority, length })
            }
            6..=10 => self.piece(script),
            11 => {
                let open: Vec<_> = self.outgoing.iter().filter(|(_, out)| !out.has_ended(false)).collect();
                let transfer = script.pick(&open).map(|(transfer, _)| *transfer)?;
                self.outgoing.get_mut(&transfer)?.cancelled = true;
                self.busy = self.busy.filter(|&busy| busy != transfer);
                Some(BundlesRequest::Cancel { transfer })
            }
            12 => {
                let transfer = self.arriving(script)?;
                self.incoming.remove(&transfer);
                let reason = script.pick(&[RefuseReason::NoResources, RefuseReason::NotAcceptable])?;
                Some(BundlesRequest::Refuse { transfer, reason })
            }
            _ => {
                let transfer = self.arriving(script)?;
                let incoming = self.incoming.get_mut(&transfer)?;
                incoming.accepted += (incoming.risen - incoming.accepted) >> script.below(3);
                let up_to = incoming.accepted;
                if incoming.last && incoming.accepted == incoming.risen {
                    self.incoming.remove(&transfer);
                }
                Some(BundlesRequest::Accept { transfer, up_to })
            }
        }
    }
}

impl User {
    fn arriving(&self, script: &mut Script<'_>) -> Option<TransferId> {
        let arriving: Vec<_> = self.incoming.keys().copied().collect();
        script.pick(&arriving)
    }

    fn piece(&mut self, script: &mut Script<'_>) -> Option<BundlesRequest> {
        let may_speak = |(transfer, out): &(&TransferId, &Outgoing)| {
            let free = self.interleave || self.busy.is_none_or(|busy| busy == **transfer);
            free && !out.cancelled && (out.sent < out.length || out.length == 0)
        };
        let open: Vec<_> = self.outgoing.iter().filter(may_speak).map(|(transfer, _)| *transfer).collect();
        let transfer = script.pick(&open)?;
        let out = self.outgoing.get_mut(&transfer)?;
        let bytes = self.room.min(out.length - out.sent).min(1 << script.below(12));
        if bytes == 0 && out.length > 0 {
            return None;
        }
        self.room -= bytes;
        out.sent += bytes;
        let last = out.sent == out.length;
        self.busy = (!last).then_some(transfer);
        if out.length == 0 {
            // The empty piece of an empty bundle is sent once.
            out.length = 1;
            out.sent = 1;
        }
        Some(BundlesRequest::Piece { transfer, data: Bytes::from(vec![0x5a; bytes as usize]), last })
    }
}
