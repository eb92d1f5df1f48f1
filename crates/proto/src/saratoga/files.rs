//! Files of an endpoint, from their beginning to their end: the requests of the user, and sessions that have ended.

use super::endpoint::{Closed, Due, Endpoint, Key, Side, State};
use super::receiving::{self, Incoming};
use super::sending::{self, Outgoing, outcome_of};
use super::wire::{Data, Outcome, Packet, RequestKind, Stamp, Status, Width};
use crate::codec::crc::crc32c;
use crate::service::{FileFailure, FileId, FileProperties, FilesIndication, PartialFile, PeerId, Wish};
use crate::time::Instant;
use bytes::Bytes;

/// Maximum number of deletions that wait for the user.
const DELETIONS_MAX: usize = 64;

impl Endpoint {
    /// Returns a number for a session that this side begins: it follows from the properties of the file, so that a transfer
    /// that breaks off continues with the same. The number of a received file that has ended is not used while it is
    /// remembered: late packets would be taken for those of the next one.
    pub(super) fn new_session(&self, side: Side, path: &str, length: u64, modified: u32) -> Key {
        let mut bytes = path.as_bytes().to_vec();
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&modified.to_be_bytes());
        (PeerId::CONFIGURED, self.numbers.first_free(side, crc32c(&bytes)))
    }

    /// Notes whether the number of a session is in use, after its beginning or its end, or after its end was forgotten.
    pub(super) fn note_number(&mut self, side: Side, key: Key) {
        if key.0 == PeerId::CONFIGURED {
            let is_used = match side {
                Side::Sender => self.outgoing.contains_key(&key),
                Side::Receiver => self.incoming.contains_key(&key) || self.closed.contains_key(&key),
            };
            self.numbers.set(side, key.1, is_used);
        }
    }

    /// Returns a number for a file that the peer begins.
    pub(super) fn peer_file(&mut self) -> FileId {
        self.next_file += 1;
        FileId::Peer(self.next_file - 1)
    }

    /// Returns true, with the failure of the file, if there is no peer to ask.
    pub(super) fn has_no_peer(&mut self, file: FileId) -> bool {
        let has_none = self.listening || (self.state == State::Up && self.peer.is_none());
        if has_none {
            self.up.push_back(FilesIndication::Failed { file, reason: FileFailure::Closed, partial: None });
        }
        has_none
    }

    pub(super) fn put(
        &mut self,
        now: Instant,
        file: u64,
        properties: FileProperties,
        available: u64,
        asks: bool,
    ) {
        let file = FileId::Own(file);
        if self.has_no_peer(file) {
            return;
        }
        let key = self.new_session(Side::Sender, &properties.path, properties.length, properties.modified);
        let phase = if asks { sending::Phase::Asking } else { sending::Phase::Sending };
        let mut outgoing = Outgoing::new(file, key.1, phase, properties, available);
        outgoing.inactive_at = asks.then(|| now + self.config.inactivity_limit());
        self.begin_outgoing(now, key, outgoing);
        if asks {
            self.waiting.add_due(Due::Request(Side::Sender, key));
        }
    }

    /// Adds a file to send.
    pub(super) fn begin_outgoing(&mut self, now: Instant, key: Key, file: Outgoing) {
        self.counters.files_sent += 1;
        self.files.insert(file.file, (Side::Sender, key));
        self.outgoing.insert(key, file);
        self.note_number(Side::Sender, key);
        self.offer_content(now, key);
    }

    pub(super) fn get(
        &mut self,
        now: Instant,
        file: u64,
        path: String,
        wish: Wish,
        held: Option<PartialFile>,
    ) {
        let file = FileId::Own(file);
        if self.has_no_peer(file) {
            return;
        }
        let key = self.new_session(Side::Receiver, &path, wish as u64, 0);
        let mut incoming = Incoming::new(file, key.1, receiving::Phase::Asking { path, wish });
        incoming.offered_partial = held;
        incoming.inactive_at = Some(now + self.config.inactivity_limit());
        self.counters.files_received += 1;
        self.files.insert(file, (Side::Receiver, key));
        self.incoming.insert(key, incoming);
        self.note_number(Side::Receiver, key);
        self.waiting.add_due(Due::Request(Side::Receiver, key));
        self.reschedule(Side::Receiver, key);
    }

    pub(super) fn delete(&mut self, now: Instant, file: u64, path: String) {
        let file = FileId::Own(file);
        if self.has_no_peer(file) {
            return;
        }
        let key = self.new_session(Side::Sender, &path, u64::from(RequestKind::Delete.code()), 0);
        let properties = FileProperties { path, ..FileProperties::default() };
        let mut outgoing = Outgoing::new(file, key.1, sending::Phase::Deleting, properties, 0);
        outgoing.inactive_at = Some(now + self.config.inactivity_limit());
        self.begin_outgoing(now, key, outgoing);
        self.waiting.add_due(Due::Request(Side::Sender, key));
    }

    pub(super) fn provide(&mut self, now: Instant, file: FileId, properties: FileProperties, available: u64) {
        let Some((key, outgoing)) = self.outgoing_file(file) else { return };
        if outgoing.phase == sending::Phase::Wanted {
            outgoing.provide(properties, available);
            self.offer_content(now, key);
        }
    }

    pub(super) fn outgoing_file(&mut self, file: FileId) -> Option<(Key, &mut Outgoing)> {
        let (Side::Sender, key) = *self.files.get(&file)? else { return None };
        Some((key, self.outgoing.get_mut(&key)?))
    }

    /// Lists a file among those with content to read; one without any content is only announced.
    pub(super) fn offer_content(&mut self, now: Instant, key: Key) {
        let Some(file) = self.outgoing.get_mut(&key) else { return };
        self.waiting.add_content(key, file.has_fill(), file.has_new(self.config.packet_bytes));
        if file.phase == sending::Phase::Sending && file.is_sent() && !file.has_begun {
            self.begin_sending(now, key);
            self.waiting.add_due(Due::Probe(key));
        }
        self.reschedule(Side::Sender, key);
    }

    pub(super) fn begin_sending(&mut self, now: Instant, key: Key) {
        let Some(file) = self.outgoing.get_mut(&key).filter(|file| !file.has_begun) else { return };
        file.has_begun = true;
        file.inactive_at = Some(now + self.config.inactivity_limit());
        file.request_at = Some(now + self.config.status_interval);
        file.metadata_copies = self.config.copies - 1;
        self.waiting.add_due(Due::Metadata(key));
    }

    pub(super) fn content(&mut self, file: FileId, offset: u64, data: Bytes) {
        let Some((key, outgoing)) = self.outgoing_file(file) else { return };
        if let Some(ready) = outgoing.content(offset, data) {
            self.reads -= 1;
            self.waiting.add_ready(key, ready);
        }
    }

    pub(super) fn accept(&mut self, now: Instant, file: FileId, held: Option<PartialFile>) {
        let Some((Side::Receiver, key)) = self.files.get(&file).copied() else { return };
        if self.incoming.get(&key).is_some_and(|incoming| incoming.phase == receiving::Phase::Offered) {
            self.refresh(now, key);
            self.begin_receiving(now, key, held);
        }
    }

    /// Begins to pass on a file. `Begun` was indicated, or the user has accepted it.
    pub(super) fn begin_receiving(&mut self, now: Instant, key: Key, held: Option<PartialFile>) {
        let Some(incoming) = self.incoming.get_mut(&key) else { return };
        self.counters.continued += u64::from(held.is_some());
        let before = incoming.held();
        let bytes_max = self.config.incoming_bytes_max.saturating_sub(self.held_bytes);
        let (pieces, dropped) = incoming.begin(held, bytes_max, &self.config);
        self.held_bytes = self.held_bytes + incoming.held() - before;
        self.counters.dropped += dropped;
        self.rise(key, pieces);
        self.advance(now, key);
    }

    /// Passes on new pieces of a file, but not those with which it is damaged: the user would have all of it.
    pub(super) fn rise(&mut self, key: Key, pieces: Vec<(u64, Bytes)>) {
        if let Some(incoming) = self.incoming.get(&key).filter(|incoming| !incoming.is_damaged()) {
            let file = incoming.file;
            let piece = |(offset, data)| FilesIndication::Piece { file, offset, data };
            self.up.extend(pieces.into_iter().map(piece));
        }
    }

    pub(super) fn stored(&mut self, now: Instant, file: FileId, start: u64, end: u64) {
        let Some((Side::Receiver, key)) = self.files.get(&file).copied() else { return };
        let Some(incoming) = self.incoming.get_mut(&key) else { return };
        let freed = incoming.store(start, end);
        self.held_bytes -= freed;
        if freed > 0 {
            self.refresh(now, key);
        }
        self.advance(now, key);
    }

    /// Ends a file that is received completely, or plans its next STATUS.
    pub(super) fn advance(&mut self, now: Instant, key: Key) {
        let Some(incoming) = self.incoming.get_mut(&key) else { return };
        if incoming.is_damaged() {
            self.counters.damaged += 1;
            let file = incoming.file;
            self.refuse_incoming(key, Outcome::Unspecified);
            self.up.push_back(FilesIndication::Failed { file, reason: FileFailure::Damaged, partial: None });
            return;
        }
        if incoming.is_safe() {
            self.counters.files_accepted += 1;
            let file = incoming.file;
            let status = incoming.status(now, self.packet_bytes, &self.config);
            self.remove_incoming(key, Some(Outcome::Success));
            for _ in 0..self.config.copies {
                self.answer(key.0, completed(status.clone()));
            }
            self.up.push_back(FilesIndication::Done { file });
            return;
        }
        let is_open = matches!(incoming.phase, receiving::Phase::Unnamed | receiving::Phase::Receiving);
        if is_open && incoming.plan_status(now, self.packet_bytes, &self.config) {
            self.queue_status(key);
        }
        self.reschedule(Side::Receiver, key);
    }

    pub(super) fn queue_status(&mut self, key: Key) {
        if let Some(incoming) = self.incoming.get_mut(&key)
            && !core::mem::replace(&mut incoming.status_is_queued, true)
        {
            self.waiting.add_status(key);
        }
    }

    /// Queues a STATUS without a session.
    pub(super) fn answer(&mut self, to: PeerId, status: Status) {
        self.answer_with(to, &status.into());
    }

    fn answer_with(&mut self, to: PeerId, packet: &Packet) {
        self.counters.dropped += match self.state {
            State::Up => self.waiting.add_answer(to, packet.to_bytes()),
            _ => 1,
        };
    }

    /// Ends the reception of a file with an outcome that the peer learns, and learns again if it asks.
    pub(super) fn refuse_incoming(&mut self, key: Key, outcome: Outcome) {
        self.counters.files_lost += 1;
        self.remove_incoming(key, Some(outcome));
        self.answer(key.0, Status::with_outcome(key.1, outcome));
    }

    /// Removes a file that is received, and remembers how it has ended.
    pub(super) fn remove_incoming(&mut self, key: Key, outcome: Option<Outcome>) {
        let Some(incoming) = self.incoming.remove(&key) else { return };
        self.held_bytes -= incoming.held();
        self.files.remove(&incoming.file);
        self.deadlines.remove((Side::Receiver, key), incoming.deadline);
        self.waiting.remove_due(Due::Request(Side::Receiver, key));
        if incoming.status_is_queued {
            self.waiting.remove_status(key);
        }
        if let Some(outcome) = outcome.filter(|_| self.config.closed_sessions_max > 0) {
            self.remember_end(key, Closed { metadata: incoming.metadata, outcome });
        }
        self.note_number(Side::Receiver, key);
    }

    /// Remembers a received file that has ended; the oldest one is forgotten if there are too many.
    fn remember_end(&mut self, key: Key, closed: Closed) {
        if self.closed.insert(key, closed).is_none() {
            self.closed_order.push_back(key);
        }
        if self.closed_order.len() > self.config.closed_sessions_max
            && let Some(oldest) = self.closed_order.pop_front()
        {
            self.closed.remove(&oldest);
            self.note_number(Side::Receiver, oldest);
        }
    }

    /// Forgets that a session has ended, because it begins anew.
    pub(super) fn forget_closed(&mut self, key: Key) {
        if self.closed.remove(&key).is_some() {
            self.closed_order.retain(|other| *other != key);
            self.note_number(Side::Receiver, key);
        }
    }

    /// Removes a file that is sent.
    pub(super) fn remove_outgoing(&mut self, key: Key) -> Option<Outgoing> {
        let file = self.outgoing.remove(&key)?;
        self.note_number(Side::Sender, key);
        self.files.remove(&file.file);
        self.deadlines.remove((Side::Sender, key), file.deadline);
        self.reads -= file.reads();
        self.waiting.remove_content(key);
        for due in [Due::Request(Side::Sender, key), Due::Metadata(key), Due::Probe(key)] {
            self.waiting.remove_due(due);
        }
        Some(file)
    }

    /// Ends a file without its completion.
    pub(super) fn fail(&mut self, file: FileId, reason: FileFailure) {
        let Some((side, key)) = self.files.get(&file).copied() else { return };
        let partial = match side {
            Side::Sender => {
                self.counters.files_failed += 1;
                self.remove_outgoing(key);
                None
            }
            Side::Receiver => {
                self.counters.files_lost += 1;
                let partial = self.incoming.get(&key).and_then(Incoming::partial);
                // A silent peer may continue; late packets of a transfer that was ended must not begin it anew.
                let is_over = matches!(reason, FileFailure::Closed | FileFailure::Ended);
                self.remove_incoming(key, is_over.then(|| outcome_of(reason)));
                partial
            }
        };
        self.up.push_back(FilesIndication::Failed { file, reason, partial });
    }

    /// Ends a file because the user wants it so.
    pub(super) fn cancel(&mut self, file: FileId, reason: FileFailure) {
        if let Some(key) = self.deletions.remove(&file) {
            self.counters.refused += 1;
            self.answer(key.0, Status::with_outcome(key.1, outcome_of(reason)));
            return;
        }
        let Some((side, key)) = self.files.get(&file).copied() else { return };
        match side {
            Side::Receiver => {
                self.counters.refused += 1;
                self.refuse_incoming(key, outcome_of(reason));
            }
            Side::Sender => {
                let Some(outgoing) = self.remove_outgoing(key) else { return };
                self.counters.files_failed += 1;
                if outgoing.phase == sending::Phase::Wanted {
                    self.counters.refused += 1;
                    self.answer(key.0, Status::with_outcome(key.1, outcome_of(reason)));
                } else if outgoing.has_begun && self.state == State::Up {
                    self.answer_with(key.0, &outgoing.metadata(true).into());
                }
            }
        }
    }

    pub(super) fn removed(&mut self, file: FileId) {
        if let Some(key) = self.deletions.remove(&file) {
            self.answer(key.0, Status::with_outcome(key.1, Outcome::Success));
        }
    }

    /// Returns the packet that a DATA packet is answered with while its file is unknown here.
    pub(super) fn answer_closed(&mut self, key: Key, data: Option<&Data>) -> bool {
        let Some(closed) = self.closed.get(&key) else { return false };
        if data.is_none_or(|data| data.wants_status) {
            let status = status_of_closed(key.1, closed, data.and_then(|data| data.stamp));
            self.answer(key.0, status);
        }
        true
    }

    /// Returns true if another deletion may wait for the user.
    pub(super) fn has_room_for_deletion(&self) -> bool {
        self.deletions.len() < DELETIONS_MAX
    }
}

/// Returns the STATUS of a file that is received completely.
fn completed(status: Status) -> Status {
    Status {
        voluntary: true,
        incomplete: false,
        lacks_metadata: false,
        in_response_to: status.progress,
        holes: Vec::new(),
        ..status
    }
}

/// Returns the STATUS that answers a packet of a file that has ended.
fn status_of_closed(id: u32, closed: &Closed, stamp: Option<Stamp>) -> Status {
    let plain = Status { stamp, ..Status::with_outcome(id, closed.outcome) };
    match &closed.metadata {
        Some(metadata) if closed.outcome == Outcome::Success => {
            let width = metadata.width.max(Width::of(metadata.entry.size));
            completed(Status { width, progress: metadata.entry.size, ..plain })
        }
        _ => plain,
    }
}
