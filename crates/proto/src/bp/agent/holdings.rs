//! The bundles that the node holds, and their counts.
//!
//! ```text
//!   awake <--- it is needed ----- resting: as bytes
//!     |                              ^
//!     '--- others were needed later -'
//! ```
//!
//! The bundles that woke last are *awake*, in the form in which all parts of the agent use them; others rest as bytes (see
//! [`resting`](super::resting)), unless they are in use. So the memory of a bundle that waits is small, and no part of the agent has
//! to distinguish them.

use crate::kit::OrderedMap;
use crate::service::RecordId;
use crate::time::Duration;
use bytes::BytesMut;
use core::cell::{Cell, OnceCell, RefCell};
use core::ops::{Deref, Index, RangeBounds};
use std::collections::{BTreeSet, VecDeque};

use super::accounts::Accounts;
use super::adu::AduKey;
use super::held::HeldBundle;
use super::resting;
use super::taken::{Digest, Digests};

/// Number of bundles that stay awake although nothing needs them. Tests of the agent have few bundles, and most of these rest.
const AWAKE_MAX: usize = if cfg!(test) { 2 } else { 4096 };
/// Number of awake bundles that are examined for each one that wakes: those in use stay awake.
const EXAMINED: usize = 2;
/// Maximum number examined at once, some milliseconds: many may have woken while there was place for all.
const EXAMINED_MAX: usize = if cfg!(test) { 8 } else { 1024 };

/// Number of bundles that are visited at once by what visits all of them, some milliseconds: the node does other work in between.
pub(super) const VISITED_AT_ONCE: usize = if cfg!(test) { 64 } else { 1000 };
/// Pause after them.
pub(super) const VISIT_PAUSE: Duration = Duration::from_millis(1);

/// Bundle, awake or resting.
#[derive(Debug)]
struct Slot {
    /// The bundle while it is awake.
    awake: OnceCell<Box<HeldBundle>>,
    /// The bundle as bytes; `None` once it may have changed since.
    resting: Option<Box<[u8]>>,
}

impl Slot {
    fn awake(held: Box<HeldBundle>) -> Self {
        Slot { awake: OnceCell::from(held), resting: None }
    }

    fn unpack(&self, record: RecordId) -> Box<HeldBundle> {
        Box::new(resting::unpack(record, self.resting.as_deref().expect("it is awake or rests")))
    }

    /// Returns the bundle without waking it.
    fn read(&self, record: RecordId) -> HeldRef<'_> {
        match self.awake.get() {
            Some(held) => HeldRef::Awake(held),
            None => HeldRef::Read(self.unpack(record)),
        }
    }

    fn into_awake(mut self, record: RecordId) -> Box<HeldBundle> {
        self.awake.take().unwrap_or_else(|| self.unpack(record))
    }

    /// Lets the bundle rest. Returns false if it is in use. `work` is memory for the work.
    fn rest(&mut self, record: RecordId, work: &mut BytesMut) -> bool {
        if self.resting.is_none() {
            self.resting = self.awake.get().and_then(|held| resting::pack(record, held, work));
            #[cfg(test)]
            self.check(record);
        }
        if self.resting.is_some() {
            self.awake.take();
        }
        self.resting.is_some()
    }
}

#[cfg(test)]
impl Slot {
    /// Panics unless the bundle will wake as it was.
    fn check(&self, record: RecordId) {
        if let (Some(packed), Some(held)) = (&self.resting, self.awake.get()) {
            let mut woken = resting::unpack(record, packed);
            // The same ranges have several forms.
            assert_eq!(woken.to_send, held.to_send);
            woken.to_send = held.to_send.clone();
            // It is not kept, and computed again.
            woken.payload_crc = held.payload_crc;
            assert_eq!(format!("{woken:?}"), format!("{held:?}"));
        }
    }
}

/// Bundle of a list, which reading does not wake.
pub(super) enum HeldRef<'a> {
    Awake(&'a HeldBundle),
    Read(Box<HeldBundle>),
}

impl Deref for HeldRef<'_> {
    type Target = HeldBundle;

    fn deref(&self) -> &HeldBundle {
        match self {
            HeldRef::Awake(held) => held,
            HeldRef::Read(held) => held,
        }
    }
}

