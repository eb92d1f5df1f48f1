//! Parts of headers.

use crate::codec::{DecodeError, take};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use core::fmt;
use serde::{Deserialize, Serialize};

/// Node identifier (RFC 5740 4.1, `NormNodeId`): unique within a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Identifier that stands for no node.
    pub const NONE: NodeId = NodeId(0);
}

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Code and format of its identifiers (RFC 5052, `fec_id`). All three are used with one code over GF(2^8).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FecScheme {
    /// 5: Reed-Solomon over GF(2^8) (RFC 5510 5).
    #[default]
    ReedSolomon8,
    /// 2: Reed-Solomon over GF(2^m) (RFC 5510 4), with m = 8.
    ReedSolomon,
    /// 129: small block systematic codes (RFC 5445 6.1), with instance 0.
    SmallBlock,
}

impl FecScheme {
    /// Returns the scheme with this `fec_id`.
    ///
    /// # Errors
    /// Fails if the scheme is unknown, because the identifiers that follow it cannot be read.
    pub fn from_code(code: u8) -> Result<Self, DecodeError> {
        match code {
            5 => Ok(FecScheme::ReedSolomon8),
            2 => Ok(FecScheme::ReedSolomon),
            129 => Ok(FecScheme::SmallBlock),
            _ => Err(DecodeError::Unsupported { what: "the FEC scheme", clause: "RFC 5740 4.2.1" }),
        }
    }

    /// Returns the `fec_id`.
    pub const fn code(self) -> u8 {
        match self {
            FecScheme::ReedSolomon8 => 5,
            FecScheme::ReedSolomon => 2,
            FecScheme::SmallBlock => 129,
        }
    }

    /// Length of a [`PayloadId`], octets.
    pub const fn payload_id_bytes(self) -> usize {
        match self {
            FecScheme::ReedSolomon8 | FecScheme::ReedSolomon => 4,
            FecScheme::SmallBlock => 8,
        }
    }

    /// Length of the number of a block in a [`PayloadId`], bits. The blocks of a stream begin with zero again after the greatest one.
    pub const fn block_bits(self) -> u32 {
        match self {
            FecScheme::ReedSolomon8 | FecScheme::ReedSolomon => 24,
            FecScheme::SmallBlock => 32,
        }
    }

    /// Length of the extension with the [`Fti`], octets.
    pub const fn fti_bytes(self) -> usize {
        match self {
            FecScheme::ReedSolomon8 => 12,
            FecScheme::ReedSolomon | FecScheme::SmallBlock => 16,
        }
    }
}

/// Identifier of a symbol of an object (RFC 5740 4.2.1, `fec_payload_id`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadId {
    /// Number of the block: 24 bits, or 32 with [`FecScheme::SmallBlock`].
    pub block: u32,
    /// Number of source symbols of the block; only [`FecScheme::SmallBlock`] transmits it, otherwise zero.
    pub block_symbols: u16,
    /// Encoding symbol ID: 8 bits, or 16 with [`FecScheme::SmallBlock`].
    pub symbol: u16,
}

impl PayloadId {
    pub(super) fn decode(scheme: FecScheme, input: &mut Bytes) -> Result<Self, DecodeError> {
        let mut fields = take(input, scheme.payload_id_bytes())?;
        let block = fields.get_u32();
        Ok(match scheme {
            FecScheme::ReedSolomon8 | FecScheme::ReedSolomon => {
                PayloadId { block: block >> 8, block_symbols: 0, symbol: (block & 0xff) as u16 }
            }
            FecScheme::SmallBlock => {
                PayloadId { block, block_symbols: fields.get_u16(), symbol: fields.get_u16() }
            }
        })
    }

    pub(super) fn encode(&self, scheme: FecScheme, out: &mut BytesMut) {
        match scheme {
            FecScheme::ReedSolomon8 | FecScheme::ReedSolomon => {
                out.put_u32(self.block << 8 | u32::from(self.symbol & 0xff));
            }
            FecScheme::SmallBlock => {
                out.put_u32(self.block);
                out.put_u16(self.block_symbols);
                out.put_u16(self.symbol);
            }
        }
    }
}

/// FEC object transmission information (RFC 5740 4.2.1, extension `EXT_FTI`).
///
/// The last field is the number of parity symbols, as NRL's implementation has it for all schemes; RFC 5510 has the sum of both
/// numbers for schemes 2 and 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fti {
    /// Length of the object, bytes, below 2^48; of a stream, that of the sender's buffer.
    pub object_bytes: u64,
    /// Maximum length of a segment, bytes.
    pub segment_bytes: u16,
    /// Maximum number of source symbols of a block.
    pub block_symbols: u16,
    /// Number of parity symbols of a block.
    pub parity_symbols: u16,
}

