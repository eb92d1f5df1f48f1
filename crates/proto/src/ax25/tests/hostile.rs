//! Peers that send any frames.

use super::channel::station;
use crate::ax25::hdlc::air_bits;
use crate::ax25::{
    Address, AirTime, Callsign, CommandResponse, Control, Counters, Frame, LinkConfig, Modulo, Occupancy,
    OptionalFunctions, Parameters, Recovery, Station, Supervisory, Unnumbered, Version,
};
use crate::engine::{Engine, drain};
use crate::rng::Rng;
use crate::service::{
    CloseReason, FramesIndication, FramesRequest, LinkId, PacketsIndication, PacketsRequest, Port, Shares,
};
use crate::setting::Settings as _;
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

fn any_frame(rng: &mut Rng, modulo: Modulo, stands: bool) -> Bytes {
    let call = |text: &str| -> Callsign { text.parse().unwrap() };
    let sources = ["B", "C", "D", "E-1", "E-2"];
    let number = |rng: &mut Rng| rng.below(u64::from(modulo.count())) as u8;
    // Frames that end links are rare enough that links carry data.
    let function = match rng.below(if stands { 200 } else { 12 }) {
        0 => Unnumbered::SetMode,
        1 => Unnumbered::SetModeExtended,
        2 => Unnumbered::Disconnect,
        3 => Unnumbered::DisconnectedMode,
        4 | 5 => Unnumbered::Acknowledge,
        6 => Unnumbered::FrameReject,
        7 => Unnumbered::Information,
        8 | 20..40 => Unnumbered::ExchangeIdentification,
        10 | 11 if !stands => Unnumbered::Acknowledge,
        _ => Unnumbered::Test,
    };
    let supervisory = [
        Supervisory::ReceiveReady,
        Supervisory::ReceiveNotReady,
        Supervisory::Reject,
        Supervisory::SelectiveReject,
    ];
    let control = match if stands { rng.below(12) } else { rng.below(2) } {
        0 => Control::Unnumbered { function, poll_final: rng.chance(0.8) },
        1..=3 => Control::Information { send: number(rng), receive: number(rng), poll: rng.chance(0.5) },
        _ => Control::Supervisory {
            function: supervisory[rng.below(4) as usize],
            receive: number(rng),
            poll_final: rng.chance(0.5),
        },
    };
    let role = [CommandResponse::Command, CommandResponse::Response][rng.below(2) as usize];
    let from = call(sources[(rng.below(20) as usize).min(4)]);
    let from = if rng.chance(0.7) { call("B") } else { from };
    let mut information = vec![0; rng.below(40) as usize];
    rng.fill(&mut information);
    let frame = Frame {
        address: Address::new(from, call("A"), role, &[]),
        control,
        pid: 0xf0,
        information: if rng.chance(0.6) { Bytes::new() } else { information.into() },
    };
    let mut bytes = frame.to_bytes(modulo).to_vec();
    if rng.chance(0.1) {
        let at = rng.below(bytes.len() as u64) as usize;
        bytes[at] ^= 1 << rng.below(8);
    }
    if rng.chance(0.05) {
        bytes.truncate(rng.below(bytes.len() as u64) as usize);
    }
    bytes.into()
}

/// Any frames at any time: never more frames in flight than the window, never more time on the channel than allowed,
/// and bounded memory. `LONGWIRE_FRAMES` sets the number of frames.
#[test]
fn no_frames_make_it_send_beyond_its_window_or_its_air_time() {
    let frames: u64 =
        std::env::var("LONGWIRE_FRAMES").ok().and_then(|text| text.parse().ok()).unwrap_or(60_000);
    let mut sums = Counters::default();
    for (version, recovery) in [
        (Version::Plain, Recovery::Reject),
        (Version::Best, Recovery::Reject),
        (Version::Best, Recovery::SelectiveReject),
        (Version::Best, Recovery::MultiSelectiveReject),
    ] {
        let (counters, _) = talk(version, recovery, frames / 4, None);
        // The station took part: not all frames were dropped at once.
        assert!(
            counters.information_sent > frames / 400 && counters.information_received > 5,
            "{counters:?}"
        );
        sums.add(&counters);
        // Six seconds of every minute.
        let (counters, used) = talk(version, recovery, frames / 16, Some(Duration::from_secs(6)));
        assert!(used.waits > 10 && counters.information_sent > 10, "{used:?} {counters:?}");
    }
    assert!(sums.resets > 10 && sums.rejects_received > 10, "{sums:?}");
}

