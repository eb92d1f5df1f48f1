//! Bundles for this node: registrations, deliveries and tombstones.
//!
//! ```text
//!   arrives --> in parts --> whole --> told -----------> taken -----------> gone
//!               (5.9)        (waits    (Delivered;       (a tombstone is    (its records are
//!                            for a      can be read      being stored)      removed)
//!                            Register)  repeatedly)
//! ```
//!
//! A delivery is indicated again on each registration and after each restart until the application accepts it. The tombstone is
//! durable before the bundle is removed, so that an accepted delivery is never repeated, whenever the node crashes. The
//! tombstone is kept until no copy of the bundle can be alive.

use crate::bp::bpsec::Decryptor;
use crate::bp::{AdminRecord, Eid, v6};
use crate::kit::{OrderedMap, remove_from};
use crate::service::{
    AppIndication, BundleEvent, DeliveryId, RecordId, RefuseReason, Signature, StorageFailure,
};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Agent;
use super::adu::{AduKey, LocalKey, PayloadProperties};
use super::checking::CheckTarget;
use super::clock::{BundleDeadlines, DeadlineKind, ExpiryTime, millis};
use super::head::{AnyAdminRecord, AnyHead, decode_record};
use super::held::{BundleState, HeldBundle};
use super::reassembly::{Extent, Reassembly};
use super::record::{HEADER_BYTES, RecordKind, TombstoneBody};
use super::routing::dtlsr::RECORD_TYPE;
use super::store::ReadPurpose;
use super::taken::{Digests, TakenPayload};

/// Progress of a payload for this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DeliveryProgress {
    /// Parts are missing.
    InParts,
    /// The payload is complete, and its signature is being verified.
    Checking,
    /// The payload is complete; no application is registered, or none was notified since the start.
    Whole,
    /// The application was notified.
    Told,
    /// The application accepted the delivery; the tombstone is not durable yet.
    Taken,
}

/// Number of a payload for this node, which no other one has: the record of the part that arrived first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PayloadId(pub(super) RecordId);

/// Payload for this node.
#[derive(Debug)]
pub(super) struct LocalPayload {
    id: PayloadId,
    pub(super) key: LocalKey,
    pub(super) assembly: Reassembly,
    pub(super) progress: DeliveryProgress,
    pub(super) delivery: DeliveryId,
    /// Bytes read of an administrative record; `None` for other payloads.
    admin: Option<BytesMut>,
    extents: Vec<Extent>,
    /// Outstanding reads: offset and remaining bytes.
    reads: VecDeque<(u64, u64)>,
    /// Number of the read that is with the storage.
    reading: Option<u64>,
    next_read: u64,
    /// The application was told that the delivery is gone, and its number is not used again.
    is_number_used: bool,
    repeat_at: Option<Instant>,
    /// Outcome of the verification of the signature.
    signature: Option<Box<Signature>>,
    /// Means to decrypt the payload, which is ciphertext in the storage; `None` if it is plaintext.
    decryptor: Option<Box<Decryptor>>,
}

impl LocalPayload {
    /// A payload without parts.
    fn new(id: PayloadId, key: LocalKey) -> Self {
        LocalPayload {
            id,
            assembly: Reassembly::new(key.payload.total),
            progress: DeliveryProgress::InParts,
            delivery: DeliveryId(id.0.0),
            admin: key.payload.is_admin.then(BytesMut::new),
            extents: Vec::new(),
            reads: VecDeque::new(),
            reading: None,
            next_read: 0,
            is_number_used: false,
            repeat_at: None,
            signature: None,
            decryptor: None,
            key,
        }
    }

    /// True while parts are missing.
    pub(super) fn is_in_parts(&self) -> bool {
        self.progress == DeliveryProgress::InParts
    }

    /// True while the signature is being verified, or waits for that.
    pub(super) fn is_checked(&self) -> bool {
        self.progress == DeliveryProgress::Checking
    }

    /// Number of the payload.
    pub(super) fn id(&self) -> PayloadId {
        self.id
    }

