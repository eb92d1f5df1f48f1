//! Files between two endpoints, as dialogues.

use super::SECOND;
use super::pair::{Line, Pair, perfect};
use crate::saratoga::Config;
use crate::saratoga::wire::{
    Checksum, Data, Entry, Kind, Metadata, Outcome, Packet, Request, RequestKind, Status, Width,
};
use crate::service::{DownReason, FileFailure, FileId, FilesIndication, FilesRequest, PartialFile, Wish};
use crate::time::Duration;
use bytes::Bytes;

/// One-way delay 1 s, margin 500 ms: an answer is late after 3 s. No rate, packets of 1,000 bytes of a file.
fn config() -> Config {
    Config { rate_bps: 0, packet_bytes: 1_012, file_bytes_max: 1 << 30, ..Config::default() }
}

fn pair(config: &Config) -> Pair {
    let mut pair = Pair::new([config.clone(), config.clone()], perfect(SECOND), 1);
    pair.log = Some(Vec::new());
    pair
}

fn done(file: FileId) -> FilesIndication {
    FilesIndication::Done { file }
}

fn failed(file: FileId, reason: FileFailure) -> FilesIndication {
    FilesIndication::Failed { file, reason, partial: None }
}

/// Loses the packets of node 0 with bytes at these offsets, each as often as it is listed.
fn lose(pair: &mut Pair, offsets: &[u128]) {
    let mut left = offsets.to_vec();
    pair.loses = Box::new(move |node, packet| match packet {
        Packet::Data(data) if node == 0 && !data.payload.is_empty() => {
            let found = left.iter().position(|offset| *offset == data.offset);
            found.map(|index| left.remove(index)).is_some()
        }
        _ => false,
    });
}

/// Describes the packets of a log in a few words each.
fn dialogue(pair: &Pair) -> Vec<String> {
    let line = |(at, node, packet): &(crate::time::Instant, usize, Packet)| {
        let what = match packet {
            Packet::Beacon(beacon) => format!("BEACON {}", beacon.eid),
            Packet::Request(request) => format!("REQUEST {:?} {}", request.kind, request.path),
            Packet::Metadata(metadata) => {
                let ended = if metadata.ended { ", ended" } else { "" };
                format!("METADATA {} {}{ended}", metadata.entry.path, metadata.entry.size)
            }
            Packet::Data(data) => {
                let end = if data.is_end { ", end" } else { "" };
                let asks = match (data.wants_status, data.stamp) {
                    (true, Some(_)) => ", asks",
                    (true, None) => ", asks without a stamp",
                    (false, _) => "",
                };
                format!("DATA {} + {}{end}{asks}", data.offset, data.payload.len())
            }
            Packet::Status(status) if status.outcome != Outcome::Success => {
                format!("STATUS {:?}", status.outcome)
            }
            Packet::Status(status) => {
                let flag = |is_set, word| if is_set { word } else { "" };
                format!(
                    "STATUS {} of {}{}{}{}{}",
                    status.progress,
                    status.in_response_to,
                    if status.holes.is_empty() {
                        String::new()
                    } else {
                        format!(", holes {:?}", status.holes)
                    },
                    flag(status.incomplete, ", incomplete"),
                    flag(status.lacks_metadata, ", no METADATA"),
                    flag(status.voluntary, ", voluntary"),
                )
            }
        };
        let arrow = if *node == 0 { "->" } else { "  <-" };
        format!("{:.2} {arrow} {what}", at.saturating_since(crate::time::Instant::ZERO).as_secs_f64())
    };
    pair.log.iter().flatten().map(line).collect()
}

#[test]
fn a_file_is_put_with_a_question() {
    let mut pair = pair(&config());
    let file = pair.file("a", 2_500);
    pair.put(0, 7, file, true);
    assert!(pair.run(100 * SECOND));
    assert_eq!(
        dialogue(&pair),
        [
            "0.00 -> REQUEST Put a",
            "1.00   <- STATUS 0 of 0, no METADATA, voluntary",
            "2.00 -> METADATA a 2500",
            "2.00 -> DATA 0 + 1002",
            "2.00 -> DATA 1002 + 1002",
            "2.00 -> DATA 2004 + 496, end, asks",
            "3.00   <- STATUS 2500 of 2500, voluntary",
        ]
    );
    assert_eq!((pair.ends(0), pair.ends(1)), (vec![done(FileId::Own(7))], vec![done(FileId::Peer(0))]));
}

#[test]
fn a_file_is_put_without_a_question_and_its_holes_are_filled() {
    let mut pair = pair(&config());
    lose(&mut pair, &[1_002, 4_008]);
    let file = pair.file("a", 5_510);
    pair.put(0, 7, file, false);
    assert!(pair.run(100 * SECOND));
    // The answer to the end lists all holes; the first of the two packets for them has no request.
    assert_eq!(
        dialogue(&pair)[7..],
        [
            "1.00   <- STATUS 1002 of 5510, holes [(1002, 2003), (4008, 5009)]",
            "2.00 -> DATA 1002 + 1002",
            "2.00 -> DATA 4008 + 1002, asks without a stamp",
            "3.00   <- STATUS 5510 of 5510, voluntary",
        ]
    );
    let [sender, receiver] = [0, 1].map(|node| *pair.ends[node].counters());
    assert_eq!((sender.packets_sent, sender.packets_repeated, sender.payload_repeated), (6, 2, 2_004));
    assert_eq!((receiver.packets_received, receiver.duplicates, receiver.holes_sent), (6, 0, 2));
}

