//! What both stations of a link work by: before anything is negotiated, and what this side offers.

use super::config::{LinkConfig, RadioParameters};
use super::frame::Modulo;
use super::link::Link;
use super::segment;
use super::xid::{OptionalFunctions, Parameters, Recovery};
use crate::service::PacketsIndication;

/// N1 of version 2.2 where nothing was said, bytes (6.3.2).
const INFORMATION_BYTES_UNSAID: u32 = 256;
/// The window of version 2.2 where nothing was said, frames (6.3.2).
const WINDOW_FRAMES_UNSAID: u8 = 32;

/// What both stations work by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Negotiated {
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RememberedPeer {
    pub(super) modulo: Modulo,
    pub(super) identity: XidAnswer,
}

/// What a peer answers to XID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum XidAnswer {
    /// It was not asked, or was silent.
    #[default]
    None,
    /// FRMR.
    Refused,
    /// What it can do.
    Parameters(Parameters),
}

/// What holds before anything is negotiated (6.3.2).
pub(super) fn defaults(config: &LinkConfig, modulo: Modulo) -> Negotiated {
    let recovery = match modulo {
        Modulo::Eight => Recovery::Reject,
        Modulo::Extended => config.recovery.min(Recovery::SelectiveReject),
    };
    Negotiated {
        modulo,
        recovery,
        window: config.window(modulo, recovery),
        information_bytes_max: config.information_bytes_max,
        segmenter: false,
        retries: config.retries,
    }
}

/// The same while a peer of version 2.2 is asked what it takes: no more than everyone takes who says nothing (6.3.2).
pub(super) fn unsaid(config: &LinkConfig) -> Negotiated {
    let agreed = defaults(config, Modulo::Extended);
    Negotiated {
        window: agreed.window.min(WINDOW_FRAMES_UNSAID),
        information_bytes_max: agreed.information_bytes_max.min(INFORMATION_BYTES_UNSAID),
        ..agreed
    }
}

/// What a station of this configuration says that it can do.
pub(super) fn offer(config: &LinkConfig, radio: &RadioParameters, modulo: Modulo) -> Parameters {
    Parameters {
        full_duplex: Some(radio.full_duplex),
        options: Some(OptionalFunctions { recovery: config.recovery, modulo, segmenter: true }),
        information_bytes_max: Some(config.information_bytes_max),
        window_frames: Some(config.window(modulo, config.recovery)),
        acknowledge_timer: None,
        retries: Some(config.retries),
    }
}

impl Negotiated {
    /// The longest packet, and what of one fits in a frame, bytes.
    fn packet_bytes(&self) -> (u32, u32) {
        let best = self.information_bytes_max;
        (if self.segmenter { segment::packet_bytes_max(best) } else { best }, best)
    }
}

impl Link {
    /// What the peer says that it can do holds from now on, as far as this side can.
    pub(super) fn agree(&mut self, theirs: &Parameters) {
        let agreed = self.offer().agree(theirs);
        if let Some(OptionalFunctions { recovery, segmenter, .. }) = agreed.options {
            (self.agreed.recovery, self.agreed.segmenter) = (recovery, segmenter);
        }
        let ours = self.config.window(self.agreed.modulo, self.agreed.recovery);
        self.agreed.window = agreed.window_frames.map_or(ours, |theirs| theirs.clamp(1, ours));
        if let Some(bytes) = agreed.information_bytes_max {
            self.agreed.information_bytes_max = bytes.clamp(2, self.config.information_bytes_max);
        }
        self.agreed.retries = agreed.retries.unwrap_or(self.agreed.retries).max(1);
        self.tell_packet_bytes();
    }

    /// The link stands, and the user is told.
    pub(super) fn connected(&mut self) {
        let (bytes_max, bytes_best) = self.agreed.packet_bytes();
        self.announced_bytes = (bytes_max, bytes_best);
        let peer = self.peer.to_string();
        self.indications.push_back(PacketsIndication::Connected { bytes_max, bytes_best, peer });
    }

    /// What was agreed on anew is told, if the user knows of the link.
    pub(super) fn tell_packet_bytes(&mut self) {
        if self.announced_bytes.0 == 0 {
            return;
        }
        let wished = self.agreed.information_bytes_max;
        self.keep_promise();
        let (bytes_max, bytes_best) = self.agreed.packet_bytes();
        let bytes_max = bytes_max.max(self.announced_bytes.0);
        // A peer that takes less than was promised, and no segments, is spared what its user need not send.
        let bytes_best = if self.agreed.segmenter { bytes_best } else { wished };
        if self.announced_bytes != (bytes_max, bytes_best) {
            self.announced_bytes = (bytes_max, bytes_best);
            self.indications.push_back(PacketsIndication::Sizes { bytes_max, bytes_best });
        }
    }

    /// What the user was told to be the longest packet goes on, whatever the peer says later of what it takes.
    fn keep_promise(&mut self) {
        let (promised, _) = self.announced_bytes;
        self.agreed.segmenter |= promised > self.config.information_bytes_max;
        let least = if self.agreed.segmenter { segment::information_bytes_min(promised) } else { promised };
        let bytes = self.agreed.information_bytes_max.max(least);
        self.agreed.information_bytes_max = bytes.min(self.config.information_bytes_max);
    }
}
