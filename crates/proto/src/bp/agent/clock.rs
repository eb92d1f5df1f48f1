//! The wall clock, the lifetime clock, and all deadlines.
//!
//! Lifetimes follow the wall clock until it jumps. After a jump the agent cannot know whether the wall clock was wrong before
//! or is wrong now: from then on lifetimes follow the elapsed time of the steady clock, until the operator confirms the wall
//! clock (or it jumps back). The difference between the two is stored, so that a restart continues with it.
//!
//! ```text
//!   wall clock   ----------.    .-----------------------------------
//!                           jump : ahead                  operator confirms it
//!   lifetimes    ---------------------------------------.   .-------
//! ```
//!
//! Contact windows follow the wall clock. New bundles are stamped with the later of the two times: other nodes would delete a
//! bundle with a creation time too far in the past, but keep one from the future.

use crate::codec::DecodeError;
use crate::kit::OrderedMap;
use crate::service::{LinkId, RecordId, SteadyReading};
use crate::time::{Duration, Instant};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::{BTreeSet, VecDeque};

use super::config::Config;
use super::delivery::PayloadId;
use super::held::HeldBundle;
use super::record::{put_checksum, take_checksum};

/// Maximum step of the wall clock that is not a jump: clocks are adjusted by small amounts now and then.
pub(super) const STEP_MAX: Duration = Duration::from_secs(60);

/// Reading of the wall clock, with the engine time and the steady clock at that time.
#[derive(Clone, Copy, Debug)]
struct ClockReading {
    dtn_ms: u64,
    at: Instant,
    steady: Option<SteadyReading>,
    /// True for a reading from before the last start: only a steady clock that kept running can tell how long
    /// ago that was.
    is_old: bool,
}

/// Jump of the wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Jump {
    /// Change of the wall clock, milliseconds.
    pub(super) by_ms: i64,
    /// Resulting change of the lifetime clock, milliseconds; zero unless the wall clock is back.
    pub(super) moved_ms: i64,
}

/// Clock state that is kept over a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredClock {
    /// Wall clock, DTN milliseconds.
    pub(super) dtn_ms: u64,
    /// Difference between the wall clock and the lifetime clock, milliseconds.
    pub(super) ahead_ms: i64,
    /// Reading of the steady clock at that time.
    pub(super) steady: Option<SteadyReading>,
}

impl StoredClock {
    /// Length of the encoding, bytes.
    const BYTES: usize = 36;

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        let steady = self.steady.unwrap_or_default();
        out.put_u64(self.dtn_ms);
        out.put_i64(self.ahead_ms);
        out.put_u64(steady.of);
        out.put_u64(steady.ms);
        put_checksum(start, out);
    }

    pub(super) fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.len() < Self::BYTES {
            return Err(DecodeError::Incomplete);
        }
        let whole = input.clone();
        let (dtn_ms, ahead_ms) = (input.get_u64(), input.get_i64());
        let steady = SteadyReading { of: input.get_u64(), ms: input.get_u64() };
        take_checksum(&whole, input, "clock")?;
        Ok(StoredClock { dtn_ms, ahead_ms, steady: Some(steady).filter(|steady| steady.of != 0) })
    }
}

/// DTN time, from the readings of the wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    told: Option<ClockReading>,
    /// Previous reading, for the time when there is no wall clock.
    before: Option<ClockReading>,
    /// Difference between the wall clock and the lifetime clock, milliseconds.
    ahead_ms: i64,
    /// The lifetime clock continues from the last time known before the machine was off, which is a lower
    /// bound of the true time.
    is_later: bool,
}

impl Clock {
    /// Sets the wall clock, or removes it. Returns its jump, if any. Compared with a reading from before the
    /// machine was off, only a jump back is detectable.
    pub(super) fn set(
        &mut self,
        now: Instant,
        dtn_ms: Option<u64>,
        steady: Option<SteadyReading>,
    ) -> Option<Jump> {
        self.before = self.told.or(self.before);
        self.told = dtn_ms.map(|dtn_ms| ClockReading { dtn_ms, at: now, steady, is_old: false });
        let (told, before) = (self.told?, self.before?);
        let same = before.steady.zip(steady).filter(|(before, steady)| before.of == steady.of);
        let passed_ms = match same {
            Some((before, steady)) => steady.ms.saturating_sub(before.ms),
            None => millis(now.saturating_since(before.at)),
        };
        let expected_ms = before.dtn_ms.saturating_add(passed_ms);
        if before.is_old && same.is_none() {
            return self.step_after_a_pause(expected_ms, told.dtn_ms);
        }
        self.step(expected_ms, told.dtn_ms)
    }

