//! Security blocks, and bundles with security operations.

use super::{encoded, is_stable};
use crate::bp::bpsec::{
    self, Algorithm, Decryption, EncryptRequest, Fault, Field, Key, KeyChoice, Keys, Operation,
    PAYLOAD_BLOCK, PRIMARY_BLOCK, Scope, Secret, SecurityBlock, SignRequest, TagPlace, Verification,
};
use crate::bp::generate::Generator;
use crate::bp::{BlockFlags, Bundle, CrcType, DecodePolicy, DtnTime, Eid};
use crate::rng::Rng;
use bytes::Bytes;

const SOURCE: Eid = Eid::ipn(2, 1);
const NAME: &str = "test";

/// Keys of one security source, for every algorithm.
pub(crate) fn keys() -> Keys {
    const KEYS: [(Algorithm, usize); 6] = [
        (Algorithm::Hmac256, 32),
        (Algorithm::Hmac384, 48),
        (Algorithm::Hmac512, 64),
        (Algorithm::Aes128Gcm, 16),
        (Algorithm::Aes256Gcm, 32),
        (Algorithm::KeyWrap, 32),
    ];
    let key = |(index, (algorithm, length)): (u8, _)| {
        Key::new(SOURCE, NAME, algorithm, &vec![index; length]).expect("a key of this length")
    };
    (1..).zip(KEYS).map(key).collect()
}

fn choice(keys: &Keys) -> KeyChoice<'_> {
    KeyChoice { keys, name: NAME, at: DtnTime(1) }
}

/// Applies up to four random security operations to a bundle that is made no fragment. Returns the reasons of those that
/// are not allowed.
pub(crate) fn secure(bundle: &mut Bundle, rng: &mut Rng) -> Vec<Fault> {
    bundle.head.primary.fragment = None;
    let keys = keys();
    let mut faults = Vec::new();
    for round in 0..1 + rng.below(4) {
        let before = bundle.clone();
        let outcome = if rng.chance(0.5) {
            bpsec::sign(bundle, &sign_request(&before, rng), &choice(&keys))
        } else {
            let mut count = 0;
            let next_iv = || {
                count += 1;
                [round as u8, count, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]
            };
            bpsec::encrypt(bundle, &encrypt_request(&before, rng), &choice(&keys), next_iv)
        };
        if let Err(fault) = outcome {
            assert_eq!(*bundle, before, "what fails changes nothing");
            faults.push(fault);
        }
    }
    faults
}

fn sign_request(bundle: &Bundle, rng: &mut Rng) -> SignRequest {
    let algorithms = [(Algorithm::Hmac256, 32), (Algorithm::Hmac384, 48), (Algorithm::Hmac512, 64)];
    let (algorithm, length) = algorithms[rng.below(3) as usize];
    SignRequest {
        source: SOURCE,
        targets: targets(bundle, rng),
        algorithm,
        scope: scope(rng),
        fresh_key: fresh_key(algorithm, length, rng),
        flags: BlockFlags::NONE,
    }
}

fn encrypt_request(bundle: &Bundle, rng: &mut Rng) -> EncryptRequest {
    let algorithms = [(Algorithm::Aes128Gcm, 16), (Algorithm::Aes256Gcm, 32)];
    let (algorithm, length) = algorithms[rng.below(2) as usize];
    EncryptRequest {
        source: SOURCE,
        targets: targets(bundle, rng),
        algorithm,
        scope: scope(rng),
        tag: if rng.chance(0.5) { TagPlace::Result } else { TagPlace::Ciphertext },
        fresh_key: fresh_key(algorithm, length, rng),
        flags: BlockFlags::NONE,
    }
}

fn targets(bundle: &Bundle, rng: &mut Rng) -> Vec<u64> {
    let extensions = bundle.head.blocks.iter().map(|block| block.number);
    [PRIMARY_BLOCK, PAYLOAD_BLOCK].into_iter().chain(extensions).filter(|_| rng.chance(0.3)).collect()
}

fn scope(rng: &mut Rng) -> Scope {
    Scope::from_bits(rng.below(8)).expect("bits that are assigned")
}

