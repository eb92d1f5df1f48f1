//! Codecs of radio controllers and of AX.25.

use super::codecs::{encoded, is_identity, is_stable};
use crate::ax25::{self, Control, Modulo, Supervisory, Unnumbered, hdlc, segment};
use crate::rng::Rng;
use crate::{agwpe, kiss};
use bytes::{Buf, BufMut, Bytes, BytesMut};

fn some_bytes(rng: &mut Rng) -> Bytes {
    let mut bytes = vec![0; rng.below(40) as usize];
    rng.fill(&mut bytes);
    bytes.into()
}

fn kiss_frame(rng: &mut Rng) -> kiss::Frame {
    let octet = rng.next_u32() as u8;
    let body = match rng.below(8) {
        0 => kiss::Command::TxDelay(octet),
        1 => kiss::Command::Persistence(octet),
        2 => kiss::Command::SetHardware(some_bytes(rng)),
        3 => kiss::Command::Poll,
        4 => kiss::Command::DataAcknowledged { token: rng.next_u32() as u16, bytes: some_bytes(rng) },
        5 => kiss::Command::Unknown { command: 9, bytes: some_bytes(rng) },
        _ => kiss::Command::Data(some_bytes(rng)),
    };
    kiss::Frame { port: rng.below(8) as u8, body }
}

/// Content of a KISS frame.
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

/// A serial line: the first byte selects the checksum and the length of the pieces. The same frames are found however
/// the input is cut, and again after they are encoded.
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

/// The first byte selects the content of the data.
pub(super) fn check_agwpe_data(bytes: &Bytes) -> bool {
    let Some(&choice) = bytes.first() else { return false };
    let data = bytes.slice(1..);
    match choice % 6 {
        1 => is_stable(&data, agwpe::Registered::decode, agwpe::Registered::encode),
        2 => is_identity(&data, agwpe::Queued::decode, agwpe::Queued::encode),
        4 => is_stable(&data, agwpe::Via::decode, agwpe::Via::encode),
        _ => is_stable(&data, agwpe::Ports::decode, agwpe::Ports::encode),
    }
}

pub(super) fn valid_agwpe_data(mut rng: Rng) -> Bytes {
    let choice = [1, 2, 4, 5][rng.below(4) as usize];
    let mut octets = [0; 12];
    rng.fill(&mut octets);
    encoded(|out: &mut BytesMut| {
        out.extend_from_slice(&[choice]);
        match choice {
            4 => {
                agwpe::Via(vec!["WIDE1-1".parse().unwrap_or_default(); 1 + rng.below(8) as usize]).encode(out)
            }
            5 => agwpe::Ports((0..rng.below(4) as u8).collect()).encode(out),
            _ => out.extend_from_slice(&octets),
        }
    })
}

fn callsign(rng: &mut Rng) -> ax25::Callsign {
    let names = ["EI7IG", "W1AW", "A", "QST4UU"];
    let text = format!("{}-{}", names[rng.below(4) as usize], rng.below(16));
    text.parse().unwrap_or_else(|_| panic!("{text} is a callsign"))
}

fn control(rng: &mut Rng, modulo: Modulo) -> Control {
    let number = |rng: &mut Rng| rng.below(u64::from(modulo.count())) as u8;
    let poll_final = rng.chance(0.5);
    match rng.below(3) {
        0 => Control::Information { send: number(rng), receive: number(rng), poll: poll_final },
        1 => {
            let functions = [
                Supervisory::ReceiveReady,
                Supervisory::ReceiveNotReady,
                Supervisory::Reject,
                Supervisory::SelectiveReject,
            ];
            let function = functions[rng.below(4) as usize];
            Control::Supervisory { function, receive: number(rng), poll_final }
        }
        _ => {
            let functions = [
                Unnumbered::SetModeExtended,
                Unnumbered::SetMode,
                Unnumbered::Disconnect,
                Unnumbered::DisconnectedMode,
                Unnumbered::Acknowledge,
                Unnumbered::FrameReject,
                Unnumbered::Information,
                Unnumbered::ExchangeIdentification,
                Unnumbered::Test,
            ];
            Control::Unnumbered { function: functions[rng.below(9) as usize], poll_final }
        }
    }
}

