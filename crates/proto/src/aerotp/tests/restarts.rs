//! Numbers that recur, restarts, silences and withdrawals.

use super::hostile::{answer, inject, packets, sending};
use super::pair::Pair;
use super::services::pair;
use crate::aerotp::wire::{Flags, Header, Kind, Packet};
use crate::aerotp::{Config, Endpoint};
use crate::rng::Rng;
use crate::service::{
    ConnectionFailure, ConnectionProperties, ConnectionsRequest, Precedence, RefuseReason, TransportService,
};
use crate::time::Duration;
use crate::wrap::Checked;
use bytes::Bytes;

const SECOND: Duration = Duration::from_secs(1);

/// Replaces a node by one that has just started.
fn restart(pair: &mut Pair, node: usize, seed: u64) {
    pair.request(node, ConnectionsRequest::Close);
    pair.nodes[node] = Checked::new("aerotp", Endpoint::new(Config::default(), Rng::new(seed)));
    pair.request(node, ConnectionsRequest::Connect);
}

#[test]
fn a_connection_with_the_ports_and_numbers_of_one_that_has_ended_is_another_one() {
    for service in TransportService::ALL.into_iter().filter(|service| !service.keeps_messages()) {
        for length in [0, 1_000, 30_000, 60_000] {
            let mut pair = pair(&Config::default(), 0.0, 1);
            pair.nodes[0].engine.incarnation = 7;
            pair.send(0, 1, service, 30_000);
            pair.run_to_end(10 * SECOND);
            // As after 4,096 connections.
            pair.nodes[0].engine.incarnation = 7;
            let properties = pair.sinks[1][&0].properties;
            pair.send_with(0, 2, properties, length);
            pair.run_to_end(10 * SECOND);
            assert_eq!((pair.sinks[1].len(), pair.failed.len()), (2, 0), "{service:?} {length}");
            let sink = &pair.sinks[1][&1];
            assert_eq!((sink.bytes, sink.is_ended), (length, true), "{service:?} {length}");
        }
    }
}

#[test]
fn a_sender_that_has_restarted_with_numbers_of_before_loses_nothing() {
    for length in [1_000, 30_000, 60_000] {
        let mut pair = pair(&Config::default(), 0.0, 1);
        pair.nodes[0].engine.incarnation = 7;
        pair.send(0, 1, TransportService::Adaptive, 30_000);
        pair.run_to_end(10 * SECOND);
        restart(&mut pair, 0, 9);
        pair.nodes[0].engine.incarnation = 7;
        let properties = pair.sinks[1][&0].properties;
        pair.send_with(0, 2, properties, length);
        pair.run_to_end(10 * SECOND);
        assert_eq!((pair.sinks[1].len(), pair.sent.len()), (2, 2), "{length}");
        assert_eq!(pair.sinks[1][&1].bytes, length);
    }
}

#[test]
fn connections_that_have_ended_are_forgotten_after_a_time() {
    let mut pair = pair(&Config::default(), 0.0, 1);
    pair.send(0, 1, TransportService::Reliable, 1_000);
    pair.run_to_end(SECOND);
    let first: Vec<Bytes> =
        pair.log.iter().filter(|(_, node, _)| *node == 0).map(|(_, _, bytes)| bytes.clone()).collect();
    pair.run(Config::default().silence_limit);
    inject(&mut pair, 1, first[0].clone());
    assert_eq!(pair.sinks[1].len(), 1, "it may be repeated as long as its sender waits");
    pair.run(Config::default().silence_limit * 2);
    inject(&mut pair, 1, first[0].clone());
    assert_eq!(pair.sinks[1].len(), 2);
}

#[test]
fn the_end_is_acknowledged_at_the_last_number_and_at_no_other() {
    for service in [TransportService::Reliable, TransportService::Nack] {
        let mut pair = sending(service, 3 * 1_000);
        let end = Flags::ASYNACK.with(Flags::AFINACK);
        let last = packets(&pair, 0).iter().map(|header| header.sequence & 0xf_ffff).max().expect("it sends");
        // A packet without data has the number after the last one.
        let is_signal = packets(&pair, 0).iter().any(|header| header.length == 0);
        let last = if is_signal { last - 1 } else { last };
        let strangers = pair.counters(0).strangers;
        for distance in (0..last).chain([last + 1]) {
            let forged = answer(&pair, 0, Kind::Acknowledgement, end, distance, &[]);
            inject(&mut pair, 0, forged);
        }
        pair.run(5 * SECOND);
        assert!(pair.sent.is_empty(), "{service:?}");
        assert_eq!(pair.counters(0).strangers - strangers, u64::from(last) + 1, "{service:?}");
        let real = answer(&pair, 0, Kind::Acknowledgement, end, last, &[]);
        inject(&mut pair, 0, real);
        pair.run(60 * SECOND);
        assert_eq!(pair.sent.len(), 1, "{service:?}");
    }
}

