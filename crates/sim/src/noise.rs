//! Bit errors along the time axis of a line.
//!
//! Time on a line is counted in bit slots (one slot is one bit at the rate of the line). The wrong slots depend only on
//! the seed, never on the data: two protocols on the same line have the same noise at the same time.
//!
//! - **Independent** errors: each slot is wrong with probability p. The gaps are geometric, with one draw for each
//!   error. The axis is divided into blocks with separate generators, so that a line that was idle for a month costs
//!   nothing. Blocks are shorter the more errors there are, so that a block is passed quickly.
//! - **Bursts** (Gilbert 1960, Elliott 1963): the line is good or bad; the duration of each state is geometric in bits,
//!   and each state has its own error rate. The state also changes while nothing is sent.

use crate::channel::{Errors, GilbertElliott, LineConfig};
use longwire_proto::rng::Rng;

/// Errors of one direction of a channel.
#[derive(Debug)]
pub(crate) enum Noise {
    None,
    /// In a box, as bursts are: most of the million paths of a large radio channel have no errors.
    Independent(Box<IndependentErrors>),
    Bursts(Box<BurstErrors>),
    /// Different errors one after the other, each with its first slot.
    Changing(Vec<(u64, Noise)>),
}

impl Noise {
    /// Errors of a line, with their changes.
    pub(crate) fn of_line(config: &LineConfig, rng: &Rng) -> Self {
        let first = Noise::new(&config.errors, rng);
        if config.error_changes.is_empty() {
            return first;
        }
        let changes = config.error_changes.iter().enumerate().map(|(number, change)| {
            let slot = u128::from(change.at.as_nanos()) * u128::from(config.rate_bps) / 1_000_000_000;
            (slot as u64, Noise::new(&change.errors, &rng.fork(&format!("change {number}"))))
        });
        Noise::Changing([(0, first)].into_iter().chain(changes).collect())
    }

    pub(crate) fn new(errors: &Errors, rng: &Rng) -> Self {
        match errors {
            Errors::None => Noise::None,
            Errors::Ber(rate) if *rate <= 0.0 => Noise::None,
            Errors::Ber(rate) => Noise::Independent(Box::new(IndependentErrors::new(*rate, rng))),
            Errors::GilbertElliott(model) => Noise::Bursts(Box::new(BurstErrors::new(*model, rng))),
        }
    }

    /// Returns the first wrong slot in `from..to`. `from` never decreases.
    pub(crate) fn find(&mut self, from: u64, to: u64) -> Option<u64> {
        match self {
            Noise::None => None,
            Noise::Independent(even) => even.find(from, to),
            Noise::Bursts(bursts) => bursts.find(from, to),
            Noise::Changing(parts) => {
                for at in 0..parts.len() {
                    let begin = from.max(parts[at].0);
                    let end = parts.get(at + 1).map_or(to, |next| to.min(next.0));
                    if begin < end
                        && let Some(slot) = parts[at].1.find(begin, end)
                    {
                        return Some(slot);
                    }
                }
                None
            }
        }
    }
}

/// Geometric gaps for one error rate, with the logarithm computed once.
#[derive(Clone, Copy, Debug)]
struct GeometricGaps {
    rate: f64,
    scale: f64,
}

impl GeometricGaps {
    fn new(rate: f64) -> Self {
        GeometricGaps { rate, scale: 1.0 / libm::log1p(-rate) }
    }

    /// Returns the number of right bits before the next wrong one.
    fn draw(self, rng: &mut Rng) -> u64 {
        if self.rate <= 0.0 {
            return u64::MAX;
        }
        if self.rate >= 1.0 {
            return 0;
        }
        // A float beyond the range of the integer becomes its maximum.
        (libm::log1p(-rng.unit()) * self.scale) as u64
    }
}

/// Maximum size of a block: 2^20 slots.
const BLOCK_BITS_MAX: u32 = 20;
/// Maximum of the mean number of errors in a block.
const BLOCK_ERRORS_MAX: f64 = 512.0;

/// Independent errors at one rate.
#[derive(Debug)]
pub(crate) struct IndependentErrors {
    gaps: GeometricGaps,
    /// Binary logarithm of the slots of a block.
    block_bits: u32,
    seed: u64,
    rng: Rng,
    /// Next error if `drawn`, otherwise the beginning of a block that has not been examined.
    at: u64,
    drawn: bool,
}

impl IndependentErrors {
    fn new(rate: f64, rng: &Rng) -> Self {
        let seed = rng.fork("even noise").next_u64();
        let block_bits = ((BLOCK_ERRORS_MAX / rate) as u64).ilog2().min(BLOCK_BITS_MAX);
        IndependentErrors {
            gaps: GeometricGaps::new(rate),
            block_bits,
            seed,
            rng: Rng::new(seed),
            at: 0,
            drawn: false,
        }
    }

