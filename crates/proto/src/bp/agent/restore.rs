//! Start of the agent: restores the bundles from the storage.
//!
//! ```text
//!   List --> headers are read, several at a time --> a boot record is stored --> ready --> bundles are dispatched in portions
//! ```
//!
//! A received bundle without a seal is the prefix that had arrived, and becomes a fragment of that length (unless it is too
//! short, or must not be fragmented). One that is complete but has no seal is verified first. A bundle of this node without a
//! seal was never accepted, and is removed. Records of an unknown kind or version are left unchanged.

use crate::bp::{CreationTimestamp, DecodePolicy, DtnTime};
use crate::codec::DecodeError;
use crate::service::{Breach, ManagementIndication, RecordId};
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};

use super::Agent;
use super::clock::{DeadlineKind, ExpiryTime, millis};
use super::custody::Custody;
use super::delivery::Tombstone;
use super::head::{AnyHead, BundleEnd, decode_own_head};
use super::held::{BundleState, HeldBundle};
use super::holdings::{VISIT_PAUSE, VISITED_AT_ONCE};
use super::prefix_read::PrefixRead;
use super::record::{BootBody, HEADER_BYTES, NOTE_BYTES, Note, RecordHeader, RecordKind, TombstoneBody};
use super::secret::Secret;
use super::store::ReadPurpose;
use super::taken::TakenPayload;
use super::verifying::Verifying;

/// Maximum number of records read concurrently.
const READS_MAX: usize = 256;
/// Length of the first read of a record, bytes.
const FIRST_READ_BYTES: u32 = 2048;
/// Number of times that a record is read again because the device has failed, before the record is left for the next start.
const REPEATED_READS_MAX: u32 = 3;
/// Time after which such a record is read again.
const REPEATED_READ_AFTER: Duration = Duration::from_secs(2);
/// Maximum number of notes read after a bundle; the last ones are read.
const NOTES_MAX: u64 = 1024;

/// Progress of the start.
#[derive(Debug, Default)]
enum Phase {
    /// The list of records was requested from the storage.
    #[default]
    Listing,
    /// Records are being read.
    Reading(Box<Restore>),
    /// The number of this start is being stored.
    Booting { record: RecordId, old: Vec<RecordId> },
    /// The start is complete.
    Ready,
}

/// Position of the start number in a record ID.
const BOOT_SHIFT: u32 = 40;

/// State of the start, and the numbers that contain it.
#[derive(Debug, Default)]
pub(super) struct Startup {
    phase: Phase,
    /// Number of earlier starts of the node.
    boot: u64,
    /// Number of records made in this start.
    records: u64,
    /// Number of bundles made in this start.
    next_sequence: u64,
    /// Secret known only to this node's store.
    secret: Secret,
    /// Record with the number of this start and the clock state.
    boot_record: RecordId,
    /// Earlier such records, removed once the new one is durable.
    old_boots: Vec<RecordId>,
    /// Rules for bundles that are in the store.
    stored_policy: DecodePolicy,
    /// Bundles found, until they are dispatched; in order once the agent is ready.
    found: VecDeque<RecordId>,
    /// True if the found bundles are aged as they are dispatched, because there was a clock at the end of the start.
    ages_found: bool,
    /// Records found whose age only a clock can tell.
    age_unknown: VecDeque<RecordId>,
    /// True if the deadline of the next portion of them is set.
    is_aging: bool,
    pub(super) verifying: BTreeMap<RecordId, Verifying>,
}

impl Startup {
    /// Creates the state before anything was read.
    pub(super) fn new(stored_policy: DecodePolicy) -> Self {
        Startup { stored_policy, ..Startup::default() }
    }

    /// True once the storage has been read.
    pub(super) fn is_ready(&self) -> bool {
        matches!(self.phase, Phase::Ready)
    }

