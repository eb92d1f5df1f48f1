//! Scales of axes, linear and logarithmic.

use super::plot::Axis;
use crate::format::figure;

/// Conversion from values to positions.
pub(super) struct Scale {
    pub(super) log: bool,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) from: f64,
    pub(super) to: f64,
}

impl Scale {
    pub(super) fn of(axis: &Axis, values: impl Iterator<Item = f64>, from: f64, to: f64) -> Scale {
        let mut scale = Scale { log: axis.log, low: f64::INFINITY, high: f64::NEG_INFINITY, from, to };
        for value in values {
            if scale.takes(value) {
                scale.low = scale.low.min(value);
                scale.high = scale.high.max(value);
            }
        }
        if scale.low > scale.high {
            (scale.low, scale.high) = if axis.log { (1.0, 10.0) } else { (0.0, 1.0) };
        }
        if axis.log {
            scale.whole_decades()
        } else {
            scale.room(axis.from_zero)
        }
        scale
    }

    fn whole_decades(&mut self) {
        self.low = 10f64.powi(libm::floor(libm::log10(self.low) + 1e-9) as i32);
        self.high = 10f64.powi(libm::ceil(libm::log10(self.high) - 1e-9) as i32);
        if self.low == self.high {
            self.high = self.low * 10.0;
        }
    }

    fn room(&mut self, from_zero: bool) {
        if from_zero {
            (self.low, self.high) = (self.low.min(0.0), self.high.max(0.0));
        }
        if self.low == self.high {
            (self.low, self.high) = (self.low - 0.5, self.high + 0.5);
        }
        let space = (self.high - self.low) * 0.04;
        self.high += space;
        if !(from_zero && self.low == 0.0) {
            self.low -= space;
        }
    }

    pub(super) fn takes(&self, value: f64) -> bool {
        value.is_finite() && (!self.log || value > 0.0)
    }

    pub(super) fn place(&self, value: f64) -> f64 {
        let share = if self.log {
            libm::log10(value / self.low) / libm::log10(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        self.from + share * (self.to - self.from)
    }

    /// Round values, about `count` of them, with their labels.
    pub(super) fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        if self.log {
            return self.log_ticks();
        }
        let rough = (self.high - self.low) / count as f64;
        let power = 10f64.powi(libm::floor(libm::log10(rough)) as i32);
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|&s| s >= rough).unwrap_or(power);
        let (first, last) = ((self.low / step).ceil() as i64, (self.high / step).floor() as i64);
        (first..=last).map(|i| i as f64 * step).map(|tick| (tick, figure(tick))).collect()
    }

    fn log_ticks(&self) -> Vec<(f64, String)> {
        let decades = libm::round(libm::log10(self.high / self.low)) as i32;
        let steps: &[f64] = if decades <= 2 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let ticks = (0..=decades).flat_map(|d| steps.iter().map(move |s| s * 10f64.powi(d)));
        let inside = ticks.map(|tick| tick * self.low).filter(|&tick| tick <= self.high * 1.000_001);
        inside.map(|tick| (tick, figure(tick))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scale(axis: &Axis, values: &[f64]) -> Scale {
        Scale::of(axis, values.iter().copied(), 0.0, 100.0)
    }

    fn labels(scale: &Scale, count: usize) -> Vec<String> {
        scale.ticks(count).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let delays = scale(&Axis::new("delay", "ms").from_zero(), &[1280.0, 5000.0]);
        assert_eq!(labels(&delays, 6), ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]);
        let rates = scale(&Axis::new("rate", "").log(), &[0.0, 3e-6, 2e-5]);
        assert_eq!(labels(&rates, 6), ["1e-6", "2e-6", "5e-6", "1e-5", "2e-5", "5e-5", "1e-4"]);
        assert!(!rates.takes(0.0), "zero has no place on a logarithmic axis");
        for (value, scale) in [(1280.0, &delays), (5000.0, &delays), (3e-6, &rates), (2e-5, &rates)] {
            assert!((0.0..=100.0).contains(&scale.place(value)), "{value}");
        }
        let one = scale(&Axis::new("", ""), &[7.0]);
        assert!((one.place(7.0) - 50.0).abs() < 1e-9, "a single value stands in the middle");
        assert!(scale(&Axis::new("", ""), &[]).place(0.5).is_finite(), "and none is no trouble");
    }
}
