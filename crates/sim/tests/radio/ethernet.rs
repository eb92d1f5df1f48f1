//! Ethernet frames on a shared channel, one per transmission, as in D-STAR DD: cost of a transmission, turns of stations
//! that wait, partial hearing, and receivers that follow the first signal.

use crate::nodes::*;
use longwire_proto::service::FramesIndication;
use longwire_proto::time::{Duration, Instant};
use longwire_sim::*;

const MS: fn(u64) -> Duration = Duration::from_millis;
/// Fixed cost of a transmission.
const COST: Duration = Duration::from_millis(20);
const SLOT: Duration = Duration::from_millis(1);
/// Slots of the longest wait.
const SLOTS: u64 = 8;

/// Channel of 128 kbit/s, of which a byte takes 62.5 microseconds.
fn channel() -> RadioConfig {
    let station = StationConfig {
        tx_delay: COST,
        tx_tail: Duration::ZERO,
        slot_time: SLOT,
        persistence: (256 / SLOTS - 1) as u8,
        access: Access::Backoff,
        carrier_on: SLOT / 2,
        key_up_frames: 1,
        ..StationConfig::default()
    };
    RadioConfig {
        rate_bps: 128_000,
        framing: Framing::Ethernet,
        stations: vec![station],
        ..RadioConfig::default()
    }
}

/// Time on the air of a frame of this length, which is at least 60 bytes.
fn takes(length: u64) -> Duration {
    COST + Duration::from_nanos((length + 4) * 62_500)
}

/// Frames that this node received, with their times in units of ten microseconds.
fn heard(told: &[NodeIndication<Talk>], node: NodeId) -> Vec<(u64, u64)> {
    let of = told.iter().filter(|told| told.1 == node).filter_map(|told| match &told.2 {
        FramesIndication::Frame(bytes) => {
            Some((told.0.as_nanos() / 10_000, u64::from_le_bytes(bytes[..8].try_into().unwrap())))
        }
        _ => None,
    });
    of.collect()
}

fn numbers(told: &[NodeIndication<Talk>], node: NodeId) -> Vec<u64> {
    heard(told, node).into_iter().map(|(_, number)| number).collect()
}

fn at(time: Duration) -> u64 {
    time.as_nanos() as u64 / 10_000
}

#[test]
fn a_transmission_costs_a_fixed_time_and_each_of_its_bytes_at_least_sixty_four() {
    let (mut world, nodes, channel) = talkers(1, 2, channel());
    for (second, length) in [(1, 1514), (2, 60), (3, 20)] {
        world.request_at(Instant::from_secs(second), nodes[0], say(second, length));
    }
    world.run_until(Instant::from_secs(4));
    let times = [(1, 1514), (2, 60), (3, 60)].map(|(second, bytes)| at(MS(1000 * second) + takes(bytes)));
    assert_eq!(heard(&world.take_indications(), nodes[1]), [(times[0], 1), (times[1], 2), (times[2], 3)]);
    let airtime = world.radio_airtime(channel, (nodes[0], AT));
    assert_eq!(airtime.keying, 3 * COST.as_nanos() as u64);
    // Check sequences, and the padding of the last frame.
    assert_eq!(airtime.framing, (3 * 4 + 40) * 62_500);
    assert_eq!((airtime.stuffing, airtime.access), (0, 0), "a clear channel is used at once");
}

#[test]
fn who_has_just_transmitted_lets_those_go_first_who_waited() {
    for seed in 0..20 {
        let (mut world, nodes, _) = talkers(seed, 3, channel());
        // Two long frames of the first station, and one of the second that is ready during the first of them.
        world.request(nodes[0], say(1, 1500));
        world.request_at(Instant::from_millis(30), nodes[0], say(2, 1500));
        world.request_at(Instant::from_millis(40), nodes[1], say(3, 60));
        world.run_until(Instant::from_secs(1));
        let order = heard(&world.take_indications(), nodes[2]);
        assert_eq!(order.iter().map(|(_, number)| *number).collect::<Vec<_>>(), [1, 3, 2]);
        let waited = order[1].0 - at(takes(1500) + takes(60));
        assert!(waited < at(SLOT * SLOTS as u32), "seed {seed}: {waited}");
        // Nobody else waits for the second frame, whose station waited as well.
        let second = order[2].0 - order[1].0 - at(takes(1500));
        assert!(second < at(SLOT * SLOTS as u32), "seed {seed}: {second}");
    }
}

#[test]
fn a_station_by_itself_waits_the_longest_wait_between_two_of_its_own() {
    let (mut world, nodes, channel) = talkers(1, 2, channel());
    for number in 1..=3 {
        world.request(nodes[0], say(number, 1500));
    }
    world.run_until(Instant::from_secs(1));
    let pause = SLOT * SLOTS as u32;
    let times = [0, 1, 2].map(|before| at(takes(1500) * (before + 1) + pause * before));
    let times: Vec<(u64, u64)> = times.into_iter().zip(1..).collect();
    assert_eq!(heard(&world.take_indications(), nodes[1]), times);
    let airtime = world.radio_airtime(channel, (nodes[0], AT));
    assert_eq!(airtime.access, 2 * pause.as_nanos() as u64);
}

