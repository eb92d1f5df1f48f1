//! Reception of bundles from a neighbour.
//!
//! ```text
//!   Begin --> head ----------------> body --------------------> checked --> Accept(all)
//!         bytes are buffered     bytes go to the storage,   seal goes to the storage
//!         until the header is    Accept up to the durable
//!         complete               length
//!           |  refused: Refuse      |  Lost: the received part becomes a fragment
//! ```
//!
//! The agent decides whether to accept a bundle when its header is complete, before it stores anything. It acknowledges the last
//! byte of the payload only once the seal is durable. So a sender whose link breaks always has a byte left to send, and the end
//! of a bundle is never acknowledged before its CRC is checked.

use crate::bp::v6::CustodyReason;
use crate::bp::{DecodePolicy, ReasonCode};
use crate::codec::DecodeError;
use crate::kit::OrderedMap;
use crate::service::{
    Breach, BundleEvent, BundlesRequest, LinkId, RecordId, RefuseReason, ReportedStatus, SendFailure,
    TransferId,
};
use crate::time::Instant;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

use super::Agent;
use super::accounts::NeighbourNumber;
use super::adu::AduKey;
use super::checking::CheckTarget;
use super::head::{AnyHead, BundleEnd, decode_own_head};
use super::held::{BundleState, HeldBundle};
use super::record::{HEADER_BYTES, NOTE_BYTES, Note, RecordHeader, RecordKind};
use super::refusal::TransferRefusal;

/// Incoming transfer.
#[derive(Debug)]
pub(super) struct Incoming {
    /// Length of the bundle that the peer announced, bytes.
    announced: Option<u64>,
    /// Pieces that arrived before the storage had been read.
    early: VecDeque<(Bytes, bool)>,
    early_bytes: u64,
    /// Time of the latest bytes; `None` before the first ones.
    heard: Option<Instant>,
    state: ReceptionState,
}

#[derive(Debug)]
enum ReceptionState {
    /// The header is incomplete.
    Head(BytesMut),
    /// The header is complete.
    Body(Box<IncomingBody>),
}

#[derive(Debug)]
struct IncomingBody {
    record: RecordId,
    closing: BundleEnd,
    /// Expected length of the bundle, bytes.
    whole: u64,
    /// Remaining bytes of payload.
    payload_left: u64,
    tail: BytesMut,
    /// Acknowledged length of the transfer, bytes.
    accepted: u64,
}

/// Maximum number of parts of a payload that are compared with an arriving bundle, the latest first: there
/// may be very many.
pub(super) const PARTS_LOOKED_AT: usize = 256;

/// Bundles that are arriving.
#[derive(Debug)]
pub(super) struct Intake {
    transfers: OrderedMap<(LinkId, TransferId), Incoming>,
    /// Rules for bundles of peers.
    policy: DecodePolicy,
}

impl Intake {
    /// Creates an intake without transfers.
    pub(super) fn new(policy: DecodePolicy) -> Self {
        Intake { transfers: OrderedMap::new(), policy }
    }

    /// Rules for bundles of peers.
    pub(super) fn policy(&self) -> DecodePolicy {
        self.policy
    }

    /// Changes the limit on heads, also for those of which a part has arrived.
    pub(super) fn set_head_bytes_max(&mut self, bytes: u32) {
        self.policy.head_bytes_max = bytes;
    }

    pub(super) fn contains(&self, transfer: &(LinkId, TransferId)) -> bool {
        self.transfers.contains_key(transfer)
    }

    /// Forgets a transfer.
    pub(super) fn remove(&mut self, transfer: &(LinkId, TransferId)) {
        self.transfers.remove(transfer);
    }

    /// Time of the latest bytes of a transfer.
    pub(super) fn heard(&self, transfer: &(LinkId, TransferId)) -> Option<Instant> {
        self.transfers.get(transfer)?.heard
    }

