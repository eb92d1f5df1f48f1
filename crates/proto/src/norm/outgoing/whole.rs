//! Contents of an object of known length.

use crate::fec::VandermondeCode;
use crate::norm::partition::Partition;
use bytes::{Bytes, BytesMut};
use std::borrow::Cow;

/// Contents of an object of known length, which the user gives in pieces.
#[derive(Debug)]
pub(in crate::norm) struct Whole {
    partition: Partition,
    /// Pieces of the user, each after its offset.
    chunks: Vec<(u64, Bytes)>,
    given: u64,
    /// Next symbol to send for the first time, parity symbols without a request included.
    next: Option<(u32, u16)>,
    /// Number of parity symbols per block that are sent without a request.
    auto_parity: u16,
}

impl Whole {
    pub(super) fn new(partition: Partition, auto_parity: u16) -> Self {
        Whole { partition, chunks: Vec::new(), given: 0, next: Some((0, 0)), auto_parity }
    }

    fn length(&self) -> u64 {
        self.partition.object_bytes()
    }

    /// Adds the next bytes.
    pub(super) fn add(&mut self, data: Bytes) {
        assert!(self.given + data.len() as u64 <= self.length(), "more bytes than the object has");
        let offset = self.given;
        self.given += data.len() as u64;
        self.chunks.push((offset, data));
    }

    pub(super) fn lacks(&self) -> u64 {
        self.length() - self.given
    }

    pub(super) fn unsent(&self) -> u64 {
        let sent = self.next.map_or(self.length(), |(block, symbol)| {
            self.partition.segment(block, symbol.min(self.partition.block_symbols(block))).start
        });
        self.given.saturating_sub(sent)
    }

    pub(super) fn is_sent(&self) -> bool {
        self.next.is_none()
    }

    pub(super) fn block_symbols(&self, block: u32) -> u16 {
        self.partition.block_symbols(block)
    }

    /// Blocks that have left as a whole. The last block of an object that is not complete counts once it is.
    pub(super) fn blocks(&self) -> core::ops::Range<u32> {
        0..self.next.map_or(self.partition.blocks(), |(next, _)| next)
    }

    pub(super) fn last(&self) -> Option<(u32, u16)> {
        let last = self.partition.blocks() - 1;
        self.is_sent().then(|| (last, self.partition.block_symbols(last) - 1))
    }

    pub(super) fn next_symbol(&self) -> Option<(u32, u16)> {
        let (block, symbol) = self.next?;
        let is_source = symbol < self.partition.block_symbols(block);
        let needed =
            if is_source { self.partition.segment(block, symbol) } else { self.partition.block(block) };
        (needed.end <= self.given).then_some((block, symbol))
    }

    pub(super) fn advance(&mut self) {
        let Some((block, symbol)) = self.next else { return };
        let symbols = self.partition.block_symbols(block) + self.auto_parity;
        self.next = if symbol + 1 < symbols {
            Some((block, symbol + 1))
        } else if block + 1 < self.partition.blocks() {
            Some((block + 1, 0))
        } else {
            None
        };
    }

    /// Returns bytes that the user has given.
    fn bytes(&self, range: core::ops::Range<u64>) -> Cow<'_, [u8]> {
        let (mut at, end) = (range.start, range.end);
        let mut index = self.chunks.partition_point(|(start, data)| start + data.len() as u64 <= at);
        let part = |index: usize, at: u64| -> &[u8] {
            let (start, data) = &self.chunks[index];
            &data[(at - start) as usize..((end - start) as usize).min(data.len())]
        };
        if at == end {
            return Cow::Borrowed(&[]);
        }
        let first = part(index, at);
        if first.len() as u64 == end - at {
            return Cow::Borrowed(first);
        }
        let mut all = Vec::with_capacity((end - at) as usize);
        while at < end {
            let next = part(index, at);
            all.extend_from_slice(next);
            at += next.len() as u64;
            index += 1;
        }
        Cow::Owned(all)
    }

    pub(super) fn symbol_bytes(&self, block: u32, symbol: u16) -> usize {
        let is_source = symbol < self.partition.block_symbols(block);
        // The first segment is the longest one.
        let segment = self.partition.segment(block, if is_source { symbol } else { 0 });
        (segment.end - segment.start) as usize
    }

    pub(super) fn write_symbol(&self, block: u32, symbol: u16, code: &VandermondeCode, out: &mut BytesMut) {
        let sources = self.partition.block_symbols(block);
        let Some(row) = symbol.checked_sub(sources) else {
            out.extend_from_slice(&self.bytes(self.partition.segment(block, symbol)));
            return;
        };
        let symbols: Vec<_> =
            (0..sources).map(|source| self.bytes(self.partition.segment(block, source))).collect();
        // The first segment is the longest one.
        let (start, longest) = (out.len(), symbols[0].len());
        out.resize(start + longest, 0);
        code.encode_into(row.into(), symbols.iter().map(|symbol| &symbol[..]), &mut out[start..]);
    }
}
