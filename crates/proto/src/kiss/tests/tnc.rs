//! The engine, with a simulated TNC and a simulated user.

use crate::controller::{self, ChannelParameters, GATHER};
use crate::engine::{Engine, drain};
use crate::kiss::{
    Acknowledgement, Checksum, Command, Config, Counters, Deframer, FRAME_BYTES_MAX, Frame, KissTnc, enclose,
};
use crate::service::{CloseReason, FramesIndication, FramesRequest, Shares, StreamIndication, StreamRequest};
use crate::setting::Settings as _;
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::{Bytes, BytesMut};

/// The far end of the line, and the indications that the user above has received.
struct Bench {
    now: Instant,
    tnc: Checked<KissTnc>,
    checksum: Checksum,
    /// Frames of each write.
    writes: Vec<Vec<Frame>>,
    deframer: Deframer,
    heard: Vec<FramesIndication>,
    calls: Vec<Instant>,
}

const LINE_ROOM: u64 = 100_000;
/// A frame without meaning for any station.
const PROBE: &[u8] = &[5; 16];

impl Bench {
    /// Opens the line; the parameters are sent.
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
            tnc: Checked::new("tnc", KissTnc::new(config, controller).probing(Bytes::from_static(PROBE))),
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

    /// Delivers a frame from the TNC.
    fn frame(&mut self, body: Command) {
        self.frame_of(0, body);
    }

    fn frame_of(&mut self, port: u8, body: Command) {
        let mut line = BytesMut::new();
        enclose(&Frame { port, body }, self.checksum, &mut line);
        self.say(StreamIndication::Data(line.freeze()));
    }