    /// Contiguous ranges of the complete payload.
    pub(super) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Oldest record of the payload.
    pub(super) fn first_record(&self) -> RecordId {
        self.assembly.records().next().expect("a payload has parts")
    }

    /// Number of the delivery. The oldest record gives it, so that it is the same after a restart; if that number is used, the record
    /// gives it that has completed the payload.
    fn new_number(&self) -> DeliveryId {
        let mut records = self.assembly.records();
        let named_by = if self.is_number_used { records.last() } else { records.next() };
        DeliveryId(named_by.expect("a whole has parts").0)
    }

    /// Length of the complete payload, bytes.
    pub(super) fn total(&self) -> u64 {
        self.assembly.total()
    }

    /// Length of the complete payload in plaintext, bytes.
    fn plaintext_bytes(&self) -> u64 {
        self.decryptor.as_ref().map_or(self.total(), |decryptor| decryptor.bytes())
    }

    /// Outcome of the verification of the signature.
    pub(super) fn signature(&self) -> Option<&Signature> {
        self.signature.as_deref()
    }

    /// Restarts the wait for another notification, or ends it if the application was not notified or has accepted. With an interval of
    /// zero the notification is not repeated.
    fn repeat_after(&mut self, now: Instant, interval: Duration, deadlines: &mut BundleDeadlines) {
        let kind = DeadlineKind::RepeatDelivery(self.id);
        if let Some(old) = self.repeat_at.take() {
            deadlines.not_at(old, kind);
        }
        if self.progress == DeliveryProgress::Told && !interval.is_zero() {
            let at = now + interval;
            self.repeat_at = Some(at);
            deadlines.at(at, kind);
        }
    }

    /// True if all of this range has been received.
    pub(super) fn has(&self, from: u64, to: u64) -> bool {
        self.assembly.has(from, to)
    }

    /// True once the application has accepted the delivery.
    pub(super) fn is_taken(&self) -> bool {
        self.progress == DeliveryProgress::Taken
    }
}

/// Tombstone of a delivered bundle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tombstone {
    pub(super) record: RecordId,
    pub(super) end: ExpiryTime,
    pub(super) appended: u64,
}

/// Memory for a payload for this node in addition to its parts, bytes: the entry itself, the trees of its
/// parts and of the ranges that they cover, its key, and its numbers in the indices. It counts with the first part.
pub(super) const ASSEMBLY_BYTES: u32 = 512;

/// Usual length of the body of a tombstone, bytes.
const TOMBSTONE_BODY_BYTES: usize = 96;

/// Payloads for this node, from their first part to the durable tombstone.
#[derive(Debug)]
pub(super) struct Deliveries {
    registrations: BTreeSet<Eid>,
    payloads: OrderedMap<PayloadId, Box<LocalPayload>>,
    by_key: BTreeMap<LocalKey, PayloadId>,
    by_delivery: OrderedMap<DeliveryId, PayloadId>,
    /// Deliveries by endpoint.
    waiting: BTreeMap<Eid, BTreeSet<DeliveryId>>,
    tombstones: OrderedMap<TakenPayload, Tombstone>,
    /// Payloads whose tombstones these records are.
    tombstone_names: OrderedMap<RecordId, TakenPayload>,
    /// Tombstones or removals that are not yet durable; the delivery ends once they are.
    pending_tombstones: OrderedMap<RecordId, (PayloadId, DeliveryId)>,
    /// For the names of tombstones.
    pub(super) digests: Digests,
}

impl Deliveries {
    /// Creates the state without registrations.
    pub(super) fn new(digests: Digests) -> Self {
        Deliveries {
            registrations: BTreeSet::new(),
            payloads: OrderedMap::new(),
            by_key: BTreeMap::new(),
            by_delivery: OrderedMap::new(),
            waiting: BTreeMap::new(),
            tombstones: OrderedMap::new(),
            tombstone_names: OrderedMap::new(),
            pending_tombstones: OrderedMap::new(),
            digests,
        }
    }

    /// Payload with this number, if a part of it is here.
    pub(super) fn payload(&self, id: PayloadId) -> Option<&LocalPayload> {
        self.payloads.get(&id).map(|local| &**local)
    }

