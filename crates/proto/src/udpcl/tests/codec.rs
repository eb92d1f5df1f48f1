//! Packets, byte by byte.

use crate::codec::{DecodeError, encoded};
use crate::rng::Rng;
use crate::udpcl::wire::{
    ExtensionMap, KEEPALIVE, Message, Messages, Place, Transfer, segment_bytes, single_packet_bytes,
};
use bytes::Bytes;

fn messages(packet: &[u8]) -> Vec<Result<Message, DecodeError>> {
    Messages::new(Bytes::copy_from_slice(packet)).collect()
}

fn transfer(id: u64, place: Option<(u64, u64)>, data: &'static [u8]) -> Transfer {
    let place = place.map(|(total_bytes, offset)| Place { total_bytes, offset });
    Transfer { id, place, data: Bytes::from_static(data) }
}

fn map_of(transfer: Transfer) -> Message {
    Message::Extensions(ExtensionMap { transfer: Some(transfer), ..Default::default() })
}

fn skipped(skipped: u64) -> Message {
    Message::Extensions(ExtensionMap { skipped, ..Default::default() })
}

fn malformed() -> Message {
    Message::Extensions(ExtensionMap { has_malformed_transfer: true, ..Default::default() })
}

/// Draft 3.5.2: a map of one entry, whose key is 2 and whose value an array of two or four items.
#[test]
fn transfers_are_maps_with_an_array_of_two_or_four_items() {
    let single = transfer(0, None, b"\x9f\xff");
    let segment = transfer(24, Some((1_000, 300)), b"abc");
    let long = transfer(u32::MAX.into(), Some((1 << 16, 255)), &[0; 24]);
    let cases: [(_, &[u8]); 3] = [
        (single, b"\xa1\x02\x82\x00\x42\x9f\xff"),
        (segment, b"\xa1\x02\x84\x18\x18\x19\x03\xe8\x19\x01\x2c\x43abc"),
        (
            long,
            &[&b"\xa1\x02\x84\x1a\xff\xff\xff\xff\x1a\x00\x01\x00\x00\x18\xff\x58\x18"[..], &[0; 24]]
                .concat(),
        ),
    ];
    for (transfer, packet) in cases {
        assert_eq!(transfer.to_packet(), packet);
        assert_eq!(messages(packet), [Ok(map_of(transfer))]);
    }
}

/// Draft, table 1.
#[test]
fn the_first_octet_tells_the_type_of_a_message() {
    for octet in 0..=0xff_u8 {
        // The rest of an extension map is two empty items.
        let packet = [octet, 0x02, 0x00];
        let bytes = Bytes::copy_from_slice(&packet);
        let expected = match octet {
            0x00 => Some(Message::Padding(3)),
            0x06 | 0x80..=0x9f => Some(Message::Bundle(bytes)),
            0x14..=0x1a | 0x20..=0x3f => Some(Message::Dtls(bytes)),
            0xa0..=0xbf => continue,
            _ => None,
        };
        let unsupported =
            DecodeError::Unsupported { what: "the type of a message", clause: "draft-ietf-dtn-udpcl 3.4" };
        assert_eq!(messages(&packet), [expected.ok_or(unsupported)], "{octet:#04x}");
    }
    assert_eq!(messages(&KEEPALIVE), [Ok(Message::Padding(4))]);
    assert_eq!(messages(b""), []);
}

#[test]
fn maps_follow_each_other_up_to_padding_and_other_messages_stand_alone() {
    let (first, second) = (transfer(1, None, b"\x06a"), transfer(2, Some((9, 4)), b"b"));
    let maps = [&first.to_packet()[..], &second.to_packet()].concat();
    let with = |end: &[u8]| messages(&[&maps[..], end].concat());
    let [first, second] = [first, second].map(|transfer| Ok(map_of(transfer)));
    assert_eq!(with(b""), [first.clone(), second.clone()]);
    // All padding is ignored, octets other than zero in it, too.
    assert_eq!(with(b"\0\xa1\x06"), [first.clone(), second.clone(), Ok(Message::Padding(3))]);
    let alone = DecodeError::invalid("a message after an extension map", "draft-ietf-dtn-udpcl 3.4");
    for other in [&b"\x9f\xff"[..], b"\x06", b"\x16\xfe\xfd"] {
        assert_eq!(with(other), [first.clone(), second.clone(), Err(alone)]);
    }
}

#[test]
fn items_of_other_types_are_skipped_whatever_they_contain() {
    // The ranges of the draft's sections 3.5.1 and 3.5.7, a node ID, the start of DTLS, and counts of ECN.
    for known in [
        &b"\xa1\x01\x82\x01\x07"[..],
        b"\xa1\x07\x82\x18\x7b\x86\x02\x00\x00\x00\x00\x02",
        b"\xa1\x04\x68ipn:12.0",
        b"\xa1\x05\xf6",
        b"\xa1\x08\x83\x01\x02\x03",
    ] {
        assert_eq!(messages(known), [Ok(skipped(1))], "{known:x?}");
    }
    let around = b"\xa4\x20\xc1\xfb\x3f\xf0\x00\x00\x00\x00\x00\x00\x39\x7f\xff\xbf\x61a\x5f\x41b\xff\xff\
        \x02\x82\x05\x42\x9f\xff\x19\x7f\xff\x84\x01\xf4\x60\xa0";
    let expected = ExtensionMap {
        transfer: Some(transfer(5, None, b"\x9f\xff")),
        skipped: 3,
        has_malformed_transfer: false,
    };
    assert_eq!(messages(around), [Ok(Message::Extensions(expected))]);
    assert_eq!(messages(b"\xa0\xbf\xff"), [Ok(skipped(0)), Ok(skipped(0))]);
}

