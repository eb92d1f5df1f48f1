//! Two TNCs on one line that accepts bytes in small pieces.

use crate::controller;
use crate::engine::{Engine, drain};
use crate::kiss::{
    Acknowledgement, Checksum, Command, Config, Deframer, Frame, KissTnc, SharedLine, enclose,
};
use crate::service::{CloseReason, FramesIndication, FramesRequest, Shares, StreamIndication, StreamRequest};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::{Bytes, BytesMut};

struct Bench {
    now: Instant,
    tncs: Vec<KissTnc>,
    share: Checked<SharedLine>,
    line: Vec<u8>,
    calls: usize,
    ends: usize,
    heard: Vec<(usize, FramesIndication)>,
}

impl Bench {
    fn new(ports: &[u8]) -> Bench {
        let tnc = |port: &u8| {
            let config = Config {
                port: *port,
                acknowledgement: Acknowledgement::Never,
                send_parameters: false,
                ..Config::default()
            };
            let mut tnc = KissTnc::new(config, controller::Config::default());
            tnc.handle_request(Instant::ZERO, FramesRequest::Join);
            tnc
        };
        let mut bench = Bench {
            now: Instant::ZERO,
            tncs: ports.iter().map(tnc).collect(),
            share: Checked::new("share", SharedLine::new(ports.len())),
            line: vec![],
            calls: 0,
            ends: 0,
            heard: vec![],
        };
        bench.settle();
        bench
    }

    fn say(&mut self, said: StreamIndication) {
        self.share.handle_indication(self.now, said);
        self.settle();
    }

    /// Passes messages in both directions until none is left.
    fn settle(&mut self) {
        loop {
            let (mut up, mut down, mut moved) = (vec![], vec![], false);
            drain(&mut self.share, self.now, |said| up.push(said), |asked| down.push(asked));
            for (user, said) in up {
                moved = true;
                self.tncs[user].handle_indication(self.now, said);
            }
            for asked in down {
                moved = true;
                match asked {
                    StreamRequest::Connect => self.calls += 1,
                    StreamRequest::Abort => self.ends += 1,
                    StreamRequest::Write(bytes) => self.line.extend_from_slice(&bytes),
                    _ => {}
                }
            }
            for (user, tnc) in self.tncs.iter_mut().enumerate() {
                let mut asked = vec![];
                drain(tnc, self.now, |said| self.heard.push((user, said)), |request| asked.push(request));
                for request in asked {
                    moved = true;
                    self.share.handle_request(self.now, (user, request));
                }
            }
            if !moved {
                return;
            }
        }
    }

    fn burst(&mut self, user: usize, frames: &[&'static [u8]]) {
        self.tncs[user].handle_request(self.now, FramesRequest::Seize);
        self.settle();
        self.pass();
        for (at, bytes) in frames.iter().enumerate() {
            let (bytes, last) = (Bytes::from_static(bytes), at + 1 == frames.len());
            let request = FramesRequest::Frame { bytes, token: None, last, shares: Shares::default() };
            self.tncs[user].handle_request(self.now, request);
        }
    }

    /// Advances to the next deadline of any TNC.
    fn pass(&mut self) {
        let at = self.tncs.iter().filter_map(Engine::poll_timeout).min().expect("something is waited for");
        self.now = self.now.max(at);
        for tnc in &mut self.tncs {
            tnc.handle_timeout(self.now);
        }
        self.settle();
    }

    fn frames(&self) -> Vec<(u8, Command)> {
        let (mut deframer, mut input) = (Deframer::new(), Bytes::copy_from_slice(&self.line));
        let contents = core::iter::from_fn(|| deframer.next(&mut input));
        contents
            .map(|mut content| Frame::decode(&mut content).unwrap())
            .map(|frame| (frame.port, frame.body))
            .collect()
    }
}

/// The line accepts three bytes at a time: frames of one TNC do not end up inside those of another.
#[test]
fn what_one_writes_stays_together() {
    let mut bench = Bench::new(&[0, 5]);
    assert_eq!(bench.calls, 1, "one line for both");
    bench.say(StreamIndication::Connected);
    bench.burst(0, &[b"first of one", b"second of one"]);
    bench.burst(1, &[b"first of the other", b"second of the other"]);
    bench.settle();
    assert!(bench.line.is_empty());
    for _ in 0..100 {
        bench.say(StreamIndication::Room(3));
    }
    let data = |port: u8, text: &'static [u8]| (port, Command::Data(Bytes::from_static(text)));
    assert_eq!(
        bench.frames(),
        [
            data(0, b"first of one"),
            data(0, b"second of one"),
            data(5, b"first of the other"),
            data(5, b"second of the other"),
        ]
    );
}

#[test]
fn each_hears_what_is_its_own() {
    let mut bench = Bench::new(&[0, 5]);
    bench.say(StreamIndication::Connected);
    bench.say(StreamIndication::Room(1000));
    let mut line = BytesMut::new();
    for (port, text) in [(5, "five"), (0, "zero"), (1, "nobody's")] {
        enclose(&Frame::data(port, Bytes::from_static(text.as_bytes())), Checksum::None, &mut line);
    }
    bench.say(StreamIndication::Data(line.freeze()));
    let frames = bench.heard.iter().filter(|(_, said)| matches!(said, FramesIndication::Frame(_)));
    let frames: Vec<_> = frames.cloned().collect();
    let frame = |text: &'static str| FramesIndication::Frame(text.into());
    assert_eq!(frames, [(0, frame("zero")), (1, frame("five"))]);
}

/// A lost line is lost for both, and reconnected once, whichever TNC requests it first.
#[test]
fn a_lost_line_is_called_once() {
    let mut bench = Bench::new(&[0, 5]);
    for round in 1..4 {
        assert_eq!(bench.calls, round);
        bench.say(StreamIndication::Connected);
        bench.say(StreamIndication::Room(1000));
        assert!(bench.tncs.iter().all(|tnc| tnc.line().is_open()));
        bench.say(StreamIndication::PeerClosed);
        assert_eq!(bench.ends, round, "it is ended once");
        bench.say(StreamIndication::Closed(CloseReason::Aborted));
        let open = |tnc: &KissTnc| tnc.line().is_open() || tnc.line().connections() != round as u64;
        assert!(!bench.tncs.iter().any(open));
        bench.now += Duration::from_millis(1);
        bench.pass();
    }
}
