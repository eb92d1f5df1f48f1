//! Each wrapper does what it promises, and [`Checked`] detects every breach.

use super::*;
use crate::engine::{Engine, Indication, Request, Service, drain, no_timers};
use crate::rng::Rng;
use crate::service::*;
use crate::time::{Duration, Instant};
use bytes::Bytes;
use rules::Side;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// An engine that emits the messages of the test.
struct Script<A: Service, B: Service> {
    up: VecDeque<A::Indication>,
    down: VecDeque<B::Request>,
    wake: Option<Instant>,
    /// Emitted at the next timeout.
    at_timeout: Option<B::Request>,
    /// Next wake-up after a timeout.
    wake_again: Option<Instant>,
}

impl<A: Service, B: Service> Script<A, B> {
    fn new() -> Self {
        Script { up: VecDeque::new(), down: VecDeque::new(), wake: None, at_timeout: None, wake_again: None }
    }
}

impl<A: Service, B: Service> Engine for Script<A, B> {
    type Above = A;
    type Below = B;
    fn handle_request(&mut self, _now: Instant, _request: A::Request) {}
    fn handle_indication(&mut self, _now: Instant, _indication: B::Indication) {}
    fn handle_timeout(&mut self, _now: Instant) {
        self.down.extend(self.at_timeout.take());
        if self.wake_again.is_some() {
            self.wake = self.wake_again;
        }
    }
    fn poll_indication(&mut self, _now: Instant) -> Option<A::Indication> {
        self.up.pop_front()
    }
    fn poll_request(&mut self, _now: Instant) -> Option<B::Request> {
        self.down.pop_front()
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.wake
    }
}

/// A message that enters or leaves one engine.
enum Say<A: Service, B: Service> {
    /// Request of the user above.
    User(A::Request),
    /// Indication of the engine, upwards.
    Up(A::Indication),
    /// Request of the engine, downwards.
    Down(B::Request),
    /// Indication of the provider below.
    Provider(B::Indication),
}

/// Passes a dialogue through a checked engine. Returns the messages still owed, or the message of the panic.
fn play<A: CheckedService, B: CheckedService>(dialogue: Vec<Say<A, B>>) -> Result<Vec<String>, String> {
    let mut lawful = Checked::new("engine", Script::<A, B>::new());
    verdict(move || {
        for (turn, say) in dialogue.into_iter().enumerate() {
            let now = Instant::from_secs(turn as u64);
            match say {
                Say::User(request) => lawful.handle_request(now, request),
                Say::Provider(indication) => lawful.handle_indication(now, indication),
                Say::Up(indication) => {
                    lawful.handle_timeout(now);
                    lawful.engine.up.push_back(indication);
                }
                Say::Down(request) => {
                    lawful.handle_timeout(now);
                    lawful.engine.down.push_back(request);
                }
            }
            drain(&mut lawful, now, |_| {}, |_| {});
        }
        lawful.owed()
    })
}

fn verdict<T>(act: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(act)).map_err(|panic| match panic.downcast::<String>() {
        Ok(message) => *message,
        Err(panic) => (*panic.downcast::<&str>().expect("a panic has a message")).to_owned(),
    })
}

/// Asserts that the dialogue breaks no rule and that nothing is owed at its end.
fn fine<A: CheckedService, B: CheckedService>(dialogue: Vec<Say<A, B>>) {
    assert_eq!(play(dialogue), Ok(vec![]));
}

/// Asserts that the last message of the dialogue breaks a rule, and which side breaks which rule.
fn breach<A: CheckedService, B: CheckedService>(who: &str, what: &str, dialogue: Vec<Say<A, B>>) {
    let (side, said) = match dialogue.last().expect("a dialogue") {
        Say::User(request) => (Side::User, format!(" ({request:?})")),
        Say::Down(request) => (Side::User, format!(" ({request:?})")),
        Say::Up(indication) => (Side::Provider, format!(" ({indication:?})")),
        Say::Provider(indication) => (Side::Provider, format!(" ({indication:?})")),
    };
    let message = play(dialogue).expect_err(what);
    assert!(message.contains(who) && message.contains(what), "expected {who} / {what}, got: {message}");
    rules::broken(side, message.strip_suffix(&said).unwrap_or(&message));
}

