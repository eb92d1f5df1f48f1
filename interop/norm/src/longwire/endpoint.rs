//! Sockets of an endpoint, with a number for each address. Many datagrams take one system call, as in a node.

use crate::options::Options;
use bytes::Bytes;
use longwire_proto::service::PeerId;
use nix::cmsg_space;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, MultiHeaders, SockaddrIn, recvmmsg, sendmmsg, setsockopt,
    sockopt,
};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};
use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// Number of the group.
pub const GROUP: PeerId = PeerId(u32::MAX);
/// Space of the sockets; the operating system may give less.
const SOCKET_BYTES: usize = 32 << 20;
/// Maximum length of a received message: a datagram, or several of one length.
const MESSAGE_BYTES: usize = 65_536;
/// Number of messages that one system call reads.
const READ_MESSAGES: usize = 16;
/// Number of datagrams that wait to be sent together.
const WAITING_MAX: usize = 64;
/// Maximum length of a message that the kernel divides into datagrams.
const DIVIDED_BYTES: usize = 65_000;

/// Received datagram.
#[derive(Debug)]
pub struct Arrival {
    from: SocketAddrV4,
    /// It was sent to the group.
    pub to_group: bool,
    pub bytes: Bytes,
}

/// Sockets of a sender or receiver.
#[derive(Debug)]
pub struct Endpoint {
    /// Socket from which all datagrams leave.
    socket: Socket,
    /// Socket at which those to the group arrive.
    shared: Option<Socket>,
    group: Option<SocketAddrV4>,
    /// Addresses by their numbers; the first is that of the configured peer.
    addresses: Vec<SocketAddrV4>,
    arrivals: VecDeque<Arrival>,
    /// Datagrams that leave together, to one address.
    waiting: Vec<Bytes>,
    waiting_to: SocketAddrV4,
    buffers: Vec<Vec<u8>>,
    /// The kernel divides messages.
    divides: bool,
}

/// Opens a socket at a port, which others may share.
fn open(address: Ipv4Addr, port: u16, is_shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    if is_shared {
        socket.set_reuse_address(true)?;
    }
    socket.set_recv_buffer_size(SOCKET_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BYTES)?;
    // Only an administrator may have more than the limit of the system.
    let _ = setsockopt(&socket, sockopt::RcvBufForce, &SOCKET_BYTES);
    // Older kernels deliver each datagram by itself.
    let _ = setsockopt(&socket, sockopt::UdpGroSegment, &true);
    socket.bind(&SocketAddrV4::new(address, port).into())?;
    Ok(socket)
}

impl Endpoint {
    pub fn open(options: &Options) -> io::Result<Endpoint> {
        let remote = SocketAddrV4::new(options.address, options.port);
        let is_receiver = !options.sends && !options.is_group();
        let local = if is_receiver { options.port } else { options.tx_port };
        let socket = open(Ipv4Addr::UNSPECIFIED, local, false)?;
        let mut shared = None;
        if options.is_group() {
            socket.set_multicast_if_v4(&Ipv4Addr::LOCALHOST)?;
            socket.set_multicast_loop_v4(true)?;
            let group = open(options.address, options.port, true)?;
            group.join_multicast_v4(&options.address, &Ipv4Addr::LOCALHOST)?;
            shared = Some(group);
        }
        Ok(Endpoint {
            socket,
            shared,
            group: options.is_group().then_some(remote),
            addresses: vec![remote],
            arrivals: VecDeque::new(),
            waiting: Vec::new(),
            waiting_to: remote,
            buffers: vec![vec![0; MESSAGE_BYTES]; READ_MESSAGES],
            divides: true,
        })
    }

    /// Waits for a datagram, and returns the number of its sender with it.
    pub fn receive(&mut self, wait: Duration) -> Option<(PeerId, Arrival)> {
        if self.arrivals.is_empty() {
            self.wait(wait);
        }
        let arrival = self.arrivals.pop_front()?;
        let known = self.addresses.iter().position(|address| *address == arrival.from);
        let number = known.unwrap_or_else(|| {
            self.addresses.push(arrival.from);
            self.addresses.len() - 1
        });
        Some((PeerId(number as u32), arrival))
    }

