//! Incoming transfers: those that are not complete, and those that are over, which are remembered so that what is left of them is
//! discarded (draft-ietf-dtn-udpcl-04 3.6.2).
//!
//! Anyone can begin transfers, under any address. So nothing is reserved for an announced length, all memory counts against one
//! limit, and if it is exceeded, the sender with the most memory loses the transfer that it has not continued for the longest
//! time: a sender with no more than an equal share keeps what it has.

use super::config::{Config, Counters};
use super::wire::{self, Place, Transfer};
use crate::service::PeerId;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Memory of a transfer besides its segments, as counted against the limit, bytes.
pub(super) const TRANSFER_OVERHEAD_BYTES: u64 = 256;
/// Memory of a segment besides its data, as counted against the limit, bytes.
pub(super) const SEGMENT_OVERHEAD_BYTES: u64 = 128;

/// Sender and Transfer ID.
type Key = (PeerId, u64);

/// Complete transfer.
#[derive(Debug)]
pub(super) struct Complete {
    /// Total length, bytes.
    pub(super) length: u64,
    /// Bytes of the bundle, in order.
    pub(super) segments: Vec<Bytes>,
    /// Memory that remains counted until it is released, bytes.
    pub(super) memory: u64,
}

#[derive(Debug)]
enum State {
    Partial {
        total: u64,
        received: u64,
        /// Segments by their offsets.
        segments: BTreeMap<u64, Bytes>,
    },
    /// The user has the bundle.
    Complete,
    /// No more segments are accepted.
    Refused,
}

#[derive(Debug)]
struct Entry {
    state: State,
    expires_at: Instant,
}

impl Entry {
    fn memory(&self) -> u64 {
        let segments = match &self.state {
            State::Partial { received, segments, .. } => {
                received + SEGMENT_OVERHEAD_BYTES * segments.len() as u64
            }
            State::Complete | State::Refused => 0,
        };
        TRANSFER_OVERHEAD_BYTES + segments
    }
}

/// Transfers of one sender.
#[derive(Debug, Default)]
struct Sender {
    entries: BTreeMap<u64, Entry>,
    /// Transfers by the time at which they expire, and so by that of their last segment.
    by_time: BTreeSet<(Instant, u64)>,
    memory: u64,
}

/// Incoming transfers of all senders.
#[derive(Debug)]
pub(super) struct Reassembly {
    timeout: Duration,
    transfer_bytes_max: u64,
    bytes_max: u64,
    senders: BTreeMap<PeerId, Sender>,
    deadlines: BTreeSet<(Instant, Key)>,
    by_memory: BTreeSet<(u64, PeerId)>,
    /// Memory of all entries.
    memory: u64,
    /// Memory of complete transfers that the user has not accepted.
    risen: u64,
}

impl Reassembly {
    pub(super) fn new(config: &Config) -> Self {
        Reassembly {
            timeout: config.transfer_timeout,
            transfer_bytes_max: config.transfer_bytes_max,
            bytes_max: config.incoming_bytes_max,
            senders: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            by_memory: BTreeSet::new(),
            memory: 0,
            risen: 0,
        }
    }

    /// Number of transfers of which something is known.
    pub(super) fn len(&self) -> usize {
        self.deadlines.len()
    }

    /// Memory as counted against the limit, bytes.
    pub(super) fn memory(&self) -> u64 {
        self.memory + self.risen
    }

    /// Time at which the next transfer expires.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }

    /// Forgets the transfers that have expired.
    pub(super) fn expire(&mut self, now: Instant, counters: &mut Counters) {
        while let Some(&(at, key)) = self.deadlines.first()
            && at <= now
        {
            let entry = self.take(key).expect("it has a deadline");
            counters.transfers_expired += u64::from(matches!(entry.state, State::Partial { .. }));
        }
    }

    /// Releases the memory of a complete transfer.
    pub(super) fn release(&mut self, memory: u64) {
        self.risen -= memory;
    }

    /// Forgets which complete transfers the user has not accepted, and the transfers of senders that are numbered anew.
    pub(super) fn link_down(&mut self) {
        self.risen = 0;
        while let Some((&sender, _)) = self.senders.last_key_value()
            && sender != PeerId::CONFIGURED
        {
            let ids: Vec<u64> = self.senders[&sender].entries.keys().copied().collect();
            ids.into_iter().for_each(|id| drop(self.take((sender, id))));
        }
    }

