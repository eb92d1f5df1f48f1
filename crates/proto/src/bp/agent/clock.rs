//! The told wall clock, and everything that is due at some time.

use crate::service::{LinkId, RecordId};
use crate::time::{Duration, Instant};
use std::collections::BTreeSet;

use super::delivery::LocalKey;

/// DTN time as it was last told.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    told: Option<(u64, Instant)>,
}

impl Clock {
    /// Sets the clock, or takes it away.
    pub(super) fn set(&mut self, now: Instant, dtn_ms: Option<u64>) {
        self.told = dtn_ms.map(|dtn_ms| (dtn_ms, now));
    }

    /// DTN milliseconds now, where there is a clock.
    pub(super) fn dtn_ms(&self, now: Instant) -> Option<u64> {
        self.told.map(|(dtn_ms, at)| dtn_ms.saturating_add(millis(now.saturating_since(at))))
    }

    /// How long it is until something ends.
    pub(super) fn left(&self, end: End, now: Instant) -> Duration {
        match (end.dtn_ms, self.dtn_ms(now)) {
            (Some(end), Some(dtn_ms)) => Duration::from_millis(end.saturating_sub(dtn_ms)),
            _ => end.by_age.saturating_since(now),
        }
    }

    /// When this DTN time will be; the past is now-or-earlier.
    fn instant_of(&self, due: u64) -> Option<Instant> {
        self.told.map(|(dtn_ms, at)| at + Duration::from_millis(due.saturating_sub(dtn_ms)))
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
        self.by_clock.insert((dtn_ms, due));
    }

    pub(super) fn not_at_dtn(&mut self, dtn_ms: u64, due: Due) {
        self.by_clock.remove(&(dtn_ms, due));
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
        match clock.dtn_ms(now) {
            Some(dtn_ms) => match self.by_clock.first() {
                Some((at, _)) if *at <= dtn_ms => self.by_clock.pop_first().map(|(_, due)| due),
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
            Some(_) => self.by_clock.first().and_then(|(at, _)| clock.instant_of(*at)),
            None => self.without_clock.first().map(|(at, _)| *at),
        };
        crate::joint::earlier(timer, ends)
    }
}
