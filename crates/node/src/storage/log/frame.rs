//! Entries of a segment.
//!
//! ```text
//!  "LWE1" kind 0 0 0 | record 8 | offset 8 | length 4 | data crc 4 | header crc 4 | data ..
//! ```
//!
//! Headers have 36 bytes, with big-endian numbers and CRC-32C. The header has its own checksum, so that opening a store
//! reads from header to header, and damage within data loses no later header. A store has a secret number, which is part of
//! the checksum of every header, so that payload bytes cannot pass for an entry. It is in the preamble of every segment.
//!
//! The mark of a batch has three further meanings: the offset is the number of the batch, the record is one more than the
//! number of records (zero: written by an earlier version, without the count), and the data CRC is the number of the segment
//! (zero likewise).

use bytes::{Buf, BufMut};
use longwire_proto::codec::crc::crc32c;
use longwire_proto::service::RecordId;

/// Length of a header.
pub(super) const HEADER_BYTES: usize = 36;
/// Maximum data of an entry; longer data becomes several entries. A read must verify all of each entry that it touches.
pub(super) const DATA_BYTES_MAX: usize = 128 * 1024;

const MAGIC: &[u8; 4] = b"LWE1";

/// Format of the store that this version writes, and the only one that it reads; part of the marker of each file.
pub const FORMAT: u32 = 1;

/// Length of the preamble of a segment, a listing and the lock file.
pub(super) const PREAMBLE_BYTES: usize = 20;

/// Kinds of files that begin with a marker, the format and the store's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreFileKind {
    /// Segment, or the lock file.
    Segment,
    /// Listing of a segment.
    Listing,
}

impl StoreFileKind {
    pub(super) const ALL: [StoreFileKind; 2] = [StoreFileKind::Segment, StoreFileKind::Listing];

    fn marker(self) -> &'static [u8; 5] {
        match self {
            StoreFileKind::Segment => b"LWSEG",
            StoreFileKind::Listing => b"LWLST",
        }
    }
}

/// Interpretation of the first bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileBeginning {
    /// Preamble of a store of this format.
    Ours(StoreFileKind, SealKey),
    /// Marker of another format.
    OtherFormat(u32),
    /// Unknown contents, or too short.
    Unknown,
}

impl FileBeginning {
    /// Interprets the first bytes of a file.
    pub(super) fn of(input: &[u8]) -> Self {
        let number =
            input.get(5..8).and_then(|digits| core::str::from_utf8(digits).ok()?.parse::<u32>().ok());
        if let Some(number) = number
            && StoreFileKind::ALL.iter().any(|kind| input.starts_with(kind.marker()))
            && number != FORMAT
        {
            return FileBeginning::OtherFormat(number);
        }
        let of = |made| Some(FileBeginning::Ours(made, SealKey::of_preamble(made, input)?));
        StoreFileKind::ALL.into_iter().find_map(of).unwrap_or(FileBeginning::Unknown)
    }
}

/// Secret number of a store, part of the checksums of its headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SealKey(pub(super) u64);

impl SealKey {
    fn seal(self, header: &[u8]) -> u32 {
        let mut all = [0; 8 + HEADER_BYTES - 4];
        all[..8].copy_from_slice(&self.0.to_be_bytes());
        all[8..].copy_from_slice(header);
        crc32c(&all)
    }

    /// Encodes the preamble of a file.
    pub(super) fn preamble(self, made: StoreFileKind) -> Vec<u8> {
        let mut out = made.marker().to_vec();
        out.extend_from_slice(format!("{FORMAT:03}").as_bytes());
        out.put_u64(self.0);
        let crc = crc32c(&out);
        out.put_u32(crc);
        out
    }