    /// Takes a segment. Returns its transfer if that is complete; `may_rise` is false if the user cannot be given another one.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        from: PeerId,
        transfer: Transfer,
        may_rise: bool,
        counters: &mut Counters,
    ) -> Option<Complete> {
        let Transfer { id, place, data } = transfer;
        let length = data.len() as u64;
        let Place { total_bytes, offset } = place.unwrap_or(Place { total_bytes: length, offset: 0 });
        let is_within = offset.checked_add(length).is_some_and(|end| end <= total_bytes);
        if data.is_empty() || !is_within {
            counters.violations += 1;
            return None;
        }
        let key = (from, id);
        let known = self.take(key);
        let is_new = known.is_none();
        if is_new && total_bytes > self.transfer_bytes_max {
            counters.segments_refused += 1;
            return None;
        }
        let state = known.map_or_else(|| State::partial(total_bytes), |entry| entry.state);
        let mut entry = Entry { state, expires_at: now + self.timeout };
        let effect = entry.state.effect(total_bytes, offset, &data);
        let mut complete = None;
        match effect {
            Effect::Repeated => counters.duplicates += 1,
            Effect::Refused => counters.segments_refused += 1,
            Effect::Malformed => {
                counters.transfers_malformed += 1;
                entry.state = State::Refused;
            }
            Effect::NotABundle => {
                counters.not_bundles += 1;
                entry.state = State::Refused;
            }
            Effect::Completes if !may_rise => counters.dropped += 1,
            Effect::New | Effect::Completes => {
                let needed = length + SEGMENT_OVERHEAD_BYTES;
                if self.make_room(from, entry.memory() + needed, counters) {
                    counters.segments_received += 1;
                    complete = entry.state.add(offset, &data);
                } else {
                    counters.dropped += 1;
                }
            }
        }
        if let Some(complete) = &complete {
            self.risen += complete.memory;
        }
        let is_empty = matches!(&entry.state, State::Partial { segments, .. } if segments.is_empty());
        if !is_empty && (!is_new || self.make_room(from, entry.memory(), counters)) {
            self.put(key, entry);
        }
        complete
    }

    /// Frees memory until another `needed` bytes of a sender do not exceed the limit. Returns false if that would take what is
    /// due to others.
    fn make_room(&mut self, from: PeerId, needed: u64, counters: &mut Counters) -> bool {
        if self.risen + needed > self.bytes_max {
            return false;
        }
        while self.memory() + needed > self.bytes_max {
            let own = self.senders.get(&from).map_or(0, |sender| sender.memory);
            let largest = self.by_memory.iter().rev().find(|(_, sender)| *sender != from).copied();
            let victim = match largest {
                Some((memory, sender)) if memory > own + needed => sender,
                _ if own > 0 => from,
                _ => return false,
            };
            self.displace(victim, counters);
        }
        true
    }

    /// Forgets the transfer that a sender has not continued for the longest time.
    fn displace(&mut self, sender: PeerId, counters: &mut Counters) {
        let oldest = self.senders.get(&sender).and_then(|sender| sender.by_time.first());
        let &(_, id) = oldest.expect("a sender has transfers");
        let entry = self.take((sender, id)).expect("it is in the order");
        counters.transfers_displaced += u64::from(matches!(entry.state, State::Partial { .. }));
    }

    fn take(&mut self, (from, id): Key) -> Option<Entry> {
        let sender = self.senders.get_mut(&from)?;
        let entry = sender.entries.remove(&id)?;
        sender.by_time.remove(&(entry.expires_at, id));
        self.deadlines.remove(&(entry.expires_at, (from, id)));
        self.by_memory.remove(&(sender.memory, from));
        sender.memory -= entry.memory();
        self.memory -= entry.memory();
        if sender.entries.is_empty() {
            self.senders.remove(&from);
        } else {
            self.by_memory.insert((sender.memory, from));
        }
        Some(entry)
    }

    fn put(&mut self, (from, id): Key, entry: Entry) {
        let sender = self.senders.entry(from).or_default();
        self.by_memory.remove(&(sender.memory, from));
        sender.memory += entry.memory();
        self.memory += entry.memory();
        self.by_memory.insert((sender.memory, from));
        sender.by_time.insert((entry.expires_at, id));
        self.deadlines.insert((entry.expires_at, (from, id)));
        sender.entries.insert(id, entry);
    }
}

/// Effect of a segment on its transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// It is added.
    New,
    /// It is added and was the last one that was missing.
    Completes,
    /// It, or a part of it, was received before.
    Repeated,
    /// The transfer is refused.
    Refused,
    /// It contradicts the total length.
    Malformed,
    /// It shows that the transfer contains no bundle.
    NotABundle,
}

impl State {
    fn partial(total: u64) -> State {
        State::Partial { total, received: 0, segments: BTreeMap::new() }
    }

    /// Returns the effect of a segment, which is not empty and ends within the length that it announces.
    fn effect(&self, total_bytes: u64, offset: u64, data: &[u8]) -> Effect {
        let State::Partial { total, received, segments } = self else {
            return if let State::Complete = self { Effect::Repeated } else { Effect::Refused };
        };
        let end = offset + data.len() as u64;
        let before = segments.range(..end).next_back();
        if *total != total_bytes {
            Effect::Malformed
        } else if before.is_some_and(|(start, before)| start + before.len() as u64 > offset) {
            Effect::Repeated
        } else if offset == 0 && !wire::begins_bundle(data[0]) {
            Effect::NotABundle
        } else if received + data.len() as u64 == *total {
            Effect::Completes
        } else {
            Effect::New
        }
    }

    /// Adds a segment that overlaps no other. Returns the transfer if it is complete, which ends this state.
    fn add(&mut self, offset: u64, data: &[u8]) -> Option<Complete> {
        let State::Partial { total, received, segments } = self else { return None };
        // A slice would keep all of its datagram in memory, with whatever else that contains.
        segments.insert(offset, Bytes::copy_from_slice(data));
        *received += data.len() as u64;
        if received != total {
            return None;
        }
        let (length, segments) = (*total, core::mem::take(segments));
        let memory = length + SEGMENT_OVERHEAD_BYTES * segments.len() as u64;
        *self = State::Complete;
        Some(Complete { length, segments: segments.into_values().collect(), memory })
    }
}
