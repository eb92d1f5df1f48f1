//! Bundles to and from a neighbour over a convergence layer.

use super::CloseReason;
use crate::engine::Service;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The service of a convergence layer: it carries bundles, in pieces, to and from one neighbour.
///
/// An outgoing transfer is `Open`, then `Piece`s against `Room`, the last one marked; then exactly one of `Sent` and
/// `Failed`. After `Cancel` the terminal indication still follows; it may be `Sent` if the last piece was passed down
/// before. An incoming transfer is `Begin`, then `Piece`s, the last one marked, or `Lost`; the user answers `Accept`
/// for the bytes that it has stored, or `Refuse`. A transfer is over for the provider when all of it is accepted, when
/// it is refused, or when it is lost; then no more of it is indicated.
///
/// The user has every indication before its next request, so nothing follows a terminal indication. Only `Accept` and
/// `Refuse` may come late, after `Lost` or `Down`, because storing takes time; they then have no effect.
///
/// | side | what breaks the contract; .. stands for a value |
/// |---|---|
/// | user | Open while the link is not up |
/// | user | .. is used twice |
/// | user | it spends .. of a room of .. |
/// | user | a piece while .. has the line |
/// | user | .. was never opened |
/// | user | .. has ended |
/// | user | a piece after Cancel |
/// | user | a piece after the last |
/// | user | a piece without a byte |
/// | user | .. bytes of a bundle of .. |
/// | user | last is .. after .. bytes of .. |
/// | user | accepts .. bytes, but .. have risen |
/// | user | accepts .. bytes after .. |
/// | provider | Up twice |
/// | provider | Peer while the link is not up |
/// | provider | Down without a terminal indication for .. |
/// | provider | Down without Lost for .. |
/// | provider | room while the link is not up |
/// | provider | Begin while the link is not up |
/// | provider | .. begins twice |
/// | provider | a piece of what is over |
/// | provider | a piece of what has not begun |
/// | provider | a piece after the last |
/// | provider | a piece without a byte |
/// | provider | .. bytes of a bundle of .. have risen |
/// | provider | the last piece at .. of .. bytes |
/// | provider | .. was never opened |
/// | provider | .. has ended |
/// | provider | .. bytes acknowledged of .. sent |
/// | provider | .. bytes acknowledged after .. |
/// | provider | Sent after .. of .. bytes |
/// | provider | Lost without an incoming transfer |
#[derive(Debug)]
pub enum Bundles {}

impl Service for Bundles {
    type Request = BundlesRequest;
    type Indication = BundlesIndication;
}

/// A transfer of one bundle over one link. The user numbers its outgoing transfers, the provider the incoming ones. An
/// engine never uses a number twice, even after `Down`: a late `Accept` must not meet another transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TransferId(pub u64);

/// Priority of a bundle. Higher priorities are sent first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Sent only when nothing else waits for the line.
    Bulk,
    /// Default.
    #[default]
    Normal,
    /// Sent before everything else.
    Expedited,
}

/// Requests of [`Bundles`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundlesRequest {
    /// Brings the link up, and reconnects when it breaks, until `Close`. While the link is up, keepalives go to the
    /// peer if the protocol has them, so that a link without a living peer is detected. Without effect while the link is up
    /// or being connected; during a close, the link is connected again after it.
    Connect,
    /// Announces an outgoing transfer. Only while the link is up. Fails as `TooLong` above the peer's maximum, and as
    /// `Refused(NoResources)` if too many transfers are open.
    Open {
        /// The user's number for the transfer, never used twice on this link.
        transfer: TransferId,
        /// Priority of the bundle. For information: the user decides by it whose pieces it passes down first.
        priority: Priority,
        /// Length of the complete bundle, bytes.
        length: u64,
    },
    /// The next bytes of an open transfer. Needs room for all of them. Not empty unless the bundle is.
    Piece {
        /// Transfer that the bytes belong to.
        transfer: TransferId,
        /// Bytes of the bundle.
        data: Bytes,
        /// True at the end of the bundle.
        last: bool,
    },
    /// Cancels an outgoing transfer.
    Cancel {
        /// Transfer to cancel.
        transfer: TransferId,
    },
    /// The first `up_to` bytes of an incoming transfer are stored: they may be acknowledged. An empty bundle is
    /// accepted with 0.
    Accept {
        /// Incoming transfer.
        transfer: TransferId,
        /// Number of bytes from the beginning of the bundle.
        up_to: u64,
    },
    /// Refuses an incoming transfer.
    Refuse {
        /// Incoming transfer.
        transfer: TransferId,
        /// Reason for the refusal.
        reason: RefuseReason,
    },
    /// Ends the session in good order and does not reconnect. `Down` follows if the link is up, being connected, or
    /// waiting to reconnect, with the reason `Closed` unless it ended otherwise before. Open transfers have their
    /// terminal indications first: TCPCL finishes those that have begun, within a limited time; UDP fails all of them
    /// at once, as [`LinkDown`](TransferFailure::LinkDown).
    Close,
}

