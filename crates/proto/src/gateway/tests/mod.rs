//! Two gateways over flows without errors: conversations of their programs.

mod pair;
mod shared;

use crate::engine::{Engine as _, drain};
use crate::gateway::{Config, Gateway};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    CloseReason, ConnectionProperties, ConnectionsIndication, ConnectionsRequest, DownReason, Precedence,
    ProgramKind, ProgramsIndication, ProgramsRequest, TransportService,
};
use crate::time::{Duration, Instant};
use pair::{Pair, Side::*};
use std::collections::BTreeSet;

const NOW: Instant = Instant::ZERO;

#[test]
fn a_stream_is_bytes_in_both_directions_and_ends_in_each() {
    let mut pair = Pair::new();
    pair.arrives(Near, 1, ProgramKind::Stream, TransportService::Reliable, 80);
    assert_eq!(pair.told(Far), ["open 1 stream at port 80"], "before the program has sent anything");
    pair.says(Near, 1, "GET /");
    assert_eq!((pair.told(Far), pair.told(Near)), (vec![], vec![]), "the program has not answered");
    pair.opened(Far, 1);
    assert_eq!(pair.told(Far), ["data 1 GET /"]);
    assert_eq!(pair.told(Near), [""; 0], "what is not written is not acknowledged");
    pair.written(Far, 1, 2);
    assert_eq!(pair.told(Near), ["release 1 2"]);
    pair.finishes(Near, 1);
    pair.written(Far, 1, 3);
    assert_eq!((pair.told(Near), pair.told(Far)), (vec!["release 1 3".into()], vec!["finish 1".into()]));
    pair.says(Far, 1, "hello");
    assert_eq!(pair.told(Near), ["data 1 hello"], "after the end of the other direction");
    pair.finishes(Far, 1);
    assert_eq!(pair.told(Near), ["finish 1"]);
    pair.closes(Far, 1);
    pair.written(Near, 1, 5);
    pair.closes(Near, 1);
    pair.assert_empty();
    assert_eq!(pair.told(Far), ["release 1 5"; 0], "a program that has closed reads no more");
}

#[test]
fn a_program_that_speaks_first_is_heard() {
    let mut pair = Pair::new();
    pair.arrives(Near, 1, ProgramKind::Stream, TransportService::Adaptive, 25);
    pair.opened(Far, 1);
    pair.says(Far, 1, "220 ready");
    assert_eq!(pair.told(Near), ["data 1 220 ready"]);
}

#[test]
fn a_reset_at_one_end_is_a_reset_at_the_other() {
    for (from, to) in [(Near, Far), (Far, Near)] {
        let mut pair = Pair::new();
        pair.stands(1);
        pair.resets(from, 1);
        assert_eq!(pair.told(to), ["abort 1"]);
        pair.assert_empty();
    }
    // Also when the direction to the program that resets has ended.
    let mut pair = Pair::new();
    pair.stands(1);
    pair.finishes(Near, 1);
    pair.told(Far);
    pair.resets(Far, 1);
    assert_eq!(pair.told(Near), ["abort 1"]);
    pair.assert_empty();
}

#[test]
fn a_program_that_is_not_there_is_a_reset() {
    let mut pair = Pair::new();
    pair.arrives(Near, 1, ProgramKind::Stream, TransportService::Reliable, 81);
    pair.says(Near, 1, "lost");
    pair.told(Far);
    pair.refuses(Far, 1);
    assert_eq!(pair.told(Near), ["abort 1"]);
    pair.assert_empty();
    assert_eq!(pair.count(Far, "gateway_refused"), 1);
}

#[test]
fn a_gap_in_a_stream_is_a_reset_and_in_datagrams_a_loss() {
    let mut pair = Pair::new();
    pair.arrives(Near, 1, ProgramKind::Stream, TransportService::QuasiReliable, 80);
    pair.opened(Far, 1);
    pair.told(Far);
    pair.loses(Near, 1);
    pair.says(Near, 1, "lost");
    assert_eq!(
        (pair.told(Far), pair.told(Near)),
        (vec!["abort 1".into()], vec!["release 1 4".into(), "abort 1".into()])
    );
    pair.assert_empty();
    pair.arrives(Near, 2, ProgramKind::Datagrams, TransportService::QuasiReliable, 53);
    pair.says(Near, 2, "one");
    assert_eq!(pair.told(Far), ["open 2 datagrams at port 53"]);
    pair.opened(Far, 2);
    assert_eq!(pair.told(Far), ["data 2 one"], "it has waited");
    pair.loses(Near, 2);
    pair.says(Near, 2, "two");
    pair.says(Near, 2, "three");
    pair.says(Near, 2, "four");
    // The gap may have taken the end of the datagram before the next one.
    assert_eq!(pair.told(Far), ["data 2 four"]);
    assert_eq!(pair.count(Far, "gateway_gaps"), 2);
}

