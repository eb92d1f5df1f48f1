//! Loss detection by time (RACK, RFC 8985 6): a segment is lost when one that was sent later has arrived, and a window
//! for reordering has passed since.
//!
//! The order of transmission is a number that grows with each of them, so that segments sent at the same time have an
//! order, too (RFC 8985 6.2, RACK_sent_after). The window is a quarter of the shortest round trip, grows with duplicate
//! SACKs, and is zero in recovery and behind three segments that arrived unless reordering was seen.

use super::send::{DUPLICATES_THRESHOLD, Evidence, Scoreboard, SentSegment};
use crate::time::{Duration, Instant};
use std::collections::VecDeque;

/// Loss recoveries for which a larger window is kept (RFC 8985 6.2 step 4).
const RECOVERIES_KEPT: u32 = 16;
/// Time after which the shortest round trip is forgotten, so that it follows a longer path.
const SHORTEST_LIFETIME: Duration = Duration::from_secs(300);
/// Upper bound of the factor of the window; the smoothed round trip limits the window itself.
const FACTOR_MAX: u32 = 255;

/// State of loss detection by time.
#[derive(Debug)]
pub(super) struct Rack {
    /// Transmissions, the oldest first: order, and start of the segment. Entries of segments that have arrived, are lost or
    /// were sent again are skipped, and removed at the front. Bounded by what is sent while the oldest is in the network,
    /// which the windows limit.
    queue: VecDeque<(u64, u64)>,
    /// Order of the latest transmission with a known arrival, and its round trip (RACK.segment, RACK.rtt).
    newest: u64,
    pub(super) round_trip: Duration,
    /// True if a segment has arrived since losses were looked for.
    advanced: bool,
    /// Highest offset that has arrived (RACK.fack).
    forward: u64,
    pub(super) reordering_seen: bool,
    /// Factor of the window, the recoveries for which it is kept, and the end of the round trip that has enlarged it.
    factor: u32,
    kept: u32,
    enlarged_until: Option<u64>,
    shortest: Option<(Duration, Instant)>,
}

/// Result of loss detection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TimedLosses {
    /// True if a retransmission was lost.
    pub(super) repetition: bool,
    /// Time until the last of the segments that are late, but may only be reordered, is lost.
    pub(super) wait: Option<Duration>,
}

impl Rack {
    pub(super) fn new() -> Self {
        Rack {
            queue: VecDeque::new(),
            newest: 0,
            round_trip: Duration::ZERO,
            advanced: false,
            forward: 0,
            reordering_seen: false,
            factor: 1,
            kept: 0,
            enlarged_until: None,
            shortest: None,
        }
    }

    /// Records a transmission.
    pub(super) fn note_sent(&mut self, order: u64, start: u64) {
        self.queue.push_back((order, start));
    }

    /// Records a round-trip sample.
    pub(super) fn note_round_trip(&mut self, now: Instant, measured: Duration) {
        let replaces = self.shortest.is_none_or(|(shortest, at)| {
            measured <= shortest || now.saturating_since(at) > SHORTEST_LIFETIME
        });
        if replaces {
            self.shortest = Some((measured, now));
        }
    }

    /// Returns the shortest round trip of the last minutes.
    pub(super) fn shortest(&self) -> Option<Duration> {
        self.shortest.map(|(shortest, _)| shortest)
    }

    /// Records the arrival of a segment (RFC 8985 6.2 steps 2 and 3). `sure` is false if an older copy may have arrived
    /// instead of the newest.
    pub(super) fn note_delivered(&mut self, sent: &SentSegment, sure: bool, evidence: &Evidence) {
        if sure {
            self.advanced = true;
            self.round_trip = evidence.now.saturating_since(sent.at);
            self.newest = self.newest.max(sent.order);
        }
        if sent.end > self.forward {
            self.forward = sent.end;
        } else if sent.end < self.forward && !sent.repeated {
            self.reordering_seen = true;
        }
    }

    /// Enlarges the window, once per round trip, because a retransmission was unnecessary (RFC 8985 6.2 step 4).
    pub(super) fn note_duplicate(&mut self, acknowledged: u64, sent: u64) {
        if self.enlarged_until.is_some_and(|end| acknowledged < end) {
            return;
        }
        self.enlarged_until = Some(sent);
        self.factor = (self.factor + 1).min(FACTOR_MAX);
        self.kept = RECOVERIES_KEPT;
    }

    /// Counts the end of a recovery towards the return to the original window.
    pub(super) fn note_recovered(&mut self) {
        self.kept = self.kept.saturating_sub(1);
        if self.kept == 0 {
            self.factor = 1;
        }
    }

    /// Has losses looked for again, although nothing has arrived since.
    pub(super) fn examine_again(&mut self) {
        self.advanced = true;
    }

