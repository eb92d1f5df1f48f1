//! The codec and packets of AeroTP for the fuzz targets: legal packets, and such as a peer of a link may send.

use super::bundles::BUNDLES_PORT;
use super::wire::{Flags, Header, Kind, Packet, ParityPrefix, Received, Report, encode_numbers};
use crate::fec::Correction;
use crate::fuzz::{Codec, Material, Script};
use crate::rng::Rng;
use crate::service::{Precedence, TransportService};
use bytes::Bytes;

/// Codecs and packets of a peer.
pub const FUZZ: Material = Material {
    codecs: &[
        Codec { name: "aerotp packet", check: check_packet, valid: |mut rng| packet(&mut rng).to_bytes() },
        Codec { name: "aerotp report", check: check_report, valid: |mut rng| report(&mut rng).encode() },
    ],
    speech,
};

const STRENGTHS: [u8; 7] = [0, 1, 2, 4, 8, 16, 3];

/// Checks that a packet that was read and is written again is the same one, whatever was corrected.
fn check_packet(bytes: &Bytes) -> bool {
    let mut is_read = false;
    for own_code in [None, Some(1)] {
        let Ok(received) = Received::decode(bytes, own_code) else { continue };
        is_read = true;
        if !received.is_intact {
            continue;
        }
        let Received { header, payload, correction, .. } = received;
        let again = Packet { header, payload: payload.clone() }.to_bytes();
        let own_code = own_code.filter(|_| header.header_in_code);
        let read = Received::decode(&again, own_code).expect("a packet of this implementation");
        assert_eq!((read.header, read.payload, read.correction), (header, payload, Correction::default()));
        if correction == Correction::default() && header.length > 0 && header.strength == 0 {
            assert_eq!(&again, bytes);
        }
    }
    is_read
}

fn check_report(bytes: &Bytes) -> bool {
    let Some(report) = Report::decode(bytes) else { return false };
    assert_eq!(Report::decode(&report.encode()), Some(report));
    true
}

/// A datagram with a packet, or with any bytes.
fn speech(_: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    let rng = &mut script.rng();
    match script.below(8) {
        0 => script.bytes(200),
        1 => packet(rng).to_bytes(),
        2 => damaged(rng),
        _ => likely_packet(rng).to_bytes(),
    }
}

/// A packet with a few bit errors.
fn damaged(rng: &mut Rng) -> Bytes {
    let mut bytes = likely_packet(rng).to_bytes().to_vec();
    for _ in 0..1 + rng.below(4) {
        let bit = rng.below(bytes.len() as u64 * 8);
        bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
    bytes.into()
}

/// Any legal packet.
pub(super) fn packet(rng: &mut Rng) -> Packet {
    let length = if rng.chance(0.2) { 0 } else { rng.below(700) as usize };
    let mut payload = vec![0; length];
    rng.fill(&mut payload);
    let strength = STRENGTHS[rng.below(7) as usize];
    let header = Header {
        source_port: rng.next_u32() as u16,
        destination_port: rng.next_u32() as u16,
        kind: Kind::ALL[rng.below(6) as usize],
        service: TransportService::ALL[rng.below(8) as usize],
        precedence: Precedence::ALL[rng.below(4) as usize],
        header_in_code: strength > 0 && rng.chance(0.2),
        in_blocks: rng.chance(0.5),
        strength,
        flags: Flags(rng.next_u32() as u8),
        sequence: rng.next_u32(),
        timestamp: rng.next_u32(),
        length: length as u16,
    };
    Packet { header, payload: payload.into() }
}

fn report(rng: &mut Rng) -> Report {
    let block = |rng: &mut Rng| (rng.below(4) as u16, rng.below(70) as u8, rng.chance(0.3));
    Report {
        bit_error_rate: rng.unit() as f32,
        window_bytes: rng.next_u32(),
        complete: rng.below(400) as u32,
        blocks: (0..rng.below(5)).map(|_| block(rng)).collect(),
    }
}

/// Packet about one of a few connections, with little data.
fn likely_packet(rng: &mut Rng) -> Packet {
    let service = match rng.below(4) {
        0 => TransportService::ALL[rng.below(8) as usize],
        1 => TransportService::Reliable,
        _ => TransportService::Adaptive,
    };
    let kind = if rng.chance(0.6) { Kind::Data } else { Kind::ALL[rng.below(6) as usize] };
    let mut flags = Flags::NONE;
    for (flag, probability) in [
        (Flags::ASYN, 0.7),
        (Flags::AFIN, 0.2),
        (Flags::ASYNACK, 0.3),
        (Flags::AFINACK, 0.1),
        (Flags::PARITY_OR_UP_TO, 0.3),
        (Flags::ASK_OR_NO_NUMBER, 0.2),
        (Flags::BLOCK_END, 0.2),
    ] {
        flags = flags.with_if(rng.chance(probability), flag);
    }
    let payload: Bytes = match kind {
        Kind::Data if flags.has(Flags::PARITY_OR_UP_TO) && service == TransportService::Adaptive => {
            let prefix =
                ParityPrefix { sources: 1 + rng.below(5) as u8, is_end: rng.chance(0.3), last_bytes: 8 };
            [&prefix.encode()[..], &[7; 16]].concat().into()
        }
        Kind::Data if rng.chance(0.2) => Bytes::new(),
        // The length of a bundle, and its bytes.
        Kind::Data => [&[0, 0, 0, 0, 0, 0, 0, 24][..], &[5; 8]].concat().into(),
        Kind::Acknowledgement | Kind::Nack => encode_numbers((0..rng.below(4)).map(|_| rng.below(12) as u32)),
        Kind::Report => report(rng).encode(),
        Kind::Refusal => vec![rng.below(8) as u8].into(),
        Kind::Withdrawal => Bytes::new(),
    };
    let group = (rng.below(2) as u32) << 20;
    let numbers = if rng.chance(0.1) { 1 << 21 } else { 70 };
    let (here, there) = (rng.below(3) as u16, BUNDLES_PORT);
    let is_of_sender = matches!(kind, Kind::Data | Kind::Withdrawal);
    let (source_port, destination_port) = if is_of_sender { (here, there) } else { (there, here) };
    let strength = if rng.chance(0.3) { 2 } else { 0 };
    let header = Header {
        source_port,
        destination_port,
        kind,
        service,
        precedence: Precedence::Routine,
        header_in_code: false,
        in_blocks: service == TransportService::Adaptive || rng.chance(0.1),
        strength,
        flags,
        sequence: group + rng.below(numbers) as u32,
        timestamp: rng.below(1 << 20) as u32,
        length: payload.len() as u16,
    };
    Packet { header, payload }
}
