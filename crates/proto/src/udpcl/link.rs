//! Engine of the UDP convergence layer.

use super::config::{Config, Counters, KEEPALIVE_MIN};
use crate::engine::Engine;
use crate::kit::{Backoff, Pacer};
use crate::observe::Observation;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, CloseReason, Datagrams, DatagramsIndication,
    DatagramsRequest, DownReason, PeerId, RefuseReason, Shares, TransferFailure, TransferId,
};
use crate::time::{Instant, Timers};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// Contents of a keep-alive (RFC 7122 3.4).
const KEEPALIVE: [u8; 4] = [0; 4];

#[derive(Clone, Copy)]
enum Timer {
    /// The rate permits the next datagram.
    Pace,
    /// The keep-alive interval has expired.
    KeepAlive,
    /// The socket must be opened again.
    Retry,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SocketState {
    Closed,
    Joining,
    Up,
}

/// Bundle to send, whose pieces are arriving from the user.
#[derive(Debug)]
struct Outgoing {
    length: u64,
    bytes: BytesMut,
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
    timers: Timers<3>,
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
    outgoing: BTreeMap<TransferId, Outgoing>,
    /// Bundle whose pieces are arriving from the user.
    busy: Option<TransferId>,
    /// Complete bundles that wait for the socket; at most the bytes of one datagram, because no more room is
    /// indicated.
    ready: VecDeque<(TransferId, Bytes)>,
    /// Received bundles that are not yet accepted, with their lengths.
    incoming: BTreeMap<TransferId, u64>,
    next_number: u64,
    up: VecDeque<BundlesIndication>,
    /// Room granted to the user, bytes.
    told: u64,
    /// Delay before a failed socket is opened again.
    backoff: Backoff,
    counters: Counters,
}

impl Link {
    /// Creates a link to one peer, which is opened on request.
    pub fn new(config: Config) -> Self {
        Link {
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
            outgoing: BTreeMap::new(),
            busy: None,
            ready: VecDeque::new(),
            incoming: BTreeMap::new(),
            next_number: 0,
            up: VecDeque::new(),
            told: 0,
            counters: Counters::default(),
        }
    }

