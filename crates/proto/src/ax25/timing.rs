//! Times that a link waits: for an answer (T1), with its own acknowledgement (T2), for requested frames (6.7.1).

use super::link::{Link, State, Timer};
use crate::time::{Duration, Instant};

/// Maximum restarts of T1 by received frames of the peer between two answers.
const EXTENSIONS_MAX: u8 = 128;
/// Maximum time for a frame that awaits an answer to leave without a report: a controller seldom holds frames longer
/// for a busy channel, and one that never reports must not stop the link.
pub(super) const LEAVING_MAX: Duration = Duration::from_secs(60);
/// Maximum of T1 after many timeouts.
const ANSWER_MAX: Duration = Duration::from_secs(120);

/// Measured times of answers, from the end of the transmission.
#[derive(Debug, Default)]
pub(super) struct RoundTrip {
    /// Smoothed time and its deviation.
    smoothed: Option<(Duration, Duration)>,
    /// Time at which the frame that awaits an answer had left.
    left_at: Option<Instant>,
    /// Time at which the first of several polls had left.
    first_left_at: Option<Instant>,
    /// Shortest time of an answer after the poll was repeated, from the first poll: it answers any of them.
    late: Option<Duration>,
    /// Consecutive answers of this kind that acknowledged everything.
    late_answers_in_a_row: u8,
    /// Allowance for late answers, which decreases with each answer in time.
    late_answer_allowance: Option<Duration>,
}

impl RoundTrip {
    /// Notes a timeout: the next answer may belong to any of several polls (Karn's algorithm).
    fn repeated(&mut self) {
        let left_at = self.left_at.take();
        self.first_left_at = self.first_left_at.or(left_at);
    }

    /// Notes an answer; `whole` is true if it acknowledged everything.
    fn answered(&mut self, now: Instant, whole: bool) {
        /// One lost answer in four looks like a late one, and three in a row one time in a hundred.
        const LATE_IN_A_ROW: u8 = 3;
        let (left_at, first_left_at) = (self.left_at.take(), self.first_left_at.take());
        if let Some(first) = first_left_at {
            let took = now.saturating_since(first);
            self.late = Some(self.late.map_or(took, |before| before.min(took)));
            self.late_answers_in_a_row = if whole { self.late_answers_in_a_row + 1 } else { 0 };
            // Assumed only while there is no allowance: otherwise each lost answer would lengthen it.
            if self.late_answers_in_a_row >= LATE_IN_A_ROW && self.late_answer_allowance.is_none() {
                self.was_late();
            }
        } else if let Some(left) = left_at {
            let sample = now.saturating_since(left);
            self.smoothed = Some(match self.smoothed {
                None => (sample, sample / 2),
                Some((mean, deviation)) => {
                    ((mean * 7 + sample) / 8, (deviation * 3 + sample.abs_diff(mean)) / 4)
                }
            });
            (self.late, self.late_answers_in_a_row) = (None, 0);
            let smoothed = self.smoothed_most();
            self.late_answer_allowance = self
                .late_answer_allowance
                .map(|late| (late * 7 + sample) / 8)
                .filter(|late| *late > smoothed);
        }
    }

    /// Notes an answer more than expected: none was lost, and each poll but the first was sent too early.
    pub(super) fn was_late(&mut self) {
        self.late_answers_in_a_row = 0;
        let Some(late) = self.late.take() else { return };
        self.late_answer_allowance = self.late_answer_allowance.max(Some(late + late / 4));
    }

    fn smoothed_most(&self) -> Duration {
        self.smoothed.map_or(Duration::ZERO, |(mean, deviation)| mean + 4 * deviation)
    }

    fn most(&self) -> Duration {
        self.smoothed_most().max(self.late_answer_allowance.unwrap_or_default())
    }
}

impl Link {
    /// Returns the maximum time of an answer from the end of the transmission: the channel accesses of the peer and the
    /// digipeaters, the answer itself and, with digipeaters, the repetition of the whole transmission by each of them.
    pub(super) fn answer_time(&self) -> Duration {
        /// Length of an answer without information, with its share of stuffing, bytes.
        const ANSWER_BYTES: u64 = 17;
        let hops = self.path.len() as u32;
        let answer = self.radio.air_time(1, ANSWER_BYTES + 7 * u64::from(hops));
        let (frames, bytes) = self.burst;
        let there = (self.radio.air_time(frames, bytes) + self.radio.access()) * hops;
        let back = (answer + self.radio.access()) * (hops + 1);
        let delay = if self.sender.is_polling() { Duration::ZERO } else { self.longest_frame() };
        let needed = there + back + delay + self.radio.turnaround;
        let usual = needed.max(self.round_trip.most()) * (2 + u32::from(self.retry_count)) / 2;
        let calls_again = matches!(self.state, State::AwaitingConnection(_)) && self.retry_count > 0;
        let longer = if calls_again && self.yields { usual / 2 } else { Duration::ZERO };
        (usual + longer).min(ANSWER_MAX)
    }

    /// Returns the maximum silence of a peer that was asked to retransmit: two channel accesses and its frame, and one
    /// more frame before it that was not received. After a second request it would send everything twice.
    pub(super) fn silence(&self) -> Duration {
        let frames = (self.longest_frame() + self.radio.air_time(1, 17)) * 2;
        (self.radio.access() * 2 + frames) * (self.path.len() as u32 + 1) + self.radio.turnaround
    }

    fn longest_frame(&self) -> Duration {
        self.radio.air_time(1, u64::from(self.agreed.information_bytes_max) + 17)
    }

