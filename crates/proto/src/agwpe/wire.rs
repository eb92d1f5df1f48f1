//! Frames between a program and an AGWPE server, and what is in their data.

use crate::codec::DecodeError;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use core::fmt;
use core::str::FromStr;
use std::collections::BTreeSet;

/// Octets before the data.
pub const HEADER_BYTES: usize = 36;
/// Octets of a station's name, the zero at its end included.
pub const NAME_BYTES: usize = 10;
/// The most data in one frame, octets.
pub const DATA_BYTES_MAX: usize = 65_536;
/// Digipeaters that a call or an unconnected frame may name.
pub const VIA_MAX: usize = 8;

const CLAUSE: &str = "AGWPE TCP/IP API";

/// What a frame is: its letter means one thing to the server and another to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `P`: name and password.
    Login,
    /// `X`: the program answers to a callsign; back: whether that is so.
    Register,
    /// `x`: it does no more.
    Unregister,
    /// `R`: the server's version.
    Version,
    /// `G`: its ports, as text.
    Ports,
    /// `g`: what a port can do.
    Capabilities,
    /// `m`: monitored frames are wanted, or no more.
    Monitor,
    /// `k`: raw frames are wanted, or no more.
    MonitorRaw,
    /// `H`: stations heard.
    Heard,
    /// `y`: frames that wait on a port.
    QueuedOnPort,
    /// `Y`: frames of a link that wait.
    QueuedOnLink,
    /// `M`: an unconnected frame.
    Unconnected,
    /// `V`: the same by digipeaters.
    UnconnectedVia,
    /// `K`: a raw frame behind one octet with the port.
    Raw,
    /// `C`: calls; back: a link stands.
    Connect,
    /// `v`: calls by digipeaters.
    ConnectVia,
    /// `c`: calls with a protocol identifier.
    ConnectWithPid,
    /// `D`: data of a link.
    Data,
    /// `d`: ends a link; back: it has ended, or could not be made.
    Disconnect,
    /// `I`: a monitored numbered frame, as text.
    MonitoredInformation,
    /// `S`: a monitored supervisory frame.
    MonitoredSupervisory,
    /// `U`: a monitored unnumbered frame.
    MonitoredUnnumbered,
    /// `T`: what this server sent.
    MonitoredOwn,
    /// Anything else, by its octet.
    Unknown(u8),
}

const KINDS: [(u8, Kind); 23] = [
    (b'P', Kind::Login),
    (b'X', Kind::Register),
    (b'x', Kind::Unregister),
    (b'R', Kind::Version),
    (b'G', Kind::Ports),
    (b'g', Kind::Capabilities),
    (b'm', Kind::Monitor),
    (b'k', Kind::MonitorRaw),
    (b'H', Kind::Heard),
    (b'y', Kind::QueuedOnPort),
    (b'Y', Kind::QueuedOnLink),
    (b'M', Kind::Unconnected),
    (b'V', Kind::UnconnectedVia),
    (b'K', Kind::Raw),
    (b'C', Kind::Connect),
    (b'v', Kind::ConnectVia),
    (b'c', Kind::ConnectWithPid),
    (b'D', Kind::Data),
    (b'd', Kind::Disconnect),
    (b'I', Kind::MonitoredInformation),
    (b'S', Kind::MonitoredSupervisory),
    (b'U', Kind::MonitoredUnnumbered),
    (b'T', Kind::MonitoredOwn),
];

impl Kind {
    /// By its letter.
    pub fn from_octet(octet: u8) -> Self {
        KINDS.iter().find(|(letter, _)| *letter == octet).map_or(Kind::Unknown(octet), |(_, kind)| *kind)
    }

    /// Its letter.
    pub fn octet(self) -> u8 {
        match self {
            Kind::Unknown(octet) => octet,
            known => KINDS.iter().find(|(_, kind)| *kind == known).map_or(0, |(letter, _)| *letter),
        }
    }
}

/// A station's name as it is in headers: text of at most nine octets, such as `EI7IG-15`, or nothing.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct StationName([u8; NAME_BYTES]);

impl StationName {
    /// No name.
    pub const NONE: StationName = StationName([0; NAME_BYTES]);