    /// Transfers over a link, in order.
    pub(super) fn over(&self, link: LinkId) -> impl Iterator<Item = TransferId> + '_ {
        let of_link = (link, TransferId(0))..=(link, TransferId(u64::MAX));
        self.transfers.range(of_link).map(|((_, transfer), _)| *transfer)
    }
}

impl Agent {
    /// Handles the beginning of a transfer.
    pub(super) fn begin(&mut self, id: LinkId, transfer: TransferId, announced: Option<u64>) {
        let too_many = self.intake.transfers.len() >= self.config.limits.incoming_max;
        let too_long = announced.is_some_and(|length| length > self.config.limits.bundle_bytes_max);
        if too_many || too_long {
            let refusal =
                if too_long { TransferRefusal::too_long() } else { RefuseReason::NoResources.into() };
            return self.refuse(id, transfer, refusal);
        }
        let state = ReceptionState::Head(BytesMut::new());
        let incoming = Incoming { announced, early: VecDeque::new(), early_bytes: 0, heard: None, state };
        self.intake.transfers.insert((id, transfer), incoming);
    }

    /// Handles the next bytes of a transfer.
    pub(super) fn piece(&mut self, now: Instant, id: LinkId, transfer: TransferId, data: Bytes, last: bool) {
        let Some(incoming) = self.intake.transfers.get_mut(&(id, transfer)) else { return };
        incoming.heard = Some(now);
        if !self.startup.is_ready() {
            incoming.early_bytes += data.len() as u64;
            incoming.early.push_back((data, last));
            if incoming.early_bytes > self.config.limits.buffer_bytes_max {
                self.refuse(id, transfer, RefuseReason::NoResources);
            }
            return;
        }
        match &mut incoming.state {
            ReceptionState::Head(_) => self.head_piece(now, id, transfer, &data, last),
            ReceptionState::Body(_) => self.body_piece(now, id, transfer, data, last),
        }
    }

    /// Processes the pieces that arrived before the storage had been read.
    pub(super) fn take_early_pieces(&mut self, now: Instant) {
        let waiting: Vec<(LinkId, TransferId)> = self.intake.transfers.keys().copied().collect();
        for (id, transfer) in waiting {
            let early = self
                .intake
                .transfers
                .get_mut(&(id, transfer))
                .map(|incoming| core::mem::take(&mut incoming.early));
            for (data, last) in early.into_iter().flatten() {
                self.piece(now, id, transfer, data, last);
            }
        }
    }

    fn head_piece(&mut self, now: Instant, id: LinkId, transfer: TransferId, data: &Bytes, last: bool) {
        let incoming = self.intake.transfers.get_mut(&(id, transfer)).expect("the caller has it");
        let ReceptionState::Head(buffer) = &mut incoming.state else { unreachable!("the caller has looked") };
        let all = if buffer.is_empty() {
            data.clone()
        } else {
            buffer.extend_from_slice(data);
            buffer.split().freeze()
        };
        let policy = self.policy_of(id);
        match decode_own_head(&all, &policy) {
            Ok((head, own)) => {
                self.note_accepted(id, &own);
                self.admit(now, id, transfer, head, own.len(), &all, last);
            }
            Err(Breach { error: DecodeError::Incomplete, .. }) if !last => {
                let incoming = self.intake.transfers.get_mut(&(id, transfer)).expect("the caller has it");
                incoming.state = ReceptionState::Head(all.into());
            }
            Err(breach) => self.refuse_head(id, transfer, &all, breach),
        }
    }

