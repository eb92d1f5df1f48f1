//! Datagrams to and from one place, such as UDP's.

use super::CloseReason;
use crate::engine::Service;
use bytes::Bytes;

/// Datagrams to and from the place that the provider knows by the user's id: a peer; or, where many peers call, whoever
/// sends to this side. Each arrives whole or not at all, in any order, and nobody is told which.
#[derive(Debug)]
pub enum Datagrams {}

impl Service for Datagrams {
    type Request = DatagramsRequest;
    type Indication = DatagramsIndication;
}

/// Down through [`Datagrams`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramsRequest {
    /// Opens it: room and datagrams come from now on. Answered by `Joined` or `Left`.
    Join,
    /// Closes it. Not answered; it may be joined again.
    Leave,
    /// One datagram. Needs room of 1.
    Datagram(Bytes),
    /// So many bytes of what rose are dealt with: as many more may rise.
    Release(u64),
}

/// Up through [`Datagrams`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramsIndication {
    /// It is open. For an id never heard of: others may send to this side, and it does not send.
    Joined {
        /// The longest datagram that can be sent, bytes.
        bytes_max: u64,
    },
    /// How many datagrams may be handed down.
    Room(u64),
    /// A datagram came. What is not released is bounded; more than that is lost.
    Datagram(Bytes),
    /// It is closed, and was not asked to be: the socket failed, or the other side says that nobody listens. What was
    /// handed down shortly before may be lost.
    Left(CloseReason),
}
