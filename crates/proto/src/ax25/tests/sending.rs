//! Frames in flight, retransmissions and number of tries of the sending side.

use super::channel::station;
use super::hostile::{from_b, turn, turn_with_shares, unnumbered};
use crate::ax25::{
    CommandResponse, Config, Control, Frame, LinkConfig, Modulo, OptionalFunctions, Parameters, Recovery,
    Station, Supervisory, Unnumbered, Version,
};
use crate::engine::Engine;
use crate::service::{CloseReason, LinkId, PacketsIndication, PacketsRequest, Port, Shares};
use crate::time::Instant;
use crate::wrap::Checked;
use bytes::{Bytes, BytesMut};

const OWN: LinkId = LinkId(0);

/// Station A, connected to B, whose frames the test makes.
struct Desk {
    station: Checked<Station>,
    now: Instant,
    modulo: Modulo,
}

impl Desk {
    fn new(version: Version, change: impl Fn(&mut Config, &mut LinkConfig)) -> Desk {
        let mut config = station("A", &["B"]);
        let mut peer = config.peers.remove(&OWN).expect("it is B");
        peer.link.version = version;
        change(&mut config, &mut peer.link);
        config.peers.insert(OWN, peer);
        let modulo = if version == Version::Plain { Modulo::Eight } else { Modulo::Extended };
        let station = Checked::new("station", Station::new(config));
        let mut desk = Desk { station, now: Instant::ZERO, modulo };
        desk.ask(PacketsRequest::Connect);
        let (said, _) = desk.hear(unnumbered(CommandResponse::Response, Unnumbered::Acknowledge));
        assert!(matches!(said[0], PacketsIndication::Connected { .. }), "{said:?}");
        desk
    }

    fn plain(change: impl Fn(&mut Config, &mut LinkConfig)) -> Desk {
        Desk::new(Version::Plain, change)
    }

    fn turn(&mut self, heard: Option<Frame>) -> (Vec<PacketsIndication>, Vec<Frame>) {
        turn(&mut self.station, &mut self.now, heard, self.modulo)
    }

    fn hear(&mut self, frame: Frame) -> (Vec<PacketsIndication>, Vec<Frame>) {
        self.turn(Some(frame))
    }

    /// Delivers a supervisory response of B.
    fn answer(&mut self, function: Supervisory, receive: u8, poll_final: bool) -> Vec<Frame> {
        let control = Control::Supervisory { function, receive, poll_final };
        self.hear(from_b(CommandResponse::Response, control)).1
    }

    fn ask(&mut self, request: PacketsRequest) -> Vec<Frame> {
        self.station.handle_request(self.now, Port::First((OWN, request)));
        self.turn(None).1
    }

