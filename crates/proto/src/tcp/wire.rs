//! IPv4 headers, TCP segments, their options and checksums (RFC 791 3.1, RFC 9293 3.1, RFC 2018, RFC 7323).
//!
//! [`Packet`] is a complete frame: one IPv4 packet with one TCP segment in it. Decoded payloads share the memory of the
//! input. Unknown options are skipped (RFC 9293 3.1, MUST-6) and not encoded again.

use crate::codec::DecodeError;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use core::fmt;
use core::net::Ipv4Addr;

/// Length of an IPv4 header without options, bytes.
pub const IPV4_HEADER_BYTES: usize = 20;
/// Length of a TCP header without options, bytes.
pub const TCP_HEADER_BYTES: usize = 20;
/// Maximum length of the TCP options, bytes.
pub const OPTION_BYTES_MAX: usize = 40;
/// IPv4 protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// Length of the timestamps option with its padding, bytes; present in every segment once agreed (RFC 7323 appendix A).
pub const TIMESTAMP_OPTION_BYTES: usize = 12;
/// Maximum number of SACK blocks in a segment (RFC 2018 3).
pub const SACK_BLOCKS_MAX: usize = 4;

/// Sum of 16-bit words in ones' complement arithmetic, not yet folded (RFC 791 3.1).
///
/// The sum does not depend on the width of the words, and swapping the bytes of the words swaps the bytes of the sum:
/// it is therefore computed in native 32-bit words and converted once, at the end.
#[derive(Clone, Copy, Debug, Default)]
struct ChecksumSum(u64);

impl ChecksumSum {
    /// Adds bytes. Every addition but the last must have an even number of bytes.
    fn add(self, bytes: &[u8]) -> ChecksumSum {
        let mut lanes = [0u64; 4];
        let mut blocks = bytes.chunks_exact(16);
        for block in &mut blocks {
            for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(4)) {
                *lane += u64::from(u32::from_ne_bytes([word[0], word[1], word[2], word[3]]));
            }
        }
        let mut sum = self.0 + lanes[0] + lanes[1] + lanes[2] + lanes[3];
        let mut words = blocks.remainder().chunks_exact(2);
        for word in &mut words {
            sum += u64::from(u16::from_ne_bytes([word[0], word[1]]));
        }
        if let [last] = words.remainder() {
            sum += u64::from(u16::from_ne_bytes([*last, 0]));
        }
        ChecksumSum(sum)
    }

    /// Adds the pseudo-header of TCP (RFC 9293 3.1).
    fn add_pseudo_header(self, source: Ipv4Addr, destination: Ipv4Addr, length: u16) -> ChecksumSum {
        let [high, low] = length.to_be_bytes();
        self.add(&source.octets()).add(&destination.octets()).add(&[0, PROTOCOL_TCP, high, low])
    }

    /// Returns the checksum in the byte order of the header; zero over data that contain a correct checksum.
    fn checksum(self) -> [u8; 2] {
        let mut sum = self.0;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        (!(sum as u16)).to_ne_bytes()
    }

    fn is_right(self) -> bool {
        self.checksum() == [0, 0]
    }
}

/// Computes the Internet checksum of `bytes` (RFC 791 3.1).
pub fn internet_checksum(bytes: &[u8]) -> u16 {
    u16::from_be_bytes(ChecksumSum::default().add(bytes).checksum())
}

/// IPv4 header (RFC 791 3.1). Options are skipped when decoded and never encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// Type of service: DSCP and ECN.
    pub service: u8,
    /// Identification: distinguishes the fragments of one packet from those of another.
    pub identification: u16,
    /// True if the packet must not be fragmented (DF).
    pub dont_fragment: bool,
    /// True if more fragments follow (MF).
    pub more_fragments: bool,
    /// Offset of this fragment in the packet, in units of eight bytes.
    pub fragment_offset: u16,
    /// Time to live: the remaining number of hops.
    pub time_to_live: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// Length of the payload, bytes.
    pub payload_bytes: u16,
}

