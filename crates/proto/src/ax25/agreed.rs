//! What both stations of a link work by: before anything is negotiated, and what this side offers.

use super::config::{LinkConfig, Radio};
use super::frame::Modulo;
use super::link::Link;
use super::segment;
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

impl Link {
    /// What the peer says that it can do holds from now on, as far as this side can.
    pub(super) fn agree(&mut self, theirs: &Parameters) {
        let agreed = self.offer().agree(theirs);
        if let Some(Options { recovery, segmenter, .. }) = agreed.options {
            (self.agreed.recovery, self.agreed.segmenter) = (recovery, segmenter);
        }
        let ours = self.config.window(self.agreed.modulo, self.agreed.recovery);
        self.agreed.window = agreed.window_frames.map_or(ours, |theirs| theirs.clamp(1, ours));
        if let Some(bytes) = agreed.information_bytes_max {
            self.agreed.information_bytes_max = bytes.clamp(2, self.config.information_bytes_max);
        }
        self.keep_promise();
        self.agreed.retries = agreed.retries.unwrap_or(self.agreed.retries).max(1);
    }

    /// What the user was told to be the longest packet goes on, whatever the peer says later of what it takes.
    fn keep_promise(&mut self) {
        let promised = self.promised_bytes;
        self.agreed.segmenter |= promised > self.config.information_bytes_max;
        let least = if self.agreed.segmenter { segment::information_bytes_min(promised) } else { promised };
        let bytes = self.agreed.information_bytes_max.max(least);
        self.agreed.information_bytes_max = bytes.min(self.config.information_bytes_max);
    }
}
