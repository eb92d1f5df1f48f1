//! Frames on a link, such as those of a packet radio.

use super::Shares;
use crate::engine::Service;
use bytes::Bytes;

/// A link that carries frames in sequence: a channel, a TNC, a TUN device.
///
/// | side | what breaks the contract; .. stands for a value |
/// |---|---|
/// | user | the channel seized before Join |
/// | user | a frame before Join |
/// | user | it spends .. of a room of .. |
/// | provider | room before Join |
/// | provider | a frame came before Join |
/// | provider | transmitted a frame that it does not have |
#[derive(Debug)]
pub enum Frames {}

impl Service for Frames {
    type Request = FramesRequest;
    type Indication = FramesIndication;
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