    /// Accepts or refuses a bundle whose header is complete, and begins its record.
    #[expect(clippy::too_many_arguments, reason = "one step of reception, split off for its length")]
    fn admit(
        &mut self,
        now: Instant,
        id: LinkId,
        transfer: TransferId,
        mut head: AnyHead,
        length: usize,
        all: &Bytes,
        last: bool,
    ) {
        let payload = head.payload_bytes();
        let announced = self.intake.transfers[&(id, transfer)].announced;
        let known = (length as u64 + head.tail_bytes()).saturating_add(payload);
        let fits = |announced| if head.tail_is_known() { announced == known } else { announced > known };
        if !announced.is_none_or(fits) {
            return self.refuse(id, transfer, TransferRefusal::damaged(head.other_length()));
        }
        let whole = announced.unwrap_or(known);
        let age_ms = self.age_ms_over(id, &head).unwrap_or(0);
        if let Err(refusal) = self.judge(now, id, &head, (length as u64, whole), age_ms) {
            return self.refuse(id, transfer, refusal);
        }
        let neighbour = self.neighbour_over(id);
        self.report_unsupported(now, neighbour, &head);
        head.discard_unsupported();
        let closing = BundleEnd::of(&head);
        let record = self.next_record();
        let mut header = self.header(now, RecordKind::Received, age_ms);
        header.neighbour = neighbour;
        let mut held = self.hold(now, record, header, head, length as u64, false);
        held.intake = Some((id, transfer));
        held.begins_assembly = self.begins_assembly(&held.head);
        held.share = self.share_ahead(whole, length as u64);
        if self.time.is_from_future(now, &held, &self.config) {
            self.counters.received_from_future += 1;
        }
        self.insert_bundle(record, held);
        let mut start = BytesMut::with_capacity(HEADER_BYTES as usize + length);
        header.encode(&mut start);
        start.extend_from_slice(&all[..length]);
        self.append(record, start.freeze());
        let incoming = self.intake.transfers.get_mut(&(id, transfer)).expect("the caller has it");
        let body = IncomingBody {
            record,
            closing,
            whole,
            payload_left: payload,
            tail: BytesMut::new(),
            accepted: 0,
        };
        incoming.state = ReceptionState::Body(Box::new(body));
        self.body_piece(now, id, transfer, all.slice(length..), last);
    }

    /// Space that an arriving bundle occupies in the store: its received bytes, and a limited amount ahead of
    /// them. An announced length costs the peer nothing, so it reserves no more than that.
    fn share_ahead(&self, whole: u64, come: u64) -> u64 {
        let ahead = come.saturating_add(self.config.limits.place_ahead_bytes);
        HEADER_BYTES + whole.min(ahead) + NOTE_BYTES
    }

    /// Increases the memory that the header of an arriving bundle occupies. Returns false if there is no
    /// space.
    fn grow_head(&mut self, now: Instant, record: RecordId, extra_bytes: u32) -> bool {
        let claim = self.claim_of(record);
        let more = extra_bytes.saturating_sub(self.holdings[&record].extra_bytes).into();
        if !self.make_memory(now, more, &claim) {
            return false;
        }
        self.holdings.recount(&record, |held| held.extra_bytes = extra_bytes);
        true
    }

    /// Makes space for more of an arriving bundle. Returns false if there is none.
    fn grow(&mut self, now: Instant, record: RecordId, whole: u64, more: u64) -> bool {
        let held = &self.holdings[&record];
        let come = (held.appended - HEADER_BYTES).saturating_add(more);
        if HEADER_BYTES + come + NOTE_BYTES <= held.share {
            return true;
        }
        let growth = self.share_ahead(whole.max(come), come).saturating_sub(held.share);
        let claim = self.claim_of(record);
        if !self.make_bytes(now, growth, &claim) {
            return false;
        }
        self.holdings.resize(&record, self.holdings[&record].share + growth);
        true
    }

