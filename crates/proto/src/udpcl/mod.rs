//! UDP convergence layer: one bundle per datagram, or, for peers that know the current draft, in several.
//!
//! RFC 7122 3.2 (bundles over a datagram convergence layer), 3.2.2 (UDP, port 4556), 3.4 (keep-alives), 3.5.2 (checksums:
//! those of the system, never disabled); RFC 8085 3.1 (rate). Other implementations call this convergence layer `udp` and use
//! port 4556.
//!
//! draft-ietf-dtn-udpcl-04 3.3, 3.4 and 3.5 (packets, messages, extension maps: [`wire`]), 3.5.2 and 3.6 (identified transfers), 3.3.1
//! (redundant transmission). The other extensions (3.5.1, 3.5.3 to 3.5.8: advertisement, probes of the path, counts of ECN) are
//! skipped, and DTLS (3.10) is not implemented: its records are counted and discarded.
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
//! # Transfers
//!
//! An identified transfer is a bundle in one or more segments with an ID, which may arrive in any order. They are always received.
//! They are sent only if the peer is known to understand them ([`Config::transfers`]), and only where a bundle does not fit a datagram
//! or where each datagram is sent several times ([`Config::copies`]), because every peer understands a bundle without a frame.
//!
//! ```text
//!             segment                 last missing segment
//!   (none) -----------> Partial ------------------------------> Complete
//!      ^                  |  | malformed, no bundle                |  rises, and copies of it are discarded
//!      |                  |  +--------------> Refused              |
//!      +-- no segment for the timeout, displaced-+-----------------+
//! ```
//!
//! - Transfers are told apart by sender and ID. A segment that overlaps another one is discarded; one that announces another total
//!   length ends the transfer.
//! - IDs have 32 bits and count up from a random number. The draft proposes zero, but a peer remembers complete transfers for a minute
//!   and would discard those of a node that restarts within it.
//! - Everything that is remembered of transfers counts against [`Config::incoming_bytes_max`]. Above it, the sender with the most memory
//!   loses its transfer that was not continued for the longest time, so that no sender, and no forged one, takes what is due to others.
//! - A link goes down and up without effect on what it has received of its peer's transfers.
//!
//! # No reliability
//!
//! There is no acknowledgement: `Acked` is never indicated, and `Sent` means only that the last datagram of the bundle was passed to the
//! socket; copies may follow.
//! So the guarantee that no accepted bundle is lost ends at this link. A lost bundle is gone unless another node still has it:
//! the source that requested a delivery report, or the custodian of a bundle of version 6. The sender also receives no
//! indication if a bundle is dropped here for lack of room ([`Counters::dropped`]) or refused. Use UDP where the path loses
//! little or losses are acceptable, and TCPCL elsewhere (RFC 7122 3.2).
//!
//! # Flow control
//!
//! - Room is indicated for one datagram at a time, when the rate permits it and the socket has room. A datagram is sent as a whole, so the
//!   pieces of a bundle wait until they fill it. Bundles do not interleave.
//! - A bundle that is longer than a datagram, or than [`Config::transfer_bytes_max`], fails as `TooLong`; `Up` contains the maximum, so
//!   that the agent fragments first.
//! - Copies whose time has come leave before new data. While too many bytes wait for their copies, there is no room.
//! - A bundle without a frame is released to the socket when it is accepted or refused. Segments are copied and released at once: those
//!   that are missing must arrive while the others wait in memory.
//!
//! Units: bytes of bundles; the rate counts bits, including the headers of UDP and IP.

pub mod config;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod incoming;
mod link;
mod outgoing;
#[cfg(test)]
mod tests;
pub mod wire;

pub use config::{Config, Counters};
pub use link::Link;
