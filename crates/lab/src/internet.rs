//! TCP/IP between two stations on one radio channel: a host over UI frames, or over a connected AX.25 link.
//!
//! ```text
//!   streams | TCP, IPv4 | UI frames or a link | AX.25 | controller, if there is one | channel
//! ```

use crate::packets::{of_host, station_radio, way};
use longwire_proto::ax25::{
    self, Callsign, IpInterfaceConfig, IpMode, LinkConfig, PeerStation, Station, Version, pid,
};
use longwire_proto::engine::Engine;
use longwire_proto::joint::Stack;
use longwire_proto::rng::Rng;
use longwire_proto::service::{Frames, InterfaceId, LinkId, Many, Stream};
use longwire_proto::tcp::Host;
use longwire_proto::tcp::config::{HostConfig, InterfaceConfig, PeerConfig, Profile};
use longwire_sim::{RadioConfig, TncConfig};
use std::net::Ipv4Addr;

/// Interface towards the other station.
const INTERFACE: InterfaceId = InterfaceId(0);
/// Link to the other station.
const OTHER: LinkId = LinkId(0);

/// Host of a station on a radio channel, as an engine over frames of the channel.
pub type RadioHost = Box<dyn Engine<Above = Many<LinkId, Stream>, Below = Frames> + Send>;

/// Two hosts, 44.0.0.1 and 44.0.0.2, on a radio channel.
#[derive(Clone, Debug)]
pub struct Internet {
    /// Channel; both stations have the properties of its first station.
    pub radio: RadioConfig,
    /// Controller between each host and the channel; `None` for an ideal one.
    pub tnc: Option<TncConfig>,
    /// Share of frames lost, whatever their length, 0 to 1.
    pub loss: f64,
    /// Carrier of the packets.
    pub carriage: IpMode,
    /// Maximum packet length including the IPv4 header, which is the maximum information field, bytes.
    pub mtu_bytes: u16,
    /// Window of the link (k), 1 to 7 frames; not used over UI frames.
    pub window_frames: u8,
    /// TCP profile.
    pub profile: Profile,
}

/// Returns the address of a host, 0 or 1.
pub fn address(at: usize) -> Ipv4Addr {
    Ipv4Addr::new(44, 0, 0, 1 + at as u8)
}

impl Internet {
    /// Creates host 0 or 1, which accepts connections on these ports and maps these links to ports of the other host.
    pub fn host(&self, at: usize, listen: Vec<u16>, calls: &[(LinkId, u16)], rng: &Rng) -> RadioHost {
        let peers = calls.iter().map(|(link, port)| PeerConfig {
            link: *link,
            address: address(1 - at),
            port: *port,
        });
        let here = InterfaceConfig {
            interface: INTERFACE,
            address: address(at),
            mtu_bytes: self.mtu_bytes,
            ..InterfaceConfig::default()
        };
        let config = HostConfig {
            profile: self.profile.clone(),
            interfaces: vec![here],
            listen,
            peers: peers.collect(),
            ..HostConfig::default()
        };
        let host = Host::new(config, rng.fork("tcp"));
        let lower = Stack::new(self.interface(at), Station::new(self.station(at)));
        Box::new(Stack::new(host, Stack::new(lower, way(self.tnc.as_ref(), self.loss, rng))))
    }

    fn interface(&self, at: usize) -> ax25::IpInterfaces {
        let (peer, carriage) = (callsign(1 - at), self.carriage);
        ax25::IpInterfaces::new([IpInterfaceConfig { interface: INTERFACE, link: OTHER, peer, carriage }])
    }

    fn station(&self, at: usize) -> ax25::Config {
        let mut config = ax25::Config::new(callsign(at));
        config.radio = station_radio(&self.radio);
        let link = LinkConfig {
            version: Version::Plain,
            window_frames: self.window_frames,
            information_bytes_max: u32::from(self.mtu_bytes),
            protocol: pid::INTERNET,
            ..LinkConfig::default()
        };
        let link = of_host(self.tnc.as_ref(), link);
        let peer = PeerStation { station: callsign(1 - at), path: Vec::new(), link: link.clone() };
        config.callers = Some(link);
        match self.carriage {
            IpMode::Unconnected => config.unconnected.insert(OTHER, peer),
            IpMode::Connected => config.peers.insert(OTHER, peer),
        };
        config
    }
}

fn callsign(at: usize) -> Callsign {
    format!("N0CALL-{}", at + 1).parse().expect("a callsign")
}