impl Ipv4Header {
    /// Decodes and checks the header at the beginning of `input` and removes it. `input` must contain at least the
    /// announced payload.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let clause = "RFC 791 3.1";
        let bytes = input.get(..IPV4_HEADER_BYTES).ok_or(DecodeError::Incomplete)?;
        if bytes[0] >> 4 != 4 {
            return Err(DecodeError::invalid("the IP version", clause));
        }
        let header_bytes = usize::from(bytes[0] & 0x0f) * 4;
        if header_bytes < IPV4_HEADER_BYTES {
            return Err(DecodeError::invalid("the IPv4 header length", clause));
        }
        let whole = input.get(..header_bytes).ok_or(DecodeError::Incomplete)?;
        if !ChecksumSum::default().add(whole).is_right() {
            return Err(DecodeError::Checksum { what: "IPv4 header" });
        }
        let total = usize::from(u16::from_be_bytes([bytes[2], bytes[3]]));
        if total < header_bytes {
            return Err(DecodeError::invalid("the IPv4 total length", clause));
        }
        if total > input.len() {
            return Err(DecodeError::Incomplete);
        }
        let fragment = u16::from_be_bytes([bytes[6], bytes[7]]);
        let header = Ipv4Header {
            service: bytes[1],
            identification: u16::from_be_bytes([bytes[4], bytes[5]]),
            dont_fragment: fragment & 0x4000 != 0,
            more_fragments: fragment & 0x2000 != 0,
            fragment_offset: fragment & 0x1fff,
            time_to_live: bytes[8],
            protocol: bytes[9],
            source: address(&bytes[12..16]),
            destination: address(&bytes[16..20]),
            payload_bytes: (total - header_bytes) as u16,
        };
        input.advance(header_bytes);
        Ok(header)
    }

    /// Appends the header with its checksum.
    ///
    /// # Panics
    /// Panics if header and payload together are longer than an IPv4 packet can be.
    pub fn encode(&self, out: &mut BytesMut) {
        let total = self.payload_bytes.checked_add(IPV4_HEADER_BYTES as u16).expect("fits an IPv4 packet");
        let mut fragment = self.fragment_offset & 0x1fff;
        fragment |= if self.dont_fragment { 0x4000 } else { 0 };
        fragment |= if self.more_fragments { 0x2000 } else { 0 };
        let mut bytes = [0u8; IPV4_HEADER_BYTES];
        bytes[0] = 0x45;
        bytes[1] = self.service;
        bytes[2..4].copy_from_slice(&total.to_be_bytes());
        bytes[4..6].copy_from_slice(&self.identification.to_be_bytes());
        bytes[6..8].copy_from_slice(&fragment.to_be_bytes());
        bytes[8] = self.time_to_live;
        bytes[9] = self.protocol;
        bytes[12..16].copy_from_slice(&self.source.octets());
        bytes[16..20].copy_from_slice(&self.destination.octets());
        let checksum = ChecksumSum::default().add(&bytes).checksum();
        bytes[10..12].copy_from_slice(&checksum);
        out.put_slice(&bytes);
    }
}

fn address(bytes: &[u8]) -> Ipv4Addr {
    Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3])
}

/// Control bits of a segment (RFC 9293 3.1).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    /// The sender has no more data.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronizes sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Resets the connection.
    pub const RST: Flags = Flags(0x04);
    /// The data are to be delivered without delay (push).
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgement field is significant.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is significant.
    pub const URG: Flags = Flags(0x20);

    /// Converts from the byte on the wire.
    pub const fn from_byte(byte: u8) -> Flags {
        Flags(byte)
    }

    /// Returns the byte on the wire.
    pub const fn as_byte(self) -> u8 {
        self.0
    }

    /// Returns true if all flags of `other` are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }

    /// Returns these flags and those of `other`.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl fmt::Debug for Flags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = ["FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"];
        let set = (0..8).filter(|bit| self.0 >> bit & 1 == 1).map(|bit| names[bit]);
        f.write_str(&set.collect::<Vec<_>>().join("|"))
    }
}

/// SACK blocks of a segment, the most recent first (RFC 2018 3).
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct SackBlocks {
    blocks: [(u32, u32); SACK_BLOCKS_MAX],
    count: u8,
}

impl SackBlocks {
    /// Appends a block: its first sequence number and the first one after it. Ignored if there are four blocks already.
    pub fn push(&mut self, start: u32, end: u32) {
        if let Some(block) = self.blocks.get_mut(usize::from(self.count)) {
            *block = (start, end);
            self.count += 1;
        }
    }

    /// Returns the blocks.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.count)]
    }

    /// Returns true if there are no blocks.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice()).finish()
    }
}

