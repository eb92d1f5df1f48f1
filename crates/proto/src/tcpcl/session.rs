//! TCPCL engine: establishes a session over a stream, keeps it up, and re-establishes it after a break.

mod admission;
mod closing;
mod opening;

pub use admission::{AdmissionDecision, CallerIdentity};

use super::config::{Config, Counters, Tls, Version, Versions};
use super::contact;
use super::established::{EstablishedSession, PROBE_EVERY, SessionFault, Written};
use super::stream_buffer::StreamBuffer;
use super::v4::wire::{Message, TermReason};
use super::{v3, v4};
use crate::codec::DecodeError;
use crate::engine::Engine;
use crate::kit::Backoff;
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, CloseReason, DownReason, Stream, StreamIndication,
    StreamRequest, TransferFailure, TransferId,
};
use crate::time::{Instant, Timers};
use bytes::Bytes;
use std::collections::VecDeque;

/// Side that opened the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// This side, which connects and reconnects.
    Active,
    /// The peer.
    Passive,
}

/// Maximum number of bytes discarded after the end of a session, more than a stream has in transit: a peer that sends
/// more is not reading.
const DISCARDED_BYTES_MAX: u64 = 4 << 20;

#[derive(Clone, Copy)]
enum Timer {
    /// The stream, the contact header, TLS or the SESS_INIT takes too long.
    Contact,
    /// A keepalive is due.
    KeepAlive,
    /// The keepalive timeout: no input from the peer.
    Silence,
    /// The idle timeout: nothing but keepalives in either direction.
    Idle,
    /// The next attempt to connect.
    Retry,
    /// The end of the session takes too long.
    Linger,
}

/// State of a session.
#[derive(Debug)]
enum Phase {
    /// No stream.
    Closed,
    /// The stream is being opened.
    Connecting,
    /// The contact headers are being exchanged; `said` is true once that of this side is sent.
    Contact { said: bool },
    /// TLS is being set up.
    Securing,
    /// The SESS_INITs are being exchanged; `proof` contains the identities authenticated by TLS, if it is in use.
    Greeting { proof: Option<Proof> },
    /// The peer has identified itself, and the owner has not decided on its admission yet.
    AwaitingAdmission(Box<admission::AwaitingAdmission>),
    /// Bundles may be transferred.
    Up(Box<EstablishedSession>),
    /// `Down` is indicated to the user; the stream is closing.
    Closing,
}

/// Result of the peer's authentication by TLS.
#[derive(Debug)]
struct Proof {
    /// Node IDs of the peer.
    identities: Vec<String>,
}

/// A contact header of the peer.
#[derive(Debug)]
enum PeerContact {
    Three(v3::wire::ContactHeader),
    Four(v4::wire::ContactHeader),
    /// A version that is not supported here.
    Other,
}

/// TCPCL session of either version; an engine that transfers bundles over a stream. The [module](super) describes its
/// states.
#[derive(Debug)]
pub struct Session {
    config: Config,
    role: Role,
    rng: Rng,
    phase: Phase,
    /// The user has requested the link.
    wanted: bool,
    /// A peer has connected.
    peer_called: bool,
    /// The owner decides on the admission of incoming sessions.
    owner_admits: bool,
    /// TLS has authenticated the node ID of the peer of this session, or of the last one.
    proven_id: bool,
    /// Version for the next connection.
    version: Version,
    /// The peer has used that version.
    proven: bool,
    /// Time at which the peer was last presumed to be of version 3 because it did not answer in version 4. The peer may
    /// only have been busy: the presumption expires, and ends when such a peer ends a session that has just begun.
    guessed_at: Option<Instant>,
    /// Time of the last request to connect the stream.
    called_at: Instant,
    pipe: StreamBuffer,
    timers: Timers<6>,
    up: VecDeque<BundlesIndication>,
    /// Room granted to the user, bytes.
    told: u64,
    /// Delay before the next attempt to connect, without its random part.
    backoff: Backoff,
    next_number: u64,
    /// Bytes received since the stream began to close.
    discarded: u64,
    /// Reason for the last end of the session or failed attempt. The user gets it, too, except for an incoming session
    /// that was never established.
    last_down: Option<DownReason>,
    counters: Counters,
}

impl Session {
    /// Creates the active side: it connects to its peer on request, and reconnects after a break.
    pub fn active(config: Config, rng: Rng) -> Self {
        Self::new(config, rng, Role::Active)
    }

    /// Creates the passive side: the peer opens it by connecting, and it ends with the stream.
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
            backoff: Backoff::new(config.reconnect_min, config.reconnect_max),
            proven: false,
            guessed_at: None,
            called_at: Instant::ZERO,
            config,
            role,
            rng,
            phase: Phase::Closed,
            wanted: role == Role::Passive,
            peer_called: false,
            owner_admits: false,
            proven_id: false,
            pipe: StreamBuffer::default(),
            timers: Timers::new(),
            up: VecDeque::new(),
            told: 0,
            next_number: 0,
            discarded: 0,
            last_down: None,
            counters: Counters::default(),
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the version of the session; `None` unless it is established.
    pub fn version(&self) -> Option<Version> {
        match &self.phase {
            Phase::Up(channel) => Some(channel.dialect.version),
            _ => None,
        }
    }