/// A frame with digipeaters or without, with information if its type allows it.
pub(crate) fn ax25_frame(rng: &mut Rng, modulo: Modulo) -> ax25::Frame {
    let roles = [
        ax25::CommandResponse::Command,
        ax25::CommandResponse::Response,
        ax25::CommandResponse::Unspecified(rng.chance(0.5)),
    ];
    let path: Vec<ax25::Callsign> = (0..rng.below(9) * rng.below(2)).map(|_| callsign(rng)).collect();
    let mut address = ax25::Address::new(callsign(rng), callsign(rng), roles[rng.below(3) as usize], &path);
    let repeated = rng.below(9) as usize;
    address.path.iter_mut().take(repeated).for_each(|hop| hop.repeated = true);
    let control = control(rng, modulo);
    let informs = match control {
        Control::Information { .. } => true,
        Control::Supervisory { function, .. } => function == Supervisory::SelectiveReject,
        Control::Unnumbered { function, .. } => matches!(
            function,
            Unnumbered::FrameReject
                | Unnumbered::Information
                | Unnumbered::ExchangeIdentification
                | Unnumbered::Test
        ),
    };
    let pid = if control.has_pid() { rng.next_u32() as u8 } else { 0 };
    ax25::Frame { address, control, pid, information: if informs { some_bytes(rng) } else { Bytes::new() } }
}

pub(super) fn check_ax25_frame(bytes: &Bytes, modulo: Modulo) -> bool {
    is_stable(
        bytes,
        |input| ax25::Frame::decode(input, modulo),
        |frame, out| {
            let before = out.len();
            frame.encode(out, modulo);
            assert_eq!(out.len() - before, frame.header_bytes(modulo) + frame.information.len());
        },
    )
}

pub(super) fn valid_ax25_frame(mut rng: Rng, modulo: Modulo) -> Bytes {
    ax25_frame(&mut rng, modulo).to_bytes(modulo)
}

/// The result of the negotiation is stable, too, and never exceeds either side's parameters.
pub(super) fn check_identification(bytes: &Bytes) -> bool {
    if let Ok(theirs) = ax25::Parameters::decode(&mut bytes.clone()) {
        let ours = identification(&mut Rng::new(bytes.len() as u64));
        let agreed = ours.agree(&theirs);
        if let (Some(ours), Some(theirs), Some(agreed)) = (ours.options, theirs.options, agreed.options) {
            assert!(agreed.recovery <= ours.recovery.min(theirs.recovery));
            assert!(agreed.modulo <= ours.modulo.min(theirs.modulo));
            assert!(!agreed.segmenter || (ours.segmenter && theirs.segmenter));
        }
        assert_eq!(agreed.window_frames, theirs.window_frames);
    }
    is_stable(bytes, ax25::Parameters::decode, ax25::Parameters::encode)
}

fn identification(rng: &mut Rng) -> ax25::Parameters {
    let recoveries =
        [ax25::Recovery::Reject, ax25::Recovery::SelectiveReject, ax25::Recovery::MultiSelectiveReject];
    let options = ax25::OptionalFunctions {
        recovery: recoveries[rng.below(3) as usize],
        modulo: if rng.chance(0.5) { Modulo::Eight } else { Modulo::Extended },
        segmenter: rng.chance(0.5),
    };
    let (timer_ms, shift) = (rng.next_u32(), rng.below(32) as u32);
    ax25::Parameters {
        full_duplex: rng.chance(0.8).then_some(rng.chance(0.5)),
        options: rng.chance(0.8).then_some(options),
        information_bytes_max: rng.chance(0.8).then_some(rng.below(5000) as u32),
        window_frames: rng.chance(0.8).then_some(rng.below(128) as u8),
        acknowledge_timer: rng
            .chance(0.5)
            .then_some(core::time::Duration::from_millis(u64::from(timer_ms >> shift))),
        retries: rng.chance(0.5).then_some(rng.next_u32() as u8),
    }
}

pub(super) fn valid_identification(mut rng: Rng) -> Bytes {
    encoded(|out| identification(&mut rng).encode(out))
}