fn talk(
    version: Version,
    recovery: Recovery,
    frames: u64,
    air_time_max: Option<Duration>,
) -> (Counters, AirTime) {
    let mut config = station("A", &["B"]);
    let change = |link: &mut LinkConfig| (link.version, link.recovery) = (version, recovery);
    config.peers.values_mut().for_each(|peer| change(&mut peer.link));
    config.callers.iter_mut().for_each(change);
    config.transmission_max = Duration::from_secs(8);
    (config.air_time_max, config.air_time_window) = (air_time_max, Duration::from_secs(60));
    let window = config.air_time_window;
    // Frames sent within the last window, with their times.
    let mut sent: VecDeque<(Instant, Duration)> = VecDeque::new();
    let limits = Occupancy::limits(&config);
    // Links that peers open, apart from the station's own.
    let mut callers: BTreeMap<LinkId, u64> = BTreeMap::new();
    let (rate, most) = (u64::from(config.radio.rate_bps), config.transmission_max);
    let mut station = Checked::new("station", Station::new(config));
    let mut rng = Rng::new(17);
    let mut now = Instant::ZERO;
    let (mut room, mut open, mut key_up) = (0, false, Duration::ZERO);
    let own = LinkId(0);
    for _ in 0..frames {
        now += Duration::from_millis(rng.below(400));
        if !open {
            station.handle_request(now, Port::First((own, PacketsRequest::Connect)));
            open = true;
        }
        let stands = room > 0
            || station.engine.places.get(&own).is_some_and(|place| place.link.sender.outstanding() > 0);
        let modulo = match rng.chance(0.2) {
            true => Modulo::Eight,
            false => station.engine.places.get(&own).map_or(Modulo::Eight, |place| place.link.agreed.modulo),
        };
        match rng.below(12) {
            0 => station.handle_timeout(now),
            1 if rng.chance(0.1) => station.handle_indication(now, FramesIndication::Busy(rng.chance(0.3))),
            2 | 3 => {
                station.handle_indication(now, FramesIndication::Room(1 + rng.below(60) as u32));
                key_up = Duration::ZERO;
            }
            _ => station.handle_indication(now, FramesIndication::Frame(any_frame(&mut rng, modulo, stands))),
        }
        let mut tokens = Vec::new();
        loop {
            let (mut requests, mut closed, mut last) = (Vec::new(), false, false);
            drain(
                &mut station,
                now,
                |said| match said {
                    Port::First((id, PacketsIndication::Room(n))) if id == own => room = n,
                    Port::First((id, PacketsIndication::Closed(_))) if id == own => closed = true,
                    Port::First((id, PacketsIndication::Room(n))) => drop(callers.insert(id, n)),
                    Port::First((id, PacketsIndication::Closed(_))) => drop(callers.remove(&id)),
                    Port::First((id, PacketsIndication::Packet(_))) => {
                        requests.push((id, PacketsRequest::Release(1)));
                    }
                    _ => {}
                },
                |request| {
                    if let FramesRequest::Frame { bytes, token, last: end, .. } = request {
                        tokens.extend(token);
                        let bits = air_bits(&bytes) + 8;
                        let time = Duration::from_nanos(bits * 1_000_000_000 / rate);
                        key_up += time;
                        sent.push_back((now, time));
                        last |= end;
                    }
                },
            );
            assert!(key_up <= most + Duration::from_millis(400), "on the air for {key_up:?}");
            while sent.front().is_some_and(|(at, _)| *at + window <= now) {
                sent.pop_front();
            }
            let within: Duration = sent.iter().map(|(_, time)| *time).sum();
            assert!(air_time_max.is_none_or(|max| within <= max), "{within:?} on the air of {window:?}");
            if closed {
                (open, room) = (false, 0);
                break;
            }
            if let Some((id, room)) = callers.iter_mut().find(|(_, room)| **room > 0) {
                *room -= 1;
                requests.push((*id, PacketsRequest::payload(Bytes::from_static(&[9; 60]))));
            }
            let released = !requests.is_empty();
            for (id, request) in requests {
                station.handle_request(now, Port::First((id, request)));
            }
            if last {
                station.handle_indication(now, FramesIndication::Room(0));
            }
            if last || released {
                continue;
            }
            for id in callers.keys().chain([&own]) {
                if let Some(place) = station.engine.places.get(id) {
                    let (outstanding, window) = (place.link.sender.outstanding(), place.link.agreed.window);
                    assert!(
                        outstanding <= usize::from(window),
                        "{outstanding} frames on their way on {id:?}"
                    );
                }
            }
            let holds = station.engine.holds();
            assert!(holds.within(&limits), "it holds {holds:?}");
            if room == 0 || rng.chance(0.5) {
                break;
            }
            room -= 1;
            let packet = Bytes::from(vec![7; rng.below(256) as usize]);
            station.handle_request(now, Port::First((own, PacketsRequest::payload(packet))));
        }
        for token in tokens {
            station.handle_indication(now, FramesIndication::Transmitted(token));
        }
    }
    (station.engine.counters(), station.engine.air_time())
}

