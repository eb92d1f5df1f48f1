//! Bundle security (RFC 9172, 9173) between Hardy and this implementation: what one signs or encrypts, the other accepts.

use bytes::Bytes;
use hardy_bpv7::bpsec::rfc9173::ScopeFlags;
use hardy_bpv7::bpsec::{encryptor, key, signer};
use hardy_bpv7::bundle::ParsedBundle;
use longwire_proto::bp::bpsec::{
    Algorithm, Decryption, EncryptRequest, Encryption, Key, KeyChoice, Keys, PAYLOAD_BLOCK, Scope,
    SignRequest, Signing, TagPlace, decrypt, decrypt_extensions, encrypt, sign, verify,
};
use longwire_proto::bp::{
    BlockFlags, BlockType, Bundle, Content, CrcType, CreationTimestamp, DecodePolicy, DtnTime, Eid, Head,
    HopCount, PrimaryBlock,
};

const AT: DtnTime = DtnTime(800_000_000_000);
const HMAC_KEY: [u8; 48] = [1; 48];
const AES_KEY: [u8; 32] = [2; 32];
const PAYLOAD: &[u8] = b"hello, moon";

fn source() -> Eid {
    Eid::ipn(2, 0)
}

/// Keys for both implementations, and for a wrong one.
struct Both {
    ours: Keys,
    signs: key::Key,
    encrypts: key::Key,
}

impl Both {
    fn new(hmac: [u8; 48], aes: [u8; 32]) -> Self {
        let ours = Keys::from_iter([
            Key::new(source(), "k", Algorithm::Hmac384, &hmac).expect("a key"),
            Key::new(source(), "k", Algorithm::Aes256Gcm, &aes).expect("a key"),
        ]);
        use key::Operation::{Decrypt, Encrypt, Sign, Verify};
        let signs = theirs(&[Sign, Verify], key::KeyAlgorithm::HS384, None, &hmac);
        let encrypts =
            theirs(&[Encrypt, Decrypt], key::KeyAlgorithm::Direct, Some(key::EncAlgorithm::A256GCM), &aes);
        Both { ours, signs, encrypts }
    }

    fn choice(&self) -> KeyChoice<'_> {
        KeyChoice { keys: &self.ours, name: "k", at: AT }
    }

    fn set(&self) -> key::KeySet {
        key::KeySet::new(vec![self.signs.clone(), self.encrypts.clone()])
    }
}

fn theirs(
    operations: &[key::Operation],
    algorithm: key::KeyAlgorithm,
    encryption: Option<key::EncAlgorithm>,
    bytes: &[u8],
) -> key::Key {
    key::Key {
        key_type: key::Type::OctetSequence { key: bytes.into() },
        key_algorithm: Some(algorithm),
        enc_algorithm: encryption,
        operations: Some(operations.iter().copied().collect()),
        ..Default::default()
    }
}

fn flags(scope: Scope) -> ScopeFlags {
    ScopeFlags {
        include_primary_block: scope.contains(Scope::PRIMARY_BLOCK),
        include_target_header: scope.contains(Scope::TARGET_HEADER),
        include_security_header: scope.contains(Scope::SECURITY_HEADER),
        unrecognised: None,
    }
}

fn scopes() -> impl Iterator<Item = Scope> {
    (0..8).filter_map(Scope::from_bits)
}

fn plain() -> Bundle {
    let timestamp = CreationTimestamp { time: AT, sequence: 3 };
    let mut head = Head::new(PrimaryBlock::new(Eid::ipn(9, 1), source(), timestamp, 86_400_000_000), 0);
    head.set(&Content::HopCount(HopCount { limit: 30, count: 1 }));
    Bundle::new(head, Bytes::from_static(PAYLOAD))
}

fn signing(targets: &[u64], scope: Scope) -> SignRequest {
    SignRequest {
        source: source(),
        targets: targets.to_vec(),
        algorithm: Algorithm::Hmac384,
        scope,
        fresh_key: None,
        flags: BlockFlags::NONE,
    }
}

fn encryption(scope: Scope, tag: TagPlace) -> EncryptRequest {
    EncryptRequest {
        source: source(),
        targets: vec![PAYLOAD_BLOCK],
        algorithm: Algorithm::Aes256Gcm,
        scope,
        tag,
        fresh_key: None,
        flags: BlockFlags::NONE,
    }
}

fn ours(bytes: Box<[u8]>) -> Bundle {
    Bundle::from_bytes(&bytes.into_vec().into(), &DecodePolicy::STRICT).expect("a bundle")
}

