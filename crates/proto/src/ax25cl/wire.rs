//! Packets as octets: messages one behind the other, of which bytes of a bundle without a length are the last.

use crate::codec::{DecodeError, sdnv};
use crate::service::RefuseReason;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// The longest node id in a hello, bytes.
pub const NODE_ID_BYTES_MAX: usize = 100;
/// What a hello begins with: two letters and the version.
pub const MAGIC: [u8; 3] = *b"LW\x01";

const WHOLE: u8 = 0x10;
const PROGRESS: u8 = 0x11;
const REFUSE: u8 = 0x20;
const CANCEL: u8 = 0x30;
const DATA: u8 = 0x80;
const BEGINS: u8 = 4;
const NAMED: u8 = 2;
const MEASURED: u8 = 1;

/// Who speaks, and what it has of the session: the first message of each side on a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// An answer is wanted at once.
    pub asks: bool,
    /// The sender keeps the safe beginning of a bundle that breaks off.
    pub keeps_prefix: bool,
    /// The sender's number for the session, drawn at random.
    pub tag: u32,
    /// The session goes on: the peer's tag, zero where it was never heard, and how many numbered packets came.
    pub resume: Option<(u32, u64)>,
    /// The sender's node id.
    pub node_id: String,
}

impl Hello {
    /// Appends it.
    pub fn encode(&self, out: &mut BytesMut) {
        out.put_slice(&MAGIC);
        let flags = [self.asks, self.keeps_prefix, self.resume.is_some()];
        out.put_u8(flags.iter().enumerate().map(|(bit, &set)| u8::from(set) << bit).sum());
        out.put_u32(self.tag);
        if let Some((tag, received)) = self.resume {
            out.put_u32(tag);
            sdnv::encode(received, out);
        }
        sdnv::encode(self.node_id.len() as u64, out);
        out.put_slice(self.node_id.as_bytes());
    }

    /// Takes it; other flags are ignored.
    ///
    /// # Errors
    /// It is none, or of another version.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let fixed = take(input, 8)?;
        if fixed[..3] != MAGIC {
            return Err(DecodeError::invalid("the letters of a hello", "docs/ax25.md"));
        }
        let (flags, tag) = (fixed[3], u32_of(&fixed[4..]));
        let resume = match flags & 4 {
            0 => None,
            _ => Some((u32_of(&take(input, 4)?), sdnv::decode(input)?)),
        };
        let length = sdnv::decode(input)?;
        if length > NODE_ID_BYTES_MAX as u64 {
            return Err(DecodeError::Limit { what: "the node id in a hello" });
        }
        let node_id = String::from_utf8(take(input, length as usize)?.to_vec())
            .map_err(|_| DecodeError::invalid("the node id in a hello", "docs/ax25.md"))?;
        Ok(Hello { asks: flags & 1 != 0, keeps_prefix: flags & 2 != 0, tag, resume, node_id })
    }
}

/// What is said of bundles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// All of a bundle is safe.
    Whole {
        /// Its number: how many the sender had begun before it.
        number: u64,
    },
    /// Its beginning is safe.
    Progress {
        /// Its number.
        number: u64,
        /// Bytes from its beginning.
        up_to: u64,
    },
    /// It is not wanted.
    Refuse {
        /// Its number.
        number: u64,
        /// Why.
        reason: RefuseReason,
    },
    /// The sender gives it up.
    Cancel {
        /// Its number.
        number: u64,
    },
    /// Its next bytes.
    Data {
        /// They are its first: its length. It is then a new bundle's.
        begins: Option<u64>,
        /// Its number, where it is not the bundle of the bytes before, nor a new one.
        number: Option<u64>,
        /// The bytes.
        data: Bytes,
    },
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The first of a link begins with it.
    pub hello: Option<Hello>,
    /// In this order; a packet with any is numbered.
    pub messages: Vec<Message>,
}

impl Packet {
    /// Takes all of a packet.
    ///
    /// # Errors
    /// It is none.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let greets = input.first() == Some(&MAGIC[0]);
        let hello = if greets { Some(Hello::decode(input)?) } else { None };
        let mut messages = Vec::new();
        while !input.is_empty() {
            messages.push(decode_message(input)?);
        }
        Ok(Packet { hello, messages })
    }

    /// Appends it.
    pub fn encode(&self, out: &mut BytesMut) {
        if let Some(hello) = &self.hello {
            hello.encode(out);
        }
        for (at, message) in self.messages.iter().enumerate() {
            match message {
                Message::Data { begins, number, data } => {
                    let last = at + 1 == self.messages.len();
                    encode_data(*begins, *number, (!last).then_some(data.len() as u64), out);
                    out.put_slice(data);
                }
                control => encode_control(control, out),
            }
        }
    }
}

