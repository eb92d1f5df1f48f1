//! Windows, memory and repair traffic, and their limits.

use super::hostile::{answer, inject, packets, sending};
use super::pair::{Line, Pair, content};
use super::services::{line, pair, transfer};
use crate::aerotp::assembly::Arrival;
use crate::aerotp::block_receiver::BlockReceiver;
use crate::aerotp::block_sender::{self, BLOCK_NUMBERS};
use crate::aerotp::wire::{Flags, Header, Kind, Packet, TRAILER_BYTES};
use crate::aerotp::{BUNDLES_PORT, Config, Endpoint, Link};
use crate::engine::{Engine, drain};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    BundlesIndication, BundlesRequest, ConnectionFailure, ConnectionsRequest, DatagramsIndication, PeerId,
    Precedence, RefuseReason, TransportService,
};
use crate::time::{Duration, Instant};
use bytes::Bytes;

const SECOND: Duration = Duration::from_secs(1);

/// First sequence number of the connections of forged packets.
const FIRST: u32 = 5 << 20;

/// Packet with data.
fn data(service: TransportService, index: u32, flags: Flags, payload: Bytes) -> Packet {
    let header = Header {
        source_port: 1_001,
        destination_port: 80,
        kind: Kind::Data,
        service,
        precedence: Precedence::Routine,
        header_in_code: false,
        in_blocks: false,
        strength: 0,
        flags,
        sequence: FIRST + index,
        timestamp: 7,
        length: payload.len() as u16,
    };
    Packet { header, payload }
}

/// Packet with a damaged payload.
fn damaged(service: TransportService, index: u32, length: usize) -> Bytes {
    let mut bytes = data(service, index, Flags::ASYN, vec![1; length].into()).to_bytes().to_vec();
    let at = bytes.len() - TRAILER_BYTES - 1;
    bytes[at] ^= 1;
    bytes.into()
}

/// Bytes of incoming connections that a node has in memory.
fn held(pair: &Pair, node: usize) -> u64 {
    Observation::of(&pair.nodes[node].engine).parts[0].number("bytes_incoming").expect("it is shown")
}

#[test]
fn connections_of_every_service_may_have_more_segments_than_the_window() {
    let config = Config { window_segments: 8, segment_bytes: 500, ..Config::default() };
    for (service, parity_segments) in TransportService::ALL
        .map(|service| (service, 0))
        .into_iter()
        .chain([(TransportService::QuasiReliable, 2)])
    {
        let config = Config { parity_segments, ..config.clone() };
        let (sink, pair) = transfer(&config, service, 0.0, 20_000, 1);
        assert_eq!((sink.bytes, pair.sent.len()), (20_000, 1), "{service:?}");
    }
}

#[test]
fn damaged_segments_that_are_asked_for_take_a_limited_part_of_the_memory() {
    for (service, deliver_damaged) in [
        (TransportService::Nack, false),
        (TransportService::Nack, true),
        (TransportService::NackMack, false),
        (TransportService::NackMack, true),
    ] {
        let config = Config { incoming_bytes_max: 65_536, deliver_damaged, ..Config::default() };
        let mut pair = pair(&config, 0.0, 1);
        for index in 1..3_000 {
            inject(&mut pair, 1, damaged(service, index, 1_000));
        }
        let held = held(&pair, 1);
        assert!((40_000..=65_536).contains(&held), "{service:?} {deliver_damaged}: {held}");
    }
}

#[test]
fn each_segment_counts_with_the_memory_that_it_takes_beside_its_bytes() {
    // Segments that wait for the first one, those that the user has not accepted, and messages.
    for (service, first) in [
        (TransportService::Reliable, 1),
        (TransportService::Reliable, 0),
        (TransportService::UnreliableDatagram, 0),
    ] {
        let config = Config { incoming_bytes_max: 65_536, ..Config::default() };
        let mut pair = pair(&config, 0.0, 1);
        pair.holds[1] = true;
        for index in first..5_000 {
            let payload = vec![content(1, index.into())].into();
            inject(&mut pair, 1, data(service, index, Flags::ASYN, payload).to_bytes());
        }
        let segments = pair.counters(1).segments_received;
        assert!((500..2_000).contains(&segments), "{service:?} {first}: {segments}");
    }
}

