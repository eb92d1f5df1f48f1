//! Bundles as objects: each is one data object without a description, as DTN2's NORM convergence layer has it.

use super::config::Config;
use super::session::Session;
use crate::engine::{Engine, forward, no_timers};
use crate::joint::Stack;
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, ObjectFailure, ObjectKind, Objects, ObjectsIndication,
    ObjectsRequest, RefuseReason, TransferFailure, TransferId,
};
use crate::time::Instant;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Counters of the bundles of a [`Link`] since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleCounters {
    /// Bundles that the receivers have acknowledged.
    pub bundles_sent: u64,
    /// Bundles received completely.
    pub bundles_received: u64,
    /// Received bundles that the user refused.
    pub bundles_refused: u64,
}

/// Bundles above objects.
#[derive(Debug)]
struct Carry {
    config: Config,
    /// Maximum length of a bundle to send, bytes; zero while the session is not up.
    object_bytes_max: u64,
    is_up: bool,
    /// Lengths of the bundles that have not begun.
    open: BTreeMap<TransferId, u64>,
    /// Bundles that have begun.
    begun: BTreeMap<TransferId, u64>,
    down: VecDeque<ObjectsRequest>,
    up: VecDeque<BundlesIndication>,
    room: u64,
    /// Room granted to the user, bytes.
    told: u64,
    counters: BundleCounters,
}

impl Carry {
    fn new(config: Config) -> Self {
        Carry {
            config,
            object_bytes_max: 0,
            is_up: false,
            open: BTreeMap::new(),
            begun: BTreeMap::new(),
            down: VecDeque::new(),
            up: VecDeque::new(),
            room: 0,
            told: 0,
            counters: BundleCounters::default(),
        }
    }

    fn fail(&mut self, transfer: TransferId, reason: TransferFailure) {
        self.up.push_back(BundlesIndication::Failed { transfer, reason, acked: 0 });
    }

    fn open(&mut self, transfer: TransferId, length: u64) {
        let failure = if !self.is_up {
            TransferFailure::LinkDown
        } else if length > self.object_bytes_max {
            TransferFailure::TooLong
        } else if length == 0 {
            // No bundle is empty.
            TransferFailure::Refused(RefuseReason::NotAcceptable)
        } else if self.open.len() >= self.config.open_max {
            TransferFailure::Refused(RefuseReason::NoResources)
        } else {
            self.open.insert(transfer, length);
            return;
        };
        self.fail(transfer, failure);
    }

    fn piece(&mut self, transfer: TransferId, data: bytes::Bytes, last: bool) {
        let spent = data.len() as u64;
        (self.told, self.room) = (self.told.saturating_sub(spent), self.room.saturating_sub(spent));
        let object = transfer.0;
        if let Some(length) = self.open.remove(&transfer) {
            self.begun.insert(transfer, length);
            self.down.push_back(ObjectsRequest::Send { object, kind: ObjectKind::Data, info: None, length });
        }
        if self.begun.contains_key(&transfer) {
            self.down.push_back(ObjectsRequest::Content { object, data, last });
        }
    }

    fn failed(&mut self, object: u64, reason: ObjectFailure) {
        let transfer = TransferId(object);
        if self.begun.remove(&transfer).is_none() {
            return;
        }
        self.fail(
            transfer,
            match reason {
                ObjectFailure::NotUp | ObjectFailure::Down(_) | ObjectFailure::Silent => {
                    TransferFailure::LinkDown
                }
                ObjectFailure::Cancelled => TransferFailure::Cancelled,
                ObjectFailure::TooLong => TransferFailure::TooLong,
                ObjectFailure::Refused(reason) => TransferFailure::Refused(reason),
            },
        );
    }
}

impl Engine for Carry {
    type Above = Bundles;
    type Below = Objects;