    /// Decides whether a bundle is accepted (RFC 9171 5.6).
    fn judge(
        &mut self,
        now: Instant,
        id: LinkId,
        head: &AnyHead,
        (head_bytes, whole): (u64, u64),
        age_ms: u64,
    ) -> Result<(), TransferRefusal> {
        if whole > self.config.limits.bundle_bytes_max {
            return Err(TransferRefusal::too_long());
        }
        let neighbour = self.neighbour_over(id);
        if let Some(refusal) = TransferRefusal::unsupported(head) {
            self.counters.deleted_block += 1;
            self.report_unsupported(now, neighbour, head);
            self.report_deleted(now, neighbour, head, ReasonCode::BlockUnsupported, false);
            self.signal_refusal(now, neighbour, head, false, CustodyReason::BlockUnintelligible);
            return Err(refusal);
        }
        // A bundle that would be dropped at once is refused as completed, so that the peer does not send it.
        if head.destination().is_null() {
            self.counters.dropped_null_destination += 1;
            return Err(RefuseReason::Completed.into());
        }
        if self.is_over(now, head, age_ms) {
            self.counters.deleted_expired += 1;
            self.report_deleted(now, neighbour, head, ReasonCode::LifetimeExpired, false);
            return Err(RefuseReason::Completed.into());
        }
        if head.hop_limit_exceeded() {
            self.counters.deleted_hop_limit += 1;
            self.report_deleted(now, neighbour, head, ReasonCode::HopLimitExceeded, false);
            return Err(RefuseReason::Completed.into());
        }
        if self.is_here(head, None) {
            self.redundant(now, neighbour, head);
            return Err(RefuseReason::Completed.into());
        }
        self.judge_local(head)?;
        if self.lacks_required_signature(head) {
            self.unsigned_refused(now, neighbour, head);
            return Err(RefuseReason::NotAcceptable.into());
        }
        if self.refuses_plaintext(now, neighbour, head) {
            return Err(RefuseReason::NotAcceptable.into());
        }
        if self.has_no_place_to_check(head) {
            self.counters.refused_beyond_checks += 1;
            return Err(RefuseReason::NoResources.into());
        }
        let all = HEADER_BYTES + whole + NOTE_BYTES;
        // A bundle that cannot fit is refused before its payload arrives.
        let claim = self.claim_over(id, head, head_bytes);
        if !self.could_fit(all, &claim) || !self.make_space(now, self.share_ahead(whole, 0), &claim) {
            return Err(RefuseReason::NoResources.into());
        }
        Ok(())
    }

    /// True if the age of the bundle, by the clock or by its header, exceeds its lifetime (RFC 9171 5.5).
    /// While the clock is doubted, a bundle that may be alive is accepted.
    fn is_over(&self, now: Instant, head: &AnyHead, age_ms: u64) -> bool {
        let age = match (self.time.clock.least_ms(now), head.created_ms()) {
            (Some(least_ms), Some(created)) => least_ms.saturating_sub(created),
            _ => age_ms,
        };
        age > head.lifetime_ms()
    }

    /// True if the bundle is held at this node or was delivered here. A bundle that is being sent to a
    /// neighbour does not count: it may be removed at any moment, and the arriving one may be its return from
    /// that neighbour.
    pub(super) fn is_here(&self, head: &AnyHead, except: Option<RecordId>) -> bool {
        if head.source().is_null() {
            return false;
        }
        if self.deliveries.was_taken(head) || self.was_passed(head) {
            return true;
        }
        let from = head.fragment().map_or(0, |fragment| fragment.offset);
        let to = from.saturating_add(head.payload_bytes());
        let local = self.deliveries.with_head(head);
        if local.is_some_and(|local| local.has(from, to) && !local.is_checked()) {
            return true;
        }
        let records = self.holdings.records_of(&AduKey::of(head, RecordId(0))).rev().take(PARTS_LOOKED_AT);
        records.filter(|record| Some(*record) != except).any(|record| {
            let held = &self.holdings[&record];
            let waiting = match held.state {
                BundleState::Forwarding(_) | BundleState::BackingOff(_) | BundleState::InCustody(_) => true,
                // A restored one that is yet to be verified may be forged, and is deleted then.
                BundleState::Sealing => {
                    self.startup.is_undispatched(record) && !self.is_verified_when_dispatched(record)
                }
                _ => false,
            };
            let (a, b) = (held.adu_offset(), held.adu_offset() + held.payload_bytes());
            let covers = a <= from && to <= b && (from < to || held.payload_bytes() == 0);
            let stays = held.replication.is_some()
                || held.custody.is_some()
                || (held.transfers.is_empty() && self.safe_prefix(held) == 0);
            // A bundle with the same bundle ID but other properties may be forged.
            let same = held.adu_bytes() == head.adu_bytes()
                && held.head.destination() == head.destination()
                && held.head.lifetime_ms() == head.lifetime_ms();
            waiting && covers && stays && same
        })
    }

