//! Behaviour of existing stations, frame by frame: answers with less information than possible, and lost answers.

use super::channel::station;
use super::hostile::{air_time, from_b, turn};
use crate::ax25::{
    Address, CommandResponse, Config, Control, Counters, Frame, LinkConfig, Modulo, Station, Supervisory,
    Unnumbered, Version,
};
use crate::engine::{Engine, drain};
use crate::service::{
    CloseReason, FramesIndication, FramesRequest, LinkId, PacketsIndication, PacketsRequest, Port,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::Bytes;

const OWN: LinkId = LinkId(0);

/// Returns an unnumbered frame of B.
fn unnumbered(role: CommandResponse, function: Unnumbered, poll_final: bool) -> Frame {
    from_b(role, Control::Unnumbered { function, poll_final })
}

/// Station A, whose controller accepts frames at any time; the test plays its peer B.
pub(super) struct Bench {
    pub(super) station: Checked<Station>,
    pub(super) now: Instant,
    /// True if the controller reports frames as transmitted when it accepts them, and sends them later.
    pub(super) early: bool,
    /// True if the controller reports no transmissions.
    pub(super) mute: bool,
    modulo: Modulo,
    link: LinkId,
    room: u64,
    heard: Vec<Bytes>,
    closed: Vec<CloseReason>,
    said: Vec<Frame>,
}

impl Bench {
    pub(super) fn new(modulo: Modulo, change: impl Fn(&mut Config)) -> Bench {
        let mut config: Config = station("A", &["B"]);
        let version = if modulo == Modulo::Eight { Version::Plain } else { Version::Extended };
        config.peers.values_mut().for_each(|peer| peer.link.version = version);
        config.callers.iter_mut().for_each(|link| link.version = version);
        change(&mut config);
        let mut station = Checked::new("station", Station::new(config));
        let (now, link) = (Instant::ZERO, OWN);
        // The station joins its channel.
        drain(&mut station, now, |_| {}, |_| {});
        let mut bench = Bench {
            station,
            now,
            early: false,
            mute: false,
            modulo,
            link,
            room: 0,
            heard: vec![],
            closed: vec![],
            said: vec![],
        };
        bench.drain();
        bench
    }

    /// B has connected to A.
    fn called(modulo: Modulo) -> Bench {
        let mut bench = Bench::new(modulo, |_| ());
        bench.call(modulo);
        bench
    }

    fn call(&mut self, modulo: Modulo) {
        let function =
            if modulo == Modulo::Eight { Unnumbered::SetMode } else { Unnumbered::SetModeExtended };
        self.modulo = modulo;
        self.hear(CommandResponse::Command, Control::Unnumbered { function, poll_final: true }, &[]);
        let said = self.said();
        assert_eq!(
            said[0].control,
            Control::Unnumbered { function: Unnumbered::Acknowledge, poll_final: true }
        );
    }

    /// A has connected to B, which uses modulo 128 and does not know XID.
    fn calls() -> Bench {
        let mut bench = Bench::new(Modulo::Extended, |_| ());
        bench.station.handle_request(bench.now, Port::First((OWN, PacketsRequest::Connect)));
        bench.drain();
        for function in [Unnumbered::Acknowledge, Unnumbered::FrameReject] {
            bench.hear(CommandResponse::Response, Control::Unnumbered { function, poll_final: true }, &[]);
            // XID is sent after a while without data to go with.
            bench.pass(Duration::from_millis(100));
        }
        bench.said();
        assert!(bench.room > 0, "the link stands");
        bench
    }

    /// Passes down one packet for each number, with that octet as its content.
    pub(super) fn send(&mut self, packets: core::ops::Range<u8>) {
        for packet in packets {
            assert!(self.room > 0);
            self.room -= 1;
            let packet = PacketsRequest::payload(Bytes::from(vec![packet; 256]));
            self.station.handle_request(self.now, Port::First((self.link, packet)));
        }
        self.drain();
    }

    pub(super) fn hear(&mut self, role: CommandResponse, control: Control, information: &[u8]) {
        let address = Address::new("B".parse().unwrap(), "A".parse().unwrap(), role, &[]);
        let information = Bytes::copy_from_slice(information);
        let frame = Frame { address, control, pid: 0xf0, information };
        let bytes = frame.to_bytes(self.modulo);
        self.now += air_time(&bytes);
        self.station.handle_indication(self.now, FramesIndication::Frame(bytes));
        self.drain();
    }

    /// Delivers an I frame of this length, without P.
    fn hear_data(&mut self, send: u8, bytes: usize) {
        let control = Control::Information { send, receive: 0, poll: false };
        self.hear(CommandResponse::Command, control, &vec![send; bytes]);
    }

    /// Delivers a supervisory response.
    pub(super) fn hear_answer(&mut self, function: Supervisory, receive: u8, poll_final: bool) {
        self.hear(CommandResponse::Response, Control::Supervisory { function, receive, poll_final }, &[]);
    }

    /// Passes all messages on; frames that are sent have left then.
    fn drain(&mut self) {
        loop {
            self.station.handle_indication(self.now, FramesIndication::Room(64));
            let (mut tokens, mut released) = (vec![], 0);
            let (modulo, now) = (self.modulo, self.now);
            let Bench { station, said, room, heard, closed, link, now: clock, early, mute, .. } = self;
            drain(
                station,
                now,
                |indication| {
                    let Port::First((id, indication)) = indication else { return };
                    *link = id;
                    match indication {
                        PacketsIndication::Room(packets) => *room = packets,
                        PacketsIndication::Packet(packet) => {
                            heard.push(packet);
                            released += 1;
                        }
                        PacketsIndication::Closed(reason) => closed.push(reason),
                        _ => {}
                    }
                },
                |request| {
                    if let FramesRequest::Frame { bytes, token, .. } = request {
                        if !*early {
                            *clock += air_time(&bytes);
                        }
                        said.push(Frame::decode(&mut bytes.clone(), modulo).unwrap());
                        tokens.extend(token.filter(|_| !*mute));
                    }
                },
            );
            if tokens.is_empty() && released == 0 {
                return;
            }
            for token in tokens {
                self.station.handle_indication(self.now, FramesIndication::Transmitted(token));
            }
            if released > 0 {
                let release = PacketsRequest::Release(released);
                self.station.handle_request(self.now, Port::First((self.link, release)));
            }
        }
    }

    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while let Some(at) = self.station.poll_timeout().filter(|at| *at <= until) {
            self.now = self.now.max(at);
            self.station.handle_timeout(self.now);
            self.drain();
        }
        self.now = self.now.max(until);
    }

    /// Returns the frames of A since the last call.
    pub(super) fn said(&mut self) -> Vec<Frame> {
        core::mem::take(&mut self.said)
    }

    /// Returns the numbers of the I frames since the last call, and whether an enquiry ends them.
    pub(super) fn sent(&mut self) -> (Vec<u8>, bool) {
        let said = self.said();
        let numbers = said.iter().filter_map(|frame| match frame.control {
            Control::Information { send, .. } => Some(send),
            _ => None,
        });
        let enquires = said.last().is_some_and(|frame| {
            frame.is_command() && matches!(frame.control, Control::Supervisory { poll_final: true, .. })
        });
        (numbers.collect(), enquires)
    }

    /// Returns the supervisory frames since the last call: their functions and numbers.
    fn answers(&mut self) -> Vec<(Supervisory, u8)> {
        let answer = |frame: Frame| match frame.control {
            Control::Supervisory { function, receive, .. } => Some((function, receive)),
            _ => None,
        };
        self.said().into_iter().filter_map(answer).collect()
    }

    pub(super) fn counters(&self) -> Counters {
        self.station.engine.counters()
    }
}

