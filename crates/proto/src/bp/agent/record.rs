//! Format of the records that the agent stores: one record per bundle, plus a few small ones.
//!
//! ```text
//!  header (36 bytes)                             | body
//!  "LWR1" kind ver from nonce  arrival  age  crc | bundle as on the wire .. | notes (24 bytes each)
//! ```
//!
//! | kind | body |
//! |---|---|
//! | boot | number of earlier starts, which makes record IDs and sequence numbers unique; clock state; latest clock adjustments |
//! | tombstone | a delivered bundle, the time until which it is remembered, and the properties of its payload |
//! | tombstone of version 6 | the same, for a bundle of version 6 |
//! | received | a bundle from a peer; without a seal, the prefix that arrived |
//! | own | a bundle made at this node; without a seal it was never accepted and is dropped |
//! | own, secured | the same, with security blocks of zeros; their data follow the bundle, before the seal |
//!
//! Notes follow only a complete bundle: first the **seal** (the bundle is complete and its CRC matches), then how much of the
//! payload the next hop has, which nodes have a copy, and how many copies may still be made. Nothing follows the prefix of a
//! broken transfer, so that whatever length survives a crash is again a prefix of the payload. A note contains the nonce of the
//! record, which no peer knows, so that payload bytes cannot pass for a note. Numbers are big-endian; times are DTN
//! milliseconds, zero if unknown.

use crate::bp::{CreationTimestamp, Eid};
use crate::codec::crc::{Running, crc32c};
use crate::codec::{DecodeError, cbor};
use crate::service::BundleVersion;
use bytes::{Buf, BufMut, Bytes, BytesMut};

use super::accounts::NeighbourNumber;
use super::adu::PayloadProperties;
use super::clock::{ClockAdjustments, StoredClock};

/// Length of the record header, bytes.
pub(super) const HEADER_BYTES: u64 = 36;
/// Length of a note, bytes.
pub(super) const NOTE_BYTES: u64 = 24;

const MAGIC: &[u8; 4] = b"LWR1";
const VERSION: u8 = 1;
const FORMAT: &str = "the storage format";

/// Appends the CRC of what was appended since `start`.
pub(super) fn put_checksum(start: usize, out: &mut BytesMut) {
    let crc = crc32c(&out[start..]);
    out.put_u32(crc);
}

/// Consumes a CRC, and compares it with that of what was consumed of `whole` before it.
pub(super) fn take_checksum(whole: &Bytes, input: &mut Bytes, what: &'static str) -> Result<(), DecodeError> {
    let crc = crc32c(&whole[..whole.len() - input.len()]);
    if input.get_u32() == crc { Ok(()) } else { Err(DecodeError::Checksum { what }) }
}

/// Kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RecordKind {
    Boot,
    Tombstone(BundleVersion),
    Received,
    Own,
    /// Signed or encrypted at this node.
    OwnSecured,
}

/// Record header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RecordHeader {
    pub(super) kind: RecordKind,
    /// Neighbour that brought the bundle; unknown in records of earlier versions.
    pub(super) neighbour: NeighbourNumber,
    /// Random number known only to this record; in a boot record, the secret of the store.
    pub(super) nonce: u64,
    /// Time at which the record was begun, DTN milliseconds; zero without a clock.
    pub(super) arrival_dtn_ms: u64,
    /// Known age of the bundle at that time, milliseconds.
    pub(super) age_ms: u64,
}

