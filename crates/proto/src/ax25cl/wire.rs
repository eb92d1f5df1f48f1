//! Packets as octets: a sequence of messages; bundle bytes without a length are the last one.

use crate::codec::{DecodeError, sdnv, take};
use crate::service::RefuseReason;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Maximum length of a node ID in a hello, bytes.
pub const NODE_ID_BYTES_MAX: usize = 100;
/// First octets of a hello: two letters and the version.
pub const MAGIC: [u8; 3] = *b"LW\x01";

const WHOLE: u8 = 0x10;
const PROGRESS: u8 = 0x11;
const REFUSE: u8 = 0x20;
const CANCEL: u8 = 0x30;
const DATA: u8 = 0x80;
const BEGINS: u8 = 4;
const NAMED: u8 = 2;
const MEASURED: u8 = 1;

/// Identity of a side and its state of the session: the first message of each side on a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// True to request an answer at once.
    pub asks: bool,
    /// True if the sender keeps the stored beginning of a bundle that breaks off.
    pub keeps_prefix: bool,
    /// The sender's number for the session, drawn at random.
    pub tag: u32,
    /// Resumption of a session: the peer's tag, zero if unknown, and the number of numbered packets received. `None`
    /// for a new session.
    pub resume: Option<(u32, u64)>,
    /// Node ID of the sender.
    pub node_id: String,
}

impl Hello {
    /// Appends the hello.
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

    /// Consumes a hello; unknown flags are ignored.
    ///
    /// # Errors
    /// Fails if the octets are no hello, or one of another version.
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
            return Err(DecodeError::Limit { what: "the node ID in a hello" });
        }
        let node_id = String::from_utf8(take(input, length as usize)?.to_vec())
            .map_err(|_| DecodeError::invalid("the node ID in a hello", "docs/ax25.md"))?;
        Ok(Hello { asks: flags & 1 != 0, keeps_prefix: flags & 2 != 0, tag, resume, node_id })
    }
}

/// A message about a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// The receiver has stored the complete bundle.
    Whole {
        /// Number of the bundle: how many the sender had begun before it.
        number: u64,
    },
    /// The receiver has stored the beginning of the bundle.
    Progress {
        /// Number of the bundle.
        number: u64,
        /// Stored bytes from the beginning of the bundle.
        up_to: u64,
    },
    /// The receiver refuses the bundle.
    Refuse {
        /// Number of the bundle.
        number: u64,
        /// Reason for the refusal.
        reason: RefuseReason,
    },
    /// The sender cancels the bundle.
    Cancel {
        /// Number of the bundle.
        number: u64,
    },
    /// The next bytes of a bundle.
    Data {
        /// Length of the bundle, if these are the first bytes of a new one; `None` otherwise.
        begins: Option<u64>,
        /// Number of the bundle; `None` for a new one, and for the bundle of the previous bytes.
        number: Option<u64>,
        /// Bytes of the bundle.
        data: Bytes,
    },
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Hello, in the first packet on a link only.
    pub hello: Option<Hello>,
    /// Messages in their order; a packet with any is numbered.
    pub messages: Vec<Message>,
}

impl Packet {
    /// Consumes a complete packet.
    ///
    /// # Errors
    /// Fails if the octets are not a valid packet.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let greets = input.first() == Some(&MAGIC[0]);
        let hello = if greets { Some(Hello::decode(input)?) } else { None };
        let mut messages = Vec::new();
        while !input.is_empty() {
            messages.push(decode_message(input)?);
        }
        Ok(Packet { hello, messages })
    }

    /// Appends the packet.
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

/// Appends the header of bundle bytes; without a length the bytes end with the packet.
pub(super) fn encode_data(begins: Option<u64>, number: Option<u64>, length: Option<u64>, out: &mut BytesMut) {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.put_u8(
        DATA | flag(begins.is_some(), BEGINS)
            | flag(number.is_some(), NAMED)
            | flag(length.is_some(), MEASURED),
    );
    [begins, number, length].into_iter().flatten().for_each(|value| sdnv::encode(value, out));
}

/// Returns the length of that header without a length field, bytes.
pub(super) fn data_bytes(begins: Option<u64>, number: Option<u64>) -> usize {
    1 + begins.map_or(0, sdnv::length) + number.map_or(0, sdnv::length)
}

/// Appends a message without bundle bytes.
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
            out.put_u8(REFUSE | reason.code() & 0xf);
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
            Message::Refuse { number: sdnv::decode(input)?, reason: RefuseReason::from_code(kind & 0xf) }
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

fn u32_of(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
