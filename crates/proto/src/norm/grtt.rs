//! Greatest round-trip time of a group, as its sender measures it (RFC 5740 5.5.1, RFC 5401 3.7.1).

use super::quantities;
use crate::time::Duration;

/// Greatest round-trip time of a group.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grtt {
    estimate: Duration,
    /// Greatest measurement since the last probe; `None` without one.
    peak: Option<Duration>,
    max: Duration,
    /// The estimate is a measurement, not the initial value.
    is_measured: bool,
}

impl Grtt {
    pub(super) fn new(initial: Duration, max: Duration) -> Self {
        Grtt { estimate: initial.min(max), peak: None, max, is_measured: false }
    }

    /// Adds the measurement of a receiver.
    pub(super) fn measure(&mut self, round_trip: Duration) {
        let round_trip = round_trip.clamp(quantities::TIME_MIN, self.max);
        self.peak = Some(self.peak.map_or(round_trip, |peak| peak.max(round_trip)));
        if round_trip > self.estimate || !self.is_measured {
            self.estimate = round_trip;
        }
        self.is_measured = true;
    }

    /// Ends the time in which answers to a probe are expected: the estimate falls towards the greatest of them, by a tenth at most.
    pub(super) fn end_of_probe(&mut self) {
        if let Some(peak) = self.peak.take().filter(|peak| *peak < self.estimate) {
            self.estimate = peak.max(self.estimate.mul_f64(0.9));
        }
    }

    /// Returns the estimate.
    pub(super) fn estimate(&self) -> Duration {
        self.estimate
    }

    /// Returns true if a receiver was measured.
    pub(super) fn is_measured(&self) -> bool {
        self.is_measured
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_rises_at_once_and_falls_by_a_tenth_per_probe() {
        let millis = Duration::from_millis;
        let mut grtt = Grtt::new(millis(500), millis(2_000));
        grtt.end_of_probe();
        assert_eq!((grtt.estimate(), grtt.is_measured()), (millis(500), false), "no answer changes nothing");
        grtt.measure(millis(100));
        assert_eq!(
            (grtt.estimate(), grtt.is_measured()),
            (millis(100), true),
            "the first one replaces the guess"
        );
        grtt.measure(millis(200));
        grtt.measure(millis(50));
        assert_eq!(grtt.estimate(), millis(200));
        grtt.end_of_probe();
        assert_eq!(grtt.estimate(), millis(200), "the greatest one was the estimate");
        grtt.measure(millis(50));
        grtt.end_of_probe();
        assert_eq!(grtt.estimate(), millis(180));
        grtt.measure(millis(175));
        grtt.end_of_probe();
        assert_eq!(grtt.estimate(), millis(175));
        grtt.measure(millis(9_000));
        assert_eq!(grtt.estimate(), millis(2_000));
    }
}
