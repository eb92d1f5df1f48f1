//! Blocks that are being received, of all senders.

use super::config::{Config, Counters, REPAIR_SPARE};
use super::wire::{Packet, Symbol, datagram_of, source_symbol};
use crate::fec::{BlockLayout, Decoder, ReedSolomon};
use crate::service::PeerId;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Number of blocks of a sender, from the newest on, whose symbols are expected.
pub(super) const WINDOW: i64 = 64;
/// Number of blocks before these whose symbols are late. Any other number begins a new count: its sender has restarted.
pub(super) const LATE: i64 = 4_096;
/// Maximum number of senders with blocks.
pub(super) const SENDERS_MAX: usize = 64;
/// Number of blocks begun later after which all symbols of a block have arrived or are lost.
const SETTLED: i64 = 2;
/// Memory for the place of a symbol, in bytes; an upper estimate.
const PLACE_BYTES: u64 = 96;

/// Sender of datagrams, and whether they are for the group: each has numbers of its own.
pub(super) type Origin = (PeerId, bool);

/// Numbers of a block that are the same in all its repair packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    sources: u16,
    repairs: u16,
    symbol_bytes: usize,
}

/// Symbols of a block.
#[derive(Debug, Default)]
struct Block {
    /// The sender defers repair symbols: they are not counted for the measurement, because whether they are sent is open.
    deferred: bool,
    /// Contents of the packets by ID, until the block is complete or given up.
    symbols: BTreeMap<u16, Bytes>,
    /// Number of source symbols among them, up to 65,536.
    sources: u32,
    shape: Option<Shape>,
    /// Nothing more can be restored: it is complete, contradicts itself, or had no memory.
    over: bool,
    /// All source symbols are known.
    complete: bool,
    /// Number of symbols received, and number sent before the last one of these.
    received: u32,
    sent: u32,
    /// The losses have been measured.
    measured: bool,
}

/// Blocks of one sender, by their numbers, which continue beyond 32 bits.
#[derive(Debug)]
struct Sender {
    newest: i64,
    blocks: BTreeMap<i64, Block>,
    /// Number of datagrams of all senders before the last one of this.
    heard: u64,
    /// Memory of its symbols.
    held_bytes: u64,
}

/// Result of a packet.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// The datagram in it, if it is new.
    pub(super) datagram: Option<Bytes>,
    /// Datagrams that were restored.
    pub(super) restored: Vec<Bytes>,
    /// Numbers of lost and of all symbols of blocks that have settled.
    pub(super) measured: (u64, u64),
}

/// Blocks that are being received.
#[derive(Debug)]
pub(super) struct Incoming {
    bytes_max: u64,
    /// [`Config::deferred`] and [`Config::block_symbols`], as at the senders.
    deferred: bool,
    block_symbols: u32,
    senders: BTreeMap<Origin, Sender>,
    heard: u64,
}

impl Sender {
    /// Gives up blocks without a repair symbol, after which so many symbols were sent that none will follow.
    fn end_without_repair(&mut self, symbols: u32) {
        let mut after = 0;
        for block in self.blocks.values_mut().rev() {
            if after >= symbols && block.shape.is_none() {
                self.held_bytes -= block.end();
            }
            after += block.sent;
        }
    }
}

fn place_bytes(symbol: &Bytes) -> u64 {
    symbol.len() as u64 + PLACE_BYTES
}

impl Block {
    /// Ends the work on the block, and returns the memory that becomes free.
    fn end(&mut self) -> u64 {
        self.over = true;
        let symbols = core::mem::take(&mut self.symbols);
        symbols.values().map(place_bytes).sum()
    }

    /// Counts a symbol for the measurement, and returns true if no more can follow.
    fn count(&mut self, id: u16, is_source: bool) -> bool {
        if self.deferred && !is_source {
            return false;
        }
        self.received = self.received.saturating_add(1);
        self.sent = self.sent.max(u32::from(id) + 1);
        if let Some(shape) = self.shape
            && !self.deferred
        {
            self.sent = self.sent.max(u32::from(shape.sources));
            return u32::from(id) + 1 == u32::from(shape.sources) + u32::from(shape.repairs);
        }
        false
    }

    /// Returns the numbers of lost and of all symbols, once; zeros if most of them are missing.
    fn measure(&mut self) -> (u64, u64) {
        if core::mem::replace(&mut self.measured, true) {
            return (0, 0);
        }
        let all = match self.shape {
            Some(shape) if self.deferred => u32::from(shape.sources),
            Some(shape) => u32::from(shape.sources) + u32::from(shape.repairs),
            None => self.sent,
        };
        // A block of which most is missing tells of an outage, or of a number that someone has forged.
        let lost = all.saturating_sub(self.received);
        if lost > self.received { (0, 0) } else { (lost.into(), all.into()) }
    }

    /// Returns true if the symbols are enough to restore others.
    fn is_decodable(&self) -> bool {
        self.shape.is_some_and(|shape| {
            self.symbols.len() >= usize::from(shape.sources) && self.sources < u32::from(shape.sources)
        })
    }

