//! Frames without flags, bit stuffing and check sequence: as a TNC in KISS mode takes and gives them (3, 4).

use super::address::{Address, Callsign, CommandResponse};
use crate::codec::DecodeError;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize};

/// How far sequence numbers count before they begin again (4.2.2.1).
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
    /// How many sequence numbers there are.
    pub const fn count(self) -> u8 {
        match self {
            Modulo::Eight => 8,
            Modulo::Extended => 128,
        }
    }

    /// From `from` up to `to`, on the circle of sequence numbers.
    pub const fn distance(self, from: u8, to: u8) -> u8 {
        to.wrapping_sub(from) & self.mask()
    }

    /// `steps` after `number`.
    pub const fn after(self, number: u8, steps: u8) -> u8 {
        number.wrapping_add(steps) & self.mask()
    }

    const fn mask(self) -> u8 {
        self.count() - 1
    }

    /// How far the link counts to which a frame belongs that nobody here knows, from what is behind its address field: an S
    /// frame with two control octets can only be of modulo 128, and so can an I frame whose P bit is in the second one and
    /// which would else have no protocol identifier that there is (3.4, 4.2.1).
    pub(super) fn of_unknown(rest: &[u8]) -> Modulo {
        let is_pid = |at: usize| rest.get(at).is_some_and(|octet| pid::ALL.contains(octet));
        let extended = match rest.first().map_or(3, |control| control & 3) {
            3 => false,
            // Without information the length tells; SREJ alone may have some.
            1 => rest.len() == 2 || (rest.len() > 2 && rest[0] & 0xf0 == 0),
            _ => is_pid(2) && !is_pid(1),
        };
        if extended { Modulo::Extended } else { Modulo::Eight }
    }
}

/// Protocol identifiers (3.4) that are used here.
pub mod pid {
    /// A piece of a packet that is longer than a frame (6.6).
    pub const SEGMENT: u8 = 0x08;
    /// An IPv4 packet.
    pub const INTERNET: u8 = 0xcc;
    /// No layer 3.
    pub const NONE: u8 = 0xf0;
    /// All that 3.4 has, but for those of two bits alone.
    pub(crate) const ALL: [u8; 13] =
        [0x01, 0x06, 0x07, SEGMENT, 0xc3, 0xc4, 0xca, 0xcb, INTERNET, 0xcd, 0xce, 0xcf, NONE];
}

/// Supervisory functions (4.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Supervisory {
    /// RR: ready for more.
    ReceiveReady,
    /// RNR: not ready now.
    ReceiveNotReady,
    /// REJ: all from N(R) on again.
    Reject,
    /// SREJ: N(R) alone again; further numbers may follow as information.
    SelectiveReject,
}

/// Unnumbered functions (4.3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnumbered {
    /// SABME: opens a link of modulo 128.
    SetModeExtended,
    /// SABM: opens a link of modulo 8.
    SetMode,
    /// DISC: closes it.
    Disconnect,
    /// DM: there is no link.
    DisconnectedMode,
    /// UA: agreed.
    Acknowledge,
    /// FRMR: an older station cannot take a frame. Understood, never sent (4.3.3.9).
    FrameReject,
    /// UI: information without a link.
    Information,
    /// XID: what a station can do.
    ExchangeIdentification,
    /// TEST: to be sent back.
    Test,
    /// Anything else, by its octet without the P/F bit.
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

/// What kind of frame it is (4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// I: numbered information.
    Information {
        /// N(S).
        send: u8,
        /// N(R).
        receive: u8,
        /// P: an answer is wanted at once.
        poll: bool,
    },
    /// S: acknowledges and asks.
    Supervisory {
        /// Which.
        function: Supervisory,
        /// N(R).
        receive: u8,
        /// P in a command, F in a response.
        poll_final: bool,
    },
    /// U: the rest.
    Unnumbered {
        /// Which.
        function: Unnumbered,
        /// P in a command, F in a response.
        poll_final: bool,
    },
}

impl Control {
    /// I and UI frames have a protocol identifier (3.4).
    pub fn has_pid(self) -> bool {
        matches!(
            self,
            Control::Information { .. } | Control::Unnumbered { function: Unnumbered::Information, .. }
        )
    }

