//! Admission of incoming sessions: the owner of a passive session may decide whether the peer is admitted, once the
//! peer has identified itself.
//!
//! In version 4 the owner is asked before this side's SESS_INIT, so a peer that is refused never has a session; in
//! version 3 the contact headers have crossed by then, and the peer receives a SHUTDOWN (RFC 9174 4.6, RFC 7242 4.2,
//! 6.1).

use super::{Phase, Role, Session};
use crate::service::DownReason;
use crate::tcpcl::config::Version;
use crate::tcpcl::dialect::Dialect;
use crate::tcpcl::established::PROBE_EVERY;
use crate::tcpcl::v4::wire::TermReason;
use crate::time::Instant;
use bytes::BytesMut;

/// Identity of a connecting peer, as announced and as authenticated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerIdentity<'a> {
    /// Announced node ID; `None` if the peer announced none.
    pub node_id: Option<&'a str>,
    /// True if TLS has authenticated the node ID.
    pub proven: bool,
}

/// Decision on the admission of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// The peer is admitted.
    Admit,
    /// The node ID is not acceptable: the session ends with reason Contact Failure.
    Refuse,
    /// Another session has this node ID: the session ends with reason Busy, and the peer may try again.
    Busy,
}

/// Session that will be established if the peer is admitted.
#[derive(Debug)]
pub(super) struct AwaitingAdmission {
    dialect: Dialect,
    keepalive: u16,
    node_id: Option<String>,
    /// TLS has authenticated the node ID.
    proven: bool,
    /// Data received after the identification. The owner decides within the same pass, so this is the data of one read.
    pub(super) input: BytesMut,
}

impl AwaitingAdmission {
    pub(super) fn new(dialect: Dialect, keepalive: u16, node_id: Option<String>, proven: bool) -> Self {
        AwaitingAdmission { dialect, keepalive, node_id, proven, input: BytesMut::new() }
    }
}

impl Session {
    /// Makes the session ask its owner for admission: [`Session::claim`] returns the identity of the waiting peer, and
    /// [`Session::judge`] decides. Until then no further input is processed, and `contact_timeout` runs.
    pub fn await_admission(&mut self) {
        self.owner_admits = self.role == Role::Passive;
    }

    /// Returns the identity of the peer that waits for admission, if any.
    pub fn claim(&self) -> Option<CallerIdentity<'_>> {
        match &self.phase {
            Phase::AwaitingAdmission(judged) => {
                Some(CallerIdentity { node_id: judged.node_id.as_deref(), proven: judged.proven })
            }
            _ => None,
        }
    }

    /// Returns true if TLS has authenticated the peer's node ID, while the session is established.
    pub fn is_proven(&self) -> bool {
        self.proven_id && matches!(self.phase, Phase::Up(_))
    }

    /// Decides on the waiting peer; no effect if there is none.
    pub fn judge(&mut self, now: Instant, verdict: AdmissionDecision) {
        let judged = match core::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::AwaitingAdmission(judged) => *judged,
            other => return self.phase = other,
        };
        let reason = match verdict {
            AdmissionDecision::Admit => return self.admit(now, judged),
            AdmissionDecision::Refuse => (DownReason::Identity, TermReason::ContactFailure),
            AdmissionDecision::Busy => (DownReason::Busy, TermReason::Busy),
        };
        self.pipe.write(judged.dialect.terminate(false, reason.1));
        self.pipe.release(judged.input.len() as u64);
        self.end_stream(now, reason.0, true);
    }

    pub(super) fn admit_or_ask(&mut self, now: Instant, judged: AwaitingAdmission) {
        if self.owner_admits {
            self.phase = Phase::AwaitingAdmission(Box::new(judged));
        } else {
            self.admit(now, judged);
        }
    }

    fn admit(&mut self, now: Instant, judged: AwaitingAdmission) {
        if self.role == Role::Passive && judged.dialect.version == Version::Four {
            self.say_init();
        }
        self.proven_id = judged.proven;
        self.establish(now, judged.dialect, judged.keepalive, judged.node_id);
        if !judged.input.is_empty() {
            self.hear(now, judged.input.freeze());
        }
    }

    /// Sends a keepalive on demand, so that the failure of a stream with a dead peer is detected. None is sent just
    /// after input from the peer or an earlier one, or if keepalives are disabled (RFC 9174 4.7).
    pub(super) fn probe(&mut self, now: Instant) {
        if let Phase::Up(channel) = &mut self.phase
            && !channel.keepalive.is_zero()
            && channel.probe_from <= now
        {
            channel.keepalive_due = true;
            channel.probe_from = now + PROBE_EVERY;
        }
    }
}
