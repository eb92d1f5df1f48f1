//! Bundle over a connected AX.25 link, between two stations on a simulated radio channel: by AX25CM-CL (TCPCL 3 on the
//! link) or by AX25-CL, the convergence layer of Longwire.

use crate::packets::{AT, LINK, Since, Transfer, way};
use crate::world::{self, SimulationWithUser, User};
use bytes::Bytes;
use longwire_proto::ax25::Station;
use longwire_proto::joint::{OnFirst, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Bundles, BundlesIndication, BundlesRequest, LinkId, Many, Priority, TransferId,
};
use longwire_proto::time::Duration;
use longwire_proto::{ax25cl, tcpcl};
use longwire_sim::{NodeId, NodeIndication, OnRadio, Simulation};
use longwire_towers::carriers::{Ax25Cl, Ax25Cm};
use longwire_towers::{Neighbours, Plan, Provides};

type Sessions = Many<LinkId, Bundles>;

const TRANSFER: TransferId = TransferId(1);
/// Time after which the set-up of the link is over; shorter than the keep-alive interval.
const SETUP_MAX: Duration = Duration::from_secs(20);

/// Convergence layer over connected-mode AX.25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// AX25CM-CL with its default of an acknowledgement for every eight segments.
    Ax25Cm,
    /// Longwire's own; the caller knows the called node.
    Own,
}

impl Layer {
    /// Sessions of the calling (0) or the called station (1).
    fn sessions(self, at: usize, rng: &Rng) -> Neighbours {
        let plan = match self {
            Layer::Ax25Cm => Plan::new(&Ax25Cm, tcpcl::Config::ax25(&format!("dtn://n{at}"))),
            Layer::Own => {
                let name = |at| format!("ipn:{at}.0");
                let peer_node_id = (at == 0).then(|| name(1));
                let config = ax25cl::Config::default();
                Plan::new(&Ax25Cl, ax25cl::Config { node_id: name(at), peer_node_id, ..config })
            }
        };
        let mut sessions = Neighbours::new(plan.carrier(), rng.clone());
        sessions.set(LINK, plan.clone());
        sessions.answer(plan);
        sessions
    }
}

/// Bundle carried from one station to the other.
#[derive(Clone, Debug)]
pub struct Carried {
    /// Channel and link; its packets are not used.
    pub transfer: Transfer,
    /// Convergence layer.
    pub layer: Layer,
    /// Start of the measured time.
    pub since: Since,
    /// Time that the receiver needs to store a received bundle.
    pub stored_after: Duration,
    /// Encoded bundle.
    pub bundle: Bytes,
}

impl Carried {
    /// Simulates the transfer; returns the seconds until the complete bundle is acknowledged, `None` if it does not
    /// arrive unchanged.
    pub fn seconds(&self, seed: u64) -> Option<f64> {
        let mut world = self.world(seed);
        world.simulation.request(world.user.sender, (LINK, BundlesRequest::Connect));
        let mut began = world.simulation.now();
        world.run_while(|stations| !stations.up).then_some(())?;
        if self.since == Since::Send {
            world.rest(SETUP_MAX);
            began = world.simulation.now();
        }
        world.user.open(&mut world.simulation);
        world.run_while(|stations| !stations.sent).then_some(())?;
        let took = world.simulation.now().saturating_since(began);
        (world.user.heard == self.bundle[..]).then_some(took.as_secs_f64())
    }

    fn world(&self, seed: u64) -> SimulationWithUser<Sessions, Stations> {
        let mut simulation = world::simulation(seed);
        let rng = Rng::new(seed).fork("sessions");
        let (transfer, layer) = (&self.transfer, self.layer);
        let nodes = transfer.stations().into_iter().enumerate().map(|(at, station)| {
            let name = ["sender", "receiver"][at];
            let (rng, tnc, loss) = (rng.fork(name), transfer.tnc.clone(), transfer.loss);
            simulation.add_node(name, move |_| {
                let station = Provides(OnFirst(Station::new(station.clone())));
                let lower = Stack::new(station, way(tnc.as_ref(), loss, &rng));
                Box::new(OnRadio(Stack::new(layer.sessions(at, &rng), lower)))
            })
        });
        let ends: Vec<_> = nodes.map(|node| (node, AT)).collect();
        simulation.add_radio(transfer.radio.clone(), &ends);
        let user = Stations {
            sender: ends[0].0,
            bundle: self.bundle.clone(),
            handed: 0,
            room: 0,
            up: false,
            open: false,
            heard: Vec::new(),
            sent: false,
            failed: false,
            stored_after: self.stored_after,
        };
        SimulationWithUser { simulation, user }
    }
}

