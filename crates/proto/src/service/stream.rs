//! A stream of bytes each way, such as TCP's.

use crate::engine::Service;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A connection that carries bytes in order, such as TCP's.
///
/// After [`StreamIndication::Closed`] the same id may [`StreamRequest::Connect`] again: that is a new
/// connection.
#[derive(Debug)]
pub enum Stream {}

impl Service for Stream {
    type Request = StreamRequest;
    type Indication = StreamIndication;
}

/// Down through [`Stream`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamRequest {
    /// Opens the connection to the peer that the provider knows by this id.
    Connect,
    /// Turns TLS on in mid-stream.
    Secure {
        /// True for the TLS client.
        client: bool,
        /// The name that the peer has to prove, if any.
        name: Option<String>,
    },
    /// Bytes to send. Needs room for all of them.
    Write(Bytes),
    /// So many bytes of what rose are dealt with: the peer may send as many more.
    Release(u64),
    /// No more bytes will be written; what was written is still delivered, and the peer's still comes.
    Close,
    /// Ends the connection at once.
    Abort,
}

/// Up through [`Stream`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamIndication {
    /// The connection stands. For an id never heard of: a peer called.
    Connected,
    /// TLS stands.
    Secured {
        /// The node ids that the peer's certificate proves; the peer may be any of them. Empty: none is proven.
        identities: Vec<String>,
        /// The peer's name and address are in order, as far as the provider was to prove them. If not, the user says so
        /// to the peer and ends.
        trusted: bool,
    },
    /// How many bytes may be written.
    Room(u64),
    /// Bytes from the peer. What is not released is bounded by the receive window.
    Data(Bytes),
    /// The peer will write no more.
    PeerClosed,
    /// The connection is over: the terminal indication. What was written and not acknowledged may be lost.
    Closed(CloseReason),
}

/// Why a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CloseReason {
    /// Both sides closed in good order.
    Finished,
    /// This side aborted.
    Aborted,
    /// The peer reset it.
    Reset,
    /// The peer refused the connection.
    Refused,
    /// Retransmissions or connection attempts ran out.
    TimedOut,
    /// No route, or the interface is gone.
    Unreachable,
    /// TLS failed or was refused.
    Insecure,
    /// A limit of the provider was reached.
    Limit,
    /// The peer took nothing of what was written for too long.
    Stalled,
    /// What came is not what was sent: its check sequence is wrong.
    Damaged,
}