    fn find(&mut self, from: u64, to: u64) -> Option<u64> {
        while self.at < to {
            if self.drawn && self.at >= from {
                return Some(self.at);
            }
            let block = from.max(self.at) >> self.block_bits;
            let candidate = if self.drawn && block == self.at >> self.block_bits {
                (self.at + 1).saturating_add(self.gaps.draw(&mut self.rng))
            } else {
                self.rng = Rng::new(self.seed.wrapping_add(block.wrapping_mul(0xd134_2543_de82_ef95)));
                (block << self.block_bits).saturating_add(self.gaps.draw(&mut self.rng))
            };
            let block_end = (block + 1) << self.block_bits;
            self.drawn = candidate < block_end;
            self.at = candidate.min(block_end);
        }
        None
    }
}

/// Two-state model.
#[derive(Debug)]
pub(crate) struct BurstErrors {
    good: BurstState,
    bad: BurstState,
    rng: Rng,
    in_bad: bool,
    /// End of the current stay in a state.
    end: u64,
    /// Generator of the errors of the current stay.
    errors: Rng,
    /// Next error of the current stay; none if beyond its end.
    at: u64,
}

#[derive(Clone, Copy, Debug)]
struct BurstState {
    leave: GeometricGaps,
    wrong: GeometricGaps,
}

impl BurstErrors {
    fn new(model: GilbertElliott, rng: &Rng) -> Self {
        let state = |mean: f64, rate: f64| BurstState {
            leave: GeometricGaps::new(1.0 / mean),
            wrong: GeometricGaps::new(rate),
        };
        let mut rng = rng.fork("bursts");
        // The initial state has the long-term distribution.
        let in_bad = rng.chance(model.bad_bits_mean / (model.good_bits_mean + model.bad_bits_mean));
        let mut bursts = BurstErrors {
            good: state(model.good_bits_mean, model.good_ber),
            bad: state(model.bad_bits_mean, model.bad_ber),
            errors: Rng::new(0),
            rng,
            in_bad,
            end: 0,
            at: 0,
        };
        bursts.enter();
        bursts
    }

    fn state(&self) -> BurstState {
        if self.in_bad { self.bad } else { self.good }
    }

    /// Begins a stay at the end of the previous one.
    fn enter(&mut self) {
        let start = self.end;
        let state = self.state();
        self.end = start.saturating_add(1).saturating_add(state.leave.draw(&mut self.rng));
        self.errors = Rng::new(self.rng.next_u64());
        self.at = start.saturating_add(state.wrong.draw(&mut self.errors));
    }

    fn find(&mut self, from: u64, to: u64) -> Option<u64> {
        loop {
            if self.end > from {
                let wrong = self.state().wrong;
                while self.at < from {
                    self.at = (self.at + 1).saturating_add(wrong.draw(&mut self.errors));
                }
                if self.at < self.end.min(to) {
                    return Some(self.at);
                }
                if to <= self.end {
                    return None;
                }
            }
            self.in_bad = !self.in_bad;
            self.enter();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::ErrorChange;
    use longwire_proto::time::{Duration, Instant};

    const MODEL: GilbertElliott =
        GilbertElliott { good_bits_mean: 20_000.0, bad_bits_mean: 200.0, good_ber: 1e-5, bad_ber: 0.1 };

    fn noise(errors: Errors, seed: u64) -> Noise {
        Noise::new(&errors, &Rng::new(seed))
    }

    /// Returns all errors in a range, from a single call.
    fn errors(noise: &mut Noise, mut from: u64, to: u64) -> Vec<u64> {
        let mut found = Vec::new();
        while let Some(slot) = noise.find(from, to) {
            found.push(slot);
            from = slot + 1;
        }
        found
    }

    #[test]
    fn even_errors_come_at_the_rate_that_was_set() {
        for rate in [1e-6, 1e-5, 1e-3, 0.1, 0.5] {
            let expected = 10_000.0;
            let slots = (expected / rate) as u64;
            let count = errors(&mut noise(Errors::Ber(rate), 7), 0, slots).len() as f64;
            // A binomial count deviates by more than four standard deviations once in 16,000 draws.
            let deviation = libm::sqrt(expected * (1.0 - rate));
            assert!((count - expected).abs() < 4.0 * deviation, "rate {rate}: {count} errors");
        }
    }

    #[test]
    fn gaps_between_even_errors_are_geometric() {
        let rate = 0.01;
        let found = errors(&mut noise(Errors::Ber(rate), 8), 0, 4_000_000);
        let gaps: Vec<f64> = found.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean) * (gap - mean)).sum::<f64>() / gaps.len() as f64;
        let expected = (1.0 - rate) / (rate * rate);
        assert!((variance / expected - 1.0).abs() < 0.06, "variance {variance}, expected {expected}");
    }

