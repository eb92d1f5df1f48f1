//! The codec and packets for the fuzz targets.

use super::wire::{KEEPALIVE, Message, Messages, Place, Transfer};
use crate::fuzz::{Codec, Material, Script, encoded};
use crate::rng::Rng;
use bytes::{BufMut, Bytes};

/// Codec, and packets of peers.
pub const FUZZ: Material =
    Material { codecs: &[Codec { name: "udpcl packet", check, valid: packet }], speech };

/// Messages of a packet, encoded again, are the same.
fn check(bytes: &Bytes) -> bool {
    let mut is_valid = !bytes.is_empty();
    for message in Messages::new(bytes.clone()) {
        let Ok(mut message) = message else {
            is_valid = false;
            continue;
        };
        if let Message::Extensions(map) = &mut message {
            is_valid &= !map.has_malformed_transfer;
            // They are not kept.
            (map.has_malformed_transfer, map.skipped) = (false, 0);
        }
        let again = encoded(|out| message.encode(out));
        assert_eq!(Messages::new(again).collect::<Vec<_>>(), [Ok(message)]);
    }
    is_valid
}

fn speech(_: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    match script.below(8) {
        0 => vec![0; script.below(8) as usize].into(),
        1 => script.bytes(200),
        _ => packet(script.rng()),
    }
}

/// A packet with segments of a few small transfers, and other items.
fn packet(mut rng: Rng) -> Bytes {
    match rng.below(10) {
        0 => return Bytes::from_static(&KEEPALIVE),
        1 => return Bytes::from_static(b"\x9fbundle"),
        _ => {}
    }
    let maps: Vec<Bytes> = (0..1 + rng.below(3)).map(|_| map(&mut rng)).collect();
    let mut packet = maps.concat();
    if rng.chance(0.2) {
        packet.extend_from_slice(&[0; 5]);
    }
    packet.into()
}

fn map(rng: &mut Rng) -> Bytes {
    if rng.chance(0.2) {
        // The ranges of extensions and of probes in the draft's examples, and the node ID of the sender.
        return Bytes::from_static(match rng.below(3) {
            0 => b"\xa1\x01\x82\x01\x07",
            1 => b"\xa1\x07\x82\x18\x7b\x86\x02\0\0\0\0\x02",
            _ => b"\xbf\x04\x66dtn:aa\x39\x01\0\xf6\xff",
        });
    }
    let (id, total_bytes) = (rng.below(3), 1 + rng.below(12));
    let offset = rng.below(total_bytes);
    let length = 1 + rng.below(total_bytes - offset);
    let is_single = rng.chance(0.2);
    let place = (!is_single).then_some(Place { total_bytes, offset });
    let mut data = vec![7; length as usize];
    if is_single || offset == 0 {
        data[0] = 0x9f;
    }
    let transfer = Transfer { id, place, data: data.into() };
    if rng.chance(0.8) {
        return transfer.to_packet();
    }
    // Beside an item of another type.
    encoded(|out| {
        out.put_slice(b"\xa2\x18\x20\x9f\xc0\x61a\xff\x02");
        transfer.encode(out);
    })
}
