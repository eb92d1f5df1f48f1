//! Queue on the way from a sender, as the delay of its probes shows: the way of the loss-tolerant variant to tell losses from full queues
//! and others apart.
//!
//! The queue counts as filled when the delay is in the upper half of the range that was seen, and until it is in the lowest third
//! ("Spike", Cen, Cosman and Voelker, IEEE/ACM Trans. Networking 11(5), 2003). A path without a queue, or with one that is shorter than the
//! variation of other delays, shows its congestion by the number of losses alone.

use super::super::wire::Timestamp;
use crate::time::{Duration, Instant};

/// Time for which the range of delays counts; twice that at most, as routes and clocks change.
const SPAN: Duration = Duration::from_secs(30);
/// Least range of delays that is the work of a queue, microseconds.
const RANGE_MIN_US: i64 = 2_000;
/// Number of messages of which the share of losses is computed, between half of it and all.
const SHARE_MESSAGES: f64 = 256.0;
/// Share of losses from which on they are congestion.
const SHARE_MAX: f64 = 1.0 / 3.0;

/// Least and greatest delay, microseconds; both with the unknown difference of the clocks.
#[derive(Clone, Copy, Debug)]
struct Range {
    least: i64,
    greatest: i64,
}

impl Range {
    fn joined(self, other: Range) -> Range {
        Range { least: self.least.min(other.least), greatest: self.greatest.max(other.greatest) }
    }
}

/// Delays and losses on the way from a sender.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Range of the delays of this span and of the one before, and the begin of this one.
    ranges: Option<(Range, Range)>,
    since: Instant,
    is_filled: bool,
    /// Latest messages, and those of them that were lost.
    messages: f64,
    lost: f64,
}

impl Queue {
    /// Notes the arrival of a probe.
    pub(super) fn probe(&mut self, now: Instant, sent: Timestamp) {
        // Times far apart are those of clocks without a relation; their difference still has a meaning.
        let sent = i64::try_from(sent.as_micros()).unwrap_or(i64::MAX);
        let delay = (now.as_nanos() / 1_000) as i64 - sent;
        let one = Range { least: delay, greatest: delay };
        let (mut current, mut before) = self.ranges.unwrap_or((one, one));
        if now >= self.since + SPAN {
            (before, current, self.since) = (current, one, now);
        }
        current = current.joined(one);
        self.ranges = Some((current, before));
        let Range { least, greatest } = current.joined(before);
        let (range, above) = (greatest - least, delay - least);
        self.is_filled =
            range >= RANGE_MIN_US && if self.is_filled { above >= range / 3 } else { above >= range / 2 };
    }

    /// Notes messages that arrived, and others that did not.
    pub(super) fn count(&mut self, arrived: u64, lost: u64) {
        self.messages += (arrived + lost) as f64;
        self.lost += lost as f64;
        if self.messages >= SHARE_MESSAGES {
            let share = self.lost / self.messages;
            (self.messages, self.lost) = (SHARE_MESSAGES / 2.0, share * SHARE_MESSAGES / 2.0);
        }
    }

    /// Returns true if losses are those of congestion now.
    pub(super) fn is_congested(&self) -> bool {
        self.is_filled || (self.messages >= SHARE_MESSAGES / 4.0 && self.lost > SHARE_MAX * self.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probes with these delays in milliseconds, one per second, on a clock that is a day ahead; which of them find the queue filled.
    fn filled(delays: &[u64]) -> Vec<bool> {
        let mut queue = Queue::default();
        let find = |(second, delay): (u64, &u64)| {
            let sent = Timestamp::from_micros((86_400 + second) * 1_000_000);
            queue.probe(Instant::from_millis(second * 1_000 + delay), sent);
            queue.is_congested()
        };
        (0..).zip(delays).map(find).collect()
    }

    #[test]
    fn the_queue_is_filled_from_the_middle_of_the_range_to_its_lowest_third() {
        assert_eq!(filled(&[50, 50, 51]), [false; 3], "as much as machines vary");
        let found = filled(&[50, 80, 110, 75, 69, 75, 81]);
        assert_eq!(found, [false, true, true, true, false, false, true]);
    }

    #[test]
    fn the_range_follows_the_route_within_a_minute() {
        let mut delays = vec![10, 100];
        delays.extend([100; 70]);
        let found = filled(&delays);
        assert!(found[1] && found[30] && !found[71]);
    }

    #[test]
    fn many_losses_are_congestion_whatever_the_delay() {
        let mut queue = Queue::default();
        (0..1_000).for_each(|_| queue.count(4, 1));
        assert!(!queue.is_congested());
        (0..300).for_each(|_| queue.count(1, 1));
        assert!(queue.is_congested());
    }
}
