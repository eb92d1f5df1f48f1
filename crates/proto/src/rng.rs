//! Seeded random numbers, frozen for ever: the same seed gives the same numbers on every machine and in every version.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, 2019), seeded by SplitMix64. A generator is forked by *name*,
//! from its seed and not from its state: one more draw in one engine changes no other engine's numbers.

/// A deterministic random number generator. Not for keys.
#[derive(Clone, Debug)]
pub struct Rng {
    seed: u64,
    state: [u64; 4],
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// Creates a generator that depends on `seed` alone.
    pub fn new(seed: u64) -> Self {
        let mut mixer = seed;
        Rng { seed, state: [(); 4].map(|()| split_mix(&mut mixer)) }
    }

    /// Returns an independent generator for the part called `name`. It depends on this generator's seed and on the
    /// name, not on how many numbers were drawn.
    ///
    /// ```
    /// use longwire_proto::rng::Rng;
    /// let mut world = Rng::new(7);
    /// let early = world.fork("channel").next_u64();
    /// world.next_u64();
    /// assert_eq!(world.fork("channel").next_u64(), early);
    /// assert_ne!(world.fork("disk").next_u64(), early);
    /// ```
    pub fn fork(&self, name: &str) -> Rng {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64 ^ self.seed.rotate_left(17);
        for byte in name.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        let mut mixer = hash ^ self.seed;
        Rng::new(split_mix(&mut mixer))
    }

    /// Returns the next 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Returns the next 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Returns a number below `bound`, uniformly distributed (Lemire's multiplication; the bias is below 2^-64 *
    /// bound).
    ///
    /// # Panics
    /// Panics if `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below zero");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number in `[0, 1)` with 53 random bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Returns true with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Returns the number of failures before the next success, if each trial succeeds with probability `p`: the gap
    /// between two bit errors. `u64::MAX` if `p` is not above zero.
    pub fn geometric(&mut self, p: f64) -> u64 {
        if p <= 0.0 {
            return u64::MAX;
        }
        if p >= 1.0 {
            return 0;
        }
        let gap = libm::log1p(-self.unit()) / libm::log1p(-p);
        if gap >= 1.8e19 { u64::MAX } else { gap as u64 }
    }

    /// Returns an exponentially distributed waiting time with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log1p(-self.unit()) * mean
    }

    /// Fills `bytes` with random bytes.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.next_u64().to_le_bytes()[..chunk.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_frozen() {
        let mut rng = Rng::new(1);
        let drawn = [(); 3].map(|()| rng.next_u64());
        assert_eq!(drawn, [0xcfc5_d07f_6f03_c29b, 0xbf42_4132_963f_e08d, 0x19a3_7d57_57aa_f520]);
    }

    #[test]
    fn a_geometric_gap_has_the_right_mean() {
        let mut rng = Rng::new(3);
        let draws = 20_000;
        let total: u64 = (0..draws).map(|_| rng.geometric(1e-3)).sum();
        let mean = total as f64 / f64::from(draws);
        assert!((mean - 999.0).abs() < 25.0, "mean gap {mean}");
    }

    #[test]
    fn no_errors_at_rate_zero_and_all_at_rate_one() {
        let mut rng = Rng::new(3);
        assert_eq!(rng.geometric(0.0), u64::MAX);
        assert_eq!(rng.geometric(1.0), 0);
    }
}
