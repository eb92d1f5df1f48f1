//! A bundle over AX25CM-CL, TCPCL 3 on a connected AX.25 link, between two stations on a simulated radio channel.

use crate::packets::{AT, LINK, PacketsOnly, Transfer};
use bytes::Bytes;
use longwire_proto::joint::{Fan, Origin, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{
    Bundles, BundlesIndication, BundlesRequest, LinkId, Many, Priority, TransferId,
};
use longwire_proto::tcpcl::{Config, Packaging, PacketSession, Session};
use longwire_proto::time::Duration;
use longwire_sim::{ClockConfig, DiskConfig, Factory, FrameSink, NodeId, OnRadio, Simulation, Tnc};

type Sessions = Many<LinkId, Bundles>;
type Make = Box<dyn FnMut(LinkId, Origin) -> Option<PacketSession> + Send>;

const TRANSFER: TransferId = TransferId(1);
/// No transfer is watched longer than this, seconds.
const WATCHED_S: u64 = 100_000;

/// Seconds from the call to the acknowledgement of the whole bundle; none if it does not arrive as it was sent. What the
/// receiver hears is safe at once: storage takes no time.
pub fn bundle_seconds(transfer: &Transfer, bundle: &Bytes, seed: u64) -> Option<f64> {
    bundle_seconds_with(transfer, bundle, seed, None)
}

/// The same, while somebody hears of every frame.
pub fn bundle_seconds_with(
    transfer: &Transfer,
    bundle: &Bytes,
    seed: u64,
    trace: Option<FrameSink>,
) -> Option<f64> {
    let mut stage = Stage::set(transfer, bundle.clone(), seed);
    trace.into_iter().for_each(|sink| stage.world.set_trace(sink));
    stage.world.request(stage.sender, (LINK, BundlesRequest::Connect));
    let limit = stage.world.now() + Duration::from_secs(WATCHED_S);
    while !stage.sent {
        if stage.failed || stage.world.now() >= limit || !stage.world.step() {
            return None;
        }
        stage.act();
    }
    (stage.heard == bundle[..]).then(|| stage.world.now().as_secs_f64())
}

fn sessions(name: &str, rng: &Rng) -> Fan<LinkId, PacketSession, Make> {
    let (config, rng) = (Config::ax25(name), rng.fork(name));
    Fan::new(Box::new(move |link: LinkId, origin| {
        let rng = rng.fork(&format!("{link:?}"));
        let session = match origin {
            Origin::Above => Session::active(config.clone(), rng),
            Origin::Below => Session::passive(config.clone(), rng),
        };
        Some(Stack::new(session, Packaging::new()))
    }))
}

/// A bundle on its way.
struct Stage {
    world: Simulation<Sessions>,
    sender: NodeId,
    bundle: Bytes,
    /// Bytes that were handed down.
    handed: usize,
    room: u64,
    open: bool,
    heard: Vec<u8>,
    sent: bool,
    failed: bool,
}

impl Stage {
    fn set(transfer: &Transfer, bundle: Bytes, seed: u64) -> Stage {
        let mut world: Simulation<Sessions> = Simulation::new(seed);
        let rng = Rng::new(seed).fork("sessions");
        let names = ["dtn://sender", "dtn://receiver"];
        let nodes = names.into_iter().zip(transfer.stations()).map(|(name, station)| {
            let (rng, tnc) = (rng.clone(), transfer.tnc.clone());
            let factory: Factory<Sessions> = Box::new(move |_| {
                let link = PacketsOnly::new(station.clone());
                let sessions = sessions(name, &rng);
                match &tnc {
                    None => Box::new(OnRadio(Stack::new(sessions, link))),
                    Some(tnc) => {
                        let lower = Stack::new(link, Tnc::new(tnc.clone()));
                        Box::new(OnRadio(Stack::new(sessions, lower)))
                    }
                }
            });
            world.add_node(name, DiskConfig::default(), ClockConfig::default(), factory)
        });
        let ends: Vec<_> = nodes.map(|node| (node, AT)).collect();
        world.add_radio(transfer.radio.clone(), &ends);
        let sender = ends[0].0;
        let heard = Vec::new();
        Stage { world, sender, bundle, handed: 0, room: 0, open: false, heard, sent: false, failed: false }
    }

    /// Both users do their part.
    fn act(&mut self) {
        while let Some((_, node, (link, said))) = self.world.pop_indication() {
            let sends = node == self.sender;
            match said {
                BundlesIndication::Up { .. } if sends => {
                    let length = self.bundle.len() as u64;
                    let open =
                        BundlesRequest::Open { transfer: TRANSFER, priority: Priority::Normal, length };
                    self.world.request(node, (link, open));
                    self.open = true;
                }
                BundlesIndication::Room(room) if sends => self.room = room,
                BundlesIndication::Piece { transfer, data, .. } if !sends => {
                    self.heard.extend_from_slice(&data);
                    let up_to = self.heard.len() as u64;
                    self.world.request(node, (link, BundlesRequest::Accept { transfer, up_to }));
                }
                BundlesIndication::Sent { .. } => self.sent = true,
                BundlesIndication::Down { .. }
                | BundlesIndication::Failed { .. }
                | BundlesIndication::Lost { .. } => self.failed = true,
                _ => {}
            }
            self.hand();
        }
    }

    /// As much of the bundle as there is room for.
    fn hand(&mut self) {
        let left = self.bundle.len() - self.handed;
        if !self.open || self.room == 0 || left == 0 {
            return;
        }
        let bytes = left.min(usize::try_from(self.room).unwrap_or(left));
        let data = self.bundle.slice(self.handed..self.handed + bytes);
        self.handed += bytes;
        self.room -= bytes as u64;
        let last = self.handed == self.bundle.len();
        self.world.request(self.sender, (LINK, BundlesRequest::Piece { transfer: TRANSFER, data, last }));
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
        let transfer =
            Transfer { radio: RadioConfig::default(), tnc: None, window: 4, information_bytes: 255, packets };
        let (alone, with) = (transfer.seconds(1), bundle_seconds(&transfer, &bundle, 1));
        let (alone, with) = (alone.expect("it arrives"), with.expect("it arrives"));
        assert!(alone < with && with < 3.0 * alone, "{alone} s alone, {with} s as a bundle");
    }
}