    fn body_piece(&mut self, now: Instant, id: LinkId, transfer: TransferId, mut data: Bytes, last: bool) {
        let incoming = self.intake.transfers.get_mut(&(id, transfer)).expect("the caller has it");
        let ReceptionState::Body(body) = &mut incoming.state else { unreachable!("the caller has looked") };
        let (record, whole) = (body.record, body.whole);
        let all = data.clone();
        let payload = data.split_to(data.len().min(usize::try_from(body.payload_left).unwrap_or(usize::MAX)));
        body.closing.update(&payload);
        body.payload_left -= payload.len() as u64;
        body.tail.extend_from_slice(&data);
        if !self.grow(now, record, whole, all.len() as u64) {
            return self.refuse_rest(id, transfer, record);
        }
        if !all.is_empty() {
            self.append(record, all);
        }
        match self.take_tail(now, id, transfer) {
            Ok(true) => {
                self.counters.received += 1;
                self.happened(record, BundleEvent::Received(id));
                self.seal(record);
            }
            Ok(false) if !last => {}
            Ok(false) => {
                let place = self.holdings[&record].head.payload_place();
                let refusal = TransferRefusal::damaged(Breach::new(DecodeError::Incomplete, place));
                self.abandon(id, transfer, record, refusal);
            }
            Err(TransferRefusal { reason: RefuseReason::NoResources, .. }) => {
                self.refuse_rest(id, transfer, record)
            }
            Err(refusal) => self.abandon(id, transfer, record, refusal),
        }
    }

    /// Discards an arriving bundle and refuses its transfer.
    fn abandon(&mut self, id: LinkId, transfer: TransferId, record: RecordId, refusal: TransferRefusal) {
        self.drop_bundle(record);
        self.refuse(id, transfer, refusal);
    }

    /// Refuses the rest of an arriving bundle for which there is no space. The acknowledged part is kept, as
    /// after a broken link: the link may break before the peer receives the refusal, and the peer then sends
    /// only the rest.
    fn refuse_rest(&mut self, id: LinkId, transfer: TransferId, record: RecordId) {
        let acknowledged = match &self.intake.transfers[&(id, transfer)].state {
            ReceptionState::Body(body) => body.accepted > self.holdings[&record].head_bytes,
            ReceptionState::Head(_) => unreachable!("a record is begun when the head is there"),
        };
        self.refuse(id, transfer, RefuseReason::NoResources);
        if acknowledged && self.holdings[&record].may_fragment() {
            self.holdings.get_mut(&record).expect("what arrives is held").broken = true;
            self.cut(record);
        } else {
            self.drop_bundle(record);
        }
    }

