//! The codec and messages of NORM for the fuzz targets: legal messages, and such as a peer of a link may send.

use super::wire::{
    Ack, AckContents, CcFeedback, CcNode, Command, CommandMessage, Data, FecScheme, Flags, Fti, Info, Levels,
    Message, Nack, NodeId, PayloadId, RepairForm, RepairItem, RepairRequest, SenderFields, StreamFields,
    Timestamp,
};
use crate::fuzz::{Codec, Material, Script, is_stable};
use crate::rng::Rng;
use bytes::{Bytes, BytesMut};

/// Codec and messages of a peer.
pub const FUZZ: Material = Material {
    codecs: &[Codec {
        name: "norm message",
        check: |bytes| is_stable(bytes, Message::decode, Message::encode),
        valid: |mut rng| message(&mut rng).to_bytes(),
    }],
    speech,
};

const SCHEMES: [FecScheme; 3] = [FecScheme::ReedSolomon8, FecScheme::ReedSolomon, FecScheme::SmallBlock];
const FORMS: [RepairForm; 3] = [RepairForm::Items, RepairForm::Ranges, RepairForm::Erasures];

/// A datagram with a message, or with any bytes.
fn speech(_: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    let rng = &mut script.rng();
    match script.below(6) {
        0 => script.bytes(200),
        1 => message(rng).to_bytes(),
        _ => likely_message(rng).to_bytes(),
    }
}

fn some_bytes(rng: &mut Rng, max: u64) -> Bytes {
    let mut bytes = vec![0; rng.below(max + 1) as usize];
    rng.fill(&mut bytes);
    bytes.into()
}

fn sender(rng: &mut Rng) -> SenderFields {
    let grtt = rng.next_u32() as u8;
    SenderFields {
        instance: rng.below(3) as u16,
        grtt,
        backoff: rng.below(16) as u8,
        group_size: rng.below(16) as u8,
    }
}

fn id(rng: &mut Rng, scheme: FecScheme, near: u64) -> PayloadId {
    let (block, symbol) = (rng.below(near) as u32 & 0xff_ffff, rng.below(near.min(256)) as u16);
    let block_symbols = if scheme == FecScheme::SmallBlock { rng.below(near.min(65_536)) as u16 } else { 0 };
    PayloadId { block, block_symbols, symbol }
}

fn fti(rng: &mut Rng, near: u64) -> Option<Fti> {
    rng.chance(0.8).then(|| Fti {
        object_bytes: rng.below(near * near + 1).min((1 << 48) - 1),
        segment_bytes: rng.below(near.min(1 << 16)) as u16,
        block_symbols: rng.below(near.min(256)) as u16,
        parity_symbols: rng.below(near.min(256)) as u16,
    })
}

/// Segment of a stream with its fields, which may contradict it.
fn segment(rng: &mut Rng, near: u64) -> Bytes {
    let contents = some_bytes(rng, near.min(40));
    let length = contents.len() as u16 + u16::from(rng.chance(0.05));
    let (message_start, offset) = (rng.below(u64::from(length) + 2) as u16, rng.below(near * near) as u32);
    let mut segment = BytesMut::new();
    StreamFields { length, message_start, offset }.encode(&mut segment);
    segment.extend_from_slice(&contents);
    segment.freeze()
}

fn timestamp(rng: &mut Rng) -> Timestamp {
    Timestamp { seconds: rng.below(4) as u32, micros: rng.below(1_000_000) as u32 }
}

fn feedback(rng: &mut Rng) -> Option<CcFeedback> {
    rng.chance(0.5).then(|| CcFeedback {
        cc_sequence: rng.next_u32() as u16,
        flags: rng.next_u32() as u8,
        rtt: rng.next_u32() as u8,
        loss: rng.next_u32() as u16,
        rate: rng.next_u32() as u16,
        reserved: rng.next_u32() as u16,
    })
}

fn requests(rng: &mut Rng, near: u64) -> Vec<RepairRequest> {
    let request = |rng: &mut Rng| {
        let form = FORMS[rng.below(3) as usize];
        let items = (0..2 * rng.below(4)).map(|_| {
            let scheme = SCHEMES[rng.below(3) as usize];
            RepairItem { scheme, object: rng.below(near.min(1 << 16)) as u16, id: id(rng, scheme, near) }
        });
        RepairRequest { form, items: items.collect(), levels: Levels(rng.below(16) as u8) }
    };
    (0..rng.below(4)).map(|_| request(rng)).collect()
}