/// Answers to a peer with invalid frames fill the queue; the connection request is sent nevertheless, and ends.
#[test]
fn a_call_is_not_forgotten_among_answers() {
    let mut config = station("A", &["B"]);
    config.peers.values_mut().for_each(|peer| (peer.link.version, peer.link.retries) = (Version::Plain, 3));
    let mut station = Checked::new("station", Station::new(config));
    let mut now = Instant::ZERO;
    station.handle_request(now, Port::First((LinkId(0), PacketsRequest::Connect)));
    let address = Address::new("B".parse().unwrap(), "A".parse().unwrap(), CommandResponse::Command, &[]);
    let control = Control::Unnumbered { function: Unnumbered::Disconnect, poll_final: true };
    let nonsense = Frame::bare(address, control).to_bytes(Modulo::Eight);
    let (mut calls, mut closed) = (0, false);
    drain(&mut station, now, |_| {}, |_| {});
    while !closed {
        for _ in 0..10 {
            station.handle_indication(now, FramesIndication::Frame(nonsense.clone()));
        }
        station.handle_indication(now, FramesIndication::Room(100));
        let mut tokens = Vec::new();
        let ended = |said| closed |= matches!(said, Port::First((_, PacketsIndication::Closed(_))));
        drain(&mut station, now, ended, |request| {
            if let FramesRequest::Frame { bytes, token, .. } = request {
                let frame = Frame::decode(&mut bytes.clone(), Modulo::Eight).unwrap();
                calls += u32::from(frame.is_command());
                tokens.extend(token);
            }
        });
        for token in tokens {
            station.handle_indication(now, FramesIndication::Transmitted(token));
        }
        drain(&mut station, now, |_| {}, |_| {});
        let Some(next) = station.poll_timeout() else { break };
        assert!(next < Instant::from_secs(600), "no end before {next}");
        now = now.max(next);
        station.handle_timeout(now);
    }
    assert!(closed && calls == 4, "{calls} calls");
}

/// Returns the time of a frame on the channel of [`station`].
pub(super) fn air_time(bytes: &Bytes) -> Duration {
    Duration::from_nanos((air_bits(bytes) + 8) * 1_000_000_000 / 9600)
}

/// Delivers a frame to the station. Returns its indications and its frames once it has the channel; all of them have
/// left then.
pub(super) fn turn(
    station: &mut Checked<Station>,
    clock: &mut Instant,
    heard: Option<Frame>,
    modulo: Modulo,
) -> (Vec<PacketsIndication>, Vec<Frame>) {
    let (said, frames) = turn_with_shares(station, clock, heard, modulo);
    (said, frames.into_iter().map(|(frame, _)| frame).collect())
}

