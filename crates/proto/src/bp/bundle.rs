//! Headers of bundles, complete bundles, and fragmentation (RFC 9171 4.1, 5.8).

use super::block::{Block, BlockFlags, BlockType, Content, CrcType, Fragment, HopCount, PrimaryBlock};
use super::eid::Eid;
use super::time::CreationTimestamp;
use super::wire::{DecodePolicy, PayloadCrc};
use crate::codec::{self, DecodeError, cbor};
use crate::service::Priority;
use bytes::{Buf, Bytes, BytesMut};

/// Header of a bundle: everything except the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Primary block.
    pub primary: PrimaryBlock,
    /// Extension blocks, in order.
    pub blocks: Vec<Block>,
    /// Payload block without the payload.
    pub payload: PayloadHeader,
}

/// Payload block without the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadHeader {
    /// Block processing control flags.
    pub flags: BlockFlags,
    /// CRC type of the block.
    pub crc: CrcType,
    /// Length of the payload, bytes.
    pub length: u64,
}

/// Complete bundle in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    /// Header: everything except the payload.
    pub head: Head,
    /// Payload; its length is that in the header.
    pub payload: Bytes,
}

/// Bundle ID (RFC 9171 4.3.1): source, creation timestamp and, for a fragment, the position of its payload.
/// It does not identify bundles whose source is the null endpoint (4.2.3).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BundleId {
    /// Source node ID.
    pub source: Eid,
    /// Creation timestamp.
    pub timestamp: CreationTimestamp,
    /// Offset and length of the payload in the application data unit, bytes; `None` if the bundle is not a
    /// fragment.
    pub fragment: Option<(u64, u64)>,
}

impl Head {
    /// Creates a header without extension blocks, with CRC-32C for the payload.
    pub fn new(primary: PrimaryBlock, payload_length: u64) -> Self {
        let payload = PayloadHeader { flags: BlockFlags::NONE, crc: CrcType::Crc32c, length: payload_length };
        Head { primary, blocks: Vec::new(), payload }
    }

    /// Bundle ID, in its own memory.
    pub fn id(&self) -> BundleId {
        BundleId {
            source: self.primary.source.detached(),
            timestamp: self.primary.timestamp,
            fragment: self.primary.fragment.map(|fragment| (fragment.offset, self.payload.length)),
        }
    }

    /// First block of this type.
    pub fn block(&self, block_type: BlockType) -> Option<&Block> {
        self.blocks.iter().find(|block| block.block_type == block_type)
    }

    /// Content of the first block of this type. `None` also if the block is encrypted or its data are
    /// invalid.
    pub fn content(&self, block_type: BlockType) -> Option<Content> {
        let block = self.block(block_type)?;
        if self.is_encrypted(block.number) { None } else { block.content().ok().flatten() }
    }

    /// Node that forwarded the bundle; `None` without a previous node block.
    pub fn previous_node(&self) -> Option<Eid> {
        match self.content(BlockType::PreviousNode) {
            Some(Content::PreviousNode(node)) => Some(node),
            _ => None,
        }
    }

    /// Age of the bundle as the last forwarder wrote it, milliseconds; `None` without a bundle age block.
    pub fn age_ms(&self) -> Option<u64> {
        match self.content(BlockType::BundleAge) {
            Some(Content::BundleAge(age)) => Some(age),
            _ => None,
        }
    }

    /// Hop count and hop limit; `None` without a hop count block.
    pub fn hop_count(&self) -> Option<HopCount> {
        match self.content(BlockType::HopCount) {
            Some(Content::HopCount(hops)) => Some(hops),
            _ => None,
        }
    }

    /// Priority; normal without a quality-of-service block.
    pub fn priority(&self) -> Priority {
        match self.content(BlockType::QualityOfService) {
            Some(Content::QualityOfService(quality)) => quality.priority(),
            _ => Priority::Normal,
        }
    }

    /// Number of copies that the holder may make; `None` without a copies block.
    pub fn copies(&self) -> Option<u64> {
        match self.content(BlockType::Copies) {
            Some(Content::Copies(copies)) => Some(copies),
            _ => None,
        }
    }

    /// Replaces the content of the first block of this type. Without such a block, adds one with the CRC type
    /// of the payload and the smallest free number.
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

    /// Smallest free block number.
    pub fn free_number(&self) -> u64 {
        let taken = |number: u64| self.blocks.iter().any(|block| block.number == number);
        (2..).find(|&number| !taken(number)).expect("there are more numbers than blocks")
    }