/// Duration of a frame with 256 bytes of information at 9,600 bit/s.
const FRAME: Duration = Duration::from_millis(235);

#[test]
fn what_is_missing_is_asked_for_at_once() {
    let mut bench = Bench::called(Modulo::Eight);
    bench.hear_data(1, 256);
    assert_eq!(bench.answers(), [(Supervisory::Reject, 0)]);
    // The rest of the peer's burst.
    bench.hear_data(2, 256);
    bench.hear_data(3, 256);
    assert_eq!(bench.answers(), []);

    let mut bench = Bench::called(Modulo::Extended);
    bench.hear_data(0, 256);
    bench.hear_data(2, 256);
    bench.hear_data(4, 256);
    assert_eq!(bench.answers(), [(Supervisory::SelectiveReject, 1), (Supervisory::SelectiveReject, 3)]);
    bench.hear_data(1, 256);
    assert_eq!(bench.answers(), []);
    // Everything has arrived: the peer, which may have nothing else to send, is informed at once.
    bench.hear_data(3, 256);
    assert_eq!(bench.answers(), [(Supervisory::ReceiveReady, 5)]);
}

/// Time for a key-up with an answer in it, and for its receiver to begin.
const KEY_UP: Duration = Duration::from_millis(800);

/// 4.3.2.3, 4.4.3: a controller holds REJ as long as the peer sends. A peer that sends its window twice in one key-up,
/// with the first frame lost both times, has not received REJ, and a second REJ would cause a second retransmission.
#[test]
fn one_reject_is_in_a_key_up() {
    let mut bench = Bench::called(Modulo::Eight);
    bench.early = true;
    bench.pass(KEY_UP);
    for number in [1, 2, 3, 1, 2, 3] {
        bench.hear_data(number, 256);
        // The host receives frames a little later than its controller.
        bench.pass(Duration::from_millis(10));
    }
    assert_eq!(bench.answers(), [(Supervisory::Reject, 0)]);
    // REJ has left, the peer has done what it requests, and 0 is lost a third time.
    bench.pass(KEY_UP);
    bench.hear_data(1, 256);
    assert_eq!(bench.answers(), [(Supervisory::Reject, 0)]);
}

