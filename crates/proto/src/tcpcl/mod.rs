//! The TCP convergence layer, versions 3 and 4: transfers bundles to one neighbour over a stream.
//!
//! Version 3 is RFC 7242, version 4 is RFC 9174. Both use port 4556; the passive node answers in the version of the
//! active node. [`Session`] is one engine for both: only the messages on the wire ([`v3`], [`v4`]) and the beginning
//! and end of a session differ.
//!
//! Version 3 over a connected packet link, such as AX.25, is the AX25CM-CL of DTN2: [`PacketSession`], a session over
//! [`PacketStream`]. It does not acknowledge every segment ([`Config::ack_window`]).
//!
//! # States
//!
//! ```text
//!                 Connect                Connected (an incoming session begins here)
//!    Closed ---------------> Connecting -----------> Contact
//!      ^ ^                       |                   |  |  |
//!      | |  back-off             | refused, timeout  |  |  | v4 with TLS
//!      | +-----------------------+-------------------+  |  +--------> Securing
//!      |                                                |                |
//!      | stream closed                   v3: headers    |  v4            | Secured
//!   Closing <-----------+                exchanged      +--> Greeting <--+
//!      ^                |                        |              | SESS_INITs exchanged
//!      | both are done  | broken, timeout        v              v
//!      +----------------+----------------------------- Up (live, idle, ending)
//! ```
//!
//! `Down` is indicated on the transition from `Up` (or from a failed attempt) to `Closing` or `Closed`; before it,
//! every transfer has ended: outgoing ones with `Sent` or `Failed`, incoming ones with `Lost` or because they were
//! accepted. A session whose owner decides on admission waits in `AwaitingAdmission` before `Up` ([`Session::await_admission`]).
//!
//! # Implementation of the contract
//!
//! - A segment is built when the stream has room for it: one per piece, or more if the piece is longer than the maximum
//!   segment. Between two segments, acknowledgements, refusals, rejections and keepalives are sent first. The room
//!   granted to the user is that for one segment; small amounts of room are held back while segments are outstanding,
//!   because each segment costs a header and an acknowledgement.
//! - A segment is acknowledged when the user has accepted all of it, in the order of arrival. The receive window of the
//!   stream opens for payload when it is accepted or refused, and for everything else at once.
//! - The acknowledged part of a transfer survives a break only if the receiver keeps it. Version 3 has a flag for this;
//!   in version 4 two nodes of this implementation announce it by a private extension ([`v4::KEEPS_PREFIX`]). Without
//!   it no progress is indicated, and `Failed` reports that nothing is acknowledged.
//! - Neither version interleaves bundles (RFC 9174 5.2.2): a second transfer begins when all of the first has been
//!   passed to the session. Up to `transfers_max` may wait for their acknowledgements.
//! - Input from the peer uses resources only up to the limits of [`Config`]; protocol violations are counted, and the
//!   message is rejected or the session ended as the clause requires.
//!
//! # Not implemented
//!
//! - TLS itself (RFC 9174 4.4): the stream below implements it, on request by `Secure`; the session negotiates it, and
//!   compares the authenticated identities with the node ID.
//! - Version 3 with a node of a later version: a contact header with a version other than 3 is refused, not interpreted
//!   as version 3 (RFC 7242 4.2 requires this of a version 3 node; version 4 forbids it).
//! - Cancelling a bundle in the middle of its transfer: neither version allows it. A cancelled transfer ends with an
//!   empty last segment; its length differs from the announced one, so the receiver refuses it (RFC 9174 5.2.5.1). If
//!   lengths are not announced, the session is ended instead and re-established.
//! - Identification of refused transfers in version 3: refusals are matched by their order alone (RFC 7242 5.4). Every
//!   segment has one response, including every segment of a refused bundle that was still in transit.
//!
//! Units: bytes, and seconds for keepalive intervals on the wire.

pub mod config;
pub mod contact;
mod dialect;
mod established;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod incoming;
mod outgoing;
pub mod packet_stream;
mod session;
mod stream_buffer;
#[cfg(test)]
mod tests;
pub mod v3;
pub mod v4;

pub use config::{Config, Counters, Tls, Version, Versions};
pub use packet_stream::PacketStream;
pub use session::{AdmissionDecision, CallerIdentity, Session};

/// AX25CM-CL: a version 3 session over a connected packet link, to be configured with [`Config::ax25`].
pub type PacketSession = crate::joint::Stack<Session, PacketStream>;
