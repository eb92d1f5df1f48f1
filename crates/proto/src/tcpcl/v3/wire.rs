//! Encoding of the messages of version 3 (RFC 7242 4.1 and 5).
//!
//! A DATA_SEGMENT is only its header here: the segment's bytes follow it in the stream.

use crate::codec::{DecodeError, codes, sdnv, take, take_byte};
use crate::service::RefuseReason;
use crate::tcpcl::contact::MAGIC;
use bytes::{BufMut, Bytes, BytesMut};

/// Maximum length of an EID accepted in a contact header, bytes.
pub const EID_BYTES_MAX: usize = 1023;

/// Version number in the contact header.
pub const VERSION: u8 = 3;

/// Contact header (RFC 7242 4.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContactHeader {
    /// Requests acknowledgement of segments.
    pub acknowledgements: bool,
    /// Requests reactive fragmentation.
    pub reactive_fragmentation: bool,
    /// Supports refusal of bundles.
    pub refusal: bool,
    /// Requests LENGTH messages.
    pub lengths: bool,
    /// Keepalive interval, seconds; zero if disabled.
    pub keepalive: u16,
    /// EID of the sender.
    pub eid: String,
}

impl ContactHeader {
    /// Decodes a contact header; fails unless version and magic string are correct. Reserved flags are ignored.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let fixed = take(input, 8)?;
        if fixed[..4] != MAGIC || fixed[4] != VERSION {
            return Err(DecodeError::invalid("the magic or the version", "RFC 7242 4.2"));
        }
        let flags = fixed[5];
        let length = sdnv::decode(input)?;
        if length > EID_BYTES_MAX as u64 {
            return Err(DecodeError::Limit { what: "the EID in a contact header" });
        }
        let eid = String::from_utf8(take(input, length as usize)?.to_vec())
            .map_err(|_| DecodeError::invalid("the EID in a contact header", "RFC 7242 4.1"))?;
        Ok(ContactHeader {
            acknowledgements: flags & 1 != 0,
            reactive_fragmentation: flags & 2 != 0,
            refusal: flags & 4 != 0,
            lengths: flags & 8 != 0,
            keepalive: u16::from_be_bytes([fixed[6], fixed[7]]),
            eid,
        })
    }

    /// Appends the contact header.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_slice(&MAGIC);
        out.put_u8(VERSION);
        let flags = [self.acknowledgements, self.reactive_fragmentation, self.refusal, self.lengths];
        out.put_u8(flags.iter().enumerate().map(|(bit, &set)| u8::from(set) << bit).sum());
        out.put_u16(self.keepalive);
        sdnv::encode(self.eid.len() as u64, out);
        out.put_slice(self.eid.as_bytes());
    }
}

/// Reason for shutting down a connection (RFC 7242 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutdownReason {
    /// 0: the connection is idle.
    IdleTimeout,
    /// 1: the version is not supported.
    VersionMismatch,
    /// 2: the sender is too busy.
    Busy,
    /// Any other code.
    Other(u8),
}

codes!(ShutdownReason: u8, from_code, code, 0 IdleTimeout, 1 VersionMismatch, 2 Busy, Other);

/// Message (RFC 7242 5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Header of a segment (5.2); `length` bytes of bundle follow.
    DataSegment {
        /// True for the first segment of a bundle.
        start: bool,
        /// True for the last segment of a bundle.
        end: bool,
        /// Number of bytes that follow.
        length: u64,
    },
    /// Acknowledgement of segments (5.3).
    AckSegment {
        /// Acknowledged offset in the bundle, bytes.
        up_to: u64,
    },
    /// Refusal of a bundle (5.4).
    RefuseBundle {
        /// Reason: one of the first four, or another code of four bits.
        reason: RefuseReason,
    },
    /// Keepalive (5.6).
    KeepAlive,
    /// Shutdown of the connection (6.1).
    Shutdown {
        /// Reason; `None` if unspecified.
        reason: Option<ShutdownReason>,
        /// Delay before the peer may connect again, seconds; zero to forbid it, `None` if unspecified.
        delay: Option<u64>,
    },
    /// Length of the next bundle (5.5).
    Length {
        /// Length, bytes.
        total: u64,
    },
    /// Message of an unassigned type; its length is unknown, so nothing after it can be decoded.
    Unknown {
        /// Header byte of the message.
        header: u8,
    },
}

