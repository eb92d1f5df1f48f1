//! Bundles on their way to a neighbour.
//!
//! ```text
//!   queue --> staged ------> filling ----------> awaiting -----------> over
//!             reads its      open; pieces        all pieces down;      Sent, or Failed:
//!             first pieces   against room        the peer's word       the rest goes back
//!                                                is owed               to the queue
//! ```
//!
//! A transfer carries a range of a bundle's payload: all of it, or a part as a fragment, because the whole is too long
//! for the link or the contact, or because another part is already safe with the peer. What breaks goes back to the
//! queue without what the peer has acknowledged, so no acknowledged byte is sent twice (RFC 9171 5.8). The head is made
//! when the transfer is opened, with the age of that moment (5.4 step 4).

use crate::bp::ReasonCode;
use crate::service::{
    AppIndication, BundleEvent, BundlesRequest, LinkId, Priority, RecordId, RefuseReason, SendFailure,
    TransferFailure, TransferId,
};
use crate::time::Instant;
use bytes::{Bytes, BytesMut};
use core::time::Duration;
use std::collections::VecDeque;

use super::Agent;
use super::clock::DeadlineKind;
use super::head::{AnyHead, BundleEnd};
use super::held::{BundleState, HeldBundle, Rank};
use super::links::Link;
use super::record::Note;
use super::routing::{Hop, NextHops, is_copy};
use super::store::ReadPurpose;

/// Chunks shorter than this are put together with their neighbours; longer ones are handed down as they were read.
const MERGE_BYTES: usize = 4096;
/// What a fragment's head may have more than its bundle's: offset, total length, previous node, age.
const HEAD_GROWTH_BYTES: u64 = 96;
/// What it may have more with the name of another custodian.
const CUSTODIAN_BYTES: u64 = 96;

/// A transfer to a neighbour.
#[derive(Debug)]
pub(super) struct OutgoingTransfer {
    pub(super) record: RecordId,
    priority: Priority,
    /// The range of the record's payload that it carries.
    pub(super) from: u64,
    pub(super) to: u64,
    /// Where the next read begins.
    read_at: u64,
    /// Reads that are not answered.
    pending: usize,
    /// What can be handed down: head, payload as read, tail.
    chunks: VecDeque<Bytes>,
    /// Bytes in `chunks`.
    pub(super) buffered: usize,
    closing: BundleEnd,
    /// Zero until the transfer is open.
    pub(super) head_bytes: u64,
    pub(super) acked: u64,
    /// Bytes that were handed down, head and tail among them.
    handed: u64,
    /// The head is being read.
    pub(super) waits_for_head: bool,
    /// It was read.
    pub(super) whole_head: Option<Box<AnyHead>>,
    /// Given up: its terminal indication is owed, and its bundle no longer ours.
    cancelled: bool,
}

impl OutgoingTransfer {
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// All that it carries has been read.
    fn is_read(&self) -> bool {
        self.read_at == self.to && self.pending == 0
    }

    /// There is something to hand down.
    fn has_piece(&self) -> bool {
        !self.chunks.is_empty()
    }

    fn push(&mut self, chunk: Bytes) {
        // Nothing follows the payload of most bundles of version 6.
        if chunk.is_empty() {
            return;
        }
        self.buffered += chunk.len();
        self.chunks.push_back(chunk);
    }

    /// Takes the next piece of at most `room` bytes, and whether it is the last. A long chunk is handed on without
    /// a copy; a short one rides with its neighbours, because pieces become segments with headers of their own.
    fn take_piece(&mut self, room: usize) -> (Bytes, bool) {
        let mut piece = self.chunks.pop_front().expect("the caller has looked");
        if piece.len() > room {
            self.chunks.push_front(piece.split_off(room));
        } else if self.joins(piece.len(), room) {
            let mut merged = BytesMut::from(piece);
            while self.joins(merged.len(), room) {
                let mut next = self.chunks.pop_front().expect("there is something to join");
                if merged.len() + next.len() > room {
                    self.chunks.push_front(next.split_off(room - merged.len()));
                }
                merged.extend_from_slice(&next);
            }
            piece = merged.freeze();
        }
        self.buffered -= piece.len();
        self.handed += piece.len() as u64;
        let last = self.chunks.is_empty() && self.is_read();
        (piece, last)
    }

