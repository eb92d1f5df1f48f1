//! Engine of the LTP convergence layer.

use super::config::{Config, Counters, KEEPALIVE_MIN, SEGMENT_BYTES_MIN};
use super::packing::{Packing, failed};
use super::sessions::{Departure, Event, Sessions};
use super::unpacking::Unpacking;
use super::wire::KEEPALIVE;
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
use std::collections::VecDeque;

/// Maximum number of bytes in blocks that wait to be sent for the first time.
const AHEAD_BYTES_MAX: u64 = 1 << 20;

#[derive(Clone, Copy)]
enum Timer {
    /// The rate permits the next segment.
    Pace,
    /// The keep-alive interval has expired.
    KeepAlive,
    /// The endpoint must be opened again.
    Retry,
    /// The time for more bundles in a block is over.
    Aggregation,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkState {
    Closed,
    Joining,
    Up,
}

/// Link to one peer, or endpoint on which any peer may send. The [module](super) describes its procedures.
#[derive(Debug)]
pub struct Link {
    config: Config,
    listening: bool,
    state: LinkState,
    /// The user has requested the link.
    wanted: bool,
    /// A listening endpoint is closed, and this engine has finished.
    over: bool,
    timers: Timers<4>,
    pub(super) sessions: Sessions,
    packing: Packing,
    unpacking: Unpacking,
    /// Number of datagrams that the endpoint accepts.
    endpoint_room: u64,
    pacer: Pacer,
    /// Requests to the endpoint.
    orders: VecDeque<DatagramsRequest>,
    release: u64,
    keepalive_due: bool,
    up: VecDeque<BundlesIndication>,
    /// Room granted to the user, bytes.
    told: u64,
    /// Delay before a failed endpoint is opened again.
    backoff: Backoff,
}

impl Link {
    /// Creates a link to one peer, which is opened on request.
    pub fn new(config: Config, rng: Rng) -> Self {
        Link {
            backoff: Backoff::new(config.retry_min, config.retry_max),
            pacer: Pacer::new(config.rate_bps, config.burst),
            sessions: Sessions::new(config.clone(), rng),
            config,
            listening: false,
            state: LinkState::Closed,
            wanted: false,
            over: false,
            timers: Timers::new(),
            packing: Packing::new(),
            unpacking: Unpacking::new(),
            endpoint_room: 0,
            orders: VecDeque::new(),
            release: 0,
            keepalive_due: false,
            up: VecDeque::new(),
            told: 0,
        }
    }

    /// Creates an endpoint on which any peer may send; the provider opens it.
    pub fn listening(config: Config, rng: Rng) -> Self {
        let config = Config { peer_engine_id: None, peer_node_id: None, keepalive: None, ..config };
        Link { listening: true, ..Link::new(config, rng) }
    }

    /// Counters since the creation of the link.
    pub fn counters(&self) -> &Counters {
        &self.sessions.counters
    }

    fn counted(&mut self) -> &mut Counters {
        &mut self.sessions.counters
    }

    // -- Up and down --------------------------------------------------------------------------------------------

    fn join(&mut self) {
        self.timers.stop(Timer::Retry as usize);
        self.state = LinkState::Joining;
        self.orders.push_back(DatagramsRequest::Join { damaged: false });
    }

    fn joined(&mut self, now: Instant, bytes_max: u64, peer: Option<PeerId>) {
        let expected = if self.listening { LinkState::Closed } else { LinkState::Joining };
        if self.state != expected {
            return;
        }
        self.state = LinkState::Up;
        self.counted().joined += 1;
        self.sessions.up(usize::try_from(bytes_max).unwrap_or(usize::MAX), peer);
        self.pacer.restart(now);
        self.told = 0;
        self.set_keepalive(now);
        let transfer_bytes_max = self.transfer_bytes_max();
        let peer = self.config.peer_node_id.clone();
        self.up.push_back(BundlesIndication::Up { peer, interleave: false, transfer_bytes_max });
    }

    /// Returns the length of the longest bundle that can be sent; zero without a peer, or with an endpoint for shorter
    /// datagrams than any block needs.
    fn transfer_bytes_max(&self) -> u64 {
        let can_send =
            self.sessions.peer.is_some() && self.sessions.segment_bytes as u64 >= SEGMENT_BYTES_MIN;
        // One byte is left for a client service ID.
        if can_send { self.config.block_bytes_max - 1 } else { 0 }
    }

    /// Ends the link with all its transfers.
    fn down(&mut self, reason: DownReason, retry: bool) {
        let was_up = self.state == LinkState::Up;
        self.state = LinkState::Closed;
        self.timers.stop_all();
        self.keepalive_due = false;
        (self.endpoint_room, self.release) = (0, 0);
        self.packing.fail_all(&mut self.up);
        self.unpacking.lose_all(&mut self.up);
        self.sessions.down();
        if was_up || !self.listening {
            self.up.push_back(BundlesIndication::Down { reason, retry });
        }
    }