    fn payload_mut(&mut self, id: PayloadId) -> Option<&mut LocalPayload> {
        self.payloads.get_mut(&id).map(|local| &mut **local)
    }

    /// Payload of a delivery; `None` if there is no such delivery.
    fn delivery_mut(&mut self, delivery: DeliveryId) -> Option<&mut LocalPayload> {
        self.payload_mut(*self.by_delivery.get(&delivery)?)
    }

    /// Payload with this key, if a part of it is here.
    pub(super) fn with_key(&self, key: &LocalKey) -> Option<&LocalPayload> {
        self.payload(*self.by_key.get(key)?)
    }

    /// Payload to which a bundle with this header belongs, which may be a fragment. `None` for a bundle without a source, which has a
    /// payload of its own.
    pub(super) fn with_head(&self, head: &AnyHead) -> Option<&LocalPayload> {
        self.with_key(&LocalKey::of(head, AduKey::of(head, RecordId(0))))
    }

    /// Ends a read of a local payload. Returns `None` if nobody waits for it any longer: the payload or a part of it went in the
    /// meantime.
    fn end_read(&mut self, (id, number): (PayloadId, u64)) -> Option<&mut LocalPayload> {
        let local = self.payload_mut(id)?;
        local.reading.take_if(|reading| *reading == number)?;
        Some(local)
    }

    /// Sets the parts of a complete payload that are read.
    pub(super) fn set_extents(&mut self, id: PayloadId, extents: Vec<Extent>) {
        self.payload_mut(id).expect("a part of it is here").extents = extents;
    }

    /// True if the record is a tombstone.
    pub(super) fn is_tombstone(&self, record: RecordId) -> bool {
        self.tombstone_names.contains_key(&record)
    }

    /// True if all of a tombstone is within this length of its record.
    pub(super) fn tombstone_is_whole(&self, record: RecordId, up_to: u64) -> bool {
        let tombstone = self.tombstone_names.get(&record).and_then(|taken| self.tombstones.get(taken));
        tombstone.is_some_and(|tombstone| up_to >= tombstone.appended)
    }

    /// True if a delivery ends once this record is durable.
    pub(super) fn awaits_tombstone(&self, record: RecordId) -> bool {
        self.pending_tombstones.contains_key(&record)
    }

    /// True if the payload of a bundle with this header, which may be a fragment, was delivered at this node.
    /// Another payload with the same bundle ID does not count.
    pub(super) fn was_taken(&self, head: &AnyHead) -> bool {
        let (timestamp, version) = (head.timestamp(), head.version());
        // Most bundles have a unique timestamp, so that no digest needs to be computed.
        let has_time = self.tombstones.range(TakenPayload::all_of(timestamp)).next().is_some();
        let was = |payload| {
            self.tombstones.contains_key(&self.digests.taken(head.source(), timestamp, version, payload))
        };
        has_time && !head.source().is_null() && (was(None) || was(Some(&PayloadProperties::of(head))))
    }
}

impl Agent {
    /// True if an arriving bundle is the first part of a payload for this node.
    pub(super) fn begins_assembly(&self, head: &AnyHead) -> bool {
        self.is_local(head.destination()) && self.deliveries.with_head(head).is_none()
    }

    /// True if the endpoint belongs to this node, or an application of this node is registered for it.
    pub(super) fn is_local(&self, endpoint: &Eid) -> bool {
        (endpoint.is_singleton() && endpoint.same_node(&self.node))
            || endpoint.is_local_node()
            || self.deliveries.registrations.contains(endpoint)
    }

    /// Registers an application for an endpoint.
    pub(super) fn register(&mut self, now: Instant, endpoint: &str) {
        let Ok(endpoint) = endpoint.parse::<Eid>() else {
            self.counters.ignored += 1;
            return;
        };
        let known = self.deliveries.registrations.contains(&endpoint);
        if endpoint.is_null()
            || (!known && self.deliveries.registrations.len() >= self.config.limits.registrations_max)
        {
            self.counters.ignored += 1;
            return;
        }
        let was_local = self.is_local(&endpoint);
        self.deliveries.registrations.insert(endpoint.clone());
        if !was_local {
            self.reroute_all(now);
        }
        for delivery in self.deliveries.waiting.get(&endpoint).cloned().unwrap_or_default() {
            self.tell(now, delivery);
        }
    }

