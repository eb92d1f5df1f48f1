//! Blocks that are being sent, one to each receiver.

use super::config::{Config, Counters};
use super::wire::{LossReport, Packet, Symbol, source_symbol, symbol_bytes};
use crate::fec::{BlockLayout, Encoder, ReedSolomon};
use crate::kit::Deadlines;
use crate::rng::Rng;
use crate::service::PeerId;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Maximum number of receivers with a block.
const RECEIVERS_MAX: usize = 64;

/// Source symbols of a block, sent or being sent.
#[derive(Debug, Default)]
struct Block {
    number: u32,
    sources: Vec<Bytes>,
    /// Length of the longest of them.
    longest: usize,
}

/// Blocks to one receiver.
#[derive(Debug)]
struct Receiver {
    /// The block whose source symbols are being sent.
    block: Block,
    /// The one before, while it waits for a pause to have its repair symbols sent.
    waiting: Option<Block>,
    /// End of the block if nothing is sent before.
    idle_at: Option<Instant>,
    /// The pause is over, but nothing could leave since: the block ends as soon as something can, if the user sends nothing then.
    is_overdue: bool,
    /// Number of datagrams to all receivers before the last one to this.
    used: u64,
}

/// Blocks that are being sent.
#[derive(Debug)]
pub(super) struct Outgoing {
    receivers: BTreeMap<PeerId, Receiver>,
    deadlines: Deadlines<PeerId>,
    used: u64,
    /// [`Config::deferred`].
    deferred: bool,
    rng: Rng,
}

impl Outgoing {
    pub(super) fn new(config: &Config, rng: Rng) -> Self {
        let deferred = config.deferred;
        Outgoing { receivers: BTreeMap::new(), deadlines: Deadlines::new(), used: 0, deferred, rng }
    }

    /// Forgets everything: the next blocks have new numbers.
    pub(super) fn clear(&mut self) {
        (self.receivers, self.deadlines) = (BTreeMap::new(), Deadlines::new());
    }

    /// Returns the receiver that has to lose its place to this one; `None` if no place is lacking.
    pub(super) fn superfluous(&self, to: PeerId) -> Option<PeerId> {
        let is_full = self.receivers.len() >= RECEIVERS_MAX && !self.receivers.contains_key(&to);
        let oldest = self.receivers.iter().min_by_key(|(_, receiver)| receiver.used).map(|(peer, _)| *peer);
        oldest.filter(|_| is_full)
    }

    /// Forgets a receiver.
    pub(super) fn forget(&mut self, peer: PeerId) {
        if let Some(receiver) = self.receivers.remove(&peer) {
            self.deadlines.remove(peer, receiver.idle_at);
        }
    }

    /// Adds a datagram to the block of its receiver, and returns its packet.
    pub(super) fn add(&mut self, to: PeerId, datagram: Bytes, report: Option<LossReport>) -> Packet {
        self.used += 1;
        let rng = &mut self.rng;
        let receiver = self.receivers.entry(to).or_insert_with(|| Receiver {
            block: Block { number: rng.next_u32(), ..Block::default() },
            waiting: None,
            idle_at: None,
            is_overdue: false,
            used: 0,
        });
        receiver.used = self.used;
        // While repair is deferred, short datagrams such as reports and acknowledgements do not end a pause.
        let longest = receiver.block.longest.max(receiver.waiting.as_ref().map_or(0, |block| block.longest));
        if !self.deferred || 2 * datagram.len() >= longest {
            self.deadlines.set(to, &mut receiver.idle_at, None);
            receiver.is_overdue = false;
        }
        let block = &mut receiver.block;
        let id = u16::try_from(block.sources.len()).expect("a block has at most 32,000 datagrams");
        block.longest = block.longest.max(datagram.len());
        block.sources.push(datagram.clone());
        // One report for each block, besides those of its repair symbols.
        let report = report.filter(|_| id == 0);
        Packet { block: block.number, id, report, symbol: Symbol::Source(datagram) }
    }

    /// Returns true if the block to this receiver is full.
    pub(super) fn is_full(&self, to: PeerId, config: &Config) -> bool {
        let receiver = self.receivers.get(&to);
        receiver.is_some_and(|receiver| receiver.block.sources.len() >= config.block_symbols as usize)
    }

