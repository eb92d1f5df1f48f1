//! The effect of noise on short frames, and of a transmitter on the carrier detection of its own station.

use crate::nodes::*;
use longwire_proto::ax25::hdlc::air_bits;
use longwire_proto::service::FramesIndication;
use longwire_proto::time::{Duration, Instant};
use longwire_sim::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Channel on which a station transmits at once when it is clear, without a random draw.
fn channel_of(carrier_on: Duration, errors: Errors) -> RadioConfig {
    let station = StationConfig {
        persistence: 255,
        tx_delay: MS(100),
        tx_tail: MS(30),
        carrier_on,
        ..StationConfig::default()
    };
    RadioConfig { rate_bps: 9600, stations: vec![station], errors, ..RadioConfig::default() }
}

/// The shortest possible frames: an eighth of their bits is check sequence, which is affected like the rest.
#[test]
fn errors_on_the_air_fall_on_the_check_sequence_as_on_the_rest() {
    const FRAMES: u64 = 8000;
    let ber = 0.01;
    let (mut world, nodes, channel) = talkers(5, 2, channel_of(Duration::ZERO, Errors::Ber(ber)));
    for number in 0..FRAMES {
        // The same bits in each frame.
        world.request_at(Instant::from_secs(number), nodes[0], say(0, 16));
    }
    world.run_until(Instant::from_secs(FRAMES));
    let delivered = world.radio_counters(channel, (nodes[0], AT), (nodes[1], AT)).delivered;
    let rate = delivered as f64 / FRAMES as f64;
    let expected = (1.0 - ber).powi(air_bits(&say(0, 16).bytes) as i32);
    let deviation = (expected * (1.0 - expected) / FRAMES as f64).sqrt();
    assert!((rate - expected).abs() < 4.0 * deviation, "{rate} arrived, expected {expected}");
}

/// A station keys up during a signal that it has not detected yet. From then on it receives nothing, so the pending
/// detection is void: otherwise the station would consider the channel busy forever, because it would not detect the
/// end of that signal either.
#[test]
fn a_carrier_that_was_about_to_be_noticed_at_key_up_blocks_nobody() {
    let (mut world, nodes, _) = talkers(1, 2, channel_of(MS(60), Errors::None));
    // The first station is keyed for about 300 ms from the beginning, the second for about 470 ms from 50 ms on.
    world.request(nodes[0], say(1, 200));
    world.request_at(Instant::from_millis(50), nodes[1], say(2, 400));
    world.request_at(Instant::from_secs(2), nodes[1], say(3, 20));
    world.run_until(Instant::from_secs(5));
    let told = world.take_indications();
    let busy =
        |told: &&NodeIndication<Talk>| told.1 == nodes[1] && matches!(told.2, FramesIndication::Busy(_));
    assert_eq!(told.iter().filter(busy).count(), 0, "it was keyed as long as there was anything to hear");
    let left: Vec<u64> = told
        .iter()
        .filter(|told| told.1 == nodes[1])
        .filter_map(|told| match told.2 {
            FramesIndication::Transmitted(number) => Some(number),
            _ => None,
        })
        .collect();
    assert_eq!(left, [2, 3], "it gets the channel again");
    let heard =
        |told: &NodeIndication<Talk>| told.1 == nodes[0] && matches!(told.2, FramesIndication::Frame(_));
    assert_eq!(told.iter().filter(|told| heard(told)).count(), 1, "and is heard");
}
