//! The engine, with a TNC and a user that are played.

use crate::controller::{self, Channel};
use crate::engine::{Engine, drain};
use crate::kiss::{Acknowledgement, Body, Checksum, Config, Deframer, Frame, Tnc, enclose};
use crate::service::{CloseReason, FramesIndication, FramesRequest, Shares, StreamIndication, StreamRequest};
use crate::time::{Duration, Instant};
use crate::wrap::Lawful;
use bytes::{Bytes, BytesMut};

/// The far end of the line, and what the user above heard.
struct Bench {
    now: Instant,
    tnc: Lawful<Tnc>,
    checksum: Checksum,
    /// Frames of each write.
    writes: Vec<Vec<Frame>>,
    deframer: Deframer,
    heard: Vec<FramesIndication>,
    calls: Vec<Instant>,
}

const LINE_ROOM: u64 = 100_000;

impl Bench {
    /// The line stands, and the parameters are sent.
    fn open(config: Config) -> Bench {
        Bench::with(config, controller::Config::default())
    }

    fn with(config: Config, controller: controller::Config) -> Bench {
        let mut bench = Bench::apart(config, controller);
        bench.tell(FramesRequest::Join);
        bench.stands();
        bench
    }

    fn apart(config: Config, controller: controller::Config) -> Bench {
        Bench {
            now: Instant::ZERO,
            checksum: config.checksum,
            tnc: Lawful::new("tnc", Tnc::new(config, controller)),
            writes: vec![],
            deframer: Deframer::new(),
            heard: vec![],
            calls: vec![],
        }
    }

    fn tell(&mut self, request: FramesRequest) {
        self.tnc.handle_request(self.now, request);
        self.drain();
    }

    fn say(&mut self, indication: StreamIndication) {
        self.tnc.handle_indication(self.now, indication);
        self.drain();
    }

    fn stands(&mut self) {
        self.say(StreamIndication::Connected);
        self.say(StreamIndication::Room(LINE_ROOM));
    }

    /// The TNC says this.
    fn frame(&mut self, body: Body) {
        let mut line = BytesMut::new();
        enclose(&Frame { port: 0, body }, self.checksum, &mut line);
        self.say(StreamIndication::Data(line.freeze()));
    }

