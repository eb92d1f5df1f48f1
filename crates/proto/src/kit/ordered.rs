//! A map in the order of its keys, for very many entries that mostly come in that order.
//!
//! A B-tree leaves half of its places empty when entries are added at its end, and numbers that grow with time are always added
//! there. This map is a sequence of sorted blocks: one that is full stays full, and the next one follows it. Entries between others
//! divide a full block in halves, as in a B-tree; blocks that become small are joined.

use core::cell::Cell;
use core::ops::{Bound, Index, RangeBounds};
use std::collections::VecDeque;

/// Maximum number of entries of a block.
const BLOCK_LENGTH: usize = 128;
/// A block that becomes shorter than this is joined to one beside it, if there is space.
const BLOCK_LENGTH_MIN: usize = BLOCK_LENGTH / 4;

/// Map in the order of its keys.
#[derive(Clone, Debug)]
pub struct OrderedMap<K, V> {
    /// Sorted blocks in order, none of them empty. Most entries leave from the front of a block, so that is cheap.
    blocks: VecDeque<VecDeque<(K, V)>>,
    length: usize,
    /// Place of the entry found last: most entries are looked up several times in a row. Possibly that of another one now.
    found: Cell<Place>,
}

/// Place of an entry: its block, and its place there.
type Place = (usize, usize);

impl<K: Ord, V> OrderedMap<K, V> {
    /// Creates a map without entries.
    pub const fn new() -> Self {
        OrderedMap { blocks: VecDeque::new(), length: 0, found: Cell::new((0, 0)) }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Returns the entry at a place.
    #[inline]
    fn entry_at(&self, (block, at): Place) -> Option<&(K, V)> {
        self.blocks.get(block)?.get(at)
    }

    /// Returns the place of an entry, or that where it would be.
    #[inline]
    fn find(&self, key: &K) -> Result<Place, Place> {
        let found = self.found.get();
        match self.entry_at(found) {
            Some((known, _)) if known == key => Ok(found),
            _ => self.search(key),
        }
    }

    fn search(&self, key: &K) -> Result<Place, Place> {
        let Some(last_block) = self.blocks.back() else { return Err((0, 0)) };
        // Most entries are added at the end.
        if last_block.back().is_some_and(|(last, _)| last < key) {
            return Err((self.blocks.len() - 1, last_block.len()));
        }
        let block = self.block_of(key);
        match self.blocks[block].binary_search_by(|(other, _)| other.cmp(key)) {
            Ok(at) => {
                self.found.set((block, at));
                Ok((block, at))
            }
            Err(at) => Err((block, at)),
        }
    }

    /// Returns the block of a key. Keys that are looked up one after the other are often neighbours: the block of the entry found
    /// last and the one behind it are tried before all are searched.
    fn block_of(&self, key: &K) -> usize {
        let begins_by = |block: usize| self.blocks.get(block).is_some_and(|entries| entries[0].0 <= *key);
        let (last, _) = self.found.get();
        let near = [last, last + 1].into_iter().find(|block| begins_by(*block) && !begins_by(block + 1));
        near.unwrap_or_else(|| self.blocks.partition_point(|entries| entries[0].0 <= *key).saturating_sub(1))
    }

    /// Returns true if there is an entry with this key.
    pub fn contains_key(&self, key: &K) -> bool {
        self.find(key).is_ok()
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let place = self.find(key).ok()?;
        self.entry_at(place).map(|(_, value)| value)
    }

    /// Returns the value of a key, for changes.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let (block, at) = self.find(key).ok()?;
        Some(&mut self.blocks[block][at].1)
    }

