//! Encoding of bundles (RFC 9171 4): the header as a whole, the payload as a stream, the tail.
//!
//! A receiver collects bytes until [`decode_head`] returns something other than `Incomplete`, passes the
//! payload to [`PayloadCrc::update`] as it arrives, and ends with [`PayloadCrc::decode_tail`]. A sender
//! writes [`Head::encode`], the payload, [`PayloadCrc::encode_tail`].

use super::block::{Block, BlockFlags, BlockType, BundleFlags, CrcType, Fragment, PrimaryBlock};
use super::bundle::{Head, PayloadHeader};
use super::eid::Eid;
use super::time::CreationTimestamp;
use crate::codec::cbor::Major;
use crate::codec::crc::{Running, crc16_x25, crc16_x25_over_zeros, crc32c, crc32c_over_zeros};
use crate::codec::{DecodeError, cbor};
use crate::service::{BlockPlace, Breach};
use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

const PRIMARY: &str = "RFC 9171 4.3.1";
const CANONICAL: &str = "RFC 9171 4.3.2";
const STRUCTURE: &str = "RFC 9171 4.1";

/// Violations that a decoder accepts, and its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct DecodePolicy {
    /// Accepts a primary block without a CRC that no block integrity block protects. RFC 9171 4.3.1 forbids
    /// it; several implementations send it. Default false.
    pub accept_primary_without_crc: bool,
    /// Accepts a bundle without creation time and bundle age block. RFC 9171 4.4.2 forbids it. Default false.
    pub accept_no_time_no_age: bool,
    /// Accepts a fragment whose extension blocks are numbered 0, and renumbers them; not together with a
    /// security block, which identifies its targets by number. RFC 9171 4.1 forbids it; ION's UDP convergence
    /// layer sends it. Default false.
    pub accept_fragment_blocks_numbered_zero: bool,
    /// Accepts `ipn:!.n` as source or destination, for a node's own store, never for received bundles (RFC
    /// 9758 5.4). Default false.
    pub accept_local_node: bool,
    /// Maximum number of extension blocks. Default 64. No specification has a limit.
    pub extension_blocks_max: u32,
    /// Maximum number of bytes before the payload. Default 65,536. No specification has a limit.
    pub head_bytes_max: u32,
}

impl DecodePolicy {
    /// Rules of RFC 9171.
    pub const STRICT: DecodePolicy = DecodePolicy {
        accept_primary_without_crc: false,
        accept_no_time_no_age: false,
        accept_fragment_blocks_numbered_zero: false,
        accept_local_node: false,
        extension_blocks_max: 64,
        head_bytes_max: 65_536,
    };
    /// Policy for stored bundles, which this node has checked before.
    pub const STORED: DecodePolicy = DecodePolicy {
        accept_primary_without_crc: true,
        accept_no_time_no_age: true,
        accept_fragment_blocks_numbered_zero: true,
        accept_local_node: true,
        ..DecodePolicy::STRICT
    };
}

impl Default for DecodePolicy {
    fn default() -> Self {
        DecodePolicy::STRICT
    }
}

/// Decodes everything before the payload's first byte from the front of `input`, and checks all that can be
/// checked without the payload. Returns the header and its length in bytes.
///
/// # Errors
/// Fails with `Incomplete` if more bytes are needed, but not if [`DecodePolicy::head_bytes_max`] bytes are
/// available; otherwise with the field and the clause that it violates.
pub fn decode_head(input: &Bytes, policy: &DecodePolicy) -> Result<(Head, usize), DecodeError> {
    examine_head(input, policy).map_err(|breach| breach.error)
}

/// As [`decode_head`]; the error also names the block.
pub fn examine_head(input: &Bytes, policy: &DecodePolicy) -> Result<(Head, usize), Breach> {
    const LIMIT: DecodeError = DecodeError::Limit { what: "a bundle's header" };
    let most = policy.head_bytes_max as usize;
    let mut rest = input.clone();
    let mut block = None;
    let head = match read_head(input, &mut rest, policy, &mut block) {
        Ok(head) => head,
        Err(DecodeError::Incomplete) if input.len() >= most => return Err(Breach { error: LIMIT, block }),
        Err(error) => return Err(Breach { error, block }),
    };
    let length = input.len() - rest.len();
    if length > most {
        return Err(Breach { error: LIMIT, block });
    }
    head.examine(policy)?;
    Ok((head, length))
}