#[test]
fn a_file_of_any_length_arrives() {
    for length in [0, 1, 1_000, 1_001, 1_002, 1_003, 65_535, 65_536, 70_000] {
        for asks in [false, true] {
            let mut pair = pair(&config());
            let file = pair.file("a", length);
            pair.put(0, 0, file, asks);
            assert!(pair.run(100 * SECOND));
            assert_eq!((pair.ends(0), pair.payload[0]), (vec![done(FileId::Own(0))], length), "{length}");
            let is_end = |packet: &Packet| match packet {
                Packet::Data(data) => {
                    data.is_end == (data.offset + data.payload.len() as u128 == length.into())
                }
                _ => true,
            };
            assert!(pair.log.iter().flatten().all(|(_, _, packet)| is_end(packet)));
        }
    }
}

#[test]
fn a_file_is_got_taken_or_not_found() {
    let mut pair = pair(&config());
    let file = pair.file("a", 1_500);
    pair.shelf[0].insert("a".to_owned(), file.clone());
    pair.get(1, 0, "a", None);
    assert!(pair.run(100 * SECOND));
    assert_eq!(
        dialogue(&pair),
        [
            "0.00   <- REQUEST Get a",
            "1.00 -> METADATA a 1500",
            "1.00 -> DATA 0 + 1002",
            "1.00 -> DATA 1002 + 498, end, asks",
            "2.00   <- STATUS 1500 of 1500, voluntary",
        ]
    );
    let begun = FilesIndication::Begun { file: FileId::Own(0), properties: file, continues: false };
    assert!(pair.told[1].contains(&begun));
    pair.ask(1, FilesRequest::Get { file: 1, path: "a".to_owned(), wish: Wish::Take, held: None });
    pair.get(1, 2, "b", None);
    assert!(pair.run(100 * SECOND));
    let expected =
        [done(FileId::Own(0)), done(FileId::Own(1)), failed(FileId::Own(2), FileFailure::NotFound)];
    assert_eq!(pair.ends(1), expected);
    let wanted = |wish| FilesIndication::Wanted { file: FileId::Peer(1), path: "a".to_owned(), wish };
    assert!(pair.told[0].contains(&wanted(Wish::Take)));
}

#[test]
fn a_directory_is_listed_as_entries() {
    let mut pair = pair(&config());
    let list = crate::service::FileProperties { is_directory: true, ..pair.file("", 70) };
    pair.shelf[0].insert("d".to_owned(), list);
    pair.ask(1, FilesRequest::Get { file: 0, path: "d".to_owned(), wish: Wish::List, held: None });
    assert!(pair.run(100 * SECOND));
    assert_eq!(pair.ends(1), [done(FileId::Own(0))]);
    let log = pair.log.iter().flatten();
    assert!(
        log.filter_map(|(_, node, packet)| match packet {
            Packet::Metadata(metadata) if *node == 0 => Some(metadata.kind),
            Packet::Data(data) if *node == 0 => Some(data.kind),
            _ => None,
        })
        .all(|kind| kind == Kind::Directory)
    );
}

#[test]
fn a_deletion_is_answered_and_its_request_repeated() {
    let mut pair = pair(&config());
    let mut is_first = true;
    pair.loses = Box::new(move |_, _| core::mem::take(&mut is_first));
    pair.ask(0, FilesRequest::Delete { file: 3, path: "old".to_owned() });
    assert!(pair.run(100 * SECOND));
    assert_eq!(pair.ends(0), [done(FileId::Own(3))]);
    assert_eq!(pair.deletions[1], ["old"]);
    let expected = ["0.00 -> REQUEST Delete old", "3.00 -> REQUEST Delete old", "4.00   <- STATUS 0 of 0"];
    assert_eq!(dialogue(&pair), expected);
}

#[test]
fn a_refusal_ends_the_file_with_its_reason() {
    use FileFailure::{AccessDenied, NoResources, NotInterested, TooLong};
    for reason in [AccessDenied, NoResources, NotInterested, TooLong] {
        let mut pair = pair(&config());
        pair.refuses = Some(reason);
        let file = pair.file("a", 5_000);
        pair.put(0, 0, file, false);
        assert!(pair.run(100 * SECOND));
        assert_eq!(pair.ends(0), [failed(FileId::Own(0), reason)]);
        assert_eq!(pair.ends(1), [], "who refuses knows");
    }
    let short = Config { file_bytes_max: 4_999, ..config() };
    let mut pair = Pair::new([config(), short], perfect(SECOND), 1);
    let file = pair.file("a", 5_000);
    pair.put(0, 0, file, false);
    assert!(pair.run(100 * SECOND));
    assert_eq!(pair.ends(0), [failed(FileId::Own(0), TooLong)]);
}

#[test]
fn lost_metadata_are_sent_again_and_the_data_wait() {
    let mut pair = pair(&config());
    pair.loses = Box::new({
        let mut count = 0;
        move |_, packet| {
            count += u32::from(matches!(packet, Packet::Metadata(_)));
            matches!(packet, Packet::Metadata(_)) && count == 1
        }
    });
    let file = pair.file("a", 2_500);
    pair.put(0, 0, file, false);
    assert!(pair.run(100 * SECOND));
    assert_eq!(
        dialogue(&pair)[4..],
        [
            "1.00   <- STATUS 0 of 2500, no METADATA",
            "2.00 -> METADATA a 2500",
            "3.00   <- STATUS 2500 of 2500, voluntary",
        ]
    );
    assert_eq!(pair.ends[1].held_bytes, 0);
}

