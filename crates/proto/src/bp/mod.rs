//! The Bundle Protocol, version 7: RFC 9171, with RFC 9758 (the `ipn` scheme) and RFC 9713 (administrative records).
//!
//! | module | contents | clauses |
//! |---|---|---|
//! | [`eid`] | endpoint IDs and node IDs of every scheme | RFC 9171 4.2.5, RFC 9758 |
//! | [`time`] | DTN time, creation timestamps | RFC 9171 4.2.6, 4.2.7 |
//! | [`block`] | flags, the primary block, canonical blocks and their contents | RFC 9171 4.2.3, 4.2.4, 4.3, 4.4 |
//! | [`bundle`] | header of a bundle, complete bundle, fragments | RFC 9171 4.1, 5.8 |
//! | [`wire`] | encoding: the header, the payload as a stream, the tail | RFC 9171 4 |
//! | [`quirks`] | known faults of other implementations, and how to work with them | |
//! | [`admin`] | administrative records, status reports | RFC 9171 6, RFC 9713 |
//! | [`v6`] | the Bundle Protocol, version 6 | RFC 5050 |
//! | [`agent`] | the bundle protocol agent: stores, forwards and delivers bundles | RFC 9171 5 |
//!
//! ```text
//!  9f | primary block | extension blocks ... | 86 01 01 flags crc 5a length | payload bytes ... | 44 crc | ff
//!     '--------------------- Head ------------------------------------------'                  '-- tail --'
//! ```
//!
//! A payload may be larger than memory, so the header, the payload and the tail are decoded and encoded separately:
//! [`wire::decode_head`], [`wire::PayloadCrc`], [`bundle::Head::encode`]. [`bundle::Bundle`] holds all three in memory.
//! Decoding copies nothing: names and block data are slices of the input.
//!
//! # Refused input
//! Everything that RFC 9171 forbids is refused, and the error names the field and the clause; [`wire::DecodePolicy`] relaxes
//! the few rules that known implementations break. Deliberately not implemented:
//! - Indefinite-length items inside blocks. RFC 9171 4.1 allows them, but no known implementation sends them, and a primary
//!   block must stay identical byte for byte; they are refused as a limit. The payload must be of definite length (4.3.2).
//! - A definite-length outer array. RFC 9171 4.1 lets a node repair it; this one refuses it.
//! - Tag 55799 before a bundle and tag 24 before block data, which only the informative CDDL has (appendix B).
//! - The contents of BPSec blocks (RFC 9172), which [`bpsec`] has: types 11 and 12 are carried unchanged. Only
//!   their target block numbers are read, because encrypted block data must not be parsed and a protected primary block
//!   needs no CRC.
//!
//! # Priority
//! RFC 9171 has no priority. [`block::BlockType::QualityOfService`] carries it: block type 193 of the range for private and
//! experimental use (9.1). Number and format are those of ION's quality-of-service block, an array of four unsigned integers
//! (flags; class of service: 0 bulk, 1 normal, 2 expedited; ordinal; data label), so that the two implementations
//! interoperate. A block of that type with other contents belongs to another implementation: it is carried, but not
//! interpreted. A bundle without the block has normal priority.
//!
//! # Copies
//! Spray and wait counts copies: [`block::BlockType::Copies`], type 194 of the private range, contains an unsigned integer,
//! the number of copies that the holder of the bundle may make, its own included. Number and format are those of ION's block.
//! Every fragment has the block; a block of that type with other contents belongs to another implementation.
//!
//! # Units
//! Times and lifetimes are in milliseconds (DTN time: since 2000-01-01 UTC, without leap seconds), lengths in bytes.

pub mod admin;
pub mod agent;
pub mod block;
pub mod bpsec;
pub mod bundle;
pub mod eid;
#[cfg(any(test, feature = "testing"))]
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
