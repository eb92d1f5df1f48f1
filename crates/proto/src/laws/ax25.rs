//! AX.25: stations on a radio channel, some of them behind a digipeater, and an attacker that uses their callsigns.

use super::flawed::Flawed;
use super::links::{LinkUserBehaviour, LinkUsers, name};
use super::radio::{HostileRadio, RadioConditions};
use super::{Crash, Draw, IdleBudget, LawRun, Replay, RunDigest, RunPlan, catches, sweep};
use crate::ax25::{
    Callsign, Config, Control, Frame, LinkConfig, Modulo, Occupancy, PeerStation, Recovery, Station,
    Unnumbered, Version,
};
use crate::engine::{Engine, Indication, Request};
use crate::fuzz::ax25_frame;
use crate::rng::Rng;
use crate::service::{
    Frames, FramesIndication, FramesRequest, LinkId, Many, Packets, PacketsIndication, Port,
};
use crate::time::{Duration, Instant};
use crate::wrap::Checked;
use bytes::Bytes;

/// The links of a station, without its unconnected frames.
struct StationLinks {
    station: Checked<Station>,
    limits: Occupancy,
    /// True if the provider never indicates that a frame was transmitted.
    untold: bool,
}

impl Engine for StationLinks {
    type Above = Many<LinkId, Packets>;
    type Below = Frames;

    fn handle_request(&mut self, now: Instant, request: Request<Self::Above>) {
        self.station.handle_request(now, Port::First(request));
    }
    fn handle_indication(&mut self, now: Instant, indication: FramesIndication) {
        self.station.handle_indication(now, indication);
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.station.handle_timeout(now);
    }
    fn poll_indication(&mut self, now: Instant) -> Option<Indication<Self::Above>> {
        match self.station.poll_indication(now)? {
            Port::First(indication) => Some(indication),
            Port::Second(indication) => panic!("nobody asked for {indication:?}"),
        }
    }
    fn poll_request(&mut self, now: Instant) -> Option<FramesRequest> {
        let request = self.station.poll_request(now);
        let holds = self.station.engine.holds();
        assert!(holds.within(&self.limits), "it holds {holds:?}, and {:?} is the limit", self.limits);
        match request? {
            FramesRequest::Frame { bytes, last, shares, .. } if self.untold => {
                Some(FramesRequest::Frame { bytes, token: None, last, shares })
            }
            request => Some(request),
        }
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.station.poll_timeout()
    }
}

fn call(text: &str) -> Callsign {
    text.parse().expect("a callsign")
}

fn draw_link(rng: &mut Rng) -> LinkConfig {
    let versions = [Version::Best, Version::Best, Version::Extended, Version::Plain];
    let recoveries = [Recovery::Reject, Recovery::SelectiveReject, Recovery::MultiSelectiveReject];
    LinkConfig {
        version: versions[rng.below(4) as usize],
        information_bytes_max: [32, 128, 256][rng.below(3) as usize],
        window_frames: rng.between(1, 7) as u8,
        extended_window_frames: rng.between(1, 127) as u8,
        recovery: recoveries[rng.below(3) as usize],
        acknowledge_delay: rng.chance(0.3).then(|| rng.span(Duration::ZERO, Duration::from_secs(3))),
        idle_probe: rng.span(Duration::from_secs(20), Duration::from_secs(300)),
        poll_last: rng.chance(0.8),
        unreleased_max: rng.between(1, 64),
        ..LinkConfig::default()
    }
}

/// Stations and their digipeater: two, three, or two out of range of each other with one between.
struct Topology {
    nodes: usize,
    relayed: bool,
}

impl Topology {
    fn draw(rng: &mut Rng) -> Self {
        match rng.below(10) {
            0..=5 => Topology { nodes: 2, relayed: false },
            6 | 7 => Topology { nodes: 3, relayed: false },
            _ => Topology { nodes: 3, relayed: true },
        }
    }

    fn talkers(&self) -> usize {
        if self.relayed { 2 } else { self.nodes }
    }

