//! Frames without flags, bit stuffing and check sequence, as they are exchanged with a TNC in KISS mode (3, 4).

use super::address::{Address, Callsign, CommandResponse};
use crate::codec::{self, DecodeError, take_byte};
use bytes::{BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

/// Range of the sequence numbers (4.2.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Modulo {
    /// Three bits, control field of one octet: every version.
    #[default]
    #[serde(rename = "8")]
    Eight,
    /// Seven bits, control field of two octets in I and S frames: version 2.2.
    #[serde(rename = "128")]
    Extended,
}

impl Modulo {
    /// Returns the number of sequence numbers.
    pub const fn count(self) -> u8 {
        match self {
            Modulo::Eight => 8,
            Modulo::Extended => 128,
        }
    }

    /// Returns the distance from `from` up to `to`, modulo the number of sequence numbers.
    pub const fn distance(self, from: u8, to: u8) -> u8 {
        to.wrapping_sub(from) & self.mask()
    }

    /// Returns the sequence number `steps` after `number`.
    pub const fn after(self, number: u8, steps: u8) -> u8 {
        number.wrapping_add(steps) & self.mask()
    }

    const fn mask(self) -> u8 {
        self.count() - 1
    }

    /// Guesses the modulo of a frame of an unknown link from the octets after its address field: an S frame with two
    /// control octets can only be of modulo 128, and so can an I frame whose P bit is in the second octet and which
    /// would otherwise have an undefined protocol identifier (3.4, 4.2.1).
    pub(super) fn of_unknown(rest: &[u8]) -> Modulo {
        let is_pid = |at: usize| rest.get(at).is_some_and(|octet| pid::ALL.contains(octet));
        let extended = match rest.first().map_or(3, |control| control & 3) {
            3 => false,
            // Without information the length decides; only SREJ may have some.
            1 => rest.len() == 2 || (rest.len() > 2 && rest[0] & 0xf0 == 0),
            _ => is_pid(2) && !is_pid(1),
        };
        if extended { Modulo::Extended } else { Modulo::Eight }
    }
}

/// Protocol identifiers (3.4) used here.
pub mod pid {
    /// A segment of a packet that is longer than a frame (6.6).
    pub const SEGMENT: u8 = 0x08;
    /// An IPv4 packet.
    pub const INTERNET: u8 = 0xcc;
    /// No layer 3.
    pub const NONE: u8 = 0xf0;
    /// All identifiers of 3.4, except those that are defined by two bits only.
    pub(crate) const ALL: [u8; 13] =
        [0x01, 0x06, 0x07, SEGMENT, 0xc3, 0xc4, 0xca, 0xcb, INTERNET, 0xcd, 0xce, 0xcf, NONE];
}

/// Supervisory functions (4.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervisory {
    /// RR: ready to receive.
    ReceiveReady,
    /// RNR: not ready to receive.
    ReceiveNotReady,
    /// REJ: requests retransmission of all frames from N(R) on.
    Reject,
    /// SREJ: requests retransmission of frame N(R) only; further numbers may follow as information.
    SelectiveReject,
}

/// Unnumbered functions (4.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnumbered {
    /// SABME: requests a link of modulo 128.
    SetModeExtended,
    /// SABM: requests a link of modulo 8.
    SetMode,
    /// DISC: disconnects the link.
    Disconnect,
    /// DM: there is no link.
    DisconnectedMode,
    /// UA: accepts the command.
    Acknowledge,
    /// FRMR: an older station rejects a frame. Understood, never sent (4.3.3.9).
    FrameReject,
    /// UI: information without a link.
    Information,
    /// XID: exchanges the parameters of the stations.
    ExchangeIdentification,
    /// TEST: requests an echo.
    Test,
    /// Any other function, by its octet without the P/F bit.
    Unknown(u8),
}

const POLL: u8 = 0x10;
const UNNUMBERED: [(u8, Unnumbered); 9] = [
    (0x6f, Unnumbered::SetModeExtended),
    (0x2f, Unnumbered::SetMode),
    (0x43, Unnumbered::Disconnect),
    (0x0f, Unnumbered::DisconnectedMode),
    (0x63, Unnumbered::Acknowledge),
    (0x87, Unnumbered::FrameReject),
    (0x03, Unnumbered::Information),
    (0xaf, Unnumbered::ExchangeIdentification),
    (0xe3, Unnumbered::Test),
];