/// Appends the header of bytes; without a length they end with the packet.
pub(super) fn encode_data(begins: Option<u64>, number: Option<u64>, length: Option<u64>, out: &mut BytesMut) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.put_u8(
        DATA | flag(begins.is_some(), BEGINS)
            | flag(number.is_some(), NAMED)
            | flag(length.is_some(), MEASURED),
    );
    [begins, number, length].into_iter().flatten().for_each(|value| sdnv::encode(value, out));
}

/// How long that header is.
pub(super) fn data_bytes(begins: Option<u64>, number: Option<u64>) -> usize {
    1 + begins.map_or(0, sdnv::length) + number.map_or(0, sdnv::length)
}

/// Appends a message without bytes of a bundle.
pub(super) fn encode_control(message: &Message, out: &mut BytesMut) {
    match *message {
        Message::Whole { number } => {
            out.put_u8(WHOLE);
            sdnv::encode(number, out);
        }
        Message::Progress { number, up_to } => {
            out.put_u8(PROGRESS);
            sdnv::encode(number, out);
            sdnv::encode(up_to, out);
        }
        Message::Refuse { number, reason } => {
            out.put_u8(REFUSE | refuse_code(reason));
            sdnv::encode(number, out);
        }
        Message::Cancel { number } => {
            out.put_u8(CANCEL);
            sdnv::encode(number, out);
        }
        Message::Data { .. } => unreachable!("it has bytes"),
    }
}

fn decode_message(input: &mut Bytes) -> Result<Message, DecodeError> {
    let kind = input.get_u8();
    Ok(match kind {
        WHOLE => Message::Whole { number: sdnv::decode(input)? },
        PROGRESS => Message::Progress { number: sdnv::decode(input)?, up_to: sdnv::decode(input)? },
        CANCEL => Message::Cancel { number: sdnv::decode(input)? },
        kind if kind & 0xf0 == REFUSE => {
            Message::Refuse { number: sdnv::decode(input)?, reason: refuse_reason(kind & 0xf) }
        }
        kind if kind & !(BEGINS | NAMED | MEASURED) == DATA => {
            let mut given = |flag| if kind & flag == 0 { Ok(None) } else { sdnv::decode(input).map(Some) };
            let (begins, number, length) = (given(BEGINS)?, given(NAMED)?, given(MEASURED)?);
            if begins.is_some() && number.is_some() {
                return Err(DecodeError::invalid("a new bundle with a number", "docs/ax25.md"));
            }
            let data = match length {
                None => input.split_to(input.len()),
                Some(length) => take(input, usize::try_from(length).unwrap_or(usize::MAX))?,
            };
            Message::Data { begins, number, data }
        }
        _ => return Err(DecodeError::invalid("a kind of message", "docs/ax25.md")),
    })
}

fn take(input: &mut Bytes, length: usize) -> Result<Bytes, DecodeError> {
    if input.len() < length {
        return Err(DecodeError::Incomplete);
    }
    Ok(input.split_to(length))
}

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn refuse_code(reason: RefuseReason) -> u8 {
    match reason {
        RefuseReason::Unknown => 0,
        RefuseReason::Completed => 1,
        RefuseReason::NoResources => 2,
        RefuseReason::Retransmit => 3,
        RefuseReason::NotAcceptable => 4,
        RefuseReason::ExtensionFailure => 5,
        RefuseReason::SessionTerminating => 6,
        RefuseReason::Other(code) => code & 0xf,
    }
}

fn refuse_reason(code: u8) -> RefuseReason {
    match code {
        0 => RefuseReason::Unknown,
        1 => RefuseReason::Completed,
        2 => RefuseReason::NoResources,
        3 => RefuseReason::Retransmit,
        4 => RefuseReason::NotAcceptable,
        5 => RefuseReason::ExtensionFailure,
        6 => RefuseReason::SessionTerminating,
        other => RefuseReason::Other(other),
    }
}