#[test]
fn an_unanswered_end_is_asked_again() {
    let mut pair = pair(&config());
    let mut left = 2;
    pair.loses = Box::new(move |node, _| {
        left -= i32::from(node == 1 && left > 0);
        node == 1 && left >= 0 && left + 1 > 0 && left < 2 && {
            let lost = left >= 0;
            if left == 0 {
                left = -1;
            }
            lost
        }
    });
    let file = pair.file("a", 500);
    pair.put(0, 0, file, false);
    assert!(pair.run(100 * SECOND));
    assert_eq!(
        dialogue(&pair),
        [
            "0.00 -> METADATA a 500",
            "0.00 -> DATA 0 + 500, end, asks",
            "1.00   <- STATUS 500 of 500, voluntary",
            "3.00 -> DATA 500 + 0, end, asks",
            "4.00   <- STATUS 500 of 500, voluntary",
            "6.00 -> DATA 500 + 0, end, asks",
            "7.00   <- STATUS 500 of 500, voluntary",
        ]
    );
    assert_eq!(pair.ends(1).len(), 1, "the receiver has it once");
}

#[test]
fn a_promise_waits_until_the_user_has_stored_the_file() {
    let mut pair = pair(&config());
    pair.stores = false;
    let file = pair.file("a", 2_500);
    pair.put(0, 0, file, false);
    pair.run(10 * SECOND);
    assert_eq!((pair.ends(0), pair.ends(1), pair.payload[0]), (vec![], vec![], 2_500));
    assert!(pair.holes(1).is_empty(), "nothing is missing");
    // It may take longer than any peer is silent.
    pair.run(1_000 * SECOND);
    pair.store_all();
    assert!(pair.run(10 * SECOND));
    assert_eq!((pair.ends(0), pair.ends(1)), (vec![done(FileId::Own(0))], vec![done(FileId::Peer(0))]));
    assert_eq!(pair.ends[0].counters().packets_repeated, 0);
}

#[test]
fn a_complete_file_waits_for_its_user_although_the_sender_is_silent() {
    let mut pair = receiving(&config());
    pair.stores = false;
    pair.hear(1, Metadata { session: 10, ..metadata(100) });
    let whole = Data { session: 10, is_end: true, ..data(&pair, 0, 100) };
    pair.hear(1, whole);
    pair.run(10_000 * SECOND);
    let silent = FileFailure::Silent;
    let ended = pair.ends(1);
    assert!(
        matches!(ended[..], [FilesIndication::Failed { file: FileId::Peer(0), reason, .. }] if reason == silent),
        "only the incomplete file: {ended:?}"
    );
    pair.store_all();
    assert_eq!(pair.ends(1)[1..], [done(FileId::Peer(1))]);
}

#[test]
fn a_file_is_sent_as_far_as_its_content_is_available() {
    let mut pair = pair(&config());
    let properties = pair.file("a", 10_000);
    pair.ask(0, FilesRequest::Put { file: 0, properties, available: 3_100, asks: false });
    pair.run(5 * SECOND);
    // Full packets only, and no question yet.
    assert_eq!(pair.offsets(0), [0, 1_002, 2_004]);
    let asks = |packet: &Packet| matches!(packet, Packet::Data(data) if data.wants_status || data.is_end);
    assert!(!pair.log.iter().flatten().any(|(_, _, packet)| asks(packet)));
    pair.ask(0, FilesRequest::Available { file: FileId::Own(0), up_to: 10_000 });
    assert!(pair.run(100 * SECOND));
    assert_eq!((pair.ends(0), pair.payload[0]), (vec![done(FileId::Own(0))], 10_000));
}

#[test]
fn a_status_is_requested_at_an_interval_while_a_file_is_sent() {
    let mut pair = paced_pair();
    let file = pair.file("a", 200_000);
    pair.put(0, 0, file, false);
    assert!(pair.run(1_000 * SECOND));
    let requests = pair.log.iter().flatten().filter_map(|(_, _, packet)| match packet {
        Packet::Data(data) if data.wants_status && !data.is_end => Some(packet.to_bytes().len()),
        _ => None,
    });
    // 21 s at 80 kbit/s, each with a stamp in a packet of full length.
    let lengths: Vec<_> = requests.collect();
    assert!((15..=21).contains(&lengths.len()), "{lengths:?}");
    assert!(lengths.iter().all(|length| *length == 1_012), "{lengths:?}");
}

#[test]
fn files_are_under_way_side_by_side() {
    let mut pair = pair(&config());
    for number in 0..20 {
        let file = pair.file(&format!("f{number}"), 3_000);
        pair.put(0, number, file, false);
    }
    assert!(pair.run(100 * SECOND));
    assert_eq!(pair.ends(0).len(), 20);
    let last = pair.ended[0].last().expect("all have ended").0;
    assert_eq!(last.saturating_since(crate::time::Instant::ZERO), 2 * SECOND, "one round trip for all");
    assert_eq!(pair.sessions(0).len(), 20);
}

// -- Holes -------------------------------------------------------------------------------------------------------

/// A node that sends a file to a peer that the test plays.
fn sending(config: &Config, length: u64) -> Pair {
    let mut pair = pair(config);
    pair.loses = Box::new(|_, _| true);
    let file = pair.file("a", length);
    pair.put(0, 0, file, false);
    pair.run(Duration::ZERO);
    pair
}

