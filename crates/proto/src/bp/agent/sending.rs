//! Bundles made at this node: sends of applications, and reports.
//!
//! A send is accepted once its seal is durable. From then on the agent is responsible for the bundle, and
//! owes the application one terminal indication. After a restart the bundle continues without indications to
//! the application.

use crate::bp::bpsec::{Encryption, Signing};
use crate::bp::{BundleFlags, CrcType, CreationTimestamp, Eid, PrimaryBlock, ReasonCode, v6};
use crate::kit::OrderedMap;
use crate::service::{
    AppIndication, BundleEvent, BundleName, BundleVersion, RecordId, SendFailure, SendId, SendOptions,
};
use crate::time::Instant;
use bytes::{Bytes, BytesMut};

use super::Agent;
use super::accounts::NeighbourNumber;
use super::clock::millis;
use super::head::{AnyHead, BundleEnd};
use super::held::{BundleState, HeldBundle};
use super::record::{HEADER_BYTES, NOTE_BYTES, Note, RecordHeader, RecordKind};

/// Appends shorter than this are merged, bytes.
const MERGE_BYTES: usize = 4096;

/// Bundle of this node whose payload is incomplete.
#[derive(Debug)]
pub(super) struct Composing {
    /// Record header and bundle header, until the first bytes of the payload arrive.
    start: BytesMut,
    closing: BundleEnd,
    payload_left: u64,
    /// Signature, which is complete after the payload.
    signing: Option<Box<Signing>>,
    /// Encryption, which is complete after the signature.
    encryption: Option<Box<Encryption>>,
}

impl Composing {
    /// Data of the security blocks of a bundle whose payload is complete.
    fn finish_security(self, held: &AnyHead) -> Bytes {
        let mut secured = match (self.signing, held) {
            (Some(signing), _) => signing.finish(),
            (None, AnyHead::V7(head)) => head.clone(),
            (None, AnyHead::V6(_)) => unreachable!("bundles of version 6 are not secured"),
        };
        if let Some(encryption) = self.encryption {
            secured = encryption.finish(&secured);
        }
        AnyHead::V7(secured).security_data()
    }
}

/// Send with an outstanding terminal indication.
#[derive(Debug)]
pub(super) enum PendingSend {
    /// The storage has not been read yet.
    Waiting { destination: String, length: u64, options: Box<SendOptions> },
    /// The bundle is in this record.
    Held(RecordId),
}

/// Bundles that are being made at this node.
#[derive(Debug, Default)]
pub(super) struct Sends {
    pending: OrderedMap<SendId, PendingSend>,
    composing: OrderedMap<RecordId, Composing>,
    /// Payload bytes of sends that are not yet durable.
    unstored: u64,
    /// Room last indicated to the application.
    room_told: u64,
}

impl Sends {
    /// Notes that payload of a send has become durable, bytes.
    pub(super) fn stored(&mut self, bytes: u64) {
        self.unstored -= bytes;
    }

    /// Forgets a bundle that is removed.
    pub(super) fn forget(&mut self, record: RecordId, held: &HeldBundle) {
        self.unstored -= held.handed - held.durable;
        self.composing.remove(&record);
    }

    /// Room to be indicated to the application, if it has changed while there are sends.
    fn tell_room(&mut self, room: u64) -> Option<u64> {
        if self.pending.is_empty() || room == self.room_told {
            return None;
        }
        self.room_told = room;
        Some(room)
    }
}

/// Flags that an application requests in either version. A bundle without a source must not request reports (RFC 9171
/// 4.2.3, RFC 5050 4.2).
fn flags_for(source: &Eid, options: &SendOptions) -> BundleFlags {
    let reports = !source.is_null();
    let wishes = [
        (options.must_not_fragment || source.is_null(), BundleFlags::MUST_NOT_FRAGMENT),
        (options.report_delivery && reports, BundleFlags::REPORT_DELIVERY),
        (options.report_reception && reports, BundleFlags::REPORT_RECEPTION),
        (options.report_forwarding && reports, BundleFlags::REPORT_FORWARDING),
        (options.report_deletion && reports, BundleFlags::REPORT_DELETION),
    ];
    let wished = wishes.into_iter().filter(|(wish, _)| *wish);
    wished.fold(BundleFlags::NONE, |flags, (_, flag)| flags | flag)
}