/// 4.2.1: an answer to P with F = 0 counts if it acknowledges everything.
#[test]
fn an_answer_without_final_that_covers_everything_is_one() {
    for modulo in [Modulo::Eight, Modulo::Extended] {
        let mut bench = if modulo == Modulo::Eight { Bench::called(modulo) } else { Bench::calls() };
        for round in 0..30_u8 {
            let number = round % modulo.count();
            bench.send(number..number + 1);
            let said = bench.said();
            let asks = Control::Information { send: number, receive: 0, poll: true };
            assert_eq!(said.iter().map(|frame| frame.control).collect::<Vec<_>>(), [asks], "{modulo:?}");
            bench.hear_answer(Supervisory::ReceiveReady, modulo.after(number, 1), false);
        }
        // No further poll is sent, and no link is closed.
        bench.pass(Duration::from_secs(60));
        assert_eq!((bench.said(), bench.closed.len()), (vec![], 0));
        // A later answer with F is not late.
        bench.hear_answer(Supervisory::ReceiveReady, 30 % modulo.count(), true);
        assert_eq!((bench.counters().late_answers, bench.counters().timeouts), (0, 0));
    }
}

/// 6.2, 6.3.5: a restarted station informs its peer, whatever the modulo of the link: an S frame with two control
/// octets can only be of modulo 128, and its P bit is in the second octet.
#[test]
fn polls_of_a_link_that_is_gone_are_answered_in_both_modulos() {
    let polls = |function, poll_final| Control::Supervisory { function, receive: 5, poll_final };
    for modulo in [Modulo::Eight, Modulo::Extended] {
        let mut bench = Bench::new(modulo, |_| ());
        let gone = Control::Unnumbered { function: Unnumbered::DisconnectedMode, poll_final: true };
        for function in [Supervisory::ReceiveReady, Supervisory::ReceiveNotReady, Supervisory::Reject] {
            bench.hear(CommandResponse::Command, polls(function, true), &[]);
            let said = bench.said();
            assert_eq!(said.iter().map(|frame| frame.control).collect::<Vec<_>>(), [gone], "{modulo:?}");
            assert!(!said[0].is_command());
            bench.hear(CommandResponse::Command, polls(function, false), &[]);
            bench.hear(CommandResponse::Response, polls(function, true), &[]);
            assert_eq!(bench.said(), [], "{modulo:?}: nobody asked");
        }
        for send in 0..8 {
            bench.hear(
                CommandResponse::Command,
                Control::Information { send, receive: 5, poll: true },
                b"text",
            );
            assert_eq!(bench.said().len(), 1, "{modulo:?}, I frame {send}");
            bench.hear(
                CommandResponse::Command,
                Control::Information { send, receive: 5, poll: false },
                b"text",
            );
            assert_eq!(bench.said(), [], "{modulo:?}, I frame {send}");
        }
    }
}

