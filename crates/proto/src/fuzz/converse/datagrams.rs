//! A socket to which arbitrary datagrams may arrive.

use super::{Script, ScriptedSide};
use crate::rng::Rng;
use crate::service::{CloseReason, DatagramsIndication, DatagramsRequest, PeerId};
use bytes::Bytes;

/// Provider of one socket.
#[derive(Debug)]
pub(super) struct Provider {
    /// Creates a legal packet; many of the datagrams that arrive are such packets.
    legal: Option<fn(&mut Rng) -> Bytes>,
    /// The socket was requested, or opens by itself.
    joining: bool,
    joined: bool,
    /// The endpoint has no configured peer.
    listening: bool,
    room: u64,
}

impl Provider {
    pub(super) fn new(listening: bool) -> Self {
        Provider { legal: None, joining: listening, joined: false, listening, room: 0 }
    }

    /// Creates a provider with many legal packets.
    pub(super) fn with(legal: fn(&mut Rng) -> Bytes) -> Self {
        Provider { legal: Some(legal), ..Provider::new(false) }
    }
}

impl ScriptedSide<DatagramsRequest, DatagramsIndication> for Provider {
    fn hear(&mut self, request: DatagramsRequest) {
        match request {
            DatagramsRequest::Join { .. } => self.joining = true,
            DatagramsRequest::Leave => (self.joining, self.joined, self.room) = (false, false, 0),
            DatagramsRequest::Datagram { .. } => self.room -= 1,
            DatagramsRequest::Release(_) => {}
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<DatagramsIndication> {
        if self.joining && script.below(4) > 0 {
            (self.joining, self.joined, self.room) = (false, true, 0);
            let configured = (!self.listening).then_some(PeerId::CONFIGURED);
            let bytes_max = 1 << script.below(17);
            return Some(DatagramsIndication::Joined { bytes_max, peer: configured, group: configured });
        }
        if !self.joined {
            return None;
        }
        let legal = self.legal.filter(|_| script.chance());
        Some(match script.below(8) {
            4.. if let Some(legal) = legal => arrived(legal(&mut script.rng())),
            0 => {
                self.joined = false;
                DatagramsIndication::Left(CloseReason::Refused)
            }
            1..=3 => {
                self.room = script.below(4);
                DatagramsIndication::Room(self.room)
            }
            4 => arrived(vec![0; script.below(8) as usize].into()),
            _ => arrived(script.bytes(200)),
        })
    }
}

fn arrived(bytes: Bytes) -> DatagramsIndication {
    DatagramsIndication::Datagram { from: PeerId::CONFIGURED, to_group: false, bytes, damaged: false }
}
