//! Rules between operations, and what acceptors leave.

use super::*;
use crate::bp::ReasonCode;
use crate::fuzz;

fn number(bundle: &Bundle, block_type: BlockType) -> u64 {
    bundle.head.block(block_type).expect("such a block").number
}

fn signed(targets: &[u64], scope: Scope) -> Bundle {
    let mut bundle = sample();
    let request = SignRequest { scope, ..signing(targets) };
    sign(&mut bundle, &request, &choice(&fuzz::keys())).expect("a legal request");
    bundle
}

/// Targets of the blocks of a type, in order.
fn targets(bundle: &Bundle, block_type: BlockType) -> Vec<Vec<u64>> {
    let blocks = bundle.head.blocks.iter().filter(|block| block.block_type == block_type);
    let security = blocks.map(|block| SecurityBlock::from_bytes(&block.data).expect("a readable block"));
    security.map(|block| block.operations.iter().map(|operation| operation.target).collect()).collect()
}

#[test]
fn a_payload_in_pieces_gives_the_same_signature() {
    let keys = fuzz::keys();
    let mut whole = sample();
    sign(&mut whole, &signing(&[PAYLOAD_BLOCK, PRIMARY_BLOCK]), &choice(&keys)).expect("a legal request");
    let request = signing(&[PAYLOAD_BLOCK, PRIMARY_BLOCK]);
    let mut signing = Signing::begin(&sample().head, &request, &choice(&keys)).expect("a legal request");
    sample().payload.chunks(3).for_each(|piece| signing.update(piece));
    assert_eq!(signing.finish(), whole.head);
    let block = number(&whole, BlockType::BlockIntegrity);
    let mut verification = Verification::begin(&whole.head, block, &choice(&keys)).expect("a legal bundle");
    whole.payload.chunks(4).for_each(|piece| verification.update(piece));
    assert_eq!(outcomes(&verification.finish()), [(PAYLOAD_BLOCK, Ok(())), (PRIMARY_BLOCK, Ok(()))]);
}

#[test]
#[should_panic(expected = "the head tells the payload's length")]
fn a_part_of_a_payload_is_not_signed() {
    let signing = Signing::begin(&sample().head, &signing(&[PAYLOAD_BLOCK]), &choice(&fuzz::keys()));
    signing.expect("a legal request").finish();
}

#[test]
fn targets_lose_their_crc_and_get_it_back() {
    let mut bundle = signed(&[PRIMARY_BLOCK, PAYLOAD_BLOCK], Scope::ALL);
    assert_eq!((bundle.head.primary.crc, bundle.head.payload.crc), (CrcType::None, CrcType::None));
    assert_eq!(bundle.head.check(&DecodePolicy::STRICT), Ok(()), "the signature replaces the CRC");
    let verdicts = verify(&bundle, &choice(&fuzz::keys())).expect("a legal bundle");
    accept(&mut bundle.head, &verdicts, CrcType::Crc32c).expect("nothing else covers the primary block");
    assert_eq!(bundle, sample());
}

/// The signature of the payload covers the primary block as it is, without a CRC.
#[test]
fn a_primary_block_that_another_signature_covers_gets_no_crc() {
    let mut bundle = signed(&[PRIMARY_BLOCK, PAYLOAD_BLOCK], Scope::PRIMARY_BLOCK);
    let verdicts = verify(&bundle, &choice(&fuzz::keys())).expect("a legal bundle");
    let before = bundle.head.clone();
    assert_eq!(accept(&mut bundle.head, &verdicts[..1], CrcType::Crc16), Err(Fault::CoveredPrimaryBlock));
    assert_eq!(bundle.head, before);
    accept(&mut bundle.head, &verdicts[..1], CrcType::None).expect("the primary block is unchanged");
    let verdicts = verify(&bundle, &choice(&fuzz::keys())).expect("a legal bundle");
    assert_eq!(outcomes(&verdicts), [(PAYLOAD_BLOCK, Ok(()))]);
}

