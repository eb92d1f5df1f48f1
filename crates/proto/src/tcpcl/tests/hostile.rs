//! Peers that violate the protocol, on purpose or not.

mod versions;

use crate::engine::Engine;
use crate::rng::Rng;
use crate::service::{
    BundlesIndication, BundlesRequest, CloseReason, DownReason, Priority, StreamIndication, StreamRequest,
    TransferFailure, TransferId,
};
use crate::tcpcl::{AdmissionDecision, Config, Session};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::Bytes;

/// A session with a hand-written peer.
struct Solo {
    session: Checked<Session>,
    now: Instant,
    told: Vec<BundlesIndication>,
    written: Vec<u8>,
    heard: u64,
    released: u64,
    closed: bool,
    aborted: bool,
    room: u64,
    /// True to accept incoming data.
    takes: bool,
}

impl Solo {
    fn new(session: Session) -> Self {
        Solo {
            session: Checked::new("solo", session),
            now: Instant::from_secs(1),
            told: vec![],
            written: vec![],
            heard: 0,
            released: 0,
            closed: false,
            aborted: false,
            room: 0,
            takes: true,
        }
    }

    fn config() -> Config {
        Config {
            node_id: "ipn:1.0".to_owned(),
            transfer_mru: 10_000,
            segment_mru: 1_000,
            segments_max: 50,
            reactive_fragmentation: false,
            ..Config::default()
        }
    }

    /// A passive session to which a peer has connected.
    fn called(config: Config) -> Self {
        let mut solo = Self::new(Session::passive(config, Rng::new(1)));
        solo.below(StreamIndication::Connected);
        solo.below(StreamIndication::Room(1 << 20));
        solo
    }

    /// An active session that has connected to a peer.
    fn calling(config: Config) -> Self {
        let mut solo = Self::new(Session::active(config, Rng::new(1)));
        solo.asks(BundlesRequest::Connect);
        solo.below(StreamIndication::Connected);
        solo.below(StreamIndication::Room(1 << 20));
        solo
    }

    /// A version 4 session that is established.
    fn four() -> Self {
        let mut solo = Self::called(Self::config());
        solo.says(b"dtn!\x04\0");
        solo.says(INIT);
        assert!(matches!(solo.told[0], BundlesIndication::Up { .. }), "{:?}", solo.told);
        solo.written.clear();
        solo
    }

    /// A version 3 session that is established.
    fn three() -> Self {
        let mut solo = Self::called(Self::config());
        solo.says(b"dtn!\x03\x0f\0\x1e\x05dtn:a");
        assert!(matches!(solo.told[0], BundlesIndication::Up { .. }), "{:?}", solo.told);
        solo.written.clear();
        solo
    }

    fn below(&mut self, indication: StreamIndication) {
        if let StreamIndication::Data(data) = &indication {
            self.heard += data.len() as u64;
        }
        self.session.handle_indication(self.now, indication);
        self.drain();
    }

    fn says(&mut self, bytes: &[u8]) {
        self.below(StreamIndication::Data(Bytes::copy_from_slice(bytes)));
    }

    fn asks(&mut self, request: BundlesRequest) {
        self.session.handle_request(self.now, request);
        self.drain();
    }

    fn sends(&mut self, transfer: u64, length: usize) {
        let (transfer, data) = (TransferId(transfer), Bytes::from(vec![7; length]));
        self.asks(BundlesRequest::Open { transfer, priority: Priority::Normal, length: length as u64 });
        if self.room >= length as u64 {
            self.room -= length as u64;
            self.asks(BundlesRequest::Piece { transfer, data, last: true });
        }
    }

    fn waits(&mut self, span: Duration) {
        let limit = self.now + span;
        while let Some(at) = self.session.poll_timeout().filter(|&at| at <= limit) {
            self.now = at;
            self.session.handle_timeout(at);
            self.drain();
        }
        self.now = limit;
    }

