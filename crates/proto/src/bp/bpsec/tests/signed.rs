//! Signatures with private keys (BIB-COSE-SIGN1).

use super::*;

fn private(byte: u8) -> Key {
    Key::new(Eid::ipn(2, 0), "test", Algorithm::Ed25519, &[byte; 32]).expect("a key of this length")
}

fn fingerprint(byte: u8) -> Fingerprint {
    private(byte).public_key().expect("a private key").fingerprint()
}

fn signed(targets: &[u64]) -> Bundle {
    let keys = Keys::from_iter([private(1)]);
    let request = SignRequest { source: Eid::ipn(2, 0), algorithm: Algorithm::Ed25519, ..signing(targets) };
    let mut bundle = sample();
    sign(&mut bundle, &request, &choice(&keys)).expect("a legal request");
    bundle
}

fn outcome(bundle: &Bundle, keys: &Keys) -> Result<(), Fault> {
    verify(bundle, &choice(keys)).expect("a legal bundle")[0].outcome
}

#[test]
fn a_signature_is_believed_from_the_known_key_alone() {
    let bundle = signed(&[PAYLOAD_BLOCK]);
    let mut keys = Keys::default();
    assert_eq!(outcome(&bundle, &keys), Err(Fault::MissingKey));
    keys.pin_at_first_use(true);
    assert_eq!(outcome(&bundle, &keys), Ok(()));
    let verdicts = verify(&bundle, &choice(&keys)).expect("a legal bundle");
    assert_eq!(verdicts[0].public_key.map(|key| key.fingerprint()), Some(fingerprint(1)));
    assert!(keys.pin(&Eid::ipn(2, 0), fingerprint(2)));
    assert_eq!(outcome(&bundle, &keys), Err(Fault::ChangedKey));
    assert!(keys.pin(&Eid::ipn(2, 0), fingerprint(1)));
    keys.pin_at_first_use(false);
    assert_eq!(outcome(&bundle, &keys), Ok(()));
    assert!(keys.forget(&Eid::ipn(2, 9)) && !keys.forget(&Eid::ipn(2, 0)));
    assert_eq!(outcome(&bundle, &keys), Err(Fault::MissingKey));
    // The owner of the private key needs no pin.
    assert_eq!(outcome(&bundle, &Keys::from_iter([private(1)])), Ok(()));
}

