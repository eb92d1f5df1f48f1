//! Congestion control: TFMCC (RFC 4654) as NORM has it (RFC 5740 5.5.2).
//!
//! ```text
//!  sender                                                            receivers
//!    | CMD(CC): number, time, rate, limiting receiver and round-trip times --> | count lost messages, measure their rate
//!    |  <---- ACK(CC) or NACK, at once from the limiting receiver, from others after a random delay:
//!    |        share of loss events, rate of reception, time of the probe
//!    | rate = that of the receiver with the least one ------------------------> |
//! ```
//!
//! - **Receivers** find losses in the numbers of messages (RFC 4654 5.1), join those of a round trip into loss events, and
//!   state the share of these events among messages. Before the first one they state twice the rate at which they receive.
//! - **The sender** computes a rate for each receiver by the equation of TCP's throughput, and follows the receiver with the
//!   least one, the current limiting receiver: down at once, up by one segment per round trip for each round trip. It begins
//!   with a slow start, which doubles the rate in a round trip at most, and halves its rate when that receiver is silent.
//! - **Loss-tolerant** ([`CongestionControl::TfmccLossTolerant`]), a setting of the receiver: a loss is a loss event only while messages wait in
//!   a queue, as the delay of probes shows, or while more than a third of all messages is lost.
//!
//! # Differences from RFC 5740 and RFC 4654
//!
//! - Round-trip times below 10 ms count as 10 ms, and probes are no more frequent: below that, delays of the machines prevail, and
//!   the path is left to others.
//! - The losses of a slow start are one loss event, until a probe tells that the sender has ended it.
//! - A newer probe does not end the random delay before feedback: with one probe in a round trip, receivers with longer delays would never
//!   answer.
//! - Rates are limited to twice the rate of reception also after a loss (the flag [`CcFlags::LIMIT`](super::wire::CcFlags::LIMIT), which NRL's
//!   implementation has), as in RFC 5348: a path that has become slower is noticed within a round trip.
//! - While the round-trip time is above its mean, the rate is lowered by the root of their ratio (RFC 5348 4.5), so that a queue and the mean,
//!   which follows it slowly, do not swing.
//! - After a break the rate is halved for each second of it, or for each 10 round trips if these are longer (RFC 4654 3.6 has 10 round trips,
//!   RFC 5740 one), and doubles again in a round trip up to what it was.
//! - The low bits of the loss are in the reserved field, as in NRL's implementation; a field of zero has none.
//! - One-way delays do not change the round-trip time between probes (RFC 4654 4.3.3), and receivers ignore marks of ECN.

mod control;
mod history;
mod losses;
mod monitor;
mod queue;

pub(super) use control::{RateControl, Report};
pub(super) use monitor::{Monitor, Probe};

use crate::time::Duration;
use serde::{Deserialize, Serialize};

/// Way in which the rate is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CongestionControl {
    /// The rate is fixed.
    #[default]
    None,
    /// A share of the path's rate that is fair to TCP; all losses count (RFC 5740 5.5.2).
    Tfmcc,
    /// The same, but this side, where it receives, counts only losses from queues that are full.
    TfmccLossTolerant,
}

/// Shortest round-trip time that counts, and shortest interval of probes.
pub(super) const ROUND_TRIP_MIN: Duration = Duration::from_millis(10);

/// Returns the round-trip time, in seconds, as it counts.
fn counted(round_trip: Duration) -> f64 {
    round_trip.max(ROUND_TRIP_MIN).as_secs_f64()
}

/// Returns the rate, in bytes per second, at which TCP would send (RFC 5740 5.5.2), from the length of a message in bytes, the round-trip
/// time in seconds and the share of loss events.
fn equation(bytes: f64, round_trip_s: f64, losses: f64) -> f64 {
    let p = losses.clamp(1e-9, 1.0);
    let timeouts = 12.0 * libm::sqrt(3.0 / 8.0 * p) * p * (1.0 + 32.0 * p * p);
    bytes / (round_trip_s * (libm::sqrt(2.0 / 3.0 * p) + timeouts))
}

/// Returns the number of messages between loss events with which the equation, without timeouts, has a rate (RFC 4654 5.6).
fn interval_of(rate: f64, bytes: f64, round_trip_s: f64) -> f64 {
    let per_round_trip = rate * round_trip_s / (libm::sqrt(1.5) * bytes);
    (per_round_trip * per_round_trip).max(1.0)
}

/// Changes a mean by the next sample, which has a share of it.
fn blend(mean: &mut f64, sample: f64, share: f64) {
    *mean += share * (sample - *mean);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of a hundredth gives about 1.2 / sqrt(p) segments in a round trip, less those that timeouts cost.
    #[test]
    fn the_equation_and_its_inverse_agree() {
        let rate = equation(1_000.0, 0.1, 0.01);
        assert!((rate / 1_000.0 * 0.1 - 11.2).abs() < 0.1, "{rate}");
        for losses in [1e-6, 1e-4, 1e-3] {
            let interval = interval_of(equation(1_000.0, 0.1, losses), 1_000.0, 0.1);
            assert!((interval * losses - 1.0).abs() < 0.02, "{losses}: {interval}");
        }
        assert!(equation(1_000.0, 0.1, 1.0) < 100.0, "less than a segment in ten round trips");
        assert_eq!(equation(1_000.0, 0.1, 0.0), equation(1_000.0, 0.1, 1e-9));
    }
}
