//! Retransmission timeout from round-trip samples (RFC 6298), and the rule of Linux for it.

use super::config::{Profile, RtoRule, RttSampling};
use crate::time::{Duration, Instant};

/// Minimum timeout for data if a retransmitted SYN left no sample (RFC 6298 5.7).
const RTO_AFTER_SYN_TIMEOUT: Duration = Duration::from_secs(3);

/// Smoothed round-trip time, its variation, and the timeout with its backoff. All in nanoseconds.
#[derive(Clone, Debug)]
pub(super) struct RttEstimator {
    rule: RtoRule,
    sampling: RttSampling,
    minimum: u64,
    maximum: u64,
    /// Timeout before backoff.
    base: u64,
    smoothed: Option<u64>,
    /// RTTVAR of RFC 6298; four times the variation by the rule of Linux.
    variation: u64,
    /// Rule of Linux: four times the mean deviation, and its maximum in this round trip.
    deviation: u64,
    deviation_highest: u64,
    /// Offset that ends the samples of this round trip.
    round_ends: u64,
    backoff: u32,
    /// Shortest sample.
    pub(super) shortest: Option<Duration>,
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 4).min(u64::MAX / 4)
}

impl RttEstimator {
    pub(super) fn new(profile: &Profile) -> Self {
        RttEstimator {
            rule: profile.rto_rule,
            sampling: profile.rtt_sampling,
            minimum: nanos(profile.rto_minimum),
            maximum: nanos(profile.rto_maximum).max(1),
            base: nanos(profile.rto_initial),
            smoothed: None,
            variation: 0,
            deviation: 0,
            deviation_highest: 0,
            round_ends: 0,
            backoff: 0,
            shortest: None,
        }
    }

    /// Adds a sample from an acknowledgement up to `acknowledged`; `sent` is the end of the data sent. Ends the backoff
    /// (RFC 6298 5; by Karn's algorithm only unambiguous samples arrive here).
    pub(super) fn sample(&mut self, measured: Duration, acknowledged: u64, sent: u64) {
        self.shortest = Some(self.shortest.map_or(measured, |shortest| shortest.min(measured)));
        self.backoff = 0;
        let measured = nanos(measured).max(1);
        match self.rule {
            RtoRule::Rfc6298 => self.sample_rfc6298(measured, acknowledged, sent),
            RtoRule::Linux => self.sample_linux(measured, acknowledged, sent),
        }
    }

    /// RFC 6298 2.2 and 2.3.
    fn sample_rfc6298(&mut self, measured: u64, acknowledged: u64, sent: u64) {
        if self.sampling == RttSampling::PerRoundTrip {
            if self.smoothed.is_some() && acknowledged < self.round_ends {
                return;
            }
            self.round_ends = sent;
        }
        let smoothed = match self.smoothed {
            None => {
                self.variation = measured / 2;
                measured
            }
            Some(smoothed) => {
                self.variation = (3 * self.variation + smoothed.abs_diff(measured)) / 4;
                (7 * smoothed + measured) / 8
            }
        };
        self.smoothed = Some(smoothed);
        self.base = (smoothed + 4 * self.variation).max(self.minimum);
    }

    /// Follows a rise at once and a fall once per round trip; a sample below the mean counts an eighth of one above it.
    fn sample_linux(&mut self, measured: u64, acknowledged: u64, sent: u64) {
        let smoothed = match self.smoothed {
            None => {
                self.deviation = 2 * measured;
                self.variation = self.deviation.max(self.minimum);
                self.deviation_highest = self.variation;
                self.round_ends = sent;
                measured
            }
            Some(smoothed) => {
                let quarter = self.deviation / 4;
                let distance = smoothed.abs_diff(measured);
                self.deviation = if distance <= quarter {
                    self.deviation - (quarter - distance)
                } else if measured < smoothed {
                    self.deviation + (distance - quarter) / 8
                } else {
                    self.deviation + (distance - quarter)
                };
                self.deviation_highest = self.deviation_highest.max(self.deviation);
                self.variation = self.variation.max(self.deviation_highest);
                if acknowledged > self.round_ends {
                    self.variation -= self.variation.saturating_sub(self.deviation_highest) / 4;
                    self.round_ends = sent;
                    self.deviation_highest = self.minimum;
                }
                (7 * smoothed + measured) / 8
            }
        };
        self.smoothed = Some(smoothed);
        self.base = smoothed + self.variation;
    }

