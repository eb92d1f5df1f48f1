//! Dialogues of stations.

use super::wire::*;
use super::*;
use bytes::Bytes;
use longwire_proto::engine::Engine;
use longwire_proto::service::{FramesIndication, FramesRequest, Shares};
use longwire_proto::tcp::wire::Ipv4Header;
use longwire_proto::time::{Duration, Instant};

const HOST: InterfaceId = InterfaceId(3);
const START: Instant = Instant::ZERO;

fn address(number: u16) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, 0, number as u8)
}

/// Station of the host with this number, which has joined.
fn station(number: u16, config: EthernetConfig) -> EthernetStation {
    let mac = MacAddress::of_station(number);
    let mut station =
        EthernetStation::new(EthernetConfig { mac, addresses: vec![(HOST, address(number))], ..config });
    station.handle_request(START, (HOST, FramesRequest::Join));
    while station.poll_indication(START).is_some() {}
    assert_eq!(station.poll_request(START), Some(FramesRequest::Join));
    station
}

fn arp(numbers: &[u16]) -> Vec<(Ipv4Addr, MacAddress)> {
    numbers.iter().map(|number| (address(*number), MacAddress::of_station(*number))).collect()
}

fn datagram(from: u16, to: u16) -> Bytes {
    packet(17, address(from), address(to), b"datagram")
}

fn send(station: &mut EthernetStation, now: Instant, bytes: Bytes, token: Option<u64>) {
    let shares = Shares::default();
    station.handle_request(now, (HOST, FramesRequest::Frame { bytes, token, last: true, shares }));
}

/// Gives the station the channel until it wants it no more; returns the frames.
fn sent(station: &mut EthernetStation, now: Instant) -> Vec<EthernetFrame> {
    let mut frames = Vec::new();
    loop {
        match station.poll_request(now) {
            Some(FramesRequest::Seize) => station.handle_indication(now, FramesIndication::Room(1)),
            Some(FramesRequest::Frame { bytes, last, .. }) => {
                assert!(last, "one frame per transmission");
                frames.push(EthernetFrame::decode(&bytes).expect("a frame of this module"));
            }
            Some(FramesRequest::Join) => panic!("it has joined"),
            None => return frames,
        }
    }
}

fn said(station: &mut EthernetStation, now: Instant) -> Vec<FramesIndication> {
    let all = std::iter::from_fn(|| station.poll_indication(now));
    all.map(|(_, said)| said).filter(|said| !matches!(said, FramesIndication::Room(_))).collect()
}

fn frame(from: u16, to: u16, contents: Contents) -> FramesIndication {
    let (to, from) = (MacAddress::of_station(to), MacAddress::of_station(from));
    FramesIndication::Frame(EthernetFrame { to, from, contents }.encode())
}

#[test]
fn a_packet_to_somebody_beyond_goes_to_the_next_hop_and_leaves_there_as_it_came() {
    let routes = vec![(address(3), address(2))];
    let mut source = station(1, EthernetConfig { routes, arp: arp(&[2, 3]), ..EthernetConfig::default() });
    send(&mut source, START, datagram(1, 3), None);
    let frames = sent(&mut source, START);
    assert_eq!((frames.len(), frames[0].to), (1, MacAddress::of_station(2)));

    let forwarder = EthernetConfig { forwards: true, arp: arp(&[1, 3]), ..EthernetConfig::default() };
    let mut middle = station(2, forwarder.clone());
    middle.handle_indication(START, FramesIndication::Frame(frames[0].encode()));
    let onward = sent(&mut middle, START);
    let Contents::Ipv4(packet) = &onward[0].contents else { panic!("a packet") };
    let header = Ipv4Header::decode(&mut packet.clone()).expect("a valid header");
    assert_eq!((onward[0].to, header.time_to_live), (MacAddress::of_station(3), 63));
    assert_eq!(said(&mut middle, START), [], "the host hears nothing of it");

    let mut not_a_router = station(2, EthernetConfig { forwards: false, ..forwarder });
    not_a_router.handle_indication(START, FramesIndication::Frame(frames[0].encode()));
    assert_eq!((sent(&mut not_a_router, START), not_a_router.counters().refused), (vec![], 1));
}

#[test]
fn the_destination_gets_the_packet_without_padding_and_others_do_not() {
    for (number, heard) in [(2, 1), (4, 0)] {
        let mut station = station(number, EthernetConfig::default());
        let whole = EthernetFrame {
            to: MacAddress::of_station(2),
            from: MacAddress::of_station(1),
            contents: Contents::Ipv4(datagram(1, 2)),
        };
        let padded = [&whole.encode()[..], &[0; 18]].concat();
        station.handle_indication(START, FramesIndication::Frame(padded.into()));
        let expected = vec![FramesIndication::Frame(datagram(1, 2)); heard];
        assert_eq!(said(&mut station, START), expected);
    }
}