    fn burst(&mut self, frames: impl IntoIterator<Item = (&'static [u8], Option<u64>)>) {
        assert!(self.room() > 0, "it takes no frames now");
        let mut frames = frames.into_iter().peekable();
        while let Some((bytes, token)) = frames.next() {
            let (bytes, last) = (Bytes::from_static(bytes), frames.peek().is_none());
            self.tell(FramesRequest::Frame { bytes, token, last, shares: Shares::default() });
        }
    }

    fn drain(&mut self) {
        loop {
            if let Some(said) = self.tnc.poll_indication(self.now) {
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

    /// Advances the time, with every timeout at its deadline.
    fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.tnc.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.tnc.handle_timeout(self.now);
            self.drain();
        }
        self.now = until;
    }

    /// Returns the room in frames soon after a request for the channel.
    fn room(&mut self) -> u32 {
        self.tell(FramesRequest::Seize);
        for _ in 0..2 {
            if self.announced_room() == 0 {
                self.pass(GATHER);
            }
        }
        self.announced_room()
    }

    fn announced_room(&self) -> u32 {
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

fn behind(channel: ChannelParameters) -> controller::Config {
    controller::Config { channel, ..controller::Config::default() }
}

fn data(bytes: &'static [u8]) -> Command {
    Command::Data(Bytes::from_static(bytes))
}

#[test]
fn the_parameters_come_first_and_in_one_write() {
    let bench = {
        let channel =
            ChannelParameters { tx_delay: Duration::from_millis(155), ..ChannelParameters::default() };
        Bench::with(Config { port: 2, ..never() }, behind(channel))
    };
    let bodies = bench.writes[0].iter().map(|frame| (frame.port, frame.body.clone()));
    let expected = [
        Command::TxDelay(16),
        Command::Persistence(63),
        Command::SlotTime(10),
        Command::TxTail(2),
        Command::FullDuplex(0),
    ];
    assert_eq!(bodies.collect::<Vec<_>>(), expected.map(|body| (2, body)));
    assert_eq!(bench.heard, [FramesIndication::Carrier(true)]);
}

/// One write leaves in one key-up.
#[test]
fn a_window_is_one_write_and_there_is_room_when_it_has_left() {
    let mut bench = Bench::open(never());
    bench.burst([(&[1; 100][..], None), (&[2; 100], None), (&[3; 100], Some(7))]);
    assert_eq!(bench.writes[1].len(), 3);
    bench.pass(Duration::from_millis(300));
    assert_eq!(bench.room(), 0);
    // TXDELAY 0.3 s, a mean wait of four slots of 0.1 s, three frames of 103 octets and their stuffing at 1200 bit/s.
    bench.pass(Duration::from_millis(2500));
    assert_eq!((bench.transmitted(), bench.room()), (vec![7], 64), "at {}", bench.now);
    let mut early = Bench::open(never());
    early.burst([(&[1; 100][..], None), (&[2; 100], None), (&[3; 100], Some(7))]);
    early.pass(Duration::from_millis(2750));
    assert_eq!((early.transmitted(), early.room()), (vec![], 0));
}

/// Nothing leaves before TXDELAY is over: a response of the user goes in the key-up of the acknowledgement before it.
#[test]
fn what_comes_before_the_first_bit_leaves_joins_the_key_up() {
    let mut bench = Bench::open(never());
    bench.burst([(&[1; 15][..], None)]);
    bench.pass(Duration::from_millis(100));
    assert_eq!(bench.room(), 63);
    bench.burst([(&[2; 100][..], Some(5))]);
    // TXDELAY is 0.3 s, and counts from the first frame.
    bench.pass(Duration::from_millis(200));
    assert_eq!(bench.room(), 0);
    // A mean wait of four slots of 0.1 s, and both frames.
    bench.pass(Duration::from_millis(1300));
    assert_eq!((bench.transmitted(), bench.room()), (vec![5], 64), "at {}", bench.now);
}

/// A request in the last moment in which frames join the burst: there is no room left when it would be granted. The
/// user asks once, and gets room when the burst has left.
#[test]
fn a_wish_as_the_first_bit_leaves_is_granted_with_the_next_room() {
    let mut bench = Bench::open(never());
    bench.burst([(&[1; 15][..], None)]);
    // TXDELAY is 0.3 s.
    bench.pass(Duration::from_millis(300) - GATHER / 2);
    bench.heard.clear();
    bench.tell(FramesRequest::Seize);
    bench.pass(Duration::from_secs(3));
    assert!(bench.heard.contains(&FramesIndication::Room(64)), "{:?}", bench.heard);
}

/// Acknowledgements join the first one in the TNC's queue while other stations transmit, and leave in one key-up with
/// it.
#[test]
fn while_others_are_heard_more_can_join() {
    let mut bench = Bench::open(never());
    bench.burst([(&[1; 15][..], None)]);
    bench.pass(Duration::from_millis(300));
    assert_eq!(bench.room(), 0);
    bench.frame(data(&[9; 200]));
    assert_eq!((bench.room(), bench.transmitted()), (63, vec![]));
    bench.burst([(&[2; 15][..], Some(5))]);
    bench.pass(Duration::from_millis(600));
    assert_eq!(bench.transmitted(), []);
    bench.pass(Duration::from_millis(400));
    assert_eq!((bench.transmitted(), bench.room()), (vec![5], 64));
}

/// A response that could not have come while the frame waited proves that the frame has left.
#[test]
fn an_answer_says_that_it_has_left() {
    let mut bench =
        Bench::with(never(), behind(ChannelParameters { persistence: 0, ..ChannelParameters::default() }));
    bench.burst([(&[1; 15][..], Some(1))]);
    bench.pass(Duration::from_millis(1200));
    assert_eq!(bench.transmitted(), []);
    bench.frame(data(&[9; 15]));
    assert_eq!((bench.transmitted(), bench.room()), (vec![1], 64));
}

/// Frames of all users are written together when every user has passed down its own: room comes a moment after the
/// request, is withdrawn if it is not used, and comes again after another request.
#[test]
fn room_comes_when_it_is_wanted_and_everybody_has_spoken() {
    let mut bench = Bench::open(never());
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.announced_room(), 0, "nobody wants it");
    for _ in 0..3 {
        bench.tell(FramesRequest::Seize);
        assert_eq!(bench.announced_room(), 0, "not in the same moment");
        bench.pass(GATHER);
        assert_eq!(bench.announced_room(), 64);
        bench.pass(GATHER);
        assert_eq!(bench.announced_room(), 0, "nobody has used it");
    }
    // A user that requests the channel while the TNC holds frames gets it when they have left.
    bench.burst([(&[1; 100][..], None)]);
    bench.pass(Duration::from_millis(300));
    bench.tell(FramesRequest::Seize);
    bench.pass(Duration::from_millis(200));
    assert_eq!(bench.announced_room(), 0);
    bench.pass(Duration::from_secs(3));
    let rooms = bench.heard.iter().filter(|said| **said == FramesIndication::Room(64)).count();
    assert_eq!(rooms, 5, "{:?}", bench.heard);
}

/// A user that requests the channel before there is a line gets it once the line opens, after any number of failed
/// attempts.
#[test]
fn a_wish_outlives_lines_that_could_not_be_had() {
    let mut bench = Bench::apart(never(), controller::Config::default());
    bench.tell(FramesRequest::Join);
    bench.tell(FramesRequest::Seize);
    for _ in 0..3 {
        bench.say(StreamIndication::Closed(CloseReason::Refused));
        bench.pass(Duration::from_secs(60));
    }
    bench.stands();
    bench.pass(GATHER);
    assert_eq!(bench.announced_room(), 64);
    // The loss of a line is indicated, and a user that needs the next one requests it.
    bench.tell(FramesRequest::Seize);
    bench.say(StreamIndication::PeerClosed);
    assert!(bench.heard.contains(&FramesIndication::Carrier(false)));
    bench.pass(Duration::from_secs(60));
    bench.stands();
    bench.pass(GATHER * 3);
    assert_eq!((bench.announced_room(), bench.room()), (0, 64));
}

#[test]
fn a_tnc_that_acknowledges_is_believed() {
    let mut bench = Bench::open(Config::default());
    bench.burst([(&[1; 100][..], Some(7))]);
    let [Frame { body: Command::DataAcknowledged { token, bytes }, .. }, first] = &bench.writes[1][..] else {
        panic!("{:?}", bench.writes)
    };
    let token = *token;
    assert_eq!((&bytes[..], &first.body), (PROBE, &data(&[1; 100])));
    bench.frame(Command::DataAcknowledged { token, bytes: Bytes::new() });
    bench.pass(Duration::from_secs(3));
    assert_eq!((bench.transmitted(), bench.room()), (vec![7], 64));
    assert_eq!(bench.tnc.engine.acknowledges(), Some(true));
    // From now on the last frame of every burst asks for an acknowledgement.
    bench.burst([(&[2; 20][..], None), (&[3; 20], Some(8))]);
    let [Frame { body: Command::Data(_), .. }, Frame { body: Command::DataAcknowledged { token, .. }, .. }] =
        bench.writes[2][..]
    else {
        panic!("{:?}", bench.writes)
    };
    // Later than necessary, but not overdue.
    bench.pass(Duration::from_secs(2));
    assert_eq!((bench.transmitted(), bench.room()), (vec![7], 0));
    bench.frame(Command::DataAcknowledged { token, bytes: Bytes::new() });
    assert_eq!((bench.transmitted(), bench.room()), (vec![7, 8], 64));
}

/// Dire Wolf 1.6 silently drops frames that ask for an acknowledgement. No frame of a user asks for one until support
/// is known, so nothing is lost, late or duplicated.
#[test]
fn whether_a_tnc_acknowledges_is_asked_with_a_frame_that_nobody_misses() {
    let mut bench = Bench::open(Config::default());
    for (user_token, content) in [(7, &[1; 100]), (8, &[2; 100]), (9, &[3; 100])] {
        bench.burst([(&content[..], Some(user_token))]);
        bench.pass(Duration::from_secs(3));
    }
    assert_eq!(bench.transmitted(), [7, 8, 9]);
    let bodies: Vec<Command> = bench.writes[1..].iter().flatten().map(|frame| frame.body.clone()).collect();
    let asked = Command::DataAcknowledged { token: 0, bytes: Bytes::from_static(PROBE) };
    assert_eq!(bodies, [asked, data(&[1; 100]), data(&[2; 100]), data(&[3; 100])]);
    assert_eq!(bench.tnc.engine.acknowledges(), Some(false));
    // The TNC then proves that it supports the mode.
    bench.frame(Command::DataAcknowledged { token: 0, bytes: Bytes::new() });
    bench.burst([(&[3; 100][..], Some(9))]);
    assert!(matches!(bench.writes.last().unwrap()[0].body, Command::DataAcknowledged { .. }));
}

/// Frames held by the TNC count as lost on the channel, so that no user waits for them for ever; the line is retried
/// with growing delays, and the parameters are sent again.
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

/// Nothing is written to a line that is being closed.
#[test]
fn a_tnc_that_has_hung_up_gets_nothing_more() {
    let mut bench = Bench::open(Config { poll_interval: Some(Duration::from_millis(50)), ..never() });
    let (writes, now) = (bench.writes.len(), bench.now);
    // The line has not yet reported that it is closed.
    bench.tnc.handle_indication(now, StreamIndication::PeerClosed);
    let mut down = vec![];
    drain(&mut bench.tnc, now, |_| {}, |request| down.push(request));
    bench.tnc.handle_indication(now, StreamIndication::Room(LINE_ROOM));
    bench.pass(Duration::from_secs(1));
    assert_eq!((down, bench.writes.len()), (vec![StreamRequest::Abort], writes));
}

/// Multi-Drop, Polled Mode: one frame per poll, and another poll immediately after it.
#[test]
fn a_polled_tnc_is_asked() {
    let interval = Duration::from_millis(100);
    let mut bench = Bench::open(Config { poll_interval: Some(interval), ..never() });
    let poll = vec![Frame { port: 0, body: Command::Poll }];
    bench.pass(interval);
    assert_eq!(bench.writes[1], poll);
    bench.frame(data(b"frame"));
    bench.pass(Duration::ZERO);
    assert_eq!(bench.writes[2], poll);
    bench.frame(Command::Poll);
    bench.pass(Duration::from_millis(99));
    assert_eq!(bench.writes.len(), 3);
}

/// A content that is no frame, too long, or has a wrong checksum is damaged; a frame of another port, or with a command
/// that has no meaning for a host, is foreign. A new line does not reset the counters.
#[test]
fn what_others_say_on_the_line_is_counted() {
    let mut bench = Bench::open(Config { port: 3, checksum: Checksum::ExclusiveOr, ..never() });
    let heard = bench.heard.len();
    bench.frame(data(b"for another"));
    let to_a_tnc = [Command::TxDelay(9), Command::Unknown { command: 9, bytes: Bytes::from_static(b"9") }];
    for body in to_a_tnc {
        bench.frame_of(3, body);
    }
    bench.say(StreamIndication::Data(Bytes::from_static(&[0xc0, 0x30, 1, 2, 0xc0])));
    assert_eq!(bench.heard.len(), heard);
    let counted = Counters { foreign: 3, damaged: 1, connections: 1, ..Counters::default() };
    assert_eq!(bench.tnc.engine.counters(), counted);
    for lines in 2..4 {
        // Two contents that are too long.
        for _ in 0..2 {
            let mut overlong = vec![5; FRAME_BYTES_MAX + 1];
            overlong.push(0xc0);
            bench.say(StreamIndication::Data(overlong.into()));
        }
        let damaged = 1 + 2 * (lines - 1);
        assert_eq!(bench.tnc.engine.counters().damaged, damaged);
        bench.say(StreamIndication::PeerClosed);
        let calls = bench.calls.len();
        while bench.calls.len() == calls {
            bench.pass(Duration::from_secs(1));
        }
        bench.stands();
        assert_eq!(bench.tnc.engine.counters(), Counters { damaged, connections: lines, ..counted });
    }
    bench.frame_of(3, data(b"for us"));
    let found = bench.tnc.engine.counters();
    assert_eq!((found.received, found.foreign, bench.heard.len() > heard), (1, 3, true));
}

/// Frames passed to the TNC count as held until they have left.
#[test]
fn what_it_has_is_what_has_not_left() {
    let mut bench = Bench::open(never());
    assert_eq!(bench.tnc.engine.held(), 0);
    bench.burst([(&[1; 100][..], Some(1)), (&[2; 100][..], Some(2)), (&[3; 100][..], Some(3))]);
    assert_eq!((bench.tnc.engine.held(), bench.tnc.engine.counters().sent), (3, 3));
    while bench.transmitted().is_empty() {
        bench.pass(Duration::from_millis(10));
    }
    assert_eq!(bench.tnc.engine.held(), 3 - bench.transmitted().len());
    bench.pass(Duration::from_secs(10));
    assert_eq!((bench.tnc.engine.held(), bench.transmitted()), (0, vec![1, 2, 3]));
}

#[test]
fn settings_out_of_range_are_named() {
    let wrong = Config { port: 9, checksum: Checksum::Smack, ..Config::default() };
    assert_eq!(wrong.check().unwrap_err().key, "port");
    let wrong =
        behind(ChannelParameters { tx_delay: Duration::from_secs(3), ..ChannelParameters::default() });
    assert_eq!(wrong.check().unwrap_err().key, "channel.tx-delay");
    let wrong = controller::Config { burst_frames_max: 0, ..controller::Config::default() };
    assert_eq!(wrong.check().unwrap_err().key, "burst-frames-max");
    assert_eq!(Config::default().check(), Ok(()));
}
