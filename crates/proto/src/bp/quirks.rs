//! Known faults of other implementations, and how a node can work with them: faults that it accepts from a
//! peer, and valid encodings that it avoids because a peer cannot read them.
//!
//! Without configuration, everything is strict. Never accepted: block numbers other than 0 that occur twice,
//! payload blocks that are not block number 1 (references to other blocks would be ambiguous), and payloads
//! that are text strings. Always accepted: `ipn:0.n` as the null endpoint (RFC 9758 3.4.1), unknown flags,
//! which are ignored (RFC 9171 4.2.3), and both encodings of an `ipn` endpoint ID. New blocks get the
//! smallest free number, because some nodes require numbers below 255; none is of type 8, which some nodes
//! use for a block of their own.

use super::block::{BlockType, Content, CrcType};
use super::bundle::Head;
use super::eid::Eid;
use super::wire::{DecodePolicy, decode_head};
use crate::codec::DecodeError;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Fault that is accepted from a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Accept {
    /// A primary block that has no CRC and that no integrity block protects (RFC 9171 4.3.1), as dtn7-rs
    /// sends it. It is forwarded unchanged.
    PrimaryWithoutCrc,
    /// A bundle without creation time and bundle age block (RFC 9171 4.4.2): its age counts from its arrival.
    NoTimeNoAge,
    /// A fragment whose extension blocks are numbered 0 (RFC 9171 4.1), as ION's UDP convergence layer sends
    /// it. The blocks are renumbered. Refused together with a security block, which identifies its targets by
    /// number.
    FragmentBlocksNumberedZero,
}

impl Accept {
    /// All faults.
    pub const ALL: [Accept; 3] =
        [Accept::PrimaryWithoutCrc, Accept::NoTimeNoAge, Accept::FragmentBlocksNumberedZero];

    /// Name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Accept::PrimaryWithoutCrc => "primary-without-crc",
            Accept::NoTimeNoAge => "no-time-no-age",
            Accept::FragmentBlocksNumberedZero => "fragment-blocks-numbered-zero",
        }
    }

    /// Returns a policy that also accepts this fault.
    pub const fn relax(self, policy: DecodePolicy) -> DecodePolicy {
        self.set(policy, true)
    }

    const fn set(self, policy: DecodePolicy, accepted: bool) -> DecodePolicy {
        match self {
            Accept::PrimaryWithoutCrc => DecodePolicy { accept_primary_without_crc: accepted, ..policy },
            Accept::NoTimeNoAge => DecodePolicy { accept_no_time_no_age: accepted, ..policy },
            Accept::FragmentBlocksNumberedZero => {
                DecodePolicy { accept_fragment_blocks_numbered_zero: accepted, ..policy }
            }
        }
    }
}

/// Encoding of bundles for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Emit {
    /// Payloads without a CRC, for DTNME. A payload that is the target of a security block keeps its CRC.
    NoPayloadCrc,
    /// `ipn` endpoint IDs of two elements, also in forwarded bundles, for nodes without RFC 9758. The primary
    /// block gets a new CRC; one that is the target of a security block stays unchanged.
    TwoElementIpn,
    /// `ipn` endpoint IDs of three elements (RFC 9758 6.1.2), under the same conditions.
    ThreeElementIpn,
}

impl Emit {
    /// Name in configurations.
    pub const fn name(self) -> &'static str {
        match self {
            Emit::NoPayloadCrc => "no-payload-crc",
            Emit::TwoElementIpn => "two-element-ipn",
            Emit::ThreeElementIpn => "three-element-ipn",
        }
    }
}

/// Configuration of a peer: its node ID, the faults accepted from it, and the encoding of bundles for it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct PeerRules {
    /// Node ID of the peer; a trailing `*` matches anything, and `*` alone matches every peer.
    pub node: String,
    /// Faults accepted from the peer. Default: none.
    pub accept: Vec<Accept>,
    /// Encoding of bundles for the peer. Default: as in RFC 9171.
    pub emit: Vec<Emit>,
}

impl PeerRules {
    /// True if the rules apply to that node.
    pub fn is(&self, node: &str) -> bool {
        match self.node.strip_suffix('*') {
            Some(start) => node.starts_with(start),
            None => self.node == node,
        }
    }
}

