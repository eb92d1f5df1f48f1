//! Sets of symbols of a block.

/// Number of symbols that a block can have: those that one octet numbers.
const SYMBOLS_END: u16 = 256;

/// Set of encoding symbol IDs below [`SYMBOLS_END`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SymbolSet([u64; 4]);

impl SymbolSet {
    /// Set without symbols.
    pub(super) const EMPTY: SymbolSet = SymbolSet([0; 4]);

    /// Returns the set of all symbols of a range; those beyond the greatest number are absent.
    pub(super) fn range(symbols: core::ops::Range<u16>) -> Self {
        let mut set = SymbolSet::EMPTY;
        for symbol in symbols.start..symbols.end.min(SYMBOLS_END) {
            set.insert(symbol);
        }
        set
    }

    /// Adds a symbol; false if it was present, or if it is beyond the greatest number.
    pub(super) fn insert(&mut self, symbol: u16) -> bool {
        let Some(word) = self.0.get_mut(usize::from(symbol / 64)) else { return false };
        let bit = 1 << (symbol % 64);
        core::mem::replace(word, *word | bit) & bit == 0
    }

    /// Removes a symbol; false if it was absent.
    pub(super) fn remove(&mut self, symbol: u16) -> bool {
        let Some(word) = self.0.get_mut(usize::from(symbol / 64)) else { return false };
        let bit = 1 << (symbol % 64);
        core::mem::replace(word, *word & !bit) & bit != 0
    }

    /// Returns true if the symbol is present.
    pub(super) fn contains(&self, symbol: u16) -> bool {
        self.0.get(usize::from(symbol / 64)).is_some_and(|word| word & (1 << (symbol % 64)) != 0)
    }

    /// Number of symbols.
    pub(super) fn len(&self) -> u16 {
        self.0.iter().map(|word| word.count_ones() as u16).sum()
    }

    /// Returns true if there is no symbol.
    pub(super) fn is_empty(&self) -> bool {
        *self == SymbolSet::EMPTY
    }

    /// Returns the least symbol.
    pub(super) fn first(&self) -> Option<u16> {
        self.iter().next()
    }

    /// Symbols in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u16> + use<> {
        let words = self.0;
        (0..4_u16).flat_map(move |index| {
            let mut word = words[usize::from(index)];
            core::iter::from_fn(move || {
                let bit = (word != 0).then(|| word.trailing_zeros() as u16)?;
                word &= word - 1;
                Some(index * 64 + bit)
            })
        })
    }

    /// Adds the symbols of another set.
    pub(super) fn extend(&mut self, other: &SymbolSet) {
        for (word, others) in self.0.iter_mut().zip(other.0) {
            *word |= others;
        }
    }

    /// Returns the symbols that this set has and the other has not.
    pub(super) fn without(&self, other: &SymbolSet) -> SymbolSet {
        let mut set = *self;
        for (word, others) in set.0.iter_mut().zip(other.0) {
            *word &= !others;
        }
        set
    }

    /// Returns runs of successive symbols, first and last, in ascending order.
    pub(super) fn runs(&self) -> Vec<(u16, u16)> {
        let mut runs: Vec<(u16, u16)> = Vec::new();
        for symbol in self.iter() {
            match runs.last_mut() {
                Some((_, last)) if *last + 1 == symbol => *last = symbol,
                _ => runs.push((symbol, symbol)),
            }
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_are_kept_in_order_and_once() {
        let mut set = SymbolSet::EMPTY;
        let added = [200, 3, 64, 63, 3, 255, 256].map(|symbol| set.insert(symbol));
        assert_eq!(added, [true, true, true, true, false, true, false]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [3, 63, 64, 200, 255]);
        assert_eq!((set.len(), set.first(), set.contains(64), set.contains(65)), (5, Some(3), true, false));
        assert_eq!(set.runs(), [(3, 3), (63, 64), (200, 200), (255, 255)]);
        assert!(set.remove(3) && !set.remove(3) && !set.remove(256) && !set.contains(256));
        assert_eq!(set.first(), Some(63));
        let rest = set.without(&SymbolSet::range(64..201));
        assert_eq!(rest.iter().collect::<Vec<_>>(), [63, 255]);
        set.extend(&SymbolSet::range(254..999));
        assert_eq!(set.len(), 5);
        assert!(SymbolSet::range(7..7).is_empty());
    }
}
