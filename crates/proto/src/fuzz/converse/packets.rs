//! A packet link whose peer may send anything.

use super::{Script, ScriptedSide};
use crate::fuzz::codecs::ax25cl_packet;
use crate::service::{CloseReason, PacketsIndication, PacketsRequest};
use crate::tcpcl::packet_stream::seal;
use bytes::{Bytes, BytesMut};

/// Provider of one link.
#[derive(Debug)]
pub(super) struct Provider {
    /// A connection was requested, or a peer connects.
    connecting: bool,
    connected: bool,
    closing: bool,
    /// Maximum packet length, bytes.
    bytes_max: u32,
    handed: u64,
    acknowledged: u64,
    /// Received packets have their CRC.
    sealed: bool,
    /// A contact header has arrived.
    greeted: bool,
}

impl Provider {
    pub(super) fn new(incoming: bool, sealed: bool) -> Self {
        let (connecting, connected, closing, bytes_max) = (incoming, false, false, 0);
        Provider {
            connecting,
            connected,
            closing,
            bytes_max,
            handed: 0,
            acknowledged: 0,
            sealed,
            greeted: false,
        }
    }
}

impl ScriptedSide<PacketsRequest, PacketsIndication> for Provider {
    fn hear(&mut self, request: PacketsRequest) {
        match request {
            PacketsRequest::Connect => self.connecting = true,
            PacketsRequest::Packet { .. } => self.handed += 1,
            PacketsRequest::Close | PacketsRequest::Abort => self.closing = true,
            PacketsRequest::Release(_) | PacketsRequest::Acknowledge => {}
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<PacketsIndication> {
        if self.connecting && script.below(4) > 0 {
            let sealed = self.sealed;
            let bytes_best = 16 << script.below(6);
            let bytes_max = bytes_best << script.below(4);
            *self = Provider { connected: true, bytes_max, ..Provider::new(false, sealed) };
            return Some(PacketsIndication::Connected { bytes_max, bytes_best, peer: "PEER-1".into() });
        }
        if self.connecting || !self.connected {
            return None;
        }
        if !self.greeted && !self.sealed && script.below(4) > 0 {
            self.greeted = true;
            let greeting = Bytes::from_static(b"LW\x01\x02\x01\x02\x03\x04\x0cdtn://there/");
            return Some(PacketsIndication::Packet(greeting));
        }
        if self.sealed && !self.greeted {
            self.greeted = true;
            return Some(PacketsIndication::Packet(seal(b"dtn!\x03\x03\x00\x1e\x07dtn://a")));
        }
        Some(match script.below(8) {
            0 => {
                let sealed = self.sealed;
                *self = Provider::new(false, sealed);
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
            4 if !self.sealed || script.below(8) == 0 => PacketsIndication::Packet(script.bytes(200)),
            5 if self.sealed => PacketsIndication::Packet(seal(&script.bytes(100))),
            _ if self.sealed => {
                // A segment of a bundle, complete or not.
                let data = script.bytes(20);
                let header = [0x10 | script.below(4) as u8, data.len() as u8];
                PacketsIndication::Packet(seal(&[&header[..], &data].concat()))
            }
            _ => {
                let mut packet = BytesMut::new();
                ax25cl_packet(&mut script.rng()).encode(&mut packet);
                PacketsIndication::Packet(packet.freeze())
            }
        })
    }
}
