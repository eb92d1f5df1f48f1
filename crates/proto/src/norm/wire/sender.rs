//! Messages of senders (RFC 5740 4.2).

use super::feedback::{CcFeedback, RepairRequest, decode_requests, encode_requests};
use super::header::{EXT_FTI, EXT_RATE, FecScheme, Fti, NodeId, PayloadId, Timestamp, extensions};
use crate::codec::{DecodeError, take, take_byte};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Fields that all messages of a sender have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderFields {
    /// Number of this run of the sender: another one means that it has restarted.
    pub instance: u16,
    /// Greatest round-trip time of the group, as [`time_of`](super::super::quantities::time_of) has it.
    pub grtt: u8,
    /// Factor of the round-trip time for the maximum backoff, four bits.
    pub backoff: u8,
    /// Number of receivers, as [`group_size_of`](super::super::quantities::group_size_of) has it, four bits.
    pub group_size: u8,
}

/// Length of the fields of a sender, octets.
const SENDER_BYTES: usize = 4;

impl SenderFields {
    fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let mut fields = take(input, SENDER_BYTES)?;
        let (instance, grtt, both) = (fields.get_u16(), fields.get_u8(), fields.get_u8());
        Ok(SenderFields { instance, grtt, backoff: both >> 4, group_size: both & 0x0f })
    }

    fn encode(&self, out: &mut BytesMut) {
        out.put_u16(self.instance);
        out.put_u8(self.grtt);
        out.put_u8(self.backoff << 4 | self.group_size & 0x0f);
    }
}

/// Flags of an object and of a message about it (RFC 5740 4.2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The message is a repair transmission.
    pub const REPAIR: u8 = 0x01;
    /// The repair transmission is an explicit one: its symbol was sent before.
    pub const EXPLICIT: u8 = 0x02;
    /// The object has a NORM_INFO message.
    pub const INFO: u8 = 0x04;
    /// The object is not repaired.
    pub const UNRELIABLE: u8 = 0x08;
    /// The object is a file.
    pub const FILE: u8 = 0x10;
    /// The object is a stream.
    pub const STREAM: u8 = 0x20;

    /// Returns true if all of these flags are set.
    pub const fn has(self, flags: u8) -> bool {
        self.0 & flags == flags
    }
}

/// NORM_INFO: description of an object by its application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Fields of the sender.
    pub sender: SenderFields,
    /// Flags.
    pub flags: Flags,
    /// FEC scheme of the object.
    pub scheme: FecScheme,
    /// Number of the object.
    pub object: u16,
    /// Sizes of the object and its blocks.
    pub fti: Option<Fti>,
    /// Description.
    pub payload: Bytes,
}

impl Info {
    pub(super) fn decode(mut header: Bytes, payload: Bytes) -> Result<Self, DecodeError> {
        let sender = SenderFields::decode(&mut header)?;
        let flags = Flags(take_byte(&mut header)?);
        let scheme = FecScheme::from_code(take_byte(&mut header)?)?;
        let object = take(&mut header, 2)?.get_u16();
        let fti = decode_fti(scheme, header)?;
        Ok(Info { sender, flags, scheme, object, fti, payload })
    }

    pub(super) fn encode_header(&self, out: &mut BytesMut) {
        self.sender.encode(out);
        out.put_u8(self.flags.0);
        out.put_u8(self.scheme.code());
        out.put_u16(self.object);
        if let Some(fti) = &self.fti {
            fti.encode(self.scheme, out);
        }
    }
}

/// NORM_DATA: a symbol of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Fields of the sender.
    pub sender: SenderFields,
    /// Flags.
    pub flags: Flags,
    /// FEC scheme of the object.
    pub scheme: FecScheme,
    /// Number of the object.
    pub object: u16,
    /// Symbol.
    pub id: PayloadId,
    /// Sizes of the object and its blocks.
    pub fti: Option<Fti>,
    /// Contents of the symbol; for a stream with the fields of the stream.
    pub payload: Bytes,
}

/// Length of the header of NORM_DATA, octets.
pub const fn data_header_bytes(scheme: FecScheme, has_fti: bool) -> usize {
    16 + scheme.payload_id_bytes() + if has_fti { scheme.fti_bytes() } else { 0 }
}

impl Data {
    pub(super) fn decode(mut header: Bytes, payload: Bytes) -> Result<Self, DecodeError> {
        let sender = SenderFields::decode(&mut header)?;
        let flags = Flags(take_byte(&mut header)?);
        let scheme = FecScheme::from_code(take_byte(&mut header)?)?;
        let object = take(&mut header, 2)?.get_u16();
        let id = PayloadId::decode(scheme, &mut header)?;
        let fti = decode_fti(scheme, header)?;
        Ok(Data { sender, flags, scheme, object, id, fti, payload })
    }

