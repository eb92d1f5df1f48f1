//! Header of a bundle of either version, as the agent uses it.
//!
//! Both versions have the fields that the agent uses; a field that only one of them has (hop limit,
//! custodian) is absent in the other. So the agent handles one kind of bundle, and each is forwarded in its
//! own version. Times are in milliseconds: version 6 counts seconds, and its lifetimes end with the last
//! millisecond of their last second.

use crate::bp::{
    self, AdminRecord, BlockFlags, BlockType, BundleFlags, BundleId, Content, CreationTimestamp,
    DecodePolicy, Eid, Fragment, HopCount, PayloadCrc, PayloadHeader, bpsec, v6,
};
use crate::codec::{self, DecodeError};
use crate::service::{BlockPlace, Breach, BundleVersion, Priority, ReportedStatus};
use bytes::{Bytes, BytesMut};
use core::num::NonZeroU32;

/// Length of a header that is decoded only once, bytes.
const SHORT_HEAD_BYTES: usize = 256;

/// Header of a bundle: everything except the payload.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "most headers are of version 7, and are boxed together with the rest of a held bundle"
)]
pub(super) enum AnyHead {
    V7(bp::Head),
    /// Boxed, because it is nearly twice as large.
    V6(Box<v6::Head>),
}

/// Contents of an administrative record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AnyAdminRecord {
    V7(AdminRecord),
    V6(v6::AdminRecord),
}

/// Processing flags of an unsupported block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct UnsupportedBlock {
    pub(super) place: BlockPlace,
    pub(super) report: bool,
    pub(super) delete: bool,
}

/// Decodes a header of either version; the first byte distinguishes them.
pub(super) fn decode_head(input: &Bytes, policy: &DecodePolicy) -> Result<(AnyHead, usize), Breach> {
    match input.first() {
        Some(&v6::wire::VERSION) => {
            v6::examine_head(input, policy).map(|(head, length)| (AnyHead::V6(Box::new(head)), length))
        }
        _ => bp::examine_head(input, policy).map(|(head, length)| (AnyHead::V7(head), length)),
    }
}

/// As [`decode_head`], but the header is in its own memory, its bytes, which are returned: a header is kept long, and would keep
/// a payload after it in memory.
pub(super) fn decode_own_head(input: &Bytes, policy: &DecodePolicy) -> Result<(AnyHead, Bytes), Breach> {
    // Most headers are short, and are decoded from a copy of the beginning at once.
    let start = Bytes::copy_from_slice(&input[..input.len().min(SHORT_HEAD_BYTES)]);
    if let Ok((head, length)) = decode_head(&start, policy) {
        return Ok((head, start.slice(..length)));
    }
    let (_, length) = decode_head(input, policy)?;
    let own = Bytes::copy_from_slice(&input[..length]);
    let (head, _) = decode_head(&own, policy).expect("it was just read");
    Ok((head, own))
}

/// Decodes an administrative record of this version.
pub(super) fn decode_record(version: BundleVersion, payload: &Bytes) -> Result<AnyAdminRecord, DecodeError> {
    match version {
        BundleVersion::V7 => AdminRecord::from_bytes(payload).map(AnyAdminRecord::V7),
        BundleVersion::V6 => v6::AdminRecord::from_bytes(payload).map(AnyAdminRecord::V6),
    }
}

impl AnyHead {
    pub(super) fn version(&self) -> BundleVersion {
        match self {
            AnyHead::V7(_) => BundleVersion::V7,
            AnyHead::V6(_) => BundleVersion::V6,
        }
    }

    pub(super) fn destination(&self) -> &Eid {
        match self {
            AnyHead::V7(head) => &head.primary.destination,
            AnyHead::V6(head) => head.primary.destination(),
        }
    }

    pub(super) fn source(&self) -> &Eid {
        match self {
            AnyHead::V7(head) => &head.primary.source,
            AnyHead::V6(head) => head.primary.source(),
        }
    }

    pub(super) fn report_to(&self) -> &Eid {
        match self {
            AnyHead::V7(head) => &head.primary.report_to,
            AnyHead::V6(head) => head.primary.report_to(),
        }
    }

    /// Creation timestamp, which identifies the bundle together with the source.
    pub(super) fn timestamp(&self) -> CreationTimestamp {
        match self {
            AnyHead::V7(head) => head.primary.timestamp,
            AnyHead::V6(head) => head.primary.timestamp(),
        }
    }

