//! Single cases of radio channels.

use crate::nodes::*;
use longwire_proto::ax25::hdlc::air_bits;
use longwire_proto::service::FramesIndication;
use longwire_proto::time::{Duration, Instant};
use longwire_sim::*;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Station that transmits at once when the channel is clear, without a random draw.
fn eager() -> StationConfig {
    StationConfig { persistence: 255, tx_delay: MS(100), tx_tail: MS(30), ..StationConfig::default() }
}

fn channel_of(station: StationConfig) -> RadioConfig {
    RadioConfig { rate_bps: 9600, stations: vec![station], ..RadioConfig::default() }
}

fn air_time(frames: &[Say]) -> Duration {
    let bits: u64 = frames.iter().map(|frame| air_bits(&frame.bytes) + 8).sum();
    Duration::from_nanos(((bits + 8) * 1_000_000_000).div_ceil(9600))
}

/// Returns the times at which a node received which frames.
fn heard(told: &[NodeIndication<Talk>], node: NodeId) -> Vec<(Instant, u64)> {
    let of = told.iter().filter(|told| told.1 == node).filter_map(|told| match &told.2 {
        FramesIndication::Frame(bytes) => Some((told.0, u64::from_le_bytes(bytes[..8].try_into().unwrap()))),
        _ => None,
    });
    of.collect()
}

fn numbers(told: &[NodeIndication<Talk>], node: NodeId) -> Vec<u64> {
    heard(told, node).into_iter().map(|(_, number)| number).collect()
}

#[test]
fn a_key_up_takes_its_delay_its_exact_bits_and_its_tail() {
    let (mut world, nodes, channel) = talkers(1, 2, channel_of(eager()));
    let mut fill = say(2, 300);
    // Only ones: a stuffed bit after every five.
    fill.bytes = [&fill.bytes[..8], &[0xff; 292]].concat().into();
    let frames = [say(1, 100), fill, say(3, 50)];
    assert!(air_bits(&frames[1].bytes) > 8 * 302 + 460);
    frames.iter().for_each(|frame| world.request_at(Instant::from_secs(1), nodes[0], frame.clone()));
    world.run_until(Instant::from_secs(10));
    let told = world.take_indications();
    // The station gets the channel when all three frames are there.
    let three = Instant::from_secs(1) + MS(100) + air_time(&frames);
    assert_eq!(heard(&told, nodes[1]).last(), Some(&(three, 3)));
    let left = told.iter().find(|told| told.2 == FramesIndication::Transmitted(3)).map(|told| told.0);
    assert_eq!(left, Some(three));
    let busy = |on| told.iter().find(|told| told.2 == FramesIndication::Busy(on)).map(|told| told.0);
    assert_eq!((busy(true), busy(false)), (Some(Instant::from_secs(1)), Some(three + MS(30))));
    let airtime = world.radio_airtime(channel, (nodes[0], AT));
    assert_eq!(airtime.sent(), air_time(&frames).as_nanos() as u64);
    let stuffed: u64 =
        frames.iter().map(|frame| air_bits(&frame.bytes) - 8 * (frame.bytes.len() as u64 + 2)).sum();
    assert_eq!((airtime.stuffing as f64 * 9600.0 / 1e9).round() as u64, stuffed);
    assert_eq!(airtime.keying, MS(130).as_nanos() as u64);
    assert_eq!(airtime.access, 0);
}

/// Returns the mean time from the request to key-up on a clear channel, in slots.
fn mean_slots(access: Access, persistence: u8) -> f64 {
    let station = StationConfig { persistence, access, ..eager() };
    let slot = station.slot_time.as_secs_f64();
    let (mut world, nodes, channel) = talkers(3, 2, channel_of(station));
    const FRAMES: u64 = 4000;
    for number in 0..FRAMES {
        world.request_at(Instant::from_secs(60 * number), nodes[0], say(number, 16));
    }
    world.run_until(Instant::from_secs(60 * FRAMES));
    assert_eq!(numbers(&world.take_indications(), nodes[1]).len() as u64, FRAMES);
    world.radio_airtime(channel, (nodes[0], AT)).access as f64 / 1e9 / slot / FRAMES as f64
}