    /// Restores the missing datagrams; `None` if the symbols contradict each other, or take too much memory.
    fn decode(&self, bytes_max: u64) -> Option<Vec<Bytes>> {
        let Shape { sources, repairs, symbol_bytes } = self.shape?;
        let block_bytes = u64::from(sources) * symbol_bytes as u64;
        let layout = BlockLayout::new(block_bytes, u32::try_from(symbol_bytes).ok()?, repairs.into()).ok()?;
        let mut decoder = Decoder::new(&ReedSolomon, layout, bytes_max).ok()?;
        for (id, bytes) in &self.symbols {
            let symbol = if *id < sources { source_symbol(bytes, symbol_bytes) } else { bytes.clone() };
            decoder.add((*id).into(), symbol).ok()?;
        }
        let restored = decoder.decode().ok()?;
        restored.into_iter().map(|(_, symbol)| datagram_of(symbol)).collect()
    }

    /// Returns true if a symbol does not contradict those before it.
    fn agrees(&self, id: u16, shape: Option<Shape>, bytes: &Bytes) -> bool {
        let fits = |shape: Shape, id: u16, bytes: &Bytes| {
            id < shape.sources && super::wire::symbol_bytes(bytes.len()) <= shape.symbol_bytes
        };
        match (self.shape, shape) {
            (Some(own), Some(new)) => own == new,
            (Some(own), None) => fits(own, id, bytes),
            // The first repair packet: all source symbols until now must fit. IDs of repair symbols begin after them.
            (None, Some(new)) => self.symbols.iter().all(|(id, bytes)| fits(new, *id, bytes)),
            (None, None) => true,
        }
    }
}

/// Number near `newest` whose lowest 32 bits are these.
fn extended(newest: i64, block: u32) -> i64 {
    newest + i64::from(block.wrapping_sub(newest as u32) as i32)
}

impl Incoming {
    pub(super) fn new(config: &Config) -> Self {
        let Config { incoming_bytes_max: bytes_max, deferred, block_symbols, .. } = *config;
        Incoming { bytes_max, deferred, block_symbols, senders: BTreeMap::new(), heard: 0 }
    }

    /// Memory of all symbols.
    pub(super) fn held_bytes(&self) -> u64 {
        self.senders.values().map(|sender| sender.held_bytes).sum()
    }

    pub(super) fn senders(&self) -> usize {
        self.senders.len()
    }

    /// The endpoint has closed. Of a peer that has the same number afterwards, the numbers of blocks are remembered, so that
    /// what has arrived is not restored from symbols that arrive later.
    pub(super) fn close(&mut self, peer: Option<PeerId>) {
        self.senders.retain(|(from, to_group), _| !to_group && Some(*from) == peer);
        for sender in self.senders.values_mut() {
            for block in sender.blocks.values_mut() {
                sender.held_bytes -= block.end();
            }
        }
    }

    /// Processes a packet.
    pub(super) fn receive(&mut self, origin: Origin, packet: Packet, counters: &mut Counters) -> Received {
        let mut received = Received::default();
        let Packet { block: number, id, symbol, .. } = packet;
        let (bytes, shape) = match symbol {
            Symbol::Source(bytes) => (bytes, None),
            Symbol::Repair { sources, repairs, bytes } => {
                let symbol_bytes = bytes.len();
                (bytes, Some(Shape { sources, repairs, symbol_bytes }))
            }
        };
        // So many repair symbols serve no purpose but to make decoding expensive.
        let is_excessive = |shape: Shape| u32::from(shape.repairs) > u32::from(shape.sources) + REPAIR_SPARE;
        if shape.is_some_and(is_excessive) {
            counters.violations += 1;
            return received;
        }
        let Some(number) = self.enter(origin, number, counters, &mut received) else {
            counters.late += 1;
            return received;
        };
        self.add(origin, number, (id, shape, bytes), counters, &mut received);
        received
    }

    /// Finds the block of a symbol, and begins it if it is new; `None` if it is too old.
    fn enter(
        &mut self,
        origin: Origin,
        block: u32,
        counters: &mut Counters,
        received: &mut Received,
    ) -> Option<i64> {
        self.heard += 1;
        if !self.senders.contains_key(&origin) {
            self.make_place();
            // Positive, so that the numbers of older blocks are, too.
            let newest = (1 << 40) + i64::from(block);
            let sender = Sender { newest, blocks: BTreeMap::new(), heard: 0, held_bytes: 0 };
            self.senders.insert(origin, sender);
        }
        let sender = self.senders.get_mut(&origin).expect("it was just inserted");
        sender.heard = self.heard;
        let number = extended(sender.newest, block);
        let behind = sender.newest - number;
        if (WINDOW..LATE).contains(&behind) {
            return None;
        }
        if !(-LATE..WINDOW).contains(&behind) {
            counters.renumbered += 1;
            let ended = core::mem::take(&mut sender.blocks);
            ended.into_values().for_each(|block| sender.held_bytes -= end_block(block, counters, received));
        }
        sender.newest = if behind >= LATE { number } else { sender.newest.max(number) };
        let kept = sender.blocks.split_off(&(sender.newest - WINDOW + 1));
        let ended = core::mem::replace(&mut sender.blocks, kept);
        ended.into_values().for_each(|block| sender.held_bytes -= end_block(block, counters, received));
        if let Entry::Vacant(vacant) = sender.blocks.entry(number) {
            counters.blocks_received += 1;
            vacant.insert(Block { deferred: self.deferred, ..Block::default() });
            let settled = sender.blocks.range_mut(..=sender.newest - SETTLED);
            for (_, block) in settled.rev().take_while(|(_, block)| !block.measured) {
                let (lost, all) = block.measure();
                received.measured.0 += lost;
                received.measured.1 += all;
            }
            if self.deferred {
                // Repair symbols follow a block before the second full one after it, or not at all.
                sender.end_without_repair(2 * self.block_symbols);
            }
        }
        Some(number)
    }

