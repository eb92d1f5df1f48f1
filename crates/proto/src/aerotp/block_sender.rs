//! Sending in the service `adaptive`: blocks of segments, and parity in place of those that are lost.

use super::buffer::Buffer;
use super::model::more_losses_probability;
use super::wire::{PARITY_PREFIX_BYTES, ParityPrefix, Report};
use crate::fec::VandermondeCode;
use crate::time::{Duration, Instant};
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::{BTreeSet, VecDeque};

/// Number of sequence numbers of a block.
pub(super) const BLOCK_NUMBERS: u64 = 256;
/// Maximum number of source symbols of a block.
pub(super) const SOURCES_MAX: u32 = 64;
/// Number of symbols with parity of a block.
pub(super) const ROWS: u32 = 128;
/// Maximum number of blocks that are kept, for connections with answers: they are in the window of the receiver, 2^20 numbers.
const BLOCKS_MAX: usize = 4_095;
/// Maximum number of segments with parity that are sent before a loss is reported.
const PROACTIVE_MAX: u64 = 16;

/// Share of the receiver's room that a block may take, as a divisor.
const BLOCK_SHARE: u64 = 4;

/// Returns the code of the blocks: a block of fewer source symbols uses the first columns.
pub(super) fn code() -> VandermondeCode {
    VandermondeCode::new(SOURCES_MAX, ROWS).expect("fewer symbols than elements of the field")
}

#[derive(Debug)]
struct Block {
    /// Bytes of data before it.
    start: u64,
    symbol_bytes: usize,
    sources: Vec<Bytes>,
    /// No source symbol follows.
    is_closed: bool,
    is_end: bool,
    /// Number of repair symbols that were sent.
    repairs: u32,
    /// Times of departure of symbols that may be under way, microseconds.
    flights: VecDeque<u64>,
    /// Number of symbols that the receiver has.
    arrived: u32,
    is_complete: bool,
    /// Repair symbols to send.
    due: u32,
}

impl Block {
    fn bytes(&self) -> u64 {
        self.sources.iter().map(|source| source.len() as u64).sum()
    }

    /// Returns the number of bytes before a symbol.
    fn bytes_before(&self, symbol: u64) -> u64 {
        self.start + self.sources.iter().take(symbol as usize).map(|source| source.len() as u64).sum::<u64>()
    }
}

/// Symbol to send.
#[derive(Debug)]
pub(super) struct Symbol {
    /// Number of the block times 256, and number of the symbol.
    pub(super) index: u64,
    pub(super) payload: Bytes,
    pub(super) is_parity: bool,
    /// Source symbol that was sent before.
    pub(super) is_again: bool,
    pub(super) ends_block: bool,
    pub(super) is_last: bool,
    /// Nothing else waits to be sent.
    pub(super) asks: bool,
}

/// Limits of the next segments.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) symbol_bytes: usize,
    pub(super) block_segments: u32,
    pub(super) window_segments: u64,
    /// Time that a segment takes at the rate.
    pub(super) segment_time: Duration,
    pub(super) round_trip: Duration,
    /// Probability that a segment is lost, by the model.
    pub(super) loss: f64,
}

/// Blocks of a connection at its sender.
#[derive(Debug)]
pub(super) struct BlockSender {
    code: VandermondeCode,
    /// Number of the first block that is kept.
    base: u64,
    blocks: VecDeque<Block>,
    bytes: u64,
    kept_bytes: u64,
    accepted: u64,
    accepted_bytes: u64,
    due: BTreeSet<u64>,
    /// Latest time of departure that the receiver has stated, microseconds.
    echo: u64,
    /// Bytes that the receiver has room for, after the accepted ones.
    window_bytes: u64,
    /// Share of lost segments, over the last ones.
    loss: f64,
    /// Parity was sent in advance for the blocks before this one.
    protected: u64,
    /// Number of repair symbols of each block where the receiver does not answer; `None` where it does.
    open_loop: Option<u32>,
    /// Time at which symbols under way count as lost; `None` before the last one has left.
    probe_at: Option<Instant>,
}

