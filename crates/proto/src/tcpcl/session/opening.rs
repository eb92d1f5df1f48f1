//! Opening of a session: contact headers, TLS, SESS_INITs.

use super::admission::AwaitingAdmission;
use super::{PeerContact, Phase, Proof, Role, Session, Timer};
use crate::service::{BundlesIndication, DownReason};
use crate::tcpcl::config::{Tls, Version, Versions};
use crate::tcpcl::dialect::Dialect;
use crate::tcpcl::established::{EstablishedSession, down_reason};
use crate::tcpcl::v4::wire::{Message, RejectReason, SessInit, TermReason};
use crate::tcpcl::{v3, v4};
use crate::time::{Duration, Instant};
use bytes::BytesMut;

/// Time for which a peer that did not answer in version 4 is contacted in version 3, before version 4 is tried again.
const GUESS_LASTS: Duration = Duration::from_secs(3600);

impl Session {
    pub(super) fn connect(&mut self, now: Instant) {
        self.timers.stop(Timer::Retry as usize);
        self.counters.attempts += 1;
        if self.guessed_at.is_some_and(|at| now.saturating_since(at) >= GUESS_LASTS) {
            self.call_in_version_four();
        }
        self.phase = Phase::Connecting;
        self.called_at = now;
        self.pipe.connect();
        if let Some(limit) = self.config.connect_timeout {
            self.set(Timer::Contact, now + limit);
        }
    }

    /// The stream is connected. The active side sends its contact header; the passive side waits for it, to answer in
    /// the same version (RFC 9174 4.1), unless it supports version 3 only (RFC 7242 4).
    pub(super) fn connected(&mut self, now: Instant) {
        let expected = match self.role {
            Role::Active => matches!(self.phase, Phase::Connecting),
            Role::Passive => matches!(self.phase, Phase::Closed) && !self.peer_called,
        };
        if !expected {
            return;
        }
        self.peer_called = true;
        let speaks_first = self.role == Role::Active || self.config.versions == Versions::Three;
        if speaks_first {
            self.say_contact(self.version);
        }
        self.phase = Phase::Contact { said: speaks_first };
        self.set(Timer::Contact, now + self.contact_limit(now));
    }

    /// Returns the maximum time to wait for the peer's contact header. If another version may succeed, it is no longer
    /// than a peer at the measured distance needs; but version 3 cannot succeed if TLS is wanted.
    fn contact_limit(&self, now: Instant) -> Duration {
        let limit = self.config.contact_timeout;
        let tries_four = self.config.versions == Versions::Both && self.version == Version::Four;
        if self.role == Role::Passive || self.proven || !tries_four || self.config.tls != Tls::Off {
            return limit;
        }
        let far = now.saturating_since(self.called_at).saturating_mul(3);
        limit.min(self.config.version_timeout.max(far))
    }

    fn say_contact(&mut self, version: Version) {
        let mut out = BytesMut::new();
        match version {
            Version::Three => v3::contact_header(&self.config).encode(&mut out),
            Version::Four => {
                v4::wire::ContactHeader { can_tls: self.config.tls != Tls::Off }.encode(&mut out);
            }
        }
        self.pipe.write(out.freeze());
    }

    pub(super) fn hear_contact(&mut self, now: Instant, said: bool, peer: PeerContact) {
        let version = match &peer {
            PeerContact::Three(_) => Version::Three,
            PeerContact::Four(_) => Version::Four,
            PeerContact::Other => return self.version_mismatch(now, said),
        };
        if said && version != self.version {
            return self.version_mismatch(now, said);
        }
        self.version = version;
        self.proven = true;
        if version == Version::Four {
            self.guessed_at = None;
        }
        if !said {
            self.say_contact(version);
        }
        match peer {
            PeerContact::Three(peer) => self.establish_three(now, peer),
            PeerContact::Four(peer) => self.agree_on_tls(now, peer.can_tls),
            PeerContact::Other => unreachable!("it was dealt with above"),
        }
    }