    /// Creation time, DTN milliseconds; `None` if only the age is known. Version 6 cannot encode an unknown
    /// time: a bundle with creation time 0 and an age is from a node without a clock.
    pub(super) fn created_ms(&self) -> Option<u64> {
        let time = self.timestamp().time;
        match self {
            AnyHead::V7(_) => time.is_known().then_some(time.0),
            AnyHead::V6(head) => (time.is_known() || head.age_us().is_none()).then_some(time.0),
        }
    }

    /// Lifetime, milliseconds.
    pub(super) fn lifetime_ms(&self) -> u64 {
        match self {
            AnyHead::V7(head) => head.primary.lifetime_ms,
            AnyHead::V6(head) => head.primary.lifetime_s.saturating_mul(1000).saturating_add(999),
        }
    }

    pub(super) fn fragment(&self) -> Option<Fragment> {
        match self {
            AnyHead::V7(head) => head.primary.fragment,
            AnyHead::V6(head) => head.primary.fragment,
        }
    }

    pub(super) fn payload_bytes(&self) -> u64 {
        match self {
            AnyHead::V7(head) => head.payload.length,
            AnyHead::V6(head) => head.payload.length,
        }
    }

    /// Length of the application data unit of which the payload is all or a part, bytes.
    pub(super) fn adu_bytes(&self) -> u64 {
        self.fragment().map_or(self.payload_bytes(), |fragment| fragment.total_length)
    }

    /// Bundle ID, unique in its version, in its own memory.
    pub(super) fn id(&self) -> BundleId {
        BundleId {
            source: self.source().detached(),
            timestamp: self.timestamp(),
            fragment: self.fragment().map(|fragment| (fragment.offset, self.payload_bytes())),
        }
    }

    fn flags(&self) -> BundleFlags {
        match self {
            AnyHead::V7(head) => head.primary.flags,
            AnyHead::V6(head) => head.primary.flags,
        }
    }

    pub(super) fn is_administrative(&self) -> bool {
        self.flags().contains(BundleFlags::ADMINISTRATIVE_RECORD)
    }

    /// Bundles without a source have no identity, so their fragments could not be reassembled.
    pub(super) fn may_fragment(&self) -> bool {
        !self.flags().contains(BundleFlags::MUST_NOT_FRAGMENT) && !self.source().is_null()
    }

    /// True if the bundle requests this status report.
    pub(super) fn asks_for(&self, status: ReportedStatus) -> bool {
        self.flags().contains(match status {
            ReportedStatus::Received => BundleFlags::REPORT_RECEPTION,
            ReportedStatus::Forwarded => BundleFlags::REPORT_FORWARDING,
            ReportedStatus::Delivered => BundleFlags::REPORT_DELIVERY,
            ReportedStatus::Deleted => BundleFlags::REPORT_DELETION,
            ReportedStatus::CustodyAccepted if self.version() == BundleVersion::V7 => return false,
            ReportedStatus::CustodyAccepted => BundleFlags::REPORT_CUSTODY,
        })
    }

    pub(super) fn priority(&self) -> Priority {
        match self {
            AnyHead::V7(head) => head.priority(),
            AnyHead::V6(head) => head.primary.flags.priority(),
        }
    }

    /// Node that forwarded the bundle.
    pub(super) fn previous_node(&self) -> Option<Eid> {
        match self {
            AnyHead::V7(head) => head.previous_node(),
            AnyHead::V6(head) => head.previous_hop(),
        }
    }

    /// Age of the bundle as the last forwarder wrote it, milliseconds.
    pub(super) fn age_ms(&self) -> Option<u64> {
        match self {
            AnyHead::V7(head) => head.age_ms(),
            AnyHead::V6(head) => head.age_us().map(|age| age / 1000),
        }
    }

    /// Number of copies that may be made; version 6 has no block for it.
    pub(super) fn copies(&self) -> Option<u64> {
        match self {
            AnyHead::V7(head) => head.copies(),
            AnyHead::V6(_) => None,
        }
    }

    /// Sets the number of copies that may be made; does nothing in version 6.
    pub(super) fn set_copies(&mut self, copies: u64) {
        if let AnyHead::V7(head) = self {
            head.set(&Content::Copies(copies));
        }
    }