    /// Returns the secret from the preamble in `input`; `None` if there is no valid preamble of this kind.
    pub(super) fn of_preamble(made: StoreFileKind, input: &[u8]) -> Option<Self> {
        let input = input.get(..PREAMBLE_BYTES)?;
        let secret = SealKey((&input[8..]).get_u64());
        (input == secret.preamble(made)).then_some(secret)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntryKind {
    /// Mark of a batch: everything before it is known to be durable.
    Batch = 1,
    /// Data of a record, new or moved from an old segment.
    Data,
    /// Removal of a record.
    Remove,
    /// Data of a record that was damaged or missing when it was to be moved. The CRC field contains its length.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryHeader {
    pub(super) kind: EntryKind,
    pub(super) record: RecordId,
    /// Offset of the data in the record, bytes.
    pub(super) offset: u64,
    /// Length of the data, bytes.
    pub(super) length: u32,
    pub(super) data_crc: u32,
}

impl EntryHeader {
    /// Creates the mark of a batch: its number, that of its segment, and the number of records.
    pub(super) fn batch(number: u64, segment: u32, records: u64) -> Self {
        let record = RecordId(records + 1);
        EntryHeader { kind: EntryKind::Batch, record, offset: number, length: 0, data_crc: segment }
    }

    /// Returns the segment number of a mark, if it contains one.
    pub(super) fn segment(&self) -> Option<u32> {
        (self.kind == EntryKind::Batch && self.data_crc != 0).then_some(self.data_crc)
    }

    /// Returns the record count of a mark, if it contains one.
    pub(super) fn records(&self) -> Option<u64> {
        self.record.0.checked_sub(1).filter(|_| self.kind == EntryKind::Batch)
    }

    pub(super) fn lost(record: RecordId, offset: u64, bytes: u32) -> Self {
        EntryHeader { kind: EntryKind::Lost, record, offset, length: 0, data_crc: bytes }
    }

    pub(super) fn remove(record: RecordId) -> Self {
        EntryHeader { kind: EntryKind::Remove, record, offset: 0, length: 0, data_crc: 0 }
    }

    pub(super) fn data(record: RecordId, offset: u64, data: &[u8]) -> Self {
        assert!(data.len() <= DATA_BYTES_MAX, "entries are bounded");
        EntryHeader {
            kind: EntryKind::Data,
            record,
            offset,
            length: data.len() as u32,
            data_crc: crc32c(data),
        }
    }

    pub(super) fn encode(&self, secret: SealKey, out: &mut Vec<u8>) {
        let start = out.len();
        out.put_slice(MAGIC);
        out.put_u8(self.kind as u8);
        out.put_slice(&[0; 3]);
        out.put_u64(self.record.0);
        out.put_u64(self.offset);
        out.put_u32(self.length);
        out.put_u32(self.data_crc);
        let seal = secret.seal(&out[start..]);
        out.put_u32(seal);
    }

    /// Decodes the header at the start of `input`; `None` if there is none or it is damaged.
    pub(super) fn decode(secret: SealKey, input: &[u8]) -> Option<Self> {
        let mut input = input.get(..HEADER_BYTES)?;
        if input[..4] != MAGIC[..] || secret.seal(&input[..HEADER_BYTES - 4]).to_be_bytes() != input[32..] {
            return None;
        }
        let kinds = [EntryKind::Batch, EntryKind::Data, EntryKind::Remove, EntryKind::Lost];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == input[4])?;
        input.advance(8);
        let header = EntryHeader {
            kind,
            record: RecordId(input.get_u64()),
            offset: input.get_u64(),
            length: input.get_u32(),
            data_crc: input.get_u32(),
        };
        // In a listing the length field of a mark is its offset.
        (kind == EntryKind::Batch || header.length as usize <= DATA_BYTES_MAX).then_some(header)
    }

    /// Returns the bytes of the entry in its segment.
    pub(super) fn entry_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + if self.kind == EntryKind::Data { u64::from(self.length) } else { 0 }
    }

    /// Returns the next offset in `input` at which a header may begin, from the second byte.
    pub(super) fn search(input: &[u8]) -> Option<usize> {
        let tail = input.get(1..)?;
        tail.windows(MAGIC.len()).position(|window| window == MAGIC).map(|at| at + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_and_every_flipped_bit_is_noticed() {
        for header in [
            EntryHeader::batch(7, 2, 900),
            EntryHeader::remove(RecordId(9)),
            EntryHeader::lost(RecordId(9), 5, 128),
            EntryHeader::data(RecordId(1 << 40), 12, b"hello"),
        ] {
            let mut bytes = Vec::new();
            header.encode(SealKey(5), &mut bytes);
            assert_eq!(bytes.len(), HEADER_BYTES);
            assert_eq!(EntryHeader::decode(SealKey(5), &bytes), Some(header));
            assert_eq!(EntryHeader::decode(SealKey(6), &bytes), None, "of another segment");
            for bit in 0..HEADER_BYTES * 8 {
                let mut damaged = bytes.clone();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(EntryHeader::decode(SealKey(5), &damaged), None, "bit {bit}");
            }
        }
    }
}
