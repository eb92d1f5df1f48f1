//! Parts that engines have in common: repeated attempts, deadlines of many things, maps of very many or of the latest, and pacing.

mod ordered;
mod recency;

pub use ordered::OrderedMap;
pub use recency::RecencyMap;

use crate::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet};

/// Delays between attempts that fail one after another: each is twice the one before, up to a maximum.
///
/// After a failed attempt, [`fail`](Backoff::fail) returns the delay before the next one. For a retransmission timer,
/// which starts when the bytes leave, [`delay`](Backoff::delay) is its duration, and `fail` is called when it expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    min: Duration,
    max: Duration,
    failures: u32,
}

impl Backoff {
    /// The first delay is `min`, and none exceeds `max`.
    pub const fn new(min: Duration, max: Duration) -> Self {
        Backoff { min, max, failures: 0 }
    }

    /// Returns the delay after the next failure.
    pub fn delay(&self) -> Duration {
        self.min.saturating_mul(1 << self.failures.min(30)).min(self.max)
    }

    /// Notes a failure, and returns the delay before the next attempt.
    pub fn fail(&mut self) -> Duration {
        let delay = self.delay();
        self.failures = self.failures.saturating_add(1);
        delay
    }

    /// Notes a success: the next delay is the first one again.
    pub fn succeed(&mut self) {
        self.failures = 0;
    }

    /// Returns the number of failures since the last success.
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

/// Deadlines of many things in the order of their times, at most one for each. A thing keeps a copy of its own deadline,
/// by which it is found here.
#[derive(Clone, Debug)]
pub struct Deadlines<K>(BTreeSet<(Instant, K)>);

impl<K: Copy + Ord> Deadlines<K> {
    /// Creates a set without deadlines.
    pub const fn new() -> Self {
        Deadlines(BTreeSet::new())
    }

    /// Sets the deadline of a thing, or removes it; `stored` is the copy that the thing keeps.
    pub fn set(&mut self, key: K, stored: &mut Option<Instant>, at: Option<Instant>) {
        if *stored == at {
            return;
        }
        self.remove(key, *stored);
        if let Some(at) = at {
            self.0.insert((at, key));
        }
        *stored = at;
    }

    /// Removes the deadline of a thing that ceases to exist.
    pub fn remove(&mut self, key: K, stored: Option<Instant>) {
        if let Some(at) = stored {
            self.0.remove(&(at, key));
        }
    }

    /// Removes and returns the thing with the earliest deadline, if it has passed; its own copy must be cleared.
    pub fn pop_due(&mut self, now: Instant) -> Option<K> {
        self.0.first().filter(|(at, _)| *at <= now)?;
        self.0.pop_first().map(|(_, key)| key)
    }

    /// Returns the earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.0.first().map(|(at, _)| *at)
    }
}

impl<K: Copy + Ord> Default for Deadlines<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// Removes a value from the set with this key, and the set with its last value.
pub(crate) fn remove_from<K: Ord, V: Ord>(sets: &mut BTreeMap<K, BTreeSet<V>>, key: &K, value: &V) {
    if let Some(set) = sets.get_mut(key) {
        set.remove(value);
        if set.is_empty() {
            sets.remove(key);
        }
    }
}

/// Times at which units may be sent so that a rate is not exceeded, apart from bursts after a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacer {
    rate_bps: u64,
    burst: Duration,
    ready_at: Instant,
}

impl Pacer {
    /// Creates a pacer for `rate_bps` bit/s, zero for no limit. Unused time is lost beyond `burst`.
    pub const fn new(rate_bps: u64, burst: Duration) -> Self {
        Pacer { rate_bps, burst, ready_at: Instant::ZERO }
    }

    /// Changes the rate, zero for no limit. What is left to wait takes as long as it does at the new rate.
    pub fn set_rate(&mut self, now: Instant, rate_bps: u64) {
        let before = core::mem::replace(&mut self.rate_bps, rate_bps);
        if before == rate_bps || self.ready_at <= now {
            return;
        }
        let left = self.ready_at.saturating_since(now).as_nanos() * u128::from(before);
        let left = u64::try_from(left / u128::from(rate_bps.max(1))).unwrap_or(u64::MAX);
        self.ready_at = if rate_bps == 0 { now } else { now + Duration::from_nanos(left) };
    }

