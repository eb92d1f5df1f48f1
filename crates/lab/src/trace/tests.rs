use super::*;
use bytes::BytesMut;
use conversation::{Conversation, conversations};
use longwire_proto::tcp::wire::{Flags, TcpOptions};
use std::net::Ipv4Addr;

const MOON: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 1);
const ORBITER: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);
const DELAY_MS: u64 = 2000;

/// Scripted traffic of two nodes, frame by frame.
struct Dialogue {
    frames: Vec<CapturedFrame>,
    port: u16,
    first: u32,
}

impl Dialogue {
    /// Uses sequence numbers that wrap in the middle.
    fn new() -> Dialogue {
        Dialogue { frames: Vec::new(), port: 41_000, first: u32::MAX - 1500 }
    }

    fn frame(&mut self, at_ms: u64, up: bool, segment: Segment, fate: FrameFate) {
        let (from, to) = if up { (MOON, ORBITER) } else { (ORBITER, MOON) };
        let mut tcp = BytesMut::new();
        segment.encode(from, to, &mut tcp);
        let header = Ipv4Header {
            service: 0,
            identification: self.frames.len() as u16,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            time_to_live: 64,
            protocol: 6,
            source: from,
            destination: to,
            payload_bytes: tcp.len() as u16,
        };
        let mut bytes = BytesMut::new();
        header.encode(&mut bytes);
        bytes.extend_from_slice(&tcp);
        let bytes = bytes.freeze();
        let damaged = (fate == FrameFate::Damaged).then(|| {
            let mut wrong = BytesMut::from(&bytes[..]);
            let last = wrong.len() - 1;
            wrong[last] ^= 1;
            wrong.freeze()
        });
        let port = |node: &str, interface| NodeInterface { node: node.into(), interface };
        let (a, b) = (port("TX", 1), port("MX", 0));
        let (from, to) = if up { (a, b) } else { (b, a) };
        let sent = (fate != FrameFate::QueueFull).then(|| Instant::from_millis(at_ms));
        let arrives = matches!(fate, FrameFate::Delivered | FrameFate::Damaged | FrameFate::CheckFailed);
        let received = arrives.then(|| Instant::from_millis(at_ms + DELAY_MS));
        let ended = received.unwrap_or(Instant::from_millis(at_ms + 1));
        self.frames.push(CapturedFrame { sent, received, ended, from, to, bytes, damaged, fate });
    }

    /// Adds a segment of the caller: position, length of its data, and the acknowledged position.
    fn says(&mut self, at_ms: u64, flags: Flags, position: u32, length: usize, fate: FrameFate) {
        let segment = Segment {
            source_port: self.port,
            destination_port: 4556,
            sequence: self.first.wrapping_add(position),
            acknowledgement: 7001,
            flags,
            window: 65_535,
            urgent: 0,
            options: TcpOptions {
                window_scale: flags.contains(Flags::SYN).then_some(0),
                ..TcpOptions::default()
            },
            payload: Bytes::from(vec![0; length]),
        };
        self.frame(at_ms, true, segment, fate);
    }

    /// Adds a segment of the called node, with the acknowledged position.
    fn answers(&mut self, at_ms: u64, flags: Flags, up_to: u32, window: u16, fate: FrameFate) {
        let syn = flags.contains(Flags::SYN);
        let segment = Segment {
            source_port: 4556,
            destination_port: self.port,
            sequence: if syn { 7000 } else { 7001 },
            acknowledgement: self.first.wrapping_add(up_to),
            flags: flags.with(Flags::ACK),
            window,
            urgent: 0,
            options: TcpOptions { window_scale: syn.then_some(2), ..TcpOptions::default() },
            payload: Bytes::new(),
        };
        self.frame(at_ms, false, segment, fate);
    }
}

