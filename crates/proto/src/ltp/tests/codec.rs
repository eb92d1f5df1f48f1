//! Segments on the wire: one vector for each type, made by hand from RFC 5326 3, and what must be refused.

use crate::codec::DecodeError;
use crate::ltp::wire::{
    CancelReason, Content, DataKind, DataSegment, Extension, Report, Segment, Serials, SessionId,
    data_header_bytes, report_header_bytes,
};
use crate::rng::Rng;
use bytes::{Bytes, BytesMut};

const SESSION: SessionId = SessionId { originator: 7, number: 300 };

fn data(kind: DataKind, offset: u64, serials: Option<(u64, u64)>) -> Content {
    let serials = serials.map(|(checkpoint, report)| Serials { checkpoint, report });
    Content::Data(DataSegment { kind, client: 1, offset, serials, data: Bytes::from_static(b"abc") })
}

/// All vectors: the segment's name, its content, and its bytes after the type and the session ID, which are `07 82 2c`.
fn vectors() -> Vec<(&'static str, u8, Content, &'static [u8])> {
    // The example of RFC 5326 3.2.2: 1000-2999 and 4000-4499 of 1000-5999 are received.
    let report = Report {
        serial: 9,
        checkpoint: 200,
        upper: 6000,
        lower: 1000,
        claims: vec![(1000, 3000), (4000, 4500)],
    };
    vec![
        ("red", 0, data(DataKind::Red, 0, None), b"\x00\x01\x00\x03abc"),
        (
            "checkpoint",
            1,
            data(DataKind::Checkpoint, 1000, Some((200, 0))),
            b"\x00\x01\x87\x68\x03\x81\x48\x00abc",
        ),
        ("end of red", 2, data(DataKind::EndOfRed, 127, Some((1, 5))), b"\x00\x01\x7f\x03\x01\x05abc"),
        (
            "end of red and block",
            3,
            data(DataKind::EndOfRedAndBlock, 128, Some((1, 0))),
            b"\x00\x01\x81\x00\x03\x01\x00abc",
        ),
        ("green", 4, data(DataKind::Green, 16_384, None), b"\x00\x01\x81\x80\x00\x03abc"),
        ("end of block", 7, data(DataKind::EndOfBlock, 5, None), b"\x00\x01\x05\x03abc"),
        (
            "report",
            8,
            Content::Report(report),
            b"\x00\x09\x81\x48\xae\x70\x87\x68\x02\x00\x8f\x50\x97\x38\x83\x74",
        ),
        ("report acknowledgement", 9, Content::ReportAck(200), b"\x00\x81\x48"),
        ("cancel by sender", 12, Content::CancelBySender(CancelReason::RetransmissionLimit), b"\x00\x02"),
        ("cancel acknowledgement to sender", 13, Content::CancelAckToSender, b"\x00"),
        ("cancel by receiver", 14, Content::CancelByReceiver(CancelReason::Other(99)), b"\x00\x63"),
        ("cancel acknowledgement to receiver", 15, Content::CancelAckToReceiver, b"\x00"),
    ]
}

fn decode(bytes: &[u8]) -> Result<Segment, DecodeError> {
    let mut input = Bytes::copy_from_slice(bytes);
    let segment = Segment::decode(&mut input)?;
    assert!(input.is_empty(), "{} bytes are left", input.len());
    Ok(segment)
}

#[test]
fn every_segment_type_has_its_bytes() {
    for (name, code, content, rest) in vectors() {
        let bytes = [&[code, 0x07, 0x82, 0x2c][..], rest].concat();
        let segment = Segment::new(SESSION, content);
        assert_eq!(segment.to_bytes(), bytes, "{name}");
        assert_eq!(decode(&bytes), Ok(segment), "{name}");
        for end in 0..bytes.len() {
            assert_eq!(decode(&bytes[..end]), Err(DecodeError::Incomplete), "{name} of {end} bytes");
        }
    }
}

#[test]
fn extensions_surround_the_content() {
    // The header extension is the example of RFC 5327 2.1; the trailer has an authentication value of ten octets.
    let bytes = b"\x0d\x07\x01\x11\x00\x02\x00\x24\x00\x0aABCDEFGHIJ";
    let session = SessionId { originator: 7, number: 1 };
    let auth = Extension { tag: 0, value: Bytes::from_static(b"\x00\x24") };
    let value = Extension { tag: 0, value: Bytes::from_static(b"ABCDEFGHIJ") };
    let segment = Segment {
        header: vec![auth],
        trailer: vec![value],
        ..Segment::new(session, Content::CancelAckToSender)
    };
    assert_eq!(segment.to_bytes(), bytes[..]);
    assert_eq!(decode(bytes), Ok(segment.clone()));
    let most = Extension { tag: 0xff, value: Bytes::new() };
    let full = Segment { header: vec![most.clone(); 15], trailer: vec![most; 15], ..segment };
    assert_eq!(decode(&full.to_bytes()), Ok(full));
}

#[test]
fn several_segments_share_a_datagram() {
    let mut out = BytesMut::new();
    let all: Vec<_> =
        vectors().into_iter().map(|(_, _, content, _)| Segment::new(SESSION, content)).collect();
    all.iter().for_each(|segment| segment.encode(&mut out));
    let mut input = out.freeze();
    let mut decoded = Vec::new();
    while !input.is_empty() {
        decoded.push(Segment::decode(&mut input).expect("each ends where the next begins"));
    }
    assert_eq!(decoded, all);
}

