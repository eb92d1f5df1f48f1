//! Bundles as files: each is put without a question, under a name of its own.

use super::config::Config;
use super::endpoint::Endpoint;
use crate::engine::{Engine, forward, no_timers};
use crate::joint::Stack;
use crate::observe::Observation;
use crate::rng::Rng;
use crate::service::{
    Bundles, BundlesIndication, BundlesRequest, DownReason, FileFailure, FileId, FileProperties, Files,
    FilesIndication, FilesRequest, RefuseReason, TransferFailure, TransferId,
};
use crate::time::Instant;
use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

/// Number of packets of a bundle that wait to be sent for the first time.
const AHEAD_PACKETS: u64 = 64;

/// Counters of the bundles of a [`Link`] since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleCounters {
    /// Bundles that the peer has received completely.
    pub bundles_sent: u64,
    /// Bundles received completely.
    pub bundles_received: u64,
    /// Received bundles that the user refused.
    pub bundles_refused: u64,
}

/// Bundle that is being sent.
#[derive(Debug)]
struct Outgoing {
    length: u64,
    chunks: Vec<(u64, Bytes)>,
    given: u64,
    /// End of the bytes that were read.
    read: u64,
    acked: u64,
}

impl Outgoing {
    fn is_complete(&self) -> bool {
        self.given == self.length
    }

    fn copy(&self, offset: u64, length: u64) -> Bytes {
        let (mut at, end) = (offset, offset + length);
        let mut index = self.chunks.partition_point(|(start, data)| start + data.len() as u64 <= at);
        let slice = |index: usize, at: u64| {
            let (start, data) = &self.chunks[index];
            data.slice((at - start) as usize..((end - start) as usize).min(data.len()))
        };
        let first = slice(index, at);
        if first.len() as u64 == length {
            return first;
        }
        let mut out = BytesMut::with_capacity(length as usize);
        while at < end {
            let part = slice(index, at);
            out.extend_from_slice(&part);
            at += part.len() as u64;
            index += 1;
        }
        out.freeze()
    }
}

/// Bundle that is being received.
#[derive(Debug)]
struct Incoming {
    file: FileId,
    length: u64,
    /// Pieces that wait for those before them.
    waiting: BTreeMap<u64, Bytes>,
    risen: u64,
    accepted: u64,
    /// The user has it already: no more of it is indicated.
    is_dropped: bool,
}

