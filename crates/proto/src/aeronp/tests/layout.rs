//! Octets.

use crate::aeronp::wire::{
    Acknowledgement, Beacon, HEADER_BYTES, LinkReport, NodeFix, Packet, PacketType, WireFix, tenths,
};
use crate::codec::{DecodeError, encoded};
use crate::motion::{Fix, Motion};
use crate::packet_router::NodeAddress;
use crate::time::{Duration, Instant};
use bytes::Bytes;

fn packet() -> Packet {
    Packet {
        kind: PacketType::Data,
        precedence: 9,
        congestion: true,
        tolerant: true,
        protocol: 0x11,
        hops_left: 32,
        sequence: 0x0102,
        source: NodeAddress(0x0a00_0001),
        destination: NodeAddress(0x0a00_0002),
        sender: NodeAddress(0x0a00_0003),
        receiver: NodeAddress(0x0a00_0004),
        identification: 0xdead_beef,
        lifetime_tenths: 6000,
        copies: 1,
        payload: Bytes::from_static(b"data"),
        ..Packet::default()
    }
}

fn frame(packet: &Packet) -> Vec<u8> {
    encoded(0, |out| packet.encode(out)).to_vec()
}

fn decode(bytes: &[u8]) -> Result<Packet, DecodeError> {
    Packet::decode(&mut Bytes::copy_from_slice(bytes))
}

#[test]
fn a_header_has_the_documented_octets() {
    let bytes = frame(&packet());
    let head: String = bytes[..32].iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(head, "109a1120010200040a0000010a0000020a0000030a000004deadbeef17700100");
    assert_eq!((bytes.len(), &bytes[HEADER_BYTES..]), (HEADER_BYTES + 4, &b"data"[..]));
    assert_eq!(decode(&bytes), Ok(packet()));
}

#[test]
fn damage_to_the_payload_is_told_and_damage_to_the_header_is_not_read() {
    let fix = WireFix { position_cm: [1, -2, 3], velocity_dmps: [-4, 5, -6], age_tenths: 7 };
    let whole = Packet { sender_fix: Some(fix), destination_fix: Some(fix), ..packet() };
    let bytes = frame(&whole);
    assert_eq!(whole.header_bytes(), HEADER_BYTES + 40);
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x20;
        match decode(&bytes) {
            Ok(read) => {
                assert!(at >= whole.header_bytes() && read.damaged, "octet {at}");
                assert_eq!((read.source, read.destination_fix), (whole.source, Some(fix)));
            }
            Err(_) => assert!(at < whole.header_bytes(), "octet {at}"),
        }
    }
    for length in 0..bytes.len() {
        assert!(decode(&bytes[..length]).is_err(), "{length} octets");
    }
    assert_eq!(
        decode(&[&bytes[..], &[0]].concat()),
        Err(DecodeError::invalid("the payload length", "AeroNP"))
    );
}

#[test]
fn values_beyond_their_fields_become_their_limits_and_impossible_positions_are_refused() {
    let now = Instant::from_secs(7000);
    let motion = Motion { position_m: [1e30, -1e30, f64::NAN], velocity_mps: [1e9, -1e9, f64::INFINITY] };
    let fix = WireFix::new(now, Fix { at: Instant::ZERO, motion });
    assert_eq!(fix.position_cm, [2_000_000_000, -2_000_000_000, 0]);
    assert_eq!((fix.velocity_dmps, fix.age_tenths), ([i16::MAX, i16::MIN, i16::MAX], u16::MAX));
    assert_eq!(tenths(Duration::MAX), u16::MAX);
    let old = fix.fix(Instant::from_secs(1));
    assert_eq!(old.at, Instant::ZERO, "time has no values before the run");
    for position_cm in [[2_000_000_001, 0, 0], [0, i32::MIN, 0], [0, 0, -2_000_000_001]] {
        let forged = Packet { sender_fix: Some(WireFix { position_cm, ..fix }), ..packet() };
        assert_eq!(decode(&frame(&forged)), Err(DecodeError::invalid("a position", "AeroNP")));
    }
}

#[test]
fn versions_types_and_bits_that_are_not_defined_are_refused() {
    let resealed = |at: usize, value: u8| {
        let mut bytes = frame(&packet());
        bytes[at] = value;
        let check = crate::codec::crc::crc16_x25(&bytes[..HEADER_BYTES - 2]).to_be_bytes();
        bytes[HEADER_BYTES - 2..HEADER_BYTES].copy_from_slice(&check);
        decode(&bytes)
    };
    assert!(matches!(resealed(0, 0x20), Err(DecodeError::Unsupported { .. })));
    assert!(matches!(resealed(0, 0x13), Err(DecodeError::Invalid { what: "the type", .. })));
    assert!(matches!(resealed(1, 0x9b), Err(DecodeError::Invalid { what: "an undefined bit", .. })));
    assert!(matches!(resealed(31, 0x04), Err(DecodeError::Invalid { what: "an undefined bit", .. })));
    assert!(resealed(30, 0x04).is_ok(), "the number of copies may be any");
}

#[test]
fn beacons_and_acknowledgements_are_read_as_written() {
    let fix = WireFix { position_cm: [9, 8, 7], velocity_dmps: [1, 2, 3], age_tenths: 4 };
    let links = vec![LinkReport { node: NodeAddress(5), damaged: 128 }];
    let beacon = Beacon { fill: 200, links, fixes: vec![NodeFix { node: NodeAddress(6), hops: 2, fix }; 3] };
    let mut bytes = encoded(0, |out| beacon.encode(out));
    assert_eq!(bytes.len(), 3 + 5 + 3 * 25);
    assert_eq!(Beacon::decode(&mut bytes.slice(..40)), Err(DecodeError::Incomplete));
    assert_eq!(Beacon::decode(&mut bytes), Ok(beacon));
    let answer = Acknowledgement { accepted: vec![1], known: vec![65_535] };
    let mut bytes = encoded(0, |out| answer.encode(out));
    assert_eq!(
        (&bytes[..], Acknowledgement::decode(&mut bytes.clone())),
        (&[1, 0, 1, 255, 255][..], Ok(answer))
    );
    bytes.truncate(4);
    assert!(Acknowledgement::decode(&mut bytes).is_err());
    assert!(Acknowledgement::decode(&mut Bytes::from_static(&[2, 0, 1])).is_err(), "two of one");
    assert!(Acknowledgement::decode(&mut vec![0; 131].into()).is_err());
    assert!(Acknowledgement::decode(&mut Bytes::new()).is_err());
}
