//! Pace of a connection: one that passes on what is queued at once may queue more.
//!
//! Fewer and longer turns between the engines and the kernel cost less, but an urgent bundle waits behind what is queued. So the limit
//! is higher only while that much leaves within [`FAST_WITHIN`].
//!
//! Units: bytes.

use std::time::Duration;
use tokio::time::Instant;

/// Factor of the limit of a fast connection: beyond 2 MiB, turns cost hardly less.
const FAST_TIMES: u64 = 8;
/// Time within which a fast connection passes on as much as it may queue.
const FAST_WITHIN: Duration = Duration::from_millis(20);

/// Measurement of what a connection passes on, without the time in which nothing is queued.
#[derive(Debug)]
pub(super) struct Pace {
    /// Beginning of the measurement, later by the time in which nothing was queued.
    since: Instant,
    /// Bytes passed on since then.
    passed: u64,
    /// Time at which nothing was queued any more; `None` while something is.
    idle_since: Option<Instant>,
    is_fast: bool,
}

impl Pace {
    pub(super) fn new(now: Instant) -> Self {
        Pace { since: now, passed: 0, idle_since: Some(now), is_fast: false }
    }

    /// Takes into account that something is queued.
    pub(super) fn queued(&mut self, now: impl FnOnce() -> Instant) {
        if let Some(idle_since) = self.idle_since.take() {
            self.since += now() - idle_since;
        }
    }

    /// Takes into account that something was passed on, and that so much is still queued. `limit`: that of a connection which is
    /// not fast.
    pub(super) fn passed(&mut self, now: Instant, bytes: u64, still_queued: u64, limit: u64) {
        self.passed += bytes;
        let is_late = now - self.since > FAST_WITHIN;
        if is_late || self.passed >= limit.saturating_mul(FAST_TIMES) {
            self.is_fast = !is_late;
            (self.since, self.passed) = (now, 0);
        }
        if still_queued == 0 {
            self.idle_since = Some(now);
        }
    }

    /// Returns the limit, if `limit` is that of a connection which is not fast.
    pub(super) fn limit(&self, limit: u64) -> u64 {
        if self.is_fast { limit.saturating_mul(FAST_TIMES) } else { limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1000;
    const MS: Duration = Duration::from_millis(1);

    /// Passes on the limit as often, each time after this time in which it is queued and this one in which nothing is.
    fn run(pace: &mut Pace, now: &mut Instant, times: usize, queued: Duration, idle: Duration) -> u64 {
        for _ in 0..times {
            pace.queued(|| *now);
            *now += queued;
            pace.passed(*now, LIMIT, 0, LIMIT);
            *now += idle;
        }
        pace.limit(LIMIT)
    }

    #[test]
    fn a_connection_is_fast_while_eight_times_the_limit_leaves_within_twenty_milliseconds() {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        assert_eq!(pace.limit(LIMIT), LIMIT, "nothing is known");
        assert_eq!(run(&mut pace, &mut now, 7, 2 * MS, Duration::ZERO), LIMIT);
        assert_eq!(run(&mut pace, &mut now, 1, 2 * MS, Duration::ZERO), 8 * LIMIT);
        assert_eq!(run(&mut pace, &mut now, 6, 3 * MS, Duration::ZERO), 8 * LIMIT);
        assert_eq!(run(&mut pace, &mut now, 1, 3 * MS, Duration::ZERO), LIMIT, "twenty-one milliseconds");
        assert_eq!(run(&mut pace, &mut now, 8, 2 * MS, Duration::ZERO), 8 * LIMIT);
        assert_eq!(run(&mut pace, &mut now, 1, 21 * MS, Duration::ZERO), LIMIT, "at once");
    }

    #[test]
    fn time_in_which_nothing_is_queued_does_not_count() {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        now += 1000 * MS;
        assert_eq!(run(&mut pace, &mut now, 8, 2 * MS, 1000 * MS), 8 * LIMIT);
        // Something is left each time, so the wait counts.
        pace.queued(|| now);
        for _ in 0..2 {
            now += 11 * MS;
            pace.passed(now, LIMIT, 1, LIMIT);
        }
        assert_eq!(pace.limit(LIMIT), LIMIT);
    }
}
