//! The codecs of radio controllers.

use super::codecs::{encoded, is_identity, is_stable};
use crate::rng::Rng;
use crate::{agwpe, kiss};
use bytes::{Bytes, BytesMut};

fn some_bytes(rng: &mut Rng) -> Bytes {
    let mut bytes = vec![0; rng.below(40) as usize];
    rng.fill(&mut bytes);
    bytes.into()
}

fn kiss_frame(rng: &mut Rng) -> kiss::Frame {
    let octet = rng.next_u32() as u8;
    let body = match rng.below(8) {
        0 => kiss::Body::TxDelay(octet),
        1 => kiss::Body::Persistence(octet),
        2 => kiss::Body::SetHardware(some_bytes(rng)),
        3 => kiss::Body::Poll,
        4 => kiss::Body::DataAcknowledged { token: rng.next_u32() as u16, bytes: some_bytes(rng) },
        5 => kiss::Body::Unknown { command: 9, bytes: some_bytes(rng) },
        _ => kiss::Body::Data(some_bytes(rng)),
    };
    kiss::Frame { port: rng.below(8) as u8, body }
}

/// The content of a KISS frame.
pub(super) fn check_kiss(bytes: &Bytes) -> bool {
    is_stable(bytes, kiss::Frame::decode, kiss::Frame::encode)
}

pub(super) fn valid_kiss(mut rng: Rng) -> Bytes {
    encoded(|out| kiss_frame(&mut rng).encode(out))
}

const CHECKSUMS: [kiss::Checksum; 3] =
    [kiss::Checksum::None, kiss::Checksum::ExclusiveOr, kiss::Checksum::Smack];

fn on_a_line(line: &[u8], piece: usize, checksum: kiss::Checksum) -> Vec<kiss::Frame> {
    let mut deframer = kiss::Deframer::new();
    let mut frames = vec![];
    for piece in line.chunks(piece) {
        let mut input = Bytes::copy_from_slice(piece);
        while let Some(content) = deframer.next(&mut input) {
            assert!(!content.is_empty() && content.len() <= kiss::FRAME_BYTES_MAX);
            let plain = checksum.strip(content);
            frames.extend(plain.and_then(|mut plain| kiss::Frame::decode(&mut plain)).ok());
        }
    }
    frames
}

/// A line: the first byte chooses the checksum and the length of its pieces. The same frames are found however it is cut, and
/// again once they are enclosed.
pub(super) fn check_kiss_line(bytes: &Bytes) -> bool {
    let Some((choice, line)) = bytes.split_first() else { return false };
    let checksum = CHECKSUMS[usize::from(*choice) % 3];
    let frames = on_a_line(line, 1 + usize::from(*choice >> 4), checksum);
    assert_eq!(frames, on_a_line(line, line.len().max(1), checksum));
    let sayable = |frame: &kiss::Frame| checksum != kiss::Checksum::Smack || frame.port < 8;
    let again: Vec<_> = frames.iter().filter(|frame| sayable(frame)).cloned().collect();
    let line = encoded(|out| again.iter().for_each(|frame| kiss::enclose(frame, checksum, out)));
    assert_eq!(on_a_line(&line, line.len().max(1), checksum), again);
    !frames.is_empty()
}

pub(super) fn valid_kiss_line(mut rng: Rng) -> Bytes {
    let choice = rng.next_u32() as u8;
    let checksum = CHECKSUMS[usize::from(choice) % 3];
    encoded(|out| {
        out.extend_from_slice(&[choice]);
        (0..=rng.below(3)).for_each(|_| kiss::enclose(&kiss_frame(&mut rng), checksum, out));
    })
}

pub(super) fn check_agwpe(bytes: &Bytes) -> bool {
    is_stable(bytes, agwpe::Frame::decode, agwpe::Frame::encode)
}

pub(super) fn valid_agwpe(mut rng: Rng) -> Bytes {
    let name = |rng: &mut Rng| format!("EI7IG-{}", rng.below(16)).parse().unwrap_or_default();
    let kind = agwpe::Kind::from_octet(rng.next_u32() as u8);
    let frame = agwpe::Frame { port: rng.below(4) as u8, pid: 0xf0, ..agwpe::Frame::new(kind) };
    let frame = frame.between(name(&mut rng), name(&mut rng)).with(some_bytes(&mut rng));
    encoded(|out| frame.encode(out))
}

/// The first byte chooses what is in the data.
pub(super) fn check_agwpe_data(bytes: &Bytes) -> bool {
    let Some(&choice) = bytes.first() else { return false };
    let data = bytes.slice(1..);
    match choice % 5 {
        0 => is_stable(&data, agwpe::Version::decode, agwpe::Version::encode),
        1 => is_stable(&data, agwpe::Registered::decode, agwpe::Registered::encode),
        2 => is_identity(&data, agwpe::Queued::decode, agwpe::Queued::encode),
        3 => is_identity(&data, agwpe::Capabilities::decode, agwpe::Capabilities::encode),
        _ => is_stable(&data, agwpe::Via::decode, agwpe::Via::encode),
    }
}

pub(super) fn valid_agwpe_data(mut rng: Rng) -> Bytes {
    let choice = rng.below(5) as u8;
    let mut octets = [0; 12];
    rng.fill(&mut octets);
    encoded(|out: &mut BytesMut| {
        out.extend_from_slice(&[choice]);
        match choice {
            4 => {
                agwpe::Via(vec!["WIDE1-1".parse().unwrap_or_default(); 1 + rng.below(8) as usize]).encode(out)
            }
            _ => out.extend_from_slice(&octets),
        }
    })
}