/// Who has a key may encrypt a block integrity block that is none: the other targets are decrypted all the same.
#[test]
fn plaintext_that_is_no_security_block_stops_nothing_but_verification() {
    let keys = fuzz::keys();
    let mut bundle = signed(&[3], Scope::ALL);
    bundle.head.blocks[0].block_type = BlockType::Unknown(222);
    bundle.head.blocks[0].data = Bytes::from_static(b"no security block");
    let request = EncryptRequest { scope: Scope::TARGET, ..encryption(&[4, PAYLOAD_BLOCK]) };
    encrypt(&mut bundle, &request, &choice(&keys), ivs()).expect("a legal request");
    let altered = bundle.head.blocks.iter_mut().find(|block| block.number == 4).expect("block 4");
    altered.block_type = BlockType::BlockIntegrity;
    let verdicts = decrypt(&mut bundle, &choice(&keys), CrcType::None).expect("a legal bundle");
    assert_eq!(outcomes(&verdicts), [(4, Ok(())), (PAYLOAD_BLOCK, Ok(()))]);
    let refused = verify(&bundle, &choice(&keys));
    assert!(matches!(refused, Err(Fault::Undecodable(_))), "{refused:?}");
}

#[test]
fn an_acceptor_removes_only_what_has_succeeded() {
    let mut bundle = signed(&[PAYLOAD_BLOCK, 3], Scope::ALL);
    bundle.payload = Bytes::from_static(b"hello, mars");
    let verdicts = verify(&bundle, &choice(&fuzz::keys())).expect("a legal bundle");
    assert_eq!(outcomes(&verdicts), [(PAYLOAD_BLOCK, Err(Fault::WrongKeyOrAltered)), (3, Ok(()))]);
    accept(&mut bundle.head, &verdicts, CrcType::Crc32c).expect("the primary block is unchanged");
    assert_eq!(targets(&bundle, BlockType::BlockIntegrity), [[PAYLOAD_BLOCK]]);
    assert_eq!(bundle.head.payload.crc, CrcType::None);
    assert_eq!(require(&bundle.head, Service::Integrity, PAYLOAD_BLOCK), Ok(()));
    assert_eq!(require(&bundle.head, Service::Integrity, 3), Err(Fault::MissingOperation));
}

/// RFC 9172 3.9, and its example 2 in 3.11.2.
#[test]
fn the_integrity_block_of_an_encrypted_target_is_divided_and_encrypted() {
    let keys = fuzz::keys();
    let mut bundle = signed(&[PRIMARY_BLOCK, PAYLOAD_BLOCK, 3], Scope::PRIMARY_BLOCK | Scope::TARGET_HEADER);
    encrypt(&mut bundle, &encryption(&[PAYLOAD_BLOCK, 3]), &choice(&keys), ivs()).expect("a legal request");
    // Block 4 keeps the primary block; block 5 has the other two values, and is encrypted.
    assert_eq!(targets(&bundle, BlockType::BlockConfidentiality), [[1], [3], [5]]);
    let verdicts = verify(&bundle, &choice(&keys)).expect("a legal bundle");
    assert_eq!(outcomes(&verdicts), [(PRIMARY_BLOCK, Ok(()))]);
    decrypt(&mut bundle, &choice(&keys), CrcType::Crc32c).expect("a legal bundle");
    assert_eq!(bundle.payload, sample().payload);
    let verdicts = verify(&bundle, &choice(&keys)).expect("a legal bundle");
    assert_eq!(outcomes(&verdicts), [(PRIMARY_BLOCK, Ok(())), (PAYLOAD_BLOCK, Ok(())), (3, Ok(()))]);
}

#[test]
fn values_that_cover_the_number_of_their_block_are_not_divided() {
    let mut bundle = signed(&[PAYLOAD_BLOCK, 3], Scope::ALL);
    let outcome = encrypt(&mut bundle, &encryption(&[3]), &choice(&fuzz::keys()), ivs());
    assert_eq!(outcome, Err(Fault::Indivisible(number(&bundle, BlockType::BlockIntegrity))));
    let all = encrypt(&mut bundle, &encryption(&[PAYLOAD_BLOCK, 3]), &choice(&fuzz::keys()), ivs());
    assert_eq!(all, Ok(()));
}

