//! What may go wrong with a world, and plans for it.

use crate::channel::{ChannelId, Direction};
use crate::clock::ClockConfig;
use crate::delay::Delay;
use crate::node::NodeId;
use longwire_proto::service::RecordId;

/// Something that the world does to the network. None of them is an error where it changes nothing: a cut channel
/// can be cut again, a node that is down can crash.
#[derive(Clone, Debug, PartialEq)]
pub enum InjectedFault {
    /// The channel is gone, both ways. Its ends hear of it where the line announces outages.
    Cut(ChannelId),
    /// The channel is back, if it was cut once; each further cut takes one more of these.
    Heal(ChannelId),
    /// The node loses everything but what its disk has synced.
    Crash(NodeId),
    /// The node starts anew.
    Restart(NodeId),
    /// The node's clock is from now on this one.
    Clock(NodeId, ClockConfig),
    /// The one-way delay is from now on this one. A radio channel has none, and stays as it is.
    Delay(ChannelId, Direction, Delay),
    /// The node's disk fails at everything (true) or works again (false).
    DiskFails(NodeId, bool),
    /// A record can no longer be read.
    DamageRecord(NodeId, RecordId),
    /// Any one record of the node, drawn from the seed, can no longer be read.
    DamageAnyRecord(NodeId),
}