impl Unnumbered {
    fn from_octet(octet: u8) -> Self {
        let known = UNNUMBERED.iter().find(|(code, _)| *code == octet);
        known.map_or(Unnumbered::Unknown(octet), |(_, function)| *function)
    }

    fn octet(self) -> u8 {
        match self {
            Unnumbered::Unknown(octet) => octet & !POLL | 0x03,
            known => {
                UNNUMBERED.iter().find(|(_, function)| *function == known).map_or(0x03, |(code, _)| *code)
            }
        }
    }
}

/// Control field of a frame (4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// I: numbered information.
    Information {
        /// Send sequence number N(S).
        send: u8,
        /// Receive sequence number N(R).
        receive: u8,
        /// P bit: requests an answer at once.
        poll: bool,
    },
    /// S: acknowledges frames and requests retransmissions.
    Supervisory {
        /// Supervisory function.
        function: Supervisory,
        /// Receive sequence number N(R).
        receive: u8,
        /// P in a command, F in a response.
        poll_final: bool,
    },
    /// U: unnumbered frame.
    Unnumbered {
        /// Unnumbered function.
        function: Unnumbered,
        /// P in a command, F in a response.
        poll_final: bool,
    },
}

impl Control {
    /// Returns true for I and UI frames, which have a protocol identifier (3.4).
    pub fn has_pid(self) -> bool {
        matches!(
            self,
            Control::Information { .. } | Control::Unnumbered { function: Unnumbered::Information, .. }
        )
    }

    /// Returns the abbreviation of the specification (4.3), such as `SABM`; `U` for an unknown unnumbered function.
    pub fn name(self) -> &'static str {
        match self {
            Control::Information { .. } => "I",
            Control::Supervisory { function, .. } => match function {
                Supervisory::ReceiveReady => "RR",
                Supervisory::ReceiveNotReady => "RNR",
                Supervisory::Reject => "REJ",
                Supervisory::SelectiveReject => "SREJ",
            },
            Control::Unnumbered { function, .. } => match function {
                Unnumbered::SetModeExtended => "SABME",
                Unnumbered::SetMode => "SABM",
                Unnumbered::Disconnect => "DISC",
                Unnumbered::DisconnectedMode => "DM",
                Unnumbered::Acknowledge => "UA",
                Unnumbered::FrameReject => "FRMR",
                Unnumbered::Information => "UI",
                Unnumbered::ExchangeIdentification => "XID",
                Unnumbered::Test => "TEST",
                Unnumbered::Unknown(_) => "U",
            },
        }
    }

    /// Returns the P/F bit.
    pub fn poll_final(self) -> bool {
        match self {
            Control::Information { poll, .. } => poll,
            Control::Supervisory { poll_final, .. } | Control::Unnumbered { poll_final, .. } => poll_final,
        }
    }

    /// Returns the length of the control field, octets.
    pub fn len_bytes(self, modulo: Modulo) -> usize {
        match (self, modulo) {
            (Control::Unnumbered { .. }, _) | (_, Modulo::Eight) => 1,
            _ => 2,
        }
    }

    fn decode(input: &mut Bytes, modulo: Modulo) -> Result<Self, DecodeError> {
        let first = take_byte(input)?;
        if first & 0x03 == 0x03 {
            let function = Unnumbered::from_octet(first & !POLL);
            return Ok(Control::Unnumbered { function, poll_final: first & POLL != 0 });
        }
        let (send, receive, poll_final) = match modulo {
            Modulo::Eight => (first >> 1 & 0x07, first >> 5, first & POLL != 0),
            Modulo::Extended => {
                let second = take_byte(input)?;
                (first >> 1, second >> 1, second & 1 != 0)
            }
        };
        if first & 1 == 0 {
            return Ok(Control::Information { send, receive, poll: poll_final });
        }
        if modulo == Modulo::Extended && first & 0xf0 != 0 {
            return Err(DecodeError::invalid("supervisory control field", "AX.25 4.3.2"));
        }
        let function = match first >> 2 & 0x03 {
            0 => Supervisory::ReceiveReady,
            1 => Supervisory::ReceiveNotReady,
            2 => Supervisory::Reject,
            _ => Supervisory::SelectiveReject,
        };
        Ok(Control::Supervisory { function, receive, poll_final })
    }

    fn encode(self, output: &mut BytesMut, modulo: Modulo) {
        let (low, receive, poll_final) = match self {
            Control::Unnumbered { function, poll_final } => {
                output.put_u8(function.octet() | if poll_final { POLL } else { 0 });
                return;
            }
            Control::Information { send, receive, poll } => (send << 1, receive, poll),
            Control::Supervisory { function, receive, poll_final } => {
                let code = match function {
                    Supervisory::ReceiveReady => 0,
                    Supervisory::ReceiveNotReady => 1,
                    Supervisory::Reject => 2,
                    Supervisory::SelectiveReject => 3,
                };
                (code << 2 | 1, receive, poll_final)
            }
        };
        match modulo {
            Modulo::Eight => output.put_u8(receive << 5 | if poll_final { POLL } else { 0 } | low),
            Modulo::Extended => {
                output.put_u8(low);
                output.put_u8(receive << 1 | u8::from(poll_final));
            }
        }
    }
}