    /// Creates a socket on which any peer may send; the provider opens it.
    pub fn listening(config: Config) -> Self {
        Link { listening: true, ..Link::new(Config { peer_node_id: None, keepalive: None, ..config }) }
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
            transfer_bytes_max: if peer.is_some() { self.bytes_max } else { 0 },
        });
    }

    /// Ends the link with all its transfers.
    fn down(&mut self, reason: DownReason, retry: bool) {
        let was_up = self.state == SocketState::Up;
        self.state = SocketState::Closed;
        self.timers.stop_all();
        self.keepalive_due = false;
        self.socket_room = 0;
        self.release = 0;
        self.busy = None;
        let ready = self.ready.drain(..).map(|(transfer, _)| transfer);
        let ended: Vec<TransferId> = ready.chain(core::mem::take(&mut self.outgoing).into_keys()).collect();
        for transfer in ended {
            self.fail(transfer, TransferFailure::LinkDown);
        }
        self.incoming.clear();
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
        } else if self.peer.is_none() || length > self.bytes_max {
            self.counters.too_long += 1;
            self.fail(transfer, TransferFailure::TooLong);
        } else if length == 0 {
            // An empty datagram carries no bundle.
            self.fail(transfer, TransferFailure::Refused(RefuseReason::NotAcceptable));
        } else if self.outgoing.len() >= self.config.open_max {
            self.fail(transfer, TransferFailure::Refused(RefuseReason::NoResources));
        } else {
            self.outgoing.insert(transfer, Outgoing { length, bytes: BytesMut::new() });
        }
    }

    fn piece(&mut self, transfer: TransferId, data: Bytes, last: bool) {
        self.told = self.told.saturating_sub(data.len() as u64);
        let Some(outgoing) = self.outgoing.get_mut(&transfer) else { return };
        if !last || !outgoing.bytes.is_empty() {
            outgoing.bytes.extend_from_slice(&data);
        }
        self.busy = Some(transfer);
        if last {
            let gathered = self.outgoing.remove(&transfer).expect("it was just found").bytes;
            let whole = if gathered.is_empty() { data } else { gathered.freeze() };
            self.busy = None;
            self.ready.push_back((transfer, whole));
        }
    }

    fn cancel(&mut self, transfer: TransferId) {
        let waited = self.ready.iter().position(|(ready, _)| *ready == transfer);
        let known = self.outgoing.remove(&transfer).is_some() || waited.is_some();
        if let Some(at) = waited {
            self.ready.remove(at);
        }
        self.busy = self.busy.filter(|busy| *busy != transfer);
        if known {
            self.fail(transfer, TransferFailure::Cancelled);
        }
    }

    fn receive(&mut self, data: Bytes) {
        let length = data.len() as u64;
        if self.state != SocketState::Up {
            return;
        }
        let welcome = match &data[..] {
            [] => {
                self.counters.violations += 1;
                false
            }
            data if data == KEEPALIVE => {
                self.counters.keepalives_received += 1;
                false
            }
            _ if self.incoming.len() >= self.config.incoming_max => {
                self.counters.dropped += 1;
                false
            }
            _ => true,
        };
        if !welcome {
            self.release += length;
            return;
        }
        self.counters.datagrams_received += 1;
        self.counters.payload_received += length;
        let transfer = TransferId(self.next_number);
        self.next_number += 1;
        self.incoming.insert(transfer, length);
        self.up.push_back(BundlesIndication::Begin { transfer, length: Some(length) });
        self.up.push_back(BundlesIndication::Piece { transfer, data, last: true });
    }

    /// Releases an incoming bundle that the user has accepted or refused.
    fn done(&mut self, transfer: TransferId) {
        self.release += self.incoming.remove(&transfer).unwrap_or(0);
    }

    /// Room to indicate: for the rest of the bundle that has begun, or for a new one.
    fn room(&self) -> u64 {
        if self.state != SocketState::Up || self.peer.is_none() {
            return 0;
        }
        if let Some(busy) = self.busy {
            let outgoing = &self.outgoing[&busy];
            return outgoing.length.saturating_sub(outgoing.bytes.len() as u64);
        }
        let free = self.ready.is_empty() && self.socket_room > 0;
        if free && self.timers.get(Timer::Pace as usize).is_none() { self.bytes_max } else { 0 }
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
        if self.state != SocketState::Up || self.socket_room == 0 {
            return None;
        }
        let to = self.peer?;
        if let Some((transfer, bytes)) = self.ready.pop_front() {
            self.spend(now, bytes.len() as u64);
            self.keepalive_due = false;
            self.backoff.succeed();
            self.counters.datagrams_sent += 1;
            self.counters.payload_sent += bytes.len() as u64;
            self.up.push_back(BundlesIndication::Sent { transfer });
            let shares = Shares::payload(bytes.len());
            return Some(DatagramsRequest::Datagram { to, bytes, shares, token: None });
        }
        let fits = self.bytes_max >= KEEPALIVE.len() as u64;
        if core::mem::take(&mut self.keepalive_due) && fits {
            self.spend(now, KEEPALIVE.len() as u64);
            self.counters.keepalives_sent += 1;
            let (bytes, shares) = (Bytes::from_static(&KEEPALIVE), Shares::control(KEEPALIVE.len()));
            return Some(DatagramsRequest::Datagram { to, bytes, shares, token: None });
        }
        None
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
            BundlesRequest::Piece { transfer, data, last } => self.piece(transfer, data, last),
            BundlesRequest::Cancel { transfer } => self.cancel(transfer),
            BundlesRequest::Accept { transfer, up_to } => {
                if self.incoming.get(&transfer).is_some_and(|length| up_to >= *length) {
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
            DatagramsIndication::Datagram { bytes, .. } => self.receive(bytes),
            DatagramsIndication::Carrier(_) | DatagramsIndication::Transmitted(_) => {}
            DatagramsIndication::Left(reason) => self.left(now, reason),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.timers.expire(Timer::Pace as usize, now);
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
        self.timers.next()
    }

    fn finished(&self) -> bool {
        self.over && self.up.is_empty() && self.orders.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        view.part("udpcl").count(&self.counters);
    }
}
