//! Datagrams to and from one remote endpoint, such as those of UDP.

use super::CloseReason;
use crate::engine::Service;
use bytes::Bytes;

/// Datagrams to and from the remote endpoint that the provider knows by the user's ID: a peer or, for an ID that many
/// peers share, any sender to this side. Each datagram arrives whole or not at all, in any order, and its loss is not
/// reported.
#[derive(Debug)]
pub enum Datagrams {}

impl Service for Datagrams {
    type Request = DatagramsRequest;
    type Indication = DatagramsIndication;
}

/// Requests of [`Datagrams`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramsRequest {
    /// Opens the endpoint: room and datagrams follow. Answered by `Joined` or `Left`.
    Join,
    /// Closes the endpoint. Not answered; it may be joined again.
    Leave,
    /// One datagram. Needs room of 1.
    Datagram(Bytes),
    /// The user has processed this many received bytes: as many more may follow.
    Release(u64),
}

/// Indications of [`Datagrams`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramsIndication {
    /// The endpoint is open. With an ID unknown to the user, peers may send to this side, and it does not send.
    Joined {
        /// Largest datagram that can be sent, bytes.
        bytes_max: u64,
    },
    /// Number of datagrams that may be passed down.
    Room(u64),
    /// A received datagram. The amount of unreleased data is bounded; datagrams beyond it are lost.
    Datagram(Bytes),
    /// The endpoint was closed without a request: the socket failed, or the peer reports that no program listens.
    /// Datagrams passed down shortly before may be lost.
    Left(CloseReason),
}
