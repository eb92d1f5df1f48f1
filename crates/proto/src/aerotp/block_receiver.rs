//! Receiving in the service `adaptive`: blocks, of which as many symbols suffice as there are source symbols.

use super::assembly::{Arrival, Delivery, SEGMENT_COST};
use super::block_sender::{BLOCK_NUMBERS, ROWS, SOURCES_MAX};
use super::wire::{PARITY_PREFIX_BYTES, ParityPrefix};
use crate::fec::VandermondeCode;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Number of blocks after the present one of which symbols are held.
const BLOCKS_MAX: u64 = 4096;

#[derive(Debug, Default)]
struct Block {
    sources: BTreeMap<u32, Bytes>,
    parity: BTreeMap<u32, Bytes>,
    /// Number of source symbols, once it is known.
    count: Option<u32>,
    is_end: bool,
    /// Length of the last source symbol, if parity has stated it.
    last_bytes: Option<usize>,
    /// Bytes in memory, as far as they are counted.
    bytes: u64,
}

impl Block {
    fn symbols(&self) -> usize {
        self.sources.len() + self.parity.len()
    }

    fn is_complete(&self) -> bool {
        self.count.is_some_and(|count| self.sources.len() as u32 >= count)
    }

    /// Length of its parity, if there is any.
    fn symbol_bytes(&self) -> Option<usize> {
        self.parity.values().next().map(Bytes::len)
    }

    /// Computes the missing source symbols if enough symbols are there. Returns their number.
    fn restore(&mut self, code: &VandermondeCode) -> u64 {
        let (Some(count), Some(symbol_bytes)) = (self.count, self.symbol_bytes()) else { return 0 };
        if self.is_complete() || (self.symbols() as u32) < count {
            return 0;
        }
        let missing: Vec<u32> = (0..count).filter(|index| !self.sources.contains_key(index)).collect();
        let sources = self.sources.iter().map(|(index, source)| (*index, &source[..]));
        let parity = self.parity.iter().map(|(row, symbol)| (*row, &symbol[..]));
        let restored =
            code.decode(symbol_bytes, &missing, sources, parity).expect("there are enough symbols");
        for (index, mut source) in missing.iter().zip(restored) {
            if index + 1 == count {
                source.truncate(self.last_bytes.unwrap_or(symbol_bytes));
            }
            self.sources.insert(*index, source);
        }
        missing.len() as u64
    }
}

/// Blocks of a connection at its receiver.
#[derive(Debug)]
pub(super) struct BlockReceiver {
    code: VandermondeCode,
    /// Number of the block of the next symbol to deliver.
    number: u64,
    /// Number of the next symbol to deliver.
    symbol: u32,
    blocks: BTreeMap<u64, Block>,
    held_bytes: u64,
    is_complete: bool,
    /// Nothing is sent again: a block is over when one after it has begun.
    is_open_loop: bool,
    /// Number of the last block that has begun, or of the one after the end.
    heard: u64,
    /// Number of the block after the end, once it is known without its last symbol.
    end: Option<u64>,
    pub(super) restored: u64,
}

impl BlockReceiver {
    pub(super) fn new(code: VandermondeCode, is_open_loop: bool) -> Self {
        BlockReceiver {
            code,
            number: 0,
            symbol: 0,
            blocks: BTreeMap::new(),
            held_bytes: 0,
            is_complete: false,
            is_open_loop,
            heard: 0,
            end: None,
            restored: 0,
        }
    }

