//! A node between two hops that forwards IP packets, for plain TCP from end to end.
//!
//! It has no memory beyond the queues of its interfaces: a packet that finds the queue full is dropped, as by any router
//! in front of a link that is down.

use super::{INWARD, ONWARD};
use crate::workload::FileTask;
use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::engine::{Engine, Indication, Request, Service, no_timers};
use longwire_proto::observe::Observation;
use longwire_proto::service::{Frames, FramesIndication, FramesRequest, InterfaceId, Many, Shares};
use longwire_proto::tcp::wire::{Ipv4Header, Packet};
use longwire_proto::time::Instant;
use serde::Serialize;
use std::collections::VecDeque;

/// Counts of packets.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counters {
    forwarded: u64,
    /// Packets that found the queue of the interface full.
    dropped: u64,
    /// Frames without a valid IPv4 header, and packets whose time to live has ended.
    refused: u64,
}

/// Forwards packets from one interface to the other.
#[derive(Debug)]
pub struct IpRelay {
    /// Frames that may be passed down, towards the source and towards the destination.
    room: [u32; 2],
    down: VecDeque<(InterfaceId, FramesRequest)>,
    counters: Counters,
}

impl Default for IpRelay {
    /// Creates a relay between the two interfaces of a node.
    fn default() -> IpRelay {
        let down = [INWARD, ONWARD].map(|interface| (interface, FramesRequest::Join)).into();
        IpRelay { room: [0; 2], down, counters: Counters::default() }
    }
}

impl IpRelay {
    fn forward(&mut self, from: InterfaceId, frame: Bytes) {
        let Some((bytes, shares)) = onward(&frame) else {
            self.counters.refused += 1;
            return;
        };
        let (to, way) = if from == INWARD { (ONWARD, 1) } else { (INWARD, 0) };
        if self.room[way] == 0 {
            self.counters.dropped += 1;
            return;
        }
        self.room[way] -= 1;
        self.counters.forwarded += 1;
        self.down.push_back((to, FramesRequest::Frame { bytes, token: None, last: true, shares }));
    }
}

/// Returns the packet with its new time to live. A relay knows which bytes are data, not whether it is the first time.
fn onward(frame: &Bytes) -> Option<(Bytes, Shares)> {
    let mut payload = frame.clone();
    let mut header = Ipv4Header::decode(&mut payload).ok()?;
    header.time_to_live = header.time_to_live.checked_sub(1).filter(|left| *left > 0)?;
    let data = Packet::decode(&mut frame.clone()).map_or(0, |packet| packet.segment.payload.len());
    let mut bytes = BytesMut::with_capacity(frame.len());
    header.encode(&mut bytes);
    bytes.put_slice(&payload[..usize::from(header.payload_bytes)]);
    let shares = Shares::payload(data).in_frame(data, bytes.len());
    Some((bytes.freeze(), shares))
}

impl Engine for IpRelay {
    type Above = FileTask;
    type Below = Many<InterfaceId, Frames>;

    no_timers!();

    fn handle_request(&mut self, _now: Instant, _request: <FileTask as Service>::Request) {}

    fn handle_indication(&mut self, _now: Instant, (interface, said): Indication<Self::Below>) {
        match said {
            FramesIndication::Room(room) => self.room[usize::from(interface == ONWARD)] = room,
            FramesIndication::Frame(frame) => self.forward(interface, frame),
            FramesIndication::Transmitted(_) | FramesIndication::Busy(_) | FramesIndication::Carrier(_) => {}
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<Indication<Self::Above>> {
        None
    }

    fn poll_request(&mut self, _now: Instant) -> Option<Request<Self::Below>> {
        self.down.pop_front()
    }

    fn observe(&self, view: &mut Observation) {
        view.part("relay").count(&self.counters);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn packet(time_to_live: u8, payload: &[u8]) -> Bytes {
        let header = Ipv4Header {
            service: 0,
            identification: 7,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            time_to_live,
            protocol: 17,
            source: Ipv4Addr::new(10, 0, 0, 1),
            destination: Ipv4Addr::new(10, 0, 1, 2),
            payload_bytes: payload.len() as u16,
        };
        let mut out = BytesMut::new();
        header.encode(&mut out);
        out.put_slice(payload);
        out.freeze()
    }

    fn sent(relay: &mut IpRelay) -> Vec<(InterfaceId, FramesRequest)> {
        std::iter::from_fn(|| relay.poll_request(Instant::ZERO)).collect()
    }

    #[test]
    fn a_packet_leaves_on_the_other_side_with_a_shorter_life() {
        let mut relay = IpRelay::default();
        assert_eq!(sent(&mut relay).len(), 2);
        for (from, to) in [(INWARD, ONWARD), (ONWARD, INWARD)] {
            relay.handle_indication(Instant::ZERO, (to, FramesIndication::Room(1)));
            let frame = FramesIndication::Frame(packet(64, b"payload"));
            relay.handle_indication(Instant::ZERO, (from, frame));
            let [(at, FramesRequest::Frame { bytes, .. })] = &sent(&mut relay)[..] else { panic!("a frame") };
            assert_eq!((*at, bytes), (to, &packet(63, b"payload")));
        }
    }

    #[test]
    fn what_finds_no_room_is_dropped_and_what_is_too_old_or_damaged_is_refused() {
        let mut relay = IpRelay::default();
        let _ = sent(&mut relay);
        relay.handle_indication(Instant::ZERO, (ONWARD, FramesIndication::Room(1)));
        let mut damaged = packet(64, b"x").to_vec();
        damaged[8] ^= 1;
        for frame in [packet(1, b"x"), damaged.into(), packet(64, b"1"), packet(64, b"2")] {
            relay.handle_indication(Instant::ZERO, (INWARD, FramesIndication::Frame(frame)));
        }
        assert_eq!(sent(&mut relay).len(), 1);
        let Counters { forwarded, dropped, refused } = relay.counters;
        assert_eq!((forwarded, dropped, refused), (1, 1, 2));
    }
}