    /// Compares the wall clock with its expected value.
    fn step(&mut self, expected_ms: u64, dtn_ms: u64) -> Option<Jump> {
        let by_ms = i64::try_from(i128::from(dtn_ms) - i128::from(expected_ms)).unwrap_or(0);
        if by_ms.unsigned_abs() <= millis(STEP_MAX) {
            return None;
        }
        self.ahead_ms = self.ahead_ms.saturating_add(by_ms);
        let mut moved_ms = 0;
        if self.ahead_ms.unsigned_abs() <= millis(STEP_MAX) || (self.is_later && self.ahead_ms > 0) {
            // The wall clock is back.
            moved_ms = core::mem::take(&mut self.ahead_ms);
            self.is_later = false;
        }
        Some(Jump { by_ms, moved_ms })
    }

    /// As `step`, after a pause during which no steady clock ran: only a jump back is detectable.
    fn step_after_a_pause(&mut self, least_ms: u64, dtn_ms: u64) -> Option<Jump> {
        let doubted = self.ahead_ms != 0;
        let jump = self.step(least_ms.max(dtn_ms), dtn_ms);
        self.is_later = jump.is_some() && self.ahead_ms < 0 && !doubted;
        jump
    }

    /// Continues from the clock state of the previous start. Returns the jump of the wall clock, if
    /// detectable: while the machine was off, only a jump back is.
    pub(super) fn resume(&mut self, now: Instant, kept: StoredClock) -> Option<Jump> {
        self.ahead_ms = kept.ahead_ms;
        let Some(told) = self.told else {
            self.before =
                Some(ClockReading { dtn_ms: kept.dtn_ms, at: now, steady: kept.steady, is_old: true });
            return None;
        };
        let same = told.steady.zip(kept.steady).filter(|(told, kept)| told.of == kept.of);
        match same {
            Some((steady, kept_steady)) => {
                let passed_ms = steady.ms.saturating_sub(kept_steady.ms);
                self.step(kept.dtn_ms.saturating_add(passed_ms), told.dtn_ms)
            }
            None => self.step_after_a_pause(kept.dtn_ms, told.dtn_ms),
        }
    }

    /// Clock state for the next start; `None` before the first reading.
    pub(super) fn kept(&self, now: Instant) -> Option<StoredClock> {
        let told = self.told.or(self.before)?;
        let passed_ms = millis(now.saturating_since(told.at));
        let later =
            |steady: SteadyReading| SteadyReading { ms: steady.ms.saturating_add(passed_ms), ..steady };
        let dtn_ms = told.dtn_ms.saturating_add(passed_ms);
        Some(StoredClock { dtn_ms, ahead_ms: self.ahead_ms, steady: told.steady.map(later) })
    }

    /// Confirms the wall clock. Returns the change of the lifetime clock, milliseconds; zero if there was no
    /// jump.
    pub(super) fn trust(&mut self) -> i64 {
        self.is_later = false;
        core::mem::take(&mut self.ahead_ms)
    }

    /// Difference between the wall clock and the lifetime clock, milliseconds; zero without a jump.
    pub(super) fn ahead_ms(&self) -> i64 {
        self.ahead_ms
    }

    /// Wall clock, DTN milliseconds; `None` without a clock.
    pub(super) fn dtn_ms(&self, now: Instant) -> Option<u64> {
        self.told.map(|told| told.dtn_ms.saturating_add(millis(now.saturating_since(told.at))))
    }

    /// Lifetime clock, DTN milliseconds; `None` without a clock.
    pub(super) fn life_ms(&self, now: Instant) -> Option<u64> {
        self.dtn_ms(now).map(|dtn_ms| dtn_ms.saturating_add_signed(self.ahead_ms.saturating_neg()))
    }

    /// The earlier of the two times, DTN milliseconds: until the clock is confirmed, a bundle that has
    /// expired only by the later time may be alive.
    pub(super) fn least_ms(&self, now: Instant) -> Option<u64> {
        self.dtn_ms(now).min(self.life_ms(now))
    }

    /// The later of the two times, DTN milliseconds, for the creation timestamps of new bundles.
    pub(super) fn stamp_ms(&self, now: Instant) -> Option<u64> {
        self.dtn_ms(now).max(self.life_ms(now))
    }