    /// Removes the registration of an endpoint.
    pub(super) fn unregister(&mut self, endpoint: &str) {
        if let Ok(endpoint) = endpoint.parse::<Eid>() {
            self.deliveries.registrations.remove(&endpoint);
        }
    }

    /// Payload to which a bundle for this node belongs, if known.
    pub(super) fn local_of(&self, held: &HeldBundle) -> Option<&LocalPayload> {
        self.deliveries.with_key(&LocalKey::of(&held.head, held.adu()))
    }

    /// Checks that a fragment or an administrative record for this node can be reassembled and read. A bundle
    /// that cannot is refused, because an accepted one is never discarded later for that reason.
    pub(super) fn judge_local(&self, head: &AnyHead) -> Result<(), RefuseReason> {
        let limits = &self.config.limits;
        let is_part = head.fragment().is_some();
        if !(is_part || head.is_administrative()) || !self.is_local(head.destination()) {
            return Ok(());
        }
        if head.is_administrative() && head.adu_bytes() > limits.admin_bytes_max {
            return Err(RefuseReason::NotAcceptable);
        }
        let local = self.deliveries.with_head(head);
        if is_part && local.is_some_and(|local| local.assembly.len() >= limits.fragments_max) {
            return Err(RefuseReason::NoResources);
        }
        Ok(())
    }

    /// Handles the arrival of a bundle or fragment for this node (RFC 9171 5.7). It was accepted, so it is
    /// kept whatever else has the same bundle ID.
    pub(super) fn arrive_here(&mut self, now: Instant, record: RecordId) {
        let held = self.holdings.get_mut(&record).expect("only what is held arrives");
        let (start, length, at) = (held.adu_offset(), held.payload_bytes(), held.payload_at());
        let mut key = LocalKey::of(&held.head, held.adu());
        if key.payload.is_admin && key.payload.total > self.config.limits.admin_bytes_max {
            // The record arrived before its endpoint belonged to this node, and is too long to be read.
            self.counters.admin_unknown += 1;
            self.drop_bundle(record);
            return;
        }
        held.state = BundleState::Local;
        key.payload.endpoint = key.payload.endpoint.detached();
        let (id, begins) = match self.deliveries.by_key.entry(key) {
            Entry::Occupied(known) => (*known.get(), false),
            Entry::Vacant(entry) => {
                let (id, key) = (PayloadId(record), entry.key().clone());
                entry.insert(id);
                self.deliveries.payloads.insert(id, Box::new(LocalPayload::new(id, key)));
                (id, true)
            }
        };
        if begins != held.begins_assembly {
            self.holdings.recount(&record, |held| held.begins_assembly = begins);
        }
        let local = self.deliveries.payload_mut(id).expect("it was just found or begun");
        if local.is_checked() {
            // The copy that is being verified may be false, and this one genuine.
            local.assembly.add(record, start, length, at);
            self.check_copy_beside(id, Extent { start, end: start + length, record, at });
        } else if local.progress == DeliveryProgress::InParts {
            local.assembly.add(record, start, length, at);
            self.assembled(now, id);
        } else {
            // The complete payload had already been received.
            self.holdings.get_mut(&record).expect("it was just found").state = BundleState::Sealing;
            self.drop_bundle(record);
        }
    }

    /// Checks whether the payload is complete after a part was added.
    pub(super) fn assembled(&mut self, now: Instant, id: PayloadId) {
        let local = self.deliveries.payload_mut(id).expect("the caller has it");
        if !local.assembly.is_whole() {
            return;
        }
        let extents = local.assembly.extents();
        local.extents = extents;
        if self.must_check(id) {
            let local = self.deliveries.payload_mut(id).expect("the caller has it");
            local.progress = DeliveryProgress::Checking;
            self.check_signature(CheckTarget::Local(id));
        } else {
            self.complete(now, id, None, None);
        }
    }

