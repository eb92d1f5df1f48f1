//! The examples of RFC 9173, appendix A, in both directions.

use super::super::canonical::{self, Header};
use super::super::cipher;
use super::*;
use crate::bp::Block;
use bytes::BytesMut;

const RFC_9173: &str = include_str!("../../../../../../vectors/bp/rfc9173.txt");
const HMAC_KEY: &str = "1a2b1a2b1a2b1a2b1a2b1a2b1a2b1a2b";
const AES_KEY: &str = "71776572747975696f70617364666768";
const LONG_AES_KEY: &str = "71776572747975696f7061736466676871776572747975696f70617364666768";
const KEY_ENCRYPTION_KEY: &str = "6162636465666768696a6b6c6d6e6f70";
const IV: &[u8; 12] = b"Twelve121212";

fn encoded(name: &str) -> Bytes {
    let line = RFC_9173.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    hex(line.expect("an example"))
}

fn bundle(name: &str) -> Bundle {
    Bundle::from_bytes(&encoded(name), &DecodePolicy::STORED).expect("a bundle")
}

fn key(source: Eid, algorithm: Algorithm, secret: &str) -> Key {
    Key::new(source, "test", algorithm, &hex(secret)).expect("a key of this length")
}

/// Verifies and accepts what is signed, after decryption; all must succeed, and the original is left.
fn assert_accepted(name: &str, keys: &Keys, original: &str, targets: [&[u64]; 2]) {
    let mut bundle = bundle(name);
    let decrypted = decrypt(&mut bundle, &choice(keys), CrcType::None).expect("a legal bundle");
    let verified = verify(&bundle, &choice(keys)).expect("a legal bundle");
    for (verdicts, targets) in [&decrypted, &verified].into_iter().zip(targets) {
        let expected: Vec<_> = targets.iter().map(|target| (*target, Ok(()))).collect();
        assert_eq!(outcomes(verdicts), expected);
    }
    accept(&mut bundle.head, &verified, CrcType::None).expect("no CRC is restored");
    assert_eq!(bundle.to_bytes(), encoded(original));
}

#[test]
fn example_1_a_signed_payload() {
    let keys = Keys::from_iter([key(Eid::ipn(2, 1), Algorithm::Hmac512, HMAC_KEY)]);
    let mut signed = bundle("1.original");
    let request =
        SignRequest { algorithm: Algorithm::Hmac512, scope: Scope::TARGET, ..signing(&[PAYLOAD_BLOCK]) };
    sign(&mut signed, &request, &choice(&keys)).expect("a legal request");
    assert_eq!(signed.to_bytes(), encoded("1.final"));
    assert_accepted("1.final", &keys, "1.original", [&[], &[1]]);
}

#[test]
fn example_2_an_encrypted_payload_with_a_wrapped_key() {
    let keys = Keys::from_iter([key(Eid::ipn(2, 1), Algorithm::KeyWrap, KEY_ENCRYPTION_KEY)]);
    let mut encrypted = bundle("1.original");
    let request = EncryptRequest {
        algorithm: Algorithm::Aes128Gcm,
        scope: Scope::TARGET,
        fresh_key: Secret::new(Algorithm::Aes128Gcm, &hex(AES_KEY)).ok(),
        ..encryption(&[PAYLOAD_BLOCK])
    };
    encrypt(&mut encrypted, &request, &choice(&keys), || *IV).expect("a legal request");
    assert_eq!(encrypted.to_bytes(), encoded("2.final"));
    assert_accepted("2.final", &keys, "1.original", [&[1], &[]]);
}

#[test]
fn example_3_two_sources() {
    let keys = Keys::from_iter([
        key(Eid::ipn(3, 0), Algorithm::Hmac256, HMAC_KEY),
        key(Eid::ipn(2, 1), Algorithm::Aes128Gcm, AES_KEY),
    ]);
    let mut secured = bundle("3.original");
    let request =
        SignRequest { source: Eid::ipn(3, 0), scope: Scope::TARGET, ..signing(&[PRIMARY_BLOCK, 2]) };
    sign(&mut secured, &request, &choice(&keys)).expect("a legal request");
    let request = EncryptRequest {
        algorithm: Algorithm::Aes128Gcm,
        scope: Scope::TARGET,
        ..encryption(&[PAYLOAD_BLOCK])
    };
    encrypt(&mut secured, &request, &choice(&keys), || *IV).expect("a legal request");
    assert_eq!(secured.to_bytes(), encoded("3.final"));
    assert_accepted("3.final", &keys, "3.original", [&[1], &[0, 2]]);
}

