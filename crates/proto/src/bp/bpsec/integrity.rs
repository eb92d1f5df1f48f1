//! Integrity of blocks: BIB-HMAC-SHA2, keyed hashes (RFC 9173 3), and BIB-COSE-SIGN1, signatures.

use super::Fault;
use super::block::{Field, Operation, SecurityBlock};
use super::canonical::{self, Header, PAYLOAD_BLOCK, PRIMARY_BLOCK, Scope};
use super::keys::{Algorithm, KeyChoice, Secret};
use super::rules::{self, Service, Verdict};
use super::signature::{self, BIB_COSE_SIGN1, PublicKey};
use crate::bp::{Block, BlockFlags, BlockType, Bundle, CrcType, Eid, Head};
use bytes::{Bytes, BytesMut};
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256, Sha384, Sha512};

/// Security context identifier (RFC 9173 5.1).
pub const BIB_HMAC_SHA2: i64 = 1;

/// Parameters (RFC 9173 3.3.4).
const SHA_VARIANT: u64 = 1;
const WRAPPED_KEY: u64 = 2;
const SCOPE_FLAGS: u64 = 3;
/// Parameter of [`BIB_COSE_SIGN1`], whose scope flags have the identifier of those of BIB-HMAC-SHA2.
const VERSION: u64 = 1;
/// Result (RFC 9173 3.4), of [`BIB_COSE_SIGN1`], too.
const EXPECTED_HMAC: u64 = 1;

/// How to sign blocks.
#[derive(Clone, Debug)]
pub struct SignRequest {
    /// Security source: the node that signs.
    pub source: Eid,
    /// Block numbers of the targets. A block that nodes on the path change must not be among them.
    pub targets: Vec<u64>,
    /// Algorithm: HMAC 256, 384 or 512, or Ed25519.
    pub algorithm: Algorithm,
    /// Parts that the values cover beside the data of the targets.
    pub scope: Scope,
    /// Key for this block alone, never used before. The block contains it, wrapped with the chosen key encryption key.
    pub fresh_key: Option<Secret>,
    /// Block processing control flags of the block integrity block.
    pub flags: BlockFlags,
}

/// Keyed hash, or hash that is signed, whose input arrives in pieces.
#[derive(Clone, Debug)]
enum Hasher {
    Hmac256(Hmac<Sha256>),
    Hmac384(Hmac<Sha384>),
    Hmac512(Hmac<Sha512>),
    /// `key` is the private one, without which signatures can only be verified.
    Signed {
        hash: Sha512,
        source: Eid,
        key: Option<Secret>,
    },
}

impl Hasher {
    fn new(algorithm: Algorithm, key: &Secret) -> Result<Self, Fault> {
        let key = key.bytes();
        match algorithm {
            Algorithm::Hmac256 => Hmac::new_from_slice(key).map(Hasher::Hmac256),
            Algorithm::Hmac384 => Hmac::new_from_slice(key).map(Hasher::Hmac384),
            _ => Hmac::new_from_slice(key).map(Hasher::Hmac512),
        }
        .map_err(|_| Fault::KeyLength)
    }

    /// Hash that this security source signs.
    fn signed(source: &Eid, key: Option<Secret>) -> Self {
        Hasher::Signed { hash: Sha512::new(), source: source.clone(), key }
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Hasher::Hmac256(mac) => mac.update(bytes),
            Hasher::Hmac384(mac) => mac.update(bytes),
            Hasher::Hmac512(mac) => mac.update(bytes),
            Hasher::Signed { hash, .. } => Digest::update(hash, bytes),
        }
    }

    fn value(self) -> Vec<u8> {
        match self {
            Hasher::Hmac256(mac) => mac.finalize().into_bytes().to_vec(),
            Hasher::Hmac384(mac) => mac.finalize().into_bytes().to_vec(),
            Hasher::Hmac512(mac) => mac.finalize().into_bytes().to_vec(),
            Hasher::Signed { hash, source, key } => {
                let key = key.expect("a signer has the private key");
                signature::sign(&key, &source, &hash.finalize()).expect("the key had the right length before")
            }
        }
    }

    /// Length of the value, bytes.
    fn value_bytes(&self) -> usize {
        match self {
            Hasher::Hmac256(_) => 32,
            Hasher::Hmac384(_) => 48,
            Hasher::Hmac512(_) => 64,
            Hasher::Signed { .. } => signature::RESULT_BYTES,
        }
    }

    /// Compares in constant time (RFC 9173 3.6).
    fn verify(self, expected: &[u8]) -> Result<(), Fault> {
        let equal = match self {
            Hasher::Hmac256(mac) => mac.verify_slice(expected),
            Hasher::Hmac384(mac) => mac.verify_slice(expected),
            Hasher::Hmac512(mac) => mac.verify_slice(expected),
            Hasher::Signed { hash, source, .. } => {
                return signature::verify(expected, &source, &hash.finalize());
            }
        };
        equal.map_err(|_| Fault::WrongKeyOrAltered)
    }
}

