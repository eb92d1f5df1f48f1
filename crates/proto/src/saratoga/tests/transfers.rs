//! Files between two endpoints, as dialogues.

use super::SECOND;
use super::pair::{Pair, perfect};
use super::scene::{
    broken_get, config, data, dialogue, done, failed, lose, metadata, paced_pair, pair, partial_of,
    receiving, sending, status,
};
use crate::saratoga::Config;
use crate::saratoga::wire::{Data, Kind, Metadata, Packet};
use crate::service::{DownReason, FileFailure, FileId, FilesIndication, FilesRequest, PartialFile, Wish};

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
fn after_an_interruption_holes_are_reported_and_filled_at_once() {
    use crate::service::DatagramsIndication::Carrier;
    let mut pair = receiving(&config());
    for offset in [0, 5_000] {
        let packet = data(&pair, offset, 1_000);
        pair.hear(1, packet);
    }
    pair.run(SECOND / 2);
    assert_eq!(pair.holes(1), [(1_000, 4_999)]);
    [false, true].into_iter().for_each(|is_up| pair.tell(1, Carrier(is_up)));
    assert_eq!(pair.holes(1), [(1_000, 4_999); 2], "the list may be lost");
    let mut pair = sending(&config(), 100_000);
    let first = pair.offsets(0).len();
    let report = status(&pair, 1_000, 90_000, &[(1_000, 1_999)]);
    pair.hear(0, report.clone());
    [false, true].into_iter().for_each(|is_up| pair.tell(0, Carrier(is_up)));
    pair.hear(0, report);
    assert_eq!(pair.offsets(0)[first..], [1_000; 2], "the packet may be lost");
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
    // Packets that were sent before the receiver's report arrived.
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
