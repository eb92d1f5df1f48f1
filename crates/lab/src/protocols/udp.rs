//! The part of the operating system below bundles over UDP.
//!
//! [`UdpHost`] is UDP (RFC 768) over IPv4 (RFC 791) over the interfaces of a simulated node: one port, the same at both
//! ends of a hop. There is no IP fragmentation: the length of datagrams is limited by the MTU, and the agent fragments
//! bundles.

use super::NodePosition;
use super::node::{ONWARD_LINK, address};
use super::{INWARD, ONWARD};
use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::engine::{Engine, no_timers};
use longwire_proto::observe::Observation;
use longwire_proto::peers::Senders;
use longwire_proto::service::{
    CloseReason, Datagrams, DatagramsIndication, DatagramsRequest, Frames, FramesIndication, FramesRequest,
    InterfaceId, LinkId, Many, PeerId,
};
use longwire_proto::tcp::wire::{Ipv4Header, internet_checksum};
use longwire_proto::time::Instant;
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// Protocol number of UDP in IPv4.
const PROTOCOL: u8 = 17;
/// Header bytes of IPv4 and UDP per datagram.
const HEADERS_BYTES: u64 = 28;
const UDP_HEADER_BYTES: u16 = 8;
/// Address of the group of all nodes on a channel.
const GROUP: Ipv4Addr = Ipv4Addr::new(239, 0, 0, 1);
/// Maximum unreleased datagrams of an interface, bytes; more are dropped, as by the buffer of a socket.
const UNRELEASED_MAX: u64 = 1 << 20;

/// Counts of the datagrams of one end.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Counters {
    sent: u64,
    dropped: u64,
    damaged: u64,
}

#[derive(Debug)]
struct HopEnd {
    interface: InterfaceId,
    /// Link of the user; on the interface towards the source, the incoming link that the peer opens.
    link: LinkId,
    port: u16,
    here: Ipv4Addr,
    there: Ipv4Addr,
    /// Senders to this end, if `there` is a group; `None` for one other end.
    senders: Option<Senders<Ipv4Addr>>,
    datagram_bytes_max: u64,
    open: bool,
    /// The user has asked for damaged datagrams.
    takes_damaged: bool,
    /// Tokens of the user for the reports of datagrams that have not left, by their tokens as frames.
    tokens: BTreeMap<u64, u64>,
    /// Frames that may be passed down.
    room: u32,
    /// Room granted to the user.
    told: u64,
    unreleased: u64,
    counters: Counters,
}

impl HopEnd {
    fn new(place: &NodePosition, interface: InterfaceId, hop: usize, end: u8, port: u16) -> HopEnd {
        let link = if interface == ONWARD { ONWARD_LINK } else { LinkId(LinkId::FIRST_INCOMING) };
        HopEnd {
            interface,
            link,
            port,
            here: address(hop, end),
            there: address(hop, 3 - end),
            senders: None,
            datagram_bytes_max: u64::from(place.mtus[hop]) - HEADERS_BYTES,
            open: interface == INWARD,
            takes_damaged: false,
            tokens: BTreeMap::new(),
            room: 0,
            told: 0,
            unreleased: 0,
            counters: Counters::default(),
        }
    }

    /// Returns the indication that the port is open. Only the end that opens the hop has a configured peer.
    fn joined(&self) -> DatagramsIndication {
        let is_group = self.senders.is_some();
        let peer = (self.interface == ONWARD && !is_group).then_some(PeerId::CONFIGURED);
        let group = is_group.then_some(PeerId::CONFIGURED);
        DatagramsIndication::Joined { bytes_max: self.datagram_bytes_max, peer, group }
    }

    /// Returns the address of a peer: the other end of the hop, to which every peer leads, unless there are several.
    fn address(&self, peer: PeerId) -> Ipv4Addr {
        let sender = self.senders.as_ref().and_then(|senders| senders.address(peer));
        sender.copied().unwrap_or(self.there)
    }

