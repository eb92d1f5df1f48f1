//! The symbols of one block at its two ends.

use super::{BlockCode, BlockLayout, LayoutFault};
use bytes::{Bytes, BytesMut};
use core::fmt;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// State of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// At least this number of further symbols is needed.
    Lacking(u32),
    /// The absent source symbols can be computed.
    Decodable,
    /// All source symbols are present.
    Complete,
}

/// Number of further symbols that are needed at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lacking(pub u32);

/// Reason why a symbol is refused. The block is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolFault {
    /// The block has no such symbol here: an ID beyond its last one, or a repair symbol at the encoder.
    Id {
        /// ID of the symbol.
        id: u32,
        /// Number of IDs from zero that are accepted.
        ids: u32,
    },
    /// The symbol has not the size that its layout says.
    Size {
        /// Bytes of the symbol.
        bytes: usize,
        /// Bytes that it must have.
        expected: u32,
    },
    /// The symbol is present, received before or restored.
    Duplicate(u32),
}

/// The source symbols of one block, of which repair symbols are made.
///
/// Symbols are kept as they are added, without a copy; a small part of a large buffer keeps the whole buffer in memory.
#[derive(Debug)]
pub struct Encoder {
    code: &'static dyn BlockCode,
    layout: BlockLayout,
    sources: BTreeMap<u32, Bytes>,
}

/// The symbols of one block as they arrive, of which absent source symbols are computed.
///
/// It keeps as many symbols as decoding needs, source symbols in preference, and at most as many as the block has; space
/// is taken when a symbol arrives. Symbols are kept without a copy, as in an [`Encoder`].
#[derive(Debug)]
pub struct Decoder {
    code: &'static dyn BlockCode,
    layout: BlockLayout,
    /// Source symbols, also restored ones, and repair symbols until decoding.
    symbols: BTreeMap<u32, Bytes>,
    /// Number of source symbols among them.
    sources: u32,
    /// Number of symbols with which decoding is tried.
    needed: u32,
}

/// Memory for the place of a symbol in a map, in bytes; an upper estimate.
const PLACE_BYTES: u64 = 96;

fn check(code: &dyn BlockCode, layout: &BlockLayout, work: u64, bytes_max: u64) -> Result<(), LayoutFault> {
    code.check(layout)?;
    let symbols = u64::from(layout.symbols()) * (u64::from(layout.symbol_bytes()) + PLACE_BYTES);
    let bytes = symbols + work;
    if bytes > bytes_max { Err(LayoutFault::Memory { bytes, bytes_max }) } else { Ok(()) }
}

/// A symbol with zeros in place of absent octets.
fn padded<'a>(layout: &BlockLayout, symbol: &'a Bytes) -> Cow<'a, [u8]> {
    let size = layout.symbol_bytes() as usize;
    if symbol.len() == size {
        return Cow::Borrowed(symbol);
    }
    let mut full = vec![0; size];
    full[..symbol.len()].copy_from_slice(symbol);
    Cow::Owned(full)
}

/// Checks a symbol before it is added to those that are present.
fn check_symbol(
    layout: &BlockLayout,
    present: &BTreeMap<u32, Bytes>,
    ids: u32,
    id: u32,
    symbol: &Bytes,
) -> Result<(), SymbolFault> {
    let expected = layout.bytes_of(id).filter(|_| id < ids).ok_or(SymbolFault::Id { id, ids })?;
    if symbol.len() != expected as usize {
        return Err(SymbolFault::Size { bytes: symbol.len(), expected });
    }
    if present.contains_key(&id) { Err(SymbolFault::Duplicate(id)) } else { Ok(()) }
}

