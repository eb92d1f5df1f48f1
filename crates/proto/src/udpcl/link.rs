//! Engine of the UDP convergence layer.

use super::config::{Config, Counters, DATAGRAM_BYTES_MIN, KEEPALIVE_MIN};
use super::incoming::{Complete, Reassembly};
use super::outgoing::{Copies, Departure, Form, Outgoing};
use super::wire::{ExtensionMap, KEEPALIVE, Message, Messages, Transfer};
use crate::codec::DecodeError;
use crate::engine::Engine;
use crate::kit::{Backoff, Pacer};
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, CloseReason, Datagrams, DatagramsIndication,
    DatagramsRequest, DownReason, PeerId, RefuseReason, Shares, TransferFailure, TransferId,
};
use crate::time::{Instant, Timers};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

#[derive(Clone, Copy)]
enum Timer {
    /// The rate permits the next datagram.
    Pace,
    /// The keep-alive interval has expired.
    KeepAlive,
    /// The socket must be opened again.
    Retry,
    /// The time of a copy has come.
    Copy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketState {
    Closed,
    Joining,
    Up,
}

/// Received bundle that is not yet accepted.
#[derive(Clone, Copy, Debug)]
struct Received {
    length: u64,
    /// Bytes to release to the socket.
    unreleased: u64,
    /// Memory of its transfer.
    memory: u64,
}

/// UDP link to one peer, or socket on which any peer may send. The [module](super) describes its guarantees.
#[derive(Debug)]
pub struct Link {
    config: Config,
    listening: bool,
    state: SocketState,
    /// The user has requested the link.
    wanted: bool,
    /// A listening socket is closed, and this engine has finished.
    over: bool,
    timers: Timers<4>,
    /// Peer of this socket; `None` before it is open, and for a socket on which any peer may send.
    peer: Option<PeerId>,
    /// Maximum length of a datagram on this socket, bytes.
    bytes_max: u64,
    /// Number of datagrams that the socket accepts.
    socket_room: u64,
    /// Time of the next datagram according to the rate alone.
    pacer: Pacer,
    /// Requests to the socket.
    orders: VecDeque<DatagramsRequest>,
    release: u64,
    keepalive_due: bool,
    /// Lengths of the open bundles of which the user has given nothing.
    open: BTreeMap<TransferId, u64>,
    /// Bundles that are being sent; only the last one may lack bytes from the user. They hold at most the bytes of a datagram and
    /// a segment, because no more room is indicated.
    outgoing: VecDeque<Outgoing>,
    copies: Copies,
    /// Transfer ID of the next transfer to send.
    next_id: u32,
    incoming: BTreeMap<TransferId, Received>,
    reassembly: Reassembly,
    next_number: u64,
    up: VecDeque<BundlesIndication>,
    /// Room granted to the user, bytes.
    told: u64,
    /// Delay before a failed socket is opened again.
    backoff: Backoff,
    counters: Counters,
}

impl Link {
    /// Creates a link to one peer, which is opened on request. Its first Transfer ID is random: after a restart from zero, a peer
    /// that remembers the transfers of before would discard the new ones.
    pub fn new(config: Config, mut rng: Rng) -> Self {
        Link {
            copies: Copies::new(config.copy_interval),
            reassembly: Reassembly::new(&config),
            next_id: rng.next_u32(),
            backoff: Backoff::new(config.retry_min, config.retry_max),
            pacer: Pacer::new(config.rate_bps, config.burst),
            config,
            listening: false,
            state: SocketState::Closed,
            wanted: false,
            over: false,
            timers: Timers::new(),
            peer: None,
            bytes_max: 0,
            socket_room: 0,
            orders: VecDeque::new(),
            release: 0,
            keepalive_due: false,
            open: BTreeMap::new(),
            outgoing: VecDeque::new(),
            incoming: BTreeMap::new(),
            next_number: 0,
            up: VecDeque::new(),
            told: 0,
            counters: Counters::default(),
        }
    }

    /// Creates a socket on which any peer may send; the provider opens it.
    pub fn listening(config: Config, rng: Rng) -> Self {
        Link { listening: true, ..Link::new(Config { peer_node_id: None, keepalive: None, ..config }, rng) }
    }

    /// Counters since the creation of the link.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    fn join(&mut self) {
        self.timers.stop(Timer::Retry as usize);
        self.state = SocketState::Joining;
        self.orders.push_back(DatagramsRequest::Join { damaged: false });
    }

