//! Frames between a program and an AGWPE server, and the structures in their data.

use crate::codec::{self, DecodeError, codes, take, take_byte};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use core::fmt;
use core::str::FromStr;
use std::collections::BTreeSet;

/// Length of the header, octets.
pub const HEADER_BYTES: usize = 36;
/// Length of a station's name in a header, octets, with the terminating zero.
pub const NAME_BYTES: usize = 10;
/// Maximum length of the data in one frame, octets.
pub const DATA_BYTES_MAX: usize = 65_536;
/// Maximum number of digipeaters of a connection request or an unconnected frame.
pub const VIA_MAX: usize = 8;

const CLAUSE: &str = "AGWPE TCP/IP API";

/// Kind of a frame, expressed by its letter, whose meaning depends on the direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `P`: name and password.
    Login,
    /// `X`: registers a callsign for the program; from the server, the result.
    Register,
    /// `x`: removes the registration.
    Unregister,
    /// `R`: version of the server.
    Version,
    /// `G`: ports of the server, as text.
    Ports,
    /// `g`: capabilities of a port.
    Capabilities,
    /// `m`: turns monitored frames on or off.
    Monitor,
    /// `k`: turns raw frames on or off.
    MonitorRaw,
    /// `H`: stations heard.
    Heard,
    /// `y`: number of frames that wait on a port.
    QueuedOnPort,
    /// `Y`: number of frames of a link that wait.
    QueuedOnLink,
    /// `M`: an unconnected frame.
    Unconnected,
    /// `V`: an unconnected frame via digipeaters.
    UnconnectedVia,
    /// `K`: a raw frame after one octet with the port.
    Raw,
    /// `C`: requests a connection; from the server, the link is established.
    Connect,
    /// `v`: requests a connection via digipeaters.
    ConnectVia,
    /// `c`: requests a connection with a protocol identifier.
    ConnectWithPid,
    /// `D`: data of a link.
    Data,
    /// `d`: disconnects a link; from the server, the link has ended or could not be established.
    Disconnect,
    /// `I`: a monitored information frame, as text.
    MonitoredInformation,
    /// `S`: a monitored supervisory frame.
    MonitoredSupervisory,
    /// `U`: a monitored unnumbered frame.
    MonitoredUnnumbered,
    /// `T`: a monitored frame sent by this server.
    MonitoredOwn,
    /// Any other kind, with its octet.
    Unknown(u8),
}

codes!(
    Kind: u8, from_octet, octet,
    b'P' Login, b'X' Register, b'x' Unregister, b'R' Version, b'G' Ports, b'g' Capabilities, b'm' Monitor,
    b'k' MonitorRaw, b'H' Heard, b'y' QueuedOnPort, b'Y' QueuedOnLink, b'M' Unconnected, b'V' UnconnectedVia,
    b'K' Raw, b'C' Connect, b'v' ConnectVia, b'c' ConnectWithPid, b'D' Data, b'd' Disconnect,
    b'I' MonitoredInformation, b'S' MonitoredSupervisory, b'U' MonitoredUnnumbered, b'T' MonitoredOwn, Unknown
);

/// Name of a station in a header: text of at most nine octets, such as `EI7IG-15`; may be empty.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StationName([u8; NAME_BYTES]);

impl StationName {
    /// The empty name.
    pub const NONE: StationName = StationName([0; NAME_BYTES]);

    /// Returns the text of the name.
    pub fn as_str(&self) -> &str {
        let used = self.0.iter().position(|octet| *octet == 0).unwrap_or(NAME_BYTES);
        core::str::from_utf8(&self.0[..used]).unwrap_or_default()
    }

    fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let octets = take(input, NAME_BYTES)?;
        // Octets after the zero are undefined: the sender need not clear them.
        let used = octets.iter().position(|octet| *octet == 0);
        let used = used.ok_or(DecodeError::invalid("name without an end", CLAUSE))?;
        if !octets[..used].iter().all(u8::is_ascii_graphic) {
            return Err(DecodeError::invalid("name", CLAUSE));
        }
        let mut name = [0; NAME_BYTES];
        name[..used].copy_from_slice(&octets[..used]);
        Ok(StationName(name))
    }
}

impl FromStr for StationName {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, DecodeError> {
        if text.len() >= NAME_BYTES || !text.bytes().all(|octet| octet.is_ascii_graphic()) {
            return Err(DecodeError::invalid("name", CLAUSE));
        }
        let mut name = [0; NAME_BYTES];
        name[..text.len()].copy_from_slice(text.as_bytes());
        Ok(StationName(name))
    }
}

impl fmt::Display for StationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for StationName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Radio port, from 0.
    pub port: u8,
    /// Kind of the frame.
    pub kind: Kind,
    /// Protocol identifier; zero if the frame has none.
    pub pid: u8,
    /// Source station: the program's own if the program sends.
    pub from: StationName,
    /// Destination station.
    pub to: StationName,
    /// Data, at most [`DATA_BYTES_MAX`].
    pub data: Bytes,
}

impl Frame {
    /// Creates an empty frame of this kind on the first port.
    pub fn new(kind: Kind) -> Self {
        Frame { port: 0, kind, pid: 0, from: StationName::NONE, to: StationName::NONE, data: Bytes::new() }
    }