/// Without its first octet nobody knows what a flow carries: its sender must learn that, or it sends for ever.
#[test]
fn a_flow_whose_first_octet_is_lost_is_refused_and_its_sender_begins_again() {
    let mut pair = Pair::new();
    for (program, kind, service) in [
        (1, ProgramKind::Datagrams, TransportService::UnreliableConnection),
        (2, ProgramKind::Datagrams, TransportService::QuasiReliable),
        (3, ProgramKind::Stream, TransportService::Nack),
    ] {
        pair.loses_next(Near);
        pair.arrives(Near, program, kind, service, 53);
        pair.says(Near, program, "one");
        assert_eq!(pair.told(Near).last(), Some(&format!("abort {program}")), "{service:?}");
        assert_eq!(pair.told(Far), [""; 0], "{service:?}");
        pair.assert_empty();
    }
    assert_eq!((pair.count(Far, "gateway_refused"), pair.count(Far, "gateway_gaps")), (3, 3));
}

/// The gateway that asked knows what the answers are.
#[test]
fn answers_whose_first_octet_is_lost_begin_with_the_next_whole_datagram() {
    let mut pair = Pair::new();
    pair.arrives(Near, 1, ProgramKind::Datagrams, TransportService::QuasiReliable, 53);
    pair.says(Near, 1, "question");
    pair.opened(Far, 1);
    pair.told(Near);
    pair.loses_next(Far);
    for answer in ["one", "two", "three"] {
        pair.says(Far, 1, answer);
    }
    assert_eq!(pair.told(Near), ["data 1 two", "data 1 three"]);
}

#[test]
fn datagrams_are_messages_and_answers_find_their_sender() {
    let mut pair = Pair::new();
    for program in [1, 2] {
        pair.arrives(Near, program, ProgramKind::Datagrams, TransportService::UnreliableDatagram, 53);
        pair.says(Near, program, "question");
        pair.opened(Far, program);
        assert_eq!(
            pair.told(Far),
            [format!("open {program} datagrams at port 53"), format!("data {program} question")]
        );
        assert_eq!(pair.told(Near), [format!("release {program} 8")]);
    }
    pair.says(Far, 2, "answer");
    assert_eq!(pair.told(Near), ["data 2 answer"]);
    pair.damages(Near, 1);
    pair.says(Near, 1, "noise");
    assert_eq!(pair.told(Far)[1..], ["data 1 noise (damaged)"]);
    for program in [1, 2] {
        pair.closes(Near, program);
        assert_eq!(pair.told(Far), [format!("finish {program}")]);
        pair.closes(Far, program);
    }
    pair.assert_empty();
}

#[test]
fn datagrams_that_wait_are_bounded_and_the_oldest_are_dropped() {
    let mut pair = Pair::new();
    pair.has_room(0);
    pair.arrives(Near, 1, ProgramKind::Datagrams, TransportService::UnreliableDatagram, 53);
    let long = "x".repeat(1000);
    (0..1000).for_each(|number| pair.says(Near, 1, &format!("{number:03}{long}")));
    assert_eq!(pair.told(Near).len(), 1000, "each is released at once");
    assert_eq!(pair.count(Near, "gateway_dropped"), 1000 - 256 * 1024 / 1003);
    pair.has_room(1 << 20);
    pair.opened(Far, 1);
    let told = pair.told(Far);
    assert_eq!(told.len(), 1 + 256 * 1024 / 1003);
    assert!(told[1].starts_with("data 1 739"), "{}", told[1]);
    pair.says(Near, 1, &"x".repeat(2000));
    pair.says(Near, 1, "");
    assert_eq!(
        (pair.told(Far).len(), pair.count(Near, "gateway_dropped")),
        (0, 1000 - 261 + 2),
        "longer than a message"
    );
}

