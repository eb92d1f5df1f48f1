//! The rules of [`Packets`].

use super::account::{ConnectionState, Room, rule};
use super::{CheckedService, ContractBreach};
use crate::service::{Packets, PacketsIndication, PacketsRequest};

/// The account of [`Packets`]. The documentation of the service lists the rules.
#[derive(Debug, Default)]
pub struct PacketsAccount {
    state: ConnectionState,
    room: Room,
    bytes_max: u64,
    handed: u64,
    acknowledged: u64,
    risen: u64,
    released: u64,
    closing: bool,
}

impl CheckedService for Packets {
    type Account = PacketsAccount;

    fn request(account: &mut Self::Account, request: &Self::Request) -> Result<(), ContractBreach> {
        let connected = account.state == ConnectionState::Connected;
        match request {
            PacketsRequest::Connect => {
                let is_new = account.state == ConnectionState::None;
                rule(is_new, format_args!("Connect before the connection has Closed"))?;
                *account = PacketsAccount { state: ConnectionState::Connecting, ..Default::default() };
            }
            PacketsRequest::Packet { bytes: packet, .. } => {
                rule(connected, format_args!("a packet without a connection"))?;
                rule(!account.closing, format_args!("a packet after Close or Abort"))?;
                let (length, most) = (packet.len() as u64, account.bytes_max);
                rule(
                    length <= most,
                    format_args!("a packet of {length} bytes, above the maximum of {most}"),
                )?;
                account.room.spend(1)?;
                account.handed += 1;
            }
            PacketsRequest::Release(packets) if connected => {
                account.released += packets;
                let (released, risen) = (account.released, account.risen);
                rule(released <= risen, format_args!("released {released} packets, but {risen} have risen"))?;
            }
            PacketsRequest::Close | PacketsRequest::Abort => account.closing = true,
            // Concerns a connection that has closed since: harmless.
            PacketsRequest::Release(_) | PacketsRequest::Acknowledge => {}
        }
        Ok(())
    }

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        let connected = account.state == ConnectionState::Connected;
        match indication {
            PacketsIndication::Connected { bytes_max, bytes_best, .. } => {
                rule(!connected, format_args!("Connected twice"))?;
                rule(bytes_best <= bytes_max, format_args!("the best size exceeds the maximum"))?;
                let closing = account.state == ConnectionState::Connecting && account.closing;
                let (state, bytes_max) = (ConnectionState::Connected, u64::from(*bytes_max));
                *account = PacketsAccount { state, bytes_max, closing, ..Default::default() };
            }
            PacketsIndication::Sizes { bytes_max, bytes_best } => {
                let (before, most) = (account.bytes_max, u64::from(*bytes_max));
                rule(connected, format_args!("Sizes without a connection"))?;
                rule(bytes_best <= bytes_max, format_args!("the best size exceeds the maximum"))?;
                rule(most >= before, format_args!("a maximum of {most} bytes after {before} were promised"))?;
                account.bytes_max = most;
            }
            PacketsIndication::Room(room) => {
                rule(connected || *room == 0, format_args!("room without a connection"))?;
                account.room = Room(*room);
            }
            PacketsIndication::Packet(_) => {
                rule(connected, format_args!("a packet came without a connection"))?;
                account.risen += 1;
            }
            PacketsIndication::Acknowledged(all) => {
                let (handed, before) = (account.handed, account.acknowledged);
                rule(connected, format_args!("acknowledged without a connection"))?;
                rule(*all > before, format_args!("{all} acknowledged, which is no more than {before}"))?;
                rule(*all <= handed, format_args!("{all} acknowledged of {handed} packets"))?;
                account.acknowledged = *all;
            }
            PacketsIndication::Closed(_) => {
                rule(account.state != ConnectionState::None, format_args!("Closed without a connection"))?;
                *account = PacketsAccount::default();
            }
        }
        Ok(())
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        match account.state {
            ConnectionState::None => Vec::new(),
            ConnectionState::Connecting => vec!["Connected or Closed".to_owned()],
            ConnectionState::Connected if account.closing => vec!["Closed".to_owned()],
            ConnectionState::Connected => Vec::new(),
        }
    }
}
