//! Packets on the wire: vectors for each type, made by hand from draft-wood-tsvwg-saratoga-22 4 and 5, and what must be
//! refused.

use crate::codec::DecodeError;
use crate::rng::Rng;
use crate::saratoga::fuzz;
use crate::saratoga::wire::{
    Abilities, Ability, Beacon, Checksum, Data, EPOCH_UNIX, Entry, EntryKind, Kind, Metadata, Outcome,
    PATH_BYTES_MAX, Packet, Request, RequestKind, Status, Width, data_header_bytes, status_header_bytes,
};
use bytes::{Bytes, BytesMut};

const STAMP: [u8; 16] = *b"0123456789abcdef";

fn abilities() -> Abilities {
    Abilities {
        width_max: Width::Bits64,
        streams: false,
        send: Ability::Willing,
        receive: Ability::Unwilling,
        udp_lite: true,
    }
}

fn entry() -> Entry {
    Entry { udp_lite: true, ..Entry::file("a/é".to_owned(), 70_000, 0x1122_3344, 0x5566_7788) }
}

fn metadata(checksum: Checksum) -> Metadata {
    let (width, kind) = (Width::Bits32, Kind::File);
    Metadata { session: 7, width, kind, ended: false, udp_lite: true, checksum, entry: entry() }
}

fn data() -> Data {
    Data {
        session: 0x0102_0304,
        width: Width::Bits16,
        kind: Kind::File,
        stamp: None,
        wants_status: true,
        is_end: true,
        offset: 0x1234,
        payload: Bytes::from_static(b"xyz"),
    }
}

fn status() -> Status {
    Status { width: Width::Bits32, ..Status::with_outcome(7, Outcome::Success) }
}

/// All vectors: name, packet, bytes. The first octet is version 1 in three bits and the type in five.
fn vectors() -> Vec<(&'static str, Packet, &'static [u8])> {
    let with_entry = b"\x22\x44\x00\x00\x00\x00\x00\x07\x80\x44\x00\x01\x11\x70\x11\x22\x33\x44\x55\x66\x77\x88a/\xc3\xa9\0";
    let wide = Data {
        width: Width::Bits128,
        kind: Kind::Stream,
        stamp: Some(STAMP),
        wants_status: false,
        is_end: false,
        offset: 1 << 64,
        ..data()
    };
    let holes = Status {
        stamp: Some(STAMP),
        lacks_metadata: true,
        incomplete: true,
        progress: 5,
        in_response_to: 0x0102_0304,
        holes: vec![(5, 5), (256, 300)],
        ..status()
    };
    let done = Status { voluntary: true, progress: 9, in_response_to: 9, width: Width::Bits16, ..status() };
    vec![
        (
            // Descriptors up to 64 bits, send willing (11), receive unwilling (10), UDP-Lite.
            "beacon",
            Beacon { abilities: abilities(), free_kib: None, eid: "dtn://a/".to_owned() }.into(),
            b"\x20\x8e\x80\x00dtn://a/",
        ),
        (
            "beacon with free space",
            Beacon {
                abilities: Abilities { streams: true, ..abilities() },
                free_kib: Some((Width::Bits32, 0x0102_0304)),
                eid: String::new(),
            }
            .into(),
            b"\x20\x9e\xd0\x00\x01\x02\x03\x04",
        ),
        (
            "get",
            Request {
                abilities: abilities(),
                kind: RequestKind::Get,
                session: 0x0a0b_0c0d,
                path: "f".to_owned(),
                auth: Bytes::from_static(b"key"),
            }
            .into(),
            b"\x21\x8e\x80\x01\x0a\x0b\x0c\x0df\0key",
        ),
        ("metadata", metadata(Checksum::None).into(), with_entry),
        (
            "metadata with CRC-32C",
            metadata(Checksum::Crc32c(0xe306_9283)).into(),
            b"\x22\x44\x00\x11\x00\x00\x00\x07\xe3\x06\x92\x83\x80\x44\x00\x01\x11\x70\x11\x22\x33\x44\x55\x66\x77\x88a/\xc3\xa9\0",
        ),
        (
            "metadata of a list that has ended",
            Metadata {
                kind: Kind::Directory,
                ended: true,
                udp_lite: false,
                width: Width::Bits16,
                entry: Entry {
                    kind: EntryKind::Directory,
                    ..Entry::file(String::new(), 0, 1, 2)
                },
                ..metadata(Checksum::Md5(STAMP))
            }
            .into(),
            b"\x22\x18\x00\x42\x00\x00\x00\x070123456789abcdef\x81\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x02\0",
        ),
        ("data", data().into(), b"\x23\x01\x80\x00\x01\x02\x03\x04\x12\x34xyz"),
        (
            "data of a stream with a stamp",
            wide.into(),
            b"\x23\xf8\x00\x00\x01\x02\x03\x040123456789abcdef\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0xyz",
        ),
        (
            "status with holes",
            holes.into(),
            b"\x24\x4e\x00\x00\0\0\0\x070123456789abcdef\0\0\0\x05\x01\x02\x03\x04\0\0\0\x05\0\0\0\x05\0\0\x01\0\0\0\x01\x2c",
        ),
        ("completed status", done.into(), b"\x24\x01\x00\x00\0\0\0\x07\0\x09\0\x09"),
        (
            "failure",
            Status::with_outcome(7, Outcome::MetadataRequired).into(),
            b"\x24\x00\x00\x10\0\0\0\x07\0\0\0\0",
        ),
    ]
}

