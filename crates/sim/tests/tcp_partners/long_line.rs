//! Time of the Linux kernel for a long line in real time, compared with the profile of the kernel in this project. To
//! be run by hand: `cargo test -p longwire-sim --test tcp_partners -- --ignored --nocapture long_line`.

#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "the kernel lives in real time")]

use crate::kernel::{Far, own_network};
use crate::near::{Near, pattern};
use bytes::Bytes;
use longwire_proto::rng::Rng;
use longwire_proto::tcp::config::Profile;
use longwire_proto::time::{Duration, Instant};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::Instant as Clock;

const FILE_BYTES: usize = 1_000_000;
const RATE_BPS: u64 = 115_200;
const WINDOW_BYTES: u32 = 53_000;

/// Line with a rate, a delay and bit errors in each direction.
struct Line {
    one_way: Duration,
    bit_error_rate: f64,
    rng: Rng,
    busy_until: [Instant; 2],
    under_way: BTreeMap<(Instant, u64), (usize, Bytes)>,
    count: u64,
}

impl Line {
    /// Accepts a frame for a side; it waits for earlier frames.
    fn take(&mut self, now: Instant, side: usize, frame: Bytes) {
        let airtime = Duration::from_nanos(frame.len() as u64 * 8 * 1_000_000_000 / RATE_BPS);
        let sent = self.busy_until[side].max(now) + airtime;
        self.busy_until[side] = sent;
        if self.rng.geometric(self.bit_error_rate) >= 8 * frame.len() as u64 {
            self.count += 1;
            self.under_way.insert((sent + self.one_way, self.count), (side, frame));
        }
    }

    fn arrived(&mut self, now: Instant) -> Option<(usize, Bytes)> {
        let due = self.under_way.first_key_value().is_some_and(|((at, _), _)| *at <= now);
        due.then(|| self.under_way.pop_first().expect("there is one").1)
    }
}

/// Returns the time from the connection request of the kernel to the last byte at our side, seconds.
fn kernel_sends(mut device: File, one_way: Duration, bit_error_rate: f64, seed: u64) -> f64 {
    let profile = Profile { receive_buffer_bytes: WINDOW_BYTES, ..Profile::linux_6() };
    let mut near = Near::new(profile, Vec::new(), true);
    let mut far = Far::new(pattern(FILE_BYTES), false);
    let rng = Rng::new(seed).fork("bits");
    let mut line = Line {
        one_way,
        bit_error_rate,
        rng,
        busy_until: [Instant::ZERO; 2],
        under_way: BTreeMap::new(),
        count: 0,
    };
    let start = Clock::now();
    far.call();
    let mut buffer = [0; 2048];
    while !near.peer_closed {
        let now = Instant::from_nanos(start.elapsed().as_nanos() as u64);
        assert!(now < Instant::from_secs(1000), "not done in time");
        while let Some((side, frame)) = line.arrived(now) {
            match side {
                0 => near.hear(now, frame),
                _ => assert_eq!(device.write(&frame).expect("the kernel takes packets"), frame.len()),
            }
        }
        near.wake(now);
        for frame in near.poll(now) {
            line.take(now, 1, frame);
        }
        loop {
            match device.read(&mut buffer) {
                Ok(length) => line.take(now, 0, Bytes::copy_from_slice(&buffer[..length])),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => panic!("the TUN device: {error}"),
            }
        }
        far.act();
        let frame = line.under_way.keys().next().map(|(at, _)| *at);
        let next = [frame, near.next()].into_iter().flatten().min().unwrap_or(now + Duration::from_secs(1));
        let mut fds = vec![PollFd::new(device.as_fd(), PollFlags::POLLIN)];
        if let Some(stream) = &far.stream {
            fds.push(PollFd::new(stream.as_fd(), PollFlags::POLLIN));
        }
        let timeout = u16::try_from(next.saturating_since(now).as_millis() + 1).unwrap_or(u16::MAX);
        poll(&mut fds, PollTimeout::from(timeout)).expect("poll waits");
    }
    assert!(near.received == pattern(FILE_BYTES));
    start.elapsed().as_secs_f64()
}

#[test]
#[ignore = "takes minutes of real time"]
fn the_kernel_over_a_long_line() {
    for (one_way_ms, bit_error_rate, runs) in
        [(1280, 0.0, 2), (2000, 0.0, 2), (1280, 1e-6, 48), (1280, 1e-5, 24)]
    {
        let threads: Vec<_> = (0..runs)
            .map(|seed| {
                std::thread::spawn(move || {
                    let device = own_network().expect("a network namespace and a TUN device");
                    kernel_sends(device, Duration::from_millis(one_way_ms), bit_error_rate, seed)
                })
            })
            .collect();
        let mut seconds: Vec<_> =
            threads.into_iter().map(|thread| thread.join().expect("it arrives")).collect();
        seconds.sort_by(f64::total_cmp);
        let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
        println!(
            "the kernel, {one_way_ms} ms one way, {bit_error_rate:e}: {mean:.1} s on average of {seconds:.1?}"
        );
    }
}
