//! Parts that all codecs share: one error type, CBOR and SDNV primitives, checksums.
//!
//! Every wire type has the same two methods, `decode(&mut Bytes) -> Result<Self, DecodeError>` and `encode(&self, &mut
//! BytesMut)`; `decode . encode` is the identity. A decoder consumes exactly the bytes of one value at the front of its
//! input and leaves the rest; after an error the position of the input is undefined.

pub mod cbor;
pub mod crc;
pub mod sdnv;

use bytes::{Bytes, BytesMut};
use core::fmt;

/// Consumes the first `length` bytes of the input.
pub(crate) fn take(input: &mut Bytes, length: usize) -> Result<Bytes, DecodeError> {
    if input.len() < length { Err(DecodeError::Incomplete) } else { Ok(input.split_to(length)) }
}

/// Consumes the first byte of the input.
pub(crate) fn take_byte(input: &mut Bytes) -> Result<u8, DecodeError> {
    Ok(take(input, 1)?[0])
}

/// Returns what `encode` appends to an empty buffer.
pub(crate) fn encoded(capacity: usize, encode: impl FnOnce(&mut BytesMut)) -> Bytes {
    let mut out = BytesMut::with_capacity(capacity);
    encode(&mut out);
    out.freeze()
}

/// Implements the conversions between an enum and its codes. Codes without a variant of their own are kept in the last one,
/// with the bits of its mask.
macro_rules! codes {
    ($name:ident: $number:ty, $from:ident, $to:ident, $($code:literal $variant:ident,)+ $other:ident $(& $mask:literal)?) => {
        impl $name {
            /// Converts from the code.
            pub const fn $from(code: $number) -> Self {
                match code {
                    $($code => $name::$variant,)+
                    other => $name::$other(other $(& $mask)?),
                }
            }

            /// Returns the code.
            pub const fn $to(self) -> $number {
                match self {
                    $($name::$variant => $code,)+
                    $name::$other(other) => other $(& $mask)?,
                }
            }
        }
    };
}
pub(crate) use codes;

/// Implements the conversions from the contents of variants to their enum.
macro_rules! variants {
    ($name:ident: $($variant:ident($content:ty)),+) => {
        $(impl From<$content> for $name {
            fn from(content: $content) -> Self {
                $name::$variant(content)
            }
        })+
    };
}
pub(crate) use variants;

/// Reason why bytes cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// The bytes end too early; with more of them the value may be complete. Stream decoders wait on this error.
    Incomplete,
    /// A value is not allowed in its place. Contains the field, and the violated rule by document and section.
    Invalid {
        /// Field or structure.
        what: &'static str,
        /// Clause, such as `RFC 9171 4.3.1`.
        clause: &'static str,
    },
    /// A checksum does not match.
    Checksum {
        /// Structure that the checksum covers.
        what: &'static str,
    },
    /// The value is valid, and a rule requires its refusal because this implementation does not process it.
    Unsupported {
        /// Field or structure.
        what: &'static str,
        /// Clause, such as `RFC 9171 5.6`.
        clause: &'static str,
    },
    /// A number, length or nesting exceeds a limit of this implementation.
    Limit {
        /// Field or structure that is too large.
        what: &'static str,
    },
}

impl DecodeError {
    /// Creates a [`DecodeError::Invalid`].
    pub const fn invalid(what: &'static str, clause: &'static str) -> Self {
        DecodeError::Invalid { what, clause }
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Incomplete => f.write_str("unexpected end of data"),
            DecodeError::Invalid { what, clause } => write!(f, "{what} is not valid ({clause})"),
            DecodeError::Checksum { what } => write!(f, "the checksum of the {what} does not match"),
            DecodeError::Unsupported { what, clause } => write!(f, "{what} is not supported ({clause})"),
            DecodeError::Limit { what } => write!(f, "{what} exceeds a limit of this implementation"),
        }
    }
}

impl core::error::Error for DecodeError {}
