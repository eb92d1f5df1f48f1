//! Transfer of a file from one host to another through two packet-radio controllers connected by wire.

use crate::packets::{LINK, Links, PacketUsers, callsign};
use crate::stats;
use crate::world::{self, SimulationWithUser};
use bytes::Bytes;
use longwire_proto::ax25::{self, ChannelMonitor, LinkConfig, PeerStation, Station, Version, Windows};
use longwire_proto::rng::Rng;
use longwire_proto::service::PacketsRequest;
use longwire_proto::time::Duration;
use longwire_sim::{Access, Controller, ControllerConfig, OnRadio, RadioConfig, StationConfig};
use std::sync::{Arc, Mutex};

const SENDER: &str = "N0CALL-1";
const RECIPIENT: &str = "N0CALL-2";
/// Time after which the set-up of the link is over.
const SETUP_MAX: Duration = Duration::from_secs(60);
/// Allowance in acknowledgement timers, longer than any controller needs: nothing is lost on a wire.
const TURNAROUND_ALLOWANCE: Duration = Duration::from_secs(60);

/// One of the two controllers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Side {
    /// Configuration of the controller.
    pub controller: ControllerConfig,
    /// True if the last frame of each transmission has the P bit set.
    pub polls: bool,
}

/// Transfer between two controllers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transfer {
    /// Rate between the controllers, bit/s.
    pub rate_bps: u64,
    /// Window (k), 1 to 7 frames.
    pub window: u8,
    /// Information octets of an I frame (N1).
    pub information_bytes: u32,
    /// File length, bytes.
    pub file_bytes: u64,
    /// Time from key-up to the first frame (T103).
    pub tx_delay: Duration,
    /// Slot time (T102).
    pub slot_time: Duration,
    /// Sending side.
    pub sender: Side,
    /// Receiving side.
    pub recipient: Side,
}

/// Result of a transfer.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Time from the first character on the serial line of the sender to the last character on that of the receiver,
    /// seconds.
    pub seconds: f64,
    /// Bits of the file divided by that time, bit/s.
    pub throughput_bps: f64,
    /// Number of transmissions with each number of I frames before an acknowledgement.
    pub windows: Windows,
}

impl Outcome {
    /// Mean number of I frames before an acknowledgement.
    pub fn mean_window(&self) -> f64 {
        let count: u64 = self.windows.values().sum();
        let frames: u64 = self.windows.iter().map(|(window, count)| u64::from(*window) * count).sum();
        frames as f64 / count as f64
    }
}

/// Shares of the windows of 1 to 7 frames in some transfers.
pub fn shares<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> [f64; 7] {
    let mut counts = [0; 7];
    for (window, count) in outcomes.into_iter().flat_map(|outcome| &outcome.windows) {
        counts[*window as usize - 1] += count;
    }
    let all: u64 = counts.iter().sum();
    counts.map(|count| count as f64 / all as f64)
}

impl Transfer {
    /// Mean throughput of the transfers with the first `seeds` seeds, bit/s.
    pub fn mean_throughput_bps(&self, seeds: u64) -> f64 {
        stats::mean((0..seeds).map(|seed| self.play(seed).throughput_bps))
    }

    /// Simulates the transfer.
    ///
    /// # Panics
    /// Panics if the file does not arrive unchanged: a wire loses nothing.
    pub fn play(&self, seed: u64) -> Outcome {
        let mut file = vec![0; self.file_bytes as usize];
        Rng::new(seed).fork("file").fill(&mut file);
        let file = Bytes::from(file);
        let (mut world, watcher) = self.world(seed);
        world.simulation.request(world.user.sender, (LINK, PacketsRequest::Connect));
        let run = |world: &mut SimulationWithUser<Links, PacketUsers>,
                   goes_on: &dyn Fn(&PacketUsers) -> bool| {
            let ends = world.run_while(goes_on);
            assert!(ends, "a transfer that does not end\n{}", world.simulation.status());
        };
        run(&mut world, &|users| !users.connected);
        world.rest(SETUP_MAX);
        let since = world.simulation.now();
        let bytes = self.information_bytes as usize;
        let pieces = (0..file.len()).step_by(bytes).rev();
        world.user.waiting = pieces.map(|at| file.slice(at..file.len().min(at + bytes))).collect();
        world.user.send(&mut world.simulation);
        run(&mut world, &|users| users.heard_bytes < file.len());
        assert!(world.user.heard.concat() == file, "the file is what was sent");
        let seconds = world.simulation.now().saturating_since(since).as_secs_f64();
        let windows = watcher.lock().expect("nobody panics").windows();
        Outcome {
            seconds,
            throughput_bps: 8.0 * self.file_bytes as f64 / seconds,
            windows: windows.get(&callsign(SENDER)).cloned().unwrap_or_default(),
        }
    }

    /// Creates both hosts with their controllers, and an observer of the channel.
    fn world(&self, seed: u64) -> (SimulationWithUser<Links, PacketUsers>, Arc<Mutex<ChannelMonitor>>) {
        let mut simulation = world::simulation(seed);
        let sides = [(SENDER, Some(RECIPIENT), self.sender), (RECIPIENT, None, self.recipient)];
        let nodes = sides.map(|(own, peer, side)| {
            let station = self.station(own, peer, side.polls);
            let (controller, bytes) = (side.controller, self.information_bytes);
            simulation.add_node(own, move |_| {
                let station = Station::new(station.clone());
                Box::new(OnRadio(Controller::new(controller, station, bytes)))
            })
        });
        simulation.add_radio(self.radio(), &nodes.map(|node| (node, OnRadio::INTERFACE)));
        let watcher = Arc::new(Mutex::new(ChannelMonitor::new()));
        let hears = watcher.clone();
        simulation.set_trace(Box::new(move |record| {
            // All frames come from our own engine, so every one can be decoded.
            let _ = hears.lock().expect("nobody panics").hear(record.bytes);
        }));
        (SimulationWithUser { simulation, user: PacketUsers::new(nodes[0]) }, watcher)
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
            turnaround: TURNAROUND_ALLOWANCE,
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
                let off = stats::mean(throughputs) / theory - 1.0;
                assert!(off.abs() < 0.02, "{rate_bps} bit/s, k = {window}: {off}");
                let full = |outcome: &Outcome| outcome.mean_window() > f64::from(window) - 0.1;
                assert!(outcomes.iter().all(full), "{outcomes:?}");
            }
        }
    }
}
