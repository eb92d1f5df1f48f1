//! Tests of the bundle codec as a whole.

use super::generate::Generator;
use super::*;
use crate::codec::DecodeError;
use crate::rng::Rng;
use bytes::{Bytes, BytesMut};

/// Decodes hexadecimal digits; spaces are ignored.
pub(super) fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).expect("ASCII"), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("two digits")).collect::<Vec<u8>>().into()
}

/// Generators with the seeds 0 to n.
fn seeds(n: u64) -> impl Iterator<Item = Generator> {
    (0..n).map(|seed| Generator::new(Rng::new(seed)))
}

fn sample() -> Bundle {
    let earth = "dtn://earth/inbox".parse().expect("an endpoint ID");
    let timestamp = CreationTimestamp { time: DtnTime(700_000_000_000), sequence: 3 };
    let mut head = Head::new(PrimaryBlock::new(earth, Eid::ipn(3, 1), timestamp, 86_400_000), 0);
    head.set(&Content::HopCount(HopCount { limit: 30, count: 0 }));
    head.set(&Content::QualityOfService(crate::service::Priority::Expedited.into()));
    Bundle::new(head, Bytes::from_static(b"hello, moon"))
}

#[test]
fn a_bundle_survives_the_wire() {
    let bundle = sample();
    let bytes = bundle.to_bytes();
    assert_eq!(Bundle::from_bytes(&bytes, &DecodePolicy::STRICT), Ok(bundle));
}

#[test]
fn every_prefix_is_incomplete() {
    let bytes = sample().to_bytes();
    for cut in 0..bytes.len() {
        assert_eq!(Bundle::decode(&mut bytes.slice(..cut)), Err(DecodeError::Incomplete), "cut at {cut}");
    }
}

#[test]
fn a_payload_in_pieces_gives_the_same_bytes() {
    let bundle = sample();
    let mut out = BytesMut::new();
    bundle.head.encode(&mut out);
    let mut crc = PayloadCrc::new(&bundle.head.payload);
    for piece in bundle.payload.chunks(3) {
        out.extend_from_slice(piece);
        crc.update(piece);
    }
    let before = out.clone();
    crc.encode_tail(&mut out);
    assert_eq!(out.freeze(), bundle.to_bytes());
    // The payload need not pass twice.
    let (mut again, mut out) = (PayloadCrc::known(&bundle.head.payload, crc.value()), before);
    again.update(b"and nothing that does");
    again.encode_tail(&mut out);
    assert_eq!(out.freeze(), bundle.to_bytes());
}

/// The named byte strings of a file in `vectors/`.
pub(super) fn vectors(text: &'static str) -> impl Iterator<Item = (&'static str, Bytes)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("a name and bytes")).map(|(name, bytes)| (name, hex(bytes)))
}

const RFC_9173: &str = include_str!("../../../../vectors/bp/rfc9173.txt");

/// Results of decoding the examples of RFC 9173 under the strict policy, and under one that requires no CRC.
#[test]
fn examples_of_rfc_9173() {
    const NO_AGE: &str = "a bundle with neither creation time nor age";
    const NO_CRC: &str = "a primary block without a CRC";
    let lenient = DecodePolicy { accept_primary_without_crc: true, ..DecodePolicy::STRICT };
    let said = |bytes: &Bytes, policy| match Bundle::from_bytes(bytes, policy) {
        Ok(_) => "accepted",
        Err(DecodeError::Invalid { what, .. }) => what,
        Err(error) => panic!("{error}"),
    };
    let table: Vec<_> = vectors(RFC_9173)
        .map(|(name, bytes)| (name, said(&bytes, &DecodePolicy::STRICT), said(&bytes, &lenient)))
        .collect();
    let expected = [
        ("1.original", NO_AGE, NO_AGE),
        ("1.final", NO_AGE, NO_AGE),
        ("2.final", NO_AGE, NO_AGE),
        ("3.original", NO_CRC, "accepted"),
        ("3.final", "accepted", "accepted"),
        ("4.final", NO_AGE, NO_AGE),
    ];
    assert_eq!(table, expected);
}