    /// Checks whether a bundle is complete. If so, checks the tail after its payload, and adds it to the
    /// header.
    fn take_tail(&mut self, now: Instant, id: LinkId, transfer: TransferId) -> Result<bool, TransferRefusal> {
        let incoming = self.intake.transfers.get_mut(&(id, transfer)).expect("the caller has it");
        let ReceptionState::Body(body) = &mut incoming.state else { unreachable!("the caller has looked") };
        if body.payload_left > 0 {
            return Ok(false);
        }
        let record = body.record;
        let held = &self.holdings[&record];
        let bytes = body.tail.split().freeze();
        let tail_bytes = bytes.len() as u64;
        let mut rest = bytes.clone();
        let mut head = held.head.clone();
        match head.read_tail(&body.closing, &mut rest, &self.intake.policy) {
            Ok(()) if rest.is_empty() => {}
            Err(Breach { error: DecodeError::Incomplete, .. }) => {
                body.tail = bytes.into();
                return Ok(false);
            }
            Ok(()) => {
                let error = DecodeError::invalid("data after the end of a bundle", head.structure());
                return Err(TransferRefusal::damaged(Breach::of_all(error)));
            }
            Err(breach) => return Err(TransferRefusal::damaged(breach)),
        }
        let payload_crc = body.closing.crc();
        let whole = held.head_bytes + held.payload_bytes() + tail_bytes;
        if incoming.announced.is_some_and(|announced| announced != whole) {
            return Err(TransferRefusal::damaged(head.other_length()));
        }
        if !held.head.tail_is_known() {
            // Blocks after the payload, which were unknown when the bundle was admitted.
            let extra_bytes = head.extra_bytes(held.head_bytes + tail_bytes);
            let neighbour = held.neighbour;
            if let Some(refusal) = TransferRefusal::unsupported(&head) {
                self.counters.deleted_block += 1;
                self.report_unsupported(now, neighbour, &head);
                self.report_deleted(now, neighbour, &head, ReasonCode::BlockUnsupported, false);
                self.signal_refusal(now, neighbour, &head, false, CustodyReason::BlockUnintelligible);
                return Err(refusal);
            }
            head.discard_unsupported();
            if !self.grow_head(now, record, extra_bytes) {
                return Err(RefuseReason::NoResources.into());
            }
        }
        let held = self.holdings.get_mut(&record).expect("what arrives is held");
        held.encrypted |= head.is_encrypted();
        held.payload_crc = payload_crc;
        held.head = head;
        held.tail_bytes = tail_bytes;
        Ok(true)
    }

    /// Appends bytes of a bundle to its record in the storage. Administrative records of this node are urgent: signals of custody
    /// let bundles leave other nodes.
    pub(super) fn append(&mut self, record: RecordId, data: Bytes) {
        let held = &self.holdings[&record];
        let urgent = held.own && held.send.is_none();
        self.append_as(record, data, urgent);
    }

    /// Appends what ends a bundle that has begun, or a note about one.
    pub(super) fn append_urgent(&mut self, record: RecordId, data: Bytes) {
        self.append_as(record, data, true);
    }

    fn append_as(&mut self, record: RecordId, data: Bytes, urgent: bool) {
        let held = self.holdings.get_mut(&record).expect("only what is held grows");
        held.appended += data.len() as u64;
        self.store.append(record, data, urgent);
    }

    /// Appends the seal after the last byte of a bundle.
    pub(super) fn seal(&mut self, record: RecordId) {
        let held = self.holdings.get_mut(&record).expect("only what is held is sealed");
        held.state = BundleState::Sealing;
        let held = &self.holdings[&record];
        let custody = self.takes_custody(held);
        let note = Note::Sealed { custody }.encode(held.nonce, held.appended);
        if custody {
            self.holdings.get_mut(&record).expect("it was just found").custody = Some(Box::default());
        }
        self.append_urgent(record, note);
    }

    /// Acknowledges the durable part of an arriving bundle to the peer.
    pub(super) fn accept(&mut self, record: RecordId) {
        let held = &self.holdings[&record];
        let Some((id, transfer)) = held.intake else { return };
        let Some(incoming) = self.intake.transfers.get_mut(&(id, transfer)) else { return };
        let ReceptionState::Body(body) = &mut incoming.state else { return };
        let sealed = held.state == BundleState::Sealing && held.stored >= held.appended;
        let whole = held.notes_at() - HEADER_BYTES;
        let up_to = match sealed {
            true => whole,
            false => {
                let all_but_a_byte = (held.head_bytes + held.payload_bytes()).saturating_sub(1);
                held.stored.saturating_sub(HEADER_BYTES).min(all_but_a_byte)
            }
        };
        if up_to > body.accepted {
            body.accepted = up_to;
            self.outgoing.tell(id, BundlesRequest::Accept { transfer, up_to });
        }
        if sealed {
            self.intake.transfers.remove(&(id, transfer));
        }
    }