    /// Ends the stream after a version mismatch: the passive side sends its own version and the reason; the active side
    /// closes, and may connect with another version (RFC 9174 4.3).
    fn version_mismatch(&mut self, now: Instant, said: bool) {
        if self.role == Role::Passive {
            if !said {
                self.say_contact(self.version);
            }
            let final_message = match self.version {
                Version::Three => v3::shutdown(TermReason::VersionMismatch),
                Version::Four => v4::terminate(false, TermReason::VersionMismatch),
            };
            self.pipe.write(final_message);
        }
        self.counters.violations += 1;
        self.end_stream(now, DownReason::Version, true);
    }

    fn agree_on_tls(&mut self, now: Instant, peer_can: bool) {
        let enabled = peer_can && self.config.tls != Tls::Off;
        if self.config.tls == Tls::Require && !enabled {
            return self.refuse_contact(now, DownReason::Insecure);
        }
        self.set(Timer::Contact, now + self.config.contact_timeout);
        if enabled {
            let client = self.role == Role::Active;
            self.pipe.secure(client, self.config.tls_name.clone().filter(|_| client));
            self.phase = Phase::Securing;
        } else {
            self.greet(None);
        }
    }

    /// Begins the exchange of SESS_INITs; the active side sends its own first (RFC 9174 3.3, figures 8 and 9).
    pub(super) fn greet(&mut self, proof: Option<Proof>) {
        if self.role == Role::Active {
            self.say_init();
        }
        self.phase = Phase::Greeting { proof };
    }

    pub(super) fn say_init(&mut self) {
        let mut out = BytesMut::new();
        Message::SessInit(v4::sess_init(&self.config)).encode(&mut out);
        self.pipe.write(out.freeze());
    }

    pub(super) fn hear_greeting(&mut self, now: Instant, proof: Option<Proof>, message: Message) {
        match message {
            Message::SessInit(init) => self.establish_four(now, proof, &init),
            Message::KeepAlive => self.phase = Phase::Greeting { proof },
            Message::SessTerm { reason, .. } => {
                self.pipe.write(v4::terminate(true, reason));
                self.end_stream(now, down_reason(reason), true);
            }
            other => {
                let mut header = BytesMut::new();
                other.encode(&mut header);
                let reason = match other {
                    Message::Unknown { .. } => RejectReason::TypeUnknown,
                    _ => RejectReason::Unexpected,
                };
                self.pipe.write(v4::reject(reason, header[0]));
                self.counters.violations += 1;
                self.end_stream(now, DownReason::ProtocolError, true);
            }
        }
    }

    /// Ends a version 4 session that was never established.
    pub(super) fn refuse_contact(&mut self, now: Instant, reason: DownReason) {
        self.pipe.write(v4::terminate(false, TermReason::ContactFailure));
        self.end_stream(now, reason, true);
    }

    fn establish_three(&mut self, now: Instant, peer: v3::wire::ContactHeader) {
        let dialect = Dialect::new(Version::Three, v3::terms(&self.config, &peer));
        let node_id = Some(peer.eid).filter(|eid| !eid.is_empty() && eid != "dtn:none");
        if !self.is_expected(node_id.as_ref()) {
            self.pipe.write(v3::shutdown(TermReason::ContactFailure));
            return self.end_stream(now, DownReason::Identity, true);
        }
        self.admit_or_ask(now, AwaitingAdmission::new(dialect, peer.keepalive, node_id, false));
    }

