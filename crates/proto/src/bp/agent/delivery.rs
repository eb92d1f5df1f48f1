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
use crate::bp::{AdminRecord, CreationTimestamp, Eid, v6};
use crate::kit::{OrderedMap, remove_from};
use crate::service::{
    AppIndication, BundleEvent, BundleVersion, DeliveryId, RecordId, RefuseReason, Signature, StorageFailure,
};
use crate::time::{Duration, Instant};
use bytes::{Bytes, BytesMut};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::Agent;
use super::checking::CheckTarget;
use super::clock::{BundleDeadlines, DeadlineKind, ExpiryTime, millis};
use super::head::{AnyAdminRecord, AnyHead, decode_record};
use super::held::{BundleState, HeldBundle};
use super::reassembly::{Extent, Reassembly};
use super::record::{HEADER_BYTES, RecordKind, TombstoneBody};
use super::routing::dtlsr::RECORD_TYPE;
use super::store::ReadPurpose;
use super::taken::{Digests, TakenPayload};

/// Key that a bundle has in common with all its fragments and copies. Each bundle without a source has its
/// own key. The timestamp is compared first: it distinguishes most bundles, and is cheaper to compare than
/// the source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct AduKey {
    pub(super) timestamp: CreationTimestamp,
    pub(super) source: Eid,
    anonymous: RecordId,
    pub(super) version: BundleVersion,
}

impl AduKey {
    /// Key of the bundle with this header in this record. It shares the memory of the header, so it must not
    /// outlive the bundle.
    pub(super) fn of(head: &AnyHead, record: RecordId) -> Self {
        let source = head.source().clone();
        let anonymous = if source.is_null() { record } else { RecordId(0) };
        AduKey { source, timestamp: head.timestamp(), anonymous, version: head.version() }
    }

    /// Key of the subject of a custody signal.
    pub(super) fn of_subject(subject: &v6::admin::Subject) -> Self {
        AduKey::named(&subject.source, subject.timestamp(), BundleVersion::V6)
    }

    /// Key of a bundle with this non-null source, creation timestamp and version, and of its fragments.
    pub(super) fn named(source: &Eid, timestamp: CreationTimestamp, version: BundleVersion) -> Self {
        AduKey { source: source.clone(), timestamp, anonymous: RecordId(0), version }
    }

    fn is_anonymous(&self) -> bool {
        self.anonymous != RecordId(0)
    }
}

/// Key of a payload for this node, which all parts of it have. A part with another key belongs to another payload and
/// does not affect this one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LocalKey {
    pub(super) adu: AduKey,
    pub(super) payload: PayloadProperties,
}

impl LocalKey {
    /// Key of the payload of a bundle with this header, which may be a fragment.
    pub(super) fn of(head: &AnyHead, adu: AduKey) -> Self {
        LocalKey { adu, payload: PayloadProperties::of(head) }
    }
}

/// Properties that distinguish payloads with the same bundle ID.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct PayloadProperties {
    pub(super) endpoint: Eid,
    /// Length of the complete payload, bytes.
    pub(super) total: u64,
    /// All fragments have the lifetime of the complete bundle (RFC 9171 4.3.1, 5.8): a part that expires
    /// earlier must not replace one that expires later.
    pub(super) lifetime_ms: u64,
    pub(super) is_admin: bool,
    /// Fragments in plaintext are not parts of an encrypted payload, nor the other way round. False in version 6, where
    /// blocks behind the payload may tell it.
    pub(super) is_encrypted: bool,
}

impl PayloadProperties {
    /// Properties of the payload of a bundle with this header, which may be a fragment.
    pub(super) fn of(head: &AnyHead) -> Self {
        PayloadProperties {
            endpoint: head.destination().clone(),
            total: head.adu_bytes(),
            lifetime_ms: head.lifetime_ms(),
            is_admin: head.is_administrative(),
            is_encrypted: matches!(head, AnyHead::V7(_)) && head.has_encrypted_payload(),
        }
    }
}

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

/// Payload for this node.
#[derive(Debug)]
pub(super) struct LocalPayload {
    pub(super) assembly: Reassembly,
    pub(super) progress: DeliveryProgress,
    pub(super) delivery: DeliveryId,
    /// Bytes read of an administrative record; `None` for other payloads.
    admin: Option<BytesMut>,
    extents: Vec<Extent>,
    /// Outstanding reads: offset and remaining bytes.
    reads: VecDeque<(u64, u64)>,
    /// A read is with the storage.
    reading: bool,
    repeat_at: Option<Instant>,
    /// Outcome of the verification of the signature.
    signature: Option<Box<Signature>>,
    /// Means to decrypt the payload, which is ciphertext in the storage; `None` if it is plaintext.
    decryptor: Option<Box<Decryptor>>,
}

