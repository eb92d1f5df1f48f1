//! UI frames: their senders, their receivers, and the reports of their transmission.

use super::channel::station;
use crate::ax25::{
    Address, CommandResponse, Control, Frame, LinkConfig, Modulo, PeerStation, Station, Unnumbered,
};
use crate::engine::{Engine, drain};
use crate::service::{
    DatagramsIndication, DatagramsRequest, FramesIndication, FramesRequest, LinkId, PeerId, Port, Shares,
};
use crate::time::Instant;
use crate::wrap::Checked;
use bytes::Bytes;

const GROUP: LinkId = LinkId(9);
const BOB: LinkId = LinkId(8);
const NOW: Instant = Instant::ZERO;

/// A station with two destinations of UI frames, and its output.
struct Bench {
    station: Checked<Station>,
    up: Vec<(LinkId, DatagramsIndication)>,
    down: Vec<FramesRequest>,
}

impl Bench {
    fn new() -> Self {
        let mut config = station("A", &[]);
        for (id, name) in [(GROUP, "ALL"), (BOB, "B")] {
            let station = name.parse().unwrap();
            let place = PeerStation { station, path: Vec::new(), link: LinkConfig::default() };
            config.unconnected.insert(id, place);
        }
        let station = Checked::new("station", Station::new(config));
        let mut bench = Bench { station, up: vec![], down: vec![] };
        for id in [GROUP, BOB] {
            bench.ask(id, DatagramsRequest::Join { damaged: false });
        }
        bench.hear(FramesIndication::Room(100));
        bench
    }

    fn settle(&mut self) {
        (self.up, self.down) = (vec![], vec![]);
        let (up, down) = (&mut self.up, &mut self.down);
        let mut risen = |said| {
            if let Port::Second((id, said)) = said
                && !matches!(said, DatagramsIndication::Room(_))
            {
                up.push((id, said));
            }
        };
        drain(&mut self.station, NOW, &mut risen, |asked| down.push(asked));
    }

    fn ask(&mut self, id: LinkId, request: DatagramsRequest) {
        self.station.handle_request(NOW, Port::Second((id, request)));
        self.settle();
    }

    fn hear(&mut self, indication: FramesIndication) {
        self.station.handle_indication(NOW, indication);
        self.settle();
    }

    /// Delivers a UI frame, and returns its indication without its contents.
    fn frame(&mut self, from: &str, to: &str) -> (LinkId, PeerId, bool) {
        let address = Address::new(from.parse().unwrap(), to.parse().unwrap(), CommandResponse::Command, &[]);
        let control = Control::Unnumbered { function: Unnumbered::Information, poll_final: false };
        let frame =
            Frame { pid: 0xf0, information: Bytes::from_static(b"hello"), ..Frame::bare(address, control) };
        self.hear(FramesIndication::Frame(frame.to_bytes(Modulo::Eight)));
        match &self.up[..] {
            [(id, DatagramsIndication::Datagram { from, to_group, bytes, damaged: false })] => {
                assert_eq!(bytes[..], b"hello"[..]);
                (*id, *from, *to_group)
            }
            other => panic!("{other:?}"),
        }
    }

    /// Sends a datagram, and returns the receiver, the shares and the token of its frame.
    fn send(&mut self, id: LinkId, to: PeerId, shares: Shares, token: u64) -> Option<(String, Shares, u64)> {
        let bytes = Bytes::from_static(b"world");
        self.ask(id, DatagramsRequest::Datagram { to, bytes, shares, token: Some(token) });
        let [FramesRequest::Frame { bytes, token, shares, .. }] = &self.down[..] else { return None };
        let frame = Frame::decode(&mut bytes.clone(), Modulo::Eight).unwrap();
        Some((frame.address.destination.to_string(), *shares, token.expect("asked for")))
    }
}

#[test]
fn senders_to_a_group_are_told_apart_and_can_be_answered() {
    let mut bench = Bench::new();
    assert_eq!(bench.frame("B", "A"), (BOB, PeerId::CONFIGURED, false));
    assert_eq!(bench.frame("B", "ALL"), (GROUP, PeerId(1), true));
    assert_eq!(bench.frame("C", "ALL"), (GROUP, PeerId(2), true));
    assert_eq!(bench.frame("B", "ALL"), (GROUP, PeerId(1), true));
    let payload = Shares::payload(5);
    let receiver = |sent: Option<(String, Shares, u64)>| sent.map(|(to, shares, _)| (to, shares));
    assert_eq!(receiver(bench.send(GROUP, PeerId(2), payload, 1)), Some(("C".into(), payload)));
    assert_eq!(receiver(bench.send(GROUP, PeerId::CONFIGURED, payload, 2)), Some(("ALL".into(), payload)));
    let whole = Shares::acknowledgement(16 + 5);
    let acknowledges = bench.send(BOB, PeerId::CONFIGURED, Shares::acknowledgement(5), 3);
    assert_eq!(receiver(acknowledges), Some(("B".into(), whole)), "it acknowledges with its headers");
}

#[test]
fn the_oldest_sender_is_forgotten_and_not_answered() {
    let mut bench = Bench::new();
    for sender in 1..=257 {
        assert_eq!(bench.frame(&format!("S{sender:03}"), "ALL"), (GROUP, PeerId(sender), true));
        bench.ask(GROUP, DatagramsRequest::Release(5));
    }
    assert_eq!(bench.send(GROUP, PeerId(1), Shares::payload(5), 7), None);
    assert_eq!(bench.up, [(GROUP, DatagramsIndication::Transmitted(7))]);
    assert_eq!(bench.station.engine.drops().late_requests, 1);
    assert!(bench.send(GROUP, PeerId(257), Shares::payload(5), 8).is_some());
}

#[test]
fn a_transmission_is_reported_once_and_with_the_line_at_the_latest() {
    let mut bench = Bench::new();
    let mut sent = |id, token| bench.send(id, PeerId::CONFIGURED, Shares::payload(5), token).unwrap().2;
    let (first, second) = (sent(GROUP, 7), sent(BOB, 7));
    let third = sent(BOB, 8);
    bench.hear(FramesIndication::Transmitted(second));
    assert_eq!(bench.up, [(BOB, DatagramsIndication::Transmitted(7))]);
    bench.ask(BOB, DatagramsRequest::Leave);
    bench.hear(FramesIndication::Transmitted(third));
    assert!(bench.up.is_empty(), "its user has left: {:?}", bench.up);
    bench.hear(FramesIndication::Carrier(false));
    let lost = [DatagramsIndication::Transmitted(7), DatagramsIndication::Carrier(false)];
    assert_eq!(bench.up, lost.map(|said| (GROUP, said)));
    bench.hear(FramesIndication::Carrier(true));
    assert_eq!(bench.up, [(GROUP, DatagramsIndication::Carrier(true))], "not the frame {first} again");
}
