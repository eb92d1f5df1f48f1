//! Sockets of an endpoint, with a number for each address.

use crate::options::Options;
use bytes::Bytes;
use longwire_proto::service::PeerId;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

/// Number of the group.
pub const GROUP: PeerId = PeerId(u32::MAX);
/// Space of the sockets; the operating system may give less.
const SOCKET_BYTES: usize = 4 << 20;
/// Maximum length of a datagram.
const DATAGRAM_BYTES: usize = 65_536;

/// Received datagram.
#[derive(Debug)]
pub struct Arrival {
    from: SocketAddr,
    /// It was sent to the group.
    pub to_group: bool,
    pub bytes: Bytes,
}

/// Sockets of a sender or receiver, each with a thread that waits for its datagrams.
#[derive(Debug)]
pub struct Endpoint {
    /// Socket from which all datagrams leave.
    socket: UdpSocket,
    group: Option<SocketAddr>,
    /// Addresses by their numbers; the first is that of the configured peer.
    addresses: Vec<SocketAddr>,
    arrivals: Receiver<Arrival>,
}

/// Opens a socket at a port, which others may share.
fn open(address: Ipv4Addr, port: u16, is_shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    if is_shared {
        socket.set_reuse_address(true)?;
    }
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BYTES)?;
    socket.bind(&SocketAddrV4::new(address, port).into())?;
    Ok(socket)
}

/// Passes on what a socket receives until nobody wants it.
fn listen(socket: UdpSocket, to_group: bool, arrivals: Sender<Arrival>) {
    thread::spawn(move || {
        let mut buffer = vec![0; DATAGRAM_BYTES];
        loop {
            // An error is that of an earlier datagram, whose port was closed.
            let Ok((length, from)) = socket.recv_from(&mut buffer) else { continue };
            let arrival = Arrival { from, to_group, bytes: Bytes::copy_from_slice(&buffer[..length]) };
            if arrivals.send(arrival).is_err() {
                return;
            }
        }
    });
}

impl Endpoint {
    pub fn open(options: &Options) -> io::Result<Endpoint> {
        let (sender, arrivals) = channel();
        let remote = SocketAddr::from((options.address, options.port));
        let is_receiver = !options.sends && !options.is_group();
        let local = if is_receiver { options.port } else { options.tx_port };
        let socket = open(Ipv4Addr::UNSPECIFIED, local, false)?;
        if options.is_group() {
            socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST)?;
            socket.set_multicast_loop_v4(true)?;
            let shared = open(options.address, options.port, true)?;
            shared.join_multicast_v4(&options.address, &Ipv4Addr::LOCALHOST)?;
            listen(shared.into(), true, sender.clone());
        }
        let socket = UdpSocket::from(socket);
        listen(socket.try_clone()?, false, sender);
        let group = options.is_group().then_some(remote);
        Ok(Endpoint { socket, group, addresses: vec![remote], arrivals })
    }

    /// Waits for a datagram, and returns the number of its sender with it.
    pub fn receive(&mut self, wait: Duration) -> Option<(PeerId, Arrival)> {
        let arrival = self.arrivals.recv_timeout(wait).ok()?;
        let known = self.addresses.iter().position(|address| *address == arrival.from);
        let number = known.unwrap_or_else(|| {
            self.addresses.push(arrival.from);
            self.addresses.len() - 1
        });
        Some((PeerId(number as u32), arrival))
    }

    /// Sends a datagram. One that is lost here is lost on the way.
    pub fn send(&self, to: PeerId, bytes: &[u8]) {
        let address = match self.group {
            Some(group) if to == GROUP => group,
            _ => self.addresses[to.0 as usize],
        };
        let _ = self.socket.send_to(bytes, address);
    }
}