/// STATUS of the file that [`sending`] sends.
fn status(pair: &Pair, progress: u128, in_response_to: u128, holes: &[(u128, u128)]) -> Status {
    let session = *pair.sessions(0).first().expect("METADATA was sent");
    Status {
        width: Width::Bits32,
        progress,
        in_response_to,
        holes: holes.to_vec(),
        ..Status::with_outcome(session, Outcome::Success)
    }
}

/// Stamp of the last packet that has one.
fn last_stamp(pair: &Pair) -> [u8; 16] {
    let stamps = pair.log.iter().flatten().filter_map(|(_, _, packet)| match packet {
        Packet::Data(data) => data.stamp,
        _ => None,
    });
    stamps.last().expect("a packet has requested a STATUS")
}

#[test]
fn a_hole_is_not_filled_twice_within_a_round_trip() {
    let mut pair = sending(&config(), 100_000);
    let first = pair.offsets(0).len();
    let report = status(&pair, 1_000, 90_000, &[(1_000, 1_999), (50_000, 50_999)]);
    pair.hear(0, report.clone());
    assert_eq!(pair.offsets(0)[first..], [1_000, 50_000]);
    // The same list again, and a longer one: only what is new in it is sent.
    pair.run(SECOND);
    pair.hear(0, report.clone());
    pair.hear(0, status(&pair, 1_000, 95_000, &[(1_000, 1_999), (49_500, 50_999), (60_000, 60_009)]));
    assert_eq!(pair.offsets(0)[first + 2..], [49_500, 60_000]);
    assert_eq!(pair.ends[0].counters().holes_under_way, 4);
    // After a round trip and the margin it is lost.
    pair.run(SECOND * 3 / 2 - Duration::from_millis(1));
    pair.hear(0, report.clone());
    assert_eq!(pair.offsets(0)[first + 4..], []);
    pair.run(Duration::from_millis(1));
    pair.hear(0, report);
    assert_eq!(pair.offsets(0)[first + 4..], [1_000, 50_000]);
}

#[test]
fn a_stamp_tells_which_packets_the_peer_has_seen() {
    let mut pair = sending(&config(), 99_500);
    let first = pair.offsets(0).len();
    let before = last_stamp(&pair);
    let hole = [(1_000, 1_099)];
    pair.hear(0, Status { stamp: Some(before), ..status(&pair, 1_000, 99_500, &hole) });
    assert_eq!(pair.offsets(0)[first..], [1_000]);
    let after = last_stamp(&pair);
    assert_ne!(before, after, "the packet for the hole requests a STATUS");
    // The peer had not seen it: the packet is under way.
    pair.hear(0, Status { stamp: Some(before), ..status(&pair, 1_000, 99_500, &hole) });
    // The peer has seen this packet itself, so the hole is no longer one; the list is older than the stamp.
    pair.hear(0, Status { stamp: Some(after), ..status(&pair, 1_000, 99_500, &hole) });
    assert_eq!(pair.offsets(0)[first + 1..], []);
    // It was answered after a later one: it is lost, although it left just now.
    pair.hear(0, status(&pair, 1_000, 99_500, &[(1_000, 1_099), (2_000, 2_099)]));
    let later = last_stamp(&pair);
    pair.hear(0, Status { stamp: Some(later), ..status(&pair, 1_000, 99_500, &hole) });
    assert_eq!(pair.offsets(0)[first + 1..], [2_000, 1_000]);
    // A stamp of a packet that never left says nothing.
    pair.hear(0, Status { stamp: Some([0xff; 16]), ..status(&pair, 1_000, 99_500, &hole) });
    assert_eq!(pair.offsets(0).len(), first + 3);
}

#[test]
fn impossible_reports_change_nothing() {
    let mut pair = sending(&config(), 100_000);
    let first = pair.offsets(0).len();
    let whole = u128::from(u32::MAX);
    for report in [
        status(&pair, 0, 100_001, &[]),
        status(&pair, 100_001, 100_000, &[]),
        status(&pair, 0, 100_000, &[(0, 100_000)]),
        status(&pair, 0, 100_000, &[(0, whole)]),
        Status { width: Width::Bits128, ..status(&pair, 0, 5, &[(7, u128::MAX)]) },
    ] {
        pair.hear(0, report);
    }
    assert_eq!((pair.offsets(0).len(), pair.ends[0].counters().violations), (first, 5));
    // Neither is a file complete with holes, without METADATA, or before its end.
    pair.hear(0, Status { lacks_metadata: true, ..status(&pair, 100_000, 100_000, &[]) });
    pair.hear(0, Status { incomplete: true, ..status(&pair, 100_000, 100_000, &[]) });
    pair.hear(0, status(&pair, 99_999, 100_000, &[]));
    assert_eq!(pair.ends(0), []);
    pair.hear(0, status(&pair, 100_000, 100_000, &[]));
    assert_eq!(pair.ends(0), [done(FileId::Own(0))]);
}

#[test]
fn what_the_peer_has_is_skipped() {
    let few = Config { rate_bps: 80_000, burst: Duration::ZERO, ..config() };
    let mut pair = sending(&few, 100_000);
    pair.run(SECOND / 2);
    // It has everything before 60,000 but one range.
    pair.hear(0, status(&pair, 40_000, 60_000, &[(40_000, 40_999)]));
    let first = pair.offsets(0).len();
    pair.run(SECOND);
    let rest = &pair.offsets(0)[first..];
    let skips = rest.iter().position(|offset| *offset == 40_000).expect("the hole is filled");
    assert_eq!(rest[skips + 1], 60_000, "{rest:?}");
    assert_eq!(pair.ends[0].counters().continued, 1);
}

