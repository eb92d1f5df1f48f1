//! A map that forgets the entry that was not used for the longest time.
//!
//! ```text
//!   index:   key --> place (B-tree)
//!   entries: oldest <-> .. <-> newest (links between places)
//! ```
//!
//! A use costs one search of the tree, whatever the order. The order depends on the uses alone, so it is the same in every run.
//! The user has the limit: it takes the [oldest](RecencyMap::pop_oldest) entries beyond it.

use std::collections::BTreeMap;

/// Map that knows the order of the last uses of its entries.
#[derive(Clone, Debug)]
pub struct RecencyMap<K, V> {
    index: BTreeMap<K, usize>,
    entries: Vec<Option<Entry<K, V>>>,
    /// Places without an entry.
    free: Vec<usize>,
    oldest: Option<usize>,
    newest: Option<usize>,
}

#[derive(Clone, Debug)]
struct Entry<K, V> {
    key: K,
    value: V,
    older: Option<usize>,
    newer: Option<usize>,
}

impl<K, V> Default for RecencyMap<K, V> {
    fn default() -> Self {
        RecencyMap {
            index: BTreeMap::new(),
            entries: Vec::new(),
            free: Vec::new(),
            oldest: None,
            newest: None,
        }
    }
}

impl<K: Ord + Clone, V> RecencyMap<K, V> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Returns the value of a key, whose entry becomes the newest one.
    pub fn use_value(&mut self, key: &K) -> Option<&mut V> {
        let place = *self.index.get(key)?;
        if self.newest != Some(place) {
            self.unlink(place);
            self.link(place);
        }
        Some(&mut self.entry(place).value)
    }

    /// Adds an entry, which is the newest one.
    ///
    /// # Panics
    /// Panics if the key has an entry.
    pub fn insert(&mut self, key: K, value: V) -> &mut V {
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            self.entries.len() - 1
        });
        let before = self.index.insert(key.clone(), place);
        assert!(before.is_none(), "a key has one entry");
        self.entries[place] = Some(Entry { key, value, older: None, newer: None });
        self.link(place);
        &mut self.entry(place).value
    }

    /// Removes and returns the entry that was not used for the longest time.
    pub fn pop_oldest(&mut self) -> Option<(K, V)> {
        let place = self.oldest?;
        self.unlink(place);
        let Entry { key, value, .. } = self.entries[place].take()?;
        self.index.remove(&key);
        self.free.push(place);
        Some((key, value))
    }

    /// Returns the entries in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.index.iter().filter_map(|(key, place)| Some((key, &self.entries[*place].as_ref()?.value)))
    }

    fn entry(&mut self, place: usize) -> &mut Entry<K, V> {
        self.entries[place].as_mut().expect("places in the index and in links have entries")
    }

    /// Makes an entry without links the newest one.
    fn link(&mut self, place: usize) {
        let before = self.newest.replace(place);
        let entry = self.entry(place);
        (entry.older, entry.newer) = (before, None);
        match before {
            Some(before) => self.entry(before).newer = Some(place),
            None => self.oldest = Some(place),
        }
    }

    /// Takes an entry out of the order.
    fn unlink(&mut self, place: usize) {
        let Entry { older, newer, .. } = *self.entry(place);
        match older {
            Some(older) => self.entry(older).newer = newer,
            None => self.oldest = newer,
        }
        match newer {
            Some(newer) => self.entry(newer).older = older,
            None => self.newest = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    /// The map beside a list that is in the order of the last uses.
    #[test]
    fn the_oldest_entry_is_the_one_that_was_not_used_for_the_longest_time() {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let (mut map, mut model) = (RecencyMap::default(), Vec::<(u64, u64)>::new());
            for step in 0..2000 {
                let key = rng.below(12);
                let known = model.iter().position(|(other, _)| *other == key);
                if rng.below(4) == 0 {
                    let oldest = (!model.is_empty()).then(|| model.remove(0));
                    assert_eq!(map.pop_oldest(), oldest);
                } else if let Some(at) = known {
                    let (_, value) = model.remove(at);
                    model.push((key, value + 1));
                    *map.use_value(&key).expect("it is known") += 1;
                } else {
                    assert_eq!(map.use_value(&key), None);
                    model.push((key, step));
                    map.insert(key, step);
                }
                let mut sorted = model.clone();
                sorted.sort_unstable();
                assert_eq!(map.iter().map(|(key, value)| (*key, *value)).collect::<Vec<_>>(), sorted);
                assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
                assert!(map.entries.len() <= 12, "places are used again");
            }
        }
    }
}
