//! Packets, octet by octet, and what bit errors do to them.

use crate::aerotp::wire::{Flags, HEADER_BYTES, Header, Kind, Packet, ParityPrefix, Received, Unrecognised};
use crate::aerotp::{Config, model};
use crate::rng::Rng;
use crate::service::{Precedence, TransportService};
use bytes::Bytes;

fn header(strength: u8, header_in_code: bool, length: usize) -> Header {
    Header {
        source_port: 0x1234,
        destination_port: 0x5678,
        kind: Kind::Nack,
        service: TransportService::NackMack,
        precedence: Precedence::Immediate,
        header_in_code,
        in_blocks: true,
        strength,
        flags: Flags::ASYN.with(Flags::BLOCK_END),
        sequence: 0x0102_0304,
        timestamp: 0x0506_0708,
        length: length as u16,
    }
}

fn packet(rng: &mut Rng, strength: u8, header_in_code: bool, length: usize) -> Packet {
    let mut payload = vec![0; length];
    rng.fill(&mut payload);
    Packet { header: header(strength, header_in_code, length), payload: payload.into() }
}

#[test]
fn a_packet_is_laid_out_as_documented() {
    let packet = Packet { header: header(0, false, 2), payload: Bytes::from_static(b"ab") };
    let bytes = packet.to_bytes();
    assert_eq!(bytes[..18], [0x12, 0x34, 0x56, 0x78, 0x12, 0x39, 0, 0x41, 1, 2, 3, 4, 5, 6, 7, 8, 0, 2]);
    assert_eq!((&bytes[20..22], bytes.len()), (&b"ab"[..], 26));
    assert_eq!(bytes[22..], crate::codec::crc::crc32(b"ab").to_be_bytes());
    let read = Received::decode(&bytes, None).expect("a packet");
    assert_eq!((read.header, read.payload, read.is_intact), (packet.header, packet.payload, true));
    // The paper counts 365, without UDP and a checksum.
    assert_eq!(Config::macks_max(1_472), 363);
    assert_eq!(Packet { header: header(16, false, 0), payload: Bytes::new() }.to_bytes().len(), HEADER_BYTES);
}

#[test]
fn wrong_bits_of_the_payload_are_corrected_and_those_of_the_header_are_not() {
    let mut rng = Rng::new(1);
    for round in 0..200 {
        let strength = [1, 2, 4, 8, 16][round % 5];
        let length = 1 + rng.below(1_400) as usize;
        let packet = packet(&mut rng, strength, false, length);
        let bytes = packet.to_bytes();
        let mut wrong = bytes.to_vec();
        // A burst of as many octets as the code corrects if it hits one word.
        let start = HEADER_BYTES + rng.below((bytes.len() - HEADER_BYTES) as u64) as usize;
        let end = (start + usize::from(strength)).min(bytes.len());
        wrong[start..end].iter_mut().for_each(|octet| *octet ^= 0xff);
        let read = Received::decode(&wrong.into(), None).expect("its header is intact");
        assert!(read.is_intact && read.payload == packet.payload, "round {round}");
        let mut wrong = bytes.to_vec();
        wrong[rng.below(HEADER_BYTES as u64) as usize] ^= 1 << rng.below(8);
        assert_eq!(Received::decode(&wrong.into(), None), Err(Unrecognised::Header));
        assert_eq!(Received::decode(&bytes.slice(..bytes.len() - 1), None), Err(Unrecognised::Length));
    }
}

#[test]
fn a_header_inside_the_code_is_corrected_with_the_payload() {
    let mut rng = Rng::new(2);
    for place in 0..HEADER_BYTES + 40 {
        let packet = packet(&mut rng, 1, true, 1_000);
        let mut wrong = packet.to_bytes().to_vec();
        wrong[place] ^= 0x10;
        let read = Received::decode(&wrong.into(), Some(1)).expect("one wrong octet is corrected");
        assert_eq!((read.header, &read.payload, read.correction.bits), (packet.header, &packet.payload, 1));
    }
    // Wrong octets in the header, more than the code corrects.
    let packet = packet(&mut rng, 1, true, 1_000);
    let mut wrong = packet.to_bytes().to_vec();
    (wrong[0], wrong[10], wrong[19]) = (!wrong[0], !wrong[10], !wrong[19]);
    assert_eq!(Received::decode(&wrong.into(), Some(1)), Err(Unrecognised::Header));
    // In the second word: recognised, and not intact.
    let mut wrong = packet.to_bytes().to_vec();
    (wrong[300], wrong[310], wrong[320]) = (!wrong[300], !wrong[310], !wrong[320]);
    let read = Received::decode(&wrong.into(), Some(1)).expect("the first word is intact");
    assert!(!read.is_intact && read.header == packet.header);
}

/// Flips each bit with this probability.
fn noisy(rng: &mut Rng, bytes: &Bytes, ber: f64) -> Bytes {
    let mut out = bytes.to_vec();
    let mut at = rng.geometric(ber);
    while at < 8 * out.len() as u64 {
        out[(at / 8) as usize] ^= 1 << (at % 8);
        at += 1 + rng.geometric(ber);
    }
    out.into()
}

#[test]
fn closed_forms_are_those_of_packets_on_a_channel() {
    let (mut rng, rounds) = (Rng::new(3), 3_000);
    for (strength, ber) in [(0, 1e-4), (1, 1e-4), (2, 3e-4), (4, 1e-3)] {
        let packet = packet(&mut rng, strength, false, 1_400);
        let (bytes, mut headers, mut payloads) = (packet.to_bytes(), 0, 0);
        for _ in 0..rounds {
            match Received::decode(&noisy(&mut rng, &bytes, ber), None) {
                Err(_) => headers += 1,
                Ok(read) => payloads += u32::from(!read.is_intact),
            }
        }
        let close = |count: u32, of: f64, probability: f64| {
            let error = (probability * (1.0 - probability) / of).sqrt();
            let share = f64::from(count) / of;
            assert!(
                (share - probability).abs() < 4.0 * error + 1e-3,
                "{share} {probability} {strength} {ber}"
            );
        };
        close(headers, rounds.into(), model::segment_error_probability(ber, HEADER_BYTES as f64));
        let recognised = f64::from(rounds - headers);
        close(payloads, recognised, model::payload_failure_probability(ber, 1_400, strength));
    }
    let packet = packet(&mut rng, 1, true, 1_400);
    let (bytes, mut headers, mut payloads) = (packet.to_bytes(), 0, 0);
    for _ in 0..rounds {
        match Received::decode(&noisy(&mut rng, &bytes, 2e-4), Some(1)) {
            Err(_) => headers += 1,
            Ok(read) => payloads += u32::from(!read.is_intact),
        }
    }
    let (header, payload) = model::coded_header_failure_probabilities(2e-4, 1_400, 1);
    let (lost, bad) = (f64::from(headers) / f64::from(rounds), f64::from(payloads) / f64::from(rounds));
    // Four standard errors.
    assert!(
        (lost - header).abs() < 0.01 && (bad - payload).abs() < 0.034,
        "{lost} {header}, {bad} {payload}"
    );
}

#[test]
fn a_block_has_no_empty_symbols() {
    let prefix = |last_bytes| ParityPrefix { sources: 2, is_end: true, last_bytes };
    let read = |last_bytes| ParityPrefix::decode(&[&prefix(last_bytes).encode()[..], b"abc"].concat());
    assert_eq!([0, 1, 3, 4].map(read), [None, Some(prefix(1)), Some(prefix(3)), None]);
}