impl RecordHeader {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        let kind = match self.kind {
            RecordKind::Boot => 1,
            RecordKind::Tombstone(BundleVersion::V7) => 2,
            RecordKind::Received => 3,
            RecordKind::Own => 4,
            RecordKind::OwnSecured => 6,
            RecordKind::Tombstone(BundleVersion::V6) => 5,
        };
        let mut bytes = [0; HEADER_BYTES as usize];
        let mut fields = &mut bytes[..];
        fields.put_slice(MAGIC);
        fields.put_u8(kind);
        fields.put_u8(VERSION);
        fields.put_u16(self.neighbour.0);
        fields.put_u64(self.nonce);
        fields.put_u64(self.arrival_dtn_ms);
        fields.put_u64(self.age_ms);
        let (covered, crc) = bytes.split_last_chunk_mut().expect("a header ends with its checksum");
        *crc = crc32c(covered).to_be_bytes();
        out.put_slice(&bytes);
    }

    pub(super) fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.len() < HEADER_BYTES as usize {
            return Err(DecodeError::Incomplete);
        }
        let whole = input.clone();
        if input.split_to(4) != MAGIC[..] {
            return Err(DecodeError::invalid("the magic number of a record", FORMAT));
        }
        let kind = match (input.get_u8(), input.get_u8()) {
            (1, VERSION) => RecordKind::Boot,
            (2, VERSION) => RecordKind::Tombstone(BundleVersion::V7),
            (3, VERSION) => RecordKind::Received,
            (4, VERSION) => RecordKind::Own,
            (6, VERSION) => RecordKind::OwnSecured,
            (5, VERSION) => RecordKind::Tombstone(BundleVersion::V6),
            _ => return Err(DecodeError::Limit { what: "the kind or version of a record" }),
        };
        let header = RecordHeader {
            kind,
            neighbour: NeighbourNumber(input.get_u16()),
            nonce: input.get_u64(),
            arrival_dtn_ms: input.get_u64(),
            age_ms: input.get_u64(),
        };
        take_checksum(&whole, input, "record header")?;
        Ok(header)
    }
}

/// Note after a complete bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Note {
    /// The bundle is complete and its CRC matches.
    Sealed {
        /// True if this node has accepted custody of the bundle.
        custody: bool,
    },
    /// The next hop has the complete bundle, which is in custody: a custody signal is outstanding.
    HandedOver,
    /// The next hop has this number of bytes from the beginning of the payload.
    SafeUpTo(u64),
    /// The node with this key has the bundle.
    Given(u64),
    /// This number of copies of the bundle may still be made.
    Copies(u64),
}

impl Note {
    /// Encodes the note for the position `position` bytes from the beginning of its record.
    pub(super) fn encode(self, nonce: u64, position: u64) -> Bytes {
        let (kind, value) = match self {
            Note::Sealed { custody } => (1, u64::from(custody)),
            Note::SafeUpTo(value) => (2, value),
            Note::Given(value) => (3, value),
            Note::Copies(value) => (4, value),
            Note::HandedOver => (5, 0),
        };
        let mut bytes = [0; NOTE_BYTES as usize];
        let mut fields = &mut bytes[..];
        fields.put_u32(kind);
        fields.put_u64(value);
        fields.put_u64(nonce);
        let (covered, crc) = bytes.split_last_chunk_mut().expect("a note ends with its checksum");
        *crc = Self::crc(covered, position).to_be_bytes();
        Bytes::copy_from_slice(&bytes)
    }

    /// Decodes the note at the front of `input`; `None` if it is not a valid note for this record and
    /// position.
    pub(super) fn decode(input: &[u8], nonce: u64, position: u64) -> Option<Self> {
        let mut input = input.get(..NOTE_BYTES as usize)?;
        let crc = Self::crc(&input[..20], position);
        let (kind, value, found, check) =
            (input.get_u32(), input.get_u64(), input.get_u64(), input.get_u32());
        match kind {
            _ if found != nonce || check != crc => None,
            1 => Some(Note::Sealed { custody: value & 1 != 0 }),
            2 => Some(Note::SafeUpTo(value)),
            3 => Some(Note::Given(value)),
            4 => Some(Note::Copies(value)),
            5 => Some(Note::HandedOver),
            _ => None,
        }
    }

    fn crc(bytes: &[u8], position: u64) -> u32 {
        let mut crc = Running::crc32c();
        crc.update(bytes);
        crc.update(&position.to_be_bytes());
        crc.value()
    }
}

