//! Encoding of the messages of version 4 (RFC 9174 4 to 6).
//!
//! An XFER_SEGMENT is only its header here: the segment's bytes follow it in the stream. Extension items are kept as
//! received, so that an invalid list affects its own message and not the framing of those after it; [`items`] decodes
//! them.

use crate::codec::{DecodeError, codes, take, take_byte};
pub use crate::service::RefuseReason;
use crate::tcpcl::contact::MAGIC;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Version number in the contact header.
pub const VERSION: u8 = 4;
/// Maximum length of a node ID accepted in a SESS_INIT, bytes.
pub const NODE_ID_BYTES_MAX: usize = 1023;
/// Maximum length of a list of extension items accepted, bytes.
pub const ITEMS_BYTES_MAX: usize = 4096;
/// END flag of XFER_SEGMENT and XFER_ACK (RFC 9174 5.2.2).
pub const END: u8 = 0x01;
/// START flag of XFER_SEGMENT and XFER_ACK (RFC 9174 5.2.2).
pub const START: u8 = 0x02;
/// Type of the Transfer Length extension (RFC 9174 8.4).
pub const TRANSFER_LENGTH: u16 = 0x0001;

/// Contact header (RFC 9174 4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContactHeader {
    /// True if the sender supports TLS (CAN_TLS).
    pub can_tls: bool,
}

impl ContactHeader {
    /// Decodes a contact header; fails unless version and magic string are correct. Reserved flags are ignored.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let fixed = take(input, 6)?;
        if fixed[..4] != MAGIC || fixed[4] != VERSION {
            return Err(DecodeError::invalid("the magic or the version", "RFC 9174 4.3"));
        }
        Ok(ContactHeader { can_tls: fixed[5] & 1 != 0 })
    }

    /// Appends the contact header.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_slice(&MAGIC);
        out.put_u8(VERSION);
        out.put_u8(u8::from(self.can_tls));
    }
}

/// Extension item of a session or of a transfer (RFC 9174 4.8, 5.2.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// True if the receiver must know the type (CRITICAL).
    pub critical: bool,
    /// Type of the item.
    pub kind: u16,
    /// Value of the item.
    pub value: Bytes,
}

impl Item {
    /// Decodes an item.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let mut fixed = take(input, 5)?;
        let critical = fixed.get_u8() & 1 != 0;
        let kind = fixed.get_u16();
        let value = take(input, usize::from(fixed.get_u16()))?;
        Ok(Item { critical, kind, value })
    }

    /// Appends the item.
    ///
    /// # Panics
    /// Panics if the value is longer than 65,535 bytes.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_u8(u8::from(self.critical));
        out.put_u16(self.kind);
        out.put_u16(u16::try_from(self.value.len()).expect("an extension item's length has 16 bits"));
        out.put_slice(&self.value);
    }
}

/// Decodes a list of extension items. Fails unless the list ends with its last item.
pub fn items(mut list: Bytes) -> Result<Vec<Item>, DecodeError> {
    let mut items = Vec::new();
    while !list.is_empty() {
        let item = Item::decode(&mut list)
            .map_err(|_| DecodeError::invalid("a list of extension items", "RFC 9174 4.6"))?;
        items.push(item);
    }
    Ok(items)
}

/// Session parameters of one side (RFC 9174 4.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessInit {
    /// Keepalive interval, seconds; zero if disabled.
    pub keepalive: u16,
    /// Maximum length of a segment that the sender accepts (segment MRU), bytes.
    pub segment_mru: u64,
    /// Maximum length of a bundle that the sender accepts (transfer MRU), bytes.
    pub transfer_mru: u64,
    /// Node ID of the sender; empty if not announced.
    pub node_id: String,
    /// List of session extension items, for [`items`].
    pub items: Bytes,
}