/// `whole` is the original `input`, of which each CRC covers a part; a block begins at its distance from the
/// end. `place` is set to the block that is being decoded.
pub(super) fn read_head(
    whole: &[u8],
    input: &mut Bytes,
    policy: &DecodePolicy,
    place: &mut Option<BlockPlace>,
) -> Result<Head, DecodeError> {
    if cbor::array(input, "a bundle", STRUCTURE)?.is_some() {
        return Err(DecodeError::invalid("a bundle in an array of definite length", STRUCTURE));
    }
    *place = Some(BlockPlace::PRIMARY);
    let primary = decode_primary(whole, input)?;
    let zero = policy.accept_fragment_blocks_numbered_zero && primary.fragment.is_some();
    let mut blocks = Vec::new();
    loop {
        let place = place.insert(BlockPlace::behind(blocks.len() + 1));
        match decode_canonical(whole, input, zero, place)? {
            Canonical::Extension(_) if blocks.len() >= policy.extension_blocks_max as usize => {
                return Err(DecodeError::Limit { what: "the number of a bundle's blocks" });
            }
            Canonical::Extension(block) => {
                if blocks.is_empty() {
                    blocks.reserve(4);
                }
                blocks.push(block);
            }
            Canonical::Payload(payload) => {
                number_zeros(&mut blocks, place)?;
                return Ok(Head { primary, blocks, payload });
            }
        }
    }
}

/// Gives blocks that are numbered 0 the smallest free numbers, in order.
fn number_zeros(blocks: &mut [Block], place: &mut BlockPlace) -> Result<(), DecodeError> {
    if blocks.iter().all(|block| block.number != 0) {
        return Ok(());
    }
    // The targets of a security block would be ambiguous, and their numbers would change (RFC 9172 3.6).
    let secures = |block: &Block| {
        matches!(block.block_type, BlockType::BlockIntegrity | BlockType::BlockConfidentiality)
    };
    if let Some(index) = blocks.iter().position(secures) {
        *place = blocks[index].place(index);
        return Err(DecodeError::invalid("a security block together with blocks numbered 0", "RFC 9172 3.6"));
    }
    let mut taken: BTreeSet<u64> = blocks.iter().map(|block| block.number).collect();
    let mut free = 2..;
    for block in blocks.iter_mut().filter(|block| block.number == 0) {
        block.number = free.find(|number| taken.insert(*number)).expect("there are more numbers than blocks");
    }
    Ok(())
}

impl PrimaryBlock {
    /// Decodes a primary block from the front of the input.
    ///
    /// # Errors
    /// Fails if the input is incomplete or not a valid primary block.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        decode_primary(&input.clone(), input)
    }

    /// Appends the primary block.
    pub fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        let fragment_bit = if self.fragment.is_some() { BundleFlags::FRAGMENT_BIT } else { 0 };
        let heads = [
            (Major::Array, self.items()),
            (Major::Unsigned, 7),
            (Major::Unsigned, self.flags.0 | fragment_bit),
            (Major::Unsigned, self.crc.number()),
        ];
        cbor::put_heads(heads, out);
        self.destination.encode(out);
        self.source.encode(out);
        self.report_to.encode(out);
        let CreationTimestamp { time, sequence } = self.timestamp;
        let heads = [
            (Major::Array, 2),
            (Major::Unsigned, time.0),
            (Major::Unsigned, sequence),
            (Major::Unsigned, self.lifetime_ms),
        ];
        cbor::put_heads(heads, out);
        if let Some(fragment) = self.fragment {
            let numbers = [(Major::Unsigned, fragment.offset), (Major::Unsigned, fragment.total_length)];
            cbor::put_heads(numbers, out);
        }
        put_crc(start, self.crc, out);
    }
}

fn decode_primary(whole: &[u8], input: &mut Bytes) -> Result<PrimaryBlock, DecodeError> {
    let block = &whole[whole.len() - input.len()..];
    let items = array(input, "a primary block")?;
    if cbor::unsigned(input, "the version of a bundle", PRIMARY)? != 7 {
        return Err(DecodeError::invalid("the version of a bundle", PRIMARY));
    }
    let flags = cbor::unsigned(input, "the bundle processing control flags field", "RFC 9171 4.2.3")?;
    let crc = CrcType::decode(input)?;
    let is_fragment = flags & BundleFlags::FRAGMENT_BIT != 0;
    let expected = 8 + if is_fragment { 2 } else { 0 } + u64::from(crc != CrcType::None);
    if items != expected {
        let what = "the number of items of a primary block, by its fragment flag and CRC type";
        return Err(DecodeError::invalid(what, PRIMARY));
    }
    let primary = PrimaryBlock {
        flags: BundleFlags(flags & !BundleFlags::FRAGMENT_BIT),
        crc,
        destination: Eid::decode(input)?,
        source: Eid::decode(input)?,
        report_to: Eid::decode(input)?,
        timestamp: CreationTimestamp::decode(input)?,
        lifetime_ms: cbor::unsigned(input, "a lifetime", PRIMARY)?,
        fragment: if is_fragment { Some(Fragment::decode(input)?) } else { None },
    };
    check_crc(block, input, crc, "primary block")?;
    Ok(primary)
}

