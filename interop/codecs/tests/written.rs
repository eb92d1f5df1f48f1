//! The output of each implementation is decoded by the others and re-encoded identically.

use bp7::crc::{CRC_16, CRC_32, CRC_NO};
use bytes::Bytes;
use longwire_interop_codecs::verdict::{PARTNERS, reading, theirs};
use longwire_proto::bp::generate::Generator;
use longwire_proto::bp::{AdminRecord, BlockFlags, Bundle, DecodePolicy, DtnTime, Eid, StatusItem};
use longwire_proto::rng::Rng;
use std::borrow::Cow;

fn generator(seed: u64) -> Generator {
    Generator { common: true, ..Generator::new(Rng::new(seed)) }
}

/// Bundle with only commonly supported features.
fn common(seed: u64) -> Bundle {
    let mut bundle = generator(seed).bundle();
    // One of the partners applies this flag while it parses: see the table of differences.
    for block in &mut bundle.head.blocks {
        if block.flags.contains(BlockFlags::DELETE_BUNDLE) {
            block.flags = BlockFlags::NONE;
        }
    }
    bundle
}

#[test]
fn both_partners_read_what_we_write() {
    for seed in 0..5000 {
        let bundle = common(seed);
        for partner in PARTNERS {
            let their_reading = theirs(partner, &bundle.to_bytes());
            let their_reading = their_reading
                .unwrap_or_else(|words| panic!("seed {seed}: {partner} refuses: {words}\n{bundle:?}"));
            assert_eq!(their_reading, reading(&bundle), "seed {seed}: {partner} decodes differently");
        }
    }
}

#[test]
fn bp7_writes_again_what_we_wrote() {
    for seed in 0..2000 {
        let bytes = common(seed).to_bytes();
        let mut bundle = bp7::Bundle::try_from(&bytes[..]).expect("it reads what we write");
        assert_eq!(bundle.to_cbor(), *bytes, "seed {seed}");
    }
}

/// Decodes the output of a partner: our fields are those that the partner decodes itself, and re-encoding gives the
/// same bytes.
fn we_read(bytes: Vec<u8>, policy: &DecodePolicy) -> Bundle {
    let bytes = Bytes::from(bytes);
    let bundle = Bundle::from_bytes(&bytes, policy).unwrap_or_else(|error| panic!("{error}: {bytes:x}"));
    for partner in PARTNERS {
        assert_eq!(theirs(partner, &bytes).as_ref(), Ok(&reading(&bundle)), "{partner}: {bytes:x}");
    }
    assert_eq!(bundle.to_bytes(), bytes);
    bundle
}

#[test]
fn we_read_what_bp7_writes() {
    for crc in [CRC_16, CRC_32] {
        we_read(bp7::helpers::get_bench_bundle(crc).to_cbor(), &DecodePolicy::STRICT);
        for sequence in 0..200 {
            let timestamp = bp7::CreationTimestamp::with_time_and_seq(800_000_000_000 + sequence, sequence);
            let mut bundle = bp7::helpers::rnd_bundle(timestamp);
            bundle.set_crc(crc);
            let age =
                bp7::canonical::new_bundle_age_block(0, bp7::flags::BlockControlFlags::empty(), sequence);
            bundle.add_canonical_block(age);
            we_read(bundle.to_cbor(), &DecodePolicy::STRICT);
        }
    }
}

/// dtn7-rs sends bundles from its applications without any CRC.
#[test]
fn we_read_bp7_bundles_without_crc_where_the_policy_allows_it() {
    let timestamp = bp7::CreationTimestamp::with_time_and_seq(800_000_000_000, 0);
    let mut bundle = bp7::helpers::rnd_bundle(timestamp);
    bundle.set_crc(CRC_NO);
    let bytes = bundle.to_cbor();
    assert!(Bundle::from_bytes(&Bytes::from(bytes.clone()), &DecodePolicy::STRICT).is_err());
    we_read(bytes, &DecodePolicy { accept_primary_without_crc: true, ..DecodePolicy::STRICT });
}

