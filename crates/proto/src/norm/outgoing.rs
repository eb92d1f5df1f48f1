//! Object that is being sent.

use super::partition::Partition;
use super::wire::{Flags, Fti};
use crate::fec::VandermondeCode;
use crate::service::ObjectKind;
use crate::time::Instant;
use bytes::{Bytes, BytesMut};
use std::borrow::Cow;

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
    pub(super) partition: Partition,
    pub(super) fti: Fti,
    /// Pieces of the user, each after its offset.
    chunks: Vec<(u64, Bytes)>,
    given: u64,
    /// Next symbol to send for the first time, parity symbols without a request included.
    next: Option<(u32, u16)>,
    /// Number of parity symbols per block that are sent without a request.
    auto_parity: u16,
    /// Time at which the last of its symbols left.
    pub(super) left_at: Instant,
}

impl Outgoing {
    pub(super) fn new(
        object: u64,
        kind: ObjectKind,
        info: Option<Bytes>,
        partition: Partition,
        fti: Fti,
        auto_parity: u16,
    ) -> Self {
        let of_kind = match kind {
            ObjectKind::Data => 0,
            ObjectKind::File => Flags::FILE,
            ObjectKind::Stream => Flags::STREAM,
        };
        let has_info = if info.is_some() { Flags::INFO } else { 0 };
        Outgoing {
            object,
            flags: Flags(of_kind | has_info),
            is_info_due: info.is_some(),
            info,
            partition,
            fti,
            chunks: Vec::new(),
            given: 0,
            next: Some((0, 0)),
            auto_parity,
            left_at: Instant::ZERO,
        }
    }

    /// Length, bytes.
    pub(super) fn length(&self) -> u64 {
        self.partition.object_bytes()
    }

    /// Adds the next bytes.
    pub(super) fn add(&mut self, data: Bytes) {
        assert!(self.given + data.len() as u64 <= self.length(), "more bytes than the object has");
        let offset = self.given;
        self.given += data.len() as u64;
        self.chunks.push((offset, data));
    }

    /// Number of bytes that the user has yet to give.
    pub(super) fn lacks(&self) -> u64 {
        self.length() - self.given
    }

    /// Number of bytes that the user has given, and that were not sent.
    pub(super) fn unsent(&self) -> u64 {
        let sent = self.next.map_or(self.length(), |(block, symbol)| {
            self.partition.segment(block, symbol.min(self.partition.block_symbols(block))).start
        });
        self.given.saturating_sub(sent)
    }

    /// Returns true if all symbols were sent that are sent without a request.
    pub(super) fn is_sent(&self) -> bool {
        self.next.is_none() && !self.is_info_due
    }

    /// Returns true if symbols of a block were sent, so that others can be requested. The last block of an object that is not complete
    /// counts once it is.
    pub(super) fn has_left(&self, block: u32) -> bool {
        block < self.partition.blocks() && self.next.is_none_or(|(next, _)| block < next)
    }

    /// Number of blocks of which symbols can be requested.
    pub(super) fn blocks_left(&self) -> u32 {
        self.next.map_or(self.partition.blocks(), |(next, _)| next)
    }

    /// Returns the next symbol to send for the first time, if the user has given the bytes that it takes.
    pub(super) fn next_symbol(&self) -> Option<(u32, u16)> {
        let (block, symbol) = self.next?;
        let is_source = symbol < self.partition.block_symbols(block);
        let needed =
            if is_source { self.partition.segment(block, symbol) } else { self.partition.block(block) };
        (needed.end <= self.given).then_some((block, symbol))
    }

    /// Notes that the symbol of [`next_symbol`](Outgoing::next_symbol) leaves.
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

    /// Returns bytes of the object that the user has given.
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

    /// Appends the contents of a symbol.
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
