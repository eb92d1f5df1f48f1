//! The rules of [`App`].

use super::account::{Room, rule};
use super::{CheckedService, ContractBreach};
use crate::service::{App, AppIndication, AppRequest, DeliveryId, SendId};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
struct SendAccount {
    length: u64,
    handed: u64,
    accepted: bool,
    cancelled: bool,
}

#[derive(Debug, Default)]
struct DeliveryAccount {
    length: u64,
    taken: bool,
    gone: bool,
    /// Reads that are not fully answered: present offset and end.
    reads: Vec<(u64, u64)>,
}

/// The account of [`App`]. The documentation of the service lists the rules.
#[derive(Debug, Default)]
pub struct AppAccount {
    room: Room,
    sends: BTreeMap<SendId, SendAccount>,
    used: BTreeSet<SendId>,
    deliveries: BTreeMap<DeliveryId, DeliveryAccount>,
}

impl AppAccount {
    fn send(&mut self, send: SendId) -> Result<&mut SendAccount, ContractBreach> {
        rule(self.used.contains(&send), format_args!("{send:?} was never opened"))?;
        let entry = self.sends.get_mut(&send);
        entry.ok_or_else(|| ContractBreach(format!("{send:?} has ended")))
    }

    fn delivery(&mut self, delivery: DeliveryId) -> Result<&mut DeliveryAccount, ContractBreach> {
        match self.deliveries.get_mut(&delivery) {
            None => Err(ContractBreach(format!("{delivery:?} was never delivered"))),
            Some(entry) if entry.gone => Err(ContractBreach(format!("{delivery:?} is gone"))),
            Some(entry) => Ok(entry),
        }
    }
}

impl CheckedService for App {
    type Account = AppAccount;

    fn request(account: &mut Self::Account, request: &Self::Request) -> Result<(), ContractBreach> {
        match request {
            AppRequest::Send { send, length, .. } => {
                rule(account.used.insert(*send), format_args!("{send:?} is used twice"))?;
                let fresh = SendAccount { length: *length, handed: 0, accepted: false, cancelled: false };
                account.sends.insert(*send, fresh);
            }
            AppRequest::Piece { send, data } => {
                account.room.spend(data.len() as u64)?;
                let entry = account.send(*send)?;
                rule(!entry.cancelled, format_args!("a piece after Cancel"))?;
                entry.handed += data.len() as u64;
                rule(
                    entry.handed <= entry.length,
                    format_args!("{} bytes of {}", entry.handed, entry.length),
                )?;
            }
            AppRequest::Cancel { send } => account.send(*send)?.cancelled = true,
            AppRequest::Read { delivery, offset, length } => {
                let entry = account.delivery(*delivery)?;
                let end = entry.length.min(offset + u64::from(*length));
                if *offset < end {
                    entry.reads.push((*offset, end));
                }
            }
            AppRequest::Taken { delivery } => account.delivery(*delivery)?.taken = true,
            AppRequest::Register { .. } | AppRequest::Unregister { .. } => {}
        }
        Ok(())
    }

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        match indication {
            AppIndication::Room(room) => account.room = Room(*room),
            AppIndication::Accepted { send, .. } => {
                let entry = account.send(*send)?;
                rule(!entry.accepted, format_args!("Accepted twice"))?;
                let (handed, length) = (entry.handed, entry.length);
                rule(handed == length, format_args!("Accepted after {handed} of {length} bytes"))?;
                entry.accepted = true;
            }
            AppIndication::Progress { send, up_to } => {
                let entry = account.send(*send)?;
                rule(entry.accepted, format_args!("Progress before Accepted"))?;
                rule(*up_to <= entry.length, format_args!("Progress of {up_to} bytes of {}", entry.length))?;
            }
            AppIndication::Sent { send } => {
                let entry = account.send(*send)?;
                rule(entry.accepted, format_args!("Sent before Accepted"))?;
                account.sends.remove(send);
            }
            AppIndication::Failed { send, .. } => {
                account.send(*send)?;
                account.sends.remove(send);
            }
            AppIndication::Delivered { delivery, length, .. } => {
                let entry = account.deliveries.entry(*delivery).or_default();
                rule(!entry.taken && !entry.gone, format_args!("Delivered after it was taken or is gone"))?;
                entry.length = *length;
            }
            AppIndication::Data { delivery, offset, data } => {
                let entry = account.delivery(*delivery)?;
                // A read may be answered in pieces.
                let read = entry.reads.iter().position(|(at, _)| at == offset);
                rule(read.is_some(), format_args!("data without a read"))?;
                let read = read.expect("checked above");
                let (at, end) = &mut entry.reads[read];
                *at += data.len() as u64;
                rule(*at <= *end, format_args!("data up to {at} where {end} was asked for"))?;
                rule(!data.is_empty(), format_args!("data without a byte"))?;
                if at == end {
                    entry.reads.remove(read);
                }
            }
            AppIndication::Gone { delivery, taken } => {
                let entry = account.delivery(*delivery)?;
                rule(!taken || entry.taken, format_args!("Gone as taken without Taken"))?;
                entry.gone = true;
                entry.reads.clear();
            }
            AppIndication::Report { .. } => {}
        }
        Ok(())
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        let sends = account.sends.iter().filter(|(_, entry)| entry.cancelled || entry.handed == entry.length);
        let mut owed: Vec<_> = sends.map(|(send, _)| format!("the end of {send:?}")).collect();
        for (delivery, entry) in &account.deliveries {
            if entry.taken && !entry.gone {
                owed.push(format!("Gone of {delivery:?}"));
            } else if !entry.reads.is_empty() {
                owed.push(format!("Data of {delivery:?}"));
            }
        }
        owed
    }
}