    /// Forgets the sender that was not heard for the longest time, if there are too many.
    fn make_place(&mut self) {
        if self.senders.len() < SENDERS_MAX {
            return;
        }
        let oldest = self.senders.iter().min_by_key(|(_, sender)| sender.heard).map(|(origin, _)| *origin);
        oldest.and_then(|origin| self.senders.remove(&origin));
    }

    fn add(
        &mut self,
        origin: Origin,
        number: i64,
        (id, shape, bytes): (u16, Option<Shape>, Bytes),
        counters: &mut Counters,
        received: &mut Received,
    ) {
        let sender = self.senders.get_mut(&origin).expect("the block was entered");
        let block = sender.blocks.get_mut(&number).expect("the block was entered");
        let is_source = shape.is_none();
        if block.symbols.contains_key(&id) || block.complete && is_source {
            counters.duplicates += u64::from(is_source);
            // A late symbol of a restored block is none that was lost.
            let is_counted = block.complete && !block.measured && (is_source || !block.deferred);
            block.received = block.received.saturating_add(u32::from(is_counted));
            return;
        }
        if !block.over && !block.agrees(id, shape, &bytes) {
            counters.violations += 1;
            if !is_source {
                return;
            }
            sender.held_bytes -= block.end();
        }
        block.shape = block.shape.or(shape);
        let is_last = block.count(id, is_source);
        if is_source {
            received.datagram = Some(bytes.clone());
        }
        if !block.over {
            sender.held_bytes += place_bytes(&bytes);
            block.symbols.insert(id, bytes);
            block.sources += u32::from(is_source);
            self.restore(origin, number, counters, received);
            self.limit(counters);
        }
        let sender = self.senders.get_mut(&origin).expect("the block was entered");
        if is_last && let Some(block) = sender.blocks.get_mut(&number) {
            let (lost, all) = block.measure();
            received.measured.0 += lost;
            received.measured.1 += all;
        }
    }

    /// Restores what a block lacks, if it has enough symbols.
    fn restore(&mut self, origin: Origin, number: i64, counters: &mut Counters, received: &mut Received) {
        let sender = self.senders.get_mut(&origin).expect("the block was entered");
        let block = sender.blocks.get_mut(&number).expect("the block was entered");
        if block.is_decodable() {
            match block.decode(self.bytes_max) {
                Some(restored) => {
                    counters.blocks_restored += 1;
                    counters.datagrams_restored += restored.len() as u64;
                    received.restored = restored;
                    block.complete = true;
                }
                None => counters.violations += 1,
            }
            sender.held_bytes -= block.end();
        } else if block.shape.is_some_and(|shape| block.sources == u32::from(shape.sources)) {
            block.complete = true;
            sender.held_bytes -= block.end();
        }
    }

    /// Ends blocks until the memory suffices: the oldest ones of the sender that takes most of it, so that no sender takes the
    /// memory of the others.
    fn limit(&mut self, counters: &mut Counters) {
        while self.held_bytes() > self.bytes_max {
            let largest = self.senders.values_mut().max_by_key(|sender| sender.held_bytes);
            let sender = largest.expect("someone takes the memory");
            let mut blocks = sender.blocks.values_mut();
            let oldest = blocks.find(|block| !block.symbols.is_empty());
            let oldest = oldest.expect("memory is that of symbols");
            counters.not_kept += oldest.symbols.len() as u64;
            sender.held_bytes -= oldest.end();
        }
    }
}

/// Ends a block whose symbols are no longer expected, and returns the memory that becomes free.
fn end_block(mut block: Block, counters: &mut Counters, received: &mut Received) -> u64 {
    let (lost, all) = block.measure();
    received.measured.0 += lost;
    received.measured.1 += all;
    let is_short = block.sources < block.shape.map_or(block.sent, |shape| shape.sources.into());
    counters.blocks_failed += u64::from(!block.complete && is_short);
    block.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_continue_beyond_32_bits() {
        let newest = (1 << 40) + i64::from(u32::MAX);
        assert_eq!(extended(newest, u32::MAX), newest);
        assert_eq!(extended(newest, 1), newest + 2);
        assert_eq!(extended(newest + 2, u32::MAX - 1), newest - 1);
    }
}