/// Header of a segment (RFC 9174 5.2.2); `length` bytes of bundle follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XferSegment {
    /// Flags: [`START`], [`END`], and reserved ones.
    pub flags: u8,
    /// Transfer ID.
    pub id: u64,
    /// List of transfer extension items, for [`items`]; empty unless this is the first segment.
    pub items: Bytes,
    /// Number of bytes that follow.
    pub length: u64,
}

/// Reason for the end of a session (RFC 9174 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermReason {
    /// 0: unspecified.
    Unknown,
    /// 1: the session is idle.
    IdleTimeout,
    /// 2: the version is not supported.
    VersionMismatch,
    /// 3: the sender is too busy.
    Busy,
    /// 4: the contact header or SESS_INIT is not acceptable.
    ContactFailure,
    /// 5: a limit was reached.
    ResourceExhaustion,
    /// Any other code.
    Other(u8),
}

codes!(
    TermReason: u8, from_code, code,
    0 Unknown, 1 IdleTimeout, 2 VersionMismatch, 3 Busy, 4 ContactFailure, 5 ResourceExhaustion, Other
);

/// Reason for rejecting a message (RFC 9174 5.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectReason {
    /// 1: the type is unknown.
    TypeUnknown,
    /// 2: the message is not supported.
    Unsupported,
    /// 3: the message is not allowed in this state.
    Unexpected,
    /// Any other code.
    Other(u8),
}

codes!(RejectReason: u8, from_code, code, 1 TypeUnknown, 2 Unsupported, 3 Unexpected, Other);

/// Message (RFC 9174 4.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Header of a segment (5.2.2).
    XferSegment(XferSegment),
    /// Acknowledgement of a segment (5.2.3).
    XferAck {
        /// Flags of the segment.
        flags: u8,
        /// Transfer ID.
        id: u64,
        /// Acknowledged offset in the bundle, bytes.
        up_to: u64,
    },
    /// Refusal of a transfer (5.2.4).
    XferRefuse {
        /// Reason.
        reason: RefuseReason,
        /// Transfer ID.
        id: u64,
    },
    /// Keepalive (5.1.1).
    KeepAlive,
    /// Termination of the session (6.1).
    SessTerm {
        /// True for the reply to the peer's.
        reply: bool,
        /// Reason.
        reason: TermReason,
    },
    /// Rejection of a message (5.1.2).
    MsgReject {
        /// Reason.
        reason: RejectReason,
        /// First byte of the rejected message.
        header: u8,
    },
    /// Session parameters (4.6).
    SessInit(SessInit),
    /// Message of an unassigned type; its length is unknown, so nothing after it can be decoded.
    Unknown {
        /// Type of the message.
        header: u8,
    },
}

impl Message {
    /// Decodes a message. Reserved flags are ignored, but kept if the acknowledgement repeats them.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let header = take_byte(input)?;
        Ok(match header {
            0x01 => Message::XferSegment(XferSegment::decode_body(input)?),
            0x02 => {
                let mut fixed = take(input, 17)?;
                Message::XferAck { flags: fixed.get_u8(), id: fixed.get_u64(), up_to: fixed.get_u64() }
            }
            0x03 => {
                let mut fixed = take(input, 9)?;
                Message::XferRefuse { reason: RefuseReason::from_code(fixed.get_u8()), id: fixed.get_u64() }
            }
            0x04 => Message::KeepAlive,
            0x05 => {
                let fixed = take(input, 2)?;
                Message::SessTerm { reply: fixed[0] & 1 != 0, reason: TermReason::from_code(fixed[1]) }
            }
            0x06 => {
                let fixed = take(input, 2)?;
                Message::MsgReject { reason: RejectReason::from_code(fixed[0]), header: fixed[1] }
            }
            0x07 => Message::SessInit(SessInit::decode_body(input)?),
            _ => Message::Unknown { header },
        })
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Message::XferSegment(segment) => segment.encode(out),
            Message::XferAck { flags, id, up_to } => {
                out.put_u8(0x02);
                out.put_u8(*flags);
                out.put_u64(*id);
                out.put_u64(*up_to);
            }
            Message::XferRefuse { reason, id } => {
                out.put_u8(0x03);
                out.put_u8(reason.code());
                out.put_u64(*id);
            }
            Message::KeepAlive => out.put_u8(0x04),
            Message::SessTerm { reply, reason } => {
                out.put_slice(&[0x05, u8::from(*reply), reason.code()]);
            }
            Message::MsgReject { reason, header } => out.put_slice(&[0x06, reason.code(), *header]),
            Message::SessInit(init) => init.encode(out),
            Message::Unknown { header } => out.put_u8(*header),
        }
    }
}

