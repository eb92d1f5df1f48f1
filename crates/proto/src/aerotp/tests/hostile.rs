//! Peers that break rules, old packets, and receivers without room.

use super::pair::Pair;
use super::services::pair;
use crate::aerotp::wire::{Flags, Header, Kind, Packet, Received, encode_numbers};
use crate::aerotp::{Config, Endpoint};
use crate::engine::Engine;
use crate::observe::Observation;
use crate::service::{
    ConnectionFailure, ConnectionsRequest, DatagramsIndication, PeerId, Precedence, RefuseReason,
    TransportService,
};
use crate::time::Duration;
use bytes::Bytes;

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn inject(pair: &mut Pair, node: usize, bytes: Bytes) {
    let from = PeerId::CONFIGURED;
    pair.indicate(node, DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: false });
}

/// Packets that a node has sent, decoded.
pub(super) fn packets(pair: &Pair, node: usize) -> Vec<Header> {
    let own = pair.log.iter().filter(|(_, sender, _)| *sender == node);
    own.map(|(_, _, bytes)| Received::decode(bytes, None).expect("a packet").header).collect()
}

/// An answer to the connection that a node has opened first, which returns its first timestamp.
pub(super) fn answer(
    pair: &Pair,
    node: usize,
    kind: Kind,
    flags: Flags,
    distance: u32,
    numbers: &[u32],
) -> Bytes {
    let data = packets(pair, node).into_iter().find(|header| header.kind == Kind::Data).expect("it sends");
    let first = data.sequence & 0xfff0_0000;
    let payload = encode_numbers(numbers.iter().map(|number| first.wrapping_add(*number)));
    let header = Header {
        source_port: data.destination_port,
        destination_port: data.source_port,
        kind,
        flags,
        header_in_code: false,
        in_blocks: false,
        strength: 0,
        sequence: first.wrapping_add(distance),
        length: payload.len() as u16,
        ..data
    };
    Packet { header, payload }.to_bytes()
}

/// A node that sends to a peer that answers nothing.
pub(super) fn sending(service: TransportService, bytes: u64) -> Pair {
    let mut pair = pair(&Config::default(), 0.0, 1);
    pair.loses = Box::new(|_, _| true);
    pair.send(0, 1, service, bytes);
    pair.run(SECOND / 10);
    pair
}

#[test]
fn acknowledgements_of_what_was_never_sent_have_no_effect() {
    let mut pair = sending(TransportService::Reliable, 10_000_000);
    let up_to = Flags::ASYNACK.with(Flags::PARITY_OR_UP_TO);
    for distance in [1_000, 65_536, 0x000f_ffff, 0x8000_0000] {
        let forged = answer(&pair, 0, Kind::Acknowledgement, up_to, distance, &[distance, distance + 1]);
        inject(&mut pair, 0, forged);
    }
    let forged = answer(&pair, 0, Kind::Acknowledgement, Flags::ASYNACK.with(Flags::AFINACK), 3, &[]);
    inject(&mut pair, 0, forged);
    assert!(pair.acknowledged.is_empty() && pair.sent.is_empty() && pair.failed.is_empty());
    let real = answer(&pair, 0, Kind::Acknowledgement, up_to, 3, &[]);
    // The pair's own check: nobody has accepted anything.
    pair.sinks[1].insert(9, super::pair::Sink { bytes: 1 << 40, ..super::pair::Sink::default() });
    inject(&mut pair, 0, real);
    assert_eq!(pair.acknowledged[&(0, 1)], 4 * 1_448);
}

#[test]
fn a_storm_of_negative_acknowledgements_repeats_each_segment_once_in_half_a_round_trip() {
    let mut pair = sending(TransportService::NackMack, 1_000_000);
    let acknowledged = answer(&pair, 0, Kind::Acknowledgement, Flags::ASYNACK, 0, &[]);
    inject(&mut pair, 0, acknowledged);
    let before = pair.counters(0).segments_resent;
    let storm = answer(&pair, 0, Kind::Nack, Flags::NONE, 1, &[2, 3, 4, 5]);
    for _ in 0..1_000 {
        inject(&mut pair, 0, storm.clone());
        pair.run(Duration::from_micros(50));
    }
    // 50 ms, and a measured round trip of 98 ms.
    let repeated = pair.counters(0).segments_resent - before;
    assert!((5..=10).contains(&repeated), "{repeated}");
    assert_eq!(pair.counters(0).nacks_received, 1_000);
}

#[test]
fn endless_set_ups_are_refused_at_the_limit() {
    let config = Config { incoming_max: 10, ..Config::default() };
    let mut pair = pair(&config, 0.0, 1);
    pair.loses = Box::new(|_, _| true);
    let header = Header {
        source_port: 0,
        destination_port: 80,
        kind: Kind::Data,
        service: TransportService::Reliable,
        precedence: Precedence::Routine,
        header_in_code: false,
        in_blocks: false,
        strength: 0,
        flags: Flags::ASYN,
        sequence: 5 << 20,
        timestamp: 7,
        length: 3,
    };
    for port in 0..1_000 {
        let header = Header { source_port: 1_000 + port, ..header };
        let payload: Bytes = (0..3).map(|at| super::pair::content(port.into(), at)).collect();
        inject(&mut pair, 1, Packet { header, payload }.to_bytes());
    }
    // One port, and ever new connections.
    for number in 0..100 {
        let header = Header { source_port: 1_000, sequence: number << 20, ..header };
        inject(&mut pair, 1, Packet { header, payload: Bytes::from_static(b"abc") }.to_bytes());
    }
    let counters = pair.counters(1);
    assert_eq!((pair.sinks[1].len(), counters.connections_begun), (10, 10));
    assert!(counters.refused >= 1_080, "{counters:?}");
    let shown = Observation::of(&pair.nodes[1].engine);
    assert!(shown.parts[0].number("bytes_incoming").expect("it is shown") < 65_536);
    // The silent ones make room for others after a time.
    pair.run(121 * SECOND);
    assert!(pair.sinks[1].values().all(|sink| sink.is_lost));
}

