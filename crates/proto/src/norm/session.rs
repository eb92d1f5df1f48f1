//! Engine of a session: a sender, and the receivers of all remote senders.

use super::config::{Config, Counters, SEGMENT_BYTES_MIN};
use super::sender::Sender;
use super::source::{Arrival, Shared, Source};
use super::wire::{Body, Message, NodeId, SenderFields, StreamFields, data_header_bytes};
use crate::engine::Engine;
use crate::fec::VandermondeCode;
use crate::kit::{Backoff, Pacer};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    CloseReason, Datagrams, DatagramsIndication, DatagramsRequest, DownReason, ObjectFailure, ObjectKind,
    Objects, ObjectsIndication, ObjectsRequest, PeerId, Shares,
};
use crate::time::{Instant, Timers};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy)]
enum Timer {
    /// The rate permits the next message.
    Pace,
    /// The endpoint must be opened again.
    Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Closed,
    Joining,
    Up,
}

/// Session with one peer, with a group, or with any sender. The [module](super) describes its procedures.
#[derive(Debug)]
pub struct Session {
    config: Config,
    own: NodeId,
    rng: Rng,
    listening: bool,
    state: State,
    /// The user has requested the session.
    wanted: bool,
    /// A listening session is closed, and this engine has finished.
    over: bool,
    /// The link below is disconnected.
    carrier_is_lost: bool,
    timers: Timers<2>,
    peer: Option<PeerId>,
    group: Option<PeerId>,
    answers_to_group: bool,
    /// Length of segments, bytes.
    segment_bytes: u64,
    /// Maximum length of a datagram, bytes.
    bytes_max: u64,
    /// Number of datagrams that the provider accepts.
    room: u64,
    pacer: Pacer,
    backoff: Backoff,
    orders: VecDeque<DatagramsRequest>,
    release: u64,
    sender: Sender,
    sources: BTreeMap<(PeerId, NodeId), Source>,
    /// Number of the next message of the sender, and of the next answer.
    sequence: u16,
    answer_sequence: u16,
    /// Number of the next received object.
    next_number: u64,
    /// Memory of incomplete blocks, bytes.
    held: u64,
    /// Received bytes that the user has not accepted.
    unaccepted: u64,
    code: Option<VandermondeCode>,
    /// Streams are received.
    has_streams: bool,
    up: VecDeque<ObjectsIndication>,
    /// Room granted to the user, bytes.
    told: u64,
    counters: Counters,
}

impl Session {
    /// Creates a session with one peer or a group, which is opened on request.
    pub fn new(config: Config, mut rng: Rng) -> Self {
        Session {
            own: NodeId(config.own_node_id()),
            sender: Sender::new(config.clone(), &mut rng),
            backoff: Backoff::new(config.retry_min, config.retry_max),
            pacer: Pacer::new(0, config.burst),
            segment_bytes: config.segment_bytes,
            config,
            rng,
            listening: false,
            state: State::Closed,
            wanted: false,
            over: false,
            carrier_is_lost: false,
            timers: Timers::new(),
            peer: None,
            group: None,
            answers_to_group: false,
            bytes_max: 0,
            room: 0,
            orders: VecDeque::new(),
            release: 0,
            sources: BTreeMap::new(),
            sequence: 0,
            answer_sequence: 0,
            next_number: 0,
            held: 0,
            unaccepted: 0,
            code: None,
            has_streams: true,
            up: VecDeque::new(),
            told: 0,
            counters: Counters::default(),
        }
    }

    /// Creates a session on which any sender may send; the provider opens it.
    pub fn listening(config: Config, rng: Rng) -> Self {
        Session { listening: true, ..Session::new(config, rng) }
    }

    /// Ignores streams, and counts them.
    pub(super) fn without_streams(self) -> Self {
        Session { has_streams: false, ..self }
    }

    /// Counters since the creation of the session.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    // -- Up and down --------------------------------------------------------------------------------------------

    fn join(&mut self) {
        self.timers.stop(Timer::Retry as usize);
        self.state = State::Joining;
        self.orders.push_back(DatagramsRequest::Join { damaged: false });
    }

