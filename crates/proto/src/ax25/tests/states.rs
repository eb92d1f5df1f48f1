//! The data-link states and the effect of each event in them (C4.1 to C4.7), line by line: `states.txt` contains the
//! effects, and the reason for each difference from the specification.

use super::channel::station;
use super::hostile::{from_b, information, ready, turn, unnumbered};
use crate::ax25::{
    CommandResponse, Control, Frame, LinkPhase, Modulo, OptionalFunctions, Parameters, Recovery, Station,
    Supervisory, Unnumbered, Version,
};
use crate::engine::Engine;
use crate::service::{LinkId, PacketsIndication, PacketsRequest, Port};
use crate::time::Instant;
use crate::wrap::Checked;
use bytes::BytesMut;

const OWN: LinkId = LinkId(0);

/// A station in one of the states.
struct Bench {
    now: Instant,
    station: Checked<Station>,
    modulo: Modulo,
}

/// The states, with the specification's number where it has one.
const STATES: [(&str, &str); 10] = [
    ("0", "disconnected"),
    ("1", "awaiting connection, SABM is out"),
    ("5", "awaiting connection, SABME is out"),
    ("settling", "called twice, answered once"),
    ("identifying", "connected, XID is out"),
    ("identifying, sent", "connected, I frames 0 and 1 are out, and behind them XID"),
    ("2", "awaiting release, DISC is out"),
    ("3", "connected, nothing is out"),
    ("3 sent", "connected, I frames 0 and 1 are out, the second with P"),
    ("4", "timer recovery: T1 ran out on them, RR with P is out"),
];

impl Bench {
    fn new(state: &str) -> Self {
        let mut config = station("A", &["B"]);
        let version = match state {
            "5" | "identifying" | "identifying, sent" => Version::Best,
            _ => Version::Plain,
        };
        config.peers.values_mut().for_each(|peer| {
            (peer.link.version, peer.link.retries) = (version, 3);
        });
        let (now, modulo) = (Instant::ZERO, Modulo::Eight);
        let mut bench = Bench { now, station: Checked::new("station", Station::new(config)), modulo };
        bench.hear(None);
        if state == "0" {
            return bench;
        }
        bench.ask(PacketsRequest::Connect);
        match state {
            "1" | "5" => return bench,
            "settling" => drop(bench.wait()),
            _ => {}
        }
        bench.hear(Some(unnumbered(CommandResponse::Response, Unnumbered::Acknowledge)));
        match state {
            "settling" | "3" => {}
            "identifying" => drop(bench.wait()),
            "2" => drop(bench.ask(PacketsRequest::Close)),
            _ => {
                let now = bench.now;
                for text in ["a", "b"] {
                    let packet = PacketsRequest::payload(text.into());
                    bench.station.handle_request(now, Port::First((OWN, packet)));
                }
                bench.hear(None);
                if state == "4" {
                    bench.wait();
                }
            }
        }
        bench
    }

    fn ask(&mut self, request: PacketsRequest) -> String {
        self.station.handle_request(self.now, Port::First((OWN, request)));
        self.hear(None)
    }

    fn wait(&mut self) -> String {
        let Some(at) = self.station.poll_timeout() else { return "no timer runs".into() };
        self.now = self.now.max(at);
        self.station.handle_timeout(self.now);
        self.hear(None)
    }

    /// Returns the station's reaction to a frame as text.
    fn hear(&mut self, frame: Option<Frame>) -> String {
        self.modulo =
            self.station.engine.places.get(&OWN).map_or(self.modulo, |place| place.link.agreed.modulo);
        let (said, frames) = turn(&mut self.station, &mut self.now, frame, self.modulo);
        let said = said.iter().filter_map(|said| match said {
            PacketsIndication::Connected { .. } => Some("up Connected".to_owned()),
            PacketsIndication::Packet(packet) => Some(format!("up {:?}", String::from_utf8_lossy(packet))),
            PacketsIndication::Acknowledged(all) => Some(format!("up Acknowledged {all}")),
            PacketsIndication::Closed(reason) => Some(format!("up Closed {reason:?}")),
            PacketsIndication::Sizes { bytes_max, bytes_best } => {
                Some(format!("up Takes {bytes_max} {bytes_best}"))
            }
            PacketsIndication::Room(_) => None,
        });
        let frames = frames.iter().map(words);
        let all: Vec<String> = said.chain(frames).collect();
        if all.is_empty() { "-".into() } else { all.join(", ") }
    }

    fn phase(&self) -> &'static str {
        match self.station.engine.standing(OWN).map(|standing| standing.phase) {
            None => "gone",
            Some(LinkPhase::Connecting) => "calling",
            Some(LinkPhase::Connected) => "connected",
            Some(LinkPhase::Disconnecting) => "ending",
        }
    }
}

fn words(frame: &Frame) -> String {
    let mark = match (frame.control.poll_final(), frame.is_command()) {
        (false, _) => "",
        (true, true) => " P",
        (true, false) => " F",
    };
    let name = frame.control.name();
    match frame.control {
        Control::Information { send, receive, .. } => format!("{name} s{send} r{receive}{mark}"),
        Control::Supervisory { receive, .. } => format!("{name} r{receive}{mark}"),
        Control::Unnumbered { .. } => format!("{name}{mark}"),
    }
}