/// The draft requires neither the shortest form nor definite lengths.
#[test]
fn any_form_of_cbor_is_read() {
    let expected = [Ok(map_of(transfer(3, Some((5, 1)), b"abc")))];
    for packet in [
        &b"\xa1\x02\x84\x03\x05\x01\x43abc"[..],
        b"\xbf\x02\x9f\x03\x05\x01\x5f\x42ab\x40\x41c\xff\xff\xff",
        b"\xb8\x01\x18\x02\x9a\0\0\0\x04\x1b\0\0\0\0\0\0\0\x03\x19\0\x05\x18\x01\x5a\0\0\0\x03abc",
    ] {
        assert_eq!(messages(packet), expected, "{packet:x?}");
    }
}

#[test]
fn transfers_of_other_types_are_discarded_and_what_follows_is_read() {
    let after = b"\xa1\x02\x82\x07\x41\x06";
    for item in [
        &b"\x01"[..],
        b"\xf6",
        b"\x80",
        b"\x81\x01",
        b"\x81\x41a",
        b"\x82\x01\x02",
        b"\x82\x01\x61a",
        b"\x82\x20\x41a",
        b"\x82\x41a\x01",
        b"\x83\x01\x02\x41a",
        b"\x83\x01\x41a\x02",
        b"\x84\x01\x02\x03\x04",
        b"\x84\x01\x02\x41a\x03",
        b"\x84\x01\x02\xc1\x03\x41a",
        b"\x85\x01\x02\x03\x04\x41a",
        b"\x85\x01\x02\x03\x41a\x41b",
        b"\xc1\x82\x01\x41a",
        b"\x82\x01\x5f\x61a\xff",
    ] {
        let packet = [b"\xa1\x02", item, after].concat();
        assert_eq!(messages(&packet), [Ok(malformed()), Ok(map_of(transfer(7, None, b"\x06")))], "{item:x?}");
    }
}

#[test]
fn a_map_that_is_not_well_formed_ends_the_packet() {
    let after = b"\xa1\x02\x82\x07\x41\x06";
    for (map, why) in [
        (&b"\xa1\x02\x82\x01\x5b\xff\xff\xff\xff\xff\xff\xff\xff"[..], "an announced length"),
        (b"\xa1\x03\x9b\xff\xff\xff\xff\xff\xff\xff\xff", "an announced number of items"),
        (b"\xa1\x03\xbb\xff\xff\xff\xff\xff\xff\xff\xff", "an announced number of entries"),
        (b"\xbb\xff\xff\xff\xff\xff\xff\xff\xff\x03\x01", "an announced number of extensions"),
        (b"\xa1\x61a\x01", "a key that is a text"),
        (b"\xa1\x19\x80\x00\x01", "a key of more than 16 bits"),
        (b"\xa1\x39\x80\x00\x01", "a negative key of more than 16 bits"),
        (b"\xa1\xc1\x02\x82\x01\x41a", "a key with a tag"),
        (b"\xa2\x02\x82\x01\x41a\x02\x82\x01\x41a", "two transfers"),
        (b"\xa2\x02\x01\x02\x82\x01\x41a", "two transfers, of which the first is not valid"),
        (b"\xa1\x03\x1c", "a head that is reserved"),
        (b"\xa1\x03\xff", "a break in the place of an item"),
        (b"\xbf\x03\xff", "a key without an item"),
        (b"\xb0", "nothing after the head"),
    ] {
        let all = messages(&[map, after].concat());
        assert!(matches!(all[..], [Err(_)]), "{why}: {all:?}");
    }
    // Nesting is bounded: nothing here is deeper than a small multiple of what a bundle has.
    let nested = |depth: usize| [&b"\xa1\x03"[..], &vec![0x81; depth], b"\x00"].concat();
    assert_eq!(messages(&nested(15)), [Ok(skipped(1))]);
    for depth in [16, 60_000] {
        assert_eq!(messages(&nested(depth)), [Err(DecodeError::Limit { what: "CBOR nesting" })]);
    }
}

#[test]
fn every_prefix_of_a_map_is_incomplete() {
    let packet = transfer(1_000, Some((70_000, 60_000)), b"abc").to_packet();
    for cut in 1..packet.len() {
        assert_eq!(messages(&packet[..cut]), [Err(DecodeError::Incomplete)], "cut at {cut}");
    }
}

#[test]
fn packets_of_any_numbers_are_read_as_they_were_written_and_as_long_as_computed() {
    for seed in 0..2_000 {
        let mut rng = Rng::new(seed);
        let id = u64::from(rng.next_u32()) >> rng.below(32);
        let total = 1 + (u64::from(rng.next_u32()) >> rng.below(32));
        let packet_bytes_max = 64 + rng.below(65_507 - 63);
        let bytes = segment_bytes(id, total, packet_bytes_max).min(total);
        let offset = rng.below(total - bytes + 1);
        let data: Bytes = vec![7; bytes as usize].into();
        let place = Some(Place { total_bytes: total, offset });
        let segment = Transfer { id, place, data: data.clone() };
        let single = Transfer { id, place: None, data };
        assert!(segment.to_packet().len() as u64 <= packet_bytes_max, "seed {seed}");
        assert_eq!(single.to_packet().len() as u64, single_packet_bytes(id, bytes), "seed {seed}");
        for transfer in [segment, single] {
            let packet = transfer.to_packet();
            let message = map_of(transfer);
            assert_eq!(encoded(packet.len(), |out| message.encode(out)), packet, "seed {seed}");
            assert_eq!(messages(&packet), [Ok(message)], "seed {seed}");
        }
    }
}
