//! Interface between a scenario and a network, simulated or real.

use crate::channel::ChannelId;
use crate::node::NodeId;
use crate::simulation::{Pause, Simulation};
use longwire_proto::engine::{Indication, Request, Service};
use longwire_proto::time::{Duration, Instant};

/// Indication of a node to its user, with its time.
pub type NodeIndication<A> = (Instant, NodeId, Indication<A>);

/// Network on which a scenario acts. A scenario is data and a plain function over this trait: the same function runs in
/// virtual time with many seeds and over real sockets once.
pub trait World {
    /// Service that the nodes provide to their users.
    type App: Service;

    /// Returns the time since the run began.
    fn now(&self) -> Instant;
    /// Sends a request to a node; false if the node is down.
    fn request(&mut self, node: NodeId, request: Request<Self::App>) -> bool;
    /// Runs until `until`.
    fn run_until(&mut self, until: Instant);
    /// Runs while `goes_on` returns true. It is evaluated after each possible event and may act on the world. Returns
    /// false if `limit` was reached or no more events are pending.
    fn run_while(&mut self, limit: Instant, goes_on: &mut dyn FnMut(&mut Self) -> bool) -> bool;
    /// Removes and returns the indications of the nodes, in order of time.
    fn take_indications(&mut self) -> Vec<NodeIndication<Self::App>>;
    /// Cuts a channel.
    fn cut(&mut self, channel: ChannelId);
    /// Restores a channel.
    fn heal(&mut self, channel: ChannelId);
    /// Kills a node at once; synced data on its disk survive.
    fn crash(&mut self, node: NodeId);
    /// Restarts a node.
    fn restart(&mut self, node: NodeId);
    /// Returns the time of the clock of a node, milliseconds since 2000-01-01; `None` without a clock.
    fn dtn_ms(&self, node: NodeId) -> Option<u64>;

    /// Runs for `duration`.
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
