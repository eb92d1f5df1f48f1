//! Packets on the wire (draft-wood-tsvwg-saratoga-22 4 and 5), one for each datagram.
//!
//! Undefined bits are zero in what is sent, and ignored in what is received.

use crate::codec::{DecodeError, codes, encoded, take, take_byte, variants};
use bytes::{BufMut, Bytes, BytesMut};

/// Version of the protocol.
const VERSION: u32 = 1;
/// Maximum length of a path with the NUL after it, bytes.
pub const PATH_BYTES_MAX: usize = 1024;
/// Beginning of the times of directory entries, in seconds of Unix time: 2000-01-01 UTC, with 22 leap seconds.
pub const EPOCH_UNIX: u64 = 946_684_822;

/// Stamp of a DATA packet, which the STATUS that answers it repeats.
pub type Stamp = [u8; 16];

/// Length of the descriptors of a transfer: offsets and lengths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Width {
    /// 16 bits.
    Bits16,
    /// 32 bits.
    Bits32,
    /// 64 bits.
    Bits64,
    /// 128 bits.
    Bits128,
}

impl Width {
    const ALL: [Width; 4] = [Width::Bits16, Width::Bits32, Width::Bits64, Width::Bits128];

    /// Returns the smallest descriptor for a file of this length.
    pub const fn of(length: u128) -> Width {
        match length {
            0..=0xffff => Width::Bits16,
            0x1_0000..=0xffff_ffff => Width::Bits32,
            0x1_0000_0000..=0xffff_ffff_ffff_ffff => Width::Bits64,
            _ => Width::Bits128,
        }
    }

    /// Returns the length of a descriptor, bytes.
    pub const fn bytes(self) -> usize {
        2 << self as usize
    }

    const fn code(self) -> u32 {
        self as u32
    }

    fn from_code(code: u32) -> Width {
        Width::ALL[(code & 3) as usize]
    }

    fn put(self, value: u128, out: &mut BytesMut) {
        out.extend_from_slice(&value.to_be_bytes()[16 - self.bytes()..]);
    }

    fn take(self, input: &mut Bytes) -> Result<u128, DecodeError> {
        let field = take(input, self.bytes())?;
        Ok(field.iter().fold(0, |value, byte| value << 8 | u128::from(*byte)))
    }
}

/// Readiness of a side to send, or to receive, files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ability {
    /// It cannot.
    #[default]
    Incapable,
    /// It can, and is not willing at present.
    Unwilling,
    /// It can, and is willing.
    Willing,
}

impl Ability {
    const fn code(self) -> u32 {
        match self {
            Ability::Incapable => 0,
            Ability::Unwilling => 2,
            Ability::Willing => 3,
        }
    }

    fn from_code(code: u32) -> Result<Ability, DecodeError> {
        match code & 3 {
            0 => Ok(Ability::Incapable),
            2 => Ok(Ability::Unwilling),
            3 => Ok(Ability::Willing),
            _ => Err(invalid("an ability", "4.1")),
        }
    }
}

/// Abilities of a side, in BEACON and REQUEST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Abilities {
    /// Longest descriptor.
    pub width_max: Width,
    /// Streams are supported.
    pub streams: bool,
    /// Readiness to send files.
    pub send: Ability,
    /// Readiness to receive files.
    pub receive: Ability,
    /// UDP-Lite is supported.
    pub udp_lite: bool,
}

/// Request of a REQUEST.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// No operation.
    Nothing,
    /// The peer sends a file.
    Get,
    /// The peer receives a file.
    Put,
    /// The peer sends a file, and deletes it when the receiver has it.
    Take,
    /// The peer receives a file, which this side deletes when the peer has it.
    Give,
    /// The peer deletes a file.
    Delete,
    /// The peer sends the list of a directory.
    GetDirectory,
    /// Unknown.
    Other(u8),
}

codes!(
    RequestKind: u8, from_code, code,
    0 Nothing, 1 Get, 2 Put, 3 Take, 4 Give, 5 Delete, 6 GetDirectory,
    Other
);

/// Kind of the contents of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A file.
    File,
    /// The list of a directory.
    Directory,
    /// A stream without a known end.
    Stream,
}

impl Kind {
    const fn code(self) -> u32 {
        match self {
            Kind::File => 0,
            Kind::Directory => 1,
            Kind::Stream => 3,
        }
    }

