//! Lateness of packets: the time from their arrival on the link to their delivery to the program.

use longwire_proto::time::Duration;
use serde::Serialize;
use std::collections::BTreeMap;

/// Distribution of the lateness of packets, with two significant digits, in memory of constant size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lateness {
    /// Packets by lateness, microseconds.
    counts: BTreeMap<u64, u64>,
    count: u64,
    most_us: u64,
}

/// Figures of a distribution, milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct LatenessFigures {
    /// Number of packets.
    pub packets: u64,
    /// Half of the packets were less late than this.
    pub median_ms: f64,
    /// 99 of 100 packets were less late than this.
    pub p99_ms: f64,
    /// Maximum.
    pub max_ms: f64,
}

impl Lateness {
    /// Records a packet.
    pub fn record(&mut self, late: Duration) {
        let us = u64::try_from(late.as_micros()).unwrap_or(u64::MAX);
        *self.counts.entry(two_digits(us)).or_default() += 1;
        self.count += 1;
        self.most_us = self.most_us.max(us);
    }

    /// Returns the figures of the distribution.
    pub fn figures(&self) -> LatenessFigures {
        let ms = |us: u64| us as f64 / 1e3;
        LatenessFigures {
            packets: self.count,
            median_ms: ms(self.quantile(0.5)),
            p99_ms: ms(self.quantile(0.99)),
            max_ms: ms(self.most_us),
        }
    }

    fn quantile(&self, share: f64) -> u64 {
        let wanted = (share * self.count as f64).ceil() as u64;
        let mut below = 0;
        let found = self.counts.iter().find(|(_, count)| {
            below += **count;
            below >= wanted
        });
        found.map_or(0, |(us, _)| *us)
    }
}

/// The number with all digits but the first two replaced by zeros.
fn two_digits(number: u64) -> u64 {
    let unit = 10_u64.pow(number.checked_ilog10().unwrap_or(0).saturating_sub(1));
    number / unit * unit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_have_two_digits_and_the_maximum_all() {
        let mut lateness = Lateness::default();
        assert_eq!(lateness.figures(), LatenessFigures::default());
        for us in 1..=1000 {
            lateness.record(Duration::from_micros(us));
        }
        lateness.record(Duration::from_micros(1_234_567));
        let figures = lateness.figures();
        assert_eq!((figures.packets, figures.median_ms, figures.p99_ms), (1001, 0.5, 0.99));
        assert_eq!(figures.max_ms, 1234.567);
    }

    #[test]
    fn memory_does_not_grow_with_the_packets() {
        let mut lateness = Lateness::default();
        for us in 0..1_000_000 {
            lateness.record(Duration::from_micros(us));
        }
        assert!(lateness.counts.len() < 500, "{}", lateness.counts.len());
        assert_eq!(two_digits(0), 0);
        assert_eq!(two_digits(u64::MAX), 18_000_000_000_000_000_000);
    }
}
