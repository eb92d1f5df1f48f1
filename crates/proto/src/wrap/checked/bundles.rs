//! The rules of [`Bundles`].

use super::account::{Room, rule};
use super::{CheckedService, ContractBreach};
use crate::service::{Bundles, BundlesIndication, BundlesRequest, TransferId};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
struct OutgoingAccount {
    length: u64,
    sent: u64,
    acked: u64,
    last: bool,
    cancelled: bool,
}

#[derive(Debug)]
struct IncomingAccount {
    length: Option<u64>,
    risen: u64,
    accepted: u64,
    last: bool,
}

/// The account of [`Bundles`] on one link. The documentation of the service lists the rules.
#[derive(Debug, Default)]
pub struct BundlesAccount {
    up: bool,
    interleave: bool,
    /// True after `Close` while the link is up.
    closing: bool,
    room: Room,
    outgoing: BTreeMap<TransferId, OutgoingAccount>,
    /// The outgoing transfer that occupies the line if transfers may not alternate.
    busy: Option<TransferId>,
    used: BTreeSet<TransferId>,
    incoming: BTreeMap<TransferId, IncomingAccount>,
    /// Incoming transfers of this session that are over.
    over: BTreeSet<TransferId>,
}

impl BundlesAccount {
    fn outgoing(&mut self, transfer: TransferId) -> Result<&mut OutgoingAccount, ContractBreach> {
        rule(self.used.contains(&transfer), format_args!("{transfer:?} was never opened"))?;
        let entry = self.outgoing.get_mut(&transfer);
        entry.ok_or_else(|| ContractBreach(format!("{transfer:?} has ended")))
    }

    fn acknowledged(&mut self, transfer: TransferId, up_to: u64) -> Result<(), ContractBreach> {
        let entry = self.outgoing(transfer)?;
        let (sent, before) = (entry.sent, entry.acked);
        rule(up_to <= sent, format_args!("{up_to} bytes acknowledged of {sent} sent"))?;
        rule(up_to >= before, format_args!("{up_to} bytes acknowledged after {before}"))?;
        entry.acked = up_to;
        Ok(())
    }

    fn end_outgoing(&mut self, transfer: TransferId) {
        self.outgoing.remove(&transfer);
        if self.busy == Some(transfer) {
            self.busy = None;
        }
    }

    fn end_incoming(&mut self, transfer: TransferId) {
        self.incoming.remove(&transfer);
        self.over.insert(transfer);
    }

    fn user_piece(&mut self, transfer: TransferId, bytes: u64, last: bool) -> Result<(), ContractBreach> {
        self.room.spend(bytes)?;
        if let Some(busy) = self.busy
            && !self.interleave
        {
            rule(busy == transfer, format_args!("a piece while {busy:?} has the line"))?;
        }
        let entry = self.outgoing(transfer)?;
        rule(!entry.cancelled, format_args!("a piece after Cancel"))?;
        rule(!entry.last, format_args!("a piece after the last"))?;
        rule(bytes > 0 || entry.length == 0, format_args!("a piece without a byte"))?;
        entry.sent += bytes;
        entry.last = last;
        let (sent, length) = (entry.sent, entry.length);
        rule(sent <= length, format_args!("{sent} bytes of a bundle of {length}"))?;
        rule(last == (sent == length), format_args!("last is {last} after {sent} bytes of {length}"))?;
        self.busy = (!last).then_some(transfer);
        Ok(())
    }

    fn provider_piece(&mut self, transfer: TransferId, bytes: u64, last: bool) -> Result<(), ContractBreach> {
        rule(!self.over.contains(&transfer), format_args!("a piece of what is over"))?;
        let entry = self.incoming.get_mut(&transfer);
        let entry = entry.ok_or_else(|| ContractBreach("a piece of what has not begun".to_owned()))?;
        rule(!entry.last, format_args!("a piece after the last"))?;
        rule(bytes > 0 || last, format_args!("a piece without a byte"))?;
        entry.risen += bytes;
        entry.last = last;
        let risen = entry.risen;
        if let Some(length) = entry.length {
            rule(risen <= length, format_args!("{risen} bytes of a bundle of {length} have risen"))?;
            rule(!last || risen == length, format_args!("the last piece at {risen} of {length} bytes"))?;
        }
        Ok(())
    }
}

impl CheckedService for Bundles {
    type Account = BundlesAccount;

