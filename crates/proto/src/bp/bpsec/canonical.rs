//! Canonical forms of blocks, and what an authentication code covers beside its target (RFC 9172 4, RFC 9173 3.7, 4.7.2).

use super::Fault;
use crate::bp::{Block, BlockFlags, BlockType, CrcType, Head};
use crate::codec::{
    self,
    cbor::{self, Major},
};
use bytes::BytesMut;

/// Block number by which security blocks name the primary block.
pub const PRIMARY_BLOCK: u64 = 0;
/// Block number of the payload block.
pub const PAYLOAD_BLOCK: u64 = 1;

/// Scope flags: what an authentication code covers beside the data of its target (RFC 9173 3.3.3, 4.3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scope(u8);

impl Scope {
    /// The data of the target alone: they may be moved to another bundle.
    pub const TARGET: Scope = Scope(0);
    /// The primary block.
    pub const PRIMARY_BLOCK: Scope = Scope(1);
    /// Type, number and flags of the target.
    pub const TARGET_HEADER: Scope = Scope(2);
    /// Type, number and flags of the security block.
    pub const SECURITY_HEADER: Scope = Scope(4);
    /// All of them, the default.
    pub const ALL: Scope = Scope(7);

    /// Value of the parameter.
    pub const fn bits(self) -> u64 {
        self.0 as u64
    }

    /// Converts from the value of a parameter. `None` if it has a bit that is not assigned: the code then covers something
    /// unknown.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits <= Scope::ALL.bits() { Some(Scope(bits as u8)) } else { None }
    }

    /// True if all of `scope` is covered.
    pub const fn contains(self, scope: Scope) -> bool {
        self.0 & scope.0 == scope.0
    }
}

impl Default for Scope {
    fn default() -> Self {
        Scope::ALL
    }
}

impl core::ops::BitOr for Scope {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Scope(self.0 | other.0)
    }
}

/// Type, number and flags of a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) block_type: BlockType,
    pub(super) number: u64,
    pub(super) flags: BlockFlags,
}

impl Header {
    pub(super) fn of(block: &Block) -> Self {
        Header { block_type: block.block_type, number: block.number, flags: block.flags }
    }

    /// Header of the payload block or of an extension block.
    pub(super) fn find(head: &Head, number: u64) -> Result<Self, Fault> {
        if number == PAYLOAD_BLOCK {
            return Ok(Header { block_type: BlockType::Payload, number, flags: head.payload.flags });
        }
        find(head, number).map(Header::of)
    }

    fn encode(self, out: &mut BytesMut) {
        const DEFINED: BlockFlags = BlockFlags::DEFINED;
        let numbers = [self.block_type.number(), self.number, self.flags.bits() & DEFINED.bits()];
        numbers.iter().for_each(|number| cbor::put_unsigned(*number, out));
    }
}

/// Extension block with this number.
pub(super) fn find(head: &Head, number: u64) -> Result<&Block, Fault> {
    head.blocks.iter().find(|block| block.number == number).ok_or(Fault::MissingTarget(number))
}

/// Appends what the scope says of the target. That is all of the additional authenticated data (RFC 9173 4.7.2), and the
/// beginning of the integrity-protected plaintext (3.7).
pub(super) fn put_scope(
    scope: Scope,
    head: &Head,
    target: u64,
    security: Header,
    out: &mut BytesMut,
) -> Result<(), Fault> {
    cbor::put_unsigned(scope.bits(), out);
    if scope.contains(Scope::PRIMARY_BLOCK) && target != PRIMARY_BLOCK {
        head.primary.encode(out);
    }
    if scope.contains(Scope::TARGET_HEADER) && target != PRIMARY_BLOCK {
        Header::find(head, target)?.encode(out);
    }
    if scope.contains(Scope::SECURITY_HEADER) {
        security.encode(out);
    }
    Ok(())
}

/// Appends the canonical form of a target; of the payload block, all before the first byte of the payload. The primary
/// block is a byte string here, which RFC 9173 A.3.3.1 shows and 3.7 does not say.
pub(super) fn put_target(head: &Head, target: u64, out: &mut BytesMut) -> Result<(), Fault> {
    match target {
        PRIMARY_BLOCK => {
            let primary = codec::encoded(128, |out| head.primary.encode(out));
            cbor::put_byte_string(&primary, out);
        }
        PAYLOAD_BLOCK => cbor::put_head(Major::ByteString, head.payload.length, out),
        number => cbor::put_byte_string(&find(head, number)?.data, out),
    }
    Ok(())
}

/// Sets the CRC type of a block.
pub(super) fn set_crc(head: &mut Head, number: u64, crc: CrcType) {
    match number {
        PRIMARY_BLOCK => head.primary.crc = crc,
        PAYLOAD_BLOCK => head.payload.crc = crc,
        _ => {
            if let Some(block) = head.blocks.iter_mut().find(|block| block.number == number) {
                block.crc = crc;
            }
        }
    }
}
