//! Object that is being received.

mod stream;

use super::partition::Partition;
use super::symbols::SymbolSet;
use super::wire::{FecScheme, Flags, Fti};
use crate::fec::VandermondeCode;
use bytes::{Bytes, BytesMut};
use std::collections::BTreeMap;
pub(super) use stream::{Segment, Stream};

/// Block of which symbols have arrived.
#[derive(Debug)]
pub(super) struct Block {
    /// Symbols that have arrived, parity symbols included.
    pub(super) have: SymbolSet,
    /// Number of source symbols among them.
    sources: u16,
    /// Contents, with gaps for missing segments.
    bytes: BytesMut,
    /// Parity symbols, as far as they are needed.
    parity: BTreeMap<u16, Bytes>,
}

/// State of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    /// Symbols are missing.
    Receiving,
    /// All of it was indicated, and the user has yet to accept it.
    Complete,
    /// The user has refused it, which its sender does not know.
    Refused(u8),
}

/// Effect of a symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Added {
    /// It was not needed.
    Duplicate,
    /// It contradicts the sizes of the object.
    Invalid,
    /// It is kept.
    Kept,
    /// It completes its block, of which this number of source symbols were computed.
    Completes(u16),
}

/// Object that is being received.
#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) flags: Flags,
    pub(super) scheme: FecScheme,
    pub(super) partition: Partition,
    /// Sizes that its sender has announced.
    pub(super) fti: Fti,
    code: VandermondeCode,
    pub(super) info: Option<Bytes>,
    pub(super) progress: Progress,
    /// The provider's number.
    pub(super) number: u64,
    /// Blocks that are not complete, or wait for those before them.
    pub(super) blocks: BTreeMap<u32, Block>,
    /// First block that was not indicated.
    pub(super) next_block: u32,
    /// Number of bytes that the user has accepted.
    pub(super) accepted: u64,
    /// Number of bytes that were indicated.
    pub(super) risen: u64,
    /// Memory in `blocks`.
    pub(super) held: u64,
    /// Fields that only a stream has.
    pub(super) stream: Option<Stream>,
}

impl Incoming {
    /// Begins an object; `None` if its sizes make no sense.
    pub(super) fn new(
        flags: Flags,
        scheme: FecScheme,
        fti: Fti,
        code: VandermondeCode,
        number: u64,
    ) -> Option<Self> {
        let is_stream = flags.has(Flags::STREAM);
        let partition = match is_stream {
            true => Stream::partition(fti)?,
            false => Partition::new(fti.object_bytes, fti.segment_bytes, fti.block_symbols)?,
        };
        Some(Incoming {
            partition,
            stream: is_stream.then(|| Stream::new(fti)),
            flags,
            scheme,
            fti,
            code,
            info: None,
            progress: Progress::Receiving,
            number,
            blocks: BTreeMap::new(),
            next_block: 0,
            accepted: 0,
            risen: 0,
            held: 0,
        })
    }

    /// Memory that a block takes at its first symbol, bytes.
    pub(super) fn block_memory(&self, block: u32) -> u64 {
        let range = self.partition.block(block);
        range.end - range.start + u64::from(self.fti.parity_symbols) * 32 + 128
    }

    /// Returns true if all of a block has arrived.
    pub(super) fn has_block(&self, block: u32) -> bool {
        block < self.next_block
            || self.blocks.get(&block).is_some_and(|waiting| self.is_complete(block, waiting))
    }

    fn is_complete(&self, block: u32, waiting: &Block) -> bool {
        waiting.sources == self.partition.block_symbols(block)
    }

    /// Adds a symbol.
    pub(super) fn add(&mut self, number: u32, symbol: u16, payload: &Bytes) -> Added {
        if number >= self.partition.blocks() {
            return Added::Invalid;
        }
        let sources = self.partition.block_symbols(number);
        let segment = self.partition.segment(number, symbol.min(sources - 1));
        let (length, segment_bytes) = (payload.len() as u64, self.partition.segment_bytes());
        let is_source = symbol < sources;
        let is_valid = match is_source {
            true if self.stream.is_some() => {
                payload.len() <= segment_bytes.into() && Stream::is_segment(payload)
            }
            true => length == segment.end - segment.start,
            false => symbol < sources + self.fti.parity_symbols && length <= u64::from(segment_bytes),
        };
        if !is_valid {
            return Added::Invalid;
        }
        if self.has_block(number) {
            return Added::Duplicate;
        }
        if !self.blocks.contains_key(&number) {
            self.held += self.block_memory(number);
            let range = self.partition.block(number);
            let block = Block {
                have: SymbolSet::EMPTY,
                sources: 0,
                bytes: BytesMut::zeroed((range.end - range.start) as usize),
                parity: BTreeMap::new(),
            };
            self.blocks.insert(number, block);
        }
        let block = self.blocks.get_mut(&number).expect("it was inserted");
        if !block.have.insert(symbol) {
            return Added::Duplicate;
        }
        if is_source {
            let at = usize::from(symbol) * usize::from(segment_bytes);
            block.bytes[at..at + payload.len()].copy_from_slice(payload);
            block.sources += 1;
        } else {
            self.held += length;
            // A copy, because a part of a large buffer would keep all of it.
            block.parity.insert(symbol - sources, Bytes::copy_from_slice(payload));
        }
        let missing = usize::from(sources - block.sources);
        if missing > block.parity.len() {
            return Added::Kept;
        }
        let restored = if missing == 0 { 0 } else { self.restore(number) };
        let block = self.blocks.get_mut(&number).expect("it is there");
        let parity: usize = block.parity.values().map(Bytes::len).sum();
        block.parity.clear();
        self.held -= parity as u64;
        Added::Completes(restored)
    }

