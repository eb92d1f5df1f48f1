//! A bundle's head, a whole bundle, and how a bundle becomes fragments (RFC 9171 4.1, 5.8).

use super::block::{
    Block, BlockFlags, BlockType, BundleFlags, Content, CrcType, Fragment, HopCount, PrimaryBlock,
};
use super::eid::Eid;
use super::time::CreationTimestamp;
use super::wire::{DecodePolicy, PayloadCrc};
use crate::codec::{DecodeError, cbor};
use crate::service::Priority;
use bytes::{Buf, Bytes, BytesMut};

/// All of a bundle but its payload's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The primary block.
    pub primary: PrimaryBlock,
    /// The extension blocks, in their order.
    pub blocks: Vec<Block>,
    /// The payload block without the payload.
    pub payload: PayloadHeader,
}

/// The payload block without the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadHeader {
    /// Block processing control flags.
    pub flags: BlockFlags,
    /// The block's checksum.
    pub crc: CrcType,
    /// The payload's length in bytes.
    pub length: u64,
}

/// A whole bundle in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// All but the payload.
    pub head: Head,
    /// The payload; as long as the head says.
    pub payload: Bytes,
}

/// What tells one bundle from every other (RFC 9171 4.3.1): the source, the creation timestamp and, for a
/// fragment, where its payload lies. Bundles of the null endpoint are not told apart by it (4.2.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleId {
    /// The source node.
    pub source: Eid,
    /// The creation timestamp.
    pub timestamp: CreationTimestamp,
    /// Offset and length of the payload in the application data unit, bytes.
    pub fragment: Option<(u64, u64)>,
}

impl Head {
    /// A head without extension blocks, with CRC-32C over the payload.
    pub fn new(primary: PrimaryBlock, payload_length: u64) -> Self {
        let payload = PayloadHeader { flags: BlockFlags::NONE, crc: CrcType::Crc32c, length: payload_length };
        Head { primary, blocks: Vec::new(), payload }
    }

    /// What tells this bundle from every other, in memory of its own.
    pub fn id(&self) -> BundleId {
        BundleId {
            source: self.primary.source.detached(),
            timestamp: self.primary.timestamp,
            fragment: self.primary.fragment.map(|fragment| (fragment.offset, self.payload.length)),
        }
    }

    /// The first block of this type.
    pub fn block(&self, block_type: BlockType) -> Option<&Block> {
        self.blocks.iter().find(|block| block.block_type == block_type)
    }

    /// What the first block of this type contains. `None`, too, where it is encrypted.
    pub fn content(&self, block_type: BlockType) -> Option<Content> {
        let block = self.block(block_type)?;
        if self.is_encrypted(block.number) { None } else { block.content().ok().flatten() }
    }

    /// The node that forwarded the bundle.
    pub fn previous_node(&self) -> Option<Eid> {
        match self.content(BlockType::PreviousNode) {
            Some(Content::PreviousNode(node)) => Some(node),
            _ => None,
        }
    }

    /// The age that the last forwarder wrote, milliseconds.
    pub fn age_ms(&self) -> Option<u64> {
        match self.content(BlockType::BundleAge) {
            Some(Content::BundleAge(age)) => Some(age),
            _ => None,
        }
    }

    /// Hop limit and count.
    pub fn hop_count(&self) -> Option<HopCount> {
        match self.content(BlockType::HopCount) {
            Some(Content::HopCount(hops)) => Some(hops),
            _ => None,
        }
    }

    /// Its urgency; normal where it does not say.
    pub fn priority(&self) -> Priority {
        match self.content(BlockType::QualityOfService) {
            Some(Content::QualityOfService(quality)) => quality.priority(),
            _ => Priority::Normal,
        }
    }

    /// How many copies its holder may make; none where it does not say.
    pub fn copies(&self) -> Option<u64> {
        match self.content(BlockType::Copies) {
            Some(Content::Copies(copies)) => Some(copies),
            _ => None,
        }
    }

    /// Gives the block of this content's type this content; adds the block, with the payload's kind of checksum and
    /// the smallest free number, if there is none.
    pub fn set(&mut self, content: &Content) {
        let data = content.encode();
        let block_type = content.block_type();
        if let Some(block) = self.blocks.iter_mut().find(|block| block.block_type == block_type) {
            block.data = data;
            return;
        }
        let (number, crc) = (self.free_number(), self.payload.crc);
        self.blocks.push(Block { block_type, number, flags: content.default_flags(), crc, data });
    }

    /// Removes every block of this type.
    pub fn remove(&mut self, block_type: BlockType) {
        self.blocks.retain(|block| block.block_type != block_type);
    }

    /// The smallest block number that is free.
    pub fn free_number(&self) -> u64 {
        let taken = |number: u64| self.blocks.iter().any(|block| block.number == number);
        (2..).find(|&number| !taken(number)).expect("there are more numbers than blocks")
    }