const TARGETS: [&[u64]; 4] = [&[0], &[1], &[2], &[0, 1, 2]];

#[test]
fn hardy_verifies_what_we_sign_in_every_scope() {
    let (right, wrong) = (Both::new(HMAC_KEY, AES_KEY), Both::new([9; 48], AES_KEY));
    for (scope, targets) in scopes().flat_map(|scope| TARGETS.map(|targets| (scope, targets))) {
        let mut bundle = plain();
        sign(&mut bundle, &signing(targets, scope), &right.choice()).expect("a legal request");
        let bytes = bundle.to_bytes();
        let parsed = ParsedBundle::parse_with_keys(&bytes, &right.set()).expect("Hardy reads it");
        for target in targets {
            let verified = parsed.bundle.verify_block(*target, &bytes, &right.set());
            assert!(matches!(verified, Ok(true)), "{scope:?}, target {target}");
            let verified = parsed.bundle.verify_block(*target, &bytes, &wrong.set());
            assert!(!matches!(verified, Ok(true)), "{scope:?}, target {target}, with another key");
        }
    }
}

#[test]
fn we_verify_what_hardy_signs_in_every_scope() {
    let (right, wrong) = (Both::new(HMAC_KEY, AES_KEY), Both::new([9; 48], AES_KEY));
    for (scope, targets) in scopes().flat_map(|scope| TARGETS.map(|targets| (scope, targets))) {
        let bytes = plain().to_bytes();
        let parsed = ParsedBundle::parse_with_keys(&bytes, &right.set()).expect("Hardy reads it");
        let mut signer = signer::Signer::new(&parsed.bundle, &bytes);
        for target in targets {
            let context = signer::Context::HMAC_SHA2(flags(scope));
            let source = "ipn:2.0".parse().expect("an endpoint");
            signer = match signer.sign_block(*target, context, source, &right.signs) {
                Ok(signer) => signer,
                Err((_, error)) => panic!("{scope:?}, target {target}: {error}"),
            };
        }
        let bundle = ours(signer.rebuild().expect("Hardy signs it"));
        let verdicts = verify(&bundle, &right.choice()).expect("a legal bundle");
        assert_eq!(verdicts.len(), targets.len());
        assert!(verdicts.iter().all(|verdict| verdict.outcome.is_ok()), "{scope:?}: {verdicts:?}");
        let verdicts = verify(&bundle, &wrong.choice()).expect("a legal bundle");
        assert!(verdicts.iter().all(|verdict| verdict.outcome.is_err()), "{scope:?}: {verdicts:?}");
    }
}

#[test]
fn hardy_decrypts_what_we_encrypt_in_every_scope() {
    let keys = Both::new(HMAC_KEY, AES_KEY);
    for (scope, tag) in
        scopes().flat_map(|scope| [TagPlace::Result, TagPlace::Ciphertext].map(|tag| (scope, tag)))
    {
        let mut count = 0;
        let next_iv = || {
            count += 1;
            [count; 12]
        };
        let mut bundle = plain();
        encrypt(&mut bundle, &encryption(scope, tag), &keys.choice(), next_iv).expect("a legal request");
        assert_ne!(bundle.payload, PAYLOAD);
        let bytes = bundle.to_bytes();
        let parsed = ParsedBundle::parse_with_keys(&bytes, &keys.set()).expect("Hardy reads it");
        let decrypted = parsed.bundle.decrypt_block_data(PAYLOAD_BLOCK, &bytes, &keys.set());
        assert_eq!(decrypted.expect("Hardy decrypts it").as_ref(), PAYLOAD, "{scope:?}, {tag:?}");
    }
}

#[test]
fn we_decrypt_what_hardy_encrypts_in_every_scope() {
    let keys = Both::new(HMAC_KEY, AES_KEY);
    for scope in scopes() {
        let bytes = plain().to_bytes();
        let parsed = ParsedBundle::parse_with_keys(&bytes, &keys.set()).expect("Hardy reads it");
        let context = encryptor::Context::AES_GCM(flags(scope));
        let source = "ipn:2.0".parse().expect("an endpoint");
        let encryptor = encryptor::Encryptor::new(&parsed.bundle, &bytes);
        let encryptor = match encryptor.encrypt_block(PAYLOAD_BLOCK, context, source, &keys.encrypts) {
            Ok(encryptor) => encryptor,
            Err((_, error)) => panic!("{scope:?}: {error}"),
        };
        let mut bundle = ours(encryptor.rebuild().expect("Hardy encrypts it"));
        let verdicts = decrypt(&mut bundle, &keys.choice(), CrcType::Crc32c).expect("a legal bundle");
        assert!(verdicts.len() == 1 && verdicts[0].outcome.is_ok(), "{scope:?}: {verdicts:?}");
        assert_eq!(bundle, plain());
    }
}

