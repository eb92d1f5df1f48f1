//! The Bundle Protocol, version 6: RFC 5050, with RFC 6256 (SDNVs), RFC 6260 (compressed headers), RFC 6259 (previous
//! hop), RFC 6258 (metadata), and the age and extended class of service blocks of the drafts draft-irtf-dtnrg-bundle-age-block
//! and draft-irtf-dtnrg-ecos, as ION, DTN2 and IBR-DTN have them.
//!
//! | file | what | where it stands |
//! |---|---|---|
//! | [`block`] | flags, canonical blocks and what they contain | RFC 5050 4.2, 4.3, 4.5.2 |
//! | [`primary`] | the primary block, its dictionary | RFC 5050 4.4, 4.5.1, 4.7, RFC 6260 |
//! | [`bundle`] | a bundle's head, a whole bundle, fragments | RFC 5050 4, 5.8 |
//! | [`wire`] | bytes: the head, the payload in a stream, the blocks behind it | RFC 5050 4 |
//! | [`admin`] | status reports, custody signals | RFC 5050 6.1 |
//! | [`generate`] | random bundles for tests | |
//!
//! ```text
//!  06 | primary block | extension blocks ... | 01 flags length | payload bytes ... | extension blocks ...
//!     '--------------------- Head ------------------------'                       '-- after the payload --'
//! ```
//!
//! There are no checksums: what is behind the head is taken as it comes. Decoding copies nothing: names and block data
//! are slices of the input. What was decoded is encoded to the same bytes (padded numbers lose their padding); unknown
//! blocks keep their place, and the dictionary stays as it came until the custodian changes.
//!
//! # What is refused
//! Everything that RFC 5050 forbids is refused with the field and the clause. Not implemented, on purpose:
//! - A bundle without a payload block. RFC 5050 4 allows it, nobody sends it, and there is nothing to deliver: the
//!   sender is told that it is not acceptable, now or ever ([`wire::NO_PAYLOAD`]).
//! - Numbers of more than 64 bits or more than ten bytes (RFC 5050 4.1 allows to refuse them).
//! - The inside of the Bundle Security Protocol's blocks (RFC 6257): carried as they are.
//!
//! # Where implementations differ
//! - Block type 10 is the age block of the draft and of IBR-DTN, and ION's custody transfer enhancement block: it is an
//!   age if it is one number and nothing else. The age is written in microseconds, as the draft and IBR-DTN do; DTN2
//!   keeps to an older draft and writes seconds, which only its operator can tell: the agent's `ages-in-seconds`.
//! - A previous hop block has its node as a reference into the dictionary, as two texts, or (older DTN2) as one: all
//!   three are read, and the two texts of RFC 6259 are written.
//!
//! # Units
//! Creation times and lifetimes are seconds (since 2000-01-01 UTC), ages microseconds, lengths bytes.

pub mod admin;
pub mod block;
pub mod bundle;
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
