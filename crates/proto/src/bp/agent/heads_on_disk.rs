//! Headers that are kept on disk.
//!
//! The state of a bundle in memory must be small, because there are many bundles. A header is as long as its sender makes it,
//! and most of a long header are blocks that this node does not read. These blocks stay in the record, and are read again
//! when the bundle is sent.
//!
//! ```text
//!   admitted, or found at the start: long ----> parked: the part that this node reads
//!                                                  |  ^
//!                              a transfer begins:  |  | the transfer is open
//!                              read the record     v  |
//!                                               complete, with the transfer
//! ```
//!
//! Parts that cannot stay on disk (names, headers of version 6) count as memory: see [`super::accounts`].

use crate::bp::bpsec::PAYLOAD_BLOCK;
use crate::bp::{self, BlockType, Eid};
use crate::service::{LinkId, RecordId, TransferId};
use crate::time::Instant;
use bytes::Bytes;

use super::Agent;
use super::head::{AnyHead, decode_head, is_security, is_supported};
use super::held::HeldBundle;
use super::record::HEADER_BYTES;
use super::store::ReadPurpose;

/// Maximum length of a header that stays in memory unchanged, bytes.
const SHORT_BYTES: u64 = 512;
/// Maximum length of a block that stays in memory with a long header, bytes.
const READ_BYTES_MAX: usize = 128;

impl AnyHead {
    /// Header in its own memory, without the blocks that this node does not read; `None` for version 6.
    fn parked(&self, own: bool) -> Option<AnyHead> {
        let AnyHead::V7(head) = self else { return None };
        let is_read = |block: &&bp::Block| {
            match block.block_type {
                // The record of a bundle that this node has signed or encrypted has them elsewhere. This block tells that the
                // payload block is signed, so that its CRC type must not change.
                BlockType::BlockIntegrity => own || block.has_target(PAYLOAD_BLOCK),
                // This block tells that the payload is encrypted.
                BlockType::BlockConfidentiality => own || block.has_target(PAYLOAD_BLOCK),
                other => {
                    let is_short = block.data.len() <= READ_BYTES_MAX;
                    is_supported(other) && is_short && !head.is_encrypted(block.number)
                }
            }
        };
        let mut blocks: Vec<bp::Block> = Vec::new();
        for block in head.blocks.iter().filter(is_read) {
            if is_security(block) || blocks.iter().all(|other| other.block_type != block.block_type) {
                blocks.push(bp::Block { data: Bytes::copy_from_slice(&block.data), ..block.clone() });
            }
        }
        let mut primary = head.primary.clone();
        Eid::detach([&mut primary.destination, &mut primary.source, &mut primary.report_to]);
        Some(AnyHead::V7(bp::Head { primary, blocks, payload: head.payload }))
    }

    /// Restores the security blocks of a header that was read from the record of a bundle of this node. Returns false if they are
    /// not those of that bundle.
    pub(super) fn restore_security(&mut self, known: &AnyHead) -> bool {
        self.set_security_data(&known.security_data())
    }

    /// Memory beyond 256 bytes that the header will take once it is held, bytes.
    pub(super) fn kept_bytes(&self, stored: u64) -> u32 {
        match stored > SHORT_BYTES {
            true => {
                self.parked(true).map_or_else(|| self.extra_bytes(stored), |head| head.extra_bytes(stored))
            }
            false => self.extra_bytes(stored),
        }
    }

    /// Memory beyond 256 bytes that the header takes, bytes.
    pub(super) fn extra_bytes(&self, stored: u64) -> u32 {
        const USUAL: u64 = 256;
        let name = |eid: &Eid| match eid {
            Eid::Null | Eid::Ipn(_) => 0,
            _ => eid.text_length() as u64,
        };
        let all = match self {
            AnyHead::V7(head) => {
                let blocks = head.blocks.iter().map(|block| 64 + block.data.len() as u64);
                let primary = &head.primary;
                // The source is also part of keys.
                name(&primary.destination)
                    + 2 * name(&primary.source)
                    + name(&primary.report_to)
                    + blocks.sum::<u64>()
            }
            // The encoded bytes, and the names and blocks decoded from them.
            AnyHead::V6(head) => {
                let blocks = (head.blocks.len() + head.after.len()) as u64;
                stored.saturating_mul(2).saturating_add(64 * blocks).saturating_sub(USUAL)
            }
        };
        u32::try_from(all.saturating_sub(USUAL)).unwrap_or(u32::MAX)
    }
}