/// Returns the faults that must be accepted for the header at the front of `input` to be accepted, whatever
/// the policy accepts already: without each of them it would be refused. Empty if the header is valid, or if
/// it would be refused in any case.
pub fn needed(input: &Bytes, policy: &DecodePolicy) -> Vec<Accept> {
    let all = Accept::ALL.into_iter().fold(*policy, |policy, accept| accept.relax(policy));
    // Only a part of a long header may have arrived.
    let fails = |policy: &DecodePolicy| {
        decode_head(input, policy).is_err_and(|error| error != DecodeError::Incomplete)
    };
    if fails(&all) {
        return Vec::new();
    }
    let is_needed = |accept: &Accept| fails(&accept.set(all, false));
    Accept::ALL.into_iter().filter(is_needed).collect()
}

impl Head {
    /// Adapts the header to a peer. Returns true if it changed.
    pub fn adapt(&mut self, emit: &[Emit]) -> bool {
        let mut changed = false;
        for emit in emit {
            changed |= match emit {
                Emit::NoPayloadCrc => self.strip_payload_crc(),
                Emit::TwoElementIpn => self.set_ipn_form(false),
                Emit::ThreeElementIpn => self.set_ipn_form(true),
            };
        }
        changed
    }

    fn strip_payload_crc(&mut self) -> bool {
        let bound = self.is_target(BlockType::BlockIntegrity, 1) || self.is_encrypted(1);
        !bound && core::mem::replace(&mut self.payload.crc, CrcType::None) != CrcType::None
    }

    fn set_ipn_form(&mut self, three_elements: bool) -> bool {
        let mut changed = false;
        if !self.integrity_covers_primary() {
            let primary = &mut self.primary;
            for eid in [&mut primary.destination, &mut primary.source, &mut primary.report_to] {
                changed |= set_form(eid, three_elements);
            }
        }
        let bound = self.block(BlockType::PreviousNode).is_some_and(|block| {
            self.is_target(BlockType::BlockIntegrity, block.number) || self.is_encrypted(block.number)
        });
        if let Some(mut node) = self.previous_node().filter(|_| !bound)
            && set_form(&mut node, three_elements)
        {
            self.set(&Content::PreviousNode(node));
            changed = true;
        }
        changed
    }
}