/// A frame, from the address field to the end of the information.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Address field.
    pub address: Address,
    /// Control field.
    pub control: Control,
    /// Protocol identifier of I and UI frames; 0 in others, which have none.
    pub pid: u8,
    /// Information field; may be empty.
    pub information: Bytes,
}

impl Frame {
    /// Creates a frame without information.
    pub fn bare(address: Address, control: Control) -> Self {
        Frame { address, control, pid: 0, information: Bytes::new() }
    }

    /// Creates an identification frame, to `ID`; no station answers it.
    pub fn identification(own: Callsign) -> Self {
        let address = Address::new(own, Callsign::IDENTIFICATION, CommandResponse::Command, &[]);
        let function = Unnumbered::Information;
        Frame { pid: pid::NONE, ..Frame::bare(address, Control::Unnumbered { function, poll_final: false }) }
    }

    /// Returns true for a command. Frames without the distinction count as commands, as in stations before version 2.0.
    pub fn is_command(&self) -> bool {
        self.address.role != CommandResponse::Response
    }

    /// Returns the length of address, control and protocol identifier, bytes.
    pub fn header_bytes(&self, modulo: Modulo) -> usize {
        self.address.len_bytes() + self.control.len_bytes(modulo) + usize::from(self.control.has_pid())
    }

    /// Decodes the rest of a frame after its address field. The modulo is that of the link between the addresses: the
    /// frame itself does not contain it.
    ///
    /// # Errors
    /// Fails if the frame is incomplete, or contains information where none is allowed (4.3).
    pub fn decode_behind(address: Address, mut input: Bytes, modulo: Modulo) -> Result<Self, DecodeError> {
        let control = Control::decode(&mut input, modulo)?;
        let pid = if control.has_pid() { take_byte(&mut input)? } else { 0 };
        let informs = match control {
            Control::Information { .. } => true,
            Control::Supervisory { function, .. } => function == Supervisory::SelectiveReject,
            Control::Unnumbered { function, .. } => !matches!(
                function,
                Unnumbered::SetModeExtended
                    | Unnumbered::SetMode
                    | Unnumbered::Disconnect
                    | Unnumbered::DisconnectedMode
                    | Unnumbered::Acknowledge
            ),
        };
        if !informs && !input.is_empty() {
            return Err(DecodeError::invalid("information in a frame that has none", "AX.25 4.3"));
        }
        Ok(Frame { address, control, pid, information: input })
    }

    /// Decodes a complete frame of a link with this modulo.
    ///
    /// # Errors
    /// Returns the errors of [`Address::decode`] and [`Frame::decode_behind`].
    pub fn decode(input: &mut Bytes, modulo: Modulo) -> Result<Self, DecodeError> {
        let address = Address::decode(input)?;
        Frame::decode_behind(address, core::mem::take(input), modulo)
    }

    /// Appends the frame in its form on a link with this modulo.
    pub fn encode(&self, output: &mut BytesMut, modulo: Modulo) {
        self.address.encode(output);
        self.control.encode(output, modulo);
        if self.control.has_pid() {
            output.put_u8(self.pid);
        }
        output.put_slice(&self.information);
    }

    /// Returns the frame's bytes in their form on a link with this modulo.
    pub fn to_bytes(&self, modulo: Modulo) -> Bytes {
        codec::encoded(self.header_bytes(modulo) + self.information.len(), |output| {
            self.encode(output, modulo)
        })
    }
}
