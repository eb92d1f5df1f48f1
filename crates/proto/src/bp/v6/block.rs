//! Flags, canonical blocks and what they contain (RFC 5050 4.2, 4.3, 4.5.2).

use super::primary::EidReference;
use crate::bp::Eid;
use crate::codec::{DecodeError, sdnv};
use crate::service::Priority;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use core::ops::{BitOr, BitOrAssign};

/// Bundle processing control flags (RFC 5050 4.2), without "is a fragment", which is
/// [`PrimaryBlock::fragment`](super::PrimaryBlock::fragment). Bits that nobody knows are kept and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BundleFlags(pub(super) u64);

impl BundleFlags {
    /// None at all: bulk priority, too.
    pub const NONE: BundleFlags = BundleFlags(0);
    /// The payload is an administrative record.
    pub const ADMINISTRATIVE_RECORD: BundleFlags = BundleFlags(0x02);
    /// The bundle must not be fragmented.
    pub const MUST_NOT_FRAGMENT: BundleFlags = BundleFlags(0x04);
    /// The next node is asked to accept custody.
    pub const CUSTODY: BundleFlags = BundleFlags(0x08);
    /// The destination is a singleton.
    pub const SINGLETON: BundleFlags = BundleFlags(0x10);
    /// The application is asked to acknowledge.
    pub const APPLICATION_ACKNOWLEDGEMENT: BundleFlags = BundleFlags(0x20);
    /// Report reception.
    pub const REPORT_RECEPTION: BundleFlags = BundleFlags(0x4000);
    /// Report the acceptance of custody.
    pub const REPORT_CUSTODY: BundleFlags = BundleFlags(0x8000);
    /// Report forwarding.
    pub const REPORT_FORWARDING: BundleFlags = BundleFlags(0x1_0000);
    /// Report delivery.
    pub const REPORT_DELIVERY: BundleFlags = BundleFlags(0x2_0000);
    /// Report deletion.
    pub const REPORT_DELETION: BundleFlags = BundleFlags(0x4_0000);
    /// Every flag that asks for reports.
    pub const REPORTS: BundleFlags = BundleFlags(0x7_c000);
    /// "Is a fragment", which stands in the number on the wire only.
    pub(super) const FRAGMENT_BIT: u64 = 0x01;
    const PRIORITY_SHIFT: u32 = 7;

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

    /// The class of service as a priority; the reserved one is above the others, as higher numbers are.
    pub const fn priority(self) -> Priority {
        match self.0 >> Self::PRIORITY_SHIFT & 3 {
            0 => Priority::Bulk,
            1 => Priority::Normal,
            _ => Priority::Expedited,
        }
    }

    /// These flags with this class of service.
    #[must_use]
    pub const fn with_priority(self, priority: Priority) -> Self {
        let class = match priority {
            Priority::Bulk => 0,
            Priority::Normal => 1,
            Priority::Expedited => 2,
        };
        BundleFlags(self.0 & !(3 << Self::PRIORITY_SHIFT) | class << Self::PRIORITY_SHIFT)
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

/// Block processing control flags (RFC 5050 4.3), without "contains references", which is [`Block::references`], and
/// "last block", which follows from the block's place. Bits that nobody knows are kept and ignored.
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
    /// Some node has forwarded the block without processing it.
    pub const FORWARDED_UNPROCESSED: BlockFlags = BlockFlags(0x20);
    /// "Last block", which stands in the number on the wire only.
    pub(super) const LAST_BIT: u64 = 0x08;
    /// "Contains references", which stands in the number on the wire only.
    pub(super) const REFERENCES_BIT: u64 = 0x40;

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

/// What a canonical block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockType {
    /// 1: the payload.
    Payload,
    /// 2: authentication from hop to hop (RFC 6257).
    Authentication,
    /// 3: the payload's integrity (RFC 6257).
    PayloadIntegrity,
    /// 4: the payload's confidentiality (RFC 6257).
    PayloadConfidentiality,
    /// 5: the node that forwarded the bundle (RFC 6259).
    PreviousHop,
    /// 8: metadata (RFC 6258).
    Metadata,
    /// 9: security of other blocks (RFC 6257).
    ExtensionSecurity,
    /// 10: the bundle's age, or a custody transfer enhancement block.
    Age,
    /// 19: the extended class of service.
    ClassOfService,
    /// Any other.
    Unknown(u8),
}

impl BlockType {
    /// The type with this number.
    pub const fn from_number(number: u8) -> Self {
        match number {
            1 => BlockType::Payload,
            2 => BlockType::Authentication,
            3 => BlockType::PayloadIntegrity,
            4 => BlockType::PayloadConfidentiality,
            5 => BlockType::PreviousHop,
            8 => BlockType::Metadata,
            9 => BlockType::ExtensionSecurity,
            10 => BlockType::Age,
            19 => BlockType::ClassOfService,
            number => BlockType::Unknown(number),
        }
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        match self {
            BlockType::Payload => 1,
            BlockType::Authentication => 2,
            BlockType::PayloadIntegrity => 3,
            BlockType::PayloadConfidentiality => 4,
            BlockType::PreviousHop => 5,
            BlockType::Metadata => 8,
            BlockType::ExtensionSecurity => 9,
            BlockType::Age => 10,
            BlockType::ClassOfService => 19,
            BlockType::Unknown(number) => number,
        }
    }
}

/// An extension block (RFC 5050 4.5.2): every block but the primary and the payload. Its data stay as they came;
/// [`Block::content`] says what they mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// What it is.
    pub block_type: BlockType,
    /// Block processing control flags.
    pub flags: BlockFlags,
    /// The endpoints it names in the primary block's dictionary; none: no such field.
    pub references: Option<Vec<EidReference>>,
    /// Block-type-specific data.
    pub data: Bytes,
}

