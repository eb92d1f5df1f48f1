//! AeroNP: the network layer of the ANTP suite for airborne telemetry (Rohrer, Jabbar, Çetinkaya, Perrins and Sterbenz),
//! for nodes that move, meet for a short time and carry packets between meetings.
//!
//! The papers name its parts: a header that translates to and from IP, with geolocation, a quality-of-service nibble, a
//! congestion and a corruption indicator, and a check of its own, so that a packet with a damaged payload still reaches
//! AeroTP. They publish no octets. The layout in [`wire`] is ours, and `docs/aeronp.md` describes it.
//!
//! ```text
//!   users: Datagrams, one endpoint for each LinkId
//!      |                                             room: packets that have not left
//!   Node: one bounded queue by precedence <--- decisions of a PacketRouter (AeroRP, or another)
//!      |         ^ fixes, fill and damage that neighbours tell
//!   interfaces: Frames
//!
//!   packet:   carried <---> queued for a neighbour ---> sent ---> acknowledged: forgotten, or a copy less
//!                ^                                        |
//!                +---- neighbour lost, no acknowledgement-+
//! ```
//!
//! **Neighbours** are nodes that were heard within `neighbour-timeout`. Each node sends a beacon on every interface with its
//! fix, the fill of its queue, the damage on the links from its neighbours, and fixes of others that its router passes on.
//!
//! **Hop by hop.** Neighbours acknowledge packets that they have accepted, several at once; until then the sender keeps a
//! packet. One that does not fit into a queue is not acknowledged and stays with its sender. A full queue drops accepted
//! packets only for one of higher precedence, and, of those that spread, for another one if a neighbour has a copy.
//! Packets without a next hop are carried until their lifetime ends.
//!
//! **Damage.** The header check decides whether there is a packet. A damaged payload is passed on with the corruption
//! indicator if the source has asked for that ([`DatagramsRequest::Join`](crate::service::DatagramsRequest::Join)), and
//! otherwise not acknowledged, so that it is sent again. An intact copy is accepted after a damaged one, and takes its place
//! in the queue; a user may get both.
//!
//! **Congestion.** The room of the users falls with the queue. Packets that leave a queue filled above
//! `congestion-percent` have the indicator; how many arrive so is counted, because no message of
//! [`Datagrams`](crate::service::Datagrams) has it.
//!
//! Not implemented: fragmentation, authentication (any node can claim any address and place), and translation to IP, which
//! is a gateway's.
//!
//! Units: metres and metres per second in fixes, octets, [`Duration`](crate::time::Duration).

mod config;
mod endpoints;
mod held;
mod neighbours;
mod node;
#[cfg(test)]
mod tests;
pub mod wire;

pub use config::{Config, Counters, EndpointConfig, LIFETIME_MAX};
pub use node::Node;
