//! A station on a channel with arbitrary frames of other stations, and a TNC with arbitrary output.

use super::{Script, ScriptedSide, play, stream};
use crate::ax25::{
    Address, Callsign, CommandResponse, Config, Control, Frame, LinkConfig, Modulo, PeerStation, Recovery,
    Station, Supervisory, Unnumbered, Version,
};
use crate::fuzz::radio::ax25_frame;
use crate::service::{
    DatagramsIndication, DatagramsRequest, FramesIndication, FramesRequest, LinkId, PacketsIndication,
    PacketsRequest, PeerId, Port, Shares,
};
use crate::time::Duration;
use crate::{agwpe, controller, kiss};
use bytes::{Bytes, BytesMut};
use std::collections::{BTreeMap, VecDeque};

const HERE: &str = "HERE-1";
const PEERS: [&str; 3] = ["PEER", "PEER-2", "ELSE"];
/// Destination of unconnected frames.
const GROUP: LinkId = LinkId(9);

fn call(text: &str) -> Callsign {
    text.parse().unwrap_or_else(|_| panic!("{text} is a callsign"))
}

/// Plays a station that knows two peers; a third one may connect.
pub(super) fn station(script: &mut Script<'_>) -> u64 {
    let versions = [Version::Best, Version::Extended, Version::Plain];
    let recoveries = [Recovery::Reject, Recovery::SelectiveReject, Recovery::MultiSelectiveReject];
    let link = LinkConfig {
        version: script.pick(&versions).unwrap_or_default(),
        information_bytes_max: 2 << script.below(8),
        window_frames: 1 + script.below(7) as u8,
        extended_window_frames: 1 + script.below(127) as u8,
        recovery: script.pick(&recoveries).unwrap_or(Recovery::Reject),
        retries: 1 + script.below(4) as u8,
        poll_last: script.chance(),
        unreleased_max: 1 + script.below(8),
        ..LinkConfig::default()
    };
    let peer = |name: &str| {
        let path = if name == "PEER-2" { vec![call("RELAY")] } else { vec![] };
        PeerStation { station: call(name), path, link: link.clone() }
    };
    let mut config = Config::new(call(HERE));
    config.peers = (0..2).map(|id| (LinkId(id), peer(PEERS[id as usize]))).collect();
    config.unconnected = BTreeMap::from([(GROUP, peer("QST"))]);
    config.callers = script.chance().then_some(link);
    config.links_max = 1 + script.below(4) as usize;
    config.repeats = script.chance();
    config.radio.full_duplex = script.below(4) == 0;
    config.transmission_max = Duration::from_millis(100 << script.below(10));
    play("station", Station::new(config), &mut User::default(), &mut ChannelProvider::default(), script)
}

#[derive(Debug, Default)]
struct Link {
    connected: bool,
    closing: bool,
    room: u64,
    bytes_max: u32,
    unreleased: u64,
}

/// User of a station's links and of its unconnected frames.
#[derive(Debug, Default)]
struct User {
    links: BTreeMap<LinkId, Link>,
    joined: bool,
    group_room: u64,
    group_bytes_max: u64,
}

type StationIndication = Port<(LinkId, PacketsIndication), (LinkId, DatagramsIndication)>;
type StationRequest = Port<(LinkId, PacketsRequest), (LinkId, DatagramsRequest)>;

