//! Transfer of a file from one host to another through two controllers connected by wire.

use bytes::Bytes;
use longwire_proto::ax25::{
    self, Callsign, ChannelMonitor, LinkConfig, PeerStation, Station, Version, Windows,
};
use longwire_proto::rng::Rng;
use longwire_proto::service::{LinkId, Many, Packets, PacketsIndication, PacketsRequest};
use longwire_proto::time::Duration;
use longwire_sim::{
    Access, ClockConfig, Controller, ControllerConfig, DiskConfig, Factory, NodeId, OnRadio, RadioConfig,
    Simulation, StationConfig,
};
use std::sync::{Arc, Mutex};

const LINK: LinkId = LinkId(0);
const SENDER: &str = "N0CALL-1";
const RECIPIENT: &str = "N0CALL-2";
/// Delay between the connection request and the start of the file, seconds; the set-up of the link is over by then.
const CALM_S: u64 = 60;
/// Time limit of a transfer, seconds.
const WATCHED_S: u64 = 100_000;
/// Acknowledgement timer, longer than any controller needs: nothing is lost on a wire.
const PATIENCE: Duration = Duration::from_secs(60);

/// One of the two controllers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Side {
    /// Configuration of the controller.
    pub(super) controller: ControllerConfig,
    /// True if the last frame of each transmission has the P bit set.
    pub(super) polls: bool,
}

/// Transfer between two controllers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Transfer {
    /// Rate between the controllers, bit/s.
    pub(super) rate_bps: u64,
    /// Window (k), 1 to 7 frames.
    pub(super) window: u8,
    /// Information octets of an I frame (N1).
    pub(super) information_bytes: u32,
    /// File length, bytes.
    pub(super) file_bytes: u64,
    /// Time from key-up to the first frame (T103).
    pub(super) tx_delay: Duration,
    /// Slot time (T102).
    pub(super) slot_time: Duration,
    /// Sending side.
    pub(super) sender: Side,
    /// Receiving side.
    pub(super) recipient: Side,
}

/// Result of a transfer.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Time from the first character on the serial line of the sender to the last character on that of the receiver,
    /// seconds.
    pub(super) seconds: f64,
    /// Bits of the file divided by that time, bit/s.
    pub(super) throughput_bps: f64,
    /// Number of transmissions with each number of I frames before an acknowledgement.
    pub(super) windows: Windows,
}

impl Outcome {
    /// Mean number of I frames before an acknowledgement.
    pub(super) fn mean_window(&self) -> f64 {
        let count: u64 = self.windows.values().sum();
        let frames: u64 = self.windows.iter().map(|(window, count)| u64::from(*window) * count).sum();
        frames as f64 / count as f64
    }

    /// Share of windows larger than this number of frames.
    pub(super) fn share_beyond(&self, frames: u32) -> f64 {
        let beyond: u64 = self.windows.range(frames + 1..).map(|(_, count)| count).sum();
        beyond as f64 / self.windows.values().sum::<u64>() as f64
    }
}

impl Transfer {
    /// Simulates the transfer.
    ///
    /// # Panics
    /// Panics if the file does not arrive unchanged: a wire loses nothing.
    pub(super) fn play(&self, seed: u64) -> Outcome {
        let mut file = vec![0; self.file_bytes as usize];
        Rng::new(seed).fork("file").fill(&mut file);
        let file = Bytes::from(file);
        let mut stage = Stage::set(self, seed);
        stage.world.request(stage.sender, (LINK, PacketsRequest::Connect));
        stage.run(|stage| !stage.connected);
        stage.world.run_until(stage.world.now() + Duration::from_secs(CALM_S));
        stage.act();
        let since = stage.world.now();
        let bytes = self.information_bytes as usize;
        let pieces = (0..file.len()).step_by(bytes).rev();
        stage.waiting = pieces.map(|at| file.slice(at..file.len().min(at + bytes))).collect();
        stage.send();
        stage.run(|stage| stage.heard.len() < file.len());
        assert!(stage.heard == file[..], "the file is what was sent");
        let seconds = stage.world.now().saturating_since(since).as_secs_f64();
        let windows = stage.watcher.lock().expect("nobody panics").windows();
        Outcome {
            seconds,
            throughput_bps: 8.0 * self.file_bytes as f64 / seconds,
            windows: windows.get(&callsign(SENDER)).cloned().unwrap_or_default(),
        }
    }

    /// Wire as in the model of the paper: the sender waits for a slot, the acknowledging station does not.
    fn radio(&self) -> RadioConfig {
        let plain = StationConfig {
            tx_delay: self.tx_delay,
            tx_tail: Duration::ZERO,
            slot_time: self.slot_time,
            ..StationConfig::default()
        };
        let sender = StationConfig { access: Access::Uniform, ..plain.clone() };
        let recipient = StationConfig { access: Access::DrawThenWait, persistence: 255, ..plain };
        RadioConfig { rate_bps: self.rate_bps, stations: vec![sender, recipient], ..RadioConfig::default() }
    }