    fn request(account: &mut Self::Account, request: &Self::Request) -> Result<(), ContractBreach> {
        match request {
            BundlesRequest::Connect => account.closing = false,
            BundlesRequest::Open { transfer, length, .. } => {
                rule(account.up, format_args!("Open while the link is not up"))?;
                rule(account.used.insert(*transfer), format_args!("{transfer:?} is used twice"))?;
                let fresh =
                    OutgoingAccount { length: *length, sent: 0, acked: 0, last: false, cancelled: false };
                account.outgoing.insert(*transfer, fresh);
            }
            BundlesRequest::Piece { transfer, data, last } => {
                account.user_piece(*transfer, data.len() as u64, *last)?;
            }
            BundlesRequest::Cancel { transfer } => {
                account.outgoing(*transfer)?.cancelled = true;
                if account.busy == Some(*transfer) {
                    account.busy = None;
                }
            }
            BundlesRequest::Accept { transfer, up_to } => {
                let Some(entry) = account.incoming.get_mut(transfer) else {
                    // Stored too late: the transfer has broken off before.
                    return Ok(());
                };
                let (risen, before) = (entry.risen, entry.accepted);
                rule(*up_to <= risen, format_args!("accepts {up_to} bytes, but {risen} have risen"))?;
                rule(*up_to >= before, format_args!("accepts {up_to} bytes after {before}"))?;
                entry.accepted = *up_to;
                if entry.last && entry.accepted == entry.risen {
                    account.end_incoming(*transfer);
                }
            }
            BundlesRequest::Refuse { transfer, .. } => account.end_incoming(*transfer),
            BundlesRequest::Close => account.closing = account.up,
        }
        Ok(())
    }

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        match indication {
            BundlesIndication::Up { interleave, .. } => {
                rule(!account.up, format_args!("Up twice"))?;
                account.up = true;
                account.interleave = *interleave;
                account.over.clear();
            }
            BundlesIndication::Amateur => {}
            BundlesIndication::Peer { .. } => {
                rule(account.up, format_args!("Peer while the link is not up"))?;
            }
            BundlesIndication::Down { .. } => {
                let open: Vec<_> = account.outgoing.keys().collect();
                rule(open.is_empty(), format_args!("Down without a terminal indication for {open:?}"))?;
                let broken: Vec<_> = account.incoming.iter().filter(|(_, entry)| !entry.last).collect();
                rule(broken.is_empty(), format_args!("Down without Lost for {broken:?}"))?;
                account.up = false;
                account.closing = false;
                account.room = Room(0);
                account.busy = None;
                account.incoming.clear();
            }
            BundlesIndication::Room(room) => {
                rule(account.up || *room == 0, format_args!("room while the link is not up"))?;
                account.room = Room(*room);
            }
            BundlesIndication::Begin { transfer, length } => {
                rule(account.up, format_args!("Begin while the link is not up"))?;
                let new = !account.over.contains(transfer) && !account.incoming.contains_key(transfer);
                rule(new, format_args!("{transfer:?} begins twice"))?;
                let fresh = IncomingAccount { length: *length, risen: 0, accepted: 0, last: false };
                account.incoming.insert(*transfer, fresh);
            }
            BundlesIndication::Piece { transfer, data, last } => {
                account.provider_piece(*transfer, data.len() as u64, *last)?;
            }
            BundlesIndication::Acked { transfer, up_to } => account.acknowledged(*transfer, *up_to)?,
            BundlesIndication::Sent { transfer } => {
                let entry = account.outgoing(*transfer)?;
                rule(entry.last, format_args!("Sent after {} of {} bytes", entry.sent, entry.length))?;
                account.end_outgoing(*transfer);
            }
            BundlesIndication::Failed { transfer, acked, .. } => {
                account.acknowledged(*transfer, *acked)?;
                account.end_outgoing(*transfer);
            }
            BundlesIndication::Lost { transfer } => {
                let is_open = account.incoming.contains_key(transfer);
                rule(is_open, format_args!("Lost without an incoming transfer"))?;
                account.end_incoming(*transfer);
            }
        }
        Ok(())
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        let mut owed: Vec<_> = account
            .outgoing
            .iter()
            .filter(|(_, entry)| entry.last || entry.cancelled)
            .map(|(transfer, _)| format!("the end of {transfer:?}"))
            .collect();
        if account.closing {
            owed.push("Down".to_owned());
        }
        owed
    }
}