/// Like [`turn`], and returns the shares of each frame as well.
pub(super) fn turn_with_shares(
    station: &mut Checked<Station>,
    clock: &mut Instant,
    heard: Option<Frame>,
    modulo: Modulo,
) -> (Vec<PacketsIndication>, Vec<(Frame, Shares)>) {
    let heard = heard.map(|frame| frame.to_bytes(modulo));
    *clock += heard.as_ref().map_or(Duration::ZERO, air_time);
    let now = *clock;
    if let Some(bytes) = heard {
        station.handle_indication(now, FramesIndication::Frame(bytes));
    }
    let (mut said, mut frames, mut tokens) = (Vec::new(), Vec::new(), Vec::new());
    let mut up = |indication| {
        if let Port::First((_, indication)) = indication {
            said.push(indication);
        }
    };
    drain(station, now, &mut up, |_| {});
    station.handle_indication(now, FramesIndication::Room(100));
    drain(station, now, &mut up, |request| {
        if let FramesRequest::Frame { bytes, token, shares, .. } = request {
            *clock += air_time(&bytes);
            frames.push((Frame::decode(&mut bytes.clone(), modulo).unwrap(), shares));
            tokens.extend(token);
        }
    });
    let now = *clock;
    station.handle_indication(now, FramesIndication::Room(0));
    for token in tokens {
        station.handle_indication(now, FramesIndication::Transmitted(token));
    }
    drain(station, now, &mut up, |_| {});
    (said, frames)
}

pub(super) fn from_b(role: CommandResponse, control: Control) -> Frame {
    Frame::bare(Address::new("B".parse().unwrap(), "A".parse().unwrap(), role, &[]), control)
}

pub(super) fn unnumbered(role: CommandResponse, function: Unnumbered) -> Frame {
    from_b(role, Control::Unnumbered { function, poll_final: true })
}

pub(super) fn ready(role: CommandResponse, receive: u8) -> Frame {
    let function = Supervisory::ReceiveReady;
    from_b(role, Control::Supervisory { function, receive, poll_final: true })
}

pub(super) fn information(send: u8, text: &'static str) -> Frame {
    let control = Control::Information { send, receive: 0, poll: true };
    Frame { pid: 0xf0, information: text.into(), ..from_b(CommandResponse::Command, control) }
}

/// The connection request is repeated while the answer to the first is in flight, as on channels with long waits. The
/// peer may have restarted the link with the second request, and its earlier frames must not be taken for later ones:
/// the link is established when it has answered a poll, and no frame before counts.
#[test]
fn the_answer_to_a_repeated_call_resets_nothing_and_confuses_nothing() {
    let mut config = station("A", &["B"]);
    config.peers.values_mut().for_each(|peer| peer.link.version = Version::Plain);
    let mut station = Checked::new("station", Station::new(config));
    let mut now = Instant::ZERO;
    station.handle_request(now, Port::First((LinkId(0), PacketsRequest::Connect)));
    let (_, first) = turn(&mut station, &mut now, None, Modulo::Eight);
    now = station.poll_timeout().unwrap();
    station.handle_timeout(now);
    let (_, second) = turn(&mut station, &mut now, None, Modulo::Eight);
    assert_eq!((first.len(), second.len()), (1, 1), "two calls");
    let mut hear = |frame| turn(&mut station, &mut now, Some(frame), Modulo::Eight);
    let agreed = || unnumbered(CommandResponse::Response, Unnumbered::Acknowledge);
    // The first answer, and frames after it.
    let (said, frames) = hear(agreed());
    let asks = Control::Supervisory { function: Supervisory::ReceiveReady, receive: 0, poll_final: true };
    assert_eq!((said, frames[0].control), (vec![], asks));
    assert_eq!(hear(information(0, "of the first link")), (vec![], vec![]));
    assert_eq!(hear(agreed()), (vec![], vec![]));
    // The answer to the poll belongs to the present link.
    let (said, _) = hear(ready(CommandResponse::Response, 0));
    assert!(matches!(said[0], PacketsIndication::Connected { .. }), "{said:?}");
    let (said, frames) = hear(information(0, "of the second"));
    assert_eq!(said, [PacketsIndication::Packet("of the second".into())]);
    let answers = Control::Supervisory { function: Supervisory::ReceiveReady, receive: 1, poll_final: true };
    assert_eq!(frames[0].control, answers);
    // An unrequested answer ends the link.
    let (said, _) = hear(agreed());
    assert!(said.contains(&PacketsIndication::Closed(CloseReason::Reset)), "{said:?}");
}