const T: TransferId = TransferId(1);

fn bytes(length: usize) -> Bytes {
    Bytes::from(vec![7; length])
}

fn frame(token: Option<u64>) -> FramesRequest {
    FramesRequest::Frame { bytes: bytes(3), token, last: false, shares: Shares::default() }
}

mod frames {
    use super::*;
    type Line = Say<Frames, Frames>;
    use FramesIndication::{Room, Transmitted};
    use FramesRequest::Join;

    #[test]
    fn a_lawful_dialogue() {
        fine::<Frames, Frames>(vec![
            Line::Down(Join),
            Line::Provider(Room(2)),
            Line::Down(frame(Some(7))),
            Line::Down(frame(None)),
            Line::Provider(Transmitted(7)),
        ]);
    }

    #[test]
    fn room_is_not_overspent() {
        let spend = |room| vec![Line::Down(Join), Line::Provider(Room(room)), Line::Down(frame(None))];
        fine(spend(1));
        breach("the engine", "spends 1 of a room of 0", spend(0));
        let mut twice = spend(1);
        twice.push(Line::Down(frame(None)));
        breach("the engine", "spends 1 of a room of 0", twice);
        let mut taken_back = spend(5);
        taken_back.extend([Line::Provider(Room(0)), Line::Down(frame(None))]);
        breach("the engine", "spends 1 of a room of 0", taken_back);
        breach::<Frames, Frames>("the engine", "a frame before Join", vec![Line::Down(frame(None))]);
        let seize = vec![Line::Down(FramesRequest::Seize)];
        breach::<Frames, Frames>("the engine", "seized before Join", seize);
        rules::all_broken::<Frames>(Side::User);
    }

    #[test]
    fn nothing_before_join_and_no_answer_to_nothing() {
        breach::<Frames, Frames>("the provider below", "room before Join", vec![Line::Provider(Room(1))]);
        let early = vec![Line::Provider(FramesIndication::Frame(bytes(1)))];
        breach::<Frames, Frames>("the provider below", "before Join", early);
        let twice = vec![
            Line::Down(Join),
            Line::Provider(Room(2)),
            Line::Down(frame(Some(7))),
            Line::Provider(Transmitted(7)),
            Line::Provider(Transmitted(7)),
        ];
        breach("the provider below", "does not have", twice);
        rules::all_broken::<Frames>(Side::Provider);
    }

    #[test]
    fn what_is_owed_is_told() {
        let dialogue = vec![Line::Down(Join), Line::Provider(Room(2)), Line::Down(frame(Some(7)))];
        assert_eq!(play(dialogue), Ok(vec!["engine is owed Transmitted(7)".to_owned()]));
    }
}

mod stream {
    use super::*;
    type Line = Say<Stream, Frames>;
    use StreamIndication::{Closed, Connected, Data, PeerClosed, Room};
    use StreamRequest::{Abort, Close, Connect, Release, Write};

    fn open() -> Vec<Line> {
        vec![Line::User(Connect), Line::Up(Connected), Line::Up(Room(10))]
    }

    fn after_open(rest: impl IntoIterator<Item = Line>) -> Vec<Line> {
        open().into_iter().chain(rest).collect()
    }

    #[test]
    fn a_lawful_dialogue() {
        fine(after_open([
            Line::User(Write(bytes(10))),
            Line::Up(Data(bytes(4))),
            Line::User(Release(4)),
            Line::Up(PeerClosed),
            Line::User(Close),
            Line::Up(Closed(CloseReason::Finished)),
            Line::User(Connect),
            Line::Up(Closed(CloseReason::Refused)),
        ]));
    }

