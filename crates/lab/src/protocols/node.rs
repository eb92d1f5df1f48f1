//! Assembly of a simulated node for plain TCP, and common parts of all nodes. Between the ends of plain TCP, nodes forward
//! packets (module `relay`).
//!
//! ```text
//!   FilesOverStream
//!         |
//!     tcp::Host
//!         |
//!      frames
//! ```
//!
//! The hop after node `k` is network `10.0.k.0/24`; its source end is `.1` and its destination end `.2`.

use super::relay::IpRelay;
use super::{Assembly, NodePosition};
use super::{INWARD, ONWARD};
use crate::error::Error;
use crate::link::LinkProfile;
use crate::toml_text;
use crate::workload::FileTask;
use crate::workload::stream::FilesOverStream;
use longwire_proto::ax25::LinkConfig;
use longwire_proto::joint::{Beneath, Stack};
use longwire_proto::rng::Rng;
use longwire_proto::service::{InterfaceId, LinkId, Storage};
use longwire_proto::setting::{Fault, Settings as _};
use longwire_proto::tcp::Host;
use longwire_proto::tcp::config::{HostConfig, InterfaceConfig, PeerConfig, Profile, RouteConfig};
use longwire_sim::{Boot, NodeEngine};
use serde::{Deserialize, Serialize};
use std::net::Ipv4Addr;
use toml::Table;

/// Link towards the destination, of every node but the last.
pub const ONWARD_LINK: LinkId = LinkId(1);

pub(super) const FILE_PORT: u16 = 5001;

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct TcpStreamSettings {
    tcp: Profile,
}

/// Settings of a plain stream with this TCP profile.
pub(super) fn stream_settings(tcp: Profile) -> Table {
    toml_text::to_table(&TcpStreamSettings { tcp })
}

/// Assembles plain TCP with these settings.
pub(super) fn assemble_stream(settings: Table) -> Result<Assembly, Error> {
    let parsed: TcpStreamSettings = toml_text::from_table(settings.clone(), "[settings]")?;
    checked(parsed.tcp.check(), "tcp")?;
    let make = move |place: &NodePosition, boot: Boot| -> NodeEngine<FileTask> {
        if place.position > 0 && !place.is_destination() {
            return Box::new(Beneath::<_, Storage>::new(IpRelay::default()));
        }
        let files = FilesOverStream::new(ONWARD_LINK).recording(place.recorded_arrivals());
        let host = Host::new(end_to_end(place, parsed.tcp.clone()), boot.rng.fork("tcp"));
        Box::new(Beneath::<_, Storage>::new(Stack::new(files, host)))
    };
    Ok(Assembly::of_stream(make, settings))
}

/// Converts the result of a configuration check to an error of the settings.
pub(super) fn checked(word: Result<(), Fault>, table: &str) -> Result<(), Error> {
    word.map_err(|fault| fault.within(&format!("settings.{table}")).into())
}

/// Checks the settings of AX.25, and that its frames fit the frame length of the path.
pub(super) fn checked_link(ax25: &LinkConfig, links: &[LinkProfile]) -> Result<(), Error> {
    checked(ax25.check(), "ax25")?;
    let longest = links.iter().map(|link| link.mtu_bytes).min().unwrap_or(u32::MAX);
    let said = ax25.information_bytes_max;
    if said <= longest {
        return Ok(());
    }
    let what = format!(
        "`ax25.information-bytes-max` is {said}, but frames on this path carry at most {longest} bytes"
    );
    Err(Error::new(what)
        .hint(format!("set it to at most {longest}, or set `mtu-bytes` of each link to at least {said}")))
}

/// Creates the host of a node of a path: TCP with this profile, which accepts connections at this port and calls the next node there.
pub fn host(place: &NodePosition, profile: &Profile, port: u16, rng: &Rng) -> Host {
    Host::new(host_config(place, profile.clone(), port), rng.fork("tcp"))
}

fn host_config(place: &NodePosition, profile: Profile, port: u16) -> HostConfig {
    let interface = |interface: InterfaceId, hop: usize, end: u8| InterfaceConfig {
        interface,
        address: address(hop, end),
        mtu_bytes: place.mtus[hop],
        ..InterfaceConfig::default()
    };
    let inward = (place.position > 0).then(|| interface(INWARD, place.position - 1, 2));
    let onward = (!place.is_destination()).then(|| interface(ONWARD, place.position, 1));
    let peer = PeerConfig { link: ONWARD_LINK, address: address(place.position, 2), port };
    HostConfig {
        profile,
        interfaces: inward.into_iter().chain(onward).collect(),
        listen: vec![port],
        peers: if place.is_destination() { Vec::new() } else { vec![peer] },
        ..HostConfig::default()
    }
}

/// Host of the source or the destination of a path, whose other end is beyond the relays.
fn end_to_end(place: &NodePosition, profile: Profile) -> HostConfig {
    let mut config = host_config(place, profile, FILE_PORT);
    let last_hop = place.mtus.len() - 1;
    if last_hop > 0 {
        let interface = if place.is_destination() { INWARD } else { ONWARD };
        config.routes = vec![RouteConfig { interface, prefix: Ipv4Addr::UNSPECIFIED, prefix_bits: 0 }];
        config.peers.iter_mut().for_each(|peer| peer.address = address(last_hop, 2));
        // Relays neither fragment packets nor say that they are too long.
        let shortest = place.mtus.iter().copied().min().unwrap_or_default();
        config.interfaces.iter_mut().for_each(|interface| interface.mtu_bytes = shortest);
    }
    config
}

impl NodePosition {
    /// Interface towards the source and its address.
    pub(crate) fn address_inward(&self) -> (InterfaceId, Ipv4Addr) {
        (INWARD, address(self.position - 1, 2))
    }

    /// Interface towards the destination and its address.
    pub(crate) fn address_onward(&self) -> (InterfaceId, Ipv4Addr) {
        (ONWARD, address(self.position, 1))
    }

    /// Address of the next node on the same hop.
    pub(crate) fn next_address(&self) -> Ipv4Addr {
        address(self.position, 2)
    }

    /// Address of the previous node on the same hop.
    pub(crate) fn previous_address(&self) -> Ipv4Addr {
        address(self.position - 1, 1)
    }
}

/// Address of an end of a hop: 1 towards the source, 2 towards the destination.
pub(super) fn address(hop: usize, end: u8) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, hop as u8, end)
}