#[test]
fn operations_that_the_rules_do_not_allow() {
    let keys = fuzz::keys();
    let sign =
        |bundle: &Bundle, targets: &[u64]| sign(&mut bundle.clone(), &signing(targets), &choice(&keys));
    let encrypt = |bundle: &Bundle, targets: &[u64]| {
        encrypt(&mut bundle.clone(), &encryption(targets), &choice(&keys), ivs())
    };
    let plain = sample();
    assert_eq!(sign(&plain, &[]), Err(Fault::TargetCount));
    assert_eq!(sign(&plain, &[7]), Err(Fault::MissingTarget(7)));
    assert_eq!(sign(&plain, &[1, 1]), Err(Fault::RepeatedOperation(1)));
    assert_eq!(encrypt(&plain, &[PRIMARY_BLOCK]), Err(Fault::ForbiddenTarget(PRIMARY_BLOCK)));
    let signed = signed(&[PAYLOAD_BLOCK], Scope::ALL);
    let integrity = number(&signed, BlockType::BlockIntegrity);
    assert_eq!(sign(&signed, &[PAYLOAD_BLOCK]), Err(Fault::RepeatedOperation(PAYLOAD_BLOCK)));
    assert_eq!(sign(&signed, &[integrity]), Err(Fault::ForbiddenTarget(integrity)));
    assert_eq!(encrypt(&signed, &[integrity]), Err(Fault::ForbiddenTarget(integrity)));
    assert_eq!(sign(&signed, &[PRIMARY_BLOCK]), Err(Fault::CoveredPrimaryBlock));
    let mut encrypted = plain.clone();
    super::encrypt(&mut encrypted, &encryption(&[3]), &choice(&keys), ivs()).expect("a legal request");
    let confidentiality = number(&encrypted, BlockType::BlockConfidentiality);
    assert_eq!(sign(&encrypted, &[3]), Err(Fault::EncryptedTarget(3)));
    assert_eq!(encrypt(&encrypted, &[3]), Err(Fault::RepeatedOperation(3)));
    assert_eq!(sign(&encrypted, &[confidentiality]), Err(Fault::ForbiddenTarget(confidentiality)));
    assert_eq!(encrypt(&encrypted, &[confidentiality]), Err(Fault::ForbiddenTarget(confidentiality)));
    let mut fragment = signed;
    fragment.head = fragment.head.fragment(0, 5);
    fragment.payload = fragment.payload.slice(..5);
    assert_eq!(sign(&fragment, &[3]), Err(Fault::Fragment));
    assert_eq!(encrypt(&fragment, &[3]), Err(Fault::Fragment));
    assert_eq!(verify(&fragment, &choice(&keys)), Err(Fault::Fragment));
    assert_eq!(decrypt(&mut fragment, &choice(&keys), CrcType::None), Err(Fault::Fragment));
}

#[test]
fn received_blocks_that_the_rules_do_not_allow() {
    let keys = fuzz::keys();
    let mut encrypted = sample();
    encrypt(&mut encrypted, &encryption(&[PAYLOAD_BLOCK]), &choice(&keys), ivs()).expect("a legal request");
    let altered = |alter: fn(&mut Head)| {
        let mut head = encrypted.head.clone();
        alter(&mut head);
        check(&head)
    };
    assert_eq!(altered(|_| {}), Ok(()));
    assert_eq!(altered(|head| head.blocks[0].flags = BlockFlags::NONE), Err(Fault::ForbiddenFlags));
    assert_eq!(altered(|head| head.blocks[0].flags |= BlockFlags::DISCARD), Err(Fault::ForbiddenFlags));
    let twice = altered(|head| {
        let mut second = head.blocks[0].clone();
        second.number = 9;
        head.blocks.push(second);
    });
    assert_eq!(twice, Err(Fault::RepeatedOperation(PAYLOAD_BLOCK)));
    assert_eq!(retargeted(&encrypted, PRIMARY_BLOCK), Err(Fault::ForbiddenTarget(PRIMARY_BLOCK)));
    assert_eq!(retargeted(&encrypted, 4), Err(Fault::ForbiddenTarget(4)));
    assert_eq!(retargeted(&encrypted, 9), Err(Fault::MissingTarget(9)));
    assert_eq!(retargeted(&signed(&[3], Scope::ALL), 4), Err(Fault::ForbiddenTarget(4)));
}

/// Checks a bundle after its first security block has got another target.
fn retargeted(bundle: &Bundle, target: u64) -> Result<(), Fault> {
    let mut head = bundle.head.clone();
    change(&mut head, |block| block.operations[0].target = target);
    check(&head)
}

/// Changes the data of the first block, a security block.
fn change(head: &mut Head, change: impl FnOnce(&mut SecurityBlock)) {
    let mut security = SecurityBlock::from_bytes(&head.blocks[0].data).expect("a security block");
    change(&mut security);
    head.blocks[0].data = security.to_bytes();
}

