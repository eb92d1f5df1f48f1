//! Datagrams to and from remote endpoints, such as those of UDP.

use super::{CloseReason, Shares};
use crate::engine::Service;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Datagrams at the endpoint that the provider knows by the user's ID: to and from the peer or the group configured for
/// it, and from any other sender that reaches it. Each datagram arrives whole or not at all, in any order, and its loss
/// is not reported.
///
/// | side | what breaks the contract; .. stands for a value |
/// |---|---|
/// | user | Join twice |
/// | user | a datagram while it is not joined |
/// | user | a datagram to .., which was never named |
/// | user | a datagram of .. bytes, above the maximum of .. |
/// | user | it spends .. of a room of .. |
/// | user | released .. bytes, and .. have risen |
/// | provider | Joined twice |
/// | provider | room while it is not joined |
/// | provider | a carrier while it is not joined |
/// | provider | transmitted a datagram that it does not have |
/// | provider | a datagram came while it is not joined |
/// | provider | a damaged datagram that was not asked for |
/// | provider | a datagram to a group that it does not have |
/// | provider | Left without Join |
#[derive(Debug)]
pub enum Datagrams {}

impl Service for Datagrams {
    type Request = DatagramsRequest;
    type Indication = DatagramsIndication;
}

/// A sender or receiver of datagrams: the provider's number for an address at one endpoint.
///
/// It is valid from the indication that names it until `Left` or `Leave`. A provider remembers a limited number of
/// senders and forgets the one that it has not heard for the longest time; datagrams to a forgotten one are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PeerId(pub u32);

impl PeerId {
    /// The peer or group that is configured for the endpoint.
    pub const CONFIGURED: PeerId = PeerId(0);
}

/// Requests of [`Datagrams`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramsRequest {
    /// Opens the endpoint: room and datagrams follow. Answered by `Joined` or `Left`.
    Join {
        /// True to receive datagrams that failed the provider's check as well, marked as damaged.
        damaged: bool,
    },
    /// Closes the endpoint. Not answered; it may be joined again. Before the answer to `Join`, it withdraws the `Join`:
    /// neither `Joined` nor `Left` follows.
    Leave,
    /// One datagram. Needs room of 1.
    Datagram {
        /// Receiver, named by an earlier indication.
        to: PeerId,
        /// Contents.
        bytes: Bytes,
        /// Purpose of the bytes.
        shares: Shares,
        /// Token for [`DatagramsIndication::Transmitted`]; `None` without that indication.
        token: Option<u64>,
    },
    /// The user no longer holds this many received bytes, be they accepted, refused or copied: as many more may follow. Each received datagram is released
    /// once, valid or not, but none after `Left` or `Leave`: the next `Joined` begins a new count.
    Release(u64),
}

/// Indications of [`Datagrams`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatagramsIndication {
    /// The endpoint is open. Without `Join`, with an ID unknown to the user, it is passive: the provider has opened it
    /// so that any peer may send to this side, and its `peer` may be `None`.
    Joined {
        /// Largest datagram that can be sent, bytes.
        bytes_max: u64,
        /// Configured peer; `None` if the endpoint has none.
        peer: Option<PeerId>,
        /// Configured group; `None` if the endpoint has none. Where the addresses of groups and of stations are alike
        /// (AX.25), the configured address is both.
        group: Option<PeerId>,
    },
    /// Number of datagrams that may be passed down.
    Room(u64),
    /// The link below is connected (`true`) or disconnected (`false`). Absent where the provider cannot tell. While it
    /// is disconnected nothing leaves, so no timer for an answer should run.
    Carrier(bool),
    /// The datagram with this token has left this side, or was lost there. After `Left` and `Leave` it is absent. A
    /// timer for an answer begins here: on a slow channel the datagram may have waited long.
    Transmitted(u64),
    /// A received datagram. The amount of unreleased data is bounded; datagrams beyond it are lost.
    Datagram {
        /// Sender.
        from: PeerId,
        /// True if it was sent to the group, false if to this side alone.
        to_group: bool,
        /// Contents.
        bytes: Bytes,
        /// True if the provider's check failed: the contents and the sender may be wrong. Only if the user asked for
        /// such datagrams.
        damaged: bool,
    },
    /// The endpoint was closed without a request: the socket failed, or the peer reports that no program listens.
    /// Datagrams passed down shortly before may be lost.
    Left(CloseReason),
}
