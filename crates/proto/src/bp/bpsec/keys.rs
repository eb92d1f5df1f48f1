//! Keys as values: for whom, for which algorithm, and how long they are valid.

use super::Fault;
use super::cipher;
use super::signature::{self, Fingerprint, PublicKey};
use crate::bp::{DtnTime, Eid};
use core::fmt;
use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use std::collections::BTreeMap;

/// Minimum and maximum length of an HMAC key, bytes. RFC 9173 3.5 requires the length of the code, and the examples of its
/// appendix have 16 bytes throughout.
const HMAC_KEY_BYTES: core::ops::RangeInclusive<usize> = 16..=128;

/// Algorithm that a key is for. The same bytes must not be a key for two of them (RFC 9173 6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// HMAC 256/256: HMAC with SHA-256.
    Hmac256,
    /// HMAC 384/384: HMAC with SHA-384.
    Hmac384,
    /// HMAC 512/512: HMAC with SHA-512.
    Hmac512,
    /// A128GCM: AES-128 in Galois/counter mode.
    Aes128Gcm,
    /// A256GCM: AES-256 in Galois/counter mode.
    Aes256Gcm,
    /// AES key wrap (RFC 3394): the key is a key encryption key.
    KeyWrap,
    /// Ed25519 (RFC 9053 2.2): the key is a private key, of which others know the public one.
    Ed25519,
}

impl Algorithm {
    fn accepts(self, length: usize) -> bool {
        match self {
            Algorithm::Hmac256 | Algorithm::Hmac384 | Algorithm::Hmac512 => HMAC_KEY_BYTES.contains(&length),
            Algorithm::Aes128Gcm => length == 16,
            Algorithm::Aes256Gcm | Algorithm::Ed25519 => length == 32,
            Algorithm::KeyWrap => matches!(length, 16 | 24 | 32),
        }
    }
}

/// Bytes of a key. They are not shown in logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// Creates the secret of a key for this algorithm.
    ///
    /// # Errors
    /// Fails if the length does not suit the algorithm.
    pub fn new(algorithm: Algorithm, bytes: &[u8]) -> Result<Self, Fault> {
        if algorithm.accepts(bytes.len()) { Ok(Secret(bytes.to_vec())) } else { Err(Fault::KeyLength) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Bytes that nobody without the secret can tell from random ones, other ones for each label and each `unique`.
    pub(super) fn derive(&self, label: &str, unique: &[u8]) -> [u8; 32] {
        let mut hash = Hmac::<Sha256>::new_from_slice(&self.0)
            .unwrap_or_else(|_| unreachable!("any length of a key serves"));
        hash.update(b"longwire ");
        hash.update(label.as_bytes());
        hash.update(&[0]);
        hash.update(unique);
        hash.finalize().into_bytes().into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

/// Key of a security source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    source: Eid,
    name: String,
    algorithm: Algorithm,
    secret: Secret,
    not_before: Option<DtnTime>,
    not_after: Option<DtnTime>,
}

impl Key {
    /// Creates a key that is always valid.
    ///
    /// # Errors
    /// Fails if the length of the key does not suit the algorithm.
    pub fn new(source: Eid, name: &str, algorithm: Algorithm, secret: &[u8]) -> Result<Self, Fault> {
        let secret = Secret::new(algorithm, secret)?;
        Ok(Key { source, name: name.to_owned(), algorithm, secret, not_before: None, not_after: None })
    }

    /// Limits the time for which the key is valid, both ends included.
    #[must_use]
    pub fn valid(mut self, not_before: Option<DtnTime>, not_after: Option<DtnTime>) -> Self {
        (self.not_before, self.not_after) = (not_before, not_after);
        self
    }

    /// Security source.
    pub fn source(&self) -> &Eid {
        &self.source
    }

    pub(super) fn secret(&self) -> &Secret {
        &self.secret
    }

    /// Name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Algorithm.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Beginning of the time for which the key is valid; `None` if that is unlimited.
    pub fn valid_from(&self) -> Option<DtnTime> {
        self.not_before
    }

    /// Public key; `None` if the key is not a private one.
    pub fn public_key(&self) -> Option<PublicKey> {
        let is_private = self.algorithm == Algorithm::Ed25519;
        is_private.then(|| signature::public_key(&self.secret).ok()).flatten()
    }

    /// Fails if the key is not valid at this time.
    ///
    /// # Errors
    /// Fails with the reason.
    pub fn check(&self, at: DtnTime) -> Result<(), Fault> {
        match (self.not_before, self.not_after) {
            (None, None) => Ok(()),
            _ if !at.is_known() => Err(Fault::UnknownTime),
            (Some(first), _) if at < first => Err(Fault::PrematureKey),
            (_, Some(last)) if at > last => Err(Fault::ExpiredKey),
            _ => Ok(()),
        }
    }
}

/// Maximum number of public keys that are known: a stranger may make any number of them.
pub const PINS_MAX: usize = 4096;

/// Keys that a node knows.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    keys: Vec<Key>,
    /// Fingerprints of the public keys of security sources.
    pins: BTreeMap<Eid, Fingerprint>,
    pins_at_first_use: bool,
}

impl Keys {
    /// Adds a key. Keys of one source with the same name and algorithm are successors of one another, and their times do not
    /// overlap: of those that are valid, only the first that was added is tried.
    pub fn add(&mut self, key: Key) {
        self.keys.push(key);
    }

    /// All keys, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter()
    }

    /// Accepts the key of a security source of which none is known. The caller then pins it: without that, the next key is
    /// a first one as well.
    pub fn pin_at_first_use(&mut self, on: bool) {
        self.pins_at_first_use = on;
    }

    /// Notes the public key of a security source, in place of an earlier one. Returns false if there are [`PINS_MAX`].
    pub fn pin(&mut self, source: &Eid, fingerprint: Fingerprint) -> bool {
        let has_place = self.pins.len() < PINS_MAX || self.pins.contains_key(&source.node_id());
        if has_place {
            self.pins.insert(source.node_id().detached(), fingerprint);
        }
        has_place
    }

    /// Forgets the public key of a security source. Returns false if none is known.
    pub fn forget(&mut self, source: &Eid) -> bool {
        self.pins.remove(&source.node_id()).is_some()
    }

    /// True if a key for signatures is known of the node to which this endpoint belongs.
    pub fn know(&self, endpoint: &Eid) -> bool {
        let node = endpoint.node_id();
        let signs = |key: &Key| {
            !matches!(key.algorithm, Algorithm::Aes128Gcm | Algorithm::Aes256Gcm | Algorithm::KeyWrap)
        };
        self.pins.contains_key(&node) || self.keys.iter().any(|key| key.source == node && signs(key))
    }

    /// Known public keys by security source.
    pub fn pins(&self) -> &BTreeMap<Eid, Fingerprint> {
        &self.pins
    }

    /// Decides whether a security source may have this public key. That of a private key which is known needs no pin.
    fn check_public(&self, source: &Eid, key: &PublicKey) -> Result<(), Fault> {
        let own = self.keys.iter().filter(|own| own.source == *source).filter_map(Key::public_key);
        match self.pins.get(&source.node_id()) {
            _ if own.into_iter().any(|own| own == *key) => Ok(()),
            Some(pinned) if *pinned == key.fingerprint() => Ok(()),
            Some(_) => Err(Fault::ChangedKey),
            None if self.pins_at_first_use && self.pins.len() < PINS_MAX => Ok(()),
            None if self.pins_at_first_use => Err(Fault::TooManyKeys),
            None => Err(Fault::MissingKey),
        }
    }

    fn find(&self, source: &Eid, name: &str, algorithm: Algorithm, at: DtnTime) -> Result<&Secret, Fault> {
        let is_meant = |key: &&Key| key.algorithm == algorithm && key.name == name && key.source == *source;
        let mut fault = Fault::MissingKey;
        for key in self.keys.iter().filter(is_meant) {
            match key.check(at) {
                Ok(()) => return Ok(&key.secret),
                Err(other) => fault = other,
            }
        }
        Err(fault)
    }
}