impl ScriptedSide<StationIndication, StationRequest> for User {
    fn hear(&mut self, said: StationIndication) {
        let (id, said) = match said {
            Port::First(said) => said,
            Port::Second((_, DatagramsIndication::Room(room))) => return self.group_room = room,
            Port::Second((_, DatagramsIndication::Joined { bytes_max, .. })) => {
                return self.group_bytes_max = bytes_max;
            }
            Port::Second(_) => return,
        };
        let link = self.links.entry(id).or_default();
        match said {
            PacketsIndication::Connected { bytes_max, .. } => {
                *link = Link { connected: true, closing: link.closing, bytes_max, ..Link::default() };
            }
            PacketsIndication::Sizes { bytes_max, .. } => link.bytes_max = bytes_max,
            PacketsIndication::Room(room) => link.room = room,
            PacketsIndication::Packet(_) => link.unreleased += 1,
            PacketsIndication::Acknowledged(_) => {}
            PacketsIndication::Closed(_) => drop(self.links.remove(&id)),
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<StationRequest> {
        if script.below(8) == 0 {
            return Some(Port::Second((GROUP, self.say_to_group(script)?)));
        }
        let own = LinkId(script.below(2) as u32);
        if !self.links.contains_key(&own) && script.chance() {
            self.links.insert(own, Link::default());
            return Some(Port::First((own, PacketsRequest::Connect)));
        }
        let links: Vec<_> = self.links.keys().copied().collect();
        let id = script.pick(&links)?;
        let link = self.links.get_mut(&id)?;
        let request = match script.below(16) {
            0 => PacketsRequest::Acknowledge,
            1 => {
                link.closing = true;
                PacketsRequest::Close
            }
            2 => {
                link.closing = true;
                PacketsRequest::Abort
            }
            3..=6 => PacketsRequest::Release(core::mem::take(&mut link.unreleased)),
            _ if link.connected && link.room > 0 && !link.closing => {
                link.room -= 1;
                let length = (1 << script.below(16)).min(u64::from(link.bytes_max));
                PacketsRequest::payload(vec![0x5a; length as usize].into())
            }
            _ => return None,
        };
        Some(Port::First((id, request)))
    }
}

impl User {
    fn say_to_group(&mut self, script: &mut Script<'_>) -> Option<DatagramsRequest> {
        if !core::mem::replace(&mut self.joined, true) {
            return Some(DatagramsRequest::Join { damaged: false });
        }
        if script.below(16) == 0 {
            (self.joined, self.group_room) = (false, 0);
            return Some(DatagramsRequest::Leave);
        }
        self.group_room = self.group_room.checked_sub(1)?;
        let length = script.below(256).min(self.group_bytes_max);
        let bytes: Bytes = vec![0x33; length as usize].into();
        let shares = Shares::payload(bytes.len());
        Some(DatagramsRequest::Datagram { to: PeerId::CONFIGURED, bytes, shares, token: None })
    }
}

/// The channel, and the frames on it.
#[derive(Debug, Default)]
struct ChannelProvider {
    joined: bool,
    room: u32,
    tokens: VecDeque<u64>,
    /// The last frame that the station sent to each peer.
    heard: BTreeMap<Callsign, Frame>,
    /// The modulo of the link to each peer, according to its frames that open a link.
    modulo: BTreeMap<Callsign, Modulo>,
}

impl ScriptedSide<FramesRequest, FramesIndication> for ChannelProvider {
    fn hear(&mut self, request: FramesRequest) {
        match request {
            FramesRequest::Join => self.joined = true,
            FramesRequest::Seize => {}
            FramesRequest::Frame { bytes, token, shares, .. } => {
                self.room -= 1;
                self.tokens.extend(token);
                assert!(shares.spoken_for() <= bytes.len() as u64, "the shares exceed the frame");
                let Ok(frame) = Frame::decode(&mut bytes.clone(), Modulo::Extended) else { return };
                let to = frame.address.destination;
                match frame.control {
                    Control::Unnumbered { function: Unnumbered::SetMode, .. } => {
                        self.modulo.insert(to, Modulo::Eight);
                    }
                    Control::Unnumbered { function: Unnumbered::SetModeExtended, .. } => {
                        self.modulo.insert(to, Modulo::Extended);
                    }
                    _ => {}
                }
                let modulo = self.modulo.get(&to).copied().unwrap_or_default();
                if let Ok(frame) = Frame::decode(&mut bytes.clone(), modulo) {
                    self.heard.insert(to, frame);
                }
            }
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<FramesIndication> {
        if !self.joined {
            return None;
        }
        Some(match script.below(16) {
            0..=3 => {
                self.room = 1 << script.below(6);
                FramesIndication::Room(self.room)
            }
            4 => {
                self.room = 0;
                FramesIndication::Room(0)
            }
            5 | 6 => FramesIndication::Transmitted(self.tokens.pop_front()?),
            7 => match script.below(4) {
                0 => {
                    // The loss of the line removes the room.
                    self.room = 0;
                    FramesIndication::Carrier(false)
                }
                1 => FramesIndication::Carrier(true),
                _ => FramesIndication::Busy(script.chance()),
            },
            8 => FramesIndication::Frame(script.bytes(100)),
            9 => {
                FramesIndication::Frame(ax25_frame(&mut script.rng(), Modulo::Eight).to_bytes(Modulo::Eight))
            }
            _ => FramesIndication::Frame(self.frame(script)?),
        })
    }
}

impl ChannelProvider {
    /// Returns a frame of a peer: a connection request, a response to the last frame, possibly an unsuitable one, or
    /// any frame with the peer's callsign.
    fn frame(&mut self, script: &mut Script<'_>) -> Option<Bytes> {
        let from = call(script.pick(&PEERS)?);
        let modulo = self.modulo.get(&from).copied().unwrap_or_default();
        let mut frame = ax25_frame(&mut script.rng(), modulo);
        let heard = self.heard.get(&from).map(|frame| frame.control);
        let role = if script.chance() { CommandResponse::Command } else { CommandResponse::Response };
        frame.address = Address::new(from, call(HERE), role, &[]);
        let answered = match (script.below(4), heard) {
            (0 | 1, Some(heard)) => answer(heard, modulo, script),
            _ => None,
        };
        if let Some(control) = answered {
            frame.control = control;
            let informs =
                matches!(control, Control::Supervisory { function: Supervisory::SelectiveReject, .. });
            frame.information = if informs { script.bytes(4) } else { Bytes::new() };
            if !matches!(control, Control::Information { .. }) {
                frame.address.role = CommandResponse::Response;
            }
        }
        match frame.control {
            Control::Unnumbered { function: Unnumbered::SetMode, .. } => {
                self.modulo.insert(from, Modulo::Eight);
            }
            Control::Unnumbered { function: Unnumbered::SetModeExtended, .. } => {
                self.modulo.insert(from, Modulo::Extended);
            }
            _ => {}
        }
        Some(frame.to_bytes(modulo))
    }
}

/// Returns a response to a frame, now and then off by one.
fn answer(heard: Control, modulo: Modulo, script: &mut Script<'_>) -> Option<Control> {
    match heard {
        Control::Unnumbered { poll_final, .. } => {
            let function = script.pick(&[
                Unnumbered::Acknowledge,
                Unnumbered::Acknowledge,
                Unnumbered::DisconnectedMode,
                Unnumbered::FrameReject,
            ])?;
            let informs = function == Unnumbered::FrameReject;
            (!informs || script.chance()).then_some(Control::Unnumbered { function, poll_final })
        }
        Control::Information { send, receive, poll } => {
            let far = modulo.after(send, script.below(2) as u8);
            if script.below(3) == 0 {
                return Some(Control::Information { send: receive, receive: far, poll: script.chance() });
            }
            let function = script.pick(&[
                Supervisory::ReceiveReady,
                Supervisory::ReceiveNotReady,
                Supervisory::Reject,
                Supervisory::SelectiveReject,
            ])?;
            Some(Control::Supervisory { function, receive: far, poll_final: poll })
        }
        Control::Supervisory { receive, poll_final, .. } => {
            let send = modulo.after(receive, script.below(3) as u8);
            if script.chance() {
                return Some(Control::Information {
                    send,
                    receive: script.below(8) as u8,
                    poll: script.chance(),
                });
            }
            Some(Control::Supervisory {
                function: Supervisory::ReceiveReady,
                receive: script.below(8) as u8,
                poll_final,
            })
        }
    }
}

/// Plays the TNC's engine on a line with KISS, or something else.
pub(super) fn tnc(script: &mut Script<'_>) -> u64 {
    let acknowledgements =
        [kiss::Acknowledgement::Probe, kiss::Acknowledgement::Always, kiss::Acknowledgement::Never];
    let config = kiss::Config {
        port: script.below(2) as u8,
        acknowledgement: script.pick(&acknowledgements).unwrap_or_default(),
        poll_interval: script.chance().then_some(Duration::from_millis(50 << script.below(6))),
        send_parameters: script.chance(),
        ..kiss::Config::default()
    };
    let tnc = kiss::KissTnc::new(config, controller(script)).probing(Bytes::from_static(b"nobody misses it"));
    let mut provider = stream::Provider::new(false, speech);
    play("tnc", tnc, &mut FrameSender::default(), &mut provider, script)
}

fn controller(script: &mut Script<'_>) -> controller::Config {
    let channel = controller::ChannelParameters {
        persistence: script.byte(),
        full_duplex: script.below(4) == 0,
        ..controller::ChannelParameters::default()
    };
    let burst_frames_max = 1 + script.below(9) as u32;
    controller::Config { channel, burst_frames_max, ..controller::Config::default() }
}

fn speech(_: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    let body = match script.below(8) {
        0 => return script.bytes(100),
        1..=3 => kiss::Command::Data(script.bytes(100)),
        4..=6 => kiss::Command::DataAcknowledged { token: script.below(8) as u16, bytes: Bytes::new() },
        _ => kiss::Command::Poll,
    };
    let mut line = BytesMut::new();
    let frame = kiss::Frame { port: script.below(2) as u8, body };
    kiss::enclose(&frame, kiss::Checksum::None, &mut line);
    if script.below(8) == 0 {
        line.truncate(line.len() / 2);
    }
    line.freeze()
}

/// Plays the engine of an AGWPE server's port on a line to such a server, or something else.
pub(super) fn agwpe_port(script: &mut Script<'_>) -> u64 {
    let config = agwpe::Config { port: script.below(2) as u8, ..agwpe::Config::default() };
    let raw = agwpe::RawPort::new(config, controller(script));
    let mut provider = stream::Provider::new(false, server_speech);
    play("port", raw, &mut FrameSender::default(), &mut provider, script)
}

fn server_speech(_: &mut Option<u8>, script: &mut Script<'_>) -> Bytes {
    let (kind, data) = match script.below(16) {
        0 => return script.bytes(100),
        1..=3 => (agwpe::Kind::Ports, Bytes::from_static(b"2;Port1 a;Port2 b;\0")),
        4..=7 => (agwpe::Kind::Raw, script.bytes(100)),
        8..=13 => (agwpe::Kind::QueuedOnPort, Bytes::from(vec![script.below(3) as u8, 0, 0, 0])),
        14 => (agwpe::Kind::QueuedOnPort, script.bytes(5)),
        _ => (agwpe::Kind::from_octet(script.byte()), script.bytes(20)),
    };
    let port = script.below(2) as u8;
    let mut line = agwpe::Frame { port, ..agwpe::Frame::new(kind) }.with(data).to_bytes();
    if script.below(16) == 0 {
        line.truncate(line.len() / 2);
    }
    line
}

/// Sends frames as there is room.
#[derive(Debug, Default)]
struct FrameSender {
    joined: bool,
    room: u32,
    next: u64,
}

impl ScriptedSide<FramesIndication, FramesRequest> for FrameSender {
    fn hear(&mut self, indication: FramesIndication) {
        if let FramesIndication::Room(room) = indication {
            self.room = room;
        }
    }

    fn say(&mut self, script: &mut Script<'_>) -> Option<FramesRequest> {
        if !core::mem::replace(&mut self.joined, true) {
            return Some(FramesRequest::Join);
        }
        if self.room == 0 {
            return script.chance().then_some(FramesRequest::Seize);
        }
        self.room -= 1;
        self.next += 1;
        let token = script.chance().then_some(self.next);
        let bytes = vec![0xc0; script.below(256) as usize].into();
        Some(FramesRequest::Frame { bytes, token, last: script.chance(), shares: Shares::default() })
    }
}
