//! Single rules of the standards, each in a situation that only this rule decides.

use super::harness::{World, fixed, pattern};
use crate::tcp::config::{IdleRestart, Profile};
use crate::tcp::receive::Receiver;
use crate::tcp::wire::Packet;
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

/// A profile without SACK and timestamps: only sequence numbers show what has arrived. Segments of 1,000 bytes.
fn bare() -> Profile {
    Profile {
        sack: false,
        timestamps: false,
        maximum_segment_bytes: 1000,
        initial_window_segments: 10,
        idle_restart: IdleRestart::Off,
        ..Profile::rfc5681()
    }
}

/// The last acknowledgement of the second side, to be delivered again.
fn last_acknowledgement(world: &World) -> Packet {
    let packet = world.last_packet(1).clone();
    assert!(packet.segment.payload.is_empty(), "it only acknowledges");
    packet
}

/// RFC 6582 3.2 step 2: duplicate acknowledgements of exactly the data sent when the timer expired may be caused by
/// unnecessary retransmissions; only beyond these data do three of them indicate a loss.
#[test]
fn duplicates_of_all_that_was_sent_before_a_timeout_bring_no_fast_retransmit() {
    let mut world = connected(&bare());
    world.fate = Box::new(|_, _| vec![]);
    world.write(0, pattern(4000));
    world.run_while(Instant::from_secs(60), |world| world.statistics(0).counters.timeouts == 0);
    world.fate = fixed(DELAY);
    world.run_while(Instant::from_secs(60), |world| world.statistics(0).acknowledged_bytes < 4000);
    world.run_until(world.now + Duration::from_secs(1));
    assert_eq!(world.statistics(0).flight_bytes, 0);
    let duplicate = last_acknowledgement(&world);
    let three_duplicates = |world: &mut World, packet: &Packet| {
        let before = world.statistics(0).counters;
        (0..3).for_each(|_| world.deliver(0, packet));
        let after = world.statistics(0).counters;
        assert_eq!(after.duplicate_acknowledgements - before.duplicate_acknowledgements, 3);
        after.fast_recoveries - before.fast_recoveries
    };
    world.write(0, pattern(5000));
    assert!(world.statistics(0).flight_bytes > 0, "new data are on their way");
    assert_eq!(three_duplicates(&mut world, &duplicate), 0, "{}", world.story());
    // An acknowledgement beyond these data makes duplicates count again.
    world.run_while(Instant::from_secs(60), |world| world.statistics(0).acknowledged_bytes < 9000);
    let duplicate = last_acknowledgement(&world);
    world.write(0, pattern(5000));
    assert_eq!(three_duplicates(&mut world, &duplicate), 1, "{}", world.story());
}

/// Karn's algorithm (RFC 6298 3): an acknowledgement that covers a retransmitted segment gives no sample, even if it
/// also covers segments that were sent once: they waited at the receiver for the missing one.
#[test]
fn an_acknowledgement_that_covers_a_repeated_segment_gives_no_sample() {
    let mut world = connected(&bare());
    let mut lose = true;
    world.fate = Box::new(move |_, packet| {
        let hit = packet.segment.payload.len() == 1000 && core::mem::take(&mut lose);
        if hit { vec![] } else { vec![DELAY] }
    });
    let round_trip = |world: &World| {
        let statistics = world.statistics(0);
        (statistics.smoothed_round_trip, statistics.round_trip_variance)
    };
    let before = round_trip(&world);
    world.write(0, pattern(5000));
    world.run_while(Instant::from_secs(60), |world| world.statistics(0).acknowledged_bytes < 5000);
    assert_eq!(world.statistics(0).counters.retransmissions, 1);
    assert_eq!(round_trip(&world), before, "{}", world.story());
    // A segment that is sent once and acknowledged alone gives a sample.
    world.fate = fixed(DELAY * 2);
    world.write(0, pattern(1000));
    world.run_while(Instant::from_secs(60), |world| world.statistics(0).acknowledged_bytes < 6000);
    assert!(round_trip(&world) != before);
}

/// The four cases of RFC 9293 3.10.7.4, at both edges of the window and just beyond them.
#[test]
fn a_segment_is_acceptable_from_the_left_edge_to_just_before_the_right_one() {
    let mut receiver = Receiver::new(100, None, 64);
    receiver.begin();
    let accepted = |receiver: &Receiver| -> Vec<(i64, u32)> {
        let cases =
            [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (100, 0), (100, 1), (100, 9), (101, 0), (101, 1)];
        cases.into_iter().filter(|&(start, length)| receiver.accepts(start, length)).collect()
    };
    assert_eq!(accepted(&receiver), [(0, 2), (1, 0), (1, 1), (100, 0), (100, 1), (100, 9)]);
    // Closed window: only an empty segment, and only at the next expected sequence number.
    receiver.take(1, pattern(100), |_| {});
    assert_eq!(receiver.announced(), 0);
    assert_eq!(accepted(&receiver), [(101, 0)]);
}