    fn hop_count(&self) -> Option<HopCount> {
        match self {
            AnyHead::V7(head) => head.hop_count(),
            AnyHead::V6(_) => None,
        }
    }

    /// True if the hop count exceeds the hop limit (RFC 9171 4.4.3).
    pub(super) fn hop_limit_exceeded(&self) -> bool {
        self.hop_count().is_some_and(|hops| hops.count > u64::from(hops.limit))
    }

    /// True if one more hop would exceed the hop limit (RFC 9171 4.4.3).
    pub(super) fn hop_limit_reached(&self) -> bool {
        self.hop_count().is_some_and(|hops| hops.count >= u64::from(hops.limit))
    }

    /// Blocks that this agent does not process, with their processing flags (RFC 9171 5.6 step 4, RFC 5050
    /// 5.6 step 3).
    pub(super) fn unsupported(&self) -> Vec<UnsupportedBlock> {
        let unsupported = |place, flags: BlockFlags| UnsupportedBlock {
            place,
            report: flags.contains(BlockFlags::REPORT),
            delete: flags.contains(BlockFlags::DELETE_BUNDLE),
        };
        match self {
            AnyHead::V7(head) => {
                let blocks = head.blocks.iter().enumerate();
                let blocks = blocks.filter(|(_, block)| !is_supported(block.block_type));
                blocks.map(|(index, block)| unsupported(head.place(index), block.flags)).collect()
            }
            AnyHead::V6(head) => {
                let blocks = head.blocks.iter().chain(&head.after).enumerate();
                let blocks = blocks.filter(|(_, block)| !is_supported_v6(block));
                blocks.map(|(index, block)| unsupported(head.place(index), block.flags)).collect()
            }
        }
    }

    /// Removes unsupported blocks whose flags require it; in version 6 no confidentiality blocks, without which their targets
    /// cannot be decrypted. Version 6 marks the remaining ones as forwarded without being processed.
    pub(super) fn discard_unsupported(&mut self) {
        match self {
            AnyHead::V7(head) => head
                .blocks
                .retain(|block| is_supported(block.block_type) || !block.flags.contains(BlockFlags::DISCARD)),
            AnyHead::V6(head) => {
                discard_unsupported_v6(&mut head.blocks);
                // The header still announces blocks after the payload that have not been read.
                let is_read = !head.after.is_empty();
                discard_unsupported_v6(&mut head.after);
                head.payload.last |= is_read && head.after.is_empty();
            }
        }
    }

    /// True if a block of the bundle is encrypted (RFC 9172 3.8; in version 6 RFC 6257 2.4 and 2.5).
    pub(super) fn is_encrypted(&self) -> bool {
        match self {
            AnyHead::V7(head) => {
                head.blocks.iter().any(|block| block.block_type == BlockType::BlockConfidentiality)
            }
            AnyHead::V6(head) => head.blocks.iter().chain(&head.after).any(v6::Block::is_confidentiality),
        }
    }

    /// True if the payload is encrypted. In version 6 any encrypted block counts, because none can be decrypted here.
    pub(super) fn has_encrypted_payload(&self) -> bool {
        match self {
            AnyHead::V7(head) => head.is_encrypted(bpsec::PAYLOAD_BLOCK),
            AnyHead::V6(_) => self.is_encrypted(),
        }
    }

    /// Updates the blocks that change at each hop (RFC 9171 5.4 step 4; RFC 6259 2).
    pub(super) fn address(&mut self, previous: Option<Eid>, age_ms: u64) {
        match self {
            AnyHead::V7(head) => {
                head.remove(BlockType::PreviousNode);
                if let Some(node) = previous {
                    head.set(&Content::PreviousNode(node));
                }
                if let Some(HopCount { limit, count }) = head.hop_count() {
                    head.set(&Content::HopCount(HopCount { limit, count: count.saturating_add(1) }));
                }
                if head.age_ms().is_some() || !head.primary.timestamp.time.is_known() {
                    head.set(&Content::BundleAge(age_ms));
                }
            }
            AnyHead::V6(head) => {
                head.remove(v6::BlockType::PreviousHop);
                if let Some(node) = previous {
                    head.set(&v6::Content::PreviousHop(node));
                }
                if head.age_us().is_some() {
                    head.set(&v6::Content::Age(age_ms.saturating_mul(1000)));
                }
            }
        }
    }

