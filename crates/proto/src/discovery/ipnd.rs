//! Announcements of older nodes: IPND, the IP Neighbor Discovery of the DTN research group (draft-irtf-dtnrg-ipnd-03).
//!
//! Read only. A beacon is one UDP datagram, in one of three forms:
//!
//! | first octet | form | services |
//! |---|---|---|
//! | 0x04 | version 4 of the draft | type, length and value; TCP over IPv4, IPv6 and with a host name (2.6.5) |
//! | 0x02 | version of IBR-DTN | names and parameters as text: `tcpcl`, `port=4556;` |
//! | 0x83 to 0x86 | version 7 of dtn7-rs, in CBOR | names and ports: `tcp`, 4556 |
//!
//! Bloom filters of neighbours are skipped: a session shows that a link works in both directions. Version 1, of the first
//! draft, is not read.

use super::{Announcement, Format, is_plain_node};
use crate::bp::Eid;
use crate::codec::cbor::{self, Major};
use crate::codec::{DecodeError, sdnv, take, take_byte};
use crate::time::Duration;
use bytes::Bytes;

/// Maximum length of a beacon, bytes.
pub const BEACON_BYTES_MAX: usize = 1500;
/// Maximum number of services.
const SERVICES_MAX: u64 = 64;
const DEPTH_MAX: u8 = 8;
const CLAUSE: &str = "draft-irtf-dtnrg-ipnd-03 2.6";

const VERSION_DRAFT: u8 = 0x04;
const VERSION_IBR: u8 = 0x02;
const VERSION_CBOR: u64 = 7;

const HAS_EID: u64 = 1;
const HAS_SERVICES: u64 = 2;
const HAS_PERIOD: u64 = 8;
/// Flag of version 7, whose flags have no neighbours.
const HAS_PERIOD_CBOR: u64 = 4;

/// Tags of services over TCP: with an IPv4 address, an IPv6 address and a host name.
const TCP: [u8; 3] = [64, 66, 68];
/// First tag with a length.
const CONSTRUCTED: u8 = 64;
/// Tag of a number of 16 bits.
const FIXED16: u8 = 3;
const DEFAULT_PORT: u16 = 4556;

/// Beacon, as far as it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// Node.
    pub node: Eid,
    /// Port of TCPCL; `None` if the beacon has none.
    pub tcp_port: Option<u16>,
    /// Interval of the beacons; `None` if it is unknown.
    pub period: Option<Duration>,
}

/// True if a datagram may be a beacon.
pub fn recognises(datagram: &[u8]) -> bool {
    matches!(datagram.first(), Some(&(VERSION_DRAFT | VERSION_IBR | 0x83..=0x86)))
}

impl Beacon {
    /// Decodes a beacon, which is the whole input.
    ///
    /// # Errors
    /// Fails if the beacon is incomplete, has an unknown version, or does not name a node.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.len() > BEACON_BYTES_MAX {
            return Err(DecodeError::invalid("the length of a beacon", CLAUSE));
        }
        let beacon = match input.first() {
            Some(&(VERSION_DRAFT | VERSION_IBR)) => Self::decode_octets(input)?,
            _ => Self::decode_cbor(input)?,
        };
        match is_plain_node(&beacon.node) {
            true => Ok(beacon),
            false => Err(DecodeError::invalid("the endpoint ID of a beacon", CLAUSE)),
        }
    }

    fn decode_octets(input: &mut Bytes) -> Result<Self, DecodeError> {
        let version = take_byte(input)?;
        let flags = u64::from(take_byte(input)?);
        take(input, 2)?;
        if flags & HAS_EID == 0 {
            return Err(no_node());
        }
        let text = string(input)?;
        let text = core::str::from_utf8(&text).map_err(|_| no_node())?;
        let node = text.parse::<Eid>().or_else(|_| format!("{text}/").parse()).map_err(|_| no_node())?;
        let mut tcp_port = None;
        if flags & HAS_SERVICES != 0 {
            let count = sdnv::decode(input)?;
            if count > SERVICES_MAX {
                return Err(DecodeError::invalid("a number of services", CLAUSE));
            }
            for _ in 0..count {
                let port = if version == VERSION_IBR { named_service(input)? } else { service(input)? };
                tcp_port = tcp_port.or(port);
            }
        }
        let period = match version == VERSION_DRAFT && flags & HAS_PERIOD != 0 {
            true => Some(sdnv::decode(input)?).filter(|seconds| *seconds > 0).map(Duration::from_secs),
            false => None,
        };
        Ok(Beacon { node: node.node_id().detached(), tcp_port, period })
    }

    fn decode_cbor(input: &mut Bytes) -> Result<Self, DecodeError> {
        let count = cbor::array(input, "a beacon", CLAUSE)?.filter(|count| (4..=6).contains(count));
        let count = count.ok_or_else(no_node)?;
        if cbor::unsigned(input, "a version", CLAUSE)? != VERSION_CBOR {
            return Err(DecodeError::invalid("an unknown version", CLAUSE));
        }
        let flags = cbor::unsigned(input, "flags", CLAUSE)?;
        cbor::unsigned(input, "a sequence number", CLAUSE)?;
        let announced = [HAS_EID, HAS_SERVICES, HAS_PERIOD_CBOR].iter().filter(|flag| flags & **flag != 0);
        if flags & HAS_EID == 0 || announced.count() as u64 + 3 != count {
            return Err(no_node());
        }
        let node = Eid::decode(input)?.node_id().detached();
        let tcp_port = if flags & HAS_SERVICES != 0 { cbor_services(input)? } else { None };
        let mut period = None;
        if flags & HAS_PERIOD_CBOR != 0 {
            let mut item = cbor::any_item(input, DEPTH_MAX)?;
            // Seconds, alone or before nanoseconds.
            if item.first().is_some_and(|first| first >> 5 == Major::Array as u8) {
                cbor::any_head(&mut item)?;
            }
            let seconds = cbor::unsigned(&mut item, "a period", CLAUSE)?;
            period = Some(seconds).filter(|seconds| *seconds > 0).map(Duration::from_secs);
        }
        Ok(Beacon { node, tcp_port, period })
    }

    /// Announcement that says the same. Three periods are usual until a node is taken for gone.
    pub fn announcement(&self) -> Announcement {
        Announcement {
            format: Format::Ipnd,
            node: self.node.clone(),
            created: None,
            validity: self.period.map(|period| period.saturating_mul(3)),
            tcp_port: self.tcp_port,
            solicits: false,
        }
    }
}

