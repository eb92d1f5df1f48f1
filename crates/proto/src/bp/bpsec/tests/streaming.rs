//! Encryption and decryption of payloads that pass in pieces.

use super::*;
use crate::bp::BlockType;

fn gcm_key(algorithm: Algorithm, byte: u8) -> Key {
    let length = if algorithm == Algorithm::Aes128Gcm { 16 } else { 32 };
    Key::new(Eid::ipn(2, 1), "test", algorithm, &vec![byte; length]).expect("a key of this length")
}

fn hmac_key() -> Key {
    Key::new(Eid::ipn(2, 1), "test", Algorithm::Hmac256, &[3; 32]).expect("a key of this length")
}

const ALGORITHMS: [Algorithm; 3] = [Algorithm::Aes128Gcm, Algorithm::Aes256Gcm, Algorithm::KeyWrap];

/// Encrypts in pieces of random lengths, after signing if there is a key.
fn encrypted(plain: &Bundle, key: &Key, signs: bool, rng: &mut Rng) -> Bundle {
    let keys = Keys::from_iter([hmac_key()]);
    let mut signer = signs
        .then(|| Signing::begin(&plain.head, &signing(&[PAYLOAD_BLOCK]), &choice(&keys)).expect("legal"));
    let draft = signer.as_ref().map_or(plain.head.clone(), Signing::draft);
    let mut encryption = Encryption::begin(&draft, &Eid::ipn(2, 1), key, b"unique").expect("a legal request");
    let expected = encryption.draft().to_bytes().len();
    let (mut payload, mut at) = (Vec::new(), 0);
    while at < plain.payload.len() {
        let end = plain.payload.len().min(at + 1 + rng.below(50) as usize);
        let mut piece = plain.payload[at..end].to_vec();
        if let Some(signer) = &mut signer {
            signer.update(&piece);
        }
        encryption.update(&mut piece);
        payload.extend(piece);
        at = end;
    }
    let head = encryption.finish(&signer.map_or(draft, Signing::finish));
    assert_eq!(head.to_bytes().len(), expected, "the draft has the length of the header");
    Bundle { head, payload: payload.into() }
}

/// The functions for whole bundles decrypt and verify what passes in pieces.
#[test]
fn pieces_make_the_same_bundle_as_the_whole() {
    let mut rng = Rng::new(5);
    for (algorithm, signs) in ALGORITHMS.into_iter().flat_map(|one| [(one, false), (one, true)]) {
        for length in [0, 1, 15, 16, 17, 31, 32, 33, 1000, 70_000] {
            let mut payload = vec![0; length];
            rng.fill(&mut payload);
            let mut plain = sample();
            plain.head.payload.length = length as u64;
            plain.payload = payload.into();
            let key = gcm_key(algorithm, 7);
            let bundle = encrypted(&plain, &key, signs, &mut rng);
            assert_eq!(bundle.head.payload.length, length as u64);
            assert!(bundle.head.is_encrypted(PAYLOAD_BLOCK));
            assert!(length < 15 || bundle.payload != plain.payload);
            let keys = Keys::from_iter([key, hmac_key()]);
            let mut decrypted = bundle.clone();
            let verdicts = decrypt(&mut decrypted, &choice(&keys), CrcType::None).expect("a legal bundle");
            assert_eq!(verdicts.len(), 1 + usize::from(signs));
            assert!(verdicts.iter().all(|verdict| verdict.outcome.is_ok()), "{verdicts:?}");
            assert_eq!(decrypted.payload, plain.payload);
            let verified = verify(&decrypted, &choice(&keys)).expect("a legal bundle");
            assert_eq!(outcomes(&verified), vec![(PAYLOAD_BLOCK, Ok(())); usize::from(signs)]);
            // And the other way.
            let mut decryption = Decryption::begin(&bundle.head, &choice(&keys)).expect("a legal bundle");
            bundle.payload.chunks(1 + rng.below(40) as usize).for_each(|piece| decryption.update(piece));
            let mut decryptor = decryption.finish().expect("the right key");
            let from = rng.below(length as u64 + 1);
            let part = decryptor.decrypt(from, &bundle.payload.slice(from as usize..));
            assert_eq!(part, plain.payload.slice(from as usize..));
            let mut head = bundle.head.clone();
            decryptor.open(&mut head);
            decrypt_extensions(&mut head, &choice(&keys));
            assert_eq!(head, decrypted.head);
        }
    }
}

