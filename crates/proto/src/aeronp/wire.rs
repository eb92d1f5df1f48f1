//! Packets on the wire: a layout of our own, because none was published. All numbers are big-endian.
//!
//! ```text
//!  0 version 4 | type 4            16 sender of this hop 32
//!  1 precedence 4 | C | D | T | 0  20 receiver of this hop 32
//!  2 protocol 8                    24 identification 32
//!  3 hops left 8                   28 lifetime left 16, tenths of a second
//!  4 sequence of this hop 16       30 copies 8
//!  6 payload length 16             31 fixes 8: 1 the sender's, 2 the destination's
//!  8 source 32                     32 .. fixes, 20 octets each
//! 12 destination 32                .. payload check 16, header check 16, payload
//! ```
//!
//! C is the congestion indicator, D the corruption indicator, T says that a damaged payload is welcome. Both checks are
//! CRC-16/X-25. The header check covers everything before it and with it the payload check, which only tells whether the
//! payload is damaged. Undefined bits are zero.

use crate::codec::crc::crc16_x25;
use crate::codec::{DecodeError, take, take_byte};
use crate::motion::{Fix, Motion};
use crate::packet_router::NodeAddress;
use crate::time::{Duration, Instant};
use bytes::{BufMut, Bytes, BytesMut};

/// Version of the layout.
const VERSION: u8 = 1;
/// Length of a header without fixes, octets.
pub const HEADER_BYTES: usize = 36;
/// Length of a fix, octets.
pub const FIX_BYTES: usize = 20;
/// Length of a report of a link in a beacon, octets.
pub const LINK_REPORT_BYTES: usize = 5;
/// Longest payload, octets.
pub const PAYLOAD_BYTES_MAX: usize = 0xffff;
/// Maximum number of sequence numbers in an acknowledgement.
pub const ACKNOWLEDGED_MAX: usize = 64;
/// Maximum number of links and of fixes in a beacon.
pub const TOLD_MAX: usize = 255;
/// Largest coordinate, centimetres: three Earth radii.
const COORDINATE_CM_MAX: i32 = 2_000_000_000;
/// Unit of ages and lifetimes.
pub const TENTH: Duration = Duration::from_millis(100);
const CLAUSE: &str = "AeroNP";

const CONGESTION: u8 = 8;
const CORRUPTION: u8 = 4;
const TOLERANT: u8 = 2;
const SENDER_FIX: u8 = 1;
const DESTINATION_FIX: u8 = 2;

fn invalid(what: &'static str) -> DecodeError {
    DecodeError::invalid(what, CLAUSE)
}

fn take_u16(input: &mut Bytes) -> Result<u16, DecodeError> {
    let two = take(input, 2)?;
    Ok(u16::from_be_bytes([two[0], two[1]]))
}

