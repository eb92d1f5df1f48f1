//! IP packets over AX.25: interfaces of a host over UI frames or over links (3.4, protocol identifier 0xCC).
//!
//! Each interface leads to one station: there is no address resolution. Over UI frames, lost packets are not recovered;
//! over a link AX.25 retransmits them, independently of the user of IP.

use super::Callsign;
use crate::engine::{Engine, Indication, Request};
use crate::service::{
    Both, Datagrams, DatagramsIndication, DatagramsRequest, Frames, FramesIndication, FramesRequest,
    InterfaceId, LinkId, Many, Packets, PacketsIndication, PacketsRequest, PeerId, Port,
};
use crate::time::{Duration, Instant};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Delay before a link that has ended is reopened.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// Frames that carry the packets of an interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IpMode {
    /// UI frames.
    #[default]
    Unconnected,
    /// I frames of a link, which the sender of the first packet opens.
    Connected,
}

/// An interface to one station.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpInterfaceConfig {
    /// The host's ID for the interface.
    pub interface: InterfaceId,
    /// The station's ID for the peer: one of its `unconnected` or of its `peers`, with protocol identifier
    /// [`INTERNET`](super::pid::INTERNET).
    pub link: LinkId,
    /// Callsign of the peer.
    pub peer: Callsign,
    /// Frames that carry the packets.
    pub carriage: IpMode,
}

#[derive(Debug)]
struct Interface {
    to: IpInterfaceConfig,
    /// Link in use: this side's own, or one that the peer opened.
    carries: Option<LinkId>,
    /// Time at which the link is reopened.
    again_at: Option<Instant>,
    joined: bool,
}

type Below = Both<Many<LinkId, Packets>, Many<LinkId, Datagrams>>;

/// Interfaces of a host over the links and UI frames of a [`Station`](super::Station).
#[derive(Debug)]
pub struct IpInterfaces {
    interfaces: Vec<Interface>,
    up: VecDeque<(InterfaceId, FramesIndication)>,
    down: VecDeque<Request<Below>>,
}

impl IpInterfaces {
    /// Creates interfaces, which open when the host joins them.
    pub fn new(interfaces: impl IntoIterator<Item = IpInterfaceConfig>) -> Self {
        let interface = |to| Interface { to, carries: None, again_at: None, joined: false };
        IpInterfaces {
            interfaces: interfaces.into_iter().map(interface).collect(),
            up: VecDeque::new(),
            down: VecDeque::new(),
        }
    }

    fn open(&mut self, at: usize) {
        let to = &self.interfaces[at].to;
        self.down.push_back(match to.carriage {
            IpMode::Unconnected => Port::Second((to.link, DatagramsRequest::Join { damaged: false })),
            IpMode::Connected => Port::First((to.link, PacketsRequest::Connect)),
        });
    }

    fn tell(&mut self, at: usize, indication: FramesIndication) {
        self.up.push_back((self.interfaces[at].to.interface, indication));
    }

    fn hear_packets(&mut self, now: Instant, link: LinkId, indication: PacketsIndication) {
        let known = |interface: &Interface| interface.carries == Some(link) || interface.to.link == link;
        let connected = IpMode::Connected;
        let mut places = self.interfaces.iter();
        let at = match &indication {
            PacketsIndication::Connected { peer, .. } => places.position(|interface| {
                interface.to.carriage == connected && interface.to.peer.to_string() == *peer
            }),
            _ => places.position(|interface| interface.to.carriage == connected && known(interface)),
        };
        let Some(at) = at else {
            if let PacketsIndication::Connected { .. } = indication {
                self.down.push_back(Port::First((link, PacketsRequest::Abort)));
            }
            return;
        };
        match indication {
            PacketsIndication::Connected { .. } => {
                self.interfaces[at].carries = Some(link);
                self.interfaces[at].again_at = None;
                self.tell(at, FramesIndication::Carrier(true));
            }
            PacketsIndication::Room(room) if self.interfaces[at].carries == Some(link) => {
                self.tell(at, FramesIndication::Room(u32::try_from(room).unwrap_or(u32::MAX)));
            }
            PacketsIndication::Packet(packet) => {
                self.down.push_back(Port::First((link, PacketsRequest::Release(1))));
                self.tell(at, FramesIndication::Frame(packet));
            }
            PacketsIndication::Closed(_) => {
                let interface = &mut self.interfaces[at];
                if interface.carries.is_none_or(|carries| carries == link) {
                    interface.carries = None;
                    interface.again_at = Some(now + AGAIN_AFTER);
                    self.tell(at, FramesIndication::Room(0));
                    self.tell(at, FramesIndication::Carrier(false));
                }
            }
            // The layer above has a maximum packet size of its own.
            PacketsIndication::Sizes { .. } => {}
            PacketsIndication::Room(_) | PacketsIndication::Acknowledged(_) => {}
        }
    }

