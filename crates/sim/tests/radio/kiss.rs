//! Stations and nodes whose controllers are programs with KISS, such as Dire Wolf: the host always has room, and is
//! informed neither when the channel is won nor when a frame has left.

use crate::ax25::{Do, Met, Transfers, User, call};
use crate::bundles::{Courier, Errands, ours, run_until_sent};
use crate::nodes::{AT, run};
use bytes::{Bytes, BytesMut};
use longwire_proto::ax25::{
    self, ChannelMonitor, Control, Frame, LinkConfig, Modulo, PeerStation, Station, Unnumbered, Version,
};
use longwire_proto::controller::{self, ChannelParameters};
use longwire_proto::engine::{Engine, Service, no_timers};
use longwire_proto::joint::{OnFirst, Stack};
use longwire_proto::kiss::{self, Acknowledgement, Checksum, Command, Deframer, enclose};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    CloseReason, Frames, FramesIndication, FramesRequest, LinkId, Shares, Stream, StreamIndication,
    StreamRequest,
};
use longwire_proto::time::{Duration, Instant};
use longwire_sim::*;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

const OWN: LinkId = LinkId(0);
const FILE_BYTES: usize = 20_000;
const LINE_ROOM: u64 = 1 << 20;

/// Program with a modem that accepts hosts over KISS. Like Dire Wolf 1.6 it drops frames with a request for
/// acknowledgement, unless it `acknowledges`. It loses received frames with the given probability.
struct Program {
    acknowledges: bool,
    lost: f64,
    dice: Rng,
    deframer: Deframer,
    queue: VecDeque<(Bytes, Option<u64>)>,
    wants_join: bool,
    seized: bool,
    room: u32,
    said: VecDeque<StreamIndication>,
}

impl Program {
    fn new(acknowledges: bool, lost: f64, dice: Rng) -> Self {
        Program {
            acknowledges,
            lost,
            dice,
            deframer: Deframer::new(),
            queue: VecDeque::new(),
            wants_join: false,
            seized: false,
            room: 0,
            said: VecDeque::new(),
        }
    }

    fn read(&mut self, mut bytes: Bytes) {
        while let Some(mut content) = self.deframer.next(&mut bytes) {
            match kiss::Frame::decode(&mut content).expect("a host speaks KISS").body {
                Command::Data(bytes) => self.queue.push_back((bytes, None)),
                Command::DataAcknowledged { token, bytes } if self.acknowledges => {
                    self.queue.push_back((bytes, Some(token.into())));
                }
                _ => {}
            }
        }
        self.said.push_back(StreamIndication::Room(LINE_ROOM));
    }

    fn say(&mut self, body: Command) {
        let mut line = BytesMut::new();
        enclose(&kiss::Frame { port: 0, body }, Checksum::None, &mut line);
        self.said.push_back(StreamIndication::Data(line.freeze()));
    }
}

impl Engine for Program {
    type Above = Stream;
    type Below = Frames;

    no_timers!();

    fn handle_request(&mut self, _: Instant, request: StreamRequest) {
        match request {
            StreamRequest::Connect => {
                self.wants_join = true;
                self.said.extend([StreamIndication::Connected, StreamIndication::Room(LINE_ROOM)]);
            }
            StreamRequest::Write(bytes) => self.read(bytes),
            _ => {}
        }
    }
    fn handle_indication(&mut self, _: Instant, said: FramesIndication) {
        match said {
            FramesIndication::Room(room) => (self.room, self.seized) = (room, false),
            FramesIndication::Frame(_) if self.dice.chance(self.lost) => {}
            FramesIndication::Frame(bytes) => self.say(Command::Data(bytes)),
            FramesIndication::Transmitted(token) => {
                self.say(Command::DataAcknowledged { token: token as u16, bytes: Bytes::new() });
            }
            FramesIndication::Busy(_) | FramesIndication::Carrier(_) => {}
        }
    }
    fn poll_indication(&mut self, _now: Instant) -> Option<StreamIndication> {
        self.said.pop_front()
    }
    fn poll_request(&mut self, _: Instant) -> Option<FramesRequest> {
        if core::mem::take(&mut self.wants_join) {
            return Some(FramesRequest::Join);
        }
        if self.queue.is_empty() {
            return None;
        }
        if self.room == 0 {
            return (!core::mem::replace(&mut self.seized, true)).then_some(FramesRequest::Seize);
        }
        let (bytes, token) = self.queue.pop_front()?;
        self.room -= 1;
        // A frame that arrives before the transmitter is unkeyed joins the transmission.
        Some(FramesRequest::Frame { bytes, token, last: false, shares: Shares::default() })
    }
}