    /// Time at which records are read again, while the storage is read.
    pub(super) fn next_read(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Reading(restore) => restore.resting.front().map(|(at, _, _)| *at),
            _ => None,
        }
    }

    /// True while the start waits for this record, which contains its number.
    pub(super) fn boots_with(&self, record: RecordId) -> bool {
        matches!(&self.phase, Phase::Booting { record: boot, .. } if *boot == record)
    }

    /// Returns an unused record ID, which contains the number of this start.
    pub(super) fn next_record(&mut self) -> RecordId {
        self.records += 1;
        RecordId(self.boot << BOOT_SHIFT | self.records)
    }

    /// True if this record was made before this start.
    pub(super) fn was_found(&self, record: RecordId) -> bool {
        record < RecordId(self.boot << BOOT_SHIFT)
    }

    /// Lower bound of the records that are not made yet.
    pub(super) fn first_later_record(&self) -> RecordId {
        RecordId(self.boot << BOOT_SHIFT | (self.records + 1))
    }

    /// Creation timestamp that this node has never used, at this time, or without a time.
    pub(super) fn next_timestamp(&mut self, dtn_ms: Option<u64>) -> CreationTimestamp {
        let count = self.next_sequence;
        self.next_sequence += 1;
        match dtn_ms.filter(|dtn_ms| *dtn_ms > 0) {
            Some(dtn_ms) => {
                CreationTimestamp { time: DtnTime(dtn_ms), sequence: count << 8 | self.boot & 0xff }
            }
            None => CreationTimestamp { time: DtnTime::UNKNOWN, sequence: self.boot << 32 | count },
        }
    }

    /// Secret known only to this node's store.
    pub(super) fn secret(&self) -> Secret {
        self.secret
    }

    /// Rules for bundles that are in the store.
    pub(super) fn stored_policy(&self) -> DecodePolicy {
        self.stored_policy
    }

    /// Raises the limit on stored heads to that on received ones.
    pub(super) fn raise_head_bytes_max(&mut self, bytes: u32) {
        self.stored_policy.head_bytes_max = self.stored_policy.head_bytes_max.max(bytes);
    }

    /// True for the record with the number of this start and the clock state.
    pub(super) fn is_clock_record(&self, record: RecordId) -> bool {
        record == self.boot_record
    }

    /// True if this record has a restored bundle that waits for its dispatch.
    pub(super) fn is_undispatched(&self, record: RecordId) -> bool {
        self.is_ready() && self.was_found(record) && self.found.front().is_some_and(|first| record >= *first)
    }

    /// Takes the earlier records with a clock state.
    pub(super) fn take_old_boots(&mut self) -> Vec<RecordId> {
        core::mem::take(&mut self.old_boots)
    }

    /// Ends the verification of a bundle that is removed.
    pub(super) fn stop_verifying(&mut self, record: RecordId) {
        self.verifying.remove(&record);
    }
}

#[cfg(test)]
impl Startup {
    /// Record with the number of this start and the clock state.
    pub(super) fn clock_record(&self) -> RecordId {
        self.boot_record
    }
}

/// State of the restore.
#[derive(Debug, Default)]
pub(super) struct Restore {
    waiting: VecDeque<(RecordId, u64)>,
    reading: BTreeMap<RecordId, RecordRead>,
    boot: Option<u64>,
    /// Latest boot record, with the secret of the store.
    last_boot: Option<(RecordId, Secret, BootBody)>,
    /// Tombstones found; their age is computed once the clock state is known.
    tombstones: Vec<(TakenPayload, FoundTombstone)>,
    old_boots: Vec<RecordId>,
    /// Number of times that the device has failed at a record.
    device_failures: BTreeMap<RecordId, u32>,
    /// Records at which it has failed, with their lengths, in the order in which they are read again.
    resting: VecDeque<(Instant, RecordId, u64)>,
}

/// Tombstone without its key. Times in milliseconds.
#[derive(Debug)]
struct FoundTombstone {
    record: RecordId,
    length: u64,
    taken_dtn_ms: u64,
    expires_dtn_ms: u64,
    remaining_ms: u64,
}

/// Record that is being read.
#[derive(Debug)]
struct RecordRead {
    length: u64,
    step: ReadStep,
}

#[derive(Debug)]
enum ReadStep {
    /// Beginning of the record.
    Start(PrefixRead),
    /// Blocks after a payload of version 6, which determine the position of the notes.
    Tail(Box<HeldBundle>, PrefixRead),
    /// Data of security blocks after a bundle of this node.
    SecurityData(Box<HeldBundle>),
    /// The seal, and then the last notes.
    Notes { held: Box<HeldBundle>, sealed: bool },
}