fn no_node() -> DecodeError {
    DecodeError::invalid("a beacon without a node", CLAUSE)
}

/// Consumes a length and as many bytes.
fn string(input: &mut Bytes) -> Result<Bytes, DecodeError> {
    let length = sdnv::decode(input)?;
    take(input, usize::try_from(length).map_err(|_| DecodeError::Incomplete)?)
}

/// Consumes a service of version 4. Returns its port, if it is TCPCL.
fn service(input: &mut Bytes) -> Result<Option<u16>, DecodeError> {
    let tag = take_byte(input)?;
    if tag < CONSTRUCTED {
        value(tag, input)?;
        return Ok(None);
    }
    let mut content = string(input)?;
    if !TCP.contains(&tag) {
        return Ok(None);
    }
    let mut port = None;
    while !content.is_empty() {
        let tag = take_byte(&mut content)?;
        match tag {
            FIXED16 => {
                let octets = take(&mut content, 2)?;
                port = Some(u16::from_be_bytes([octets[0], octets[1]]));
            }
            CONSTRUCTED.. => drop(string(&mut content)?),
            _ => value(tag, &mut content)?,
        }
    }
    Ok(port.filter(|port| *port > 0))
}

/// Skips a primitive value.
fn value(tag: u8, input: &mut Bytes) -> Result<(), DecodeError> {
    match tag {
        0 => drop(take(input, 1)?),
        1 | 2 => drop(sdnv::decode(input)?),
        FIXED16 => drop(take(input, 2)?),
        4 | 6 => drop(take(input, 4)?),
        5 | 7 => drop(take(input, 8)?),
        8 | 9 => drop(string(input)?),
        _ => return Err(DecodeError::invalid("a type of a value", CLAUSE)),
    }
    Ok(())
}

/// Consumes a service of IBR-DTN. Returns its port, if it is TCPCL.
fn named_service(input: &mut Bytes) -> Result<Option<u16>, DecodeError> {
    let (name, parameters) = (string(input)?, string(input)?);
    if &name[..] != b"tcpcl" {
        return Ok(None);
    }
    let parameters = core::str::from_utf8(&parameters).unwrap_or_default();
    let port = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("port="));
    Ok(Some(port.and_then(|port| port.parse().ok()).filter(|port| *port > 0).unwrap_or(DEFAULT_PORT)))
}

/// Consumes the services of version 7. Returns the port of TCPCL.
fn cbor_services(input: &mut Bytes) -> Result<Option<u16>, DecodeError> {
    let bounded = |count: Option<u64>| match count {
        Some(count) if count <= SERVICES_MAX => Ok(count),
        _ => Err(DecodeError::invalid("a number of services", CLAUSE)),
    };
    if cbor::array(input, "services", CLAUSE)? != Some(2) {
        return Err(DecodeError::invalid("services", CLAUSE));
    }
    let mut tcp_port = None;
    for _ in 0..bounded(cbor::array(input, "services", CLAUSE)?)? {
        if cbor::array(input, "a service", CLAUSE)? != Some(2) {
            return Err(DecodeError::invalid("a service", CLAUSE));
        }
        let mut name = cbor::any_item(input, DEPTH_MAX)?;
        let mut port = cbor::any_item(input, DEPTH_MAX)?;
        let is_tcp = matches!(cbor::any_head(&mut name)?, (Major::TextString, Some(_)))
            && (&name[..] == b"tcp" || &name[..] == b"tcpclv4");
        // A service without a port uses the default.
        let port = match cbor::any_head(&mut port)? {
            (Major::Unsigned, Some(port)) => u16::try_from(port).ok().filter(|port| *port > 0),
            _ => Some(DEFAULT_PORT),
        };
        tcp_port = tcp_port.or(port.filter(|_| is_tcp));
    }
    cbor::any_item(input, DEPTH_MAX)?;
    Ok(tcp_port)
}