    fn packet(&mut self, to: Ipv4Addr, payload: &[u8]) -> Bytes {
        let length = UDP_HEADER_BYTES + payload.len() as u16;
        let header = Ipv4Header {
            service: 0,
            identification: self.counters.sent as u16,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: 0,
            time_to_live: 64,
            protocol: PROTOCOL,
            source: self.here,
            destination: to,
            payload_bytes: length,
        };
        let mut out = BytesMut::with_capacity(usize::from(length) + 20);
        header.encode(&mut out);
        let checksum = match self.checksum((self.here, to), length, 0, payload) {
            // A user of damaged datagrams wants its own to arrive, too. Zero means that there is no checksum (RFC 768).
            _ if self.takes_damaged => 0,
            0 => 0xffff,
            checksum => checksum,
        };
        [self.port, self.port, length, checksum].into_iter().for_each(|field| out.put_u16(field));
        out.put_slice(payload);
        self.counters.sent += 1;
        out.freeze()
    }

    /// Returns the datagram in a frame with its header, and true if it has a checksum that is wrong; `None` if a header is damaged or names
    /// another destination.
    fn datagram(&self, mut frame: Bytes) -> Option<(Ipv4Header, Bytes, bool)> {
        let header = Ipv4Header::decode(&mut frame).ok()?;
        let whole = !header.more_fragments && header.fragment_offset == 0;
        let is_for_us =
            header.destination == self.here || (self.senders.is_some() && header.destination == self.there);
        if !whole || header.protocol != PROTOCOL || !is_for_us {
            return None;
        }
        let word = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
        let (port, length, checksum) = (word(2)?, word(4)?, word(6)?);
        if port != self.port || length != header.payload_bytes || length < UDP_HEADER_BYTES {
            return None;
        }
        let payload = frame.slice(usize::from(UDP_HEADER_BYTES)..usize::from(length));
        let right = checksum == 0
            || self.checksum((header.source, header.destination), length, checksum, &payload) == 0;
        (word(0)? == self.port).then_some((header, payload, !right))
    }

    /// Computes the checksum over the pseudo header, the header with this checksum in it, and the payload (RFC 768).
    fn checksum(&self, ends: (Ipv4Addr, Ipv4Addr), length: u16, stands: u16, payload: &[u8]) -> u16 {
        let mut all = BytesMut::with_capacity(20 + payload.len());
        [ends.0, ends.1].iter().for_each(|end| all.put_slice(&end.octets()));
        let fields = [u16::from(PROTOCOL), length, self.port, self.port, length, stands];
        fields.into_iter().for_each(|field| all.put_u16(field));
        all.put_slice(payload);
        internet_checksum(&all)
    }
}

/// UDP and IPv4 of one node.
#[derive(Debug)]
pub struct UdpHost {
    ports: Vec<HopEnd>,
    up: VecDeque<(LinkId, DatagramsIndication)>,
    down: VecDeque<(InterfaceId, FramesRequest)>,
}

impl UdpHost {
    /// Creates the host of a node of a path, whose ports have this number.
    pub fn new(place: &NodePosition, port: u16) -> UdpHost {
        let inward = (place.position > 0).then(|| HopEnd::new(place, INWARD, place.position - 1, 2, port));
        let onward = (!place.is_destination()).then(|| HopEnd::new(place, ONWARD, place.position, 1, port));
        let ports: Vec<HopEnd> = inward.into_iter().chain(onward).collect();
        let listening = ports.iter().filter(|port| port.open);
        let up = listening.map(|port| (port.link, port.joined())).collect();
        let down = ports.iter().map(|port| (port.interface, FramesRequest::Join)).collect();
        UdpHost { ports, up, down }
    }

    /// Creates the host of a node in a group of all nodes on one channel. The source opens its end; those of the others are open.
    pub(super) fn in_group(place: &NodePosition, interface: InterfaceId, port: u16) -> UdpHost {
        let is_source = place.position == 0;
        let end = HopEnd {
            link: if is_source { ONWARD_LINK } else { LinkId(LinkId::FIRST_INCOMING) },
            here: place.addresses_in_group()[place.position],
            there: GROUP,
            senders: Some(Senders::new(place.names.len())),
            open: !is_source,
            ..HopEnd::new(place, interface, 0, 1, port)
        };
        let up = (!is_source).then(|| (end.link, end.joined())).into_iter().collect();
        UdpHost { ports: vec![end], up, down: [(interface, FramesRequest::Join)].into() }
    }
}

impl NodePosition {
    /// Addresses of the nodes of a group of all nodes on one channel.
    pub(crate) fn addresses_in_group(&self) -> Vec<Ipv4Addr> {
        (1..=self.names.len() as u8).map(|end| address(0, end)).collect()
    }
}