    fn from_code(code: u32) -> Result<Kind, DecodeError> {
        match code & 3 {
            0 => Ok(Kind::File),
            1 => Ok(Kind::Directory),
            3 => Ok(Kind::Stream),
            _ => Err(invalid("the kind of a transfer", "4.3")),
        }
    }
}

/// Checksum of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// None.
    None,
    /// CRC-32C.
    Crc32c(u32),
    /// MD5.
    Md5([u8; 16]),
    /// SHA-1.
    Sha1([u8; 20]),
    /// Another type, from 4 to 15, with at most 15 words of 4 bytes.
    Other(u8, Bytes),
}

impl Checksum {
    fn kind(&self) -> u8 {
        match self {
            Checksum::None => 0,
            Checksum::Crc32c(_) => 1,
            Checksum::Md5(_) => 2,
            Checksum::Sha1(_) => 3,
            Checksum::Other(kind, _) => *kind,
        }
    }

    fn value(&self) -> Bytes {
        match self {
            Checksum::None => Bytes::new(),
            Checksum::Crc32c(value) => Bytes::copy_from_slice(&value.to_be_bytes()),
            Checksum::Md5(value) => Bytes::copy_from_slice(value),
            Checksum::Sha1(value) => Bytes::copy_from_slice(value),
            Checksum::Other(_, value) => value.clone(),
        }
    }

    fn decode(kind: u32, words: u32, input: &mut Bytes) -> Result<Checksum, DecodeError> {
        let value = take(input, 4 * words as usize)?;
        Ok(match (kind, words) {
            (0, 0) => Checksum::None,
            (1, 1) => Checksum::Crc32c(u32::from_be_bytes(array(&value))),
            (2, 4) => Checksum::Md5(array(&value)),
            (3, 5) => Checksum::Sha1(array(&value)),
            (4.., _) => Checksum::Other(kind as u8, value),
            _ => return Err(invalid("the length of a checksum", "4.3")),
        })
    }
}

/// Outcome in a STATUS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No error.
    Success,
    /// Unspecified error.
    Unspecified,
    /// The peer lacks resources to send.
    CannotSend,
    /// The peer lacks resources to receive.
    CannotReceive,
    /// The file does not exist.
    NotFound,
    /// The file may not be accessed.
    AccessDenied,
    /// The session is unknown.
    UnknownId,
    /// The file was not deleted.
    NotDeleted,
    /// The file is too long for the receiver.
    TooLong,
    /// The descriptor differs from that of the transfer.
    DescriptorMismatch,
    /// The packet type is not supported.
    UnsupportedPacket,
    /// The request type is not supported.
    UnsupportedRequest,
    /// The request was ended by a timer.
    TimedOut,
    /// The flags of DATA have changed.
    FlagsChanged,
    /// The receiver is no longer interested.
    NotInterested,
    /// The file is in use.
    InUse,
    /// METADATA is required first.
    MetadataRequired,
    /// A STATUS was not expected.
    UnexpectedStatus,
    /// The receiver has not heard the sender for too long.
    SenderSilent,
    /// Unknown.
    Other(u8),
}

codes!(
    Outcome: u8, from_code, code,
    0 Success, 1 Unspecified, 2 CannotSend, 3 CannotReceive, 4 NotFound, 5 AccessDenied, 6 UnknownId, 7 NotDeleted,
    8 TooLong, 9 DescriptorMismatch, 10 UnsupportedPacket, 11 UnsupportedRequest, 12 TimedOut, 13 FlagsChanged,
    14 NotInterested, 15 InUse, 16 MetadataRequired, 17 UnexpectedStatus, 18 SenderSilent,
    Other
);

/// Type of a directory entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryKind {
    /// A file.
    File,
    /// A directory.
    Directory,
    /// A special file, such as a stream.
    SpecialFile,
    /// A special directory.
    SpecialDirectory,
}

impl EntryKind {
    const ALL: [EntryKind; 4] =
        [EntryKind::File, EntryKind::Directory, EntryKind::SpecialFile, EntryKind::SpecialDirectory];
}

/// Directory entry: the properties of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Type.
    pub kind: EntryKind,
    /// Descriptor of the size.
    pub width: Width,
    /// UDP-Lite may carry the file.
    pub udp_lite: bool,
    /// Length, bytes; zero for directories and streams.
    pub size: u128,
    /// Time of the last change, seconds since [`EPOCH_UNIX`].
    pub modified: u32,
    /// Time of the creation, seconds since [`EPOCH_UNIX`].
    pub created: u32,
    /// Path, without NUL.
    pub path: String,
}

