//! The rules of [`Connections`].

use super::account::{Room, rule};
use super::{CheckedService, ContractBreach};
use crate::service::{Connections, ConnectionsIndication, ConnectionsRequest, TransportService};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Default)]
struct OutgoingAccount {
    service: TransportService,
    room: Room,
    sent: u64,
    acknowledged: u64,
    last: bool,
    is_cancelled: bool,
}

#[derive(Debug, Default)]
struct IncomingAccount {
    service: TransportService,
    risen: u64,
    accepted: u64,
    last: bool,
}

/// The account of [`Connections`]. The documentation of the service lists the rules.
#[derive(Debug, Default)]
pub struct ConnectionsAccount {
    up: bool,
    /// Maximum length of a message.
    message_bytes_max: u64,
    outgoing: BTreeMap<u64, OutgoingAccount>,
    used: BTreeSet<u64>,
    incoming: BTreeMap<u64, IncomingAccount>,
    /// Numbers of all incoming connections that have begun.
    begun: BTreeSet<u64>,
}

impl ConnectionsAccount {
    fn expect_opened(&self, connection: u64) -> Result<(), ContractBreach> {
        rule(self.used.contains(&connection), format_args!("connection {connection} was never opened"))
    }

    fn expect_begun(&self, incoming: u64) -> Result<(), ContractBreach> {
        rule(self.begun.contains(&incoming), format_args!("incoming connection {incoming} never began"))
    }

    fn outgoing(&mut self, connection: u64) -> Result<&mut OutgoingAccount, ContractBreach> {
        self.expect_opened(connection)?;
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
            ConnectionsRequest::Open { connection, properties } => {
                rule(
                    account.used.insert(*connection),
                    format_args!("connection {connection} is used twice"),
                )?;
                let entry = OutgoingAccount { service: properties.service, ..Default::default() };
                account.outgoing.insert(*connection, entry);
            }
            ConnectionsRequest::Data { connection, data, last } => {
                let (length, most) = (data.len() as u64, account.message_bytes_max);
                let entry = account.outgoing(*connection)?;
                rule(!entry.last, format_args!("data after the last"))?;
                rule(!entry.is_cancelled, format_args!("data after Cancel"))?;
                rule(length > 0 || *last, format_args!("data without a byte"))?;
                let fits = length <= most || !entry.service.keeps_messages();
                rule(fits, format_args!("a message of {length} bytes, above the maximum of {most}"))?;
                entry.room.spend(length)?;
                entry.sent += length;
                entry.last = *last;
            }
            ConnectionsRequest::Cancel { connection } => {
                account.expect_opened(*connection)?;
                // It may have ended meanwhile.
                if let Some(entry) = account.outgoing.get_mut(connection) {
                    entry.is_cancelled = true;
                }
            }
            ConnectionsRequest::Accept { incoming, up_to } => {
                account.expect_begun(*incoming)?;
                if let Some(entry) = account.incoming.get_mut(incoming) {
                    let (risen, before) = (entry.risen, entry.accepted);
                    rule(*up_to <= risen, format_args!("accepts {up_to} bytes, but {risen} have risen"))?;
                    rule(*up_to >= before, format_args!("accepts {up_to} bytes after {before}"))?;
                    entry.accepted = *up_to;
                }
            }
            ConnectionsRequest::Refuse { incoming, .. } => {
                account.expect_begun(*incoming)?;
                account.incoming.remove(incoming);
            }
        }
        Ok(())
    }

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        match indication {
            ConnectionsIndication::Up { message_bytes_max } => {
                rule(!account.up, format_args!("Up twice"))?;
                (account.up, account.message_bytes_max) = (true, *message_bytes_max);
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
                let acknowledges = entry.service.acknowledges();
                rule(acknowledges, format_args!("an acknowledgement in a service without them"))?;
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
            ConnectionsIndication::Begin { incoming, properties } => {
                rule(account.up, format_args!("Begin while the endpoint is not up"))?;
                rule(
                    account.begun.insert(*incoming),
                    format_args!("incoming connection {incoming} begins twice"),
                )?;
                let entry = IncomingAccount { service: properties.service, ..Default::default() };
                account.incoming.insert(*incoming, entry);
            }
            ConnectionsIndication::Data { incoming, data, damaged, last } => {
                let entry = account.incoming(*incoming)?;
                rule(!data.is_empty() || *last, format_args!("data without a byte"))?;
                let may_be_damaged = !entry.service.acknowledges();
                rule(
                    !damaged || may_be_damaged,
                    format_args!("damaged data in a service that acknowledges"),
                )?;
                entry.risen += data.len() as u64;
                entry.last = *last;
            }
            ConnectionsIndication::Gap { incoming, .. } => {
                let acknowledges = account.incoming(*incoming)?.service.acknowledges();
                rule(!acknowledges, format_args!("a gap in a service that acknowledges"))?;
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
