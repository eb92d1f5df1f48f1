//! The two applications: a source that offers packets at a constant rate, and a sink that observes what arrives.
//!
//! The data are big-endian words of four bytes, each the number of the word, so that the sink sees from any eight of them at
//! which place of the stream they belong, whatever was lost before.

use super::observed::SharedObserved;
use crate::workload::{FileTask, TaskIndication, TaskRequest};
use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::engine::{Engine, Indication, Request, Service};
use longwire_proto::service::{
    Datagrams, DatagramsIndication, DatagramsRequest, LinkId, Many, PeerId, Shares, Stream, StreamIndication,
    StreamRequest,
};
use longwire_proto::time::{Duration, Instant};
use std::collections::VecDeque;

/// Length of a word, bytes.
pub(super) const WORD_BYTES: u64 = 4;

/// Data that the application of the source has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Offer {
    /// Number of bytes.
    pub(super) bytes: u64,
    /// Length of a packet, bytes; a multiple of the length of a word.
    pub(super) packet_bytes: u64,
    /// Interval between packets; `None` if all are there at once.
    pub(super) interval: Option<Duration>,
}

/// Returns the data of a range of the stream, which begins and ends with a word.
pub(super) fn data(from: u64, to: u64) -> Bytes {
    let mut bytes = BytesMut::with_capacity((to - from) as usize);
    (from / WORD_BYTES..to / WORD_BYTES).for_each(|word| bytes.put_u32(word as u32));
    bytes.freeze()
}

/// Returns the place of received bytes in the stream; `None` if they are too few or not from it.
pub(super) fn place(bytes: &[u8]) -> Option<u64> {
    let word = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let offset = (0..4).find(|skip| {
        let words = word(*skip).zip(word(skip + 4));
        words.is_some_and(|(first, second)| first.wrapping_add(1) == second)
    })?;
    (u64::from(word(offset)?) * WORD_BYTES).checked_sub(offset as u64)
}

/// Packets that are offered one after the other. A packet for which there is no room at its time waits for the next one's, as
/// those of an application that tries again at its interval.
#[derive(Clone, Debug)]
pub(super) struct Packets {
    offer: Offer,
    /// Bytes that were written.
    at: u64,
    /// Time of the next packet; `None` before the start and after the end.
    next: Option<Instant>,
}

impl Packets {
    fn new(offer: Offer) -> Packets {
        Packets { offer, at: 0, next: None }
    }

    fn start(&mut self, now: Instant) {
        self.next = Some(now);
    }

    /// Returns the next packet if it is due and `room` suffices, and true if it is the last one.
    fn next(&mut self, now: Instant, room: u64) -> Option<(Bytes, bool)> {
        let due = self.next.filter(|due| *due <= now)?;
        let to = (self.at + self.offer.packet_bytes).min(self.offer.bytes);
        if let Some(interval) = self.offer.interval {
            let following = due + interval;
            self.next = Some(if following > now { following } else { now + interval });
        }
        if to - self.at > room {
            return None;
        }
        let packet = data(self.at, to);
        self.at = to;
        let last = to == self.offer.bytes;
        self.next = self.next.filter(|_| !last);
        Some((packet, last))
    }

    /// Returns the time of the next packet, if only that is missing.
    fn due(&self) -> Option<Instant> {
        self.next.filter(|_| self.offer.interval.is_some())
    }
}

/// Application over one link of a service; the source calls the sink.
pub(super) trait Transport: std::fmt::Debug + Send {
    type Service: Service;

    /// Returns the requests that open the way to the sink.
    fn open(&mut self) -> Vec<Request<Self::Service>>;

    /// Returns the room for writes, bytes.
    fn room(&self) -> u64;

    /// Returns the requests that write the next data.
    fn write(&mut self, packet: Bytes, last: bool) -> Vec<Request<Self::Service>>;

    /// Handles an indication; returns what has arrived, and requests.
    fn hear(&mut self, said: Indication<Self::Service>) -> Heard<Self::Service>;
}

/// Contents of an indication.
pub(super) struct Heard<S: Service> {
    /// Data that have arrived.
    pub(super) data: Option<Bytes>,
    /// True if nothing more can arrive.
    pub(super) ended: bool,
    pub(super) requests: Vec<Request<S>>,
}

impl<S: Service> Default for Heard<S> {
    fn default() -> Self {
        Heard { data: None, ended: false, requests: Vec::new() }
    }
}

/// One end: the application above a transport.
#[derive(Debug)]
pub(super) struct End<T: Transport> {
    transport: T,
    /// Packets of the source; `None` at the sink.
    packets: Option<Packets>,
    observed: SharedObserved,
    down: VecDeque<Request<T::Service>>,
    up: VecDeque<TaskIndication>,
    now: Instant,
}

impl<T: Transport> End<T> {
    /// Creates the source.
    pub(super) fn source(transport: T, offer: Offer, observed: SharedObserved) -> End<T> {
        End { packets: Some(Packets::new(offer)), ..End::sink(transport, observed) }
    }

    /// Creates the sink.
    pub(super) fn sink(transport: T, observed: SharedObserved) -> End<T> {
        let (down, up) = (VecDeque::new(), VecDeque::new());
        End { transport, packets: None, observed, down, up, now: Instant::ZERO }
    }
}

impl<T: Transport> Engine for End<T> {
    type Above = FileTask;
    type Below = T::Service;

