//! Two links over a medium with delay and loss.

use super::scene::{Fate, Pair, SECOND, as_report, bundle, config, perfect};
use crate::ltp::Config;
use crate::ltp::wire::{Content, DataKind, Segment};
use crate::rng::Rng;
use crate::service::{BundlesIndication, DatagramsIndication, TransferId};
use crate::time::{Duration, Instant};

/// Loses each segment with a probability.
fn lossy(probability: f64, seed: u64) -> Fate {
    let mut rng = Rng::new(seed);
    Box::new(move |_, _| (!rng.chance(probability)).then_some(SECOND))
}

/// Loses the segments of a node that the test names by their kind and number, counted from zero.
fn without(node: usize, is: fn(&Content) -> bool, numbers: &'static [usize]) -> Fate {
    let mut count = 0;
    Box::new(move |from, segment| {
        let concerned = from == node && is(&segment.content);
        count += usize::from(concerned);
        (!concerned || !numbers.contains(&(count - 1))).then_some(SECOND)
    })
}

fn is_report(content: &Content) -> bool {
    matches!(content, Content::Report(_))
}

fn is_report_ack(content: &Content) -> bool {
    matches!(content, Content::ReportAck(_))
}

fn is_data(content: &Content) -> bool {
    matches!(content, Content::Data(_))
}

fn is_end(content: &Content) -> bool {
    matches!(content, Content::Data(data) if data.kind == DataKind::EndOfRedAndBlock)
}

const FOR_EVER: Duration = Duration::from_secs(100_000);

#[test]
fn a_block_takes_one_round_trip() {
    let mut pair = Pair::new(&config(), perfect());
    let bundle = bundle(10_000, 1);
    pair.send(&bundle);
    assert!(pair.run(FOR_EVER));
    assert_eq!(pair.bundles(), [bundle]);
    assert_eq!(pair.ended, [(Instant::from_secs(2), BundlesIndication::Sent { transfer: TransferId(0) })]);
    assert_eq!(pair.now, Instant::from_secs(3), "the acknowledgement of the report arrives");
    assert_eq!((pair.count(1, is_report), pair.count(0, is_report_ack)), (1, 1));
}

#[test]
fn every_single_loss_is_repaired_in_few_round_trips() {
    // The data segments are 0 to 7; 7 is the end of the block. Its loss, and that of the report, cost a timeout.
    for (fate, most) in [
        (without(0, is_data, &[0]), 5),
        (without(0, is_data, &[3, 5]), 5),
        (without(0, is_data, &[7]), 6),
        (without(1, is_report, &[0]), 5),
        (without(0, is_report_ack, &[0]), 3),
        (without(0, is_data, &[0, 1, 2, 3, 4, 5, 6, 7]), 8),
    ] {
        let mut pair = Pair::new(&config(), fate);
        let bundle = bundle(10_000, 1);
        pair.send(&bundle);
        assert!(pair.run(FOR_EVER));
        assert_eq!((pair.bundles(), pair.ends(), pair.lost.len()), (vec![bundle], (1, 0), 0));
        let took = pair.ended[0].0;
        assert!(took <= Instant::from_secs(most), "{took}");
    }
}

#[test]
fn a_lost_end_of_the_block_comes_again_with_its_flags() {
    let mut pair = Pair::new(&config(), without(0, is_end, &[0, 1]));
    pair.send(&bundle(3_000, 1));
    assert!(pair.run(FOR_EVER));
    assert_eq!((pair.ends(), pair.count(0, is_end)), ((1, 0), 3));
}

#[test]
fn several_reports_with_one_lost_complete_the_block() {
    // Known pain: every second segment is lost, so the report has several segments, of which the second is lost.
    let few = Config { claims_max: 1, ..config() };
    let (mut data, mut reports) = (0, 0);
    let fate: Fate = Box::new(move |_, segment| {
        data += u32::from(is_data(&segment.content));
        reports += u32::from(is_report(&segment.content));
        let lost = (is_data(&segment.content) && data % 2 == 1 && data < 8)
            || (is_report(&segment.content) && reports == 2);
        (!lost).then_some(SECOND)
    });
    let mut pair = Pair::new(&few, fate);
    pair.send(&bundle(10_000, 1));
    assert!(pair.run(FOR_EVER));
    assert_eq!(pair.ends(), (1, 0));
    assert!(pair.count(1, is_report) > 3);
    assert!(pair.ended[0].0 < Instant::from_secs(10), "{}", pair.ended[0].0);
}

