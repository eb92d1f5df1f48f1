//! Codecs of AeroNP.

use super::codecs::{encoded, is_identity};
use crate::aeronp::wire::{Acknowledgement, Beacon, LinkReport, NodeFix, Packet, PacketType, WireFix};
use crate::packet_router::NodeAddress;
use crate::rng::Rng;
use bytes::Bytes;

fn fix(rng: &mut Rng) -> WireFix {
    WireFix {
        position_cm: [(); 3].map(|()| (rng.below(4_000_000_001) as i64 - 2_000_000_000) as i32),
        velocity_dmps: [(); 3].map(|()| rng.next_u32() as i16),
        age_tenths: rng.next_u32() as u16,
    }
}

/// Packet to and from a few nodes.
pub(super) fn packet(rng: &mut Rng, kind: PacketType, payload: Bytes) -> Packet {
    let mut node = || NodeAddress(rng.below(6) as u32);
    let (source, destination, sender, receiver) = (node(), node(), node(), node());
    Packet {
        kind,
        precedence: rng.below(16) as u8,
        congestion: rng.chance(0.3),
        corruption: rng.chance(0.3),
        tolerant: rng.chance(0.5),
        protocol: rng.below(3) as u8,
        hops_left: rng.below(40) as u8,
        sequence: rng.below(40) as u16,
        source,
        destination,
        sender,
        receiver,
        identification: rng.below(1000) as u32,
        lifetime_tenths: rng.next_u32() as u16,
        copies: rng.next_u32() as u8,
        sender_fix: rng.chance(0.5).then(|| fix(rng)),
        destination_fix: rng.chance(0.5).then(|| fix(rng)),
        payload,
        damaged: false,
    }
}

fn some_bytes(rng: &mut Rng) -> Bytes {
    let mut bytes = vec![0; rng.below(200) as usize];
    rng.fill(&mut bytes);
    bytes.into()
}

/// A packet whose payload is whole is encoded to the bytes of which it was decoded.
pub(super) fn check_packet(bytes: &Bytes) -> bool {
    let mut input = bytes.clone();
    let Ok(packet) = Packet::decode(&mut input) else { return false };
    assert!(input.is_empty(), "a packet is a whole frame");
    let again = encoded(|out| packet.encode(out));
    assert_eq!(again == *bytes, !packet.damaged, "only the payload may be damaged");
    assert_eq!(again[packet.header_bytes()..], packet.payload);
    true
}

pub(super) fn valid_packet(mut rng: Rng) -> Bytes {
    let payload = some_bytes(&mut rng);
    encoded(|out| packet(&mut rng, PacketType::Data, payload).encode(out))
}

pub(super) fn check_beacon(bytes: &Bytes) -> bool {
    is_identity(bytes, Beacon::decode, Beacon::encode)
}

pub(super) fn valid_beacon(mut rng: Rng) -> Bytes {
    let rng = &mut rng;
    let node = |rng: &mut Rng| NodeAddress(rng.below(2000) as u32);
    let links =
        (0..rng.below(5)).map(|_| LinkReport { node: node(rng), damaged: rng.next_u32() as u8 }).collect();
    let told = |rng: &mut Rng| NodeFix { node: node(rng), hops: rng.below(5) as u8, fix: fix(rng) };
    let fixes = (0..rng.below(5)).map(|_| told(rng)).collect();
    let fill = rng.next_u32() as u8;
    encoded(|out| Beacon { fill, links, fixes }.encode(out))
}

pub(super) fn check_acknowledgement(bytes: &Bytes) -> bool {
    is_identity(bytes, Acknowledgement::decode, Acknowledgement::encode)
}

pub(super) fn valid_acknowledgement(mut rng: Rng) -> Bytes {
    let mut accepted: Vec<_> = (0..=rng.below(63)).map(|_| rng.below(40) as u16).collect();
    let known = accepted.split_off(rng.below(accepted.len() as u64 + 1) as usize);
    encoded(|out| Acknowledgement { accepted, known }.encode(out))
}