#[test]
fn persistence_has_its_mean_in_each_of_its_variants() {
    for persistence in [31, 63, 127, 255] {
        let p = (f64::from(persistence) + 1.0) / 256.0;
        for (access, mean, deviation) in [
            (Access::DrawThenWait, (1.0 - p) / p, (1.0 - p).sqrt() / p),
            (Access::WaitThenDraw, 1.0 / p, (1.0 - p).sqrt() / p),
            (Access::Uniform, 0.5 / p, 1.0 / p / 12f64.sqrt()),
        ] {
            let measured = mean_slots(access, persistence);
            let allowed = 4.0 * deviation / 4000f64.sqrt() + 1e-9;
            assert!((measured - mean).abs() <= allowed, "{access:?} {p}: {measured} slots, not {mean}");
            let config = StationConfig { persistence, access, ..StationConfig::default() };
            let stated = config.access_mean().as_secs_f64() / config.slot_time.as_secs_f64();
            assert!((stated - mean).abs() < 1e-6);
        }
    }
}

#[test]
fn who_hears_another_waits_until_it_is_clear() {
    let (mut world, nodes, channel) = talkers(1, 2, channel_of(eager()));
    world.request(nodes[0], say(1, 200));
    world.request_at(Instant::from_millis(50), nodes[1], say(2, 20));
    world.run_until(Instant::from_secs(5));
    let together = world.radio_channel_airtime(channel);
    let [first, second] = [0, 1].map(|at| world.radio_airtime(channel, (nodes[at], AT)));
    assert_eq!(together.sent(), first.sent() + second.sent());
    assert_eq!(together.keying, first.keying + second.keying);
    assert_eq!((together.access, second.access > 0), (0, true), "while one sends, nobody's wait counts");
    let told = world.take_indications();
    let clear = Instant::ZERO + MS(130) + air_time(&[say(1, 200)]);
    assert_eq!(heard(&told, nodes[0]), [(clear + MS(100) + air_time(&[say(2, 20)]), 2)]);
    assert_eq!(numbers(&told, nodes[1]), [1]);
}

#[test]
fn two_that_begin_at_once_destroy_each_other_for_a_third_and_hear_nothing() {
    let (mut world, nodes, channel) = talkers(1, 3, channel_of(eager()));
    world.request(nodes[0], say(1, 200));
    world.request(nodes[1], say(2, 200));
    world.run_until(Instant::from_secs(5));
    let told = world.take_indications();
    assert!(told.iter().any(|told| told.2 == FramesIndication::Transmitted(2)));
    assert_eq!(nodes.iter().flat_map(|node| numbers(&told, *node)).count(), 0);
    let counters = |from: usize, to: usize| world.radio_counters(channel, (nodes[from], AT), (nodes[to], AT));
    assert_eq!((counters(0, 2).collided, counters(1, 2).collided), (1, 1));
    assert_eq!((counters(0, 1).deaf, counters(1, 0).deaf), (1, 1));
}

#[test]
fn a_signal_that_is_not_noticed_yet_is_talked_over() {
    for (carrier_on, collides) in [(40, false), (60, true)] {
        let station = StationConfig { carrier_on: MS(carrier_on), ..eager() };
        let (mut world, nodes, channel) = talkers(1, 3, channel_of(station));
        world.request(nodes[0], say(1, 200));
        world.request_at(Instant::from_millis(50), nodes[1], say(2, 200));
        world.run_until(Instant::from_secs(5));
        let lost = world.radio_counters(channel, (nodes[0], AT), (nodes[2], AT)).collided;
        assert_eq!(lost, u64::from(collides), "noticed after {carrier_on} ms");
    }
}

/// Stations 0 and 1 are out of range of each other; 2 receives both.
fn hidden(capture_db: Option<f64>, level_db: f64) -> Vec<u64> {
    let louder = PathConfig { level_db, ..PathConfig::clear(0, 2) };
    let paths = vec![PathConfig::deaf(0, 1), PathConfig::deaf(1, 0), louder];
    let config = RadioConfig { paths, capture_db, ..channel_of(eager()) };
    let (mut world, nodes, _) = talkers(1, 3, config);
    // The end of the first frame overlaps with the beginning of the second; the third is alone.
    world.request(nodes[0], say(1, 200));
    world.request_at(Instant::from_millis(150), nodes[1], say(2, 200));
    world.request_at(Instant::from_secs(4), nodes[1], say(3, 200));
    world.run_until(Instant::from_secs(9));
    numbers(&world.take_indications(), nodes[2])
}

