//! Blocks that are being sent, one to each receiver.

use super::config::{Config, Counters};
use super::wire::{LossReport, Packet, Symbol, source_symbol, symbol_bytes};
use crate::fec::{BlockLayout, Encoder, ReedSolomon};
use crate::kit::Deadlines;
use crate::rng::Rng;
use crate::service::PeerId;
use crate::time::Instant;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Maximum number of receivers with a block.
const RECEIVERS_MAX: usize = 64;

/// The block to one receiver whose source symbols are being sent.
#[derive(Debug)]
struct Block {
    number: u32,
    sources: Vec<Bytes>,
    /// Length of the longest of them.
    longest: usize,
    /// End of the block if nothing is sent before.
    idle_at: Option<Instant>,
    /// Number of datagrams to all receivers before the last one to this.
    used: u64,
}

/// Blocks that are being sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    blocks: BTreeMap<PeerId, Block>,
    deadlines: Deadlines<PeerId>,
    used: u64,
    rng: Rng,
}

impl Outgoing {
    pub(super) fn new(rng: Rng) -> Self {
        Outgoing { blocks: BTreeMap::new(), deadlines: Deadlines::new(), used: 0, rng }
    }

    /// Forgets everything: the next blocks have new numbers.
    pub(super) fn clear(&mut self) {
        (self.blocks, self.deadlines) = (BTreeMap::new(), Deadlines::new());
    }

    /// Returns the receiver that has to lose its place to this one; `None` if no place is lacking.
    pub(super) fn superfluous(&self, to: PeerId) -> Option<PeerId> {
        let is_full = self.blocks.len() >= RECEIVERS_MAX && !self.blocks.contains_key(&to);
        let oldest = self.blocks.iter().min_by_key(|(_, block)| block.used).map(|(peer, _)| *peer);
        oldest.filter(|_| is_full)
    }

    /// Forgets a receiver.
    pub(super) fn forget(&mut self, peer: PeerId) {
        if let Some(block) = self.blocks.remove(&peer) {
            self.deadlines.remove(peer, block.idle_at);
        }
    }

    /// Adds a datagram to the block of its receiver, and returns its packet.
    pub(super) fn add(&mut self, to: PeerId, datagram: Bytes, report: Option<LossReport>) -> Packet {
        self.used += 1;
        let rng = &mut self.rng;
        let block = self.blocks.entry(to).or_insert_with(|| Block {
            number: rng.next_u32(),
            sources: Vec::new(),
            longest: 0,
            idle_at: None,
            used: 0,
        });
        block.used = self.used;
        self.deadlines.set(to, &mut block.idle_at, None);
        let id = u16::try_from(block.sources.len()).expect("a block has at most 32,000 datagrams");
        block.longest = block.longest.max(datagram.len());
        block.sources.push(datagram.clone());
        // One report for each block, besides those of its repair symbols.
        let report = report.filter(|_| id == 0);
        Packet { block: block.number, id, report, symbol: Symbol::Source(datagram) }
    }

    /// Returns true if the block to this receiver is full.
    pub(super) fn is_full(&self, to: PeerId, config: &Config) -> bool {
        self.blocks.get(&to).is_some_and(|block| block.sources.len() >= config.block_symbols.into())
    }

    /// Ends the block to this receiver, and returns its repair packets.
    pub(super) fn end(
        &mut self,
        to: PeerId,
        loss: f64,
        report: Option<LossReport>,
        config: &Config,
        counters: &mut Counters,
    ) -> Vec<Packet> {
        let Some(block) = self.blocks.get_mut(&to).filter(|block| !block.sources.is_empty()) else {
            return Vec::new();
        };
        self.deadlines.set(to, &mut block.idle_at, None);
        counters.blocks_sent += 1;
        let number = block.number;
        block.number = number.wrapping_add(1);
        let sources = core::mem::take(&mut block.sources);
        let size = symbol_bytes(core::mem::take(&mut block.longest));
        let count = sources.len() as u16;
        let repairs = config.repair_symbols(count.into(), loss);
        let symbols = encode(&sources, size, repairs);
        let packet = |(id, bytes)| Packet {
            block: number,
            id,
            report,
            symbol: Symbol::Repair { sources: count, repairs: repairs as u16, bytes },
        };
        (count..).zip(symbols).map(packet).collect()
    }

    /// Starts the wait for more datagrams, where it does not run.
    pub(super) fn wait(&mut self, until: Instant) {
        for (peer, block) in &mut self.blocks {
            if !block.sources.is_empty() && block.idle_at.is_none() {
                self.deadlines.set(*peer, &mut block.idle_at, Some(until));
            }
        }
    }

    /// Removes and returns a receiver for which nothing came in time.
    pub(super) fn pop_idle(&mut self, now: Instant) -> Option<PeerId> {
        let peer = self.deadlines.pop_due(now)?;
        if let Some(block) = self.blocks.get_mut(&peer) {
            block.idle_at = None;
        }
        Some(peer)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Memory of the blocks, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.blocks.values().flat_map(|block| &block.sources).map(Bytes::len).sum()
    }
}

/// Repair symbols of these datagrams.
fn encode(sources: &[Bytes], size: usize, repairs: u32) -> Vec<Bytes> {
    let layout = BlockLayout::new((sources.len() * size) as u64, size as u32, repairs);
    let layout = layout.expect("the settings keep blocks within the limits of the code");
    let mut encoder = Encoder::new(&ReedSolomon, layout, u64::MAX).expect("blocks within its limits");
    for (id, source) in (0..).zip(sources) {
        encoder.add(id, source_symbol(source, size)).expect("each source symbol once, and padded");
    }
    encoder.encode().expect("all source symbols were added")
}