impl Fragment {
    fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        Ok(Fragment {
            offset: cbor::unsigned(input, "a fragment offset", PRIMARY)?,
            total_length: cbor::unsigned(input, "a total application data unit length", PRIMARY)?,
        })
    }
}

/// Canonical block: complete, or up to the payload's first byte.
enum Canonical {
    Extension(Block),
    Payload(PayloadHeader),
}

fn decode_canonical(
    whole: &[u8],
    input: &mut Bytes,
    zero: bool,
    place: &mut BlockPlace,
) -> Result<Canonical, DecodeError> {
    let whole = &whole[whole.len() - input.len()..];
    if input.first() == Some(&cbor::BREAK) {
        return Err(DecodeError::invalid("a bundle without a payload block at its end", STRUCTURE));
    }
    let items = array(input, "a canonical block")?;
    let block_type = cbor::unsigned(input, "a block type", CANONICAL)?;
    place.block_type = Some(block_type);
    let number = cbor::unsigned(input, "a block number", CANONICAL)?;
    place.number = Some(number);
    let flags = cbor::unsigned(input, "the block processing control flags field", "RFC 9171 4.2.4")?;
    let (flags, crc) = (BlockFlags(flags), CrcType::decode(input)?);
    if items != canonical_items(crc) {
        return Err(DecodeError::invalid("the number of items of a block, by its CRC type", CANONICAL));
    }
    let block_type = BlockType::from_number(block_type);
    if block_type == BlockType::Payload {
        let length = decode_payload_length(input, number)?;
        return Ok(Canonical::Payload(PayloadHeader { flags, crc, length }));
    }
    // Any valid number serves until all numbers are known.
    check_extension(block_type, if zero && number == 0 { 2 } else { number })?;
    let data = cbor::byte_string(input, "block-type-specific data", CANONICAL)?;
    check_crc(whole, input, crc, "extension block")?;
    Ok(Canonical::Extension(Block { block_type, number, flags, crc, data }))
}

fn decode_payload_length(input: &mut Bytes, number: u64) -> Result<u64, DecodeError> {
    if number != 1 {
        return Err(DecodeError::invalid("the number of a payload block", STRUCTURE));
    }
    match cbor::head(input)? {
        (cbor::Major::ByteString, Some(length)) => Ok(length),
        _ => Err(DecodeError::invalid("a payload that is not a byte string of definite length", CANONICAL)),
    }
}

fn check_extension(block_type: BlockType, number: u64) -> Result<(), DecodeError> {
    match (block_type, number) {
        (BlockType::Unknown(0), _) => Err(DecodeError::invalid("the reserved block type", "RFC 9171 9.1")),
        (_, 0 | 1) => Err(DecodeError::invalid("the block number of another block", STRUCTURE)),
        _ => Ok(()),
    }
}

/// Number of items in the CBOR array of a canonical block (RFC 9171 4.3.2).
fn canonical_items(crc: CrcType) -> u64 {
    5 + u64::from(crc != CrcType::None)
}

fn array(input: &mut impl cbor::Input, what: &'static str) -> Result<u64, DecodeError> {
    cbor::array(input, what, STRUCTURE)?.ok_or(DecodeError::Limit { what: "a block of indefinite length" })
}

/// Decodes and checks the CRC field of the block that begins where `whole` begins.
fn check_crc(whole: &[u8], input: &mut Bytes, crc: CrcType, what: &'static str) -> Result<(), DecodeError> {
    if crc == CrcType::None {
        return Ok(());
    }
    take_crc_head(input, crc)?;
    let covered = &whole[..whole.len() - input.len()];
    let expected = checksum(crc, covered);
    take_crc(input, crc, expected, what)
}

