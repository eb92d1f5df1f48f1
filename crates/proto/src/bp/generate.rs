//! Generator of random valid bundles and administrative records, for property tests, fuzzing and benchmarks.

use super::admin::{AdminRecord, ReasonCode, StatusItem, StatusReport};
use super::block::{Block, BlockFlags, BlockType, BundleFlags, Content, CrcType, Fragment, HopCount};
use super::block::{PrimaryBlock, QualityOfService};
use super::bundle::{Bundle, Head};
use super::eid::{Eid, IpnNumbers};
use super::time::{CreationTimestamp, DtnTime};
use crate::codec::cbor;
use crate::rng::Rng;
use bytes::{Bytes, BytesMut};

/// Generator of random values that are valid in every combination of their fields.
#[derive(Clone, Debug)]
pub struct Generator {
    /// Source of randomness.
    pub rng: Rng,
    /// Maximum length of a payload, bytes. Default 200.
    pub payload_max: u64,
    /// True if every block must have a CRC.
    pub checked: bool,
    /// True for values that every implementation supports: no scheme and no flag beyond RFC 9171, `ipn`
    /// endpoint IDs in the two-element encoding with small numbers, hop counts of one byte.
    pub common: bool,
}

impl Generator {
    /// Creates a generator of all valid values.
    pub fn new(rng: Rng) -> Self {
        Generator { rng, payload_max: 200, checked: false, common: false }
    }

    /// Random bundle.
    pub fn bundle(&mut self) -> Bundle {
        let timestamp = self.timestamp();
        let (destination, source) = (self.endpoint(), self.endpoint());
        let mut primary = PrimaryBlock::new(destination, source, timestamp, self.number());
        if self.rng.chance(0.1) || !primary.source.is_singleton() {
            primary.source = Eid::Null;
        }
        primary.report_to = self.endpoint();
        primary.crc = if self.rng.chance(0.5) { CrcType::Crc16 } else { CrcType::Crc32c };
        primary.flags = self.bundle_flags(primary.source.is_null());
        let payload = self.octets(self.payload_max);
        if !payload.is_empty() && !primary.source.is_null() && self.rng.chance(0.3) {
            primary.fragment = Some(self.fragment(payload.len() as u64));
            primary.flags.0 &= !if self.common { BundleFlags::MUST_NOT_FRAGMENT.0 } else { 0 };
        }
        let administrative = primary.flags.contains(BundleFlags::ADMINISTRATIVE_RECORD);
        let may_report = !primary.source.is_null() && !administrative;
        let mut head = Head::new(primary, 0);
        head.payload.crc = self.crc();
        head.payload.flags = self.block_flags(may_report);
        self.add_known_blocks(&mut head);
        self.add_unknown_blocks(&mut head);
        for block in &mut head.blocks {
            block.crc = self.crc();
            block.flags = self.block_flags(may_report);
        }
        Bundle::new(head, payload)
    }

    fn fragment(&mut self, length: u64) -> Fragment {
        let offset = self.number() >> 8;
        Fragment { offset, total_length: offset + length + 1 + self.number() % 1000 }
    }

    fn add_known_blocks(&mut self, head: &mut Head) {
        if !head.primary.timestamp.time.is_known() || self.rng.chance(0.3) {
            head.set(&Content::BundleAge(self.number()));
        }
        if self.rng.chance(0.4) {
            head.set(&Content::PreviousNode(self.singleton()));
        }
        if self.rng.chance(0.4) {
            let limit = 1 + self.rng.below(255) as u8;
            let count = if self.common { self.rng.below(u64::from(limit)) } else { self.number() };
            head.set(&Content::HopCount(HopCount { limit, count }));
        }
        if self.rng.chance(0.3) {
            let [flags, class, ordinal, label] = [(); 4].map(|()| self.number());
            head.set(&Content::QualityOfService(QualityOfService { flags, class, ordinal, label }));
        }
    }

    fn add_unknown_blocks(&mut self, head: &mut Head) {
        for index in 0..self.rng.below(4) {
            let block_type = BlockType::Unknown(200 + if self.common { 0 } else { self.number() / 2 });
            let number = if self.common { 10 + index } else { 10 + 300 * index + self.rng.below(300) };
            let data = self.octets(40);
            head.blocks.push(Block { block_type, number, flags: BlockFlags::NONE, crc: CrcType::None, data });
        }
    }