    fn hear_datagrams(&mut self, link: LinkId, indication: DatagramsIndication) {
        let unconnected =
            |interface: &Interface| interface.to.carriage == IpMode::Unconnected && interface.to.link == link;
        let Some(at) = self.interfaces.iter().position(unconnected) else { return };
        match indication {
            DatagramsIndication::Joined { .. } => self.tell(at, FramesIndication::Carrier(true)),
            DatagramsIndication::Room(room) => {
                self.tell(at, FramesIndication::Room(u32::try_from(room).unwrap_or(u32::MAX)));
            }
            DatagramsIndication::Datagram { bytes: packet, .. } => {
                let release = DatagramsRequest::Release(packet.len() as u64);
                self.down.push_back(Port::Second((link, release)));
                self.tell(at, FramesIndication::Frame(packet));
            }
            DatagramsIndication::Carrier(carrier) => self.tell(at, FramesIndication::Carrier(carrier)),
            DatagramsIndication::Transmitted(token) => self.tell(at, FramesIndication::Transmitted(token)),
            DatagramsIndication::Left(_) => {
                self.tell(at, FramesIndication::Room(0));
                self.tell(at, FramesIndication::Carrier(false));
            }
        }
    }
}

impl Engine for IpInterfaces {
    type Above = Many<InterfaceId, Frames>;
    type Below = Below;

    fn handle_request(&mut self, _now: Instant, (interface, request): Request<Self::Above>) {
        let at = self.interfaces.iter().position(|known| known.to.interface == interface);
        let at = at.unwrap_or_else(|| panic!("{interface:?} leads to no station"));
        match request {
            FramesRequest::Join => {
                self.interfaces[at].joined = true;
                if self.interfaces[at].carries.is_none() {
                    self.open(at);
                }
            }
            // The station seizes the channel by itself.
            FramesRequest::Seize => {}
            FramesRequest::Frame { bytes, shares, token, .. } => {
                let Interface { to, carries, .. } = &self.interfaces[at];
                match to.carriage {
                    IpMode::Unconnected => {
                        let (link, to) = (to.link, PeerId::CONFIGURED);
                        let datagram = DatagramsRequest::Datagram { to, bytes, shares, token };
                        self.down.push_back(Port::Second((link, datagram)));
                    }
                    IpMode::Connected => {
                        let packet = |link| Port::First((link, PacketsRequest::Packet { bytes, shares }));
                        self.down.extend(carries.map(packet));
                        // The end of the transmission is not reported; the station is responsible for the packet from
                        // here on.
                        if let Some(token) = token {
                            self.tell(at, FramesIndication::Transmitted(token));
                        }
                    }
                }
            }
        }
    }

    fn handle_indication(&mut self, now: Instant, indication: Indication<Below>) {
        match indication {
            Port::First((link, indication)) => self.hear_packets(now, link, indication),
            Port::Second((link, indication)) => self.hear_datagrams(link, indication),
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        for at in 0..self.interfaces.len() {
            let interface = &mut self.interfaces[at];
            if interface.again_at.is_some_and(|again| again <= now) {
                interface.again_at = None;
                if interface.joined && interface.carries.is_none() {
                    self.open(at);
                }
            }
        }
    }

    fn poll_indication(&mut self, _now: Instant) -> Option<Indication<Self::Above>> {
        self.up.pop_front()
    }

    fn poll_request(&mut self, _now: Instant) -> Option<Request<Below>> {
        self.down.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.interfaces.iter().filter_map(|interface| interface.again_at).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::drain;
    use crate::service::Shares;
    use bytes::Bytes;

    #[test]
    fn a_packet_goes_down_with_the_shares_that_the_host_gave_it() {
        let to = |number: u16, carriage| {
            let (interface, link) = (InterfaceId(number), LinkId(number.into()));
            IpInterfaceConfig { interface, link, peer: "B".parse().unwrap(), carriage }
        };
        let mut interfaces = IpInterfaces::new([to(0, IpMode::Unconnected), to(1, IpMode::Connected)]);
        let connected = PacketsIndication::Connected { bytes_max: 256, bytes_best: 256, peer: "B".into() };
        interfaces.handle_indication(Instant::ZERO, Port::First((LinkId(1), connected)));
        let (bytes, shares) = (Bytes::from_static(b"packet"), Shares::acknowledgement(6));
        for interface in [InterfaceId(0), InterfaceId(1)] {
            let frame = FramesRequest::Frame { bytes: bytes.clone(), token: None, last: true, shares };
            interfaces.handle_request(Instant::ZERO, (interface, frame));
        }
        let mut down = Vec::new();
        drain(&mut interfaces, Instant::ZERO, |_| {}, |request| down.push(request));
        let (to, token) = (PeerId::CONFIGURED, None);
        let datagram = DatagramsRequest::Datagram { to, bytes: bytes.clone(), shares, token };
        let packet = PacketsRequest::Packet { bytes, shares };
        assert_eq!(down, [Port::Second((LinkId(0), datagram)), Port::First((LinkId(1), packet))]);
    }
}