/// Decodes the header of the CRC field, once the complete field is available.
fn take_crc_head(input: &mut impl cbor::Input, crc: CrcType) -> Result<(), DecodeError> {
    match input.first() {
        None => Err(DecodeError::Incomplete),
        Some(&head) if head != 0x40 | crc.bytes() as u8 => {
            Err(DecodeError::invalid("a CRC whose length does not match its type", "RFC 9171 4.2.2"))
        }
        Some(_) if input.len() < crc.field_bytes() => Err(DecodeError::Incomplete),
        Some(_) => {
            input.advance(1);
            Ok(())
        }
    }
}

fn take_crc(
    input: &mut impl cbor::Input,
    crc: CrcType,
    expected: u32,
    what: &'static str,
) -> Result<(), DecodeError> {
    let found = match crc {
        CrcType::None => return Ok(()),
        CrcType::Crc16 => u32::from(input.get_u16()),
        CrcType::Crc32c => input.get_u32(),
    };
    if found == expected { Ok(()) } else { Err(DecodeError::Checksum { what }) }
}

/// CRC of a block whose bytes before the CRC itself are `covered` (RFC 9171 4.3.1: the CRC counts as zeros).
fn checksum(crc: CrcType, covered: &[u8]) -> u32 {
    match crc {
        CrcType::None => 0,
        CrcType::Crc16 => u32::from(crc16_x25_over_zeros(crc16_x25(covered), crc.bytes())),
        CrcType::Crc32c => crc32c_over_zeros(crc32c(covered), crc.bytes()),
    }
}

fn running(crc: CrcType) -> Option<Running> {
    match crc {
        CrcType::None => None,
        CrcType::Crc16 => Some(Running::crc16_x25()),
        CrcType::Crc32c => Some(Running::crc32c()),
    }
}

/// Appends the CRC of the block that began at `start`.
pub(super) fn put_crc(start: usize, crc: CrcType, out: &mut BytesMut) {
    if crc != CrcType::None {
        out.put_u8(0x40 | crc.bytes() as u8);
        put_crc_value(crc, checksum(crc, &out[start..]), out);
    }
}

fn put_crc_value(crc: CrcType, value: u32, out: &mut BytesMut) {
    out.extend_from_slice(&value.to_be_bytes()[4 - crc.bytes()..]);
}

impl Block {
    /// Position of the block, if it is the extension block with this index.
    fn place(&self, index: usize) -> BlockPlace {
        let (block_type, number) = (Some(self.block_type.number()), Some(self.number));
        BlockPlace { block_type, number, ..BlockPlace::behind(index + 1) }
    }

    /// Appends the block.
    pub fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        let heads = [
            (Major::Array, canonical_items(self.crc)),
            (Major::Unsigned, self.block_type.number()),
            (Major::Unsigned, self.number),
            (Major::Unsigned, self.flags.0),
            (Major::Unsigned, self.crc.number()),
            (Major::ByteString, self.data.len() as u64),
        ];
        cbor::put_heads(heads, out);
        out.extend_from_slice(&self.data);
        put_crc(start, self.crc, out);
    }
}

impl PayloadHeader {
    /// Appends the payload block up to the payload's first byte.
    pub fn encode(&self, out: &mut BytesMut) {
        cbor::put_heads(self.heads(), out);
    }

    fn heads(&self) -> [(Major, u64); 6] {
        [
            (Major::Array, canonical_items(self.crc)),
            (Major::Unsigned, BlockType::Payload.number()),
            (Major::Unsigned, 1),
            (Major::Unsigned, self.flags.0),
            (Major::Unsigned, self.crc.number()),
            (Major::ByteString, self.length),
        ]
    }
}

/// CRC of a payload block whose payload arrives in pieces, and the tail that ends the bundle.
#[derive(Clone, Debug)]
pub struct PayloadCrc {
    crc: CrcType,
    value: PayloadCrcValue,
}

#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the usual one; boxing it would cost an allocation per bundle"
)]
enum PayloadCrcValue {
    /// The block has no CRC.
    None,
    Running(Running),
    Known(u32),
}

impl PayloadCrc {
    /// Begins with the header of the block, which the CRC covers, too.
    pub fn new(header: &PayloadHeader) -> Self {
        let value = match running(header.crc) {
            None => PayloadCrcValue::None,
            Some(mut running) => {
                let (bytes, length) = cbor::heads_as_bytes(header.heads());
                running.update(&bytes[..length]);
                PayloadCrcValue::Running(running)
            }
        };
        PayloadCrc { crc: header.crc, value }
    }