#[test]
fn a_damaged_segment_of_a_sender_that_stays_silent_is_asked_for_once() {
    for service in [TransportService::Nack, TransportService::NackMack] {
        let mut pair = pair(&Config::default(), 0.0, 1);
        inject(&mut pair, 1, damaged(service, 0, 1_000));
        pair.run(100 * SECOND);
        assert_eq!(pair.counters(1).nacks_sent, 1, "{service:?}");
        // It has come again, damaged again.
        inject(&mut pair, 1, damaged(service, 0, 1_000));
        pair.run(SECOND / 2);
        let expected = if service.acknowledges() { 2 } else { 1 };
        assert_eq!(pair.counters(1).nacks_sent, expected, "{service:?}");
    }
}

#[test]
fn a_damaged_segment_is_asked_for_as_often_as_the_configuration_says() {
    let config = Config { nack_attempts: 3, ..Config::default() };
    let mut pair = pair(&config, 0.0, 1);
    inject(&mut pair, 1, damaged(TransportService::Nack, 0, 1_000));
    pair.run(100 * SECOND);
    assert_eq!(pair.counters(1).nacks_sent, 3);
}

#[test]
fn negative_acknowledgements_before_the_round_trip_is_known_repeat_little() {
    let mut pair = sending(TransportService::Nack, 1_000_000);
    let before = pair.counters(0).segments_resent;
    let storm = answer(&pair, 0, Kind::Nack, Flags::NONE, 1, &[2, 3, 4, 5]);
    for _ in 0..1_000 {
        inject(&mut pair, 0, storm.clone());
        pair.run(Duration::from_micros(50));
    }
    let repeated = pair.counters(0).segments_resent - before;
    assert!(repeated <= 5, "{repeated}");
}

#[test]
fn the_round_trip_is_measured_without_acknowledgements() {
    let mut pair = pair(&Config::default(), 0.0, 1);
    pair.send(0, 1, TransportService::Nack, 1_000_000);
    pair.run(SECOND);
    let trip = pair.nodes[0].engine.outgoing[&1].trip.smoothed().expect("the set-up was answered");
    assert!((20..30).contains(&trip.as_millis()), "{trip:?}");
}

/// The user accepts after two seconds, when nothing is under way.
#[test]
fn the_time_until_the_user_accepts_is_no_round_trip() {
    for service in TransportService::ALL.into_iter().filter(|service| service.acknowledges()) {
        let config = Config { window_segments: 100, ..Config::default() };
        let mut pair = pair(&config, 0.0, 1);
        pair.holds[1] = true;
        pair.send(0, 1, service, 10_000_000);
        pair.run(2 * SECOND);
        pair.accept_all(1);
        pair.run(SECOND / 20);
        let trip = pair.nodes[0].engine.outgoing[&1].trip.smoothed().expect("it was answered");
        assert!(trip < SECOND / 10, "{service:?}: {trip:?}");
    }
}

#[test]
fn connections_whose_users_accept_nothing_leave_room_for_others() {
    for service in
        [TransportService::Reliable, TransportService::Adaptive, TransportService::UnreliableDatagram]
    {
        let config = Config { incoming_bytes_max: 1 << 20, ..Config::default() };
        let mut pair = pair(&config, 0.0, 1);
        pair.stalled = (1..=4).collect();
        for connection in 1..=4 {
            pair.send(0, connection, service, 2_000_000);
        }
        pair.run(10 * SECOND);
        let before = held(&pair, 1);
        // Four connections leave about a seventeenth.
        assert!((700_000..1_020_000).contains(&before), "{service:?}: {before}");
        let other = if service.acknowledges() { service } else { TransportService::Reliable };
        pair.send(0, 5, other, 500_000);
        pair.run(10 * SECOND);
        assert!(pair.sent.iter().any(|(_, _, connection)| *connection == 5), "{service:?}");
    }
}

#[test]
fn short_blocks_of_a_long_round_trip_stay_within_the_window_of_the_receiver() {
    let config =
        Config { packet_bytes: 128, block_segments: 1, window_segments: 65_536, ..Config::default() };
    let slow = Line { delay: SECOND, ..line(0.0) };
    let mut pair = Pair::new([config.clone(), config], [slow, slow], 1);
    let mut is_first = true;
    pair.loses = Box::new(move |_, _| core::mem::take(&mut is_first));
    pair.send(0, 1, TransportService::Adaptive, 400_000);
    pair.run_to_end(100 * SECOND);
    assert_eq!((pair.sent.len(), pair.failed.len()), (1, 0));
    assert_eq!((pair.counters(1).dropped, pair.counters(1).strangers), (0, 0));
}