impl Agent {
    /// Begins a bundle of an application.
    pub(super) fn send(
        &mut self,
        now: Instant,
        send: SendId,
        destination: String,
        length: u64,
        options: SendOptions,
    ) {
        assert!(!self.sends.pending.contains_key(&send), "a send has a number of its own");
        let open = if self.is_ready() { self.sends.composing.len() } else { self.sends.pending.len() };
        if open >= self.config.limits.sends_max {
            self.counters.sends_failed += 1;
            self.indications.push(AppIndication::Failed { send, reason: SendFailure::Limit });
        } else if self.is_ready() {
            self.open_send(now, send, &destination, length, &options);
        } else {
            self.sends
                .pending
                .insert(send, PendingSend::Waiting { destination, length, options: Box::new(options) });
        }
    }

    /// Begins the sends that waited until the storage had been read.
    pub(super) fn open_waiting_sends(&mut self, now: Instant) {
        let mut waiting = core::mem::take(&mut self.sends.pending);
        while let Some((send, sending)) = waiting.pop_first() {
            if let PendingSend::Waiting { destination, length, options } = sending {
                self.open_send(now, send, &destination, length, &options);
            }
        }
    }

    fn open_send(
        &mut self,
        now: Instant,
        send: SendId,
        destination: &str,
        length: u64,
        options: &SendOptions,
    ) {
        let opened = self.compose(now, destination, length, options).and_then(|head| {
            if length > self.config.limits.bundle_bytes_max {
                return Err(SendFailure::Limit);
            }
            self.begin_own(now, head, NeighbourNumber::UNKNOWN)
        });
        match opened {
            Ok(record) => {
                self.sends.pending.insert(send, PendingSend::Held(record));
                self.holdings.get_mut(&record).expect("it was just made").send = Some(send);
                if length == 0 {
                    self.append_own(record, Bytes::new());
                }
            }
            Err(reason) => {
                self.counters.sends_failed += 1;
                self.indications.push(AppIndication::Failed { send, reason });
            }
        }
    }

    /// Builds the header that an application requests (RFC 9171 5.2).
    fn compose(
        &mut self,
        now: Instant,
        destination: &str,
        length: u64,
        options: &SendOptions,
    ) -> Result<AnyHead, SendFailure> {
        let version = self.version_for(destination, options);
        let parse = |text: &str| parse_endpoint(version, text);
        let destination = parse(destination)?;
        let source = options.source.as_deref().map_or(Ok(self.node.clone()), parse)?;
        // The source must be this node or the null endpoint (RFC 9171 5.2).
        let is_ours = source.is_singleton() && source.same_node(&self.node);
        if !is_ours && !source.is_null() {
            return Err(SendFailure::BadEndpoint);
        }
        let report_to = options.report_to.as_deref().map_or(Ok(self.node.clone()), parse)?;
        if version == BundleVersion::V6 {
            return self.compose_v6(now, destination, source, report_to, length, options);
        }
        if options.custody {
            return Err(SendFailure::NoCustody);
        }
        let mut flags = flags_for(&source, options);
        if flags.intersects(BundleFlags::REPORTS) {
            flags |= BundleFlags::STATUS_TIME;
        }
        let mut primary = PrimaryBlock::new(
            destination,
            source,
            self.timestamp_for(now, options),
            millis(options.lifetime),
        );
        primary.crc = self.primary_crc();
        primary.flags = flags;
        primary.report_to = report_to;
        let mut head = crate::bp::Head::new(primary, length);
        head.payload.crc = self.config.block_crc;
        self.furnish(&mut head, options.priority, options.hop_limit);
        Ok(AnyHead::V7(head))
    }

