//! Pumps: they carry bytes between the system and the engines' task.

pub(crate) mod connect;
pub(crate) mod datagram;
mod datagram_batch;
pub(crate) mod discovery;
pub(crate) mod group;
mod on_link;
mod pace;
pub(crate) mod program;
pub(crate) mod quick_ack;
pub(crate) mod receive_budget;
pub(crate) mod secure;
pub mod stream;
pub(crate) mod table;
pub mod tnc;
mod udp_check;
