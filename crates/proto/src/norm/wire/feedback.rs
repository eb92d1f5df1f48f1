//! Messages of receivers (RFC 5740 4.3), and the repair requests in them.

use super::header::{EXT_CC, FecScheme, NodeId, PayloadId, Timestamp, extensions};
use crate::codec::{DecodeError, take, take_byte};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Feedback for congestion control (RFC 5740 4.2.3.5, extension `EXT_CC`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CcFeedback {
    /// Number of the last probe that was received.
    pub cc_sequence: u16,
    /// Flags, those of [`CcFlags`].
    pub flags: u8,
    /// Round-trip time of the receiver; valid with the flag for it.
    pub rtt: u8,
    /// Share of lost packets.
    pub loss: u16,
    /// Rate that the receiver can have.
    pub rate: u16,
    /// Reserved field; other implementations have further bits of the loss in it.
    pub reserved: u16,
}

/// Flags of [`CcFeedback`] and of the list in a probe.
#[derive(Debug)]
pub struct CcFlags;

impl CcFlags {
    /// Current limiting receiver.
    pub const CLR: u8 = 0x01;
    /// Potential limiting receiver.
    pub const PLR: u8 = 0x02;
    /// The round-trip time is measured.
    pub const RTT: u8 = 0x04;
    /// Slow start: no loss so far.
    pub const START: u8 = 0x08;
    /// The receiver is about to leave.
    pub const LEAVE: u8 = 0x10;
    /// The rate is that of reception, twice, below the fair one; NRL's implementation has this flag.
    pub const LIMIT: u8 = 0x20;
}

/// Length of the extension in words.
const CC_WORDS: u8 = 3;

impl CcFeedback {
    pub(super) fn decode_extension(header: Bytes) -> Result<Option<Self>, DecodeError> {
        let mut feedback = None;
        extensions(header, |kind, mut contents| {
            if kind == EXT_CC {
                let mut fields = take(&mut contents, 4 * usize::from(CC_WORDS) - 2)?;
                feedback = Some(CcFeedback {
                    cc_sequence: fields.get_u16(),
                    flags: fields.get_u8(),
                    rtt: fields.get_u8(),
                    loss: fields.get_u16(),
                    rate: fields.get_u16(),
                    reserved: fields.get_u16(),
                });
            }
            Ok(())
        })?;
        Ok(feedback)
    }

    pub(super) fn encode(&self, out: &mut BytesMut) {
        out.put_u8(EXT_CC);
        out.put_u8(CC_WORDS);
        out.put_u16(self.cc_sequence);
        out.put_u8(self.flags);
        out.put_u8(self.rtt);
        out.put_u16(self.loss);
        out.put_u16(self.rate);
        out.put_u16(self.reserved);
    }
}

/// NORM_NACK: repair requests of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nack {
    /// Sender that the requests are for.
    pub sender: NodeId,
    /// Run of the sender.
    pub instance: u16,
    /// Time of the last probe, plus the time since it arrived; zero without a probe.
    pub grtt_response: Timestamp,
    /// Feedback for congestion control.
    pub cc: Option<CcFeedback>,
    /// Requests.
    pub requests: Vec<RepairRequest>,
}

impl Nack {
    pub(super) fn decode(mut header: Bytes, payload: Bytes) -> Result<Self, DecodeError> {
        let mut fields = take(&mut header, 8)?;
        let (sender, instance) = (NodeId(fields.get_u32()), fields.get_u16());
        let grtt_response = Timestamp::decode(&mut header)?;
        let cc = CcFeedback::decode_extension(header)?;
        Ok(Nack { sender, instance, grtt_response, cc, requests: decode_requests(payload)? })
    }

    pub(super) fn encode_header(&self, out: &mut BytesMut) {
        out.put_u32(self.sender.0);
        out.put_u16(self.instance);
        out.put_u16(0);
        self.grtt_response.encode(out);
        if let Some(cc) = &self.cc {
            cc.encode(out);
        }
    }

    pub(super) fn encode_payload(&self, out: &mut BytesMut) {
        encode_requests(&self.requests, out);
    }
}

/// NORM_ACK: acknowledgement of a receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    /// Sender that the acknowledgement is for.
    pub sender: NodeId,
    /// Run of the sender.
    pub instance: u16,
    /// Number of the request, zero for the acknowledgements that the protocol defines.
    pub id: u8,
    /// Time of the last probe, plus the time since it arrived; zero without a probe.
    pub grtt_response: Timestamp,
    /// Feedback for congestion control.
    pub cc: Option<CcFeedback>,
    /// Type, with the contents that it has.
    pub contents: AckContents,
}

/// Contents of a [`Ack`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AckContents {
    /// Answer to a probe.
    Cc,
    /// Everything up to this symbol has arrived, which is the one of the request.
    Flush {
        /// FEC scheme of the object.
        scheme: FecScheme,
        /// Number of the object.
        object: u16,
        /// Symbol.
        id: PayloadId,
    },
    /// Acknowledgement that the application defines, or one that is reserved.
    Other {
        /// Type.
        ack_type: u8,
        /// Contents.
        contents: Bytes,
    },
}

const ACK_CC: u8 = 1;
const ACK_FLUSH: u8 = 2;

