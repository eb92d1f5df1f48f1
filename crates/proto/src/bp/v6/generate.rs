//! Generator of random valid bundles and administrative records of version 6, for property tests and fuzzing.

use super::admin::{AdminRecord, CustodyReason, CustodySignal, StatusReport, Subject, Time};
use super::block::{Block, BlockFlags, BlockType, BundleFlags, ClassOfService, Content, Metadata};
use super::bundle::{Bundle, Head};
use super::primary::PrimaryBlock;
use crate::bp::block::Fragment;
use crate::bp::{Eid, ReasonCode};
use crate::rng::Rng;
use crate::service::Priority;
use bytes::Bytes;

/// Generator of random values that are valid in every combination of their fields.
#[derive(Clone, Debug)]
pub struct Generator {
    /// Source of randomness.
    pub rng: Rng,
    /// Maximum length of a payload, bytes. Default 200.
    pub payload_max: u64,
}

impl Generator {
    /// Creates a generator of all valid values.
    pub fn new(rng: Rng) -> Self {
        Generator { rng, payload_max: 200 }
    }

    /// Random bundle.
    pub fn bundle(&mut self) -> Bundle {
        let compressed = self.rng.chance(0.5);
        let only_ipn = compressed && self.rng.chance(0.7);
        let mut endpoint = || match only_ipn {
            true => Eid::ipn_number(1 + self.number() / 2, self.number()),
            false => self.endpoint(),
        };
        let (destination, source, report_to) = (endpoint(), endpoint(), endpoint());
        let source = if self.rng.chance(0.1) { Eid::Null } else { source };
        let mut primary = PrimaryBlock::new(destination, source, report_to, compressed);
        primary.created_s = self.number();
        primary.sequence = self.number();
        primary.lifetime_s = self.number();
        primary.flags = self.bundle_flags(primary.source().is_null());
        let payload = self.octets(self.payload_max);
        if !payload.is_empty() && !primary.source().is_null() && self.rng.chance(0.3) {
            let offset = self.number() >> 8;
            let total_length = offset + payload.len() as u64 + self.number() % 1000;
            primary.fragment = Some(Fragment { offset, total_length });
        }
        let mut head = Head::new(primary, 0);
        for _ in 0..self.rng.below(5) {
            let block = self.block(&head);
            head.blocks.push(block);
        }
        for _ in 0..self.rng.below(3) {
            let mut block = self.block(&head);
            block.flags.0 &= !BlockFlags::REPLICATE.0;
            head.after.push(block);
        }
        head.payload.last = head.after.is_empty();
        head.payload.flags = self.block_flags(&head);
        if self.rng.chance(0.3) {
            let custodian = self.endpoint();
            head.set_custodian(custodian);
        }
        Bundle::new(head, payload)
    }

    fn block(&mut self, head: &Head) -> Block {
        let mut block = match self.rng.below(6) {
            0 => Block::new(&Content::Age(self.number())),
            1 => Block::new(&Content::PreviousHop(self.endpoint())),
            2 => {
                let label = if self.rng.chance(0.5) { Some(self.number()) } else { None };
                let flags = self.rng.below(16) as u8 & !4 | if label.is_some() { 4 } else { 0 };
                let ordinal = self.rng.below(256) as u8;
                Block::new(&Content::ClassOfService(ClassOfService { flags, ordinal, label }))
            }
            3 => {
                let metadata = Metadata { kind: self.number(), data: self.octets(20) };
                Block::new(&Content::Metadata(metadata))
            }
            _ => Block {
                block_type: BlockType::from_number(20 + self.rng.below(236) as u8),
                flags: BlockFlags::NONE,
                references: None,
                data: self.octets(40),
            },
        };
        block.flags = self.block_flags(head);
        if self.rng.chance(0.3) {
            let names = head.primary.references;
            let count = self.rng.below(3);
            block.references =
                Some((0..count).map(|_| names[self.rng.below(names.len() as u64) as usize]).collect());
        }
        block
    }