#[test]
fn we_read_what_hardy_writes() {
    use hardy_bpv7::block::Type;
    use hardy_bpv7::builder::Builder;
    use hardy_bpv7::crc::CrcType;
    use hardy_bpv7::creation_timestamp::CreationTimestamp;
    use hardy_bpv7::dtn_time::DtnTime;
    use hardy_bpv7::hop_info::HopInfo;
    for seed in 0..1000 {
        let mut generator = generator(seed);
        let mut endpoint = || generator.singleton().to_string().parse().expect("a legal endpoint");
        let crc = if seed % 2 == 0 { CrcType::CRC16_X25 } else { CrcType::CRC32_CASTAGNOLI };
        let mut builder = Builder::new(endpoint(), endpoint()).with_crc_type(crc).with_report_to(endpoint());
        let previous: hardy_bpv7::eid::Eid = endpoint();
        if seed % 3 == 0 {
            builder = builder.with_hop_count(&HopInfo { limit: 1 + seed % 255, count: seed % 7 });
            let previous = hardy_cbor::encode::emit(&previous).0;
            let block = builder.add_extension_block(Type::PreviousNode).expect("a legal block");
            builder = block.build(previous.into());
        }
        let mut payload = vec![0; (seed % 500) as usize];
        generator.rng.fill(&mut payload);
        let timestamp = CreationTimestamp::from_parts(Some(DtnTime::new(1 + generator.number())), seed);
        let (_, bytes) =
            builder.with_payload(Cow::Borrowed(&payload)).build(timestamp).expect("a legal bundle");
        assert_eq!(we_read(bytes.into(), &DecodePolicy::STRICT).payload, payload);
    }
}

#[test]
fn we_read_bp7_status_reports() {
    use bp7::administrative_record::{DELETED_BUNDLE, LIFETIME_EXPIRED, new_status_report_bundle};
    let subject = bp7::helpers::get_bench_bundle(CRC_32);
    let reporter = bp7::EndpointID::try_from("dtn://moon/").expect("a node id");
    let mut theirs = new_status_report_bundle(&subject, reporter, CRC_32, DELETED_BUNDLE, LIFETIME_EXPIRED);
    let ours = we_read(theirs.to_cbor(), &DecodePolicy::STRICT);
    let Ok(AdminRecord::StatusReport(report)) = AdminRecord::from_bytes(&ours.payload) else {
        panic!("not a status report: {:x}", ours.payload);
    };
    assert_eq!(Ok(report.source.clone()), subject.primary.source.to_string().parse::<Eid>());
    assert_eq!((report.deleted, report.received), (StatusItem::Asserted, StatusItem::NotAsserted));
    assert_eq!(report.reason.number(), 1);
    assert_eq!(AdminRecord::StatusReport(report).to_bytes(), ours.payload);
}

#[test]
fn hardy_reads_our_administrative_records_and_we_read_its_own() {
    use hardy_bpv7::status_report::AdministrativeRecord;
    let mut reports = 0;
    for seed in 0..2000 {
        let record = generator(seed).admin_record();
        let AdminRecord::StatusReport(report) = &record else { continue };
        // The partner supports reason codes up to those of BPSec and four status items, and treats a time of zero as no
        // time.
        let timeless = [report.received, report.forwarded, report.delivered, report.deleted]
            .contains(&StatusItem::AssertedAt(DtnTime::UNKNOWN));
        if timeless || !report.further.is_empty() || report.reason.number() > 16 {
            continue;
        }
        let bytes = record.to_bytes();
        let Ok((theirs, _, length)) =
            hardy_cbor::decode::parse::<(AdministrativeRecord, bool, usize)>(&bytes)
        else {
            panic!("seed {seed}: {record:?}: {bytes:x}");
        };
        assert_eq!(length, bytes.len());
        let again = Bytes::from(hardy_cbor::encode::emit(&theirs).0);
        assert_eq!(AdminRecord::from_bytes(&again), Ok(record), "seed {seed}");
        reports += 1;
    }
    assert!(reports > 200, "{reports} reports");
}
