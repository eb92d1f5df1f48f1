//! Version 3 over a packet link: its octets, its acknowledgements, and the laws.

use crate::engine::{Engine, drain};
use crate::joint::{Fan, Origin, Stack};
use crate::laws::{BundleUserBehaviour, Layer, hold_over_packets};
use crate::rng::Rng;
use crate::service::{
    BundlesIndication, BundlesRequest, CloseReason, DownReason, LinkId, PacketsIndication, PacketsRequest,
    Priority, TransferId,
};
use crate::tcpcl::packet_stream::{seal, unseal};
use crate::tcpcl::{Config, PacketSession, PacketStream, Session};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::Bytes;

const SECOND: Duration = Duration::from_secs(1);

/// A session and its newest output.
struct Scene {
    session: Checked<PacketSession>,
    up: Vec<BundlesIndication>,
    down: Vec<PacketsRequest>,
}

impl Scene {
    fn new(session: Session) -> Self {
        let session = Checked::new("session", Stack::new(session, PacketStream::new()));
        Scene { session, up: vec![], down: vec![] }
    }

    /// A session established with a peer that behaves as DTN2, on a link of 128 bytes per frame.
    fn called(ack_window: u32) -> Self {
        let config = Config { ack_window, ..Config::ax25("dtn://b") };
        let mut scene = Scene::new(Session::passive(config, Rng::new(1)));
        scene.hear(connected());
        scene.hear(PacketsIndication::Room(7));
        scene.hear(packet(b"dtn!\x03\x03\x00\x1e\x07dtn://a"));
        scene
    }

    fn settle(&mut self) {
        (self.up, self.down) = (vec![], vec![]);
        let (up, down) = (&mut self.up, &mut self.down);
        drain(&mut self.session, Instant::ZERO, |said| up.push(said), |asked| down.push(asked));
    }

    fn hear(&mut self, indication: PacketsIndication) {
        self.session.handle_indication(Instant::ZERO, indication);
        self.settle();
    }

    fn ask(&mut self, request: BundlesRequest) {
        self.session.handle_request(Instant::ZERO, request);
        self.settle();
    }
}

fn connected() -> PacketsIndication {
    PacketsIndication::Connected { bytes_max: 128, bytes_best: 128, peer: "B-1".into() }
}

fn packet(content: &[u8]) -> PacketsIndication {
    PacketsIndication::Packet(seal(content))
}

