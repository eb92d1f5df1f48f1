//! Faults of a world.

use crate::channel::{ChannelId, Direction};
use crate::clock::ClockConfig;
use crate::delay::Delay;
use crate::node::NodeId;

/// Fault injected into the network. A fault without an effect is not an error: a channel can be cut again, and a node
/// that is down can crash.
#[derive(Clone, Debug, PartialEq)]
pub enum InjectedFault {
    /// Cuts a channel in both directions. Its ends are informed if the line announces outages.
    Cut(ChannelId),
    /// Undoes one cut of the channel; as many are needed as there were cuts.
    Heal(ChannelId),
    /// Crashes a node: only synced data on its disk survive.
    Crash(NodeId),
    /// Restarts a node.
    Restart(NodeId),
    /// Replaces the clock of a node.
    Clock(NodeId, ClockConfig),
    /// Replaces the one-way delay of a channel. Has no effect on a radio channel, which has no delay.
    Delay(ChannelId, Direction, Delay),
    /// Makes the disk of a node fail at every operation (true) or work again (false).
    DiskFails(NodeId, bool),
    /// Makes a record of the node unreadable, chosen by the seed.
    DamageAnyRecord(NodeId),
}
