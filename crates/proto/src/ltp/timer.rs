//! Timers of segments that the peer must answer. They begin when the segment has left, and stand still while the link is
//! down (RFC 5326 6.2 to 6.6).

use super::config::Config;
use super::wire::SessionId;
use crate::kit::Deadlines;
use crate::time::{Duration, Instant};

/// Side of a session that this engine cancels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// This engine sends the block.
    Sender,
    /// This engine receives the block.
    Receiver,
}

/// Event that a deadline belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Timer {
    /// The report for a checkpoint of this session and serial number is late.
    Checkpoint(u64, u64),
    /// The acknowledgement of a report with this serial number is late.
    Report(SessionId, u64),
    /// The acknowledgement of a cancellation is late.
    Cancel(Side, SessionId),
    /// Nothing new of a received block arrives.
    Inactive(SessionId),
    /// A report of missing data has waited long enough.
    ReportDelay(SessionId),
    /// A retransmission in this session has waited long enough.
    RetransmissionDelay(u64),
}

/// Timer of one segment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnswerTimer {
    /// Time at which the segment left; `None` while it waits, and after the timer has expired.
    departed: Option<Instant>,
    /// Time at which the answer is late.
    due: Option<Instant>,
    /// Copy of the deadline; `None` while the timer stands still.
    deadline: Option<Instant>,
}

impl AnswerTimer {
    /// Returns true if the segment has left and its answer is not late.
    pub(super) fn is_running(&self) -> bool {
        self.departed.is_some()
    }
}

/// All deadlines of the sessions of one link.
#[derive(Debug)]
pub(super) struct Clock {
    answer_departure: Duration,
    timeout: Duration,
    /// Time at which the link went down; `None` while it is up.
    down_since: Option<Instant>,
    pub(super) deadlines: Deadlines<Timer>,
}

impl Clock {
    pub(super) fn new(config: &Config) -> Self {
        Clock {
            answer_departure: config.answer_departure(),
            timeout: config.retransmission_timeout(),
            down_since: None,
            deadlines: Deadlines::new(),
        }
    }

    /// Returns true while the link is down.
    pub(super) fn is_down(&self) -> bool {
        self.down_since.is_some()
    }

    pub(super) fn set_down(&mut self, down_since: Option<Instant>) {
        self.down_since = down_since;
    }

    /// Starts the timer of a segment that has left.
    pub(super) fn start(&mut self, key: Timer, timer: &mut AnswerTimer, departed: Instant) {
        timer.departed = Some(departed);
        timer.due = Some(departed + self.timeout);
        let deadline = timer.due.filter(|_| !self.is_down());
        self.deadlines.set(key, &mut timer.deadline, deadline);
    }

    /// Stops a timer.
    pub(super) fn stop(&mut self, key: Timer, timer: &mut AnswerTimer) {
        self.deadlines.set(key, &mut timer.deadline, None);
        *timer = AnswerTimer::default();
    }

    /// Returns true if the timer has expired; its deadline was removed.
    pub(super) fn expired(timer: &mut AnswerTimer) -> bool {
        let was_running = timer.departed.is_some();
        *timer = AnswerTimer::default();
        was_running
    }

    /// Stops the time of a segment whose answer may not have left before the link went down (RFC 5326 6.5).
    pub(super) fn suspend(&mut self, key: Timer, timer: &mut AnswerTimer) {
        if let (Some(departed), Some(since)) = (timer.departed, self.down_since)
            && departed + self.answer_departure >= since
        {
            self.deadlines.set(key, &mut timer.deadline, None);
        }
    }

    /// Continues the time of a segment after the link came up: its answer leaves at the earliest now (RFC 5326 6.6).
    pub(super) fn resume(&mut self, now: Instant, key: Timer, timer: &mut AnswerTimer) {
        let (Some(departed), Some(due), None) = (timer.departed, timer.due, timer.deadline) else { return };
        let due = due + now.saturating_since(departed + self.answer_departure);
        timer.due = Some(due);
        self.deadlines.set(key, &mut timer.deadline, Some(due));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Timer = Timer::Checkpoint(1, 1);

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    /// One-way delay 10 s, margin 1 s: answers leave after 11 s and are late after 22 s.
    fn clock() -> Clock {
        let config = Config {
            one_way_delay: Duration::from_secs(10),
            margin: Duration::from_secs(1),
            ..Config::default()
        };
        Clock::new(&config)
    }

    #[test]
    fn a_timer_stands_still_while_the_answer_cannot_leave() {
        let (mut clock, mut timer) = (clock(), AnswerTimer::default());
        clock.start(KEY, &mut timer, at(100));
        assert_eq!(clock.deadlines.next(), Some(at(122)));
        clock.set_down(Some(at(105)));
        clock.suspend(KEY, &mut timer);
        assert_eq!(clock.deadlines.next(), None);
        // The answer would have left at 111; it leaves at 200.
        clock.set_down(None);
        clock.resume(at(200), KEY, &mut timer);
        assert_eq!(clock.deadlines.next(), Some(at(211)));
    }

    #[test]
    fn an_outage_before_the_answer_leaves_costs_nothing() {
        let (mut clock, mut timer) = (clock(), AnswerTimer::default());
        clock.start(KEY, &mut timer, at(100));
        clock.set_down(Some(at(105)));
        clock.suspend(KEY, &mut timer);
        clock.set_down(None);
        clock.resume(at(110), KEY, &mut timer);
        assert_eq!(clock.deadlines.next(), Some(at(122)));
    }

    #[test]
    fn an_answer_that_has_left_before_the_outage_is_still_expected() {
        let (mut clock, mut timer) = (clock(), AnswerTimer::default());
        clock.start(KEY, &mut timer, at(100));
        clock.set_down(Some(at(115)));
        clock.suspend(KEY, &mut timer);
        assert_eq!(clock.deadlines.next(), Some(at(122)));
        clock.set_down(None);
        clock.resume(at(120), KEY, &mut timer);
        assert_eq!(clock.deadlines.next(), Some(at(122)));
    }

    #[test]
    fn a_timer_that_begins_in_an_outage_waits_for_its_end() {
        let (mut clock, mut timer) = (clock(), AnswerTimer::default());
        clock.set_down(Some(at(50)));
        clock.start(KEY, &mut timer, at(100));
        assert_eq!(clock.deadlines.next(), None);
        clock.set_down(None);
        clock.resume(at(105), KEY, &mut timer);
        assert_eq!(clock.deadlines.next(), Some(at(122)));
        assert!(Clock::expired(&mut timer));
        assert!(!Clock::expired(&mut timer), "once");
    }
}
