//! Frames on a link, such as those of a packet radio.

use crate::engine::Service;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A link that carries frames in sequence: a channel, a TNC, a TUN device.
#[derive(Debug)]
pub enum Frames {}

impl Service for Frames {
    type Request = FramesRequest;
    type Indication = FramesIndication;
}

/// Purpose of the bytes of a frame. It accompanies the frame and is never part of it: the simulator and the daemon
/// compute from it what the time on the channel was used for.
///
/// The rest of the frame's length is header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// User data, sent for the first time.
    pub payload: u32,
    /// Bytes sent again, with the headers if the whole frame is a retransmission.
    pub repeated: u32,
    /// Bytes that only acknowledge.
    pub acknowledgement: u32,
    /// Bytes that open, close, probe or keep alive.
    pub control: u32,
    /// Redundant bytes for the repair of others.
    pub repair: u32,
}

/// Requests of [`Frames`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramesRequest {
    /// Opens the link: room and frames follow.
    Join,
    /// Requests the channel. On a shared channel room follows when the channel is won, and only after this request
    /// (AX.25's link seizure); on other links there is room without it.
    Seize,
    /// One frame. Needs room of 1.
    Frame {
        /// Bytes of the frame, without those that the link itself adds.
        bytes: Bytes,
        /// Token for [`FramesIndication::Transmitted`] after the last bit has left; `None` without that indication.
        token: Option<u64>,
        /// True for the last frame of a burst: a shared channel may then be released.
        last: bool,
        /// Purpose of the bytes.
        shares: Shares,
    },
}

/// Indications of [`Frames`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramesIndication {
    /// Number of frames that may be passed down.
    Room(u32),
    /// A received frame. Without a check sequence on the link its bits may be wrong.
    Frame(Bytes),
    /// The last bit of the frame with this token has left.
    Transmitted(u64),
    /// Another station occupies the channel (`true`) or has ended (`false`). Absent where the provider has no carrier
    /// sense.
    Busy(bool),
    /// The link itself is connected (`true`) or disconnected (`false`).
    Carrier(bool),
}
