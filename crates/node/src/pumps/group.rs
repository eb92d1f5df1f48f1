//! Multicast groups: their addresses, and sockets for them.
//!
//! A link to a group has two sockets. One sends to the group and receives the answers to this node alone, at a port of its own, so that
//! several nodes of a computer can use one group. The other one receives what all send to the group; a node that listens on the group has
//! only this one.

use crate::config::GroupAddress;
use rustix::io::Errno;
use rustix::net::netdevice::name_to_index;
use rustix::net::sockopt::{
    set_ip_add_membership_with_ifindex, set_ip_multicast_if_with_ifindex, set_ip_multicast_ttl,
    set_ipv6_add_membership, set_ipv6_multicast_hops, set_ipv6_multicast_if, set_ipv6_v6only,
    set_socket_reuseaddr,
};
use rustix::net::{AddressFamily, SocketType, bind, socket};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::os::fd::AsFd;
use tokio::net::UdpSocket;

/// Opens a socket that sends to the group, over at most `hops` networks. Returns it with the address of the group.
pub(super) async fn sender(group: &GroupAddress, hops: u8) -> io::Result<(UdpSocket, SocketAddr)> {
    let any: SocketAddr = if group.address.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).await?;
    let index = group.interface_number()?;
    let mut address = group.address;
    match &mut address {
        SocketAddr::V4(at) => {
            set_ip_multicast_ttl(&socket, hops.into())?;
            if index > 0 {
                set_ip_multicast_if_with_ifindex(&socket, at.ip(), &Ipv4Addr::UNSPECIFIED, index)?;
            }
        }
        SocketAddr::V6(at) => {
            set_ipv6_multicast_hops(&socket, hops.into())?;
            set_ipv6_multicast_if(&socket, index)?;
            *at = SocketAddrV6::new(*at.ip(), at.port(), 0, index);
        }
    }
    Ok((socket, address))
}

/// Opens a socket that receives what is sent to the group, as others on this computer may do as well.
pub(crate) fn receiver(group: &GroupAddress) -> io::Result<UdpSocket> {
    let family = if group.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::DGRAM, None)?;
    set_socket_reuseaddr(&socket, true)?;
    let index = group.interface_number()?;
    match group.address {
        SocketAddr::V4(at) => {
            bind(&socket, &at)?;
            set_ip_add_membership_with_ifindex(&socket, at.ip(), &Ipv4Addr::UNSPECIFIED, index)?;
        }
        SocketAddr::V6(at) => {
            bind(&socket, &SocketAddrV6::new(*at.ip(), at.port(), 0, index))?;
            set_ipv6_add_membership(&socket, at.ip(), index)?;
        }
    }
    let socket = std::net::UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// Opens a socket for what is sent to this machine alone, beside those of groups at the same port if there are some.
///
/// # Errors
/// Fails if no address can be used.
pub(crate) fn beside_groups(address: &str, are_groups: bool) -> io::Result<UdpSocket> {
    let open = |address: SocketAddr| {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if are_groups {
            socket.set_reuse_address(true)?;
            // The kernel would hand it what is sent to groups that other sockets have joined.
            socket.set_multicast_all_v4(false)?;
            if address.is_ipv6() {
                socket.set_multicast_all_v6(false)?;
            }
        }
        socket.bind(&address.into())?;
        socket.set_nonblocking(true)?;
        UdpSocket::from_std(socket.into())
    };
    let mut failure = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for address in address.to_socket_addrs()? {
        match open(address) {
            Ok(socket) => return Ok(socket),
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// True for a group whose address is another one on each interface.
pub(super) fn is_of_one_interface(group: &GroupAddress) -> bool {
    match group.address {
        SocketAddr::V4(_) => false,
        SocketAddr::V6(at) => matches!(at.ip().octets()[1] & 0xf, 1 | 2),
    }
}

/// Opens a socket for what is sent to the group and nothing else, in which it is on no interface yet. The number of the interface
/// counts if the group is [of one](is_of_one_interface).
pub(super) fn unjoined(group: &GroupAddress, index: u32) -> io::Result<UdpSocket> {
    let family = if group.address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket(family, SocketType::DGRAM, None)?;
    set_socket_reuseaddr(&socket, true)?;
    match group.address {
        SocketAddr::V4(at) => bind(&socket, &at)?,
        SocketAddr::V6(at) => {
            set_ipv6_v6only(&socket, true)?;
            bind(&socket, &SocketAddrV6::new(*at.ip(), at.port(), 0, index))?;
        }
    }
    let socket = std::net::UdpSocket::from(socket);
    socket.set_nonblocking(true)?;
    UdpSocket::from_std(socket)
}

/// Joins the group on the interface with this number.
pub(super) fn join(socket: impl AsFd, group: &GroupAddress, index: u32) -> io::Result<()> {
    match group.address {
        SocketAddr::V4(at) => {
            set_ip_add_membership_with_ifindex(socket, at.ip(), &Ipv4Addr::UNSPECIFIED, index)?
        }
        SocketAddr::V6(at) => set_ipv6_add_membership(socket, at.ip(), index)?,
    }
    Ok(())
}

/// Opens a socket that sends to the group, one network far, over the interface that each datagram names.
pub(super) fn multicast_sender(group: &GroupAddress) -> io::Result<std::net::UdpSocket> {
    let any: SocketAddr = if group.address.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = std::net::UdpSocket::bind(any)?;
    socket.set_nonblocking(true)?;
    match group.address {
        SocketAddr::V4(_) => set_ip_multicast_ttl(&socket, 1)?,
        SocketAddr::V6(_) => set_ipv6_multicast_hops(&socket, 1)?,
    }
    Ok(socket)
}

/// Sends a datagram to the group over the interface with this number.
pub(super) fn send_over(
    socket: &std::net::UdpSocket,
    group: &GroupAddress,
    index: u32,
    bytes: &[u8],
) -> io::Result<()> {
    let to = match group.address {
        SocketAddr::V4(at) => {
            set_ip_multicast_if_with_ifindex(socket, at.ip(), &Ipv4Addr::UNSPECIFIED, index)?;
            SocketAddr::V4(at)
        }
        SocketAddr::V6(at) => {
            set_ipv6_multicast_if(socket, index)?;
            SocketAddr::V6(SocketAddrV6::new(*at.ip(), at.port(), 0, index))
        }
    };
    socket.send_to(bytes, to).map(drop)
}

/// Number of the interface with this name.
pub(super) fn interface_number(name: &str) -> io::Result<u32> {
    Ok(name_to_index(socket(AddressFamily::INET, SocketType::DGRAM, None)?, name)?)
}

/// True if the system has no addresses of this family.
pub(super) fn lacks_family(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error().map(Errno::from_raw_os_error),
        Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_interface_that_is_not_there_is_an_error() {
        let group = GroupAddress::parse("239.255.71.4%longwire-none:4557").expect("a group");
        assert!(receiver(&group).is_err() && sender(&group, 1).await.is_err());
    }
}