impl Entry {
    /// Returns the entry of a file.
    pub fn file(path: String, size: u128, modified: u32, created: u32) -> Entry {
        let (kind, width) = (EntryKind::File, Width::of(size));
        Entry { kind, width, udp_lite: false, size, modified, created, path }
    }

    /// Decodes an entry at the front of the input.
    ///
    /// # Errors
    /// Fails if the bytes are no entry, or end too early.
    pub fn decode(input: &mut Bytes) -> Result<Entry, DecodeError> {
        let properties = u16::from_be_bytes(array(&take(input, 2)?));
        if properties & 1 << 15 == 0 {
            return Err(invalid("the first bit of a directory entry", "5"));
        }
        let width = Width::from_code(u32::from(properties >> 6));
        Ok(Entry {
            kind: EntryKind::ALL[usize::from(properties >> 8 & 3)],
            width,
            udp_lite: properties & 1 << 2 != 0,
            size: width.take(input)?,
            modified: take_u32(input)?,
            created: take_u32(input)?,
            path: take_path(input)?,
        })
    }

    /// Decodes the entries of a list, between which there may be NULs.
    ///
    /// # Errors
    /// Fails if the bytes are no list of entries.
    pub fn decode_list(mut input: Bytes) -> Result<Vec<Entry>, DecodeError> {
        let mut entries = Vec::new();
        loop {
            let padding = input.iter().take_while(|byte| **byte == 0).count();
            take(&mut input, padding)?;
            if input.is_empty() {
                return Ok(entries);
            }
            entries.push(Entry::decode(&mut input)?);
        }
    }

    /// Appends the entry.
    ///
    /// # Panics
    /// Panics if the size does not fit its descriptor.
    pub fn encode(&self, out: &mut BytesMut) {
        assert!(Width::of(self.size) <= self.width, "a size of {} in {:?}", self.size, self.width);
        let kind = (self.kind as u16) << 8;
        let width = (self.width.code() as u16) << 6;
        out.put_u16(1 << 15 | kind | width | u16::from(self.udp_lite) << 2);
        self.width.put(self.size, out);
        out.put_u32(self.modified);
        out.put_u32(self.created);
        put_path(&self.path, out);
    }
}

/// BEACON: presence and abilities of a side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beacon {
    /// Abilities.
    pub abilities: Abilities,
    /// Free space for files in units of 1,024 bytes, rounded down, with the descriptor of this field.
    pub free_kib: Option<(Width, u128)>,
    /// Endpoint ID.
    pub eid: String,
}

/// REQUEST of a transfer or of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Abilities of the side that requests.
    pub abilities: Abilities,
    /// Request.
    pub kind: RequestKind,
    /// Session.
    pub session: u32,
    /// Path; empty in a get of a file that the sender chooses.
    pub path: String,
    /// Authentication field, which has a local meaning. NULs alone are padding.
    pub auth: Bytes,
}

/// METADATA of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// Session.
    pub session: u32,
    /// Descriptor of the transfer.
    pub width: Width,
    /// Kind of the contents.
    pub kind: Kind,
    /// The sender has ended the transfer.
    pub ended: bool,
    /// UDP-Lite is permitted.
    pub udp_lite: bool,
    /// Checksum.
    pub checksum: Checksum,
    /// Properties of the file.
    pub entry: Entry,
}

/// DATA of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Data {
    /// Session.
    pub session: u32,
    /// Descriptor of the transfer.
    pub width: Width,
    /// Kind of the contents.
    pub kind: Kind,
    /// Stamp.
    pub stamp: Option<Stamp>,
    /// A STATUS is requested.
    pub wants_status: bool,
    /// The end of the packet is the end of the file.
    pub is_end: bool,
    /// Offset of the payload.
    pub offset: u128,
    /// Bytes of the file.
    pub payload: Bytes,
}

/// STATUS of a transfer. After a failure only its code has a meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Session.
    pub session: u32,
    /// Descriptor of the transfer.
    pub width: Width,
    /// Stamp of the DATA packet that is answered.
    pub stamp: Option<Stamp>,
    /// No METADATA was received.
    pub lacks_metadata: bool,
    /// There are holes that are not listed.
    pub incomplete: bool,
    /// No packet has requested it.
    pub voluntary: bool,
    /// Outcome.
    pub outcome: Outcome,
    /// Offset of the first byte that is missing.
    pub progress: u128,
    /// Offset after the DATA packet that is answered; in a voluntary STATUS, after the last byte that was received.
    pub in_response_to: u128,
    /// First and last byte of each listed hole, in ascending order.
    pub holes: Vec<(u128, u128)>,
}

