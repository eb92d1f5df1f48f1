//! Transmission of bundles to a neighbour.
//!
//! ```text
//!   queue --> prepared ----> filling ----------> awaiting -----------> over
//!         reads its      open; pieces        all pieces sent;      Sent, or Failed:
//!         first pieces   as room permits     the acknowledgement   the rest returns
//!                                            is outstanding        to the queue
//! ```
//!
//! A transfer carries a range of a bundle's payload: all of it, or a part as a fragment, because the bundle is too long for the
//! link or the contact, or because the peer has another part already. The rest of a broken transfer returns to the queue without
//! the part that the peer has acknowledged, so no acknowledged byte is sent twice (RFC 9171 5.8). The header is built when the
//! transfer is opened, with the age at that time (5.4 step 4).

use crate::codec;
use crate::service::{
    AppIndication, BundleEvent, BundlesRequest, LinkId, Priority, RecordId, RefuseReason, SendFailure,
    TransferFailure, TransferId,
};
use crate::time::Instant;
use bytes::{Bytes, BytesMut};
use core::num::NonZeroU32;
use core::ops::Bound;
use std::collections::{BTreeSet, VecDeque};

use super::Agent;
use super::clock::DeadlineKind;
use super::head::{AnyHead, BundleEnd};
use super::held::{HeldBundle, Rank};
use super::links::Link;
use super::overlap::SafeParts;
use super::record::Note;
use super::routing::is_copy;
use super::store::ReadPurpose;

/// Chunks shorter than this are merged with the next ones; longer ones are sent as they were read. Bytes.
const MERGE_BYTES: usize = 4096;
/// Length of a read for a link that has less room than this, bytes.
const PIECE_BYTES_MIN: u64 = 65_536;
/// Maximum increase of a fragment's header over that of its bundle, bytes: offset, total length, previous
/// node, age.
const HEAD_GROWTH_BYTES: u64 = 96;
/// Maximum further increase with the endpoint ID of another custodian, bytes.
const CUSTODIAN_BYTES: u64 = 96;

/// Transfer to a neighbour.
#[derive(Debug)]
pub(super) struct OutgoingTransfer {
    pub(super) record: RecordId,
    priority: Priority,
    /// Range of the record's payload that the transfer carries.
    pub(super) from: u64,
    pub(super) to: u64,
    /// Offset of the next read.
    read_at: u64,
    /// Number of outstanding reads, and the sum of their lengths, bytes.
    pending: usize,
    pending_bytes: u64,
    /// Number of the outstanding reads, the oldest, whose data is not used: an earlier answer was short, and the range is read again
    /// from its end.
    stale: usize,
    /// Data ready to be sent: header, payload as read, tail.
    chunks: VecDeque<Bytes>,
    /// Bytes in `chunks`.
    pub(super) buffered: usize,
    closing: BundleEnd,
    /// CRC that the payload block of the complete bundle had when it was made or received, if it is known.
    known_crc: Option<NonZeroU32>,
    /// Length of the header, bytes; zero until the transfer is open.
    pub(super) head_bytes: u64,
    pub(super) acked: u64,
    /// Bytes sent, including header and tail.
    handed: u64,
    /// The header is being read.
    pub(super) waits_for_head: bool,
    /// Complete header, if it was read from disk.
    pub(super) whole_head: Option<Box<AnyHead>>,
    /// The transfer is cancelled: its terminal indication is outstanding, and its bundle may be gone.
    cancelled: bool,
}

impl OutgoingTransfer {
    pub(super) fn is_cancelled(&self) -> bool {
        self.cancelled
    }

    /// True if the complete range has been read.
    fn is_read(&self) -> bool {
        self.read_at == self.to && self.pending == 0
    }

    /// True if there is data to send.
    fn has_piece(&self) -> bool {
        !self.chunks.is_empty()
    }

    fn push(&mut self, chunk: Bytes) {
        // Most bundles of version 6 have nothing after the payload.
        if chunk.is_empty() {
            return;
        }
        self.buffered += chunk.len();
        self.chunks.push_back(chunk);
    }