    /// Handles a bundle or the prefix of one that has become durable (RFC 9171 5.3, 5.6).
    pub(super) fn sealed(&mut self, now: Instant, record: RecordId) {
        let held = &self.holdings[&record];
        let duplicate = self.is_here(&held.head, Some(record));
        if duplicate && !held.own {
            let (head, neighbour) = (held.head.clone(), held.neighbour);
            self.redundant(now, neighbour, &head);
        }
        let held = &self.holdings[&record];
        if let Some((id, transfer)) = held.intake.filter(|intake| self.intake.transfers.contains_key(intake))
            && duplicate
        {
            self.drop_bundle(record);
            return self.refuse(id, transfer, RefuseReason::Completed);
        }
        self.accept(record);
        let held = &self.holdings[&record];
        if duplicate && !held.own {
            self.drop_bundle(record);
            return;
        }
        if held.own && duplicate {
            // The sender sent the bundle again because of a crash: one copy is enough.
            let send = held.send;
            self.own_sealed(record);
            if let Some(send) = send {
                self.end_send(send, Ok(()));
            }
            return self.drop_bundle(record);
        }
        if held.own {
            self.own_sealed(record);
        } else {
            if held.head.asks_for(ReportedStatus::Received) {
                let (head, neighbour) = (held.head.clone(), held.neighbour);
                self.report_received(now, neighbour, &head, ReasonCode::NoAdditionalInformation);
            }
            self.accept_custody(now, record);
        }
        if !self.trim(record) {
            self.drop_bundle(record);
            return;
        }
        self.dispatch(now, record);
    }

    /// Dispatches a bundle: delivery, forwarding or deletion (RFC 9171 5.3, 5.4).
    pub(super) fn dispatch(&mut self, now: Instant, record: RecordId) {
        let held = &self.holdings[&record];
        if held.head.destination().is_null() {
            self.counters.dropped_null_destination += 1;
            if let Some(send) = held.send {
                self.end_send(send, Ok(()));
            }
            self.drop_bundle(record);
        } else if self.is_local(held.head.destination()) {
            self.arrive_here(now, record);
        } else if held.head.hop_limit_reached() {
            self.counters.deleted_hop_limit += 1;
            self.delete(now, record, ReasonCode::HopLimitExceeded, SendFailure::Limit);
        } else if held.custody.as_ref().is_some_and(|custody| custody.awaited) {
            self.await_signal(now, record);
        } else if self.must_check_on_the_way(record) {
            self.holdings.get_mut(&record).expect("it was just found").state = BundleState::Checking;
            self.check_signature(CheckTarget::Passing(record));
        } else {
            self.route(record);
        }
    }

    /// True if the signature of a bundle is verified before it is forwarded. Fragments pass: only the destination can
    /// verify them (RFC 9172 5.2).
    pub(super) fn must_check_on_the_way(&self, record: RecordId) -> bool {
        let held = &self.holdings[&record];
        let is_done =
            held.own || held.head.fragment().is_some() || self.security.checks.passed(record).is_some();
        !is_done && self.security.check_of(&held.head, true).is_some()
    }

    /// Handles a broken transfer: the received part of the payload becomes a fragment if fragmentation is
    /// permitted (RFC 9171 5.8).
    pub(super) fn lost(&mut self, id: LinkId, transfer: TransferId) {
        let Some(incoming) = self.intake.transfers.remove(&(id, transfer)) else { return };
        let ReceptionState::Body(body) = incoming.state else {
            self.counters.lost += 1;
            return;
        };
        let record = body.record;
        let Some(held) = self.holdings.get_mut(&record) else { return };
        held.broken = true;
        if held.state == BundleState::Sealing {
            // The complete bundle arrived, but the peer has no acknowledgement of it.
            return;
        }
        let payload = held.appended.saturating_sub(held.payload_at()).min(held.payload_bytes());
        // Independent of `reactive_fragmentation`: the peer may never resend what this node has acknowledged.
        if !held.may_fragment() || payload == 0 {
            self.counters.lost += 1;
            self.drop_bundle(record);
            return;
        }
        self.cut(record);
    }