#[test]
fn hidden_stations_collide_and_the_stronger_may_survive() {
    assert_eq!(hidden(None, 30.0), [3]);
    assert_eq!(hidden(Some(6.0), 5.0), [3]);
    assert_eq!(hidden(Some(6.0), 7.0), [1, 3], "the louder one gets through");
    assert_eq!(hidden(Some(6.0), -7.0), [2, 3], "the later one does, too");
}

#[test]
fn only_the_frames_of_a_key_up_that_overlap_are_lost() {
    let paths = vec![PathConfig::deaf(0, 1), PathConfig::deaf(1, 0)];
    let config = RadioConfig { paths, ..channel_of(eager()) };
    let (mut world, nodes, _) = talkers(1, 3, config);
    for number in 0..6 {
        world.request(nodes[0], say(number, 250));
    }
    // Six frames of 210 ms from 100 ms on; this station is keyed from 600 ms to 751 ms.
    world.request_at(Instant::from_millis(600), nodes[1], say(9, 16));
    world.run_until(Instant::from_secs(9));
    assert_eq!(numbers(&world.take_indications(), nodes[2]), [0, 1, 4, 5]);
}

#[test]
fn who_was_given_room_and_says_nothing_gives_the_channel_back() {
    let kinds: [fn() -> Talker; 2] = [Talker::silent, Talker::default];
    let (mut world, nodes, channel) = talkers_of(1, channel_of(eager()), kinds.into_iter());
    world.request(nodes[0], say(1, 100));
    world.request_at(Instant::from_millis(10), nodes[1], say(2, 100));
    world.request_at(Instant::from_secs(3), nodes[0], say(3, 100));
    world.run_until(Instant::from_secs(9));
    let told = world.take_indications();
    let rooms: Vec<_> = told.iter().filter(|told| told.1 == nodes[0]).collect();
    let room = |room| (Instant::ZERO, nodes[0], FramesIndication::Room(room));
    assert!(rooms.contains(&&room(128)) && rooms.contains(&&room(0)), "{rooms:?}");
    // The other stations are not affected, and later frames arrive.
    assert_eq!(heard(&told, nodes[0]), [(Instant::from_millis(110) + air_time(&[say(2, 100)]), 2)]);
    assert_eq!(numbers(&told, nodes[1]), [3]);
    assert_eq!(world.radio_counters(channel, (nodes[0], AT), (nodes[1], AT)).handed, 1);
}

#[test]
fn full_duplex_waits_for_nobody_and_stays_keyed() {
    let config = RadioConfig { full_duplex: true, ..channel_of(eager()) };
    let (mut world, nodes, channel) = talkers(1, 2, config);
    for number in 0..10 {
        world.request(nodes[0], say(number, 250));
        world.request(nodes[1], say(100 + number, 250));
    }
    world.run_until(Instant::from_secs(20));
    let told = world.take_indications();
    assert_eq!(numbers(&told, nodes[1]), (0..10).collect::<Vec<u64>>());
    assert_eq!(numbers(&told, nodes[0]), (100..110).collect::<Vec<u64>>());
    let all: Vec<Say> = (0..10).map(|number| say(number, 250)).collect();
    assert_eq!(heard(&told, nodes[1]).last().unwrap().0, Instant::ZERO + MS(100) + air_time(&all));
    assert_eq!(world.radio_airtime(channel, (nodes[0], AT)).keying, MS(130).as_nanos() as u64);
}

#[test]
fn bit_errors_destroy_as_many_frames_as_they_should() {
    const FRAMES: u64 = 3000;
    let ber = 1e-4;
    let back = PathConfig { errors: Some(Errors::None), ..PathConfig::clear(1, 0) };
    let config = RadioConfig { errors: Errors::Ber(ber), paths: vec![back], ..channel_of(eager()) };
    let (mut world, nodes, channel) = talkers(5, 2, config);
    for number in 0..FRAMES {
        world.request_at(Instant::from_secs(5 * number), nodes[0], say(number, 250));
        world.request_at(Instant::from_secs(5 * number + 2), nodes[1], say(number, 250));
    }
    world.run_until(Instant::from_secs(5 * FRAMES));
    let there = world.radio_counters(channel, (nodes[0], AT), (nodes[1], AT));
    let expected = 1.0 - (1.0 - ber).powi(air_bits(&say(0, 250).bytes) as i32);
    let rate = there.check_failed as f64 / FRAMES as f64;
    let deviation = (expected * (1.0 - expected) / FRAMES as f64).sqrt();
    assert!((rate - expected).abs() < 4.0 * deviation, "{rate} lost, not {expected}");
    let back = world.radio_counters(channel, (nodes[1], AT), (nodes[0], AT));
    assert_eq!(back.delivered, FRAMES, "the other way is without errors");
}

