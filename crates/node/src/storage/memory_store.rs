//! The store in memory: nothing survives the process.
//!
//! Its size is limited; further data is refused, as by a full disk. Before that, above an eighth of the size, it is
//! deliberately slow: new data is reported as stored only as other data leaves, which slows applications and peers to the
//! sending rate and keeps data at its source instead of in memory. If nothing leaves for a while because no link is up,
//! waiting is useless, and the store fills.
//!
//! Urgent data is never delayed and does not count here: tombstones, notes, the ends of bundles, and what releases custody.
//!
//! Units: bytes. Limits: `storage.memory-bytes`; urgent data has [`SPARE_BYTES`] more.

use super::recent::Recent;
use longwire_proto::service::{RecordId, StorageFailure, StorageIndication, StorageRequest};
use longwire_proto::time::{Duration, Instant};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Divisor of the size: the store is crowded above an eighth of it.
const CROWDED_PART: usize = 8;
/// Time to wait for the next removal after the last one.
const PATIENCE: Duration = Duration::from_secs(1);
/// Space for urgent data when there is none for others.
const SPARE_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct MemoryStore {
    records: Recent,
    bytes_max: usize,
    /// Delayed reports, with the length of the data that each is about.
    late: VecDeque<(StorageIndication, usize)>,
    /// Number of delayed reports per record, because later reports must not overtake them.
    late_of: BTreeMap<RecordId, usize>,
    /// Records of which some data was refused: further data is dropped until they are removed.
    refused: BTreeSet<RecordId>,
    left_at: Instant,
    /// True while reports wait: they go on a quarter below the mark, so that many follow at once.
    holds_back: bool,
}

impl MemoryStore {
    pub(super) fn new(bytes_max: usize) -> Self {
        MemoryStore { records: Recent::new(usize::MAX), bytes_max, ..MemoryStore::default() }
    }

    /// Carries out a request; returns the answer if it is available immediately.
    pub(super) fn request(&mut self, now: Instant, request: StorageRequest) -> Option<StorageIndication> {
        match request {
            StorageRequest::Append { record, data, urgent } => self.append(now, record, data, urgent),
            StorageRequest::Read { record, offset, length, in_parts } => {
                Some(match self.records.read(record, offset, length, in_parts) {
                    Some(data) => StorageIndication::Data { record, offset, data },
                    None => {
                        StorageIndication::ReadFailed { record, offset, failure: StorageFailure::Missing }
                    }
                })
            }
            StorageRequest::Remove { record } => {
                let before = self.records.durable_bytes();
                self.records.forget(record);
                self.refused.remove(&record);
                if self.late_of.remove(&record).is_some() {
                    self.late.retain(|(said, _)| !is_of(said, record));
                }
                if self.records.durable_bytes() < before {
                    self.left_at = now;
                }
                Some(StorageIndication::Removed { record })
            }
            StorageRequest::List => Some(StorageIndication::Listed { records: Vec::new() }),
        }
    }

    fn append(
        &mut self,
        now: Instant,
        record: RecordId,
        data: bytes::Bytes,
        urgent: bool,
    ) -> Option<StorageIndication> {
        if self.refused.contains(&record) {
            return None;
        }
        let offset = self.records.length(record).unwrap_or(0);
        let most = self.bytes_max + if urgent { SPARE_BYTES } else { 0 };
        if self.records.bytes() + data.len() > most {
            self.refused.insert(record);
            return Some(StorageIndication::Full { record });
        }
        if self.records.durable_bytes() == 0 {
            // The first data in an empty store has not waited: its removal gets time to begin, too.
            self.left_at = now;
        }
        let length = data.len();
        let up_to = offset + length as u64;
        let stored = StorageIndication::Stored { record, up_to };
        let waits = !urgent && (!self.late.is_empty() || self.is_slow(now, length));
        if waits || self.late_of.contains_key(&record) {
            self.records.append(record, offset, data);
            *self.late_of.entry(record).or_default() += 1;
            self.late.push_back((stored, length));
            return None;
        }
        if urgent {
            self.records.append(record, offset, data);
        } else {
            self.records.append_durable(record, offset, data);
        }
        Some(stored)
    }

