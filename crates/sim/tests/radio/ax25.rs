//! AX.25 over radio channels: raw links against the closed form, and a digipeater between hidden stations.

use crate::nodes::*;
use bytes::Bytes;
use longwire_proto::ax25::{self, Callsign, LinkConfig, Peer, Station, Version};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Both, Datagrams, LinkId, Many, Packets, PacketsIndication, PacketsRequest, Port,
};
use longwire_proto::time::{Duration, Instant};
use longwire_proto::wrap::Lawful;
use longwire_sim::*;

type Links = Both<Many<LinkId, Packets>, Many<LinkId, Datagrams>>;

const OWN: LinkId = LinkId(0);
/// The file of the published tables: 28 frames of 255 bytes and one of 42.
const FILE_BYTES: usize = 7182;
const PAYLOAD_BYTES: usize = 255;

fn call(text: &str) -> Callsign {
    text.parse().expect("a callsign")
}

/// What the link layer believes of the channel.
fn believed(radio: &RadioConfig, at: usize) -> ax25::Radio {
    let station = match &radio.stations[..] {
        [] => StationConfig::default(),
        [one] => one.clone(),
        all => all[at].clone(),
    };
    ax25::Radio {
        rate_bps: radio.rate_bps as u32,
        tx_delay: station.tx_delay,
        tx_tail: station.tx_tail,
        slot_time: station.slot_time,
        persistence: station.persistence,
        full_duplex: radio.full_duplex,
        turnaround: Duration::from_secs(2),
    }
}

fn link(window: u8) -> LinkConfig {
    LinkConfig { version: Version::Plain, window_frames: window, ..LinkConfig::default() }
}

/// Stations A, B, C ..; A calls B, by this path.
struct Rig {
    world: Simulation<Links>,
    nodes: Vec<NodeId>,
    channel: ChannelId,
    to_send: Vec<Bytes>,
    room: u64,
    acknowledged: u64,
    connected: bool,
    heard: Vec<Bytes>,
    caller: LinkId,
}

impl Rig {
    fn new(seed: u64, count: usize, radio: &RadioConfig, window: u8, path: &[&str]) -> Self {
        let mut world: Simulation<Links> = Simulation::new(seed);
        let names = &["A", "B", "C", "D"][..count];
        let add = |(at, name): (usize, &&str)| {
            let mut config = ax25::Config::new(call(name));
            config.radio = believed(radio, at);
            config.callers = Some(link(window));
            config.repeats = path.contains(name);
            if at == 0 {
                let path = path.iter().map(|name| call(name)).collect();
                config.peers.insert(OWN, Peer { station: call("B"), path, link: link(window) });
            }
            let factory: Factory<Links> = Box::new(move |boot| {
                Box::new(OnRadio(Lawful::new(&boot.name, Station::new(config.clone()))))
            });
            world.add_node(name, DiskConfig::default(), ClockConfig::default(), factory)
        };
        let nodes: Vec<NodeId> = names.iter().enumerate().map(add).collect();
        let ends: Vec<_> = nodes.iter().map(|node| (*node, AT)).collect();
        let channel = world.add_radio(radio.clone(), &ends);
        let (to_send, heard) = (Vec::new(), Vec::new());
        let caller = LinkId(LinkId::FIRST_INCOMING);
        Rig { world, nodes, channel, to_send, room: 0, acknowledged: 0, connected: false, heard, caller }
    }

