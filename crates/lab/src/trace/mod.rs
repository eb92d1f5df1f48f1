//! What went over the channels of one run, for eyes and tools: packet captures, time-sequence graphs, goodput,
//! timelines.

use bytes::Bytes;
use longwire_proto::time::Instant;

/// One frame on its way from one node's interface to another's.
#[derive(Clone, Debug)]
pub struct CapturedFrame {
    /// When its first bit left.
    pub sent: Instant,
    /// When its last bit came, if it did; damaged frames come, too.
    pub received: Option<Instant>,
    /// Who sent it.
    pub from: Port,
    /// Whom it was meant for.
    pub to: Port,
    /// Its bytes as they were sent.
    pub bytes: Bytes,
    /// Its bytes as they came, where the channel changed them.
    pub damaged: Option<Bytes>,
    /// What became of it.
    pub fate: Fate,
}

/// A node's interface.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port {
    /// The node's name.
    pub node: String,
    /// The interface's number.
    pub interface: u16,
}

/// What became of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It came as it was sent.
    Delivered,
    /// It came with wrong bits, and went up so.
    Damaged,
    /// It came with wrong bits, and the link's own check dropped it.
    Discarded,
    /// It met an outage.
    Lost,
    /// The queue before the channel was full: it never left.
    Dropped,
}