#[test]
fn contexts_parameters_and_results_that_are_unknown_or_invalid() {
    let keys = fuzz::keys();
    let outcome = |alter: fn(&mut SecurityBlock)| {
        let mut bundle = signed(&[PAYLOAD_BLOCK], Scope::ALL);
        change(&mut bundle.head, alter);
        verify(&bundle, &choice(&keys)).expect("a legal bundle")[0].outcome
    };
    assert_eq!(outcome(|block| block.context = BCB_AES_GCM), Err(Fault::UnknownContext(2)));
    assert_eq!(outcome(|block| block.parameters[0].id = 4), Err(Fault::UnknownParameter(4)));
    assert_eq!(outcome(|block| block.parameters[0] = Field::unsigned(1, 4)), Err(Fault::InvalidParameter(1)));
    assert_eq!(outcome(|block| block.parameters[1] = Field::unsigned(3, 8)), Err(Fault::InvalidParameter(3)));
    assert_eq!(outcome(|block| block.operations[0].results[0].id = 2), Err(Fault::UnknownResult(2)));
    assert_eq!(outcome(|block| block.operations[0].results.clear()), Err(Fault::MissingResult));
    assert_eq!(
        outcome(|block| block.operations[0].results[0] = Field::unsigned(1, 4)),
        Err(Fault::InvalidResult(1))
    );
    // A shorter value is not compared as far as it goes.
    assert_eq!(
        outcome(|block| block.operations[0].results[0] = Field::byte_string(1, &[])),
        Err(Fault::WrongKeyOrAltered)
    );
    let outcome = |alter: fn(&mut SecurityBlock)| {
        let mut bundle = sample();
        encrypt(&mut bundle, &encryption(&[PAYLOAD_BLOCK]), &choice(&keys), ivs()).expect("a legal request");
        change(&mut bundle.head, alter);
        let before = bundle.clone();
        let verdicts = decrypt(&mut bundle, &choice(&keys), CrcType::None).expect("a legal bundle");
        assert_eq!(bundle, before, "what fails changes nothing");
        verdicts[0].outcome
    };
    assert_eq!(outcome(|block| block.context = BIB_HMAC_SHA2), Err(Fault::UnknownContext(1)));
    assert_eq!(outcome(|block| drop(block.parameters.remove(0))), Err(Fault::MissingParameter(1)));
    let short = |block: &mut SecurityBlock| block.parameters[0] = Field::byte_string(1, &[0; 7]);
    assert_eq!(outcome(short), Err(Fault::InvalidParameter(1)));
    assert_eq!(outcome(|block| block.parameters[1] = Field::unsigned(2, 2)), Err(Fault::InvalidParameter(2)));
    assert_eq!(outcome(|block| block.operations[0].results.clear()), Err(Fault::MissingResult));
    let short = |block: &mut SecurityBlock| block.operations[0].results[0] = Field::byte_string(1, &[0; 15]);
    assert_eq!(outcome(short), Err(Fault::InvalidResult(1)));
}

/// Parameters that are absent have their defaults: HMAC 384, AES-256, and all of the scope.
#[test]
fn defaults_of_parameters() {
    let keys = fuzz::keys();
    let mut bundle = sample();
    let request = SignRequest { algorithm: Algorithm::Hmac384, ..signing(&[3]) };
    sign(&mut bundle, &request, &choice(&keys)).expect("a legal request");
    change(&mut bundle.head, |block| block.parameters.clear());
    assert_eq!(outcomes(&verify(&bundle, &choice(&keys)).expect("a legal bundle")), [(3, Ok(()))]);
    let mut bundle = sample();
    encrypt(&mut bundle, &encryption(&[3]), &choice(&keys), ivs()).expect("a legal request");
    change(&mut bundle.head, |block| block.parameters.truncate(1));
    let verdicts = decrypt(&mut bundle, &choice(&keys), CrcType::Crc32c).expect("a legal bundle");
    assert_eq!((outcomes(&verdicts), bundle), (vec![(3, Ok(()))], sample()));
}

#[test]
fn an_initialization_vector_has_8_to_16_bytes() {
    for length in 8..=16 {
        let (key, iv) = ([5; 32], vec![3; length]);
        let mut data = *b"hello, moon";
        let wrong = super::super::cipher::open(&key, &iv, b"", &mut data, &[0; 16]);
        assert_eq!((wrong, &data), (Err(Fault::WrongKeyOrAltered), b"hello, moon"));
    }
}

#[test]
fn an_encrypted_block_has_no_crc_and_is_not_verified() {
    let keys = fuzz::keys();
    let mut bundle = signed(&[3], Scope::ALL);
    encrypt(&mut bundle, &encryption(&[2, 3, PAYLOAD_BLOCK]), &choice(&keys), ivs())
        .expect("a legal request");
    assert!(bundle.head.blocks.iter().all(|block| block.crc == CrcType::None), "{:?}", bundle.head.blocks);
    assert_eq!(bundle.head.payload.crc, CrcType::None);
    assert_eq!(verify(&bundle, &choice(&keys)), Ok(vec![]));
    let block = number(&bundle, BlockType::BlockIntegrity);
    let refused = Verification::begin(&bundle.head, block, &choice(&keys)).map(Verification::finish);
    assert_eq!(refused, Err(Fault::EncryptedTarget(block)));
}