impl Agent {
    /// Handles the list of records from the storage.
    pub(super) fn listed(&mut self, now: Instant, records: Vec<(RecordId, u64)>) {
        if !matches!(self.startup.phase, Phase::Listing) {
            self.counters.ignored += 1;
            return;
        }
        // A start whose boot record is torn has left its number in the record IDs.
        let boot = records.iter().map(|(record, _)| record.0 >> BOOT_SHIFT).max();
        self.startup.phase =
            Phase::Reading(Box::new(Restore { waiting: records.into(), boot, ..Restore::default() }));
        self.look_further(now);
    }

    fn restore(&mut self) -> &mut Restore {
        match &mut self.startup.phase {
            Phase::Reading(restore) => restore,
            _ => unreachable!("only asked while records are read"),
        }
    }

    fn look_further(&mut self, now: Instant) {
        while let Phase::Reading(restore) = &mut self.startup.phase
            && restore.reading.len() < READS_MAX
            && let Some((record, length)) = restore.waiting.pop_front()
        {
            self.read_start(record, length, PrefixRead::first(FIRST_READ_BYTES));
        }
        if let Phase::Reading(restore) = &self.startup.phase
            && restore.reading.is_empty()
            && restore.resting.is_empty()
        {
            self.boot(now);
        }
    }

    fn read_start(&mut self, record: RecordId, length: u64, prefix: PrefixRead) {
        self.restore().reading.insert(record, RecordRead { length, step: ReadStep::Start(prefix) });
        self.store.read(record, 0, prefix.bytes, ReadPurpose::Restore);
    }

    fn read_tail(&mut self, record: RecordId, length: u64, held: Box<HeldBundle>, prefix: PrefixRead) {
        let at = held.payload_at() + held.payload_bytes();
        self.restore().reading.insert(record, RecordRead { length, step: ReadStep::Tail(held, prefix) });
        self.store.read(record, at, prefix.bytes, ReadPurpose::Restore);
    }

    /// Reads the records again at which the device has failed some time ago.
    pub(super) fn repeat_reads(&mut self, now: Instant) {
        while let Phase::Reading(restore) = &mut self.startup.phase
            && restore.resting.front().is_some_and(|(at, _, _)| *at <= now)
        {
            let due = restore.resting.pop_front();
            restore.waiting.extend(due.map(|(_, record, length)| (record, length)));
        }
        self.look_further(now);
    }

    /// Handles a part of a record that was read.
    pub(super) fn restore_data(&mut self, now: Instant, record: RecordId, offset: u64, data: Bytes) {
        let Phase::Reading(restore) = &mut self.startup.phase else { return };
        let Some(RecordRead { length, step }) = restore.reading.remove(&record) else { return };
        match step {
            ReadStep::Start(prefix) => self.look_at_start(now, record, length, data, prefix),
            ReadStep::Tail(held, prefix) => self.look_at_tail(record, length, data, held, prefix),
            ReadStep::SecurityData(held) => self.look_at_security_data(record, length, &data, held),
            ReadStep::Notes { held, sealed } => {
                self.look_at_notes(record, length, offset, &data, held, sealed)
            }
        }
        self.look_further(now);
    }

    /// Handles a record that could not be read. If the device has failed, the record is read again later, and after a few attempts left
    /// unchanged for the next start. If something in it is lost permanently, as much as possible of it is used.
    pub(super) fn restore_failed(&mut self, now: Instant, record: RecordId, lost: bool) {
        let Phase::Reading(restore) = &mut self.startup.phase else { return };
        let Some(RecordRead { length, step }) = restore.reading.remove(&record) else { return };
        if lost {
            self.start_lost(record, length, step);
        } else {
            let failures = restore.device_failures.entry(record).or_default();
            *failures += 1;
            if *failures <= REPEATED_READS_MAX {
                restore.resting.push_back((now + REPEATED_READ_AFTER, record, length));
            } else {
                self.counters.records_unread += 1;
            }
        }
        self.look_further(now);
    }

    fn start_lost(&mut self, record: RecordId, length: u64, step: ReadStep) {
        match step {
            // Possibly only what was appended to the bundle is damaged.
            ReadStep::Start(prefix) => match prefix.shorter() {
                Some(prefix) => self.read_start(record, length, prefix),
                None => self.lost_at_start(record),
            },
            ReadStep::Tail(held, prefix) => match prefix.shorter() {
                Some(prefix) => self.read_tail(record, length, held, prefix),
                None => self.lost_at_start(record),
            },
            ReadStep::Notes { mut held, .. } => {
                // Possibly only a note is damaged: the bundle itself is verified.
                held.closed = true;
                held.state = BundleState::Verifying;
                self.insert_found(record, held);
            }
            ReadStep::SecurityData(_) => self.lost_at_start(record),
        }
    }

