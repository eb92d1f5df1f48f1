//! Bundles as connections: each has one of its own, which begins with the length of the bundle.

use super::config::Config;
use super::endpoint::Endpoint;
use crate::engine::{Engine, forward, no_timers};
use crate::joint::Stack;
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, ConnectionFailure, ConnectionProperties, Connections,
    ConnectionsIndication, ConnectionsRequest, DownReason, RefuseReason, TransferFailure, TransferId,
};
use crate::time::Instant;
use bytes::{Buf, Bytes, BytesMut};
use core::fmt::Debug;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Destination port of the connections: the registered port of bundles over TCP and UDP.
pub const BUNDLES_PORT: u16 = 4556;
/// Length of the number before the bundle that states its length, octets.
const PREFIX_BYTES: u64 = 8;
/// Number of packets of a bundle that may be passed down before its connection states its room.
const AHEAD_PACKETS: u64 = 16;

/// Counters of the bundles of a [`Link`] since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleCounters {
    /// Bundles that the peer has received completely.
    pub bundles_sent: u64,
    /// Bundles received completely.
    pub bundles_received: u64,
    /// Received bundles that the user refused.
    pub bundles_refused: u64,
    /// Incoming connections that carry no bundle.
    pub strangers: u64,
}

/// Bundle that is being sent.
#[derive(Debug)]
struct Outgoing {
    length: u64,
    given: u64,
    acked: u64,
    /// Bytes that wait for room.
    waiting: VecDeque<Bytes>,
    waiting_bytes: u64,
    /// Room of the connection.
    room: u64,
}

/// Bundle that is being received.
#[derive(Debug, Default)]
struct Incoming {
    /// Octets of the length that have arrived.
    prefix: BytesMut,
    transfer: Option<TransferId>,
    length: u64,
    risen: u64,
    accepted: u64,
    /// The user has had the last piece.
    end_was_told: bool,
}

/// Bundles above connections.
#[derive(Debug)]
struct Carry {
    config: Config,
    is_up: bool,
    has_peer: bool,
    next_port: u16,
    /// Lengths of the bundles that have not begun.
    open: BTreeMap<TransferId, u64>,
    outgoing: BTreeMap<TransferId, Outgoing>,
    outgoing_bytes: u64,
    /// Bundle that is not given completely.
    midway: Option<TransferId>,
    incoming: BTreeMap<u64, Incoming>,
    places: BTreeMap<TransferId, u64>,
    next_transfer: u64,
    down: VecDeque<ConnectionsRequest>,
    up: VecDeque<BundlesIndication>,
    /// Room granted to the user, bytes.
    told: u64,
    counters: BundleCounters,
}

impl Carry {
    fn new(config: Config, mut rng: Rng) -> Self {
        Carry {
            config,
            is_up: false,
            has_peer: false,
            next_port: rng.next_u32() as u16,
            open: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            outgoing_bytes: 0,
            midway: None,
            incoming: BTreeMap::new(),
            places: BTreeMap::new(),
            next_transfer: 0,
            down: VecDeque::new(),
            up: VecDeque::new(),
            told: 0,
            counters: BundleCounters::default(),
        }
    }

    // -- Bundles to send ----------------------------------------------------------------------------------------

    fn failed(&mut self, transfer: TransferId, reason: TransferFailure, acked: u64) {
        self.up.push_back(BundlesIndication::Failed { transfer, reason, acked });
    }

    fn open(&mut self, transfer: TransferId, length: u64) {
        let failure = if !self.is_up {
            TransferFailure::LinkDown
        } else if !self.has_peer || length > self.config.bundle_bytes_max {
            TransferFailure::TooLong
        } else if self.open.len() >= self.config.open_max {
            TransferFailure::Refused(RefuseReason::NoResources)
        } else {
            self.open.insert(transfer, length);
            return;
        };
        self.failed(transfer, failure, 0);
    }

    fn piece(&mut self, transfer: TransferId, data: Bytes) {
        self.told = self.told.saturating_sub(data.len() as u64);
        if let Some(length) = self.open.remove(&transfer) {
            self.begin(transfer, length);
        }
        let Some(bundle) = self.outgoing.get_mut(&transfer) else { return };
        bundle.given += data.len() as u64;
        self.midway = (bundle.given < bundle.length).then_some(transfer);
        bundle.waiting_bytes += data.len() as u64;
        bundle.waiting.push_back(data);
        self.pass(transfer);
    }

