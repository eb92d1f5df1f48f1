//! Stream over a connected packet link: the additions of AX25CM-CL, DTN2's convergence layer over AX.25, to version 3.
//!
//! ```text
//!   packet = one message, with the segment's bytes after a DATA_SEGMENT, or a part of one that is longer
//!            than a packet may be; then its CRC-32, four bytes, the highest first
//! ```
//!
//! The first message is the contact header. A packet with a wrong CRC ends the connection: the boundaries of the
//! following messages would be lost. The room granted allows a segment with its header and the CRC to fill one frame of
//! the link. The stream accepts as much data ahead of the link as the link's window has room for.

use super::v3::wire::{ContactHeader, Message};
use crate::codec::DecodeError;
use crate::codec::crc::crc32;
use crate::engine::{Engine, no_timers};
use crate::service::{
    CloseReason, Packets, PacketsIndication, PacketsRequest, Stream, StreamIndication, StreamRequest,
};
use crate::time::Instant;
use bytes::{BufMut, Bytes, BytesMut};
use std::collections::VecDeque;

/// Length of the CRC at the end of every packet, bytes.
pub const CRC_BYTES: usize = 4;

/// Minimum length of a frame, bytes: one byte of a segment with its header and the CRC.
pub const PACKET_BYTES_MIN: u32 = 16;

/// Appends the CRC to the content of a packet.
pub fn seal(content: &[u8]) -> Bytes {
    let mut packet = BytesMut::with_capacity(content.len() + CRC_BYTES);
    packet.put_slice(content);
    packet.put_u32(crc32(content));
    packet.freeze()
}

/// Returns the content of a packet.
///
/// # Errors
/// Fails if the packet has no content or a wrong CRC.
pub fn unseal(packet: &Bytes) -> Result<Bytes, DecodeError> {
    let length = packet.len().checked_sub(CRC_BYTES).filter(|length| *length > 0);
    let length = length.ok_or(DecodeError::Incomplete)?;
    let content = packet.slice(..length);
    if packet[length..] != crc32(&content).to_be_bytes() {
        return Err(DecodeError::invalid("the CRC-32 of a packet", "DTN2, AX25CM"));
    }
    Ok(content)
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum PacketStreamState {
    /// There is no connection.
    #[default]
    Closed,
    /// A connection was requested.
    Connecting,
    /// The connection is open.
    Open,
    /// This side ended the connection and waits for its end to be indicated.
    Closing(CloseReason),
}

/// Stream over one packet connection, for AX25CM-CL.
#[derive(Debug, Default)]
pub struct PacketStream {
    state: PacketStreamState,
    /// Length of a packet that fills a frame, and maximum length of a packet; bytes, without the CRC.
    bytes_best: usize,
    bytes_max: usize,
    /// Number of packets that the link still accepts.
    room: u64,
    /// Room granted to the user, bytes.
    told: u64,
    /// The contact header has been sent.
    greeted: bool,
    /// Beginning of an incomplete message.
    partial: BytesMut,
    /// Packets for the link: as many as it has room for, and all parts of a long message.
    ready: VecDeque<Bytes>,
    order: Option<PacketsRequest>,
    /// The connection is to be closed once all packets have been passed to the link.
    closing: bool,
    /// Content lengths of the packets that were delivered and not released, bytes.
    risen: VecDeque<u64>,
    released_bytes: u64,
    release: u64,
    up: VecDeque<StreamIndication>,
    damaged: u64,
}

impl PacketStream {
    /// Creates a stream without a connection.
    pub fn new() -> Self {
        PacketStream::default()
    }

    /// Returns the number of packets received with a wrong CRC.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    fn connected(&mut self, bytes_max: u32, bytes_best: u32) {
        if self.state == PacketStreamState::Open || matches!(self.state, PacketStreamState::Closing(_)) {
            return;
        }
        *self = PacketStream {
            state: PacketStreamState::Open,
            damaged: self.damaged,
            up: core::mem::take(&mut self.up),
            ..PacketStream::default()
        };
        self.takes(bytes_max, bytes_best);
        if self.state == PacketStreamState::Open {
            self.up.push_back(StreamIndication::Connected);
        }
    }

    /// Sets the packet lengths. Packets that are already built are kept.
    fn takes(&mut self, bytes_max: u32, bytes_best: u32) {
        if self.state != PacketStreamState::Open {
            return;
        }
        let content = |bytes: u32| (bytes as usize).saturating_sub(CRC_BYTES).max(1);
        (self.bytes_best, self.bytes_max) = (content(bytes_best), content(bytes_max));
        if bytes_best < PACKET_BYTES_MIN {
            self.end(CloseReason::Limit);
        }
    }

    fn hear(&mut self, packet: &Bytes) {
        if self.state != PacketStreamState::Open {
            return;
        }
        match unseal(packet) {
            Ok(content) => {
                self.risen.push_back(content.len() as u64);
                self.up.push_back(StreamIndication::Data(content));
            }
            Err(_) => {
                self.damaged += 1;
                self.end(CloseReason::Damaged);
            }
        }
    }

    fn end(&mut self, reason: CloseReason) {
        if !matches!(self.state, PacketStreamState::Closed | PacketStreamState::Closing(_)) {
            self.state = PacketStreamState::Closing(reason);
            self.ready.clear();
            self.order = Some(PacketsRequest::Abort);
        }
    }

    fn closed(&mut self, reason: CloseReason) {
        let reason = match core::mem::take(&mut self.state) {
            PacketStreamState::Closing(reason) => reason,
            PacketStreamState::Closed | PacketStreamState::Connecting | PacketStreamState::Open => reason,
        };
        self.order = None;
        self.told = 0;
        self.up.push_back(StreamIndication::Closed(reason));
    }

    fn write(&mut self, bytes: &[u8]) {
        self.told = self.told.saturating_sub(bytes.len() as u64);
        if self.state != PacketStreamState::Open {
            return;
        }
        self.partial.extend_from_slice(bytes);
        while let Some(length) = self.next_length() {
            let content = self.partial.split_to(length);
            self.ready.push_back(seal(&content));
        }
    }

    /// Returns the length of the next packet in the written data; `None` if its message is incomplete.
    fn next_length(&mut self) -> Option<usize> {
        let most = self.bytes_max;
        let mut front = Bytes::copy_from_slice(&self.partial[..self.partial.len().min(2048)]);
        let given = front.len();
        let (greets, behind) = match self.greeted {
            false => (true, ContactHeader::decode(&mut front).map(|_| 0)),
            true => (false, Message::decode(&mut front).map(behind)),
        };
        let length = match behind {
            Ok(behind) => (given - front.len()).saturating_add(usize::try_from(behind).unwrap_or(usize::MAX)),
            // Data that are not a version 3 message are passed on unchanged.
            Err(DecodeError::Incomplete) => usize::MAX,
            Err(_) => self.partial.len(),
        };
        if length <= most && length <= self.partial.len() {
            self.greeted |= greets;
            return (length > 0).then_some(length);
        }
        (self.partial.len() >= most).then_some(most)
    }

    /// Returns the room to grant: a frame; for the rest of a message, up to the maximum packet.
    fn bytes_room(&self) -> u64 {
        if self.state != PacketStreamState::Open || self.closing || self.room <= self.ready.len() as u64 {
            return 0;
        }
        match self.partial.len() {
            0 => self.bytes_best as u64,
            begun => self.bytes_max.saturating_sub(begun) as u64,
        }
    }
}

