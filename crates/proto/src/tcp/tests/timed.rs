//! Loss detection by time, tail loss probes, and spurious timeouts (RFC 8985, RFC 5682). Timestamps are off, so that they
//! cannot show what the rules under test have to find.

use super::harness::{World, fixed, pattern};
use crate::tcp::config::{IdleRestart, Profile, Reduction};
use crate::tcp::wire::Packet;
use crate::time::{Duration, Instant};

const DELAY: Duration = Duration::from_millis(400);
const SEGMENT: usize = 1000;
/// A line on which a segment takes no time.
const LINE_BPS: u64 = 8_000_000_000_000;

/// Linux 6 with short segments and without what would blur a timeline.
fn profile() -> Profile {
    Profile {
        maximum_segment_bytes: SEGMENT as u16,
        timestamps: false,
        undo_by_timestamps: false,
        idle_restart: IdleRestart::Off,
        reduction: Reduction::Immediate,
        ..Profile::linux_6()
    }
}

/// A connection over a line that takes no time to send a segment. `fate` gives the delay of data by offset of the segment
/// and number of the copy (from 1).
fn connected(profile: &Profile, mut fate: impl FnMut(u32, usize) -> Option<Duration> + 'static) -> World {
    let mut world = World::new(profile, LINE_BPS, DELAY);
    let mut first = None;
    let mut copies = std::collections::BTreeMap::new();
    world.fate = Box::new(move |side, packet: &Packet| {
        if side == 1 || packet.segment.payload.is_empty() {
            return vec![DELAY];
        }
        let offset = packet.segment.sequence.wrapping_sub(*first.get_or_insert(packet.segment.sequence));
        let copy = copies.entry(offset).or_insert(0);
        *copy += 1;
        fate(offset / SEGMENT as u32, *copy).into_iter().collect()
    });
    world.connect();
    world.run_until(Instant::from_secs(1));
    world.timeline.clear();
    world
}

/// Writes this many segments, and returns the lines until everything has arrived and is acknowledged.
fn story(world: &mut World, segments: usize) -> Vec<String> {
    world.timeline.clear();
    let wanted = world.received(1).len() + segments * SEGMENT;
    world.write(0, pattern(segments * SEGMENT));
    world.run_while(Instant::from_secs(300), |world| {
        world.received(1).len() < wanted || world.statistics(0).flight_bytes > 0
    });
    world.timeline.clone()
}

fn again(story: &[String]) -> Vec<&str> {
    story.iter().filter(|line| line.ends_with("again")).map(String::as_str).collect()
}

fn lost(segments: &'static [(u32, usize)]) -> impl FnMut(u32, usize) -> Option<Duration> {
    move |segment, copy| (!segments.contains(&(segment, copy))).then_some(DELAY)
}

#[test]
fn fewer_than_three_arrivals_beyond_a_hole_wait_for_a_quarter_of_the_round_trip() {
    let mut world = connected(&profile(), lost(&[(0, 1)]));
    let expected = [
        "  1.000 -> ACK 1+1000 ack 1",
        "  1.000 -> ACK 1001+1000 ack 1",
        "  1.000 -> PSH|ACK 2001+1000 ack 1",
        "  1.400 <- ACK 1+0 ack 1 [1001-2001]",
        "  1.400 <- ACK 1+0 ack 1 [1001-3001]",
        "  2.002 -> ACK 1+1000 ack 1 again",
        "  2.402 <- ACK 1+0 ack 3001",
    ];
    assert_eq!(story(&mut world, 3), expected);
    assert_eq!(world.statistics(0).counters.timeouts, 0);
}

#[test]
fn new_data_do_not_delay_the_end_of_the_window_for_reordering() {
    let mut world = connected(&profile(), lost(&[(0, 1)]));
    world.write(0, pattern(3 * SEGMENT));
    world.run_until(Instant::ZERO + Duration::from_millis(1900));
    world.write(0, pattern(SEGMENT));
    world.run_until(Instant::from_secs(3));
    assert_eq!(again(&world.timeline), ["  2.002 -> ACK 1+1000 ack 1 again"]);
}

#[test]
fn three_arrivals_beyond_a_hole_show_a_loss_at_once() {
    let mut world = connected(&profile(), lost(&[(0, 1)]));
    let story = story(&mut world, 4);
    assert_eq!(again(&story), ["  1.800 -> ACK 1+1000 ack 1 again"]);
}

#[test]
fn what_is_reordered_within_the_window_is_not_lost_and_later_flights_wait_too() {
    let late = |segment, copy| {
        // The first segments of two flights.
        let delayed = copy == 1 && [0, 3].contains(&segment);
        Some(if delayed { DELAY + Duration::from_millis(100) } else { DELAY })
    };
    let mut world = connected(&profile(), late);
    assert_eq!(again(&story(&mut world, 3)).len(), 0, "less than a quarter of the round trip");
    // Three and more arrivals no longer show a loss at once.
    assert_eq!(again(&story(&mut world, 6)).len(), 0, "{}", world.story());
    let counters = world.statistics(0).counters;
    assert_eq!((counters.fast_recoveries, counters.timeouts), (0, 0));
}

