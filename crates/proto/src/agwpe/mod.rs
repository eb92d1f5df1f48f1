//! AGWPE: how programs share a TNC that makes AX.25 links itself, over TCP (port 8000).
//!
//! Specification: *AGWPE TCP/IP API* (SV2AGW, 2000), and what Dire Wolf says where that is silent. Every frame is a header
//! of 36 octets, integers little-endian, and data.
//!
//! Implemented: the frames of both directions and what is in them: registration, version, ports and their capabilities,
//! links (with and without digipeaters), unconnected frames, raw frames, queue lengths, monitored frames as text. Not
//! implemented: login (`P`) and the list of stations heard (`H`) are carried as they are.

mod wire;

#[cfg(test)]
mod tests;

pub use wire::{
    Capabilities, DATA_BYTES_MAX, Frame, HEADER_BYTES, Kind, NAME_BYTES, Name, Queued, Registered, VIA_MAX,
    Version, Via,
};
