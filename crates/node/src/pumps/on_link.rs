//! Addresses on the networks of this machine, as the kernel routes to them.
//!
//! Announcements are for one network. A datagram that a group receives with a source from elsewhere was forged, or was sent to this
//! machine alone; the way that it announces would lead to a machine that has not asked for it.

use std::fs;
use std::io::Read as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use tokio::time::Instant;

/// Time for which the routes of the kernel are not read again.
const READ_AGAIN: Duration = Duration::from_secs(1);
/// Maximum number of routes of an address family that are looked at.
const ROUTES_MAX: usize = 4096;
/// Length of a table up to which it is read.
const TABLE_BYTES_MAX: u64 = 1 << 20;
/// Flags of a route in `/proc/net/route` and `/proc/net/ipv6_route`: over a gateway, and to nowhere.
const GATEWAY: u32 = 0x2;
const REJECT: u32 = 0x200;

/// Route of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Route {
    to: IpAddr,
    prefix: u32,
    /// True if it leads to the machine itself, not over another one.
    is_direct: bool,
}

/// Addresses on the networks of this machine.
#[derive(Debug)]
pub(super) struct OnLink {
    routes: Vec<Route>,
    read: Option<Instant>,
    hears_itself: bool,
}

impl OnLink {
    /// With `hears_itself`, the addresses of loopback are among them.
    pub(super) fn new(hears_itself: bool) -> Self {
        OnLink { routes: Vec::new(), read: None, hears_itself }
    }

    /// True if a machine with this address is on a network of this machine.
    pub(super) fn has(&mut self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        match address {
            _ if address.is_unspecified() || address.is_multicast() => false,
            _ if address.is_loopback() => self.hears_itself,
            IpAddr::V6(address) if address.is_unicast_link_local() => true,
            _ => {
                if self.read.is_none_or(|read| read.elapsed() >= READ_AGAIN) {
                    self.routes = read();
                    self.read = Some(Instant::now());
                }
                is_direct(&self.routes, address)
            }
        }
    }
}

/// True if the narrowest route to this address is direct. A default route says nothing about the network.
fn is_direct(routes: &[Route], address: IpAddr) -> bool {
    let of = routes.iter().filter(|route| contains(route, address));
    of.max_by_key(|route| (route.prefix, route.is_direct))
        .is_some_and(|route| route.is_direct && route.prefix > 0)
}

fn contains(route: &Route, address: IpAddr) -> bool {
    match (route.to, address) {
        (IpAddr::V4(to), IpAddr::V4(address)) => {
            let mask = u32::MAX.checked_shl(32 - route.prefix).unwrap_or(0);
            to.to_bits() & mask == address.to_bits() & mask
        }
        (IpAddr::V6(to), IpAddr::V6(address)) => {
            let mask = u128::MAX.checked_shl(128 - route.prefix).unwrap_or(0);
            to.to_bits() & mask == address.to_bits() & mask
        }
        _ => false,
    }
}

/// Routes in this thread's namespace.
fn read() -> Vec<Route> {
    let (v4, v6) = (table("route"), table("ipv6_route"));
    let v4 = v4.lines().skip(1).filter_map(route_v4).take(ROUTES_MAX);
    v4.chain(v6.lines().filter_map(route_v6).take(ROUTES_MAX)).collect()
}

/// Beginning of a routing table of the kernel, in lines; that of a large router has hundreds of megabytes.
fn table(name: &str) -> String {
    let mut text = String::new();
    let file = fs::File::open(format!("/proc/thread-self/net/{name}"));
    let _ = file.and_then(|file| file.take(TABLE_BYTES_MAX).read_to_string(&mut text));
    text
}

/// A line of `/proc/net/route`: numbers in the byte order of the network, read as those of the machine.
fn route_v4(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
    let to = IpAddr::V4(Ipv4Addr::from(number(1)?.to_ne_bytes()));
    let mask = u32::from_be_bytes(number(7)?.to_ne_bytes());
    Some(Route { to, prefix: mask.leading_ones(), is_direct: number(3)? & (GATEWAY | REJECT) == 0 })
}

/// A line of `/proc/net/ipv6_route`.
fn route_v6(line: &str) -> Option<Route> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let to = Ipv6Addr::from_bits(u128::from_str_radix(fields.first()?, 16).ok()?);
    let number = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
    let prefix = number(1).filter(|prefix| *prefix <= 128)?;
    Some(Route { to: IpAddr::V6(to), prefix, is_direct: number(8)? & (GATEWAY | REJECT) == 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `192.0.2.0/24` and `10.1.0.0/16` at the machine, `10.0.0.0/8` and everything else over gateways.
    #[cfg(target_endian = "little")]
    const V4: &str = "net0 000200C0 00000000 0001 0 0 0 00FFFFFF 0 0 0\n\
                      net1 0000010A 00000000 0001 0 0 0 0000FFFF 0 0 0\n\
                      net0 0000000A 010200C0 0003 0 0 0 000000FF 0 0 0\n\
                      net0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n\
                      ppp0 00000000 00000000 0001 0 0 0 00000000 0 0 0";
    /// `2001:db8:1::/64` at the machine, everything else over a gateway, and a network that is rejected.
    const V6: &str = "20010db8000100000000000000000000 40 0 00 0 00000100 0 0 00000001 net0\n\
                      20010db8000200000000000000000000 40 0 00 0 00000100 0 0 00000201 lo\n\
                      00000000000000000000000000000000 00 0 00 fe800000000000000000000000000001 0 0 0 00000003 net0";

    #[test]
    #[cfg(target_endian = "little")]
    fn only_senders_on_the_networks_of_the_machine_are_on_the_link() {
        let routes: Vec<Route> =
            V4.lines().filter_map(route_v4).chain(V6.lines().filter_map(route_v6)).collect();
        assert_eq!(routes.len(), 8);
        for (address, is) in [
            ("192.0.2.7", true),
            ("203.0.113.9", false),
            ("10.1.2.3", true),
            ("10.2.2.3", false),
            ("2001:db8:1::7", true),
            ("2001:db8:2::7", false),
            ("2001:db8:9::7", false),
        ] {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(is_direct(&routes, address), is, "{address}");
        }
        let mut known = OnLink { routes, read: Some(Instant::now()), hears_itself: false };
        for (address, is) in [
            ("fe80::1", true),
            ("127.0.0.1", false),
            ("::1", false),
            ("224.0.0.1", false),
            ("0.0.0.0", false),
        ] {
            assert_eq!(known.has(address.parse().expect("an address")), is, "{address}");
        }
        assert!(OnLink::new(true).has(IpAddr::V4(Ipv4Addr::LOCALHOST)));
    }
}
