//! The codec and segments of LTP for the fuzz targets: legal segments, and such as a peer of a link may send.

use super::wire::{
    CancelReason, Content, DataKind, DataSegment, Extension, Report, Segment, Serials, SessionId,
};
use crate::fuzz::{Codec, Material, Script, is_stable};
use crate::rng::Rng;
use bytes::Bytes;

/// Codec and segments of a peer.
pub const FUZZ: Material = Material {
    codecs: &[Codec {
        name: "ltp segment",
        check: |bytes| is_stable(bytes, Segment::decode, Segment::encode),
        valid: |mut rng| segment(&mut rng).to_bytes(),
    }],
    speech,
};

/// A datagram of one or two segments, or of any bytes.
fn speech(_: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    let rng = &mut script.rng();
    match script.below(6) {
        0 => script.bytes(200),
        1 => [likely_segment(rng).to_bytes(), likely_segment(rng).to_bytes()].concat().into(),
        2 => segment(rng).to_bytes(),
        _ => likely_segment(rng).to_bytes(),
    }
}

const KINDS: [DataKind; 6] = [
    DataKind::Red,
    DataKind::Checkpoint,
    DataKind::EndOfRed,
    DataKind::EndOfRedAndBlock,
    DataKind::Green,
    DataKind::EndOfBlock,
];

/// Any legal segment, with numbers of any length.
fn segment(rng: &mut Rng) -> Segment {
    let session = SessionId { originator: number(rng), number: number(rng) };
    let extensions = |rng: &mut Rng| {
        let extension = |rng: &mut Rng| Extension { tag: rng.next_u64() as u8, value: some_bytes(rng, 20) };
        let count = if rng.chance(0.7) { 0 } else { rng.below(4) };
        (0..count).map(|_| extension(rng)).collect()
    };
    let (header, trailer) = (extensions(rng), extensions(rng));
    let offset = number(rng) >> 1;
    Segment { session, header, content: content(rng, offset), trailer }
}

/// Segment for a link with the engine ID 1: about one of a few sessions, with a small block.
fn likely_segment(rng: &mut Rng) -> Segment {
    let offset = rng.below(12);
    let content = content(rng, offset);
    let is_own =
        matches!(content, Content::Report(_) | Content::CancelAckToSender | Content::CancelByReceiver(_));
    let originator = if is_own { 1 } else { 2 };
    Segment::new(SessionId { originator, number: rng.below(3) }, content)
}

fn content(rng: &mut Rng, offset: u64) -> Content {
    match rng.below(16) {
        0..8 => {
            let kind = KINDS[rng.below(6) as usize];
            let serials = Serials { checkpoint: 1 + rng.below(4), report: rng.below(2) * number(rng) };
            Content::Data(DataSegment {
                kind,
                client: if rng.chance(0.9) { 1 + rng.below(2) } else { number(rng) },
                offset,
                serials: kind.is_checkpoint().then_some(serials),
                data: some_bytes(rng, 12),
            })
        }
        8..11 => Content::Report(report(rng, offset)),
        11 => Content::ReportAck(1 + rng.below(4)),
        12 => Content::CancelBySender(reason(rng)),
        13 => Content::CancelAckToSender,
        14 => Content::CancelByReceiver(reason(rng)),
        _ => Content::CancelAckToReceiver,
    }
}

fn report(rng: &mut Rng, lower: u64) -> Report {
    let (mut claims, mut upper) = (Vec::new(), lower);
    for _ in 0..rng.below(4) {
        let start = upper + rng.below(3);
        upper = start + 1 + rng.below(9);
        claims.push((start, upper));
    }
    Report { serial: 1 + rng.below(4), checkpoint: rng.below(4), upper: upper + rng.below(4), lower, claims }
}

fn reason(rng: &mut Rng) -> CancelReason {
    CancelReason::from_code(if rng.chance(0.8) { rng.below(6) as u8 } else { rng.next_u64() as u8 })
}

/// A number of any length, small ones more often.
fn number(rng: &mut Rng) -> u64 {
    rng.next_u64() >> rng.below(64)
}

fn some_bytes(rng: &mut Rng, bound: u64) -> Bytes {
    let mut bytes = vec![0; rng.below(bound) as usize];
    rng.fill(&mut bytes);
    bytes.into()
}
