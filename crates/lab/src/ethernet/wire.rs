//! Ethernet frames, ARP (RFC 826) and ICMP (RFC 792) as far as the stations use them.

use bytes::{BufMut, Bytes, BytesMut};
use longwire_proto::tcp::wire::{IPV4_HEADER_BYTES, Ipv4Header, internet_checksum};
use std::net::Ipv4Addr;

/// Bytes of an Ethernet header.
pub const HEADER_BYTES: usize = 14;
/// Protocol number of ICMP in IPv4.
pub const ICMP: u8 = 1;

const TYPE_IPV4: u16 = 0x0800;
const TYPE_ARP: u16 = 0x0806;
const ARP_REQUEST: u16 = 1;
const ARP_REPLY: u16 = 2;
/// Ethernet and IPv4 with their address lengths.
const ARP_HEAD: [u8; 6] = [0, 1, 8, 0, 6, 4];
const ECHO_REPLY: u8 = 0;
const REDIRECT: u8 = 5;
const REDIRECT_FOR_HOST: u8 = 1;
const ECHO_REQUEST: u8 = 8;
const ICMP_HEADER_BYTES: usize = 8;

/// Hardware address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MacAddress(pub [u8; 6]);

impl MacAddress {
    /// All stations.
    pub const BROADCAST: MacAddress = MacAddress([0xff; 6]);

    /// Address of a group of IPv4 (RFC 1112 6.4).
    pub const fn of_group(group: Ipv4Addr) -> MacAddress {
        let [_, high, middle, low] = group.octets();
        MacAddress([1, 0, 0x5e, high & 0x7f, middle, low])
    }

    /// True for a group, and for all stations.
    pub const fn is_group(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// Locally administered address of the station with this number.
    pub const fn of_station(number: u16) -> MacAddress {
        let [high, low] = number.to_be_bytes();
        MacAddress([2, 0, 0, 0, high, low])
    }
}

/// Contents of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contents {
    /// IPv4 packet.
    Ipv4(Bytes),
    /// ARP message.
    Arp(Arp),
}

/// Frame without its padding and check sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EthernetFrame {
    /// Destination.
    pub to: MacAddress,
    /// Source.
    pub from: MacAddress,
    /// Contents.
    pub contents: Contents,
}

impl EthernetFrame {
    /// Encodes the frame.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(HEADER_BYTES + 1500);
        out.put_slice(&self.to.0);
        out.put_slice(&self.from.0);
        match &self.contents {
            Contents::Ipv4(packet) => {
                out.put_u16(TYPE_IPV4);
                out.put_slice(packet);
            }
            Contents::Arp(arp) => {
                out.put_u16(TYPE_ARP);
                arp.encode(&mut out);
            }
        }
        out.freeze()
    }

    /// Decodes a frame; `None` for other types and for what is too short.
    pub fn decode(frame: &Bytes) -> Option<EthernetFrame> {
        let address = |at: usize| Some(MacAddress(frame.get(at..at + 6)?.try_into().ok()?));
        let (to, from) = (address(0)?, address(6)?);
        let kind = u16::from_be_bytes(frame.get(12..HEADER_BYTES)?.try_into().ok()?);
        let contents = match kind {
            TYPE_IPV4 => Contents::Ipv4(frame.slice(HEADER_BYTES..)),
            TYPE_ARP => Contents::Arp(Arp::decode(&frame[HEADER_BYTES..])?),
            _ => return None,
        };
        Some(EthernetFrame { to, from, contents })
    }
}

/// ARP message for Ethernet and IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arp {
    /// True for a reply, false for a request.
    pub is_reply: bool,
    /// Addresses of the sender.
    pub sender: (MacAddress, Ipv4Addr),
    /// Addresses of the target; in a request the hardware address is zero.
    pub target: (MacAddress, Ipv4Addr),
}

impl Arp {
    fn encode(&self, out: &mut BytesMut) {
        out.put_slice(&ARP_HEAD);
        out.put_u16(if self.is_reply { ARP_REPLY } else { ARP_REQUEST });
        for (mac, ip) in [self.sender, self.target] {
            out.put_slice(&mac.0);
            out.put_slice(&ip.octets());
        }
    }

    fn decode(bytes: &[u8]) -> Option<Arp> {
        if bytes.get(..6)? != ARP_HEAD {
            return None;
        }
        let pair = |at: usize| {
            let mac: [u8; 6] = bytes.get(at..at + 6)?.try_into().ok()?;
            let ip: [u8; 4] = bytes.get(at + 6..at + 10)?.try_into().ok()?;
            Some((MacAddress(mac), Ipv4Addr::from(ip)))
        };
        let operation = u16::from_be_bytes(bytes.get(6..8)?.try_into().ok()?);
        let is_reply = match operation {
            ARP_REQUEST => false,
            ARP_REPLY => true,
            _ => return None,
        };
        Some(Arp { is_reply, sender: pair(8)?, target: pair(18)? })
    }
}