fn decode(bytes: &[u8]) -> Result<Packet, DecodeError> {
    let mut input = Bytes::copy_from_slice(bytes);
    let packet = Packet::decode(&mut input)?;
    assert!(input.is_empty(), "{} bytes are left", input.len());
    Ok(packet)
}

#[test]
fn every_packet_type_has_its_bytes() {
    for (name, packet, bytes) in vectors() {
        assert_eq!(packet.to_bytes(), bytes, "{name}");
        assert_eq!(decode(bytes), Ok(packet), "{name}");
    }
}

#[test]
fn legal_packets_survive_the_wire() {
    for seed in 0..3_000 {
        let packet = fuzz::packet(&mut Rng::new(seed));
        assert_eq!(decode(&packet.to_bytes()), Ok(packet), "seed {seed}");
    }
}

#[test]
fn packets_that_end_too_early_are_refused() {
    // Minimum of a packet: payload, holes and ID may be absent.
    for (name, packet, bytes) in vectors() {
        let least = match &packet {
            Packet::Beacon(beacon) => bytes.len() - beacon.eid.len(),
            Packet::Request(request) => bytes.len() - request.auth.len(),
            Packet::Metadata(_) => bytes.len(),
            Packet::Data(data) => bytes.len() - data.payload.len(),
            Packet::Status(status) => status_header_bytes(status.width, status.stamp.is_some()),
        };
        for end in 0..least {
            assert_eq!(decode(&bytes[..end]), Err(DecodeError::Incomplete), "{name} of {end} bytes");
        }
        assert!(decode(&bytes[..least]).is_ok(), "{name}");
    }
}

#[test]
fn descriptors_are_the_smallest_that_hold_the_length() {
    let edges = [(0xffff, 2), (0x1_0000, 4), (u128::from(u32::MAX), 4), (1 << 32, 8)];
    let long = [(u128::from(u64::MAX), 8), (1 << 64, 16), (u128::MAX, 16), (0, 2)];
    for (length, bytes) in edges.into_iter().chain(long) {
        assert_eq!(Width::of(length).bytes(), bytes, "{length}");
    }
    for width in [Width::Bits16, Width::Bits32, Width::Bits64, Width::Bits128] {
        let plain = Data { width, payload: Bytes::new(), ..data() };
        let stamped = Data { stamp: Some(STAMP), ..plain.clone() };
        let status = Status { width, ..status() };
        let lengths =
            [Packet::from(plain), stamped.into(), status.clone().into()].map(|it| it.to_bytes().len());
        let expected = [
            data_header_bytes(width, false),
            data_header_bytes(width, true),
            status_header_bytes(width, false),
        ];
        assert_eq!(lengths, expected);
        let stamped = Packet::from(Status { stamp: Some(STAMP), ..status });
        assert_eq!(stamped.to_bytes().len(), status_header_bytes(width, true));
    }
}