#[test]
fn packets_outside_the_window_of_an_open_connection_end_nothing() {
    for service in [TransportService::Reliable, TransportService::Nack, TransportService::Adaptive] {
        let mut pair = pair(&Config::default(), 0.0, 1);
        for (index, flags) in [(0, Flags::ASYN), (1 << 21, Flags::NONE), (0, Flags::NONE)] {
            inject(&mut pair, 1, data(service, index, flags, vec![content(1, 0)].into()).to_bytes());
        }
        pair.run(SECOND);
        assert!(packets(&pair, 1).iter().all(|header| header.kind != Kind::Refusal), "{service:?}");
        assert_eq!((pair.sinks[1].len(), pair.counters(1).dropped), (1, 1), "{service:?}");
    }
}

/// Blocks have 256 numbers each: 4,097 of one symbol pass the numbers of the beginning, and with this first number all of 32 bits.
#[test]
fn a_connection_passes_the_end_of_the_sequence_numbers() {
    let config = Config { packet_bytes: 128, block_segments: 1, ..Config::default() };
    for service in [TransportService::Adaptive, TransportService::QuasiReliable] {
        let config = Config { parity_segments: 1, ..config.clone() };
        let mut pair = pair(&config, 0.0, 1);
        pair.nodes[0].engine.incarnation = 0xfff;
        pair.send(0, 1, service, 400_000);
        pair.run_to_end(100 * SECOND);
        assert_eq!((pair.sent.len(), pair.sinks[1].len()), (1, 1), "{service:?}");
        let sink = &pair.sinks[1][&0];
        assert_eq!((sink.bytes, sink.is_ended), (400_000, true), "{service:?}");
        assert!(pair.counters(0).segments_sent > 4_096, "{service:?}");
    }
}

#[test]
fn connections_with_the_same_ports_and_peers_whose_errors_are_measured_are_limited() {
    let mut endpoint = Endpoint::listening(Config::default(), Rng::new(1));
    let joined = DatagramsIndication::Joined { bytes_max: 1_472, peer: None, group: None };
    endpoint.handle_indication(Instant::ZERO, joined);
    let mut hear = |from: u32, connection: u32| {
        let packet = data(TransportService::Reliable, 0, Flags::ASYN, Bytes::from_static(&[1; 100]));
        let header = Header { sequence: connection << 20, ..packet.header };
        let bytes = Packet { header, ..packet }.to_bytes();
        let datagram =
            DatagramsIndication::Datagram { from: PeerId(from), to_group: false, bytes, damaged: false };
        endpoint.handle_indication(Instant::ZERO, datagram);
        (endpoint.counters.connections_begun, endpoint.error_rates.len())
    };
    let begun: Vec<u64> = (0..8).map(|connection| hear(0, connection).0).collect();
    assert_eq!(begun, [1, 2, 3, 4, 4, 4, 4, 4]);
    let most = (1..100).map(|peer| hear(peer, 0).1).max();
    assert_eq!(most, Some(64));
}

/// Its user may refuse what has gaps, and the sender has to hear of it.
#[test]
fn a_sender_with_negative_acknowledgements_waits_longer_than_its_receiver() {
    let mut pair = pair(&Config::default(), 0.0, 1);
    let mut is_first = true;
    pair.loses = Box::new(move |node, _| node == 0 && core::mem::take(&mut is_first));
    pair.send(0, 1, TransportService::Nack, 5_000);
    pair.run(10 * SECOND);
    let sink = pair.sinks[1].values().next().expect("it began");
    let (sent_at, ..) = pair.sent[0];
    assert!(sink.is_ended && sink.bytes < 5_000, "{sink:?}");
    assert!(sent_at >= sink.last_at, "{sent_at:?}, {sink:?}");
}

/// All has arrived, with its end, before the user refuses it.
#[test]
fn a_refusal_after_the_end_reaches_a_sender_that_hears_answers() {
    for service in [TransportService::Nack, TransportService::NackMack, TransportService::Reliable] {
        let mut pair = pair(&Config::default(), 0.0, 1);
        pair.holds[1] = true;
        pair.send(0, 1, service, 5_000);
        pair.run(SECOND);
        let incoming = *pair.sinks[1].keys().next().expect("it began");
        assert!(pair.sinks[1][&incoming].is_ended && pair.sent.is_empty(), "{service:?}");
        let reason = RefuseReason::NotAcceptable;
        pair.request(1, ConnectionsRequest::Refuse { incoming, reason });
        pair.run(20 * SECOND);
        assert_eq!(pair.failed, [(0, 1, ConnectionFailure::Refused(reason))], "{service:?}");
    }
}