#[test]
fn what_is_reordered_beyond_the_window_is_sent_again_and_the_window_grows() {
    let late = |segment, copy| {
        let delayed = copy == 1 && [0, 3, 6].contains(&segment);
        Some(if delayed { DELAY + Duration::from_millis(300) } else { DELAY })
    };
    let mut world = connected(&profile(), late);
    assert_eq!(again(&story(&mut world, 3)).len(), 1);
    // The duplicate SACK arrives, undoes the reduction and enlarges the window to half of the round trip.
    world.run_until(world.now + Duration::from_secs(2));
    let statistics = world.statistics(0);
    assert_eq!((statistics.counters.undone, statistics.slow_start_threshold_bytes), (1, None));
    assert_eq!(again(&story(&mut world, 3)).len(), 0, "{}", world.story());
}

#[test]
fn a_lost_retransmission_is_found_by_what_was_sent_after_it() {
    let mut world = connected(&profile(), lost(&[(2, 1), (2, 2)]));
    let story = story(&mut world, 40);
    let copies = again(&story);
    assert_eq!(copies.len(), 2, "{copies:?}");
    let counters = world.statistics(0).counters;
    assert_eq!((counters.timeouts, counters.fast_recoveries), (0, 1));
}

#[test]
fn a_retransmission_that_waits_for_the_interface_does_not_time_out_as_the_lost_copy_would() {
    let mut world = connected(&profile(), lost(&[(0, 1)]));
    world.write(0, pattern(5 * SEGMENT));
    world.run_until(Instant::ZERO + Duration::from_millis(1500));
    world.jammed[0] = true;
    world.tell_room(0);
    // The loss is known at 1.8 s; the timer of the first copy would expire at 3 s.
    world.run_until(Instant::ZERO + Duration::from_millis(3400));
    assert_eq!(world.statistics(0).counters.fast_recoveries, 1);
    world.jammed[0] = false;
    world.tell_room(0);
    world.settle(0);
    world.run_until(Instant::from_secs(5));
    assert_eq!(again(&world.timeline), ["  3.400 -> ACK 1+1000 ack 1 again"]);
    let statistics = world.statistics(0);
    assert_eq!((statistics.counters.timeouts, statistics.flight_bytes), (0, 0), "{}", world.story());
}

#[test]
fn a_lost_tail_is_probed_and_the_probe_that_repairs_it_reduces_the_window() {
    let mut world = connected(&profile(), lost(&[(2, 1)]));
    let before = world.statistics(0).congestion_window_bytes;
    // The round trip was measured once: 0.8 s, and the timeout is 2.4 s, so two round trips are shorter.
    let expected = [
        "  1.000 -> ACK 1+1000 ack 1",
        "  1.000 -> ACK 1001+1000 ack 1",
        "  1.000 -> PSH|ACK 2001+1000 ack 1",
        "  1.400 <- ACK 1+0 ack 1001",
        "  1.400 <- ACK 1+0 ack 2001",
        "  3.600 -> PSH|ACK 2001+1000 ack 1 again",
        "  4.000 <- ACK 1+0 ack 3001",
    ];
    assert_eq!(story(&mut world, 3), expected);
    assert_eq!(
        world.statistics(0).slow_start_threshold_bytes,
        None,
        "it may be that only acknowledgements were lost"
    );
    story(&mut world, 1);
    let statistics = world.statistics(0);
    let threshold = statistics.slow_start_threshold_bytes.expect("the loss counts");
    assert!(threshold <= before.div_ceil(2) + 2 * SEGMENT as u64, "{threshold} of {before}");
    assert_eq!((statistics.counters.timeouts, statistics.congestion_window_bytes), (0, threshold));
}

#[test]
fn a_probe_does_not_wait_longer_than_the_retransmission_timer_would() {
    // After some round trips the timeout is only a little longer than they are.
    let mut world = connected(&profile(), lost(&[(299, 1)]));
    story(&mut world, 299);
    let timeout = world.statistics(0).retransmission_timeout;
    assert!(timeout < Duration::from_millis(1400), "shorter than two round trips: {timeout:?}");
    let expiry = (world.now + timeout).as_secs_f64();
    let probed = story(&mut world, 1);
    assert!(again(&probed)[0].starts_with(&format!("{expiry:>7.3} ")), "{expiry}: {probed:?}");
    assert_eq!(world.statistics(0).counters.timeouts, 0);
}

