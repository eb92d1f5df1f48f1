//! Sources of single packets: pings, and datagrams at a fixed rate.

use super::world::{MakeHost, RADIO};
use crate::ethernet::wire::{ICMP, Icmp, packet};
use crate::workload::traffic::SharedMeasured;
use crate::workload::{FileTask, TaskIndication, TaskRequest};
use bytes::Bytes;
use longwire_proto::engine::{Engine, Indication, Request};
use longwire_proto::service::{FramesIndication, FramesRequest, Port, Shares};
use longwire_proto::time::{Duration, Instant};
use longwire_sim::NodeBelow;
use std::collections::VecDeque;
use std::net::Ipv4Addr;

const UDP: u8 = 17;
const UDP_HEADER_BYTES: usize = 8;

/// Source or sink of packets on interface 0.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    /// Packet that is sent at each interval; `None` at the sink.
    packet: Option<Bytes>,
    interval: Duration,
    counted_bytes: u64,
    next: Option<Instant>,
    sent_at: Instant,
    room: u32,
    measured: SharedMeasured,
    down: VecDeque<FramesRequest>,
}

impl Probe {
    fn new(
        packet: Option<Bytes>,
        interval: Duration,
        counted_bytes: u64,
        measured: &SharedMeasured,
    ) -> Probe {
        Probe {
            packet,
            interval,
            counted_bytes,
            next: None,
            sent_at: Instant::ZERO,
            room: 0,
            measured: measured.clone(),
            down: VecDeque::from([FramesRequest::Join]),
        }
    }

    /// Sends an echo request with these bytes of data at each interval, and measures the time until the reply.
    pub(super) fn ping(
        interval: Duration,
        bytes: usize,
        from: Ipv4Addr,
        to: Ipv4Addr,
        measured: &SharedMeasured,
    ) -> Probe {
        let message = Icmp::Echo(false, 1, vec![0; bytes].into()).encode(&[]);
        Probe::new(Some(packet(ICMP, from, to, &message)), interval, 0, measured)
    }

    /// A source of datagrams with these bytes, and the sink that counts them.
    pub(super) fn datagrams(
        interval: Duration,
        bytes: usize,
        from: Ipv4Addr,
        to: Ipv4Addr,
        measured: &SharedMeasured,
    ) -> [Probe; 2] {
        let datagram = packet(UDP, from, to, &vec![0; UDP_HEADER_BYTES + bytes]);
        let source = Probe::new(Some(datagram), interval, 0, &SharedMeasured::default());
        [source, Probe::new(None, interval, bytes as u64, measured)]
    }

    /// Returns a function that makes the engine of the node.
    pub(super) fn make(self) -> MakeHost {
        Box::new(move |_| Box::new(self.clone()))
    }

    fn hear(&mut self, now: Instant) {
        let mut measured = self.measured.lock().expect("nobody panics");
        measured.bytes += self.counted_bytes;
        if self.packet.is_some() {
            measured.repeated.push(now.saturating_since(self.sent_at));
        }
    }
}

impl Engine for Probe {
    type Above = FileTask;
    type Below = NodeBelow;

    fn handle_request(&mut self, now: Instant, request: TaskRequest) {
        if let TaskRequest::Start { .. } = request {
            self.next = Some(now);
        }
    }

    fn handle_indication(&mut self, now: Instant, said: Indication<NodeBelow>) {
        match said {
            Port::Second((_, FramesIndication::Room(room))) => self.room = room,
            Port::Second((_, FramesIndication::Frame(_))) => self.hear(now),
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        let (Some(at), Some(packet)) = (self.next, &self.packet) else { return };
        if at > now {
            return;
        }
        (self.next, self.sent_at) = (Some(at + self.interval), now);
        // Without room the packet is dropped, as by a socket.
        if self.room > 0 {
            self.room -= 1;
            let (bytes, shares) = (packet.clone(), Shares::payload(packet.len()));
            self.down.push_back(FramesRequest::Frame { bytes, token: None, last: true, shares });
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<TaskIndication> {
        None
    }

    fn poll_request(&mut self, _now: Instant) -> Option<Request<NodeBelow>> {
        self.down.pop_front().map(|request| Port::Second((RADIO, request)))
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }
}