fn take_u32(input: &mut Bytes) -> Result<u32, DecodeError> {
    let four = take(input, 4)?;
    Ok(u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

/// Returns a time in tenths of a second, at most the longest that the field holds.
pub fn tenths(time: Duration) -> u16 {
    u16::try_from(time.as_millis() / TENTH.as_millis()).unwrap_or(u16::MAX)
}

/// Fix in a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WireFix {
    /// Position, centimetres; each coordinate is at most 20,000 km.
    pub position_cm: [i32; 3],
    /// Velocity, decimetres per second.
    pub velocity_dmps: [i16; 3],
    /// Age, tenths of a second.
    pub age_tenths: u16,
}

impl WireFix {
    /// Writes a fix as it is known at `now`. Values beyond the fields become their limits.
    pub fn new(now: Instant, fix: Fix) -> WireFix {
        // A cast from `f64` saturates.
        let position = |of: f64| ((of * 100.0).round() as i32).clamp(-COORDINATE_CM_MAX, COORDINATE_CM_MAX);
        WireFix {
            position_cm: fix.motion.position_m.map(position),
            velocity_dmps: fix.motion.velocity_mps.map(|of| (of * 10.0).round() as i16),
            // Rounded up, so that a fix that is told again does not look younger.
            age_tenths: tenths(now.saturating_since(fix.at).saturating_add(TENTH - Duration::from_nanos(1))),
        }
    }

    /// Returns the fix, for a packet that arrives at `now`.
    pub fn fix(&self, now: Instant) -> Fix {
        let age = TENTH * u32::from(self.age_tenths);
        Fix {
            at: Instant::ZERO + now.saturating_since(Instant::ZERO + age),
            motion: Motion {
                position_m: self.position_cm.map(|of| f64::from(of) / 100.0),
                velocity_mps: self.velocity_dmps.map(|of| f64::from(of) / 10.0),
            },
        }
    }

    fn decode(input: &mut Bytes) -> Result<WireFix, DecodeError> {
        let mut fix = WireFix::default();
        for coordinate in &mut fix.position_cm {
            *coordinate = take_u32(input)? as i32;
            if coordinate.unsigned_abs() > COORDINATE_CM_MAX as u32 {
                return Err(invalid("a position"));
            }
        }
        for component in &mut fix.velocity_dmps {
            *component = take_u16(input)? as i16;
        }
        fix.age_tenths = take_u16(input)?;
        Ok(fix)
    }

    fn encode(&self, out: &mut BytesMut) {
        self.position_cm.iter().for_each(|coordinate| out.put_i32(*coordinate));
        self.velocity_dmps.iter().for_each(|component| out.put_i16(*component));
        out.put_u16(self.age_tenths);
    }
}

/// Type of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PacketType {
    /// Datagram of a user.
    #[default]
    Data,
    /// Position and state of the sender, for all neighbours.
    Beacon,
    /// Sequence numbers of packets that the sender has, so that the receiver need not send them again.
    Acknowledgement,
}

impl PacketType {
    const ALL: [PacketType; 3] = [PacketType::Data, PacketType::Beacon, PacketType::Acknowledgement];
}

/// Packet with its header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Packet {
    /// Type.
    pub kind: PacketType,
    /// Precedence, 0 to 15; higher goes first.
    pub precedence: u8,
    /// Congestion indicator: the queue of a node on the way was long.
    pub congestion: bool,
    /// Corruption indicator: the payload was damaged on the way.
    pub corruption: bool,
    /// A damaged payload is welcome at the destination.
    pub tolerant: bool,
    /// Protocol of the user.
    pub protocol: u8,
    /// Number of nodes that may still forward the packet.
    pub hops_left: u8,
    /// Number of the packet among those of its sender on this interface.
    pub sequence: u16,
    /// Node that made the packet.
    pub source: NodeAddress,
    /// Node to which it is sent.
    pub destination: NodeAddress,
    /// Node that sends it on this hop.
    pub sender: NodeAddress,
    /// Node that receives it on this hop.
    pub receiver: NodeAddress,
    /// Number of the packet at its source.
    pub identification: u32,
    /// Time until the packet is discarded, tenths of a second.
    pub lifetime_tenths: u16,
    /// Number of copies that may be made.
    pub copies: u8,
    /// Fix of the sender.
    pub sender_fix: Option<WireFix>,
    /// Fix of the destination, as the sender knows it.
    pub destination_fix: Option<WireFix>,
    /// Payload.
    pub payload: Bytes,
    /// The payload does not match its check. Decoded packets only.
    pub damaged: bool,
}