    /// True if the next chunk is to ride in the same piece: one of the two is short. It is divided only where the room
    /// is too small and a short piece would go alone.
    fn joins(&self, length: usize, room: usize) -> bool {
        let Some(next) = self.chunks.front() else { return false };
        let fits = length + next.len() <= room;
        length < room && (length < MERGE_BYTES || (fits && next.len() < MERGE_BYTES))
    }

    /// How many bytes of its range are safe with the peer.
    fn safe(&self) -> u64 {
        self.of_range(self.acked)
    }

    /// How many bytes of its range were handed down.
    pub(super) fn handed(&self) -> u64 {
        self.of_range(self.handed)
    }

    /// How many bytes of its range the first so many of the transfer hold.
    fn of_range(&self, bytes: u64) -> u64 {
        match self.head_bytes {
            0 => 0,
            head_bytes => bytes.saturating_sub(head_bytes).min(self.to - self.from),
        }
    }
}

impl Agent {
    /// Does the next thing that a link can do; false: nothing.
    pub(super) fn work(&mut self, now: Instant, id: LinkId) -> bool {
        self.connect_if_wanted(now, id);
        if !self.links.usable(id, now) {
            self.drop_prepared(now, id);
            return !self.control.is_empty();
        }
        self.open_prepared(now, id) || self.fill(now, id) || self.read_ahead(id) || self.prepare(now, id)
    }

    /// Hands a piece down.
    fn fill(&mut self, now: Instant, id: LinkId) -> bool {
        let dtn_ms = self.clock.dtn_ms(now);
        let link = self.links.get_mut(id).expect("the link is usable");
        if link.room == 0 {
            return false;
        }
        // The most urgent, of equals the oldest; where transfers do not interleave there is one.
        let ready = link.filling.iter().filter(|transfer| link.transfers[transfer].has_piece());
        let Some(&transfer) = ready.max_by_key(|transfer| {
            let flight = &link.transfers[transfer];
            (flight.priority, core::cmp::Reverse(**transfer))
        }) else {
            return false;
        };
        let flight = link.transfers.get_mut(&transfer).expect("what is filled is open");
        let (data, last) = flight.take_piece(usize::try_from(link.room).unwrap_or(usize::MAX));
        link.occupy(now, dtn_ms, data.len() as u64);
        if last {
            link.filling.retain(|other| *other != transfer);
        }
        self.control.push_back((id, BundlesRequest::Piece { transfer, data, last }));
        true
    }

    /// Asks the storage for the next piece of what is being filled, or of what comes next.
    fn read_ahead(&mut self, id: LinkId) -> bool {
        let (pieces, piece_bytes) =
            (self.config.read_ahead_pieces.max(1), self.config.piece_bytes_max as u64);
        let link = self.links.get(id).expect("the link is usable");
        let listed = link.filling.iter().chain(&link.prepared).find(|transfer| {
            let flight = &link.transfers[*transfer];
            let waiting = flight.buffered.div_ceil(self.config.piece_bytes_max);
            flight.read_at != flight.to
                && !flight.cancelled
                && flight.pending + waiting < pieces
                && self.bundles.contains_key(&flight.record)
        });
        let Some(&transfer) = listed else { return false };
        // What it has room for it gets whatever others do.
        if link.bytes_read(piece_bytes) >= link.room && self.is_full_of_pieces() {
            return false;
        }
        let link = self.links.get_mut(id).expect("the link is usable");
        let flight = link.transfers.get_mut(&transfer).expect("listed transfers live");
        let length = (flight.to - flight.read_at).min(piece_bytes);
        let held = &self.bundles[&flight.record];
        let offset = held.payload_at() + flight.read_at;
        flight.read_at += length;
        flight.pending += 1;
        let record = held.copy_origin.as_ref().map_or(flight.record, |copy| copy.parent);
        self.store.read(record, offset, length as u32, ReadPurpose::Transfer(id, transfer));
        true
    }