    fn bundle_flags(&mut self, anonymous: bool) -> BundleFlags {
        // Reserved and unassigned bits of RFC 9171 are kept.
        let odd = !self.common && self.rng.chance(0.2);
        let mut flags = BundleFlags(if odd { 0x08 | 1 << 40 } else { 0 });
        for (flag, chance) in [
            (BundleFlags::APPLICATION_ACKNOWLEDGEMENT, 0.1),
            (BundleFlags::STATUS_TIME, 0.3),
            (BundleFlags::MUST_NOT_FRAGMENT, if anonymous { 1.0 } else { 0.2 }),
            (BundleFlags::ADMINISTRATIVE_RECORD, 0.2),
        ] {
            if self.rng.chance(chance) {
                flags |= flag;
            }
        }
        let may_report = !anonymous && !flags.contains(BundleFlags::ADMINISTRATIVE_RECORD);
        if may_report && self.rng.chance(0.5) {
            flags |= BundleFlags(self.rng.next_u64() & BundleFlags::REPORTS.0);
        }
        flags
    }

    fn block_flags(&mut self, may_report: bool) -> BlockFlags {
        let defined = 0x17 & if may_report { 0xff } else { !BlockFlags::REPORT.0 };
        let mask = if self.common { defined } else { defined | 0x60 };
        BlockFlags(if self.rng.chance(0.5) { 0 } else { self.rng.next_u64() & mask })
    }

    fn crc(&mut self) -> CrcType {
        match self.rng.below(3) {
            0 if !self.checked => CrcType::None,
            1 => CrcType::Crc16,
            _ => CrcType::Crc32c,
        }
    }

    fn timestamp(&mut self) -> CreationTimestamp {
        let time = if self.rng.chance(0.2) { 0 } else { self.number() };
        CreationTimestamp { time: DtnTime(time), sequence: self.number() }
    }

    /// Random number of any magnitude, so that every length of a CBOR header occurs.
    pub fn number(&mut self) -> u64 {
        let number = self.rng.next_u64() >> self.rng.below(64);
        if self.common { number >> 33 } else { number }
    }

    fn octets(&mut self, length_max: u64) -> Bytes {
        let mut bytes = vec![0; self.rng.below(length_max + 1) as usize];
        self.rng.fill(&mut bytes);
        bytes.into()
    }

    /// Random endpoint ID of any scheme, including groups and the null endpoint.
    pub fn endpoint(&mut self) -> Eid {
        match self.rng.below(8) {
            0 => Eid::Null,
            1 => format!("dtn://{}/~{}", self.word(), self.word()).parse().expect("a legal name"),
            2 if !self.common => {
                let mut ssp = BytesMut::new();
                cbor::put_byte_string(&self.octets(20), &mut ssp);
                Eid::Unknown { scheme: 3 + self.number() / 2, ssp: ssp.freeze() }
            }
            _ => self.singleton(),
        }
    }

    /// Random endpoint ID of a singleton endpoint.
    pub fn singleton(&mut self) -> Eid {
        if self.rng.chance(0.5) {
            let demux = if self.rng.chance(0.3) { String::new() } else { self.word() };
            return format!("dtn://{}/{demux}", self.word()).parse().expect("a legal name");
        }
        let mut numbers = IpnNumbers {
            allocator: 0,
            node: 1 + self.number() as u32 / 2,
            service: self.number(),
            three_elements: !self.common && self.rng.chance(0.3),
        };
        if !self.common && self.rng.chance(0.3) {
            numbers.allocator = self.number() as u32;
        }
        Eid::Ipn(numbers)
    }

    fn word(&mut self) -> String {
        (0..1 + self.rng.below(12)).map(|_| char::from(b'a' + self.rng.below(26) as u8)).collect()
    }

    /// Random administrative record of any kind.
    pub fn admin_record(&mut self) -> AdminRecord {
        if self.rng.chance(0.2) {
            let mut content = BytesMut::new();
            cbor::put_byte_string(&self.octets(20), &mut content);
            let record_type = 2 + self.number() / 2;
            return AdminRecord::Unknown { record_type, content: content.freeze() };
        }
        let [received, forwarded, delivered, deleted] = [(); 4].map(|()| self.status());
        AdminRecord::StatusReport(StatusReport {
            received,
            forwarded,
            delivered,
            deleted,
            further: (0..self.rng.below(3)).map(|_| self.status()).collect(),
            reason: ReasonCode::from_number(self.rng.below(20)),
            source: self.endpoint(),
            timestamp: self.timestamp(),
            fragment: if self.rng.chance(0.3) { Some((self.number(), self.number())) } else { None },
        })
    }

    fn status(&mut self) -> StatusItem {
        match self.rng.below(3) {
            0 => StatusItem::NotAsserted,
            1 => StatusItem::Asserted,
            _ => StatusItem::AssertedAt(DtnTime(self.number())),
        }
    }
}
