//! Memory limit for received data, over all connections.
//!
//! Each connection has a window for received data and a queue for data to send; a thousand connections could still fill any memory.
//! So there is a limit on the sum: a connection may use as much as is left of it, so each one less than those before it had. Without
//! anything left, a connection reads and queues no more than a small share, which is enough to make progress; while as many bytes
//! wait for the store, no connection reads.
//!
//! Received bytes are passed on without a copy and may stay: in the store's cache, in the queue of a peer that does not read. A few
//! bytes keep the whole buffer that they arrived in. So a buffer counts for as long as any part of it is in use; while there are too
//! many, bytes that stay are copied, and buffers are short.
//!
//! Units: bytes.

use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;

/// Bytes that each connection may use in any case: more than the longest header of a bundle, which is kept until it is complete.
pub(crate) const SHARE_BYTES: u64 = 32 * 1024;

/// Bytes received over all connections and not processed yet.
#[derive(Debug, Default)]
pub(crate) struct ReceiveBudget {
    most: u64,
    unreleased: AtomicU64,
    store: AtomicU64,
    /// Bytes of buffers that are partly in use.
    buffers: AtomicU64,
    /// Pumps that wait for the store.
    waiting: Mutex<Vec<Waker>>,
}

impl ReceiveBudget {
    pub(crate) fn new(most: u64) -> Self {
        ReceiveBudget { most, ..ReceiveBudget::default() }
    }

    /// Bytes received and not released.
    pub(crate) fn unreleased(&self) -> u64 {
        self.unreleased.load(Ordering::Relaxed)
    }

    pub(crate) fn add(&self, bytes: u64) {
        self.unreleased.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self, bytes: u64) {
        self.unreleased.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// True if a connection with `unreleased` bytes out of its `window` may read on. If only the store is behind, `waker` is
    /// woken when it has caught up.
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
        unreleased < SHARE_BYTES || unreleased < self.most.saturating_sub(self.unreleased())
    }

    /// True while the buffers in use reach the limit: bytes that stay must be copied.
    pub(crate) fn is_full_of_buffers(&self) -> bool {
        self.buffers.load(Ordering::Relaxed) >= self.most
    }

    /// Sets the number of bytes that wait for the store.
    pub(crate) fn set_store(&self, bytes: u64) {
        self.store.store(bytes, Ordering::Relaxed);
        if bytes < self.most {
            let waiting = std::mem::take(&mut *self.waiting.lock().expect("no thread panics with it"));
            waiting.into_iter().for_each(Waker::wake);
        }
    }
}

/// Memory of a buffer; it counts until no part of it is in use.
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

    /// Returns bytes of this buffer that keep it in memory.
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

    /// Connections that read as much as they may: a few cannot take all.
    #[test]
    fn a_connection_leaves_as_much_as_it_uses() {
        let receive_budget = ReceiveBudget::new(32 << 20);
        let used = [(); 4].map(|()| {
            let mut unreleased = 0;
            while receive_budget.allows(unreleased, 64 << 20, Waker::noop()) {
                receive_budget.add(1 << 20);
                unreleased += 1 << 20;
            }
            unreleased >> 20
        });
        assert_eq!(used, [16, 8, 4, 2]);
    }

    #[test]
    fn the_sum_is_bounded_and_nobody_stands_still() {
        let receive_budget = ReceiveBudget::new(1 << 20);
        // Two wakers are compared by the addresses of their tables, and the table of the original may be another one than that of copies.
        let waker = &Waker::noop().clone();
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