#[test]
fn every_altered_bit_of_what_is_signed_is_found() {
    let bundle = signed(&[PRIMARY_BLOCK, PAYLOAD_BLOCK]);
    let mut keys = Keys::default();
    keys.pin_at_first_use(true);
    let altered = |bundle: &Bundle| {
        verify(bundle, &choice(&keys)).map(|verdicts| verdicts.iter().all(|verdict| verdict.outcome.is_ok()))
    };
    assert_eq!(altered(&bundle), Ok(true));
    for bit in 0..bundle.payload.len() * 8 {
        let mut payload = bundle.payload.to_vec();
        payload[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(altered(&Bundle { head: bundle.head.clone(), payload: payload.into() }), Ok(true));
    }
    let data = &bundle.head.blocks[0].data;
    for bit in 0..data.len() * 8 {
        let mut changed = data.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        let mut bundle = bundle.clone();
        bundle.head.blocks[0].data = changed.into();
        let security = SecurityBlock::from_bytes(&bundle.head.blocks[0].data);
        // Reserved flags of the block are ignored.
        let is_same = security == SecurityBlock::from_bytes(data);
        assert_eq!(altered(&bundle) == Ok(true), is_same, "bit {bit}");
    }
    let mut moved = bundle.clone();
    moved.head.primary.destination = Eid::ipn(9, 2);
    assert_ne!(altered(&moved), Ok(true));
}

/// A key of small order fits any message, and its other encodings do so as well.
#[test]
fn weak_public_keys_are_refused() {
    let y = |first: &str, middle: &str, last: &str| hex(&format!("{first}{}{last}", middle.repeat(30)));
    let mut weak = vec![y("00", "00", "00"), y("01", "00", "00"), y("00", "00", "80"), y("01", "00", "80")];
    weak.extend(
        ["ec", "ed", "ee", "ff"].iter().flat_map(|first| [y(first, "ff", "7f"), y(first, "ff", "ff")]),
    );
    for odd in [
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
    ] {
        weak.push(hex(odd));
    }
    let mut keys = Keys::default();
    keys.pin_at_first_use(true);
    for key in weak {
        let mut bundle = signed(&[PAYLOAD_BLOCK]);
        let mut security = SecurityBlock::from_bytes(&bundle.head.blocks[0].data).expect("it was just made");
        let mut value = security.operations[0].results[0].as_byte_string().expect("a byte string").to_vec();
        value[9..41].copy_from_slice(&key);
        security.operations[0].results[0] = Field::byte_string(1, &value);
        bundle.head.blocks[0].data = security.to_bytes();
        assert_eq!(outcome(&bundle, &keys), Err(Fault::InvalidResult(1)), "{key:02x?}");
    }
}

/// Only a node ID of which the pin is found and read again.
#[test]
fn other_endpoints_of_a_node_have_no_keys() {
    let mut keys = Keys::default();
    keys.pin_at_first_use(true);
    let mut evil = vec![Eid::Null, Eid::ipn(2, 5), Eid::Unknown { scheme: 5, ssp: Bytes::from_static(&[1]) }];
    evil.extend(["dtn://alice/evil", "dtn://alice/~all"].map(|text| text.parse().expect("an endpoint")));
    evil.push(format!("dtn://{}/", "a".repeat(300)).parse().expect("a node ID"));
    for source in evil {
        let own = Key::new(source.clone(), "test", Algorithm::Ed25519, &[1; 32]).expect("a key");
        let request = SignRequest { source, algorithm: Algorithm::Ed25519, ..signing(&[PAYLOAD_BLOCK]) };
        let mut bundle = sample();
        sign(&mut bundle, &request, &choice(&Keys::from_iter([own]))).expect("a legal request");
        assert_eq!(outcome(&bundle, &keys), Err(Fault::InvalidSource));
    }
}

/// A signer who takes another's signature, or claims another's name for it, needs another signature.
#[test]
fn the_security_source_is_signed() {
    let mut bundle = signed(&[PAYLOAD_BLOCK]);
    let mut security = SecurityBlock::from_bytes(&bundle.head.blocks[0].data).expect("it was just made");
    security.source = Eid::ipn(3, 0);
    bundle.head.blocks[0].data = security.to_bytes();
    let mut keys = Keys::default();
    keys.pin_at_first_use(true);
    assert_eq!(outcome(&bundle, &keys), Err(Fault::WrongKeyOrAltered));
}

#[test]
fn the_form_is_that_of_the_description() {
    let bundle = signed(&[PAYLOAD_BLOCK]);
    let security = SecurityBlock::from_bytes(&bundle.head.blocks[0].data).expect("it was just made");
    assert_eq!((security.context, security.parameters.len()), (-18_225, 2));
    let value = security.operations[0].results[0].as_byte_string().expect("a byte string");
    let key = private(1).public_key().expect("a private key");
    assert_eq!(value.len(), 109);
    assert_eq!(value[..9], hex("845826a20127045820"));
    assert_eq!(value[9..41], key.0);
    assert_eq!(value[41..45], hex("a0f65840"));
    // Public key of RFC 8032 7.1, test 1, whose fingerprint is the beginning of its SHA-256 hash.
    let seed = hex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
    let key = Key::new(Eid::ipn(2, 1), "", Algorithm::Ed25519, &seed).expect("a key").public_key();
    let expected = hex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a");
    assert_eq!(key.expect("a private key").0[..], expected[..]);
}

#[test]
fn other_forms_and_versions_are_refused() {
    let mut keys = Keys::default();
    keys.pin_at_first_use(true);
    let outcome = |alter: &dyn Fn(&mut SecurityBlock)| {
        let mut bundle = signed(&[PAYLOAD_BLOCK]);
        let mut security = SecurityBlock::from_bytes(&bundle.head.blocks[0].data).expect("it was just made");
        alter(&mut security);
        bundle.head.blocks[0].data = security.to_bytes();
        outcome(&bundle, &keys)
    };
    assert_eq!(
        outcome(&|block| block.parameters[0] = Field::unsigned(1, 2)),
        Err(Fault::InvalidParameter(1))
    );
    assert_eq!(outcome(&|block| drop(block.parameters.remove(0))), Err(Fault::MissingParameter(1)));
    assert_eq!(outcome(&|block| block.context = -1), Err(Fault::UnknownContext(-1)));
    let long = |block: &mut SecurityBlock| {
        block.operations[0].results[0] = Field::byte_string(1, &[0x84; VALUE_BYTES_MAX - 3]);
    };
    assert_eq!(outcome(&long), Err(Fault::InvalidResult(1)));
    let request = SignRequest {
        source: Eid::ipn(2, 0),
        algorithm: Algorithm::Ed25519,
        fresh_key: Secret::new(Algorithm::Ed25519, &[1; 32]).ok(),
        ..signing(&[PAYLOAD_BLOCK])
    };
    let own = Keys::from_iter([private(1)]);
    assert_eq!(sign(&mut sample(), &request, &choice(&own)), Err(Fault::InvalidParameter(1)));
}

#[test]
fn drafts_have_the_length_of_the_signed_header() {
    let keys = Keys::from_iter([
        private(1),
        Key::new(Eid::ipn(2, 0), "test", Algorithm::Hmac256, &[1; 32]).expect("a key"),
        Key::new(Eid::ipn(2, 0), "test", Algorithm::Hmac384, &[1; 32]).expect("a key"),
        Key::new(Eid::ipn(2, 0), "test", Algorithm::Hmac512, &[1; 32]).expect("a key"),
    ]);
    for algorithm in [Algorithm::Ed25519, Algorithm::Hmac256, Algorithm::Hmac384, Algorithm::Hmac512] {
        let bundle = sample();
        let request =
            SignRequest { source: Eid::ipn(2, 0), algorithm, ..signing(&[PRIMARY_BLOCK, PAYLOAD_BLOCK]) };
        let mut signing = Signing::begin(&bundle.head, &request, &choice(&keys)).expect("a legal request");
        let draft = signing.draft();
        signing.update(&bundle.payload);
        let number = signing.block();
        let done = signing.finish();
        assert_eq!(draft.to_bytes().len(), done.to_bytes().len());
        let data = |head: &Head| {
            head.blocks.iter().find(|block| block.number == number).map(|block| block.data.len())
        };
        assert_eq!(data(&draft), data(&done));
    }
}

#[test]
fn fingerprints_are_read_as_they_are_written() {
    let written = fingerprint(1).to_string();
    assert_eq!(written.len(), 39);
    assert_eq!(written.parse(), Ok(fingerprint(1)));
    assert_eq!(written.replace('-', "").to_uppercase().parse(), Ok(fingerprint(1)));
    for wrong in ["", "12", &written[1..], &format!("{written}0"), &written.replace('-', "/")] {
        assert_eq!(wrong.parse::<Fingerprint>(), Err(NotAFingerprint));
    }
}

#[test]
fn known_public_keys_are_bounded() {
    let mut keys = Keys::default();
    keys.pin_at_first_use(true);
    for number in 0..PINS_MAX as u32 {
        assert!(keys.pin(&Eid::ipn(100 + number, 0), fingerprint(2)));
    }
    assert!(!keys.pin(&Eid::ipn(2, 0), fingerprint(1)));
    assert!(keys.pin(&Eid::ipn(100, 0), fingerprint(3)), "a known one can change");
    assert_eq!(outcome(&signed(&[PAYLOAD_BLOCK]), &keys), Err(Fault::TooManyKeys));
}

/// The encoding that others have implemented from the documentation: a change needs another version of the context.
#[test]
fn the_block_of_a_signature_is_the_recorded_one() {
    const RECORDED: &str = include_str!("../../../../../../vectors/bp/cose-sign1.txt");
    let recorded = |name: &str| {
        let line = RECORDED.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        hex(line.expect("a line"))
    };
    let bundle = signed(&[PAYLOAD_BLOCK]);
    let text: String = bundle.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(bundle.to_bytes(), recorded("bundle"), "{text}");
    assert_eq!(bundle.head.blocks[0].data, recorded("block"));
    assert_eq!(fingerprint(1).0, recorded("fingerprint")[..]);
    // The recorded bundle is verified as well.
    let read = Bundle::from_bytes(&recorded("bundle"), &DecodePolicy::STRICT).expect("a bundle");
    let mut keys = Keys::default();
    assert!(keys.pin(&Eid::ipn(2, 0), fingerprint(1)));
    assert_eq!(outcome(&read, &keys), Ok(()));
}