/// Returns the number of bytes that follow the header of a message.
fn behind(message: Message) -> u64 {
    match message {
        Message::DataSegment { length, .. } => length,
        _ => 0,
    }
}

impl Engine for PacketStream {
    type Above = Stream;
    type Below = Packets;

    no_timers!();

    fn handle_request(&mut self, _now: Instant, request: StreamRequest) {
        match request {
            StreamRequest::Connect => {
                self.state = PacketStreamState::Connecting;
                self.order = Some(PacketsRequest::Connect);
            }
            // Version 3 has no TLS and never requests it.
            StreamRequest::Secure { .. } => self.end(CloseReason::Insecure),
            StreamRequest::Write(bytes) => self.write(&bytes),
            StreamRequest::Release(bytes) => {
                self.released_bytes += bytes;
                while self.risen.front().is_some_and(|length| *length <= self.released_bytes) {
                    self.released_bytes -= self.risen.pop_front().expect("just seen");
                    self.release += 1;
                }
            }
            StreamRequest::Close => self.closing = self.state == PacketStreamState::Open,
            StreamRequest::Abort => self.end(CloseReason::Aborted),
        }
    }

    fn handle_indication(&mut self, _now: Instant, indication: PacketsIndication) {
        match indication {
            PacketsIndication::Connected { bytes_max, bytes_best, .. } => {
                self.connected(bytes_max, bytes_best);
            }
            PacketsIndication::Sizes { bytes_max, bytes_best } => self.takes(bytes_max, bytes_best),
            PacketsIndication::Room(room) => self.room = room,
            PacketsIndication::Packet(packet) => self.hear(&packet),
            PacketsIndication::Acknowledged(_) => {}
            PacketsIndication::Closed(reason) => self.closed(reason),
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<StreamIndication> {
        if let Some(indication) = self.up.pop_front() {
            return Some(indication);
        }
        let room = self.bytes_room();
        (core::mem::replace(&mut self.told, room) != room).then_some(StreamIndication::Room(room))
    }

    fn poll_request(&mut self, _now: Instant) -> Option<PacketsRequest> {
        if let Some(order) = self.order.take() {
            return Some(order);
        }
        if self.state != PacketStreamState::Open {
            return None;
        }
        if self.release > 0 {
            return Some(PacketsRequest::Release(core::mem::take(&mut self.release)));
        }
        if self.room > 0
            && let Some(packet) = self.ready.pop_front()
        {
            self.room -= 1;
            return Some(PacketsRequest::payload(packet));
        }
        if self.closing && self.ready.is_empty() {
            // From now on only the end of the connection is processed; the peer receives everything sent before it.
            self.state = PacketStreamState::Closing(CloseReason::Finished);
            return Some(PacketsRequest::Close);
        }
        None
    }

    fn finished(&self) -> bool {
        self.state == PacketStreamState::Closed && self.up.is_empty() && self.order.is_none()
    }
}