    /// Removes a record of which too much is lost.
    fn lost_at_start(&mut self, record: RecordId) {
        self.counters.deleted_storage += 1;
        self.store.remove(record);
    }

    fn look_at_start(
        &mut self,
        now: Instant,
        record: RecordId,
        length: u64,
        data: Bytes,
        prefix: PrefixRead,
    ) {
        let mut input = data.clone();
        let header = match RecordHeader::decode(&mut input) {
            Ok(header) => header,
            Err(DecodeError::Incomplete) if (data.len() as u64) < length => {
                return self.look_again(record, length, data.len(), prefix);
            }
            Err(DecodeError::Incomplete) => return self.too_short(record),
            Err(_) => {
                self.counters.records_foreign += 1;
                return;
            }
        };
        match header.kind {
            RecordKind::Boot => {
                if let Ok(body) = BootBody::decode(&mut input) {
                    let restore = self.restore();
                    restore.boot = restore.boot.max(Some(body.boot));
                    let is_later =
                        |last: &(RecordId, Secret, BootBody)| (last.2.boot, last.0) < (body.boot, record);
                    if restore.last_boot.as_ref().is_none_or(is_later) {
                        restore.last_boot = Some((record, Secret(header.nonce), body));
                    }
                }
                self.restore().old_boots.push(record);
            }
            RecordKind::Tombstone(version) => match TombstoneBody::decode(&mut input, version) {
                Ok(body) => {
                    let (digests, payload) = (&self.deliveries.digests, body.payload.as_ref());
                    let taken = digests.taken(&body.source, body.timestamp, version, payload);
                    let (expires_dtn_ms, remaining_ms) = (body.expires_dtn_ms, body.remaining_ms);
                    let taken_dtn_ms = header.arrival_dtn_ms;
                    let found = FoundTombstone { record, length, taken_dtn_ms, expires_dtn_ms, remaining_ms };
                    self.restore().tombstones.push((taken, found));
                }
                Err(DecodeError::Incomplete) if (data.len() as u64) < length => {
                    self.look_again(record, length, data.len(), prefix);
                }
                // The tombstone was not durable at the crash, so the application was not told that the delivery
                // ended.
                Err(_) => self.too_short(record),
            },
            RecordKind::Received | RecordKind::Own | RecordKind::OwnSecured => {
                self.look_at_bundle(now, record, header, length, &data, prefix)
            }
        }
    }

    /// Reads more of the beginning of a record, if it can be read.
    fn look_again(&mut self, record: RecordId, length: u64, read: usize, prefix: PrefixRead) {
        match prefix.longer(read) {
            Some(prefix) => self.read_start(record, length, prefix),
            None => self.lost_at_start(record),
        }
    }

    fn too_short(&mut self, record: RecordId) {
        self.counters.records_short += 1;
        self.store.remove(record);
    }

    fn look_at_bundle(
        &mut self,
        now: Instant,
        record: RecordId,
        header: RecordHeader,
        length: u64,
        data: &Bytes,
        prefix: PrefixRead,
    ) {
        match decode_own_head(&data.slice(HEADER_BYTES as usize..), &self.startup.stored_policy) {
            Ok((head, head_bytes)) => {
                self.look_at_head(now, record, header, (head, head_bytes.len() as u64), length, data);
            }
            Err(Breach { error: DecodeError::Incomplete, .. }) if (data.len() as u64) < length => {
                self.look_again(record, length, data.len(), prefix);
            }
            Err(_) => self.too_short(record),
        }
    }

