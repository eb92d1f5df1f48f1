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

mod applications;
mod busy_loop_guard;
mod callers;
mod client;
pub mod config;
mod connection;
pub mod contacts;
mod control;
mod counter_changes;
mod datagram;
mod descriptors;
mod echo;
pub mod ending;
pub mod envelope;
mod event_log;
mod event_recording;
mod folders;
mod http;
mod identities;
pub mod inbox;
mod layer;
mod links;
mod longwire_peers;
mod management;
pub mod message;
mod neighbours;
mod node;
mod node_setup;
pub mod ping;
mod private_files;
mod quick_ack;
mod radio;
mod receipts;
mod receive_budget;
mod refusals;
pub mod standard_error;
mod status_waiters;
pub mod storage;
mod store_damage;
pub mod stream;
mod task;
mod task_event;
#[cfg(test)]
mod test_folder;
pub mod tls;
pub mod tnc;
mod turn_meter;
pub mod view;
mod write_timeout;

pub use client::AppClient;
pub use config::Config;
pub use connection::ControlConnection;
pub use echo::service as echo_service;
pub use node::Node;
pub use node_setup::{Calling, Connector, NodeSetup, WallClock, system_dtn_ms, unix_now};