/// Type of the extension with the FTI.
pub(super) const EXT_FTI: u8 = 64;
/// Type of the extension with feedback for congestion control.
pub(super) const EXT_CC: u8 = 3;
/// Type of the extension with the rate of the sender.
pub(super) const EXT_RATE: u8 = 128;

impl Fti {
    /// Decodes the contents of the extension, after its type and length.
    pub(super) fn decode(scheme: FecScheme, mut input: Bytes) -> Result<Self, DecodeError> {
        let mut fields = take(&mut input, scheme.fti_bytes() - 2)?;
        let object_bytes = fields.get_uint(6);
        Ok(match scheme {
            FecScheme::ReedSolomon8 => Fti {
                object_bytes,
                segment_bytes: fields.get_u16(),
                block_symbols: fields.get_u8().into(),
                parity_symbols: fields.get_u8().into(),
            },
            FecScheme::ReedSolomon => {
                let (m, g) = (fields.get_u8(), fields.get_u8());
                if m != 8 || g > 1 {
                    return Err(DecodeError::Unsupported {
                        what: "the size of symbols",
                        clause: "RFC 5510 4.2",
                    });
                }
                Fti {
                    object_bytes,
                    segment_bytes: fields.get_u16(),
                    block_symbols: fields.get_u16(),
                    parity_symbols: fields.get_u16(),
                }
            }
            FecScheme::SmallBlock => {
                if fields.get_u16() != 0 {
                    return Err(DecodeError::Unsupported {
                        what: "the FEC instance",
                        clause: "RFC 5445 6.1",
                    });
                }
                Fti {
                    object_bytes,
                    segment_bytes: fields.get_u16(),
                    block_symbols: fields.get_u16(),
                    parity_symbols: fields.get_u16(),
                }
            }
        })
    }

    pub(super) fn encode(&self, scheme: FecScheme, out: &mut BytesMut) {
        out.put_u8(EXT_FTI);
        out.put_u8((scheme.fti_bytes() / 4) as u8);
        out.put_uint(self.object_bytes, 6);
        match scheme {
            FecScheme::ReedSolomon8 => {
                out.put_u16(self.segment_bytes);
                out.put_u8(self.block_symbols as u8);
                out.put_u8(self.parity_symbols as u8);
            }
            FecScheme::ReedSolomon => {
                out.put_u8(8);
                out.put_u8(1);
                out.put_u16(self.segment_bytes);
                out.put_u16(self.block_symbols);
                out.put_u16(self.parity_symbols);
            }
            FecScheme::SmallBlock => {
                out.put_u16(0);
                out.put_u16(self.segment_bytes);
                out.put_u16(self.block_symbols);
                out.put_u16(self.parity_symbols);
            }
        }
    }
}

/// Time on the clock of a sender: seconds and microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamp {
    /// Seconds.
    pub seconds: u32,
    /// Microseconds, below 1,000,000.
    pub micros: u32,
}

impl Timestamp {
    /// Returns true for the value that stands for no measurement.
    pub fn is_absent(&self) -> bool {
        *self == Timestamp::default()
    }

    /// Returns the time in microseconds.
    pub fn as_micros(&self) -> u64 {
        u64::from(self.seconds) * 1_000_000 + u64::from(self.micros)
    }

    /// Converts from microseconds; seconds wrap after 2^32.
    pub fn from_micros(micros: u64) -> Self {
        Timestamp { seconds: (micros / 1_000_000) as u32, micros: (micros % 1_000_000) as u32 }
    }

    pub(super) fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let mut fields = take(input, 8)?;
        Ok(Timestamp { seconds: fields.get_u32(), micros: fields.get_u32() })
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_u32(self.seconds);
        out.put_u32(self.micros);
    }
}

/// Calls `each` with the type and the contents of all extensions. The contents do not have the octets of type and length.
///
/// # Errors
/// Fails if an extension has no length or extends beyond the header, and if `each` fails.
pub(super) fn extensions(
    mut header: Bytes,
    mut each: impl FnMut(u8, Bytes) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    while !header.is_empty() {
        let kind = header[0];
        let words = if kind < 128 { header.get(1).copied().map_or(0, usize::from) } else { 1 };
        if words == 0 {
            return Err(DecodeError::invalid("length of a header extension", "RFC 5740 4.1"));
        }
        let mut extension = take(&mut header, 4 * words)?;
        extension.advance(if kind < 128 { 2 } else { 1 });
        each(kind, extension)?;
    }
    Ok(())
}
