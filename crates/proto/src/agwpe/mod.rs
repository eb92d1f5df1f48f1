//! AGWPE: how programs share a TNC that makes AX.25 links itself, over TCP (port 8000).
//!
//! Specification: *AGWPE TCP/IP API* (SV2AGW, 2000), and what Dire Wolf says where that is silent. Every frame is a header
//! of 36 octets, integers little-endian, and data.
//!
//! ```text
//!                 Frames (AX.25, a monitor)
//!                    |
//!                 [ Raw ]   asks for the ports, then for raw frames of its own
//!                    |
//!                 Stream (TCP)
//! ```
//!
//! [`RawPort`] uses a port of a server as a link of raw frames. The server is asked first which ports it has: who answers otherwise
//! or not at all is no such server, and the line is ended and tried again. A burst goes to the server in one write, and until it has left
//! there is no room for more. The server says how many frames wait on the port; when none does any more they are being sent,
//! and when they have left is computed from there.
//!
//! Implemented: the frames of both directions and what is in them: registration, version, ports and their capabilities,
//! links (with and without digipeaters), unconnected frames, raw frames, queue lengths, monitored frames as text. Not
//! implemented: login (`P`) and the list of stations heard (`H`) are carried as they are.

mod config;
mod raw;
mod wire;

#[cfg(test)]
mod tests;

pub use config::{Config, Counters};
pub use raw::{RawPort, ServerFault};
pub use wire::{
    Capabilities, DATA_BYTES_MAX, Frame, HEADER_BYTES, Kind, NAME_BYTES, Ports, Queued, Registered,
    StationName, VIA_MAX, Version, Via,
};