    /// True if as much as may was read for links beyond the room that they have: however many peers take nothing, what is read
    /// for them has a limit.
    fn is_full_of_pieces(&self) -> bool {
        let piece_bytes = self.config.piece_bytes_max as u64;
        let beyond_room = |(_, link): (_, &Link)| link.bytes_read(piece_bytes).saturating_sub(link.room);
        self.links.iter().map(beyond_room).sum::<u64>() >= self.config.limits.buffer_bytes_max
    }

    /// A part of a payload was read for a transfer.
    pub(super) fn transfer_data(
        &mut self,
        now: Instant,
        id: LinkId,
        transfer: TransferId,
        offset: u64,
        data: Bytes,
    ) {
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(flight) = link.transfers.get_mut(&transfer) else { return };
        flight.pending -= 1;
        self.ready.insert(id);
        let Some(held) = self.bundles.get(&flight.record).filter(|_| !flight.cancelled) else { return };
        let begin = offset.saturating_sub(held.payload_at());
        let expected = (flight.to - begin).min(self.config.piece_bytes_max as u64);
        if data.len() as u64 != expected {
            // The storage has less than it said was durable.
            let record = flight.record;
            self.storage_lost(now, record);
            return;
        }
        flight.closing.update(&data);
        flight.push(data);
        if flight.is_read() {
            let mut tail = BytesMut::with_capacity(8);
            flight.closing.encode_tail(&mut tail);
            flight.push(tail.freeze());
        }
    }

    /// Picks the bundle that goes over this link next, and begins to read it.
    fn prepare(&mut self, now: Instant, id: LinkId) -> bool {
        let pipeline = self.config.pipeline_transfers_max.max(1);
        let link = self.links.get(id).expect("the link is usable");
        if link.prepared.is_some() || link.transfers.len() >= pipeline {
            return false;
        }
        let busy = link.filling.iter().map(|transfer| &link.transfers[transfer]);
        let urgency = busy.clone().map(|flight| flight.priority).max();
        let all_read = busy.clone().all(|flight| flight.read_at == flight.to);
        for (priority, record) in self.candidates(now, id) {
            // While one is being filled the next is wanted when that one is read, or if it may overtake.
            let overtakes = link.interleave && urgency.is_some_and(|urgency| priority.0 > urgency);
            if urgency.is_some() && !all_read && !overtakes {
                return false;
            }
            match self.fit(now, id, record) {
                FittingLength::Bytes(most) => {
                    let record = self.copy_for(id, record);
                    self.begin_transfer(now, id, record, most);
                    return true;
                }
                FittingLength::Later => {}
                FittingLength::Never => {
                    self.exclude_link(now, record, id, SendFailure::Limit);
                    return true;
                }
            }
        }
        false
    }

    fn begin_transfer(&mut self, now: Instant, id: LinkId, record: RecordId, most: u64) {
        self.next_transfer += 1;
        let transfer = TransferId(self.next_transfer);
        let held = self.bundles.get_mut(&record).expect("candidates are held");
        let (from, to) = match held.to_send.take_first(most) {
            Some(range) => range,
            None => {
                held.to_send_empty = false;
                (0, 0)
            }
        };
        held.transfers.push((id, transfer));
        let priority = held.head.priority();
        let mut head = part_of(&held.head, from, to);
        let waits_for_head = self.read_head_from_disk(id, transfer, record);
        self.adapt(id, &mut head);
        let mut flight = OutgoingTransfer {
            record,
            priority,
            from,
            to,
            read_at: from,
            pending: 0,
            chunks: VecDeque::new(),
            buffered: 0,
            closing: BundleEnd::of(&head),
            head_bytes: 0,
            acked: 0,
            handed: 0,
            waits_for_head,
            whole_head: None,
            cancelled: false,
        };
        if from == to {
            let mut tail = BytesMut::new();
            flight.closing.encode_tail(&mut tail);
            flight.push(tail.freeze());
        }
        let link = self.links.get_mut(id).expect("the link is usable");
        link.transfers.insert(transfer, flight);
        link.prepared = Some(transfer);
        self.custody_handed_out(now, record, id, from, to);
        self.requeue(record);
    }