    /// Sets the value of a key, and returns the one before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok((block, at)) => Some(core::mem::replace(&mut self.blocks[block][at].1, value)),
            Err(place) => {
                self.insert_at(place, key, value);
                None
            }
        }
    }

    /// Returns the value of a key, which is made if there is none.
    pub fn get_or_insert_with(&mut self, key: K, make: impl FnOnce() -> V) -> &mut V {
        let (block, at) = match self.find(&key) {
            Ok(place) => place,
            Err(place) => self.insert_at(place, key, make()),
        };
        &mut self.blocks[block][at].1
    }

    /// Inserts an entry at the place where it belongs. Returns its place afterwards.
    fn insert_at(&mut self, place: Place, key: K, value: V) -> Place {
        let place = self.insert_in(place, key, value);
        self.found.set(place);
        place
    }

    fn insert_in(&mut self, (block, at): Place, key: K, value: V) -> Place {
        self.length += 1;
        let last = self.blocks.len().saturating_sub(1);
        match self.blocks.get_mut(block) {
            Some(entries) if entries.len() < BLOCK_LENGTH => {
                entries.insert(at, (key, value));
                (block, at)
            }
            Some(_) if block == last && at == BLOCK_LENGTH => {
                let mut next = VecDeque::with_capacity(BLOCK_LENGTH);
                next.push_back((key, value));
                self.blocks.push_back(next);
                (block + 1, 0)
            }
            Some(entries) => {
                const HALF: usize = BLOCK_LENGTH / 2;
                let mut upper = entries.split_off(HALF);
                let place = match at.checked_sub(HALF) {
                    Some(at) => {
                        upper.insert(at, (key, value));
                        (block + 1, at)
                    }
                    None => {
                        entries.insert(at, (key, value));
                        (block, at)
                    }
                };
                self.blocks.insert(block + 1, upper);
                place
            }
            None => {
                self.blocks.push_back(VecDeque::from([(key, value)]));
                (0, 0)
            }
        }
    }

    /// Removes an entry and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        let place = self.find(key).ok()?;
        Some(self.remove_at(place).1)
    }

    /// Removes and returns the first entry.
    pub fn pop_first(&mut self) -> Option<(K, V)> {
        (self.length > 0).then(|| self.remove_at((0, 0)))
    }

    fn remove_at(&mut self, (block, at): Place) -> (K, V) {
        self.length -= 1;
        let entries = &mut self.blocks[block];
        let gone = entries.remove(at).expect("a place is that of an entry");
        let left = entries.len();
        if left == 0 {
            self.blocks.remove(block);
        } else if left < BLOCK_LENGTH_MIN {
            self.join(block);
        } else if left == BLOCK_LENGTH_MIN {
            // Memory for twice the entries stays, so that a map that grows and shrinks a little does not allocate each time.
            entries.shrink_to(2 * BLOCK_LENGTH_MIN);
        }
        gone
    }

    /// Joins a block to the next or to the previous one, if the entries of both fit in one.
    fn join(&mut self, block: usize) {
        let fits = |first: &usize| {
            let next = self.blocks.get(first + 1);
            next.is_some_and(|next| self.blocks[*first].len() + next.len() <= BLOCK_LENGTH)
        };
        let mut firsts = [Some(block), block.checked_sub(1)].into_iter().flatten();
        let Some(first) = firsts.find(fits) else { return };
        if let Some(second) = self.blocks.remove(first + 1) {
            self.blocks[first].extend(second);
        }
    }

    /// Returns the first entry.
    pub fn first(&self) -> Option<(&K, &V)> {
        self.iter().next()
    }

    /// Returns the keys in order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// Returns the values in the order of their keys.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.iter().map(|(_, value)| value)
    }

    /// Returns the entries in order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.blocks.iter().flatten().map(|(key, value)| (key, value))
    }

    /// Returns the entries with keys in a range, in order.
    pub fn range(&self, keys: impl RangeBounds<K>) -> impl Iterator<Item = (&K, &V)> {
        let (block, at) = match keys.start_bound() {
            Bound::Unbounded => (0, 0),
            Bound::Included(key) => self.find(key).unwrap_or_else(|place| place),
            Bound::Excluded(key) => self.find(key).map_or_else(|place| place, |(block, at)| (block, at + 1)),
        };
        let entries = self.blocks.range(block.min(self.blocks.len())..).flatten().skip(at);
        let is_before = move |key: &K| match keys.end_bound() {
            Bound::Unbounded => true,
            Bound::Included(end) => key <= end,
            Bound::Excluded(end) => key < end,
        };
        entries.map(|(key, value)| (key, value)).take_while(move |(key, _)| is_before(key))
    }
}