    /// Waits until a socket has something, and reads it.
    fn wait(&mut self, wait: Duration) {
        if !wait.is_zero() {
            let sockets = [Some(&self.socket), self.shared.as_ref()];
            let mut sockets: Vec<PollFd<'_>> = sockets
                .into_iter()
                .flatten()
                .map(|socket| PollFd::new(socket.as_fd(), PollFlags::POLLIN))
                .collect();
            let _ = ppoll(&mut sockets, Some(TimeSpec::from_duration(wait)), None);
        }
        let Endpoint { socket, shared, buffers, arrivals, .. } = self;
        read(socket, false, buffers, arrivals);
        if let Some(shared) = shared {
            read(shared, true, buffers, arrivals);
        }
    }

    /// Sends a datagram, with others at the next [`flush`](Endpoint::flush).
    pub fn send(&mut self, to: PeerId, bytes: Bytes) {
        let address = match self.group {
            Some(group) if to == GROUP => group,
            _ => self.addresses[to.0 as usize],
        };
        if self.waiting_to != address || self.waiting.len() >= WAITING_MAX {
            self.flush();
        }
        self.waiting_to = address;
        self.waiting.push(bytes);
    }

    /// Passes all datagrams to the system. One that is lost here is lost on the way.
    pub fn flush(&mut self) {
        let waiting = core::mem::take(&mut self.waiting);
        let mut rest = &waiting[..];
        while let Some(first) = rest.first() {
            // Datagrams of one length leave as one message, of which the last may be shorter.
            let alike = rest.iter().take_while(|datagram| datagram.len() == first.len()).count();
            let run = alike.min(DIVIDED_BYTES / first.len().max(1)).max(1);
            let run = if self.divides { run } else { 1 };
            match self.send_run(&rest[..run]) {
                Err(nix::Error::EINVAL | nix::Error::EIO | nix::Error::EMSGSIZE) if run > 1 => {
                    self.divides = false
                }
                _ => rest = &rest[run..],
            }
        }
    }

    fn send_run(&self, run: &[Bytes]) -> nix::Result<()> {
        let slices: Vec<IoSlice<'_>> = run.iter().map(|datagram| IoSlice::new(datagram)).collect();
        let length = run[0].len() as u16;
        let divided = (run.len() > 1).then_some(&length);
        let control: Vec<_> = divided.into_iter().map(ControlMessage::UdpGsoSegments).collect();
        let mut headers = MultiHeaders::preallocate(1, divided.map(|_| cmsg_space!(u16)));
        let to = [Some(SockaddrIn::from(self.waiting_to))];
        sendmmsg(self.socket.as_raw_fd(), &mut headers, [&slices], to, &control, MsgFlags::empty())
            .map(|_| ())
    }
}

/// Reads what waits at a socket.
fn read(socket: &Socket, to_group: bool, buffers: &mut [Vec<u8>], arrivals: &mut VecDeque<Arrival>) {
    let mut headers: MultiHeaders<SockaddrIn> =
        MultiHeaders::preallocate(buffers.len(), Some(cmsg_space!(i32)));
    let mut slices: Vec<_> = buffers.iter_mut().map(|buffer| [IoSliceMut::new(buffer)]).collect();
    // An error is that of an earlier datagram, whose port was closed, or means that nothing waits.
    let flags = MsgFlags::MSG_DONTWAIT;
    let Ok(messages) = recvmmsg(socket.as_raw_fd(), &mut headers, slices.iter_mut(), flags, None) else {
        return;
    };
    for message in messages {
        let joined = message.cmsgs().ok().into_iter().flatten().find_map(|control| match control {
            ControlMessageOwned::UdpGroSegments(length) => {
                usize::try_from(length).ok().filter(|length| *length > 0)
            }
            _ => None,
        });
        let Some(from) = message.address.map(SocketAddrV4::from) else { continue };
        let bytes = Bytes::copy_from_slice(message.iovs().next().unwrap_or_default());
        let length = joined.unwrap_or(bytes.len()).max(1);
        for start in (0..bytes.len()).step_by(length) {
            let bytes = bytes.slice(start..bytes.len().min(start + length));
            arrivals.push_back(Arrival { from, to_group, bytes });
        }
    }
}
