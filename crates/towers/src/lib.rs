//! Convergence layers as the whole program knows them: one table, used by nodes and simulations alike.
//!
//! A convergence layer is an engine in `longwire-proto`, a file in [`carriers`] that implements [`Carrier`] (names,
//! settings, sessions), and a row of [`carriers::CARRIERS`]. Everything else is general: a program looks a carrier up by
//! name, reads the settings of a link into a [`Plan`], and gives the plans to [`Neighbours`], which makes the sessions and
//! connects them to the medium below.
//!
//! ```text
//!   Agent
//!     |   Many<LinkId, Bundles>
//!   Neighbours: sessions by link
//!     |   Many<LinkId, Media>
//!   Provides: a TCP host, UDP sockets, AX.25 stations
//! ```

#![forbid(unsafe_code)]

pub mod carrier;
pub mod carriers;
mod held_callers;
pub mod media;
pub mod neighbours;
pub mod path;
#[cfg(feature = "testing")]
pub mod testing;

pub use carrier::{About, AnyCarrier, Carrier, ChannelFacts, Family, LinkFacts, Medium, Place, Plan, Preset};
pub use carriers::CARRIERS;
pub use media::{Admission, Media, MediaIndication, MediaRequest, Provides, Session, session_over};
pub use neighbours::{Neighbours, SessionLayer};
