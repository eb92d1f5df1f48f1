//! Callsigns and the address field (AX.25 v2.2 3.12).

use crate::codec::{DecodeError, take};
use bytes::{BufMut, Bytes, BytesMut};
use core::fmt;
use core::str::FromStr;
use serde::{Deserialize, Serialize};

/// Length of one address in the address field, bytes.
pub const ADDRESS_BYTES: usize = 7;
/// Maximum number of digipeaters of a frame (3.12.5).
pub const DIGIPEATERS_MAX: usize = 8;

const LETTERS: usize = 6;
/// Bit 0: the address field ends with this address.
const LAST: u8 = 0x01;
/// Bit 7: C in the first two addresses, H in those of digipeaters.
const TOP: u8 = 0x80;
/// Reserved bits are sent as ones (3.12.2).
const RESERVED: u8 = 0x60;

/// A station: an amateur callsign and the SSID (0 to 15), which distinguishes the stations of one callsign.
///
/// ```
/// use longwire_proto::ax25::Callsign;
///
/// let station: Callsign = "EI7IG-3".parse().unwrap();
/// assert_eq!(station.to_string(), "EI7IG-3");
/// assert!("EI7IGXYZ".parse::<Callsign>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Callsign {
    /// Upper-case letters and digits, padded with spaces.
    letters: [u8; LETTERS],
    ssid: u8,
}

impl Callsign {
    /// Destination of identification frames.
    pub(super) const IDENTIFICATION: Callsign = Callsign { letters: *b"ID    ", ssid: 0 };
    /// Destination of beacons.
    pub(super) const BEACON: Callsign = Callsign { letters: *b"BEACON", ssid: 0 };
    /// Placeholders for a callsign in manuals and examples.
    const PLACEHOLDERS: [[u8; LETTERS]; 3] = [*b"N0CALL", *b"NOCALL", *b"MYCALL"];

    /// Returns true for a placeholder instead of a real callsign.
    pub fn is_placeholder(&self) -> bool {
        Callsign::PLACEHOLDERS.contains(&self.letters)
    }

    fn decode(input: &mut Bytes) -> Result<(Self, u8), DecodeError> {
        let octets = take(input, ADDRESS_BYTES)?;
        let mut letters = [0; LETTERS];
        for (letter, octet) in letters.iter_mut().zip(&octets) {
            if octet & LAST != 0 {
                return Err(DecodeError::invalid("address that ends in the middle", "AX.25 3.12"));
            }
            *letter = octet >> 1;
        }
        let used = letters.iter().position(|letter| *letter == b' ').unwrap_or(LETTERS);
        let (name, padding) = letters.split_at(used);
        if name.is_empty() || !name.iter().all(|letter| is_letter(*letter)) {
            return Err(DecodeError::invalid("callsign", "AX.25 3.12.2"));
        }
        if padding.iter().any(|letter| *letter != b' ') {
            return Err(DecodeError::invalid("callsign with a space inside", "AX.25 3.12.2"));
        }
        let octet = octets[LETTERS];
        Ok((Callsign { letters, ssid: octet >> 1 & 0x0f }, octet))
    }

    fn encode(&self, output: &mut BytesMut, top: bool, last: bool) {
        self.letters.iter().for_each(|letter| output.put_u8(letter << 1));
        let (top, last) = (if top { TOP } else { 0 }, if last { LAST } else { 0 });
        output.put_u8(top | RESERVED | self.ssid << 1 | last);
    }
}

fn is_letter(letter: u8) -> bool {
    letter.is_ascii_uppercase() || letter.is_ascii_digit()
}

/// Reason why a text is not a valid callsign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallsignError {
    /// The callsign does not have one to six letters and digits.
    Letters,
    /// The SSID after the hyphen is not 0 to 15.
    Ssid,
}

impl fmt::Display for CallsignError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CallsignError::Letters => "a callsign has one to six letters and digits, such as EI7IG",
            CallsignError::Ssid => "the SSID after a callsign is 0 to 15, as in EI7IG-3",
        })
    }
}

impl core::error::Error for CallsignError {}

impl FromStr for Callsign {
    type Err = CallsignError;