#[test]
fn numbers_may_have_leading_zeros_up_to_ten_octets() {
    let padded = |length: usize| {
        let mut number = vec![0x80; length - 1];
        number.push(5);
        [&[0x09, 0x07][..], &number, &[0x00, 0x01]].concat()
    };
    for length in 1..=10 {
        let expected = Segment::new(SessionId { originator: 7, number: 5 }, Content::ReportAck(1));
        assert_eq!(decode(&padded(length)), Ok(expected));
    }
    assert_eq!(decode(&padded(11)), Err(DecodeError::Limit { what: "an SDNV" }));
    let largest = SessionId { originator: u64::MAX, number: u64::MAX };
    let segment = Segment::new(largest, Content::ReportAck(u64::MAX));
    assert_eq!(decode(&segment.to_bytes()), Ok(segment));
}

#[test]
fn invalid_fields_are_refused() {
    let fault = |what, clause| Err(DecodeError::invalid(what, clause));
    for (bytes, expected) in [
        (&b"\x10\x01\x01\x00\x01\x00\x01a"[..], fault("the version", "RFC 5326 3.1")),
        (b"\x01\x01\x01\x00\x01\x00\x01\x00\x00a", fault("a checkpoint serial number", "RFC 5326 3.2.1")),
        (b"\x09\x01\x01\x00\x00", fault("a report serial number", "RFC 5326 3.2.2")),
        (b"\x08\x01\x01\x00\x01\x01\x05\x06\x00", fault("the bounds of a report", "RFC 5326 3.2.2")),
        // A claim without a byte, one beyond the upper bound, one before the end of the last, one with an overflow.
        (b"\x08\x01\x01\x00\x01\x01\x05\x00\x01\x00\x00", fault("a reception claim", "RFC 5326 3.2.2")),
        (b"\x08\x01\x01\x00\x01\x01\x05\x00\x01\x00\x06", fault("a reception claim", "RFC 5326 3.2.2")),
        (
            b"\x08\x01\x01\x00\x01\x01\x05\x00\x02\x00\x02\x01\x02",
            fault("a reception claim", "RFC 5326 3.2.2"),
        ),
        (
            b"\x08\x01\x01\x00\x01\x01\x05\x01\x01\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
            fault("a reception claim", "RFC 5326 3.2.2"),
        ),
        (
            b"\x00\x01\x01\x00\x01\x81\xff\xff\xff\xff\xff\xff\xff\xff\x7f\x01a",
            fault("the end of a data segment", "RFC 5326 3.2.1"),
        ),
        // More claims, and more data, than there are bytes.
        (b"\x08\x01\x01\x00\x01\x01\x05\x00\xff\xff\xff\x7f\x00\x01", Err(DecodeError::Incomplete)),
        (b"\x00\x01\x01\x00\x01\x00\xff\xff\xff\x7fabc", Err(DecodeError::Incomplete)),
    ] {
        assert_eq!(decode(bytes), expected, "{bytes:x?}");
    }
    for code in [5, 6, 10, 11] {
        let undefined =
            DecodeError::Unsupported { what: "an undefined segment type", clause: "RFC 5326 3.1.2" };
        assert_eq!(decode(&[code, 1, 1, 0, 1, 0, 0]), Err(undefined));
    }
}

#[test]
fn reports_may_be_empty_and_claims_may_touch() {
    let decoded = |bytes| match decode(bytes).expect("it is accepted").content {
        Content::Report(report) => report.claims,
        other => panic!("{other:?}"),
    };
    assert_eq!(decoded(b"\x08\x01\x01\x00\x01\x01\x05\x00\x00"), []);
    assert_eq!(decoded(b"\x08\x01\x01\x00\x01\x01\x05\x00\x02\x00\x02\x02\x03"), [(0, 2), (2, 5)]);
}

#[test]
fn header_lengths_are_those_of_the_encoding() {
    for (_, _, content, _) in vectors() {
        let segment = Segment::new(SESSION, content);
        let whole = segment.to_bytes().len();
        match &segment.content {
            Content::Data(data) => {
                let length = data.data.len();
                let header =
                    data_header_bytes(SESSION, data.client, data.offset, length as u64, data.serials);
                assert_eq!(header + length, whole);
            }
            Content::Report(report) => {
                let header = report_header_bytes(SESSION, report.serial, report.checkpoint, report.upper);
                // Seven bytes of claims; the count needs one of its two bytes.
                assert_eq!(header + 7 - 1, whole);
            }
            _ => {}
        }
    }
}

#[test]
fn random_bytes_are_refused_or_survive_a_second_pass() {
    let mut accepted = 0;
    for seed in 0..20_000 {
        let mut rng = Rng::new(seed);
        let mut bytes = vec![0; rng.below(60) as usize];
        rng.fill(&mut bytes);
        if let Some(first) = bytes.first_mut() {
            *first &= 0x0f;
        }
        if let Some(counts) = bytes.get_mut(3).filter(|_| rng.chance(0.9)) {
            *counts = 0;
        }
        let mut input = Bytes::from(bytes);
        if let Ok(segment) = Segment::decode(&mut input) {
            accepted += 1;
            assert_eq!(decode(&segment.to_bytes()), Ok(segment), "seed {seed}");
        }
    }
    assert!(accepted > 1_000, "{accepted} accepted");
}
