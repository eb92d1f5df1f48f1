//! Accounts of several ports and links, and what the rules of all services have in common.

use super::{CheckedService, ContractBreach};
use crate::service::{App, Both, Bpa, BpaIndication, BpaRequest, Many, Port};
use core::fmt::{self, Debug};
use std::collections::BTreeMap;

/// Returns a breach with this message unless the condition holds.
pub(super) fn rule(holds: bool, message: fmt::Arguments<'_>) -> Result<(), ContractBreach> {
    if holds { Ok(()) } else { Err(ContractBreach(message.to_string())) }
}

/// Room, in the unit of the service.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Room(pub(super) u64);

impl Room {
    pub(super) fn spend(&mut self, cost: u64) -> Result<(), ContractBreach> {
        rule(cost <= self.0, format_args!("it spends {cost} of a room of {}", self.0))?;
        self.0 -= cost;
        Ok(())
    }
}

/// State of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// No connection yet, or closed.
    #[default]
    None,
    Connecting,
    Connected,
}

impl<Id: Copy + Ord + Debug, S: CheckedService> CheckedService for Many<Id, S> {
    type Account = BTreeMap<Id, S::Account>;

    fn request(account: &mut Self::Account, (id, request): &Self::Request) -> Result<(), ContractBreach> {
        S::request(account.entry(*id).or_default(), request)
    }

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        let (id, indication) = indication;
        S::indication(account.entry(*id).or_default(), indication)
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        account
            .iter()
            .flat_map(|(id, one)| S::owed(one).into_iter().map(move |what| format!("{what} on {id:?}")))
            .collect()
    }
}

/// Management has no rules.
impl CheckedService for Bpa {
    type Account = <App as CheckedService>::Account;

    fn request(account: &mut Self::Account, request: &BpaRequest) -> Result<(), ContractBreach> {
        match request {
            BpaRequest::App(request) => App::request(account, request),
            BpaRequest::Manage(_) => Ok(()),
        }
    }

    fn indication(account: &mut Self::Account, indication: &BpaIndication) -> Result<(), ContractBreach> {
        match indication {
            BpaIndication::App(indication) => App::indication(account, indication),
            BpaIndication::Manage(_) => Ok(()),
        }
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        App::owed(account)
    }
}

impl<A: CheckedService, B: CheckedService> CheckedService for Both<A, B> {
    type Account = (A::Account, B::Account);

    fn request(account: &mut Self::Account, request: &Self::Request) -> Result<(), ContractBreach> {
        match request {
            Port::First(request) => A::request(&mut account.0, request),
            Port::Second(request) => B::request(&mut account.1, request),
        }
    }

    fn indication(account: &mut Self::Account, indication: &Self::Indication) -> Result<(), ContractBreach> {
        match indication {
            Port::First(indication) => A::indication(&mut account.0, indication),
            Port::Second(indication) => B::indication(&mut account.1, indication),
        }
    }

    fn owed(account: &Self::Account) -> Vec<String> {
        [A::owed(&account.0), B::owed(&account.1)].concat()
    }
}