/// Two hosts, each with its own program.
#[derive(Clone, Copy)]
struct Air {
    rate_bps: u64,
    /// Window, frames; above 7: modulo 128.
    window: u8,
    /// Probability of the loss of a frame.
    lost: f64,
    /// True if the programs report transmitted frames.
    acknowledges: bool,
    acknowledgement: Acknowledgement,
}

const AIR: Air = Air {
    rate_bps: 9600,
    window: 7,
    lost: 0.0,
    acknowledges: false,
    acknowledgement: Acknowledgement::Never,
};

/// Transmitted frame: sender, beginning and end.
#[derive(Clone, Debug)]
struct Said {
    from: NodeId,
    started: Instant,
    left: Instant,
    bytes: Bytes,
}

/// Result of a world.
struct Carried {
    took_s: f64,
    said: Vec<Said>,
}

impl Carried {
    /// Returns the number of unnumbered frames of this kind.
    fn unnumbered(&self, wanted: Unnumbered) -> usize {
        let mut watcher = ChannelMonitor::new();
        let controls =
            self.said.iter().map(|said| watcher.hear(said.bytes.clone()).expect("a frame").frame.control);
        controls
            .filter(|control| matches!(control, Control::Unnumbered { function, .. } if *function == wanted))
            .count()
    }

    /// Returns the number of I frames in each transmission of the calling station.
    fn key_ups(&self) -> Vec<usize> {
        let (mut watcher, mut key_ups, mut end) = (ChannelMonitor::new(), Vec::new(), None);
        for said in &self.said {
            let heard = watcher.hear(said.bytes.clone()).expect("stations send frames");
            if said.from != NodeId(0) || !matches!(heard.frame.control, Control::Information { .. }) {
                continue;
            }
            match key_ups.last_mut() {
                Some(count) if end == Some(said.started) => *count += 1,
                _ => key_ups.push(1),
            }
            end = Some(said.left);
        }
        key_ups
    }
}

