//! Blocks: flags, the primary block, canonical blocks and their contents (RFC 9171 4.2 to 4.4).

use super::eid::Eid;
use super::time::CreationTimestamp;
use crate::codec::{DecodeError, cbor, codes};
use crate::service::Priority;
use bytes::{Bytes, BytesMut};

/// The operations of a set of flags.
macro_rules! flag_operations {
    ($flags:ident) => {
        impl $flags {
            /// All bits, including unknown ones.
            pub const fn bits(self) -> u64 {
                self.0
            }

            /// True if all bits of `flags` are set.
            pub const fn contains(self, flags: $flags) -> bool {
                self.0 & flags.0 == flags.0
            }

            /// True if any bit of `flags` is set.
            pub const fn intersects(self, flags: $flags) -> bool {
                self.0 & flags.0 != 0
            }
        }

        impl core::ops::BitOr for $flags {
            type Output = Self;
            fn bitor(self, other: Self) -> Self {
                $flags(self.0 | other.0)
            }
        }

        impl core::ops::BitOrAssign for $flags {
            fn bitor_assign(&mut self, other: Self) {
                self.0 |= other.0;
            }
        }
    };
}

/// Bundle processing control flags of both versions (RFC 9171 4.2.3, RFC 5050 4.2), without "bundle is a fragment",
/// which is the `fragment` of a primary block. Unknown bits are kept and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BundleFlags(pub(super) u64);

impl BundleFlags {
    /// No flags.
    pub const NONE: BundleFlags = BundleFlags(0);
    /// The payload is an administrative record.
    pub const ADMINISTRATIVE_RECORD: BundleFlags = BundleFlags(0x02);
    /// The bundle must not be fragmented.
    pub const MUST_NOT_FRAGMENT: BundleFlags = BundleFlags(0x04);
    /// Acknowledgement by the application is requested.
    pub const APPLICATION_ACKNOWLEDGEMENT: BundleFlags = BundleFlags(0x20);
    /// Status reports must contain the time of each event.
    pub const STATUS_TIME: BundleFlags = BundleFlags(0x40);
    /// Reception reports are requested.
    pub const REPORT_RECEPTION: BundleFlags = BundleFlags(0x4000);
    /// Forwarding reports are requested.
    pub const REPORT_FORWARDING: BundleFlags = BundleFlags(0x1_0000);
    /// Delivery reports are requested.
    pub const REPORT_DELIVERY: BundleFlags = BundleFlags(0x2_0000);
    /// Deletion reports are requested.
    pub const REPORT_DELETION: BundleFlags = BundleFlags(0x4_0000);
    /// All flags that request status reports.
    pub const REPORTS: BundleFlags = BundleFlags(0x7_4000);
    /// "Bundle is a fragment", which only the encoded flags contain.
    pub(super) const FRAGMENT_BIT: u64 = 0x01;
}

flag_operations!(BundleFlags);

impl BundleFlags {
    /// Checks the flags of a bundle with this source. `custody` and `reports` are the flags of its version that request
    /// them.
    pub(super) fn check(
        self,
        [custody, reports]: [BundleFlags; 2],
        source: &Eid,
        is_fragment: bool,
        clause: &'static str,
    ) -> Result<(), DecodeError> {
        let refuse = |what| Err(DecodeError::invalid(what, clause));
        if self.contains(BundleFlags::ADMINISTRATIVE_RECORD) {
            if self.intersects(custody) {
                return refuse("a request for custody of an administrative record");
            }
            if self.intersects(reports) {
                return refuse("a request for reports on an administrative record");
            }
        }
        if source.is_null() {
            if self.intersects(custody) {
                return refuse("a request for custody of an anonymous bundle");
            }
            if self.intersects(reports) {
                return refuse("a request for reports on an anonymous bundle");
            }
            if !self.contains(BundleFlags::MUST_NOT_FRAGMENT) {
                return refuse("an anonymous bundle that may be fragmented");
            }
            if is_fragment {
                return refuse("an anonymous fragment");
            }
        }
        Ok(())
    }
}

/// Block processing control flags of both versions (RFC 9171 4.2.4, RFC 5050 4.3). Unknown bits are kept and ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockFlags(pub(super) u64);

