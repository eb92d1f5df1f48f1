//! BCB-AES-GCM: authenticated encryption of blocks (RFC 9173 4).

use super::Fault;
use super::block::{Field, Operation, SecurityBlock};
use super::canonical::{self, Header, PAYLOAD_BLOCK, Scope};
use super::cipher::{self, IV_BYTES, IV_BYTES_READ, TAG_BYTES};
use super::integrity;
use super::keys::{Algorithm, KeyChoice, Secret};
use super::rules::{self, Service, Verdict};
use crate::bp::{Block, BlockFlags, BlockType, Bundle, CrcType, Eid, Head};
use bytes::{Bytes, BytesMut};
use std::collections::BTreeSet;

/// Security context identifier (RFC 9173 5.1).
pub const BCB_AES_GCM: i64 = 2;
/// Maximum length of a target in plaintext, bytes: it is copied in memory. RFC 9173 has no limit, AES-GCM one of 64 GiB.
pub const TARGET_BYTES_MAX: usize = 64 << 20;

/// Parameters (RFC 9173 4.3.5).
const INITIALIZATION_VECTOR: u64 = 1;
const AES_VARIANT: u64 = 2;
const WRAPPED_KEY: u64 = 3;
const SCOPE_FLAGS: u64 = 4;
/// Result (RFC 9173 4.4.2).
pub(super) const AUTHENTICATION_TAG: u64 = 1;

/// How to encrypt blocks.
#[derive(Clone, Debug)]
pub struct EncryptRequest {
    /// Security source: the node that encrypts.
    pub source: Eid,
    /// Block numbers of the targets. Block integrity blocks are encrypted where necessary, and are not named.
    pub targets: Vec<u64>,
    /// Algorithm: AES-GCM with a key of 128 or 256 bits.
    pub algorithm: Algorithm,
    /// What the tag covers beside the data of the target.
    pub scope: Scope,
    /// Place of the authentication tag.
    pub tag: TagPlace,
    /// Key for this call alone, never used before. The blocks contain it, wrapped with the chosen key encryption key.
    pub fresh_key: Option<Secret>,
    /// Block processing control flags of the block confidentiality blocks. The replication flag is added where the target
    /// needs it.
    pub flags: BlockFlags,
}

/// Place of an authentication tag (RFC 9173 4.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TagPlace {
    /// In the block confidentiality block; the target keeps its length.
    #[default]
    Result,
    /// At the end of the ciphertext.
    Ciphertext,
}

pub(super) const fn variant(algorithm: Algorithm) -> Option<u64> {
    match algorithm {
        Algorithm::Aes128Gcm => Some(1),
        Algorithm::Aes256Gcm => Some(3),
        Algorithm::Hmac256
        | Algorithm::Hmac384
        | Algorithm::Hmac512
        | Algorithm::KeyWrap
        | Algorithm::Ed25519 => None,
    }
}

/// Parameters of a block, with their defaults (RFC 9173 4.3).
struct Parameters {
    iv: Option<Bytes>,
    algorithm: Algorithm,
    wrapped_key: Option<Bytes>,
    scope: Scope,
}

impl Parameters {
    fn decode(block: &SecurityBlock) -> Result<Self, Fault> {
        if block.context != BCB_AES_GCM {
            return Err(Fault::UnknownContext(block.context));
        }
        let mut found =
            Parameters { iv: None, algorithm: Algorithm::Aes256Gcm, wrapped_key: None, scope: Scope::ALL };
        for field in &block.parameters {
            let invalid = Fault::InvalidParameter(field.id);
            match field.id {
                INITIALIZATION_VECTOR => {
                    let iv = field.as_byte_string().filter(|iv| IV_BYTES_READ.contains(&iv.len()));
                    found.iv = Some(iv.ok_or(invalid)?);
                }
                AES_VARIANT => {
                    found.algorithm = match field.as_unsigned() {
                        Some(1) => Algorithm::Aes128Gcm,
                        Some(3) => Algorithm::Aes256Gcm,
                        _ => return Err(invalid),
                    }
                }
                WRAPPED_KEY => found.wrapped_key = Some(field.as_byte_string().ok_or(invalid)?),
                SCOPE_FLAGS => {
                    found.scope = field.as_unsigned().and_then(Scope::from_bits).ok_or(invalid)?;
                }
                other => return Err(Fault::UnknownParameter(other)),
            }
        }
        Ok(found)
    }
}