const fn variant(algorithm: Algorithm) -> Option<u64> {
    match algorithm {
        Algorithm::Hmac256 => Some(5),
        Algorithm::Hmac384 => Some(6),
        Algorithm::Hmac512 => Some(7),
        Algorithm::Aes128Gcm | Algorithm::Aes256Gcm | Algorithm::KeyWrap | Algorithm::Ed25519 => None,
    }
}

/// Parameters of a block, with their defaults (RFC 9173 3.3).
struct Parameters {
    algorithm: Algorithm,
    wrapped_key: Option<Bytes>,
    scope: Scope,
}

impl Parameters {
    fn decode(block: &SecurityBlock) -> Result<Self, Fault> {
        match block.context {
            BIB_HMAC_SHA2 => Self::decode_hmac(block),
            BIB_COSE_SIGN1 => Self::decode_signed(block),
            other => Err(Fault::UnknownContext(other)),
        }
    }

    fn decode_signed(block: &SecurityBlock) -> Result<Self, Fault> {
        let mut found = Parameters { algorithm: Algorithm::Ed25519, wrapped_key: None, scope: Scope::ALL };
        let mut version = None;
        for field in &block.parameters {
            let invalid = Fault::InvalidParameter(field.id);
            match field.id {
                VERSION if field.as_unsigned() == Some(signature::VERSION) => version = field.as_unsigned(),
                VERSION => return Err(invalid),
                SCOPE_FLAGS => {
                    found.scope = field.as_unsigned().and_then(Scope::from_bits).ok_or(invalid)?;
                }
                other => return Err(Fault::UnknownParameter(other)),
            }
        }
        version.map(|_| found).ok_or(Fault::MissingParameter(VERSION))
    }