/// 4.3.3.6 and 4.3.3.7: UI with P, and XID without information.
#[test]
fn unnumbered_commands_with_poll_are_answered() {
    let asks = |function| Control::Unnumbered { function, poll_final: true };
    let (information, identity) = (Unnumbered::Information, Unnumbered::ExchangeIdentification);
    let control = |said: Vec<Frame>| said.iter().map(|frame| frame.control).collect::<Vec<_>>();
    let mut bench = Bench::new(Modulo::Eight, |_| ());
    bench.hear(CommandResponse::Command, asks(information), b"text");
    assert_eq!(control(bench.said()), [asks(Unnumbered::DisconnectedMode)]);
    bench.hear(
        CommandResponse::Command,
        Control::Unnumbered { function: information, poll_final: false },
        b"text",
    );
    assert_eq!(bench.said(), []);
    bench.hear(CommandResponse::Command, asks(identity), &[]);
    let said = bench.said();
    assert!(!said[0].information.is_empty(), "it says what it can do");
    assert_eq!(control(said), [asks(identity)]);
    let mut bench = Bench::called(Modulo::Eight);
    bench.hear(CommandResponse::Command, asks(information), b"text");
    let ready = Control::Supervisory { function: Supervisory::ReceiveReady, receive: 0, poll_final: true };
    assert_eq!(control(bench.said()), [ready]);
    bench.hear(CommandResponse::Command, asks(identity), &[]);
    assert_eq!(control(bench.said()), [asks(identity)]);
}

/// 4.3.3.6: UI with P is answered during link setup and during release, as in C4.2, C4.3 and C4.6.
#[test]
fn unnumbered_information_with_poll_is_answered_where_there_is_no_link_yet_or_any_more() {
    let says = |function, poll_final| Some(unnumbered(CommandResponse::Command, function, poll_final));
    for version in [Version::Plain, Version::Extended] {
        let mut config = station("A", &["B"]);
        config.peers.values_mut().for_each(|peer| peer.link.version = version);
        let mut station = Checked::new("station", Station::new(config));
        let mut now = Instant::ZERO;
        let mut answers = |asked: Option<PacketsRequest>, heard| {
            if let Some(asked) = asked {
                station.handle_request(now, Port::First((OWN, asked)));
            }
            let (_, said) = turn(&mut station, &mut now, heard, Modulo::Eight);
            said.iter().map(|frame| (frame.control, frame.is_command())).collect::<Vec<_>>()
        };
        let control = Control::Unnumbered { function: Unnumbered::DisconnectedMode, poll_final: true };
        let refusal = [(control, false)];
        answers(None, None);
        assert_eq!(answers(Some(PacketsRequest::Connect), None).len(), 1, "it calls");
        assert_eq!(answers(None, says(Unnumbered::Information, false)), []);
        let said = answers(None, says(Unnumbered::Information, true));
        assert_eq!(said, refusal, "{version:?}: while it calls");
        answers(None, Some(unnumbered(CommandResponse::Response, Unnumbered::Acknowledge, true)));
        assert_eq!(answers(Some(PacketsRequest::Abort), None).len(), 1, "it ends the link");
        let said = answers(None, says(Unnumbered::Information, true));
        assert_eq!(said, refusal, "{version:?}: while it ends the link");
    }
}

/// A user that knows of the end may remove the controller: it is informed when the last answer has left, not before;
/// without reports of transmissions, after the time that the answer needs.
#[test]
fn the_end_is_told_when_its_answer_has_left() {
    for told in [true, false] {
        let mut station = Checked::new("station", Station::new(station("A", &["B"])));
        let mut now = Instant::ZERO;
        turn(&mut station, &mut now, None, Modulo::Eight);
        let call = unnumbered(CommandResponse::Command, Unnumbered::SetMode, true);
        turn(&mut station, &mut now, Some(call), Modulo::Eight);
        let bytes =
            unnumbered(CommandResponse::Command, Unnumbered::Disconnect, true).to_bytes(Modulo::Eight);
        now += air_time(&bytes);
        let hears = |station: &mut Checked<Station>, now, heard: Option<FramesIndication>| {
            heard.into_iter().for_each(|heard| station.handle_indication(now, heard));
            let (mut ends, mut tokens) = (vec![], vec![]);
            let up = |said| {
                if let Port::First((_, PacketsIndication::Closed(reason))) = said {
                    ends.push(reason);
                }
            };
            drain(station, now, up, |request| {
                if let FramesRequest::Frame { token, .. } = request {
                    tokens.push(token);
                }
            });
            (ends, tokens)
        };
        assert_eq!(hears(&mut station, now, Some(FramesIndication::Frame(bytes))), (vec![], vec![]));
        let (ends, tokens) = hears(&mut station, now, Some(FramesIndication::Room(4)));
        assert_eq!(ends, [], "the answer is handed down, and has not left");
        let [Some(token)] = tokens[..] else { panic!("one answer, of which it is told: {tokens:?}") };
        now += Duration::from_secs(1);
        assert_eq!(hears(&mut station, now, Some(FramesIndication::Room(0))), (vec![], vec![]));
        if told {
            let (ends, _) = hears(&mut station, now, Some(FramesIndication::Transmitted(token)));
            assert_eq!(ends, [CloseReason::Finished]);
        } else {
            let mut ends = vec![];
            while ends.is_empty() {
                now = station.poll_timeout().expect("it does not wait for ever");
                station.handle_timeout(now);
                ends = hears(&mut station, now, None).0;
            }
            assert_eq!(ends, [CloseReason::Finished]);
            assert!(now >= Instant::from_secs(60), "it has had its time: {now}");
        }
    }
}

