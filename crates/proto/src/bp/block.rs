//! Blocks: flags, the primary block, canonical blocks and what they contain (RFC 9171 4.2 to 4.4).

use super::eid::Eid;
use super::time::CreationTimestamp;
use crate::codec::{DecodeError, cbor};
use crate::service::Priority;
use bytes::{Bytes, BytesMut};
use core::ops::{BitOr, BitOrAssign};

/// Bundle processing control flags (RFC 9171 4.2.3), without "is a fragment", which is
/// [`PrimaryBlock::fragment`]. Bits that nobody knows are kept and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BundleFlags(pub(super) u64);

impl BundleFlags {
    /// None at all.
    pub const NONE: BundleFlags = BundleFlags(0);
    /// The payload is an administrative record.
    pub const ADMINISTRATIVE_RECORD: BundleFlags = BundleFlags(0x02);
    /// The bundle must not be fragmented.
    pub const MUST_NOT_FRAGMENT: BundleFlags = BundleFlags(0x04);
    /// The application is asked to acknowledge.
    pub const APPLICATION_ACKNOWLEDGEMENT: BundleFlags = BundleFlags(0x20);
    /// Status reports shall carry times.
    pub const STATUS_TIME: BundleFlags = BundleFlags(0x40);
    /// Report reception.
    pub const REPORT_RECEPTION: BundleFlags = BundleFlags(0x4000);
    /// Report forwarding.
    pub const REPORT_FORWARDING: BundleFlags = BundleFlags(0x1_0000);
    /// Report delivery.
    pub const REPORT_DELIVERY: BundleFlags = BundleFlags(0x2_0000);
    /// Report deletion.
    pub const REPORT_DELETION: BundleFlags = BundleFlags(0x4_0000);
    /// Every flag that asks for reports.
    pub const REPORTS: BundleFlags = BundleFlags(0x7_4000);
    /// "Is a fragment", which stands in the number on the wire only.
    pub(super) const FRAGMENT_BIT: u64 = 0x01;

    /// All bits, those that nobody knows included.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// True if all bits of `flags` are set.
    pub const fn contains(self, flags: BundleFlags) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// True if any bit of `flags` is set.
    pub const fn intersects(self, flags: BundleFlags) -> bool {
        self.0 & flags.0 != 0
    }
}

impl BitOr for BundleFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        BundleFlags(self.0 | other.0)
    }
}

impl BitOrAssign for BundleFlags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Block processing control flags (RFC 9171 4.2.4). Bits that nobody knows are kept and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockFlags(pub(super) u64);

impl BlockFlags {
    /// None at all.
    pub const NONE: BlockFlags = BlockFlags(0);
    /// Copy the block into every fragment.
    pub const REPLICATE: BlockFlags = BlockFlags(0x01);
    /// Report if the block cannot be processed.
    pub const REPORT: BlockFlags = BlockFlags(0x02);
    /// Delete the bundle if the block cannot be processed.
    pub const DELETE_BUNDLE: BlockFlags = BlockFlags(0x04);
    /// Discard the block if it cannot be processed.
    pub const DISCARD: BlockFlags = BlockFlags(0x10);

    /// All bits, those that nobody knows included.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// True if all bits of `flags` are set.
    pub const fn contains(self, flags: BlockFlags) -> bool {
        self.0 & flags.0 == flags.0
    }
}

impl BitOr for BlockFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        BlockFlags(self.0 | other.0)
    }
}

impl BitOrAssign for BlockFlags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

/// Which checksum a block carries (RFC 9171 4.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrcType {
    /// None.
    None,
    /// CRC-16/X-25, two bytes.
    Crc16,
    /// CRC-32C, four bytes.
    #[default]
    Crc32c,
}

