//! BCB-AES-GCM for payloads that pass in pieces, with keys that serve for one bundle or for many (RFC 9173 4).

use super::block::{Field, Operation, SecurityBlock};
use super::canonical::{self, Header, PAYLOAD_BLOCK, Scope};
use super::cipher::{self, IV_BYTES, TAG_BYTES};
use super::confidentiality::{self, BCB_AES_GCM};
use super::gcm::{self, Keystream, Tag};
use super::keys::{Algorithm, Key, KeyChoice, Secret};
use super::rules::{self, Service};
use super::{Fault, integrity};
use crate::bp::{Block, BlockType, Bundle, CrcType, Eid, Head};
use bytes::{Bytes, BytesMut};
use subtle::ConstantTimeEq as _;

/// One target of an encryption.
#[derive(Clone, Debug)]
struct Target {
    target: u64,
    /// Block confidentiality block.
    block: u64,
    iv: [u8; IV_BYTES],
    associated: Bytes,
    security: SecurityBlock,
}

impl Target {
    /// Data of the block confidentiality block with this tag.
    fn data(&self, tag: &[u8; TAG_BYTES]) -> Bytes {
        let mut security = self.security.clone();
        let results = vec![Field::byte_string(confidentiality::AUTHENTICATION_TAG, tag)];
        security.operations = vec![Operation { target: self.target, results }];
        security.to_bytes()
    }
}

/// Encryption of the payload of a bundle, and of the block integrity blocks that cover it (RFC 9172 3.9), as the payload
/// passes. Its length stays the same: tags are results.
#[derive(Clone, Debug)]
pub struct Encryption {
    head: Head,
    key: Secret,
    targets: Vec<Target>,
    keystream: Keystream,
    tag: Tag,
    announced: u64,
    passed: u64,
}

impl Encryption {
    /// Begins to encrypt a bundle, which may have been signed: [`Signing::draft`](super::Signing::draft) is enough.
    ///
    /// Of a key for AES-GCM, `unique` must be bytes that no other bundle has which is encrypted with it, by whatever node:
    /// the initialization vectors are derived from them (NIST SP 800-38D 8.2.2 counts them as random ones, of which a key
    /// may have 2^32). A key for AES key wrap encrypts a key for this bundle alone, which is derived from them as well.
    ///
    /// # Errors
    /// Fails if the rules of RFC 9172 do not allow it, or if the key is for another algorithm.
    pub fn begin(head: &Head, source: &Eid, key: &Key, unique: &[u8]) -> Result<Self, Fault> {
        rules::check_addition(head, Service::Confidentiality, &[PAYLOAD_BLOCK])?;
        if head.payload.length > gcm::BYTES_MAX {
            return Err(Fault::TargetLength);
        }
        let (algorithm, key, wrapped) = match key.algorithm() {
            algorithm @ (Algorithm::Aes128Gcm | Algorithm::Aes256Gcm) => {
                (algorithm, key.secret().clone(), None)
            }
            Algorithm::KeyWrap => {
                let fresh = key.secret().derive("key", unique);
                let wrapped = cipher::wrap(key.secret().bytes(), &fresh)?;
                (Algorithm::Aes256Gcm, Secret::new(Algorithm::Aes256Gcm, &fresh)?, Some(wrapped))
            }
            _ => return Err(Fault::MissingKey),
        };
        let variant = confidentiality::variant(algorithm).ok_or(Fault::MissingKey)?;
        let mut new = head.clone();
        let integrity = integrity::separate(&mut new, &[PAYLOAD_BLOCK])?;
        let mut targets: Vec<Target> = Vec::new();
        for target in [PAYLOAD_BLOCK].into_iter().chain(integrity) {
            let label = format!("iv {}", targets.len());
            let iv: [u8; IV_BYTES] =
                key.derive(&label, unique)[..IV_BYTES].try_into().expect("a part of a hash");
            let flags = confidentiality::replication(&new, target)?;
            let number = new.free_number();
            let header = Header { block_type: BlockType::BlockConfidentiality, number, flags };
            let mut associated = BytesMut::new();
            canonical::put_scope(Scope::ALL, &new, target, header, &mut associated)?;
            let security = SecurityBlock {
                context: BCB_AES_GCM,
                source: source.clone(),
                parameters: confidentiality::parameters(&iv, variant, wrapped.as_deref(), Scope::ALL),
                operations: Vec::new(),
            };
            let one = Target { target, block: number, iv, associated: associated.freeze(), security };
            canonical::set_crc(&mut new, target, CrcType::None);
            let data = one.data(&[0; TAG_BYTES]);
            let block = Block {
                block_type: BlockType::BlockConfidentiality,
                number,
                flags,
                crc: CrcType::None,
                data,
            };
            rules::insert(&mut new, block);
            targets.push(one);
        }
        let (keystream, tag) = gcm::begin(key.bytes(), &targets[0].iv, &targets[0].associated);
        Ok(Encryption { announced: head.payload.length, head: new, key, targets, keystream, tag, passed: 0 })
    }

