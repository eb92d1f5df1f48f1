//! The rules of [`Datagrams`].

use super::account::{Room, rule};
use super::{CheckedService, ContractBreach};
use crate::service::{Datagrams, DatagramsIndication, DatagramsRequest};

/// The account of [`Datagrams`].
#[derive(Debug, Default)]
pub struct DatagramsAccount {
    joining: bool,
    joined: bool,
    bytes_max: u64,
    room: Room,
    risen: u64,
    released: u64,
}

impl CheckedService for Datagrams {
    type Account = DatagramsAccount;

    fn request(account: &mut DatagramsAccount, request: &DatagramsRequest) -> Result<(), ContractBreach> {
        match request {
            DatagramsRequest::Join => {
                rule(!account.joining && !account.joined, format_args!("Join twice"))?;
                *account = DatagramsAccount { joining: true, ..Default::default() };
            }
            DatagramsRequest::Leave => *account = DatagramsAccount::default(),
            DatagramsRequest::Datagram(bytes) => {
                rule(account.joined, format_args!("a datagram while it is not joined"))?;
                let (length, most) = (bytes.len() as u64, account.bytes_max);
                rule(
                    length <= most,
                    format_args!("a datagram of {length} bytes, above the maximum of {most}"),
                )?;
                account.room.spend(1)?;
            }
            DatagramsRequest::Release(bytes) if account.joined => {
                account.released += bytes;
                let (released, risen) = (account.released, account.risen);
                rule(released <= risen, format_args!("released {released} bytes, and {risen} have risen"))?;
            }
            // Concerns an endpoint that has closed since.
            DatagramsRequest::Release(_) => {}
        }
        Ok(())
    }

    fn indication(
        account: &mut DatagramsAccount,
        indication: &DatagramsIndication,
    ) -> Result<(), ContractBreach> {
        match indication {
            DatagramsIndication::Joined { bytes_max } => {
                rule(!account.joined, format_args!("Joined twice"))?;
                *account = DatagramsAccount { joined: true, bytes_max: *bytes_max, ..Default::default() };
            }
            DatagramsIndication::Room(room) => {
                rule(account.joined || *room == 0, format_args!("room while it is not joined"))?;
                account.room = Room(*room);
            }
            DatagramsIndication::Datagram(bytes) => {
                rule(account.joined, format_args!("a datagram came while it is not joined"))?;
                account.risen += bytes.len() as u64;
            }
            DatagramsIndication::Left(_) => {
                rule(account.joined || account.joining, format_args!("Left without Join"))?;
                *account = DatagramsAccount::default();
            }
        }
        Ok(())
    }

    fn owed(account: &DatagramsAccount) -> Vec<String> {
        if account.joining { vec!["Joined or Left".to_owned()] } else { vec![] }
    }
}
