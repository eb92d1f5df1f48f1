//! The told wall clock, the time that lifetimes go by, and everything that is due at some time.
//!
//! Lifetimes go by the wall clock while that has not jumped. When it jumps, nobody here can tell whether it was wrong before
//! or is wrong now: from then on they go by the time that has passed, as the steady clock has it, until the operator says
//! that the wall clock is right (or it jumps back). The difference is kept in the store, so that a restart goes on with it.
//!
//! ```text
//!   wall clock   ----------.    .-----------------------------------
//!                           jump : ahead                  operator: it is right
//!   lifetimes    ---------------------------------------.   .-------
//! ```
//!
//! Contact windows go by the wall clock, and new bundles are stamped with the later of the two: what was made too early
//! would be deleted elsewhere, what comes from the future is kept.

use crate::codec::DecodeError;
use crate::codec::crc::crc32c;
use crate::service::{LinkId, RecordId, Steady};
use crate::time::{Duration, Instant};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::collections::BTreeSet;

use super::delivery::LocalKey;

/// A step of the wall clock that is no jump yet: clocks are set right by a little now and then.
pub(super) const STEP_MAX: Duration = Duration::from_secs(60);

/// What the wall clock said, and what the steady ones said then.
#[derive(Clone, Copy, Debug)]
struct Told {
    dtn_ms: u64,
    at: Instant,
    steady: Option<Steady>,
}

/// What is kept of the clock over a restart. Units: milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The wall clock, DTN time.
    pub(super) dtn_ms: u64,
    /// By how much it was ahead of what lifetimes go by.
    pub(super) ahead_ms: i64,
    /// The steady clock then.
    pub(super) steady: Option<Steady>,
}

impl Kept {
    /// Bytes of one that is written.
    const BYTES: usize = 36;

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        let steady = self.steady.unwrap_or_default();
        out.put_u64(self.dtn_ms);
        out.put_i64(self.ahead_ms);
        out.put_u64(steady.of);
        out.put_u64(steady.ms);
        let crc = crc32c(&out[start..]);
        out.put_u32(crc);
    }

    pub(super) fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.len() < Self::BYTES {
            return Err(DecodeError::Incomplete);
        }
        let crc = crc32c(&input[..Self::BYTES - 4]);
        let (dtn_ms, ahead_ms) = (input.get_u64(), input.get_i64());
        let steady = Steady { of: input.get_u64(), ms: input.get_u64() };
        match input.get_u32() == crc {
            true => Ok(Kept { dtn_ms, ahead_ms, steady: Some(steady).filter(|steady| steady.of != 0) }),
            false => Err(DecodeError::Checksum { what: "clock" }),
        }
    }
}

/// DTN time as it was last told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    told: Option<Told>,
    /// The last time that was told, where there is none now.
    before: Option<Told>,
    /// By how much the wall clock is ahead of what lifetimes go by, milliseconds.
    ahead_ms: i64,
}

impl Clock {
    /// Sets the clock, or takes it away. By how many milliseconds it has jumped, if it has.
    pub(super) fn set(&mut self, now: Instant, dtn_ms: Option<u64>, steady: Option<Steady>) -> Option<i64> {
        self.before = self.told.or(self.before);
        self.told = dtn_ms.map(|dtn_ms| Told { dtn_ms, at: now, steady });
        let (told, before) = (self.told?, self.before?);
        let passed_ms = match (before.steady, steady) {
            (Some(before), Some(steady)) if before.of == steady.of => steady.ms.saturating_sub(before.ms),
            _ => millis(now.saturating_since(before.at)),
        };
        self.step(before.dtn_ms.saturating_add(passed_ms), told.dtn_ms)
    }

    /// The wall clock says something else than was to be expected.
    fn step(&mut self, expected_ms: u64, dtn_ms: u64) -> Option<i64> {
        let step = i64::try_from(i128::from(dtn_ms) - i128::from(expected_ms)).unwrap_or(0);
        if step.unsigned_abs() <= millis(STEP_MAX) {
            return None;
        }
        self.ahead_ms = self.ahead_ms.saturating_add(step);
        if self.ahead_ms.unsigned_abs() <= millis(STEP_MAX) {
            // It is back.
            self.ahead_ms = 0;
        }
        Some(step)
    }

    /// Goes on from what the last start has left. By how many milliseconds the clock has jumped meanwhile, if that shows:
    /// while the machine itself was off it shows only where it went back.
    pub(super) fn resume(&mut self, now: Instant, kept: Kept) -> Option<i64> {
        self.ahead_ms = kept.ahead_ms;
        let Some(told) = self.told else {
            self.before = Some(Told { dtn_ms: kept.dtn_ms, at: now, steady: kept.steady });
            return None;
        };
        let same = told.steady.zip(kept.steady).filter(|(told, kept)| told.of == kept.of);
        let expected_ms = match same {
            Some((told, kept_steady)) => kept.dtn_ms.saturating_add(told.ms.saturating_sub(kept_steady.ms)),
            None => told.dtn_ms.max(kept.dtn_ms),
        };
        self.step(expected_ms, told.dtn_ms)
    }

    /// What a restart has to know.
    pub(super) fn kept(&self, now: Instant) -> Option<Kept> {
        let told = self.told.or(self.before)?;
        let passed_ms = millis(now.saturating_since(told.at));
        let later = |steady: Steady| Steady { ms: steady.ms.saturating_add(passed_ms), ..steady };
        let dtn_ms = told.dtn_ms.saturating_add(passed_ms);
        Some(Kept { dtn_ms, ahead_ms: self.ahead_ms, steady: told.steady.map(later) })
    }

    /// The operator says that the clock is right. False: nobody has doubted it.
    pub(super) fn trust(&mut self) -> bool {
        core::mem::take(&mut self.ahead_ms) != 0
    }

