//! Ports: the sides of an emulated path that programs see.

use bytes::Bytes;
use rustix::event::PollFd;
use std::net::SocketAddr;

/// Packet of a program for the path.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) bytes: Bytes,
    /// Token for [`Port::has_left`]; `None` if the program does not ask when the packet has left.
    pub(crate) token: Option<u64>,
}

/// Result of a look for the next packet of a program.
#[derive(Debug)]
pub(crate) enum Next {
    /// A packet.
    Packet(Outgoing),
    /// A packet that the port does not pass on; there may be more.
    Refused,
    /// Nothing now.
    Empty,
    /// Nothing any more: the device has gone.
    Gone(std::io::Error),
}

/// A side that programs see. No call waits.
pub(crate) trait Port: Send {
    /// Adds what the port waits for. Packets of programs count only if the path has room for one.
    fn wait_for<'a>(&'a self, has_room: bool, list: &mut Vec<PollFd<'a>>);

    /// Takes the next packet of a program.
    fn next(&mut self) -> Next;

    /// True if a packet of a program is there that [`Port::wait_for`] does not show.
    fn holds_packets(&self) -> bool {
        false
    }

    /// Passes a packet to the program.
    fn deliver(&mut self, bytes: Bytes);

    /// The last bit of the packet with this token has left.
    fn has_left(&mut self, _token: u64) {}

    /// Does what does not depend on room: accepts programs, and writes what they did not take at once.
    fn maintain(&mut self) {}

    /// Sets the address to which packets for the program go, where programs have addresses.
    fn program_is(&mut self, _address: SocketAddr) {}

    /// Number of packets that the program did not take, or that the port could not pass on.
    fn refused(&self) -> u64;
}
