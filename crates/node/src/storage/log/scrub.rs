//! The scrub: it reads the whole store periodically at a low rate, so that damage is found while it can still be remedied,
//! and not only when a bundle is needed.
//!
//! Units: bytes. Limits: one entry in memory; `storage.scrub-bytes-per-s` during a pass, and `storage.scrub-every` between
//! the end of one pass and the start of the next.

use super::index::ChunkPlace;
use super::{LogReader, lock_index};
use longwire_proto::service::{RecordId, StorageFailure};
use longwire_proto::time::Duration;
use std::io;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};

/// Rate and interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScrubPace {
    /// Time between the end of one pass and the start of the next; with zero the scrub is off.
    pub(crate) every: Duration,
    /// Rate of reading during a pass, bytes per second.
    pub(crate) bytes_per_s: u64,
}

/// Bytes and passes read since the start.
#[derive(Debug, Default)]
struct ScrubCounters {
    bytes: AtomicU64,
    passes: AtomicU64,
}

/// Scrub on its own thread. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct Scrub {
    counted: Arc<ScrubCounters>,
    ends: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Scrub {
    pub(super) fn start(reader: LogReader, pace: ScrubPace) -> io::Result<Self> {
        let counted = Arc::new(ScrubCounters::default());
        let counts = counted.clone();
        let (ends, ended) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("store-scrub".into())
            .spawn(move || run(ScrubPass::new(reader), pace, &counts, &ended))?;
        Ok(Scrub { counted, ends: Some(ends), thread: Some(thread) })
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Returns the bytes read and the passes completed.
    pub(crate) fn counted(&self) -> (u64, u64) {
        (self.counted.bytes.load(Ordering::Relaxed), self.counted.passes.load(Ordering::Relaxed))
    }
}

impl Drop for Scrub {
    fn drop(&mut self) {
        self.ends = None;
        if let Some(thread) = self.thread.take()
            && let Err(panic) = thread.join()
            && !thread::panicking()
        {
            std::panic::resume_unwind(panic);
        }
    }
}

fn run(mut pass: ScrubPass, pace: ScrubPace, counted: &ScrubCounters, ended: &mpsc::Receiver<()>) {
    loop {
        let rest = match pass.step() {
            Some(bytes) => {
                counted.bytes.fetch_add(bytes, Ordering::Relaxed);
                let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(pace.bytes_per_s.max(1));
                Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            None => {
                counted.passes.fetch_add(1, Ordering::Relaxed);
                pace.every
            }
        };
        if ended.recv_timeout(rest) != Err(RecvTimeoutError::Timeout) {
            return;
        }
    }
}

/// Walk through all chunks, one per step, in parallel with the writer.
#[derive(Debug)]
pub(super) struct ScrubPass {
    reader: LogReader,
    /// Last chunk read: its record, and its offset there.
    at: Option<(RecordId, u64)>,
}

impl ScrubPass {
    pub(super) fn new(reader: LogReader) -> Self {
        ScrubPass { reader, at: None }
    }

    /// Reads the next chunk and returns its length; `None` at the end of a pass, after which the first chunk is next.
    pub(super) fn step(&mut self) -> Option<u64> {
        let Some((record, chunk)) = self.next() else {
            self.at = None;
            return None;
        };
        self.at = Some((record, chunk.offset));
        self.reader.forget(&chunk);
        // A chunk that has moved in the meantime is read at its new place in its turn.
        if let Err(StorageFailure::Damaged | StorageFailure::Device) = self.reader.chunk(&chunk) {
            self.reader.quarantine.record(&self.reader.index, record);
        }
        Some(u64::from(chunk.length))
    }

    fn next(&self) -> Option<(RecordId, ChunkPlace)> {
        let index = lock_index(&self.reader.index);
        let (from, behind) = match self.at {
            Some((record, offset)) => (Bound::Included(record), Some((record, offset))),
            None => (Bound::Unbounded, None),
        };
        index.records.range((from, Bound::Unbounded)).find_map(|(record, found)| {
            let is_next = |chunk: &&ChunkPlace| behind.is_none_or(|behind| (*record, chunk.offset) > behind);
            let at = found.chunks().partition_point(|chunk| !is_next(&chunk));
            found.chunks().get(at).map(|chunk| (*record, *chunk))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Log;
    use super::*;
    use crate::storage::backend::{Backend as _, StoreWrite};
    use std::fs;

    #[test]
    fn what_a_scrub_says_is_what_it_has_read() {
        let folder = std::env::temp_dir().join(format!("longwire-scrub-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let (mut log, _) = Log::open(&folder).expect("it opens");
        let counted = Arc::new(ScrubCounters::default());
        let pace = ScrubPace { every: Duration::ZERO, bytes_per_s: u64::MAX };
        // A scrub that is to stop performs one step.
        let ended = mpsc::channel().1;
        let step = |log: &Log| run(ScrubPass::new(log.log_reader()), pace, &counted, &ended);
        step(&log);
        let (record, data) = (RecordId(1), bytes::Bytes::from_static(b"hello"));
        log.write(&[StoreWrite::Append { record, offset: 0, data }]).expect("there is space");
        step(&log);
        step(&log);
        let scrub = Scrub { counted, ends: None, thread: None };
        assert_eq!(scrub.counted(), (10, 1), "five bytes twice, and the end of a pass over nothing");
        drop(log);
        fs::remove_dir_all(&folder).expect("it was there");
    }
}
