//! The bundles that the node holds, and their counts.

use crate::service::RecordId;
use core::ops::{Index, RangeBounds};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::accounts::Accounts;
use super::delivery::AduKey;
use super::held::HeldBundle;
use super::taken::{Digest, Digests};

/// All bundles, in order of their records. The counts follow every change of what they count: a bundle's length, and
/// its memory, change only here.
#[derive(Debug)]
pub(super) struct Holdings {
    /// Each bundle is boxed, because half of the slots of a B-tree are empty.
    bundles: BTreeMap<RecordId, Box<HeldBundle>>,
    /// Number of copies among the bundles.
    copies: usize,
    /// Records of a bundle and its fragments.
    adus: BTreeSet<(Digest, RecordId)>,
    /// Total length of the bundles, bytes.
    bytes: u64,
    accounts: Accounts,
    digests: Digests,
    /// Records that may have become completely durable.
    settled: VecDeque<RecordId>,
}

impl Holdings {
    /// Creates holdings without bundles.
    pub(super) fn new(digests: Digests) -> Self {
        Holdings {
            bundles: BTreeMap::new(),
            copies: 0,
            adus: BTreeSet::new(),
            bytes: 0,
            accounts: Accounts::default(),
            digests,
            settled: VecDeque::new(),
        }
    }

    /// Number of bundles, copies included.
    pub(super) fn len(&self) -> usize {
        self.bundles.len()
    }

    /// Number of bundles without their copies.
    pub(super) fn originals(&self) -> usize {
        self.bundles.len() - self.copies
    }

    /// Total length of the bundles, bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Usage of all owners.
    pub(super) fn accounts(&self) -> &Accounts {
        &self.accounts
    }

    pub(super) fn contains(&self, record: &RecordId) -> bool {
        self.bundles.contains_key(record)
    }

    pub(super) fn get(&self, record: &RecordId) -> Option<&HeldBundle> {
        self.bundles.get(record).map(|held| &**held)
    }

    /// A bundle, for changes of everything but its owner, its length and its memory, which are counted.
    pub(super) fn get_mut(&mut self, record: &RecordId) -> Option<&mut HeldBundle> {
        self.bundles.get_mut(record).map(|held| &mut **held)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (RecordId, &HeldBundle)> {
        self.range(..)
    }

    /// The bundles with these records, in order.
    pub(super) fn range(
        &self,
        records: impl RangeBounds<RecordId>,
    ) -> impl Iterator<Item = (RecordId, &HeldBundle)> {
        self.bundles.range(records).map(|(record, held)| (*record, &**held))
    }

    /// Records of a bundle and its fragments, in order.
    pub(super) fn records_of<'a>(
        &'a self,
        key: &AduKey,
    ) -> impl DoubleEndedIterator<Item = RecordId> + use<'a> {
        let name = self.digests.adu(key);
        self.adus.range((name, RecordId(0))..=(name, RecordId(u64::MAX))).map(|(_, record)| *record)
    }

    pub(super) fn insert(&mut self, record: RecordId, held: HeldBundle) {
        self.bytes += held.share;
        self.accounts.enter(&held);
        self.adus.insert((self.digests.adu(&held.adu()), record));
        self.bundles.insert(record, Box::new(held));
    }

    /// Inserts a copy, which nobody is charged for.
    pub(super) fn insert_copy(&mut self, id: RecordId, copy: HeldBundle) {
        self.bundles.insert(id, Box::new(copy));
        self.copies += 1;
    }

    /// Removes a bundle or a copy.
    pub(super) fn remove(&mut self, record: RecordId) -> Option<Box<HeldBundle>> {
        let held = self.bundles.remove(&record)?;
        self.bytes -= held.share;
        if held.copy_origin.is_none() {
            self.accounts.leave(&held);
        } else {
            self.copies -= 1;
        }
        self.adus.remove(&(self.digests.adu(&held.adu()), record));
        Some(held)
    }

    /// Sets the length that a bundle counts with, bytes.
    pub(super) fn resize(&mut self, record: &RecordId, share: u64) {
        let held = self.bundles.get_mut(record).expect("only what is held is resized");
        self.accounts.resize(held, share);
        self.bytes = self.bytes - held.share + share;
        held.share = share;
    }

    /// Changes the memory that a bundle counts with.
    pub(super) fn recount(&mut self, record: &RecordId, change: impl FnOnce(&mut HeldBundle)) {
        let held = self.bundles.get_mut(record).expect("only what is held is counted");
        self.accounts.leave(held);
        change(held);
        self.accounts.enter(held);
    }

    /// Notes that a record may have become completely durable.
    pub(super) fn settle_later(&mut self, record: RecordId) {
        self.settled.push_back(record);
    }

    /// Returns the next record that may have become completely durable.
    pub(super) fn next_settled(&mut self) -> Option<RecordId> {
        self.settled.pop_front()
    }
}

impl Index<&RecordId> for Holdings {
    type Output = HeldBundle;

    fn index(&self, record: &RecordId) -> &HeldBundle {
        &self.bundles[record]
    }
}

#[cfg(test)]
impl Holdings {
    /// Panics unless the counts match the bundles held.
    pub(super) fn check(&self, node: &str) {
        let mut accounts = Accounts::default();
        let originals = || self.bundles.values().filter(|held| held.copy_origin.is_none());
        originals().for_each(|held| accounts.enter(held));
        assert_eq!(self.accounts, accounts, "the accounts of {node}, and those of what it has");
        assert_eq!(self.bytes, self.bundles.values().map(|held| held.share).sum::<u64>());
        assert_eq!(self.originals(), originals().count());
        assert_eq!(self.adus.len(), self.originals(), "each bundle is found by its name");
    }
}