    /// Opens the staged transfer once its first piece is read and the line is free for it.
    fn open_prepared(&mut self, now: Instant, id: LinkId) -> bool {
        let link = self.links.get(id).expect("the link is usable");
        let Some(transfer) = link.prepared else { return false };
        let flight = &link.transfers[&transfer];
        let overtakes = link.interleave
            && link.filling.iter().all(|other| link.transfers[other].priority < flight.priority);
        let begun = (flight.has_piece() || flight.is_read()) && !flight.waits_for_head;
        if link.room == 0 || !begun || !(link.filling.is_empty() || overtakes) {
            return false;
        }
        let (record, priority, from, to) = (flight.record, flight.priority, flight.from, flight.to);
        let mut better = self.candidates(now, id).into_iter();
        let more_urgent = |(other, _): &Rank| other.0 > priority;
        if better
            .any(|other| more_urgent(&other) && matches!(self.fit(now, id, other.1), FittingLength::Bytes(_)))
        {
            // Something more urgent has come while this one was being read.
            self.drop_prepared(now, id);
            return true;
        }
        let link = self.links.get_mut(id).expect("the link is usable");
        let whole = link.transfers.get_mut(&transfer).and_then(|flight| flight.whole_head.take());
        let held = self.bundles.get(&record).expect("staged bundles are held");
        let mut head = part_of(whole.as_deref().unwrap_or(&held.head), from, to);
        self.address(now, held, &mut head);
        let is_part = head.fragment().is_some() && held.head.fragment() != head.fragment();
        self.counters.adapted += u64::from(self.adapt(id, &mut head));
        let bytes = head.to_bytes();
        let length = bytes.len() as u64 + (to - from) + head.tail_bytes();
        let link = self.links.get_mut(id).expect("the link is usable");
        let flight = link.transfers.get_mut(&transfer).expect("staged transfers live");
        flight.head_bytes = bytes.len() as u64;
        flight.buffered += bytes.len();
        flight.chunks.push_front(bytes);
        link.prepared = None;
        link.filling.push_back(transfer);
        if is_part {
            self.counters.fragments_sent += 1;
        }
        self.control.push_back((id, BundlesRequest::Open { transfer, priority, length }));
        true
    }

    /// What changes from hop to hop (RFC 9171 5.4 step 4).
    fn address(&self, now: Instant, held: &HeldBundle, head: &mut AnyHead) {
        let previous = (self.config.previous_node && !held.own).then(|| self.node.clone());
        head.address(previous, held.age_ms_now(now));
    }

    /// Puts the staged transfer back: nothing of it has gone down.
    pub(super) fn drop_prepared(&mut self, now: Instant, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(transfer) = link.prepared.take() else { return };
        let flight = link.transfers.remove(&transfer).expect("staged transfers live");
        self.put_back(now, flight.record, id, transfer, flight.from, flight.to);
    }

    /// A range of a bundle is to be sent again.
    fn put_back(
        &mut self,
        now: Instant,
        record: RecordId,
        id: LinkId,
        transfer: TransferId,
        from: u64,
        to: u64,
    ) {
        let Some(held) = self.bundles.get_mut(&record) else { return };
        held.transfers.retain(|flight| *flight != (id, transfer));
        if held.payload_bytes() == 0 {
            held.to_send_empty = true;
        } else {
            held.to_send.insert(from, to);
        }
        held.skip_released();
        if held.custody.is_some() {
            self.deadlines.at(now, DeadlineKind::Custody(record));
        }
        self.requeue(record);
    }