#[test]
fn a_needless_probe_costs_nothing() {
    // The peer answers the second copy with a duplicate SACK, or with a mere duplicate.
    for says in [true, false] {
        let peer = Profile { duplicate_sack: says, ..profile() };
        let mut world = World::of([profile(), peer], LINE_BPS, DELAY, 1);
        world.connect();
        world.run_until(Instant::from_secs(1));
        // The acknowledgements are late, not lost.
        let late = Duration::from_millis(1600);
        world.fate = Box::new(move |side, _| vec![if side == 1 { late } else { DELAY }]);
        let probed = story(&mut world, 2);
        assert_eq!(again(&probed).len(), 1, "{probed:?}");
        world.fate = fixed(DELAY);
        world.run_until(world.now + Duration::from_secs(5));
        story(&mut world, 1);
        let statistics = world.statistics(0);
        assert_eq!(statistics.slow_start_threshold_bytes, None, "{}", world.story());
        assert_eq!(statistics.counters.timeouts, 0);
    }
}

/// RFC 8985 7.3: a second probe would make the congestion window meaningless.
#[test]
fn while_a_probe_is_outstanding_there_is_no_second_one() {
    let mut world = connected(&profile(), lost(&[(0, 1), (0, 2), (1, 1)]));
    world.write(0, pattern(SEGMENT));
    world.run_while(Instant::from_secs(10), |world| again(&world.timeline).is_empty());
    world.write(0, pattern(SEGMENT));
    world.run_while(Instant::from_secs(30), |world| world.received(1).len() < 2 * SEGMENT);
    let counters = world.statistics(0).counters;
    assert_eq!(counters.timeouts, 1, "{}", world.story());
    assert!(again(&world.timeline)[1].contains(" 1+1000 "), "{}", world.story());
}

/// RFC 8985 7.3: otherwise probes would prevent the samples that tell that the path has become longer.
#[test]
fn without_a_sample_since_the_last_probe_the_timer_decides() {
    let mut world = World::of([profile(), profile()], LINE_BPS, DELAY, 1);
    world.connect();
    world.run_until(Instant::from_secs(1));
    let late = Duration::from_millis(1600);
    world.fate = Box::new(move |side, _| vec![if side == 1 { late } else { DELAY }]);
    assert_eq!(again(&story(&mut world, 1)).len(), 1, "a probe");
    world.run_until(world.now + Duration::from_secs(5));
    world.fate = Box::new(|side, _| if side == 0 { vec![] } else { vec![DELAY] });
    world.write(0, pattern(SEGMENT));
    world.run_while(Instant::from_secs(60), |world| again(&world.timeline).len() < 2);
    assert_eq!(world.statistics(0).counters.timeouts, 1, "{}", world.story());
}

#[test]
fn new_data_probe_if_there_are_any_and_what_they_pass_is_lost() {
    // A window of three segments is lost altogether; the probe is the fourth.
    let profile = Profile { initial_window_segments: 3, ..profile() };
    let mut world = connected(&profile, lost(&[(0, 1), (1, 1), (2, 1)]));
    let story = story(&mut world, 6);
    assert_eq!(story[3], "  2.600 -> ACK 3001+1000 ack 1", "{story:#?}");
    assert_eq!(story[4], "  3.000 <- ACK 1+0 ack 1 [3001-4001]");
    assert_eq!(story[5], "  3.400 -> ACK 1+1000 ack 1 again");
    assert_eq!(again(&story).len(), 3);
    let counters = world.statistics(0).counters;
    assert_eq!((counters.timeouts, counters.fast_recoveries), (0, 1), "{story:#?}");
}

/// A connection whose timer expires: without probes, and with data that wait for the window.
fn timing_out(forward_rto: bool, fate: impl FnMut(u32, usize) -> Option<Duration> + 'static) -> World {
    let profile = Profile { forward_rto, tail_loss_probe: false, initial_window_segments: 4, ..profile() };
    connected(&Profile { duplicate_sack: false, ..profile }, fate)
}

#[test]
fn a_spurious_timeout_is_seen_by_the_arrival_of_what_was_sent_once() {
    for forward_rto in [true, false] {
        let slow = Duration::from_millis(2600);
        let mut world = timing_out(forward_rto, move |segment, copy| {
            Some(if segment < 4 && copy == 1 { slow } else { DELAY })
        });
        let before = world.statistics(0).congestion_window_bytes;
        let story = story(&mut world, 12);
        let statistics = world.statistics(0);
        assert_eq!(statistics.counters.timeouts, 1);
        if forward_rto {
            // The first segment is sent again, and nothing else.
            assert_eq!(again(&story).len(), 1, "{story:#?}");
            assert_eq!(statistics.counters.undone, 1);
            assert_eq!(statistics.slow_start_threshold_bytes, None);
            assert!(statistics.congestion_window_bytes >= before);
        } else {
            assert!(statistics.counters.undone == 0 && again(&story).len() > 1, "{story:#?}");
        }
    }
}

