//! Packets: a header with its own checksum, a payload with another one, and the parity of a code that corrects bit errors.
//!
//! ```text
//!   0                   1                   2                   3
//!   0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//!  +-------------------------------+-------------------------------+
//!  |          source port          |       destination port        |
//!  +-------+-------+-------+---+-+-+---------------+---------------+
//!  |version| type  |service|pre|H|B|   strength    |     flags     |
//!  +-------+-------+-------+---+-+-+---------------+---------------+
//!  |                        sequence number                        |
//!  +---------------------------------------------------------------+
//!  |                           timestamp                           |
//!  +-------------------------------+-------------------------------+
//!  |        payload length         |  header checksum (CRC-16/X-25)|
//!  +-------------------------------+-------------------------------+
//!  |  payload, then its CRC-32; both absent if the length is zero  |
//!  +---------------------------------------------------------------+
//!  |        parity of the code: 2 x strength octets a word         |
//!  +---------------------------------------------------------------+
//! ```
//!
//! Octets are in network order. The code covers payload and CRC-32, in interleaved words; with H set it covers the
//! header as well, in consecutive words. With B set, sequence numbers are those of symbols in blocks.

use super::VERSION;
use crate::codec::crc::{crc16_x25, crc32};
use crate::fec::{BitErrorCode, Correction, STRENGTH_MAX, WordLayout};
use crate::service::{Precedence, TransportService};
use bytes::{BufMut, Bytes, BytesMut};

/// Length of the header, octets.
pub const HEADER_BYTES: usize = 20;
/// Length of the checksum of a payload, octets.
pub const TRAILER_BYTES: usize = 4;
/// Length of an acknowledgement after the first one of a packet, octets.
pub const NUMBER_BYTES: usize = 4;
/// Octets before the symbol in the payload of a segment with parity across segments: see [`ParityPrefix`].
pub const PARITY_PREFIX_BYTES: usize = 4;
/// Length of the fixed part of the payload of a report, octets.
pub const REPORT_BYTES: usize = 12;
/// Length of the entry of a block in a report, octets.
pub const BLOCK_ENTRY_BYTES: usize = 4;

/// Place of the header checksum.
const CHECKSUM_AT: usize = HEADER_BYTES - 2;

/// Type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A segment of the connection from the source to the destination port.
    Data,
    /// Acknowledgements (ACK, MACK) of the connection in the other direction. The timestamp is that of the oldest segment.
    Acknowledgement,
    /// Negative acknowledgements (NACK) of segments that could not be corrected.
    Nack,
    /// State of the blocks of a connection, and the bit-error rate that its receiver has measured.
    Report,
    /// The receiver refuses the connection, or does not know it.
    Refusal,
    /// The sender gives up its connection. The sequence number is the last one.
    Withdrawal,
}

impl Kind {
    /// All types, in the order of their numbers.
    pub const ALL: [Kind; 6] =
        [Kind::Data, Kind::Acknowledgement, Kind::Nack, Kind::Report, Kind::Refusal, Kind::Withdrawal];
}

/// Flags of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No flag.
    pub const NONE: Flags = Flags(0);
    /// The connection is new: the first sequence number is that of this packet with its low 20 bits cleared.
    pub const ASYN: Flags = Flags(0x01);
    /// This segment is the last one.
    pub const AFIN: Flags = Flags(0x02);
    /// The receiver has the connection.
    pub const ASYNACK: Flags = Flags(0x04);
    /// The receiver has the end of the connection, and the sequence number is the last one; in a service with acknowledgements, its user
    /// has accepted all of it.
    pub const AFINACK: Flags = Flags(0x08);
    /// Data: the payload is parity across segments. Acknowledgement: everything up to the sequence number is accepted.
    pub const PARITY_OR_UP_TO: Flags = Flags(0x10);
    /// Data: an answer is wanted at once. Acknowledgement, negative or not: the sequence number acknowledges nothing.
    pub const ASK_OR_NO_NUMBER: Flags = Flags(0x20);
    /// Data: the last source symbol of its block.
    pub const BLOCK_END: Flags = Flags(0x40);
    /// Data: all of the connection was sent before this packet, so that its receiver may have had all of it.
    pub const WHOLE: Flags = Flags(0x80);

    /// Returns true if all flags of the other set are set.
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns both sets together.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    /// Returns the set with the other one if a condition holds.
    #[must_use]
    pub const fn with_if(self, condition: bool, other: Flags) -> Flags {
        if condition { self.with(other) } else { self }
    }
}