    /// The text.
    pub fn as_str(&self) -> &str {
        let used = self.0.iter().position(|octet| *octet == 0).unwrap_or(NAME_BYTES);
        core::str::from_utf8(&self.0[..used]).unwrap_or_default()
    }

    fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.len() < NAME_BYTES {
            return Err(DecodeError::Incomplete);
        }
        let octets = input.split_to(NAME_BYTES);
        // What is behind the zero is whatever was in the sender's memory.
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
    /// The radio port, from 0.
    pub port: u8,
    /// What it is.
    pub kind: Kind,
    /// The protocol identifier, where there is one.
    pub pid: u8,
    /// The station that it is from: the program's own where the program sends.
    pub from: StationName,
    /// The station that it is for.
    pub to: StationName,
    /// What is in it, at most [`DATA_BYTES_MAX`].
    pub data: Bytes,
}

impl Frame {
    /// A frame of this kind on the first port, without anything else.
    pub fn new(kind: Kind) -> Self {
        Frame { port: 0, kind, pid: 0, from: StationName::NONE, to: StationName::NONE, data: Bytes::new() }
    }

    /// The same between these stations.
    #[must_use]
    pub fn between(self, from: StationName, to: StationName) -> Self {
        Frame { from, to, ..self }
    }

    /// The same with these data.
    #[must_use]
    pub fn with(self, data: impl Into<Bytes>) -> Self {
        Frame { data: data.into(), ..self }
    }

    /// Takes one frame from the front.
    ///
    /// # Errors
    /// `Incomplete` until it is whole; a name that is none; more data than a frame may have.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.len() < HEADER_BYTES {
            return Err(DecodeError::Incomplete);
        }
        let port = input.get_u8();
        input.advance(3);
        let kind = Kind::from_octet(input.get_u8());
        input.advance(1);
        let pid = input.get_u8();
        input.advance(1);
        let (from, to) = (StationName::decode(input)?, StationName::decode(input)?);
        let length = input.get_u32_le() as usize;
        input.advance(4);
        if length > DATA_BYTES_MAX {
            return Err(DecodeError::Limit { what: "AGWPE data" });
        }
        if input.len() < length {
            return Err(DecodeError::Incomplete);
        }
        Ok(Frame { port, kind, pid, from, to, data: input.split_to(length) })
    }

    /// Appends the frame.
    ///
    /// # Panics
    /// With more than [`DATA_BYTES_MAX`] of data.
    pub fn encode(&self, output: &mut BytesMut) {
        assert!(self.data.len() <= DATA_BYTES_MAX, "a frame has at most {DATA_BYTES_MAX} octets of data");
        output.put_slice(&[self.port, 0, 0, 0, self.kind.octet(), 0, self.pid, 0]);
        output.put_slice(&self.from.0);
        output.put_slice(&self.to.0);
        output.put_u32_le(self.data.len() as u32);
        output.put_u32_le(0);
        output.put_slice(&self.data);
    }

    /// The frame's bytes.
    pub fn to_bytes(&self) -> Bytes {
        let mut output = BytesMut::with_capacity(HEADER_BYTES + self.data.len());
        self.encode(&mut output);
        output.freeze()
    }
}

/// The data of [`Kind::Version`] from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    /// Such as 2005.
    pub major: u16,
    /// Such as 127.
    pub minor: u16,
}

impl Version {
    /// Takes it from the front.
    ///
    /// # Errors
    /// Cut short.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.len() < 8 {
            return Err(DecodeError::Incomplete);
        }
        let (major, minor) = (input.get_u32_le() as u16, input.get_u32_le() as u16);
        Ok(Version { major, minor })
    }

    /// Appends it.
    pub fn encode(&self, output: &mut BytesMut) {
        output.put_u32_le(self.major.into());
        output.put_u32_le(self.minor.into());
    }
}

/// The data of [`Kind::Register`] from the server: the callsign is the program's now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registered(pub bool);

impl Registered {
    /// Takes it from the front.
    ///
    /// # Errors
    /// Cut short.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        match input.is_empty() {
            true => Err(DecodeError::Incomplete),
            false => Ok(Registered(input.get_u8() != 0)),
        }
    }

    /// Appends it.
    pub fn encode(&self, output: &mut BytesMut) {
        output.put_u8(self.0.into());
    }
}

