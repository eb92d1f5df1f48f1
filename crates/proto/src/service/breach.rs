//! The rule that a bundle breaks, and its place in the bundle.

use crate::codec::DecodeError;
use core::fmt;

/// The first rule that a bundle breaks, as far as the bundle was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breach {
    /// The field, and the clause that it breaks.
    pub error: DecodeError,
    /// Block with that field; `None` if it is in no block, such as data after the end of a bundle.
    pub block: Option<BlockPlace>,
}

/// A block of a bundle, as far as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockPlace {
    /// Position in the bundle: 0 is the primary block.
    pub index: u32,
    /// Block type code; `None` for the primary block, and if it was not read.
    pub block_type: Option<u64>,
    /// Block number (version 7); `None` for the primary block, and if it was not read.
    pub number: Option<u64>,
}

/// Block type code of the payload block (RFC 9171 4.3.2, RFC 5050 4.5.2).
const PAYLOAD: u64 = 1;

impl BlockPlace {
    /// The primary block.
    pub const PRIMARY: BlockPlace = BlockPlace { index: 0, block_type: None, number: None };

    /// Returns the block after `others` blocks, with nothing of it read yet.
    pub const fn behind(others: usize) -> Self {
        BlockPlace { index: others as u32, block_type: None, number: None }
    }
}

impl Breach {
    /// Creates a breach in this block.
    pub const fn new(error: DecodeError, block: BlockPlace) -> Self {
        Breach { error, block: Some(block) }
    }

    /// Creates a breach that belongs to no block.
    pub const fn of_all(error: DecodeError) -> Self {
        Breach { error, block: None }
    }

    /// Returns the clause that is broken, such as `RFC 9171 4.3.1`; `None` for a limit of this implementation or
    /// truncated data.
    pub const fn clause(&self) -> Option<&'static str> {
        match self.error {
            DecodeError::Invalid { clause, .. } | DecodeError::Unsupported { clause, .. } => Some(clause),
            // Version 6 has no checksums.
            DecodeError::Checksum { .. } => Some("RFC 9171 5.6"),
            DecodeError::Incomplete | DecodeError::Limit { .. } => None,
        }
    }
}

impl fmt::Display for BlockPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.index, self.block_type, self.number) {
            (0, ..) => f.write_str("the primary block"),
            (_, Some(PAYLOAD), _) => f.write_str("the payload block"),
            (index, None, _) => write!(f, "block {index}"),
            (index, Some(block_type), None) => write!(f, "block {index} (type {block_type})"),
            (index, Some(block_type), Some(number)) => {
                write!(f, "block {index} (type {block_type}, number {number})")
            }
        }
    }
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Breach { error, block } = self;
        match (error, self.clause()) {
            (DecodeError::Checksum { .. }, Some(clause)) => write!(f, "{error} ({clause})")?,
            _ => write!(f, "{error}")?,
        }
        match block {
            Some(block) => write!(f, ", in {block}"),
            None => Ok(()),
        }
    }
}