impl HeldBundle {
    /// Leaves the unread blocks of a long header on disk.
    pub(super) fn move_head_to_disk(&mut self) {
        if self.head_bytes > SHORT_BYTES
            && let Some(head) = self.head.parked(self.own)
        {
            self.head = head;
            self.head_is_on_disk = true;
        }
        self.extra_bytes = self.head.extra_bytes(self.head_bytes);
    }

    /// Restores the complete header from its stored bytes. `None` if they do not belong to this bundle.
    fn whole_head(&self, stored: &Bytes, policy: &bp::DecodePolicy) -> Option<AnyHead> {
        let (mut head, _) = decode_head(stored, policy).ok()?;
        head.discard_unsupported();
        if head.source() != self.head.source() || head.payload_bytes() < self.payload_bytes() {
            return None;
        }
        if head.id() != self.head.id() {
            // The bundle was cut to a fragment.
            head = head.part(0, self.payload_bytes());
        }
        if self.own && !head.restore_security(&self.head) {
            return None;
        }
        if let Some(copies) = self.head.copies() {
            head.set_copies(copies);
        }
        Some(head)
    }
}

impl Agent {
    /// Reads the header of a bundle for a transfer, if part of it is on disk. Returns true if the transfer
    /// must wait for the read.
    pub(super) fn read_head_from_disk(&mut self, id: LinkId, transfer: TransferId, record: RecordId) -> bool {
        let held = &self.holdings[&record];
        if !held.head_is_on_disk {
            return false;
        }
        let record = held.copy_origin.as_ref().map_or(record, |copy| copy.parent);
        let length = u32::try_from(held.head_bytes).unwrap_or(u32::MAX);
        self.store.read(record, HEADER_BYTES, length, ReadPurpose::Head(id, transfer));
        true
    }

