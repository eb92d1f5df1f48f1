//! Packets over a connection, such as AX.25's connected mode.

use super::{CloseReason, Shares};
use crate::engine::Service;
use bytes::Bytes;

/// A connection that carries packets in order, each of them whole.
///
/// After [`PacketsIndication::Closed`] the same ID may [`PacketsRequest::Connect`] again, as a new connection.
///
/// | side | what breaks the contract; .. stands for a value |
/// |---|---|
/// | user | Connect before the connection has Closed |
/// | user | a packet without a connection |
/// | user | a packet after Close or Abort |
/// | user | a packet of .. bytes, above the maximum of .. |
/// | user | it spends .. of a room of .. |
/// | user | released .. packets, but .. have risen |
/// | provider | Connected twice |
/// | provider | the best size exceeds the maximum |
/// | provider | Sizes without a connection |
/// | provider | a maximum of .. bytes after .. were promised |
/// | provider | room without a connection |
/// | provider | a packet came without a connection |
/// | provider | acknowledged without a connection |
/// | provider | .. acknowledged, which is no more than .. |
/// | provider | .. acknowledged of .. packets |
/// | provider | Closed without a connection |
#[derive(Debug)]
pub enum Packets {}

impl Service for Packets {
    type Request = PacketsRequest;
    type Indication = PacketsIndication;
}

/// Requests of [`Packets`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketsRequest {
    /// Opens the connection to the peer that the provider knows by this ID.
    Connect,
    /// One packet, no longer than the connection accepts. Needs room of 1.
    Packet {
        /// Contents.
        bytes: Bytes,
        /// Purpose of the bytes.
        shares: Shares,
    },
    /// The user has processed this many received packets: as many more may follow.
    Release(u64),
    /// The user expects no more packets for now, and its own packets are passed down: an acknowledgement that is due is
    /// sent at once, together with them.
    Acknowledge,
    /// Closes the connection once everything passed down is acknowledged.
    Close,
    /// Closes the connection at once.
    Abort,
}

impl PacketsRequest {
    /// A packet that is all user data.
    pub fn payload(bytes: Bytes) -> PacketsRequest {
        let shares = Shares::payload(bytes.len());
        PacketsRequest::Packet { bytes, shares }
    }
}

/// Indications of [`Packets`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PacketsIndication {
    /// The connection is established. With an ID unknown to the user, the peer opened it.
    Connected {
        /// Maximum length of a packet, bytes. [`PacketsIndication::Sizes`] may raise it.
        bytes_max: u32,
        /// Largest packet that fits in one frame, bytes: shorter packets waste headers, longer ones are segmented.
        bytes_best: u32,
        /// Name of the peer.
        peer: String,
    },
    /// Parameters of the peer have changed the sizes: the maximum may rise, never fall; the best size may change.
    Sizes {
        /// New maximum length of a packet, bytes.
        bytes_max: u32,
        /// New largest packet that fits in one frame, bytes.
        bytes_best: u32,
    },
    /// Number of packets that may be passed down.
    Room(u64),
    /// A packet from the peer. The number of unreleased packets is bounded by the window.
    Packet(Bytes),
    /// Total number of packets passed down since `Connected` that are acknowledged.
    Acknowledged(u64),
    /// The connection is over. Terminal. Unacknowledged packets may be lost.
    Closed(CloseReason),
}
