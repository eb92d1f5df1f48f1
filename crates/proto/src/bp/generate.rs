//! Random bundles and administrative records that break no rule: for property tests, fuzzing and benchmarks.

use super::admin::{AdminRecord, ReasonCode, Status, StatusReport};
use super::block::{Block, BlockFlags, BlockType, BundleFlags, Content, CrcType, Fragment, HopCount};
use super::block::{PrimaryBlock, QualityOfService};
use super::bundle::{Bundle, Head};
use super::eid::{Eid, IpnNumbers};
use super::time::{CreationTimestamp, DtnTime};
use crate::codec::cbor;
use crate::rng::Rng;
use bytes::{Bytes, BytesMut};

/// A bundle with any legal combination of fields, payload up to `payload_max` bytes. With `checked` every block has
/// a CRC.
pub fn bundle(rng: &mut Rng, payload_max: u64, checked: bool) -> Bundle {
    let timestamp = timestamp(rng);
    let mut primary = PrimaryBlock::new(endpoint(rng), endpoint(rng), timestamp, number(rng));
    if rng.chance(0.1) || !primary.source.is_singleton() {
        primary.source = Eid::Null;
    }
    primary.report_to = endpoint(rng);
    primary.crc = if rng.chance(0.5) { CrcType::Crc16 } else { CrcType::Crc32c };
    primary.flags = bundle_flags(rng, primary.source.is_null());
    let payload = octets(rng, payload_max);
    if !payload.is_empty() && !primary.source.is_null() && rng.chance(0.3) {
        let offset = number(rng) >> 8;
        let total_length = offset + payload.len() as u64 + number(rng) % 1000;
        primary.fragment = Some(Fragment { offset, total_length });
    }
    let may_report = !primary.source.is_null() && !primary.flags.contains(BundleFlags::ADMINISTRATIVE_RECORD);
    let mut head = Head::new(primary, 0);
    head.payload.crc = crc(rng, checked);
    head.payload.flags = block_flags(rng, may_report);
    add_blocks(rng, &mut head, may_report, checked);
    Bundle::new(head, payload)
}

fn add_blocks(rng: &mut Rng, head: &mut Head, may_report: bool, checked: bool) {
    let ageless = head.primary.timestamp.time.is_known();
    let contents = [
        (!ageless || rng.chance(0.3)).then(|| Content::BundleAge(number(rng))),
        rng.chance(0.4).then(|| Content::PreviousNode(singleton(rng))),
        rng.chance(0.4)
            .then(|| Content::HopCount(HopCount { limit: 1 + rng.below(255) as u8, count: number(rng) })),
        rng.chance(0.3).then(|| {
            let [flags, class, ordinal, label] = [(); 4].map(|()| number(rng));
            Content::QualityOfService(QualityOfService { flags, class, ordinal, label })
        }),
    ];
    for content in contents.iter().flatten() {
        head.set(content);
    }
    for index in 0..rng.below(4) {
        let block_type = BlockType::Unknown(200 + number(rng) / 2);
        let data = octets(rng, 40);
        let (number, crc) = (10 + 300 * index + rng.below(300), CrcType::None);
        head.blocks.push(Block { block_type, number, flags: BlockFlags::NONE, crc, data });
    }
    for block in &mut head.blocks {
        block.crc = crc(rng, checked);
        block.flags = block_flags(rng, may_report);
    }
}

fn bundle_flags(rng: &mut Rng, anonymous: bool) -> BundleFlags {
    // A bit that RFC 9171 reserves and one that it has not assigned are kept as they are.
    let mut flags = BundleFlags(if rng.chance(0.2) { 0x08 | 1 << 40 } else { 0 });
    let mut maybe = |flag, chance| {
        if rng.chance(chance) {
            flags |= flag;
        }
    };
    maybe(BundleFlags::APPLICATION_ACKNOWLEDGEMENT, 0.1);
    maybe(BundleFlags::STATUS_TIME, 0.3);
    maybe(BundleFlags::MUST_NOT_FRAGMENT, if anonymous { 1.0 } else { 0.2 });
    maybe(BundleFlags::ADMINISTRATIVE_RECORD, 0.2);
    let may_report = !anonymous && !flags.contains(BundleFlags::ADMINISTRATIVE_RECORD);
    if may_report && rng.chance(0.5) {
        flags |= BundleFlags(rng.next_u64() & BundleFlags::REPORTS.0);
    }
    flags
}

