//! Progress of a long computation, counted by its threads and read by a display; with a request to stop early and a
//! record that it did.

use crate::format::figure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Completed units of a total that may grow. Shared by reference between threads.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    left_out: AtomicU64,
    stop: Arc<AtomicBool>,
    is_abandoned: AtomicBool,
    units_max: Option<u64>,
}

impl Progress {
    /// Creates an empty progress.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// Creates the progress of a computation that ends early once `stop` is true, with its results so far.
    pub fn until(stop: Arc<AtomicBool>) -> Progress {
        Progress { stop, ..Progress::default() }
    }

    /// Creates the progress of a computation that ends early after this number of units.
    pub fn up_to(units: u64) -> Progress {
        Progress { units_max: Some(units), ..Progress::default() }
    }

    /// Returns true once the computation has to end early.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.units_max.is_some_and(|units| self.done() >= units)
    }

    /// Ends the computation without a result: no further run begins, not even one of the first round, and the computation
    /// unwinds with [`Abandoned`].
    pub fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
    }

    /// Returns true once nobody waits for the result.
    pub fn is_abandoned(&self) -> bool {
        self.is_abandoned.load(Ordering::Relaxed)
    }

    /// Counts units that are omitted or discarded because of an early stop.
    pub fn leave_out(&self, units: u64) {
        self.left_out.fetch_add(units, Ordering::Relaxed);
    }

    /// Units left out; zero if the computation was complete in spite of a request to stop.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// Describes the number of runs made if some were left out.
    pub fn early_end(&self) -> Option<String> {
        let (left_out, total) = (self.left_out(), self.total());
        let made = || figure(total.saturating_sub(left_out) as f64);
        (left_out > 0)
            .then(|| format!("Stopped early: {} of {} runs completed.", made(), figure(total as f64)))
    }

    /// Adds units to the total.
    pub fn expect(&self, units: u64) {
        self.total.fetch_add(units, Ordering::Relaxed);
    }

    /// Adds completed units.
    pub fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    /// Completed units.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Total units, as far as known.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

/// Payload of the unwinding of a computation that was abandoned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abandoned;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the threads that share it")]
    fn threads_count_together() {
        let progress = Progress::new();
        progress.expect(2000);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..1000).for_each(|_| progress.advance(1)));
            }
        });
        assert_eq!((progress.done(), progress.total()), (2000, 2000));
    }

    #[test]
    fn an_early_end_is_one_in_which_something_was_left_out() {
        let progress = Progress::up_to(3);
        progress.expect(2000);
        progress.advance(3);
        assert!(progress.is_stopped());
        assert_eq!(progress.early_end(), None);
        progress.leave_out(1997);
        let words = "Stopped early: 3 of 2,000 runs completed.";
        assert_eq!((progress.left_out(), progress.early_end().as_deref()), (1997, Some(words)));
    }
}
