//! XID after the answer to a connection request, and data that do not wait for its answer.

use super::channel::{Channel, station};
use super::hostile::{ready, turn, unnumbered};
use crate::ax25::{
    CommandResponse, Config, Control, Frame, LinkConfig, Modulo, OptionalFunctions, Parameters, Recovery,
    Station, Supervisory, Unnumbered, Version,
};
use crate::engine::Engine;
use crate::service::{FramesIndication, LinkId, PacketsIndication, PacketsRequest, Port};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::{Bytes, BytesMut};

const A: usize = 0;
const B: usize = 1;
const OWN: LinkId = LinkId(0);
const CALLER: LinkId = LinkId(LinkId::FIRST_INCOMING);

/// Station A, which connects to B; the test plays B.
struct Bench {
    now: Instant,
    station: Checked<Station>,
    said: Vec<PacketsIndication>,
}

impl Bench {
    fn new(change: impl Fn(&mut LinkConfig)) -> Self {
        Bench::with(|config| config.peers.values_mut().for_each(|peer| change(&mut peer.link)))
    }

    fn with(change: impl Fn(&mut Config)) -> Self {
        let mut config = station("A", &["B"]);
        change(&mut config);
        let station = Checked::new("station", Station::new(config));
        let mut bench = Bench { now: Instant::ZERO, station, said: vec![] };
        bench.turn(None);
        bench
    }

    /// Requests a connection, which B accepts.
    fn call(&mut self) {
        self.ask(PacketsRequest::Connect);
        assert_eq!(names(&self.turn(None)), ["SABME"]);
        let frames = self.turn(Some(unnumbered(CommandResponse::Response, Unnumbered::Acknowledge)));
        assert_eq!(names(&frames), [""; 0], "what it can do is asked with the first data");
    }

    fn ask(&mut self, request: PacketsRequest) {
        self.station.handle_request(self.now, Port::First((OWN, request)));
    }

    /// Passes packets down. Returns the frames that are sent.
    fn send(&mut self, packets: usize, bytes: usize) -> Vec<Frame> {
        (0..packets).for_each(|_| self.ask(PacketsRequest::payload(vec![7; bytes].into())));
        self.turn(None)
    }

    fn turn(&mut self, frame: Option<Frame>) -> Vec<Frame> {
        let (said, frames) = turn(&mut self.station, &mut self.now, frame, Modulo::Extended);
        self.said.extend(said);
        frames
    }

    /// Advances to the next timer. Returns the frames that are sent.
    fn wait(&mut self) -> Vec<Frame> {
        self.now = self.station.poll_timeout().expect("a timer runs");
        self.station.handle_timeout(self.now);
        self.turn(None)
    }

    /// Returns the indications since the last call, without room.
    fn said(&mut self) -> Vec<PacketsIndication> {
        let all = core::mem::take(&mut self.said);
        all.into_iter().filter(|said| !matches!(said, PacketsIndication::Room(_))).collect()
    }

    fn room(&self) -> u64 {
        let room = |said: &PacketsIndication| match said {
            PacketsIndication::Room(room) => Some(*room),
            _ => None,
        };
        self.said.iter().rev().find_map(room).expect("room was told")
    }
}

/// Returns short names of the frames.
fn names(frames: &[Frame]) -> Vec<&'static str> {
    let name = |frame: &Frame| match frame.control {
        Control::Information { poll: true, .. } => "I P",
        control => control.name(),
    };
    frames.iter().map(name).collect()
}

/// Returns XID with B's parameters.
fn identification(role: CommandResponse, bytes: u32, window: u8, segmenter: bool) -> Frame {
    let options =
        OptionalFunctions { recovery: Recovery::SelectiveReject, modulo: Modulo::Extended, segmenter };
    let parameters = Parameters {
        options: Some(options),
        information_bytes_max: Some(bytes),
        window_frames: Some(window),
        ..Parameters::default()
    };
    let mut field = BytesMut::new();
    parameters.encode(&mut field);
    Frame { information: field.freeze(), ..unnumbered(role, Unnumbered::ExchangeIdentification) }
}

fn connected(bytes_max: u32, bytes_best: u32) -> PacketsIndication {
    PacketsIndication::Connected { bytes_max, bytes_best, peer: "B".into() }
}

