//! Saratoga: files over links with asymmetric rates, errors and interruptions.
//!
//! Specification: draft-wood-tsvwg-saratoga-22 (version 1 of the protocol), UDP port 7542. The packets are complete.

#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
#[cfg(test)]
mod tests;
pub mod wire;
