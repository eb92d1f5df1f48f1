//! Engine of the file transfers: the state of the endpoint, the requests of the user, and the packets that leave.

use super::config::{Config, Counters, PACKET_BYTES_MIN};
use super::numbers::Numbers;
use super::receiving::{self, Incoming};
use super::sending::{self, Outgoing};
use super::waiting::Waiting;
use super::wire::{Metadata, Outcome};
use crate::engine::Engine;
use crate::kit::{Backoff, Deadlines, Pacer};
use crate::observe::Observation;
use crate::service::{
    CloseReason, Datagrams, DatagramsIndication, DatagramsRequest, DownReason, FileFailure, FileId, Files,
    FilesIndication, FilesRequest, PeerId,
};
use crate::time::{Instant, Timers};
use std::collections::{BTreeMap, VecDeque};

/// A session: the peer, and the number that its initiator has chosen.
pub(super) type Key = (PeerId, u32);

/// Direction of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    /// This side sends the file, or requests its deletion.
    Sender,
    /// This side receives the file.
    Receiver,
}

#[derive(Clone, Copy)]
pub(super) enum Timer {
    /// The rate permits the next packet.
    Pace,
    /// The rate of the way back permits the next STATUS.
    StatusPace,
    /// The next beacon is due.
    Beacon,
    /// The endpoint must be opened again.
    Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Closed,
    Joining,
    Up,
}

/// Packet of a session that waits to leave. Its contents are made when it leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Due {
    Request(Side, Key),
    Metadata(Key),
    Probe(Key),
}

impl Due {
    pub(super) fn key(&self) -> Key {
        let (Due::Request(_, key) | Due::Metadata(key) | Due::Probe(key)) = self;
        *key
    }
}

/// Received file that has ended.
#[derive(Clone, Debug)]
pub(super) struct Closed {
    /// Properties; `None` for a file that has failed without them.
    pub(super) metadata: Option<Metadata>,
    pub(super) outcome: Outcome,
}

/// Endpoint for files, with one peer or with any. The [module](super) describes its procedures.
#[derive(Debug)]
pub struct Endpoint {
    pub(super) config: Config,
    pub(super) listening: bool,
    pub(super) state: State,
    /// The user has requested the endpoint.
    pub(super) wanted: bool,
    /// A listening endpoint is closed, and this engine has finished.
    pub(super) over: bool,
    /// The link below is disconnected.
    pub(super) carrier_is_lost: bool,
    pub(super) timers: Timers<4>,
    /// Configured peer; `None` if the endpoint has none.
    pub(super) peer: Option<PeerId>,
    /// Maximum length of a packet, bytes; zero while the endpoint is not open.
    pub(super) packet_bytes: u64,
    /// Number of datagrams that the provider accepts.
    pub(super) room: u64,
    pub(super) pacer: Pacer,
    pub(super) status_pacer: Pacer,
    /// Requests to the provider.
    pub(super) orders: VecDeque<DatagramsRequest>,
    pub(super) release: u64,
    pub(super) beacon_due: bool,
    pub(super) backoff: Backoff,
    pub(super) up: VecDeque<FilesIndication>,
    pub(super) outgoing: BTreeMap<Key, Outgoing>,
    pub(super) incoming: BTreeMap<Key, Incoming>,
    /// Session of each file.
    pub(super) files: BTreeMap<FileId, (Side, Key)>,
    /// Deletions that the user has not answered.
    pub(super) deletions: BTreeMap<FileId, Key>,
    pub(super) closed: BTreeMap<Key, Closed>,
    pub(super) closed_order: VecDeque<Key>,
    /// Numbers of the sessions with the configured peer that are under way or remembered.
    pub(super) numbers: Numbers,
    pub(super) next_file: u64,
    pub(super) waiting: Waiting,
    /// Number of reads that the user has not answered.
    pub(super) reads: usize,
    /// Number of DATA packets that have left.
    pub(super) departures: u64,
    /// Sessions whose timer begins when a packet has left.
    pub(super) tokens: BTreeMap<u64, (Side, Key)>,
    pub(super) next_token: u64,
    /// Received bytes that count against the limit.
    pub(super) held_bytes: u64,
    pub(super) deadlines: Deadlines<(Side, Key)>,
    /// Time at which the peer was last heard.
    pub(super) heard_at: Option<Instant>,
    pub(super) counters: Counters,
}