fn takes(bytes_max: u32, bytes_best: u32) -> PacketsIndication {
    PacketsIndication::Sizes { bytes_max, bytes_best }
}

fn refusal() -> Frame {
    unnumbered(CommandResponse::Response, Unnumbered::FrameReject)
}

#[test]
fn the_question_goes_behind_data_in_one_key_up_and_asks_for_both() {
    let mut channel = Channel::new(1, vec![station("A", &["B"]), station("B", &[])]);
    channel.request(A, OWN, PacketsRequest::Connect);
    channel.send(A, OWN, (0..3).map(|_| Bytes::from(vec![7; 256])));
    channel.run(60, |channel| channel.nodes[A].user.acknowledged.get(&OWN) == Some(&3));
    assert_eq!(names(&channel.frames(A, Modulo::Extended)), ["SABME", "I", "I", "I", "XID"]);
    assert_eq!(names(&channel.frames(B, Modulo::Extended)), ["UA", "XID", "RR"]);
    // Each station had the channel twice.
    let turns = channel.log.chunk_by(|one, other| one.1 == other.1).count();
    assert_eq!(turns, 4, "{}", channel.story(Modulo::Extended));
    assert_eq!(channel.nodes[A].user.takes[&OWN], (32_639, 256));
    assert_eq!(channel.nodes[B].user.takes[&CALLER], (32_639, 256), "who was called is told, too");
}

#[test]
fn until_the_peer_answers_no_more_goes_than_everyone_takes() {
    let mut bench = Bench::new(|link| (link.information_bytes_max, link.extended_window_frames) = (1024, 64));
    bench.call();
    assert_eq!((bench.room(), bench.said()), (32, vec![connected(256, 256)]));
    let frames = bench.send(32, 256);
    assert_eq!((frames.len(), names(&frames)[32]), (33, "XID"));
    bench.turn(Some(identification(CommandResponse::Response, 2048, 64, false)));
    assert_eq!((bench.room(), bench.said()), (32, vec![takes(1024, 1024)]));
    // Half of the 64 frames are in flight.
    bench.turn(Some(ready(CommandResponse::Response, 32)));
    assert_eq!(bench.room(), 64);
    assert_eq!(bench.send(1, 1024).len(), 1);
}

#[test]
fn what_a_peer_said_holds_for_the_next_call() {
    let mut bench = Bench::new(|_| ());
    bench.call();
    bench.send(1, 10);
    bench.turn(Some(identification(CommandResponse::Response, 200, 5, true)));
    bench.turn(Some(ready(CommandResponse::Response, 1)));
    bench.ask(PacketsRequest::Close);
    bench.turn(Some(unnumbered(CommandResponse::Response, Unnumbered::Acknowledge)));
    bench.said();
    bench.call();
    assert_eq!((bench.room(), bench.said()), (5, vec![connected(199 * 128 - 1, 200)]));
    let frames = bench.send(1, 600);
    assert_eq!(names(&frames), ["I", "I", "I", "I", "XID"], "segments at once: the peer knows them");
    // Its parameters may have changed.
    bench.turn(Some(identification(CommandResponse::Response, 256, 32, true)));
    assert_eq!(bench.said(), [takes(32_639, 256)]);
}

#[test]
fn a_peer_that_takes_less_is_spared_from_then_on() {
    let mut bench = Bench::new(|_| ());
    bench.call();
    bench.said();
    bench.send(1, 256);
    bench.turn(Some(identification(CommandResponse::Response, 128, 2, false)));
    assert_eq!((bench.room(), bench.said()), (1, vec![takes(256, 128)]));
}

#[test]
fn a_peer_that_refuses_the_question_gets_its_data_and_is_not_asked_again() {
    let mut bench = Bench::new(|_| ());
    bench.call();
    assert_eq!(names(&bench.send(2, 10)), ["I", "I", "XID"]);
    bench.turn(Some(refusal()));
    bench.turn(Some(ready(CommandResponse::Response, 2)));
    assert_eq!(bench.said(), [connected(256, 256), PacketsIndication::Acknowledged(2)]);
    bench.ask(PacketsRequest::Close);
    bench.turn(Some(unnumbered(CommandResponse::Response, Unnumbered::Acknowledge)));
    bench.call();
    assert_eq!(names(&bench.send(1, 10)), ["I P"]);
    // FRMR does not refer to an XID that was not sent.
    bench.turn(Some(refusal()));
    assert!(matches!(bench.said().last(), Some(PacketsIndication::Closed(_))));
}

