//! Saratoga: files over links with asymmetric rates, errors and interruptions; and bundles as files.
//!
//! Specification: draft-wood-tsvwg-saratoga-22 (version 1 of the protocol), UDP port 7542. What the draft leaves open is chosen
//! here, and marked as ours.
//!
//! # Transfers
//!
//! ```text
//!  sender                                                   receiver
//!    |  <----- REQUEST get, or REQUEST put in the other direction  |  unless the sender begins without a question
//!    | METADATA: path, length, times, checksum ----------------->  |
//!    | DATA, DATA, .. ------------------------------------------>  |  rise in any order
//!    |  <------------- STATUS with holes, on request or voluntary  |
//!    | DATA for the holes, before new DATA --------------------->  |
//!    | DATA with the end of the file, requests a STATUS -------->  |
//!    |  <------------------------------- STATUS: complete, stored  |
//! ```
//!
//! A file is one session, whose number follows from path, length and time of the last change. Files are under way side by side:
//! new bytes of the oldest one leave first, holes of any before them. A request for a path that was requested before has a number of
//! its own, unless the transfer before broke off; a REQUEST for another file than that under way with its number is refused.
//!
//! - **Holes.** The receiver lists each missing range once, and again when packets for it are late; a list that is not complete
//!   is marked so. Lists leave when they are full, after [`Config::status_interval`], or on request, within
//!   [`Config::status_rate_bps`]. A request at the end of the file is answered by all holes that fit.
//! - **No hole is filled twice within a round trip.** A requesting DATA packet has a stamp, the number of its departure, which
//!   the STATUS repeats: holes that were filled before it are lost, and are filled again; later ones are under way, until a
//!   round trip and [`Config::margin`] have passed. The stamp's format is ours (its last octet says that its meaning is local).
//! - **The end.** When nothing is left to send, the last packet requests a STATUS, and an empty one at the end of the file does
//!   so again whenever the answer is late.
//! - **Peers take turns** where an endpoint has several: one packet of each that has any, answers and STATUS packets first, then
//!   METADATA, then DATA. Holes of the files of a peer are filled in turn, too.
//! - **Silence.** A file fails when nothing new is heard of it for [`Config::inactivity_limit`]: for the receiver, new bytes, or
//!   the first answer to its request; for the sender, a STATUS that answers a later packet or reports more. Repetitions do not count.
//! - **Interruptions.** While the link is down no timer runs. When it is up again, the receiver reports all holes, and the
//!   sender requests a STATUS. A file whose transfer has failed continues later from a
//!   [`PartialFile`](crate::service::PartialFile): the receiver's first STATUS says what it has, and the sender skips it.
//! - **Before METADATA** and before the user's answer, DATA wait in memory; the STATUS says that METADATA is missing.
//! - **Ended files** are remembered by the receiver: late packets are answered by the outcome, and begin nothing. A `REQUEST` makes
//!   it forget the outcome, so that the same file can be transferred again.
//! - **Limits.** Sessions, holes, lengths and bytes in memory are bounded; what exceeds a limit counts as lost on the way.
//! - **Checksums.** CRC-32C is verified as the pieces arrive; other types are read, and not verified.
//!
//! # Implementation of the contract
//!
//! - The progress in a STATUS is what the user has stored, and completion is not stated before: a promise waits. Bytes that are
//!   received and not stored are neither part of the progress nor holes (ours).
//! - [`Endpoint`] provides [`Files`](crate::service::Files); [`Link`] has bundles above it. A bundle is a file that is put without a
//!   question. Its path is `bundle/`, 16 hexadecimal digits that a link draws when it is made, and the number of the transfer (ours); the
//!   receiver takes every file for a bundle, whatever its path. `Sent` follows the STATUS of the complete file.
//! - If an endpoint fails, its files wait for the next one; bundles fail, because another link may carry them.
//!
//! # States
//!
//! ```text
//!          Connect               Joined
//!    Closed ----------> Joining ---------------> Up
//!     ^ ^                  | Left                | Left, Close, silent peer
//!     | +-- after a delay--+---------------------+
//! ```
//!
//! # Not implemented
//!
//! - Streams, multicast, UDP-Lite, congestion control, authentication fields: they are read, and refused or ignored.
//! - Descriptors of 128 bits are read; files have at most 2^64 - 1 bytes.
//! - MD5 and SHA-1 are not verified.
//! - The peer's beacons are counted; they change nothing.
//!
//! Units: bytes of files; rates in bit/s with the headers of UDP and IP.

mod bundles;
pub mod config;
mod endpoint;
mod files;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod hearing;
mod leaving;
mod numbers;
mod receiving;
mod sending;
#[cfg(test)]
mod tests;
mod waiting;
pub mod wire;

pub use bundles::{BundleCounters, Link};
pub use config::{Config, Counters};
pub use endpoint::Endpoint;