    /// Continues with a complete payload whose signature was verified, or need not be.
    pub(super) fn complete(
        &mut self,
        now: Instant,
        id: PayloadId,
        signature: Option<Signature>,
        decryptor: Option<Box<Decryptor>>,
    ) {
        self.drop_spare_parts(id);
        let local = self.deliveries.payload_mut(id).expect("the parts that it needs are here");
        local.signature = signature.map(Box::new);
        local.decryptor = decryptor;
        local.progress = DeliveryProgress::Whole;
        local.delivery = local.new_number();
        let (delivery, total) = (local.delivery, local.plaintext_bytes());
        if local.admin.is_some() && total == 0 {
            // There is nothing to read, and an empty payload is not a valid record.
            self.administer(now, &Bytes::new(), id);
            self.forget_local(id);
            return;
        }
        if local.admin.is_some() {
            local.reads.push_back((0, total));
            self.read_next(id);
            return;
        }
        let endpoint = local.key.payload.endpoint.clone();
        self.deliveries.by_delivery.insert(delivery, id);
        self.deliveries.waiting.entry(endpoint).or_default().insert(delivery);
        self.tell_payload(now, id);
    }

    /// Removes the parts of a complete payload that other parts cover: one that expires earlier would delete
    /// the payload. Parts in custody or of an application's send are kept until they are answered.
    fn drop_spare_parts(&mut self, id: PayloadId) {
        let LocalPayload { assembly, extents, .. } = self.deliveries.payload(id).expect("the caller has it");
        if assembly.len() == extents.len() || extents.is_empty() {
            return;
        }
        let needed: BTreeSet<RecordId> = extents.iter().map(|extent| extent.record).collect();
        let spare = |record: &RecordId| {
            let held = &self.holdings[record];
            !needed.contains(record) && held.custody.is_none() && held.send.is_none()
        };
        let spare: Vec<RecordId> = assembly.records().filter(spare).collect();
        for record in spare {
            self.drop_bundle(record);
        }
    }

    /// Indicates a delivery to the application that is registered for it.
    fn tell(&mut self, now: Instant, delivery: DeliveryId) {
        let id = self.deliveries.by_delivery.get(&delivery).expect("the caller has it");
        self.tell_payload(now, *id);
    }

    /// Indicates a complete payload to the application that is registered for it.
    fn tell_payload(&mut self, now: Instant, id: PayloadId) {
        let local = self.deliveries.payloads.get_mut(&id).expect("deliveries are local");
        let LocalKey { adu, payload } = &local.key;
        if local.progress == DeliveryProgress::Taken
            || !self.deliveries.registrations.contains(&payload.endpoint)
        {
            return;
        }
        self.indications.push(AppIndication::Delivered {
            delivery: local.delivery,
            name: adu.source.bundle_name(adu.timestamp),
            destination: payload.endpoint.to_string(),
            length: local.plaintext_bytes(),
            signature: local.signature.clone(),
        });
        local.progress = DeliveryProgress::Told;
        local.repeat_after(now, self.config.delivery_repeat, &mut self.time.deadlines);
    }

    /// Indicates a delivery again after the repeat interval.
    pub(super) fn repeat(&mut self, now: Instant, id: PayloadId) {
        if let Some(local) = self.deliveries.payload_mut(id) {
            local.repeat_at = None;
            self.tell_payload(now, id);
        }
    }

    /// Handles a read of a delivery by an application.
    pub(super) fn read_delivery(&mut self, now: Instant, delivery: DeliveryId, offset: u64, length: u32) {
        let most = self.config.limits.reads_max;
        let Some(local) = self.deliveries.delivery_mut(delivery) else {
            self.counters.ignored += 1;
            return;
        };
        let id = local.id;
        let left = local.plaintext_bytes().saturating_sub(offset).min(u64::from(length));
        let is_read = left > 0 && local.reads.len() < most;
        if is_read {
            local.reads.push_back((offset, left));
        } else {
            self.counters.ignored += 1;
        }
        local.repeat_after(now, self.config.delivery_repeat, &mut self.time.deadlines);
        if is_read {
            self.read_next(id);
        }
    }