impl CrcType {
    pub(super) fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        const WHAT: &str = "a CRC type";
        const CLAUSE: &str = "RFC 9171 4.2.1";
        match cbor::unsigned(input, WHAT, CLAUSE)? {
            0 => Ok(CrcType::None),
            1 => Ok(CrcType::Crc16),
            2 => Ok(CrcType::Crc32c),
            _ => Err(DecodeError::invalid(WHAT, CLAUSE)),
        }
    }

    pub(super) const fn number(self) -> u64 {
        match self {
            CrcType::None => 0,
            CrcType::Crc16 => 1,
            CrcType::Crc32c => 2,
        }
    }

    /// The bytes of the CRC itself.
    pub const fn bytes(self) -> usize {
        match self {
            CrcType::None => 0,
            CrcType::Crc16 => 2,
            CrcType::Crc32c => 4,
        }
    }

    /// The bytes of the CRC field: a byte string with a head of one byte, or nothing.
    pub const fn field_bytes(self) -> usize {
        match self {
            CrcType::None => 0,
            CrcType::Crc16 => 3,
            CrcType::Crc32c => 5,
        }
    }
}

/// The primary block (RFC 9171 4.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryBlock {
    /// Bundle processing control flags.
    pub flags: BundleFlags,
    /// Its own checksum.
    pub crc: CrcType,
    /// Where the bundle goes.
    pub destination: Eid,
    /// The node it comes from; null: anonymous.
    pub source: Eid,
    /// Where status reports go.
    pub report_to: Eid,
    /// When it was created.
    pub timestamp: CreationTimestamp,
    /// Milliseconds from creation to the end of its usefulness.
    pub lifetime_ms: u64,
    /// Which part of the application data unit it carries, if it is a fragment.
    pub fragment: Option<Fragment>,
}

/// Which part of an application data unit a fragment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// Where the payload begins in the application data unit, bytes.
    pub offset: u64,
    /// The length of the whole application data unit, bytes.
    pub total_length: u64,
}

impl PrimaryBlock {
    /// A primary block with CRC-32C and neither flags nor fragment; reports go to the source.
    pub fn new(destination: Eid, source: Eid, timestamp: CreationTimestamp, lifetime_ms: u64) -> Self {
        PrimaryBlock {
            flags: BundleFlags::NONE,
            crc: CrcType::Crc32c,
            destination,
            report_to: source.clone(),
            source,
            timestamp,
            lifetime_ms,
            fragment: None,
        }
    }

    /// How many items its array has (RFC 9171 4.3.1).
    pub(super) fn items(&self) -> u64 {
        8 + if self.fragment.is_some() { 2 } else { 0 } + u64::from(self.crc != CrcType::None)
    }
}

/// What a canonical block is (RFC 9171 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockType {
    /// 1: the payload.
    Payload,
    /// 6: the node that forwarded the bundle (4.4.1).
    PreviousNode,
    /// 7: the bundle's age (4.4.2).
    BundleAge,
    /// 10: hop limit and count (4.4.3).
    HopCount,
    /// 11: BPSec's block integrity block (RFC 9172 3.7).
    BlockIntegrity,
    /// 12: BPSec's block confidentiality block (RFC 9172 3.8).
    BlockConfidentiality,
    /// 193, private: priority, as the [module](super) describes it.
    QualityOfService,
    /// 194, private: how many copies of the bundle its holder may make, as the [module](super) describes it.
    Copies,
    /// Any other.
    Unknown(u64),
}

impl BlockType {
    /// The type with this number.
    pub const fn from_number(number: u64) -> Self {
        match number {
            1 => BlockType::Payload,
            6 => BlockType::PreviousNode,
            7 => BlockType::BundleAge,
            10 => BlockType::HopCount,
            11 => BlockType::BlockIntegrity,
            12 => BlockType::BlockConfidentiality,
            193 => BlockType::QualityOfService,
            194 => BlockType::Copies,
            number => BlockType::Unknown(number),
        }
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        match self {
            BlockType::Payload => 1,
            BlockType::PreviousNode => 6,
            BlockType::BundleAge => 7,
            BlockType::HopCount => 10,
            BlockType::BlockIntegrity => 11,
            BlockType::BlockConfidentiality => 12,
            BlockType::QualityOfService => 193,
            BlockType::Copies => 194,
            BlockType::Unknown(number) => number,
        }
    }
}