fn block_flags(rng: &mut Rng, may_report: bool) -> BlockFlags {
    let mask = if may_report { 0x77 } else { 0x75 };
    BlockFlags(if rng.chance(0.5) { 0 } else { rng.next_u64() & mask })
}

fn crc(rng: &mut Rng, checked: bool) -> CrcType {
    match rng.below(3) {
        0 if !checked => CrcType::None,
        1 => CrcType::Crc16,
        _ => CrcType::Crc32c,
    }
}

fn timestamp(rng: &mut Rng) -> CreationTimestamp {
    let time = if rng.chance(0.2) { DtnTime::UNKNOWN } else { DtnTime(number(rng)) };
    CreationTimestamp { time, sequence: number(rng) }
}

/// A number of any magnitude, so that every length of a CBOR head occurs.
pub fn number(rng: &mut Rng) -> u64 {
    rng.next_u64() >> rng.below(64)
}

fn octets(rng: &mut Rng, length_max: u64) -> Bytes {
    let mut bytes = vec![0; rng.below(length_max + 1) as usize];
    rng.fill(&mut bytes);
    bytes.into()
}

/// An identifier of any scheme, groups and the null endpoint included.
pub fn endpoint(rng: &mut Rng) -> Eid {
    match rng.below(8) {
        0 => Eid::Null,
        1 => format!("dtn://{}/~{}", word(rng), word(rng)).parse().expect("a legal name"),
        2 => {
            let mut ssp = BytesMut::new();
            cbor::put_byte_string(&octets(rng, 20), &mut ssp);
            Eid::Unknown { scheme: 3 + number(rng) / 2, ssp: ssp.freeze() }
        }
        _ => singleton(rng),
    }
}

/// An identifier of one node.
pub fn singleton(rng: &mut Rng) -> Eid {
    if rng.chance(0.5) {
        let demux = if rng.chance(0.3) { String::new() } else { word(rng) };
        return format!("dtn://{}/{demux}", word(rng)).parse().expect("a legal name");
    }
    let allocator = if rng.chance(0.3) { number(rng) as u32 } else { 0 };
    let node = (1 + number(rng) as u32 / 2).max(1);
    Eid::Ipn(IpnNumbers { allocator, node, service: number(rng), three_elements: rng.chance(0.3) })
}

fn word(rng: &mut Rng) -> String {
    (0..1 + rng.below(12)).map(|_| char::from(b'a' + rng.below(26) as u8)).collect()
}

/// An administrative record of any kind.
pub fn admin_record(rng: &mut Rng) -> AdminRecord {
    if rng.chance(0.2) {
        let mut content = BytesMut::new();
        cbor::put_byte_string(&octets(rng, 20), &mut content);
        return AdminRecord::Unknown { record_type: 2 + number(rng) / 2, content: content.freeze() };
    }
    AdminRecord::StatusReport(StatusReport {
        received: status(rng),
        forwarded: status(rng),
        delivered: status(rng),
        deleted: status(rng),
        further: (0..rng.below(3)).map(|_| status(rng)).collect(),
        reason: ReasonCode::from_number(rng.below(20)),
        source: endpoint(rng),
        timestamp: timestamp(rng),
        fragment: rng.chance(0.3).then(|| (number(rng), number(rng))),
    })
}

fn status(rng: &mut Rng) -> Status {
    match rng.below(3) {
        0 => Status::NotAsserted,
        1 => Status::Asserted,
        _ => Status::AssertedAt(DtnTime(number(rng))),
    }
}