/// A node that receives a file of 100 kB from a peer that the test plays.
fn receiving(config: &Config) -> Pair {
    let mut pair = pair(config);
    pair.loses = Box::new(|_, _| true);
    pair.hear(1, metadata(100_000));
    pair
}

fn metadata(size: u128) -> Metadata {
    Metadata {
        session: 9,
        width: Width::Bits32,
        kind: Kind::File,
        ended: false,
        udp_lite: false,
        checksum: Checksum::None,
        entry: Entry::file("a".to_owned(), size, 1, 2),
    }
}

/// DATA of that file. The user of the pair checks the contents, which here are too short for that to fail.
fn data(pair: &Pair, offset: u64, length: usize) -> Data {
    Data {
        session: 9,
        width: Width::Bits32,
        kind: Kind::File,
        stamp: None,
        wants_status: false,
        is_end: false,
        offset: offset.into(),
        payload: pair.content(offset, length),
    }
}

#[test]
fn lists_are_cut_to_a_packet_and_no_hole_is_listed_twice_in_a_round_trip() {
    // A header of 8 bytes, a stamp, two descriptors, and 12 holes of 8 bytes.
    let short = Config { status_bytes: 128, ..config() };
    let mut pair = receiving(&short);
    for index in 0..40 {
        let packet = data(&pair, index * 1_000, 500);
        pair.hear(1, packet);
    }
    pair.run(SECOND * 5 / 2);
    let lists: Vec<(usize, bool)> = pair
        .log
        .iter()
        .flatten()
        .filter_map(|(_, _, packet)| match packet {
            Packet::Status(status) => Some((status.holes.len(), status.incomplete)),
            _ => None,
        })
        .collect();
    // Full lists leave at once, the rest with the interval. Each lists others, so all but the first are incomplete: other
    // holes are known to be missing.
    assert_eq!(lists, [(12, false), (12, true), (12, true), (3, true)]);
    let holes = pair.holes(1);
    let expected: Vec<_> = (0..39).map(|index| (index * 1_000 + 500, index * 1_000 + 999)).collect();
    assert_eq!(holes, expected);
    // After an answer would have come, all are listed again; those that are filled are not.
    for index in 0..38 {
        let packet = data(&pair, index * 1_000 + 500, 500);
        pair.hear(1, packet);
    }
    pair.run(SECOND * 4);
    assert_eq!(pair.holes(1)[39..], [(38_500, 38_999)]);
}

#[test]
fn a_status_answers_the_packet_that_requests_it() {
    let mut pair = receiving(&config());
    let stamp = Some(*b"what it was sent");
    let asking = Data { wants_status: true, stamp, ..data(&pair, 2_000, 1_000) };
    pair.hear(1, asking);
    let answer = |pair: &Pair| match pair.log.iter().flatten().next_back() {
        Some((_, 1, Packet::Status(status))) => status.clone(),
        other => panic!("{other:?}"),
    };
    let first = answer(&pair);
    assert_eq!((first.stamp, first.in_response_to, first.progress), (stamp, 3_000, 0));
    assert_eq!(
        (first.holes.as_slice(), first.incomplete, first.voluntary),
        (&[(0, 1_999)][..], false, false)
    );
    // The next one has the stamp of the highest packet, and says how far packets have come.
    let low = Data { stamp: Some([1; 16]), ..data(&pair, 0, 1_000) };
    pair.hear(1, low);
    let high = data(&pair, 5_000, 1_000);
    pair.hear(1, high);
    pair.run(SECOND * 3 / 2);
    let second = answer(&pair);
    assert_eq!((second.stamp, second.in_response_to, second.progress), (stamp, 6_000, 1_000));
    assert_eq!((second.holes.as_slice(), second.incomplete), (&[(3_000, 4_999)][..], true));
    assert!(second.voluntary);
    // A packet for a hole is answered with its own offset, although later ones have arrived.
    let fill = Data { wants_status: true, stamp: Some([2; 16]), ..data(&pair, 1_000, 500) };
    pair.hear(1, fill);
    let third = answer(&pair);
    assert_eq!((third.stamp, third.in_response_to, third.progress), (Some([2; 16]), 1_500, 1_500));
    // At the end of the file all holes are listed.
    let end = Data { wants_status: true, is_end: true, payload: Bytes::new(), ..data(&pair, 100_000, 0) };
    pair.hear(1, end);
    let last = answer(&pair);
    assert_eq!(last.holes, [(1_500, 1_999), (3_000, 4_999), (6_000, 99_999)]);
    assert_eq!((last.in_response_to, last.incomplete), (100_000, false));
}

#[test]
fn hole_lists_keep_to_their_rate() {
    let slow = Config {
        status_rate_bps: 9_600,
        status_bytes: 572,
        status_delay: Duration::ZERO,
        burst: Duration::ZERO,
        ..config()
    };
    let mut pair = receiving(&slow);
    for second in 0..40 {
        for index in 0..100 {
            let packet = data(&pair, second * 2_000 + index * 20, 10);
            pair.hear(1, packet);
        }
        pair.run(SECOND);
    }
    let bytes = pair.ends[1].counters().status_bytes_sent;
    assert!((40_000..=48_600).contains(&bytes), "{bytes} bytes in 40 s");
}

// -- Interruptions -----------------------------------------------------------------------------------------------

fn paced() -> Config {
    Config { rate_bps: 80_000, overhead_bytes: 32, burst: Duration::ZERO, ..config() }
}

fn paced_pair() -> Pair {
    let lines = [Line { rate_bps: 80_000, delay: SECOND, bit_error_rate: 0.0 }; 2];
    let mut pair = Pair::new([paced(), paced()], lines, 1);
    pair.log = Some(Vec::new());
    pair
}