    #[test]
    fn breaches_of_the_user() {
        let who = "the user above";
        breach(who, "spends 11 of a room of 10", after_open([Line::User(Write(bytes(11)))]));
        breach(who, "after Close", after_open([Line::User(Close), Line::User(Write(bytes(1)))]));
        breach(who, "before the connection has Closed", after_open([Line::User(Connect)]));
        breach(who, "without a connection", vec![Line::User(Write(bytes(1)))]);
        breach(who, "released 5 bytes", after_open([Line::Up(Data(bytes(4))), Line::User(Release(5))]));
        let secure = || Line::User(StreamRequest::Secure { client: true, name: None });
        breach(who, "Secure without a connection", vec![secure()]);
        breach(who, "Secure while the last one is not answered", after_open([secure(), secure()]));
        rules::all_broken::<Stream>(Side::User);
    }

    #[test]
    fn breaches_of_the_engine() {
        let who = "the engine";
        let closed = || Line::Up(Closed(CloseReason::Reset));
        breach(who, "Closed without a connection", after_open([closed(), closed()]));
        breach(who, "data without a connection", after_open([closed(), Line::Up(Data(bytes(1)))]));
        breach(who, "room without a connection", after_open([closed(), Line::Up(Room(1))]));
        breach(who, "after PeerClosed", after_open([Line::Up(PeerClosed), Line::Up(Data(bytes(1)))]));
        breach(who, "PeerClosed twice", after_open([Line::Up(PeerClosed), Line::Up(PeerClosed)]));
        breach(who, "Connected twice", after_open([Line::Up(Connected)]));
        breach(who, "without a byte", after_open([Line::Up(Data(bytes(0)))]));
        breach(who, "PeerClosed without a connection", after_open([closed(), Line::Up(PeerClosed)]));
        let secured = StreamIndication::Secured { identities: vec![], trusted: true };
        breach(who, "Secured without Secure", after_open([Line::Up(secured)]));
        rules::all_broken::<Stream>(Side::Provider);
    }

    #[test]
    fn an_aborted_connection_still_has_to_close() {
        assert_eq!(play(after_open([Line::User(Abort)])), Ok(vec!["engine owes Closed".to_owned()]));
    }
}

mod storage {
    use super::*;
    type Line = Say<Frames, Storage>;
    use StorageIndication::{Data, Full, Listed, ReadFailed, Removed, Stored};
    use StorageRequest::{Append, List, Read, Remove};
    const R: RecordId = RecordId(4);

    fn after_append(length: usize, rest: impl IntoIterator<Item = Line>) -> Vec<Line> {
        let append = Append { record: R, data: bytes(length), urgent: false };
        let listed = Line::Provider(Listed { records: vec![] });
        [Line::Down(List), listed, Line::Down(append)].into_iter().chain(rest).collect()
    }

    #[test]
    fn a_lawful_dialogue() {
        fine(after_append(
            5,
            [
                Line::Provider(Stored { record: R, up_to: 5 }),
                Line::Down(Read { record: R, offset: 2, length: 9, in_parts: false }),
                Line::Provider(Data { record: R, offset: 2, data: bytes(3) }),
                Line::Down(Read { record: R, offset: 2, length: 3, in_parts: true }),
                Line::Provider(Data { record: R, offset: 2, data: bytes(1) }),
                Line::Down(Remove { record: R }),
                Line::Provider(Removed { record: R }),
            ],
        ));
        fine(after_append(5, [Line::Provider(Full { record: R })]));
    }

