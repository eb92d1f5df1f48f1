//! The rules of [`Frames`].

use super::account::{Room, rule};
use super::{CheckedService, ContractBreach};
use crate::service::{Frames, FramesIndication, FramesRequest};
use std::collections::BTreeMap;

/// The account of [`Frames`]. The documentation of the service lists the rules.
#[derive(Debug, Default)]
pub struct FramesAccount {
    joined: bool,
    room: Room,
    tokens: BTreeMap<u64, u32>,
}

impl CheckedService for Frames {
    type Account = FramesAccount;

    fn request(account: &mut Self::Account, request: &Self::Request) -> Result<(), ContractBreach> {
        match request {
            FramesRequest::Join => account.joined = true,
            FramesRequest::Seize => rule(account.joined, format_args!("the channel seized before Join"))?,
            FramesRequest::Frame { token, .. } => {
                rule(account.joined, format_args!("a frame before Join"))?;
                account.room.spend(1)?;
                if let Some(token) = token {
                    *account.tokens.entry(*token).or_default() += 1;
                }
            }
        }
        Ok(())
    }

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        match indication {
            FramesIndication::Room(room) => {
                rule(account.joined || *room == 0, format_args!("room before Join"))?;
                account.room = Room((*room).into());
            }
            FramesIndication::Frame(_) => rule(account.joined, format_args!("a frame came before Join"))?,
            FramesIndication::Transmitted(token) => {
                let left = account.tokens.get_mut(token);
                rule(left.is_some(), format_args!("transmitted a frame that it does not have"))?;
                let left = left.expect("checked above");
                *left -= 1;
                if *left == 0 {
                    account.tokens.remove(token);
                }
            }
            FramesIndication::Busy(_) | FramesIndication::Carrier(_) => {}
        }
        Ok(())
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        account.tokens.keys().map(|token| format!("Transmitted({token})")).collect()
    }
}