impl FromIterator<Key> for Keys {
    fn from_iter<T: IntoIterator<Item = Key>>(keys: T) -> Self {
        Keys { keys: keys.into_iter().collect(), ..Keys::default() }
    }
}

/// Choice of a key: by its name, among those of the security source, for the algorithm that the operation names.
#[derive(Clone, Copy, Debug)]
pub struct KeyChoice<'a> {
    /// All keys.
    pub keys: &'a Keys,
    /// Name of the key; that of the key encryption key, if the security block contains a wrapped key.
    pub name: &'a str,
    /// Time at which the key must be valid: the node's, or that at which the bundle was created. Who has an expired key can
    /// write an earlier creation time.
    pub at: DtnTime,
}

impl KeyChoice<'_> {
    fn find(&self, source: &Eid, algorithm: Algorithm) -> Result<&Secret, Fault> {
        self.keys.find(source, self.name, algorithm, self.at)
    }

    /// Decides whether a security source may have this public key.
    pub(super) fn check_public(&self, source: &Eid, key: &PublicKey) -> Result<(), Fault> {
        self.keys.check_public(source, key)
    }

    /// Key of a received operation: the one in the block, or a shared one.
    pub(super) fn of_block(
        &self,
        source: &Eid,
        algorithm: Algorithm,
        wrapped: Option<&[u8]>,
    ) -> Result<Secret, Fault> {
        let Some(wrapped) = wrapped else { return self.find(source, algorithm).cloned() };
        let bytes = cipher::unwrap(self.find(source, Algorithm::KeyWrap)?.bytes(), wrapped)?;
        Secret::new(algorithm, &bytes)
    }

    /// Key of a new operation, and what the block contains of it: `fresh` is a key for this block alone.
    pub(super) fn for_block(
        &self,
        source: &Eid,
        algorithm: Algorithm,
        fresh: Option<&Secret>,
    ) -> Result<(Secret, Option<Vec<u8>>), Fault> {
        let Some(fresh) = fresh else { return Ok((self.find(source, algorithm)?.clone(), None)) };
        let secret = Secret::new(algorithm, fresh.bytes())?;
        let wrapped = cipher::wrap(self.find(source, Algorithm::KeyWrap)?.bytes(), fresh.bytes())?;
        Ok((secret, Some(wrapped)))
    }
}
