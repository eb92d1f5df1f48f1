//! An endpoint to which arbitrary datagrams may arrive.

use super::{Script, ScriptedSide, Speech};
use crate::service::{CloseReason, DatagramsIndication, DatagramsRequest, PeerId};
use std::collections::VecDeque;

/// Provider of one endpoint.
#[derive(Debug)]
pub(super) struct Provider {
    speech: Speech,
    spoken: Option<u8>,
    /// The endpoint was requested, or opens by itself.
    joining: bool,
    joined: bool,
    /// The endpoint has no configured peer.
    listening: bool,
    wants_damaged: bool,
    room: u64,
    /// Tokens of datagrams that have not left.
    tokens: VecDeque<u64>,
}

impl Provider {
    /// Creates a provider to which the peer sends the datagrams of `speech`.
    pub(super) fn new(listening: bool, speech: Speech) -> Self {
        let (joining, joined, wants_damaged) = (listening, false, false);
        let tokens = VecDeque::new();
        Provider { speech, spoken: None, joining, joined, listening, wants_damaged, room: 0, tokens }
    }
}

impl ScriptedSide<DatagramsRequest, DatagramsIndication> for Provider {
    fn hear(&mut self, request: DatagramsRequest) {
        match request {
            DatagramsRequest::Join { damaged } => (self.joining, self.wants_damaged) = (true, damaged),
            DatagramsRequest::Leave => {
                (self.joining, self.joined, self.room) = (false, false, 0);
                self.tokens.clear();
            }
            DatagramsRequest::Datagram { token, .. } => {
                self.room -= 1;
                self.tokens.extend(token);
            }
            DatagramsRequest::Release(_) => {}
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<DatagramsIndication> {
        if self.joining && script.below(4) > 0 {
            (self.joining, self.joined, self.room) = (false, true, 0);
            let peer = (!self.listening).then_some(PeerId::CONFIGURED);
            let bytes_max = 1 << script.below(17);
            return Some(DatagramsIndication::Joined { bytes_max, peer, group: peer });
        }
        if !self.joined {
            return None;
        }
        if !self.tokens.is_empty() && script.chance() {
            return self.tokens.pop_front().map(DatagramsIndication::Transmitted);
        }
        Some(match script.below(8) {
            0 => {
                (self.joined, self.spoken) = (false, None);
                self.tokens.clear();
                DatagramsIndication::Left(CloseReason::Refused)
            }
            1..=3 => {
                self.room = script.below(4);
                DatagramsIndication::Room(self.room)
            }
            _ => {
                let from = PeerId(script.below(2) as u32);
                let bytes = (self.speech)(&mut self.spoken, script);
                let damaged = self.wants_damaged && script.chance();
                DatagramsIndication::Datagram { from, to_group: false, bytes, damaged }
            }
        })
    }
}