#[test]
fn a_target_has_a_maximum_length() {
    let mut bundle = Bundle::new(sample().head, vec![0; TARGET_BYTES_MAX + 1].into());
    let refused = encrypt(&mut bundle, &encryption(&[PAYLOAD_BLOCK]), &choice(&fuzz::keys()), ivs());
    assert_eq!(refused, Err(Fault::TargetLength));
}

#[test]
#[should_panic(expected = "an initialization vector is used once")]
fn an_initialization_vector_is_not_used_twice() {
    let request = encryption(&[PAYLOAD_BLOCK, 3]);
    let _ = encrypt(&mut sample(), &request, &choice(&fuzz::keys()), || [0; IV_BYTES]);
}

#[test]
fn a_tag_in_the_ciphertext() {
    let keys = fuzz::keys();
    let mut bundle = sample();
    let request = EncryptRequest { tag: TagPlace::Ciphertext, ..encryption(&[PAYLOAD_BLOCK]) };
    encrypt(&mut bundle, &request, &choice(&keys), ivs()).expect("a legal request");
    assert_eq!(bundle.head.payload.length, sample().head.payload.length + 16);
    decrypt(&mut bundle, &choice(&keys), CrcType::Crc32c).expect("a legal bundle");
    assert_eq!(bundle, sample());
}

#[test]
fn a_signed_block_does_not_pass_in_another_bundle() {
    let outcome = |scope| {
        let mut bundle = signed(&[PAYLOAD_BLOCK], scope);
        bundle.head.primary.timestamp.sequence += 1;
        verify(&bundle, &choice(&fuzz::keys())).expect("a legal bundle")[0].outcome
    };
    assert_eq!(outcome(Scope::PRIMARY_BLOCK), Err(Fault::WrongKeyOrAltered));
    assert_eq!(outcome(Scope::TARGET_HEADER | Scope::SECURITY_HEADER), Ok(()));
}

/// Without a block confidentiality block, fragments of an encrypted bundle would pass for plaintext.
#[test]
fn fragments_keep_the_blocks_of_what_is_encrypted_in_them() {
    let mut bundle = sample();
    encrypt(&mut bundle, &encryption(&[PAYLOAD_BLOCK, 2, 3]), &choice(&fuzz::keys()), ivs())
        .expect("a legal request");
    let kept = bundle.head.fragment(5, 6);
    let numbers: Vec<_> = kept.blocks.iter().map(|block| block.number).collect();
    assert_eq!(numbers.len(), 5, "{numbers:?}");
    assert!(kept.is_encrypted(PAYLOAD_BLOCK) && kept.is_encrypted(2) && kept.is_encrypted(3));
}

#[test]
fn a_block_that_cannot_be_decrypted_is_discarded_with_its_operations() {
    let keys = fuzz::keys();
    let mut bundle = sample();
    encrypt(&mut bundle, &encryption(&[3]), &choice(&keys), ivs()).expect("a legal request");
    bundle.head.blocks.iter_mut().filter(|block| block.number == 3).for_each(|block| {
        block.data = Bytes::from_static(b"altered..");
    });
    let verdicts = decrypt(&mut bundle, &choice(&keys), CrcType::None).expect("a legal bundle");
    assert_eq!(outcomes(&verdicts), [(3, Err(Fault::WrongKeyOrAltered))]);
    assert!(discard(&mut bundle.head, 3));
    assert_eq!(bundle.head.blocks, sample().head.blocks[..1]);
    assert!(!discard(&mut bundle.head, PAYLOAD_BLOCK));
}

#[test]
fn reason_codes() {
    for (fault, reason) in [
        (Fault::MissingOperation, ReasonCode::MissingSecurityOperation),
        (Fault::UnknownContext(9), ReasonCode::UnknownSecurityOperation),
        (Fault::UnknownParameter(9), ReasonCode::UnknownSecurityOperation),
        (Fault::ExpiredKey, ReasonCode::FailedSecurityOperation),
        (Fault::WrongKeyOrAltered, ReasonCode::FailedSecurityOperation),
        (Fault::RepeatedOperation(1), ReasonCode::ConflictingSecurityOperation),
    ] {
        assert_eq!(fault.reason(), reason);
    }
}
