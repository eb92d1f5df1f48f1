//! Node: an engine over a disk and interfaces, with its own clock.

use crate::clock::ClockConfig;
use crate::disk::Disk;
use longwire_proto::engine::{Engine, Indication, Request, Service, forward};
use longwire_proto::rng::Rng;
use longwire_proto::service::{self, Both, Frames, FramesIndication, InterfaceId, Many, Storage};
use longwire_proto::time::Instant;
use std::collections::VecDeque;

/// Number of a node of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// Services below the engine of a node: a disk and interfaces.
pub type NodeBelow = Both<Storage, Many<InterfaceId, Frames>>;

/// Software of a node as one engine.
pub type NodeEngine<A> = Box<dyn Engine<Above = A, Below = NodeBelow> + Send>;

/// Makes the engine of a node at the first start and after each crash.
type Factory<A> = Box<dyn FnMut(Boot) -> NodeEngine<A> + Send>;

/// Engine over frames on interface 0 of a node with no other interface and no disk, such as one with a radio.
#[derive(Debug)]
pub struct OnRadio<E>(pub E);

impl OnRadio<()> {
    /// Interface of the radio.
    pub const INTERFACE: InterfaceId = InterfaceId(0);
}

impl<E: Engine<Below = Frames>> Engine for OnRadio<E> {
    type Above = E::Above;
    type Below = NodeBelow;

    forward!(0: handle_request handle_timeout poll_indication poll_timeout observe);

    fn handle_indication(&mut self, now: Instant, indication: Indication<NodeBelow>) {
        if let service::Port::Second((_, indication)) = indication {
            self.0.handle_indication(now, indication);
        }
    }
    fn poll_request(&mut self, now: Instant) -> Option<Request<NodeBelow>> {
        self.0.poll_request(now).map(|request| service::Port::Second((OnRadio::INTERFACE, request)))
    }
}

/// Data available to a node when it starts.
#[derive(Clone, Debug)]
pub struct Boot {
    /// Number of the node.
    pub node: NodeId,
    /// Name of the node.
    pub name: String,
    /// Number of previous starts.
    pub boot: u32,
    /// Random number generator for this start.
    pub rng: Rng,
    /// Time of the engines.
    pub now: Instant,
    /// Time of the clock of the node, milliseconds since 2000-01-01; `None` without a clock.
    pub dtn_ms: Option<u64>,
}

/// Transmission path of an interface.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attachment {
    /// Point-to-point line.
    Line(u32),
    /// Radio channel, with the number of the station on it.
    Radio(u32, u16),
}

/// Interface of a node and its transmission path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundInterface {
    pub(crate) interface: InterfaceId,
    pub(crate) out: Attachment,
}

/// Indication that has not been delivered to a node yet.
#[derive(Debug)]
pub(crate) enum PendingIndication {
    /// Indication as it is.
    Frames(InterfaceId, FramesIndication),
    /// The room may have changed.
    Room(InterfaceId, Attachment),
}

impl PendingIndication {
    pub(crate) fn transmitted(interface: InterfaceId, token: u64) -> Self {
        PendingIndication::Frames(interface, FramesIndication::Transmitted(token))
    }

    pub(crate) fn carrier(interface: InterfaceId, carrier: bool) -> Self {
        PendingIndication::Frames(interface, FramesIndication::Carrier(carrier))
    }
}

/// State of a node.
pub(crate) struct Node<A: Service> {
    pub(crate) name: String,
    pub(crate) factory: Factory<A>,
    /// `None` before the first start and after a crash.
    pub(crate) engine: Option<NodeEngine<A>>,
    pub(crate) boots: u32,
    pub(crate) disk: Disk,
    pub(crate) clock: ClockConfig,
    /// In order of interface.
    pub(crate) ports: Vec<BoundInterface>,
    pub(crate) pending_indications: VecDeque<PendingIndication>,
}

/// Returns the transmission path of an interface among these ports.
pub(crate) fn find(ports: &[BoundInterface], interface: InterfaceId) -> Option<Attachment> {
    let place = ports.binary_search_by_key(&interface, |port| port.interface);
    place.ok().map(|place| ports[place].out)
}