    /// How much of a bundle's payload may go over this link in one transfer now.
    fn fit(&self, now: Instant, id: LinkId, record: RecordId) -> FittingLength {
        let link = self.links.get(id).expect("the link is usable");
        let held = self.bundles.get(&record).expect("candidates are held");
        let to_send = held.to_send.first().map_or(0, |(from, to)| to - from);
        let overhead = held.transfer_overhead();
        let most = link.longest_bundle().saturating_sub(overhead);
        if to_send > most && (!held.may_fragment() || most == 0) {
            return FittingLength::Never;
        }
        let Some(bytes) = link.capacity_bytes(now, self.clock.dtn_ms(now)) else {
            return FittingLength::Bytes(most);
        };
        let in_flight: u64 = link.filling.iter().map(|other| link.transfers[other].unsent()).sum();
        let window = bytes.saturating_sub(in_flight).saturating_sub(overhead);
        if to_send <= window {
            FittingLength::Bytes(most)
        } else if held.may_fragment() && window >= link.config.fragment_bytes_min.max(1) {
            FittingLength::Bytes(most.min(window))
        } else {
            FittingLength::Later
        }
    }

    /// The peer has some of a transfer safe.
    pub(super) fn transfer_acked(&mut self, id: LinkId, transfer: TransferId, up_to: u64) {
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(flight) = link.transfers.get_mut(&transfer) else { return };
        flight.acked = flight.acked.max(up_to);
        let record = flight.record;
        self.say_progress(record);
    }

    fn say_progress(&mut self, record: RecordId) {
        let Some(held) = self.bundles.get(&record) else { return };
        let Some(send) = held.send else { return };
        let safe = self.safe_prefix(held);
        let held = self.bundles.get_mut(&record).expect("it was just found");
        if safe > held.progress {
            held.progress = safe;
            self.up.push_back(AppIndication::Progress { send, up_to: safe });
        }
    }

    /// How many bytes from the payload's beginning are safe with the next hop.
    pub(super) fn safe_prefix(&self, held: &HeldBundle) -> u64 {
        let waiting = held.to_send.first().map_or(held.payload_bytes(), |(from, _)| from);
        let transfers = held.transfers.iter().filter_map(|(id, transfer)| {
            self.links.get(*id)?.transfers.get(transfer).map(|flight| flight.from + flight.safe())
        });
        transfers.fold(waiting, u64::min)
    }

    /// The peer has all of a transfer.
    pub(super) fn transfer_sent(&mut self, now: Instant, id: LinkId, transfer: TransferId) {
        let Some(flight) = self.end_transfer(id, transfer) else { return };
        let Some(held) = self.bundles.get_mut(&flight.record) else { return };
        held.transfers.retain(|other| *other != (id, transfer));
        held.refusals = 0;
        if held.all_handed_out() && held.transfers.is_empty() {
            self.forwarded(now, flight.record);
        } else {
            self.note_safe(flight.record);
            self.say_progress(flight.record);
        }
    }

    /// The next hop has all of a bundle (RFC 9171 5.4 step 5).
    fn forwarded(&mut self, now: Instant, record: RecordId) {
        if is_copy(record) {
            return self.copy_sent(now, record);
        }
        self.counters.forwarded += 1;
        self.happened(record, BundleEvent::Forwarded);
        self.report_forwarded(now, record);
        if self.bundles[&record].custody.is_some() {
            return self.await_signal(now, record);
        }
        if let Some(send) = self.bundles[&record].send {
            self.end_send(send, Ok(()));
        }
        if self.bundles[&record].replication.is_some() {
            self.remember_passed(now, record);
        }
        self.remember_part(record);
        self.drop_bundle(record);
    }

    /// Writes down how much is safe, so that a restart does not send it again.
    fn note_safe(&mut self, record: RecordId) {
        let held = self.bundles.get(&record).expect("the caller has it");
        let safe = self.safe_prefix(held);
        let held = self.bundles.get_mut(&record).expect("the caller has it");
        // Nothing may follow a prefix: see the storage format.
        if held.closed || safe == 0 {
            return;
        }
        let note = Note::SafeUpTo(safe).encode(held.nonce, held.appended);
        held.appended += note.len() as u64;
        self.store.append(record, note);
    }

    fn end_transfer(&mut self, id: LinkId, transfer: TransferId) -> Option<OutgoingTransfer> {
        let link = self.links.get_mut(id)?;
        let flight = link.transfers.remove(&transfer)?;
        link.filling.retain(|other| *other != transfer);
        self.ready.insert(id);
        Some(flight).filter(|flight| !flight.cancelled)
    }