    fn drain(&mut self) {
        loop {
            if let Some(indication) = self.session.poll_indication(self.now) {
                match indication {
                    BundlesIndication::Room(room) => self.room = room,
                    BundlesIndication::Down { .. } => self.room = 0,
                    _ => {}
                }
                if let BundlesIndication::Piece { transfer, .. } = &indication
                    && self.takes
                {
                    let risen = self.risen(*transfer, &indication);
                    let accept = BundlesRequest::Accept { transfer: *transfer, up_to: risen };
                    self.told.push(indication);
                    self.session.handle_request(self.now, accept);
                } else if !matches!(indication, BundlesIndication::Room(_)) {
                    self.told.push(indication);
                }
                continue;
            }
            match self.session.poll_request(self.now) {
                Some(StreamRequest::Write(bytes)) => self.written.extend_from_slice(&bytes),
                Some(StreamRequest::Release(bytes)) => self.released += bytes,
                Some(StreamRequest::Close) => self.closed = true,
                Some(StreamRequest::Abort) => self.aborted = true,
                Some(_) => {}
                None => return,
            }
        }
    }

    fn risen(&self, wanted: TransferId, newest: &BundlesIndication) -> u64 {
        let bytes = |said: &BundlesIndication| match said {
            BundlesIndication::Piece { transfer, data, .. } if *transfer == wanted => data.len() as u64,
            _ => 0,
        };
        self.told.iter().map(bytes).sum::<u64>() + bytes(newest)
    }

    fn down(&self) -> Option<DownReason> {
        self.told.iter().find_map(|said| match said {
            BundlesIndication::Down { reason, .. } => Some(*reason),
            _ => None,
        })
    }
}

const INIT: &[u8] = b"\x07\0\x1e\0\0\0\0\0\0\x40\0\0\0\0\x01\0\0\0\0\0\x07ipn:2.0\0\0\0\0";

/// Header of a version 4 segment without extensions.
fn segment(flags: u8, id: u64, length: u64) -> Vec<u8> {
    let items: &[u8] = if flags & 2 != 0 { &[0; 4] } else { &[] };
    [&[1, flags][..], &id.to_be_bytes(), items, &length.to_be_bytes()].concat()
}

/// Header of a first segment with a list of extensions.
fn start_with(items: &[u8], length: u64) -> Vec<u8> {
    let count = (items.len() as u32).to_be_bytes();
    [&[1, 2][..], &0u64.to_be_bytes(), &count, items, &length.to_be_bytes()].concat()
}

const TERM_UNKNOWN: &[u8] = &[5, 0, 0];
const TERM_EXHAUSTED: &[u8] = &[5, 0, 5];

#[test]
fn a_stranger_is_left_without_a_word() {
    let mut solo = Solo::called(Solo::config());
    solo.says(b"GET / HTTP/1.1\r\n");
    assert!(solo.written.is_empty() && solo.closed && solo.told.is_empty());
    assert_eq!(solo.released, 16);
}

#[test]
fn a_version_of_the_future_is_told_so() {
    for (versions, answer) in [
        (crate::tcpcl::Versions::Both, &b"dtn!\x04\0\x05\0\x02"[..]),
        (crate::tcpcl::Versions::Four, b"dtn!\x04\0\x05\0\x02"),
        (crate::tcpcl::Versions::Three, b"dtn!\x03\x0d\0\x3c\x07ipn:1.0\x52\x01"),
    ] {
        let mut solo = Solo::called(Config { versions, ..Solo::config() });
        solo.says(b"dtn!\x07\0whatever");
        assert_eq!(solo.written, answer, "{versions:?}");
        assert!(solo.closed);
    }
}

#[test]
fn half_open_connections_are_closed_in_time() {
    for said in [&b""[..], b"dtn", b"dtn!\x04", b"dtn!\x03\0\0\0\x0ahalf"] {
        let mut solo = Solo::called(Solo::config());
        if !said.is_empty() {
            solo.says(said);
        }
        solo.waits(Duration::from_secs(59));
        assert!(!solo.closed);
        solo.waits(Duration::from_secs(1));
        assert!(solo.closed && solo.told.is_empty(), "{said:?}");
        solo.waits(Duration::from_secs(60));
        assert!(solo.aborted, "a peer that does not even close");
        solo.below(StreamIndication::Closed(CloseReason::Aborted));
        assert!(solo.session.finished());
    }
}