    #[test]
    fn breaches() {
        let who = "the provider below";
        let stored = |up_to| Line::Provider(Stored { record: R, up_to });
        breach(who, "stored 6 bytes of 5", after_append(5, [stored(6)]));
        breach(who, "stored 4 bytes after 5", after_append(5, [stored(5), stored(4)]));
        breach(who, "Removed without Remove", after_append(5, [Line::Provider(Removed { record: R })]));
        let data = || Line::Provider(Data { record: R, offset: 2, data: bytes(3) });
        breach(who, "data without a read", after_append(5, [data()]));
        let failed = ReadFailed { record: R, offset: 2, failure: StorageFailure::Device };
        let read = |offset| Line::Down(Read { record: R, offset, length: 2, in_parts: false });
        breach(who, "a failure without a read", after_append(5, [read(0), Line::Provider(failed)]));
        breach(who, "3 bytes where 2 were asked for", after_append(5, [read(2), data()]));
        let short = |length| Line::Provider(Data { record: R, offset: 2, data: bytes(length) });
        breach(who, "1 bytes where 2 are durable", after_append(5, [stored(5), read(2), short(1)]));
        let part = Line::Down(Read { record: R, offset: 2, length: 2, in_parts: true });
        breach(who, "0 bytes where 1 are durable", after_append(5, [stored(5), part, short(0)]));
        breach(who, "Listed without List", vec![Line::Provider(Listed { records: vec![] })]);
        let records = vec![(RecordId(2), 1), (RecordId(1), 1)];
        breach(who, "a list out of order", vec![Line::Down(List), Line::Provider(Listed { records })]);
        rules::all_broken::<Storage>(Side::Provider);
    }

    #[test]
    fn an_append_is_answered() {
        let owed = play(after_append(5, [])).expect("lawful");
        assert_eq!(owed, ["engine is owed Stored 5 of RecordId(4)"]);
    }
}

mod bundles {
    use super::*;
    type Line = Say<Bundles, Frames>;
    use BundlesIndication as Says;
    use BundlesRequest as Asks;

    fn after_up(rest: impl IntoIterator<Item = Line>) -> Vec<Line> {
        let up = Says::Up { peer: None, interleave: false, transfer_bytes_max: 1000 };
        let begin = [Line::User(Asks::Connect), Line::Up(up), Line::Up(Says::Room(100))];
        begin.into_iter().chain(rest).collect()
    }

    fn open(transfer: TransferId, length: u64) -> Line {
        Line::User(Asks::Open { transfer, priority: Priority::Normal, length })
    }

    fn piece(transfer: TransferId, length: usize, last: bool) -> Line {
        Line::User(Asks::Piece { transfer, data: bytes(length), last })
    }

    fn down() -> Line {
        Line::Up(Says::Down { reason: DownReason::Idle, retry: true })
    }

    fn sent() -> Line {
        Line::Up(Says::Sent { transfer: T })
    }

    fn failed(acked: u64) -> Line {
        Line::Up(Says::Failed { transfer: T, reason: TransferFailure::LinkDown, acked })
    }

    fn acked(up_to: u64) -> Line {
        Line::Up(Says::Acked { transfer: T, up_to })
    }

    fn begin() -> Line {
        Line::Up(Says::Begin { transfer: T, length: Some(10) })
    }

    fn rises(length: usize, last: bool) -> Line {
        Line::Up(Says::Piece { transfer: T, data: bytes(length), last })
    }

    fn accept(up_to: u64) -> Line {
        Line::User(Asks::Accept { transfer: T, up_to })
    }

    #[test]
    fn a_lawful_dialogue() {
        fine(after_up([
            open(T, 10),
            piece(T, 4, false),
            acked(4),
            piece(T, 6, true),
            begin(),
            rises(10, true),
            accept(5),
            sent(),
            accept(10),
            open(TransferId(2), 0),
            piece(TransferId(2), 0, true),
            Line::Up(Says::Sent { transfer: TransferId(2) }),
            Line::User(Asks::Close),
            down(),
        ]));
    }