/// The receiver's refusal was lost: it is asked whether all is accepted before the connection counts as sent.
#[test]
fn a_refusal_that_is_lost_is_asked_for() {
    let mut pair = sending(TransportService::Nack, 3 * 1_000);
    let with_data = packets(&pair, 0).into_iter().filter(|header| header.length > 0);
    let last = with_data.map(|header| header.sequence & 0xf_ffff).max().expect("it sends");
    let end = Flags::ASYNACK.with(Flags::AFINACK);
    let known = answer(&pair, 0, Kind::Acknowledgement, end, last, &[]);
    inject(&mut pair, 0, known);
    let before = pair.log.len();
    pair.run(SECOND);
    assert_eq!(pair.log.len(), before, "the receiver may still wait for repetitions");
    pair.run(Config::default().closing_wait().saturating_sub(SECOND) + Duration::from_millis(10));
    assert!(pair.log.len() > before && pair.sent.is_empty());
    let refusal = answer(&pair, 0, Kind::Refusal, Flags::NONE, last, &[]);
    inject(&mut pair, 0, refusal);
    assert_eq!((pair.failed.len(), pair.sent.len()), (1, 0));
}

/// The next block frees the memory of all that wait for it.
#[test]
fn symbols_of_the_next_block_need_no_room_and_those_of_later_blocks_do() {
    let mut receiver = BlockReceiver::new(block_sender::code(), false);
    let mut arrived = |block: u64| {
        receiver.arrived(block * BLOCK_NUMBERS, Bytes::from_static(&[1; 100]), false, false, false, 0)
    };
    assert_eq!((arrived(0), arrived(1)), (Arrival::New, Arrival::Dropped));
}

#[test]
fn connections_that_carry_no_bundles_are_refused_before_their_data() {
    let mut link = Link::listening(Config::default(), Rng::new(1));
    let joined = DatagramsIndication::Joined { bytes_max: 1_472, peer: None, group: None };
    link.handle_indication(Instant::ZERO, joined);
    link.handle_indication(Instant::ZERO, DatagramsIndication::Room(1_000));
    let bytes = data(TransportService::Reliable, 0, Flags::ASYN, Bytes::new()).to_bytes();
    let from = PeerId::CONFIGURED;
    let datagram = DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false };
    link.handle_indication(Instant::ZERO, datagram);
    drain(&mut link, Instant::ZERO, |_| (), |_| ());
    let shown = Observation::of(&link);
    let open = shown.parts.iter().find_map(|part| part.number("connections_incoming"));
    assert_eq!(open, Some(0));
}

#[test]
fn data_after_a_complete_bundle_take_no_place() {
    let mut link = Link::listening(Config::default(), Rng::new(1));
    let joined = DatagramsIndication::Joined { bytes_max: 1_472, peer: None, group: None };
    link.handle_indication(Instant::ZERO, joined);
    link.handle_indication(Instant::ZERO, DatagramsIndication::Room(1_000));
    let mut begun = Vec::new();
    for port in 0..3 {
        for (index, payload) in [&[0, 0, 0, 0, 0, 0, 0, 2, 1, 2][..], &[3; 10]].into_iter().enumerate() {
            let packet = data(TransportService::Reliable, index as u32, Flags::ASYN, payload.to_vec().into());
            let ports = Header { source_port: port, destination_port: BUNDLES_PORT, ..packet.header };
            let bytes = Packet { header: ports, ..packet }.to_bytes();
            let from = PeerId::CONFIGURED;
            let datagram = DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false };
            link.handle_indication(Instant::ZERO, datagram);
            drain(&mut link, Instant::ZERO, |up| begun.push(up), |_| ());
            for up in begun.drain(..) {
                if let BundlesIndication::Piece { transfer, data, .. } = up {
                    let up_to = data.len() as u64;
                    link.handle_request(Instant::ZERO, BundlesRequest::Accept { transfer, up_to });
                }
            }
            drain(&mut link, Instant::ZERO, |_| (), |_| ());
        }
    }
    assert_eq!(link.bundle_counters().bundles_received, 3);
    let shown = Observation::of(&link);
    let open = shown.parts.iter().find_map(|part| part.number("connections_incoming"));
    assert_eq!(open, Some(0));
}
