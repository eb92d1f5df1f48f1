//! AX.25 over radio channels: plain links compared with the closed form, and a digipeater between hidden stations.

use crate::nodes::*;
use bytes::Bytes;
use longwire_proto::ax25::{self, Callsign, LinkConfig, PeerStation, Station, Version};
use longwire_proto::engine::{Engine, Indication, Request, Service, no_timers};
use longwire_proto::joint::Stack;
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Both, CloseReason, Datagrams, LinkId, Many, Packets, PacketsIndication, PacketsRequest, Port,
};
use longwire_proto::time::{Duration, Instant};
use longwire_proto::wrap::Checked;
use longwire_sim::*;
use std::collections::VecDeque;

/// Service of a [`User`].
#[derive(Debug)]
pub(crate) enum Transfers {}

impl Service for Transfers {
    type Request = Do;
    type Indication = Met;
}

/// Request through [`Transfers`].
#[derive(Debug)]
pub(crate) enum Do {
    Connect,
    Send(Vec<Bytes>),
}

/// Indication through [`Transfers`].
#[derive(Debug)]
pub(crate) enum Met {
    Connected,
    Acknowledged(u64),
    Packet(Bytes),
    Closed(CloseReason),
}

/// Sends packets as room allows, and releases received ones.
#[derive(Default)]
pub(crate) struct User {
    requests: VecDeque<(LinkId, PacketsRequest)>,
    to_send: VecDeque<Bytes>,
    room: u64,
    met: VecDeque<Met>,
}

impl Engine for User {
    type Above = Transfers;
    type Below = Both<Many<LinkId, Packets>, Many<LinkId, Datagrams>>;

    no_timers!();

    fn handle_request(&mut self, _: Instant, request: Do) {
        match request {
            Do::Connect => self.requests.push_back((OWN, PacketsRequest::Connect)),
            Do::Send(packets) => self.to_send.extend(packets),
        }
    }
    fn handle_indication(&mut self, _: Instant, indication: Indication<Self::Below>) {
        let Port::First((id, said)) = indication else { return };
        match said {
            PacketsIndication::Connected { .. } => self.met.push_back(Met::Connected),
            PacketsIndication::Sizes { .. } => {}
            PacketsIndication::Room(room) => self.room = room,
            PacketsIndication::Packet(packet) => {
                self.met.push_back(Met::Packet(packet));
                self.requests.push_back((id, PacketsRequest::Release(1)));
            }
            PacketsIndication::Acknowledged(count) => self.met.push_back(Met::Acknowledged(count)),
            PacketsIndication::Closed(why) => self.met.push_back(Met::Closed(why)),
        }
    }
    fn poll_indication(&mut self, _now: Instant) -> Option<Met> {
        self.met.pop_front()
    }
    fn poll_request(&mut self, _: Instant) -> Option<Request<Self::Below>> {
        if let Some(request) = self.requests.pop_front() {
            return Some(Port::First(request));
        }
        let packet = if self.room > 0 { self.to_send.pop_front() } else { None }?;
        self.room -= 1;
        Some(Port::First((OWN, PacketsRequest::payload(packet))))
    }
}

const OWN: LinkId = LinkId(0);
/// Length of the file of the published tables: 28 frames of 255 bytes and one of 42.
const FILE_BYTES: usize = 7182;
const PAYLOAD_BYTES: usize = 255;

pub(crate) fn call(text: &str) -> Callsign {
    text.parse().expect("a callsign")
}

/// Returns the channel parameters that the link layer assumes.
pub(crate) fn believed(radio: &RadioConfig, at: usize) -> ax25::RadioParameters {
    let station = match &radio.stations[..] {
        [] => StationConfig::default(),
        [one] => one.clone(),
        all => all[at].clone(),
    };
    ax25::RadioParameters {
        rate_bps: radio.rate_bps as u32,
        tx_delay: station.tx_delay,
        tx_tail: station.tx_tail,
        slot_time: station.slot_time,
        persistence: station.persistence,
        full_duplex: radio.full_duplex,
        turnaround: Duration::from_secs(2),
    }
}

pub(crate) fn link(window: u8) -> LinkConfig {
    LinkConfig { version: Version::Plain, window_frames: window, ..LinkConfig::default() }
}

/// Stations A, B, C ..; A connects to B by this path.
pub(crate) struct Rig {
    pub(crate) world: Simulation<Transfers>,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) channel: ChannelId,
    acknowledged: u64,
    connected: bool,
    pub(crate) heard: Vec<Bytes>,
}

impl Rig {
    pub(crate) fn new(seed: u64, count: usize, radio: &RadioConfig, window: u8, path: &[&str]) -> Self {
        Rig::with_tncs(seed, count, radio, window, path, None)
    }

    pub(crate) fn with_tncs(
        seed: u64,
        count: usize,
        radio: &RadioConfig,
        window: u8,
        path: &[&str],
        tnc: Option<&TncConfig>,
    ) -> Self {
        Rig::with_link(seed, count, radio, &link(window), path, tnc)
    }

