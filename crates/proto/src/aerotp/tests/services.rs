//! Each service on a line with and without bit errors: which data arrive, and at which rate.

use super::pair::{Line, Pair, Sink};
use crate::aerotp::Config;
use crate::service::{ConnectionProperties, Precedence, TransportService};
use crate::time::{Duration, Instant};

const MEGABYTE: u64 = 1_000_000;

pub(super) fn line(ber: f64) -> Line {
    Line { rate_bps: 5_000_000, delay: Duration::from_millis(10), ber }
}

pub(super) fn pair(config: &Config, ber: f64, seed: u64) -> Pair {
    Pair::new([config.clone(), config.clone()], [line(ber), line(ber)], seed)
}

/// Sends a file and returns what has arrived, and the pair.
pub(super) fn transfer(
    config: &Config,
    service: TransportService,
    ber: f64,
    bytes: u64,
    seed: u64,
) -> (Sink, Pair) {
    let mut pair = pair(config, ber, seed);
    pair.send(0, 1, service, bytes);
    pair.run_to_end(Duration::from_secs(2_000));
    let sink = pair.sinks[1].values().next().cloned().unwrap_or_default();
    (sink, pair)
}

/// Share of the rate of the line until the last byte has arrived.
pub(super) fn rate(sink: &Sink) -> f64 {
    sink.bytes as f64 * 8.0 / sink.last_at.saturating_since(Instant::ZERO).as_secs_f64() / 5e6
}

#[test]
fn every_service_moves_everything_on_a_line_without_errors() {
    for service in TransportService::ALL {
        let (sink, pair) = transfer(&Config::default(), service, 0.0, MEGABYTE, 1);
        assert_eq!((sink.bytes, sink.gap_bytes, sink.unknown_gaps), (MEGABYTE, 0, 0), "{service:?}");
        assert_eq!(sink.is_ended, service != TransportService::UnreliableDatagram);
        assert!(pair.failed.is_empty() && pair.sent.len() == 1, "{service:?}: {:?}", pair.failed);
        let counters = pair.counters(0);
        assert_eq!((counters.segments_resent, counters.payload_sent), (0, MEGABYTE), "{service:?}");
        // A code of RS(255, 239) takes 6.3 %.
        let least = if Config::default().strength(service) > 0 { 0.89 } else { 0.95 };
        assert!(rate(&sink) > least, "{service:?}: {}", rate(&sink));
    }
}

#[test]
fn services_with_acknowledgements_lose_nothing_at_any_bit_error_rate() {
    for service in TransportService::ALL.into_iter().filter(|service| service.acknowledges()) {
        for ber in [1e-5, 1e-4] {
            let (sink, pair) = transfer(&Config::default(), service, ber, MEGABYTE / 4, 2);
            assert_eq!((sink.bytes, sink.is_ended), (MEGABYTE / 4, true), "{service:?} at {ber}");
            assert_eq!((pair.sent.len(), pair.failed.len()), (1, 0), "{service:?} at {ber}");
        }
    }
}

#[test]
fn with_a_weak_code_each_kind_of_answer_saves_some_of_the_data() {
    let weak = Config::default().with_weak_code();
    let arrived =
        |service| -> u64 { (1..=5).map(|seed| transfer(&weak, service, 1e-4, MEGABYTE, seed).0.bytes).sum() };
    let code = arrived(TransportService::QuasiReliable);
    let nack = arrived(TransportService::Nack);
    let both = arrived(TransportService::NackMack);
    assert!(code < nack && nack < both, "{code} {nack} {both}");
    assert_eq!(both, 5 * MEGABYTE);
    // A word of 255 octets fails with 1.8 %, and UDP and IP lose 2.2 % of the packets.
    assert!((0.86..0.90).contains(&(code as f64 / 5e6)), "{code}");
    assert!((0.95..0.98).contains(&(nack as f64 / 5e6)), "{nack}");
}

#[test]
fn without_a_code_a_packet_arrives_if_all_of_its_bits_do() {
    let ber = 5e-5;
    let arrived: u64 = (1..=5)
        .map(|seed| {
            transfer(&Config::default(), TransportService::UnreliableConnection, ber, MEGABYTE, seed).0.bytes
        })
        .sum();
    let expected = 1.0 - crate::aerotp::model::segment_error_probability(ber, 1500.0);
    let share = arrived as f64 / 5e6;
    // Five times the standard error of 3,455 packets.
    let error = (expected * (1.0 - expected) / 3_455.0).sqrt();
    assert!((share - expected).abs() < 5.0 * error, "{share} in place of {expected}");
}

