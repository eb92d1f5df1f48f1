//! Codecs and messages of TCPCL for the fuzz targets, over streams and over packets.

use super::packet_stream::seal;
use super::v3::wire as v3;
use super::v4::wire as v4;
use crate::fuzz::{self, Codec, Material, Script, encoded, is_stable};
use crate::rng::Rng;
use bytes::{Bytes, BytesMut};

/// Over streams: both versions.
pub const FUZZ: Material = Material { codecs: CODECS, speech };

/// Over packets: version 3, each packet with its CRC.
pub const FUZZ_PACKETS: Material = Material { codecs: &[], speech: packet_speech };

const CODECS: &[Codec] = &[
    Codec {
        name: "tcpcl 3 contact header",
        check: |bytes| is_stable(bytes, v3::ContactHeader::decode, v3::ContactHeader::encode),
        valid: |mut rng| encoded(|out| tcpcl3_contact(&mut rng).encode(out)),
    },
    Codec {
        name: "tcpcl 3 message",
        check: |bytes| is_stable(bytes, v3::Message::decode, v3::Message::encode),
        valid: |mut rng| encoded(|out| tcpcl3_message(&mut rng).encode(out)),
    },
    Codec {
        name: "tcpcl 4 contact header",
        check: |bytes| is_stable(bytes, v4::ContactHeader::decode, v4::ContactHeader::encode),
        valid: |mut rng| encoded(|out| v4::ContactHeader { can_tls: rng.chance(0.5) }.encode(out)),
    },
    Codec {
        name: "tcpcl 4 message",
        check: |bytes| is_stable(bytes, v4::Message::decode, v4::Message::encode),
        valid: |mut rng| encoded(|out| tcpcl4_message(&mut rng).encode(out)),
    },
    Codec { name: "tcpcl 4 extension items", check: check_items, valid: |mut rng| tcpcl4_items(&mut rng) },
];

/// Returns the next data of a peer: in most cases first a contact header, then messages of its version, now and then of
/// the other, or the script's own bytes; sometimes truncated.
fn speech(version: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    let choice = script.below(16);
    if choice == 0 {
        return script.bytes(200);
    }
    let mut rng = script.rng();
    let mut out = BytesMut::new();
    match (*version, choice) {
        (None, 1..8) | (Some(_), 1) => {
            *version = Some(3);
            tcpcl3_contact(&mut rng).encode(&mut out);
        }
        (None, _) | (Some(_), 2) => {
            *version = Some(4);
            v4::ContactHeader { can_tls: false }.encode(&mut out);
            tcpcl4_init(&mut rng).encode(&mut out);
        }
        (Some(3), _) => (0..=script.below(4)).for_each(|_| {
            let message = tcpcl3_message(&mut rng);
            message.encode(&mut out);
            if let v3::Message::DataSegment { length, .. } = message {
                out.resize(out.len() + length as usize, 0x33);
            }
        }),
        (Some(_), _) => (0..=script.below(4)).for_each(|_| {
            let message = tcpcl4_message(&mut rng);
            message.encode(&mut out);
            if let v4::Message::XferSegment(segment) = message {
                out.resize(out.len() + segment.length as usize, 0x44);
            }
        }),
    }
    if script.below(16) == 0 {
        out.truncate(out.len() / 2);
    }
    out.freeze()
}

/// Returns the next packet of a peer: first a contact header, then segments of bundles, or any content.
fn packet_speech(version: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    if version.replace(3).is_none() {
        return seal(b"dtn!\x03\x03\x00\x1e\x07dtn://a");
    }
    match script.below(16) {
        0 => script.bytes(200),
        1..=5 => seal(&script.bytes(100)),
        _ => {
            let data = script.bytes(20);
            let header = [0x10 | script.below(4) as u8, data.len() as u8];
            seal(&[&header[..], &data].concat())
        }
    }
}