impl Air {
    fn world<A: Service + 'static>(
        self,
        seed: u64,
        upper: impl Fn(
            usize,
            Rng,
            Stack<Station, kiss::KissTnc>,
        ) -> Box<dyn Engine<Above = A, Below = Stream> + Send>
        + Clone
        + Send
        + 'static,
    ) -> (Simulation<A>, Arc<Mutex<Vec<Said>>>) {
        let ms = Duration::from_millis;
        let station = StationConfig {
            tx_delay: ms(150),
            slot_time: ms(20),
            access: Access::WaitThenDraw,
            ..StationConfig::default()
        };
        let mut world = Simulation::new(seed);
        let nodes = [0, 1].map(|at: usize| {
            let upper = upper.clone();
            let name = ["A", "B"][at];
            world.add_node(name, move |boot| {
                let lower = Stack::new(self.station(at), self.tnc(at));
                let program = Program::new(self.acknowledges, self.lost, boot.rng.fork("lost"));
                let host = upper(at, Rng::new(seed).fork(&boot.name), lower);
                Box::new(OnRadio(Stack::new(host, program)))
            })
        });
        let radio =
            RadioConfig { rate_bps: self.rate_bps, stations: vec![station], ..RadioConfig::default() };
        world.add_radio(radio, &nodes.map(|node| (node, AT)));
        let said = Arc::new(Mutex::new(Vec::new()));
        let sink = said.clone();
        world.set_trace(Box::new(move |record| {
            if let (Some(started), Some(left)) = (record.started, record.left) {
                let said = Said { from: record.from.node, started, left, bytes: record.bytes };
                sink.lock().expect("one thread").push(said);
            }
        }));
        (world, said)
    }

    fn station(self, at: usize) -> Station {
        let radio = ax25::RadioParameters {
            rate_bps: self.rate_bps as u32,
            tx_delay: Duration::from_millis(150),
            slot_time: Duration::from_millis(20),
            ..ax25::RadioParameters::default()
        };
        let link = LinkConfig {
            version: if self.window > 7 { Version::Best } else { Version::Plain },
            window_frames: self.window.min(7),
            extended_window_frames: self.window,
            // A plain link that is given up is not reconnected.
            retries: 40,
            ..LinkConfig::default()
        };
        let mut config = ax25::Config { radio, ..ax25::Config::new(call(["A", "B"][at])) };
        config.callers = Some(link.clone());
        if at == 0 {
            config.peers.insert(OWN, PeerStation { station: call("B"), path: Vec::new(), link });
        }
        Station::new(config)
    }

    fn tnc(self, at: usize) -> kiss::KissTnc {
        let channel = ChannelParameters {
            rate_bps: self.rate_bps as u32,
            tx_delay: Duration::from_millis(150),
            slot_time: Duration::from_millis(20),
            ..ChannelParameters::default()
        };
        let config = kiss::Config { acknowledgement: self.acknowledgement, ..kiss::Config::default() };
        let identification = Frame::identification(call(["A", "B"][at])).to_bytes(Modulo::Eight);
        kiss::KissTnc::new(config, controller::Config { channel, ..controller::Config::default() })
            .probing(identification)
    }

    /// Transfers a file from node to node, until the sender has its acknowledgement.
    fn nodes(self, seed: u64) -> Carried {
        let (mut world, said) = self.world::<Errands>(seed, |at, rng, lower| {
            Box::new(Stack::new(Courier::new(ours(at, rng)), OnFirst(lower)))
        });
        let mut bundle = vec![0; FILE_BYTES + 100];
        Rng::new(1).fork("file").fill(&mut bundle);
        world.request(NodeId(0), Some(bundle.clone().into()));
        let took_s = run_until_sent(&mut world, &bundle);
        let said = said.lock().expect("one thread").clone();
        Carried { took_s, said }
    }

    /// Transfers only the file over the plain link, until all of it is acknowledged.
    fn stations(self, seed: u64) -> Carried {
        let (mut world, said) =
            self.world::<Transfers>(seed, |_, _, lower| Box::new(Stack::new(User::default(), lower)));
        let mut file = vec![0; FILE_BYTES];
        Rng::new(1).fork("file").fill(&mut file);
        let packets: Vec<Bytes> = file.chunks(256).map(Bytes::copy_from_slice).collect();
        let all = packets.len() as u64;
        world.request(NodeId(0), Do::Connect);
        world.request(NodeId(0), Do::Send(packets));
        let mut heard = Vec::new();
        let took_s = run(&mut world, |_, met| match met {
            Met::Acknowledged(count) => count == all,
            Met::Packet(packet) => {
                heard.extend_from_slice(&packet);
                false
            }
            Met::Closed(why) => panic!("seed {seed}: closed: {why:?}"),
            Met::Connected => false,
        });
        assert!(heard == file, "seed {seed}: every byte is as it was sent");
        let said = said.lock().expect("one thread").clone();
        Carried { took_s, said }
    }
}

fn mean(runs: u64, of: impl Fn(u64) -> Carried) -> f64 {
    (0..runs).map(|seed| of(seed).took_s).sum::<f64>() / runs as f64
}

