//! Packets that contradict each other, the file, or what the user has given of it; limits of memory, and silence.

use super::SECOND;
use super::pair::Pair;
use super::scene::{
    config, data, dialogue, done, failed, last_stamp, metadata, pair, receiving, sending, status,
};
use crate::engine::Engine;
use crate::ranges::searches;
use crate::rng::Rng;
use crate::saratoga::endpoint::{Key, Side};
use crate::saratoga::wire::{Checksum, Data, Metadata, Outcome, Packet, Request, RequestKind, Status, Width};
use crate::saratoga::{Config, Link};
use crate::service::{
    BundlesIndication, BundlesRequest, DatagramsIndication, DatagramsRequest, FileFailure, FileId,
    FilesRequest, PeerId, Priority, TransferId, Wish,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;

/// A pair whose packets are all lost.
fn deaf(config: &Config) -> Pair {
    let mut pair = pair(config);
    pair.loses = Box::new(|_, _| true);
    pair
}

fn last_status(pair: &Pair) -> Status {
    match pair.log.iter().flatten().next_back() {
        Some((_, 1, Packet::Status(status))) => status.clone(),
        other => panic!("{other:?}"),
    }
}

fn datagram(packet: impl Into<Packet>) -> DatagramsIndication {
    let (from, bytes) = (PeerId::CONFIGURED, packet.into().to_bytes());
    DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false }
}

#[test]
fn a_status_is_as_wide_as_its_offsets() {
    let mut pair = deaf(&config());
    let last = Data { width: Width::Bits16, wants_status: true, ..data(&pair, 65_535, 1) };
    pair.hear(1, last);
    let answer = last_status(&pair);
    assert_eq!((answer.width, answer.in_response_to), (Width::Bits32, 65_536));
    // The METADATA arrives before the answer leaves, and its file is shorter.
    let mut pair = deaf(&config());
    pair.tell(1, DatagramsIndication::Room(0));
    let far = Data { wants_status: true, ..data(&pair, 1_000_000, 0) };
    pair.hear(1, far);
    pair.hear(1, Metadata { width: Width::Bits16, ..metadata(10) });
    pair.tell(1, DatagramsIndication::Room(8));
    let answer = last_status(&pair);
    assert_eq!((answer.width, answer.in_response_to), (Width::Bits32, 1_000_000));
}

#[test]
fn the_longest_of_the_packets_before_the_metadata_must_fit() {
    let mut pair = deaf(&config());
    for (offset, length) in [(0, 1_000), (1, 1)] {
        let packet = data(&pair, offset, length);
        pair.hear(1, packet);
    }
    pair.hear(1, Metadata { checksum: Checksum::Crc32c(1), ..metadata(20) });
    assert_eq!((pair.ends[1].counters().damaged, pair.ends[1].incoming.len()), (1, 0));
    assert_eq!((pair.payload[0], pair.ends[1].held_bytes), (0, 0));
    // Nor may the file have ended before that.
    let mut pair = deaf(&config());
    for (offset, length, is_end) in [(0, 1_000, false), (1, 1, false), (2, 18, true)] {
        let packet = Data { is_end, ..data(&pair, offset, length) };
        pair.hear(1, packet);
    }
    assert_eq!((pair.ends[1].counters().damaged, pair.ends[1].incoming.len()), (1, 0));
}

#[test]
fn a_report_of_content_that_is_not_given_yet_is_cut() {
    let mut pair = deaf(&config());
    let properties = pair.file("a", 10_000);
    pair.ask(0, FilesRequest::Put { file: 0, properties, available: 3_100, asks: false });
    pair.run(Duration::ZERO);
    pair.hear(0, status(&pair, 10_000, 10_000, &[]));
    assert_eq!(pair.ends(0), [], "the rest is unknown to anybody");
    pair.hear(0, status(&pair, 0, 10_000, &[(3_050, 3_059), (5_000, 9_999)]));
    pair.hear(0, status(&pair, 0, 10_000, &[(3_080, 9_999)]));
    assert_eq!(pair.offsets(0), [0, 1_002, 2_004, 3_050, 3_080]);
    assert_eq!(pair.ends[0].counters().violations, 0);
    pair.ask(0, FilesRequest::Available { file: FileId::Own(0), up_to: 10_000 });
    pair.run(Duration::ZERO);
    assert_eq!(pair.offsets(0)[5..], [3_100, 4_102, 5_104, 6_106, 7_108, 8_110, 9_112]);
    pair.hear(0, status(&pair, 10_000, 10_000, &[]));
    assert_eq!(pair.ends(0), [done(FileId::Own(0))]);
}

