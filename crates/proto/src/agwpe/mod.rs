//! AGWPE: use of a TNC that makes AX.25 links itself by several programs, over TCP (port 8000).
//!
//! Specification: *AGWPE TCP/IP API* (SV2AGW, 2000), and the behaviour of Dire Wolf where that is silent. Every frame
//! is a header of 36 octets, integers little-endian, and data.
//!
//! ```text
//!                 Frames (AX.25, a monitor)
//!                    |
//!               [ RawPort ]   queries the ports, then requests raw frames
//!                    |
//!                 Stream (TCP)
//! ```
//!
//! [`RawPort`] uses a port of a server as a link of raw frames. It first queries the server's ports: a program that
//! answers otherwise, or not at all, is not such a server, and the line is closed and retried. A burst goes to the
//! server in one write, and until it has left there is no room for more. The server reports how many frames wait on the
//! port. When none waits, they are being sent, and the time at which they have left is computed from there.
//!
//! Implemented: the frames of both directions and their contents: registration, ports, links (with and without
//! digipeaters), unconnected frames, raw frames, queue lengths, monitored frames as text. Not interpreted: login (`P`),
//! version (`R`), capabilities of a port (`g`) and the list of stations heard (`H`), whose data are passed unchanged.

mod config;
mod raw;
mod wire;

#[cfg(test)]
mod tests;

pub use config::{Config, Counters};
pub use raw::{RawPort, ServerFault};
pub use wire::{
    DATA_BYTES_MAX, Frame, HEADER_BYTES, Kind, NAME_BYTES, Ports, Queued, Registered, StationName, VIA_MAX,
    Via,
};