#[test]
fn invalid_fields_are_refused() {
    let fault = |what, clause| Err(DecodeError::invalid(what, clause));
    let unsupported = |what| Err(DecodeError::Unsupported { what, clause: "draft-wood-tsvwg-saratoga-22 4" });
    for (bytes, expected) in [
        (&b"\x43\x01\x80\x00\x01\x02\x03\x04\x12\x34"[..], unsupported("the version")),
        (b"\x25\x01\x80\x00\x01\x02\x03\x04\x12\x34", unsupported("the packet type")),
        (b"\x20\x04\x00\x00", fault("an ability", "draft-wood-tsvwg-saratoga-22 4.1")),
        (b"\x20\x01\x00\x00", fault("an ability", "draft-wood-tsvwg-saratoga-22 4.1")),
        (b"\x20\x00\x00\x00\xff", fault("an endpoint ID", "draft-wood-tsvwg-saratoga-22 4.1")),
        (b"\x21\x00\x00\x00\0\0\0\x01\xff\0", fault("a path", "draft-wood-tsvwg-saratoga-22 5")),
        (
            b"\x23\x20\x00\x00\0\0\0\x01\0\0",
            fault("the kind of a transfer", "draft-wood-tsvwg-saratoga-22 4.3"),
        ),
        // CRC-32C of two words, none of one word, a checksum of a stream.
        (
            b"\x22\x00\x00\x21\0\0\0\x01........",
            fault("the length of a checksum", "draft-wood-tsvwg-saratoga-22 4.3"),
        ),
        (
            b"\x22\x00\x00\x10\0\0\0\x01....",
            fault("the length of a checksum", "draft-wood-tsvwg-saratoga-22 4.3"),
        ),
        (
            b"\x22\x30\x00\x11\0\0\0\x01....",
            fault("the checksum of a stream", "draft-wood-tsvwg-saratoga-22 4.3"),
        ),
        (
            b"\x22\x00\x00\x00\0\0\0\x01\x00\x00\0\0\0\0\0\x01\0\0\0\x02\0",
            fault("the first bit of a directory entry", "draft-wood-tsvwg-saratoga-22 5"),
        ),
        // A hole that ends before it begins, one that begins in the one before, one that is cut.
        (
            b"\x24\0\0\0\0\0\0\x01\0\x05\0\x09\0\x07\0\x06",
            fault("a hole", "draft-wood-tsvwg-saratoga-22 4.5"),
        ),
        (
            b"\x24\0\0\0\0\0\0\x01\0\x05\0\x09\0\x05\0\x06\0\x06\0\x07",
            fault("a hole", "draft-wood-tsvwg-saratoga-22 4.5"),
        ),
        (
            b"\x24\0\0\0\0\0\0\x01\0\x05\0\x09\0\x05\x01",
            fault("the end of a hole", "draft-wood-tsvwg-saratoga-22 4.5"),
        ),
    ] {
        assert_eq!(decode(bytes), expected, "{bytes:x?}");
    }
}

#[test]
fn paths_have_at_most_1023_bytes() {
    let request = |length: usize| [&b"\x21\0\0\x01\0\0\0\x01"[..], &vec![b'a'; length], b"\0"].concat();
    let longest = decode(&request(PATH_BYTES_MAX - 1)).expect("it fits");
    assert!(matches!(longest, Packet::Request(request) if request.path.len() == 1023));
    assert_eq!(decode(&request(PATH_BYTES_MAX)), Err(DecodeError::Limit { what: "a path" }));
}

#[test]
fn padding_and_undefined_bits_are_ignored() {
    let padded = [&b"\x21\x8e\x80\x01\x0a\x0b\x0c\x0df\0"[..], &[0; 5]].concat();
    let Ok(Packet::Request(request)) = decode(&padded) else { panic!("a padded path is legal") };
    assert_eq!((&request.path[..], request.auth.len()), ("f", 0));
    let metadata = vectors().remove(3);
    assert_eq!(decode(&[metadata.2, &[0; 3]].concat()), Ok(metadata.1));
    // Bit 10 of BEACON, bits 17 to 31 of DATA, the octet after a STATUS.
    let beacon = vectors().remove(0);
    assert_eq!(decode(b"\x20\xae\x80\x00dtn://a/"), Ok(beacon.1));
    assert_eq!(decode(b"\x23\x01\xff\xff\x01\x02\x03\x04\x12\x34xyz"), Ok(data().into()));
    let done = vectors().remove(9);
    assert_eq!(decode(&[done.2, &[0]].concat()), Ok(done.1));
}

#[test]
fn the_offsets_of_a_failure_are_not_read() {
    // They contradict each other.
    let failure = decode(b"\x24\x00\x00\x08\0\0\0\x07\0\x09\0\x09\0\x07\0\x01\xff");
    assert_eq!(failure, Ok(Status::with_outcome(7, Outcome::TooLong).into()));
    for code in 0..=255 {
        assert_eq!(Outcome::from_code(code).code(), code);
        assert_eq!(RequestKind::from_code(code).code(), code);
    }
}

#[test]
fn entries_of_a_list_may_be_padded() {
    let entries = [entry(), Entry { kind: EntryKind::SpecialFile, ..Entry::file("b".to_owned(), 0, 3, 4) }];
    let mut out = BytesMut::new();
    for entry in &entries {
        entry.encode(&mut out);
        out.extend_from_slice(&[0; 3]);
    }
    assert_eq!(Entry::decode_list(out.freeze()), Ok(entries.to_vec()));
    assert_eq!(Entry::decode_list(Bytes::new()), Ok(vec![]));
    assert!(Entry::decode_list(Bytes::from_static(b"\x80")).is_err());
    // 2017-01-01, when there were 27 leap seconds of which 22 had passed in 2000.
    assert_eq!(EPOCH_UNIX - 22, 946_684_800);
}
