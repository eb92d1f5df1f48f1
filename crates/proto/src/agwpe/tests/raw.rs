//! The engine, with a simulated server and a simulated user.

use crate::agwpe::{Config, Frame, Kind, Queued, RawPort, ServerFault};
use crate::controller;
use crate::engine::{Engine, drain};
use crate::service::{CloseReason, FramesIndication, FramesRequest, Shares, StreamIndication, StreamRequest};
use crate::setting::Settings as _;
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::{Bytes, BytesMut};

const LINE_ROOM: u64 = 100_000;

/// The far end of the line, and the indications that the user above has received.
struct Bench {
    now: Instant,
    raw: Checked<RawPort>,
    /// Frames of each write.
    writes: Vec<Vec<Frame>>,
    heard: Vec<FramesIndication>,
    calls: usize,
}

impl Bench {
    /// Opens the line to a server with two ports.
    fn open(config: Config) -> Bench {
        let mut bench = Bench::connected(config);
        bench.ports(b"2;Port1 a;Port2 b;\0");
        bench.writes.remove(0);
        bench
    }

    fn connected(config: Config) -> Bench {
        let raw = Checked::new("raw", RawPort::new(config, controller::Config::default()));
        let mut bench = Bench { now: Instant::ZERO, raw, writes: vec![], heard: vec![], calls: 0 };
        bench.raw.handle_request(bench.now, FramesRequest::Join);
        bench.drain();
        bench.stands();
        bench
    }

    fn stands(&mut self) {
        self.say(StreamIndication::Connected);
        self.say(StreamIndication::Room(LINE_ROOM));
    }

    fn ports(&mut self, data: &'static [u8]) {
        self.frame(&Frame::new(Kind::Ports).with(data));
    }

    fn say(&mut self, indication: StreamIndication) {
        self.raw.handle_indication(self.now, indication);
        self.drain();
    }

    fn frame(&mut self, frame: &Frame) {
        self.say(StreamIndication::Data(frame.to_bytes()));
    }

    fn queued(&mut self, frames: u32) {
        let mut data = BytesMut::new();
        Queued(frames).encode(&mut data);
        self.frame(&Frame::new(Kind::QueuedOnPort).with(data));
    }

