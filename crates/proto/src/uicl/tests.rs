//! Groups: vectors, scenarios and laws.

use super::wire::{self, Packet};
use super::{Config, Group};
use crate::engine::{Engine, drain};
use crate::joint::{Fan, Origin};
use crate::laws::{BundleUserBehaviour, Draw, Layer, hold_over_datagrams};
use crate::rng::Rng;
use crate::service::{
    BundlesIndication, BundlesRequest, DatagramsIndication, DatagramsRequest, DownReason, LinkId, PeerId,
    Priority, RefuseReason, Shares, TransferFailure, TransferId,
};
use crate::setting::Settings as _;
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::Bytes;

const SECOND: Duration = Duration::from_secs(1);
const ME: &str = "ipn:1.0";
const MEMBERS: [&str; 2] = ["ipn:2.0", "ipn:3.0"];
/// Segments of ten bytes.
const BYTES_MAX: u64 = 10 + wire::SEGMENT_BYTES as u64;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|octet| format!("{octet:02x}")).collect::<Vec<_>>().join(" ")
}

/// Vectors of docs/ax25.md.
#[test]
fn packets_are_the_octets_that_are_written_down() {
    let transfer = 0x0102_0304;
    let member = wire::name("ipn:2.0");
    for (packet, octets) in [
        (
            Packet::Segment { transfer, index: 2, count: 3, data: Bytes::from_static(b"abc") },
            "71 01 02 03 04 00 02 00 03 61 62 63 86 ce 24 1d",
        ),
        (
            Packet::Query { transfer, count: 3, round: 0, slot_ms: 2000, members: vec![member] },
            "72 01 02 03 04 00 03 00 07 d0 fa a1 fe 92 a1 39 76 c6",
        ),
        (
            Packet::Request { transfer, member, first: 1, bitmap: Bytes::from_static(&[0xc0]) },
            "73 01 02 03 04 fa a1 fe 92 00 01 c0 81 67 c3 61",
        ),
        (Packet::Confirm { transfer, member }, "74 01 02 03 04 fa a1 fe 92 e4 a3 2b 95"),
        (
            Packet::Refuse { transfer, member, reason: RefuseReason::NoResources },
            "75 01 02 03 04 fa a1 fe 92 02 df ad 13 23",
        ),
        (Packet::Cancel { transfer }, "76 01 02 03 04 17 99 6e c4"),
    ] {
        let bytes = packet.to_bytes();
        assert_eq!(hex(&bytes), octets, "{packet:?}");
        assert_eq!(Packet::decode(&mut bytes.clone()), Ok(packet));
        for bit in 0..8 * bytes.len() {
            let mut damaged = bytes.to_vec();
            damaged[bit / 8] ^= 0x80 >> (bit % 8);
            assert!(Packet::decode(&mut damaged.into()).is_err(), "bit {bit} is wrong");
        }
    }
}

/// A group, its last output, and the time of it.
struct Scene {
    group: Checked<Group>,
    now: Instant,
    up: Vec<BundlesIndication>,
    down: Vec<Packet>,
    shares: Vec<Shares>,
}

fn config(node_id: &str, members: &[&str]) -> Config {
    let members = members.iter().map(|member| (*member).to_owned()).collect();
    Config { node_id: node_id.to_owned(), members, ..Config::default() }
}

impl Scene {
    fn new(config: Config) -> Self {
        config.check().expect("sensible numbers");
        let group = Checked::new("group", Group::new(config, Rng::new(7)));
        let mut scene = Scene { group, now: Instant::ZERO, up: vec![], down: vec![], shares: vec![] };
        scene.ask(BundlesRequest::Connect);
        let group = Some(PeerId::CONFIGURED);
        scene.hear(DatagramsIndication::Joined { bytes_max: BYTES_MAX, peer: None, group });
        scene.hear(DatagramsIndication::Room(1000));
        scene
    }

    fn settle(&mut self) {
        (self.up, self.down, self.shares) = (vec![], vec![], vec![]);
        let (up, down, all_shares) = (&mut self.up, &mut self.down, &mut self.shares);
        let packets = |asked| {
            if let DatagramsRequest::Datagram { mut bytes, shares, .. } = asked {
                down.push(Packet::decode(&mut bytes).expect("a packet"));
                all_shares.push(shares);
            }
        };
        drain(&mut self.group, self.now, |said| up.push(said), packets);
        self.up.retain(|said| !matches!(said, BundlesIndication::Room(_)));
    }

    fn ask(&mut self, request: BundlesRequest) {
        self.group.handle_request(self.now, request);
        self.settle();
    }