/// Received bits, the low one of each octet first. The frames found are found again when they are sent again.
pub(super) fn check_hdlc(bytes: &Bytes) -> bool {
    let frames = on_the_air(bytes);
    let mut encoder = hdlc::Encoder::default();
    encoder.flag();
    let mut bits = hdlc::FLAG_BITS;
    for frame in &frames {
        encoder.frame(frame);
        encoder.flag();
        bits += hdlc::air_bits(frame) + hdlc::FLAG_BITS;
    }
    let (again, sent_bits) = encoder.finish();
    assert_eq!(bits, sent_bits, "the bits on the air are counted otherwise than they are sent");
    assert_eq!(on_the_air(&again), frames);
    !frames.is_empty()
}

fn on_the_air(bytes: &[u8]) -> Vec<Bytes> {
    const BYTES_MAX: usize = 60;
    let mut decoder = hdlc::Decoder::new(BYTES_MAX);
    let bits = bytes.iter().flat_map(|octet| (0..8).map(move |bit| octet >> bit & 1 == 1));
    let frames: Vec<Bytes> = bits.filter_map(|bit| decoder.bit(bit)).collect();
    let lengths = hdlc::FRAME_BYTES_MIN..=BYTES_MAX;
    assert!(frames.iter().all(|frame| lengths.contains(&frame.len())));
    assert_eq!(decoder.heard().frames, frames.len() as u64);
    frames
}

pub(super) fn valid_hdlc(mut rng: Rng) -> Bytes {
    let mut encoder = hdlc::Encoder::default();
    encoder.flag();
    for _ in 0..=rng.below(3) {
        let mut frame = vec![0; hdlc::FRAME_BYTES_MIN + rng.below(46) as usize];
        if rng.chance(0.7) {
            rng.fill(&mut frame);
        } else {
            frame.fill(0xff);
        }
        encoder.frame(&frame);
        (0..=rng.below(2)).for_each(|_| encoder.flag());
    }
    encoder.finish().0
}

/// Information fields in the order of their sequence numbers, each after its length and protocol identifier; the first
/// byte selects the field length into which the resulting packet is segmented again. Returns true if segments made a
/// packet.
pub(super) fn check_segments(bytes: &Bytes) -> bool {
    let mut input = bytes.clone();
    let Some((&choice, _)) = bytes.split_first() else { return false };
    input.advance(1);
    let (mut assembler, mut assembled, mut heard) = (segment::Reassembler::default(), false, 0);
    while input.len() >= 2 {
        let (length, protocol) = (usize::from(input.get_u8()), input.get_u8());
        let information = input.split_to(length.min(input.len()));
        heard += information.len();
        let Ok(Some((protocol, packet))) = assembler.hear(protocol, information) else { continue };
        assert!(packet.len() <= heard, "{} bytes of {heard}", packet.len());
        assembled |= cut_and_assembled(protocol, packet, u32::from(choice) + 2);
    }
    assembled
}

/// Returns true if it took several fields.
fn cut_and_assembled(protocol: u8, packet: Bytes, information_bytes_max: u32) -> bool {
    // The protocol identifier of segments is invalid for a packet, and longer packets are never sent.
    let most = segment::packet_bytes_max(information_bytes_max) as usize;
    if protocol == ax25::pid::SEGMENT || packet.len() > most {
        return false;
    }
    let fields = segment::cut(protocol, packet.clone(), information_bytes_max);
    assert!(fields.iter().all(|(_, field)| field.len() <= information_bytes_max as usize));
    let several = fields.len() > 1;
    let mut assembler = segment::Reassembler::default();
    let came = fields.into_iter().filter_map(|(protocol, field)| {
        assembler.hear(protocol, field).expect("its own segments belong together")
    });
    assert_eq!(came.collect::<Vec<_>>(), [(protocol, packet)]);
    several
}

pub(super) fn valid_segments(mut rng: Rng) -> Bytes {
    let choice = rng.below(20) as u8;
    encoded(|out| {
        out.put_u8(choice);
        for _ in 0..=rng.below(3) {
            let mut packet = vec![0; 23 + rng.below(60) as usize];
            rng.fill(&mut packet);
            for (protocol, field) in segment::cut(0xf0, packet.into(), u32::from(choice) + 2) {
                out.put_slice(&[field.len() as u8, protocol]);
                out.put_slice(&field);
            }
        }
    })
}