impl Status {
    /// Creates a STATUS with an outcome, and without offsets.
    pub fn with_outcome(session: u32, outcome: Outcome) -> Status {
        Status {
            session,
            width: Width::Bits16,
            stamp: None,
            lacks_metadata: false,
            incomplete: false,
            voluntary: false,
            outcome,
            progress: 0,
            in_response_to: 0,
            holes: Vec::new(),
        }
    }
}

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// Presence and abilities.
    Beacon(Beacon),
    /// Request of a transfer or of a deletion.
    Request(Request),
    /// Properties of a file.
    Metadata(Metadata),
    /// Bytes of a file.
    Data(Data),
    /// State of a transfer.
    Status(Status),
}

variants!(Packet: Beacon(Beacon), Request(Request), Metadata(Metadata), Data(Data), Status(Status));

/// Returns the length of the header of a DATA packet, bytes.
pub fn data_header_bytes(width: Width, is_stamped: bool) -> usize {
    8 + width.bytes() + if is_stamped { 16 } else { 0 }
}

/// Returns the length of a STATUS packet without holes, bytes.
pub fn status_header_bytes(width: Width, is_stamped: bool) -> usize {
    data_header_bytes(width, is_stamped) + width.bytes()
}

impl Packet {
    /// Decodes a packet, which extends to the end of the input.
    ///
    /// # Errors
    /// Fails if the bytes are no packet of version 1.
    pub fn decode(input: &mut Bytes) -> Result<Packet, DecodeError> {
        let word = take_u32(input)?;
        if word >> 29 != VERSION {
            return Err(DecodeError::Unsupported { what: "the version", clause: clause("4") });
        }
        match word >> 24 & 0x1f {
            0 => decode_beacon(word, input).map(Packet::Beacon),
            1 => decode_request(word, input).map(Packet::Request),
            2 => decode_metadata(word, input).map(Packet::Metadata),
            3 => decode_data(word, input).map(Packet::Data),
            4 => decode_status(word, input).map(Packet::Status),
            _ => Err(DecodeError::Unsupported { what: "the packet type", clause: clause("4") }),
        }
    }

    /// Appends the packet.
    ///
    /// # Panics
    /// Panics if a number does not fit its descriptor, or a path its maximum.
    pub fn encode(&self, out: &mut BytesMut) {
        match self {
            Packet::Beacon(beacon) => encode_beacon(beacon, out),
            Packet::Request(request) => encode_request(request, out),
            Packet::Metadata(metadata) => encode_metadata(metadata, out),
            Packet::Data(data) => encode_data(data, out),
            Packet::Status(status) => encode_status(status, out),
        }
    }

    /// Returns the bytes of the packet.
    pub fn to_bytes(&self) -> Bytes {
        encoded(64, |out| self.encode(out))
    }
}

// -- Fields ------------------------------------------------------------------------------------------------------

/// Returns the first word of a packet of this type.
const fn first_word(kind: u32) -> u32 {
    VERSION << 29 | kind << 24
}

/// Returns a bit of a word, counted from the most significant one, if it is set.
const fn flag(position: u32, is_set: bool) -> u32 {
    (is_set as u32) << (31 - position)
}

/// Returns true if a bit of a word is set.
const fn has(word: u32, position: u32) -> bool {
    word >> (31 - position) & 1 == 1
}

/// Returns two bits of a word, of which `position` is the last.
const fn pair(word: u32, position: u32) -> u32 {
    word >> (31 - position) & 3
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("the length was checked")
}

fn take_u32(input: &mut Bytes) -> Result<u32, DecodeError> {
    Ok(u32::from_be_bytes(array(&take(input, 4)?)))
}

fn take_stamp(input: &mut Bytes, is_present: bool) -> Result<Option<Stamp>, DecodeError> {
    Ok(if is_present { Some(array(&take(input, 16)?)) } else { None })
}

