//! Headers of bundles, complete bundles, and fragmentation (RFC 5050 4, 5.8).

use super::block::{Block, BlockFlags, BlockType, Content};
use super::primary::PrimaryBlock;
use super::wire;
use crate::bp::block::Fragment;
use crate::bp::{DecodePolicy, Eid};
use crate::codec::{self, DecodeError, sdnv, take};
use bytes::{BufMut, Bytes, BytesMut};

/// Header of a bundle: everything except the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Primary block.
    pub primary: PrimaryBlock,
    /// Extension blocks before the payload, in order.
    pub blocks: Vec<Block>,
    /// Payload block without the payload.
    pub payload: PayloadHeader,
    /// Extension blocks after the payload, in order. Empty after [`super::decode_head`], which does not
    /// decode them.
    pub after: Vec<Block>,
}

/// Payload block without the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadHeader {
    /// Block processing control flags.
    pub flags: BlockFlags,
    /// Length of the payload, bytes.
    pub length: u64,
    /// True if no block follows the payload.
    pub last: bool,
}

/// Complete bundle in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Header: everything except the payload.
    pub head: Head,
    /// Payload; its length is that in the header.
    pub payload: Bytes,
}

impl Head {
    /// Creates a header without extension blocks.
    pub fn new(primary: PrimaryBlock, payload_length: u64) -> Self {
        let payload = PayloadHeader { flags: BlockFlags::NONE, length: payload_length, last: true };
        Head { primary, blocks: Vec::new(), payload, after: Vec::new() }
    }

    /// Node that forwarded the bundle, from any encoding of the previous hop block; `None` without one.
    pub fn previous_hop(&self) -> Option<Eid> {
        let block = self.blocks.iter().find(|block| block.block_type == BlockType::PreviousHop)?;
        match (&block.references, block.content()) {
            (Some(references), _) => self.primary.resolve(*references.first()?).ok(),
            (None, Ok(Some(Content::PreviousHop(node)))) => Some(node),
            _ => None,
        }
    }

    /// Age of the bundle as the last forwarder wrote it, microseconds; `None` without an age block.
    pub fn age_us(&self) -> Option<u64> {
        self.blocks.iter().find_map(|block| match block.content() {
            Ok(Some(Content::Age(age))) => Some(age),
            _ => None,
        })
    }

    /// Replaces the content of the first block of this type. Without such a block, adds one after the primary
    /// block. A block of type 10 that is not an age is not changed.
    pub fn set(&mut self, content: &Content) {
        let is_age = matches!(content, Content::Age(_));
        let same = |block: &&mut Block| {
            block.block_type == content.block_type()
                && (!is_age || matches!(block.content(), Ok(Some(Content::Age(_)))))
        };
        match self.blocks.iter_mut().find(same) {
            Some(block) => {
                block.references = None;
                block.data = content.encode();
            }
            None => self.blocks.insert(0, Block::new(content)),
        }
    }

    /// Converts the age to whole seconds, as in DTN2. Returns false without an age block.
    pub fn set_age_in_seconds(&mut self) -> bool {
        let Some(age_us) = self.age_us() else { return false };
        self.set(&Content::Age(age_us / 1_000_000));
        true
    }

    /// Removes every block of this type before the payload. Blocks after it remain, because they may already
    /// be sent.
    pub fn remove(&mut self, block_type: BlockType) {
        self.blocks.retain(|block| block.block_type != block_type);
    }

    /// Replaces the custodian.
    pub fn set_custodian(&mut self, custodian: Eid) {
        let blocks = self.blocks.iter_mut().chain(&mut self.after);
        self.primary.set_custodian(custodian, blocks);
    }

    /// Returns the header of a fragment that carries `length` bytes of this bundle's payload from `offset` on
    /// (RFC 5050 5.8). The bundle may be a fragment itself. Blocks before the payload go with its first byte,
    /// blocks after it with its last. Blocks with the replication flag, age, class of service and those that show
    /// that something is encrypted go with every fragment.
    ///
    /// # Panics
    /// Panics if the range is empty or not a part of the payload, or if the bundle must not be fragmented.
    #[must_use]
    pub fn fragment(&self, offset: u64, length: u64) -> Head {
        let PrimaryBlock { fragment, flags, .. } = self.primary;
        let fragment = Fragment::of(fragment, flags, self.payload.length, (offset, length));
        let mut head = self.clone();
        head.primary.fragment = Some(fragment);
        head.payload.length = length;
        if offset > 0 {
            let stays = |block: &Block| {
                block.flags.contains(BlockFlags::REPLICATE)
                    || block.is_confidentiality()
                    || matches!(block.content(), Ok(Some(Content::Age(_) | Content::ClassOfService(_))))
            };
            head.blocks.retain(stays);
        }
        if offset + length < self.payload.length {
            head.after.clear();
        }
        head.payload.last = head.after.is_empty();
        head
    }

    /// Appends the header: everything before the payload's first byte.
    pub fn encode(&self, out: &mut BytesMut) {
        self.primary.encode(out);
        self.blocks.iter().for_each(|block| block.encode(false, out));
        self.payload.encode(out);
    }

    /// Encodes the header.
    pub fn to_bytes(&self) -> Bytes {
        codec::encoded(256, |out| self.encode(out))
    }

    /// Appends the blocks after the payload.
    pub fn encode_tail(&self, out: &mut BytesMut) {
        for (index, block) in self.after.iter().enumerate() {
            block.encode(index + 1 == self.after.len(), out);
        }
    }

    /// Length of the blocks after the payload, bytes.
    pub fn tail_bytes(&self) -> usize {
        let length = |block: &Block| {
            let references = block.references.as_ref().map_or(0, |references| {
                let one = |reference: &super::EidReference| {
                    sdnv::length(reference.scheme) + sdnv::length(reference.ssp)
                };
                sdnv::length(references.len() as u64) + references.iter().map(one).sum::<usize>()
            });
            let length = sdnv::length(block.data.len() as u64);
            1 + sdnv::length(block.wire_flags(false)) + references + length + block.data.len()
        };
        self.after.iter().map(length).sum()
    }
}

impl Bundle {
    /// Creates a bundle and sets the payload length of the header.
    pub fn new(mut head: Head, payload: Bytes) -> Self {
        head.payload.length = payload.len() as u64;
        Bundle { head, payload }
    }

    /// Decodes a bundle from the front of the input, and advances the input. The payload shares the input's
    /// memory.
    ///
    /// # Errors
    /// Fails with `Incomplete` if the input ends early, otherwise with the field and the clause that it
    /// violates.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let policy = DecodePolicy::default();
        let (mut head, length) = wire::decode_head(input, &policy)?;
        let mut rest = input.slice(length..);
        let payload = take(&mut rest, usize::try_from(head.payload.length).unwrap_or(usize::MAX))?;
        head.after = wire::decode_tail(&mut rest, &head, &policy)?;
        *input = rest;
        Ok(Bundle { head, payload })
    }

    /// Appends the bundle.
    ///
    /// # Panics
    /// Panics if the length of the payload is not that in the header.
    pub fn encode(&self, out: &mut BytesMut) {
        assert_eq!(
            self.head.payload.length,
            self.payload.len() as u64,
            "the head tells the payload's length"
        );
        self.head.encode(out);
        out.put_slice(&self.payload);
        self.head.encode_tail(out);
    }

    /// Encodes the bundle.
    pub fn to_bytes(&self) -> Bytes {
        codec::encoded(256 + self.payload.len(), |out| self.encode(out))
    }
}
