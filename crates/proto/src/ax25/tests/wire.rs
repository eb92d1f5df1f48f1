use crate::ax25::hdlc::{self, Decoder, Encoder};
use crate::ax25::segment::{InvalidSegment, Reassembler, cut, packet_bytes_max};
use crate::ax25::{
    Address, Callsign, CallsignError, CommandResponse, Control, Frame, Modulo, OptionalFunctions, Parameters,
    RadioParameters, Recovery, Supervisory, Unnumbered, pid,
};
use crate::codec::DecodeError;
use crate::rng::Rng;
use crate::time::Duration;
use bytes::{Bytes, BytesMut};

fn call(text: &str) -> Callsign {
    text.parse().unwrap()
}

/// Figure 3.4: an I frame from N7LEM to NJ7P.
const FIGURE_3_4: [u8; 16] =
    [0x9c, 0x94, 0x6e, 0xa0, 0x40, 0x40, 0xe0, 0x9c, 0x6e, 0x98, 0x8a, 0x9a, 0x40, 0x61, 0x3e, 0xf0];

/// Figure 3.8: the same frame, repeated by N7OO-1.
const FIGURE_3_8: [u8; 23] = [
    0x9c, 0x94, 0x6e, 0xa0, 0x40, 0x40, 0xe0, 0x9c, 0x6e, 0x98, 0x8a, 0x9a, 0x40, 0x60, 0x9c, 0x6e, 0x9e,
    0x9e, 0x40, 0x40, 0xe3, 0x3e, 0xf0,
];

#[test]
fn the_figures_frames_are_read_and_written() {
    let mut input = Bytes::from_static(&FIGURE_3_4);
    let frame = Frame::decode(&mut input, Modulo::Eight).unwrap();
    assert_eq!((frame.address.source, frame.address.destination), (call("N7LEM"), call("NJ7P")));
    assert_eq!(frame.address.role, CommandResponse::Command);
    assert_eq!(frame.control, Control::Information { send: 7, receive: 1, poll: true });
    assert_eq!(frame.pid, pid::NONE);
    assert_eq!(frame.to_bytes(Modulo::Eight), FIGURE_3_4[..]);

    let mut input = Bytes::from_static(&FIGURE_3_8);
    let mut frame = Frame::decode(&mut input, Modulo::Eight).unwrap();
    assert!(frame.address.arrived());
    assert_eq!(frame.address.way_back(), [call("N7OO-1")]);
    // The figure shows a frame that was repeated: its octets contain the digipeater's H bit.
    assert_eq!(frame.to_bytes(Modulo::Eight), FIGURE_3_8[..]);
    frame.address.path[0].repeated = false;
    assert!(!frame.address.arrived());
}

#[test]
fn control_fields_have_the_tables_octets() {
    let bare = |control, modulo| {
        let address = Address::new(call("A"), call("B"), CommandResponse::Command, &[]);
        Frame::bare(address, control).to_bytes(modulo).slice(14..)
    };
    let unnumbered = |function, poll_final| Control::Unnumbered { function, poll_final };
    let supervisory = |function, receive, poll_final| Control::Supervisory { function, receive, poll_final };
    for (control, modulo, octets) in [
        (unnumbered(Unnumbered::SetModeExtended, true), Modulo::Extended, &[0x7f][..]),
        (unnumbered(Unnumbered::SetMode, true), Modulo::Eight, &[0x3f]),
        (unnumbered(Unnumbered::Disconnect, true), Modulo::Eight, &[0x53]),
        (unnumbered(Unnumbered::DisconnectedMode, true), Modulo::Eight, &[0x1f]),
        (unnumbered(Unnumbered::Acknowledge, true), Modulo::Eight, &[0x73]),
        (unnumbered(Unnumbered::FrameReject, false), Modulo::Eight, &[0x87]),
        (unnumbered(Unnumbered::ExchangeIdentification, true), Modulo::Eight, &[0xbf]),
        (unnumbered(Unnumbered::Test, false), Modulo::Eight, &[0xe3]),
        // Of a later version: all five bits of the function are preserved.
        (unnumbered(Unnumbered::Unknown(0x8b), true), Modulo::Eight, &[0x9b]),
        (unnumbered(Unnumbered::Unknown(0x8b), false), Modulo::Eight, &[0x8b]),
        (supervisory(Supervisory::ReceiveReady, 5, false), Modulo::Eight, &[0xa1]),
        (supervisory(Supervisory::ReceiveNotReady, 0, true), Modulo::Eight, &[0x15]),
        (supervisory(Supervisory::Reject, 1, false), Modulo::Eight, &[0x29]),
        (supervisory(Supervisory::SelectiveReject, 7, false), Modulo::Eight, &[0xed]),
        (supervisory(Supervisory::Reject, 100, true), Modulo::Extended, &[0x09, 0xc9]),
    ] {
        assert_eq!(bare(control, modulo), *octets, "{control:?}");
    }
    let information = Control::Information { send: 127, receive: 3, poll: true };
    assert_eq!(bare(information, Modulo::Extended), [0xfe, 0x07, 0][..]);
}

