//! Losses and their recovery.

use super::harness::{Statistics, World, fixed, pattern};
use crate::service::{CloseReason, StreamRequest};
use crate::tcp::config::{IdleRestart, Profile, Recovery, Reduction};
use crate::tcp::send::{Evidence, Scoreboard};
use crate::time::{Duration, Instant};

const DELAY: Duration = Duration::from_millis(400);

/// A transfer of `segments` segments from the first side to the second; the first copies of those in `lost` are lost.
fn transfer(profile: &Profile, segments: usize, lost: &[usize]) -> World {
    let lost: Vec<_> = lost.iter().map(|segment| (*segment, 1)).collect();
    transfer_losing(profile, segments, &lost)
}

/// As [`transfer`], with pairs of a segment (from 0) and the number of the lost copy (from 1).
fn transfer_losing(profile: &Profile, segments: usize, lost: &[(usize, usize)]) -> World {
    let mut world = World::new(profile, 1_000_000, DELAY);
    let lost = lost.to_vec();
    let mut copies: Vec<(u32, usize)> = Vec::new();
    world.fate = Box::new(move |side, packet| {
        if side == 1 || packet.segment.payload.is_empty() {
            return vec![DELAY];
        }
        let number = packet.segment.sequence;
        let segment = copies.iter().position(|(known, _)| *known == number).unwrap_or_else(|| {
            copies.push((number, 0));
            copies.len() - 1
        });
        copies[segment].1 += 1;
        if lost.contains(&(segment, copies[segment].1)) { vec![] } else { vec![DELAY] }
    });
    world.connect();
    world.run_while(Instant::from_secs(2), |world| world.users[0].connected_at.is_none());
    let bytes = world.statistics(0).segment_bytes as usize * segments;
    world.write(0, pattern(bytes));
    world.run_while(Instant::from_secs(300), |world| world.users[1].received.len() < bytes);
    world.run_until(world.now + DELAY + DELAY);
    assert_eq!(world.received(1), pattern(bytes));
    world
}

/// A profile whose initial window holds all data, without retransmission on suspicion, so that nothing else affects the
/// tests.
fn wide(profile: Profile) -> Profile {
    Profile { initial_window_segments: 20, repeat_on_suspicion: false, ..profile }
}

#[test]
fn three_duplicates_bring_a_lost_segment_back() {
    for profile in [Profile::rfc5681(), Profile::linux_2_4(), Profile::ns3_2010(), Profile::linux_6()] {
        let world = transfer(&wide(profile.clone()), 20, &[3]);
        let counters = world.statistics(0).counters;
        assert_eq!(
            (counters.retransmissions, counters.timeouts, counters.fast_recoveries),
            (1, 0, 1),
            "{profile:?}"
        );
        let again: Vec<_> = world.timeline.iter().filter(|line| line.ends_with("again")).collect();
        assert_eq!(again.len(), 1);
    }
}

#[test]
fn the_story_of_a_hole() {
    let profile = Profile { timestamps: false, maximum_segment_bytes: 1000, ..wide(Profile::rfc5681()) };
    let mut world = World::new(&profile, 8_000_000_000, DELAY);
    let mut lose = true;
    world.fate = Box::new(move |_, packet| {
        let hit = packet.segment.payload.len() == 1000 && core::mem::take(&mut lose);
        if hit { vec![] } else { vec![DELAY] }
    });
    world.connect();
    world.write(0, pattern(5000));
    world.run_until(Instant::from_secs(3));
    let story = [
        "  0.800 -> ACK 1+1000 ack 1",
        "  0.800 -> ACK 1001+1000 ack 1",
        "  0.800 -> ACK 2001+1000 ack 1",
        "  0.800 -> ACK 3001+1000 ack 1",
        "  0.800 -> PSH|ACK 4001+1000 ack 1",
        "  1.200 <- ACK 1+0 ack 1 [1001-2001]",
        "  1.200 <- ACK 1+0 ack 1 [1001-3001]",
        "  1.200 <- ACK 1+0 ack 1 [1001-4001]",
        "  1.200 <- ACK 1+0 ack 1 [1001-5001]",
        "  1.600 -> ACK 1+1000 ack 1 again",
        "  2.000 <- ACK 1+0 ack 5001",
    ];
    assert_eq!(world.timeline[2..], story, "{}", world.story());
}