    pub(crate) fn with_link(
        seed: u64,
        count: usize,
        radio: &RadioConfig,
        link: &LinkConfig,
        path: &[&str],
        tnc: Option<&TncConfig>,
    ) -> Self {
        let mut world: Simulation<Transfers> = Simulation::new(seed);
        let names = &["A", "B", "C", "D"][..count];
        let add = |(at, name): (usize, &&str)| {
            let mut config = ax25::Config::new(call(name));
            config.radio = believed(radio, at);
            config.callers = Some(link.clone());
            config.repeats = path.contains(name);
            if at == 0 {
                let path = path.iter().map(|name| call(name)).collect();
                config.peers.insert(OWN, PeerStation { station: call("B"), path, link: link.clone() });
            }
            let tnc = tnc.cloned();
            world.add_node(name, move |boot| {
                let station = Checked::new(&boot.name, Station::new(config.clone()));
                let station = Stack::new(User::default(), station);
                match &tnc {
                    None => Box::new(OnRadio(station)),
                    Some(tnc) => {
                        let tnc = Checked::new(&format!("{}'s TNC", boot.name), Tnc::new(tnc.clone()));
                        Box::new(OnRadio(Stack::new(station, tnc)))
                    }
                }
            })
        };
        let nodes: Vec<NodeId> = names.iter().enumerate().map(add).collect();
        let ends: Vec<_> = nodes.iter().map(|node| (*node, AT)).collect();
        let channel = world.add_radio(radio.clone(), &ends);
        Rig { world, nodes, channel, acknowledged: 0, connected: false, heard: Vec::new() }
    }

    /// Records the indications to the users at both ends.
    fn listen(&mut self) {
        while let Some((_, node, met)) = self.world.pop_indication() {
            match met {
                Met::Connected => self.connected |= node == self.nodes[0],
                Met::Acknowledged(count) => self.acknowledged = count,
                Met::Packet(packet) => self.heard.push(packet),
                Met::Closed(why) => panic!("{node:?} closed: {why:?}"),
            }
        }
    }

    fn run(&mut self, limit: Instant, goes_on: impl Fn(&Rig) -> bool) {
        self.listen();
        while goes_on(self) {
            assert!(self.world.step(), "nothing happens any more\n{}", self.world.status());
            assert!(self.world.now() < limit, "not done by {limit}\n{}", self.world.status());
            self.listen();
        }
    }

    pub(crate) fn connect(&mut self) {
        self.world.request(self.nodes[0], Do::Connect);
        self.run(Instant::from_secs(200), |rig| !rig.connected);
        // Frames that belong to the connection request have ended.
        self.world.run_until(self.world.now() + Duration::from_secs(30));
    }

    /// Returns the time from the request to send to the last acknowledgement.
    pub(crate) fn transfer(&mut self, packets: &[Bytes]) -> Duration {
        let (before, since) = (self.acknowledged, self.world.now());
        self.world.request(self.nodes[0], Do::Send(packets.to_vec()));
        let all = before + packets.len() as u64;
        self.run(since + Duration::from_secs(4000), |rig| rig.acknowledged < all);
        self.world.now().saturating_since(since)
    }
}

pub(crate) fn packets(count: usize, bytes: usize) -> Vec<Bytes> {
    let mut rng = Rng::new(11);
    let packet = |_| {
        let mut packet = vec![0; bytes];
        rng.fill(&mut packet);
        Bytes::from(packet)
    };
    (0..count).map(packet).collect()
}

pub(crate) fn file() -> Vec<Bytes> {
    let mut frames = packets(FILE_BYTES / PAYLOAD_BYTES, PAYLOAD_BYTES);
    frames.extend(packets(1, FILE_BYTES % PAYLOAD_BYTES));
    frames
}

/// Bits of an I frame and the flag after it, with one stuffed bit per 62 bits of payload.
fn information_bits(payload: usize) -> f64 {
    63.0 / 62.0 * 8.0 * payload as f64 + 8.0 * 19.0
}

/// Address, control, check sequence and two flags, without stuffing.
const RR_BITS: f64 = 8.0 * 19.0;

/// Closed form: for each window, the channel access, TXDELAY, a flag, its frames and TXTAIL, and the same for its
/// acknowledgement, without the final TXTAIL.
pub(crate) fn closed_form(station: &StationConfig, rate_bps: f64, frames: &[Bytes], window: usize) -> f64 {
    let windows = frames.len().div_ceil(window) as f64;
    let payload: f64 = frames.iter().map(|frame| information_bits(frame.len())).sum();
    let access = station.access_mean().as_secs_f64();
    let (delay, tail) = (station.tx_delay.as_secs_f64(), station.tx_tail.as_secs_f64());
    let turns = 2.0 * (access + delay + tail);
    windows * (turns + (8.0 + RR_BITS) / rate_bps) + payload / rate_bps - tail
}