    /// The P/F bit.
    pub fn poll_final(self) -> bool {
        match self {
            Control::Information { poll, .. } => poll,
            Control::Supervisory { poll_final, .. } | Control::Unnumbered { poll_final, .. } => poll_final,
        }
    }

    /// Octets on the air.
    pub fn len_bytes(self, modulo: Modulo) -> usize {
        match (self, modulo) {
            (Control::Unnumbered { .. }, _) | (_, Modulo::Eight) => 1,
            _ => 2,
        }
    }

    fn decode(input: &mut Bytes, modulo: Modulo) -> Result<Self, DecodeError> {
        if input.is_empty() {
            return Err(DecodeError::Incomplete);
        }
        let first = input.get_u8();
        if first & 0x03 == 0x03 {
            let function = Unnumbered::from_octet(first & !POLL);
            return Ok(Control::Unnumbered { function, poll_final: first & POLL != 0 });
        }
        let (send, receive, poll_final) = match modulo {
            Modulo::Eight => (first >> 1 & 0x07, first >> 5, first & POLL != 0),
            Modulo::Extended if input.is_empty() => return Err(DecodeError::Incomplete),
            Modulo::Extended => {
                let second = input.get_u8();
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
    /// From whom, for whom, by which way.
    pub address: Address,
    /// What kind.
    pub control: Control,
    /// The protocol identifier of I and UI frames; 0 in others, which have none.
    pub pid: u8,
    /// The information field; empty where there is none.
    pub information: Bytes,
}

impl Frame {
    /// A frame without information.
    pub fn bare(address: Address, control: Control) -> Self {
        Frame { address, control, pid: 0, information: Bytes::new() }
    }

    /// A frame to `ID`, as stations say who they are: nobody answers it.
    pub fn identification(own: Callsign) -> Self {
        let address = Address::new(own, Callsign::IDENTIFICATION, CommandResponse::Command, &[]);
        let function = Unnumbered::Information;
        Frame { pid: pid::NONE, ..Frame::bare(address, Control::Unnumbered { function, poll_final: false }) }
    }

    /// Command, as far as it says so; what does not say is taken as one, as stations before version 2.0 mean it.
    pub fn is_command(&self) -> bool {
        self.address.role != CommandResponse::Response
    }

    /// Bytes of address, control and protocol identifier.
    pub fn header_bytes(&self, modulo: Modulo) -> usize {
        self.address.len_bytes() + self.control.len_bytes(modulo) + usize::from(self.control.has_pid())
    }

    /// Reads a whole frame behind its address field. The modulo is that of the link which the address names: the frame
    /// itself does not tell it.
    ///
    /// # Errors
    /// Cut short, or with information where none may be (4.3).
    pub fn decode_behind(address: Address, mut input: Bytes, modulo: Modulo) -> Result<Self, DecodeError> {
        let control = Control::decode(&mut input, modulo)?;
        let pid = match control.has_pid() {
            true if input.is_empty() => return Err(DecodeError::Incomplete),
            true => input.get_u8(),
            false => 0,
        };
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

    /// Reads a whole frame of a link of this modulo.
    ///
    /// # Errors
    /// As the address field's and [`Frame::decode_behind`]'s.
    pub fn decode(input: &mut Bytes, modulo: Modulo) -> Result<Self, DecodeError> {
        let address = Address::decode(input)?;
        Frame::decode_behind(address, core::mem::take(input), modulo)
    }

    /// Appends the frame as it is on a link of this modulo.
    pub fn encode(&self, output: &mut BytesMut, modulo: Modulo) {
        self.address.encode(output);
        self.control.encode(output, modulo);
        if self.control.has_pid() {
            output.put_u8(self.pid);
        }
        output.put_slice(&self.information);
    }

    /// The frame's bytes, as it is on a link of this modulo.
    pub fn to_bytes(&self, modulo: Modulo) -> Bytes {
        let mut output = BytesMut::with_capacity(self.header_bytes(modulo) + self.information.len());
        self.encode(&mut output, modulo);
        output.freeze()
    }
}