impl BlockSender {
    pub(super) fn new(code: VandermondeCode, window_bytes: u64, open_loop: Option<u32>) -> Self {
        BlockSender {
            code,
            base: 0,
            blocks: VecDeque::new(),
            bytes: 0,
            kept_bytes: 0,
            accepted: 0,
            accepted_bytes: 0,
            due: BTreeSet::new(),
            echo: 0,
            window_bytes,
            loss: 0.0,
            protected: 0,
            open_loop,
            probe_at: None,
        }
    }

    pub(super) fn accepted_bytes(&self) -> u64 {
        self.accepted_bytes
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }

    pub(super) fn has_again(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns true if a new segment may be made.
    pub(super) fn has_room(&self, window_segments: u64, buffer: &Buffer) -> bool {
        if buffer.is_empty() || self.open_loop.is_some() {
            return !buffer.is_empty();
        }
        let segments = self.blocks.iter().map(|block| block.sources.len() as u64).sum::<u64>();
        let in_window = self.bytes - self.accepted_bytes < self.window_bytes || self.blocks.is_empty();
        let is_open = self.blocks.back().is_some_and(|block| !block.is_closed);
        segments < window_segments && in_window && (is_open || self.blocks.len() < BLOCKS_MAX)
    }

    /// Returns true if all data have been accepted.
    pub(super) fn is_accepted(&self) -> bool {
        self.accepted_bytes == self.bytes
    }

    /// Returns true if the receiver has all data that were sent.
    pub(super) fn is_settled(&self) -> bool {
        self.due.is_empty() && self.blocks.iter().all(|block| block.is_complete)
    }

    /// Number after that of the last symbol, for the end of a connection without any.
    pub(super) fn next(&self) -> u64 {
        (self.base + self.blocks.len() as u64) * BLOCK_NUMBERS
    }

    /// Makes the next segment: parity for lost ones first.
    pub(super) fn leave(&mut self, now: u64, buffer: &mut Buffer, limits: &Limits) -> Option<Symbol> {
        self.protect(buffer, limits);
        let symbol = self.repair(now).or_else(|| self.source(now, buffer, limits))?;
        if self.open_loop.is_some() {
            self.forget_sent();
            return Some(symbol);
        }
        self.protect(buffer, limits);
        let asks = self.due.is_empty() && !self.has_room(limits.window_segments, buffer);
        self.probe_at = None;
        Some(Symbol { asks, ..symbol })
    }

    fn repair(&mut self, now: u64) -> Option<Symbol> {
        let number = *self.due.first()?;
        let block = &mut self.blocks[(number - self.base) as usize];
        block.due -= 1;
        if block.due == 0 {
            self.due.pop_first();
        }
        block.flights.push_back(now);
        let repair = block.repairs % (ROWS + block.sources.len() as u32);
        block.repairs = block.repairs.wrapping_add(1);
        let plain = Symbol {
            index: number * BLOCK_NUMBERS + u64::from(SOURCES_MAX + repair),
            payload: Bytes::new(),
            is_parity: true,
            is_again: false,
            ends_block: false,
            is_last: false,
            asks: false,
        };
        if let Some(source) = repair.checked_sub(ROWS) {
            let ends_block = source as usize + 1 == block.sources.len();
            return Some(Symbol {
                index: number * BLOCK_NUMBERS + u64::from(source),
                payload: block.sources[source as usize].clone(),
                is_parity: false,
                is_again: true,
                ends_block,
                is_last: ends_block && block.is_end,
                ..plain
            });
        }
        let last_bytes = block.sources.last().expect("a block has symbols").len() as u16;
        let prefix = ParityPrefix { sources: block.sources.len() as u8, is_end: block.is_end, last_bytes };
        let longest = block.sources.iter().map(Bytes::len).max().unwrap_or(0);
        let mut payload = BytesMut::with_capacity(PARITY_PREFIX_BYTES + longest);
        payload.put_slice(&prefix.encode());
        payload.resize(PARITY_PREFIX_BYTES + longest, 0);
        let sources = block.sources.iter().map(|source| &source[..]);
        self.code.encode_into(repair, sources, &mut payload[PARITY_PREFIX_BYTES..]);
        Some(Symbol { payload: payload.freeze(), ..plain })
    }

    fn source(&mut self, now: u64, buffer: &mut Buffer, limits: &Limits) -> Option<Symbol> {
        if !self.has_room(limits.window_segments, buffer) {
            return None;
        }
        if self.blocks.back().is_none_or(|block| block.is_closed) {
            self.blocks.push_back(Block {
                start: self.bytes,
                symbol_bytes: limits.symbol_bytes,
                sources: Vec::new(),
                is_closed: false,
                is_end: false,
                repairs: 0,
                flights: VecDeque::new(),
                arrived: 0,
                is_complete: false,
                due: 0,
            });
        }
        let number = self.base + self.blocks.len() as u64 - 1;
        let block = self.blocks.back_mut().expect("just opened");
        let payload = buffer.take(block.symbol_bytes);
        let is_last = buffer.is_ended && buffer.is_empty();
        let index = number * BLOCK_NUMBERS + block.sources.len() as u64;
        block.sources.push(payload.clone());
        // The receiver holds a block until it is complete.
        let fitting = self.window_bytes / BLOCK_SHARE / block.symbol_bytes as u64;
        let longest = u64::from(limits.block_segments.min(SOURCES_MAX)).min(fitting.max(1));
        let is_full = block.sources.len() as u64 >= longest;
        // Segments of another length belong to another block.
        let changes = payload.len() < block.symbol_bytes || block.symbol_bytes != limits.symbol_bytes;
        block.is_closed = is_full || changes || is_last;
        block.is_end = is_last;
        block.flights.push_back(now);
        let ends_block = block.is_closed;
        if let Some(parity) = self.open_loop.filter(|parity| ends_block && *parity > 0) {
            block.due = parity;
            self.due.insert(number);
        }
        self.bytes += payload.len() as u64;
        self.kept_bytes += payload.len() as u64;
        let plain =
            Symbol { index, payload, is_parity: false, is_again: false, ends_block, is_last, asks: false };
        Some(plain)
    }

    /// Adds parity at the end of the data, where a lost segment costs a round trip: as much as costs the least time.
    fn protect(&mut self, buffer: &Buffer, limits: &Limits) {
        if self.open_loop.is_some() {
            return;
        }
        let end = self.base + self.blocks.len() as u64;
        let is_over =
            buffer.is_empty() && buffer.is_ended && self.blocks.back().is_some_and(|block| block.is_closed);
        if !is_over || self.protected >= end {
            return;
        }
        let loss = self.loss.max(limits.loss);
        for number in self.base.max(self.protected)..end {
            let block = &mut self.blocks[(number - self.base) as usize];
            let under_way = block.flights.len() as u64;
            if block.is_complete || under_way == 0 || block.due > 0 || !block.is_closed {
                continue;
            }
            let time = |parity: u64| {
                let fails = more_losses_probability(loss, under_way + parity, parity);
                parity as f64 * limits.segment_time.as_secs_f64().max(1e-6)
                    + fails * limits.round_trip.as_secs_f64()
            };
            let best = (0..=PROACTIVE_MAX).min_by(|a, b| time(*a).total_cmp(&time(*b))).unwrap_or(0);
            if best > 0 {
                block.due += best as u32;
                self.due.insert(number);
            }
        }
        self.protected = end;
    }

    /// A segment has left, and none is behind it: an answer is expected.
    pub(super) fn left(&mut self, now: Instant, timeout: Duration) {
        let is_waiting = self.blocks.iter().any(|block| !block.is_complete && !block.flights.is_empty());
        self.probe_at = is_waiting.then_some(now + timeout);
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.probe_at
    }

    /// Handles the timer: symbols under way count as lost. Returns true if it had expired.
    pub(super) fn expire(&mut self, now: Instant) -> bool {
        if self.probe_at.is_none_or(|at| now < at) {
            return false;
        }
        self.probe_at = None;
        for (number, block) in (self.base..).zip(&mut self.blocks) {
            block.flights.clear();
            if !block.is_complete {
                block.is_closed = true;
                block.due = (block.sources.len() as u32).saturating_sub(block.arrived).max(1);
                self.due.insert(number);
            }
        }
        true
    }

    /// Restarts the timer, after an interruption of the link.
    pub(super) fn restart(&mut self, now: Instant, timeout: Duration) {
        self.left(now, timeout);
    }

    /// Handles a report: `accepted` is the index of the first symbol that is not accepted, `complete` that of the first one that
    /// has not arrived, and `echo` the time of departure of the last segment that has arrived, microseconds. Returns true if it says
    /// something new.
    pub(super) fn report(
        &mut self,
        accepted: u64,
        complete: u64,
        echo: u64,
        reordering: Duration,
        report: &Report,
    ) -> bool {
        let is_new = self.accept(accepted);
        if echo < self.echo {
            return is_new;
        }
        let is_later = echo > self.echo;
        self.echo = echo;
        self.window_bytes = report.window_bytes.into();
        let settled_at = echo.saturating_sub(u64::try_from(reordering.as_micros()).unwrap_or(u64::MAX));
        let whole = complete / BLOCK_NUMBERS;
        let end = self.base + self.blocks.len() as u64;
        let (mut settled, mut arrivals, mut progress) = (0, 0, false);
        for number in self.base..end {
            let block = &mut self.blocks[(number - self.base) as usize];
            let entry = report.blocks.iter().find(|(low, ..)| *low == number as u16);
            let is_complete = number < whole || entry.is_some_and(|(_, _, is_complete)| *is_complete);
            let arrived = entry.map_or(0, |(_, symbols, _)| u32::from(*symbols)).max(block.arrived);
            let before = block.flights.len();
            while block.flights.front().is_some_and(|at| *at <= settled_at) {
                block.flights.pop_front();
            }
            if block.is_complete {
                continue;
            }
            settled += before - block.flights.len();
            arrivals += (arrived - block.arrived) as usize;
            progress |= arrived > block.arrived || is_complete;
            block.arrived = arrived;
            let lacking = (block.sources.len() as u32).saturating_sub(arrived);
            let lost = lacking.saturating_sub(block.flights.len() as u32);
            // All symbols have arrived, and the receiver does not know that the block has no more.
            let is_unknown = lacking == 0 && block.is_closed && block.flights.is_empty();
            block.due = if is_complete { 0 } else { lost.max(is_unknown.into()) };
            if self.bytes - self.accepted_bytes > self.window_bytes {
                // The receiver has no room: one segment finds out when it has.
                block.due = block.due.min(1);
            }
            block.is_complete = is_complete && block.is_closed;
            if block.due > 0 {
                block.is_closed = true;
                self.due.insert(number);
            } else {
                self.due.remove(&number);
            }
        }
        if settled > 0 {
            let lost = settled.saturating_sub(arrivals) as f64 / settled as f64;
            let weight = (settled as f64 / 64.0).min(1.0);
            self.loss += (lost - self.loss) * weight;
        }
        is_new || is_later || progress
    }

    /// The receiver's user has accepted all symbols before this index.
    fn accept(&mut self, index: u64) -> bool {
        if index <= self.accepted {
            return false;
        }
        let (number, symbol) = (index / BLOCK_NUMBERS, index % BLOCK_NUMBERS);
        let end = self.base + self.blocks.len() as u64;
        let is_valid = match number.checked_sub(self.base) {
            Some(place) if number < end => symbol <= self.blocks[place as usize].sources.len() as u64,
            Some(_) => number == end && symbol == 0,
            None => false,
        };
        if !is_valid {
            return false;
        }
        self.accepted = index;
        while self.base < number {
            self.forget_first();
        }
        if let Some(block) = self.blocks.front() {
            self.accepted_bytes = block.bytes_before(symbol);
        }
        true
    }

    /// Forgets blocks of which nothing is left to send, and which nobody asks for.
    fn forget_sent(&mut self) {
        while self.blocks.front().is_some_and(|block| block.is_closed && block.due == 0) {
            self.forget_first();
        }
    }

    /// Forgets the first block, which is accepted.
    fn forget_first(&mut self) {
        let block = self.blocks.pop_front().expect("an accepted block");
        self.accepted_bytes = block.start + block.bytes();
        self.kept_bytes -= block.bytes();
        self.due.remove(&self.base);
        self.base += 1;
    }
}
