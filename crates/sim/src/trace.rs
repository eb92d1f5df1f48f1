//! What became of every frame: for packet captures, time-sequence graphs and timelines.

use crate::channel::{ChannelId, Direction};
use crate::node::NodeId;
use bytes::Bytes;
use longwire_proto::service::{InterfaceId, Shares};
use longwire_proto::time::Instant;

/// One end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChannelEnd {
    /// The node.
    pub node: NodeId,
    /// Its interface.
    pub interface: InterfaceId,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFate {
    /// It arrived as it was sent.
    Delivered,
    /// It arrived with wrong bits that nothing on the line noticed.
    Damaged,
    /// It arrived with wrong bits, and the line's own check dropped it.
    CheckFailed,
    /// An outage fell on it.
    Outage,
    /// There was no space in the queue.
    QueueFull,
    /// It is longer than the line takes.
    TooLong,
    /// The sender crashed while it waited in the queue.
    SenderCrashed,
    /// It arrived where nobody had joined the line; or the sender is not heard there.
    Unheard,
    /// Another's signal overlapped with it where it was to be heard. On radio channels.
    Collided,
    /// Who was to hear it was transmitting. On radio channels.
    Deaf,
}

/// A frame whose fate is known. On a radio channel there is one for each other station.
#[derive(Clone, Debug)]
pub struct FrameRecord {
    /// The channel.
    pub channel: ChannelId,
    /// Which way; on a radio channel always forward.
    pub direction: Direction,
    /// Who sent it.
    pub from: ChannelEnd,
    /// Whom it was for.
    pub to: ChannelEnd,
    /// When it was handed to the line.
    pub handed: Instant,
    /// When its first bit left, if any did.
    pub started: Option<Instant>,
    /// When its last bit left.
    pub left: Option<Instant>,
    /// When its last bit arrived.
    pub received: Option<Instant>,
    /// The bytes as sent.
    pub bytes: Bytes,
    /// The bytes as they arrived, where they differ.
    pub damaged: Option<Bytes>,
    /// What its bytes are for.
    pub shares: Shares,
    /// What became of it.
    pub fate: FrameFate,
}

/// Hears of every frame at the moment when its fate is known.
pub type FrameSink = Box<dyn FnMut(FrameRecord) + Send>;
