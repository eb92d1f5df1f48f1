//! The engine: brings a session up over a stream, keeps it up, and brings it back.

use super::channel::{Channel, Farewell, Fault, Spoken, down_reason};
use super::config::{Config, Counters, Tls, Version, Versions};
use super::contact;
use super::dialect::Dialect;
use super::pipe::Pipe;
use super::v4::wire::{Message, RejectReason, SessInit, TermReason};
use super::{v3, v4};
use crate::codec::DecodeError;
use crate::engine::Engine;
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, CloseReason, DownReason, Stream, StreamIndication,
    StreamRequest, TransferFailure, TransferId,
};
use crate::time::{Duration, Instant, Timers};
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Who opened the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// This side: it calls, and calls again.
    Active,
    /// The peer.
    Passive,
}

#[derive(Clone, Copy)]
enum Timer {
    /// The stream, the contact header, TLS or the SESS_INIT takes too long.
    Contact,
    /// A keep-alive is due.
    KeepAlive,
    /// The peer is silent for too long.
    Silence,
    /// Nothing is sent or received for too long.
    Idle,
    /// The next attempt to connect.
    Retry,
    /// The end takes too long.
    Linger,
}

/// Where a session stands.
#[derive(Debug)]
enum Phase {
    /// There is no stream.
    Resting,
    /// The stream is being opened.
    Connecting,
    /// The contact headers are being exchanged; ours is out or not.
    Contact { said: bool },
    /// TLS is being set up.
    Securing,
    /// The SESS_INITs are being exchanged; whom TLS proved, if it is there.
    Greeting { proof: Option<Proof> },
    /// Bundles may go.
    Up(Box<Channel>),
    /// The user knows that it is down; the stream is on its way out.
    Closing,
}

/// What TLS proved of the peer.
#[derive(Debug)]
struct Proof {
    identity: Option<String>,
}

/// A contact header of the peer.
#[derive(Debug)]
enum PeerContact {
    Three(v3::wire::ContactHeader),
    Four(v4::wire::ContactHeader),
    /// A version that is not spoken here.
    Other,
}

/// A TCPCL session of either version. See the [module](super).
#[derive(Debug)]
pub struct Session {
    config: Config,
    role: Role,
    rng: Rng,
    phase: Phase,
    /// The user wants the link up.
    wanted: bool,
    /// The user has asked for it, or a peer has.
    asked: bool,
    /// The version to call with.
    version: Version,
    /// The peer has spoken that version.
    proven: bool,
    pipe: Pipe,
    timers: Timers<6>,
    up: VecDeque<BundlesIndication>,
    /// The room that the user believes in.
    told: u64,
    /// Failed attempts in a row.
    failures: u32,
    next_number: u64,
    counters: Counters,
}

impl Session {
    /// A session that calls its peer when asked to, and again when it breaks.
    pub fn active(config: Config, rng: Rng) -> Self {
        Self::new(config, rng, Role::Active)
    }

    /// A session that a peer opens by connecting, and that is over when the stream is.
    pub fn passive(config: Config, rng: Rng) -> Self {
        Self::new(config, rng, Role::Passive)
    }

    fn new(mut config: Config, rng: Rng, role: Role) -> Self {
        // Version 3 has no TLS.
        if config.tls == Tls::Require {
            config.versions = Versions::Four;
        }
        Session {
            version: config.versions.highest(),
            proven: false,
            config,
            role,
            rng,
            phase: Phase::Resting,
            wanted: role == Role::Passive,
            asked: false,
            pipe: Pipe::default(),
            timers: Timers::new(),
            up: VecDeque::new(),
            told: 0,
            failures: 0,
            next_number: 0,
            counters: Counters::default(),
        }
    }

    /// What it has counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The version that the session speaks, while it is up.
    pub fn version(&self) -> Option<Version> {
        match &self.phase {
            Phase::Up(channel) => Some(channel.dialect.version()),
            _ => None,
        }
    }

    fn set(&mut self, timer: Timer, at: Instant) {
        self.timers.set(timer as usize, at);
    }

