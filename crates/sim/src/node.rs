//! A node: an engine over a disk and interfaces, with a clock of its own.

use crate::clock::ClockConfig;
use crate::disk::Disk;
use bytes::Bytes;
use longwire_proto::engine::{Engine, Indication, Request, Service};
use longwire_proto::rng::Rng;
use longwire_proto::service::{self, Both, Frames, InterfaceId, Many, Storage};
use longwire_proto::time::Instant;
use std::collections::VecDeque;

/// A node of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// What a node's engine stands on: a disk and interfaces.
pub type NodeBelow = Both<Storage, Many<InterfaceId, Frames>>;

/// Everything that runs on a node, as one engine.
pub type NodeEngine<A> = Box<dyn Engine<Above = A, Below = NodeBelow> + Send>;

/// Makes a node's engine, at first and after each crash.
pub type Factory<A> = Box<dyn FnMut(Boot) -> NodeEngine<A> + Send>;

/// An engine over frames on interface 0 of a node that has no other and uses no disk, such as one with a radio.
#[derive(Debug)]
pub struct OnRadio<E>(pub E);

impl OnRadio<()> {
    /// Where the radio is.
    pub const INTERFACE: InterfaceId = InterfaceId(0);
}

impl<E: Engine<Below = Frames>> Engine for OnRadio<E> {
    type Above = E::Above;
    type Below = NodeBelow;

    fn handle_request(&mut self, now: Instant, request: Request<E::Above>) {
        self.0.handle_request(now, request);
    }
    fn handle_indication(&mut self, now: Instant, indication: Indication<NodeBelow>) {
        if let service::Port::Second((_, indication)) = indication {
            self.0.handle_indication(now, indication);
        }
    }
    fn handle_timeout(&mut self, now: Instant) {
        self.0.handle_timeout(now);
    }
    fn poll_indication(&mut self) -> Option<Indication<E::Above>> {
        self.0.poll_indication()
    }
    fn poll_request(&mut self, now: Instant) -> Option<Request<NodeBelow>> {
        self.0.poll_request(now).map(|request| service::Port::Second((OnRadio::INTERFACE, request)))
    }
    fn poll_timeout(&self) -> Option<Instant> {
        self.0.poll_timeout()
    }
}

/// What a node knows when it starts.
#[derive(Clone, Debug)]
pub struct Boot {
    /// Its number.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// How often it has started before.
    pub boot: u32,
    /// Randomness for this boot.
    pub rng: Rng,
    /// The time as engines know it.
    pub now: Instant,
    /// What its clock shows, milliseconds since 2000-01-01; none: it has no clock.
    pub dtn_ms: Option<u64>,
}

/// What an interface sends on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Attachment {
    /// A line of its own.
    Line(u32),
    /// A radio channel, as this station of it.
    Radio(u32, u16),
}

/// An interface of a node and what is bound to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundInterface {
    pub(crate) interface: InterfaceId,
    pub(crate) out: Attachment,
}

/// Something that a node has yet to hear.
#[derive(Debug)]
pub(crate) enum PendingIndication {
    /// The transmitter has sent the frame with this token.
    Transmitted(InterfaceId, u64),
    /// The room may have changed.
    Room(InterfaceId, Attachment),
    /// A frame has come over the radio.
    Frame(InterfaceId, Bytes),
    /// Others are heard on the radio channel, or no more.
    Busy(InterfaceId, bool),
    /// The carrier of this interface.
    Carrier(InterfaceId, bool),
}

/// A node at work.
pub(crate) struct Node<A: Service> {
    pub(crate) name: String,
    pub(crate) factory: Factory<A>,
    /// None before the first start and after a crash.
    pub(crate) engine: Option<NodeEngine<A>>,
    pub(crate) boots: u32,
    pub(crate) disk: Disk,
    pub(crate) clock: ClockConfig,
    /// In order of interface.
    pub(crate) ports: Vec<BoundInterface>,
    pub(crate) pending_indications: VecDeque<PendingIndication>,
}

/// What an interface sends on, among these ports.
pub(crate) fn find(ports: &[BoundInterface], interface: InterfaceId) -> Option<Attachment> {
    let place = ports.binary_search_by_key(&interface, |port| port.interface);
    place.ok().map(|place| ports[place].out)
}
