//! Contents of a stream: segments that wait, and the blocks that can be repaired (RFC 5740 4.2.1, 5.1.1).

use crate::fec::VandermondeCode;
use crate::norm::partition::STREAM_BLOCKS_MAX;
use crate::norm::repair::BlockSizes;
use crate::norm::wire::{Fti, StreamFields};
use crate::time::Instant;
use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;

/// Minimum number of blocks in the buffer: that of which symbols are sent, and that which is repaired.
const BLOCKS_MIN: u64 = 2;

/// Block of which symbols have left.
#[derive(Debug)]
struct Block {
    /// Number of bytes of the stream before it.
    start: u64,
    /// Segments that have left, each with its fields.
    segments: Vec<Bytes>,
    /// Number of parity symbols that have left without a request.
    parity: u16,
    /// Time at which the last symbol left.
    left_at: Instant,
}

/// Contents of a stream.
#[derive(Debug)]
pub(in crate::norm) struct Stream {
    segment_bytes: usize,
    block_symbols: u16,
    /// Number of parity symbols per block that are sent without a request.
    auto_parity: u16,
    /// Number of blocks that the buffer holds.
    blocks_max: usize,
    /// Blocks that can be repaired; the last one may not be complete.
    blocks: VecDeque<Block>,
    /// Number of the first of them.
    first: u32,
    /// Segments that have not left, with their fields.
    waiting: VecDeque<Bytes>,
    /// Bytes that do not fill a segment.
    tail: BytesMut,
    /// Place in `tail` of the first byte that begins a message, from 1; zero without one.
    message_start: u16,
    /// The next byte begins a message.
    begins_message: bool,
    /// Number of bytes before `tail`.
    offset: u64,
    /// Number of bytes in the blocks and before them.
    sent: u64,
    /// Receivers are to be asked what they lack when all has left.
    is_flushed: bool,
    is_closed: bool,
}

impl Stream {
    /// Begins a stream with a buffer of as many whole blocks as the object has, at least two.
    pub(super) fn new(fti: Fti, auto_parity: u16) -> Self {
        let block_bytes = u64::from(fti.segment_bytes) * u64::from(fti.block_symbols);
        let blocks_max = (fti.object_bytes / block_bytes).max(BLOCKS_MIN) as usize;
        Stream {
            segment_bytes: fti.segment_bytes.into(),
            block_symbols: fti.block_symbols,
            auto_parity,
            blocks_max,
            blocks: VecDeque::new(),
            first: 0,
            waiting: VecDeque::new(),
            tail: BytesMut::new(),
            message_start: 0,
            begins_message: true,
            offset: 0,
            sent: 0,
            is_flushed: false,
            is_closed: false,
        }
    }

    /// Length of the buffer, bytes.
    pub(super) fn buffer_bytes(&self) -> u64 {
        self.blocks_max as u64 * u64::from(self.block_symbols) * self.segment_bytes as u64
    }

    // -- What the user gives ------------------------------------------------------------------------------------

    pub(super) fn add(&mut self, mut data: &[u8]) {
        assert!(!self.is_closed, "bytes after the end of the stream");
        self.is_flushed &= data.is_empty();
        while !data.is_empty() {
            if core::mem::take(&mut self.begins_message) && self.message_start == 0 {
                self.message_start = self.tail.len() as u16 + 1;
            }
            let (next, rest) = data.split_at(data.len().min(self.segment_bytes - self.tail.len()));
            self.tail.extend_from_slice(next);
            data = rest;
            if self.tail.len() == self.segment_bytes {
                self.cut();
            }
        }
    }

    /// Makes a segment of the bytes that do not fill one.
    fn cut(&mut self) {
        if !self.tail.is_empty() {
            self.push_segment();
        }
    }

    fn push_segment(&mut self) {
        let contents = self.tail.split();
        let length = contents.len() as u16;
        let message_start = core::mem::take(&mut self.message_start);
        let fields = StreamFields { length, message_start, offset: self.offset as u32 };
        let mut segment = BytesMut::with_capacity(StreamFields::BYTES + contents.len());
        fields.encode(&mut segment);
        segment.extend_from_slice(&contents);
        self.offset += u64::from(length);
        self.waiting.push_back(segment.freeze());
    }

    /// Notes that the bytes so far end a message.
    pub(in crate::norm) fn end_message(&mut self) {
        self.begins_message = true;
    }

    /// Makes all bytes leave, and receivers be asked what they lack.
    pub(in crate::norm) fn flush(&mut self) {
        self.cut();
        self.is_flushed = true;
    }

    /// Makes receivers be asked what they lack, if all segments have left; false if they were asked or some are waiting.
    pub(in crate::norm) fn rest(&mut self) -> bool {
        let rests = self.waiting.is_empty() && !self.is_flushed && !self.blocks.is_empty();
        self.is_flushed |= rests;
        rests
    }

    /// Ends the stream.
    pub(in crate::norm) fn close(&mut self) {
        if core::mem::replace(&mut self.is_closed, true) {
            return;
        }
        self.flush();
        // Without contents, the fields are those of the end.
        self.message_start = StreamFields::END;
        self.push_segment();
    }

    /// Returns true if receivers are to be asked what they lack: all has left, or there is no room for more.
    pub(in crate::norm) fn wants_flush(&self) -> bool {
        self.is_stalled() || self.is_flushed && self.waiting.is_empty()
    }

    pub(super) fn lacks(&self) -> u64 {
        if self.is_closed { 0 } else { u64::MAX }
    }

