//! What every codec uses: one error type, CBOR and SDNV primitives, checksums.
//!
//! Every wire type has the same two methods, `decode(&mut Bytes) -> Result<Self, DecodeError>` and
//! `encode(&self, &mut BytesMut)`; `decode . encode` is the identity. A decoder takes from the front of its
//! input exactly the bytes of one value and leaves the rest; after an error the input's position says nothing.

pub mod cbor;
pub mod crc;
pub mod sdnv;

use core::fmt;

/// Why bytes are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end too early; with more of them the value may be whole. Stream decoders wait on this one.
    Incomplete,
    /// A value is not allowed where it stands. Says which field and, by document and section, which rule.
    Invalid {
        /// The field or structure.
        what: &'static str,
        /// The clause, such as `RFC 9171 4.3.1`.
        clause: &'static str,
    },
    /// A checksum does not match.
    Checksum {
        /// The structure that it covers.
        what: &'static str,
    },
    /// It is right, and is refused by a rule because this implementation does not process it.
    Unsupported {
        /// The field or structure.
        what: &'static str,
        /// The clause, such as `RFC 9171 5.6`.
        clause: &'static str,
    },
    /// A number, length or nesting exceeds what this implementation takes.
    Limit {
        /// What is too large.
        what: &'static str,
    },
}

impl DecodeError {
    /// Shorthand for [`DecodeError::Invalid`].
    pub const fn invalid(what: &'static str, clause: &'static str) -> Self {
        DecodeError::Invalid { what, clause }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Incomplete => f.write_str("the data end too early"),
            DecodeError::Invalid { what, clause } => write!(f, "{what} is not valid ({clause})"),
            DecodeError::Checksum { what } => write!(f, "the checksum of the {what} does not match"),
            DecodeError::Unsupported { what, clause } => write!(f, "{what} is not supported ({clause})"),
            DecodeError::Limit { what } => write!(f, "{what} is larger than this implementation takes"),
        }
    }
}

impl core::error::Error for DecodeError {}