#[test]
fn a_report_that_leaves_nothing_to_send_is_followed_by_a_request() {
    let mut pair = deaf(&config());
    let properties = pair.file("a", 10_000);
    pair.ask(0, FilesRequest::Put { file: 0, properties, available: 3_100, asks: false });
    pair.run(Duration::ZERO);
    // The packets of another file wait, and those of the first one for them.
    pair.tell(0, DatagramsIndication::Room(0));
    let other = pair.file("b", 5_000);
    pair.put(0, 1, other, false);
    pair.ask(0, FilesRequest::Available { file: FileId::Own(0), up_to: 10_000 });
    let session = *pair.sessions(0).first().expect("METADATA was sent");
    pair.hear(0, Status { incomplete: true, ..status(&pair, 4_000, 10_000, &[]) });
    pair.tell(0, DatagramsIndication::Room(8));
    let asks = |packet: &Packet| match packet {
        Packet::Data(data) => data.session == session && data.wants_status && data.offset == 10_000,
        _ => false,
    };
    assert!(pair.log.iter().flatten().any(|(_, _, packet)| asks(packet)), "{:?}", pair.log);
    assert_eq!(pair.offsets(0)[..3], [0, 1_002, 2_004]);
}

#[test]
fn a_bundle_that_is_half_given_is_not_sent() {
    let now = Instant::ZERO;
    let mut link = Link::new(config(), Rng::new(1));
    let mut session = None;
    let mut settle = |link: &mut Link| {
        let (mut said, mut sent) = (Vec::new(), 0);
        loop {
            if let Some(indication) = link.poll_indication(now) {
                said.push(indication);
            } else if let Some(request) = link.poll_request(now) {
                let DatagramsRequest::Datagram { bytes, .. } = request else { continue };
                match Packet::decode(&mut bytes.clone()).expect("a link sends valid packets") {
                    Packet::Metadata(metadata) => session = Some(metadata.session),
                    Packet::Data(data) => sent += data.payload.len(),
                    other => panic!("{other:?}"),
                }
            } else {
                return (said, sent, session);
            }
        }
    };
    link.handle_request(now, BundlesRequest::Connect);
    settle(&mut link);
    let peer = Some(PeerId::CONFIGURED);
    link.handle_indication(now, DatagramsIndication::Joined { bytes_max: 65_507, peer, group: None });
    link.handle_indication(now, DatagramsIndication::Room(1_000));
    settle(&mut link);
    let transfer = TransferId(0);
    link.handle_request(now, BundlesRequest::Open { transfer, priority: Priority::default(), length: 5_000 });
    let half = |last| BundlesRequest::Piece { transfer, data: Bytes::from_static(&[7; 2_500]), last };
    link.handle_request(now, half(false));
    let (_, sent, session) = settle(&mut link);
    assert_eq!(sent, 2_004);
    let report = |progress, holes: &[(u128, u128)]| {
        let (width, holes) = (Width::Bits16, holes.to_vec());
        let plain = Status::with_outcome(session.expect("METADATA was sent"), Outcome::Success);
        datagram(Status { width, progress, in_response_to: 5_000, holes, ..plain })
    };
    for (progress, holes) in [(5_000, &[][..]), (0, &[(4_000, 4_999)]), (0, &[(2_400, 4_999)])] {
        link.handle_indication(now, report(progress, holes));
        let (said, ..) = settle(&mut link);
        let ends = |said: &BundlesIndication| {
            matches!(said, BundlesIndication::Sent { .. } | BundlesIndication::Failed { .. })
        };
        assert!(!said.iter().any(ends), "{said:?}");
    }
    link.handle_request(now, half(true));
    assert_eq!(settle(&mut link).1, 2_500);
    link.handle_indication(now, report(5_000, &[]));
    assert!(settle(&mut link).0.contains(&BundlesIndication::Sent { transfer }));
}