impl Encoder {
    /// Creates an encoder without symbols. `memory_bytes_max` is what the block may take at its peak: source and repair
    /// symbols, and the work area of the code.
    ///
    /// # Errors
    /// Fails if the code cannot compute such a block, or not within the memory.
    pub fn new(
        code: &'static dyn BlockCode,
        layout: BlockLayout,
        memory_bytes_max: u64,
    ) -> Result<Self, LayoutFault> {
        check(code, &layout, code.encode_bytes(&layout), memory_bytes_max)?;
        Ok(Encoder { code, layout, sources: BTreeMap::new() })
    }

    /// Returns the layout of the block.
    pub fn layout(&self) -> &BlockLayout {
        &self.layout
    }

    /// Adds a source symbol. The order is free.
    ///
    /// # Errors
    /// Refuses repair symbols, unknown IDs, other sizes and duplicates.
    pub fn add(&mut self, id: u32, symbol: Bytes) -> Result<Progress, SymbolFault> {
        check_symbol(&self.layout, &self.sources, self.layout.source_symbols(), id, &symbol)?;
        self.sources.insert(id, symbol);
        Ok(self.progress())
    }

    /// Returns how many source symbols are absent, or that the block is complete.
    pub fn progress(&self) -> Progress {
        match self.layout.source_symbols() - self.sources.len() as u32 {
            0 => Progress::Complete,
            absent => Progress::Lacking(absent),
        }
    }

    /// Computes all repair symbols, in the order of their IDs from k on.
    ///
    /// # Errors
    /// Fails until all source symbols have been added.
    pub fn encode(&self) -> Result<Vec<Bytes>, Lacking> {
        if let Progress::Lacking(absent) = self.progress() {
            return Err(Lacking(absent));
        }
        let (count, size) = (self.layout.repair_symbols() as usize, self.layout.symbol_bytes() as usize);
        if count == 0 {
            return Ok(Vec::new());
        }
        let padded: Vec<_> = self.sources.values().map(|source| padded(&self.layout, source)).collect();
        let mut all = BytesMut::with_capacity(count * size);
        let mut sources = padded.iter().map(|source| &**source);
        self.code.encode(&self.layout, &mut sources, &mut |symbol| all.extend_from_slice(symbol));
        assert_eq!(all.len(), count * size, "a code makes all repair symbols");
        let mut all = all.freeze();
        Ok((0..count).map(|_| all.split_to(size)).collect())
    }
}

impl Decoder {
    /// Creates a decoder without symbols. `memory_bytes_max` is what the block may take at its peak: all symbols, and the
    /// work area of the code. A layout comes from the peer, so this is the limit on what a peer can make the owner spend.
    ///
    /// # Errors
    /// Fails if the code cannot compute such a block, or not within the memory.
    pub fn new(
        code: &'static dyn BlockCode,
        layout: BlockLayout,
        memory_bytes_max: u64,
    ) -> Result<Self, LayoutFault> {
        check(code, &layout, code.decode_bytes(&layout), memory_bytes_max)?;
        Ok(Decoder { code, layout, symbols: BTreeMap::new(), sources: 0, needed: layout.source_symbols() })
    }

    /// Returns the layout of the block.
    pub fn layout(&self) -> &BlockLayout {
        &self.layout
    }

    /// Adds a symbol. The order is free. A repair symbol that is not needed is dropped.
    ///
    /// # Errors
    /// Refuses unknown IDs, other sizes and duplicates.
    pub fn add(&mut self, id: u32, symbol: Bytes) -> Result<Progress, SymbolFault> {
        check_symbol(&self.layout, &self.symbols, self.layout.symbols(), id, &symbol)?;
        if self.layout.is_source(id) {
            self.symbols.insert(id, symbol);
            self.sources += 1;
            self.drop_surplus();
        } else if let Progress::Lacking(_) = self.progress() {
            self.symbols.insert(id, symbol);
        }
        Ok(self.progress())
    }

    /// Returns how many symbols are needed, or that the block can be decoded or is complete.
    pub fn progress(&self) -> Progress {
        let present = self.symbols.len() as u32;
        if self.sources == self.layout.source_symbols() {
            Progress::Complete
        } else if present < self.needed {
            Progress::Lacking(self.needed - present)
        } else {
            Progress::Decodable
        }
    }

