use super::*;
use crate::bp::block::Fragment;
use crate::bp::{DecodePolicy, Eid, ReasonCode};
use crate::codec::DecodeError;
use crate::rng::Rng;
use crate::service::Priority;
use bytes::{Bytes, BytesMut};
use generate::Generator;

const PYD3TN: &str = include_str!("../../../../../vectors/bp/pyd3tn-bundle6.txt");

fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(pair).collect()
}

fn vector(name: &str) -> Bytes {
    let line = PYD3TN.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    hex(line.expect("a vector"))
}

fn decode(bytes: &Bytes) -> Result<Bundle, DecodeError> {
    let mut input = bytes.clone();
    let bundle = Bundle::decode(&mut input)?;
    assert!(input.is_empty(), "bytes were left");
    Ok(bundle)
}

fn eid(text: &str) -> Eid {
    Eid::from_uri(text).expect("a legal identifier")
}

#[test]
fn what_pyd3tn_makes_is_read_and_made_again() {
    let lines = PYD3TN.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut count = 0;
    for line in lines {
        let (name, bytes) = line.split_once(' ').expect("a name and bytes");
        let bytes = hex(bytes);
        let bundle = decode(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(bundle.to_bytes(), bytes, "{name}");
        count += 1;
    }
    assert_eq!(count, 6);
}

#[test]
fn the_fields_of_pyd3tns_bundles() {
    let bundle = decode(&vector("ipn")).unwrap();
    let primary = &bundle.head.primary;
    assert_eq!(*primary.source(), Eid::ipn(2, 1));
    assert_eq!(*primary.destination(), Eid::ipn(3, 4));
    assert_eq!(*primary.custodian(), Eid::ipn(2, 0));
    assert!(primary.flags.contains(BundleFlags::CUSTODY | BundleFlags::SINGLETON));
    assert!(primary.flags.contains(BundleFlags::REPORT_DELIVERY | BundleFlags::REPORT_CUSTODY));
    assert_eq!((primary.created_s, primary.sequence, primary.lifetime_s), (817_000_001, 300, 86_400));
    assert_eq!(primary.flags.priority(), Priority::Normal);
    assert_eq!(&bundle.payload[..], [0, 1, 2]);

    let bundle = decode(&vector("fragment")).unwrap();
    assert_eq!(bundle.head.primary.fragment, Some(Fragment { offset: 1000, total_length: 70_000 }));
    assert_eq!(bundle.head.primary.report_to().uri(), "dtn://source.dtn", "as it was written");
    assert_eq!(bundle.head.primary.report_to().to_string(), "dtn://source.dtn/", "as version 7 has it");

    let bundle = decode(&vector("administrative")).unwrap();
    let record = AdminRecord::from_bytes(&bundle.payload).unwrap();
    let AdminRecord::CustodySignal(signal) = &record else { panic!("{record:?}") };
    assert!(signal.succeeded);
    assert_eq!(signal.subject.source, eid("dtn://s/app"));
    assert_eq!((signal.subject.created_s, signal.subject.sequence), (1, 2));
    assert_eq!(record.to_bytes(), bundle.payload);
}

/// RFC 6260 2.2: without a dictionary the references are node and service numbers.
#[test]
fn a_compressed_header() {
    // Version, flags (singleton, normal), length, the four endpoints, creation, sequence, lifetime, no
    // dictionary.
    let bytes = hex("06 8110 0e 0301 0201 0200 0000 05 06 8768 00 01 08 02 6869");
    let wrong_length = decode(&bytes);
    assert!(matches!(wrong_length, Err(DecodeError::Invalid { .. } | DecodeError::Incomplete)));
    let bytes = hex("06 8110 0d 0301 0201 0200 0000 05 06 8768 00 01 08 02 6869");
    let bundle = decode(&bytes).unwrap();
    let primary = &bundle.head.primary;
    assert!(primary.is_compressed());
    assert_eq!(*primary.destination(), Eid::ipn(3, 1));
    assert_eq!(*primary.source(), Eid::ipn(2, 1));
    assert_eq!(*primary.report_to(), Eid::ipn(2, 0));
    assert!(primary.custodian().is_null());
    assert_eq!(primary.lifetime_s, 1000);
    assert_eq!(bundle.to_bytes(), bytes);
    let made = PrimaryBlock::new(Eid::ipn(3, 1), Eid::ipn(2, 1), Eid::ipn(2, 0), true);
    assert!(made.is_compressed());
    let plain = PrimaryBlock::new(Eid::ipn(3, 1), Eid::ipn(2, 1), Eid::ipn(2, 0), false);
    assert_eq!(&plain.dictionary[..], b"ipn\x003.1\x002.1\x002.0\x00dtn\x00none\x00");
}

#[test]
fn any_bundle_survives() {
    for seed in 0..4000 {
        let bundle = Generator::new(Rng::new(seed)).bundle();
        let bytes = bundle.to_bytes();
        let again = decode(&bytes).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(again, bundle, "seed {seed}");
        assert_eq!(again.to_bytes(), bytes, "seed {seed}");
        let mut tail = BytesMut::new();
        bundle.head.encode_tail(&mut tail);
        assert_eq!(tail.len(), bundle.head.tail_bytes(), "seed {seed}");
        let cut = Rng::new(seed).below(bytes.len() as u64) as usize;
        assert_eq!(decode(&bytes.slice(..cut)), Err(DecodeError::Incomplete), "seed {seed}, cut at {cut}");
    }
}

#[test]
fn any_administrative_record_survives() {
    for seed in 0..2000 {
        let record = Generator::new(Rng::new(seed)).admin_record();
        let bytes = record.to_bytes();
        assert_eq!(AdminRecord::from_bytes(&bytes), Ok(record), "seed {seed}");
    }
}

#[test]
fn another_custodian_moves_no_other_name() {
    for seed in 0..2000 {
        let mut generator = Generator::new(Rng::new(seed));
        let head = generator.bundle().head;
        let names = |head: &Head| {
            let blocks = head.blocks.iter().chain(&head.after).flat_map(|block| &block.references);
            let named: Vec<String> = blocks
                .flatten()
                .map(|reference| head.primary.resolve(*reference).expect("a name").uri())
                .collect();
            let primary = &head.primary;
            let ends = [primary.destination(), primary.source(), primary.report_to()].map(Eid::uri);
            (ends, named)
        };
        let custodian = generator.endpoint();
        let mut changed = head.clone();
        changed.set_custodian(custodian.clone());
        assert_eq!(names(&changed), names(&head), "seed {seed}");
        assert_eq!(changed.primary.custodian().uri(), custodian.uri(), "seed {seed}");
        let bytes = Bundle::new(changed.clone(), Bytes::new()).to_bytes();
        let legal = head.primary.fragment.is_none();
        assert!(!legal || decode(&bytes).is_ok_and(|again| again.head.primary == changed.primary));
    }
}

#[test]
fn a_dictionary_does_not_grow_with_the_hops() {
    let mut head = Head::new(PrimaryBlock::new(eid("dtn://d/in"), eid("dtn://s/a"), Eid::Null, true), 0);
    let before = head.primary.dictionary.len();
    for hop in 10..40 {
        head.set_custodian(eid(&format!("dtn://n{hop}/")));
        assert_eq!(head.primary.dictionary.len(), before + "//n10/\0".len());
    }
}

#[test]
fn fragments_are_the_whole_again_and_blocks_go_where_they_belong() {
    for seed in 0..2000 {
        let mut generator = Generator::new(Rng::new(seed));
        let bundle = generator.bundle();
        let length = bundle.payload.len() as u64;
        let flags = bundle.head.primary.flags;
        if length < 2 || flags.contains(BundleFlags::MUST_NOT_FRAGMENT) {
            continue;
        }
        let cut = 1 + generator.rng.below(length - 1);
        let base = bundle.head.primary.fragment.map_or(0, |fragment| fragment.offset);
        let (first, second) = (bundle.head.fragment(0, cut), bundle.head.fragment(cut, length - cut));
        assert_eq!(first.primary.fragment.unwrap().offset, base);
        assert_eq!(second.primary.fragment.unwrap().offset, base + cut);
        assert_eq!(
            first.blocks, bundle.head.blocks,
            "RFC 5050 5.8: before the payload, with the lowest offset"
        );
        assert!(first.after.is_empty() && first.payload.last);
        assert_eq!(
            second.after, bundle.head.after,
            "RFC 5050 5.8: behind the payload, with the highest offset"
        );
        let replicated =
            bundle.head.blocks.iter().filter(|block| block.flags.contains(BlockFlags::REPLICATE));
        assert!(replicated.clone().all(|block| second.blocks.contains(block)));
        for (head, payload) in
            [(first, bundle.payload.slice(..cut as usize)), (second, bundle.payload.slice(cut as usize..))]
        {
            let part = Bundle { head, payload };
            assert_eq!(decode(&part.to_bytes()), Ok(part), "seed {seed}");
        }
    }
}

#[test]
fn previous_hops_in_all_three_forms() {
    let mut head = Head::new(PrimaryBlock::new(eid("dtn://d/in"), eid("dtn://s/a"), Eid::Null, false), 0);
    head.set(&Content::PreviousHop(eid("dtn://hop/")));
    assert_eq!(&head.blocks[0].data[..], b"dtn\0//hop/\0");
    assert_eq!(head.previous_hop(), Some(eid("dtn://hop/")));
    for text in [&b"dtn://hop"[..], b"dtn://hop\0", b"dtn\0//hop\0", b"dtn\0//hop"] {
        head.blocks[0].data = Bytes::copy_from_slice(text);
        assert_eq!(head.previous_hop(), Some(eid("dtn://hop")));
    }
    head.blocks[0].references = Some(vec![head.primary.references[1]]);
    head.blocks[0].data = Bytes::new();
    assert_eq!(head.previous_hop(), Some(eid("dtn://s/a")));
    head.set(&Content::PreviousHop(eid("ipn:3.0")));
    assert_eq!(head.blocks.len(), 1);
    assert_eq!(head.previous_hop(), Some(Eid::ipn(3, 0)));
}

#[test]
fn block_type_ten_is_an_age_or_left_alone() {
    let mut head = Head::new(PrimaryBlock::new(eid("ipn:1.1"), eid("ipn:2.1"), Eid::Null, true), 0);
    // ION's custody transfer enhancement block: a number and the custodian's name.
    let enhancement = Block {
        block_type: BlockType::Age,
        flags: BlockFlags::NONE,
        references: None,
        data: Bytes::from_static(b"\x05ipn:2.0"),
    };
    head.blocks.push(enhancement.clone());
    assert_eq!(head.age_us(), None);
    head.set(&Content::Age(70_000_000));
    assert_eq!(head.age_us(), Some(70_000_000));
    assert_eq!(head.blocks.len(), 2);
    head.set(&Content::Age(80_000_000));
    assert_eq!(head.age_us(), Some(80_000_000));
    assert_eq!(head.blocks[1], enhancement);
}

#[test]
fn identifiers_come_back_as_they_were_written() {
    for text in [
        "dtn:none",
        "dtn://host",
        "dtn://host/",
        "dtn://host/a/b?c",
        "dtn://g/~all",
        "ipn:3.1",
        "ipn:4294967298.3",
        "ipn:4294967295.1",
        "ipn:1.2.3",
        "ipn:03.1",
        "http://example.org/x",
        "dtn:odd",
        "dtn:///x",
        "ipn:0.7",
        "x:y",
    ] {
        assert_eq!(eid(text).uri(), text);
        assert_eq!(eid(text).detached().uri(), text);
    }
    assert_eq!(eid("dtn://host"), eid("dtn://host/"), "one node, two spellings");
    assert_eq!(eid("dtn://host").node_id().uri(), "dtn://host");
    assert!(eid("dtn://host/x").same_node(&eid("dtn://host")));
    assert_eq!(eid("ipn:3.1"), Eid::ipn(3, 1));
    for wrong in ["", "dtn", ":x", "dtn:", "3x:y", "dtn://a b", "dtn://\u{e4}/", "a_b:c"] {
        assert!(Eid::from_uri(wrong).is_err(), "{wrong}");
    }
}

fn refused(bytes: &Bytes) -> (&'static str, &'static str) {
    match decode(bytes) {
        Err(DecodeError::Invalid { what, clause }) => (what, clause),
        Err(DecodeError::Limit { what }) => (what, ""),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_the_rfc_forbids_is_refused_with_its_clause() {
    let base = || Head::new(PrimaryBlock::new(eid("dtn://d/in"), eid("dtn://s/a"), Eid::Null, true), 1);
    let bytes = |head: Head| Bundle::new(head, Bytes::from_static(b"x")).to_bytes();
    assert!(decode(&bytes(base())).is_ok());

    let mut head = base();
    head.primary.flags = BundleFlags::ADMINISTRATIVE_RECORD | BundleFlags::CUSTODY;
    assert_eq!(refused(&bytes(head)).1, "RFC 5050 4.2");
    let mut head = base();
    head.primary.flags = BundleFlags::ADMINISTRATIVE_RECORD | BundleFlags::REPORT_CUSTODY;
    assert_eq!(refused(&bytes(head)).1, "RFC 5050 4.2");
    for flags in [
        BundleFlags::NONE,
        BundleFlags::MUST_NOT_FRAGMENT | BundleFlags::CUSTODY,
        BundleFlags::MUST_NOT_FRAGMENT | BundleFlags::REPORT_DELIVERY,
    ] {
        let mut head = base();
        head.primary = PrimaryBlock::new(eid("dtn://d/in"), Eid::Null, Eid::Null, true);
        head.primary.flags = flags;
        assert_eq!(refused(&bytes(head)).1, "RFC 5050 4.2");
    }
    let mut head = base();
    head.primary.fragment = Some(Fragment { offset: 5, total_length: 5 });
    assert_eq!(refused(&bytes(head)).1, "RFC 5050 5.8");
    let mut head = base();
    head.primary.fragment = Some(Fragment { offset: u64::MAX, total_length: u64::MAX });
    assert_eq!(refused(&bytes(head)).1, "RFC 5050 5.8");
    let mut head = base();
    head.primary.flags = BundleFlags::ADMINISTRATIVE_RECORD;
    head.payload.flags = BlockFlags::REPORT;
    assert_eq!(refused(&bytes(head)).1, "RFC 5050 4.3");

    let age = || Block::new(&Content::Age(1));
    let mut head = base();
    head.after = vec![age()];
    head.payload.last = false;
    assert_eq!(refused(&bytes(head)).1, "RFC 5050 4.3", "age blocks are replicated, and may not be behind");
    let mut head = base();
    head.blocks = vec![age()];
    head.blocks[0].references = Some(vec![EidReference { scheme: 99, ssp: 0 }]);
    assert_eq!(refused(&bytes(head)).1, "RFC 5050 4.4");
}

#[test]
fn hostile_bytes_are_refused_and_ask_for_nothing_endless() {
    assert_eq!(refused(&hex("07 00 00")).1, "RFC 5050 4.5.1");
    // A number of more than 64 bits, and one of eleven bytes.
    assert_eq!(refused(&hex("06 83ffffffffffffffffff7f")).0, "an SDNV");
    assert_eq!(refused(&hex("06 8080808080808080808001")).0, "an SDNV");
    // A primary block of 2^63 bytes, and an extension block.
    assert_eq!(refused(&hex("06 00 81808080808080808000")).0, "a bundle's header");
    let primary = "06 8110 0d 0301 0201 0200 0000 05 06 8768 00";
    assert_eq!(refused(&hex(&format!("{primary} 14 00 81808080808080808000"))).0, "an extension block");
    assert_eq!(
        refused(&hex(&format!("{primary} 14 40 8768"))).0,
        "the number of endpoints that a block names"
    );
    assert_eq!(refused(&hex(&format!("{primary} 14 08 00"))).0, "a bundle without a payload block");
    assert_eq!(refused(&hex(&format!("{primary} 01 48 00"))).1, "RFC 5050 4.5.3");
    assert_eq!(refused(&hex(&format!("{primary} 00 00 00"))).1, "RFC 5050 4.5.2");
    assert_eq!(refused(&hex(&format!("{primary} 01 00 00 01 08 00"))).0, "a second payload block");
    // A dictionary that does not fit, and a block that is longer or shorter than its length field.
    assert_eq!(refused(&hex("06 8110 0d 0301 0201 0200 0000 05 06 8768 7f")).0, "the length of a dictionary");
    assert_eq!(refused(&hex("06 8110 0e 0301 0201 0200 0000 05 06 8768 00 00")).1, "RFC 5050 4.5.1");
    assert_eq!(refused(&hex("06 8110 0c 0301 0201 0200 0000 05 06 8768")).1, "RFC 5050 4.5.1");
    let policy = DecodePolicy { head_bytes_max: 40, extension_blocks_max: 2, ..DecodePolicy::STRICT };
    let long: Bytes = [&hex(primary)[..], &[20, 0, 1, 1].repeat(20)].concat().into();
    assert!(matches!(decode_head(&long, &policy), Err(DecodeError::Limit { .. })));
}

/// Example sequence of a report and a signal according to RFC 5050, byte by byte (6.1, 6.1.1, 6.1.2).
#[test]
fn records_byte_by_byte() {
    let subject =
        admin::Subject { source: eid("ipn:2.1"), created_s: 5, sequence: 6, fragment: Some((128, 3)) };
    let report = AdminRecord::StatusReport(StatusReport {
        received: None,
        custody: Some(Time { seconds: 7, nanoseconds: 8 }),
        forwarded: None,
        delivered: None,
        deleted: Some(Time::from_millis(9001)),
        unused_flags: 0,
        reason: ReasonCode::NoRoute,
        subject: subject.clone(),
    });
    let expected = hex("11 12 06 8100 03 07 08 09 bd8440 05 06 07 69706e3a322e31");
    assert_eq!(report.to_bytes(), expected);
    assert_eq!(AdminRecord::from_bytes(&expected), Ok(report));
    let signal = AdminRecord::CustodySignal(CustodySignal {
        succeeded: false,
        reason: CustodyReason::RedundantReception,
        time: Time { seconds: 7, nanoseconds: 0 },
        subject,
    });
    assert_eq!(signal.to_bytes(), hex("21 03 8100 03 07 00 05 06 07 69706e3a322e31"));
    for wrong in ["", "21 03", "12 00 00", "10 01 00 07 08 05 06 8fff7f"] {
        assert!(AdminRecord::from_bytes(&hex(wrong)).is_err(), "{wrong}");
    }
}