    /// A transfer ended otherwise.
    pub(super) fn transfer_failed(
        &mut self,
        now: Instant,
        id: LinkId,
        transfer: TransferId,
        reason: TransferFailure,
        acked: u64,
    ) {
        if reason == TransferFailure::Refused(RefuseReason::Completed) {
            // The peer has all of it already (RFC 9174 5.2.4).
            return self.transfer_sent(now, id, transfer);
        }
        let Some(mut flight) = self.end_transfer(id, transfer) else { return };
        flight.acked = acked;
        let (record, from, to) = (flight.record, flight.from, flight.to);
        let Some(held) = self.bundles.get(&record) else { return };
        let resume = self.config.reactive_fragmentation
            && reason == TransferFailure::LinkDown
            && held.may_fragment()
            && flight.safe() > 0;
        if resume {
            // Something has to be left to send: the peer could not check the end of what it has.
            let safe = flight.safe().min(to - from - 1);
            self.counters.payload_bytes_saved += safe;
            self.put_back(now, record, id, transfer, from + safe, to);
            self.note_safe(record);
            self.say_progress(record);
            return;
        }
        self.put_back(now, record, id, transfer, from, to);
        self.after_failure(now, id, record, reason, to - from);
    }

    /// The storage could not read what was to be sent: the transfer is given up, and the bundle waits.
    pub(super) fn transfer_read_failed(&mut self, now: Instant, id: LinkId, transfer: TransferId) {
        let flight = self.links.get(id).and_then(|link| link.transfers.get(&transfer));
        let Some(flight) = flight.filter(|flight| !flight.cancelled) else { return };
        let (record, from, to) = (flight.record, flight.from, flight.to);
        self.cancel_transfers(&[(id, transfer)]);
        self.put_back(now, record, id, transfer, from, to);
        self.rest(now, record);
    }

    fn after_failure(
        &mut self,
        now: Instant,
        id: LinkId,
        record: RecordId,
        reason: TransferFailure,
        length: u64,
    ) {
        match reason {
            TransferFailure::LinkDown | TransferFailure::Cancelled => {}
            TransferFailure::TooLong => {
                let held = &self.bundles[&record];
                let (may_fragment, overhead) = (held.may_fragment(), held.transfer_overhead());
                let link = self.links.get_mut(id).expect("the transfer was on it");
                // The peer did not tell its limit: halve until it fits.
                if may_fragment && length > 1 {
                    link.bundle_bytes_max = link.longest_bundle().min(length / 2 + overhead);
                } else {
                    self.exclude_link(now, record, id, SendFailure::Limit);
                }
            }
            TransferFailure::Refused(RefuseReason::NotAcceptable) => {
                self.exclude_link(now, record, id, SendFailure::Refused(RefuseReason::NotAcceptable));
            }
            TransferFailure::Refused(RefuseReason::SessionTerminating) => {
                self.hold_link(now, id, self.config.backoff_min);
            }
            TransferFailure::Refused(reason) => {
                if reason == RefuseReason::NoResources {
                    self.hold_link(now, id, self.config.backoff_min.min(Duration::from_secs(1)));
                }
                self.rest(now, record);
            }
        }
    }

    /// What is left of a bundle waits before it is tried again, longer each time. Parts that are on their way go on.
    pub(super) fn rest(&mut self, now: Instant, record: RecordId) {
        let Some(held) = self.bundles.get(&record) else { return };
        let doubled = self.config.backoff_min.saturating_mul(1 << held.refusals.min(20));
        let wait = doubled.min(self.config.backoff_max).mul_f64(0.75 + self.rng.unit() / 2.0);
        self.unroute(record);
        let held = self.bundles.get_mut(&record).expect("it was just found");
        held.refusals = held.refusals.saturating_add(1);
        let until = now + wait;
        held.state = BundleState::BackingOff(until);
        self.deadlines.at(until, DeadlineKind::Retry(record));
        self.note_evictable(record, true);
    }

