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

/// Mean of a Linux 6.18 kernel (`tcp_rmem` at most 87,380 bytes) over the same line with bit errors.
struct Measured {
    one_way_ms: u64,
    bit_error_rate: f64,
    seconds: f64,
    standard_error: f64,
    runs: u32,
}

const fn measured(
    one_way_ms: u64,
    bit_error_rate: f64,
    seconds: f64,
    standard_error: f64,
    runs: u32,
) -> Measured {
    Measured { one_way_ms, bit_error_rate, seconds, standard_error, runs }
}

/// With reno.
const RENO: [Measured; 4] = [
    measured(1280, 1e-6, 151.5, 2.3, 239),
    measured(1280, 1e-5, 607.2, 5.6, 55),
    measured(2000, 1e-6, 227.2, 6.0, 109),
    measured(2000, 1e-5, 905.6, 9.3, 48),
];

/// With cubic.
const CUBIC: [Measured; 4] = [
    measured(1280, 1e-6, 95.1, 0.7, 60),
    measured(1280, 1e-5, 295.7, 8.6, 40),
    measured(2000, 1e-6, 122.4, 1.7, 40),
    measured(2000, 1e-5, 436.2, 14.3, 30),
];

/// Compares the mean of these runs with the kernel's.
fn compare(profile: &Profile, kernel: &Measured, runs: u64) {
    let one_way = Duration::from_millis(kernel.one_way_ms);
    let total: f64 = (0..runs).map(|seed| transfer(profile, one_way, kernel.bit_error_rate, seed)).sum();
    let mean = total / runs as f64;
    let deviation = mean / kernel.seconds - 1.0;
    let told = format!(
        "{} ms one way, {:e}: {mean:.1} s on average of {runs} runs, the kernel {} +- {} s of {}, {:+.1} %",
        kernel.one_way_ms,
        kernel.bit_error_rate,
        kernel.seconds,
        kernel.standard_error,
        kernel.runs,
        deviation * 100.0
    );
    println!("{told}");
    assert!(deviation.abs() < 0.05, "{told}");
}

/// The device of the kernel takes a whole window at once, and an interface here takes one segment after another: segments
/// that queue in the kernel's device are lost in the recovery that was on when they were sent, and here in one of their own.
/// With the same segments lost, 34 of 48 runs at 1.28 s and 1e-6 differ by less than 2 %, and the others by up to 16 %.
#[test]
fn bit_errors_cost_linux_6_what_they_cost_the_kernel() {
    let profile = Profile { receive_buffer_bytes: 53_000, ..Profile::linux_6() };
    for kernel in &RENO {
        compare(&profile, kernel, 400);
    }
}

#[test]
fn bit_errors_cost_cubic_what_they_cost_that_of_the_kernel() {
    let profile = Profile { receive_buffer_bytes: 53_000, ..Profile::linux_6_cubic() };
    for kernel in &CUBIC {
        compare(&profile, kernel, 200);
    }
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