#[test]
fn what_is_written_is_read_back() {
    let mut rng = Rng::new(7);
    for _ in 0..2000 {
        let modulo = if rng.below(2) == 0 { Modulo::Eight } else { Modulo::Extended };
        let path: Vec<Callsign> =
            ["N7OO-1", "W1AW", "EI7IG-15"][..rng.below(4) as usize].iter().map(|hop| call(hop)).collect();
        let role = [CommandResponse::Command, CommandResponse::Response, CommandResponse::Unspecified(false)]
            [rng.below(3) as usize];
        let mut address = Address::new(call("G0HHW-9"), call("X"), role, &path);
        address.path.iter_mut().for_each(|hop| hop.repeated = true);
        let number = |rng: &mut Rng| rng.below(u64::from(modulo.count())) as u8;
        let control = match rng.below(3) {
            0 => Control::Information {
                send: number(&mut rng),
                receive: number(&mut rng),
                poll: rng.below(2) == 0,
            },
            1 => Control::Supervisory {
                function: Supervisory::SelectiveReject,
                receive: number(&mut rng),
                poll_final: rng.below(2) == 0,
            },
            _ => Control::Unnumbered { function: Unnumbered::Information, poll_final: rng.below(2) == 0 },
        };
        let pid = if control.has_pid() { rng.below(256) as u8 } else { 0 };
        let information: Bytes = (0..rng.below(300)).map(|_| rng.below(256) as u8).collect();
        let frame = Frame { address, control, pid, information };
        let mut bytes = frame.to_bytes(modulo);
        assert_eq!(bytes.len(), frame.header_bytes(modulo) + frame.information.len());
        assert_eq!(Frame::decode(&mut bytes, modulo), Ok(frame));
    }
}

#[test]
fn what_is_no_frame_is_refused() {
    let decode = |bytes: &[u8]| Frame::decode(&mut Bytes::copy_from_slice(bytes), Modulo::Eight);
    for length in 0..FIGURE_3_4.len() {
        assert_eq!(decode(&FIGURE_3_4[..length]), Err(DecodeError::Incomplete), "{length} bytes");
    }
    // Lower case, a space in the middle, an end in the middle, a ninth digipeater.
    let broken = |at: usize, octet: u8| {
        let mut bytes = FIGURE_3_4;
        bytes[at] = octet;
        decode(&bytes)
    };
    assert!(matches!(broken(0, b'n' << 1), Err(DecodeError::Invalid { .. })));
    assert!(matches!(broken(1, b' ' << 1), Err(DecodeError::Invalid { .. })));
    assert!(matches!(broken(2, 0x6f), Err(DecodeError::Invalid { .. })));
    assert!(matches!(broken(6, 0xe1), Err(DecodeError::Invalid { .. })));
    let mut long = FIGURE_3_8[..14].to_vec();
    (0..9).for_each(|_| long.extend_from_slice(&[0x9c, 0x6e, 0x9e, 0x9e, 0x40, 0x40, 0xe2]));
    assert_eq!(decode(&long), Err(DecodeError::Limit { what: "digipeaters" }));
    // SABM has no information field.
    let mut sabm = FIGURE_3_4[..14].to_vec();
    sabm.extend_from_slice(&[0x3f, 0x00]);
    assert!(matches!(decode(&sabm), Err(DecodeError::Invalid { .. })));
}

#[test]
fn callsigns_say_what_is_wrong_with_them() {
    for (text, wrong) in [
        ("", CallsignError::Letters),
        ("TOOLONG", CallsignError::Letters),
        ("EI 7IG", CallsignError::Letters),
        ("EI7IG-16", CallsignError::Ssid),
        ("EI7IG-", CallsignError::Ssid),
        ("EI7IG-x", CallsignError::Ssid),
        ("EI7IG-1-2", CallsignError::Ssid),
    ] {
        assert_eq!(text.parse::<Callsign>(), Err(wrong), "{text:?}");
    }
    assert_eq!(call("ei7ig-3").to_string(), "EI7IG-3");
    assert_eq!(call("ei7ig-0").to_string(), "EI7IG");
}

