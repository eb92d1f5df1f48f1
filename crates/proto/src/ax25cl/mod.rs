//! Bundles over AX.25: a convergence layer for slow half-duplex links.
//!
//! Specification: `docs/ax25.md`, our own. The layer uses a connected packet link that carries packets whole, in order
//! and acknowledged, such as AX.25's connected mode, and adds one octet to a frame that continues a bundle.
//!
//! ```text
//!             Connect              Connected           hello received
//!   Closed ----------> Connecting -----------> Greeting ----------> Up
//!     ^ ^                  |                      |                 | ^
//!     | +-- retry delay ---+----------------------+       link lost | | hello: packets received
//!     |                                                             v |
//!     +--- nothing outstanding, or resume timeout -------------- Detached
//! ```
//!
//! - The side that connects sends its hello in the packet of its first bundle, if it knows the peer's node ID; the
//!   other side sends its hello in the packet of its first answer.
//! - Packets fill frames. The link's own acknowledgements confirm their arrival. A bundle has one answer, sent when all
//!   of it is stored, in the key-up of the link's acknowledgement, and one more every [`Config::progress_bytes`].
//! - Packets are numbered over a session, not over a link. When a link breaks while something is outstanding, the
//!   session waits for the next link; there each side reports how many packets it has received, and the other continues
//!   after them. Only packets that the lost link had not acknowledged are resent, and of these only those that have not
//!   arrived.
//! - Bytes of several bundles alternate: the user passes down the most urgent ones against room for one window.
//! - A peer that has restarted is recognised by its tag: then every outstanding bundle fails.
//!
//! Units: bytes; numbers on the wire are SDNVs (RFC 6256).

mod config;
#[cfg(any(test, feature = "testing"))]
pub mod fuzz;
mod incoming;
mod outgoing;
mod session;
mod sessions;
#[cfg(test)]
mod tests;
pub mod wire;

pub use config::{Config, Counters};
pub use session::Session;
pub use sessions::{Configure, Sessions};