    /// Computes the missing source symbols of a block, and returns their number.
    fn restore(&mut self, number: u32) -> u16 {
        let sources = self.partition.block_symbols(number);
        let block = self.blocks.get_mut(&number).expect("its symbols have arrived");
        let size = usize::from(self.partition.segment_bytes());
        let missing: Vec<u32> =
            (0..sources).filter(|symbol| !block.have.contains(*symbol)).map(u32::from).collect();
        let present = (0..u32::from(sources)).zip(block.bytes.chunks(size));
        let present = present.filter(|(symbol, _)| block.have.contains(*symbol as u16));
        let parity = block.parity.iter().map(|(row, symbol)| (u32::from(*row), &symbol[..]));
        // Other implementations may fill parity symbols of a single short segment up.
        let restored = self
            .code
            .decode(size, &missing, present, parity)
            .expect("as many parity symbols as source symbols are missing");
        for (symbol, bytes) in missing.iter().zip(restored) {
            let at = *symbol as usize * size;
            let end = (at + size).min(block.bytes.len());
            block.bytes[at..end].copy_from_slice(&bytes[..end - at]);
            block.have.insert(*symbol as u16);
        }
        block.sources = sources;
        missing.len() as u16
    }

    /// Returns the next block in order if it is complete, and whether it is the last one.
    pub(super) fn pop_block(&mut self) -> Option<(Bytes, bool)> {
        let number = self.next_block;
        let waiting = self.blocks.get(&number).filter(|block| self.is_complete(number, block))?;
        let bytes = waiting.bytes.len() as u64;
        self.held -= self.block_memory(number);
        let block = self.blocks.remove(&number).expect("it is complete");
        debug_assert_eq!(bytes, block.bytes.len() as u64);
        self.next_block += 1;
        self.risen += bytes;
        Some((block.bytes.freeze(), self.next_block == self.partition.blocks()))
    }

    /// Forgets a block that is not the next one, for want of memory; returns the memory.
    pub(super) fn drop_last_block(&mut self) -> u64 {
        let Some((number, _)) = self.blocks.last_key_value().filter(|(number, _)| **number > self.next_block)
        else {
            return 0;
        };
        let number = *number;
        let block = self.blocks.remove(&number).expect("it is there");
        let parity: usize = block.parity.values().map(Bytes::len).sum();
        let memory = self.block_memory(number) + parity as u64;
        self.held -= memory;
        memory
    }

    /// Forgets all symbols.
    pub(super) fn clear(&mut self) {
        self.blocks.clear();
        self.held = 0;
    }