#[test]
fn a_callsign_of_an_example_is_nobodys() {
    assert!(["N0CALL", "N0CALL-7", "NOCALL-15"].map(call).iter().all(Callsign::is_placeholder));
    assert!(!["N7LEM", "N0CALX", "0CALL"].map(call).iter().any(Callsign::is_placeholder));
}

/// Each frame has its check sequence and one flag in addition to its bytes, and the first frame has one more flag.
#[test]
fn frames_take_their_bits_on_the_air() {
    let radio = RadioParameters { rate_bps: 1200, ..RadioParameters::default() };
    // 34 bytes, 2 x 3 around them and 1: 328 bits, and a sixteenth for stuffing makes 348.
    assert_eq!(radio.air_time(2, 34), Duration::from_millis(290));
    // 40 bytes, 10 x 3 and 1: 568 bits and 35.
    assert_eq!(radio.air_time(10, 40), Duration::from_micros(502_500));
}

#[test]
fn identification_has_the_values_of_figure_4_5() {
    let options = |recovery, modulo| Some(OptionalFunctions { recovery, modulo, segmenter: false });
    let encode = |parameters: &Parameters| {
        let mut output = BytesMut::new();
        parameters.encode(&mut output);
        output.freeze()
    };
    let selective = Parameters {
        full_duplex: Some(false),
        options: options(Recovery::SelectiveReject, Modulo::Extended),
        information_bytes_max: Some(256),
        window_frames: Some(32),
        acknowledge_timer: Some(Duration::from_millis(4096)),
        retries: Some(10),
    };
    let bytes = encode(&selective);
    let expected = [
        0x82, 0x80, 0x00, 0x17, 2, 2, 0x21, 0x00, 3, 3, 0x84, 0xa8, 0x02, 6, 2, 0x08, 0x00, 8, 1, 32, 9, 2,
        0x10, 0x00, 10, 1, 10,
    ];
    assert_eq!(bytes, expected[..]);
    assert_eq!(Parameters::decode(&mut bytes.clone()), Ok(selective.clone()));

    let plain = Parameters { options: options(Recovery::Reject, Modulo::Eight), ..Parameters::default() };
    assert_eq!(encode(&plain)[4..], [3, 3, 0x82, 0xa4, 0x02]);
    // The lesser function, the larger count, the other's limits.
    let agreed = selective.agree(&Parameters { retries: Some(3), window_frames: Some(2), ..plain });
    assert_eq!(agreed.options, options(Recovery::Reject, Modulo::Eight));
    assert_eq!((agreed.retries, agreed.window_frames), (Some(10), Some(2)));

    // Figure 4.6's example, which sets more bits than the figure's own rules allow.
    let example = [
        0x82, 0x80, 0x00, 0x17, 2, 2, 0x22, 0x00, 3, 3, 0x82, 0xa8, 0x22, 6, 2, 0x04, 0x00, 8, 1, 2, 9, 2,
        0x10, 0x00, 10, 1, 3,
    ];
    let found = Parameters::decode(&mut Bytes::copy_from_slice(&example)).unwrap();
    assert_eq!(
        (found.information_bytes_max, found.window_frames, found.retries),
        (Some(128), Some(2), Some(3))
    );
    assert!(Parameters::decode(&mut Bytes::from_static(&[0x82, 0x80, 0, 9, 2, 2, 0x21])).is_err());
    assert!(Parameters::decode(&mut Bytes::from_static(&[0x82, 0x80, 0, 3, 2, 9, 0x21])).is_err());
}

#[test]
fn frames_go_through_flags_stuffing_and_check_sequence() {
    let mut rng = Rng::new(3);
    let frames: Vec<Vec<u8>> = (0..200)
        .map(|_| {
            // Many ones, which cause much stuffing.
            let ones = rng.below(3) == 0;
            (0..15 + rng.below(280)).map(|_| if ones { 0xff } else { rng.below(256) as u8 }).collect()
        })
        .collect();
    let mut encoder = Encoder::default();
    let mut bits_due = 8;
    encoder.flag();
    for frame in &frames {
        encoder.frame(frame);
        encoder.flag();
        bits_due += hdlc::air_bits(frame) + hdlc::FLAG_BITS;
    }
    let (bytes, bits) = encoder.finish();
    assert_eq!(bits, bits_due);
    let mut decoder = Decoder::new(330);
    let heard = (0..bits).filter_map(|bit| decoder.bit(bytes[bit as usize / 8] >> (bit % 8) & 1 == 1));
    let heard: Vec<Vec<u8>> = heard.map(|frame| frame.to_vec()).collect();
    assert_eq!(heard, frames);
    assert_eq!((decoder.heard().frames, decoder.heard().damaged, decoder.heard().dropped), (200, 0, 0));
}