    // -- Coming up ----------------------------------------------------------------------------------------------

    fn connect(&mut self, now: Instant) {
        self.timers.stop(Timer::Retry as usize);
        self.counters.attempts += 1;
        self.phase = Phase::Connecting;
        self.pipe.connect();
        if let Some(limit) = self.config.connect_timeout {
            self.set(Timer::Contact, now + limit);
        }
    }

    /// The stream stands. Whoever called says its contact header; who is called waits for it, to answer in the
    /// caller's version (RFC 9174 4.1), unless version 3 is the only one (RFC 7242 4).
    fn connected(&mut self, now: Instant) {
        let expected = match self.role {
            Role::Active => matches!(self.phase, Phase::Connecting),
            Role::Passive => matches!(self.phase, Phase::Resting) && !self.asked,
        };
        if !expected {
            return;
        }
        self.asked = true;
        let speaks_first = self.role == Role::Active || self.config.versions == Versions::Three;
        if speaks_first {
            self.say_contact(self.version);
        }
        self.phase = Phase::Contact { said: speaks_first };
        self.set(Timer::Contact, now + self.config.contact_timeout);
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

    fn hear_contact(&mut self, now: Instant, said: bool, peer: PeerContact) {
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
        if !said {
            self.say_contact(version);
        }
        match peer {
            PeerContact::Three(peer) => self.establish_three(now, peer),
            PeerContact::Four(peer) => self.agree_on_tls(now, peer.can_tls),
            PeerContact::Other => unreachable!("it was dealt with above"),
        }
    }

    /// Who is called says which version it speaks, and that it is the wrong one; who calls closes, and may call
    /// with another (RFC 9174 4.3).
    fn version_mismatch(&mut self, now: Instant, said: bool) {
        if self.role == Role::Passive {
            if !said {
                self.say_contact(self.version);
            }
            let farewell = match self.version {
                Version::Three => v3::shutdown(TermReason::VersionMismatch),
                Version::Four => v4::terminate(false, TermReason::VersionMismatch),
            };
            self.pipe.write(farewell);
        }
        self.counters.violations += 1;
        self.end_stream(now, DownReason::Version, true);
    }

    fn agree_on_tls(&mut self, now: Instant, peer_can: bool) {
        let enabled = peer_can && self.config.tls != Tls::Off;
        if self.config.tls == Tls::Require && !enabled {
            return self.refuse_contact(now, DownReason::Identity);
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

    /// The caller says its SESS_INIT first (RFC 9174 3.3, figures 8 and 9).
    fn greet(&mut self, proof: Option<Proof>) {
        if self.role == Role::Active {
            self.say_init();
        }
        self.phase = Phase::Greeting { proof };
    }

    fn say_init(&mut self) {
        let mut out = BytesMut::new();
        Message::SessInit(v4::sess_init(&self.config)).encode(&mut out);
        self.pipe.write(out.freeze());
    }

    fn hear_greeting(&mut self, now: Instant, proof: Option<Proof>, message: Message) {
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

    /// Ends a session of version 4 that was never up.
    fn refuse_contact(&mut self, now: Instant, reason: DownReason) {
        self.pipe.write(v4::terminate(false, TermReason::ContactFailure));
        self.end_stream(now, reason, true);
    }

    fn establish_three(&mut self, now: Instant, peer: v3::wire::ContactHeader) {
        let dialect = Dialect::Three(v3::Terms::new(&self.config, &peer));
        let node_id = Some(peer.eid).filter(|eid| !eid.is_empty() && eid != "dtn:none");
        if !self.is_expected(node_id.as_ref()) {
            self.pipe.write(v3::shutdown(TermReason::ContactFailure));
            return self.end_stream(now, DownReason::Identity, true);
        }
        self.establish(now, dialect, peer.keepalive, node_id);
    }

    fn establish_four(&mut self, now: Instant, proof: Option<Proof>, peer: &SessInit) {
        let Ok(terms) = v4::Terms::new(&self.config, peer) else {
            self.counters.violations += 1;
            return self.refuse_contact(now, DownReason::ProtocolError);
        };
        let node_id = Some(peer.node_id.clone()).filter(|id| !id.is_empty());
        // What TLS proves has to be what the peer calls itself (RFC 9174 4.4.4.3).
        let proven = match proof {
            None => true,
            Some(Proof { identity: None }) => !self.config.tls_identity,
            Some(Proof { identity }) => identity == node_id,
        };
        if !proven || !self.is_expected(node_id.as_ref()) {
            return self.refuse_contact(now, DownReason::Identity);
        }
        if self.role == Role::Passive {
            self.say_init();
        }
        self.establish(now, Dialect::Four(terms), peer.keepalive, node_id);
    }

    fn is_expected(&self, node_id: Option<&String>) -> bool {
        self.config.peer_node_id.as_ref().is_none_or(|expected| Some(expected) == node_id)
    }

    fn establish(&mut self, now: Instant, dialect: Dialect, keepalive: u16, peer: Option<String>) {
        let keepalive = keepalive.min(self.config.keepalive_seconds());
        self.up.push_back(BundlesIndication::Up {
            peer,
            interleave: false,
            transfer_bytes_max: dialect.transfer_bytes_max(),
        });
        self.counters.sessions += 1;
        self.told = 0;
        self.timers.stop_all();
        let channel = Channel::new(&self.config, dialect, keepalive, now);
        if !channel.keepalive.is_zero() {
            self.set(Timer::KeepAlive, now + channel.keepalive);
            self.set(Timer::Silence, now + self.silence_limit(channel.keepalive));
        }
        if let Some(limit) = self.config.idle_timeout {
            self.set(Timer::Idle, now + limit);
        }
        self.phase = Phase::Up(Box::new(channel));
    }

    fn silence_limit(&self, keepalive: Duration) -> Duration {
        self.config.keepalive_timeout.unwrap_or(keepalive * 2)
    }

    // -- Hearing ------------------------------------------------------------------------------------------------

    /// Bytes from the peer. All are released at once but the payload that the user has not dealt with.
    fn hear(&mut self, now: Instant, mut input: Bytes) {
        self.pipe.release(input.len() as u64);
        self.heard_something(now);
        // Each round takes bytes, changes the phase or is the last.
        loop {
            match core::mem::replace(&mut self.phase, Phase::Resting) {
                Phase::Contact { said } => {
                    let versions = self.config.versions;
                    self.phase = Phase::Contact { said };
                    match self.pipe.next_message(&mut input, |bytes| peer_contact(bytes, versions)) {
                        Ok(Some(peer)) => self.hear_contact(now, said, peer),
                        Ok(None) => return,
                        Err(_) => return self.undecodable(now),
                    }
                }
                Phase::Greeting { proof } => match self.pipe.next_message(&mut input, Message::decode) {
                    Ok(Some(message)) => {
                        self.phase = Phase::Greeting { proof: None };
                        self.hear_greeting(now, proof, message);
                    }
                    Ok(None) => return self.phase = Phase::Greeting { proof },
                    Err(_) => {
                        self.phase = Phase::Greeting { proof };
                        return self.undecodable(now);
                    }
                },
                Phase::Securing if !input.is_empty() => {
                    // TLS begins with what comes after both contact headers, and that is not for this side to hear.
                    self.phase = Phase::Securing;
                    return self.undecodable(now);
                }
                Phase::Up(channel) => match self.hear_up(now, channel, &mut input) {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(fault) => return self.fail(now, fault),
                },
                // Bytes of no session, or after its end, are dropped.
                other => return self.phase = other,
            }
        }
    }

    /// Takes payload or one message. False when more bytes are needed.
    fn hear_up(&mut self, now: Instant, mut channel: Box<Channel>, input: &mut Bytes) -> Result<bool, Fault> {
        let expected = channel.incoming.expected();
        if expected > 0 {
            let data = input.split_to(expected.min(input.len() as u64) as usize);
            let more = !input.is_empty();
            self.matters(now, &channel);
            channel.payload(data, &mut self.pipe, &mut self.up, &mut self.counters);
            self.phase = Phase::Up(channel);
            return Ok(more);
        }
        let outcome = match self.pipe.next_message(input, |bytes| channel.dialect.hear(bytes)) {
            Ok(Some(heard)) => {
                let number = TransferId(self.next_number);
                self.next_number += 1;
                channel.hear(heard, number, &mut self.pipe, &mut self.up, &mut self.counters)
            }
            Ok(None) => {
                self.phase = Phase::Up(channel);
                return Ok(false);
            }
            Err(_) => {
                self.counters.violations += 1;
                Err(Fault::PROTOCOL)
            }
        };
        if let Ok(effect) = outcome {
            if effect.matters {
                self.matters(now, &channel);
            }
            if effect.ends {
                self.set(Timer::Linger, now + self.config.close_timeout);
            }
        }
        self.phase = Phase::Up(channel);
        outcome.map(|_| !input.is_empty())
    }

    /// A contact header that is none ends the stream without a word (RFC 9174 6.1); a SESS_INIT that is none with
    /// one.
    fn undecodable(&mut self, now: Instant) {
        self.counters.violations += 1;
        if let Phase::Greeting { .. } = self.phase {
            self.refuse_contact(now, DownReason::ProtocolError);
        } else {
            self.end_stream(now, DownReason::ProtocolError, true);
        }
    }

    fn heard_something(&mut self, now: Instant) {
        if let Phase::Up(channel) = &self.phase
            && !channel.keepalive.is_zero()
        {
            let limit = self.silence_limit(channel.keepalive);
            self.set(Timer::Silence, now + limit);
        }
    }

    /// More than a sign of life went one way or the other.
    fn matters(&mut self, now: Instant, channel: &Channel) {
        if let Some(limit) = self.config.idle_timeout {
            self.set(Timer::Idle, now + limit);
        }
        if channel.ending.is_some() && channel.may_linger() {
            self.set(Timer::Linger, now + self.config.close_timeout);
        }
    }

    // -- Going down ---------------------------------------------------------------------------------------------

    /// Ends a session that is up and cannot go on. What is being written is finished, so that the farewell is
    /// understood (RFC 9174 6.1).
    fn fail(&mut self, now: Instant, fault: Fault) {
        if let Phase::Up(channel) = &self.phase {
            let bytes = match fault.farewell {
                Farewell::Terminate(term) => channel.dialect.terminate(false, term),
                Farewell::Reject(header) => {
                    channel.dialect.reject(RejectReason::TypeUnknown, header).unwrap_or_default()
                }
            };
            self.pipe.write(bytes);
        }
        self.end_stream(now, fault.down, true);
    }

    /// Tells the user, and closes the stream behind what is still to be written.
    fn end_stream(&mut self, now: Instant, reason: DownReason, retry: bool) {
        self.pipe.close();
        self.down(now, reason, retry, None);
        self.phase = Phase::Closing;
        self.set(Timer::Linger, now + self.config.close_timeout);
    }

    /// Tells the user that the link is down, and when it is to be called again. The phase is the caller's to
    /// set.
    fn down(&mut self, now: Instant, reason: DownReason, retry: bool, delay: Option<u64>) {
        let phase = core::mem::replace(&mut self.phase, Phase::Resting);
        self.timers.stop_all();
        let mut was_up = false;
        let mut immediately = false;
        match phase {
            Phase::Up(mut channel) => {
                was_up = true;
                self.pipe.release(channel.incoming.held());
                self.up.extend(channel.outgoing.fail_all());
                self.up.extend(channel.incoming.lose_all());
                // A session that lived for as long as was waited for it was a success.
                if now.saturating_since(channel.since) >= self.backoff(self.failures) {
                    self.failures = 0;
                }
            }
            Phase::Contact { .. } | Phase::Securing | Phase::Greeting { .. } => {
                immediately = self.try_other_version(reason);
            }
            Phase::Resting | Phase::Connecting | Phase::Closing => {}
        }
        self.wanted &= retry && self.role == Role::Active;
        if was_up || self.role == Role::Active {
            self.up.push_back(BundlesIndication::Down { reason, retry: self.wanted });
        }
        if self.wanted {
            let asked = delay.map_or(Duration::ZERO, Duration::from_secs);
            let wait = if immediately { Duration::ZERO } else { self.next_delay().max(asked) };
            self.set(Timer::Retry, now + wait);
        }
    }

    /// Where both versions are spoken and the peer has not shown which is its own, or says that this is not, the
    /// next call is made in the other one. True if at once.
    fn try_other_version(&mut self, reason: DownReason) -> bool {
        if self.role == Role::Passive || self.config.versions != Versions::Both {
            return false;
        }
        if self.proven && reason != DownReason::Version {
            return false;
        }
        self.proven = false;
        self.version = match self.version {
            Version::Three => Version::Four,
            Version::Four => Version::Three,
        };
        self.version == Version::Three
    }

    /// The delay after so many failures in a row, without the random part.
    fn backoff(&self, failures: u32) -> Duration {
        let doubled = self.config.reconnect_min.saturating_mul(1 << failures.min(30));
        doubled.min(self.config.reconnect_max)
    }

    fn next_delay(&mut self) -> Duration {
        let delay = self.backoff(self.failures);
        self.failures = self.failures.saturating_add(1);
        let more = delay.as_nanos() as f64 * self.config.reconnect_jitter.clamp(0.0, 1.0) * self.rng.unit();
        delay + Duration::from_nanos(more as u64)
    }

    /// The stream is over.
    fn closed(&mut self, now: Instant, reason: CloseReason) {
        match &self.phase {
            // A closed stream that nobody opened is none of this session's.
            Phase::Resting => {}
            Phase::Closing => self.phase = Phase::Resting,
            Phase::Up(channel) => {
                let ending = channel.ending;
                match ending {
                    Some(ending) => self.down(now, ending.down, ending.retry, ending.delay),
                    None => self.down(now, DownReason::Stream(reason), true, None),
                }
            }
            _ => self.down(now, DownReason::Stream(reason), true, None),
        }
        self.phase = Phase::Resting;
        self.pipe.reset();
        if self.role == Role::Passive {
            self.asked = true;
            self.wanted = false;
            self.timers.stop_all();
        } else if self.wanted && self.timers.get(Timer::Retry as usize).is_none() {
            // It was due while the old stream was still closing.
            self.connect(now);
        }
    }

    /// The peer writes no more: what is not here will not come.
    fn peer_closed(&mut self, now: Instant) {
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
            Phase::Contact { .. } | Phase::Securing | Phase::Greeting { .. } => {
                self.end_stream(now, DownReason::Stream(CloseReason::Finished), true);
            }
            Phase::Closing => self.pipe.close(),
            Phase::Resting | Phase::Connecting => {}
        }
    }

    /// The user wants the link down.
    fn close(&mut self, now: Instant) {
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
            Phase::Contact { .. } | Phase::Securing | Phase::Greeting { .. } => {
                self.end_stream(now, DownReason::Closed, false);
            }
            Phase::Resting | Phase::Closing if self.wanted => {
                let closing = matches!(self.phase, Phase::Closing);
                self.down(now, DownReason::Closed, false, None);
                if closing {
                    self.phase = Phase::Closing;
                    self.set(Timer::Linger, now + self.config.close_timeout);
                }
            }
            Phase::Resting | Phase::Closing => {}
        }
        self.wanted = false;
    }

    // -- Time ---------------------------------------------------------------------------------------------------

    fn contact_is_late(&mut self, now: Instant) {
        match self.phase {
            Phase::Connecting => {
                self.down(now, DownReason::Stream(CloseReason::TimedOut), true, None);
                self.pipe.abort();
                self.phase = Phase::Closing;
            }
            Phase::Greeting { .. } => self.refuse_contact(now, DownReason::KeepAlive),
            Phase::Contact { .. } | Phase::Securing => self.end_stream(now, DownReason::KeepAlive, true),
            Phase::Resting | Phase::Up(_) | Phase::Closing => {}
        }
    }

    fn peer_is_silent(&mut self, now: Instant) {
        let Phase::Up(channel) = &self.phase else { return };
        if channel.incoming.held() > 0 {
            // This side holds the peer back: its silence says nothing.
            self.heard_something(now);
            return;
        }
        self.fail(now, Fault::new(DownReason::KeepAlive, TermReason::IdleTimeout));
    }

    fn is_idle(&mut self, now: Instant) {
        let Phase::Up(channel) = &mut self.phase else { return };
        if channel.is_idle() && channel.ending.is_none() {
            channel.end(TermReason::IdleTimeout, DownReason::Idle, false);
            self.set(Timer::Linger, now + self.config.close_timeout);
        } else if let Some(limit) = self.config.idle_timeout {
            self.set(Timer::Idle, now + limit);
        }
    }

    /// The end takes too long: what is not finished by now is cut off.
    fn end_is_late(&mut self, now: Instant) {
        if let Phase::Up(channel) = &self.phase {
            let ending = channel.ending.map(|ending| (ending.down, ending.retry, ending.delay));
            let (reason, retry, delay) = ending.unwrap_or((DownReason::Closed, false, None));
            self.down(now, reason, retry, delay);
            self.phase = Phase::Closing;
        }
        if matches!(self.phase, Phase::Closing) {
            self.pipe.abort();
        }
    }

    /// It is time to call again; a stream that is still closing is in the way.
    fn retry(&mut self, now: Instant) {
        match self.phase {
            Phase::Resting if self.wanted => self.connect(now),
            Phase::Closing if self.wanted => {
                self.timers.stop(Timer::Linger as usize);
                self.pipe.abort();
            }
            _ => {}
        }
    }

    // -- Speaking -----------------------------------------------------------------------------------------------

    /// Makes the next message if there is room for it. False if there is nothing to make.
    fn speak(&mut self, now: Instant) -> bool {
        let Phase::Up(channel) = &mut self.phase else { return false };
        if self.pipe.may_begin() {
            let spoken = channel.speak(&mut self.pipe, &mut self.up, &mut self.counters);
            if spoken == Spoken::Message
                && let Some(limit) = self.config.idle_timeout
            {
                self.timers.set(Timer::Idle as usize, now + limit);
            }
            if spoken != Spoken::Nothing {
                return true;
            }
        }
        if self.pipe.is_between() && channel.has_ended() && !self.pipe.is_closed() {
            self.timers.stop(Timer::KeepAlive as usize);
            self.timers.stop(Timer::Silence as usize);
            self.pipe.close();
            return true;
        }
        false
    }

    /// Bytes are on their way: the next keep-alive is an interval away.
    fn wrote(&mut self, now: Instant) {
        if let Phase::Up(channel) = &mut self.phase
            && !channel.keepalive.is_zero()
        {
            channel.keepalive_due = false;
            let at = now + channel.keepalive;
            self.set(Timer::KeepAlive, at);
        }
    }
}

fn peer_contact(bytes: &mut Bytes, versions: Versions) -> Result<PeerContact, DecodeError> {
    let number = contact::sniff(bytes)?;
    Ok(match versions.with_number(number) {
        Some(Version::Three) => PeerContact::Three(v3::wire::ContactHeader::decode(bytes)?),
        Some(Version::Four) => PeerContact::Four(v4::wire::ContactHeader::decode(bytes)?),
        None => {
            // How long it is, only its own version knows.
            bytes.clear();
            PeerContact::Other
        }
    })
}

impl Engine for Session {
    type Above = Bundles;
    type Below = Stream;

    fn handle_request(&mut self, now: Instant, request: BundlesRequest) {
        match request {
            BundlesRequest::Connect => {
                if self.role == Role::Active && !self.wanted {
                    self.wanted = true;
                    self.asked = true;
                    self.failures = 0;
                    if matches!(self.phase, Phase::Resting) {
                        self.connect(now);
                    }
                }
            }
            BundlesRequest::Close => self.close(now),
            request => self.handle_transfer(now, request),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: StreamIndication) {
        match indication {
            StreamIndication::Connected => self.connected(now),
            StreamIndication::Secured { identity } => {
                if matches!(self.phase, Phase::Securing) {
                    self.set(Timer::Contact, now + self.config.contact_timeout);
                    self.greet(Some(Proof { identity }));
                }
            }
            StreamIndication::Room(room) => self.pipe.set_room(room),
            StreamIndication::Data(data) => self.hear(now, data),
            StreamIndication::PeerClosed => self.peer_closed(now),
            StreamIndication::Closed(reason) => self.closed(now, reason),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let mut due = |timer: Timer| self.timers.expire(timer as usize, now);
        let (contact, keepalive, silence) = (due(Timer::Contact), due(Timer::KeepAlive), due(Timer::Silence));
        let (idle, retry, linger) = (due(Timer::Idle), due(Timer::Retry), due(Timer::Linger));
        if contact {
            self.contact_is_late(now);
        }
        if keepalive && let Phase::Up(channel) = &mut self.phase {
            channel.keepalive_due = true;
        }
        if silence {
            self.peer_is_silent(now);
        }
        if idle {
            self.is_idle(now);
        }
        if linger {
            self.end_is_late(now);
        }
        if retry {
            self.retry(now);
        }
    }

    fn poll_indication(&mut self) -> Option<BundlesIndication> {
        if let Some(indication) = self.up.pop_front() {
            if let BundlesIndication::Down { .. } = indication {
                self.told = 0;
            }
            return Some(indication);
        }
        let Phase::Up(channel) = &self.phase else { return None };
        let room = channel.room(&self.pipe);
        if room == self.told {
            return None;
        }
        self.told = room;
        Some(BundlesIndication::Room(room))
    }

    fn poll_request(&mut self, now: Instant) -> Option<StreamRequest> {
        loop {
            if let Some(request) = self.pipe.next_request() {
                if matches!(request, StreamRequest::Write(_)) {
                    self.wrote(now);
                }
                return Some(request);
            }
            if !self.speak(now) {
                return None;
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    fn finished(&self) -> bool {
        let resting = matches!(self.phase, Phase::Resting) && self.asked && !self.wanted;
        resting && self.up.is_empty() && self.pipe.is_silent()
    }
}

impl Session {
    fn handle_transfer(&mut self, now: Instant, request: BundlesRequest) {
        let Phase::Up(channel) = &mut self.phase else {
            // The link went down while the request was under way.
            if let BundlesRequest::Open { transfer, .. } = request {
                let reason = TransferFailure::LinkDown;
                self.up.push_back(BundlesIndication::Failed { transfer, reason, acked: 0 });
            }
            return;
        };
        match request {
            BundlesRequest::Open { transfer, length, .. } => {
                let mtu = channel.dialect.transfer_bytes_max();
                self.up.extend(channel.outgoing.open(transfer, length, mtu));
            }
            BundlesRequest::Piece { transfer, data, last } => {
                self.told = self.told.saturating_sub(data.len() as u64);
                channel.outgoing.piece(transfer, data, last);
            }
            BundlesRequest::Cancel { transfer } => {
                if let Err(fault) = channel.cancel(transfer, &mut self.up) {
                    self.fail(now, fault);
                }
            }
            BundlesRequest::Accept { transfer, up_to } => {
                self.pipe.release(channel.incoming.accept(transfer, up_to));
            }
            BundlesRequest::Refuse { transfer, reason } => {
                let refused = channel.refuse(transfer, reason, &mut self.pipe, &mut self.counters);
                if let Err(fault) = refused {
                    self.fail(now, fault);
                }
            }
            BundlesRequest::Connect | BundlesRequest::Close => unreachable!("they are no transfer's"),
        }
    }
}
