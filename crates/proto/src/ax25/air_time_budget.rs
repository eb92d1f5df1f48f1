//! The air time that a station may use, as its operator limits it: so much in any window of time, key-ups included.
//!
//! What is handed down is counted where it ends if it leaves at once, with its share of stuffed bits; what finds no time waits
//! until enough of what was sent is a window ago. A controller that holds frames back for a busy channel sends them later than
//! they are counted, by no more than one burst.

use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// What is sent within one such part of the window is counted at its end.
const PARTS: u32 = 64;

/// What a station has used of its air time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AirTime {
    /// Sent in all, key-ups included.
    pub total: Duration,
    /// Sent within the window that ended when it last had something to send; zero where there is no limit.
    pub within: Duration,
    /// Times that something waited because there was no more of it.
    pub waits: u64,
    /// Something waits for it now.
    pub waiting: bool,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct AirTimeBudget {
    /// None: there is no limit.
    max: Option<Duration>,
    window: Duration,
    /// When what was used is no longer counted, and how much it is; the next first. No more than `PARTS` + 2.
    used: VecDeque<(Instant, Duration)>,
    sum: Duration,
    /// When all of it has left.
    over: Instant,
    total: Duration,
    waits: u64,
    /// Something waits until then.
    until: Option<Instant>,
}

impl AirTimeBudget {
    pub(super) fn new(max: Option<Duration>, window: Duration) -> Self {
        AirTimeBudget {
            max,
            window,
            used: VecDeque::new(),
            sum: Duration::ZERO,
            over: Instant::ZERO,
            total: Duration::ZERO,
            waits: 0,
            until: None,
        }
    }

    pub(super) fn used(&self) -> AirTime {
        AirTime { total: self.total, within: self.sum, waits: self.waits, waiting: self.until.is_some() }
    }

    fn forget(&mut self, now: Instant) {
        while let Some((_, time)) = self.used.front().filter(|(until, _)| *until <= now) {
            self.sum -= *time;
            self.used.pop_front();
        }
    }

    /// So much is sent now, or behind what is being sent.
    pub(super) fn spend(&mut self, now: Instant, time: Duration) {
        self.total += time;
        if self.max.is_none() {
            return;
        }
        self.forget(now);
        self.over = self.over.max(now) + time;
        let part = (self.window.as_nanos() as u64 / u64::from(PARTS)).max(1);
        let until =
            Instant::from_nanos(self.over.as_nanos().div_ceil(part).saturating_mul(part)) + self.window;
        match self.used.back_mut().filter(|(last, _)| *last == until) {
            Some((_, used)) => *used += time,
            None => self.used.push_back((until, time)),
        }
        self.sum += time;
    }

    /// There is time for it now. What is alone in its window always goes: else one too long would stop the station.
    pub(super) fn affords(&mut self, now: Instant, time: Duration) -> bool {
        self.forget(now);
        self.max.is_none_or(|max| self.sum + time <= max || self.sum.is_zero())
    }

    /// What may still be sent now.
    pub(super) fn left(&mut self, now: Instant) -> Duration {
        self.forget(now);
        self.max.map_or(Duration::MAX, |max| max.saturating_sub(self.sum))
    }

    /// Whether something that takes so long has to wait. If so, it does until [`AirTimeBudget::pass`] says that there is time.
    pub(super) fn waits(&mut self, now: Instant, time: Duration) -> bool {
        if self.until.is_some() {
            return true;
        }
        if self.affords(now, time) {
            return false;
        }
        let max = self.max.unwrap_or(Duration::MAX);
        let mut left = self.sum;
        let enough = self.used.iter().find(|(_, used)| {
            left -= *used;
            left + time <= max || left.is_zero()
        });
        self.until = enough.map(|(until, _)| *until);
        self.waits += 1;
        true
    }

    /// The time has come.
    pub(super) fn pass(&mut self, now: Instant) {
        self.until = self.until.filter(|until| *until > now);
    }

    /// When what waits can go.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }
}