impl BlockFlags {
    /// No flags.
    pub const NONE: BlockFlags = BlockFlags(0);
    /// The block must be replicated in every fragment.
    pub const REPLICATE: BlockFlags = BlockFlags(0x01);
    /// A status report is requested if the block cannot be processed.
    pub const REPORT: BlockFlags = BlockFlags(0x02);
    /// The bundle must be deleted if the block cannot be processed.
    pub const DELETE_BUNDLE: BlockFlags = BlockFlags(0x04);
    /// The block must be discarded if it cannot be processed.
    pub const DISCARD: BlockFlags = BlockFlags(0x10);
    /// All flags of version 7.
    pub(crate) const DEFINED: BlockFlags = BlockFlags(0x17);
}

flag_operations!(BlockFlags);

/// CRC type of a block (RFC 9171 4.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CrcType {
    /// No CRC.
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

    /// Length of the CRC, bytes.
    pub const fn bytes(self) -> usize {
        match self {
            CrcType::None => 0,
            CrcType::Crc16 => 2,
            CrcType::Crc32c => 4,
        }
    }

    /// Length of the CRC field, bytes: a byte string with a header of one byte; zero without a CRC.
    pub const fn field_bytes(self) -> usize {
        match self {
            CrcType::None => 0,
            CrcType::Crc16 => 3,
            CrcType::Crc32c => 5,
        }
    }
}

/// Primary block (RFC 9171 4.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrimaryBlock {
    /// Bundle processing control flags.
    pub flags: BundleFlags,
    /// CRC type of the block.
    pub crc: CrcType,
    /// Destination endpoint.
    pub destination: Eid,
    /// Source node ID; the null endpoint if the bundle is anonymous.
    pub source: Eid,
    /// Report-to endpoint: destination of status reports.
    pub report_to: Eid,
    /// Creation timestamp.
    pub timestamp: CreationTimestamp,
    /// Lifetime: time from creation to expiry, milliseconds.
    pub lifetime_ms: u64,
    /// Part of the application data unit that the bundle carries; `None` if the bundle is not a fragment.
    pub fragment: Option<Fragment>,
}

/// Part of an application data unit that a fragment carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fragment {
    /// Offset of the payload in the application data unit, bytes.
    pub offset: u64,
    /// Total length of the application data unit, bytes.
    pub total_length: u64,
}

impl Fragment {
    /// Checks that a payload of this length is a part of the application data unit.
    pub(super) fn check(self, payload_bytes: u64, clause: &'static str) -> Result<(), DecodeError> {
        if payload_bytes == 0 {
            return Err(DecodeError::invalid("a fragment without payload", clause));
        }
        let end = self.offset.checked_add(payload_bytes);
        if end.is_none_or(|end| end > self.total_length) {
            let what = "a fragment beyond the end of its application data unit";
            return Err(DecodeError::invalid(what, clause));
        }
        Ok(())
    }

    /// Returns the part that `length` bytes from `offset` on are of a payload of `payload_bytes` bytes, which carries the
    /// part `whole` itself.
    ///
    /// # Panics
    /// Panics if the range is empty or not a part of the payload, or if the flags forbid fragmentation.
    pub(super) fn of(
        whole: Option<Fragment>,
        flags: BundleFlags,
        payload_bytes: u64,
        (offset, length): (u64, u64),
    ) -> Self {
        let end = offset.checked_add(length).expect("a fragment ends somewhere");
        assert!(0 < length && end <= payload_bytes, "a fragment is a part of the payload");
        let may_fragment = !flags.contains(BundleFlags::MUST_NOT_FRAGMENT);
        assert!(may_fragment, "only what may be fragmented is fragmented");
        let whole = whole.unwrap_or(Fragment { offset: 0, total_length: payload_bytes });
        Fragment { offset: whole.offset + offset, ..whole }
    }
}

impl PrimaryBlock {
    /// Creates a primary block with CRC-32C, without flags, not a fragment; the source is the report-to
    /// endpoint.
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

    /// Number of items in the CBOR array (RFC 9171 4.3.1).
    pub(super) fn items(&self) -> u64 {
        8 + if self.fragment.is_some() { 2 } else { 0 } + u64::from(self.crc != CrcType::None)
    }
}

/// Block type code (RFC 9171 9.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockType {
    /// 1: payload.
    Payload,
    /// 6: previous node, the node that forwarded the bundle (4.4.1).
    PreviousNode,
    /// 7: bundle age (4.4.2).
    BundleAge,
    /// 10: hop count and hop limit (4.4.3).
    HopCount,
    /// 11: block integrity block of BPSec (RFC 9172 3.7).
    BlockIntegrity,
    /// 12: block confidentiality block of BPSec (RFC 9172 3.8).
    BlockConfidentiality,
    /// 193, private: priority; the [module](super) describes the block.
    QualityOfService,
    /// 194, private: number of copies of the bundle that its holder may make; the [module](super) describes
    /// the block.
    Copies,
    /// Any other type.
    Unknown(u64),
}