    /// Returns the header of a fragment that carries `length` bytes of this bundle's payload from `offset` on
    /// (RFC 9171 5.8). The bundle may be a fragment itself.
    ///
    /// The fragment with the first byte of the application data unit keeps all extension blocks. Other
    /// fragments keep the blocks with the replication flag, and in any case age, hop count, priority, copies and
    /// block confidentiality: 5.8 leaves that free, each fragment needs them, and only the last shows that a
    /// payload is encrypted.
    ///
    /// # Panics
    /// Panics if the range is empty or not a part of the payload, or if the bundle must not be fragmented.
    pub fn fragment(&self, offset: u64, length: u64) -> Head {
        let PrimaryBlock { fragment, flags, .. } = self.primary;
        let fragment = Fragment::of(fragment, flags, self.payload.length, (offset, length));
        let mut head = self.clone();
        head.primary.fragment = Some(fragment);
        head.payload.length = length;
        if fragment.offset > 0 {
            head.blocks.retain(Block::stays_in_every_fragment);
        }
        head
    }

    /// True if a block confidentiality block has this block as a target.
    pub fn is_encrypted(&self, number: u64) -> bool {
        self.is_target(BlockType::BlockConfidentiality, number)
    }

    /// True if a security block of this type has block `number` as a target (RFC 9172 3.6).
    pub(super) fn is_target(&self, security: BlockType, number: u64) -> bool {
        let mut security = self.blocks.iter().filter(|block| block.block_type == security);
        security.any(|block| block.has_target(number))
    }

    /// Appends the header: everything before the payload's first byte.
    pub fn encode(&self, out: &mut BytesMut) {
        self.encode_before_payload(out);
        self.payload.encode(out);
    }

    /// Appends everything before the payload block.
    fn encode_before_payload(&self, out: &mut BytesMut) {
        cbor::put_indefinite_array(out);
        self.primary.encode(out);
        self.blocks.iter().for_each(|block| block.encode(out));
    }

    /// Encodes the header.
    pub fn to_bytes(&self) -> Bytes {
        codec::encoded(256, |out| self.encode(out))
    }

    /// Length of the tail that follows the payload, bytes.
    pub const fn tail_bytes(&self) -> usize {
        self.payload.crc.field_bytes() + 1
    }
}

impl Block {
    /// True if this security block has block `number` as a target.
    pub(super) fn has_target(&self, number: u64) -> bool {
        has_target(&self.data, number).unwrap_or(false)
    }

    /// True if the block is in every fragment of its bundle: see [`Head::fragment`].
    pub(crate) fn stays_in_every_fragment(&self) -> bool {
        self.flags.contains(BlockFlags::REPLICATE)
            || matches!(
                self.block_type,
                BlockType::BundleAge
                    | BlockType::HopCount
                    | BlockType::QualityOfService
                    | BlockType::Copies
                    | BlockType::BlockConfidentiality
            )
    }
}

/// The targets are the first item of an abstract security block (RFC 9172 3.6).
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
    /// Creates a bundle and sets the payload length of the header.
    pub fn new(mut head: Head, payload: Bytes) -> Self {
        head.payload.length = payload.len() as u64;
        Bundle { head, payload }
    }

    /// Decodes a bundle from the front of the input under the strict policy, and advances the input. The
    /// payload shares the input's memory.
    ///
    /// # Errors
    /// Fails with `Incomplete` if the input ends early, otherwise with the field and the clause that it
    /// violates.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        Self::decode_with(input, &DecodePolicy::default())
    }

    /// Decodes a bundle from the front of the input under a policy, and advances the input.
    ///
    /// # Errors
    /// Fails with `Incomplete` if the input ends early, otherwise with the field and the clause that it
    /// violates.
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

    /// Decodes bytes that contain exactly one bundle.
    ///
    /// # Errors
    /// Fails if the bytes are not a bundle under the policy, or if further bytes follow it.
    pub fn from_bytes(bytes: &Bytes, policy: &DecodePolicy) -> Result<Self, DecodeError> {
        let mut input = bytes.clone();
        let bundle = Self::decode_with(&mut input, policy)?;
        if input.is_empty() {
            Ok(bundle)
        } else {
            Err(DecodeError::invalid("data after the end of a bundle", "RFC 9171 4.1"))
        }
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
        self.head.encode_before_payload(out);
        let start = out.len();
        self.head.payload.encode(out);
        out.extend_from_slice(&self.payload);
        super::wire::put_crc(start, self.head.payload.crc, out);
        cbor::put_break(out);
    }

    /// Encodes the bundle.
    pub fn to_bytes(&self) -> Bytes {
        codec::encoded(256 + self.payload.len(), |out| self.encode(out))
    }
}
