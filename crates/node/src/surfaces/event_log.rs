//! Log of events for programs that watch the node.
//!
//! A ring buffer of the latest events, each with its sequence number. A reader goes through it at its own pace; it misses events
//! that the ring has dropped before it read them, and gets their number. Events of bundles are recorded only while there is a
//! reader, and for a minute after that, for readers that reconnect; all others always.

use crate::view::{Event, EventRecord};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// Ring buffer of the latest events.
#[derive(Debug)]
pub(crate) struct EventLog {
    ring: Mutex<EventRing>,
    newest: watch::Sender<u64>,
    readers: AtomicUsize,
}

#[derive(Debug)]
struct EventRing {
    events: VecDeque<Arc<EventRecord>>,
    events_max: usize,
    /// Sequence number of the next event.
    next: u64,
}

impl EventLog {
    pub(crate) fn new(events_max: usize) -> Self {
        let ring = EventRing { events: VecDeque::new(), events_max, next: 1 };
        EventLog { ring: Mutex::new(ring), newest: watch::Sender::new(0), readers: AtomicUsize::new(0) }
    }

    pub(crate) fn add(&self, uptime_s: f64, dtn_ms: Option<u64>, event: Event) {
        let sequence = {
            let mut ring = self.ring.lock().expect("no thread panics while it has the events");
            let sequence = ring.next;
            ring.next += 1;
            if ring.events.len() >= ring.events_max {
                ring.events.pop_front();
            }
            ring.events.push_back(Arc::new(EventRecord { sequence, uptime_s, dtn_ms, event }));
            sequence
        };
        self.newest.send_replace(sequence);
    }

    /// Returns up to `count_max` events after the sequence number `after`, and the number of events after it that were dropped.
    pub(crate) fn behind(&self, after: u64, count_max: usize) -> (u64, Vec<Arc<EventRecord>>) {
        let ring = self.ring.lock().expect("no thread panics while it has the events");
        let first = ring.next - ring.events.len() as u64;
        // A sequence number that was not assigned yet is from an earlier start of the node.
        let after = if after >= ring.next { 0 } else { after };
        let missed = first.saturating_sub(after + 1);
        let skipped = (after + 1).saturating_sub(first) as usize;
        (missed, ring.events.iter().skip(skipped).take(count_max).cloned().collect())
    }

    /// Adds a reader. It begins after the sequence number `after`, or with the next event.
    pub(crate) fn reader(self: &Arc<Self>, after: Option<u64>) -> EventReader {
        self.readers.fetch_add(1, Ordering::Relaxed);
        let newest = self.newest.subscribe();
        let after = after.unwrap_or_else(|| *newest.borrow());
        EventReader { events: self.clone(), newest, after }
    }

    pub(crate) fn readers(&self) -> usize {
        self.readers.load(Ordering::Relaxed)
    }
}

/// A reader of the log.
#[derive(Debug)]
pub(crate) struct EventReader {
    events: Arc<EventLog>,
    newest: watch::Receiver<u64>,
    after: u64,
}

impl EventReader {
    /// Waits for the next events, at least one, and returns them with the number of missed events; `None` after the last event.
    pub(crate) async fn next(&mut self, count_max: usize) -> Option<(u64, Vec<Arc<EventRecord>>)> {
        loop {
            self.newest.borrow_and_update();
            let (missed, some) = self.events.behind(self.after, count_max);
            if let Some(last) = some.last() {
                self.after = last.sequence;
                return Some((missed, some));
            }
            self.newest.changed().await.ok()?;
        }
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        self.events.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(events: &EventLog, after: u64, count_max: usize) -> (u64, Vec<u64>) {
        let (missed, some) = events.behind(after, count_max);
        (missed, some.iter().map(|noted| noted.sequence).collect())
    }

    #[test]
    fn who_reads_slowly_is_told_how_much_was_missed() {
        let events = Arc::new(EventLog::new(3));
        assert_eq!(numbers(&events, 0, 10), (0, vec![]));
        for _ in 0..5 {
            events.add(
                0.0,
                None,
                Event::ConfigurationRead { applied: Vec::new(), needs_restart: Vec::new() },
            );
        }
        assert_eq!(numbers(&events, 0, 10), (2, vec![3, 4, 5]));
        assert_eq!(numbers(&events, 1, 2), (1, vec![3, 4]));
        assert_eq!(numbers(&events, 4, 10), (0, vec![5]));
        assert_eq!(numbers(&events, 5, 10), (0, vec![]));
        assert_eq!(numbers(&events, 77, 10), (2, vec![3, 4, 5]), "a number of another start");
        let reader = events.reader(None);
        assert_eq!((reader.after, events.readers()), (5, 1));
        drop(reader);
        assert_eq!(events.readers(), 0);
    }
}