    /// Requests the next range of a local payload from the storage.
    pub(super) fn read_next(&mut self, id: PayloadId) {
        let Some(local) = self.deliveries.payload_mut(id) else { return };
        let Some(&(offset, left)) = local.reads.front().filter(|_| local.reading.is_none()) else { return };
        let index = local.extents.partition_point(|extent| extent.end <= offset);
        let extent = local.extents[index];
        let length = left.min(extent.end - offset).min(self.config.piece_bytes_max as u64) as u32;
        let at = extent.at + (offset - extent.start);
        local.reading = Some(local.next_read);
        local.next_read += 1;
        let purpose = ReadPurpose::Payload(id, local.next_read - 1);
        self.store.read(extent.record, at, length, purpose);
    }

    /// Handles data read of a local payload.
    pub(super) fn local_data(
        &mut self,
        now: Instant,
        (id, number): (PayloadId, u64),
        record: RecordId,
        data: Bytes,
    ) {
        let Some(local) = self.deliveries.end_read((id, number)) else { return };
        let Some(front) = local.reads.front_mut() else { return };
        let offset = front.0;
        if data.is_empty() {
            // The storage has less than it reported as durable.
            return self.storage_lost(now, record);
        }
        front.0 += data.len() as u64;
        front.1 = front.1.saturating_sub(data.len() as u64);
        if front.1 == 0 {
            local.reads.pop_front();
        }
        let data = match &mut local.decryptor {
            Some(decryptor) => decryptor.decrypt(offset, &data),
            None => data,
        };
        let (delivery, total) = (local.delivery, local.plaintext_bytes());
        match &mut local.admin {
            None => self.indications.push(AppIndication::Data { delivery, offset, data }),
            Some(read) => {
                read.extend_from_slice(&data);
                if read.len() as u64 == total {
                    let payload = core::mem::take(read).freeze();
                    self.administer(now, &payload, id);
                    self.forget_local(id);
                    return;
                }
            }
        }
        if !local.reads.is_empty() {
            self.read_next(id);
        }
    }

    /// Handles a failed read of a local payload.
    pub(super) fn local_failed(
        &mut self,
        now: Instant,
        (id, number): (PayloadId, u64),
        record: RecordId,
        failure: StorageFailure,
    ) {
        if self.deliveries.end_read((id, number)).is_none() {
            return;
        }
        match failure {
            StorageFailure::Device => {
                self.time.deadlines.at(now + self.config.backoff_min, DeadlineKind::RetryRead(id))
            }
            StorageFailure::Missing | StorageFailure::Damaged => self.storage_lost(now, record),
        }
    }

    /// Processes an administrative record (RFC 9171 6.1, RFC 9713 2).
    fn administer(&mut self, now: Instant, payload: &Bytes, id: PayloadId) {
        let key = &self.deliveries.payload(id).expect("the caller has it").key;
        let (version, reporter) = (key.adu.version, key.adu.source.clone());
        match decode_record(version, payload) {
            Ok(AnyAdminRecord::V7(AdminRecord::StatusReport(report))) => {
                self.say_report(&report, &reporter, id)
            }
            Ok(AnyAdminRecord::V6(v6::AdminRecord::StatusReport(report))) => {
                self.say_report_v6(&report, &reporter, id)
            }
            Ok(AnyAdminRecord::V6(v6::AdminRecord::CustodySignal(signal))) => {
                self.heed_signal(now, &signal, id)
            }
            Ok(AnyAdminRecord::V7(AdminRecord::Unknown { record_type: RECORD_TYPE, content })) => {
                self.hear_announcements(now, &content, &reporter, id)
            }
            Ok(AnyAdminRecord::V7(_) | AnyAdminRecord::V6(_)) | Err(_) => self.counters.admin_unknown += 1,
        }
    }