#[test]
fn datagrams_in_another_order_cause_no_retransmission() {
    let mut rng = Rng::new(3);
    let fate: Fate = Box::new(move |_, _| Some(SECOND + Duration::from_micros(rng.below(15_000))));
    let mut pair = Pair::new(&config(), fate);
    for fill in 0..20 {
        pair.send(&bundle(20_000, fill));
    }
    assert!(pair.run(FOR_EVER));
    assert_eq!(pair.ends(), (20, 0));
    let counters = pair.links[0].engine.counters();
    assert_eq!((counters.segments_repeated, pair.links[1].engine.counters().duplicates), (0, 0));
}

#[test]
fn duplicated_datagrams_are_harmless() {
    // Each segment of the sender arrives again, much later: the medium is lossless, and copies are sent.
    let twice = Config { copies: 4, copy_interval: 5 * SECOND, ..config() };
    let mut pair = Pair::new(&twice, perfect());
    let bundle = bundle(5_000, 1);
    pair.send(&bundle);
    assert!(pair.run(FOR_EVER));
    assert_eq!((pair.bundles(), pair.ends()), (vec![bundle], (1, 0)));
    assert_eq!(pair.links[1].engine.counters().blocks_received, 1, "never anew");
}

#[test]
fn control_segments_leave_before_data() {
    // Known pain: data of the first pass starve acknowledgements. Node 1 sends a report while node 0 has much to send.
    let slow = Config { rate_bps: 1_000_000, block_bytes: 20_000, ..config() };
    let mut pair = Pair::new(&slow, perfect());
    for fill in 0..50 {
        pair.send(&bundle(20_000, fill));
    }
    assert!(pair.run(FOR_EVER));
    let acks: Vec<_> = pair.log.iter().filter(|(_, _, segment)| is_report_ack(&segment.content)).collect();
    for (at, _, ack) in acks {
        let Content::ReportAck(serial) = ack.content else { unreachable!("it is an acknowledgement") };
        let sent = pair.log.iter().find(|(_, _, other)| {
            other.session == ack.session && is_report(&other.content) && as_report(other).serial == serial
        });
        let waited = at.saturating_since(sent.expect("its report").0);
        // One segment of 1,428 bytes may be leaving: 12 ms.
        assert!(waited <= SECOND + Duration::from_millis(15), "{waited:?}");
    }
    assert_eq!(pair.ends(), (50, 0));
}

#[test]
fn parallel_sessions_fill_the_delay() {
    // Known pain: too few sessions. 100 blocks of 20 kB at 1 Mbit/s take 16.4 s with headers, and one round trip.
    let time = |sessions_max| {
        let paced = Config { rate_bps: 1_000_000, block_bytes: 20_000, sessions_max, ..config() };
        let mut pair = Pair::new(&paced, perfect());
        for fill in 0..100 {
            pair.send(&bundle(20_000, fill));
        }
        assert!(pair.run(FOR_EVER));
        assert_eq!(pair.ends(), (100, 0));
        pair.ended.last().expect("it has ended").0.as_secs_f64()
    };
    let (one, many) = (time(1), time(32));
    assert!(many < 19.0, "{many} s");
    assert!(one > 100.0, "{one} s");
}

#[test]
fn blocks_arrive_over_a_lossy_medium() {
    for seed in 0..40 {
        let probability = [0.01, 0.1, 0.3][seed as usize % 3];
        let patient = Config { retransmissions_max: 40, block_bytes: 30_000, ..config() };
        let mut pair = Pair::new(&patient, lossy(probability, seed));
        let bundles: Vec<_> = (0..10).map(|fill| bundle(15_000, fill)).collect();
        bundles.iter().for_each(|bundle| pair.send(bundle));
        assert!(pair.run(FOR_EVER));
        assert_eq!((pair.bundles(), pair.ends()), (bundles, (10, 0)), "seed {seed}");
        let sessions = &pair.links[1].engine.sessions;
        assert_eq!((sessions.incoming.len(), sessions.held_bytes), (0, 0), "seed {seed}");
    }
}

#[test]
fn a_receiver_that_stores_slowly_is_waited_for() {
    // The data are accepted after 200 s; without the intermediate reports the sender would give up after 33 s.
    let mut pair = Pair::new(&config(), perfect());
    pair.accepts = false;
    pair.send(&bundle(5_000, 1));
    assert!(!pair.run(200 * SECOND));
    assert_eq!(pair.ended, []);
    pair.accept_all();
    assert!(pair.run(FOR_EVER));
    assert_eq!(pair.ends(), (1, 0));
}

#[test]
fn a_receiver_that_loses_its_state_never_causes_a_false_completion() {
    // The first half of the block is claimed by a receiver that restarts: the sender must not combine the claims.
    for crash_at in 1..40 {
        let mut pair = Pair::new(&config(), lossy(0.4, crash_at));
        let bundle = bundle(12_000, 1);
        pair.send(&bundle);
        pair.run(SECOND * crash_at as u32 / 4);
        pair.received.clear();
        pair.restart(1, &config());
        assert!(pair.run(FOR_EVER));
        let is_whole = pair.bundles() == [bundle];
        let (sent, failed) = pair.ends();
        assert_eq!(sent + failed, 1);
        let was_sent_before = pair.ended[0].0 <= Instant::ZERO + SECOND * crash_at as u32 / 4;
        assert!(failed == 1 || is_whole || was_sent_before, "restart {crash_at}");
    }
}