    fn begin(&mut self, transfer: TransferId, length: u64) {
        let prefix = Bytes::copy_from_slice(&length.to_be_bytes());
        let bundle = Outgoing {
            length,
            given: 0,
            acked: 0,
            waiting: VecDeque::from([prefix]),
            waiting_bytes: PREFIX_BYTES,
            room: 0,
        };
        self.outgoing_bytes += length;
        self.outgoing.insert(transfer, bundle);
        let properties = ConnectionProperties {
            service: self.config.service,
            precedence: self.config.precedence,
            source_port: self.next_port,
            destination_port: BUNDLES_PORT,
        };
        // Without port 0 there are 65,535, which has no factor in common with the 4,096 first sequence numbers: the same pair comes back
        // after 268 million bundles.
        self.next_port = self.next_port.wrapping_add(1).max(1);
        self.down.push_back(ConnectionsRequest::Open { connection: transfer.0, properties });
    }

    /// Passes down bytes that wait, as far as there is room.
    fn pass(&mut self, transfer: TransferId) {
        let Some(bundle) = self.outgoing.get_mut(&transfer) else { return };
        while let Some(first) = bundle.waiting.front_mut() {
            let length = bundle.room.min(first.len() as u64);
            if length == 0 && !first.is_empty() {
                return;
            }
            let data = first.split_to(length as usize);
            bundle.room -= length;
            bundle.waiting_bytes -= length;
            if first.is_empty() {
                bundle.waiting.pop_front();
            }
            let last = bundle.waiting.is_empty() && bundle.given == bundle.length;
            if !data.is_empty() || last {
                self.down.push_back(ConnectionsRequest::Data { connection: transfer.0, data, last });
            }
        }
    }

    /// Forgets a bundle to send.
    fn remove(&mut self, transfer: TransferId) -> Option<Outgoing> {
        let bundle = self.outgoing.remove(&transfer)?;
        self.outgoing_bytes -= bundle.length;
        self.midway = self.midway.filter(|other| *other != transfer);
        Some(bundle)
    }

    fn cancel(&mut self, transfer: TransferId) {
        if self.open.remove(&transfer).is_some() {
            self.failed(transfer, TransferFailure::Cancelled, 0);
        } else if self.outgoing.contains_key(&transfer) {
            self.down.push_back(ConnectionsRequest::Cancel { connection: transfer.0 });
        }
    }

    /// Room to indicate: that of the connection of the bundle under way, or for another bundle.
    fn room(&self) -> u64 {
        if !self.is_up || !self.has_peer {
            return 0;
        }
        let ahead = AHEAD_PACKETS * self.config.packet_bytes;
        if let Some(transfer) = self.midway {
            let bundle = &self.outgoing[&transfer];
            return bundle.room.max(ahead).saturating_sub(bundle.waiting_bytes);
        }
        let may_begin = self.outgoing.len() < self.config.outgoing_max
            && self.outgoing_bytes < self.config.outgoing_bytes_max;
        if may_begin { ahead } else { 0 }
    }

    fn sent(&mut self, transfer: TransferId) {
        if self.remove(transfer).is_some() {
            self.counters.bundles_sent += 1;
            self.up.push_back(BundlesIndication::Sent { transfer });
        }
    }

    fn connection_failed(&mut self, transfer: TransferId, reason: ConnectionFailure) {
        let Some(bundle) = self.remove(transfer) else { return };
        let failure = match reason {
            ConnectionFailure::NotUp
            | ConnectionFailure::Down(_)
            | ConnectionFailure::Silent
            | ConnectionFailure::Unknown
            | ConnectionFailure::InUse => TransferFailure::LinkDown,
            ConnectionFailure::Cancelled => TransferFailure::Cancelled,
            ConnectionFailure::Refused(reason) => TransferFailure::Refused(reason),
            ConnectionFailure::NoResources => TransferFailure::Refused(RefuseReason::NoResources),
        };
        self.failed(transfer, failure, bundle.acked);
    }

    fn acknowledged(&mut self, transfer: TransferId, up_to: u64) {
        let Some(bundle) = self.outgoing.get_mut(&transfer) else { return };
        let up_to = up_to.saturating_sub(PREFIX_BYTES);
        if up_to > bundle.acked && up_to < bundle.length {
            bundle.acked = up_to;
            self.up.push_back(BundlesIndication::Acked { transfer, up_to });
        }
    }

    // -- Received bundles ---------------------------------------------------------------------------------------

    fn began(&mut self, incoming: u64, properties: &ConnectionProperties) {
        if properties.destination_port == BUNDLES_PORT && properties.service.acknowledges() {
            self.incoming.insert(incoming, Incoming::default());
        } else {
            self.counters.strangers += 1;
            self.down.push_back(ConnectionsRequest::Refuse { incoming, reason: RefuseReason::NotAcceptable });
        }
    }

