//! Authentication of segments (RFC 5327 2.1).
//!
//! ```text
//! type, session ID | 0x11 | 0x00, length, ciphersuite, key ID | ... contents ... | 0x00, length, value
//!                  counts   extension of the header                               extension of the trailer
//! ```
//!
//! The value is computed from the whole segment without the value itself. All segments to send have both extensions. Of a
//! received segment, one correct value is enough, and an extension of the header may be missing (RFC 5327 2.1).
//!
//! The values say nothing of freshness: a segment that is sent again by someone else is correct. It brings nothing new to the
//! session that it belongs to, and does not begin one that is remembered.
//!
//! Not implemented: the ciphersuite RSA-SHA256, and cookies (RFC 5327 2.2).
//!
//! Units: bytes.

use super::wire::Segment;
use crate::codec::sdnv;
use crate::setting::{Fault, rule};
use bytes::{BufMut, Bytes, BytesMut};
use core::fmt;
use hmac::{Hmac, Mac};
use serde::{Deserialize, Serialize};
use sha1::Sha1;
use std::path::PathBuf;

/// Tag of the extensions.
const TAG: u8 = 0;
/// Length of the value of both HMAC ciphersuites.
const VALUE_BYTES: usize = 10;
/// Maximum number of values of a segment that are tried: a peer that changes its key sends two.
const VALUES_MAX: usize = 2;
/// Minimum length of a key.
const KEY_BYTES_MIN: usize = 16;
/// Maximum length of a key ID.
const KEY_ID_BYTES_MAX: usize = 64;
/// Key of the ciphersuite NULL.
const NULL_KEY: [u8; 20] = [
    0xc3, 0x7b, 0x7e, 0x64, 0x92, 0x58, 0x43, 0x40, 0xbe, 0xd1, 0x22, 0x07, 0x80, 0x89, 0x41, 0x15, 0x50,
    0x68, 0xf7, 0x38,
];

/// Ciphersuite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ciphersuite {
    /// 0: HMAC with SHA-1, shortened to 80 bits.
    #[default]
    #[serde(rename = "hmac-sha1-80")]
    HmacSha1,
    /// 1: RSA with SHA-256. Not implemented.
    #[serde(rename = "rsa-sha256")]
    RsaSha256,
    /// 255: as 0, with a key that everyone knows: a checksum.
    #[serde(rename = "null")]
    Null,
}

impl Ciphersuite {
    const fn code(self) -> u8 {
        match self {
            Ciphersuite::HmacSha1 => 0,
            Ciphersuite::RsaSha256 => 1,
            Ciphersuite::Null => 255,
        }
    }
}

/// Key in hexadecimal digits. It is not shown in logs.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretKey(pub String);

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// Authentication of the segments of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Authentication {
    /// Ciphersuite. Default `hmac-sha1-80`.
    pub suite: Ciphersuite,
    /// Key of both sides, at least 32 hexadecimal digits; not for `null`. Default: none.
    pub key: Option<SecretKey>,
    /// File that contains the key, instead of `key`. The owner of the link reads it. Default: none.
    pub key_file: Option<PathBuf>,
    /// Key ID in hexadecimal digits, by which the peer distinguishes keys. Received segments with another one are refused.
    /// Default: none is sent, and any is accepted.
    pub key_id: Option<String>,
}

impl Authentication {
    /// Checks the settings, whose key must have been read from its file.
    pub(super) fn check(&self) -> Result<(), Fault> {
        let wrong = "is not supported";
        rule(self.suite != Ciphersuite::RsaSha256, "suite", wrong, "use `hmac-sha1-80`")?;
        rule(self.key_file.is_none(), "key-file", "was not read", "set `key`")?;
        let id = self.key_id.as_deref().map_or(Some(vec![]), from_hex);
        let is_valid = id.is_some_and(|id| id.len() <= KEY_ID_BYTES_MAX);
        rule(is_valid, "key-id", "is not a valid key ID", "use up to 128 hexadecimal digits, such as 24")?;
        if self.suite == Ciphersuite::Null {
            return rule(self.key.is_none(), "key", "has no use", "ciphersuite `null` has no secret key");
        }
        let is_long = self.key().is_some_and(|key| key.len() >= KEY_BYTES_MIN);
        let hint = "use at least 32 hexadecimal digits; create a key with `openssl rand -hex 20`";
        rule(is_long, "key", if self.key.is_some() { "is not a valid key" } else { "is missing" }, hint)
    }

