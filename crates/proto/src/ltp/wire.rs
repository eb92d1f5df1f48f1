//! Encoding of segments (RFC 5326 3).
//!
//! A segment has no length of its own: it ends where its last field or extension ends, so several can follow each other in
//! one datagram. The four undefined types have an unknown content, and end the datagram.

use crate::codec::{DecodeError, codes, sdnv};
use bytes::{Buf, BufMut, Bytes, BytesMut};

/// Maximum number of extensions in the header, and in the trailer (RFC 5326 3.1.4).
pub const EXTENSIONS_MAX: usize = 15;
/// Contents of a keep-alive, which is no segment (RFC 7122 3.4).
pub const KEEPALIVE: [u8; 4] = [0; 4];

const TYPE: &str = "RFC 5326 3.1.2";
const DATA: &str = "RFC 5326 3.2.1";
const REPORT: &str = "RFC 5326 3.2.2";

/// Session ID: unique among all sessions between two engines (RFC 5326 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionId {
    /// Engine ID of the block's sender.
    pub originator: u64,
    /// The sender's number for the session.
    pub number: u64,
}

/// Extension of a header or trailer (RFC 5326 3.1.4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Tag: 0 authentication, 1 cookie (RFC 5327), 0xc0 and above private use.
    pub tag: u8,
    /// Value.
    pub value: Bytes,
}

/// Place of a data segment in its block, by the flags of its type (RFC 5326 3.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataKind {
    /// 0: red data.
    Red,
    /// 1: red data, checkpoint.
    Checkpoint,
    /// 2: red data, checkpoint, end of the red part.
    EndOfRed,
    /// 3: red data, checkpoint, end of the red part and of the block.
    EndOfRedAndBlock,
    /// 4: green data.
    Green,
    /// 7: green data, end of the block.
    EndOfBlock,
}

impl DataKind {
    /// Returns true for a segment of the red part, which is retransmitted.
    pub const fn is_red(self) -> bool {
        !matches!(self, DataKind::Green | DataKind::EndOfBlock)
    }

    /// Returns true for a segment that requests a report.
    pub const fn is_checkpoint(self) -> bool {
        matches!(self, DataKind::Checkpoint | DataKind::EndOfRed | DataKind::EndOfRedAndBlock)
    }

    /// Returns true if the red part ends with this segment.
    pub const fn ends_red(self) -> bool {
        matches!(self, DataKind::EndOfRed | DataKind::EndOfRedAndBlock)
    }

    /// Returns true if the block ends with this segment.
    pub const fn ends_block(self) -> bool {
        matches!(self, DataKind::EndOfBlock | DataKind::EndOfRedAndBlock)
    }

    const fn code(self) -> u8 {
        match self {
            DataKind::Red => 0,
            DataKind::Checkpoint => 1,
            DataKind::EndOfRed => 2,
            DataKind::EndOfRedAndBlock => 3,
            DataKind::Green => 4,
            DataKind::EndOfBlock => 7,
        }
    }
}

/// Serial numbers of a checkpoint (RFC 5326 3.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Serials {
    /// Checkpoint serial number, not zero.
    pub checkpoint: u64,
    /// Serial number of the report that caused the checkpoint; zero without one.
    pub report: u64,
}

/// Content of a data segment (RFC 5326 3.2.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataSegment {
    /// Place in the block.
    pub kind: DataKind,
    /// Client service ID.
    pub client: u64,
    /// Offset in the block, bytes.
    pub offset: u64,
    /// Serial numbers; exactly those of checkpoints are present.
    pub serials: Option<Serials>,
    /// Client service data.
    pub data: Bytes,
}

impl DataSegment {
    /// Returns the end of the data in the block.
    pub fn end(&self) -> u64 {
        self.offset + self.data.len() as u64
    }

    /// Returns the segment without its data.
    pub fn head(&self) -> DataHead {
        let DataSegment { kind, client, offset, serials, .. } = *self;
        DataHead { kind, client, offset, length: self.data.len() as u64, serials }
    }
}

