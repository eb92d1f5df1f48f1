//! Packets that contradict each other, the file, or what the user has given of it; limits of memory, and silence.

use super::SECOND;
use super::pair::Pair;
use super::scene::{config, data, failed, metadata, pair, receiving};
use crate::saratoga::Config;
use crate::saratoga::wire::{Checksum, Data, Metadata, Packet, Status, Width};
use crate::service::{DatagramsIndication, FileFailure, FileId, FilesRequest};
use crate::time::Instant;

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
fn the_first_missing_bytes_have_a_reserve() {
    let mut pair = receiving(&Config { incoming_bytes_max: 65_536, ..config() });
    pair.stores = false;
    for index in 1..70 {
        let packet = data(&pair, index * 1_000, 1_000);
        pair.hear(1, packet);
    }
    // Three quarters of the limit.
    assert_eq!((pair.payload[0], pair.ends[1].counters().dropped), (49_000, 20));
    let first = data(&pair, 0, 1_000);
    pair.hear(1, first);
    assert_eq!((pair.payload[0], pair.ends[1].counters().dropped), (50_000, 20));
    // The user can store what it has in order, and all others have room again.
    pair.store_all();
    let far = data(&pair, 90_000, 1_000);
    pair.hear(1, far);
    assert_eq!((pair.payload[0], pair.ends[1].held_bytes), (51_000, 1_000));
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