impl Packet {
    /// Decodes a frame. A damaged payload is no error.
    ///
    /// # Errors
    /// Fails if the header is damaged or not valid, or the frame does not end with the payload.
    pub fn decode(input: &mut Bytes) -> Result<Packet, DecodeError> {
        let whole = input.clone();
        let first = take_byte(input)?;
        let second = take_byte(input)?;
        let (protocol, hops_left) = (take_byte(input)?, take_byte(input)?);
        let (sequence, length) = (take_u16(input)?, take_u16(input)?);
        let mut address = || take_u32(input).map(NodeAddress);
        let (source, destination, sender, receiver) = (address()?, address()?, address()?, address()?);
        let identification = take_u32(input)?;
        let lifetime_tenths = take_u16(input)?;
        let (copies, fixes) = (take_byte(input)?, take_byte(input)?);
        let checked = HEADER_BYTES - 2 + FIX_BYTES * (fixes & 3).count_ones() as usize;
        let covered = whole.get(..checked).ok_or(DecodeError::Incomplete)?;
        let check = whole.get(checked..checked + 2).ok_or(DecodeError::Incomplete)?;
        if crc16_x25(covered).to_be_bytes() != *check {
            return Err(DecodeError::Checksum { what: "header" });
        }
        if first >> 4 != VERSION {
            return Err(DecodeError::Unsupported { what: "the version", clause: CLAUSE });
        }
        let kind = PacketType::ALL.get(usize::from(first & 15)).ok_or(invalid("the type"))?;
        if second & 1 != 0 || fixes > 3 {
            return Err(invalid("an undefined bit"));
        }
        let mut fix = |flag| (fixes & flag != 0).then(|| WireFix::decode(input)).transpose();
        let (sender_fix, destination_fix) = (fix(SENDER_FIX)?, fix(DESTINATION_FIX)?);
        let payload_check = take_u16(input)?;
        take(input, 2)?;
        let payload = take(input, usize::from(length))?;
        if !input.is_empty() {
            return Err(invalid("the payload length"));
        }
        Ok(Packet {
            kind: *kind,
            precedence: second >> 4,
            congestion: second & CONGESTION != 0,
            corruption: second & CORRUPTION != 0,
            tolerant: second & TOLERANT != 0,
            protocol,
            hops_left,
            sequence,
            source,
            destination,
            sender,
            receiver,
            identification,
            lifetime_tenths,
            copies,
            sender_fix,
            destination_fix,
            damaged: crc16_x25(&payload) != payload_check,
            payload,
        })
    }

    /// Appends the frame. The payload check is right, whatever [`Packet::damaged`] says.
    ///
    /// # Panics
    /// Panics if the payload is longer than its length field allows, or the precedence above 15.
    pub fn encode(&self, out: &mut BytesMut) {
        assert!(self.precedence < 16, "a precedence has four bits");
        let length = u16::try_from(self.payload.len()).expect("the payload has a length field of 16 bits");
        let from = out.len();
        let flag = |on: bool, flag: u8| if on { flag } else { 0 };
        out.put_u8(VERSION << 4 | self.kind as u8);
        let indicators = flag(self.congestion, CONGESTION) | flag(self.corruption, CORRUPTION);
        out.put_u8(self.precedence << 4 | indicators | flag(self.tolerant, TOLERANT));
        out.put_slice(&[self.protocol, self.hops_left]);
        out.put_u16(self.sequence);
        out.put_u16(length);
        for address in [self.source, self.destination, self.sender, self.receiver] {
            out.put_u32(address.0);
        }
        out.put_u32(self.identification);
        out.put_u16(self.lifetime_tenths);
        let sender = flag(self.sender_fix.is_some(), SENDER_FIX);
        out.put_slice(&[self.copies, sender | flag(self.destination_fix.is_some(), DESTINATION_FIX)]);
        self.sender_fix.iter().chain(&self.destination_fix).for_each(|fix| fix.encode(out));
        out.put_u16(crc16_x25(&self.payload));
        let check = crc16_x25(&out[from..]);
        out.put_u16(check);
        out.put_slice(&self.payload);
    }

    /// Returns the length of the header, octets.
    pub fn header_bytes(&self) -> usize {
        let fixes = usize::from(self.sender_fix.is_some()) + usize::from(self.destination_fix.is_some());
        HEADER_BYTES + FIX_BYTES * fixes
    }
}

/// Corruption of the link from a neighbour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkReport {
    /// Neighbour.
    pub node: NodeAddress,
    /// Share of its frames of 1,000 octets that would arrive damaged, in units of 1/255.
    pub damaged: u8,
}

/// Fix of a node in a beacon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeFix {
    /// Node.
    pub node: NodeAddress,
    /// Number of nodes that have passed the fix on.
    pub hops: u8,
    /// Fix.
    pub fix: WireFix,
}

