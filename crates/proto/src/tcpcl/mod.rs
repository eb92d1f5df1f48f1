//! The TCP convergence layer, versions 3 and 4: carries bundles to one neighbour over a stream.
//!
//! Version 3 is RFC 7242, version 4 is RFC 9174. Both live on port 4556; who is called answers in the version of
//! the caller. [`Session`] is one engine for both: what differs is what goes on the wire ([`v3`], [`v4`]) and how
//! a session begins and ends.
//!
//! Over a connected packet link, such as AX.25's, version 3 is what DTN2 calls AX25CM-CL: [`PacketSession`], a session over
//! [`PacketStream`]. There, not every segment is acknowledged ([`Config::ack_window`]).
//!
//! # States
//!
//! ```text
//!                 Connect                Connected (a peer called: from here on)
//!   Resting ---------------> Connecting -----------> Contact
//!      ^ ^                       |                   |  |  |
//!      | |  back-off             | refused, late     |  |  | v4 with TLS
//!      | +-----------------------+-------------------+  |  +--------> Securing
//!      |                                                |                |
//!      | Closed                          v3: both       |  v4            | Secured
//!   Closing <-----------+                headers are in +--> Greeting <--+
//!      ^                |                        |              | both SESS_INITs are in
//!      | both are done  | broken, silent, late   v              v
//!      +----------------+----------------------------- Up (live, idle, ending)
//! ```
//!
//! `Down` is told on the way from `Up` (or from an attempt that failed) to `Closing` or `Resting`; before it, every
//! transfer has ended: what goes out in `Sent` or `Failed`, what comes in in `Lost` or by having been accepted.
//!
//! # How it keeps the contract
//!
//! - A segment is made when there is room in the stream for it: from each piece one, or more where the piece is
//!   longer than a segment may be. Between two segments answers, rejections and keep-alives go first. The room told
//!   is that for one segment; a little room is held back while segments are under way, for each costs a header and
//!   an answer.
//! - A segment is acknowledged when the user has accepted all of it, in the order in which segments came. The
//!   stream's receive window opens for payload as it is accepted or refused, and for all else at once.
//! - An acknowledged beginning survives a break only with a receiver that keeps it. Version 3 has a flag for that;
//!   in version 4 both sides of this implementation tell each other by a private extension
//!   ([`v4::KEEPS_PREFIX`]). Without it no progress is told and `Failed` says that nothing is safe.
//! - Neither version interleaves bundles (RFC 9174 5.2.2): a second one begins when all of the first is handed
//!   down. Up to `transfers_max` may wait for their answers.
//! - Bytes of the peer cost nothing but what a limit of [`Config`] allows; breaking the protocol is counted, and
//!   rejected or ended as the clause says.
//!
//! # What is not here
//!
//! - TLS itself (RFC 9174 4.4): the stream below does it, asked by `Secure`; here it is negotiated, and what it
//!   proved is compared with the node id.
//! - Version 3 by a node of a later version: a contact header with another version than 3 is refused, not read as
//!   if it were 3 (RFC 7242 4.2 would have a version 3 node do that; version 4 forbids it).
//! - A sender cannot give a bundle up midway in either version. A cancelled one ends with an empty last segment; its
//!   length is not what was announced, so the receiver refuses it (RFC 9174 5.2.5.1). Where lengths are not
//!   announced the session breaks instead, and comes back.
//! - Version 3 tells refusals apart by their order alone (RFC 7242 5.4): every segment has one answer, and so
//!   has every segment of a refused bundle that was still on its way.
//!
//! Units: bytes, and seconds for keep-alive intervals on the wire.

pub mod config;
pub mod contact;
mod dialect;
mod established;
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

/// AX25CM-CL: a session of version 3 over a connected packet link; [`Config::ax25`] suits it.
pub type PacketSession = crate::joint::Stack<Session, PacketStream>;
