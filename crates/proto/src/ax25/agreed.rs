//! What both stations of a link work by: before anything is negotiated, and what this side offers.

use super::config::{LinkConfig, Radio};
use super::frame::Modulo;
use super::xid::{Options, Parameters, Recovery};

/// What both stations work by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Agreed {
    pub(super) modulo: Modulo,
    pub(super) recovery: Recovery,
    /// Frames that may be on their way to the peer.
    pub(super) window: u8,
    /// The longest information field to the peer, bytes.
    pub(super) information_bytes_max: u32,
    pub(super) segmenter: bool,
    pub(super) retries: u8,
}

/// What stations remember of a peer between links.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) modulo: Modulo,
    /// It answers XID.
    pub(super) identifies: bool,
}

/// What holds before anything is negotiated (6.3.2).
pub(super) fn defaults(config: &LinkConfig, modulo: Modulo) -> Agreed {
    let recovery = match modulo {
        Modulo::Eight => Recovery::Reject,
        Modulo::Extended => config.recovery.min(Recovery::SelectiveReject),
    };
    Agreed {
        modulo,
        recovery,
        window: config.window(modulo, recovery),
        information_bytes_max: config.information_bytes_max,
        segmenter: false,
        retries: config.retries,
    }
}

/// What a station of this configuration says that it can do.
pub(super) fn offer(config: &LinkConfig, radio: &Radio, modulo: Modulo) -> Parameters {
    Parameters {
        full_duplex: Some(radio.full_duplex),
        options: Some(Options { recovery: config.recovery, modulo, segmenter: true }),
        information_bytes_max: Some(config.information_bytes_max),
        window_frames: Some(config.window(modulo, config.recovery)),
        acknowledge_timer: None,
        retries: Some(config.retries),
    }
}
