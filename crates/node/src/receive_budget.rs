//! Pressure: what all connections together keep in memory.
//!
//! Every connection has a window of its own for what comes in, and a queue for what goes out; a thousand of them at a time
//! could still fill any memory. So there is a limit on the sum. While it is reached, a connection reads and queues no more
//! than a small share, which keeps everybody going; and while as much waits for the store, nobody reads anything.
//!
//! Received bytes are handed on without a copy, and may stay: in the store's cache, in the queue of a peer that reads nothing. A
//! little of it keeps the whole buffer that it came in. So buffers count for as long as anything of them is left; and while they
//! are too many, what stays is copied, and buffers are short.
//!
//! Units: bytes.

use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// What a connection may have in any case: more than any head of a bundle, which is kept until it is whole.
pub(crate) const SHARE_BYTES: u64 = 32 * 1024;

/// What has come in over all connections and is not dealt with.
#[derive(Debug)]
pub(crate) struct ReceiveBudget {
    most: u64,
    unreleased: AtomicU64,
    store: AtomicU64,
    /// Of buffers of which something is left.
    buffers: AtomicU64,
    /// Pumps that wait for the store.
    waiting: Mutex<Vec<Waker>>,
}

impl ReceiveBudget {
    pub(crate) fn new(most: u64) -> Self {
        ReceiveBudget {
            most,
            unreleased: AtomicU64::new(0),
            store: AtomicU64::new(0),
            buffers: AtomicU64::new(0),
            waiting: Mutex::default(),
        }
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

    /// True while the buffers of which something is left are as much as may be kept: what stays is better copied.
    pub(crate) fn is_full_of_buffers(&self) -> bool {
        self.buffers.load(Ordering::Relaxed) >= self.most
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

/// The memory of a buffer, which counts until nothing of it is left.
#[derive(Debug)]
pub(crate) struct BufferMemory {
    bytes: u64,
    all: Arc<ReceiveBudget>,
}

impl BufferMemory {
    pub(crate) fn new(bytes: usize, all: Arc<ReceiveBudget>) -> Arc<Self> {
        let bytes = bytes as u64;
        all.buffers.fetch_add(bytes, Ordering::Relaxed);
        Arc::new(BufferMemory { bytes, all })
    }

    /// Bytes of that buffer, which keep it.
    pub(crate) fn part(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        Bytes::from_owner(BufferPart { bytes, _memory: self.clone() })
    }
}

impl Drop for BufferMemory {
    fn drop(&mut self) {
        self.all.buffers.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Bytes of a buffer.
struct BufferPart {
    bytes: Bytes,
    _memory: Arc<BufferMemory>,
}

impl AsRef<[u8]> for BufferPart {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_counts_until_nothing_of_it_is_left() {
        let receive_budget = Arc::new(ReceiveBudget::new(1000));
        let memory = BufferMemory::new(1000, receive_budget.clone());
        let mut part = memory.part(Bytes::from_static(b"abc"));
        drop(memory);
        let little = part.split_off(2);
        drop(part);
        assert!(receive_budget.is_full_of_buffers());
        assert_eq!(little, "c");
        drop(little);
        assert!(!receive_budget.is_full_of_buffers());
    }

    #[test]
    fn the_sum_is_bounded_and_nobody_stands_still() {
        let receive_budget = ReceiveBudget::new(1 << 20);
        let waker = Waker::noop();
        assert!(receive_budget.allows(100_000, 200_000, waker));
        assert!(!receive_budget.allows(200_000, 200_000, waker));
        receive_budget.add(1 << 20);
        assert!(!receive_budget.allows(100_000, 200_000, waker));
        assert!(receive_budget.allows(SHARE_BYTES - 1, 200_000, waker));
        receive_budget.set_store(1 << 20);
        assert!(!receive_budget.allows(0, 200_000, waker) && !receive_budget.allows(0, 200_000, waker));
        assert_eq!(receive_budget.waiting.lock().unwrap().len(), 1, "however often it asks");
        receive_budget.set_store(0);
        assert!(receive_budget.allows(0, 200_000, waker));
    }
}