/// Header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Port of the sender of this packet.
    pub source_port: u16,
    /// Port of its receiver.
    pub destination_port: u16,
    /// Type.
    pub kind: Kind,
    /// Service of the connection.
    pub service: TransportService,
    /// Precedence of the connection.
    pub precedence: Precedence,
    /// True if the code covers the header, too.
    pub header_in_code: bool,
    /// True if sequence numbers are those of symbols in blocks.
    pub in_blocks: bool,
    /// Wrong octets that the code corrects in each word.
    pub strength: u8,
    /// Flags.
    pub flags: Flags,
    /// Number of the segment, or of the first segment that the packet is about.
    pub sequence: u32,
    /// Time of departure of a segment at its sender, microseconds; answers return it.
    pub timestamp: u32,
    /// Length of the payload, octets.
    pub length: u16,
}

impl Header {
    /// Returns the code of the packet.
    pub fn code(&self) -> BitErrorCode {
        code(self.strength, self.header_in_code)
    }

    /// Returns the number of octets that the code covers.
    pub fn coded_bytes(&self) -> usize {
        let payload = payload_with_trailer(usize::from(self.length));
        payload + if self.header_in_code { HEADER_BYTES } else { 0 }
    }

    /// Returns the length of the packet.
    pub fn packet_bytes(&self) -> usize {
        let payload = payload_with_trailer(usize::from(self.length));
        HEADER_BYTES + payload + self.code().parity_bytes(self.coded_bytes())
    }

    fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut header = [0; HEADER_BYTES];
        let mut out = &mut header[..];
        out.put_u16(self.source_port);
        out.put_u16(self.destination_port);
        out.put_u8(VERSION << 4 | self.kind as u8);
        let service = TransportService::ALL.iter().position(|service| *service == self.service);
        let service = service.expect("every service is listed") as u8;
        out.put_u8(
            service << 4
                | (self.precedence as u8) << 2
                | u8::from(self.header_in_code) << 1
                | u8::from(self.in_blocks),
        );
        out.put_u8(self.strength);
        out.put_u8(self.flags.0);
        out.put_u32(self.sequence);
        out.put_u32(self.timestamp);
        out.put_u16(self.length);
        let checksum = crc16_x25(&header[..CHECKSUM_AT]);
        header[CHECKSUM_AT..].copy_from_slice(&checksum.to_be_bytes());
        header
    }

    /// Reads a header; `None` if its checksum does not match, or a field has no meaning.
    fn decode(octets: &[u8]) -> Option<Header> {
        let octets: &[u8; HEADER_BYTES] = octets.get(..HEADER_BYTES)?.try_into().ok()?;
        let number = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
        if number(CHECKSUM_AT) != crc16_x25(&octets[..CHECKSUM_AT]) || octets[4] >> 4 != VERSION {
            return None;
        }
        let long = |at: usize| u32::from(number(at)) << 16 | u32::from(number(at + 2));
        Some(Header {
            source_port: number(0),
            destination_port: number(2),
            kind: *Kind::ALL.get(usize::from(octets[4] & 0xf))?,
            service: *TransportService::ALL.get(usize::from(octets[5] >> 4))?,
            precedence: Precedence::ALL[usize::from(octets[5] >> 2 & 3)],
            header_in_code: octets[5] & 2 != 0,
            in_blocks: octets[5] & 1 != 0,
            strength: Some(octets[6]).filter(|strength| *strength <= STRENGTH_MAX)?,
            flags: Flags(octets[7]),
            sequence: long(8),
            timestamp: long(12),
            length: number(16),
        })
    }
}

fn code(strength: u8, header_in_code: bool) -> BitErrorCode {
    let layout = if header_in_code { WordLayout::Consecutive } else { WordLayout::Interleaved };
    BitErrorCode::new(strength, layout)
}

fn payload_with_trailer(length: usize) -> usize {
    if length == 0 { 0 } else { length + TRAILER_BYTES }
}