    /// Sets the source and destination stations.
    #[must_use]
    pub fn between(self, from: StationName, to: StationName) -> Self {
        Frame { from, to, ..self }
    }

    /// Sets the data.
    #[must_use]
    pub fn with(self, data: impl Into<Bytes>) -> Self {
        Frame { data: data.into(), ..self }
    }

    /// Consumes one frame.
    ///
    /// # Errors
    /// Returns `Incomplete` until the frame is complete. Fails if a name is invalid or the data are too long.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let mut header = take(input, HEADER_BYTES)?;
        let fixed = header.split_to(8);
        let (port, kind, pid) = (fixed[0], Kind::from_octet(fixed[4]), fixed[6]);
        let (from, to) = (StationName::decode(&mut header)?, StationName::decode(&mut header)?);
        let length = header.get_u32_le() as usize;
        if length > DATA_BYTES_MAX {
            return Err(DecodeError::Limit { what: "AGWPE data" });
        }
        Ok(Frame { port, kind, pid, from, to, data: take(input, length)? })
    }

    /// Appends the frame.
    ///
    /// # Panics
    /// Panics with more than [`DATA_BYTES_MAX`] of data.
    pub fn encode(&self, output: &mut BytesMut) {
        assert!(self.data.len() <= DATA_BYTES_MAX, "a frame has at most {DATA_BYTES_MAX} octets of data");
        output.put_slice(&[self.port, 0, 0, 0, self.kind.octet(), 0, self.pid, 0]);
        output.put_slice(&self.from.0);
        output.put_slice(&self.to.0);
        output.put_u32_le(self.data.len() as u32);
        output.put_u32_le(0);
        output.put_slice(&self.data);
    }

    /// Returns the encoded frame.
    pub fn to_bytes(&self) -> Bytes {
        codec::encoded(HEADER_BYTES + self.data.len(), |output| self.encode(output))
    }
}

/// Data of [`Kind::Register`] from the server: true if the callsign is now registered for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered(pub bool);

impl Registered {
    /// Consumes the result.
    ///
    /// # Errors
    /// Fails if the data are incomplete.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        Ok(Registered(take_byte(input)? != 0))
    }

    /// Appends the result.
    pub fn encode(&self, output: &mut BytesMut) {
        output.put_u8(self.0.into());
    }
}

/// Data of [`Kind::QueuedOnPort`] and [`Kind::QueuedOnLink`] from the server: the number of waiting frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued(pub u32);

impl Queued {
    /// Consumes the number.
    ///
    /// # Errors
    /// Fails if the data are incomplete.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        Ok(Queued(take(input, 4)?.get_u32_le()))
    }

    /// Appends the number.
    pub fn encode(&self, output: &mut BytesMut) {
        output.put_u32_le(self.0);
    }
}

/// Data of [`Kind::Ports`] from the server: the numbers of its ports, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(pub BTreeSet<u8>);

impl Ports {
    /// Consumes all of the text: `2;Port1 description;Port2 description;`. A server that names no port in this form has
    /// the ports from 0 to its count.
    ///
    /// # Errors
    /// Fails if the text does not begin with a number of ports.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let all = input.split_to(input.len());
        let used = all.iter().position(|octet| *octet == 0).unwrap_or(all.len());
        let mut parts = all[..used].split(|octet| *octet == b';');
        let number = |text: &[u8]| core::str::from_utf8(text).ok()?.trim().parse::<u8>().ok();
        let count = parts.next().and_then(number);
        let count = count.ok_or(DecodeError::invalid("number of ports", CLAUSE))?;
        let named = parts.filter_map(|part| {
            let name = part.strip_prefix(b"Port")?;
            let digits = name.iter().position(|octet| !octet.is_ascii_digit()).unwrap_or(name.len());
            number(&name[..digits])?.checked_sub(1)
        });
        let named: BTreeSet<u8> = named.collect();
        Ok(Ports(if named.is_empty() { (0..count).collect() } else { named }))
    }

    /// Appends the ports.
    pub fn encode(&self, output: &mut BytesMut) {
        output.put_slice(self.0.len().to_string().as_bytes());
        self.0.iter().for_each(|port| output.put_slice(format!(";Port{}", u16::from(*port) + 1).as_bytes()));
        output.put_slice(b";\0");
    }
}

/// Data of [`Kind::ConnectVia`], and the beginning of the data of [`Kind::UnconnectedVia`]: digipeaters in the order of
/// the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Via(pub Vec<StationName>);

impl Via {
    /// Consumes the digipeaters.
    ///
    /// # Errors
    /// Fails if the data are incomplete, if there is no digipeater or more than [`VIA_MAX`], or if a name is invalid.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let count = usize::from(take_byte(input)?);
        if !(1..=VIA_MAX).contains(&count) {
            return Err(DecodeError::invalid("number of digipeaters", CLAUSE));
        }
        (0..count).map(|_| StationName::decode(input)).collect::<Result<_, _>>().map(Via)
    }

    /// Appends the digipeaters.
    ///
    /// # Panics
    /// Panics without a digipeater or with more than [`VIA_MAX`].
    pub fn encode(&self, output: &mut BytesMut) {
        assert!((1..=VIA_MAX).contains(&self.0.len()), "one to eight digipeaters");
        output.put_u8(self.0.len() as u8);
        self.0.iter().for_each(|name| output.put_slice(&name.0));
    }
}