#[test]
fn a_packet_is_a_message_and_its_crc() {
    // Check value of the CRC-32 of Ethernet, the highest byte first.
    assert_eq!(&seal(b"123456789")[..], b"123456789\xcb\xf4\x39\x26");
    assert_eq!(
        unseal(&Bytes::from_static(b"123456789\xcb\xf4\x39\x26")),
        Ok(Bytes::from_static(b"123456789"))
    );
    for wrong in [&b"123456789\x26\x39\xf4\xcb"[..], b"\x00\x00\x00\x00", b"", b"\x40\x00\x00"] {
        assert!(unseal(&Bytes::from_static(wrong)).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_caller_says_its_header_and_one_segment_a_packet() {
    let mut scene = Scene::new(Session::active(Config::ax25("dtn://a"), Rng::new(1)));
    scene.ask(BundlesRequest::Connect);
    assert_eq!(scene.down, [PacketsRequest::Connect]);
    scene.hear(connected());
    scene.hear(PacketsIndication::Room(7));
    // Version 3; acknowledgements and reactive fragmentation; 30 s; seven octets of EID.
    assert_eq!(scene.down, [PacketsRequest::payload(seal(b"dtn!\x03\x03\x00\x1e\x07dtn://a"))]);
    scene.hear(packet(b"dtn!\x03\x03\x00\x1e\x07dtn://b"));
    assert_eq!(scene.down, [PacketsRequest::Release(1)]);
    let room = scene.up.iter().find_map(|said| match said {
        BundlesIndication::Room(room) => Some(*room),
        _ => None,
    });
    assert_eq!(room, Some(128 - 4 - 6), "a segment with its header and its CRC fills a frame");
    scene.ask(BundlesRequest::Open { transfer: TransferId(1), priority: Priority::Normal, length: 130 });
    let (transfer, data) = (TransferId(1), Bytes::from_static(&[7; 118]));
    scene.ask(BundlesRequest::Piece { transfer, data, last: false });
    let first = [&[0x12, 118][..], &[7; 118]].concat();
    assert_eq!(scene.down, [PacketsRequest::payload(seal(&first))]);
    let (transfer, data) = (TransferId(1), Bytes::from_static(&[8; 12]));
    scene.ask(BundlesRequest::Piece { transfer, data, last: true });
    let second = [&[0x11, 12][..], &[8; 12]].concat();
    assert_eq!(scene.down, [PacketsRequest::payload(seal(&second))]);
    // One acknowledgement for both: 130 is 0x81 0x02.
    scene.hear(packet(&[0x20, 0x81, 0x02]));
    assert_eq!(scene.up, [BundlesIndication::Sent { transfer: TransferId(1) }]);
}

/// Number of acknowledgements for a number of segments of ten bytes, and the last of them.
fn acknowledgements(ack_window: u32, segments: u32) -> (usize, Option<PacketsRequest>) {
    let mut scene = Scene::called(ack_window);
    let mut said = Vec::new();
    for number in 1..=segments {
        let start = if number == 1 { 2 } else { 0 };
        scene.hear(PacketsIndication::Room(7));
        let end = u8::from(number == segments);
        scene.hear(packet(&[&[0x10 | start | end, 10][..], &[number as u8; 10]].concat()));
        let up_to = u64::from(number) * 10;
        scene.ask(BundlesRequest::Accept { transfer: TransferId(0), up_to });
        said.extend(scene.down.drain(..).filter(|asked| matches!(asked, PacketsRequest::Packet { .. })));
    }
    (said.len(), said.pop())
}

#[test]
fn an_acknowledgement_goes_for_each_window_and_for_the_whole_bundle() {
    let whole = Some(PacketsRequest::payload(seal(&[0x20, 0x81, 0x48])));
    assert_eq!(acknowledgements(1, 20), (20, whole.clone()));
    assert_eq!(acknowledgements(8, 20), (3, whole.clone()));
    assert_eq!(acknowledgements(32, 20), (1, whole));
}

#[test]
fn a_wrong_crc_ends_the_session_and_says_why() {
    let mut scene = Scene::called(8);
    let mut damaged = seal(&[0x13, 1, 9]).to_vec();
    damaged[2] ^= 1;
    scene.hear(PacketsIndication::Packet(damaged.into()));
    assert_eq!(
        (&scene.up[..], &scene.down[..]),
        (&[BundlesIndication::Room(0)][..], &[PacketsRequest::Abort][..])
    );
    scene.hear(packet(&[0x13, 1, 9]));
    assert_eq!(scene.up, [], "nothing more is heard");
    scene.hear(PacketsIndication::Closed(CloseReason::Finished));
    let reason = DownReason::Stream(CloseReason::Damaged);
    assert_eq!(scene.up, [BundlesIndication::Down { reason, retry: false }]);
}

#[test]
fn a_header_longer_than_a_packet_goes_in_pieces() {
    let name = format!("dtn://{}", "n".repeat(200));
    let mut scene = Scene::new(Session::active(Config::ax25(&name), Rng::new(1)));
    scene.ask(BundlesRequest::Connect);
    scene.hear(connected());
    scene.hear(PacketsIndication::Room(1));
    let [PacketsRequest::Packet { bytes: first, .. }] = &scene.down[..] else { panic!("{:?}", scene.down) };
    assert_eq!(first.len(), 128);
    let first = unseal(first).unwrap();
    scene.hear(PacketsIndication::Room(1));
    let [PacketsRequest::Packet { bytes: second, .. }] = &scene.down[..] else { panic!("{:?}", scene.down) };
    let header = [&first[..], &unseal(second).unwrap()].concat();
    assert_eq!(header, [b"dtn!\x03\x03\x00\x1e\x81\x4e", name.as_bytes()].concat());
}

type Factory = Box<dyn FnMut(LinkId, Origin) -> Option<PacketSession>>;

fn node(config: Config, rng: Rng) -> Fan<LinkId, PacketSession, Factory> {
    Fan::new(Box::new(move |link: LinkId, origin| {
        let rng = rng.fork(&format!("{link:?}"));
        let session = match origin {
            Origin::Above => Session::active(config.clone(), rng),
            Origin::Below => Session::passive(config.clone(), rng),
        };
        Some(Stack::new(session, PacketStream::new()))
    }))
}

#[test]
fn sessions_over_packets_keep_the_laws() {
    hold_over_packets("ax25cm", 500, |world| {
        let draw = &mut world.draw;
        let users = BundleUserBehaviour::draw(draw);
        let mut config = |_| Config {
            keepalive: Duration::from_secs(10 + draw.below(20)),
            ack_window: 1 + draw.below(10) as u32,
            transfers_max: 1 + draw.below(4) as usize,
            refusal: draw.chance(0.5),
            lengths: draw.chance(0.5),
            reconnect_min: SECOND,
            reconnect_max: 20 * SECOND,
            ..Config::ax25("dtn://node/")
        };
        let mut configs = [0, 1].map(&mut config);
        configs[1].node_id = "dtn://peer/".to_owned();
        let layer = Layer::new(users, move |start| node(configs[start.node].clone(), start.rng));
        let keepalives = 4 * (3_600 / 10 + 1);
        Layer { damage: true, patience: 7_200 * SECOND, keepalives, ..layer }
    });
}