impl Engine for UdpHost {
    type Above = Many<LinkId, Datagrams>;
    type Below = Many<InterfaceId, Frames>;

    no_timers!();

    fn handle_request(&mut self, _now: Instant, (link, request): (LinkId, DatagramsRequest)) {
        let Some(port) = self.ports.iter_mut().find(|port| port.link == link) else {
            if matches!(request, DatagramsRequest::Join { .. }) {
                self.up.push_back((link, DatagramsIndication::Left(CloseReason::Unreachable)));
            }
            return;
        };
        match request {
            DatagramsRequest::Join { damaged } => {
                (port.open, port.told, port.takes_damaged) = (true, 0, damaged);
                self.up.push_back((link, port.joined()));
            }
            DatagramsRequest::Leave => {
                port.open = false;
                port.tokens.clear();
            }
            DatagramsRequest::Release(bytes) => port.unreleased = port.unreleased.saturating_sub(bytes),
            DatagramsRequest::Datagram { to, bytes: payload, shares, token } => {
                port.room = port.room.checked_sub(1).expect("a datagram needs room");
                port.told -= 1;
                let bytes = port.packet(port.address(to), &payload);
                let shares = shares.in_frame(payload.len(), bytes.len());
                port.tokens.extend(token.map(|token| (port.counters.sent, token)));
                let token = token.map(|_| port.counters.sent);
                let frame = FramesRequest::Frame { bytes, token, last: true, shares };
                self.down.push_back((port.interface, frame));
            }
        }
    }

