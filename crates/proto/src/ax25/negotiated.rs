//! Parameters of a link: before negotiation, and as this side offers them.

use super::config::{LinkConfig, RadioParameters};
use super::frame::Modulo;
use super::link::Link;
use super::segment;
use super::xid::{OptionalFunctions, Parameters, Recovery};
use crate::service::PacketsIndication;

/// N1 of version 2.2 without XID, bytes (6.3.2).
const INFORMATION_BYTES_UNSAID: u32 = 256;
/// Window of version 2.2 without XID, frames (6.3.2).
const WINDOW_FRAMES_UNSAID: u8 = 32;

/// Parameters that both stations use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Negotiated {
    pub(super) modulo: Modulo,
    pub(super) recovery: Recovery,
    /// Maximum frames in flight to the peer (k).
    pub(super) window: u8,
    /// Maximum information field to the peer (N1), bytes.
    pub(super) information_bytes_max: u32,
    pub(super) segmenter: bool,
    pub(super) retries: u8,
}

/// Data about a peer that are remembered between links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RememberedPeer {
    pub(super) modulo: Modulo,
    pub(super) identity: XidAnswer,
}

/// Answer of a peer to XID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum XidAnswer {
    /// XID was not sent, or not answered.
    #[default]
    None,
    /// The peer answered FRMR.
    Refused,
    /// The peer answered with its parameters.
    Parameters(Parameters),
}

/// Returns the parameters before negotiation (6.3.2).
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

/// Returns the parameters until a peer of version 2.2 has answered XID: at most the defaults of the version (6.3.2).
pub(super) fn unsaid(config: &LinkConfig) -> Negotiated {
    let agreed = defaults(config, Modulo::Extended);
    Negotiated {
        window: agreed.window.min(WINDOW_FRAMES_UNSAID),
        information_bytes_max: agreed.information_bytes_max.min(INFORMATION_BYTES_UNSAID),
        ..agreed
    }
}

/// Returns the parameters that a station with these settings offers in XID.
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
    /// Returns the maximum packet, and the largest one that fits in one frame, bytes.
    fn packet_bytes(&self) -> (u32, u32) {
        let best = self.information_bytes_max;
        (if self.segmenter { segment::packet_bytes_max(best) } else { best }, best)
    }
}

impl Link {
    /// Applies the peer's parameters, as far as this side supports them.
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

    /// Informs the user that the link is established.
    pub(super) fn connected(&mut self) {
        let (bytes_max, bytes_best) = self.agreed.packet_bytes();
        self.announced_bytes = (bytes_max, bytes_best);
        let peer = self.peer.to_string();
        self.indications.push_back(PacketsIndication::Connected { bytes_max, bytes_best, peer });
    }

    /// Informs the user of changed packet sizes, if it knows of the link.
    pub(super) fn tell_packet_bytes(&mut self) {
        if self.announced_bytes.0 == 0 {
            return;
        }
        let wished = self.agreed.information_bytes_max;
        self.keep_promise();
        let (bytes_max, bytes_best) = self.agreed.packet_bytes();
        let bytes_max = bytes_max.max(self.announced_bytes.0);
        // If the peer accepts less than announced, and no segments, the user is asked for smaller packets.
        let bytes_best = if self.agreed.segmenter { bytes_best } else { wished };
        if self.announced_bytes != (bytes_max, bytes_best) {
            self.announced_bytes = (bytes_max, bytes_best);
            self.indications.push_back(PacketsIndication::Sizes { bytes_max, bytes_best });
        }
    }

    /// Keeps the maximum packet size announced to the user valid, whatever parameters the peer sends later.
    fn keep_promise(&mut self) {
        let (promised, _) = self.announced_bytes;
        self.agreed.segmenter |= promised > self.config.information_bytes_max;
        let least = if self.agreed.segmenter { segment::information_bytes_min(promised) } else { promised };
        let bytes = self.agreed.information_bytes_max.max(least);
        self.agreed.information_bytes_max = bytes.min(self.config.information_bytes_max);
    }
}