    pub(super) fn encode_header(&self, out: &mut BytesMut) {
        self.sender.encode(out);
        out.put_u8(self.flags.0);
        out.put_u8(self.scheme.code());
        out.put_u16(self.object);
        self.id.encode(self.scheme, out);
        if let Some(fti) = &self.fti {
            fti.encode(self.scheme, out);
        }
    }
}

fn decode_fti(scheme: FecScheme, header: Bytes) -> Result<Option<Fti>, DecodeError> {
    let mut fti = None;
    extensions(header, |kind, contents| {
        if kind == EXT_FTI {
            fti = Some(Fti::decode(scheme, contents)?);
        }
        Ok(())
    })?;
    Ok(fti)
}

/// NORM_CMD: a command of a sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandMessage {
    /// Fields of the sender.
    pub sender: SenderFields,
    /// Command.
    pub command: Command,
}

/// Command of a sender (RFC 5740 4.2.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// The sender has nothing else to send up to this symbol.
    Flush {
        /// FEC scheme of the object.
        scheme: FecScheme,
        /// Number of the object.
        object: u16,
        /// Symbol, inclusive.
        id: PayloadId,
        /// Receivers that must acknowledge that they have everything up to the symbol.
        acking_nodes: Vec<NodeId>,
    },
    /// The sender ends, and repairs nothing any more.
    Eot,
    /// The sender repairs nothing before this symbol.
    Squelch {
        /// FEC scheme of the object.
        scheme: FecScheme,
        /// Number of the earliest object that can be repaired.
        object: u16,
        /// Earliest symbol of that object.
        id: PayloadId,
        /// Later objects that cannot be repaired.
        invalid_objects: Vec<u16>,
    },
    /// Probe for round-trip times and congestion control.
    Cc {
        /// Number of the probe.
        cc_sequence: u16,
        /// Time of departure.
        send_time: Timestamp,
        /// Rate of the sender, as [`rate_of`](super::super::quantities::rate_of) has it; receivers answer only if it is present.
        rate: Option<u16>,
        /// Receivers of which the sender tells the state.
        nodes: Vec<CcNode>,
    },
    /// Repair requests that arrived by unicast, for all receivers.
    RepairAdv {
        /// Later requests were omitted for want of space.
        is_limited: bool,
        /// Most limiting feedback for congestion control.
        cc: Option<CcFeedback>,
        /// Requests.
        requests: Vec<RepairRequest>,
    },
    /// Request for an acknowledgement that the application defines.
    AckReq {
        /// Kind of the acknowledgement, at least 16.
        ack_type: u8,
        /// Number of the request.
        ack_id: u8,
        /// Receivers that must acknowledge.
        acking_nodes: Vec<NodeId>,
    },
    /// Contents that the application defines.
    Application(Bytes),
    /// Command that this implementation does not know.
    Unknown(u8),
}

/// State of a receiver in a [`Command::Cc`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CcNode {
    /// Receiver.
    pub node: NodeId,
    /// Flags, those of [`CcFlags`](super::CcFlags).
    pub flags: u8,
    /// Round-trip time of the receiver; valid with the flag for it.
    pub rtt: u8,
    /// Rate of the receiver.
    pub rate: u16,
}

const FLUSH: u8 = 1;
const EOT: u8 = 2;
const SQUELCH: u8 = 3;
const CC: u8 = 4;
const REPAIR_ADV: u8 = 5;
const ACK_REQ: u8 = 6;
const APPLICATION: u8 = 7;
/// Flag of REPAIR_ADV: requests were omitted.
const LIMITED: u8 = 0x01;

