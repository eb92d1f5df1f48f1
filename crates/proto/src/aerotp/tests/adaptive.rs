//! The service `adaptive` beside the fixed ones, on channels whose bit-error rate is constant or changes, and over short contacts.

use super::pair::{Line, Pair};
use super::services::{line, pair, rate, transfer};
use crate::aerotp::{Config, model};
use crate::service::TransportService;
use crate::time::Duration;

const MEGABYTE: u64 = 1_000_000;
const SECOND: Duration = Duration::from_secs(1);

/// Mean share of the line's rate over some seeds.
fn mean(config: &Config, service: TransportService, ber: f64) -> f64 {
    (1..=2).map(|seed| rate(&transfer(config, service, ber, MEGABYTE, seed).0)).sum::<f64>() / 2.0
}

#[test]
fn no_fixed_service_is_more_than_three_percent_better_at_any_bit_error_rate() {
    for ber in [0.0, 1e-6, 1e-5, 5e-5, 1e-4] {
        let with = |fec_strength| Config { fec_strength, ..Config::default() };
        let fixed = [
            mean(&with(0), TransportService::Reliable, ber),
            mean(&with(1), TransportService::NackMack, ber),
            mean(&with(2), TransportService::NackMack, ber),
            mean(&with(2), TransportService::QuasiReliable, ber),
            mean(&with(4), TransportService::NackMack, ber),
        ];
        let best = fixed.into_iter().fold(0.0, f64::max);
        let adaptive = mean(&Config::default(), TransportService::Adaptive, ber);
        assert!(adaptive >= 0.97 * best, "{adaptive} beside {fixed:?} at {ber}");
    }
}

#[test]
fn most_of_the_rate_is_used_where_two_packets_in_three_are_damaged() {
    let (sink, pair) = transfer(&Config::default(), TransportService::Adaptive, 1e-4, 20 * MEGABYTE, 1);
    assert_eq!((sink.bytes, sink.is_ended, pair.sent.len()), (20 * MEGABYTE, true, 1));
    // Of the rate with all headers; without them it is more.
    assert!(rate(&sink) > 0.89, "{}", rate(&sink));
    // The code is weak, and parity across segments replaces those whose headers were damaged: 3.8 %.
    let counters = pair.counters(0);
    assert!(counters.code_bytes_sent < 500_000, "{counters:?}");
    let share = counters.parity_sent as f64 / counters.segments_sent as f64;
    assert!((0.035..0.055).contains(&share), "{share}");
}

#[test]
fn a_rate_of_errors_that_changes_every_two_seconds_is_followed() {
    let rates = [0.0, 1e-4, 1e-6, 5e-5, 0.0, 1e-5, 1e-4, 0.0];
    let share = |service, fec_strength| {
        let config = Config { fec_strength, ..Config::default() };
        let mut pair = pair(&config, 0.0, 1);
        for (index, ber) in (1..40).zip(rates.into_iter().cycle().skip(1)) {
            (0..2).for_each(|node| pair.set_ber(2 * SECOND * index, node, ber));
        }
        pair.send(0, 1, service, 6 * MEGABYTE);
        pair.run_to_end(200 * SECOND);
        let sink = pair.sinks[1].values().next().cloned().expect("a connection");
        assert_eq!(sink.bytes, 6 * MEGABYTE);
        rate(&sink)
    };
    let adaptive = share(TransportService::Adaptive, 8);
    for strength in [1, 2, 4] {
        let fixed = share(TransportService::NackMack, strength);
        assert!(adaptive > fixed, "{adaptive} beside {fixed} with strength {strength}");
    }
}

/// A contact of 10 s with a delay of 100 ms, of which the carrier tells, and another one 20 s later.
fn contact(service: TransportService, ber: f64) -> (Pair, u64) {
    let line = Line { delay: SECOND / 10, ..line(ber) };
    let mut pair = Pair::new([Config::default(), Config::default()], [line, line], 1);
    pair.send(0, 1, service, 10 * MEGABYTE);
    pair.set_carrier(10 * SECOND, false);
    pair.run(30 * SECOND);
    let bytes = pair.sinks[1].values().map(|sink| sink.bytes).sum();
    (pair, bytes)
}

#[test]
fn a_short_contact_is_used_from_its_first_to_its_last_packet() {
    let possible = 5e6 / 8.0 * 9.9;
    for (service, ber, least) in [
        (TransportService::Adaptive, 0.0, 0.95),
        (TransportService::Adaptive, 1e-5, 0.94),
        (TransportService::Reliable, 0.0, 0.95),
        // The code of 6.3 %.
        (TransportService::NackMack, 1e-5, 0.88),
    ] {
        let (_, bytes) = contact(service, ber);
        assert!(bytes as f64 >= least * possible, "{service:?} at {ber}: {}", bytes as f64 / possible);
    }
}

#[test]
fn nothing_that_was_acknowledged_is_sent_again_in_the_next_contact() {
    for service in [TransportService::Adaptive, TransportService::Reliable] {
        let (mut pair, received) = contact(service, 0.0);
        let (before, acknowledged) = (pair.counters(0), pair.acknowledged[&(0, 1)]);
        assert!(acknowledged < received, "the last acknowledgements were lost with the link");
        let sent = pair.log.len();
        pair.set_carrier(Duration::ZERO, true);
        pair.run_to_end(100 * SECOND);
        assert_eq!(pair.sinks[1].values().map(|sink| sink.bytes).sum::<u64>(), 10 * MEGABYTE);
        // What was in the air, and the acknowledgements that were lost: 0.2 s at the most.
        let after = pair.counters(0);
        let again = after.segments_resent + after.parity_sent - before.segments_resent - before.parity_sent;
        assert!(again <= 90, "{service:?}: {again} segments");
        // The sender continues at once.
        let (first_at, node, _) = &pair.log[sent];
        assert_eq!((first_at.as_secs_f64(), *node), (30.0, 0), "{service:?}");
    }
}

#[test]
fn the_end_does_not_wait_for_a_round_trip_where_parity_in_advance_is_cheaper() {
    // The last segments are lost: their parity has left already.
    let mut pair = pair(&Config { bit_error_rate_initial: 1e-4, ..Config::default() }, 0.0, 1);
    let mut data = 0;
    pair.loses = Box::new(move |node, bytes| {
        data += usize::from(node == 0 && bytes.len() > 1_000);
        node == 0 && data == 20 && bytes.len() > 1_000
    });
    pair.send(0, 1, TransportService::Adaptive, 20 * 1_396);
    pair.run_to_end(10 * SECOND);
    let sink = pair.sinks[1].values().next().cloned().expect("a connection");
    assert_eq!((sink.bytes, pair.counters(1).segments_restored), (20 * 1_396, 1));
    // 22 packets, and one delay.
    assert!(sink.last_at.as_secs_f64() < 0.065, "{sink:?}");
}

#[test]
fn the_choice_of_code_is_the_cheapest_one() {
    let strengths = [0.0, 1e-6, 1e-5, 1e-4, 1e-3].map(|ber| model::best(ber, 28, 1_472).strength);
    assert_eq!(strengths, [0, 1, 1, 2, 8]);
    for ber in [0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2] {
        let best = model::best(ber, 28, 1_472);
        for strength in [0, 1, 2, 4, 8, 16] {
            let payload = best.payload_bytes.min(1_300);
            assert!(
                best.cost <= model::cost(ber, payload, strength, 28) * 1.000_1,
                "{ber} {strength} {best:?}"
            );
        }
    }
}
