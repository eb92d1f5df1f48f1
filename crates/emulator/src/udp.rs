//! UDP ports.

use crate::port::{Next, Outgoing, Port};
use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::tcp::wire::internet_checksum;
use longwire_settings::error::Error;
use rustix::event::{PollFd, PollFlags};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::str::FromStr;

/// Length of the headers of IPv4 and UDP.
const HEADER_BYTES: usize = 28;
const IP_BYTES: usize = 20;
/// Longer than any datagram.
const DATAGRAM_BYTES_MAX: usize = 65_536;
const UDP: u8 = 17;
const TIME_TO_LIVE: u8 = 64;

/// A UDP port, and the program beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpPlace {
    /// Address to which the program sends, and from which it hears.
    pub listen: SocketAddr,
    /// Address to which packets for the program go, and whose host alone may send; `None` for that of the latest sender.
    pub program: Option<SocketAddr>,
}

impl FromStr for UdpPlace {
    type Err = String;

    /// Reads `LISTEN` or `LISTEN=PROGRAM`, each `address:port`.
    fn from_str(text: &str) -> Result<UdpPlace, String> {
        let address = |text: &str| {
            text.parse::<SocketAddr>()
                .map_err(|_| format!("`{text}` is not an address with a port, such as 127.0.0.1:7001"))
        };
        match text.split_once('=') {
            Some((listen, program)) => {
                Ok(UdpPlace { listen: address(listen)?, program: Some(address(program)?) })
            }
            None => Ok(UdpPlace { listen: address(text)?, program: None }),
        }
    }
}

/// Datagrams of a program. On the path they have headers, like all packets there.
pub(crate) struct UdpPort {
    socket: UdpSocket,
    program: Option<SocketAddr>,
    is_fixed: bool,
    header: [u8; HEADER_BYTES],
    buffer: Box<[u8]>,
    packet_bytes_max: usize,
    refused: u64,
}

impl UdpPort {
    pub(crate) fn open(
        place: UdpPlace,
        addresses: [Ipv4Addr; 2],
        packet_bytes_max: u32,
    ) -> Result<UdpPort, Error> {
        let failed = |error: std::io::Error| {
            Error::new(format!("cannot use UDP port {}: {error}", place.listen))
                .hint("use a free port on an address of this computer, such as 127.0.0.1:7001")
        };
        let socket = UdpSocket::bind(place.listen).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(UdpPort {
            socket,
            program: place.program,
            is_fixed: place.program.is_some(),
            header: header(addresses),
            buffer: vec![0; DATAGRAM_BYTES_MAX].into(),
            packet_bytes_max: packet_bytes_max as usize,
            refused: 0,
        })
    }

    /// Address of the port.
    pub(crate) fn address(&self) -> std::io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

/// Headers of all datagrams in one direction, without lengths and checksum. A datagram without a checksum of its own (RFC 768)
/// arrives with the damage that the link does not detect.
fn header([from, to]: [Ipv4Addr; 2]) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[0] = 0x45;
    header[8] = TIME_TO_LIVE;
    header[9] = UDP;
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    header
}

impl Port for UdpPort {
    fn wait_for<'a>(&'a self, has_room: bool, list: &mut Vec<PollFd<'a>>) {
        if has_room {
            list.push(PollFd::new(&self.socket, PollFlags::IN));
        }
    }

    fn next(&mut self) -> Next {
        let (length, from) = match self.socket.recv_from(&mut self.buffer) {
            Ok(received) => received,
            // An earlier datagram found no program.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => return Next::Refused,
            Err(_) => return Next::Empty,
        };
        match self.program {
            // A program may send from another port than that on which it listens.
            Some(program) if self.is_fixed && program.ip() != from.ip() => {
                self.refused += 1;
                return Next::Refused;
            }
            _ if self.is_fixed => {}
            _ => self.program = Some(from),
        }
        if length + HEADER_BYTES > self.packet_bytes_max {
            self.refused += 1;
            return Next::Refused;
        }
        let mut packet = BytesMut::with_capacity(HEADER_BYTES + length);
        packet.put_slice(&self.header);
        packet[2..4].copy_from_slice(&((HEADER_BYTES + length) as u16).to_be_bytes());
        let checksum = internet_checksum(&packet[..IP_BYTES]);
        packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        packet[24..26].copy_from_slice(&((HEADER_BYTES - IP_BYTES + length) as u16).to_be_bytes());
        packet.put_slice(&self.buffer[..length]);
        Next::Packet(Outgoing { bytes: packet.freeze(), token: None })
    }

    fn deliver(&mut self, bytes: Bytes) {
        // As at any host, damage of the IP header is noticed.
        let is_intact = bytes.get(..IP_BYTES).is_some_and(|header| internet_checksum(header) == 0);
        let datagram = bytes.get(HEADER_BYTES..).filter(|_| is_intact);
        let sent = self.program.zip(datagram).map(|(to, datagram)| self.socket.send_to(datagram, to));
        if sent.is_none_or(|sent| sent.is_err()) {
            self.refused += 1;
        }
    }

    fn program_is(&mut self, address: SocketAddr) {
        (self.program, self.is_fixed) = (Some(address), true);
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_one_address_or_two() {
        let one: UdpPlace = "127.0.0.1:7001".parse().expect("an address");
        assert_eq!((one.listen.port(), one.program), (7001, None));
        let two: UdpPlace = "127.0.0.1:7001=[::1]:4556".parse().expect("two addresses");
        assert_eq!(two.program.expect("a program").port(), 4556);
        for wrong in ["", "7001", "localhost", "127.0.0.1:7001=", "127.0.0.1:7001=x", "127.0.0.1:99999"] {
            assert!(wrong.parse::<UdpPlace>().is_err(), "{wrong}");
        }
    }
}