    fn hear(&mut self, indication: DatagramsIndication) {
        self.group.handle_indication(self.now, indication);
        self.settle();
    }

    fn packet(&mut self, packet: &Packet) {
        let (from, bytes) = (PeerId(7), packet.to_bytes());
        self.hear(DatagramsIndication::Datagram { from, to_group: true, bytes, damaged: false });
    }

    fn send(&mut self, number: u64, bundle: &'static [u8]) {
        let (transfer, length) = (TransferId(number), bundle.len() as u64);
        self.ask(BundlesRequest::Open { transfer, priority: Priority::Normal, length });
        let data = Bytes::from_static(bundle);
        self.ask(BundlesRequest::Piece { transfer, data, last: true });
    }

    /// Advances to the next deadline, and returns the time until it.
    fn wait(&mut self) -> Duration {
        let at = self.group.poll_timeout().expect("it waits for something");
        let waited = at.saturating_since(self.now);
        self.now = at;
        self.group.handle_timeout(at);
        self.settle();
        waited
    }

    /// Number of the bundle being sent, and the members queried; the last output must end with the query.
    fn question(&self) -> (u32, Vec<u32>) {
        match self.down.last() {
            Some(Packet::Query { transfer, members, .. }) => (*transfer, members.clone()),
            other => panic!("no question but {other:?}"),
        }
    }

    fn indices(&self) -> Vec<u16> {
        let index = |packet: &Packet| match packet {
            Packet::Segment { index, .. } => Some(*index),
            _ => None,
        };
        self.down.iter().filter_map(index).collect()
    }
}

fn sent(number: u64) -> BundlesIndication {
    BundlesIndication::Sent { transfer: TransferId(number) }
}

fn failed(number: u64, reason: TransferFailure) -> BundlesIndication {
    BundlesIndication::Failed { transfer: TransferId(number), reason, acked: 0 }
}

fn request(transfer: u32, member: &str, first: u16, bits: u8) -> Packet {
    Packet::Request { transfer, member: wire::name(member), first, bitmap: Bytes::copy_from_slice(&[bits]) }
}

fn confirm(transfer: u32, member: &str) -> Packet {
    Packet::Confirm { transfer, member: wire::name(member) }
}

#[test]
fn what_anybody_lacks_is_repeated_until_everybody_has_all() {
    let mut scene = Scene::new(config(ME, &MEMBERS));
    scene.send(1, b"aaaaaaaaaabbbbbbbbbbcc");
    assert_eq!(scene.indices(), [0, 1, 2]);
    let (number, asked) = scene.question();
    assert_eq!(asked, MEMBERS.map(wire::name));
    scene.packet(&request(number, MEMBERS[0], 1, 0xc0));
    assert_eq!(scene.down, [], "the other has not answered");
    scene.packet(&request(number, MEMBERS[1], 2, 0x80));
    assert_eq!(scene.indices(), [1, 2], "each once, whoever asked for it");
    assert_eq!(scene.question().1, [MEMBERS[1], MEMBERS[0]].map(wire::name), "by turns");
    scene.packet(&confirm(number, MEMBERS[0]));
    assert_eq!(scene.up, []);
    // The other member's answer is lost. Only that member is queried again.
    scene.wait();
    assert_eq!(scene.question().1, [wire::name(MEMBERS[1])]);
    scene.packet(&confirm(number, MEMBERS[1]));
    assert_eq!((&scene.up[..], &scene.down[..]), (&[sent(1)][..], &[][..]));
    assert_eq!(scene.group.poll_timeout(), None);
}

#[test]
fn every_packet_says_what_its_bytes_are_for() {
    let mut scene = Scene::new(config(ME, &MEMBERS));
    scene.send(1, b"aaaaaaaaaabb");
    let query = Shares::control(wire::QUERY_BYTES + 2 * wire::MEMBER_BYTES);
    assert_eq!(scene.shares, [Shares::payload(10), Shares::payload(2), query]);
    let (number, _) = scene.question();
    MEMBERS.iter().for_each(|member| scene.packet(&request(number, member, 1, 0x80)));
    assert_eq!(scene.shares, [Shares::repeated(wire::SEGMENT_BYTES + 2), query]);
    let (members, slot_ms) = (vec![wire::name(ME)], 2000);
    scene.packet(&Packet::Query { transfer: number + 9, count: 1, round: 0, slot_ms, members });
    assert_eq!(scene.shares, [Shares::acknowledgement(wire::REQUEST_BYTES + 1)]);
}