/// A repeated connection request belongs to the same link until a frame of the peer shows that it knows the link; lost
/// frames are retransmitted. Before, the link was restarted, and a peer that had received the first answer took the
/// packets of one link for those of the other: packets were acknowledged that had never arrived.
#[test]
fn a_repeated_call_is_the_same_link() {
    let mut station = Checked::new("station", Station::new(station("A", &["B"])));
    let mut now = Instant::ZERO;
    turn(&mut station, &mut now, None, Modulo::Eight);
    let call = || unnumbered(CommandResponse::Command, Unnumbered::SetMode);
    let (said, _) = turn(&mut station, &mut now, Some(call()), Modulo::Eight);
    assert!(matches!(said[0], PacketsIndication::Connected { .. }), "{said:?}");
    let caller = LinkId(LinkId::FIRST_INCOMING);
    let packet = PacketsRequest::payload("hello".into());
    station.handle_request(now, Port::First((caller, packet)));
    let (_, frames) = turn(&mut station, &mut now, None, Modulo::Eight);
    assert!(matches!(frames[0].control, Control::Information { send: 0, .. }), "{frames:?}");
    let (said, frames) = turn(&mut station, &mut now, Some(call()), Modulo::Eight);
    assert_eq!((said, frames), (vec![], vec![own(Unnumbered::Acknowledge)]));
    // The peer is heard: from now on a connection request is a new one.
    turn(&mut station, &mut now, Some(ready(CommandResponse::Command, 0)), Modulo::Eight);
    let (said, _) = turn(&mut station, &mut now, Some(call()), Modulo::Eight);
    assert_eq!(said[0], PacketsIndication::Closed(CloseReason::Reset));
    assert!(matches!(said[1], PacketsIndication::Connected { .. }), "{said:?}");
}

/// Returns a response of A.
fn own(function: Unnumbered) -> Frame {
    let address = Address::new("A".parse().unwrap(), "B".parse().unwrap(), CommandResponse::Response, &[]);
    Frame::bare(address, Control::Unnumbered { function, poll_final: true })
}

/// A provider that never reports a transmission does not stop a connection request, nor a link.
#[test]
fn nobody_has_to_say_that_a_frame_has_left() {
    let mut config = station("A", &["B"]);
    config.peers.values_mut().for_each(|peer| (peer.link.version, peer.link.retries) = (Version::Plain, 2));
    let mut station = Checked::new("station", Station::new(config));
    let (mut now, mut calls, mut closed) = (Instant::ZERO, 0, vec![]);
    station.handle_request(now, Port::First((LinkId(0), PacketsRequest::Connect)));
    while closed.is_empty() {
        for room in [0, 10] {
            station.handle_indication(now, FramesIndication::Room(room));
            let up = |said| {
                if let Port::First((_, PacketsIndication::Closed(reason))) = said {
                    closed.push(reason);
                }
            };
            drain(&mut station, now, up, |request| {
                calls += u32::from(matches!(request, FramesRequest::Frame { .. }));
            });
        }
        let Some(next) = station.poll_timeout() else { break };
        assert!(next < Instant::from_secs(600), "no end before {next}");
        now = now.max(next);
        station.handle_timeout(now);
    }
    assert_eq!((calls, closed), (3, vec![CloseReason::TimedOut]));
}