/// Data segment without its data, for a sender that copies them from several pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHead {
    /// Place in the block.
    pub kind: DataKind,
    /// Client service ID.
    pub client: u64,
    /// Offset in the block, bytes.
    pub offset: u64,
    /// Length of the data, bytes.
    pub length: u64,
    /// Serial numbers; exactly those of checkpoints are present.
    pub serials: Option<Serials>,
}

impl DataHead {
    /// Appends everything before the data of a segment without extensions.
    pub fn encode(&self, session: SessionId, out: &mut BytesMut) {
        out.put_u8(self.kind.code());
        sdnv::encode(session.originator, out);
        sdnv::encode(session.number, out);
        out.put_u8(0);
        self.encode_fields(out);
    }

    fn encode_fields(&self, out: &mut BytesMut) {
        sdnv::encode(self.client, out);
        sdnv::encode(self.offset, out);
        sdnv::encode(self.length, out);
        if let Some(serials) = self.serials {
            sdnv::encode(serials.checkpoint, out);
            sdnv::encode(serials.report, out);
        }
    }
}

/// Content of a report segment (RFC 5326 3.2.2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Report serial number, not zero.
    pub serial: u64,
    /// Serial number of the checkpoint that caused the report; zero for an asynchronous report.
    pub checkpoint: u64,
    /// End of the block's part that the claims describe.
    pub upper: u64,
    /// Beginning of that part.
    pub lower: u64,
    /// Received ranges as beginning and end in the block, in order. On the wire they are offsets from `lower` and lengths.
    pub claims: Vec<(u64, u64)>,
}

/// Reason of a cancellation (RFC 5326 3.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CancelReason {
    /// 0: the client service cancelled the session.
    ClientCancelled,
    /// 1: the client service does not exist.
    Unreachable,
    /// 2: a segment was retransmitted too often.
    RetransmissionLimit,
    /// 3: red data after green data.
    Miscolored,
    /// 4: a system error.
    SystemCancelled,
    /// 5: too many retransmission cycles.
    CycleLimit,
    /// Any other code.
    Other(u8),
}

codes!(
    CancelReason: u8, from_code, code,
    0 ClientCancelled, 1 Unreachable, 2 RetransmissionLimit, 3 Miscolored, 4 SystemCancelled, 5 CycleLimit, Other
);

/// Content of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// 0 to 4, 7: data.
    Data(DataSegment),
    /// 8: report.
    Report(Report),
    /// 9: acknowledgement of the report with this serial number.
    ReportAck(u64),
    /// 12: cancellation by the block's sender.
    CancelBySender(CancelReason),
    /// 13: acknowledgement of a cancellation by the sender, to the sender.
    CancelAckToSender,
    /// 14: cancellation by the block's receiver.
    CancelByReceiver(CancelReason),
    /// 15: acknowledgement of a cancellation by the receiver, to the receiver.
    CancelAckToReceiver,
}

impl Content {
    const fn code(&self) -> u8 {
        match self {
            Content::Data(data) => data.kind.code(),
            Content::Report(_) => 8,
            Content::ReportAck(_) => 9,
            Content::CancelBySender(_) => 12,
            Content::CancelAckToSender => 13,
            Content::CancelByReceiver(_) => 14,
            Content::CancelAckToReceiver => 15,
        }
    }
}

/// Segment (RFC 5326 3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Session that it belongs to.
    pub session: SessionId,
    /// Extensions in the header, at most 15.
    pub header: Vec<Extension>,
    /// Content.
    pub content: Content,
    /// Extensions in the trailer, at most 15.
    pub trailer: Vec<Extension>,
}

impl Segment {
    /// Creates a segment without extensions.
    pub const fn new(session: SessionId, content: Content) -> Self {
        Segment { session, header: Vec::new(), content, trailer: Vec::new() }
    }

