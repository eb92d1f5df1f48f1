//! Sessions over packet links: octets, scenarios, and the laws.

use super::wire::{Hello, Message, Packet};
use super::{Config, Session, Sessions};
use crate::engine::{Engine, drain};
use crate::laws::{BundleUserBehaviour, Environment, Layer, PacketLinks, PacketWeather, hold_over_packets};
use crate::rng::Rng;
use crate::service::{
    BundlesIndication, BundlesRequest, DownReason, LinkId, PacketsIndication, PacketsRequest, Priority,
    RefuseReason, TransferId,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

const SECOND: Duration = Duration::from_secs(1);
const CALL: LinkId = LinkId(1);
const CALLED: LinkId = LinkId(LinkId::FIRST_INCOMING);

fn octets(packet: &Packet) -> Vec<u8> {
    let mut out = BytesMut::new();
    packet.encode(&mut out);
    assert_eq!(Packet::decode(&mut out.clone().freeze()).as_ref(), Ok(packet));
    out.to_vec()
}

fn hello(resume: Option<(u32, u64)>) -> Hello {
    Hello { asks: false, keeps_prefix: true, tag: 0x0102_0304, resume, node_id: "ipn:1.0".into() }
}

#[test]
fn packets_and_their_octets() {
    let greeting = Packet { hello: Some(hello(None)), messages: vec![] };
    assert_eq!(octets(&greeting), b"LW\x01\x02\x01\x02\x03\x04\x07ipn:1.0");
    let again = Packet { hello: Some(hello(Some((5, 300)))), messages: vec![] };
    assert_eq!(octets(&again), b"LW\x01\x06\x01\x02\x03\x04\x00\x00\x00\x05\x82\x2c\x07ipn:1.0");
    let data = |begins, number, data| Message::Data { begins, number, data: Bytes::from_static(data) };
    for (message, expected) in [
        (Message::Whole { number: 2 }, &b"\x10\x02"[..]),
        (Message::Progress { number: 2, up_to: 300 }, b"\x11\x02\x82\x2c"),
        (Message::Refuse { number: 1, reason: RefuseReason::NoResources }, b"\x22\x01"),
        (Message::Cancel { number: 3 }, b"\x30\x03"),
        (data(Some(300), None, b"ab"), b"\x84\x82\x2cab"),
        (data(None, Some(5), b"ab"), b"\x82\x05ab"),
        (data(None, None, b"ab"), b"\x80ab"),
    ] {
        assert_eq!(octets(&Packet { hello: None, messages: vec![message] }), expected);
    }
    let two = vec![data(None, None, b"ab"), data(Some(1), None, b"c")];
    assert_eq!(octets(&Packet { hello: None, messages: two }), b"\x81\x02ab\x84\x01c");
    for wrong in
        [&b"LW\x02\x00\x00\x00\x00\x01\x00"[..], b"\x00", b"\x88", b"\x86\x01\x02", b"\x81\x05ab", b"\x10"]
    {
        assert!(Packet::decode(&mut Bytes::from_static(wrong)).is_err(), "{wrong:?}");
    }
}

fn config(name: &str, peer: Option<&str>) -> Config {
    Config { node_id: name.into(), peer_node_id: peer.map(Into::into), ..Config::default() }
}

/// A session with its last messages.
struct Scene {
    session: Checked<Session>,
    now: Instant,
    up: Vec<BundlesIndication>,
    down: Vec<PacketsRequest>,
}

impl Scene {
    fn new(session: Session) -> Self {
        Scene { session: Checked::new("session", session), now: Instant::ZERO, up: vec![], down: vec![] }
    }

    fn settle(&mut self) {
        (self.up, self.down) = (vec![], vec![]);
        let (up, down) = (&mut self.up, &mut self.down);
        drain(&mut self.session, self.now, |said| up.push(said), |asked| down.push(asked));
    }

    fn hear(&mut self, indication: PacketsIndication) {
        self.session.handle_indication(self.now, indication);
        self.settle();
    }

    fn ask(&mut self, request: BundlesRequest) {
        self.session.handle_request(self.now, request);
        self.settle();
    }

    /// Lets the next timer expire.
    fn wait(&mut self) {
        self.now = self.session.poll_timeout().expect("it waits");
        self.session.handle_timeout(self.now);
        self.settle();
    }

    fn packets(&self) -> Vec<Packet> {
        let packet = |asked: &PacketsRequest| match asked {
            PacketsRequest::Packet { bytes, .. } => Some(Packet::decode(&mut bytes.clone()).unwrap()),
            _ => None,
        };
        self.down.iter().filter_map(packet).collect()
    }
}

fn connected() -> PacketsIndication {
    PacketsIndication::Connected { bytes_max: 64, bytes_best: 64, peer: "PEER".into() }
}

fn open(number: u64, length: u64) -> BundlesRequest {
    BundlesRequest::Open { transfer: TransferId(number), priority: Priority::Normal, length }
}

fn piece(number: u64, bytes: usize, last: bool) -> BundlesRequest {
    BundlesRequest::Piece { transfer: TransferId(number), data: vec![number as u8; bytes].into(), last }
}

fn welcoming() -> Scene {
    let config = Config { welcome: Some("This is a node.\n73".into()), ..config("ipn:2.0", None) };
    let mut scene = Scene::new(Session::passive(config, Rng::new(1)));
    scene.hear(connected());
    scene.hear(PacketsIndication::Room(4));
    assert_eq!(scene.down, []);
    scene
}

fn welcome() -> [PacketsRequest; 2] {
    [PacketsRequest::payload(Bytes::from_static(b"This is a node.\r73\r")), PacketsRequest::Close]
}

#[test]
fn an_operator_who_calls_gets_a_text() {
    // At the first line, or after a silence.
    let mut scene = welcoming();
    scene.hear(PacketsIndication::Packet(Bytes::from_static(b"\r")));
    assert_eq!(scene.down, welcome());
    let mut scene = welcoming();
    scene.wait();
    assert_eq!(scene.down, welcome());
    // Nothing more is heard, and the session ends with its link.
    scene.hear(PacketsIndication::Packet(Bytes::from_static(b"HELP\r")));
    assert_eq!(scene.down, []);
    scene.hear(PacketsIndication::Closed(crate::service::CloseReason::Finished));
    assert!(scene.up.is_empty() && scene.session.finished());
    // A link that accepts one packet gets the beginning.
    let long = Config { welcome: Some("long ".repeat(100)), ..config("ipn:2.0", None) };
    let mut scene = Scene::new(Session::passive(long, Rng::new(1)));
    scene.hear(connected());
    scene.hear(PacketsIndication::Room(1));
    scene.hear(PacketsIndication::Packet(Bytes::from_static(b"\r")));
    assert_eq!(scene.down.len(), 2);
}

#[test]
fn a_node_that_calls_gets_no_text() {
    let mut scene = welcoming();
    let greeting = Packet { hello: Some(hello(None)), messages: vec![] };
    scene.hear(PacketsIndication::Packet(octets(&greeting).into()));
    assert!(matches!(&scene.up[..], [BundlesIndication::Up { .. }, ..]));
    while scene.session.poll_timeout().is_some_and(|next| next < Instant::ZERO + 60 * SECOND) {
        scene.wait();
        assert!(!scene.down.contains(&PacketsRequest::Close));
    }
    // Without a text, a caller that is no node breaks the protocol.
    let mut scene = Scene::new(Session::passive(config("ipn:2.0", None), Rng::new(1)));
    scene.hear(connected());
    scene.hear(PacketsIndication::Packet(Bytes::from_static(b"\r")));
    assert_eq!(scene.down, [PacketsRequest::Abort]);
}

#[test]
fn a_caller_says_who_it_is_with_its_first_bytes() {
    let mut scene = Scene::new(Session::active(config("ipn:1.0", Some("ipn:2.0")), Rng::new(1)));
    scene.ask(BundlesRequest::Connect);
    assert_eq!(scene.down, [PacketsRequest::Connect]);
    scene.hear(connected());
    assert!(
        matches!(&scene.up[..], [BundlesIndication::Up { peer: Some(peer), interleave: true, .. }] if peer == "ipn:2.0")
    );
    scene.hear(PacketsIndication::Room(3));
    assert_eq!((&scene.up[..], &scene.down[..]), (&[BundlesIndication::Room(192)][..], &[][..]));
    scene.ask(open(1, 100));
    scene.ask(piece(1, 100, true));
    let packets = scene.packets();
    let [Packet { hello: Some(hello), messages: first }, Packet { hello: None, messages: second }] =
        &packets[..]
    else {
        panic!("{packets:?}");
    };
    assert_eq!(hello.node_id, "ipn:1.0");
    let bytes = |count: usize| Bytes::from(vec![1; count]);
    // 16 octets of hello, two of header, and one in the packet that follows.
    assert_eq!(first[..], [Message::Data { begins: Some(100), number: None, data: bytes(46) }]);
    assert_eq!(second[..], [Message::Data { begins: None, number: None, data: bytes(54) }]);
}

#[test]
fn who_is_called_says_who_it_is_with_its_first_answer() {
    let mut scene = Scene::new(Session::passive(config("ipn:2.0", None), Rng::new(1)));
    scene.hear(connected());
    scene.hear(PacketsIndication::Room(7));
    let mut packet = BytesMut::from(&octets(&Packet { hello: Some(hello(None)), messages: vec![] })[..]);
    packet.extend_from_slice(b"\x84\x02ab");
    scene.hear(PacketsIndication::Packet(packet.freeze()));
    assert_eq!(scene.down, [], "nothing is said before there is something to say");
    scene.ask(BundlesRequest::Accept { transfer: TransferId(0), up_to: 2 });
    let packets = scene.packets();
    assert!(packets[0].hello.as_ref().is_some_and(|hello| hello.node_id == "ipn:2.0"));
    assert_eq!(packets[0].messages, [Message::Whole { number: 0 }]);
    assert!(scene.down.contains(&PacketsRequest::Acknowledge), "in the key-up of the link's own answer");
    assert!(scene.down.contains(&PacketsRequest::Release(1)));
}

#[test]
fn an_urgent_bundle_overtakes_between_two_frames() {
    let mut scene = Scene::new(Session::active(config("ipn:1.0", Some("ipn:2.0")), Rng::new(1)));
    scene.ask(BundlesRequest::Connect);
    scene.hear(connected());
    scene.hear(PacketsIndication::Room(1));
    scene.ask(open(1, 200));
    scene.ask(piece(1, 64, false));
    assert_eq!(scene.packets().len(), 1);
    scene.ask(open(2, 20));
    scene.hear(PacketsIndication::Room(1));
    scene.ask(piece(2, 20, true));
    // The first 19 bytes of the first bundle, passed down before, precede it in the same frame; the rest follows.
    scene.ask(piece(1, 25, false));
    let numbers: Vec<_> = scene.packets()[0]
        .messages
        .iter()
        .map(|message| match message {
            Message::Data { begins, number, data } => (*begins, *number, data.len()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(numbers, [(None, None, 19), (Some(20), None, 20), (None, Some(0), 18)]);
}

#[test]
fn a_caller_that_says_it_is_this_node_is_left() {
    for (own, is_up) in [("ipn:1.0", false), ("ipn:9.0", true)] {
        let mut scene = Scene::new(Session::passive(config(own, None), Rng::new(1)));
        scene.hear(connected());
        scene.hear(PacketsIndication::Room(1));
        let hello = Bytes::from_static(b"LW\x01\x02\x01\x02\x03\x04\x07ipn:1.0");
        scene.hear(PacketsIndication::Packet(hello));
        let up = scene.up.iter().any(|said| matches!(said, BundlesIndication::Up { .. }));
        assert_eq!((up, scene.down == [PacketsRequest::Abort]), (is_up, !is_up), "{own}");
    }
}

#[test]
fn a_peer_with_another_name_or_another_language_is_left() {
    let wrong: [(&[u8], DownReason); 3] = [
        (b"LW\x01\x02\x01\x02\x03\x04\x07ipn:3.0", DownReason::Identity),
        (b"*** BBS 1.0 ready\r", DownReason::ProtocolError),
        (b"\x84\x02ab", DownReason::ProtocolError),
    ];
    for (bytes, reason) in wrong {
        let mut scene = Scene::new(Session::active(config("ipn:1.0", Some("ipn:2.0")), Rng::new(1)));
        scene.ask(BundlesRequest::Connect);
        scene.hear(connected());
        scene.hear(PacketsIndication::Packet(Bytes::from_static(bytes)));
        assert_eq!(scene.down, [PacketsRequest::Abort]);
        scene.hear(PacketsIndication::Closed(crate::service::CloseReason::Finished));
        assert_eq!(scene.up, [BundlesIndication::Down { reason, retry: true }]);
    }
}

#[test]
fn bytes_beyond_a_bundle_end_the_link_and_lose_the_bundle() {
    for more in [&b"\x80abcd"[..], b"\x80", b"\x84\x00a"] {
        let mut scene = Scene::new(Session::passive(config("ipn:2.0", None), Rng::new(1)));
        scene.hear(connected());
        scene.hear(PacketsIndication::Room(7));
        let greeting = octets(&Packet { hello: Some(hello(None)), messages: vec![] });
        scene.hear(PacketsIndication::Packet([&greeting[..], b"\x84\x05ab"].concat().into()));
        scene.hear(PacketsIndication::Packet(Bytes::from_static(more)));
        assert_eq!(scene.down, [PacketsRequest::Abort]);
        scene.hear(PacketsIndication::Closed(crate::service::CloseReason::Finished));
        let lost = BundlesIndication::Lost { transfer: TransferId(0) };
        let down = BundlesIndication::Down { reason: DownReason::ProtocolError, retry: false };
        assert_eq!((scene.up.first(), scene.up.last()), (Some(&lost), Some(&down)));
    }
}

/// Two nodes over packet links, whose users accept everything at once.
struct Pair {
    now: Instant,
    nodes: [Checked<Sessions>; 2],
    links: PacketLinks,
    room: [u64; 2],
    waiting: [VecDeque<(TransferId, Bytes)>; 2],
    risen: BTreeMap<TransferId, Vec<u8>>,
    whole: Vec<Vec<u8>>,
    /// Indications to the users, without room and pieces.
    told: Vec<(usize, BundlesIndication)>,
    /// Number of packets of node 0 that its present link has acknowledged.
    acknowledged: u64,
}

impl Pair {
    fn new(conditions: PacketWeather) -> Self {
        let node = |name: &'static str, peer: Option<&'static str>| {
            let configure = Box::new(move |_| Some(config(name, peer)));
            Checked::new(name, Sessions::new(configure, Rng::new(3).fork(name)))
        };
        let mut pair = Pair {
            now: Instant::ZERO,
            nodes: [node("ipn:1.0", Some("ipn:2.0")), node("ipn:2.0", None)],
            links: PacketLinks::new(Rng::new(4), conditions, vec![]),
            room: [0; 2],
            waiting: Default::default(),
            risen: BTreeMap::new(),
            whole: vec![],
            told: vec![],
            acknowledged: 0,
        };
        pair.nodes[0].handle_request(pair.now, (CALL, BundlesRequest::Connect));
        pair.run(5 * SECOND);
        pair
    }

    fn send(&mut self, number: u64, content: Vec<u8>) {
        let length = content.len() as u64;
        self.nodes[0].handle_request(self.now, (CALL, open(number, length)));
        self.waiting[0].push_back((TransferId(number), content.into()));
    }

    fn said(&mut self, node: usize, link: LinkId, said: BundlesIndication) {
        match said {
            BundlesIndication::Room(room) => self.room[node] = room,
            BundlesIndication::Piece { transfer, data, last } => {
                let risen = self.risen.entry(transfer).or_default();
                risen.extend_from_slice(&data);
                let up_to = risen.len() as u64;
                if last {
                    self.whole.push(self.risen.remove(&transfer).unwrap());
                }
                self.nodes[node].handle_request(self.now, (link, BundlesRequest::Accept { transfer, up_to }));
            }
            other => self.told.push((node, other)),
        }
    }

    /// Passes down as much as there is room for.
    fn hand(&mut self) -> bool {
        let Some((transfer, content)) = self.waiting[0].front_mut().filter(|_| self.room[0] > 0) else {
            return false;
        };
        let (transfer, data) = (*transfer, content.split_to(content.len().min(self.room[0] as usize)));
        self.room[0] -= data.len() as u64;
        let last = content.is_empty();
        if last {
            self.waiting[0].pop_front();
        }
        self.nodes[0].handle_request(self.now, (CALL, BundlesRequest::Piece { transfer, data, last }));
        true
    }

    fn settle(&mut self) {
        loop {
            let mut quiet = true;
            while let Some((node, (link, said))) = self.links.poll_indication() {
                if let (0, PacketsIndication::Acknowledged(all)) = (node, &said) {
                    self.acknowledged = *all;
                }
                self.nodes[node].handle_indication(self.now, (link, said));
                quiet = false;
            }
            for node in 0..2 {
                while let Some((link, said)) = self.nodes[node].poll_indication(self.now) {
                    self.said(node, link, said);
                    quiet = false;
                }
                if node == 0 && self.hand() {
                    quiet = false;
                    continue;
                }
                if let Some(asked) = self.nodes[node].poll_request(self.now) {
                    self.links.handle_request(self.now, node, asked);
                    quiet = false;
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        loop {
            self.settle();
            let next =
                [self.links.poll_timeout(), self.nodes[0].poll_timeout(), self.nodes[1].poll_timeout()];
            let Some(at) = next.into_iter().flatten().min().filter(|at| *at <= until) else { break };
            self.now = self.now.max(at);
            self.links.handle_timeout(self.now);
            for node in &mut self.nodes {
                if node.poll_timeout().is_some_and(|at| at <= self.now) {
                    node.handle_timeout(self.now);
                }
            }
        }
        self.now = until;
    }

    fn packets_of(&self, node: usize) -> Vec<Bytes> {
        self.links
            .wire
            .iter()
            .filter(|(_, from, _)| *from == node)
            .map(|(_, _, bytes)| bytes.clone())
            .collect()
    }
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 251) as u8).collect()
}

#[test]
fn after_a_cut_no_acknowledged_packet_is_sent_again() {
    let mut pair = Pair::new(PacketWeather::fair());
    pair.send(1, content(7182));
    pair.run(2 * SECOND);
    let (acknowledged, before) = (pair.acknowledged as usize, pair.packets_of(0));
    assert!(acknowledged > 3 && before.len() > acknowledged, "{acknowledged} of {}", before.len());
    pair.links.cut(pair.now);
    pair.run(60 * SECOND);
    assert_eq!(pair.whole, [content(7182)]);
    let sent = BundlesIndication::Sent { transfer: TransferId(1) };
    assert_eq!(pair.told.last(), Some(&(0, sent)));
    assert!(
        !pair.told.iter().any(|(_, said)| matches!(said, BundlesIndication::Down { .. })),
        "{:?}",
        pair.told
    );
    // A hello, then continuation from the first packet that had not arrived.
    let after = pair.packets_of(0).split_off(before.len());
    let greeting = Packet::decode(&mut after[0].clone()).unwrap();
    assert!(greeting.messages.is_empty() && greeting.hello.unwrap().resume.is_some());
    let again = before.iter().filter(|packet| after.contains(packet)).count();
    let counters = pair.nodes[0].engine.counters(CALL).unwrap();
    assert_eq!((counters.resumed, counters.packets_repeated), (1, again as u64));
    assert!(before[..acknowledged].iter().all(|packet| !after.contains(packet)));
    assert!(again <= before.len() - acknowledged);
}

#[test]
fn a_link_that_stays_away_ends_the_session() {
    let mut pair = Pair::new(PacketWeather::fair());
    pair.send(1, content(7182));
    pair.run(2 * SECOND);
    pair.links.conditions.refuse = 1.0;
    pair.links.cut(pair.now);
    pair.run(890 * SECOND);
    assert!(!pair.told.iter().any(|(_, said)| matches!(said, BundlesIndication::Down { .. })));
    pair.run(300 * SECOND);
    let downs = pair.told.iter().filter(|(_, said)| matches!(said, BundlesIndication::Down { .. })).count();
    assert!(downs >= 2, "{:?}", pair.told);
    let lost = BundlesIndication::Lost { transfer: TransferId(0) };
    assert!(pair.told.contains(&(1, lost)));
    assert!(pair.nodes[1].engine.counters(CALLED).is_none(), "what is over is forgotten");
}

#[test]
fn sessions_keep_the_laws() {
    hold_over_packets("ax25cl", 1_000, |world| {
        let draw = &mut world.draw;
        let users = BundleUserBehaviour::draw(draw);
        let known = draw.chance(0.5);
        let mut config = |number: u8| Config {
            node_id: format!("ipn:{number}.0"),
            peer_node_id: known.then(|| format!("ipn:{}.0", 1 - number)),
            resume_within: Duration::from_secs(1 + draw.below(100)),
            progress_bytes: 1 + draw.below(2_000),
            reactive_fragmentation: draw.chance(0.7),
            transfers_max: 1 + draw.below(4) as usize,
            retry_min: SECOND,
            retry_max: 20 * SECOND,
            ..Config::default()
        };
        let configs = [0, 1].map(&mut config);
        Layer::new(users, move |start| {
            let config = configs[start.node].clone();
            Sessions::new(Box::new(move |_| Some(config.clone())), start.rng)
        })
    });
}

/// A progress costs a turnaround of the channel, and is sent only if the end of the bundle is not near.
#[test]
fn the_end_of_a_bundle_is_told_instead_of_a_progress_just_before_it() {
    use super::incoming::Incoming;
    let told = |length: u64| {
        let (mut incoming, config) =
            (Incoming::default(), Config { progress_bytes: 400, ..Config::default() });
        let (packet, transfer) = (incoming.begin_packet(), TransferId(0));
        let (data, mut up) = (Bytes::from(vec![7; 400]), VecDeque::new());
        incoming.data(Some(length), None, data, (packet, transfer), &config, &mut up).expect("it fits");
        assert!(!incoming.accept(transfer, 400, config.progress_bytes));
        Vec::from(incoming.answers)
    };
    assert_eq!(told(500), []);
    assert_eq!(told(501), [Message::Progress { number: 0, up_to: 400 }]);
}

#[test]
fn a_session_has_the_configuration_that_was_set_for_it_once() {
    let mut sessions = Sessions::new(Box::new(|_| None), Rng::new(1));
    for is_set in [false, true, false] {
        if is_set {
            sessions.configure_next(CALL, config("ipn:1.0", None));
        }
        sessions.handle_request(Instant::ZERO, (CALL, BundlesRequest::Connect));
        assert_eq!(sessions.session(CALL).is_some(), is_set);
        sessions.remove(CALL);
    }
    assert_eq!(sessions.declined, 2);
    sessions.configure_next(CALL, config("ipn:1.0", None));
    sessions.remove(CALL);
    sessions.handle_request(Instant::ZERO, (CALL, BundlesRequest::Connect));
    assert!(sessions.session(CALL).is_none(), "the configuration was removed, too");
}
