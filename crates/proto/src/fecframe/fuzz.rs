//! The codec and packets for the fuzz targets.

use super::wire::{LossReport, Packet, Symbol};
use crate::fuzz::{Codec, Material, Script, is_identity};
use crate::rng::Rng;
use bytes::Bytes;

/// Codec, and packets of peers: datagrams and repair symbols of any bytes.
pub const FUZZ: Material = Material {
    codecs: &[Codec {
        name: "source or repair packet",
        check: |bytes| is_identity(bytes, Packet::decode, Packet::encode),
        valid: |mut rng| {
            let bytes = vec![7; 2 * rng.below(20) as usize].into();
            packet(&mut rng, bytes).to_bytes()
        },
    }],
    speech: |_, script| match script.below(4) {
        0 => script.bytes(200),
        _ => {
            let (mut rng, bytes) = (script.rng(), script.bytes(200));
            packet(&mut rng, bytes).to_bytes()
        }
    },
};

/// Returns these bytes as a datagram in a source packet of a peer, or as a repair symbol.
pub fn around(speech: Bytes, script: &mut Script<'_>) -> Bytes {
    packet(&mut script.rng(), speech).to_bytes()
}

/// A symbol of one of a few small blocks.
fn packet(rng: &mut Rng, bytes: Bytes) -> Packet {
    let (sources, repairs) = (1 + rng.below(3) as u16, 1 + rng.below(3) as u16);
    let block = if rng.chance(0.9) { rng.below(4) as u32 } else { rng.next_u32() };
    let report = rng.chance(0.3).then(|| {
        let of = 1 + rng.below(65_535) as u16;
        LossReport { lost: rng.below(u64::from(of) + 1) as u16, of }
    });
    let is_repair = rng.chance(0.5) && bytes.len() >= 2;
    if !is_repair {
        return Packet { block, id: rng.below(sources.into()) as u16, report, symbol: Symbol::Source(bytes) };
    }
    let even = bytes.len() & !1;
    let id = sources + rng.below(repairs.into()) as u16;
    Packet { block, id, report, symbol: Symbol::Repair { sources, repairs, bytes: bytes.slice(..even) } }
}