    /// Version of a bundle: the one that the application requests, otherwise the one required for custody,
    /// otherwise the one configured for the destination.
    fn version_for(&self, destination: &str, options: &SendOptions) -> BundleVersion {
        let version6 = &self.config.version6;
        let matches = |pattern: &String| super::matches(pattern, destination);
        match options.version {
            Some(version) => version,
            None if options.custody || version6.destinations.iter().any(matches) => BundleVersion::V6,
            None => version6.default_version,
        }
    }

    /// Builds the header that an application requests, in version 6 (RFC 5050 5.2).
    fn compose_v6(
        &mut self,
        now: Instant,
        destination: Eid,
        source: Eid,
        report_to: Eid,
        length: u64,
        options: &SendOptions,
    ) -> Result<AnyHead, SendFailure> {
        let singleton = destination.is_singleton();
        if options.custody && (!singleton || source.is_null()) {
            return Err(SendFailure::NoCustody);
        }
        let mut flags = flags_for(&source, options).with_priority(options.priority);
        let wishes = [
            (singleton, BundleFlags::SINGLETON),
            (options.custody, BundleFlags::CUSTODY),
            (options.report_custody && !source.is_null(), BundleFlags::REPORT_CUSTODY),
        ];
        wishes.into_iter().filter(|(wish, _)| *wish).for_each(|(_, flag)| flags |= flag);
        let mut head = self.head_v6(now, [destination, source, report_to], flags, options.lifetime, length);
        if let Some(created) = options.created {
            (head.primary.created_s, head.primary.sequence) = (created.time.0 / 1000, created.sequence);
        }
        if options.custody {
            head.set_custodian(self.node.clone());
        }
        Ok(AnyHead::V6(Box::new(head)))
    }

    /// Builds a header of version 6 with these destination, source and report-to endpoints.
    pub(super) fn head_v6(
        &mut self,
        now: Instant,
        [destination, source, report_to]: [Eid; 3],
        flags: BundleFlags,
        lifetime: core::time::Duration,
        length: u64,
    ) -> v6::Head {
        let timestamp = self.timestamp(now);
        let compressed = self.config.version6.compressed_headers;
        let mut primary = v6::PrimaryBlock::new(destination, source, report_to, compressed);
        primary.flags = flags;
        primary.created_s = timestamp.time.0 / 1000;
        primary.sequence = timestamp.sequence;
        primary.lifetime_s = millis(lifetime).div_ceil(1000);
        let mut head = v6::Head::new(primary, length);
        if !timestamp.time.is_known() {
            // A node without a clock must send the age.
            head.set(&v6::Content::Age(0));
        }
        head
    }

    /// CRC type of primary blocks, which must have a CRC (RFC 9171 4.3.1).
    pub(super) fn primary_crc(&self) -> CrcType {
        match self.config.primary_crc {
            CrcType::None => CrcType::Crc16,
            crc => crc,
        }
    }

    /// Creation timestamp that an application requests, or a new one.
    fn timestamp_for(&mut self, now: Instant, options: &SendOptions) -> CreationTimestamp {
        options.created.unwrap_or_else(|| self.timestamp(now))
    }

    /// Creation timestamp that no other bundle of this node has, whatever its clock does and however often it
    /// restarts (RFC 9171 4.2.7): the sequence number never decreases, and contains the number of the start.
    pub(super) fn timestamp(&mut self, now: Instant) -> CreationTimestamp {
        self.startup.next_timestamp(self.time.clock.stamp_ms(now))
    }