/// Any legal message.
fn message(rng: &mut Rng) -> Message {
    any(rng, 1 << 24)
}

/// Message about one of a few small objects.
pub(super) fn likely_message(rng: &mut Rng) -> Message {
    any(rng, 12)
}

/// Message with numbers below a limit.
fn any(rng: &mut Rng, near: u64) -> Message {
    let scheme = SCHEMES[rng.below(3) as usize];
    let flags = Flags(rng.next_u32() as u8 & 0x3f);
    let object = rng.below(near.min(1 << 16)) as u16;
    let node = |rng: &mut Rng| NodeId(rng.below(near.min(4)) as u32);
    let body = match rng.below(8) {
        0 => Info {
            sender: sender(rng),
            flags,
            scheme,
            object,
            fti: fti(rng, near),
            payload: some_bytes(rng, 20),
        }
        .into(),
        1..4 => {
            let (id, fti) = (id(rng, scheme, near), fti(rng, near));
            let payload = match flags.has(Flags::STREAM) && rng.chance(0.8) {
                true => segment(rng, near),
                false => some_bytes(rng, near.min(40)),
            };
            Data { sender: sender(rng), flags, scheme, object, id, fti, payload }.into()
        }
        4 => CommandMessage { sender: sender(rng), command: command(rng, scheme, object, near) }.into(),
        5..7 => {
            let (sender, instance) = (node(rng), rng.below(3) as u16);
            let (grtt_response, cc, requests) = (timestamp(rng), feedback(rng), requests(rng, near));
            Nack { sender, instance, grtt_response, cc, requests }.into()
        }
        _ => {
            let (sender, instance, id_of) = (node(rng), rng.below(3) as u16, id(rng, scheme, near));
            let contents = match rng.below(3) {
                0 => AckContents::Cc,
                1 => AckContents::Flush { scheme, object, id: id_of },
                _ => AckContents::Other { ack_type: 16, contents: some_bytes(rng, 4) },
            };
            let (id, grtt_response) = (rng.next_u32() as u8, timestamp(rng));
            Ack { sender, instance, id, grtt_response, cc: feedback(rng), contents }.into()
        }
    };
    Message { sequence: rng.next_u32() as u16, source: node(rng), body }
}

fn command(rng: &mut Rng, scheme: FecScheme, object: u16, near: u64) -> Command {
    let id = id(rng, scheme, near);
    let nodes = |rng: &mut Rng| (0..rng.below(4)).map(|_| NodeId(rng.below(4) as u32)).collect();
    match rng.below(7) {
        0 => Command::Flush { scheme, object, id, acking_nodes: nodes(rng) },
        1 => Command::Eot,
        2 => {
            let invalid_objects = (0..rng.below(5)).map(|_| rng.below(near.min(1 << 16)) as u16).collect();
            Command::Squelch { scheme, object, id, invalid_objects }
        }
        3 => {
            let (cc_sequence, send_time) = (rng.next_u32() as u16, timestamp(rng));
            let rate = rng.chance(0.5).then(|| rng.next_u32() as u16);
            let state = |rng: &mut Rng| CcNode {
                node: NodeId(rng.below(4) as u32),
                flags: rng.next_u32() as u8,
                rtt: rng.next_u32() as u8,
                rate: rng.next_u32() as u16,
            };
            Command::Cc {
                cc_sequence,
                send_time,
                rate,
                nodes: (0..rng.below(3)).map(|_| state(rng)).collect(),
            }
        }
        4 => {
            let (is_limited, cc, requests) = (rng.chance(0.5), feedback(rng), requests(rng, near));
            Command::RepairAdv { is_limited, cc, requests }
        }
        5 => Command::AckReq {
            ack_type: rng.next_u32() as u8,
            ack_id: rng.next_u32() as u8,
            acking_nodes: nodes(rng),
        },
        _ => Command::Application(some_bytes(rng, 20)),
    }
}