    #[test]
    fn breaches_of_the_user() {
        let who = "the user above";
        breach(who, "Open while the link is not up", after_up([down(), open(T, 1)]));
        breach(who, "used twice", after_up([open(T, 1), open(T, 1)]));
        breach(who, "of a room of 100", after_up([open(T, 200), piece(T, 101, false)]));
        breach(who, "11 bytes of a bundle of 10", after_up([open(T, 10), piece(T, 11, true)]));
        breach(who, "last is true after 9", after_up([open(T, 10), piece(T, 9, true)]));
        breach(who, "last is false after 10", after_up([open(T, 10), piece(T, 10, false)]));
        breach(who, "without a byte", after_up([open(T, 10), piece(T, 0, false)]));
        breach(who, "after the last", after_up([open(T, 10), piece(T, 10, true), piece(T, 1, true)]));
        let cancel = || Line::User(Asks::Cancel { transfer: T });
        breach(who, "after Cancel", after_up([open(T, 10), cancel(), piece(T, 1, false)]));
        breach(who, "has ended", after_up([open(T, 10), failed(0), piece(T, 1, false)]));
        let other = TransferId(2);
        let alternating = [open(T, 10), open(other, 10), piece(T, 1, false), piece(other, 1, false)];
        breach(who, "has the line", after_up(alternating));
        breach(who, "accepts 5 bytes, but 4", after_up([begin(), rises(4, false), accept(5)]));
        breach(who, "accepts 3 bytes after 4", after_up([begin(), rises(4, false), accept(4), accept(3)]));
        breach(who, "never opened", after_up([piece(T, 1, false)]));
        rules::all_broken::<Bundles>(Side::User);
    }

    #[test]
    fn breaches_of_the_engine() {
        let who = "the engine";
        breach(who, "Sent after 4 of 10", after_up([open(T, 10), piece(T, 4, false), sent()]));
        breach(who, "has ended", after_up([open(T, 10), piece(T, 10, true), sent(), sent()]));
        breach(who, "has ended", after_up([open(T, 10), piece(T, 10, true), sent(), failed(10)]));
        breach(who, "never opened", after_up([sent()]));
        breach(who, "5 bytes acknowledged of 4 sent", after_up([open(T, 10), piece(T, 4, false), acked(5)]));
        breach(who, "acknowledged after 4", after_up([open(T, 10), piece(T, 4, false), acked(4), acked(3)]));
        breach(who, "acknowledged after 4", after_up([open(T, 10), piece(T, 4, false), acked(4), failed(3)]));
        breach(who, "without a terminal indication", after_up([open(T, 10), down()]));
        breach(who, "without Lost", after_up([begin(), rises(4, false), down()]));
        breach(who, "after the last", after_up([begin(), rises(10, true), rises(1, true)]));
        breach(who, "11 bytes of a bundle of 10", after_up([begin(), rises(11, true)]));
        breach(who, "last piece at 9 of 10", after_up([begin(), rises(9, true)]));
        breach(who, "begins twice", after_up([begin(), rises(10, true), accept(10), begin()]));
        breach(who, "has not begun", after_up([rises(4, false)]));
        let refuse = || Line::User(Asks::Refuse { transfer: T, reason: RefuseReason::Unknown });
        breach(who, "is over", after_up([begin(), refuse(), rises(4, false)]));
        breach(
            who,
            "Lost without an incoming transfer",
            after_up([begin(), refuse(), Line::Up(Says::Lost { transfer: T })]),
        );
        breach(who, "room while the link is not up", after_up([down(), Line::Up(Says::Room(1))]));
        breach(who, "Begin while the link is not up", after_up([down(), begin()]));
        breach(who, "Peer while the link is not up", after_up([down(), Line::Up(Says::Peer { peer: None })]));
        let up = Says::Up { peer: None, interleave: false, transfer_bytes_max: 1000 };
        breach(who, "Up twice", after_up([Line::Up(up)]));
        breach(who, "a piece without a byte", after_up([begin(), rises(0, false)]));
        rules::all_broken::<Bundles>(Side::Provider);
    }

