//! Tail loss probes (TLP, RFC 8985 7).
//!
//! The probe timer runs instead of the retransmission timer while nothing is known to be missing. It expires two smoothed
//! round trips after the last new data or acknowledgement, or when the retransmission timer would expire if that is
//! earlier. The probe is new data if there are any that fit the peer's window, else the last segment again. If the probe
//! itself has repaired the loss, the window is reduced as after a fast recovery (7.4.2).

use super::congestion::Phase;
use super::connection::{Connection, Timer};
use crate::time::{Duration, Instant};

/// Time without a round-trip sample (RFC 8985 7.2).
const PROBE_FIRST: Duration = Duration::from_secs(1);
/// Additional time for the delayed acknowledgement of a lone segment (RFC 8985 7.2, TLP.max_ack_delay), as in Linux.
const ACK_DELAY_MAX: Duration = Duration::from_millis(200);

/// State of tail loss probes.
#[derive(Debug, Default)]
pub(super) struct TailProbe {
    /// A probe is sent as soon as the interface has room.
    pub(super) wanted: bool,
    /// End of the data sent when the outstanding probe left, if there is one (TLP.end_seq).
    end: Option<u64>,
    /// True if the outstanding probe was a retransmission (TLP.is_retrans).
    repeated: bool,
    /// True if there was a round-trip sample since the last probe.
    pub(super) sampled: bool,
}

impl TailProbe {
    /// Forgets the outstanding probe at the begin of a recovery (RFC 8985 7.1).
    pub(super) fn reset(&mut self) {
        self.wanted = false;
        self.end = None;
    }

    /// Records a probe that leaves; `end` is the end of the data sent.
    pub(super) fn note_sent(&mut self, end: u64, repeated: bool) {
        *self = TailProbe { wanted: false, end: Some(end), repeated, sampled: false };
    }
}

/// Facts about an acknowledgement that decide over an outstanding probe.
pub(super) struct ProbeAnswer {
    pub(super) offset: u64,
    pub(super) advanced: bool,
    /// The acknowledgement has no data and no new SACK block, and does not advance.
    pub(super) duplicate: bool,
    /// End of the data that arrived twice.
    pub(super) arrived_twice: Option<u64>,
}

impl Connection {
    /// Starts the probe timer instead of the retransmission timer if a probe may be sent (RFC 8985 7.2). `advanced` is true
    /// after an acknowledgement, from which the retransmission timer would run.
    pub(super) fn schedule_probe(&mut self, now: Instant, advanced: bool) -> bool {
        let open = self.congestion.phase == Phase::Open && self.scoreboard.sacked_segments() == 0;
        let may = self.profile.tail_loss_probe && self.scoreboard.rack.is_some() && open;
        let Some(first) = self.scoreboard.sent.front().filter(|_| may) else {
            return false;
        };
        let lone = if self.flight() <= self.segment { ACK_DELAY_MAX } else { Duration::ZERO };
        let wait = self.rtt.smoothed().map_or(PROBE_FIRST, |smoothed| smoothed * 2 + lone);
        let timer_from = if advanced { now } else { first.at };
        let expiry = self.rtt.deadline(timer_from);
        let at = if expiry > now { expiry.min(now + wait) } else { now + wait };
        self.set_transmit_timer(Timer::TailProbe, at);
        true
    }

    /// The probe timer has expired: a probe is due unless one is outstanding, or no sample was taken since the last (RFC
    /// 8985 7.3).
    pub(super) fn probe_timeout(&mut self, now: Instant) {
        if self.probe.end.is_none() && self.probe.sampled {
            self.probe.wanted = true;
            // Starts again when the probe leaves.
            self.set_transmit_timer(Timer::Retransmit, self.rtt.deadline(now));
        } else {
            self.resume_retransmit_timer(now);
        }
    }

    /// Processes an acknowledgement while a probe is outstanding (RFC 8985 7.4.2).
    pub(super) fn judge_probe(&mut self, answer: &ProbeAnswer) {
        if answer.advanced {
            self.probe.wanted = false;
        }
        let Some(end) = self.probe.end.filter(|&end| answer.offset >= end) else {
            return;
        };
        let needless = answer.arrived_twice == Some(end) || answer.offset == end && answer.duplicate;
        if !self.probe.repeated || needless {
            self.probe.end = None;
        } else if answer.offset > end {
            self.probe.end = None;
            if self.congestion.phase == Phase::Open {
                self.congestion.probe_repaired(self.flight());
            }
        }
    }

    /// Starts the timer for the reordering window, the probe or a retransmission; only one of them runs.
    pub(super) fn set_transmit_timer(&mut self, timer: Timer, at: Instant) {
        for other in [Timer::Retransmit, Timer::Reordering, Timer::TailProbe] {
            self.timers.stop(other as usize);
        }
        self.timers.set(timer as usize, at);
    }

    /// Starts the retransmission timer again as if it had run since the first segment left.
    pub(super) fn resume_retransmit_timer(&mut self, now: Instant) {
        if let Some(first) = self.scoreboard.sent.front() {
            let at = self.rtt.deadline(first.at).max(now);
            self.set_transmit_timer(Timer::Retransmit, at);
        }
    }

    /// Returns true if a timer runs that leads to a transmission.
    pub(super) fn has_transmit_timer(&self) -> bool {
        [Timer::Retransmit, Timer::Reordering, Timer::TailProbe]
            .iter()
            .any(|&timer| self.timers.get(timer as usize).is_some())
    }
}