#[test]
fn a_cut_takes_what_is_on_the_air_and_shows_to_nobody() {
    let (mut world, nodes, channel) = talkers(1, 2, channel_of(eager()));
    world.request(nodes[0], say(1, 200));
    world.fault_at(Instant::from_millis(150), InjectedFault::Cut(channel));
    world.request_at(Instant::from_secs(2), nodes[0], say(2, 200));
    world.fault_at(Instant::from_secs(4), InjectedFault::Heal(channel));
    world.request_at(Instant::from_secs(5), nodes[0], say(3, 200));
    world.run_until(Instant::from_secs(9));
    let told = world.take_indications();
    assert_eq!(numbers(&told, nodes[1]), [3]);
    let left = told.iter().filter(|told| matches!(told.2, FramesIndication::Transmitted(_))).count();
    assert_eq!(left, 3);
    assert_eq!(world.radio_airtime(channel, (nodes[0], AT)).outage, MS(3850).as_nanos() as u64);
    assert_eq!(world.radio_counters(channel, (nodes[0], AT), (nodes[1], AT)).outage, 2);
}

#[test]
fn values_that_make_no_sense_are_named() {
    let refused = |config: RadioConfig| config.validate(2).expect_err("it makes no sense");
    let radio = RadioConfig::default;
    assert_eq!(radio().validate(2), Ok(()));
    assert!(radio().validate(1).is_err());
    assert!(refused(RadioConfig { rate_bps: 0, ..radio() }).contains("rate-bps"));
    assert!(
        refused(RadioConfig { stations: vec![StationConfig::default(); 3], ..radio() }).contains("stations")
    );
    assert!(refused(RadioConfig { paths: vec![PathConfig::deaf(0, 0)], ..radio() }).contains("path"));
    assert!(refused(RadioConfig { capture_db: Some(f64::NAN), ..radio() }).contains("capture-db"));
    let text = "rate-bps = 9600\ncapture-db = 6.0\nerrors = { ber = 1e-5 }\n[[stations]]\ntx-delay-ms = 150\naccess = \
                \"wait-then-draw\"\n[[paths]]\nfrom = 0\nto = 1\nheard = false\n";
    let read: RadioConfig = toml::from_str(text).expect("it reads");
    assert_eq!((read.stations[0].tx_delay, read.stations[0].access), (MS(150), Access::WaitThenDraw));
    assert_eq!((read.paths[0].heard, read.errors), (false, Errors::Ber(1e-5)));
    let written = toml::to_string(&read).expect("it is written");
    assert_eq!(toml::from_str::<RadioConfig>(&written).expect("and read again"), read);
    for (text, hint) in [
        ("[[stations]]\ntx-delay = 150", "unknown field `tx-delay`"),
        ("[[stations]]\ntx-delay-ms = -1", "not a time in milliseconds"),
        ("errors = \"many\"", "unknown variant `many`"),
        ("[[paths]]\nfrom = 1", "missing field `to`"),
    ] {
        let error = toml::from_str::<RadioConfig>(text).expect_err(text).to_string();
        assert!(error.contains(hint), "{error}");
    }
}

/// The propagation delay is zero, and a plan of faults drawn for any channel contains nothing invalid.
#[test]
fn a_delay_changes_nothing_on_the_air() {
    let heard_at = |delayed: bool| {
        let (mut world, nodes, channel) = talkers(1, 2, channel_of(eager()));
        if delayed {
            let delay = Delay::Constant(Duration::from_secs(3));
            world.apply(InjectedFault::Delay(channel, Direction::Forward, delay));
        }
        world.request(nodes[0], say(1, 100));
        world.run_until(Instant::from_secs(20));
        heard(&world.take_indications(), nodes[1])
    };
    assert_eq!(heard_at(true), heard_at(false));
    assert_eq!(heard_at(true).len(), 1);
}