    /// Makes the next unit ready at this time.
    pub fn restart(&mut self, now: Instant) {
        self.ready_at = now;
    }

    /// Accounts for a unit that is sent now.
    pub fn spend(&mut self, now: Instant, bytes: u64) {
        if self.rate_bps == 0 {
            return;
        }
        let nanos = (u128::from(bytes) * 8 * 1_000_000_000).div_ceil(u128::from(self.rate_bps));
        let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        let burst = u64::try_from(self.burst.as_nanos()).unwrap_or(u64::MAX);
        let earliest = Instant::from_nanos(now.as_nanos().saturating_sub(burst));
        self.ready_at = self.ready_at.max(earliest) + cost;
    }

    /// Returns the time from which the next unit may be sent: all units before it have then passed at the rate.
    pub fn ready_at(&self) -> Instant {
        self.ready_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn delays_double_up_to_the_maximum_until_an_attempt_succeeds() {
        let mut backoff = Backoff::new(SECOND, SECOND * 5);
        assert_eq!([0; 5].map(|_| backoff.fail().as_secs()), [1, 2, 4, 5, 5]);
        assert_eq!((backoff.failures(), backoff.delay()), (5, SECOND * 5));
        backoff.succeed();
        assert_eq!((backoff.delay(), backoff.fail(), backoff.failures()), (SECOND, SECOND, 1));
        let mut endless = Backoff { failures: u32::MAX, ..Backoff::new(Duration::MAX, Duration::MAX) };
        assert_eq!((endless.fail(), endless.failures()), (Duration::MAX, u32::MAX));
    }

    #[test]
    fn deadlines_pass_in_their_order_and_each_thing_has_one() {
        let at = |seconds| Some(Instant::from_secs(seconds));
        let (mut deadlines, mut stored) = (Deadlines::new(), [None; 4]);
        for (key, seconds) in [(0, 5), (1, 3), (2, 3), (3, 9), (0, 2), (0, 4)] {
            deadlines.set(key, &mut stored[key], at(seconds));
        }
        assert_eq!((deadlines.next(), stored[0]), (at(3), at(4)));
        assert_eq!(deadlines.pop_due(Instant::from_secs(2)), None);
        let due: Vec<_> = core::iter::from_fn(|| deadlines.pop_due(Instant::from_secs(4))).collect();
        assert_eq!(due, [1, 2, 0]);
        deadlines.set(3, &mut stored[3], None);
        assert_eq!((deadlines.next(), stored[3]), (None, None));
        deadlines.set(3, &mut stored[3], at(1));
        deadlines.remove(3, stored[3]);
        assert_eq!(deadlines.next(), None);
    }

    #[test]
    fn units_pass_at_the_rate_after_a_burst_that_a_pause_has_earned() {
        let mut pacer = Pacer::new(8_000, SECOND * 2);
        pacer.restart(Instant::from_secs(10));
        let now = Instant::from_secs(10);
        pacer.spend(now, 1_000);
        assert_eq!(pacer.ready_at(), Instant::from_secs(11));
        // A pause of 89 seconds earns two.
        let later = Instant::from_secs(100);
        let ready = [0; 3].map(|_| {
            pacer.spend(later, 1_000);
            pacer.ready_at().saturating_since(Instant::from_secs(98))
        });
        assert_eq!(ready, [SECOND, SECOND * 2, SECOND * 3]);
        let mut changed = Pacer::new(8_000, Duration::ZERO);
        changed.spend(Instant::ZERO, 4_000);
        changed.set_rate(Instant::from_secs(1), 16_000);
        assert_eq!(
            changed.ready_at(),
            Instant::from_millis(2_500),
            "three seconds are left, half as long at twice the rate"
        );
        let mut odd = Pacer::new(3, Duration::ZERO);
        odd.spend(now, 1);
        assert_eq!(odd.ready_at().saturating_since(now), Duration::from_nanos(2_666_666_667), "rounded up");
        let mut unlimited = Pacer::new(0, Duration::ZERO);
        unlimited.spend(now, u64::MAX);
        assert_eq!(unlimited.ready_at(), Instant::ZERO);
    }
}
