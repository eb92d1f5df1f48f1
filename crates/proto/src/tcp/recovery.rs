//! Reaction to acknowledgements: loss detection, recovery, and the end or the undoing of a reduction (RFC 5681 3.2, RFC
//! 6582 3.2, RFC 6675 5, RFC 8985 6).

use super::config::Recovery;
use super::congestion::Phase;
use super::connection::{Connection, Episode, Timer};
use super::input::before;
use super::send::{AckOutcome, DUPLICATES_THRESHOLD};
use crate::time::{Duration, Instant};

/// Margin of the timer for the reordering window, so that it does not expire between two acknowledgements of one burst
/// (Linux: two ticks of 1 ms).
const REORDERING_MARGIN: Duration = Duration::from_millis(2);

/// Acknowledgement as congestion control sees it.
pub(super) struct Acknowledged {
    /// True if new data are acknowledged.
    pub(super) advanced: bool,
    /// True if the acknowledgement indicates that a later segment has arrived.
    pub(super) duplicate: bool,
    pub(super) delivery: AckOutcome,
    /// Part of the congestion window in use before, bytes.
    pub(super) used: u64,
    /// Echoed timestamp.
    pub(super) echo: Option<u32>,
    /// True if data arrived twice.
    pub(super) arrived_twice: bool,
}

impl Connection {
    /// Updates the congestion window after an acknowledgement, and detects losses.
    pub(super) fn control_congestion(&mut self, now: Instant, acknowledged: &Acknowledged) {
        let &Acknowledged { advanced, duplicate, ref delivery, used, echo, arrived_twice } = acknowledged;
        if arrived_twice {
            self.note_needless_repetition();
        }
        if advanced {
            self.forget_duplicates(delivery.delivered);
            self.undo_if_for_nothing(echo);
        }
        self.judge_timeout(advanced, delivery);
        let mut grown_by = delivery.delivered;
        if advanced && let Some(point) = self.end_episode() {
            grown_by = self.unacknowledged - point;
        }
        let ignored = self.is_as_in_ns3() && matches!(self.congestion.phase, Phase::Loss { .. });
        if duplicate && !ignored {
            self.counters.duplicate_acknowledgements += 1;
            self.duplicates += 1;
            if !self.peer.sack {
                let most = self.scoreboard.pipe().saturating_sub(self.segment);
                self.arrived_unknown = (self.arrived_unknown + self.segment).min(most);
            }
        }
        let loss = self.find_losses(now, advanced);
        match self.congestion.phase {
            Phase::Recovery { .. } if advanced || duplicate || delivery.delivered > 0 => {
                let delivered = delivery.delivered.max(self.presumed(duplicate));
                self.congestion.recovery_step(delivered, self.pipe(), advanced, loss);
            }
            Phase::Recovery { .. } => {}
            Phase::Open | Phase::Loss { .. } if advanced => {
                let round_trip = self.rtt.smoothed().unwrap_or_default();
                self.congestion.grow(grown_by, used, now, round_trip);
            }
            Phase::Open | Phase::Loss { .. } => {}
        }
    }

    /// Returns the bytes that a duplicate acknowledgement presumably delivers if the peer has no SACK.
    fn presumed(&self, duplicate: bool) -> u64 {
        if duplicate && !self.peer.sack { self.segment } else { 0 }
    }

    fn forget_duplicates(&mut self, delivered: u64) {
        if matches!(self.congestion.phase, Phase::Recovery { .. }) {
            // RFC 6582 3.2 step 3: one segment is the retransmitted one, the others had arrived before.
            let had_arrived = delivered.saturating_sub(self.segment);
            self.arrived_unknown = self.arrived_unknown.saturating_sub(had_arrived);
        } else {
            self.duplicates = 0;
            self.arrived_unknown = 0;
        }
    }

    /// Undoes the reduction if the first copy arrived: the echoed timestamp is from before the retransmission (RFC
    /// 3522).
    fn undo_if_for_nothing(&mut self, echo: Option<u32>) {
        if self.congestion.phase == Phase::Open || !self.profile.undo_by_timestamps {
            return;
        }
        if let Some(echo) = echo
            && self.repeated_at.is_none_or(|repeated| before(echo, repeated))
        {
            self.undo_reduction();
        }
    }

    /// Undoes the reduction of the congestion window because nothing was lost.
    pub(super) fn undo_reduction(&mut self) {
        self.congestion.undo();
        self.rtt.forget_backoff();
        self.scoreboard.find_again();
        self.counters.undone += 1;
        self.repeat_first = false;
        self.duplicates = 0;
        self.arrived_unknown = 0;
        self.recovered = self.unacknowledged;
    }

    /// Counts a retransmission of data that had arrived before. If every retransmission of the last recovery was one, its
    /// reduction of the window is undone (RFC 2883 5, RFC 3708).
    fn note_needless_repetition(&mut self) {
        if let Some(rack) = &mut self.scoreboard.rack {
            rack.note_duplicate(self.unacknowledged, self.next);
        }
        self.episode.needless = self.episode.needless.saturating_add(1);
        let all = self.episode.repetitions > 0 && self.episode.needless >= self.episode.repetitions;
        if all && self.congestion.can_undo() {
            self.undo_reduction();
            self.episode = Episode::default();
        }
    }

