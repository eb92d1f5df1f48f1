//! Clocks of the task.

use crate::clock::WallClock;
use longwire_proto::time::{Duration, Instant};

/// Engine time, which begins with the node and never jumps, and the wall clock.
pub(crate) struct TaskClock {
    started: tokio::time::Instant,
    wall_clock: WallClock,
    /// First known DTN time.
    began_dtn_ms: Option<u64>,
}

impl TaskClock {
    /// Starts engine time.
    pub(crate) fn new(wall_clock: WallClock) -> Self {
        TaskClock { started: tokio::time::Instant::now(), wall_clock, began_dtn_ms: None }
    }

    /// Engine time.
    pub(crate) fn now(&self) -> Instant {
        let nanos = self.started.elapsed().as_nanos();
        Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Engine time for timers of the event loop.
    pub(crate) fn at(&self, at: Instant) -> tokio::time::Instant {
        self.started + Duration::from_nanos(at.as_nanos())
    }

    /// DTN time by the wall clock.
    pub(crate) fn dtn_ms(&self) -> Option<u64> {
        (self.wall_clock)()
    }

    /// First known DTN time, and the DTN time now.
    pub(crate) fn began_and_now(&mut self) -> Option<(u64, u64)> {
        let dtn_ms = self.dtn_ms()?;
        Some((*self.began_dtn_ms.get_or_insert(dtn_ms), dtn_ms))
    }
}