    /// Passes packets down together. Returns the frames that are sent.
    fn send(&mut self, packets: &[&'static str]) -> Vec<Frame> {
        for packet in packets {
            let request = PacketsRequest::payload(Bytes::from_static(packet.as_bytes()));
            self.station.handle_request(self.now, Port::First((OWN, request)));
        }
        self.turn(None).1
    }

    /// Lets the next timer expire.
    fn wait(&mut self) -> (Vec<PacketsIndication>, Vec<Frame>) {
        self.now = self.now.max(self.station.poll_timeout().expect("a timer runs"));
        self.station.handle_timeout(self.now);
        self.turn(None)
    }
}

/// Returns the numbers of the I frames among these.
fn numbers(frames: &[Frame]) -> Vec<u8> {
    let number = |frame: &Frame| match frame.control {
        Control::Information { send, .. } => Some(send),
        _ => None,
    };
    frames.iter().filter_map(number).collect()
}

fn polls(frames: &[Frame]) -> usize {
    let is_poll = |frame: &&Frame| frame.is_command() && frame.control.poll_final();
    frames.iter().filter(is_poll).count()
}

#[test]
fn an_information_field_has_the_shares_of_its_packet_once_and_is_a_repetition_afterwards() {
    let mut desk = Desk::plain(|_, _| {});
    let mixed = Shares { payload: 3, control: 1, ..Shares::default() };
    for shares in [Shares::acknowledgement(5), mixed] {
        let packet = PacketsRequest::Packet { bytes: "hello".into(), shares };
        desk.station.handle_request(desk.now, Port::First((OWN, packet)));
    }
    let mut shares = |heard| {
        let (_, frames) = turn_with_shares(&mut desk.station, &mut desk.now, heard, desk.modulo);
        frames.into_iter().map(|(_, shares)| shares).collect::<Vec<_>>()
    };
    let with_headers = 16 + 5;
    assert_eq!(shares(None), [Shares::acknowledgement(with_headers), mixed]);
    let control = Control::Supervisory { function: Supervisory::Reject, receive: 0, poll_final: true };
    let again = shares(Some(from_b(CommandResponse::Response, control)));
    assert_eq!(again, [Shares::repeated(with_headers); 2]);
}

/// N2 limits consecutive tries without an answer (6.7.2.3). A new acknowledgement shows that the peer is there, even
/// without an answer to a poll: the tries are counted from zero.
#[test]
fn progress_without_a_final_bit_gives_all_tries_back() {
    const RETRIES: usize = 3;
    let polls_until_the_end = |progress: bool| {
        let mut desk = Desk::plain(|_, link| link.retries = RETRIES as u8);
        assert_eq!(numbers(&desk.send(&["a", "b"])), [0, 1]);
        let mut asked = 0;
        while asked < RETRIES {
            asked += polls(&desk.wait().1);
        }
        if progress {
            desk.answer(Supervisory::ReceiveReady, 1, false);
        }
        let mut more = 0;
        loop {
            let (said, frames) = desk.wait();
            more += polls(&frames);
            if said.contains(&PacketsIndication::Closed(CloseReason::TimedOut)) {
                return more;
            }
            assert!(more < 100, "no end");
        }
    };
    assert_eq!(polls_until_the_end(false), 0, "the tries are used up");
    assert_eq!(polls_until_the_end(true), RETRIES);
}

/// A peer that is sending cannot answer: each of its frames restarts T1.
#[test]
fn a_peer_that_sends_is_waited_for() {
    let mut desk = Desk::plain(|_, _| ());
    assert_eq!(numbers(&desk.send(&["a", "b"])), [0, 1]);
    let limit = desk.station.poll_timeout().expect("an answer is waited for") - desk.now;
    for frame in 0..10 {
        desk.now += limit * 3 / 4;
        assert!(desk.station.poll_timeout() > Some(desk.now), "it is asked after frame {frame}");
        assert_eq!(polls(&desk.answer(Supervisory::ReceiveReady, 0, false)), 0);
    }
    let silent = desk.now;
    assert_eq!((polls(&desk.wait().1), desk.now - silent >= limit * 3 / 4), (1, true));
}

/// The answer to P shows the state at the time when P was received. Frames retransmitted since are in flight, and are
/// not sent a third time.
#[test]
fn what_was_sent_again_since_the_question_is_not_sent_again_for_its_answer() {
    for (function, again) in [(Supervisory::Reject, &[1, 2][..]), (Supervisory::SelectiveReject, &[1][..])] {
        // Frames are sent between a poll and its answer only on a full-duplex channel.
        let mut desk = Desk::plain(|config, _| config.radio.full_duplex = true);
        let frames = desk.send(&["a", "b", "c"]);
        assert_eq!((numbers(&frames), polls(&frames)), (vec![0, 1, 2], 1));
        assert_eq!(numbers(&desk.answer(function, 1, false)), again, "{function:?} asks for it");
        assert_eq!(numbers(&desk.answer(function, 1, true)), [0; 0], "{function:?} answers the question");
        // A later request counts.
        assert_eq!(numbers(&desk.answer(function, 1, false)), again, "{function:?}: it was lost once more");
    }
}

/// A segmented packet gets no larger window than other packets.
#[test]
fn a_packet_in_segments_keeps_to_the_window() {
    const WINDOW: u8 = 4;
    let mut desk = Desk::new(Version::Extended, |_, link| link.recovery = Recovery::Reject);
    let parameters = Parameters {
        options: Some(OptionalFunctions {
            recovery: Recovery::Reject,
            modulo: Modulo::Extended,
            segmenter: true,
        }),
        information_bytes_max: Some(256),
        window_frames: Some(WINDOW),
        ..Parameters::default()
    };
    let mut field = BytesMut::new();
    parameters.encode(&mut field);
    let identification = Frame {
        information: field.freeze(),
        ..unnumbered(CommandResponse::Command, Unnumbered::ExchangeIdentification)
    };
    desk.hear(identification);
    // The packet needs ten frames.
    let packet = Bytes::from(vec![7; 2_500]);
    let mut frames = desk.ask(PacketsRequest::payload(packet));
    let mut next = 0;
    for round in 1..=3 {
        let expected: Vec<u8> = (next..(next + WINDOW).min(10)).collect();
        assert_eq!(numbers(&frames), expected, "round {round}");
        next += expected.len() as u8;
        frames = desk.answer(Supervisory::ReceiveReady, next, true);
    }
    assert_eq!((next, numbers(&frames)), (10, vec![]));
}
