//! Bundles to and from a neighbour, as a convergence layer carries them.

use super::CloseReason;
use crate::engine::Service;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A convergence layer: carries bundles, in pieces, to one neighbour and from it.
///
/// An outgoing transfer: `Open`, then `Piece`s against `Room`, the last one marked; then exactly one of `Sent`
/// and `Failed`. After `Cancel` the terminal indication is still owed. An incoming transfer: `Begin`, then
/// `Piece`s, the last one marked, or `Lost`; the user answers `Accept` as far as it is safe, or `Refuse`. A
/// transfer is over for the provider when all of it is accepted, when it is refused, or when it is lost.
#[derive(Debug)]
pub enum Bundles {}

impl Service for Bundles {
    type Request = BundlesRequest;
    type Indication = BundlesIndication;
}

/// A transfer of one bundle over one link; each side numbers its own outgoing ones, and the provider numbers
/// the incoming ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TransferId(pub u64);

/// How urgent a bundle is. Higher goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// When nothing else wants the line.
    Bulk,
    /// The usual.
    #[default]
    Normal,
    /// Before everything else.
    Expedited,
}

/// Down through [`Bundles`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundlesRequest {
    /// Brings the link up, and keeps bringing it back when it breaks, until `Close`. While it is up, a sign of life goes to the
    /// peer where the protocol has one: so a link whose other end is gone is found to be broken.
    Connect,
    /// Announces an outgoing transfer. Only while up.
    Open {
        /// The user's number for it, never used twice on this link.
        transfer: TransferId,
        /// Its urgency.
        priority: Priority,
        /// The whole bundle's length in bytes.
        length: u64,
    },
    /// The next bytes of an open transfer. Needs room for all of them. Not empty unless the bundle is.
    Piece {
        /// The transfer.
        transfer: TransferId,
        /// The bytes.
        data: Bytes,
        /// The end of the bundle.
        last: bool,
    },
    /// Gives an outgoing transfer up.
    Cancel {
        /// The transfer.
        transfer: TransferId,
    },
    /// The first `up_to` bytes of an incoming transfer are safe: they may be acknowledged.
    Accept {
        /// The incoming transfer.
        transfer: TransferId,
        /// Bytes from its beginning.
        up_to: u64,
    },
    /// This incoming transfer is not wanted.
    Refuse {
        /// The incoming transfer.
        transfer: TransferId,
        /// Why.
        reason: RefuseReason,
    },
    /// Ends the session in good order and does not bring it back.
    Close,
}

/// Up through [`Bundles`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundlesIndication {
    /// The link is up.
    Up {
        /// The peer's node id as it calls itself; none where the protocol has no such field.
        peer: Option<String>,
        /// Whether pieces of several transfers may alternate.
        interleave: bool,
        /// The largest bundle the peer takes, bytes.
        transfer_bytes_max: u64,
    },
    /// The peer's node id is another than `Up` said: none, where somebody else has it, or its own, where it has it again.
    /// Transfers go on.
    Peer {
        /// The node id.
        peer: Option<String>,
    },
    /// The link is down. Every open transfer has had its terminal indication before. It comes back by itself
    /// where `retry` says so.
    Down {
        /// Why.
        reason: DownReason,
        /// Whether the provider tries again.
        retry: bool,
    },
    /// How many payload bytes may be handed down in pieces.
    Room(u64),
    /// A bundle begins to arrive.
    Begin {
        /// The provider's number for it.
        transfer: TransferId,
        /// Its length in bytes, where the peer announced one.
        length: Option<u64>,
    },
    /// The next bytes of an incoming bundle.
    Piece {
        /// The incoming transfer.
        transfer: TransferId,
        /// The bytes.
        data: Bytes,
        /// The end of the bundle.
        last: bool,
    },
    /// The peer has the first `up_to` bytes of an outgoing transfer safe.
    Acked {
        /// The transfer.
        transfer: TransferId,
        /// Bytes from its beginning.
        up_to: u64,
    },
    /// The peer has the whole bundle safe: terminal. Where the protocol has no acknowledgements (UDP; TCPCL version 3
    /// without them) it was handed over, and nobody knows more.
    Sent {
        /// The transfer.
        transfer: TransferId,
    },
    /// The transfer ended otherwise: terminal. Of what was sent, `acked` bytes are safe with the peer.
    Failed {
        /// The transfer.
        transfer: TransferId,
        /// Why.
        reason: TransferFailure,
        /// Bytes from its beginning.
        acked: u64,
    },
    /// An incoming transfer broke off: no more of it comes, and what was accepted stays with the user.
    Lost {
        /// The incoming transfer.
        transfer: TransferId,
    },
}

/// Why an outgoing transfer failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferFailure {
    /// The link went down before the end.
    LinkDown,
    /// The user cancelled it.
    Cancelled,
    /// The peer refused it.
    Refused(RefuseReason),
    /// It is longer than the peer takes.
    TooLong,
}

/// Why a receiver does not want a bundle (RFC 9174 5.2.4, RFC 7242 5.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefuseReason {
    /// Not said.
    Unknown,
    /// The receiver already has all of it.
    Completed,
    /// The receiver's resources are exhausted; later may do.
    NoResources,
    /// It has to be sent again from the beginning.
    Retransmit,
    /// Never: the bundle itself is not acceptable.
    NotAcceptable,
    /// An extension failed.
    ExtensionFailure,
    /// The receiver is about to end the session.
    SessionTerminating,
    /// A reason with a number that this version does not know.
    Other(u8),
}

/// Why a link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DownReason {
    /// The user closed it.
    Closed,
    /// The peer ended the session in good order.
    PeerClosed,
    /// Nothing to send for long enough.
    Idle,
    /// The peer fell silent.
    KeepAlive,
    /// The peer broke the protocol.
    ProtocolError,
    /// The peer speaks no version that this side does.
    Version,
    /// The peer is not who it should be.
    Identity,
    /// TLS is required, and the peer has none.
    Insecure,
    /// The peer refuses the session: TLS, node ids or parameters do not suit it.
    Contact,
    /// The peer has no resources, or is busy.
    Busy,
    /// The stream below ended.
    Stream(CloseReason),
}