/// Returns the time from the connection request to the last acknowledgement, seconds.
pub(crate) fn called_and_carried(seed: u64, radio: &RadioConfig, window: u8, packets: &[Bytes]) -> f64 {
    let mut rig = Rig::new(seed, 2, radio, window, &[]);
    rig.world.request(rig.nodes[0], Do::Connect);
    rig.transfer(packets).as_secs_f64()
}

/// Returns the mean time over the runs for one channel and window, seconds.
fn simulated(radio: &RadioConfig, window: u8, frames: &[Bytes], runs: u64) -> f64 {
    let run = |seed| {
        let mut rig = Rig::new(seed, 2, radio, window, &[]);
        rig.connect();
        let took = rig.transfer(frames);
        assert_eq!(rig.heard, frames, "seed {seed}");
        took.as_secs_f64()
    };
    (0..runs).map(run).sum::<f64>() / runs as f64
}

#[test]
fn a_file_takes_what_the_closed_form_says() {
    let file = file();
    assert_eq!(file.len(), 29);
    for rate_bps in [1200, 9600] {
        for (access, slot_ms) in
            [(Access::DrawThenWait, 20), (Access::WaitThenDraw, 20), (Access::Uniform, 100)]
        {
            let station = StationConfig {
                tx_delay: Duration::from_millis(150),
                slot_time: Duration::from_millis(slot_ms),
                access,
                ..StationConfig::default()
            };
            let radio = RadioConfig { rate_bps, stations: vec![station.clone()], ..RadioConfig::default() };
            for window in 1..=7 {
                let expected = closed_form(&station, rate_bps as f64, &file, usize::from(window));
                let took = simulated(&radio, window, &file, 40);
                let off = took / expected - 1.0;
                println!(
                    "{rate_bps} {access:?} k={window}: {took:.3} s, closed form {expected:.3} s, {:+.2} %",
                    100.0 * off
                );
                assert!(
                    off.abs() < 0.02,
                    "{rate_bps} bit/s, {access:?}, k = {window}: {took} s, not {expected} s"
                );
            }
        }
    }
}

/// With a window of one frame nothing overlaps even on a full-duplex channel: both transmitters are keyed again for
/// every frame, and only TXTAIL ends before the other side transmits.
fn alone_and_answered(station: &StationConfig, rate_bps: f64) -> f64 {
    let bits = 8.0 + information_bits(256) + RR_BITS;
    2.0 * station.tx_delay.as_secs_f64() + bits / rate_bps
}

#[test]
fn full_duplex_takes_the_time_of_the_frames() {
    let frames = packets(600, 256);
    let station = StationConfig { tx_delay: Duration::from_millis(150), ..StationConfig::default() };
    for rate_bps in [1200, 9600] {
        let radio = RadioConfig {
            rate_bps,
            full_duplex: true,
            stations: vec![station.clone()],
            ..RadioConfig::default()
        };
        for window in 1..=7 {
            let expected = match window {
                1 => 600.0 * alone_and_answered(&station, rate_bps as f64),
                _ => 600.0 * information_bits(256) / rate_bps as f64,
            };
            let took = simulated(&radio, window, &frames, 1);
            let off = took / expected - 1.0;
            println!(
                "{rate_bps} k={window}: {took:.2} s, closed form {expected:.2} s, {:+.2} %",
                100.0 * off
            );
            assert!(off.abs() < 0.01, "{rate_bps} bit/s, k = {window}: {took} s, not {expected} s");
        }
    }
}

#[test]
fn a_digipeater_joins_two_that_do_not_hear_each_other() {
    let station = StationConfig { tx_delay: Duration::from_millis(150), ..StationConfig::default() };
    let paths = vec![PathConfig::deaf(0, 1), PathConfig::deaf(1, 0)];
    let radio = RadioConfig { rate_bps: 9600, stations: vec![station], paths, ..RadioConfig::default() };
    let file = file();
    let mut rig = Rig::new(4, 3, &radio, 4, &["C"]);
    rig.connect();
    rig.transfer(&file);
    assert_eq!(rig.heard, file);
    // C has repeated all frames.
    let repeated = rig.world.radio_airtime(rig.channel, (rig.nodes[2], AT)).repeated;
    let bits: u64 = file.iter().map(|frame| 8 * frame.len() as u64).sum();
    assert!(repeated as f64 / 1e9 > bits as f64 / 9600.0);
}

#[test]
fn a_lossy_channel_loses_frames_and_the_link_none() {
    let radio = RadioConfig { rate_bps: 9600, errors: Errors::Ber(1e-4), ..RadioConfig::default() };
    let file = file();
    for seed in 0..10 {
        let mut rig = Rig::new(seed, 2, &radio, 7, &[]);
        rig.connect();
        rig.transfer(&file);
        assert_eq!(rig.heard, file, "seed {seed}");
        let counters = rig.world.radio_counters(rig.channel, (rig.nodes[0], AT), (rig.nodes[1], AT));
        assert!(counters.check_failed > 0, "seed {seed}: {counters:?}");
    }
}