/// Opens, sends one small segment and four segments of 1000 bytes, of which one is lost and one is damaged, retransmits
/// both, and connects again from another port.
fn story() -> Vec<CapturedFrame> {
    let none = Flags::default();
    let mut d = Dialogue::new();
    d.says(0, Flags::SYN, 0, 0, FrameFate::Delivered);
    d.answers(2000, Flags::SYN, 1, 4000, FrameFate::Delivered);
    d.says(4000, Flags::ACK, 1, 1, FrameFate::Delivered);
    d.answers(6000, none, 2, 16_000, FrameFate::Delivered);
    d.says(10_000, Flags::ACK, 2, 1000, FrameFate::Delivered);
    d.says(10_100, Flags::ACK, 1002, 1000, FrameFate::Outage);
    d.says(10_200, Flags::ACK, 2002, 1000, FrameFate::Damaged);
    d.says(10_300, Flags::ACK, 3002, 1000, FrameFate::Delivered);
    d.answers(12_000, none, 1002, 16_000, FrameFate::Delivered);
    d.answers(12_300, none, 1002, 0, FrameFate::Delivered);
    d.says(16_000, Flags::ACK, 1002, 1000, FrameFate::Delivered);
    d.says(16_100, Flags::ACK, 2002, 1000, FrameFate::Delivered);
    d.says(16_200, Flags::ACK, 4002, 1000, FrameFate::QueueFull);
    d.answers(18_000, none, 2002, 16_000, FrameFate::Damaged);
    d.answers(18_100, none, 4002, 16_000, FrameFate::Delivered);
    d.says(30_000, Flags::ACK, 4002, 1, FrameFate::Delivered);
    d.answers(32_000, none, 4003, 16_000, FrameFate::Delivered);
    d.port = 41_001;
    d.first = 90_000;
    d.says(40_000, Flags::SYN, 0, 0, FrameFate::Unheard);
    d.frames
}

fn the_conversation() -> Conversation {
    let mut all = conversations(&story());
    assert_eq!(all.len(), 1);
    all.remove(0)
}

#[test]
fn a_conversation_knows_what_was_sent_again_and_what_was_heard() {
    let c = the_conversation();
    assert_eq!((c.name().as_str(), c.connections), ("TX to MX, port 4556", 2));
    let again: Vec<(u64, u64)> = c.sent.iter().filter(|s| s.again).map(|s| (s.start, s.end)).collect();
    assert_eq!(again, [(1002, 2002), (2002, 3002)], "positions go on where sequence numbers wrap");
    assert_eq!((c.segments_again(), c.episodes()), (2, 1));
    let heard: Vec<(u64, u64)> = c.heard.iter().map(|h| (h.at.as_nanos() / 1_000_000, h.up_to)).collect();
    let expected = [(4000, 1), (8000, 2), (14_000, 1002), (14_300, 1002), (20_100, 4002), (34_000, 4003)];
    assert_eq!(heard, expected, "a damaged acknowledgement was not heard");
    let windows: Vec<u64> = c.heard.iter().map(|h| h.window_end - h.up_to).collect();
    assert_eq!(windows, [4000, 64_000, 64_000, 0, 64_000, 64_000], "scaled, but not on the SYN");
    assert_eq!(c.sent.last().map(|s| s.start), Some(4003), "the next connection stands behind the last");
}

#[test]
fn goodput_of_data_leaves_the_small_talk_out() {
    let c = the_conversation();
    let with = c.goodput_with_keep_alives().unwrap();
    assert!((with - 4003.0 / 34.0).abs() < 1e-9, "{with}");
    let data = c.goodput_of_data().unwrap();
    assert!((data - 4000.0 / 10.1).abs() < 1e-9, "{data}");
    let drawn = c.goodput();
    let last = |name: &str| {
        let series = drawn.series.iter().find(|series| series.name == name).unwrap();
        series.points.last().unwrap().y
    };
    assert!((last("average, data only") - data).abs() < 1e-9, "the curve ends at the figure");
    assert!((last("average, with keep-alives") - with).abs() < 1e-9);
}

#[test]
fn the_graph_marks_what_a_reader_looks_for() {
    let plot = the_conversation().time_sequence();
    let count =
        |name: &str| plot.series.iter().filter(|s| s.name == name).map(|s| s.points.len()).sum::<usize>();
    assert_eq!(
        (count("data"), count("retransmitted"), count("SYN")),
        (6, 4, 2),
        "a stroke and a letter each"
    );
    assert_eq!((count("acknowledged"), count("window closed")), (6, 1));
}