    #[test]
    fn each_transfer_has_an_end() {
        let owed = play(after_up([open(T, 10), piece(T, 10, true)])).expect("lawful");
        assert_eq!(owed, ["engine owes the end of TransferId(1)"]);
        let owed = play(after_up([Line::User(Asks::Close)])).expect("lawful");
        assert_eq!(owed, ["engine owes Down"]);
    }
}

mod app;
mod connections;
mod datagrams;
mod packets;
mod rules;

mod engines {
    use super::*;
    type Engine0 = Checked<Script<Frames, Frames>>;

    fn blamed(what: &str, act: impl FnOnce(&mut Engine0)) {
        let mut lawful = Checked::new("engine", Script::new());
        let message = verdict(move || act(&mut lawful)).expect_err(what);
        assert!(message.contains(what), "expected {what}, got: {message}");
    }

    fn quiet(lawful: &mut Engine0, now: Instant) {
        drain(lawful, now, |_| {}, |_| {});
    }

    #[test]
    fn time_does_not_run_backwards() {
        blamed("backwards", |lawful| {
            lawful.handle_timeout(Instant::from_secs(2));
            lawful.handle_timeout(Instant::from_secs(1));
        });
    }

    #[test]
    fn a_poll_that_said_none_says_none() {
        blamed("appeared after poll_indication said None", |lawful| {
            quiet(lawful, Instant::ZERO);
            lawful.engine.up.push_back(FramesIndication::Carrier(true));
            lawful.poll_indication(Instant::ZERO);
        });
        blamed("appeared after poll_request said None", |lawful| {
            quiet(lawful, Instant::ZERO);
            lawful.engine.down.push_back(FramesRequest::Join);
            lawful.poll_indication(Instant::ZERO);
            lawful.poll_request(Instant::ZERO);
        });
    }

    #[test]
    fn indications_rise_before_requests_go_down() {
        blamed("before every indication has risen", |lawful| {
            lawful.poll_request(Instant::ZERO);
        });
    }

    #[test]
    fn an_early_timeout_is_harmless() {
        let early = |lawful: &mut Engine0| {
            for turn in 0..Engine0::EARLY_TIMEOUT_EVERY {
                lawful.handle_indication(Instant::from_secs(turn), FramesIndication::Carrier(true));
                quiet(lawful, Instant::from_secs(turn));
            }
        };
        blamed("an early timeout made it say Join", |lawful| {
            lawful.engine.at_timeout = Some(FramesRequest::Join);
            early(lawful);
        });
        blamed("an early timeout moved its wake-up", |lawful| {
            lawful.engine.wake = Some(Instant::from_secs(100));
            lawful.engine.wake_again = Some(Instant::from_secs(200));
            early(lawful);
        });
    }

    #[test]
    fn no_engine_is_woken_for_ever() {
        blamed("in the past", |lawful| {
            lawful.engine.wake = Some(Instant::from_secs(1));
            lawful.handle_timeout(Instant::from_secs(2));
            quiet(lawful, Instant::from_secs(2));
        });
        blamed("again and again", |lawful| {
            lawful.engine.wake = Some(Instant::from_secs(1));
            for _ in 0..100 {
                lawful.handle_timeout(Instant::from_secs(1));
                quiet(lawful, Instant::from_secs(1));
            }
        });
    }

    /// Emits the same message for ever.
    struct Chatterbox;

    impl Engine for Chatterbox {
        type Above = Frames;
        type Below = Frames;

        no_timers!();
        fn handle_request(&mut self, _now: Instant, _request: Request<Frames>) {}
        fn handle_indication(&mut self, _now: Instant, _indication: Indication<Frames>) {}
        fn poll_indication(&mut self, _now: Instant) -> Option<Indication<Frames>> {
            Some(FramesIndication::Carrier(true))
        }
        fn poll_request(&mut self, _now: Instant) -> Option<Request<Frames>> {
            None
        }
    }

