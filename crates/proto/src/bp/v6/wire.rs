//! Encoding of bundles of version 6 (RFC 5050 4): the header as a whole, the payload as a stream, the blocks
//! after it.
//!
//! A receiver collects bytes until [`decode_head`] returns something other than `Incomplete`, takes the bytes
//! of the payload, and, unless the payload is the last block, ends with [`decode_tail`].

use super::block::{Block, BlockFlags, BlockType, BundleFlags};
use super::bundle::{Head, PayloadHeader};
use super::primary::{EidReference, PrimaryBlock};
use crate::bp::DecodePolicy;
use crate::bp::block::Fragment;
use crate::codec::{DecodeError, sdnv, take, take_byte};
use crate::service::{BlockPlace, Breach};
use bytes::{BufMut, Bytes, BytesMut};

/// Version number: the first byte of a bundle.
pub const VERSION: u8 = 6;
/// Maximum number of endpoint references in a block. No specification has a limit.
const REFERENCES_MAX: u64 = 64;

const STRUCTURE: &str = "RFC 5050 4";
const FLAGS: &str = "RFC 5050 4.2";
const BLOCK_FLAGS: &str = "RFC 5050 4.3";
const PRIMARY: &str = "RFC 5050 4.5.1";
const CANONICAL: &str = "RFC 5050 4.5.2";
const PAYLOAD: &str = "RFC 5050 4.5.3";
const FRAGMENT: &str = "RFC 5050 5.8";

/// Error for a bundle without a payload block: it is valid (RFC 5050 4), but contains nothing to store.
pub const NO_PAYLOAD: DecodeError = DecodeError::Limit { what: "a bundle without a payload block" };

/// Decodes everything before the payload's first byte from the front of `input`, and checks all that can be
/// checked without the rest. Returns the header and its length in bytes. Of the policy, only the limits
/// apply, and whether `ipn:4294967295.n` (the local node in version 7) may be an endpoint.
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
    let mut block = BlockPlace::PRIMARY;
    let head = match read_head(&mut rest, policy, &mut block) {
        Ok(head) => head,
        Err(DecodeError::Incomplete) if input.len() >= most => return Err(Breach::new(LIMIT, block)),
        Err(error) => return Err(Breach::new(error, block)),
    };
    let length = input.len() - rest.len();
    if length > most {
        return Err(Breach::new(LIMIT, block));
    }
    head.examine(policy)?;
    Ok((head, length))
}

/// Sets `place` to the block that is being decoded.
fn read_head(input: &mut Bytes, policy: &DecodePolicy, place: &mut BlockPlace) -> Result<Head, DecodeError> {
    let primary = PrimaryBlock::decode(input, policy)?;
    let mut blocks = Vec::new();
    loop {
        *place = BlockPlace::behind(blocks.len() + 1);
        match decode_canonical(input, &primary, policy, place)? {
            Canonical::Payload(payload) => {
                return Ok(Head { primary, blocks, payload, after: Vec::new() });
            }
            Canonical::Extension(_, true) => return Err(NO_PAYLOAD),
            Canonical::Extension(block, false) => blocks.push(block),
        }
        if blocks.len() > policy.extension_blocks_max as usize {
            return Err(DecodeError::Limit { what: "the number of a bundle's blocks" });
        }
    }
}

/// Decodes the blocks that follow the payload of the bundle with this header; there may be none.
///
/// # Errors
/// Fails with `Incomplete` if more bytes are needed, otherwise with the field and the clause that it
/// violates.
pub fn decode_tail(input: &mut Bytes, head: &Head, policy: &DecodePolicy) -> Result<Vec<Block>, DecodeError> {
    examine_tail(input, head, policy).map_err(|breach| breach.error)
}

/// As [`decode_tail`]; the error also names the block.
pub fn examine_tail(input: &mut Bytes, head: &Head, policy: &DecodePolicy) -> Result<Vec<Block>, Breach> {
    let mut place = head.payload_place();
    read_tail(input, head, policy, &mut place).map_err(|error| Breach::new(error, place))
}

