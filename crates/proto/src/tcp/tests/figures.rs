//! Comparison with the times of a Linux kernel (6.x, reno, an effective receive window of 53,000 bytes) for 1,000,000
//! bytes over one hop at 115,200 bit/s both ways, without errors.

use super::harness::{World, pattern};
use crate::rng::Rng;
use crate::tcp::config::Profile;
use crate::time::{Duration, Instant};

const FILE_BYTES: usize = 1_000_000;

/// Seconds from the connection request to the last byte; frames are lost at the rate that this bit-error rate causes.
fn transfer(profile: &Profile, one_way: Duration, bit_error_rate: f64, seed: u64) -> f64 {
    let mut world = World::of([profile.clone(), profile.clone()], 115_200, one_way, seed);
    let mut rng = Rng::new(seed).fork("bits");
    world.fate = Box::new(move |_, packet| {
        let frame = 40 + packet.segment.options.length() + packet.segment.payload.len();
        let damaged = rng.geometric(bit_error_rate) < 8 * frame as u64;
        if damaged { vec![] } else { vec![one_way] }
    });
    world.users[0].close_when_written = true;
    world.users[0].to_write.push_back(pattern(FILE_BYTES));
    world.connect();
    world.run_while(Instant::from_secs(20_000), |world| !world.users[1].peer_closed);
    assert_eq!(world.received(1), pattern(FILE_BYTES));
    world.users[1].received_at.as_secs_f64()
}

#[test]
fn linux_6_takes_as_long_as_the_kernel() {
    let profile = Profile { receive_buffer_bytes: 53_000, ..Profile::linux_6() };
    for (one_way_ms, kernel) in [(1280, 78.1), (2000, 91.4), (3500, 155.9), (5000, 220.4)] {
        let ours = transfer(&profile, Duration::from_millis(one_way_ms), 0.0, 1);
        let deviation = ours / kernel - 1.0;
        println!("{one_way_ms} ms one way: {ours:.1} s, the kernel {kernel} s, {:+.1} %", deviation * 100.0);
        assert!(deviation.abs() < 0.05, "{one_way_ms} ms one way: {ours:.1} s, the kernel {kernel} s");
    }
}

#[test]
fn bit_errors_cost_what_they_cost_others() {
    // Mean of 48 runs of the kernel: 154.4 s (104 to 234 s), measured by `tcp_partners::long_line`.
    let profile = Profile { receive_buffer_bytes: 53_000, ..Profile::linux_6() };
    let one_way = Duration::from_millis(1280);
    let runs = 200;
    let total: f64 = (0..runs).map(|seed| transfer(&profile, one_way, 1e-6, seed)).sum();
    let mean = total / runs as f64;
    println!("1280 ms one way, 1e-6: {mean:.1} s on average of {runs} runs");
    assert!((145.0..165.0).contains(&mean), "{mean:.1} s");
}

#[test]
fn every_profile_takes_longer_with_delay_and_with_errors() {
    for name in Profile::NAMES {
        let profile = Profile::named(name).expect("it is a name");
        let mean = |one_way_ms, rate| {
            let one_way = Duration::from_millis(one_way_ms);
            (0..6).map(|seed| transfer(&profile, one_way, rate, seed)).sum::<f64>() / 6.0
        };
        let table = [(500, 0.0), (2000, 0.0), (5000, 0.0), (2000, 1e-6), (2000, 1e-5)];
        let seconds = table.map(|(delay, rate)| mean(delay, rate));
        println!("{name:>10}: {seconds:7.1?}");
        assert!(seconds[0] < seconds[1] && seconds[1] < seconds[2], "{name}: {seconds:?}");
        assert!(seconds[1] < seconds[3] && seconds[3] < seconds[4], "{name}: {seconds:?}");
    }
}
