//! Channels, case by case.

mod common;
use common::*;
use longwire_proto::service::Shares;
use longwire_proto::time::Instant;
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
