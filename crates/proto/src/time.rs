//! Time of engines: nanoseconds since the run began.
//!
//! An [`Instant`] is not wall-clock time and not the machine's clock. The driver decides what zero is: a simulator
//! counts from the start of the run, a daemon from its own start. Durations are `std`'s.

use core::fmt;
use core::ops::{Add, AddAssign, Sub};
pub use core::time::Duration;

/// A point in time: nanoseconds since the run began. The range is 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// Beginning of the run.
    pub const ZERO: Instant = Instant(0);
    /// Last representable instant, later than any event.
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// Returns the instant `nanos` nanoseconds after the run began.
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Returns the instant `millis` milliseconds after the run began.
    pub const fn from_millis(millis: u64) -> Self {
        Instant(millis * 1_000_000)
    }

    /// Returns the instant `secs` seconds after the run began.
    pub const fn from_secs(secs: u64) -> Self {
        Instant(secs * 1_000_000_000)
    }

    /// Returns the nanoseconds since the run began.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the run began, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the time since `earlier`; zero if it is not earlier.
    pub const fn saturating_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    /// Saturates at [`Instant::FAR_FUTURE`], so that a very long wait needs no special case.
    fn add(self, duration: Duration) -> Instant {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        Instant(self.0.saturating_add(nanos))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Instant> for Instant {
    type Output = Duration;
    /// Returns the time between two instants.
    ///
    /// # Panics
    /// Panics if `earlier` is later: time never runs backwards, so this is an error of the caller.
    fn sub(self, earlier: Instant) -> Duration {
        assert!(self.0 >= earlier.0, "time ran backwards: {self} before {earlier}");
        Duration::from_nanos(self.0 - earlier.0)
    }
}

impl fmt::Display for Instant {
    /// Writes seconds with microseconds: `12.345678`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = (self.0 / 1_000_000_000, self.0 / 1000 % 1_000_000);
        f.pad(&format!("{}.{:06}", text.0, text.1))
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A fixed table of deadlines, one for each timer of an engine.
///
/// `N` is the number of timers; an engine indexes it with its own `enum Timer { .. }` cast to `usize`.
///
/// ```
/// use longwire_proto::time::{Duration, Instant, Timers};
/// #[derive(Clone, Copy)]
/// enum Timer { Retransmit, KeepAlive }
/// let mut timers = Timers::<2>::new();
/// timers.set(Timer::KeepAlive as usize, Instant::from_secs(30));
/// timers.set(Timer::Retransmit as usize, Instant::from_secs(3));
/// assert_eq!(timers.next(), Some(Instant::from_secs(3)));
/// assert!(timers.expire(Timer::Retransmit as usize, Instant::from_secs(3)));
/// assert!(!timers.expire(Timer::Retransmit as usize, Instant::from_secs(4)), "a timer expires once");
/// ```
#[derive(Clone, Debug)]
pub struct Timers<const N: usize>([Option<Instant>; N]);

impl<const N: usize> Timers<N> {
    /// Creates a table with no timer running.
    pub const fn new() -> Self {
        Timers([None; N])
    }

    /// Starts or restarts a timer.
    pub fn set(&mut self, timer: usize, at: Instant) {
        self.0[timer] = Some(at);
    }

    /// Stops a timer; stopping one that is not running is harmless.
    pub fn stop(&mut self, timer: usize) {
        self.0[timer] = None;
    }

    /// Stops every timer.
    pub fn stop_all(&mut self) {
        self.0 = [None; N];
    }

    /// Returns the deadline of the timer; `None` if it does not run.
    pub fn get(&self, timer: usize) -> Option<Instant> {
        self.0[timer]
    }

    /// Returns true, once, if the timer is due at `now`, and stops it.
    pub fn expire(&mut self, timer: usize, now: Instant) -> bool {
        let due = self.0[timer].is_some_and(|at| at <= now);
        if due {
            self.0[timer] = None;
        }
        due
    }

    /// Returns the earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.0.iter().flatten().min().copied()
    }
}

impl<const N: usize> Default for Timers<N> {
    fn default() -> Self {
        Self::new()
    }
}