/// An extension block (RFC 9171 4.3.2): every canonical block but the payload. Its data stay as they came;
/// [`Block::content`] says what they mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub block_type: BlockType,
    /// Its number, 2 or more, its own within the bundle.
    pub number: u64,
    /// Block processing control flags.
    pub flags: BlockFlags,
    /// Its own checksum.
    pub crc: CrcType,
    /// Block-type-specific data.
    pub data: Bytes,
}

/// What the data of a block mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The node that forwarded the bundle.
    PreviousNode(Eid),
    /// Milliseconds since the bundle was created, when it was last forwarded.
    BundleAge(u64),
    /// Hop limit and count.
    HopCount(HopCount),
    /// Priority.
    QualityOfService(QualityOfService),
    /// How many copies of the bundle its holder may make: spray and wait.
    Copies(u64),
}

/// How many hops a bundle may take and has taken (RFC 9171 4.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HopCount {
    /// The limit, 1 or more.
    pub limit: u8,
    /// The hops so far.
    pub count: u64,
}

/// ION's quality-of-service block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QualityOfService {
    /// Handling flags: 1 least latency, 2 best effort, 4 a data label is present, 8 reliable.
    pub flags: u64,
    /// Class of service: 0 bulk, 1 normal, 2 expedited.
    pub class: u64,
    /// Among expedited bundles the higher goes first.
    pub ordinal: u64,
    /// The data label.
    pub label: u64,
}

impl From<Priority> for QualityOfService {
    fn from(priority: Priority) -> Self {
        let class = match priority {
            Priority::Bulk => 0,
            Priority::Normal => 1,
            Priority::Expedited => 2,
        };
        QualityOfService { class, ..Default::default() }
    }
}

impl QualityOfService {
    /// The class of service as a priority; a class that nobody defined is normal.
    pub const fn priority(&self) -> Priority {
        match self.class {
            0 => Priority::Bulk,
            2 => Priority::Expedited,
            _ => Priority::Normal,
        }
    }
}

impl Block {
    /// What the data mean. `None` for types without a meaning here, and for a quality-of-service block that is
    /// somebody else's.
    pub fn content(&self) -> Result<Option<Content>, DecodeError> {
        Content::decode(self.block_type, &self.data)
    }
}

impl Content {
    /// Reads block data; all of them have to be used.
    pub fn decode(block_type: BlockType, data: &Bytes) -> Result<Option<Content>, DecodeError> {
        // Numbers are read from a plain slice: counting the users of a `Bytes` costs more than reading them.
        let mut input = &data[..];
        let content = match block_type {
            BlockType::PreviousNode => {
                let mut input = data.clone();
                whole(decode_previous_node(&mut input), &input, PREVIOUS_NODE)?
            }
            BlockType::BundleAge => {
                let age = cbor::unsigned(&mut input, BUNDLE_AGE.0, BUNDLE_AGE.1).map(Content::BundleAge);
                whole(age, input, BUNDLE_AGE)?
            }
            BlockType::HopCount => whole(decode_hop_count(&mut input), input, HOP_COUNT)?,
            BlockType::QualityOfService => {
                let quality = decode_quality_of_service(&mut input);
                return Ok(quality.ok().filter(|_| input.is_empty()));
            }
            BlockType::Copies => {
                let copies = cbor::unsigned(&mut input, "a number of copies", "a private block");
                return Ok(copies.ok().filter(|_| input.is_empty()).map(Content::Copies));
            }
            _ => return Ok(None),
        };
        Ok(Some(content))
    }