#[test]
fn the_examples_of_rfc_9173_are_encoded_as_they_are_printed() {
    for (name, bytes) in vectors(RFC_9173) {
        let mut rest = bytes.clone();
        let head = wire::read_head(&bytes, &mut rest, &DecodePolicy::STRICT, &mut None).expect(name);
        let payload = rest.split_to(head.payload.length as usize);
        assert_eq!(Bundle { head, payload }.to_bytes(), bytes, "{name}");
    }
}

#[test]
fn what_is_encoded_is_decoded_and_encoded_again_to_the_same_bytes() {
    for mut generator in seeds(3000) {
        let bundle = generator.bundle();
        let bytes = bundle.to_bytes();
        let again = Bundle::from_bytes(&bytes, &DecodePolicy::STRICT)
            .unwrap_or_else(|error| panic!("{error}: {bundle:?}"));
        assert_eq!(again, bundle);
        assert_eq!(again.to_bytes(), bytes);
        assert_eq!(bundle.head.check(&DecodePolicy::STRICT), Ok(()));
        let (head, length) = decode_head(&bytes, &DecodePolicy::STRICT).expect("the bundle was accepted");
        assert_eq!(bytes.len(), length + bundle.payload.len() + head.tail_bytes());
    }
}

#[test]
fn every_prefix_of_every_bundle_is_incomplete() {
    for mut generator in seeds(200) {
        let bytes = generator.bundle().to_bytes();
        for cut in 0..bytes.len() {
            let said = Bundle::decode(&mut bytes.slice(..cut));
            assert_eq!(said, Err(DecodeError::Incomplete), "{bytes:x} cut at {cut}");
        }
    }
}

/// A single flipped bit anywhere in a bundle whose blocks all have CRCs is always detected.
#[test]
fn every_flipped_bit_is_noticed() {
    for mut generator in seeds(60) {
        generator.checked = true;
        let bytes = generator.bundle().to_bytes();
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(
                Bundle::from_bytes(&damaged.into(), &DecodePolicy::STORED).is_err(),
                "{bytes:x}, bit {bit}"
            );
        }
    }
}

#[test]
fn random_damage_is_an_error_or_a_bundle_but_never_a_panic() {
    for mut generator in seeds(4000) {
        let mut bytes = generator.bundle().to_bytes().to_vec();
        for _ in 0..=generator.rng.below(8) {
            let at = generator.rng.below(bytes.len() as u64) as usize;
            bytes[at] = generator.rng.next_u64() as u8;
        }
        let bytes = Bytes::from(bytes);
        if let Ok(bundle) = Bundle::from_bytes(&bytes, &DecodePolicy::STORED) {
            assert_eq!(bundle.to_bytes(), bytes);
        }
    }
}

/// A primary block, extension blocks and a payload block without CRCs, in hexadecimal digits.
struct Parts {
    primary: &'static str,
    extensions: &'static str,
    payload: &'static str,
    end: &'static str,
}

/// Destination `ipn:1.2`, source and report-to `ipn:2.1`, created at 40 with sequence number 0, lifetime 1000 s.
const PLAIN: Parts = Parts {
    primary: "88 07 00 00 8202820102 8202820201 8202820201 82182800 1a000f4240",
    extensions: "",
    payload: "85 01 01 00 00 43616263",
    end: "ff",
};

impl Parts {
    fn bytes(&self) -> Bytes {
        hex(&format!("9f {} {} {} {}", self.primary, self.extensions, self.payload, self.end))
    }
}

#[test]
fn the_plain_bundle_of_the_refusals_is_accepted() {
    let bundle = Bundle::from_bytes(&PLAIN.bytes(), &DecodePolicy::STORED).expect("a bundle");
    assert_eq!(bundle.payload, "abc");
    assert_eq!(bundle.head.primary.destination, Eid::ipn(1, 2));
}

fn refused(bytes: &Bytes) -> String {
    match Bundle::from_bytes(
        bytes,
        &DecodePolicy { accept_primary_without_crc: true, ..DecodePolicy::STRICT },
    ) {
        Ok(bundle) => panic!("accepted: {bundle:?}"),
        Err(error) => error.to_string(),
    }
}

