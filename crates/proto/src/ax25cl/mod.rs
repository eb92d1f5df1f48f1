//! Bundles over AX.25: a convergence layer made for slow half-duplex links.
//!
//! Specification: `docs/ax25.md`, our own. It stands on a connected packet link that carries packets whole, in order and
//! acknowledged, such as AX.25's, and adds to a frame one octet where a bundle goes on.
//!
//! ```text
//!             Connect            Connected           hello known
//!   Resting ----------> Calling -----------> Greeting ---------> Up
//!      ^ ^                 |                    |                | ^
//!      | +-- after a pause-+--------------------+     link lost  | | hello: so much came
//!      |                                                         v |
//!      +---- nothing is under way, or too late ------------- Detached
//! ```
//!
//! - Who calls says who it is in the packet that carries its first bundle, where it knows whom it calls; who is called
//!   does so in the packet that carries its first answer.
//! - Packets fill frames. The link's own acknowledgements say that they have come; a bundle has one answer, sent when all
//!   of it is safe, in the key-up in which the link acknowledges, and one more every [`Config::progress_bytes`].
//! - Packets are numbered over a session, not over a link. Where a link breaks in the middle of something, the session waits
//!   for the next one; each side says there how many packets came, and the other goes on behind them. Only what the lost link had
//!   not acknowledged is sent again, and of that only what has not come.
//! - Bytes of several bundles alternate: the user hands down the most urgent ones against room for one window.
//! - A peer that has begun anew is known by its tag: then everything fails that was under way.
//!
//! Units: bytes; numbers on the wire are SDNVs (RFC 6256).

mod config;
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
