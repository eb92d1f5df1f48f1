//! Packets over a connected AX.25 link between two stations on a simulated radio channel: AX.25 by itself, without bundles.

use crate::internet::station_radio;
use bytes::Bytes;
use longwire_proto::ax25::{self, Callsign, LinkConfig, PeerStation, Station, Version};
use longwire_proto::engine::Engine;
use longwire_proto::joint::{PassThrough, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Both, Datagrams, Frames, InterfaceId, LinkId, Many, Packets, PacketsIndication, PacketsRequest, Port,
};
use longwire_proto::time::Duration;
use longwire_proto::wrap::{Impair, ImpairConfig};
use longwire_sim::{
    ClockConfig, DiskConfig, Factory, NodeId, OnRadio, RadioConfig, Simulation, Tnc, TncConfig,
};

type Links = Both<Many<LinkId, Packets>, Many<LinkId, Datagrams>>;

pub(crate) const AT: InterfaceId = OnRadio::INTERFACE;
pub(crate) const LINK: LinkId = LinkId(0);
/// What Linux waits for before it acknowledges on its own (T2).
const LINUX_T2: Duration = Duration::from_secs(3);
/// What belongs to the call is over after this, seconds.
const CALM_S: u64 = 30;
/// No transfer is watched longer than this, seconds.
const WATCHED_S: u64 = 100_000;

/// When the clock starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// With the call: what carries is opened for what is sent.
    Call,
    /// With the wish to send, on a link that stands.
    Wish,
}

/// What stands between a station and its channel.
pub(crate) type StationTower = Box<dyn Engine<Above = Frames, Below = Frames> + Send>;

/// A controller, if there is one, on a channel on which a share of frames does not arrive.
pub(crate) fn way(tnc: Option<&TncConfig>, loss: f64, rng: &Rng) -> StationTower {
    let controller: StationTower = match tnc {
        None => Box::new(PassThrough::<Frames>::new()),
        Some(tnc) => Box::new(Tnc::new(tnc.clone())),
    };
    if loss == 0.0 {
        return controller;
    }
    let config = ImpairConfig { loss, down: false, ..ImpairConfig::default() };
    Box::new(Stack::new(controller, Impair::<Frames>::new(config, rng.fork("loss"))))
}

/// A transfer of packets from one station to another.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// The channel; both stations are like its first one.
    pub radio: RadioConfig,
    /// The controller between each station and the channel; none: an ideal one.
    /// With one, hosts are as Linux has them: frames go to it as soon as the window allows, the one that fills the window
    /// is answered at once, and others after 3 s (T2).
    pub tnc: Option<TncConfig>,
    /// The share of frames that do not arrive, whatever their length, 0 to 1.
    pub loss: f64,
    /// The window (k), 1 to 7 frames.
    pub window: u8,
    /// Information octets of an I frame at most (N1).
    pub information_bytes: u32,
    /// The packets, each an I frame.
    pub packets: Vec<Bytes>,
}

impl Transfer {
    /// Seconds to the last acknowledgement; none if not every packet arrives as it was sent.
    pub fn seconds(&self, since: Since, seed: u64) -> Option<f64> {
        let mut stage = Stage::set(self, seed);
        let mut began = stage.world.now();
        stage.world.request(stage.sender, Port::First((LINK, PacketsRequest::Connect)));
        stage.run(|stage| !stage.connected).then_some(())?;
        if since == Since::Wish {
            stage.world.run_until(stage.world.now() + Duration::from_secs(CALM_S));
            stage.act();
            began = stage.world.now();
        }
        stage.waiting = self.packets.iter().rev().cloned().collect();
        stage.send();
        let all = self.packets.len() as u64;
        stage.run(|stage| stage.acknowledged < all).then_some(())?;
        let took = stage.world.now().saturating_since(began);
        (stage.heard == self.packets).then_some(took.as_secs_f64())
    }

    /// Both stations: the one that calls, and the one that is called.
    pub(crate) fn stations(&self) -> [ax25::Config; 2] {
        let peer = PeerStation { station: callsign("N0CALL-2"), path: Vec::new(), link: self.link() };
        [self.station("N0CALL-1", Some(peer)), self.station("N0CALL-2", None)]
    }