/// An event at a station.
type Happening = (&'static str, fn(&mut Bench) -> String);

fn control(role: CommandResponse, function: Unnumbered, poll_final: bool) -> Frame {
    from_b(role, Control::Unnumbered { function, poll_final })
}

fn supervisory(role: CommandResponse, function: Supervisory, receive: u8, poll_final: bool) -> Frame {
    from_b(role, Control::Supervisory { function, receive, poll_final })
}

fn identification(role: CommandResponse) -> Frame {
    let options =
        OptionalFunctions { recovery: Recovery::SelectiveReject, modulo: Modulo::Extended, segmenter: true };
    let mut field = BytesMut::new();
    Parameters { options: Some(options), ..Parameters::default() }.encode(&mut field);
    Frame { information: field.freeze(), ..unnumbered(role, Unnumbered::ExchangeIdentification) }
}

const HAPPENINGS: &[Happening] = &[
    ("Connect", |bench| match bench.station.engine.standing(OWN) {
        // A user connects only a closed link.
        Some(_) => "no event".into(),
        None => bench.ask(PacketsRequest::Connect),
    }),
    ("Close", |bench| match bench.station.engine.standing(OWN) {
        Some(_) => bench.ask(PacketsRequest::Close),
        None => "no event".into(),
    }),
    ("Abort", |bench| match bench.station.engine.standing(OWN) {
        Some(_) => bench.ask(PacketsRequest::Abort),
        None => "no event".into(),
    }),
    ("time, once", |bench| bench.wait()),
    ("time, to the end", |bench| {
        let mut all = vec![];
        for _ in 0..12 {
            match bench.wait() {
                said if said == "no timer runs" => break,
                said => all.push(said),
            }
        }
        all.join("; ")
    }),
    ("SABM P", |bench| bench.hear(Some(control(CommandResponse::Command, Unnumbered::SetMode, true)))),
    ("SABME P", |bench| {
        bench.hear(Some(control(CommandResponse::Command, Unnumbered::SetModeExtended, true)))
    }),
    ("DISC P", |bench| bench.hear(Some(control(CommandResponse::Command, Unnumbered::Disconnect, true)))),
    ("DM F", |bench| {
        bench.hear(Some(control(CommandResponse::Response, Unnumbered::DisconnectedMode, true)))
    }),
    ("DM", |bench| bench.hear(Some(control(CommandResponse::Response, Unnumbered::DisconnectedMode, false)))),
    ("UA F", |bench| bench.hear(Some(control(CommandResponse::Response, Unnumbered::Acknowledge, true)))),
    ("UA", |bench| bench.hear(Some(control(CommandResponse::Response, Unnumbered::Acknowledge, false)))),
    ("FRMR F", |bench| bench.hear(Some(control(CommandResponse::Response, Unnumbered::FrameReject, true)))),
    ("UI P", |bench| bench.hear(Some(control(CommandResponse::Command, Unnumbered::Information, true)))),
    ("TEST P", |bench| bench.hear(Some(control(CommandResponse::Command, Unnumbered::Test, true)))),
    ("XID P", |bench| bench.hear(Some(identification(CommandResponse::Command)))),
    ("XID F", |bench| bench.hear(Some(identification(CommandResponse::Response)))),
    ("I s0 r0 P", |bench| bench.hear(Some(information(0, "x")))),
    ("I s0 r0", |bench| {
        let mut frame = information(0, "x");
        frame.control = Control::Information { send: 0, receive: 0, poll: false };
        let at_once = bench.hear(Some(frame));
        format!("{at_once}; later {}", bench.wait())
    }),
    ("I s1 r0 P", |bench| bench.hear(Some(information(1, "x")))),
    ("I s0 r5 P", |bench| {
        let mut frame = information(0, "x");
        frame.control = Control::Information { send: 0, receive: 5, poll: true };
        bench.hear(Some(frame))
    }),
    ("RR r0 P", |bench| bench.hear(Some(ready(CommandResponse::Command, 0)))),
    ("RR r0 F", |bench| bench.hear(Some(ready(CommandResponse::Response, 0)))),
    ("RR r2 F", |bench| bench.hear(Some(ready(CommandResponse::Response, 2)))),
    ("RR r2", |bench| {
        bench.hear(Some(supervisory(CommandResponse::Response, Supervisory::ReceiveReady, 2, false)))
    }),
    ("RR r5 F", |bench| bench.hear(Some(ready(CommandResponse::Response, 5)))),
    ("RNR r0 F", |bench| {
        bench.hear(Some(supervisory(CommandResponse::Response, Supervisory::ReceiveNotReady, 0, true)))
    }),
    ("REJ r1 F", |bench| {
        bench.hear(Some(supervisory(CommandResponse::Response, Supervisory::Reject, 1, true)))
    }),
    ("REJ r1", |bench| {
        bench.hear(Some(supervisory(CommandResponse::Response, Supervisory::Reject, 1, false)))
    }),
    ("SREJ r0 F", |bench| {
        bench.hear(Some(supervisory(CommandResponse::Response, Supervisory::SelectiveReject, 0, true)))
    }),
];

#[test]
fn every_state_does_with_every_event_what_the_table_says() {
    let mut table = String::new();
    for (state, meaning) in STATES {
        table += &format!("# {state}: {meaning}\n");
        for (name, happen) in HAPPENINGS {
            let mut bench = Bench::new(state);
            let said = happen(&mut bench);
            table += &format!("{name:<16} | {said} | {}\n", bench.phase());
        }
    }
    // The reason follows a further bar.
    let expected = include_str!("states.txt")
        .lines()
        .map(|line| line.split(" | ").take(3).collect::<Vec<_>>().join(" | "));
    let expected: Vec<String> = expected.collect();
    let found: Vec<&str> = table.lines().collect();
    let wrong = found.iter().zip(&expected).find(|(found, expected)| *found != expected);
    assert!(wrong.is_none() && found.len() == expected.len(), "{wrong:?} in\n{table}");
}