#[test]
fn two_that_waited_collide_when_they_draw_the_same_slot() {
    let (mut collisions, rounds) = (0, 2000);
    for seed in 0..rounds {
        let (mut world, nodes, channel) = talkers(seed, 4, channel());
        world.request(nodes[0], say(1, 1500));
        world.request_at(Instant::from_millis(30), nodes[1], say(2, 60));
        world.request_at(Instant::from_millis(40), nodes[2], say(3, 60));
        world.run_until(Instant::from_secs(1));
        collisions += world.radio_counters(channel, (nodes[1], AT), (nodes[3], AT)).collided;
        assert_eq!(numbers(&world.take_indications(), nodes[3])[0], 1, "who waits disturbs nobody");
    }
    // One in eight: 250 of 2000, with a standard deviation of 15.
    assert!((190..=310).contains(&collisions), "{collisions} of {rounds}");
}

#[test]
fn a_weak_path_lets_small_frames_pass_and_long_ones_only_occupy_the_channel() {
    let weak = PathConfig { frame_bytes_max: Some(100), ..PathConfig::clear(0, 1) };
    let (mut world, nodes, over) = talkers(1, 3, RadioConfig { paths: vec![weak], ..channel() });
    world.request(nodes[0], say(1, 60));
    world.request_at(Instant::from_secs(1), nodes[0], say(2, 101));
    world.request_at(Instant::from_secs(2), nodes[0], say(3, 100));
    world.run_until(Instant::from_secs(3));
    let told = world.take_indications();
    assert_eq!((numbers(&told, nodes[1]), numbers(&told, nodes[2])), (vec![1, 3], vec![1, 2, 3]));
    let counters = world.radio_counters(over, (nodes[0], AT), (nodes[1], AT));
    assert_eq!((counters.delivered, counters.check_failed), (2, 1));
    let busy = told.iter().filter(|told| told.1 == nodes[1] && told.2 == FramesIndication::Busy(true));
    assert_eq!(busy.count(), 3, "a frame that cannot be read is a carrier");
}

#[test]
fn a_station_heard_now_and_then_is_received_and_detected_in_its_share_of_transmissions() {
    let faint = PathConfig { heard_share: Some(0.25), ..PathConfig::clear(0, 1) };
    let (mut world, nodes, channel) = talkers(3, 3, RadioConfig { paths: vec![faint], ..channel() });
    const FRAMES: u64 = 4000;
    (0..FRAMES).for_each(|number| world.request_at(Instant::from_secs(number), nodes[0], say(number, 60)));
    world.run_until(Instant::from_secs(FRAMES));
    let counters = world.radio_counters(channel, (nodes[0], AT), (nodes[1], AT));
    // A quarter, with a standard deviation of 27.
    assert!(counters.delivered.abs_diff(FRAMES / 4) < 110, "{counters:?}");
    assert_eq!(counters.delivered + counters.unheard, FRAMES);
    let told = world.take_indications();
    let busy = told.iter().filter(|told| told.1 == nodes[1] && told.2 == FramesIndication::Busy(true));
    assert_eq!(busy.count() as u64, counters.delivered, "what is not heard is not detected");
    assert_eq!(numbers(&told, nodes[2]).len() as u64, FRAMES, "others hear all");
}

/// Station 2 hears 0 and, much louder, 1, which do not hear each other. Returns what it receives if the weaker signal
/// begins first, or the louder one.
fn overlapping(follows_first: bool, weak_first: bool, after_ms: u64) -> Vec<u64> {
    let loud = PathConfig { level_db: 30.0, ..PathConfig::clear(1, 2) };
    let paths = vec![PathConfig::deaf(0, 1), PathConfig::deaf(1, 0), loud];
    let config = RadioConfig { paths, capture_db: Some(10.0), follows_first, ..channel() };
    let (mut world, nodes, _) = talkers(1, 3, config);
    let (first, second) = if weak_first { (0, 1) } else { (1, 0) };
    world.request(nodes[first], say(first as u64, 1000));
    world.request_at(Instant::from_millis(after_ms), nodes[second], say(second as u64, 1000));
    world.run_until(Instant::from_secs(1));
    numbers(&world.take_indications(), nodes[2])
}

#[test]
fn a_louder_signal_that_begins_later_is_lost_where_the_receiver_follows_the_first() {
    // The second signal begins before the first frame does, or during it.
    for after_ms in [10, 50] {
        assert_eq!(overlapping(false, true, after_ms), [1], "the receiver changes to the louder one");
        assert_eq!(overlapping(true, true, after_ms), [0; 0], "it is destroyed and destroys");
        for follows_first in [false, true] {
            let heard = overlapping(follows_first, false, after_ms);
            assert_eq!(heard, [1], "the fainter one does not disturb");
        }
    }
}

#[test]
fn wrong_bits_fail_the_check_of_an_ethernet_frame() {
    const FRAMES: u64 = 4000;
    let ber = 3e-4;
    let (mut world, nodes, channel) = talkers(5, 2, RadioConfig { errors: Errors::Ber(ber), ..channel() });
    (0..FRAMES).for_each(|number| world.request_at(Instant::from_secs(number), nodes[0], say(number, 200)));
    world.run_until(Instant::from_secs(FRAMES));
    let counters = world.radio_counters(channel, (nodes[0], AT), (nodes[1], AT));
    let expected = (1.0 - ber).powi(8 * 204);
    let deviation = (expected * (1.0 - expected) / FRAMES as f64).sqrt();
    let rate = counters.delivered as f64 / FRAMES as f64;
    assert!((rate - expected).abs() < 4.0 * deviation, "{rate} arrived, expected {expected}");
    assert_eq!((counters.undetected, counters.delivered + counters.check_failed), (0, FRAMES));
}
