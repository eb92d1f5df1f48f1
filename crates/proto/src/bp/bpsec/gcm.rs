//! AES-GCM over bytes that pass in pieces (NIST SP 800-38D): the keystream at any offset, and the authentication tag.

use super::cipher::TAG_BYTES;
use aes_gcm::aes::cipher::generic_array::GenericArray;
use aes_gcm::aes::cipher::{BlockEncrypt, KeyInit as _, KeyIvInit as _, StreamCipher as _, StreamCipherSeek};
use aes_gcm::aes::{Aes128, Aes256};
use core::fmt;
use ctr::Ctr32BE;
use ghash::GHash;
use ghash::universal_hash::UniversalHash as _;

/// Length of a block of AES, bytes.
const BLOCK_BYTES: usize = 16;
/// Maximum length of the bytes under one initialization vector (NIST SP 800-38D 5.2.1.1).
pub(super) const BYTES_MAX: u64 = (1 << 36) - 32;

#[derive(Clone)]
enum Counter {
    Aes128(Box<Ctr32BE<Aes128>>),
    Aes256(Box<Ctr32BE<Aes256>>),
}

/// Keystream of a key and an initialization vector, which encrypts and decrypts.
#[derive(Clone)]
pub(super) struct Keystream(Counter);

impl fmt::Debug for Keystream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("..")
    }
}

impl Keystream {
    /// Encrypts or decrypts bytes whose first one has this offset.
    pub(super) fn apply(&mut self, offset: u64, data: &mut [u8]) {
        // The first block of the counter is that of the tag.
        self.at(offset + BLOCK_BYTES as u64, data);
    }

    fn at(&mut self, position: u64, data: &mut [u8]) {
        match &mut self.0 {
            Counter::Aes128(counter) => {
                counter.seek(position);
                counter.apply_keystream(data);
            }
            Counter::Aes256(counter) => {
                counter.seek(position);
                counter.apply_keystream(data);
            }
        }
    }
}

/// Authentication tag of ciphertext that passes in pieces.
#[derive(Clone)]
pub(super) struct Tag {
    hash: GHash,
    /// Bytes that do not fill a block yet.
    rest: Vec<u8>,
    associated_bytes: u64,
    data_bytes: u64,
    mask: [u8; TAG_BYTES],
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tag({} bytes)", self.data_bytes)
    }
}

impl Tag {
    /// Adds the next bytes of the ciphertext.
    pub(super) fn update(&mut self, ciphertext: &[u8]) {
        self.data_bytes += ciphertext.len() as u64;
        let mut data = ciphertext;
        if !self.rest.is_empty() {
            let (first, others) = data.split_at(data.len().min(BLOCK_BYTES - self.rest.len()));
            self.rest.extend_from_slice(first);
            if self.rest.len() < BLOCK_BYTES {
                return;
            }
            self.hash.update_padded(&self.rest);
            self.rest.clear();
            data = others;
        }
        let (whole, rest) = data.split_at(data.len() / BLOCK_BYTES * BLOCK_BYTES);
        self.hash.update_padded(whole);
        self.rest.extend_from_slice(rest);
    }

    /// Returns the tag.
    pub(super) fn finish(mut self) -> [u8; TAG_BYTES] {
        self.hash.update_padded(&self.rest);
        let mut lengths = [0; BLOCK_BYTES];
        lengths[..8].copy_from_slice(&(self.associated_bytes * 8).to_be_bytes());
        lengths[8..].copy_from_slice(&(self.data_bytes * 8).to_be_bytes());
        self.hash.update(&[lengths.into()]);
        let mut tag: [u8; TAG_BYTES] = self.hash.finalize().into();
        tag.iter_mut().zip(self.mask).for_each(|(byte, mask)| *byte ^= mask);
        tag
    }
}

/// Begins the encryption or decryption of bytes with a key of 16 or 32 bytes.
pub(super) fn begin(key: &[u8], iv: &[u8], associated: &[u8]) -> (Keystream, Tag) {
    let hash = GHash::new(&hash_key(key).into());
    let counter = first_counter(&hash, iv);
    let mut keystream = Keystream(match key.len() {
        16 => Counter::Aes128(Box::new(Ctr32BE::new(GenericArray::from_slice(key), &counter.into()))),
        _ => Counter::Aes256(Box::new(Ctr32BE::new(GenericArray::from_slice(key), &counter.into()))),
    });
    let mut mask = [0; TAG_BYTES];
    keystream.at(0, &mut mask);
    let mut hash = hash;
    hash.update_padded(associated);
    let associated_bytes = associated.len() as u64;
    (keystream, Tag { hash, rest: Vec::new(), associated_bytes, data_bytes: 0, mask })
}

/// Key of the hash: a block of zeros, encrypted.
fn hash_key(key: &[u8]) -> [u8; BLOCK_BYTES] {
    let mut block = [0; BLOCK_BYTES].into();
    match key.len() {
        16 => Aes128::new(GenericArray::from_slice(key)).encrypt_block(&mut block),
        _ => Aes256::new(GenericArray::from_slice(key)).encrypt_block(&mut block),
    }
    block.into()
}

/// Block of the counter from which the mask of the tag is made (NIST SP 800-38D 7.1).
fn first_counter(hash: &GHash, iv: &[u8]) -> [u8; BLOCK_BYTES] {
    let mut counter = [0; BLOCK_BYTES];
    if iv.len() == 12 {
        counter[..12].copy_from_slice(iv);
        counter[15] = 1;
        return counter;
    }
    let mut hash = hash.clone();
    hash.update_padded(iv);
    counter[8..].copy_from_slice(&(iv.len() as u64 * 8).to_be_bytes());
    hash.update(&[counter.into()]);
    hash.finalize().into()
}
