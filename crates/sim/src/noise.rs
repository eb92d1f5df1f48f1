//! Bit errors, drawn along the time axis of a line.
//!
//! Time on a line is counted in bit slots (one slot: one bit at the line's rate). Which slots are wrong depends
//! on the seed alone, never on what is sent: two protocols on the same line meet the same noise at the same time.
//!
//! * **Even** noise: each slot is wrong with probability p. The gaps are geometric, one draw for each error; the
//!   axis is cut into blocks with a generator each, so that a line that was idle for a month costs nothing.
//! * **Bursts** (Gilbert 1960, Elliott 1963): the line is good or bad; how long it stays so is geometric in bits,
//!   and each state has its own error rate. The line goes on changing while nothing is sent.

use crate::channel::{Errors, GilbertElliott};
use longwire_proto::rng::Rng;

/// The errors of one direction of a channel.
#[derive(Debug)]
pub(crate) enum Noise {
    Quiet,
    Even(Even),
    Bursts(Bursts),
}

impl Noise {
    pub(crate) fn new(errors: &Errors, rng: &Rng) -> Self {
        match errors {
            Errors::None => Noise::Quiet,
            Errors::Ber(rate) if *rate <= 0.0 => Noise::Quiet,
            Errors::Ber(rate) => Noise::Even(Even::new(*rate, rng)),
            Errors::GilbertElliott(model) => Noise::Bursts(Bursts::new(*model, rng)),
        }
    }

    /// The first wrong slot in `from..to`. `from` never goes back.
    pub(crate) fn find(&mut self, from: u64, to: u64) -> Option<u64> {
        match self {
            Noise::Quiet => None,
            Noise::Even(even) => even.find(from, to),
            Noise::Bursts(bursts) => bursts.find(from, to),
        }
    }
}

/// Geometric gaps at one error rate, the logarithm taken once.
#[derive(Clone, Copy, Debug)]
struct Gaps {
    rate: f64,
    scale: f64,
}

impl Gaps {
    fn new(rate: f64) -> Self {
        assert!((0.0..=1.0).contains(&rate), "an error rate lies between 0 and 1, not at {rate}");
        Gaps { rate, scale: 1.0 / libm::log1p(-rate) }
    }

    /// How many right bits come before the next wrong one.
    fn draw(self, rng: &mut Rng) -> u64 {
        if self.rate <= 0.0 {
            return u64::MAX;
        }
        if self.rate >= 1.0 {
            return 0;
        }
        // A float beyond the range of the integer becomes its greatest value.
        (libm::log1p(-rng.unit()) * self.scale) as u64
    }
}

/// Slots in a block: 2^20.
const BLOCK_BITS: u32 = 20;

/// Independent errors at one rate.
#[derive(Debug)]
pub(crate) struct Even {
    gaps: Gaps,
    seed: u64,
    rng: Rng,
    /// The next error; or, if not `drawn`, the beginning of a block that has not been looked into.
    at: u64,
    drawn: bool,
}

impl Even {
    fn new(rate: f64, rng: &Rng) -> Self {
        let seed = rng.fork("even noise").next_u64();
        Even { gaps: Gaps::new(rate), seed, rng: Rng::new(seed), at: 0, drawn: false }
    }

    fn find(&mut self, from: u64, to: u64) -> Option<u64> {
        while self.at < to {
            if self.drawn && self.at >= from {
                return Some(self.at);
            }
            let block = from.max(self.at) >> BLOCK_BITS;
            let candidate = if self.drawn && block == self.at >> BLOCK_BITS {
                (self.at + 1).saturating_add(self.gaps.draw(&mut self.rng))
            } else {
                self.rng = Rng::new(self.seed.wrapping_add(block.wrapping_mul(0xd134_2543_de82_ef95)));
                (block << BLOCK_BITS).saturating_add(self.gaps.draw(&mut self.rng))
            };
            let block_end = (block + 1) << BLOCK_BITS;
            self.drawn = candidate < block_end;
            self.at = candidate.min(block_end);
        }
        None
    }
}

/// The two-state model.
#[derive(Debug)]
pub(crate) struct Bursts {
    good: State,
    bad: State,
    rng: Rng,
    in_bad: bool,
    /// Where the present sojourn ends.
    end: u64,
    /// The errors of the present sojourn.
    errors: Rng,
    /// The next of them; beyond the end there is none.
    at: u64,
}

#[derive(Clone, Copy, Debug)]
struct State {
    leave: Gaps,
    wrong: Gaps,
}

impl Bursts {
    fn new(model: GilbertElliott, rng: &Rng) -> Self {
        assert!(
            model.good_bits_mean >= 1.0 && model.bad_bits_mean >= 1.0,
            "a state of a Gilbert-Elliott line lasts a bit or more"
        );
        let state = |mean: f64, rate: f64| State { leave: Gaps::new(1.0 / mean), wrong: Gaps::new(rate) };
        let mut rng = rng.fork("bursts");
        // It begins as it is in the long run.
        let in_bad = rng.chance(model.bad_bits_mean / (model.good_bits_mean + model.bad_bits_mean));
        let mut bursts = Bursts {
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

    fn state(&self) -> State {
        if self.in_bad { self.bad } else { self.good }
    }

    /// Begins a sojourn where the last one ended.
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