    fn config(&self, node: usize, link: &LinkConfig, conditions: &RadioConditions) -> Config {
        let mut config = Config::new(call(&name(node)));
        let path = if self.relayed { vec![call(&name(2))] } else { vec![] };
        for peer in (0..self.talkers()).filter(|peer| *peer != node) {
            let peer_of = PeerStation { station: call(&name(peer)), path: path.clone(), link: link.clone() };
            config.peers.insert(LinkId(peer as u32), peer_of);
        }
        config.callers = Some(link.clone());
        config.links_max = 4;
        config.repeats = self.relayed && node == 2;
        config.radio.rate_bps = conditions.rate_bps as u32;
        config.radio.tx_delay = conditions.tx_delay;
        config.radio.full_duplex = matches!(conditions.access, super::radio::ChannelAccess::FullDuplex(_));
        config.transmission_max = Duration::from_secs(if node == 0 { 60 } else { 10 });
        config
    }

    fn calls(&self, rng: &mut Rng) -> Vec<(usize, usize, LinkId)> {
        let pairs = (0..self.talkers()).flat_map(|from| (0..self.talkers()).map(move |to| (from, to)));
        let pairs = pairs.filter(|(from, to)| from != to);
        let mut calls: Vec<_> = pairs.filter(|_| rng.chance(0.6)).collect();
        if calls.is_empty() {
            calls.push((0, 1));
        }
        calls.into_iter().map(|(from, to)| (from, to, LinkId(to as u32))).collect()
    }
}

fn world<N>(replay: &Replay, enemy: bool, dress: impl Fn(StationLinks) -> N) -> RunDigest
where
    N: Engine<Above = Many<LinkId, Packets>, Below = Frames>,
{
    let rng = Rng::new(replay.seed);
    let mut draw = rng.fork("parameters");
    let faults_end_at = Instant::ZERO + draw.span(Duration::from_secs(1), Duration::from_secs(300));
    let cast = Topology::draw(&mut draw);
    let plan = RunPlan {
        faults_end_at,
        crashes: Crash::draw(&mut draw, cast.nodes as u64, faults_end_at),
        patience: Duration::from_secs(8 * 3_600),
        lateness: RunPlan::draw_lateness(&mut draw),
        idle: IdleBudget {
            after: Duration::from_secs(600),
            window: Duration::from_secs(3_600),
            wake_ups: 0,
            carried: 0,
        },
    };
    let mut conditions = RadioConditions::draw(&mut draw, cast.nodes as u64, faults_end_at);
    if enemy {
        conditions.enemy = Some((draw.span(Duration::from_millis(10), Duration::from_secs(5)), forge));
    }
    let deaf: &[(usize, usize)] = if cast.relayed { &[(0, 1), (1, 0)] } else { &[] };
    let mut links: Vec<LinkConfig> = (0..cast.nodes).map(|_| draw_link(&mut draw)).collect();
    if links.iter().any(|link| link.version == Version::Plain) {
        // A station with version 2.2 only cannot connect to one with version 2.0 only.
        let extended = links.iter_mut().filter(|link| link.version == Version::Extended);
        extended.for_each(|link| link.version = Version::Best);
    }
    let configs: Vec<Config> =
        links.iter().enumerate().map(|(node, link)| cast.config(node, link, &conditions)).collect();
    let untold = draw.chance(0.15);
    let habits = LinkUserBehaviour::draw(&mut draw, !enemy);
    let calls = cast.calls(&mut draw);
    let users = LinkUsers::new(rng.fork("users"), habits, cast.nodes, &calls, 25);
    let ground = HostileRadio::new(rng.fork("ground"), conditions, cast.nodes, deaf);
    let factory = |node: usize, _, _| {
        let config: Config = configs[node].clone();
        let limits = Occupancy::limits(&config);
        dress(StationLinks { station: Checked::new("station", Station::new(config)), limits, untold })
    };
    LawRun::new(replay, plan, cast.nodes, Box::new(factory), ground, users).run()
}