    /// Header of a fragment with `length` bytes of the payload from `offset` on (RFC 9171 5.8, RFC 5050 5.8).
    pub(super) fn part(&self, offset: u64, length: u64) -> AnyHead {
        match self {
            AnyHead::V7(head) => AnyHead::V7(head.fragment(offset, length)),
            AnyHead::V6(head) => AnyHead::V6(Box::new(head.fragment(offset, length))),
        }
    }

    /// Header for a range of the payload: its own for all of it, otherwise that of a fragment.
    pub(super) fn range(&self, from: u64, to: u64) -> AnyHead {
        if from == 0 && to == self.payload_bytes() { self.clone() } else { self.part(from, to - from) }
    }

    /// Header of the complete bundle of which this is a fragment, for reports.
    pub(super) fn without_fragment(mut self) -> AnyHead {
        match &mut self {
            AnyHead::V7(head) => head.primary.fragment = None,
            AnyHead::V6(head) => head.primary.fragment = None,
        }
        self
    }

    /// Data of the security blocks of a bundle that this node has signed or encrypted, one after the other.
    pub(super) fn security_data(&self) -> Bytes {
        let AnyHead::V7(head) = self else { return Bytes::new() };
        let data = head.blocks.iter().filter(|block| is_security(block)).map(|block| &block.data[..]);
        data.collect::<Vec<_>>().concat().into()
    }

    /// Replaces the data of those blocks. Returns false if their length is another one.
    pub(super) fn set_security_data(&mut self, data: &Bytes) -> bool {
        let AnyHead::V7(head) = self else { return data.is_empty() };
        let blocks = || head.blocks.iter().filter(|block| is_security(block));
        if blocks().map(|block| block.data.len()).sum::<usize>() != data.len() {
            return false;
        }
        let mut data = data.clone();
        for block in head.blocks.iter_mut().filter(|block| is_security(block)) {
            block.data = data.split_to(block.data.len());
        }
        true
    }

    pub(super) fn to_bytes(&self) -> Bytes {
        match self {
            AnyHead::V7(head) => head.to_bytes(),
            AnyHead::V6(head) => head.to_bytes(),
        }
    }

    /// Length of the tail after the payload as far as it is known, bytes.
    pub(super) fn tail_bytes(&self) -> u64 {
        match self {
            AnyHead::V7(head) => head.tail_bytes() as u64,
            AnyHead::V6(head) => head.tail_bytes() as u64,
        }
    }

    /// False while blocks after the payload have not been read.
    pub(super) fn tail_is_known(&self) -> bool {
        match self {
            AnyHead::V7(_) => true,
            AnyHead::V6(head) => head.payload.last || !head.after.is_empty(),
        }
    }

    /// Decodes and checks the tail after the payload.
    pub(super) fn read_tail(
        &mut self,
        closing: &BundleEnd,
        input: &mut Bytes,
        policy: &DecodePolicy,
    ) -> Result<(), Breach> {
        match (self, closing) {
            (AnyHead::V7(head), BundleEnd::Checksum(crc)) => {
                crc.decode_tail(input).map_err(|error| Breach::new(error, head.payload_place()))
            }
            (AnyHead::V6(head), BundleEnd::Blocks(_)) => {
                head.after = v6::examine_tail(input, head, policy)?;
                Ok(())
            }
            _ => unreachable!("a closing is made from its head"),
        }
    }

    /// Header of the payload block; `None` in version 6.
    pub(super) fn payload_header(&self) -> Option<&PayloadHeader> {
        match self {
            AnyHead::V7(head) => Some(&head.payload),
            AnyHead::V6(_) => None,
        }
    }

    /// Position of the payload block.
    pub(super) fn payload_place(&self) -> BlockPlace {
        match self {
            AnyHead::V7(head) => head.payload_place(),
            AnyHead::V6(head) => head.payload_place(),
        }
    }

    /// Breach by a bundle whose length differs from that of its transfer.
    pub(super) fn other_length(&self) -> Breach {
        Breach::of_all(DecodeError::invalid(
            "a bundle whose length differs from that of its transfer",
            self.structure(),
        ))
    }

