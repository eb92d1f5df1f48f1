//! A byte stream in each direction, such as TCP's.

use crate::engine::Service;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A connection that carries bytes in order, such as TCP's.
///
/// After [`StreamIndication::Closed`] the same ID may [`StreamRequest::Connect`] again, as a new connection.
///
/// | side | what breaks the contract; .. stands for a value |
/// |---|---|
/// | user | Connect before the connection has Closed |
/// | user | Secure without a connection |
/// | user | Secure while the last one is not answered |
/// | user | Write without a connection |
/// | user | Write after Close or Abort |
/// | user | it spends .. of a room of .. |
/// | user | released .. bytes, but only .. have risen |
/// | provider | Connected twice |
/// | provider | Secured without Secure |
/// | provider | room without a connection |
/// | provider | data without a connection |
/// | provider | data after PeerClosed |
/// | provider | data without a byte |
/// | provider | PeerClosed without a connection |
/// | provider | PeerClosed twice |
/// | provider | Closed without a connection |
#[derive(Debug)]
pub enum Stream {}

impl Service for Stream {
    type Request = StreamRequest;
    type Indication = StreamIndication;
}

/// Requests of [`Stream`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamRequest {
    /// Opens the connection to the peer that the provider knows by this ID.
    Connect,
    /// Starts TLS on the open connection.
    Secure {
        /// True for the TLS client.
        client: bool,
        /// Name that the peer must prove; `None` if any.
        name: Option<String>,
    },
    /// Bytes to send. Needs room for all of them.
    Write(Bytes),
    /// The user has processed this many received bytes: the peer may send as many more.
    Release(u64),
    /// Ends the sending direction: written bytes are still delivered, and bytes of the peer still arrive.
    Close,
    /// Aborts the connection at once.
    Abort,
}

/// Indications of [`Stream`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamIndication {
    /// The connection is established. With an ID unknown to the user, the peer opened it.
    Connected,
    /// TLS is established.
    Secured {
        /// Node IDs in the peer's certificate, any of which the peer may use; empty if it proves none.
        identities: Vec<String>,
        /// True if the peer's name and address are valid, as far as the provider had to check them. Otherwise the user
        /// informs the peer and ends the session.
        trusted: bool,
    },
    /// Number of bytes that may be written.
    Room(u64),
    /// Bytes from the peer. The amount of unreleased data is bounded by the receive window.
    Data(Bytes),
    /// The peer has closed its sending direction.
    PeerClosed,
    /// The connection is over. Terminal. Written bytes that are not acknowledged may be lost.
    Closed(CloseReason),
}

/// Reason for the end of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloseReason {
    /// Both sides closed in good order.
    Finished,
    /// This side aborted the connection.
    Aborted,
    /// The peer reset the connection.
    Reset,
    /// The peer refused the connection.
    Refused,
    /// Retransmissions or connection attempts ran out.
    TimedOut,
    /// There is no route, or the interface is down.
    Unreachable,
    /// TLS failed or was refused.
    Insecure,
    /// A limit of the provider was reached.
    Limit,
    /// The peer accepted none of the written bytes for too long.
    Stalled,
    /// Received bytes differ from those sent: their check sequence is wrong.
    Damaged,
}