/// The data of [`Kind::QueuedOnPort`] and [`Kind::QueuedOnLink`] from the server: frames that wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queued(pub u32);

impl Queued {
    /// Takes it from the front.
    ///
    /// # Errors
    /// Cut short.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        match input.len() < 4 {
            true => Err(DecodeError::Incomplete),
            false => Ok(Queued(input.get_u32_le())),
        }
    }

    /// Appends it.
    pub fn encode(&self, output: &mut BytesMut) {
        output.put_u32_le(self.0);
    }
}

/// The data of [`Kind::Ports`] from the server: the ports that it has, by their numbers from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ports(pub BTreeSet<u8>);

impl Ports {
    /// Takes them all: `2;Port1 description;Port2 description;`. Servers that name none that way have the first ones.
    ///
    /// # Errors
    /// It does not begin with a number of ports.
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

    /// Appends them.
    pub fn encode(&self, output: &mut BytesMut) {
        output.put_slice(self.0.len().to_string().as_bytes());
        self.0.iter().for_each(|port| output.put_slice(format!(";Port{}", u16::from(*port) + 1).as_bytes()));
        output.put_slice(b";\0");
    }
}

/// The data of [`Kind::Capabilities`] from the server. Times are in units of 10 ms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Bit rate on the air: 0 to 3 for 1,200, 2,400, 4,800 and 9,600 bit/s.
    pub rate: u8,
    /// How busy the channel is; 0xFF: not measured.
    pub traffic: u8,
    /// TXDELAY.
    pub tx_delay: u8,
    /// TXTAIL.
    pub tx_tail: u8,
    /// P.
    pub persistence: u8,
    /// SLOTTIME.
    pub slot_time: u8,
    /// Frames on their way at a time.
    pub window_frames: u8,
    /// Links that stand.
    pub links: u8,
    /// Octets received in the last two minutes.
    pub received_bytes: u32,
}

impl Capabilities {
    /// Takes them from the front.
    ///
    /// # Errors
    /// Cut short.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.len() < 12 {
            return Err(DecodeError::Incomplete);
        }
        Ok(Capabilities {
            rate: input.get_u8(),
            traffic: input.get_u8(),
            tx_delay: input.get_u8(),
            tx_tail: input.get_u8(),
            persistence: input.get_u8(),
            slot_time: input.get_u8(),
            window_frames: input.get_u8(),
            links: input.get_u8(),
            received_bytes: input.get_u32_le(),
        })
    }

    /// Appends them.
    pub fn encode(&self, output: &mut BytesMut) {
        let Capabilities {
            rate,
            traffic,
            tx_delay,
            tx_tail,
            persistence,
            slot_time,
            window_frames,
            links,
            ..
        } = *self;
        output.put_slice(&[rate, traffic, tx_delay, tx_tail, persistence, slot_time, window_frames, links]);
        output.put_u32_le(self.received_bytes);
    }
}

/// The data of [`Kind::ConnectVia`], and what the data of [`Kind::UnconnectedVia`] begin with: digipeaters, the first one
/// first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Via(pub Vec<StationName>);

impl Via {
    /// Takes them from the front.
    ///
    /// # Errors
    /// Cut short, none or too many, or names that are none.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.is_empty() {
            return Err(DecodeError::Incomplete);
        }
        let count = usize::from(input.get_u8());
        if !(1..=VIA_MAX).contains(&count) {
            return Err(DecodeError::invalid("number of digipeaters", CLAUSE));
        }
        (0..count).map(|_| StationName::decode(input)).collect::<Result<_, _>>().map(Via)
    }

    /// Appends them.
    ///
    /// # Panics
    /// With none or more than [`VIA_MAX`].
    pub fn encode(&self, output: &mut BytesMut) {
        assert!((1..=VIA_MAX).contains(&self.0.len()), "one to eight digipeaters");
        output.put_u8(self.0.len() as u8);
        self.0.iter().for_each(|name| output.put_slice(&name.0));
    }
}