/// The same for a probe of an idle link.
#[test]
fn a_probe_is_answered_without_final() {
    let mut bench = Bench::called(Modulo::Eight);
    bench.hear_answer(Supervisory::ReceiveReady, 0, false);
    for _ in 0..20 {
        bench.pass(Duration::from_millis(300_100));
        let said = bench.said();
        assert!(said.iter().any(|frame| frame.control.poll_final()), "{said:?}");
        bench.hear_answer(Supervisory::ReceiveReady, 0, false);
    }
    assert_eq!(bench.closed, []);
}

#[test]
fn what_is_lost_again_is_asked_for_again() {
    let mut bench = Bench::called(Modulo::Eight);
    [1, 2, 3].into_iter().for_each(|number| bench.hear_data(number, 256));
    assert_eq!(bench.answers(), [(Supervisory::Reject, 0)]);
    // The peer has gone back, and its 0 is lost once more.
    bench.pass(KEY_UP);
    bench.hear_data(1, 256);
    assert_eq!(bench.answers(), [(Supervisory::Reject, 0)]);
    [2, 3].into_iter().for_each(|number| bench.hear_data(number, 256));
    assert_eq!(bench.answers(), []);

    let mut bench = Bench::called(Modulo::Extended);
    [2, 4, 6].into_iter().for_each(|number| bench.hear_data(number, 256));
    bench.said();
    // The frames 0, 1, 3 and 5 were requested; the peer sends them in this order.
    bench.hear_data(1, 256);
    assert_eq!(bench.answers(), [(Supervisory::SelectiveReject, 0)]);
    bench.hear_data(5, 256);
    assert_eq!(bench.answers(), [(Supervisory::SelectiveReject, 3)]);
}

#[test]
fn a_peer_that_does_not_hear_what_it_is_asked_for_is_asked_again() {
    for (modulo, asks) in
        [(Modulo::Eight, Supervisory::Reject), (Modulo::Extended, Supervisory::SelectiveReject)]
    {
        let mut bench = Bench::called(modulo);
        bench.hear_data(1, 256);
        assert_eq!(bench.answers(), [(asks, 0)]);
        // No request while the peer may be sending: each of its frames restarts the silence.
        for number in 2..6 {
            bench.pass(3 * FRAME);
            bench.hear_data(number, 256);
        }
        assert_eq!(bench.answers(), []);
        // Two channel accesses of 1.5 s at most, two frames, and half a second of further delay: 4.1 s.
        bench.pass(Duration::from_millis(4000));
        assert_eq!(bench.answers(), []);
        bench.pass(Duration::from_millis(400));
        assert_eq!(bench.answers(), [(asks, 0)], "{modulo:?}");
        // The requests to a peer that is gone end.
        bench.pass(Duration::from_secs(250));
        let again = bench.answers().len();
        assert!((5..=10).contains(&again), "{again} times");
    }
}

#[test]
fn a_peer_that_still_sends_is_not_asked_twice() {
    /// Duration of a frame at 1,200 bit/s.
    const SLOW: Duration = Duration::from_millis(1870);
    for modulo in [Modulo::Eight, Modulo::Extended] {
        let mut bench = Bench::new(modulo, |config| {
            config.radio.rate_bps = 1200;
            config.radio.slot_time = Duration::from_millis(20);
        });
        bench.call(modulo);
        // 0 is lost; then 2; and, after the peer has gone back, 0 again.
        bench.hear_data(1, 256);
        assert_eq!(bench.answers().len(), 1);
        bench.pass(2 * SLOW);
        bench.hear_data(3, 256);
        let asked = bench.answers().len();
        assert_eq!(asked, usize::from(modulo == Modulo::Extended), "for 2 alone");
        bench.pass(2 * SLOW + Duration::from_millis(600));
        assert_eq!(bench.answers(), [], "{modulo:?}");
    }
}

