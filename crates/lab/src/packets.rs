//! Packets over a connected AX.25 link between two stations on a simulated radio channel: AX.25 without bundles.

use crate::world::{self, SimulationWithUser, User};
use bytes::Bytes;
use longwire_proto::ax25::{self, Callsign, LinkConfig, PeerStation, Station, Version};
use longwire_proto::engine::Engine;
use longwire_proto::joint::{OnFirst, PassThrough, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Frames, InterfaceId, LinkId, Many, Packets, PacketsIndication, PacketsRequest,
};
use longwire_proto::time::Duration;
use longwire_proto::wrap::{Impair, ImpairConfig};
use longwire_sim::{NodeId, NodeIndication, OnRadio, RadioConfig, Simulation, Tnc, TncConfig};

pub(crate) type Links = Many<LinkId, Packets>;

pub(crate) const AT: InterfaceId = OnRadio::INTERFACE;
pub(crate) const LINK: LinkId = LinkId(0);
/// Allowance for stations and their controllers in acknowledgement timers, in addition to the time on the channel.
const TURNAROUND_ALLOWANCE: Duration = Duration::from_secs(2);
/// Delay of Linux before it acknowledges by itself (T2).
const LINUX_T2: Duration = Duration::from_secs(3);
/// Time after which the set-up of the link is over.
const SETUP_MAX: Duration = Duration::from_secs(30);

/// Start of the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// The connection request: the link is opened for the transfer.
    Connect,
    /// The send request, on an established link.
    Send,
}

/// Engines between a station and its channel.
pub(crate) type StationTower = Box<dyn Engine<Above = Frames, Below = Frames> + Send>;

/// Creates a controller, if there is one, on a channel that loses a share of the frames.
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

/// Transfer of packets from one station to another.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Channel; both stations have the properties of its first station.
    pub radio: RadioConfig,
    /// Controller between each station and the channel; `None` for an ideal one. With a controller, hosts behave like
    /// Linux: frames go to it as soon as the window allows, the frame that fills the window is acknowledged at once,
    /// and others after 3 s (T2).
    pub tnc: Option<TncConfig>,
    /// Share of frames lost, whatever their length, 0 to 1.
    pub loss: f64,
    /// Window (k), 1 to 7 frames.
    pub window: u8,
    /// Maximum information octets of an I frame (N1).
    pub information_bytes: u32,
    /// Packets, one per I frame.
    pub packets: Vec<Bytes>,
}

impl Transfer {
    /// Seconds until the last acknowledgement; `None` if not every packet arrives unchanged.
    pub fn seconds(&self, since: Since, seed: u64) -> Option<f64> {
        let mut world = self.world(seed);
        let mut began = world.simulation.now();
        world.simulation.request(world.user.sender, (LINK, PacketsRequest::Connect));
        world.run_while(|users| !users.connected).then_some(())?;
        if since == Since::Send {
            world.rest(SETUP_MAX);
            began = world.simulation.now();
        }
        world.user.waiting = self.packets.iter().rev().cloned().collect();
        world.user.send(&mut world.simulation);
        let all = self.packets.len() as u64;
        world.run_while(|users| users.acknowledged < all).then_some(())?;
        let took = world.simulation.now().saturating_since(began);
        (world.user.heard == self.packets).then_some(took.as_secs_f64())
    }

    fn world(&self, seed: u64) -> SimulationWithUser<Links, PacketUsers> {
        let mut simulation = world::simulation(seed);
        let nodes = ["sender", "receiver"].into_iter().zip(self.stations()).map(|(name, config)| {
            let (tnc, loss, rng) = (self.tnc.clone(), self.loss, Rng::new(seed).fork(name));
            simulation.add_node(name, move |_| {
                let station = OnFirst(Station::new(config.clone()));
                Box::new(OnRadio(Stack::new(station, way(tnc.as_ref(), loss, &rng))))
            })
        });
        let ends: Vec<(NodeId, InterfaceId)> = nodes.map(|node| (node, AT)).collect();
        simulation.add_radio(self.radio.clone(), &ends);
        SimulationWithUser { simulation, user: PacketUsers::new(ends[0].0) }
    }

    /// Configurations of both stations: the calling one and the called one.
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

/// Configuration of the link for the host of such a controller: see [`Transfer::tnc`]. Linux sets P in the frame that
/// fills the window, and the receiver acknowledges that frame at once even without P.
pub(crate) fn of_host(tnc: Option<&TncConfig>, link: LinkConfig) -> LinkConfig {
    match tnc {
        None => link,
        Some(_) => LinkConfig { poll_last: false, acknowledge_delay: Some(LINUX_T2), ..link },
    }
}

/// Parameters that a station knows about a channel whose stations are all like the first one.
pub(crate) fn station_radio(radio: &RadioConfig) -> ax25::RadioParameters {
    let station = radio.stations.first().cloned().unwrap_or_default();
    ax25::RadioParameters {
        rate_bps: radio.rate_bps as u32,
        tx_delay: station.tx_delay,
        tx_tail: station.tx_tail,
        slot_time: station.slot_time,
        persistence: station.persistence,
        full_duplex: radio.full_duplex,
        turnaround: station.carrier_off + TURNAROUND_ALLOWANCE,
    }
}

pub(crate) fn callsign(text: &str) -> Callsign {
    text.parse().expect("a callsign")
}

/// Users of both ends of a transfer in progress.
pub(crate) struct PacketUsers {
    pub(crate) sender: NodeId,
    pub(crate) connected: bool,
    room: u64,
    /// Packets to be sent, in reverse order.
    pub(crate) waiting: Vec<Bytes>,
    acknowledged: u64,
    pub(crate) heard: Vec<Bytes>,
    pub(crate) heard_bytes: usize,
    /// True when a link has ended.
    closed: bool,
}

impl User<Links> for PacketUsers {
    fn hear(&mut self, simulation: &mut Simulation<Links>, said: NodeIndication<Links>) {
        let (_, node, (link, said)) = said;
        let sends = node == self.sender;
        match said {
            PacketsIndication::Connected { .. } => self.connected |= sends,
            PacketsIndication::Room(room) if sends => self.room = room,
            PacketsIndication::Acknowledged(count) if sends => self.acknowledged = count,
            PacketsIndication::Packet(packet) => {
                self.heard_bytes += packet.len();
                self.heard.push(packet);
                simulation.request(node, (link, PacketsRequest::Release(1)));
            }
            PacketsIndication::Closed(_) => self.closed = true,
            PacketsIndication::Room(_)
            | PacketsIndication::Sizes { .. }
            | PacketsIndication::Acknowledged(_) => {}
        }
        self.send(simulation);
    }

    fn has_failed(&self) -> bool {
        self.closed
    }
}

impl PacketUsers {
    pub(crate) fn new(sender: NodeId) -> PacketUsers {
        PacketUsers {
            sender,
            connected: false,
            room: 0,
            waiting: Vec::new(),
            acknowledged: 0,
            heard: Vec::new(),
            heard_bytes: 0,
            closed: false,
        }
    }

    /// Sends as many packets as there is room for.
    pub(crate) fn send(&mut self, simulation: &mut Simulation<Links>) {
        while self.room > 0 {
            let Some(packet) = self.waiting.pop() else { return };
            self.room -= 1;
            simulation.request(self.sender, (LINK, PacketsRequest::payload(packet)));
        }
    }
}
