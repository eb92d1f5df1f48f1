//! Packets over a connection, such as AX.25's connected mode.

use super::CloseReason;
use crate::engine::Service;
use bytes::Bytes;

/// A connection that carries packets in order, each whole.
///
/// After [`PacketsIndication::Closed`] the same id may [`PacketsRequest::Connect`] again: that is a new connection.
#[derive(Debug)]
pub enum Packets {}

impl Service for Packets {
    type Request = PacketsRequest;
    type Indication = PacketsIndication;
}

/// Down through [`Packets`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketsRequest {
    /// Opens the connection to the peer that the provider knows by this id.
    Connect,
    /// One packet, no longer than the connection takes. Needs room of 1.
    Packet(Bytes),
    /// So many packets of those that rose are dealt with: as many more may come.
    Release(u64),
    /// What came is all for now, and an answer goes back with it: the peer is acknowledged at once.
    Acknowledge,
    /// Closes the connection once all that was handed down is acknowledged.
    Close,
    /// Closes it at once.
    Abort,
}

/// Up through [`Packets`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketsIndication {
    /// The connection stands. For an id never heard of: a peer called.
    Connected {
        /// The longest packet that it takes, bytes. [`PacketsIndication::Sizes`] may raise it.
        bytes_max: u32,
        /// What of a packet fits in one frame, bytes: shorter packets waste headers, longer ones are cut.
        bytes_best: u32,
        /// The peer's name.
        peer: String,
    },
    /// What the peer has said since raises the longest packet, never lowers it, and may change the best.
    Sizes {
        /// The longest packet from now on, bytes.
        bytes_max: u32,
        /// What of a packet fits in one frame from now on, bytes.
        bytes_best: u32,
    },
    /// How many packets may be handed down.
    Room(u64),
    /// A packet from the peer. What is not released is bounded by the window.
    Packet(Bytes),
    /// So many packets of those that were handed down since `Connected` are acknowledged, all told.
    Acknowledged(u64),
    /// The connection is over: the terminal indication. What is not acknowledged may be lost.
    Closed(CloseReason),
}
