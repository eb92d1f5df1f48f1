//! Encoding of source and repair packets.

use crate::codec::{self, DecodeError, take, take_byte};
use crate::fec::SYMBOL_BYTES_MAX;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use core::ops::RangeInclusive;

/// Length of the header of a source packet without a report, octets.
pub const SOURCE_BYTES: usize = 7;
/// Length of a report of loss, octets.
pub const REPORT_BYTES: usize = 4;
/// Length of the header of a repair packet without a report, octets.
pub const REPAIR_BYTES: usize = 11;
/// Length of the length field of a datagram in its symbol, octets.
pub const LENGTH_BYTES: usize = 2;

/// First octets of packets: the kinds of symbols, each without and with a report.
pub const KINDS: RangeInclusive<u8> = SOURCE..=REPAIR | WITH_REPORT;

const CLAUSE: &str = "docs of fecframe";
const SOURCE: u8 = 0x10;
const REPAIR: u8 = 0x11;
const WITH_REPORT: u8 = 0x02;

/// Datagrams that the sender of the report has missed lately, of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossReport {
    /// Number of lost datagrams.
    pub lost: u16,
    /// Number of datagrams that were sent to it, at least one.
    pub of: u16,
}

/// One symbol of a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of the block.
    pub block: u32,
    /// Encoding symbol ID.
    pub id: u16,
    /// Loss in the opposite direction.
    pub report: Option<LossReport>,
    /// Kind of the symbol, with what only this kind has.
    pub symbol: Symbol,
}

/// Symbol of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Symbol {
    /// A datagram of the user.
    Source(Bytes),
    /// A repair symbol.
    Repair {
        /// Number of source symbols of the block, at least one.
        sources: u16,
        /// Number of repair symbols of the block, at least one.
        repairs: u16,
        /// Contents, as long as every symbol of the block.
        bytes: Bytes,
    },
}

impl Packet {
    /// Decodes a packet, which takes all of the input.
    ///
    /// # Errors
    /// Fails if the input is not a packet.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let kind = take_byte(input)?;
        let mut fixed = take(input, SOURCE_BYTES - 1)?;
        let (id, block) = (fixed.get_u16(), fixed.get_u32());
        let report = if kind & WITH_REPORT == 0 { None } else { Some(LossReport::decode(input)?) };
        let symbol = match kind & !WITH_REPORT {
            SOURCE => Symbol::Source(input.split_to(input.len())),
            REPAIR => {
                let mut counts = take(input, REPAIR_BYTES - SOURCE_BYTES)?;
                let (sources, repairs) = (counts.get_u16(), counts.get_u16());
                let size = input.len();
                if size < LENGTH_BYTES || size % 2 == 1 || size > SYMBOL_BYTES_MAX as usize {
                    return Err(DecodeError::invalid("size of the repair symbol", CLAUSE));
                }
                let ids = u32::from(sources)..u32::from(sources) + u32::from(repairs);
                if sources == 0 || !ids.contains(&id.into()) {
                    return Err(DecodeError::invalid("ID of the repair symbol", CLAUSE));
                }
                Symbol::Repair { sources, repairs, bytes: input.split_to(size) }
            }
            _ => return Err(DecodeError::invalid("kind of the packet", CLAUSE)),
        };
        Ok(Packet { block, id, report, symbol })
    }

    /// Appends the packet.
    pub fn encode(&self, out: &mut BytesMut) {
        let kind = if let Symbol::Source(_) = self.symbol { SOURCE } else { REPAIR };
        out.put_u8(kind | if self.report.is_some() { WITH_REPORT } else { 0 });
        out.put_u16(self.id);
        out.put_u32(self.block);
        if let Some(LossReport { lost, of }) = self.report {
            out.put_u16(lost);
            out.put_u16(of);
        }
        match &self.symbol {
            Symbol::Source(bytes) => out.extend_from_slice(bytes),
            Symbol::Repair { sources, repairs, bytes } => {
                out.put_u16(*sources);
                out.put_u16(*repairs);
                out.extend_from_slice(bytes);
            }
        }
    }

    /// Returns the encoding.
    pub fn to_bytes(&self) -> Bytes {
        let (Symbol::Source(bytes) | Symbol::Repair { bytes, .. }) = &self.symbol;
        codec::encoded(REPAIR_BYTES + REPORT_BYTES + bytes.len(), |out| self.encode(out))
    }
}

impl LossReport {
    fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let mut fixed = take(input, REPORT_BYTES)?;
        let report = LossReport { lost: fixed.get_u16(), of: fixed.get_u16() };
        if report.of == 0 || report.lost > report.of {
            return Err(DecodeError::invalid("report of loss", CLAUSE));
        }
        Ok(report)
    }
}

/// Returns a datagram as the symbol that the code computes with: its length, its contents, and zeros up to `size`.
///
/// # Panics
/// Panics if it does not fit.
pub fn source_symbol(datagram: &Bytes, size: usize) -> Bytes {
    let mut symbol = BytesMut::with_capacity(size);
    symbol.put_u16(u16::try_from(datagram.len()).expect("a datagram has a length of 16 bits"));
    symbol.extend_from_slice(datagram);
    assert!(symbol.len() <= size, "the longest datagram of the block fits into its symbols");
    symbol.resize(size, 0);
    symbol.freeze()
}

/// Returns the datagram in a restored symbol; `None` if its length exceeds the symbol.
pub fn datagram_of(mut symbol: Bytes) -> Option<Bytes> {
    let length = usize::from(take(&mut symbol, LENGTH_BYTES).ok()?.get_u16());
    (length <= symbol.len()).then(|| symbol.split_to(length))
}

/// Size of the symbols of a block whose longest datagram has this length.
pub const fn symbol_bytes(longest: usize) -> usize {
    (LENGTH_BYTES + longest).next_multiple_of(2)
}

/// Length of the longest datagram of a user above an endpoint for datagrams of `bytes_max`: that whose repair symbols fit.
pub fn user_bytes_max(bytes_max: u64) -> u64 {
    let headers = (REPAIR_BYTES + REPORT_BYTES) as u64;
    let symbol = bytes_max.saturating_sub(headers).min(SYMBOL_BYTES_MAX.into()) & !1;
    symbol.saturating_sub(LENGTH_BYTES as u64)
}