    fn left(&mut self, now: Instant, reason: CloseReason) {
        if self.state == LinkState::Closed {
            return;
        }
        self.counted().failed += 1;
        self.go_down(now, DownReason::Stream(reason));
        self.over = self.listening;
    }

    /// The peer has answered nothing, not even the last retransmission.
    fn peer_is_silent(&mut self, now: Instant) {
        if self.state == LinkState::Up && !self.listening {
            self.counted().silent += 1;
            self.orders.clear();
            self.orders.push_back(DatagramsRequest::Leave);
            self.go_down(now, DownReason::KeepAlive);
        }
    }

    /// Ends the link, and tries again later if the user wants it.
    fn go_down(&mut self, now: Instant, reason: DownReason) {
        let retry = self.wanted && !self.listening;
        self.down(reason, retry);
        if retry {
            self.timers.set(Timer::Retry as usize, now + self.backoff.fail());
        }
    }

    fn close(&mut self) {
        let wanted = core::mem::replace(&mut self.wanted, false);
        if self.state != LinkState::Closed {
            self.orders.clear();
            self.orders.push_back(DatagramsRequest::Leave);
            self.over = self.listening;
        } else if !wanted {
            return;
        }
        self.down(DownReason::Closed, false);
    }

    // -- Bundles ------------------------------------------------------------------------------------------------

    fn open(&mut self, transfer: TransferId, length: u64) {
        let failure = match self.state {
            LinkState::Up => self.packing.open(transfer, length, self.transfer_bytes_max(), &self.config),
            LinkState::Closed | LinkState::Joining => Some(TransferFailure::LinkDown),
        };
        self.up.extend(failure.map(|reason| failed(transfer, reason)));
    }

    fn piece(&mut self, now: Instant, transfer: TransferId, data: Bytes, last: bool) {
        self.told = self.told.saturating_sub(data.len() as u64);
        self.packing.piece(&mut self.sessions, transfer, data, last);
        if self.packing.is_waiting() && last {
            self.timers.set(Timer::Aggregation as usize, now + self.config.aggregation_wait);
        }
    }

    fn cancel(&mut self, transfer: TransferId) {
        let ended = self.packing.cancel(&mut self.sessions, transfer);
        self.up.extend(ended.into_iter().map(|(transfer, reason)| failed(transfer, reason)));
    }

    fn accept(&mut self, now: Instant, transfer: TransferId, up_to: u64) {
        if let Some(session) = self.unpacking.accept(transfer, up_to)
            && let Some(up_to) = self.unpacking.progress(session)
        {
            self.sessions.accept(now, session, up_to);
        }
    }

    fn refuse(&mut self, now: Instant, transfer: TransferId, reason: RefuseReason) {
        let Some((session, cancel)) = self.unpacking.refuse(transfer, reason) else { return };
        self.counted().refused += 1;
        match cancel {
            Some(reason) => self.sessions.cancel_incoming(session, reason),
            None => {
                if let Some(up_to) = self.unpacking.progress(session) {
                    self.sessions.accept(now, session, up_to);
                }
            }
        }
        self.hear_events(now);
    }

    /// Processes the indications of the sessions.
    fn hear_events(&mut self, now: Instant) {
        while let Some(event) = self.sessions.events.pop_front() {
            match event {
                Event::Completed(number) => {
                    self.backoff.succeed();
                    let sent = self.packing.completed(number, &mut self.up);
                    self.counted().bundles_sent += sent;
                }
                Event::Failed(number, cause) => self.packing.failed(number, cause, &mut self.up),
                Event::Data { session, client, data, last } => {
                    let ended = self.unpacking.hear(session, client, data, last, &mut self.up);
                    self.counted().bundles_received += ended;
                    if let Some(up_to) = self.unpacking.progress(session) {
                        self.sessions.accept(now, session, up_to);
                    }
                }
                Event::Lost(session) => self.unpacking.lose(session, &mut self.up),
                Event::Silent => self.peer_is_silent(now),
            }
        }
    }

    /// Room to indicate: for the rest of the bundle under way and more, or for another one, as far as segments for the next
    /// departures are lacking.
    fn room(&self) -> u64 {
        if self.state != LinkState::Up || self.transfer_bytes_max() == 0 || self.sessions.clock.is_down() {
            return 0;
        }
        let segment = self.sessions.segment_bytes as u64;
        let ahead = (self.endpoint_room.max(2).saturating_mul(segment)).min(AHEAD_BYTES_MAX.max(2 * segment));
        let (_, unsent) = self.sessions.outgoing_bytes();
        let left = ahead.saturating_sub(unsent);
        let room = match self.packing.rest() {
            Some(rest) if !self.packing.may_begin(&self.sessions) => left.min(rest),
            None if !self.packing.may_begin(&self.sessions) => 0,
            _ => left,
        };
        // Small pieces would only cost processing time.
        if left < segment { 0 } else { room }
    }