/// Body of a tombstone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TombstoneBody {
    pub(super) source: Eid,
    pub(super) timestamp: CreationTimestamp,
    /// Not encoded: the kind of the record contains it.
    pub(super) version: BundleVersion,
    /// Time at which the tombstone can be removed, DTN milliseconds; zero if only `remaining_ms` applies.
    pub(super) expires_dtn_ms: u64,
    /// Remaining lifetime of the bundle when it was delivered, milliseconds.
    pub(super) remaining_ms: u64,
    /// Properties of the payload; `None` in records of earlier versions.
    pub(super) payload: Option<PayloadProperties>,
}

impl TombstoneBody {
    pub(super) fn encode(&self, out: &mut BytesMut) {
        let start = out.len();
        self.encode_name(&self.source, out);
        self.timestamp.encode(out);
        out.put_u64(self.expires_dtn_ms);
        out.put_u64(self.remaining_ms);
        put_checksum(start, out);
        if let Some(payload) = &self.payload {
            let start = out.len();
            self.encode_name(&payload.endpoint, out);
            out.put_u64(payload.total);
            out.put_u64(payload.lifetime_ms);
            out.put_u8(u8::from(payload.is_admin) | u8::from(payload.is_encrypted) << 1);
            put_checksum(start, out);
        }
    }

    fn encode_name(&self, name: &Eid, out: &mut BytesMut) {
        match self.version {
            BundleVersion::V7 => name.encode(out),
            BundleVersion::V6 => cbor::put_byte_string(name.uri().as_bytes(), out),
        }
    }

    fn decode_name(input: &mut Bytes, version: BundleVersion) -> Result<Eid, DecodeError> {
        match version {
            BundleVersion::V7 => Ok(Eid::decode(input)?.detached()),
            BundleVersion::V6 => {
                let text = cbor::byte_string(input, "a name in a tombstone", FORMAT)?;
                let wrong = DecodeError::invalid("a name in a tombstone", FORMAT);
                Eid::from_uri(core::str::from_utf8(&text).map_err(|_| wrong)?)
            }
        }
    }

    pub(super) fn decode(input: &mut Bytes, version: BundleVersion) -> Result<Self, DecodeError> {
        let whole = input.clone();
        let source = Self::decode_name(input, version)?;
        let timestamp = CreationTimestamp::decode(input)?;
        if input.len() < 20 {
            return Err(DecodeError::Incomplete);
        }
        let (expires_dtn_ms, remaining_ms) = (input.get_u64(), input.get_u64());
        take_checksum(&whole, input, "tombstone")?;
        let payload = match input.len() {
            0 => None,
            // Number written by an earlier version.
            12 if crc32c(&input[..8]) == input.slice(8..).get_u32() => None,
            _ => Some(Self::decode_payload(input, version)?),
        };
        Ok(TombstoneBody { source, timestamp, version, expires_dtn_ms, remaining_ms, payload })
    }

    fn decode_payload(input: &mut Bytes, version: BundleVersion) -> Result<PayloadProperties, DecodeError> {
        let whole = input.clone();
        let endpoint = Self::decode_name(input, version)?;
        if input.len() < 21 {
            return Err(DecodeError::Incomplete);
        }
        let (total, lifetime_ms, properties) = (input.get_u64(), input.get_u64(), input.get_u8());
        take_checksum(&whole, input, "tombstone")?;
        let (is_admin, is_encrypted) = (properties & 1 != 0, properties & 2 != 0);
        Ok(PayloadProperties { endpoint, total, lifetime_ms, is_admin, is_encrypted })
    }
}

/// Body of a boot record. Those of earlier versions have no clock adjustments or no clock state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct BootBody {
    /// Number of earlier starts of the node.
    pub(super) boot: u64,
    pub(super) clock: Option<StoredClock>,
    pub(super) turns: ClockAdjustments,
}