    fn bundle_flags(&mut self, anonymous: bool) -> BundleFlags {
        // Reserved bits of RFC 5050 are kept.
        let odd = if self.rng.chance(0.2) { 0x40 | 1 << 30 } else { 0 };
        let priorities = [Priority::Bulk, Priority::Normal, Priority::Expedited];
        let mut flags = BundleFlags(odd).with_priority(priorities[self.rng.below(3) as usize]);
        for (flag, chance) in [
            (BundleFlags::APPLICATION_ACKNOWLEDGEMENT, 0.1),
            (BundleFlags::SINGLETON, 0.8),
            (BundleFlags::MUST_NOT_FRAGMENT, if anonymous { 1.0 } else { 0.2 }),
            (BundleFlags::ADMINISTRATIVE_RECORD, 0.2),
        ] {
            if self.rng.chance(chance) {
                flags |= flag;
            }
        }
        if !anonymous && !flags.contains(BundleFlags::ADMINISTRATIVE_RECORD) && self.rng.chance(0.5) {
            let wishes = BundleFlags::REPORTS_V6 | BundleFlags::CUSTODY;
            flags |= BundleFlags(self.rng.next_u64() & wishes.0);
        }
        flags
    }

    fn block_flags(&mut self, head: &Head) -> BlockFlags {
        let administrative = head.primary.flags.contains(BundleFlags::ADMINISTRATIVE_RECORD);
        let mask = 0x37 & if administrative { !BlockFlags::REPORT.0 } else { u64::MAX };
        BlockFlags(if self.rng.chance(0.5) { 0 } else { self.rng.next_u64() & mask })
    }

    /// Random number of any magnitude, so that every length of an SDNV occurs.
    pub fn number(&mut self) -> u64 {
        self.rng.next_u64() >> self.rng.below(64)
    }

    fn octets(&mut self, length_max: u64) -> Bytes {
        let mut bytes = vec![0; self.rng.below(length_max + 1) as usize];
        self.rng.fill(&mut bytes);
        bytes.into()
    }

    /// Random endpoint ID of any form that version 6 permits, including unusual ones.
    pub fn endpoint(&mut self) -> Eid {
        let word = self.word();
        let text = match self.rng.below(8) {
            0 => "dtn:none".into(),
            1 => format!("dtn://{word}"),
            2 => format!("dtn://{word}/"),
            3 => format!("dtn://{word}/{}", self.word()),
            4 => format!("{word}:{}", self.word()),
            5 => format!("dtn:{word}"),
            _ => format!("ipn:{}.{}", self.number(), self.number()),
        };
        Eid::from_uri(&text).expect("a legal identifier")
    }

    fn word(&mut self) -> String {
        (0..1 + self.rng.below(12)).map(|_| char::from(b'a' + self.rng.below(26) as u8)).collect()
    }

    fn subject(&mut self) -> Subject {
        Subject {
            source: self.endpoint(),
            created_s: self.number(),
            sequence: self.number(),
            fragment: if self.rng.chance(0.3) { Some((self.number(), self.number())) } else { None },
        }
    }

    fn time(&mut self) -> Time {
        Time { seconds: self.number(), nanoseconds: self.rng.below(1_000_000_000) }
    }

    /// Random administrative record of any kind.
    pub fn admin_record(&mut self) -> AdminRecord {
        match self.rng.below(5) {
            0 => AdminRecord::Unknown {
                record_type: 3 + self.rng.below(13) as u8,
                flags: self.rng.below(16) as u8,
                content: self.octets(20),
            },
            1 | 2 => AdminRecord::CustodySignal(CustodySignal {
                succeeded: self.rng.chance(0.5),
                reason: CustodyReason::from_number(self.rng.below(12) as u8),
                time: self.time(),
                subject: self.subject(),
            }),
            _ => {
                let mut time = || if self.rng.chance(0.5) { Some(self.time()) } else { None };
                let (received, custody, forwarded) = (time(), time(), time());
                let (delivered, deleted) = (time(), time());
                AdminRecord::StatusReport(StatusReport {
                    received,
                    custody,
                    forwarded,
                    delivered,
                    deleted,
                    unused_flags: self.rng.below(8) as u8 * 0x20,
                    reason: ReasonCode::from_number(self.rng.below(20)),
                    subject: self.subject(),
                })
            }
        }
    }
}