impl LocalPayload {
    /// True while parts are missing.
    pub(super) fn is_in_parts(&self) -> bool {
        self.progress == DeliveryProgress::InParts
    }

    /// True while the signature is being verified, or waits for that.
    pub(super) fn is_checked(&self) -> bool {
        self.progress == DeliveryProgress::Checking
    }

    /// Contiguous ranges of the complete payload.
    pub(super) fn extents(&self) -> &[Extent] {
        &self.extents
    }

    /// Oldest record of the payload.
    pub(super) fn first_record(&self) -> RecordId {
        self.assembly.records().next().expect("a payload has parts")
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
    fn repeat_after(
        &mut self,
        now: Instant,
        interval: Duration,
        key: &LocalKey,
        deadlines: &mut BundleDeadlines,
    ) {
        let kind = || DeadlineKind::RepeatDelivery(Box::new(key.clone()));
        if let Some(old) = self.repeat_at.take() {
            deadlines.not_at(old, kind());
        }
        if self.progress == DeliveryProgress::Told && !interval.is_zero() {
            let at = now + interval;
            self.repeat_at = Some(at);
            deadlines.at(at, kind());
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
/// parts and of the ranges that they cover, and its keys in three indices. It counts with the first part.
pub(super) const ASSEMBLY_BYTES: u32 = 512;

/// Usual length of the body of a tombstone, bytes.
const TOMBSTONE_BODY_BYTES: usize = 96;

/// Payloads for this node, from their first part to the durable tombstone.
#[derive(Debug)]
pub(super) struct Deliveries {
    registrations: BTreeSet<Eid>,
    local: BTreeMap<LocalKey, LocalPayload>,
    by_id: BTreeMap<DeliveryId, LocalKey>,
    /// Deliveries by endpoint.
    waiting: BTreeMap<Eid, BTreeSet<DeliveryId>>,
    tombstones: BTreeMap<TakenPayload, Tombstone>,
    /// Payloads whose tombstones these records are.
    tombstone_names: OrderedMap<RecordId, TakenPayload>,
    /// Tombstones or removals that are not yet durable; the delivery ends once they are.
    pending_tombstones: BTreeMap<RecordId, (LocalKey, DeliveryId)>,
    /// For the names of tombstones.
    pub(super) digests: Digests,
}

impl Deliveries {
    /// Creates the state without registrations.
    pub(super) fn new(digests: Digests) -> Self {
        Deliveries {
            registrations: BTreeSet::new(),
            local: BTreeMap::new(),
            by_id: BTreeMap::new(),
            waiting: BTreeMap::new(),
            tombstones: BTreeMap::new(),
            tombstone_names: OrderedMap::new(),
            pending_tombstones: BTreeMap::new(),
            digests,
        }
    }

    /// Key of a delivery; `None` if there is no such delivery.
    pub(super) fn key_of(&self, delivery: DeliveryId) -> Option<LocalKey> {
        self.by_id.get(&delivery).cloned()
    }

    /// Payload with this key, if a part of it is here.
    pub(super) fn local(&self, key: &LocalKey) -> Option<&LocalPayload> {
        self.local.get(key)
    }

    /// Sets the parts of a complete payload that are read.
    pub(super) fn set_extents(&mut self, key: &LocalKey, extents: Vec<Extent>) {
        self.local.get_mut(key).expect("a part of it is here").extents = extents;
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
        self.is_local(head.destination())
            && !self.deliveries.local.contains_key(&LocalKey::of(head, AduKey::of(head, RecordId(0))))
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
        self.deliveries.local.get(&LocalKey::of(&held.head, held.adu()))
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
        let local = self.deliveries.local.get(&LocalKey::of(head, AduKey::of(head, RecordId(0))));
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
        let entry = self.deliveries.local.entry(key.clone());
        let begins = matches!(entry, Entry::Vacant(_));
        if begins != held.begins_assembly {
            self.holdings.recount(&record, |held| held.begins_assembly = begins);
        }
        let local = entry.or_insert_with(|| LocalPayload {
            assembly: Reassembly::new(key.payload.total),
            progress: DeliveryProgress::InParts,
            delivery: DeliveryId(record.0),
            admin: key.payload.is_admin.then(BytesMut::new),
            extents: Vec::new(),
            reads: VecDeque::new(),
            reading: false,
            repeat_at: None,
            signature: None,
            decryptor: None,
        });
        if local.is_checked() {
            // The copy that is being verified may be false, and this one genuine.
            local.assembly.add(record, start, length, at);
            self.check_copy_beside(&key, Extent { start, end: start + length, record, at });
        } else if local.progress == DeliveryProgress::InParts {
            local.assembly.add(record, start, length, at);
            self.assembled(now, &key);
        } else {
            // The complete payload had already been received.
            self.holdings.get_mut(&record).expect("it was just found").state = BundleState::Sealing;
            self.drop_bundle(record);
        }
    }

    /// Checks whether the payload is complete after a part was added.
    pub(super) fn assembled(&mut self, now: Instant, key: &LocalKey) {
        let local = self.deliveries.local.get_mut(key).expect("the caller has it");
        if !local.assembly.is_whole() {
            return;
        }
        let extents = local.assembly.extents();
        local.extents = extents;
        if self.must_check(key) {
            let local = self.deliveries.local.get_mut(key).expect("the caller has it");
            local.progress = DeliveryProgress::Checking;
            self.check_signature(CheckTarget::Local(key.clone()));
        } else {
            self.complete(now, key, None, None);
        }
    }

    /// Continues with a complete payload whose signature was verified, or need not be.
    pub(super) fn complete(
        &mut self,
        now: Instant,
        key: &LocalKey,
        signature: Option<Signature>,
        decryptor: Option<Box<Decryptor>>,
    ) {
        self.drop_spare_parts(key);
        let local = self.deliveries.local.get_mut(key).expect("the parts that it needs are here");
        local.signature = signature.map(Box::new);
        local.decryptor = decryptor;
        local.progress = DeliveryProgress::Whole;
        // The oldest record gives the delivery its ID, so that the ID is the same after a restart.
        let oldest = local.assembly.records().next().expect("a whole has parts");
        local.delivery = DeliveryId(oldest.0);
        let (delivery, total) = (local.delivery, local.plaintext_bytes());
        if local.admin.is_some() && total == 0 {
            // There is nothing to read, and an empty payload is not a valid record.
            self.administer(now, &Bytes::new(), key);
            self.forget_local(key);
            return;
        }
        if local.admin.is_some() {
            local.reads.push_back((0, total));
            self.read_next(key.clone());
            return;
        }
        self.deliveries.by_id.insert(delivery, key.clone());
        self.deliveries.waiting.entry(key.payload.endpoint.clone()).or_default().insert(delivery);
        self.tell_payload(now, key);
    }

    /// Removes the parts of a complete payload that other parts cover: one that expires earlier would delete
    /// the payload. Parts in custody or of an application's send are kept until they are answered.
    fn drop_spare_parts(&mut self, key: &LocalKey) {
        let LocalPayload { assembly, extents, .. } = &self.deliveries.local[key];
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
        let key = self.deliveries.by_id[&delivery].clone();
        self.tell_payload(now, &key);
    }

    /// Indicates a complete payload to the application that is registered for it.
    fn tell_payload(&mut self, now: Instant, key: &LocalKey) {
        let local = self.deliveries.local.get_mut(key).expect("deliveries are local");
        if local.progress == DeliveryProgress::Taken
            || !self.deliveries.registrations.contains(&key.payload.endpoint)
        {
            return;
        }
        local.progress = DeliveryProgress::Told;
        self.indications.push(AppIndication::Delivered {
            delivery: local.delivery,
            name: key.adu.source.bundle_name(key.adu.timestamp),
            destination: key.payload.endpoint.to_string(),
            length: local.plaintext_bytes(),
            signature: local.signature.clone(),
        });
        local.repeat_after(now, self.config.delivery_repeat, key, &mut self.time.deadlines);
    }

    /// Indicates a delivery again after the repeat interval.
    pub(super) fn repeat(&mut self, now: Instant, key: &LocalKey) {
        if let Some(local) = self.deliveries.local.get_mut(key) {
            local.repeat_at = None;
            let delivery = local.delivery;
            self.tell(now, delivery);
        }
    }

    /// Handles a read of a delivery by an application.
    pub(super) fn read_delivery(&mut self, now: Instant, delivery: DeliveryId, offset: u64, length: u32) {
        let most = self.config.limits.reads_max;
        let Some(key) = self.deliveries.key_of(delivery) else {
            self.counters.ignored += 1;
            return;
        };
        let local = self.deliveries.local.get_mut(&key).expect("deliveries are local");
        let left = local.plaintext_bytes().saturating_sub(offset).min(u64::from(length));
        let is_read = left > 0 && local.reads.len() < most;
        if is_read {
            local.reads.push_back((offset, left));
        } else {
            self.counters.ignored += 1;
        }
        local.repeat_after(now, self.config.delivery_repeat, &key, &mut self.time.deadlines);
        if is_read {
            self.read_next(key);
        }
    }

    /// Requests the next range of a local payload from the storage.
    pub(super) fn read_next(&mut self, key: LocalKey) {
        let Some(local) = self.deliveries.local.get_mut(&key) else { return };
        let Some(&(offset, left)) = local.reads.front().filter(|_| !local.reading) else { return };
        let index = local.extents.partition_point(|extent| extent.end <= offset);
        let extent = local.extents[index];
        let length = left.min(extent.end - offset).min(self.config.piece_bytes_max as u64) as u32;
        let at = extent.at + (offset - extent.start);
        local.reading = true;
        let purpose = match local.admin {
            Some(_) => ReadPurpose::Admin(Box::new(key)),
            None => ReadPurpose::Delivery(local.delivery),
        };
        self.store.read(extent.record, at, length, purpose);
    }

    /// Handles data read of a local payload.
    pub(super) fn local_data(&mut self, now: Instant, key: LocalKey, record: RecordId, data: Bytes) {
        let Some(local) = self.deliveries.local.get_mut(&key) else { return };
        local.reading = false;
        let Some(front) = local.reads.front_mut() else { return };
        let offset = front.0;
        if data.is_empty() {
            // The storage has less than it reported as durable.
            return self.lose_part(now, &key, record);
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
                    self.administer(now, &payload, &key);
                    self.forget_local(&key);
                    return;
                }
            }
        }
        if !local.reads.is_empty() {
            self.read_next(key);
        }
    }

    /// Handles a failed read of a local payload.
    pub(super) fn local_failed(
        &mut self,
        now: Instant,
        key: LocalKey,
        record: RecordId,
        failure: StorageFailure,
    ) {
        let Some(local) = self.deliveries.local.get_mut(&key) else { return };
        local.reading = false;
        match failure {
            StorageFailure::Device => {
                self.time.deadlines.at(now + self.config.backoff_min, DeadlineKind::RetryRead(Box::new(key)))
            }
            StorageFailure::Missing | StorageFailure::Damaged => self.lose_part(now, &key, record),
        }
    }

    /// Handles the loss of a durable part in the storage.
    fn lose_part(&mut self, now: Instant, key: &LocalKey, record: RecordId) {
        match self.deliveries.local.get(key).is_some_and(|local| local.assembly.has_part(record)) {
            true => self.storage_lost(now, record),
            // The part was removed while it was read, and the payload is complete without it.
            false => self.read_next(key.clone()),
        }
    }

    /// Processes an administrative record (RFC 9171 6.1, RFC 9713 2).
    fn administer(&mut self, now: Instant, payload: &Bytes, key: &LocalKey) {
        match decode_record(key.adu.version, payload) {
            Ok(AnyAdminRecord::V7(AdminRecord::StatusReport(report))) => self.say_report(&report, key),
            Ok(AnyAdminRecord::V6(v6::AdminRecord::StatusReport(report))) => self.say_report_v6(&report, key),
            Ok(AnyAdminRecord::V6(v6::AdminRecord::CustodySignal(signal))) => {
                self.heed_signal(now, &signal, key)
            }
            Ok(AnyAdminRecord::V7(AdminRecord::Unknown { record_type: RECORD_TYPE, content })) => {
                self.hear_announcements(now, &content, key)
            }
            Ok(AnyAdminRecord::V7(_) | AnyAdminRecord::V6(_)) | Err(_) => self.counters.admin_unknown += 1,
        }
    }

    /// Handles the acceptance of a delivery by the application: the tombstone is stored before the bundle is
    /// removed.
    pub(super) fn taken(&mut self, now: Instant, delivery: DeliveryId) {
        let Some(key) = self.deliveries.key_of(delivery) else {
            self.counters.ignored += 1;
            return;
        };
        let local = self.deliveries.local.get_mut(&key).expect("deliveries are local");
        if local.progress == DeliveryProgress::Taken {
            return;
        }
        local.progress = DeliveryProgress::Taken;
        local.reads.clear();
        local.repeat_after(now, self.config.delivery_repeat, &key, &mut self.time.deadlines);
        self.write_tombstone(now, key);
    }

    /// Stores the tombstone of an accepted delivery. A bundle without a source gets no tombstone: its removal
    /// itself must be durable.
    pub(super) fn write_tombstone(&mut self, now: Instant, key: LocalKey) {
        let Some(local) =
            self.deliveries.local.get(&key).filter(|local| local.progress == DeliveryProgress::Taken)
        else {
            return;
        };
        if key.adu.is_anonymous() {
            let record = local.assembly.records().next().expect("a whole has parts");
            self.deliveries.pending_tombstones.insert(record, (key.clone(), local.delivery));
            self.store.remove(record);
            return;
        }
        let ends = local.assembly.records().map(|record| self.holdings[&record].end);
        let end = ends.max_by_key(|end| (end.dtn_ms, end.by_age)).expect("a whole has parts");
        let delivery = local.delivery;
        let record = self.add_tombstone_for(now, &key, end);
        self.deliveries.pending_tombstones.insert(record, (key, delivery));
    }

    /// Stores a tombstone for a bundle with this payload and expiry.
    pub(super) fn add_tombstone_for(&mut self, now: Instant, key: &LocalKey, end: ExpiryTime) -> RecordId {
        let remaining_ms = millis(self.time.clock.left(end, now));
        let LocalKey { adu, payload } = key;
        let taken = self.deliveries.digests.taken(&adu.source, adu.timestamp, adu.version, Some(payload));
        let body = TombstoneBody {
            source: adu.source.clone(),
            timestamp: adu.timestamp,
            version: adu.version,
            expires_dtn_ms: end.dtn_ms.unwrap_or(0),
            remaining_ms,
            payload: Some(payload.clone()),
        };
        let record = self.next_record();
        let mut out = BytesMut::with_capacity(HEADER_BYTES as usize + TOMBSTONE_BODY_BYTES);
        self.header(now, RecordKind::Tombstone(adu.version), 0).encode(&mut out);
        body.encode(&mut out);
        let appended = out.len() as u64;
        let end = ExpiryTime { dtn_ms: end.dtn_ms, by_age: now + Duration::from_millis(remaining_ms) };
        self.store.append(record, out.freeze());
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
        let Some((key, delivery)) = self.deliveries.pending_tombstones.remove(&record) else { return };
        self.counters.delivered += 1;
        let records = self.deliveries.local.get(&key).into_iter().flat_map(|local| local.assembly.records());
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
        let Some((key, _)) = self.deliveries.pending_tombstones.remove(&record) else { return };
        self.forget(now, record);
        self.time.deadlines.at(now + self.config.backoff_min, DeadlineKind::RetryTombstone(Box::new(key)));
    }

    /// Removes a local payload with all its parts.
    fn forget_local(&mut self, key: &LocalKey) {
        let Some(local) = self.deliveries.local.get(key) else { return };
        let records: Vec<RecordId> = local.assembly.records().collect();
        for record in records {
            self.drop_bundle(record);
        }
    }

    /// Moves the memory of a payload to another part after the part with which it counted was removed.
    pub(super) fn pass_assembly_on(&mut self, key: &LocalKey) {
        let heir = self.deliveries.local.get(key).and_then(|local| local.assembly.records().next());
        let Some(heir) = heir.filter(|heir| self.holdings.contains(heir)) else { return };
        self.holdings.recount(&heir, |held| held.begins_assembly = true);
    }

    /// Removes a part of a local payload; a complete payload that needs the part is incomplete again.
    pub(super) fn part_gone(&mut self, record: RecordId, key: &LocalKey) {
        let Some(local) = self.deliveries.local.get_mut(key) else { return };
        // Of an empty payload that is being verified, the header of the oldest part is read.
        let is_head = local.is_checked() && local.extents.is_empty() && local.first_record() == record;
        local.assembly.remove(record);
        let progress = local.progress;
        let is_read = is_head || local.extents.iter().any(|extent| extent.record == record);
        let is_last = local.assembly.len() == 0;
        if progress != DeliveryProgress::InParts && is_read || is_last {
            // Without this part the payload is incomplete.
            let delivery = local.delivery;
            if let Some(at) = local.repeat_at.take() {
                self.time.deadlines.not_at(at, DeadlineKind::RepeatDelivery(Box::new(key.clone())));
            }
            local.progress = DeliveryProgress::InParts;
            local.reads.clear();
            local.extents.clear();
            (local.signature, local.decryptor) = (None, None);
            self.security.stop_check(&CheckTarget::Local(key.clone()));
            self.deliveries.by_id.remove(&delivery);
            remove_from(&mut self.deliveries.waiting, &key.payload.endpoint, &delivery);
            if progress == DeliveryProgress::Told {
                self.indications.push(AppIndication::Gone { delivery, taken: false });
            }
            if progress == DeliveryProgress::Checking {
                self.security.checks.begin_again(key);
            }
        }
        if is_last {
            self.deliveries.local.remove(key);
        }
    }
}