    /// The head of a fragment that carries `length` bytes of this bundle's payload from `offset` on (RFC 9171 5.8).
    /// The bundle may be a fragment itself.
    ///
    /// The fragment with the first byte of the application data unit keeps all extension blocks; others keep those
    /// that ask for it, and age, hop count and priority in any case: 5.8 leaves that free, and each fragment needs them.
    ///
    /// # Panics
    /// If that is not a part of the payload, or the bundle must not be fragmented.
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
        let offset = base + offset;
        let mut head = self.clone();
        head.primary.fragment = Some(Fragment { offset, total_length });
        head.payload.length = length;
        if offset > 0 {
            head.blocks.retain(stays_in_every_fragment);
        }
        head
    }

    /// True if a block confidentiality block says that it has encrypted this block.
    pub fn is_encrypted(&self, number: u64) -> bool {
        self.is_target(BlockType::BlockConfidentiality, number)
    }

    /// True if a security block of this type names block `number` as its target (RFC 9172 3.6).
    pub(super) fn is_target(&self, security: BlockType, number: u64) -> bool {
        let mut security = self.blocks.iter().filter(|block| block.block_type == security);
        security.any(|block| has_target(&block.data, number).unwrap_or(false))
    }

    /// Appends the head: everything up to the payload's first byte.
    pub fn encode(&self, out: &mut BytesMut) {
        self.encode_before_payload(out);
        self.payload.encode(out);
    }

    /// Appends everything up to the payload block.
    fn encode_before_payload(&self, out: &mut BytesMut) {
        cbor::put_indefinite_array(out);
        self.primary.encode(out);
        self.blocks.iter().for_each(|block| block.encode(out));
    }

    /// The head's bytes.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(256);
        self.encode(&mut out);
        out.freeze()
    }

    /// How many bytes follow the payload.
    pub const fn tail_bytes(&self) -> usize {
        self.payload.crc.field_bytes() + 1
    }
}

fn stays_in_every_fragment(block: &Block) -> bool {
    block.flags.contains(BlockFlags::REPLICATE)
        || matches!(
            block.block_type,
            BlockType::BundleAge | BlockType::HopCount | BlockType::QualityOfService | BlockType::Copies
        )
}

/// The targets are the first item of an abstract security block.
fn has_target(data: &[u8], number: u64) -> Result<bool, DecodeError> {
    const TARGETS: (&str, &str) = ("the targets of a security block", "RFC 9172 3.6");
    let mut input = data;
    let count = cbor::array(&mut input, TARGETS.0, TARGETS.1)?.unwrap_or(0);
    for _ in 0..count {
        if cbor::unsigned(&mut input, TARGETS.0, TARGETS.1)? == number {
            return Ok(true);
        }
    }
    Ok(false)
}

impl Bundle {
    /// A bundle of a head and a payload, whose length the head takes over.
    pub fn new(mut head: Head, payload: Bytes) -> Self {
        head.payload.length = payload.len() as u64;
        Bundle { head, payload }
    }

    /// Takes a bundle from the front, by the strict policy. The payload shares the input's memory.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        Self::decode_with(input, &DecodePolicy::default())
    }

    /// Takes a bundle from the front by a policy.
    pub fn decode_with(input: &mut Bytes, policy: &DecodePolicy) -> Result<Self, DecodeError> {
        let (head, start) = super::wire::decode_head(input, policy)?;
        let length = usize::try_from(head.payload.length).unwrap_or(usize::MAX);
        let end = start.checked_add(length).filter(|&end| end <= input.len());
        let end = end.ok_or(DecodeError::Incomplete)?;
        let mut tail = &input[end..];
        super::wire::take_tail(&mut tail, head.payload.crc, || {
            let mut crc = PayloadCrc::new(&head.payload);
            crc.update(&input[start..end]);
            crc.value()
        })?;
        let taken = input.len() - tail.len();
        let payload = input.slice(start..end);
        input.advance(taken);
        Ok(Bundle { head, payload })
    }

    /// Reads bytes that have to be one bundle and nothing else.
    pub fn from_bytes(bytes: &Bytes, policy: &DecodePolicy) -> Result<Self, DecodeError> {
        let mut input = bytes.clone();
        let bundle = Self::decode_with(&mut input, policy)?;
        if input.is_empty() {
            Ok(bundle)
        } else {
            Err(DecodeError::invalid("what follows the end of a bundle", "RFC 9171 4.1"))
        }
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
        self.head.encode_before_payload(out);
        let start = out.len();
        self.head.payload.encode(out);
        out.extend_from_slice(&self.payload);
        super::wire::put_crc(start, self.head.payload.crc, out);
        cbor::put_break(out);
    }

    /// The bundle's bytes.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(256 + self.payload.len());
        self.encode(&mut out);
        out.freeze()
    }
}