    /// Returns the next delayed report, if it is due.
    pub(super) fn next(&mut self, now: Instant) -> Option<StorageIndication> {
        let (_, length) = self.late.front()?;
        if self.is_slow(now, *length) {
            return None;
        }
        let (said, _) = self.late.pop_front()?;
        if let StorageIndication::Stored { record, up_to } = &said {
            self.records.durable(*record, *up_to);
            if let Some(left) = self.late_of.get_mut(record) {
                *left -= 1;
                if *left == 0 {
                    self.late_of.remove(record);
                }
            }
        }
        Some(said)
    }

    /// Returns the time at which a delayed report is due even if nothing leaves.
    pub(super) fn wakes_at(&self) -> Option<Instant> {
        (!self.late.is_empty()).then_some(self.left_at + PATIENCE)
    }

    /// Returns true if a report of that many more bytes must wait. Data that is not reported cannot leave, so it does not count: the
    /// data of a few connections could otherwise hold up the store that waits for it.
    fn is_slow(&mut self, now: Instant, bytes: usize) -> bool {
        let crowded = self.bytes_max / CROWDED_PART;
        let most = if self.holds_back { crowded / 4 * 3 } else { crowded };
        let reported = self.records.durable_bytes();
        // Something very long need not wait until nearly all has left.
        let more = bytes.min(most / 2);
        self.holds_back = reported > 0 && reported + more > most && now < self.left_at + PATIENCE;
        self.holds_back
    }
}