/// Bundles that other functions encrypt, with tags in either place.
#[test]
fn foreign_bundles_are_decrypted_in_pieces() {
    for (algorithm, tag) in [Algorithm::Aes128Gcm, Algorithm::Aes256Gcm]
        .into_iter()
        .flat_map(|one| [(one, TagPlace::Result), (one, TagPlace::Ciphertext)])
    {
        let mut bundle = sample();
        let keys = Keys::from_iter([gcm_key(algorithm, 7)]);
        let request = EncryptRequest { algorithm, tag, ..encryption(&[PAYLOAD_BLOCK, 3]) };
        encrypt(&mut bundle, &request, &choice(&keys), ivs()).expect("a legal request");
        for size in [1, 5, 100] {
            let mut decryption = Decryption::begin(&bundle.head, &choice(&keys)).expect("a legal bundle");
            bundle.payload.chunks(size).for_each(|piece| decryption.update(piece));
            let mut decryptor = decryption.finish().expect("the right key");
            assert_eq!(decryptor.bytes(), sample().payload.len() as u64);
            assert_eq!(decryptor.decrypt(0, &bundle.payload), sample().payload);
        }
        // An altered bit anywhere in the ciphertext or its tag is noticed.
        for bit in 0..bundle.payload.len() * 8 {
            let mut altered = bundle.payload.to_vec();
            altered[bit / 8] ^= 1 << (bit % 8);
            let mut decryption = Decryption::begin(&bundle.head, &choice(&keys)).expect("a legal bundle");
            decryption.update(&altered);
            assert_eq!(decryption.finish().err(), Some(Fault::WrongKeyOrAltered), "bit {bit}");
        }
        let wrong = Keys::from_iter([gcm_key(algorithm, 8)]);
        let mut decryption = Decryption::begin(&bundle.head, &choice(&wrong)).expect("a legal bundle");
        decryption.update(&bundle.payload);
        assert_eq!(decryption.finish().err(), Some(Fault::WrongKeyOrAltered));
    }
}

fn block_of(bundle: &Bundle, target: u64) -> Bytes {
    let (number, _) = find(&bundle.head, Service::Confidentiality, target).expect("it is encrypted");
    bundle.head.blocks.iter().find(|block| block.number == number).expect("it is there").data.clone()
}

/// Initialization vectors and wrapped keys depend on the key, on what is unique, and on the target.
#[test]
fn nothing_is_used_twice() {
    let mut seen = std::collections::BTreeSet::new();
    for algorithm in ALGORITHMS {
        for (byte, unique) in [(1, "a"), (1, "b"), (2, "a")] {
            let mut bundle = sample();
            let keys = Keys::from_iter([hmac_key()]);
            sign(&mut bundle, &signing(&[PAYLOAD_BLOCK]), &choice(&keys)).expect("a legal request");
            let integrity = bundle.head.block(BlockType::BlockIntegrity).expect("it is signed").number;
            let key = gcm_key(algorithm, byte);
            let encryption = Encryption::begin(&bundle.head, &Eid::ipn(2, 1), &key, unique.as_bytes());
            bundle.head = encryption.expect("a legal request").draft();
            for target in [PAYLOAD_BLOCK, integrity] {
                let block = SecurityBlock::from_bytes(&block_of(&bundle, target)).expect("a block");
                let iv = block.parameters[0].as_byte_string().expect("the vector");
                assert!(seen.insert(iv), "{algorithm:?} {byte} {unique} {target}");
            }
        }
    }
    assert_eq!(seen.len(), 18);
}

#[test]
fn keys_for_something_else_do_not_encrypt() {
    let head = sample().head;
    let begun = |key: &Key| Encryption::begin(&head, &Eid::ipn(2, 1), key, b"").err();
    assert_eq!(begun(&hmac_key()), Some(Fault::MissingKey));
    assert_eq!(begun(&gcm_key(Algorithm::Aes256Gcm, 1)), None);
    let fragment = head.fragment(0, 3);
    let key = gcm_key(Algorithm::Aes256Gcm, 1);
    assert_eq!(Encryption::begin(&fragment, &Eid::ipn(2, 1), &key, b"").err(), Some(Fault::Fragment));
}