#[test]
fn an_empty_file_is_not_reported_before_the_user_has_accepted_it() {
    let mut pair = deaf(&config());
    let abilities = super::super::leaving::abilities();
    let (path, auth) = ("a".to_owned(), Bytes::new());
    let end = &mut pair.ends[1];
    // The offer is not taken from the endpoint.
    end.handle_indication(pair.now, datagram(metadata(0)));
    let request = Request { abilities, kind: RequestKind::Put, session: 9, path, auth };
    end.handle_indication(pair.now, datagram(request));
    let released = end.poll_request(pair.now);
    assert!(matches!(released, Some(DatagramsRequest::Release(_))), "{released:?}");
    let Some(DatagramsRequest::Datagram { mut bytes, .. }) = end.poll_request(pair.now) else {
        panic!("the request is answered")
    };
    let answer = Packet::decode(&mut bytes);
    assert!(matches!(answer, Ok(Packet::Status(Status { lacks_metadata: true, .. }))), "{answer:?}");
}

fn get(session: u32, path: &str) -> Request {
    let (abilities, kind) = (super::super::leaving::abilities(), RequestKind::Get);
    Request { abilities, kind, session, path: path.to_owned(), auth: Bytes::new() }
}

#[test]
fn a_late_report_of_a_file_does_not_complete_the_next_request_for_it() {
    let mut pair = pair(&config());
    let file = pair.file("a", 1_500);
    pair.shelf[0].insert("a".to_owned(), file);
    pair.get(1, 0, "a", None);
    assert!(pair.run(100 * SECOND));
    let report = last_status(&pair);
    assert_eq!(report.progress, 1_500);
    pair.loses = Box::new(|node, packet| node == 0 && matches!(packet, Packet::Data(_)));
    pair.get(1, 1, "a", None);
    pair.run(SECOND * 3 / 2);
    assert_eq!(pair.sessions(1).len(), 2, "each has a number of its own");
    pair.hear(0, report);
    pair.loses = Box::new(|_, _| false);
    assert!(pair.run(1_000 * SECOND));
    assert_eq!(pair.ends(0), [0, 1].map(|file| done(FileId::Peer(file))));
    assert_eq!((pair.ends(1), pair.payload[0]), ([0, 1].map(|file| done(FileId::Own(file))).to_vec(), 3_000));
}

#[test]
fn a_request_for_another_file_with_a_number_in_use_is_refused() {
    let mut pair = deaf(&config());
    for path in ["a", "b"] {
        let file = pair.file(path, 1_500);
        pair.shelf[0].insert(path.to_owned(), file);
    }
    pair.hear(0, get(5, "a"));
    let packets = |pair: &Pair| pair.log.as_ref().map_or(0, Vec::len);
    let first = packets(&pair);
    pair.hear(0, get(5, "a"));
    pair.hear(0, get(5, "b"));
    let answers: Vec<_> = dialogue(&pair).split_off(first);
    assert_eq!(answers, ["0.00 -> METADATA a 1500", "0.00 -> STATUS InUse"]);
    // Neither does a request name a file that this side sends of its own accord.
    let own = pair.file("c", 1_500);
    pair.put(0, 0, own, false);
    pair.run(Duration::ZERO);
    let session = *pair.sessions(0).iter().find(|session| **session != 5).expect("METADATA was sent");
    pair.hear(0, get(session, "a"));
    assert_eq!(dialogue(&pair).pop().expect("it is answered"), "0.00 -> STATUS InUse");
}

#[test]
fn the_first_missing_bytes_have_a_reserve() {
    let mut pair = receiving(&Config { incoming_bytes_max: 65_536, ..config() });
    pair.stores = false;
    for index in 1..70 {
        let packet = data(&pair, index * 1_000, 1_000);
        pair.hear(1, packet);
    }
    // Three quarters of the limit, with 128 bytes for each piece and for the hole.
    assert_eq!((pair.payload[0], pair.ends[1].counters().dropped), (43_000, 26));
    let first = data(&pair, 0, 1_000);
    pair.hear(1, first);
    assert_eq!((pair.payload[0], pair.ends[1].counters().dropped), (44_000, 26));
    // The user can store what it has in order, and all others have room again.
    pair.store_all();
    let far = data(&pair, 90_000, 1_000);
    pair.hear(1, far);
    assert_eq!((pair.payload[0], pair.ends[1].held_bytes), (45_000, 1_256));
}