/// In each line: a primary block that violates one rule, and the error.
#[test]
fn refused_primary_blocks() {
    const TABLE: &[(&str, &str)] = &[
        (
            "88 06 00 00 8202820102 8202820201 8202820201 82182800 00",
            "the version of a bundle is not valid (RFC 9171 4.3.1)",
        ),
        (
            "88 08 00 00 8202820102 8202820201 8202820201 82182800 00",
            "the version of a bundle is not valid (RFC 9171 4.3.1)",
        ),
        (
            "88 1807 00 00 8202820102 8202820201 8202820201 82182800 00",
            "a CBOR head longer than needed is not valid (RFC 8949 4.2.1)",
        ),
        (
            "88 07 20 00 8202820102 8202820201 8202820201 82182800 00",
            "the bundle processing control flags field is not valid (RFC 9171 4.2.3)",
        ),
        (
            "88 07 00 03 8202820102 8202820201 8202820201 82182800 00",
            "a CRC type is not valid (RFC 9171 4.2.1)",
        ),
        (
            "9f 07 00 00 8202820102 8202820201 8202820201 82182800 00 ff",
            "a block of indefinite length exceeds a limit of this implementation",
        ),
        (
            "a8 07 00 00 8202820102 8202820201 8202820201 82182800 00",
            "a primary block is not valid (RFC 9171 4.1)",
        ),
        // The fragment flag and the number of items.
        (
            "88 07 01 00 8202820102 8202820201 8202820201 82182800 00",
            "the number of items of a primary block, by its fragment flag and CRC type is not valid (RFC 9171 4.3.1)",
        ),
        (
            "8a 07 00 00 8202820102 8202820201 8202820201 82182800 00 00 03",
            "the number of items of a primary block, by its fragment flag and CRC type is not valid (RFC 9171 4.3.1)",
        ),
        (
            "89 07 00 00 8202820102 8202820201 8202820201 82182800 00 420000",
            "the number of items of a primary block, by its fragment flag and CRC type is not valid (RFC 9171 4.3.1)",
        ),
        (
            "88 07 00 01 8202820102 8202820201 8202820201 82182800 00",
            "the number of items of a primary block, by its fragment flag and CRC type is not valid (RFC 9171 4.3.1)",
        ),
        (
            "89 07 00 01 8202820102 8202820201 8202820201 82182800 00 4400000000",
            "a CRC whose length does not match its type is not valid (RFC 9171 4.2.2)",
        ),
        (
            "89 07 00 01 8202820102 8202820201 8202820201 82182800 00 420000",
            "the checksum of the primary block does not match",
        ),
        (
            "89 07 00 02 8202820102 8202820201 8202820201 82182800 00 4400000000",
            "the checksum of the primary block does not match",
        ),
        // Fields.
        (
            "88 07 00 00 00 8202820201 8202820201 82182800 00",
            "an endpoint ID is not valid (RFC 9171 4.2.5.1)",
        ),
        (
            "88 07 00 00 8202820102 8202820201 8202820201 81182800 00",
            "a creation timestamp is not valid (RFC 9171 4.2.7)",
        ),
        (
            "88 07 00 00 8202820102 8202820201 8202820201 822000 00",
            "a DTN time is not valid (RFC 9171 4.2.6)",
        ),
        (
            "88 07 00 00 8202820102 8202820201 8202820201 82182800 20",
            "a lifetime is not valid (RFC 9171 4.3.1)",
        ),
        // Endpoints.
        (
            "88 07 00 00 8202820102 8201672f2f612f7e6762 8202820201 82182800 00",
            "a source that is not a node is not valid (RFC 9171 4.3.1)",
        ),
        (
            "88 07 00 00 8202821affffffff02 8202820201 8202820201 82182800 00",
            "a LocalNode endpoint of another node is not valid (RFC 9758 5.4)",
        ),
        (
            "88 07 00 00 8202820102 8202821affffffff02 8202820201 82182800 00",
            "a LocalNode endpoint of another node is not valid (RFC 9758 5.4)",
        ),
        // Flags that exclude each other.
        (
            "88 07 194002 00 8202820102 8202820201 8202820201 82182800 00",
            "a request for reports on an administrative record is not valid (RFC 9171 4.2.3)",
        ),
        (
            "88 07 1a00020004 00 8202820102 820100 8202820201 82182800 00",
            "a request for reports on an anonymous bundle is not valid (RFC 9171 4.2.3)",
        ),
        (
            "88 07 00 00 8202820102 820100 8202820201 82182800 00",
            "an anonymous bundle that may be fragmented is not valid (RFC 9171 4.2.3)",
        ),
        (
            "8a 07 05 00 8202820102 820100 8202820201 82182800 00 00 18ff",
            "an anonymous fragment is not valid (RFC 9171 4.2.3)",
        ),
        // Fragments.
        (
            "8a 07 01 00 8202820102 8202820201 8202820201 82182800 00 00 02",
            "a fragment beyond the end of its application data unit is not valid (RFC 9171 5.8)",
        ),
        (
            "8a 07 01 00 8202820102 8202820201 8202820201 82182800 00 1bffffffffffffffff 02",
            "a fragment beyond the end of its application data unit is not valid (RFC 9171 5.8)",
        ),
        // Time.
        (
            "88 07 00 00 8202820102 8202820201 8202820201 820000 00",
            "a bundle with neither creation time nor age is not valid (RFC 9171 4.4.2)",
        ),
    ];
    for &(primary, expected) in TABLE {
        assert_eq!(refused(&Parts { primary, ..PLAIN }.bytes()), expected, "{primary}");
    }
}