    /// Clause that defines the structure of a bundle.
    pub(super) fn structure(&self) -> &'static str {
        match self {
            AnyHead::V7(_) => "RFC 9171 4.1",
            AnyHead::V6(_) => "RFC 5050 4",
        }
    }

    /// Clause that requires deletion of a bundle because of an unsupported block.
    pub(super) fn reception(&self) -> &'static str {
        match self {
            AnyHead::V7(_) => "RFC 9171 5.6",
            AnyHead::V6(_) => "RFC 5050 5.6",
        }
    }

    /// Custodian; `None` if there is none, and for version 7.
    pub(super) fn custodian(&self) -> Option<&Eid> {
        match self {
            AnyHead::V7(_) => None,
            AnyHead::V6(head) => Some(head.primary.custodian()).filter(|custodian| !custodian.is_null()),
        }
    }

    /// Replaces the custodian (RFC 5050 5.10.1).
    pub(super) fn set_custodian(&mut self, custodian: Eid) {
        if let AnyHead::V6(head) = self {
            head.set_custodian(custodian);
        }
    }

    /// True if custody of the bundle can be accepted: it is requested, and the destination is a singleton
    /// endpoint (RFC 5050 5.10).
    pub(super) fn wants_custody(&self) -> bool {
        let wanted = BundleFlags::CUSTODY | BundleFlags::SINGLETON;
        matches!(self, AnyHead::V6(head) if head.primary.flags.contains(wanted))
    }
}

/// True for block types that this agent processes.
pub(super) fn is_supported(block_type: BlockType) -> bool {
    !matches!(block_type, BlockType::Unknown(_))
}

/// True for the blocks of bundle security.
pub(super) fn is_security(block: &bp::Block) -> bool {
    matches!(block.block_type, BlockType::BlockIntegrity | BlockType::BlockConfidentiality)
}

/// True for blocks of version 6 that this agent processes or forwards as their flags require.
fn is_supported_v6(block: &v6::Block) -> bool {
    match block.block_type {
        v6::BlockType::PreviousHop => true,
        v6::BlockType::Age | v6::BlockType::ClassOfService | v6::BlockType::Metadata => {
            matches!(block.content(), Ok(Some(_)))
        }
        _ => false,
    }
}

fn discard_unsupported_v6(blocks: &mut Vec<v6::Block>) {
    blocks.retain(|block| {
        is_supported_v6(block) || block.is_confidentiality() || !block.flags.contains(BlockFlags::DISCARD)
    });
    for block in blocks.iter_mut().filter(|block| !is_supported_v6(block)) {
        block.flags |= BlockFlags::FORWARDED_UNPROCESSED;
    }
}

/// State needed while a payload passes, to write or check the tail: the CRC of version 7, or the blocks of
/// version 6.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the usual one; boxing it would cost an allocation per bundle"
)]
pub(super) enum BundleEnd {
    Checksum(PayloadCrc),
    Blocks(Bytes),
}

impl BundleEnd {
    pub(super) fn of(head: &AnyHead) -> Self {
        match head {
            AnyHead::V7(head) => BundleEnd::Checksum(PayloadCrc::new(&head.payload)),
            AnyHead::V6(head) => BundleEnd::Blocks(codec::encoded(0, |out| head.encode_tail(out))),
        }
    }

    /// End of a bundle of version 7 whose payload block has this header and this CRC.
    pub(super) fn known(header: &PayloadHeader, crc: NonZeroU32) -> Self {
        BundleEnd::Checksum(PayloadCrc::known(header, crc.get()))
    }

    /// CRC of the payload block, once the payload has passed; `None` without one, if it is zero, and in version 6.
    pub(super) fn crc(&self) -> Option<NonZeroU32> {
        match self {
            BundleEnd::Checksum(crc) => NonZeroU32::new(crc.value()),
            BundleEnd::Blocks(_) => None,
        }
    }

    /// Adds the next bytes of the payload.
    pub(super) fn update(&mut self, payload: &[u8]) {
        if let BundleEnd::Checksum(crc) = self {
            crc.update(payload);
        }
    }

    /// Appends the tail.
    pub(super) fn encode_tail(&self, out: &mut BytesMut) {
        match self {
            BundleEnd::Checksum(crc) => crc.encode_tail(out),
            BundleEnd::Blocks(blocks) => out.extend_from_slice(blocks),
        }
    }
}