impl Endpoint {
    /// Creates an endpoint with one peer, which is opened on request.
    pub fn new(config: Config) -> Self {
        Endpoint {
            backoff: Backoff::new(config.retry_min, config.retry_max),
            pacer: Pacer::new(config.rate_bps, config.burst),
            status_pacer: Pacer::new(config.status_rate_bps, config.burst),
            config,
            listening: false,
            state: State::Closed,
            wanted: false,
            over: false,
            carrier_is_lost: false,
            timers: Timers::new(),
            peer: None,
            packet_bytes: 0,
            room: 0,
            orders: VecDeque::new(),
            release: 0,
            beacon_due: false,
            up: VecDeque::new(),
            outgoing: BTreeMap::new(),
            incoming: BTreeMap::new(),
            files: BTreeMap::new(),
            deletions: BTreeMap::new(),
            closed: BTreeMap::new(),
            closed_order: VecDeque::new(),
            numbers: Numbers::default(),
            next_file: 0,
            waiting: Waiting::new(),
            reads: 0,
            departures: 0,
            tokens: BTreeMap::new(),
            next_token: 0,
            held_bytes: 0,
            deadlines: Deadlines::new(),
            heard_at: None,
            counters: Counters::default(),
        }
    }

    /// Creates an endpoint on which any peer may send; the provider opens it.
    pub fn listening(config: Config) -> Self {
        Endpoint { listening: true, ..Endpoint::new(Config { beacon: None, ..config }) }
    }

    /// Counters since the creation of the endpoint.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    // -- Up and down --------------------------------------------------------------------------------------------

    /// Returns true if nothing can leave, so that no timer runs.
    pub(super) fn is_paused(&self) -> bool {
        self.state != State::Up || self.carrier_is_lost
    }

    fn join(&mut self) {
        self.timers.stop(Timer::Retry as usize);
        self.state = State::Joining;
        self.orders.push_back(DatagramsRequest::Join { damaged: false });
    }

    fn joined(&mut self, now: Instant, bytes_max: u64, peer: Option<PeerId>) {
        let expected = if self.listening { State::Closed } else { State::Joining };
        if self.state != expected {
            return;
        }
        self.state = State::Up;
        self.carrier_is_lost = false;
        self.counters.joined += 1;
        self.packet_bytes = bytes_max.min(self.config.packet_bytes);
        // An endpoint for shorter datagrams than a STATUS needs carries no files.
        self.peer = peer.filter(|_| self.packet_bytes >= PACKET_BYTES_MIN);
        self.pacer.restart(now);
        self.status_pacer.restart(now);
        if self.config.beacon.is_some() && self.peer.is_some() {
            self.beacon_due = true;
        }
        self.heard_at = None;
        if self.peer.is_none() {
            self.end_files(|peer| peer == PeerId::CONFIGURED);
        }
        self.up.push_back(FilesIndication::Up { has_peer: self.peer.is_some() });
        self.resume(now);
    }

    /// Stops all timers of sessions while nothing can leave.
    fn pause(&mut self) {
        for (key, file) in &mut self.outgoing {
            self.deadlines.set((Side::Sender, *key), &mut file.deadline, None);
        }
        for (key, file) in &mut self.incoming {
            self.deadlines.set((Side::Receiver, *key), &mut file.deadline, None);
        }
    }

    /// Continues all sessions: each side tells the other what it has.
    fn resume(&mut self, now: Instant) {
        let outgoing: Vec<_> = self.outgoing.keys().copied().collect();
        for key in outgoing {
            let file = self.outgoing.get_mut(&key).expect("just listed");
            file.resume(now, &self.config);
            match &file.phase {
                sending::Phase::Asking | sending::Phase::Deleting => {
                    self.waiting.add_due(Due::Request(Side::Sender, key));
                }
                sending::Phase::Sending if file.has_begun && file.is_sent() => {
                    self.waiting.add_due(Due::Probe(key));
                }
                sending::Phase::Sending | sending::Phase::Wanted => {}
            }
            self.reschedule(Side::Sender, key);
        }
        let incoming: Vec<_> = self.incoming.keys().copied().collect();
        for key in incoming {
            let file = self.incoming.get_mut(&key).expect("just listed");
            file.resume(now, &self.config);
            match &file.phase {
                receiving::Phase::Asking { .. } => {
                    self.waiting.add_due(Due::Request(Side::Receiver, key));
                }
                receiving::Phase::Offered => {}
                receiving::Phase::Unnamed | receiving::Phase::Receiving => self.queue_status(key),
            }
            self.reschedule(Side::Receiver, key);
        }
    }