    /// CRC of a block whose [`value`](Self::value) is known; the payload need not pass again.
    pub fn known(header: &PayloadHeader, value: u32) -> Self {
        PayloadCrc { crc: header.crc, value: PayloadCrcValue::Known(value) }
    }

    /// Adds the next bytes of the payload.
    pub fn update(&mut self, payload: &[u8]) {
        if let PayloadCrcValue::Running(running) = &mut self.value {
            running.update(payload);
        }
    }

    /// Length of the tail, bytes.
    pub const fn tail_bytes(&self) -> usize {
        self.crc.field_bytes() + 1
    }

    /// CRC of the bytes so far, with its own field as zeros; zero without a CRC.
    pub fn value(&self) -> u32 {
        let mut running = match &self.value {
            PayloadCrcValue::None => return 0,
            PayloadCrcValue::Known(value) => return *value,
            PayloadCrcValue::Running(running) => running.clone(),
        };
        let field = [0x40 | self.crc.bytes() as u8, 0, 0, 0, 0];
        running.update(&field[..self.crc.field_bytes()]);
        running.value()
    }

    /// Appends the tail: the CRC, and the end of the bundle.
    pub fn encode_tail(&self, out: &mut BytesMut) {
        if self.crc != CrcType::None {
            out.put_u8(0x40 | self.crc.bytes() as u8);
            put_crc_value(self.crc, self.value(), out);
        }
        cbor::put_break(out);
    }

    /// Decodes and checks the tail after the payload.
    ///
    /// # Errors
    /// Fails if the tail is incomplete, its CRC does not match, or further data precede the end of the
    /// bundle.
    pub fn decode_tail(&self, input: &mut Bytes) -> Result<(), DecodeError> {
        take_tail(input, self.crc, || self.value())
    }
}

/// Decodes the tail, and checks it against a CRC that is computed once the complete CRC field is available.
pub(super) fn take_tail(
    input: &mut impl cbor::Input,
    crc: CrcType,
    expected: impl FnOnce() -> u32,
) -> Result<(), DecodeError> {
    if crc != CrcType::None {
        take_crc_head(input, crc)?;
        take_crc(input, crc, expected(), "payload block")?;
    }
    if cbor::take_break(input)? {
        Ok(())
    } else {
        Err(DecodeError::invalid("data after the payload block", STRUCTURE))
    }
}

// ---------------------------------------------------------------------------------------------------------------
// Rules between the fields of a bundle.

impl Head {
    /// Checks all rules between the fields, as [`decode_head`] does; for headers built by other means.
    ///
    /// # Errors
    /// Fails with the first violated rule.
    pub fn check(&self, policy: &DecodePolicy) -> Result<(), DecodeError> {
        self.examine(policy).map_err(|breach| breach.error)
    }

    /// As [`check`](Self::check); the error also names the block.
    pub fn examine(&self, policy: &DecodePolicy) -> Result<(), Breach> {
        let in_primary = |error| Breach::new(error, BlockPlace::PRIMARY);
        self.check_numbers()?;
        self.check_flags().map_err(in_primary)?;
        self.check_block_flags()?;
        self.check_endpoints(policy).map_err(in_primary)?;
        if let Some(fragment) = self.primary.fragment {
            fragment.check(self.payload.length, "RFC 9171 5.8").map_err(in_primary)?;
        }
        self.check_counts()?;
        self.check_age(policy).map_err(in_primary)?;
        self.check_contents()?;
        let covered = policy.accept_primary_without_crc
            || self.primary.crc != CrcType::None
            || self.integrity_covers_primary();
        let uncovered = DecodeError::invalid("a primary block without a CRC", PRIMARY);
        if covered { Ok(()) } else { Err(in_primary(uncovered)) }
    }

    /// Returns true if this header would be decoded as it is from the `length` bytes that it is encoded in. Its endpoint IDs are
    /// those of a bundle: an endpoint that only version 6 can express is not.
    pub(super) fn decodes(&self, length: usize, policy: &DecodePolicy) -> bool {
        length <= policy.head_bytes_max as usize
            && self.blocks.len() <= policy.extension_blocks_max as usize
            && self.blocks.iter().all(|block| block.block_type != BlockType::Payload)
            && self.primary.flags.0 & BundleFlags::FRAGMENT_BIT == 0
            && self.examine(policy).is_ok()
    }