/// Bundles above files.
#[derive(Debug)]
struct Carry {
    config: Config,
    is_up: bool,
    has_peer: bool,
    /// Beginning of the names of this link's bundles, which another link or another run does not use.
    origin: u64,
    /// Lengths of the bundles that have not begun.
    open: BTreeMap<TransferId, u64>,
    outgoing: BTreeMap<TransferId, Outgoing>,
    outgoing_bytes: u64,
    /// Bytes that were given and not read.
    unread: u64,
    /// Bundle that is not given completely.
    midway: Option<TransferId>,
    incoming: BTreeMap<TransferId, Incoming>,
    /// Incoming bundle of each file.
    places: BTreeMap<FileId, TransferId>,
    next_transfer: u64,
    down: VecDeque<FilesRequest>,
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
            origin: rng.next_u64(),
            open: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            outgoing_bytes: 0,
            unread: 0,
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
        } else if !self.has_peer || length > self.config.file_bytes_max {
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
        self.failed(transfer, failure, 0);
    }

    fn piece(&mut self, transfer: TransferId, data: Bytes) {
        self.told = self.told.saturating_sub(data.len() as u64);
        let begins = self.open.remove(&transfer);
        if let Some(length) = begins {
            let bundle = Outgoing { length, chunks: Vec::new(), given: 0, read: 0, acked: 0 };
            self.outgoing_bytes += length;
            self.outgoing.insert(transfer, bundle);
        }
        let Some(bundle) = self.outgoing.get_mut(&transfer) else { return };
        let offset = bundle.given;
        bundle.given += data.len() as u64;
        self.unread += data.len() as u64;
        bundle.chunks.push((offset, data));
        self.midway = (!bundle.is_complete()).then_some(transfer);
        let (available, length) = (bundle.given, bundle.length);
        self.down.push_back(match begins {
            Some(_) => {
                let path = format!("bundle/{:016x}/{}", self.origin, transfer.0);
                let properties = FileProperties { path, length, ..FileProperties::default() };
                FilesRequest::Put { file: transfer.0, properties, available, asks: false }
            }
            None => FilesRequest::Available { file: FileId::Own(transfer.0), up_to: available },
        });
    }

    fn read(&mut self, file: FileId, offset: u64, length: u64) {
        let FileId::Own(number) = file else { return };
        let Some(bundle) = self.outgoing.get_mut(&TransferId(number)) else { return };
        let new = (offset + length).saturating_sub(bundle.read);
        bundle.read += new;
        self.unread -= new;
        let data = bundle.copy(offset, length);
        self.down.push_back(FilesRequest::Content { file, offset, data });
    }

    /// Forgets a bundle to send.
    fn remove(&mut self, transfer: TransferId) -> Option<Outgoing> {
        let bundle = self.outgoing.remove(&transfer)?;
        self.outgoing_bytes -= bundle.length;
        self.unread -= bundle.given - bundle.read;
        self.midway = self.midway.filter(|other| *other != transfer);
        Some(bundle)
    }

    fn cancel(&mut self, transfer: TransferId) {
        if self.open.remove(&transfer).is_some() {
            self.failed(transfer, TransferFailure::Cancelled, 0);
        } else if let Some(bundle) = self.remove(transfer) {
            self.down.push_back(FilesRequest::Cancel { file: FileId::Own(transfer.0) });
            self.failed(transfer, TransferFailure::Cancelled, bundle.acked);
        }
    }

    /// Room to indicate: for the rest of the bundle under way and more, or for another one, as far as few of the bytes
    /// given before wait to be sent.
    fn room(&self) -> u64 {
        if !self.is_up || !self.has_peer {
            return 0;
        }
        let rest = self.midway.map_or(0, |transfer| {
            let bundle = &self.outgoing[&transfer];
            bundle.length - bundle.given
        });
        let may_begin = self.outgoing.len() < self.config.sessions_max
            && self.outgoing_bytes < self.config.outgoing_bytes_max;
        let left = (AHEAD_PACKETS * self.config.packet_bytes).saturating_sub(self.unread);
        // Small pieces would only cost processing time.
        match may_begin {
            _ if left < self.config.packet_bytes => 0,
            true => left,
            false => left.min(rest),
        }
    }

    // -- Received bundles ---------------------------------------------------------------------------------------

    fn offered(&mut self, file: FileId, properties: &FileProperties) {
        if properties.length == 0 || properties.is_directory {
            self.down.push_back(FilesRequest::Refuse { file, reason: FileFailure::NotInterested });
            return;
        }
        let (transfer, length) = (TransferId(self.next_transfer), properties.length);
        self.next_transfer += 1;
        let bundle =
            Incoming { file, length, waiting: BTreeMap::new(), risen: 0, accepted: 0, is_dropped: false };
        self.incoming.insert(transfer, bundle);
        self.places.insert(file, transfer);
        self.down.push_back(FilesRequest::Accept { file, held: None });
        self.up.push_back(BundlesIndication::Begin { transfer, length: Some(length) });
    }

    fn arrived(&mut self, file: FileId, offset: u64, data: Bytes) {
        let Some(transfer) = self.places.get(&file).copied() else { return };
        let bundle = self.incoming.get_mut(&transfer).expect("it has a place");
        if bundle.is_dropped {
            let end = offset + data.len() as u64;
            self.down.push_back(FilesRequest::Stored { file, start: offset, end });
            return;
        }
        bundle.waiting.insert(offset, data);
        while let Some(entry) = bundle.waiting.first_entry().filter(|entry| *entry.key() == bundle.risen) {
            let data = entry.remove();
            bundle.risen += data.len() as u64;
            let last = bundle.risen == bundle.length;
            self.up.push_back(BundlesIndication::Piece { transfer, data, last });
        }
    }

    fn accept(&mut self, transfer: TransferId, up_to: u64) {
        let Some(bundle) = self.incoming.get_mut(&transfer) else { return };
        assert!(up_to <= bundle.risen, "accepted {up_to} of {} bytes", bundle.risen);
        if up_to > bundle.accepted {
            let (file, start) = (bundle.file, bundle.accepted);
            bundle.accepted = up_to;
            self.down.push_back(FilesRequest::Stored { file, start, end: up_to });
        }
    }

    fn refuse(&mut self, transfer: TransferId, reason: RefuseReason) {
        let Some(bundle) = self.incoming.get_mut(&transfer) else { return };
        let file = bundle.file;
        self.counters.bundles_refused += 1;
        if reason == RefuseReason::Completed {
            // The peer shall learn that this side has all of it.
            bundle.is_dropped = true;
            let (start, end) = (bundle.accepted, bundle.risen);
            let waiting = core::mem::take(&mut bundle.waiting);
            let ranges = waiting.iter().map(|(offset, data)| (*offset, offset + data.len() as u64));
            let stored = core::iter::once((start, end)).chain(ranges);
            self.down.extend(stored.map(|(start, end)| FilesRequest::Stored { file, start, end }));
            return;
        }
        let reason = match reason {
            RefuseReason::NotAcceptable => FileFailure::NotInterested,
            _ => FileFailure::NoResources,
        };
        self.incoming.remove(&transfer);
        self.places.remove(&file);
        self.down.push_back(FilesRequest::Refuse { file, reason });
    }

    // -- Ends ---------------------------------------------------------------------------------------------------

    fn done(&mut self, file: FileId) {
        match file {
            FileId::Own(number) => {
                let transfer = TransferId(number);
                let Some(bundle) = self.remove(transfer) else { return };
                if bundle.is_complete() {
                    self.counters.bundles_sent += 1;
                    self.up.push_back(BundlesIndication::Sent { transfer });
                } else {
                    self.failed(transfer, TransferFailure::Refused(RefuseReason::Unknown), bundle.acked);
                }
            }
            FileId::Peer(_) => {
                if let Some(transfer) = self.places.remove(&file) {
                    self.counters.bundles_received += 1;
                    self.incoming.remove(&transfer);
                }
            }
        }
    }

    fn file_failed(&mut self, file: FileId, reason: FileFailure) {
        match file {
            FileId::Own(number) => {
                if let Some(bundle) = self.remove(TransferId(number)) {
                    self.failed(TransferId(number), transfer_failure(reason), bundle.acked);
                }
            }
            FileId::Peer(_) => {
                if let Some(transfer) = self.places.remove(&file) {
                    self.lose(transfer);
                }
            }
        }
    }

    fn lose(&mut self, transfer: TransferId) {
        let bundle = self.incoming.remove(&transfer);
        if bundle.is_some_and(|bundle| !bundle.is_dropped && bundle.risen < bundle.length) {
            self.up.push_back(BundlesIndication::Lost { transfer });
        }
    }

    fn progress(&mut self, file: FileId, up_to: u64) {
        let FileId::Own(number) = file else { return };
        let transfer = TransferId(number);
        if let Some(bundle) = self.outgoing.get_mut(&transfer)
            && up_to < bundle.length
            && up_to <= bundle.read
        {
            bundle.acked = up_to;
            self.up.push_back(BundlesIndication::Acked { transfer, up_to });
        }
    }

    /// Ends all transfers: bundles do not wait for a link, because another may carry them.
    fn went_down(&mut self, reason: DownReason, retry: bool) {
        for transfer in core::mem::take(&mut self.open).into_keys() {
            self.failed(transfer, TransferFailure::LinkDown, 0);
        }
        let outgoing: Vec<_> = self.outgoing.keys().copied().collect();
        for transfer in outgoing {
            let bundle = self.remove(transfer).expect("just listed");
            self.down.push_back(FilesRequest::Cancel { file: FileId::Own(transfer.0) });
            self.failed(transfer, TransferFailure::LinkDown, bundle.acked);
        }
        for (file, transfer) in core::mem::take(&mut self.places) {
            self.down.push_back(FilesRequest::Refuse { file, reason: FileFailure::Closed });
            self.lose(transfer);
        }
        self.is_up = false;
        self.up.push_back(BundlesIndication::Down { reason, retry });
    }
}

