//! The engine: brings a session up over a stream, keeps it up, and brings it back.

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
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, CloseReason, DownReason, Stream, StreamIndication,
    StreamRequest, TransferFailure, TransferId,
};
use crate::time::{Instant, Timers};
use bytes::Bytes;
use std::collections::VecDeque;

/// Who opened the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// This side: it calls, and calls again.
    Active,
    /// The peer.
    Passive,
}

/// Bytes that are waited out after the end, more than a stream has on its way: who sends on for longer does not listen.
const DISCARDED_BYTES_MAX: u64 = 4 << 20;

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
    Closed,
    /// The stream is being opened.
    Connecting,
    /// The contact headers are being exchanged; ours is out or not.
    Contact { said: bool },
    /// TLS is being set up.
    Securing,
    /// The SESS_INITs are being exchanged; whom TLS proved, if it is there.
    Greeting { proof: Option<Proof> },
    /// The peer has said who it is, and the owner has not said yet whether it may come in.
    AwaitingAdmission(Box<admission::AwaitingAdmission>),
    /// Bundles may go.
    Up(Box<EstablishedSession>),
    /// The user knows that it is down; the stream is on its way out.
    Closing,
}

/// What TLS proved of the peer.
#[derive(Debug)]
struct Proof {
    /// Its node ids.
    identities: Vec<String>,
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
    /// A peer has called.
    peer_called: bool,
    /// The owner judges who calls.
    owner_admits: bool,
    /// TLS has proved the node id of the peer of this session, or of the last.
    proven_id: bool,
    /// The version to call with.
    version: Version,
    /// The peer has spoken that version.
    proven: bool,
    /// When the peer was last taken for one of version 3 because it said nothing in version 4. That may have been a busy moment:
    /// it holds for a while, and until such a peer ends a session that has hardly begun.
    guessed_at: Option<Instant>,
    /// When the stream was last asked to connect.
    called_at: Instant,
    pipe: StreamBuffer,
    timers: Timers<6>,
    up: VecDeque<BundlesIndication>,
    /// The room that the user believes in.
    told: u64,
    /// Failed attempts in a row.
    failures: u32,
    next_number: u64,
    /// Bytes that came since the stream is on its way out.
    discarded: u64,
    last_down: Option<DownReason>,
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
            failures: 0,
            next_number: 0,
            discarded: 0,
            last_down: None,
            counters: Counters::default(),
        }
    }

    /// What it has counted.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Why it went down last, or did not come up. The user is told, but for a peer that called and was never up.
    pub fn last_down(&self) -> Option<DownReason> {
        self.last_down
    }

    /// The version that the session speaks, while it is up.
    pub fn version(&self) -> Option<Version> {
        match &self.phase {
            Phase::Up(channel) => Some(channel.dialect.version()),
            _ => None,
        }
    }

    /// True if the peer was called in version 4 and did not answer, or said that it does not speak it: it is called in version 3.
    pub fn fell_back(&self) -> bool {
        self.role == Role::Active && self.config.versions == Versions::Both && self.version == Version::Three
    }

    fn set(&mut self, timer: Timer, at: Instant) {
        self.timers.set(timer as usize, at);
    }

    // -- Hearing ------------------------------------------------------------------------------------------------

    /// Bytes from the peer. All are released at once but the payload that the user has not dealt with.
    fn hear(&mut self, now: Instant, input: Bytes) {
        self.pipe.release(input.len() as u64);
        self.heard_something(now);
        self.hear_released(now, input);
    }

    fn hear_released(&mut self, now: Instant, mut input: Bytes) {
        // Each round takes bytes, changes the phase or is the last.
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
                    // TLS begins with what comes after both contact headers, and that is not for this side to hear.
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
                // Bytes of no session are dropped.
                other => return self.phase = other,
            }
        }
    }

    /// Bytes after the end. What was on its way is waited out, so that the peer hears why it ended; who goes on sending is
    /// cut off.
    fn discard(&mut self, bytes: u64) {
        self.discarded += bytes;
        if self.discarded > DISCARDED_BYTES_MAX {
            self.pipe.abort();
        }
    }

    /// Takes payload or one message. False when more bytes are needed.
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
        if let Phase::Up(channel) = &mut self.phase
            && !channel.keepalive.is_zero()
        {
            channel.probe_from = now + PROBE_EVERY;
            let keepalive = channel.keepalive;
            let limit = self.silence_limit(keepalive);
            self.set(Timer::Silence, now + limit);
        }
    }

    /// More than a sign of life went one way or the other.
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
            // This side holds the peer back: its silence says nothing.
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
            Phase::Closed if self.wanted => self.connect(now),
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
                    self.failures = 0;
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

    /// One that was called is over with its stream. One that calls stays, idle: its numbers of incoming transfers
    /// must not be used again, or what a user says late of an old one would hit a new one.
    fn finished(&self) -> bool {
        let over = matches!(self.phase, Phase::Closed) && self.peer_called;
        self.role == Role::Passive && over && self.up.is_empty() && self.pipe.is_silent()
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