    fn station(&self, own: &str, peer: Option<PeerStation>) -> ax25::Config {
        let mut config = ax25::Config::new(callsign(own));
        config.radio = station_radio(&self.radio);
        config.callers = Some(self.link());
        config.peers.extend(peer.map(|peer| (LINK, peer)));
        config
    }

    fn link(&self) -> LinkConfig {
        let link = LinkConfig {
            version: Version::Plain,
            window_frames: self.window,
            information_bytes_max: self.information_bytes,
            ..LinkConfig::default()
        };
        of_host(self.tnc.as_ref(), link)
    }
}

/// A link as the host of such a controller has it: see [`Transfer::tnc`]. Linux asks (P) with the frame that fills the
/// window, and the recipient answers that frame at once without being asked.
pub(crate) fn of_host(tnc: Option<&TncConfig>, link: LinkConfig) -> LinkConfig {
    match tnc {
        None => link,
        Some(_) => LinkConfig { poll_last: false, acknowledge_delay: Some(LINUX_T2), ..link },
    }
}

fn callsign(text: &str) -> Callsign {
    text.parse().expect("a callsign")
}

/// A transfer in progress.
struct Stage {
    world: Simulation<Links>,
    sender: NodeId,
    connected: bool,
    room: u64,
    /// The last one first.
    waiting: Vec<Bytes>,
    acknowledged: u64,
    heard: Vec<Bytes>,
    /// A link ended.
    closed: bool,
}

impl Stage {
    fn set(transfer: &Transfer, seed: u64) -> Stage {
        let mut world: Simulation<Links> = Simulation::new(seed);
        let nodes = ["sender", "receiver"].into_iter().zip(transfer.stations()).map(|(name, config)| {
            let (tnc, loss, rng) = (transfer.tnc.clone(), transfer.loss, Rng::new(seed).fork(name));
            let factory: Factory<Links> = Box::new(move |_| {
                Box::new(OnRadio(Stack::new(Station::new(config.clone()), way(tnc.as_ref(), loss, &rng))))
            });
            world.add_node(name, DiskConfig::default(), ClockConfig::default(), factory)
        });
        let ends: Vec<(NodeId, InterfaceId)> = nodes.map(|node| (node, AT)).collect();
        world.add_radio(transfer.radio.clone(), &ends);
        Stage {
            world,
            sender: ends[0].0,
            connected: false,
            room: 0,
            waiting: Vec::new(),
            acknowledged: 0,
            heard: Vec::new(),
            closed: false,
        }
    }

    /// Plays on while this holds; false if it can hold for ever.
    fn run(&mut self, goes_on: impl Fn(&Stage) -> bool) -> bool {
        let limit = self.world.now() + Duration::from_secs(WATCHED_S);
        self.act();
        while goes_on(self) {
            if self.closed || self.world.now() >= limit || !self.world.step() {
                return false;
            }
            self.act();
        }
        true
    }

    /// Both users do their part.
    fn act(&mut self) {
        while let Some((_, node, said)) = self.world.pop_indication() {
            let Port::First((id, said)) = said else { continue };
            let sends = node == self.sender;
            match said {
                PacketsIndication::Connected { .. } => self.connected |= sends,
                PacketsIndication::Room(room) if sends => self.room = room,
                PacketsIndication::Room(_) | PacketsIndication::Sizes { .. } => {}
                PacketsIndication::Acknowledged(count) if sends => self.acknowledged = count,
                PacketsIndication::Acknowledged(_) => {}
                PacketsIndication::Packet(packet) => {
                    self.heard.push(packet);
                    self.world.request(node, Port::First((id, PacketsRequest::Release(1))));
                }
                PacketsIndication::Closed(_) => self.closed = true,
            }
            self.send();
        }
    }

    fn send(&mut self) {
        while self.room > 0 {
            let Some(packet) = self.waiting.pop() else { return };
            self.room -= 1;
            self.world.request(self.sender, Port::First((LINK, PacketsRequest::Packet(packet))));
        }
    }
}
