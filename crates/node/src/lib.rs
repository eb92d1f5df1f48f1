//! The daemon as a library: sockets, disk and clock around the engines.
//!
//! ```text
//!    applications (control socket, or in this process)
//!         |  message                                              operators
//!      Client  ---------------->  Task: Desk, engines, operate  <----'
//!                                   |                   |
//!                             storage::Drive       stream::pump, one a connection
//!                                   |                   |
//!                            threads: Log, reader    TCP, TLS over it, or a pipe in memory
//! ```
//!
//! A [`Node`] runs on a thread of its own with one event queue: the engines' task and the pumps share it, so nothing is
//! handed from core to core but what goes to the disk. Everything that waits anywhere has a limit: what goes out by the
//! room that the engines are told, what comes in by the window of its connection, what applications send by their budget.

#![cfg(unix)]
// A reader that has gone would make these panic, and one that stands still would hold the node: see `standard_error`.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod callers;
mod client;
pub mod config;
mod connection;
pub mod contacts;
mod control;
mod counter_news;
mod damage;
mod datagram;
mod descriptors;
mod desk;
mod echo;
pub mod ending;
pub mod envelope;
mod event;
mod events;
mod folders;
mod http;
mod identities;
pub mod inbox;
mod layer;
mod links;
mod longwires;
pub mod message;
mod meter;
mod neighbours;
mod news;
mod node;
mod noting;
mod operate;
mod patient;
pub mod ping;
mod pressure;
mod private;
mod quick_ack;
mod radio;
mod receipts;
mod refusals;
mod restless;
#[cfg(test)]
mod scratch;
mod setup;
pub mod standard_error;
pub mod storage;
pub mod stream;
mod task;
pub mod tls;
pub mod tnc;
pub mod view;

pub use client::Client;
pub use config::Config;
pub use connection::Connection;
pub use echo::service as echo_service;
pub use node::Node;
pub use setup::{Calling, Connector, Setup, WallClock, system_dtn_ms, unix_now};
