//! Round trip and retransmission timeout, measured with timestamps.

use super::config::Config;
use crate::time::{Duration, Instant};

/// Number of rounds of timeouts that are taken for losses of single segments.
const SINGLE_LOSSES: u32 = 10;

/// Measured round trip of a peer (the estimator of RFC 6298).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoundTrip {
    smoothed: Option<Duration>,
    variation: Duration,
    /// Timeouts since the last answer.
    failures: u32,
    /// An answer has ended a silence in which the timeout had grown.
    silence_ended: bool,
    /// Time before which further timeouts are of the same round.
    round_ends_at: Instant,
}

impl RoundTrip {
    /// Accounts for an answer to a segment that left at this time.
    pub(super) fn measure(&mut self, sample: Duration) {
        self.answered();
        match self.smoothed {
            None => (self.smoothed, self.variation) = (Some(sample), sample / 2),
            Some(smoothed) => {
                let difference = smoothed.abs_diff(sample);
                self.variation = (self.variation * 3 + difference) / 4;
                self.smoothed = Some((smoothed * 7 + sample) / 8);
            }
        }
    }

    /// Smoothed round trip; `None` before the first answer.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// An answer has come; its round trip is unknown.
    pub(super) fn answered(&mut self) {
        self.silence_ended |= self.failures > SINGLE_LOSSES;
        self.failures = 0;
    }

    /// Returns true, once, if timers that began in a silence wait too long.
    pub(super) fn take_silence_ended(&mut self) -> bool {
        core::mem::take(&mut self.silence_ended)
    }

    /// A timer has expired. Those of several segments in one timeout count once.
    pub(super) fn fail(&mut self, now: Instant, config: &Config) {
        if now >= self.round_ends_at {
            self.failures = self.failures.saturating_add(1);
            self.round_ends_at = now + self.timeout(config);
        }
    }

    /// Returns the retransmission timeout. It doubles while nothing at all is heard.
    pub(super) fn timeout(&self, config: &Config) -> Duration {
        let measured = self.smoothed.map(|smoothed| {
            let margin = (self.variation * 4).max(config.mack_interval).max(Duration::from_millis(1));
            smoothed.saturating_add(margin).saturating_add(config.reordering)
        });
        let timeout = measured.unwrap_or(config.rto_initial).max(config.rto_min);
        // The first timeouts in a row are those of single segments, which are lost where bits are.
        timeout.saturating_mul(1 << self.failures.saturating_sub(SINGLE_LOSSES).min(16)).min(config.rto_max)
    }
}

/// Returns a time as the timestamp of a packet, microseconds. Zero is that of answers that return none.
pub(super) fn timestamp(now: Instant) -> u32 {
    (micros(now) as u32).max(1)
}

/// Returns a time in microseconds.
pub(super) fn micros(now: Instant) -> u64 {
    now.as_nanos() / 1_000
}

/// Difference by which a timestamp is taken for one of the future.
const FUTURE_MICROS: u32 = 60_000_000;

/// Returns the time, in microseconds, that a timestamp of the last 70 minutes states; `None` if it is in the future or states none.
pub(super) fn departure(now: Instant, stamp: u32) -> Option<u64> {
    if stamp == 0 {
        return None;
    }
    let age = timestamp(now).wrapping_sub(stamp);
    if age > u32::MAX - FUTURE_MICROS { None } else { micros(now).checked_sub(age.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_the_round_trip_and_doubles_in_silence() {
        let config = Config::default();
        let mut trip = RoundTrip::default();
        assert_eq!(trip.timeout(&config), config.rto_initial);
        trip.measure(Duration::from_millis(20));
        assert_eq!(trip.timeout(&config), Duration::from_millis(62));
        for _ in 0..100 {
            trip.measure(Duration::from_millis(20));
        }
        assert_eq!(trip.timeout(&config).as_millis(), 27, "not less than the interval of acknowledgements");
        let mut now = Instant::ZERO;
        let timeouts = [0; 13].map(|_| {
            now += Duration::from_secs(1);
            trip.fail(now, &config);
            trip.fail(now, &config);
            trip.timeout(&config).as_millis()
        });
        assert_eq!(timeouts[9..], [27, 54, 108, 216]);
        trip.answered();
        assert_eq!(trip.timeout(&config).as_millis(), 27);
    }

    #[test]
    fn timestamps_pass_zero() {
        let now = Instant::from_secs(5_000);
        let stamp = timestamp(Instant::from_secs(4_290));
        assert_eq!(departure(now, stamp), Some(4_290_000_000));
        assert_eq!(departure(now, timestamp(now + Duration::from_secs(1))), None);
        assert_eq!(departure(Instant::from_secs(1), stamp), None);
        assert_eq!(departure(now, 0), None);
    }
}