    fn burst(&mut self, frames: impl IntoIterator<Item = (&'static [u8], Option<u64>)>) {
        let mut frames = frames.into_iter().peekable();
        while let Some((bytes, token)) = frames.next() {
            let (bytes, last) = (Bytes::from_static(bytes), frames.peek().is_none());
            self.tell(FramesRequest::Frame { bytes, token, last, shares: Shares::default() });
        }
    }

    fn drain(&mut self) {
        loop {
            if let Some(said) = self.tnc.poll_indication() {
                self.heard.push(said);
                continue;
            }
            match self.tnc.poll_request(self.now) {
                Some(StreamRequest::Write(mut bytes)) => {
                    let contents = core::iter::from_fn(|| self.deframer.next(&mut bytes));
                    let plain = contents.map(|content| self.checksum.strip(content).unwrap());
                    self.writes.push(plain.map(|mut plain| Frame::decode(&mut plain).unwrap()).collect());
                    self.tnc.handle_indication(self.now, StreamIndication::Room(LINE_ROOM));
                }
                Some(StreamRequest::Connect) => self.calls.push(self.now),
                Some(StreamRequest::Abort) => {
                    self.tnc.handle_indication(self.now, StreamIndication::Closed(CloseReason::Aborted));
                }
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Time goes on by this, and every timeout comes when it is due.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.tnc.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.tnc.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }

    fn room(&self) -> u32 {
        let rooms = self.heard.iter().rev();
        rooms
            .into_iter()
            .find_map(|said| if let FramesIndication::Room(room) = said { Some(*room) } else { None })
            .unwrap_or(0)
    }

    fn transmitted(&self) -> Vec<u64> {
        let tokens = self.heard.iter();
        tokens
            .filter_map(
                |said| if let FramesIndication::Transmitted(token) = said { Some(*token) } else { None },
            )
            .collect()
    }
}

fn never() -> Config {
    Config { acknowledgement: Acknowledgement::Never, ..Config::default() }
}

fn behind(channel: Channel) -> controller::Config {
    controller::Config { channel, ..controller::Config::default() }
}

fn data(bytes: &'static [u8]) -> Body {
    Body::Data(Bytes::from_static(bytes))
}

#[test]
fn the_parameters_come_first_and_in_one_write() {
    let bench = {
        let channel = Channel { tx_delay: Duration::from_millis(155), ..Channel::default() };
        Bench::with(Config { port: 2, ..never() }, behind(channel))
    };
    let bodies = bench.writes[0].iter().map(|frame| (frame.port, frame.body.clone()));
    let expected =
        [Body::TxDelay(16), Body::Persistence(63), Body::SlotTime(10), Body::TxTail(2), Body::FullDuplex(0)];
    assert_eq!(bodies.collect::<Vec<_>>(), expected.map(|body| (2, body)));
    assert_eq!(bench.heard, [FramesIndication::Carrier(true), FramesIndication::Room(64)]);
}

/// What is written at once leaves in one key-up.
#[test]
fn a_window_is_one_write_and_there_is_room_when_it_has_left() {
    let mut bench = Bench::open(never());
    bench.burst([(&[1; 100][..], None), (&[2; 100], None), (&[3; 100], Some(7))]);
    assert_eq!(bench.writes[1].len(), 3);
    assert_eq!(bench.room(), 0);
    // TXDELAY 0.3 s, four slots of 0.1 s on the average, three frames of 103 octets and their stuffing at 1200 bit/s.
    bench.pass(Duration::from_millis(2800));
    assert_eq!((bench.transmitted(), bench.room()), (vec![7], 64), "at {}", bench.now);
    let mut early = Bench::open(never());
    early.burst([(&[1; 100][..], None), (&[2; 100], None), (&[3; 100], Some(7))]);
    early.pass(Duration::from_millis(2750));
    assert_eq!((early.transmitted(), early.room()), (vec![], 0));
}

/// Acknowledgements join the first one in the TNC's queue as long as others speak, and leave in one key-up with it.
#[test]
fn while_others_are_heard_more_can_join() {
    let mut bench = Bench::open(never());
    bench.burst([(&[1; 15][..], None)]);
    assert_eq!(bench.room(), 0);
    bench.pass(Duration::from_millis(300));
    bench.frame(data(&[9; 200]));
    assert_eq!((bench.room(), bench.transmitted()), (63, vec![]));
    bench.burst([(&[2; 15][..], Some(5))]);
    bench.pass(Duration::from_millis(600));
    assert_eq!(bench.transmitted(), []);
    bench.pass(Duration::from_millis(400));
    assert_eq!((bench.transmitted(), bench.room()), (vec![5], 64));
}

/// An answer that could not have come while the frame waited says that it has left.
#[test]
fn an_answer_says_that_it_has_left() {
    let mut bench = Bench::with(never(), behind(Channel { persistence: 0, ..Channel::default() }));
    bench.burst([(&[1; 15][..], Some(1))]);
    bench.pass(Duration::from_millis(1200));
    assert_eq!(bench.transmitted(), []);
    bench.frame(data(&[9; 15]));
    assert_eq!((bench.transmitted(), bench.room()), (vec![1], 64));
}

#[test]
fn a_tnc_that_acknowledges_is_believed() {
    let mut bench = Bench::open(Config::default());
    bench.burst([(&[1; 100][..], Some(7))]);
    let Body::DataAcknowledged { token, bytes } = bench.writes[1][0].body.clone() else {
        panic!("{:?}", bench.writes)
    };
    assert_eq!(bytes, [1; 100][..]);
    // Later than it needs, and still no doubt.
    bench.pass(Duration::from_secs(3));
    assert_eq!((bench.transmitted(), bench.room()), (vec![], 0));
    bench.frame(Body::DataAcknowledged { token, bytes: Bytes::new() });
    assert_eq!((bench.transmitted(), bench.room()), (vec![7], 64));
    assert_eq!(bench.writes.len(), 2);
    // From now on the last of every burst tells.
    bench.burst([(&[2; 20][..], None), (&[3; 20], None)]);
    assert!(matches!(
        bench.writes[2][..],
        [Frame { body: Body::Data(_), .. }, Frame { body: Body::DataAcknowledged { .. }, .. }]
    ));
}

/// Dire Wolf 1.6: what has to be acknowledged is dropped without a word.
#[test]
fn a_frame_that_the_tnc_swallowed_is_sent_again() {
    let mut bench = Bench::open(Config::default());
    bench.burst([(&[1; 100][..], Some(7))]);
    bench.pass(Duration::from_secs(4));
    assert_eq!(bench.writes[2], [Frame::data(0, Bytes::from_static(&[1; 100]))]);
    assert_eq!((bench.transmitted(), bench.room()), (vec![], 0));
    bench.pass(Duration::from_secs(1));
    assert_eq!((bench.transmitted(), bench.room()), (vec![7], 64));
    // Nothing is asked for any more.
    bench.burst([(&[2; 100][..], Some(8))]);
    assert_eq!(bench.writes[3], [Frame::data(0, Bytes::from_static(&[2; 100]))]);
    // Until it says that it does know it.
    bench.frame(Body::DataAcknowledged { token: 0, bytes: Bytes::new() });
    bench.pass(Duration::from_secs(2));
    bench.burst([(&[3; 100][..], Some(9))]);
    assert!(matches!(bench.writes[4][0].body, Body::DataAcknowledged { .. }));
}

/// What was in the TNC counts as lost on the air, so that nobody waits for it for ever; the line is tried again, later each
/// time, and the parameters are sent anew.
#[test]
fn a_line_that_breaks_comes_back() {
    let config =
        controller::Config { reconnect_max: Duration::from_secs(5), ..controller::Config::default() };
    let mut bench = Bench::with(never(), config);
    bench.burst([(&[1; 100][..], Some(7))]);
    bench.say(StreamIndication::PeerClosed);
    assert_eq!(bench.heard[3..], [FramesIndication::Transmitted(7), FramesIndication::Carrier(false),]);
    assert_eq!(bench.room(), 0);
    for _ in 0..5 {
        let calls = bench.calls.len();
        while bench.calls.len() == calls {
            bench.pass(Duration::from_secs(1));
        }
        bench.say(StreamIndication::Closed(CloseReason::Refused));
    }
    let waits: Vec<_> = bench.calls.windows(2).map(|two| (two[1] - two[0]).as_secs()).collect();
    assert_eq!(waits, [1, 2, 4, 5, 5]);
    bench.pass(Duration::from_secs(5));
    bench.stands();
    assert_eq!(bench.writes.last().unwrap().len(), 5);
    assert_eq!(bench.room(), 64);
}

/// What is written to a line that is being ended is written to nobody.
#[test]
fn a_tnc_that_has_hung_up_gets_nothing_more() {
    let mut bench = Bench::open(Config { poll_interval: Some(Duration::from_millis(50)), ..never() });
    let (writes, now) = (bench.writes.len(), bench.now);
    // The line has not said yet that it is closed.
    bench.tnc.handle_indication(now, StreamIndication::PeerClosed);
    let mut down = vec![];
    drain(&mut bench.tnc, now, |_| {}, |request| down.push(request));
    bench.tnc.handle_indication(now, StreamIndication::Room(LINE_ROOM));
    bench.pass(Duration::from_secs(1));
    assert_eq!((down, bench.writes.len()), (vec![StreamRequest::Abort], writes));
}

/// Multi-Drop, Polled Mode: one frame a poll, and at once another poll behind it.
#[test]
fn a_polled_tnc_is_asked() {
    let interval = Duration::from_millis(100);
    let mut bench = Bench::open(Config { poll_interval: Some(interval), ..never() });
    let poll = vec![Frame { port: 0, body: Body::Poll }];
    bench.pass(interval);
    assert_eq!(bench.writes[1], poll);
    bench.frame(data(b"frame"));
    bench.pass(Duration::ZERO);
    assert_eq!(bench.writes[2], poll);
    bench.frame(Body::Poll);
    bench.pass(Duration::from_millis(99));
    assert_eq!(bench.writes.len(), 3);
}

#[test]
fn what_others_say_on_the_line_is_counted() {
    let mut bench = Bench::open(Config { port: 3, checksum: Checksum::ExclusiveOr, ..never() });
    let heard = bench.heard.len();
    bench.frame(data(b"for another"));
    bench.say(StreamIndication::Data(Bytes::from_static(&[0xc0, 0x30, 1, 2, 0xc0])));
    assert_eq!(bench.heard.len(), heard);
}

#[test]
fn settings_out_of_range_are_named() {
    let wrong = Config { port: 9, checksum: Checksum::Smack, ..Config::default() };
    assert_eq!(wrong.check().unwrap_err().key, "port");
    let wrong = behind(Channel { tx_delay: Duration::from_secs(3), ..Channel::default() });
    assert_eq!(wrong.check().unwrap_err().key, "channel.tx-delay");
    let wrong = controller::Config { burst_frames_max: 0, ..controller::Config::default() };
    assert_eq!(wrong.check().unwrap_err().key, "burst-frames-max");
    assert_eq!(Config::default().check(), Ok(()));
}
