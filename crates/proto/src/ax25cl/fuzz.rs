//! The codec and packets of AX25-CL for the fuzz targets.

use super::wire::{Hello, Message, Packet};
use crate::fuzz::{Codec, Material, Script, encoded, is_stable};
use crate::rng::Rng;
use crate::service::RefuseReason;
use bytes::Bytes;

/// Codec and packets of peers.
pub const FUZZ: Material = Material {
    codecs: &[Codec {
        name: "ax25cl packet",
        check: |bytes| is_stable(bytes, Packet::decode, Packet::encode),
        valid: |mut rng| encoded(|out| packet(&mut rng).encode(out)),
    }],
    speech,
};

/// Returns the next packet of a peer: in most cases first its hello.
fn speech(greeted: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    if greeted.is_none() && script.below(4) > 0 {
        *greeted = Some(1);
        return Bytes::from_static(b"LW\x01\x02\x01\x02\x03\x04\x0cdtn://there/");
    }
    match script.below(4) {
        0 => script.bytes(200),
        _ => encoded(|out| packet(&mut script.rng()).encode(out)),
    }
}

/// A packet: with a hello or without, and a message or two.
fn packet(rng: &mut Rng) -> Packet {
    let hello = rng.chance(0.4).then(|| Hello {
        asks: rng.chance(0.5),
        keeps_prefix: rng.chance(0.5),
        tag: rng.below(3) as u32,
        resume: rng.chance(0.4).then(|| (rng.below(3) as u32, rng.below(4))),
        node_id: "dtn://there/".to_owned(),
    });
    let mut message = |_| match rng.below(8) {
        0 => Message::Whole { number: rng.below(3) },
        1 => Message::Progress { number: rng.below(3), up_to: rng.below(300) },
        2 => Message::Refuse { number: rng.below(3), reason: RefuseReason::NoResources },
        3 => Message::Cancel { number: rng.below(3) },
        _ => {
            let begins = rng.chance(0.5).then(|| rng.below(60));
            let number = (begins.is_none() && rng.chance(0.5)).then(|| rng.below(3));
            Message::Data { begins, number, data: vec![7; rng.below(40) as usize].into() }
        }
    };
    let messages = (0..2).map(&mut message).collect();
    Packet { hello, messages }
}