    #[test]
    fn no_errors_at_rate_zero_and_all_at_rate_one() {
        assert_eq!(noise(Errors::Ber(0.0), 1).find(0, u64::MAX), None);
        assert_eq!(errors(&mut noise(Errors::Ber(1.0), 1), 5, 9), [5, 6, 7, 8]);
    }

    #[test]
    fn noise_depends_on_the_time_and_not_on_who_asks() {
        for model in [Errors::Ber(3e-4), Errors::Ber(0.02), Errors::GilbertElliott(MODEL)] {
            for seed in 0..20 {
                let end = 5_000_000;
                let all = errors(&mut noise(model, seed), 0, end);
                let mut sparse = noise(model, seed);
                let mut rng = Rng::new(seed);
                let mut at = 0;
                while at < end {
                    let from = at + rng.below(400_000);
                    let to = from + 1 + rng.below(12_000);
                    let expected: Vec<u64> =
                        all.iter().copied().filter(|slot| (from..to).contains(slot)).collect();
                    if to <= end {
                        assert_eq!(errors(&mut sparse, from, to), expected);
                    }
                    at = to;
                }
            }
        }
    }

    #[test]
    fn bursts_have_the_mean_rate_of_their_model() {
        // In bursts, counts deviate more than with independent errors: the runs are averaged, and their own spread is
        // the criterion.
        let (runs, slots) = (200, 500_000u64);
        let rates: Vec<f64> = (0..runs)
            .map(|seed| errors(&mut noise(Errors::GilbertElliott(MODEL), seed), 0, slots).len() as f64)
            .map(|count| count / slots as f64)
            .collect();
        let mean = rates.iter().sum::<f64>() / f64::from(runs as u32);
        let spread = rates.iter().map(|rate| (rate - mean) * (rate - mean)).sum::<f64>();
        let error = libm::sqrt(spread) / f64::from(runs as u32);
        let expected = MODEL.mean_ber();
        assert!((mean - expected).abs() < 4.0 * error, "mean {mean}, expected {expected}, error {error}");
        assert!(error < 0.05 * expected, "the runs say enough: {error}");
    }

    #[test]
    fn errors_change_at_their_times() {
        let change = |millis: u64, rate| ErrorChange {
            at: Instant::ZERO + Duration::from_millis(millis),
            errors: Errors::Ber(rate),
        };
        let config = LineConfig {
            rate_bps: 1_000_000,
            error_changes: vec![change(1000, 0.01), change(1500, 0.0), change(2000, 0.001)],
            ..LineConfig::default()
        };
        let mut noise = Noise::of_line(&config, &Rng::new(5));
        let all = errors(&mut noise, 0, 3_000_000);
        let count = |from: u64, to: u64| all.iter().filter(|slot| (from..to).contains(slot)).count();
        assert_eq!((count(0, 1_000_000), count(1_500_000, 2_000_000)), (0, 0));
        // Expected are 5000 and 1000, with standard deviations of 70 and 32.
        assert!(count(1_000_000, 1_500_000).abs_diff(5000) < 300);
        assert!(count(2_000_000, 3_000_000).abs_diff(1000) < 130);
        // A frame across a change, asked for in parts.
        let mut parts = Noise::of_line(&config, &Rng::new(5));
        let in_parts = (0..3000).flat_map(|part| errors(&mut parts, part * 1000, (part + 1) * 1000));
        assert_eq!(in_parts.collect::<Vec<_>>(), all);
    }

    #[test]
    fn bursts_cluster() {
        let found = errors(&mut noise(Errors::GilbertElliott(MODEL), 3), 0, 20_000_000);
        let close = found.windows(2).filter(|pair| pair[1] - pair[0] < 100).count();
        assert!(
            close * 10 > found.len() * 8,
            "{close} of {} errors follow another within 100 bits",
            found.len()
        );
    }

    #[test]
    fn errors_without_end_are_passed_over() {
        // One frame every second day: drawing all errors in between would take years.
        let mut loud = noise(Errors::Ber(0.5), 1);
        for frame in 0..1000u64 {
            let from = frame * 1_000_000_000_000;
            assert!(loud.find(from, from + 1000).is_some_and(|slot| slot < from + 1000));
        }
    }

    #[test]
    fn a_rare_error_costs_no_search() {
        let mut rare = noise(Errors::Ber(1e-12), 1);
        for frame in 0..10_000u64 {
            rare.find(frame * 100_000_000, frame * 100_000_000 + 12_000);
        }
    }
}