#[test]
fn an_announced_interruption_costs_what_was_under_way() {
    let mut pair = paced_pair();
    let file = pair.file("a", 200_000);
    pair.put(0, 0, file, false);
    pair.announce(10 * SECOND, false);
    pair.announce(100_000 * SECOND, true);
    assert!(pair.run(200_000 * SECOND));
    assert_eq!((pair.ends(0), pair.payload[0]), (vec![done(FileId::Own(0))], 200_000));
    assert_eq!(pair.sessions(0).len(), 1);
    // 80 kbit/s for 1 s are 10 packets.
    let repeated = pair.ends[0].counters().packets_repeated;
    assert!((9..=11).contains(&repeated), "{repeated} packets");
    let last = pair.ended[0][0].0.saturating_since(crate::time::Instant::ZERO + 100_000 * SECOND);
    assert!(last < 16 * SECOND, "{last:?}");
}

#[test]
fn an_endpoint_that_fails_continues_with_the_same_session() {
    let mut pair = paced_pair();
    let file = pair.file("a", 200_000);
    pair.put(0, 0, file, false);
    pair.run(10 * SECOND);
    pair.leave(0);
    assert!(pair.run(1_000 * SECOND));
    assert_eq!((pair.ends(0), pair.payload[0]), (vec![done(FileId::Own(0))], 200_000));
    assert_eq!((pair.sessions(0).len(), pair.ends[0].counters().joined), (1, 2));
}

/// Runs a get until both sides have given up after 10 s, and returns what the receiver has.
fn broken_get(pair: &mut Pair) -> PartialFile {
    let file = pair.file("a", 200_000);
    pair.shelf[0].insert("a".to_owned(), file);
    lose(pair, &[10_020]);
    pair.get(1, 0, "a", None);
    pair.run(10 * SECOND);
    pair.is_cut = true;
    pair.run(10_000 * SECOND);
    let [
        FilesIndication::Failed { file: FileId::Own(0), reason: FileFailure::Silent, partial: Some(partial) },
    ] = &pair.ends(1)[..]
    else {
        panic!("{:?}", pair.ended)
    };
    partial.clone()
}

#[test]
fn a_get_continues_with_what_is_stored() {
    let mut pair = paced_pair();
    let partial = broken_get(&mut pair);
    let have = partial.up_to - partial.missing.iter().map(|(start, end)| end - start).sum::<u64>();
    assert!(have > 50_000 && have == pair.payload[0], "{partial:?}");
    pair.is_cut = false;
    pair.run(200 * SECOND);
    pair.get(1, 1, "a", Some(partial));
    assert!(pair.run(10_000 * SECOND));
    assert_eq!(pair.ends(1)[1..], [done(FileId::Own(1))], "the checksum of both parts is right");
    assert_eq!(pair.payload[0], 200_000, "no byte is passed on twice");
    assert_eq!(pair.sessions(1).len(), 1, "the session is the same");
    // What was sent before the receiver's report arrived.
    let again = pair.ends[1].counters().duplicates;
    assert!(again <= 40, "{again} duplicates");
}

#[test]
fn another_file_of_the_same_name_is_received_from_its_beginning() {
    let mut pair = paced_pair();
    let partial = broken_get(&mut pair);
    pair.is_cut = false;
    pair.run(200 * SECOND);
    let changed = crate::service::FileProperties { modified: 8, ..partial.properties.clone() };
    pair.shelf[0].insert("a".to_owned(), changed);
    let before = pair.payload[0];
    pair.get(1, 1, "a", Some(partial));
    assert!(pair.run(10_000 * SECOND));
    assert_eq!((pair.ends(1)[1..].to_vec(), pair.payload[0] - before), (vec![done(FileId::Own(1))], 200_000));
    // Nor does a put continue with it.
    let partial = PartialFile { properties: pair.file("a", 200_000), ..partial_of(5_000) };
    pair.held = Some(partial.clone());
    let changed = crate::service::FileProperties { created: 9, ..partial.properties };
    let before = pair.payload[0];
    pair.put(0, 2, changed, false);
    assert!(pair.run(10_000 * SECOND));
    assert_eq!((pair.ends(1)[2..].len(), pair.payload[0] - before), (1, 200_000));
}

/// Content of which the first bytes are stored.
fn partial_of(up_to: u64) -> PartialFile {
    PartialFile { properties: crate::service::FileProperties::default(), up_to, missing: vec![], sum: 0 }
}

#[test]
fn a_put_continues_with_what_is_stored() {
    let mut pair = paced_pair();
    let partial = broken_get(&mut pair);
    pair.is_cut = false;
    pair.run(200 * SECOND);
    pair.held = Some(partial.clone());
    let before = (pair.payload[0], pair.ends[0].counters().payload_sent);
    pair.put(0, 5, partial.properties, false);
    assert!(pair.run(10_000 * SECOND));
    assert_eq!(pair.ends(1)[1..].len(), 1);
    assert_eq!(pair.payload[0], 200_000);
    let sent = pair.ends[0].counters().payload_sent - before.1;
    assert!(sent < 200_000 - before.0 + 40_000, "{sent} bytes sent of {before:?}");
}