fn transfer_failure(reason: FileFailure) -> TransferFailure {
    match reason {
        FileFailure::Silent | FileFailure::Closed | FileFailure::Ended => TransferFailure::LinkDown,
        FileFailure::TooLong => TransferFailure::TooLong,
        FileFailure::NoResources | FileFailure::InUse => TransferFailure::Refused(RefuseReason::NoResources),
        FileFailure::NotInterested | FileFailure::AccessDenied => {
            TransferFailure::Refused(RefuseReason::NotAcceptable)
        }
        FileFailure::Damaged => TransferFailure::Refused(RefuseReason::Retransmit),
        FileFailure::NotFound
        | FileFailure::NotDeleted
        | FileFailure::Unsupported
        | FileFailure::Other(_) => TransferFailure::Refused(RefuseReason::Unknown),
    }
}

impl Engine for Carry {
    type Above = Bundles;
    type Below = Files;

    no_timers!();

    fn handle_request(&mut self, _now: Instant, request: BundlesRequest) {
        match request {
            BundlesRequest::Connect => self.down.push_back(FilesRequest::Connect),
            BundlesRequest::Open { transfer, length, .. } => self.open(transfer, length),
            BundlesRequest::Piece { transfer, data, .. } => self.piece(transfer, data),
            BundlesRequest::Cancel { transfer } => self.cancel(transfer),
            BundlesRequest::Accept { transfer, up_to } => self.accept(transfer, up_to),
            BundlesRequest::Refuse { transfer, reason } => self.refuse(transfer, reason),
            BundlesRequest::Close => self.down.push_back(FilesRequest::Close),
        }
    }