impl XferSegment {
    fn decode_body(input: &mut Bytes) -> Result<Self, DecodeError> {
        let mut fixed = take(input, 9)?;
        let flags = fixed.get_u8();
        let id = fixed.get_u64();
        let items = if flags & START != 0 { take_items(input)? } else { Bytes::new() };
        let length = take(input, 8)?.get_u64();
        Ok(XferSegment { flags, id, items, length })
    }

    fn encode(&self, out: &mut BytesMut) {
        out.put_u8(0x01);
        out.put_u8(self.flags);
        out.put_u64(self.id);
        if self.flags & START != 0 {
            put_items(&self.items, out);
        }
        out.put_u64(self.length);
    }
}

impl SessInit {
    fn decode_body(input: &mut Bytes) -> Result<Self, DecodeError> {
        let mut fixed = take(input, 20)?;
        let (keepalive, segment_mru, transfer_mru) = (fixed.get_u16(), fixed.get_u64(), fixed.get_u64());
        let length = usize::from(fixed.get_u16());
        if length > NODE_ID_BYTES_MAX {
            return Err(DecodeError::Limit { what: "the node id in a SESS_INIT" });
        }
        let node_id = String::from_utf8(take(input, length)?.to_vec())
            .map_err(|_| DecodeError::invalid("the node id in a SESS_INIT", "RFC 9174 4.6"))?;
        Ok(SessInit { keepalive, segment_mru, transfer_mru, node_id, items: take_items(input)? })
    }

    fn encode(&self, out: &mut BytesMut) {
        out.put_u8(0x07);
        out.put_u16(self.keepalive);
        out.put_u64(self.segment_mru);
        out.put_u64(self.transfer_mru);
        out.put_u16(u16::try_from(self.node_id.len()).expect("a node id's length has 16 bits"));
        out.put_slice(self.node_id.as_bytes());
        put_items(&self.items, out);
    }
}

fn take_items(input: &mut Bytes) -> Result<Bytes, DecodeError> {
    let length = take(input, 4)?.get_u32() as usize;
    if length > ITEMS_BYTES_MAX {
        return Err(DecodeError::Limit { what: "a list of extension items" });
    }
    take(input, length)
}

