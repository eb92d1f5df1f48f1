//! One-way delays that change with time.

use longwire_proto::time::{Duration, Instant};

/// Delay as a function of time: constant, or piecewise linear.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delay {
    /// Constant delay.
    Constant(Duration),
    /// Linear interpolation between points in order of time; constant before the first and after the last point.
    Schedule(Vec<DelayPoint>),
}

/// Point of a [`Delay::Schedule`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayPoint {
    /// Time.
    pub at: Instant,
    /// One-way delay of bits that leave at this time.
    pub delay: Duration,
}

impl Default for Delay {
    fn default() -> Self {
        Delay::Constant(Duration::ZERO)
    }
}

impl Delay {
    /// Makes a constant delay of `millis` milliseconds.
    pub const fn constant_ms(millis: u64) -> Self {
        Delay::Constant(Duration::from_millis(millis))
    }

    /// Returns the delay of a bit that leaves at `now`.
    pub fn at(&self, now: Instant) -> Duration {
        match self {
            Delay::Constant(delay) => *delay,
            Delay::Schedule(points) => interpolate(points, now),
        }
    }

    /// Returns the minimum delay.
    pub fn min(&self) -> Duration {
        match self {
            Delay::Constant(delay) => *delay,
            Delay::Schedule(points) => points.iter().map(|point| point.delay).min().unwrap_or_default(),
        }
    }

    pub(crate) fn is_ordered(&self) -> bool {
        match self {
            Delay::Constant(_) => true,
            Delay::Schedule(points) => points.windows(2).all(|pair| pair[0].at <= pair[1].at),
        }
    }
}

fn interpolate(points: &[DelayPoint], now: Instant) -> Duration {
    let after = points.partition_point(|point| point.at <= now);
    match (after.checked_sub(1).and_then(|before| points.get(before)), points.get(after)) {
        (Some(a), Some(b)) => {
            // Rounded down over the whole line, so that a delay that shrinks no faster than time passes never lets a
            // later bit overtake an earlier one.
            let (from, to) = (a.delay.as_nanos() as i128, b.delay.as_nanos() as i128);
            let (passed, span) =
                (i128::from(now.as_nanos() - a.at.as_nanos()), i128::from(b.at.as_nanos() - a.at.as_nanos()));
            Duration::from_nanos((from + ((to - from) * passed).div_euclid(span)) as u64)
        }
        (Some(only), None) | (None, Some(only)) => only.delay,
        (None, None) => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::rng::Rng;

    #[test]
    fn a_delay_that_shrinks_no_faster_than_time_passes_never_reorders() {
        let mut rng = Rng::new(4);
        for _ in 0..200 {
            let (mut at, mut delay) = (0u64, 5_000_000u64);
            let points = (0..6).map(|_| {
                let point = DelayPoint { at: Instant::from_nanos(at), delay: Duration::from_nanos(delay) };
                let step = 1 + rng.below(3_000_000);
                let change = rng.below(3 * step);
                at += step;
                delay = (delay + change).saturating_sub(step);
                point
            });
            let schedule = Delay::Schedule(points.collect());
            let (mut sent, mut received) = (0, Instant::ZERO);
            while sent < at + 1000 {
                sent += rng.below(2000);
                let now = Instant::from_nanos(sent);
                let arrival = now + schedule.at(now);
                assert!(arrival >= received, "{schedule:?} at {now}");
                received = arrival;
            }
        }
    }

    #[test]
    fn a_delay_that_falls_faster_than_time_passes_reorders() {
        let point = |at, delay| DelayPoint { at: Instant::from_secs(at), delay: Duration::from_secs(delay) };
        let schedule = Delay::Schedule(vec![point(0, 10), point(1, 10), point(1, 2)]);
        let arrival = |millis| Instant::from_millis(millis) + schedule.at(Instant::from_millis(millis));
        assert_eq!(arrival(900), Instant::from_millis(10_900));
        assert_eq!(
            arrival(1000),
            Instant::from_millis(3000),
            "the shorter path counts from its first moment"
        );
        assert_eq!(schedule.min(), Duration::from_secs(2));
    }
}
