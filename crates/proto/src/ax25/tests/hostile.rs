//! Peers that send anything.

use super::channel::station;
use crate::ax25::hdlc::air_bits;
use crate::ax25::{
    Address, Callsign, Control, Counters, Frame, Modulo, Role, Station, Supervisory, Unnumbered, Version,
};
use crate::engine::{Engine, drain};
use crate::rng::Rng;
use crate::service::{FramesIndication, FramesRequest, LinkId, PacketsIndication, PacketsRequest, Port};
use crate::time::{Duration, Instant};
use crate::wrap::Lawful;
use bytes::Bytes;

fn any_frame(rng: &mut Rng, modulo: Modulo, stands: bool) -> Bytes {
    let call = |text: &str| -> Callsign { text.parse().unwrap() };
    let sources = ["B", "C", "D", "E-1", "E-2"];
    let number = |rng: &mut Rng| rng.below(u64::from(modulo.count())) as u8;
    // What ends links comes seldom enough that something happens on them.
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
    let role = [Role::Command, Role::Response][rng.below(2) as usize];
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

/// Any frames at any time: never more on its way than the window, never longer on the air than allowed, and what is
/// kept has a bound. `LONGWIRE_FRAMES` says how many frames.
#[test]
fn no_frames_make_it_send_beyond_its_window_or_its_air_time() {
    let frames: u64 =
        std::env::var("LONGWIRE_FRAMES").ok().and_then(|text| text.parse().ok()).unwrap_or(60_000);
    let mut sums = Counters::default();
    for version in [Version::Plain, Version::Best] {
        sums.add(&talk(version, frames / 2));
    }
    // It did take part: the frames were not all thrown away at the door.
    assert!(sums.information_sent > frames / 100 && sums.information_received > 20, "{sums:?}");
    assert!(sums.resets > 10 && sums.rejects_received > 10, "{sums:?}");
}

fn talk(version: Version, frames: u64) -> Counters {
    let mut config = station("A", &["B"]);
    config.peers.values_mut().for_each(|peer| peer.link.version = version);
    config.transmission_max = Duration::from_secs(8);
    let (rate, most) = (u64::from(config.radio.rate_bps), config.transmission_max);
    let mut station = Lawful::new("station", Station::new(config));
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
        let stands = room > 0 || station.engine.outstanding(own).is_some_and(|(sent, _)| sent > 0);
        let modulo = match rng.chance(0.2) {
            true => Modulo::Eight,
            false => station.engine.modulo(own).unwrap_or_default(),
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
                    Port::First((id, PacketsIndication::Packet(_))) => {
                        requests.push((id, PacketsRequest::Release(1)));
                    }
                    _ => {}
                },
                |request| {
                    if let FramesRequest::Frame { bytes, token, last: end, .. } = request {
                        tokens.extend(token);
                        let bits = air_bits(&bytes) + 8;
                        key_up += Duration::from_nanos(bits * 1_000_000_000 / rate);
                        last |= end;
                    }
                },
            );
            assert!(key_up <= most + Duration::from_millis(400), "on the air for {key_up:?}");
            if closed {
                (open, room) = (false, 0);
                break;
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
            if let Some((outstanding, window)) = station.engine.outstanding(own) {
                assert!(outstanding <= usize::from(window), "{outstanding} frames on their way");
            }
            if room == 0 || rng.chance(0.5) {
                break;
            }
            room -= 1;
            let packet = Bytes::from(vec![7; rng.below(256) as usize]);
            station.handle_request(now, Port::First((own, PacketsRequest::Packet(packet))));
        }
        for token in tokens {
            station.handle_indication(now, FramesIndication::Transmitted(token));
        }
    }
    station.engine.counters()
}

/// Answers to a peer that says the wrong things fill the queue; the call goes out all the same, and ends.
#[test]
fn a_call_is_not_forgotten_among_answers() {
    let mut config = station("A", &["B"]);
    config.peers.values_mut().for_each(|peer| (peer.link.version, peer.link.retries) = (Version::Plain, 3));
    let mut station = Lawful::new("station", Station::new(config));
    let mut now = Instant::ZERO;
    station.handle_request(now, Port::First((LinkId(0), PacketsRequest::Connect)));
    let address = Address::new("B".parse().unwrap(), "A".parse().unwrap(), Role::Command, &[]);
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

/// The call goes out again while the answer to the first is on its way, as on channels where all wait for their turn: both
/// answers come, and the link stands. An answer to nothing ends it.
#[test]
fn the_answer_to_a_repeated_call_resets_nothing() {
    let mut config = station("A", &["B"]);
    config.peers.values_mut().for_each(|peer| peer.link.version = Version::Plain);
    let mut station = Lawful::new("station", Station::new(config));
    let mut now = Instant::ZERO;
    station.handle_request(now, Port::First((LinkId(0), PacketsRequest::Connect)));
    drain(&mut station, now, |_| {}, |_| {});
    for _ in 0..2 {
        station.handle_indication(now, FramesIndication::Room(100));
        let mut tokens = Vec::new();
        drain(
            &mut station,
            now,
            |_| {},
            |request| {
                if let FramesRequest::Frame { token, .. } = request {
                    tokens.extend(token);
                }
            },
        );
        assert_eq!(tokens.len(), 1, "one call");
        station.handle_indication(now, FramesIndication::Transmitted(tokens[0]));
        drain(&mut station, now, |_| {}, |_| {});
        now = station.poll_timeout().unwrap();
        // The second one waits for its answer.
        if station.engine.counters().timeouts == 0 {
            station.handle_timeout(now);
        }
    }
    let address = Address::new("B".parse().unwrap(), "A".parse().unwrap(), Role::Response, &[]);
    let control = Control::Unnumbered { function: Unnumbered::Acknowledge, poll_final: true };
    let answer = Frame::bare(address, control).to_bytes(Modulo::Eight);
    for (answers, ends) in [(1, 0), (2, 0), (3, 1)] {
        let mut closed = 0;
        station.handle_indication(now, FramesIndication::Frame(answer.clone()));
        let ended = |said: &_| matches!(said, Port::First((_, PacketsIndication::Closed(_))));
        drain(&mut station, now, |said| closed += u32::from(ended(&said)), |_| {});
        assert_eq!(closed, ends, "answer {answers}");
    }
}

/// A flood of calls is answered no further than the answers that may wait.
#[test]
fn a_storm_of_calls_gets_few_answers() {
    let mut config = station("A", &[]);
    config.links_max = 3;
    let mut station = Lawful::new("station", Station::new(config));
    drain(&mut station, Instant::ZERO, |_| {}, |_| {});
    let call = |number: u64| -> Callsign { format!("B{number}").parse().unwrap() };
    let now = Instant::ZERO;
    for number in 0..5000 {
        let address = Address::new(call(number % 1000), "A".parse().unwrap(), Role::Command, &[]);
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