/// A segment that begins at the right edge is answered and then ignored: neither its data nor its acknowledgement
/// count.
#[test]
fn a_segment_at_the_right_edge_is_not_heard() {
    let profile = Profile { receive_buffer_bytes: 5000, ..bare() };
    let mut world = connected(&profile);
    world.write(0, pattern(1000));
    world.run_until(Instant::from_secs(3));
    let last = world.last_packet(0).clone();
    let (window, next) = (5000, last.segment.sequence.wrapping_add(1000));
    let at = |offset: u32| {
        let mut packet = last.clone();
        packet.segment.sequence = next.wrapping_add(offset);
        packet.segment.payload = pattern(10);
        packet
    };
    let unacceptable = |world: &World| world.statistics(1).counters.unacceptable;
    world.deliver(1, &at(window - 1));
    assert_eq!(unacceptable(&world), 0, "its first byte lies within");
    world.deliver(1, &at(window));
    assert_eq!(unacceptable(&world), 1);
}

/// Sender's half of the avoidance of silly windows (RFC 9293 3.8.6.2.1): a small opening of the window is not used
/// while it is neither a full segment nor half of the largest window, and more data wait.
#[test]
fn a_sliver_of_window_is_not_filled() {
    let profile = Profile { receive_buffer_bytes: 4000, window_scaling: false, ..bare() };
    let mut world = connected(&profile);
    world.users[1].holds = true;
    world.write(0, pattern(20_000));
    world.run_while(Instant::from_secs(60), |world| world.received(1).len() < 4000);
    world.run_until(world.now + DELAY * 2);
    assert_eq!(world.statistics(0).flight_bytes, 0, "the window is closed");
    let mut update = last_acknowledgement(&world);
    for (window, sent) in [(1, 0), (400, 0), (999, 0), (1000, 1000)] {
        update.segment.window = window;
        world.deliver(0, &update);
        assert_eq!(world.statistics(0).flight_bytes, sent, "a window of {window} bytes");
    }
}

/// Receiver's half (RFC 9293 3.8.6.2.2): the right edge moves by at least a full segment or half of the buffer.
#[test]
fn the_window_opens_by_a_segment_or_half_the_buffer() {
    for (buffer, segment, step) in [(4000, 1000, 1000), (1000, 1000, 500)] {
        let mut receiver = Receiver::new(buffer, None, 64);
        receiver.begin();
        receiver.take(1, pattern(buffer as usize), |_| {});
        assert_eq!(receiver.announce(0, segment), 0);
        receiver.release(step - 1);
        assert!(!receiver.wants_update(segment), "{buffer}: {} bytes are free", step - 1);
        assert_eq!(receiver.announce(0, segment), 0, "{buffer}");
        receiver.release(1);
        assert!(receiver.wants_update(segment), "{buffer}: {step} bytes are free");
        assert_eq!(u64::from(receiver.announce(0, segment)), step, "{buffer}");
    }
}

/// An unnecessary reduction is undone completely (RFC 3522), including the threshold: otherwise the sender would
/// continue in congestion avoidance.
#[test]
fn a_reduction_that_is_taken_back_leaves_no_threshold_behind() {
    let profile = Profile {
        undo_by_timestamps: true,
        idle_restart: IdleRestart::Off,
        initial_window_segments: 20,
        ..Profile::linux_6()
    };
    let mut world = World::new(&profile, 1_000_000, DELAY);
    world.connect();
    world.write(0, pattern(100_000));
    world.run_until(Instant::from_secs(10));
    let before = world.statistics(0);
    assert_eq!(before.slow_start_threshold_bytes, None, "nothing was lost");
    // From now on every round trip is longer than the retransmission timeout.
    world.fate = fixed(DELAY + Duration::from_secs(2));
    world.write(0, pattern(10_000));
    world.run_while(Instant::from_secs(60), |world| world.statistics(0).counters.timeouts == 0);
    assert!(world.statistics(0).slow_start_threshold_bytes.is_some(), "the timer has brought it down");
    world.run_until(Instant::from_secs(60));
    let after = world.statistics(0);
    assert_eq!((after.counters.undone, after.slow_start_threshold_bytes), (1, None), "{}", world.story());
    assert!(after.congestion_window_bytes >= before.congestion_window_bytes);
}
