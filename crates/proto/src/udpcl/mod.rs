//! UDP convergence layer: one bundle per datagram.
//!
//! RFC 7122 3.2 (bundles over a datagram convergence layer), 3.2.2 (UDP, port 4556), 3.4 (keep-alives), 3.5.2 (checksums:
//! those of the system, never disabled); RFC 8085 3.1 (rate). Other implementations call this convergence layer `udp` and use
//! port 4556. draft-ietf-dtn-udpcl uses the same datagrams for the plain transfer of a bundle, and adds extension maps,
//! transfers in several datagrams, and DTLS, which are not implemented.
//!
//! # States
//!
//! ```text
//!         Connect               Joined
//!   Resting ----------> Joining ---------------> Up
//!  ^ ^                 | Left                 | Left, Close
//!  | +-- after a delay-+----------------------+
//! ```
//!
//! A socket on which any peer may send ([`Link::listening`]) is `Up` as soon as it exists, and never sends.
//!
//! # No reliability
//!
//! There is no acknowledgement: `Acked` is never indicated, and `Sent` means only that the datagram was passed to the socket.
//! So the guarantee that no accepted bundle is lost ends at this link. A lost bundle is gone unless another node still has it:
//! the source that requested a delivery report, or the custodian of a bundle of version 6. The sender also receives no
//! indication if a bundle is dropped here for lack of room ([`Counters::dropped`]) or refused. Use UDP where the path loses
//! little or losses are acceptable, and TCPCL elsewhere (RFC 7122 3.2).
//!
//! # Flow control
//!
//! - Room is indicated for one bundle at a time, when the rate permits a datagram and the socket has room. The pieces of a
//!   bundle wait for the last one, because a datagram is sent as a whole. Bundles do not interleave.
//! - A bundle that is longer than a datagram fails as `TooLong`; `Up` contains the maximum, so that the agent fragments first.
//! - Received data are released to the socket when the bundle is accepted or refused.
//!
//! Units: bytes of bundles; the rate counts bits, including the headers of UDP and IP.

pub mod config;
mod link;
#[cfg(test)]
mod tests;

pub use config::{Config, Counters};
pub use link::Link;