/// Options of a segment that this implementation knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size that the sender accepts, bytes (RFC 9293 3.7.1). On SYN only.
    pub maximum_segment_bytes: Option<u16>,
    /// Shift of the sender's window fields (RFC 7323 2.2). On SYN only.
    pub window_scale: Option<u8>,
    /// True if the sender supports SACK (RFC 2018 2). On SYN only.
    pub sack_permitted: bool,
    /// Ranges that arrived out of order.
    pub sack: SackBlocks,
    /// Timestamps: the sender's clock, and its newest value received from the other side (RFC 7323 3.2).
    pub timestamps: Option<(u32, u32)>,
}

impl TcpOptions {
    /// Returns the length of the options including padding, bytes; always a multiple of four.
    pub fn length(&self) -> usize {
        let mut length = 0;
        length += if self.maximum_segment_bytes.is_some() { 4 } else { 0 };
        length += if self.window_scale.is_some() { 4 } else { 0 };
        // SACK-permitted replaces the padding before the timestamps if both are present.
        length += if self.sack_permitted && self.timestamps.is_none() { 4 } else { 0 };
        length += if self.timestamps.is_some() { TIMESTAMP_OPTION_BYTES } else { 0 };
        length += if self.sack.is_empty() { 0 } else { 4 + 8 * self.sack.as_slice().len() };
        length
    }

    fn decode(mut input: &[u8]) -> Result<Self, DecodeError> {
        let mut options = TcpOptions::default();
        while let Some(&kind) = input.first() {
            match kind {
                0 => break,
                1 => {
                    input = &input[1..];
                    continue;
                }
                _ => {}
            }
            let length = usize::from(*input.get(1).ok_or(BAD_OPTION)?);
            if length < 2 {
                return Err(BAD_OPTION);
            }
            let body = input.get(2..length).ok_or(BAD_OPTION)?;
            options.take(kind, body)?;
            input = &input[length..];
        }
        Ok(options)
    }

    fn take(&mut self, kind: u8, body: &[u8]) -> Result<(), DecodeError> {
        match (kind, body) {
            (2, &[a, b]) => self.maximum_segment_bytes = Some(u16::from_be_bytes([a, b])),
            (3, &[shift]) => self.window_scale = Some(shift),
            (4, &[]) => self.sack_permitted = true,
            (5, blocks) if blocks.len() % 8 == 0 && !blocks.is_empty() => {
                for block in blocks.chunks_exact(8) {
                    self.sack.push(number(&block[..4]), number(&block[4..]));
                }
            }
            (8, times) if times.len() == 8 => {
                self.timestamps = Some((number(&times[..4]), number(&times[4..])));
            }
            (2 | 3 | 4 | 5 | 8, _) => return Err(BAD_OPTION),
            _ => {}
        }
        Ok(())
    }

    fn encode(&self, out: &mut BytesMut) {
        let length = self.length();
        assert!(length <= OPTION_BYTES_MAX, "{length} bytes of options do not fit a TCP header");
        if let Some(bytes) = self.maximum_segment_bytes {
            out.put_slice(&[2, 4]);
            out.put_u16(bytes);
        }
        let padding = if self.sack_permitted { [4, 2] } else { [1, 1] };
        if self.sack_permitted || self.timestamps.is_some() {
            out.put_slice(&padding);
        }
        if self.sack_permitted && self.timestamps.is_none() {
            out.put_slice(&[1, 1]);
        }
        if let Some((value, echo)) = self.timestamps {
            out.put_slice(&[8, 10]);
            out.put_u32(value);
            out.put_u32(echo);
        }
        if let Some(shift) = self.window_scale {
            out.put_slice(&[1, 3, 3, shift]);
        }
        if !self.sack.is_empty() {
            let blocks = self.sack.as_slice();
            out.put_slice(&[1, 1, 5, 2 + 8 * blocks.len() as u8]);
            for (start, end) in blocks {
                out.put_u32(*start);
                out.put_u32(*end);
            }
        }
    }
}

const BAD_OPTION: DecodeError = DecodeError::invalid("a TCP option", "RFC 9293 3.1");

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

/// TCP segment (RFC 9293 3.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Sequence number of the first byte, or of the SYN if the segment has one.
    pub sequence: u32,
    /// Next sequence number that the sender expects; significant with [`Flags::ACK`].
    pub acknowledgement: u32,
    /// Control bits.
    pub flags: Flags,
    /// Receive window of the sender, before scaling.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options.
    pub options: TcpOptions,
    /// Data.
    pub payload: Bytes,
}

impl Segment {
    /// Returns the number of sequence numbers that the segment occupies: its data, a SYN, a FIN.
    pub fn length(&self) -> u32 {
        self.payload.len() as u32
            + u32::from(self.flags.contains(Flags::SYN))
            + u32::from(self.flags.contains(Flags::FIN))
    }