impl Ack {
    pub(super) fn decode(mut header: Bytes, mut payload: Bytes) -> Result<Self, DecodeError> {
        let mut fields = take(&mut header, 8)?;
        let (sender, instance) = (NodeId(fields.get_u32()), fields.get_u16());
        let (ack_type, id) = (fields.get_u8(), fields.get_u8());
        let grtt_response = Timestamp::decode(&mut header)?;
        let cc = CcFeedback::decode_extension(header)?;
        let contents = match ack_type {
            ACK_CC => AckContents::Cc,
            ACK_FLUSH => {
                let item = RepairItem::decode(&mut payload)?;
                AckContents::Flush { scheme: item.scheme, object: item.object, id: item.id }
            }
            _ => AckContents::Other { ack_type, contents: payload },
        };
        Ok(Ack { sender, instance, id, grtt_response, cc, contents })
    }

    pub(super) fn encode_header(&self, out: &mut BytesMut) {
        let ack_type = match self.contents {
            AckContents::Cc => ACK_CC,
            AckContents::Flush { .. } => ACK_FLUSH,
            AckContents::Other { ack_type, .. } => ack_type,
        };
        out.put_u32(self.sender.0);
        out.put_u16(self.instance);
        out.put_u8(ack_type);
        out.put_u8(self.id);
        self.grtt_response.encode(out);
        if let Some(cc) = &self.cc {
            cc.encode(out);
        }
    }

    pub(super) fn encode_payload(&self, out: &mut BytesMut) {
        match &self.contents {
            AckContents::Cc => {}
            AckContents::Flush { scheme, object, id } => {
                RepairItem { scheme: *scheme, object: *object, id: *id }.encode(out);
            }
            AckContents::Other { contents, .. } => out.extend_from_slice(contents),
        }
    }
}

/// One or several objects, blocks or symbols that a receiver lacks (RFC 5740 4.3.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairRequest {
    /// Meaning of the items.
    pub form: RepairForm,
    /// Level of the items.
    pub levels: Levels,
    /// Items in ascending order; pairs of the first and the last one of a range with [`RepairForm::Ranges`].
    pub items: Vec<RepairItem>,
}

/// Meaning of the items of a [`RepairRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairForm {
    /// Each stands for itself.
    Items,
    /// Each two stand for all from the first to the last.
    Ranges,
    /// Each stands for a number of symbols of a block, in place of the symbol.
    Erasures,
    /// Form that this implementation does not know.
    Unknown(u8),
}

crate::codec::codes!(RepairForm: u8, from_code, code, 1 Items, 2 Ranges, 3 Erasures, Unknown);

/// Levels of the items of a [`RepairRequest`]: bits that may be combined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Levels(pub u8);

impl Levels {
    /// Single symbols.
    pub const SEGMENT: Levels = Levels(0x01);
    /// Whole blocks.
    pub const BLOCK: Levels = Levels(0x02);
    /// The NORM_INFO message of an object.
    pub const INFO: Levels = Levels(0x04);
    /// Whole objects.
    pub const OBJECT: Levels = Levels(0x08);

    /// Returns true if all of these levels are set.
    pub const fn has(self, levels: Levels) -> bool {
        self.0 & levels.0 == levels.0
    }
}

/// Item of a [`RepairRequest`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairItem {
    /// FEC scheme of the object.
    pub scheme: FecScheme,
    /// Number of the object.
    pub object: u16,
    /// Block and symbol.
    pub id: PayloadId,
}

impl RepairItem {
    fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        let scheme = FecScheme::from_code(take_byte(input)?)?;
        let mut fields = take(input, 3)?;
        fields.advance(1);
        let object = fields.get_u16();
        Ok(RepairItem { scheme, object, id: PayloadId::decode(scheme, input)? })
    }

    fn encode(&self, out: &mut BytesMut) {
        out.put_u8(self.scheme.code());
        out.put_u8(0);
        out.put_u16(self.object);
        self.id.encode(self.scheme, out);
    }
}

impl RepairRequest {
    /// Length of the fields before the items, octets.
    pub const HEADER_BYTES: usize = 4;

    /// Length of an item, octets.
    pub const fn item_bytes(scheme: FecScheme) -> usize {
        4 + scheme.payload_id_bytes()
    }
}

pub(super) fn decode_requests(mut payload: Bytes) -> Result<Vec<RepairRequest>, DecodeError> {
    let mut requests = Vec::new();
    while !payload.is_empty() {
        let mut fields = take(&mut payload, RepairRequest::HEADER_BYTES)?;
        let (form, levels) = (RepairForm::from_code(fields.get_u8()), Levels(fields.get_u8()));
        let mut contents = take(&mut payload, usize::from(fields.get_u16()))?;
        let mut items = Vec::new();
        while !contents.is_empty() {
            items.push(RepairItem::decode(&mut contents)?);
        }
        if form == RepairForm::Ranges && items.len() % 2 == 1 {
            return Err(DecodeError::invalid("number of items of a range", "RFC 5740 4.3.1"));
        }
        requests.push(RepairRequest { form, levels, items });
    }
    Ok(requests)
}

pub(super) fn encode_requests(requests: &[RepairRequest], out: &mut BytesMut) {
    for RepairRequest { form, levels, items } in requests {
        out.put_u8(form.code());
        out.put_u8(levels.0);
        let length: usize = items.iter().map(|item| RepairRequest::item_bytes(item.scheme)).sum();
        out.put_u16(u16::try_from(length).expect("a NACK is not longer than a segment"));
        items.iter().for_each(|item| item.encode(out));
    }
}
