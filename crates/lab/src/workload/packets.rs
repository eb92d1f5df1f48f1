//! Plain stream over a connected packet link without additions: a file transfer over AX.25 without bundles.
//!
//! Packets are as long as a frame of the link allows; only the last one before the end is shorter.

use bytes::{Bytes, BytesMut};
use longwire_proto::engine::{Engine, no_timers};
use longwire_proto::service::{
    CloseReason, Packets, PacketsIndication, PacketsRequest, Stream, StreamIndication, StreamRequest,
};
use longwire_proto::time::Instant;
use std::collections::VecDeque;

/// Stream over one link.
#[derive(Debug, Default)]
pub struct StreamOverPackets {
    open: bool,
    /// Maximum packet length, bytes.
    packet_bytes: usize,
    /// Packets that may be passed down.
    room: u64,
    /// Room granted to the user, bytes.
    told: u64,
    /// Written data that do not fill a packet yet or wait for room.
    waiting: BytesMut,
    closing: bool,
    down: VecDeque<PacketsRequest>,
    up: VecDeque<StreamIndication>,
}

impl StreamOverPackets {
    fn bytes_room(&self) -> u64 {
        match self.open && !self.closing {
            true => (self.room * self.packet_bytes as u64).saturating_sub(self.waiting.len() as u64),
            false => 0,
        }
    }

    fn packet(&mut self) -> Option<Bytes> {
        let length = self.waiting.len().min(self.packet_bytes);
        let ready = length == self.packet_bytes || self.closing && length > 0;
        (self.open && self.room > 0 && ready).then(|| self.waiting.split_to(length).freeze())
    }
}

impl Engine for StreamOverPackets {
    type Above = Stream;
    type Below = Packets;

    no_timers!();

    fn handle_request(&mut self, _now: Instant, request: StreamRequest) {
        match request {
            StreamRequest::Connect => self.down.push_back(PacketsRequest::Connect),
            StreamRequest::Secure { .. } => self.down.push_back(PacketsRequest::Abort),
            StreamRequest::Write(bytes) => {
                self.told = self.told.saturating_sub(bytes.len() as u64);
                self.waiting.extend_from_slice(&bytes);
            }
            // Packets are released as they arrive: the receiving application accepts data at once.
            StreamRequest::Release(_) => {}
            StreamRequest::Close => self.closing = self.open,
            StreamRequest::Abort => self.down.push_back(PacketsRequest::Abort),
        }
    }

    fn handle_indication(&mut self, _now: Instant, indication: PacketsIndication) {
        match indication {
            PacketsIndication::Connected { bytes_best, .. } => {
                let (down, up) = (core::mem::take(&mut self.down), core::mem::take(&mut self.up));
                let packet_bytes = bytes_best.max(1) as usize;
                *self =
                    StreamOverPackets { open: true, packet_bytes, down, up, ..StreamOverPackets::default() };
                self.up.push_back(StreamIndication::Connected);
            }
            PacketsIndication::Sizes { bytes_best, .. } => self.packet_bytes = bytes_best.max(1) as usize,
            PacketsIndication::Room(room) => self.room = room,
            PacketsIndication::Packet(packet) => {
                self.down.push_back(PacketsRequest::Release(1));
                self.up.push_back(StreamIndication::Data(packet));
            }
            PacketsIndication::Acknowledged(_) => {}
            PacketsIndication::Closed(reason) => {
                // A link that ended normally before everything was passed down has not carried the file.
                let whole = self.waiting.is_empty();
                let reason = match reason {
                    CloseReason::Finished if !whole => CloseReason::Aborted,
                    other => other,
                };
                *self =
                    StreamOverPackets { up: core::mem::take(&mut self.up), ..StreamOverPackets::default() };
                self.up.push_back(StreamIndication::Closed(reason));
            }
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
        if let Some(request) = self.down.pop_front() {
            return Some(request);
        }
        if let Some(packet) = self.packet() {
            self.room -= 1;
            return Some(PacketsRequest::payload(packet));
        }
        let done = self.closing && self.open && self.waiting.is_empty();
        done.then(|| {
            self.open = false;
            PacketsRequest::Close
        })
    }

    fn finished(&self) -> bool {
        !self.open && !self.closing && self.up.is_empty() && self.down.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::engine::drain;

    /// Returns its requests, and the room granted to its user if that has changed.
    fn said(stream: &mut StreamOverPackets) -> (Vec<PacketsRequest>, Option<u64>) {
        let (mut down, mut room) = (Vec::new(), None);
        let hear = |up| {
            if let StreamIndication::Room(told) = up {
                room = Some(told);
            }
        };
        drain(stream, Instant::ZERO, hear, |request| down.push(request));
        (down, room)
    }

    #[test]
    fn packets_are_full_but_for_the_last_one_which_goes_with_the_end() {
        let mut stream = StreamOverPackets::default();
        stream.handle_request(Instant::ZERO, StreamRequest::Connect);
        let peer = "N0CALL".to_owned();
        let connected = PacketsIndication::Connected { bytes_max: 1000, bytes_best: 100, peer };
        stream.handle_indication(Instant::ZERO, connected);
        stream.handle_indication(Instant::ZERO, PacketsIndication::Room(3));
        assert_eq!(said(&mut stream), (vec![PacketsRequest::Connect], Some(300)));
        let piece = Bytes::from(vec![7; 250]);
        stream.handle_request(Instant::ZERO, StreamRequest::Write(piece.clone()));
        let full = || PacketsRequest::payload(piece.slice(..100));
        assert_eq!(said(&mut stream), (vec![full(), full()], None), "50 bytes as before");
        stream.handle_request(Instant::ZERO, StreamRequest::Close);
        let last = PacketsRequest::payload(piece.slice(..50));
        assert_eq!(said(&mut stream).0, [last, PacketsRequest::Close]);
        stream.handle_indication(Instant::ZERO, PacketsIndication::Closed(CloseReason::Finished));
        assert!(!stream.finished(), "its user has not heard");
        said(&mut stream);
        assert!(stream.finished());
    }
}