    #[test]
    fn draining_ends() {
        let mut lawful = Checked::new("engine", Chatterbox);
        let message = verdict(|| drain(&mut lawful, Instant::ZERO, |_| {}, |_| {})).expect_err("endless");
        assert!(message.contains("does not stop talking"), "{message}");
    }
}

mod tap {
    use super::*;
    use crate::joint::PassThrough;

    #[test]
    fn two_engines_write_one_timeline() {
        let mut timeline = Timeline::new();
        let mut earth = Tap::new(PassThrough::<Frames>::new(), timeline.timeline_writer("earth"));
        let mut moon = Tap::new(PassThrough::<Frames>::new(), timeline.timeline_writer("moon"));
        earth.handle_request(Instant::from_secs(1), frame(Some(1)));
        drain(&mut earth, Instant::from_secs(1), |_| {}, |_| {});
        moon.handle_indication(Instant::from_millis(2_500), FramesIndication::Frame(bytes(3)));
        drain(&mut moon, Instant::from_millis(2_500), |_| {}, |_| {});
        moon.handle_timeout(Instant::from_secs(3));
        let lines: Vec<String> =
            timeline.lines().into_iter().map(|line| line.chars().take(29).collect()).collect();
        let expected: [String; 5] = [
            "     1.000000 earth hears v F",
            "     1.000000 earth says  v F",
            "     2.500000 moon hears ^ Fr",
            "     2.500000 moon says  ^ Fr",
            "     3.000000 moon timeout",
        ]
        .map(str::to_owned);
        assert_eq!(lines, expected);
        assert!(timeline.text().is_empty(), "lines are taken once");
    }

    #[test]
    fn a_closure_counts() {
        let mut frames = 0;
        let sink = |_at: Instant, crossing: Crossing<'_, Frames, Frames>| {
            frames += u32::from(matches!(crossing, Crossing::RequestOut(FramesRequest::Frame { .. })));
        };
        let mut tap = Tap::new(PassThrough::<Frames>::new(), sink);
        for request in [FramesRequest::Join, frame(None), frame(None)] {
            tap.handle_request(Instant::ZERO, request);
        }
        drain(&mut tap, Instant::ZERO, |_| {}, |_| {});
        assert_eq!(frames, 2);
    }
}

mod spoil {
    use super::*;

    /// Sends `count` frames, each with its own number, through an impaired link with room for `room` frames at once;
    /// returns the frames that the link received, and the impairment.
    fn send(config: ImpairConfig, count: u32, room: u32) -> (Vec<Bytes>, Impair<Frames>) {
        let mut lawful = Checked::new("spoil", Impair::<Frames>::new(config, Rng::new(5)));
        let (mut left, mut told, mut got, mut answered) = (count, 0, vec![], 0);
        lawful.handle_request(Instant::ZERO, FramesRequest::Join);
        drain(&mut lawful, Instant::ZERO, |_| {}, |_| {});
        for second in 0..10_000 {
            let now = Instant::from_secs(second);
            lawful.handle_timeout(now);
            lawful.handle_indication(now, FramesIndication::Room(room));
            loop {
                while let Some(indication) = lawful.poll_indication(now) {
                    match indication {
                        FramesIndication::Room(room) => told = room,
                        FramesIndication::Transmitted(_) => answered += 1,
                        other => panic!("unexpected {other:?}"),
                    }
                }
                if told > 0 && left > 0 {
                    told -= 1;
                    left -= 1;
                    let bytes = Bytes::copy_from_slice(&left.to_be_bytes());
                    let request = FramesRequest::Frame {
                        bytes,
                        token: Some(left.into()),
                        last: false,
                        shares: Shares::default(),
                    };
                    lawful.handle_request(now, request);
                } else if let Some(request) = lawful.poll_request(now) {
                    if let FramesRequest::Frame { bytes, token, .. } = request {
                        got.push(bytes);
                        if let Some(token) = token {
                            lawful.handle_indication(now, FramesIndication::Transmitted(token));
                        }
                    }
                } else {
                    break;
                }
            }
            if left == 0 && lawful.finished() && lawful.owed().is_empty() {
                assert_eq!(answered, count, "each frame is answered once");
                let Checked { engine, .. } = lawful;
                return (got, engine);
            }
        }
        panic!("{left} frames are left, and {:?}", lawful.owed());
    }