    /// Starts to count retransmissions.
    pub(super) fn begin_episode(&mut self) {
        self.episode = Episode { repetitions: self.scoreboard.repetitions_in_flight(), ..Episode::default() };
    }

    /// Ends the recovery if everything up to its end is acknowledged. As in ns-3, returns the end of one after a timeout: only
    /// what is acknowledged beyond it enlarges the window.
    fn end_episode(&mut self) -> Option<u64> {
        let ns3 = self.is_as_in_ns3();
        let mut after_timeout = None;
        let ended = match self.congestion.phase {
            Phase::Recovery { point } if self.unacknowledged >= point => {
                self.congestion.exit_recovery(self.flight(), self.peer.sack || ns3);
                self.duplicates = 0;
                self.arrived_unknown = 0;
                true
            }
            Phase::Loss { point } if self.unacknowledged >= point => {
                self.congestion.exit_loss();
                after_timeout = Some(point).filter(|_| ns3);
                true
            }
            _ => false,
        };
        if ended {
            self.repeat_first = false;
            self.first_partial = true;
            if let Some(rack) = &mut self.scoreboard.rack {
                rack.note_recovered();
            }
        }
        after_timeout
    }

    /// Marks lost segments, and starts fast recovery if it is time. Returns true if segments are newly marked.
    fn find_losses(&mut self, now: Instant, advanced: bool) -> bool {
        if self.scoreboard.rack.is_some() {
            return self.find_losses_by_time(now, false);
        }
        let recovering = matches!(self.congestion.phase, Phase::Recovery { .. });
        let mut loss = false;
        if self.peer.sack {
            let recovery = match self.profile.recovery {
                Recovery::NewReno | Recovery::NewRenoNs3 | Recovery::Rack => Recovery::Sack6675,
                other => other,
            };
            loss = self.scoreboard.find_losses(recovery, self.segment);
            if self.profile.find_lost_retransmissions && self.congestion.phase != Phase::Open {
                loss |= self.scoreboard.find_lost_repetitions();
            }
        } else if recovering && advanced {
            // A partial acknowledgement: retransmit the next hole (RFC 6582 3.2 step 3).
            self.scoreboard.lose_first();
            self.repeat_first = self.scoreboard.has_waiting();
        }
        if self.congestion.phase != Phase::Open {
            return loss;
        }
        let by_number = self.duplicates >= DUPLICATES_THRESHOLD && self.may_retransmit_fast();
        if by_number || self.scoreboard.has_waiting() {
            self.scoreboard.lose_first();
            self.enter_recovery();
        }
        loss
    }

    fn may_retransmit_fast(&self) -> bool {
        let at_its_end = self.is_as_in_ns3() && self.unacknowledged == self.recovered;
        self.peer.sack || self.unacknowledged > self.recovered || at_its_end
    }

    /// Marks the segments as lost that are late (RFC 8985 6.2 step 5), and starts fast recovery, as in Linux also from slow
    /// start after a timeout if a retransmission was lost. Returns true if segments are newly marked.
    fn find_losses_by_time(&mut self, now: Instant, timer: bool) -> bool {
        let waiting = self.scoreboard.waiting();
        let recovering = self.congestion.phase != Phase::Open;
        let smoothed = self.rtt.smoothed().unwrap_or_default();
        let arrived = self.scoreboard.sacked_segments();
        let rack = self.scoreboard.rack.as_ref();
        let window = rack.map_or(Duration::ZERO, |rack| rack.window(recovering, arrived, smoothed));
        let Some(losses) = self.scoreboard.find_losses_by_time(now, window, timer) else {
            return false;
        };
        let loss = self.scoreboard.waiting() > waiting;
        let enters = match self.congestion.phase {
            Phase::Open => self.scoreboard.has_waiting(),
            Phase::Loss { .. } => losses.repetition || timer && loss,
            Phase::Recovery { .. } => false,
        };
        if enters {
            self.enter_recovery();
            // The first segment is sent again at once, or when the interface has room.
            self.set_transmit_timer(Timer::Retransmit, self.rtt.deadline(now));
        }
        if let Some(wait) = losses.wait {
            self.set_transmit_timer(Timer::Reordering, now + wait + REORDERING_MARGIN);
        } else if self.timers.get(Timer::Retransmit as usize).is_none() {
            self.resume_retransmit_timer(now);
        }
        loss
    }

    /// The window for reordering has passed for segments that were late.
    pub(super) fn reordering_timeout(&mut self, now: Instant) {
        let loss = self.find_losses_by_time(now, true);
        if loss && matches!(self.congestion.phase, Phase::Recovery { .. }) {
            self.congestion.recovery_step(self.segment, self.pipe(), false, false);
        }
    }

    fn enter_recovery(&mut self) {
        self.counters.fast_recoveries += 1;
        // The first segment is marked as lost already.
        let in_flight = if self.is_as_in_ns3() { self.pipe() + self.segment } else { self.flight() };
        self.congestion.enter_recovery(self.next, in_flight);
        self.recovered = self.next;
        self.repeat_first = true;
        self.rescued = false;
        self.repeated_at = None;
        self.probe.reset();
        self.begin_episode();
    }
}
