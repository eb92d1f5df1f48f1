//! The Bundle Protocol, version 7: RFC 9171, with RFC 9758 (the `ipn` scheme) and RFC 9713 (administrative records).
//!
//! | file | what | where it stands |
//! |---|---|---|
//! | [`eid`] | endpoint and node identifiers of every scheme | RFC 9171 4.2.5, RFC 9758 |
//! | [`time`] | DTN time, creation timestamps | RFC 9171 4.2.6, 4.2.7 |
//! | [`block`] | flags, the primary block, canonical blocks and what they contain | RFC 9171 4.2.3, 4.2.4, 4.3, 4.4 |
//! | [`bundle`] | a bundle's head, a whole bundle, fragments | RFC 9171 4.1, 5.8 |
//! | [`wire`] | bytes: the head, the payload in a stream, the tail | RFC 9171 4 |
//! | [`quirks`] | what single peers get wrong, and what is done about it | |
//! | [`admin`] | administrative records, status reports | RFC 9171 6, RFC 9713 |
//! | [`v6`] | the Bundle Protocol, version 6 | RFC 5050 |
//! | [`agent`] | the bundle agent: store, forward, deliver | RFC 9171 5 |
//!
//! ```text
//!  9f | primary block | extension blocks ... | 86 01 01 flags crc 5a length | payload bytes ... | 44 crc | ff
//!     '--------------------- Head ------------------------------------------'                  '-- tail --'
//! ```
//!
//! Payloads may be larger than memory, so the head, the payload's bytes and the tail are decoded and encoded each by
//! itself: [`wire::decode_head`], [`wire::PayloadCrc`], [`bundle::Head::encode`]. [`bundle::Bundle`] is all of it at once.
//! Decoding copies nothing: names and block data are slices of the input.
//!
//! # What is refused
//! Everything that RFC 9171 forbids is refused with the field and the clause; [`wire::DecodePolicy`] has the few rules that
//! peers in the field are known to break. Not implemented, on purpose:
//! - Indefinite-length items inside blocks. RFC 9171 4.1 allows them, nobody sends them, and a primary block has to
//!   stay the same byte for byte: they are refused as a limit. The payload has to be of definite length anyway (4.3.2).
//! - The outer array with a length. RFC 9171 4.1 lets a node repair it; this one refuses it.
//! - Tag 55799 before a bundle and tag 24 before block data, which only the informative CDDL has (appendix B).
//! - The inside of BPSec blocks (RFC 9172): types 11 and 12 are carried as they are; only the block numbers that they
//!   protect are read, because encrypted block data must not be parsed, and a protected primary block needs no CRC.
//!
//! # Priority
//! RFC 9171 has no priority. It travels in [`block::BlockType::QualityOfService`], number 193 of the range for private
//! and experimental use (9.1): the number and the format are those of ION's quality-of-service block, an array of four
//! unsigned integers (flags, class of service with 0 bulk, 1 normal, 2 expedited, ordinal, data label), so both sides
//! understand each other. A block with that number and another content is somebody else's: carried, not interpreted.
//! A bundle without the block is normal.
//!
//! # Copies
//! Spray and wait counts copies: [`block::BlockType::Copies`], number 194 of the private range, an unsigned integer, is
//! how many copies the holder of the bundle may make, its own included. Number and format are those of ION's block. It
//! is in every fragment, and a block with that number and another content is somebody else's.
//!
//! # Units
//! Times and lifetimes are milliseconds (DTN time: since 2000-01-01 UTC, leap seconds not counted), lengths bytes.

pub mod admin;
pub mod agent;
pub mod block;
pub mod bundle;
pub mod eid;
pub mod generate;
pub mod quirks;
pub mod time;
pub mod v6;
pub mod wire;

pub use admin::{AdminRecord, ReasonCode, StatusItem, StatusReport};
pub use block::{
    Block, BlockFlags, BlockType, BundleFlags, Content, CrcType, Fragment, HopCount, PrimaryBlock,
    QualityOfService,
};
pub use bundle::{Bundle, BundleId, Head, PayloadHeader};
pub use eid::{DtnName, Eid, IpnNumbers};
pub use quirks::{Accept, Emit, PeerRules};
pub use time::{CreationTimestamp, DtnTime};
pub use wire::{DecodePolicy, PayloadCrc, decode_head, examine_head};

#[cfg(test)]
mod tests;