/// Peers connect and release at once, one after the other, while the channel is never won: their pending answers are
/// dropped before the memory is full, and the next peer is answered.
#[test]
fn callers_that_leave_at_once_leave_nothing_behind() {
    let mut config = station("A", &["B"]);
    config.links_max = 3;
    let limits = Occupancy::limits(&config);
    let mut station = Checked::new("station", Station::new(config));
    drain(&mut station, Instant::ZERO, |_| {}, |_| {});
    for number in 0..5000 {
        for function in [Unnumbered::SetMode, Unnumbered::Disconnect] {
            let source: Callsign = format!("C{number}").parse().unwrap();
            let frame = unnumbered(CommandResponse::Command, function);
            let frame = Frame { address: Address { source, ..frame.address.clone() }, ..frame };
            let heard = FramesIndication::Frame(frame.to_bytes(Modulo::Eight));
            station.handle_indication(Instant::ZERO, heard);
            drain(&mut station, Instant::ZERO, |_| {}, |_| {});
        }
        let holds = station.engine.holds();
        assert!(holds.within(&limits), "it holds {holds:?} after {number} callers");
    }
    station.handle_request(Instant::ZERO, Port::First((LinkId(0), PacketsRequest::Connect)));
    let (said, frames) = turn(&mut station, &mut Instant::ZERO.clone(), None, Modulo::Eight);
    let called = frames.iter().any(|frame| frame.address.destination.to_string() == "B");
    // The remaining ones have left by now, and their users are informed.
    let ended = said.iter().all(|said| *said == PacketsIndication::Closed(CloseReason::Finished));
    assert!(called && ended, "{said:?}");
}

/// A flood of connection requests gets no more answers than may wait.
#[test]
fn a_storm_of_calls_gets_few_answers() {
    let mut config = station("A", &[]);
    config.links_max = 3;
    let mut station = Checked::new("station", Station::new(config));
    drain(&mut station, Instant::ZERO, |_| {}, |_| {});
    let call = |number: u64| -> Callsign { format!("B{number}").parse().unwrap() };
    let now = Instant::ZERO;
    for number in 0..5000 {
        let address = Address::new(call(number % 1000), "A".parse().unwrap(), CommandResponse::Command, &[]);
        let control = Control::Unnumbered { function: Unnumbered::SetMode, poll_final: true };
        let frame = Frame::bare(address, control).to_bytes(Modulo::Eight);
        station.handle_indication(now, FramesIndication::Frame(frame));
        drain(&mut station, now, |_| {}, |_| {});
    }
    station.handle_indication(now, FramesIndication::Room(1000));
    let mut answers = 0;
    drain(
        &mut station,
        now,
        |_| {},
        |request| answers += u32::from(matches!(request, FramesRequest::Frame { .. })),
    );
    assert!(answers <= 16 + 3 * 4, "{answers} answers");
    assert!(station.engine.drops().refused > 4000);
}

/// A peer answers every frame with FRMR: each connection request ends with the last setup step, an established link
/// ends at the first FRMR with one DM, and later ones, or those without a link, get no answer.
#[test]
fn frames_rejected_without_end_are_answered_by_an_end() {
    let reject = || Some(unnumbered(CommandResponse::Response, Unnumbered::FrameReject));
    let mut config = station("A", &["B"]);
    config.links_max = 3;
    let limits = Occupancy::limits(&config);
    let mut station = Checked::new("station", Station::new(config));
    let mut now = Instant::ZERO;
    let connect = |station: &mut Checked<Station>, now: Instant| {
        station.handle_request(now, Port::First((LinkId(0), PacketsRequest::Connect)));
    };
    for _ in 0..200 {
        connect(&mut station, now);
        let (mut said, mut frames) = turn(&mut station, &mut now, None, Modulo::Eight);
        let mut calls = Vec::new();
        while said.is_empty() {
            assert_eq!(frames.len(), 1, "{frames:?}");
            calls.extend(frames.drain(..).map(|frame| frame.control));
            (said, frames) = turn(&mut station, &mut now, reject(), Modulo::Eight);
        }
        let ladder = [Unnumbered::SetModeExtended, Unnumbered::ExchangeIdentification, Unnumbered::SetMode];
        assert_eq!(calls, ladder.map(|function| Control::Unnumbered { function, poll_final: true }));
        assert_eq!(said, [PacketsIndication::Closed(CloseReason::Refused)]);
    }
    for _ in 0..200 {
        connect(&mut station, now);
        turn(&mut station, &mut now, None, Modulo::Extended);
        let answer = unnumbered(CommandResponse::Response, Unnumbered::Acknowledge);
        let (said, _) = turn(&mut station, &mut now, Some(answer), Modulo::Extended);
        assert!(matches!(said[0], PacketsIndication::Connected { .. }), "{said:?}");
        let (said, frames) = turn(&mut station, &mut now, reject(), Modulo::Extended);
        assert_eq!(said.last(), Some(&PacketsIndication::Closed(CloseReason::Reset)));
        assert_eq!(frames, [own_farewell()]);
        for _ in 0..20 {
            let (said, frames) = turn(&mut station, &mut now, reject(), Modulo::Extended);
            assert!(said.is_empty() && frames.is_empty(), "{said:?} {frames:?}");
        }
        assert!(station.engine.holds().within(&limits));
    }
}