#[test]
fn who_sends_on_after_the_end_is_cut_off() {
    let mut solo = Solo::four();
    // No message begins with this byte: the session ends, and the peer does not read.
    solo.says(&[0xff]);
    assert!(solo.closed && solo.down().is_some());
    let mut sent = 0;
    while !solo.aborted {
        solo.says(&[0; 1 << 16]);
        sent += 1 << 16;
        assert!(sent <= 5 << 20, "{sent} bytes after the end");
    }
    assert!(sent > 1 << 20, "what is on its way is waited out");
    solo.below(StreamIndication::Closed(CloseReason::Aborted));
    assert!(solo.session.finished());
}

#[test]
fn lengths_without_bounds_cost_nothing() {
    let huge = 1u64 << 63;
    let mut solo = Solo::four();
    solo.says(&segment(2, 0, huge));
    assert_eq!((&solo.written[..], solo.down()), (TERM_EXHAUSTED, Some(DownReason::ProtocolError)));
    let mut solo = Solo::four();
    let total = [&[0, 0, 1, 0, 8][..], &huge.to_be_bytes()].concat();
    solo.says(&start_with(&total, 10));
    assert_eq!(solo.written, [&[3, 2][..], &[0; 8]].concat(), "no resources for a bundle like that");
    assert_eq!(solo.told.len(), 1, "nothing begins");
    let mut solo = Solo::four();
    solo.says(b"\x01\x02\0\0\0\0\0\0\0\0\xff\xff\xff\xff");
    assert_eq!(solo.down(), Some(DownReason::ProtocolError));
    let mut solo = Solo::called(Solo::config());
    solo.says(b"dtn!\x03\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
    assert!(solo.closed && solo.told.is_empty());
    let mut solo = Solo::three();
    solo.says(b"\x12\x81\xff\xff\xff\xff\xff\xff\xff\xff\x7f");
    assert_eq!(solo.told.len(), 1, "a length of 2^64 - 1 in version 3 is refused");
    assert_eq!(solo.written, [0x32]);
}

#[test]
fn segments_that_fit_nowhere() {
    let mut solo = Solo::four();
    solo.says(&[segment(1, 9, 3), b"abc".to_vec()].concat());
    assert_eq!(solo.written, [6, 3, 1], "rejected, and passed over");
    solo.says(&[segment(3, 0, 3), b"xyz".to_vec()].concat());
    assert_eq!(solo.written[3..], [&[2, 3][..], &[0; 8], &3u64.to_be_bytes()].concat());
    assert_eq!(solo.down(), None);
    let mut solo = Solo::four();
    solo.says(&[segment(2, 0, 3), b"abc".to_vec(), segment(2, 1, 3)].concat());
    assert_eq!(solo.down(), Some(DownReason::ProtocolError), "a bundle begins inside another");
    assert!(solo.written.ends_with(TERM_UNKNOWN));
    assert!(solo.told.contains(&BundlesIndication::Lost { transfer: TransferId(0) }), "{:?}", solo.told);
    let mut solo = Solo::three();
    solo.says(b"\x10\x03abc");
    assert_eq!((&solo.written[..], solo.down()), (&[0x50][..], Some(DownReason::ProtocolError)));
}

#[test]
fn answers_to_nothing() {
    let ack = |id: u64, up_to: u64| [&[2, 1][..], &id.to_be_bytes(), &up_to.to_be_bytes()].concat();
    let mut solo = Solo::four();
    solo.says(&ack(5, 1));
    solo.says(&[&[3, 0][..], &5u64.to_be_bytes()].concat());
    assert_eq!(solo.written, [6, 3, 2, 6, 3, 3], "rejected as unexpected");
    assert_eq!(solo.down(), None);
    solo.sends(1, 100);
    solo.says(&ack(0, 101));
    assert_eq!(solo.down(), Some(DownReason::ProtocolError));
    let failed = |acked| BundlesIndication::Failed {
        transfer: TransferId(1),
        reason: TransferFailure::LinkDown,
        acked,
    };
    assert!(solo.told.contains(&failed(0)), "an acknowledgement beyond what was sent says nothing");
    for wrong in [&b"\x20\x01"[..], b"\x20\x82\x00"] {
        let mut solo = Solo::three();
        solo.sends(1, 100);
        solo.says(wrong);
        assert_eq!(solo.down(), Some(DownReason::ProtocolError), "{wrong:?} is no segment's end");
    }
}

#[test]
fn messages_that_are_not_known() {
    let mut solo = Solo::four();
    solo.says(b"\x2a and what follows is not understood either");
    assert_eq!((&solo.written[..], solo.closed), (&[6, 1, 0x2a][..], true));
    let mut solo = Solo::three();
    solo.says(b"\x90 and what follows");
    assert_eq!((&solo.written[..], solo.closed), (&[0x50][..], true));
    let mut solo = Solo::four();
    solo.says(INIT);
    assert_eq!((&solo.written[..], solo.down()), (&[6, 3, 7][..], None), "a second SESS_INIT is unexpected");
}

#[test]
fn extensions_that_are_not_known() {
    let init = |items: &[u8]| {
        let count = (items.len() as u32).to_be_bytes();
        [&INIT[..INIT.len() - 4], &count, items].concat()
    };
    let mut solo = Solo::called(Solo::config());
    solo.says(b"dtn!\x04\0");
    solo.says(&init(&[1, 0x12, 0x34, 0, 0]));
    assert!(solo.told.is_empty() && solo.written.ends_with(&[5, 0, 4]), "critical: contact failure");
    let mut solo = Solo::called(Solo::config());
    solo.says(b"dtn!\x04\0");
    solo.says(&init(&[0, 0x12, 0x34, 0, 1, 9]));
    assert!(matches!(solo.told[0], BundlesIndication::Up { .. }), "not critical: ignored");

    for (items, refusal) in [
        (&[1, 0x12, 0x34, 0, 0][..], 5),
        (&[0, 0, 1, 0, 9, 0][..], 5),
        (&[0, 0, 1, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1][..], 4),
    ] {
        let mut solo = Solo::four();
        solo.says(&[start_with(items, 3), b"abc".to_vec()].concat());
        assert_eq!(solo.written, [&[3, refusal][..], &[0; 8]].concat(), "{items:?}");
        assert_eq!(solo.told.len(), 1);
        solo.says(&[segment(3, 1, 3), b"xyz".to_vec()].concat());
        assert_eq!(solo.told.len(), 3, "the next one is taken: {:?}", solo.told);
    }
    let mut solo = Solo::four();
    solo.says(&[start_with(&[0, 0x12, 0x34, 0, 0], 3), b"abc".to_vec()].concat());
    assert_eq!(solo.told.len(), 3, "not critical: ignored");
}

#[test]
fn a_bundle_that_is_not_as_long_as_announced() {
    let total = |total: u64| [&[0, 0, 1, 0, 8][..], &total.to_be_bytes()].concat();
    for (announced, end) in [(5, segment(1, 0, 3)), (7, segment(1, 0, 3)), (4, segment(1, 0, 0))] {
        let mut solo = Solo::four();
        solo.says(&[start_with(&total(announced), 3), b"abc".to_vec(), end].concat());
        assert_eq!(solo.told[3], BundlesIndication::Lost { transfer: TransferId(0) }, "{announced}");
        assert!(solo.written.ends_with(&[&[3, 4][..], &[0; 8]].concat()), "not acceptable");
    }
}

#[test]
fn floods_end_at_a_limit() {
    let mut solo = Solo::four();
    solo.takes = false;
    for _ in 0..100 {
        solo.says(&segment(2, 0, 0)[..]);
        if solo.down().is_some() {
            break;
        }
    }
    assert_eq!(solo.down(), Some(DownReason::ProtocolError), "a first segment again and again");
    let mut solo = Solo::four();
    solo.takes = false;
    solo.says(&[segment(2, 0, 1), b"a".to_vec()].concat());
    for _ in 0..100 {
        solo.says(&[segment(0, 0, 1), b"a".to_vec()].concat());
    }
    assert_eq!(solo.down(), Some(DownReason::ProtocolError), "segments that nobody can answer");
    let mut solo = Solo::four();
    solo.takes = false;
    for id in 0..500 {
        solo.says(&[segment(3, id, 1), b"a".to_vec()].concat());
    }
    let begun = solo.told.iter().filter(|said| matches!(said, BundlesIndication::Begin { .. })).count();
    assert_eq!(begun, 50, "and bundles");
    assert_eq!(solo.down(), Some(DownReason::ProtocolError));
}

/// RFC 9174 5.2.4: one refusal is the response to all segments of a bundle, which then use no resources.
#[test]
fn refused_bundles_leave_room_for_others() {
    let mut solo = Solo::four();
    solo.takes = false;
    for id in 0..100 {
        for flags in [2, 0, 1] {
            solo.says(&[segment(flags, id, 1), b"a".to_vec()].concat());
            if flags == 0 {
                let reason = crate::service::RefuseReason::NoResources;
                solo.asks(BundlesRequest::Refuse { transfer: TransferId(id), reason });
            }
        }
        assert_eq!(solo.down(), None, "bundle {id}");
    }
    let refused = (0..100u64).flat_map(|id| [&[3, 2][..], &id.to_be_bytes()].concat().repeat(2));
    assert_eq!(solo.written, refused.collect::<Vec<u8>>(), "for what had come, and for what came then");
}

#[test]
fn a_peer_that_says_a_byte_at_a_time_is_understood() {
    let whole = [
        b"dtn!\x04\0".to_vec(),
        INIT.to_vec(),
        segment(2, 0, 3),
        b"abc".to_vec(),
        segment(1, 0, 2),
        b"de".to_vec(),
    ];
    let mut solo = Solo::called(Solo::config());
    for byte in whole.concat() {
        solo.says(&[byte]);
    }
    assert!(matches!(solo.told.last(), Some(BundlesIndication::Piece { last: true, .. })), "{:?}", solo.told);
    assert_eq!(solo.released, solo.heard);
}

#[test]
fn what_is_not_accepted_is_not_released() {
    let mut solo = Solo::four();
    solo.takes = false;
    let before = solo.heard - solo.released;
    solo.says(&[segment(2, 0, 5), b"abcde".to_vec()].concat());
    assert_eq!(solo.heard - solo.released - before, 5);
    solo.asks(BundlesRequest::Accept { transfer: TransferId(0), up_to: 2 });
    assert_eq!(solo.heard - solo.released - before, 3);
    let reason = crate::service::RefuseReason::NoResources;
    solo.asks(BundlesRequest::Refuse { transfer: TransferId(0), reason });
    assert_eq!(solo.heard - solo.released, before);
    solo.says(&[segment(1, 0, 5), b"abcde".to_vec()].concat());
    assert_eq!(solo.heard - solo.released, before, "what is refused is passed over");
    assert_eq!(solo.written, [&[3, 2][..], &[0; 8], &[3, 2], &[0; 8]].concat(), "and refused again");
}

/// A dialogue of each version, in which bytes are then damaged.
fn dialogue(version: u8) -> Vec<u8> {
    let bundle = |start: &[u8], end: &[u8]| [start, b"abcdef", end, b"ghi"].concat();
    let answers_4 = b"\x02\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x64\x03\x02\0\0\0\0\0\0\0\x01\x04\x05\0\0";
    match version {
        3 => [
            &b"dtn!\x03\x0f\0\x1e\x05dtn:a\x60\x09"[..],
            &bundle(b"\x12\x06", b"\x11\x03"),
            b"\x20\x64\x32\x40\x52\x00",
        ]
        .concat(),
        _ => [&b"dtn!\x04\0"[..], INIT, &bundle(&segment(2, 0, 6), &segment(1, 0, 3)), answers_4].concat(),
    }
}

#[test]
fn any_bytes_at_all() {
    for seed in 0..3_000 {
        let mut rng = Rng::new(seed);
        let mut bytes = dialogue(if rng.chance(0.5) { 3 } else { 4 });
        for _ in 0..rng.below(6) {
            let at = rng.below(bytes.len() as u64) as usize;
            match rng.below(4) {
                0 => bytes[at] = rng.next_u32() as u8,
                1 => bytes[at] ^= 1 << rng.below(8),
                2 => drop(bytes.drain(at..(at + rng.below(9) as usize).min(bytes.len() - 1))),
                _ => {
                    let mut more = vec![0; rng.below(20) as usize];
                    rng.fill(&mut more);
                    bytes.splice(at..at, more);
                }
            }
        }
        let calls = rng.chance(0.3);
        let mut solo = if calls { Solo::calling(Solo::config()) } else { Solo::called(Solo::config()) };
        let mut rest = &bytes[..];
        let mut idle = true;
        while !rest.is_empty() {
            let length = 1 + rng.below(rest.len() as u64) as usize;
            solo.says(&rest[..length]);
            rest = &rest[length..];
            if idle && matches!(solo.told[..], [BundlesIndication::Up { .. }]) {
                idle = false;
                solo.sends(1, 100);
                if solo.down().is_none() {
                    solo.sends(2, 100);
                }
            }
        }
        // `Checked` verifies that every transfer has one end.
        solo.below(StreamIndication::Closed(CloseReason::Reset));
        assert_eq!(solo.session.finished(), !calls, "seed {seed}: who calls, calls again");
        assert!(solo.session.owed().is_empty(), "seed {seed}: {:?}", solo.session.owed());
    }
}

/// A session whose owner decides on admission, with its output so far.
fn judged() -> (Session, impl FnMut(&mut Session) -> (Vec<u8>, Vec<BundlesIndication>)) {
    let mut session = Session::passive(Solo::config(), Rng::new(1));
    session.await_admission();
    let now = Instant::from_secs(1);
    session.handle_indication(now, StreamIndication::Connected);
    session.handle_indication(now, StreamIndication::Room(1 << 20));
    let drain = move |session: &mut Session| {
        let (mut written, mut told) = (vec![], vec![]);
        loop {
            told.extend(core::iter::from_fn(|| session.poll_indication(now)));
            match session.poll_request(now) {
                Some(StreamRequest::Write(bytes)) => written.extend_from_slice(&bytes),
                Some(_) => {}
                None => return (written, told),
            }
        }
    };
    (session, drain)
}

#[test]
fn a_caller_that_is_not_let_in_never_has_a_session() {
    for (verdict, reason) in [(AdmissionDecision::Busy, 3), (AdmissionDecision::Refuse, 4)] {
        let (mut session, mut drain) = judged();
        let now = Instant::from_secs(1);
        let hello = [&b"dtn!\x04\0"[..], INIT].concat();
        session.handle_indication(now, StreamIndication::Data(hello.into()));
        assert_eq!(drain(&mut session), (b"dtn!\x04\0".to_vec(), vec![]), "it waits");
        let claim = session.claim().expect("somebody waits");
        assert_eq!((claim.node_id, claim.proven), (Some("ipn:2.0"), false));
        session.judge(now, verdict);
        // A SESS_TERM, and no SESS_INIT.
        assert_eq!(drain(&mut session), (vec![5, 0, reason], vec![]));
        assert_eq!(session.claim(), None);
    }
}

#[test]
fn what_a_caller_says_before_it_is_let_in_is_heard_afterwards() {
    let (mut session, mut drain) = judged();
    let now = Instant::from_secs(1);
    let hello = [&b"dtn!\x04\0"[..], INIT].concat();
    session.handle_indication(now, StreamIndication::Data(hello.into()));
    // A keepalive, and a segment of three bytes, in two parts.
    let text = [&[4][..], &segment(3, 9, 3), &[7; 3]].concat();
    for part in [&text[..8], &text[8..]] {
        session.handle_indication(now, StreamIndication::Data(Bytes::copy_from_slice(part)));
        assert!(drain(&mut session).1.is_empty(), "it waits");
    }
    session.judge(now, AdmissionDecision::Admit);
    let (written, told) = drain(&mut session);
    assert_eq!(written.first(), Some(&7), "a SESS_INIT: {written:?}");
    assert!(matches!(told[0], BundlesIndication::Up { .. }), "{told:?}");
    let last = |said: &BundlesIndication| matches!(said, BundlesIndication::Piece { data, last: true, .. } if data[..] == [7; 3]);
    assert!(told.iter().any(last), "{told:?}");
    assert_eq!(session.counters().keepalives_received, 1);
}

/// Input from a peer that is not admitted does not occupy the stream's window, however the session ends.
#[test]
fn what_a_caller_says_that_is_not_let_in_is_not_kept() {
    for end in ["a verdict", "a close", "a time-out", "the owner"] {
        let mut session = Session::passive(Solo::config(), Rng::new(1));
        session.await_admission();
        let now = Instant::from_secs(1);
        let released = |session: &mut Session, now| {
            let (mut released, mut closed) = (0, false);
            loop {
                while session.poll_indication(now).is_some() {}
                match session.poll_request(now) {
                    Some(StreamRequest::Release(bytes)) => released += bytes,
                    Some(request) => closed |= request == StreamRequest::Close,
                    None => return (released, closed),
                }
            }
        };
        let hello = [&b"dtn!\x04\0"[..], INIT].concat();
        let more = [&segment(3, 9, 3)[..], &[7; 3]].concat();
        session.handle_indication(now, StreamIndication::Connected);
        session.handle_indication(now, StreamIndication::Room(1 << 20));
        session.handle_indication(now, StreamIndication::Data(hello.clone().into()));
        session.handle_indication(now, StreamIndication::Data(more.clone().into()));
        assert_eq!(released(&mut session, now), (hello.len() as u64, false), "it waits");
        let mut later = now;
        match end {
            "a verdict" => session.judge(now, AdmissionDecision::Busy),
            "a close" => session.handle_indication(now, StreamIndication::PeerClosed),
            "a time-out" => {
                later = session.poll_timeout().expect("it does not wait for ever");
                session.handle_timeout(later);
            }
            _ => session.handle_request(now, BundlesRequest::Close),
        }
        assert_eq!(released(&mut session, later), (more.len() as u64, true), "{end}");
    }
}

#[test]
fn nobody_is_this_node_itself() {
    let mut solo = Solo::called(Solo::config());
    solo.says(b"dtn!\x04\0");
    let own = INIT.iter().map(|byte| if *byte == b'2' { b'1' } else { *byte }).collect::<Vec<u8>>();
    solo.says(&own);
    assert!(solo.told.is_empty() && solo.written.ends_with(&[5, 0, 4]), "{:?} {:?}", solo.told, solo.written);
    let mut solo = Solo::called(Solo::config());
    solo.says(b"dtn!\x03\x0f\0\x1e\x07ipn:1.0");
    assert!(solo.told.is_empty(), "{:?}", solo.told);
    // The same for an active session.
    let mut solo = Solo::calling(Solo::config());
    solo.says(b"dtn!\x04\0");
    solo.says(&own);
    let identity = BundlesIndication::Down { reason: DownReason::Identity, retry: true };
    assert_eq!(solo.told, [identity]);
}

/// Another peer can make the owner probe this one as often as it likes.
#[test]
fn signs_of_life_on_demand_cost_the_peer_little() {
    const NOTHING: &[u8] = &[];
    const KEEPALIVE: &[u8] = &[4];
    let second = Duration::from_secs(1);
    let asked = |solo: &mut Solo| {
        solo.written.clear();
        for _ in 0..1000 {
            solo.session.handle_request(solo.now, BundlesRequest::Connect);
            solo.drain();
        }
        core::mem::take(&mut solo.written)
    };
    let mut solo = Solo::four();
    assert_eq!(asked(&mut solo), NOTHING, "it was just heard");
    solo.waits(second - Duration::from_millis(1));
    assert_eq!(asked(&mut solo), NOTHING);
    solo.waits(Duration::from_millis(1));
    assert_eq!(asked(&mut solo), KEEPALIVE, "silent for a second");
    solo.waits(second - Duration::from_millis(1));
    assert_eq!(asked(&mut solo), NOTHING, "it was just asked");
    solo.waits(Duration::from_millis(1));
    assert_eq!(asked(&mut solo), KEEPALIVE);
    solo.waits(second / 2);
    solo.says(KEEPALIVE);
    solo.waits(second - Duration::from_millis(1));
    assert_eq!(asked(&mut solo), NOTHING, "it was heard half a second after it was asked");
    // Ten in ten seconds are far below the limit for messages without content.
    let mut all = 0;
    for _ in 0..100 {
        all += asked(&mut solo).len();
        solo.waits(second / 10);
    }
    assert!((9..=10).contains(&all), "{all}");
    // There are none if keepalives are disabled.
    let mut solo = Solo::called(Config { keepalive: Duration::ZERO, ..Solo::config() });
    solo.says(b"dtn!\x04\0");
    solo.says(INIT);
    solo.waits(10 * second);
    assert_eq!(asked(&mut solo), NOTHING);
}