    /// Handles the header read for a transfer.
    pub(super) fn head_was_read(&mut self, now: Instant, id: LinkId, transfer: TransferId, data: &Bytes) {
        let policy = self.startup.stored_policy();
        let Some(flight) = self.links.get_mut(id).and_then(|link| link.transfers.get_mut(&transfer)) else {
            return;
        };
        flight.waits_for_head = false;
        let record = flight.record;
        let Some(held) = self.holdings.get(&record).filter(|_| !flight.is_cancelled()) else {
            return;
        };
        match held.whole_head(data, &policy) {
            Some(head) => flight.whole_head = Some(Box::new(head)),
            None => return self.storage_lost(now, record),
        }
        self.outgoing.wake(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bp::{
        BlockFlags, BlockType, Content, CrcType, CreationTimestamp, DecodePolicy, DtnTime, Emit, HopCount,
        PrimaryBlock, v6,
    };

    fn primary(names: [&str; 2]) -> PrimaryBlock {
        let [source, destination]: [Eid; 2] = names.map(|eid| eid.parse().expect("an endpoint"));
        PrimaryBlock::new(destination, source, CreationTimestamp { time: DtnTime(5), sequence: 6 }, 1000)
    }

    /// A short header of many blocks takes more memory than bytes on the link.
    #[test]
    fn a_short_head_of_many_blocks_counts() {
        let mut head = bp::Head::new(primary(["dtn://alice/app", "dtn://bob/inbox"]), 100);
        head.set(&Content::HopCount(HopCount { limit: 9, count: 2 }));
        head.set(&Content::PreviousNode("dtn://carol/".parse().expect("a node")));
        let usual = AnyHead::V7(head);
        assert!(usual.kept_bytes(usual.to_bytes().len() as u64) < 64);
        let mut head = bp::Head::new(primary(["ipn:1.1", "ipn:2.1"]), 100);
        for number in 2..31 {
            head.blocks.push(bp::Block {
                block_type: BlockType::Unknown(20),
                number,
                flags: BlockFlags::NONE,
                crc: CrcType::None,
                data: Bytes::new(),
            });
        }
        let many = AnyHead::V7(head);
        let stored = many.to_bytes().len() as u64;
        assert!(stored <= 256, "{stored}");
        assert!(many.kept_bytes(stored) >= 1_600);

        let name = |text| Eid::from_uri(text).expect("an endpoint");
        let primary =
            v6::PrimaryBlock::new(name("dtn://bob/inbox"), name("dtn://alice/app"), Eid::Null, false);
        let mut head = v6::Head::new(primary, 100);
        head.set(&v6::Content::Age(0));
        let usual = AnyHead::V6(Box::new(head.clone()));
        assert!(usual.kept_bytes(usual.to_bytes().len() as u64) < 64);
        for _ in 0..29 {
            head.blocks.push(v6::Block {
                block_type: v6::BlockType::Unknown(20),
                flags: v6::BlockFlags::NONE,
                references: None,
                data: Bytes::new(),
            });
        }
        let many = AnyHead::V6(Box::new(head));
        let stored = many.to_bytes().len() as u64;
        assert!(stored <= 256, "{stored}");
        assert!(many.kept_bytes(stored) >= 1_600);
    }

    #[test]
    fn what_is_parked_comes_back_as_it_was() {
        let [source, destination]: [Eid; 2] =
            ["dtn://a/x", "dtn://b/y"].map(|eid| eid.parse().expect("an endpoint"));
        let timestamp = CreationTimestamp { time: DtnTime(5), sequence: 6 };
        let mut head = bp::Head::new(PrimaryBlock::new(destination, source, timestamp, 1000), 100);
        head.set(&Content::HopCount(HopCount { limit: 9, count: 2 }));
        head.blocks.push(bp::Block {
            block_type: BlockType::Unknown(200),
            number: 9,
            flags: BlockFlags::NONE,
            crc: CrcType::None,
            data: vec![7; 10_000].into(),
        });
        let whole = AnyHead::V7(head);
        let bytes = whole.to_bytes();
        let parked = whole.parked(false).expect("it is of version 7");
        assert!(parked.extra_bytes(bytes.len() as u64) < 200);
        assert!(whole.extra_bytes(bytes.len() as u64) > 9_000);
        let AnyHead::V7(lean) = &parked else { unreachable!("it is of version 7") };
        assert_eq!(lean.blocks.len(), 1);
        assert_eq!(lean.hop_count(), Some(HopCount { limit: 9, count: 2 }));
        let (again, _) = decode_head(&bytes, &DecodePolicy::STORED).expect("it is a head");
        assert_eq!(again, whole);
    }

    #[test]
    fn a_signed_payload_block_keeps_its_crc_for_every_peer_though_its_head_is_parked() {
        let mut head = bp::Head::new(primary(["dtn://a/x", "dtn://b/y"]), 100);
        let adapted = |head: &AnyHead| {
            let AnyHead::V7(mut head) = head.clone() else { unreachable!("it is of version 7") };
            head.adapt(&[Emit::NoPayloadCrc]);
            head.payload
        };
        assert_eq!(adapted(&AnyHead::V7(head.clone())).crc, CrcType::None);
        head.blocks.push(bp::Block {
            block_type: BlockType::BlockIntegrity,
            number: 2,
            flags: BlockFlags::NONE,
            crc: CrcType::None,
            data: Bytes::from_static(&[0x81, 0x01, 0x01, 0x00]),
        });
        let whole = AnyHead::V7(head);
        let parked = whole.parked(false).expect("it is of version 7");
        assert_eq!(adapted(&parked), adapted(&whole));
        assert_ne!(adapted(&whole).crc, CrcType::None);
    }
}