#[test]
fn small_pieces_and_holes_count_with_their_memory() {
    let small = Config { incoming_bytes_max: 65_536, ..config() };
    let hear_bytes = |pair: &mut Pair, step: u64| {
        for index in 0..1_000 {
            let packet = data(pair, 10 + index * step, 1);
            pair.hear(1, packet);
        }
    };
    // Of three quarters of the limit, each byte takes 129, or 257 with a hole of its own.
    for (step, bytes, holes) in [(1, 380, 1), (2, 191, 191)] {
        let mut pair = receiving(&small);
        pair.stores = false;
        hear_bytes(&mut pair, step);
        assert_eq!((pair.payload[0], pair.ends[1].held_bytes), (bytes, 129 * bytes + 128 * holes));
        pair.store_all();
        assert_eq!(pair.ends[1].held_bytes, 128 * holes);
    }
    // They have no holes until the file has begun.
    let mut pair = deaf(&small);
    pair.stores = false;
    hear_bytes(&mut pair, 2);
    assert_eq!((pair.ends[1].held_bytes, pair.ends[1].counters().dropped), (129 * 381, 619));
    pair.hear(1, metadata(100_000));
    assert_eq!((pair.payload[0], pair.ends[1].held_bytes), (191, 257 * 191));
    assert_eq!(pair.ends[1].counters().dropped, 809);
}

#[test]
fn the_last_piece_of_damaged_content_is_not_passed_on() {
    let wrong = Metadata { checksum: Checksum::Crc32c(1), ..metadata(2_000) };
    for is_named_first in [true, false] {
        let mut pair = deaf(&config());
        if is_named_first {
            pair.hear(1, wrong.clone());
        }
        for offset in [1_000, 0] {
            let packet = data(&pair, offset, 1_000);
            pair.hear(1, packet);
        }
        if !is_named_first {
            pair.hear(1, wrong.clone());
        }
        assert_eq!(pair.ends(1), [failed(FileId::Peer(0), FileFailure::Damaged)]);
        assert_eq!(pair.payload[0], if is_named_first { 1_000 } else { 0 });
    }
}

#[test]
fn requests_without_an_answer_fail() {
    let mut pair = deaf(&config());
    let file = pair.file("a", 5_000);
    pair.put(0, 0, file, true);
    assert!(pair.run(1_000 * SECOND), "nothing happens any more");
    pair.ask(0, FilesRequest::Delete { file: 1, path: "b".to_owned() });
    assert!(pair.run(1_000 * SECOND), "nothing happens any more");
    let silent = |file| failed(FileId::Own(file), FileFailure::Silent);
    assert_eq!(pair.ends(0), [silent(0), silent(1)]);
    let after = pair.ended[0][0].0.saturating_since(Instant::ZERO);
    assert_eq!(after, config().inactivity_limit());
}

#[test]
fn repetitions_do_not_extend_the_life_of_a_file() {
    let limit = config().inactivity_limit();
    let put = Request { kind: RequestKind::Put, ..get(9, "a") };
    for is_named in [true, false] {
        let mut pair = deaf(&config());
        let packet = Data { wants_status: true, ..data(&pair, 1_000, 1_000) };
        for _ in 0..limit.as_secs() + 9 {
            pair.hear(1, put.clone());
            if is_named {
                pair.hear(1, metadata(100_000));
            }
            pair.hear(1, packet.clone());
            pair.run(SECOND);
        }
        assert_eq!(pair.ends[1].counters().inactive, 1);
    }
    // New bytes extend it.
    let mut pair = receiving(&config());
    for index in 0..limit.as_secs() + 9 {
        let packet = data(&pair, index * 10, 5);
        pair.hear(1, packet);
        pair.run(SECOND);
    }
    assert_eq!(pair.ends[1].counters().inactive, 0);
    // The sender knows a repeated report by its stamp.
    for is_repeated in [true, false] {
        let mut pair = sending(&config(), 4_500);
        for _ in 0..limit.as_secs() + 9 {
            let stamp = if is_repeated { None } else { Some(last_stamp(&pair)) };
            pair.hear(0, Status { stamp, ..status(&pair, 1_000, 4_500, &[(1_000, 1_999)]) });
            pair.run(SECOND);
        }
        assert_eq!(pair.ends[0].counters().inactive, u64::from(is_repeated));
    }
    let mut pair = deaf(&config());
    let file = pair.file("a", 1_500);
    pair.shelf[0].insert("a".to_owned(), file);
    for _ in 0..limit.as_secs() + 9 {
        pair.hear(0, get(5, "a"));
        pair.run(SECOND);
    }
    assert_eq!(pair.ends[0].counters().inactive, 1, "a repeated request");
}

