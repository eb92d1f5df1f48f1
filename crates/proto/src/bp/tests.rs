//! Tests of the bundle codec as a whole.

use super::*;
use crate::codec::DecodeError;
use bytes::{Bytes, BytesMut};

/// Bytes from hexadecimal digits; spaces do not count.
pub(super) fn hex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(core::str::from_utf8(pair).expect("ASCII"), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("two digits")).collect::<Vec<u8>>().into()
}

fn sample() -> Bundle {
    let earth = "dtn://earth/inbox".parse().expect("an endpoint id");
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
    assert_eq!(Bundle::from_bytes(&bytes, &Policy::STRICT), Ok(bundle));
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
    crc.encode_tail(&mut out);
    assert_eq!(out.freeze(), bundle.to_bytes());
}

/// The named byte strings of a file in `vectors/`.
pub(super) fn vectors(text: &'static str) -> impl Iterator<Item = (&'static str, Bytes)> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').expect("a name and bytes")).map(|(name, bytes)| (name, hex(bytes)))
}

const RFC_9173: &str = include_str!("../../../../vectors/bp/rfc9173.txt");

/// What a receiver says about each of RFC 9173's examples: by the strict policy, and by one that wants no CRC.
#[test]
fn examples_of_rfc_9173() {
    const NO_AGE: &str = "a bundle with neither creation time nor age";
    const NO_CRC: &str = "a primary block without a CRC";
    let lenient = Policy { accept_primary_without_crc: true, ..Policy::STRICT };
    let said = |bytes: &Bytes, policy| match Bundle::from_bytes(bytes, policy) {
        Ok(_) => "accepted",
        Err(DecodeError::Invalid { what, .. }) => what,
        Err(error) => panic!("{error}"),
    };
    let table: Vec<_> = vectors(RFC_9173)
        .map(|(name, bytes)| (name, said(&bytes, &Policy::STRICT), said(&bytes, &lenient)))
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
        let head = wire::read_head(&mut rest, &Policy::STRICT).expect(name);
        let payload = rest.split_to(head.payload.length as usize);
        assert_eq!(Bundle { head, payload }.to_bytes(), bytes, "{name}");
    }
}