impl<K: Ord, V> Index<&K> for OrderedMap<K, V> {
    type Output = V;

    fn index(&self, key: &K) -> &V {
        self.get(key).expect("only what is there is asked for")
    }
}

impl<K: Ord, V> Default for OrderedMap<K, V> {
    fn default() -> Self {
        OrderedMap::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use std::collections::BTreeMap;

    /// Panics unless the map has the same entries as a B-tree, in blocks that are neither empty nor too long.
    fn check(map: &OrderedMap<u64, u64>, plain: &BTreeMap<u64, u64>, rng: &mut Rng) {
        assert!(map.iter().eq(plain));
        assert_eq!(
            (map.len(), map.is_empty(), map.first()),
            (plain.len(), plain.is_empty(), plain.first_key_value())
        );
        assert!(map.blocks.iter().all(|block| (1..=BLOCK_LENGTH).contains(&block.len())));
        let (from, length) = (rng.below(2_000), rng.below(400));
        assert!(map.range(from..from + length).eq(plain.range(from..from + length)));
        assert!(map.range(from..=from).eq(plain.range(from..=from)));
        let behind = (Bound::Excluded(from), Bound::Unbounded);
        assert!(map.range(behind).eq(plain.range(behind)));
    }

    #[test]
    fn it_agrees_with_a_b_tree() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let (mut map, mut plain) = (OrderedMap::new(), BTreeMap::new());
            let mut next = 1_000;
            for step in 0..6_000 {
                // First more are added than removed, at the end and anywhere; then the other way round.
                let adds = if step < 3_000 { 0.7 } else { 0.3 };
                let anywhere = rng.below(2_000);
                if rng.chance(adds) {
                    let at_end = rng.chance(0.5);
                    next += u64::from(at_end);
                    let key = if at_end { next } else { anywhere };
                    match rng.chance(0.5) {
                        true => assert_eq!(map.insert(key, step), plain.insert(key, step)),
                        false => {
                            let made = *map.get_or_insert_with(key, || step);
                            assert_eq!(made, *plain.entry(key).or_insert(step));
                        }
                    }
                } else if rng.chance(0.3) {
                    assert_eq!(map.pop_first(), plain.pop_first());
                } else {
                    assert_eq!(map.remove(&anywhere), plain.remove(&anywhere));
                }
                assert_eq!(map.get(&anywhere), plain.get(&anywhere));
                assert_eq!(map.get_mut(&anywhere), plain.get_mut(&anywhere));
                assert_eq!(map.contains_key(&anywhere), plain.contains_key(&anywhere));
                if step % 100 == 0 {
                    check(&map, &plain, &mut rng);
                }
            }
            while let Some(first) = map.pop_first() {
                assert_eq!(Some(first), plain.pop_first());
            }
            check(&map, &plain, &mut rng);
        }
    }

    /// Half of the memory of a B-tree.
    #[test]
    fn entries_that_come_in_order_leave_no_place_empty() {
        let mut map = OrderedMap::new();
        for key in 0..100 * BLOCK_LENGTH {
            map.insert(key, ());
        }
        assert_eq!(map.blocks.len(), 100);
        // Removals here and there leave no trail of short blocks.
        for key in (0..100 * BLOCK_LENGTH).filter(|key| key % 16 > 0) {
            map.remove(&key);
        }
        assert!(map.blocks.len() < 50, "{} blocks for {} entries", map.blocks.len(), map.len());
    }
}