    /// Index of the next symbol to deliver.
    pub(super) fn next(&self) -> u64 {
        self.number * BLOCK_NUMBERS + u64::from(self.symbol)
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns true if the user has had everything.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// The connection ends before this symbol, which is the first one of a block.
    pub(super) fn end_at(&mut self, index: u64) {
        if self.is_open_loop {
            let end = index / BLOCK_NUMBERS;
            (self.heard, self.end) = (self.heard.max(end), Some(end));
        } else {
            self.is_complete |= index == self.next();
        }
    }

    /// Handles a symbol that is intact. `room` is the number of bytes that may be held.
    pub(super) fn arrived(
        &mut self,
        index: u64,
        payload: Bytes,
        is_parity: bool,
        ends_block: bool,
        is_last: bool,
        room: u64,
    ) -> Arrival {
        let (number, symbol) = (index / BLOCK_NUMBERS, (index % BLOCK_NUMBERS) as u32);
        if self.is_complete || number < self.number {
            return Arrival::Known;
        }
        let is_awaited = number == self.number;
        let cost = payload.len() as u64 + SEGMENT_COST;
        if number > self.number + BLOCKS_MAX || !is_awaited && cost > room {
            return Arrival::Dropped;
        }
        let block = self.blocks.entry(number).or_default();
        if block.is_complete() {
            return Arrival::Known;
        }
        let arrival = if is_parity {
            add_parity(block, symbol, &payload)
        } else {
            add_source(block, symbol, payload, ends_block, is_last)
        };
        if arrival != Arrival::New {
            if block.symbols() == 0 {
                self.blocks.remove(&number);
            }
            return arrival;
        }
        self.heard = self.heard.max(number);
        block.bytes += cost;
        self.held_bytes += cost;
        self.restored += block.restore(&self.code);
        arrival
    }

    /// Returns the next data, or the gap before them.
    pub(super) fn deliver(&mut self) -> Option<Delivery> {
        self.advance();
        let present = self.blocks.get(&self.number);
        if let Some(data) = present.and_then(|block| block.sources.get(&self.symbol)).cloned() {
            self.symbol += 1;
            self.advance();
            return Some(Delivery::Data { data, damaged: false });
        }
        self.skip()
    }

    /// Gives up symbols that cannot come any more, because a later block has begun.
    fn skip(&mut self) -> Option<Delivery> {
        if !self.is_open_loop || self.is_complete {
            return None;
        }
        if self.heard <= self.number {
            self.is_complete = self.end.is_some_and(|end| self.number >= end);
            return None;
        }
        let block = self.blocks.get(&self.number);
        let next =
            block.and_then(|block| block.sources.range(self.symbol..).next()).map(|(symbol, _)| *symbol);
        match next {
            Some(symbol) => self.symbol = symbol,
            None if block.is_some() => self.end_block(),
            None => {
                let other = self.blocks.keys().next().copied().unwrap_or(self.heard);
                (self.number, self.symbol) = (other.min(self.heard), 0);
            }
        }
        Some(Delivery::Gap { bytes: None })
    }

    /// Ends a block whose last symbol was delivered before its number of symbols was known.
    pub(super) fn advance(&mut self) {
        if self.blocks.get(&self.number).is_some_and(|block| block.count == Some(self.symbol)) {
            self.end_block();
        }
    }

    fn end_block(&mut self) {
        let block = self.blocks.remove(&self.number).expect("the present block");
        self.held_bytes -= block.bytes;
        self.is_complete = block.is_end;
        (self.number, self.symbol) = (self.number + 1, 0);
    }

    /// Returns the blocks from the present one on, with the number of their symbols and whether they are complete.
    pub(super) fn state(&self, most: usize) -> Vec<(u16, u8, bool)> {
        let entry = |(number, block): (&u64, &Block)| {
            (*number as u16, u8::try_from(block.symbols()).unwrap_or(u8::MAX), block.is_complete())
        };
        self.blocks.iter().take(most).map(entry).collect()
    }
}

fn add_source(block: &mut Block, symbol: u32, payload: Bytes, ends_block: bool, is_last: bool) -> Arrival {
    let is_outside = symbol >= SOURCES_MAX
        || block.count.is_some_and(|count| symbol >= count || ends_block && symbol + 1 != count)
        || block.symbol_bytes().is_some_and(|bytes| payload.len() > bytes)
        || ends_block && block.sources.keys().next_back().is_some_and(|last| *last > symbol);
    if is_outside {
        return Arrival::Dropped;
    }
    if block.sources.contains_key(&symbol) {
        return Arrival::Known;
    }
    if ends_block {
        (block.count, block.is_end) = (Some(symbol + 1), is_last);
    }
    block.sources.insert(symbol, payload);
    Arrival::New
}

fn add_parity(block: &mut Block, symbol: u32, payload: &Bytes) -> Arrival {
    let (Some(prefix), Some(row)) = (ParityPrefix::decode(payload), symbol.checked_sub(SOURCES_MAX)) else {
        return Arrival::Dropped;
    };
    let parity = payload.slice(PARITY_PREFIX_BYTES..);
    let count = u32::from(prefix.sources);
    let longest = block.sources.values().map(Bytes::len).max().unwrap_or(0);
    let is_outside = row >= ROWS
        || count > SOURCES_MAX
        || block.count.is_some_and(|known| known != count)
        || block.symbol_bytes().is_some_and(|bytes| bytes != parity.len())
        || longest > parity.len()
        || block.sources.keys().next_back().is_some_and(|last| *last >= count);
    if is_outside {
        return Arrival::Dropped;
    }
    if block.parity.contains_key(&row) {
        return Arrival::Known;
    }
    (block.count, block.is_end) = (Some(count), prefix.is_end);
    block.last_bytes = Some(usize::from(prefix.last_bytes));
    block.parity.insert(row, parity);
    Arrival::New
}