    fn key(&self) -> Option<Vec<u8>> {
        match self.suite {
            Ciphersuite::Null => Some(NULL_KEY.to_vec()),
            _ => from_hex(&self.key.as_ref()?.0),
        }
    }

    /// Returns the number of bytes by which a segment becomes longer.
    pub(super) fn overhead_bytes(&self) -> usize {
        header_extension(self).len() + 2 + VALUE_BYTES
    }
}

/// Returns the bytes that these hexadecimal digits stand for.
fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|value| value as u8)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

/// Extension of the header, with its tag and length.
fn header_extension(settings: &Authentication) -> Bytes {
    let id = settings.key_id.as_deref().and_then(from_hex).unwrap_or_default();
    let mut out = BytesMut::new();
    out.put_u8(TAG);
    sdnv::encode(1 + id.len() as u64, &mut out);
    out.put_u8(settings.suite.code());
    out.put_slice(&id);
    out.freeze()
}

/// Computes and checks the values of a link's segments.
pub(super) struct Authenticator {
    /// HMAC with the key, without input.
    mac: Hmac<Sha1>,
    header: Bytes,
    suite: u8,
    key_id: Option<Vec<u8>>,
    overhead_bytes: usize,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authenticator").field("suite", &self.suite).finish_non_exhaustive()
    }
}

impl Authenticator {
    /// Creates an authenticator for checked settings.
    pub(super) fn new(settings: &Authentication) -> Self {
        // HMAC accepts keys of any length.
        let key = settings.key().unwrap_or_default();
        Authenticator {
            mac: Hmac::new_from_slice(&key).unwrap_or_else(|_| unreachable!("HMAC has keys of any length")),
            header: header_extension(settings),
            suite: settings.suite.code(),
            key_id: settings.key_id.as_deref().and_then(from_hex),
            overhead_bytes: settings.overhead_bytes(),
        }
    }

    /// Returns the number of bytes by which a segment becomes longer.
    pub(super) fn overhead_bytes(&self) -> usize {
        self.overhead_bytes
    }

    /// Adds both extensions to an encoded segment without extensions.
    pub(super) fn seal(&self, segment: &[u8]) -> Bytes {
        let (before, after) = segment.split_at(counts_offset(segment));
        let mut out = BytesMut::with_capacity(segment.len() + self.overhead_bytes);
        out.put_slice(before);
        out.put_u8(0x11);
        out.put_slice(&self.header);
        out.put_slice(&after[1..]);
        out.put_u8(TAG);
        out.put_u8(VALUE_BYTES as u8);
        let value = self.value(&out);
        out.put_slice(&value);
        out.freeze()
    }

    /// Computes the value for these bytes.
    pub(super) fn value(&self, bytes: &[u8]) -> [u8; VALUE_BYTES] {
        let value = self.mac.clone().chain_update(bytes).finalize().into_bytes();
        core::array::from_fn(|at| value[at])
    }

    /// Returns true if a received segment is authentic. `encoded` is all of it, and `value_ends` has the offset after the
    /// value of each extension of its trailer.
    pub(super) fn accepts(&self, segment: &Segment, encoded: &[u8], value_ends: &[usize]) -> bool {
        let mut headers = segment.header.iter().filter(|extension| extension.tag == TAG).peekable();
        let is_of_key = |value: &[u8]| {
            let Some((suite, id)) = value.split_first() else { return false };
            *suite == self.suite && self.key_id.as_ref().is_none_or(|own| own == id)
        };
        if headers.peek().is_some() && !headers.any(|extension| is_of_key(&extension.value)) {
            return false;
        }
        let values = segment.trailer.iter().zip(value_ends);
        // A shorter value would be compared only as far as it goes.
        let values =
            values.filter(|(extension, _)| extension.tag == TAG && extension.value.len() == VALUE_BYTES);
        values.take(VALUES_MAX).any(|(extension, end)| {
            let begin = end - extension.value.len();
            let mac = self.mac.clone().chain_update(&encoded[..begin]).chain_update(&encoded[*end..]);
            mac.verify_truncated_left(&extension.value).is_ok()
        })
    }
}

/// Offset of the byte with the numbers of extensions: after the type and both numbers of the session.
fn counts_offset(segment: &[u8]) -> usize {
    let mut numbers = 0;
    let is_end = |byte: &u8| {
        numbers += usize::from(byte & 0x80 == 0);
        numbers == 2
    };
    2 + segment[1..].iter().position(is_end).unwrap_or_else(|| unreachable!("an encoded segment"))
}