fn read_tail(
    input: &mut Bytes,
    head: &Head,
    policy: &DecodePolicy,
    place: &mut BlockPlace,
) -> Result<Vec<Block>, DecodeError> {
    const LIMIT: DecodeError = DecodeError::Limit { what: "the part of a bundle after its payload" };
    let (start, most) = (input.len(), policy.head_bytes_max as usize);
    let mut after = Vec::new();
    let mut last = head.payload.last;
    while !last {
        *place = BlockPlace::behind(head.blocks.len() + 2 + after.len());
        let block = match decode_canonical(input, &head.primary, policy, place) {
            Err(DecodeError::Incomplete) if start >= most => return Err(LIMIT),
            other => other?,
        };
        let Canonical::Extension(block, is_last) = block else {
            return Err(DecodeError::invalid("a second payload block", STRUCTURE));
        };
        if block.flags.contains(BlockFlags::REPLICATE) {
            let what = "a block after the payload with the replication flag";
            return Err(DecodeError::invalid(what, BLOCK_FLAGS));
        }
        head.check_report_flag(block.flags)?;
        after.push(block);
        last = is_last;
        if head.blocks.len() + after.len() > policy.extension_blocks_max as usize {
            return Err(DecodeError::Limit { what: "the number of a bundle's blocks" });
        }
        if start - input.len() > most {
            return Err(LIMIT);
        }
    }
    Ok(after)
}

/// A field of known length must be complete, so that a premature end is an error and not incomplete input.
fn inside<T>(decoded: Result<T, DecodeError>, what: &'static str) -> Result<T, DecodeError> {
    decoded.map_err(|error| match error {
        DecodeError::Incomplete => DecodeError::invalid(what, PRIMARY),
        error => error,
    })
}

impl PrimaryBlock {
    fn decode(input: &mut Bytes, policy: &DecodePolicy) -> Result<Self, DecodeError> {
        if take_byte(input)? != VERSION {
            return Err(DecodeError::invalid("the version of a bundle", PRIMARY));
        }
        let flags = sdnv::decode(input)?;
        let length = sdnv::decode(input)?;
        if length > u64::from(policy.head_bytes_max) {
            return Err(DecodeError::Limit { what: "a bundle's header" });
        }
        let mut body = take(input, length as usize)?;
        let mut number =
            || inside(sdnv::decode(&mut body), "a primary block that does not match its length field");
        let mut references = [EidReference { scheme: 0, ssp: 0 }; 4];
        for reference in &mut references {
            *reference = EidReference { scheme: number()?, ssp: number()? };
        }
        let times = [number()?, number()?, number()?];
        let dictionary_length = number()?;
        if dictionary_length > body.len() as u64 {
            return Err(DecodeError::invalid("the length of a dictionary", PRIMARY));
        }
        let dictionary = body.split_to(dictionary_length as usize);
        let mut number =
            || inside(sdnv::decode(&mut body), "a primary block that does not match its length field");
        let fragment = match flags & BundleFlags::FRAGMENT_BIT {
            0 => None,
            _ => Some(Fragment { offset: number()?, total_length: number()? }),
        };
        if !body.is_empty() {
            return Err(DecodeError::invalid(
                "a primary block that does not match its length field",
                PRIMARY,
            ));
        }
        let endpoints = PrimaryBlock::read(references, dictionary)?;
        let flags = BundleFlags(flags & !BundleFlags::FRAGMENT_BIT);
        Ok(PrimaryBlock::assemble(flags, endpoints, times, fragment))
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        let mut body = BytesMut::with_capacity(64 + self.dictionary.len());
        for reference in self.references {
            sdnv::encode(reference.scheme, &mut body);
            sdnv::encode(reference.ssp, &mut body);
        }
        for number in [self.created_s, self.sequence, self.lifetime_s, self.dictionary.len() as u64] {
            sdnv::encode(number, &mut body);
        }
        body.put_slice(&self.dictionary);
        if let Some(fragment) = self.fragment {
            sdnv::encode(fragment.offset, &mut body);
            sdnv::encode(fragment.total_length, &mut body);
        }
        out.put_u8(VERSION);
        let fragment_bit = if self.fragment.is_some() { BundleFlags::FRAGMENT_BIT } else { 0 };
        sdnv::encode(self.flags.0 | fragment_bit, out);
        sdnv::encode(body.len() as u64, out);
        out.put_slice(&body);
    }
}

/// Canonical block: complete, with a flag for the last one; or up to the payload's first byte.
enum Canonical {
    Extension(Block, bool),
    Payload(PayloadHeader),
}

fn decode_canonical(
    input: &mut Bytes,
    primary: &PrimaryBlock,
    policy: &DecodePolicy,
    place: &mut BlockPlace,
) -> Result<Canonical, DecodeError> {
    let block_type = BlockType::from_number(take_byte(input)?);
    place.block_type = Some(block_type.number().into());
    let flags = sdnv::decode(input)?;
    let last = flags & BlockFlags::LAST_BIT != 0;
    let has_references = flags & BlockFlags::REFERENCES_BIT != 0;
    let flags = BlockFlags(flags & !(BlockFlags::LAST_BIT | BlockFlags::REFERENCES_BIT));
    if block_type == BlockType::Payload {
        if has_references {
            return Err(DecodeError::invalid("a payload block that names endpoints", PAYLOAD));
        }
        let length = sdnv::decode(input)?;
        return Ok(Canonical::Payload(PayloadHeader { flags, length, last }));
    }
    if block_type == BlockType::Unknown(0) {
        return Err(DecodeError::invalid("the type of a block", CANONICAL));
    }
    let references = if has_references { Some(decode_references(input, primary)?) } else { None };
    let length = sdnv::decode(input)?;
    if length > u64::from(policy.head_bytes_max) {
        return Err(DecodeError::Limit { what: "an extension block" });
    }
    let data = take(input, length as usize)?;
    Ok(Canonical::Extension(Block { block_type, flags, references, data }, last))
}

