//! Loss events and the intervals between them (RFC 4654 5.2 to 5.6).

use super::losses::Gap;
use crate::time::{Duration, Instant};
use std::collections::VecDeque;

/// Weights of the latest intervals, the current one first (RFC 4654 5.4).
const WEIGHTS: [f64; 8] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// Least share of its weight that an older interval keeps while the current one is long (RFC 4654 5.5).
const DISCOUNT_MIN: f64 = 0.5;

/// Interval that has ended.
#[derive(Clone, Copy, Debug)]
struct Interval {
    messages: f64,
    /// Share of its weight that it keeps.
    discount: f64,
}

/// Loss events of a receiver.
#[derive(Debug, Default)]
pub(super) struct History {
    /// Intervals that have ended, the latest first, as many as there are weights.
    intervals: VecDeque<Interval>,
    /// First message of the latest event, and the time at which it would have arrived; `None` without events.
    event: Option<(u64, Instant)>,
}

impl History {
    /// Returns true if there was no loss event.
    pub(super) fn is_empty(&self) -> bool {
        self.event.is_none()
    }

    /// Notes lost messages. `initial` returns the interval before the first event.
    pub(super) fn lose(&mut self, gap: &Gap, round_trip: Duration, initial: impl FnOnce() -> f64) {
        let total = gap.after.saturating_since(gap.before).as_secs_f64();
        let share_s = total / (gap.messages() + 1) as f64;
        let at =
            |number: u64| gap.before + Duration::from_secs_f64(share_s * (number + 1 - gap.first) as f64);
        let mut next = gap.first;
        let mut initial = Some(initial);
        // Older intervals than there are weights for do not matter.
        for _ in 0..=WEIGHTS.len() {
            match self.event {
                None => {
                    let messages = initial.take().map_or(1.0, |initial| initial());
                    self.intervals.push_front(Interval { messages, discount: 1.0 });
                }
                Some((_, since)) => {
                    let later = (since + round_trip).saturating_since(at(next)).as_secs_f64();
                    // The first message that is lost more than a round trip after the event began.
                    next += if at(next) > since + round_trip { 0 } else { messages_in(later, share_s) };
                    if next > gap.last {
                        return;
                    }
                    self.end_interval(next);
                }
            }
            self.event = Some((next, at(next)));
        }
    }

    fn end_interval(&mut self, next: u64) {
        let discount = self.discount(next);
        self.intervals.iter_mut().for_each(|interval| interval.discount *= discount);
        let messages = self.current(next);
        self.intervals.push_front(Interval { messages, discount: 1.0 });
        self.intervals.truncate(WEIGHTS.len());
    }

    /// Number of messages since the latest event began.
    fn current(&self, highest: u64) -> f64 {
        self.event.map_or(0.0, |(first, _)| highest.saturating_sub(first) as f64)
    }

    /// Weighted sum of intervals that have ended, and the sum of their weights.
    fn ended(&self, weights: &[f64]) -> (f64, f64) {
        let weighted = self.intervals.iter().zip(weights).map(|(interval, weight)| {
            (interval.messages * interval.discount * weight, interval.discount * weight)
        });
        weighted.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Share of their weight that older intervals have, because the current one is much longer.
    fn discount(&self, highest: u64) -> f64 {
        let (messages, weight) = self.ended(&WEIGHTS);
        let mean = messages / weight;
        let current = self.current(highest);
        if current > 2.0 * mean { (2.0 * mean / current).max(DISCOUNT_MIN) } else { 1.0 }
    }

    /// Returns the share of loss events among all messages up to one; zero without events.
    pub(super) fn share(&self, highest: u64) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let discount = self.discount(highest);
        let (without, weight_without) = self.ended(&WEIGHTS);
        let (older, weight_older) = self.ended(&WEIGHTS[1..]);
        let with = self.current(highest) * WEIGHTS[0] + older * discount;
        let weight_with = WEIGHTS[0] + weight_older * discount;
        (weight_without / without).min(weight_with / with.max(1.0)).min(1.0)
    }
}

/// Number of messages that pass in a time, one more than fit into it.
fn messages_in(seconds: f64, each_s: f64) -> u64 {
    if each_s > 0.0 { (seconds / each_s) as u64 + 1 } else { u64::from(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUND_TRIP: Duration = Duration::from_millis(10);

    /// A gap from one message, one per millisecond.
    fn gap(first: u64, messages: u64) -> Gap {
        let last = first + messages - 1;
        Gap { first, last, before: Instant::from_millis(first - 1), after: Instant::from_millis(last + 1) }
    }

    fn history(gaps: &[(u64, u64)]) -> History {
        let mut history = History::default();
        for (first, messages) in gaps {
            history.lose(&gap(*first, *messages), ROUND_TRIP, || 100.0);
        }
        history
    }

    #[test]
    fn losses_of_one_round_trip_are_one_event() {
        let once = history(&[(1_000, 1)]);
        assert!((once.share(1_000) - 0.01).abs() < 1e-9, "the initial interval");
        let joined = history(&[(1_000, 1), (1_005, 3), (1_010, 1)]);
        assert_eq!(joined.intervals.len(), 1);
        let apart = history(&[(1_000, 1), (1_011, 1)]);
        assert_eq!((apart.intervals.len(), apart.intervals[0].messages), (2, 11.0));
    }

    #[test]
    fn long_gaps_are_several_events() {
        let long = history(&[(1_000, 35)]);
        let lengths: Vec<f64> = long.intervals.iter().map(|interval| interval.messages).collect();
        assert_eq!(lengths, [11.0, 11.0, 11.0, 100.0]);
        let longest = history(&[(1_000, 30_000)]);
        assert_eq!(longest.intervals.len(), 8, "no more than matter");
    }

    #[test]
    fn regular_losses_have_their_share() {
        let gaps: Vec<(u64, u64)> = (1..=20).map(|event| (event * 50, 1)).collect();
        let history = history(&gaps);
        assert!((history.share(1_000) - 0.02).abs() < 1e-9);
        assert!((history.share(1_050) - 0.02).abs() < 1e-9, "the current interval does not lower the mean");
        // (200 + 0.5 * (3 + 0.8 + 0.6 + 0.4 + 0.2) * 50) / (1 + 2.5) messages: half of the weight is left of the older ones.
        let mean = 325.0 / 3.5;
        assert!((history.share(1_200) - 1.0 / mean).abs() < 1e-9, "{}", 1.0 / history.share(1_200));
    }
}