    /// Decodes a segment. Reports whose claims touch each other are accepted, although RFC 5326 3.2.2 requires them to be
    /// merged: their meaning is the same.
    ///
    /// # Errors
    ///
    /// Fails if a field is invalid, if the segment is incomplete, and for undefined types.
    pub fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        Segment::decode_with_places(input).map(|(segment, _)| segment)
    }

    /// Decodes a segment as [`Segment::decode`] does. Returns with it, for each extension of its trailer, the number of bytes
    /// of the input after its value.
    pub(super) fn decode_with_places(input: &mut Bytes) -> Result<(Self, Vec<usize>), DecodeError> {
        let control = byte(input)?;
        if control >> 4 != 0 {
            return Err(DecodeError::invalid("the version", "RFC 5326 3.1"));
        }
        let session = SessionId { originator: sdnv::decode(input)?, number: sdnv::decode(input)? };
        let counts = byte(input)?;
        let (header, _) = extensions(input, counts >> 4)?;
        let content = match control & 0x0f {
            0 => data(input, DataKind::Red)?,
            1 => data(input, DataKind::Checkpoint)?,
            2 => data(input, DataKind::EndOfRed)?,
            3 => data(input, DataKind::EndOfRedAndBlock)?,
            4 => data(input, DataKind::Green)?,
            7 => data(input, DataKind::EndOfBlock)?,
            8 => Content::Report(report(input)?),
            9 => Content::ReportAck(nonzero(input, "a report serial number", REPORT)?),
            12 => Content::CancelBySender(CancelReason::from_code(byte(input)?)),
            13 => Content::CancelAckToSender,
            14 => Content::CancelByReceiver(CancelReason::from_code(byte(input)?)),
            15 => Content::CancelAckToReceiver,
            _ => return Err(DecodeError::Unsupported { what: "an undefined segment type", clause: TYPE }),
        };
        let (trailer, places) = extensions(input, counts & 0x0f)?;
        Ok((Segment { session, header, content, trailer }, places))
    }

    /// Appends the segment.
    ///
    /// # Panics
    ///
    /// Panics if it has more than 15 extensions in the header or in the trailer.
    pub fn encode(&self, out: &mut BytesMut) {
        assert!(self.header.len() <= EXTENSIONS_MAX && self.trailer.len() <= EXTENSIONS_MAX);
        out.put_u8(self.content.code());
        sdnv::encode(self.session.originator, out);
        sdnv::encode(self.session.number, out);
        out.put_u8((self.header.len() << 4 | self.trailer.len()) as u8);
        put_extensions(&self.header, out);
        match &self.content {
            Content::Data(data) => {
                data.head().encode_fields(out);
                out.put_slice(&data.data);
            }
            Content::Report(report) => put_report(report, out),
            Content::ReportAck(serial) => sdnv::encode(*serial, out),
            Content::CancelBySender(reason) | Content::CancelByReceiver(reason) => out.put_u8(reason.code()),
            Content::CancelAckToSender | Content::CancelAckToReceiver => {}
        }
        put_extensions(&self.trailer, out);
    }

    /// Returns the encoded segment.
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::new();
        self.encode(&mut out);
        out.freeze()
    }
}

/// Returns the length of a data segment without extensions in addition to its data, bytes.
pub fn data_header_bytes(
    session: SessionId,
    client: u64,
    offset: u64,
    length: u64,
    serials: Option<Serials>,
) -> usize {
    let fixed = 2 + sdnv::length(session.originator) + sdnv::length(session.number);
    let serials = serials.map_or(0, |with| sdnv::length(with.checkpoint) + sdnv::length(with.report));
    fixed + sdnv::length(client) + sdnv::length(offset) + sdnv::length(length) + serials
}

/// Returns the length of a report segment without extensions and claims, bytes. Its claim count has up to two bytes.
pub fn report_header_bytes(session: SessionId, serial: u64, checkpoint: u64, upper: u64) -> usize {
    let fixed = 4 + sdnv::length(session.originator) + sdnv::length(session.number);
    fixed + sdnv::length(serial) + sdnv::length(checkpoint) + 2 * sdnv::length(upper)
}