    /// Returns true if the peer did not answer in version 4, or reported that it does not support it, so that version 3
    /// is used to connect.
    pub fn fell_back(&self) -> bool {
        self.role == Role::Active && self.config.versions == Versions::Both && self.version == Version::Three
    }

    fn set(&mut self, timer: Timer, at: Instant) {
        self.timers.set(timer as usize, at);
    }

    // -- Input --------------------------------------------------------------------------------------------------

    /// Processes bytes from the peer. Everything is released at once except payload that the user has not accepted or
    /// refused.
    fn hear(&mut self, now: Instant, input: Bytes) {
        self.pipe.release(input.len() as u64);
        self.heard_something(now);
        self.hear_released(now, input);
    }

    fn hear_released(&mut self, now: Instant, mut input: Bytes) {
        // Each round consumes bytes, changes the phase or is the last.
        loop {
            match core::mem::replace(&mut self.phase, Phase::Closed) {
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
                    // Data after both contact headers belong to TLS, which the stream below processes.
                    self.phase = Phase::Securing;
                    return self.undecodable(now);
                }
                Phase::AwaitingAdmission(mut judged) => {
                    self.pipe.hold(input.len() as u64);
                    judged.input.extend_from_slice(&input);
                    return self.phase = Phase::AwaitingAdmission(judged);
                }
                Phase::Up(channel) => match self.hear_up(now, channel, &mut input) {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(fault) => return self.fail(now, fault),
                },
                Phase::Closing => {
                    self.phase = Phase::Closing;
                    return self.discard(input.len() as u64);
                }
                // Bytes without a session are dropped.
                other => return self.phase = other,
            }
        }
    }

    /// Discards bytes after the end. Data in transit are read, so that the peer receives the reason for the end; a peer
    /// that continues to send is disconnected.
    fn discard(&mut self, bytes: u64) {
        self.discarded += bytes;
        if self.discarded > DISCARDED_BYTES_MAX {
            self.pipe.abort();
        }
    }

    /// Processes payload or one message. Returns false if more bytes are needed.
    fn hear_up(
        &mut self,
        now: Instant,
        mut channel: Box<EstablishedSession>,
        input: &mut Bytes,
    ) -> Result<bool, SessionFault> {
        let expected = channel.incoming.expected();
        if expected > 0 {
            let data = input.split_to(expected.min(input.len() as u64) as usize);
            let more = !input.is_empty();
            self.matters(now, &channel);
            channel.payload(data, &mut self.pipe, &mut self.up, &mut self.counters);
            self.phase = Phase::Up(channel);
            return Ok(more);
        }
        let mut outcome = match self.pipe.next_message(input, |bytes| channel.dialect.hear(bytes)) {
            Ok(Some(heard)) => {
                let number = TransferId(self.next_number);
                self.next_number += u64::from(heard.begins());
                channel.hear(heard, number, &mut self.pipe, &mut self.up, &mut self.counters)
            }
            Ok(None) => {
                self.phase = Phase::Up(channel);
                return Ok(false);
            }
            Err(_) => {
                self.counters.violations += 1;
                Err(SessionFault::PROTOCOL)
            }
        };
        if outcome.is_ok_and(|effect| effect.idles) && channel.is_flooded(now) {
            self.counters.floods += 1;
            self.counters.violations += 1;
            outcome = Err(SessionFault::LIMIT);
        }
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

    /// Ends the stream after undecodable input: after an invalid contact header without a message (RFC 9174 6.1), after
    /// an invalid SESS_INIT with one.
    fn undecodable(&mut self, now: Instant) {
        self.counters.violations += 1;
        if let Phase::Greeting { .. } = self.phase {
            self.refuse_contact(now, DownReason::ProtocolError);
        } else {
            self.end_stream(now, DownReason::ProtocolError, true);
        }
    }

    fn heard_something(&mut self, now: Instant) {
        if let Phase::Up(channel) = &mut self.phase
            && !channel.keepalive.is_zero()
        {
            channel.probe_from = now + PROBE_EVERY;
            let keepalive = channel.keepalive;
            let limit = self.silence_limit(keepalive);
            self.set(Timer::Silence, now + limit);
        }
    }

    /// Restarts the timers after any traffic but keepalives.
    fn matters(&mut self, now: Instant, channel: &EstablishedSession) {
        if let Some(limit) = self.config.idle_timeout {
            self.set(Timer::Idle, now + limit);
        }
        if channel.ending.is_some() && channel.may_linger() {
            self.set(Timer::Linger, now + self.config.close_timeout);
        }
    }

    // -- Time ---------------------------------------------------------------------------------------------------

    fn contact_is_late(&mut self, now: Instant) {
        let opening = matches!(
            self.phase,
            Phase::Greeting { .. } | Phase::Contact { .. } | Phase::Securing | Phase::AwaitingAdmission(_)
        );
        self.counters.late += u64::from(opening);
        match self.phase {
            Phase::Connecting => {
                self.down(now, DownReason::Stream(CloseReason::TimedOut), true, None);
                self.pipe.abort();
                self.phase = Phase::Closing;
            }
            Phase::Greeting { .. } | Phase::AwaitingAdmission(_) => {
                self.refuse_contact(now, DownReason::KeepAlive)
            }
            Phase::Contact { .. } | Phase::Securing => self.end_stream(now, DownReason::KeepAlive, true),
            Phase::Closed | Phase::Up(_) | Phase::Closing => {}
        }
    }

    fn peer_is_silent(&mut self, now: Instant) {
        let Phase::Up(channel) = &self.phase else { return };
        if channel.incoming.held() > 0 {
            // This side holds the peer back: missing input is no sign of a failure.
            self.heard_something(now);
            return;
        }
        self.counters.silent += 1;
        self.fail(now, SessionFault::new(DownReason::KeepAlive, TermReason::IdleTimeout));
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

    /// Ends a session whose orderly end takes too long; unfinished transfers are cut off.
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

    /// Connects again when the delay has passed; aborts a stream that is still closing.
    fn retry(&mut self, now: Instant) {
        match self.phase {
            Phase::Closed if self.wanted => self.connect(now),
            Phase::Closing if self.wanted => {
                self.timers.stop(Timer::Linger as usize);
                self.pipe.abort();
            }
            _ => {}
        }
    }

    // -- Output -------------------------------------------------------------------------------------------------

    /// Writes the next message if there is room for it. Returns false if there is none.
    fn speak(&mut self, now: Instant) -> bool {
        let Phase::Up(channel) = &mut self.phase else { return false };
        if self.pipe.may_begin() {
            let spoken = channel.speak(&mut self.pipe, &mut self.up, &mut self.counters);
            if spoken == Written::Message
                && let Some(limit) = self.config.idle_timeout
            {
                self.timers.set(Timer::Idle as usize, now + limit);
            }
            if spoken != Written::Nothing {
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

    /// Restarts the keepalive interval after bytes were written.
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
            // The length of this header is known only to its version.
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
                    self.backoff.succeed();
                    if matches!(self.phase, Phase::Closed) {
                        self.connect(now);
                    }
                }
                self.probe(now);
            }
            BundlesRequest::Close => self.close(now),
            request => self.handle_transfer(now, request),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: StreamIndication) {
        match indication {
            StreamIndication::Connected => self.connected(now),
            StreamIndication::Secured { identities, trusted } => {
                if matches!(self.phase, Phase::Securing) {
                    self.set(Timer::Contact, now + self.config.contact_timeout);
                    self.greet(Some(Proof { identities }));
                    if !trusted {
                        // RFC 9174 4.4.4.2.
                        self.refuse_contact(now, DownReason::Identity);
                    }
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

    fn poll_indication(&mut self, _now: Instant) -> Option<BundlesIndication> {
        let room = match &self.phase {
            Phase::Up(channel) => channel.room(&self.pipe),
            _ => self.told,
        };
        BundlesIndication::next(&mut self.up, &mut self.told, room)
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

    /// A passive session ends with its stream. An active one stays, idle: IDs of incoming transfers must not be reused,
    /// or a late request of the user for an old transfer would apply to a new one.
    fn finished(&self) -> bool {
        let over = matches!(self.phase, Phase::Closed) && self.peer_called;
        self.role == Role::Passive && over && self.up.is_empty() && self.pipe.is_silent()
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("tcpcl").count(&self.counters).tell("up", self.version().is_some());
        part.tell("fell_back", self.fell_back()).tell("proven", self.is_proven());
        if let Some(version) = self.version() {
            part.tell("version", u64::from(version.number()));
        }
        if let Some(reason) = self.last_down {
            part.tell("last_down", format!("{reason:?}"));
        }
    }
}

impl Session {
    fn handle_transfer(&mut self, now: Instant, request: BundlesRequest) {
        let Phase::Up(channel) = &mut self.phase else {
            // The link went down before the request arrived.
            if let BundlesRequest::Open { transfer, .. } = request {
                let reason = TransferFailure::LinkDown;
                self.up.push_back(BundlesIndication::Failed { transfer, reason, acked: 0 });
            }
            return;
        };
        match request {
            BundlesRequest::Open { transfer, length, .. } => {
                let mtu = channel.dialect.terms.transfer_bytes_max;
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