    fn joined(&mut self, now: Instant, bytes_max: u64, peer: Option<PeerId>, group: Option<PeerId>) {
        let expected = if self.listening { State::Closed } else { State::Joining };
        if self.state != expected {
            return;
        }
        self.state = State::Up;
        self.carrier_is_lost = false;
        self.counters.joined += 1;
        let has_group = self.config.group.unwrap_or(peer.is_none());
        // A station does not know from which group another one answers it alone: all answers go to the group.
        self.answers_to_group = self.config.group_answers || peer.is_some();
        (self.peer, self.group) = if has_group { (None, group) } else { (peer, None) };
        self.bytes_max = bytes_max;
        self.pacer.restart(now);
        self.follow_rate(now);
        self.told = 0;
        self.segment_bytes = self.segment_bytes_within(bytes_max);
        let has_receiver = self.destination().is_some() && self.segment_bytes >= SEGMENT_BYTES_MIN;
        if has_receiver {
            self.sender.set_segment_bytes(self.segment_bytes);
            self.sender.resume(now, self.peer);
        } else {
            (self.peer, self.group) = (None, None);
        }
        self.up.push_back(ObjectsIndication::Up {
            object_bytes_max: if has_receiver { self.config.object_bytes_max } else { 0 },
        });
    }

    /// Length of segments where datagrams have at most this length, bytes: the configured one, or what fits with the header of a
    /// stream.
    fn segment_bytes_within(&self, bytes_max: u64) -> u64 {
        let longest = bytes_max.saturating_sub(data_header_bytes(self.config.fec_scheme, true) as u64);
        match self.config.segment_bytes {
            configured if configured <= longest => configured,
            _ => longest.saturating_sub(StreamFields::BYTES as u64),
        }
    }

    /// Length of the longest message with a symbol of an object, bytes.
    fn message_bytes_max(&self) -> u64 {
        self.segment_bytes + data_header_bytes(self.config.fec_scheme, true) as u64
    }

    /// Returns true if the segments of a stream, which are longer, fit into datagrams; while there are none, this is not the reason.
    fn fits_stream(&self) -> bool {
        self.state != State::Up || self.bytes_max >= self.message_bytes_max() + StreamFields::BYTES as u64
    }

    /// Receiver of the messages of this side.
    fn destination(&self) -> Option<PeerId> {
        self.group.or(self.peer)
    }

    /// Ends the session with all its objects.
    fn down(&mut self, now: Instant, reason: DownReason, failure: ObjectFailure, retry: bool) {
        let was_up = self.state == State::Up;
        self.state = State::Closed;
        self.timers.stop_all();
        self.room = 0;
        self.release = 0;
        self.sender.pause();
        self.fail_all(failure);
        for key in self.sources.keys().copied().collect::<Vec<_>>() {
            // The numbers of other peers are not valid any more.
            if key.0 == PeerId::CONFIGURED {
                self.with_source(now, key, Source::suspend);
            } else {
                self.forget(now, key);
            }
        }
        if was_up || !self.listening {
            self.up.push_back(ObjectsIndication::Down { reason, retry });
        }
    }

    fn fail_all(&mut self, failure: ObjectFailure) {
        self.counters.objects_failed += self.sender.objects() as u64;
        self.sender.fail_all(failure);
        self.up.append(&mut self.sender.up);
    }

    fn left(&mut self, now: Instant, reason: CloseReason) {
        if self.state == State::Closed {
            return;
        }
        self.counters.failed += 1;
        let retry = self.wanted && !self.listening;
        self.down(now, DownReason::Stream(reason), ObjectFailure::Down(reason), retry);
        if retry {
            self.timers.set(Timer::Retry as usize, now + self.backoff.fail());
        }
        self.over = self.listening;
    }

    /// Ends the session because receivers were silent, and tries again later.
    fn silent(&mut self, now: Instant) {
        self.counters.silent += 1;
        self.sender.forget_learnt_receivers();
        self.orders.push_back(DatagramsRequest::Leave);
        self.down(now, DownReason::KeepAlive, ObjectFailure::Silent, true);
        self.timers.set(Timer::Retry as usize, now + self.backoff.fail());
    }

