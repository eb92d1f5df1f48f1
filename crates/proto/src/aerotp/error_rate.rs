//! Measurement of the bit-error rate by the receiver.
//!
//! A segment tells how many of its bits were wrong if the code could correct it. One that could not be corrected has at least the
//! number of errors that the code corrects, and one more; without a code, one of unknown number. In its place stands the mean
//! number of errors at the present rate, given that there is at least that many.
//!
//! The rate is that of the last segments, as far back as they agree with the last few: a likelihood ratio of two Poisson
//! distributions decides whether the rate has changed, and if it has, only the segments since then count.

use std::collections::VecDeque;

/// Number of segments that are remembered.
const SEGMENTS_MAX: usize = 256;
/// Numbers of last segments that are compared with those before.
const RECENT: [usize; 4] = [3, 6, 12, 24];
/// Logarithm of the likelihood ratio from which on the rate has changed.
const CHANGED: f64 = 6.0;
/// Weight of the initial rate, bits.
const PRIOR_BITS: f64 = 1e5;

/// Bit-error rate of one peer.
#[derive(Clone, Debug)]
pub(super) struct ErrorRate {
    /// Bits and errors of the last segments.
    segments: VecDeque<(f64, f64)>,
    bits: f64,
    errors: f64,
    prior_errors: f64,
}

impl ErrorRate {
    pub(super) fn new(initial: f64) -> Self {
        ErrorRate { segments: VecDeque::new(), bits: 0.0, errors: 0.0, prior_errors: initial * PRIOR_BITS }
    }

    /// Bit-error rate.
    pub(super) fn rate(&self) -> f64 {
        // The initial rate counts less, the more is measured.
        let weight = PRIOR_BITS / (1.0 + self.bits / PRIOR_BITS);
        let prior = self.prior_errors / PRIOR_BITS * weight;
        ((self.errors + prior) / (self.bits + weight)).min(0.5)
    }

    /// Accounts for a segment of so many bits, in which `errors` were counted; in a segment that could not be corrected, at least
    /// so many. Returns true if the rate has changed.
    pub(super) fn observe(&mut self, bits: u64, errors: u32, is_lower_bound: bool) -> bool {
        let bits = bits as f64;
        let errors = if is_lower_bound { expected(self.rate() * bits, errors) } else { errors.into() };
        self.push(bits, errors);
        let changed = RECENT.into_iter().find(|recent| self.has_changed(*recent));
        if let Some(recent) = changed {
            self.segments.drain(..self.segments.len() - recent);
            self.bits = self.segments.iter().map(|(bits, _)| bits).sum();
            self.errors = self.segments.iter().map(|(_, errors)| errors).sum();
            self.prior_errors = self.errors / self.bits * PRIOR_BITS;
        }
        changed.is_some()
    }

    fn push(&mut self, bits: f64, errors: f64) {
        self.segments.push_back((bits, errors));
        (self.bits, self.errors) = (self.bits + bits, self.errors + errors);
        if self.segments.len() > SEGMENTS_MAX {
            let (bits, errors) = self.segments.pop_front().expect("there are more");
            (self.bits, self.errors) = ((self.bits - bits).max(0.0), (self.errors - errors).max(0.0));
        }
    }

    /// Returns true if the last `recent` segments have another rate than those before.
    fn has_changed(&self, recent: usize) -> bool {
        if self.segments.len() < 2 * recent {
            return false;
        }
        let last = self.segments.iter().rev().take(recent);
        let (bits, errors) = last.fold((0.0, 0.0), |sum, (bits, errors)| (sum.0 + bits, sum.1 + errors));
        let (other_bits, other_errors) = (self.bits - bits, (self.errors - errors).max(0.0));
        let gain = likelihood(errors, bits) + likelihood(other_errors, other_bits);
        gain - likelihood(self.errors, self.bits) > CHANGED
    }
}

/// Logarithm of the likelihood of a Poisson distribution with the rate that is measured, without what does not depend on it.
fn likelihood(errors: f64, bits: f64) -> f64 {
    if errors <= 0.0 || bits <= 0.0 { 0.0 } else { errors * libm::log(errors / bits) }
}

/// Returns the mean of a Poisson distribution given that it is at least `least`, and at least that.
fn expected(mean: f64, least: u32) -> f64 {
    let mut term = libm::exp(-mean);
    let mut head = 0.0;
    let mut head_mean = 0.0;
    for count in 0..least {
        head += term;
        head_mean += term * f64::from(count);
        term *= mean / f64::from(count + 1);
    }
    let tail = 1.0 - head;
    let conditional = if tail > 1e-9 { (mean - head_mean) / tail } else { 0.0 };
    conditional.max(f64::from(least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const BITS: u64 = 11_232;

    fn errors(rng: &mut Rng, ber: f64) -> u32 {
        let (mut count, mut at) = (0, rng.geometric(ber));
        while at < BITS {
            count += 1;
            at = at.saturating_add(1).saturating_add(rng.geometric(ber));
        }
        count
    }

    #[test]
    fn the_rate_is_that_of_the_channel() {
        for (seed, ber) in [(1, 1e-4), (2, 1e-5), (3, 1e-3)] {
            let (mut rng, mut rate) = (Rng::new(seed), ErrorRate::new(1e-5));
            for _ in 0..256 {
                let errors = errors(&mut rng, ber);
                rate.observe(BITS, errors, false);
            }
            assert!((rate.rate() / ber - 1.0).abs() < 0.5, "{} in place of {ber}", rate.rate());
        }
    }

    #[test]
    fn damaged_segments_without_a_code_tell_the_rate_as_well() {
        let (mut rng, mut rate) = (Rng::new(1), ErrorRate::new(1e-6));
        for _ in 0..256 {
            let errors = errors(&mut rng, 1e-4);
            rate.observe(BITS, errors.min(1), errors > 0);
        }
        assert!((0.5e-4..2e-4).contains(&rate.rate()), "{}", rate.rate());
    }

    #[test]
    fn a_change_is_seen_after_a_few_segments() {
        let mut rate = ErrorRate::new(1e-5);
        (0..256).for_each(|_| _ = rate.observe(BITS, 0, false));
        assert!(rate.rate() < 1e-6);
        let (mut rng, mut later) = (Rng::new(1), 0);
        while rate.rate() < 3e-5 {
            let errors = errors(&mut rng, 1e-4);
            rate.observe(BITS, errors.min(1), errors > 0);
            later += 1;
        }
        assert!(later <= 8, "after {later} segments");
        (0..200).for_each(|_| {
            let errors = errors(&mut rng, 1e-4);
            rate.observe(BITS, errors, false);
        });
        let mut later = 0;
        while rate.rate() > 3e-5 {
            rate.observe(BITS, 0, false);
            later += 1;
        }
        assert!(later <= 12, "after {later} segments");
    }

    #[test]
    fn a_mean_given_a_lower_bound_is_not_below_either() {
        for (mean, least) in [(0.0, 1), (0.001, 1), (1.2, 1), (3.0, 2), (0.5, 9), (1e3, 1)] {
            let expected = expected(mean, least);
            assert!(
                expected >= f64::from(least) && expected >= mean && expected.is_finite(),
                "{mean} {least}"
            );
        }
        // The mean of a Poisson distribution of 1 without zero is 1 / (1 - 1/e).
        assert!((expected(1.0, 1) - 1.0 / (1.0 - libm::exp(-1.0))).abs() < 1e-12);
    }
}
