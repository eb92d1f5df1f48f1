//! How far a long computation is: counted by its threads, read by whoever shows it; and whether it is to end early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Units done, of a total that may grow. Shared by reference between threads.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    stop: Arc<AtomicBool>,
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

    /// True once it is to end early.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
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
}
