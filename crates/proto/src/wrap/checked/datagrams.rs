//! The rules of [`Datagrams`].

use super::account::{Room, rule};
use super::{CheckedService, ContractBreach};
use crate::service::{Datagrams, DatagramsIndication, DatagramsRequest, PeerId};
use std::collections::{BTreeMap, BTreeSet};

/// The account of [`Datagrams`]. The documentation of the service lists the rules.
#[derive(Debug, Default)]
pub struct DatagramsAccount {
    joining: bool,
    joined: bool,
    bytes_max: u64,
    /// The user has asked for damaged datagrams.
    damaged: bool,
    has_group: bool,
    /// Peers that were named to the user.
    peers: BTreeSet<PeerId>,
    /// Tokens whose transmission is unreported, and their numbers of datagrams.
    tokens: BTreeMap<u64, u32>,
    room: Room,
    risen: u64,
    released: u64,
}

impl CheckedService for Datagrams {
    type Account = DatagramsAccount;

    fn request(account: &mut Self::Account, request: &Self::Request) -> Result<(), ContractBreach> {
        match request {
            DatagramsRequest::Join { damaged } => {
                rule(!account.joining && !account.joined, format_args!("Join twice"))?;
                *account = DatagramsAccount { joining: true, damaged: *damaged, ..Default::default() };
            }
            DatagramsRequest::Leave => *account = DatagramsAccount::default(),
            DatagramsRequest::Datagram { to, bytes, token, .. } => {
                rule(account.joined, format_args!("a datagram while it is not joined"))?;
                let is_named = account.peers.contains(to);
                rule(is_named, format_args!("a datagram to {to:?}, which was never named"))?;
                let (length, most) = (bytes.len() as u64, account.bytes_max);
                rule(
                    length <= most,
                    format_args!("a datagram of {length} bytes, above the maximum of {most}"),
                )?;
                account.room.spend(1)?;
                if let Some(token) = token {
                    *account.tokens.entry(*token).or_default() += 1;
                }
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

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        match indication {
            DatagramsIndication::Joined { bytes_max, peer, group } => {
                rule(!account.joined, format_args!("Joined twice"))?;
                *account = DatagramsAccount {
                    joined: true,
                    bytes_max: *bytes_max,
                    damaged: account.damaged,
                    has_group: group.is_some(),
                    peers: peer.iter().chain(group).copied().collect(),
                    ..Default::default()
                };
            }
            DatagramsIndication::Room(room) => {
                rule(account.joined || *room == 0, format_args!("room while it is not joined"))?;
                account.room = Room(*room);
            }
            DatagramsIndication::Carrier(_) => {
                rule(account.joined, format_args!("a carrier while it is not joined"))?;
            }
            DatagramsIndication::Transmitted(token) => {
                let left = account.tokens.get_mut(token);
                rule(left.is_some(), format_args!("transmitted a datagram that it does not have"))?;
                let left = left.expect("checked above");
                *left -= 1;
                if *left == 0 {
                    account.tokens.remove(token);
                }
            }
            DatagramsIndication::Datagram { from, to_group, bytes, damaged } => {
                rule(account.joined, format_args!("a datagram came while it is not joined"))?;
                rule(!damaged || account.damaged, format_args!("a damaged datagram that was not asked for"))?;
                let is_ours = !to_group || account.has_group;
                rule(is_ours, format_args!("a datagram to a group that it does not have"))?;
                account.peers.insert(*from);
                account.risen += bytes.len() as u64;
            }
            DatagramsIndication::Left(_) => {
                rule(account.joined || account.joining, format_args!("Left without Join"))?;
                *account = DatagramsAccount::default();
            }
        }
        Ok(())
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        let answer = account.joining.then(|| "Joined or Left".to_owned());
        let tokens = account.tokens.keys().map(|token| format!("Transmitted({token})"));
        answer.into_iter().chain(tokens).collect()
    }
}
