//! Packets as octets.

use crate::codec::DecodeError;
use crate::codec::crc::crc32c;
use crate::service::RefuseReason;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// What a segment adds to its bytes: kind, transfer, index, count and check sum.
pub const SEGMENT_BYTES: usize = 13;
/// What a request adds to its bitmap.
pub const REQUEST_BYTES: usize = 15;
/// A question without members.
pub const QUERY_BYTES: usize = 14;
/// Octets of a member in a question.
pub const MEMBER_BYTES: usize = 4;
/// An answer without a bitmap, the longest.
pub const ANSWER_BYTES: usize = 14;

const CRC_BYTES: usize = 4;
const CLAUSE: &str = "docs/ax25.md";
const SEGMENT: u8 = 0x71;
const QUERY: u8 = 0x72;
const REQUEST: u8 = 0x73;
const CONFIRM: u8 = 0x74;
const REFUSE: u8 = 0x75;
const CANCEL: u8 = 0x76;

/// A packet. `transfer` is its sender's number for the bundle, `member` the [`name`] of who answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A part of a bundle. All but the last are equally long.
    Segment {
        /// The bundle.
        transfer: u32,
        /// Which part, from zero.
        index: u16,
        /// How many parts there are.
        count: u16,
        /// Its bytes, one or more.
        data: Bytes,
    },
    /// Who lacks what?
    Query {
        /// The bundle.
        transfer: u32,
        /// How many parts it has.
        count: u16,
        /// Which question about it, from zero, modulo 256.
        round: u8,
        /// How long each answer may take, milliseconds.
        slot_ms: u16,
        /// Who is to answer, in this order; none: whoever lacks something.
        members: Vec<u32>,
    },
    /// These parts are lacking.
    Request {
        /// The bundle.
        transfer: u32,
        /// Who lacks them.
        member: u32,
        /// The first that is lacking.
        first: u16,
        /// A bit for each from there on, the highest first: set where it is lacking.
        bitmap: Bytes,
    },
    /// All of it is safe.
    Confirm {
        /// The bundle.
        transfer: u32,
        /// With whom.
        member: u32,
    },
    /// It is not wanted.
    Refuse {
        /// The bundle.
        transfer: u32,
        /// By whom.
        member: u32,
        /// Why.
        reason: RefuseReason,
    },
    /// Its sender gives it up.
    Cancel {
        /// The bundle.
        transfer: u32,
    },
}

/// The name of a node in packets: the CRC-32C of its node id.
pub fn name(node_id: &str) -> u32 {
    crc32c(node_id.as_bytes())
}

impl Packet {
    /// The bundle that it is about.
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

    /// Takes all of a packet.
    ///
    /// # Errors
    /// It is none, or damaged.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let length = input.len().checked_sub(CRC_BYTES).ok_or(DecodeError::Incomplete)?;
        let mut body = input.split_to(length);
        if input.get_u32() != crc32c(&body) {
            return Err(DecodeError::Checksum { what: "packet to a group" });
        }
        let fixed =
            |body: &Bytes, bytes: usize| (body.len() >= bytes).then_some(()).ok_or(DecodeError::Incomplete);
        fixed(&body, 5)?;
        let (kind, transfer) = (body.get_u8(), body.get_u32());
        let packet = match kind {
            SEGMENT => {
                fixed(&body, 5)?;
                let (index, count) = (body.get_u16(), body.get_u16());
                if index >= count {
                    return Err(DecodeError::invalid("the index of a segment", CLAUSE));
                }
                Packet::Segment { transfer, index, count, data: body.split_off(0) }
            }
            QUERY => {
                fixed(&body, 5)?;
                let (count, round, slot_ms) = (body.get_u16(), body.get_u8(), body.get_u16());
                if count == 0 || !body.len().is_multiple_of(MEMBER_BYTES) {
                    return Err(DecodeError::invalid("a question to a group", CLAUSE));
                }
                let members = (0..body.len() / MEMBER_BYTES).map(|_| body.get_u32()).collect();
                Packet::Query { transfer, count, round, slot_ms, members }
            }
            REQUEST => {
                fixed(&body, 6)?;
                let (member, first) = (body.get_u32(), body.get_u16());
                Packet::Request { transfer, member, first, bitmap: body.split_off(0) }
            }
            CONFIRM => {
                fixed(&body, 4)?;
                Packet::Confirm { transfer, member: body.get_u32() }
            }
            REFUSE => {
                fixed(&body, 5)?;
                Packet::Refuse { transfer, member: body.get_u32(), reason: reason_of(body.get_u8()) }
            }
            CANCEL => Packet::Cancel { transfer },
            _ => return Err(DecodeError::invalid("the kind of a packet", CLAUSE)),
        };
        match body.is_empty() {
            true => Ok(packet),
            false => Err(DecodeError::invalid("the length of a packet", CLAUSE)),
        }
    }

    /// Appends it.
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
                out.put_u8(number_of(*reason));
            }
            Packet::Cancel { transfer } => begin(out, CANCEL, *transfer),
        }
        let check = crc32c(&out[start..]);
        out.put_u32(check);
    }

    /// Its octets.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        self.encode(&mut out);
        out.freeze()
    }
}

fn begin(out: &mut BytesMut, kind: u8, transfer: u32) {
    out.put_u8(kind);
    out.put_u32(transfer);
}

/// The reasons with a number, which is their place.
const REASONS: [RefuseReason; 7] = [
    RefuseReason::Unknown,
    RefuseReason::Completed,
    RefuseReason::NoResources,
    RefuseReason::Retransmit,
    RefuseReason::NotAcceptable,
    RefuseReason::ExtensionFailure,
    RefuseReason::SessionTerminating,
];

fn reason_of(number: u8) -> RefuseReason {
    REASONS.get(usize::from(number)).copied().unwrap_or(RefuseReason::Other(number))
}

fn number_of(reason: RefuseReason) -> u8 {
    let known = REASONS.iter().position(|other| *other == reason);
    match (known, reason) {
        (Some(place), _) => place as u8,
        (None, RefuseReason::Other(number)) => number,
        (None, _) => 0,
    }
}