#[test]
fn a_timeline_reads_as_a_dialogue() {
    let mut out = Vec::new();
    timeline::write(&mut out, &story()).unwrap();
    let text = String::from_utf8(out).unwrap();
    let first: Vec<&str> = text.lines().take(4).collect();
    assert_eq!(
        first,
        [
            "      0.000000  TX > MX  41000 > 4556 SYN 0, window 65535",
            "      2.000000  MX < TX  41000 > 4556 SYN 0, window 65535",
            "      2.000000  MX > TX  4556 > 41000 SYN 0, ack 1, window 4000",
            "      4.000000  TX < MX  4556 > 41000 SYN 0, ack 1, window 4000",
        ]
    );
    for line in [
        "     10.101000  TX x MX  lost: outage: 41000 > 4556 1002..2002, ack 1, window 65535",
        "     12.200000  MX < TX  41000 > 4556 2002..3002, ack 1, window 65535 (damaged)",
        "     16.201000  TX x MX  dropped: queue full: 41000 > 4556 4002..5002, ack 1, window 65535",
        "     40.001000  MX x TX  lost: no receiver: 41001 > 4556 SYN 0, window 65535",
    ] {
        assert!(text.lines().any(|other| other == line), "{line}\n{text}");
    }
}

/// Packet of a capture: time, interface, bytes, and whether it has a comment.
type Packet = (u128, u32, Vec<u8>, bool);

/// Number of interfaces of a node's capture, and its packets.
fn capture(frames: &[CapturedFrame], node: &str) -> (usize, Vec<Packet>) {
    use pcap_file::pcapng::{Block, PcapNgReader};
    let mut out = Vec::new();
    pcapng::write(&mut out, frames, node).unwrap();
    let mut reader = PcapNgReader::new(&out[..]).unwrap();
    let (mut interfaces, mut packets) = (0, Vec::new());
    while let Some(block) = reader.next_block() {
        match block.unwrap() {
            Block::InterfaceDescription(_) => interfaces += 1,
            Block::EnhancedPacket(packet) => {
                let commented = packet.options.len() > 1;
                let at = packet.timestamp.as_nanos();
                packets.push((at, packet.interface_id, packet.data.into_owned(), commented));
            }
            other => panic!("{other:?}"),
        }
    }
    (interfaces, packets)
}

#[test]
fn a_capture_holds_what_one_node_saw_to_the_nanosecond_and_no_frame_twice() {
    let frames = story();
    let mut seen = 0;
    for node in ["MX", "TX"] {
        let (interfaces, packets) = capture(&frames, node);
        assert_eq!(interfaces, 1, "{node}: the other's interface is in the other's capture");
        assert!(packets.is_sorted_by_key(|packet| packet.0));
        // Every packet has its own identification (RFC 791 3.1), damaged or not.
        let mut numbers: Vec<&[u8]> = packets.iter().map(|packet| &packet.2[4..6]).collect();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), packets.len(), "{node}: a frame is there twice");
        seen += packets.len();
    }
    // Of 18 frames one did not leave; of the 17 that left, one was lost and one was not received.
    assert_eq!(seen, 17 + 15);
    let (_, left) = capture(&frames, "TX");
    assert_eq!((left[0].0, &left[0].2), (0, &frames[0].bytes.to_vec()));
    let (_, came) = capture(&frames, "MX");
    let wrong = came.iter().find(|packet| packet.0 == 12_200_000_000).unwrap();
    assert_eq!(Some(&wrong.2[..]), frames[6].damaged.as_deref(), "the receiver sees the wrong bits");
    let comments = left.iter().chain(&came).filter(|packet| packet.3).count();
    assert_eq!(comments, 4, "lost, unheard, and two damaged are commented");
    assert!(frames[6].bytes == left.iter().find(|packet| packet.0 == 10_200_000_000).unwrap().2);
}

#[test]
fn each_node_has_a_capture_of_its_own() {
    let names = ["a_b", "a-b", "A-b", "ab"].map(capture_name);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
}

#[test]
fn a_directory_gets_all_files_and_a_bad_one_is_named() {
    let directory = std::env::temp_dir().join(format!("longwire-trace-{}", std::process::id()));
    let written = write(&directory, "Moon to orbiter", &story()).unwrap();
    let names: Vec<_> = written.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    assert_eq!(names, ["capture-MX.pcapng", "capture-TX.pcapng", "timeline.txt", "traces.html"]);
    let page = std::fs::read_to_string(&written[3]).unwrap();
    assert!(page.contains("Time and sequence: TX to MX, port 4556"));
    let error = write(&written[2], "a file is not a directory", &[]).unwrap_err();
    assert!(error.to_string().contains("timeline.txt"), "{error}");
    std::fs::remove_dir_all(&directory).unwrap();
}