    /// Returns the header as [`finish`](Self::finish) does, with zeros in place of tags: its length is the same.
    pub fn draft(&self) -> Head {
        self.head.clone()
    }

    /// Encrypts the next bytes of the payload.
    pub fn update(&mut self, payload: &mut [u8]) {
        self.keystream.apply(self.passed, payload);
        self.tag.update(payload);
        self.passed += payload.len() as u64;
    }

    /// Returns the header with the tags. `signed` is the header whose draft was encrypted, with its signature.
    ///
    /// # Panics
    /// Panics if the payload has not passed completely.
    pub fn finish(mut self, signed: &Head) -> Head {
        assert_eq!(self.passed, self.announced, "the head tells the payload's length");
        let payload_tag = self.tag.finish();
        for target in &self.targets {
            let tag = match target.target {
                PAYLOAD_BLOCK => payload_tag,
                number => {
                    let plain = signed.blocks.iter().find(|block| block.number == number);
                    let mut data = plain.expect("the draft has the same blocks").data.to_vec();
                    let tag = cipher::seal(self.key.bytes(), &target.iv, &target.associated, &mut data);
                    set_data(&mut self.head, number, data.into());
                    tag
                }
            };
            set_data(&mut self.head, target.block, target.data(&tag));
        }
        self.head
    }
}

fn set_data(head: &mut Head, number: u64, data: Bytes) {
    if let Some(block) = head.blocks.iter_mut().find(|block| block.number == number) {
        block.data = data;
    }
}

/// Check of an encrypted payload that passes in pieces. Nothing is decrypted before all of it has passed.
#[derive(Clone, Debug)]
pub struct Decryption {
    keystream: Keystream,
    tag: Tag,
    /// Tag that must come out; `None` if it ends the payload.
    expected: Option<[u8; TAG_BYTES]>,
    end: Vec<u8>,
    plaintext_bytes: u64,
    announced: u64,
    passed: u64,
}

impl Decryption {
    /// Begins to check the payload of a bundle.
    ///
    /// # Errors
    /// Fails if the payload is not encrypted, if the bundle is a fragment, if its security blocks break a rule of RFC 9172,
    /// or without a key.
    pub fn begin(head: &Head, keys: &KeyChoice<'_>) -> Result<Self, Fault> {
        rules::check_whole(head)?;
        let (number, security) =
            rules::find(head, Service::Confidentiality, PAYLOAD_BLOCK).ok_or(Fault::MissingOperation)?;
        let opener = confidentiality::prepare(&security, keys)?;
        let mut associated = BytesMut::new();
        let header = Header::find(head, number)?;
        canonical::put_scope(opener.scope, head, PAYLOAD_BLOCK, header, &mut associated)?;
        let operation = security.operations.iter().find(|operation| operation.target == PAYLOAD_BLOCK);
        let results = &operation.ok_or(Fault::MissingOperation)?.results;
        let expected = confidentiality::tag_of(results)?;
        let announced = head.payload.length;
        let tag_bytes = if expected.is_some() { 0 } else { TAG_BYTES as u64 };
        let plaintext_bytes = announced.checked_sub(tag_bytes).ok_or(Fault::MissingResult)?;
        if plaintext_bytes > gcm::BYTES_MAX {
            return Err(Fault::TargetLength);
        }
        let (keystream, tag) = gcm::begin(opener.key.bytes(), &opener.iv, &associated);
        Ok(Decryption { keystream, tag, expected, end: Vec::new(), plaintext_bytes, announced, passed: 0 })
    }