/// Scope of the tags of a block; `None` if it is not known.
pub(super) fn scope(block: &SecurityBlock) -> Option<Scope> {
    Parameters::decode(block).ok().map(|parameters| parameters.scope)
}

/// Algorithm of the key that the source of a block has used; `None` if its parameters are not known.
pub(super) fn key_algorithm(block: &SecurityBlock) -> Option<Algorithm> {
    let parameters = Parameters::decode(block).ok()?;
    Some(if parameters.wrapped_key.is_some() { Algorithm::KeyWrap } else { parameters.algorithm })
}

/// Encrypts blocks of a bundle, and block integrity blocks with the same targets (RFC 9172 3.9). Every target gets a block
/// of its own: the targets of one block share its initialization vector, and a second use of it with a key reveals both
/// plaintexts and lets anyone forge tags (RFC 9173 4.6).
///
/// `next_iv` must never return an initialization vector that was used with the same key before, not even by another node
/// or before a restart; a counter that is stored is one way to make them (RFC 9173 4.6). It is called at most twice for
/// each target. With a fresh key, any values serve that differ within the call.
///
/// # Errors
/// Fails if the rules of RFC 9172 do not allow it, or without a valid key; then the bundle is unchanged, and the
/// initialization vectors returned so far count as used.
///
/// # Panics
/// Panics if `next_iv` returns a value twice.
pub fn encrypt(
    bundle: &mut Bundle,
    request: &EncryptRequest,
    keys: &KeyChoice<'_>,
    mut next_iv: impl FnMut() -> [u8; IV_BYTES],
) -> Result<(), Fault> {
    rules::check_addition(&bundle.head, Service::Confidentiality, &request.targets)?;
    let is_integrity = |target| {
        Header::find(&bundle.head, target).map(|header| header.block_type == BlockType::BlockIntegrity)
    };
    if let Some(target) = request.targets.iter().find(|target| is_integrity(**target) == Ok(true)) {
        return Err(Fault::ForbiddenTarget(*target));
    }
    let variant = variant(request.algorithm).ok_or(Fault::InvalidParameter(AES_VARIANT))?;
    let (key, wrapped) = keys.for_block(&request.source, request.algorithm, request.fresh_key.as_ref())?;
    let mut new = bundle.clone();
    let integrity = integrity::separate(&mut new.head, &request.targets)?;
    let mut used = BTreeSet::new();
    for &target in request.targets.iter().chain(&integrity) {
        let iv = next_iv();
        assert!(used.insert(iv), "an initialization vector is used once");
        let parameters = parameters(&iv, variant, wrapped.as_deref(), request.scope);
        encrypt_target(&mut new, target, request, (&key, &iv), parameters)?;
    }
    *bundle = new;
    Ok(())
}

/// Parameters of a new block.
pub(super) fn parameters(
    iv: &[u8; IV_BYTES],
    variant: u64,
    wrapped: Option<&[u8]>,
    scope: Scope,
) -> Vec<Field> {
    let mut parameters =
        vec![Field::byte_string(INITIALIZATION_VECTOR, iv), Field::unsigned(AES_VARIANT, variant)];
    parameters.extend(wrapped.map(|wrapped| Field::byte_string(WRAPPED_KEY, wrapped)));
    parameters.push(Field::unsigned(SCOPE_FLAGS, scope.bits()));
    parameters
}