    /// Lets the users at both ends do their part.
    fn act(&mut self) {
        while let Some((_, node, said)) = self.world.pop_indication() {
            let Port::First((id, said)) = said else { continue };
            match said {
                PacketsIndication::Connected { .. } if node == self.nodes[0] => self.connected = true,
                PacketsIndication::Connected { .. } => self.caller = id,
                PacketsIndication::Room(room) if node == self.nodes[0] => self.room = room,
                PacketsIndication::Acknowledged(count) => self.acknowledged = count,
                PacketsIndication::Packet(packet) => {
                    self.heard.push(packet);
                    self.world.request(node, Port::First((id, PacketsRequest::Release(1))));
                }
                PacketsIndication::Closed(why) => panic!("{node:?} closed: {why:?}"),
                PacketsIndication::Room(_) => {}
            }
            while self.room > 0 && !self.to_send.is_empty() {
                self.room -= 1;
                let packet = self.to_send.remove(0);
                self.world.request(self.nodes[0], Port::First((OWN, PacketsRequest::Packet(packet))));
            }
        }
    }

    fn run(&mut self, limit: Instant, goes_on: impl Fn(&Rig) -> bool) {
        self.act();
        while goes_on(self) {
            assert!(self.world.step(), "nothing happens any more\n{}", self.world.status());
            assert!(self.world.now() < limit, "not done by {limit}\n{}", self.world.status());
            self.act();
        }
    }

    fn connect(&mut self) {
        self.world.request(self.nodes[0], Port::First((OWN, PacketsRequest::Connect)));
        self.run(Instant::from_secs(200), |rig| !rig.connected);
        // What belongs to the call is over.
        self.world.run_until(self.world.now() + Duration::from_secs(30));
    }

    /// From the wish to send to the last acknowledgement.
    fn transfer(&mut self, packets: &[Bytes]) -> Duration {
        let (before, since) = (self.acknowledged, self.world.now());
        self.to_send = packets.to_vec();
        // Room was told before there was anything to send.
        self.start();
        let all = before + packets.len() as u64;
        self.run(since + Duration::from_secs(4000), |rig| rig.acknowledged < all);
        self.world.now().saturating_since(since)
    }

    fn start(&mut self) {
        while self.room > 0 && !self.to_send.is_empty() {
            self.room -= 1;
            let packet = self.to_send.remove(0);
            self.world.request(self.nodes[0], Port::First((OWN, PacketsRequest::Packet(packet))));
        }
    }
}

fn packets(count: usize, bytes: usize) -> Vec<Bytes> {
    let mut rng = Rng::new(11);
    let packet = |_| {
        let mut packet = vec![0; bytes];
        rng.fill(&mut packet);
        Bytes::from(packet)
    };
    (0..count).map(packet).collect()
}

fn file() -> Vec<Bytes> {
    let mut frames = packets(FILE_BYTES / PAYLOAD_BYTES, PAYLOAD_BYTES);
    frames.extend(packets(1, FILE_BYTES % PAYLOAD_BYTES));
    frames
}

/// Bits of an I frame and the flag behind it, one in 62 of its payload stuffed.
fn information_bits(payload: usize) -> f64 {
    63.0 / 62.0 * 8.0 * payload as f64 + 8.0 * 19.0
}

/// Address, control, check sequence and two flags, nothing stuffed.
const RR_BITS: f64 = 8.0 * 19.0;

/// The closed form: for each window, the way to the channel, TXDELAY, a flag, its frames and TXTAIL, and the same for its
/// acknowledgement. The tail behind the last one is not waited for.
fn closed_form(station: &StationConfig, rate_bps: f64, frames: &[Bytes], window: usize) -> f64 {
    let windows = frames.len().div_ceil(window) as f64;
    let payload: f64 = frames.iter().map(|frame| information_bits(frame.len())).sum();
    let access = station.access_mean().as_secs_f64();
    let (delay, tail) = (station.tx_delay.as_secs_f64(), station.tx_tail.as_secs_f64());
    let turns = 2.0 * (access + delay + tail);
    windows * (turns + (8.0 + RR_BITS) / rate_bps) + payload / rate_bps - tail
}

/// Of one channel and window: the mean of so many runs, seconds.
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
        for window in 2..=7 {
            let expected = 600.0 * information_bits(256) / rate_bps as f64;
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
    // C has sent all of it once more.
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