    fn from_str(text: &str) -> Result<Self, CallsignError> {
        let (name, ssid) = match text.split_once('-') {
            Some((name, ssid)) if ssid.bytes().all(|digit| digit.is_ascii_digit()) => {
                (name, ssid.parse().map_err(|_| CallsignError::Ssid)?)
            }
            Some(_) => return Err(CallsignError::Ssid),
            None => (text, 0),
        };
        let name = name.to_ascii_uppercase();
        if !(1..=LETTERS).contains(&name.len()) || !name.bytes().all(is_letter) {
            return Err(CallsignError::Letters);
        }
        if ssid > 15 {
            return Err(CallsignError::Ssid);
        }
        let mut letters = [b' '; LETTERS];
        letters[..name.len()].copy_from_slice(name.as_bytes());
        Ok(Callsign { letters, ssid })
    }
}

impl fmt::Display for Callsign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.letters.iter().filter(|letter| **letter != b' ').count();
        let name = core::str::from_utf8(&self.letters[..used]).unwrap_or_default();
        match self.ssid {
            0 => f.pad(name),
            ssid => f.pad(&format!("{name}-{ssid}")),
        }
    }
}

impl fmt::Debug for Callsign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl TryFrom<String> for Callsign {
    type Error = CallsignError;
    fn try_from(text: String) -> Result<Self, CallsignError> {
        text.parse()
    }
}

impl From<Callsign> for String {
    fn from(station: Callsign) -> String {
        station.to_string()
    }
}

/// Type of a frame: command or response (6.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommandResponse {
    /// A command.
    Command,
    /// A response.
    Response,
    /// Unspecified by a sender older than version 2.0; both C bits have this value.
    Unspecified(bool),
}

/// A digipeater of a frame's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digipeater {
    /// Station that repeats the frame.
    pub station: Callsign,
    /// True if the digipeater has repeated the frame (the H bit).
    pub repeated: bool,
}

/// Address field of a frame: destination, source, path, and command or response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Destination station.
    pub destination: Callsign,
    /// Source station.
    pub source: Callsign,
    /// Command or response.
    pub role: CommandResponse,
    /// Digipeaters in the order of the path; at most [`DIGIPEATERS_MAX`].
    pub path: Vec<Digipeater>,
}

impl Address {
    /// Creates an address field from `source` to `destination` with a path that no digipeater has repeated yet.
    pub fn new(source: Callsign, destination: Callsign, role: CommandResponse, path: &[Callsign]) -> Self {
        let path = path.iter().map(|station| Digipeater { station: *station, repeated: false }).collect();
        Address { destination, source, role, path }
    }

    /// Returns true if every digipeater has repeated the frame.
    pub fn arrived(&self) -> bool {
        self.path.iter().all(|hop| hop.repeated)
    }

    /// Returns the path back to the source.
    pub fn way_back(&self) -> Vec<Callsign> {
        self.path.iter().rev().map(|hop| hop.station).collect()
    }

    /// Returns the length of the encoded address field, bytes.
    pub fn len_bytes(&self) -> usize {
        ADDRESS_BYTES * (2 + self.path.len())
    }

    /// Consumes an address field.
    ///
    /// # Errors
    /// Fails if a callsign is invalid, if there are more than eight digipeaters, or if the field ends before the
    /// source.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let (destination, first) = Callsign::decode(input)?;
        if first & LAST != 0 {
            return Err(DecodeError::invalid("address field without a source", "AX.25 3.12.1"));
        }
        let (source, second) = Callsign::decode(input)?;
        let role = match (first & TOP != 0, second & TOP != 0) {
            (true, false) => CommandResponse::Command,
            (false, true) => CommandResponse::Response,
            (both, _) => CommandResponse::Unspecified(both),
        };
        let (mut path, mut octet) = (Vec::new(), second);
        while octet & LAST == 0 {
            if path.len() == DIGIPEATERS_MAX {
                return Err(DecodeError::Limit { what: "digipeaters" });
            }
            let (station, next) = Callsign::decode(input)?;
            path.push(Digipeater { station, repeated: next & TOP != 0 });
            octet = next;
        }
        Ok(Address { destination, source, role, path })
    }

    /// Appends the address field.
    ///
    /// # Panics
    /// Panics with more than eight digipeaters.
    pub fn encode(&self, output: &mut BytesMut) {
        assert!(self.path.len() <= DIGIPEATERS_MAX, "a frame names at most eight digipeaters");
        let (to, from) = match self.role {
            CommandResponse::Command => (true, false),
            CommandResponse::Response => (false, true),
            CommandResponse::Unspecified(both) => (both, both),
        };
        self.destination.encode(output, to, false);
        self.source.encode(output, from, self.path.is_empty());
        for (at, hop) in self.path.iter().enumerate() {
            hop.station.encode(output, hop.repeated, at + 1 == self.path.len());
        }
    }
}