    /// Returns the window for reordering (RFC 8985 6.2, RACK_update_reo_wnd).
    pub(super) fn window(&self, recovering: bool, arrived_segments: u64, smoothed: Duration) -> Duration {
        if !self.reordering_seen && (recovering || arrived_segments >= DUPLICATES_THRESHOLD) {
            return Duration::ZERO;
        }
        let shortest = self.shortest().unwrap_or_default();
        (shortest / 4 * self.factor).min(smoothed)
    }
}

impl Scoreboard {
    /// Marks the segments as lost that were sent before one that has arrived, and for which the window for reordering has
    /// passed. Without an arrival since the last time, only if `timer` is true. Returns nothing if nothing was examined.
    pub(super) fn find_losses_by_time(
        &mut self,
        now: Instant,
        window: Duration,
        timer: bool,
    ) -> Option<TimedLosses> {
        let rack = self.rack.as_mut()?;
        if !core::mem::take(&mut rack.advanced) && !timer {
            return None;
        }
        let (newest, round_trip) = (rack.newest, rack.round_trip);
        let limit = round_trip + window;
        let mut queue = core::mem::take(&mut rack.queue);
        let mut losses = TimedLosses::default();
        while let Some(&(order, start)) = queue.front() {
            match self.current(order, start) {
                Some(index) if order >= newest || self.sent[index].at + limit > now => break,
                Some(index) => {
                    losses.repetition |= self.sent[index].retransmitted;
                    self.mark_lost(index);
                }
                None => {}
            }
            queue.pop_front();
        }
        let late = queue.iter().take_while(|(order, _)| *order < newest);
        let late = late.filter_map(|&(order, start)| self.current(order, start)).last();
        losses.wait = late.map(|index| (self.sent[index].at + limit).saturating_since(now));
        if let Some(rack) = &mut self.rack {
            rack.queue = queue;
        }
        Some(losses)
    }

    /// Returns the index of the segment of a transmission that is the newest of its segment and still in the network, as
    /// far as is known.
    fn current(&self, order: u64, start: u64) -> Option<usize> {
        let index = self.index(start);
        let sent = self.sent.get(index)?;
        let current = sent.order == order && !sent.sacked && !sent.waits_for_repetition();
        current.then_some(index)
    }

    /// Removes the records of transmissions at the front that nothing depends on any more.
    pub(super) fn forget_transmissions(&mut self) {
        let Some(mut queue) = self.rack.as_mut().map(|rack| core::mem::take(&mut rack.queue)) else {
            return;
        };
        while queue.front().is_some_and(|&(order, start)| self.current(order, start).is_none()) {
            queue.pop_front();
        }
        if let Some(rack) = &mut self.rack {
            rack.queue = queue;
        }
    }

    /// Restores the record of transmissions after loss marks were removed.
    pub(super) fn remember_transmissions(&mut self) {
        if let Some(rack) = &mut self.rack {
            let unknown = self.sent.iter().filter(|sent| !sent.sacked);
            let mut queue: Vec<_> = unknown.map(|sent| (sent.order, sent.start)).collect();
            queue.sort_unstable();
            rack.queue = queue.into();
            rack.examine_again();
        }
    }

    fn mark_lost(&mut self, index: usize) {
        self.change(index, |sent| {
            sent.lost = true;
            sent.retransmitted = false;
        });
    }

    /// After a timeout, marks the first segment as lost, and of the others those that were sent longer ago than the
    /// latest round trip (RFC 8985 6.3). A receiver that has selectively acknowledged the first segment and not moved on
    /// has discarded what it had (RFC 2018 8): then everything is lost.
    pub(super) fn lose_late(&mut self, now: Instant) {
        let Some(rack) = &self.rack else {
            return self.lose_all();
        };
        if self.sent.front().is_some_and(|sent| sent.sacked) {
            return self.lose_all();
        }
        let round_trip = rack.round_trip;
        for index in 0..self.sent.len() {
            let sent = &self.sent[index];
            if !sent.sacked && (index == 0 || sent.at + round_trip <= now) {
                self.mark_lost(index);
            }
        }
    }