#[test]
fn an_unknown_neighbour_is_asked_for_and_the_packet_waits() {
    let mut station = station(1, EthernetConfig::default());
    send(&mut station, START, datagram(1, 2), Some(7));
    let asked = sent(&mut station, START);
    assert_eq!((asked.len(), asked[0].to), (1, MacAddress::BROADCAST));
    let Contents::Arp(request) = asked[0].contents else { panic!("a request") };
    let reply = Arp {
        is_reply: true,
        sender: (MacAddress::of_station(2), address(2)),
        target: (MacAddress::of_station(1), address(1)),
    };
    assert_eq!((request.is_reply, request.target.1), (false, address(2)));
    station.handle_indication(START, frame(2, 1, Contents::Arp(reply)));
    assert_eq!(sent(&mut station, START)[0].contents, Contents::Ipv4(datagram(1, 2)));
    station.handle_timeout(START + Duration::from_secs(60));
    assert_eq!(sent(&mut station, START), [], "nothing is asked any more");

    // The same request makes the other station answer, and know who asked.
    let mut other = self::station(2, EthernetConfig::default());
    other.handle_indication(START, FramesIndication::Frame(asked[0].encode()));
    assert_eq!(sent(&mut other, START)[0].contents, Contents::Arp(reply));
    send(&mut other, START, datagram(2, 1), None);
    assert_eq!(sent(&mut other, START)[0].to, MacAddress::of_station(1));
}

#[test]
fn a_neighbour_that_does_not_answer_costs_three_requests_and_the_packet() {
    let mut station = station(1, EthernetConfig::default());
    send(&mut station, START, datagram(1, 2), Some(7));
    let mut requests = sent(&mut station, START).len();
    while let Some(at) = station.poll_timeout() {
        station.handle_timeout(at);
        requests += sent(&mut station, at).len();
        assert!(at < START + Duration::from_secs(10), "it goes on asking");
    }
    assert_eq!((requests, station.counters().unresolved), (3, 1));
    assert_eq!(said(&mut station, START), [FramesIndication::Transmitted(7)], "its host goes on");
}

#[test]
fn an_echo_is_answered_without_the_host() {
    let mut station = station(2, EthernetConfig { arp: arp(&[1]), ..EthernetConfig::default() });
    let data = Bytes::from_static(b"56 bytes or so");
    let request = packet(ICMP, address(1), address(2), &Icmp::Echo(false, 9, data.clone()).encode(&[]));
    station.handle_indication(START, frame(1, 2, Contents::Ipv4(request)));
    let reply = packet(ICMP, address(2), address(1), &Icmp::Echo(true, 9, data).encode(&[]));
    assert_eq!(sent(&mut station, START)[0].contents, Contents::Ipv4(reply));
    assert_eq!(said(&mut station, START), []);
}

/// Returns the next hop that the source uses after its packet was forwarded, and the counters of both.
fn after_forwarding(redirects: bool) -> (MacAddress, u64, u64) {
    let config = EthernetConfig { redirects, arp: arp(&[1, 2, 3]), ..EthernetConfig::default() };
    let mut source = station(1, EthernetConfig { routes: vec![(address(3), address(2))], ..config.clone() });
    let mut middle = station(2, EthernetConfig { forwards: true, ..config });
    for _ in 0..2 {
        // A second redirect within a second is not sent.
        send(&mut source, START, datagram(1, 3), None);
        source.poll_indication(START);
        for frame in sent(&mut source, START) {
            middle.handle_indication(START, FramesIndication::Frame(frame.encode()));
        }
        for frame in sent(&mut middle, START) {
            source.handle_indication(START, FramesIndication::Frame(frame.encode()));
        }
    }
    send(&mut source, START, datagram(1, 3), None);
    let to = sent(&mut source, START)[0].to;
    (to, middle.counters().redirects_sent, source.counters().redirects_followed)
}

#[test]
fn a_redirect_makes_the_source_try_it_directly_where_redirects_are_on() {
    assert_eq!(after_forwarding(false), (MacAddress::of_station(2), 0, 0));
    assert_eq!(after_forwarding(true), (MacAddress::of_station(3), 1, 1));
}

#[test]
fn the_queue_is_bounded_and_its_room_is_told() {
    let config =
        EthernetConfig { queue_frames: 2, forwards: true, arp: arp(&[2, 3]), ..EthernetConfig::default() };
    let mut station = station(1, config);
    (1..=2).for_each(|token| send(&mut station, START, datagram(1, 2), Some(token)));
    assert_eq!(station.poll_indication(START), None, "the host knows that its two frames fill the queue");
    station.handle_indication(START, frame(2, 1, Contents::Ipv4(datagram(2, 3))));
    assert_eq!(station.counters().queue_full, 1, "a forwarded packet finds it full");
    assert_eq!(sent(&mut station, START).len(), 2);
    assert_eq!(station.poll_indication(START), Some((HOST, FramesIndication::Room(2))));
    station.handle_indication(START, FramesIndication::Transmitted(2));
    assert_eq!(said(&mut station, START), [FramesIndication::Transmitted(2)]);
}
