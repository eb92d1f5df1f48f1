//! Bytes of the files that have arrived at the destination over the time of a run.

use longwire_proto::time::{Duration, Instant};
use std::sync::{Arc, Mutex};

/// Number of points above which every other one is left out.
const POINTS_MAX: usize = 256;
/// Time without arrivals whose beginning and end are kept.
const PAUSE: Duration = Duration::from_secs(1);

/// Arrivals of a run, shared between the destination and the reader.
pub type SharedArrivals = Arc<Mutex<Arrivals>>;

/// Course of the arrivals, with a bounded number of points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Arrivals {
    points: Vec<(Instant, u64)>,
    /// Latest point, if it is not kept.
    latest: Option<(Instant, u64)>,
    /// Bytes between two points without a pause.
    step_bytes: u64,
}

impl Arrivals {
    /// Adds the number of bytes that have arrived until now. It is lower than before where a transfer starts over.
    pub fn add(&mut self, now: Instant, bytes: u64) {
        let before = self.latest.take().or(self.points.last().copied());
        let is_pause = |(at, count): &(Instant, u64)| now.saturating_since(*at) > PAUSE || bytes < *count;
        let kept = self.points.last().copied();
        self.points.extend(before.filter(is_pause).filter(|point| kept != Some(*point)));
        let is_far =
            |(_, count): &(Instant, u64)| bytes.abs_diff(*count) >= self.step_bytes || bytes < *count;
        match self.points.last().is_none_or(is_far) || before.is_some_and(|point| is_pause(&point)) {
            true => self.points.push((now, bytes)),
            false => self.latest = Some((now, bytes)),
        }
        if self.points.len() > POINTS_MAX {
            let span = self.points.iter().map(|(_, count)| *count).max().unwrap_or(0);
            self.step_bytes = (self.step_bytes * 2).max(span / POINTS_MAX as u64 * 4);
            let mut index = 0;
            self.points.retain(|_| {
                index += 1;
                index % 2 == 1
            });
        }
    }

    /// Iterates over all points, in order.
    pub fn points(&self) -> impl Iterator<Item = (Instant, u64)> {
        self.points.iter().copied().chain(self.latest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(arrivals: impl IntoIterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
        let mut all = Arrivals::default();
        arrivals.into_iter().for_each(|(ms, bytes)| all.add(Instant::from_nanos(ms * 1_000_000), bytes));
        all.points().map(|(at, bytes)| (at.as_nanos() / 1_000_000, bytes)).collect()
    }

    #[test]
    fn points_are_bounded_in_order_and_end_with_the_last_arrival() {
        let points = of((0..10_000).map(|at| (at * 10, at * 100)));
        assert!(points.len() <= POINTS_MAX + 1 && points.len() > POINTS_MAX / 4, "{}", points.len());
        assert!(points.is_sorted() && points.last() == Some(&(99_990, 999_900)));
    }

    #[test]
    fn a_pause_has_its_beginning_and_its_end_and_a_start_over_falls() {
        let before = (0..1_000).map(|at| (at * 10, at * 100));
        let after = (0..1_000).map(|at| (300_000 + at * 10, 100_000 + at * 100));
        let points = of(before.chain(after));
        assert!(points.contains(&(9_990, 99_900)) && points.contains(&(300_000, 100_000)), "{points:?}");
        let points = of([(0, 10), (10, 20), (20, 30), (30, 5), (40, 15)]);
        assert!(points.windows(2).any(|pair| pair == [(20, 30), (30, 5)]), "{points:?}");
    }
}