/// Frames of an attacker: bursts of connection requests, refusals and frame rejects with the callsigns of the stations,
/// sequence numbers outside every window, identifications with absurd values, segments that never end, received frames
/// with a bit changed, or noise.
fn forge(rng: &mut Rng, last: &Bytes) -> Bytes {
    let modulo = if rng.chance(0.5) { Modulo::Eight } else { Modulo::Extended };
    if rng.chance(0.2) {
        let mut bytes = last.to_vec();
        if !bytes.is_empty() {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << rng.below(8);
        }
        return bytes.into();
    }
    let mut frame = ax25_frame(rng, modulo);
    let strangers = ["N0", "N1", "N2", "X", "Y-3", "Z"];
    frame.address.source = match rng.chance(0.8) {
        true => call(strangers[rng.below(3) as usize]),
        false => call(&format!("X{}", rng.below(10_000))),
    };
    frame.address.destination = call(strangers[rng.below(3) as usize]);
    frame.address.path.clear();
    if let Control::Information { .. } = frame.control
        && rng.chance(0.5)
    {
        frame.pid = crate::ax25::pid::SEGMENT;
    }
    if rng.chance(0.3) {
        let storm = [
            Unnumbered::SetMode,
            Unnumbered::SetModeExtended,
            Unnumbered::Disconnect,
            Unnumbered::DisconnectedMode,
            Unnumbered::Acknowledge,
        ];
        let function = storm[rng.below(5) as usize];
        frame.control = Control::Unnumbered { function, poll_final: rng.chance(0.8) };
        (frame.pid, frame.information) = (0, Bytes::new());
    }
    Frame::to_bytes(&frame, modulo)
}

#[test]
fn ax25_keeps_the_laws_1() {
    sweep("ax25", 0, 500, |replay| world(replay, false, |links| links));
}

#[test]
fn ax25_keeps_the_laws_2() {
    sweep("ax25", 500, 500, |replay| world(replay, false, |links| links));
}

#[test]
fn ax25_survives_its_enemies() {
    sweep("ax25-enemy", 0, 300, |replay| world(replay, true, |links| links));
}

/// Alters the indications of all stations.
fn finds(flaw: &str, law: &str, alter: fn(PacketsIndication) -> Vec<PacketsIndication>) {
    let dress = move |links| {
        Flawed::new(links, move |(link, indication): (LinkId, PacketsIndication)| {
            alter(indication).into_iter().map(|indication| (link, indication)).collect()
        })
    };
    catches(flaw, law, |replay| world(replay, false, dress));
}

#[test]
fn the_laws_find_flaws_in_what_rises_from_links() {
    use PacketsIndication::{Acknowledged, Closed, Packet, Sizes};
    finds("a bit turned", "is not what was sent", |said| match said {
        Packet(packet) if packet.len() > 20 => {
            let mut packet = packet.to_vec();
            packet[15] ^= 1;
            vec![Packet(packet.into())]
        }
        other => vec![other],
    });
    finds("a packet twice", "out of order", |said| match said {
        Packet(_) => vec![said.clone(), said],
        other => vec![other],
    });
    finds("a packet missing", "out of order", |said| match said {
        Packet(packet) if packet[7] == 1 => vec![],
        other => vec![other],
    });
    finds("an early acknowledgement", "acknowledged on", |said| match said {
        Acknowledged(all) => vec![Acknowledged(all + 1)],
        other => vec![other],
    });
    finds("a promise taken back", "were promised", |said| match said {
        Sizes { .. } => vec![Sizes { bytes_max: 16, bytes_best: 16 }],
        other => vec![other],
    });
    finds("no end", "is still open", |said| match said {
        Closed(_) => vec![],
        other => vec![other],
    });
    finds("two ends", "Closed without a connection", |said| match said {
        Closed(_) => vec![said.clone(), said],
        other => vec![other],
    });
}