    /// Position of the extension block with this index.
    pub(super) fn place(&self, index: usize) -> BlockPlace {
        self.blocks[index].place(index)
    }

    /// Position of the payload block.
    pub(super) fn payload_place(&self) -> BlockPlace {
        let (block_type, number) = (Some(BlockType::Payload.number()), Some(1));
        BlockPlace { block_type, number, ..BlockPlace::behind(self.blocks.len() + 1) }
    }

    /// An encrypted block integrity block may have the primary block as a target, because its targets cannot
    /// be read.
    pub(super) fn integrity_covers_primary(&self) -> bool {
        let mut blocks = self.blocks.iter();
        self.is_target(BlockType::BlockIntegrity, 0)
            || blocks
                .any(|block| block.block_type == BlockType::BlockIntegrity && self.is_encrypted(block.number))
    }

    fn check_numbers(&self) -> Result<(), Breach> {
        for (index, block) in self.blocks.iter().enumerate() {
            let twice = self.blocks[..index].iter().any(|other| other.number == block.number);
            check_extension(block.block_type, block.number)
                .and(match twice {
                    true => Err(DecodeError::invalid("a block number that occurs twice", STRUCTURE)),
                    false => Ok(()),
                })
                .map_err(|error| Breach::new(error, self.place(index)))?;
        }
        Ok(())
    }

    fn check_flags(&self) -> Result<(), DecodeError> {
        let PrimaryBlock { flags, source, fragment, .. } = &self.primary;
        flags.check([BundleFlags::NONE, BundleFlags::REPORTS], source, fragment.is_some(), "RFC 9171 4.2.3")
    }

    fn check_block_flags(&self) -> Result<(), Breach> {
        let PrimaryBlock { flags, source, .. } = &self.primary;
        if !flags.contains(BundleFlags::ADMINISTRATIVE_RECORD) && !source.is_null() {
            return Ok(());
        }
        let what = "a block's request for reports on an administrative record or an anonymous bundle";
        let error = DecodeError::invalid(what, "RFC 9171 4.2.4");
        let asks = |flags: BlockFlags| flags.contains(BlockFlags::REPORT);
        match self.blocks.iter().position(|block| asks(block.flags)) {
            Some(index) => Err(Breach::new(error, self.place(index))),
            None if asks(self.payload.flags) => Err(Breach::new(error, self.payload_place())),
            None => Ok(()),
        }
    }

    fn check_endpoints(&self, policy: &DecodePolicy) -> Result<(), DecodeError> {
        let PrimaryBlock { source, destination, .. } = &self.primary;
        if !source.is_null() && !source.is_singleton() {
            return Err(DecodeError::invalid("a source that is not a node", PRIMARY));
        }
        if !policy.accept_local_node && (source.is_local_node() || destination.is_local_node()) {
            return Err(DecodeError::invalid("a LocalNode endpoint of another node", "RFC 9758 5.4"));
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), Breach> {
        use BlockType::{BundleAge, HopCount, PreviousNode};
        for (block_type, what, clause) in [
            (PreviousNode, "a second previous node block", "RFC 9171 4.4.1"),
            (BundleAge, "a second bundle age block", "RFC 9171 4.4.2"),
            (HopCount, "a second hop count block", "RFC 9171 4.4.3"),
        ] {
            let mut all = self.blocks.iter().enumerate().filter(|(_, block)| block.block_type == block_type);
            if let Some((second, _)) = all.nth(1) {
                return Err(Breach::new(DecodeError::invalid(what, clause), self.place(second)));
            }
        }
        Ok(())
    }

    fn check_contents(&self) -> Result<(), Breach> {
        use BlockType::{BundleAge, HopCount, PreviousNode};
        for (index, block) in self.blocks.iter().enumerate() {
            // The content of an encrypted block cannot be checked (RFC 9172 3.8).
            if matches!(block.block_type, PreviousNode | BundleAge | HopCount)
                && let Err(error) = block.content()
                && !self.is_encrypted(block.number)
            {
                return Err(Breach::new(error, self.place(index)));
            }
        }
        Ok(())
    }

    fn check_age(&self, policy: &DecodePolicy) -> Result<(), DecodeError> {
        let no_time = !policy.accept_no_time_no_age && !self.primary.timestamp.time.is_known();
        if no_time && self.block(BlockType::BundleAge).is_none() {
            return Err(DecodeError::invalid(
                "a bundle with neither creation time nor age",
                "RFC 9171 4.4.2",
            ));
        }
        Ok(())
    }
}