fn put_items(items: &Bytes, out: &mut BytesMut) {
    out.put_u32(u32::try_from(items.len()).expect("an extension list's length has 32 bits"));
    out.put_slice(items);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length_item(total: u64) -> Bytes {
        let mut out = BytesMut::new();
        let value = Bytes::copy_from_slice(&total.to_be_bytes());
        Item { critical: false, kind: TRANSFER_LENGTH, value }.encode(&mut out);
        out.freeze()
    }

    fn all_messages() -> Vec<(Message, &'static [u8])> {
        let first = XferSegment { flags: START, id: 7, items: length_item(1000), length: 600 };
        let last = XferSegment { flags: END, id: 7, items: Bytes::new(), length: 400 };
        let init = SessInit {
            keepalive: 30,
            segment_mru: 16_384,
            transfer_mru: 1 << 32,
            node_id: "ipn:2.0".to_owned(),
            items: Bytes::new(),
        };
        vec![
            (
                Message::XferSegment(first),
                b"\x01\x02\0\0\0\0\0\0\0\x07\0\0\0\x0d\0\0\x01\0\x08\0\0\0\0\0\0\x03\xe8\0\0\0\0\0\0\x02\x58",
            ),
            (Message::XferSegment(last), b"\x01\x01\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\x01\x90"),
            (
                Message::XferAck { flags: 0x81, id: 7, up_to: 1000 },
                b"\x02\x81\0\0\0\0\0\0\0\x07\0\0\0\0\0\0\x03\xe8",
            ),
            (
                Message::XferRefuse { reason: RefuseReason::NotAcceptable, id: 7 },
                b"\x03\x04\0\0\0\0\0\0\0\x07",
            ),
            (Message::XferRefuse { reason: RefuseReason::Other(99), id: 7 }, b"\x03\x63\0\0\0\0\0\0\0\x07"),
            (Message::KeepAlive, b"\x04"),
            (Message::SessTerm { reply: true, reason: TermReason::IdleTimeout }, b"\x05\x01\x01"),
            (Message::SessTerm { reply: false, reason: TermReason::Other(200) }, b"\x05\x00\xc8"),
            (Message::MsgReject { reason: RejectReason::Unexpected, header: 2 }, b"\x06\x03\x02"),
            (Message::SessInit(init), b"\x07\0\x1e\0\0\0\0\0\0\x40\0\0\0\0\x01\0\0\0\0\0\x07ipn:2.0\0\0\0\0"),
            (Message::Unknown { header: 0x2a }, b"\x2a"),
        ]
    }

    #[test]
    fn messages_and_their_bytes() {
        for (message, bytes) in all_messages() {
            let mut out = BytesMut::new();
            message.encode(&mut out);
            assert_eq!(&out[..], bytes, "{message:?}");
            let mut input = Bytes::from([bytes, b"rest"].concat());
            assert_eq!(Message::decode(&mut input).as_ref(), Ok(&message));
            assert_eq!(&input[..], b"rest", "{message:?}");
            for cut in 0..bytes.len() {
                let mut short = Bytes::copy_from_slice(&bytes[..cut]);
                assert_eq!(Message::decode(&mut short), Err(DecodeError::Incomplete), "{message:?} at {cut}");
            }
        }
    }

    #[test]
    fn the_contact_header_as_bytes() {
        let mut out = BytesMut::new();
        ContactHeader { can_tls: true }.encode(&mut out);
        assert_eq!(&out[..], b"dtn!\x04\x01");
        for cut in 0..out.len() {
            let mut short = Bytes::copy_from_slice(&out[..cut]);
            assert_eq!(ContactHeader::decode(&mut short), Err(DecodeError::Incomplete), "cut at {cut}");
        }
        let mut reserved = Bytes::from_static(b"dtn!\x04\xfe");
        assert_eq!(ContactHeader::decode(&mut reserved), Ok(ContactHeader { can_tls: false }));
    }

    #[test]
    fn a_list_of_items_ends_where_its_last_item_does() {
        let good = length_item(5);
        assert_eq!(items(good.clone()).map(|items| items.len()), Ok(1));
        let wrong = DecodeError::invalid("a list of extension items", "RFC 9174 4.6");
        for cut in 1..good.len() {
            assert_eq!(items(good.slice(..cut)), Err(wrong), "cut at {cut}");
        }
    }

    #[test]
    fn announced_lengths_of_any_size_cost_nothing() {
        let mut input = Bytes::from_static(b"\x01\x02\0\0\0\0\0\0\0\x07\xff\xff\xff\xff\0\0");
        let limit = DecodeError::Limit { what: "a list of extension items" };
        assert_eq!(Message::decode(&mut input), Err(limit));
        let mut input = Bytes::from_static(b"\x07\0\x1e\0\0\0\0\0\0\x40\0\0\0\0\x01\0\0\0\0\xff\xff");
        let limit = DecodeError::Limit { what: "the node id in a SESS_INIT" };
        assert_eq!(Message::decode(&mut input), Err(limit));
    }
}