    fn decode_hmac(block: &SecurityBlock) -> Result<Self, Fault> {
        let mut found = Parameters { algorithm: Algorithm::Hmac384, wrapped_key: None, scope: Scope::ALL };
        for field in &block.parameters {
            let invalid = Fault::InvalidParameter(field.id);
            match field.id {
                SHA_VARIANT => {
                    found.algorithm = match field.as_unsigned() {
                        Some(5) => Algorithm::Hmac256,
                        Some(6) => Algorithm::Hmac384,
                        Some(7) => Algorithm::Hmac512,
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

/// Scope of the values of a block; `None` if it is not known.
pub(super) fn scope(block: &SecurityBlock) -> Option<Scope> {
    Parameters::decode(block).ok().map(|parameters| parameters.scope)
}

/// Begins the hash of a target: the integrity-protected plaintext, of the payload block without the payload.
fn begin(
    mut hasher: Hasher,
    scope: Scope,
    head: &Head,
    target: u64,
    security: Header,
) -> Result<Hasher, Fault> {
    let mut plaintext = BytesMut::new();
    canonical::put_scope(scope, head, target, security, &mut plaintext)?;
    canonical::put_target(head, target, &mut plaintext)?;
    hasher.update(&plaintext);
    Ok(hasher)
}

/// Counts the payload as it passes. A signature over a part of it would be valid for nothing.
#[derive(Clone, Debug)]
struct Payload {
    announced: u64,
    passed: u64,
}

impl Payload {
    fn check(&self) {
        assert_eq!(self.passed, self.announced, "the head tells the payload's length");
    }
}

/// Signing of a bundle whose payload passes in pieces.
#[derive(Clone, Debug)]
pub struct Signing {
    head: Head,
    block: Block,
    security: SecurityBlock,
    hashers: Vec<(u64, Hasher)>,
    payload: Payload,
}

impl Signing {
    /// Begins to sign blocks of a bundle.
    ///
    /// # Errors
    /// Fails if the rules of RFC 9172 do not allow it, or without a valid key.
    pub fn begin(head: &Head, request: &SignRequest, keys: &KeyChoice<'_>) -> Result<Self, Fault> {
        rules::check_addition(head, Service::Integrity, &request.targets)?;
        let is_signed = request.algorithm == Algorithm::Ed25519;
        let first = match variant(request.algorithm) {
            Some(variant) => Field::unsigned(SHA_VARIANT, variant),
            // A fresh private key would prove nothing.
            None if is_signed && request.fresh_key.is_none() => Field::unsigned(VERSION, signature::VERSION),
            None => return Err(Fault::InvalidParameter(SHA_VARIANT)),
        };
        let (key, wrapped) =
            keys.for_block(&request.source, request.algorithm, request.fresh_key.as_ref())?;
        // The block has the CRC that its targets lose, so that links without checks do not damage it unseen.
        let crc = head.payload.crc;
        let mut head = head.clone();
        remove_crcs(&mut head, &request.targets)?;
        let block = Block {
            block_type: BlockType::BlockIntegrity,
            number: head.free_number(),
            flags: request.flags,
            crc,
            data: Bytes::new(),
        };
        let mut parameters = vec![first];
        parameters.extend(wrapped.map(|wrapped| Field::byte_string(WRAPPED_KEY, &wrapped)));
        parameters.push(Field::unsigned(SCOPE_FLAGS, request.scope.bits()));
        let security = SecurityBlock {
            context: if is_signed { BIB_COSE_SIGN1 } else { BIB_HMAC_SHA2 },
            source: request.source.clone(),
            parameters,
            operations: Vec::new(),
        };
        let hasher = match is_signed {
            true => Hasher::signed(&request.source, Some(key)),
            false => Hasher::new(request.algorithm, &key)?,
        };
        let begun = |&target: &u64| {
            Ok((target, begin(hasher.clone(), request.scope, &head, target, Header::of(&block))?))
        };
        let hashers = request.targets.iter().map(begun).collect::<Result<_, Fault>>()?;
        let payload = Payload { announced: head.payload.length, passed: 0 };
        Ok(Signing { head, block, security, hashers, payload })
    }

    /// Adds the next bytes of the payload.
    pub fn update(&mut self, payload: &[u8]) {
        self.payload.passed += payload.len() as u64;
        let hashers = self.hashers.iter_mut().filter(|(target, _)| *target == PAYLOAD_BLOCK);
        hashers.for_each(|(_, hasher)| hasher.update(payload));
    }

    /// Returns the header as [`finish`](Self::finish) does, with zeros in place of the values: its length is the same.
    pub fn draft(&self) -> Head {
        let mut security = self.security.clone();
        for (target, hasher) in &self.hashers {
            let results = vec![Field::byte_string(EXPECTED_HMAC, &vec![0; hasher.value_bytes()])];
            security.operations.push(Operation { target: *target, results });
        }
        let (mut head, mut block) = (self.head.clone(), self.block.clone());
        block.data = security.to_bytes();
        rules::insert(&mut head, block);
        head
    }

    /// Number of the block integrity block.
    pub fn block(&self) -> u64 {
        self.block.number
    }

    /// Returns the header with the block integrity block. Targets have no CRC any more (RFC 9173 3.8.1).
    ///
    /// # Panics
    /// Panics if the payload is a target and has not passed completely.
    pub fn finish(mut self) -> Head {
        for (target, hasher) in self.hashers {
            if target == PAYLOAD_BLOCK {
                self.payload.check();
            }
            let results = vec![Field::byte_string(EXPECTED_HMAC, &hasher.value())];
            self.security.operations.push(Operation { target, results });
        }
        self.block.data = self.security.to_bytes();
        rules::insert(&mut self.head, self.block);
        self.head
    }
}

/// Removes the CRCs of the targets (RFC 9173 3.8.1).
fn remove_crcs(head: &mut Head, targets: &[u64]) -> Result<(), Fault> {
    if targets.contains(&PRIMARY_BLOCK) && head.primary.crc != CrcType::None {
        rules::check_primary_is_free(head)?;
    }
    targets.iter().for_each(|target| canonical::set_crc(head, *target, CrcType::None));
    Ok(())
}

/// Signs blocks of a bundle.
///
/// # Errors
/// Fails if the rules of RFC 9172 do not allow it, or without a valid key; then the bundle is unchanged.
pub fn sign(bundle: &mut Bundle, request: &SignRequest, keys: &KeyChoice<'_>) -> Result<(), Fault> {
    let mut signing = Signing::begin(&bundle.head, request, keys)?;
    signing.update(&bundle.payload);
    bundle.head = signing.finish();
    Ok(())
}

/// Verification of a block integrity block of a bundle whose payload passes in pieces.
#[derive(Clone, Debug)]
pub struct Verification {
    source: Eid,
    block: u64,
    scope: Option<Scope>,
    operations: Vec<(u64, Option<PublicKey>, Result<Check, Fault>)>,
    payload: Payload,
}

/// A hash, and the value that it must have.
#[derive(Clone, Debug)]
struct Check {
    hasher: Hasher,
    expected: Bytes,
}

impl Verification {
    /// Begins to verify the block integrity block with this number.
    ///
    /// # Errors
    /// Fails if the security blocks of the bundle break a rule of RFC 9172, or if there is no such block. Faults of the
    /// context and of keys are those of each operation.
    pub fn begin(head: &Head, block: u64, keys: &KeyChoice<'_>) -> Result<Self, Fault> {
        rules::check_whole(head)?;
        let found = canonical::find(head, block)?;
        if found.block_type != BlockType::BlockIntegrity {
            return Err(Fault::MissingOperation);
        }
        if head.is_encrypted(block) {
            return Err(Fault::EncryptedTarget(block));
        }
        let security = SecurityBlock::from_bytes(&found.data)?;
        let prepared = prepare(&security, keys);
        let check = |operation: &Operation| {
            let (hasher, scope) = prepared.clone()?;
            if head.is_encrypted(operation.target) {
                return Err(Fault::EncryptedTarget(operation.target));
            }
            let expected = expected(&operation.results)?;
            if matches!(hasher, Hasher::Signed { .. }) {
                let key = signature::key_of(&expected).ok_or(Fault::InvalidResult(EXPECTED_HMAC))?;
                check_source(&security.source)?;
                keys.check_public(&security.source, &key)?;
            }
            Ok(Check { hasher: begin(hasher, scope, head, operation.target, Header::of(found))?, expected })
        };
        let key = |operation: &Operation| match security.context {
            BIB_COSE_SIGN1 => signature::key_of(&expected(&operation.results).ok()?),
            _ => None,
        };
        let operations = security.operations.iter();
        let operations =
            operations.map(|operation| (operation.target, key(operation), check(operation))).collect();
        let payload = Payload { announced: head.payload.length, passed: 0 };
        let scope = scope(&security);
        Ok(Verification { source: security.source, block, scope, operations, payload })
    }

    /// Adds the next bytes of the payload.
    pub fn update(&mut self, payload: &[u8]) {
        self.payload.passed += payload.len() as u64;
        let operations = self.operations.iter_mut().filter(|(target, ..)| *target == PAYLOAD_BLOCK);
        operations.flat_map(|(.., check)| check).for_each(|check| check.hasher.update(payload));
    }

    /// Parts that the values cover beside their targets; `None` if they are unknown.
    pub fn scope(&self) -> Option<Scope> {
        self.scope
    }

    /// Returns the outcome of each operation.
    ///
    /// # Panics
    /// Panics if the payload is a target and has not passed completely.
    pub fn finish(self) -> Vec<Verdict> {
        let Verification { source, block, operations, payload, .. } = self;
        let verdict = |(target, public_key, check): (u64, Option<PublicKey>, Result<Check, Fault>)| {
            if target == PAYLOAD_BLOCK {
                payload.check();
            }
            let outcome = check.and_then(|check| check.hasher.verify(&check.expected));
            Verdict { source: source.clone(), block, target, public_key, outcome }
        };
        operations.into_iter().map(verdict).collect()
    }
}

/// Maximum length of the name of a security source that is noted, bytes.
const SOURCE_BYTES_MAX: usize = 255;

/// Fails unless a key can be noted for the security source: it is a node ID, which can be written and read again.
fn check_source(source: &Eid) -> Result<(), Fault> {
    let text = source.to_string();
    let is_name = source.is_node_id() && text.len() <= SOURCE_BYTES_MAX;
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
    let is_read = text.parse::<Eid>().is_ok_and(|read| read == *source);
    if is_name && is_plain && is_read { Ok(()) } else { Err(Fault::InvalidSource) }
}

/// Algorithm of a block integrity block; `None` if its parameters are not known.
pub fn algorithm(block: &SecurityBlock) -> Option<Algorithm> {
    Parameters::decode(block).ok().map(|parameters| parameters.algorithm)
}

/// Hash with the key of the block, without input, and the scope.
fn prepare(security: &SecurityBlock, keys: &KeyChoice<'_>) -> Result<(Hasher, Scope), Fault> {
    let Parameters { algorithm, wrapped_key, scope } = Parameters::decode(security)?;
    if algorithm == Algorithm::Ed25519 {
        return Ok((Hasher::signed(&security.source, None), scope));
    }
    let key = keys.of_block(&security.source, algorithm, wrapped_key.as_deref())?;
    Ok((Hasher::new(algorithm, &key)?, scope))
}

fn expected(results: &[Field]) -> Result<Bytes, Fault> {
    match results {
        [] => Err(Fault::MissingResult),
        [field] if field.id == EXPECTED_HMAC => {
            field.as_byte_string().ok_or(Fault::InvalidResult(EXPECTED_HMAC))
        }
        [first, rest @ ..] => {
            let other = rest.iter().find(|_| first.id == EXPECTED_HMAC).unwrap_or(first);
            Err(Fault::UnknownResult(other.id))
        }
    }
}

/// Verifies all block integrity blocks that are not encrypted. An empty result says that nothing is signed: see
/// [`rules::require`].
///
/// # Errors
/// Fails if the bundle is a fragment, or if its security blocks break a rule of RFC 9172.
pub fn verify(bundle: &Bundle, keys: &KeyChoice<'_>) -> Result<Vec<Verdict>, Fault> {
    rules::check_whole(&bundle.head)?;
    let mut verdicts = Vec::new();
    for (block, _) in rules::readable(&bundle.head, Service::Integrity) {
        let mut verification = Verification::begin(&bundle.head, block, keys)?;
        verification.update(&bundle.payload);
        verdicts.extend(verification.finish());
    }
    Ok(verdicts)
}

/// Removes the operations that have succeeded, as their acceptor must (RFC 9172 5.1.2), and gives their targets a CRC of
/// this type. Only the destination of the bundle may choose none (RFC 9173 3.8.2).
///
/// # Errors
/// Fails if the primary block would get a CRC and other operations cover it; then the header is unchanged.
pub fn accept(head: &mut Head, verdicts: &[Verdict], crc: CrcType) -> Result<(), Fault> {
    let mut new = head.clone();
    let succeeded = || verdicts.iter().filter(|verdict| verdict.outcome.is_ok());
    succeeded().for_each(|verdict| rules::remove_operation(&mut new, verdict.block, verdict.target));
    let targets: Vec<u64> = succeeded().map(|verdict| verdict.target).collect();
    rules::restore_crc(&mut new, &targets, crc)?;
    *head = new;
    Ok(())
}

/// Takes the operations on these targets out of block integrity blocks, so that those can be encrypted, too (RFC 9172 3.9).
/// Returns the numbers of the blocks that have nothing but such operations.
pub(super) fn separate(head: &mut Head, targets: &[u64]) -> Result<Vec<u64>, Fault> {
    let mut shared = Vec::new();
    let blocks: Vec<_> = rules::readable(head, Service::Integrity).collect();
    for (number, mut security) in blocks {
        let is_shared = |operation: &Operation| targets.contains(&operation.target);
        let (moved, kept): (Vec<_>, Vec<_>) = security.operations.into_iter().partition(is_shared);
        match (moved.is_empty(), kept.is_empty()) {
            (true, _) => {}
            (false, true) => shared.push(number),
            (false, false) => {
                security.operations = kept;
                shared.push(divide(head, number, security, moved)?);
            }
        }
    }
    Ok(shared)
}

/// Moves operations to a new block integrity block. Values that cover the number of their block would not survive that.
fn divide(head: &mut Head, number: u64, kept: SecurityBlock, moved: Vec<Operation>) -> Result<u64, Fault> {
    if scope(&kept).is_none_or(|scope| scope.contains(Scope::SECURITY_HEADER)) {
        return Err(Fault::Indivisible(number));
    }
    let free = head.free_number();
    let mut new = canonical::find(head, number)?.clone();
    new.number = free;
    new.data = SecurityBlock { operations: moved, ..kept.clone() }.to_bytes();
    let old = head.blocks.iter_mut().find(|block| block.number == number);
    old.ok_or(Fault::MissingTarget(number))?.data = kept.to_bytes();
    rules::insert(head, new);
    Ok(free)
}
