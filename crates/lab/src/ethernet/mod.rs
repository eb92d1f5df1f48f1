//! IP over Ethernet frames on a shared channel: the part of the operating system between hosts and a D-STAR radio.
//!
//! ```text
//!   hosts: IPv4 packets, one interface for each address
//!      |
//!   EthernetStation: routes, forwarding, ARP, ICMP, one bounded queue
//!      |
//!   Ethernet frames, one per transmission
//! ```
//!
//! Sources: RFC 791, RFC 792 (echo, redirect), RFC 826, RFC 894, RFC 1122 3.2.2. All stations are on one network, so a
//! packet that is forwarded leaves through the interface by which it came. There is no fragmentation.

pub mod node;
mod station;
#[cfg(test)]
mod tests;
pub mod wire;

pub use station::{Counters, EthernetStation};

use longwire_proto::service::InterfaceId;
use longwire_proto::settings;
use std::net::Ipv4Addr;
use wire::MacAddress;

settings! {
    /// Configuration of a station.
    #[derive(Clone, Debug, PartialEq)]
    pub struct EthernetConfig {
        /// Hardware address. Default: that of station 0.
        pub mac: MacAddress = MacAddress::of_station(0),
        /// Interfaces of the hosts with their addresses. Default: none.
        pub addresses: Vec<(InterfaceId, Ipv4Addr)>,
        /// Next hops of destinations; all others are reached directly. Default: none.
        pub routes: Vec<(Ipv4Addr, Ipv4Addr)>,
        /// Static ARP entries. Default: none.
        pub arp: Vec<(Ipv4Addr, MacAddress)>,
        /// True if packets to others are forwarded. Default: false.
        pub forwards: bool,
        /// True if a source is redirected when it could reach the next hop itself, and redirects of others are followed.
        /// Default: false.
        pub redirects: bool,
        /// Frames that can wait for the channel (`txqueuelen`). Default: 1,000.
        pub queue_frames: usize = 1000,
        /// Maximum length of a packet, bytes. Default: 1,500.
        pub mtu_bytes: usize = 1500,
    }
}