fn set_form(eid: &mut Eid, three_elements: bool) -> bool {
    match eid {
        Eid::Ipn(ipn) => core::mem::replace(&mut ipn.three_elements, three_elements) != three_elements,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bp::wire::examine_head;
    use crate::bp::{Block, BlockFlags, Bundle, CreationTimestamp, DtnTime, PrimaryBlock};

    fn head() -> Head {
        let timestamp = CreationTimestamp { time: DtnTime(800_000_000_000), sequence: 1 };
        Head::new(PrimaryBlock::new(Eid::ipn(2, 1), Eid::ipn(1, 1), timestamp, 1000), 3)
    }

    fn bytes(head: &Head) -> Bytes {
        Bundle::new(head.clone(), Bytes::from_static(b"abc")).to_bytes()
    }

    #[test]
    fn primary_without_crc_is_refused_and_the_policy_named() {
        let mut head = head();
        head.primary.crc = CrcType::None;
        let bytes = bytes(&head);
        assert!(decode_head(&bytes, &DecodePolicy::STRICT).is_err());
        assert_eq!(needed(&bytes, &DecodePolicy::STRICT), [Accept::PrimaryWithoutCrc]);
        let relaxed = Accept::PrimaryWithoutCrc.relax(DecodePolicy::STRICT);
        assert_eq!(decode_head(&bytes, &relaxed).expect("accepted").0, head);
        assert!(
            decode_head(&bytes, &Accept::NoTimeNoAge.relax(DecodePolicy::STRICT)).is_err(),
            "nothing else helps"
        );
    }

    #[test]
    fn neither_time_nor_age_is_refused_and_the_policy_named() {
        let mut head = head();
        head.primary.timestamp.time = DtnTime::UNKNOWN;
        let bytes = bytes(&head);
        assert!(decode_head(&bytes, &DecodePolicy::STRICT).is_err());
        assert_eq!(needed(&bytes, &DecodePolicy::STRICT), [Accept::NoTimeNoAge]);
        assert!(decode_head(&bytes, &Accept::NoTimeNoAge.relax(DecodePolicy::STRICT)).is_ok());
    }

    #[test]
    fn several_faults_need_several_policies_and_what_is_right_needs_none() {
        let mut head = head();
        assert_eq!(needed(&bytes(&head), &DecodePolicy::STRICT), []);
        head.primary.crc = CrcType::None;
        head.primary.timestamp.time = DtnTime::UNKNOWN;
        assert_eq!(
            needed(&bytes(&head), &DecodePolicy::STRICT),
            [Accept::PrimaryWithoutCrc, Accept::NoTimeNoAge]
        );
        assert_eq!(needed(&Bytes::from_static(b"garbage"), &DecodePolicy::STRICT), []);
    }

    /// A fragment as ION's UDP convergence layer sends it: every extension block is numbered 0.
    fn numbered_zero() -> Head {
        let mut head = head().fragment(1, 2);
        for content in [Content::BundleAge(7), Content::Copies(3)] {
            head.set(&content);
        }
        head.blocks.iter_mut().for_each(|block| block.number = 0);
        head
    }

    fn fragment(head: &Head) -> Bytes {
        Bundle::new(head.clone(), Bytes::from_static(b"bc")).to_bytes()
    }

    #[test]
    fn blocks_of_a_fragment_that_are_numbered_zero_are_numbered_anew() {
        let accept = Accept::FragmentBlocksNumberedZero;
        let relaxed = accept.relax(DecodePolicy::STRICT);
        let mut head = numbered_zero();
        let data = Bytes::from_static(b"x");
        let (block_type, flags) = (BlockType::Unknown(200), BlockFlags::NONE);
        head.blocks.insert(1, Block { block_type, number: 2, flags, crc: CrcType::None, data });
        let bytes = fragment(&head);
        assert!(decode_head(&bytes, &DecodePolicy::STRICT).is_err());
        assert_eq!(needed(&bytes, &DecodePolicy::STRICT), [accept]);
        for policy in [relaxed, DecodePolicy::STORED] {
            let (read, length) = decode_head(&bytes, &policy).expect("accepted");
            assert_eq!(read.blocks.iter().map(|block| block.number).collect::<Vec<_>>(), [3, 2, 4]);
            assert_eq!((read.age_ms(), read.copies(), length), (Some(7), Some(3), head.to_bytes().len()));
            // The forwarded fragment is valid under the strict policy, with its CRCs.
            let again = Bundle::from_bytes(&fragment(&read), &DecodePolicy::STRICT).expect("in order");
            assert_eq!(again.head, read);
        }
    }

    #[test]
    fn only_fragments_may_have_blocks_numbered_zero_and_none_beside_a_security_block() {
        let relaxed = Accept::FragmentBlocksNumberedZero.relax(DecodePolicy::STRICT);
        let mut whole = numbered_zero();
        whole.primary.fragment = None;
        assert!(decode_head(&fragment(&whole), &relaxed).is_err());
        assert_eq!(needed(&fragment(&whole), &DecodePolicy::STRICT), []);
        for (block_type, number) in [(BlockType::BlockIntegrity, 0), (BlockType::BlockConfidentiality, 5)] {
            let mut head = numbered_zero();
            let data = Bytes::from_static(&[0x81, 0x01, 0x01, 0x00]);
            head.blocks.push(Block { block_type, number, flags: BlockFlags::NONE, crc: CrcType::None, data });
            let breach = examine_head(&fragment(&head), &relaxed).expect_err("refused");
            assert_eq!(breach.clause(), Some("RFC 9172 3.6"));
            let place = format!("block 3 (type {}, number {number})", block_type.number());
            assert_eq!(breach.block.map(|block| block.to_string()), Some(place));
        }
        // Numbers other than 0 must be unique, that of the payload is 1, and type 0 is undefined.
        for (block_type, number) in [(200, 1), (200, 7), (0, 0)] {
            let mut head = numbered_zero();
            for _ in 0..2 {
                let (block_type, flags) = (BlockType::Unknown(block_type), BlockFlags::NONE);
                head.blocks.push(Block { block_type, number, flags, crc: CrcType::None, data: Bytes::new() });
            }
            assert!(decode_head(&fragment(&head), &relaxed).is_err(), "{block_type} {number}");
        }
    }

    #[test]
    fn no_policy_takes_block_numbers_that_occur_twice() {
        let mut head = head();
        for _ in 0..2 {
            let (block_type, flags) = (BlockType::Unknown(200), BlockFlags::NONE);
            head.blocks.push(Block { block_type, number: 5, flags, crc: CrcType::None, data: Bytes::new() });
        }
        assert_eq!(needed(&bytes(&head), &DecodePolicy::STRICT), []);
        let all = Accept::ALL.into_iter().fold(DecodePolicy::STRICT, |policy, accept| accept.relax(policy));
        assert!(decode_head(&bytes(&head), &all).is_err());
    }

    #[test]
    fn no_policy_takes_a_payload_that_is_text() {
        // The payload's byte string (0x43) becomes a text string (0x63); without a CRC that is the only
        // fault.
        let mut head = head();
        head.payload.crc = CrcType::None;
        let mut bytes = bytes(&head).to_vec();
        let at = bytes.len() - 5;
        assert_eq!(bytes[at], 0x43);
        bytes[at] = 0x63;
        assert_eq!(needed(&bytes.into(), &DecodePolicy::STRICT), []);
    }

    #[test]
    fn ipn_zero_is_null_whatever_the_service_and_needs_no_policy() {
        let mut head = head();
        head.primary.report_to = Eid::ipn(0, 7);
        let read = decode_head(&bytes(&head), &DecodePolicy::STRICT).expect("accepted").0;
        assert!(read.primary.report_to.is_null() && read.primary.report_to == Eid::Null);
    }

    #[test]
    fn both_forms_of_ipn_are_read_and_either_is_written() {
        let mut head = head();
        let two = bytes(&head);
        assert!(head.adapt(&[Emit::ThreeElementIpn]) && !head.adapt(&[Emit::ThreeElementIpn]));
        let three = bytes(&head);
        assert_eq!(three.len(), two.len() + 3, "an allocator in each of three identifiers");
        let read = decode_head(&three, &DecodePolicy::STRICT).expect("accepted").0;
        assert_eq!(read.primary.source, Eid::ipn(1, 1));
        let mut back = read;
        assert!(back.adapt(&[Emit::TwoElementIpn]));
        assert_eq!(bytes(&back), two, "with the checksum that belongs to it");
    }

    #[test]
    fn what_a_security_block_names_stays_as_it_is() {
        let mut head = head();
        // Integrity block whose targets are the primary block and the payload.
        let data = Bytes::from_static(&[0x82, 0x00, 0x01, 0x01, 0x00]);
        let (block_type, flags) = (BlockType::BlockIntegrity, BlockFlags::NONE);
        head.blocks.push(Block { block_type, number: 2, flags, crc: CrcType::None, data });
        let before = head.clone();
        assert!(!head.adapt(&[Emit::ThreeElementIpn, Emit::NoPayloadCrc]));
        assert_eq!(head, before);
    }

    #[test]
    fn payload_crc_goes_where_the_peer_cannot_take_it() {
        let mut head = head();
        assert!(head.adapt(&[Emit::NoPayloadCrc]) && !head.adapt(&[Emit::NoPayloadCrc]));
        let read = decode_head(&bytes(&head), &DecodePolicy::STRICT).expect("it is right").0;
        assert_eq!((read.payload.crc, read.primary.crc), (CrcType::None, CrcType::Crc32c));
    }

    #[test]
    fn blocks_made_here_have_small_numbers_and_never_type_eight() {
        let mut head = head();
        head.set(&Content::BundleAge(1));
        head.set(&Content::PreviousNode(Eid::ipn(9, 0)));
        head.set(&Content::Copies(3));
        head.set(&Content::QualityOfService(crate::service::Priority::Bulk.into()));
        assert!(head.blocks.iter().all(|block| block.number < 255 && block.block_type.number() != 8));
    }
}