    fn station(&self, own: &str, peer: Option<&str>, polls: bool) -> ax25::Config {
        let link = |window_frames| LinkConfig {
            version: Version::Plain,
            window_frames,
            information_bytes_max: self.information_bytes,
            acknowledge_delay: Some(Duration::ZERO),
            poll_last: polls,
            ..LinkConfig::default()
        };
        let mut config = ax25::Config::new(callsign(own));
        config.radio = ax25::RadioParameters {
            rate_bps: self.rate_bps as u32,
            tx_delay: self.tx_delay,
            turnaround: PATIENCE,
            ..ax25::RadioParameters::default()
        };
        let peer = peer.map(|peer| PeerStation {
            station: callsign(peer),
            path: Vec::new(),
            link: link(self.window),
        });
        config.peers.extend(peer.map(|peer| (LINK, peer)));
        // The called station does not know the window of the caller.
        config.callers = Some(link(7));
        config
    }
}

fn callsign(text: &str) -> Callsign {
    text.parse().expect("a callsign")
}

type Links = Many<LinkId, Packets>;

/// Transfer in progress.
struct Stage {
    world: Simulation<Links>,
    watcher: Arc<Mutex<ChannelMonitor>>,
    sender: NodeId,
    connected: bool,
    room: u64,
    /// Data to be written, in reverse order.
    waiting: Vec<Bytes>,
    heard: Vec<u8>,
}

impl Stage {
    fn set(transfer: &Transfer, seed: u64) -> Stage {
        let mut world: Simulation<Links> = Simulation::new(seed);
        let sides = [(SENDER, Some(RECIPIENT), transfer.sender), (RECIPIENT, None, transfer.recipient)];
        let nodes = sides.map(|(own, peer, side)| {
            let station = transfer.station(own, peer, side.polls);
            let (controller, bytes) = (side.controller, transfer.information_bytes);
            let factory: Factory<Links> = Box::new(move |_| {
                let station = Station::new(station.clone());
                Box::new(OnRadio(Controller::new(controller, station, bytes)))
            });
            world.add_node(own, DiskConfig::default(), ClockConfig::default(), factory)
        });
        world.add_radio(transfer.radio(), &nodes.map(|node| (node, OnRadio::INTERFACE)));
        let watcher = Arc::new(Mutex::new(ChannelMonitor::new()));
        let hears = watcher.clone();
        world.set_trace(Box::new(move |record| {
            // All frames come from our own engine, so every one can be decoded.
            let _ = hears.lock().expect("nobody panics").hear(record.bytes);
        }));
        let heard = Vec::new();
        Stage { world, watcher, sender: nodes[0], connected: false, room: 0, waiting: Vec::new(), heard }
    }

    fn run(&mut self, goes_on: impl Fn(&Stage) -> bool) {
        let limit = self.world.now() + Duration::from_secs(WATCHED_S);
        self.act();
        while goes_on(self) {
            let lasts = self.world.now() < limit && self.world.step();
            assert!(lasts, "a transfer that does not end\n{}", self.world.status());
            self.act();
        }
    }

    /// Lets both hosts act.
    fn act(&mut self) {
        while let Some((_, node, (link, said))) = self.world.pop_indication() {
            let sends = node == self.sender;
            match said {
                PacketsIndication::Connected { .. } => self.connected |= sends,
                PacketsIndication::Room(room) if sends => self.room = room,
                PacketsIndication::Packet(packet) => {
                    self.heard.extend_from_slice(&packet);
                    self.world.request(node, (link, PacketsRequest::Release(1)));
                }
                PacketsIndication::Sizes { .. }
                | PacketsIndication::Room(_)
                | PacketsIndication::Acknowledged(_) => {}
                PacketsIndication::Closed(why) => panic!("a wire loses nothing: {why:?}"),
            }
            self.send();
        }
    }

    fn send(&mut self) {
        while self.room > 0 {
            let Some(packet) = self.waiting.pop() else { return };
            self.room -= 1;
            self.world.request(self.sender, (LINK, PacketsRequest::Packet(packet)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ax25::Model;
    use crate::stats;
    use longwire_sim::Firmware;

    fn ideal() -> Side {
        let controller = ControllerConfig {
            serial_bps: 1_000_000,
            megacycles_per_s: 1.0,
            memory_bytes: 65_536,
            firmware: Firmware::default(),
        };
        Side { controller, polls: true }
    }

    /// The model of the paper assumes controllers without delays.
    #[test]
    fn without_controllers_it_is_the_model() {
        for rate_bps in [1200, 9600, 38_400] {
            for window in [1, 4, 7] {
                let transfer = Transfer {
                    rate_bps,
                    window,
                    information_bytes: 256,
                    file_bytes: 256 * 840,
                    tx_delay: Duration::from_millis(300),
                    slot_time: Duration::from_millis(100),
                    sender: ideal(),
                    recipient: ideal(),
                };
                let outcomes = [1, 2, 3, 4].map(|seed| transfer.play(seed));
                let throughputs = outcomes.each_ref().map(|outcome| outcome.throughput_bps);
                let theory = Model::zielinski().throughput_bps(rate_bps as f64, u32::from(window));
                let off = stats::mean(&throughputs) / theory - 1.0;
                assert!(off.abs() < 0.02, "{rate_bps} bit/s, k = {window}: {off}");
                let full = |outcome: &Outcome| outcome.mean_window() > f64::from(window) - 0.1;
                assert!(outcomes.iter().all(full), "{outcomes:?}");
            }
        }
    }
}
