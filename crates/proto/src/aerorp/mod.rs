//! AeroRP: routing by position for nodes that move fast (Jabbar and Sterbenz, with Peters, Çetinkaya and Rohrer), as a
//! [`PacketRouter`](crate::packet_router::PacketRouter).
//!
//! Each node has a table of the others with position, velocity and time. A packet goes to the neighbour with the least
//! **time to intercept**: the time until that comes within radio range of the packet's destination, if both keep flying
//! straight on. A neighbour that closes faster wins. If no neighbour is better than this node, the packet is **ferried**:
//! carried until one is, or until the destination itself is a neighbour.
//!
//! ```text
//!            destination                     time to intercept
//!          (    o    )  range                of A: distance left / closing speed
//!             ^                              of B, which does not come nearer: `horizon`, and the distance left
//!            /       B                             over `progress-mps`, a speed at which others may take over
//!           A                                of a node within range: 0
//! ```
//!
//! The papers leave open: nodes whose straight line passes the destination at a distance (the speed along the line between
//! both counts, as in the published formula), nodes that fly away (here they are last, in order of distance), how much
//! better a neighbour must be (`margin`), and loops: a packet does not go back within `return-after`, and has a number of
//! hops. Here a neighbour must also be within radio range by its fix, so that no packet is sent after one that has left.
//!
//! A congested neighbour or a link with damage counts as so much time more. Fixes come from neighbours, which pass on those of
//! others up to `fix-hops-max` times; places of ground stations are configured and cannot be learned otherwise. Fixes are not
//! authentic: those that claim an impossible speed are ignored, and their number is limited.

mod config;
mod router;
mod table;
#[cfg(test)]
mod tests;

pub use config::Config;
pub use router::AeroRp;
