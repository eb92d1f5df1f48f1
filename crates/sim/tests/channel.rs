//! Single cases of channels.

mod common;
use common::*;
use longwire_proto::service::Shares;
use longwire_proto::time::{Duration, Instant};
use longwire_sim::*;

fn line(rate_bps: u64) -> LineConfig {
    LineConfig { rate_bps, ..LineConfig::default() }
}

#[test]
fn a_frame_takes_its_time_on_the_air_and_on_the_way() {
    let config = LineConfig { delay: Delay::constant_ms(2000), ..line(8000) };
    let (mut world, a, b, channel) = pair(1, ChannelConfig::symmetric(config));
    world.request(a, numbered(1000, Some(7)));
    world.run_until(Instant::from_secs(10));
    let told = world.take_indications();
    assert_eq!(said(&told, a), [(0.0, Hear::Carrier(0, true)), (1.0, Hear::Transmitted(0, 7))]);
    let Hear::Frame(0, bytes) = &said(&told, b)[1].1 else { panic!("{told:?}") };
    assert_eq!((said(&told, b)[1].0, bytes.len()), (3.0, 1000));
    let airtime = world.airtime(channel, Direction::Forward);
    assert_eq!((airtime.header, airtime.idle), (1_000_000_000, 9_000_000_000));
}

#[test]
fn frames_back_to_back_do_not_drift() {
    // 115,200 bit/s: a byte takes 69,444 and 4/9 nanoseconds.
    let (mut world, a, _, channel) = pair(1, ChannelConfig::symmetric(line(115_200)));
    for token in 0..10_000 {
        world.request(a, numbered(9, Some(token)));
    }
    world.run_until(Instant::from_secs(10));
    let last = world.take_indications().into_iter().rev().find_map(|told| match told.2 {
        Hear::Transmitted(0, 9_999) => Some(told.0),
        _ => None,
    });
    assert_eq!(last, Some(Instant::from_nanos(6_250_000_000)), "10,000 times 72 bits are 6.25 s");
    assert_eq!(world.airtime(channel, Direction::Forward).idle, 3_750_000_000);
}

#[test]
fn shares_become_airtime() {
    let config = LineConfig { fcs: Fcs::Crc16, framing_bytes: 3, ..line(8000) };
    let (mut world, a, _, channel) = pair(1, ChannelConfig::symmetric(config));
    let shares = Shares { payload: 50, repeated: 10, acknowledgement: 5, control: 4, repair: 1 };
    world.request(a, Ask::Frame { interface: 0, bytes: vec![0; 95].into(), token: None, shares });
    world.run_until(Instant::from_secs(1));
    let milliseconds = |nanos: u64| nanos as f64 / 1e6;
    let airtime = world.airtime(channel, Direction::Forward);
    assert_eq!(milliseconds(airtime.payload), 50.0);
    assert_eq!(milliseconds(airtime.repeated), 10.0);
    assert_eq!(milliseconds(airtime.acknowledgement), 5.0);
    assert_eq!(milliseconds(airtime.control), 4.0);
    assert_eq!(milliseconds(airtime.repair), 1.0);
    assert_eq!(milliseconds(airtime.header), 25.0);
    assert_eq!(milliseconds(airtime.framing), 5.0);
    assert_eq!(milliseconds(airtime.idle), 900.0);
}

#[test]
fn the_queue_is_limited_and_back_pressure_says_how() {
    let config = LineConfig { queue_bytes: 3500, mtu_bytes: 1000, ..line(8000) };
    let (mut world, a, b, channel) = pair(1, ChannelConfig::symmetric(config));
    for _ in 0..10 {
        world.request(a, frame(1000));
    }
    world.run_until(Instant::from_millis(500));
    let room: Vec<u32> = rooms(&world.take_indications(), a);
    assert_eq!(room, [4], "one for the transmitter and three for the queue");
    assert_eq!(world.counters(channel, Direction::Forward).in_flight, 4);
    world.run_until(Instant::from_secs(20));
    let told = world.take_indications();
    assert_eq!(said(&told, b).len(), 10, "nothing is lost");
    assert_eq!(rooms(&told, a), [1, 1, 1, 1, 1, 1, 1, 2, 3, 4]);
    assert_eq!(world.airtime(channel, Direction::Forward).header, 10_000_000_000, "without a gap");
}