#[test]
fn a_failed_endpoint_ends_all_blocks_at_both_sides() {
    let mut pair = Pair::new(&config(), perfect());
    pair.send(&bundle(12_000, 1));
    pair.run(SECOND / 2);
    pair.leave(0);
    assert_eq!(pair.ends(), (0, 1));
    // The receiver has everything, and reports to a session that is over.
    assert!(pair.run(FOR_EVER));
    let sessions = [&pair.links[0].engine.sessions, &pair.links[1].engine.sessions];
    assert!(sessions.iter().all(|sessions| sessions.incoming.is_empty() && sessions.cancelling.is_empty()));
}

#[test]
fn an_announced_outage_costs_its_length_and_no_retransmission() {
    let paced = Config { rate_bps: 1_000_000, ..config() };
    let run = |outage: bool| {
        let mut pair = Pair::new(&paced, perfect());
        for fill in 0..10 {
            pair.send(&bundle(50_000, fill));
        }
        pair.run(2 * SECOND);
        if outage {
            pair.tell(0, DatagramsIndication::Carrier(false));
            pair.tell(1, DatagramsIndication::Carrier(false));
            pair.run(500 * SECOND);
            pair.tell(0, DatagramsIndication::Carrier(true));
            pair.tell(1, DatagramsIndication::Carrier(true));
        }
        assert!(pair.run(FOR_EVER));
        assert_eq!(pair.ends(), (10, 0));
        let counters = pair.links[0].engine.counters();
        assert_eq!((counters.segments_repeated, counters.checkpoint_timeouts), (0, 0));
        pair.ended.last().expect("it has ended").0
    };
    let (without, with) = (run(false), run(true));
    assert!(with.saturating_since(without) <= 501 * SECOND, "{without} and {with}");
}

/// Time at which both sides have closed a session of 16 segments of 2,000 bytes, and the air time of all its segments. A
/// segment has 100 bytes of other headers.
fn closing_time(settings: &Config, bit_error_rate: f64, seed: u64) -> (Duration, Duration) {
    let mut rng = Rng::new(seed);
    let bits = |segment: &Segment| 8 * (segment.to_bytes().len() as i32 + 100);
    let fate: Fate = Box::new(move |_, segment| {
        (!rng.chance(1.0 - (1.0 - bit_error_rate).powi(bits(segment)))).then_some(SECOND)
    });
    let mut pair = Pair::new(settings, fate);
    pair.send(&bundle(32_000, 1));
    assert!(pair.run(FOR_EVER));
    assert_eq!((pair.ends(), pair.links[0].engine.counters().segments_sent), ((1, 0), 16));
    let sent = pair.log.iter().map(|(_, _, segment)| bits(segment) as f64).sum::<f64>();
    let air = Duration::from_secs_f64(sent / settings.rate_bps as f64);
    (pair.now.saturating_since(Instant::ZERO), air)
}

fn sixteen_segments(copies: u32) -> Config {
    Config {
        segment_bytes: 2_020,
        block_bytes: 32_000,
        copies,
        copy_interval: Duration::from_millis(1),
        report_delay: Duration::ZERO,
        retransmission_delay: Duration::ZERO,
        rate_bps: 10_000_000,
        overhead_bytes: 100,
        ..config()
    }
}

#[test]
fn nearly_all_of_20000_sessions_close_within_five_delays() {
    // One retransmission takes five delays: data, report, data, report, acknowledgement. 1.7 % of the data segments are lost;
    // without copies of the retransmitted ones 16 * 0.017^2 = 0.4 % of the sessions would need another.
    let settings = sixteen_segments(2);
    let in_time = |seed: &u64| {
        let (took, air) = closing_time(&settings, 1e-6, *seed);
        took <= 5 * SECOND + air
    };
    let closed = (0..20_000).filter(in_time).count();
    assert!(closed >= 19_900, "{closed} of 20,000");
}

#[test]
fn copies_of_control_segments_close_sessions_early() {
    let early = |copies| {
        let settings = sixteen_segments(copies);
        let is_early = |seed: &u64| closing_time(&settings, 1e-5, *seed).0 <= Duration::from_millis(5_500);
        (0..500).filter(is_early).count()
    };
    let (once, twice) = (early(1), early(2));
    assert!(once + 50 < twice, "{once} and {twice} of 500");
}