/// Sender and receiver of a transfer in progress.
struct Stations {
    sender: NodeId,
    bundle: Bytes,
    /// Bytes passed down.
    handed: usize,
    room: u64,
    /// True while the sender has a session.
    up: bool,
    open: bool,
    heard: Vec<u8>,
    sent: bool,
    failed: bool,
    stored_after: Duration,
}

impl User<Sessions> for Stations {
    fn hear(&mut self, simulation: &mut Simulation<Sessions>, said: NodeIndication<Sessions>) {
        let (_, node, (link, said)) = said;
        let sends = node == self.sender;
        match said {
            BundlesIndication::Up { .. } => self.up |= sends,
            BundlesIndication::Room(room) if sends => self.room = room,
            BundlesIndication::Piece { transfer, data, .. } if !sends => {
                self.heard.extend_from_slice(&data);
                let up_to = self.heard.len() as u64;
                let (at, accept) =
                    (simulation.now() + self.stored_after, BundlesRequest::Accept { transfer, up_to });
                simulation.request_at(at, node, (link, accept));
            }
            BundlesIndication::Sent { .. } => self.sent = true,
            // A link that failed is re-established by the engine.
            BundlesIndication::Failed { .. } | BundlesIndication::Lost { .. } => self.failed = true,
            _ => {}
        }
        self.hand(simulation);
    }

    fn has_failed(&self) -> bool {
        self.failed
    }
}

impl Stations {
    fn open(&mut self, simulation: &mut Simulation<Sessions>) {
        let length = self.bundle.len() as u64;
        let open = BundlesRequest::Open { transfer: TRANSFER, priority: Priority::Normal, length };
        simulation.request(self.sender, (LINK, open));
        self.open = true;
        self.hand(simulation);
    }

    /// Passes down as much of the bundle as there is room for.
    fn hand(&mut self, simulation: &mut Simulation<Sessions>) {
        let left = self.bundle.len() - self.handed;
        if !self.open || self.room == 0 || left == 0 {
            return;
        }
        let bytes = left.min(usize::try_from(self.room).unwrap_or(left));
        let data = self.bundle.slice(self.handed..self.handed + bytes);
        self.handed += bytes;
        self.room -= bytes as u64;
        let last = self.handed == self.bundle.len();
        simulation.request(self.sender, (LINK, BundlesRequest::Piece { transfer: TRANSFER, data, last }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use longwire_sim::RadioConfig;

    #[test]
    fn a_bundle_arrives_and_takes_longer_than_its_packets_alone() {
        let bundle = Bytes::from(vec![0x55; 2000]);
        let packets: Vec<Bytes> = (0..8).map(|at| bundle.slice(at * 250..(at + 1) * 250)).collect();
        for loss in [0.0, 0.1] {
            let transfer = Transfer {
                radio: RadioConfig::default(),
                tnc: None,
                loss,
                window: 4,
                information_bytes: 255,
                packets: packets.clone(),
            };
            for layer in [Layer::Ax25Cm, Layer::Own] {
                let (transfer, bundle) = (transfer.clone(), bundle.clone());
                let stored_after = Duration::from_millis(10);
                let alone = transfer.seconds(Since::Send, 1).expect("it arrives");
                let carried = Carried { transfer, layer, since: Since::Send, stored_after, bundle };
                let with = carried.seconds(1).expect("it arrives");
                assert!(alone < 2.0 * with && with < 3.0 * alone, "{layer:?}: {alone} s alone, {with} s");
                assert!(loss > 0.0 || alone < with, "{layer:?}: {alone} s alone, {with} s");
            }
        }
    }
}