/// Returns the length of the longest payload of a packet of at most `packet_bytes`, with a code of this strength.
pub fn payload_bytes_max(packet_bytes: u64, strength: u8, header_in_code: bool) -> u64 {
    let outside = if header_in_code { 0 } else { HEADER_BYTES };
    let room = usize::try_from(packet_bytes).unwrap_or(usize::MAX).saturating_sub(outside);
    let inside = TRAILER_BYTES + HEADER_BYTES - outside;
    code(strength, header_in_code).data_bytes_max(room).saturating_sub(inside) as u64
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Header. Its length is that of the payload.
    pub header: Header,
    /// Payload.
    pub payload: Bytes,
}

impl Packet {
    /// Writes the packet with its checksums and parity.
    ///
    /// # Panics
    /// Panics if the payload has more than 65,535 octets.
    pub fn to_bytes(&self) -> Bytes {
        let length = u16::try_from(self.payload.len()).expect("a payload of at most 65,535 octets");
        let header = Header { length, ..self.header };
        let mut out = BytesMut::with_capacity(header.packet_bytes());
        out.put_slice(&header.encode());
        if !self.payload.is_empty() {
            out.put_slice(&self.payload);
            out.put_u32(crc32(&self.payload));
        }
        let mut parity = Vec::new();
        let from = if header.header_in_code { 0 } else { HEADER_BYTES };
        header.code().encode(&out[from..], &mut parity);
        out.put_slice(&parity);
        out.freeze()
    }
}

/// A packet as it has arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Header.
    pub header: Header,
    /// Payload, corrected as far as it could be.
    pub payload: Bytes,
    /// True if its checksum matches.
    pub is_intact: bool,
    /// Corrections and failures of the code.
    pub correction: Correction,
}

/// Reason for not recognising a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unrecognised {
    /// The header is damaged or has no meaning.
    Header,
    /// The length is not the stated one.
    Length,
}

impl Received {
    /// Reads a packet that may contain bit errors. `own_code` is the strength of the code if it covers headers.
    ///
    /// # Errors
    /// Fails if the header cannot be read or the packet is too short or too long.
    pub fn decode(datagram: &Bytes, own_code: Option<u8>) -> Result<Received, Unrecognised> {
        if let Some(strength) = own_code {
            return Self::decode_coded_header(datagram, strength);
        }
        let header = Header::decode(datagram).ok_or(Unrecognised::Header)?;
        if datagram.len() != header.packet_bytes() {
            return Err(Unrecognised::Length);
        }
        if header.header_in_code {
            return Self::decode_coded_header(datagram, header.strength);
        }
        let length = usize::from(header.length);
        let payload = datagram.slice(HEADER_BYTES..HEADER_BYTES + length);
        if length == 0 {
            return Ok(Received { header, payload, is_intact: true, correction: Correction::default() });
        }
        let data_end = HEADER_BYTES + length + TRAILER_BYTES;
        let is_intact = is_intact(&datagram[HEADER_BYTES..data_end]);
        if is_intact || header.strength == 0 {
            return Ok(Received { header, payload, is_intact, correction: Correction::default() });
        }
        let mut data = datagram[HEADER_BYTES..data_end].to_vec();
        let mut parity = datagram[data_end..].to_vec();
        let correction = header.code().decode(&mut data, &mut parity);
        let is_intact = self::is_intact(&data);
        data.truncate(length);
        Ok(Received { header, payload: data.into(), is_intact, correction })
    }

    /// Reads a packet whose header is inside the code.
    fn decode_coded_header(datagram: &Bytes, strength: u8) -> Result<Received, Unrecognised> {
        // Packets without a code, such as acknowledgements, have an ordinary header.
        if let Some(header) = Header::decode(datagram)
            && !header.header_in_code
        {
            return Self::decode(datagram, None);
        }
        let code = code(strength, true);
        let data_bytes = code.data_bytes(datagram.len()).ok_or(Unrecognised::Length)?;
        let mut data = datagram[..data_bytes].to_vec();
        let mut parity = datagram[data_bytes..].to_vec();
        let correction = code.decode(&mut data, &mut parity);
        let header = Header::decode(&data).ok_or(Unrecognised::Header)?;
        if !header.header_in_code || header.strength != strength || datagram.len() != header.packet_bytes() {
            return Err(Unrecognised::Length);
        }
        let is_intact = header.length == 0 || is_intact(&data[HEADER_BYTES..]);
        data.truncate(HEADER_BYTES + usize::from(header.length));
        let payload = Bytes::from(data).slice(HEADER_BYTES..);
        Ok(Received { header, payload, is_intact, correction })
    }
}