/// In each line: extension blocks that violate one rule, and the error.
#[test]
fn refused_extension_blocks() {
    const TABLE: &[(&str, &str)] = &[
        ("85 18c8 00 00 00 40", "the block number of another block is not valid (RFC 9171 4.1)"),
        ("85 18c8 01 00 00 40", "the block number of another block is not valid (RFC 9171 4.1)"),
        (
            "85 18c8 05 00 00 40 85 18c9 05 00 00 40",
            "a block number that occurs twice is not valid (RFC 9171 4.1)",
        ),
        ("85 00 02 00 00 40", "the reserved block type is not valid (RFC 9171 9.1)"),
        ("84 18c8 02 00 00", "the number of items of a block, by its CRC type is not valid (RFC 9171 4.3.2)"),
        (
            "86 18c8 02 00 00 40 40",
            "the number of items of a block, by its CRC type is not valid (RFC 9171 4.3.2)",
        ),
        (
            "85 18c8 02 00 01 40",
            "the number of items of a block, by its CRC type is not valid (RFC 9171 4.3.2)",
        ),
        ("86 18c8 02 00 01 40 420000", "the checksum of the extension block does not match"),
        (
            "86 18c8 02 00 02 40 420000",
            "a CRC whose length does not match its type is not valid (RFC 9171 4.2.2)",
        ),
        ("86 18c8 02 00 02 40 4400000000", "the checksum of the extension block does not match"),
        ("85 18c8 02 00 03 40", "a CRC type is not valid (RFC 9171 4.2.1)"),
        ("85 20 02 00 00 40", "a block type is not valid (RFC 9171 4.3.2)"),
        ("85 18c8 20 00 00 40", "a block number is not valid (RFC 9171 4.3.2)"),
        ("85 18c8 02 20 00 40", "the block processing control flags field is not valid (RFC 9171 4.2.4)"),
        ("85 18c8 02 00 00 60", "block-type-specific data is not valid (RFC 9171 4.3.2)"),
        ("85 18c8 02 00 00 5f 40 ff", "block-type-specific data is not valid (RFC 9171 4.3.2)"),
        ("85 18c8 02 00 00 d8 18 40", "block-type-specific data is not valid (RFC 9171 4.3.2)"),
        ("9f 18c8 02 00 00 40 ff", "a block of indefinite length exceeds a limit of this implementation"),
        // A second block of a type that may occur only once.
        (
            "85 06 02 00 00 458202820301 85 06 03 00 00 458202820301",
            "a second previous node block is not valid (RFC 9171 4.4.1)",
        ),
        (
            "85 07 02 00 00 4101 85 07 03 00 00 4101",
            "a second bundle age block is not valid (RFC 9171 4.4.2)",
        ),
        (
            "85 0a 02 00 00 43820500 85 0a 03 00 00 43820500",
            "a second hop count block is not valid (RFC 9171 4.4.3)",
        ),
        // Contents.
        ("85 06 02 00 00 43820100", "a previous node that is not a node is not valid (RFC 9171 4.4.1)"),
        ("85 06 02 00 00 4482028203", "a previous node block is not valid (RFC 9171 4.4.1)"),
        ("85 06 02 00 00 46820282030100", "a previous node block is not valid (RFC 9171 4.4.1)"),
        ("85 07 02 00 00 40", "a bundle age block is not valid (RFC 9171 4.4.2)"),
        ("85 07 02 00 00 420101", "a bundle age block is not valid (RFC 9171 4.4.2)"),
        ("85 07 02 00 00 4120", "a bundle age block is not valid (RFC 9171 4.4.2)"),
        ("85 0a 02 00 00 43820000", "a hop limit is not valid (RFC 9171 4.4.3)"),
        ("85 0a 02 00 00 4582190100 00", "a hop limit is not valid (RFC 9171 4.4.3)"),
        ("85 0a 02 00 00 4483050000", "a hop count block is not valid (RFC 9171 4.4.3)"),
        ("85 0a 02 00 00 428205", "a hop count block is not valid (RFC 9171 4.4.3)"),
    ];
    for &(extensions, expected) in TABLE {
        assert_eq!(refused(&Parts { extensions, ..PLAIN }.bytes()), expected, "{extensions}");
    }
}