/// A number with a realistic distribution: most are small, and none is impossible.
fn number(rng: &mut Rng) -> u64 {
    rng.next_u64() >> rng.below(64)
}

fn node_id(rng: &mut Rng) -> String {
    fuzz::node_id(rng.fork("node id"))
}

/// A version 3 contact header.
fn tcpcl3_contact(rng: &mut Rng) -> v3::ContactHeader {
    v3::ContactHeader {
        acknowledgements: rng.chance(0.8),
        reactive_fragmentation: rng.chance(0.5),
        refusal: rng.chance(0.5),
        lengths: rng.chance(0.5),
        keepalive: number(rng) as u16,
        eid: node_id(rng),
    }
}

/// A version 3 message, without the bundle's bytes that follow a segment's header.
fn tcpcl3_message(rng: &mut Rng) -> v3::Message {
    match rng.below(8) {
        0..=2 => {
            let (start, end) = (rng.chance(0.5), rng.chance(0.5));
            v3::Message::DataSegment { start, end, length: rng.below(40) }
        }
        3 => v3::Message::AckSegment { up_to: number(rng) >> rng.below(32) },
        4 => {
            v3::Message::RefuseBundle { reason: crate::service::RefuseReason::from_code(rng.below(16) as u8) }
        }
        5 => v3::Message::KeepAlive,
        6 => v3::Message::Length { total: number(rng) >> rng.below(32) },
        _ => v3::Message::Shutdown {
            reason: rng.chance(0.5).then(|| v3::ShutdownReason::from_code(number(rng) as u8)),
            delay: rng.chance(0.5).then(|| number(rng)),
        },
    }
}

/// A SESS_INIT.
fn tcpcl4_init(rng: &mut Rng) -> v4::Message {
    v4::Message::SessInit(v4::SessInit {
        keepalive: number(rng) as u16,
        segment_mru: number(rng),
        transfer_mru: number(rng),
        node_id: node_id(rng),
        items: tcpcl4_items(rng),
    })
}

/// A version 4 message, without the bundle's bytes that follow a segment's header.
fn tcpcl4_message(rng: &mut Rng) -> v4::Message {
    let id = rng.below(4);
    match rng.below(8) {
        0..=2 => {
            let flags = rng.below(4) as u8;
            let items = if flags & v4::START != 0 { tcpcl4_items(rng) } else { Bytes::new() };
            v4::Message::XferSegment(v4::XferSegment { flags, id, items, length: rng.below(40) })
        }
        3 => v4::Message::XferAck { flags: rng.below(4) as u8, id, up_to: number(rng) >> rng.below(32) },
        4 => v4::Message::XferRefuse { reason: v4::RefuseReason::from_code(rng.below(8) as u8), id },
        5 => v4::Message::KeepAlive,
        6 if rng.chance(0.5) => tcpcl4_init(rng),
        6 => v4::Message::SessTerm {
            reply: rng.chance(0.5),
            reason: v4::TermReason::from_code(rng.below(8) as u8),
        },
        _ => {
            let reason = v4::RejectReason::from_code(rng.below(6) as u8);
            v4::Message::MsgReject { reason, header: rng.next_u32() as u8 }
        }
    }
}

fn tcpcl4_items(rng: &mut Rng) -> Bytes {
    encoded(|out| {
        for _ in 0..rng.below(3) {
            let value = Bytes::copy_from_slice(&(number(rng) >> rng.below(32)).to_be_bytes());
            let kind = if rng.chance(0.7) { v4::TRANSFER_LENGTH } else { number(rng) as u16 };
            v4::Item { critical: rng.chance(0.3), kind, value }.encode(out);
        }
    })
}

fn check_items(bytes: &Bytes) -> bool {
    let Ok(items) = v4::items(bytes.clone()) else { return false };
    let again = encoded(|out| items.iter().for_each(|item| item.encode(out)));
    assert_eq!(v4::items(again), Ok(items));
    true
}
