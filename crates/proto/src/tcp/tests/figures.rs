//! Against what a Linux kernel needs (6.x, reno, an effective receive window of 53,000 bytes) for 1,000,000 bytes
//! over one hop at 115,200 bit/s both ways, without errors.

use super::harness::{World, pattern};
use crate::tcp::config::Profile;
use crate::time::{Duration, Instant};

const FILE_BYTES: usize = 1_000_000;

/// Seconds from the call to the last byte.
pub(super) fn transfer(profile: &Profile, one_way: Duration) -> f64 {
    let mut world = World::new(profile, 115_200, one_way);
    world.users[0].close_when_written = true;
    world.users[0].to_write.push_back(pattern(FILE_BYTES));
    world.connect();
    world.run_while(Instant::from_secs(2000), |world| !world.users[1].peer_closed);
    assert_eq!(world.received(1), pattern(FILE_BYTES));
    world.users[1].received_at.as_secs_f64()
}

#[test]
fn linux_6_takes_as_long_as_the_kernel() {
    let profile = Profile { receive_buffer_bytes: 53_000, ..Profile::linux_6() };
    for (one_way_ms, kernel) in [(1280, 78.1), (2000, 91.4), (3500, 155.9), (5000, 220.4)] {
        let ours = transfer(&profile, Duration::from_millis(one_way_ms));
        let deviation = ours / kernel - 1.0;
        println!("{one_way_ms} ms one way: {ours:.1} s, the kernel {kernel} s, {:+.1} %", deviation * 100.0);
        assert!(deviation.abs() < 0.05, "{one_way_ms} ms one way: {ours:.1} s, the kernel {kernel} s");
    }
}