fn decode_references(input: &mut Bytes, primary: &PrimaryBlock) -> Result<Vec<EidReference>, DecodeError> {
    let count = sdnv::decode(input)?;
    if count > REFERENCES_MAX {
        return Err(DecodeError::Limit { what: "the number of endpoints that a block names" });
    }
    let mut references = Vec::with_capacity(count as usize);
    for _ in 0..count {
        let reference = EidReference { scheme: sdnv::decode(input)?, ssp: sdnv::decode(input)? };
        primary.resolve(reference)?;
        references.push(reference);
    }
    Ok(references)
}

impl Block {
    /// Encoded flags.
    pub(super) fn wire_flags(&self, last: bool) -> u64 {
        let references = if self.references.is_some() { BlockFlags::REFERENCES_BIT } else { 0 };
        self.flags.0 | references | if last { BlockFlags::LAST_BIT } else { 0 }
    }

    pub(super) fn encode(&self, last: bool, out: &mut BytesMut) {
        out.put_u8(self.block_type.number());
        sdnv::encode(self.wire_flags(last), out);
        if let Some(references) = &self.references {
            sdnv::encode(references.len() as u64, out);
            for reference in references {
                sdnv::encode(reference.scheme, out);
                sdnv::encode(reference.ssp, out);
            }
        }
        sdnv::encode(self.data.len() as u64, out);
        out.put_slice(&self.data);
    }
}

impl PayloadHeader {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_u8(BlockType::Payload.number());
        sdnv::encode(self.flags.0 | if self.last { BlockFlags::LAST_BIT } else { 0 }, out);
        sdnv::encode(self.length, out);
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
        let primary = &self.primary;
        let local = primary.source().is_local_node() || primary.destination().is_local_node();
        if local && !policy.accept_local_node {
            return Err(in_primary(DecodeError::invalid(
                "a LocalNode endpoint of another node",
                "RFC 9758 5.4",
            )));
        }
        self.check_flags().map_err(in_primary)?;
        self.check_block_flags()?;
        match self.primary.fragment {
            Some(fragment) => fragment.check(self.payload.length, FRAGMENT).map_err(in_primary),
            None => Ok(()),
        }
    }

    /// Position of an extension block before or after the payload, by its index among them.
    pub(crate) fn place(&self, index: usize) -> BlockPlace {
        let block = self.blocks.iter().chain(&self.after).nth(index).expect("it is a block of this bundle");
        let before = index + 1 + usize::from(index >= self.blocks.len());
        BlockPlace { block_type: Some(block.block_type.number().into()), ..BlockPlace::behind(before) }
    }

    /// Position of the payload block.
    pub(crate) fn payload_place(&self) -> BlockPlace {
        let block_type = Some(BlockType::Payload.number().into());
        BlockPlace { block_type, ..BlockPlace::behind(self.blocks.len() + 1) }
    }

    fn check_flags(&self) -> Result<(), DecodeError> {
        let PrimaryBlock { flags, fragment, .. } = &self.primary;
        let requests = [BundleFlags::CUSTODY, BundleFlags::REPORTS_V6];
        flags.check(requests, self.primary.source(), fragment.is_some(), FLAGS)
    }

    fn check_block_flags(&self) -> Result<(), Breach> {
        for (index, block) in self.blocks.iter().enumerate() {
            self.check_report_flag(block.flags).map_err(|error| Breach::new(error, self.place(index)))?;
        }
        self.check_report_flag(self.payload.flags).map_err(|error| Breach::new(error, self.payload_place()))
    }

    fn check_report_flag(&self, flags: BlockFlags) -> Result<(), DecodeError> {
        let administrative = self.primary.flags.contains(BundleFlags::ADMINISTRATIVE_RECORD);
        if administrative && flags.contains(BlockFlags::REPORT) {
            let what = "a block's request for reports on an administrative record";
            return Err(DecodeError::invalid(what, BLOCK_FLAGS));
        }
        Ok(())
    }
}