/// A bundle as a node makes it: signed, then encrypted with its signature, while the payload passes in pieces.
fn as_a_node_sends_it(keys: &Both) -> Bundle {
    let plain = plain();
    let mut signing = Signing::begin(&plain.head, &signing(&[PAYLOAD_BLOCK], Scope::ALL), &keys.choice())
        .expect("a legal request");
    let key = keys.ours.iter().find(|key| key.algorithm() == Algorithm::Aes256Gcm).expect("a key");
    let mut encryption =
        Encryption::begin(&signing.draft(), &source(), key, b"this bundle").expect("a legal request");
    let mut payload = Vec::new();
    for piece in plain.payload.chunks(3) {
        signing.update(piece);
        let mut piece = piece.to_vec();
        encryption.update(&mut piece);
        payload.extend(piece);
    }
    Bundle { head: encryption.finish(&signing.finish()), payload: payload.into() }
}

#[test]
fn hardy_decrypts_and_verifies_what_a_node_sends() {
    let (right, wrong) = (Both::new(HMAC_KEY, AES_KEY), Both::new(HMAC_KEY, [9; 32]));
    let bundle = as_a_node_sends_it(&right);
    let integrity = bundle.head.block(BlockType::BlockIntegrity).expect("it is signed").number;
    assert!(bundle.head.is_encrypted(PAYLOAD_BLOCK) && bundle.head.is_encrypted(integrity));
    let bytes = bundle.to_bytes();
    let parsed = ParsedBundle::parse_with_keys(&bytes, &right.set()).expect("Hardy reads it");
    let decrypted = parsed.bundle.decrypt_block_data(PAYLOAD_BLOCK, &bytes, &right.set());
    assert_eq!(decrypted.expect("Hardy decrypts it").as_ref(), PAYLOAD);
    let decrypted = parsed.bundle.decrypt_block_data(PAYLOAD_BLOCK, &bytes, &wrong.set());
    assert!(decrypted.is_err(), "with another key");
    let verified = parsed.bundle.verify_block(PAYLOAD_BLOCK, &bytes, &right.set());
    assert!(matches!(verified, Ok(true)), "the encrypted signature: {verified:?}");
}

#[test]
fn we_decrypt_and_verify_what_hardy_signs_and_encrypts() {
    let keys = Both::new(HMAC_KEY, AES_KEY);
    let bytes = plain().to_bytes();
    let parsed = ParsedBundle::parse_with_keys(&bytes, &keys.set()).expect("Hardy reads it");
    let node = || "ipn:2.0".parse().expect("an endpoint");
    let context = signer::Context::HMAC_SHA2(flags(Scope::ALL));
    let signer = signer::Signer::new(&parsed.bundle, &bytes);
    let Ok(signer) = signer.sign_block(PAYLOAD_BLOCK, context, node(), &keys.signs) else {
        panic!("Hardy does not sign")
    };
    let bytes = Bytes::from(signer.rebuild().expect("Hardy signs it").into_vec());
    let parsed = ParsedBundle::parse_with_keys(&bytes, &keys.set()).expect("Hardy reads it");
    let context = encryptor::Context::AES_GCM(flags(Scope::ALL));
    let encryptor = encryptor::Encryptor::new(&parsed.bundle, &bytes);
    let Ok(encryptor) = encryptor.encrypt_block(PAYLOAD_BLOCK, context, node(), &keys.encrypts) else {
        panic!("Hardy does not encrypt")
    };
    let bundle = ours(encryptor.rebuild().expect("Hardy encrypts it"));
    // As the agent does it: the payload in pieces, then the header, then the signature.
    let mut decryption = Decryption::begin(&bundle.head, &keys.choice()).expect("a legal bundle");
    bundle.payload.chunks(5).for_each(|piece| decryption.update(piece));
    let mut decryptor = decryption.finish().expect("the key");
    let mut head = bundle.head.clone();
    decryptor.open(&mut head);
    decrypt_extensions(&mut head, &keys.choice());
    let plain = Bundle { head, payload: decryptor.decrypt(0, &bundle.payload) };
    assert_eq!(plain.payload, PAYLOAD);
    let verdicts = verify(&plain, &keys.choice()).expect("a legal bundle");
    assert!(verdicts.len() == 1 && verdicts[0].outcome.is_ok(), "{verdicts:?}");
}