/// Indications of [`Bundles`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BundlesIndication {
    /// The link is up.
    Up {
        /// Node ID that the peer announces; `None` if the protocol has no such field.
        peer: Option<String>,
        /// True if pieces of several transfers may alternate. Otherwise the pieces of one follow each other up to the
        /// last or to its end, while others may be open.
        interleave: bool,
        /// Largest bundle that the peer accepts, bytes.
        transfer_bytes_max: u64,
    },
    /// The link uses an amateur radio band, where encryption is not allowed: encrypted bundles do not use it, and their
    /// transfers are cancelled. Before `Up` or at any time after it, and until `Down`.
    Amateur,
    /// The peer's node ID has changed since `Up`: to `None` while another session has it, or back to its own. Transfers
    /// continue.
    Peer {
        /// Node ID of the peer; `None` while another session has it.
        peer: Option<String>,
    },
    /// The link is down. Every open transfer has had its terminal indication before. The provider reconnects by itself
    /// if `retry` is set. Also after each failed attempt to connect, without `Up` before it.
    Down {
        /// Reason for going down.
        reason: DownReason,
        /// True if the provider reconnects.
        retry: bool,
    },
    /// Payload bytes that may be passed down in pieces.
    Room(u64),
    /// A bundle begins to arrive.
    Begin {
        /// The provider's number for the transfer.
        transfer: TransferId,
        /// Length of the bundle, bytes; `None` if the peer announced none.
        length: Option<u64>,
    },
    /// The next bytes of an incoming bundle.
    Piece {
        /// Incoming transfer.
        transfer: TransferId,
        /// Bytes of the bundle.
        data: Bytes,
        /// True at the end of the bundle.
        last: bool,
    },
    /// The peer has acknowledged the first `up_to` bytes of an outgoing transfer, and keeps them if the transfer breaks
    /// off. Not due for the last bytes, which `Sent` confirms, nor from a protocol without partial acknowledgements.
    Acked {
        /// Transfer that is acknowledged.
        transfer: TransferId,
        /// Number of bytes from the beginning of the bundle.
        up_to: u64,
    },
    /// The peer has acknowledged the complete bundle. Terminal. If the protocol has no acknowledgements (UDP; TCPCL
    /// version 3 without them), the bundle was only passed to the layer below.
    Sent {
        /// Transfer that is complete.
        transfer: TransferId,
    },
    /// The transfer failed. Terminal. The peer has acknowledged `acked` bytes of it. If an acknowledgement was lost,
    /// the peer may have the complete bundle, which then arrives there again with the next attempt.
    Failed {
        /// Transfer that failed.
        transfer: TransferId,
        /// Reason for the failure.
        reason: TransferFailure,
        /// Number of bytes from the beginning of the bundle.
        acked: u64,
    },
    /// An incoming transfer ended early: no more of it follows, and the user keeps what it has accepted. Not due after
    /// the last piece: if the link goes down before `Accept`, the user keeps the bundle, and the peer may send it
    /// again.
    Lost {
        /// Incoming transfer.
        transfer: TransferId,
    },
}

impl BundlesIndication {
    /// Returns the next indication of a convergence layer: one of those that wait, or else the room if it differs from what
    /// the user was told. After `Down` the user has none.
    pub(crate) fn next(waiting: &mut VecDeque<Self>, told: &mut u64, room: u64) -> Option<Self> {
        if let Some(indication) = waiting.pop_front() {
            if let BundlesIndication::Down { .. } = indication {
                *told = 0;
            }
            return Some(indication);
        }
        (core::mem::replace(told, room) != room).then_some(BundlesIndication::Room(room))
    }
}

/// Reason for the failure of an outgoing transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TransferFailure {
    /// The link went down before the end, or the transfer cannot continue because the peer is silent or has restarted.
    /// A bundle agent sends the rest after the acknowledged bytes, or the whole bundle, again without a pause: at once
    /// if the link stays up.
    LinkDown,
    /// The user cancelled the transfer.
    Cancelled,
    /// The peer refused the transfer.
    Refused(RefuseReason),
    /// The bundle is longer than the peer accepts.
    TooLong,
}

/// Reason of a receiver for refusing a bundle (RFC 9174 5.2.4, RFC 7242 5.4). Its codes are those of RFC 9174.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RefuseReason {
    /// The reason is unspecified.
    Unknown,
    /// The receiver already has the complete bundle.
    Completed,
    /// The receiver's resources are exhausted; a later attempt may succeed.
    NoResources,
    /// The bundle must be resent from the beginning.
    Retransmit,
    /// The bundle itself is not acceptable, and never will be.
    NotAcceptable,
    /// An extension failed.
    ExtensionFailure,
    /// The receiver is about to end the session.
    SessionTerminating,
    /// The reason has a code that this implementation does not know.
    Other(u8),
}

crate::codec::codes!(
    RefuseReason: u8, from_code, code,
    0 Unknown, 1 Completed, 2 NoResources, 3 Retransmit, 4 NotAcceptable, 5 ExtensionFailure, 6 SessionTerminating,
    Other
);

/// Reason for a link to be down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum DownReason {
    /// The user closed the link.
    Closed,
    /// The peer ended the session in good order.
    PeerClosed,
    /// The session was idle for too long.
    Idle,
    /// The peer sent nothing for too long.
    KeepAlive,
    /// The peer violated the protocol.
    ProtocolError,
    /// The peer supports no version that this side supports.
    Version,
    /// The peer's identity is not the expected one.
    Identity,
    /// TLS is required, and the peer does not support it.
    Insecure,
    /// The peer refuses the session because of TLS, node IDs or parameters.
    Contact,
    /// The peer has no resources, or is busy.
    Busy,
    /// The stream below ended.
    Stream(CloseReason),
}