    /// Returns the number of segments that are retransmitted and not known to have arrived.
    pub(super) fn repetitions_in_flight(&self) -> u32 {
        self.sent.iter().filter(|sent| sent.retransmitted && !sent.sacked).count() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn evidence(millis: u64) -> Evidence {
        Evidence { now: at(millis), shortest: None, sent_before: None, timeout_point: 0 }
    }

    /// A scoreboard with segments that left at these times.
    fn board(sent: &[u64]) -> Scoreboard {
        let mut board = Scoreboard::new(Some(Rack::new()));
        for (index, &millis) in sent.iter().enumerate() {
            board.push(index as u64 * MSS, (index as u64 + 1) * MSS, at(millis));
        }
        board
    }

    fn waiting(board: &Scoreboard) -> Vec<u64> {
        board.sent.iter().filter(|sent| sent.waits_for_repetition()).map(|sent| sent.start / MSS).collect()
    }

    #[test]
    fn what_was_sent_before_an_arrival_is_lost_once_the_window_has_passed() {
        let mut board = board(&[0, 10, 20, 30]);
        board.sack(&[(2 * MSS, 3 * MSS)], &evidence(120));
        let window = Duration::from_millis(25);
        // The round trip is 100 ms: the first segment is late by 20 ms, the second by 10 ms.
        let losses = board.find_losses_by_time(at(120), window, false);
        assert_eq!(losses, Some(TimedLosses { repetition: false, wait: Some(Duration::from_millis(15)) }));
        assert_eq!(waiting(&board), []);
        assert_eq!(board.find_losses_by_time(at(125), window, false), None, "nothing has arrived since");
        let losses = board.find_losses_by_time(at(125), window, true);
        assert_eq!(losses, Some(TimedLosses { repetition: false, wait: Some(Duration::from_millis(10)) }));
        assert_eq!(waiting(&board), [0]);
        board.find_losses_by_time(at(135), window, true);
        assert_eq!(waiting(&board), [0, 1], "the fourth was sent later than what has arrived");
    }

    #[test]
    fn a_retransmission_is_lost_again_when_something_later_arrives() {
        let mut board = board(&[0, 0, 0]);
        board.sack(&[(MSS, 2 * MSS)], &evidence(100));
        board.find_losses_by_time(at(100), Duration::ZERO, false);
        assert_eq!(waiting(&board), [0]);
        board.repeat(0, at(100));
        board.push(3 * MSS, 4 * MSS, at(110));
        board.sack(&[(2 * MSS, 3 * MSS)], &evidence(110));
        let losses = board.find_losses_by_time(at(110), Duration::ZERO, false);
        assert_eq!(losses.map(|losses| losses.repetition), Some(false), "the arrival was sent earlier");
        board.sack(&[(MSS, 4 * MSS)], &evidence(210));
        let losses = board.find_losses_by_time(at(210), Duration::ZERO, false);
        assert_eq!(losses.map(|losses| losses.repetition), Some(true));
        assert_eq!(waiting(&board), [0]);
    }

    /// RFC 8985 6.2 step 2: by either rule the copy that has arrived may be the older one.
    #[test]
    fn an_arrival_that_may_be_of_the_older_copy_shows_no_loss() {
        let ambiguous = [
            Evidence { shortest: Some(Duration::from_millis(100)), ..evidence(130) },
            Evidence { sent_before: Some(at(50)), shortest: Some(Duration::ZERO), ..evidence(130) },
        ];
        let clear = Evidence {
            shortest: Some(Duration::from_millis(20)),
            sent_before: Some(at(101)),
            ..evidence(130)
        };
        for (evidence, shows) in ambiguous.into_iter().map(|it| (it, false)).chain([(clear, true)]) {
            let mut board = board(&[0, 5]);
            board.repeat(1, at(100));
            board.sack(&[(MSS, 2 * MSS)], &evidence);
            let losses = board.find_losses_by_time(at(130), Duration::ZERO, false);
            assert_eq!(losses.is_some(), shows, "{evidence:?}");
        }
    }

    /// RFC 8985 6.3.
    #[test]
    fn a_timeout_spares_what_was_sent_less_than_a_round_trip_ago() {
        let mut board = board(&[0, 0, 0, 950]);
        board.sack(&[(2 * MSS, 3 * MSS)], &evidence(100));
        board.lose_late(at(1000));
        assert_eq!(waiting(&board), [0, 1]);
        assert_eq!(board.pipe(), MSS);
        board.lose_late(at(1050));
        assert_eq!(waiting(&board), [0, 1, 3]);
    }

    #[test]
    fn the_window_returns_to_its_size_after_sixteen_recoveries() {
        let mut rack = Rack::new();
        rack.note_round_trip(at(0), Duration::from_millis(400));
        rack.reordering_seen = true;
        let window = |rack: &Rack| rack.window(true, 9, Duration::from_millis(350)).as_millis();
        assert_eq!(window(&rack), 100);
        rack.note_duplicate(0, 10);
        rack.note_duplicate(9, 20);
        assert_eq!(window(&rack), 200, "once per round trip");
        for end in 1..10 {
            rack.note_duplicate(10 * end, 10 * end + 10);
        }
        assert_eq!(window(&rack), 350, "at most the smoothed round trip");
        for _ in 0..RECOVERIES_KEPT - 1 {
            rack.note_recovered();
        }
        assert_eq!(window(&rack), 350);
        rack.note_recovered();
        assert_eq!(window(&rack), 100);
    }

    #[test]
    fn the_shortest_round_trip_is_forgotten_after_minutes() {
        let mut rack = Rack::new();
        rack.note_round_trip(at(0), Duration::from_millis(100));
        rack.note_round_trip(at(299_000), Duration::from_millis(500));
        assert_eq!(rack.shortest(), Some(Duration::from_millis(100)));
        rack.note_round_trip(at(301_000), Duration::from_millis(500));
        assert_eq!(rack.shortest(), Some(Duration::from_millis(500)));
    }
}
