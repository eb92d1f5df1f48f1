//! Records of all frames with their fate, for packet captures, time-sequence graphs and timelines.

use crate::channel::{ChannelId, Direction};
use crate::node::NodeId;
use bytes::Bytes;
use longwire_proto::service::{InterfaceId, Shares};
use longwire_proto::time::Instant;

/// One end of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChannelEnd {
    /// Node.
    pub node: NodeId,
    /// Interface of the node.
    pub interface: InterfaceId,
}

/// Fate of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameFate {
    /// The frame arrived as sent.
    Delivered,
    /// The frame arrived with wrong bits that the check sequence did not detect.
    Damaged,
    /// The frame arrived with wrong bits, and the frame check dropped it.
    CheckFailed,
    /// The frame was lost in an outage.
    Outage,
    /// The queue was full.
    QueueFull,
    /// The frame is longer than the MTU.
    TooLong,
    /// The sender crashed while the frame was in the queue.
    SenderCrashed,
    /// The frame arrived at an end that had not joined, or that is out of range of the sender.
    Unheard,
    /// Another signal overlapped with the frame at the receiver. On radio channels.
    Collided,
    /// The receiver was transmitting. On radio channels.
    Deaf,
}

/// Frame with a known fate. On a radio channel there is one record for each other station.
#[derive(Clone, Debug)]
pub struct FrameRecord {
    /// Channel of the frame.
    pub channel: ChannelId,
    /// Direction of the frame; always forward on a radio channel.
    pub direction: Direction,
    /// Sender.
    pub from: ChannelEnd,
    /// Receiver.
    pub to: ChannelEnd,
    /// Time at which the line accepted the frame.
    pub handed: Instant,
    /// Time at which the first bit left; `None` if none did.
    pub started: Option<Instant>,
    /// Time at which the last bit left; `None` if it did not.
    pub left: Option<Instant>,
    /// Time at which the last bit arrived; `None` if it did not.
    pub received: Option<Instant>,
    /// Bytes sent.
    pub bytes: Bytes,
    /// Bytes received; `None` if they are those sent.
    pub damaged: Option<Bytes>,
    /// Use of the bytes.
    pub shares: Shares,
    /// Fate of the frame.
    pub fate: FrameFate,
}

/// Receives the record of every frame when its fate is known.
pub type FrameSink = Box<dyn FnMut(FrameRecord) + Send>;