    /// Computes the absent source symbols, and returns them in their order; they are then present. A complete block
    /// has none. This is the one costly step, in one piece.
    ///
    /// # Errors
    /// Fails while too few symbols are present. With a code that needs more than k symbols it can also fail once they
    /// were enough for a try; [`progress`](Decoder::progress) then says how many more the next one needs.
    pub fn decode(&mut self) -> Result<Vec<(u32, Bytes)>, Lacking> {
        match self.progress() {
            Progress::Complete => return Ok(Vec::new()),
            Progress::Lacking(absent) => return Err(Lacking(absent)),
            Progress::Decodable => {}
        }
        let layout = self.layout;
        let missing: Vec<u32> = self.missing().collect();
        let padded: Vec<_> = self.symbols.iter().map(|(id, symbol)| (*id, padded(&layout, symbol))).collect();
        let mut all = BytesMut::with_capacity(missing.len() * layout.symbol_bytes() as usize);
        let mut ids = Vec::with_capacity(missing.len());
        let mut symbols = padded.iter().map(|(id, symbol)| (*id, &**symbol));
        let decoded = self.code.decode(&layout, &mut symbols, &mut |id, symbol| {
            let bytes = layout.bytes_of(id).expect("a code restores symbols of the block");
            all.extend_from_slice(&symbol[..bytes as usize]);
            ids.push(id);
        });
        if let Err(Lacking(more)) = decoded {
            let more = more.max(1);
            self.needed = (self.symbols.len() as u32).saturating_add(more);
            return Err(Lacking(more));
        }
        assert_eq!(ids, missing, "a code restores the absent source symbols in their order");
        let mut all = all.freeze();
        let size = |id| layout.bytes_of(id).unwrap_or(0) as usize;
        let restored: Vec<_> = ids.into_iter().map(|id| (id, all.split_to(size(id)))).collect();
        self.symbols.extend(restored.iter().cloned());
        self.sources = layout.source_symbols();
        self.drop_surplus();
        Ok(restored)
    }

    /// Returns the source symbols that are present, with their IDs in ascending order.
    pub fn sources(&self) -> impl Iterator<Item = (u32, &Bytes)> {
        self.symbols.range(..self.layout.source_symbols()).map(|(id, symbol)| (*id, symbol))
    }

    /// Returns the IDs of the source symbols that are absent, in ascending order.
    pub fn missing(&self) -> impl Iterator<Item = u32> {
        let mut present = self.sources().map(|(id, _)| id).peekable();
        (0..self.layout.source_symbols()).filter(move |id| present.next_if_eq(id).is_none())
    }

    /// Drops repair symbols that are no longer needed.
    fn drop_surplus(&mut self) {
        let complete = self.sources == self.layout.source_symbols();
        let keep = if complete { self.sources } else { self.needed };
        while self.symbols.len() as u32 > keep {
            self.symbols.pop_last();
        }
    }
}

impl fmt::Display for Lacking {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at least {} more symbols are needed", self.0)
    }
}

impl core::error::Error for Lacking {}

impl fmt::Display for SymbolFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SymbolFault::Id { id, ids } => write!(f, "symbol {id}: only {ids} are expected"),
            SymbolFault::Size { bytes, expected } => {
                write!(f, "a symbol of {bytes} bytes in place of {expected}")
            }
            SymbolFault::Duplicate(id) => write!(f, "symbol {id} is present already"),
        }
    }
}

impl core::error::Error for SymbolFault {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fec::ReedSolomon;

    fn symbols(code: &'static dyn BlockCode, layout: BlockLayout, block: &'static [u8]) -> Vec<(u32, Bytes)> {
        let mut all: Vec<_> = layout.sources(&Bytes::from_static(block)).collect();
        let mut encoder = Encoder::new(code, layout, 1 << 20).unwrap();
        for (id, source) in &all {
            encoder.add(*id, source.clone()).unwrap();
        }
        all.extend((layout.source_symbols()..).zip(encoder.encode().unwrap()));
        all
    }