/// In each line: a payload block and an end that violate one rule, and the error.
#[test]
fn refused_payloads_and_ends() {
    const NOT_LAST: &str = "data after the payload block is not valid (RFC 9171 4.1)";
    const TABLE: &[(&str, &str, &str)] = &[
        ("", "ff", "a bundle without a payload block at its end is not valid (RFC 9171 4.1)"),
        (
            "85 18c8 02 00 00 40",
            "ff",
            "a bundle without a payload block at its end is not valid (RFC 9171 4.1)",
        ),
        ("85 01 02 00 00 43616263", "ff", "the number of a payload block is not valid (RFC 9171 4.1)"),
        ("85 01 00 00 00 43616263", "ff", "the number of a payload block is not valid (RFC 9171 4.1)"),
        (
            "85 01 01 00 00 63616263",
            "ff",
            "a payload that is not a byte string of definite length is not valid (RFC 9171 4.3.2)",
        ),
        (
            "85 01 01 00 00 5f 43616263 ff",
            "ff",
            "a payload that is not a byte string of definite length is not valid (RFC 9171 4.3.2)",
        ),
        ("85 01 01 00 00 43616263 85 18c8 02 00 00 40", "ff", NOT_LAST),
        ("85 01 01 00 00 43616263 85 01 01 00 00 43616263", "ff", NOT_LAST),
        ("86 01 01 00 01 43616263 420000", "ff", "the checksum of the payload block does not match"),
        ("86 01 01 00 02 43616263 4400000000", "ff", "the checksum of the payload block does not match"),
        (
            "86 01 01 00 02 43616263 420000",
            "ff",
            "a CRC whose length does not match its type is not valid (RFC 9171 4.2.2)",
        ),
        ("85 01 01 00 00 43616263", "ff 00", "data after the end of a bundle is not valid (RFC 9171 4.1)"),
    ];
    for &(payload, end, expected) in TABLE {
        assert_eq!(refused(&Parts { payload, end, ..PLAIN }.bytes()), expected, "{payload} {end}");
    }
    let empty_fragment = Parts {
        primary: "8a 07 01 00 8202820102 8202820201 8202820201 82182800 00 00 18ff",
        payload: "85 01 01 00 00 40",
        ..PLAIN
    };
    assert_eq!(refused(&empty_fragment.bytes()), "a fragment without payload is not valid (RFC 9171 5.8)");
    let definite = hex(&format!("82 {} {}", PLAIN.primary, PLAIN.payload));
    assert_eq!(refused(&definite), "a bundle in an array of definite length is not valid (RFC 9171 4.1)");
}

#[test]
fn blocks_ask_for_no_reports_where_nobody_may() {
    let administrative = Parts {
        primary: "88 07 02 00 8202820102 8202820201 8202820201 82182800 00",
        extensions: "85 18c8 02 02 00 40",
        ..PLAIN
    };
    let expected = "a block's request for reports on an administrative record or an anonymous bundle is not valid (RFC 9171 4.2.4)";
    assert_eq!(refused(&administrative.bytes()), expected);
    let anonymous = Parts {
        primary: "88 07 04 00 8202820102 820100 8202820201 82182800 00",
        payload: "85 01 01 02 00 43616263",
        ..PLAIN
    };
    assert_eq!(refused(&anonymous.bytes()), expected);
}

