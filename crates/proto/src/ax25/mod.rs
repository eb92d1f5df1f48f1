//! AX.25, the link layer of packet radio: connected mode and UI frames.
//!
//! Specification: *AX.25 Link Access Protocol for Amateur Packet Radio*, version 2.2, fourth revision of October 2025,
//! and the behaviour of existing stations where it is silent or contradicts itself.
//!
//! Implemented: the address field with digipeaters (3.12), all frames of modulo 8 and 128 (4), flags, bit stuffing and
//! check sequence ([`hdlc`], 3.1, 3.6, 3.7), links with REJ, SREJ and SREJ for several frames (6.4), XID (4.3.3.7),
//! segmentation (6.6), UI and TEST frames, and digipeating. Not implemented: FRMR is understood and not sent (4.3.3.9),
//! as version 2.2 requires; T100, T101, T104 to T106 and T108 belong to the controller and the radio.
//!
//! ```text
//!                 Packets (links)   Datagrams (UI)
//!                        |               |
//!                   [        Station        ]   one callsign on one channel
//!                     Link  Link  Link ..       AwaitingConnection - AwaitingConfirmation - Connected
//!                               |                         - AwaitingRelease - Disconnected
//!                            Frames (a TNC, a simulated channel)
//! ```
//!
//! Beyond the specification: the last I frame of a burst has P set, so that its receiver answers at once instead of
//! waiting for more. An unpolled acknowledgement waits until the peer has sent as many frames as in its last burst, or
//! for T2, or only briefly after a frame shorter than the one before it. T1 counts from the time at which the frames
//! have left, and its length is the time of an answer on this channel. Tries are counted from zero whenever the peer
//! makes progress. The peer's answer to SABME and its parameters are remembered for the next connection.
//!
//! A station whose SABME is accepted sends XID after its first data, in the same key-up and instead of P on the last of
//! them; its user is informed at once that the link is established (6.3.2 negotiates first, which costs a turnaround of
//! the channel). Until the answer the link uses the peer's last XID parameters, or the defaults of version 2.2: 32
//! frames in flight, 256 octets in each, no segments. The answer gives the user the packet sizes
//! ([`Sizes`](crate::service::PacketsIndication::Sizes)).
//!
//! Missing frames are requested at once: a controller holds REJ and SREJ until the channel is free. A frame that the
//! peer has skipped in its retransmission is lost again and is requested again; so is everything requested, after a
//! silence as long as T1 and one channel access. After an SREJ the receiver of it waits for further ones, because some
//! stations send one per frame, and F with any of them. Its retransmission is followed by an enquiry, because the same
//! stations answer P on an I frame with RR even if other frames are missing.
//!
//! Some controllers report a frame as transmitted when they have only accepted it, or report nothing. Then T1 counts
//! from the time that the frames need on the channel, and the times during which other stations transmit. An answer
//! that began before its poll can have left is the late one to an earlier poll: it acknowledges, causes no
//! retransmission, and makes T1 longer.
//!
//! A link that no longer knows what the peer has received (a number outside the window, FRMR, SABM on an established
//! link) closes with [`Reset`](crate::service::CloseReason::Reset) instead of being reset as in 6.5: its user must
//! know.

mod address;
mod air_time_budget;
mod announcements;
mod config;
mod frame;
pub mod hdlc;
mod heard;
mod internet;
mod link;
mod link_slots;
mod monitor;
mod negotiated;
mod occupancy;
mod receive;
pub(crate) mod segment;
mod station;
mod timing;
mod transmit;
mod transmitted;
mod unconnected;
mod xid;
mod xid_exchange;

#[cfg(test)]
mod tests;

pub use address::{
    ADDRESS_BYTES, Address, Callsign, CallsignError, CommandResponse, DIGIPEATERS_MAX, Digipeater,
};
pub use air_time_budget::AirTime;
pub use announcements::{Announcement, AnnouncementCounts};
pub use config::{Config, Counters, Drops, LinkConfig, PeerStation, RadioParameters, Version};
pub use frame::{Control, Frame, Modulo, Supervisory, Unnumbered, pid};
pub use heard::HeardStation;
pub use internet::{IpInterfaceConfig, IpInterfaces, IpMode};
pub use monitor::{ChannelMonitor, MonitoredFrame, Windows};
pub use occupancy::Occupancy;
pub use station::{LinkPhase, LinkStatus, Station};
pub use xid::{OptionalFunctions, Parameters, Recovery};