    /// Begins the record of a bundle made at this node; an administrative record is charged to this
    /// neighbour. Fails if there is no space, or no key for a bundle that must be signed.
    pub(super) fn begin_own(
        &mut self,
        now: Instant,
        mut head: AnyHead,
        neighbour: NeighbourNumber,
    ) -> Result<RecordId, SendFailure> {
        let signing = self.begin_signature(now, &mut head)?;
        let encryption = self.begin_encryption(now, &mut head)?;
        let bytes = head.to_bytes();
        let is_secured = signing.is_some() || encryption.is_some();
        let security_bytes = if is_secured { head.security_data().len() as u64 } else { 0 };
        let whole = HEADER_BYTES + bytes.len() as u64 + head.tail_bytes() + security_bytes + NOTE_BYTES;
        let share = whole.saturating_add(head.payload_bytes());
        if !self.make_space(now, share, &Agent::own_claim(&head, bytes.len() as u64, neighbour)) {
            return Err(SendFailure::Full);
        }
        let record = self.next_record();
        let kind = if is_secured { RecordKind::OwnSecured } else { RecordKind::Own };
        let header = RecordHeader { neighbour, ..self.header(now, kind, 0) };
        // Place for a short payload and all that follows it, which are appended together.
        let merged = usize::try_from(head.payload_bytes()).unwrap_or(usize::MAX).min(MERGE_BYTES);
        let rest = (head.tail_bytes() + security_bytes + NOTE_BYTES) as usize;
        let mut start = BytesMut::with_capacity(HEADER_BYTES as usize + bytes.len() + merged + rest);
        header.encode(&mut start);
        start.extend_from_slice(&bytes);
        let (closing, payload_left) = (BundleEnd::of(&head), head.payload_bytes());
        let composing = Composing { start, closing, payload_left, signing, encryption };
        let mut held = self.hold(now, record, header, head, bytes.len() as u64, true);
        held.share = share;
        held.tail_bytes += security_bytes;
        self.insert_bundle(record, held);
        self.sends.composing.insert(record, composing);
        Ok(record)
    }

    /// Handles the next bytes of an application's send.
    pub(super) fn send_piece(&mut self, send: SendId, data: Bytes) {
        let length = data.len() as u64;
        assert!(length <= self.sends.room_told, "a piece needs room for all of it");
        self.sends.room_told -= length;
        match self.sends.pending.get(&send) {
            Some(PendingSend::Held(record)) => {
                let record = *record;
                self.sends.unstored += length;
                self.holdings.get_mut(&record).expect("a send is held until it ends").handed += length;
                self.append_own(record, data);
            }
            // The send failed while the piece was on its way.
            _ => self.counters.ignored += 1,
        }
    }

    /// Appends payload to a bundle of this node; after the last byte, also the tail, the data of security blocks and the seal.
    pub(super) fn append_own(&mut self, record: RecordId, mut data: Bytes) {
        let composing = self.sends.composing.get_mut(&record).expect("only what is composed grows");
        let length = data.len() as u64;
        assert!(length <= composing.payload_left, "a send has no more bytes than announced");
        composing.payload_left -= length;
        if let Some(signing) = &mut composing.signing {
            signing.update(&data);
        }
        if let Some(encryption) = &mut composing.encryption {
            let mut encrypted = BytesMut::from(data);
            encryption.update(&mut encrypted);
            data = encrypted.freeze();
        }
        composing.closing.update(&data);
        let mut out = core::mem::take(&mut composing.start);
        let is_whole = composing.payload_left == 0;
        if data.len() < MERGE_BYTES {
            out.extend_from_slice(&data);
        } else {
            self.append_some(record, out.split());
            self.append(record, data);
        }
        if is_whole {
            let composing = self.sends.composing.remove(&record).expect("it was just found");
            composing.closing.encode_tail(&mut out);
            let held = self.holdings.get_mut(&record).expect("what is composed is held");
            held.state = BundleState::Sealing;
            held.payload_crc = composing.closing.crc();
            let is_secured = composing.signing.is_some() || composing.encryption.is_some();
            self.counters.signed += u64::from(composing.signing.is_some());
            self.counters.encrypted += u64::from(composing.encryption.is_some());
            if is_secured {
                let security_data = composing.finish_security(&held.head);
                // Lengths and places are those of the draft, which the record begins with.
                let is_set = held.head.set_security_data(&security_data);
                assert!(is_set, "a draft has the lengths of what it stands for");
                out.extend_from_slice(&security_data);
            }
            let position = held.appended + out.len() as u64;
            let custody = held.head.wants_custody();
            held.custody = custody.then(Box::default);
            out.extend_from_slice(&Note::Sealed { custody }.encode(held.nonce, position));
        }
        if is_whole && self.holdings[&record].appended > 0 {
            self.append_urgent(record, out.freeze());
        } else {
            self.append_some(record, out);
        }
    }