    fn close(&mut self, now: Instant) {
        let wanted = core::mem::replace(&mut self.wanted, false);
        if self.state != State::Closed {
            self.orders.clear();
            self.orders.push_back(DatagramsRequest::Leave);
            self.over = self.listening;
        } else if !wanted {
            return;
        }
        self.down(now, DownReason::Closed, ObjectFailure::NotUp, false);
    }

    fn carrier(&mut self, now: Instant, is_connected: bool) {
        if self.state != State::Up || self.carrier_is_lost != is_connected {
            return;
        }
        self.carrier_is_lost = !is_connected;
        if is_connected && self.destination().is_some() {
            self.sender.resume(now, self.peer);
        } else {
            self.sender.pause();
        }
        for key in self.sources.keys().copied().collect::<Vec<_>>() {
            self.with_source(now, key, |source, shared| match is_connected {
                true => source.resume(now, shared),
                false => source.pause(),
            });
        }
    }

    // -- Received messages --------------------------------------------------------------------------------------

    /// Calls a function with a remote sender, if it is known, and the state that all of them share.
    fn with_source<T>(
        &mut self,
        now: Instant,
        key: (PeerId, NodeId),
        call: impl FnOnce(&mut Source, &mut Shared<'_>) -> T,
    ) -> Option<T> {
        let mut shared = Shared {
            now,
            config: &self.config,
            counters: &mut self.counters,
            rng: &mut self.rng,
            up: &mut self.up,
            next_number: &mut self.next_number,
            held: &mut self.held,
            unaccepted: &mut self.unaccepted,
            code: &mut self.code,
            has_streams: self.has_streams,
            own: self.own,
            payload_bytes_max: self.bytes_max.saturating_sub(HEADERS_BYTES_MAX) as usize,
            is_group: self.group.is_some(),
        };
        let source = self.sources.get_mut(&key)?;
        Some(call(source, &mut shared))
    }

    fn forget(&mut self, now: Instant, key: (PeerId, NodeId)) {
        self.with_source(now, key, Source::end);
        self.sources.remove(&key);
    }

    /// Makes a remote sender known, or notes its message.
    fn meet(&mut self, arrival: Arrival, key: (PeerId, NodeId), fields: &SenderFields) {
        let now = arrival.at;
        let is_group = self.group.is_some();
        if let Some(source) = self.sources.get_mut(&key) {
            if source.instance() == fields.instance {
                source.note(arrival, fields, &self.config, is_group);
                return;
            }
            self.counters.restarts += 1;
            self.forget(now, key);
        }
        if self.sources.len() >= self.config.senders_max {
            let longest =
                self.sources.iter().min_by_key(|(_, source)| (source.objects() > 0, source.heard_at));
            if let Some((key, _)) = longest {
                let key = *key;
                self.counters.displaced += 1;
                self.forget(now, key);
            }
        }
        self.sources.insert(key, Source::new(arrival, key.1, fields, &self.config, is_group));
    }

    fn receive(&mut self, now: Instant, from: PeerId, to_group: bool, mut bytes: Bytes) {
        let length = bytes.len();
        self.release += length as u64;
        if self.state != State::Up {
            return;
        }
        let Ok(message) = Message::decode(&mut bytes) else {
            self.counters.violations += 1;
            return;
        };
        // A group returns what this side sends.
        if message.source == self.own || message.source == NodeId::NONE {
            return;
        }
        let key = (from, message.source);
        let arrival = Arrival { at: now, sequence: message.sequence, bytes: length };
        match &message.body {
            Body::Info(info) => {
                self.meet(arrival, key, &info.sender);
                self.with_source(now, key, |source, shared| source.handle_info(now, info, shared));
            }
            Body::Data(data) => {
                self.meet(arrival, key, &data.sender);
                self.with_source(now, key, |source, shared| source.handle_data(now, data, shared));
            }
            Body::Command(command) => {
                self.meet(arrival, key, &command.sender);
                self.with_source(now, key, |source, shared| {
                    source.handle_command(now, &command.command, shared)
                });
            }
            Body::Nack(nack) if nack.sender == self.own => {
                self.sender.handle_nack(now, message.source, from, to_group, nack, &mut self.counters);
            }
            Body::Nack(nack) => {
                let mut others = self.sources.values_mut();
                if let Some(source) = others.find(|source| source.node == nack.sender) {
                    source.hear_requests(&nack.requests);
                    source.hear_feedback(nack.cc.as_ref());
                }
            }
            Body::Ack(ack) if ack.sender == self.own => {
                self.sender.handle_ack(now, message.source, from, to_group, ack, &mut self.counters);
                self.backoff.succeed();
            }
            Body::Ack(ack) => {
                let mut others = self.sources.values_mut();
                if let Some(source) = others.find(|source| source.node == ack.sender) {
                    source.hear_feedback(ack.cc.as_ref());
                }
            }
        }
        self.up.append(&mut self.sender.up);
        self.follow_rate(now);
    }

    /// Gives the pacer the rate of the sender.
    fn follow_rate(&mut self, now: Instant) {
        self.pacer.set_rate(now, self.sender.rate_bps());
        if let Some(at) = self.timers.get(Timer::Pace as usize)
            && self.pacer.ready_at() < at
        {
            self.timers.set(Timer::Pace as usize, self.pacer.ready_at());
        }
    }

    /// Calls a function with the remote senders, one by one, until it returns true.
    fn until(&mut self, now: Instant, mut call: impl FnMut(&mut Source, &mut Shared<'_>) -> bool) {
        let keys: Vec<_> = self.sources.keys().copied().collect();
        for key in keys {
            if self.with_source(now, key, &mut call) == Some(true) {
                return;
            }
        }
    }

    // -- Messages that leave ------------------------------------------------------------------------------------

    /// Accounts for a datagram that leaves.
    fn datagram(&mut self, to: PeerId, bytes: Bytes, shares: Shares) -> DatagramsRequest {
        self.room -= 1;
        self.counters.bytes_sent += bytes.len() as u64;
        DatagramsRequest::Datagram { to, bytes, shares, token: None }
    }

    /// Returns the next answer to a remote sender.
    fn next_answer(&mut self, now: Instant) -> Option<DatagramsRequest> {
        let (key, body) = loop {
            let ready = self.sources.iter().find(|(_, source)| source.has_answer());
            let key = *ready?.0;
            // What was due may have become superfluous.
            let answer = self.with_source(now, key, |source, shared| source.next_answer(now, shared));
            if let Some(answer) = answer.flatten() {
                break (key, answer);
            }
        };
        let to = self.group.filter(|_| self.answers_to_group).unwrap_or(key.0);
        let sequence = self.answer_sequence;
        self.answer_sequence = sequence.wrapping_add(1);
        let bytes = Message { sequence, source: self.own, body }.to_bytes();
        let shares = Shares::acknowledgement(bytes.len());
        Some(self.datagram(to, bytes, shares))
    }

    fn next_message(&mut self, now: Instant) -> Option<DatagramsRequest> {
        if self.timers.get(Timer::Pace as usize).is_some() {
            return None;
        }
        let to = self.destination()?;
        let departure = self.sender.next_message(now, &mut self.counters);
        self.up.append(&mut self.sender.up);
        let departure = departure?;
        let sequence = self.sequence;
        self.sequence = sequence.wrapping_add(1);
        let bytes = self.sender.encode(sequence, self.own, &departure);
        let length = bytes.len();
        if matches!(departure.body, Body::Data(_)) {
            self.sender.departed(now, length);
            self.follow_rate(now);
        }
        let is_plain = departure.shares == Shares::default();
        let shares = if is_plain { Shares::control(length) } else { departure.shares };
        let request = self.datagram(to, bytes, shares);
        self.pacer.spend(now, length as u64);
        let ready_at = self.pacer.ready_at();
        if ready_at > now {
            self.timers.set(Timer::Pace as usize, ready_at);
        }
        Some(request)
    }

    fn room(&self) -> u64 {
        let may_send = self.state == State::Up && self.destination().is_some();
        if may_send { self.sender.room() } else { 0 }
    }
}

/// Length of the longest answer without its requests, octets.
const HEADERS_BYTES_MAX: u64 = 40;

impl Engine for Session {
    type Above = Objects;
    type Below = Datagrams;

    fn handle_request(&mut self, now: Instant, request: ObjectsRequest) {
        match request {
            ObjectsRequest::Connect => {
                self.wanted = true;
                if self.state == State::Closed && !self.listening {
                    self.backoff.succeed();
                    self.join();
                }
            }
            ObjectsRequest::Send { object, kind: ObjectKind::Stream, .. } if !self.fits_stream() => {
                self.up.push_back(ObjectsIndication::Failed { object, reason: ObjectFailure::TooLong });
            }
            ObjectsRequest::Send { object, kind, info, length } => {
                if self.state == State::Up && self.destination().is_some() {
                    self.sender.send(now, object, kind, info, length);
                    self.up.append(&mut self.sender.up);
                } else {
                    self.up.push_back(ObjectsIndication::Failed { object, reason: ObjectFailure::NotUp });
                }
            }
            ObjectsRequest::Content { object, data, last } => {
                self.told = self.told.saturating_sub(data.len() as u64);
                self.sender.content(now, object, data, last);
            }
            ObjectsRequest::EndMessage { object } => self.sender.end_message(object),
            ObjectsRequest::Flush { object } => self.sender.flush_stream(now, object),
            ObjectsRequest::Cancel { object } => {
                self.sender.cancel(object, ObjectFailure::Cancelled);
                self.up.append(&mut self.sender.up);
            }
            ObjectsRequest::Accept { incoming, up_to } => {
                self.until(now, |source, shared| source.accept(incoming, up_to, shared));
            }
            ObjectsRequest::Refuse { incoming, reason } => {
                self.until(now, |source, shared| source.refuse(incoming, reason, shared));
            }
            ObjectsRequest::Close => self.close(now),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: DatagramsIndication) {
        match indication {
            DatagramsIndication::Joined { bytes_max, peer, group } => {
                self.joined(now, bytes_max, peer, group)
            }
            DatagramsIndication::Room(room) => self.room = room,
            DatagramsIndication::Datagram { from, to_group, bytes, .. } => {
                self.receive(now, from, to_group, bytes)
            }
            DatagramsIndication::Carrier(is_connected) => self.carrier(now, is_connected),
            DatagramsIndication::Transmitted(_) => {}
            DatagramsIndication::Left(reason) => self.left(now, reason),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timers.expire(Timer::Pace as usize, now);
        if self.timers.expire(Timer::Retry as usize, now) && self.wanted {
            self.join();
        }
        let is_silent = self.sender.handle_timeout(now, &mut self.counters);
        self.up.append(&mut self.sender.up);
        if is_silent {
            self.silent(now);
            return;
        }
        let due = |source: &Source| source.deadline().is_some_and(|at| at <= now);
        let keys: Vec<_> =
            self.sources.iter().filter(|(_, source)| due(source)).map(|(key, _)| *key).collect();
        for key in keys {
            let is_kept = self.with_source(now, key, |source, shared| source.handle_timeout(now, shared));
            if is_kept == Some(false) {
                self.forget(now, key);
            }
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<ObjectsIndication> {
        let room = self.room();
        ObjectsIndication::next(&mut self.up, &mut self.told, room)
    }

    fn poll_request(&mut self, now: Instant) -> Option<DatagramsRequest> {
        if let Some(order) = self.orders.pop_front() {
            return Some(order);
        }
        if self.release > 0 {
            return Some(DatagramsRequest::Release(core::mem::take(&mut self.release)));
        }
        if self.state != State::Up || self.room == 0 || self.carrier_is_lost {
            return None;
        }
        self.next_answer(now).or_else(|| self.next_message(now))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let sources = self.sources.values().filter_map(Source::deadline);
        sources.chain(self.sender.deadline()).chain(self.timers.next()).min()
    }

    fn finished(&self) -> bool {
        self.over && self.up.is_empty() && self.orders.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("norm").count(&self.counters);
        part.tell("objects_under_way", self.sender.objects() as u64)
            .tell("rate_bps", self.sender.rate_bps())
            .tell("grtt_us", self.sender.advertised_grtt().as_micros() as u64)
            .tell("senders", self.sources.len() as u64)
            .tell("bytes_unsent", self.sender.unsent_bytes())
            .tell("bytes_held", self.held)
            .tell("bytes_unaccepted", self.unaccepted);
    }
}
