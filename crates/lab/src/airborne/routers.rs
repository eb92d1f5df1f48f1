//! Routers for comparison, over the same network layer: epidemic, spray and wait, static. Neighbours exchange no summary
//! vectors: a copy is sent to learn that a neighbour has the packet, so transmissions are an upper bound.

use longwire_proto::packet_router::{Decision, NeighbourState, NodeAddress, PacketRouter, RoutedPacket};
use longwire_proto::time::Instant;
use std::collections::BTreeMap;

/// The destination, if it is a neighbour.
fn direct(packet: &RoutedPacket<'_>, neighbours: &[NeighbourState]) -> Option<Decision> {
    let found = neighbours.iter().find(|neighbour| neighbour.node == packet.destination);
    found.map(|neighbour| Decision::Forward(neighbour.node))
}

/// First neighbour that has not had the packet.
fn new_one(packet: &RoutedPacket<'_>, neighbours: &[NeighbourState]) -> Option<NodeAddress> {
    let mut all = neighbours.iter().map(|neighbour| neighbour.node);
    all.find(|node| !packet.given.contains(node) && *node != packet.source)
}

/// A copy to every node that is met.
#[derive(Debug)]
pub(super) struct Epidemic;

impl PacketRouter for Epidemic {
    fn decide(
        &mut self,
        _now: Instant,
        packet: &RoutedPacket<'_>,
        neighbours: &[NeighbourState],
    ) -> Decision {
        let copy = || new_one(packet, neighbours).map(|to| Decision::Copy { to, copies: 1 });
        direct(packet, neighbours).or_else(copy).unwrap_or(Decision::Carry)
    }

    fn spreads(&self) -> bool {
        true
    }
}

/// A number of copies, of which half go to each node that is met; the last one waits for the destination.
#[derive(Debug)]
pub(super) struct SprayAndWait {
    pub(super) copies: u8,
}

impl PacketRouter for SprayAndWait {
    fn decide(
        &mut self,
        _now: Instant,
        packet: &RoutedPacket<'_>,
        neighbours: &[NeighbourState],
    ) -> Decision {
        let half = packet.copies / 2;
        let copy = || {
            let to = new_one(packet, neighbours).filter(|_| half > 0)?;
            Some(Decision::Copy { to, copies: half })
        };
        direct(packet, neighbours).or_else(copy).unwrap_or(Decision::Carry)
    }

    fn spreads(&self) -> bool {
        true
    }

    fn copies(&self) -> u8 {
        self.copies
    }
}

/// Next hops of all destinations that do not change; the destination itself if it is a neighbour.
#[derive(Debug)]
pub(super) struct Static {
    pub(super) next_hops: BTreeMap<NodeAddress, NodeAddress>,
}

impl PacketRouter for Static {
    fn decide(
        &mut self,
        _now: Instant,
        packet: &RoutedPacket<'_>,
        neighbours: &[NeighbourState],
    ) -> Decision {
        let next = self.next_hops.get(&packet.destination);
        let next = next.filter(|next| neighbours.iter().any(|neighbour| neighbour.node == **next));
        let next = next.map(|next| Decision::Forward(*next));
        direct(packet, neighbours).or(next).unwrap_or(Decision::Carry)
    }
}
