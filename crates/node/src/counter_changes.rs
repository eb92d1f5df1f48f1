//! Notifies the engines' task of changes to counters outside the engines, so that applications waiting for a new status get it.
//!
//! Counters of the HTTP interface and of the control socket change on connections that may never send an event to the task.
//!
//! Limits: one event until the task has handled it, however often the counters change.

use crate::task_event::TaskEvent;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc::UnboundedSender;

/// Sends at most one pending event per change of counters.
#[derive(Clone, Debug)]
pub(crate) struct CounterChanges {
    tell: UnboundedSender<TaskEvent>,
    unheard: Arc<AtomicBool>,
}

impl CounterChanges {
    pub(crate) fn new(tell: UnboundedSender<TaskEvent>) -> Self {
        CounterChanges { tell, unheard: Arc::default() }
    }

    /// Notifies the task of a change that the caller has just made.
    pub(crate) fn changed(&self) {
        if !self.unheard.swap(true, Ordering::AcqRel) {
            // The task has ended: the change is of no use to it.
            let _ = self.tell.send(TaskEvent::Counted(self.clone()));
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
        let (tell, mut events) = tokio::sync::mpsc::unbounded_channel();
        let news = CounterChanges::new(tell);
        for _ in 0..2 {
            news.changed();
            news.changed();
            let Ok(TaskEvent::Counted(told)) = events.try_recv() else { panic!("it is told") };
            assert!(events.try_recv().is_err(), "once");
            told.heard();
        }
    }
}
