//! The UDP convergence layer: one bundle a datagram.
//!
//! RFC 7122 3.2 (bundles over a datagram convergence layer), 3.2.2 (UDP, port 4556), 3.4 (keep-alives), 3.5.2 (checksums:
//! the system's, never turned off); RFC 8085 3.1 (rate). This is what other implementations call `udp` and send on port
//! 4556. draft-ietf-dtn-udpcl sends the same datagrams for the plain transfer of one bundle and adds extension maps,
//! transfers in several datagrams and DTLS; none of these are here.
//!
//! # States
//!
//! ```text
//!             Connect               Joined
//!   Resting ----------> Joining ---------------> Up
//!      ^ ^                 | Left                 | Left, Close
//!      | +-- after a pause-+----------------------+
//! ```
//!
//! A socket on which any peer may send ([`Link::listening`]) is `Up` as soon as it is there, and never sends.
//!
//! # What nobody promises here
//!
//! There is no acknowledgement: `Acked` never comes, and `Sent` means that the datagram was handed over, no more. So "nothing
//! accepted is lost" ends at this link: a bundle that is lost on the way is gone, unless somebody still has it, the sender
//! who asked for a report on delivery, or the custodian of a bundle of version 6. What is lost for want of room
//! here ([`Counters::dropped`]) or refused cannot be told to the sender, either. Use it where the path loses little or the
//! loss does not matter, and TCPCL or LTP elsewhere (RFC 7122 3.2 says the same).
//!
//! # How it keeps the contract
//!
//! - Room is told for one bundle at a time, when the rate allows a datagram and the socket has room; the pieces of a bundle
//!   wait for its last one, since a datagram goes whole. Bundles do not interleave.
//! - A bundle longer than a datagram fails as `TooLong`; `Up` says how long one may be, so that the agent fragments first.
//! - What rises is released to the socket as it is accepted or refused.
//!
//! Units: bytes of bundle; the rate counts bits, with the headers of UDP and IP.

pub mod config;
mod link;
#[cfg(test)]
mod tests;

pub use config::{Config, Counters};
pub use link::Link;
