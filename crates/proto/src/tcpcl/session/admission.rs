//! Who is called may ask its owner whether the caller may come in, once the caller has said who it is.
//!
//! In version 4 the owner is asked before this side's SESS_INIT, so a caller that is refused never has a session; in version 3
//! the contact headers have crossed by then, and the caller hears a SHUTDOWN (RFC 9174 4.6, RFC 7242 4.2, 6.1).

use super::{Phase, Role, Session};
use crate::service::DownReason;
use crate::tcpcl::config::Version;
use crate::tcpcl::dialect::Dialect;
use crate::tcpcl::established::PROBE_EVERY;
use crate::tcpcl::v4::wire::TermReason;
use crate::tcpcl::{v3, v4};
use crate::time::Instant;
use bytes::BytesMut;

/// What a caller says of itself, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerIdentity<'a> {
    /// Its node id as it says it; `None` where it says none.
    pub node_id: Option<&'a str>,
    /// TLS has proved that node id.
    pub proven: bool,
}

/// Whether a caller may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdmissionDecision {
    /// It may.
    Admit,
    /// Its node id does not suit: the caller hears that the contact failed.
    Refuse,
    /// Somebody else has its node id at the moment: the caller hears that this side is busy, and may try again.
    Busy,
}

/// A session that would be up if its caller may come in.
#[derive(Debug)]
pub(super) struct AwaitingAdmission {
    dialect: Dialect,
    keepalive: u16,
    node_id: Option<String>,
    /// TLS has proved the node id.
    proven: bool,
    /// What the caller has said behind it. The owner answers within the turn, so it is what one read brought.
    pub(super) input: BytesMut,
}

impl AwaitingAdmission {
    pub(super) fn new(dialect: Dialect, keepalive: u16, node_id: Option<String>, proven: bool) -> Self {
        AwaitingAdmission { dialect, keepalive, node_id, proven, input: BytesMut::new() }
    }
}

impl Session {
    /// The same session, which asks its owner about the caller: [`Session::claim`] says who wants to come in, and
    /// [`Session::judge`] answers. Until then nothing is heard of the caller, and `contact_timeout` runs.
    #[must_use]
    pub fn judged(mut self) -> Self {
        self.owner_admits = self.role == Role::Passive;
        self
    }

    /// Who waits to be judged, if somebody does.
    pub fn claim(&self) -> Option<CallerIdentity<'_>> {
        match &self.phase {
            Phase::AwaitingAdmission(judged) => {
                Some(CallerIdentity { node_id: judged.node_id.as_deref(), proven: judged.proven })
            }
            _ => None,
        }
    }

    /// True if TLS has proved the node id that the peer has said, while the session is up.
    pub fn is_proven(&self) -> bool {
        self.proven_id && matches!(self.phase, Phase::Up(_))
    }

    /// Answers who waits to be judged; nothing where nobody does.
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
        self.pipe.write(match judged.dialect.version() {
            Version::Three => v3::shutdown(reason.1),
            Version::Four => v4::terminate(false, reason.1),
        });
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
        if self.role == Role::Passive && judged.dialect.version() == Version::Four {
            self.say_init();
        }
        self.proven_id = judged.proven;
        self.establish(now, judged.dialect, judged.keepalive, judged.node_id);
        if !judged.input.is_empty() {
            self.hear(now, judged.input.freeze());
        }
    }

    /// Says that this side is there, so that a stream whose other end is gone is found to be broken: not where the peer was just
    /// heard or asked, and not where keep-alives are off, for then they are not to be sent (RFC 9174 4.7).
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
