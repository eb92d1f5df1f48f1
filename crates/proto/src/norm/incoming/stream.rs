//! Stream that is being received: its segments rise one by one, in their order (RFC 5740 4.2.1).

use super::Incoming;
use crate::norm::partition::{Partition, extend_block};
use crate::norm::symbols::SymbolSet;
use crate::norm::wire::{Fti, StreamFields};
use bytes::Bytes;

/// Maximum number of blocks from the next one to the latest: far less than half of the numbers that a message can state.
const WINDOW_MAX: u64 = 1 << 22;

/// State that only streams have.
#[derive(Debug)]
pub(in crate::norm) struct Stream {
    /// Number of blocks in the buffer of the sender. Those before them cannot be repaired.
    window: u32,
    /// The first block is known.
    has_begun: bool,
    /// Next symbol of the next block.
    next_symbol: u16,
    /// Block that its sender has reached, and the number of symbols in it that have left.
    reached: (u32, u16),
    /// Offset of the byte after the last one that has risen.
    offset: u32,
    /// The beginning of a message, or of the stream, has risen.
    is_synchronized: bool,
}

/// Segment of a stream that rises.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::norm) struct Segment {
    /// Number of bytes that are missing for ever before it.
    pub(in crate::norm) gap: u32,
    /// Bytes before the beginning of a message.
    pub(in crate::norm) data: Bytes,
    /// Bytes from there.
    pub(in crate::norm) message: Bytes,
    /// The stream ends.
    pub(in crate::norm) is_end: bool,
    /// The segment contradicts itself, as only one that is computed can.
    pub(in crate::norm) is_invalid: bool,
}

impl Stream {
    pub(super) fn new(fti: Fti) -> Self {
        let block_bytes = u64::from(fti.segment_bytes) * u64::from(fti.block_symbols);
        let window = fti.object_bytes.div_ceil(block_bytes).clamp(2, WINDOW_MAX) as u32;
        Stream {
            window,
            has_begun: false,
            next_symbol: 0,
            reached: (0, 0),
            offset: 0,
            is_synchronized: false,
        }
    }

    /// Symbols have the fields of the stream before the segment.
    pub(super) fn partition(fti: Fti) -> Option<Partition> {
        let fields = StreamFields::BYTES as u16;
        Partition::stream(
            fti.segment_bytes.checked_add(fields).filter(|_| fti.segment_bytes > 0)?,
            fti.block_symbols,
        )
    }

    /// Returns true if a source symbol is a segment with its fields.
    pub(super) fn is_segment(payload: &Bytes) -> bool {
        StreamFields::decode(&mut payload.clone()).is_ok()
    }
}

impl Incoming {
    /// Returns the number of a block that a message means; the first one, or the earliest that may be in the sender's buffer, becomes
    /// the first to receive. `None` if there is no such block.
    pub(in crate::norm) fn block_number(&mut self, bits: u32, wants_earlier: bool) -> Option<u32> {
        let Some(stream) = &mut self.stream else { return Some(bits) };
        if !stream.has_begun {
            stream.has_begun = true;
            self.next_block = if wants_earlier { bits.saturating_sub(stream.window - 1) } else { bits };
            stream.reached = (self.next_block, 0);
        }
        extend_block(self.scheme, bits, stream.reached.0)
    }

    /// Notes that all before a block and this number of its symbols have left, and gives up the blocks that have left the sender's buffer. Returns the freed memory.
    pub(in crate::norm) fn reach(&mut self, block: u32, symbols: u16) -> u64 {
        let Some(stream) = &mut self.stream else { return 0 };
        stream.reached = stream.reached.max((block, symbols));
        let begun = block + u32::from(symbols > 0);
        let first = begun.saturating_sub(stream.window);
        self.skip_to(first)
    }

    /// Gives up all blocks before one. Returns the freed memory.
    pub(in crate::norm) fn skip_to(&mut self, block: u32) -> u64 {
        let Some(stream) = self.stream.as_mut().filter(|_| block > self.next_block) else { return 0 };
        stream.next_symbol = 0;
        stream.reached = stream.reached.max((block, 0));
        let before = self.held;
        let later = self.blocks.split_off(&block);
        for (number, given_up) in core::mem::replace(&mut self.blocks, later) {
            let parity: usize = given_up.parity.values().map(Bytes::len).sum();
            self.held -= self.block_memory(number) + parity as u64;
        }
        self.next_block = block;
        before - self.held
    }

    /// Point up to which something can be missing: the end of the blocks, or what the sender of a stream has reached.
    pub(in crate::norm) fn end(&self) -> (u32, u16) {
        self.stream.as_ref().map_or((self.partition.blocks(), 0), |stream| stream.reached)
    }

    /// Returns true if all symbols up to one have risen.
    pub(in crate::norm) fn has_risen(&self, block: u32, symbol: u16) -> bool {
        self.stream.as_ref().is_some_and(|stream| (self.next_block, stream.next_symbol) > (block, symbol))
    }

    /// Returns the source symbols of a block that is not complete, and of which only some have left, that are missing: its sender has no
    /// parity symbols of it (RFC 5740 4.2.3.1).
    pub(in crate::norm) fn lacking_of(&self, block: u32, symbols: u16) -> SymbolSet {
        let left = SymbolSet::range(0..symbols.min(self.partition.block_symbols(block)));
        if block < self.next_block {
            return SymbolSet::EMPTY;
        }
        self.blocks.get(&block).map_or(left, |begun| left.without(&begun.have))
    }

    /// Returns the next segment of a stream if it is there.
    pub(in crate::norm) fn pop_segment(&mut self) -> Option<Segment> {
        let number = self.next_block;
        let stream = self.stream.as_mut()?;
        let symbol = stream.next_symbol;
        let block = self.blocks.get(&number).filter(|block| block.have.contains(symbol))?;
        let size = usize::from(self.partition.segment_bytes());
        let bytes = Bytes::copy_from_slice(&block.bytes[usize::from(symbol) * size..][..size]);
        let segment = stream.read(bytes, number == 0 && symbol == 0);
        stream.next_symbol += 1;
        if stream.next_symbol == self.partition.block_symbols(number) {
            stream.next_symbol = 0;
            self.held -= self.block_memory(number);
            self.blocks.remove(&number);
            self.next_block += 1;
        }
        self.risen += (segment.data.len() + segment.message.len()) as u64;
        Some(segment)
    }
}

impl Stream {
    /// Reads a segment with its fields.
    fn read(&mut self, mut bytes: Bytes, is_first: bool) -> Segment {
        let Ok((fields, mut data)) = StreamFields::decode(&mut bytes) else {
            return Segment { is_invalid: true, ..Segment::default() };
        };
        let is_end = fields.length == 0 && fields.message_start == StreamFields::END;
        let has_message = fields.length > 0 && fields.message_start > 0;
        let message = match has_message {
            true => data.split_off(usize::from(fields.message_start) - 1),
            false => Bytes::new(),
        };
        let mut offset = fields.offset;
        if !self.is_synchronized {
            if !is_first {
                offset = offset.wrapping_add(data.len() as u32);
                data.clear();
            }
            self.is_synchronized = is_first || has_message;
            self.offset = offset;
        }
        let gap = offset.wrapping_sub(self.offset);
        self.offset = fields.offset.wrapping_add(fields.length.into());
        Segment { gap, data, message, is_end, is_invalid: false }
    }
}