    /// Removes and returns the next piece of at most `room` bytes; the flag is true for the last piece. A
    /// long chunk is not copied; a short one is merged with the next ones, because each piece becomes a
    /// segment with its own header.
    fn take_piece(&mut self, room: usize) -> (Bytes, bool) {
        let mut piece = self.chunks.pop_front().expect("the caller has looked");
        if piece.len() > room {
            self.chunks.push_front(piece.split_off(room));
        } else if self.joins(piece.len(), room) {
            let mut merged = BytesMut::with_capacity(self.merged_bytes(piece.len(), room));
            merged.extend_from_slice(&piece);
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

    /// True if the next chunk should be merged into the same piece, because one of the two is short. A chunk
    /// is divided only if the room is too small and a short piece would otherwise be sent alone.
    fn joins(&self, length: usize, room: usize) -> bool {
        self.chunks.front().is_some_and(|next| joins(length, next.len(), room))
    }

    /// Length of a piece that begins with so many bytes, once all chunks that should be merged are in it.
    fn merged_bytes(&self, first: usize, room: usize) -> usize {
        let mut length = first;
        for next in &self.chunks {
            if !joins(length, next.len(), room) {
                break;
            }
            length = room.min(length + next.len());
        }
        length
    }

    /// Bytes of the range that the peer has acknowledged.
    fn safe(&self) -> u64 {
        self.of_range(self.acked)
    }

    /// Bytes of the range that were sent.
    pub(super) fn handed(&self) -> u64 {
        self.of_range(self.handed)
    }

    /// Bytes of the range in the first `bytes` bytes of the transfer.
    fn of_range(&self, bytes: u64) -> u64 {
        match self.head_bytes {
            0 => 0,
            head_bytes => bytes.saturating_sub(head_bytes).min(self.to - self.from),
        }
    }
}

/// True if a piece of so many bytes should be merged with a next chunk of so many.
fn joins(length: usize, next: usize, room: usize) -> bool {
    let fits = length + next <= room;
    length < room && (length < MERGE_BYTES || (fits && next < MERGE_BYTES))
}

/// Requests to the links, and the order in which the links are served.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Links that may have work to do.
    ready: BTreeSet<LinkId>,
    last_served: LinkId,
    control: VecDeque<(LinkId, BundlesRequest)>,
    next_transfer: u64,
    /// Parts of broken transfers that the next hop has already.
    pub(super) safe_parts: SafeParts,
}

impl Outgoing {
    /// Adds a request to a link, for which no room is needed or was spent.
    pub(super) fn tell(&mut self, link: LinkId, request: BundlesRequest) {
        self.control.push_back((link, request));
    }

    /// True if requests wait to be passed down.
    fn has_requests(&self) -> bool {
        !self.control.is_empty()
    }

    /// Returns the next request to a link.
    pub(super) fn next_request(&mut self) -> Option<(LinkId, BundlesRequest)> {
        self.control.pop_front()
    }

    /// Notes that a link may have work to do.
    pub(super) fn wake(&mut self, link: LinkId) {
        self.ready.insert(link);
    }

    /// Notes that links may have work to do.
    pub(super) fn wake_all(&mut self, links: impl IntoIterator<Item = LinkId>) {
        self.ready.extend(links);
    }

    /// Returns the next link that may have work to do. Links are served in turn, one step each.
    pub(super) fn next_link(&mut self) -> Option<LinkId> {
        // Mostly, at most one link is ready.
        if self.ready.len() <= 1 {
            self.last_served = self.ready.pop_first()?;
            return Some(self.last_served);
        }
        let after = (Bound::Excluded(self.last_served), Bound::Unbounded);
        let next = self.ready.range(after).next().or(self.ready.first()).copied()?;
        self.ready.remove(&next);
        self.last_served = next;
        Some(next)
    }
}

impl Agent {
    /// Performs the next action on a link. Returns false if there is none.
    pub(super) fn work(&mut self, now: Instant, id: LinkId) -> bool {
        self.connect_if_wanted(now, id);
        if !self.links.usable(id, now) {
            self.drop_prepared(now, id);
            return self.outgoing.has_requests();
        }
        self.open_prepared(now, id) || self.fill(now, id) || self.read_ahead(id) || self.prepare(now, id)
    }

    /// Sends a piece.
    fn fill(&mut self, now: Instant, id: LinkId) -> bool {
        let dtn_ms = self.time.clock.dtn_ms(now);
        let link = self.links.get_mut(id).expect("the link is usable");
        if link.room == 0 {
            return false;
        }
        // Highest priority, then the oldest; without interleaving there is only one.
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
        self.outgoing.tell(id, BundlesRequest::Piece { transfer, data, last });
        true
    }

