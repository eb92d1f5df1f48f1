//! Windows, small segments, acknowledgements, probes.

use super::harness::{World, pattern};
use crate::service::{CloseReason, StreamRequest};
use crate::tcp::config::{Nagle, Profile};
use crate::time::{Duration, Instant};

const DELAY: Duration = Duration::from_millis(100);
/// A full segment takes a microsecond.
const FAST: u64 = 12_000_000_000;

fn connected(profile: &Profile) -> World {
    let mut world = World::new(profile, FAST, DELAY);
    world.connect();
    world.run_until(Instant::from_secs(1));
    world.timeline.clear();
    world
}

#[test]
fn a_user_that_releases_nothing_stops_the_peer_and_probes_find_the_window_open_again() {
    let profile = Profile { receive_buffer_bytes: 10_000, ..Profile::rfc5681() };
    let mut world = connected(&profile);
    world.users[1].holds = true;
    world.write(0, pattern(30_000));
    world.run_until(Instant::from_secs(100));
    assert_eq!(world.received(1).len(), 10_000, "what is not released is bounded by the window");
    let probes = world.statistics(0).counters.probes;
    assert!((4..12).contains(&probes), "{probes} probes, each later than the one before");
    // The window opens, and the update is lost: the next probe gets it.
    world.fate = Box::new(|_, _| vec![]);
    world.users[1].holds = false;
    world.request(1, StreamRequest::Release(10_000));
    world.fate = super::harness::fixed(DELAY);
    world.run_until(Instant::from_secs(300));
    assert_eq!(world.received(1), pattern(30_000));
}

#[test]
fn an_opened_window_is_told_at_once() {
    let profile = Profile { receive_buffer_bytes: 10_000, ..Profile::rfc5681() };
    let mut world = connected(&profile);
    world.users[1].holds = true;
    world.write(0, pattern(30_000));
    world.run_until(Instant::from_secs(3));
    world.users[1].holds = false;
    world.request(1, StreamRequest::Release(10_000));
    world.run_until(Instant::from_secs(5));
    assert_eq!(world.received(1), pattern(30_000));
    assert!(world.statistics(0).counters.timeouts == 0);
}

#[test]
fn a_user_that_releases_byte_by_byte_gets_no_silly_segments() {
    let profile = Profile { receive_buffer_bytes: 10_000, ..Profile::rfc5681() };
    let mut world = connected(&profile);
    world.users[1].holds = true;
    world.write(0, pattern(200_000));
    let mut released = 0;
    while world.received(1).len() < 200_000 {
        assert!(world.now < Instant::from_secs(3000), "{}", world.story());
        let end = world.now + Duration::from_millis(1);
        world.run_until(end);
        let held = world.users[1].held;
        for _ in 0..held.min(40) {
            world.users[1].held -= 1;
            released += 1;
            world.request(1, StreamRequest::Release(1));
        }
    }
    assert!(released > 180_000);
    assert!(world.frames[0] < 350, "{} frames for 138 full segments", world.frames[0]);
}

#[test]
fn a_large_window_is_scaled() {
    let profile = Profile {
        receive_buffer_bytes: 1_000_000,
        send_buffer_bytes: 2_000_000,
        initial_window_segments: 10,
        ..Profile::rfc5681()
    };
    let mut world = connected(&profile);
    world.write(0, pattern(4_000_000));
    let mut most = 0;
    world.run_while(Instant::from_secs(100), |world| {
        most = most.max(world.statistics(0).flight_bytes);
        world.received(1).len() < 4_000_000
    });
    assert!((900_000..=1_000_064).contains(&most), "{most} bytes in flight");
    let unscaled = Profile { window_scaling: false, ..profile };
    let mut world = connected(&unscaled);
    world.write(0, pattern(1_000_000));
    world.run_while(Instant::from_secs(100), |world| {
        assert!(world.statistics(0).flight_bytes <= 65_535);
        world.received(1).len() < 1_000_000
    });
}

#[test]
fn every_second_segment_is_acknowledged_at_once_and_a_lone_one_after_the_delay() {
    let mut world = connected(&Profile { initial_window_segments: 4, ..Profile::rfc5681() });
    let segment = world.statistics(0).segment_bytes as usize;
    world.write(0, pattern(3 * segment));
    world.run_until(Instant::from_secs(2));
    let story = [
        format!("  1.000 -> ACK 1+{segment} ack 1"),
        format!("  1.000 -> ACK {}+{segment} ack 1", 1 + segment),
        format!("  1.000 -> PSH|ACK {}+{segment} ack 1", 1 + 2 * segment),
        format!("  1.100 <- ACK 1+0 ack {}", 1 + 2 * segment),
        format!("  1.300 <- ACK 1+0 ack {}", 1 + 3 * segment),
    ];
    assert_eq!(world.timeline, story);
}

#[test]
fn quick_acknowledgements_come_first() {
    let quick = Profile { quick_acks: 3, initial_window_segments: 4, ..Profile::rfc5681() };
    let mut world = connected(&quick);
    world.write(0, pattern(4 * world.statistics(0).segment_bytes as usize));
    world.run_until(Instant::from_secs(2));
    let answers: Vec<_> = world.timeline.iter().filter(|line| line.contains("<-")).collect();
    assert_eq!(answers.len(), 4, "{answers:?}");
    assert!(answers[3].starts_with("  1.300"), "{answers:?}");
}

