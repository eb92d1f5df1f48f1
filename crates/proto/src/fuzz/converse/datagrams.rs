//! A socket on which anybody may send anything.

use super::{Party, Script};
use crate::service::{CloseReason, DatagramsIndication, DatagramsRequest};

/// The provider of one socket.
#[derive(Debug)]
pub(super) struct Provider {
    /// It was asked for, or is there by itself.
    joining: bool,
    joined: bool,
    room: u64,
}

impl Provider {
    pub(super) fn new(listening: bool) -> Self {
        Provider { joining: listening, joined: false, room: 0 }
    }
}

impl Party<DatagramsRequest, DatagramsIndication> for Provider {
    fn hear(&mut self, request: DatagramsRequest) {
        match request {
            DatagramsRequest::Join => self.joining = true,
            DatagramsRequest::Leave => *self = Provider { joining: false, joined: false, room: 0 },
            DatagramsRequest::Datagram(_) => self.room -= 1,
            DatagramsRequest::Release(_) => {}
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<DatagramsIndication> {
        if self.joining && script.below(4) > 0 {
            (self.joining, self.joined, self.room) = (false, true, 0);
            return Some(DatagramsIndication::Joined { bytes_max: 1 << script.below(17) });
        }
        if !self.joined {
            return None;
        }
        Some(match script.below(8) {
            0 => {
                self.joined = false;
                DatagramsIndication::Left(CloseReason::Refused)
            }
            1..=3 => {
                self.room = script.below(4);
                DatagramsIndication::Room(self.room)
            }
            4 => DatagramsIndication::Datagram(vec![0; script.below(8) as usize].into()),
            _ => DatagramsIndication::Datagram(script.bytes(200)),
        })
    }
}