    /// Decodes the segment that fills `input`, and verifies its checksum with the addresses of its packet.
    pub fn decode(input: &mut Bytes, source: Ipv4Addr, destination: Ipv4Addr) -> Result<Self, DecodeError> {
        let clause = "RFC 9293 3.1";
        let bytes = input.get(..TCP_HEADER_BYTES).ok_or(DecodeError::Incomplete)?;
        let length =
            u16::try_from(input.len()).map_err(|_| DecodeError::Limit { what: "the TCP segment" })?;
        if !ChecksumSum::default().add_pseudo_header(source, destination, length).add(input).is_right() {
            return Err(DecodeError::Checksum { what: "TCP segment" });
        }
        let header_bytes = usize::from(bytes[12] >> 4) * 4;
        if header_bytes < TCP_HEADER_BYTES {
            return Err(DecodeError::invalid("the TCP data offset", clause));
        }
        let options = input.get(TCP_HEADER_BYTES..header_bytes).ok_or(DecodeError::Incomplete)?;
        let mut segment = Segment {
            source_port: u16::from_be_bytes([bytes[0], bytes[1]]),
            destination_port: u16::from_be_bytes([bytes[2], bytes[3]]),
            sequence: number(&bytes[4..8]),
            acknowledgement: number(&bytes[8..12]),
            flags: Flags::from_byte(bytes[13]),
            window: u16::from_be_bytes([bytes[14], bytes[15]]),
            urgent: u16::from_be_bytes([bytes[18], bytes[19]]),
            options: TcpOptions::decode(options)?,
            payload: Bytes::new(),
        };
        input.advance(header_bytes);
        segment.payload = input.split_to(input.len());
        Ok(segment)
    }

    /// Appends the segment with its checksum.
    pub fn encode(&self, source: Ipv4Addr, destination: Ipv4Addr, out: &mut BytesMut) {
        let start = out.len();
        let header_bytes = TCP_HEADER_BYTES + self.options.length();
        let mut header = [0u8; TCP_HEADER_BYTES];
        header[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        header[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        header[4..8].copy_from_slice(&self.sequence.to_be_bytes());
        header[8..12].copy_from_slice(&self.acknowledgement.to_be_bytes());
        header[12] = (header_bytes as u8 / 4) << 4;
        header[13] = self.flags.as_byte();
        header[14..16].copy_from_slice(&self.window.to_be_bytes());
        header[18..20].copy_from_slice(&self.urgent.to_be_bytes());
        out.put_slice(&header);
        self.options.encode(out);
        out.put_slice(&self.payload);
        let length = u16::try_from(out.len() - start).expect("a segment fits an IPv4 packet");
        let checksum = ChecksumSum::default()
            .add_pseudo_header(source, destination, length)
            .add(&out[start..])
            .checksum();
        out[start + 16..start + 18].copy_from_slice(&checksum);
    }
}

/// IPv4 packet with one TCP segment: the content of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Identification of the packet.
    pub identification: u16,
    /// Time to live: the remaining number of hops.
    pub time_to_live: u8,
    /// Source address.
    pub source: Ipv4Addr,
    /// Destination address.
    pub destination: Ipv4Addr,
    /// TCP segment in the packet.
    pub segment: Segment,
}

impl Packet {
    /// Decodes the packet at the beginning of `input`. Refuses other protocols, and fragments, which this
    /// implementation never sends or requests.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let header = Ipv4Header::decode(input)?;
        if header.more_fragments || header.fragment_offset != 0 {
            return Err(DecodeError::invalid("a fragment", "RFC 791 3.2"));
        }
        if header.protocol != PROTOCOL_TCP {
            return Err(DecodeError::invalid("the IPv4 protocol", "RFC 791 3.1"));
        }
        let mut payload = input.split_to(usize::from(header.payload_bytes));
        let segment = Segment::decode(&mut payload, header.source, header.destination)?;
        Ok(Packet {
            identification: header.identification,
            time_to_live: header.time_to_live,
            source: header.source,
            destination: header.destination,
            segment,
        })
    }