    fn joined(&mut self, now: Instant, bytes_max: u64, peer: Option<PeerId>) {
        let expected = if self.listening { SocketState::Closed } else { SocketState::Joining };
        if self.state != expected {
            return;
        }
        self.state = SocketState::Up;
        self.counters.joined += 1;
        self.peer = peer;
        self.bytes_max = bytes_max.min(self.config.datagram_bytes_max);
        self.pacer.restart(now);
        self.told = 0;
        self.set_keepalive(now);
        self.up.push_back(BundlesIndication::Up {
            peer: self.config.peer_node_id.clone(),
            interleave: false,
            transfer_bytes_max: if peer.is_some() { self.transfer_bytes_max() } else { 0 },
        });
    }

    /// True if bundles may be sent as transfers.
    fn makes_transfers(&self) -> bool {
        self.config.transfers && self.bytes_max >= DATAGRAM_BYTES_MIN
    }

    /// Returns the maximum length of a bundle to send.
    fn transfer_bytes_max(&self) -> u64 {
        let segmented = if self.makes_transfers() { self.config.transfer_bytes_max } else { 0 };
        self.bytes_max.max(segmented)
    }

    /// Ends the link with all its transfers.
    fn down(&mut self, reason: DownReason, retry: bool) {
        let was_up = self.state == SocketState::Up;
        self.state = SocketState::Closed;
        self.timers.stop_all();
        self.keepalive_due = false;
        self.socket_room = 0;
        self.release = 0;
        self.copies.clear();
        let outgoing = self.outgoing.drain(..).map(|outgoing| outgoing.transfer);
        let ended: Vec<TransferId> = outgoing.chain(core::mem::take(&mut self.open).into_keys()).collect();
        for transfer in ended {
            self.fail(transfer, TransferFailure::LinkDown);
        }
        self.incoming.clear();
        self.reassembly.link_down();
        if was_up || !self.listening {
            self.up.push_back(BundlesIndication::Down { reason, retry });
        }
    }

    fn left(&mut self, now: Instant, reason: CloseReason) {
        if self.state == SocketState::Closed {
            return;
        }
        self.counters.failed += 1;
        let retry = self.wanted && !self.listening;
        self.down(DownReason::Stream(reason), retry);
        if retry {
            self.timers.set(Timer::Retry as usize, now + self.backoff.fail());
        }
        self.over = self.listening;
    }

    fn close(&mut self) {
        let wanted = core::mem::replace(&mut self.wanted, false);
        if self.state != SocketState::Closed {
            self.orders.clear();
            self.orders.push_back(DatagramsRequest::Leave);
            self.over = self.listening;
        } else if !wanted {
            return;
        }
        self.down(DownReason::Closed, false);
    }

    fn fail(&mut self, transfer: TransferId, reason: TransferFailure) {
        self.up.push_back(BundlesIndication::Failed { transfer, reason, acked: 0 });
    }

    fn open(&mut self, transfer: TransferId, length: u64) {
        if self.state != SocketState::Up {
            self.fail(transfer, TransferFailure::LinkDown);
        } else if self.peer.is_none() || length > self.transfer_bytes_max() {
            self.counters.too_long += 1;
            self.fail(transfer, TransferFailure::TooLong);
        } else if length == 0 {
            // An empty datagram carries no bundle.
            self.fail(transfer, TransferFailure::Refused(RefuseReason::NotAcceptable));
        } else if self.open.len() + self.outgoing.len() >= self.config.open_max {
            self.fail(transfer, TransferFailure::Refused(RefuseReason::NoResources));
        } else {
            self.open.insert(transfer, length);
        }
    }

    /// Returns the form in which a bundle of this length is sent: without a frame where that is possible, because every peer
    /// understands it.
    fn form(&mut self, length: u64) -> Form {
        let is_plain = length <= self.bytes_max && self.config.copies == 1;
        if is_plain || !self.makes_transfers() {
            return Form::Unframed;
        }
        let id = self.next_id;
        self.next_id = id.wrapping_add(1);
        Form::transfer(id.into(), length, self.bytes_max)
    }

    fn piece(&mut self, transfer: TransferId, data: Bytes) {
        self.told = self.told.saturating_sub(data.len() as u64);
        if let Some(length) = self.open.remove(&transfer) {
            let form = self.form(length);
            self.outgoing.push_back(Outgoing::new(transfer, form, length));
        }
        if let Some(outgoing) = self.outgoing.back_mut().filter(|outgoing| outgoing.transfer == transfer) {
            outgoing.add(data);
        }
    }

    fn cancel(&mut self, transfer: TransferId) {
        let was_open = self.open.remove(&transfer).is_some();
        let at = self.outgoing.iter().position(|outgoing| outgoing.transfer == transfer);
        let outgoing = at.and_then(|at| self.outgoing.remove(at));
        if was_open || outgoing.is_some() {
            self.fail(transfer, TransferFailure::Cancelled);
        }
    }