    fn burst(&mut self, frames: &[(&'static [u8], Option<u64>)]) {
        assert!(self.room() > Some(0), "it takes no frames now");
        for (at, (bytes, token)) in frames.iter().enumerate() {
            let (bytes, last) = (Bytes::from_static(bytes), at + 1 == frames.len());
            let request = FramesRequest::Frame { bytes, token: *token, last, shares: Shares::default() };
            self.raw.handle_request(self.now, request);
            self.drain();
        }
    }

    fn drain(&mut self) {
        let (now, heard, writes, calls) = (self.now, &mut self.heard, &mut self.writes, &mut self.calls);
        let mut ended = false;
        drain(
            &mut self.raw,
            now,
            |said| heard.push(said),
            |request| match request {
                StreamRequest::Write(mut bytes) => {
                    let frames = core::iter::from_fn(|| {
                        (!bytes.is_empty()).then(|| Frame::decode(&mut bytes).expect("whole frames"))
                    });
                    writes.push(frames.collect());
                }
                StreamRequest::Connect => *calls += 1,
                StreamRequest::Abort => ended = true,
                _ => {}
            },
        );
        if ended {
            self.say(StreamIndication::Closed(CloseReason::Aborted));
        }
    }

    /// Advances the time, with every timeout at its deadline.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.raw.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.raw.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }

    fn transmitted(&self) -> Vec<u64> {
        let tokens = self.heard.iter().filter_map(|said| match said {
            FramesIndication::Transmitted(token) => Some(*token),
            _ => None,
        });
        tokens.collect()
    }

    /// Returns the room in frames soon after a request for the channel.
    fn room(&mut self) -> Option<u32> {
        self.raw.handle_request(self.now, FramesRequest::Seize);
        for _ in 0..2 {
            if self.announced_room() <= Some(0) {
                self.drain();
                self.pass(controller::GATHER);
            }
        }
        self.announced_room().or(Some(0))
    }

    fn announced_room(&self) -> Option<u32> {
        let mut rooms = self.heard.iter().rev();
        rooms.find_map(|said| if let FramesIndication::Room(room) = said { Some(*room) } else { None })
    }
}

fn kinds(frames: &[Frame]) -> Vec<Kind> {
    frames.iter().map(|frame| frame.kind).collect()
}

#[test]
fn raw_frames_are_asked_for_once_and_come_without_the_port() {
    let mut bench = Bench::open(Config { port: 1, ..Config::default() });
    assert_eq!(bench.writes, [vec![Frame { port: 1, ..Frame::new(Kind::MonitorRaw) }]]);
    let came = |port, data: &'static [u8]| Frame { port, ..Frame::new(Kind::Raw) }.with(data);
    bench.frame(&came(1, b"\0mine"));
    bench.frame(&came(0, b"\0another port's"));
    bench.frame(&came(1, b""));
    bench.frame(&Frame::new(Kind::MonitoredUnnumbered).with(&b" 1:Fm A To B <UI>"[..]));
    let frames = bench.heard.iter().filter(|said| matches!(said, FramesIndication::Frame(_)));
    assert_eq!(frames.collect::<Vec<_>>(), [&FramesIndication::Frame("mine".into())]);
    assert_eq!(bench.raw.engine.counters().foreign, 3);
}

/// A line delivers bytes in pieces of any size.
#[test]
fn frames_come_in_any_pieces() {
    let mut bench = Bench::open(Config::default());
    let one = Frame::new(Kind::Raw).with(&b"\0abc"[..]).to_bytes();
    let line = Bytes::from([&one[..], &one[..]].concat());
    for piece in line.chunks(7) {
        bench.say(StreamIndication::Data(Bytes::copy_from_slice(piece)));
    }
    assert_eq!(bench.raw.engine.counters().received, 2);
}

/// One write leaves in one key-up. No frame waits when the server begins to send; TXDELAY and the frames' time on the
/// channel count from then on.
#[test]
fn frames_have_left_when_the_server_has_sent_what_waits() {
    let mut bench = Bench::open(Config::default());
    bench.burst(&[(&[1; 100], None), (&[2; 100], Some(7))]);
    assert_eq!(kinds(&bench.writes[1]), [Kind::Raw, Kind::Raw, Kind::QueuedOnPort]);
    assert_eq!((bench.writes[1][0].data[0], bench.writes[1][0].data.len()), (0, 101));
    assert_eq!(bench.room(), Some(0));
    // Other stations occupy the channel for a long time.
    for _ in 0..100 {
        bench.queued(2);
        bench.pass(Duration::from_millis(100));
        assert_eq!(kinds(bench.writes.last().unwrap()), [Kind::QueuedOnPort]);
    }
    bench.queued(0);
    // TXDELAY 0.3 s, two frames of 103 octets and their stuffing at 1200 bit/s.
    bench.pass(Duration::from_millis(1690));
    assert_eq!((bench.transmitted(), bench.announced_room()), (vec![], Some(0)));
    bench.pass(Duration::from_millis(10));
    assert_eq!((bench.transmitted(), bench.room()), (vec![7], Some(64)));
    assert_eq!(bench.raw.engine.counters().unanswered, 0);
}

/// The server does not answer: the time is computed.
#[test]
fn a_server_that_says_nothing_stops_nobody() {
    let mut bench = Bench::open(Config::default());
    bench.burst(&[(&[1; 100], Some(7))]);
    bench.pass(Duration::from_secs(5));
    assert_eq!((bench.transmitted(), bench.room()), (vec![7], Some(64)));
    assert_eq!(bench.raw.engine.counters().unanswered, 1);
}

/// The beginning of the next frame cannot be found: the line is closed and reconnected.
#[test]
fn a_line_with_nonsense_on_it_is_taken_up_again() {
    let mut bench = Bench::open(Config::default());
    bench.burst(&[(&[1; 100], Some(7))]);
    bench.say(StreamIndication::Data(Bytes::from_static(&[0xff; 40])));
    assert_eq!(bench.transmitted(), [7]);
    assert!(bench.heard.contains(&FramesIndication::Carrier(false)));
    assert_eq!((bench.raw.engine.counters().damaged, bench.room()), (1, Some(0)));
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.calls, 2);
    bench.stands();
    assert_eq!((bench.raw.engine.trouble(), bench.room()), (Some(ServerFault::NotAgwpe), Some(0)));
    bench.ports(b"1;Port1 a;\0");
    assert_eq!((bench.raw.engine.trouble(), bench.room()), (None, Some(64)));
}

/// A program that answers otherwise than such a server, or not at all, is refused; a missing port carries nothing.
#[test]
fn a_server_has_to_have_the_port() {
    let trouble = |answer: Option<&'static [u8]>| {
        let mut bench = Bench::connected(Config { port: 2, ..Config::default() });
        assert_eq!(kinds(&bench.writes[0]), [Kind::Ports]);
        if let Some(answer) = answer {
            bench.frame(&Frame { port: 2, ..Frame::new(Kind::QueuedOnPort) }.with(&[0; 4][..]));
            bench.frame(&Frame { port: 2, ..Frame::new(Kind::Raw) }.with(&b"\0too early"[..]));
            bench.ports(answer);
        }
        bench.pass(Duration::from_secs(11));
        let is_open = bench.raw.engine.line().is_open();
        assert_eq!(bench.heard.contains(&FramesIndication::Carrier(true)), is_open);
        assert!(is_open || bench.calls > 1, "it is tried again");
        bench.raw.engine.trouble()
    };
    assert_eq!(trouble(None), Some(ServerFault::Silent));
    assert_eq!(trouble(Some(b"many;\0")), Some(ServerFault::NotAgwpe));
    assert_eq!(trouble(Some(b"2;Port1 a;Port2 b;\0")), Some(ServerFault::NoPort));
    assert_eq!(trouble(Some(b"2;Port1 a;Port3 b;\0")), None, "they need not be the first ones");
    assert_eq!(trouble(Some(b"3;radio;radio;radio;")), None, "they need not be named");
}

#[test]
fn settings_out_of_range_are_named() {
    let wrong = Config { port: 16, ..Config::default() };
    assert_eq!(wrong.check().unwrap_err().key, "port");
    let wrong = Config { ask_interval: Duration::ZERO, ..Config::default() };
    assert_eq!(wrong.check().unwrap_err().key, "ask-interval");
    assert_eq!(Config::default().check(), Ok(()));
}
