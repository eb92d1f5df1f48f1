//! Bundles to many at once: a connectionless convergence layer over datagrams that all of a group hear, such as UI frames of
//! AX.25 to a group's callsign.
//!
//! Specification: `docs/ax25.md`, our own. A bundle goes out once in numbered segments; then its sender asks who lacks what,
//! and repeats what anybody lacks, until everybody has it or is given up.
//!
//! ```text
//!            whole bundle               last segment                all have it, or rounds are over
//!   waiting --------------> sending ------------------> asking ------------------------------------> Sent, Failed
//!                              ^                           | somebody lacks something
//!                              +---------------------------+
//! ```
//!
//! - **Who is meant.** [`Config::members`] are asked by name, each in a slot of its own, so that answers do not collide even
//!   where members do not hear each other; the order turns from round to round. A bundle is `Sent` when as many as are needed
//!   have made all of it safe. Without members nobody is known: whoever lacks something answers after a random delay, and
//!   three questions that nobody answers end the bundle; `Sent` then means that nobody complained.
//! - **Who says nothing** in [`Config::silent_max`] rounds is not waited for any longer. The others do not notice.
//! - **Who hears another** ask for all that it lacks itself stays silent.
//! - Answers are made when the channel takes them, and an acknowledgement only when the bundle is safe.
//! - One bundle of this side is under way at a time, while the next is handed down; each is kept whole until it ends.
//!
//! Every packet ends with a CRC-32C: the sixteen bits of AX.25 pass one damaged frame in 65,536, and one wrong segment would
//! spoil the bundle for good.
//!
//! Units: bytes of bundle; numbers on the wire have the highest octet first.

mod config;
mod group;
mod incoming;
mod outgoing;
#[cfg(test)]
mod tests;
pub mod wire;

pub use config::{Config, Counters, MEMBERS_MAX};
pub use group::Group;
pub use outgoing::GroupProgress;
