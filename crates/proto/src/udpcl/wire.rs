//! Packets and their messages (draft-ietf-dtn-udpcl-04 3.3 to 3.5).
//!
//! A packet has no header: the first octet of a message tells its type (table 1). A bundle, padding and a DTLS record take the
//! rest of the packet; extension maps may follow each other. The draft does not require the shortest form of CBOR, so any form
//! is accepted; what is sent is in shortest form.

use crate::codec::cbor::{self, Major};
use crate::codec::{DecodeError, encoded};
use bytes::{Bytes, BytesMut};

/// Contents of a keep-alive: padding of exactly four octets (3.3; RFC 7122 3.4).
pub const KEEPALIVE: [u8; 4] = [0; 4];

/// First octet of a bundle of version 6.
const VERSION_6: u8 = 0x06;
/// Key of a transfer in an extension map (6.3).
const TRANSFER: u64 = 2;
/// Maximum nesting of CBOR in an extension map; its own items have the depth 1.
const DEPTH_MAX: u8 = 16;
/// Clauses for errors.
const MESSAGES: &str = "draft-ietf-dtn-udpcl 3.4";
const ITEMS: &str = "draft-ietf-dtn-udpcl 3.5";
const TRANSFERS: &str = "draft-ietf-dtn-udpcl 3.5.2";

/// Returns true if a bundle may begin with this octet: the version of version 6, or an array of CBOR.
pub fn begins_bundle(octet: u8) -> bool {
    matches!(octet, VERSION_6 | 0x80..=0x9f)
}

/// Returns true if an extension map begins with this octet: a map of CBOR.
pub fn begins_extensions(octet: u8) -> bool {
    matches!(octet, 0xa0..=0xbf)
}

/// Message of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A bundle without a frame; the entire packet.
    Bundle(Bytes),
    /// An extension map.
    Extensions(ExtensionMap),
    /// Padding of this length, the rest of the packet. Its octets have no meaning.
    Padding(usize),
    /// A record of DTLS; the entire packet.
    Dtls(Bytes),
}

impl Message {
    /// Decodes the message at the front of a packet's rest, which is not empty.
    ///
    /// # Errors
    /// Fails as [`Unsupported`](DecodeError::Unsupported) if no type of message begins with the first octet, and otherwise on
    /// an extension map that is not well-formed.
    pub fn decode(input: &mut Bytes) -> Result<Message, DecodeError> {
        let &first = input.first().ok_or(DecodeError::Incomplete)?;
        let rest = |input: &mut Bytes| input.split_to(input.len());
        match first {
            0x00 => Ok(Message::Padding(rest(input).len())),
            _ if begins_bundle(first) => Ok(Message::Bundle(rest(input))),
            0x14..=0x1a | 0x20..=0x3f => Ok(Message::Dtls(rest(input))),
            _ if begins_extensions(first) => ExtensionMap::decode(input).map(Message::Extensions),
            _ => Err(DecodeError::Unsupported { what: "the type of a message", clause: MESSAGES }),
        }
    }

    /// Appends the message.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Message::Bundle(bytes) | Message::Dtls(bytes) => out.extend_from_slice(bytes),
            Message::Extensions(map) => map.encode(out),
            Message::Padding(length) => out.resize(out.len() + length, 0),
        }
    }
}

/// Messages of a received packet, up to the first error.
#[derive(Debug)]
pub struct Messages {
    rest: Bytes,
    has_begun: bool,
}

impl Messages {
    /// Reads a packet.
    pub fn new(packet: Bytes) -> Self {
        Messages { rest: packet, has_begun: false }
    }
}

impl Iterator for Messages {
    type Item = Result<Message, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let is_first = !core::mem::replace(&mut self.has_begun, true);
        let message = match Message::decode(&mut self.rest) {
            Ok(Message::Bundle(_) | Message::Dtls(_)) if !is_first => {
                Err(DecodeError::invalid("a message after an extension map", MESSAGES))
            }
            message => message,
        };
        if message.is_err() {
            self.rest.clear();
        }
        Some(message)
    }
}

/// Extension map (3.5). Items of which this implementation makes no use are skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionMap {
    /// The transfer, if the map contains a valid one.
    pub transfer: Option<Transfer>,
    /// The map contains a transfer of other types of CBOR than the draft's (3.6.2).
    pub has_malformed_transfer: bool,
    /// Number of other items.
    pub skipped: u64,
}

impl ExtensionMap {
    /// Decodes the map at the front.
    ///
    /// # Errors
    /// Fails on CBOR that is not well-formed or nested too deeply, on keys that are not signed integers of 16 bits, and on a second
    /// transfer.
    pub fn decode(input: &mut Bytes) -> Result<ExtensionMap, DecodeError> {
        let (Major::Map, mut left) = cbor::any_head(input)? else {
            return Err(DecodeError::invalid("an extension map", ITEMS));
        };
        let mut map = ExtensionMap::default();
        while !ends(input, &mut left)? {
            let key = match cbor::any_head(input)? {
                (Major::Unsigned, Some(key)) if key <= i16::MAX as u64 => Some(key),
                (Major::Negative, Some(key)) if key <= i16::MAX as u64 => None,
                _ => return Err(DecodeError::invalid("the type of an extension", ITEMS)),
            };
            let item = cbor::any_item(input, DEPTH_MAX)?;
            if key != Some(TRANSFER) {
                map.skipped += 1;
                continue;
            }
            if map.transfer.is_some() || map.has_malformed_transfer {
                return Err(DecodeError::invalid("a second transfer in an extension map", ITEMS));
            }
            map.transfer = Transfer::decode(&mut item.clone()).ok();
            map.has_malformed_transfer = map.transfer.is_none();
        }
        Ok(map)
    }

