//! Object that is being sent.

mod stream;
mod whole;

use super::partition::{Partition, extend_block};
use super::repair::BlockSizes;
use super::wire::{FecScheme, Flags, Fti};
use crate::fec::VandermondeCode;
use crate::service::ObjectKind;
use crate::time::Instant;
use bytes::{Bytes, BytesMut};
pub(super) use stream::Stream;
use whole::Whole;

/// Object that is being sent, or waits for acknowledgements.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// The user's number.
    pub(super) object: u64,
    /// Flags of its messages.
    pub(super) flags: Flags,
    pub(super) info: Option<Bytes>,
    /// The NORM_INFO message has not left.
    pub(super) is_info_due: bool,
    pub(super) fti: Fti,
    contents: Contents,
    /// Time at which the last of its symbols left.
    pub(super) left_at: Instant,
}

#[derive(Debug)]
enum Contents {
    Whole(Whole),
    Stream(Stream),
}

impl Outgoing {
    /// Begins an object; `None` if its sizes have no blocks.
    pub(super) fn new(
        object: u64,
        kind: ObjectKind,
        info: Option<Bytes>,
        mut fti: Fti,
        auto_parity: u16,
    ) -> Option<Self> {
        let contents = if kind == ObjectKind::Stream {
            let stream = Stream::new(fti, auto_parity);
            fti.object_bytes = stream.buffer_bytes();
            Contents::Stream(stream)
        } else {
            let partition = Partition::new(fti.object_bytes, fti.segment_bytes, fti.block_symbols)?;
            Contents::Whole(Whole::new(partition, auto_parity))
        };
        let of_kind = match kind {
            ObjectKind::Data => 0,
            ObjectKind::File => Flags::FILE,
            ObjectKind::Stream => Flags::STREAM,
        };
        let has_info = if info.is_some() { Flags::INFO } else { 0 };
        Some(Outgoing {
            object,
            flags: Flags(of_kind | has_info),
            is_info_due: info.is_some(),
            info,
            fti,
            contents,
            left_at: Instant::ZERO,
        })
    }

    /// Returns the contents of a stream.
    pub(super) fn stream(&self) -> Option<&Stream> {
        match &self.contents {
            Contents::Stream(stream) => Some(stream),
            Contents::Whole(_) => None,
        }
    }

    /// Returns the contents of a stream.
    pub(super) fn stream_mut(&mut self) -> Option<&mut Stream> {
        match &mut self.contents {
            Contents::Stream(stream) => Some(stream),
            Contents::Whole(_) => None,
        }
    }

    /// Length, bytes; of a stream, that of its buffer.
    pub(super) fn length(&self) -> u64 {
        self.fti.object_bytes
    }

    /// Adds the next bytes.
    pub(super) fn add(&mut self, data: Bytes) {
        match &mut self.contents {
            Contents::Whole(whole) => whole.add(data),
            Contents::Stream(stream) => stream.add(&data),
        }
    }

    /// Number of bytes that the user has yet to give; of a stream that is open, any number.
    pub(super) fn lacks(&self) -> u64 {
        match &self.contents {
            Contents::Whole(whole) => whole.lacks(),
            Contents::Stream(stream) => stream.lacks(),
        }
    }

    /// Number of bytes that the user has given, and that were not sent.
    pub(super) fn unsent(&self) -> u64 {
        match &self.contents {
            Contents::Whole(whole) => whole.unsent(),
            Contents::Stream(stream) => stream.unsent(),
        }
    }

    /// Returns true if all symbols were sent that are sent without a request.
    pub(super) fn is_sent(&self) -> bool {
        let is_sent = match &self.contents {
            Contents::Whole(whole) => whole.is_sent(),
            Contents::Stream(stream) => stream.is_sent(),
        };
        is_sent && !self.is_info_due
    }

    /// Maximum number of source symbols of a block.
    pub(super) fn block_symbols(&self, block: u32) -> u16 {
        match &self.contents {
            Contents::Whole(whole) => whole.block_symbols(block),
            Contents::Stream(stream) => stream.block_symbols(),
        }
    }

    /// Returns the number of a block that a message of a receiver means.
    pub(super) fn block_number(&self, scheme: FecScheme, bits: u32) -> Option<u32> {
        match &self.contents {
            Contents::Whole(_) => Some(bits),
            Contents::Stream(stream) => extend_block(scheme, bits, stream.blocks().end),
        }
    }

    /// Blocks of which symbols can be requested.
    pub(super) fn blocks(&self) -> core::ops::Range<u32> {
        match &self.contents {
            Contents::Whole(whole) => whole.blocks(),
            Contents::Stream(stream) => stream.blocks(),
        }
    }

    /// Symbols of one of these blocks that can be requested.
    pub(super) fn sizes(&self, block: u32) -> BlockSizes {
        match &self.contents {
            Contents::Whole(whole) => {
                BlockSizes { sources: whole.block_symbols(block), parity: self.fti.parity_symbols }
            }
            Contents::Stream(stream) => stream.sizes(block, self.fti.parity_symbols),
        }
    }

    /// Point up to which all was sent: the last source symbol of an object, and of a stream the last one that has left.
    pub(super) fn last(&self) -> Option<(u32, u16)> {
        match &self.contents {
            Contents::Whole(whole) => whole.last(),
            Contents::Stream(stream) => stream.last(),
        }
    }

    /// Returns the next symbol to send for the first time, if the user has given the bytes that it takes.
    pub(super) fn next_symbol(&self) -> Option<(u32, u16)> {
        match &self.contents {
            Contents::Whole(whole) => whole.next_symbol(),
            Contents::Stream(stream) => stream.next_symbol(),
        }
    }

    /// Notes that the symbol of [`next_symbol`](Outgoing::next_symbol) leaves.
    pub(super) fn advance(&mut self, now: Instant) {
        self.left_at = now;
        match &mut self.contents {
            Contents::Whole(whole) => whole.advance(),
            Contents::Stream(stream) => stream.advance(now),
        }
    }

    /// Length of the contents of a symbol. A parity symbol is as long as the longest source symbol.
    pub(super) fn symbol_bytes(&self, block: u32, symbol: u16) -> usize {
        match &self.contents {
            Contents::Whole(whole) => whole.symbol_bytes(block, symbol),
            Contents::Stream(stream) => stream.symbol_bytes(block, symbol),
        }
    }

    /// Appends the contents of a symbol.
    pub(super) fn write_symbol(&self, block: u32, symbol: u16, code: &VandermondeCode, out: &mut BytesMut) {
        match &self.contents {
            Contents::Whole(whole) => whole.write_symbol(block, symbol, code, out),
            Contents::Stream(stream) => stream.write_symbol(block, symbol, code, out),
        }
    }
}