#[test]
fn many_holes_in_one_window_take_one_round_trip_with_sack_and_one_each_without() {
    let lost = [2, 5, 8, 11];
    let with = transfer(&wide(Profile::rfc5681()), 20, &lost);
    let without = transfer(&wide(Profile { sack: false, ..Profile::rfc5681() }), 20, &lost);
    let fack = transfer(
        &wide(Profile { recovery: Recovery::Fack, reduction: Reduction::RateHalving, ..Profile::rfc5681() }),
        20,
        &lost,
    );
    for world in [&with, &without, &fack] {
        let counters = world.statistics(0).counters;
        assert_eq!((counters.retransmissions, counters.timeouts, counters.fast_recoveries), (4, 0, 1));
    }
    let seconds = |world: &World| world.users[1].received_at.as_secs_f64();
    assert!(seconds(&with) < 2.8, "{}", seconds(&with));
    assert!(seconds(&fack) < 2.8, "{}", seconds(&fack));
    assert!(seconds(&without) > 4.4, "{}", seconds(&without));
}

#[test]
fn a_lost_repetition_needs_the_timer_unless_it_is_looked_for() {
    let lost = [(8, 1), (8, 2)];
    let profile = wide(Profile::rfc5681());
    let plain = transfer_losing(&profile, 40, &lost);
    assert_eq!(plain.statistics(0).counters.timeouts, 1);
    let watchful = transfer_losing(&Profile { find_lost_retransmissions: true, ..profile }, 40, &lost);
    let counters = watchful.statistics(0).counters;
    assert_eq!((counters.timeouts, counters.retransmissions), (0, 2));
}

#[test]
fn a_lost_tail_waits_for_the_timer_unless_it_is_probed() {
    let profile = wide(Profile::linux_6());
    let waits = transfer(&Profile { tail_loss_probe: false, ..profile.clone() }, 10, &[9]);
    let counters = waits.statistics(0).counters;
    assert_eq!((counters.timeouts, counters.retransmissions), (1, 1));
    let counters = transfer(&profile, 10, &[9]).statistics(0).counters;
    assert_eq!((counters.timeouts, counters.retransmissions), (0, 1));
}

#[test]
fn a_lost_tail_is_rescued_in_a_recovery_that_is_on_anyway() {
    let profile = wide(Profile::rfc5681());
    let patient = transfer(&profile, 15, &[3, 14]).statistics(0).counters;
    assert_eq!((patient.timeouts, patient.retransmissions), (1, 2));
    let rescued = transfer(&Profile { repeat_on_suspicion: true, ..profile }, 15, &[3, 14]);
    let counters = rescued.statistics(0).counters;
    assert_eq!((counters.timeouts, counters.retransmissions), (0, 2), "{}", rescued.story());
}

#[test]
fn limited_transmit_makes_the_duplicates_that_a_small_window_lacks() {
    let profile =
        Profile { initial_window_segments: 3, idle_restart: IdleRestart::Off, ..Profile::rfc5681() };
    let with = transfer(&profile, 9, &[0]);
    assert_eq!(with.statistics(0).counters.timeouts, 0, "{}", with.story());
    let without = transfer(&Profile { limited_transmit: false, ..profile }, 9, &[0]);
    assert_eq!(without.statistics(0).counters.timeouts, 1, "{}", without.story());
}

#[test]
fn a_timeout_for_nothing_is_taken_back_where_timestamps_show_it() {
    for (undo, expected) in [(true, 1), (false, 0)] {
        let profile = Profile {
            undo_by_timestamps: undo,
            forward_rto: false,
            duplicate_sack: false,
            idle_restart: IdleRestart::Off,
            ..wide(Profile::linux_6())
        };
        let mut world = World::new(&profile, 1_000_000, DELAY);
        world.connect();
        world.write(0, pattern(100_000));
        world.run_until(Instant::from_secs(10));
        // From now on every round trip takes four seconds longer.
        world.fate = fixed(DELAY + Duration::from_secs(2));
        let before = world.statistics(0).congestion_window_bytes;
        world.write(0, pattern(10_000));
        world.run_until(Instant::from_secs(60));
        let statistics = world.statistics(0);
        assert!(statistics.counters.timeouts > 0);
        assert_eq!(statistics.counters.undone, expected, "{}", world.story());
        if undo {
            assert!(statistics.congestion_window_bytes >= before);
        } else {
            assert!(statistics.congestion_window_bytes < before);
        }
    }
}