impl Message {
    /// Decodes a message. Unassigned flags are ignored.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let header = take_byte(input)?;
        let flags = header & 0xf;
        Ok(match header >> 4 {
            1 => Message::DataSegment {
                start: flags & 2 != 0,
                end: flags & 1 != 0,
                length: sdnv::decode(input)?,
            },
            2 => Message::AckSegment { up_to: sdnv::decode(input)? },
            3 if flags > 3 => Message::RefuseBundle { reason: RefuseReason::Other(flags) },
            3 => Message::RefuseBundle { reason: RefuseReason::from_code(flags) },
            4 => Message::KeepAlive,
            5 => {
                let reason =
                    if flags & 2 != 0 { Some(ShutdownReason::from_code(take_byte(input)?)) } else { None };
                let delay = if flags & 1 != 0 { Some(sdnv::decode(input)?) } else { None };
                Message::Shutdown { reason, delay }
            }
            6 => Message::Length { total: sdnv::decode(input)? },
            _ => Message::Unknown { header },
        })
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut BytesMut) {
        match *self {
            Message::DataSegment { start, end, length } => {
                out.put_u8(0x10 | u8::from(start) << 1 | u8::from(end));
                sdnv::encode(length, out);
            }
            Message::AckSegment { up_to } => {
                out.put_u8(0x20);
                sdnv::encode(up_to, out);
            }
            Message::RefuseBundle { reason } => out.put_u8(0x30 | reason.code() & 0xf),
            Message::KeepAlive => out.put_u8(0x40),
            Message::Shutdown { reason, delay } => {
                out.put_u8(0x50 | u8::from(reason.is_some()) << 1 | u8::from(delay.is_some()));
                if let Some(reason) = reason {
                    out.put_u8(reason.code());
                }
                if let Some(delay) = delay {
                    sdnv::encode(delay, out);
                }
            }
            Message::Length { total } => {
                out.put_u8(0x60);
                sdnv::encode(total, out);
            }
            Message::Unknown { header } => out.put_u8(header),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contact() -> ContactHeader {
        ContactHeader {
            acknowledgements: true,
            reactive_fragmentation: true,
            refusal: false,
            lengths: false,
            keepalive: 10,
            eid: "dtn://moon".to_owned(),
        }
    }

    fn all_messages() -> Vec<(Message, &'static [u8])> {
        vec![
            (Message::DataSegment { start: true, end: false, length: 4096 }, &[0x12, 0xa0, 0x00]),
            (Message::DataSegment { start: false, end: true, length: 1 }, &[0x11, 0x01]),
            (Message::AckSegment { up_to: 300 }, &[0x20, 0x82, 0x2c]),
            (Message::RefuseBundle { reason: RefuseReason::NoResources }, &[0x32]),
            (Message::RefuseBundle { reason: RefuseReason::Other(9) }, &[0x39]),
            (Message::KeepAlive, &[0x40]),
            (Message::Shutdown { reason: None, delay: None }, &[0x50]),
            (Message::Shutdown { reason: Some(ShutdownReason::Busy), delay: None }, &[0x52, 0x02]),
            (
                Message::Shutdown { reason: Some(ShutdownReason::IdleTimeout), delay: Some(30) },
                &[0x53, 0x00, 30],
            ),
            (Message::Shutdown { reason: None, delay: Some(0) }, &[0x51, 0x00]),
            (Message::Length { total: 1_000_000 }, &[0x60, 0xbd, 0x84, 0x40]),
            (Message::Unknown { header: 0x9c }, &[0x9c]),
        ]
    }

    #[test]
    fn messages_and_their_bytes() {
        for (message, bytes) in all_messages() {
            let mut out = BytesMut::new();
            message.encode(&mut out);
            assert_eq!(&out[..], bytes, "{message:?}");
            let mut input = Bytes::from([bytes, b"rest"].concat());
            assert_eq!(Message::decode(&mut input), Ok(message));
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
        contact().encode(&mut out);
        assert_eq!(&out[..], b"dtn!\x03\x03\x00\x0a\x0adtn://moon");
        for cut in 0..out.len() {
            let mut short = Bytes::copy_from_slice(&out[..cut]);
            assert_eq!(ContactHeader::decode(&mut short), Err(DecodeError::Incomplete), "cut at {cut}");
        }
        out[5] |= 0xf0;
        assert_eq!(ContactHeader::decode(&mut out.freeze()), Ok(contact()), "reserved flags are ignored");
    }

    #[test]
    fn an_eid_of_any_announced_length_costs_nothing() {
        let mut input = Bytes::from_static(b"dtn!\x03\x00\x00\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
        let limit = DecodeError::Limit { what: "the EID in a contact header" };
        assert_eq!(ContactHeader::decode(&mut input), Err(limit));
    }
}
