//! Closing of a session, and the schedule for reconnecting.

use super::{Phase, Role, Session, Timer};
use crate::service::{BundlesIndication, CloseReason, DownReason};
use crate::tcpcl::config::{Version, Versions};
use crate::tcpcl::established::{FinalMessage, SessionFault};
use crate::tcpcl::v4::wire::{RejectReason, TermReason};
use crate::time::{Duration, Instant};

impl Session {
    /// Ends an established session that cannot continue. The message being written is finished, so that the peer
    /// understands the last message (RFC 9174 6.1).
    pub(super) fn fail(&mut self, now: Instant, fault: SessionFault) {
        if let Phase::Up(channel) = &self.phase {
            let bytes = match fault.final_message {
                FinalMessage::Terminate(term) => channel.dialect.terminate(false, term),
                FinalMessage::Reject(header) => {
                    channel.dialect.reject(RejectReason::TypeUnknown, header).unwrap_or_default()
                }
            };
            self.pipe.write(bytes);
        }
        self.end_stream(now, fault.down, true);
    }

    /// Indicates the end to the user, and closes the stream after the remaining output.
    pub(super) fn end_stream(&mut self, now: Instant, reason: DownReason, retry: bool) {
        self.pipe.close();
        self.down(now, reason, retry, None);
        self.phase = Phase::Closing;
        self.set(Timer::Linger, now + self.config.close_timeout);
    }

    /// Indicates to the user that the link is down, and schedules the next attempt. The caller sets the phase.
    pub(super) fn down(&mut self, now: Instant, reason: DownReason, retry: bool, delay: Option<u64>) {
        let phase = core::mem::replace(&mut self.phase, Phase::Closed);
        self.timers.stop_all();
        self.last_down = Some(reason);
        let mut was_up = false;
        let mut other_version = false;
        match phase {
            Phase::Up(mut channel) => {
                was_up = true;
                self.pipe.release(channel.incoming.held());
                self.up.extend(channel.outgoing.fail_all());
                self.up.extend(channel.incoming.lose_all());
                // A session that lasted as long as the delay before it counts as a success.
                if now.saturating_since(channel.since) >= self.backoff.delay() {
                    self.backoff.succeed();
                } else if self.guessed_at.is_some() && is_refusal(reason) {
                    self.call_in_version_four();
                }
            }
            Phase::AwaitingAdmission(judged) => self.pipe.release(judged.input.len() as u64),
            Phase::Contact { .. } | Phase::Securing | Phase::Greeting { .. } => {
                other_version = self.try_other_version(now, reason);
            }
            Phase::Closed | Phase::Connecting | Phase::Closing => {}
        }
        self.wanted &= retry && self.role == Role::Active;
        if was_up || self.role == Role::Active {
            self.up.push_back(BundlesIndication::Down { reason, retry: self.wanted });
        }
        if self.wanted {
            let asked = delay.map_or(Duration::ZERO, Duration::from_secs);
            let wait = if other_version { self.config.reconnect_min } else { self.next_delay().max(asked) };
            self.set(Timer::Retry, now + wait);
        }
    }

    /// Selects the other version for the next connection if both are supported and the peer has not shown its version,
    /// or has reported that this is not its version. Returns true if the next attempt needs no longer delay.
    fn try_other_version(&mut self, now: Instant, reason: DownReason) -> bool {
        if self.role == Role::Passive || self.config.versions != Versions::Both {
            return false;
        }
        let said_otherwise = reason == DownReason::Version;
        if self.version == Version::Three {
            if !self.proven || said_otherwise || self.guessed_at.is_some() {
                self.call_in_version_four();
            }
            return false;
        }
        if self.proven && !said_otherwise {
            return false;
        }
        self.version = Version::Three;
        self.proven = false;
        self.guessed_at = Some(now).filter(|_| !said_otherwise);
        true
    }

    pub(super) fn call_in_version_four(&mut self) {
        self.version = Version::Four;
        self.proven = false;
        self.guessed_at = None;
    }

    fn next_delay(&mut self) -> Duration {
        let delay = self.backoff.fail();
        let more = delay.as_nanos() as f64 * self.config.reconnect_jitter.clamp(0.0, 1.0) * self.rng.unit();
        delay + Duration::from_nanos(more as u64)
    }

    /// Processes the end of the stream.
    pub(super) fn closed(&mut self, now: Instant, reason: CloseReason) {
        match &self.phase {
            // The end of a stream that was never opened does not concern this session.
            Phase::Closed => {}
            Phase::Closing => self.phase = Phase::Closed,
            Phase::Up(channel) => {
                let ending = channel.ending;
                match ending {
                    Some(ending) => self.down(now, ending.down, ending.retry, ending.delay),
                    None => self.down(now, DownReason::Stream(reason), true, None),
                }
            }
            _ => self.down(now, DownReason::Stream(reason), true, None),
        }
        self.phase = Phase::Closed;
        self.discarded = 0;
        self.pipe.reset();
        if self.role == Role::Passive {
            self.peer_called = true;
            self.wanted = false;
            self.timers.stop_all();
        } else if self.wanted && self.timers.get(Timer::Retry as usize).is_none() {
            // The attempt was due while the old stream was still closing.
            self.connect(now);
        }
    }

    /// The peer has closed its sending direction: missing data will not arrive.
    pub(super) fn peer_closed(&mut self, now: Instant) {
        match &self.phase {
            Phase::Up(channel) => {
                let (reason, retry, delay) = match channel.ending {
                    Some(ending) => (ending.down, ending.retry, ending.delay),
                    None => (DownReason::Stream(CloseReason::Finished), true, None),
                };
                self.pipe.close();
                self.down(now, reason, retry, delay);
                self.phase = Phase::Closing;
                self.set(Timer::Linger, now + self.config.close_timeout);
            }
            Phase::Contact { .. }
            | Phase::Securing
            | Phase::Greeting { .. }
            | Phase::AwaitingAdmission(_) => {
                self.end_stream(now, DownReason::Stream(CloseReason::Finished), true);
            }
            Phase::Closing => self.pipe.close(),
            Phase::Closed | Phase::Connecting => {}
        }
    }

    /// Closes the link for the user.
    pub(super) fn close(&mut self, now: Instant) {
        match &mut self.phase {
            Phase::Up(channel) => {
                channel.end(TermReason::Unknown, DownReason::Closed, false);
                self.set(Timer::Linger, now + self.config.close_timeout);
            }
            Phase::Connecting => {
                self.pipe.abort();
                self.down(now, DownReason::Closed, false, None);
                self.phase = Phase::Closing;
            }
            Phase::Contact { .. }
            | Phase::Securing
            | Phase::Greeting { .. }
            | Phase::AwaitingAdmission(_) => {
                self.end_stream(now, DownReason::Closed, false);
            }
            Phase::Closed | Phase::Closing if self.wanted => {
                let closing = matches!(self.phase, Phase::Closing);
                self.down(now, DownReason::Closed, false, None);
                if closing {
                    self.phase = Phase::Closing;
                    self.set(Timer::Linger, now + self.config.close_timeout);
                }
            }
            Phase::Closed | Phase::Closing => {}
        }
        self.wanted = false;
    }
}

/// Returns true if the peer has ended the session by itself.
fn is_refusal(reason: DownReason) -> bool {
    matches!(
        reason,
        DownReason::PeerClosed
            | DownReason::Contact
            | DownReason::Identity
            | DownReason::Busy
            | DownReason::Version
            | DownReason::Stream(CloseReason::Finished)
    )
}
