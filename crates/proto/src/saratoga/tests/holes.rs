//! Missing ranges and how they are reported and filled; damage, and hostile peers.

use super::SECOND;
use super::pair::Pair;
use super::scene::{
    config, data, dialogue, done, failed, last_stamp, metadata, pair, receiving, sending, status,
};
use crate::saratoga::Config;
use crate::saratoga::sending::Outgoing;
use crate::saratoga::wire::{Data, Kind, Metadata, Outcome, Packet, Request, RequestKind, Status, Width};
use crate::service::{FileFailure, FileId};
use crate::time::Duration;
use bytes::Bytes;

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
fn a_hole_that_was_listed_often_is_late_once() {
    let mut pair = receiving(&config());
    for index in 1..=20 {
        let stamp = Some([index; 16]);
        let asks = Data { wants_status: true, is_end: true, stamp, ..data(&pair, 100_000, 0) };
        pair.hear(1, asks);
        let packet = data(&pair, u64::from(index) * 2_000, 1_000);
        pair.hear(1, packet);
    }
    let lists = pair.holes(1);
    assert!(lists.len() > 200, "{} ranges", lists.len());
    let (_, file) = pair.ends[1].incoming.iter_mut().next().expect("it is being received");
    let wait = config().answer_time();
    assert_eq!(file.late(pair.now + (wait - Duration::from_millis(1))).len(), 0);
    assert_eq!(file.late(pair.now + wait).iter().collect::<Vec<_>>(), [(0, 100_000)]);
    assert_eq!(file.late(pair.now + wait).len(), 0);
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
fn packets_for_holes_are_remembered_for_a_round_trip_and_within_the_limit() {
    let mut pair = sending(&Config { holes_max: 10, ..config() }, 100_000);
    let fill = |pair: &mut Pair, from: u128| {
        let holes: Vec<_> = (0..8).map(|index| from + index * 10).map(|first| (first, first)).collect();
        let (first, report) = (pair.offsets(0).len(), status(pair, 0, 100_000, &holes));
        pair.hear(0, report);
        pair.offsets(0).len() - first
    };
    assert_eq!([1_000, 1_000, 2_000].map(|from| fill(&mut pair, from)), [8, 0, 8]);
    let memory = |pair: &Pair| pair.ends[0].outgoing.values().map(Outgoing::fills_under_way).sum::<usize>();
    assert_eq!(memory(&pair), 10);
    // The first six of them are forgotten.
    assert_eq!(fill(&mut pair, 1_000), 6);
    pair.run(3 * SECOND);
    assert_eq!((fill(&mut pair, 5_000), memory(&pair)), (8, 8), "the others are late");
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
