//! FENDs, escapes and checksums: whole contents in a stream of bytes (KISS 2, 3).

use super::wire::Frame;
use crate::codec::{DecodeError, crc};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

const FEND: u8 = 0xc0;
const FESC: u8 = 0xdb;
const TFEND: u8 = 0xdc;
const TFESC: u8 = 0xdd;

/// The longest content between two FENDs, bytes: far beyond what a channel takes. More is dropped up to the next FEND.
pub const FRAME_BYTES_MAX: usize = 8192;

/// SMACK: the type octet of data that have a CRC.
const SMACK_BIT: u8 = 0x80;
/// The commands with data in them.
const DATA_COMMANDS: [u8; 2] = [0x0, 0xc];

/// How damage on the line between host and TNC is seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checksum {
    /// Not at all: plain KISS.
    #[default]
    None,
    /// The exclusive-or of all octets, behind them (Multi-Drop, Checksum Mode).
    ExclusiveOr,
    /// SMACK: CRC-16 behind data, low octet first, and the top bit of the type octet says that it is there. It leaves the
    /// ports 0 to 7. What comes without that bit is plain KISS.
    Smack,
}

impl Checksum {
    fn append(self, content: &mut BytesMut) {
        match self {
            Checksum::None => {}
            Checksum::ExclusiveOr => content.put_u8(exclusive_or(content)),
            Checksum::Smack => {
                if DATA_COMMANDS.contains(&(content[0] & 0x0f)) {
                    content[0] |= SMACK_BIT;
                    content.put_u16_le(crc::crc16_arc(content));
                }
            }
        }
    }

    /// Takes it off a content.
    ///
    /// # Errors
    /// It is missing or wrong.
    pub fn strip(self, content: Bytes) -> Result<Bytes, DecodeError> {
        const WRONG: DecodeError = DecodeError::Checksum { what: "KISS frame" };
        match self {
            Checksum::None => Ok(content),
            Checksum::ExclusiveOr => match content.len() {
                0 | 1 => Err(DecodeError::Incomplete),
                _ if exclusive_or(&content) != 0 => Err(WRONG),
                length => Ok(content.slice(..length - 1)),
            },
            Checksum::Smack => match content.first() {
                None => Err(DecodeError::Incomplete),
                Some(first) if first & SMACK_BIT == 0 || !DATA_COMMANDS.contains(&(first & 0x0f)) => {
                    Ok(content)
                }
                _ if content.len() < 3 => Err(DecodeError::Incomplete),
                _ if crc::crc16_arc(&content) != 0 => Err(WRONG),
                Some(first) => {
                    let mut plain = BytesMut::with_capacity(content.len() - 2);
                    plain.put_u8(first & !SMACK_BIT);
                    plain.put_slice(&content[1..content.len() - 2]);
                    Ok(plain.freeze())
                }
            },
        }
    }
}

fn exclusive_or(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0, |sum, octet| sum ^ octet)
}

/// Appends a frame as it is on the line: checksum, escapes, and a FEND on either side.
pub fn enclose(frame: &Frame, checksum: Checksum, output: &mut BytesMut) {
    let mut content = BytesMut::new();
    frame.encode(&mut content);
    checksum.append(&mut content);
    output.reserve(content.len() + content.len() / 16 + 2);
    output.put_u8(FEND);
    // The type octet, too: port 12 with data is a FEND.
    for octet in content {
        match octet {
            FEND => output.put_slice(&[FESC, TFEND]),
            FESC => output.put_slice(&[FESC, TFESC]),
            octet => output.put_u8(octet),
        }
    }
    output.put_u8(FEND);
}

/// Finds contents in a stream of bytes that comes in any pieces.
#[derive(Debug, Default)]
pub struct Deframer {
    content: BytesMut,
    escaped: bool,
    /// Too long: nothing counts up to the next FEND.
    overlong: bool,
    dropped: u64,
}

impl Deframer {
    /// In the middle of a frame: what comes before the first FEND is a content of its own, which is refused later.
    pub fn new() -> Self {
        Deframer::default()
    }

    /// Contents that were too long.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The next whole content, unescaped, checksum and all; the input is left behind it. None: all of the input is taken.
    pub fn next(&mut self, input: &mut Bytes) -> Option<Bytes> {
        while let Some(length) = input.iter().position(|octet| *octet == FEND) {
            input.split_to(length).iter().for_each(|octet| self.take(*octet));
            input.advance(1);
            self.escaped = false;
            let content = core::mem::take(&mut self.content).freeze();
            if core::mem::take(&mut self.overlong) {
                self.dropped += 1;
            } else if !content.is_empty() {
                return Some(content);
            }
        }
        core::mem::take(input).iter().for_each(|octet| self.take(*octet));
        None
    }

    fn take(&mut self, octet: u8) {
        let octet = match (core::mem::take(&mut self.escaped), octet) {
            (true, TFEND) => FEND,
            (true, TFESC) => FESC,
            // An error: no action is taken, and assembly continues (KISS 3).
            (true, _) => return,
            (false, FESC) => {
                self.escaped = true;
                return;
            }
            (false, octet) => octet,
        };
        match self.overlong || self.content.len() >= FRAME_BYTES_MAX {
            true => {
                self.overlong = true;
                self.content.clear();
            }
            false => self.content.put_u8(octet),
        }
    }
}