fn encrypt_target(
    bundle: &mut Bundle,
    target: u64,
    request: &EncryptRequest,
    (key, iv): (&Secret, &[u8; IV_BYTES]),
    parameters: Vec<Field>,
) -> Result<(), Fault> {
    let mut block = Block {
        block_type: BlockType::BlockConfidentiality,
        number: bundle.head.free_number(),
        flags: request.flags | replication(&bundle.head, target)?,
        crc: CrcType::None,
        data: Bytes::new(),
    };
    if block.flags.contains(BlockFlags::DISCARD) {
        return Err(Fault::ForbiddenFlags);
    }
    let mut associated = BytesMut::new();
    canonical::put_scope(request.scope, &bundle.head, target, Header::of(&block), &mut associated)?;
    let mut data = content(bundle, target, TARGET_BYTES_MAX)?.to_vec();
    let tag = cipher::seal(key.bytes(), iv, &associated, &mut data);
    let results = match request.tag {
        TagPlace::Result => vec![Field::byte_string(AUTHENTICATION_TAG, &tag)],
        TagPlace::Ciphertext => {
            data.extend_from_slice(&tag);
            Vec::new()
        }
    };
    canonical::set_crc(&mut bundle.head, target, CrcType::None);
    set_content(bundle, target, data.into());
    let source = request.source.clone();
    let operations = vec![Operation { target, results }];
    block.data = SecurityBlock { context: BCB_AES_GCM, source, parameters, operations }.to_bytes();
    rules::insert(&mut bundle.head, block);
    Ok(())
}

/// The replication flag for the block of a target that is in every fragment: there it would pass for plaintext otherwise
/// (RFC 9172 3.8 for the payload).
pub(super) fn replication(head: &Head, target: u64) -> Result<BlockFlags, Fault> {
    let is_in_all = match target {
        PAYLOAD_BLOCK => true,
        number => canonical::find(head, number)?.stays_in_every_fragment(),
    };
    Ok(if is_in_all { BlockFlags::REPLICATE } else { BlockFlags::NONE })
}

/// Data of a target, of at most this length.
fn content(bundle: &Bundle, target: u64, bytes_max: usize) -> Result<Bytes, Fault> {
    let data = match target {
        PAYLOAD_BLOCK => bundle.payload.clone(),
        number => canonical::find(&bundle.head, number)?.data.clone(),
    };
    if data.len() > bytes_max { Err(Fault::TargetLength) } else { Ok(data) }
}

fn set_content(bundle: &mut Bundle, target: u64, data: Bytes) {
    if target == PAYLOAD_BLOCK {
        bundle.head.payload.length = data.len() as u64;
        bundle.payload = data;
    } else if let Some(block) = bundle.head.blocks.iter_mut().find(|block| block.number == target) {
        block.data = data;
    }
}

/// Decrypts all encrypted blocks of a bundle, as [`decrypt_block`] does. Block integrity blocks are verified afterwards
/// (RFC 9172 5.1).
///
/// # Errors
/// Fails if the bundle is a fragment, or if its security blocks break a rule of RFC 9172.
pub fn decrypt(bundle: &mut Bundle, keys: &KeyChoice<'_>, crc: CrcType) -> Result<Vec<Verdict>, Fault> {
    rules::check_whole(&bundle.head)?;
    let blocks: Vec<_> = rules::readable(&bundle.head, Service::Confidentiality).collect();
    let mut verdicts = Vec::new();
    for (block, security) in blocks {
        verdicts.extend(open_block(bundle, block, &security, keys)?);
    }
    restore_crcs(bundle, &verdicts, crc)?;
    Ok(verdicts)
}

/// Decrypts the targets of a block confidentiality block, removes the operations that have succeeded, and gives their
/// targets a CRC of this type. Only the destination of the bundle may choose none (RFC 9173 4.8.2). What fails is unchanged:
/// then the bundle must be deleted if it is the payload, and otherwise the target must be discarded (RFC 9172 5.1.1) with
/// [`rules::discard`].
///
/// # Errors
/// Fails if the bundle is a fragment, if its security blocks break a rule of RFC 9172, or if there is no such block. Faults
/// of the context and of keys are those of each operation.
pub fn decrypt_block(
    bundle: &mut Bundle,
    block: u64,
    keys: &KeyChoice<'_>,
    crc: CrcType,
) -> Result<Vec<Verdict>, Fault> {
    rules::check_whole(&bundle.head)?;
    let found = rules::readable(&bundle.head, Service::Confidentiality).find(|(number, _)| *number == block);
    let (_, security) = found.ok_or(Fault::MissingOperation)?;
    let verdicts = open_block(bundle, block, &security, keys)?;
    restore_crcs(bundle, &verdicts, crc)?;
    Ok(verdicts)
}