    /// The block type that has this content.
    pub const fn block_type(&self) -> BlockType {
        match self {
            Content::PreviousNode(_) => BlockType::PreviousNode,
            Content::BundleAge(_) => BlockType::BundleAge,
            Content::HopCount(_) => BlockType::HopCount,
            Content::QualityOfService(_) => BlockType::QualityOfService,
            Content::Copies(_) => BlockType::Copies,
        }
    }

    /// The flags that a new block with this content gets: what every fragment needs is replicated.
    pub const fn default_flags(&self) -> BlockFlags {
        match self {
            Content::PreviousNode(_) => BlockFlags::NONE,
            Content::BundleAge(_)
            | Content::HopCount(_)
            | Content::QualityOfService(_)
            | Content::Copies(_) => BlockFlags::REPLICATE,
        }
    }

    /// The block data.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(16);
        match self {
            Content::PreviousNode(node) => node.encode(&mut out),
            Content::BundleAge(milliseconds) => cbor::put_unsigned(*milliseconds, &mut out),
            Content::Copies(copies) => cbor::put_unsigned(*copies, &mut out),
            Content::HopCount(hops) => {
                cbor::put_array(2, &mut out);
                cbor::put_unsigned(u64::from(hops.limit), &mut out);
                cbor::put_unsigned(hops.count, &mut out);
            }
            Content::QualityOfService(quality) => {
                cbor::put_array(4, &mut out);
                for number in [quality.flags, quality.class, quality.ordinal, quality.label] {
                    cbor::put_unsigned(number, &mut out);
                }
            }
        }
        out.freeze()
    }
}

/// What is decoded, and the clause that says how.
type Field = (&'static str, &'static str);

const PREVIOUS_NODE: Field = ("a previous node block", "RFC 9171 4.4.1");
const BUNDLE_AGE: Field = ("a bundle age block", "RFC 9171 4.4.2");
const HOP_COUNT: Field = ("a hop count block", "RFC 9171 4.4.3");

/// Block data are of known length: what ends early or late is wrong and not incomplete.
fn whole<T>(decoded: Result<T, DecodeError>, rest: &[u8], field: Field) -> Result<T, DecodeError> {
    match decoded {
        Ok(value) if rest.is_empty() => Ok(value),
        Ok(_) | Err(DecodeError::Incomplete) => Err(DecodeError::invalid(field.0, field.1)),
        Err(error) => Err(error),
    }
}

fn decode_previous_node(input: &mut Bytes) -> Result<Content, DecodeError> {
    let node = Eid::decode(input)?;
    if node.is_singleton() {
        Ok(Content::PreviousNode(node))
    } else {
        Err(DecodeError::invalid("a previous node that is not a node", PREVIOUS_NODE.1))
    }
}

fn decode_hop_count(input: &mut &[u8]) -> Result<Content, DecodeError> {
    let (what, clause) = HOP_COUNT;
    if cbor::array(input, what, clause)? != Some(2) {
        return Err(DecodeError::invalid(what, clause));
    }
    let limit = cbor::unsigned(input, "a hop limit", clause)?;
    let limit = u8::try_from(limit).ok().filter(|&limit| limit > 0);
    let limit = limit.ok_or(DecodeError::invalid("a hop limit", clause))?;
    let count = cbor::unsigned(input, "a hop count", clause)?;
    Ok(Content::HopCount(HopCount { limit, count }))
}

fn decode_quality_of_service(input: &mut &[u8]) -> Result<Content, DecodeError> {
    const FIELD: Field = ("a quality of service block", "RFC 9171 9.1");
    if cbor::array(input, FIELD.0, FIELD.1)? != Some(4) {
        return Err(DecodeError::invalid(FIELD.0, FIELD.1));
    }
    let mut number = || cbor::unsigned(input, FIELD.0, FIELD.1);
    Ok(Content::QualityOfService(QualityOfService {
        flags: number()?,
        class: number()?,
        ordinal: number()?,
        label: number()?,
    }))
}