    fn handle_request(&mut self, now: Instant, request: TaskRequest) {
        self.now = now;
        match (&mut self.packets, request) {
            (Some(packets), TaskRequest::Start { .. }) => packets.start(now),
            (None, TaskRequest::Expect { .. }) => {}
            _ => return,
        }
        self.down.extend(self.transport.open());
    }

    fn handle_indication(&mut self, now: Instant, said: Indication<Self::Below>) {
        self.now = now;
        let heard = self.transport.hear(said);
        self.down.extend(heard.requests);
        if self.packets.is_none()
            && let Some(bytes) = heard.data
        {
            self.observed.lock().expect("nobody panics").arrive(now, &bytes);
        }
        if heard.ended {
            self.up.push_back(TaskIndication::Done { file: 0, intact: true });
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<TaskIndication> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, now: Instant) -> Option<Request<Self::Below>> {
        if let Some(request) = self.down.pop_front() {
            return Some(request);
        }
        let (packet, last) = self.packets.as_mut()?.next(now, self.transport.room())?;
        self.down.extend(self.transport.write(packet, last));
        self.down.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.packets.as_ref()?.due()
    }
}

/// TCP: one stream, closed after the data.
#[derive(Debug)]
pub(super) struct OverStream {
    link: LinkId,
    is_source: bool,
    room: u64,
}

impl OverStream {
    pub(super) fn new(link: LinkId, is_source: bool) -> OverStream {
        OverStream { link, is_source, room: 0 }
    }
}

impl Transport for OverStream {
    type Service = Many<LinkId, Stream>;

    fn open(&mut self) -> Vec<(LinkId, StreamRequest)> {
        if self.is_source { vec![(self.link, StreamRequest::Connect)] } else { Vec::new() }
    }

    fn room(&self) -> u64 {
        self.room
    }

    fn write(&mut self, packet: Bytes, last: bool) -> Vec<(LinkId, StreamRequest)> {
        self.room -= packet.len() as u64;
        let close = last.then_some((self.link, StreamRequest::Close));
        [(self.link, StreamRequest::Write(packet))].into_iter().chain(close).collect()
    }

    fn hear(&mut self, (link, said): (LinkId, StreamIndication)) -> Heard<Self::Service> {
        let mut heard = Heard::default();
        match said {
            StreamIndication::Room(room) => self.room = room,
            StreamIndication::Data(data) => {
                heard.requests.push((link, StreamRequest::Release(data.len() as u64)));
                heard.data = Some(data);
            }
            StreamIndication::PeerClosed if !self.is_source => {
                heard.requests.push((link, StreamRequest::Close));
            }
            StreamIndication::Closed(_) => {
                self.room = 0;
                heard.ended = self.is_source;
            }
            _ => {}
        }
        heard
    }
}

/// UDP: one datagram for each packet.
#[derive(Debug)]
pub(super) struct OverDatagrams {
    link: LinkId,
    peer: Option<PeerId>,
    room: u64,
}

impl OverDatagrams {
    pub(super) fn new(link: LinkId) -> OverDatagrams {
        OverDatagrams { link, peer: None, room: 0 }
    }
}

impl Transport for OverDatagrams {
    type Service = Many<LinkId, Datagrams>;

    fn open(&mut self) -> Vec<(LinkId, DatagramsRequest)> {
        vec![(self.link, DatagramsRequest::Join { damaged: false })]
    }

    fn room(&self) -> u64 {
        if self.peer.is_some() && self.room > 0 { u64::MAX } else { 0 }
    }

    fn write(&mut self, packet: Bytes, _last: bool) -> Vec<(LinkId, DatagramsRequest)> {
        self.room -= 1;
        let shares = Shares::payload(packet.len());
        let to = self.peer.expect("room is told after joining");
        vec![(self.link, DatagramsRequest::Datagram { to, bytes: packet, shares, token: None })]
    }

    fn hear(&mut self, (link, said): (LinkId, DatagramsIndication)) -> Heard<Self::Service> {
        let mut heard = Heard::default();
        match said {
            DatagramsIndication::Joined { peer, .. } => self.peer = peer,
            DatagramsIndication::Room(room) => self.room = room,
            DatagramsIndication::Datagram { bytes, .. } => {
                heard.requests.push((link, DatagramsRequest::Release(bytes.len() as u64)));
                heard.data = Some(bytes);
            }
            _ => {}
        }
        heard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_of_the_stream_tells_its_place() {
        let all = data(0, 4000);
        for from in 0..200 {
            assert_eq!(place(&all[from..from + 11]), Some(from as u64));
        }
        assert_eq!(place(&all[..7]), None);
    }

    #[test]
    fn packets_come_at_their_interval_and_wait_for_room() {
        let at = |millis: u64| Instant::ZERO + Duration::from_millis(millis);
        let offer = Offer { bytes: 2500, packet_bytes: 1000, interval: Some(Duration::from_millis(10)) };
        let mut packets = Packets::new(offer);
        packets.start(at(5));
        let mut next = |millis, room| packets.next(at(millis), room).map(|(data, last)| (data.len(), last));
        assert_eq!(next(5, 5000), Some((1000, false)));
        assert_eq!(next(14, 5000), None);
        assert_eq!(next(15, 999), None, "there is no room, and the next attempt is one interval later");
        assert_eq!(next(24, 5000), None);
        assert_eq!(next(25, 5000), Some((1000, false)));
        assert_eq!(next(35, 5000), Some((500, true)));
        assert_eq!((packets.next(at(99), 5000), packets.due()), (None, None));
    }
}