#[test]
fn a_genuine_timeout_is_seen_by_what_arrives_beyond_the_loss() {
    let mut world = timing_out(true, lost(&[(0, 1), (1, 1), (2, 1), (3, 1)]));
    let story = story(&mut world, 12);
    let statistics = world.statistics(0);
    assert_eq!((statistics.counters.timeouts, statistics.counters.undone), (1, 0), "{story:#?}");
    assert_eq!(again(&story).len(), 4, "all of them are sent again");
    assert!(statistics.slow_start_threshold_bytes.is_some());
    // After the first acknowledgement new data go first: they show that the rest is lost.
    let repeated = story.iter().position(|line| line.ends_with("again")).expect("one is sent again");
    let next = &story[repeated + 2];
    assert!(story[repeated + 1].ends_with("ack 1001") && next.contains(" 4001+1000 "), "{story:#?}");
    assert!(
        story[repeated + 3].contains(" 5001+1000 "),
        "the retransmissions wait for the answer: {story:#?}"
    );
}

/// RFC 5682 3.1 step 3a: the judgement stands.
#[test]
fn what_arrives_late_after_a_genuine_timeout_does_not_make_it_spurious() {
    let profile = Profile { tail_loss_probe: false, initial_window_segments: 8, ..profile() };
    let mut world = connected(&profile, |segment, copy| match (segment, copy) {
        (0..=6, 1) => None,
        // Arrives after the new data, and before its turn to be sent again.
        (7, 1) => Some(Duration::from_millis(4200)),
        _ => Some(DELAY),
    });
    let story = story(&mut world, 16);
    let late = story.iter().position(|line| line.contains("[7001-")).expect("it arrives");
    assert!(
        !story[..late].iter().any(|line| line.contains(" 7001+1000 ") && line.ends_with("again")),
        "{story:#?}"
    );
    let counters = world.statistics(0).counters;
    assert_eq!((counters.timeouts, counters.undone), (1, 0), "{story:#?}");
}

/// As in Linux, a timeout of a retransmission in fast recovery is not examined.
#[test]
fn a_timeout_in_fast_recovery_is_not_examined() {
    let profile = Profile { tail_loss_probe: false, initial_window_segments: 6, ..profile() };
    let mut world = connected(&profile, |segment, copy| match (segment, copy) {
        (0, 1 | 2) | (4, 1) => None,
        (5, 1) => Some(Duration::from_millis(3300)),
        _ => Some(DELAY),
    });
    let story = story(&mut world, 6);
    let counters = world.statistics(0).counters;
    assert_eq!((counters.timeouts, counters.fast_recoveries, counters.undone), (1, 1, 0), "{story:#?}");
}

#[test]
fn retransmissions_wait_for_the_answer_to_new_data_even_if_the_window_has_room() {
    let mut world = timing_out(true, lost(&[(0, 1), (1, 1), (2, 1), (3, 1)]));
    let story = story(&mut world, 5);
    let new = story.iter().position(|line| line.contains(" 4001+1000 ")).expect("it is sent");
    assert!(story[new + 1].ends_with("[4001-5001]"), "{story:#?}");
}

#[test]
fn without_new_data_a_timeout_is_repaired_as_ever() {
    let mut world = timing_out(true, lost(&[(0, 1), (1, 1), (2, 1), (3, 1)]));
    let story = story(&mut world, 4);
    let counters = world.statistics(0).counters;
    assert_eq!((counters.timeouts, counters.undone, again(&story).len()), (1, 0, 4), "{story:#?}");
}

/// As in Linux, fast recovery begins in the middle of slow start after a timeout.
#[test]
fn a_retransmission_that_is_lost_after_a_timeout_needs_no_second_timeout() {
    let mut world = timing_out(false, lost(&[(0, 1), (1, 1), (2, 1), (3, 1), (1, 2)]));
    let story = story(&mut world, 4);
    let counters = world.statistics(0).counters;
    assert_eq!((counters.timeouts, counters.fast_recoveries, again(&story).len()), (1, 1, 5), "{story:#?}");
}

#[test]
fn a_segment_that_arrives_twice_is_named_once() {
    let mut world = connected(&profile(), |_, _| Some(DELAY));
    world.write(0, pattern(2 * SEGMENT));
    world.run_until(Instant::from_secs(2));
    let packet = world.last_packet(0).clone();
    world.timeline.clear();
    world.deliver(1, &packet);
    world.run_until(Instant::from_secs(3));
    assert_eq!(world.timeline, ["  2.000 <- ACK 1+0 ack 2001 [1001-2001]"]);
    world.timeline.clear();
    story(&mut world, 1);
    assert!(world.timeline.iter().all(|line| !line.contains('[')), "{:?}", world.timeline);
}