    /// Number of bytes that have not left; a short segment counts as a full one.
    pub(super) fn unsent(&self) -> u64 {
        (self.waiting.len() * self.segment_bytes + self.tail.len()) as u64
    }

    // -- What leaves --------------------------------------------------------------------------------------------

    pub(super) fn is_sent(&self) -> bool {
        self.is_closed && self.waiting.is_empty() && self.parity_due().is_none()
    }

    pub(super) fn block_symbols(&self) -> u16 {
        self.block_symbols
    }

    pub(in crate::norm) fn blocks(&self) -> core::ops::Range<u32> {
        self.first..self.first + self.blocks.len() as u32
    }

    fn block(&self, number: u32) -> &Block {
        &self.blocks[(number - self.first) as usize]
    }

    fn is_full(&self, block: &Block) -> bool {
        block.segments.len() == usize::from(self.block_symbols)
    }

    /// Parity symbols cannot be computed before the block is complete, and are not requested while they leave by themselves.
    pub(super) fn sizes(&self, number: u32, parity: u16) -> BlockSizes {
        let block = self.block(number);
        let has_parity = self.is_full(block) && block.parity == self.auto_parity;
        BlockSizes { sources: block.segments.len() as u16, parity: if has_parity { parity } else { 0 } }
    }

    pub(super) fn last(&self) -> Option<(u32, u16)> {
        let last = self.blocks.back()?;
        Some((self.blocks().end - 1, last.segments.len() as u16 - 1))
    }

    fn parity_due(&self) -> Option<u16> {
        self.blocks
            .back()
            .filter(|last| self.is_full(last) && last.parity < self.auto_parity)
            .map(|last| last.parity)
    }

    pub(super) fn next_symbol(&self) -> Option<(u32, u16)> {
        let end = self.blocks().end;
        if let Some(parity) = self.parity_due() {
            return Some((end - 1, self.block_symbols + parity));
        }
        if self.waiting.is_empty() {
            return None;
        }
        match self.blocks.back().filter(|last| !self.is_full(last)) {
            Some(last) => Some((end - 1, last.segments.len() as u16)),
            None => (self.blocks.len() < self.blocks_max && !self.is_exhausted()).then_some((end, 0)),
        }
    }

    pub(super) fn advance(&mut self, now: Instant) {
        let Some((number, symbol)) = self.next_symbol() else { return };
        if number == self.blocks().end {
            let block = Block { start: self.sent, segments: Vec::new(), parity: 0, left_at: now };
            self.blocks.push_back(block);
        }
        let last = self.blocks.back_mut().expect("a block");
        last.left_at = now;
        if symbol >= self.block_symbols {
            last.parity += 1;
        } else {
            let segment = self.waiting.pop_front().expect("it is the next symbol");
            self.sent += contents_bytes(&segment);
            last.segments.push(segment);
        }
    }

    pub(super) fn symbol_bytes(&self, number: u32, symbol: u16) -> usize {
        let segments = &self.block(number).segments;
        match symbol < self.block_symbols {
            true => segments[usize::from(symbol)].len(),
            false => segments.iter().map(Bytes::len).max().unwrap_or(0),
        }
    }

    pub(super) fn write_symbol(&self, number: u32, symbol: u16, code: &VandermondeCode, out: &mut BytesMut) {
        let segments = &self.block(number).segments;
        let Some(row) = symbol.checked_sub(self.block_symbols) else {
            out.extend_from_slice(&segments[usize::from(symbol)]);
            return;
        };
        let longest = segments.iter().map(Bytes::len).max().unwrap_or(0);
        let start = out.len();
        out.resize(start + longest, 0);
        code.encode_into(row.into(), segments.iter().map(|segment| &segment[..]), &mut out[start..]);
    }

    // -- The buffer ---------------------------------------------------------------------------------------------

    /// Returns true if segments wait for room in the buffer.
    pub(in crate::norm) fn is_stalled(&self) -> bool {
        !self.waiting.is_empty() && self.next_symbol().is_none()
    }

    /// Returns true if no more blocks can be numbered.
    pub(in crate::norm) fn is_exhausted(&self) -> bool {
        self.blocks().end >= STREAM_BLOCKS_MAX && self.blocks.back().is_none_or(|last| self.is_full(last))
    }

    /// Time at which the last symbol of the oldest block left.
    pub(in crate::norm) fn oldest_left_at(&self) -> Option<Instant> {
        self.blocks.front().map(|oldest| oldest.left_at)
    }

    /// Gives up the oldest block, which nobody can request any more.
    pub(in crate::norm) fn release_oldest(&mut self) {
        if self.blocks.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Gives up the blocks before a point that all receivers have, and returns the number of bytes up to it.
    pub(in crate::norm) fn acknowledge(&mut self, block: u32, symbol: u16) -> u64 {
        while self.first < block && !self.blocks.is_empty() {
            self.release_oldest();
        }
        if !self.blocks().contains(&block) {
            return self.blocks.front().map_or(self.sent, |oldest| oldest.start);
        }
        let has = self.block(block);
        let bytes: u64 = has.segments.iter().take(usize::from(symbol) + 1).map(contents_bytes).sum();
        let up_to = has.start + bytes;
        if symbol + 1 == self.block_symbols && self.blocks.len() > 1 {
            self.release_oldest();
        }
        up_to
    }
}

/// Length of a segment without its fields.
fn contents_bytes(segment: &Bytes) -> u64 {
    (segment.len() - StreamFields::BYTES) as u64
}