    fn look_at_head(
        &mut self,
        now: Instant,
        record: RecordId,
        header: RecordHeader,
        (mut head, head_bytes): (AnyHead, u64),
        length: u64,
        data: &Bytes,
    ) {
        head.discard_unsupported();
        let own = matches!(header.kind, RecordKind::Own | RecordKind::OwnSecured);
        let mut held = Box::new(self.hold(now, record, header, head, head_bytes, own));
        held.appended = length;
        held.stored = length;
        held.share = length;
        if header.kind == RecordKind::OwnSecured {
            return self.look_for_security_data(record, held, length);
        }
        let behind = length.saturating_sub(held.payload_at().saturating_add(held.payload_bytes()));
        if held.head.tail_is_known() {
            self.look_for_notes(record, held, length, data);
        } else if behind == 0 {
            self.restore_unsealed(record, held, length);
        } else {
            let most = u64::from(self.startup.stored_policy.head_bytes_max);
            self.read_tail(record, length, held, PrefixRead::first(behind.min(most) as u32));
        }
    }

    /// Reads the data of the security blocks of a bundle of this node, which follow the bundle.
    fn look_for_security_data(&mut self, record: RecordId, mut held: Box<HeldBundle>, length: u64) {
        let at = held.notes_at();
        let bytes = held.head.security_data().len();
        held.tail_bytes += bytes as u64;
        if length < held.notes_at() || bytes == 0 {
            return self.restore_unsealed(record, held, length);
        }
        let step = ReadStep::SecurityData(held);
        self.restore().reading.insert(record, RecordRead { length, step });
        self.store.read(record, at, bytes as u32, ReadPurpose::Restore);
    }

    fn look_at_security_data(
        &mut self,
        record: RecordId,
        length: u64,
        data: &Bytes,
        mut held: Box<HeldBundle>,
    ) {
        if !held.head.set_security_data(&Bytes::copy_from_slice(data)) {
            return self.restore_unsealed(record, held, length);
        }
        self.look_for_notes(record, held, length, &Bytes::new());
    }

    fn look_at_tail(
        &mut self,
        record: RecordId,
        length: u64,
        data: Bytes,
        mut held: Box<HeldBundle>,
        prefix: PrefixRead,
    ) {
        let mut input = data.clone();
        let closing = BundleEnd::of(&held.head);
        if held.head.read_tail(&closing, &mut input, &self.startup.stored_policy).is_err() {
            if prefix.damaged.is_none() {
                return self.restore_unsealed(record, held, length);
            }
            return match prefix.longer(data.len()) {
                Some(prefix) => self.read_tail(record, length, held, prefix),
                None => self.lost_at_start(record),
            };
        }
        held.tail_bytes = (data.len() - input.len()) as u64;
        held.head.discard_unsupported();
        held.encrypted |= held.head.is_encrypted();
        held.extra_bytes = held.head.extra_bytes(held.head_bytes + held.tail_bytes);
        self.look_for_notes(record, held, length, &Bytes::new());
    }

    /// Reads the seal of a bundle, unless it is in these first bytes of the record.
    fn look_for_notes(&mut self, record: RecordId, held: Box<HeldBundle>, length: u64, data: &Bytes) {
        let notes_at = held.notes_at();
        if data.len() as u64 >= notes_at + NOTE_BYTES {
            let seal = data.slice(notes_at as usize..(notes_at + NOTE_BYTES) as usize);
            self.look_at_notes(record, length, notes_at, &seal, held, false);
        } else if length >= notes_at + NOTE_BYTES {
            let looking = RecordRead { length, step: ReadStep::Notes { held, sealed: false } };
            self.restore().reading.insert(record, looking);
            self.store.read(record, notes_at, NOTE_BYTES as u32, ReadPurpose::Restore);
        } else {
            self.restore_unsealed(record, held, length);
        }
    }

    fn look_at_notes(
        &mut self,
        record: RecordId,
        length: u64,
        offset: u64,
        data: &Bytes,
        mut held: Box<HeldBundle>,
        sealed: bool,
    ) {
        let note = Note::decode(data, held.nonce, offset);
        if !sealed {
            let Some(Note::Sealed { custody }) = note else {
                return self.restore_unsealed(record, held, length);
            };
            held.custody = custody.then(Box::default);
        }
        let notes_at = held.notes_at();
        let notes = (length - notes_at) / NOTE_BYTES;
        // A torn note at the end is never overwritten, so notes after it would not be found.
        held.closed |= !(length - notes_at).is_multiple_of(NOTE_BYTES);
        if !sealed && notes > 1 {
            let read = (notes - 1).min(NOTES_MAX);
            let first = notes_at + (notes - read) * NOTE_BYTES;
            self.restore()
                .reading
                .insert(record, RecordRead { length, step: ReadStep::Notes { held, sealed: true } });
            self.store.read(record, first, (read * NOTE_BYTES) as u32, ReadPurpose::Restore);
            return;
        }
        if sealed {
            heed_notes(&mut held, data, offset);
        }
        held.state = BundleState::Sealing;
        self.insert_found(record, held);
    }