    /// Handles the acceptance of a delivery by the application: the tombstone is stored before the bundle is
    /// removed.
    pub(super) fn taken(&mut self, now: Instant, delivery: DeliveryId) {
        let Some(local) = self.deliveries.delivery_mut(delivery) else {
            self.counters.ignored += 1;
            return;
        };
        if local.progress == DeliveryProgress::Taken {
            return;
        }
        local.progress = DeliveryProgress::Taken;
        local.reads.clear();
        local.repeat_after(now, self.config.delivery_repeat, &mut self.time.deadlines);
        let id = local.id;
        self.write_tombstone(now, id);
    }

    /// Stores the tombstone of an accepted delivery. A bundle without a source gets no tombstone: its removal
    /// itself must be durable.
    pub(super) fn write_tombstone(&mut self, now: Instant, id: PayloadId) {
        let taken = self.deliveries.payload(id).filter(|local| local.is_taken());
        let Some(local) = taken else { return };
        let delivery = local.delivery;
        if local.key.adu.is_anonymous() {
            let record = local.first_record();
            self.deliveries.pending_tombstones.insert(record, (id, delivery));
            self.store.remove(record);
            return;
        }
        let ends = local.assembly.records().map(|record| self.holdings[&record].end);
        let end = ends.max_by_key(|end| (end.dtn_ms, end.by_age)).expect("a whole has parts");
        let key = local.key.clone();
        let record = self.add_tombstone_for(now, key, end);
        self.deliveries.pending_tombstones.insert(record, (id, delivery));
    }

    /// Stores a tombstone for a bundle with this payload and expiry.
    pub(super) fn add_tombstone_for(&mut self, now: Instant, key: LocalKey, end: ExpiryTime) -> RecordId {
        let remaining_ms = millis(self.time.clock.left(end, now));
        let LocalKey { adu, payload } = key;
        let taken = self.deliveries.digests.taken(&adu.source, adu.timestamp, adu.version, Some(&payload));
        let body = TombstoneBody {
            source: adu.source,
            timestamp: adu.timestamp,
            version: adu.version,
            expires_dtn_ms: end.dtn_ms.unwrap_or(0),
            remaining_ms,
            payload: Some(payload),
        };
        let record = self.next_record();
        let mut out = BytesMut::with_capacity(HEADER_BYTES as usize + TOMBSTONE_BODY_BYTES);
        self.header(now, RecordKind::Tombstone(body.version), 0).encode(&mut out);
        body.encode(&mut out);
        let appended = out.len() as u64;
        let end = ExpiryTime { dtn_ms: end.dtn_ms, by_age: now + Duration::from_millis(remaining_ms) };
        self.store.append(record, out.freeze(), true);
        self.add_tombstone(now, taken, Tombstone { record, end, appended });
        record
    }

    /// Adds a tombstone to those in memory.
    pub(super) fn add_tombstone(&mut self, now: Instant, taken: TakenPayload, tombstone: Tombstone) {
        self.time.deadlines.ends(tombstone.end, DeadlineKind::TombstoneExpiry(tombstone.record));
        self.deliveries.tombstone_names.insert(tombstone.record, taken);
        if let Some(old) = self.deliveries.tombstones.insert(taken, tombstone) {
            self.time.deadlines.not_ends(old.end, DeadlineKind::TombstoneExpiry(old.record));
            self.deliveries.tombstone_names.remove(&old.record);
            self.store.remove(old.record);
        }
        while self.deliveries.tombstones.len() > self.config.limits.tombstones_max {
            let (&oldest, _) = self.deliveries.tombstone_names.first().expect("there is one too many");
            if self.deliveries.pending_tombstones.contains_key(&oldest) {
                break;
            }
            self.counters.tombstones_dropped += 1;
            self.forget(now, oldest);
        }
    }

    /// Removes an expired tombstone.
    pub(super) fn forget(&mut self, now: Instant, record: RecordId) {
        let Some(taken) = self.deliveries.tombstone_names.get(&record).copied() else { return };
        if self.deliveries.pending_tombstones.contains_key(&record) {
            // The tombstone is not durable yet.
            self.time.deadlines.at(now + self.config.backoff_max, DeadlineKind::TombstoneExpiry(record));
            return;
        }
        self.deliveries.tombstone_names.remove(&record);
        if let Some(tombstone) = self.deliveries.tombstones.remove(&taken) {
            self.time.deadlines.not_ends(tombstone.end, DeadlineKind::TombstoneExpiry(record));
        }
        self.store.remove(record);
    }