    /// Time left until an expiry.
    pub(super) fn left(&self, end: ExpiryTime, now: Instant) -> Duration {
        match (end.dtn_ms, self.life_ms(now)) {
            (Some(end), Some(life_ms)) => Duration::from_millis(end.saturating_sub(life_ms)),
            _ => end.by_age.saturating_since(now),
        }
    }

    /// Engine time at which the wall clock reaches this value; for a value in the past, a time not later than
    /// now.
    fn instant_of(&self, due: u64) -> Option<Instant> {
        self.told.map(|told| told.at + Duration::from_millis(due.saturating_sub(told.dtn_ms)))
    }

    /// Engine time at which the lifetime clock reaches this value.
    fn life_instant_of(&self, due: u64) -> Option<Instant> {
        let told = self.told?;
        let life_ms = told.dtn_ms.saturating_add_signed(self.ahead_ms.saturating_neg());
        Some(told.at + Duration::from_millis(due.saturating_sub(life_ms)))
    }
}

/// Jump of the wall clock, or its confirmation by the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockAdjustment {
    /// First record after the adjustment.
    pub(super) first: RecordId,
    /// Difference between the wall clock and the lifetime clock after the adjustment, milliseconds; zero if
    /// the wall clock is trusted.
    pub(super) ahead_ms: i64,
    /// Change of the lifetime clock, milliseconds.
    pub(super) moved_ms: i64,
}

/// Latest adjustments of the clock, oldest first, which correct the times that were written before them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ClockAdjustments(VecDeque<ClockAdjustment>);

/// Maximum number of adjustments; beyond it the oldest is discarded.
const TURNS_MAX: usize = 64;

impl ClockAdjustments {
    /// Length of an encoded adjustment, bytes.
    const TURN_BYTES: usize = 24;

    pub(super) fn add(&mut self, turn: ClockAdjustment) {
        if self.0.len() >= TURNS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(turn);
    }

    /// Difference between the wall clock and the lifetime clock after the last adjustment, milliseconds.
    pub(super) fn ahead_ms(&self) -> i64 {
        self.0.back().map_or(0, |turn| turn.ahead_ms)
    }

    /// Total change of the lifetime clock since this record was begun, milliseconds.
    pub(super) fn moved_since(&self, record: RecordId) -> i64 {
        let later = self.0.iter().filter(|turn| turn.first > record);
        later.fold(0, |sum, turn| sum.saturating_add(turn.moved_ms))
    }

    /// Amount by which the wall clock was behind the lifetime clock when this record was begun, milliseconds;
    /// zero if the correct one is known since.
    pub(super) fn behind_at(&self, record: RecordId) -> u64 {
        let before = |turn: &&ClockAdjustment| turn.first <= record;
        if self.0.iter().any(|turn| !before(&turn) && turn.ahead_ms == 0) {
            return 0;
        }
        let turn = self.0.iter().rev().find(before);
        turn.map_or(0, |turn| turn.ahead_ms.min(0).unsigned_abs())
    }

    /// First record that was begun while the wall clock was behind.
    pub(super) fn first_behind(&self) -> Option<RecordId> {
        self.0.iter().find(|turn| turn.ahead_ms < 0).map(|turn| turn.first)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        out.put_u16(self.0.len() as u16);
        for turn in &self.0 {
            out.put_u64(turn.first.0);
            out.put_i64(turn.ahead_ms);
            out.put_i64(turn.moved_ms);
        }
        put_checksum(start, out);
    }

    pub(super) fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let whole = input.clone();
        if input.len() < 2 {
            return Err(DecodeError::Incomplete);
        }
        let count = usize::from(input.get_u16());
        if count > TURNS_MAX {
            return Err(DecodeError::Limit { what: "clock adjustments" });
        }
        if input.len() < count * Self::TURN_BYTES + 4 {
            return Err(DecodeError::Incomplete);
        }
        let mut turn = || ClockAdjustment {
            first: RecordId(input.get_u64()),
            ahead_ms: input.get_i64(),
            moved_ms: input.get_i64(),
        };
        let turns = (0..count).map(|_| turn()).collect();
        take_checksum(&whole, input, "clock adjustments")?;
        Ok(ClockAdjustments(turns))
    }
}