    /// Requests the next piece from the storage for an open transfer or the next one.
    fn read_ahead(&mut self, id: LinkId) -> bool {
        let pieces = self.config.read_ahead_pieces.max(1);
        let link = self.links.get(id).expect("the link is usable");
        let piece_bytes = self.piece_bytes(link.room);
        let listed = link.filling.iter().chain(&link.prepared).find(|transfer| {
            let flight = &link.transfers[*transfer];
            let waiting = flight.buffered.div_ceil(piece_bytes as usize);
            flight.read_at != flight.to
                && !flight.cancelled
                && flight.pending + waiting < pieces
                && self.holdings.contains(&flight.record)
        });
        let Some(&transfer) = listed else { return false };
        // A link is always read for up to its room, independent of the other links.
        if link.bytes_read() >= link.room && self.is_full_of_pieces() {
            return false;
        }
        let link = self.links.get_mut(id).expect("the link is usable");
        let flight = link.transfers.get_mut(&transfer).expect("listed transfers live");
        let length = (flight.to - flight.read_at).min(piece_bytes);
        let held = &self.holdings[&flight.record];
        let offset = held.payload_at() + flight.read_at;
        flight.read_at += length;
        flight.pending += 1;
        flight.pending_bytes += length;
        let record = held.copy_origin.as_ref().map_or(flight.record, |copy| copy.parent);
        self.store.read(record, offset, length as u32, ReadPurpose::Transfer(id, transfer));
        true
    }

    /// Returns the length of the next read for a link with this room: a link that takes little at a time has little in memory.
    fn piece_bytes(&self, room: u64) -> u64 {
        let most = self.config.piece_bytes_max as u64;
        room.clamp(PIECE_BYTES_MIN.min(most), most)
    }

    /// True if the limit of data read for links beyond their room is reached: it bounds the memory for peers
    /// that accept nothing.
    fn is_full_of_pieces(&self) -> bool {
        let beyond_room = |(_, link): (_, &Link)| link.bytes_read().saturating_sub(link.room);
        self.links.iter().map(beyond_room).sum::<u64>() >= self.config.limits.buffer_bytes_max
    }

    /// Handles a part of a payload read for a transfer.
    pub(super) fn transfer_data(
        &mut self,
        now: Instant,
        id: LinkId,
        transfer: TransferId,
        offset: u64,
        asked: u32,
        data: Bytes,
    ) {
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(flight) = link.transfers.get_mut(&transfer) else { return };
        let (asked, length) = (u64::from(asked), data.len() as u64);
        flight.pending -= 1;
        flight.pending_bytes -= asked;
        self.outgoing.wake(id);
        if flight.stale > 0 {
            flight.stale -= 1;
            return;
        }
        let Some(held) = self.holdings.get(&flight.record).filter(|_| !flight.cancelled) else {
            return;
        };
        if length == 0 || length > asked {
            // The storage has less than it reported as durable.
            let record = flight.record;
            self.storage_lost(now, record);
            return;
        }
        if length < asked {
            flight.read_at = offset.saturating_sub(held.payload_at()) + length;
            flight.stale = flight.pending;
        }
        flight.closing.update(&data);
        flight.push(data);
        if flight.is_read() {
            if flight.known_crc.is_some() && flight.closing.crc() != flight.known_crc {
                let record = flight.record;
                self.storage_lost(now, record);
                return;
            }
            let tail = codec::encoded(8, |out| flight.closing.encode_tail(out));
            flight.push(tail);
        }
    }

    /// Selects the next bundle for this link, and begins to read it.
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
            // While a transfer is being sent, the next one is prepared once the current one has been read, or
            // if it may overtake.
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
        self.outgoing.next_transfer += 1;
        let transfer = TransferId(self.outgoing.next_transfer);
        let held = self.holdings.get_mut(&record).expect("candidates are held");
        let (from, to) = match held.to_send.take_first(most) {
            Some(range) => range,
            None => {
                held.to_send_empty = false;
                (0, 0)
            }
        };
        held.transfers.push((id, transfer));
        // A link that has not refused it takes it.
        held.is_refused = false;
        let priority = held.head.priority();
        let mut head = held.head.range(from, to);
        let (known_crc, is_repeated) = (held.known_crc(), held.refusals > 0);
        let waits_for_head = self.read_head_from_disk(id, transfer, record);
        self.adapt(id, &mut head);
        let known_crc = known_crc.filter(|(header, _)| head.payload_header() == Some(header));
        // A peer that refuses a bundle may have found that the storage has changed it: the payload is compared with its CRC.
        let closing = match known_crc {
            Some((header, crc)) if !is_repeated => BundleEnd::known(&header, crc),
            _ => BundleEnd::of(&head),
        };
        let mut flight = OutgoingTransfer {
            record,
            priority,
            from,
            to,
            read_at: from,
            pending: 0,
            pending_bytes: 0,
            stale: 0,
            chunks: VecDeque::new(),
            buffered: 0,
            closing,
            known_crc: known_crc.map(|(_, crc)| crc),
            head_bytes: 0,
            acked: 0,
            handed: 0,
            waits_for_head,
            whole_head: None,
            cancelled: false,
        };
        if from == to {
            let tail = codec::encoded(8, |out| flight.closing.encode_tail(out));
            flight.push(tail);
        }
        let link = self.links.get_mut(id).expect("the link is usable");
        link.transfers.insert(transfer, flight);
        link.prepared = Some(transfer);
        self.custody_handed_out(now, record, id, from, to);
        self.requeue(record);
    }

