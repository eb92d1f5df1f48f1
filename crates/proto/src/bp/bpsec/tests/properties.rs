//! Random bundles with random operations.

use super::*;
use crate::bp::generate::Generator;
use crate::fuzz;

fn without_crcs(mut bundle: Bundle) -> Bundle {
    bundle.head.primary.crc = CrcType::None;
    bundle.head.payload.crc = CrcType::None;
    bundle.head.blocks.iter_mut().for_each(|block| block.crc = CrcType::None);
    bundle
}

#[test]
fn what_is_signed_and_encrypted_in_any_allowed_order_is_restored() {
    let keys = fuzz::keys();
    let (mut operations, mut faults) = (0, std::collections::BTreeMap::<String, u32>::new());
    for seed in 0..1_000 {
        let rng = Rng::new(seed);
        let mut original = Generator::new(rng.fork("bundle")).bundle();
        original.head.primary.fragment = None;
        let mut bundle = original.clone();
        for fault in fuzz::secure(&mut bundle, &mut rng.fork("operations")) {
            let name = format!("{fault:?}");
            *faults.entry(name.split('(').next().unwrap_or_default().to_owned()).or_default() += 1;
        }
        assert_eq!(check(&bundle.head), Ok(()), "seed {seed}");
        let mut received = Bundle::from_bytes(&bundle.to_bytes(), &DecodePolicy::STORED).expect("a bundle");
        assert_eq!(received, bundle, "seed {seed}");
        let decrypted = decrypt(&mut received, &choice(&keys), CrcType::None).expect("a legal bundle");
        let verified = verify(&received, &choice(&keys)).expect("a legal bundle");
        for verdict in decrypted.iter().chain(&verified) {
            assert_eq!(verdict.outcome, Ok(()), "seed {seed}: {verdict:?}");
            operations += 1;
        }
        accept(&mut received.head, &verified, CrcType::None).expect("no CRC is restored");
        assert_eq!(without_crcs(received), without_crcs(original), "seed {seed}");
    }
    assert!(operations > 1_500, "{operations}");
    // Every rule that a request can break was broken.
    let found: Vec<&str> = faults.keys().map(String::as_str).collect();
    let expected = [
        "CoveredPrimaryBlock",
        "EncryptedTarget",
        "ForbiddenTarget",
        "Indivisible",
        "RepeatedOperation",
        "TargetCount",
    ];
    assert_eq!(found, expected);
}
