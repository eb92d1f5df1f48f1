//! Protection against a busy loop: an engine that keeps requesting a wake-up at a time that has passed.
//!
//! Each pass of the event loop has an event or a due timer to handle. An engine that was just given the current time and
//! requests the same time again does nothing and uses up a processor. That is an internal error, and it is made visible:
//! tests fail with the name of the engine; a release build continues at a pace that costs little, counts the passes and
//! reports the error once.
//!
//! Units: passes of the event loop. Limits: [`TURNS_MAX`].

use super::{NodeDiscovery, Task};
use longwire_proto::engine::Engine;
use longwire_proto::time::{Duration, Instant};

/// Maximum consecutive passes without an event that end with a request for a wake-up in the past. More than one, because an
/// engine may do due work in steps.
pub(crate) const TURNS_MAX: u32 = 64;
/// Interval between passes of a task in a busy loop.
pub(crate) const PACE: Duration = Duration::from_millis(50);

/// Counts consecutive passes without an event and delays the next one if there are too many.
#[derive(Debug, Default)]
pub(crate) struct BusyLoopGuard {
    turns: u32,
    /// Number of delayed passes.
    slowed: u64,
}

impl BusyLoopGuard {
    /// Ends a pass that began at `now`. Returns the time of the next pass if `wake` was requested, and true if this is an error
    /// to report, which is the first one of a series.
    pub(crate) fn turn(&mut self, now: Instant, heard: bool, wake: Instant) -> (Instant, bool) {
        if heard || wake > now {
            self.turns = 0;
            return (wake, false);
        }
        self.turns = self.turns.saturating_add(1);
        if self.turns <= TURNS_MAX {
            return (wake, false);
        }
        self.slowed += 1;
        (now + PACE, self.turns == TURNS_MAX + 1)
    }

    /// Number of delayed passes.
    pub(crate) fn slowed(&self) -> u64 {
        self.slowed
    }
}

impl Task {
    /// Returns the time at which the task wakes up if no event arrives before.
    pub(super) fn rest(&mut self, now: Instant, heard: bool, clock_at: Instant) -> Instant {
        let discovery = self.discovery.as_ref().and_then(NodeDiscovery::wakes_at);
        let wakes = [
            self.engines.poll_timeout(),
            self.store.driver.wakes_at(),
            self.status_waiters.wakes_at(),
            discovery,
        ];
        let wake = wakes.into_iter().flatten().fold(clock_at, Instant::min);
        let (wake, is_fault) = self.turns.guard.turn(now, heard, wake);
        if is_fault {
            let [engines, store, news, discovery] = wakes;
            let (agent, links) = (self.engines.upper.poll_timeout(), self.engines.lower.poll_timeout());
            let what = format!(
                "the engines keep requesting a wake-up in the past (now {now}): all {engines:?} \
                 (agent {agent:?}, below {links:?}), store {store:?}, news {news:?}, discovery {discovery:?}"
            );
            if cfg!(debug_assertions) {
                panic!("{what}");
            }
            let hint = "this is an internal error, please report it; the node continues, more slowly";
            tracing::error!(target: "node", hint, "{what}");
        }
        wake
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn who_asks_for_the_past_again_and_again_is_told_of_once_and_slowed_down() {
        let mut busy_loop_guard = BusyLoopGuard::default();
        let now = Instant::ZERO + MS;
        let past = Instant::ZERO;
        for _ in 0..TURNS_MAX {
            assert_eq!(busy_loop_guard.turn(now, false, past), (past, false));
        }
        assert_eq!(busy_loop_guard.turn(now, false, past), (now + PACE, true));
        assert_eq!(busy_loop_guard.turn(now, false, now), (now + PACE, false), "the present has come, too");
        assert_eq!(busy_loop_guard.slowed(), 2);
        assert_eq!(busy_loop_guard.turn(now, true, past), (past, false), "something was heard");
        assert_eq!(busy_loop_guard.turn(now, false, now + MS), (now + MS, false));
        assert_eq!(busy_loop_guard.turn(now, false, past), (past, false), "it begins anew");
    }
}