    /// Ends the use of the endpoint. Sessions wait for the next one.
    fn down(&mut self, reason: DownReason, retry: bool) {
        let was_up = self.state == State::Up;
        self.state = State::Closed;
        self.timers.stop_all();
        self.beacon_due = false;
        (self.room, self.release, self.packet_bytes, self.peer) = (0, 0, 0, None);
        self.waiting.remove_answers();
        self.tokens.clear();
        self.pause();
        // The numbers of other peers are not valid on another endpoint.
        self.end_files(|peer| !retry || peer != PeerId::CONFIGURED);
        self.closed.retain(|(peer, _), _| *peer == PeerId::CONFIGURED);
        self.closed_order.retain(|(peer, _)| *peer == PeerId::CONFIGURED);
        if was_up || !self.listening {
            self.up.push_back(FilesIndication::Down { reason, retry });
        }
    }

    /// Ends the files of some peers, because the endpoint is not opened again, or not for them.
    fn end_files(&mut self, is_over: impl Fn(PeerId) -> bool) {
        let files = self.files.iter().filter(|(_, (_, key))| is_over(key.0));
        let files: Vec<_> = files.map(|(file, _)| *file).collect();
        files.into_iter().for_each(|file| self.fail(file, FileFailure::Closed));
        self.deletions.retain(|_, (peer, _)| !is_over(*peer));
    }

    fn left(&mut self, now: Instant, reason: CloseReason) {
        if self.state != State::Closed {
            self.counters.failed += 1;
            self.go_down(now, DownReason::Stream(reason));
            self.over = self.listening;
        }
    }

    /// Closes the endpoint if the peer has answered nothing at all for the time after which a file fails.
    pub(super) fn check_silence(&mut self, now: Instant) {
        let limit = self.config.inactivity_limit();
        let was_heard = self.heard_at.is_some_and(|at| now < at + limit);
        if self.state == State::Up && !self.listening && !was_heard {
            self.counters.silent += 1;
            self.orders.clear();
            self.orders.push_back(DatagramsRequest::Leave);
            self.go_down(now, DownReason::KeepAlive);
        }
    }

    fn go_down(&mut self, now: Instant, reason: DownReason) {
        let retry = self.wanted && !self.listening;
        self.down(reason, retry);
        if retry {
            self.timers.set(Timer::Retry as usize, now + self.backoff.fail());
        }
    }

    fn close(&mut self) {
        let wanted = core::mem::replace(&mut self.wanted, false);
        if self.state != State::Closed {
            self.orders.clear();
            self.orders.push_back(DatagramsRequest::Leave);
            self.over = self.listening;
        } else if !wanted {
            return;
        }
        self.down(DownReason::Closed, false);
    }

    // -- Timers -------------------------------------------------------------------------------------------------

    /// Sets the deadline of a session.
    pub(super) fn reschedule(&mut self, side: Side, key: Key) {
        let is_paused = self.is_paused();
        let (deadline, stored) = match side {
            Side::Sender => {
                let Some(file) = self.outgoing.get_mut(&key) else { return };
                (file.next_deadline(), &mut file.deadline)
            }
            Side::Receiver => {
                let Some(file) = self.incoming.get_mut(&key) else { return };
                (file.next_deadline(), &mut file.deadline)
            }
        };
        self.deadlines.set((side, key), stored, deadline.filter(|_| !is_paused));
    }

    fn sender_is_due(&mut self, now: Instant, key: Key) {
        let Some(file) = self.outgoing.get_mut(&key) else { return };
        file.deadline = None;
        let passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if passed(file.inactive_at) {
            self.counters.inactive += 1;
            let file = file.file;
            self.fail(file, FileFailure::Silent);
            self.check_silence(now);
            return;
        }
        if passed(file.request_at) {
            // The packet at the end of the file requests a STATUS in any case.
            file.request_due = true;
            file.request_at = None;
        }
        if passed(file.answer_at) {
            file.answer_at = None;
            match file.phase {
                sending::Phase::Asking | sending::Phase::Deleting => {
                    self.waiting.add_due(Due::Request(Side::Sender, key));
                }
                sending::Phase::Sending if file.is_sent() => {
                    self.waiting.add_due(Due::Probe(key));
                }
                sending::Phase::Sending | sending::Phase::Wanted => {}
            }
        }
        self.reschedule(Side::Sender, key);
    }