    fn handle_indication(&mut self, _now: Instant, (interface, said): (InterfaceId, FramesIndication)) {
        let Some(port) = self.ports.iter_mut().find(|port| port.interface == interface) else { return };
        match said {
            FramesIndication::Room(room) => port.room = room,
            FramesIndication::Frame(frame) => match port.datagram(frame) {
                None => port.counters.damaged += 1,
                Some((_, _, true)) if !port.takes_damaged => port.counters.damaged += 1,
                Some(_) if !port.open || port.unreleased > UNRELEASED_MAX => port.counters.dropped += 1,
                Some((header, bytes, damaged)) => {
                    port.unreleased += bytes.len() as u64;
                    let to_group = header.destination != port.here;
                    let senders = port.senders.as_mut();
                    let from = senders.map_or(PeerId::CONFIGURED, |senders| senders.hear(&header.source));
                    let datagram = DatagramsIndication::Datagram { from, to_group, bytes, damaged };
                    self.up.push_back((port.link, datagram));
                }
            },
            FramesIndication::Transmitted(token) => {
                let transmitted = port.tokens.remove(&token).map(DatagramsIndication::Transmitted);
                self.up.extend(transmitted.map(|said| (port.link, said)));
            }
            FramesIndication::Carrier(carrier) if port.open => {
                self.up.push_back((port.link, DatagramsIndication::Carrier(carrier)));
            }
            FramesIndication::Busy(_) | FramesIndication::Carrier(_) => {}
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<(LinkId, DatagramsIndication)> {
        if let Some(indication) = self.up.pop_front() {
            return Some(indication);
        }
        let changed = |port: &&mut HopEnd| port.open && port.told != u64::from(port.room);
        let port = self.ports.iter_mut().find(changed)?;
        port.told = u64::from(port.room);
        Some((port.link, DatagramsIndication::Room(port.told)))
    }

    fn poll_request(&mut self, _now: Instant) -> Option<(InterfaceId, FramesRequest)> {
        self.down.pop_front()
    }

    fn observe(&self, view: &mut Observation) {
        let part = view.part("udp");
        for port in &self.ports {
            part.count(&port.counters);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_proto::service::Shares;

    fn port(interface: InterfaceId, end: u8) -> HopEnd {
        let place = NodePosition {
            position: 0,
            names: vec!["tx".into(), "rx".into()],
            mtus: vec![1500],
            radios: vec![None],
            announced_outages: Vec::new(),
            bundles: crate::bundle_observer::record(1),
            arrivals: Default::default(),
        };
        HopEnd::new(&place, interface, 0, end, 4556)
    }

    #[test]
    fn a_datagram_crosses_as_it_is_and_no_flipped_bit_gets_through() {
        let (mut from, to) = (port(ONWARD, 1), port(INWARD, 2));
        for payload in [&b""[..], b"a", b"bundle", &[0xff; 1472]] {
            let packet = from.packet(to.here, payload);
            assert_eq!(packet.len() as u64, payload.len() as u64 + HEADERS_BYTES);
            let (header, read, damaged) = to.datagram(packet.clone()).expect("a datagram");
            assert_eq!((header.source, &read[..], damaged), (from.here, payload, false));
            for bit in 0..packet.len() * 8 {
                let mut wrong = packet.to_vec();
                wrong[bit / 8] ^= 1 << (bit % 8);
                let read = to.datagram(wrong.into());
                assert!(read.is_none_or(|(_, _, damaged)| damaged), "bit {bit}");
            }
            assert!(to.datagram(packet.slice(..packet.len() - 1)).is_none());
        }
    }

    #[test]
    fn a_damaged_datagram_rises_marked_where_it_is_asked_for_and_not_elsewhere() {
        let (now, link) = (Instant::ZERO, LinkId(LinkId::FIRST_INCOMING));
        let mut packet = port(ONWARD, 1).packet(port(INWARD, 2).here, b"hi").to_vec();
        *packet.last_mut().expect("a packet") ^= 1;
        for asked in [false, true] {
            let ports = vec![port(INWARD, 2)];
            let mut host = UdpHost { ports, up: VecDeque::new(), down: VecDeque::new() };
            host.handle_request(now, (link, DatagramsRequest::Join { damaged: asked }));
            let frame = FramesIndication::Frame(Bytes::from(packet.clone()));
            host.handle_indication(now, (INWARD, frame));
            let said = std::iter::from_fn(|| host.poll_indication(now)).map(|(_, said)| said);
            let risen: Vec<_> =
                said.filter(|said| !matches!(said, DatagramsIndication::Joined { .. })).collect();
            let (from, bytes) = (PeerId::CONFIGURED, Bytes::from_static(b"hh"));
            let marked = DatagramsIndication::Datagram { from, to_group: false, bytes, damaged: true };
            assert_eq!(
                (risen, host.ports[0].counters.damaged),
                if asked { (vec![marked], 0) } else { (vec![], 1) }
            );
        }
    }

    #[test]
    fn a_datagram_is_reported_when_its_frame_has_left_and_to_no_later_user() {
        let now = Instant::ZERO;
        let ports = vec![port(ONWARD, 1)];
        let mut host = UdpHost { ports, up: VecDeque::new(), down: VecDeque::new() };
        let join_and_send = |host: &mut UdpHost, token| {
            host.handle_request(now, (ONWARD_LINK, DatagramsRequest::Join { damaged: false }));
            host.handle_indication(now, (ONWARD, FramesIndication::Room(1)));
            while host.poll_indication(now).is_some() {}
            let (to, bytes, shares) = (PeerId::CONFIGURED, Bytes::from_static(b"hi"), Shares::control(2));
            host.handle_request(now, (ONWARD_LINK, DatagramsRequest::Datagram { to, bytes, shares, token }));
            match host.poll_request(now) {
                Some((ONWARD, FramesRequest::Frame { token, shares, .. })) => (token, shares),
                other => panic!("{other:?}"),
            }
        };
        let (frame, shares) = join_and_send(&mut host, Some(9));
        assert_eq!(shares, Shares::control(30), "with its headers");
        host.handle_request(now, (ONWARD_LINK, DatagramsRequest::Leave));
        assert_eq!(join_and_send(&mut host, None).0, None);
        host.handle_request(now, (ONWARD_LINK, DatagramsRequest::Leave));
        let (later, _) = join_and_send(&mut host, Some(9));
        for (token, said) in [(frame, None), (later, Some(9)), (later, None)] {
            host.handle_indication(now, (ONWARD, FramesIndication::Transmitted(token.expect("asked for"))));
            let transmitted = said.map(|token| (ONWARD_LINK, DatagramsIndication::Transmitted(token)));
            assert_eq!(host.up.pop_front(), transmitted);
        }
    }

    #[test]
    fn a_packet_is_these_bytes() {
        let packet = port(ONWARD, 1).packet(port(INWARD, 2).here, b"hi");
        let expected = [
            0x45, 0, 0, 30, 0, 0, 0x40, 0, 64, 17, 0x26, 0xcd, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
            0x11, 0xcc, 0x11, 0xcc, 0, 10, 0x5f, 0xd6, b'h', b'i',
        ];
        assert_eq!(packet[..], expected);
    }
}
