//! Frames on a link, such as those of a packet radio.

use crate::engine::Service;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// A link that carries frames, one after the other: a channel, a TNC, a TUN device.
#[derive(Debug)]
pub enum Frames {}

impl Service for Frames {
    type Request = FramesRequest;
    type Indication = FramesIndication;
}

/// What the bytes of a frame are for. It travels beside the frame, never in it: from it the simulator and the
/// daemon tell where the time on the channel went.
///
/// What is left of the frame's length after these shares is header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shares {
    /// Bytes of the user above, sent for the first time.
    pub payload: u32,
    /// Bytes sent once more than once, headers included where the whole frame is a repetition.
    pub repeated: u32,
    /// Bytes that do nothing but acknowledge.
    pub acknowledgement: u32,
    /// Bytes that open, close, probe or keep alive.
    pub control: u32,
    /// Bytes that are there to repair others.
    pub repair: u32,
}

/// Down through [`Frames`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramesRequest {
    /// Opens the link: room and frames come from now on.
    Join,
    /// Something is to be sent. On a shared channel room comes when it is won, and only after this (AX.25's seizing of
    /// the link); on others it is there anyway.
    Seize,
    /// One frame. Needs room of 1.
    Frame {
        /// The frame's bytes, without what the link itself adds.
        bytes: Bytes,
        /// If given, [`FramesIndication::Transmitted`] comes back with it when the last bit has left.
        token: Option<u64>,
        /// The last of a burst: a shared channel may now be given up.
        last: bool,
        /// What its bytes are for.
        shares: Shares,
    },
}

/// Up through [`Frames`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FramesIndication {
    /// How many frames may be handed down.
    Room(u32),
    /// A frame came. Where the link has no check of its own its bits may be wrong.
    Frame(Bytes),
    /// The last bit of the frame with this token has left.
    Transmitted(u64),
    /// Others are heard on the channel (`true`), or no more. Who cannot tell never says it.
    Busy(bool),
    /// The link's own sense of being connected (`true`) or not.
    Carrier(bool),
}
