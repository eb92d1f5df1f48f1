//! Bundle Protocol Security: RFC 9172 (BPSec), with the security contexts of RFC 9173.
//!
//! Pure functions over bundles of version 7. A security source adds operations, a verifier checks them, an acceptor checks
//! and removes them. Which operations a bundle must have, and what becomes of one that fails, is the policy of the caller.
//! The [agent](super::agent) signs, encrypts, decrypts and verifies payloads with it.
//!
//! ```text
//!             source                                                acceptor
//!  bundle --> sign --> encrypt --> ... verify what is readable ... --> decrypt --> verify, accept --> bundle
//!             BIB      BCB of each target, and of BIBs of the same targets
//! ```
//!
//! | part | contents | clauses |
//! |---|---|---|
//! | [`SecurityBlock`] | codec of the abstract security block | RFC 9172 3.6 |
//! | [`sign`], [`verify`], [`accept`] | integrity: BIB-HMAC-SHA2 | RFC 9173 3 |
//! | [`BIB_COSE_SIGN1`] | integrity with private keys: a context of this implementation, version 1 | RFC 9052, RFC 9053 2.2 |
//! | [`Signing`], [`Verification`] | both for payloads that pass in pieces | |
//! | [`encrypt`], [`decrypt`] | confidentiality: BCB-AES-GCM | RFC 9173 4 |
//! | [`Encryption`], [`Decryption`] | both for payloads that pass in pieces | |
//! | [`check`], [`require`], [`discard`] | rules between security blocks | RFC 9172 3.2 to 3.9, 5.1.1 |
//! | [`Keys`], [`KeyChoice`] | keys by security source and name, and when they are valid | RFC 9172 6 |
//! | [`Fault`] | reasons, and their reason codes | RFC 9172 7.1 |
//!
//! # Clauses
//!
//! | clause | implementation |
//! |---|---|
//! | RFC 9172 1.2: protection of keys in memory | they are not shown in logs; they are not erased |
//! | RFC 9172 3.2, 3.7, 3.8: one operation of a service for a target, allowed targets, flags of confidentiality blocks | [`check`], for bundles made and received |
//! | RFC 9172 3.3: many targets of one block | integrity: made and read; confidentiality: read, see below |
//! | RFC 9172 3.6, 11.3: the context identifier | signed, because the registry has negative ones for private use |
//! | RFC 9172 3.9: a block integrity block of an encrypted target is encrypted, and divided if necessary | [`encrypt`], see below |
//! | RFC 9172 3.9: no separate integrity of what the same source encrypts | left to the caller; example 4 of RFC 9173 has it |
//! | RFC 9172 4: canonical forms | deterministic encoding is the only one that [`bp`](super) decodes; reserved block flags count as zero |
//! | RFC 9172 5.1: order of decryption and verification | encrypted blocks are not verified |
//! | RFC 9172 5.2: fragments | they are refused, made and received: reassembly comes first |
//! | RFC 9172 10: other security blocks | not implemented |
//! | RFC 9173 3.3, 4.3: parameters and defaults | all; scope flags that are not assigned are refused, because the value covers something unknown |
//! | RFC 9173 3.3.2, 4.3.3: wrapped keys | made and read |
//! | RFC 9173 3.5: length of HMAC keys | 16 to 128 bytes, because the examples of RFC 9173 have 16 for every variant |
//! | RFC 9173 3.8, 4.8: no CRC for a target, and a new one after acceptance | [`sign`], [`encrypt`], [`accept`], [`decrypt`] |
//! | RFC 9173 4.3.1: initialization vectors | 12 bytes made, 8 to 16 read |
//! | RFC 9173 4.6: limit of failed attempts, replay | not implemented: they need state |
//!
//! # Where the documents disagree with themselves
//!
//! 1. A block confidentiality block has one initialization vector for all targets, and none may be used twice with a key
//!    (RFC 9173 4.6); example 4 of its appendix does so. [`encrypt`] makes one block for each target, also for an integrity
//!    block, which RFC 9172 3.9 allows and Hardy does, too; [`decrypt`] accepts both. RFC 9172 3.8, that a block
//!    confidentiality block shares a target with the integrity block that it encrypts, is not enforced.
//! 2. A divided block integrity block gets a new number. Values that cover the number (scope [`Scope::SECURITY_HEADER`])
//!    would be lost, so that [`encrypt`] fails with [`Fault::Indivisible`]. Sign such targets in blocks of their own.
//! 3. A primary block loses its CRC when it is signed, and gets it back at the acceptor. Other operations that cover the
//!    primary block would fail then: see [`Fault::CoveredPrimaryBlock`]. Sign the primary block first.
//! 4. A signed primary block is hashed inside a byte string in example 3 (RFC 9173 A.3.3.1), and is not according to the
//!    text (3.7). The example is followed, as by Hardy.
//!
//! # What an integrity block does not cover
//!
//! Blocks that are no target; the CRC type of a target other than the primary block; reserved flags of blocks and of the
//! security block itself; without [`Scope::ALL`], headers or the primary block. That a block integrity block is there at
//! all is not covered: [`require`] finds that it is missing. A valid signature says that the security source
//! ([`Verdict::source`]) has made it; whether that node may speak for the source of the bundle is a question of policy.
//!
//! # Example
//!
//! ```
//! use bytes::Bytes;
//! use longwire_proto::bp::{BlockFlags, Bundle, CreationTimestamp, CrcType, DtnTime, Eid, Head, PrimaryBlock};
//! use longwire_proto::bp::bpsec::{
//!     Algorithm, Key, KeyChoice, Keys, PAYLOAD_BLOCK, PRIMARY_BLOCK, Scope, Service, SignRequest, accept, require, sign,
//!     verify,
//! };
//!
//! let now = DtnTime(800_000_000_000);
//! let source = Eid::ipn(2, 0);
//! let timestamp = CreationTimestamp { time: now, sequence: 0 };
//! let primary = PrimaryBlock::new(Eid::ipn(3, 1), source.clone(), timestamp, 60_000);
//! let mut bundle = Bundle::new(Head::new(primary, 0), Bytes::from_static(b"hello, moon"));
//!
//! let keys = Keys::from_iter([Key::new(source.clone(), "field day", Algorithm::Hmac256, &[7; 32])?]);
//! let keys = KeyChoice { keys: &keys, name: "field day", at: now };
//! let request = SignRequest {
//!     source,
//!     targets: vec![PRIMARY_BLOCK, PAYLOAD_BLOCK],
//!     algorithm: Algorithm::Hmac256,
//!     scope: Scope::ALL,
//!     fresh_key: None,
//!     flags: BlockFlags::NONE,
//! };
//! sign(&mut bundle, &request, &keys)?;
//!
//! require(&bundle.head, Service::Integrity, PAYLOAD_BLOCK)?;
//! let verdicts = verify(&bundle, &keys)?;
//! assert!(verdicts.iter().all(|verdict| verdict.outcome.is_ok() && verdict.source == bundle.head.primary.source));
//! accept(&mut bundle.head, &verdicts, CrcType::Crc32c)?;
//! assert!(bundle.head.blocks.is_empty());
//! # Ok::<(), longwire_proto::bp::bpsec::Fault>(())
//! ```
//!
//! # Units
//! Times are DTN times in milliseconds, lengths are in bytes.

mod block;
mod canonical;
mod cipher;
mod confidentiality;
mod fault;
mod gcm;
mod integrity;
mod keys;
mod rules;
mod signature;
mod streaming;
#[cfg(test)]
mod tests;

pub use block::{FIELDS_MAX, Field, Operation, SecurityBlock, TARGETS_MAX, VALUE_BYTES_MAX};
pub use canonical::{PAYLOAD_BLOCK, PRIMARY_BLOCK, Scope};
pub use cipher::IV_BYTES;
pub use confidentiality::{
    BCB_AES_GCM, EncryptRequest, TARGET_BYTES_MAX, TagPlace, decrypt, decrypt_block, encrypt,
};
pub use fault::Fault;
pub use integrity::{BIB_HMAC_SHA2, SignRequest, Signing, Verification, accept, algorithm, sign, verify};
pub use keys::{Algorithm, Key, KeyChoice, Keys, PINS_MAX, Secret};
pub use rules::{Service, Verdict, check, discard, find, require};
pub use signature::{BIB_COSE_SIGN1, Fingerprint, NotAFingerprint, PublicKey};
pub use streaming::{
    Decryption, Decryptor, Encryption, decrypt_extensions, encryption_algorithm, encryption_scope,
};