    /// By how much the wall clock is ahead of what lifetimes go by, milliseconds; zero: it has not jumped.
    pub(super) fn ahead_ms(&self) -> i64 {
        self.ahead_ms
    }

    /// DTN milliseconds now, where there is a clock.
    pub(super) fn dtn_ms(&self, now: Instant) -> Option<u64> {
        self.told.map(|told| told.dtn_ms.saturating_add(millis(now.saturating_since(told.at))))
    }

    /// DTN milliseconds now, as lifetimes go by them.
    pub(super) fn life_ms(&self, now: Instant) -> Option<u64> {
        self.dtn_ms(now).map(|dtn_ms| dtn_ms.saturating_add_signed(self.ahead_ms.saturating_neg()))
    }

    /// DTN milliseconds now, for what is made now.
    pub(super) fn stamp_ms(&self, now: Instant) -> Option<u64> {
        self.dtn_ms(now).max(self.life_ms(now))
    }

    /// How long it is until something ends.
    pub(super) fn left(&self, end: End, now: Instant) -> Duration {
        match (end.dtn_ms, self.life_ms(now)) {
            (Some(end), Some(life_ms)) => Duration::from_millis(end.saturating_sub(life_ms)),
            _ => end.by_age.saturating_since(now),
        }
    }

    /// When the wall clock will say this; the past is now-or-earlier.
    fn instant_of(&self, due: u64) -> Option<Instant> {
        self.told.map(|told| told.at + Duration::from_millis(due.saturating_sub(told.dtn_ms)))
    }

    /// When this time of lifetimes will be.
    fn life_instant_of(&self, due: u64) -> Option<Instant> {
        let told = self.told?;
        let life_ms = told.dtn_ms.saturating_add_signed(self.ahead_ms.saturating_neg());
        Some(told.at + Duration::from_millis(due.saturating_sub(life_ms)))
    }
}

/// Whole milliseconds of a duration.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What a deadline is for. Every bundle has one in two sets: the seldom long ones are boxed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    /// The lifetime of a bundle ends.
    Expiry(RecordId),
    /// A tombstone may go.
    Forget(RecordId),
    /// A contact window opens or closes.
    Contact(LinkId),
    /// A bundle may be tried again.
    Retry(RecordId),
    /// The signal for a bundle in custody has not come.
    Custody(RecordId),
    /// A link may be used again.
    Release(LinkId),
    /// A router waits no longer: every link looks what there is for it.
    Look,
    /// A delivery is said again.
    Repeat(Box<LocalKey>),
    /// A read that failed is tried again.
    Reread(Box<LocalKey>),
    /// A tombstone that found no space is tried again.
    Bury(Box<LocalKey>),
}

/// When something ends: by the clock where there is one and the end is known in DTN time, else by its own age.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    /// DTN milliseconds; none for a bundle from a node without a clock.
    pub(super) dtn_ms: Option<u64>,
    /// By the age that is known.
    pub(super) by_age: Instant,
}

/// Deadlines in order. Those in DTN time are kept in DTN time, so that a clock that jumps moves none of them.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    /// By the wall clock.
    by_wall: BTreeSet<(u64, Due)>,
    /// By the time that lifetimes go by.
    by_clock: BTreeSet<(u64, Due)>,
    /// The age of those in `by_clock`, which counts only while there is no clock.
    without_clock: BTreeSet<(Instant, Due)>,
    timers: BTreeSet<(Instant, Due)>,
}

impl Deadlines {
    pub(super) fn at(&mut self, at: Instant, due: Due) {
        self.timers.insert((at, due));
    }

    pub(super) fn not_at(&mut self, at: Instant, due: Due) {
        self.timers.remove(&(at, due));
    }

    pub(super) fn at_dtn(&mut self, dtn_ms: u64, due: Due) {
        self.by_wall.insert((dtn_ms, due));
    }

    pub(super) fn not_at_dtn(&mut self, dtn_ms: u64, due: Due) {
        self.by_wall.remove(&(dtn_ms, due));
    }

    pub(super) fn ends(&mut self, end: End, due: Due) {
        match end.dtn_ms {
            Some(dtn_ms) => {
                self.by_clock.insert((dtn_ms, due.clone()));
                self.without_clock.insert((end.by_age, due));
            }
            None => self.at(end.by_age, due),
        }
    }

    pub(super) fn not_ends(&mut self, end: End, due: Due) {
        match end.dtn_ms {
            Some(dtn_ms) => {
                self.by_clock.remove(&(dtn_ms, due.clone()));
                self.without_clock.remove(&(end.by_age, due));
            }
            None => self.not_at(end.by_age, due),
        }
    }

    /// Takes the next thing that is due.
    pub(super) fn pop(&mut self, now: Instant, clock: &Clock) -> Option<Due> {
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
                Some((at, _)) if *at <= life_ms => self.by_clock.pop_first().map(|(_, due)| due),
                _ => None,
            },
            None => match self.without_clock.first() {
                Some((at, _)) if *at <= now => self.without_clock.pop_first().map(|(_, due)| due),
                _ => None,
            },
        }
    }

    /// When the next thing is due.
    pub(super) fn next(&self, clock: &Clock) -> Option<Instant> {
        let timer = self.timers.first().map(|(at, _)| *at);
        let ends = match clock.told {
            Some(_) => self.by_clock.first().and_then(|(at, _)| clock.life_instant_of(*at)),
            None => self.without_clock.first().map(|(at, _)| *at),
        };
        let wall = self.by_wall.first().and_then(|(at, _)| clock.instant_of(*at));
        crate::joint::earlier(crate::joint::earlier(timer, ends), wall)
    }
}
