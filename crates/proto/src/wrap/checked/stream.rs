//! The rules of [`Stream`].

use super::account::{Room, rule};
use super::{CheckedService, ContractBreach};
use crate::service::{Stream, StreamIndication, StreamRequest};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum StreamState {
    /// No connection yet, or closed.
    #[default]
    None,
    Connecting,
    Connected,
}

/// The account of [`Stream`] for the present or the last connection. The documentation of the service lists the rules.
#[derive(Debug, Default)]
pub struct StreamAccount {
    state: StreamState,
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

    fn request(account: &mut StreamAccount, request: &StreamRequest) -> Result<(), ContractBreach> {
        let connected = account.state == StreamState::Connected;
        match request {
            StreamRequest::Connect => {
                rule(
                    account.state == StreamState::None,
                    format_args!("Connect before the connection has Closed"),
                )?;
                *account = StreamAccount { state: StreamState::Connecting, ..Default::default() };
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

    fn indication(account: &mut StreamAccount, indication: &StreamIndication) -> Result<(), ContractBreach> {
        let connected = account.state == StreamState::Connected;
        match indication {
            StreamIndication::Connected => {
                rule(!connected, format_args!("Connected twice"))?;
                let aborted = account.state == StreamState::Connecting && account.aborted;
                let closing = account.state == StreamState::Connecting && account.closing;
                *account =
                    StreamAccount { state: StreamState::Connected, aborted, closing, ..Default::default() };
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
                rule(account.state != StreamState::None, format_args!("Closed without a connection"))?;
                *account = StreamAccount::default();
            }
        }
        Ok(())
    }

    fn owed(account: &StreamAccount) -> Vec<String> {
        let finished = account.aborted || (account.closing && account.peer_closed);
        let mut owed = Vec::new();
        if account.state == StreamState::Connecting {
            owed.push("Connected or Closed".to_owned());
        } else if account.state == StreamState::Connected && finished {
            owed.push("Closed".to_owned());
        }
        owed
    }
}