/// Duration in whole milliseconds.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Purpose of a deadline. Every bundle has one, so it is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum DeadlineKind {
    /// The lifetime of a bundle expires.
    Expiry(RecordId),
    /// A tombstone can be removed.
    TombstoneExpiry(RecordId),
    /// A contact window begins or ends.
    Contact(LinkId),
    /// A bundle can be retried.
    Retry(RecordId),
    /// The custody timer of a bundle expires.
    Custody(RecordId),
    /// A link can be used again.
    Release(LinkId),
    /// The wait of a router ends: every link checks for bundles to send.
    RouterWait,
    /// Link-state routing has something to do.
    Announcements,
    /// A delivery is indicated again.
    RepeatDelivery(PayloadId),
    /// A failed read is retried.
    RetryRead(PayloadId),
    /// Payloads whose signatures are verified are read again.
    RetryChecks,
    /// A tombstone that found no space is retried.
    RetryTombstone(PayloadId),
    /// The next restored bundles are dispatched.
    DispatchFound,
    /// The time for which the node was down is added to the ages of the next restored bundles.
    AgeFound,
    /// The next waiting bundles are routed again.
    Reroute,
}

/// Time of an expiry: in DTN time if there is a clock and the time is known, otherwise by the age of the
/// bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ExpiryTime {
    /// DTN milliseconds; `None` for a bundle from a node without a clock.
    pub(super) dtn_ms: Option<u64>,
    /// Engine time of the expiry according to the known age.
    pub(super) by_age: Instant,
}

/// Deadlines in order. Those in DTN time are stored in DTN time, so that a jump of the clock does not move
/// them.
#[derive(Debug, Default)]
pub(super) struct BundleDeadlines {
    /// Deadlines by the wall clock.
    by_wall: BTreeSet<(u64, DeadlineKind)>,
    /// Deadlines by the lifetime clock, with the times by age, which apply only while there is no clock.
    by_clock: OrderedMap<(u64, DeadlineKind), Instant>,
    /// Deadlines of `by_clock` by age. Empty while there is a clock.
    without_clock: BTreeSet<(Instant, DeadlineKind)>,
    has_clock: bool,
    timers: BTreeSet<(Instant, DeadlineKind)>,
}

impl BundleDeadlines {
    pub(super) fn at(&mut self, at: Instant, due: DeadlineKind) {
        self.timers.insert((at, due));
    }

    pub(super) fn not_at(&mut self, at: Instant, due: DeadlineKind) {
        self.timers.remove(&(at, due));
    }

    pub(super) fn at_dtn(&mut self, dtn_ms: u64, due: DeadlineKind) {
        self.by_wall.insert((dtn_ms, due));
    }

    pub(super) fn not_at_dtn(&mut self, dtn_ms: u64, due: DeadlineKind) {
        self.by_wall.remove(&(dtn_ms, due));
    }

    pub(super) fn ends(&mut self, end: ExpiryTime, due: DeadlineKind) {
        match end.dtn_ms {
            Some(dtn_ms) => {
                if !self.has_clock {
                    self.without_clock.insert((end.by_age, due));
                }
                self.by_clock.insert((dtn_ms, due), end.by_age);
            }
            None => self.at(end.by_age, due),
        }
    }

    pub(super) fn not_ends(&mut self, end: ExpiryTime, due: DeadlineKind) {
        match end.dtn_ms {
            Some(dtn_ms) => {
                if !self.has_clock {
                    self.without_clock.remove(&(end.by_age, due));
                }
                self.by_clock.remove(&(dtn_ms, due));
            }
            None => self.not_at(end.by_age, due),
        }
    }

    /// Notes whether there is a clock. Visits all deadlines when it is lost.
    pub(super) fn follow(&mut self, has_clock: bool) {
        if core::mem::replace(&mut self.has_clock, has_clock) == has_clock {
            return;
        }
        self.without_clock = match has_clock {
            true => BTreeSet::new(),
            false => self.by_clock.iter().map(|((_, due), by_age)| (*by_age, *due)).collect(),
        };
    }

    /// Removes and returns the next expired deadline.
    pub(super) fn pop(&mut self, now: Instant, clock: &Clock) -> Option<DeadlineKind> {
        if self.timers.first().is_some_and(|(at, _)| *at <= now) {
            return self.timers.pop_first().map(|(_, due)| due);
        }
        if let (Some((at, _)), Some(dtn_ms)) = (self.by_wall.first(), clock.dtn_ms(now))
            && *at <= dtn_ms
        {
            return self.by_wall.pop_first().map(|(_, due)| due);
        }
        match clock.life_ms(now) {
            Some(life_ms) => match self.by_clock.first() {
                Some(((at, _), _)) if *at <= life_ms => self.by_clock.pop_first().map(|((_, due), _)| due),
                _ => None,
            },
            None => match self.without_clock.first() {
                Some((at, _)) if *at <= now => self.without_clock.pop_first().map(|(_, due)| due),
                _ => None,
            },
        }
    }

