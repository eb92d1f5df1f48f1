//! Noise on lines: the affected bits of a frame, and the initial state.

mod common;
use common::*;
use longwire_sim::*;

const FRAMES: u32 = 4000;

/// Allowed deviation of a share of this many trials from its expectation: four standard deviations.
fn allowed(expected: f64, trials: u32) -> f64 {
    4.0 * libm::sqrt(expected * (1.0 - expected) / f64::from(trials))
}

/// A frame of one byte is nearly all check sequence: errors in the check sequence destroy the frame, too.
#[test]
fn errors_fall_on_the_check_sequence_as_on_the_rest() {
    let ber = 0.02;
    for fcs in [Fcs::Crc16, Fcs::Crc32] {
        let config = LineConfig { errors: Errors::Ber(ber), fcs, ..LineConfig::default() };
        let (mut world, a, _, channel) = pair(7, ChannelConfig::symmetric(config));
        for _ in 0..FRAMES {
            world.request(a, frame(1));
        }
        while world.step() {}
        let counters = world.counters(channel, Direction::Forward);
        let delivered = counters.delivered as f64 / f64::from(FRAMES);
        let expected = libm::pow(1.0 - ber, f64::from(8 * (1 + fcs.bytes())));
        assert!(
            (delivered - expected).abs() < allowed(expected, FRAMES),
            "{fcs:?}: {delivered} arrived, expected {expected}"
        );
    }
}

/// A run is a window on a line that existed before, so the probability of each initial state is its long-term share.
#[test]
fn a_line_with_bursts_begins_bad_as_often_as_it_is_bad() {
    const RUNS: u32 = 600;
    let model = |good_bits_mean, bad_bits_mean| {
        Errors::GilbertElliott(GilbertElliott { good_bits_mean, bad_bits_mean, good_ber: 0.0, bad_ber: 0.5 })
    };
    // The states are much longer than the frame, so the frame is in the initial state of the line.
    for (good, bad) in [(3e7, 1e7), (1e7, 3e7)] {
        let config = LineConfig { errors: model(good, bad), fcs: Fcs::Crc32, ..LineConfig::default() };
        let began_bad = (0..RUNS).filter(|seed| {
            let (mut world, a, _, channel) = pair(u64::from(*seed), ChannelConfig::symmetric(config.clone()));
            world.request(a, frame(100));
            while world.step() {}
            world.counters(channel, Direction::Forward).check_failed == 1
        });
        let (share, expected) = (began_bad.count() as f64 / f64::from(RUNS), bad / (good + bad));
        assert!((share - expected).abs() < allowed(expected, RUNS), "{share} began bad, expected {expected}");
    }
}
