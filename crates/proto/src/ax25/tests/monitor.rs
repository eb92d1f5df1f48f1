//! Results of a monitor for the frames of two other stations.

use crate::ax25::{
    Address, Callsign, ChannelMonitor, CommandResponse, Control, Frame, Modulo, Supervisory, Unnumbered,
};
use bytes::Bytes;
use std::collections::BTreeMap;

fn call(text: &str) -> Callsign {
    text.parse().unwrap()
}

struct Channel {
    watcher: ChannelMonitor,
    modulo: Modulo,
}

impl Channel {
    fn new(modulo: Modulo) -> Self {
        Channel { watcher: ChannelMonitor::new(), modulo }
    }

    fn say(
        &mut self,
        from: &str,
        to: &str,
        control: Control,
        information: &'static [u8],
    ) -> crate::ax25::MonitoredFrame {
        let address = Address::new(call(from), call(to), CommandResponse::Command, &[]);
        let frame = Frame {
            pid: 0xf0,
            information: Bytes::from_static(information),
            ..Frame::bare(address, control)
        };
        let frame = if control.has_pid() { frame } else { Frame { pid: 0, ..frame } };
        let heard = self.watcher.hear(frame.to_bytes(self.modulo)).unwrap();
        assert_eq!(heard.frame, frame);
        heard
    }

    fn information(&mut self, send: u8) -> (Option<u32>, Option<u32>) {
        let heard = self.say("A1A", "B1B", Control::Information { send, receive: 0, poll: false }, b"text");
        assert_eq!(heard.modulo, self.modulo);
        (heard.burst, heard.outstanding)
    }

    fn ready(&mut self, receive: u8) {
        let control =
            Control::Supervisory { function: Supervisory::ReceiveReady, receive, poll_final: false };
        self.say("B1B", "A1A", control, b"");
    }

    fn opens(&mut self) {
        let function = match self.modulo {
            Modulo::Eight => Unnumbered::SetMode,
            Modulo::Extended => Unnumbered::SetModeExtended,
        };
        self.say("A1A", "B1B", Control::Unnumbered { function, poll_final: true }, b"");
        let function = Unnumbered::Acknowledge;
        self.say("B1B", "A1A", Control::Unnumbered { function, poll_final: true }, b"");
    }

    fn windows(&self) -> Vec<(u32, u64)> {
        self.watcher.windows().remove(&call("A1A")).unwrap_or_default().into_iter().collect()
    }
}

#[test]
fn bursts_end_when_the_other_speaks() {
    for modulo in [Modulo::Eight, Modulo::Extended] {
        let mut channel = Channel::new(modulo);
        channel.opens();
        assert_eq!(channel.information(0), (Some(1), Some(1)));
        assert_eq!(channel.information(1), (Some(2), Some(2)));
        assert_eq!(channel.information(2), (Some(3), Some(3)));
        channel.ready(2);
        assert_eq!(channel.information(3), (Some(1), Some(2)));
        channel.ready(4);
        assert_eq!(channel.information(4), (Some(1), Some(1)));
        assert_eq!(channel.windows(), [(1, 2), (3, 1)], "{modulo:?}");
    }
}

/// At the TNC of the answering station its answers are not received: 90 frames in windows of 30, each of which ends
/// with P.
#[test]
fn a_burst_ends_with_its_question_where_answers_are_not_heard() {
    let mut channel = Channel::new(Modulo::Extended);
    channel.opens();
    for send in 0..90 {
        let control = Control::Information { send, receive: 0, poll: send % 30 == 29 };
        let heard = channel.say("A1A", "B1B", control, b"text");
        assert_eq!(heard.burst, Some(u32::from(send) % 30 + 1));
        // The position of the peer is known up to the first answer.
        assert_eq!(heard.outstanding, (send < 30).then_some(u32::from(send) + 1));
    }
    assert_eq!(channel.windows(), [(30, 3)]);
}

/// Without polls, more frames than can be in flight form no window.
#[test]
fn what_is_longer_than_any_window_is_none() {
    let mut channel = Channel::new(Modulo::Eight);
    channel.opens();
    let bursts: Vec<_> = (0..16).map(|number| channel.information(number % 8).0).collect();
    assert_eq!(bursts[..7], (1..=7).map(Some).collect::<Vec<_>>());
    assert_eq!(bursts[7..], [None; 9]);
    assert_eq!(channel.windows(), []);
    channel.ready(0);
    assert_eq!(channel.information(0), (Some(1), Some(1)));
}

/// There was no answer, or it was not received: a sender that goes back begins a new burst.
#[test]
fn a_repetition_is_a_burst_of_its_own() {
    let mut channel = Channel::new(Modulo::Eight);
    channel.opens();
    for send in [5, 6, 7, 0, 5, 6] {
        channel.information(send);
    }
    assert_eq!(channel.windows(), [(2, 1), (4, 1)]);
}

/// The monitor starts after the link setup.
#[test]
fn the_modulo_is_guessed_where_the_call_was_not_heard() {
    for modulo in [Modulo::Eight, Modulo::Extended] {
        let mut channel = Channel::new(modulo);
        channel.information(1);
        channel.ready(2);
        channel.information(2);
    }
}

/// A digipeated frame is received twice, and counts once in its burst.
#[test]
fn what_digipeaters_repeat_is_not_counted_twice() {
    let mut watcher = ChannelMonitor::new();
    for repeated in [false, true] {
        let mut address = Address::new(call("A1A"), call("B1B"), CommandResponse::Command, &[call("RELAY")]);
        address.path[0].repeated = repeated;
        let control = Control::Information { send: 0, receive: 0, poll: false };
        let frame = Frame { pid: 0xf0, ..Frame::bare(address, control) };
        let heard = watcher.hear(frame.to_bytes(Modulo::Eight)).unwrap();
        assert_eq!(heard.burst.is_some(), !repeated);
    }
    assert_eq!(watcher.windows(), BTreeMap::from([(call("A1A"), BTreeMap::from([(1, 1)]))]));
}