    /// Inserts a bundle that is dispatched later.
    fn insert_found(&mut self, record: RecordId, held: Box<HeldBundle>) {
        self.time.deadlines.ends(held.end, DeadlineKind::Expiry(record));
        self.holdings.insert_found(record, held);
        self.startup.found.push_back(record);
    }

    /// Restores a bundle without a seal.
    fn restore_unsealed(&mut self, record: RecordId, mut held: Box<HeldBundle>, length: u64) {
        let payload = length.saturating_sub(held.payload_at()).min(held.payload_bytes());
        if held.own {
            return self.too_short(record);
        }
        if held.head.tail_is_known() && length >= held.notes_at() {
            // Only the seal is missing or torn: the bundle is verified.
            held.state = BundleState::Verifying;
            self.insert_found(record, held);
        } else if held.may_fragment() && payload > 0 {
            // The part may have been acknowledged to the peer.
            held.cut_to(payload);
            held.state = BundleState::Sealing;
            self.insert_found(record, held);
        } else {
            self.too_short(record);
        }
    }

    fn restore_tombstone(&mut self, now: Instant, taken: TakenPayload, found: &FoundTombstone) {
        let record = found.record;
        let gone_by = match (self.time.clock.life_ms(now), found.taken_dtn_ms) {
            (Some(life_ms), taken) if taken > 0 => {
                life_ms.saturating_sub(taken.saturating_add_signed(self.time.adjustments.moved_since(record)))
            }
            _ => 0,
        };
        let left = Duration::from_millis(found.remaining_ms.saturating_sub(gone_by));
        let dtn_ms = Some(found.expires_dtn_ms).filter(|end| *end > 0);
        let end = ExpiryTime { dtn_ms, by_age: now + left };
        self.add_tombstone(now, taken, Tombstone { record, end, appended: found.length });
    }

    /// Begins this start after all records have been read, and gives it a number.
    fn boot(&mut self, now: Instant) {
        self.holdings.names_found();
        let restore = core::mem::take(self.restore());
        self.startup.boot = restore.boot.map_or(0, |boot| boot + 1);
        let last = restore.last_boot.map(|(_, secret, body)| (secret, body));
        let (secret, body) =
            last.unwrap_or_else(|| (Secret(self.rng.fork("secret").next_u64()), BootBody::default()));
        self.startup.secret = secret;
        self.links.learn(secret);
        self.time.adjustments = body.turns;
        let jump = body.clock.and_then(|kept| self.time.clock.resume(now, kept));
        if let Some(jump) = jump {
            self.indications.push(ManagementIndication::ClockJumped { by_ms: jump.by_ms });
        }
        self.note_turn(now, jump.map_or(0, |jump| jump.moved_ms));
        for (taken, found) in restore.tombstones {
            self.restore_tombstone(now, taken, &found);
        }
        let record = self.write_boot(now);
        self.startup.phase = Phase::Booting { record, old: restore.old_boots };
    }

    /// Stores the number of this start, and the clock state.
    fn write_boot(&mut self, now: Instant) -> RecordId {
        let record = self.next_record();
        let header = RecordHeader { nonce: self.startup.secret.0, ..self.header(now, RecordKind::Boot, 0) };
        let body = BootBody {
            boot: self.startup.boot,
            clock: self.time.clock.kept(now),
            turns: self.time.adjustments.clone(),
        };
        self.store.append(record, body.encode(header), true);
        self.startup.boot_record = record;
        self.time.kept_at = now;
        record
    }

    /// Stores the clock state in a new record, which replaces the old one.
    pub(super) fn keep_clock(&mut self, now: Instant) {
        let old = self.startup.boot_record;
        self.write_boot(now);
        self.startup.old_boots.push(old);
    }

