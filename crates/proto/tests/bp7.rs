//! Another implementation as an independent partner: the crate `bp7` reads what this one writes, and the reverse.

use bp7::crc::{CRC_16, CRC_32};
use bytes::Bytes;
use longwire_proto::bp::generate::Generator;
use longwire_proto::bp::{AdminRecord, Bundle, Eid, Policy, Status};
use longwire_proto::rng::Rng;

fn generators(count: u64) -> impl Iterator<Item = Generator> {
    (0..count).map(|seed| {
        let mut generator = Generator::new(Rng::new(seed));
        generator.common = true;
        generator
    })
}

fn partner(bytes: &[u8]) -> Option<bp7::Bundle> {
    bp7::Bundle::try_from(bytes).ok().filter(|bundle| bundle.validate().is_ok())
}

#[test]
fn it_reads_what_we_write_and_writes_the_same() {
    for mut generator in generators(2000) {
        let ours = generator.bundle();
        let bytes = ours.to_bytes();
        let mut theirs = partner(&bytes).unwrap_or_else(|| panic!("refused: {ours:?}"));
        let primary = &ours.head.primary;
        assert_eq!(theirs.primary.destination.to_string(), primary.destination.to_string());
        assert_eq!(theirs.primary.source.to_string(), primary.source.to_string());
        assert_eq!(theirs.primary.lifetime.as_millis(), u128::from(primary.lifetime_ms));
        assert_eq!(theirs.payload().expect("a payload"), &ours.payload);
        assert_eq!(
            theirs.previous_node().map(ToString::to_string),
            ours.head.previous_node().map(String::from)
        );
        assert_eq!(theirs.to_cbor(), bytes);
    }
}

/// Bits of block flags that are reserved: RFC 9171 4.2.4 wants them ignored, the partner refuses them.
fn has_reserved_flags(bundle: &Bundle) -> bool {
    let mut flags = bundle.head.blocks.iter().map(|block| block.flags).chain([bundle.head.payload.flags]);
    flags.any(|flags| flags.bits() & !0x17 != 0)
}

/// The other way round it takes a few things that RFC 9171 forbids.
#[test]
fn of_damaged_bundles_we_accept_none_that_it_refuses() {
    let mut accepted = 0;
    for mut generator in generators(3000) {
        let mut bytes = generator.bundle().to_bytes().to_vec();
        for _ in 0..=generator.rng.below(2) {
            let at = generator.rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << generator.rng.below(8);
        }
        let bytes = Bytes::from(bytes);
        if Bundle::from_bytes(&bytes, &Policy::STRICT).is_ok_and(|ours| !has_reserved_flags(&ours)) {
            accepted += 1;
            assert!(partner(&bytes).is_some(), "{bytes:x}");
        }
    }
    assert!(accepted > 100, "bits of blocks without a CRC were hit {accepted} times");
}

#[test]
fn we_read_what_it_writes_and_write_the_same() {
    for crc in [CRC_16, CRC_32] {
        let mut theirs = bp7::helpers::get_bench_bundle(crc);
        let bytes = Bytes::from(theirs.to_cbor());
        let ours = Bundle::from_bytes(&bytes, &Policy::STRICT).expect("a legal bundle");
        assert_eq!(ours.to_bytes(), bytes);
        assert_eq!(ours.payload, theirs.payload().expect("a payload"));
    }
}

#[test]
fn we_read_its_status_reports() {
    use bp7::administrative_record::{DELETED_BUNDLE, LIFETIME_EXPIRED, new_status_report_bundle};
    let subject = bp7::helpers::get_bench_bundle(CRC_32);
    let reporter = bp7::EndpointID::try_from("dtn://moon/").expect("a node id");
    let mut theirs = new_status_report_bundle(&subject, reporter, CRC_32, DELETED_BUNDLE, LIFETIME_EXPIRED);
    let bytes = Bytes::from(theirs.to_cbor());
    let ours = Bundle::from_bytes(&bytes, &Policy::STRICT).expect("a legal bundle");
    let Ok(AdminRecord::StatusReport(report)) = AdminRecord::from_bytes(&ours.payload) else {
        panic!("not a status report: {:x}", ours.payload);
    };
    assert_eq!(Ok(report.source.clone()), subject.primary.source.to_string().parse::<Eid>());
    assert_eq!((report.deleted, report.received), (Status::Asserted, Status::NotAsserted));
    assert_eq!(report.reason.number(), 1);
    assert_eq!(AdminRecord::StatusReport(report).to_bytes(), ours.payload);
}