    fn receive(&mut self, now: Instant, from: PeerId, packet: Bytes) {
        let length = packet.len() as u64;
        if self.state != SocketState::Up {
            return;
        }
        if packet.is_empty() {
            self.counters.violations += 1;
        }
        if packet == KEEPALIVE[..] {
            self.counters.keepalives_received += 1;
        }
        let mut kept = 0;
        for message in Messages::new(packet) {
            match message {
                Ok(Message::Bundle(bundle)) => kept = self.receive_bundle(bundle),
                Ok(Message::Extensions(map)) => self.receive_extensions(now, from, map),
                Ok(Message::Padding(_)) => {}
                Ok(Message::Dtls(_)) => self.counters.dtls_refused += 1,
                Err(DecodeError::Unsupported { .. }) => self.counters.not_bundles += 1,
                Err(_) => self.counters.violations += 1,
            }
        }
        self.release += length - kept;
    }

    /// Indicates a bundle without a frame, which is released when it is accepted. Returns the number of bytes that are kept.
    fn receive_bundle(&mut self, data: Bytes) -> u64 {
        if !self.may_rise() {
            self.counters.dropped += 1;
            return 0;
        }
        let length = data.len() as u64;
        self.counters.datagrams_received += 1;
        self.rise(Received { length, unreleased: length, memory: 0 }, [data]);
        length
    }

    fn receive_extensions(&mut self, now: Instant, from: PeerId, map: ExtensionMap) {
        let ExtensionMap { transfer, has_malformed_transfer, skipped } = map;
        self.counters.items_skipped += skipped;
        self.counters.violations += u64::from(has_malformed_transfer);
        if let Some(transfer) = transfer {
            self.receive_transfer(now, from, transfer);
        }
    }

    fn receive_transfer(&mut self, now: Instant, from: PeerId, transfer: Transfer) {
        let may_rise = self.may_rise();
        let complete = self.reassembly.hear(now, from, transfer, may_rise, &mut self.counters);
        if let Some(Complete { length, segments, memory }) = complete {
            self.counters.transfers_received += 1;
            self.rise(Received { length, unreleased: 0, memory }, segments);
        }
    }

    fn may_rise(&self) -> bool {
        self.incoming.len() < self.config.incoming_max
    }

    /// Indicates a complete bundle.
    fn rise(&mut self, received: Received, pieces: impl IntoIterator<Item = Bytes>) {
        let (transfer, length) = (TransferId(self.next_number), received.length);
        self.next_number += 1;
        self.counters.payload_received += length;
        self.incoming.insert(transfer, received);
        self.up.push_back(BundlesIndication::Begin { transfer, length: Some(length) });
        let mut left = length;
        for data in pieces {
            left -= data.len() as u64;
            self.up.push_back(BundlesIndication::Piece { transfer, data, last: left == 0 });
        }
    }

    /// Releases an incoming bundle that the user has accepted or refused.
    fn done(&mut self, transfer: TransferId) {
        if let Some(received) = self.incoming.remove(&transfer) {
            self.release += received.unreleased;
            self.reassembly.release(received.memory);
        }
    }

    /// Room to indicate: for the rest of the datagram that has begun, or for a new one.
    fn room(&self) -> u64 {
        if self.state != SocketState::Up || self.peer.is_none() {
            return 0;
        }
        let may_leave = self.socket_room > 0
            && self.timers.get(Timer::Pace as usize).is_none()
            && (self.copies.held() == 0
                || self.copies.held() + self.bytes_max <= self.config.copies_bytes_max);
        match self.outgoing.back().filter(|last| !last.is_whole()) {
            Some(last) if may_leave || last.form == Form::Unframed => last.lacks(),
            None if may_leave && self.outgoing.is_empty() => self.bytes_max,
            _ => 0,
        }
    }

    /// Accounts for a datagram sent, and computes the time of the next one according to the rate.
    fn spend(&mut self, now: Instant, bytes: u64) {
        self.socket_room -= 1;
        self.set_keepalive(now);
        self.pacer.spend(now, bytes + self.config.overhead_bytes);
        let ready_at = self.pacer.ready_at();
        if ready_at > now {
            self.timers.set(Timer::Pace as usize, ready_at);
        }
    }

    fn set_keepalive(&mut self, now: Instant) {
        if let Some(interval) = self.config.keepalive {
            self.timers.set(Timer::KeepAlive as usize, now + interval.max(KEEPALIVE_MIN));
        }
    }