fn keys_of_example_4() -> Keys {
    Keys::from_iter([
        key(Eid::ipn(2, 1), Algorithm::Hmac384, HMAC_KEY),
        key(Eid::ipn(2, 1), Algorithm::Aes256Gcm, LONG_AES_KEY),
    ])
}

/// The example with its block integrity block, which has number 3 there although 2 is free.
fn signed_example_4() -> Bundle {
    let mut signed = bundle("1.original");
    let mut other = sample().head.blocks.remove(0);
    other.number = 2;
    signed.head.blocks.push(other);
    let request = SignRequest { algorithm: Algorithm::Hmac384, ..signing(&[PAYLOAD_BLOCK]) };
    sign(&mut signed, &request, &choice(&keys_of_example_4())).expect("a legal request");
    assert!(discard(&mut signed.head, 2));
    signed
}

/// One block confidentiality block with two targets uses its initialization vector twice, which only this example does.
#[test]
fn example_4_a_signed_and_encrypted_payload() {
    let mut secured = signed_example_4();
    let (block_type, flags) = (BlockType::BlockConfidentiality, BlockFlags::REPLICATE);
    let mut block = Block { block_type, number: 2, flags, crc: CrcType::None, data: Bytes::new() };
    let seal = |target: u64, data: &Bytes| {
        let mut associated = BytesMut::new();
        let header = Header::of(&block);
        canonical::put_scope(Scope::ALL, &secured.head, target, header, &mut associated).expect("a target");
        let mut data = data.to_vec();
        let tag = cipher::seal(&hex(LONG_AES_KEY), IV, &associated, &mut data);
        (Operation { target, results: vec![Field::byte_string(1, &tag)] }, Bytes::from(data))
    };
    let (integrity, integrity_data) = seal(3, &secured.head.blocks[0].data);
    let (payload, payload_data) = seal(PAYLOAD_BLOCK, &secured.payload);
    let security = SecurityBlock {
        context: BCB_AES_GCM,
        source: Eid::ipn(2, 1),
        parameters: vec![Field::byte_string(1, IV), Field::unsigned(2, 3), Field::unsigned(4, 7)],
        operations: vec![integrity, payload],
    };
    block.data = security.to_bytes();
    secured.head.blocks[0].data = integrity_data;
    secured.head.blocks.push(block);
    secured.payload = payload_data;
    assert_eq!(secured.to_bytes(), encoded("4.final"));
    assert_accepted("4.final", &keys_of_example_4(), "1.original", [&[3, 1], &[1]]);
}

/// The first test vector of RFC 3394 for each length of the key encryption key: 4.1, 4.2 and 4.3.
#[test]
fn keys_are_wrapped_as_in_rfc_3394() {
    let encryption_key = hex("000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f");
    let key = hex("00112233445566778899aabbccddeeff");
    for (length, wrapped) in [
        (16, "1fa68b0a8112b447aef34bd8fb5a7b829d3e862371d2cfe5"),
        (24, "96778b25ae6ca435f92b5b97c050aed2468ab8a17ad84e5d"),
        (32, "64e8c3f9ce0f5ba263e9777905818a2a93c8191e7d6e8ae7"),
    ] {
        assert_eq!(cipher::wrap(&encryption_key[..length], &key), Ok(hex(wrapped).to_vec()));
        assert_eq!(cipher::unwrap(&encryption_key[..length], &hex(wrapped)), Ok(key.to_vec()));
    }
}

/// Test case 5 of the specification of GCM by McGrew and Viega: an initialization vector of 8 bytes.
#[test]
fn a_short_initialization_vector() {
    let mut data = hex("61353b4c2806934a777ff51fa22a4755699b2a714fcdc6f83766e5f97b6c7423\
                        73806900e49f24b22b097544d4896b424989b5e1ebac0f07c23f4598")
    .to_vec();
    let key = hex("feffe9928665731c6d6a8f9467308308");
    let associated = hex("feedfacedeadbeeffeedfacedeadbeefabaddad2");
    let tag = hex("3612d2e79e3b0785561be14aaca2fccb");
    let tag = tag[..].try_into().expect("16 bytes");
    assert_eq!(cipher::open(&key, &hex("cafebabefacedbad"), &associated, &mut data, tag), Ok(()));
    let plaintext = hex("d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72\
                         1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39");
    assert_eq!(data, plaintext);
}
