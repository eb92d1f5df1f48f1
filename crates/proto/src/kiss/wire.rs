//! Content between two FENDs, without escapes and checksum: the type octet and its data.

use crate::codec::{DecodeError, take_byte};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Number of ports that a type octet can express, and of addresses of TNCs on one line (KISS 4, Multi-Drop).
pub const PORTS: u8 = 16;

const DATA: u8 = 0x0;
const TX_DELAY: u8 = 0x1;
const PERSISTENCE: u8 = 0x2;
const SLOT_TIME: u8 = 0x3;
const TX_TAIL: u8 = 0x4;
const FULL_DUPLEX: u8 = 0x5;
const SET_HARDWARE: u8 = 0x6;
const DATA_ACKNOWLEDGED: u8 = 0xc;
const POLL: u8 = 0xe;
const RETURN: u8 = 0xf;
/// The whole octet is the command, for every TNC of the line.
const RETURN_OCTET: u8 = 0xff;

/// Command of a host to a TNC, or of a TNC to its host. Times are in units of 10 ms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A frame for the channel, or received from it.
    Data(Bytes),
    /// TXDELAY: time from key-up to the first frame, in units of 10 ms.
    TxDelay(u8),
    /// P: the probability of transmitting in a free slot is (P + 1) / 256.
    Persistence(u8),
    /// SlotTime, in units of 10 ms.
    SlotTime(u8),
    /// TXtail: time from the last frame to key-down, in units of 10 ms.
    TxTail(u8),
    /// FullDuplex: 0 is half duplex, any other value full duplex.
    FullDuplex(u8),
    /// SetHardware: its meaning depends on the TNC.
    SetHardware(Bytes),
    /// A frame whose transmission is to be acknowledged; without bytes, the acknowledgement (Multi-Drop, Acknowledgment
    /// Mode).
    DataAcknowledged {
        /// Token that the TNC returns.
        token: u16,
        /// The frame; empty in an acknowledgement.
        bytes: Bytes,
    },
    /// Permission to send what waits; from a TNC: nothing waits (Multi-Drop, Polled Mode).
    Poll,
    /// Exit from KISS, for every TNC of the line.
    Return,
    /// Any other command, which must be ignored (KISS 4).
    Unknown {
        /// The low four bits of the type octet.
        command: u8,
        /// Data after the type octet.
        bytes: Bytes,
    },
}

/// One frame between host and TNC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Port of the TNC, or its address on the line, 0 to 15. 0 with [`Command::Return`], which has none.
    pub port: u8,
    /// Command and its data.
    pub body: Command,
}

impl Frame {
    /// Creates a frame for the channel.
    pub fn data(port: u8, bytes: Bytes) -> Self {
        Frame { port, body: Command::Data(bytes) }
    }

    /// Decodes all of the input: the unescaped content between two FENDs.
    ///
    /// # Errors
    /// Fails if the input is empty, or lacks a required parameter.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let octet = take_byte(input)?;
        let (port, command) = (octet >> 4, octet & 0x0f);
        // Octets after the parameter may have a meaning for newer TNCs; they are ignored.
        let mut parameter = || match input.is_empty() {
            true => Err(DecodeError::Incomplete),
            false => Ok(input.split_to(input.len())[0]),
        };
        let body = match command {
            _ if octet == RETURN_OCTET => {
                input.clear();
                return Ok(Frame { port: 0, body: Command::Return });
            }
            TX_DELAY => Command::TxDelay(parameter()?),
            PERSISTENCE => Command::Persistence(parameter()?),
            SLOT_TIME => Command::SlotTime(parameter()?),
            TX_TAIL => Command::TxTail(parameter()?),
            FULL_DUPLEX => Command::FullDuplex(parameter()?),
            DATA => Command::Data(core::mem::take(input)),
            SET_HARDWARE => Command::SetHardware(core::mem::take(input)),
            DATA_ACKNOWLEDGED if input.len() < 2 => return Err(DecodeError::Incomplete),
            DATA_ACKNOWLEDGED => {
                let token = input.get_u16();
                Command::DataAcknowledged { token, bytes: core::mem::take(input) }
            }
            POLL => {
                input.clear();
                Command::Poll
            }
            command => Command::Unknown { command, bytes: core::mem::take(input) },
        };
        Ok(Frame { port, body })
    }

    /// Appends type octet and content, without checksum, escapes and FENDs.
    ///
    /// # Panics
    /// Panics with a port above 15, or with port 15 and an unknown command 15, which would exit KISS.
    pub fn encode(&self, output: &mut BytesMut) {
        assert!(self.port < PORTS, "a type octet has four bits for the port");
        let mut put = |command: u8, parameter: &[u8]| {
            output.put_u8(self.port << 4 | command);
            output.put_slice(parameter);
        };
        match &self.body {
            Command::Data(bytes) => put(DATA, bytes),
            Command::TxDelay(value) => put(TX_DELAY, &[*value]),
            Command::Persistence(value) => put(PERSISTENCE, &[*value]),
            Command::SlotTime(value) => put(SLOT_TIME, &[*value]),
            Command::TxTail(value) => put(TX_TAIL, &[*value]),
            Command::FullDuplex(value) => put(FULL_DUPLEX, &[*value]),
            Command::SetHardware(bytes) => put(SET_HARDWARE, bytes),
            Command::DataAcknowledged { token, bytes } => {
                put(DATA_ACKNOWLEDGED, &token.to_be_bytes());
                output.put_slice(bytes);
            }
            Command::Poll => put(POLL, &[]),
            Command::Return => output.put_u8(RETURN_OCTET),
            Command::Unknown { command, bytes } => {
                assert!(self.port < 15 || *command & 0x0f != RETURN, "0xFF ends KISS");
                put(command & 0x0f, bytes);
            }
        }
    }
}