fn rooms(told: &[NodeIndication<Talk>], node: NodeId) -> Vec<u32> {
    let of_node = told.iter().filter(|told| told.1 == node);
    of_node.filter_map(|told| if let Hear::Room(_, room) = told.2 { Some(room) } else { None }).collect()
}

#[test]
fn without_a_queue_the_next_frame_is_made_when_the_last_has_left() {
    let (mut world, a, _, channel) = pair(1, ChannelConfig::symmetric(line(8000)));
    for _ in 0..5 {
        world.request(a, frame(1000));
    }
    world.run_until(Instant::from_millis(4500));
    assert_eq!(rooms(&world.take_indications(), a), [1, 1, 1, 1, 1]);
    assert_eq!(world.counters(channel, Direction::Forward).in_flight, 1);
    assert_eq!(world.airtime(channel, Direction::Forward).idle, 0, "and there is no gap");
}

#[test]
fn without_back_pressure_the_tail_is_dropped() {
    let config = LineConfig { queue_bytes: 3500, backpressure: false, ..line(8000) };
    let (mut world, a, b, channel) = pair(1, ChannelConfig::symmetric(config));
    for token in 0..10 {
        world.request(a, numbered(1000, Some(token)));
    }
    world.run_until(Instant::from_secs(20));
    let counters = world.counters(channel, Direction::Forward);
    assert_eq!((counters.delivered, counters.queue_full), (4, 6));
    let told = world.take_indications();
    assert_eq!(said(&told, b).iter().filter(|said| matches!(said.1, Hear::Frame(..))).count(), 4);
    let back = said(&told, a).iter().filter(|said| matches!(said.1, Hear::Transmitted(..))).count();
    assert_eq!(back, 10, "the token of a dropped frame comes back, too");
}

#[test]
fn a_frame_that_is_too_long_is_dropped_and_counted() {
    let (mut world, a, _, channel) = pair(1, ChannelConfig::default());
    world.request(a, frame(1501));
    world.request(a, frame(1500));
    world.run_until(Instant::from_secs(1));
    let counters = world.counters(channel, Direction::Forward);
    assert_eq!((counters.handed, counters.delivered, counters.too_long), (2, 1, 1));
}

fn outage(announced: bool) -> ChannelConfig {
    let outages = vec![Window { from: Instant::from_millis(2500), to: Instant::from_millis(5500) }];
    let config = LineConfig { outages, announced, delay: Delay::constant_ms(1000), ..line(8000) };
    ChannelConfig::symmetric(config)
}

#[test]
fn an_outage_that_nobody_announces_swallows_what_is_sent() {
    let (mut world, a, b, channel) = pair(1, outage(false));
    for _ in 0..8 {
        world.request(a, frame(1000));
    }
    world.run_until(Instant::from_secs(10));
    // Frames leave at 1, 2, .. 8 s. Those that end at 3, 4, 5 and 6 s overlap with the outage. The one that ended at 2
    // s was in flight when the outage began, and arrives.
    let told = world.take_indications();
    let times: Vec<f64> = said(&told, b).iter().skip(1).map(|said| said.0).collect();
    assert_eq!(times, [2.0, 3.0, 8.0, 9.0]);
    assert_eq!(said(&told, a), [(0.0, Hear::Carrier(0, true))], "the sender hears of nothing");
    let airtime = world.airtime(channel, Direction::Forward);
    assert_eq!((airtime.header, airtime.outage, airtime.idle), (5_000_000_000, 3_000_000_000, 2_000_000_000));
}

#[test]
fn an_announced_outage_holds_what_waits() {
    let (mut world, a, b, _) = pair(1, outage(true));
    for _ in 0..4 {
        world.request(a, frame(1000));
    }
    world.run_until(Instant::from_secs(10));
    let told = world.take_indications();
    let times: Vec<f64> =
        said(&told, b).iter().filter(|said| matches!(said.1, Hear::Frame(..))).map(|said| said.0).collect();
    assert_eq!(times, [2.0, 3.0, 7.5], "the third was on the transmitter and is lost");
    let heard = [(0.0, true), (2.5, false), (5.5, true)].map(|(at, up)| (at, Hear::Carrier(0, up)));
    assert_eq!(said(&told, a), heard);
    assert_eq!(rooms(&told, a), [1, 1, 1, 1, 1], "no room comes from a line that is out: {told:?}");
}