fn byte(input: &mut Bytes) -> Result<u8, DecodeError> {
    if input.is_empty() { Err(DecodeError::Incomplete) } else { Ok(input.get_u8()) }
}

fn nonzero(input: &mut Bytes, what: &'static str, clause: &'static str) -> Result<u64, DecodeError> {
    match sdnv::decode(input)? {
        0 => Err(DecodeError::invalid(what, clause)),
        number => Ok(number),
    }
}

/// Consumes a field with its length before it.
fn counted(input: &mut Bytes) -> Result<Bytes, DecodeError> {
    let length = sdnv::decode(input)?;
    let fits = usize::try_from(length).ok().filter(|length| *length <= input.len());
    fits.map(|length| input.split_to(length)).ok_or(DecodeError::Incomplete)
}

/// Consumes extensions, and returns with them the number of bytes after each.
fn extensions(input: &mut Bytes, count: u8) -> Result<(Vec<Extension>, Vec<usize>), DecodeError> {
    let extension = |_| Ok((Extension { tag: byte(input)?, value: counted(input)? }, input.len()));
    (0..count).map(extension).collect()
}

fn put_extensions(extensions: &[Extension], out: &mut BytesMut) {
    for Extension { tag, value } in extensions {
        out.put_u8(*tag);
        sdnv::encode(value.len() as u64, out);
        out.put_slice(value);
    }
}

/// Decodes a data segment. One without data is accepted only as a checkpoint, where it has a meaning.
fn data(input: &mut Bytes, kind: DataKind) -> Result<Content, DecodeError> {
    let client = sdnv::decode(input)?;
    let offset = sdnv::decode(input)?;
    let length = sdnv::decode(input)?;
    if offset.checked_add(length).is_none() {
        return Err(DecodeError::invalid("the end of a data segment", DATA));
    }
    let serials = match kind.is_checkpoint() {
        true => Some(Serials {
            checkpoint: nonzero(input, "a checkpoint serial number", DATA)?,
            report: sdnv::decode(input)?,
        }),
        false => None,
    };
    let fits = usize::try_from(length).ok().filter(|length| *length <= input.len());
    let data = input.split_to(fits.ok_or(DecodeError::Incomplete)?);
    Ok(Content::Data(DataSegment { kind, client, offset, serials, data }))
}

fn report(input: &mut Bytes) -> Result<Report, DecodeError> {
    let serial = nonzero(input, "a report serial number", REPORT)?;
    let checkpoint = sdnv::decode(input)?;
    let (upper, lower) = (sdnv::decode(input)?, sdnv::decode(input)?);
    if lower > upper {
        return Err(DecodeError::invalid("the bounds of a report", REPORT));
    }
    let count = sdnv::decode(input)?;
    // Each claim has at least two bytes.
    if count > input.len() as u64 / 2 {
        return Err(DecodeError::Incomplete);
    }
    let mut claims = Vec::with_capacity(count as usize);
    let mut previous = lower;
    for _ in 0..count {
        let (offset, length) = (sdnv::decode(input)?, sdnv::decode(input)?);
        let start = lower.checked_add(offset).filter(|start| *start >= previous && length > 0);
        let end = start.and_then(|start| start.checked_add(length)).filter(|end| *end <= upper);
        let (Some(start), Some(end)) = (start, end) else {
            return Err(DecodeError::invalid("a reception claim", REPORT));
        };
        claims.push((start, end));
        previous = end;
    }
    Ok(Report { serial, checkpoint, upper, lower, claims })
}

fn put_report(report: &Report, out: &mut BytesMut) {
    let Report { serial, checkpoint, upper, lower, claims } = report;
    for number in [*serial, *checkpoint, *upper, *lower, claims.len() as u64] {
        sdnv::encode(number, out);
    }
    for (start, end) in claims {
        sdnv::encode(start - lower, out);
        sdnv::encode(end - start, out);
    }
}
