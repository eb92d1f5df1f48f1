//! LTP over UI frames of AX.25, from an amateur satellite to the ground, in virtual time; and its segments in captures, as
//! Wireshark reads them.

use bytes::{Bytes, BytesMut};
use longwire_lab::protocols::{self, Medium};
use longwire_lab::run::{Outcome, Setup, Wanted};
use longwire_lab::scenario::Scenario;
use longwire_lab::trace::{CapturedFrame, NodeInterface, pcapng};
use longwire_proto::ltp::wire::{
    CancelReason, Content, DataKind, DataSegment, Extension, Report, Segment, Serials, SessionId,
};
use longwire_proto::tcp::wire::Ipv4Header;
use longwire_proto::time::Instant;
use longwire_sim::FrameFate;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

/// Bytes of a UI frame before its information: two addresses, control and protocol identifier.
const UI_HEADER_BYTES: usize = 16;

fn play(text: &str, run: u32, frames: bool) -> Outcome {
    let scenario = Scenario::parse(text, "test").unwrap();
    let setup = Setup::new(scenario, Path::new(".")).unwrap_or_else(|error| panic!("{text}: {error}"));
    setup.run(run, Wanted { frames, ..Wanted::default() })
}

/// Time of the passes until this time: eight minutes of every 95, from the start.
fn pass_time_s(until_s: f64) -> f64 {
    let whole = (until_s / 5700.0).floor();
    480.0 * whole + (until_s - 5700.0 * whole).min(480.0)
}

/// 1.2 MB need more than two passes, although one frame of twenty is lost. The bundle of one pass continues in the next one.
#[test]
fn a_bundle_arrives_over_three_passes_near_their_limit_and_nothing_acknowledged_is_sent_again() {
    for run in 0..2 {
        let text = "protocol = 'ltp'\n[workload]\nbytes = 1200000\n[[link]]\nprofile = 'leo-9600'";
        let outcome = play(text, run, true);
        assert!(outcome.delivered, "{:?} {:?}", outcome.missed, outcome.failures);
        let took_s = pass_time_s(outcome.transfer_s.unwrap());
        let limit_s = pass_time_s(outcome.limit.streaming.mean_s);
        assert!(limit_s > 2.0 * 480.0, "{limit_s} s of passes");
        assert!(limit_s / took_s > 0.85, "{took_s} s of passes instead of {limit_s} s");
        let hop = &outcome.hops[0];
        let lost = hop.damaged_frames as f64 / outcome.frames.len() as f64;
        assert!((0.03..0.06).contains(&lost), "{lost} of all frames are lost");
        let (repeated, twice) = sent_again(&outcome);
        assert!(repeated > 100, "{repeated} segments are repeated");
        assert_eq!(twice, 0, "of {repeated} repeated segments these were acknowledged");
    }
}

/// Number of data segments with bytes that were sent before, and of those whose bytes the source knew to have arrived.
fn sent_again(outcome: &Outcome) -> (usize, usize) {
    // Reports count from the time at which they have arrived, and data from that at which they leave.
    let mut events = Vec::new();
    for frame in &outcome.frames {
        let is_report = frame.from.node == "rx";
        let at = if is_report { frame.received } else { frame.sent };
        let Some(at) = at.filter(|_| !is_report || frame.fate == FrameFate::Delivered) else { continue };
        let mut segment = frame.bytes.slice(UI_HEADER_BYTES..);
        events.push((at, Segment::decode(&mut segment).expect("a segment").content));
    }
    events.sort_by_key(|(at, _)| *at);
    let (mut claims, mut sent_up_to): (Vec<(u64, u64)>, u64) = (Vec::new(), 0);
    let (mut repeated, mut twice) = (0, 0);
    for (_, content) in events {
        match content {
            Content::Report(report) => claims.extend(report.claims),
            Content::Data(data) if data.offset < sent_up_to => {
                repeated += 1;
                let is_known = claims.iter().any(|(from, to)| *from <= data.offset && data.end() <= *to);
                twice += usize::from(is_known);
            }
            Content::Data(data) => sent_up_to = data.end(),
            _ => {}
        }
    }
    (repeated, twice)
}

/// Each UI frame has 19 bytes around its information, and no packet of IP.
#[test]
fn the_frames_are_those_of_ax25() {
    let text = "protocol = 'ltp'\n[workload]\nbytes = 5000\n[[link]]\nprofile = 'leo-9600'\nber = 0";
    let outcome = play(text, 0, true);
    assert!(outcome.delivered);
    let first = &outcome.frames[0];
    assert_eq!((first.bytes.len(), first.bytes[14], first.bytes[15]), (UI_HEADER_BYTES + 256, 0x03, 0xf0));
    let took = first.received.expect("it arrives").saturating_since(first.sent.expect("it leaves"));
    let frame_s = 275.0 * 8.0 / 9600.0;
    assert!((took.as_secs_f64() - 0.007 - frame_s).abs() < 1e-6, "{took:?} with check sequence and flag");
    let fitting = |medium| {
        let all = protocols::PROTOCOLS.iter().filter(move |protocol| protocol.runs_on(medium));
        all.map(|protocol| protocol.name).filter(|name| *name != "dummy").collect::<Vec<_>>()
    };
    assert_eq!(fitting(Medium::UiLine), ["ltp", "norm"]);
    assert!(!fitting(Medium::Radio).contains(&"ltp"), "its reports do not wait for their turn");
    let refused = Scenario::parse(&text.replace("'ltp'", "'tcpcl4'"), "test").unwrap();
    let refused = Setup::new(refused, Path::new(".")).err().expect("it needs IP").to_string();
    assert!(refused.contains("carries UI frames of AX.25"), "{refused}");
}

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

/// Type of a segment as Wireshark shows it, and the fields of [`FIELDS`], empty where the segment has none.
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
