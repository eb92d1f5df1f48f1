//! Licklider Transmission Protocol (RFC 5326): blocks of bundles over links with long delays and interruptions.
//!
//! So far: the segments on the wire ([`wire`]) and the settings of a link.
//!
//! Units: bytes, and engine IDs and session numbers of up to 64 bits.

pub mod config;
#[cfg(test)]
mod tests;
pub mod wire;

pub use config::{BlockFormat, Config, Counters};