    /// Ends the delivery, once its tombstone is durable or the bundle without identity is removed durably.
    pub(super) fn tombstone_stored(&mut self, now: Instant, record: RecordId) {
        let Some((id, delivery)) = self.deliveries.pending_tombstones.remove(&record) else { return };
        self.counters.delivered += 1;
        let records = self.deliveries.payload(id).into_iter().flat_map(|local| local.assembly.records());
        let records: Vec<RecordId> = records.collect();
        if let Some(first) = records.first() {
            self.report_delivered(now, *first);
            self.happened(*first, BundleEvent::Delivered);
        }
        for record in records {
            self.signal_delivered(now, record);
            if let Some(send) = self.holdings[&record].send {
                self.end_send(send, Ok(()));
            }
            self.drop_bundle(record);
        }
        self.indications.push(AppIndication::Gone { delivery, taken: true });
    }

    /// Schedules another attempt for a tombstone that found no space.
    pub(super) fn tombstone_failed(&mut self, now: Instant, record: RecordId) {
        let Some((id, _)) = self.deliveries.pending_tombstones.remove(&record) else { return };
        self.forget(now, record);
        self.time.deadlines.at(now + self.config.backoff_min, DeadlineKind::RetryTombstone(id));
    }

    /// Removes a local payload with all its parts.
    fn forget_local(&mut self, id: PayloadId) {
        let Some(local) = self.deliveries.payload(id) else { return };
        let records: Vec<RecordId> = local.assembly.records().collect();
        for record in records {
            self.drop_bundle(record);
        }
    }

    /// Removes a part of a local payload; a complete payload that needs the part is incomplete again.
    pub(super) fn part_gone(&mut self, record: RecordId, part: &HeldBundle) {
        let Some(id) = self.local_of(part).map(|local| local.id) else { return };
        let local = self.deliveries.payload_mut(id).expect("it was just found");
        // Of an empty payload that is being verified, the header of the oldest part is read.
        let is_head = local.is_checked() && local.extents.is_empty() && local.first_record() == record;
        local.assembly.remove(record);
        let (delivery, progress) = (local.delivery, local.progress);
        let is_read = is_head || local.extents.iter().any(|extent| extent.record == record);
        let is_last = local.assembly.len() == 0;
        if progress != DeliveryProgress::InParts && is_read || is_last {
            // Without this part the payload is incomplete.
            if let Some(at) = local.repeat_at.take() {
                self.time.deadlines.not_at(at, DeadlineKind::RepeatDelivery(id));
            }
            local.progress = DeliveryProgress::InParts;
            local.reads.clear();
            local.extents.clear();
            local.admin.iter_mut().for_each(BytesMut::clear);
            (local.signature, local.decryptor, local.reading) = (None, None, None);
            local.is_number_used |= progress == DeliveryProgress::Told;
            let endpoint = local.key.payload.endpoint.clone();
            self.security.stop_check(&CheckTarget::Local(id));
            self.deliveries.by_delivery.remove(&delivery);
            remove_from(&mut self.deliveries.waiting, &endpoint, &delivery);
            if progress == DeliveryProgress::Told {
                self.indications.push(AppIndication::Gone { delivery, taken: false });
            }
            if progress == DeliveryProgress::Checking {
                self.security.checks.begin_again(id);
            }
        }
        if is_last {
            let gone = self.deliveries.payloads.remove(&id).expect("it was just found");
            self.deliveries.by_key.remove(&gone.key);
        } else if part.begins_assembly {
            self.pass_assembly_on(id);
        }
    }

    /// Moves the memory of a payload to another part after the part with which it counted was removed.
    fn pass_assembly_on(&mut self, id: PayloadId) {
        let heir = self.deliveries.payload(id).map(|local| local.first_record());
        let Some(heir) = heir.filter(|heir| self.holdings.contains(heir)) else { return };
        self.holdings.recount(&heir, |held| held.begins_assembly = true);
    }
}