    fn next_datagram(&mut self, now: Instant) -> Option<DatagramsRequest> {
        let is_paced = self.timers.get(Timer::Pace as usize).is_some();
        if self.state != SocketState::Up || self.socket_room == 0 || is_paced {
            return None;
        }
        let to = self.peer?;
        let (bytes, shares) =
            self.next_copy(now).or_else(|| self.next_departure(now)).or_else(|| self.next_keepalive())?;
        self.keepalive_due = false;
        self.spend(now, bytes.len() as u64);
        Some(DatagramsRequest::Datagram { to, bytes, shares, token: None })
    }

    fn next_copy(&mut self, now: Instant) -> Option<(Bytes, Shares)> {
        let bytes = self.copies.pop_due(now)?;
        self.set_copy_timer(now);
        self.counters.copies_sent += 1;
        let shares = Shares::repeated(bytes.len());
        Some((bytes, shares))
    }

    fn next_departure(&mut self, now: Instant) -> Option<(Bytes, Shares)> {
        let outgoing = self.outgoing.front_mut()?;
        let Departure { bytes, shares, payload, is_last } = outgoing.next_datagram()?;
        let (transfer, form) = (outgoing.transfer, outgoing.form);
        self.backoff.succeed();
        self.counters.payload_sent += payload;
        if form == Form::Unframed {
            self.counters.datagrams_sent += 1;
        } else {
            self.counters.segments_sent += 1;
            self.counters.transfers_sent += u64::from(is_last);
            self.copies.add(now, self.config.copies - 1, bytes.clone());
            self.set_copy_timer(now);
        }
        if is_last {
            self.outgoing.pop_front();
            self.up.push_back(BundlesIndication::Sent { transfer });
        }
        Some((bytes, shares))
    }

    fn next_keepalive(&mut self) -> Option<(Bytes, Shares)> {
        let fits = self.bytes_max >= KEEPALIVE.len() as u64;
        if !core::mem::take(&mut self.keepalive_due) || !fits {
            return None;
        }
        self.counters.keepalives_sent += 1;
        Some((Bytes::from_static(&KEEPALIVE), Shares::control(KEEPALIVE.len())))
    }

    /// Sets the timer for the next copy. One whose time has come waits for the rate or for room instead.
    fn set_copy_timer(&mut self, now: Instant) {
        match self.copies.next().filter(|at| *at > now) {
            Some(at) => self.timers.set(Timer::Copy as usize, at),
            None => self.timers.stop(Timer::Copy as usize),
        }
    }
}

impl Engine for Link {
    type Above = Bundles;
    type Below = Datagrams;

    fn handle_request(&mut self, _now: Instant, request: BundlesRequest) {
        match request {
            BundlesRequest::Connect => {
                self.wanted = true;
                if self.state == SocketState::Closed && !self.listening {
                    self.backoff.succeed();
                    self.join();
                }
            }
            BundlesRequest::Open { transfer, length, .. } => self.open(transfer, length),
            BundlesRequest::Piece { transfer, data, .. } => self.piece(transfer, data),
            BundlesRequest::Cancel { transfer } => self.cancel(transfer),
            BundlesRequest::Accept { transfer, up_to } => {
                if self.incoming.get(&transfer).is_some_and(|received| up_to >= received.length) {
                    self.done(transfer);
                }
            }
            BundlesRequest::Refuse { transfer, .. } => {
                self.counters.refused += 1;
                self.done(transfer);
            }
            BundlesRequest::Close => self.close(),
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: DatagramsIndication) {
        match indication {
            DatagramsIndication::Joined { bytes_max, peer, .. } => self.joined(now, bytes_max, peer),
            DatagramsIndication::Room(room) => self.socket_room = room,
            DatagramsIndication::Datagram { from, bytes, .. } => self.receive(now, from, bytes),
            DatagramsIndication::Carrier(_) | DatagramsIndication::Transmitted(_) => {}
            DatagramsIndication::Left(reason) => self.left(now, reason),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timers.expire(Timer::Pace as usize, now);
        self.timers.expire(Timer::Copy as usize, now);
        self.reassembly.expire(now, &mut self.counters);
        if self.timers.expire(Timer::KeepAlive as usize, now) {
            self.keepalive_due = true;
        }
        if self.timers.expire(Timer::Retry as usize, now) && self.wanted {
            self.join();
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<BundlesIndication> {
        let room = self.room();
        BundlesIndication::next(&mut self.up, &mut self.told, room)
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
        self.timers.next().into_iter().chain(self.reassembly.deadline()).min()
    }

    fn finished(&self) -> bool {
        self.over && self.up.is_empty() && self.orders.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("udpcl").count(&self.counters);
        part.tell("transfers_remembered", self.reassembly.len());
        part.tell("bytes_held", self.reassembly.memory())
            .tell("bytes_waiting_for_copies", self.copies.held());
    }
}