/// Returns an unrequested DM.
fn own_farewell() -> Frame {
    let frame = own(Unnumbered::DisconnectedMode);
    let control = Control::Unnumbered { function: Unnumbered::DisconnectedMode, poll_final: false };
    Frame { control, ..frame }
}

/// XID on an established link, with unusable values: packets of the announced size are sent whole nevertheless, in no
/// more than the maximum number of segments.
#[test]
fn an_absurd_identification_breaks_no_promise() {
    let mut config = station("A", &["B"]);
    config.peers.values_mut().for_each(|peer| peer.link.extended_window_frames = 127);
    config.peers.values_mut().for_each(|peer| peer.link.recovery = Recovery::Reject);
    let mut station = Checked::new("station", Station::new(config));
    let mut now = Instant::ZERO;
    turn(&mut station, &mut now, None, Modulo::Eight);
    station.handle_request(now, Port::First((LinkId(0), PacketsRequest::Connect)));
    turn(&mut station, &mut now, None, Modulo::Eight);
    let stands = unnumbered(CommandResponse::Response, Unnumbered::Acknowledge);
    let (said, _) = turn(&mut station, &mut now, Some(stands), Modulo::Extended);
    assert!(matches!(said[0], PacketsIndication::Connected { bytes_max: 256, .. }), "{said:?}");
    let says = |role, information_bytes_max, segmenter, window_frames| {
        let options = OptionalFunctions { recovery: Recovery::Reject, modulo: Modulo::Extended, segmenter };
        let parameters = Parameters {
            options: Some(options),
            information_bytes_max: Some(information_bytes_max),
            window_frames: Some(window_frames),
            ..Parameters::default()
        };
        let mut field = BytesMut::new();
        parameters.encode(&mut field);
        Frame { information: field.freeze(), ..unnumbered(role, Unnumbered::ExchangeIdentification) }
    };
    let (said, _) =
        turn(&mut station, &mut now, Some(says(CommandResponse::Response, 256, true, 127)), Modulo::Extended);
    let PacketsIndication::Sizes { bytes_max, .. } = said[0] else { panic!("{said:?}") };
    for (bytes, segmenter) in [(0, true), (1, false), (3, false), (536_870_911, true), (7, true)] {
        turn(
            &mut station,
            &mut now,
            Some(says(CommandResponse::Command, bytes, segmenter, 127)),
            Modulo::Extended,
        );
    }
    let packet = PacketsRequest::payload(vec![7; bytes_max as usize].into());
    station.handle_request(now, Port::First((LinkId(0), packet)));
    let (_, frames) = turn(&mut station, &mut now, None, Modulo::Extended);
    let fields: Vec<&Bytes> = frames.iter().map(|frame| &frame.information).collect();
    assert_eq!(fields[0][0], 0xff, "the first of 128 segments");
    assert!(fields.iter().all(|field| field.len() <= 256), "{:?}", fields.iter().map(|field| field.len()));
}

#[test]
fn fields_that_hold_no_segment_are_refused() {
    let link = LinkConfig { information_bytes_max: 1, ..LinkConfig::default() };
    assert_eq!(link.check().unwrap_err().key, "information-bytes-max");
}