#[test]
fn the_wait_for_an_acknowledgement_doubles_in_vain_and_starts_anew_where_the_user_answers() {
    for (answers, waits_ms) in [(false, [40, 80, 160, 200]), (true, [40, 1, 80, 40])] {
        let mut world = connected(&Profile { quick_acks: 0, nagle: Nagle::Off, ..Profile::linux_6() });
        for (round, wait_ms) in waits_ms.into_iter().enumerate() {
            let arrival = world.now + DELAY;
            world.write(0, pattern(10));
            world.run_until(arrival + Duration::from_millis(1));
            world.timeline.clear();
            if answers && round == 1 {
                world.write(1, pattern(10));
            }
            world.run_until(arrival + Duration::from_secs(1));
            let acknowledged = arrival + Duration::from_millis(wait_ms);
            let expected = format!("{:7.3} <-", acknowledged.as_secs_f64());
            let line = world.timeline.iter().find(|line| line.contains("<-"));
            assert!(line.is_some_and(|line| line.starts_with(&expected)), "{round}: {expected} {line:?}");
        }
    }
}

#[test]
fn small_writes_wait_by_nagle_only() {
    for (nagle, frames) in [(Nagle::Off, 3), (Nagle::Rfc9293, 2), (Nagle::Minshall, 2)] {
        let mut world = connected(&Profile { nagle, ..Profile::rfc5681() });
        for _ in 0..3 {
            world.write(0, pattern(10));
            // Each write is sent before the next one.
            let later = world.now + Duration::from_millis(1);
            world.run_until(later);
        }
        world.run_until(Instant::from_secs(3));
        let sent = world.timeline.iter().filter(|line| line.contains("->")).count();
        assert_eq!(sent, frames, "{nagle:?}: {:?}", world.timeline);
        assert_eq!(world.received(1).len(), 30);
    }
}

#[test]
fn minshall_lets_the_tail_of_a_large_write_go() {
    for (nagle, at) in [(Nagle::Rfc9293, 1.3), (Nagle::Minshall, 1.1)] {
        let mut world = connected(&Profile { nagle, ..Profile::linux_6() });
        world.write(0, pattern(world.statistics(0).segment_bytes as usize + 100));
        world.run_until(Instant::from_secs(3));
        let seconds = world.users[1].received_at.as_secs_f64();
        assert!((seconds - at).abs() < 0.001, "{nagle:?}: {seconds}");
    }
}

#[test]
fn a_silent_peer_is_probed_and_given_up() {
    let profile = Profile {
        keep_alive_idle: Some(Duration::from_secs(60)),
        keep_alive_interval: Duration::from_secs(10),
        keep_alive_probes: 3,
        ..Profile::rfc5681()
    };
    let mut world = connected(&profile);
    world.run_until(Instant::from_secs(1000));
    assert!(world.users[0].closed.is_none(), "probes are answered");
    assert!(world.statistics(0).counters.probes >= 7);
    world.fate = Box::new(|_, _| vec![]);
    world.run_until(Instant::from_secs(1200));
    let closed = world.users.each_ref().map(|user| user.closed.map(|(_, reason)| reason));
    assert_eq!(closed, [Some(CloseReason::TimedOut); 2]);
}

/// RFC 9293 3.8.4: a connection on which nothing has been received for the interval is probed, and not earlier.
#[test]
fn a_silent_peer_is_asked_when_it_has_been_silent_for_as_long_as_is_set() {
    let profile = Profile { keep_alive_idle: Some(Duration::from_secs(60)), ..Profile::rfc5681() };
    let mut world = connected(&profile);
    // The last segment received is the answer to the SYN, at 0.2 s.
    for (millis, probes) in [(60_199, 0), (60_201, 1), (60_300, 1)] {
        world.run_until(Instant::from_millis(millis));
        assert_eq!(world.statistics(0).counters.probes, probes, "at {millis} ms");
    }
}

#[test]
fn an_idle_connection_asks_for_no_wake_up() {
    let mut world = connected(&Profile::rfc5681());
    world.write(0, pattern(1000));
    world.run_until(Instant::from_secs(10));
    assert!(!world.step(), "nothing is due");
    assert_eq!(world.statistics(0).flight_bytes, 0);
}

#[test]
fn shares_tell_what_every_byte_was_for() {
    let mut world = World::new(&Profile::linux_6(), 1_000_000, DELAY);
    world.users[0].close_when_written = true;
    world.users[0].to_write.push_back(pattern(100_000));
    world.connect();
    world.run_to_quiet(Instant::from_secs(100));
    let [there, back] = world.shares;
    assert_eq!((there.payload, there.repeated, back.payload), (100_000, 0, 0));
    // A SYN with all its options; the final acknowledgement with timestamps.
    assert_eq!((there.control, there.acknowledgement), (60, 52));
    assert_eq!(back.control, 60 + 52, "the SYN and the FIN");
    let headers = world.bytes[0] - u64::from(there.payload + there.control + there.acknowledgement);
    assert_eq!(headers % 52, 0);
}