#[test]
fn what_looks_odd_and_is_legal() {
    let strict_but_crc = DecodePolicy { accept_primary_without_crc: true, ..DecodePolicy::STRICT };
    let accepted = |parts: Parts| {
        let bytes = parts.bytes();
        let bundle = Bundle::from_bytes(&bytes, &strict_but_crc).expect("it is legal");
        assert_eq!(bundle.to_bytes(), bytes);
        bundle
    };
    // Unknown flags, reserved ones, and "must not be fragmented" on a fragment.
    let primary = "8a 07 1b8000000000300085 00 8202820102 8202820201 8202820201 82182800 00 00 18ff";
    let bundle = accepted(Parts { primary, ..PLAIN });
    assert_eq!(bundle.head.primary.fragment, Some(Fragment { offset: 0, total_length: 255 }));
    assert!(bundle.head.primary.flags.contains(BundleFlags::MUST_NOT_FRAGMENT));
    // The null endpoint as a destination, in an unusual form, and as the report-to endpoint.
    let primary = "88 07 00 00 8202820007 8202820201 820100 82182800 00";
    assert!(accepted(Parts { primary, ..PLAIN }).head.primary.destination.is_null());
    // Block type 193 with the contents of another implementation.
    let bundle = accepted(Parts { extensions: "85 18c1 02 00 00 4105", ..PLAIN });
    assert_eq!(bundle.head.priority(), crate::service::Priority::Normal);
    // An empty payload.
    assert!(accepted(Parts { payload: "85 01 01 00 00 40", ..PLAIN }).payload.is_empty());
}

/// Format of ION's quality-of-service block: flags, class of service, ordinal, data label.
#[test]
fn priority_travels_in_ions_block() {
    use crate::service::Priority;
    for (data, priority) in [
        ("8400000000", Priority::Bulk),
        ("8400010000", Priority::Normal),
        ("840002187f00", Priority::Expedited),
    ] {
        let content = Content::decode(BlockType::QualityOfService, &hex(data)).expect("block data");
        let Some(Content::QualityOfService(quality)) = content else { panic!("not understood: {data}") };
        assert_eq!(quality.priority(), priority);
        assert_eq!(Content::QualityOfService(quality).encode(), hex(data));
    }
    assert_eq!(Content::QualityOfService(Priority::Expedited.into()).encode(), hex("8400020000"));
}

/// The block as docs/routing.md specifies it, alone and inside a bundle.
#[test]
fn the_block_of_copies_is_these_bytes() {
    let mut bundle = Bundle::new(
        Head::new(
            PrimaryBlock::new(
                Eid::ipn(2, 1),
                Eid::ipn(1, 1),
                CreationTimestamp { time: DtnTime(800_000_000_000), sequence: 1 },
                3_600_000,
            ),
            0,
        ),
        Bytes::from_static(b"hi"),
    );
    bundle.head.primary.crc = CrcType::None;
    bundle.head.payload.crc = CrcType::None;
    bundle.head.set(&Content::Copies(4));
    bundle.head.blocks.iter_mut().for_each(|block| block.crc = CrcType::None);
    let block = "85 18c2 02 01 00 41 04";
    let primary = "88 07 00 00 8202820201 8202820101 8202820101 821b000000ba43b7400001 1a0036ee80";
    let whole = hex(&format!("9f {primary} {block} 85 01 01 00 00 426869 ff"));
    assert_eq!(bundle.to_bytes(), whole);
    let read = Bundle::from_bytes(&whole, &DecodePolicy::STORED).expect("a bundle");
    assert_eq!((read.head.copies(), &read), (Some(4), &bundle));
}

/// Format of ION's spray-and-wait block: one number.
#[test]
fn copies_are_counted_in_ions_block() {
    for (data, copies) in [("01", 1), ("04", 4), ("187f", 127)] {
        assert_eq!(Content::decode(BlockType::Copies, &hex(data)), Ok(Some(Content::Copies(copies))));
        assert_eq!(Content::Copies(copies).encode(), hex(data));
    }
    for other in ["", "20", "0101", "1801", "8101", "4101"] {
        assert_eq!(Content::decode(BlockType::Copies, &hex(other)), Ok(None), "{other} is somebody else's");
    }
    assert_eq!((BlockType::Copies.number(), BlockType::from_number(194)), (194, BlockType::Copies));
}