    /// The SYN was retransmitted and gave no sample: the timeout for data is at least 3 s (RFC 6298 5.7). By the
    /// standard's rule a longer, backed-off timeout stays, since only a sample ends the backoff (5.5 and the last
    /// paragraph of 5): if 3 s are shorter than the round trip, data would time out spuriously until the first sample.
    /// Linux restarts with 3 s and accepts these timeouts with a peer without timestamps.
    pub(super) fn after_syn_timeout(&mut self) {
        if self.smoothed.is_none() {
            let stands = match self.rule {
                RtoRule::Rfc6298 => nanos(self.timeout()),
                RtoRule::Linux => self.base,
            };
            self.base = stands.max(nanos(RTO_AFTER_SYN_TIMEOUT));
        }
        self.backoff = 0;
    }

    /// The timer expired: doubles the next timeout (RFC 6298 5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(32);
    }

    /// Ends the backoff because nothing was lost after all.
    pub(super) fn forget_backoff(&mut self) {
        self.backoff = 0;
    }

    /// Returns the current timeout after `more` further backoffs.
    pub(super) fn timeout_backed_off(&self, more: u32) -> Duration {
        let shift = (self.backoff + more).min(32);
        let timeout = self.base.checked_mul(1 << shift).unwrap_or(self.maximum);
        Duration::from_nanos(timeout.min(self.maximum))
    }

    /// Returns the current timeout.
    pub(super) fn timeout(&self) -> Duration {
        self.timeout_backed_off(0)
    }

    /// Returns the time at which the timer of a segment that leaves now expires.
    pub(super) fn deadline(&self, now: Instant) -> Instant {
        now + self.timeout()
    }

    /// Returns the smoothed round-trip time, once there is a sample.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(Duration::from_nanos)
    }

    #[cfg(test)]
    pub(super) fn variation(&self) -> Duration {
        match self.rule {
            RtoRule::Rfc6298 => Duration::from_nanos(self.variation),
            RtoRule::Linux => Duration::from_nanos(self.variation / 4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steady(profile: &Profile, round_trip: Duration, samples: u64) -> Duration {
        let mut rtt = RttEstimator::new(profile);
        for sample in 1..=samples {
            rtt.sample(round_trip, sample * 2, sample * 2 + 1);
        }
        rtt.timeout()
    }

    #[test]
    fn the_first_sample_triples() {
        let round_trip = Duration::from_secs(2);
        assert_eq!(steady(&Profile::rfc5681(), round_trip, 1), Duration::from_secs(6));
        assert_eq!(steady(&Profile::linux_6(), round_trip, 1), Duration::from_secs(6));
    }

    #[test]
    fn a_steady_long_round_trip_keeps_a_margin_by_the_rule_of_linux_only() {
        let round_trip = Duration::from_secs(4);
        let standard = steady(&Profile::rfc5681(), round_trip, 100);
        let linux = steady(&Profile::linux_6(), round_trip, 100);
        assert!(standard < round_trip + Duration::from_millis(1), "{standard:?}");
        assert!(linux >= round_trip + Duration::from_millis(200), "{linux:?}");
        assert!(linux < round_trip + Duration::from_millis(210), "{linux:?}");
    }

    #[test]
    fn backoff_doubles_up_to_the_maximum_and_ends_with_a_sample() {
        let mut rtt = RttEstimator::new(&Profile::rfc5681());
        let mut seen = Vec::new();
        for _ in 0..8 {
            seen.push(rtt.timeout().as_secs());
            rtt.back_off();
        }
        assert_eq!(seen, [1, 2, 4, 8, 16, 32, 60, 60]);
        rtt.sample(Duration::from_millis(100), 1, 1);
        assert_eq!(rtt.timeout(), Duration::from_secs(1), "the floor of RFC 6298 2.4");
    }

    #[test]
    fn a_lost_syn_leaves_three_seconds() {
        for profile in [Profile::linux_6(), Profile::rfc5681()] {
            let mut rtt = RttEstimator::new(&profile);
            rtt.back_off();
            rtt.after_syn_timeout();
            assert_eq!(rtt.timeout(), Duration::from_secs(3));
        }
    }

    #[test]
    fn several_lost_syns_leave_what_the_timer_was_backed_off_to_until_there_is_a_sample() {
        for (profile, seconds) in
            [(Profile::ns3_2010(), 12), (Profile::rfc5681(), 4), (Profile::linux_6(), 3)]
        {
            let mut rtt = RttEstimator::new(&profile);
            rtt.back_off();
            rtt.back_off();
            rtt.after_syn_timeout();
            assert_eq!(rtt.timeout(), Duration::from_secs(seconds));
            rtt.back_off();
            assert_eq!(
                rtt.timeout(),
                Duration::from_secs(2 * seconds),
                "data that are not heard of double it"
            );
            rtt.sample(Duration::from_millis(500), 1, 1);
            assert!(rtt.timeout() <= Duration::from_millis(1500), "a sample collapses it");
        }
    }
}