#[test]
fn who_never_answers_does_not_stop_the_others() {
    for (needed, end) in
        [(Some(1), sent(1)), (None, failed(1, TransferFailure::Refused(RefuseReason::Unknown)))]
    {
        let mut scene = Scene::new(Config { needed, silent_max: 3, ..config(ME, &MEMBERS) });
        scene.send(1, b"a");
        let (number, _) = scene.question();
        scene.packet(&confirm(number, MEMBERS[1]));
        let mut questions = 1;
        loop {
            scene.wait();
            if !scene.up.is_empty() {
                break;
            }
            assert_eq!(scene.question().1, [wire::name(MEMBERS[0])]);
            questions += 1;
        }
        assert_eq!((questions, &scene.up[..]), (3, &[end][..]));
        // A member may have a part of the bundle, and no more of it follows.
        assert_eq!(scene.down, [Packet::Cancel { transfer: number }]);
    }
}

#[test]
fn where_nobody_is_known_three_questions_without_an_answer_are_enough() {
    let mut scene = Scene::new(config(ME, &[]));
    scene.send(1, b"aaaaaaaaaabb");
    let (number, asked) = scene.question();
    assert_eq!(asked, []);
    scene.packet(&request(number, "ipn:9.0", 0, 0x80));
    scene.wait();
    assert_eq!(scene.indices(), [0]);
    for _ in 0..2 {
        scene.wait();
        assert_eq!((scene.question().0, scene.indices()), (number, vec![]));
    }
    scene.wait();
    assert_eq!(scene.up, [sent(1)]);
}

#[test]
fn one_bundle_goes_at_a_time_and_another_may_be_handed_down() {
    let mut scene = Scene::new(config(ME, &MEMBERS[..1]));
    scene.send(1, b"aaaa");
    let (number, _) = scene.question();
    scene.send(2, b"bbbb");
    assert_eq!(scene.down, []);
    scene.packet(&Packet::Refuse {
        transfer: number,
        member: wire::name(MEMBERS[0]),
        reason: RefuseReason::NoResources,
    });
    assert_eq!(scene.up, [failed(1, TransferFailure::Refused(RefuseReason::NoResources))]);
    assert_eq!(scene.question().0, number.wrapping_add(1));
    scene.ask(BundlesRequest::Cancel { transfer: TransferId(2) });
    assert_eq!(scene.up, [failed(2, TransferFailure::Cancelled)]);
    assert_eq!(scene.down, [Packet::Cancel { transfer: number.wrapping_add(1) }]);
    scene.ask(BundlesRequest::Close);
    assert_eq!(scene.up, [BundlesIndication::Down { reason: DownReason::Closed, retry: false }]);
}

fn segment(index: u16, data: &'static [u8]) -> Packet {
    Packet::Segment { transfer: 5, index, count: 3, data: Bytes::from_static(data) }
}

fn query(members: &[&str]) -> Packet {
    let members = members.iter().map(|member| wire::name(member)).collect();
    Packet::Query { transfer: 5, count: 3, round: 0, slot_ms: 2000, members }
}

fn piece(data: &'static [u8], last: bool) -> BundlesIndication {
    BundlesIndication::Piece { transfer: TransferId(0), data: Bytes::from_static(data), last }
}

#[test]
fn a_receiver_answers_in_its_slot_and_confirms_what_is_safe() {
    let mut scene = Scene::new(config(MEMBERS[1], &[]));
    scene.packet(&segment(0, b"aaaa"));
    let begin = BundlesIndication::Begin { transfer: TransferId(0), length: None };
    assert_eq!(scene.up, [begin, piece(b"aaaa", false)]);
    scene.packet(&segment(2, b"cc"));
    scene.packet(&segment(2, b"cc"));
    assert_eq!(scene.up, [], "it waits for the one before");
    scene.packet(&query(&MEMBERS));
    assert_eq!(scene.down, []);
    assert_eq!(scene.wait(), 2 * SECOND, "behind the first member");
    assert_eq!(
        scene.down,
        [Packet::Request {
            transfer: 5,
            member: wire::name(MEMBERS[1]),
            first: 1,
            bitmap: Bytes::from_static(&[0x80]),
        }]
    );
    scene.packet(&segment(1, b"bbbb"));
    assert_eq!(scene.up, [piece(b"bbbb", false), piece(b"cc", true)]);
    scene.packet(&query(&MEMBERS[1..]));
    assert_eq!(scene.down, [], "it is not safe yet");
    scene.ask(BundlesRequest::Accept { transfer: TransferId(0), up_to: 10 });
    for _ in 0..2 {
        scene.packet(&query(&MEMBERS[1..]));
        assert_eq!(scene.down, [confirm(5, MEMBERS[1])]);
    }
    scene.packet(&segment(1, b"bbbb"));
    assert_eq!(scene.up, [], "it has that");
    scene.packet(&query(&MEMBERS[..1]));
    assert_eq!(scene.group.poll_timeout(), None, "others are asked");
}

