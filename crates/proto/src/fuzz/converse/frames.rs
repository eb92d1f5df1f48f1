//! A link to a peer that may or may not use TCP.

use super::{HERE, INTERFACE, PORT, Script, ScriptedSide, THERE};
use crate::service::{FramesIndication, FramesRequest, InterfaceId};
use crate::tcp::wire::{Flags, Packet, Segment, TcpOptions};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

/// Provider of one interface.
#[derive(Debug, Default)]
pub(super) struct Provider {
    joined: bool,
    room: u32,
    tokens: VecDeque<u64>,
    /// The last packet of each connection that the host has sent, by its ports.
    heard: BTreeMap<(u16, u16), Packet>,
    /// The last frame.
    last: Bytes,
}

impl ScriptedSide<(InterfaceId, FramesRequest), (InterfaceId, FramesIndication)> for Provider {
    fn hear(&mut self, (_, request): (InterfaceId, FramesRequest)) {
        match request {
            FramesRequest::Join => self.joined = true,
            FramesRequest::Seize => {}
            FramesRequest::Frame { bytes, token, .. } => {
                self.room -= 1;
                self.tokens.extend(token);
                let packet = Packet::decode(&mut bytes.clone()).expect("the host sends whole packets");
                let ports = (packet.segment.source_port, packet.segment.destination_port);
                self.heard.insert(ports, packet);
                self.last = bytes;
            }
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<(InterfaceId, FramesIndication)> {
        if !self.joined {
            return None;
        }
        let indication = match script.below(16) {
            0..=2 => {
                self.room = script.below(5) as u32;
                FramesIndication::Room(self.room)
            }
            3 | 4 => FramesIndication::Transmitted(self.tokens.pop_front()?),
            5 => FramesIndication::Carrier(script.chance()),
            6 => FramesIndication::Frame(script.bytes(200)),
            7 => {
                let mut bytes = self.last.to_vec();
                if !bytes.is_empty() {
                    let at = usize::from(script.byte()) % bytes.len();
                    bytes[at] ^= script.byte();
                }
                FramesIndication::Frame(bytes.into())
            }
            _ => FramesIndication::Frame(self.packet(script)),
        };
        Some((INTERFACE, indication))
    }
}

impl Provider {
    /// Returns a well-formed packet: an answer to the host, possibly an unsuitable one, or a connection request.
    fn packet(&self, script: &mut Script<'_>) -> Bytes {
        let known: Vec<_> = self.heard.values().collect();
        let mut segment = match script.pick(&known) {
            Some(heard) if script.below(8) > 0 => answer(&heard.segment, script),
            _ => call(script),
        };
        if script.below(4) == 0 {
            segment.payload = script.bytes(64);
        } else if script.chance() {
            segment.payload = vec![0x5a; 1 << script.below(11)].into();
        }
        let packet =
            Packet { identification: 7, time_to_live: 64, source: THERE, destination: HERE, segment };
        let mut out = BytesMut::new();
        packet.encode(&mut out);
        out.freeze()
    }
}

fn call(script: &mut Script<'_>) -> Segment {
    Segment {
        source_port: 1000 + script.below(4) as u16,
        destination_port: PORT,
        sequence: script.number() as u32,
        acknowledgement: 0,
        flags: Flags::SYN,
        window: script.number() as u16,
        urgent: 0,
        options: options(script),
        payload: Bytes::new(),
    }
}

fn answer(heard: &Segment, script: &mut Script<'_>) -> Segment {
    let next = heard.sequence.wrapping_add(heard.length());
    let flags = match script.below(8) {
        0..=3 => Flags::ACK,
        4 => Flags::SYN.with(Flags::ACK),
        5 => Flags::FIN.with(Flags::ACK),
        6 => Flags::RST.with(Flags::ACK),
        _ => Flags::from_byte(script.byte()),
    };
    let mut options = options(script);
    if let Some((value, _)) = heard.options.timestamps {
        // The echo is the host's timestamp; an older value of the peer's clock makes the segment an old duplicate.
        options.timestamps = script.chance().then(|| (script.number() as u32, value));
    }
    Segment {
        source_port: heard.destination_port,
        destination_port: heard.source_port,
        sequence: near(heard.acknowledgement, script),
        acknowledgement: near(next, script),
        flags,
        window: if script.chance() { u16::MAX } else { script.number() as u16 },
        urgent: 0,
        options,
        payload: Bytes::new(),
    }
}

/// Returns the number itself, one nearby, or any.
fn near(number: u32, script: &mut Script<'_>) -> u32 {
    match script.below(8) {
        0..=4 => number,
        5 => number.wrapping_add(script.below(256) as u32),
        6 => number.wrapping_sub(script.below(256) as u32),
        _ => script.number() as u32,
    }
}

fn options(script: &mut Script<'_>) -> TcpOptions {
    let mut options = TcpOptions::default();
    let choice = script.byte();
    options.sack_permitted = choice & 1 != 0;
    options.window_scale = (choice & 2 != 0).then(|| script.byte());
    options.maximum_segment_bytes = (choice & 4 != 0).then(|| script.number() as u16);
    if choice & 24 == 24 {
        options = TcpOptions::default();
        let start = script.number() as u32;
        options.sack.push(start, start.wrapping_add(script.below(256) as u32));
        options.sack.push(script.number() as u32, script.number() as u32);
    }
    options
}