#[test]
fn a_listening_endpoint_stays_open_though_a_peer_is_silent() {
    let config = Config { silence_limit: 10 * SECOND, ..Config::default() };
    let mut pair = pair(&config, 0.0, 1);
    pair.loses = Box::new(|_, _| true);
    pair.send(1, 1, TransportService::Reliable, 1_000);
    pair.run(60 * SECOND);
    assert_eq!((pair.failed.len(), pair.is_up[1]), (1, true));
}

#[test]
fn flows_without_answers_are_refused_where_their_beginning_is_unknown() {
    for service in [TransportService::QuasiReliable, TransportService::UnreliableConnection] {
        // In the first numbers, and after them.
        for (index, flags) in [(70_000, Flags::ASYN), ((1 << 20) + 5, Flags::NONE)] {
            let mut pair = pair(&Config::default(), 0.0, 1);
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
                sequence: (5 << 20) + index,
                timestamp: 7,
                length: 3,
            };
            inject(&mut pair, 1, Packet { header, payload: Bytes::from_static(b"abc") }.to_bytes());
            pair.run(SECOND);
            assert!(pair.sinks[1].is_empty());
            let answers: Vec<Kind> = packets(&pair, 1).iter().map(|header| header.kind).collect();
            assert_eq!(answers, [Kind::Refusal], "{service:?} {index}");
        }
        // Its sender begins another one.
        let mut pair = sending(service, 10_000_000);
        let refusal = unknown(&pair);
        inject(&mut pair, 0, refusal);
        assert_eq!(pair.failed, [(0, 1, ConnectionFailure::Unknown)], "{service:?}");
    }
}

#[test]
fn flows_without_answers_continue_when_their_receiver_restarts_soon() {
    for service in [TransportService::QuasiReliable, TransportService::UnreliableConnection] {
        let mut pair = pair(&Config::default(), 0.0, 1);
        pair.send(0, 1, service, 1_000_000);
        pair.run(SECOND / 2);
        let before = pair.sinks[1][&0].bytes;
        restart(&mut pair, 1, 9);
        pair.run_to_end(10 * SECOND);
        // The first one of the new endpoint.
        let sink = &pair.sinks[1][&0];
        assert!(sink.is_ended && sink.unknown_gaps == 1, "{service:?}: {sink:?}");
        assert!(before + sink.bytes > 990_000, "{service:?}: {before} and {}", sink.bytes);
        assert_eq!((pair.sent.len(), pair.failed.len()), (1, 0), "{service:?}");
    }
}

/// Refusal of the connection that node 0 has opened, as one that is unknown.
fn unknown(pair: &Pair) -> Bytes {
    let packet = answer(pair, 0, Kind::Refusal, Flags::NONE, 3, &[]);
    let read = crate::aerotp::wire::Received::decode(&packet, None).expect("a packet");
    let payload = Bytes::copy_from_slice(&[RefuseReason::SessionTerminating.code()]);
    let header = Header { length: 1, ..read.header };
    Packet { header, payload }.to_bytes()
}

#[test]
fn messages_that_are_rarer_than_the_limit_of_silence_all_arrive() {
    let mut pair = pair(&Config::default(), 0.0, 1);
    let properties = ConnectionProperties {
        service: TransportService::UnreliableDatagram,
        source_port: 1_001,
        destination_port: 80,
        ..ConnectionProperties::default()
    };
    pair.request(0, ConnectionsRequest::Open { connection: 1, properties });
    for _ in 0..4 {
        let data = Bytes::from_static(b"message");
        pair.request(0, ConnectionsRequest::Data { connection: 1, data, last: false });
        pair.run(200 * SECOND);
    }
    assert_eq!(pair.sinks[1].values().map(|sink| sink.bytes).sum::<u64>(), 4 * 7);
    assert!(pair.failed.is_empty());
}

#[test]
fn a_connection_that_is_withdrawn_is_lost_at_its_receiver_at_once() {
    for service in TransportService::ALL {
        let mut pair = pair(&Config::default(), 0.0, 1);
        pair.send(0, 1, service, 10_000_000);
        pair.run(SECOND / 10);
        pair.request(0, ConnectionsRequest::Cancel { connection: 1 });
        pair.run(SECOND / 10);
        assert!(pair.sinks[1][&0].is_lost, "{service:?}");
        assert_eq!((pair.sinks[1].len(), pair.failed.len()), (1, 1), "{service:?}");
    }
}
