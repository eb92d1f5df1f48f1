//! Erasure-coded datagrams: lost datagrams are restored from repair symbols, without a round trip.
//!
//! [`FecDatagrams`] lies between a user of [`Datagrams`](crate::service::Datagrams) and their provider, at both ends.
//! The terms are those of the FEC framework (RFC 6363). The source and repair packets are a format of ours, below; those of
//! RFC 6865 and RFC 6681 are for constant flows, to which both ends have agreed by other means.
//!
//! ```text
//!  user       d0 d1 d2 d3      (nothing to send)      d4 d5
//!              |  |  |  |                              |  |
//!  provider   S0 S1 S2 S3         R4 R5               S0 S1 ..       S: source packet, R: repair packet
//!              |  |  x  |          |  |                              x: lost
//!  peer       d0 d1    d3         d2                                 d2 rises as soon as four of the six are there
//! ```
//!
//! - **Nothing waits.** Each datagram leaves at once, in its order, in a source packet. Received ones rise at once.
//! - **Blocks** end when they are full ([`Config::block_symbols`]), or when the user could send and did not for a time
//!   ([`Config::idle`]). The repair packets follow, before the next datagrams of the user. Each receiver has blocks of its own.
//! - **Deferred repair** ([`Config::deferred`]): a full block ends without repair packets. When the user pauses, those of the
//!   last full block and of the block in progress follow, in turn, and only while the user sends nothing. A user that repeats what
//!   is missing thus has the whole rate for its data, and its last ones, which no repetition reaches before a round trip, are
//!   restored.
//! - **The number of repair packets** is the least with which the datagrams of a block cannot be restored with a
//!   probability of at most [`Config::failure_max`] ([`Config::repair_symbols`]). The losses are those of the setting, and
//!   those that the peer reports: if it has missed l of the n packets sent to it lately, the probability is
//!   (l + w·[`loss`](Config::loss)) / (n + w), w being [`loss_weight`](Config::loss_weight). A receiver measures the blocks
//!   of which all symbols have arrived or are lost; blocks of which nothing has arrived do not count.
//! - **Lengths.** The code computes with symbols of one size in a block: each has the length of its datagram (two
//!   octets), its contents, and zeros up to the longest one.
//! - **Room** is that of the provider, which repair packets spend as others do. With a rate ([`Config::rate_bps`]), user
//!   datagrams and repair packets share it.
//!
//! # Format
//!
//! Numbers are unsigned, the most significant octet first. The provider's datagram has one packet.
//!
//! | octets | field | |
//! |---|---|---|
//! | 1 | kind | `10` (hexadecimal) source, `11` repair, `12` source with report, `13` repair with report |
//! | 2 | ID | encoding symbol ID: source symbols from 0, repair symbols from their number on |
//! | 4 | block | number of the block, which counts up from a random one for each receiver, modulo 2^32 |
//! | 2, 2 | lost, of | reports only: packets that the sender of the report has missed lately, of how many |
//! | 2, 2 | sources, repairs | repair packets only: numbers of symbols of the block |
//! | rest | contents | source packets: the datagram; repair packets: the symbol, of even length |
//!
//! The code is that of [`ReedSolomon`](crate::fec::ReedSolomon). The first source packet of a block and all repair packets
//! have a report, once there is something to report.
//!
//! # Peers that disturb
//!
//! Received symbols take at most [`Config::incoming_bytes_max`], and decoding of a block as much once more; beyond it,
//! the oldest blocks of the sender are given up, and datagrams rise as they arrive. 64 senders have 64 blocks each. Symbols
//! of older blocks are late, and dropped; a number far from all others begins a new count, because its sender has
//! restarted. Symbols that contradict each other end the work on their block.
//!
//! # Limits
//!
//! - A peer without this layer is not understood: its datagrams count as violations.
//! - Nothing is acknowledged or sent again: what is not restored is lost, as with the provider.
//! - Restored datagrams rise after others that were sent later. A receiver that restarts within a block may restore what has
//!   risen before.
//! - Losses are taken as independent. Bursts within a block count as any losses; blocks are not interleaved.
//! - Nothing is authenticated. The provider must drop damaged datagrams, because one wrong symbol makes wrong datagrams;
//!   this layer never asks for them. Someone who can send datagrams in the name of a peer can spoil a block,
//!   and with whole blocks of them the measurement of its losses.
//! - A group has one block for all its members. Its losses are those of the setting.
//! - One sender may use both the address of a peer and that of a group, but not two numbers of one address.
//!
//! Units: bytes, probabilities from 0 to 1.

pub mod config;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod incoming;
mod layer;
mod losses;
mod outgoing;
#[cfg(test)]
mod tests;
pub mod wire;

pub use config::{Config, Counters};
pub use layer::FecDatagrams;
