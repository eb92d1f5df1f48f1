//! Clock of a node.

use longwire_proto::settings;
use longwire_proto::time::Instant;

/// True DTN time at the beginning of a run: 2026-01-01 00:00:00 UTC, in milliseconds since 2000-01-01 (RFC 9171 4.2.6).
pub const EPOCH_DTN_MS: u64 = 820_540_800_000;

settings! {
    /// Configuration of the clock of a node. The default clock is right.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ClockConfig {
        /// False for a node without a clock. Default: true.
        pub present: bool = true,
        /// Initial offset from true time, milliseconds (negative: behind). Default: 0.
        pub offset_ms: i64,
        /// Drift, nanoseconds per second (positive: too fast). Default: 0.
        pub drift_ppb: i64,
        /// Jumps, in order of time. Default: none.
        pub jumps: Vec<Jump>,
    }
}

/// Jump of a clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Jump {
    /// Time of the jump.
    pub at: Instant,
    /// Size of the jump, milliseconds (negative: back).
    pub by_ms: i64,
}

impl ClockConfig {
    /// Makes a node without a clock.
    pub fn none() -> Self {
        ClockConfig { present: false, ..Self::default() }
    }

    /// Returns the DTN time of the clock in milliseconds; `None` without a clock. At least 1, because zero in a bundle
    /// means that there is no clock.
    pub fn dtn_ms(&self, now: Instant) -> Option<u64> {
        if !self.present {
            return None;
        }
        let elapsed = i128::from(now.as_nanos());
        let drifted = elapsed + elapsed * i128::from(self.drift_ppb) / 1_000_000_000;
        let jumps: i128 =
            self.jumps.iter().filter(|jump| jump.at <= now).map(|jump| i128::from(jump.by_ms)).sum();
        let shown =
            i128::from(EPOCH_DTN_MS) + drifted.div_euclid(1_000_000) + i128::from(self.offset_ms) + jumps;
        Some(u64::try_from(shown.max(1)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_drifts_jumps_or_is_missing() {
        let hour = Instant::from_secs(3600);
        let shown = |clock: &ClockConfig| clock.dtn_ms(hour).map(|ms| ms as i64 - EPOCH_DTN_MS as i64);
        let right = ClockConfig::default();
        assert_eq!(shown(&right), Some(3_600_000));
        assert_eq!(shown(&ClockConfig::none()), None);
        let fast = ClockConfig { offset_ms: -200, drift_ppb: 50_000, ..right.clone() };
        assert_eq!(shown(&fast), Some(3_600_000 - 200 + 180));
        let jump = |at, by_ms| Jump { at: Instant::from_secs(at), by_ms };
        let jumpy = ClockConfig { jumps: vec![jump(10, 500), jump(3600, -900), jump(3601, 7)], ..right };
        assert_eq!(shown(&jumpy), Some(3_600_000 - 400));
        let ancient = ClockConfig { offset_ms: i64::MIN, ..ClockConfig::default() };
        assert_eq!(ancient.dtn_ms(hour), Some(1), "zero would say that there is no clock");
    }
}
