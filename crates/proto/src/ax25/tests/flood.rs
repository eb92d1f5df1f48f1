//! Late answers, and controllers that report transmissions too early: frames in flight are not sent again.

use super::manners::Bench;
use crate::ax25::{CommandResponse, Config, Control, Modulo, Supervisory, Unnumbered};
use crate::engine::Engine;
use crate::service::{LinkId, PacketsRequest, Port};
use crate::time::Duration;

/// Duration of four frames of 256 bytes at 9,600 bit/s.
const WINDOW: Duration = Duration::from_millis(920);

fn calls(change: impl Fn(&mut Config)) -> Bench {
    let mut bench = Bench::new(Modulo::Eight, |config| {
        config.peers.values_mut().for_each(|peer| peer.link.window_frames = 4);
        change(config);
    });
    bench.station.handle_request(bench.now, Port::First((LinkId(0), PacketsRequest::Connect)));
    bench.pass(Duration::ZERO);
    let agreed = Control::Unnumbered { function: Unnumbered::Acknowledge, poll_final: true };
    bench.hear(CommandResponse::Response, agreed, &[]);
    bench.said();
    bench
}

/// Sends a window that the controller reports as transmitted when it accepts it.
fn early(change: impl Fn(&mut Config)) -> Bench {
    let mut bench = calls(change);
    bench.early = true;
    bench.send(0..4);
    assert_eq!(bench.sent(), (vec![0, 1, 2, 3], false));
    bench
}

/// Returns the time until A polls again.
fn asks_after(bench: &mut Bench) -> Duration {
    let since = bench.now;
    loop {
        let next = bench.station.poll_timeout().expect("T1 runs");
        bench.pass(next.saturating_since(bench.now));
        match bench.sent() {
            (numbers, true) if numbers.is_empty() => return next.saturating_since(since),
            said => assert_eq!(said, (vec![], false)),
        }
    }
}

/// T1 ran from the controller's report: A polled while its frames still waited in the controller, many times at 1200
/// bit/s.
#[test]
fn no_answer_is_expected_before_the_question_can_have_left() {
    let after = asks_after(&mut early(|_| ()));
    assert!(after > WINDOW + Duration::from_millis(500), "{after:?}");
    let slow = asks_after(&mut early(|config| config.radio.rate_bps = 1200));
    assert!(slow > 8 * WINDOW + Duration::from_millis(500), "{slow:?}");
    // The wait is limited: channel access in both directions, and the delay of the stations.
    assert!(slow < 8 * WINDOW + Duration::from_secs(6), "{slow:?}");
}

/// Each late answer was taken for the one to the last poll, and everything that it did not acknowledge was
/// retransmitted while still in flight: with a window of four, 95 of 124 frames were retransmissions.
#[test]
fn a_late_answer_repeats_nothing_that_was_sent_since() {
    let mut bench = early(|_| ());
    bench.pass(WINDOW);
    asks_after(&mut bench);
    bench.hear_answer(Supervisory::ReceiveReady, 4, true);
    bench.send(4..8);
    assert_eq!(bench.sent(), (vec![4, 5, 6, 7], false));
    // The answer to the poll at the expiry of T1: the controller was silent while it was on the channel.
    bench.hear_answer(Supervisory::ReceiveReady, 4, true);
    bench.hear_answer(Supervisory::Reject, 4, false);
    bench.pass(Duration::from_millis(200));
    assert_eq!(bench.sent(), (vec![], false));
    bench.pass(WINDOW);
    bench.hear_answer(Supervisory::ReceiveReady, 0, true);
    assert_eq!((bench.counters().information_repeated, bench.counters().late_answers), (0, 1));
}

/// The peer answers an earlier poll and the last one in one key-up: the second answer counts.
#[test]
fn of_two_answers_behind_each_other_the_last_counts() {
    let mut bench = early(|_| ());
    asks_after(&mut bench);
    bench.hear_answer(Supervisory::ReceiveReady, 4, true);
    bench.send(4..8);
    assert_eq!(bench.sent(), (vec![4, 5, 6, 7], false));
    bench.pass(WINDOW);
    bench.hear_answer(Supervisory::ReceiveReady, 4, true);
    assert_eq!(bench.sent(), (vec![], false));
    bench.hear_answer(Supervisory::ReceiveReady, 0, true);
    bench.pass(Duration::from_millis(200));
    assert_eq!(bench.sent(), (vec![], false));
    assert_eq!((bench.counters().information_repeated, bench.counters().late_answers), (0, 1));
    // Without another answer, it was the answer to the last poll.
    bench.send(8..12);
    bench.said();
    asks_after(&mut bench);
    bench.hear_answer(Supervisory::ReceiveReady, 2, true);
    bench.pass(Duration::from_millis(200));
    assert_eq!(bench.sent(), (vec![2, 3], false));
}

/// After one answer too many: T1 was shorter than the time of the answer, and is longer from then on.
#[test]
fn answers_that_come_late_make_t1_longer() {
    let mut bench = calls(|_| ());
    bench.send(0..4);
    bench.said();
    let before = asks_after(&mut bench);
    let late = 3 * before;
    bench.pass(late);
    let asked = 1 + bench.said().len();
    for _ in 0..=asked {
        bench.hear_answer(Supervisory::ReceiveReady, 4, true);
    }
    bench.send(4..8);
    bench.said();
    let after = asks_after(&mut bench);
    assert!(after >= late && after < 3 * late, "{before:?}, then {after:?}");
}

/// A controller without any reports is waited for once; then T1 is the time of the frames and the answer.
#[test]
fn who_says_nothing_is_waited_for_once() {
    let mut bench = calls(|_| ());
    bench.mute = true;
    bench.send(0..4);
    bench.said();
    let first = asks_after(&mut bench);
    bench.hear_answer(Supervisory::ReceiveReady, 4, true);
    bench.send(4..8);
    bench.said();
    let second = asks_after(&mut bench);
    assert!(first > Duration::from_secs(60), "{first:?}");
    assert!(second > WINDOW && second < WINDOW + Duration::from_secs(6), "{second:?}");
}

/// The time of a digipeater's key-up was computed three times too long: the number of frames was taken for bytes.
#[test]
fn behind_a_digipeater_t1_is_what_its_key_up_takes() {
    let direct = {
        let mut bench = calls(|_| ());
        bench.send(0..4);
        bench.said();
        asks_after(&mut bench)
    };
    let mut bench = calls(|config| {
        config.peers.values_mut().for_each(|peer| peer.path = vec!["C".parse().unwrap()]);
    });
    bench.send(0..4);
    bench.said();
    let more = asks_after(&mut bench) - direct;
    // Two more channel accesses.
    assert!(more > WINDOW && more < WINDOW + Duration::from_secs(4), "{more:?}");
}