    /// Opens the prepared transfer once its first piece has been read and the link is free for it.
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
        let more_urgent = |(other, _): &Rank| other.0 > priority;
        let fits = |record| matches!(self.fit(now, id, record), FittingLength::Bytes(_));
        if self.routing.queues.may_have(id, &self.links, more_urgent)
            && self.candidates(now, id).into_iter().any(|other| more_urgent(&other) && fits(other.1))
        {
            // A bundle of higher priority arrived while this one was being read.
            self.drop_prepared(now, id);
            return true;
        }
        let link = self.links.get_mut(id).expect("the link is usable");
        let whole = link.transfers.get_mut(&transfer).and_then(|flight| flight.whole_head.take());
        let held = self.holdings.get(&record).expect("prepared bundles are held");
        let mut head = whole.as_deref().unwrap_or(&held.head).range(from, to);
        self.address(now, held, &mut head);
        let is_part = head.fragment().is_some() && held.head.fragment() != head.fragment();
        self.counters.adapted += u64::from(self.adapt(id, &mut head));
        if self.must_keep(id, record, &head) {
            return self.keep_encrypted(now, id, record);
        }
        let bytes = head.to_bytes();
        let length = bytes.len() as u64 + (to - from) + head.tail_bytes();
        let link = self.links.get_mut(id).expect("the link is usable");
        let flight = link.transfers.get_mut(&transfer).expect("prepared transfers live");
        flight.head_bytes = bytes.len() as u64;
        flight.buffered += bytes.len();
        flight.chunks.push_front(bytes);
        link.prepared = None;
        link.filling.push_back(transfer);
        if is_part {
            self.counters.fragments_sent += 1;
        }
        self.outgoing.tell(id, BundlesRequest::Open { transfer, priority, length });
        true
    }

    /// Updates the blocks that change at each hop (RFC 9171 5.4 step 4).
    fn address(&self, now: Instant, held: &HeldBundle, head: &mut AnyHead) {
        let previous = (self.config.previous_node && !held.own).then(|| self.node.clone());
        head.address(previous, held.age_ms_now(now));
    }

    /// Returns the prepared transfer, of which nothing was sent, to the queue.
    pub(super) fn drop_prepared(&mut self, now: Instant, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(transfer) = link.prepared.take() else { return };
        let flight = link.transfers.remove(&transfer).expect("prepared transfers live");
        self.put_back(now, flight.record, id, transfer, flight.from, flight.to);
        self.settle_refused(now, flight.record);
    }

    /// Returns a range of a bundle to the queue.
    pub(super) fn put_back(
        &mut self,
        now: Instant,
        record: RecordId,
        id: LinkId,
        transfer: TransferId,
        from: u64,
        to: u64,
    ) {
        let Some(held) = self.holdings.get_mut(&record) else { return };
        held.transfers.retain(|flight| *flight != (id, transfer));
        if held.payload_bytes() == 0 {
            held.to_send_empty = true;
        } else {
            held.to_send.insert(from, to);
        }
        held.skip_released();
        if held.custody.is_some() {
            self.time.deadlines.at(now, DeadlineKind::Custody(record));
        }
        self.requeue(record);
    }

    /// Length of payload of a bundle that one transfer over this link may carry now.
    fn fit(&self, now: Instant, id: LinkId, record: RecordId) -> FittingLength {
        let link = self.links.get(id).expect("the link is usable");
        let held = self.holdings.get(&record).expect("candidates are held");
        let to_send = held.to_send.first().map_or(0, |(from, to)| to - from);
        let overhead = held.transfer_overhead();
        let most = link.longest_bundle().saturating_sub(overhead);
        if to_send > most && (!held.may_fragment() || most == 0) {
            return FittingLength::Never;
        }
        let most = most.min(self.length_for_relays(link, held));
        let Some(bytes) = link.capacity_bytes(now, self.time.clock.dtn_ms(now)) else {
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

    /// Maximum length of payload with which the relays behind a link forward a bundle soonest.
    ///
    /// Of `n` bytes in fragments of `f` bytes, headers of `h` bytes take the time of `n h / f` bytes, and each of
    /// `r` relays waits for `f` bytes, and again for each of `l` packets that are lost in a round trip: the sum is
    /// least at `f = √(n h / (r (1 + l)))`. Relays do not divide fragments again, as `n` is that of the whole bundle.
    fn length_for_relays(&self, link: &Link, held: &HeldBundle) -> u64 {
        let relays = link.config.relays.unwrap_or(self.config.relays);
        if relays == 0 || !held.may_fragment() {
            return u64::MAX;
        }
        let (adu_bytes, head_bytes) = (held.adu_bytes(), held.head_bytes + held.head.tail_bytes());
        let square = u128::from(adu_bytes) * u128::from(head_bytes)
            / (u128::from(relays) * (1 + u128::from(self.config.relay_losses)));
        let best = u64::try_from(square.isqrt()).unwrap_or(u64::MAX).max(1);
        // Equal fragments, of which a destination can reassemble so many.
        adu_bytes.div_ceil(adu_bytes.div_ceil(best).min(self.config.fragments_for_relays()))
    }

    /// Handles an acknowledgement of a part of a transfer.
    pub(super) fn transfer_acked(&mut self, id: LinkId, transfer: TransferId, up_to: u64) {
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(flight) = link.transfers.get_mut(&transfer) else { return };
        flight.acked = flight.acked.max(up_to);
        let record = flight.record;
        self.say_progress(record);
    }

    fn say_progress(&mut self, record: RecordId) {
        let Some(held) = self.holdings.get(&record) else { return };
        let Some(send) = held.send else { return };
        let safe = self.safe_prefix(held);
        let held = self.holdings.get_mut(&record).expect("it was just found");
        if safe > held.progress {
            held.progress = safe;
            self.indications.push(AppIndication::Progress { send, up_to: safe });
        }
    }

    /// Number of bytes from the beginning of the payload that the next hop has.
    pub(super) fn safe_prefix(&self, held: &HeldBundle) -> u64 {
        let waiting = held.to_send.first().map_or(held.payload_bytes(), |(from, _)| from);
        let transfers = held.transfers.iter().filter_map(|(id, transfer)| {
            self.links.get(*id)?.transfers.get(transfer).map(|flight| flight.from + flight.safe())
        });
        transfers.fold(waiting, u64::min)
    }

    /// Handles the acknowledgement of a complete transfer.
    pub(super) fn transfer_sent(&mut self, now: Instant, id: LinkId, transfer: TransferId) {
        let Some(flight) = self.end_transfer(id, transfer) else { return };
        let Some(held) = self.holdings.get_mut(&flight.record) else { return };
        held.transfers.retain(|other| *other != (id, transfer));
        held.refusals = 0;
        if held.all_handed_out() && held.transfers.is_empty() {
            self.forwarded(now, flight.record);
        } else {
            self.note_safe(flight.record);
            self.say_progress(flight.record);
            self.settle_refused(now, flight.record);
        }
    }

    /// Handles a bundle that the next hop has completely (RFC 9171 5.4 step 5).
    fn forwarded(&mut self, now: Instant, record: RecordId) {
        if is_copy(record) {
            return self.copy_sent(now, record);
        }
        self.counters.forwarded += 1;
        self.happened(record, BundleEvent::Forwarded);
        self.report_forwarded(now, record);
        if self.holdings[&record].custody.is_some() {
            return self.await_signal(now, record);
        }
        if let Some(send) = self.holdings[&record].send {
            self.end_send(send, Ok(()));
        }
        if self.holdings[&record].replication.is_some() {
            self.remember_passed(now, record);
        }
        self.remember_part(record);
        self.drop_bundle(record);
    }

    /// Records how much the next hop has, so that a restart does not resend it.
    fn note_safe(&mut self, record: RecordId) {
        let safe = self.safe_prefix(&self.holdings[&record]);
        if safe > 0 {
            self.note(record, Note::SafeUpTo(safe));
        }
    }

    fn end_transfer(&mut self, id: LinkId, transfer: TransferId) -> Option<OutgoingTransfer> {
        let link = self.links.get_mut(id)?;
        let flight = link.transfers.remove(&transfer)?;
        link.filling.retain(|other| *other != transfer);
        self.outgoing.wake(id);
        Some(flight).filter(|flight| !flight.cancelled)
    }

    /// Handles a transfer that failed.
    pub(super) fn transfer_failed(
        &mut self,
        now: Instant,
        id: LinkId,
        transfer: TransferId,
        reason: TransferFailure,
        acked: u64,
    ) {
        if reason == TransferFailure::Refused(RefuseReason::Completed) {
            // The peer has the complete bundle already (RFC 9174 5.2.4).
            return self.transfer_sent(now, id, transfer);
        }
        let Some(mut flight) = self.end_transfer(id, transfer) else { return };
        flight.acked = acked;
        let (record, from, to) = (flight.record, flight.from, flight.to);
        let Some(held) = self.holdings.get(&record) else { return };
        let resume = self.config.reactive_fragmentation
            && reason == TransferFailure::LinkDown
            && held.may_fragment()
            && flight.safe() > 0;
        if resume {
            // At least one byte must remain to be sent: the peer could not check the end of the part that it
            // has.
            let safe = flight.safe().min(to - from - 1);
            self.counters.payload_bytes_saved += safe;
            self.put_back(now, record, id, transfer, from + safe, to);
            self.note_safe(record);
            self.say_progress(record);
        } else {
            self.put_back(now, record, id, transfer, from, to);
            self.after_failure(now, id, record, reason, to - from);
        }
        self.settle_refused(now, record);
    }

    /// Cancels a transfer whose payload the storage could not read; the bundle waits.
    pub(super) fn transfer_read_failed(&mut self, now: Instant, id: LinkId, transfer: TransferId) {
        let flight = self.links.get(id).and_then(|link| link.transfers.get(&transfer));
        let Some(flight) = flight.filter(|flight| !flight.cancelled) else { return };
        let (record, from, to) = (flight.record, flight.from, flight.to);
        self.cancel_transfers(&[(id, transfer)]);
        self.put_back(now, record, id, transfer, from, to);
        self.rest(now, record);
    }

    /// Cancels every transfer of a bundle that is removed.
    pub(super) fn cancel_transfers(&mut self, transfers: &[(LinkId, TransferId)]) {
        for &(id, transfer) in transfers {
            let Some(link) = self.links.get_mut(id) else { continue };
            self.outgoing.wake(id);
            if link.prepared == Some(transfer) {
                link.prepared = None;
                link.transfers.remove(&transfer);
            } else if let Some(flight) = link.transfers.get_mut(&transfer) {
                flight.cancelled = true;
                flight.chunks.clear();
                flight.buffered = 0;
                link.filling.retain(|other| *other != transfer);
                self.outgoing.tell(id, BundlesRequest::Cancel { transfer });
            }
        }
    }
}

impl HeldBundle {
    /// Maximum number of bytes in a transfer of the bundle in addition to the payload.
    pub(super) fn transfer_overhead(&self) -> u64 {
        let custodian = if self.custody.is_some() && !self.own { CUSTODIAN_BYTES } else { 0 };
        self.head_bytes + self.head.tail_bytes() + HEAD_GROWTH_BYTES + custodian
    }
}

/// Length of payload that fits into a transfer.
enum FittingLength {
    /// At most this number of bytes.
    Bytes(u64),
    /// Nothing fits into the current contact.
    Later,
    /// The bundle cannot be sent over this link.
    Never,
}

impl OutgoingTransfer {
    /// Unsent bytes.
    fn unsent(&self) -> u64 {
        self.to - self.read_at + self.buffered as u64
    }
}

impl Link {
    /// Unsent bytes that were read or are being read for the link.
    fn bytes_read(&self) -> u64 {
        // All other transfers are completely sent.
        let open =
            self.filling.iter().chain(&self.prepared).filter_map(|transfer| self.transfers.get(transfer));
        open.map(|flight| flight.buffered as u64 + flight.pending_bytes).sum()
    }

    /// Record of the transfer that is prepared for the link.
    pub(super) fn prepared_record(&self) -> Option<RecordId> {
        self.prepared.and_then(|transfer| Some(self.transfers.get(&transfer)?.record))
    }

    /// Maximum length of a bundle on the link, bytes.
    pub(super) fn longest_bundle(&self) -> u64 {
        match self.config.bundle_bytes_max {
            0 => self.bundle_bytes_max,
            own => own.min(self.bundle_bytes_max),
        }
    }
}