    fn append_some(&mut self, record: RecordId, data: BytesMut) {
        if !data.is_empty() {
            self.append(record, data.freeze());
        }
    }

    /// Indicates that a bundle made at this node is durable.
    pub(super) fn own_sealed(&mut self, record: RecordId) {
        let held = &self.holdings[&record];
        if let Some(send) = held.send {
            self.counters.sent_here += 1;
            let created = held.head.timestamp();
            self.indications.push(AppIndication::Accepted { send, created });
            self.happened(record, BundleEvent::Accepted);
        }
    }

    /// Cancels a send (RFC 9171 5.12).
    pub(super) fn cancel(&mut self, now: Instant, send: SendId) {
        match self.sends.pending.get(&send) {
            None => {}
            Some(PendingSend::Waiting { .. }) => self.end_send(send, Err(SendFailure::Cancelled)),
            Some(PendingSend::Held(record)) => {
                let record = *record;
                let held = &self.holdings[&record];
                if held.state == BundleState::Local
                    && self.local_of(held).is_some_and(|local| local.is_taken())
                {
                    // The bundle is already delivered.
                    return;
                }
                self.counters.deleted_cancelled += 1;
                self.delete(now, record, ReasonCode::TransmissionCanceled, SendFailure::Cancelled);
            }
        }
    }

    /// Deletes a bundle and its fragments on request of the operator, whatever its source; not during the start, when reports cannot
    /// be made yet.
    pub(super) fn delete_named(&mut self, now: Instant, name: &BundleName) {
        let found = if self.is_ready() { self.records_named(name) } else { Vec::new() };
        if found.is_empty() {
            self.counters.ignored += 1;
        }
        for record in found {
            let Some(held) = self.holdings.get(&record) else { continue };
            let taken = self.local_of(held).is_some_and(|local| local.is_taken());
            if held.state == BundleState::Local && taken {
                continue;
            }
            self.counters.deleted_cancelled += 1;
            self.delete(now, record, ReasonCode::TransmissionCanceled, SendFailure::Cancelled);
        }
    }

    /// Indicates the end of a send, if that is outstanding.
    pub(super) fn end_send(&mut self, send: SendId, end: Result<(), SendFailure>) {
        if self.sends.pending.remove(&send).is_none() {
            return;
        }
        self.indications.push(match end {
            Ok(()) => AppIndication::Sent { send },
            Err(reason) => AppIndication::Failed { send, reason },
        });
    }

    /// Number of payload bytes that sends may pass now, if it has changed: the free space of the buffer.
    pub(super) fn poll_send_room(&mut self) -> Option<u64> {
        let room = match self.is_ready() {
            true => self.config.limits.buffer_bytes_max.saturating_sub(self.sends.unstored),
            false => 0,
        };
        self.sends.tell_room(room)
    }
}

/// Parses an endpoint ID given by an application; version 6 accepts any URI.
fn parse_endpoint(version: BundleVersion, text: &str) -> Result<Eid, SendFailure> {
    let parsed = match version {
        BundleVersion::V7 => text.parse(),
        BundleVersion::V6 => Eid::from_uri(text),
    };
    parsed.map_err(|_| SendFailure::BadEndpoint)
}