#[test]
fn a_silent_peer_ends_the_file_and_the_endpoint_is_tried_again() {
    let mut pair = sending(&config(), 100_000);
    pair.run(100 * SECOND);
    assert_eq!(pair.ends(0), [failed(FileId::Own(0), FileFailure::Silent)]);
    let at = pair.ended[0][0].0.saturating_since(crate::time::Instant::ZERO);
    assert_eq!(at, config().inactivity_limit());
    let down = FilesIndication::Down { reason: DownReason::KeepAlive, retry: true };
    let up = FilesIndication::Up { has_peer: true };
    assert_eq!(pair.told[0], [up.clone(), down, up]);
    assert_eq!(pair.ends[0].counters().silent, 1);
}

#[test]
fn closing_ends_all_files() {
    let mut pair = pair(&config());
    pair.stores = false;
    let file = pair.file("a", 5_000);
    pair.put(0, 0, file.clone(), false);
    pair.put(1, 0, file, true);
    pair.run(SECOND * 5 / 2);
    for node in 0..2 {
        pair.ask(node, FilesRequest::Close);
    }
    assert!(pair.run(1_000 * SECOND));
    for node in 0..2 {
        assert!(pair.ends[node].files.is_empty() && pair.ends[node].held_bytes == 0);
        let own = |said: &&FilesIndication| {
            matches!(said, FilesIndication::Failed { reason: FileFailure::Closed, .. })
        };
        assert_eq!(pair.ends(node).iter().filter(own).count(), 2, "{:?}", pair.ended[node]);
    }
}

#[test]
fn a_cancelled_file_ends_at_the_receiver() {
    let mut pair = paced_pair();
    let file = pair.file("a", 200_000);
    pair.put(0, 0, file, false);
    pair.run(5 * SECOND);
    pair.ask(0, FilesRequest::Cancel { file: FileId::Own(0) });
    assert!(pair.run(100 * SECOND));
    assert!(dialogue(&pair).iter().any(|line| line.ends_with("METADATA a 200000, ended")));
    let ended = pair.ends(1);
    let [FilesIndication::Failed { reason: FileFailure::Ended, partial: Some(_), .. }] = &ended[..] else {
        panic!("{ended:?}")
    };
    let session = *pair.sessions(0).first().expect("METADATA was sent");
    let late = Data { session, ..data(&pair, 0, 1_000) };
    pair.hear(1, late);
    assert_eq!(pair.ends[1].incoming.len(), 0, "late packets begin nothing");
}

// -- Damage and hostile peers ------------------------------------------------------------------------------------

#[test]
fn content_without_its_checksum_is_discarded() {
    let mut pair = pair(&config());
    let file = pair.file("a", 5_000);
    let wrong = crate::service::FileProperties { crc32c: file.crc32c.map(|sum| sum ^ 1), ..file };
    pair.put(0, 0, wrong, false);
    assert!(pair.run(100 * SECOND));
    assert_eq!(pair.ends(1), [failed(FileId::Peer(0), FileFailure::Damaged)]);
    assert_eq!(pair.ends(0), [failed(FileId::Own(0), FileFailure::Damaged)]);
    assert_eq!(pair.ends[1].counters().damaged, 1);
}

#[test]
fn a_file_that_ends_elsewhere_is_discarded() {
    for (offset, length) in [(0, 99), (99_000, 1_001), (50_000, 0)] {
        let mut pair = receiving(&config());
        let end = Data { is_end: true, ..data(&pair, offset, length) };
        pair.hear(1, end);
        assert_eq!(pair.ends(1), [failed(FileId::Peer(0), FileFailure::Damaged)], "{offset} + {length}");
        let Some((_, _, Packet::Status(status))) = pair.log.iter().flatten().next_back() else { panic!() };
        assert_eq!(status.outcome, Outcome::Unspecified);
    }
    // Before the METADATA.
    let mut pair = pair(&config());
    let end = Data { is_end: true, ..data(&pair, 0, 99) };
    pair.hear(1, end);
    pair.hear(1, metadata(100_000));
    assert_eq!((pair.ends[1].incoming.len(), pair.ends[1].counters().damaged), (0, 1));
    // Bytes beyond the end are dropped.
    let mut pair = receiving(&config());
    let beyond = data(&pair, 99_500, 501);
    pair.hear(1, beyond);
    assert_eq!((pair.ends[1].counters().violations, pair.payload[0]), (1, 0));
}

#[test]
fn late_packets_of_an_ended_file_are_answered_and_begin_nothing() {
    let mut pair = receiving(&config());
    pair.hear(1, metadata(100));
    let whole = Data { width: Width::Bits16, wants_status: true, is_end: true, ..data(&pair, 0, 100) };
    pair.hear(1, whole.clone());
    assert_eq!(pair.ends(1)[1..], [done(FileId::Peer(1))], "the longer file of the same session has ended");
    let before = pair.log.as_ref().map_or(0, Vec::len);
    pair.hear(1, Data { wants_status: false, ..whole.clone() });
    assert_eq!(pair.log.as_ref().map_or(0, Vec::len), before, "nothing is asked");
    pair.hear(1, Data { stamp: Some([5; 16]), ..whole });
    pair.hear(1, metadata(100));
    let answers: Vec<_> = pair.log.iter().flatten().skip(before).map(|(_, _, packet)| packet).collect();
    let [Packet::Status(first), Packet::Status(second)] = answers[..] else { panic!("{answers:?}") };
    assert_eq!((first.stamp, first.progress, first.in_response_to), (Some([5; 16]), 100, 100));
    assert!(first.voluntary && !first.incomplete && first.holes.is_empty() && second.progress == 100);
    assert_eq!((pair.ends[1].incoming.len(), pair.payload[0]), (0, 100));
    // A request begins the session anew.
    let abilities = super::super::leaving::abilities();
    let (path, auth) = ("a".to_owned(), Bytes::new());
    pair.hear(1, Request { abilities, kind: RequestKind::Put, session: 9, path, auth });
    assert_eq!((pair.ends[1].incoming.len(), pair.ends[1].closed.len()), (1, 0));
}