codes!(
    BlockType: u64, from_number, number,
    1 Payload, 6 PreviousNode, 7 BundleAge, 10 HopCount, 11 BlockIntegrity, 12 BlockConfidentiality,
    193 QualityOfService, 194 Copies, Unknown
);

/// Extension block (RFC 9171 4.3.2): any canonical block except the payload block. Its data are kept as
/// received; [`Block::content`] decodes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// Block type.
    pub block_type: BlockType,
    /// Block number: 2 or more, unique in the bundle.
    pub number: u64,
    /// Block processing control flags.
    pub flags: BlockFlags,
    /// CRC type of the block.
    pub crc: CrcType,
    /// Block-type-specific data.
    pub data: Bytes,
}

/// Decoded data of an extension block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Node that forwarded the bundle.
    PreviousNode(Eid),
    /// Age of the bundle when it was last forwarded, milliseconds.
    BundleAge(u64),
    /// Hop count and hop limit.
    HopCount(HopCount),
    /// Priority.
    QualityOfService(QualityOfService),
    /// Number of copies of the bundle that its holder may make (spray and wait).
    Copies(u64),
}

/// Hop count and hop limit (RFC 9171 4.4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HopCount {
    /// Hop limit: 1 to 255.
    pub limit: u8,
    /// Number of hops so far.
    pub count: u64,
}

/// Quality-of-service block of ION.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct QualityOfService {
    /// Handling flags: 1 least latency, 2 best effort, 4 a data label is present, 8 reliable.
    pub flags: u64,
    /// Class of service: 0 bulk, 1 normal, 2 expedited.
    pub class: u64,
    /// Rank among expedited bundles; a higher ordinal is sent first.
    pub ordinal: u64,
    /// Data label.
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
    /// Converts the class of service to a priority; an undefined class is normal.
    pub const fn priority(&self) -> Priority {
        match self.class {
            0 => Priority::Bulk,
            2 => Priority::Expedited,
            _ => Priority::Normal,
        }
    }
}

impl Block {
    /// Decodes the data. `None` if the type is unknown or not interpreted, and for a private block (193, 194)
    /// in another implementation's format.
    ///
    /// # Errors
    /// Fails if the data do not conform to the clause of the block type.
    pub fn content(&self) -> Result<Option<Content>, DecodeError> {
        Content::decode(self.block_type, &self.data)
    }
}

impl Content {
    /// Decodes block data, which must contain nothing else. `None` as for [`Block::content`].
    ///
    /// # Errors
    /// Fails if the data do not conform to the clause of the block type.
    pub fn decode(block_type: BlockType, data: &Bytes) -> Result<Option<Content>, DecodeError> {
        // Numbers are read from a plain slice: the reference counting of `Bytes` costs more than reading
        // them.
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

    /// Block type of this content.
    pub const fn block_type(&self) -> BlockType {
        match self {
            Content::PreviousNode(_) => BlockType::PreviousNode,
            Content::BundleAge(_) => BlockType::BundleAge,
            Content::HopCount(_) => BlockType::HopCount,
            Content::QualityOfService(_) => BlockType::QualityOfService,
            Content::Copies(_) => BlockType::Copies,
        }
    }

    /// Flags for a new block with this content: a block that every fragment needs is replicated.
    pub const fn default_flags(&self) -> BlockFlags {
        match self {
            Content::PreviousNode(_) => BlockFlags::NONE,
            Content::BundleAge(_)
            | Content::HopCount(_)
            | Content::QualityOfService(_)
            | Content::Copies(_) => BlockFlags::REPLICATE,
        }
    }

    /// Encodes the block data.
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

/// Name of the decoded field, and the clause that defines it.
type Field = (&'static str, &'static str);

const PREVIOUS_NODE: Field = ("a previous node block", "RFC 9171 4.4.1");
const BUNDLE_AGE: Field = ("a bundle age block", "RFC 9171 4.4.2");
const HOP_COUNT: Field = ("a hop count block", "RFC 9171 4.4.3");

/// Block data have a known length, so that a premature end is an error and not incomplete input.
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
