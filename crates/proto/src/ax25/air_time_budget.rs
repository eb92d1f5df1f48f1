//! Limit of a station's time on the channel, set by its operator: a maximum in any window of time, key-ups included.
//!
//! A frame is counted at the end that it has if it leaves at once, with its share of stuffed bits. A frame that exceeds
//! the limit waits until enough of the earlier ones are a window ago. A controller that holds frames back for a busy
//! channel sends them later than they are counted, by at most one burst.

use super::config::Config;
use crate::joint::earlier;
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Number of parts of the window. Frames sent within one part are counted at its end.
const PARTS: u32 = 64;

/// Time on the channel that a station has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AirTime {
    /// Total time sent, key-ups included.
    pub total: Duration,
    /// Time sent within the window that ended when the station last had something to send; zero without a limit.
    pub within: Duration,
    /// Number of times that a frame waited because of the limit.
    pub waits: u64,
    /// True while a frame waits because of the limit.
    pub waiting: bool,
    /// True while a frame waits because of the duty cycle.
    pub waiting_for_duty_cycle: bool,
}

/// Both limits of a station's time on the channel: that of an operator for a long window, and the duty cycle.
#[derive(Debug)]
pub(super) struct AirTimeLimits {
    air_time: AirTimeBudget,
    duty_cycle: AirTimeBudget,
}

impl AirTimeLimits {
    pub(super) fn new(config: &Config) -> Self {
        let window = config.duty_cycle_window;
        let share = config.duty_cycle_max.map(|share| window.mul_f64(share.clamp(0.0, 1.0)));
        AirTimeLimits {
            air_time: AirTimeBudget::new(config.air_time_max, config.air_time_window),
            duty_cycle: AirTimeBudget::new(share, window),
        }
    }

    pub(super) fn used(&self) -> AirTime {
        let (air_time, duty_cycle) = (self.air_time.used(), self.duty_cycle.used());
        AirTime {
            waits: air_time.waits + duty_cycle.waits,
            waiting_for_duty_cycle: duty_cycle.waiting,
            ..air_time
        }
    }

    pub(super) fn spend(&mut self, now: Instant, time: Duration) {
        self.air_time.spend(now, time);
        self.duty_cycle.spend(now, time);
    }

    pub(super) fn affords(&mut self, now: Instant, time: Duration) -> bool {
        self.air_time.affords(now, time) && self.duty_cycle.affords(now, time)
    }

    /// Returns true if a frame of this duration is within the limits when no other one has been sent.
    pub(super) fn ever_affords(&self, time: Duration) -> bool {
        [&self.air_time, &self.duty_cycle].iter().all(|budget| budget.max.is_none_or(|max| time <= max))
    }

    pub(super) fn left(&mut self, now: Instant) -> Duration {
        self.air_time.left(now).min(self.duty_cycle.left(now))
    }

    pub(super) fn waits(&mut self, now: Instant, time: Duration) -> bool {
        let air_time = self.air_time.waits(now, time);
        self.duty_cycle.waits(now, time) || air_time
    }

    pub(super) fn pass(&mut self, now: Instant) {
        self.air_time.pass(now);
        self.duty_cycle.pass(now);
    }

    pub(super) fn until(&self) -> Option<Instant> {
        earlier(self.air_time.until(), self.duty_cycle.until())
    }
}

/// The budget of time on the channel, and its use.
#[derive(Debug)]
pub(super) struct AirTimeBudget {
    /// Maximum within the window; `None` without a limit.
    max: Option<Duration>,
    window: Duration,
    /// Used time, with the time at which it is no longer counted; earliest first. At most `PARTS` + 2 entries.
    used: VecDeque<(Instant, Duration)>,
    sum: Duration,
    /// Time at which all counted frames have left.
    over: Instant,
    total: Duration,
    waits: u64,
    /// End of the present wait; `None` if nothing waits.
    until: Option<Instant>,
}

impl AirTimeBudget {
    pub(super) fn new(max: Option<Duration>, window: Duration) -> Self {
        AirTimeBudget {
            max,
            window,
            used: VecDeque::new(),
            sum: Duration::ZERO,
            over: Instant::ZERO,
            total: Duration::ZERO,
            waits: 0,
            until: None,
        }
    }

    pub(super) fn used(&self) -> AirTime {
        let waiting = self.until.is_some();
        AirTime {
            total: self.total,
            within: self.sum,
            waits: self.waits,
            waiting,
            waiting_for_duty_cycle: false,
        }
    }

    fn forget(&mut self, now: Instant) {
        while let Some((_, time)) = self.used.front().filter(|(until, _)| *until <= now) {
            self.sum -= *time;
            self.used.pop_front();
        }
    }

    /// Counts a frame that is sent now, or after those that are being sent.
    pub(super) fn spend(&mut self, now: Instant, time: Duration) {
        self.total += time;
        if self.max.is_none() {
            return;
        }
        self.forget(now);
        self.over = self.over.max(now) + time;
        let part = (self.window.as_nanos() as u64 / u64::from(PARTS)).max(1);
        let until =
            Instant::from_nanos(self.over.as_nanos().div_ceil(part).saturating_mul(part)) + self.window;
        match self.used.back_mut().filter(|(last, _)| *last == until) {
            Some((_, used)) => *used += time,
            None => self.used.push_back((until, time)),
        }
        self.sum += time;
    }

    /// Returns true if there is time for a frame now. A frame that is alone in its window always fits: a longer one
    /// would otherwise stop the station.
    pub(super) fn affords(&mut self, now: Instant, time: Duration) -> bool {
        self.forget(now);
        self.max.is_none_or(|max| self.sum + time <= max || self.sum.is_zero())
    }

    /// Returns the time that may still be used now.
    pub(super) fn left(&mut self, now: Instant) -> Duration {
        self.forget(now);
        self.max.map_or(Duration::MAX, |max| max.saturating_sub(self.sum))
    }

    /// Returns true if a frame of this duration must wait now. A shorter one that is more urgent need not wait as long.
    pub(super) fn waits(&mut self, now: Instant, time: Duration) -> bool {
        let was_waiting = self.until.take().is_some();
        if self.affords(now, time) {
            return false;
        }
        let max = self.max.unwrap_or(Duration::MAX);
        let mut left = self.sum;
        let enough = self.used.iter().find(|(_, used)| {
            left -= *used;
            left + time <= max || left.is_zero()
        });
        self.until = enough.map(|(until, _)| *until);
        self.waits += u64::from(!was_waiting);
        true
    }

    /// Ends a wait that is over.
    pub(super) fn pass(&mut self, now: Instant) {
        self.until = self.until.filter(|until| *until > now);
    }

    /// Returns the end of the present wait.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }
}