    fn arrived(&mut self, number: u64, mut data: Bytes, last: bool) {
        let Some(bundle) = self.incoming.get_mut(&number) else {
            // All of the bundle is accepted: only the end may follow.
            if !data.is_empty() {
                let reason = RefuseReason::NotAcceptable;
                self.down.push_back(ConnectionsRequest::Refuse { incoming: number, reason });
            }
            return;
        };
        if bundle.transfer.is_none() {
            let lacking = PREFIX_BYTES as usize - bundle.prefix.len();
            bundle.prefix.extend_from_slice(&data.split_to(lacking.min(data.len())));
            if bundle.prefix.len() < PREFIX_BYTES as usize {
                if last {
                    self.break_off(number, RefuseReason::NotAcceptable);
                }
                return;
            }
            bundle.length = (&bundle.prefix[..]).get_u64();
            if bundle.length > self.config.bundle_bytes_max {
                return self.break_off(number, RefuseReason::NoResources);
            }
            let transfer = TransferId(self.next_transfer);
            self.next_transfer += 1;
            bundle.transfer = Some(transfer);
            self.places.insert(transfer, number);
            self.up.push_back(BundlesIndication::Begin { transfer, length: Some(bundle.length) });
        }
        let transfer = bundle.transfer.expect("just set");
        bundle.risen += data.len() as u64;
        let is_complete = bundle.risen == bundle.length;
        if bundle.risen > bundle.length || last && !is_complete {
            return self.break_off(number, RefuseReason::NotAcceptable);
        }
        // The end of the connection may follow in a message of its own.
        if !bundle.end_was_told && (is_complete || !data.is_empty()) {
            bundle.end_was_told = is_complete;
            self.up.push_back(BundlesIndication::Piece { transfer, data, last: is_complete });
        }
    }

    /// Ends a bundle that breaks a rule or a limit.
    fn break_off(&mut self, number: u64, reason: RefuseReason) {
        self.counters.strangers += 1;
        self.down.push_back(ConnectionsRequest::Refuse { incoming: number, reason });
        self.lose(number);
    }

    fn lose(&mut self, number: u64) {
        let Some(bundle) = self.incoming.remove(&number) else { return };
        let Some(transfer) = bundle.transfer else { return };
        self.places.remove(&transfer);
        if !bundle.end_was_told {
            self.up.push_back(BundlesIndication::Lost { transfer });
        }
    }

    fn accept(&mut self, transfer: TransferId, up_to: u64) {
        let Some(number) = self.places.get(&transfer).copied() else { return };
        let bundle = self.incoming.get_mut(&number).expect("it has a place");
        assert!(up_to <= bundle.risen, "accepted {up_to} of {} bytes", bundle.risen);
        bundle.accepted = bundle.accepted.max(up_to);
        self.down.push_back(ConnectionsRequest::Accept {
            incoming: number,
            up_to: PREFIX_BYTES + bundle.accepted,
        });
        if bundle.accepted == bundle.length && bundle.risen == bundle.length {
            self.counters.bundles_received += 1;
            self.incoming.remove(&number);
            self.places.remove(&transfer);
        }
    }

    fn refuse(&mut self, transfer: TransferId, reason: RefuseReason) {
        let Some(number) = self.places.remove(&transfer) else { return };
        self.incoming.remove(&number);
        self.counters.bundles_refused += 1;
        self.down.push_back(ConnectionsRequest::Refuse { incoming: number, reason });
    }

    fn went_down(&mut self, reason: DownReason, retry: bool) {
        for transfer in core::mem::take(&mut self.open).into_keys() {
            self.failed(transfer, TransferFailure::LinkDown, 0);
        }
        // Those that the endpoint has not seen.
        let outgoing: Vec<_> = self.outgoing.keys().copied().collect();
        outgoing.into_iter().for_each(|transfer| self.connection_failed(transfer, ConnectionFailure::NotUp));
        let incoming: Vec<_> = self.incoming.keys().copied().collect();
        incoming.into_iter().for_each(|number| self.lose(number));
        self.is_up = false;
        self.up.push_back(BundlesIndication::Down { reason, retry });
    }
}

impl Engine for Carry {
    type Above = Bundles;
    type Below = Connections;

    no_timers!();

    fn handle_request(&mut self, _now: Instant, request: BundlesRequest) {
        match request {
            BundlesRequest::Connect => self.down.push_back(ConnectionsRequest::Connect),
            BundlesRequest::Open { transfer, length, .. } => self.open(transfer, length),
            BundlesRequest::Piece { transfer, data, .. } => self.piece(transfer, data),
            BundlesRequest::Cancel { transfer } => self.cancel(transfer),
            BundlesRequest::Accept { transfer, up_to } => self.accept(transfer, up_to),
            BundlesRequest::Refuse { transfer, reason } => self.refuse(transfer, reason),
            BundlesRequest::Close => self.down.push_back(ConnectionsRequest::Close),
        }
    }

