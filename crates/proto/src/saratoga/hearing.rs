//! Packets that arrive.

use super::endpoint::{Due, Endpoint, Key, Side};
use super::receiving::{self, DataEffect, Incoming, properties_of};
use super::sending::{self, Outgoing, failure_of};
use super::wire::{Data, Kind, Metadata, Outcome, Packet, Request, RequestKind, Status};
use crate::service::{FileFailure, FileProperties, FilesIndication, PeerId, Wish};
use crate::time::Instant;
use bytes::Bytes;

impl Endpoint {
    /// Processes a datagram.
    pub(super) fn hear(&mut self, now: Instant, from: PeerId, mut bytes: Bytes) {
        // A configured peer may send from another port than it receives on.
        let from = self.peer.unwrap_or(from);
        let Ok(packet) = Packet::decode(&mut bytes) else {
            self.counters.violations += 1;
            return;
        };
        self.heard_at = Some(now);
        match packet {
            Packet::Beacon(_) => self.counters.beacons_received += 1,
            Packet::Request(request) => self.hear_request(now, (from, request.session), request),
            Packet::Metadata(metadata) => self.hear_metadata(now, (from, metadata.session), metadata),
            Packet::Data(data) => self.hear_data(now, (from, data.session), &data),
            Packet::Status(status) => self.hear_status(now, (from, status.session), &status),
        }
    }

    // -- REQUEST ------------------------------------------------------------------------------------------------

    fn hear_request(&mut self, now: Instant, key: Key, request: Request) {
        self.counters.requests_received += 1;
        match request.kind {
            RequestKind::Get => self.hear_get(now, key, request.path, Wish::Get),
            RequestKind::Take => self.hear_get(now, key, request.path, Wish::Take),
            RequestKind::GetDirectory => self.hear_get(now, key, request.path, Wish::List),
            RequestKind::Put | RequestKind::Give => self.hear_put(now, key),
            RequestKind::Delete => self.hear_delete(key, request.path),
            RequestKind::Nothing => self.answer(key.0, Status::with_outcome(key.1, Outcome::Success)),
            RequestKind::Other(_) => {
                self.answer(key.0, Status::with_outcome(key.1, Outcome::UnsupportedRequest));
            }
        }
    }

    fn hear_get(&mut self, now: Instant, key: Key, path: String, wish: Wish) {
        if let Some(file) = self.outgoing.get_mut(&key) {
            // Another file may be under way with this number.
            let is_same = |(other, kind): &(String, Wish)| *other == path && *kind == wish;
            if !file.wanted.as_ref().is_some_and(is_same) {
                self.counters.violations += 1;
                self.answer(key.0, Status::with_outcome(key.1, Outcome::InUse));
                return;
            }
            if file.has_begun {
                self.waiting.add_due(Due::Metadata(key));
            }
            self.reschedule(Side::Sender, key);
            return;
        }
        if self.outgoing.len() >= self.config.incoming_sessions_max {
            self.counters.dropped += 1;
            self.answer(key.0, Status::with_outcome(key.1, Outcome::CannotSend));
            return;
        }
        let file = self.peer_file();
        let phase = sending::Phase::Wanted;
        let mut outgoing = Outgoing::new(file, key.1, phase, FileProperties::default(), 0);
        outgoing.wanted = Some((path.clone(), wish));
        outgoing.inactive_at = Some(now + self.config.inactivity_limit());
        self.begin_outgoing(now, key, outgoing);
        self.up.push_back(FilesIndication::Wanted { file, path, wish });
    }

    /// The answer says what this side has of the file: nothing, unless the transfer continues.
    fn hear_put(&mut self, now: Instant, key: Key) {
        self.forget_closed(key);
        if !self.incoming.contains_key(&key) && !self.begin_incoming(now, key) {
            self.answer(key.0, Status::with_outcome(key.1, Outcome::CannotReceive));
            return;
        }
        self.queue_status(key);
    }

    fn hear_delete(&mut self, key: Key, path: String) {
        if self.deletions.values().any(|other| *other == key) {
            return;
        }
        if !self.has_room_for_deletion() {
            self.counters.dropped += 1;
            return;
        }
        let file = self.peer_file();
        self.deletions.insert(file, key);
        self.up.push_back(FilesIndication::Remove { file, path });
    }