/// RFC 9172 3.8: a block that is the target of a block confidentiality block holds ciphertext.
#[test]
fn encrypted_blocks_are_not_parsed() {
    let extensions = "85 0c 02 01 00 458103010000 85 07 03 00 00 43aabbcc";
    let bytes = Parts { extensions, ..PLAIN }.bytes();
    let bundle = Bundle::from_bytes(&bytes, &DecodePolicy::STORED).expect("the age is encrypted");
    assert_eq!(bundle.head.age_ms(), None);
    assert!(bundle.head.is_encrypted(3) && !bundle.head.is_encrypted(1));
    let other_target = "85 0c 02 01 00 458101010000 85 07 03 00 00 43aabbcc";
    let refusal = refused(&Parts { extensions: other_target, ..PLAIN }.bytes());
    assert_eq!(refusal, "a bundle age block is not valid (RFC 9171 4.4.2)");
}

#[test]
fn limits_are_kept() {
    let said = |bytes: &Bytes, policy| Bundle::from_bytes(bytes, policy).map(|_| ());
    let bundle = sample();
    let bytes = bundle.to_bytes();
    let few = DecodePolicy { extension_blocks_max: 1, ..DecodePolicy::STRICT };
    assert_eq!(said(&bytes, &few), Err(DecodeError::Limit { what: "the number of a bundle's blocks" }));
    let head = bundle.head.to_bytes().len() as u32;
    let exact = DecodePolicy { head_bytes_max: head, ..DecodePolicy::STRICT };
    assert_eq!(said(&bytes, &exact), Ok(()));
    let short = DecodePolicy { head_bytes_max: head - 1, ..DecodePolicy::STRICT };
    let limit = Err(DecodeError::Limit { what: "a bundle's header" });
    assert_eq!(said(&bytes, &short), limit);
    // A header without end is not waited for.
    let endless = hex(&format!("9f {} 85 18c8 02 00 00 5affffffff", PLAIN.primary));
    let mut bytes = endless.to_vec();
    bytes.resize(DecodePolicy::STRICT.head_bytes_max as usize, 0);
    assert_eq!(said(&endless, &DecodePolicy::STRICT), Err(DecodeError::Incomplete));
    assert_eq!(said(&bytes.into(), &DecodePolicy::STRICT), limit);
}

#[test]
fn fragments_of_fragments_carry_what_they_must() {
    let mut bundle = sample();
    let unknown = |number, flags| Block {
        block_type: BlockType::Unknown(200),
        number,
        flags,
        crc: CrcType::None,
        data: Bytes::new(),
    };
    bundle.head.blocks.push(unknown(20, BlockFlags::REPLICATE));
    bundle.head.blocks.push(unknown(21, BlockFlags::NONE));
    let numbers = |head: &Head| head.blocks.iter().map(|block| block.number).collect::<Vec<_>>();

    let second = bundle.head.fragment(4, 7);
    assert_eq!(second.primary.fragment, Some(Fragment { offset: 4, total_length: 11 }));
    assert_eq!(numbers(&second), [2, 3, 20]);
    let first = bundle.head.fragment(0, 4);
    assert_eq!(numbers(&first), [2, 3, 20, 21]);
    let third = second.fragment(3, 4);
    assert_eq!(third.primary.fragment, Some(Fragment { offset: 7, total_length: 11 }));
    assert_eq!(numbers(&first.fragment(1, 3)), [2, 3, 20]);
    assert_eq!(third.id().fragment, Some((7, 4)));

    let mut whole = BytesMut::new();
    for (head, range) in [(first, 0..4), (second.fragment(0, 3), 4..7), (third, 7..11)] {
        let fragment = Bundle { head, payload: bundle.payload.slice(range) };
        let decoded =
            Bundle::from_bytes(&fragment.to_bytes(), &DecodePolicy::STRICT).expect("a legal fragment");
        whole.extend_from_slice(&decoded.payload);
        assert_eq!(decoded, fragment);
    }
    assert_eq!(whole, bundle.payload);
}