    fn establish_four(&mut self, now: Instant, proof: Option<Proof>, peer: &SessInit) {
        let Ok(terms) = v4::terms(&self.config, peer) else {
            self.counters.violations += 1;
            return self.refuse_contact(now, DownReason::ProtocolError);
        };
        let node_id = Some(peer.node_id.clone()).filter(|id| !id.is_empty());
        // The authenticated identities must contain the announced node ID (RFC 9174 4.4.4.3).
        let identities = proof.map(|proof| proof.identities);
        let proven = identities
            .as_ref()
            .is_some_and(|identities| identities.iter().any(|id| is_same_node(id, &peer.node_id)));
        let contradicted = match &identities {
            None => false,
            Some(identities) if identities.is_empty() => self.config.tls_identity,
            Some(_) => !proven,
        };
        if contradicted || !self.is_expected(node_id.as_ref()) {
            return self.refuse_contact(now, DownReason::Identity);
        }
        let dialect = Dialect::new(Version::Four, terms);
        self.admit_or_ask(now, AwaitingAdmission::new(dialect, peer.keepalive, node_id, proven));
    }

    /// Returns true if the peer's node ID is acceptable. A peer with the node ID of this node is refused on both sides.
    fn is_expected(&self, node_id: Option<&String>) -> bool {
        let said = node_id.map_or("", String::as_str);
        let own = !self.config.node_id.is_empty() && is_same_node(&self.config.node_id, said);
        !own && self.config.peer_node_id.as_ref().is_none_or(|expected| is_same_node(expected, said))
    }

    pub(super) fn establish(&mut self, now: Instant, dialect: Dialect, keepalive: u16, peer: Option<String>) {
        let keepalive = keepalive.min(self.config.keepalive_seconds());
        self.up.push_back(BundlesIndication::Up {
            peer,
            interleave: false,
            transfer_bytes_max: dialect.terms.transfer_bytes_max,
        });
        self.counters.sessions += 1;
        self.told = 0;
        self.timers.stop_all();
        let channel = EstablishedSession::new(&self.config, dialect, keepalive, now);
        if !channel.keepalive.is_zero() {
            self.set(Timer::KeepAlive, now + channel.keepalive);
            self.set(Timer::Silence, now + self.silence_limit(channel.keepalive));
        }
        if let Some(limit) = self.config.idle_timeout {
            self.set(Timer::Idle, now + limit);
        }
        self.phase = Phase::Up(Box::new(channel));
    }

    pub(super) fn silence_limit(&self, keepalive: Duration) -> Duration {
        self.config.keepalive_timeout.unwrap_or(keepalive * 2)
    }
}

/// Returns true if two texts name the same node: the scheme may be in either case (RFC 3986 6.2.2.1), and the `/` after
/// the name of a node of the scheme `dtn` may be missing (RFC 9171 4.2.5.1.1).
fn is_same_node(one: &str, other: &str) -> bool {
    fn parts(text: &str) -> Option<(&str, &str)> {
        let (scheme, rest) = text.split_once(':')?;
        let rest = if rest.starts_with("//") { rest.strip_suffix('/').unwrap_or(rest) } else { rest };
        Some((scheme, rest))
    }
    match (parts(one), parts(other)) {
        (Some((scheme, rest)), Some((other_scheme, other_rest))) => {
            scheme.eq_ignore_ascii_case(other_scheme) && rest == other_rest
        }
        _ => one == other,
    }
}

#[cfg(test)]
mod tests {
    use super::is_same_node;

    #[test]
    fn nodes_are_compared_as_uris() {
        for (one, other) in [
            ("dtn://a/", "dtn://a/"),
            ("dtn://a", "dtn://a/"),
            ("DTN://a/", "dtn://a"),
            ("ipn:1.0", "ipn:1.0"),
            ("odd", "odd"),
        ] {
            assert!(is_same_node(one, other) && is_same_node(other, one), "{one} {other}");
        }
        for (one, other) in
            [("dtn://a/", "dtn://A/"), ("ipn:1.0", "ipn:10.0"), ("dtn://a/", ""), ("dtn://a", "a")]
        {
            assert!(!is_same_node(one, other) && !is_same_node(other, one), "{one} {other}");
        }
    }
}
