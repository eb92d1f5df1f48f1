//! Encoding of packets.

use crate::codec::crc::crc32c;
use crate::codec::{self, DecodeError, take, take_byte};
use crate::service::RefuseReason;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Length of a segment packet in addition to its data, octets: kind, transfer, index, count and checksum.
pub const SEGMENT_BYTES: usize = 13;
/// Length of a request in addition to its bitmap, octets.
pub const REQUEST_BYTES: usize = 15;
/// Length of a query without members, octets.
pub const QUERY_BYTES: usize = 14;
/// Length of a member in a query, octets.
pub const MEMBER_BYTES: usize = 4;

const CRC_BYTES: usize = 4;
const CLAUSE: &str = "docs/ax25.md";
const SEGMENT: u8 = 0x71;
const QUERY: u8 = 0x72;
const REQUEST: u8 = 0x73;
const CONFIRM: u8 = 0x74;
const REFUSE: u8 = 0x75;
const CANCEL: u8 = 0x76;

/// Packet. `transfer` is the sender's number of the bundle, `member` the [`name`] of the answering node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Part of a bundle. All segments except the last have the same length.
    Segment {
        /// Number of the bundle.
        transfer: u32,
        /// Index of the segment, from zero.
        index: u16,
        /// Number of segments of the bundle.
        count: u16,
        /// Bytes of the segment, at least one.
        data: Bytes,
    },
    /// Query for missing segments.
    Query {
        /// Number of the bundle.
        transfer: u32,
        /// Number of segments of the bundle.
        count: u16,
        /// Number of the query for this bundle, from zero, modulo 256.
        round: u8,
        /// Duration of the slot of each answer, milliseconds.
        slot_ms: u16,
        /// Names of the members that must answer, in this order; if empty, every station that lacks segments.
        members: Vec<u32>,
    },
    /// Request for missing segments.
    Request {
        /// Number of the bundle.
        transfer: u32,
        /// Name of the member that lacks the segments.
        member: u32,
        /// Index of the first missing segment.
        first: u16,
        /// One bit per segment from `first` on, the most significant bit of an octet first; set if the
        /// segment is missing.
        bitmap: Bytes,
    },
    /// Confirmation that the complete bundle is stored.
    Confirm {
        /// Number of the bundle.
        transfer: u32,
        /// Name of the member that has stored the bundle.
        member: u32,
    },
    /// Refusal of the bundle.
    Refuse {
        /// Number of the bundle.
        transfer: u32,
        /// Name of the member that refuses the bundle.
        member: u32,
        /// Reason for the refusal.
        reason: RefuseReason,
    },
    /// Cancellation by the sender of the bundle.
    Cancel {
        /// Number of the bundle.
        transfer: u32,
    },
}

/// Name of a node in packets: the CRC-32C of its node ID.
pub fn name(node_id: &str) -> u32 {
    crc32c(node_id.as_bytes())
}

impl Packet {
    /// Number of the bundle to which the packet refers.
    pub fn transfer(&self) -> u32 {
        match self {
            Packet::Segment { transfer, .. }
            | Packet::Query { transfer, .. }
            | Packet::Request { transfer, .. }
            | Packet::Confirm { transfer, .. }
            | Packet::Refuse { transfer, .. }
            | Packet::Cancel { transfer } => *transfer,
        }
    }

    /// Decodes a packet, which takes all of the input.
    ///
    /// # Errors
    /// Fails if the input is not a packet, or damaged.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let length = input.len().checked_sub(CRC_BYTES).ok_or(DecodeError::Incomplete)?;
        let mut body = input.split_to(length);
        if input.get_u32() != crc32c(&body) {
            return Err(DecodeError::Checksum { what: "packet to a group" });
        }
        let (kind, transfer) = (take_byte(&mut body)?, take(&mut body, 4)?.get_u32());
        let packet = match kind {
            SEGMENT => {
                let mut fixed = take(&mut body, 4)?;
                if body.is_empty() {
                    return Err(DecodeError::Incomplete);
                }
                let (index, count) = (fixed.get_u16(), fixed.get_u16());
                if index >= count {
                    return Err(DecodeError::invalid("the index of a segment", CLAUSE));
                }
                Packet::Segment { transfer, index, count, data: body.split_off(0) }
            }
            QUERY => {
                let mut fixed = take(&mut body, 5)?;
                let (count, round, slot_ms) = (fixed.get_u16(), fixed.get_u8(), fixed.get_u16());
                if count == 0 || !body.len().is_multiple_of(MEMBER_BYTES) {
                    return Err(DecodeError::invalid("a query to a group", CLAUSE));
                }
                let members = (0..body.len() / MEMBER_BYTES).map(|_| body.get_u32()).collect();
                Packet::Query { transfer, count, round, slot_ms, members }
            }
            REQUEST => {
                let mut fixed = take(&mut body, 6)?;
                let (member, first) = (fixed.get_u32(), fixed.get_u16());
                Packet::Request { transfer, member, first, bitmap: body.split_off(0) }
            }
            CONFIRM => Packet::Confirm { transfer, member: take(&mut body, 4)?.get_u32() },
            REFUSE => {
                let (member, code) = (take(&mut body, 4)?.get_u32(), take_byte(&mut body)?);
                Packet::Refuse { transfer, member, reason: RefuseReason::from_code(code) }
            }
            CANCEL => Packet::Cancel { transfer },
            _ => return Err(DecodeError::invalid("the kind of a packet", CLAUSE)),
        };
        match body.is_empty() {
            true => Ok(packet),
            false => Err(DecodeError::invalid("the length of a packet", CLAUSE)),
        }
    }

    /// Appends the packet.
    pub fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        match self {
            Packet::Segment { transfer, index, count, data } => {
                begin(out, SEGMENT, *transfer);
                out.put_u16(*index);
                out.put_u16(*count);
                out.put_slice(data);
            }
            Packet::Query { transfer, count, round, slot_ms, members } => {
                begin(out, QUERY, *transfer);
                out.put_u16(*count);
                out.put_u8(*round);
                out.put_u16(*slot_ms);
                members.iter().for_each(|member| out.put_u32(*member));
            }
            Packet::Request { transfer, member, first, bitmap } => {
                begin(out, REQUEST, *transfer);
                out.put_u32(*member);
                out.put_u16(*first);
                out.put_slice(bitmap);
            }
            Packet::Confirm { transfer, member } => {
                begin(out, CONFIRM, *transfer);
                out.put_u32(*member);
            }
            Packet::Refuse { transfer, member, reason } => {
                begin(out, REFUSE, *transfer);
                out.put_u32(*member);
                out.put_u8(reason.code());
            }
            Packet::Cancel { transfer } => begin(out, CANCEL, *transfer),
        }
        let check = crc32c(&out[start..]);
        out.put_u32(check);
    }

    /// Encodes the packet.
    pub fn to_bytes(&self) -> Bytes {
        codec::encoded(0, |out| self.encode(out))
    }
}

fn begin(out: &mut BytesMut, kind: u8, transfer: u32) {
    out.put_u8(kind);
    out.put_u32(transfer);
}
