//! A task that is woken without end: an engine asks, over and over, for a time that has passed.
//!
//! Every event is something to do, and so is a time that has come. But an engine that was just told what time it is, and
//! wants to be told the same again, does nothing and takes a processor for it. It is a fault of the program, and shows
//! itself: tests end with who it is, and a release goes on at a pace that costs little, counts it and says so once.
//!
//! Units: turns. Limits: [`TURNS_MAX`].

use crate::task::Task;
use longwire_proto::engine::Engine;
use longwire_proto::time::{Duration, Instant};

/// Turns in a row in which nothing was heard, and after which a time is asked for that had come before them: some, because
/// an engine may do what is due in steps.
pub(crate) const TURNS_MAX: u32 = 64;
/// The pace of a task that has no rest.
pub(crate) const PACE: Duration = Duration::from_millis(50);

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct BusyLoopGuard {
    turns: u32,
    /// How often the pace had to be slowed down.
    slowed: u64,
}

impl BusyLoopGuard {
    /// A turn is over that began `now`: when to wake, if `wake` is what was asked for, and whether that is a fault to be
    /// told of, for the first time in a row.
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

    /// How often the pace had to be slowed down.
    pub(crate) fn slowed(&self) -> u64 {
        self.slowed
    }
}

impl Task {
    /// When the task is to be woken, if nothing is heard.
    pub(crate) fn rest(&mut self, now: Instant, heard: bool, clock_at: Instant) -> Instant {
        let wakes = [self.engines.poll_timeout(), self.store.wakes_at(), self.status_waiters.wakes_at()];
        let wake = wakes.into_iter().flatten().fold(clock_at, Instant::min);
        let (wake, is_fault) = self.busy_loop_guard.turn(now, heard, wake);
        if is_fault {
            let [engines, store, news] = wakes;
            let (agent, links) = (self.engines.upper.poll_timeout(), self.engines.lower.poll_timeout());
            let what = format!(
                "it is {now}, and the engines ask to be woken at a time that has passed, over and over: all {engines:?} \
                 (agent {agent:?}, below {links:?}), store {store:?}, news {news:?}"
            );
            if cfg!(debug_assertions) {
                panic!("{what}");
            }
            crate::standard_error::say(format_args!(
                "longwire: {what}\nhint: this is a fault of the program; it goes on, more slowly"
            ));
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