    /// Cuts an arriving bundle to the payload that was passed to the storage, which becomes a fragment.
    fn cut(&mut self, record: RecordId) {
        self.counters.received_cut += 1;
        let held = self.holdings.get_mut(&record).expect("only what is held is cut");
        let payload = held.appended.saturating_sub(held.payload_at()).min(held.payload_bytes());
        held.cut_to(payload);
        held.state = BundleState::Sealing;
        // The seal that records the acceptance of custody is not durable.
        held.custody = None;
        // More than the counted space if unannounced blocks followed the payload.
        let share = held.appended;
        self.holdings.resize(&record, share);
        self.settle_stored(record);
    }

    /// Handles lack of space in the storage for more of an arriving bundle.
    pub(super) fn intake_full(&mut self, record: RecordId) {
        let held = self.holdings.get_mut(&record).expect("only what is held is stored");
        if held.state == BundleState::Sealing && !held.closed && held.stored >= held.notes_at() {
            // The complete bundle is durable and verified; only the seal, which would record the acceptance
            // of custody, is not. The next start verifies the bundle again.
            held.custody = None;
            held.closed = true;
            held.appended = held.stored;
            return self.holdings.settle_later(record);
        }
        if let Some((id, transfer)) = held.intake.filter(|intake| self.intake.transfers.contains_key(intake))
        {
            held.appended = held.stored;
            return self.refuse_rest(id, transfer, record);
        }
        // The link is down, and the durable part may have been acknowledged.
        let payload = held.stored.saturating_sub(held.payload_at()).min(held.payload_bytes());
        held.appended = held.stored;
        if payload == 0 || !(held.closed || held.may_fragment()) {
            self.drop_bundle(record);
        } else if held.closed && payload == held.payload_bytes() {
            self.settle_stored(record);
        } else {
            self.cut(record);
        }
    }

    /// Checks whether the complete record is durable.
    fn settle_stored(&mut self, record: RecordId) {
        let held = &self.holdings[&record];
        if held.stored >= held.appended {
            self.holdings.settle_later(record);
        }
    }

    /// Record header with the current time.
    pub(super) fn header(&mut self, now: Instant, kind: RecordKind, age_ms: u64) -> RecordHeader {
        let arrival_dtn_ms = self.time.clock.life_ms(now).unwrap_or(0);
        let neighbour = NeighbourNumber::UNKNOWN;
        RecordHeader { kind, neighbour, nonce: self.rng.next_u64(), arrival_dtn_ms, age_ms }
    }

    /// State of a bundle in memory.
    pub(super) fn hold(
        &self,
        now: Instant,
        record: RecordId,
        header: RecordHeader,
        head: AnyHead,
        head_bytes: u64,
        own: bool,
    ) -> HeldBundle {
        let tail_bytes = head.tail_bytes();
        let encrypted = head.is_encrypted();
        let mut held = HeldBundle {
            named_by: record,
            head,
            head_bytes,
            tail_bytes,
            own,
            closed: false,
            broken: false,
            encrypted,
            counted_as_kept: false,
            head_is_on_disk: false,
            begins_assembly: false,
            extra_bytes: 0,
            nonce: header.nonce,
            neighbour: header.neighbour,
            appended: 0,
            stored: 0,
            payload_crc: None,
            share: 0,
            since: now,
            age_ms: header.age_ms,
            arrival_dtn_ms: header.arrival_dtn_ms,
            end: super::clock::ExpiryTime { dtn_ms: None, by_age: now },
            end_is_override: false,
            intake: None,
            send: None,
            handed: 0,
            durable: 0,
            progress: 0,
            state: if own { BundleState::Composing } else { BundleState::Arriving },
            to_send: Default::default(),
            to_send_empty: false,
            transfers: Vec::new(),
            refusals: 0,
            excluded_links: Vec::new(),
            is_refused: false,
            replication: None,
            custody: None,
            copy_origin: None,
        };
        held.move_head_to_disk();
        held.renew();
        self.time.set_end(now, record, &mut held, &self.config);
        held
    }
}