/// Decrypts the targets of one block. What a block integrity block has in it after that is not checked here.
pub(super) fn open_block(
    bundle: &mut Bundle,
    block: u64,
    security: &SecurityBlock,
    keys: &KeyChoice<'_>,
) -> Result<Vec<Verdict>, Fault> {
    let header = Header::find(&bundle.head, block)?;
    let opener = prepare(security, keys);
    let verdict = |operation: &Operation| {
        let target = operation.target;
        let opened = opener.as_ref().map_err(|fault| *fault);
        let outcome = opened.and_then(|opener| opener.open(bundle, operation, header)).map(|data| {
            set_content(bundle, target, data);
            rules::remove_operation(&mut bundle.head, block, target);
        });
        Verdict { source: security.source.clone(), block, target, public_key: None, outcome }
    };
    Ok(security.operations.iter().map(verdict).collect())
}

fn restore_crcs(bundle: &mut Bundle, verdicts: &[Verdict], crc: CrcType) -> Result<(), Fault> {
    let succeeded = verdicts.iter().filter(|verdict| verdict.outcome.is_ok());
    let targets: Vec<u64> = succeeded.map(|verdict| verdict.target).collect();
    rules::restore_crc(&mut bundle.head, &targets, crc)
}

/// All that the operations of a block share.
pub(super) struct Opener {
    pub(super) key: Secret,
    pub(super) iv: Bytes,
    pub(super) scope: Scope,
}

pub(super) fn prepare(security: &SecurityBlock, keys: &KeyChoice<'_>) -> Result<Opener, Fault> {
    let Parameters { iv, algorithm, wrapped_key, scope } = Parameters::decode(security)?;
    let iv = iv.ok_or(Fault::MissingParameter(INITIALIZATION_VECTOR))?;
    let key = keys.of_block(&security.source, algorithm, wrapped_key.as_deref())?;
    Ok(Opener { key, iv, scope })
}

impl Opener {
    /// Returns the plaintext of a target.
    fn open(&self, bundle: &Bundle, operation: &Operation, security: Header) -> Result<Bytes, Fault> {
        let mut associated = BytesMut::new();
        canonical::put_scope(self.scope, &bundle.head, operation.target, security, &mut associated)?;
        let mut data = content(bundle, operation.target, TARGET_BYTES_MAX + TAG_BYTES)?.to_vec();
        let tag = take_tag(&operation.results, &mut data)?;
        cipher::open(self.key.bytes(), &self.iv, &associated, &mut data, &tag)?;
        Ok(data.into())
    }
}

fn take_tag(results: &[Field], data: &mut Vec<u8>) -> Result<[u8; TAG_BYTES], Fault> {
    if let Some(tag) = tag_of(results)? {
        return Ok(tag);
    }
    let length = data.len().checked_sub(TAG_BYTES).ok_or(Fault::MissingResult)?;
    data.split_off(length).try_into().map_err(|_| Fault::MissingResult)
}

/// Tag among the results; `None` if it ends the ciphertext (RFC 9173 4.4.1).
pub(super) fn tag_of(results: &[Field]) -> Result<Option<[u8; TAG_BYTES]>, Fault> {
    match results {
        [] => Ok(None),
        [field] if field.id == AUTHENTICATION_TAG => {
            let tag = field.as_byte_string().and_then(|tag| tag[..].try_into().ok());
            tag.map(Some).ok_or(Fault::InvalidResult(AUTHENTICATION_TAG))
        }
        [first, rest @ ..] => {
            let other = rest.iter().find(|_| first.id == AUTHENTICATION_TAG).unwrap_or(first);
            Err(Fault::UnknownResult(other.id))
        }
    }
}