    /// Time of the next deadline.
    pub(super) fn next(&self, clock: &Clock) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let ends = match clock.told {
            Some(_) => self.by_clock.first().and_then(|((at, _), _)| clock.life_instant_of(*at)),
            None => self.without_clock.first().map(|(at, _)| *at),
        };
        let wall = self.by_wall.first().and_then(|(at, _)| clock.instant_of(*at));
        crate::joint::earlier(crate::joint::earlier(timer, ends), wall)
    }
}

/// Clock and deadlines.
#[derive(Debug, Default)]
pub(super) struct Timekeeping {
    pub(super) clock: Clock,
    /// Time at which the clock state was last stored.
    pub(super) kept_at: Instant,
    pub(super) adjustments: ClockAdjustments,
    pub(super) deadlines: BundleDeadlines,
}

impl Timekeeping {
    /// Removes and returns the next expired deadline.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<DeadlineKind> {
        self.deadlines.pop(now, &self.clock)
    }

    /// Time of the next deadline.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.deadlines.next(&self.clock)
    }

    /// True if the creation time is in the future by more than the permitted clock difference: the clock of
    /// the source or of this node is wrong.
    pub(super) fn is_from_future(&self, now: Instant, held: &HeldBundle, config: &Config) -> bool {
        match (self.clock.least_ms(now), held.head.created_ms()) {
            (Some(least_ms), Some(created)) => {
                created > least_ms.saturating_add(millis(config.clock_skew_max))
            }
            _ => false,
        }
    }

    /// Computes the expiry of a bundle. For a bundle from the future the lifetime begins at its arrival: it
    /// is unknown which clock is wrong, so the bundle is neither refused nor kept until the time in its
    /// header.
    pub(super) fn set_end(&self, now: Instant, record: RecordId, held: &mut HeldBundle, config: &Config) {
        // A bundle made at this node has the lifetime that its application requested, and is stamped with the
        // later of the two times.
        let (most, ahead_ms) = match held.own {
            true => (Duration::ZERO, 0),
            false => (config.lifetime_max, self.adjustments.behind_at(record)),
        };
        held.set_end(most, ahead_ms);
        if self.is_from_future(now, held, config) {
            held.end.dtn_ms = None;
        }
    }

    /// Computes the expiry of a bundle again, and moves its deadline.
    pub(super) fn renew_end(
        &mut self,
        now: Instant,
        record: RecordId,
        held: &mut HeldBundle,
        config: &Config,
    ) {
        let before = held.end;
        self.set_end(now, record, held, config);
        if held.end != before {
            self.deadlines.not_ends(before, DeadlineKind::Expiry(record));
            self.deadlines.ends(held.end, DeadlineKind::Expiry(record));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: u64 = 86_400_000;
    const THEN_MS: u64 = 800_000_000_000;

    fn steady(of: u64, ms: u64) -> Option<SteadyReading> {
        Some(SteadyReading { of, ms })
    }

    /// Clock state of a machine that is switched off.
    fn kept(ahead_ms: i64) -> StoredClock {
        StoredClock { dtn_ms: THEN_MS, ahead_ms, steady: steady(1, 1_000) }
    }

    #[test]
    fn a_clock_that_is_set_late_after_a_cold_start_has_not_jumped() {
        let at = Instant::from_secs;
        for steady_now in [steady(2, 500), None] {
            for off_ms in [0, 10 * DAY_MS] {
                // There is no clock at first; the first reading is correct, however long the machine was off.
                let mut clock = Clock::default();
                assert_eq!(clock.set(at(0), None, steady_now), None);
                assert_eq!(clock.resume(at(1), kept(0)), None);
                assert_eq!(clock.set(at(9), Some(THEN_MS + off_ms + 9_000), steady_now), None);
                assert_eq!((clock.ahead_ms(), clock.life_ms(at(9))), (0, Some(THEN_MS + off_ms + 9_000)));
            }
            // A jump back is detected.
            let mut clock = Clock::default();
            clock.resume(at(1), kept(0));
            let jump = clock.set(at(9), Some(THEN_MS - DAY_MS), steady_now).expect("a jump");
            assert!(jump.by_ms.abs_diff(-(DAY_MS as i64)) <= 10_000, "{jump:?}");
        }
        // With a steady clock that kept running, jumps in both directions are detected.
        let mut clock = Clock::default();
        clock.resume(at(1), kept(0));
        assert!(clock.set(at(9), Some(THEN_MS + DAY_MS), steady(1, 9_000)).is_some());
    }

    /// A machine without a hardware clock starts with a time in the past.
    #[test]
    fn a_clock_that_is_behind_until_it_is_set_has_not_jumped() {
        let at = Instant::from_secs;
        for first_ms in [1, THEN_MS - DAY_MS] {
            let mut clock = Clock::default();
            clock.set(at(0), Some(first_ms), steady(2, 500));
            assert!(clock.resume(at(1), kept(0)).is_some(), "behind what it has said");
            assert_eq!(clock.life_ms(at(1)).map(|ms| ms.abs_diff(THEN_MS) <= 1_000), Some(true));
            clock.set(at(9), Some(THEN_MS + 10 * DAY_MS), steady(2, 9_500));
            assert_eq!((clock.ahead_ms(), clock.life_ms(at(9))), (0, Some(THEN_MS + 10 * DAY_MS)));
        }
        // A clock that was doubted before remains doubted.
        let mut clock = Clock::default();
        clock.set(at(0), Some(THEN_MS + DAY_MS), steady(2, 500));
        clock.resume(at(1), kept(2 * DAY_MS as i64));
        assert_eq!(clock.ahead_ms(), 2 * DAY_MS as i64);
    }

    #[test]
    fn turns_say_what_a_time_means_that_was_written_before_them() {
        let mut turns = ClockAdjustments::default();
        let turn = |first, ahead_ms, moved_ms| ClockAdjustment { first: RecordId(first), ahead_ms, moved_ms };
        for turn in [turn(10, -5_000, 0), turn(20, 0, -5_000), turn(30, 7_000, 0), turn(40, 0, 7_000)] {
            turns.add(turn);
        }
        assert_eq!(
            [9, 10, 19, 20, 39, 40].map(|record| turns.moved_since(RecordId(record))),
            [2_000, 2_000, 2_000, 7_000, 7_000, 0]
        );
        assert_eq!([9, 10, 19, 20, 39, 40].map(|record| turns.behind_at(RecordId(record))), [0; 6]);
        turns.add(turn(50, -3_000, 0));
        assert_eq!([49, 50].map(|record| turns.behind_at(RecordId(record))), [0, 3_000]);
        let mut out = BytesMut::new();
        turns.encode(&mut out);
        let bytes = out.freeze();
        assert_eq!(ClockAdjustments::decode(&mut bytes.clone()), Ok(turns.clone()));
        for cut in 0..bytes.len() {
            assert_eq!(ClockAdjustments::decode(&mut bytes.slice(..cut)), Err(DecodeError::Incomplete));
        }
        for first in 60..1_000 {
            turns.add(turn(first, 1, 1));
        }
        assert_eq!(turns.0.len(), TURNS_MAX);
    }

    /// Lifetimes end by age while there is no clock, also those that began with one, and each ends once.
    #[test]
    fn deadlines_follow_the_clock_when_it_comes_and_goes() {
        let (at, due) = (Instant::from_secs, |record| DeadlineKind::Expiry(RecordId(record)));
        let end = |dtn_ms, age_s| ExpiryTime { dtn_ms: Some(THEN_MS + dtn_ms), by_age: at(age_s) };
        let (mut clock, mut deadlines) = (Clock::default(), BundleDeadlines::default());
        deadlines.ends(end(9_000, 3), due(1));
        clock.set(at(0), Some(THEN_MS), steady(1, 0));
        deadlines.follow(true);
        deadlines.ends(end(8_000, 5), due(2));
        deadlines.ends(end(7_000, 4), due(3));
        deadlines.not_ends(end(7_000, 4), due(3));
        assert_eq!((deadlines.pop(at(6), &clock), deadlines.next(&clock)), (None, Some(at(8))));
        clock.set(at(6), None, steady(1, 6_000));
        deadlines.follow(false);
        assert_eq!(deadlines.next(&clock), Some(at(3)));
        assert_eq!(deadlines.pop(at(6), &clock), Some(due(1)));
        deadlines.not_ends(end(9_000, 3), due(1));
        assert_eq!([(); 2].map(|()| deadlines.pop(at(6), &clock)), [Some(due(2)), None]);
        deadlines.not_ends(end(8_000, 5), due(2));
        assert_eq!((deadlines.by_clock.len(), deadlines.without_clock.len()), (0, 0));
    }
}