/// Payload of a beacon.
///
/// ```text
/// queue fill 8, number of links 8, links: node 32 damaged 8, number of fixes 8, fixes: node 32 hops 8 fix
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beacon {
    /// Share of the sender's queue that is full, in units of 1/255.
    pub fill: u8,
    /// Links from its neighbours.
    pub links: Vec<LinkReport>,
    /// Fixes of other nodes.
    pub fixes: Vec<NodeFix>,
}

impl Beacon {
    /// Decodes the payload of a beacon.
    ///
    /// # Errors
    /// Fails if it is too short or a position is not valid.
    pub fn decode(input: &mut Bytes) -> Result<Beacon, DecodeError> {
        let fill = take_byte(input)?;
        let link = |input: &mut Bytes| {
            Ok(LinkReport { node: NodeAddress(take_u32(input)?), damaged: take_byte(input)? })
        };
        let links = (0..take_byte(input)?).map(|_| link(input)).collect::<Result<_, _>>()?;
        let fix = |input: &mut Bytes| {
            let (node, hops) = (NodeAddress(take_u32(input)?), take_byte(input)?);
            Ok(NodeFix { node, hops, fix: WireFix::decode(input)? })
        };
        let fixes = (0..take_byte(input)?).map(|_| fix(input)).collect::<Result<_, _>>()?;
        Ok(Beacon { fill, links, fixes })
    }

    /// Appends the payload of a beacon.
    ///
    /// # Panics
    /// Panics if there are more than [`TOLD_MAX`] links or fixes.
    pub fn encode(&self, out: &mut BytesMut) {
        assert!(self.links.len().max(self.fixes.len()) <= TOLD_MAX, "the numbers have 8 bits");
        out.put_slice(&[self.fill, self.links.len() as u8]);
        for link in &self.links {
            out.put_u32(link.node.0);
            out.put_u8(link.damaged);
        }
        out.put_u8(self.fixes.len() as u8);
        for told in &self.fixes {
            out.put_u32(told.node.0);
            out.put_u8(told.hops);
            told.fix.encode(out);
        }
    }
}

/// Payload of an acknowledgement: sequence numbers, together 1 to [`ACKNOWLEDGED_MAX`].
///
/// ```text
/// number of accepted packets 8, their sequence numbers 16 each, those of packets that were known 16 each
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// Sequence numbers of packets that were accepted from the receiver.
    pub accepted: Vec<u16>,
    /// Sequence numbers of packets that had been accepted from another node: their copies stay with the receiver.
    pub known: Vec<u16>,
}

impl Acknowledgement {
    /// Returns the number of packets.
    pub fn count(&self) -> usize {
        self.accepted.len() + self.known.len()
    }

    /// Decodes the payload of an acknowledgement.
    ///
    /// # Errors
    /// Fails if it is empty, of an impossible length or too long.
    pub fn decode(input: &mut Bytes) -> Result<Acknowledgement, DecodeError> {
        let accepted = usize::from(take_byte(input)?);
        let count = input.len() / 2;
        let is_valid =
            input.len().is_multiple_of(2) && (1..=ACKNOWLEDGED_MAX).contains(&count) && accepted <= count;
        if !is_valid {
            return Err(invalid("the length of an acknowledgement"));
        }
        let mut accepted_and_known = (0..count).map(|_| take_u16(input)).collect::<Result<Vec<_>, _>>()?;
        let known = accepted_and_known.split_off(accepted);
        Ok(Acknowledgement { accepted: accepted_and_known, known })
    }

    /// Appends the payload of an acknowledgement.
    ///
    /// # Panics
    /// Panics if it is longer than [`ACKNOWLEDGED_MAX`].
    pub fn encode(&self, out: &mut BytesMut) {
        assert!(self.count() <= ACKNOWLEDGED_MAX, "an acknowledgement is limited");
        out.put_u8(self.accepted.len() as u8);
        self.accepted.iter().chain(&self.known).for_each(|sequence| out.put_u16(*sequence));
    }
}
