//! Tells the engines' task that a counter beside the engines has changed, so that who waits for what happens hears of it.
//!
//! Counters of the HTTP interface and of the control socket change on connections that may never say anything to the task.
//!
//! Limits: one event until the task has heard it, however often they change.

use crate::task_event::TaskEvent;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::mpsc::UnboundedSender;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct CounterChanges {
    tell: UnboundedSender<TaskEvent>,
    unheard: Arc<AtomicBool>,
}

impl CounterChanges {
    pub(crate) fn new(tell: UnboundedSender<TaskEvent>) -> Self {
        CounterChanges { tell, unheard: Arc::default() }
    }

    /// A counter has changed before this.
    pub(crate) fn changed(&self) {
        if !self.unheard.swap(true, Ordering::AcqRel) {
            // A task that is over counts nothing.
            let _ = self.tell.send(TaskEvent::Counted(self.clone()));
        }
    }

    /// The task has heard it: it looks at the counters after this.
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