/// The room of a flow with short packets never reaches the length of a long datagram.
#[test]
fn a_datagram_that_is_longer_than_the_room_of_its_flow_arrives_in_parts() {
    let mut pair = Pair::new();
    pair.has_room(100);
    pair.arrives(Near, 1, ProgramKind::Datagrams, TransportService::UnreliableConnection, 53);
    let long = "x".repeat(40_000);
    pair.says(Near, 1, &long);
    pair.opened(Far, 1);
    pair.told(Far);
    (0..200).for_each(|_| pair.has_room(100));
    // The oldest of those that wait are dropped, but none whose beginning has left.
    (0..10).for_each(|number| pair.says(Near, 1, &format!("{number}{long}")));
    assert_eq!(pair.count(Near, "gateway_dropped"), 4);
    assert_eq!(pair.told(Far), [""; 0]);
    (0..4000).for_each(|_| pair.has_room(100));
    let told = pair.told(Far);
    assert_eq!(told[0], format!("data 1 {long}"));
    let numbers: Vec<&str> = told[1..].iter().map(|told| &told[..8]).collect();
    assert_eq!(numbers, ["data 1 4", "data 1 5", "data 1 6", "data 1 7", "data 1 8", "data 1 9"]);
}

#[test]
fn too_many_connections_are_refused_and_their_places_are_free_again() {
    let mut pair = Pair::with(2);
    (1..=3)
        .for_each(|program| pair.arrives(Near, program, ProgramKind::Stream, TransportService::Reliable, 80));
    assert_eq!(pair.told(Near), ["abort 3"]);
    assert_eq!(pair.told(Far).len(), 2);
    pair.resets(Near, 1);
    assert_eq!(pair.told(Far), ["abort 1"]);
    pair.arrives(Near, 4, ProgramKind::Stream, TransportService::Reliable, 80);
    assert_eq!(pair.told(Far).len(), 1);
    // The peer has more than this side takes.
    let mut pair = Pair::with_limits(3, 2);
    (1..=3)
        .for_each(|program| pair.arrives(Near, program, ProgramKind::Stream, TransportService::Reliable, 80));
    assert_eq!((pair.told(Far).len(), pair.told(Near)), (2, vec!["abort 3".into()]));
}

#[test]
fn when_the_link_goes_down_all_connections_are_reset() {
    let mut pair = Pair::new();
    pair.stands(1);
    pair.goes_down();
    assert_eq!((pair.told(Near), pair.told(Far)), (vec!["abort 1".into()], vec!["abort 1".into()]));
    pair.assert_empty();
    pair.arrives(Near, 2, ProgramKind::Stream, TransportService::Reliable, 80);
    assert_eq!(pair.told(Near), ["abort 2"]);
    pair.comes_up();
    pair.stands(3);
}

#[test]
fn a_flow_of_another_format_is_refused() {
    for first in [&b"\0"[..], b"\x03x", b"GET"] {
        let mut pair = Pair::new();
        pair.foreign_flow(first);
        assert_eq!(pair.told(Far), [""; 0]);
        assert_eq!(pair.count(Far, "gateway_refused"), 1);
        pair.assert_empty();
    }
}

/// The peer takes a flow in which nothing arrives for lost.
#[test]
fn a_quiet_connection_gives_signs_of_life_which_no_program_sees() {
    let mut pair = Pair::new();
    assert!(!pair.has_timer(Near), "an idle gateway costs nothing");
    pair.stands(1);
    pair.arrives(Near, 2, ProgramKind::Datagrams, TransportService::QuasiReliable, 53);
    pair.says(Near, 2, "one");
    pair.opened(Far, 2);
    pair.told(Far);
    pair.told(Near);
    let (minute, before) = (Duration::from_secs(60), pair.parts);
    pair.waits(minute);
    let first = pair.parts;
    assert!(first <= before + 3, "those that had data are not quiet yet");
    pair.waits(minute);
    assert_eq!(pair.parts, first + 3, "both directions of the stream, and the datagrams");
    assert_eq!((pair.told(Near), pair.told(Far)), (vec![], vec![]));
    pair.says(Near, 1, "still there");
    pair.says(Near, 2, "two");
    assert_eq!(pair.told(Far), ["data 1 still there", "data 2 two"]);
    pair.written(Far, 1, 11);
    assert_eq!(
        pair.told(Near),
        ["release 2 3", "release 1 11"],
        "signs of life are accepted and not released"
    );
    pair.finishes(Near, 1);
    pair.finishes(Far, 1);
    pair.closes(Near, 1);
    pair.closes(Far, 1);
    pair.closes(Near, 2);
    pair.closes(Far, 2);
    pair.assert_empty();
    assert!(!pair.has_timer(Near));
}