    /// Appends the map, without the items that were skipped.
    pub fn encode(&self, out: &mut BytesMut) {
        cbor::put_head(Major::Map, u64::from(self.transfer.is_some()), out);
        if let Some(transfer) = &self.transfer {
            cbor::put_unsigned(TRANSFER, out);
            transfer.encode(out);
        }
    }
}

/// Consumes the end of an array or map if it is at the front; `left` is the number of its entries that are still to come, `None` if
/// it ends with a break. Returns true at the end.
fn ends(input: &mut Bytes, left: &mut Option<u64>) -> Result<bool, DecodeError> {
    match left {
        None => cbor::take_break(input),
        Some(0) => Ok(true),
        Some(left) => {
            *left -= 1;
            Ok(false)
        }
    }
}

/// Place of a segment in a transfer of several ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Total length of the transfer, bytes.
    pub total_bytes: u64,
    /// Offset of the segment in the transfer, bytes.
    pub offset: u64,
}

/// Segment of an identified transfer, or all of it (3.5.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Transfer ID, which its sender has chosen.
    pub id: u64,
    /// Place in the transfer; `None` if the segment is all of it.
    pub place: Option<Place>,
    /// Bytes of the segment.
    pub data: Bytes,
}

impl Transfer {
    /// Decodes the item at the front.
    ///
    /// # Errors
    /// Fails on other types than those of the draft.
    pub fn decode(input: &mut Bytes) -> Result<Transfer, DecodeError> {
        let (Major::Array, mut left) = cbor::any_head(input)? else { return Err(not_a_transfer()) };
        let mut uints = [0; 3];
        let mut count = 0;
        while !ends(input, &mut left)? {
            match cbor::any_head(input)? {
                (Major::Unsigned, Some(value)) if count < uints.len() => {
                    uints[count] = value;
                    count += 1;
                }
                (Major::ByteString, length) => {
                    let data = byte_string(input, length)?;
                    let place = match count {
                        1 => None,
                        3 => Some(Place { total_bytes: uints[1], offset: uints[2] }),
                        _ => return Err(not_a_transfer()),
                    };
                    let ended = ends(input, &mut left)?;
                    return if ended {
                        Ok(Transfer { id: uints[0], place, data })
                    } else {
                        Err(not_a_transfer())
                    };
                }
                _ => return Err(not_a_transfer()),
            }
        }
        Err(not_a_transfer())
    }

    /// Appends the item.
    pub fn encode(&self, out: &mut BytesMut) {
        match self.place {
            None => cbor::put_heads([(Major::Array, 2), (Major::Unsigned, self.id)], out),
            Some(Place { total_bytes, offset }) => cbor::put_heads(
                [
                    (Major::Array, 4),
                    (Major::Unsigned, self.id),
                    (Major::Unsigned, total_bytes),
                    (Major::Unsigned, offset),
                ],
                out,
            ),
        }
        cbor::put_byte_string(&self.data, out);
    }

    /// Returns a packet with this transfer in an extension map of its own.
    pub fn to_packet(&self) -> Bytes {
        encoded(self.data.len() + HEADERS_BYTES_MAX, |out| {
            cbor::put_heads([(Major::Map, 1), (Major::Unsigned, TRANSFER)], out);
            self.encode(out);
        })
    }
}

/// Maximum length of all heads of a packet with one transfer, bytes.
const HEADERS_BYTES_MAX: usize = 3 + 4 * 9;

/// Returns the length of the packet with a transfer in one segment of `bytes`.
pub fn single_packet_bytes(id: u64, bytes: u64) -> u64 {
    bytes.saturating_add((3 + cbor::head_length(id) + cbor::head_length(bytes)) as u64)
}

/// Returns the length of the segments of a transfer of `total_bytes` in packets of at most `packet_bytes_max`; at least 1.
pub fn segment_bytes(id: u64, total_bytes: u64, packet_bytes_max: u64) -> u64 {
    let heads =
        cbor::head_length(id) + 2 * cbor::head_length(total_bytes) + cbor::head_length(packet_bytes_max);
    packet_bytes_max.saturating_sub((3 + heads) as u64).max(1)
}

fn not_a_transfer() -> DecodeError {
    DecodeError::invalid("a transfer", TRANSFERS)
}

/// Consumes the contents of a byte string: of this length, or in chunks up to a break.
fn byte_string(input: &mut Bytes, length: Option<u64>) -> Result<Bytes, DecodeError> {
    let take = |input: &mut Bytes, length: u64| match usize::try_from(length) {
        Ok(length) if length <= input.len() => Ok(input.split_to(length)),
        _ => Err(DecodeError::Incomplete),
    };
    if let Some(length) = length {
        return take(input, length);
    }
    let mut whole = BytesMut::new();
    while !cbor::take_break(input)? {
        let (Major::ByteString, Some(length)) = cbor::any_head(input)? else { return Err(not_a_transfer()) };
        whole.extend_from_slice(&take(input, length)?);
    }
    Ok(whole.freeze())
}
