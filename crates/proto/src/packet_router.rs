//! Routers of packets: where a network layer that moves sends a packet next.
//!
//! A network layer with its queues and its frames is one protocol, the choice of next hops another: they know each other
//! by [`PacketRouter`] only. The network layer tells its router where nodes are, and asks it for each packet; the router
//! has no queue, no frame and no timer.
//!
//! ```text
//!   fixes of nodes: heard, told by others          for each packet, and again when neighbours change
//!        |                                              |
//!   PacketRouter ----- Forward(to), Copy(to), Carry ----+
//! ```

use crate::motion::{Fix, Motion};
use crate::time::Instant;
use core::fmt::{self, Debug};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Address of a node of a mobile network: 32 bits, so that a gateway can use addresses of IPv4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeAddress(pub u32);

impl NodeAddress {
    /// All neighbours.
    pub const BROADCAST: NodeAddress = NodeAddress(u32::MAX);
}

impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Properties of a packet that routers use.
#[derive(Clone, Copy, Debug)]
pub struct RoutedPacket<'a> {
    /// Node that made the packet.
    pub source: NodeAddress,
    /// Node to which it is sent.
    pub destination: NodeAddress,
    /// Neighbour from which it came, and the time; `None` at its source.
    pub from: Option<(NodeAddress, Instant)>,
    /// Number of copies that this node may still make or pass on, with its own.
    pub copies: u8,
    /// Neighbours that have the packet.
    pub given: &'a BTreeSet<NodeAddress>,
}

/// State of a neighbour that routers use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NeighbourState {
    /// Address.
    pub node: NodeAddress,
    /// Share of its queue that is full, as it has told: its congestion.
    pub fill: f64,
    /// Share of the frames to it that arrive damaged or not at all, as it has told: the corruption of the link.
    pub damaged: f64,
}

/// Decision for a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It goes to this neighbour, and is forgotten here once that has it.
    Forward(NodeAddress),
    /// This neighbour receives a copy, which may make this number of copies; the packet stays.
    Copy {
        /// Neighbour.
        to: NodeAddress,
        /// Number of copies of [`RoutedPacket::copies`] that go with it.
        copies: u8,
    },
    /// It stays here until a neighbour is better, and is asked for again when neighbours change.
    Carry,
}

/// Fix of another node that is passed on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ToldFix {
    /// Node.
    pub node: NodeAddress,
    /// Its fix.
    pub fix: Fix,
    /// Number of nodes that have passed it on.
    pub hops: u8,
}

/// Choice of next hops.
pub trait PacketRouter: Debug + Send {
    /// Sets the motion of this node; `None` if it is unknown.
    fn set_own(&mut self, _now: Instant, _own: Option<Motion>) {}

    /// Learns where another node is. The fix may be forged, and older than a known one.
    fn learn(&mut self, _now: Instant, _told: ToldFix) {}

    /// Returns the decision for a packet to another node. All neighbours are given, in order of their addresses.
    fn decide(&mut self, now: Instant, packet: &RoutedPacket<'_>, neighbours: &[NeighbourState]) -> Decision;

    /// Returns the last known fix of a node.
    fn fix(&self, _node: NodeAddress) -> Option<Fix> {
        None
    }

    /// Returns fixes of other nodes to pass on to the neighbours, at most this number.
    fn tell(&mut self, _now: Instant, _fixes_max: usize) -> Vec<ToldFix> {
        Vec::new()
    }

    /// Returns true if packets go to several nodes, so that a node that has had a packet needs no other copy of it.
    fn spreads(&self) -> bool {
        false
    }

    /// Returns the number of copies of a new packet.
    fn copies(&self) -> u8 {
        1
    }
}
