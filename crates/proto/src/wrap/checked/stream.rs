//! The rules of [`Stream`].

use super::account::{ConnectionState, Room, rule};
use super::{CheckedService, ContractBreach};
use crate::service::{Stream, StreamIndication, StreamRequest};

/// The account of [`Stream`] for the present or the last connection. The documentation of the service lists the rules.
#[derive(Debug, Default)]
pub struct StreamAccount {
    state: ConnectionState,
    room: Room,
    risen: u64,
    released: u64,
    securing: bool,
    /// True after the user has closed its sending direction.
    closing: bool,
    aborted: bool,
    /// True after the peer has closed its sending direction.
    peer_closed: bool,
}

impl CheckedService for Stream {
    type Account = StreamAccount;

    fn request(account: &mut Self::Account, request: &Self::Request) -> Result<(), ContractBreach> {
        let connected = account.state == ConnectionState::Connected;
        match request {
            StreamRequest::Connect => {
                let is_new = account.state == ConnectionState::None;
                rule(is_new, format_args!("Connect before the connection has Closed"))?;
                *account = StreamAccount { state: ConnectionState::Connecting, ..Default::default() };
            }
            StreamRequest::Secure { .. } => {
                rule(connected, format_args!("Secure without a connection"))?;
                rule(!account.securing, format_args!("Secure while the last one is not answered"))?;
                account.securing = true;
            }
            StreamRequest::Write(bytes) => {
                rule(connected, format_args!("Write without a connection"))?;
                rule(!account.closing && !account.aborted, format_args!("Write after Close or Abort"))?;
                account.room.spend(bytes.len() as u64)?;
            }
            StreamRequest::Release(bytes) if connected => {
                account.released += bytes;
                let (released, risen) = (account.released, account.risen);
                rule(
                    released <= risen,
                    format_args!("released {released} bytes, but only {risen} have risen"),
                )?;
            }
            StreamRequest::Close => account.closing = true,
            StreamRequest::Abort => account.aborted = true,
            // Concerns a connection that has closed since: harmless.
            StreamRequest::Release(_) => {}
        }
        Ok(())
    }

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        let connected = account.state == ConnectionState::Connected;
        match indication {
            StreamIndication::Connected => {
                rule(!connected, format_args!("Connected twice"))?;
                let aborted = account.state == ConnectionState::Connecting && account.aborted;
                let closing = account.state == ConnectionState::Connecting && account.closing;
                *account = StreamAccount {
                    state: ConnectionState::Connected,
                    aborted,
                    closing,
                    ..Default::default()
                };
            }
            StreamIndication::Secured { .. } => {
                rule(account.securing, format_args!("Secured without Secure"))?;
                account.securing = false;
            }
            StreamIndication::Room(room) => {
                rule(connected || *room == 0, format_args!("room without a connection"))?;
                account.room = Room(*room);
            }
            StreamIndication::Data(bytes) => {
                rule(connected, format_args!("data without a connection"))?;
                rule(!account.peer_closed, format_args!("data after PeerClosed"))?;
                rule(!bytes.is_empty(), format_args!("data without a byte"))?;
                account.risen += bytes.len() as u64;
            }
            StreamIndication::PeerClosed => {
                rule(connected, format_args!("PeerClosed without a connection"))?;
                rule(!account.peer_closed, format_args!("PeerClosed twice"))?;
                account.peer_closed = true;
            }
            StreamIndication::Closed(_) => {
                rule(account.state != ConnectionState::None, format_args!("Closed without a connection"))?;
                *account = StreamAccount::default();
            }
        }
        Ok(())
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        let finished = account.aborted || (account.closing && account.peer_closed);
        let mut owed = Vec::new();
        if account.state == ConnectionState::Connecting {
            owed.push("Connected or Closed".to_owned());
        } else if account.state == ConnectionState::Connected && finished {
            owed.push("Closed".to_owned());
        }
        owed
    }
}
