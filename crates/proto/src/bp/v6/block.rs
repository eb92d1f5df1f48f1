//! Flags, canonical blocks and their contents (RFC 5050 4.2, 4.3, 4.5.2).

use super::primary::EidReference;
use crate::bp::Eid;
pub use crate::bp::block::{BlockFlags, BundleFlags};
use crate::codec::{DecodeError, codes, sdnv};
use crate::service::Priority;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Flags that only version 6 has (RFC 5050 4.2).
impl BundleFlags {
    /// Custody transfer is requested.
    pub const CUSTODY: BundleFlags = BundleFlags(0x08);
    /// The destination is a singleton endpoint.
    pub const SINGLETON: BundleFlags = BundleFlags(0x10);
    /// Custody acceptance reports are requested.
    pub const REPORT_CUSTODY: BundleFlags = BundleFlags(0x8000);
    /// All flags that request status reports in version 6.
    pub const REPORTS_V6: BundleFlags = BundleFlags(BundleFlags::REPORTS.0 | BundleFlags::REPORT_CUSTODY.0);
    const PRIORITY_SHIFT: u32 = 7;

    /// Class of service as a priority; the reserved class counts as expedited, because higher numbers have
    /// higher priority. Without flags it is bulk.
    pub const fn priority(self) -> Priority {
        match self.0 >> Self::PRIORITY_SHIFT & 3 {
            0 => Priority::Bulk,
            1 => Priority::Normal,
            _ => Priority::Expedited,
        }
    }

    /// Returns these flags with this class of service.
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

/// Flags that only version 6 has (RFC 5050 4.3).
impl BlockFlags {
    /// A node has forwarded the block without processing it.
    pub const FORWARDED_UNPROCESSED: BlockFlags = BlockFlags(0x20);
    /// "Last block", which follows from the position of the block: only the encoded flags contain it.
    pub(super) const LAST_BIT: u64 = 0x08;
    /// "Contains an EID-reference field", which is [`Block::references`]: only the encoded flags contain it.
    pub(super) const REFERENCES_BIT: u64 = 0x40;
}

/// Block type code (RFC 5050 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockType {
    /// 1: payload.
    Payload,
    /// 2: bundle authentication, from hop to hop (RFC 6257).
    Authentication,
    /// 3: payload integrity (RFC 6257).
    PayloadIntegrity,
    /// 4: payload confidentiality (RFC 6257).
    PayloadConfidentiality,
    /// 5: previous hop, the node that forwarded the bundle (RFC 6259).
    PreviousHop,
    /// 8: metadata (RFC 6258).
    Metadata,
    /// 9: extension security, for other blocks (RFC 6257).
    ExtensionSecurity,
    /// 10: bundle age, or custody transfer enhancement.
    Age,
    /// 19: extended class of service.
    ClassOfService,
    /// Any other type.
    Unknown(u8),
}

codes!(
    BlockType: u8, from_number, number,
    1 Payload, 2 Authentication, 3 PayloadIntegrity, 4 PayloadConfidentiality, 5 PreviousHop, 8 Metadata,
    9 ExtensionSecurity, 10 Age, 19 ClassOfService, Unknown
);

/// Extension block (RFC 5050 4.5.2): any block except the primary block and the payload block. Its data are
/// kept as received; [`Block::content`] decodes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Block type.
    pub block_type: BlockType,
    /// Block processing control flags.
    pub flags: BlockFlags,
    /// References to endpoints in the dictionary of the primary block; `None` without an EID-reference field.
    pub references: Option<Vec<EidReference>>,
    /// Block-type-specific data.
    pub data: Bytes,
}

/// Decoded data of an extension block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Node that forwarded the bundle, if the data contain its endpoint ID.
    PreviousHop(Eid),
    /// Age of the bundle when it was last forwarded, microseconds.
    Age(u64),
    /// Metadata.
    Metadata(Metadata),
    /// Extended class of service.
    ClassOfService(ClassOfService),
}

/// Contents of a metadata block (RFC 6258 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Metadata type code.
    pub kind: u64,
    /// Metadata.
    pub data: Bytes,
}

/// Contents of an extended class of service block (draft-irtf-dtnrg-ecos).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClassOfService {
    /// Flags: 1 critical, 2 streaming, 4 a flow label is present, 8 reliable.
    pub flags: u8,
    /// Rank among expedited bundles; a higher ordinal is sent first.
    pub ordinal: u8,
    /// Flow label; `None` without the flag.
    pub label: Option<u64>,
}

impl ClassOfService {
    const LABEL: u8 = 4;
}

/// Name of the decoded field, and the document that defines it.
type Field = (&'static str, &'static str);

const PREVIOUS_HOP: Field = ("a previous hop block", "RFC 6259 2");
const METADATA: Field = ("a metadata block", "RFC 6258 3");
const CLASS_OF_SERVICE: Field = ("an extended class of service block", "draft-irtf-dtnrg-ecos");

impl Block {
    /// True for the blocks that come with ciphertext: payload confidentiality and extension security (RFC 6257 2.4,
    /// 2.5).
    pub fn is_confidentiality(&self) -> bool {
        matches!(self.block_type, BlockType::PayloadConfidentiality | BlockType::ExtensionSecurity)
    }

    /// Creates a block with this content.
    pub fn new(content: &Content) -> Self {
        let (block_type, flags) = (content.block_type(), content.default_flags());
        Block { block_type, flags, references: None, data: content.encode() }
    }

    /// Decodes the data. `None` if the type is unknown or not interpreted, for a previous hop given as a
    /// reference, and for a block of type 10 that is not an age.
    ///
    /// # Errors
    /// Fails if the data do not conform to the clause of the block type.
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

/// Block data have a known length, so that a premature end is an error and not incomplete input.
fn of_known_length<T>(decoded: Result<T, DecodeError>, field: Field) -> Result<T, DecodeError> {
    decoded.map_err(|error| match error {
        DecodeError::Incomplete => DecodeError::invalid(field.0, field.1),
        error => error,
    })
}

/// Decodes scheme and scheme-specific part, each with a null terminator, or the URI as one text, with or
/// without a terminator.
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
    /// Block type of this content.
    pub const fn block_type(&self) -> BlockType {
        match self {
            Content::PreviousHop(_) => BlockType::PreviousHop,
            Content::Age(_) => BlockType::Age,
            Content::Metadata(_) => BlockType::Metadata,
            Content::ClassOfService(_) => BlockType::ClassOfService,
        }
    }

    /// Flags for a new block with this content.
    pub fn default_flags(&self) -> BlockFlags {
        match self {
            // The content is valid for one hop only (RFC 6259 2).
            Content::PreviousHop(_) => BlockFlags::DISCARD,
            Content::Age(_) | Content::ClassOfService(_) => BlockFlags::REPLICATE,
            Content::Metadata(_) => BlockFlags::NONE,
        }
    }

    /// Encodes the block data.
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