#[test]
fn a_peer_that_is_silent_on_the_question_gets_its_data() {
    let mut bench = Bench::new(|link| link.information_bytes_max = 512);
    bench.call();
    assert_eq!(names(&bench.send(2, 10)), ["I", "I", "XID"]);
    bench.turn(Some(ready(CommandResponse::Response, 2)));
    assert_eq!(bench.said(), [connected(256, 256), PacketsIndication::Acknowledged(2)]);
    assert_eq!(names(&bench.wait()), ["XID"]);
    assert_eq!(names(&bench.wait()), ["XID"]);
    // Then this side's settings apply.
    assert_eq!(names(&bench.wait()), [""; 0]);
    assert_eq!(bench.said(), [takes(512, 512)]);
    let idle = bench.station.poll_timeout().expect("the idle probe");
    assert!(idle > bench.now + Duration::from_secs(60), "nothing is waited for any more");
}

#[test]
fn an_answer_that_comes_late_holds_all_the_same() {
    let mut bench = Bench::new(|_| ());
    bench.call();
    while bench.now < Instant::from_secs(60) {
        bench.wait();
    }
    bench.said();
    bench.turn(Some(identification(CommandResponse::Response, 256, 9, true)));
    assert_eq!((bench.room(), bench.said()), (9, vec![takes(32_639, 256)]));
}

#[test]
fn who_has_nothing_to_send_asks_alone() {
    let mut bench = Bench::new(|_| ());
    bench.call();
    assert_eq!(bench.station.poll_timeout(), Some(bench.now + Duration::from_millis(100)));
    assert_eq!(names(&bench.wait()), ["XID"]);
}

#[test]
fn data_that_come_behind_a_question_leave_the_channel_to_its_answer() {
    let mut bench = Bench::new(|_| ());
    bench.call();
    assert_eq!(names(&bench.wait()), ["XID"]);
    assert_eq!(names(&bench.send(2, 10)), [""; 0]);
    assert_eq!(
        names(&bench.turn(Some(identification(CommandResponse::Response, 256, 32, true)))),
        ["I", "I P"]
    );

    let mut bench = Bench::new(|_| ());
    bench.call();
    assert_eq!(names(&bench.wait()), ["XID"]);
    bench.send(2, 10);
    // No answer arrives, and the link waits for none.
    assert_eq!(names(&bench.wait()), ["I", "I", "XID"]);
}

/// 4.2.1: for any command, and after any number of lost answers, one P at a time.
#[test]
fn one_poll_is_unanswered_at_a_time() {
    for full_duplex in [false, true] {
        let mut bench = Bench::with(|config| config.radio.full_duplex = full_duplex);
        bench.call();
        let polls = |frames: Vec<Frame>| frames.iter().filter(|frame| frame.control.poll_final()).count();
        assert_eq!(names(&bench.send(1, 10)), ["I", "XID"]);
        // The data arrived, and XID did not: it goes with the next data.
        let acknowledges =
            Control::Supervisory { function: Supervisory::ReceiveReady, receive: 1, poll_final: false };
        let frame =
            Frame { control: acknowledges, ..unnumbered(CommandResponse::Response, Unnumbered::Test) };
        bench.turn(Some(frame));
        assert_eq!(names(&bench.send(2, 10)), ["I", "I", "XID"]);
        // T1 and TM201 expire at about the same time.
        let mut asked = 0;
        while bench.station.engine.standing(OWN).is_some() {
            let now = polls(bench.wait());
            assert!(now <= 1, "{now} at once");
            asked += now;
        }
        assert!(asked > 8, "{asked}");
    }
}