#[test]
fn parity_in_advance_restores_lost_segments_without_an_answer() {
    let lost = |parity_segments| {
        let config = Config { parity_segments, ..Config::default() };
        let (sink, pair) = transfer(&config, TransportService::QuasiReliable, 5e-5, MEGABYTE, 3);
        assert!(sink.is_ended && pair.sent.len() == 1);
        (MEGABYTE - sink.bytes, pair.counters(1).segments_restored, pair.counters(0).parity_sent)
    };
    let (without, _, _) = lost(0);
    let (with, restored, sent) = lost(8);
    assert!(without > 5_000 && with == 0 && restored > 4, "{without} {with} {restored}");
    // 744 segments in 12 blocks.
    assert_eq!(sent, 12 * 8);
}

#[test]
fn messages_rise_whole_or_not_at_all() {
    let (sink, pair) = transfer(&Config::default(), TransportService::UnreliableDatagram, 2e-5, MEGABYTE, 4);
    let lost = MEGABYTE - sink.bytes;
    assert!(
        lost > 100_000 && (lost.is_multiple_of(1_448) || (lost - MEGABYTE % 1_448).is_multiple_of(1_448)),
        "{lost}"
    );
    assert_eq!(pair.counters(1).macks_sent, 0);
}

#[test]
fn damaged_segments_rise_with_their_errors_on_request() {
    let config = Config { deliver_damaged: true, ..Config::default() };
    let (sink, _) = transfer(&config, TransportService::UnreliableConnection, 1e-4, MEGABYTE, 5);
    assert!(sink.damaged_bytes > 400_000 && sink.gap_bytes == 0, "{sink:?}");
    // Only packets with a damaged header are missing: 2.2 % for UDP and IP, and 1.6 % for AeroTP.
    assert!((950_000..980_000).contains(&sink.bytes), "{sink:?}");
}

#[test]
fn the_connection_with_the_higher_precedence_goes_first() {
    let mut pair = pair(&Config::default(), 0.0, 1);
    for (connection, precedence) in [(1, Precedence::Routine), (2, Precedence::Flash)] {
        let properties = ConnectionProperties {
            service: TransportService::Reliable,
            precedence,
            source_port: 1_000 + connection as u16,
            destination_port: 80,
        };
        pair.send_with(0, connection, properties, 200_000);
    }
    pair.run_to_end(Duration::from_secs(60));
    let order: Vec<_> = pair.sent.iter().map(|(_, _, connection)| *connection).collect();
    assert_eq!(order, [2, 1]);
    // 200 kB take 0.33 s with their headers, and the acknowledgement comes back after 20 ms.
    let times: Vec<_> = pair.sent.iter().map(|(at, ..)| at.as_secs_f64()).collect();
    assert!(times[0] < 0.37 && times[1] > 0.66 && times[1] < 0.70, "{times:?}");
}

#[test]
fn more_acknowledgements_in_a_packet_cost_more_where_no_timer_flushes_them() {
    let bytes = |acks_per_mack| -> u64 {
        let config = Config {
            acks_per_mack,
            mack_interval: Duration::ZERO,
            cumulative: false,
            rate_bps: 4_500_000,
            ..Config::default()
        };
        let sent = |seed| {
            let (sink, pair) = transfer(&config, TransportService::Reliable, 1e-5, MEGABYTE, seed);
            assert_eq!(sink.bytes, MEGABYTE);
            pair.counters(0).bytes_sent
        };
        (1..=3).map(sent).sum()
    };
    let all: Vec<_> = [10, 100, 200, 363].map(bytes).into();
    assert!(all.windows(2).all(|two| two[0] < two[1]), "{all:?}");
}

#[test]
fn acknowledgements_that_are_collected_spare_a_slow_way_back() {
    // The way back has a hundredth of the rate: an acknowledgement takes 7.7 ms, as long as three segments.
    let run = |acks_per_mack| {
        let config = Config { acks_per_mack, cumulative: false, ..Config::default() };
        let back = Line { rate_bps: 50_000, ..line(0.0) };
        let mut pair = Pair::new([config.clone(), config], [line(0.0), back], 1);
        pair.send(0, 1, TransportService::Reliable, MEGABYTE);
        pair.run_to_end(Duration::from_secs(100));
        (pair.counters(0).segments_resent, pair.sent[0].0.as_secs_f64())
    };
    let ((single_resent, single_s), (many_resent, many_s)) = (run(1), run(32));
    assert!(single_resent > 100 && single_s > 2.0, "{single_resent} {single_s}");
    assert!(many_resent == 0 && many_s < 1.8, "{many_resent} {many_s}");
}