    fn receiver_is_due(&mut self, now: Instant, key: Key) {
        let Some(file) = self.incoming.get_mut(&key) else { return };
        file.deadline = None;
        let passed = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if passed(file.inactive_at) && !file.is_complete() {
            self.counters.inactive += 1;
            let (file, is_asking) = (file.file, matches!(file.phase, receiving::Phase::Asking { .. }));
            self.fail(file, FileFailure::Silent);
            if is_asking {
                self.check_silence(now);
            }
            return;
        }
        if passed(file.answer_at) {
            file.answer_at = None;
            self.waiting.add_due(Due::Request(Side::Receiver, key));
        }
        if passed(file.inactive_at) {
            // All of it is with the user.
            file.inactive_at = None;
        }
        file.expect_again(now);
        if passed(file.status_at) {
            file.status_at = None;
            self.queue_status(key);
        }
        self.advance(now, key);
    }
}

impl Engine for Endpoint {
    type Above = Files;
    type Below = Datagrams;

    fn handle_request(&mut self, now: Instant, request: FilesRequest) {
        match request {
            FilesRequest::Connect => {
                self.wanted = true;
                if self.state == State::Closed && !self.listening {
                    self.backoff.succeed();
                    self.join();
                }
            }
            FilesRequest::Put { file, properties, available, asks } => {
                self.put(now, file, properties, available, asks);
            }
            FilesRequest::Get { file, path, wish, held } => self.get(now, file, path, wish, held),
            FilesRequest::Delete { file, path } => self.delete(now, file, path),
            FilesRequest::Available { file, up_to } => {
                if let Some((key, outgoing)) = self.outgoing_file(file) {
                    outgoing.extend(up_to);
                    self.offer_content(now, key);
                }
            }
            FilesRequest::Content { file, offset, data } => self.content(file, offset, data),
            FilesRequest::Accept { file, held } => self.accept(now, file, held),
            FilesRequest::Provide { file, properties, available } => {
                self.provide(now, file, properties, available);
            }
            FilesRequest::Removed { file } => self.removed(file),
            FilesRequest::Stored { file, start, end } => self.stored(now, file, start, end),
            FilesRequest::Refuse { file, reason } => self.cancel(file, reason),
            FilesRequest::Cancel { file } => self.cancel(file, FileFailure::NotInterested),
            FilesRequest::Close => self.close(),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: DatagramsIndication) {
        match indication {
            DatagramsIndication::Joined { bytes_max, peer, .. } => self.joined(now, bytes_max, peer),
            DatagramsIndication::Room(room) => self.room = room,
            DatagramsIndication::Datagram { from, bytes, .. } => {
                if self.state == State::Up {
                    self.release += bytes.len() as u64;
                    self.hear(now, from, bytes);
                }
            }
            DatagramsIndication::Carrier(true) => {
                if core::mem::take(&mut self.carrier_is_lost) && self.state == State::Up {
                    self.resume(now);
                }
            }
            DatagramsIndication::Carrier(false) => {
                self.carrier_is_lost = true;
                self.pause();
            }
            DatagramsIndication::Transmitted(token) => self.transmitted(now, token),
            DatagramsIndication::Left(reason) => self.left(now, reason),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timers.expire(Timer::Pace as usize, now);
        self.timers.expire(Timer::StatusPace as usize, now);
        if self.timers.expire(Timer::Beacon as usize, now) {
            self.beacon_due = true;
        }
        if self.timers.expire(Timer::Retry as usize, now) && self.wanted {
            self.join();
        }
        while let Some((side, key)) = self.deadlines.pop_due(now) {
            match side {
                Side::Sender => self.sender_is_due(now, key),
                Side::Receiver => self.receiver_is_due(now, key),
            }
        }
    }

    fn poll_indication(&mut self, now: Instant) -> Option<FilesIndication> {
        self.up.pop_front().or_else(|| self.next_read(now))
    }

    fn poll_request(&mut self, now: Instant) -> Option<DatagramsRequest> {
        if let Some(order) = self.orders.pop_front() {
            return Some(order);
        }
        if self.release > 0 {
            return Some(DatagramsRequest::Release(core::mem::take(&mut self.release)));
        }
        self.next_datagram(now)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next().into_iter().chain(self.deadlines.next()).min()
    }

    fn finished(&self) -> bool {
        self.over && self.up.is_empty() && self.orders.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("saratoga").count(&self.counters).tell("up", self.state == State::Up);
        part.tell("files_outgoing", self.outgoing.len()).tell("files_incoming", self.incoming.len());
        part.tell("bytes_held", self.held_bytes).tell("sessions_remembered", self.closed.len());
    }
}