#[test]
fn outside_its_contacts_there_is_no_line() {
    let contacts = vec![
        Window { from: Instant::from_secs(2), to: Instant::from_secs(3) },
        Window { from: Instant::from_secs(6), to: Instant::from_secs(9) },
    ];
    let config = LineConfig { contacts, announced: true, ..line(8000) };
    let (mut world, a, b, channel) = pair(1, ChannelConfig::symmetric(config));
    for _ in 0..5 {
        world.request(a, frame(900));
    }
    world.run_until(Instant::from_secs(20));
    let told = world.take_indications();
    let times: Vec<f64> =
        said(&told, b).iter().filter(|said| matches!(said.1, Hear::Frame(..))).map(|said| said.0).collect();
    assert_eq!(times, [2.9, 6.9, 7.8, 8.7], "the second was cut off by the end of the first contact");
    assert_eq!(world.airtime(channel, Direction::Forward).outage, 16_000_000_000);
}

#[test]
fn a_cut_is_an_outage_and_a_frame_that_has_left_is_safe_from_it() {
    let (mut world, a, b, channel) = pair(1, ChannelConfig::symmetric(line(8000)));
    world.request(a, frame(1000));
    world.fault_at(Instant::from_secs(1), InjectedFault::Cut(channel));
    world.fault_at(Instant::from_millis(1200), InjectedFault::Heal(channel));
    world.run_until(Instant::from_secs(2));
    assert_eq!(said(&world.take_indications(), b).len(), 2, "it left at the very moment of the cut");
    world.request(a, frame(1000));
    world.run_until(Instant::from_millis(2999));
    world.cut(channel);
    world.heal(channel);
    world.run_until(Instant::from_secs(5));
    assert_eq!(said(&world.take_indications(), b), [], "no cut is too short");
    assert_eq!(world.counters(channel, Direction::Forward).outage, 1);
}

#[test]
fn a_channel_that_is_cut_twice_is_back_when_both_cuts_are_healed() {
    let (mut world, a, b, channel) = pair(1, ChannelConfig::symmetric(line(8000)));
    for (from, to) in [(1, 6), (2, 4), (9, 10)] {
        world.fault_at(Instant::from_secs(from), InjectedFault::Cut(channel));
        world.fault_at(Instant::from_secs(to), InjectedFault::Heal(channel));
    }
    for at in [0, 4, 6, 9] {
        world.request_at(Instant::from_secs(at) + Duration::from_millis(100), a, frame(100));
    }
    world.run_until(Instant::from_secs(20));
    let told = world.take_indications();
    let times: Vec<f64> =
        said(&told, b).iter().filter(|said| matches!(said.1, Hear::Frame(..))).map(|said| said.0).collect();
    assert_eq!(times.len(), 2, "at 4.1 s it is still cut once, and at 9.1 s again: {times:?}");
    assert_eq!(world.airtime(channel, Direction::Forward).outage, 6_000_000_000);
    // A heal before the cut has no effect.
    world.heal(channel);
    world.cut(channel);
    world.request(a, frame(100));
    world.run_until(Instant::from_secs(22));
    assert_eq!(world.counters(channel, Direction::Forward).outage, 3);
}

#[test]
fn a_node_that_is_down_hears_nothing_and_what_it_had_queued_is_gone() {
    let config = LineConfig { queue_bytes: 10_000, ..line(8000) };
    let (mut world, a, b, channel) = pair(1, ChannelConfig::symmetric(config));
    for token in 0..4 {
        world.request(a, numbered(1000, Some(token)));
        world.request(b, frame(1000));
    }
    world.run_until(Instant::from_millis(1500));
    world.crash(a);
    assert!(!world.request(a, frame(10)), "it does not hear");
    world.run_until(Instant::from_millis(3500));
    world.restart(a);
    world.run_until(Instant::from_secs(10));
    let forward = world.counters(channel, Direction::Forward);
    assert_eq!((forward.delivered, forward.sender_crashed), (2, 2), "the second was on the transmitter");
    let backward = world.counters(channel, Direction::Backward);
    assert_eq!((backward.delivered, backward.unheard), (2, 2), "those at 2 and 3 s");
    let told = world.take_indications();
    let carriers = said(&told, a).into_iter().filter(|said| matches!(said.1, Hear::Carrier(..)));
    assert_eq!(carriers.map(|said| said.0).collect::<Vec<_>>(), [0.0, 3.5], "it starts anew");
}

