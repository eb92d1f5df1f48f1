//! The rules of [`Connections`].

use super::account::{Room, rule};
use super::{CheckedService, ContractBreach};
use crate::service::{Connections, ConnectionsIndication, ConnectionsRequest};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
struct OutgoingAccount {
    room: Room,
    sent: u64,
    acknowledged: u64,
    last: bool,
}

#[derive(Debug, Default)]
struct IncomingAccount {
    risen: u64,
    accepted: u64,
    last: bool,
}

/// The account of [`Connections`]. The documentation of the service lists the rules.
#[derive(Debug, Default)]
pub struct ConnectionsAccount {
    up: bool,
    outgoing: BTreeMap<u64, OutgoingAccount>,
    used: BTreeSet<u64>,
    incoming: BTreeMap<u64, IncomingAccount>,
    /// Number of incoming connections that have begun: their numbers are below it.
    begun: BTreeSet<u64>,
}

impl ConnectionsAccount {
    fn outgoing(&mut self, connection: u64) -> Result<&mut OutgoingAccount, ContractBreach> {
        rule(self.used.contains(&connection), format_args!("connection {connection} was never opened"))?;
        let entry = self.outgoing.get_mut(&connection);
        entry.ok_or_else(|| ContractBreach(format!("connection {connection} has ended")))
    }

    fn incoming(&mut self, incoming: u64) -> Result<&mut IncomingAccount, ContractBreach> {
        let entry = self.incoming.get_mut(&incoming).filter(|entry| !entry.last);
        entry.ok_or_else(|| {
            ContractBreach(format!("data of incoming connection {incoming}, which is not open"))
        })
    }
}

impl CheckedService for Connections {
    type Account = ConnectionsAccount;

    fn request(account: &mut Self::Account, request: &Self::Request) -> Result<(), ContractBreach> {
        match request {
            ConnectionsRequest::Connect | ConnectionsRequest::Close => {}
            ConnectionsRequest::Open { connection, .. } => {
                rule(
                    account.used.insert(*connection),
                    format_args!("connection {connection} is used twice"),
                )?;
                account.outgoing.insert(*connection, OutgoingAccount::default());
            }
            ConnectionsRequest::Data { connection, data, last } => {
                let entry = account.outgoing(*connection)?;
                rule(!entry.last, format_args!("data after the last"))?;
                rule(!data.is_empty() || *last, format_args!("data without a byte"))?;
                entry.room.spend(data.len() as u64)?;
                entry.sent += data.len() as u64;
                entry.last = *last;
            }
            // The connection may have ended meanwhile.
            ConnectionsRequest::Cancel { .. } => {}
            ConnectionsRequest::Accept { incoming, up_to } => {
                if let Some(entry) = account.incoming.get_mut(incoming) {
                    let (risen, before) = (entry.risen, entry.accepted);
                    rule(*up_to <= risen, format_args!("accepts {up_to} bytes, but {risen} have risen"))?;
                    rule(*up_to >= before, format_args!("accepts {up_to} bytes after {before}"))?;
                    entry.accepted = *up_to;
                }
            }
            ConnectionsRequest::Refuse { incoming, .. } => {
                account.incoming.remove(incoming);
            }
        }
        Ok(())
    }

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        match indication {
            ConnectionsIndication::Up { .. } => {
                rule(!account.up, format_args!("Up twice"))?;
                account.up = true;
            }
            ConnectionsIndication::Down { .. } => {
                let open: Vec<_> = account.outgoing.keys().collect();
                rule(open.is_empty(), format_args!("Down without a terminal indication for {open:?}"))?;
                let broken: Vec<_> = account.incoming.iter().filter(|(_, entry)| !entry.last).collect();
                rule(broken.is_empty(), format_args!("Down without Lost for {broken:?}"))?;
                account.up = false;
                account.incoming.clear();
            }
            ConnectionsIndication::Room { connection, bytes } => {
                account.outgoing(*connection)?.room = Room(*bytes);
            }
            ConnectionsIndication::Acknowledged { connection, up_to } => {
                let entry = account.outgoing(*connection)?;
                let (sent, before) = (entry.sent, entry.acknowledged);
                rule(*up_to <= sent, format_args!("{up_to} bytes acknowledged of {sent} sent"))?;
                rule(*up_to > before, format_args!("{up_to} bytes acknowledged after {before}"))?;
                entry.acknowledged = *up_to;
            }
            ConnectionsIndication::Sent { connection } => {
                let entry = account.outgoing(*connection)?;
                rule(entry.last, format_args!("Sent before the last data"))?;
                account.outgoing.remove(connection);
            }
            ConnectionsIndication::Failed { connection, .. } => {
                account.outgoing(*connection)?;
                account.outgoing.remove(connection);
            }
            ConnectionsIndication::Begin { incoming, .. } => {
                rule(account.up, format_args!("Begin while the endpoint is not up"))?;
                rule(
                    account.begun.insert(*incoming),
                    format_args!("incoming connection {incoming} begins twice"),
                )?;
                account.incoming.insert(*incoming, IncomingAccount::default());
            }
            ConnectionsIndication::Data { incoming, data, last, .. } => {
                let entry = account.incoming(*incoming)?;
                rule(!data.is_empty() || *last, format_args!("data without a byte"))?;
                entry.risen += data.len() as u64;
                entry.last = *last;
            }
            ConnectionsIndication::Gap { incoming, .. } => {
                account.incoming(*incoming)?;
            }
            ConnectionsIndication::Lost { incoming } => {
                account.incoming(*incoming)?;
                account.incoming.remove(incoming);
            }
        }
        Ok(())
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        account.outgoing.keys().map(|connection| format!("the end of connection {connection}")).collect()
    }
}