#[test]
fn packets_of_an_older_connection_with_the_same_ports_are_not_taken_for_the_new_one() {
    for service in [TransportService::Reliable, TransportService::Adaptive] {
        let mut pair = pair(&Config::default(), 0.0, 1);
        pair.send(0, 1, service, 30_000);
        pair.run_to_end(10 * SECOND);
        let old: Vec<_> = pair.log.iter().map(|(_, node, bytes)| (1 - *node, bytes.clone())).collect();
        // The same ports, other data.
        let properties = pair.sinks[1][&0].properties;
        pair.send_with(0, 2, properties, 0);
        for (node, bytes) in &old {
            inject(&mut pair, *node, bytes.clone());
        }
        pair.run_to_end(10 * SECOND);
        for (node, bytes) in old {
            inject(&mut pair, node, bytes);
        }
        pair.run(10 * SECOND);
        assert_eq!(pair.sinks[1].len(), 2, "{service:?}");
        assert_eq!((pair.sinks[1][&1].bytes, pair.sinks[1][&1].is_ended), (0, true), "{service:?}");
        assert_eq!((pair.sent.len(), pair.failed.len()), (2, 0), "{service:?}");
    }
}

#[test]
fn a_connection_that_its_receiver_has_forgotten_fails() {
    let mut pair = pair(&Config::default(), 0.0, 1);
    pair.send(0, 1, TransportService::Reliable, 10_000_000);
    pair.run(SECOND);
    pair.request(1, ConnectionsRequest::Close);
    pair.nodes[1] =
        crate::wrap::Checked::new("aerotp", Endpoint::new(Config::default(), crate::rng::Rng::new(9)));
    pair.request(1, ConnectionsRequest::Connect);
    pair.run(SECOND);
    assert_eq!(pair.failed, [(0, 1, ConnectionFailure::Unknown)]);
    assert_eq!(pair.sinks[1].len(), 1, "nothing begins again");
}

#[test]
fn a_refused_connection_fails_with_the_reason_and_stays_refused() {
    let mut pair = pair(&Config::default(), 0.0, 1);
    pair.send(0, 1, TransportService::Adaptive, 100_000);
    pair.run(SECOND / 50);
    let refuse = ConnectionsRequest::Refuse { incoming: 0, reason: RefuseReason::NoResources };
    pair.request(1, refuse);
    pair.run_to_end(SECOND);
    assert_eq!(pair.failed, [(0, 1, ConnectionFailure::Refused(RefuseReason::NoResources))]);
    assert_eq!(pair.sinks[1].len(), 1, "packets that were under way begin nothing");
}

#[test]
fn a_receiver_whose_user_accepts_nothing_holds_a_limited_number_of_bytes() {
    for service in [TransportService::Reliable, TransportService::Adaptive] {
        let config = Config { incoming_bytes_max: 65_536, window_segments: 65_536, ..Config::default() };
        let mut pair = pair(&config, 1e-5, 1);
        pair.holds[1] = true;
        pair.send(0, 1, service, 1_000_000);
        pair.run(10 * SECOND);
        let shown = Observation::of(&pair.nodes[1].engine);
        let held = shown.parts[0].number("bytes_incoming").expect("it is shown");
        assert!((40_000..70_000).contains(&held), "{service:?}: {held}");
        assert!(pair.acknowledged.is_empty(), "{service:?}");
        pair.accept_all(1);
        pair.run_to_end(100 * SECOND);
        assert_eq!((pair.sinks[1][&0].bytes, pair.sent.len()), (1_000_000, 1), "{service:?}");
    }
}

#[test]
fn a_silent_peer_is_given_up_after_the_limit() {
    let mut pair = sending(TransportService::Adaptive, 1_000_000);
    pair.run(125 * SECOND);
    assert_eq!(pair.failed.len(), 1);
    assert!(matches!(pair.failed[0], (0, 1, ConnectionFailure::Silent)));
    // The endpoint has closed, and tries again.
    assert!(pair.counters(0).silent >= 1);
    let at_rest = pair.log.len();
    pair.run(1_000 * SECOND);
    assert_eq!(pair.log.len(), at_rest);
}

#[test]
fn an_idle_connection_costs_nothing_and_outlives_the_limit() {
    let mut pair = pair(&Config::default(), 0.0, 1);
    let properties = crate::service::ConnectionProperties {
        service: TransportService::Reliable,
        source_port: 1_001,
        destination_port: 80,
        ..Default::default()
    };
    pair.request(0, ConnectionsRequest::Open { connection: 1, properties });
    pair.run(SECOND);
    let data = |last| ConnectionsRequest::Data {
        connection: 1,
        data: vec![super::pair::content(1, 0)].into(),
        last,
    };
    pair.request(0, data(false));
    pair.run(SECOND);
    let at_rest = pair.log.len();
    assert_eq!(pair.nodes[0].poll_timeout(), None);
    pair.run(100 * SECOND);
    assert_eq!(pair.log.len(), at_rest);
    pair.request(0, ConnectionsRequest::Data { connection: 1, data: Bytes::new(), last: true });
    pair.run(SECOND);
    assert_eq!((pair.sent.len(), pair.sinks[1][&0].is_ended), (1, true));
}