/// What the data of a block mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// The node that forwarded the bundle, where the data name it.
    PreviousHop(Eid),
    /// Microseconds since the bundle was created, when it was last forwarded.
    Age(u64),
    /// Metadata.
    Metadata(Metadata),
    /// The extended class of service.
    ClassOfService(ClassOfService),
}

/// What a metadata block contains (RFC 6258 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Which kind of metadata it is.
    pub kind: u64,
    /// The metadata themselves.
    pub data: Bytes,
}

/// What an extended class of service block contains (draft-irtf-dtnrg-ecos).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassOfService {
    /// 1 critical, 2 streaming, 4 a flow label is present, 8 reliable.
    pub flags: u8,
    /// Among expedited bundles the higher goes first.
    pub ordinal: u8,
    /// The flow label, where the flags say so.
    pub label: Option<u64>,
}

impl ClassOfService {
    const LABEL: u8 = 4;
}

/// What is decoded, and the document that says how.
type Field = (&'static str, &'static str);

const PREVIOUS_HOP: Field = ("a previous hop block", "RFC 6259 2");
const METADATA: Field = ("a metadata block", "RFC 6258 3");
const CLASS_OF_SERVICE: Field = ("an extended class of service block", "draft-irtf-dtnrg-ecos");

impl Block {
    /// A block with this content.
    pub fn new(content: &Content) -> Self {
        let (block_type, flags) = (content.block_type(), content.default_flags());
        Block { block_type, flags, references: None, data: content.encode() }
    }

    /// What the data mean. `None` for types without a meaning here, for a previous hop that is a reference, and for a
    /// block of type 10 that is no age.
    pub fn content(&self) -> Result<Option<Content>, DecodeError> {
        let mut input = self.data.clone();
        Ok(Some(match self.block_type {
            BlockType::PreviousHop if self.references.is_some() => return Ok(None),
            BlockType::PreviousHop => Content::PreviousHop(previous_hop(&input)?),
            BlockType::Metadata => {
                let kind = of_known_length(sdnv::decode(&mut input), METADATA)?;
                Content::Metadata(Metadata { kind, data: input })
            }
            BlockType::Age => match sdnv::decode(&mut input) {
                Ok(age) if input.is_empty() => Content::Age(age),
                _ => return Ok(None),
            },
            BlockType::ClassOfService => Content::ClassOfService(class_of_service(input)?),
            _ => return Ok(None),
        }))
    }
}

/// What ends early inside block data is wrong: their length is known.
fn of_known_length<T>(decoded: Result<T, DecodeError>, field: Field) -> Result<T, DecodeError> {
    decoded.map_err(|error| match error {
        DecodeError::Incomplete => DecodeError::invalid(field.0, field.1),
        error => error,
    })
}

/// Scheme and scheme-specific part, each with a null behind it; or the URI as one text, with or without one.
fn previous_hop(data: &[u8]) -> Result<Eid, DecodeError> {
    let wrong = DecodeError::invalid(PREVIOUS_HOP.0, PREVIOUS_HOP.1);
    let text = core::str::from_utf8(data).map_err(|_| wrong)?;
    let text = text.strip_suffix('\0').unwrap_or(text);
    match text.split_once('\0') {
        Some((scheme, ssp)) => Eid::from_uri(&format!("{scheme}:{ssp}")),
        None => Eid::from_uri(text),
    }
}

fn class_of_service(mut input: Bytes) -> Result<ClassOfService, DecodeError> {
    let wrong = DecodeError::invalid(CLASS_OF_SERVICE.0, CLASS_OF_SERVICE.1);
    if input.len() < 2 {
        return Err(wrong);
    }
    let (flags, ordinal) = (input.get_u8(), input.get_u8());
    let label = match flags & ClassOfService::LABEL {
        0 => None,
        _ => Some(of_known_length(sdnv::decode(&mut input), CLASS_OF_SERVICE)?),
    };
    if input.is_empty() { Ok(ClassOfService { flags, ordinal, label }) } else { Err(wrong) }
}

impl Content {
    /// The block type that has this content.
    pub const fn block_type(&self) -> BlockType {
        match self {
            Content::PreviousHop(_) => BlockType::PreviousHop,
            Content::Age(_) => BlockType::Age,
            Content::Metadata(_) => BlockType::Metadata,
            Content::ClassOfService(_) => BlockType::ClassOfService,
        }
    }

    /// The flags that a new block with this content gets.
    pub fn default_flags(&self) -> BlockFlags {
        match self {
            // It is true for one hop only (RFC 6259 2).
            Content::PreviousHop(_) => BlockFlags::DISCARD,
            Content::Age(_) | Content::ClassOfService(_) => BlockFlags::REPLICATE,
            Content::Metadata(_) => BlockFlags::NONE,
        }
    }

    /// The block data.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(16);
        match self {
            Content::PreviousHop(node) => {
                out.put_slice(node.uri().replacen(':', "\0", 1).as_bytes());
                out.put_u8(0);
            }
            Content::Age(microseconds) => sdnv::encode(*microseconds, &mut out),
            Content::Metadata(metadata) => {
                sdnv::encode(metadata.kind, &mut out);
                out.put_slice(&metadata.data);
            }
            Content::ClassOfService(class) => {
                out.put_u8(class.flags);
                out.put_u8(class.ordinal);
                if let Some(label) = class.label {
                    sdnv::encode(label, &mut out);
                }
            }
        }
        out.freeze()
    }
}