    /// The wait is over.
    pub(super) fn retry(&mut self, record: RecordId) {
        match self.bundles.get(&record).map(|held| held.state) {
            Some(BundleState::BackingOff(_)) => self.route(record),
            Some(BundleState::Verifying) => self.verify_next(record),
            _ => {}
        }
    }

    /// A bundle cannot go over this link; where no other hop is left it is given up (RFC 9171 5.4.2).
    pub(super) fn exclude_link(&mut self, now: Instant, record: RecordId, id: LinkId, failure: SendFailure) {
        let Some(held) = self.bundles.get_mut(&record) else { return };
        let BundleState::Forwarding(class) = held.state else {
            // It rests after another refusal: it is sorted anew afterwards.
            held.excluded_links.push(id);
            return;
        };
        let hops = match &self.queues.key(class).ways {
            NextHops::Hops(hops) => hops.clone(),
            NextHops::Everyone => return self.bar_copies(id, record),
        };
        held.excluded_links.push(id);
        let (excluded_links, idle) = (held.excluded_links.clone(), held.transfers.is_empty());
        let destination = held.head.destination().clone();
        let left = hops.iter().any(|(_, hop)| match hop {
            Hop::Link(link) => !excluded_links.contains(link),
            Hop::Node(node) => {
                let links = self.links.of(hop);
                let away = links.is_empty() && !node.same_node(&destination);
                away || links.iter().any(|link| !excluded_links.contains(link))
            }
        });
        if left {
            self.unroute(record);
            self.route(record);
        } else if idle && is_copy(record) {
            self.copy_refused(record);
        } else if idle && self.bundles[&record].custody.is_some() {
            self.rest_in_custody(now, record);
        } else if idle {
            self.counters.deleted_refused += 1;
            self.delete(now, record, ReasonCode::NoRoute, failure);
        }
    }

    /// Gives up every transfer of a bundle that goes.
    pub(super) fn cancel_transfers(&mut self, transfers: &[(LinkId, TransferId)]) {
        for &(id, transfer) in transfers {
            let Some(link) = self.links.get_mut(id) else { continue };
            self.ready.insert(id);
            if link.prepared == Some(transfer) {
                link.prepared = None;
                link.transfers.remove(&transfer);
            } else if let Some(flight) = link.transfers.get_mut(&transfer) {
                flight.cancelled = true;
                flight.chunks.clear();
                flight.buffered = 0;
                link.filling.retain(|other| *other != transfer);
                self.control.push_back((id, BundlesRequest::Cancel { transfer }));
            }
        }
    }
}

impl HeldBundle {
    /// The most bytes that a transfer of it has besides payload.
    fn transfer_overhead(&self) -> u64 {
        let custodian = if self.custody.is_some() && !self.own { CUSTODIAN_BYTES } else { 0 };
        self.head_bytes + self.head.tail_bytes() + HEAD_GROWTH_BYTES + custodian
    }
}

/// How much of a payload fits into a transfer.
enum FittingLength {
    /// So many bytes.
    Bytes(u64),
    /// None in this contact.
    Later,
    /// It cannot go over this link at all.
    Never,
}

/// The head for a range of a bundle's payload.
fn part_of(head: &AnyHead, from: u64, to: u64) -> AnyHead {
    if from == 0 && to == head.payload_bytes() { head.clone() } else { head.part(from, to - from) }
}

impl OutgoingTransfer {
    /// Bytes that have not gone down.
    fn unsent(&self) -> u64 {
        self.to - self.read_at + self.buffered as u64
    }
}

impl Link {
    /// Bytes that were read for it, or are being read, and have not gone down.
    fn bytes_read(&self, piece_bytes: u64) -> u64 {
        // Of other transfers all has gone down.
        let open =
            self.filling.iter().chain(&self.prepared).filter_map(|transfer| self.transfers.get(transfer));
        open.map(|flight| flight.buffered as u64 + flight.pending as u64 * piece_bytes).sum()
    }

    /// The longest bundle that may go over it, bytes.
    fn longest_bundle(&self) -> u64 {
        match self.config.bundle_bytes_max {
            0 => self.bundle_bytes_max,
            own => own.min(self.bundle_bytes_max),
        }
    }
}