fn is_of(said: &StorageIndication, record: RecordId) -> bool {
    matches!(said, StorageIndication::Stored { record: of, .. } if *of == record)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    const MS: Duration = Duration::from_millis(1);

    /// Appends so much; what is as short as notes and tombstones is urgent.
    fn append(store: &mut MemoryStore, now: Instant, record: u64, bytes: usize) -> Option<StorageIndication> {
        let data = Bytes::from(vec![0; bytes]);
        let urgent = bytes <= 100;
        store.request(now, StorageRequest::Append { record: RecordId(record), data, urgent })
    }

    fn remove(store: &mut MemoryStore, now: Instant, record: u64) {
        let removed = store.request(now, StorageRequest::Remove { record: RecordId(record) });
        assert_eq!(removed, Some(StorageIndication::Removed { record: RecordId(record) }));
    }

    fn stored(record: u64, up_to: u64) -> Option<StorageIndication> {
        Some(StorageIndication::Stored { record: RecordId(record), up_to })
    }

    #[test]
    fn a_crowded_store_is_as_fast_as_what_leaves_it() {
        let mut store = MemoryStore::new(800_000);
        let mut now = Instant::ZERO + 5000 * MS;
        assert_eq!(append(&mut store, now, 1, 60_000), stored(1, 60_000));
        now += PATIENCE;
        assert_eq!(append(&mut store, now, 2, 60_000), stored(2, 60_000));
        assert_eq!(append(&mut store, now, 3, 60_000), stored(3, 60_000), "nothing has left for a long time");
        remove(&mut store, now, 3);
        assert_eq!(append(&mut store, now, 4, 60_000), None, "it waits");
        assert_eq!(append(&mut store, now, 4, 24), None, "and so does the end of it");
        assert_eq!(append(&mut store, now, 5, 24), stored(5, 24), "short ones do not");
        assert_eq!(store.next(now), None);
        remove(&mut store, now, 1);
        remove(&mut store, now, 2);
        assert_eq!(store.next(now), stored(4, 60_000));
        assert_eq!(store.next(now), stored(4, 60_024));
        assert_eq!((store.next(now), store.wakes_at()), (None, None));
        // Nothing leaves, so the wait is limited.
        assert_eq!(append(&mut store, now, 6, 60_000), None);
        assert_eq!(store.wakes_at(), Some(now + PATIENCE));
        now += PATIENCE;
        assert_eq!(store.next(now), stored(6, 60_000));
        assert_eq!(append(&mut store, now, 8, 60_000), stored(8, 60_000));
    }

    /// Connections may have handed over more than the store has when it is crowded, and none of that can leave yet.
    #[test]
    fn what_is_not_reported_does_not_hold_up_what_is() {
        let mut store = MemoryStore::new(800_000);
        let now = Instant::ZERO + 5000 * MS;
        // Every node has such records, which stay.
        for record in 100..400 {
            assert_eq!(append(&mut store, now, record, 100), stored(record, 100));
        }
        assert_eq!(append(&mut store, now, 1, 60_000), stored(1, 60_000));
        for record in 2..6 {
            assert_eq!(append(&mut store, now, record, 60_000), None);
        }
        // One whose sender leaves is forgotten, and the others have the place of the first.
        assert_eq!(append(&mut store, now, 6, 60_000), None);
        remove(&mut store, now, 6);
        remove(&mut store, now + PATIENCE, 400);
        assert_eq!(store.wakes_at(), Some(now + PATIENCE), "only what makes room counts");
        for record in 2..6 {
            assert_eq!(store.next(now), None);
            remove(&mut store, now, record - 1);
            assert_eq!(store.next(now), stored(record, 60_000));
        }
        // With nothing in it that could leave, it is not crowded, however long the next part is.
        remove(&mut store, now, 5);
        assert_eq!(append(&mut store, now, 6, 200_000), stored(6, 200_000));
        assert_eq!((store.late.len(), store.late_of.len()), (0, 0));
    }

    #[test]
    fn short_bundles_wait_too_and_then_many_go_on_at_once() {
        let mut store = MemoryStore::new(800_000);
        let now = Instant::ZERO + 5000 * MS;
        let there =
            (1..).take_while(|record| append(&mut store, now, *record, 1000).is_some()).count() as u64;
        assert!((50..100).contains(&there), "{there} of at most 100 kB");
        let waiting = there + 1..there + 100;
        waiting.clone().skip(1).for_each(|record| assert_eq!(append(&mut store, now, record, 1000), None));
        assert_eq!(append(&mut store, now, 1000, 100), stored(1000, 100), "a tombstone does not wait");
        assert_eq!(append(&mut store, now, 1, 24), stored(1, 1024), "nor what ends a bundle that is there");
        remove(&mut store, now, 1);
        assert_eq!(store.next(now), None, "one place is not enough");
        (2..=there / 2).for_each(|record| remove(&mut store, now, record));
        let told: Vec<_> = std::iter::from_fn(|| store.next(now)).collect();
        let expected: Vec<_> = waiting.filter_map(|record| stored(record, 1000)).take(told.len()).collect();
        assert_eq!(told, expected);
        assert!(told.len() as u64 >= there / 4, "{} of {there}", told.len());
    }

    #[test]
    fn a_store_that_begins_to_fill_waits_for_what_takes_it_out_to_begin() {
        let mut store = MemoryStore::new(800_000);
        let mut now = Instant::ZERO + 5000 * MS;
        assert_eq!(append(&mut store, now, 1, 60_000), stored(1, 60_000));
        assert_eq!(append(&mut store, now, 2, 60_000), None, "nothing could leave yet");
        now += PATIENCE;
        assert_eq!(store.next(now), stored(2, 60_000), "nobody takes it: it fills");
    }

    #[test]
    fn a_full_store_refuses_what_is_long_and_takes_what_ends_others() {
        let mut store = MemoryStore::new(100_000);
        let now = Instant::ZERO + 5000 * MS;
        append(&mut store, now, 1, 90_000);
        assert_eq!(append(&mut store, now, 2, 20_000), Some(StorageIndication::Full { record: RecordId(2) }));
        assert_eq!(append(&mut store, now, 2, 10), None, "said once");
        assert_eq!(append(&mut store, now, 3, 100), stored(3, 100));
        remove(&mut store, now, 1);
        remove(&mut store, now, 2);
        assert_eq!(append(&mut store, now, 2, 10), stored(2, 10), "a new record");
    }
}