/// All frames of a bundle that are pending at one moment leave in one transmission, and only the last one polls: a
/// controller with room before it has the channel must not cause the first of seven frames to be sent alone.
#[test]
fn a_node_fills_its_windows_whatever_room_there_is() {
    for window in [7, 32] {
        let key_ups = Air { window, ..AIR }.nodes(1).key_ups();
        let (last, full) = key_ups.split_last().expect("frames were sent");
        assert!(full.iter().all(|frames| *frames == usize::from(window)), "{key_ups:?}");
        assert!(*last <= usize::from(window));
    }
}

/// Dire Wolf 1.6 drops the frame that tests for reports of transmission. That has no effect: the link is up, no poll is
/// repeated, and no time is lost.
#[test]
fn finding_out_what_a_tnc_knows_costs_nothing() {
    for window in [7, 32] {
        let air = Air { window, ..AIR };
        for acknowledges in [false, true] {
            let probing = Air { acknowledgement: Acknowledgement::Probe, acknowledges, ..air };
            let carried = probing.nodes(3);
            let calls =
                [Unnumbered::SetMode, Unnumbered::SetModeExtended].map(|call| carried.unnumbered(call));
            assert_eq!(calls.iter().sum::<usize>(), 1, "k = {window}: the link stands");
            assert_eq!(carried.unnumbered(Unnumbered::DisconnectedMode), 0);
            // Each of the two identifies itself once, if its identification is transmitted.
            assert_eq!(carried.unnumbered(Unnumbered::Information), if acknowledges { 2 } else { 0 });
        }
        let probing = Air { acknowledgement: Acknowledgement::Probe, ..air };
        let (never, took) = (mean(20, |seed| air.nodes(seed)), mean(20, |seed| probing.nodes(seed)));
        assert!(took <= 1.01 * never, "k = {window}: {took} s, {never} s without");
    }
}

/// Without losses, and with a tenth and a quarter of all frames lost.
#[test]
fn nodes_take_hardly_longer_than_bare_stations() {
    let rows = [(7, 0.0, 20), (32, 0.0, 20), (7, 0.1, 60), (32, 0.1, 200), (7, 0.25, 200), (32, 0.25, 200)];
    for (window, lost, runs) in rows {
        let air = Air { window, lost, ..AIR };
        let (bare, took) = (mean(runs, |seed| air.stations(seed)), mean(runs, |seed| air.nodes(seed)));
        println!(
            "k={window}, {} % lost: station {bare:.2} s, node {took:.2} s, {:.3}",
            100.0 * lost,
            took / bare
        );
        assert!(took <= 1.05 * bare, "k = {window}, {lost}: {took} s beside {bare} s");
    }
}

/// AX.25 6.2, 6.3.5: the called station loses its state in the middle of a file. It reports this at the next poll,
/// which has the P bit of the modulo of the link, so the calling station need not poll ten times at growing intervals.
#[test]
fn a_caller_hears_at_once_that_the_called_station_was_started_again() {
    for window in [7, 32] {
        let (mut world, _) = Air { window, ..AIR }
            .world::<Transfers>(5, |_, _, lower| Box::new(Stack::new(User::default(), lower)));
        let packets = (0..200_u8).map(|number| Bytes::from(vec![number; 256])).collect();
        world.request(NodeId(0), Do::Connect);
        world.request(NodeId(0), Do::Send(packets));
        let (mut crashed, mut closed) = (None, None);
        while closed.is_none() {
            assert!(world.step(), "nothing happens any more\n{}", world.status());
            while let Some((at, node, met)) = world.pop_indication() {
                match met {
                    Met::Acknowledged(count) if count > 60 && crashed.is_none() => {
                        crashed = Some(at);
                        world.crash(NodeId(1));
                        world.restart(NodeId(1));
                    }
                    Met::Closed(why) if node == NodeId(0) => closed = Some((at, why)),
                    _ => {}
                }
            }
        }
        let ((at, why), crashed) = (closed.expect("just seen"), crashed.expect("it was acknowledged"));
        assert_eq!(why, CloseReason::Reset);
        // The frames in flight, and one poll with its response.
        let took = at.saturating_since(crashed);
        assert!(took < Duration::from_secs(20), "k = {window}: {took:?}");
    }
}