    // -- METADATA and DATA --------------------------------------------------------------------------------------

    /// Begins to receive a file. Returns false if there are too many.
    fn begin_incoming(&mut self, now: Instant, key: Key) -> bool {
        if self.incoming.len() >= self.config.incoming_sessions_max {
            self.counters.dropped += 1;
            return false;
        }
        let file = self.peer_file();
        self.counters.files_received += 1;
        self.files.insert(file, (Side::Receiver, key));
        self.incoming.insert(key, Incoming::new(file, key.1, receiving::Phase::Unnamed));
        self.note_number(Side::Receiver, key);
        self.refresh(now, key);
        true
    }

    /// Notes that something new of a file was received, or that its user made progress. Repetitions must not extend its life.
    pub(super) fn refresh(&mut self, now: Instant, key: Key) {
        if let Some(file) = self.incoming.get_mut(&key) {
            file.inactive_at = Some(now + self.config.inactivity_limit());
            self.reschedule(Side::Receiver, key);
        }
    }

    fn hear_metadata(&mut self, now: Instant, key: Key, metadata: Metadata) {
        if metadata.kind == Kind::Stream {
            if !metadata.ended {
                self.answer(key.0, Status::with_outcome(key.1, Outcome::CannotReceive));
            }
            return;
        }
        let known = |other: &Option<Metadata>| other.as_ref().map(properties_of);
        let properties = properties_of(&metadata);
        if metadata.ended {
            if let Some(file) = self.incoming.get(&key) {
                let file = file.file;
                self.fail(file, FileFailure::Ended);
            }
            return;
        }
        if let Some(closed) = self.closed.get(&key) {
            if closed.metadata.is_none() || known(&closed.metadata).as_ref() == Some(&properties) {
                self.answer_closed(key, None);
                return;
            }
            self.forget_closed(key);
        }
        // Another file of the same session takes the place of the one before.
        if let Some(file) = self.incoming.get(&key)
            && let Some(before) = known(&file.metadata)
        {
            if before == properties {
                return;
            }
            let file = file.file;
            self.fail(file, FileFailure::Ended);
        }
        if self.incoming.contains_key(&key) || self.begin_incoming(now, key) {
            self.refresh(now, key);
            self.name(now, key, metadata, properties);
        }
    }

    /// Sets the METADATA of a file that has none.
    fn name(&mut self, now: Instant, key: Key, metadata: Metadata, properties: FileProperties) {
        let is_too_long = metadata.entry.size > u128::from(self.config.file_bytes_max);
        let incoming = self.incoming.get_mut(&key).expect("it was just found or made");
        let fits = is_too_long || incoming.name(metadata);
        let (file, phase) = (incoming.file, incoming.phase.clone());
        if is_too_long || !fits {
            let (outcome, reason) = match is_too_long {
                true => (Outcome::TooLong, FileFailure::TooLong),
                false => (Outcome::Unspecified, FileFailure::Damaged),
            };
            self.counters.damaged += u64::from(!fits);
            self.refuse_incoming(key, outcome);
            if let receiving::Phase::Asking { .. } = phase {
                self.up.push_back(FilesIndication::Failed { file, reason, partial: None });
            }
            return;
        }
        match phase {
            receiving::Phase::Asking { .. } => {
                incoming.answer_at = None;
                let held = incoming.offered_partial.take().filter(|held| held.properties == properties);
                let continues = held.is_some();
                self.waiting.remove_due(Due::Request(Side::Receiver, key));
                self.up.push_back(FilesIndication::Begun { file, properties, continues });
                self.begin_receiving(now, key, held);
            }
            receiving::Phase::Unnamed => {
                incoming.phase = receiving::Phase::Offered;
                self.up.push_back(FilesIndication::Offered { file, properties });
            }
            receiving::Phase::Offered | receiving::Phase::Receiving => {
                unreachable!("only a file without METADATA gets it")
            }
        }
    }

