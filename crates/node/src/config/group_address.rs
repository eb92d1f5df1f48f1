//! Addresses of multicast groups.

use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Address of a multicast group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupAddress {
    pub(crate) address: SocketAddr,
    /// Name of the network interface; `None` for the one of the route to the group.
    pub(crate) interface: Option<String>,
}

impl std::fmt::Display for GroupAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let GroupAddress { address, interface } = self;
        let zone = interface.as_ref().map_or(String::new(), |name| format!("%{name}"));
        match address.ip() {
            IpAddr::V4(ip) => write!(f, "{ip}{zone}:{}", address.port()),
            IpAddr::V6(ip) => write!(f, "[{ip}{zone}]:{}", address.port()),
        }
    }
}

impl GroupAddress {
    /// Reads `239.1.2.3:4557` or `[ff15::1]:4557`, where `%` and the name of an interface may follow the host (RFC 4007 11). `None` for
    /// what is no address of a group.
    pub(crate) fn parse(text: &str) -> Option<GroupAddress> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let (host, interface) = match host.split_once('%') {
            Some((host, interface)) => (host, Some(interface.to_owned())),
            None => (host, None),
        };
        let ip: IpAddr = host.parse().ok().filter(IpAddr::is_multicast)?;
        Some(GroupAddress { address: SocketAddr::new(ip, port.parse().ok()?), interface })
    }

    /// Number of the network interface; zero for the one of the route.
    ///
    /// # Errors
    /// Fails if this machine has no such interface.
    pub(crate) fn interface_number(&self) -> io::Result<u32> {
        match &self.interface {
            None => Ok(0),
            Some(name) => Ok(name_to_index(socket(AddressFamily::INET, SocketType::DGRAM, None)?, name)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_group_may_name_an_interface() {
        let group = |address: &str, interface: Option<&str>| {
            let interface = interface.map(str::to_owned);
            Some(GroupAddress { address: address.parse().expect("an address"), interface })
        };
        for (text, expected) in [
            ("239.1.2.3:4557", group("239.1.2.3:4557", None)),
            ("239.1.2.3%eth0:4557", group("239.1.2.3:4557", Some("eth0"))),
            ("[ff15::1]:4557", group("[ff15::1]:4557", None)),
            ("[ff15::1%br-0]:4557", group("[ff15::1]:4557", Some("br-0"))),
            ("192.0.2.7:4557", None),
            ("[2001:db8::7]:4557", None),
            ("239.1.2.3:x", None),
            ("239.1.2.3", None),
            ("group.example.org:4557", None),
        ] {
            let read = GroupAddress::parse(text);
            assert_eq!(read, expected, "{text}");
            assert!(read.is_none_or(|group| group.to_string() == text), "{text}");
        }
    }
}