impl BootBody {
    /// Encodes the complete record, which must fit into the first read of a record.
    pub(super) fn encode(&self, header: RecordHeader) -> Bytes {
        let mut out = BytesMut::new();
        header.encode(&mut out);
        let start = out.len();
        out.put_u64(self.boot);
        put_checksum(start, &mut out);
        if let Some(clock) = self.clock {
            clock.encode(&mut out);
            self.turns.encode(&mut out);
        }
        out.freeze()
    }

    pub(super) fn decode(input: &mut Bytes) -> Result<Self, DecodeError> {
        if input.len() < 12 {
            return Err(DecodeError::Incomplete);
        }
        let whole = input.clone();
        let boot = input.get_u64();
        take_checksum(&whole, input, "boot record")?;
        let clock = StoredClock::decode(input).ok();
        let turns = clock.and_then(|_| ClockAdjustments::decode(input).ok()).unwrap_or_default();
        Ok(BootBody { boot, clock, turns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bp::DtnTime;

    #[test]
    fn records_survive_the_disk_and_every_cut_is_noticed() {
        let header = RecordHeader {
            kind: RecordKind::Received,
            neighbour: NeighbourNumber(6),
            nonce: 7,
            arrival_dtn_ms: 8,
            age_ms: 9,
        };
        let mut out = BytesMut::new();
        header.encode(&mut out);
        let bytes = out.freeze();
        assert_eq!(bytes.len() as u64, HEADER_BYTES);
        assert_eq!(RecordHeader::decode(&mut bytes.clone()), Ok(header));
        for cut in 0..bytes.len() {
            assert_eq!(RecordHeader::decode(&mut bytes.slice(..cut)), Err(DecodeError::Incomplete));
        }
        for version in [BundleVersion::V7, BundleVersion::V6] {
            let body = TombstoneBody {
                source: Eid::ipn(3, 1),
                timestamp: CreationTimestamp { time: DtnTime(5), sequence: 6 },
                version,
                expires_dtn_ms: 70,
                remaining_ms: 80,
                payload: Some(PayloadProperties {
                    endpoint: Eid::ipn(4, 1),
                    total: 90,
                    lifetime_ms: 100,
                    is_admin: true,
                    is_encrypted: true,
                }),
            };
            let mut out = BytesMut::new();
            body.encode(&mut out);
            let bytes = out.freeze();
            assert_eq!(TombstoneBody::decode(&mut bytes.clone(), version), Ok(body.clone()));
            // Encodings of earlier versions: with nothing after the end, or with a number.
            let old = TombstoneBody { payload: None, ..body.clone() };
            let mut out = BytesMut::new();
            old.encode(&mut out);
            let old_bytes = out.len();
            assert_eq!(TombstoneBody::decode(&mut out.clone().freeze(), version), Ok(old.clone()));
            out.put_u64(7);
            out.put_u32(crc32c(&7_u64.to_be_bytes()));
            assert_eq!(TombstoneBody::decode(&mut out.clone().freeze(), version), Ok(old));
            for cut in (0..bytes.len()).filter(|cut| *cut != old_bytes) {
                let torn = TombstoneBody::decode(&mut bytes.slice(..cut), version);
                assert_eq!(torn, Err(DecodeError::Incomplete));
            }
        }
    }

    #[test]
    fn a_note_counts_only_where_it_was_written() {
        let bytes = Note::SafeUpTo(5).encode(42, 1000);
        assert_eq!(bytes.len() as u64, NOTE_BYTES);
        assert_eq!(Note::decode(&bytes, 42, 1000), Some(Note::SafeUpTo(5)));
        assert_eq!(Note::decode(&bytes, 42, 1001), None, "elsewhere");
        assert_eq!(Note::decode(&bytes, 43, 1000), None, "in another record");
        assert_eq!(Note::decode(&bytes[..23], 42, 1000), None, "torn");
    }
}
