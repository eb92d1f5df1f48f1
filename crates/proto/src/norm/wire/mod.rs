//! Encoding of messages (RFC 5740 4).

mod feedback;
mod header;
mod sender;
mod stream;

pub use feedback::{
    Ack, AckContents, CcFeedback, CcFlags, Levels, Nack, RepairForm, RepairItem, RepairRequest,
};
pub use header::{FecScheme, Fti, NodeId, PayloadId, Timestamp};
pub use sender::{CcNode, Command, CommandMessage, Data, Flags, Info, SenderFields, data_header_bytes};
pub use stream::StreamFields;

use crate::codec::{self, DecodeError, take};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Version of the protocol (RFC 5740 4.1).
pub const VERSION: u8 = 1;
/// Length of the header that all messages have in common, octets.
const COMMON_BYTES: usize = 8;

const INFO: u8 = 1;
const DATA: u8 = 2;
const COMMAND: u8 = 3;
const NACK: u8 = 4;
const ACK: u8 = 5;

/// A message, which takes all of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the message among those of its sender; not part of the repair procedures.
    pub sequence: u16,
    /// Node that sends the message.
    pub source: NodeId,
    /// Contents.
    pub body: Body,
}

/// Contents of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// NORM_INFO.
    Info(Info),
    /// NORM_DATA.
    Data(Data),
    /// NORM_CMD.
    Command(CommandMessage),
    /// NORM_NACK.
    Nack(Nack),
    /// NORM_ACK.
    Ack(Ack),
}

codec::variants!(Body: Info(Info), Data(Data), Command(CommandMessage), Nack(Nack), Ack(Ack));

impl Message {
    /// Decodes a message, which takes all of the input. Unknown header extensions are skipped.
    ///
    /// # Errors
    /// Fails if the input is not a message, if its version or type is another one, or if its FEC scheme is unknown.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let mut common = take(input, COMMON_BYTES)?;
        let (kind, words) = (common.get_u8(), usize::from(common.get_u8()));
        if kind >> 4 != VERSION {
            return Err(DecodeError::Unsupported { what: "the version", clause: "RFC 5740 4.1" });
        }
        let (sequence, source) = (common.get_u16(), NodeId(common.get_u32()));
        let header_bytes = (4 * words).checked_sub(COMMON_BYTES);
        let Some(header_bytes) = header_bytes else {
            return Err(DecodeError::invalid("header length", "RFC 5740 4.1"));
        };
        let header = take(input, header_bytes)?;
        let payload = input.split_to(input.len());
        let body = match kind & 0x0f {
            INFO => Info::decode(header, payload)?.into(),
            DATA => Data::decode(header, payload)?.into(),
            COMMAND => CommandMessage::decode(header, payload)?.into(),
            NACK => Nack::decode(header, payload)?.into(),
            ACK => Ack::decode(header, payload)?.into(),
            _ => {
                return Err(DecodeError::Unsupported {
                    what: "the type of the message",
                    clause: "RFC 5740 4.1",
                });
            }
        };
        Ok(Message { sequence, source, body })
    }

    /// Appends the message.
    ///
    /// # Panics
    /// Panics if a header is longer than its field of eight bits can say, which no list in a header can cause.
    pub fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        let kind = match self.body {
            Body::Info(_) => INFO,
            Body::Data(_) => DATA,
            Body::Command(_) => COMMAND,
            Body::Nack(_) => NACK,
            Body::Ack(_) => ACK,
        };
        out.put_u8(VERSION << 4 | kind);
        out.put_u8(0);
        out.put_u16(self.sequence);
        out.put_u32(self.source.0);
        match &self.body {
            Body::Info(info) => info.encode_header(out),
            Body::Data(data) => data.encode_header(out),
            Body::Command(command) => command.encode_header(out),
            Body::Nack(nack) => nack.encode_header(out),
            Body::Ack(ack) => ack.encode_header(out),
        }
        let words = (out.len() - start) / 4;
        out[start + 1] = u8::try_from(words).expect("a header of fixed fields and a few extensions");
        match &self.body {
            Body::Info(info) => out.extend_from_slice(&info.payload),
            Body::Data(data) => out.extend_from_slice(&data.payload),
            Body::Command(command) => command.encode_payload(out),
            Body::Nack(nack) => nack.encode_payload(out),
            Body::Ack(ack) => ack.encode_payload(out),
        }
    }

    /// Returns the encoding.
    pub fn to_bytes(&self) -> Bytes {
        let payload = match &self.body {
            Body::Data(Data { payload, .. }) | Body::Info(Info { payload, .. }) => payload.len(),
            _ => 64,
        };
        codec::encoded(64 + payload, |out| self.encode(out))
    }
}

/// Returns true if a datagram is a message.
pub fn is_message(datagram: &[u8]) -> bool {
    Message::decode(&mut Bytes::copy_from_slice(datagram)).is_ok()
}
