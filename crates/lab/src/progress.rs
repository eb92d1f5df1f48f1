//! How far a long computation is: counted by its threads, read by whoever shows it; and whether it is to end early, and did.

use crate::report::figure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Units done, of a total that may grow. Shared by reference between threads.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    left_out: AtomicU64,
    stop: Arc<AtomicBool>,
    units_max: Option<u64>,
}

impl Progress {
    /// Nothing done, nothing to do.
    pub fn new() -> Progress {
        Progress::default()
    }

    /// The same, of a computation that ends early once `stop` is true: with what it has then.
    pub fn until(stop: Arc<AtomicBool>) -> Progress {
        Progress { stop, ..Progress::default() }
    }

    /// The same, of a computation that ends early once so many units are done.
    pub fn up_to(units: u64) -> Progress {
        Progress { units_max: Some(units), ..Progress::default() }
    }

    /// True once it is to end early.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.units_max.is_some_and(|units| self.done() >= units)
    }

    /// Notes units that are not done, or count for nothing, because it ended early.
    pub fn leave_out(&self, units: u64) {
        self.left_out.fetch_add(units, Ordering::Relaxed);
    }

    /// Units left out: none if it did not end early, whatever it was told.
    pub fn left_out(&self) -> u64 {
        self.left_out.load(Ordering::Relaxed)
    }

    /// How many runs there are, in words, if some were left out.
    pub fn early_end(&self) -> Option<String> {
        let (left_out, total) = (self.left_out(), self.total());
        let made = || figure(total.saturating_sub(left_out) as f64);
        (left_out > 0)
            .then(|| format!("Stopped early: {} of {} runs were made.", made(), figure(total as f64)))
    }

    /// So many units more are to be done.
    pub fn expect(&self, units: u64) {
        self.total.fetch_add(units, Ordering::Relaxed);
    }

    /// So many units more are done.
    pub fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    /// Units done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Units to be done in all, as far as is known.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
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
        let words = "Stopped early: 3 of 2,000 runs were made.";
        assert_eq!((progress.left_out(), progress.early_end().as_deref()), (1997, Some(words)));
    }
}
