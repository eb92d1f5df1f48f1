//! Comparison of the bundle codec with two other implementations of RFC 9171: the crates `bp7` and `hardy-bpv7`.
//!
//! | file | content |
//! |---|---|
//! | [`tree`] | a bundle as a tree of CBOR items that can be made invalid in any way, with correct CRCs |
//! | [`damage`] | random damage to such a tree |
//! | [`case`] | one bundle for each rule of RFC 9171, with a violation of it or a use to its limit |
//! | [`verdict`] | the verdict of each implementation on given bytes, and the decoded fields |
//! | [`difference`] | every class of bundle with different verdicts, and the deciding clause |
//!
//! The tests fail for a difference that is not in the table and for a row of the table without a difference.

pub mod case;
pub mod damage;
pub mod difference;
pub mod tree;
pub mod verdict;
