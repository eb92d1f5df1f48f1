//! BIB-COSE-SIGN1: signatures of blocks with a private key (context of this implementation, version 1).
//!
//! The security context has a negative identifier, which is for private use (RFC 9172 11.3). The integrity-protected
//! plaintext is that of BIB-HMAC-SHA2 (RFC 9173 3.7), so that the scope flags mean the same. Its SHA-512 hash is the payload
//! of a COSE_Sign1 structure (RFC 9052 4.2) with Ed25519 (RFC 9053 2.2): Ed25519 reads its input twice, and a bundle's
//! payload passes once.
//!
//! ```text
//! parameters   1: version of the context, 1      3: scope flags, default 7
//! result       1: byte string with
//!                 [ h'a2 01 27 04 58 20 <public key>', {}, null, <signature> ]     (protected: alg EdDSA, kid)
//! signed       [ "Signature1", <protected>, <external>, <SHA-512 of the plaintext> ]
//! external     identifier of the context, version, and the security source as an endpoint ID
//! ```
//!
//! The only encoding is this one, of 109 bytes. The key in the block proves nothing by itself: see
//! [`Keys::pin`](super::Keys::pin).

use super::Fault;
use super::keys::Secret;
use crate::bp::Eid;
use crate::codec::cbor::{self, Major};
use crate::codec::{self};
use bytes::{Bytes, BytesMut};
use core::fmt;
use core::str::FromStr;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use sha2::{Digest, Sha256};

/// Security context identifier, for private use (RFC 9172 11.3).
pub const BIB_COSE_SIGN1: i64 = -18_225;
/// Version of the context.
pub(super) const VERSION: u64 = 1;
/// Length of the value of the result, bytes.
pub(super) const RESULT_BYTES: usize = 109;

/// Beginning of the structure: an array of four, and the protected header up to the key.
const BEFORE_KEY: [u8; 9] = [0x84, 0x58, 0x26, 0xa2, 0x01, 0x27, 0x04, 0x58, 0x20];
/// No unprotected header, a detached payload, and the head of the signature.
const AFTER_KEY: [u8; 4] = [0xa0, 0xf6, 0x58, 0x40];
/// Position of the protected header.
const PROTECTED: core::ops::Range<usize> = 3..41;

/// Public key of a security source (Ed25519).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicKey(pub [u8; 32]);

impl PublicKey {
    /// Fingerprint of the key.
    pub fn fingerprint(&self) -> Fingerprint {
        let hash = Sha256::digest(self.0);
        Fingerprint(hash[..16].try_into().expect("a hash is longer"))
    }
}

/// Fingerprint of a public key: the first 128 bits of its SHA-256 hash, written as eight groups of four hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint(pub [u8; 16]);

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, pair) in self.0.chunks(2).enumerate() {
            let dash = if at == 0 { "" } else { "-" };
            write!(f, "{dash}{:02x}{:02x}", pair[0], pair[1])?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAFingerprint;

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    /// Parses 32 hexadecimal digits, with or without dashes, colons or spaces between them.
    fn from_str(text: &str) -> Result<Self, NotAFingerprint> {
        let digit = |character: char| character.to_digit(16).ok_or(NotAFingerprint);
        let digits = text.chars().filter(|character| !matches!(character, '-' | ':' | ' ')).map(digit);
        let digits = digits.take(33).collect::<Result<Vec<u32>, _>>()?;
        let bytes: Vec<u8> = digits
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8))
            .collect();
        match (digits.len(), bytes.try_into()) {
            (32, Ok(bytes)) => Ok(Fingerprint(bytes)),
            _ => Err(NotAFingerprint),
        }
    }
}

/// Public key of a private one.
pub(super) fn public_key(secret: &Secret) -> Result<PublicKey, Fault> {
    let bytes = pair(secret)?.public_key().as_ref().try_into();
    bytes.map(PublicKey).map_err(|_| Fault::KeyLength)
}

fn pair(secret: &Secret) -> Result<Ed25519KeyPair, Fault> {
    Ed25519KeyPair::from_seed_unchecked(secret.bytes()).map_err(|_| Fault::KeyLength)
}

/// Bytes that are signed: the Sig_structure (RFC 9052 4.4).
fn signed_bytes(protected: &[u8], source: &Eid, hash: &[u8]) -> Bytes {
    const CONTEXT: &str = "Signature1";
    let external = codec::encoded(64, |out| {
        cbor::put_head(Major::Negative, BIB_COSE_SIGN1.unsigned_abs() - 1, out);
        cbor::put_unsigned(VERSION, out);
        source.encode(out);
    });
    codec::encoded(192 + external.len(), |out: &mut BytesMut| {
        cbor::put_array(4, out);
        cbor::put_head(Major::TextString, CONTEXT.len() as u64, out);
        out.extend_from_slice(CONTEXT.as_bytes());
        cbor::put_byte_string(protected, out);
        cbor::put_byte_string(&external, out);
        cbor::put_byte_string(hash, out);
    })
}

/// Value of the result for the hash of a plaintext.
pub(super) fn sign(secret: &Secret, source: &Eid, hash: &[u8]) -> Result<Vec<u8>, Fault> {
    let pair = pair(secret)?;
    let mut out = Vec::with_capacity(RESULT_BYTES);
    out.extend_from_slice(&BEFORE_KEY);
    out.extend_from_slice(pair.public_key().as_ref());
    let signature = pair.sign(&signed_bytes(&out[PROTECTED], source, hash));
    out.extend_from_slice(&AFTER_KEY);
    out.extend_from_slice(signature.as_ref());
    Ok(out)
}

/// Public key in the value of a result. `None` if the value has another form.
pub(super) fn key_of(value: &[u8]) -> Option<PublicKey> {
    let key_at = BEFORE_KEY.len();
    let key = value.get(key_at..key_at + 32)?;
    let is_form = value.len() == RESULT_BYTES
        && value.starts_with(&BEFORE_KEY)
        && value[key_at + 32..].starts_with(&AFTER_KEY);
    if is_form { key.try_into().ok().map(PublicKey).filter(PublicKey::is_sound) } else { None }
}

/// Encodings of y of the points of small order, little-endian: signatures by such a key fit any message.
const SMALL_ORDER: [[u8; 32]; 5] = [
    y(0, 0, 0),
    y(1, 0, 0),
    y(0xec, 0xff, 0x7f),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5,
        0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a,
        0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
];

/// A number with these first, middle and last bytes, little-endian.
const fn y(first: u8, middle: u8, last: u8) -> [u8; 32] {
    let mut bytes = [middle; 32];
    (bytes[0], bytes[31]) = (first, last);
    bytes
}

impl PublicKey {
    /// False for points of small order, and for numbers that are not reduced (RFC 8032 5.1.3).
    fn is_sound(&self) -> bool {
        let mut y = self.0;
        y[31] &= 0x7f;
        let is_reduced = y[31] != 0x7f || y[1..31] != [0xff; 30] || y[0] < 0xed;
        is_reduced && !SMALL_ORDER.contains(&y)
    }
}

/// Checks a signature by the key in the value of the result, which has the right form.
pub(super) fn verify(value: &[u8], source: &Eid, hash: &[u8]) -> Result<(), Fault> {
    let key = key_of(value).ok_or(Fault::WrongKeyOrAltered)?;
    let signed = signed_bytes(&value[PROTECTED], source, hash);
    let verified = UnparsedPublicKey::new(&ED25519, key.0).verify(&signed, &value[RESULT_BYTES - 64..]);
    verified.map_err(|_| Fault::WrongKeyOrAltered)
}
