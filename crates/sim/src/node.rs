//! A node: an engine over a disk and interfaces, with a clock of its own.

use crate::clock::ClockConfig;
use crate::disk::Disk;
use bytes::Bytes;
use longwire_proto::engine::{Engine, Service};
use longwire_proto::rng::Rng;
use longwire_proto::service::{Both, Frames, InterfaceId, Many, Storage};
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
pub(crate) enum Outlet {
    /// A line of its own.
    Line(u32),
    /// A radio channel, as this station of it.
    Radio(u32, u16),
}

/// An interface of a node and what is bound to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Port {
    pub(crate) interface: InterfaceId,
    pub(crate) out: Outlet,
}

/// Something that a node has yet to hear.
#[derive(Debug)]
pub(crate) enum Tidings {
    /// The transmitter has sent the frame with this token.
    Transmitted(InterfaceId, u64),
    /// The room may have changed.
    Room(InterfaceId, Outlet),
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
    pub(crate) ports: Vec<Port>,
    pub(crate) tidings: VecDeque<Tidings>,
}

/// What an interface sends on, among these ports.
pub(crate) fn find(ports: &[Port], interface: InterfaceId) -> Option<Outlet> {
    let place = ports.binary_search_by_key(&interface, |port| port.interface);
    place.ok().map(|place| ports[place].out)
}