#[test]
fn retries_run_out() {
    let count = Profile { retries: 4, ..Profile::rfc5681() };
    let time = Profile { retries: 4, ..Profile::linux_6() };
    for (profile, patience) in [(count, 31.0..40.0), (time, 6.2..20.0)] {
        let mut world = World::new(&profile, 1_000_000, Duration::from_millis(10));
        world.connect();
        world.run_until(Instant::from_secs(1));
        world.fate = Box::new(|_, _| vec![]);
        world.write(0, pattern(100));
        world.run_while(Instant::from_secs(300), |world| world.users[0].closed.is_none());
        let (at, reason) = world.users[0].closed.expect("it is over");
        assert_eq!(reason, CloseReason::TimedOut);
        assert!(patience.contains(&(at.as_secs_f64() - 1.0)), "{} s:\n{}", at.as_secs_f64(), world.story());
    }
}

#[test]
fn retries_run_out_on_an_interface_without_room() {
    let count = Profile { retries: 4, ..Profile::rfc5681() };
    let time = Profile { retries: 4, ..Profile::linux_6() };
    for (profile, patience) in [(count, 31.0..40.0), (time, 6.2..20.0)] {
        for ends in [true, false] {
            let mut world = World::new(&profile, 1_000_000, Duration::from_millis(10));
            world.connect();
            world.run_until(Instant::from_secs(1));
            // Segments that have left are lost, and those to be repeated wait.
            world.fate = Box::new(|_, _| vec![]);
            world.write(0, pattern(100));
            world.jammed[0] = true;
            let limit_s = if ends { 300.0 } else { 1.0 + patience.start - 0.5 };
            world.run_until(Instant::ZERO + Duration::from_secs_f64(limit_s));
            match world.users[0].closed {
                Some((at, reason)) => {
                    assert_eq!(reason, CloseReason::TimedOut);
                    let after_s = at.as_secs_f64() - 1.0;
                    assert!(ends && patience.contains(&after_s), "{after_s} s:\n{}", world.story());
                }
                None => {
                    assert!(!ends, "{}", world.story());
                    // The interface has room in time.
                    world.jammed[0] = false;
                    world.fate = fixed(Duration::from_millis(10));
                    world.tell_room(0);
                    world.settle(0);
                    world.run_until(Instant::from_secs(300));
                    assert!(world.users[0].closed.is_none() && world.received(1) == pattern(100));
                }
            }
        }
    }
}

#[test]
fn after_an_outage_sending_goes_on_at_the_next_retry_and_nothing_acknowledged_is_repeated() {
    let profile = Profile::linux_6();
    let mut world = World::new(&profile, 115_200, DELAY);
    world.connect();
    world.write(0, pattern(500_000));
    world.run_until(Instant::from_secs(20));
    world.fate = Box::new(|_, _| vec![]);
    world.run_until(Instant::from_secs(140));
    let acknowledged = world.statistics(0).acknowledged_bytes;
    let lines = world.timeline.len();
    world.fate = fixed(DELAY);
    world.run_while(Instant::from_secs(400), |world| world.users[1].received.len() < 500_000);
    assert_eq!(world.received(1), pattern(500_000));
    let first = &world.timeline[lines];
    assert!(first.contains(&format!("{}+", acknowledged + 1)) && first.ends_with("again"), "{first}");
    // Data that arrived without the sender's knowledge may be retransmitted, but no byte that it knew to have arrived.
    assert!(world.shares[0].repeated < 80_000, "{}", world.shares[0].repeated);
}

#[test]
fn no_room_is_no_loss() {
    let mut world = World::new(&Profile::linux_6(), 115_200, DELAY);
    world.connect();
    world.write(0, pattern(300_000));
    world.run_until(Instant::from_secs(10));
    world.jammed = [true; 2];
    world.run_until(Instant::from_secs(200));
    world.jammed = [false; 2];
    for side in 0..2 {
        world.tell_room(side);
        world.settle(side);
    }
    world.run_while(Instant::from_secs(300), |world| world.users[1].received.len() < 300_000);
    let counters = world.statistics(0).counters;
    assert!(counters.timeouts <= 1, "{counters:?}");
}