#[test]
fn who_hears_another_ask_for_the_same_stays_silent() {
    let spared = |bits| {
        let mut scene = Scene::new(config(MEMBERS[1], &[]));
        scene.packet(&segment(0, b"aaaa"));
        scene.packet(&query(&MEMBERS));
        scene.packet(&request(5, MEMBERS[0], 1, bits));
        scene.wait();
        scene.down.is_empty()
    };
    assert!(spared(0xc0), "both that are lacking");
    assert!(!spared(0x80), "only one of them");
}

#[test]
fn a_receiver_that_has_heard_nothing_yet_asks_for_everything() {
    let mut scene = Scene::new(config(MEMBERS[0], &[]));
    scene.packet(&query(&MEMBERS));
    assert_eq!(scene.down, [request(5, MEMBERS[0], 0, 0xe0)]);
    // If the query names no members, the answer waits for a random time.
    let mut scene = Scene::new(config(MEMBERS[0], &[]));
    scene.packet(&query(&[]));
    assert!(scene.down.is_empty());
    let waited = scene.wait();
    assert!(Duration::ZERO < waited && waited < 8 * SECOND, "{waited:?}");
    assert_eq!(scene.down, [request(5, MEMBERS[0], 0, 0xe0)]);
}

#[test]
fn what_is_never_completed_is_lost_and_what_is_too_long_is_refused() {
    let short = Config { bundle_bytes_max: 6, ..config(MEMBERS[0], &[]) };
    let mut scene = Scene::new(short);
    scene.packet(&segment(0, b"aaaa"));
    assert_eq!(scene.wait(), 600 * SECOND);
    assert_eq!(scene.up, [BundlesIndication::Lost { transfer: TransferId(0) }]);
    scene.packet(&segment(0, b"aaaa"));
    scene.packet(&segment(1, b"bbbb"));
    assert_eq!(scene.up, [BundlesIndication::Lost { transfer: TransferId(1) }]);
    scene.packet(&query(&MEMBERS));
    let reason = RefuseReason::NotAcceptable;
    assert_eq!(scene.down, [Packet::Refuse { transfer: 5, member: wire::name(MEMBERS[0]), reason }]);
}

// -- The laws ----------------------------------------------------------------------------------------------------

/// Without crashes: a member that crashes forgets what it has confirmed, and its agent must detect the
/// duplicate.
fn hold(name: &str, seeds: u64, named: bool) {
    hold_over_datagrams(name, seeds, 100..=999, |world| {
        let draw = &mut world.draw;
        let users = BundleUserBehaviour { acknowledged: named, ..BundleUserBehaviour::draw(draw) };
        let plain = Config {
            rate_bps: 1_000_000,
            access: 6 * SECOND,
            answer_slot: draw.span(Duration::from_millis(1), 2 * SECOND),
            silent_max: 1 + draw.below(8) as u8,
            rounds_max: 1 + draw.below(64) as u16,
            open_max: 1 + draw.below(4) as usize,
            incoming_max: 1 + draw.below(4) as usize,
            ..Config::default()
        };
        let rng = world.rng.clone();
        let layer = Layer::new(users, move |start| {
            let rng = rng.fork(&format!("node {}, boot {}", start.node, start.boot));
            let name = |node: usize| format!("ipn:{node}.0");
            let members = if named { vec![name(1 - start.node)] } else { Vec::new() };
            let config = Config { node_id: name(start.node), members, ..plain.clone() };
            Fan::new(move |link: LinkId, origin| {
                (origin == Origin::Above).then(|| Group::new(config.clone(), rng.fork(&format!("{link:?}"))))
            })
        });
        Layer { crashes: false, patience: Duration::from_secs(100_000), ..layer }
    });
}

#[test]
fn groups_keep_the_laws() {
    hold("uicl", 500, true);
    hold("uicl, nobody named", 300, false);
}

#[test]
fn a_group_shows_all_its_counters() {
    let counters = crate::observe::counts(&super::Counters::default());
    crate::observe::tests::expect(&Group::new(Config::default(), Rng::new(1)), "uicl", &[counters]);
}
