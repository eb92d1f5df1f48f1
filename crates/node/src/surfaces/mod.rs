//! Surfaces: where applications and operators meet the node. All of them use it as any application does, through an
//! [`AppClient`](client::AppClient).

pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod control;
pub(crate) mod counter_changes;
pub(crate) mod custody;
pub(crate) mod echo;
pub(crate) mod event_log;
pub(crate) mod folders;
mod held_answers;
pub(crate) mod http;
pub mod inbox;
pub(crate) mod mail;
pub mod measuring;
pub mod message;
pub(crate) mod operations;
pub mod ping;