/// Whatever the parts in which a stream comes and is taken, it arrives as it was sent, and each byte is released once.
#[test]
fn streams_of_any_parts_arrive_as_they_were_sent() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut pair = Pair::new();
        pair.stands(1);
        let (mut sent, mut got, mut written, mut released) = (String::new(), String::new(), 0, 0);
        for _ in 0..60 {
            match rng.below(5) {
                0 => {
                    let room = [0, 1, 2, 3, 7, 100, 1 << 20][rng.below(7) as usize];
                    pair.has_room(room);
                }
                1 => pair.waits(Duration::from_secs(rng.below(100))),
                2 if written < got.len() as u64 => {
                    let some = 1 + rng.below(got.len() as u64 - written);
                    written += some;
                    pair.written(Far, 1, some);
                }
                _ => {
                    let text: String =
                        (0..1 + rng.below(50)).map(|_| char::from(b'a' + rng.below(26) as u8)).collect();
                    pair.says(Near, 1, &text);
                    sent += &text;
                }
            }
            let told = pair.told(Far);
            got.extend(told.iter().map(|told| told.strip_prefix("data 1 ").expect("only data")));
            let told = pair.told(Near);
            released += told
                .iter()
                .map(|told| {
                    told.strip_prefix("release 1 ").expect("only room").parse::<u64>().expect("a number")
                })
                .sum::<u64>();
            assert_eq!(got, sent[..got.len()], "{seed}");
            assert_eq!(released, written, "{seed}");
        }
        (0..sent.len()).for_each(|_| pair.has_room(1 << 20));
        got.extend(pair.told(Far).iter().map(|told| told.strip_prefix("data 1 ").expect("only data")));
        assert_eq!(got, sent, "{seed}");
    }
}

/// Whatever flows a peer opens, and whatever they contain, the gateway stands, and keeps no more than its limit.
#[test]
fn a_hostile_peer_costs_a_bounded_number_of_connections() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let config = Config { programs_max: 8, ..Config::default() };
        let mut gateway = Gateway::new(config, 1 << 63, Rng::new(seed));
        gateway.handle_request(NOW, ProgramsRequest::Listen);
        gateway.handle_indication(NOW, ConnectionsIndication::Up { message_bytes_max: 1000 });
        let (mut open, mut programs) = (BTreeSet::new(), BTreeSet::new());
        for step in 0..300 {
            let incoming = rng.below(step + 1);
            match rng.below(9) {
                0 => {
                    open.insert(step);
                    let properties = ConnectionProperties {
                        service: TransportService::ALL[rng.below(8) as usize],
                        precedence: Precedence::Routine,
                        source_port: [50_000, 60_000, 80][rng.below(3) as usize],
                        destination_port: [50_000, 80, 81][rng.below(3) as usize],
                    };
                    gateway
                        .handle_indication(NOW, ConnectionsIndication::Begin { incoming: step, properties });
                }
                1..=4 if open.contains(&incoming) => {
                    let data: Vec<u8> =
                        (0..rng.below(5)).map(|_| [0, 1, 2, 9, 255][rng.below(5) as usize]).collect();
                    let (damaged, last) = (rng.chance(0.1), rng.chance(0.1));
                    if last {
                        open.remove(&incoming);
                    }
                    let data = data.into();
                    gateway.handle_indication(
                        NOW,
                        ConnectionsIndication::Data { incoming, data, damaged, last },
                    );
                }
                5 if open.remove(&incoming) => {
                    gateway.handle_indication(NOW, ConnectionsIndication::Lost { incoming });
                }
                6 if open.contains(&incoming) => {
                    gateway.handle_indication(NOW, ConnectionsIndication::Gap { incoming, bytes: None });
                }
                _ => {
                    let Some(program) = programs.iter().copied().nth(rng.below(8) as usize) else { continue };
                    gateway.handle_request(
                        NOW,
                        match rng.below(4) {
                            0 => ProgramsRequest::Opened { program },
                            1 => ProgramsRequest::Data { program, bytes: vec![7; 10].into() },
                            2 => ProgramsRequest::Finish { program },
                            _ => ProgramsRequest::Closed { program, reason: CloseReason::Reset },
                        },
                    );
                }
            }
            drain(
                &mut gateway,
                NOW,
                |told| match told {
                    ProgramsIndication::Open { program, .. } => drop(programs.insert(program)),
                    ProgramsIndication::Abort { program } => drop(programs.remove(&program)),
                    _ => {}
                },
                |asked| {
                    if let ConnectionsRequest::Refuse { incoming, .. } = asked {
                        open.remove(&incoming);
                    }
                },
            );
            let shown = Observation::of(&gateway).parts[0].number("gateway_programs");
            assert!(shown <= Some(8), "{seed}: {shown:?}");
        }
        let reason = DownReason::PeerClosed;
        gateway.handle_indication(NOW, ConnectionsIndication::Down { reason, retry: true });
        assert_eq!(Observation::of(&gateway).parts[0].number("gateway_programs"), Some(0), "{seed}");
    }
}
