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
// Printing panics once the reader has gone and blocks the node while the reader stops: see `log`.
#![cfg_attr(not(test), deny(clippy::print_stderr, clippy::print_stdout))]

// Unit tests share a store with the other tests, which call this crate by its name.
#[cfg(test)]
extern crate self as longwire_node;

mod clock;
pub mod config;
pub mod ending;
pub mod envelope;
mod inhibited;
mod known_keys;
pub mod log;
mod node;
mod node_setup;
mod private_files;
mod pumps;
pub mod storage;
mod surfaces;
mod task;
mod tell;
#[cfg(test)]
mod test_folder;
pub mod tls;
mod tower;
pub mod view;
mod write_timeout;

pub use clock::{WallClock, system_dtn_ms, unix_now};
pub use config::{Config, contacts};
pub use node::Node;
pub use node_setup::NodeSetup;
pub use pumps::connect::{Calling, Connector};
pub use pumps::{stream, tnc};
pub use surfaces::client::AppClient;
pub use surfaces::connection::ControlConnection;
pub use surfaces::echo::service as echo_service;
pub use surfaces::{inbox, measuring, message, ping};
