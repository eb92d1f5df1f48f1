//! AES-GCM and AES key wrap, for keys and initialization vectors of every length that RFC 9173 allows.

use super::Fault;
use aes_gcm::AesGcm;
use aes_gcm::aead::generic_array::{ArrayLength, GenericArray, typenum};
use aes_gcm::aead::{AeadInPlace, KeyInit};
use aes_gcm::aes::cipher::{BlockCipher, BlockDecrypt, BlockEncrypt, BlockSizeUser};
use aes_gcm::aes::{Aes128, Aes192, Aes256};
use aes_kw::Kek;
use typenum::{U8, U9, U10, U11, U12, U13, U14, U15, U16};

/// Length of an authentication tag, bytes (RFC 9173 4.4.1).
pub(super) const TAG_BYTES: usize = 16;
/// Length of the initialization vectors that are made, bytes (RFC 9173 4.3.1).
pub const IV_BYTES: usize = 12;
/// Lengths of the initialization vectors that are read, bytes (RFC 9173 4.3.1).
pub(super) const IV_BYTES_READ: core::ops::RangeInclusive<usize> = 8..=16;
/// Length by which a wrapped key is longer than the key, bytes (RFC 3394).
const WRAP_BYTES: usize = 8;

/// Block cipher AES with a key of some length.
trait Aes: BlockCipher + BlockSizeUser<BlockSize = U16> + BlockEncrypt + BlockDecrypt + KeyInit {}

impl Aes for Aes128 {}
impl Aes for Aes192 {}
impl Aes for Aes256 {}

/// Encrypts the data in place. Returns the authentication tag.
pub(super) fn seal(key: &[u8], iv: &[u8; IV_BYTES], associated: &[u8], data: &mut [u8]) -> [u8; TAG_BYTES] {
    let iv = GenericArray::from_slice(iv);
    let tag = match key.len() {
        16 => gcm::<Aes128, U12>(key).encrypt_in_place_detached(iv, associated, data),
        _ => gcm::<Aes256, U12>(key).encrypt_in_place_detached(iv, associated, data),
    };
    tag.expect("the length of the data is limited").into()
}

/// Decrypts the data in place, unless the tag does not match.
pub(super) fn open(
    key: &[u8],
    iv: &[u8],
    associated: &[u8],
    data: &mut [u8],
    tag: &[u8; TAG_BYTES],
) -> Result<(), Fault> {
    match key.len() {
        16 => open_with::<Aes128>(key, iv, associated, data, tag),
        _ => open_with::<Aes256>(key, iv, associated, data, tag),
    }
}

fn open_with<A: Aes>(
    key: &[u8],
    iv: &[u8],
    associated: &[u8],
    data: &mut [u8],
    tag: &[u8; TAG_BYTES],
) -> Result<(), Fault> {
    match iv.len() {
        8 => open_sized::<A, U8>(key, iv, associated, data, tag),
        9 => open_sized::<A, U9>(key, iv, associated, data, tag),
        10 => open_sized::<A, U10>(key, iv, associated, data, tag),
        11 => open_sized::<A, U11>(key, iv, associated, data, tag),
        12 => open_sized::<A, U12>(key, iv, associated, data, tag),
        13 => open_sized::<A, U13>(key, iv, associated, data, tag),
        14 => open_sized::<A, U14>(key, iv, associated, data, tag),
        15 => open_sized::<A, U15>(key, iv, associated, data, tag),
        _ => open_sized::<A, U16>(key, iv, associated, data, tag),
    }
}

fn open_sized<A: Aes, N: ArrayLength<u8>>(
    key: &[u8],
    iv: &[u8],
    associated: &[u8],
    data: &mut [u8],
    tag: &[u8; TAG_BYTES],
) -> Result<(), Fault> {
    let iv = GenericArray::from_slice(iv);
    let opened = gcm::<A, N>(key).decrypt_in_place_detached(iv, associated, data, tag.into());
    opened.map_err(|_| Fault::WrongKeyOrAltered)
}

fn gcm<A: Aes, N: ArrayLength<u8>>(key: &[u8]) -> AesGcm<A, N> {
    AesGcm::new_from_slice(key)
        .unwrap_or_else(|_| unreachable!("the length of a key is that of its algorithm"))
}

/// Wraps a key with a key encryption key (RFC 3394).
pub(super) fn wrap(encryption_key: &[u8], key: &[u8]) -> Result<Vec<u8>, Fault> {
    if !key.len().is_multiple_of(WRAP_BYTES) {
        return Err(Fault::KeyLength);
    }
    let wrapped = match encryption_key.len() {
        16 => kek::<Aes128>(encryption_key).wrap_vec(key),
        24 => kek::<Aes192>(encryption_key).wrap_vec(key),
        _ => kek::<Aes256>(encryption_key).wrap_vec(key),
    };
    wrapped.map_err(|_| Fault::KeyLength)
}

/// Unwraps a key.
pub(super) fn unwrap(encryption_key: &[u8], wrapped: &[u8]) -> Result<Vec<u8>, Fault> {
    // The shortest wrapped key has two parts of eight bytes (RFC 3394 2.2.1).
    if wrapped.len() < 3 * WRAP_BYTES || !wrapped.len().is_multiple_of(WRAP_BYTES) {
        return Err(Fault::KeyLength);
    }
    let key = match encryption_key.len() {
        16 => kek::<Aes128>(encryption_key).unwrap_vec(wrapped),
        24 => kek::<Aes192>(encryption_key).unwrap_vec(wrapped),
        _ => kek::<Aes256>(encryption_key).unwrap_vec(wrapped),
    };
    key.map_err(|_| Fault::WrongKeyOrAltered)
}

fn kek<A: Aes>(key: &[u8]) -> Kek<A> {
    Kek::new(GenericArray::from_slice(key))
}
