//! Messages, and those of another implementation.

use crate::codec::DecodeError;
use crate::norm::quantities::{group_size_of, loss_of, rate_of, time_of};
use crate::norm::wire::{
    Ack, AckContents, Body, CcFlags, Command, Data, FecScheme, Flags, Fti, Levels, Message, NodeId,
    PayloadId, RepairForm, is_message,
};
use bytes::Bytes;

/// Messages of NRL's implementation, by capture and number.
fn captured() -> Vec<(String, Bytes)> {
    let text = include_str!("../../../../../vectors/norm/messages.txt");
    let octets =
        |hex: &str| (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16)).collect();
    let message = |line: &str| {
        let (name, hex) = line.rsplit_once(' ').expect("a name and octets");
        let octets: Result<Vec<u8>, _> = octets(hex);
        (name.to_owned(), Bytes::from(octets.expect("hexadecimal digits")))
    };
    text.lines().filter(|line| !line.starts_with('#')).map(message).collect()
}

fn message(name: &str) -> Message {
    let (_, bytes) = captured().into_iter().find(|(other, _)| other == name).expect("it is captured");
    Message::decode(&mut bytes.clone()).expect("a message")
}

#[test]
fn captured_messages_are_read_and_written_alike() {
    let all = captured();
    assert!(all.len() > 30);
    for (name, bytes) in all {
        match Message::decode(&mut bytes.clone()) {
            Ok(message) => {
                assert_eq!(message.to_bytes(), bytes, "{name}");
                assert!(is_message(&bytes));
            }
            // Its symbols have 16 bits.
            Err(error) => {
                assert!(name.starts_with("uni_data_rs16 2"), "{name}: {error}");
                assert!(matches!(error, DecodeError::Unsupported { .. }), "{error}");
            }
        }
    }
}

#[test]
fn the_fields_of_captured_messages_are_those_of_the_capture() {
    let probe = message("uni_file_rs8 1");
    let Body::Command(command) = &probe.body else { panic!("{probe:?}") };
    assert_eq!((probe.sequence, probe.source, command.sender.instance), (0, NodeId(1), 4660));
    assert_eq!(time_of(command.sender.grtt).as_millis(), 266);
    assert_eq!((command.sender.backoff, group_size_of(command.sender.group_size)), (4, 1000));
    let Command::Cc { cc_sequence: 0, send_time, rate: Some(rate), nodes } = &command.command else {
        panic!("{command:?}")
    };
    assert_eq!((send_time.seconds, send_time.micros, nodes.len()), (1_795_228_201, 575_164, 0));
    assert_eq!(rate_of(*rate) as u64, 1_000_976);

    let Body::Info(info) = message("uni_file_rs8 3").body else { panic!("no INFO") };
    let sizes = Fti { object_bytes: 20_000, segment_bytes: 1_000, block_symbols: 8, parity_symbols: 4 };
    assert_eq!(
        (info.scheme, info.fti, &info.payload[..]),
        (FecScheme::ReedSolomon8, Some(sizes), &b"hello.txt"[..])
    );
    assert!(info.flags.has(Flags::FILE | Flags::INFO));

    let Body::Data(Data { scheme, id, fti, .. }) = message("uni_data_sb129_loss 3").body else {
        panic!("no DATA")
    };
    assert_eq!((scheme, id), (FecScheme::SmallBlock, PayloadId { block: 0, block_symbols: 15, symbol: 0 }));
    assert_eq!(fti.map(|fti| (fti.block_symbols, fti.parity_symbols)), Some((16, 8)));

    let Body::Nack(nack) = message("mc_data_rs8 158").body else { panic!("no NACK") };
    assert_eq!((nack.sender, nack.requests.len()), (NodeId(1), 5));
    let range = &nack.requests[3];
    assert_eq!((range.form, range.levels), (RepairForm::Ranges, Levels::SEGMENT));
    assert_eq!(
        range.items.iter().map(|item| (item.id.block, item.id.symbol)).collect::<Vec<_>>(),
        [(7, 15), (7, 17)]
    );

    let Body::Ack(Ack { contents, .. }) = message("uni_data_ack 27").body else { panic!("no ACK") };
    let id = PayloadId { block: 2, block_symbols: 0, symbol: 5 };
    assert_eq!(contents, AckContents::Flush { scheme: FecScheme::ReedSolomon8, object: 0, id });
}

/// One message of twenty was lost, and the path was idle: twice the rate of reception is stated.
#[test]
fn captured_feedback_for_congestion_control_has_its_meaning() {
    let Body::Command(command) = message("uni_data_cc_loss 5").body else { panic!("no CMD") };
    let Command::Cc { nodes, .. } = command.command else { panic!("no CC") };
    assert_eq!((nodes[0].node, nodes[0].flags), (NodeId(2), CcFlags::CLR | CcFlags::RTT | CcFlags::START));
    let Body::Ack(Ack { cc: Some(feedback), contents: AckContents::Cc, .. }) =
        message("uni_data_cc_loss 34").body
    else {
        panic!("no ACK")
    };
    assert_eq!((feedback.cc_sequence, feedback.flags), (10, CcFlags::CLR | CcFlags::RTT | CcFlags::LIMIT));
    assert_eq!((time_of(feedback.rtt).as_micros(), rate_of(feedback.rate) as u64), (76, 75_976));
    assert!((loss_of(feedback.loss, feedback.reserved) * 19.0 - 1.0).abs() < 1e-4, "one of nineteen");
}

#[test]
fn malformed_messages_are_refused() {
    let (_, flush) =
        captured().into_iter().find(|(name, _)| name == "uni_data_ack 26").expect("it is captured");
    let changed = |at: usize, octet: u8| {
        let mut bytes = flush.to_vec();
        bytes[at] = octet;
        Message::decode(&mut Bytes::from(bytes))
    };
    assert!(changed(0, 0x13).is_ok());
    for (at, octet) in [(0, 0x23), (0, 0x17), (1, 1), (1, 4), (1, 200), (13, 77)] {
        assert!(changed(at, octet).is_err(), "octet {at} is {octet:#x}");
    }
    for length in 0..20 {
        assert!(Message::decode(&mut flush.slice(..length)).is_err(), "{length} octets");
    }
    // An extension without a length, and one that extends beyond the header.
    let (_, info) =
        captured().into_iter().find(|(name, _)| name == "uni_file_rs8 3").expect("it is captured");
    for length in [0, 4] {
        let mut bytes = info.to_vec();
        bytes[17] = length;
        assert!(Message::decode(&mut Bytes::from(bytes)).is_err(), "{length} words");
    }
}