/// ICMP message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Icmp {
    /// Echo request (`false`) or reply (`true`), with identifier, sequence number and data.
    Echo(bool, u32, Bytes),
    /// Redirect for a host: the better next hop, and the destination of the packet that it is about.
    Redirect(Ipv4Addr, Ipv4Addr),
}

impl Icmp {
    /// Encodes the message. A redirect contains the header of the packet that it is about, and eight bytes of it.
    pub fn encode(&self, about: &[u8]) -> Bytes {
        let mut out = BytesMut::with_capacity(ICMP_HEADER_BYTES + 64);
        match self {
            Icmp::Echo(is_reply, number, data) => {
                out.put_slice(&[if *is_reply { ECHO_REPLY } else { ECHO_REQUEST }, 0, 0, 0]);
                out.put_u32(*number);
                out.put_slice(data);
            }
            Icmp::Redirect(gateway, _) => {
                out.put_slice(&[REDIRECT, REDIRECT_FOR_HOST, 0, 0]);
                out.put_slice(&gateway.octets());
                out.put_slice(&about[..about.len().min(IPV4_HEADER_BYTES + 8)]);
            }
        }
        let checksum = internet_checksum(&out);
        out[2..4].copy_from_slice(&checksum.to_be_bytes());
        out.freeze()
    }

    /// Decodes a message; `None` for other types and for damaged ones.
    pub fn decode(bytes: &Bytes) -> Option<Icmp> {
        if bytes.len() < ICMP_HEADER_BYTES || internet_checksum(bytes) != 0 {
            return None;
        }
        let rest = bytes.slice(ICMP_HEADER_BYTES..);
        let word: [u8; 4] = bytes[4..8].try_into().ok()?;
        match bytes[0] {
            kind @ (ECHO_REQUEST | ECHO_REPLY) => {
                Some(Icmp::Echo(kind == ECHO_REPLY, u32::from_be_bytes(word), rest))
            }
            REDIRECT => {
                let destination: [u8; 4] = rest.get(16..IPV4_HEADER_BYTES)?.try_into().ok()?;
                Some(Icmp::Redirect(Ipv4Addr::from(word), Ipv4Addr::from(destination)))
            }
            _ => None,
        }
    }
}

/// Makes an IPv4 packet.
pub fn packet(protocol: u8, source: Ipv4Addr, destination: Ipv4Addr, payload: &[u8]) -> Bytes {
    let header = Ipv4Header {
        service: 0,
        identification: 0,
        dont_fragment: true,
        more_fragments: false,
        fragment_offset: 0,
        time_to_live: 64,
        protocol,
        source,
        destination,
        payload_bytes: payload.len() as u16,
    };
    let mut out = BytesMut::with_capacity(IPV4_HEADER_BYTES + payload.len());
    header.encode(&mut out);
    out.put_slice(payload);
    out.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 1, 2);

    #[test]
    fn an_arp_request_is_these_bytes() {
        let sender = (MacAddress::of_station(1), HERE);
        let arp = Arp { is_reply: false, sender, target: (MacAddress([0; 6]), THERE) };
        let (to, from) = (MacAddress::BROADCAST, MacAddress::of_station(1));
        let frame = EthernetFrame { to, from, contents: Contents::Arp(arp) };
        let bytes = frame.encode();
        let expected = [
            0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6, // Ethernet
            0, 1, 8, 0, 6, 4, 0, 1, // request
            2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 1, 2,
        ];
        assert_eq!(bytes[..], expected);
        // A frame arrives with its padding.
        let padded = [&bytes[..], &[0; 18]].concat();
        assert_eq!(EthernetFrame::decode(&padded.into()), Some(frame));
    }

    #[test]
    fn messages_of_icmp_survive_and_damaged_ones_do_not() {
        let about = packet(17, HERE, THERE, b"datagram");
        for message in
            [Icmp::Echo(false, 0x1_0002, Bytes::from_static(b"data")), Icmp::Redirect(THERE, THERE)]
        {
            let bytes = message.encode(&about);
            assert_eq!(Icmp::decode(&bytes), Some(message));
            let mut damaged = bytes.to_vec();
            damaged[5] ^= 4;
            assert_eq!(Icmp::decode(&damaged.into()), None);
        }
    }

    #[test]
    fn short_and_unknown_frames_are_refused() {
        let known = EthernetFrame {
            to: MacAddress::BROADCAST,
            from: MacAddress::of_station(1),
            contents: Contents::Ipv4(packet(17, HERE, THERE, b"")),
        };
        let bytes = known.encode();
        for length in 0..HEADER_BYTES {
            assert_eq!(EthernetFrame::decode(&bytes.slice(..length)), None);
        }
        let mut other = bytes.to_vec();
        other[12] = 0x86;
        assert_eq!(EthernetFrame::decode(&other.into()), None);
    }
}