    fn handle_request(&mut self, _now: Instant, request: BundlesRequest) {
        match request {
            BundlesRequest::Connect => self.down.push_back(ObjectsRequest::Connect),
            BundlesRequest::Open { transfer, length, .. } => self.open(transfer, length),
            BundlesRequest::Piece { transfer, data, last } => self.piece(transfer, data, last),
            BundlesRequest::Cancel { transfer } => {
                if self.open.remove(&transfer).is_some() {
                    self.fail(transfer, TransferFailure::Cancelled);
                } else if self.begun.contains_key(&transfer) {
                    self.down.push_back(ObjectsRequest::Cancel { object: transfer.0 });
                }
            }
            BundlesRequest::Accept { transfer, up_to } => {
                self.down.push_back(ObjectsRequest::Accept { incoming: transfer.0, up_to });
            }
            BundlesRequest::Refuse { transfer, reason } => {
                self.counters.bundles_refused += 1;
                self.down.push_back(ObjectsRequest::Refuse { incoming: transfer.0, reason });
            }
            BundlesRequest::Close => self.down.push_back(ObjectsRequest::Close),
        }
    }

    fn handle_indication(&mut self, _now: Instant, indication: ObjectsIndication) {
        match indication {
            ObjectsIndication::Up { object_bytes_max } => {
                (self.is_up, self.object_bytes_max) = (true, object_bytes_max);
                (self.told, self.room) = (0, 0);
                self.up.push_back(BundlesIndication::Up {
                    peer: self.config.peer_node_id.clone(),
                    interleave: false,
                    transfer_bytes_max: object_bytes_max,
                });
            }
            ObjectsIndication::Down { reason, retry } => {
                (self.is_up, self.object_bytes_max, self.room) = (false, 0, 0);
                for transfer in core::mem::take(&mut self.open).into_keys() {
                    self.fail(transfer, TransferFailure::LinkDown);
                }
                self.up.push_back(BundlesIndication::Down { reason, retry });
            }
            ObjectsIndication::Room(room) => self.room = room,
            ObjectsIndication::Sent { object } => {
                if self.begun.remove(&TransferId(object)).is_some() {
                    self.counters.bundles_sent += 1;
                    self.up.push_back(BundlesIndication::Sent { transfer: TransferId(object) });
                }
            }
            ObjectsIndication::Failed { object, reason } => self.failed(object, reason),
            ObjectsIndication::Begin { incoming, length, .. } => {
                self.up.push_back(BundlesIndication::Begin { transfer: TransferId(incoming), length });
            }
            ObjectsIndication::Piece { incoming, data, last } => {
                self.counters.bundles_received += u64::from(last);
                self.up.push_back(BundlesIndication::Piece { transfer: TransferId(incoming), data, last });
            }
            ObjectsIndication::Info { .. } => {}
            // No bundle is a stream, and the session receives none.
            ObjectsIndication::Acknowledged { .. }
            | ObjectsIndication::Message { .. }
            | ObjectsIndication::Gap { .. } => {}
            ObjectsIndication::Lost { incoming } => {
                self.up.push_back(BundlesIndication::Lost { transfer: TransferId(incoming) });
            }
        }
    }

    no_timers!();

    fn poll_indication(&mut self, _now: Instant) -> Option<BundlesIndication> {
        let room = if self.is_up { self.room } else { 0 };
        BundlesIndication::next(&mut self.up, &mut self.told, room)
    }

    fn poll_request(&mut self, _now: Instant) -> Option<ObjectsRequest> {
        self.down.pop_front()
    }

    fn finished(&self) -> bool {
        self.up.is_empty() && self.down.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        view.part("norm-bundles").count(&self.counters);
    }
}

/// Bundles over NORM to one peer or to a group, or from any sender.
#[derive(Debug)]
pub struct Link(Stack<Carry, Session>);

impl Link {
    /// Creates a link to a peer or a group, which is opened on request.
    pub fn new(config: Config, rng: Rng) -> Self {
        Link(Stack::new(Carry::new(config.clone()), Session::new(config, rng).without_streams()))
    }

    /// Creates a link on which any sender may send; the provider opens it.
    pub fn listening(config: Config, rng: Rng) -> Self {
        let config = Config { peer_node_id: None, ..config };
        Link(Stack::new(Carry::new(config.clone()), Session::listening(config, rng).without_streams()))
    }

    /// Counters of the session since the creation of the link.
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