    /// Makes the agent ready, once the boot record is durable or there is no space even for it.
    pub(super) fn booted(&mut self, now: Instant, stored: bool) {
        let Phase::Booting { old, .. } = core::mem::replace(&mut self.startup.phase, Phase::Ready) else {
            unreachable!("only said while booting")
        };
        if stored {
            old.into_iter().for_each(|record| self.store.remove(record));
        }
        self.startup.found.make_contiguous().sort_unstable();
        self.startup.ages_found = self.time.clock.life_ms(now).is_some();
        if !self.startup.ages_found {
            self.startup.age_unknown = self.startup.found.clone();
        }
        self.dispatch_found(now);
        self.take_early_pieces(now);
        self.open_waiting_sends(now);
    }

    /// Dispatches the next restored bundles.
    pub(super) fn dispatch_found(&mut self, now: Instant) {
        for _ in 0..VISITED_AT_ONCE {
            let Some(record) = self.startup.found.pop_front() else { break };
            self.dispatch_one(now, record);
        }
        if self.startup.found.is_empty() {
            // Its memory, too.
            self.startup.found = VecDeque::new();
        } else {
            self.time.deadlines.at(now + VISIT_PAUSE, DeadlineKind::DispatchFound);
        }
    }

    fn dispatch_one(&mut self, now: Instant, record: RecordId) {
        if self.startup.ages_found && self.time.clock.life_ms(now).is_some() {
            self.age_one(now, record);
        } else if self.startup.ages_found {
            // The clock has gone since.
            self.startup.age_unknown.push_back(record);
        }
        // The bundle may have expired, or may have been deleted by an operator.
        let Some(held) = self.holdings.get(&record) else { return };
        if self.deliveries.was_taken(&held.head) {
            // The bundle was delivered, but not yet removed. Another payload with the same bundle ID was accepted, and is kept.
            self.drop_bundle(record);
        } else if held.state == BundleState::Verifying {
            self.verify(record);
        } else {
            self.resume_custody(now, record);
            self.dispatch(now, record);
        }
    }

    /// Adds the time for which the node was down to the ages of restored bundles, once there is a clock.
    pub(super) fn age_found(&mut self, now: Instant) {
        if !self.startup.is_aging {
            self.age_next(now);
        }
    }

    /// The same for the next of them.
    pub(super) fn age_next(&mut self, now: Instant) {
        self.startup.is_aging = false;
        if self.time.clock.life_ms(now).is_none() {
            return;
        }
        // In their order: those that leave first are aged first.
        for _ in 0..VISITED_AT_ONCE {
            let Some(record) = self.startup.age_unknown.pop_front() else { break };
            self.age_one(now, record);
        }
        if self.startup.age_unknown.is_empty() {
            // Its memory, too.
            self.startup.age_unknown = VecDeque::new();
        } else {
            self.startup.is_aging = true;
            self.time.deadlines.at(now + VISIT_PAUSE, DeadlineKind::AgeFound);
        }
    }

    /// Adds the time for which the node was down to the age of a restored bundle, if there is a clock.
    fn age_one(&mut self, now: Instant, record: RecordId) {
        let Some(life_ms) = self.time.clock.life_ms(now) else { return };
        let Some(held) = self.holdings.get_mut(&record).filter(|held| held.arrival_dtn_ms > 0) else {
            return;
        };
        let here_ms = millis(now.saturating_since(held.since));
        let arrival_ms = held.arrival_dtn_ms.saturating_add_signed(self.time.adjustments.moved_since(record));
        let since_arrival = life_ms.saturating_sub(arrival_ms);
        held.age_ms = held.age_ms.saturating_add(since_arrival.saturating_sub(here_ms));
        self.time.renew_end(now, record, held, &self.config);
    }
}

/// Applies the notes that follow a bundle's seal.
fn heed_notes(held: &mut HeldBundle, data: &Bytes, offset: u64) {
    let (mut safe, mut awaited) = (0, false);
    for (position, note) in (offset..).step_by(NOTE_BYTES as usize).zip(data.chunks(NOTE_BYTES as usize)) {
        match Note::decode(note, held.nonce, position) {
            Some(Note::SafeUpTo(up_to)) => safe = up_to,
            Some(Note::HandedOver) => awaited = true,
            Some(Note::Sealed { .. }) | None => {}
            Some(note) => held.replication.get_or_insert_default().restore(note),
        }
    }
    if held.custody.is_some() {
        held.custody = Some(Box::new(Custody::restored(held.payload_bytes(), safe, awaited)));
    }
    if held.may_fragment() && safe > 0 {
        held.to_send.take_first(safe.min(held.payload_bytes() - 1));
    }
}
