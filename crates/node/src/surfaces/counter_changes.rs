//! Notifies the engines' task of changes to counters outside the engines, so that applications waiting for a new status get it.
//!
//! Counters of the HTTP interface and of the control socket change on connections that may never send an event to the task.
//!
//! Limits: one event until the task has handled it, however often the counters change.

use crate::tell::Tell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sends at most one pending event per change of counters.
#[derive(Clone, Debug)]
pub(crate) struct CounterChanges {
    tell: Tell<CounterChanges>,
    unheard: Arc<AtomicBool>,
}

impl CounterChanges {
    pub(crate) fn new(tell: Tell<CounterChanges>) -> Self {
        CounterChanges { tell, unheard: Arc::default() }
    }

    /// Notifies the task of a change that the caller has just made.
    pub(crate) fn changed(&self) {
        if !self.unheard.swap(true, Ordering::AcqRel) {
            // The task has ended: the change is of no use to it.
            self.tell.tell(self.clone());
        }
    }

    /// The task has received the event and reads the counters after this.
    pub(crate) fn heard(&self) {
        self.unheard.swap(false, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_is_told_until_it_is_heard() {
        let (tell, mut events) = tokio::sync::mpsc::unbounded_channel::<CounterChanges>();
        let news = CounterChanges::new(Tell::to(&tell, |said| said));
        for _ in 0..2 {
            news.changed();
            news.changed();
            let told = events.try_recv().expect("it is told");
            assert!(events.try_recv().is_err(), "once");
            told.heard();
        }
    }
}