#[test]
fn the_threshold_of_the_last_connection_is_remembered() {
    let mut world = World::new(&Profile::linux_2_4(), 1_000_000, DELAY);
    let mut number = 0;
    world.fate = Box::new(move |_, packet| {
        number += usize::from(!packet.segment.payload.is_empty());
        if number == 40 && !packet.segment.payload.is_empty() { vec![] } else { vec![DELAY] }
    });
    world.connect();
    world.users[0].close_when_written = true;
    world.write(0, pattern(200_000));
    world.run_while(Instant::from_secs(100), |world| world.users[0].closed.is_none());
    world.connect();
    world.run_until(world.now + Duration::from_secs(5));
    let second = world.hosts[0].connections().last().expect("the second connection stands").1;
    let second = Statistics::of(second);
    assert!(
        second.slow_start_threshold_bytes.is_some_and(|bytes| (4_000..60_000).contains(&bytes)),
        "{second:?}"
    );
}

#[test]
fn after_disorder_the_receiver_of_linux_2_4_acknowledges_at_once() {
    let answer = |quick_acks_after_disorder| {
        let receiver =
            Profile { quick_acks: 4, quick_acks_after_disorder, timestamps: false, ..Profile::linux_2_4() };
        let mut world = World::new(&wide(receiver), 8_000_000_000, DELAY);
        let mut lose = true;
        world.fate = Box::new(move |_, packet| {
            let hit = packet.segment.payload.len() > 1000 && core::mem::take(&mut lose);
            if hit { vec![] } else { vec![DELAY] }
        });
        world.connect();
        world.write(0, pattern(8 * 1460));
        // Soon enough that no idle period causes quick acknowledgements.
        world.run_while(Instant::from_secs(10), |world| world.received(1).len() < 8 * 1460);
        world.timeline.clear();
        world.write(0, pattern(6 * 1460));
        world.run_until(Instant::from_secs(20));
        world.timeline.iter().find(|line| line.contains("<-")).cloned()
    };
    assert_eq!(answer(true).as_deref(), Some("  2.400 <- ACK 1+0 ack 13141"), "at once");
    assert_eq!(answer(false).as_deref(), Some("  2.440 <- ACK 1+0 ack 13141"), "after the wait");
}

#[test]
fn the_threshold_of_a_connection_that_broke_in_an_outage_is_not_remembered() {
    let mut world = World::new(&Profile::linux_2_4(), 1_000_000, DELAY);
    world.connect();
    world.write(0, pattern(2_000_000));
    world.run_until(Instant::from_secs(6));
    world.fate = Box::new(|_, _| vec![]);
    world.run_until(Instant::from_secs(40));
    let broken = world.statistics(0).slow_start_threshold_bytes;
    assert!(broken.is_some(), "the outage has brought it down");
    world.request(0, StreamRequest::Abort);
    world.fate = fixed(DELAY);
    world.run_until(Instant::from_secs(41));
    world.connect();
    world.run_until(world.now + Duration::from_secs(5));
    let second = world.hosts[0].connections().last().expect("the second connection stands").1;
    let second = Statistics::of(second);
    assert_eq!(second.slow_start_threshold_bytes, None, "{second:?}");
}

/// RFC 2018 4: selectively acknowledged data count until they are acknowledged, in full or in part.
#[test]
fn an_acknowledgement_may_end_within_what_was_selectively_acknowledged() {
    let now = Instant::from_secs(1);
    let mut board = Scoreboard::new(None);
    for start in [0, 1000, 2000, 3000] {
        board.push(start, start + 1000, now);
    }
    let evidence = Evidence { now, shortest: None, sent_before: None, timeout_point: 0 };
    assert_eq!(board.sack(&[(1000, 3000)], &evidence).delivered, 2000);
    assert_eq!(board.pipe(), 2000);
    assert_eq!(board.next_doubtful(), Some(0), "something behind it has arrived");
    let delivery = board.acknowledge(2500, &evidence);
    assert_eq!((delivery.delivered, board.pipe()), (1000, 1000));
    let delivery = board.acknowledge(3500, &evidence);
    assert_eq!((delivery.delivered, board.pipe()), (500, 500));
    assert_eq!(board.next_doubtful(), None);
}