    fn handle_indication(&mut self, _now: Instant, indication: ConnectionsIndication) {
        match indication {
            ConnectionsIndication::Up { message_bytes_max } => {
                (self.is_up, self.has_peer, self.told) = (true, message_bytes_max > 0, 0);
                let transfer_bytes_max = if self.has_peer { self.config.bundle_bytes_max } else { 0 };
                let peer = self.config.peer_node_id.clone();
                self.up.push_back(BundlesIndication::Up { peer, interleave: false, transfer_bytes_max });
            }
            ConnectionsIndication::Down { reason, retry } => self.went_down(reason, retry),
            ConnectionsIndication::Room { connection, bytes } => {
                let transfer = TransferId(connection);
                if let Some(bundle) = self.outgoing.get_mut(&transfer) {
                    bundle.room = bytes;
                    self.pass(transfer);
                }
            }
            ConnectionsIndication::Acknowledged { connection, up_to } => {
                self.acknowledged(TransferId(connection), up_to);
            }
            ConnectionsIndication::Sent { connection } => self.sent(TransferId(connection)),
            ConnectionsIndication::Failed { connection, reason } => {
                self.connection_failed(TransferId(connection), reason);
            }
            ConnectionsIndication::Begin { incoming, properties } => self.began(incoming, &properties),
            ConnectionsIndication::Data { incoming, data, last, .. } => self.arrived(incoming, data, last),
            // Connections with acknowledgements have no gaps.
            ConnectionsIndication::Gap { .. } => {}
            ConnectionsIndication::Lost { incoming } => self.lose(incoming),
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<BundlesIndication> {
        let room = self.room();
        BundlesIndication::next(&mut self.up, &mut self.told, room)
    }

    fn poll_request(&mut self, _now: Instant) -> Option<ConnectionsRequest> {
        self.down.pop_front()
    }

    fn finished(&self) -> bool {
        self.up.is_empty() && self.down.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("aerotp-bundles").count(&self.counters);
        part.tell("bundles_outgoing", self.outgoing.len()).tell("bytes_outgoing", self.outgoing_bytes);
        part.tell("bytes_waiting", self.outgoing.values().map(|bundle| bundle.waiting_bytes).sum::<u64>());
    }
}

/// Link to one peer, or endpoint to which any peer may send, with a connection for each bundle.
#[derive(Debug)]
pub struct Link(Stack<Carry, Endpoint>);

impl Link {
    /// Creates a link to one peer, which is opened on request.
    pub fn new(config: Config, rng: Rng) -> Self {
        let endpoint = Endpoint::new(config.clone(), rng.fork("endpoint"));
        Link(Stack::new(Carry::new(config, rng), endpoint))
    }

    /// Creates an endpoint to which any peer may send; the provider opens it.
    pub fn listening(config: Config, rng: Rng) -> Self {
        let config = Config { peer_node_id: None, ..config };
        let endpoint = Endpoint::listening(config.clone(), rng.fork("endpoint"));
        Link(Stack::new(Carry::new(config, rng), endpoint))
    }

    /// Takes the link apart into the bundles and the endpoint, for an endpoint that another user shares: the bundles use connections to
    /// [`BUNDLES_PORT`], with numbers that the user of the bundles chooses.
    pub fn into_parts(self) -> (impl Engine<Above = Bundles, Below = Connections> + Debug + Send, Endpoint) {
        (self.0.upper, self.0.lower)
    }

    /// Counters of the connections since the creation of the link.
    pub fn counters(&self) -> &super::config::Counters {
        self.0.lower.counters()
    }

    /// Counters of the bundles since the creation of the link.
    pub fn bundle_counters(&self) -> &BundleCounters {
        &self.0.upper.counters
    }
}

impl Engine for Link {
    type Above = Bundles;
    type Below = crate::service::Datagrams;

    forward!(0: handle_request handle_indication handle_timeout poll_indication poll_request poll_timeout finished observe);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_leave_out_zero() {
        let mut carry = Carry::new(Config::default(), Rng::new(1));
        carry.handle_indication(Instant::ZERO, ConnectionsIndication::Up { message_bytes_max: 1_000 });
        carry.next_port = u16::MAX;
        for transfer in [TransferId(1), TransferId(2)] {
            carry.open(transfer, 3);
            carry.piece(transfer, Bytes::from_static(b"abc"));
        }
        let ports = carry.down.iter().filter_map(|request| match request {
            ConnectionsRequest::Open { properties, .. } => Some(properties.source_port),
            _ => None,
        });
        assert_eq!(ports.collect::<Vec<_>>(), [u16::MAX, 1]);
    }
}