#[test]
fn contents_are_set_replaced_and_removed() {
    let mut head = sample().head;
    assert_eq!(head.hop_count(), Some(HopCount { limit: 30, count: 0 }));
    head.set(&Content::HopCount(HopCount { limit: 30, count: 1 }));
    assert_eq!(head.hop_count(), Some(HopCount { limit: 30, count: 1 }));
    assert_eq!((head.blocks.len(), head.priority()), (2, crate::service::Priority::Expedited));
    head.set(&Content::PreviousNode(Eid::ipn(9, 0)));
    assert_eq!((head.previous_node(), head.blocks[2].number), (Some(Eid::ipn(9, 0)), 4));
    head.remove(BlockType::HopCount);
    assert_eq!((head.hop_count(), head.free_number()), (None, 2));
    head.set(&Content::BundleAge(12));
    assert_eq!((head.age_ms(), head.check(&DecodePolicy::STRICT)), (Some(12), Ok(())));
}

mod admin_records {
    use super::super::admin::*;
    use super::*;

    #[test]
    fn a_status_report_byte_for_byte() {
        let report = AdminRecord::StatusReport(StatusReport {
            received: StatusItem::AssertedAt(DtnTime(700)),
            forwarded: StatusItem::NotAsserted,
            delivered: StatusItem::Asserted,
            deleted: StatusItem::NotAsserted,
            further: Vec::new(),
            reason: ReasonCode::NoTimelyContact,
            source: Eid::ipn(2, 1),
            timestamp: CreationTimestamp { time: DtnTime(40), sequence: 5 },
            fragment: Some((100, 24)),
        });
        let bytes = hex("82 01 86 84 82f51902bc 81f4 81f5 81f4 07 8202820201 82182805 1864 1818");
        assert_eq!(report.to_bytes(), bytes);
        assert_eq!(AdminRecord::from_bytes(&bytes), Ok(report));
    }

    #[test]
    fn every_record_survives_the_wire_and_no_prefix_is_one() {
        for mut generator in seeds(500) {
            let record = generator.admin_record();
            let bytes = record.to_bytes();
            assert_eq!(AdminRecord::from_bytes(&bytes), Ok(record));
            for cut in 0..bytes.len() {
                assert_eq!(AdminRecord::from_bytes(&bytes.slice(..cut)), Err(DecodeError::Incomplete));
            }
        }
    }

    #[test]
    fn refused_records() {
        const TABLE: &[(&str, &str)] = &[
            ("81 01", "an administrative record is not valid (RFC 9171 6.1)"),
            ("9f 01 00 ff", "an administrative record is not valid (RFC 9171 6.1)"),
            ("82 20 00", "the type of an administrative record is not valid (RFC 9171 6.1)"),
            ("82 18c8 00 00", "data after an administrative record is not valid (RFC 9171 6.1)"),
            (
                "82 01 85 8481f481f481f481f4 00 820100 820000 00",
                "a status report is not valid (RFC 9171 6.1.1)",
            ),
            (
                "82 01 84 8381f481f481f4 00 820100 820000",
                "bundle status information is not valid (RFC 9171 6.1.1)",
            ),
            ("82 01 84 9821", "the number of status items exceeds a limit of this implementation"),
            (
                "82 01 84 84 82f400 81f4 81f4 81f4 00 820100 820000",
                "a status item is not valid (RFC 9171 6.1.1)",
            ),
            (
                "82 01 84 84 8101 81f4 81f4 81f4 00 820100 820000",
                "a status item is not valid (RFC 9171 6.1.1)",
            ),
            (
                "82 01 84 84 81f4 81f4 81f4 81f4 20 820100 820000",
                "a reason code is not valid (RFC 9171 6.1.1)",
            ),
        ];
        for &(bytes, expected) in TABLE {
            let said = AdminRecord::from_bytes(&hex(bytes)).expect_err(bytes).to_string();
            assert_eq!(said, expected, "{bytes}");
        }
    }

    #[test]
    fn reasons_have_their_numbers() {
        assert_eq!(
            (0..20).map(|n| ReasonCode::from_number(n).number()).collect::<Vec<_>>(),
            (0..20).collect::<Vec<_>>()
        );
        assert_eq!(ReasonCode::from_number(11), ReasonCode::BlockUnsupported);
        assert_eq!(ReasonCode::from_number(17), ReasonCode::Unknown(17));
    }
}