    // -- Datagrams ----------------------------------------------------------------------------------------------

    fn receive(&mut self, now: Instant, from: PeerId, bytes: Bytes) {
        if self.state == LinkState::Up {
            self.release += bytes.len() as u64;
            self.sessions.hear(now, from, bytes);
        }
    }

    /// Accounts for a datagram sent, and computes the time of the next one according to the rate.
    fn spend(&mut self, now: Instant, bytes: u64) {
        self.endpoint_room -= 1;
        self.keepalive_due = false;
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
        let may_send = self.endpoint_room > 0 && self.timers.get(Timer::Pace as usize).is_none();
        if self.state != LinkState::Up || !may_send || self.sessions.clock.is_down() {
            return None;
        }
        let mut departure = self.sessions.next_departure(now);
        if departure.as_ref().is_none_or(|departure| self.sessions.has_room(departure)) {
            // As late as possible, so that more bundles may share the block.
            self.packing.finish_if_due(&mut self.sessions);
            departure = self.sessions.with_next(now, departure);
        }
        if !self.packing.is_waiting() {
            self.timers.stop(Timer::Aggregation as usize);
        }
        self.hear_events(now);
        if let Some(departure) = departure {
            self.spend(now, departure.bytes.len() as u64);
            let Departure { to, bytes, shares, token } = departure;
            return Some(DatagramsRequest::Datagram { to, bytes, shares, token });
        }
        let to = self.sessions.peer?;
        if core::mem::take(&mut self.keepalive_due) {
            self.spend(now, KEEPALIVE.len() as u64);
            self.counted().keepalives_sent += 1;
            let (bytes, shares) = (Bytes::from_static(&KEEPALIVE), Shares::control(KEEPALIVE.len()));
            return Some(DatagramsRequest::Datagram { to, bytes, shares, token: None });
        }
        None
    }
}

impl Engine for Link {
    type Above = Bundles;
    type Below = Datagrams;

    fn handle_request(&mut self, now: Instant, request: BundlesRequest) {
        match request {
            BundlesRequest::Connect => {
                self.wanted = true;
                if self.state == LinkState::Closed && !self.listening {
                    self.backoff.succeed();
                    self.join();
                }
            }
            BundlesRequest::Open { transfer, length, .. } => self.open(transfer, length),
            BundlesRequest::Piece { transfer, data, last } => self.piece(now, transfer, data, last),
            BundlesRequest::Cancel { transfer } => self.cancel(transfer),
            BundlesRequest::Accept { transfer, up_to } => self.accept(now, transfer, up_to),
            BundlesRequest::Refuse { transfer, reason } => self.refuse(now, transfer, reason),
            BundlesRequest::Close => self.close(),
        }
        self.hear_events(now);
    }

    fn handle_indication(&mut self, now: Instant, indication: DatagramsIndication) {
        match indication {
            DatagramsIndication::Joined { bytes_max, peer, .. } => self.joined(now, bytes_max, peer),
            DatagramsIndication::Room(room) => self.endpoint_room = room,
            DatagramsIndication::Datagram { from, bytes, .. } => self.receive(now, from, bytes),
            DatagramsIndication::Carrier(true) => self.sessions.resume(now),
            DatagramsIndication::Carrier(false) => self.sessions.suspend(now),
            DatagramsIndication::Transmitted(token) => self.sessions.transmitted(now, token),
            DatagramsIndication::Left(reason) => self.left(now, reason),
        }
        self.hear_events(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timers.expire(Timer::Pace as usize, now);
        if self.timers.expire(Timer::KeepAlive as usize, now) {
            self.keepalive_due = true;
        }
        if self.timers.expire(Timer::Aggregation as usize, now) {
            self.packing.end_wait();
        }
        if self.timers.expire(Timer::Retry as usize, now) && self.wanted {
            self.join();
        }
        self.sessions.handle_timeout(now);
        self.hear_events(now);
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
        self.timers.next().into_iter().chain(self.sessions.deadline()).min()
    }

    fn finished(&self) -> bool {
        self.over && self.up.is_empty() && self.orders.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        let (outgoing_bytes, unsent_bytes) = self.sessions.outgoing_bytes();
        let part = view.part("ltp").count(self.counters()).tell("up", self.state == LinkState::Up);
        part.tell("blocks_outgoing", self.sessions.outgoing.len()).tell("bytes_outgoing", outgoing_bytes);
        part.tell("bytes_unsent", unsent_bytes);
        part.tell("blocks_incoming", self.sessions.incoming.len())
            .tell("bytes_held", self.sessions.held_bytes);
        part.tell("sessions_remembered", self.sessions.closed.len());
    }
}
