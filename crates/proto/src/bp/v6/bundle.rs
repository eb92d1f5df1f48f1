//! A bundle's head, a whole bundle, and how a bundle becomes fragments (RFC 5050 4, 5.8).

use super::block::{Block, BlockFlags, BlockType, BundleFlags, Content};
use super::primary::PrimaryBlock;
use super::wire;
use crate::bp::block::Fragment;
use crate::bp::{DecodePolicy, Eid};
use crate::codec::{DecodeError, sdnv};
use bytes::{BufMut, Bytes, BytesMut};

/// All of a bundle but its payload's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The primary block.
    pub primary: PrimaryBlock,
    /// The extension blocks before the payload, in their order.
    pub blocks: Vec<Block>,
    /// The payload block without the payload.
    pub payload: PayloadHeader,
    /// The extension blocks behind the payload, in their order. Empty after [`super::decode_head`], which does not see
    /// them.
    pub after: Vec<Block>,
}

/// The payload block without the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadHeader {
    /// Block processing control flags.
    pub flags: BlockFlags,
    /// The payload's length in bytes.
    pub length: u64,
    /// Nothing follows the payload.
    pub last: bool,
}

/// A whole bundle in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// All but the payload.
    pub head: Head,
    /// The payload; as long as the head says.
    pub payload: Bytes,
}

impl Head {
    /// A head without extension blocks.
    pub fn new(primary: PrimaryBlock, payload_length: u64) -> Self {
        let payload = PayloadHeader { flags: BlockFlags::NONE, length: payload_length, last: true };
        Head { primary, blocks: Vec::new(), payload, after: Vec::new() }
    }

    /// The node that forwarded the bundle, however the block names it.
    pub fn previous_hop(&self) -> Option<Eid> {
        let block = self.blocks.iter().find(|block| block.block_type == BlockType::PreviousHop)?;
        match (&block.references, block.content()) {
            (Some(references), _) => self.primary.resolve(*references.first()?).ok(),
            (None, Ok(Some(Content::PreviousHop(node)))) => Some(node),
            _ => None,
        }
    }

    /// The age that the last forwarder wrote, microseconds.
    pub fn age_us(&self) -> Option<u64> {
        self.blocks.iter().find_map(|block| match block.content() {
            Ok(Some(Content::Age(age))) => Some(age),
            _ => None,
        })
    }

    /// Gives the block of this content's type this content; adds the block behind the primary block if there is none.
    /// A block of type 10 that is no age stays what it is.
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

    /// Says its age in whole seconds, as DTN2 does; false if it says none.
    pub fn set_age_in_seconds(&mut self) -> bool {
        let Some(age_us) = self.age_us() else { return false };
        self.set(&Content::Age(age_us / 1_000_000));
        true
    }

    /// Removes every block of this type before the payload. What is behind it stays: it may be on its way already.
    pub fn remove(&mut self, block_type: BlockType) {
        self.blocks.retain(|block| block.block_type != block_type);
    }

    /// Names another custodian.
    pub fn set_custodian(&mut self, custodian: Eid) {
        let blocks = self.blocks.iter_mut().chain(&mut self.after);
        self.primary.set_custodian(custodian, blocks);
    }

    /// The head of a fragment that carries `length` bytes of this bundle's payload from `offset` on (RFC 5050 5.8).
    /// The bundle may be a fragment itself. Blocks before the payload go with its first byte, blocks behind it with its
    /// last; those that ask for it, and the age, go with every fragment.
    ///
    /// # Panics
    /// If that is not a part of the payload, or the bundle must not be fragmented.
    #[must_use]
    pub fn fragment(&self, offset: u64, length: u64) -> Head {
        let end = offset.checked_add(length).expect("a fragment ends somewhere");
        assert!(0 < length && end <= self.payload.length, "a fragment is a part of the payload");
        assert!(
            !self.primary.flags.contains(BundleFlags::MUST_NOT_FRAGMENT),
            "only what may be fragmented is fragmented"
        );
        let (base, total_length) = match self.primary.fragment {
            Some(whole) => (whole.offset, whole.total_length),
            None => (0, self.payload.length),
        };
        let mut head = self.clone();
        head.primary.fragment = Some(Fragment { offset: base + offset, total_length });
        head.payload.length = length;
        if offset > 0 {
            let stays = |block: &Block| {
                block.flags.contains(BlockFlags::REPLICATE)
                    || matches!(block.content(), Ok(Some(Content::Age(_) | Content::ClassOfService(_))))
            };
            head.blocks.retain(stays);
        }
        if end < self.payload.length {
            head.after.clear();
        }
        head.payload.last = head.after.is_empty();
        head
    }

    /// Appends the head: everything up to the payload's first byte.
    pub fn encode(&self, out: &mut BytesMut) {
        self.primary.encode(out);
        self.blocks.iter().for_each(|block| block.encode(false, out));
        self.payload.encode(out);
    }

    /// The head's bytes.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(256);
        self.encode(&mut out);
        out.freeze()
    }

    /// Appends what follows the payload.
    pub fn encode_tail(&self, out: &mut BytesMut) {
        for (index, block) in self.after.iter().enumerate() {
            block.encode(index + 1 == self.after.len(), out);
        }
    }

    /// How many bytes follow the payload.
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
    /// A bundle of a head and a payload, whose length the head takes over.
    pub fn new(mut head: Head, payload: Bytes) -> Self {
        head.payload.length = payload.len() as u64;
        Bundle { head, payload }
    }

    /// Takes a bundle from the front. The payload shares the input's memory.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let policy = DecodePolicy::default();
        let (mut head, length) = wire::decode_head(input, &policy)?;
        let mut rest = input.slice(length..);
        let length = usize::try_from(head.payload.length).map_err(|_| DecodeError::Incomplete)?;
        if rest.len() < length {
            return Err(DecodeError::Incomplete);
        }
        let payload = rest.split_to(length);
        head.after = wire::decode_tail(&mut rest, &head, &policy)?;
        *input = rest;
        Ok(Bundle { head, payload })
    }

    /// Appends the bundle.
    ///
    /// # Panics
    /// If the payload is not as long as the head says.
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

    /// The bundle's bytes.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(256 + self.payload.len());
        self.encode(&mut out);
        out.freeze()
    }
}
