//! One scenario, two worlds: what a scenario may do to a network, simulated or real.

use crate::channel::ChannelId;
use crate::node::NodeId;
use crate::simulation::{Pause, Simulation};
use longwire_proto::engine::{Indication, Request, Service};
use longwire_proto::time::{Duration, Instant};

/// What a node said to its user, and when.
pub type NodeIndication<A> = (Instant, NodeId, Indication<A>);

/// A network that a scenario acts on. A scenario is data and a plain function over this trait: the same function
/// runs in virtual time under many seeds and over real sockets once.
pub trait World {
    /// What the nodes do for their users.
    type App: Service;

    /// The time since the run began.
    fn now(&self) -> Instant;
    /// Asks a node for something; false if it is down and did not hear.
    fn request(&mut self, node: NodeId, request: Request<Self::App>) -> bool;
    /// Lets time pass until `until`.
    fn run_until(&mut self, until: Instant);
    /// Lets time pass as long as `goes_on` says so, which is asked whenever something may have happened and may act on
    /// the world. False: `limit` came first, or nothing will ever happen any more.
    fn run_while(&mut self, limit: Instant, goes_on: &mut dyn FnMut(&mut Self) -> bool) -> bool;
    /// Takes what the nodes have said, in order of time.
    fn take_indications(&mut self) -> Vec<NodeIndication<Self::App>>;
    /// Breaks a channel.
    fn cut(&mut self, channel: ChannelId);
    /// Mends it.
    fn heal(&mut self, channel: ChannelId);
    /// Ends a node at once; what its disk has synced stays.
    fn crash(&mut self, node: NodeId);
    /// Starts it again.
    fn restart(&mut self, node: NodeId);
    /// What a node's clock shows: milliseconds since 2000-01-01; none: it has no clock.
    fn dtn_ms(&self, node: NodeId) -> Option<u64>;

    /// Lets time pass.
    fn run_for(&mut self, duration: Duration) {
        self.run_until(self.now() + duration);
    }
}

impl<A: Service> World for Simulation<A> {
    type App = A;

    fn now(&self) -> Instant {
        self.now()
    }
    fn request(&mut self, node: NodeId, request: A::Request) -> bool {
        self.request(node, request)
    }
    fn run_until(&mut self, until: Instant) {
        self.run_until(until);
    }
    fn run_while(&mut self, limit: Instant, goes_on: &mut dyn FnMut(&mut Self) -> bool) -> bool {
        self.run_while(limit, goes_on) == Pause::Condition
    }
    fn take_indications(&mut self) -> Vec<NodeIndication<A>> {
        self.take_indications()
    }
    fn cut(&mut self, channel: ChannelId) {
        self.cut(channel);
    }
    fn heal(&mut self, channel: ChannelId) {
        self.heal(channel);
    }
    fn crash(&mut self, node: NodeId) {
        self.crash(node);
    }
    fn restart(&mut self, node: NodeId) {
        self.restart(node);
    }
    fn dtn_ms(&self, node: NodeId) -> Option<u64> {
        self.dtn_ms(node)
    }
}
