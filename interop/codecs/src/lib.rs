//! The bundle codec beside two other implementations of RFC 9171: the crates `bp7` and `hardy-bpv7`.
//!
//! | file | what |
//! |---|---|
//! | [`tree`] | a bundle as a tree of CBOR items that can be made wrong in any way, its checksums still right |
//! | [`damage`] | random damage to such a tree |
//! | [`case`] | one bundle for each rule of RFC 9171, broken or used to its limit |
//! | [`verdict`] | what each implementation says of given bytes, and what it read in them |
//! | [`difference`] | every class of bundle of which a partner thinks otherwise, and the clause that decides |
//!
//! A difference that is not in the table fails the tests; so does a line of the table that nothing shows any more.

pub mod case;
pub mod damage;
pub mod difference;
pub mod tree;
pub mod verdict;