    fn handle_indication(&mut self, _now: Instant, indication: FilesIndication) {
        match indication {
            FilesIndication::Up { has_peer } => {
                (self.is_up, self.has_peer, self.told) = (true, has_peer, 0);
                let transfer_bytes_max = if has_peer { self.config.file_bytes_max } else { 0 };
                let peer = self.config.peer_node_id.clone();
                self.up.push_back(BundlesIndication::Up { peer, interleave: false, transfer_bytes_max });
            }
            FilesIndication::Down { reason, retry } => self.went_down(reason, retry),
            FilesIndication::Read { file, offset, length } => self.read(file, offset, length),
            FilesIndication::Offered { file, properties } => self.offered(file, &properties),
            FilesIndication::Wanted { file, .. } => {
                self.down.push_back(FilesRequest::Refuse { file, reason: FileFailure::NotFound });
            }
            FilesIndication::Remove { file, .. } => {
                self.down.push_back(FilesRequest::Refuse { file, reason: FileFailure::AccessDenied });
            }
            FilesIndication::Piece { file, offset, data } => self.arrived(file, offset, data),
            FilesIndication::Progress { file, up_to } => self.progress(file, up_to),
            FilesIndication::Done { file } => self.done(file),
            FilesIndication::Failed { file, reason, .. } => self.file_failed(file, reason),
            FilesIndication::Begun { .. } => unreachable!("no file is requested"),
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<BundlesIndication> {
        let room = self.room();
        BundlesIndication::next(&mut self.up, &mut self.told, room)
    }

    fn poll_request(&mut self, _now: Instant) -> Option<FilesRequest> {
        self.down.pop_front()
    }

    fn finished(&self) -> bool {
        self.up.is_empty() && self.down.is_empty()
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("saratoga-bundles").count(&self.counters);
        part.tell("bundles_outgoing", self.outgoing.len()).tell("bytes_outgoing", self.outgoing_bytes);
        part.tell("bytes_unsent", self.unread);
    }
}

/// Link to one peer, or endpoint on which any peer may send. The [module](super) describes its procedures.
#[derive(Debug)]
pub struct Link(Stack<Carry, Endpoint>);

impl Link {
    /// Creates a link to one peer, which is opened on request.
    pub fn new(config: Config, rng: Rng) -> Self {
        Link(Stack::new(Carry::new(config.clone(), rng), Endpoint::new(config)))
    }

    /// Creates an endpoint on which any peer may send; the provider opens it.
    pub fn listening(config: Config, rng: Rng) -> Self {
        let config = Config { peer_node_id: None, ..config };
        Link(Stack::new(Carry::new(config.clone(), rng), Endpoint::listening(config)))
    }

    /// Counters of the files since the creation of the link.
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
