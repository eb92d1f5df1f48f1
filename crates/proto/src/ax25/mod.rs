//! AX.25, the link layer of packet radio: connected mode and UI frames.
//!
//! Specification: *AX.25 Link Access Protocol for Amateur Packet Radio*, version 2.2, fourth revision of October 2025,
//! and what stations on the air do where it is silent or contradicts itself.
//!
//! Implemented: the address field with digipeaters (3.12), all frames of modulo 8 and 128 (4), flags, bit stuffing and
//! check sequence ([`hdlc`], 3.1, 3.6, 3.7), links with REJ, SREJ and SREJ for several frames (6.4), XID (4.3.3.7),
//! segmentation (6.6), UI and TEST frames, and repeating for others. Not implemented: FRMR is understood and not sent
//! (4.3.3.9), as version 2.2 wants it; T100, T101, T104 to T106 and T108 are the controller's and the radio's.
//!
//! ```text
//!                 Packets (links)   Datagrams (UI)
//!                        |               |
//!                   [        Station        ]   one callsign on one channel
//!                     Link  Link  Link ..       Opening - Settling - Connected - Releasing - Closed
//!                               |
//!                            Frames (a TNC, a simulated channel)
//! ```
//!
//! Beyond the specification: the last I frame of what is sent at a time has P set, so that its receiver answers at once
//! instead of waiting for more; an acknowledgement that nobody asked for waits until the peer has sent as many frames
//! as it did the last time, or for T2, or hardly at all behind a frame shorter than the one before it; T1 counts from the
//! moment at which the frames have left and is what an answer needs on this channel; tries are counted anew whenever the
//! peer gets further. How a peer answers to SABME and what it says of itself are remembered for the next call.
//!
//! A caller whose SABME is answered sends XID behind its first data, in the same key-up and instead of P on the last of them;
//! its user hears at once that the link stands (6.3.2 negotiates first, which costs a turn of the channel). Until the answer the
//! link works by the peer's last XID, or by the defaults of version 2.2: 32 frames on their way, 256 octets in each, no segments.
//! The answer tells the user how long packets may be ([`Takes`](crate::service::PacketsIndication::Sizes)).
//!
//! What is missing is asked for at once: a controller keeps REJ and SREJ until the channel is free. A frame that the peer has
//! passed over in what it sends again is lost again, and asked for again; so is everything that was asked for, after a
//! silence as long as T1 and a way to the channel. Who is asked by SREJ waits for more of them, as some stations send one
//! for each frame and F with any of them; what it then repeats is followed by an enquiry, since the same stations answer
//! P on an I frame with RR, whatever else they miss.
//!
//! Controllers say that a frame has left when they have merely taken it, or say nothing. Then T1 counts from what the frames
//! need on the air, and the times that others are heard meanwhile. An answer that began before its question can have left
//! is the late one to an earlier question: it acknowledges, and repeats nothing; and it makes T1 longer.
//!
//! A link that can no longer tell what the peer has (a number out of the window, a FRMR, a SABM in the middle) closes
//! with [`Reset`](crate::service::CloseReason::Reset) instead of beginning anew as 6.5 has it: its user has to know.

mod address;
mod air_time_budget;
mod config;
mod frame;
pub mod hdlc;
mod internet;
mod link;
mod link_slots;
mod links_only;
mod monitor;
mod negotiated;
mod occupancy;
mod receive;
pub(crate) mod segment;
mod station;
mod timing;
mod transmit;
mod transmitted;
mod xid;
mod xid_exchange;

#[cfg(test)]
mod tests;

pub use address::{
    ADDRESS_BYTES, Address, Callsign, CallsignError, CommandResponse, DIGIPEATERS_MAX, Digipeater,
};
pub use air_time_budget::AirTime;
pub use config::{Config, Counters, LinkConfig, PeerStation, RadioParameters, Version};
pub use frame::{Control, Frame, Modulo, Supervisory, Unnumbered, pid};
pub use internet::{IpInterfaceConfig, IpInterfaces, IpMode};
pub use links_only::LinksOnly;
pub use monitor::{ChannelMonitor, MonitoredFrame, Windows};
pub use occupancy::Occupancy;
pub use station::{Drops, LinkPhase, LinkStatus, Station};
pub use xid::{OptionalFunctions, Parameters, Recovery};