    /// Adds the next bytes of the payload.
    pub fn update(&mut self, payload: &[u8]) {
        let left = self.plaintext_bytes.saturating_sub(self.passed);
        let (data, end) = payload.split_at(payload.len().min(usize::try_from(left).unwrap_or(usize::MAX)));
        self.tag.update(data);
        self.end.extend_from_slice(end);
        self.passed += payload.len() as u64;
    }

    /// Returns the means to decrypt the payload.
    ///
    /// # Errors
    /// Fails if the key is another one, or if the bundle was altered.
    ///
    /// # Panics
    /// Panics if the payload has not passed completely.
    pub fn finish(self) -> Result<Decryptor, Fault> {
        assert_eq!(self.passed, self.announced, "the head tells the payload's length");
        let expected = match self.expected {
            Some(tag) => tag,
            None => self.end[..].try_into().map_err(|_| Fault::MissingResult)?,
        };
        if !bool::from(self.tag.finish().ct_eq(&expected)) {
            return Err(Fault::WrongKeyOrAltered);
        }
        Ok(Decryptor { keystream: self.keystream, bytes: self.plaintext_bytes })
    }
}

/// Decrypts a payload that was checked, from any offset.
#[derive(Clone, Debug)]
pub struct Decryptor {
    keystream: Keystream,
    bytes: u64,
}

impl Decryptor {
    /// Length of the payload in plaintext, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the plaintext of bytes whose first one has this offset in the payload. A tag behind the ciphertext is left out.
    pub fn decrypt(&mut self, offset: u64, data: &Bytes) -> Bytes {
        let left = usize::try_from(self.bytes.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut plain = data[..data.len().min(left)].to_vec();
        self.keystream.apply(offset, &mut plain);
        plain.into()
    }

    /// Removes the operation on the payload from the header, whose payload is plaintext then.
    pub fn open(&self, head: &mut Head) {
        if let Some((number, _)) = rules::find(head, Service::Confidentiality, PAYLOAD_BLOCK) {
            rules::remove_operation(head, number, PAYLOAD_BLOCK);
        }
        head.payload.length = self.bytes;
    }
}

/// Decrypts the extension blocks of a bundle for which the key is, among them block integrity blocks, and removes the
/// operations that have succeeded. Others stay as they are.
pub fn decrypt_extensions(head: &mut Head, keys: &KeyChoice<'_>) {
    let length = head.payload.length;
    let mut bundle = Bundle::new(head.clone(), Bytes::new());
    let blocks: Vec<_> = rules::readable(head, Service::Confidentiality).collect();
    for (block, mut security) in blocks {
        security.operations.retain(|operation| operation.target != PAYLOAD_BLOCK);
        // Faults are those of each operation.
        let _ = confidentiality::open_block(&mut bundle, block, &security, keys);
    }
    *head = bundle.head;
    head.payload.length = length;
}

/// Algorithm of the key that the source of a block confidentiality block has used; `None` if it is not known.
pub fn encryption_algorithm(block: &SecurityBlock) -> Option<Algorithm> {
    confidentiality::key_algorithm(block)
}

/// Scope of the tags of a block confidentiality block beside the data of its targets; `None` if it is not known.
pub fn encryption_scope(block: &SecurityBlock) -> Option<Scope> {
    confidentiality::scope(block)
}
