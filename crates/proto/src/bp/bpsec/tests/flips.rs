//! Every bit of a signed bundle, flipped.

use super::*;
use std::collections::BTreeMap;

/// What the signatures cover.
fn covered(bundle: &Bundle) -> impl PartialEq + core::fmt::Debug {
    let Head { primary, blocks, payload } = &bundle.head;
    let defined = |flags: BlockFlags| flags.bits() & BlockFlags::DEFINED.bits();
    // Blocks keep their order.
    let covered = [&blocks[0], &blocks[2]].into_iter();
    let blocks: Vec<_> = covered
        .map(|block| match SecurityBlock::from_bytes(&block.data) {
            Ok(security) => (block.block_type, block.number, defined(block.flags), security.to_bytes()),
            Err(_) => (block.block_type, block.number, defined(block.flags), block.data.clone()),
        })
        .collect();
    (primary.clone(), blocks, defined(payload.flags), bundle.payload.clone())
}

/// The hop count (block 2) is not signed; nothing has a CRC.
#[test]
fn a_flipped_bit_is_noticed_wherever_it_is_signed() {
    let keys =
        Keys::from_iter([Key::new(Eid::ipn(2, 1), "test", Algorithm::Hmac256, &[1; 32]).expect("a key")]);
    let targets = [PRIMARY_BLOCK, PAYLOAD_BLOCK, 3];
    let mut bundle = sample();
    bundle.head.blocks[0].crc = CrcType::None;
    sign(&mut bundle, &signing(&targets), &choice(&keys)).expect("a legal request");
    let bytes = bundle.to_bytes();
    let expected: Vec<_> = targets.iter().map(|target| (*target, Ok(()))).collect();
    let mut passes: BTreeMap<&str, u32> = BTreeMap::new();
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let Ok(flipped) = Bundle::from_bytes(&flipped.into(), &DecodePolicy::STRICT) else { continue };
        let verified = verify(&flipped, &choice(&keys));
        if verified.is_ok_and(|verdicts| outcomes(&verdicts) == expected) {
            assert_eq!(covered(&flipped), covered(&bundle), "bit {bit}");
            let place = if flipped.head.blocks[1] != bundle.head.blocks[1] {
                "block 2"
            } else if flipped.head.blocks[0].data != bundle.head.blocks[0].data {
                "reserved security context flags"
            } else {
                "reserved block flags"
            };
            *passes.entry(place).or_default() += 1;
        }
    }
    let passes: Vec<_> = passes.into_iter().collect();
    let expected = [("block 2", 22), ("reserved block flags", 2)];
    assert_eq!((bytes.len(), &passes[..]), (222, &expected[..]));
}

/// The payload and the block integrity block are encrypted as well: the codes cover all that is left to read.
#[test]
fn a_flipped_bit_of_ciphertext_is_noticed() {
    let keys = crate::fuzz::keys();
    let mut bundle = sample();
    sign(&mut bundle, &signing(&[PAYLOAD_BLOCK]), &choice(&keys)).expect("a legal request");
    encrypt(&mut bundle, &encryption(&[PAYLOAD_BLOCK]), &choice(&keys), ivs()).expect("a legal request");
    for bit in 0..bundle.payload.len() * 8 {
        let mut flipped = bundle.clone();
        let mut payload = bundle.payload.to_vec();
        payload[bit / 8] ^= 1 << (bit % 8);
        flipped.payload = payload.into();
        let verdicts = decrypt(&mut flipped, &choice(&keys), CrcType::None).expect("a legal bundle");
        let expected = [(PAYLOAD_BLOCK, Err(Fault::WrongKeyOrAltered)), (4, Ok(()))];
        assert_eq!(outcomes(&verdicts), expected, "bit {bit}");
        let verdicts = verify(&flipped, &choice(&keys)).expect("a legal bundle");
        assert_eq!(outcomes(&verdicts), [(PAYLOAD_BLOCK, Err(Fault::EncryptedTarget(PAYLOAD_BLOCK)))]);
    }
}