#[test]
fn repeated_answers_to_a_request_do_not_extend_its_life() {
    let mut pair = deaf(&config());
    pair.get(1, 0, "a", None);
    pair.run(Duration::ZERO);
    let session = *pair.sessions(1).first().expect("a request was sent");
    let answer = Status::with_outcome(session, Outcome::Success);
    // The first answer is news: the peer is alive, and looks for the file.
    let limit = config().inactivity_limit();
    pair.run(limit - SECOND);
    let answered_at = pair.now;
    for _ in 0..limit.as_secs() + 9 {
        pair.hear(1, answer.clone());
        pair.run(SECOND);
    }
    assert_eq!(pair.ends(1), [failed(FileId::Own(0), FileFailure::Silent)]);
    assert_eq!(pair.ended[1][0].0.saturating_since(answered_at), limit);
}

#[test]
fn the_number_of_a_session_is_found_by_one_search_however_often_a_path_was_requested() {
    let mut pair = pair(&config());
    let file = pair.file("a", 10);
    pair.shelf[0].insert("a".to_owned(), file);
    for file in 0..300 {
        pair.get(1, file, "a", None);
        assert!(pair.run(100 * SECOND));
    }
    let (numbers, before) = (pair.sessions(1), searches());
    let (_, next) = pair.ends[1].new_session(Side::Receiver, "a", Wish::Get as u64, 0);
    assert!(searches() - before <= 2, "{} searches", searches() - before);
    assert_eq!(numbers.len(), 300);
    assert!(!numbers.contains(&next) && numbers.contains(&next.wrapping_sub(1)));
}

#[test]
fn free_numbers_are_those_of_no_session_that_is_under_way_or_remembered() {
    let mut pair = pair(&Config { closed_sessions_max: 6, ..config() });
    let mut rng = Rng::new(3);
    for file in 0..400 {
        let path = ["a", "b", "c"][rng.below(3) as usize];
        let properties = pair.file(path, 1_500);
        pair.refuses = rng.chance(0.2).then_some(FileFailure::NotInterested);
        if rng.chance(0.8) {
            pair.shelf[0].insert(path.to_owned(), properties.clone());
        } else {
            pair.shelf[0].remove(path);
        }
        match rng.below(3) {
            0 => pair.get(1, file, path, None),
            1 => pair.put(1, file, properties, rng.chance(0.5)),
            _ => pair.put(0, file, properties, rng.chance(0.5)),
        }
        pair.run(SECOND * rng.below(4) as u32);
        for end in &pair.ends {
            let numbers = |keys: Vec<Key>| keys.into_iter().map(|(_, number)| number).collect::<Vec<_>>();
            let sent = numbers(end.outgoing.keys().copied().collect());
            let received = numbers(end.incoming.keys().chain(end.closed.keys()).copied().collect());
            for (side, used) in [(Side::Sender, sent), (Side::Receiver, received)] {
                for from in used.iter().flat_map(|number| [number.wrapping_sub(1), *number]) {
                    let mut after = (0..).map(|more| from.wrapping_add(more));
                    let free = after.find(|number| !used.contains(number));
                    assert_eq!(Some(end.numbers.first_free(side, from)), free);
                }
            }
        }
    }
    assert!(pair.ends.iter().all(|end| end.closed.len() == 6));
}