    /// Appends the packet, with the flag that forbids fragmentation (DF).
    pub fn encode(&self, out: &mut BytesMut) {
        let length = TCP_HEADER_BYTES + self.segment.options.length() + self.segment.payload.len();
        out.reserve(IPV4_HEADER_BYTES + length);
        let header = Ipv4Header {
            service: 0,
            identification: self.identification,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            time_to_live: self.time_to_live,
            protocol: PROTOCOL_TCP,
            source: self.source,
            destination: self.destination,
            payload_bytes: u16::try_from(length).expect("a segment fits an IPv4 packet"),
        };
        header.encode(out);
        self.segment.encode(self.source, self.destination, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    fn arbitrary(rng: &mut Rng) -> Packet {
        let mut options = TcpOptions::default();
        let syn = rng.chance(0.3);
        if syn {
            options.maximum_segment_bytes = rng.chance(0.5).then(|| rng.next_u32() as u16);
            options.window_scale = rng.chance(0.5).then(|| rng.below(15) as u8);
            options.sack_permitted = rng.chance(0.5);
        }
        options.timestamps = rng.chance(0.5).then(|| (rng.next_u32(), rng.next_u32()));
        if !syn {
            for _ in 0..rng.below(4) {
                options.sack.push(rng.next_u32(), rng.next_u32());
            }
        }
        let mut payload = vec![0; rng.below(1500) as usize];
        rng.fill(&mut payload);
        Packet {
            identification: rng.next_u32() as u16,
            time_to_live: rng.next_u32() as u8,
            source: Ipv4Addr::from(rng.next_u32()),
            destination: Ipv4Addr::from(rng.next_u32()),
            segment: Segment {
                source_port: rng.next_u32() as u16,
                destination_port: rng.next_u32() as u16,
                sequence: rng.next_u32(),
                acknowledgement: rng.next_u32(),
                flags: Flags::from_byte(rng.next_u32() as u8),
                window: rng.next_u32() as u16,
                urgent: rng.next_u32() as u16,
                options,
                payload: payload.into(),
            },
        }
    }

    #[test]
    fn decode_undoes_encode() {
        let mut rng = Rng::new(1);
        for _ in 0..500 {
            let packet = arbitrary(&mut rng);
            let mut out = BytesMut::new();
            packet.encode(&mut out);
            out.put_slice(b"behind it");
            let mut input = out.freeze();
            assert_eq!(Packet::decode(&mut input), Ok(packet));
            assert_eq!(&input[..], b"behind it");
        }
    }

    #[test]
    fn one_flipped_bit_is_always_noticed() {
        let mut rng = Rng::new(2);
        for _ in 0..500 {
            let packet = arbitrary(&mut rng);
            let mut out = BytesMut::new();
            packet.encode(&mut out);
            let bit = rng.below(out.len() as u64 * 8) as usize;
            out[bit / 8] ^= 1 << (bit % 8);
            assert!(Packet::decode(&mut out.freeze()).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn any_bytes_are_refused_with_a_reason_and_without_panic() {
        let mut rng = Rng::new(3);
        for _ in 0..2000 {
            let mut bytes = vec![0; rng.below(80) as usize];
            rng.fill(&mut bytes);
            if let Some(first) = bytes.first_mut() {
                *first = 0x45;
            }
            assert!(Packet::decode(&mut Bytes::from(bytes)).is_err());
        }
    }

    #[test]
    fn a_known_header_has_its_known_checksum() {
        // Example header of many textbooks: 4500 0073 0000 4000 4011 b861 c0a8 0001 c0a8 00c7.
        let header =
            [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(internet_checksum(&header), 0xb861);
    }

    #[test]
    fn the_fast_checksum_is_the_plain_one() {
        let mut rng = Rng::new(4);
        for length in 0..200 {
            let mut bytes = vec![0; length];
            rng.fill(&mut bytes);
            let mut plain = 0u32;
            for pair in bytes.chunks(2) {
                plain += u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]));
                plain = (plain & 0xffff) + (plain >> 16);
            }
            assert_eq!(internet_checksum(&bytes), !(plain as u16), "{length} bytes");
        }
    }

    #[test]
    fn malformed_options_are_refused_and_unknown_ones_skipped() {
        for bad in [&[2u8][..], &[2, 0], &[2, 3, 1], &[8, 10, 1, 2], &[5, 2], &[5, 6, 1, 2, 3, 4], &[3, 9, 1]]
        {
            assert_eq!(TcpOptions::decode(bad), Err(BAD_OPTION), "{bad:?}");
        }
        let options = TcpOptions::decode(&[1, 253, 4, 9, 9, 2, 4, 5, 180, 0, 77]);
        assert_eq!(options, Ok(TcpOptions { maximum_segment_bytes: Some(1460), ..TcpOptions::default() }));
    }
}
