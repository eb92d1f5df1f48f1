//! Segmentation and reassembly of packets longer than a frame (6.6, C6).

use super::frame::pid;
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Maximum segments of one packet: the count in the header has seven bits.
const SEGMENTS_MAX: usize = 128;
const FIRST: u8 = 0x80;

/// Returns the maximum packet for segments of this length, bytes. The first segment contains the packet's own protocol
/// identifier, as in existing stations.
pub(crate) fn packet_bytes_max(information_bytes_max: u32) -> u32 {
    (information_bytes_max.saturating_sub(1)) * SEGMENTS_MAX as u32 - 1
}

/// Returns the minimum information field with which a packet of this length fits in the maximum number of segments,
/// bytes.
pub(super) fn information_bytes_min(packet_bytes: u32) -> u32 {
    (packet_bytes + 1).div_ceil(SEGMENTS_MAX as u32) + 1
}

/// Splits a packet into information fields with their protocol identifiers: one field, or segments.
pub(crate) fn cut(protocol: u8, packet: Bytes, information_bytes_max: u32) -> Vec<(u8, Bytes)> {
    if packet.len() <= information_bytes_max as usize {
        return vec![(protocol, packet)];
    }
    let share = information_bytes_max as usize - 1;
    let mut whole = BytesMut::with_capacity(packet.len() + 1);
    whole.put_u8(protocol);
    whole.put_slice(&packet);
    let whole = whole.freeze();
    let count = whole.len().div_ceil(share);
    let segment = |number: usize| {
        let data = &whole[number * share..whole.len().min((number + 1) * share)];
        let mut segment = BytesMut::with_capacity(data.len() + 1);
        segment.put_u8((count - 1 - number) as u8 | if number == 0 { FIRST } else { 0 });
        segment.put_slice(data);
        (pid::SEGMENT, segment.freeze())
    };
    (0..count).map(segment).collect()
}

/// Reassembles segments.
#[derive(Debug, Default)]
pub(crate) struct Reassembler {
    /// Protocol identifier and data so far, and number of missing segments.
    open: Option<(BytesMut, u8)>,
}

impl Reassembler {
    /// Returns the bytes of an incomplete packet: at most those of 128 segments.
    pub(crate) fn held_bytes(&self) -> usize {
        self.open.as_ref().map_or(0, |(bytes, _)| bytes.len())
    }

    /// Handles an information field. Returns the packet that it contains or completes.
    ///
    /// # Errors
    /// Fails if a segment does not follow the previous one; both are dropped.
    pub(crate) fn hear(
        &mut self,
        protocol: u8,
        mut information: Bytes,
    ) -> Result<Option<(u8, Bytes)>, InvalidSegment> {
        if protocol != pid::SEGMENT {
            return match self.open.take() {
                None => Ok(Some((protocol, information))),
                Some(_) => Err(InvalidSegment),
            };
        }
        if information.is_empty() {
            self.open = None;
            return Err(InvalidSegment);
        }
        let header = information.get_u8();
        let (first, left) = (header & FIRST != 0, header & !FIRST);
        let mut bytes = match self.open.take() {
            None if first => BytesMut::new(),
            Some((bytes, expected)) if !first && left + 1 == expected => bytes,
            _ => return Err(InvalidSegment),
        };
        bytes.put_slice(&information);
        if left > 0 {
            self.open = Some((bytes, left));
            return Ok(None);
        }
        if bytes.is_empty() {
            return Err(InvalidSegment);
        }
        let protocol = bytes.get_u8();
        Ok(Some((protocol, bytes.freeze())))
    }
}

/// An error: a segment out of sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidSegment;