    /// Returns the symbols of a block to request: parity symbols, the lowest that have not arrived, as many as symbols are missing; and
    /// source symbols as far as there are not enough of them (RFC 5740 5.3). `None` if nothing of the block has arrived.
    pub(super) fn lacking(&self, number: u32) -> Option<SymbolSet> {
        let block = self.blocks.get(&number)?;
        let sources = self.partition.block_symbols(number);
        let all = sources + self.fti.parity_symbols;
        let mut missing = sources.saturating_sub(block.have.len());
        let mut wanted = SymbolSet::EMPTY;
        let parity = (sources..all).filter(|symbol| !block.have.contains(*symbol));
        let last_sources = (0..sources).rev().filter(|symbol| !block.have.contains(*symbol));
        for symbol in parity.chain(last_sources) {
            if missing == 0 {
                break;
            }
            wanted.insert(symbol);
            missing -= 1;
        }
        Some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    const FTI: Fti = Fti { object_bytes: 25_500, segment_bytes: 1_000, block_symbols: 8, parity_symbols: 4 };

    fn object() -> (Vec<u8>, Incoming, VandermondeCode) {
        let code = VandermondeCode::new(8, 4).expect("a code");
        let mut bytes = vec![0; FTI.object_bytes as usize];
        Rng::new(7).fill(&mut bytes);
        let incoming = Incoming::new(Flags(0), FecScheme::ReedSolomon8, FTI, code.clone(), 0);
        (bytes, incoming.expect("it makes sense"), code)
    }

    fn source(bytes: &[u8], incoming: &Incoming, block: u32, symbol: u16) -> Bytes {
        let range = incoming.partition.segment(block, symbol);
        Bytes::copy_from_slice(&bytes[range.start as usize..range.end as usize])
    }

    fn parity(bytes: &[u8], incoming: &Incoming, code: &VandermondeCode, block: u32, row: u32) -> Bytes {
        let range = incoming.partition.block(block);
        let sources = bytes[range.start as usize..range.end as usize].chunks(1_000);
        let mut out = BytesMut::zeroed(1_000);
        code.encode_into(row, sources, &mut out);
        out.freeze()
    }

    #[test]
    fn blocks_rise_in_order_and_whole() {
        let (bytes, mut incoming, _) = object();
        // 26 segments: blocks of 7, 7, 6 and 6.
        for block in [1, 0, 2, 3] {
            let symbols = incoming.partition.block_symbols(block);
            for symbol in (0..symbols).rev() {
                let added = incoming.add(block, symbol, &source(&bytes, &incoming, block, symbol));
                assert_eq!(added, if symbol == 0 { Added::Completes(0) } else { Added::Kept });
            }
            assert_eq!(incoming.add(block, 0, &source(&bytes, &incoming, block, 0)), Added::Duplicate);
        }
        let mut all = Vec::new();
        while let Some((block, is_last)) = incoming.pop_block() {
            all.extend_from_slice(&block);
            assert_eq!(is_last, all.len() == bytes.len());
        }
        assert!(all == bytes && incoming.held == 0);
    }

    /// Any parity symbols serve; the last segment is short, and that of a short block.
    #[test]
    fn missing_segments_are_computed() {
        let (bytes, mut incoming, code) = object();
        for symbol in [0, 2, 4] {
            incoming.add(3, symbol, &source(&bytes, &incoming, 3, symbol));
        }
        assert_eq!(incoming.lacking(3).expect("some").iter().collect::<Vec<_>>(), [6, 7, 8]);
        for (row, added) in
            [(3, Added::Kept), (0, Added::Kept), (0, Added::Duplicate), (1, Added::Completes(3))]
        {
            assert_eq!(incoming.add(3, 6 + row, &parity(&bytes, &incoming, &code, 3, row.into())), added);
        }
        assert!(incoming.has_block(3) && incoming.pop_block().is_none());
        assert_eq!(incoming.held, incoming.block_memory(3));
        assert_eq!(incoming.drop_last_block(), incoming.block_memory(3));
        assert!(!incoming.has_block(3) && incoming.lacking(3).is_none() && incoming.held == 0);
    }

    #[test]
    fn source_symbols_are_requested_when_parity_symbols_are_not_enough() {
        let (bytes, mut incoming, code) = object();
        incoming.add(0, 8, &parity(&bytes, &incoming, &code, 0, 1));
        incoming.add(0, 1, &source(&bytes, &incoming, 0, 1));
        assert_eq!(incoming.lacking(0).expect("some").iter().collect::<Vec<_>>(), [5, 6, 7, 9, 10]);
    }

    #[test]
    fn a_parity_symbol_may_be_longer_than_the_only_segment() {
        let code = VandermondeCode::new(1, 4).expect("a code");
        let short = Fti { object_bytes: 5, block_symbols: 1, ..FTI };
        let mut incoming =
            Incoming::new(Flags(0), FecScheme::ReedSolomon8, short, code, 0).expect("it makes sense");
        // Parity symbols of blocks of one segment are copies of it.
        let padded = Bytes::from_static(&[1, 2, 3, 4, 5, 0, 0, 0, 0]);
        assert_eq!(incoming.add(0, 1, &padded), Added::Completes(1));
        assert_eq!(incoming.pop_block(), Some((Bytes::from_static(&[1, 2, 3, 4, 5]), true)));
    }

    #[test]
    fn symbols_that_contradict_the_sizes_are_refused() {
        let (bytes, mut incoming, _) = object();
        let first = source(&bytes, &incoming, 0, 0);
        assert_eq!(incoming.add(4, 0, &first), Added::Invalid, "a block beyond the last one");
        assert_eq!(incoming.add(0, 11, &first), Added::Invalid, "a symbol beyond the last one");
        assert_eq!(incoming.add(0, 0, &first.slice(1..)), Added::Invalid, "a short segment");
        assert_eq!(incoming.add(3, 5, &first), Added::Invalid, "a last segment that is not short");
        assert_eq!(incoming.add(0, 7, &Bytes::from(vec![0; 1_001])), Added::Invalid, "a long parity symbol");
        assert!(incoming.blocks.is_empty() && incoming.held == 0);
        let none = Fti { segment_bytes: 0, ..FTI };
        let code = VandermondeCode::new(8, 4).expect("a code");
        assert!(Incoming::new(Flags(0), FecScheme::ReedSolomon8, none, code, 0).is_none());
    }
}