/// Returns true if a payload is that of the checksum after it.
fn is_intact(data: &[u8]) -> bool {
    let (payload, checksum) = data.split_at(data.len() - TRAILER_BYTES);
    crc32(payload).to_be_bytes() == *checksum
}

/// Writes the numbers after the first one of acknowledgements or negative acknowledgements.
pub fn encode_numbers(numbers: impl IntoIterator<Item = u32>) -> Bytes {
    numbers.into_iter().flat_map(u32::to_be_bytes).collect()
}

/// Reads the numbers after the first one; octets that make no whole number are ignored.
pub fn decode_numbers(payload: &[u8]) -> impl Iterator<Item = u32> {
    payload
        .chunks_exact(NUMBER_BYTES)
        .map(|octets| u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]]))
}

/// Beginning of the payload of a segment with parity: the properties of its block, which a receiver needs that has not
/// received the last source symbol of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParityPrefix {
    /// Number of source symbols of the block, at least 1.
    pub sources: u8,
    /// True if the connection ends with the block.
    pub is_end: bool,
    /// Length of the last source symbol, octets, at least 1.
    pub last_bytes: u16,
}

impl ParityPrefix {
    /// Writes the prefix.
    pub fn encode(self) -> [u8; PARITY_PREFIX_BYTES] {
        let last = self.last_bytes.to_be_bytes();
        [self.sources, u8::from(self.is_end), last[0], last[1]]
    }

    /// Reads the prefix; `None` if it is too short or has no meaning.
    pub fn decode(payload: &[u8]) -> Option<ParityPrefix> {
        let [sources, is_end, high, low, symbol @ ..] = payload else { return None };
        let last_bytes = u16::from_be_bytes([*high, *low]);
        let is_valid = *sources > 0 && *is_end <= 1 && (1..=symbol.len()).contains(&last_bytes.into());
        is_valid.then_some(ParityPrefix { sources: *sources, is_end: *is_end == 1, last_bytes })
    }
}

/// Payload of a report. The sequence number of its header is that of the first symbol that is not accepted.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Bit-error rate of what has arrived.
    pub bit_error_rate: f32,
    /// Octets that the receiver has room for after those that are accepted.
    pub window_bytes: u32,
    /// Sequence number of the first symbol that has not arrived.
    pub complete: u32,
    /// Number of symbols that have arrived of each block from that of the sequence number on, and whether the block is complete.
    pub blocks: Vec<(u16, u8, bool)>,
}

impl Report {
    /// Writes the payload.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(REPORT_BYTES + BLOCK_ENTRY_BYTES * self.blocks.len());
        out.put_f32(self.bit_error_rate);
        out.put_u32(self.window_bytes);
        out.put_u32(self.complete);
        for (block, symbols, is_complete) in &self.blocks {
            out.put_u16(*block);
            out.put_u8(*symbols);
            out.put_u8(u8::from(*is_complete));
        }
        out.freeze()
    }

    /// Reads the payload; `None` if it has another length or a value without a meaning.
    pub fn decode(payload: &[u8]) -> Option<Report> {
        let (fixed, blocks) = payload.split_at_checked(REPORT_BYTES)?;
        let long = |at: usize| u32::from_be_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]]);
        let bit_error_rate = f32::from_bits(long(0));
        if !(0.0..=1.0).contains(&bit_error_rate) || blocks.len() % BLOCK_ENTRY_BYTES != 0 {
            return None;
        }
        let entry = |entry: &[u8]| (u16::from_be_bytes([entry[0], entry[1]]), entry[2], entry[3] & 1 == 1);
        let blocks = blocks.chunks_exact(BLOCK_ENTRY_BYTES).map(entry).collect();
        Some(Report { bit_error_rate, window_bytes: long(4), complete: long(8), blocks })
    }
}