#[test]
fn a_shorter_frame_is_answered_without_waiting_for_another() {
    let mut bench = Bench::called(Modulo::Eight);
    bench.hear_data(0, 256);
    bench.pass(FRAME);
    bench.hear_data(1, 14);
    bench.pass(Duration::from_millis(60));
    assert_eq!(bench.answers(), [(Supervisory::ReceiveReady, 2)]);
    // A frame as long as the one before it does not end a burst.
    bench.hear_data(2, 14);
    bench.pass(Duration::from_millis(60));
    assert_eq!(bench.answers(), []);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.answers(), [(Supervisory::ReceiveReady, 3)]);
}

#[test]
fn how_much_the_peer_sends_at_a_time_is_learnt_from_its_pauses() {
    let mut bench = Bench::called(Modulo::Eight);
    (0..3).for_each(|number| bench.hear_data(number, 256));
    assert_eq!(bench.answers(), []);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.answers(), [(Supervisory::ReceiveReady, 3)]);
    // One more frame, which our own frame acknowledges: no pause.
    bench.hear_data(3, 256);
    bench.send(0..1);
    bench.pass(Duration::from_secs(1));
    bench.said();
    (4..7).for_each(|number| bench.hear_data(number, 256));
    assert_eq!(bench.answers(), [(Supervisory::ReceiveReady, 7)]);
}

#[test]
fn all_requests_of_a_peer_are_served_in_one_go() {
    let mut bench = Bench::calls();
    bench.send(0..12);
    let (numbers, _) = bench.sent();
    assert_eq!(numbers.len(), 12);
    // As Dire Wolf does: a frame for each number, and F on the first, which acknowledges everything before it.
    bench.hear_answer(Supervisory::SelectiveReject, 1, true);
    bench.pass(Duration::from_millis(20));
    bench.hear_answer(Supervisory::SelectiveReject, 4, false);
    bench.pass(Duration::from_millis(20));
    bench.hear_answer(Supervisory::SelectiveReject, 9, false);
    assert_eq!(bench.sent().0, []);
    bench.pass(Duration::from_millis(200));
    assert_eq!(bench.sent(), (vec![1, 4, 9], true));
}

#[test]
fn an_answer_to_a_frame_that_filled_one_hole_repeats_nothing_else() {
    let mut bench = Bench::calls();
    bench.send(0..12);
    bench.sent();
    bench.hear_answer(Supervisory::SelectiveReject, 0, true);
    bench.pass(Duration::from_millis(200));
    // A retransmission is followed by an enquiry.
    assert_eq!(bench.sent(), (vec![0], true));
    bench.hear_answer(Supervisory::SelectiveReject, 4, true);
    bench.pass(Duration::from_millis(200));
    assert_eq!(bench.sent(), (vec![4], true));
    bench.hear_answer(Supervisory::ReceiveReady, 12, true);
    assert_eq!(bench.counters().information_repeated, 2);

    // Some stations answer P on a frame in order with RR even if others are missing: an enquiry shows it.
    bench.send(12..16);
    assert_eq!(bench.sent(), (vec![12, 13, 14, 15], false));
    bench.hear_answer(Supervisory::ReceiveReady, 14, true);
    assert_eq!(bench.sent(), (vec![], true));
    bench.hear_answer(Supervisory::SelectiveReject, 14, true);
    bench.pass(Duration::from_millis(200));
    assert_eq!(bench.sent(), (vec![14], true));
    assert_eq!(bench.counters().information_repeated, 3);
}

#[test]
fn a_caller_that_comes_down_to_less_loses_nothing() {
    let best = |config: &mut Config| config.callers = Some(LinkConfig::default());
    let mut bench = Bench::new(Modulo::Extended, best);
    // Our answers are lost, and the peer tries the older version.
    bench.call(Modulo::Extended);
    bench.call(Modulo::Extended);
    bench.call(Modulo::Eight);
    assert_eq!(bench.closed, []);
    bench.hear_data(0, 256);
    bench.hear_data(1, 14);
    assert_eq!(bench.heard.len(), 2);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.answers(), [(Supervisory::ReceiveReady, 2)]);
    // After data were carried, a peer that restarts has lost them.
    bench.call(Modulo::Extended);
    assert_eq!(bench.closed, [CloseReason::Reset]);
}