impl CommandMessage {
    pub(super) fn decode(mut header: Bytes, payload: Bytes) -> Result<Self, DecodeError> {
        let sender = SenderFields::decode(&mut header)?;
        let mut fields = take(&mut header, 4)?;
        let (kind, first, second) = (fields.get_u8(), fields.get_u8(), fields.get_u16());
        let command = match kind {
            FLUSH | SQUELCH => {
                let (scheme, object) = (FecScheme::from_code(first)?, second);
                let id = PayloadId::decode(scheme, &mut header)?;
                extensions(header, |_, _| Ok(()))?;
                match kind {
                    FLUSH => Command::Flush { scheme, object, id, acking_nodes: decode_nodes(payload) },
                    _ => Command::Squelch { scheme, object, id, invalid_objects: decode_objects(payload) },
                }
            }
            EOT => Command::Eot,
            CC => Self::decode_cc(second, header, payload)?,
            REPAIR_ADV => {
                let cc = CcFeedback::decode_extension(header)?;
                let is_limited = first & LIMITED != 0;
                Command::RepairAdv { is_limited, cc, requests: decode_requests(payload)? }
            }
            ACK_REQ => {
                let [ack_type, ack_id] = second.to_be_bytes();
                Command::AckReq { ack_type, ack_id, acking_nodes: decode_nodes(payload) }
            }
            APPLICATION => Command::Application(payload),
            other => Command::Unknown(other),
        };
        Ok(CommandMessage { sender, command })
    }

    fn decode_cc(cc_sequence: u16, mut header: Bytes, mut payload: Bytes) -> Result<Command, DecodeError> {
        let send_time = Timestamp::decode(&mut header)?;
        let mut rate = None;
        extensions(header, |kind, mut contents| {
            if kind == EXT_RATE {
                contents.advance(1);
                rate = Some(contents.get_u16());
            }
            Ok(())
        })?;
        let mut nodes = Vec::new();
        while payload.len() >= CC_NODE_BYTES {
            nodes.push(CcNode {
                node: NodeId(payload.get_u32()),
                flags: payload.get_u8(),
                rtt: payload.get_u8(),
                rate: payload.get_u16(),
            });
        }
        Ok(Command::Cc { cc_sequence, send_time, rate, nodes })
    }

    pub(super) fn encode_header(&self, out: &mut BytesMut) {
        self.sender.encode(out);
        let mut fixed = |kind: u8, first: u8, second: u16| {
            out.put_u8(kind);
            out.put_u8(first);
            out.put_u16(second);
        };
        match &self.command {
            Command::Flush { scheme, object, id, .. } => {
                fixed(FLUSH, scheme.code(), *object);
                id.encode(*scheme, out);
            }
            Command::Squelch { scheme, object, id, .. } => {
                fixed(SQUELCH, scheme.code(), *object);
                id.encode(*scheme, out);
            }
            Command::Eot => fixed(EOT, 0, 0),
            Command::Cc { cc_sequence, send_time, rate, .. } => {
                fixed(CC, 0, *cc_sequence);
                send_time.encode(out);
                if let Some(rate) = rate {
                    out.put_u8(EXT_RATE);
                    out.put_u8(0);
                    out.put_u16(*rate);
                }
            }
            Command::RepairAdv { is_limited, cc, .. } => {
                fixed(REPAIR_ADV, if *is_limited { LIMITED } else { 0 }, 0);
                if let Some(cc) = cc {
                    cc.encode(out);
                }
            }
            Command::AckReq { ack_type, ack_id, .. } => {
                fixed(ACK_REQ, 0, u16::from_be_bytes([*ack_type, *ack_id]));
            }
            Command::Application(_) => fixed(APPLICATION, 0, 0),
            Command::Unknown(kind) => fixed(*kind, 0, 0),
        }
    }

    pub(super) fn encode_payload(&self, out: &mut BytesMut) {
        match &self.command {
            Command::Flush { acking_nodes, .. } | Command::AckReq { acking_nodes, .. } => {
                acking_nodes.iter().for_each(|node| out.put_u32(node.0));
            }
            Command::Squelch { invalid_objects, .. } => {
                invalid_objects.iter().for_each(|object| out.put_u16(*object));
            }
            Command::Cc { nodes, .. } => {
                for CcNode { node, flags, rtt, rate } in nodes {
                    out.put_u32(node.0);
                    out.put_u8(*flags);
                    out.put_u8(*rtt);
                    out.put_u16(*rate);
                }
            }
            Command::RepairAdv { requests, .. } => encode_requests(requests, out),
            Command::Application(contents) => out.extend_from_slice(contents),
            Command::Eot | Command::Unknown(_) => {}
        }
    }
}

/// Length of the state of a receiver in a probe, octets.
const CC_NODE_BYTES: usize = 8;

fn decode_nodes(mut payload: Bytes) -> Vec<NodeId> {
    let nodes = core::iter::from_fn(|| (payload.len() >= 4).then(|| NodeId(payload.get_u32())));
    nodes.collect()
}

fn decode_objects(mut payload: Bytes) -> Vec<u16> {
    core::iter::from_fn(|| (payload.len() >= 2).then(|| payload.get_u16())).collect()
}