    /// Returns the response delay (T2).
    pub(super) fn acknowledge_delay(&self) -> Duration {
        self.config.acknowledge_delay.unwrap_or_else(|| self.longest_frame() + Duration::from_millis(200))
    }

    /// Handles the report that a frame which awaits an answer has left; `at` is the probable time.
    pub(super) fn left(&mut self, now: Instant, at: Instant) {
        self.transmit_reports_are_missing = false;
        self.transmit_reports_come_early |= at > now;
        self.leaving = self.leaving.saturating_sub(1);
        // The answer to DISC may still wait for the channel while earlier frames leave.
        if self.leaving == 0 && self.is_closed() && !self.wants_air() {
            self.tell_end();
        }
        // The answer may have arrived before the report of the transmission: then nothing is measured.
        self.round_trip.left_at = self.awaits_answer().then_some(at);
        self.t1_extensions = 0;
        if self.leaving == 0 {
            self.watch_question(now, true);
            if self.awaits_answer() {
                self.wait(now);
            }
        }
    }

    /// Starts T1: now, or from the latest time at which the frame that awaits an answer leaves, if that is unreported.
    pub(super) fn wait(&mut self, now: Instant) {
        let told = self.leaving == 0 || self.transmit_reports_are_missing;
        let leaving = if told { Duration::ZERO } else { LEAVING_MAX };
        self.timers.set(Timer::T1 as usize, now + leaving + self.answer_time());
    }

    /// Handles the expiry of T1. `leaves_by` is the time by which the poll has left in most cases, if reports of
    /// transmissions are not to be trusted. No answer is possible earlier, or while other stations transmit.
    pub(super) fn waited(&mut self, now: Instant, busy: bool, leaves_by: Option<Instant>) {
        let due = leaves_by.map(|at| at + self.answer_time()).filter(|due| *due > now);
        match due {
            _ if busy => self.heard(now),
            Some(due) => self.timers.set(Timer::T1 as usize, due),
            None => {
                self.expect_no_word();
                self.retry_count += 1;
                self.round_trip.repeated();
                self.counters.timeouts += 1;
                self.unanswered();
            }
        }
    }

    /// Stops waiting for the report of a transmission.
    pub(super) fn expect_no_word(&mut self) {
        self.transmit_reports_are_missing |= core::mem::take(&mut self.leaving) > 0;
    }

    /// Notes the answer to a poll.
    pub(super) fn answered(&mut self, now: Instant) {
        self.round_trip.answered(now, self.sender.outstanding() == 0);
        self.retry_count = 0;
        self.timers.stop(Timer::T1 as usize);
    }

    /// Notes that a frame of the link was received: its sender is not silent, so the wait for an answer continues.
    pub(super) fn heard(&mut self, now: Instant) {
        self.timers.set(Timer::T3 as usize, now + self.config.idle_probe);
        if self.timers.get(Timer::T1 as usize).is_some() && self.t1_extensions < EXTENSIONS_MAX {
            self.t1_extensions += 1;
            self.wait(now);
        }
        // The silence begins again.
        self.timers.stop(Timer::RejectAgain as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ax25::{LinkConfig, PeerStation, RadioParameters};

    /// Two stations that call each other at the same time repeat their requests at different times.
    #[test]
    fn stations_that_call_each_other_do_not_keep_colliding() {
        let [a, b] = ["OE1ABC-1", "OE1XYZ-7"].map(|name| name.parse().expect("a callsign"));
        let call = |own, peer| {
            let mut link = Link::call(
                own,
                PeerStation { station: peer, path: Vec::new(), link: LinkConfig::default() },
                RadioParameters::default(),
                None,
            );
            let first = link.answer_time();
            link.retry_count = 1;
            (first, link.answer_time())
        };
        let (first, again) = call(a, b);
        assert_eq!(call(b, a), (first, again + again / 2));
    }

    const NEEDED: Duration = Duration::from_secs(2);
    const TOOK: Duration = Duration::from_millis(800);

    /// Polls, with the first `lost` answers lost; the next poll leaves when T1 expires.
    fn ask(round_trip: &mut RoundTrip, now: &mut Instant, lost: u32) {
        for _ in 0..lost {
            round_trip.left_at = Some(*now);
            *now += NEEDED.max(round_trip.most());
            round_trip.repeated();
        }
        round_trip.left_at = Some(*now);
        *now += TOOK;
        round_trip.answered(*now, true);
    }

    #[test]
    fn lost_answers_in_a_row_do_not_teach_an_ever_longer_wait() {
        let (mut round_trip, mut now) = (RoundTrip::default(), Instant::ZERO);
        for round in 0..100 {
            ask(&mut round_trip, &mut now, u32::from(round % 5 != 4));
            assert!(round_trip.most() < NEEDED * 2, "{round}: {round_trip:?}");
        }
        // Without further losses the allowance disappears.
        for _ in 0..40 {
            ask(&mut round_trip, &mut now, 0);
        }
        assert!(round_trip.most() < TOOK * 2, "{round_trip:?}");
    }

    #[test]
    fn late_answers_are_waited_for() {
        let (mut round_trip, mut now) = (RoundTrip::default(), Instant::ZERO);
        for _ in 0..3 {
            // Each answer is late: the poll was repeated once before the answer to the first arrived.
            round_trip.left_at = Some(now);
            round_trip.repeated();
            round_trip.left_at = Some(now + NEEDED);
            now += NEEDED * 2;
            round_trip.answered(now, true);
        }
        assert!(round_trip.most() >= NEEDED * 2, "{round_trip:?}");
    }
}