    #[test]
    fn nothing_is_spoiled_by_default() {
        let (got, spoil) = send(ImpairConfig::default(), 100, 7);
        let all: Vec<_> = (0..100u32).rev().map(|n| Bytes::copy_from_slice(&n.to_be_bytes())).collect();
        assert_eq!(got, all);
        assert_eq!(spoil.counters, ImpairCounters { passed: 100, ..Default::default() });
    }

    #[test]
    fn losses_are_made_good_in_room() {
        let (got, spoil) = send(ImpairConfig { loss: 0.3, ..Default::default() }, 1000, 3);
        assert_eq!(got.len() as u64, 1000 - spoil.counters.lost);
        assert!((230..370).contains(&spoil.counters.lost), "{:?}", spoil.counters);
    }

    #[test]
    fn copies_take_room_of_their_own() {
        let (got, spoil) = send(ImpairConfig { duplication: 0.3, ..Default::default() }, 1000, 3);
        assert_eq!(got.len() as u64, 1000 + spoil.counters.duplicated);
        assert!(spoil.counters.duplicated > 100, "{:?}", spoil.counters);
    }

    #[test]
    fn held_frames_are_overtaken_and_come() {
        let config = ImpairConfig { delay: 0.3, delay_max: Duration::from_secs(9), ..Default::default() };
        let (got, spoil) = send(config, 1000, 3);
        assert_eq!(got.len(), 1000);
        assert!(spoil.counters.delayed > 100, "{:?}", spoil.counters);
        assert!(!got.is_sorted_by(|a, b| a > b), "some were overtaken");
    }

    #[test]
    fn bits_are_flipped_and_not_too_many() {
        let config = ImpairConfig { corruption: 1.0, flips_max: 3, ..Default::default() };
        let (got, spoil) = send(config, 1000, 3);
        assert_eq!(spoil.counters.corrupted, 1000);
        let flips: Vec<_> = got
            .iter()
            .zip((0..1000u32).rev())
            .map(|(bytes, n)| {
                (u32::from_be_bytes(bytes[..].try_into().expect("four bytes")) ^ n).count_ones()
            })
            .collect();
        assert_eq!(flips.iter().max(), Some(&3));
    }

    #[test]
    fn what_comes_up_is_spoiled_too_and_the_seed_decides() {
        let config = ImpairConfig { loss: 0.2, duplication: 0.2, corruption: 0.2, ..Default::default() };
        let hear = |config: &ImpairConfig, seed| {
            let mut spoil = Impair::<Frames>::new(config.clone(), Rng::new(seed));
            let mut heard = vec![];
            for n in 0..200u8 {
                let frame = FramesIndication::Frame(Bytes::copy_from_slice(&[n; 4]));
                spoil.handle_indication(Instant::ZERO, frame);
                drain(&mut spoil, Instant::ZERO, |indication| heard.push(indication), |_| {});
            }
            (heard, spoil.counters)
        };
        let (heard, counters) = hear(&config, 1);
        assert_eq!(heard.len() as u64, 200 - counters.lost + counters.duplicated);
        assert!(counters.lost > 20 && counters.duplicated > 20 && counters.corrupted > 20, "{counters:?}");
        assert_eq!(hear(&config, 1).0, heard);
        assert_ne!(hear(&config, 2).0, heard);
        assert_eq!(hear(&ImpairConfig { up: false, ..config }, 1).1.passed, 0);
    }
}
