//! AeroTP: connections over links with bit errors and short contacts, with a choice of error control.
//!
//! Specification: K. S. Pathapati and J. P. Rohrer, "Comparison of Adaptive Transport Layer Error-Control Mechanisms for Highly-Dynamic
//! Airborne Telemetry Networks" (International Telemetering Conference), and the papers about AeroTP that it cites. No format of packets was
//! ever published: [`wire`] is ours, and so is all that the papers leave open. `docs/aerotp.md` has the format octet by octet.
//!
//! # A connection
//!
//! ```text
//!  sender                                                        receiver
//!    | ASYN, segment 0 -------------------------------------------> |  CLOSED: begins at once
//!    | ASYN, segment 1, 2, .. at the rate of the link ------------> |  rises in order
//!    |  <--------------------------- ASYNACK, MACK: 0, 1, 3         |  acknowledges what its user has accepted
//!    | segment 2 again, after its timeout ------------------------> |
//!    | AFIN with the last segment --------------------------------> |
//!    |  <--------------------------- AFINACK: all of it is accepted |
//!
//!  sender:    CLOSED --APP OPEN--> ASYN SENT --ASYNACK RX--> ESTABLISHED --APP CLOSE--> AFIN SENT --AFINACK RX, CLOSE TO--> CLOSED
//!  receiver:  LISTEN --ASYN RX--> ESTABLISHED --AFIN RX--> AFIN RECEIVED --all accepted, LISTEN TO--> LISTEN
//! ```
//!
//! - **Set-up is opportunistic.** Data go with the first packet. Each packet has ASYN until the receiver has answered, so that
//!   the loss of the first one costs nothing. Without data, an ASYN alone leaves after 5 ms in the services with answers.
//! - **Sequence numbers** count segments, modulo 2^32. The first one of a connection has zeros in its low 20 bits, and the high bits differ from
//!   those of the connections before: segments of an older one with the same ports are not taken for its own. A receiver finds the first
//!   number from any packet with ASYN.
//! - **The rate** is [`Config::rate_bps`], independent of errors and losses; timers begin when a packet has left, and none runs while the link
//!   is known to be down. When it is back, both sides continue at once: the receiver states what it has, and only what is not
//!   acknowledged is sent again.
//! - **A withdrawal** tells the receiver that a connection has failed, once: without it, or if it is lost, the receiver waits for
//!   [`Config::silence_limit`].
//! - **Precedence** decides which connection sends the next packet; answers go before data.
//!
//! # Services
//!
//! | service | code | answers | what is lost |
//! |---|---|---|---|
//! | `reliable`, `near-reliable` | - | MACK | is sent again after its timeout |
//! | `nack` | yes | NACK | is sent again if its header arrived; otherwise it is a gap |
//! | `nack-mack` | yes | NACK, MACK | is sent again, after a NACK or its timeout |
//! | `quasi-reliable` | yes, and parity across segments on request | - | is a gap, unless parity restores it |
//! | `unreliable-connection` | - | - | is a gap |
//! | `unreliable-datagram` | - | - | is missing; messages rise in the order of arrival |
//! | `adaptive` | as strong as needed | reports | is replaced by parity of its block |
//!
//! With `near-reliable` the acknowledgement of a gateway's user means custody, with `reliable` that the data were passed on; the procedures
//! are the same.
//!
//! # The adaptive service
//!
//! - Segments form blocks of up to 64, of equal lengths. A receiver that lacks segments of a block gets as many segments with parity
//!   ([`VandermondeCode`](crate::fec::VandermondeCode)), each of which replaces any lost one: a hybrid of type II.
//! - The receiver counts the bits that the code corrects, and reports the bit-error rate with the numbers of segments that it has of
//!   each block. For each packet the sender chooses the code with the least octets on the channel for each octet that arrives, by the
//!   closed forms of [`model`]. Segments have room for a moderate code in any case, so that those made for a good channel can be
//!   repaired on a bad one.
//! - A report returns the time of departure of the last segment that has arrived. Packets arrive in order: all that left before it
//!   and have not arrived are lost ([`Config::reordering`] relaxes this). No timer is needed but for the last packets.
//! - At the end of the data, where a loss costs a round trip, parity is sent in advance: as much as costs the least time.
//!
//! # Implementation of the contract
//!
//! - [`Endpoint`] provides [`Connections`](crate::service::Connections); [`Link`] has bundles above it. Damaged datagrams are asked for.
//! - Received segments that wait for others are listed as received, so that they are not sent again, but they are not accepted.
//! - A packet that is sent after all of a connection has left says so. A receiver that has been up for a shorter time than
//!   [`Config::silence_limit`] refuses such a connection if it does not know it: it may have had all of it before.
//! - Repair traffic is limited: a segment is sent again at most once in half a round trip, and in half of [`Config::rto_initial`] before this is
//!   known, however often it is asked for. Connections, bytes in memory, answers and remembered connections are limited, too.
//!
//! # Not implemented
//!
//! - Acknowledgements in segments of the opposite direction, encryption, authentication, congestion control.
//! - AeroNP's signals: the rate is configured.
//!
//! Units: bytes of payload; rates in bit/s with the headers of UDP and IP.

mod assembly;
mod block_receiver;
mod block_sender;
mod buffer;
mod bundles;
mod closed;
pub mod config;
mod endpoint;
mod error_rate;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod hearing;
mod incoming;
mod leaving;
pub mod model;
mod outgoing;
mod round_trip;
mod segments;
#[cfg(test)]
mod tests;
pub mod wire;

pub use bundles::{BUNDLES_PORT, BundleCounters, Link};
pub use config::{Config, Counters};
pub use endpoint::Endpoint;

/// Version of the packet format.
const VERSION: u8 = 1;
