//! A gateway: TCP connections and UDP datagrams of programs, over the flows of a transport protocol for difficult links.
//!
//! The idea is that of the gateways AeroGW of the AeroTP papers (Rohrer and others, "AeroTP", 2008 and 2011), of which neither a format
//! nor an implementation was published: the format is ours. Reliable services keep the meaning of TCP from end to end. The services
//! that take custody are not made here but of bundles.
//!
//! ```text
//!   program --TCP-- Gateway ========= flow, port p to q ==========> Gateway --TCP-- program
//!                           <======== flow, port q to p ==========
//! ```
//!
//! # Connections
//!
//! A connection of a program is two flows with exchanged ports. The port `q` stands for a program at the peer; `p` is one that the
//! gateway has free. The gateway to which the first flow comes [opens](crate::service::ProgramsIndication::Open) a connection to that
//! program, and once it stands, its own flow.
//!
//! - **The first octet** of a flow is its format, so that the flow begins although the program has sent nothing yet: 1 for a stream, 2
//!   for datagrams in COBS code. Flows of the service that keeps messages have none: each message is a datagram. A flow whose first
//!   octet is lost is refused, so that its sender begins again; the answers to datagrams go on with the next whole one.
//! - **Chunks.** A stream is a sequence of chunks, each of them a number of two octets and so many bytes. An empty one, and a zero among
//!   datagrams, is a sign of life: it is sent after [`Config::keepalive`] without data, because a peer takes a flow in which nothing
//!   arrives for lost.
//! - **Acknowledgements.** What the receiving gateway has not passed to the system's TCP is not acknowledged to the peer, and the sending
//!   one releases bytes of its program when they are acknowledged. Services without acknowledgements release them when they leave.
//! - **The end.** A program that ends its sending direction ends its flow; the other program sees that after all bytes, and may still
//!   send. A program that resets its connection, a gateway that cannot open one, and a flow that fails, reset the connection at both
//!   ends. So does a gap in a stream, which only services that do not repeat everything have.
//! - **Datagrams.** Those of one sender are one connection. The first one opens it; it ends when the user closes it. Datagrams that wait
//!   for the link are bounded, and the oldest ones are dropped.
//!
//! ```text
//!             Arrive                           Finish of both, all acknowledged
//!    (none) ---------> Standing ------------------------------------------------> (none)
//!       |                ^   |  Closed, flow failed, lost or refused, link down
//!       | flow begins    |   +--------------------------------------------------> (none)
//!       v    Opened      |
//!     Opening -----------+
//! ```
//!
//! # Implementation of the contract
//!
//! [`Gateway`] provides [`Programs`](crate::service::Programs) over [`Connections`](crate::service::Connections). It neither opens nor
//! closes the endpoint below, which [`Shared`] lets it have in common with another user.
//!
//! Units: bytes.

mod association;
mod config;
mod engine;
mod framing;
mod shared;
#[cfg(test)]
mod tests;

pub use config::Config;
pub use engine::{Counters, Gateway};
pub use shared::Shared;