#[test]
fn the_check_sequence_is_hdlcs_low_octet_first() {
    let mut encoder = Encoder::default();
    // Fifteen octets without five consecutive ones, so that nothing is stuffed.
    let frame = [0x10; 15];
    encoder.frame(&frame);
    let (bytes, bits) = encoder.finish();
    let check = crate::codec::crc::crc16_x25(&frame).to_le_bytes();
    assert_eq!(crate::codec::crc::crc16_x25(b"123456789"), 0x906e);
    assert!(bits >= 17 * 8 && bytes.starts_with(&frame));
    if bits == 17 * 8 {
        assert_eq!(bytes[15..], check);
    }
}

#[test]
fn damaged_bits_never_make_a_frame() {
    let mut rng = Rng::new(11);
    let frame: Vec<u8> = (0..100_u8).map(|octet| octet.wrapping_mul(7)).collect();
    let mut encoder = Encoder::default();
    encoder.flag();
    encoder.frame(&frame);
    encoder.flag();
    let (bytes, bits) = encoder.finish();
    let mut wrong = 0;
    for _ in 0..5000 {
        // Up to three bit errors: the check sequence detects all of them, except where they create or destroy flags and
        // stuffing.
        let flips: Vec<u64> = (0..1 + rng.below(3)).map(|_| rng.below(bits)).collect();
        let mut decoder = Decoder::new(330);
        for bit in 0..bits {
            let flipped = flips.iter().filter(|flip| **flip == bit).count() % 2 == 1;
            let one = (bytes[bit as usize / 8] >> (bit % 8) & 1 == 1) != flipped;
            if let Some(heard) = decoder.bit(one) {
                wrong += usize::from(heard != frame);
            }
        }
    }
    // Sixteen bits miss one error in 65,536.
    assert!(wrong <= 3, "{wrong} of 5000 damaged frames passed");
}

#[test]
fn long_packets_are_cut_and_put_together() {
    for length in [0, 1, 255, 256, 257, 509, 510, 511, 7182, packet_bytes_max(256) as usize] {
        let packet: Bytes = (0..length).map(|octet| octet as u8).collect();
        let segments = cut(pid::NONE, packet.clone(), 256);
        assert!(segments.iter().all(|(_, information)| information.len() <= 256));
        assert!(segments.len() <= 128);
        let mut assembler = Reassembler::default();
        let whole: Vec<_> = segments
            .into_iter()
            .filter_map(|(protocol, information)| assembler.hear(protocol, information).unwrap())
            .collect();
        assert_eq!(whole, [(pid::NONE, packet)], "{length} bytes");
    }
    // The octets of existing stations: count with the first bit, protocol, data.
    let segments = cut(pid::INTERNET, Bytes::from(vec![7; 300]), 256);
    assert_eq!(segments[0].1[..3], [0x81, pid::INTERNET, 7]);
    assert_eq!((segments[0].1.len(), segments[1].1[0], segments[1].1.len()), (256, 0, 47));
}

#[test]
fn segments_that_do_not_follow_are_dropped() {
    let segment = |octets: &'static [u8]| Bytes::from_static(octets);
    let mut assembler = Reassembler::default();
    assert_eq!(assembler.hear(pid::SEGMENT, segment(&[0x01, 1])), Err(InvalidSegment));
    assert_eq!(assembler.hear(pid::SEGMENT, segment(&[])), Err(InvalidSegment));
    assert_eq!(assembler.hear(pid::SEGMENT, segment(&[0x82, 0xf0, 1])), Ok(None));
    assert_eq!(assembler.hear(pid::SEGMENT, segment(&[0x00, 1])), Err(InvalidSegment));
    assert_eq!(assembler.hear(pid::SEGMENT, segment(&[0x81, 0xf0, 1])), Ok(None));
    assert_eq!(assembler.hear(pid::NONE, segment(&[5])), Err(InvalidSegment));
    assert_eq!(assembler.hear(pid::NONE, segment(&[5])), Ok(Some((pid::NONE, segment(&[5])))));
}