    fn hear_data(&mut self, now: Instant, key: Key, data: &Data) {
        if data.kind == Kind::Stream {
            self.counters.violations += 1;
            return;
        }
        if !self.incoming.contains_key(&key) {
            if self.answer_closed(key, Some(data)) {
                self.counters.duplicates += 1;
                return;
            }
            if !self.begin_incoming(now, key) {
                return;
            }
        }
        let bytes_max = self.config.incoming_bytes_max.saturating_sub(self.held_bytes);
        let incoming = self.incoming.get_mut(&key).expect("it was just found or made");
        let (before, mut risen) = (incoming.held(), Vec::new());
        let effect = incoming.hear(data, bytes_max, &self.config, &mut risen);
        let (file, phase) = (incoming.file, incoming.phase.clone());
        self.held_bytes = self.held_bytes + incoming.held() - before;
        match effect {
            DataEffect::New(count) => {
                self.counters.packets_received += 1;
                self.counters.payload_received += count;
            }
            DataEffect::Duplicate => self.counters.duplicates += 1,
            DataEffect::Invalid => self.counters.violations += 1,
            DataEffect::Dropped => self.counters.dropped += 1,
            DataEffect::WrongEnd => {
                self.counters.damaged += 1;
                self.refuse_incoming(key, Outcome::Unspecified);
                if phase != receiving::Phase::Unnamed {
                    let reason = FileFailure::Damaged;
                    self.up.push_back(FilesIndication::Failed { file, reason, partial: None });
                }
                return;
            }
        }
        self.rise(key, risen);
        if let DataEffect::New(_) = effect {
            self.refresh(now, key);
        }
        self.advance(now, key);
    }

    // -- STATUS -------------------------------------------------------------------------------------------------

    fn hear_status(&mut self, now: Instant, key: Key, status: &Status) {
        self.counters.status_received += 1;
        if self.outgoing.contains_key(&key) {
            self.hear_status_of_outgoing(now, key, status);
        } else if let Some(incoming) = self.incoming.get_mut(&key) {
            let file = incoming.file;
            let is_asking = matches!(incoming.phase, receiving::Phase::Asking { .. });
            if status.outcome != Outcome::Success {
                self.fail(file, failure_of(status.outcome));
            } else if is_asking && !core::mem::replace(&mut incoming.was_answered, true) {
                self.refresh(now, key);
            }
        } else {
            self.counters.strangers += 1;
        }
    }

    fn hear_status_of_outgoing(&mut self, now: Instant, key: Key, status: &Status) {
        let late_at = now + self.config.answer_time();
        let outgoing = self.outgoing.get_mut(&key).expect("the caller has found it");
        let file = outgoing.file;
        match (status.outcome, outgoing.phase.clone()) {
            (_, sending::Phase::Wanted) => {}
            (Outcome::MetadataRequired, sending::Phase::Sending) if outgoing.has_begun => {
                self.waiting.add_due(Due::Metadata(key));
            }
            (Outcome::Success, sending::Phase::Deleting) => self.complete(key),
            (Outcome::Success, phase) => {
                let was_sent = outgoing.is_sent();
                outgoing.phase = sending::Phase::Sending;
                let effect = outgoing.hear(now, status, self.departures, &self.config);
                if effect.has_news || phase == sending::Phase::Asking {
                    outgoing.inactive_at = Some(now + self.config.inactivity_limit());
                    outgoing.answer_at = outgoing.answer_at.map(|_| late_at);
                }
                self.counters.violations += u64::from(effect.is_invalid);
                self.counters.holes_under_way += effect.under_way;
                self.counters.continued += u64::from(effect.continues);
                // No packet is left that would request the next STATUS.
                if outgoing.has_begun && !was_sent && outgoing.is_sent() {
                    self.waiting.add_due(Due::Probe(key));
                }
                if phase == sending::Phase::Asking {
                    outgoing.answer_at = None;
                    self.waiting.remove_due(Due::Request(Side::Sender, key));
                }
                if effect.is_complete {
                    self.complete(key);
                    return;
                }
                if status.lacks_metadata && outgoing.has_begun {
                    self.waiting.add_due(Due::Metadata(key));
                }
                self.up.extend(effect.progress.map(|up_to| FilesIndication::Progress { file, up_to }));
                self.offer_content(now, key);
            }
            (outcome, _) => self.fail(file, failure_of(outcome)),
        }
        self.reschedule(Side::Sender, key);
    }

    /// Ends a file that the peer has received completely, or a deletion.
    fn complete(&mut self, key: Key) {
        if let Some(outgoing) = self.remove_outgoing(key) {
            self.counters.files_completed += 1;
            self.up.push_back(FilesIndication::Done { file: outgoing.file });
        }
    }
}
