//! FENDs, escapes and checksums: complete frame contents in a stream of bytes (KISS 2, 3).

use super::wire::Frame;
use crate::codec::{DecodeError, crc};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

const FEND: u8 = 0xc0;
const FESC: u8 = 0xdb;
const TFEND: u8 = 0xdc;
const TFESC: u8 = 0xdd;

/// Maximum content between two FENDs, bytes, far above what a channel carries. A longer one is dropped up to the next
/// FEND.
pub const FRAME_BYTES_MAX: usize = 8192;

/// SMACK: bit of the type octet that marks data with a CRC.
const SMACK_BIT: u8 = 0x80;
/// Commands that carry data.
const DATA_COMMANDS: [u8; 2] = [0x0, 0xc];

/// Detection of damage on the line between host and TNC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Checksum {
    /// No detection: plain KISS.
    #[default]
    None,
    /// Exclusive-or of all octets, appended to them (Multi-Drop, Checksum Mode).
    ExclusiveOr,
    /// SMACK: CRC-16 after the data, low octet first; the top bit of the type octet marks its presence, which leaves
    /// the ports 0 to 7. Frames without that bit are plain KISS.
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

    /// Checks the checksum of a content and removes it.
    ///
    /// # Errors
    /// Fails if the checksum is missing or wrong.
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

/// Appends a frame in its form on the line: with checksum and escapes, and a FEND on either side.
pub fn enclose(frame: &Frame, checksum: Checksum, output: &mut BytesMut) {
    let mut content = BytesMut::new();
    frame.encode(&mut content);
    checksum.append(&mut content);
    output.reserve(content.len() + content.len() / 16 + 2);
    output.put_u8(FEND);
    // Escapes apply to the type octet, too: port 12 with data is a FEND.
    for octet in content {
        match octet {
            FEND => output.put_slice(&[FESC, TFEND]),
            FESC => output.put_slice(&[FESC, TFESC]),
            octet => output.put_u8(octet),
        }
    }
    output.put_u8(FEND);
}

/// Finds frame contents in a stream of bytes that arrives in pieces of any size.
#[derive(Debug, Default)]
pub struct Deframer {
    content: BytesMut,
    escaped: bool,
    /// The content is too long: everything up to the next FEND is dropped.
    overlong: bool,
    dropped: u64,
}

impl Deframer {
    /// Starts in the middle of a frame: bytes before the first FEND form a content of their own, which is refused
    /// later.
    pub fn new() -> Self {
        Deframer::default()
    }

    /// Returns the number of contents that were too long.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Returns the next complete content, unescaped, with its checksum, and consumes the input up to its end. `None` if
    /// the whole input is consumed without one.
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