fn fresh_key(algorithm: Algorithm, length: usize, rng: &mut Rng) -> Option<Secret> {
    let mut key = vec![0; length];
    rng.fill(&mut key);
    rng.chance(0.3).then(|| Secret::new(algorithm, &key).expect("a key of this length"))
}

/// Reserved security context flags are accepted, and not written.
pub(super) fn check_security_block(bytes: &Bytes) -> bool {
    is_stable(bytes, SecurityBlock::decode, SecurityBlock::encode)
}

pub(super) fn valid_security_block(rng: Rng) -> Bytes {
    let mut make = Generator::new(rng);
    let fields = |make: &mut Generator, least: u64| {
        let count = least + make.rng.below(4);
        let field = |id| match make.rng.below(3) {
            0 => Field::unsigned(id, make.number()),
            1 => Field::byte_string(id, &make.number().to_be_bytes()),
            _ => Field { id, value: encoded(|out| make.endpoint().encode(out)) },
        };
        (1..=count).map(field).collect::<Vec<_>>()
    };
    let targets = 1 + make.rng.below(4);
    let block = SecurityBlock {
        context: (make.number() as i64).wrapping_sub(make.number() as i64),
        source: make.singleton(),
        parameters: fields(&mut make, 0),
        operations: (0..targets).map(|target| Operation { target, results: fields(&mut make, 0) }).collect(),
    };
    block.to_bytes()
}

/// Calls what a node calls on a received bundle.
pub(super) fn check_secured_bundle(bytes: &Bytes) -> bool {
    let Ok(bundle) = Bundle::decode_with(&mut bytes.clone(), &DecodePolicy::STORED) else { return false };
    let keys = keys();
    let keys = choice(&keys);
    for number in bundle.head.blocks.iter().map(|block| block.number) {
        if let Ok(mut verification) = Verification::begin(&bundle.head, number, &keys) {
            bundle.payload.chunks(7).for_each(|piece| verification.update(piece));
            verification.finish();
        }
        let mut rest = bundle.clone();
        assert!(bpsec::discard(&mut rest.head, number));
        let _ = bpsec::check(&rest.head);
    }
    let mut streamed = Decryption::begin(&bundle.head, &keys).ok().and_then(|mut decryption| {
        bundle.payload.chunks(7).for_each(|piece| decryption.update(piece));
        decryption.finish().ok()
    });
    let in_pieces = streamed.as_mut().map(|decryptor| decryptor.decrypt(0, &bundle.payload));
    let mut plain = bundle;
    let Ok(decrypted) = bpsec::decrypt(&mut plain, &keys, CrcType::Crc16) else { return false };
    let is_open = decrypted.iter().any(|one| one.target == PAYLOAD_BLOCK && one.outcome.is_ok());
    assert_eq!(in_pieces, is_open.then(|| plain.payload.clone()), "a payload in pieces is as a whole one");
    let Ok(verified) = bpsec::verify(&plain, &keys) else { return false };
    let _ = bpsec::accept(&mut plain.head, &verified, CrcType::Crc32c);
    let again = Bundle::from_bytes(&plain.to_bytes(), &DecodePolicy::STORED);
    // Plaintext need not be a legal block.
    assert!(again.is_err() || again == Ok(plain), "a bundle is encoded as it is");
    !decrypted.is_empty() || !verified.is_empty()
}

/// A bundle without CRCs, so that damage reaches the fields after them.
pub(super) fn valid_secured_bundle(mut rng: Rng) -> Bytes {
    let mut bundle = Generator::new(rng.fork("bundle")).bundle();
    bundle.head.primary.crc = CrcType::None;
    bundle.head.payload.crc = CrcType::None;
    bundle.head.blocks.iter_mut().for_each(|block| block.crc = CrcType::None);
    loop {
        let mut secured = bundle.clone();
        secure(&mut secured, &mut rng);
        if bundle.head.blocks.len() < secured.head.blocks.len() {
            return secured.to_bytes();
        }
    }
}