#[test]
fn the_question_or_its_answer_may_be_lost() {
    for lost in [5, 6] {
        let mut channel = Channel::new(1, vec![station("A", &["B"]), station("B", &[])]);
        channel.lose = [lost].into();
        channel.request(A, OWN, PacketsRequest::Connect);
        let packets: Vec<_> = (0..3).map(|number| Bytes::from(vec![number; 256])).collect();
        channel.send(A, OWN, packets.clone());
        channel.run(60, |channel| channel.nodes[A].user.acknowledged.get(&OWN) == Some(&3));
        assert_eq!(channel.nodes[A].user.takes[&OWN], (256, 256), "nothing is known yet");
        assert_eq!(channel.nodes[B].user.heard[&CALLER], packets);
        assert!(channel.now < Instant::from_secs(3), "and nothing has waited: {}", channel.now);
        channel.run(60, |channel| channel.nodes[A].user.takes[&OWN] == (32_639, 256));
        assert_eq!(channel.nodes[A].station.engine.counters().timeouts, 0);
    }
}

#[test]
fn no_segment_goes_before_the_peer_has_said_that_it_knows_them() {
    // A user that ignores the maximum packet size.
    let mut station = Station::new(station("A", &["B"]));
    let now = Instant::ZERO;
    let mut turn = |request, heard: Option<Frame>| {
        if let Some(request) = request {
            station.handle_request(now, Port::First((OWN, request)));
        }
        if let Some(frame) = heard {
            let bytes = frame.to_bytes(Modulo::Extended);
            station.handle_indication(now, FramesIndication::Frame(bytes));
        }
        station.handle_indication(now, FramesIndication::Room(64));
        let mut frames = vec![];
        crate::engine::drain(
            &mut station,
            now,
            |_| {},
            |request| {
                if let crate::service::FramesRequest::Frame { bytes, .. } = request {
                    frames.push(Frame::decode(&mut bytes.clone(), Modulo::Extended).unwrap());
                }
            },
        );
        names(&frames)
    };
    turn(None, None);
    assert_eq!(turn(Some(PacketsRequest::Connect), None), ["SABME"]);
    turn(None, Some(unnumbered(CommandResponse::Response, Unnumbered::Acknowledge)));
    let packet = |bytes| Some(PacketsRequest::payload(Bytes::from(vec![7; bytes])));
    assert_eq!(turn(packet(100), None), ["I", "XID"]);
    assert_eq!(turn(packet(600), Some(ready(CommandResponse::Response, 1))), [""; 0]);
    let answer = identification(CommandResponse::Response, 256, 32, true);
    assert_eq!(turn(None, Some(answer)), ["I", "I", "I P"]);
}

#[test]
fn who_is_called_takes_data_before_the_question_and_after_it() {
    let mut bench = Bench::new(|_| ());
    let call = unnumbered(CommandResponse::Command, Unnumbered::SetModeExtended);
    assert_eq!(names(&bench.turn(Some(call))), ["UA"]);
    let data = |send| {
        let control = Control::Information { send, receive: 0, poll: true };
        let frame = Frame { control, ..unnumbered(CommandResponse::Command, Unnumbered::Test) };
        Frame { pid: 0xf0, information: Bytes::from(vec![send; 256]), ..frame }
    };
    assert_eq!(names(&bench.turn(Some(data(0)))), ["RR"]);
    bench.said();
    assert_eq!(names(&bench.turn(Some(identification(CommandResponse::Command, 256, 32, true)))), ["XID"]);
    assert_eq!(bench.said(), [takes(32_639, 256)]);
    assert_eq!(names(&bench.turn(Some(data(1)))), ["RR"]);
    assert_eq!(bench.said().len(), 1);
}

#[test]
fn whoever_ends_the_link_is_asked_nothing_more() {
    let mut bench = Bench::new(|link| link.version = Version::Extended);
    bench.call();
    bench.ask(PacketsRequest::Close);
    assert_eq!(names(&bench.turn(None)), ["DISC"]);
    // A late answer to an earlier XID is no violation.
    bench.turn(Some(identification(CommandResponse::Response, 256, 32, true)));
    assert_eq!(bench.station.engine.counters().violations, 0);
    bench.turn(Some(unnumbered(CommandResponse::Response, Unnumbered::Acknowledge)));
    assert!(bench.station.poll_timeout().is_none());
}