    /// Ends the block to this receiver without repair packets, which only a pause before the next block is full will bring.
    pub(super) fn defer(&mut self, to: PeerId, counters: &mut Counters) {
        if let Some(receiver) = self.receivers.get_mut(&to) {
            counters.blocks_sent += 1;
            receiver.waiting = Some(receiver.block.end());
        }
    }

    /// Ends the block to this receiver, and returns its repair packets and those that the block before still lacks: in turn, so
    /// that neither block is restored late because of the other.
    pub(super) fn end(
        &mut self,
        to: PeerId,
        loss: f64,
        report: Option<LossReport>,
        config: &Config,
        counters: &mut Counters,
    ) -> Vec<Packet> {
        let Some(receiver) = self.receivers.get_mut(&to) else { return Vec::new() };
        self.deadlines.set(to, &mut receiver.idle_at, None);
        receiver.is_overdue = false;
        let last = (!receiver.block.sources.is_empty()).then(|| receiver.block.end());
        counters.blocks_sent += u64::from(last.is_some());
        let blocks = receiver.waiting.take().into_iter().chain(last);
        let mut packets: Vec<_> =
            blocks.flat_map(|block| in_parts(block.repairs(loss, report, config))).collect();
        packets.sort_by_key(|(part, _)| *part);
        packets.into_iter().map(|(_, packet)| packet).collect()
    }

    /// Starts the wait for more datagrams, where it does not run.
    pub(super) fn wait(&mut self, now: Instant, idle: Duration) {
        for (peer, receiver) in &mut self.receivers {
            if receiver.lacks_repair() && receiver.idle_at.is_none() {
                // The user can still send at this instant.
                let until = if core::mem::take(&mut receiver.is_overdue) { now } else { now + idle };
                self.deadlines.set(*peer, &mut receiver.idle_at, Some(until));
            }
        }
    }

    /// Notes that the pause of this receiver ended while other datagrams left. With deferred repair these were short, or for
    /// other receivers, and do not end it; otherwise it begins anew.
    pub(super) fn is_late(&mut self, peer: PeerId) {
        if let Some(receiver) = self.receivers.get_mut(&peer) {
            receiver.is_overdue = self.deferred;
        }
    }

    /// Removes and returns a receiver for which nothing came in time.
    pub(super) fn pop_idle(&mut self, now: Instant) -> Option<PeerId> {
        let peer = self.deadlines.pop_due(now)?;
        if let Some(receiver) = self.receivers.get_mut(&peer) {
            receiver.idle_at = None;
        }
        Some(peer)
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.next()
    }

    /// Memory of the blocks, in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        let blocks =
            self.receivers.values().flat_map(|receiver| receiver.waiting.iter().chain([&receiver.block]));
        blocks.flat_map(|block| &block.sources).map(Bytes::len).sum()
    }
}

impl Receiver {
    /// Returns true if symbols were sent that have no repair symbols.
    fn lacks_repair(&self) -> bool {
        self.waiting.is_some() || !self.block.sources.is_empty()
    }
}

impl Block {
    /// Begins the next block, and returns this one.
    fn end(&mut self) -> Block {
        let next = Block { number: self.number.wrapping_add(1), ..Block::default() };
        core::mem::replace(self, next)
    }

    /// Repair packets.
    fn repairs(self, loss: f64, report: Option<LossReport>, config: &Config) -> Vec<Packet> {
        let Block { number: block, sources, longest } = self;
        let size = symbol_bytes(longest);
        let count = sources.len() as u16;
        let repairs = config.repair_symbols(count.into(), loss);
        let symbols = encode(&sources, size, repairs);
        let packet = |(id, bytes)| {
            let symbol = Symbol::Repair { sources: count, repairs: repairs as u16, bytes };
            Packet { block, id, report, symbol }
        };
        (count..).zip(symbols).map(packet).collect()
    }
}

/// Each packet with its place among all of them, from 0 to 65,535.
fn in_parts(packets: Vec<Packet>) -> impl Iterator<Item = (usize, Packet)> {
    let count = packets.len();
    packets.into_iter().enumerate().map(move |(at, packet)| ((2 * at + 1) * 32_768 / count, packet))
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