#[test]
fn memory_is_bounded_under_a_peer_that_begins_files_for_ever() {
    let small = Config {
        incoming_sessions_max: 8,
        incoming_bytes_max: 65_536,
        holes_max: 16,
        closed_sessions_max: 32,
        ..config()
    };
    let mut pair = pair(&small);
    pair.stores = false;
    pair.log = None;
    for session in 0..2_000 {
        let packet = Data { session, ..data(&pair, u64::from(session) * 10, 5_000) };
        pair.hear(1, packet);
        pair.hear(1, Metadata { session, ..metadata(1 << 29) });
        for offset in [1_000_000, 10, 90_000, 2_000_000 + u64::from(session) * 7] {
            let packet = Data { session: session % 8, ..data(&pair, offset, 1_000) };
            pair.hear(1, packet);
        }
        let (path, auth) = ("x".to_owned(), Bytes::new());
        let kind = [RequestKind::Get, RequestKind::Put, RequestKind::Delete][session as usize % 3];
        let abilities = super::super::leaving::abilities();
        pair.hear(1, Request { abilities, kind, session, path, auth });
    }
    let end = &pair.ends[1];
    assert!(end.incoming.len() <= 8 && end.held_bytes <= 65_536, "{} bytes", end.held_bytes);
    assert!(end.closed.len() <= 32 && end.outgoing.len() <= 8 && end.counters().dropped > 1_000);
    // All of it ends when the peer is silent.
    pair.run(1_000 * SECOND);
    let end = &pair.ends[1];
    assert_eq!((end.incoming.len(), end.outgoing.len(), end.held_bytes), (0, 0, 0));
}

#[test]
fn a_packet_that_makes_too_many_holes_is_dropped() {
    let mut pair = receiving(&Config { holes_max: 3, ..config() });
    let mut offer = |offset, length| {
        let (before, packet) = (pair.payload[0], data(&pair, offset, length));
        pair.hear(1, packet);
        pair.payload[0] - before
    };
    // Three holes: from 0, 2,000 and 4,000 on, 1,000 bytes each.
    assert_eq!([1_000, 3_000, 5_000].map(|offset| offer(offset, 1_000)), [1_000; 3]);
    assert_eq!(offer(7_000, 1_000), 0, "a fourth hole");
    assert_eq!(offer(2_500, 100), 0, "a hole in two");
    assert_eq!(offer(6_000, 1_000), 1_000, "no hole");
    assert_eq!((offer(2_000, 100), offer(4_900, 100)), (100, 100), "from its edges on");
    assert_eq!((offer(0, 1_000), offer(9_000, 500)), (1_000, 500), "one hole less, and one more");
    assert_eq!(pair.ends[1].counters().dropped, 2);
}

#[test]
fn reports_of_many_holes_are_bounded() {
    let few = Config { holes_max: 10, ..config() };
    let mut pair = sending(&few, 1_000_000);
    pair.tell(0, crate::service::DatagramsIndication::Room(0));
    let holes: Vec<_> = (0..100).map(|index| (index * 100, index * 100 + 9)).collect();
    pair.hear(0, status(&pair, 0, 500_000, &holes));
    let first = pair.offsets(0).len();
    pair.tell(0, crate::service::DatagramsIndication::Room(1_000));
    pair.run(SECOND / 2);
    let filled = pair.offsets(0)[first..].iter().filter(|offset| **offset < 100_000).count();
    assert!((10..=42).contains(&filled), "{filled} holes are filled");
}

#[test]
fn what_is_no_packet_is_counted() {
    let mut pair = pair(&config());
    let from = crate::service::PeerId::CONFIGURED;
    for bytes in [&b""[..], b"\x20", b"\x45junk", &[0xff; 1_400]] {
        let bytes = Bytes::copy_from_slice(bytes);
        let datagram =
            crate::service::DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false };
        pair.tell(1, datagram);
    }
    let stream = Data { kind: Kind::Stream, ..data(&pair, 0, 5) };
    pair.hear(1, stream);
    assert_eq!(pair.ends[1].counters().violations, 5);
    pair.hear(1, Metadata { kind: Kind::Stream, ..metadata(0) });
    let unknown = Request {
        abilities: super::super::leaving::abilities(),
        kind: RequestKind::Other(99),
        session: 1,
        path: String::new(),
        auth: Bytes::new(),
    };
    pair.hear(1, unknown);
    pair.hear(1, Status::with_outcome(1, Outcome::Success));
    assert_eq!(dialogue(&pair), ["0.00   <- STATUS CannotReceive", "0.00   <- STATUS UnsupportedRequest"]);
    assert_eq!((pair.ends[1].counters().strangers, pair.ends[1].incoming.len()), (1, 0));
}

#[test]
fn beacons_state_presence_at_an_interval() {
    let config = Config { beacon: Some(10 * SECOND), eid: Some("dtn://a/".to_owned()), ..config() };
    let mut pair = pair(&config);
    pair.run(25 * SECOND);
    let beacons = dialogue(&pair);
    assert_eq!(beacons[2..], ["20.00 -> BEACON dtn://a/", "20.00   <- BEACON dtn://a/"]);
    assert_eq!(pair.ends[0].counters().beacons_received, 3);
}