/// Consumes a path and the NUL after it.
fn take_path(input: &mut Bytes) -> Result<String, DecodeError> {
    let window = &input[..input.len().min(PATH_BYTES_MAX)];
    let Some(length) = window.iter().position(|byte| *byte == 0) else {
        let is_cut = input.len() < PATH_BYTES_MAX;
        return Err(if is_cut { DecodeError::Incomplete } else { DecodeError::Limit { what: "a path" } });
    };
    let path = take(input, length)?;
    take_byte(input)?;
    text(&path, "a path", "5")
}

fn put_path(path: &str, out: &mut BytesMut) {
    assert!(path.len() < PATH_BYTES_MAX && !path.contains('\0'), "the path {path:?}");
    out.extend_from_slice(path.as_bytes());
    out.put_u8(0);
}

fn text(bytes: &[u8], what: &'static str, section: &'static str) -> Result<String, DecodeError> {
    core::str::from_utf8(bytes).map(str::to_owned).map_err(|_| invalid(what, section))
}

const fn invalid(what: &'static str, section: &'static str) -> DecodeError {
    DecodeError::invalid(what, clause(section))
}

const fn clause(section: &'static str) -> &'static str {
    match section.as_bytes() {
        b"4" => "draft-wood-tsvwg-saratoga-22 4",
        b"4.1" => "draft-wood-tsvwg-saratoga-22 4.1",
        b"4.3" => "draft-wood-tsvwg-saratoga-22 4.3",
        b"4.5" => "draft-wood-tsvwg-saratoga-22 4.5",
        _ => "draft-wood-tsvwg-saratoga-22 5",
    }
}

fn abilities_word(abilities: Abilities) -> u32 {
    let Abilities { width_max, streams, send, receive, udp_lite } = abilities;
    width_max.code() << 22 | flag(11, streams) | send.code() << 18 | receive.code() << 16 | flag(16, udp_lite)
}

fn abilities_of(word: u32) -> Result<Abilities, DecodeError> {
    Ok(Abilities {
        width_max: Width::from_code(pair(word, 9)),
        streams: has(word, 11),
        send: Ability::from_code(pair(word, 13))?,
        receive: Ability::from_code(pair(word, 15))?,
        udp_lite: has(word, 16),
    })
}

// -- Packets -----------------------------------------------------------------------------------------------------

fn decode_beacon(word: u32, input: &mut Bytes) -> Result<Beacon, DecodeError> {
    let abilities = abilities_of(word)?;
    let width = Width::from_code(pair(word, 19));
    let free_kib = if has(word, 17) { Some((width, width.take(input)?)) } else { None };
    let length = input.len();
    let eid = take(input, length)?;
    Ok(Beacon { abilities, free_kib, eid: text(&eid, "an endpoint ID", "4.1")? })
}

fn encode_beacon(beacon: &Beacon, out: &mut BytesMut) {
    let space = beacon.free_kib.map_or(0, |(width, _)| flag(17, true) | width.code() << 12);
    out.put_u32(first_word(0) | abilities_word(beacon.abilities) | space);
    if let Some((width, kib)) = beacon.free_kib {
        assert!(Width::of(kib) <= width, "{kib} in {width:?}");
        width.put(kib, out);
    }
    out.extend_from_slice(beacon.eid.as_bytes());
}

fn decode_request(word: u32, input: &mut Bytes) -> Result<Request, DecodeError> {
    let abilities = abilities_of(word)?;
    let session = take_u32(input)?;
    let path = take_path(input)?;
    let length = input.len();
    let rest = take(input, length)?;
    // A padded path cannot be distinguished from an authentication field of zeros.
    let auth = if rest.iter().all(|byte| *byte == 0) { Bytes::new() } else { rest };
    Ok(Request { abilities, kind: RequestKind::from_code(word as u8), session, path, auth })
}

fn encode_request(request: &Request, out: &mut BytesMut) {
    out.put_u32(first_word(1) | abilities_word(request.abilities) | u32::from(request.kind.code()));
    out.put_u32(request.session);
    put_path(&request.path, out);
    out.extend_from_slice(&request.auth);
}

fn decode_metadata(word: u32, input: &mut Bytes) -> Result<Metadata, DecodeError> {
    let kind = Kind::from_code(pair(word, 11))?;
    let session = take_u32(input)?;
    let checksum = Checksum::decode(word & 0xf, word >> 4 & 0xf, input)?;
    if kind == Kind::Stream && checksum != Checksum::None {
        return Err(invalid("the checksum of a stream", "4.3"));
    }
    let entry = Entry::decode(input)?;
    // The path may be padded.
    let length = input.len();
    take(input, length)?;
    let width = Width::from_code(pair(word, 9));
    Ok(Metadata { session, width, kind, ended: has(word, 12), udp_lite: has(word, 13), checksum, entry })
}

fn encode_metadata(metadata: &Metadata, out: &mut BytesMut) {
    let Metadata { session, width, kind, ended, udp_lite, checksum, entry } = metadata;
    let value = checksum.value();
    let words = value.len() as u32 / 4;
    assert!(value.len().is_multiple_of(4) && words < 16, "a checksum of {} bytes", value.len());
    let flags = flag(12, *ended) | flag(13, *udp_lite);
    let sum = words << 4 | u32::from(checksum.kind());
    out.put_u32(first_word(2) | width.code() << 22 | kind.code() << 20 | flags | sum);
    out.put_u32(*session);
    out.extend_from_slice(&value);
    entry.encode(out);
}

fn decode_data(word: u32, input: &mut Bytes) -> Result<Data, DecodeError> {
    let (width, kind) = (Width::from_code(pair(word, 9)), Kind::from_code(pair(word, 11))?);
    let session = take_u32(input)?;
    let stamp = take_stamp(input, has(word, 12))?;
    let offset = width.take(input)?;
    let length = input.len();
    let payload = take(input, length)?;
    Ok(Data {
        session,
        width,
        kind,
        stamp,
        wants_status: has(word, 15),
        is_end: has(word, 16),
        offset,
        payload,
    })
}

fn encode_data(data: &Data, out: &mut BytesMut) {
    out.reserve(data_header_bytes(data.width, data.stamp.is_some()) + data.payload.len());
    let flags = flag(12, data.stamp.is_some()) | flag(15, data.wants_status) | flag(16, data.is_end);
    out.put_u32(first_word(3) | data.width.code() << 22 | data.kind.code() << 20 | flags);
    out.put_u32(data.session);
    out.extend_from_slice(data.stamp.as_ref().map_or(&[][..], |stamp| stamp));
    assert!(Width::of(data.offset) <= data.width, "the offset {} in {:?}", data.offset, data.width);
    data.width.put(data.offset, out);
    out.extend_from_slice(&data.payload);
}

fn decode_status(word: u32, input: &mut Bytes) -> Result<Status, DecodeError> {
    let width = Width::from_code(pair(word, 9));
    let session = take_u32(input)?;
    let stamp = take_stamp(input, has(word, 12))?;
    let (progress, in_response_to) = (width.take(input)?, width.take(input)?);
    let outcome = Outcome::from_code(word as u8);
    if outcome != Outcome::Success {
        // The offsets must not be read.
        input.clear();
        return Ok(Status { stamp, ..Status::with_outcome(session, outcome) });
    }
    let mut holes = Vec::with_capacity(input.len() / (2 * width.bytes()));
    while input.len() >= 2 * width.bytes() {
        let (first, last) = (width.take(input)?, width.take(input)?);
        let follows = holes.last().is_none_or(|(_, before)| first > *before);
        if first > last || !follows {
            return Err(invalid("a hole", "4.5"));
        }
        holes.push((first, last));
    }
    // The description of the packet has an octet of padding that its figure does not have.
    let length = input.len();
    if take(input, length)?.iter().any(|byte| *byte != 0) {
        return Err(invalid("the end of a hole", "4.5"));
    }
    Ok(Status {
        session,
        width,
        stamp,
        lacks_metadata: has(word, 13),
        incomplete: has(word, 14),
        voluntary: has(word, 15),
        outcome,
        progress,
        in_response_to,
        holes,
    })
}

fn encode_status(status: &Status, out: &mut BytesMut) {
    let flags = flag(12, status.stamp.is_some())
        | flag(13, status.lacks_metadata)
        | flag(14, status.incomplete)
        | flag(15, status.voluntary);
    let outcome = u32::from(status.outcome.code());
    out.put_u32(first_word(4) | status.width.code() << 22 | flags | outcome);
    out.put_u32(status.session);
    out.extend_from_slice(status.stamp.as_ref().map_or(&[][..], |stamp| stamp));
    let edges = status.holes.iter().flat_map(|(first, last)| [*first, *last]);
    for value in [status.progress, status.in_response_to].into_iter().chain(edges) {
        assert!(Width::of(value) <= status.width, "the offset {value} in {:?}", status.width);
        status.width.put(value, out);
    }
}
