//! The codec and packets of UI-CL for the fuzz targets.

use super::wire::{Packet, name};
use crate::codec::crc::crc32c;
use crate::fuzz::{Codec, Material, Script, is_identity};
use crate::rng::Rng;
use crate::service::RefuseReason;
use bytes::Bytes;

/// Codec and packets of members.
pub const FUZZ: Material = Material {
    codecs: &[Codec {
        name: "uicl packet",
        check: |bytes| is_identity(&with_checksum(bytes), Packet::decode, Packet::encode),
        valid: |mut rng| packet(&mut rng).to_bytes(),
    }],
    speech,
};

fn speech(_: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    if script.chance() { packet(&mut script.rng()).to_bytes() } else { script.bytes(200) }
}

fn with_checksum(bytes: &Bytes) -> Bytes {
    let Some(length) = bytes.len().checked_sub(4) else { return bytes.clone() };
    [&bytes[..length], &crc32c(&bytes[..length]).to_be_bytes()].concat().into()
}

/// A packet to a group, about one of a few bundles of few segments.
fn packet(rng: &mut Rng) -> Packet {
    let (transfer, member) = (rng.below(3) as u32, name("dtn://here/"));
    let count = 1 + rng.below(4) as u16;
    match rng.below(8) {
        0 => Packet::Query {
            transfer,
            count,
            round: rng.below(4) as u8,
            slot_ms: rng.below(3000) as u16,
            members: (0..rng.below(3)).map(|_| if rng.chance(0.5) { member } else { 7 }).collect(),
        },
        1 => {
            let bitmap = vec![rng.below(256) as u8; rng.below(4) as usize].into();
            Packet::Request { transfer, member, first: rng.below(3) as u16, bitmap }
        }
        2 => Packet::Confirm { transfer, member },
        3 => {
            let reason = RefuseReason::NoResources;
            Packet::Refuse { transfer, member, reason }
        }
        4 => Packet::Cancel { transfer },
        _ => {
            let index = rng.below(count.into()) as u16;
            Packet::Segment { transfer, index, count, data: vec![7; 1 + rng.below(40) as usize].into() }
        }
    }
}
