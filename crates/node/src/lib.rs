//! The node as a library: sockets, disk and clock around the engines.
//!
//! ```text
//!    applications (control socket, or in this process)
//!         |  message                                                   operators
//!     AppClient  ----->  Task: Applications, engines, management  <----'
//!                                |                   |
//!                     storage::StorageDriver   stream::pump, one per connection
//!                                |                   |
//!                       threads: Log, reader   TCP, TLS over it, or a pipe in memory
//! ```
//!
//! A [`Node`] runs on its own thread with one event queue, which the engines' task and the pumps share, so that only what is
//! written to the disk is passed between processor cores. Every queue has a limit: output is limited by the room that the engines
//! are granted, input by the window of its connection, sends of applications by their budget.

#![forbid(unsafe_code)]
#![cfg(unix)]
// Printing panics once the reader has gone and blocks the node while the reader stops: see `standard_error`.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

mod applications;
mod busy_loop_guard;
mod callers;
mod client;
mod clock;
pub mod config;
mod connection;
mod control;
mod counter_changes;
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
mod pumps;
mod radio;
mod receipts;
mod refusals;
pub mod standard_error;
mod status_waiters;
pub mod storage;
mod store_damage;
mod task;
mod task_event;
#[cfg(test)]
mod test_folder;
pub mod tls;
mod turn_meter;
pub mod view;
mod write_timeout;

pub use client::AppClient;
pub use clock::{WallClock, system_dtn_ms, unix_now};
pub use config::{Config, contacts};
pub use connection::ControlConnection;
pub use echo::service as echo_service;
pub use node::Node;
pub use node_setup::{Calling, Connector, NodeSetup};
pub use pumps::{stream, tnc};