    #[test]
    fn a_decoder_keeps_no_more_symbols_than_it_needs_and_prefers_source_symbols() {
        let layout = BlockLayout::new(8, 2, 4).unwrap();
        let all = symbols(&ReedSolomon, layout, b"a block!");
        let mut decoder = Decoder::new(&ReedSolomon, layout, 1 << 20).unwrap();
        for (id, symbol) in &all[4..7] {
            decoder.add(*id, symbol.clone()).unwrap();
        }
        let mut add = |id: usize, after: [u32; 4]| {
            assert_eq!(decoder.add(all[id].0, all[id].1.clone()), Ok(Progress::Decodable));
            assert_eq!(decoder.symbols.keys().copied().collect::<Vec<_>>(), after);
        };
        add(7, [4, 5, 6, 7]);
        add(2, [2, 4, 5, 6]);
        add(0, [0, 2, 4, 5]);
        add(7, [0, 2, 4, 5]);
        assert_eq!(decoder.decode().unwrap(), [all[1].clone(), all[3].clone()]);
        assert_eq!(decoder.symbols, all[..4].iter().cloned().collect());
    }

    /// A code that needs two symbols more than k.
    #[derive(Debug)]
    struct Wasteful;

    impl BlockCode for Wasteful {
        fn name(&self) -> &'static str {
            "wasteful"
        }

        fn check(&self, layout: &BlockLayout) -> Result<(), LayoutFault> {
            ReedSolomon.check(layout)
        }

        fn encode_bytes(&self, layout: &BlockLayout) -> u64 {
            ReedSolomon.encode_bytes(layout)
        }

        fn decode_bytes(&self, layout: &BlockLayout) -> u64 {
            ReedSolomon.decode_bytes(layout)
        }

        fn encode<'a>(
            &self,
            layout: &BlockLayout,
            sources: &mut dyn Iterator<Item = &'a [u8]>,
            repair: &mut dyn FnMut(&[u8]),
        ) {
            ReedSolomon.encode(layout, sources, repair);
        }

        fn decode<'a>(
            &self,
            layout: &BlockLayout,
            symbols: &mut dyn Iterator<Item = (u32, &'a [u8])>,
            restored: &mut dyn FnMut(u32, &[u8]),
        ) -> Result<(), Lacking> {
            let symbols: Vec<_> = symbols.collect();
            match (layout.source_symbols() + 2).checked_sub(symbols.len() as u32) {
                Some(more) if more > 0 => Err(Lacking(more)),
                _ => ReedSolomon.decode(layout, &mut symbols.into_iter(), restored),
            }
        }
    }

    #[test]
    fn a_code_that_needs_more_than_k_symbols_gets_them() {
        let layout = BlockLayout::new(7, 2, 5).unwrap();
        let all = symbols(&Wasteful, layout, b"a block");
        let mut decoder = Decoder::new(&Wasteful, layout, 1 << 20).unwrap();
        let add = |decoder: &mut Decoder, id: usize| decoder.add(all[id].0, all[id].1.clone()).unwrap();
        assert_eq!(
            [0, 8, 7, 6].map(|id| add(&mut decoder, id))[2..],
            [Progress::Lacking(1), Progress::Decodable]
        );
        assert_eq!(decoder.decode(), Err(Lacking(2)));
        assert_eq!(decoder.progress(), Progress::Lacking(2));
        assert_eq!([5, 3].map(|id| add(&mut decoder, id)), [Progress::Lacking(1), Progress::Decodable]);
        assert_eq!(decoder.symbols.len(), 6);
        assert_eq!(decoder.decode().unwrap(), all[1..3]);
        assert_eq!(decoder.symbols, all[..4].iter().cloned().collect());
    }
}