/// Returns the slots of all wrong bits when `count` frames of `length` bytes are sent without gaps.
fn wrong_slots(seed: u64, errors: Errors, length: usize, count: usize) -> Vec<usize> {
    let config = LineConfig { errors, queue_bytes: 1 << 40, mtu_bytes: 100_000, ..line(1_000_000) };
    let (mut world, a, b, _) = pair(seed, ChannelConfig::symmetric(config));
    for _ in 0..count {
        world.request(a, frame(length));
    }
    while world.step() {}
    let told = world.take_indications();
    let frames = said(&told, b).into_iter().filter_map(|said| match said.1 {
        Hear::Frame(_, bytes) => Some(bytes),
        _ => None,
    });
    let bits = |(index, byte): (usize, u8)| {
        (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| 8 * index + bit)
    };
    frames.flat_map(|frame| frame.to_vec()).map(|byte| byte ^ 0x5a).enumerate().flat_map(bits).collect()
}

#[test]
fn bits_go_wrong_at_the_rate_that_was_set() {
    let rate = 1e-4;
    let bits = 8.0 * 1000.0 * 10_000.0;
    let expected = bits * rate;
    let count = wrong_slots(1, Errors::Ber(rate), 1000, 10_000).len() as f64;
    assert!((count - expected).abs() < 4.0 * libm::sqrt(expected), "{count} of {expected}");
}

#[test]
fn every_protocol_meets_the_same_noise() {
    let bursts = GilbertElliott { good_bits_mean: 5e4, bad_bits_mean: 100.0, good_ber: 1e-6, bad_ber: 0.2 };
    for errors in [Errors::Ber(1e-4), Errors::GilbertElliott(bursts)] {
        let long = wrong_slots(3, errors, 1000, 1000);
        assert_eq!(long, wrong_slots(3, errors, 100, 10_000));
        assert!(long.len() > 100);
        assert_ne!(long, wrong_slots(4, errors, 1000, 1000));
    }
}

#[test]
fn long_frames_suffer_more() {
    for fcs in [Fcs::Crc16, Fcs::Crc32] {
        let config = LineConfig { errors: Errors::Ber(1e-4), fcs, ..line(1_000_000) };
        let survival = |length: usize| {
            let (mut world, a, _, channel) = pair(5, ChannelConfig::symmetric(config.clone()));
            for _ in 0..4000 {
                world.request(a, frame(length));
            }
            while world.step() {}
            let counters = world.counters(channel, Direction::Forward);
            assert_eq!(counters.delivered + counters.check_failed, 4000);
            assert_eq!(counters.undetected, 0);
            counters.delivered as f64 / 4000.0
        };
        for length in [100, 1400] {
            let expected = libm::pow(1.0 - 1e-4, f64::from(8 * (length as u32 + fcs.bytes())));
            let found = survival(length);
            let error = libm::sqrt(expected * (1.0 - expected) / 4000.0);
            assert!((found - expected).abs() < 4.0 * error, "{length}: {found}, expected {expected}");
        }
    }
}

#[test]
fn a_line_without_a_check_delivers_the_damage() {
    let config = LineConfig { errors: Errors::Ber(1e-3), ..line(1_000_000) };
    let (mut world, a, _, channel) = pair(5, ChannelConfig::symmetric(config));
    for _ in 0..100 {
        world.request(a, frame(1000));
    }
    while world.step() {}
    let counters = world.counters(channel, Direction::Forward);
    assert_eq!(counters.delivered, 100);
    assert!(counters.undetected > 90);
}

