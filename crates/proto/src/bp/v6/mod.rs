//! The Bundle Protocol, version 6: RFC 5050, with RFC 6256 (SDNVs), RFC 6260 (compressed headers), RFC 6259 (previous
//! hop), RFC 6258 (metadata), and the age and extended class of service blocks of the drafts draft-irtf-dtnrg-bundle-age-block
//! and draft-irtf-dtnrg-ecos, as in ION, DTN2 and IBR-DTN.
//!
//! | module | contents | clauses |
//! |---|---|---|
//! | [`block`] | flags, canonical blocks and their contents | RFC 5050 4.2, 4.3, 4.5.2 |
//! | [`primary`] | the primary block, its dictionary | RFC 5050 4.4, 4.5.1, 4.7, RFC 6260 |
//! | [`bundle`] | header of a bundle, complete bundle, fragments | RFC 5050 4, 5.8 |
//! | [`wire`] | encoding: the header, the payload as a stream, the blocks after it | RFC 5050 4 |
//! | [`admin`] | status reports, custody signals | RFC 5050 6.1 |
//! | [`generate`] | random bundles for tests | |
//!
//! ```text
//!  06 | primary block | extension blocks ... | 01 flags length | payload bytes ... | extension blocks ...
//! '--------------------- Head ------------------------'                       '-- after the payload --'
//! ```
//!
//! Version 6 has no checksums: the payload is accepted unchecked. Decoding copies nothing: names and block data are slices of
//! the input. Decoded values are encoded to the same bytes (padded numbers lose their padding); unknown blocks keep their
//! position, and the dictionary is kept until the custodian changes.
//!
//! # Refused input
//! Everything that RFC 5050 forbids is refused, and the error names the field and the clause. Deliberately not implemented:
//! - A bundle without a payload block. RFC 5050 4 allows it, but no known implementation sends it, and there is nothing to
//!   deliver: the transfer is refused as permanently not acceptable ([`wire::NO_PAYLOAD`]).
//! - Numbers of more than 64 bits or more than ten bytes (RFC 5050 4.1 allows a node to refuse them).
//! - The contents of the blocks of the Bundle Security Protocol (RFC 6257), which are carried unchanged.
//!
//! # Differences between implementations
//! - Block type 10 is the age block of the draft and of IBR-DTN, and the custody transfer enhancement block of ION: it is an
//!   age if it contains exactly one number. The age is written in microseconds, as in the draft and in IBR-DTN. DTN2 follows
//!   an older draft and writes seconds, which only configuration can distinguish: the agent's `ages-in-seconds`.
//! - A previous hop block has its node as a reference into the dictionary, as two texts, or (older DTN2) as one: all
//!   three are read, and the two texts of RFC 6259 are written.
//!
//! # Units
//! Creation times and lifetimes in seconds (since 2000-01-01 UTC), ages in microseconds, lengths in bytes.

pub mod admin;
pub mod block;
pub mod bundle;
#[cfg(any(test, feature = "testing"))]
pub mod generate;
pub mod primary;
pub mod wire;

pub use admin::{AdminRecord, CustodyReason, CustodySignal, StatusReport, Time};
pub use block::{Block, BlockFlags, BlockType, BundleFlags, ClassOfService, Content, Metadata};
pub use bundle::{Bundle, Head, PayloadHeader};
pub use primary::{EidReference, PrimaryBlock};
pub use wire::{decode_head, decode_tail, examine_head, examine_tail};

#[cfg(test)]
mod tests;
