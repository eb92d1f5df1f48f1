//! Convergence layer for bundles to many nodes at once, over connectionless datagrams that all members of a group receive, such
//! as UI frames of AX.25 to a group's callsign.
//!
//! Specification: `docs/ax25.md`, specific to this implementation. A bundle is sent once in numbered segments. Then its sender
//! queries which segments are missing, and repeats segments that any member lacks, until all members have the bundle or are
//! dropped.
//!
//! ```text
//!        complete bundle            last segment                all have it, or last round
//!   waiting --------------> sending ------------------> querying ----------------------------------> Sent, Failed
//!                          ^                           | a member lacks segments
//!                          +---------------------------+
//! ```
//!
//! - **Members.** The sender queries [`Config::members`] by name, each in its own slot, so that answers do not collide even if
//!   members do not receive each other; the order rotates with each round. A bundle is `Sent` when as many members as required
//!   have stored it. Without members, a station that lacks segments answers after a random delay, and three consecutive
//!   queries without a request end the bundle; `Sent` then means only that no station requested segments.
//! - **Dropped members.** A member that leaves [`Config::silent_max`] consecutive queries unanswered is dropped for this bundle,
//!   without effect on the others. Rounds in which a member requested segments do not count.
//! - **Suppressed requests.** A member that receives another's request for all segments that it lacks itself does not answer.
//! - An answer is generated when the channel can send it, and a confirmation only when the bundle is stored.
//! - One bundle of this side is sent at a time, while the next one is collected from the user; both are kept in memory.
//!
//! Every packet ends with a CRC-32C: the 16-bit check sequence of AX.25 accepts one damaged frame in 65,536, and one wrong
//! segment would damage the bundle permanently.
//!
//! Units: bytes of bundles; numbers in packets are big-endian.

mod config;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod group;
mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;
pub mod wire;

pub use config::{Config, Counters, MEMBERS_MAX};
pub use group::Group;
