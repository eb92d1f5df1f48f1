//! A packet link whose peer may send anything.

use super::{Script, ScriptedSide, Speech};
use crate::service::{CloseReason, PacketsIndication, PacketsRequest};

/// Provider of one link.
#[derive(Debug)]
pub(super) struct Provider {
    speech: Speech,
    spoken: Option<u8>,
    /// A connection was requested, or a peer connects.
    connecting: bool,
    connected: bool,
    /// Maximum packet length, bytes.
    bytes_max: u32,
    handed: u64,
    acknowledged: u64,
}

impl Provider {
    /// Creates a provider with a peer that sends the packets of `speech`; with `incoming` it is about to connect.
    pub(super) fn new(incoming: bool, speech: Speech) -> Self {
        let (spoken, connecting, connected) = (None, incoming, false);
        Provider { speech, spoken, connecting, connected, bytes_max: 0, handed: 0, acknowledged: 0 }
    }
}

impl ScriptedSide<PacketsRequest, PacketsIndication> for Provider {
    fn hear(&mut self, request: PacketsRequest) {
        match request {
            PacketsRequest::Connect => self.connecting = true,
            PacketsRequest::Packet { .. } => self.handed += 1,
            _ => {}
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<PacketsIndication> {
        if self.connecting && script.below(4) > 0 {
            let bytes_best = 16 << script.below(6);
            let bytes_max = bytes_best << script.below(4);
            *self = Provider { connected: true, bytes_max, ..Provider::new(false, self.speech) };
            return Some(PacketsIndication::Connected { bytes_max, bytes_best, peer: "PEER-1".into() });
        }
        if self.connecting || !self.connected {
            return None;
        }
        Some(match script.below(8) {
            0 => {
                *self = Provider::new(false, self.speech);
                let reasons = [CloseReason::Finished, CloseReason::TimedOut, CloseReason::Reset];
                PacketsIndication::Closed(script.pick(&reasons).unwrap_or(CloseReason::Reset))
            }
            1 if script.below(4) == 0 => {
                self.bytes_max = self.bytes_max.max(16 << script.below(9));
                let bytes_max = self.bytes_max;
                PacketsIndication::Sizes { bytes_max, bytes_best: bytes_max >> script.below(5) }
            }
            1 | 2 => PacketsIndication::Room(script.below(8)),
            3 if self.handed > self.acknowledged => {
                self.acknowledged += 1 + script.below(self.handed - self.acknowledged);
                PacketsIndication::Acknowledged(self.acknowledged)
            }
            _ => PacketsIndication::Packet((self.speech)(&mut self.spoken, script)),
        })
    }
}