/// All bundles, in order of their records. The counts follow every change of what they count: a bundle's length, and
/// its memory, change only here.
#[derive(Debug)]
pub(super) struct Holdings {
    bundles: OrderedMap<RecordId, Slot>,
    /// Bundles that are awake, the one that woke first in front; also some that were removed.
    awake: RefCell<VecDeque<RecordId>>,
    /// Number of awake bundles that are still to be examined.
    examined_next: Cell<usize>,
    /// Memory in which bundles become bytes.
    packing: BytesMut,
    /// Number of copies among the bundles.
    copies: usize,
    /// Records of a bundle and its fragments.
    adus: BTreeSet<(Digest, RecordId)>,
    /// Entries of `adus` that the start has found, until it has read all: a set of very many is made in a fraction of the time in
    /// which they are added to one.
    adus_found: Vec<(Digest, RecordId)>,
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
            bundles: OrderedMap::new(),
            awake: RefCell::default(),
            examined_next: Cell::default(),
            packing: BytesMut::new(),
            copies: 0,
            adus: BTreeSet::new(),
            adus_found: Vec::new(),
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
        let slot = self.bundles.get(record)?;
        let held = slot.awake.get_or_init(|| {
            self.note_awake(*record);
            slot.unpack(*record)
        });
        Some(held)
    }

    /// A bundle, for changes of everything but its owner, its length and its memory, which are counted.
    pub(super) fn get_mut(&mut self, record: &RecordId) -> Option<&mut HeldBundle> {
        self.let_some_rest();
        let slot = self.bundles.get_mut(record)?;
        if slot.awake.get().is_none() {
            slot.awake = OnceCell::from(slot.unpack(*record));
            note_awake(self.awake.get_mut(), &self.examined_next, *record);
        }
        slot.resting = None;
        slot.awake.get_mut().map(|held| &mut **held)
    }

    /// Notes that a bundle is awake.
    fn note_awake(&self, record: RecordId) {
        note_awake(&mut self.awake.borrow_mut(), &self.examined_next, record);
    }

    /// Lets bundles rest that have not been needed for long.
    fn let_some_rest(&mut self) {
        let awake = self.awake.get_mut();
        let left = self.examined_next.get_mut();
        while *left > 0
            && awake.len() > AWAKE_MAX
            && let Some(record) = awake.pop_front()
        {
            *left -= 1;
            if self.bundles.get_mut(&record).is_some_and(|slot| !slot.rest(record, &mut self.packing)) {
                awake.push_back(record);
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (RecordId, HeldRef<'_>)> {
        self.range(..)
    }

    /// The bundles with these records, in order. Reading them does not wake them.
    pub(super) fn range(
        &self,
        records: impl RangeBounds<RecordId>,
    ) -> impl Iterator<Item = (RecordId, HeldRef<'_>)> {
        self.bundles.range(records).map(|(record, slot)| (*record, slot.read(*record)))
    }

    /// The records of bundles in a range, in order.
    pub(super) fn records(&self, records: impl RangeBounds<RecordId>) -> impl Iterator<Item = RecordId> {
        self.bundles.range(records).map(|(record, _)| *record)
    }

    /// Records of a bundle and its fragments, in order; those that a start has just found come last.
    pub(super) fn records_of<'a>(
        &'a self,
        key: &AduKey,
    ) -> impl DoubleEndedIterator<Item = RecordId> + use<'a> {
        let name = self.digests.adu(key);
        let found = self.adus_found.iter().filter(move |(found, _)| *found == name);
        let known = self.adus.range((name, RecordId(0))..=(name, RecordId(u64::MAX)));
        known.chain(found).map(|(_, record)| *record)
    }

    pub(super) fn insert(&mut self, record: RecordId, held: HeldBundle) {
        self.count(&held);
        self.adus.insert((self.digests.adu(&held.adu()), record));
        self.insert_awake(record, Box::new(held));
    }

    /// Inserts a bundle that the start has found, and lets it rest. Its name is in the index of all names after
    /// [`names_found`](Self::names_found).
    pub(super) fn insert_found(&mut self, record: RecordId, held: Box<HeldBundle>) {
        self.count(&held);
        self.adus_found.push((self.digests.adu(&held.adu()), record));
        let mut slot = Slot::awake(held);
        if !slot.rest(record, &mut self.packing) {
            self.let_some_rest();
            self.note_awake(record);
        }
        self.bundles.insert(record, slot);
    }

    /// Makes the index of the names of the bundles that the start has found.
    pub(super) fn names_found(&mut self) {
        let mut found = core::mem::take(&mut self.adus_found);
        // In place: the set sorts, too, but takes more memory for that.
        found.sort_unstable();
        if self.adus.is_empty() {
            self.adus = found.into_iter().collect();
        } else {
            self.adus.extend(found);
        }
    }

    /// Inserts a copy, which nobody is charged for.
    pub(super) fn insert_copy(&mut self, id: RecordId, copy: HeldBundle) {
        self.insert_awake(id, Box::new(copy));
        self.copies += 1;
    }

    fn insert_awake(&mut self, record: RecordId, held: Box<HeldBundle>) {
        self.let_some_rest();
        self.bundles.insert(record, Slot::awake(held));
        self.note_awake(record);
    }

    /// Counts a bundle that is inserted.
    fn count(&mut self, held: &HeldBundle) {
        self.bytes += held.share;
        self.accounts.enter(held);
    }

    /// Removes a bundle or a copy.
    pub(super) fn remove(&mut self, record: RecordId) -> Option<Box<HeldBundle>> {
        let held = self.bundles.remove(&record)?.into_awake(record);
        self.bytes -= held.share;
        if held.copy_origin.is_none() {
            self.accounts.leave(&held);
        } else {
            self.copies -= 1;
        }
        self.names_found();
        self.adus.remove(&(self.digests.adu(&held.adu()), record));
        Some(held)
    }

    /// Sets the length that a bundle counts with, bytes.
    pub(super) fn resize(&mut self, record: &RecordId, share: u64) {
        self.get_mut(record).expect("only what is held is resized");
        let slot = self.bundles.get_mut(record).expect("it was just found");
        let held = slot.awake.get_mut().expect("it was just woken");
        self.accounts.resize(held, share);
        self.bytes = self.bytes - held.share + share;
        held.share = share;
    }

    /// Changes the memory that a bundle counts with.
    pub(super) fn recount(&mut self, record: &RecordId, change: impl FnOnce(&mut HeldBundle)) {
        self.get_mut(record).expect("only what is held is counted");
        let slot = self.bundles.get_mut(record).expect("it was just found");
        let held = slot.awake.get_mut().expect("it was just woken");
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

/// Notes that a bundle is awake, so that others may rest.
fn note_awake(awake: &mut VecDeque<RecordId>, examined_next: &Cell<usize>, record: RecordId) {
    awake.push_back(record);
    examined_next.set((examined_next.get() + EXAMINED).min(EXAMINED_MAX));
}

impl Index<&RecordId> for Holdings {
    type Output = HeldBundle;

    fn index(&self, record: &RecordId) -> &HeldBundle {
        self.get(record).expect("only what is held is asked for")
    }
}

#[cfg(test)]
impl Holdings {
    /// Number of bundles that are awake, and the length of the longest one that rests, bytes.
    pub(super) fn awake_and_longest(&self) -> (usize, usize) {
        let slots = || self.bundles.iter().map(|(_, slot)| slot);
        let awake = slots().filter(|slot| slot.awake.get().is_some()).count();
        (awake, slots().filter_map(|slot| slot.resting.as_deref()).map(<[u8]>::len).max().unwrap_or(0))
    }

    /// Panics unless the counts match the bundles held.
    pub(super) fn check(&self, node: &str) {
        let mut accounts = Accounts::default();
        let originals = || self.iter().map(|(_, held)| held).filter(|held| held.copy_origin.is_none());
        originals().for_each(|held| accounts.enter(&held));
        assert_eq!(self.accounts, accounts, "the accounts of {node}, and those of what it has");
        assert_eq!(self.bytes, self.iter().map(|(_, held)| held.share).sum::<u64>());
        assert_eq!(self.originals(), originals().count());
        let names = self.adus.len() + self.adus_found.len();
        assert_eq!(names, self.originals(), "each bundle is found by its name");
    }
}

#[cfg(test)]
mod tests {
    use super::super::head::AnyHead;
    use super::super::resting::tests::waiting;
    use super::*;
    use crate::bp::generate::Generator;
    use crate::rng::Rng;

    /// While a start reads the store, bundles are found by their names, and may go.
    #[test]
    fn what_a_start_has_found_has_its_name_at_once() {
        for seed in 0..50 {
            let mut rng = Rng::new(seed);
            let mut holdings = Holdings::new(Digests::new(rng.next_u64()));
            let mut names = Vec::new();
            for number in 0..30 {
                let head = Generator::new(rng.fork("bundle")).bundle().head;
                let (record, mut held) = (RecordId(number), waiting(AnyHead::V7(head), &mut rng));
                held.named_by = record;
                names.push((record, held.adu()));
                match rng.chance(0.1) {
                    true => holdings.insert(record, held),
                    false => holdings.insert_found(record, Box::new(held)),
                }
                if rng.chance(0.2) {
                    let (gone, _) = names.swap_remove(rng.below(names.len() as u64) as usize);
                    assert!(holdings.remove(gone).is_some(), "seed {seed}");
                }
                if rng.chance(0.1) {
                    holdings.names_found();
                }
                for (record, name) in &names {
                    let found = holdings.records_of(name).collect::<Vec<_>>();
                    assert!(found.contains(record), "seed {seed}: {found:?}");
                    let mut backwards: Vec<_> = holdings.records_of(name).rev().collect();
                    backwards.reverse();
                    assert_eq!(found, backwards, "seed {seed}");
                }
                holdings.check("it");
            }
        }
    }
}
