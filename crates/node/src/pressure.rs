//! Pressure: what all connections together keep in memory.
//!
//! Every connection has a window of its own for what comes in, and a queue for what goes out; a thousand of them at a time
//! could still fill any memory. So there is a limit on the sum. While it is reached, a connection reads and queues no more
//! than a small share, which keeps everybody going; and while as much waits for the store, nobody reads anything.
//!
//! Units: bytes.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

/// What a connection may have in any case: more than any head of a bundle, which is kept until it is whole.
pub(crate) const SHARE_BYTES: u64 = 32 * 1024;

/// What has come in over all connections and is not dealt with.
#[derive(Debug)]
pub(crate) struct Pressure {
    most: u64,
    unreleased: AtomicU64,
    store: AtomicU64,
    /// Pumps that wait for the store.
    waiting: Mutex<Vec<Waker>>,
}

impl Pressure {
    pub(crate) fn new(most: u64) -> Self {
        Pressure { most, unreleased: AtomicU64::new(0), store: AtomicU64::new(0), waiting: Mutex::default() }
    }

    /// Bytes that came in and are not released.
    pub(crate) fn unreleased(&self) -> u64 {
        self.unreleased.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.unreleased.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, bytes: u64) {
        self.unreleased.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Whether a connection that has so much unreleased, of this window, may read on. If only the store is in the way, it
    /// is woken when that has caught up.
    pub(crate) fn allows(&self, unreleased: u64, window: u64, waker: &Waker) -> bool {
        if unreleased >= window {
            return false;
        }
        if self.store.load(Ordering::Relaxed) >= self.most {
            let mut waiting = self.waiting.lock().expect("no thread panics with it");
            if !waiting.iter().any(|other| other.will_wake(waker)) {
                waiting.push(waker.clone());
            }
            return false;
        }
        unreleased < SHARE_BYTES || self.unreleased() < self.most
    }

    /// So much waits for the store.
    pub(crate) fn set_store(&self, bytes: u64) {
        self.store.store(bytes, Ordering::Relaxed);
        if bytes < self.most {
            let waiting = std::mem::take(&mut *self.waiting.lock().expect("no thread panics with it"));
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_bounded_and_nobody_stands_still() {
        let pressure = Pressure::new(1 << 20);
        let waker = Waker::noop();
        assert!(pressure.allows(100_000, 200_000, waker));
        assert!(!pressure.allows(200_000, 200_000, waker));
        pressure.add(1 << 20);
        assert!(!pressure.allows(100_000, 200_000, waker));
        assert!(pressure.allows(SHARE_BYTES - 1, 200_000, waker));
        pressure.set_store(1 << 20);
        assert!(!pressure.allows(0, 200_000, waker) && !pressure.allows(0, 200_000, waker));
        assert_eq!(pressure.waiting.lock().unwrap().len(), 1, "however often it asks");
        pressure.set_store(0);
        assert!(pressure.allows(0, 200_000, waker));
    }
}
