//! What Wireshark reads in our captures. Each test says that it is skipped where there is no `tshark`.

use bytes::{Bytes, BytesMut};
use longwire_lab::trace::{CapturedFrame, FrameFate, NodeInterface, pcapng};
use longwire_proto::ltp::wire::{
    CancelReason, Content, DataKind, DataSegment, Extension, Report, Segment, Serials, SessionId,
};
use longwire_proto::tcp::wire::Ipv4Header;
use longwire_proto::time::Instant;
use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

const MOON: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const EARTH: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
/// Port of LTP over UDP (RFC 7122 3.4).
const PORT: u16 = 1113;

/// One frame for each datagram.
fn captured(datagrams: &[Bytes]) -> Vec<CapturedFrame> {
    let port = |node: &str| NodeInterface { node: node.into(), interface: 0 };
    let frame = |(number, datagram): (usize, &Bytes)| {
        let length = datagram.len() as u16 + 8;
        let header = Ipv4Header {
            service: 0,
            identification: number as u16,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            time_to_live: 64,
            protocol: 17,
            source: MOON,
            destination: EARTH,
            payload_bytes: length,
        };
        let mut bytes = BytesMut::new();
        header.encode(&mut bytes);
        // Without a checksum, which IPv4 permits.
        [PORT, PORT, length, 0].iter().for_each(|field| bytes.extend_from_slice(&field.to_be_bytes()));
        bytes.extend_from_slice(datagram);
        let at = Instant::from_millis(number as u64);
        CapturedFrame {
            sent: Some(at),
            received: Some(at),
            ended: at,
            from: port("TX"),
            to: port("RX"),
            bytes: bytes.freeze(),
            damaged: None,
            fate: FrameFate::Delivered,
        }
    };
    datagrams.iter().enumerate().map(frame).collect()
}

/// Values of the fields in each packet of the capture, by tshark; `None` without tshark.
fn dissected(name: &str, datagrams: &[Bytes], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let path = std::env::temp_dir().join(format!("longwire-{name}-{}.pcapng", std::process::id()));
    let mut out = Vec::new();
    pcapng::write(&mut out, &captured(datagrams), "TX").unwrap();
    fs::write(&path, out).unwrap();
    let mut command = Command::new("tshark");
    command.args(["-T", "fields", "-r"]).arg(&path);
    fields.iter().for_each(|field| {
        command.args(["-e", field]);
    });
    let output = command.output();
    fs::remove_file(&path).unwrap();
    let Ok(output) = output else {
        println!("skipped: there is no tshark");
        return None;
    };
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// What Wireshark shows of a segment: its type, and then the fields of [`FIELDS`], empty where the segment has none.
type Shown = (&'static str, [&'static str; 7]);

/// Offset and length of data; serial numbers of a checkpoint, of a report and of its acknowledgement; bounds; claims; reason.
const FIELDS: [&[&str]; 7] = [
    &["ltp.data.offset", "ltp.data.length"],
    &["ltp.data.chkp", "ltp.data.rpt"],
    &["ltp.rpt.sno", "ltp.rpt.chkp"],
    &["ltp.rpt.ack.sno"],
    &["ltp.rpt.lb", "ltp.rpt.ub"],
    &["ltp.rpt.clm.off", "ltp.rpt.clm.len"],
    &["ltp.cancel.code"],
];

/// Wireshark 4.0 takes an acknowledgement of a cancellation for malformed if nothing follows in its datagram, and reads no
/// extensions behind the content.
#[test]
fn every_type_of_segment_has_the_fields_that_we_wrote() {
    let session = SessionId { originator: 7, number: 300 };
    let data = |kind, offset, serials: Option<(u64, u64)>| {
        let serials = serials.map(|(checkpoint, report)| Serials { checkpoint, report });
        Content::Data(DataSegment { kind, client: 1, offset, serials, data: Bytes::from_static(b"abc") })
    };
    let claims = vec![(1000, 3000), (4000, 4500)];
    let report = Report { serial: 9, checkpoint: 200, upper: 6000, lower: 1000, claims };
    let all: [(Content, Shown); 12] = [
        (data(DataKind::Red, 0, None), ("0x00", ["0 3", "", "", "", "", "", ""])),
        (data(DataKind::Checkpoint, 1000, Some((200, 0))), ("0x01", ["1000 3", "200 0", "", "", "", "", ""])),
        (data(DataKind::EndOfRed, 127, Some((1, 5))), ("0x02", ["127 3", "1 5", "", "", "", "", ""])),
        (data(DataKind::EndOfRedAndBlock, 128, Some((1, 0))), ("0x03", ["128 3", "1 0", "", "", "", "", ""])),
        (data(DataKind::Green, 16_384, None), ("0x04", ["16384 3", "", "", "", "", "", ""])),
        (data(DataKind::EndOfBlock, 5, None), ("0x07", ["5 3", "", "", "", "", "", ""])),
        (Content::Report(report), ("0x08", ["", "", "9 200", "", "1000 6000", "0,3000 2000,500", ""])),
        (Content::ReportAck(200), ("0x09", ["", "", "", "200", "", "", ""])),
        (
            Content::CancelBySender(CancelReason::RetransmissionLimit),
            ("0x0c", ["", "", "", "", "", "", "0x02"]),
        ),
        (Content::CancelAckToSender, ("0x0d", ["", "", "", "", "", "", ""])),
        (
            Content::CancelByReceiver(CancelReason::SystemCancelled),
            ("0x0e", ["", "", "", "", "", "", "0x04"]),
        ),
        (Content::CancelAckToReceiver, ("0x0f", ["", "", "", "", "", "", ""])),
    ];
    let datagram = |(content, _): &(Content, Shown)| {
        let mut out = BytesMut::new();
        // The extension of an authenticated segment.
        let header = vec![Extension { tag: 0, value: Bytes::from_static(&[0]) }];
        Segment { header, ..Segment::new(session, content.clone()) }.encode(&mut out);
        if matches!(content, Content::CancelAckToSender | Content::CancelAckToReceiver) {
            Segment::new(session, Content::ReportAck(5)).encode(&mut out);
        }
        out.freeze()
    };
    let datagrams: Vec<Bytes> = all.iter().map(datagram).collect();
    let before =
        ["_ws.malformed", "_ws.expert.message", "ltp.session.orig", "ltp.session.number", "ltp.type"];
    let fields = [&before[..], &FIELDS.concat(), &["ltp.hdr.extn.val"]].concat();
    let Some(rows) = dissected("segments", &datagrams, &fields) else { return };
    assert_eq!(rows.len(), datagrams.len());
    for (row, (content, (kind, shown))) in rows.iter().zip(&all) {
        let [malformed, warning, originator, number, read] = &row[..before.len()] else { panic!("{row:?}") };
        assert_eq!([&malformed[..], warning], ["", ""], "{content:?}");
        assert_eq!([&originator[..], number], ["7", "300"], "{content:?}");
        assert_eq!(read, kind, "{content:?}");
        let mut values = row[before.len()..].iter();
        for (names, expected) in FIELDS.iter().zip(shown) {
            let values: Vec<&str> = values.by_ref().take(names.len()).map(String::as_str).collect();
            assert_eq!(values.join(" ").trim(), *expected, "{names:?} of {content:?}");
        }
        assert_eq!(values.next().map(String::as_str), Some("00"), "the extension of {content:?}");
    }
}