#[test]
fn a_delay_that_shrinks_brings_frames_closer_together() {
    let points = [(0, 1000), (10, 6000), (20, 1000)];
    let schedule = points.map(|(at, delay)| DelayPoint {
        at: Instant::from_secs(at),
        delay: longwire_proto::time::Duration::from_millis(delay),
    });
    let config = LineConfig { delay: Delay::Schedule(schedule.to_vec()), ..line(8000) };
    let (mut world, a, b, _) = pair(1, ChannelConfig::symmetric(config));
    for _ in 0..25 {
        world.request(a, frame(1000));
    }
    while world.step() {}
    let told = world.take_indications();
    let times: Vec<f64> = said(&told, b).iter().skip(1).map(|said| said.0).collect();
    assert_eq!(times[..3], [2.5, 4.0, 5.5], "a path that grows stretches time");
    assert_eq!(times[10..13], [16.5, 17.0, 17.5], "a path that shrinks compresses it");
    assert_eq!(times[22..], [24.0, 25.0, 26.0]);
}

#[test]
fn an_interface_without_a_channel_has_no_carrier() {
    let mut world: Simulation<Talk> = Simulation::new(1);
    let node = world.add_node("alone", |boot| station(&boot.name, &[4]));
    world.request(node, frame(10));
    assert_eq!(said(&world.take_indications(), node), [(0.0, Hear::Carrier(4, false))]);
    assert_eq!(world.run_while(Instant::from_secs(5), |_| true), Pause::Quiet);
}

#[test]
fn a_run_pauses_at_its_condition_or_its_limit() {
    let (mut world, a, b, _) = pair(1, ChannelConfig::symmetric(line(8000)));
    for _ in 0..3 {
        world.request(a, frame(1000));
    }
    let mut heard = 0;
    let pause = world.run_while(Instant::from_secs(9), |world| {
        while let Some(told) = world.pop_indication() {
            heard += u32::from(told.1 == b && matches!(told.2, Hear::Frame(..)));
        }
        heard < 2
    });
    assert_eq!((pause, world.now()), (Pause::Condition, Instant::from_secs(2)));
    assert_eq!(world.run_while(Instant::from_millis(2500), |_| true), Pause::Limit);
    assert_eq!(world.now(), Instant::from_millis(2500));
    assert_eq!(world.run_while(Instant::from_secs(9), |_| true), Pause::Quiet);
    assert_eq!(world.now(), Instant::from_secs(3));
}

#[test]
fn alarms_ring_after_what_happens_at_the_same_time() {
    let (mut world, a, b, _) = pair(1, ChannelConfig::symmetric(line(8000)));
    world.request(b, Ask::Alarm(Instant::from_secs(1)));
    world.request(a, frame(1000));
    world.run_until(Instant::from_secs(2));
    let heard: Vec<Hear> =
        said(&world.take_indications(), b).into_iter().skip(1).map(|said| said.1).collect();
    assert!(matches!(heard[..], [Hear::Frame(..), Hear::Rang]), "{heard:?}");
}

#[test]
fn an_announced_cut_is_heard_at_both_ends() {
    let config = LineConfig { announced: true, ..line(8000) };
    let (mut world, a, b, channel) = pair(1, ChannelConfig::symmetric(config));
    world.fault_at(Instant::from_secs(1), InjectedFault::Cut(channel));
    world.request_at(Instant::from_secs(2), a, frame(1000));
    world.fault_at(Instant::from_secs(3), InjectedFault::Heal(channel));
    world.run_until(Instant::from_secs(9));
    let told = world.take_indications();
    let heard = [(0.0, true), (1.0, false), (3.0, true)].map(|(at, up)| (at, Hear::Carrier(0, up)));
    assert_eq!(said(&told, a), heard);
    assert_eq!(said(&told, b)[..3], heard);
    assert!(matches!(said(&told, b)[3], (4.0, Hear::Frame(..))), "it waited for the line");
}

#[test]
fn a_month_of_silence_on_a_noisy_line_costs_nothing() {
    let config = LineConfig { errors: Errors::Ber(1e-3), ..line(10_000_000) };
    let (mut world, a, b, channel) = pair(1, ChannelConfig::symmetric(config));
    let month = Instant::from_secs(30 * 86_400);
    world.request_at(month, a, frame(1500));
    while world.step() {}
    assert_eq!(world.events(), 3, "the plan, the last bit leaves, the last bit arrives");
    assert!(said(&world.take_indications(), b).iter().any(|said| matches!(said.1, Hear::Frame(..))));
    assert_eq!(world.airtime(channel, Direction::Forward).idle, month.as_nanos());
}
